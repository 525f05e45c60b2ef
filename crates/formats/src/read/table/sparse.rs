//! A list of the features of each node beside a node table: `{"id": [feature, ...]}` as MUSAE publishes it, or rows of
//! node, feature and value as karateclub does.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};

use super::cell::{Cell, Checked, canonical_integer};
use super::csv::CsvRows;
use super::index::NodeIndex;
use super::matrix::Matrix;
use super::{Format, TableInput, in_cell};
use crate::read::columns::ColumnReport;
use crate::read::{LoadOptions, has_ending};
use crate::{Features, InFile, InferenceKind, Place, Problem, Result, room};

/// The features of nodes, one after the other.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// The position of each feature in the order in which they came.
    numbers: HashMap<String, u32>,
    /// Node, feature by its position, value.
    entries: Vec<(u32, u32, f32)>,
}

impl Listed {
    fn push(&mut self, node: u32, feature: &str, value: f32) -> Checked<()> {
        let next = self.numbers.len() as u32;
        let feature = match self.numbers.get(feature) {
            Some(&known) => known,
            None => *self.numbers.entry(feature.to_string()).or_insert(next),
        };
        room::push(&mut self.entries, (node, feature, value))
    }

    /// The features in the order of their names, numbers by size, each behind those of a matrix.
    fn beside(self, matrix: Matrix, nodes: usize) -> Result<Matrix> {
        let mut names: Vec<(&String, &u32)> = self.numbers.iter().collect();
        names.sort_by_cached_key(|(name, _)| {
            (canonical_integer(name.as_bytes()).map_or((1, 0), |n| (0, n)), *name)
        });
        let mut places = vec![0u32; names.len()];
        names.iter().zip(0..).for_each(|((_, number), place)| places[**number as usize] = place);
        let first = matrix.features.columns();
        let mut all_names = matrix.names;
        all_names.extend(names.iter().map(|(name, _)| format!("feature {name}")));
        let mut entries = self.entries;
        entries.iter_mut().for_each(|(_, feature, _)| *feature = first as u32 + places[*feature as usize]);
        entries.sort_unstable_by_key(|(node, feature, _)| (*node, *feature));
        entries.dedup_by_key(|(node, feature, _)| (*node, *feature));
        let mut listed = entries.into_iter().filter(|(.., value)| *value != 0.0).peekable();
        let (mut offsets, mut indices, mut values) = (room::with_room(nodes + 1)?, vec![], vec![]);
        offsets.push(0u64);
        for node in 0..nodes {
            for (column, value) in matrix.features.row(node).filter(|(_, value)| *value != 0.0) {
                room::push(&mut indices, column as u32)?;
                room::push(&mut values, value)?;
            }
            while let Some((_, column, value)) = listed.next_if(|(of, ..)| *of as usize == node) {
                room::push(&mut indices, column)?;
                room::push(&mut values, value)?;
            }
            offsets.push(indices.len() as u64);
        }
        let values = (!values.iter().all(|value| *value == 1.0)).then(|| values.into());
        let features = Features::sparse(nodes, all_names.len(), offsets, indices, values)?;
        Ok(Matrix { features: features.compact(nodes), names: all_names, numbers: matrix.numbers })
    }
}

/// The same matrix with the features that a file lists behind its own, and what there is to say of them.
pub(super) fn add(
    matrix: Matrix,
    file: &Path,
    index: &NodeIndex,
    nodes: usize,
    options: &LoadOptions,
) -> Result<(Matrix, ColumnReport)> {
    let listed = read(file, index, options).in_file(file)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let report = ColumnReport {
        features: listed.numbers.len(),
        read_off: Some(InferenceKind::Categories),
        note: Some("a list of the features of each node".into()),
        ..ColumnReport::new(&name, "sparse")
    };
    Ok((listed.beside(matrix, nodes).in_file(file)?, report))
}

fn read(file: &Path, index: &NodeIndex, options: &LoadOptions) -> Result<Listed> {
    if has_ending(file, "json") {
        return read_json(&crate::file::read_text(file, options.encoding)?, index);
    }
    let input = TableInput::at(file)?;
    match input.format {
        Format::Text { separator, .. } => {
            read_rows(CsvRows::new(input.open(options.encoding)?, separator)?, index)
        }
        Format::Parquet => Err(not_a_list("a Parquet file")),
    }
}

fn not_a_list(found: &str) -> crate::Error {
    let message = format!(
        "features beside a table of nodes are a list of node, feature and value, or {{\"id\": [features]}}, and this \
         is {found}: \
         join its columns to the table of nodes"
    );
    Problem::Unsupported(message).into()
}

/// Rows of node, feature and value; without values all of them are 1.
fn read_rows(mut rows: CsvRows, index: &NodeIndex) -> Result<Listed> {
    let names = rows.header()?;
    if !(2..=3).contains(&names.len()) {
        return Err(not_a_list(&format!("a table of {} columns", names.len())));
    }
    let mut listed = Listed::default();
    let mut seen: BTreeMap<(u32, u32), f32> = BTreeMap::new();
    while rows.advance()? {
        let row = rows.number();
        let text = |at: usize| rows.text(at).map_err(|problem| in_cell(problem, row, &names[at]));
        let id = Cell::Untyped(text(0)?);
        let node = index.find(id).map_err(|problem| in_cell(problem, row, &names[0]))?;
        let feature = text(1)?.trim();
        if feature.is_empty() {
            return Err(in_cell(Problem::EmptyCell, row, &names[1]));
        }
        let value = if names.len() == 3 { text(2)?.trim() } else { "1" };
        let number = match value.parse::<f32>() {
            Ok(number) if number.is_finite() => number,
            Ok(number) => return Err(in_cell(Problem::NotFinite(number.into()), row, &names[2])),
            Err(_) => return Err(in_cell(Problem::NotANumber(value.into()), row, &names[2])),
        };
        listed.push(node, feature, number)?;
        let key = (node, listed.entries.last().map_or(0, |entry| entry.1));
        if seen.insert(key, number).is_some_and(|other| other != number) {
            let message = format!("the feature {feature:?} of the node has two values");
            return Err(Problem::Invalid(message).at(Place::Row(row)));
        }
    }
    Ok(listed)
}

/// An object of lists: the features of each node, by its id.
fn read_json(text: &str, index: &NodeIndex) -> Result<Listed> {
    let Object(nodes) = serde_json::from_str(text).map_err(|error| {
        let message =
            format!("it is no list of features in JSON, such as {{\"0\": [3, 17], \"1\": []}}: {error}");
        crate::Error::from(Problem::Invalid(message))
    })?;
    let mut listed = Listed::default();
    for (id, features) in nodes {
        let place = || Place::Key(id.clone());
        let node = index.find(Cell::Untyped(&id)).map_err(|problem| problem.at(place()))?;
        for feature in features {
            match feature {
                Feature::Number(number) => listed.push(node, &number.to_string(), 1.0)?,
                Feature::Name(name) => listed.push(node, &name, 1.0)?,
            }
        }
    }
    Ok(listed)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Feature {
    Number(i64),
    Name(String),
}

/// An object in the order of its file; a key that stands twice is there twice.
struct Object(Vec<(String, Vec<Feature>)>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of lists")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<Object, M::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(Object(all))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// Reads a list that lies in memory beside nodes 0, 1, 2, for fuzzing.
pub fn read_listed(bytes: &[u8], json: bool) -> Result<()> {
    let mut ids = super::index::IdColumn::new();
    (0..3).try_for_each(|id| ids.push(Cell::Integer(id)))?;
    let Ok(index) = ids.index() else { return Ok(()) };
    let listed = match json {
        true => read_json(&String::from_utf8_lossy(bytes), &index)?,
        false => read_rows(CsvRows::new(Box::new(bytes), b',')?, &index)?,
    };
    let none = Matrix { features: Features::dense(3, 0, vec![])?, names: vec![], numbers: vec![] };
    listed.beside(none, 3).map(|_| ())
}
