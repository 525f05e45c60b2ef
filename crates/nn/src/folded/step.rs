//! The gradient over a whole batch: one pass per layer upwards, for the statistics of its norms; one for the head; and
//! one per layer downwards. What passes share is kept if it fits in cache, else computed again.

use super::pass::Part;
use super::{Fold, Folded, Trace};
use crate::block::Rows;
use crate::input::Batch;
use crate::kernel::strip::Slopes;
use crate::layer::Norm;
use crate::layer::batch_norm::{Columns, Moments, take_moments};
use crate::layout::Linear;
use crate::loss::Tally;
use crate::network::Network;
use crate::pool::Lent;
use crate::train::{Lender, Traces, chunks, total};

/// The gradient by all parameters, and what the loss was; `statistics` are moved towards those of the batch. Traces of at most
/// so many values are kept between passes.
pub(crate) fn gradient(
    network: &Network,
    batch: Batch<'_>,
    statistics: &mut [f32],
    most: usize,
) -> (Tally, Vec<f32>) {
    let mut traces = Traces::new(Folding(network), batch.rows, most);
    let kept = traces.are_kept();
    let mut folded = Folded::unfolded(network, true);
    for layer in 0..folded.layers {
        folded.fold(layer);
        forward(&mut folded, batch, &mut traces, layer, statistics);
    }
    folded.fold(folded.layers);
    let mut parts: Vec<Part> = chunks(batch.rows).iter().map(|_| Part::new(network)).collect();
    let scale = 1.0 / batch.len() as f32;
    let ready = &folded;
    traces.pass(batch.rows, &mut parts, |scratch, trace, rows, part| {
        if !kept {
            scratch.activate_all(ready, trace, Rows { inputs: batch.inputs, rows });
        }
        scratch.train_head(ready, trace, batch, rows, scale, Some(part));
    });
    let mut totals = Totals { values: vec![0.0; network.parameter_count()], rows: batch.len() as f64 };
    totals.head(&mut folded, &parts);
    for layer in (0..folded.layers).rev() {
        let ready = &folded;
        traces.pass(batch.rows, &mut parts, |scratch, trace, rows, part| {
            let rows = Rows { inputs: batch.inputs, rows };
            if !kept {
                scratch.activate_all(ready, trace, rows);
                scratch.train_head(ready, trace, batch, rows.rows, scale, None);
            }
            scratch.train_layer(ready, trace, layer, rows, kept, part);
        });
        totals.layer(&mut folded, &parts, layer);
    }
    let tally = parts.iter().fold(Tally::default(), |tally, part| tally.merge(part.tally));
    (tally, totals.values)
}

/// Memory for passes over a network that is folded.
#[derive(Clone, Copy)]
pub(crate) struct Folding<'n>(pub &'n Network);

impl<'n> Lender<'n> for Folding<'n> {
    type Scratch = super::Scratch;
    type Trace = Trace;

    fn scratch(self) -> Lent<'n, super::Scratch> {
        self.0.folded_scratch.lend(|| super::Scratch::new(self.0))
    }

    fn trace(self) -> Lent<'n, Trace> {
        self.0.folded_traces.lend(|| Trace::new(self.0))
    }

    fn trace_values(self) -> usize {
        Trace::values(self.0)
    }
}

/// What a layer's activation gives, for all rows; and the statistics of the norms after it, for branches in training. Of
/// last layers without an activation, what they give divided by the row's length, and the statistics of that.
fn forward<'n>(
    folded: &mut Folded<'_>,
    batch: Batch<'_>,
    traces: &mut Traces<'n, Folding<'n>>,
    layer: usize,
    statistics: &mut [f32],
) {
    let (network, wide, kept) = (folded.network, folded.wide, traces.are_kept());
    let ready = &*folded;
    let plain = network.architecture().is_plain(layer);
    let counted = |b: usize| network.architecture().norm == Norm::Batch && (plain || !network.is_frozen(b));
    let start = || (0..ready.hops).map(|_| Moments::new(wide)).collect();
    let mut parts: Vec<Vec<Moments>> = chunks(batch.rows).iter().map(|_| start()).collect();
    traces.pass(batch.rows, &mut parts, |scratch, trace, rows, moments| {
        let below = if kept { layer } else { 0 };
        for b in (0..ready.hops).filter(|&b| kept || counted(b)) {
            for l in below..=layer {
                scratch.activate(ready, trace, b, l, Rows { inputs: batch.inputs, rows });
            }
        }
        if plain {
            trace.divide(ready, rows.len());
        }
        for (b, moments) in moments.iter_mut().enumerate().filter(|&(b, _)| counted(b)) {
            moments.add_rows(rows.len(), trace.a(b * ready.layers + layer));
        }
    });
    for b in (0..folded.hops).filter(|&b| counted(b)) {
        let i = b * folded.layers + layer;
        let running = network.values.layout.running(i);
        let parts = parts.iter().map(|part| &part[b]);
        take_moments(parts, &mut folded.norms[i], running, statistics);
    }
}

/// The gradient so far, of what rows add up to.
struct Totals {
    values: Vec<f32>,
    rows: f64,
}

/// The sums of a linear layer, or of the part of it that reads one branch: `A` and `D`, and its weights.
#[derive(Clone, Copy)]
struct Reader<'s> {
    a: &'s [f64],
    d: &'s [f64],
    w: &'s [f32],
}

/// `Σ c`, `Σ c q` and `Σ c q²`.
struct Along {
    count: f64,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Totals {
    /// The gradient of the head, and of the norms before it.
    fn head(&mut self, folded: &mut Folded<'_>, parts: &[Part<'_>]) {
        let (network, wide) = (folded.network, folded.wide);
        let (layout, arch) = (&network.values.layout, network.architecture());
        let (slot, columns) = (layout.head(), layout.head().outputs_padded);
        let sums = total(parts.iter().map(|part| &part.sums.values[slot.sums(1)]));
        if folded.closes() {
            self.linear(slot, &sums, |_| (1.0, 0.0));
            (0..folded.hops).for_each(|b| self.closing(folded, parts, folded.last(b)));
            return;
        }
        let fold = |column: usize| (&folded.folds[folded.last(column / wide)], column % wide);
        self.linear(slot, &sums, |column| {
            let (fold, j) = fold(column);
            (fold.scale[j], fold.shift[j])
        });
        if arch.normalise {
            let bias = total(parts.iter().map(|part| &part.bias[..]));
            copy(&bias, &mut self.values[slot.bias.clone()]);
        }
        let w = network.values.weights(layout.linears.len() - 1, false).w;
        let (a, d) = sums.split_at(slot.inputs_padded * columns);
        for b in folded.trained().collect::<Vec<_>>() {
            let i = folded.last(b);
            let part = b * wide * columns..(b + 1) * wide * columns;
            let along = (arch.normalise && arch.norm == Norm::Batch).then(|| {
                let [second, first] = norm_sums(folded, parts, i);
                let count = parts.iter().map(|part| f64::from(part.along)).sum();
                Along { count, second, first }
            });
            self.norm(folded, i, Reader { a: &a[part.clone()], d, w: &w[part] }, along);
        }
    }

    /// The gradient of a layer of every branch, and of the norms before it.
    fn layer(&mut self, folded: &mut Folded<'_>, parts: &[Part<'_>], layer: usize) {
        let layout = &folded.network.values.layout;
        for i in folded.trained().map(|b| b * folded.layers + layer).collect::<Vec<_>>() {
            let slot = &layout.linears[i];
            let sums = total(parts.iter().map(|part| &part.sums.values[slot.sums(1)]));
            if layer == 0 {
                self.linear(slot, &sums, |_| (1.0, 0.0));
                continue;
            }
            let fold = &folded.folds[i - 1];
            self.linear(slot, &sums, |column| (fold.scale[column], fold.shift[column]));
            let w = folded.network.values.weights(i, false).w;
            let (a, d) = sums.split_at(slot.inputs_padded * slot.outputs_padded);
            self.norm(folded, i - 1, Reader { a, d, w: &w }, None);
        }
    }

    /// The gradient of a linear layer; `fold` gives scale and shift of each input.
    fn linear(&mut self, slot: &Linear, sums: &[f64], fold: impl Fn(usize) -> (f32, f32)) {
        let (a, d) = sums.split_at(slot.inputs_padded * slot.outputs_padded);
        for (column, row) in slot.input_rows() {
            let (scale, shift) = fold(column);
            let to = &mut self.values[slot.weight.start + row * slot.outputs..][..slot.outputs];
            for ((to, a), d) in to.iter_mut().zip(&a[column * slot.outputs_padded..]).zip(d) {
                *to = (f64::from(scale) * a + f64::from(shift) * d) as f32;
            }
        }
        copy(d, &mut self.values[slot.bias.clone()]);
    }

    /// The gradient of norm `i`, of what its reader adds up to; and how to go on below it.
    fn norm(&mut self, folded: &mut Folded<'_>, i: usize, reader: Reader<'_>, along: Option<Along>) {
        let (layout, wide) = (&folded.network.values.layout, folded.wide);
        let (norm, fold, columns) = (&folded.norms[i], &folded.folds[i], reader.d.len());
        let mut slopes = Slopes {
            constant: vec![0.0; wide],
            linear: vec![0.0; wide],
            along_constant: fold.scale.iter().zip(&fold.shift).map(|(scale, shift)| scale * shift).collect(),
            along_linear: fold.scale.iter().map(|scale| scale * scale).collect(),
        };
        if let Some([gamma, beta]) = layout.norm_vectors(i).map(|k| k.map(|k| &layout.vectors[k])) {
            for j in 0..gamma.range.len() {
                let [scale, mean, inverse, shift] =
                    [fold.scale[j], norm.mean[j], norm.inverse[j], norm.beta[j]].map(f64::from);
                let (mut d_beta, mut d_gamma) = (0.0, 0.0);
                for k in 0..columns {
                    let w = f64::from(reader.w[j * columns + k]);
                    d_beta += w * reader.d[k];
                    d_gamma += w * (reader.a[j * columns + k] - mean * reader.d[k]);
                }
                if let Some(Along { count, first, second }) = &along {
                    d_beta += scale * first[j] + shift * count;
                    d_gamma += scale * second[j] + shift * first[j];
                }
                d_gamma *= inverse;
                self.values[gamma.range.start + j] = d_gamma as f32;
                self.values[beta.range.start + j] = d_beta as f32;
                [slopes.constant[j], slopes.linear[j]] = self.centre(norm, fold, j, d_gamma, d_beta);
            }
        }
        folded.slopes[i] = slopes;
    }

    /// The gradient of the norm of a part of the combination; and how to go on below it.
    fn closing(&mut self, folded: &mut Folded<'_>, parts: &[Part<'_>], i: usize) {
        let (layout, wide) = (&folded.network.values.layout, folded.wide);
        let mut slopes = Slopes { constant: vec![0.0; wide], linear: vec![0.0; wide], ..Slopes::default() };
        if let Some([gamma, beta]) = layout.norm_vectors(i).map(|k| k.map(|k| &layout.vectors[k])) {
            let (norm, fold) = (&folded.norms[i], &folded.folds[i]);
            let [along, sums] = norm_sums(folded, parts, i);
            for j in 0..gamma.range.len() {
                let (d_gamma, d_beta) = (along[j] * f64::from(norm.inverse[j]), sums[j]);
                self.values[gamma.range.start + j] = d_gamma as f32;
                self.values[beta.range.start + j] = d_beta as f32;
                [slopes.constant[j], slopes.linear[j]] = self.centre(norm, fold, j, d_gamma, d_beta);
            }
        }
        folded.slopes[i] = slopes;
    }

    /// `s (-dβ/n - x dγ/n)` with `x = (a - μ) / sqrt(v + ε)`, as a constant and a factor of `a`.
    fn centre(&self, norm: &Columns, fold: &Fold, j: usize, d_gamma: f64, d_beta: f64) -> [f32; 2] {
        let [scale, mean, inverse] = [fold.scale[j], norm.mean[j], norm.inverse[j]].map(f64::from);
        let (mean_g, mean_gx) = (d_beta / self.rows, d_gamma / self.rows * inverse);
        [(scale * (mean_gx * mean - mean_g)) as f32, (-scale * mean_gx) as f32]
    }
}

/// What all parts have in the places of `γ` and `β` of the norm after layer `i`.
fn norm_sums(folded: &Folded<'_>, parts: &[Part<'_>], i: usize) -> [Vec<f64>; 2] {
    let layout = &folded.network.values.layout;
    let sums = |k: usize| total(parts.iter().map(|part| &part.sums.values[layout.vectors[k].sums(1)]));
    layout.norm_vectors(i).expect("there is a norm").map(sums)
}

fn copy(from: &[f64], to: &mut [f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from as f32);
}
