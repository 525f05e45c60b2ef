//! Which columns and sums a model's answers depend on: permutation importance (Breiman 2001) on held-out nodes.
//!
//! ```text
//! importance of a column = log loss with the column's values in another order - log loss,  on validation nodes
//! ```
//!
//! Where rows and labels are public it is a function of what the release shows. Where they are private there is none.

use progap_graph::Part;
use progap_nn::{Input, Inputs};

use super::Release;
use crate::Result;
use crate::mixing::mixed;
use crate::model::Model;
use crate::predictor::{Predictor, Reads};
use crate::rows::Rows;

/// The most nodes that are looked at, and orders that are tried.
const MOST_NODES: usize = 2048;
const ORDERS: u64 = 3;
/// More columns than these are told of as one.
const MOST_COLUMNS: usize = 128;
/// The most numbers of the rows that are copied.
const MOST_NUMBERS: usize = 1 << 24;

/// How much the answers about held-out nodes depend on a column, or on a sum.
#[derive(Debug, Clone, PartialEq)]
pub struct Importance {
    /// The column's name, or the number of the sum.
    pub name: String,
    /// By how much the mean log loss grows where its values change places among nodes.
    pub log_loss: f64,
}

impl Release {
    /// The importance of every column of the features and of every sum that the model reads, the largest first. Nothing
    /// where rows or labels are private, no node is held out, or the model reads neither by itself.
    ///
    /// # Errors
    /// Features that are damaged.
    pub fn importances(&self) -> Result<Vec<Importance>> {
        let held_out: Vec<u32> = match self.nodes.split() {
            Some(split) if self.has_labels() && self.has_aggregates() => {
                split.nodes(Part::Val).map(|node| node as u32).collect()
            }
            _ => vec![],
        };
        let step = held_out.len().div_ceil(MOST_NODES).max(1);
        let nodes: Vec<u32> = held_out.into_iter().step_by(step).collect();
        if nodes.len() < 2 || nodes.len().saturating_mul(self.nodes.features().columns()) > MOST_NUMBERS {
            return Ok(vec![]);
        }
        let rows = Rows::of_nodes(&self.nodes)?;
        let columns = |at: usize| match self.nodes.feature_names().get(at) {
            Some(name) => name.clone(),
            None => format!("column {}", at + 1),
        };
        let mut found = self.predictor.importances(&rows, &nodes, &columns)?;
        found.sort_by(|a, b| b.log_loss.total_cmp(&a.log_loss));
        Ok(found)
    }
}

impl Predictor {
    fn importances(
        &self,
        rows: &Rows,
        nodes: &[u32],
        name: &dyn Fn(usize) -> String,
    ) -> Result<Vec<Importance>> {
        let link = self.last()?;
        if matches!(link.model, Model::Sage(_)) {
            return Ok(vec![]);
        }
        let labels: Vec<u32> = nodes.iter().map(|&node| rows.labels()[node as usize]).collect();
        self.with_inputs(self.links.len() - 1, rows, |model, inputs| {
            let mut tables = Tables::of(inputs, nodes)?;
            let log_loss = |tables: &Tables| -> Result<f64> {
                let mut known = model.probabilities(&tables.inputs()?, &tables.everyone)?;
                self.calibrate(&mut known, rows.classes());
                let of = |(row, &label): (&[f32], &u32)| -f64::from(row[label as usize]).max(1e-12).ln();
                let total: f64 = known.chunks_exact(rows.classes()).zip(&labels).map(of).sum();
                Ok(total / labels.len() as f64)
            };
            let before = log_loss(&tables)?;
            let mut found = vec![];
            for (input, reads) in link.reads.iter().enumerate() {
                let width = tables.columns[input];
                let parts: Vec<(String, std::ops::Range<usize>)> = match reads[..] {
                    [Reads::Rows] if width <= MOST_COLUMNS => {
                        (0..width).map(|at| (name(at), at..at + 1)).collect()
                    }
                    [Reads::Rows] => vec![("all features".into(), 0..width)],
                    [Reads::Aggregate(index)] => vec![(format!("sum {}", index + 1), 0..width)],
                    _ => continue,
                };
                for (name, columns) in parts {
                    let mut after = 0.0;
                    for order in 0..ORDERS {
                        let kept = tables.permute(input, columns.clone(), order);
                        after += log_loss(&tables)? / ORDERS as f64;
                        tables.values[input] = kept;
                    }
                    found.push(Importance { name, log_loss: after - before });
                }
            }
            Ok(found)
        })
    }
}

/// Copies of some rows of all inputs.
struct Tables {
    columns: Vec<usize>,
    values: Vec<Vec<f32>>,
    everyone: Vec<u32>,
}

impl Tables {
    fn of(inputs: &Inputs<'_>, nodes: &[u32]) -> Result<Tables> {
        let dense = |&input: &Input<'_>| Ok(Inputs::checked_before(vec![input])?.dense_rows(nodes)?);
        Ok(Tables {
            columns: inputs.as_slice().iter().map(Input::columns).collect(),
            values: inputs.as_slice().iter().map(dense).collect::<Result<_>>()?,
            everyone: (0..nodes.len() as u32).collect(),
        })
    }

    fn inputs(&self) -> Result<Inputs<'_>> {
        let dense = |(&columns, values)| Input::Dense { columns, values };
        let values = self.values.iter().map(|values| &values[..]);
        Ok(Inputs::checked_before(self.columns.iter().zip(values).map(dense).collect())?)
    }

    /// Brings some columns of an input into another order of the rows, and gives back what was there.
    fn permute(&mut self, input: usize, columns: std::ops::Range<usize>, order: u64) -> Vec<f32> {
        let (width, kept) = (self.columns[input], self.values[input].clone());
        let mut from: Vec<usize> = (0..self.everyone.len()).collect();
        from.sort_by_cached_key(|&row| (mixed(order ^ mixed(row as u64 + 1)), row));
        for (row, from) in from.into_iter().enumerate() {
            let range = |row: usize| row * width + columns.start..row * width + columns.end;
            self.values[input][range(row)].copy_from_slice(&kept[range(from)]);
        }
        kept
    }
}
