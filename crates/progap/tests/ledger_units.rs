//! One run is charged in every unit that its data have a budget for.

use progap::ledger::{Charge, Entry, Error, Ledger};
use progap::settings::Request;
use progap::{Edge, MethodKind, Node};
use progap_graph::synth::SocialNetwork;
use progap_graph::{Dataset, Ratios};
use progap_privacy::accountant::{Accountant, Best};
use progap_privacy::noise::tables;
use progap_privacy::{Event, Unit};

const DELTA: f64 = 1e-6;

fn network() -> Dataset {
    let network = SocialNetwork::new(500).edges(4000).classes(2).dense(20).seed(3).generate().unwrap();
    network.with_random_split(Ratios::default(), 1).unwrap()
}

/// A ledger in which the data have a budget for each of some units.
fn ledger(units: &[Unit], epsilon: f64, public_rows: bool) -> (tempfile::TempDir, Ledger) {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::create(folder.path().join("budget.db")).unwrap();
    let people = ledger.identity(&network()).unwrap();
    let entry = Entry { public_rows, ..Entry::new("people", units, epsilon, DELTA) };
    ledger.enter(&entry, Some(&people)).unwrap();
    (folder, ledger)
}

fn train(ledger: &Ledger, asked: impl Into<Request>) -> progap::Result<Event> {
    let trained = progap::train(&network(), asked.into()).ledger(ledger.path()).in_memory()?;
    Ok(trained.statement.event.clone())
}

fn spent(ledger: &Ledger, unit: Unit) -> f64 {
    ledger.status("people", unit).unwrap().spent
}

fn gaussian(sigma: f64) -> Charge {
    Charge::new("run", "people", Unit::Edge, Event::gaussian(sigma, 1.0).unwrap())
}

/// The noise of all sums in an event: how many there are, and the deviation of each.
fn sums(event: &Event) -> Vec<(f64, u64)> {
    match event {
        Event::Gaussian { sigma, .. } => vec![(*sigma, 1)],
        Event::SelfComposed { event, count } => {
            sums(event).into_iter().map(|(sigma, times)| (sigma, times * count)).collect()
        }
        Event::Composed { events } => events.iter().flat_map(sums).collect(),
        _ => vec![],
    }
}

/// An edge run, an undirected one and one at node level, each against trees that are composed here from what their
/// statements say: a sum moves by 1 where one directed edge changes and by sqrt 2 where both directions do; at node
/// level, with a bound of C, by sqrt 2 C and by 2 sqrt 2 C.
#[test]
fn three_runs_cost_in_each_unit_what_their_trees_cost_composed_by_hand() {
    let (_folder, ledger) = ledger(&Unit::ALL, 30.0, true);
    let edge = Edge::epsilon(1.0).method(MethodKind::Gap).delta(DELTA).epochs(1).directed();
    let pair = Edge::epsilon(1.5).method(MethodKind::ProgapLabels).delta(DELTA).epochs(1).undirected();
    let node = Node::epsilon(6.0).method(MethodKind::Gap).delta(DELTA).epochs(1).batch_size(100);
    let edge = train(&ledger, edge).unwrap();
    let pair = train(&ledger, pair).unwrap();
    let node = train(&ledger, node).unwrap();
    let Some(Event::Gaussian { sensitivity: bound, .. }) = first_gaussian(&node) else { panic!("{node:?}") };
    let root = 2f64.sqrt();
    let tree = |by_edge: f64, by_pair: f64, by_node: f64| {
        let moved = [(&edge, by_edge), (&pair, by_pair), (&node, by_node)];
        let events = moved.into_iter().flat_map(|(event, sensitivity)| {
            let sum =
                move |(sigma, count)| Event::gaussian(sigma, sensitivity).unwrap().repeated(count).unwrap();
            sums(event).into_iter().map(sum).collect::<Vec<_>>()
        });
        Event::composed(events.collect()).unwrap()
    };
    let cost = |event: &Event| Best.epsilon(event, tables::provable(DELTA)).unwrap().value;
    for (unit, expected) in [
        (Unit::Edge, cost(&tree(1.0, 1.0, root * bound))),
        (Unit::EdgeUndirected, cost(&tree(root, root, 2.0 * root * bound))),
        (Unit::Node, cost(&node)),
    ] {
        let found = spent(&ledger, unit);
        assert!((found / expected - 1.0).abs() < 1e-6, "{unit}: {found} and {expected}");
    }
    assert_eq!(Unit::ALL.map(|unit| ledger.status("people", unit).unwrap().runs), [3, 3, 1]);
    assert_eq!(ledger.status("people", Unit::Node).unwrap().uncounted, 2);
    ledger.check().unwrap();
}

fn first_gaussian(event: &Event) -> Option<Event> {
    match event {
        Event::Gaussian { .. } => Some(event.clone()),
        Event::SelfComposed { event, .. } => first_gaussian(event),
        Event::Composed { events } => events.iter().find_map(first_gaussian),
        _ => None,
    }
}

#[test]
fn a_run_over_the_budget_of_another_unit_is_charged_in_none() {
    let (_folder, mut ledger) = ledger(&[Unit::Edge], 40.0, false);
    ledger.register("people", Unit::EdgeUndirected, 1.0, DELTA, None).unwrap();
    // In the unit of one direction it costs 0.93, in that of both 1.37.
    let error = ledger.charge(gaussian(4.7)).unwrap_err();
    let Error::OverBudget(refusal) = &error else { panic!("{error}") };
    assert_eq!(refusal.unit, Unit::EdgeUndirected);
    assert!(refusal.asked > 1.0 && error.to_string().contains("unit edge-undirected"), "{error}");
    assert_eq!((spent(&ledger, Unit::Edge), spent(&ledger, Unit::EdgeUndirected)), (0.0, 0.0));
    let receipt = ledger.charge(gaussian(12.0)).unwrap();
    assert_eq!((receipt.cost.unit, receipt.also.len()), (Unit::Edge, 1));
    assert!(receipt.also[0].epsilon > receipt.cost.epsilon);
    assert_eq!(ledger.charge(gaussian(12.0)).unwrap(), receipt, "a resumed run is free");
    assert_eq!(spent(&ledger, Unit::EdgeUndirected), receipt.also[0].total);
    assert_eq!(ledger.check().unwrap().runs, 1);
}

#[test]
fn a_budget_that_is_entered_later_counts_what_was_spent_before() {
    let (_folder, mut ledger) = ledger(&[Unit::Edge], 40.0, false);
    let receipt = ledger.charge(gaussian(4.7)).unwrap();
    let low = ledger.register("people", Unit::EdgeUndirected, 1.0, DELTA, None).unwrap_err();
    assert!(matches!(low, Error::BudgetBelowSpent { .. }), "{low}");
    ledger.register("people", Unit::EdgeUndirected, 4.0, DELTA, None).unwrap();
    assert!(spent(&ledger, Unit::EdgeUndirected) > receipt.cost.total);
    assert_eq!(ledger.check().unwrap().runs, 1);
}

/// An edge-level release holds features and labels: what a budget for nodes protects.
#[test]
fn beside_a_budget_for_nodes_edge_level_needs_the_owner_s_word_that_rows_are_public() {
    let (_folder, mut ledger) = ledger(&[Unit::Edge, Unit::Node], 9.0, false);
    let edge = || Edge::epsilon(1.0).delta(DELTA).epochs(1).directed();
    let refused = train(&ledger, edge()).unwrap_err().to_string();
    assert!(refused.contains("features and labels") && refused.contains("public"), "{refused}");
    train(&ledger, Node::epsilon(1.0).method(MethodKind::Mlp).delta(DELTA).epochs(1).batch_size(100))
        .unwrap();
    assert_eq!(spent(&ledger, Unit::Edge), 0.0, "it asks nothing of edges");
    assert!(matches!(ledger.set_public_rows("nobody", "why"), Err(Error::Unregistered { .. })));
    ledger.set_public_rows("people", "the yearbook is in print").unwrap();
    train(&ledger, edge()).unwrap();
    let status = ledger.status("people", Unit::Node).unwrap();
    assert!(status.public_rows && status.runs == 1 && status.uncounted == 1, "{status:?}");
    let runs = ledger.charges("people", Unit::Edge).unwrap();
    assert!(runs[1].receipt.public_rows && !runs[0].receipt.public_rows);
    ledger.check().unwrap();
}

#[test]
fn a_budget_for_nodes_after_edge_level_needs_the_same_word() {
    let (_folder, mut ledger) = ledger(&[Unit::Edge], 9.0, false);
    ledger.charge(gaussian(4.7)).unwrap();
    let late = ledger.register("people", Unit::Node, 4.0, DELTA, None).unwrap_err();
    assert!(matches!(late, Error::PrivateRows { .. }), "{late}");
    assert_eq!(ledger.datasets().unwrap().len(), 1);
    let entry = Entry { public_rows: true, ..Entry::new("people", &[Unit::Node], 4.0, DELTA) };
    ledger.enter(&entry, None).unwrap();
    assert_eq!(ledger.status("people", Unit::Node).unwrap().uncounted, 1);
    ledger.check().unwrap();
}

/// Whoever holds a later receipt finds that a ledger was replaced by an older copy, also where it has grown again
/// since.
#[test]
fn a_receipt_finds_a_ledger_that_was_rolled_back() {
    let (folder, mut ledger) = ledger(&[Unit::Edge], 9.0, false);
    let (path, copy) = (ledger.path().to_owned(), folder.path().join("copy"));
    let first = ledger.charge(gaussian(9.0)).unwrap();
    std::fs::copy(&path, &copy).unwrap();
    let second = ledger.charge(Charge { run_id: "second".into(), ..gaussian(9.0) }).unwrap();
    ledger.check_against(&[first.clone(), second.clone()]).unwrap();
    drop(ledger);
    std::fs::copy(&copy, &path).unwrap();
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.check().unwrap();
    ledger.check_against(&[first]).unwrap();
    for again in 0..2 {
        let error = ledger.check_against(std::slice::from_ref(&second)).unwrap_err();
        assert!(matches!(error, Error::RolledBack { row: 3, .. }), "{error}");
        assert!(error.to_string().contains("older copy") && error.to_string().contains("second"), "{error}");
        ledger.charge(Charge { run_id: format!("other {again}"), ..gaussian(9.0) }).unwrap();
    }
}
