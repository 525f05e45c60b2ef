//! Accuracies of a release.

use serde::{Deserialize, Serialize};

use super::{METRICS, OWN_METRICS};
use crate::files;
use crate::method::history::EpochRecord;
use crate::settings::Level;

/// Accuracies, and what happened in training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// On the test nodes; not a number where there are none.
    #[serde(deserialize_with = "files::number_or_nan")]
    pub test_accuracy: f64,
    /// On the validation nodes; not a number where there are none.
    #[serde(deserialize_with = "files::number_or_nan")]
    pub val_accuracy: f64,
    /// On the training nodes.
    pub train_accuracy: f64,
    /// Whether these numbers come from private labels without noise: then they are for the data owner alone.
    pub unprotected: bool,
    /// On the test nodes, by the stage that knows features only, where the method has one.
    pub features_only_accuracy: Option<f64>,
    /// On the test nodes, after each stage.
    #[serde(deserialize_with = "files::numbers_or_nan")]
    pub stage_test_accuracies: Vec<f64>,
    /// Epoch by epoch.
    pub history: Vec<EpochRecord>,
}

/// Where the accuracies lie: at node level they come from private labels, and the data owner may keep them back.
pub(super) fn metrics_file(level: Level) -> &'static str {
    if level == Level::Node { OWN_METRICS } else { METRICS }
}

impl Metrics {
    pub(super) fn kept_back() -> Metrics {
        let unknown = f64::NAN;
        Metrics {
            test_accuracy: unknown,
            val_accuracy: unknown,
            train_accuracy: unknown,
            unprotected: true,
            features_only_accuracy: None,
            stage_test_accuracies: vec![],
            history: vec![],
        }
    }
}
