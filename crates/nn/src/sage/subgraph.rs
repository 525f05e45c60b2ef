//! The sum of clipped per-sample gradients where a sample is a node with its neighbours: DP-GNN.
//!
//! A sample is a target row and the rows of its neighbours. With one convolution its loss is `L(f(Σ_u base(x_u),
//! base(x_v)))` over the neighbours `u` of the target `v`: all rows pass the same base layers, so that the gradient by
//! their parameters is a sum over the sample's rows, and the gradient by the aggregate goes to every neighbour alike.
//! Each sample's gradient is formed in full, in double precision, then clipped and added; of the first layer's weights
//! only the rows that a sparse sample touches are ever looked at.

use rayon::prelude::*;

use super::Sage;
use super::pass::{Normed, PreparedNetwork, Scratch, Sources};
use crate::error::{Error, Result, check_length, check_setting};
use crate::input::{Batch, Input};
use crate::kernel::product::Matrix;
use crate::layer::Norm;
use crate::layer::linear::Operand;
use crate::layout::Linear;
use crate::loss::Loss;
use crate::pass::BLOCK;

/// For every row the rows that it reads: a checked view.
///
/// ```
/// use progap_nn::Neighbours;
///
/// let neighbours = Neighbours::new(3, &[0, 2, 2, 3], &[1, 2, 0])?;
/// assert_eq!(neighbours.of(0), [1, 2]);
/// assert!(Neighbours::new(3, &[0, 1, 1, 1], &[3]).is_err());
/// # Ok::<(), progap_nn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Neighbours<'a> {
    offsets: &'a [u64],
    ids: &'a [u32],
}

impl<'a> Neighbours<'a> {
    /// The neighbours of row `v` are `ids[offsets[v]..offsets[v + 1]]`; a row may be listed more than once.
    pub fn new(rows: usize, offsets: &'a [u64], ids: &'a [u32]) -> Result<Self> {
        check_length("list of offsets of neighbours", offsets.len(), rows + 1)?;
        let broken = |row, why| Err(Error::Neighbours { row, why });
        if offsets[0] != 0 {
            return broken(0, "the first offset must be 0");
        }
        if let Some(row) = offsets.windows(2).position(|w| w[0] > w[1]) {
            return broken(row, "it ends before it starts");
        }
        check_length("list of neighbours", ids.len(), offsets[rows] as usize)?;
        match ids.iter().position(|&id| id as usize >= rows) {
            None => Ok(Neighbours { offsets, ids }),
            Some(at) => {
                let row = offsets.partition_point(|&o| o as usize <= at) - 1;
                broken(row, "it names a row that does not exist")
            }
        }
    }

    /// The neighbours of a row.
    pub fn of(&self, row: u32) -> &'a [u32] {
        let row = row as usize;
        &self.ids[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }
}

/// The sum over the batch of each sample's gradient by all parameters together, clipped to norm `clip`; the aggregate
/// of a sample is the *sum* over its neighbours.
///
/// In the order of [`Sage::parameters`]. The caller adds noise and divides by the size of the batch. The same bits on
/// any number of threads. Dropout is not applied. The model must have one convolution and no batch normalisation.
///
/// # Proof definition
///
/// For any parameters, any inputs (NaN and infinities too), and a clip `C`, the sum is over the samples of the batch of
/// `t_i`, rounded only by the additions in double precision, where `t_i` depends on the target's row and label, its
/// list of neighbours, the neighbours' rows and the parameters alone, and `|t_i| <= C`.
///
/// - *A sample is computed on its own*, from its first row on, whatever else is in the batch. So a record that is
///   neither the target nor among its neighbours does not change `t_i` in any bit.
/// - *What is clipped is the vector as computed.* The sample's gradient is a vector of doubles; its norm is that of
///   those very doubles. Their squares neither overflow nor underflow, as each is a sum of products of two
///   single-precision numbers. The sum of `P` squares, the root, `C / norm` and the product with the factor err by a
///   relative `(P + 8) 2^-53` in all; the norm is multiplied by `1 + (P + 8) 2^-52`.
/// - *A sample whose norm is not finite contributes zero*, which is a function of the sample alone.
/// - *An empty batch gives zeros.*
///
/// The remaining rounding is that of the sum itself: at most `n 2^-53` of the sum of the absolute values of its terms,
/// per parameter. The mechanism that adds noise charges for it.
pub fn sage_clipped_sum(
    sage: &Sage,
    batch: Batch<'_>,
    neighbours: Neighbours<'_>,
    clip: f64,
) -> Result<Vec<f64>> {
    check_setting(clip.is_finite() && clip > 0.0, "the clip", clip, "a finite number above 0")?;
    let count = sage.parameter_count();
    let parts = per_sample(sage, batch, neighbours, |part: &mut Vec<f64>, sample| {
        part.resize(count, 0.0);
        let norm = sample.norm();
        if norm.is_finite() {
            sample.add_scaled(f64::min(1.0, clip / norm), part);
        }
    })?;
    let mut total = vec![0.0; count];
    for part in parts {
        for (total, sum) in total.iter_mut().zip(part) {
            *total += sum;
        }
    }
    Ok(total)
}

/// The norm of each sample's gradient, rounded up as for clipping; not finite where the sample would contribute zero.
pub fn sage_sample_norms(sage: &Sage, batch: Batch<'_>, neighbours: Neighbours<'_>) -> Result<Vec<f64>> {
    let parts = per_sample(sage, batch, neighbours, |part: &mut Vec<f64>, sample| part.push(sample.norm()))?;
    Ok(parts.concat())
}

/// Samples in the smallest chunk worth a thread's attention.
const CHUNK: usize = 16;
/// The most chunks: each has a sum of its own.
const CHUNKS: usize = 64;

/// Runs `work` on the gradient of each sample; one result per chunk of samples.
fn per_sample<T: Default + Send>(
    sage: &Sage,
    batch: Batch<'_>,
    neighbours: Neighbours<'_>,
    work: impl Fn(&mut T, &Sample<'_>) + Sync,
) -> Result<Vec<T>> {
    sage.check_inputs(batch.inputs)?;
    check_length("list of neighbours' rows", neighbours.rows(), batch.inputs.rows())?;
    if sage.architecture.norm == Norm::Batch {
        return Err(Error::BatchNormPerSample);
    }
    let convolutions = sage.architecture.convolutions;
    check_setting(
        convolutions == 1,
        "the number of convolutions",
        convolutions,
        "1 where samples are nodes with neighbours",
    )?;
    let ready = PreparedNetwork::new(sage, true);
    let size = batch.len().div_ceil(CHUNKS).max(CHUNK);
    Ok(batch
        .rows
        .par_chunks(size)
        .map_init(
            || Sample::new(&ready),
            |sample, targets| {
                let mut part = T::default();
                for &target in targets {
                    sample.compute(batch, target, neighbours.of(target));
                    work(&mut part, sample);
                }
                part
            },
        )
        .collect())
}

/// Values that a block keeps of the rows it has seen.
#[derive(Default, Clone)]
struct RowTrace {
    pre: Vec<f32>,
    inverse: Vec<f32>,
    out: Vec<f32>,
}

/// One sample's gradient, and the memory to compute it in.
struct Sample<'r> {
    ready: &'r PreparedNetwork<'r>,
    scratch: Scratch,
    /// The target, then its neighbours.
    rows: Vec<u32>,
    traces: Vec<RowTrace>,
    aggregate: Vec<f32>,
    gradient: Vec<f64>,
    /// Of the first layer's weights, the rows that are not zero, where the input is sparse.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    /// Where in the gradient all is dense.
    dense_from: usize,
}

impl<'r> Sample<'r> {
    fn new(ready: &'r PreparedNetwork<'r>) -> Self {
        let arch = &ready.sage.architecture;
        Sample {
            ready,
            scratch: Scratch::new(ready),
            rows: vec![],
            traces: vec![RowTrace::default(); arch.blocks()],
            aggregate: vec![0.0; ready.padded_width],
            gradient: vec![0.0; ready.sage.parameter_count()],
            touched: vec![],
            is_touched: vec![false; arch.inputs],
            dense_from: 0,
        }
    }

    fn slot(&self, linear: usize) -> &'r Linear {
        &self.ready.sage.values.layout.linears[linear]
    }

    /// Forgets the last sample.
    fn clear(&mut self, input: Input<'_>) {
        let outputs = self.slot(0).outputs;
        for row in self.touched.drain(..) {
            self.gradient[row as usize * outputs..][..outputs].fill(0.0);
            self.is_touched[row as usize] = false;
        }
        self.dense_from = if matches!(input, Input::Sparse { .. }) { self.slot(0).weight.end } else { 0 };
        self.gradient[self.dense_from..].fill(0.0);
    }

    fn compute(&mut self, batch: Batch<'_>, target: u32, neighbours: &[u32]) {
        let input = batch.inputs.as_slice()[0];
        self.clear(input);
        self.rows.clear();
        self.rows.push(target);
        self.rows.extend_from_slice(neighbours);
        let (ready, width, arch) = (self.ready, self.ready.padded_width, &self.ready.sage.architecture);
        // The base, for all rows of the sample.
        let rows = std::mem::take(&mut self.rows);
        for trace in &mut self.traces {
            trace.pre.resize(rows.len() * width, 0.0);
            trace.out.resize(rows.len() * width, 0.0);
            trace.inverse.resize(1, 0.0);
        }
        for (k, rows) in rows.chunks(BLOCK).enumerate() {
            for block in 0..arch.base_layers {
                self.forward(block, input, rows, k * BLOCK);
            }
        }
        // The neighbours' sum, and what follows, for the target alone.
        self.aggregate.fill(0.0);
        for row in self.traces[arch.base_layers - 1].out.chunks_exact(width).take(rows.len()).skip(1) {
            self.aggregate.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        for block in arch.base_layers..arch.blocks() {
            self.forward(block, input, &[target], 0);
        }
        let mut d = self.head(batch, target);
        for block in (arch.base_layers..arch.blocks()).rev() {
            self.backward(block, input, &[target], 0, &d);
            d.clear();
            d.extend_from_slice(&self.scratch.dx[..ready.spread(block)]);
        }
        // Of what the convolution read, the first half is the aggregate, the second the target's own row.
        let (d_aggregate, d_own) = d.split_at(width);
        for (k, rows) in rows.chunks(BLOCK).enumerate() {
            let mut d: Vec<f32> = rows.iter().flat_map(|_| d_aggregate).copied().collect();
            if k == 0 {
                d[..width].copy_from_slice(d_own);
            }
            for block in (0..arch.base_layers).rev() {
                self.backward(block, input, rows, k * BLOCK, &d);
                if block > 0 {
                    d.copy_from_slice(&self.scratch.dx[..rows.len() * width]);
                }
            }
        }
        self.rows = rows;
    }

    /// A block forward, for rows of the sample from `first` on.
    fn forward(&mut self, block: usize, input: Input<'_>, rows: &[u32], first: usize) {
        let width = self.ready.padded_width;
        let range = first * width..(first + rows.len()) * width;
        let (before, this) = self.traces.split_at_mut(block);
        let RowTrace { pre, inverse, out } = &mut this[0];
        let from = Sources { input, rows, aggregate: &self.aggregate };
        let earlier = |b: usize| &before[b].out[range.clone()];
        self.ready.read(block, from, earlier, &mut self.scratch);
        self.ready.before_norm(block, from, &self.scratch.x, &mut pre[range.clone()], inverse);
        self.ready.after_norm(block, rows, &pre[range.clone()], &mut out[range.clone()]);
    }

    /// The loss; gives the gradient by the last block's output.
    fn head(&mut self, batch: Batch<'_>, target: u32) -> Vec<f32> {
        let ready = self.ready;
        let head = ready.weights.last().expect("there is a head");
        let slot = self.slot(ready.weights.len() - 1);
        let x = &self.traces.last().expect("there is a joint block").out[..ready.padded_width];
        let Scratch { logits, d_logits, .. } = &mut self.scratch;
        let (logits, d_logits) = (&mut logits[..head.outputs], &mut d_logits[..head.outputs]);
        head.forward(1, Operand::dense(x, ready.padded_width), logits);
        let classes = ready.sage.architecture.classes;
        let loss = Loss { batch, rows: &[target], classes, scale: 1.0 };
        loss.backward(head.outputs, logits, d_logits, None);
        let mut d = vec![0.0; ready.padded_width];
        head.backward(1, Matrix { values: d_logits, stride: head.outputs }, &mut d);
        add_dense(&mut self.gradient, slot, x, d_logits);
        d
    }

    /// A block backward; leaves the gradient with respect to its input in `scratch.dx`.
    fn backward(&mut self, block: usize, input: Input<'_>, rows: &[u32], first: usize, g: &[f32]) {
        let (ready, width, count) = (self.ready, self.ready.padded_width, rows.len());
        let range = first * width..(first + count) * width;
        let RowTrace { pre, inverse, out } = &self.traces[block];
        let mut g = g.to_vec();
        ready.to_norm(block, rows, &out[range.clone()], &mut g);
        let from = Sources { input, rows, aggregate: &self.aggregate };
        ready.read(block, from, |b| &self.traces[b].out[range.clone()], &mut self.scratch);
        let normed = Normed { pre: &pre[range], inverse };
        ready.to_linear(block, normed, count, &g, &mut self.scratch);
        if ready.sage.architecture.norm == Norm::Group {
            let [gamma, beta] = ready.sage.values.layout.norm_vectors(block).expect("there is a norm");
            for (slot, values) in [(gamma, &self.scratch.d_gamma), (beta, &g)] {
                let range = ready.sage.values.layout.vectors[slot].range.clone();
                for row in values.chunks_exact(width).take(count) {
                    let sums = self.gradient[range.clone()].iter_mut().zip(row);
                    sums.for_each(|(sum, value)| *sum += f64::from(*value));
                }
            }
        }
        let slot = self.slot(block);
        for (r, &row) in rows.iter().enumerate() {
            let delta = &self.scratch.delta[r * width..][..slot.outputs];
            if block == 0 && matches!(input, Input::Sparse { .. }) {
                let (indices, values) = input.entries(row);
                for (n, &i) in indices.iter().enumerate() {
                    if !std::mem::replace(&mut self.is_touched[i as usize], true) {
                        self.touched.push(i);
                    }
                    let x = values.map_or(1.0, |values| values[n]);
                    let start = slot.weight.start + i as usize * slot.outputs;
                    add(&mut self.gradient[start..], x, delta);
                }
                add(&mut self.gradient[slot.bias.start..], 1.0, delta);
            } else {
                let x = &self.scratch.x[r * slot.inputs_padded..][..slot.inputs_padded];
                add_dense(&mut self.gradient, slot, x, delta);
            }
        }
        if block > 0 {
            ready.to_sources(block, count, &mut self.scratch);
        }
    }

    /// The parts of the gradient that are not zero for sure.
    fn parts(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let outputs = self.slot(0).outputs;
        let touched =
            self.touched.iter().map(move |&row| row as usize * outputs..(row as usize + 1) * outputs);
        touched.chain(std::iter::once(self.dense_from..self.gradient.len()))
    }

    /// The norm of the gradient, rounded up.
    fn norm(&self) -> f64 {
        let mut squares = 0.0;
        for part in self.parts() {
            squares += self.gradient[part].iter().map(|g| g * g).sum::<f64>();
        }
        squares.sqrt() * (1.0 + (self.gradient.len() + 8) as f64 * f64::EPSILON)
    }

    fn add_scaled(&self, factor: f64, sums: &mut [f64]) {
        for part in self.parts() {
            for (sum, g) in sums[part.clone()].iter_mut().zip(&self.gradient[part]) {
                *sum += factor * g;
            }
        }
    }
}

fn add(sums: &mut [f64], x: f32, delta: &[f32]) {
    for (sum, d) in sums.iter_mut().zip(delta) {
        *sum += f64::from(x) * f64::from(*d);
    }
}

/// Adds a row's gradient by the weights and the bias of a linear layer.
fn add_dense(gradient: &mut [f64], slot: &Linear, x: &[f32], delta: &[f32]) {
    let delta = &delta[..slot.outputs];
    for (column, row) in slot.input_rows() {
        add(&mut gradient[slot.weight.start + row * slot.outputs..], x[column], delta);
    }
    add(&mut gradient[slot.bias.start..], 1.0, delta);
}
