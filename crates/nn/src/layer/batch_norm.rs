//! Batch normalisation: `y = γ x + β` with `x = (a - μ) / sqrt(v + ε)`, column by column; `μ` and `v` are the mean
//! and (biased) variance over the batch in training, and running estimates afterwards.
//!
//! Backward, with `g` the gradient with respect to `y`, over a batch of `n` rows:
//! ```text
//! dβ = Σ g          dγ = Σ g x          da = (γ / sqrt(v + ε)) (g - dβ/n - x dγ/n)
//! ```
//! `dβ` and `dγ` are known only when the whole batch has been seen.
//!
//! Running estimates move by a tenth towards the batch's mean and unbiased variance.

use crate::kernel::tile::deviations;
use crate::kernel::{for_lanes, lanes, lanes_mut, vectorised};
use crate::layer::norm::NormLayer;
use crate::layout::Tensor;
use crate::train::collective::{read_f64, write_f64};

pub(crate) const EPSILON: f64 = 1e-5;
const MOMENTUM: f64 = 0.1;

vectorised! {
    /// `y = γ x + β`.
    pub(crate) fn forward<'a>(norm: &'a NormLayer, rows: usize, a: &'a [f32], y: &'a mut [f32]) {
        let columns = norm.columns;
        for_lanes!(columns, L, at, {
            let [gamma, beta, mean, inverse]: [[f32; L]; 4] =
                [&norm.gamma, &norm.beta, &norm.mean, &norm.inverse].map(|values| *lanes(values, at));
            for r in 0..rows {
                let a: [f32; L] = *lanes(a, r * columns + at);
                let mut out = [0.0; L];
                for j in 0..L {
                    out[j] = ((a[j] - mean[j]) * inverse[j]).mul_add(gamma[j], beta[j]);
                }
                *lanes_mut(y, r * columns + at) = out;
            }
        });
    }
}

vectorised! {
    /// Adds to `dγ` and `dβ`.
    pub(crate) fn add_sums<'a>(
        norm: &'a NormLayer,
        rows: usize,
        a: &'a [f32],
        g: &'a [f32],
        sums: [&'a mut [f32]; 2],
    ) {
        let ([sum_gx, sum_g], columns) = (sums, norm.columns);
        for_lanes!(columns, L, at, {
            let [mean, inverse]: [[f32; L]; 2] = [&norm.mean, &norm.inverse].map(|values| *lanes(values, at));
            let [mut total_g, mut total_gx]: [[f32; L]; 2] = [*lanes(sum_g, at), *lanes(sum_gx, at)];
            for r in 0..rows {
                let a: [f32; L] = *lanes(a, r * columns + at);
                let g: [f32; L] = *lanes(g, r * columns + at);
                for j in 0..L {
                    total_g[j] += g[j];
                }
                for j in 0..L {
                    total_gx[j] = g[j].mul_add((a[j] - mean[j]) * inverse[j], total_gx[j]);
                }
            }
            *lanes_mut(sum_g, at) = total_g;
            *lanes_mut(sum_gx, at) = total_gx;
        });
    }
}

vectorised! {
    /// Writes the gradient with respect to `a`, where `dβ` and `dγ` are known.
    pub(crate) fn backward<'a>(
        norm: &'a NormLayer,
        rows: usize,
        a: &'a [f32],
        g: &'a [f32],
        da: &'a mut [f32],
    ) {
        let columns = norm.columns;
        for_lanes!(columns, L, at, {
            let [gamma, mean, inverse, mean_g, mean_gx]: [[f32; L]; 5] =
                [&norm.gamma, &norm.mean, &norm.inverse, &norm.mean_g, &norm.mean_gx].map(|v| *lanes(v, at));
            for r in 0..rows {
                let a: [f32; L] = *lanes(a, r * columns + at);
                let g: [f32; L] = *lanes(g, r * columns + at);
                let mut out = [0.0; L];
                for j in 0..L {
                    let x = (a[j] - mean[j]) * inverse[j];
                    out[j] = (-x).mul_add(mean_gx[j], g[j] - mean_g[j]) * (gamma[j] * inverse[j]);
                }
                *lanes_mut(da, r * columns + at) = out;
            }
        });
    }
}

/// Count, mean and sum of squared deviations of each column, in a form that can be merged without cancellation: blocks
/// of rows give their own means, and the deviations from those.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    count: f64,
    /// Sums over all rows of the mean of their block, and of its square.
    means: Vec<f64>,
    means_squared: Vec<f64>,
    /// Squared deviations from the mean of the block.
    within: Vec<f64>,
    block: [Vec<f32>; 3],
}

impl Moments {
    pub fn new(columns: usize) -> Self {
        let zeros = || vec![0.0; columns];
        Moments {
            count: 0.0,
            means: zeros(),
            means_squared: zeros(),
            within: zeros(),
            block: std::array::from_fn(|_| vec![0.0; columns]),
        }
    }

    /// For another process.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_f64(&[self.count], out);
        [&self.means, &self.means_squared, &self.within].into_iter().for_each(|sums| write_f64(sums, out));
    }

    /// Reads the sums that another process wrote.
    pub fn read(&mut self, from: &mut &[u8]) -> Option<()> {
        read_f64(std::slice::from_mut(&mut self.count), from)?;
        [&mut self.means, &mut self.means_squared, &mut self.within]
            .into_iter()
            .try_for_each(|sums| read_f64(sums, from))
    }

    /// Adds a block of rows, by their deviations from its first row: for `n` rows these are at most `sqrt n` times as
    /// large as deviations from the mean, in the mean of squares, so that little precision is lost.
    pub fn add_rows(&mut self, rows: usize, values: &[f32]) {
        let [row, first, second] = &mut self.block;
        deviations(&values[..rows * row.len()], row, first, second);
        let n = rows as f64;
        let inverse = 1.0 / n;
        let totals = self.means.iter_mut().zip(&mut self.means_squared).zip(&mut self.within);
        for (((row, first), second), ((means, squares), within)) in
            row.iter().zip(first).zip(second).zip(totals)
        {
            let first = f64::from(*first);
            let mean = f64::from(*row) + first * inverse;
            *means += n * mean;
            *squares += n * mean * mean;
            *within += f64::from(*second) - first * first * inverse;
        }
        self.count += n;
    }

    pub fn merge(&mut self, other: &Moments) {
        let add = |to: &mut [f64], from: &[f64]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        self.count += other.count;
        add(&mut self.means, &other.means);
        add(&mut self.means_squared, &other.means_squared);
        add(&mut self.within, &other.within);
    }

    /// Mean and (biased) variance of a column.
    pub fn column(&self, j: usize) -> (f64, f64) {
        let mean = self.means[j] / self.count;
        let between = f64::max(self.means_squared[j] - self.means[j] * mean, 0.0);
        (mean, (self.within[j] + between) / self.count)
    }
}

/// Sets a norm to the mean and variance of all parts together, and moves the running estimates, which lie at `running`.
pub(crate) fn take_moments<'p>(
    parts: impl Iterator<Item = &'p Moments>,
    norm: &mut NormLayer,
    running: &[Tensor],
    statistics: &mut [f32],
) {
    let mut total = Moments::new(norm.mean.len());
    parts.for_each(|part| total.merge(part));
    for j in 0..running[0].range.len() {
        let (mean, variance) = total.column(j);
        norm.mean[j] = mean as f32;
        norm.inverse[j] = (1.0 / (variance + EPSILON).sqrt()) as f32;
        let unbiased = variance * (total.count / (total.count - 1.0));
        for (range, new) in [(&running[0].range, mean), (&running[1].range, unbiased)] {
            let value = &mut statistics[range.start + j];
            *value = ((1.0 - MOMENTUM) * f64::from(*value) + MOMENTUM * new) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_survive_a_mean_far_larger_than_the_spread() {
        let values: Vec<f32> = (0..640 * 16).map(|i| 10_000.0 + ((i * 7919) % 97) as f32 * 0.01).collect();
        let mut moments = Moments::new(16);
        let (first, second) = values.split_at(300 * 16);
        for part in first.chunks(64 * 16) {
            moments.add_rows(part.len() / 16, part);
        }
        let mut other = Moments::new(16);
        for part in second.chunks(64 * 16) {
            other.add_rows(part.len() / 16, part);
        }
        moments.merge(&other);
        for j in 0..16 {
            let column: Vec<f64> = values.iter().skip(j).step_by(16).map(|&v| v.into()).collect();
            let mean = column.iter().sum::<f64>() / 640.0;
            let squares = column.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
            let (found, variance) = moments.column(j);
            assert!((found - mean).abs() < 1e-6);
            assert!((variance * 640.0 - squares).abs() < 1e-4 * squares);
        }
    }
}
