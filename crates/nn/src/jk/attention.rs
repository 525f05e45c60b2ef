//! Self-attention among hops, with `m` heads of width `e`: `[q, k, v] = h W_in + b_in`, per head
//! `p = softmax(q kᵀ / sqrt e)` and `u = p v`; then `y = u W_out + b_out`, and the mean of `y` over the hops.
//!
//! The same as PyTorch's `MultiheadAttention` without dropout, and starts with the same distribution.

use super::{Sizes, dot, softmax, softmax_backward};
use crate::block::Prepared;
use crate::kernel::padded;
use crate::kernel::product::{Matrix, Start};
use crate::layout::{Layout, Start as Initial, hidden_padded};
use crate::train::sink::{Operand, Sink};

#[derive(Debug, Clone)]
pub(crate) struct Slots {
    project: usize,
    output: usize,
    hidden: usize,
    heads: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Cache {
    /// `q`, `k`, `v` of each row and hop.
    qkv: Vec<f32>,
    /// For each row, head and hop, the weights over hops.
    weights: Vec<f32>,
    u: Vec<f32>,
    y: Vec<f32>,
    d_qkv: Vec<f32>,
}

impl Cache {
    pub fn new(slots: &Slots, rows: usize, hops: usize) -> Self {
        let (three, one) = (padded(3 * slots.hidden), hidden_padded(slots.hidden));
        Cache {
            qkv: vec![0.0; rows * hops * three],
            weights: vec![0.0; rows * slots.heads * hops * hops],
            u: vec![0.0; rows * hops * one],
            y: vec![0.0; rows * hops * one],
            d_qkv: vec![0.0; rows * hops * three],
        }
    }
}

pub(crate) fn slots(layout: &mut Layout, hidden: usize, heads: usize) -> Slots {
    let wide = hidden_padded(hidden);
    let project = layout.linear("jk.project", (hidden, wide), hidden, (3 * hidden, padded(3 * hidden)), None);
    let xavier = (6.0 / (4 * hidden) as f32).sqrt();
    layout.start_last(Initial::Uniform(xavier), Initial::Constant(0.0));
    let output = layout.linear("jk.output", (hidden, wide), hidden, (hidden, wide), None);
    layout.start_last(Initial::Uniform(1.0 / (hidden as f32).sqrt()), Initial::Constant(0.0));
    Slots { project, output, hidden, heads }
}

/// Where head `m` of part `part` (0: `q`, 1: `k`, 2: `v`) of a hop lies in its `qkv`.
fn part(slots: &Slots, hop: usize, part: usize, head: usize) -> std::ops::Range<usize> {
    let width = slots.hidden / slots.heads;
    let start = hop * padded(3 * slots.hidden) + part * slots.hidden + head * width;
    start..start + width
}

pub(crate) fn forward(
    prepared: &Prepared<'_>,
    slots: &Slots,
    sizes: Sizes,
    hops: &[f32],
    out: &mut [f32],
    cache: &mut Cache,
) {
    let Sizes { rows, hops: count, wide } = sizes;
    let three = padded(3 * slots.hidden);
    let all = rows * count;
    prepared.linears[slots.project].forward(
        all,
        Matrix { values: hops, stride: wide },
        &mut cache.qkv,
        three,
    );
    let width = slots.hidden / slots.heads;
    let scale = 1.0 / (width as f32).sqrt();
    for r in 0..rows {
        let qkv = &cache.qkv[r * count * three..][..count * three];
        let u = &mut cache.u[r * count * wide..][..count * wide];
        for head in 0..slots.heads {
            for t in 0..count {
                let at = ((r * slots.heads + head) * count + t) * count;
                let weights = &mut cache.weights[at..at + count];
                for (s, weight) in weights.iter_mut().enumerate() {
                    *weight = scale * dot(&qkv[part(slots, t, 0, head)], &qkv[part(slots, s, 1, head)]);
                }
                softmax(weights);
                let u = &mut u[t * wide + head * width..][..width];
                u.fill(0.0);
                for (s, weight) in weights.iter().enumerate() {
                    for (u, v) in u.iter_mut().zip(&qkv[part(slots, s, 2, head)]) {
                        *u += weight * v;
                    }
                }
            }
        }
    }
    prepared.linears[slots.output].forward(
        all,
        Matrix { values: &cache.u, stride: wide },
        &mut cache.y,
        wide,
    );
    super::mean::forward(sizes, &cache.y, out);
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn backward<'a>(
    prepared: &Prepared<'_>,
    slots: &Slots,
    sizes: Sizes,
    hops: &[f32],
    d_out: &[f32],
    d_hops: &mut [f32],
    cache: &mut Cache,
    sink: &mut impl Sink<'a>,
) {
    let Sizes { rows, hops: count, wide } = sizes;
    let three = padded(3 * slots.hidden);
    let all = rows * count;
    let d_y = &mut cache.y;
    super::mean::backward(sizes, d_out, d_y);
    sink.linear(slots.output, rows, count, Operand::dense(&cache.u, wide), d_y);
    let d_u = d_hops;
    prepared.linears[slots.output].backward(
        all,
        Matrix { values: d_y, stride: wide },
        Start::Zero,
        d_u,
        wide,
    );
    let width = slots.hidden / slots.heads;
    let scale = 1.0 / (width as f32).sqrt();
    let mut d_weights = vec![0.0; count];
    for r in 0..rows {
        let qkv = &cache.qkv[r * count * three..][..count * three];
        let d_qkv = &mut cache.d_qkv[r * count * three..][..count * three];
        d_qkv.fill(0.0);
        for head in 0..slots.heads {
            for t in 0..count {
                let at = ((r * slots.heads + head) * count + t) * count;
                let weights = &cache.weights[at..at + count];
                let d_u = &d_u[(r * count + t) * wide + head * width..][..width];
                for s in 0..count {
                    d_weights[s] = dot(d_u, &qkv[part(slots, s, 2, head)]);
                    for (d, g) in d_qkv[part(slots, s, 2, head)].iter_mut().zip(d_u) {
                        *d += weights[s] * g;
                    }
                }
                softmax_backward(weights, &mut d_weights);
                for (s, d_weight) in d_weights.iter().enumerate() {
                    let g = scale * d_weight;
                    for j in 0..width {
                        let (q, k) = (part(slots, t, 0, head).start + j, part(slots, s, 1, head).start + j);
                        d_qkv[q] += g * qkv[k];
                        d_qkv[k] += g * qkv[q];
                    }
                }
            }
        }
    }
    sink.linear(slots.project, rows, count, Operand::dense(hops, wide), &cache.d_qkv);
    let d = Matrix { values: &cache.d_qkv, stride: three };
    prepared.linears[slots.project].backward(all, d, Start::Zero, d_u, wide);
}
