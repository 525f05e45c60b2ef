//! Rows made ready to be fitted: chosen, scaled, and sorted by columns where they are sparse.

use rayon::prelude::*;

use crate::error::{Error, Result, check_length, check_setting};
use crate::input::{Input, Inputs, check_rows};

/// Rows worked on at once.
const BLOCK: usize = 256;

/// How each row is scaled by itself before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowScaling {
    /// Not at all.
    #[default]
    None,
    /// To norm one; a row of zeros stays.
    Unit,
    /// Each column times a number of its own, then to norm one.
    WeightedUnit,
}

/// The chosen rows of some inputs, side by side, each input times a number of its own.
#[derive(Debug)]
pub struct Design {
    pub(super) rows: usize,
    pub(super) widths: Vec<usize>,
    pub(super) scales: Vec<f32>,
    pub(super) scaling: RowScaling,
    pub(super) column_weights: Vec<f32>,
    pub(super) values: Values,
}

/// The values, row after row.
#[derive(Debug)]
pub(super) enum Values {
    Dense(Vec<f32>),
    Sparse { by_row: Sparse, by_column: Sparse },
}

/// Compressed rows, or columns.
#[derive(Debug)]
pub(super) struct Sparse {
    pub offsets: Vec<usize>,
    pub indices: Vec<u32>,
    pub values: Vec<f32>,
}

impl Sparse {
    /// The entries of one row.
    #[inline(always)]
    pub fn entries(&self, row: usize) -> (&[u32], &[f32]) {
        let range = self.offsets[row]..self.offsets[row + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    fn transposed(&self, columns: usize) -> Sparse {
        let mut offsets = vec![0usize; columns + 1];
        self.indices.iter().for_each(|&column| offsets[column as usize + 1] += 1);
        (0..columns).for_each(|column| offsets[column + 1] += offsets[column]);
        let (mut indices, mut values) = (vec![0; self.indices.len()], vec![0.0; self.values.len()]);
        let mut next = offsets.clone();
        for row in 0..self.offsets.len() - 1 {
            let (columns, entries) = self.entries(row);
            for (&column, &value) in columns.iter().zip(entries) {
                let at = next[column as usize];
                next[column as usize] += 1;
                (indices[at], values[at]) = (row as u32, value);
            }
        }
        Sparse { offsets, indices, values }
    }
}

impl Design {
    /// The given rows, as they are.
    ///
    /// # Errors
    /// Rows that are not there, and a sparse input beside others.
    pub fn new(inputs: &Inputs<'_>, rows: &[u32]) -> Result<Design> {
        let scales = vec![1.0; inputs.as_slice().len()];
        Design::scaled(inputs, rows, &scales, RowScaling::None, &[])
    }

    /// The given rows, each scaled by itself, then each input times its number of `scales`. `column_weights` belong to
    /// [`RowScaling::WeightedUnit`] and are empty elsewhere.
    pub fn scaled(
        inputs: &Inputs<'_>,
        rows: &[u32],
        scales: &[f32],
        scaling: RowScaling,
        column_weights: &[f32],
    ) -> Result<Design> {
        check_rows(inputs, rows)?;
        let views = inputs.as_slice();
        check_length("list of scales", scales.len(), views.len())?;
        let widths: Vec<usize> = views.iter().map(Input::columns).collect();
        let columns = widths.iter().sum();
        let weighted = scaling == RowScaling::WeightedUnit;
        check_length("list of column weights", column_weights.len(), if weighted { columns } else { 0 })?;
        let values = match views {
            [Input::Sparse { .. }] => {
                let by_row = sparse_rows(&views[0], rows, scales[0], scaling, column_weights);
                let by_column = by_row.transposed(columns);
                Values::Sparse { by_row, by_column }
            }
            _ => {
                let dense = views.iter().all(|view| !matches!(view, Input::Sparse { .. }));
                check_setting(dense, "an input beside others", "sparse", "dense")?;
                Values::Dense(dense_rows(views, rows, scales, scaling, column_weights))
            }
        };
        let (scales, column_weights) = (scales.to_vec(), column_weights.to_vec());
        Ok(Design { rows: rows.len(), widths, scales, scaling, column_weights, values })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns of all inputs together.
    pub fn columns(&self) -> usize {
        self.widths.iter().sum()
    }

    /// The mean of the squared norms of the rows.
    pub fn mean_square(&self) -> f64 {
        let values = match &self.values {
            Values::Dense(values) => values,
            Values::Sparse { by_row, .. } => &by_row.values,
        };
        values.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>() / self.rows.max(1) as f64
    }

    pub(super) fn check_fits(&self, rows: usize) -> Result<()> {
        match self.rows {
            0 => Err(Error::SmallBatch { rows: 0, why: "there is nothing to fit" }),
            own => check_length("list of what is known of the rows", rows, own),
        }
    }
}

/// The factor that brings a row to the wanted length.
fn row_factor(scaling: RowScaling, column_weights: &[f32], row: impl Iterator<Item = (usize, f32)>) -> f32 {
    if scaling == RowScaling::None {
        return 1.0;
    }
    let weight = |column: usize| if column_weights.is_empty() { 1.0 } else { column_weights[column] };
    let square: f64 = row.map(|(column, value)| f64::from(value * weight(column)).powi(2)).sum();
    if square > 0.0 { (1.0 / square.sqrt()) as f32 } else { 0.0 }
}

/// Sparse rows, each scaled by itself and times a number.
pub(super) fn sparse_rows(
    input: &Input<'_>,
    rows: &[u32],
    scale: f32,
    scaling: RowScaling,
    column_weights: &[f32],
) -> Sparse {
    let mut offsets = Vec::with_capacity(rows.len() + 1);
    offsets.push(0);
    let (mut indices, mut values) = (vec![], vec![]);
    for &row in rows {
        input.tell(&[row]);
        let (columns, entries) = input.entries(row);
        let value = |at: usize| entries.map_or(1.0, |entries| entries[at]);
        let all = columns.iter().enumerate().map(|(at, &column)| (column as usize, value(at)));
        let factor = scale * row_factor(scaling, column_weights, all.clone());
        indices.extend_from_slice(columns);
        values.extend(
            all.map(|(column, value)| factor * value * column_weights.get(column).copied().unwrap_or(1.0)),
        );
        offsets.push(indices.len());
    }
    Sparse { offsets, indices, values }
}

/// Rows of all inputs side by side, each row scaled by itself, each input times its number of `scales`.
pub(crate) fn dense_rows(
    views: &[Input<'_>],
    rows: &[u32],
    scales: &[f32],
    scaling: RowScaling,
    column_weights: &[f32],
) -> Vec<f32> {
    let columns: usize = views.iter().map(Input::columns).sum();
    let mut out = vec![0f32; rows.len() * columns];
    if columns == 0 {
        return out;
    }
    let scaled = |out: &mut [f32], row: u32| {
        let mut at = 0;
        for view in views {
            let columns = view.columns();
            view.gather(&[row], &mut out[at..at + columns]);
            let (indices, values) = view.entries(row);
            for (place, &column) in indices.iter().enumerate() {
                out[at + column as usize] += values.map_or(1.0, |values| values[place]);
            }
            at += columns;
        }
        let factor = row_factor(scaling, column_weights, out.iter().copied().enumerate());
        let mut at = 0;
        for (view, scale) in views.iter().zip(scales) {
            for value in &mut out[at..at + view.columns()] {
                *value *= factor * scale;
            }
            at += view.columns();
        }
        out.iter_mut().zip(column_weights).for_each(|(value, weight)| *value *= weight);
    };
    out.par_chunks_mut(BLOCK * columns).zip(rows.par_chunks(BLOCK)).for_each(|(out, rows)| {
        out.chunks_exact_mut(columns).zip(rows).for_each(|(out, &row)| scaled(out, row));
    });
    out
}
