//! Self-attention among branches, with `m` heads of head_width `e`: `[q, k, v] = h W_in + b_in`, per head
//! `p = softmax(q kᵀ / sqrt e)` and `u = p v`; then `y = u W_out + b_out`, and the mean of `y` over the branches.
//!
//! The same as PyTorch's `MultiheadAttention` without dropout, and starts with the same distribution.

use super::{Combination, CombinationBackward, Sizes, dot, softmax, softmax_backward};
use crate::kernel::padded;
use crate::kernel::product::Matrix;
use crate::layer::linear::Operand;
use crate::layout::{Layout, Start as Initial, padded_width};
use crate::train::sink::Sink;

#[derive(Debug, Clone)]
pub(crate) struct Slots {
    project: usize,
    output: usize,
    hidden: usize,
    heads: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Cache {
    /// `q`, `k`, `v` of each row and branch.
    qkv: Vec<f32>,
    /// For each row, head and branch, the weights over branches.
    weights: Vec<f32>,
    u: Vec<f32>,
    y: Vec<f32>,
    d_qkv: Vec<f32>,
}

impl Cache {
    pub fn new(slots: &Slots, rows: usize, branches: usize) -> Self {
        let (three, one) = (padded(3 * slots.hidden), padded_width(slots.hidden));
        Cache {
            qkv: vec![0.0; rows * branches * three],
            weights: vec![0.0; rows * slots.heads * branches * branches],
            u: vec![0.0; rows * branches * one],
            y: vec![0.0; rows * branches * one],
            d_qkv: vec![0.0; rows * branches * three],
        }
    }
}

pub(crate) fn slots(layout: &mut Layout, hidden: usize, heads: usize) -> Slots {
    let width = padded_width(hidden);
    let project =
        layout.linear("jk.project", (hidden, width), hidden, (3 * hidden, padded(3 * hidden)), None);
    let xavier = (6.0 / (4 * hidden) as f32).sqrt();
    layout.start_last(Initial::Uniform(xavier), Initial::Constant(0.0));
    let output = layout.linear("jk.output", (hidden, width), hidden, (hidden, width), None);
    layout.start_last(Initial::Uniform(1.0 / (hidden as f32).sqrt()), Initial::Constant(0.0));
    Slots { project, output, hidden, heads }
}

/// Where head `m` of part `part` (0: `q`, 1: `k`, 2: `v`) of a branch lies in its `qkv`.
fn part(slots: &Slots, branch: usize, part: usize, head: usize) -> std::ops::Range<usize> {
    let head_width = slots.hidden / slots.heads;
    let start = branch * padded(3 * slots.hidden) + part * slots.hidden + head * head_width;
    start..start + head_width
}

pub(crate) fn forward(
    join: &Combination<'_>,
    slots: &Slots,
    branches: &[f32],
    out: &mut [f32],
    cache: &mut Cache,
) {
    let Sizes { rows, branches: count, padded_width: width } = join.sizes;
    let three = padded(3 * slots.hidden);
    let all = rows * count;
    join.linears[slots.project].forward(all, Operand::dense(branches, width), &mut cache.qkv);
    let head_width = slots.hidden / slots.heads;
    let scale = 1.0 / (head_width as f32).sqrt();
    for r in 0..rows {
        let qkv = &cache.qkv[r * count * three..][..count * three];
        let u = &mut cache.u[r * count * width..][..count * width];
        for head in 0..slots.heads {
            for t in 0..count {
                let at = ((r * slots.heads + head) * count + t) * count;
                let weights = &mut cache.weights[at..at + count];
                for (s, weight) in weights.iter_mut().enumerate() {
                    *weight = scale * dot(&qkv[part(slots, t, 0, head)], &qkv[part(slots, s, 1, head)]);
                }
                softmax(weights);
                let u = &mut u[t * width + head * head_width..][..head_width];
                u.fill(0.0);
                for (s, weight) in weights.iter().enumerate() {
                    for (u, v) in u.iter_mut().zip(&qkv[part(slots, s, 2, head)]) {
                        *u += weight * v;
                    }
                }
            }
        }
    }
    join.linears[slots.output].forward(all, Operand::dense(&cache.u, width), &mut cache.y);
    super::mean::forward(join.sizes, &cache.y, out);
}

pub(crate) fn backward<'a>(
    join: &Combination<'_>,
    slots: &Slots,
    pass: CombinationBackward<'_>,
    cache: &mut Cache,
    sink: &mut impl Sink<'a>,
) {
    let CombinationBackward { branches, d_out, d_branches } = pass;
    let Sizes { rows, branches: count, padded_width: width } = join.sizes;
    let three = padded(3 * slots.hidden);
    let all = rows * count;
    let d_y = &mut cache.y;
    super::mean::backward(join.sizes, d_out, d_y);
    sink.linear(slots.output, rows, count, Operand::dense(&cache.u, width), d_y);
    let d_u = d_branches;
    join.linears[slots.output].backward(all, Matrix { values: d_y, stride: width }, d_u);
    let head_width = slots.hidden / slots.heads;
    let scale = 1.0 / (head_width as f32).sqrt();
    let mut d_weights = vec![0.0; count];
    for r in 0..rows {
        let qkv = &cache.qkv[r * count * three..][..count * three];
        let d_qkv = &mut cache.d_qkv[r * count * three..][..count * three];
        d_qkv.fill(0.0);
        for head in 0..slots.heads {
            for t in 0..count {
                let at = ((r * slots.heads + head) * count + t) * count;
                let weights = &cache.weights[at..at + count];
                let d_u = &d_u[(r * count + t) * width + head * head_width..][..head_width];
                for s in 0..count {
                    d_weights[s] = dot(d_u, &qkv[part(slots, s, 2, head)]);
                    for (d, g) in d_qkv[part(slots, s, 2, head)].iter_mut().zip(d_u) {
                        *d += weights[s] * g;
                    }
                }
                softmax_backward(weights, &mut d_weights);
                for (s, d_weight) in d_weights.iter().enumerate() {
                    let g = scale * d_weight;
                    for j in 0..head_width {
                        let (q, k) = (part(slots, t, 0, head).start + j, part(slots, s, 1, head).start + j);
                        d_qkv[q] += g * qkv[k];
                        d_qkv[k] += g * qkv[q];
                    }
                }
            }
        }
    }
    sink.linear(slots.project, rows, count, Operand::dense(branches, width), &cache.d_qkv);
    let d = Matrix { values: &cache.d_qkv, stride: three };
    join.linears[slots.project].backward(all, d, d_u);
}
