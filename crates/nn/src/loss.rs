//! Softmax cross-entropy: `L = log Σ_c exp(l_c) - l_y`, and its gradient `p - e_y` with `p` the softmax of the logits
//! `l`. Soft targets `q` instead of one class `y`: `L = Σ_c q_c (log Σ exp l - l_c)`, gradient `p - q`. A row's weight
//! is a factor of both.

use crate::input::{Batch, Targets};
use crate::kernel::columns::{Column, ROWS, total, turn, turn_back};
use crate::kernel::exp::exp;
use crate::kernel::vectorised;

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

/// A loss over some rows of a batch, times `scale`.
#[derive(Clone, Copy)]
pub(crate) struct Loss<'a> {
    pub batch: Batch<'a>,
    pub rows: &'a [u32],
    pub classes: usize,
    pub scale: f32,
}

/// Logits `z = x W / |x| + b` that are given as `x W`: the gradient `d` becomes `d / |x|`, and that with respect to `x`
/// is `d Wᵀ + radial x`.
pub(crate) struct Divided<'a> {
    pub bias: &'a [f32],
    /// `1 / |x|` of each row.
    pub inverse: &'a [f32],
    /// Receives `-((z - b) · d) / |x|²` of each row.
    pub radial: &'a mut [f32],
    pub sums: HeadSums<'a>,
}

/// Sums over all rows of the radial coefficients and of the gradient with respect to `b`, which are added to.
pub(crate) struct HeadSums<'a> {
    pub radial: &'a mut f32,
    pub bias: &'a mut [f32],
}

impl<'a> Loss<'a> {
    /// Writes `scale (p - e_y)` for rows of logits with `columns` columns into `d`; padding becomes zero.
    pub fn backward(
        self,
        columns: usize,
        logits: &'a [f32],
        d: &'a mut [f32],
        divided: Option<Divided<'a>>,
    ) -> Tally {
        cross_entropy(self, columns, logits, d, divided)
    }
}

vectorised! {
    fn cross_entropy<'a>(
        loss: Loss<'a>,
        columns: usize,
        logits: &'a [f32],
        d: &'a mut [f32],
        divided: Option<Divided<'a>>,
    ) -> Tally {
        let (Targets::Labels(labels), None) = (loss.batch.targets, loss.batch.weights) else {
            return by_rows(loss, columns, logits, d, divided);
        };
        let of = (loss.rows, loss.classes, loss.scale);
        // The compiler makes more of constants.
        match columns {
            8 => {
                let [mut z, mut p] = [[[0.0; ROWS]; 8]; 2];
                match divided {
                    None => by_columns(of, labels, logits, d, [&mut z, &mut p], None),
                    divided => by_columns(of, labels, logits, d, [&mut z, &mut p], divided),
                }
            }
            _ => {
                let [mut z, mut p] = std::array::from_fn(|_| vec![[0.0; ROWS]; columns]);
                by_columns(of, labels, logits, d, [&mut z, &mut p], divided)
            }
        }
    }
}

vectorised! {
    /// Rows of logits in, `scale (p - e_y)` out, padding zero; gives the sum of the cross-entropies.
    pub(crate) fn label_slopes<'a>(
        labels: &'a [u32],
        classes: usize,
        columns: usize,
        scale: f32,
        logits: &'a mut [f32],
    ) -> f64 {
        let rows: [u32; ROWS] = std::array::from_fn(|row| row as u32);
        let [mut few_z, mut few_p] = [[[0.0; ROWS]; 8]; 2];
        let [mut many_z, mut many_p] = [vec![], vec![]];
        if columns != 8 {
            many_z.resize(columns, [0.0; ROWS]);
            many_p.resize(columns, [0.0; ROWS]);
        }
        let mut own = vec![0.0; ROWS * columns];
        let mut total = 0.0;
        for (logits, labels) in logits.chunks_mut(ROWS * columns).zip(labels.chunks(ROWS)) {
            let (of, own) = ((&rows[..labels.len()], classes, scale), &mut own[..logits.len()]);
            own.copy_from_slice(logits);
            total += match columns {
                8 => by_columns(of, labels, own, logits, [&mut few_z, &mut few_p], None),
                _ => by_columns(of, labels, own, logits, [&mut many_z, &mut many_p], None),
            }
            .loss;
        }
        total
    }
}

/// Soft targets or weighted rows: one row after another.
fn by_rows(
    loss: Loss<'_>,
    columns: usize,
    logits: &[f32],
    d: &mut [f32],
    mut divided: Option<Divided<'_>>,
) -> Tally {
    let Loss { batch, rows, classes, scale } = loss;
    let mut tally = Tally::default();
    let mut z = vec![0.0; classes];
    for (r, (&row, d)) in rows.iter().zip(d.chunks_exact_mut(columns)).enumerate() {
        z.copy_from_slice(&logits[r * columns..][..classes]);
        if let Some(divided) = &divided {
            z.iter_mut().zip(divided.bias).for_each(|(z, bias)| *z = z.mul_add(divided.inverse[r], *bias));
        }
        let weight = batch.weights.map_or(1.0, |weights| weights[row as usize]);
        let class = batch.class(row, classes);
        let target = |c: usize| match batch.targets {
            Targets::Labels(_) => f32::from(u8::from(c == class)),
            Targets::Soft(values) => values[row as usize * classes + c],
        };
        let (top, scale) = (top(&z), scale * weight);
        d.fill(0.0);
        let (mut sum, mut mass) = (0.0, 0.0);
        for (c, d) in d[..classes].iter_mut().enumerate() {
            *d = exp(z[c] - top);
            sum += *d;
            mass += target(c);
        }
        let log_sum = f64::from(top) + f64::from(sum).ln();
        let mut own = 0.0;
        for (c, d) in d[..classes].iter_mut().enumerate() {
            own += f64::from(target(c)) * (log_sum - f64::from(z[c]));
            *d = scale * (*d * (mass / sum) - target(c));
        }
        let correct = usize::from(arg_max(&z) == class);
        tally = tally.merge(Tally { loss: f64::from(weight) * own, correct });
        if let Some(divided) = &mut divided {
            let (inverse, mut dot) = (divided.inverse[r], 0.0);
            for (c, d) in d[..classes].iter_mut().enumerate() {
                if let Some(sum) = divided.sums.bias.get_mut(c) {
                    *sum += *d;
                }
                dot += (z[c] - divided.bias[c]) * *d;
                *d *= inverse;
            }
            divided.radial[r] = -dot * inverse * inverse;
            *divided.sums.radial += divided.radial[r];
        }
    }
    tally
}

/// For `rows`, the number of classes and a factor.
#[inline(always)]
fn by_columns(
    (rows, classes, scale): (&[u32], usize, f32),
    labels: &[u32],
    logits: &[f32],
    d: &mut [f32],
    [z, p]: [&mut [Column]; 2],
    mut divided: Option<Divided<'_>>,
) -> Tally {
    let columns = z.len();
    let mut tally = Tally::default();
    for (first, rows) in (0..).step_by(ROWS).zip(rows.chunks(ROWS)) {
        let count = rows.len();
        let label = classes_of(rows, labels);
        turn(&logits[first * columns..][..count * columns], z);
        let mut inverse = [0.0; ROWS];
        if let Some(divided) = &divided {
            inverse[..count].copy_from_slice(&divided.inverse[first..first + count]);
            for (z, &bias) in z[..classes].iter_mut().zip(divided.bias) {
                for r in 0..ROWS {
                    z[r] = z[r].mul_add(inverse[r], bias);
                }
            }
        }
        let (best, top) = largest(&z[..classes]);
        let mut sum = [0.0; ROWS];
        for (p, z) in p.iter_mut().zip(&z[..classes]) {
            for r in 0..ROWS {
                p[r] = exp(z[r] - top[r]);
                sum[r] += p[r];
            }
        }
        let mut factor = [0.0; ROWS];
        for r in 0..count {
            factor[r] = scale / sum[r];
        }
        let mut own = [0.0; ROWS];
        for (c, (p, z)) in p.iter_mut().zip(&z[..classes]).enumerate() {
            for r in 0..ROWS {
                let (one, z) = if label[r] == c as f32 { (scale, z[r]) } else { (0.0, 0.0) };
                own[r] += z;
                p[r] = p[r].mul_add(factor[r], -one);
            }
        }
        if let Some(divided) = &mut divided {
            let mut dots = [0.0; ROWS];
            for (c, (p, z)) in p.iter_mut().zip(&z[..classes]).enumerate() {
                let bias = divided.bias[c];
                if let Some(sums) = divided.sums.bias.get_mut(c) {
                    *sums += total(p);
                }
                for r in 0..ROWS {
                    dots[r] = (z[r] - bias).mul_add(p[r], dots[r]);
                    p[r] *= inverse[r];
                }
            }
            for r in 0..ROWS {
                dots[r] *= -inverse[r] * inverse[r];
            }
            *divided.sums.radial += total(&dots);
            divided.radial[first..first + count].copy_from_slice(&dots[..count]);
        }
        turn_back(p, &mut d[first * columns..][..count * columns]);
        sum[count..].fill(1.0);
        for r in 0..ROWS {
            own[r] = if label[r] == f32::INFINITY { 0.0 } else { top[r] - own[r] };
        }
        // The sum of logarithms is the logarithm of the product; of half the rows, 32 factors below 2^16, it cannot
        // overflow.
        let (mut loss, mut products) = ([0.0; 8], [1.0; 8]);
        for (own, sum) in own.as_chunks::<8>().0.iter().zip(sum.as_chunks::<8>().0) {
            for j in 0..8 {
                loss[j] += f64::from(own[j]);
            }
            for j in 0..8 {
                products[j] *= f64::from(sum[j]);
            }
        }
        let [low, high] = [&products[..4], &products[4..]].map(|half| half.iter().product::<f64>().ln());
        let loss = loss.iter().sum::<f64>() + low + high;
        tally = tally.merge(Tally { loss, correct: count_equal(&best, &label) });
    }
    tally
}

/// The first class with the largest value of each row, and that value.
#[inline(always)]
fn largest(z: &[Column]) -> (Column, Column) {
    let mut top = z[0];
    for z in &z[1..] {
        for r in 0..ROWS {
            top[r] = top[r].max(z[r]);
        }
    }
    let mut first = [f32::MAX; ROWS];
    for (c, z) in z.iter().enumerate() {
        for r in 0..ROWS {
            first[r] = first[r].min(if z[r] == top[r] { c as f32 } else { f32::MAX });
        }
    }
    (first, top)
}

/// The class of each row, as a number; of a place without a row, infinity.
#[inline(always)]
fn classes_of(rows: &[u32], labels: &[u32]) -> Column {
    let mut label = [f32::INFINITY; ROWS];
    for (label, &row) in label.iter_mut().zip(rows) {
        *label = labels[row as usize] as f32;
    }
    label
}

#[inline(always)]
fn count_equal(a: &Column, b: &Column) -> usize {
    let mut count = 0;
    for r in 0..ROWS {
        count += u32::from(a[r] == b[r]);
    }
    count as usize
}

/// The number of rows, of at most [`ROWS`], whose class has the largest logit, the first of equals.
pub(crate) fn hits(batch: Batch<'_>, rows: &[u32], logits: &[f32], classes: usize, columns: usize) -> usize {
    match batch.targets {
        Targets::Labels(labels) => label_hits(rows, labels, logits, classes, columns),
        Targets::Soft(_) => {
            let is_hit = |(row, z): &(&u32, &[f32])| arg_max(&z[..classes]) == batch.class(**row, classes);
            rows.iter().zip(logits.chunks_exact(columns)).filter(is_hit).count()
        }
    }
}

vectorised! {
    fn label_hits<'a>(rows: &'a [u32], labels: &'a [u32], logits: &'a [f32], classes: usize, columns: usize) -> usize {
        let used = &logits[..rows.len() * columns];
        let label = classes_of(rows, labels);
        let (mut few, mut many) = ([[0.0; ROWS]; 8], vec![]);
        let z = match columns {
            8 => &mut few[..],
            _ => {
                many.resize(columns, [0.0; ROWS]);
                &mut many[..]
            }
        };
        turn(used, z);
        count_equal(&largest(&z[..classes]).0, &label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, Inputs};

    /// Inputs of that many rows.
    fn inputs(rows: usize) -> Inputs<'static> {
        let empty = vec![0; rows + 1].leak();
        let none = Input::Sparse { columns: 1, offsets: empty, indices: &[], values: None };
        Inputs::new(vec![none]).expect("sound")
    }

    /// Logits, with equal largest ones in some.
    fn logits(rows: usize, classes: usize, columns: usize) -> Vec<f32> {
        let value = |r: usize, c: usize| ((r * 37 + c * 11) % 13) as f32 * 0.5 - 3.0;
        (0..rows * columns)
            .map(|i| if i % columns < classes { value(i / columns, i % columns) } else { 7.0 })
            .collect()
    }

    #[test]
    fn every_number_of_rows_and_classes_matches_the_definition() {
        for (rows, classes, columns) in
            [(1, 2, 8), (7, 6, 8), (64, 8, 8), (131, 3, 8), (70, 9, 16), (9, 40, 48)]
        {
            let z = logits(rows, classes, columns);
            let labels: Vec<u32> = (0..rows).map(|r| (r * 5 % classes) as u32).collect();
            let order: Vec<u32> = (0..rows as u32).rev().collect();
            let mut d = vec![f32::NAN; rows * columns];
            let inputs = inputs(rows);
            let batch = Batch::new(&inputs, &labels, &order, classes).expect("sound");
            let loss = Loss { batch, rows: &order, classes, scale: 0.5 };
            let tally = loss.backward(columns, &z, &mut d, None);
            let (mut loss, mut correct) = (0.0, 0);
            for (r, (z, d)) in z.chunks(columns).zip(d.chunks(columns)).enumerate() {
                let label = labels[order[r] as usize] as usize;
                let sum: f64 = z[..classes].iter().map(|&z| f64::from(z).exp()).sum();
                loss += sum.ln() - f64::from(z[label]);
                correct += usize::from(arg_max(&z[..classes]) == label);
                for (c, &d) in d.iter().enumerate() {
                    let p = if c < classes { f64::from(z[c]).exp() / sum } else { 0.0 };
                    assert!((f64::from(d) - 0.5 * (p - f64::from(u8::from(c == label)))).abs() < 1e-6);
                }
            }
            assert!((tally.loss - loss).abs() < 1e-5 * loss && tally.correct == correct);
        }
    }

    #[test]
    fn rows_divided_by_their_norms_match_the_definition() {
        for (rows, classes, columns) in [(5, 6, 8), (67, 6, 8), (20, 11, 16)] {
            let x = logits(rows, classes, columns);
            let inverse: Vec<f32> = (0..rows).map(|r| 0.25 + (r % 7) as f32 * 0.3).collect();
            let bias: Vec<f32> = (0..columns).map(|c| c as f32 * 0.1).collect();
            let (labels, order): (Vec<u32>, Vec<u32>) =
                (0..rows as u32).map(|r| (r % classes as u32, r)).unzip();
            let z: Vec<f32> =
                x.iter().enumerate().map(|(i, x)| x * inverse[i / columns] + bias[i % columns]).collect();
            let mut plain = vec![0.0; z.len()];
            let inputs = inputs(rows);
            let batch = Batch::new(&inputs, &labels, &order, classes).expect("sound");
            let loss = Loss { batch, rows: &order, classes, scale: 1.0 };
            let expected = loss.backward(columns, &z, &mut plain, None);

            let (mut d, mut radial, mut radial_sum) = (vec![0.0; x.len()], vec![0.0; rows], 0.5);
            let mut bias_sums = vec![0.5; columns];
            let sums = HeadSums { radial: &mut radial_sum, bias: &mut bias_sums };
            let divided = Divided { bias: &bias, inverse: &inverse, radial: &mut radial, sums };
            let tally = loss.backward(columns, &x, &mut d, Some(divided));
            assert!((tally.loss - expected.loss).abs() < 1e-4 && tally.correct == expected.correct);
            for (r, (plain, d)) in plain.chunks(columns).zip(d.chunks(columns)).enumerate() {
                assert!(plain.iter().zip(d).all(|(plain, d)| (plain * inverse[r] - d).abs() < 1e-5));
                let dot: f32 = (0..classes).map(|c| x[r * columns + c] * inverse[r] * plain[c]).sum();
                assert!((radial[r] + dot * inverse[r] * inverse[r]).abs() < 1e-4);
            }
            assert!((radial_sum - 0.5 - radial.iter().sum::<f32>()).abs() < 1e-3);
            for (c, sum) in bias_sums.iter().enumerate() {
                let exact = 0.5 + plain.iter().skip(c).step_by(columns).sum::<f32>();
                assert!((sum - exact).abs() < 1e-4);
            }
        }
    }

    #[test]
    fn soft_targets_and_weights_agree_with_labels() {
        let (rows, classes, columns) = (70, 6, 8);
        let (x, inputs) = (logits(rows, classes, columns), inputs(rows));
        let labels: Vec<u32> = (0..rows).map(|r| (r * 5 % classes) as u32).collect();
        let order: Vec<u32> = (0..rows as u32).rev().collect();
        let one_hot: Vec<f32> = labels
            .iter()
            .flat_map(|&label| (0..classes as u32).map(move |c| f32::from(u8::from(c == label))))
            .collect();
        let (inverse, bias): (Vec<f32>, Vec<f32>) = (
            (0..rows).map(|r| 0.25 + (r % 7) as f32 * 0.3).collect(),
            (0..8).map(|c| c as f32 * 0.1).collect(),
        );
        let (labelled, twos) = (Batch::new(&inputs, &labels, &order, classes), vec![2.0; rows]);
        let labelled = labelled.expect("sound");
        let soft = Batch::with_targets(&inputs, Targets::Soft(&one_hot), &order, classes).expect("sound");
        for is_divided in [false, true] {
            let run = |batch: Batch<'_>, scale: f32| {
                let (mut d, mut radial, mut sum) = (vec![f32::NAN; x.len()], vec![0.0; rows], 0.0);
                let mut bias_sums = vec![0.0; columns];
                let sums = HeadSums { radial: &mut sum, bias: &mut bias_sums };
                let divided = Divided { bias: &bias, inverse: &inverse, radial: &mut radial, sums };
                let loss = Loss { batch, rows: &order, classes, scale };
                let tally = loss.backward(columns, &x, &mut d, is_divided.then_some(divided));
                (tally, [d, radial, bias_sums, vec![sum]].concat())
            };
            let (tally, exact) = run(labelled, 1.0);
            for (factor, (found, values)) in [
                (1.0, run(soft, 1.0)),
                (2.0, run(soft.weighted(&twos).expect("sound"), 0.5)),
                (2.0, run(labelled.weighted(&twos).expect("sound"), 0.5)),
            ] {
                assert!((found.loss - factor * tally.loss).abs() < 1e-4 * tally.loss.abs());
                assert_eq!(found.correct, tally.correct);
                assert!(values.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 1e-4));
            }
        }
    }
}
