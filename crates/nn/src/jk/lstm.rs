//! A sum with weights per row: `out = Σ_k α_k h_k`, `α = softmax(e)`, `e_k = [f_k, b_k] w + c`, where `f` and `b` are the
//! outputs of one LSTM along the branches and of one against them, each `(K + 1) hidden / 2` wide.
//!
//! One step of an LSTM, with `[i, f, g, o] = x W + b + h W' + b'`, `σ` the sigmoid: `c ← σ(f) c + σ(i) tanh(g)`,
//! `h ← σ(o) tanh(c)`, from zero. The gates are in PyTorch's order, and the whole is PyG's jumping knowledge in
//! its mode `lstm`.

use super::{Combination, CombinationBackward, Sizes, dot, softmax, softmax_backward};
use crate::kernel::exp::{sigmoid, tanh};
use crate::kernel::padded;
use crate::kernel::product::Matrix;
use crate::layer::linear::Operand;
use crate::layout::{Layout, Start as Initial, padded_width};
use crate::train::sink::Sink;

#[derive(Debug, Clone)]
pub(crate) struct Slots {
    /// The linear layers on the input and on the state, along the branches and against them.
    ways: [(usize, usize); 2],
    score: usize,
    /// The width of a state.
    state: usize,
}

/// Values that one LSTM keeps for each row and branch.
#[derive(Debug, Clone)]
struct Way {
    /// The four gates after their activation; backward, the gradients before it.
    gates: Vec<f32>,
    /// The state and cell before the step.
    state_before: Vec<f32>,
    cell_before: Vec<f32>,
    /// tanh of the cell after the step.
    cell_tanh: Vec<f32>,
}

#[derive(Debug, Clone)]
pub(crate) struct Cache {
    ways: [Way; 2],
    /// Both states of each row and branch, side by side.
    states: Vec<f32>,
    scores: Vec<f32>,
    alpha: Vec<f32>,
}

impl Cache {
    pub fn new(slots: &Slots, rows: usize, branches: usize) -> Self {
        let all = rows * branches;
        let way = Way {
            gates: vec![0.0; all * padded(4 * slots.state)],
            state_before: vec![0.0; all * padded(slots.state)],
            cell_before: vec![0.0; all * slots.state],
            cell_tanh: vec![0.0; all * slots.state],
        };
        Cache {
            ways: [way.clone(), way],
            states: vec![0.0; all * padded(2 * slots.state)],
            scores: vec![0.0; all * padded(1)],
            alpha: vec![0.0; all],
        }
    }
}

pub(crate) fn slots(layout: &mut Layout, branches: usize, hidden: usize) -> Slots {
    let state = branches * hidden / 2;
    let start = Initial::Uniform(1.0 / (state as f32).sqrt());
    let ways = ["forward", "backward"].map(|way| {
        let input = layout.linear(
            &format!("jk.{way}.input"),
            (hidden, padded_width(hidden)),
            hidden,
            (4 * state, padded(4 * state)),
            None,
        );
        layout.start_last(start, start);
        let recurrent = layout.linear(
            &format!("jk.{way}.state"),
            (state, padded(state)),
            state,
            (4 * state, padded(4 * state)),
            None,
        );
        layout.start_last(start, start);
        (input, recurrent)
    });
    let both = 2 * state;
    let score = layout.linear("jk.score", (both, padded(both)), both, (1, padded(1)), None);
    Slots { ways, score, state }
}

/// The branches in the order of a way.
fn order(way: usize, branches: usize) -> impl DoubleEndedIterator<Item = usize> {
    (0..branches).map(move |t| if way == 0 { t } else { branches - 1 - t })
}

pub(crate) fn forward(
    join: &Combination<'_>,
    slots: &Slots,
    branches: &[f32],
    out: &mut [f32],
    cache: &mut Cache,
) {
    let Sizes { rows, branches: count, padded_width: width } = join.sizes;
    let (size, gates_width, state_width) = (slots.state, padded(4 * slots.state), padded(slots.state));
    let both_width = padded(2 * size);
    let mut from_state = vec![0.0; rows * gates_width];
    for way in 0..2 {
        let (input, recurrent) = slots.ways[way];
        let kept = &mut cache.ways[way];
        join.linears[input].forward(rows * count, Operand::dense(branches, width), &mut kept.gates);
        let mut before: Option<usize> = None;
        for t in order(way, count) {
            for r in 0..rows {
                let at = r * count + t;
                let state = &mut kept.state_before[at * state_width..][..size];
                let cell = at * size;
                match before {
                    None => {
                        state.fill(0.0);
                        kept.cell_before[cell..cell + size].fill(0.0);
                    }
                    Some(s) => {
                        let from = (r * count + s) * both_width + way * size;
                        state.copy_from_slice(&cache.states[from..from + size]);
                    }
                }
            }
            let x = Operand::dense(&kept.state_before[t * state_width..], count * state_width);
            join.linears[recurrent].forward(rows, x, &mut from_state);
            for r in 0..rows {
                let at = r * count + t;
                let gates = &mut kept.gates[at * gates_width..][..4 * size];
                let extra = &from_state[r * gates_width..][..4 * size];
                for (j, (gate, extra)) in gates.iter_mut().zip(extra).enumerate() {
                    let sum = *gate + extra;
                    *gate = if j / size == 2 { tanh(sum) } else { sigmoid(sum) };
                }
                for j in 0..size {
                    let [i, f, g, o] = [0, 1, 2, 3].map(|gate| gates[gate * size + j]);
                    let cell = f * kept.cell_before[at * size + j] + i * g;
                    let squashed = tanh(cell);
                    kept.cell_tanh[at * size + j] = squashed;
                    cache.states[at * both_width + way * size + j] = o * squashed;
                    let next = if way == 0 { t + 1 } else { t.wrapping_sub(1) };
                    if next < count {
                        kept.cell_before[(r * count + next) * size + j] = cell;
                    }
                }
            }
            before = Some(t);
        }
    }
    let states = Operand::dense(&cache.states, both_width);
    join.linears[slots.score].forward(rows * count, states, &mut cache.scores);
    for r in 0..rows {
        let alpha = &mut cache.alpha[r * count..][..count];
        for (t, alpha) in alpha.iter_mut().enumerate() {
            *alpha = cache.scores[(r * count + t) * padded(1)];
        }
        softmax(alpha);
        let out = &mut out[r * width..][..width];
        out.fill(0.0);
        for (t, alpha) in alpha.iter().enumerate() {
            for (out, h) in out.iter_mut().zip(&branches[(r * count + t) * width..][..width]) {
                *out += alpha * h;
            }
        }
    }
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
    let (size, gates_width, state_width) = (slots.state, padded(4 * slots.state), padded(slots.state));
    let (both_width, all) = (padded(2 * size), rows * count);
    let d_scores = &mut cache.scores;
    d_scores.fill(0.0);
    let mut d_alpha = vec![0.0; count];
    for r in 0..rows {
        let g = &d_out[r * width..][..width];
        let alpha = &cache.alpha[r * count..][..count];
        for t in 0..count {
            let branch = (r * count + t) * width..(r * count + t + 1) * width;
            d_alpha[t] = dot(g, &branches[branch.clone()]);
            for (d, g) in d_branches[branch].iter_mut().zip(g) {
                *d = alpha[t] * g;
            }
        }
        softmax_backward(alpha, &mut d_alpha);
        for t in 0..count {
            d_scores[(r * count + t) * padded(1)] = d_alpha[t];
        }
    }
    sink.linear(slots.score, rows, count, Operand::dense(&cache.states, both_width), d_scores);
    let mut d_states = vec![0.0; all * both_width];
    let d = Matrix { values: d_scores, stride: padded(1) };
    join.linears[slots.score].backward(all, d, &mut d_states);

    let mut d_before = vec![0.0; rows * state_width];
    let mut d_x = vec![0.0; all * width];
    for way in 0..2 {
        let (input, recurrent) = slots.ways[way];
        let kept = &mut cache.ways[way];
        let mut d_cell = vec![0.0; rows * size];
        d_before.fill(0.0);
        for t in order(way, count).rev() {
            for r in 0..rows {
                let at = r * count + t;
                let gates = &mut kept.gates[at * gates_width..][..4 * size];
                for j in 0..size {
                    let [i, f, g, o] = [0, 1, 2, 3].map(|gate| gates[gate * size + j]);
                    let squashed = kept.cell_tanh[at * size + j];
                    let d_state = d_states[at * both_width + way * size + j] + d_before[r * state_width + j];
                    let d_c = d_cell[r * size + j] + d_state * o * (1.0 - squashed * squashed);
                    gates[j] = d_c * g * i * (1.0 - i);
                    gates[size + j] = d_c * kept.cell_before[at * size + j] * f * (1.0 - f);
                    gates[2 * size + j] = d_c * i * (1.0 - g * g);
                    gates[3 * size + j] = d_state * squashed * o * (1.0 - o);
                    d_cell[r * size + j] = d_c * f;
                }
            }
            let d = Matrix { values: &kept.gates[t * gates_width..], stride: count * gates_width };
            join.linears[recurrent].backward(rows, d, &mut d_before);
        }
        sink.linear(input, rows, count, Operand::dense(branches, width), &kept.gates);
        sink.linear(recurrent, rows, count, Operand::dense(&kept.state_before, state_width), &kept.gates);
        let d = Matrix { values: &kept.gates, stride: gates_width };
        join.linears[input].backward(all, d, &mut d_x);
        for (d, x) in d_branches.iter_mut().zip(&d_x) {
            *d += x;
        }
    }
}
