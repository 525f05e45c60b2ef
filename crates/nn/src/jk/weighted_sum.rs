//! The weighted sum: `out = Σ_k w_k h_k` with `w = softmax(α)` and one learned `α_k` per branch, zero at the start.
//!
//! Backward, with `g` the gradient with respect to `out`: `dh_k = w_k g`, and a row's own gradient with respect to `α` is
//! `w_k (s_k - Σ_j w_j s_j)` with `s_k = g · h_k`.

use super::{Combination, CombinationBackward, dot, softmax, softmax_backward};
use crate::kernel::product::Matrix;
use crate::layout::{Layout, Start};
use crate::train::sink::Sink;

pub(crate) fn slot(layout: &mut Layout, branches: usize) -> usize {
    layout.vector("jk.weights", branches, Start::Constant(0.0), None)
}

fn weights(join: &Combination<'_>, slot: usize) -> Vec<f32> {
    let mut weights = join.values.parameters[join.values.layout.vectors[slot].range.clone()].to_vec();
    softmax(&mut weights);
    weights
}

pub(crate) fn forward(join: &Combination<'_>, slot: usize, branches: &[f32], out: &mut [f32]) {
    let (weights, sizes) = (weights(join, slot), join.sizes);
    for (row, out) in branches
        .chunks_exact(sizes.branches * sizes.padded_width)
        .zip(out.chunks_exact_mut(sizes.padded_width))
        .take(sizes.rows)
    {
        out.fill(0.0);
        for (branch, weight) in row.chunks_exact(sizes.padded_width).zip(&weights) {
            for (out, value) in out.iter_mut().zip(branch) {
                *out += weight * value;
            }
        }
    }
}

pub(crate) fn backward<'a>(
    join: &Combination<'_>,
    slot: usize,
    pass: CombinationBackward<'_>,
    sink: &mut impl Sink<'a>,
) {
    let CombinationBackward { branches, d_out, d_branches } = pass;
    let (weights, sizes) = (weights(join, slot), join.sizes);
    let padded = join.values.layout.vectors[slot].padded;
    let mut own = vec![0.0; sizes.rows * padded];
    let stride = sizes.branches * sizes.padded_width;
    for r in 0..sizes.rows {
        let g = &d_out[r * sizes.padded_width..][..sizes.padded_width];
        let (row, d_row) = (&branches[r * stride..][..stride], &mut d_branches[r * stride..][..stride]);
        let own = &mut own[r * padded..][..sizes.branches];
        for k in 0..sizes.branches {
            let branch = k * sizes.padded_width..(k + 1) * sizes.padded_width;
            own[k] = dot(&row[branch.clone()], g);
            for (d, g) in d_row[branch].iter_mut().zip(g) {
                *d = weights[k] * g;
            }
        }
        softmax_backward(&weights, own);
    }
    sink.vector(slot, sizes.rows, Matrix { values: &own, stride: padded });
}
