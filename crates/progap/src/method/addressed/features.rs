//! The features' model from one noisy table of class sums, shrunk by the known noise.

use crate::Result;
use crate::addressed::{Addressed, AddressedShape, FeatureModel};
use crate::vault::NoisyClassSums;

/// The variance of ratios between classes that is expected before anything is seen.
const PRIOR_VARIANCE: f64 = 0.5;
/// What counting adds to the variance of a ratio, for each node that is expected to have the feature.
const COUNTING: f64 = 0.05;
/// The smallest ratio, and the smallest share of a class.
const LEAST_RATIO: f64 = 0.05;
const LEAST_SHARE: f64 = 1e-4;

/// Of rich features: the variance of ratios is at least this, whatever is found; an entry of so many deviations of its
/// noise is believed by half however small they are elsewhere; and columns are taken to be no rarer than so many
/// deviations of theirs. On cora and citeseer worth 3 points at epsilon 8 and 6 at epsilon 2 over leaving out entries
/// below 2.5 deviations.
const LEAST_VARIANCE: f64 = 0.3;
const DEVIATIONS_OF_HALF: f64 = 2.828;
const DEVIATIONS_OF_COLUMNS: f64 = 2.0;

/// The model that the sums suggest: naive Bayes, or, of many columns, a linear discriminant with columns in units of
/// the root of their mean.
///
/// # Proof definition
/// A function of what left the vault: post-processing.
pub(super) fn model(sums: &NoisyClassSums, columns: usize, classes: usize) -> Result<FeatureModel> {
    let table = |class: usize, column: usize| f64::from(sums.sums[class * sums.width + column]);
    let counts: Vec<f64> = (0..classes).map(|class| table(class, columns).max(1.0)).collect();
    let total: f64 = counts.iter().sum();
    // The deviation of the noise of the mean of a column.
    let floor = sums.noise * (classes as f64).sqrt() / total + 1e-9;
    let means: Vec<f64> = (0..columns)
        .map(|column| (0..classes).map(|class| table(class, column)).sum::<f64>() / total)
        .collect();
    let mut weights = vec![0f32; columns * classes];
    let mut biases: Vec<f64> = counts.iter().map(|count| (count / total).max(LEAST_SHARE).ln()).collect();
    let rich = columns > AddressedShape::RICH;
    if rich {
        let belief = means.iter().filter(|mean| **mean > floor).sum::<f64>();
        let units: Vec<f64> = means.iter().map(|mean| mean.max(DEVIATIONS_OF_COLUMNS * floor)).collect();
        let more = |class: usize, column: usize| table(class, column) / counts[class] - means[column];
        let noise = |class: usize| (sums.noise / counts[class]).powi(2);
        // The variance of ratios as all entries tell it, each by its weight.
        let (mut found, mut weight) = (0.0, 1e-300);
        for (column, &unit) in units.iter().enumerate() {
            for class in 0..classes {
                let (square, noise) = (unit * unit, noise(class));
                found += square * (more(class, column).powi(2) - noise) / (noise * noise);
                weight += square * square / (noise * noise);
            }
        }
        let variance = (found / weight).max(LEAST_VARIANCE);
        for (column, (&mean, &unit)) in means.iter().zip(&units).enumerate() {
            for class in 0..classes {
                let (raw, noise) = (more(class, column), noise(class));
                let prior = variance * unit * unit;
                let single = 1.0 - 0.5 * DEVIATIONS_OF_HALF.powi(2) * noise / raw.powi(2).max(1e-300);
                let more = raw * (prior / (prior + noise)).max(single);
                weights[column * classes + class] = (belief * more / unit) as f32;
                biases[class] -= belief * (0.5 * more * more + more * mean) / unit;
            }
        }
    } else {
        for (column, &mean) in means.iter().enumerate() {
            let mean = mean.max(floor);
            let log = |class: usize| {
                let count = counts[class];
                let ratio = table(class, column) / count / mean - 1.0;
                let noise = (sums.noise / (count * mean)).powi(2) + COUNTING / (mean * count).max(1e-9);
                (1.0 + ratio * PRIOR_VARIANCE / (PRIOR_VARIANCE + noise)).max(LEAST_RATIO).ln()
            };
            let logs: Vec<f64> = (0..classes).map(log).collect();
            let centre = logs.iter().sum::<f64>() / classes as f64;
            for (class, log) in logs.iter().enumerate() {
                weights[column * classes + class] = (log - centre) as f32;
            }
        }
    }
    let centre = biases.iter().sum::<f64>() / classes as f64;
    let biases: Vec<f32> = biases.into_iter().map(|bias| (bias - centre) as f32).collect();
    let column_weights = if rich { vec![1.0; columns] } else { vec![] };
    Addressed::linear((columns, classes), &weights, &biases, &column_weights).map(FeatureModel::Linear)
}
