//! Forward and backward through one block of layers, for a few rows at a time.

use super::{Kind, Sage};
use crate::input::Input;
use crate::jk::{CombinationBackward, Jk, Sizes};
use crate::kernel::product::Matrix;
use crate::layer::dropout::{self, Mask};
use crate::layer::linear::{Operand, Weights};
use crate::layer::norm::NormLayer;
use crate::layer::{activation, l2_normalise};
use crate::layout::padded_width;
use crate::pass::BLOCK;

/// A model made ready for one step: its weights padded, and transposed where a gradient needs it.
pub(super) struct PreparedNetwork<'m> {
    pub sage: &'m Sage,
    pub weights: Vec<Weights>,
    /// The norm of each block.
    pub norms: Vec<NormLayer>,
    /// The step's seed, where dropout is to be applied.
    pub dropout: Option<u64>,
    pub padded_width: usize,
}

/// Values that a block may read of the rows at hand.
#[derive(Clone, Copy)]
pub(super) struct Sources<'s> {
    pub input: Input<'s>,
    pub rows: &'s [u32],
    /// The aggregate; empty but for a convolution.
    pub aggregate: &'s [f32],
}

/// The input of a block's norm, and in a convolution the inverse norms of its rows.
#[derive(Clone, Copy)]
pub(super) struct Normed<'s> {
    pub pre: &'s [f32],
    pub inverse: &'s [f32],
}

/// Memory for the rows at hand.
pub(super) struct Scratch {
    /// The input of the linear layer, where dense.
    pub x: Vec<f32>,
    /// The outputs of all convolutions, where they are not concatenated.
    side_by_side: Vec<f32>,
    /// The gradient with respect to its output.
    pub delta: Vec<f32>,
    /// Each row's gradient with respect to the norm's weights, with group normalisation.
    pub d_gamma: Vec<f32>,
    /// The gradient with respect to its input.
    pub dx: Vec<f32>,
    pub pre: Vec<f32>,
    pub inverse: Vec<f32>,
    pub logits: Vec<f32>,
    pub d_logits: Vec<f32>,
}

impl Scratch {
    pub fn new(ready: &PreparedNetwork<'_>) -> Self {
        let widest = ready.weights[1..].iter().map(|w| w.inputs).max().unwrap_or(0);
        let side_by_side = ready.sage.architecture.convolutions * ready.padded_width;
        let block = |columns: usize| vec![0.0; BLOCK * columns];
        Scratch {
            x: block(widest),
            side_by_side: block(side_by_side),
            delta: block(ready.padded_width),
            d_gamma: block(ready.padded_width),
            dx: block(widest.max(side_by_side)),
            pre: block(ready.padded_width),
            inverse: block(1),
            logits: block(ready.weights.last().map_or(0, |head| head.outputs)),
            d_logits: block(ready.weights.last().map_or(0, |head| head.outputs)),
        }
    }
}

/// Sets rows of several lists side by side.
fn interleave(parts: &[&[f32]], count: usize, width: usize, out: &mut [f32]) {
    let stride = parts.len() * width;
    for (k, part) in parts.iter().enumerate() {
        for (out, row) in out.chunks_exact_mut(stride).zip(part.chunks_exact(width)).take(count) {
            out[k * width..(k + 1) * width].copy_from_slice(row);
        }
    }
}

impl<'m> PreparedNetwork<'m> {
    /// For evaluation: batch normalisation by running statistics, no dropout. `gradients` adds what a backward pass
    /// needs.
    pub fn new(sage: &'m Sage, gradients: bool) -> Self {
        let blocks = sage.architecture.blocks();
        PreparedNetwork {
            sage,
            weights: (0..=blocks).map(|slot| sage.values.weights(slot, gradients)).collect(),
            norms: (0..blocks).map(|block| sage.values.norm_layer(block)).collect(),
            dropout: None,
            padded_width: padded_width(sage.architecture.hidden),
        }
    }

    pub fn kind(&self, block: usize) -> Kind {
        self.sage.architecture.kind(block)
    }

    fn mask(&self, block: usize) -> Option<Mask> {
        let rate = self.sage.architecture.dropout;
        self.dropout.filter(|_| rate > 0.0).map(|seed| Mask::new(rate, seed, block, 0))
    }

    fn join_sizes(&self, rows: usize) -> Sizes {
        let branches = self.sage.architecture.convolutions;
        Sizes { rows, branches, padded_width: self.padded_width }
    }

    /// The input of a block's linear layer; dense rows were brought together in `x`.
    pub fn operand<'s, 'i>(&self, block: usize, from: Sources<'i>, x: &'s [f32]) -> Operand<'s, 'i> {
        match from.input {
            input @ Input::Sparse { .. } if block == 0 => Operand::Sparse(input, from.rows),
            _ => Operand::dense(x, self.weights[block].inputs),
        }
    }

    /// Brings together what a block's linear layer reads, but for sparse features. `out` gives the outputs of an
    /// earlier block for the rows at hand.
    pub fn read<'s>(
        &self,
        block: usize,
        from: Sources<'_>,
        out: impl Fn(usize) -> &'s [f32],
        scratch: &mut Scratch,
    ) {
        let (count, width, arch) = (from.rows.len(), self.padded_width, &self.sage.architecture);
        match (self.kind(block), from.input) {
            (_, Input::Sparse { .. }) if block == 0 => {}
            (_, input @ (Input::Dense { columns, .. } | Input::Half { columns, .. })) if block == 0 => {
                if scratch.x.len() < BLOCK * columns {
                    scratch.x.resize(BLOCK * columns, 0.0);
                }
                input.gather(from.rows, &mut scratch.x);
            }
            (Kind::Dense, _) => scratch.x[..count * width].copy_from_slice(&out(block - 1)[..count * width]),
            (Kind::Convolution, _) => {
                interleave(&[from.aggregate, out(block - 1)], count, width, &mut scratch.x);
            }
            (Kind::Joint, _) => {
                let outputs: Vec<&[f32]> = arch.convolution_blocks().map(&out).collect();
                let side_by_side =
                    if arch.jk == Jk::Cat { &mut scratch.x } else { &mut scratch.side_by_side };
                interleave(&outputs, count, width, side_by_side);
                if arch.jk != Jk::Cat {
                    arch.jk.forward(self.join_sizes(count), &scratch.side_by_side, &mut scratch.x);
                }
            }
        }
    }

    /// Up to the norm: from what was read to `pre`, and for a convolution the inverse lengths.
    pub fn before_norm(
        &self,
        block: usize,
        from: Sources<'_>,
        x: &[f32],
        pre: &mut [f32],
        inverse: &mut [f32],
    ) {
        let (count, arch) = (from.rows.len(), &self.sage.architecture);
        self.weights[block].forward(count, self.operand(block, from, x), pre);
        let values = &mut pre[..count * self.padded_width];
        match self.kind(block) {
            Kind::Dense => activation::forward(arch.activation, values),
            Kind::Convolution if arch.normalise => l2_normalise::forward(self.padded_width, values, inverse),
            Kind::Convolution | Kind::Joint => {}
        }
    }

    /// From the norm on.
    pub fn after_norm(&self, block: usize, rows: &[u32], pre: &[f32], out: &mut [f32]) {
        let (count, width, arch) = (rows.len(), self.padded_width, &self.sage.architecture);
        self.norms[block].forward(count, pre, out);
        let kind = self.kind(block);
        if kind == Kind::Convolution {
            activation::forward(arch.activation, &mut out[..count * width]);
        }
        if let Some(mask) = self.mask(block) {
            dropout::apply(mask, rows, arch.hidden, out, width);
        }
        if kind == Kind::Joint {
            activation::forward(arch.activation, &mut out[..count * width]);
        }
    }

    /// A whole block, in evaluation.
    pub fn run<'s>(
        &self,
        block: usize,
        from: Sources<'_>,
        earlier: impl Fn(usize) -> &'s [f32],
        scratch: &mut Scratch,
        out: &mut [f32],
    ) {
        self.read(block, from, earlier, scratch);
        let Scratch { x, pre, inverse, .. } = scratch;
        self.before_norm(block, from, x, pre, inverse);
        self.after_norm(block, from.rows, pre, out);
    }

    /// Turns the gradient by a block's output into that by its norm's output, in place.
    pub fn to_norm(&self, block: usize, rows: &[u32], out: &[f32], g: &mut [f32]) {
        let (values, arch) = (rows.len() * self.padded_width, &self.sage.architecture);
        let (kind, mask) = (self.kind(block), self.mask(block));
        if kind == Kind::Joint {
            activation::backward(arch.activation, 1.0, &out[..values], &mut g[..values]);
        }
        if let Some(mask) = mask {
            dropout::apply(mask, rows, arch.hidden, g, self.padded_width);
        }
        if kind == Kind::Convolution {
            // Kept values were divided by the probability of keeping them; where none was kept, the gradient is zero by
            // now.
            let kept = if mask.is_some() { 1.0 - arch.dropout } else { 1.0 };
            activation::backward(arch.activation, kept, &out[..values], &mut g[..values]);
        }
    }

    /// From the gradient `g` by the norm's output to that by the linear layer's output, in `scratch.delta`.
    pub fn to_linear(
        &self,
        block: usize,
        Normed { pre, inverse }: Normed<'_>,
        count: usize,
        g: &[f32],
        scratch: &mut Scratch,
    ) {
        let (width, values, arch) = (self.padded_width, count * self.padded_width, &self.sage.architecture);
        let Scratch { delta, d_gamma, .. } = scratch;
        self.norms[block].backward(count, pre, g, delta, d_gamma);
        match self.kind(block) {
            Kind::Dense => activation::backward(arch.activation, 1.0, &pre[..values], &mut delta[..values]),
            Kind::Convolution if arch.normalise => {
                l2_normalise::backward(width, &pre[..values], inverse, &mut delta[..values]);
            }
            Kind::Convolution | Kind::Joint => {}
        }
    }

    /// From `scratch.delta` to the gradient with respect to the input of the block, in `scratch.dx`,
    /// [`PreparedNetwork::spread`] values a row.
    pub fn to_sources(&self, block: usize, count: usize, scratch: &mut Scratch) {
        let weights = &self.weights[block];
        let Scratch { delta, dx, side_by_side, x, .. } = scratch;
        let d = Matrix { values: delta, stride: self.padded_width };
        if self.kind(block) != Kind::Joint || self.sage.architecture.jk == Jk::Cat {
            return weights.backward(count, d, dx);
        }
        weights.backward(count, d, x);
        let pass = CombinationBackward { branches: side_by_side, d_out: x, d_branches: dx };
        self.sage.architecture.jk.backward(self.join_sizes(count), pass);
    }

    /// Values a row in the gradient by what a block reads.
    pub fn spread(&self, block: usize) -> usize {
        match self.kind(block) {
            Kind::Dense => self.padded_width,
            Kind::Convolution => 2 * self.padded_width,
            Kind::Joint => self.sage.architecture.convolutions * self.padded_width,
        }
    }
}
