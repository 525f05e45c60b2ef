//! Group normalisation with one group: `y = γ x + β` with `x = (a - μ) / sqrt(v + ε)`, where `μ` and `v` are the
//! mean and (biased) variance over the columns of the row itself. Rows do not mix, so samples keep gradients of
//! their own.
//!
//! Backward, with `g` the gradient with respect to `y`, `h = γ g`, and means over the row's columns:
//! `da = (h - mean(h) - x mean(h x)) / sqrt(v + ε)`; a sample's own gradients with respect to `γ` and `β` are
//! `g x` and `g`.

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

vectorised! {
    /// `y = γ x + β` over the norm's width, beyond which all is zero.
    pub(crate) fn forward<'a>(norm: &'a NormLayer, rows: usize, a: &'a [f32], y: &'a mut [f32]) {
        // The compiler makes more of a constant.
        match norm.columns {
            16 => padded_forward(norm, rows, 16, a, y),
            columns => padded_forward(norm, rows, columns, a, y),
        }
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

vectorised! {
    /// Writes the gradient with respect to `a` into `da`, and each row's own with respect to `γ` into `d_gamma`.
    pub(crate) fn backward<'a>(
        norm: &'a NormLayer,
        rows: usize,
        a: &'a [f32],
        g: &'a [f32],
        da: &'a mut [f32],
        d_gamma: &'a mut [f32],
    ) {
        match norm.columns {
            16 => padded_backward(norm, rows, 16, a, g, [da, d_gamma]),
            columns => padded_backward(norm, rows, columns, a, g, [da, d_gamma]),
        }
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
