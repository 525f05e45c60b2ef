//! Trees one after the other, as many as lower the loss of rows that they did not see.

use rayon::prelude::*;

use super::Trees;
use super::grow::{Grown, Slopes, grow, outputs};
use super::table::Table;
use crate::error::{Error, Result, check_length};

/// How trees are grown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Boosting {
    /// The most leaves of a tree.
    pub leaves: usize,
    /// The fewest rows of a leaf.
    pub min_rows: usize,
    /// The share of a full step that each tree makes.
    pub rate: f64,
    /// The most trees,
    pub rounds: usize,
    /// and how many in a row may lower no loss before no more are grown.
    pub patience: usize,
}

impl Boosting {
    /// Trees as large as those of histogram boosting elsewhere, of which there are as many as help.
    pub const DEFAULT: Boosting = Boosting { leaves: 31, min_rows: 20, rate: 0.1, rounds: 150, patience: 8 };
}

impl Default for Boosting {
    fn default() -> Boosting {
        Boosting::DEFAULT
    }
}

/// Trees, and what trees that did not see them say of the rows.
#[derive(Debug, Clone)]
pub struct CrossFitted {
    /// The trees of all rows.
    pub trees: Trees,
    /// The logits of each row, by trees of the other parts.
    pub out_of_fold: Vec<f32>,
    /// Their mean log loss.
    pub log_loss: f64,
}

/// Trees of all rows, beginning with given logits; their number is the one at which trees of all parts but one know the
/// rows of that one best. A row belongs to the part of its place modulo the number of parts. None where no tree lowers
/// the loss.
///
/// # Errors
/// Lists that do not fit the table, and labels that are no class.
pub fn cross_fitted(
    table: &Table,
    (labels, classes): (&[u32], usize),
    start: &[f32],
    parts: usize,
    config: &Boosting,
) -> Result<Option<CrossFitted>> {
    check_length("list of labels", labels.len(), table.rows)?;
    check_length("list of logits", start.len(), table.rows * classes)?;
    if let Some(row) = labels.iter().position(|&label| label as usize >= classes) {
        return Err(Error::Label { row: row as u32, label: labels[row], classes });
    }
    if parts < 2 || table.columns == 0 || table.rows < 2 * config.min_rows.max(parts) {
        return Ok(None);
    }
    let rows = |inside: &dyn Fn(usize) -> bool| -> Vec<u32> {
        (0..table.rows).filter(|&row| inside(row)).map(|row| row as u32).collect()
    };
    let data = Data { table, labels, classes, config };
    let mut folds: Vec<Fold> = (0..parts)
        .map(|part| Fold {
            grown_on: rows(&|row| row % parts != part),
            left_out: rows(&|row| row % parts == part),
            logits: start.to_vec(),
        })
        .collect();
    let loss = |folds: &[Fold]| folds.iter().map(|fold| data.loss(&fold.logits, &fold.left_out)).sum::<f64>();
    let before = loss(&folds);
    let (mut least, mut count, mut out_of_fold) = (before, 0, vec![]);
    for round in 1..=config.rounds {
        folds.par_iter_mut().for_each(|fold| {
            data.step(&mut fold.logits, &fold.grown_on, &fold.left_out);
        });
        let now = loss(&folds);
        if now < least {
            (least, count) = (now, round);
            out_of_fold = vec![0f32; start.len()];
            for fold in &folds {
                for &row in &fold.left_out {
                    let range = row as usize * classes..(row as usize + 1) * classes;
                    out_of_fold[range.clone()].copy_from_slice(&fold.logits[range]);
                }
            }
        } else if round >= count + config.patience || !now.is_finite() {
            break;
        }
    }
    if count == 0 {
        return Ok(None);
    }
    let (mut logits, everyone) = (start.to_vec(), rows(&|_| true));
    let mut trees = Trees::new(table.columns, classes);
    for _ in 0..count {
        let grown = data.step(&mut logits, &everyone, &[]);
        let values: Vec<f32> =
            grown.values.chunks_exact(outputs(classes)).flat_map(|values| spread(values, classes)).collect();
        trees.push(&grown.nodes, &values);
    }
    Ok(Some(CrossFitted { trees, out_of_fold, log_loss: least / table.rows as f64 }))
}

/// Rows that trees grow on, and those that are left out, with the logits of both.
struct Fold {
    grown_on: Vec<u32>,
    left_out: Vec<u32>,
    logits: Vec<f32>,
}

struct Data<'a> {
    table: &'a Table,
    labels: &'a [u32],
    classes: usize,
    config: &'a Boosting,
}

impl Data<'_> {
    /// One more tree, added to the logits of the rows that it grew on and of others.
    fn step(&self, logits: &mut [f32], rows: &[u32], others: &[u32]) -> Grown {
        let classes = self.classes;
        let grown = grow(self.table, &self.slopes(logits, rows), rows, self.config);
        let outputs = outputs(classes);
        let spread: Vec<f32> =
            grown.values.chunks_exact(outputs).flat_map(|values| spread(values, classes)).collect();
        let mut add = |row: u32, node: usize| {
            let own = &mut logits[row as usize * classes..][..classes];
            own.iter_mut().zip(&spread[node * classes..]).for_each(|(logit, value)| *logit += value);
        };
        for (node, range) in &grown.leaves {
            grown.order[range.clone()].iter().for_each(|&row| add(row, *node));
        }
        for &row in others {
            add(row, grown.leaf_of(self.table, row as usize));
        }
        grown
    }

    /// The slopes of the cross-entropy at some rows.
    fn slopes(&self, logits: &[f32], rows: &[u32]) -> Slopes {
        let (classes, outputs) = (self.classes, outputs(self.classes));
        let mut values = vec![0f32; self.table.rows * 2 * outputs];
        let mut probabilities = vec![0f32; classes];
        for &row in rows {
            probabilities.copy_from_slice(&logits[row as usize * classes..][..classes]);
            softmax(&mut probabilities);
            let own = &mut values[row as usize * 2 * outputs..][..2 * outputs];
            let label = self.labels[row as usize] as usize;
            for k in 0..outputs {
                // Of two classes the second.
                let class = k + usize::from(outputs == 1);
                let p = probabilities[class];
                own[k] = p - f32::from(u8::from(class == label));
                own[outputs + k] = p * (1.0 - p);
            }
        }
        Slopes { outputs, values }
    }

    /// The sum of the log losses of some rows.
    fn loss(&self, logits: &[f32], rows: &[u32]) -> f64 {
        let one = |&row: &u32| {
            let row_logits = &logits[row as usize * self.classes..][..self.classes];
            let top = row_logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = row_logits.iter().map(|&logit| f64::from(logit - top).exp()).sum();
            sum.ln() - f64::from(row_logits[self.labels[row as usize] as usize] - top)
        };
        rows.iter().map(one).sum()
    }
}

/// What a leaf adds to the logit of each class: where the second class is told against the first, half to each.
fn spread(values: &[f64], classes: usize) -> impl Iterator<Item = f32> {
    let two = classes == 2;
    (0..classes).map(move |class| match two {
        true => ((class as f64 - 0.5) * values[0]) as f32,
        false => values[class] as f32,
    })
}

fn softmax(row: &mut [f32]) {
    let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.iter_mut().for_each(|value| *value = (*value - top).exp());
    let sum: f32 = row.iter().sum();
    row.iter_mut().for_each(|value| *value /= sum);
}
