//! The mean: `out = Σ_k h_k / (K + 1)`, the sum with a factor.

use super::{Sizes, sum};

pub(crate) fn forward(sizes: Sizes, branches: &[f32], out: &mut [f32]) {
    sum::forward(sizes, 1.0 / sizes.branches as f32, branches, out);
}

pub(crate) fn backward(sizes: Sizes, d_out: &[f32], d_branches: &mut [f32]) {
    sum::backward(sizes, 1.0 / sizes.branches as f32, d_out, d_branches);
}
