//! From the columns of a node table to ids, labels, split and features.

use std::collections::HashSet;

use super::category::{Categories, NONE, Sorted};
use super::cell::{Cell, Checked};
use super::feature::{FeatureColumn, Finished, Numbers};
use super::index::IdColumn;
use crate::read::LoadOptions;
use crate::{Error, Features, Graph, Part, Place, Problem, Result, Split, room};

/// More columns than any table has; it keeps a forged header from allocating at will.
const MAX_COLUMNS: usize = 1 << 20;

/// A node table while it is read.
#[derive(Debug)]
pub(super) struct NodeTable {
    names: Vec<String>,
    columns: Vec<Column>,
    pub(super) rows: RowNumbers,
}

/// A column of a node table while it is read.
#[derive(Debug)]
pub(super) enum Column {
    Id(IdColumn),
    Label(Categories),
    Split(Vec<Part>),
    Feature(FeatureColumn),
    /// A column that its file marks as no data.
    Ignored,
}

/// What a node table says, without the edges.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) ids: IdColumn,
    pub(super) labels: Vec<u32>,
    pub(super) class_names: Vec<String>,
    pub(super) split: Option<Split>,
    pub(super) features: Features,
    pub(super) feature_names: Vec<String>,
    pub(super) rows: RowNumbers,
}

impl Column {
    /// Adds a row.
    pub(super) fn push(&mut self, cell: Cell) -> Checked<()> {
        match self {
            Column::Id(ids) => ids.push(cell)?,
            Column::Label(labels) => cell.named(|name| match name {
                None => Err(Problem::EmptyCell),
                name => labels.push(name),
            })?,
            Column::Split(parts) => room::push(
                parts,
                cell.named(|name| {
                    let name = name.unwrap_or_default();
                    Part::from_name(name).ok_or_else(|| {
                        Problem::Invalid(format!("the part {name:?} is none of train, val, test and none"))
                    })
                })?,
            )?,
            Column::Feature(column) => column.push(cell)?,
            Column::Ignored => {}
        }
        Ok(())
    }
}

impl NodeTable {
    /// A table with these columns, whose first row has this number.
    pub(super) fn new(names: Vec<String>, rows: RowNumbers, options: &LoadOptions) -> Result<NodeTable> {
        check_names(&names)?;
        let id = find_required(&names, "id column", options.id_column.as_deref(), "id")?;
        let label = find_required(&names, "label column", options.label_column.as_deref(), "label")?;
        let split = match options.split_column.as_deref() {
            Some(_) => Some(find_required(&names, "split column", options.split_column.as_deref(), "split")?),
            None => find(&names, "split"),
        };
        if id == label || Some(id) == split || Some(label) == split {
            let message = "id, label and split must be three different columns".to_string();
            return Err(Problem::Invalid(message).into());
        }
        for name in &options.categorical {
            if !names.contains(name) {
                return Err(missing("column to take as categories", name, &names));
            }
        }
        let categorical: HashSet<&str> = options.categorical.iter().map(String::as_str).collect();
        let column = |(at, name): (usize, &String)| match at {
            at if at == id => Column::Id(IdColumn::new()),
            at if at == label => Column::Label(Categories::default()),
            at if Some(at) == split => Column::Split(Vec::new()),
            _ if categorical.contains(name.as_str()) => Column::Feature(FeatureColumn::names()),
            _ if is_bookkeeping(name) => Column::Ignored,
            _ => Column::Feature(FeatureColumn::new()),
        };
        let columns = names.iter().enumerate().map(column).collect();
        Ok(NodeTable { names, columns, rows })
    }

    /// The columns, for adding cells.
    pub(super) fn columns_mut(&mut self) -> &mut [Column] {
        &mut self.columns
    }

    /// The name of a column.
    pub(super) fn name(&self, column: usize) -> &str {
        &self.names[column]
    }

    /// Ends reading. `read_again` reads one column once more, as names.
    pub(super) fn finish(
        self,
        mut read_again: impl FnMut(usize, &mut Column) -> Result<()>,
    ) -> Result<Nodes> {
        let NodeTable { names, columns, rows } = self;
        let (mut ids, mut labels, mut split) = (IdColumn::new(), Categories::default(), None);
        let mut features = Vec::new();
        for (at, (name, column)) in names.into_iter().zip(columns).enumerate() {
            match column {
                Column::Id(column) => ids = column,
                Column::Label(column) => labels = column,
                Column::Split(parts) => split = Some(Split::from_parts(parts)),
                Column::Ignored => {}
                Column::Feature(column) => {
                    let finished = column.finish().map_err(|(row, problem)| {
                        problem.at(Place::Cell { row: rows.row(row), column: name.clone() })
                    })?;
                    let values = match finished {
                        Finished::Numbers(numbers) => Values::Numbers(numbers),
                        Finished::Names(names) => Values::Names(names.sort()),
                        Finished::ReadAgain => {
                            let mut column = Column::Feature(FeatureColumn::names());
                            read_again(at, &mut column)?;
                            match column {
                                Column::Feature(column) => match column.finish() {
                                    Ok(Finished::Names(names)) => Values::Names(names.sort()),
                                    _ => return Err(changed()),
                                },
                                _ => return Err(changed()),
                            }
                        }
                    };
                    features.push((name, values));
                }
            }
        }
        let nodes = ids.len();
        if nodes == 0 {
            return Err(Problem::Empty("nodes").into());
        }
        let (features, feature_names) = assemble(nodes, features)?;
        let Sorted { names: class_names, codes: labels } = labels.sort();
        Ok(Nodes { ids, labels, class_names, split, features, feature_names, rows })
    }
}

fn changed() -> Error {
    Problem::Invalid("the file changed while it was read".into()).into()
}

/// pandas keeps the labels of its rows in columns of this name; they are no property of a node.
fn is_bookkeeping(name: &str) -> bool {
    name.strip_prefix("__index_level_").and_then(|rest| rest.strip_suffix("__")).is_some()
}

/// A finished feature column.
enum Values {
    Numbers(Numbers),
    Names(Sorted),
}

/// One matrix from all columns, in whichever form is smaller; one-hot columns are never spread out.
fn assemble(nodes: usize, columns: Vec<(String, Values)>) -> Result<(Features, Vec<String>)> {
    let mut names = Vec::new();
    let mut lengths = room::filled(0u64, nodes + 1)?;
    for (name, values) in &columns {
        match values {
            Values::Numbers(numbers) => {
                names.push(name.clone());
                numbers.nonzeros().for_each(|(row, _)| lengths[row + 1] += 1);
            }
            Values::Names(Sorted { names: values, codes }) => {
                names.extend(values.iter().map(|value| format!("{name}={value}")));
                for (row, _) in codes.iter().enumerate().filter(|(_, code)| **code != NONE) {
                    lengths[row + 1] += 1;
                }
            }
        }
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
        return Ok((Features::dense(nodes, width, dense)?, names));
    }
    let only_ones = columns.iter().all(|(_, values)| match values {
        Values::Numbers(numbers) => numbers.nonzeros().all(|(_, value)| value == 1.0),
        Values::Names(_) => true,
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
    Ok((Features::sparse(nodes, width, offsets, indices, values)?, names))
}

/// Visits every value that is not zero, column after column, and frees each column after its visit.
fn place(columns: Vec<(String, Values)>, mut put: impl FnMut(usize, u32, f32)) {
    let mut at = 0u32;
    for (_, values) in columns {
        match values {
            Values::Numbers(numbers) => {
                numbers.nonzeros().for_each(|(row, value)| put(row, at, value));
                at += 1;
            }
            Values::Names(Sorted { names, codes }) => {
                for (row, &code) in codes.iter().enumerate().filter(|(_, code)| **code != NONE) {
                    put(row, at + code, 1.0);
                }
                at += names.len() as u32;
            }
        }
    }
}

/// Which row of the file each row of the table is: consecutive but for texts with line breaks.
#[derive(Debug)]
pub(super) struct RowNumbers {
    /// Where the numbers jump: from this position on they count up from this row.
    jumps: Vec<(usize, u64)>,
    length: usize,
}

impl RowNumbers {
    /// Rows that count up from `first`.
    pub(super) fn from(first: u64) -> Self {
        RowNumbers { jumps: vec![(0, first)], length: 0 }
    }

    /// Says which row the next one is.
    pub(super) fn push(&mut self, row: u64) -> Result<()> {
        if self.length >= Graph::MAX_NODES {
            let message = format!("the table has more than {} rows", Graph::MAX_NODES);
            return Err(Problem::TooLarge(message).into());
        }
        if self.row(self.length) != row {
            room::push(&mut self.jumps, (self.length, row))?;
        }
        self.length += 1;
        Ok(())
    }

    /// The row of the file at a position of the table.
    pub(super) fn row(&self, position: usize) -> u64 {
        // The last jump is the usual answer while a table is read.
        let last = self.jumps[self.jumps.len() - 1];
        let (from, row) = if position >= last.0 {
            last
        } else {
            self.jumps[self.jumps.partition_point(|jump| jump.0 <= position).saturating_sub(1)]
        };
        row + (position - from.min(position)) as u64
    }
}

/// Whether every column has a name of its own.
pub(super) fn check_names(names: &[String]) -> Result<()> {
    if names.len() > MAX_COLUMNS {
        let message = format!("the table has {} columns, more than {MAX_COLUMNS}", names.len());
        return Err(Problem::TooLarge(message).into());
    }
    let mut seen = HashSet::with_capacity(names.len());
    for (at, name) in names.iter().enumerate() {
        if name.is_empty() {
            let message = format!("column {} has no name in the header", at + 1);
            return Err(Problem::Invalid(message).into());
        }
        if !seen.insert(name.as_str()) {
            let message = "two columns have this name".to_string();
            return Err(Problem::Invalid(message).at(Place::Column(name.clone())));
        }
    }
    Ok(())
}

/// The column of that name, in any case if only one column has it.
pub(super) fn find(names: &[String], name: &str) -> Option<usize> {
    names.iter().position(|n| n == name).or_else(|| {
        let mut alike = names.iter().enumerate().filter(|(_, n)| n.eq_ignore_ascii_case(name));
        alike.next().filter(|_| alike.next().is_none()).map(|(at, _)| at)
    })
}

/// The column that the user named, exactly as spelt, or the one of the usual name.
pub(super) fn find_required(names: &[String], what: &str, given: Option<&str>, usual: &str) -> Result<usize> {
    let found = match given {
        Some(given) => names.iter().position(|name| name == given),
        None => find(names, usual),
    };
    found.ok_or_else(|| missing(what, given.unwrap_or(usual), names))
}

/// A column that is not there, beside those that are.
pub(super) fn missing(what: &str, name: &str, names: &[String]) -> Error {
    const SHOWN: usize = 12;
    let mut found = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        found += &format!(" and {} more", names.len() - SHOWN);
    }
    Problem::Missing { what: format!("{what} {name:?}"), found }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_numbers_jump_where_the_file_does() {
        let mut rows = RowNumbers::from(2);
        for row in [2, 3, 7, 8, 12] {
            rows.push(row).unwrap();
        }
        assert_eq!(rows.jumps.len(), 3);
        assert_eq!((0..5).map(|position| rows.row(position)).collect::<Vec<_>>(), [2, 3, 7, 8, 12]);
    }

    #[test]
    fn columns_are_found_by_exact_name_first() {
        let names = ["ID", "Label", "id"].map(String::from);
        assert_eq!((find(&names, "id"), find(&names, "label"), find(&names, "Id")), (Some(2), Some(1), None));
    }
}
