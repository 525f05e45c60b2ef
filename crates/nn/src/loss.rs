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

vectorised! {
    fn exp_all<'a>(values: &'a mut [f32]) {
        for value in values {
            *value = exp(*value);
        }
    }
}

/// The largest value of a row.
#[inline(always)]
fn top(row: &[f32]) -> f32 {
    row.iter().fold(f32::NEG_INFINITY, |top, &value| if value > top { value } else { top })
}

/// Turns padded rows of logits into probabilities, in place.
pub(crate) fn softmax(logits: &mut [f32], classes: usize, columns: usize) {
    for row in logits.chunks_exact_mut(columns) {
        let top = top(&row[..classes]);
        row.iter_mut().for_each(|value| *value -= top);
    }
    exp_all(logits);
    for row in logits.chunks_exact_mut(columns) {
        let inverse = 1.0 / row[..classes].iter().sum::<f32>();
        row.iter_mut().for_each(|value| *value *= inverse);
    }
}

vectorised! {
    /// Writes `scale (p - e_y)` for padded rows of logits into `d`, where row `r` has the class `labels[rows[r]]`; padding
    /// becomes zero.
    pub(crate) fn cross_entropy<'a>(
        rows: &'a [u32],
        labels: &'a [u32],
        logits: &'a [f32],
        d: &'a mut [f32],
        classes: usize,
        columns: usize,
        scale: f32,
    ) -> Tally {
        // The compiler makes more of a number it knows.
        match columns {
            8 => padded_cross_entropy(rows, labels, logits, d, classes, 8, scale),
            _ => padded_cross_entropy(rows, labels, logits, d, classes, columns, scale),
        }
    }
}

#[inline(always)]
fn padded_cross_entropy(
    rows: &[u32],
    labels: &[u32],
    logits: &[f32],
    d: &mut [f32],
    classes: usize,
    columns: usize,
    scale: f32,
) -> Tally {
    let mut tally = Tally::default();
    for ((&row, logits), d) in rows.iter().zip(logits.chunks_exact(columns)).zip(d.chunks_exact_mut(columns))
    {
        let label = labels[row as usize] as usize;
        let chunks = logits.as_chunks::<8>().0;
        let mut tops = [f32::NEG_INFINITY; 8];
        for (c, chunk) in chunks.iter().enumerate() {
            for j in 0..8 {
                let larger = (c * 8 + j < classes) & (chunk[j] > tops[j]);
                tops[j] = if larger { chunk[j] } else { tops[j] };
            }
        }
        for half in [4, 2, 1] {
            for j in 0..half {
                tops[j] = if tops[j + half] > tops[j] { tops[j + half] } else { tops[j] };
            }
        }
        let top = tops[0];
        // The first of equals counts.
        let mut first = usize::MAX;
        for (c, (chunk, d)) in chunks.iter().zip(d.as_chunks_mut::<8>().0).enumerate() {
            let mut equal = 0u32;
            for (j, &value) in chunk.iter().enumerate() {
                equal |= u32::from(value == top) << j;
            }
            first = first.min(c * 8 + equal.trailing_zeros() as usize + usize::from(equal == 0) * classes);
            for j in 0..8 {
                d[j] = chunk[j] - top;
            }
        }
        tally.loss -= f64::from(d[label]);
        tally.correct += usize::from(first == label);
    }
    for value in d.iter_mut() {
        *value = exp(*value);
    }
    // The sum of logarithms is the logarithm of the product; of so few factors below 2^16 it cannot overflow.
    for (rows, d) in rows.chunks(32).zip(d.chunks_mut(32 * columns)) {
        let mut product = 1.0;
        for (&row, d) in rows.iter().zip(d.chunks_exact_mut(columns)) {
            let mut sums = [0.0; 8];
            for (c, chunk) in d.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                for j in 0..8 {
                    chunk[j] = if c * 8 + j < classes { chunk[j] } else { 0.0 };
                    sums[j] += chunk[j];
                }
            }
            let sum = sum_lanes(&sums);
            product *= f64::from(sum);
            let factor = scale / sum;
            for value in d.iter_mut() {
                *value *= factor;
            }
            d[labels[row as usize] as usize] -= scale;
        }
        tally.loss += product.ln();
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_and_gradient_match_the_definition() {
        let logits = [1.0f32, -2.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 100.0, 99.0, 98.0, 7.0, 7.0, 7.0, 7.0, 7.0];
        let mut g = [f32::NAN; 16];
        let tally = cross_entropy(&[0, 1], &[2, 0], &logits, &mut g, 3, 8, 0.5);
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
