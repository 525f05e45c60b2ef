//! Probabilities that can be believed: of the predictions that are 80 % sure, 80 % should be right.
//!
//! Temperature scaling (Guo et al. 2017, On calibration of modern neural networks): every logit is multiplied by one
//! factor, the one with which the validation nodes have the lowest cross-entropy. No prediction changes, only how sure
//! it is. It works on the probabilities of whatever predicts last: their logarithms are logits, up to a number that all
//! classes of a row share.

use std::ops::RangeInclusive;

use progap_graph::Part;
use progap_nn::best_temperature;

use crate::Result;
use crate::predictor::Predictor;
use crate::ranks::Partition;
use crate::rows::Rows;
use crate::settings::{Calibration, Level, Settings};

/// The factors that there can be.
pub const FACTORS: RangeInclusive<f32> = 0.099..=10.1;
/// With fewer validation nodes a factor says more about them than about the model.
const MIN_NODES: usize = 30;

/// The factor on all logits that validation nodes choose; nothing where the settings do without, or there are too few
/// of them.
///
/// # Proof definition
/// A function of the released model, of noisy aggregates that left the vault before, and of features, labels and the
/// split, which are public at the levels that have it: post-processing. At node level labels are private, and nothing
/// is calibrated.
///
/// Where nodes lie in several ranks, rows and aggregates are those of this one.
pub(crate) fn temperature(
    predictor: &Predictor,
    rows: impl FnOnce() -> Result<Rows>,
    settings: &Settings,
    part: Option<&Partition>,
) -> Result<Option<f32>> {
    if settings.level == Level::Node || settings.calibration == Calibration::Off {
        return Ok(None);
    }
    let rows = rows()?;
    let nodes = rows.nodes(Part::Val);
    if part.map_or(nodes.len(), |part| part.count(Part::Val)) < MIN_NODES {
        return Ok(None);
    }
    let mut logits = predictor.probabilities(&rows, &nodes)?;
    logits.iter_mut().for_each(|p| *p = p.max(f32::MIN_POSITIVE).ln());
    let labels: Vec<u32> = nodes.iter().map(|&node| rows.labels()[node as usize]).collect();
    let (logits, labels) = match part {
        None => (logits, labels),
        Some(part) => (part.gather(&logits)?, part.gather(&labels)?),
    };
    Ok(Some(best_temperature(&logits, &labels, rows.classes()).0))
}

/// Brings a row of probabilities to another temperature: each to the power of the factor, and all to a sum of one.
pub fn temper(row: &mut [f32], factor: f32) {
    let top = row.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    row.iter_mut().for_each(|p| *p = (*p / top).powf(factor));
    let sum: f32 = row.iter().sum();
    row.iter_mut().for_each(|p| *p /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_its_order_and_its_sum() {
        for factor in [0.1, 1.0, 3.0, 10.0] {
            let mut row = [0.5f32, 0.3, 0.15, 0.05, 0.0];
            temper(&mut row, factor);
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
            assert!(row.windows(2).all(|pair| pair[0] > pair[1]), "{row:?}");
        }
        // As if logits had been multiplied.
        let mut row = [0.8f32, 0.2];
        temper(&mut row, 2.0);
        assert!((row[0] - 0.64 / 0.68).abs() < 1e-6);
    }
}
