//! The one way through a network: a block of rows, forward and backward.
//!
//! Full batches, per-sample clipping and evaluation all send blocks of [`BLOCK`] rows through the same functions of
//! [`Block`]; they differ in the [`Sink`](crate::train::sink::Sink) that takes the gradients, and in how many passes
//! over the rows they make.
//!
//! ```text
//! layer      a = f(x W + b)                  `layer_forward`
//!            y = dropout(norm(a))            the input of the layer above: written out, or absorbed by that layer
//! join       z = join(y_1 .. y_k) / |.|      `join`
//!            dropout, norm, activation of z, where they stand after the join
//! head       logits = z W + b, the loss      `classify`, `head_backward`
//! ```
//! Backward, `head_backward` ends at the norms of the last layers, and `layer_backward` goes from the norms of one
//! layer to those of the layer below. Only batch normalisation needs sums over all rows there: a full batch makes a
//! pass for each layer with it, and a single one without. A [`Trace`] is what one pass leaves for the next.
//!
//! # Absorbed norms
//!
//! A batch normalisation is `y = s a + t` with `s = γ / sqrt(v + ε)` and `t = β - s μ`. A linear layer that reads it
//! absorbs it, `y W + b = a (s W) + (b + t W)`, so that nothing normalised is ever written. Backward, with `d` the
//! gradient with respect to the layer's output, all follows from the sums `A = Σ aᵀ d` and `D = Σ d`:
//! ```text
//! dW = s A + t D        dβ = W D        dγ = (Σ_k W_k (A_k - μ D_k)) / sqrt(v + ε)
//! ```
//! Before the head each row `h` of concatenated branches is divided by its norm: `z = (h W) / |h| + b`. There
//! ```text
//! dh = d' Wᵀ + c h      with d' = d / |h| and the radial coefficient c = -((z - b) · d) / |h|²
//! ```
//! so that `A` and `D` are sums with `d'`, and with `q = a - μ`, `h = s q + β` the sums `Σ c`, `Σ c q` and `Σ c q²` are
//! added:
//! ```text
//! dβ += s Σ c q + β Σ c        dγ += (s Σ c q² + β Σ c q) / sqrt(v + ε)
//! ```
//! Where dropout, or a combination other than concatenation, stands between a norm and its reader, and for group
//! normalisation, rows are written out.

mod backward;
mod forward;
mod join;
mod ready;

pub(crate) use ready::PreparedNetwork;

use crate::aligned::Aligned;
use crate::input::Inputs;
use crate::jk::Jk;
use crate::kernel::tile::LANES;
use crate::layout::padded_width;
use crate::network::{Architecture, Network, NormPlacement};

/// Rows computed together: what belongs to them stays in cache.
pub(crate) const BLOCK: usize = 64;

/// A block of rows on its way through a network.
pub(crate) struct Block<'p, 'a> {
    pub ready: &'p PreparedNetwork<'p>,
    pub scratch: &'p mut Scratch,
    pub trace: &'p mut Trace,
    pub inputs: &'a Inputs<'a>,
    pub rows: &'a [u32],
    /// Whether the trace holds this block as the pass before left it.
    pub resumed: bool,
}

/// Values of a block that later passes over it read. Layer `l` of branch `b` is number `b * layers + l`.
#[derive(Debug)]
pub(crate) struct Trace {
    /// The output of each activation; of last layers without one, of the layer itself, and once joined, joined and
    /// normalised.
    a: Aligned,
    /// The gradient that each branch has reached: with respect to the output of the linear layer above where the norm
    /// between is absorbed, else to the norm's output. Before the backward pass the output of the join's activations,
    /// where they stand there.
    d: Aligned,
    /// The gradient with respect to the logits, divided by the row's norm where the head has absorbed norms.
    d_head: Aligned,
    /// The radial coefficient and the inverse norm of each joined row.
    radial: Vec<f32>,
    inverse: Vec<f32>,
    /// The length of a block of one layer.
    size: usize,
}

impl Trace {
    pub fn new(network: &Network) -> Self {
        let arch = network.architecture();
        let (branches, size) = (arch.inputs.len(), BLOCK * padded_width(arch.hidden));
        let straight = arch.layers == 1 && absorbs_last(arch, arch.dropout > 0.0);
        Trace {
            a: Aligned::zeros(branches * arch.layers * size),
            d: Aligned::zeros(if straight { 0 } else { branches * size }),
            d_head: Aligned::zeros(BLOCK * network.values.layout.head().outputs_padded),
            radial: vec![0.0; BLOCK],
            inverse: vec![0.0; BLOCK],
            size,
        }
    }

    /// The number of values in a trace, about.
    pub fn values(network: &Network) -> usize {
        let arch = network.architecture();
        arch.inputs.len() * (arch.layers + 1) * BLOCK * padded_width(arch.hidden)
    }

    fn a(&self, i: usize) -> &[f32] {
        &self.a[i * self.size..][..self.size]
    }

    fn d(&self, b: usize) -> &[f32] {
        &self.d[b * self.size..][..self.size]
    }

    fn d_mut(&mut self, b: usize) -> &mut [f32] {
        &mut self.d[b * self.size..][..self.size]
    }
}

/// Memory for one block in one pass.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// The rows of a dense input.
    x: Aligned,
    /// The outputs of layers that are written out, numbered as in a trace.
    y: Aligned,
    /// The combination of the branches, where that is not concatenation; the branches' outputs and gradients side by
    /// side, and the combination's intermediate values.
    joined: Vec<f32>,
    side_by_side: Vec<f32>,
    d_side_by_side: Vec<f32>,
    squares: Aligned,
    delta: Aligned,
    d_gamma: Vec<f32>,
    pub logits: Aligned,
}

impl Scratch {
    pub fn new(network: &Network) -> Self {
        let arch = network.architecture();
        let (branches, width) = (arch.inputs.len(), padded_width(arch.hidden));
        let block = |columns: usize| Aligned::zeros(BLOCK * columns);
        let combined = if arch.jk == Jk::Cat { 0 } else { BLOCK * width };
        Scratch {
            x: Aligned::default(),
            y: Aligned::default(),
            joined: vec![0.0; combined],
            side_by_side: vec![0.0; branches * combined],
            d_side_by_side: vec![0.0; branches * combined],
            squares: block(LANES),
            delta: block(width),
            d_gamma: vec![0.0; BLOCK * width],
            logits: block(network.values.layout.head().outputs_padded),
        }
    }
}

/// Whether the head absorbs the norms of the branches' last layers.
fn absorbs_last(arch: &Architecture, dropout: bool) -> bool {
    arch.norm_placement == NormPlacement::PerBranch
        && arch.norm.mixes_rows()
        && arch.jk == Jk::Cat
        && !dropout
}
