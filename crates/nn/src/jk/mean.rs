//! The mean: `out = Σ_k h_k / (K + 1)`, the sum with a factor.

use super::{Sizes, sum};

pub(crate) fn forward(sizes: Sizes, hops: &[f32], out: &mut [f32]) {
    sum::forward(sizes, 1.0 / sizes.hops as f32, hops, out);
}

pub(crate) fn backward(sizes: Sizes, d_out: &[f32], d_hops: &mut [f32]) {
    sum::backward(sizes, 1.0 / sizes.hops as f32, d_out, d_hops);
}
