//! Dense features, of which NaN is a value that is missing: 0, and 1 in an indicator beside all columns.

use std::io::Read;

use crate::read::npy::Npy;
use crate::{Buffer, Features, InferenceKind, InferredSchema, NumberColumn, Place, Problem, Result, room};

/// Features, and the columns in which values are missing: the indicator of the first of them comes behind all columns,
/// then those of the others.
#[derive(Debug)]
pub struct Dense {
    /// The features, indicators included.
    pub features: Features,
    /// The columns with gaps, ascending.
    pub gaps: Vec<u32>,
}

impl From<Features> for Dense {
    fn from(features: Features) -> Self {
        Dense { features, gaps: vec![] }
    }
}

impl Dense {
    /// Features with a row for each node.
    pub(super) fn read<R: Read>(array: Npy<R>, nodes: u64) -> Result<Dense> {
        let (key, columns) = (Place::Key(array.key().into()), columns_of(&array, nodes)?);
        Dense::of(array.features_or_nan()?.into(), nodes as usize, columns).map_err(|e| e.at(key))
    }

    /// Features of these values, row after row.
    ///
    /// # Errors
    /// Infinite values; more than memory holds.
    pub fn of(values: Buffer<f32>, nodes: usize, columns: usize) -> Result<Dense> {
        let mut is_gap = vec![false; columns];
        for row in values.chunks_exact(columns.max(1)) {
            row.iter().zip(&mut is_gap).for_each(|(value, is_gap)| *is_gap |= value.is_nan());
        }
        let gaps: Vec<u32> = (0..columns as u32).filter(|&column| is_gap[column as usize]).collect();
        if gaps.is_empty() {
            return Ok(Features::dense(nodes, columns, values)?.into());
        }
        let width = columns + gaps.len();
        let mut all = room::with_room(nodes * width)?;
        for row in values.chunks_exact(columns) {
            all.extend(row.iter().map(|value| if value.is_nan() { 0.0 } else { *value }));
            all.extend(gaps.iter().map(|&column| f32::from(row[column as usize].is_nan())));
        }
        Ok(Dense { features: Features::dense(nodes, width, all)?, gaps })
    }

    /// The number of columns in the file.
    pub fn stored_columns(&self) -> usize {
        self.features.columns() - self.gaps.len()
    }

    /// The names of all columns, by those of the file's columns.
    pub fn names(&self, mut names: Vec<String>) -> Vec<String> {
        if !names.is_empty() {
            let indicators: Vec<String> =
                self.gaps.iter().map(|&column| format!("{} missing", names[column as usize])).collect();
            names.extend(indicators);
        }
        names
    }

    /// That values are missing, which the rows say.
    pub fn gaps_read_off(&self, names: &[String]) -> Vec<InferredSchema> {
        let name =
            |column: u32| names.get(column as usize).cloned().unwrap_or_else(|| format!("column {column}"));
        self.gaps
            .iter()
            .map(|&gap| InferredSchema { column: name(gap), what: InferenceKind::Missing })
            .collect()
    }

    /// Number columns, each with its indicator.
    pub fn with_indicators(&self, mut numbers: Vec<NumberColumn>) -> Vec<NumberColumn> {
        for (at, column) in self.gaps.iter().enumerate() {
            let indicator = (self.stored_columns() + at) as u32;
            numbers
                .iter_mut()
                .filter(|number| number.column == *column)
                .for_each(|number| number.missing = Some(indicator));
        }
        numbers
    }
}

/// Features with a row for each node, none of which is missing.
pub(in crate::read) fn read_matrix<R: Read>(array: Npy<R>, nodes: u64) -> Result<Features> {
    let (key, columns) = (Place::Key(array.key().into()), columns_of(&array, nodes)?);
    Features::dense(nodes as usize, columns, array.features()?).map_err(|e| e.at(key))
}

/// The columns of a matrix with a row for each node.
fn columns_of<R: Read>(array: &Npy<R>, nodes: u64) -> Result<usize> {
    let (rows, columns) = array.matrix_shape()?;
    if rows != nodes {
        let what = "feature matrix".into();
        return Err(array.error(Problem::Length { what, found: rows, expected: nodes }));
    }
    super::column_count(columns).map_err(|problem| array.error(problem))
}
