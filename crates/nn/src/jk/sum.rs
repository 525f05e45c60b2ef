//! The sum: `out = s Σ_k h_k` with `s = 1`; the gradient by each hop is `s` times that by the sum.

use super::Sizes;

pub(crate) fn forward(sizes: Sizes, scale: f32, hops: &[f32], out: &mut [f32]) {
    for (row, out) in
        hops.chunks_exact(sizes.hops * sizes.wide).zip(out.chunks_exact_mut(sizes.wide)).take(sizes.rows)
    {
        out.fill(0.0);
        for hop in row.chunks_exact(sizes.wide) {
            for (out, value) in out.iter_mut().zip(hop) {
                *out += scale * value;
            }
        }
    }
}

pub(crate) fn backward(sizes: Sizes, scale: f32, d_out: &[f32], d_hops: &mut [f32]) {
    for (row, d_out) in
        d_hops.chunks_exact_mut(sizes.hops * sizes.wide).zip(d_out.chunks_exact(sizes.wide)).take(sizes.rows)
    {
        for hop in row.chunks_exact_mut(sizes.wide) {
            for (d, g) in hop.iter_mut().zip(d_out) {
                *d = scale * g;
            }
        }
    }
}
