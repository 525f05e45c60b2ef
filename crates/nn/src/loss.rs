//! Softmax cross-entropy: `L = log Σ_c exp(l_c) - l_y`, and its gradient `p - e_y` with `p` the softmax of the
//! logits `l`.

use crate::kernel::exp::exp;
use crate::kernel::{sum_lanes, vectorised};

/// Loss and hits over some rows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tally {
    pub loss: f64,
    pub correct: usize,
}

impl Tally {
    pub fn merge(self, other: Tally) -> Tally {
        Tally { loss: self.loss + other.loss, correct: self.correct + other.correct }
    }
}

/// The first class with the largest value.
#[inline(always)]
pub(crate) fn arg_max(values: &[f32]) -> usize {
    let mut best = 0;
    for (class, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = class;
        }
    }
    best
}

/// Softmax in place, in a padded row whose padding becomes zero, then `scale (p - e_label)` if there is a label; gives
/// the largest value and the sum of the exponentials of the differences to it.
#[inline(always)]
fn softmax_row(row: &mut [f32], classes: usize, label: Option<(u32, f32)>) -> (f32, f32) {
    let lanes = row.as_chunks_mut::<8>().0;
    // Which of eight classes from `8 i` on are real.
    let real = |i: usize, j: usize| ((8 * i + j) as u32) < classes as u32;
    let mut tops = [f32::NEG_INFINITY; 8];
    for (i, lanes) in lanes.iter().enumerate() {
        for j in 0..8 {
            tops[j] = if real(i, j) && lanes[j] > tops[j] { lanes[j] } else { tops[j] };
        }
    }
    let top = max_lanes(tops);
    let mut sums = [0.0; 8];
    for (i, lanes) in lanes.iter_mut().enumerate() {
        let mut exps = [0.0; 8];
        for j in 0..8 {
            exps[j] = exp(lanes[j] - top);
        }
        for j in 0..8 {
            exps[j] = if real(i, j) { exps[j] } else { 0.0 };
        }
        for j in 0..8 {
            sums[j] += exps[j];
        }
        *lanes = exps;
    }
    let sum = sum_lanes(&sums);
    let (label, scale) = label.unwrap_or((u32::MAX, 1.0));
    let inverse = scale / sum;
    for (i, lanes) in lanes.iter_mut().enumerate() {
        let mut out = [0.0; 8];
        for j in 0..8 {
            let hit = if (8 * i + j) as u32 == label { scale } else { 0.0 };
            out[j] = lanes[j] * inverse - hit;
        }
        *lanes = out;
    }
    (top, sum)
}

#[inline(always)]
fn max_lanes(v: [f32; 8]) -> f32 {
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let four: [f32; 4] = std::array::from_fn(|j| larger(v[j], v[j + 4]));
    larger(larger(four[0], four[2]), larger(four[1], four[3]))
}

vectorised! {
    /// Turns padded rows of logits into probabilities, in place.
    pub(crate) fn softmax<'a>(logits: &'a mut [f32], classes: usize, columns: usize) {
        for row in logits.chunks_exact_mut(columns) {
            softmax_row(row, classes, None);
        }
    }
}

vectorised! {
    /// Turns padded rows of logits into `scale (p - e_y)`, in place, where row `r` has the class
    /// `labels[rows[r]]`.
    pub(crate) fn cross_entropy<'a>(
        rows: &'a [u32],
        labels: &'a [u32],
        logits: &'a mut [f32],
        classes: usize,
        columns: usize,
        scale: f32,
    ) -> Tally {
        let mut tally = Tally::default();
        // The sum of logarithms is the logarithm of the product; of so few factors below 2^16 it cannot overflow.
        for (rows, logits) in rows.chunks(32).zip(logits.chunks_mut(32 * columns)) {
            let mut product = 1.0;
            for (&row, logits) in rows.iter().zip(logits.chunks_exact_mut(columns)) {
                let label = labels[row as usize];
                let own = logits[label as usize];
                let earlier = logits[..label as usize].iter().any(|&other| other >= own);
                let (top, sum) = softmax_row(logits, classes, Some((label, scale)));
                tally.correct += usize::from(own >= top && !earlier);
                tally.loss += f64::from(top - own);
                product *= f64::from(sum);
            }
            tally.loss += product.ln();
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_and_gradient_match_the_definition() {
        let logits = [1.0f32, -2.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 100.0, 99.0, 98.0, 7.0, 7.0, 7.0, 7.0, 7.0];
        let mut g = logits;
        let tally = cross_entropy(&[0, 1], &[2, 0], &mut g, 3, 8, 0.5);
        let mut loss = 0.0;
        for (r, label) in [(0, 2), (1, 0)] {
            let row: Vec<f64> = logits[r * 8..][..3].iter().map(|&l| l.into()).collect();
            let sum: f64 = row.iter().map(|l| (l - row[0]).exp()).sum();
            loss += row[0] + sum.ln() - row[label];
            for c in 0..3 {
                let p = (row[c] - row[0]).exp() / sum;
                let exact = 0.5 * (p - f64::from(u8::from(c == label)));
                assert!((f64::from(g[r * 8 + c]) - exact).abs() < 1e-6);
            }
            assert!(g[r * 8 + 3..][..5].iter().all(|&v| v == 0.0));
        }
        assert!((tally.loss - loss).abs() < 1e-5);
        assert_eq!(tally.correct, 1);
    }
}
