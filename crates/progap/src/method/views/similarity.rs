//! How similar the classes of neighbours are, as the first noisy sums tell.
//!
//! ```text
//! similarity = |mean over senders of <their label's code, the receiver's> - by chance| / (1 - by chance), plus two standard errors of the noise
//! ```

use super::Splits;
use super::features::Features;
use super::messages::{CONSTANT, code, content};
use crate::Result;
use crate::rows::Rows;
use crate::vault::Aggregate;
use crate::views::SumShape;

/// The largest similarity that some sums tell of; none where none of them can tell. `share` is the length that labels
/// have in a message.
pub(super) fn largest(
    aggregates: &[Aggregate],
    sum: SumShape,
    share: f32,
    rows: &Rows,
    (splits, features): (&Splits, &Features),
    noise: f64,
) -> Result<Option<f64>> {
    let (classes, train) = (rows.classes(), splits.train.len() as f64);
    let known = features.known(rows, &splits.train)?;
    let labels = Splits::labels(rows, &splits.train);
    // How true messages are: labels are, the others as far as the features know.
    let calibration: f64 =
        known.chunks_exact(classes).zip(&labels).map(|(row, &label)| message_calibration(row, label)).sum();
    let labelled = splits.train_nodes as f64 / rows.labels().len() as f64;
    let truth = labelled + (1.0 - labelled) * calibration / train.max(1.0);
    // Otherwise the mean of so many nodes may be chance, and what is divided by it anything.
    if truth < 2.0 / train.max(1.0).sqrt() {
        return Ok(None);
    }
    let of = |sums: &Aggregate| {
        let mut stats = NeighbourStats::default();
        for (&node, &label) in splits.train.iter().zip(&labels) {
            let row = &sums.values[node as usize * sum.width()..][..=classes];
            stats.add(row, share, label);
        }
        stats.similarity(truth, train, &splits.priors(rows), noise / f64::from(share))
    };
    Ok(aggregates.iter().map(of).reduce(f64::max))
}

/// How far what is said of a node, in logarithms of probabilities, points to its label.
fn message_calibration(known: &[f32], label: u32) -> f64 {
    let mut said: Vec<f32> = known.iter().map(|value| value.exp()).collect();
    code(&mut said);
    product_with_code(&said, label)
}

/// The product of a row with the code of a label.
fn product_with_code(row: &[f32], label: u32) -> f64 {
    let mut own = vec![0f32; row.len()];
    own[label as usize] = 1.0;
    code(&mut own);
    row.iter().zip(&own).map(|(a, b)| f64::from(a * b)).sum()
}

/// Totals of the messages that nodes with a label received from their neighbours.
#[derive(Default)]
struct NeighbourStats {
    senders: f64,
    agree: f64,
}

impl NeighbourStats {
    /// The sums that came to a node with this label.
    fn add(&mut self, row: &[f32], share: f32, label: u32) {
        let (said, constant) = row.split_at(row.len() - 1);
        self.senders += f64::from(constant[0] / CONSTANT / share);
        self.agree += product_with_code(said, label) / f64::from(content() * share);
    }

    /// How similar the classes of neighbours are at most: 0 if edges are drawn without regard to class, 1 if all
    /// neighbours are of one class; two standard errors of the noise are added.
    fn similarity(&self, truth: f64, nodes: f64, priors: &[f64], noise: f64) -> f64 {
        let (senders, classes) = (self.senders.max(1.0), priors.len() as f64);
        let same: f64 = priors.iter().map(|prior| prior * prior).sum();
        let by_chance = ((classes * same - 1.0) / (classes - 1.0).max(1e-9)).min(0.999);
        let similarity = (self.agree / (truth * senders) - by_chance) / (1.0 - by_chance);
        let error = noise * nodes.sqrt() / (f64::from(content()) * truth * senders * (1.0 - by_chance));
        (similarity.abs() + 2.0 * error).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of sums of messages that say what they know of labels; nodes of two classes have ten neighbours each, of
    /// whom so many are alike.
    fn received(alike: f32) -> NeighbourStats {
        let mut stats = NeighbourStats::default();
        for node in 0..100u32 {
            let label = node % 2;
            let mut row: Vec<f32> =
                (0..2).map(|class| if class == label { 5.0 } else { -5.0 } * alike).collect();
            row.iter_mut().for_each(|value| *value *= std::f32::consts::SQRT_2 * content());
            row.push(10.0 * CONSTANT);
            stats.add(&row, 1.0, label);
        }
        stats
    }

    #[test]
    fn how_similar_neighbours_are_is_said_from_zero_to_one() {
        let of = |share: f32, noise: f64| received(share).similarity(1.0, 100.0, &[0.5, 0.5], noise);
        assert!(of(0.0, 0.0).abs() < 1e-6 && (of(0.4, 0.0) - 0.4).abs() < 1e-5, "{}", of(0.4, 0.0));
        assert!((of(-0.4, 0.0) - 0.4).abs() < 1e-5, "neighbours who differ tell as much");
        assert!(of(0.4, 1.0) > 0.4 && of(1.0, 5.0) == 1.0 && of(0.1, 1e6) == 1.0);
    }
}
