//! How far a record moves addressed sums, sums of classes and tables of labels; and that their noise is what is
//! charged.

use progap_graph::{DatasetParts, Graph, Part, UNLABELLED};

use super::tests::{SIZES, data, distance};
use super::*;
use crate::settings::{FeatureLearning, MethodKind};

/// As far as a sum that is noisy by some hundreds is precise in 32 bits.
const ROUNDING: f64 = 2e-3;

fn settings() -> Settings {
    Settings {
        feature_learning: FeatureLearning::Table,
        max_degree: 9,
        depth: 2,
        ..Settings::of(MethodKind::ProgapViews, Level::Node)
    }
}

fn plan() -> Plan {
    Plan::new(&settings().checked().expect("settings"), SIZES).expect("a plan")
}

fn vault(dataset: Dataset, seed: u64) -> Vault {
    vault_with(plan(), dataset, seed)
}

fn vault_with(plan: Plan, dataset: Dataset, seed: u64) -> Vault {
    Vault::open(dataset, &settings(), plan, Randomness::from_seed(seed)).expect("a vault")
}

/// Weights of all sizes.
fn weights() -> ReceiverWeights {
    ReceiverWeights::nearest((0..300).map(|node| f64::from(node * 7 % 17) / 16.0))
}

/// The data without what a function drops of the edges and changes of the rows.
fn changed(keep: impl Fn(u32, u32) -> bool, rows: impl Fn(&mut DatasetParts)) -> Dataset {
    let mut parts = data().into_parts();
    let edges = parts.graph.iter_edges().filter(|&(source, target)| keep(source, target));
    let (sources, targets): (Vec<u32>, Vec<u32>) = edges.unzip();
    parts.graph = Graph::from_edges(300, &sources, &targets).expect("a graph");
    rows(&mut parts);
    Dataset::new(parts).expect("a data set")
}

/// Messages of length one that are the same in all worlds.
fn messages() -> Aggregates {
    let values: Vec<f32> = (0..300 * 4).map(|at| if at % 4 == at / 4 % 4 { 3.0 } else { 0.0 }).collect();
    vec![Aggregate { values: values.into(), width: 4 }]
}

fn asking<'a>(
    label: &str,
    aggregates: &'a Aggregates,
    weights: &'a ReceiverWeights,
) -> AddressedAggregation<'a> {
    AddressedAggregation { label: label.into(), message: Message::Input(1), aggregates, weights }
}

/// The sums, without the weights that stand behind each row of them.
fn addressed(dataset: Dataset, weights: &ReceiverWeights, seed: u64) -> Vec<f32> {
    let rows = vault(dataset, seed).ask(asking("query", &messages(), weights)).expect("an aggregate");
    for (node, row) in rows.chunks_exact(5).enumerate() {
        assert_eq!(row[4], weights.of(node));
    }
    rows.chunks_exact(5).flat_map(|row| &row[..4]).copied().collect()
}

/// All rows together move by the bound, whichever receivers and weights: with more than one step too
/// much in any place, and with strengths that forget the weights, this fails.
#[test]
fn a_record_moves_an_addressed_sum_by_its_bound_at_most() {
    for sender in [7, 20, 100, 213] {
        let moved = distance(
            &addressed(data(), &weights(), 3),
            &addressed(changed(|source, _| source != sender, |_| ()), &weights(), 3),
        );
        assert!(moved <= 3.0 + ROUNDING && moved > 2.8, "{sender}: {moved}");
    }
    // In each row as much as its weight says.
    let (with, without) = (
        addressed(data(), &weights(), 3),
        addressed(changed(|source, _| source != 7, |_| ()), &weights(), 3),
    );
    let receivers: Vec<u32> = data().graph().transpose().in_neighbours(7).to_vec();
    let strength: f64 = receivers.iter().map(|&node| f64::from(weights().of(node as usize)).powi(2)).sum();
    for node in 0..300usize {
        let moved = distance(&with[node * 4..][..4], &without[node * 4..][..4]);
        let weight = if receivers.contains(&(node as u32)) { f64::from(weights().of(node)) } else { 0.0 };
        assert!((moved - 3.0 * weight / strength.sqrt()).abs() < 0.02, "{node}: {moved}");
    }
}

/// The deviation of what is released around the exact sums is that of the plan's query, in rows of every weight.
#[test]
fn addressed_sums_have_the_noise_that_is_charged() {
    let plan = plan();
    let Some(Event::Gaussian { sigma, sensitivity }) = plan.queries.get(AGGREGATION).map(|q| q.event.clone())
    else {
        panic!("sums are planned");
    };
    assert_eq!(sensitivity, 3.0);
    let weights = weights();
    let exact = {
        let mut exact = vec![0f64; 300 * 4];
        let graph = data().graph().clone();
        let receivers = graph.transpose();
        for (source, target) in graph.iter_edges() {
            let strength: f64 = receivers
                .in_neighbours(source as usize)
                .iter()
                .map(|&node| f64::from(weights.of(node as usize)).powi(2))
                .sum();
            exact[target as usize * 4 + source as usize % 4] +=
                3.0 * f64::from(weights.of(target as usize)) / strength.sqrt();
        }
        exact
    };
    let squares: Vec<f64> = (0..20)
        .flat_map(|seed| {
            let noisy = addressed(data(), &weights, seed);
            noisy.iter().zip(&exact).map(|(a, b)| (f64::from(*a) - b).powi(2)).collect::<Vec<f64>>()
        })
        .collect();
    let deviation = |of: &dyn Fn(usize) -> bool| {
        let chosen: Vec<f64> = squares
            .iter()
            .enumerate()
            .filter(|(at, _)| of(at % 1200 / 4))
            .map(|(_, square)| *square)
            .collect();
        (chosen.iter().sum::<f64>() / chosen.len() as f64).sqrt()
    };
    let light = |node: usize| weights.of(node) < 0.3;
    for deviation in [deviation(&|_| true), deviation(&light), deviation(&|node| !light(node))] {
        assert!((deviation / sigma - 1.0).abs() < 0.06, "{deviation} {sigma}");
    }
    let (mut vault, messages) = (vault(data(), 1), messages());
    let missing = ReceiverWeights::nearest((0..299).map(|_| 1.0));
    vault.ask(asking("one", &messages, &missing)).expect_err("a weight is missing");
    vault.ask(asking("one", &messages, &weights)).expect("paid for");
    vault.ask(asking("one", &messages, &weights)).expect_err("the same noise twice");
    let mut vault = self::vault(data(), 1);
    for label in ["one", "two"] {
        vault.ask(asking(label, &messages, &weights)).expect("paid for");
    }
    vault.ask(asking("three", &messages, &weights)).expect_err("the plan pays for two");
}

/// The streamed form has the same bits.
#[test]
fn addressed_sums_in_pieces_are_the_same() {
    let mut rows = vec![];
    let mut take = |part: &mut [f32]| {
        rows.extend_from_slice(part);
        Ok(())
    };
    let (messages, weights) = (messages(), weights());
    let question = || asking("query", &messages, &weights);
    let mut streamed = vault(data(), 3);
    streamed.ask(Streamed { question: question(), take: &mut take }).expect("an aggregate");
    assert_eq!(rows, vault(data(), 3).ask(question()).expect("an aggregate"));
    assert_eq!(streamed.asked().count(AGGREGATION), 1);
}

fn training_node() -> usize {
    data().split().expect("a split").nodes(Part::Train).nth(5).expect("a training node")
}

fn without_label(parts: &mut DatasetParts) {
    let mut labels = parts.labels.to_vec();
    labels[training_node()] = UNLABELLED;
    parts.labels = Buffer::from(labels);
}

#[test]
fn a_record_moves_class_sums_by_one_at_most_however_long_its_row_is() {
    let long = |factor: f32, label: bool| {
        changed(
            |_, _| true,
            |parts| {
                let columns = parts.features.columns();
                let mut values = parts.features.to_dense(300);
                let row = &mut values[training_node() * columns..][..columns];
                row.iter_mut().enumerate().for_each(|(at, value)| *value = factor * ((at % 7) as f32 - 3.0));
                parts.features = progap_graph::Features::dense(300, columns, values).expect("features");
                if !label {
                    without_label(parts);
                }
            },
        )
    };
    for factor in [1e-3, 1.0, 1e6] {
        let table = |label: bool| vault(long(factor, label), 3).ask(ClassSums).expect("sums");
        let (with, without) = (table(true), table(false));
        // Back to the vector of norm one that is charged.
        let content = (1.0 - 0.3f64 * 0.3).sqrt();
        let columns = with.width - 1;
        let square: f64 = with
            .sums
            .iter()
            .zip(&without.sums)
            .enumerate()
            .map(|(at, (a, b))| {
                let unit = if at % with.width == columns { 0.3 } else { content };
                (f64::from(a - b) * unit).powi(2)
            })
            .sum();
        assert!(square.sqrt() <= 1.0 + 2.0 * ROUNDING, "{factor}: {square}");
        assert!(factor < 0.1 || square.sqrt() > 0.95, "{factor}: {square}");
    }
}

fn rows(nodes: &[u32]) -> Result<Vec<f32>> {
    // Far longer than one: the vault cuts them down.
    Ok(nodes.iter().flat_map(|&node| [3.0 * (node % 5) as f32, -4.0, 2.0]).collect())
}

fn table_of_labels(label: &str) -> LabelTable<'static> {
    LabelTable { label: label.into(), width: 3, make: &rows }
}

fn labels(dataset: Dataset, seed: u64) -> Vec<f32> {
    vault(dataset, seed).ask(table_of_labels("label table 1")).expect("a table").0
}

#[test]
fn a_label_moves_a_table_by_its_row_at_most() {
    let moved = distance(&labels(data(), 3), &labels(changed(|_, _| true, without_label), 3));
    assert!(moved <= 1.0 + ROUNDING && moved > 0.98, "{moved}");
    // Features have no part in it, nor have edges.
    let other = changed(
        |source, _| source != 7,
        |parts| {
            let columns = parts.features.columns();
            parts.features =
                progap_graph::Features::dense(300, columns, vec![1.0; 300 * columns]).expect("features");
        },
    );
    assert_eq!(labels(other, 3), labels(data(), 3));
}

#[test]
fn tables_have_the_noise_that_is_charged() {
    let plan = plan();
    let sigma = |name: &str| match plan.queries.get(name).map(|query| query.event.clone()) {
        Some(Event::Gaussian { sigma, sensitivity: 1.0 }) => sigma,
        other => panic!("{name}: {other:?}"),
    };
    let deviation = |ask: &dyn Fn(u64) -> Vec<f32>| {
        let tables: Vec<Vec<f32>> = (0..60).map(ask).collect();
        let count = tables.len() as f64;
        let mean: Vec<f64> = (0..tables[0].len())
            .map(|at| tables.iter().map(|table| f64::from(table[at])).sum::<f64>() / count)
            .collect();
        let squares =
            tables.iter().flat_map(|table| table.iter().zip(&mean).map(|(a, b)| (f64::from(*a) - b).powi(2)));
        let values = (count - 1.0) * mean.len() as f64;
        (squares.sum::<f64>() / values).sqrt()
    };
    let found = deviation(&|seed| labels(data(), seed));
    assert!((found / sigma(LABEL_TABLE) - 1.0).abs() < 0.12, "{found}");
    let content = (1.0 - 0.3f64 * 0.3).sqrt();
    let of_features = |seed| {
        let sums = vault(data(), seed).ask(ClassSums).expect("sums");
        sums.sums
            .chunks_exact(sums.width)
            .flat_map(|row| row[..sums.width - 1].to_vec())
            .collect::<Vec<f32>>()
    };
    let found = deviation(&of_features) * content;
    assert!((found / sigma(CLASS_SUMS) - 1.0).abs() < 0.03, "{found}");
    // Both are planned as often as they are asked, and what they cost is missing elsewhere.
    assert_eq!((plan.queries.count(LABEL_TABLE), plan.queries.count(CLASS_SUMS)), (2, 1));
    let mut vault = vault(data(), 1);
    vault.ask(ClassSums).expect("once");
    vault.ask(ClassSums).expect_err("the same noise twice");
    let unplanned = Plan { queries: Queries::default(), ..plan.clone() };
    assert!(vault_with(unplanned.clone(), data(), 1).ask(table_of_labels("label table 1")).is_err());
    assert!(vault_with(unplanned, data(), 1).ask(ClassSums).is_err());
    let poor = Plan { noise_values: 5, ..plan };
    assert!(vault_with(poor, data(), 1).ask(table_of_labels("label table 2")).is_err());
}
