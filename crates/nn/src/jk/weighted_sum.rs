//! The weighted sum: `out = Σ_k w_k h_k` with `w = softmax(α)` and one learned `α_k` per hop, zero at the start.
//!
//! Backward, with `g` the gradient by `out`: `dh_k = w_k g`, and a row's own gradient by `α` is
//! `w_k (s_k - Σ_j w_j s_j)` with `s_k = g · h_k`.

use super::{Sizes, dot, softmax, softmax_backward};
use crate::block::Prepared;
use crate::kernel::product::Matrix;
use crate::layout::{Layout, Start};
use crate::train::sink::Sink;

pub(crate) fn slot(layout: &mut Layout, hops: usize) -> usize {
    layout.vector("jk.weights", hops, Start::Constant(0.0), None)
}

fn weights(prepared: &Prepared<'_>, slot: usize) -> Vec<f32> {
    let network = prepared.network;
    let mut weights = network.values.parameters[network.values.layout.vectors[slot].range.clone()].to_vec();
    softmax(&mut weights);
    weights
}

pub(crate) fn forward(prepared: &Prepared<'_>, slot: usize, sizes: Sizes, hops: &[f32], out: &mut [f32]) {
    let weights = weights(prepared, slot);
    for (row, out) in
        hops.chunks_exact(sizes.hops * sizes.wide).zip(out.chunks_exact_mut(sizes.wide)).take(sizes.rows)
    {
        out.fill(0.0);
        for (hop, weight) in row.chunks_exact(sizes.wide).zip(&weights) {
            for (out, value) in out.iter_mut().zip(hop) {
                *out += weight * value;
            }
        }
    }
}

pub(crate) fn backward<'a>(
    prepared: &Prepared<'_>,
    slot: usize,
    sizes: Sizes,
    hops: &[f32],
    d_out: &[f32],
    d_hops: &mut [f32],
    sink: &mut impl Sink<'a>,
) {
    let weights = weights(prepared, slot);
    let padded = prepared.network.values.layout.vectors[slot].padded;
    let mut own = vec![0.0; sizes.rows * padded];
    let stride = sizes.hops * sizes.wide;
    for r in 0..sizes.rows {
        let g = &d_out[r * sizes.wide..][..sizes.wide];
        let (row, d_row) = (&hops[r * stride..][..stride], &mut d_hops[r * stride..][..stride]);
        let own = &mut own[r * padded..][..sizes.hops];
        for k in 0..sizes.hops {
            let hop = k * sizes.wide..(k + 1) * sizes.wide;
            own[k] = dot(&row[hop.clone()], g);
            for (d, g) in d_row[hop].iter_mut().zip(g) {
                *d = weights[k] * g;
            }
        }
        softmax_backward(&weights, own);
    }
    sink.vector(slot, sizes.rows, Matrix { values: &own, stride: padded });
}
