//! Row normalisation: `y = x / max(|x|, 1e-12)`; a zero row stays zero.
//!
//! Backward, with `g` the gradient by `y`: `dx = (g - y (y · g)) / |x|`.

use crate::kernel::{sum_lanes, vectorised};

const SMALLEST: f32 = 1e-12;

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
    sum_lanes(&sums[0]) + sum_lanes(&sums[1])
}

vectorised! {
    /// Normalises rows of `columns` (a multiple of 16) in place, and keeps `1 / |x|` of each.
    pub(crate) fn forward<'a>(columns: usize, x: &'a mut [f32], inverse: &'a mut [f32]) {
        for (row, inverse) in x.chunks_exact_mut(columns).zip(inverse) {
            let length = dot(row, row).sqrt();
            let factor = 1.0 / if length < SMALLEST { SMALLEST } else { length };
            *inverse = factor;
            for value in row {
                *value *= factor;
            }
        }
    }
}

vectorised! {
    /// Turns the gradient by `y` into that by `x`, in place.
    pub(crate) fn backward<'a>(columns: usize, y: &'a [f32], inverse: &'a [f32], g: &'a mut [f32]) {
        for ((y, inverse), g) in y.chunks_exact(columns).zip(inverse).zip(g.chunks_exact_mut(columns)) {
            let (along, factor) = (dot(y, g), *inverse);
            for (g, y) in g.as_chunks_mut::<16>().0.iter_mut().zip(y.as_chunks::<16>().0) {
                let mut out = [0.0; 16];
                for j in 0..16 {
                    out[j] = (-along).mul_add(y[j], g[j]) * factor;
                }
                *g = out;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_length_one_and_a_zero_row_stays() {
        let mut x = vec![0.0; 32];
        x[..3].copy_from_slice(&[3.0, 0.0, -4.0]);
        let mut inverse = [0.0; 2];
        forward(16, &mut x, &mut inverse);
        assert!((x[0] - 0.6).abs() < 1e-6 && (x[2] + 0.8).abs() < 1e-6);
        assert!(x[16..].iter().all(|&v| v == 0.0));
        let mut g = vec![1.0; 32];
        backward(16, &x, &inverse, &mut g);
        let along: f32 = x[..16].iter().zip(&g).map(|(y, g)| y * g).sum();
        assert!(along.abs() < 1e-6, "no gradient along the row");
    }
}
