//! Group normalisation with one group: `y = γ x + β` with `x = (a - μ) / sqrt(v + ε)`, where `μ` and `v` are the
//! mean and (biased) variance over the columns of the row itself. Rows do not mix, so samples keep gradients of
//! their own.
//!
//! Backward, with `g` the gradient by `y`, `h = γ g`, and means over the row's columns:
//! `da = (h - mean(h) - x mean(h x)) / sqrt(v + ε)`; a sample's own gradients by `γ` and `β` are `g x` and `g`.

use crate::kernel::product::Matrix;
use crate::kernel::{sum_lanes, vectorised};

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
    /// `y = γ x + β` over the first `width` of `columns`, beyond which all is zero; rows of `y` are `y_stride` apart.
    pub(crate) fn forward<'a>(
        width: usize,
        gamma: &'a [f32],
        beta: &'a [f32],
        rows: usize,
        columns: usize,
        a: &'a [f32],
        y: &'a mut [f32],
        y_stride: usize,
    ) {
        // The compiler makes more of a number it knows.
        match columns {
            16 => padded_forward(width, gamma, beta, rows, 16, a, y, y_stride),
            _ => padded_forward(width, gamma, beta, rows, columns, a, y, y_stride),
        }
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn padded_forward(
    width: usize,
    gamma: &[f32],
    beta: &[f32],
    rows: usize,
    columns: usize,
    a: &[f32],
    y: &mut [f32],
    y_stride: usize,
) {
    let (gamma, beta) = (&gamma[..columns], &beta[..columns]);
    for (r, a) in a.chunks_exact(columns).take(rows).enumerate() {
        let (mean, inverse) = row_statistics(width, a);
        let y = &mut y[r * y_stride..][..columns];
        for j in 0..columns {
            y[j] = ((a[j] - mean) * inverse).mul_add(gamma[j], beta[j]);
        }
    }
}

vectorised! {
    /// Writes the gradient by `a` into `da`, and each row's gradients by `γ` into `d_gamma`.
    pub(crate) fn backward<'a>(
        width: usize,
        gamma: &'a [f32],
        rows: usize,
        columns: usize,
        a: &'a [f32],
        g: Matrix<'a>,
        da: &'a mut [f32],
        d_gamma: &'a mut [f32],
    ) {
        match columns {
            16 => padded_backward(width, gamma, rows, 16, a, g, da, d_gamma),
            _ => padded_backward(width, gamma, rows, columns, a, g, da, d_gamma),
        }
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn padded_backward(
    width: usize,
    gamma: &[f32],
    rows: usize,
    columns: usize,
    a: &[f32],
    g: Matrix<'_>,
    da: &mut [f32],
    d_gamma: &mut [f32],
) {
    let gamma = &gamma[..columns];
    let outputs = da.chunks_exact_mut(columns).zip(d_gamma.chunks_exact_mut(columns));
    for (r, (a, (da, d_gamma))) in a.chunks_exact(columns).zip(outputs).take(rows).enumerate() {
        let g = &g.row(r)[..columns];
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
        forward(10, &only(2.0), &only(0.5), 2, 16, &a, &mut y, 16);
        for y in y.chunks(16) {
            let mean = y[..10].iter().sum::<f32>() / 10.0;
            let variance = y[..10].iter().map(|v| (v - mean).powi(2)).sum::<f32>() / 10.0;
            assert!((mean - 0.5).abs() < 1e-5 && (variance - 4.0).abs() < 1e-3);
            assert!(y[10..].iter().all(|&v| v == 0.0));
        }
    }
}
