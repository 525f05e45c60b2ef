//! Metrics: how good predictions are, in one number.

use serde::{Deserialize, Serialize};

use super::{Assessment, ClassScore};
pub use crate::settings::Metric;

/// Where the rarest class has less than this share of what it would have if all were equally frequent, accuracy hides
/// it.
const RARE: f64 = 0.5;

/// Predictions in one number by each metric. What cannot be said of the nodes is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scores {
    /// The share that is right.
    pub accuracy: f64,
    /// The mean recall of the classes.
    pub balanced_accuracy: f64,
    /// The mean F1 of the classes.
    pub macro_f1: f64,
    /// The mean area under the curve of each class against all others.
    pub auroc: Option<f64>,
    /// The mean average precision of each class against all others; of two classes, that of the rarer one.
    pub average_precision: Option<f64>,
    /// The mean of `-ln p` of the true class.
    pub log_loss: f64,
    /// The expected calibration error.
    pub calibration_error: f64,
    /// The recall of each class.
    pub recalls: Vec<Option<f64>>,
}

impl Assessment {
    /// Each metric in one number; nothing where there are no nodes.
    pub fn scores(&self) -> Option<Scores> {
        let mean = |score: fn(&ClassScore) -> Option<f64>| self.mean(score);
        (self.nodes > 0).then(|| Scores {
            accuracy: self.accuracy,
            balanced_accuracy: mean(|class| class.recall).unwrap_or(0.0),
            macro_f1: mean(|class| class.f1).unwrap_or(0.0),
            auroc: mean(|class| class.auroc),
            average_precision: match &self.classes[..] {
                [_, _] => self.rarest().and_then(|class| self.classes[class].average_precision),
                _ => mean(|class| class.average_precision),
            },
            log_loss: self.log_loss,
            calibration_error: self.calibration_error,
            recalls: self.classes.iter().map(|class| class.recall).collect(),
        })
    }

    /// The rarest class among those that there are nodes of; of equals the last, which of two classes is by custom the
    /// one looked for.
    pub fn rarest(&self) -> Option<usize> {
        let there = (0..self.classes.len()).filter(|&class| self.classes[class].support > 0);
        there.min_by_key(|&class| (self.classes[class].support, std::cmp::Reverse(class)))
    }

    /// The most frequent class, where nearly every prediction is that class: other classes are predicted less than a
    /// tenth as often as they occur.
    pub fn only_majority(&self) -> Option<usize> {
        let support = |class: usize| self.classes[class].support;
        let class =
            (0..self.classes.len()).max_by_key(|&class| (support(class), std::cmp::Reverse(class)))?;
        let predicted: u64 = self.confusion.iter().map(|row| row[class]).sum();
        let (others, flagged) = (self.nodes as u64 - support(class), self.nodes as u64 - predicted);
        (others > 0 && 10 * flagged < others).then_some(class)
    }

    /// Whether classes are so uneven that accuracy says little about the rarest.
    pub fn is_uneven(&self) -> bool {
        let even = self.nodes as f64 / self.classes.len().max(1) as f64;
        self.rarest().is_some_and(|class| (self.classes[class].support as f64) < RARE * even)
    }
}

impl Scores {
    /// The mean of several runs on the same classes, score by score; absent where one of them has no such score.
    pub fn mean(all: &[Scores]) -> Option<Scores> {
        let first = all.first()?;
        let mean = |score: &dyn Fn(&Scores) -> f64| all.iter().map(score).sum::<f64>() / all.len() as f64;
        let known = |score: &dyn Fn(&Scores) -> Option<f64>| {
            Some(mean(&|scores| score(scores).unwrap_or(f64::NAN))).filter(|mean| mean.is_finite())
        };
        let recall = |class: usize| known(&|scores| scores.recalls.get(class).copied().flatten());
        Some(Scores {
            accuracy: mean(&|scores| scores.accuracy),
            balanced_accuracy: mean(&|scores| scores.balanced_accuracy),
            macro_f1: mean(&|scores| scores.macro_f1),
            auroc: known(&|scores| scores.auroc),
            average_precision: known(&|scores| scores.average_precision),
            log_loss: mean(&|scores| scores.log_loss),
            calibration_error: mean(&|scores| scores.calibration_error),
            recalls: (0..first.recalls.len()).map(recall).collect(),
        })
    }

    /// One of them; not a number where it cannot be said.
    pub fn get(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Accuracy => self.accuracy,
            Metric::BalancedAccuracy => self.balanced_accuracy,
            Metric::MacroF1 => self.macro_f1,
            Metric::Auroc => self.auroc.unwrap_or(f64::NAN),
            Metric::AveragePrecision => self.average_precision.unwrap_or(f64::NAN),
            Metric::LogLoss => self.log_loss,
            Metric::CalibrationError => self.calibration_error,
        }
    }
}

impl Metric {
    /// Whether smaller values are better.
    pub fn is_loss(self) -> bool {
        matches!(self, Metric::LogLoss | Metric::CalibrationError)
    }

    /// Its name in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Metric::Accuracy => "accuracy",
            Metric::BalancedAccuracy => "balanced accuracy",
            Metric::MacroF1 => "macro F1",
            Metric::Auroc => "AUROC",
            Metric::AveragePrecision => "average precision",
            Metric::LogLoss => "log loss",
            Metric::CalibrationError => "calibration error",
        }
    }

    /// A value of it as something of which more is better.
    pub(crate) fn oriented(self, value: f64) -> f64 {
        if self.is_loss() { -value } else { value }
    }
}
