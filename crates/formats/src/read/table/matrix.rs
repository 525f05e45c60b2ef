//! One matrix of features from all columns of a table.

use std::collections::HashSet;

use super::category::{NONE, Sorted};
use super::numbers::Numbers;
use crate::{Features, NumberColumn, Problem, Result, room};

/// The features that a column becomes.
#[derive(Debug)]
pub(super) enum Values {
    /// A feature, and one more where values are missing.
    Numbers {
        numbers: Numbers,
        /// The rows without a value; nothing where no feature says so.
        missing: Option<Vec<u32>>,
        /// The scale declared for it, where it is in a unit of its own.
        scale: Option<NumberColumn>,
    },
    /// A feature for each name.
    Names(Sorted),
    /// A feature for each of `width` groups of words, by the positions of the distinct texts.
    Hashed {
        width: u32,
        /// The groups that occur in each distinct text, ascending.
        groups: Vec<Vec<u32>>,
        /// The text of each row.
        codes: Vec<u32>,
    },
}

impl Values {
    /// How many features it is.
    pub(super) fn features(&self) -> usize {
        match self {
            Values::Numbers { missing, .. } => 1 + usize::from(missing.is_some()),
            Values::Names(names) => names.names.len(),
            Values::Hashed { width, .. } => *width as usize,
        }
    }

    /// The names of the features of a column of this name.
    fn names(&self, column: &str) -> Vec<String> {
        match self {
            Values::Numbers { missing, .. } => {
                let indicator = missing.as_ref().map(|_| format!("{column} missing"));
                std::iter::once(column.to_string()).chain(indicator).collect()
            }
            Values::Names(Sorted { names, .. }) => {
                names.iter().map(|name| format!("{column}={name}")).collect()
            }
            Values::Hashed { width, .. } => (0..*width).map(|group| format!("{column}#{group}")).collect(),
        }
    }

    /// Visits every value that is not zero, as (row, feature of the column, value).
    fn each(&self, mut put: impl FnMut(usize, u32, f32)) {
        match self {
            Values::Numbers { numbers, missing, .. } => {
                numbers.nonzeros().for_each(|(row, value)| put(row, 0, value));
                missing.iter().flatten().for_each(|&row| put(row as usize, 1, 1.0));
            }
            Values::Names(Sorted { codes, .. }) => {
                for (row, &code) in codes.iter().enumerate().filter(|(_, code)| **code != NONE) {
                    put(row, code, 1.0);
                }
            }
            Values::Hashed { groups, codes, .. } => {
                for (row, &code) in codes.iter().enumerate().filter(|(_, code)| **code != NONE) {
                    groups[code as usize].iter().for_each(|&group| put(row, group, 1.0));
                }
            }
        }
    }
}

/// The matrix of a table, what its columns are called, and which of them are in a unit of their own.
#[derive(Debug)]
pub(super) struct Matrix {
    pub(super) features: Features,
    pub(super) names: Vec<String>,
    pub(super) numbers: Vec<NumberColumn>,
}

/// One matrix from all columns, in whichever form is smaller; one-hot columns are never spread out.
pub(super) fn assemble(nodes: usize, columns: Vec<(String, Values)>) -> Result<Matrix> {
    let (mut names, mut numbers) = (Vec::new(), Vec::new());
    let mut lengths = room::filled(0u64, nodes + 1)?;
    for (name, values) in &columns {
        if let Values::Numbers { scale: Some(declared), missing, .. } = values {
            let column = names.len() as u32;
            let missing = missing.as_ref().map(|_| column + 1);
            numbers.push(NumberColumn { column, missing, ..declared.clone() });
        }
        names.extend(values.names(name));
        values.each(|row, _, _| lengths[row + 1] += 1);
    }
    let mut seen = HashSet::with_capacity(names.len());
    if let Some(name) = names.iter().find(|name| !seen.insert(name.as_str())) {
        return Err(Problem::Invalid(format!("two features would be called {name:?}")).into());
    }
    let mut offsets = lengths;
    for row in 0..nodes {
        offsets[row + 1] += offsets[row];
    }
    let (width, nonzeros) = (names.len(), offsets[nodes] as usize);
    // The sizes that `Features::compact` compares.
    if (nodes as u128) * (width as u128) * 4 <= (nodes as u128 + 1) * 8 + (nonzeros as u128) * 8 {
        let mut dense = room::filled(0f32, nodes * width)?;
        place(columns, |row, column, value| dense[row * width + column as usize] = value);
        return Ok(Matrix { features: Features::dense(nodes, width, dense)?, names, numbers });
    }
    let only_ones = columns.iter().all(|(_, values)| match values {
        Values::Numbers { numbers, .. } => numbers.nonzeros().all(|(_, value)| value == 1.0),
        Values::Names(_) | Values::Hashed { .. } => true,
    });
    let mut indices = room::filled(0u32, nonzeros)?;
    let mut values = room::filled(0f32, if only_ones { 0 } else { nonzeros })?;
    let mut next = room::copy(&offsets)?;
    place(columns, |row, column, value| {
        let at = next[row] as usize;
        next[row] += 1;
        indices[at] = column;
        if !only_ones {
            values[at] = value;
        }
    });
    let values = (!only_ones).then(|| values.into());
    Ok(Matrix { features: Features::sparse(nodes, width, offsets, indices, values)?, names, numbers })
}

/// Visits every value that is not zero, column after column, and frees each column after its visit.
fn place(columns: Vec<(String, Values)>, mut put: impl FnMut(usize, u32, f32)) {
    let mut first = 0u32;
    for (_, values) in columns {
        values.each(|row, feature, value| put(row, first + feature, value));
        first += values.features() as u32;
    }
}
