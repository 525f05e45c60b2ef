//! Normalisations backward, on their own: in a convolution the activation comes after the norm, and unit length before it.
//!
//! Batch normalisation:
//! With `x = (p - μ) / sqrt(v + ε)`, `g` the gradient by `y = γ x + β` and `n` rows: `dβ = Σ g`, `dγ = Σ g x` and
//! `dp = (γ / sqrt(v + ε)) (g - dβ/n - x dγ/n)`.

use crate::kernel::{for_lanes, lanes, lanes_mut, vectorised};
use crate::layer::batch_norm::Columns;
use crate::layer::l2_normalise::dot;

vectorised! {
    /// Row normalisation backward: turns the gradient by `y = x / |x|` into that by `x`, in place.
    pub(super) fn to_unit_length<'a>(columns: usize, y: &'a [f32], inverse: &'a [f32], g: &'a mut [f32]) {
        for ((y, inverse), g) in y.chunks_exact(columns).zip(inverse).zip(g.chunks_exact_mut(columns)) {
            let (along, factor) = (dot(y, g), *inverse);
            for (g, y) in g.iter_mut().zip(y) {
                *g = (-along).mul_add(*y, *g) * factor;
            }
        }
    }
}

vectorised! {
    /// Adds to `sum_g` and `sum_gx`.
    pub(super) fn add_sums<'a>(
        norm: &'a Columns,
        rows: usize,
        columns: usize,
        p: &'a [f32],
        g: &'a [f32],
        sum_g: &'a mut [f32],
        sum_gx: &'a mut [f32],
    ) {
        for_lanes!(columns, L, at, {
            let [mean, inverse]: [[f32; L]; 2] = [&norm.mean, &norm.inverse].map(|values| *lanes(values, at));
            let [mut total_g, mut total_gx]: [[f32; L]; 2] = [*lanes(sum_g, at), *lanes(sum_gx, at)];
            for r in 0..rows {
                let p: [f32; L] = *lanes(p, r * columns + at);
                let g: [f32; L] = *lanes(g, r * columns + at);
                for j in 0..L {
                    total_g[j] += g[j];
                }
                for j in 0..L {
                    total_gx[j] = g[j].mul_add((p[j] - mean[j]) * inverse[j], total_gx[j]);
                }
            }
            *lanes_mut(sum_g, at) = total_g;
            *lanes_mut(sum_gx, at) = total_gx;
        });
    }
}

vectorised! {
    /// Writes `dp`, where the means of `g` and `g x` are known.
    pub(super) fn centre<'a>(
        norm: &'a Columns,
        rows: usize,
        columns: usize,
        p: &'a [f32],
        g: &'a [f32],
        dp: &'a mut [f32],
    ) {
        for_lanes!(columns, L, at, {
            let [gamma, mean, inverse, mean_g, mean_gx]: [[f32; L]; 5] =
                [&norm.gamma, &norm.mean, &norm.inverse, &norm.mean_g, &norm.mean_gx].map(|v| *lanes(v, at));
            for r in 0..rows {
                let p: [f32; L] = *lanes(p, r * columns + at);
                let g: [f32; L] = *lanes(g, r * columns + at);
                let mut out = [0.0; L];
                for j in 0..L {
                    let x = (p[j] - mean[j]) * inverse[j];
                    out[j] = (-x).mul_add(mean_gx[j], g[j] - mean_g[j]) * (gamma[j] * inverse[j]);
                }
                *lanes_mut(dp, r * columns + at) = out;
            }
        });
    }
}
