//! What nodes send. A message is a function of a public row and of sums that left the vault before, and of norm one at
//! most.
//!
//! ```text
//! labels     [sqrt(1 - k^2) u, k]     u = (p - 1/C) / |p - 1/C|, p the label of a training node, else what the latest model says; k = 0.2
//! structure  [s / unit, c] / norm     s the sum of labels that the node received before
//! features   [e, w z / r] / max(1, norm)     z the standardised columns, w how much each of them counted before
//! ```
//!
//! A sum of the constants is the number of senders. Where there is no noise labels and features are sent side by side,
//! each divided by the square root of two, in two hops: first those of the senders, then the means that these received.

use std::ops::Range;

use progap_nn::Inputs;

use super::Splits;
use super::candidates::is_table;
use crate::Result;
use crate::mixing::mixed;
use crate::rows::{Rows, normalise};
use crate::settings::Level;
use crate::views::SumShape;

/// The constant in every message of labels: its sum is the number of senders.
pub(super) const CONSTANT: f32 = 0.2;
/// The constant beside structure, by which a message keeps some of its length.
const STRUCTURE_CONSTANT: f32 = 0.3;
/// The constant beside features.
const FEATURE_CONSTANT: f32 = 0.1;

/// The hops in which features are sent where there is no noise.
const FEATURE_HOPS: usize = 2;
/// The widest message of features with noise and without.
const MAX_FEATURES: usize = 48;
const MAX_NOISY_FEATURES: usize = 32;
/// Steps of a column, `z > q` for these of its quantiles: their sums count the senders above, up to the largest.
const STEPS: [f64; 8] = [0.5, 0.9, 0.97, 0.75, 0.25, 0.99, 0.1, 0.6];
/// Standardised values are brought within this, so that a rare one does not take the whole length.
const MAX_DEVIATIONS: f32 = 3.0;
/// Under noise messages longer than this share of all are shortened: the others keep more of their length.
const KEPT_SHARE: f64 = 0.7;
const SEED: u64 = 0x7072_6f6a_6563_7473;

/// A message about each node's class, centred and of one length: the label of a training node, the probabilities of the
/// others.
pub(super) fn labels(known: &[f32], labels: &[u32], is_train: &[bool], classes: usize) -> Vec<f32> {
    let mut messages = Vec::with_capacity(labels.len() * (classes + 1));
    for (node, &train) in is_train.iter().enumerate() {
        let start = messages.len();
        match train {
            true => messages.extend((0..classes).map(|c| if c == labels[node] as usize { 1.0 } else { 0.0 })),
            false => messages.extend_from_slice(&known[node * classes..][..classes]),
        }
        code(&mut messages[start..]);
        messages[start..].iter_mut().for_each(|value| *value *= content());
        messages.push(CONSTANT);
    }
    messages
}

/// Whom each node knows: what came of the messages of labels before, divided by their unit; other columns of the sums
/// are left out.
pub(super) fn structure(before: &[f32], unit: f32, sum: SumShape) -> Vec<f32> {
    let constant = STRUCTURE_CONSTANT * (sum.classes as f32).sqrt();
    let mut messages = Vec::with_capacity(before.len());
    for row in before.chunks_exact(sum.width()) {
        let start = messages.len();
        messages.extend(row[..sum.classes].iter().map(|value| value / unit));
        messages.push(constant);
        normalise(&mut messages[start..]);
    }
    messages
}

/// The length of the part of a message of labels that is no constant.
pub(super) fn content() -> f32 {
    (1.0 - CONSTANT * CONSTANT).sqrt()
}

/// Probabilities less those that say nothing, divided by their length.
pub(super) fn code(row: &mut [f32]) {
    let uniform = 1.0 / row.len() as f32;
    row.iter_mut().for_each(|value| *value -= uniform);
    normalise(row);
}

/// The length that labels have in a message, beside features if there are some.
pub(super) fn labels_share(sum: SumShape) -> f32 {
    if sum.features > 0 { std::f32::consts::FRAC_1_SQRT_2 } else { 1.0 }
}

/// The columns of the features that are sent for the sum of that index; none where rows are no table of few columns.
pub(super) fn feature_width(level: Level, (columns, classes): (usize, usize), index: usize) -> usize {
    match level {
        _ if !is_table(columns, classes) || columns == 0 => 0,
        Level::None if index >= FEATURE_HOPS => 0,
        Level::None if columns * 2 <= MAX_FEATURES => columns * (1 + steps(columns)),
        Level::None => columns.min(MAX_FEATURES),
        Level::Edge | Level::Node => columns.min(MAX_NOISY_FEATURES),
    }
}

/// How many steps of each column are sent beside it where there is no noise.
fn steps(columns: usize) -> usize {
    (MAX_FEATURES / columns - 1).min(STEPS.len())
}

/// Labels and features in one message, of norm one together.
pub(super) fn side_by_side(labels: &[f32], features: &[f32], nodes: usize) -> Vec<f32> {
    let (first, second) = (labels.len() / nodes.max(1), features.len() / nodes.max(1));
    let mut messages = Vec::with_capacity(labels.len() + features.len());
    for (labels, features) in labels.chunks_exact(first).zip(features.chunks_exact(second)) {
        messages.extend(labels.iter().chain(features).map(|value| value * std::f32::consts::FRAC_1_SQRT_2));
    }
    messages
}

/// A public map from a row of features to what is sent of it, of norm one at most.
pub(super) struct FeatureMap {
    centre: Vec<f32>,
    deviation: Vec<f32>,
    /// Of each column the places of its steps.
    steps: Vec<Vec<f32>>,
    /// The signs with which more columns than can be sent are added up, or none.
    projected: bool,
    width: usize,
    /// How much each of what is sent counts.
    weights: Vec<f32>,
    radius: f32,
}

impl FeatureMap {
    /// Of public rows; `weights` is empty where nothing is known of what counts.
    pub fn of(rows: &Rows, splits: &Splits, level: Level, weights: Vec<f32>) -> Result<FeatureMap> {
        const LOOKED_AT: usize = 1 << 14;
        let own = rows.own()?;
        let columns = own.as_slice()[0].columns();
        let nodes = &splits.sample[..splits.sample.len().min(LOOKED_AT)];
        let dense = own.dense_rows(nodes)?;
        let width = feature_width(level, (columns, rows.classes()), 0);
        let count = nodes.len().max(1) as f64;
        let column = |at: usize| dense.iter().skip(at).step_by(columns).map(|&value| f64::from(value));
        let centre: Vec<f64> = (0..columns).map(|at| column(at).sum::<f64>() / count).collect();
        let square = |at: usize| column(at).map(|value| (value - centre[at]).powi(2)).sum::<f64>() / count;
        let deviation: Vec<f32> = (0..columns).map(|at| square(at).sqrt() as f32).collect();
        let with_steps = level == Level::None && width > columns;
        let steps_of = |at: usize| -> Vec<f32> {
            let mut sorted: Vec<f64> = column(at).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            let last = sorted.len().saturating_sub(1) as f64;
            STEPS[..steps(columns)].iter().map(|share| sorted[(share * last) as usize] as f32).collect()
        };
        let mut map = FeatureMap {
            steps: if with_steps { (0..columns).map(steps_of).collect() } else { vec![] },
            centre: centre.into_iter().map(|value| value as f32).collect(),
            deviation,
            projected: width < columns,
            width,
            weights,
            radius: 1.0,
        };
        let sent = map.expanded(&dense);
        let mut lengths: Vec<f32> = sent.chunks_exact(width).map(length).collect();
        lengths.sort_unstable_by(f32::total_cmp);
        let share = if level == Level::None { 1.0 } else { KEPT_SHARE };
        let kept = lengths.get((share * lengths.len().saturating_sub(1) as f64) as usize).copied();
        map.radius = kept.filter(|&length| length > 0.0).unwrap_or(1.0);
        Ok(map)
    }

    /// What is sent of some nodes, without a constant, of norm one at most.
    pub fn features(&self, own: &Inputs<'_>, nodes: Range<usize>) -> Result<Vec<f32>> {
        let block: Vec<u32> = (nodes.start as u32..nodes.end as u32).collect();
        let mut sent = self.expanded(&own.dense_rows(&block)?);
        sent.iter_mut().for_each(|value| *value /= self.radius);
        sent.chunks_exact_mut(self.width).filter(|row| length(row) > 1.0).for_each(normalise);
        Ok(sent)
    }

    /// The same with a constant in front of each, of norm one at most.
    pub fn messages(&self, own: &Inputs<'_>, nodes: Range<usize>) -> Result<Vec<f32>> {
        let features = self.features(own, nodes)?;
        let share = (1.0 - FEATURE_CONSTANT * FEATURE_CONSTANT).sqrt();
        let mut messages = Vec::with_capacity(features.len() / self.width * (self.width + 1));
        for row in features.chunks_exact(self.width) {
            messages.push(FEATURE_CONSTANT);
            messages.extend(row.iter().map(|value| value * share));
        }
        Ok(messages)
    }

    fn expanded(&self, rows: &[f32]) -> Vec<f32> {
        let columns = self.centre.len();
        let mut out = Vec::with_capacity(rows.len() / columns.max(1) * self.width);
        for row in rows.chunks_exact(columns) {
            let start = out.len();
            let standard = |at: usize| {
                let deviation = self.deviation[at];
                let value = if deviation > 0.0 { (row[at] - self.centre[at]) / deviation } else { 0.0 };
                value.clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)
            };
            match self.projected {
                false => out.extend((0..columns).map(standard)),
                true => {
                    let standard: Vec<f32> = (0..columns).map(standard).collect();
                    out.extend((0..self.width).map(|to| {
                        let signed = |(from, &value): (usize, &f32)| {
                            let bit = mixed(SEED ^ mixed((from * self.width + to) as u64)) & 1;
                            if bit == 1 { value } else { -value }
                        };
                        standard.iter().enumerate().map(signed).sum::<f32>() / (columns as f32).sqrt()
                    }));
                }
            }
            for (steps, &value) in self.steps.iter().zip(row) {
                out.extend(steps.iter().map(|&step| if value > step { 1.0 } else { 0.0 }));
            }
            out[start..].iter_mut().zip(&self.weights).for_each(|(value, weight)| *value *= weight);
        }
        out
    }
}

/// The means of the features that nodes received, divided by the largest norm among these.
pub(super) fn received(sums: &[f32], shape: SumShape) -> Vec<f32> {
    let mut means: Vec<f32> = Vec::with_capacity(sums.len() / shape.width() * shape.features);
    for row in sums.chunks_exact(shape.width()) {
        let senders = row[shape.classes];
        let factor = if senders > 0.0 { 1.0 / senders } else { 0.0 };
        means.extend(row[shape.classes + 1..].iter().map(|value| value * factor));
    }
    means
}

/// The largest norm of rows.
pub(super) fn largest_norm(values: &[f32], width: usize) -> f32 {
    values.chunks_exact(width.max(1)).map(length).fold(0.0, f32::max)
}

pub(super) fn length(row: &[f32]) -> f32 {
    row.iter().map(|value| value * value).sum::<f32>().sqrt()
}
