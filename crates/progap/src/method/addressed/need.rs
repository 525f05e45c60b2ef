//! Need: weights of receivers, from the split and from what left the vault.

use crate::vault::ReceiverWeights;

/// Nodes in more doubt than this share of those that are predicted need as much as anyone can.
const QUANTILE: f64 = 0.8;
/// However little doubt there is, a node keeps this share of its weight.
const LEAST_NEED: f64 = 0.3;

/// The weights where nothing has been released yet: that of training nodes, and one for all others.
pub(super) fn at_first(known_weight: f64, is_train: &[bool]) -> ReceiverWeights {
    by_need(known_weight, is_train, None)
}

/// The weights by what is left open about each node, as the sums so far say: never by a node's own features.
pub(super) fn by_need(known_weight: f64, is_train: &[bool], open: Option<&[f32]>) -> ReceiverWeights {
    let most = open.map_or(1.0, |open| {
        let mut others: Vec<f32> =
            open.iter().zip(is_train).filter(|(_, train)| !**train).map(|(open, _)| *open).collect();
        others.sort_unstable_by(f32::total_cmp);
        let at = (others.len() as f64 * QUANTILE) as usize;
        others.get(at).copied().filter(|open| *open > 0.0).unwrap_or(1.0)
    });
    ReceiverWeights::nearest(is_train.iter().enumerate().map(|(node, &train)| {
        let need = open.map_or(1.0, |open| f64::from(open[node] / most).clamp(LEAST_NEED, 1.0));
        if train { known_weight * need } else { need }
    }))
}
