//! A table of nodes that come later, whose columns become the features of a data set that was read before.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::index::Duplicate;
use super::matrix::Matrix;
use super::nodes::Nodes;
use super::{LoadOptions, TableInput};
use crate::error::InFile;
use crate::read::columns::{ColumnChoice, ColumnChoices, ColumnKind};
use crate::{
    Dataset, DatasetParts, Error, Features, Graph, NumberColumn, Place, Problem, Result, UNLABELLED, room,
};

/// Reads a table of nodes, without edges and labels, as `like` was read: the same features in the same order, categories that
/// were known, numbers mapped as its numbers were. Other columns are not used.
///
/// ```
/// use progap_graph::read::{LoadOptions, table};
/// use progap_graph::scale::Preparation;
///
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("nodes.csv"), "id,label,town,age\nann,x,Rome,30\nbob,y,Oslo,40\n")?;
/// std::fs::write(folder.path().join("edges.csv"), "source,target\nann,bob\n")?;
/// let known = table::read_folder(folder.path(), &LoadOptions::default())?.prepared(Preparation::Standardise)?;
///
/// let later = folder.path().join("later.csv");
/// std::fs::write(&later, "id,age,town\ncat,35,Oslo\n")?;
/// let rows = table::read_later(&later, &known, None)?;
/// assert_eq!(rows.feature_names(), known.feature_names());
/// assert_eq!(rows.features().to_dense(1), [1.0, 0.0, 0.0]); // Oslo, not Rome, the mean age
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A column that is not there or holds something else, a category that was not known, a missing value where none was missing; a
/// data set whose features have no names.
pub fn read_later(table: &Path, like: &Dataset, id_column: Option<&str>) -> Result<Dataset> {
    read(table, like, id_column).in_file(table)
}

fn read(table: &Path, like: &Dataset, id_column: Option<&str>) -> Result<Dataset> {
    let known = Known::of(like)?;
    let mut options = LoadOptions {
        id_column: id_column.map(String::from),
        columns: known.choices(),
        without_labels: true,
        ..LoadOptions::default()
    };
    let read = |options: &LoadOptions| TableInput::at(table)?.read_nodes(options).map_err(in_words);
    let mut found = read(&options)?;
    let mut empty = false;
    for report in found.columns.iter().filter(|report| known.numbers.contains(&report.name.as_str())) {
        match (report.kind, report.categories) {
            ("number" | "switch" | "date", _) => {}
            // Without a value nothing tells numbers from names.
            (_, Some(0)) => {
                options.columns.column(&report.name).kind = Some(ColumnKind::Number);
                empty = true;
            }
            _ => {
                let message = "the column held numbers or dates in training, and holds text here";
                return Err(Problem::Invalid(message.into()).at(Place::Column(report.name.clone())));
            }
        }
    }
    if empty {
        found = read(&options)?;
    }
    let Nodes { ids, matrix, rows, .. } = found;
    ids.index().map_err(|Duplicate { first, second }| {
        let place = Place::Row(rows.row(second));
        Problem::DuplicateNode { id: ids.name(first), first_row: rows.row(first) }.at(place)
    })?;
    let nodes = ids.len();
    let features = in_order_of(like.feature_names(), &matrix, &|node| rows.row(node), nodes)?;
    let mut numbers: BTreeMap<u32, NumberColumn> = like
        .numbers()
        .iter()
        .map(|number| (number.column, NumberColumn { map: None, ..number.clone() }))
        .collect();
    // Columns far from zero lie in the matrix less an origin of their own.
    for number in matrix.numbers.iter().filter(|number| number.origin.is_some()) {
        let name = &matrix.names[number.column as usize];
        if let Some(at) = like.feature_names().iter().position(|known| known == name) {
            let known = numbers.entry(at as u32).or_insert_with(|| NumberColumn::new(at));
            known.origin = number.origin;
        }
    }
    let dataset = Dataset::new(DatasetParts {
        name: crate::read::name_of(table),
        graph: Graph::from_rows(room::filled(0u64, nodes + 1)?, Vec::<u32>::new())?,
        features,
        labels: room::filled(UNLABELLED, nodes)?.into(),
        class_names: like.class_names().to_vec(),
        feature_names: like.feature_names().to_vec(),
        numbers: numbers.into_values().collect(),
        undeclared: vec![],
        split: None,
        node_ids: ids.into_ids(),
    })?;
    dataset.prepared_as(like.numbers())
}

/// A category that was not known cannot be added to a list any more.
fn in_words(error: Error) -> Error {
    let Problem::UnlistedCategory(value) = error.problem() else { return error };
    let message = format!(
        "the category {value:?} was not known in training; an empty cell stands for none of those that were"
    );
    match error.place().cloned() {
        Some(place) => Problem::Invalid(message).at(place),
        None => Problem::Invalid(message).into(),
    }
}

/// The columns of a table, by the names of the features that they became.
struct Known<'a> {
    numbers: Vec<&'a str>,
    categories: Vec<(&'a str, Vec<String>)>,
    /// Texts, with the number of columns their words were hashed to.
    texts: Vec<(&'a str, usize)>,
}

impl<'a> Known<'a> {
    fn of(like: &'a Dataset) -> Result<Known<'a>> {
        let names = like.feature_names();
        if names.is_empty() {
            let message =
                "the features that were trained on have no names: columns cannot be matched with them";
            return Err(Problem::Invalid(message.into()).into());
        }
        let mut known = Known { numbers: vec![], categories: vec![], texts: vec![] };
        for (at, name) in names.iter().enumerate() {
            let number = || like.numbers().iter().any(|number| number.column as usize == at);
            let text = name.rsplit_once('#').and_then(|(column, group)| Some((column, group.parse().ok()?)));
            let next_group = |column: &str, group: usize| match known.texts.last() {
                Some((last, width)) if *last == column => group == *width,
                _ => group == 0,
            };
            match (name.split_once('='), text) {
                _ if at > 0 && indicates(name, &names[at - 1]) => {}
                _ if number() => known.numbers.push(name),
                (Some((column, value)), _) => match known.categories.last_mut() {
                    Some((last, values)) if *last == column => values.push(value.into()),
                    _ => known.categories.push((column, vec![value.into()])),
                },
                (_, Some((column, group))) if next_group(column, group) => match known.texts.last_mut() {
                    Some((last, width)) if *last == column => *width += 1,
                    _ => known.texts.push((column, 1)),
                },
                _ => known.numbers.push(name),
            }
        }
        Ok(known)
    }

    fn choices(&self) -> ColumnChoices {
        let mut choices = ColumnChoices::default();
        // Whether numbers are dates is told by their looks.
        choices.keep.extend(self.numbers.iter().map(ToString::to_string));
        for (column, values) in &self.categories {
            let kind = Some(ColumnKind::Category);
            let choice = ColumnChoice { kind, categories: Some(values.clone()), ..ColumnChoice::default() };
            *choices.column(column) = choice;
        }
        for (column, width) in &self.texts {
            let kind = Some(ColumnKind::Text);
            *choices.column(column) = ColumnChoice { kind, width: Some(*width), ..ColumnChoice::default() };
        }
        choices.keep.extend(choices.columns.keys().cloned());
        choices
    }
}

/// Whether a feature says that the one before it is missing.
fn indicates(name: &str, before: &str) -> bool {
    name.strip_prefix(before) == Some(" missing")
}

/// The features of a table in the order of those that are known. `row` is where a node stands in its file.
fn in_order_of(
    known: &[String],
    matrix: &Matrix,
    row: &dyn Fn(usize) -> u64,
    nodes: usize,
) -> Result<Features> {
    let place: HashMap<&str, u32> = known.iter().map(String::as_str).zip(0..).collect();
    let places: Vec<Option<u32>> =
        matrix.names.iter().map(|name| place.get(name.as_str()).copied()).collect();
    let (mut offsets, mut indices, mut values) = (room::with_room(nodes + 1)?, vec![], vec![]);
    offsets.push(0u64);
    for node in 0..nodes {
        for (column, value) in matrix.features.row(node).filter(|&(_, value)| value != 0.0) {
            let Some(place) = places[column] else {
                // Only what says that values are missing can be new.
                let message = "the value is missing, as none was in training".to_string();
                let column = matrix.names[column.saturating_sub(1)].clone();
                return Err(Problem::Invalid(message).at(Place::Cell { row: row(node), column }));
            };
            room::push(&mut indices, place)?;
            room::push(&mut values, value)?;
        }
        offsets.push(indices.len() as u64);
    }
    Ok(Features::sparse(nodes, known.len(), offsets, indices, Some(values.into()))?.compact(nodes))
}
