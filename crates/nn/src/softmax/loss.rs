//! The loss of rows of logits, and its slopes.

use super::fit::Evidence;
use crate::kernel::exp::exp;
use crate::kernel::{for_lanes, lanes, lanes_mut, sum_lanes, vectorised};
use crate::loss;

/// Rows whose likelihoods are multiplied before one logarithm is taken of them: each is at least 1e-45, and all of them
/// together a normal number.
const ROWS_OF_A_LOGARITHM: usize = 4;

/// The evidence about a block of rows, and how much each of them counts.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub evidence: Evidence<'a>,
    /// One for each row, or none where all count the same.
    pub weights: &'a [f32],
    pub classes: usize,
    /// The factor of every row.
    pub share: f64,
}

impl<'a> Known<'a> {
    /// The evidence about some of the rows.
    pub fn of(self, first: usize, rows: usize) -> Known<'a> {
        let classes = self.classes;
        let evidence = match self.evidence {
            Evidence::Labels(labels) => Evidence::Labels(&labels[first..first + rows]),
            Evidence::Likelihoods(values) => {
                Evidence::Likelihoods(&values[first * classes..(first + rows) * classes])
            }
            Evidence::Targets(values) => {
                Evidence::Targets(&values[first * classes..(first + rows) * classes])
            }
        };
        let weights = if self.weights.is_empty() { &[] } else { &self.weights[first..first + rows] };
        Known { evidence, weights, ..self }
    }

    /// Logits in, slopes of the loss with respect to them out; gives the loss. Rows of `logits` are padded to
    /// `columns`.
    pub fn loss(self, logits: &mut [f32], columns: usize) -> f64 {
        if let (Evidence::Labels(labels), []) = (self.evidence, self.weights) {
            return self.share * loss::label_slopes(labels, self.classes, columns, self.share as f32, logits);
        }
        let rows = logits.len() / columns;
        // How much a row counts divided by what its exponentials add up to; and both sides of its likelihood.
        let mut ratios = vec![(0f32, 0f32); rows];
        exponentials(logits, self.classes, columns, &mut ratios);
        match self.evidence {
            Evidence::Labels(labels) => {
                label_slopes(labels, self.weights, self.share as f32, logits, columns, &mut ratios);
            }
            Evidence::Likelihoods(values) => {
                let (weights, share) = (self.weights, self.share as f32);
                mixture_slopes(values, weights, share, logits, (self.classes, columns), &mut ratios);
            }
            Evidence::Targets(values) => {
                let (weights, share) = (self.weights, self.share as f32);
                target_slopes(values, weights, share, logits, (self.classes, columns), &mut ratios);
            }
        }
        let minus_log = |rows: &[(f32, f32)]| {
            let (whole, part) = rows
                .iter()
                .fold((1f64, 1f64), |(whole, part), row| (whole * f64::from(row.0), part * f64::from(row.1)));
            (whole / part).ln()
        };
        let sum: f64 = match self.weights {
            [] => ratios.chunks(ROWS_OF_A_LOGARITHM).map(minus_log).sum(),
            weights => ratios.chunks(1).zip(weights).map(|(row, &w)| f64::from(w) * minus_log(row)).sum(),
        };
        self.share * sum
    }
}

vectorised! {
    /// Logits in, `exp` of them less the largest of the row out, zero in padding; and the sums of the rows.
    fn exponentials<'a>(logits: &'a mut [f32], classes: usize, columns: usize, sums: &'a mut [(f32, f32)]) {
        for (row, sum) in logits.chunks_exact_mut(columns).zip(sums) {
            let mut top = f32::NEG_INFINITY;
            for_lanes!(columns, L, at, {
                let values: &[f32; L] = lanes(row, at);
                let inside: [f32; L] =
                    std::array::from_fn(|j| if at + j < classes { values[j] } else { f32::NEG_INFINITY });
                top = larger(top, max_lanes(&inside));
            });
            let mut all = 0.0;
            for_lanes!(columns, L, at, {
                let values: &mut [f32; L] = lanes_mut(row, at);
                for (j, value) in values.iter_mut().enumerate() {
                    *value = if at + j < classes { exp(*value - top) } else { 0.0 };
                }
                all += sum_lanes(values);
            });
            *sum = (all, 1.0);
        }
    }
}

vectorised! {
    /// `exp` of logits less the largest in, `weight (p - e_label)` out; the second of each pair becomes the part of the
    /// label.
    fn label_slopes<'a>(
        labels: &'a [u32],
        weights: &'a [f32],
        share: f32,
        rows: &'a mut [f32],
        columns: usize,
        ratios: &'a mut [(f32, f32)],
    ) {
        for (at, (row, ratio)) in rows.chunks_exact_mut(columns).zip(ratios).enumerate() {
            let weight = share * weights.get(at).copied().unwrap_or(1.0);
            let label = labels[at] as usize;
            ratio.1 = row[label];
            let factor = weight / ratio.0;
            for_lanes!(columns, L, at, {
                let values: &mut [f32; L] = lanes_mut(row, at);
                values.iter_mut().for_each(|value| *value *= factor);
            });
            row[label] -= weight;
        }
    }
}

vectorised! {
    /// `exp` of logits less the largest in, `weight (p - r)` out, where `r_c` is proportional to `evidence_c p_c`; the
    /// second of each pair becomes the sum of `evidence_c p_c`. Evidence that excludes every class that is possible
    /// says nothing.
    fn mixture_slopes<'a>(
        evidence: &'a [f32],
        weights: &'a [f32],
        share: f32,
        rows: &'a mut [f32],
        widths: (usize, usize),
        ratios: &'a mut [(f32, f32)],
    ) {
        let (classes, columns) = widths;
        for (index, (row, ratio)) in rows.chunks_exact_mut(columns).zip(ratios).enumerate() {
            let weight = share * weights.get(index).copied().unwrap_or(1.0);
            let own = &evidence[index * classes..];
            let mut mixed = 0.0;
            for_lanes!(columns, L, at, {
                let (values, known): (&[f32; L], [f32; L]) = (lanes(row, at), inside(own, at, classes));
                mixed += sum_lanes::<L>(&std::array::from_fn(|j| values[j] * known[j]));
            });
            let silent = mixed <= 0.0;
            let (whole, part) = if silent { (0.0, 0.0) } else { (weight / ratio.0, weight / mixed) };
            for_lanes!(columns, L, at, {
                let known: [f32; L] = inside(own, at, classes);
                let values: &mut [f32; L] = lanes_mut(row, at);
                for j in 0..L {
                    values[j] *= whole - part * known[j];
                }
            });
            *ratio = if silent { (1.0, 1.0) } else { (ratio.0, mixed) };
        }
    }
}

/// `exp` of logits less the largest in, `weight (p - target)` out; the second of each pair becomes the product of the
/// exponentials, each to the power of its target.
fn target_slopes(
    targets: &[f32],
    weights: &[f32],
    share: f32,
    rows: &mut [f32],
    (classes, columns): (usize, usize),
    ratios: &mut [(f32, f32)],
) {
    for (index, (row, ratio)) in rows.chunks_exact_mut(columns).zip(ratios).enumerate() {
        let weight = share * weights.get(index).copied().unwrap_or(1.0);
        let factor = weight / ratio.0;
        let mut log = 0.0;
        for (value, &target) in row.iter_mut().zip(&targets[index * classes..][..classes]) {
            if target > 0.0 {
                log += target * value.max(f32::MIN_POSITIVE).ln();
            }
            *value = *value * factor - weight * target;
        }
        ratio.1 = log.exp();
    }
}

/// The values of the classes from `at` on, and zeros beyond the last class.
#[inline(always)]
fn inside<const L: usize>(values: &[f32], at: usize, classes: usize) -> [f32; L] {
    match values[at..].first_chunk::<L>() {
        Some(values) => std::array::from_fn(|j| if at + j < classes { values[j] } else { 0.0 }),
        None => std::array::from_fn(|j| if at + j < classes { values[at + j] } else { 0.0 }),
    }
}

#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

/// The largest of all lanes, by halves.
#[inline(always)]
fn max_lanes<const L: usize>(values: &[f32; L]) -> f32 {
    let mut eight = [f32::NEG_INFINITY; 8];
    for chunk in values.as_chunks::<8>().0 {
        for j in 0..8 {
            eight[j] = larger(eight[j], chunk[j]);
        }
    }
    let four: [f32; 4] = std::array::from_fn(|j| larger(eight[j], eight[j + 4]));
    larger(larger(four[0], four[2]), larger(four[1], four[3]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::padded;

    fn number(at: usize) -> f32 {
        ((at as u32 + 1).wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0
    }

    /// For widths of one vector and of several, with weights and without, at the end of the list and before it.
    #[test]
    fn the_loss_and_its_slopes_are_those_of_the_formula() {
        for classes in [2usize, 3, 8, 11, 16, 21, 40] {
            let (rows, columns) = (7, padded(classes));
            let logits: Vec<f32> = (0..rows * classes).map(|at| 6.0 * number(at)).collect();
            let likelihoods: Vec<f32> = (0..rows * classes).map(|at| number(at + 999).max(0.0)).collect();
            let labels: Vec<u32> = (0..rows).map(|row| (row * 5 % classes) as u32).collect();
            let weights: Vec<f32> = (0..rows).map(|row| 0.5 + row as f32).collect();
            let exact = |known: &Known<'_>, row: usize| -> (f64, Vec<f64>) {
                let own = &logits[row * classes..][..classes];
                let odds: Vec<f64> = own.iter().map(|&logit| f64::from(logit).exp()).collect();
                let sum: f64 = odds.iter().sum();
                let tells: Vec<f64> = match known.evidence {
                    Evidence::Labels(labels) => {
                        (0..classes).map(|c| f64::from(u8::from(c == labels[row] as usize))).collect()
                    }
                    Evidence::Likelihoods(values) | Evidence::Targets(values) => {
                        values[row * classes..][..classes].iter().map(|&value| f64::from(value)).collect()
                    }
                };
                if let Evidence::Targets(_) = known.evidence {
                    let weight = known.share * known.weights.get(row).map_or(1.0, |&w| f64::from(w));
                    let loss: f64 = odds.iter().zip(&tells).map(|(o, t)| -t * (o / sum).ln()).sum();
                    let slopes = odds.iter().zip(&tells).map(|(o, t)| weight * (o / sum - t));
                    return (weight * loss, slopes.collect());
                }
                let mixed: f64 = odds.iter().zip(&tells).map(|(o, t)| o * t).sum();
                let weight = known.share * known.weights.get(row).map_or(1.0, |&w| f64::from(w));
                if mixed <= 0.0 {
                    return (0.0, vec![0.0; classes]);
                }
                let slope = |c: usize| weight * odds[c] * (1.0 / sum - tells[c] / mixed);
                (weight * (sum / mixed).ln(), (0..classes).map(slope).collect())
            };
            let mut targets: Vec<f32> = likelihoods.iter().map(|value| value + 0.1).collect();
            for row in targets.chunks_exact_mut(classes) {
                let sum: f32 = row.iter().sum();
                row.iter_mut().for_each(|value| *value /= sum);
            }
            let evidences =
                [Evidence::Labels(&labels), Evidence::Likelihoods(&likelihoods), Evidence::Targets(&targets)];
            for evidence in evidences {
                for weights in [&[][..], &weights] {
                    let known = Known { evidence, weights, classes, share: 0.25 };
                    let mut found = vec![0f32; rows * columns];
                    for (to, from) in found.chunks_exact_mut(columns).zip(logits.chunks_exact(classes)) {
                        to[..classes].copy_from_slice(from);
                    }
                    let (early, late) = found.split_at_mut(3 * columns);
                    let loss = known.of(0, 3).loss(early, columns) + known.of(3, 4).loss(late, columns);
                    let expected: f64 = (0..rows).map(|row| exact(&known, row).0).sum();
                    assert!((loss - expected).abs() < 1e-4, "{classes} classes: {loss}, not {expected}");
                    for (row, found) in found.chunks_exact(columns).enumerate() {
                        for (class, &found) in found.iter().enumerate() {
                            let slope = exact(&known, row).1.get(class).copied().unwrap_or(0.0);
                            assert!(
                                (f64::from(found) - slope).abs() < 1e-5,
                                "{classes}: {found}, not {slope}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn certainty_beyond_single_precision_stays_a_number() {
        // Every label is as unlikely as single precision can say, in more rows than one logarithm takes.
        let mut logits: Vec<f32> =
            (0..9).flat_map(|_| [300.0, -300.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).collect();
        let known = Known { evidence: Evidence::Labels(&[1; 9]), weights: &[], classes: 2, share: 1.0 };
        let loss = known.loss(&mut logits, 8);
        assert!((loss / 9.0 - 600.0).abs() < 0.1, "{loss}");
        let known = Known { weights: &[1.0; 9], ..known };
        let mut logits: Vec<f32> =
            (0..9).flat_map(|_| [300.0, -300.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).collect();
        let loss = known.loss(&mut logits, 8);
        assert!((loss / 9.0 - 87.0).abs() < 0.1, "{loss}");
    }
}
