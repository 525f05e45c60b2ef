//! How far an edge or a record moves what leaves the vault where edges have weights, or carry messages both ways.

use progap_graph::Graph;
use progap_privacy::Unit;

use super::tests::{SIZES, aggregate, all_messages, asking, data, distance, of};
use super::*;
use crate::settings::{Bounding, Direction, MethodKind};

/// The same data with a weight for each edge, and without what a function drops.
fn weighted(keep: impl Fn(u32, u32) -> bool) -> Dataset {
    let mut parts = data().into_parts();
    let (mut sources, mut targets, mut weights) = (vec![], vec![], vec![]);
    for (source, target) in parts.graph.iter_edges().filter(|&(source, target)| keep(source, target)) {
        sources.push(source);
        targets.push(target);
        weights.push(((source * 7 + target * 13) % 101) as f32 / 100.0);
    }
    parts.graph = Graph::from_weighted_edges(300, &sources, &targets, &weights).expect("a graph");
    Dataset::new(parts).expect("a data set")
}

#[test]
fn an_edge_moves_one_row_by_its_weight_at_most() {
    let settings = Settings { batch_size: 50, ..Settings::of(MethodKind::ProgapLabels, Level::Edge) };
    let whole = weighted(|_, _| true);
    let edges: Vec<_> = whole.graph().iter_edges().zip(whole.graph().weights().expect("weights")).collect();
    for message in all_messages() {
        let with = aggregate(whole.clone(), &settings, message);
        for &((source, target), &weight) in edges.iter().step_by(997) {
            let without = aggregate(weighted(|s, t| (s, t) != (source, target)), &settings, message);
            let moved = distance(&with, &without);
            assert!(moved <= f64::from(weight) + 1e-6, "{moved} {weight}");
            assert!(moved > 0.9 * f64::from(weight) - 0.05, "{moved} {weight}");
        }
    }
}

#[test]
fn a_record_moves_an_aggregate_by_its_bound_at_most_whatever_the_weights() {
    for (bounding, max_degree) in [(Bounding::Weight, 9), (Bounding::Cap, 4), (Bounding::Sample, 299)] {
        let settings = Settings {
            batch_size: 50,
            max_degree,
            bounding,
            ..Settings::of(MethodKind::ProgapLabels, Level::Node)
        };
        for message in all_messages() {
            let without = aggregate(weighted(|source, _| source != 7), &settings, message);
            let moved = distance(&aggregate(weighted(|_, _| true), &settings, message), &without);
            let bound = f64::from(max_degree).sqrt();
            assert!(moved > 1.0 && moved <= bound + 1e-5, "{bounding:?}: {moved}");
            // Every sender uses what it has, but for the rounding of its strength.
            assert!(bounding != Bounding::Weight || moved > 0.9 * bound, "{moved} of {bound}");
        }
    }
}

/// With a receiver less all of a sender's messages change, not the one to that receiver alone: with two receivers by
/// more than that one.
#[test]
fn an_edge_of_a_record_moves_an_aggregate_by_root_two_of_its_bound_at_most() {
    let receivers: Vec<u32> = data().graph().transpose().in_neighbours(7).to_vec();
    for (bounding, max_degree) in [(Bounding::Weight, 9), (Bounding::Cap, 4)] {
        let settings = Settings {
            batch_size: 50,
            max_degree,
            bounding,
            ..Settings::of(MethodKind::ProgapLabels, Level::Node)
        };
        let bound = f64::from(max_degree).sqrt();
        for (listed, message) in
            [1, 2, 5, receivers.len()].into_iter().zip(all_messages().into_iter().cycle())
        {
            let sums = |listed: usize| {
                let mut parts = data().into_parts();
                let kept = |source, target| source != 7 || receivers[..listed].contains(&target);
                let edges = parts.graph.iter_edges().filter(|&(source, target)| kept(source, target));
                let (sources, targets): (Vec<u32>, Vec<u32>) = edges.unzip();
                parts.graph = Graph::from_edges(300, &sources, &targets).expect("a graph");
                aggregate(Dataset::new(parts).expect("a data set"), &settings, message)
            };
            let moved = distance(&sums(listed), &sums(listed - 1));
            assert!(moved <= 2f64.sqrt() * bound, "{bounding:?} {listed}: {moved}");
            let own = bound / (listed as f64).sqrt();
            assert!(bounding == Bounding::Cap || listed != 2 || moved > 1.05 * own, "{moved} {own}");
        }
    }
}

#[test]
fn methods_without_weights_say_so() {
    for method in [MethodKind::Lpgnet, MethodKind::Sage, MethodKind::EdgeRand, MethodKind::DpGnn] {
        let level = crate::method::catalogue::entry(method).levels[0];
        let settings = Settings::of(method, level);
        let nothing = Plan::without_noise();
        let refused = Vault::open(weighted(|_, _| true), &settings, nothing, Randomness::from_seed(3)).err();
        let refused = refused.unwrap_or_else(|| panic!("{method} takes weights")).to_string();
        assert!(refused.contains("leave the weights out"), "{refused}");
    }
}

/// Messages against the edges: of a pair (a, b) the row of a moves by what b says, and no other row.
#[test]
fn an_edge_moves_the_row_of_its_source_by_one_where_messages_go_back() {
    let settings =
        Settings { direction: Direction::Both, ..Settings::of(MethodKind::ProgapViews, Level::Edge) };
    let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
    let values: Vec<f32> = (0..300 * 4).map(|at| if at % 4 == at / 4 % 4 { 3.0 } else { 0.0 }).collect();
    let make = of(&values, 4);
    let sums = |dataset: Dataset, back: bool| {
        let mut vault =
            Vault::open(dataset, &settings, plan.clone(), Randomness::from_seed(3)).expect("a vault");
        let message = Message::Made { maker: Maker(&make), width: 4, back };
        vault.ask(asking("query", message)).expect("an aggregate")
    };
    let one_less = |(source, target): (u32, u32)| {
        let mut parts = data().into_parts();
        let edges = parts.graph.iter_edges().filter(|&edge| edge != (source, target));
        let (sources, targets): (Vec<u32>, Vec<u32>) = edges.unzip();
        parts.graph = Graph::from_edges(300, &sources, &targets).expect("a graph");
        Dataset::new(parts).expect("a data set")
    };
    let edge = data().graph().iter_edges().nth(1234).expect("an edge");
    for (back, row) in [(false, edge.1), (true, edge.0)] {
        let (with, without) = (sums(data(), back), sums(one_less(edge), back));
        let own = row as usize * 4..row as usize * 4 + 4;
        let moved = distance(&with[own.clone()], &without[own]);
        assert!(moved > 0.99 && moved <= 1.0 + 1e-6, "{back}: {moved}");
        assert!((distance(&with, &without) - moved).abs() < 1e-6, "no other row moves");
    }
    // One edge is in both queries of a stage: the plan asks twice as often, with more noise.
    let once =
        Plan::new(&Settings::of(MethodKind::ProgapViews, Level::Edge).checked().expect("settings"), SIZES);
    let once = once.expect("a plan");
    assert_eq!(plan.queries.count("aggregation"), 2 * once.queries.count("aggregation"));
    let ratio = plan.aggregate_multiplier / once.aggregate_multiplier;
    assert!((ratio - 2f64.sqrt()).abs() < 1e-3, "{ratio}");
    // Nobody goes back who did not pay for it, and records at node level are lists of receivers.
    let one_way = Settings::of(MethodKind::ProgapViews, Level::Edge);
    let mut vault = Vault::open(data(), &one_way, once, Randomness::from_seed(3)).expect("a vault");
    let back = Message::Made { maker: Maker(&make), width: 4, back: true };
    assert!(vault.ask(asking("query", back)).is_err());
    let node = Settings { direction: Direction::Both, ..Settings::of(MethodKind::ProgapLabels, Level::Node) };
    let refused = Vault::open(data(), &node, Plan::without_noise(), Randomness::from_seed(3));
    assert!(node.checked().is_err() && refused.is_err());
}

/// Turning all edges round is the same as turned data.
#[test]
fn out_is_in_of_the_graph_turned_round() {
    for level in [Level::Edge, Level::Node] {
        let settings = Settings { batch_size: 50, ..Settings::of(MethodKind::ProgapLabels, level) };
        let mut parts = weighted(|_, _| true).into_parts();
        parts.graph = parts.graph.transpose();
        let turned = aggregate(Dataset::new(parts).expect("a data set"), &settings, all_messages()[1]);
        let out = Settings { direction: Direction::Out, ..settings };
        assert_eq!(aggregate(weighted(|_, _| true), &out, all_messages()[1]), turned, "{level}");
    }
}

/// The sums of messages of norm one where both messages of an edge share its influence: as they are computed at once,
/// and as they pass by.
fn paired(dataset: Dataset, steps: impl Fn(usize) -> f64) -> Vec<f32> {
    let settings = Settings {
        undirected: true,
        known_weight: 0.25,
        ..Settings::of(MethodKind::ProgapViews, Level::Edge)
    };
    let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
    assert_eq!(plan.sensitivity, 1.0);
    let values: Vec<f32> = (0..300 * 4).map(|at| if at % 4 == at / 4 % 4 { 3.0 } else { 0.0 }).collect();
    let (make, none) = (of(&values, 4), Aggregates::new());
    let weights = ReceiverWeights::nearest((0..300).map(steps));
    let open =
        || Vault::open(dataset.clone(), &settings, plan.clone(), Randomness::from_seed(3)).expect("a vault");
    let question = || PairedAggregation {
        label: "query".into(),
        message: Message::Made { maker: Maker(&make), width: 4, back: false },
        aggregates: &none,
        weights: &weights,
    };
    let mut passed = vec![];
    let mut take = |rows: &mut [f32]| {
        passed.extend_from_slice(rows);
        Ok(())
    };
    open().ask(Streamed { question: question(), take: &mut take }).expect("an aggregate");
    let at_once = open().ask(question()).expect("an aggregate");
    assert!(at_once == passed, "the same bits, however they are computed");
    at_once
}

/// With both weights one an undirected edge would move the sums by the root of two: here by one, whoever is at its
/// ends, and one direction by its share.
#[test]
fn an_undirected_edge_moves_sums_by_one_where_its_messages_share_it() {
    let steps = |node: usize| if node.is_multiple_of(3) { 0.25 } else { 1.0 };
    let with = paired(data(), steps);
    let edges: Vec<(u32, u32)> =
        data().graph().iter_edges().filter(|(source, target)| source < target).collect();
    for &(one, other) in edges.iter().step_by(211) {
        let less = |keep: &dyn Fn(u32, u32) -> bool| {
            let mut parts = data().into_parts();
            let edges = parts.graph.iter_edges().filter(|&(source, target)| keep(source, target));
            let (sources, targets): (Vec<u32>, Vec<u32>) = edges.unzip();
            parts.graph = Graph::from_edges(300, &sources, &targets).expect("a graph");
            paired(Dataset::new(parts).expect("a data set"), steps)
        };
        let without = less(&|s, t| (s, t) != (one, other) && (t, s) != (one, other));
        let moved = distance(&with, &without);
        assert!(moved > 0.98 && moved <= 1.0 + 1e-6, "{moved}");
        let directed = distance(&with, &less(&|s, t| (s, t) != (one, other)));
        let (sender, receiver) = (steps(one as usize), steps(other as usize));
        let share = receiver / (receiver * receiver + sender * sender).sqrt();
        assert!((directed - share).abs() < 0.02, "{directed} {share}");
    }
}

/// At the same epsilon there is less noise by a root of two than where both messages are whole, and less than a claim
/// about one direction asks for is never charged.
#[test]
fn shared_edges_are_charged_once() {
    let whole = Settings { undirected: true, ..Settings::of(MethodKind::ProgapViews, Level::Edge) };
    let shared = Settings { known_weight: 0.25, ..whole.clone() };
    let plan =
        |settings: &Settings| Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
    let noise = |settings: &Settings| plan(settings).aggregate_multiplier * plan(settings).sensitivity;
    assert!((noise(&whole) / noise(&shared) - 2f64.sqrt()).abs() < 1e-6);
    let mu = |unit: Unit| {
        let event =
            crate::units::in_unit(&plan(&shared).queries, &shared, unit).expect("queries").expect("a rule");
        progap_privacy::accountant::GdpAccountant::mu(&event).expect("Gaussians alone") * noise(&shared)
    };
    let sums = (plan(&shared).queries.count(AGGREGATION) as f64).sqrt();
    assert!((mu(Unit::EdgeUndirected) / sums - 1.0).abs() < 1e-9);
    assert!((mu(Unit::Edge) / sums - (16.0f64 / 17.0).sqrt()).abs() < 1e-9);
    // Whoever did not plan for it is refused, and so is who planned for it and asks for whole messages.
    let ask = |settings: &Settings| {
        let (none, weights) = (Aggregates::new(), ReceiverWeights::nearest([1.0; 300]));
        let mut vault =
            Vault::open(data(), settings, plan(settings), Randomness::from_seed(3)).expect("a vault");
        let message = Message::Input(0);
        vault
            .ask(PairedAggregation { label: "query".into(), message, aggregates: &none, weights: &weights })
            .is_ok()
    };
    assert!(!ask(&whole));
    let directed = Settings { undirected: false, known_weight: 0.25, ..whole.clone() };
    assert!(!directed.weighs_pairs());
    let mut vault = Vault::open(data(), &shared, plan(&shared), Randomness::from_seed(3)).expect("a vault");
    assert!(vault.ask(asking("query", Message::Input(0))).is_err(), "whole messages cost a root of two more");
}
