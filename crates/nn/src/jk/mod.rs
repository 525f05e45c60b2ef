//! Jumping knowledge: how the outputs of the branches become one vector per row.
//!
//! A row's outputs lie side by side, so that concatenation is the identity and needs no code here. Every other combination
//! gives one vector of the hidden width. A new one is a file with a forward and a backward pass, a variant of [`Jk`], and its
//! arms below.

pub(crate) mod attention;
pub(crate) mod lstm;
pub(crate) mod max;
pub(crate) mod mean;
pub(crate) mod sum;
pub(crate) mod weighted_sum;

use crate::error::{Result, check_setting};
use crate::layer::linear::Weights;
use crate::layout::Layout;
use crate::train::sink::Sink;
use crate::values::Values;

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

impl Slots {
    pub(crate) fn cache(&self, rows: usize, branches: usize) -> Cache {
        match self {
            Slots::None | Slots::WeightedSum(_) => Cache::None,
            Slots::Attention(slots) => Cache::Attention(attention::Cache::new(slots, rows, branches)),
            Slots::Lstm(slots) => Cache::Lstm(lstm::Cache::new(slots, rows, branches)),
        }
    }
}

/// Intermediate values that a combination keeps from its forward to its backward pass.
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
    pub branches: usize,
    /// The hidden width, as stored.
    pub padded_width: usize,
}

impl Jk {
    pub(crate) fn check(self, branches: usize, hidden: usize) -> Result<()> {
        match self {
            Jk::Attention { heads } => {
                let ok = heads > 0 && hidden.is_multiple_of(heads);
                check_setting(ok, "the number of heads", heads, "a divisor of the hidden width")
            }
            Jk::Lstm => {
                let ok = branches * hidden >= 2;
                check_setting(ok, "the hidden width", hidden, "at least 2 for an LSTM over one branch")
            }
            _ => Ok(()),
        }
    }

    /// The parameters it needs.
    pub(crate) fn slots(self, layout: &mut Layout, branches: usize, hidden: usize) -> Slots {
        match self {
            Jk::Cat | Jk::Sum | Jk::Mean | Jk::Max => Slots::None,
            Jk::WeightedSum => Slots::WeightedSum(weighted_sum::slot(layout, branches)),
            Jk::Attention { heads } => Slots::Attention(attention::slots(layout, hidden, heads)),
            Jk::Lstm => Slots::Lstm(lstm::slots(layout, branches, hidden)),
        }
    }
}

/// A combination made ready for a block of rows.
pub(crate) struct Combination<'r> {
    pub jk: Jk,
    pub values: &'r Values,
    pub linears: &'r [Weights],
    pub sizes: Sizes,
}

/// The outputs of the branches, the gradient with respect to the combination, and where that with respect to the outputs goes.
pub(crate) struct CombinationBackward<'s> {
    pub branches: &'s [f32],
    pub d_out: &'s [f32],
    pub d_branches: &'s mut [f32],
}

impl Combination<'_> {
    /// Combines the outputs of the branches.
    pub fn forward(&self, branches: &[f32], out: &mut [f32], cache: &mut Cache) {
        let sizes = self.sizes;
        match (self.jk, &self.values.layout.jk, cache) {
            (Jk::Sum, ..) => sum::forward(sizes, 1.0, branches, out),
            (Jk::Mean, ..) => mean::forward(sizes, branches, out),
            (Jk::Max, ..) => max::forward(sizes, branches, out),
            (_, Slots::WeightedSum(slot), _) => weighted_sum::forward(self, *slot, branches, out),
            (_, Slots::Attention(slots), Cache::Attention(cache)) => {
                attention::forward(self, slots, branches, out, cache);
            }
            (_, Slots::Lstm(slots), Cache::Lstm(cache)) => lstm::forward(self, slots, branches, out, cache),
            _ => unreachable!("concatenation needs no code"),
        }
    }

    /// Backward, after [`Combination::forward`] of the same rows; the sink gets the gradients of the combination's own
    /// parameters.
    pub fn backward<'a>(&self, pass: CombinationBackward<'_>, cache: &mut Cache, sink: &mut impl Sink<'a>) {
        let sizes = self.sizes;
        match (self.jk, &self.values.layout.jk, cache) {
            (Jk::Sum, ..) => sum::backward(sizes, 1.0, pass.d_out, pass.d_branches),
            (Jk::Mean, ..) => mean::backward(sizes, pass.d_out, pass.d_branches),
            (Jk::Max, ..) => max::backward(sizes, pass),
            (_, Slots::WeightedSum(slot), _) => weighted_sum::backward(self, *slot, pass, sink),
            (_, Slots::Attention(slots), Cache::Attention(cache)) => {
                attention::backward(self, slots, pass, cache, sink);
            }
            (_, Slots::Lstm(slots), Cache::Lstm(cache)) => lstm::backward(self, slots, pass, cache, sink),
            _ => unreachable!("concatenation needs no code"),
        }
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

/// Turns the gradient with respect to the softmax `p` into that with respect to its argument, in place.
pub(crate) fn softmax_backward(p: &[f32], g: &mut [f32]) {
    let mean: f32 = p.iter().zip(g.iter()).map(|(p, g)| p * g).sum();
    for (g, p) in g.iter_mut().zip(p) {
        *g = p * (*g - mean);
    }
}

/// The dot product, one term after another.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
