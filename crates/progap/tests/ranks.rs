//! Several ranks make the release that one process makes, to the byte.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use progap::method::Progress;
use progap::ranks::{Ranks, Sent, on_threads};
use progap::run::{self, Ranked};
use progap::settings::Request;
use progap_graph::synth::SocialNetwork;
use progap_graph::{Dataset, DatasetParts, Features, NumberColumn, Ratios};

/// A network whose rows have one to four entries.
fn data(nodes: usize) -> Dataset {
    let made = SocialNetwork::new(nodes).edges(8 * nodes).classes(3).seed(4).generate().expect("a network");
    let mut parts: DatasetParts = made.with_random_split(Ratios::default(), 1).expect("a split").into_parts();
    let (mut offsets, mut indices, mut values) = (vec![0u64], vec![], vec![]);
    for node in 0..nodes {
        let label = parts.labels[node];
        let mut own: Vec<u32> =
            (0..=(node * 7 % 4) as u32).map(|k| 10 * k + (label + node as u32 * k) % 10).collect();
        own.sort_unstable();
        values.extend(own.iter().map(|&column| 0.5 + column as f32 / 64.0));
        indices.extend(own);
        offsets.push(indices.len() as u64);
    }
    parts.features = Features::sparse(nodes, 40, offsets, indices, Some(values.into())).expect("features");
    parts.feature_names = vec![];
    parts.numbers = vec![];
    Dataset::new(parts).expect("a data set")
}

/// All files of a release but what it cost.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else if name != "cost.json" {
            found.insert(name, std::fs::read(&path).expect("a file"));
        }
    }
    found
}

fn request(settings: &[(&str, &str)]) -> Request {
    settings.iter().fold(Request::default(), |request, &(name, value)| {
        match (value.parse::<u64>(), value.parse::<f64>()) {
            (Ok(whole), _) => request.with(name, whole),
            (_, Ok(number)) => request.with(name, number),
            _ => request.with(name, value),
        }
    })
}

fn alone(data: &Dataset, settings: &[(&str, &str)], folder: &Path) -> BTreeMap<String, Vec<u8>> {
    progap::train(data, request(settings)).into_folder(folder).expect("a release");
    files(folder)
}

fn over(data: &Dataset, settings: &[(&str, &str)], folder: &Path, ranks: usize) -> Vec<Option<Ranked>> {
    on_threads(ranks, |ranks: Ranks| {
        progap::train(data, request(settings)).over(&ranks, folder).expect("a release")
    })
}

fn assert_same(data: &Dataset, settings: &[(&str, &str)], numbers: &[usize]) {
    let place = tempfile::tempdir().expect("a folder");
    let expected = alone(data, settings, &place.path().join("alone"));
    for &ranks in numbers {
        let folder = place.path().join(ranks.to_string());
        let outcomes = over(data, settings, &folder, ranks);
        assert!(outcomes[0].is_some() && outcomes[1..].iter().all(Option::is_none));
        let found = files(&folder);
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, bytes) in &expected {
            assert!(found[name] == *bytes, "{settings:?}, {ranks} ranks: {name} differs");
        }
        progap::Release::open(&folder).expect("a whole release");
    }
}

const EVERY: [usize; 5] = [1, 2, 3, 4, 7];

#[test]
fn progap_at_edge_level() {
    assert_same(
        &data(6000),
        &[("method", "progap-labels"), ("level", "edge"), ("seed", "3"), ("epochs", "6")],
        &EVERY,
    );
}

#[test]
fn progap_without_privacy_with_dropout_and_weights() {
    let settings = [
        ("method", "progap-labels"),
        ("level", "none"),
        ("seed", "3"),
        ("epochs", "5"),
        ("dropout", "0.3"),
        ("class_weights", "balanced"),
        ("metric", "macro-f1"),
        ("messages", "embeddings"),
    ];
    assert_same(&data(5000), &settings, &EVERY);
}

#[test]
fn progap_at_node_level() {
    let settings =
        [("method", "progap-labels"), ("level", "node"), ("epsilon", "8"), ("seed", "3"), ("epochs", "2")];
    assert_same(&data(6000), &settings, &EVERY);
    let large = [("batch_size", "1500"), ("class_weights", "balanced"), ("depth", "1")];
    assert_same(&data(6000), &[&settings[..], &large[..]].concat(), &[2, 5]);
}

/// Senders choose some of their edges, the same ones wherever the receivers lie.
#[test]
fn senders_keep_the_same_edges() {
    let settings = [("method", "progap-labels"), ("level", "node"), ("bounding", "sample"), ("epsilon", "8")];
    let more = [("max_degree", "5"), ("seed", "3"), ("epochs", "2"), ("depth", "2")];
    assert_same(&data(4000), &[&settings[..], &more].concat(), &EVERY);
    let gap = [("method", "gap"), ("level", "node"), ("bounding", "sample"), ("max_degree", "3")];
    assert_same(&data(2000), &[&gap[..], &[("seed", "3"), ("epochs", "2")]].concat(), &[3]);
}

/// No method is named: the edges lie in the ranks, and every rank has all rows.
#[test]
fn the_default_method_at_edge_level() {
    assert_same(&data(1500), &[("seed", "3")], &EVERY);
    let settings = [("seed", "3"), ("epsilon", "4"), ("messages", "features")];
    assert_same(&table(1200, false), &settings, &[1, 3]);
}

#[test]
fn the_default_method_goes_on_with_other_ranks() {
    let (data, place) = (data(1500), tempfile::tempdir().expect("a folder"));
    let expected = alone(&data, &[("seed", "3")], &place.path().join("alone"));
    let folder = place.path().join("stopped");
    let stopped = on_threads(3, |ranks: Ranks| {
        let mut stages = 0;
        let mut stop = |_: &Progress| {
            stages += 1;
            if stages == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        progap::train(&data, request(&[("seed", "3")])).observer(&mut stop).over(&ranks, &folder)
    });
    assert!(stopped.iter().all(|outcome| matches!(outcome, Err(error) if error.is_interrupted())));
    assert!(folder.join("aggregates/1.npy").exists(), "an answer was kept");
    let done = on_threads(2, |ranks: Ranks| run::resume_over(&ranks, &data, &folder, &mut ()));
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    assert!(files(&folder) == expected);
}

#[test]
fn gap_and_mlp_at_all_levels() {
    let data = data(3000);
    for method in ["gap", "mlp"] {
        for level in ["none", "edge", "node"] {
            let settings = [("method", method), ("level", level), ("seed", "5"), ("epochs", "2")];
            assert_same(&data, &settings, &[2, 3, 7]);
        }
    }
}

/// A people's table: an income, a skewed column, one with missing values and their indicator, a switch, one with
/// declared bounds.
fn table(nodes: usize, sparse: bool) -> Dataset {
    let mut parts = data(nodes).into_parts();
    let mut rows: Vec<[f32; 6]> = vec![];
    for node in 0..nodes {
        let z = (node * 7919 % 1000) as f32 / 250.0 - 2.0 + parts.labels[node] as f32;
        let known = node % 7 != 3;
        rows.push([
            30_000.0 + 9_000.0 * z,
            (2.0 * z).exp(),
            if known { 0.01 * z } else { 0.0 },
            if known { 0.0 } else { 1.0 },
            if node % 10 == 0 { 1.0 } else { 0.0 },
            20.0 + (node % 60) as f32,
        ]);
    }
    let entries = |row: &[f32; 6]| -> Vec<(u32, f32)> {
        row.iter().enumerate().filter(|(_, v)| **v != 0.0).map(|(at, v)| (at as u32, *v)).collect()
    };
    parts.features = if sparse {
        let (mut offsets, mut all) = (vec![0u64], vec![]);
        for row in &rows {
            all.extend(entries(row));
            offsets.push(all.len() as u64);
        }
        let (indices, values): (Vec<u32>, Vec<f32>) = all.into_iter().unzip();
        Features::sparse(nodes, 6, offsets, indices, Some(values.into())).expect("features")
    } else {
        Features::dense(nodes, 6, rows.concat()).expect("features")
    };
    let number = NumberColumn::new;
    parts.numbers = vec![
        NumberColumn { origin: Some(1e7), ..number(0) },
        number(1),
        NumberColumn { missing: Some(3), ..number(2) },
        number(4),
        NumberColumn { bounds: Some([0.0, 100.0]), ..number(5) },
    ];
    Dataset::new(parts).expect("a data set")
}

#[test]
fn columns_in_units_of_their_own_are_brought_to_scale() {
    let usual = [("method", "progap-labels"), ("seed", "3"), ("epochs", "3")];
    for sparse in [false, true] {
        let data = table(3001, sparse);
        for (level, numbers) in [("edge", &[2, 3, 7][..]), ("none", &[2])] {
            assert_same(&data, &[&usual[..], &[("level", level)]].concat(), numbers);
        }
        for (scaling, numbers) in [("noisy", &[2, 3, 7][..]), ("single", &[2])] {
            let settings = [("level", "node"), ("epsilon", "8"), ("scaling", scaling)];
            assert_same(&data, &[&usual[..], &settings].concat(), numbers);
        }
    }
}

#[test]
fn a_run_on_a_table_goes_on_with_other_ranks() {
    let (data, place) = (table(2001, false), tempfile::tempdir().expect("a folder"));
    let settings = [("method", "progap-labels"), ("level", "node"), ("scaling", "noisy"), ("epsilon", "8")];
    let settings = [&settings[..], &[("seed", "9"), ("epochs", "4")]].concat();
    let expected = alone(&data, &settings, &place.path().join("alone"));
    for (before, after) in [(3, 2), (2, 1)] {
        let folder = place.path().join(format!("{before}-{after}"));
        let stopped = on_threads(before, |ranks: Ranks| {
            let mut stop = |_: &Progress| ControlFlow::Break(());
            progap::train(&data, request(&settings)).observer(&mut stop).over(&ranks, &folder)
        });
        assert!(stopped.iter().all(|outcome| matches!(outcome, Err(error) if error.is_interrupted())));
        let done = on_threads(after, |ranks: Ranks| run::resume_over(&ranks, &data, &folder, &mut ()));
        assert!(done.iter().all(Result::is_ok), "{done:?}");
        assert!(files(&folder) == expected, "{before} ranks, then {after}");
    }
}

/// More values than are brought together: every rank trains on its own rows, where they lie.
#[test]
fn rows_that_stay_where_they_are() {
    let (nodes, columns) = (24_000, 2000);
    let made = SocialNetwork::new(nodes).edges(4 * nodes).classes(3).seed(4).generate().expect("a network");
    let mut parts = made.with_random_split(Ratios::default(), 1).expect("a split").into_parts();
    let value = |at: usize| ((at as u32).wrapping_mul(2_654_435_761) >> 9) as f32 / 8_388_608.0 - 0.5;
    parts.features = Features::dense(nodes, columns, (0..nodes * columns).map(value).collect::<Vec<f32>>())
        .expect("features");
    (parts.feature_names, parts.numbers) = (vec![], vec![]);
    let data = Dataset::new(parts).expect("a data set");
    let settings = [
        ("method", "progap-labels"),
        ("level", "edge"),
        ("seed", "3"),
        ("epochs", "2"),
        ("dropout", "0.2"),
        ("depth", "1"),
    ];
    assert_same(&data, &settings, &[3]);
}

#[test]
fn a_run_goes_on_with_other_ranks() {
    let (data, place) = (data(3000), tempfile::tempdir().expect("a folder"));
    for (level, bounding) in [("edge", None), ("node", None), ("node", Some("sample"))] {
        let mut settings =
            vec![("method", "progap-labels"), ("level", level), ("seed", "9"), ("epochs", "4")];
        settings.extend(bounding.map(|bounding| ("bounding", bounding)));
        let level = format!("{level}-{}", bounding.unwrap_or("usual"));
        let expected = alone(&data, &settings, &place.path().join(format!("{level}-alone")));
        for (before, after) in [(3, 2), (2, 1), (1, 4)] {
            let folder = place.path().join(format!("{level}-{before}-{after}"));
            let stopped = on_threads(before, |ranks: Ranks| {
                let mut epochs = 0;
                let mut stop = |_: &Progress| {
                    epochs += 1;
                    if epochs == 6 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                progap::train(&data, request(&settings)).observer(&mut stop).over(&ranks, &folder)
            });
            assert!(stopped.iter().all(|outcome| matches!(outcome, Err(error) if error.is_interrupted())));
            let done = on_threads(after, |ranks: Ranks| run::resume_over(&ranks, &data, &folder, &mut ()));
            assert!(done.iter().all(Result::is_ok), "{done:?}");
            assert!(files(&folder) == expected, "{level}: {before} ranks, then {after}");
        }
    }
}

#[test]
fn secure_noise_is_one_runs_on_all_ranks() {
    let (data, place) = (data(2000), tempfile::tempdir().expect("a folder"));
    let folder = place.path().join("secure");
    over(&data, &[("method", "progap-labels"), ("level", "edge"), ("epochs", "2")], &folder, 3);
    let findings = progap::Release::open(&folder).expect("a release").verify().expect("findings");
    assert!(!findings.is_empty());
    assert!(!folder.join("secret.key").exists());
}

#[test]
fn what_is_not_for_several_ranks_is_refused_in_words() {
    let (data, place) = (data(500), tempfile::tempdir().expect("a folder"));
    let refused = |settings: &[(&str, &str)], words: &str| {
        let folder = place.path().join("refused");
        let outcomes = on_threads(2, |ranks: Ranks| {
            progap::train(&data, request(settings)).over(&ranks, &folder).map(|_| ())
        });
        for outcome in outcomes {
            let error = outcome.expect_err("refused").to_string();
            assert!(error.contains(words), "{error}");
        }
        assert!(!folder.exists());
    };
    refused(&[("level", "none")], "the method progap-views runs on one machine at level none");
    let node = [("method", "progap-views"), ("level", "node")];
    refused(&node, "the method progap-views runs on one machine at level node");
    refused(&[("level", "edge"), ("direction", "both")], "another direction than in");
    refused(&[("method", "sage"), ("level", "none")], "the method sage runs on one machine");
    refused(&[("method", "progap-labels"), ("level", "edge"), ("direction", "out")], "turn the edges round");
}

#[test]
fn ranks_that_mean_another_run_are_refused() {
    let (data, other, place) = (data(500), data(501), tempfile::tempdir().expect("a folder"));
    let folder = place.path().join("refused");
    let asked =
        |epochs: &'static str| request(&[("method", "progap-labels"), ("level", "edge"), ("epochs", epochs)]);
    let outcomes = on_threads(3, |ranks: Ranks| {
        let epochs = if ranks.rank() == 2 { "3" } else { "2" };
        progap::train(&data, asked(epochs)).over(&ranks, &folder).map(|_| ())
    });
    for outcome in outcomes {
        let error = outcome.expect_err("refused").to_string();
        assert!(error.contains("rank 2 does not have the same settings as rank 0"), "{error}");
    }
    let outcomes = on_threads(2, |ranks: Ranks| {
        let data = if ranks.rank() == 1 { &other } else { &data };
        progap::train(data, asked("2")).over(&ranks, &folder).map(|_| ())
    });
    for outcome in outcomes {
        assert!(outcome.expect_err("refused").to_string().contains("the same data as rank 0"), "other data");
    }
    assert!(!folder.exists());
}

/// Asked before anything else is said, by what every version says.
#[test]
fn ranks_of_another_version_are_refused() {
    let outcomes = on_threads(3, |ranks: Ranks| match ranks.rank() {
        1 => ranks.agree(&[("version of the program", "progap 0.0.9 on several ranks".into())]),
        _ => ranks.same_program(),
    });
    for outcome in outcomes {
        let error = outcome.expect_err("refused").to_string();
        assert!(error.contains("rank 1 does not have the same version of the program as rank 0"), "{error}");
    }
    assert!(on_threads(3, |ranks: Ranks| ranks.same_program()).iter().all(Result::is_ok));
}

#[test]
fn a_rank_that_ends_ends_the_others() {
    let (data, place) = (data(500), tempfile::tempdir().expect("a folder"));
    let folder = place.path().join("ends");
    let outcomes = on_threads(3, |ranks: Ranks| {
        if ranks.rank() == 1 {
            return Err(progap::Error::rank("gone"));
        }
        progap::train(&data, request(&[("method", "progap-labels"), ("level", "edge")]))
            .over(&ranks, &folder)
            .map(|_| ())
    });
    assert!(outcomes.iter().all(Result::is_err));
}

/// What a rank sends for an aggregation.
#[test]
fn an_aggregation_sends_what_the_formula_says() {
    let (data, place) = (data(3000), tempfile::tempdir().expect("a folder"));
    let graph = data.graph();
    let border = progap_graph::part::borders(graph, data.split().expect("a split"), 2, None)[1];
    // Every node with an edge to a node of the other rank, once.
    let mut crosses = [BTreeSet::new(), BTreeSet::new()];
    for (source, target) in graph.iter_edges() {
        let (from, to) = (source as usize >= border, target as usize >= border);
        if from != to {
            crosses[usize::from(from)].insert(source);
        }
    }
    let needed = crosses.map(|nodes| nodes.len() as u64);
    for (level, bytes) in [("none", 4), ("edge", 1)] {
        let settings = [
            ("method", "progap-labels"),
            ("level", level),
            ("seed", "1"),
            ("epochs", "1"),
            ("depth", "1"),
            ("messages", "labels"),
        ];
        let outcomes = over(&data, &settings, &place.path().join(level), 2);
        let ranked = outcomes.into_iter().flatten().next().expect("the first rank knows");
        let sent = |rank: usize, what: Sent| ranked.sent[rank].of(what);
        let width = 3;
        let messages = [0, 1].map(|rank| sent(rank, Sent::Messages));
        assert!(
            messages == needed.map(|nodes| nodes * width * bytes)
                || (bytes == 1 && messages == needed.map(|nodes| nodes * width * 2)),
            "{level}: {messages:?} for {needed:?} nodes"
        );
        let own = [border as u64, (3000 - border) as u64];
        assert_eq!([0, 1].map(|rank| sent(rank, Sent::Kept)), [0, own[1] * width * 4]);
        // 9,000 sums are one block, which both ranks have a part of.
        let noise = if level == "none" { [0; 2] } else { own.map(|nodes| 16 + 16 + 8 * nodes * width) };
        assert_eq!([0, 1].map(|rank| sent(rank, Sent::Noise)), noise);
    }
}
