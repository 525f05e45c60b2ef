//! Training on all nodes at once: one block of layers after the other, since norms and aggregates need every row.
//!
//! Sums are taken over chunks of rows that do not depend on the number of threads, and added up in order in double
//! precision: the same bits on any number of threads.

use rayon::prelude::*;

use super::pass::{Normed, PreparedNetwork, Scratch, Sources};
use super::{Kind, Propagate, Sage};
use crate::error::{Error, Result};
use crate::input::{Batch, Input};
use crate::kernel::product::{Matrix, add_rows};
use crate::layer::Norm;
use crate::layer::batch_norm::{Moments, add_sums, take_moments};
use crate::layer::linear::{self, Operand};
use crate::loss::{Loss, Tally};
use crate::optim::Optimiser;
use crate::pass::BLOCK;
use crate::train::{EpochStats, chunks, total};

/// A gradient over a whole batch.
#[derive(Debug, Clone)]
pub struct SageGradient {
    /// By all parameters.
    pub values: Vec<f32>,
    /// Loss and accuracy with the parameters as they are.
    pub stats: EpochStats,
    /// Running statistics as they become by seeing this batch.
    statistics: Vec<f32>,
}

/// One step over a whole batch: gradient, running statistics, optimiser. `seed` is for dropout, and must differ from
/// step to step.
pub fn sage_epoch(
    sage: &mut Sage,
    optimiser: &mut Optimiser,
    batch: Batch<'_>,
    propagate: &impl Propagate,
    seed: u64,
) -> Result<EpochStats> {
    let gradient = sage_gradient(sage, batch, propagate, seed)?;
    sage.apply(optimiser, &gradient.values)?;
    sage.values.statistics = gradient.statistics;
    Ok(gradient.stats)
}

/// The gradient of the mean loss over the batch's rows, in training mode. Nothing is changed. `seed` is for dropout.
///
/// The same bits on any number of threads.
pub fn sage_gradient(
    sage: &Sage,
    batch: Batch<'_>,
    propagate: &impl Propagate,
    seed: u64,
) -> Result<SageGradient> {
    sage.check_inputs(batch.inputs)?;
    Sage::check_nodes(batch.inputs, propagate)?;
    if batch.is_empty() {
        return Err(Error::SmallBatch { rows: 0, why: "a gradient needs at least one row" });
    }
    if sage.architecture.norm == Norm::Batch && batch.inputs.rows() < 2 {
        return Err(Error::SmallBatch { rows: 1, why: "batch normalisation needs two rows in training" });
    }
    let mut tape = sage.tapes.lend(Tape::default);
    let rows: Vec<u32> = (0..batch.inputs.rows() as u32).collect();
    let mut step = Step {
        ready: PreparedNetwork { dropout: Some(seed), ..PreparedNetwork::new(sage, true) },
        input: batch.inputs.as_slice()[0],
        chunk: chunks(&rows)[0].len(),
        rows: &rows,
        statistics: sage.values.statistics.clone(),
        values: vec![0.0; sage.parameter_count()],
    };
    let blocks = sage.architecture.blocks();
    tape.traces.resize_with(blocks, BlockTrace::default);
    for block in 0..blocks {
        step.forward(block, propagate, &mut tape);
    }
    let tally = step.head(batch, tape.traces.last_mut().expect("there is a joint block"));
    for block in (0..blocks).rev() {
        step.backward(block, propagate, &mut tape);
    }
    let n = batch.len() as f64;
    let stats = EpochStats { loss: tally.loss / n, accuracy: tally.correct as f64 / n };
    Ok(SageGradient { values: step.values, stats, statistics: step.statistics })
}

/// Buffers that a step keeps for all rows; used again from step to step.
#[derive(Debug, Default)]
pub(super) struct Tape {
    traces: Vec<BlockTrace>,
    /// The gradient by what a block read.
    sources: Vec<f32>,
    /// The part of it by the aggregate, and that part taken back along the graph.
    aggregate: Vec<f32>,
    back: Vec<f32>,
}

/// Buffers that a block keeps.
#[derive(Debug, Default)]
struct BlockTrace {
    /// The aggregate, of a convolution.
    aggregate: Vec<f32>,
    /// The input of the norm; of a convolution also the inverse lengths.
    pre: Vec<f32>,
    inverse: Vec<f32>,
    out: Vec<f32>,
    /// The gradient by `out`, then by the norm's output.
    d: Vec<f32>,
}

struct Step<'s> {
    ready: PreparedNetwork<'s>,
    input: Input<'s>,
    rows: &'s [u32],
    /// Rows in a chunk.
    chunk: usize,
    statistics: Vec<f32>,
    values: Vec<f32>,
}

/// The rows of a list that belong to a few consecutive rows.
fn part<'v>(values: &'v [f32], rows: &[u32], width: usize) -> &'v [f32] {
    if values.is_empty() { values } else { &values[rows[0] as usize * width..][..rows.len() * width] }
}

impl Step<'_> {
    fn forward(&mut self, block: usize, propagate: &impl Propagate, tape: &mut Tape) {
        let (ready, width, input) = (&self.ready, self.ready.padded_width, self.input);
        let (rows, chunk) = (self.rows, self.chunk);
        let (before, this) = tape.traces.split_at_mut(block);
        let BlockTrace { aggregate, pre, inverse, out, .. } = &mut this[0];
        pre.resize(rows.len() * width, 0.0);
        out.resize(rows.len() * width, 0.0);
        inverse.resize(rows.len(), 0.0);
        if ready.kind(block) == Kind::Convolution {
            aggregate.resize(rows.len() * width, 0.0);
            propagate.forward(width, &before[block - 1].out, aggregate);
        }
        let moments: Vec<Moments> = rows
            .par_chunks(chunk)
            .zip(pre.par_chunks_mut(chunk * width))
            .zip(inverse.par_chunks_mut(chunk))
            .map_init(
                || Scratch::new(ready),
                |scratch, ((rows, pre), inverse)| {
                    let mut moments = Moments::new(width);
                    let parts = pre.chunks_mut(BLOCK * width).zip(inverse.chunks_mut(BLOCK));
                    for (rows, (pre, inverse)) in rows.chunks(BLOCK).zip(parts) {
                        let from = Sources { input, rows, aggregate: part(aggregate, rows, width) };
                        ready.read(block, from, |b| part(&before[b].out, rows, width), scratch);
                        ready.before_norm(block, from, &scratch.x, pre, inverse);
                        if ready.sage.architecture.norm == Norm::Batch {
                            moments.add_rows(rows.len(), pre);
                        }
                    }
                    moments
                },
            )
            .collect();
        if ready.sage.architecture.norm == Norm::Batch {
            self.take_moments(block, &moments);
        }
        let ready = &self.ready;
        let lists = pre.par_chunks(chunk * width).zip(out.par_chunks_mut(chunk * width));
        rows.par_chunks(chunk)
            .zip(lists)
            .for_each(|(rows, (pre, out))| ready.after_norm(block, rows, pre, out));
    }

    /// Mean and variance over all rows, for this step and the running estimates.
    fn take_moments(&mut self, block: usize, parts: &[Moments]) {
        let running = self.ready.sage.values.layout.running(block);
        take_moments(parts.iter(), &mut self.ready.norms[block], running, &mut self.statistics);
    }

    /// The last linear layer and the loss, for the labelled rows alone; their gradient, for all.
    fn head(&mut self, batch: Batch<'_>, last: &mut BlockTrace) -> Tally {
        let (ready, width, chunk) = (&self.ready, self.ready.padded_width, self.chunk);
        let (head, classes) =
            (ready.weights.last().expect("there is a head"), ready.sage.architecture.classes);
        let slot = ready.weights.len() - 1;
        let mut wanted = batch.rows.to_vec();
        wanted.sort_unstable();
        let scale = 1.0 / batch.len() as f32;
        let BlockTrace { out, d, .. } = last;
        d.clear();
        d.resize(out.len(), 0.0);
        let parts: Vec<(Tally, Vec<f32>)> = d
            .par_chunks_mut(chunk * width)
            .enumerate()
            .map_init(
                || Scratch::new(ready),
                |scratch, (k, d)| {
                    let first = k * chunk;
                    let at = |row: usize| wanted.partition_point(|&w| (w as usize) < row);
                    let own = &wanted[at(first)..at(first + chunk)];
                    let mut sums = vec![0.0; (head.inputs + 1) * head.outputs];
                    let mut tally = Tally::default();
                    for rows in own.chunks(BLOCK) {
                        let Scratch { x, logits, d_logits, dx, .. } = &mut *scratch;
                        let count = rows.len();
                        linear::gather(out, width, rows, x);
                        let x = Operand::dense(x, width);
                        head.forward(count, x, logits);
                        let used = count * head.outputs;
                        let (logits, d_used) = (&logits[..used], &mut d_logits[..used]);
                        let loss = Loss { batch, rows, classes, scale };
                        tally = tally.merge(loss.backward(head.outputs, logits, d_used, None));
                        let g = Matrix { values: d_logits, stride: head.outputs };
                        linear::add_gradient(count, x, head.inputs, g, &mut sums);
                        head.backward(count, g, dx);
                        for (&row, dx) in rows.iter().zip(dx.chunks_exact(width)) {
                            let d = &mut d[(row as usize - first) * width..][..width];
                            d.iter_mut().zip(dx).for_each(|(d, dx)| *d += dx);
                        }
                    }
                    (tally, sums)
                },
            )
            .collect();
        let mut tally = Tally::default();
        for (part, _) in &parts {
            tally = tally.merge(*part);
        }
        self.take_linear(slot, parts.iter().map(|(_, sums)| &sums[..]));
        tally
    }

    fn backward(&mut self, block: usize, propagate: &impl Propagate, tape: &mut Tape) {
        self.sums_of_norm(block, &mut tape.traces[block]);
        let (ready, width, input) = (&self.ready, self.ready.padded_width, self.input);
        let (rows, chunk) = (self.rows, self.chunk);
        let Tape { traces, sources, aggregate: d_aggregate, back } = tape;
        let (before, this) = traces.split_at_mut(block);
        let BlockTrace { aggregate, pre, inverse, d, .. } = &this[0];
        let weights = &ready.weights[block];
        let spread = if block == 0 { 0 } else { ready.spread(block) };
        let group = ready.sage.architecture.norm == Norm::Group;
        sources.resize(rows.len() * spread.max(1), 0.0);
        let parts: Vec<(Vec<f32>, Vec<f32>)> = rows
            .par_chunks(chunk)
            .zip(sources.par_chunks_mut(chunk * spread.max(1)))
            .map_init(
                || Scratch::new(ready),
                |scratch, (rows, sources)| {
                    let mut sums = vec![0.0; (weights.inputs + 1) * width];
                    let mut vectors = vec![0.0; if group { 2 * width } else { 0 }];
                    for (k, rows) in rows.chunks(BLOCK).enumerate() {
                        let count = rows.len();
                        let from = Sources { input, rows, aggregate: part(aggregate, rows, width) };
                        let (pre, inverse) = (part(pre, rows, width), part(inverse, rows, 1));
                        let g = part(d, rows, width);
                        ready.read(block, from, |b| part(&before[b].out, rows, width), scratch);
                        ready.to_linear(block, Normed { pre, inverse }, count, g, scratch);
                        if group {
                            let (gamma, beta) = vectors.split_at_mut(width);
                            add_rows(count, Matrix { values: &scratch.d_gamma, stride: width }, width, gamma);
                            add_rows(count, Matrix { values: g, stride: width }, width, beta);
                        }
                        let x = ready.operand(block, from, &scratch.x);
                        let delta = Matrix { values: &scratch.delta, stride: width };
                        linear::add_gradient(count, x, weights.inputs, delta, &mut sums);
                        if spread > 0 {
                            ready.to_sources(block, count, scratch);
                            let from = &scratch.dx[..count * spread];
                            sources[k * BLOCK * spread..][..count * spread].copy_from_slice(from);
                        }
                    }
                    (sums, vectors)
                },
            )
            .collect();
        match ready.kind(block) {
            _ if block == 0 => {}
            Kind::Dense => std::mem::swap(&mut before[block - 1].d, sources),
            Kind::Joint => {
                let convolutions = ready.sage.architecture.convolution_blocks();
                for (k, trace) in before[convolutions].iter_mut().enumerate() {
                    trace.d.resize(rows.len() * width, 0.0);
                    pick(sources, spread, k * width, width, chunk, &mut trace.d);
                }
            }
            Kind::Convolution => {
                d_aggregate.resize(rows.len() * width, 0.0);
                back.resize(rows.len() * width, 0.0);
                pick(sources, spread, 0, width, chunk, d_aggregate);
                propagate.backward(width, d_aggregate, back);
                let d = &mut before[block - 1].d;
                if !ready.sage.architecture.convolution_blocks().contains(&(block - 1)) {
                    // Nothing but this convolution reads the base.
                    d.clear();
                }
                d.resize(rows.len() * width, 0.0);
                let lists = sources.par_chunks(chunk * spread).zip(back.par_chunks(chunk * width));
                d.par_chunks_mut(chunk * width).zip(lists).for_each(|(d, (sources, back))| {
                    let lists = sources.chunks_exact(spread).zip(back.chunks_exact(width));
                    for (d, (own, back)) in d.chunks_exact_mut(width).zip(lists) {
                        for ((d, own), back) in d.iter_mut().zip(&own[width..]).zip(back) {
                            *d += own + back;
                        }
                    }
                });
            }
        }
        self.take_linear(block, parts.iter().map(|(sums, _)| &sums[..]));
        if group {
            for (k, slot) in self.norm_vectors(block).into_iter().enumerate() {
                let sums = total(parts.iter().map(|(_, vectors)| &vectors[k * width..][..width]));
                self.take_vector(slot, &sums);
            }
        }
    }

    /// Turns the gradient by a block's output into that by its norm's output; with batch normalisation also the sums
    /// that are its parameters' gradients.
    fn sums_of_norm(&mut self, block: usize, trace: &mut BlockTrace) {
        let (ready, width) = (&self.ready, self.ready.padded_width);
        let batch_norm = ready.sage.architecture.norm == Norm::Batch;
        let size = self.chunk * width;
        let lists = trace.pre.par_chunks(size).zip(trace.out.par_chunks(size));
        let parts: Vec<[Vec<f32>; 2]> = self
            .rows
            .par_chunks(self.chunk)
            .zip(trace.d.par_chunks_mut(size).zip(lists))
            .map(|(rows, (g, (pre, out)))| {
                let [mut sum_g, mut sum_gx] = [vec![0.0; width], vec![0.0; width]];
                let lists = pre.chunks(BLOCK * width).zip(out.chunks(BLOCK * width));
                for (rows, (g, (pre, out))) in rows.chunks(BLOCK).zip(g.chunks_mut(BLOCK * width).zip(lists))
                {
                    ready.to_norm(block, rows, out, g);
                    if batch_norm {
                        let sums = [&mut sum_gx[..], &mut sum_g[..]];
                        add_sums(&ready.norms[block], rows.len(), pre, g, sums);
                    }
                }
                [sum_gx, sum_g]
            })
            .collect();
        if batch_norm {
            let sums = [0, 1].map(|k| total(parts.iter().map(|part| &part[k][..])));
            for (slot, sums) in self.norm_vectors(block).into_iter().zip(&sums) {
                self.take_vector(slot, sums);
            }
            let sums = sums.each_ref().map(|sums| &sums[..]);
            self.ready.norms[block].take_sums(self.rows.len() as f64, sums);
        }
    }

    /// Scale and shift of a block's norm, by number.
    fn norm_vectors(&self, block: usize) -> [usize; 2] {
        self.ready.sage.values.layout.norm_vectors(block).expect("there is a norm")
    }

    /// Adds up a linear layer's sums and stores them as its gradient.
    fn take_linear<'p>(&mut self, slot: usize, parts: impl Iterator<Item = &'p [f32]>) {
        let slot = &self.ready.sage.values.layout.linears[slot];
        let totals = total(parts);
        let places = slot.input_rows().map(|(column, row)| (column, slot.weight.start + row * slot.outputs));
        for (row, start) in places.chain([(slot.inputs_padded, slot.bias.start)]) {
            let to = &mut self.values[start..start + slot.outputs];
            for (value, total) in to.iter_mut().zip(&totals[row * slot.outputs_padded..]) {
                *value = *total as f32;
            }
        }
    }

    fn take_vector(&mut self, slot: usize, totals: &[f64]) {
        let slot = &self.ready.sage.values.layout.vectors[slot];
        for (value, total) in self.values[slot.range.clone()].iter_mut().zip(totals) {
            *value = *total as f32;
        }
    }
}

/// Copies `width` columns from `first` on of rows that are `stride` apart.
fn pick(from: &[f32], stride: usize, first: usize, width: usize, chunk: usize, to: &mut [f32]) {
    to.par_chunks_mut(chunk * width).zip(from.par_chunks(chunk * stride)).for_each(|(to, from)| {
        for (to, from) in to.chunks_exact_mut(width).zip(from.chunks_exact(stride)) {
            to.copy_from_slice(&from[first..first + width]);
        }
    });
}
