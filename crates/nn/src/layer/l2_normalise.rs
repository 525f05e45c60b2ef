//! Row normalisation: `y = x / max(|x|, 1e-12)`; a zero row stays zero.
//!
//! Backward, with `g` the gradient by `y`: `dx = (g - y (y · g)) / |x|`.

use pulp::{Simd, WithSimd};

const SMALLEST: f32 = 1e-12;

/// The dot product of two rows of a multiple of 16 values.
#[inline(always)]
fn dot<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    let (a, b) = (S::as_simd_f32s(a).0, S::as_simd_f32s(b).0);
    let mut sums = [simd.splat_f32s(0.0); 2];
    for (a, b) in a.chunks(2).zip(b.chunks(2)) {
        for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
            *sum = simd.mul_add_e_f32s(a, b, *sum);
        }
    }
    simd.reduce_sum_f32s(simd.add_f32s(sums[0], sums[1]))
}

/// Normalises rows of `columns` (a multiple of 16) in place, and keeps `1 / |x|` of each.
pub(crate) fn forward(columns: usize, x: &mut [f32], inverse: &mut [f32]) {
    pulp::Arch::new().dispatch(Forward { columns, x, inverse });
}

struct Forward<'a> {
    columns: usize,
    x: &'a mut [f32],
    inverse: &'a mut [f32],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (row, inverse) in self.x.chunks_exact_mut(self.columns).zip(self.inverse) {
            let length = dot(simd, row, row).sqrt();
            *inverse = 1.0 / if length < SMALLEST { SMALLEST } else { length };
            let factor = simd.splat_f32s(*inverse);
            for value in S::as_mut_simd_f32s(row).0 {
                *value = simd.mul_f32s(*value, factor);
            }
        }
    }
}

/// Turns the gradient by `y` into that by `x`, in place.
pub(crate) fn backward(columns: usize, y: &[f32], inverse: &[f32], g: &mut [f32]) {
    pulp::Arch::new().dispatch(Backward { columns, y, inverse, g });
}

struct Backward<'a> {
    columns: usize,
    y: &'a [f32],
    inverse: &'a [f32],
    g: &'a mut [f32],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let rows = self.y.chunks_exact(self.columns).zip(self.g.chunks_exact_mut(self.columns));
        for ((y, g), &inverse) in rows.zip(self.inverse) {
            let against = simd.splat_f32s(-dot(simd, y, g));
            let factor = simd.splat_f32s(inverse);
            for (g, &y) in S::as_mut_simd_f32s(g).0.iter_mut().zip(S::as_simd_f32s(y).0) {
                *g = simd.mul_f32s(simd.mul_add_e_f32s(against, y, *g), factor);
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
