//! What each query costs.

use crate::addressed::AddressedShape;
use crate::settings::{FeatureLearning, Settings};

/// Of the squared signal that the budget pays for, the share of the class sums and of each table of labels; the rest is
/// divided between the sums over the graph.
const SHARE_OF_FEATURES: f64 = 0.08;
/// Many columns say more, and have more noise.
const SHARE_OF_RICH_FEATURES: f64 = 0.5;
const SHARE_OF_LABELS: f64 = 0.05;
/// However many tables there are, sums keep this.
const LEAST_SHARE: f64 = 0.2;

/// The noise of each query over that of an aggregation, each divided by its sensitivity.
pub(crate) struct NoiseRatios {
    pub class_sums: f64,
    pub label_tables: f64,
}

impl NoiseRatios {
    pub fn of(settings: &Settings, columns: usize) -> NoiseRatios {
        let (depth, by_table) = (settings.depth as f64, settings.feature_learning == FeatureLearning::Table);
        if settings.depth == 0 {
            return NoiseRatios { class_sums: 1.0, label_tables: 1.0 };
        }
        let rich = columns > AddressedShape::RICH;
        let of_table = if rich { SHARE_OF_RICH_FEATURES } else { SHARE_OF_FEATURES };
        let features = if by_table { of_table } else { 0.0 };
        let of_a_sum = (1.0 - features - depth * SHARE_OF_LABELS).max(LEAST_SHARE) / depth;
        let ratio = |share: f64| (of_a_sum / share).sqrt();
        NoiseRatios { class_sums: ratio(of_table), label_tables: ratio(SHARE_OF_LABELS) }
    }
}
