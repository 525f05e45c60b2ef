//! What happened in training, epoch by epoch.

use serde::{Deserialize, Serialize};

use crate::assessment::Metric;

/// What happened in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochRecord {
    /// The stage.
    pub stage: usize,
    /// The epoch, from 1.
    pub epoch: usize,
    /// The mean loss over the training nodes, where it is known.
    pub loss: Option<f64>,
    /// The accuracy on the training nodes, where it is known.
    pub train_accuracy: Option<f64>,
    /// The accuracy on the validation nodes; not a number where there are none.
    #[serde(deserialize_with = "crate::files::number_or_nan")]
    pub val_accuracy: f64,
    /// The metric by which epochs are chosen, on the validation nodes; absent where that is the accuracy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub val_score: Option<f64>,
    /// In the method views: what later stages and the release are chosen by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
}

impl EpochRecord {
    /// How good the epoch is by the metric that chooses: the more the better, and not a number where it cannot be said.
    pub(crate) fn merit(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Accuracy => self.val_accuracy,
            _ => metric.oriented(self.val_score.unwrap_or(f64::NAN)),
        }
    }
}

/// How good a stage of two views is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judged {
    /// The mean log loss on nodes held out: validation nodes, or a fifth of the training nodes where there are none.
    pub log_loss: f64,
    /// How alike the classes of neighbours are at most, from 0 for not at all to 1, as the first noisy sums tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alike: Option<f64>,
}

/// A loss that falls by this share in the last tenth of a stage has not settled.
const STILL_FALLING: f64 = 0.03;

/// Whether the loss of a stage was still falling when training ended: more epochs, or larger steps, would learn more. Not where losses
/// are not known.
pub fn is_still_falling(history: &[EpochRecord], stage: usize) -> bool {
    let losses: Vec<f64> =
        history.iter().filter(|record| record.stage == stage).filter_map(|record| record.loss).collect();
    let Some(before) = losses.len().checked_sub(1 + losses.len().div_ceil(10)) else { return false };
    losses.len() >= 10 && losses[losses.len() - 1] < (1.0 - STILL_FALLING) * losses[before]
}
