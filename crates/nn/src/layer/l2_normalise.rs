//! Row normalisation: `y = x / max(|x|, 1e-12)`; a zero row stays zero.
//!
//! Backward, with `g` the gradient with respect to `y`: `dx = (g - y (y · g)) / |x|`. Where a linear layer `z = y W +
//! b` follows and `d` is the gradient with respect to `z`, `g = d Wᵀ` and `y · g = (z - b) · d`: a few classes instead
//! of many columns.

use crate::kernel::tile::LANES;
use crate::kernel::{sum_lanes, vectorised};

const SMALLEST: f32 = 1e-12;

/// The inner product of two rows of a multiple of 16 columns.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [[0.0; 8]; 2];
    let (a, b) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
    for (a, b) in a.iter().zip(b) {
        for half in 0..2 {
            for j in 0..8 {
                sums[half][j] = a[half * 8 + j].mul_add(b[half * 8 + j], sums[half][j]);
            }
        }
    }
    sum_lanes(&std::array::from_fn::<f32, 8, _>(|j| sums[0][j] + sums[1][j]))
}

/// Replaces `|x|²` by `1 / |x|`.
#[inline(always)]
fn invert_each(squares: &mut [f32]) {
    for value in squares {
        let norm = value.sqrt();
        *value = 1.0 / if norm < SMALLEST { SMALLEST } else { norm };
    }
}

vectorised! {
    /// Normalises rows of `columns` (a multiple of 16) in place, and keeps `1 / |x|` of each.
    pub(crate) fn forward<'a>(columns: usize, x: &'a mut [f32], inverse: &'a mut [f32]) {
        // Three loops, so that roots and quotients are taken of many rows at once.
        let inverse = &mut inverse[..x.len() / columns];
        for (row, square) in x.chunks_exact(columns).zip(inverse.iter_mut()) {
            *square = dot(row, row);
        }
        invert_each(inverse);
        for (row, inverse) in x.chunks_exact_mut(columns).zip(inverse) {
            for value in row {
                *value *= *inverse;
            }
        }
    }
}

vectorised! {
    /// Replaces the squared norm of each row by `1 / |x|`.
    pub(crate) fn invert_roots<'a>(squares: &'a mut [f32]) {
        invert_each(squares);
    }
}

vectorised! {
    /// `1 / |x|` of each row, from partial sums of its squares.
    pub(crate) fn invert<'a>(squares: &'a [f32], inverse: &'a mut [f32]) {
        for (squares, inverse) in squares.as_chunks::<LANES>().0.iter().zip(inverse.iter_mut()) {
            *inverse = sum_lanes(squares);
        }
        invert_each(&mut inverse[..squares.len() / LANES]);
    }
}

vectorised! {
    /// `z = z inverse + bias`, row by row.
    pub(crate) fn divide<'a>(columns: usize, inverse: &'a [f32], bias: &'a [f32], z: &'a mut [f32]) {
        for (z, &inverse) in z.chunks_exact_mut(columns).zip(inverse) {
            for (z, bias) in z.as_chunks_mut::<8>().0.iter_mut().zip(bias.as_chunks::<8>().0) {
                for j in 0..8 {
                    z[j] = z[j].mul_add(inverse, bias[j]);
                }
            }
        }
    }
}

vectorised! {
    /// Turns the gradient with respect to `y` into that with respect to `x`, in place; rows have a multiple of 16
    /// columns.
    pub(crate) fn backward<'a>(columns: usize, y: &'a [f32], inverse: &'a [f32], g: &'a mut [f32]) {
        let rows = y.chunks_exact(columns).zip(g.chunks_exact_mut(columns));
        for ((y, g), &inverse) in rows.zip(inverse) {
            let radial = dot(y, g);
            for (g, &y) in g.iter_mut().zip(y) {
                *g = (-radial).mul_add(y, *g) * inverse;
            }
        }
    }
}

vectorised! {
    /// Backward where `y` goes into a linear layer that gives `z = y W + b`: divides the gradient `d` with respect to
    /// `z` by `|x|`, and writes the radial coefficients, with which `dx = d Wᵀ + radial y`.
    pub(crate) fn backward_through_linear<'a>(
        columns: usize,
        z: &'a [f32],
        bias: &'a [f32],
        inverse: &'a [f32],
        d: &'a mut [f32],
        radial: &'a mut [f32],
    ) {
        let rows = z.chunks_exact(columns).zip(d.chunks_exact_mut(columns));
        for ((z, d), (inverse, radial)) in rows.zip(inverse.iter().zip(radial)) {
            let mut sums = [0.0; 8];
            let chunks = z.as_chunks::<8>().0.iter().zip(bias.as_chunks::<8>().0).zip(d.as_chunks_mut::<8>().0);
            for ((z, bias), d) in chunks {
                for j in 0..8 {
                    sums[j] = (z[j] - bias[j]).mul_add(d[j], sums[j]);
                }
                for d in d {
                    *d *= inverse;
                }
            }
            *radial = -inverse * sum_lanes(&sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_get_norm_one_and_a_zero_row_stays() {
        let mut x = vec![0.0; 32];
        x[..3].copy_from_slice(&[3.0, 0.0, -4.0]);
        let mut inverse = [0.0; 2];
        forward(16, &mut x, &mut inverse);
        assert!((x[0] - 0.6).abs() < 1e-6 && (x[2] + 0.8).abs() < 1e-6);
        assert!(x[16..].iter().all(|&v| v == 0.0));
        let g: Vec<f32> = (0..32).map(|j| 1.0 + j as f32).collect();
        let mut dx = g.clone();
        backward(16, &x, &inverse, &mut dx);
        let dot: f32 = (0..16).map(|j| x[j] * g[j]).sum();
        assert!((0..16).all(|j| (dx[j] - (g[j] - x[j] * dot) / 5.0).abs() < 1e-5));

        // A layer with the weights 1 to 16 for one class, whose gradient is 1: the same `g`.
        let (mut z, mut bias, mut d, mut radial) = ([0.0; 16], [0.0; 8], [0.0; 16], [9.0; 2]);
        (bias[0], d[0]) = (0.25, 1.0);
        z[0] = 0.25 + dot;
        backward_through_linear(8, &z, &bias, &inverse, &mut d, &mut radial);
        assert!((0..16).all(|j| (d[0] * g[j] + radial[0] * x[j] - dx[j]).abs() < 1e-5));
        assert_eq!(radial[1], 0.0);
    }
}
