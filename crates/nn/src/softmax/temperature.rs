//! Temperatures: how sure a model should be, given how often it is right.

/// How much the square of a temperature's logarithm costs, in cross-entropies of one row: a factor of two as much as half a row.
const TOWARDS_ONE: f64 = 1.0;

/// The factor on all logits with which the given rows have the lowest cross-entropy, between a tenth and ten, and that
/// cross-entropy.
pub fn best_temperature(logits: &[f32], labels: &[u32], classes: usize) -> (f32, f64) {
    lowest(logits, labels, classes, 0.0)
}

/// The same, but nearer to one the fewer rows there are: a handful that are all right would ask for certainty. The cross-entropy is that of
/// the rows alone.
pub fn shrunk_temperature(logits: &[f32], labels: &[u32], classes: usize) -> (f32, f64) {
    lowest(logits, labels, classes, TOWARDS_ONE / labels.len().max(1) as f64)
}

/// The factor with the lowest cross-entropy plus `pull` times the square of its logarithm, and the cross-entropy there.
///
/// The cross-entropy is convex in the factor, so that a golden-section search finds its minimum.
fn lowest(logits: &[f32], labels: &[u32], classes: usize, pull: f64) -> (f32, f64) {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let loss = |log_factor: f64| {
        cross_entropy(logits, labels, classes, log_factor.exp()) + pull * log_factor * log_factor
    };
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
    let best = usize::from(values[1] < values[0]);
    (inner[best].exp() as f32, values[best] - pull * inner[best] * inner[best])
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
    let top = row.iter().fold(f32::NEG_INFINITY, |top, &value| top.max(value));
    let sum: f64 = row.iter().map(|&value| (factor * f64::from(value - top)).exp()).sum();
    sum.ln() - factor * f64::from(row[label as usize] - top)
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
