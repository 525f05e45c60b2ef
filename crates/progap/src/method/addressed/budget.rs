//! What each query costs.

use crate::settings::{FeatureLearning, Settings};

/// Of the squared signal that the budget pays for, the share of the class sums and of each table of labels; the rest is
/// divided between the sums over the graph.
const SHARE_OF_FEATURES: f64 = 0.08;
const SHARE_OF_LABELS: f64 = 0.05;
/// However many tables there are, sums keep this.
const LEAST_SHARE: f64 = 0.2;

/// The noise of each query over that of an aggregation, each divided by its sensitivity.
pub(crate) struct NoiseRatios {
    pub class_sums: f64,
    pub label_tables: f64,
}

impl NoiseRatios {
    pub fn of(settings: &Settings) -> NoiseRatios {
        let (depth, by_table) = (settings.depth as f64, settings.feature_learning == FeatureLearning::Table);
        if settings.depth == 0 {
            return NoiseRatios { class_sums: 1.0, label_tables: 1.0 };
        }
        let features = if by_table { SHARE_OF_FEATURES } else { 0.0 };
        let of_a_sum = (1.0 - features - depth * SHARE_OF_LABELS).max(LEAST_SHARE) / depth;
        let ratio = |share: f64| (of_a_sum / share).sqrt();
        NoiseRatios { class_sums: ratio(SHARE_OF_FEATURES), label_tables: ratio(SHARE_OF_LABELS) }
    }
}
