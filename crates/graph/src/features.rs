//! Features: the rows of nodes.

use half::f16;
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;

use crate::graph::check_offsets;
use crate::{Buffer, Place, Problem, Result};

/// A matrix of features, one row per node. One-hot features stay sparse.
///
/// Every value is finite.
#[derive(Debug, Clone)]
pub enum Features {
    /// All values, row after row.
    Dense {
        /// The number of columns.
        columns: usize,
        /// `rows * columns` values.
        values: Buffer<f32>,
    },
    /// All values in half precision, row after row: half the room, widened where they are read.
    Half {
        /// The number of columns.
        columns: usize,
        /// `rows * columns` values.
        values: Buffer<f16>,
    },
    /// Only the values that are not zero, in compressed sparse rows.
    Sparse {
        /// The number of columns.
        columns: usize,
        /// Where each row starts, and where the last one ends.
        offsets: Buffer<u64>,
        /// The column of each value, ascending within a row, none twice.
        indices: Buffer<u32>,
        /// The values; `None` if all are 1.
        values: Option<Buffer<f32>>,
    },
}

/// A number as a feature: rounded to 32 bits and clamped to their range; NaN is 0. A map of one value by itself, so
/// that no value of a private row decides whether it can be read.
pub fn single(value: f64) -> f32 {
    if value.is_nan() { 0.0 } else { (value as f32).clamp(f32::MIN, f32::MAX) }
}

/// The same values where all are finite, else a copy of them as by [`single`].
fn finite(values: Buffer<f32>) -> Buffer<f32> {
    match values.par_iter().all(|value| value.is_finite()) {
        true => values,
        false => values.iter().map(|&value| single(value.into())).collect::<Vec<f32>>().into(),
    }
}

impl Features {
    /// A dense matrix, its values as by [`single`]; errors name a length that does not fit.
    pub fn dense(rows: usize, columns: usize, values: impl Into<Buffer<f32>>) -> Result<Self> {
        let features = Features::Dense { columns, values: finite(values.into()) };
        features.check(rows)?;
        Ok(features)
    }

    /// A dense matrix in half precision; errors as in [`Features::dense`].
    pub fn half(rows: usize, columns: usize, values: impl Into<Buffer<f16>>) -> Result<Self> {
        let features = Features::Half { columns, values: values.into() };
        features.check(rows)?;
        Ok(features)
    }

    /// A sparse matrix; rows are put in ascending order where they are not, and values that are all 1 are
    /// not kept. Values are brought into range as by [`single`]; errors name what does not fit.
    pub fn sparse(
        rows: usize,
        columns: usize,
        offsets: impl Into<Buffer<u64>>,
        indices: impl Into<Buffer<u32>>,
        values: Option<Buffer<f32>>,
    ) -> Result<Self> {
        let (offsets, mut indices, mut values) = (offsets.into(), indices.into(), values);
        check_lengths(rows, &offsets, &indices, values.as_deref())?;
        if offsets.windows(2).any(|w| !indices[w[0] as usize..w[1] as usize].is_sorted()) {
            (indices, values) = sort_rows(&offsets, indices, values);
        }
        if values.as_deref().is_some_and(|values| values.iter().all(|&v| v == 1.0)) {
            values = None;
        }
        let features = Features::Sparse { columns, offsets, indices, values: values.map(finite) };
        features.check(rows)?;
        Ok(features)
    }

    /// No features at all.
    pub fn none() -> Self {
        Features::Dense { columns: 0, values: Buffer::default() }
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        match self {
            Features::Dense { columns, .. }
            | Features::Half { columns, .. }
            | Features::Sparse { columns, .. } => *columns,
        }
    }

    /// The first value, row by row, that is larger than a limit in magnitude: its row, column and the value itself.
    pub fn first_beyond(&self, limit: f32) -> Option<(usize, usize, f32)> {
        let (at, value) = match self {
            Features::Half { .. } if limit >= f16::MAX.to_f32() => return None,
            Features::Half { values, .. } => {
                let mut values = values.iter().map(|value| value.to_f32()).enumerate();
                values.find(|(_, value)| value.abs() > limit)?
            }
            _ => {
                let at = self.values().iter().position(|value| value.abs() > limit)?;
                (at, self.values()[at])
            }
        };
        Some(match self {
            Features::Dense { columns, .. } | Features::Half { columns, .. } => {
                (at / columns, at % columns, value)
            }
            Features::Sparse { offsets, indices, .. } => {
                (offsets.partition_point(|&start| start as usize <= at) - 1, indices[at] as usize, value)
            }
        })
    }

    /// The same features, each value brought within a limit: a map of each value by itself.
    #[must_use]
    pub fn clamped(self, limit: f32) -> Features {
        if self.first_beyond(limit).is_none() {
            return self;
        }
        let clamp = |values: &[f32]| -> Buffer<f32> {
            values.iter().map(|value| value.clamp(-limit, limit)).collect::<Vec<f32>>().into()
        };
        match self.widened() {
            Features::Dense { columns, values } => Features::Dense { columns, values: clamp(&values) },
            half @ Features::Half { .. } => half,
            Features::Sparse { columns, offsets, indices, values } => {
                Features::Sparse { columns, offsets, indices, values: values.map(|values| clamp(&values)) }
            }
        }
    }

    /// The same values in single precision where they were in half.
    #[must_use]
    pub fn widened(self) -> Features {
        let Features::Half { columns, values } = &self else { return self };
        let mut wide = vec![0f32; values.len()];
        wide.par_chunks_mut(1 << 16)
            .zip(values.par_chunks(1 << 16))
            .for_each(|(wide, values)| values.convert_to_f32_slice(wide));
        Features::Dense { columns: *columns, values: wide.into() }
    }

    /// The same values in half precision: rounded to three digits, and half the room. Sparse rows are filled up with
    /// zeros.
    ///
    /// # Errors
    /// A value beyond 65,504, the largest that half precision has.
    pub fn halved(self, rows: usize) -> Result<Features> {
        let most = f16::MAX.to_f32();
        if let Some((row, column, value)) = self.first_beyond(most) {
            let message = format!(
                "the value {value} of feature column {column} is beyond {most}, the largest in half precision; leave \
                 the features as they are"
            );
            return Err(Problem::Invalid(message).at(Place::Node(row as u64)));
        }
        let half = |values: &[f32]| -> Buffer<f16> {
            values.iter().map(|&value| f16::from_f32(value)).collect::<Vec<_>>().into()
        };
        Ok(match self {
            half @ Features::Half { .. } => half,
            Features::Dense { columns, values } => Features::Half { columns, values: half(&values) },
            sparse @ Features::Sparse { .. } => {
                Features::Half { columns: sparse.columns(), values: half(&sparse.to_dense(rows)) }
            }
        })
    }

    /// The values that are held one by one in single precision; none where all are 1.
    fn values(&self) -> &[f32] {
        match self {
            Features::Half { .. } => &[],
            Features::Dense { values, .. } => values,
            Features::Sparse { values, .. } => values.as_deref().unwrap_or_default(),
        }
    }

    /// How many values are not zero.
    pub fn nonzeros(&self) -> usize {
        match self {
            Features::Dense { values, .. } => values.iter().filter(|&&v| v != 0.0).count(),
            Features::Half { values, .. } => values.iter().filter(|&&v| v != f16::ZERO).count(),
            Features::Sparse { indices, values: None, .. } => indices.len(),
            Features::Sparse { values: Some(values), .. } => values.iter().filter(|&&v| v != 0.0).count(),
        }
    }

    /// Bytes held by the matrix.
    pub fn bytes(&self) -> usize {
        match self {
            Features::Dense { values, .. } => size_of_val(&**values),
            Features::Half { values, .. } => size_of_val(&**values),
            Features::Sparse { offsets, indices, values, .. } => {
                size_of_val(&**offsets) + size_of_val(&**indices) + values.as_deref().map_or(0, size_of_val)
            }
        }
    }

    /// Bytes of memory held by the matrix, not counting pages of a mapped file.
    pub fn held_bytes(&self) -> usize {
        match self {
            Features::Dense { values, .. } => values.held_bytes(),
            Features::Half { values, .. } => values.held_bytes(),
            Features::Sparse { offsets, indices, values, .. } => {
                offsets.held_bytes() + indices.held_bytes() + values.as_ref().map_or(0, Buffer::held_bytes)
            }
        }
    }

    /// The values of a row that are stored, as (column, value).
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let mut half = &[][..];
        let (dense, indices, values) = match self {
            Features::Dense { columns, values } => {
                (&values[row * columns..(row + 1) * columns], &[][..], None)
            }
            Features::Half { columns, values } => {
                half = &values[row * columns..(row + 1) * columns];
                (&[][..], &[][..], None)
            }
            Features::Sparse { offsets, indices, values, .. } => {
                let range = offsets[row] as usize..offsets[row + 1] as usize;
                (&[][..], &indices[range.clone()], values.as_deref().map(|v| &v[range]))
            }
        };
        let sparse =
            indices.iter().enumerate().map(move |(k, &c)| (c as usize, values.map_or(1.0, |v| v[k])));
        let dense = dense.iter().copied().chain(half.iter().map(|value| value.to_f32()));
        dense.enumerate().chain(sparse)
    }

    /// The rows that are listed, in that order.
    #[must_use]
    pub fn select(&self, rows: &[u32]) -> Features {
        match self {
            Features::Dense { columns, values } => {
                let mut kept = Vec::with_capacity(rows.len() * columns);
                for &row in rows {
                    let start = row as usize * columns;
                    kept.extend_from_slice(&values[start..start + columns]);
                }
                Features::Dense { columns: *columns, values: kept.into() }
            }
            Features::Half { columns, values } => {
                let row = |&row: &u32| &values[row as usize * columns..][..*columns];
                let kept: Vec<f16> = rows.iter().flat_map(row).copied().collect();
                Features::Half { columns: *columns, values: kept.into() }
            }
            Features::Sparse { columns, offsets, indices, values } => {
                let range = |row: u32| offsets[row as usize] as usize..offsets[row as usize + 1] as usize;
                let total = rows.iter().map(|&row| range(row).len()).sum();
                let mut kept_offsets = Vec::with_capacity(rows.len() + 1);
                kept_offsets.push(0);
                let mut kept_indices = Vec::with_capacity(total);
                let mut kept_values = values.as_ref().map(|_| Vec::with_capacity(total));
                for &row in rows {
                    kept_indices.extend_from_slice(&indices[range(row)]);
                    if let (Some(kept), Some(values)) = (&mut kept_values, values) {
                        kept.extend_from_slice(&values[range(row)]);
                    }
                    kept_offsets.push(kept_indices.len() as u64);
                }
                Features::Sparse {
                    columns: *columns,
                    offsets: kept_offsets.into(),
                    indices: kept_indices.into(),
                    values: kept_values.map(Into::into),
                }
            }
        }
    }

    /// The same matrix in whichever form is smaller.
    #[must_use]
    pub fn compact(self, rows: usize) -> Features {
        let columns = self.columns();
        let nonzeros = self.nonzeros();
        let dense_bytes = rows * columns * 4;
        let sparse_bytes = (rows + 1) * 8 + nonzeros * 8;
        match &self {
            Features::Dense { values, .. } if sparse_bytes < dense_bytes => {
                let mut offsets = Vec::with_capacity(rows + 1);
                offsets.push(0);
                let mut indices = Vec::with_capacity(nonzeros);
                let mut kept = Vec::with_capacity(nonzeros);
                for row in values.chunks_exact(columns) {
                    for (column, &value) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                        indices.push(column as u32);
                        kept.push(value);
                    }
                    offsets.push(indices.len() as u64);
                }
                let values = kept.iter().any(|&v| v != 1.0).then(|| kept.into());
                Features::Sparse { columns, offsets: offsets.into(), indices: indices.into(), values }
            }
            Features::Sparse { .. } if dense_bytes < sparse_bytes => {
                Features::Dense { columns, values: self.to_dense(rows).into() }
            }
            _ => self,
        }
    }

    /// All values, row after row, zeros included.
    pub fn to_dense(&self, rows: usize) -> Vec<f32> {
        let columns = self.columns();
        let mut dense = vec![0.0; rows * columns];
        for row in 0..rows {
            for (column, value) in self.row(row) {
                dense[row * columns + column] = value;
            }
        }
        dense
    }

    /// Checks that there are the values of this many rows, and looks at none.
    pub(crate) fn check_lengths(&self, rows: usize) -> Result<()> {
        let (columns, found) = match self {
            Features::Dense { columns, values } => (columns, values.len()),
            Features::Half { columns, values } => (columns, values.len()),
            Features::Sparse { offsets, indices, values, .. } => {
                return check_lengths(rows, offsets, indices, values.as_deref());
            }
        };
        let expected = (rows as u64).saturating_mul(*columns as u64);
        if found as u64 == expected {
            return Ok(());
        }
        let what = format!("feature matrix of {rows} rows and {columns} columns");
        Err(Problem::Length { what, found: found as u64, expected }.into())
    }

    /// Whether the matrix has this many rows and only finite values.
    pub(crate) fn check(&self, rows: usize) -> Result<()> {
        self.check_lengths(rows)?;
        let values = match self {
            Features::Dense { values, .. } => Some(values),
            Features::Half { columns, values } => {
                let values = &values[..];
                return match first(values.len(), |at| !values[at].is_finite()) {
                    None => Ok(()),
                    Some(at) => {
                        let value = values[at].to_f64();
                        Err(Problem::NotFinite(value).at(Place::Node((at / columns) as u64)))
                    }
                };
            }
            Features::Sparse { columns, offsets, indices, values } => {
                let (offsets, indices) = (&offsets[..], &indices[..]);
                if let Some(at) = first(indices.len(), |at| indices[at] as usize >= *columns) {
                    let problem =
                        Problem::IndexOutOfRange { index: indices[at].to_string(), limit: *columns as u64 };
                    return Err(
                        problem.at(Place::Element { key: "feature columns".into(), index: at as u64 })
                    );
                }
                let row = |row: usize| &indices[offsets[row] as usize..offsets[row + 1] as usize];
                if let Some(row) = first(rows, |at| !row(at).is_sorted_by(|a, b| a < b)) {
                    let message = "a feature column stands twice in one row".into();
                    return Err(Problem::Invalid(message).at(Place::Node(row as u64)));
                }
                values.as_ref()
            }
        };
        let not_finite = |values: &Buffer<f32>| {
            let values = &values[..];
            first(values.len(), |at| !values[at].is_finite()).map(|at| (at, values[at]))
        };
        match values.and_then(not_finite) {
            None => Ok(()),
            Some((at, value)) => {
                let row = match self {
                    Features::Dense { columns, .. } | Features::Half { columns, .. } => at / columns,
                    Features::Sparse { offsets, .. } => offsets.partition_point(|&o| o <= at as u64) - 1,
                };
                Err(Problem::NotFinite(value.into()).at(Place::Node(row as u64)))
            }
        }
    }
}

/// The first of this many values that is bad, sought by all threads.
fn first(count: usize, bad: impl Fn(usize) -> bool + Sync) -> Option<usize> {
    const PER_TASK: usize = 1 << 15;
    let task = |task: usize| task * PER_TASK..count.min((task + 1) * PER_TASK);
    (0..count.div_ceil(PER_TASK)).into_par_iter().find_map_first(|at| {
        let found = task(at).find(|&at| bad(at));
        crate::store::note_read(PER_TASK * size_of::<f32>());
        found
    })
}

/// Equal when every value is equal, in whichever form it is stored.
impl PartialEq for Features {
    fn eq(&self, other: &Self) -> bool {
        let rows = |f: &Features| match f {
            Features::Dense { columns: 0, .. } | Features::Half { columns: 0, .. } => None,
            Features::Dense { columns, values } => Some(values.len() / columns),
            Features::Half { columns, values } => Some(values.len() / columns),
            Features::Sparse { offsets, .. } => Some(offsets.len() - 1),
        };
        if self.columns() != other.columns() {
            return false;
        }
        if self.columns() == 0 {
            return true;
        }
        let nonzero = |f: &Features, row| f.row(row).filter(|(_, v)| *v != 0.0).collect::<Vec<_>>();
        rows(self) == rows(other)
            && (0..rows(self).unwrap_or(0)).all(|r| nonzero(self, r) == nonzero(other, r))
    }
}

fn check_lengths(rows: usize, offsets: &[u64], indices: &[u32], values: Option<&[f32]>) -> Result<()> {
    if offsets.len() as u64 != rows as u64 + 1 {
        let (found, expected) = (offsets.len() as u64, rows as u64 + 1);
        return Err(Problem::Length { what: "list of feature offsets".into(), found, expected }.into());
    }
    check_offsets("feature offsets", offsets, indices.len())?;
    match values {
        Some(values) if values.len() != indices.len() => {
            let (found, expected) = (values.len() as u64, indices.len() as u64);
            Err(Problem::Length { what: "list of feature values".into(), found, expected }.into())
        }
        _ => Ok(()),
    }
}

fn sort_rows(
    offsets: &[u64],
    indices: Buffer<u32>,
    values: Option<Buffer<f32>>,
) -> (Buffer<u32>, Option<Buffer<f32>>) {
    let mut indices = indices.into_vec();
    let mut values = values.map(Buffer::into_vec);
    for w in offsets.windows(2) {
        let range = w[0] as usize..w[1] as usize;
        match &mut values {
            None => indices[range].sort_unstable(),
            Some(values) => {
                let mut row: Vec<_> = indices[range.clone()]
                    .iter()
                    .copied()
                    .zip(values[range.clone()].iter().copied())
                    .collect();
                row.sort_unstable_by_key(|&(column, _)| column);
                for (at, (column, value)) in range.zip(row) {
                    indices[at] = column;
                    values[at] = value;
                }
            }
        }
    }
    (indices.into(), values.map(Into::into))
}

#[cfg(test)]
#[path = "features_tests.rs"]
mod tests;
