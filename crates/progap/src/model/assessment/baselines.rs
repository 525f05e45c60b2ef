//! Baselines that a model must beat: answers without a model, and a simple model without the graph.

use progap_graph::{Dataset, Part, Preparation};
use progap_nn::{Boosting, Design, Evidence, Inputs, Table, Task, cross_fitted};

use super::{Assessment, Metric, Scores};
use crate::Result;
use crate::method::is_table;
use crate::method::objective::row_weights;
use crate::rows::Rows;
use crate::settings::{ClassWeights, Settings};
use crate::vault::balanced_weights;

/// Entries of training rows times classes beyond which no logistic regression is fitted: it would take longer than a
/// model.
const MAX_WORK: usize = 50_000_000;
/// The most training nodes of the fit, from all over the list: more of them tell a linear model hardly more.
const MAX_NODES: usize = 65_536;
/// The most entries of a table that trees are grown on, times the classes.
const MAX_TREE_ENTRIES: usize = 1 << 18;
/// The most steps of the fit.
const STEPS: usize = 100;

/// Baselines on the test nodes. They are made of labels without any protection: where labels are private, **for the
/// data owner alone**.
#[derive(Debug, Clone, PartialEq)]
pub struct Baselines {
    /// The classes' shares of the training nodes as the answer for every node.
    pub majority: Scores,
    /// Multinomial logistic regression on the features of 65,536 training nodes at most; absent on data that is too
    /// large for it.
    pub logistic_regression: Option<Scores>,
    /// Boosted trees on the features; absent where there are more than 128 columns or 16 classes, or too few nodes for
    /// any tree.
    pub boosted_trees: Option<Scores>,
}

impl Baselines {
    /// The baselines of a run with these settings; nothing where there are no test nodes, or none to train on.
    ///
    /// # Errors
    /// Features that cannot be prepared.
    pub fn of(dataset: &Dataset, settings: &Settings) -> Result<Option<Baselines>> {
        let how = match settings.preparation() {
            // No noise: what is said here is for the owner.
            Preparation::Declared => Preparation::Standardise,
            how => how,
        };
        let dataset = dataset.clone().prepared(how)?;
        let rows = Rows::of_nodes(&dataset)?;
        let (train, test) = (rows.nodes(Part::Train), rows.nodes(Part::Test));
        let labels =
            |nodes: &[u32]| -> Vec<u32> { nodes.iter().map(|&node| rows.labels()[node as usize]).collect() };
        let (classes, truth, known) = (rows.classes(), labels(&test), labels(&train));
        if test.is_empty() || train.is_empty() {
            return Ok(None);
        }
        let mut shares = vec![0f32; classes];
        known.iter().for_each(|&label| shares[label as usize] += 1.0 / train.len() as f32);
        let scores =
            |probabilities: &[f32]| Assessment::of_probabilities(&truth, probabilities, classes).scores();
        let Some(majority) = scores(&shares.repeat(test.len())) else { return Ok(None) };
        let inputs = rows.own()?;
        let entries = dataset.features().nonzeros() / dataset.nodes().max(1) * train.len();
        let mut logistic_regression = None;
        if entries.saturating_mul(classes) <= MAX_WORK {
            let train: Vec<u32> = train.iter().copied().step_by(train.len().div_ceil(MAX_NODES)).collect();
            let known = labels(&train);
            let weights = match settings.class_weights {
                ClassWeights::Even => vec![],
                ClassWeights::Balanced => row_weights(&known, &balanced_weights(&known, classes)),
            };
            let task = Task {
                evidence: Evidence::Labels(&known),
                classes,
                row_weights: &weights,
                hidden: 0,
                // As strong as scikit-learn's default, C = 1.
                decay: 1.0 / train.len() as f64,
                towards: &[],
                iterations: STEPS,
                tolerance: 1e-4,
                seed: 0,
            };
            let (model, _) = Design::new(&inputs, &train)?.fit(&task, None)?;
            let mut logits = model.logits(&inputs, &test)?;
            logits.chunks_exact_mut(classes).for_each(softmax);
            logistic_regression = scores(&logits);
        }
        let boosted = boosted(&inputs, (&train, &known), &test, &shares)?;
        let boosted_trees = boosted.and_then(|logits| scores(&logits));
        Ok(Some(Baselines { majority, logistic_regression, boosted_trees }))
    }

    /// The baselines that a model's scores are no better than, by a metric, each with its own score.
    pub fn not_beaten(&self, scores: &Scores, metric: Metric) -> Vec<(&'static str, f64)> {
        let own = metric.oriented(scores.get(metric));
        let logistic = self.logistic_regression.as_ref().map(|scores| ("logistic regression", scores));
        let boosted = self.boosted_trees.as_ref().map(|scores| ("boosted trees on the features", scores));
        let all = std::iter::once(("the most frequent class", &self.majority)).chain(logistic).chain(boosted);
        all.map(|(name, scores)| (name, scores.get(metric)))
            .filter(|(_, score)| own <= metric.oriented(*score))
            .collect()
    }
}

/// What boosted trees on the features alone say of the test nodes, as probabilities; nothing where none are tried.
fn boosted(
    inputs: &Inputs<'_>,
    (train, known): (&[u32], &[u32]),
    test: &[u32],
    shares: &[f32],
) -> Result<Option<Vec<f32>>> {
    let (columns, classes) = (inputs.as_slice()[0].columns(), shares.len());
    if !is_table(columns, classes) {
        return Ok(None);
    }
    let most = (MAX_TREE_ENTRIES / columns.max(1) / if classes == 2 { 1 } else { classes }).max(1);
    let step = train.len().div_ceil(most);
    let chosen = |list: &[u32]| -> Vec<u32> { list.iter().copied().step_by(step).collect() };
    let (train, known) = (chosen(train), chosen(known));
    let start: Vec<f32> = shares.iter().map(|share| share.max(1e-6).ln()).collect();
    let table = Table::new(&inputs.dense_rows(&train)?, columns, classes);
    let (labels, parts) = ((&known[..], classes), 5);
    let found = cross_fitted(&table, labels, &start.repeat(train.len()), parts, &Boosting::default())?;
    let Some(found) = found else { return Ok(None) };
    let mut logits = start.repeat(test.len());
    found.trees.add_logits(inputs, test, &mut logits)?;
    logits.chunks_exact_mut(classes).for_each(softmax);
    Ok(Some(logits))
}

/// Logits of a row to probabilities.
fn softmax(row: &mut [f32]) {
    let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.iter_mut().for_each(|value| *value = (*value - top).exp());
    let sum: f32 = row.iter().sum();
    row.iter_mut().for_each(|value| *value /= sum);
}
