//! Whose budget a ledger charges: names, units, people by keyed sketches of their data.

use std::path::{Path, PathBuf};

use progap::Remedy;
use progap::ledger::{Charge, Difference, Entry, Error, Ledger};
use progap_graph::synth::SocialNetwork;
use progap_graph::{Dataset, DatasetParts, Features, Graph, NodeIds};
use progap_privacy::{Event, Unit};
use rusqlite::Connection;

/// People with ids of their own, or with none.
fn people(seed: u64, ids: bool) -> Dataset {
    let network = SocialNetwork::new(400).edges(3000).classes(3).dense(24).seed(seed).generate().unwrap();
    let names = NodeIds::from_texts((0..400).map(|node| format!("{seed}-{}", node * node)));
    let node_ids = if ids { names } else { NodeIds::Position };
    Dataset::new(DatasetParts { node_ids, ..network.into_parts() }).unwrap()
}

fn with(data: &Dataset, change: impl FnOnce(DatasetParts) -> DatasetParts) -> Dataset {
    Dataset::new(change(data.clone().into_parts())).unwrap()
}

/// Every label another one.
fn relabelled(data: &Dataset) -> Dataset {
    let labels: Vec<u32> = data.labels().iter().map(|label| (label + 1) % 3).collect();
    with(data, |parts| DatasetParts { labels: labels.into(), ..parts })
}

/// The rows in another order, and the edges with them. Where nodes have no ids, their positions change.
fn reordered(data: &Dataset) -> Dataset {
    let nodes = data.nodes() as u32;
    let place = |node: u32| (node * 7 + 3) % nodes;
    let mut order = vec![0u32; nodes as usize];
    (0..nodes).for_each(|node| order[place(node) as usize] = node);
    let (from, to): (Vec<u32>, Vec<u32>) =
        data.graph().iter_edges().map(|(from, to)| (place(from), place(to))).unzip();
    let (columns, rows) = (data.features().columns(), data.features().to_dense(data.nodes()));
    let row = |node: u32| rows[node as usize * columns..][..columns].to_vec();
    let features =
        Features::dense(data.nodes(), columns, order.iter().flat_map(|&n| row(n)).collect::<Vec<_>>());
    let labels: Vec<u32> = order.iter().map(|&node| data.labels()[node as usize]).collect();
    let node_ids = match data.node_ids() {
        NodeIds::Position => NodeIds::Position,
        ids => ids.select(&order),
    };
    with(data, |parts| DatasetParts {
        graph: Graph::from_edges(data.nodes(), &from, &to).unwrap(),
        features: features.unwrap(),
        labels: labels.into(),
        node_ids,
        ..parts
    })
}

fn without_a_column(data: &Dataset) -> Dataset {
    let (columns, rows) = (data.features().columns(), data.features().to_dense(data.nodes()));
    let fewer: Vec<f32> = rows.chunks(columns).flat_map(|row| row[1..].to_vec()).collect();
    let features = Features::dense(data.nodes(), columns - 1, fewer).unwrap();
    with(data, |parts| DatasetParts { features, feature_names: vec![], numbers: vec![], ..parts })
}

fn without_an_edge(data: &Dataset) -> Dataset {
    let (from, to): (Vec<u32>, Vec<u32>) = data.graph().iter_edges().skip(1).unzip();
    let graph = Graph::from_edges(data.nodes(), &from, &to).unwrap();
    with(data, |parts| DatasetParts { graph, ..parts })
}

fn ledger() -> (tempfile::TempDir, PathBuf, Ledger) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("privacy.ledger");
    let ledger = Ledger::create(&path).unwrap();
    (folder, path, ledger)
}

/// A ledger in which the data have a budget for directed edges as "school".
fn school(data: &Dataset) -> (tempfile::TempDir, PathBuf, Ledger) {
    let (folder, path, mut ledger) = ledger();
    let known = ledger.identity(data).unwrap();
    ledger.register("school", Unit::Edge, 4.0, 1e-7, Some(&known)).unwrap();
    (folder, path, ledger)
}

fn run(id: &str, dataset: &str, unit: Unit) -> Charge {
    Charge::new(id, dataset, unit, Event::gaussian(10.0, 1.0).unwrap())
}

fn with_key(id: &str, commitment: &str) -> Charge {
    Charge { key_commitment: Some(commitment.into()), ..run(id, "school", Unit::Edge) }
}

/// A row as it lies in the file: number, time, run, event, body, seal.
type Row = (i64, String, Option<String>, Option<String>, String, String);

fn rows(path: &Path) -> Vec<Row> {
    let raw = Connection::open(path).unwrap();
    let mut statement =
        raw.prepare("SELECT seq, time, run_id, event, body, hash FROM entry ORDER BY seq").unwrap();
    let all = statement.query_map([], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
    });
    all.unwrap().collect::<Result<_, _>>().unwrap()
}

fn identities(path: &Path) -> Vec<Vec<u8>> {
    let raw = Connection::open(path).unwrap();
    let mut statement = raw.prepare("SELECT sketches FROM identity ORDER BY dataset, unit").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn an_account_is_found_by_name_then_by_the_people_then_by_the_name_of_the_data_set() {
    let (first, second, third) = (people(1, true), people(2, true), people(3, true));
    let (_folder, _, mut ledger) = school(&first);
    let clinic = ledger.identity(&second).unwrap();
    ledger.register("clinic", Unit::Edge, 4.0, 1e-7, Some(&clinic)).unwrap();
    let find = |asked: Option<&str>, own: &str, data: &Dataset| {
        ledger.find(asked, own, &ledger.identity(data).unwrap(), Unit::Edge)
    };

    let by_data = find(None, "whatever", &first).unwrap();
    assert_eq!((by_data.name.as_str(), by_data.warning), ("school", None));
    // The data decide, not the name of a file.
    assert_eq!(find(None, "clinic", &first).unwrap().name, "school");
    let by_name = find(Some("school"), "whatever", &first).unwrap();
    assert_eq!((by_name.name.as_str(), by_name.warning), ("school", None));

    // The same name with other data: said aloud, and charged to the name.
    let by_own_name = find(None, "school", &third).unwrap();
    let warning = by_own_name.warning.expect("other data");
    assert_eq!((by_own_name.name.as_str(), warning.difference), ("school", Difference::Other));
    assert!(warning.to_string().contains("not the data") && warning.to_string().contains("school"));
    // Nor are the same people charged to the budget of others, because a run says that name first.
    let error = find(Some("clinic"), "school", &relabelled(&first)).unwrap_err();
    assert!(matches!(error, Error::SamePeople { .. }) && error.to_string().contains("school"), "{error}");

    for (asked, own) in [(None, "nowhere"), (Some("nowhere"), "school")] {
        let error = find(asked, own, &third).unwrap_err();
        assert!(matches!(error, Error::Unregistered { .. }), "{error}");
        assert!(matches!(progap::ledger::remedies(&error)[..], [Remedy::CreateBudget { .. }]), "{error}");
    }
}

/// What was done to a data set.
type Change = fn(&Dataset) -> Dataset;

/// Another label column, another order of rows, a column less, an edge less: the same people, and no second budget.
#[test]
fn the_same_people_get_no_second_budget() {
    let changes: [(&str, Change); 6] = [
        ("the same", |data| data.clone()),
        ("another label", relabelled),
        ("another order", reordered),
        ("a column less", without_a_column),
        ("an edge less", without_an_edge),
        ("all but the ids and rows", |data| relabelled(&reordered(&without_an_edge(data)))),
    ];
    for ids in [true, false] {
        let data = people(1, ids);
        for (what, change) in changes {
            let (_folder, path, mut ledger) = school(&data);
            let changed = ledger.identity(&change(&data)).unwrap();
            for unit in [Unit::Edge, Unit::Node] {
                let second = ledger.register("second", unit, 4.0, 1e-7, Some(&changed)).unwrap_err();
                let Error::SamePeople { known_as, .. } = &second else { panic!("{what}: {second}") };
                assert_eq!(known_as, "school");
            }
            let found = ledger.find(None, "second", &changed, Unit::Edge).unwrap();
            assert_eq!(found.name, "school", "{what}, ids: {ids}");
            assert_eq!(rows(&path).len(), 1);
            // Another unit under the same name is one budget more for them, and counts the same runs.
            assert_eq!(
                ledger.register("school", Unit::EdgeUndirected, 4.0, 1e-7, Some(&changed)).unwrap(),
                None
            );
        }
    }
    let (_folder, _, mut ledger) = school(&people(1, false));
    let other = ledger.identity(&people(2, false)).unwrap();
    ledger.register("other", Unit::Edge, 4.0, 1e-7, Some(&other)).unwrap();
}

#[test]
fn other_people_who_look_the_same_have_a_budget_for_a_reason_that_is_recorded() {
    let data = people(1, true);
    let (_folder, path, mut ledger) = school(&data);
    // The same ids, of other people.
    let ids = data.node_ids().clone();
    let town =
        ledger.identity(&with(&people(2, false), |parts| DatasetParts { node_ids: ids, ..parts })).unwrap();
    let plain = Entry::new("town", &[Unit::Edge], 1.0, 1e-7);
    assert!(matches!(ledger.enter(&plain, Some(&town)), Err(Error::SamePeople { .. })));
    let empty = Entry { other_people: Some(" ".into()), ..plain.clone() };
    assert!(matches!(ledger.enter(&empty, Some(&town)), Err(Error::Invalid { .. })));
    let stated = Entry { other_people: Some("numbered alike, in another town".into()), ..plain };
    assert_eq!(ledger.enter(&stated, Some(&town)).unwrap(), None);
    assert!(rows(&path)[1].4.contains("numbered alike, in another town"), "{:?}", rows(&path)[1]);
    let reason = ledger.status("town", Unit::Edge).unwrap().other_people;
    assert_eq!(reason.as_deref(), Some("numbered alike, in another town"));
    // Each is found by all of its data, and by its name.
    for (name, data) in [("school", ledger.identity(&data).unwrap()), ("town", town)] {
        assert_eq!(ledger.find(None, "file", &data, Unit::Edge).unwrap().name, name);
        assert_eq!(ledger.find(Some(name), "file", &data, Unit::Edge).unwrap().warning, None);
    }
    // Data that look like both must be told by name.
    let both = ledger.identity(&with(&people(3, false), |parts| DatasetParts {
        node_ids: data.node_ids().clone(),
        ..parts
    }));
    let both = both.unwrap();
    let error = ledger.find(None, "file", &both, Unit::Edge).unwrap_err();
    assert!(matches!(&error, Error::Several { names } if names == "school, town"), "{error}");
    assert_eq!(ledger.find(Some("town"), "file", &both, Unit::Edge).unwrap().name, "town");
    ledger.check().unwrap();
}

#[test]
fn a_data_set_has_a_budget_for_each_unit_and_one_name() {
    let (data, clinic) = (people(1, true), people(2, true));
    let (_folder, _, mut ledger) = ledger();
    let (known, other) = (ledger.identity(&data).unwrap(), ledger.identity(&clinic).unwrap());
    let both = [Unit::Edge, Unit::EdgeUndirected];
    assert_eq!(ledger.enter(&Entry::new("school", &both, 4.0, 1e-7), Some(&known)).unwrap(), None);
    for unit in both {
        let found = ledger.find(None, "other", &known, unit).unwrap();
        assert_eq!((found.name.as_str(), found.unit, found.warning), ("school", unit, None));
    }
    assert!(matches!(ledger.budget("school", None), Err(Error::Ambiguous { .. })));
    // There is a budget under the owner's name, but none for that unit.
    for error in [
        ledger.find(None, "file", &known, Unit::Node).unwrap_err(),
        ledger.charge(run("third", "school", Unit::Node)).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Unit { .. }), "{error}");
        assert!(error.to_string().contains("edge, edge-undirected") && error.to_string().contains("school"));
    }
    // Another unit of the same name with other data: entered, and said aloud.
    let warning = ledger.register("school", Unit::Node, 1.0, 1e-7, Some(&other)).unwrap();
    assert!(warning.expect("other data").to_string().contains("not the data"));
    // All units or none.
    for (name, units) in [("new", vec![Unit::Node, Unit::Edge, Unit::Node]), ("school", vec![Unit::Edge])] {
        let half = ledger.enter(&Entry::new(name, &units, 1.0, 1e-7), None);
        assert!(matches!(half, Err(Error::Registered { .. })));
    }
    assert_eq!(ledger.datasets().unwrap().len(), 3);
    assert_eq!(ledger.check().unwrap().datasets, 3);
}

/// One damaged identity, and nothing of the ledger is relied on.
#[test]
fn a_ledger_with_a_damaged_identity_is_neither_charged_nor_shown() {
    for sql in [
        "UPDATE identity SET sketches = randomblob(length(sketches)) WHERE dataset = 'clinic'",
        "UPDATE identity SET sketches = x'00' WHERE dataset = 'clinic'",
        "UPDATE identity SET seal = zeroblob(32) WHERE dataset = 'clinic'",
        "UPDATE identity SET dataset = 'nobody' WHERE dataset = 'clinic'",
        "UPDATE identity SET unit = 'node' WHERE dataset = 'clinic'",
        "DELETE FROM identity WHERE dataset = 'clinic'",
        "UPDATE secret SET key = zeroblob(32)",
    ] {
        let data = people(1, true);
        let (_folder, path, mut ledger) = school(&data);
        let clinic = ledger.identity(&people(2, true)).unwrap();
        ledger.register("clinic", Unit::Edge, 4.0, 1e-7, Some(&clinic)).unwrap();
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let known = ledger.identity(&data).unwrap();
        let errors = [
            ledger.check().unwrap_err(),
            ledger.charge(run("one", "school", Unit::Edge)).unwrap_err(),
            ledger.find(None, "file", &known, Unit::Edge).unwrap_err(),
            ledger.register("third", Unit::Edge, 4.0, 1e-7, None).unwrap_err(),
            ledger.set_budget("school", Unit::Edge, 5.0, 1e-7, "why").unwrap_err(),
            ledger.datasets().unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, Error::Damaged { .. }), "{sql}: {error}");
        }
        assert_eq!(rows(&path).len(), 2, "{sql}");
    }
}

/// The parts of a ledger that anybody may see: the rows, their seals, the receipts.
#[test]
fn rows_seals_and_receipts_are_the_same_to_the_last_byte_whatever_the_data() {
    let write = |data: &Dataset| {
        let (folder, path, mut ledger) = ledger();
        let known = ledger.identity(data).unwrap();
        let entry = Entry::new("school", &[Unit::Edge, Unit::Node], 4.0, 1e-7);
        let entry = Entry { other_people: Some("all new".into()), public_rows: true, ..entry };
        ledger.enter(&entry, Some(&known)).unwrap();
        let name = ledger.find(None, "file", &known, Unit::Edge).unwrap().name;
        let receipt = ledger.charge(run("one", &name, Unit::Edge).with_note("train school")).unwrap();
        ledger.set_budget("school", Unit::Edge, 5.0, 1e-7, "agreed").unwrap();
        let public = (rows(&path), serde_json::to_string(&receipt).unwrap());
        (public, identities(&path), folder)
    };
    let (first, second) = (people(1, true), people(2, false));
    // Rows have the time in seconds: two ledgers that were written in the same one must be equal.
    let same_second = || loop {
        let (first, second) = (write(&first), write(&second));
        let times = |rows: &[Row]| rows.iter().map(|row| row.1.clone()).collect::<Vec<_>>();
        if times(&first.0.0) == times(&second.0.0) {
            return (first, second);
        }
    };
    let (one, other) = same_second();
    assert_eq!(one.0, other.0);
    let (rows, receipt) = one.0;
    let public = format!("{rows:?} {receipt}");
    assert!(receipt.contains(r#""dataset":"school""#) && receipt.contains(r#""unit":"edge""#), "{receipt}");
    assert!(receipt.contains(r#""public_rows":true"#), "{receipt}");
    assert!(!public.contains("fingerprint") && !public.contains("sketch"), "{public}");
    // The identity is keyed: another ledger has another one for the same data.
    assert_eq!(one.1[0], one.1[1]);
    assert_ne!(one.1, write(&first).1);
}

#[test]
fn a_run_cannot_go_on_with_another_key() {
    let (_folder, path, mut ledger) = ledger();
    ledger.register("school", Unit::Edge, 4.0, 1e-7, None).unwrap();
    let charge = with_key("one", "AABBCCDD");
    let receipt = ledger.charge(charge.clone()).unwrap();
    assert_eq!(ledger.charge(charge).unwrap(), receipt);
    for other in [run("one", "school", Unit::Edge), with_key("one", "aabbccde")] {
        let error = ledger.charge(other).unwrap_err();
        assert!(matches!(&error, Error::RunChanged { what: "with another key", .. }), "{error}");
    }
    assert!(rows(&path)[1].4.contains(r#""key_commitment":"aabbccdd""#));
    assert_eq!(ledger.charges("school", Unit::Edge).unwrap()[0].key_commitment.as_deref(), Some("aabbccdd"));
    ledger.check().unwrap();
}

#[test]
fn a_run_with_seeded_noise_is_never_charged() {
    let (_folder, _, mut ledger) = ledger();
    ledger.register("school", Unit::Edge, 4.0, 1e-7, None).unwrap();
    let error = ledger.charge(run("one", "school", Unit::Edge).with_seeded_noise(true)).unwrap_err();
    assert!(matches!(error, Error::Seeded { .. }) && error.to_string().contains("not private"), "{error}");
    assert_eq!(ledger.check().unwrap().runs, 0);
}

#[test]
fn budgets_that_no_run_can_ever_use_are_refused() {
    let (_folder, _, mut ledger) = ledger();
    ledger.register("school", Unit::Edge, 4.0, 1e-7, None).unwrap();
    for (epsilon, delta) in [
        (9e-4, 1e-7),
        (1001.0, 1e-7),
        (1.0, 1e-31),
        (1.0, 0.11),
        // Within what settings accept, but tables of noise keep neither.
        (1000.0, 0.1),
        (50.0, 1e-7),
        (1.0, 1e-29),
    ] {
        let entered = ledger.register("x", Unit::Edge, epsilon, delta, None).unwrap_err();
        let changed = ledger.set_budget("school", Unit::Edge, epsilon, delta, "why").unwrap_err();
        for error in [entered, changed] {
            let known = matches!(error, Error::Invalid { .. } | Error::Tables { .. });
            assert!(known, "{epsilon} {delta}: {error}");
        }
    }
    assert_eq!(ledger.check().unwrap().rows, 1);
    for (at, (epsilon, delta)) in
        [(1e-3, 1e-7), (45.0, 1e-7), (1.0, 1e-26), (60.0, 0.1)].into_iter().enumerate()
    {
        ledger.register(&format!("usable {at}"), Unit::Edge, epsilon, delta, None).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_new_ledger_is_readable_by_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path, _ledger) = ledger();
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
}
