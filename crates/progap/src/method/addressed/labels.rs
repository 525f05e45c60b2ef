//! The model of the sums: softmax regression on public rows, to which labels are known through one noisy table alone.

use progap_nn::{Design, Evidence, Input, Inputs, Softmax, Task};

use crate::{Error, Result};

/// The length of the constant beside rows, over the length to which these are brought.
pub(super) const CONSTANT: f64 = 0.5;
/// How strongly weights are pulled towards simple ones, and how much stronger for each unit of variance that the noise
/// has for each row.
const PULL: f64 = 20.0;
const PULL_OF_NOISE: f64 = 1e4;
/// Steps of the search for the strength of the simple weights, and of the fit.
const STRENGTH_STEPS: usize = 40;
const STEPS: usize = 200;
/// Rows by which the strength is searched.
const MOST_ROWS: usize = 1 << 14;
/// Simple weights are never stronger.
const MOST_STRENGTH: f64 = 50.0;

/// What left the vault of the labels, and the rows that it is of.
pub(super) struct ReleasedTable<'t> {
    /// For each class the sum of the rows of its training nodes, as they are in `rows`.
    pub table: &'t [f64],
    /// For each class the number of training nodes.
    pub counts: &'t [f64],
    /// The rows of training nodes, or of a sample of them.
    pub rows: &'t [f32],
    /// The deviation of the noise of the table, in the unit of the rows.
    pub noise: f64,
    /// Training nodes, those included that are not in the sample.
    pub nodes: usize,
    pub classes: usize,
}

/// The model, and the logarithm of the share of each class.
pub(super) struct Learnt {
    pub softmax: Softmax,
    pub log_prior: Vec<f32>,
}

/// The softmax regression whose likelihood the table tells: with rows `f_i` and labels `y_i`, labels enter it through
/// `sum of y_i f_i^T` alone. Its weights are pulled towards "what a sum says of a class speaks for it", times a
/// strength that is fitted first; the more noise, the stronger the pull.
///
/// # Proof definition
/// A function of rows that are public and of a table that left the vault: post-processing.
pub(super) fn learn(known: &ReleasedTable<'_>) -> Result<Learnt> {
    let classes = known.classes;
    let width = known.table.len() / classes;
    let rows = known.rows.len() / width.max(1);
    if rows == 0 {
        return Err(Error::unsuitable("there are no training nodes"));
    }
    // Of a class that noise has taken below nothing, next to nothing is left.
    let least = known.noise.max(1.0);
    let counts: Vec<f64> = known.counts.iter().map(|&count| count.max(least)).collect();
    let total: f64 = counts.iter().sum();
    let shares: Vec<f64> = counts.iter().map(|count| count / total).collect();
    let sampled = rows as f64 / known.nodes.max(1) as f64;
    let strength = strength(known, &shares, sampled);
    // The penalty is `pull / 2` times a square; a linear term moves its centre. With targets that are the same for
    // every row, what is left of the table beyond them is that linear term.
    let pull = (PULL + PULL_OF_NOISE * known.noise * known.noise / known.nodes.max(1) as f64) * sampled;
    let mut sums = vec![0f64; width];
    for row in known.rows.chunks_exact(width) {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    let mut towards = vec![0f32; width * classes];
    let mut start = towards.clone();
    for column in 0..width {
        for class in 0..classes {
            let beyond = known.table[class * width + column] * sampled - shares[class] * sums[column];
            let simple = strength * simple(column % classes, class, width, classes);
            start[column * classes + class] = simple as f32;
            towards[column * classes + class] = (simple + beyond / pull) as f32;
        }
    }
    let targets: Vec<f32> = (0..rows).flat_map(|_| shares.iter().map(|&share| share as f32)).collect();
    let inputs = Inputs::new(vec![Input::Dense { columns: width, values: known.rows }])?;
    let everyone: Vec<u32> = (0..rows as u32).collect();
    let task = Task {
        evidence: Evidence::Targets(&targets),
        classes,
        row_weights: &[],
        hidden: 0,
        decay: pull / rows as f64,
        towards: &towards,
        iterations: STEPS,
        tolerance: 1e-7,
        seed: 0,
    };
    // The centre lies far away where there is little noise.
    let design = Design::new(&inputs, &everyone)?;
    let (softmax, _) = design.fit(&task, Some(&design.start_at(&task, &start)?))?;
    Ok(Learnt { softmax, log_prior: shares.iter().map(|share| share.ln() as f32).collect() })
}

/// A simple weight: what a sum says of a class speaks for it, and against the others.
fn simple(says: usize, class: usize, width: usize, classes: usize) -> f64 {
    let centred = if says == class { 1.0 } else { 0.0 } - 1.0 / classes as f64;
    centred * classes as f64 / width as f64
}

/// The strength of the simple weights with which the likelihood is largest, beside numbers for each class.
fn strength(known: &ReleasedTable<'_>, shares: &[f64], sampled: f64) -> f64 {
    let classes = known.classes;
    let width = known.table.len() / classes;
    let says = |row: &mut dyn Iterator<Item = f64>| {
        let mut said = vec![0f64; classes];
        row.enumerate()
            .for_each(|(column, value)| said[column % classes] += value * classes as f64 / width as f64);
        let mean = said.iter().sum::<f64>() / classes as f64;
        said.iter_mut().for_each(|value| *value -= mean);
        said
    };
    let rows = known.rows.len() / width;
    let step = rows.div_ceil(MOST_ROWS);
    let said: Vec<Vec<f64>> = known
        .rows
        .chunks_exact(width)
        .step_by(step)
        .map(|row| says(&mut row.iter().map(|&value| f64::from(value))))
        .collect();
    let used = said.len() as f64;
    // The sum over classes of what the rows of a class say of it.
    let agree: f64 = (0..classes)
        .map(|class| says(&mut known.table[class * width..][..width].iter().copied())[class])
        .sum::<f64>()
        * (sampled * used / rows as f64);
    let (mut strength, mut biases) = (0.0, shares.iter().map(|share| share.ln()).collect::<Vec<f64>>());
    for _ in 0..STRENGTH_STEPS {
        let (mut slope, mut curvature, mut found) = (-agree, 1e-9, vec![0f64; classes]);
        for row in &said {
            let logits: Vec<f64> =
                row.iter().zip(&biases).map(|(said, bias)| strength * said + bias).collect();
            let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = logits.iter().map(|logit| (logit - top).exp()).collect();
            let sum: f64 = powers.iter().sum();
            let (mut mean, mut square) = (0.0, 0.0);
            for (class, power) in powers.iter().enumerate() {
                let p = power / sum;
                found[class] += p;
                mean += p * row[class];
                square += p * row[class] * row[class];
            }
            slope += mean;
            curvature += square - mean * mean;
        }
        // Steps of at most one, so that the first do not diverge.
        strength = (strength - (slope / curvature).clamp(-1.0, 1.0)).clamp(-MOST_STRENGTH, MOST_STRENGTH);
        for ((bias, share), found) in biases.iter_mut().zip(shares).zip(&found) {
            *bias += (share * used / found.max(1e-9)).ln();
        }
    }
    strength
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without noise and pull the table is all that maximum likelihood needs: the same weights as a fit that sees every
    /// label.
    #[test]
    fn the_table_tells_what_labels_tell() {
        let mut state = 7u64;
        let mut uniform = || {
            state = crate::mixing::mixed(state.wrapping_add(3));
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let (classes, rows) = (3, 4000);
        let (mut values, mut labels) = (vec![], vec![]);
        for _ in 0..rows {
            let label = (uniform() * 3.0) as u32;
            values
                .extend((0..3).map(|c| (uniform() - 0.5) as f32 * 2.0 + if c == label { 0.7 } else { 0.0 }));
            labels.push(label);
        }
        let (mut table, mut counts) = (vec![0f64; 9], vec![0f64; 3]);
        for (row, &label) in values.chunks_exact(3).zip(&labels) {
            counts[label as usize] += 1.0;
            row.iter().enumerate().for_each(|(c, v)| table[label as usize * 3 + c] += f64::from(*v));
        }
        let known =
            ReleasedTable { table: &table, counts: &counts, rows: &values, noise: 0.0, nodes: rows, classes };
        let learnt = learn(&known).expect("a model").softmax;
        let inputs = Inputs::new(vec![Input::Dense { columns: 3, values: &values }]).expect("inputs");
        let everyone: Vec<u32> = (0..rows as u32).collect();
        let task = Task {
            evidence: Evidence::Labels(&labels),
            classes,
            row_weights: &[],
            hidden: 0,
            decay: 1e-9,
            towards: &[],
            iterations: 200,
            tolerance: 1e-8,
            seed: 0,
        };
        let (seen, _) = Design::new(&inputs, &everyone).expect("rows").fit(&task, None).expect("a model");
        let logits = |model: &Softmax| {
            let mut logits = model.logits(&inputs, &everyone).expect("logits");
            crate::views::log_softmax(&mut logits, 3);
            logits
        };
        let furthest =
            logits(&learnt).iter().zip(logits(&seen)).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
        // The pull holds both a little apart.
        assert!(furthest < 0.15, "{furthest}");
    }
}
