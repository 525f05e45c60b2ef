//! The gradient over a whole batch, and one step with it.
//!
//! Without batch normalisation one pass over the rows does. With it, each layer needs the statistics of those below
//! before, and the sums `dβ`, `dγ` of those above for its gradient: one pass per layer upwards for the statistics,
//! one per layer downwards for the gradients (see `layer/batch_norm.rs`), none of which stores an activation.

use rayon::prelude::*;

use crate::block::{BLOCK, Depth, Prepared, Rows};
use crate::error::{Error, Result};
use crate::input::Batch;
use crate::layer::Norm;
use crate::layer::batch_norm::{EPSILON, MOMENTUM, Moments};
use crate::loss::Tally;
use crate::network::Network;
use crate::optim::Optimiser;
use crate::pool::Lent;
use crate::train::sink::Sums;
use crate::train::{EpochStats, apply, chunks};

/// The gradient of the mean loss over a batch.
#[derive(Debug, Clone)]
pub struct Gradient {
    /// By the trained parameters, in the order of [`Network::trained`].
    pub values: Vec<f32>,
    /// Loss and accuracy with the parameters as they are.
    pub stats: EpochStats,
    /// Running statistics as they become by seeing this batch.
    statistics: Vec<f32>,
}

/// One step over a whole batch: gradient, running statistics, optimiser. `seed` is for dropout, and must differ from
/// step to step.
///
/// ```
/// use progap_nn::{Adam, Architecture, Batch, Input, Inputs, Network, Optimiser, epoch};
///
/// let x = [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0];
/// let labels = [0, 1, 1, 0];
/// let inputs = Inputs::new(vec![Input::Dense { columns: 2, values: &x }])?;
/// let batch = Batch::new(&inputs, &labels, &[0, 1, 2, 3], 2)?;
/// let mut network = Network::new(Architecture::new(vec![2], 2), 7)?;
/// let mut adam = Optimiser::adam(Adam { rate: 0.05, ..Adam::default() })?;
/// let first = epoch(&mut network, &mut adam, batch, 0)?;
/// for step in 1..100 {
///     epoch(&mut network, &mut adam, batch, step)?;
/// }
/// let last = epoch(&mut network, &mut adam, batch, 100)?;
/// assert!(last.loss < first.loss && last.accuracy == 1.0);
/// # Ok::<(), progap_nn::Error>(())
/// ```
pub fn epoch(
    network: &mut Network,
    optimiser: &mut Optimiser,
    batch: Batch<'_>,
    seed: u64,
) -> Result<EpochStats> {
    let gradient = gradient(network, batch, seed)?;
    apply(network, optimiser, &gradient.values)?;
    network.statistics = gradient.statistics;
    Ok(gradient.stats)
}

/// The gradient over a whole batch, in training mode. Nothing is changed. `seed` is for dropout.
///
/// The same bits on any number of threads.
pub fn gradient(network: &Network, batch: Batch<'_>, seed: u64) -> Result<Gradient> {
    network.check_inputs(batch.inputs)?;
    let norm = network.architecture().norm;
    if batch.is_empty() {
        return Err(Error::SmallBatch { rows: 0, why: "a gradient needs at least one row" });
    }
    if norm == Norm::Batch && batch.len() < 2 {
        return Err(Error::SmallBatch { rows: 1, why: "batch normalisation needs two rows in training" });
    }
    let mut prepared = Prepared::new(network, true);
    prepared.dropout = Some(seed);
    let mut statistics = network.statistics.clone();
    let mut values = vec![0.0; network.parameter_count()];
    let layers = network.architecture().layers;
    let tally = if norm == Norm::Batch {
        for layer in 0..layers {
            batch_statistics(&mut prepared, batch, layer, &mut statistics);
        }
        let mut tally = Tally::default();
        for layer in (0..layers).rev() {
            let (seen, sums) = pass(&prepared, batch, Depth::Layer(layer));
            combine(&mut prepared, batch.len(), layer, &sums, &mut values);
            tally = seen;
        }
        tally
    } else {
        let (tally, sums) = pass(&prepared, batch, Depth::All);
        for slot in 0..network.layout.linears.len() {
            copy_linear(network, slot, &sums, &mut values);
        }
        for slot in 0..network.layout.vectors.len() {
            copy_vector(network, slot, &sums, &mut values);
        }
        tally
    };
    let n = batch.len() as f64;
    let stats = EpochStats { loss: tally.loss / n, accuracy: tally.correct as f64 / n };
    Ok(Gradient { values: network.select_trained(&values), stats, statistics })
}

/// Mean and variance over the batch of what a layer's activation gives, for every branch in training.
fn batch_statistics(prepared: &mut Prepared<'_>, batch: Batch<'_>, layer: usize, statistics: &mut [f32]) {
    let network = prepared.network;
    let arch = network.architecture();
    let branches: Vec<usize> = (0..arch.inputs.len()).filter(|&b| !network.is_frozen(b)).collect();
    let wide = crate::layout::hidden_padded(arch.hidden);
    let ready = &*prepared;
    let parts: Vec<Vec<Moments>> = chunks(batch.rows)
        .into_par_iter()
        .map_init(
            || network.scratch(),
            |scratch, chunk| {
                let mut moments = vec![Moments::new(wide); branches.len()];
                for rows in chunk.chunks(BLOCK) {
                    for (&b, moments) in branches.iter().zip(&mut moments) {
                        scratch.branch(ready, b, Rows { inputs: batch.inputs, rows }, Some(layer));
                        moments.add_rows(rows.len(), scratch.activations(b, layer));
                    }
                }
                moments
            },
        )
        .collect();
    for (k, &b) in branches.iter().enumerate() {
        let mut total = Moments::new(wide);
        for part in &parts {
            total.merge(&part[k]);
        }
        let i = b * arch.layers + layer;
        let norm = &mut prepared.norms[i];
        let running = &network.layout.statistics[2 * i..2 * i + 2];
        for j in 0..arch.hidden {
            norm.mean[j] = total.mean[j] as f32;
            norm.inverse[j] = (1.0 / (total.squares[j] / total.count + EPSILON).sqrt()) as f32;
            let unbiased = total.squares[j] / (total.count - 1.0);
            for (range, new) in [(&running[0].range, total.mean[j]), (&running[1].range, unbiased)] {
                let value = &mut statistics[range.start + j];
                *value = ((1.0 - MOMENTUM) * f64::from(*value) + MOMENTUM * new) as f32;
            }
        }
    }
}

/// Forward and backward over all rows; sums over chunks are added up in order, in double precision.
fn pass(prepared: &Prepared<'_>, batch: Batch<'_>, depth: Depth) -> (Tally, Vec<f64>) {
    let network = prepared.network;
    let scale = 1.0 / batch.len() as f32;
    let parts: Vec<(Tally, Lent<'_, Vec<f32>>)> = chunks(batch.rows)
        .into_par_iter()
        .map_init(
            || network.scratch(),
            |scratch, chunk| {
                let mut sums = Sums::new(network);
                let mut tally = Tally::default();
                for rows in chunk.chunks(BLOCK) {
                    tally = tally.merge(scratch.train(prepared, batch, rows, scale, depth, &mut sums));
                }
                (tally, sums.values)
            },
        )
        .collect();
    let mut total = vec![0.0; network.layout.sums];
    let mut tally = Tally::default();
    for (part, sums) in &parts {
        tally = tally.merge(*part);
        for (total, sum) in total.iter_mut().zip(sums.iter()) {
            *total += f64::from(*sum);
        }
    }
    (tally, total)
}

fn copy_linear(network: &Network, slot: usize, sums: &[f64], values: &mut [f32]) {
    let slot = &network.layout.linears[slot];
    let (sums, columns) = (&sums[slot.sums()], slot.columns());
    let mut copy = |row: usize, start: usize| {
        let to = &mut values[start..start + slot.outputs];
        for (value, sum) in to.iter_mut().zip(&sums[row * columns..]) {
            *value = *sum as f32;
        }
    };
    for (column, row) in slot.input_rows() {
        copy(column, slot.weight.start + row * slot.outputs);
    }
    copy(slot.inputs_padded, slot.bias.start);
}

fn copy_vector(network: &Network, slot: usize, sums: &[f64], values: &mut [f32]) {
    let slot = &network.layout.vectors[slot];
    for (value, sum) in values[slot.range.clone()].iter_mut().zip(&sums[slot.sums..]) {
        *value = *sum as f32;
    }
}

/// Gradients of one layer of each branch, from sums over the three planes; with the top layer, of all that follows the
/// branches too.
fn combine(prepared: &mut Prepared<'_>, rows: usize, layer: usize, sums: &[f64], values: &mut [f32]) {
    let network = prepared.network;
    let (arch, layout) = (network.architecture(), &network.layout);
    for b in (0..arch.inputs.len()).filter(|&b| !network.is_frozen(b)) {
        let i = b * arch.layers + layer;
        copy_vector(network, 2 * i, sums, values);
        copy_vector(network, 2 * i + 1, sums, values);
        let per_row = |slot: usize| {
            let slot = &layout.vectors[slot];
            sums[slot.sums..][..slot.padded].iter().map(|sum| sum / rows as f64).collect::<Vec<_>>()
        };
        let (mean_gx, mean_g) = (per_row(2 * i), per_row(2 * i + 1));
        let norm = &mut prepared.norms[i];
        let slot = &layout.linears[i];
        let (wide, columns, sums) = (slot.outputs_padded, slot.columns(), &sums[slot.sums()]);
        let mut combine = |row: usize, start: usize| {
            let sums = &sums[row * columns..][..columns];
            for j in 0..slot.outputs {
                let planes = [0, 1, 2].map(|plane| sums[plane * wide + j]);
                let centred = planes[0] - mean_g[j] * planes[1] - mean_gx[j] * planes[2];
                values[start + j] = (f64::from(norm.gamma[j]) * f64::from(norm.inverse[j]) * centred) as f32;
            }
        };
        for (column, row) in slot.input_rows() {
            combine(column, slot.weight.start + row * slot.outputs);
        }
        combine(slot.inputs_padded, slot.bias.start);
        norm.mean_g = mean_g.iter().map(|&v| v as f32).collect();
        norm.mean_gx = mean_gx.iter().map(|&v| v as f32).collect();
    }
    if layer + 1 == arch.layers {
        for slot in (0..layout.linears.len()).filter(|&s| layout.linears[s].branch.is_none()) {
            copy_linear(network, slot, sums, values);
        }
        for slot in (0..layout.vectors.len()).filter(|&s| layout.vectors[s].branch.is_none()) {
            copy_vector(network, slot, sums, values);
        }
    }
}
