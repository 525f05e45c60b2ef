//! How good predictions are: one number by any of several metrics, class by class, and whether probabilities can be
//! believed.
//!
//! Metrics are as scikit-learn defines them: `scripts/oracle/metrics.py` has its figures for the tests.

mod baselines;
mod compared;
mod metric;
mod ranking;

use rayon::prelude::*;

pub use baselines::Baselines;
pub use compared::{Compared, Intervals};
pub use metric::{Metric, Scores};
use ranking::Ranked;
pub use ranking::{Curve, Flagged};

/// Predictions beside the truth.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// The number of predictions.
    pub nodes: usize,
    /// The share that is right.
    pub accuracy: f64,
    /// For each true class, how often each class was predicted.
    pub confusion: Vec<Vec<u64>>,
    /// Class by class.
    pub classes: Vec<ClassScore>,
    /// Predictions by how sure they are; kinds without any prediction are left out.
    pub bins: Vec<CalibrationBin>,
    /// The expected calibration error: the mean distance between how sure and how often right, over predictions.
    pub calibration_error: f64,
    /// The mean of `-ln p` of the true class, with `p` at least the smallest difference from one that it can have.
    pub log_loss: f64,
}

/// How well one class is predicted. A share of nothing is absent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassScore {
    /// The number of nodes of the class.
    pub support: u64,
    /// The share of the predictions of the class that are right.
    pub precision: Option<f64>,
    /// The share of the class that is found.
    pub recall: Option<f64>,
    /// Their harmonic mean: 2 TP / (2 TP + FP + FN).
    pub f1: Option<f64>,
    /// The probability that a node of the class is given a larger probability of it than another node; absent where
    /// there are no two such nodes.
    pub auroc: Option<f64>,
    /// The area under the curve of precision over recall, in steps; absent where the area above is.
    pub average_precision: Option<f64>,
}

/// Predictions that are about equally sure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CalibrationBin {
    /// The least probability of the predicted class (not included, but for the first).
    pub from: f64,
    /// The largest.
    pub to: f64,
    /// The number of predictions.
    pub count: usize,
    /// The mean probability of the predicted class.
    pub confidence: f64,
    /// The share that is right.
    pub accuracy: f64,
}

/// Into how many kinds predictions are sorted by how sure they are.
const BINS: usize = 10;

impl Assessment {
    /// Compares predictions, given as a row of probabilities for each node, with the true classes. Every true class
    /// must be one of `classes`.
    pub fn new(truth: &[u32], predicted: &[u32], probabilities: &[f32], classes: usize) -> Assessment {
        let mut confusion = vec![vec![0u64; classes]; classes];
        let (mut sums, mut log_loss) = ([(0usize, 0f64, 0usize); BINS], 0.0);
        let rows = probabilities.chunks_exact(classes.max(1));
        for ((&truth, &predicted), row) in truth.iter().zip(predicted).zip(rows) {
            confusion[truth as usize][predicted as usize] += 1;
            let confidence = f64::from(row[predicted as usize]).clamp(0.0, 1.0);
            let bin = &mut sums[((confidence * BINS as f64).ceil() as usize).clamp(1, BINS) - 1];
            *bin = (bin.0 + 1, bin.1 + confidence, bin.2 + usize::from(truth == predicted));
            log_loss -= f64::from(row[truth as usize]).clamp(f64::from(f32::EPSILON), 1.0).ln();
        }
        let nodes = truth.len();
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let score = |class: usize| {
            let one_score = probabilities.chunks_exact(classes.max(1)).map(|row| row[class]);
            let members = truth.iter().map(|&truth| truth as usize == class);
            let ranked = Ranked::new(one_score.zip(members)).ranking(|_| 1);
            let right = confusion[class][class];
            let support: u64 = confusion[class].iter().sum();
            let predicted: u64 = confusion.iter().map(|row| row[class]).sum();
            ClassScore {
                support,
                precision: share(right, predicted),
                recall: share(right, support),
                f1: share(2 * right, predicted + support),
                auroc: ranked.map(|ranked| ranked.auroc),
                average_precision: ranked.map(|ranked| ranked.average_precision),
            }
        };
        let bins: Vec<CalibrationBin> = sums
            .iter()
            .enumerate()
            .filter(|(_, sum)| sum.0 > 0)
            .map(|(bin, &(count, confidence, right))| CalibrationBin {
                from: bin as f64 / BINS as f64,
                to: (bin + 1) as f64 / BINS as f64,
                count,
                confidence: confidence / count as f64,
                accuracy: right as f64 / count as f64,
            })
            .collect();
        let distance = |bin: &CalibrationBin| bin.count as f64 * (bin.confidence - bin.accuracy).abs();
        let right: u64 = (0..classes).map(|class| confusion[class][class]).sum();
        Assessment {
            nodes,
            accuracy: right as f64 / nodes.max(1) as f64,
            classes: (0..classes).into_par_iter().map(score).collect(),
            log_loss: log_loss / nodes.max(1) as f64,
            calibration_error: bins.iter().map(distance).sum::<f64>() / nodes.max(1) as f64,
            confusion,
            bins,
        }
    }

    /// As [`Assessment::new`], where the most probable class is predicted, of equals the first.
    pub fn of_probabilities(truth: &[u32], probabilities: &[f32], classes: usize) -> Assessment {
        let predicted: Vec<u32> = probabilities.chunks_exact(classes.max(1)).map(most_probable).collect();
        Assessment::new(truth, &predicted, probabilities, classes)
    }

    /// The mean over the classes that have the score.
    pub fn mean(&self, score: impl Fn(&ClassScore) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.classes.iter().filter_map(score).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}

/// The class with the largest probability, the first of equals.
pub(crate) fn most_probable(row: &[f32]) -> u32 {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.iter().position(|&p| p == largest).unwrap_or(0) as u32
}

/// A 95 % interval for a share of this many nodes.
pub fn wilson_interval(share: f64, nodes: usize) -> [f64; 2] {
    let (n, z) = (nodes.max(1) as f64, 1.959_964);
    let centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    [centre - half, centre + half]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures are those of scikit-learn's precision_recall_fscore_support.
    #[test]
    fn scores_are_the_textbook_ones() {
        let (truth, predicted) = ([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 0, 1]);
        let probabilities: Vec<f32> = predicted
            .iter()
            .flat_map(|&class| (0..4).map(move |k| if k == class { 0.7 } else { 0.1 }))
            .collect();
        let found = Assessment::new(&truth, &predicted, &probabilities, 4);
        assert_eq!(found.confusion[0], [2, 1, 0, 0]);
        assert_eq!(found.confusion[2], [0, 1, 0, 0]);
        let [a, b, c, d] = found.classes[..] else { panic!("four classes") };
        assert_eq!((a.precision, a.recall, a.f1), (Some(2.0 / 3.0), Some(2.0 / 3.0), Some(2.0 / 3.0)));
        assert_eq!((b.precision, b.recall, b.f1), (Some(1.0 / 3.0), Some(0.5), Some(0.4)));
        assert_eq!((c.precision, c.recall, c.f1), (None, Some(0.0), Some(0.0)));
        assert_eq!((d.support, d.precision, d.recall, d.f1), (0, None, None, None));
        assert!((found.mean(|c| c.recall).expect("a mean") - (2.0 / 3.0 + 0.5) / 3.0).abs() < 1e-12);
        assert_eq!((found.accuracy, found.nodes), (0.5, 6));
        // All are 70 % sure and half are right.
        assert_eq!(found.bins.len(), 1);
        assert!((found.calibration_error - 0.2).abs() < 1e-6);
    }

    #[test]
    fn certain_and_absent_predictions_have_a_bin() {
        let found = Assessment::new(&[0, 0], &[0, 0], &[1.0, 0.0, 0.5, 0.5], 2);
        let ends: Vec<_> = found.bins.iter().map(|bin| (bin.from, bin.to, bin.count)).collect();
        assert_eq!(ends, [(0.4, 0.5, 1), (0.9, 1.0, 1)]);
        let nothing = Assessment::new(&[], &[], &[], 3);
        assert_eq!((nothing.accuracy, nothing.calibration_error, nothing.bins.len()), (0.0, 0.0, 0));
    }

    /// Figures of SciPy: binomtest(8, 10).proportion_ci(method="wilson").
    #[test]
    fn intervals_are_wilsons() {
        let [low, high] = wilson_interval(0.8, 10);
        assert!((low - 0.490_162_47).abs() < 1e-6 && (high - 0.943_317_8).abs() < 1e-6, "{low} {high}");
    }
}
