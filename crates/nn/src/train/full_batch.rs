//! The gradient over a whole batch, and one step with it.
//!
//! Without batch normalisation one pass over the rows does. With it, each layer needs the statistics of those below
//! before, and the sums `dβ`, `dγ` of those above for its gradient: one pass per layer upwards for the statistics, then
//! downwards for the gradients (see `layer/batch_norm.rs`). What passes share is kept if it fits in cache.

use std::ops::Range;

use crate::block::{Depth, Prepared, Rows, last_layers};
use crate::error::{Error, Result};
use crate::folded;
use crate::input::Batch;
use crate::layer::Norm;
use crate::layer::batch_norm::{Columns, Moments, PLANES, take_moments};
use crate::loss::Tally;
use crate::network::{Closing, Network};
use crate::optim::Optimiser;
use crate::train::sink::Sums;
use crate::train::{EpochStats, Traces, apply, chunks, total};

/// The most values of traces that are kept: what a cache shared by a few cores holds.
const KEPT: usize = 1 << 22;

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
    network.values.statistics = gradient.statistics;
    Ok(gradient.stats)
}

/// The gradient over a whole batch, in training mode. Nothing is changed. `seed` is for dropout.
///
/// The same bits on any number of threads.
pub fn gradient(network: &Network, batch: Batch<'_>, seed: u64) -> Result<Gradient> {
    gradient_keeping(network, batch, seed, KEPT)
}

/// As [`gradient`]; traces of at most so many values are kept between passes.
fn gradient_keeping(network: &Network, batch: Batch<'_>, seed: u64, most: usize) -> Result<Gradient> {
    network.check_inputs(batch.inputs)?;
    let norm = network.architecture().norm;
    if batch.is_empty() {
        return Err(Error::SmallBatch { rows: 0, why: "a gradient needs at least one row" });
    }
    if norm == Norm::Batch && batch.len() < 2 {
        return Err(Error::SmallBatch { rows: 1, why: "batch normalisation needs two rows in training" });
    }
    let mut statistics = network.values.statistics.clone();
    let prepare = || Prepared { dropout: Some(seed), ..Prepared::new(network, true) };
    let (tally, values) = match norm {
        _ if folded::suits(network, true) => folded::gradient(network, batch, &mut statistics, most),
        Norm::Batch if network.architecture().closing == Closing::Combination => {
            let mut prepared = prepare();
            let mut traces = Traces::recomputed(network);
            for layer in 0..network.architecture().layers - 1 {
                batch_statistics(&mut prepared, batch, &mut traces, layer, &mut statistics);
            }
            closing_statistics(&mut prepared, batch, &mut statistics);
            plane_by_plane(&mut prepared, batch)
        }
        Norm::Batch => {
            let mut prepared = prepare();
            let mut traces = Traces::new(network, batch.rows, most);
            for layer in 0..network.architecture().layers {
                batch_statistics(&mut prepared, batch, &mut traces, layer, &mut statistics);
            }
            match traces.are_kept() {
                true => layer_by_layer(&mut prepared, batch, &mut traces),
                false => plane_by_plane(&mut prepared, batch),
            }
        }
        _ => at_once(&prepare(), batch),
    };
    let n = batch.len() as f64;
    let stats = EpochStats { loss: tally.loss / n, accuracy: tally.correct as f64 / n };
    Ok(Gradient { values: network.select_trained(values), stats, statistics })
}

/// Mean and variance over the batch of what a layer's activation gives, for every branch in training.
fn batch_statistics<'n>(
    prepared: &mut Prepared<'_>,
    batch: Batch<'_>,
    traces: &mut Traces<'n, &'n Network>,
    layer: usize,
    statistics: &mut [f32],
) {
    let network = prepared.network;
    let arch = network.architecture();
    let branches: Vec<usize> = (0..arch.inputs.len()).filter(|&b| !network.is_frozen(b)).collect();
    let wide = crate::layout::hidden_padded(arch.hidden);
    let kept = traces.are_kept();
    let ready = &*prepared;
    let start = || vec![Moments::new(wide); branches.len()];
    let mut parts: Vec<Vec<Moments>> = chunks(batch.rows).iter().map(|_| start()).collect();
    traces.pass(batch.rows, &mut parts, |scratch, trace, rows, moments| {
        for (&b, moments) in branches.iter().zip(moments) {
            let inputs = batch.inputs;
            let a = scratch.activations(ready, trace, b, layer, Rows { inputs, rows }, kept);
            moments.add_rows(rows.len(), a);
        }
    });
    for (k, &b) in branches.iter().enumerate() {
        let i = b * arch.layers + layer;
        let running = network.values.layout.running(i);
        take_moments(parts.iter().map(|part| &part[k]), &mut prepared.norms[i], running, statistics);
    }
}

/// Mean and variance over the batch of the combination, where that is normalised.
fn closing_statistics(prepared: &mut Prepared<'_>, batch: Batch<'_>, statistics: &mut [f32]) {
    let network = prepared.network;
    let (arch, columns) = (network.architecture(), prepared.closing.mean.len());
    let ready = &*prepared;
    let mut parts: Vec<Moments> = chunks(batch.rows).iter().map(|_| Moments::new(columns)).collect();
    Traces::recomputed(network).pass(batch.rows, &mut parts, |scratch, trace, rows, moments| {
        moments.add_rows(rows.len(), scratch.combine(ready, trace, Rows { inputs: batch.inputs, rows }));
    });
    let wide = columns / arch.groups();
    for (part, i) in last_layers(arch).enumerate() {
        let moments: Vec<Moments> = parts.iter().map(|m| m.part(part * wide, wide)).collect();
        let running = network.values.layout.running(i);
        take_moments(moments.iter(), &mut prepared.norms[i], running, statistics);
    }
    prepared.closing = Columns::side_by_side(last_layers(arch).map(|i| prepared.norms[i].clone()));
}

/// Loss and sums over the rows of one chunk.
struct Part<'n> {
    tally: Tally,
    sums: Sums<'n>,
}

/// The parts of all chunks; they are added up in order, in double precision.
struct Parts<'n> {
    network: &'n Network,
    parts: Vec<Part<'n>>,
    planes: usize,
}

impl<'n> Parts<'n> {
    fn new(network: &'n Network, rows: &[u32], planes: usize) -> Self {
        let part = |_| Part { tally: Tally::default(), sums: Sums::new(network, planes) };
        Parts { network, parts: chunks(rows).iter().map(part).collect(), planes }
    }

    fn tally(&self) -> Tally {
        self.parts.iter().fold(Tally::default(), |tally, part| tally.merge(part.tally))
    }

    fn total(&self, range: Range<usize>) -> Vec<f64> {
        total(self.parts.iter().map(|part| &part.sums.values[range.clone()]))
    }

    fn vector(&self, slot: usize) -> Vec<f64> {
        self.total(self.network.values.layout.vectors[slot].sums(self.planes))
    }

    fn copy_vector(&self, slot: usize, values: &mut [f32]) {
        let range = self.network.values.layout.vectors[slot].range.clone();
        for (value, sum) in values[range].iter_mut().zip(self.vector(slot)) {
            *value = sum as f32;
        }
    }

    /// Writes the gradient of a linear layer, each row of which `combine` makes of a row of sums.
    fn copy_linear(&self, slot: usize, values: &mut [f32], combine: impl Fn(usize, &[f64]) -> f64) {
        let slot = &self.network.values.layout.linears[slot];
        let (sums, columns) = (self.total(slot.sums(self.planes)), slot.columns(self.planes));
        let mut copy = |row: usize, start: usize| {
            let sums = &sums[row * columns..][..columns];
            for (j, value) in values[start..start + slot.outputs].iter_mut().enumerate() {
                *value = combine(j, sums) as f32;
            }
        };
        for (column, row) in slot.input_rows() {
            copy(column, slot.weight.start + row * slot.outputs);
        }
        copy(slot.inputs_padded, slot.bias.start);
    }

    /// Writes all gradients but those of the branches' linear layers, which `linear` may want.
    fn copy(&self, values: &mut [f32], linear: impl Fn(Option<usize>) -> bool) {
        let layout = &self.network.values.layout;
        for slot in (0..layout.linears.len()).filter(|&slot| linear(layout.linears[slot].branch)) {
            self.copy_linear(slot, values, |j, sums| sums[j]);
        }
        for slot in 0..layout.vectors.len() {
            self.copy_vector(slot, values);
        }
    }

    /// Tells the norm of a layer its `dβ / n` and `dγ / n`.
    fn centre(&self, prepared: &mut Prepared<'_>, layer: usize, rows: usize) {
        for i in layers(self.network, layer) {
            let [gamma, beta] = self.norm_means(i, rows);
            prepared.norms[i].mean_gx = gamma;
            prepared.norms[i].mean_g = beta;
        }
    }

    /// As [`Parts::centre`], for the norm of the combination.
    fn centre_closing(&self, prepared: &mut Prepared<'_>, rows: usize) {
        for i in last_layers(self.network.architecture()) {
            let [gamma, beta] = self.norm_means(i, rows);
            prepared.closing.mean_gx.extend(gamma);
            prepared.closing.mean_g.extend(beta);
        }
    }

    /// `dγ / n` and `dβ / n` of the norm after layer `i`.
    fn norm_means(&self, i: usize, rows: usize) -> [Vec<f32>; 2] {
        let per_row = |slot| self.vector(slot).into_iter().map(|sum| (sum / rows as f64) as f32).collect();
        self.network.values.layout.norm_vectors(i).expect("there is a norm").map(per_row)
    }
}

/// One pass, where no layer mixes rows.
fn at_once(prepared: &Prepared<'_>, batch: Batch<'_>) -> (Tally, Vec<f32>) {
    let network = prepared.network;
    let mut parts = Parts::new(network, batch.rows, 1);
    let scale = 1.0 / batch.len() as f32;
    Traces::recomputed(network).pass(batch.rows, &mut parts.parts, |scratch, trace, rows, part| {
        let seen = scratch.train(prepared, trace, batch, rows, scale, Depth::All, &mut part.sums);
        part.tally = part.tally.merge(seen);
    });
    let mut values = vec![0.0; network.parameter_count()];
    parts.copy(&mut values, |_| true);
    (parts.tally(), values)
}

/// With batch normalisation and kept traces: one pass for all that follows the branches, and one for each layer.
fn layer_by_layer<'n>(
    prepared: &mut Prepared<'_>,
    batch: Batch<'_>,
    traces: &mut Traces<'n, &'n Network>,
) -> (Tally, Vec<f32>) {
    let network = prepared.network;
    let mut parts = Parts::new(network, batch.rows, 1);
    let scale = 1.0 / batch.len() as f32;
    let ready = &*prepared;
    traces.pass(batch.rows, &mut parts.parts, |scratch, trace, rows, part| {
        let seen = scratch.train_top(ready, trace, batch, rows, scale, &mut part.sums);
        part.tally = part.tally.merge(seen);
    });
    for layer in (0..network.architecture().layers).rev() {
        parts.centre(prepared, layer, batch.len());
        let ready = &*prepared;
        traces.pass(batch.rows, &mut parts.parts, |scratch, trace, rows, part| {
            scratch.train_layer(ready, trace, layer, Rows { inputs: batch.inputs, rows }, &mut part.sums);
        });
    }
    let mut values = vec![0.0; network.parameter_count()];
    parts.copy(&mut values, |_| true);
    (parts.tally(), values)
}

/// With batch normalisation and nothing kept: one pass for each layer, which adds up three planes of gradients.
fn plane_by_plane(prepared: &mut Prepared<'_>, batch: Batch<'_>) -> (Tally, Vec<f32>) {
    let network = prepared.network;
    let arch = network.architecture();
    let scale = 1.0 / batch.len() as f32;
    let mut values = vec![0.0; network.parameter_count()];
    let mut tally = Tally::default();
    if arch.closing == Closing::Combination {
        let mut parts = Parts::new(network, batch.rows, 1);
        let ready = &*prepared;
        Traces::recomputed(network).pass(batch.rows, &mut parts.parts, |scratch, trace, rows, part| {
            scratch.train(ready, trace, batch, rows, scale, Depth::Closing, &mut part.sums);
        });
        parts.centre_closing(prepared, batch.len());
    }
    for layer in (0..arch.layers).rev() {
        let plain = arch.is_plain(layer);
        let mut parts = Parts::new(network, batch.rows, if plain { 1 } else { PLANES });
        let ready = &*prepared;
        Traces::recomputed(network).pass(batch.rows, &mut parts.parts, |scratch, trace, rows, part| {
            let depth = Depth::Layer(layer);
            let seen = scratch.train(ready, trace, batch, rows, scale, depth, &mut part.sums);
            part.tally = part.tally.merge(seen);
        });
        tally = parts.tally();
        if layer + 1 == arch.layers {
            parts.copy(&mut values, |branch| branch.is_none());
        }
        if plain {
            layers(network, layer).for_each(|i| parts.copy_linear(i, &mut values, |j, sums| sums[j]));
            continue;
        }
        parts.centre(prepared, layer, batch.len());
        for i in layers(network, layer) {
            for slot in network.values.layout.norm_vectors(i).expect("there is a norm") {
                parts.copy_vector(slot, &mut values);
            }
            let (norm, wide) = (&prepared.norms[i], network.values.layout.linears[i].outputs_padded);
            parts.copy_linear(i, &mut values, |j, sums| {
                let [g, one, x] = [0, 1, 2].map(|plane| sums[plane * wide + j]);
                let centred = g - f64::from(norm.mean_g[j]) * one - f64::from(norm.mean_gx[j]) * x;
                f64::from(norm.gamma[j]) * f64::from(norm.inverse[j]) * centred
            });
        }
    }
    (tally, values)
}

/// Layer `l` of every branch, by number.
fn layers(network: &Network, l: usize) -> impl Iterator<Item = usize> {
    let arch = network.architecture();
    (0..arch.inputs.len()).map(move |b| b * arch.layers + l)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Architecture, Input, Inputs, Jk};

    /// A sparse and a dense input of 300 rows.
    fn with_batch(work: impl Fn(Batch<'_>)) {
        let rows = 300;
        let value = |i: usize| ((i as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0;
        let dense: Vec<f32> = (0..rows * 5).map(value).collect();
        let offsets: Vec<u64> = (0..=rows as u64).map(|r| 2 * r).collect();
        let indices: Vec<u32> = (0..rows as u32).flat_map(|r| [r % 7, 7 + r * r % 4]).collect();
        let labels: Vec<u32> = (0..rows as u32).map(|r| r * r % 3).collect();
        let all: Vec<u32> = (0..rows as u32).rev().collect();
        let inputs = Inputs::new(vec![
            Input::Sparse { columns: 11, offsets: &offsets, indices: &indices, values: None },
            Input::Dense { columns: 5, values: &dense },
        ])
        .unwrap();
        work(Batch::new(&inputs, &labels, &all, 3).unwrap());
    }

    fn assert_close(a: &Gradient, b: &Gradient, what: &str) {
        assert!((a.stats.loss - b.stats.loss).abs() < 1e-6);
        let largest = a.values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
        for (a, b) in a.values.iter().zip(&b.values) {
            assert!((a - b).abs() < 1e-5 * largest, "{what}: {a} {b}");
        }
    }

    /// What is kept and what is computed again must not matter.
    #[test]
    fn both_ways_through_a_batch_normalisation_agree() {
        with_batch(|batch| {
            for jk in [Jk::Cat, Jk::Max, Jk::Attention { heads: 2 }] {
                for (layers, dropout, frozen) in
                    [(1, 0.0, false), (1, 0.3, true), (3, 0.2, false), (2, 0.0, true), (3, 0.0, false)]
                {
                    for closing in [Closing::Branch, Closing::Combination] {
                        let arch = Architecture::new(vec![11, 5], 3);
                        let arch = Architecture { layers, dropout, jk, closing, hidden: 10, ..arch };
                        let mut network = Network::new(arch, 5).unwrap();
                        network.freeze(0, frozen).unwrap();
                        let [kept, again] =
                            [usize::MAX, 0].map(|most| gradient_keeping(&network, batch, 9, most).unwrap());
                        assert_eq!(kept.statistics, again.statistics);
                        assert_close(&kept, &again, &format!("{jk:?} {layers} {closing:?}"));
                    }
                }
            }
        });
    }

    /// A dropout that never drops anything goes the general way.
    #[test]
    fn folded_norms_give_what_norms_give() {
        with_batch(|batch| {
            for (layers, normalise, frozen) in
                [(1, true, false), (1, false, true), (2, true, true), (3, true, false)]
            {
                for (norm, closing) in [
                    (Norm::Batch, Closing::Branch),
                    (Norm::None, Closing::Branch),
                    (Norm::Batch, Closing::Combination),
                    (Norm::None, Closing::Combination),
                ] {
                    let [folded, general] = [0.0, 1e-12].map(|dropout| {
                        let arch = Architecture::new(vec![11, 5], 3);
                        let arch =
                            Architecture { layers, dropout, normalise, norm, closing, hidden: 10, ..arch };
                        let mut network = Network::new(arch, 5).unwrap();
                        network.freeze(1, frozen).unwrap();
                        assert_eq!(folded::suits(&network, true), dropout == 0.0);
                        gradient(&network, batch, 9).unwrap()
                    });
                    assert_close(&folded, &general, &format!("{layers} {norm:?} {closing:?}"));
                    for (a, b) in folded.statistics.iter().zip(&general.statistics) {
                        assert!((a - b).abs() < 1e-6, "{a} {b}");
                    }
                }
            }
        });
    }
}
