//! Group normalisation with one group: `y = γ x + β` with `x = (a - μ) / sqrt(v + ε)`, where `μ` and `v` are the
//! mean and (biased) variance over the columns of the row itself. Rows do not mix, so samples keep gradients of
//! their own.
//!
//! Backward, with `g` the gradient with respect to `y`, `h = γ g`, and means over the row's columns:
//! `da = (h - mean(h) - x mean(h x)) / sqrt(v + ε)`; a sample's own gradients with respect to `γ` and `β` are
//! `g x` and `g`.

use pulp::Simd;

use crate::kernel::join::{RowDispatch, RowWork, total};
use crate::kernel::product::{load, store};
use crate::kernel::tile::TILE;
use crate::kernel::{sum_lanes, vectorised};
use crate::layer::norm::NormLayer;

const EPSILON: f32 = 1e-5;

/// The sum over a row of `f` of each value, by lanes; `f` knows the value's column.
#[inline(always)]
fn sum_row(row: &[f32], f: impl Fn(usize, f32) -> f32) -> f32 {
    let mut sums = [0.0; 16];
    for (c, chunk) in row.as_chunks::<16>().0.iter().enumerate() {
        for j in 0..16 {
            sums[j] += f(c * 16 + j, chunk[j]);
        }
    }
    sum_lanes(&sums)
}

/// Mean and `1 / sqrt(v + ε)` over the first `width` columns of a row that is zero beyond.
#[inline(always)]
fn row_statistics(width: usize, a: &[f32]) -> (f32, f32) {
    let n = width as f32;
    let mean = sum_row(a, |_, a| a) / n;
    let squares = sum_row(a, |j, a| if j < width { (a - mean) * (a - mean) } else { 0.0 });
    (mean, 1.0 / (squares / n + EPSILON).sqrt())
}

/// `y = γ x + β` over the norm's width, beyond which all is zero.
pub(crate) fn forward(norm: &NormLayer, rows: usize, a: &[f32], y: &mut [f32]) {
    match norm.columns {
        TILE => pulp::Arch::new().dispatch(RowDispatch(Forward {
            norm,
            a: &a.as_chunks().0[..rows],
            y: &mut y.as_chunks_mut().0[..rows],
        })),
        columns => forward_of_any(norm, rows, columns, a, y),
    }
}

/// Rows of one tile.
struct Forward<'a> {
    norm: &'a NormLayer,
    a: &'a [[f32; TILE]],
    y: &'a mut [[f32; TILE]],
}

impl RowWork for Forward<'_> {
    #[inline(always)]
    fn rows<S: Simd, const V: usize>(self, simd: S) {
        let width = Width::<S, V>::new(simd, self.norm.width);
        let gamma = load::<S, V, TILE>(simd, &self.norm.gamma, 0);
        let beta = load::<S, V, TILE>(simd, &self.norm.beta, 0);
        for (a, y) in self.a.iter().zip(self.y) {
            let (mut x, _) = width.standardised(simd, load::<S, V, TILE>(simd, a, 0));
            for v in 0..V {
                x[v] = simd.mul_add_e_f32s(x[v], gamma[v], beta[v]);
            }
            store::<S, V, TILE>(simd, y, 0, &x);
        }
    }
}

/// The columns of a tile that are normalised.
struct Width<S: Simd, const V: usize> {
    columns: f32,
    /// One within, zero beyond.
    inside: [S::f32s; V],
}

impl<S: Simd, const V: usize> Width<S, V> {
    #[inline(always)]
    fn new(simd: S, width: usize) -> Self {
        let mut inside = [0.0; TILE];
        inside[..width].fill(1.0);
        Width { columns: width as f32, inside: load::<S, V, TILE>(simd, &inside, 0) }
    }

    /// `x` of a row, zero beyond the width, and `1 / sqrt(v + ε)`.
    #[inline(always)]
    fn standardised(&self, simd: S, a: [S::f32s; V]) -> ([S::f32s; V], f32) {
        let mean = simd.splat_f32s(total(simd, a) / self.columns);
        let (mut x, mut squares) = (a, a);
        for v in 0..V {
            x[v] = simd.mul_f32s(simd.sub_f32s(a[v], mean), self.inside[v]);
            squares[v] = simd.mul_f32s(x[v], x[v]);
        }
        let inverse = 1.0 / (total(simd, squares) / self.columns + EPSILON).sqrt();
        let factor = simd.splat_f32s(inverse);
        for x in &mut x {
            *x = simd.mul_f32s(*x, factor);
        }
        (x, inverse)
    }
}

vectorised! {
    fn forward_of_any<'a>(norm: &'a NormLayer, rows: usize, columns: usize, a: &'a [f32], y: &'a mut [f32]) {
        padded_forward(norm, rows, columns, a, y);
    }
}

#[inline(always)]
fn padded_forward(norm: &NormLayer, rows: usize, columns: usize, a: &[f32], y: &mut [f32]) {
    let (gamma, beta) = (&norm.gamma[..columns], &norm.beta[..columns]);
    for (a, y) in a.chunks_exact(columns).zip(y.chunks_exact_mut(columns)).take(rows) {
        let (mean, inverse) = row_statistics(norm.width, a);
        for j in 0..columns {
            y[j] = ((a[j] - mean) * inverse).mul_add(gamma[j], beta[j]);
        }
    }
}

/// Writes the gradient with respect to `a` into `da`, and each row's own with respect to `γ` into `d_gamma`.
pub(crate) fn backward(
    norm: &NormLayer,
    rows: usize,
    a: &[f32],
    g: &[f32],
    da: &mut [f32],
    d_gamma: &mut [f32],
) {
    match norm.columns {
        TILE => pulp::Arch::new().dispatch(RowDispatch(Backward {
            norm,
            a: &a.as_chunks().0[..rows],
            g: &g.as_chunks().0[..rows],
            da: &mut da.as_chunks_mut().0[..rows],
            d_gamma: &mut d_gamma.as_chunks_mut().0[..rows],
        })),
        columns => backward_of_any(norm, rows, columns, a, g, [da, d_gamma]),
    }
}

/// Rows of one tile.
struct Backward<'a> {
    norm: &'a NormLayer,
    a: &'a [[f32; TILE]],
    g: &'a [[f32; TILE]],
    da: &'a mut [[f32; TILE]],
    d_gamma: &'a mut [[f32; TILE]],
}

impl RowWork for Backward<'_> {
    #[inline(always)]
    fn rows<S: Simd, const V: usize>(self, simd: S) {
        let width = Width::<S, V>::new(simd, self.norm.width);
        let gamma = load::<S, V, TILE>(simd, &self.norm.gamma, 0);
        let outputs = self.da.iter_mut().zip(self.d_gamma);
        for ((a, g), (da, d_gamma)) in self.a.iter().zip(self.g).zip(outputs) {
            let (x, inverse) = width.standardised(simd, load::<S, V, TILE>(simd, a, 0));
            let g = load::<S, V, TILE>(simd, g, 0);
            let (mut gx, mut h, mut hx) = (g, g, g);
            for v in 0..V {
                gx[v] = simd.mul_f32s(g[v], x[v]);
                // Beyond the width γ is zero.
                h[v] = simd.mul_f32s(gamma[v], g[v]);
                hx[v] = simd.mul_f32s(gamma[v], gx[v]);
            }
            store::<S, V, TILE>(simd, d_gamma, 0, &gx);
            let mean_h = simd.splat_f32s(total(simd, h) / width.columns);
            let mean_hx = simd.splat_f32s(-total(simd, hx) / width.columns);
            for v in 0..V {
                let factor = simd.mul_f32s(simd.splat_f32s(inverse), width.inside[v]);
                let centred = simd.sub_f32s(h[v], mean_h);
                h[v] = simd.mul_f32s(factor, simd.mul_add_e_f32s(x[v], mean_hx, centred));
            }
            store::<S, V, TILE>(simd, da, 0, &h);
        }
    }
}

vectorised! {
    fn backward_of_any<'a>(
        norm: &'a NormLayer,
        rows: usize,
        columns: usize,
        a: &'a [f32],
        g: &'a [f32],
        out: [&'a mut [f32]; 2],
    ) {
        padded_backward(norm, rows, columns, a, g, out);
    }
}

#[inline(always)]
fn padded_backward(
    norm: &NormLayer,
    rows: usize,
    columns: usize,
    a: &[f32],
    g: &[f32],
    [da, d_gamma]: [&mut [f32]; 2],
) {
    let (gamma, width) = (&norm.gamma[..columns], norm.width);
    let outputs = da.chunks_exact_mut(columns).zip(d_gamma.chunks_exact_mut(columns));
    let inputs = a.chunks_exact(columns).zip(g.chunks_exact(columns));
    for ((a, g), (da, d_gamma)) in inputs.zip(outputs).take(rows) {
        let (mean, inverse) = row_statistics(width, a);
        for j in 0..columns {
            d_gamma[j] = g[j] * ((a[j] - mean) * inverse);
        }
        // Beyond the width γ is zero.
        let n = width as f32;
        let (mean_h, mean_hx) =
            (sum_row(g, |j, g| gamma[j] * g) / n, sum_row(d_gamma, |j, d| gamma[j] * d) / n);
        for j in 0..columns {
            let x = (a[j] - mean) * inverse;
            let d = inverse * (gamma[j] * g[j] - mean_h - x * mean_hx);
            da[j] = if j < width { d } else { 0.0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::testing::matrix;

    /// A row's bits do not depend on its neighbours, nor on how many there are.
    #[test]
    fn a_row_is_the_same_to_the_bit_whatever_its_neighbours() {
        let only = |seed: u32| -> Vec<f32> {
            let mut values = matrix(1, 16, seed);
            values[10..].fill(0.0);
            values
        };
        let norm =
            NormLayer { width: 10, columns: 16, gamma: only(1), beta: only(2), ..NormLayer::default() };
        let rows = 21;
        let [a, g] = [3, 4].map(|seed| {
            let mut values = matrix(rows, 16, seed);
            values.chunks_mut(16).for_each(|row| row[10..].fill(0.0));
            values
        });
        let [mut y, mut da, mut d_gamma] = [(); 3].map(|()| vec![9.0; rows * 16]);
        forward(&norm, rows, &a, &mut y);
        backward(&norm, rows, &a, &g, &mut da, &mut d_gamma);
        for r in 0..rows {
            let row = r * 16..(r + 1) * 16;
            let [mut own_y, mut own_da, mut own_d_gamma] = [[9.0; 16]; 3];
            padded_forward(&norm, 1, 16, &a[row.clone()], &mut own_y);
            let own = [&mut own_da[..], &mut own_d_gamma[..]];
            padded_backward(&norm, 1, 16, &a[row.clone()], &g[row.clone()], own);
            for (together, alone) in [(&y, own_y), (&da, own_da), (&d_gamma, own_d_gamma)] {
                let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-6;
                assert!(together[row.clone()].iter().zip(&alone).all(close), "row {r}");
            }
            let mut alone = [9.0; 16];
            forward(&norm, 1, &a[row.clone()], &mut alone);
            assert_eq!(y[row.clone()], alone);
            let [mut own_da, mut own_d_gamma] = [[9.0; 16]; 2];
            backward(&norm, 1, &a[row.clone()], &g[row.clone()], &mut own_da, &mut own_d_gamma);
            assert_eq!((&da[row.clone()], &d_gamma[row]), (&own_da[..], &own_d_gamma[..]));
        }
    }

    #[test]
    fn rows_get_mean_beta_and_spread_gamma() {
        let only = |v: f32| -> Vec<f32> { (0..16).map(|j| if j < 10 { v } else { 0.0 }).collect() };
        let a: Vec<f32> = (0..32).map(|i| if i % 16 < 10 { (i * i % 17) as f32 } else { 0.0 }).collect();
        let mut y = vec![9.0; 32];
        let norm =
            NormLayer { width: 10, columns: 16, gamma: only(2.0), beta: only(0.5), ..NormLayer::default() };
        forward(&norm, 2, &a, &mut y);
        for y in y.chunks(16) {
            let mean = y[..10].iter().sum::<f32>() / 10.0;
            let variance = y[..10].iter().map(|v| (v - mean).powi(2)).sum::<f32>() / 10.0;
            assert!((mean - 0.5).abs() < 1e-5 && (variance - 4.0).abs() < 1e-3);
            assert!(y[10..].iter().all(|&v| v == 0.0));
        }
    }
}
