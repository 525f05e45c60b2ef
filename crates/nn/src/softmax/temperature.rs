//! Temperatures: how sure a model should be, given how often it is right.

use crate::kernel::exp::exp;
use crate::kernel::vectorised;

/// How much the square of a temperature's logarithm costs, in cross-entropies of one row: a factor of two as much as
/// half a row.
const TOWARDS_ONE: f64 = 1.0;

/// The factor on all logits with which the given rows have the lowest cross-entropy, between a tenth and ten, and that
/// cross-entropy.
pub fn best_temperature(logits: &[f32], labels: &[u32], classes: usize) -> (f32, f64) {
    lowest(logits, labels, classes, 0.0)
}

/// The same, but nearer to one the fewer rows there are: a handful that are all right would ask for certainty. The
/// cross-entropy is that of the rows alone.
pub fn shrunk_temperature(logits: &[f32], labels: &[u32], classes: usize) -> (f32, f64) {
    lowest(logits, labels, classes, TOWARDS_ONE / labels.len().max(1) as f64)
}

/// The factor with the lowest cross-entropy plus `pull` times the square of its logarithm, and the cross-entropy there.
///
/// The cross-entropy is convex in the factor, so that a golden-section search finds its minimum.
fn lowest(logits: &[f32], labels: &[u32], classes: usize, pull: f64) -> (f32, f64) {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let curve = Curve::new(logits, labels, classes);
    let loss = |log_factor: f64| curve.at(log_factor.exp()) + pull * log_factor * log_factor;
    let (mut low, mut high) = (0.1f64.ln(), 10f64.ln());
    let mut inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)];
    let mut values = inner.map(loss);
    // To a thousandth.
    for _ in 0..18 {
        if values[0] <= values[1] {
            high = inner[1];
            inner = [high - GOLDEN * (high - low), inner[0]];
            values = [loss(inner[0]), values[0]];
        } else {
            low = inner[0];
            inner = [inner[1], low + GOLDEN * (high - low)];
            values = [values[1], loss(inner[1])];
        }
    }
    let factor = inner[usize::from(values[1] < values[0])].exp();
    (factor as f32, cross_entropy(logits, labels, classes, factor))
}

/// Rows whose exponentials are taken side by side.
const ROWS: usize = 16;

/// The mean cross-entropy as a function of the factor, in single precision: near enough to find its minimum.
struct Curve {
    /// Logits less the largest of their row, which is left out, class after class for some rows at a time.
    below_top: Vec<[f32; ROWS]>,
    /// The sum of those of the labels.
    own: f64,
    classes: usize,
    rows: f64,
}

impl Curve {
    fn new(logits: &[f32], labels: &[u32], classes: usize) -> Curve {
        const LEFT_OUT: f32 = -1e30;
        let blocks = labels.len().div_ceil(ROWS);
        let mut below_top = vec![[LEFT_OUT; ROWS]; blocks * classes];
        let mut own = 0.0;
        for (at, (row, &label)) in logits.chunks_exact(classes).zip(labels).enumerate() {
            let top = largest(row);
            own += f64::from(row[label as usize] - top);
            let first = row.iter().position(|&value| value == top);
            for (class, value) in row.iter().enumerate().filter(|(class, _)| Some(*class) != first) {
                below_top[at / ROWS * classes + class][at % ROWS] = value - top;
            }
        }
        Curve { below_top, own, classes, rows: labels.len().max(1) as f64 }
    }

    fn at(&self, factor: f64) -> f64 {
        (log_sums(&self.below_top, self.classes, factor as f32) - factor * self.own) / self.rows
    }
}

vectorised! {
    /// The sum over the rows of `ln (1 + Σ_c exp(factor logit_c))`.
    fn log_sums<'a>(logits: &'a [[f32; ROWS]], classes: usize, factor: f32) -> f64 {
        let mut total = 0.0;
        for block in logits.chunks_exact(classes) {
            let mut sums = [0f32; ROWS];
            for logits in block {
                for j in 0..ROWS {
                    sums[j] += exp(factor * logits[j]);
                }
            }
            // The largest logit's one is added in double precision, where what is next to certain still counts. Each is
            // between 1 and the number of classes: one logarithm does for all.
            let mut products = sums.map(|sum| 1.0 + f64::from(sum));
            for half in [8, 4, 2, 1] {
                for j in 0..half {
                    products[j] *= products[j + half];
                }
            }
            total += products[0].ln();
        }
        total
    }
}

/// The mean cross-entropy of rows of logits times a factor.
pub fn cross_entropy(logits: &[f32], labels: &[u32], classes: usize, factor: f64) -> f64 {
    let rows = logits.chunks_exact(classes).zip(labels);
    let total: f64 = rows.map(|(row, &label)| log_loss(row, label, factor)).sum();
    total / labels.len().max(1) as f64
}

/// The cross-entropy of each row of logits times a factor.
pub fn log_losses(logits: &[f32], labels: &[u32], classes: usize, factor: f64) -> Vec<f64> {
    let rows = logits.chunks_exact(classes).zip(labels);
    rows.map(|(row, &label)| log_loss(row, label, factor)).collect()
}

fn log_loss(row: &[f32], label: u32, factor: f64) -> f64 {
    let top = largest(row);
    let sum: f64 = row.iter().map(|&value| (factor * f64::from(value - top)).exp()).sum();
    sum.ln() - factor * f64::from(row[label as usize] - top)
}

fn largest(row: &[f32]) -> f32 {
    row.iter().fold(f32::NEG_INFINITY, |top, &value| top.max(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_is_too_sure_is_calmed() {
        // Right three times of four, and sure of it as if 999 of 1000 were right.
        let sure = 999f32.ln();
        let logits: Vec<f32> = (0..400).flat_map(|_| [sure, 0.0]).collect();
        let labels: Vec<u32> = (0..400).map(|row| u32::from(row % 4 == 0)).collect();
        let (factor, loss) = best_temperature(&logits, &labels, 2);
        assert!((factor * sure - 3f32.ln()).abs() < 1e-3, "{factor}");
        let exact = -(0.75 * 0.75f64.ln() + 0.25 * 0.25f64.ln());
        assert!((loss - exact).abs() < 1e-6, "{loss} {exact}");
        assert!(loss < cross_entropy(&logits, &labels, 2, 1.0));
    }

    #[test]
    fn the_curve_is_the_cross_entropy() {
        for (rows, classes) in [(1usize, 1usize), (1, 2), (16, 3), (37, 6), (70, 40)] {
            let number =
                |at: usize| ((at as u32 + 1).wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32;
            let logits: Vec<f32> = (0..rows * classes).map(|at| 20.0 * number(at)).collect();
            let labels: Vec<u32> = (0..rows).map(|row| (row * 7 % classes) as u32).collect();
            let curve = Curve::new(&logits, &labels, classes);
            for factor in [0.1, 0.7, 1.0, 3.0, 10.0] {
                let exact = cross_entropy(&logits, &labels, classes, factor);
                let found = curve.at(factor);
                assert!(
                    (found - exact).abs() < 1e-6 * exact.max(1.0),
                    "{rows} x {classes}: {found}, not {exact}"
                );
            }
        }
    }

    #[test]
    fn a_few_rows_that_are_right_do_not_make_a_model_certain() {
        let rows = |count: usize| -> (Vec<f32>, Vec<u32>) {
            ((0..count).flat_map(|_| [2.0, 0.0]).collect(), vec![0; count])
        };
        let (logits, labels) = rows(3);
        assert!(best_temperature(&logits, &labels, 2).0 > 9.0);
        let (factor, loss) = shrunk_temperature(&logits, &labels, 2);
        assert!((1.0..1.6).contains(&factor), "{factor}");
        assert!((loss - cross_entropy(&logits, &labels, 2, f64::from(factor))).abs() < 1e-6);
        // Many rows are believed.
        let (logits, labels) = rows(3000);
        assert!(shrunk_temperature(&logits, &labels, 2).0 > 3.0);
        assert_eq!(shrunk_temperature(&[], &[], 2).1, 0.0);
    }
}
