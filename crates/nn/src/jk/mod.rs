//! Jumping knowledge: how the outputs of the branches (the hops) become one vector per row.
//!
//! Hops of a row lie side by side, so that concatenation is the identity and needs no code here. Every other way gives
//! one vector of the hidden width.

pub(crate) mod attention;
pub(crate) mod lstm;
pub(crate) mod max;
pub(crate) mod mean;
pub(crate) mod sum;
pub(crate) mod weighted_sum;

use crate::block::Prepared;
use crate::error::{Result, check_setting};
use crate::layout::Layout;
use crate::train::sink::Sink;

/// How branches are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Jk {
    /// Side by side: the method's own.
    #[default]
    Cat,
    /// The sum.
    Sum,
    /// The mean.
    Mean,
    /// The largest, column by column.
    Max,
    /// A sum with one learned weight per branch; weights pass through a softmax.
    WeightedSum,
    /// Self-attention among the branches' outputs, then their mean.
    Attention {
        /// The heads, which must divide the hidden width.
        heads: usize,
    },
    /// A sum with weights per row, learned by a two-way LSTM along the branches.
    Lstm,
}

/// The layers of a combination, by number in the layout.
#[derive(Debug, Clone)]
pub(crate) enum Slots {
    None,
    WeightedSum(usize),
    Attention(attention::Slots),
    Lstm(lstm::Slots),
}

/// What a combination keeps between forward and backward.
#[derive(Debug, Clone)]
pub(crate) enum Cache {
    None,
    Attention(attention::Cache),
    Lstm(lstm::Cache),
}

/// The sizes of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub rows: usize,
    pub hops: usize,
    /// The hidden width, as stored.
    pub wide: usize,
}

impl Jk {
    pub(crate) fn check(self, hops: usize, hidden: usize) -> Result<()> {
        match self {
            Jk::Attention { heads } => {
                let ok = heads > 0 && hidden.is_multiple_of(heads);
                check_setting(ok, "the number of heads", heads, "a divisor of the hidden width")
            }
            Jk::Lstm => {
                let ok = hops * hidden >= 2;
                check_setting(ok, "the hidden width", hidden, "at least 2 for an LSTM over one branch")
            }
            _ => Ok(()),
        }
    }

    /// The parameters it needs.
    pub(crate) fn slots(self, layout: &mut Layout, hops: usize, hidden: usize) -> Slots {
        match self {
            Jk::Cat | Jk::Sum | Jk::Mean | Jk::Max => Slots::None,
            Jk::WeightedSum => Slots::WeightedSum(weighted_sum::slot(layout, hops)),
            Jk::Attention { heads } => Slots::Attention(attention::slots(layout, hidden, heads)),
            Jk::Lstm => Slots::Lstm(lstm::slots(layout, hops, hidden)),
        }
    }

    pub(crate) fn cache(self, slots: &Slots, rows: usize, hops: usize) -> Cache {
        match slots {
            Slots::None | Slots::WeightedSum(_) => Cache::None,
            Slots::Attention(slots) => Cache::Attention(attention::Cache::new(slots, rows, hops)),
            Slots::Lstm(slots) => Cache::Lstm(lstm::Cache::new(slots, rows, hops)),
        }
    }
}

/// Combines `hops` into `out`.
pub(crate) fn forward(
    prepared: &Prepared<'_>,
    sizes: Sizes,
    hops: &[f32],
    out: &mut [f32],
    cache: &mut Cache,
) {
    let network = prepared.network;
    match (network.architecture().jk, &network.values.layout.jk, cache) {
        (Jk::Sum, ..) => sum::forward(sizes, 1.0, hops, out),
        (Jk::Mean, ..) => mean::forward(sizes, hops, out),
        (Jk::Max, ..) => max::forward(sizes, hops, out),
        (_, Slots::WeightedSum(slot), _) => weighted_sum::forward(prepared, *slot, sizes, hops, out),
        (_, Slots::Attention(slots), Cache::Attention(cache)) => {
            attention::forward(prepared, slots, sizes, hops, out, cache);
        }
        (_, Slots::Lstm(slots), Cache::Lstm(cache)) => {
            lstm::forward(prepared, slots, sizes, hops, out, cache)
        }
        _ => unreachable!("concatenation is the identity"),
    }
}

/// Writes the gradient by `hops` into `d_hops`, and hands the sink those by the combination's own parameters.
#[allow(clippy::too_many_arguments)]
pub(crate) fn backward<'a>(
    prepared: &Prepared<'_>,
    sizes: Sizes,
    hops: &[f32],
    d_out: &[f32],
    d_hops: &mut [f32],
    cache: &mut Cache,
    sink: &mut impl Sink<'a>,
) {
    let network = prepared.network;
    match (network.architecture().jk, &network.values.layout.jk, cache) {
        (Jk::Sum, ..) => sum::backward(sizes, 1.0, d_out, d_hops),
        (Jk::Mean, ..) => mean::backward(sizes, d_out, d_hops),
        (Jk::Max, ..) => max::backward(sizes, hops, d_out, d_hops),
        (_, Slots::WeightedSum(slot), _) => {
            weighted_sum::backward(prepared, *slot, sizes, hops, d_out, d_hops, sink);
        }
        (_, Slots::Attention(slots), Cache::Attention(cache)) => {
            attention::backward(prepared, slots, sizes, hops, d_out, d_hops, cache, sink);
        }
        (_, Slots::Lstm(slots), Cache::Lstm(cache)) => {
            lstm::backward(prepared, slots, sizes, hops, d_out, d_hops, cache, sink);
        }
        _ => unreachable!("concatenation is the identity"),
    }
}

/// The softmax of a few values.
pub(crate) fn softmax(values: &mut [f32]) {
    let top = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for value in values.iter_mut() {
        *value = (*value - top).exp();
        sum += *value;
    }
    for value in values {
        *value /= sum;
    }
}

/// Turns the gradient by the softmax `p` into that by its argument, in place.
pub(crate) fn softmax_backward(p: &[f32], g: &mut [f32]) {
    let along: f32 = p.iter().zip(g.iter()).map(|(p, g)| p * g).sum();
    for (g, p) in g.iter_mut().zip(p) {
        *g = p * (*g - along);
    }
}

/// The dot product, one term after another.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
