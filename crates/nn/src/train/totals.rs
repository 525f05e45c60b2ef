//! From sums over rows to gradients, and to the coefficients with which the backward pass goes on below a norm.

use crate::kernel::tile::BackwardCoefficients;
use crate::layer::norm::{ColumnMap, NormLayer};
use crate::layout::{Layout, Linear};
use crate::network::Network;
use crate::pass::PreparedNetwork;
use crate::train::sink::Sums;
use crate::train::total;

/// The gradient with respect to all parameters, as far as its sums are known.
pub(crate) struct Totals<'n> {
    layout: &'n Layout,
    rows: f64,
    pub values: Vec<f32>,
}

/// The sums of a linear layer that has absorbed a norm, or of its part for one branch: `A` and `D`, and its own
/// weights.
#[derive(Clone, Copy)]
struct Reader<'s> {
    a: &'s [f64],
    d: &'s [f64],
    w: &'s [f32],
}

/// `Σ c`, `Σ c q` and `Σ c q²`, with `c` the radial coefficient of a row.
struct Radial {
    count: f64,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl<'n> Totals<'n> {
    pub fn new(network: &'n Network, rows: usize) -> Self {
        let layout = &network.values.layout;
        Totals { layout, rows: rows as f64, values: vec![0.0; network.parameter_count()] }
    }

    /// The gradients of the head, and of the norms before it.
    pub fn head(&mut self, ready: &mut PreparedNetwork<'_>, parts: &[Sums<'_>]) {
        let (width, last) = (ready.padded_width, ready.layers - 1);
        let slot = self.layout.head();
        let sums = total(parts.iter().map(|part| &part.values[slot.sums()]));
        if !ready.is_absorbed(last) {
            self.linear(slot, &sums, |_| (1.0, 0.0));
            let norms = if ready.is_after_join() { ready.parts } else { ready.branches };
            return (0..norms).for_each(|b| self.norm(ready, parts, ready.last(b)));
        }
        self.linear(slot, &sums, |column| {
            let map = &ready.maps[ready.last(column / width)];
            (map.scale[column % width], map.shift[column % width])
        });
        let normalise = ready.network.architecture().normalise;
        if normalise {
            copy(&total(parts.iter().map(|part| &part.bias[..])), &mut self.values[slot.bias.clone()]);
        }
        let (a, d) = sums.split_at(slot.inputs_padded * slot.outputs_padded);
        let w = ready.network.values.weights(self.layout.linears.len() - 1, false).w;
        for b in ready.trained().collect::<Vec<_>>() {
            let i = ready.last(b);
            let part = b * width * d.len()..(b + 1) * width * d.len();
            let radial = normalise.then(|| {
                let [second, first] = self.norm_sums(parts, i);
                let count = parts.iter().map(|part| f64::from(part.radial)).sum();
                Radial { count, first, second }
            });
            self.absorbed_norm(ready, i, Reader { a: &a[part.clone()], d, w: &w[part] }, radial);
        }
    }

    /// The gradients of a layer of every branch, and of the norms before it.
    pub fn layer(&mut self, ready: &mut PreparedNetwork<'_>, parts: &[Sums<'_>], layer: usize) {
        for b in ready.trained().collect::<Vec<_>>() {
            let i = ready.number(b, layer);
            let slot = &self.layout.linears[i];
            let sums = total(parts.iter().map(|part| &part.values[slot.sums()]));
            if layer == 0 || !ready.is_absorbed(layer - 1) {
                self.linear(slot, &sums, |_| (1.0, 0.0));
                if layer > 0 {
                    self.norm(ready, parts, i - 1);
                }
                continue;
            }
            let map = &ready.maps[i - 1];
            self.linear(slot, &sums, |column| (map.scale[column], map.shift[column]));
            let w = ready.network.values.weights(i, false).w;
            let (a, d) = sums.split_at(slot.inputs_padded * slot.outputs_padded);
            self.absorbed_norm(ready, i - 1, Reader { a, d, w: &w }, None);
        }
    }

    /// The gradient of a linear layer; `map` gives scale and shift of each of its inputs.
    fn linear(&mut self, slot: &Linear, sums: &[f64], map: impl Fn(usize) -> (f32, f32)) {
        let (a, d) = sums.split_at(slot.inputs_padded * slot.outputs_padded);
        for (column, row) in slot.input_rows() {
            let (scale, shift) = map(column);
            let to = &mut self.values[slot.weight.start + row * slot.outputs..][..slot.outputs];
            for ((to, a), d) in to.iter_mut().zip(&a[column * slot.outputs_padded..]).zip(d) {
                *to = (f64::from(scale) * a + f64::from(shift) * d) as f32;
            }
        }
        copy(d, &mut self.values[slot.bias.clone()]);
    }

    /// The gradient of the norm after layer `i`, absorbed by its reader.
    fn absorbed_norm(
        &mut self,
        ready: &mut PreparedNetwork<'_>,
        i: usize,
        reader: Reader<'_>,
        radial: Option<Radial>,
    ) {
        let (norm, map, columns) = (&ready.norms[i], &ready.maps[i], reader.d.len());
        let (mut d_gamma, mut d_beta) = (vec![0.0; norm.width], vec![0.0; norm.width]);
        for j in 0..norm.width {
            for k in 0..columns {
                let w = f64::from(reader.w[j * columns + k]);
                d_beta[j] += w * reader.d[k];
                d_gamma[j] += w * (reader.a[j * columns + k] - f64::from(norm.mean[j]) * reader.d[k]);
            }
            if let Some(Radial { count, first, second }) = &radial {
                let [scale, shift] = [map.scale[j], norm.beta[j]].map(f64::from);
                d_beta[j] += scale * first[j] + shift * count;
                d_gamma[j] += scale * second[j] + shift * first[j];
            }
            d_gamma[j] *= f64::from(norm.inverse[j]);
        }
        let mut coefficients = self.batch_norm(i, norm, map, [d_gamma, d_beta]);
        coefficients.radial_constant = map.scale.iter().zip(&map.shift).map(|(s, t)| s * t).collect();
        coefficients.radial_linear = map.scale.iter().map(|scale| scale * scale).collect();
        ready.coefficients[i] = coefficients;
    }

    /// The gradient of the norm after layer `i`, from sums of its own.
    fn norm(&mut self, ready: &mut PreparedNetwork<'_>, parts: &[Sums<'_>], i: usize) {
        let Some(vectors) = self.layout.norm_vectors(i) else { return };
        let [mut gamma, beta] = self.norm_sums(parts, i);
        if !ready.norms[i].kind.mixes_rows() {
            for (slot, sums) in vectors.into_iter().zip([gamma, beta]) {
                copy(&sums, &mut self.values[self.layout.vectors[slot].range.clone()]);
            }
            return;
        }
        if ready.is_plain(i % ready.layers) {
            // After the join, the sum is one of `g (z - μ)`.
            let inverse = &ready.norms[i].inverse;
            gamma.iter_mut().zip(inverse).for_each(|(sum, &inverse)| *sum *= f64::from(inverse));
        }
        ready.norms[i].take_sums(self.rows, [&gamma, &beta]);
        ready.coefficients[i] = self.batch_norm(i, &ready.norms[i], &ready.maps[i], [gamma, beta]);
    }

    /// Stores the gradient of a batch normalisation, given `dγ` and `dβ`. The coefficients are those of
    /// `s (g - dβ/n - x dγ/n)` with `x = (a - μ) / sqrt(v + ε)`.
    fn batch_norm(
        &mut self,
        i: usize,
        norm: &NormLayer,
        map: &ColumnMap,
        [d_gamma, d_beta]: [Vec<f64>; 2],
    ) -> BackwardCoefficients {
        let mut coefficients = BackwardCoefficients {
            constant: vec![0.0; norm.columns],
            linear: vec![0.0; norm.columns],
            ..BackwardCoefficients::default()
        };
        let places = self.layout.norm_vectors(i).expect("there is a norm");
        let [gamma_at, beta_at] = places.map(|slot| self.layout.vectors[slot].range.start);
        for j in 0..norm.width {
            let [scale, mean, inverse] = [map.scale[j], norm.mean[j], norm.inverse[j]].map(f64::from);
            let (d_gamma, d_beta) = (d_gamma[j], d_beta[j]);
            self.values[gamma_at + j] = d_gamma as f32;
            self.values[beta_at + j] = d_beta as f32;
            let (mean_g, mean_gx) = (d_beta / self.rows, d_gamma / self.rows * inverse);
            coefficients.constant[j] = (scale * (mean_gx * mean - mean_g)) as f32;
            coefficients.linear[j] = (-scale * mean_gx) as f32;
        }
        coefficients
    }

    /// All parts together, in the places of scale and shift of the norm after layer `i`.
    fn norm_sums(&self, parts: &[Sums<'_>], i: usize) -> [Vec<f64>; 2] {
        let sums = |slot: usize| {
            let place = self.layout.vectors[slot].sums();
            total(parts.iter().map(|part| &part.values[place.clone()]))
        };
        self.layout.norm_vectors(i).expect("there is a norm").map(sums)
    }
}

fn copy(from: &[f64], to: &mut [f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from as f32);
}
