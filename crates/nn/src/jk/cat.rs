//! Concatenation: `out = [h_0, …, h_K]`. The identity, as hops lie side by side already.

use super::Sizes;

pub(crate) fn forward(sizes: Sizes, hops: &[f32], out: &mut [f32]) {
    let values = sizes.rows * sizes.hops * sizes.wide;
    out[..values].copy_from_slice(&hops[..values]);
}

pub(crate) fn backward(sizes: Sizes, d_out: &[f32], d_hops: &mut [f32]) {
    forward(sizes, d_out, d_hops);
}
