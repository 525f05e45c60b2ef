//! Group normalisation with one group: `y = γ x + β` with `x = (a - μ) / sqrt(v + ε)`, where `μ` and `v` are the
//! mean and (biased) variance over the columns of the row itself. Rows do not mix, so samples keep gradients of
//! their own.
//!
//! Backward, with `g` the gradient by `y`, `h = γ g`, and means over the row's columns:
//! `da = (h - mean(h) - x mean(h x)) / sqrt(v + ε)`; a sample's own gradients by `γ` and `β` are `g x` and `g`.

use crate::kernel::product::Matrix;
use crate::kernel::vectorised;

const EPSILON: f32 = 1e-5;

#[inline(always)]
fn row_statistics(a: &[f32]) -> (f32, f32) {
    let n = a.len() as f32;
    let mut sums = [0.0; 8];
    let (chunks, rest) = a.as_chunks::<8>();
    for chunk in chunks {
        for j in 0..8 {
            sums[j] += chunk[j];
        }
    }
    let mean = (sums.iter().sum::<f32>() + rest.iter().sum::<f32>()) / n;
    let mut squares = [0.0; 8];
    for chunk in chunks {
        for j in 0..8 {
            squares[j] += (chunk[j] - mean) * (chunk[j] - mean);
        }
    }
    let variance =
        (squares.iter().sum::<f32>() + rest.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>()) / n;
    (mean, 1.0 / (variance + EPSILON).sqrt())
}

vectorised! {
    /// `y = γ x + β` over the first `width` of `columns`; rows of `y` are `y_stride` apart.
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
        for r in 0..rows {
            let a = &a[r * columns..][..width];
            let (mean, inverse) = row_statistics(a);
            let y = &mut y[r * y_stride..][..columns];
            y[width..].fill(0.0);
            for j in 0..width {
                y[j] = ((a[j] - mean) * inverse).mul_add(gamma[j], beta[j]);
            }
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
        let n = width as f32;
        for r in 0..rows {
            let row = r * columns..r * columns + width;
            let (a, g) = (&a[row.clone()], &g.row(r)[..width]);
            let (mean, inverse) = row_statistics(a);
            let (mut sum_h, mut sum_hx) = (0.0, 0.0);
            let d_gamma = &mut d_gamma[row.clone()];
            for j in 0..width {
                let x = (a[j] - mean) * inverse;
                d_gamma[j] = g[j] * x;
                sum_h += gamma[j] * g[j];
                sum_hx += gamma[j] * d_gamma[j];
            }
            let (mean_h, mean_hx) = (sum_h / n, sum_hx / n);
            let da = &mut da[row];
            for j in 0..width {
                let x = (a[j] - mean) * inverse;
                da[j] = inverse * (gamma[j] * g[j] - mean_h - x * mean_hx);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_get_mean_beta_and_spread_gamma() {
        let a: Vec<f32> = (0..32).map(|i| (i * i % 17) as f32).collect();
        let mut y = vec![9.0; 32];
        forward(10, &[2.0; 16], &[0.5; 16], 2, 16, &a, &mut y, 16);
        for y in y.chunks(16) {
            let mean = y[..10].iter().sum::<f32>() / 10.0;
            let variance = y[..10].iter().map(|v| (v - mean).powi(2)).sum::<f32>() / 10.0;
            assert!((mean - 0.5).abs() < 1e-5 && (variance - 4.0).abs() < 1e-3);
            assert!(y[10..].iter().all(|&v| v == 0.0));
        }
    }
}
