//! The sum: `out = s Σ_k h_k` with `s = 1`; the gradient with respect to each branch is `s` times that with respect to
//! the sum.

use super::Sizes;

pub(crate) fn forward(sizes: Sizes, scale: f32, branches: &[f32], out: &mut [f32]) {
    for (row, out) in branches
        .chunks_exact(sizes.branches * sizes.padded_width)
        .zip(out.chunks_exact_mut(sizes.padded_width))
        .take(sizes.rows)
    {
        out.fill(0.0);
        for branch in row.chunks_exact(sizes.padded_width) {
            for (out, value) in out.iter_mut().zip(branch) {
                *out += scale * value;
            }
        }
    }
}

pub(crate) fn backward(sizes: Sizes, scale: f32, d_out: &[f32], d_branches: &mut [f32]) {
    for (row, d_out) in d_branches
        .chunks_exact_mut(sizes.branches * sizes.padded_width)
        .zip(d_out.chunks_exact(sizes.padded_width))
        .take(sizes.rows)
    {
        for branch in row.chunks_exact_mut(sizes.padded_width) {
            for (d, g) in branch.iter_mut().zip(d_out) {
                *d = scale * g;
            }
        }
    }
}
