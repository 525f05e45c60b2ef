//! Tables: `nodes.*` and `edges.*` in a folder, as [`crate::read::table`] reads them.
//!
//! The node table has the columns `id`, `label` (the name of the class), `split` where the data set has one, and a
//! column of numbers for each feature under its name, or `f0`, `f1` and so on where features have none. Nodes without a
//! label have an empty one. What a table cannot say is an error: names that are empty, that stand twice, or that stand
//! for a missing label. Classes without any node do not come back, and classes come back in sorted order.

use std::collections::HashSet;
use std::path::Path;

use crate::read::table::{reads_as_another, reads_as_no_label};
use crate::{AtomicFolder, Dataset, InFile, NodeIds, Place, Problem, Result};

mod csv;
#[cfg_attr(not(feature = "parquet"), path = "no_parquet.rs")]
mod parquet;

/// How tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TableFormat {
    /// Comma-separated text.
    Csv,
    /// Comma-separated text, packed with gzip.
    CsvGz,
    /// Comma-separated text, packed with Zstandard.
    CsvZst,
    /// Apache Parquet.
    Parquet,
}

impl TableFormat {
    /// All formats.
    pub const ALL: [TableFormat; 4] =
        [TableFormat::Csv, TableFormat::CsvGz, TableFormat::CsvZst, TableFormat::Parquet];

    /// The ending of files of this format, without the first dot.
    pub fn ending(self) -> &'static str {
        match self {
            TableFormat::Csv => "csv",
            TableFormat::CsvGz => "csv.gz",
            TableFormat::CsvZst => "csv.zst",
            TableFormat::Parquet => "parquet",
        }
    }
}

/// The values of a column that belongs to no data set.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnValues {
    /// Texts.
    Text(Vec<String>),
    /// Numbers.
    Numbers(Vec<f32>),
}

/// Writes columns of equal length, such as predictions, as a Parquet file, whole or not at all.
pub fn write_columns(columns: &[(String, ColumnValues)], path: &Path) -> Result<()> {
    let length = |values: &ColumnValues| match values {
        ColumnValues::Text(texts) => texts.len(),
        ColumnValues::Numbers(numbers) => numbers.len(),
    };
    let rows = columns.first().map_or(0, |(_, values)| length(values));
    if let Some((name, values)) = columns.iter().find(|(_, values)| length(values) != rows) {
        let (found, expected) = (length(values) as u64, rows as u64);
        return Err(Problem::Length { what: format!("column {name:?}"), found, expected }.in_file(path));
    }
    parquet::write_columns(columns, path).in_file(path)
}

/// Writes the tables of a data set into a folder, which is there whole or not at all.
///
/// Into a folder that is there the two tables are moved when both are complete. Tables of another format in the same
/// folder would make it ambiguous and are an error.
///
/// ```
/// use progap_formats::read::{LoadOptions, table};
/// use progap_formats::write::table::{TableFormat, write_folder};
///
/// let folder = tempfile::tempdir()?;
/// let nodes = ("nodes.csv", "id,label\n7,x\n8,y\n".as_bytes());
/// let edges = ("edges.csv", "from,to\n7,8\n".as_bytes());
/// let dataset = table::read_bytes(nodes, edges, &LoadOptions::default())?;
/// write_folder(&dataset, folder.path(), TableFormat::Parquet)?;
/// let again = table::read_folder(folder.path(), &LoadOptions::default())?;
/// assert_eq!(again.graph(), dataset.graph());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_folder(dataset: &Dataset, folder: &Path, format: TableFormat) -> Result<()> {
    let dataset = &*dataset.without_origins()?;
    let names = column_names(dataset)?;
    check_ids(dataset)?;
    let [nodes, edges] = ["nodes", "edges"].map(|stem| format!("{stem}.{}", format.ending()));
    for (stem, ours) in [("nodes", &nodes), ("edges", &edges)] {
        if !folder.exists() {
            break;
        }
        let (others, ours) = (crate::read::table::tables_called(folder, stem)?, folder.join(ours));
        if let Some(other) = others.iter().find(|other| **other != ours) {
            let message = format!("beside it, {} would make the folder ambiguous", ours.display());
            return Err(Problem::Invalid(message).in_file(other));
        }
    }
    let staged = AtomicFolder::create(folder)?;
    let place = |name: &str| staged.path().join(name);
    match format {
        TableFormat::Parquet => {
            parquet::write_nodes(dataset, &names, &place(&nodes))
                .map_err(|e| e.moved(&folder.join(&nodes)))?;
            parquet::write_edges(dataset, &place(&edges)).map_err(|e| e.moved(&folder.join(&edges)))?;
        }
        _ => {
            csv::write_nodes(dataset, &names, &place(&nodes), format)
                .map_err(|e| e.moved(&folder.join(&nodes)))?;
            csv::write_edges(dataset, &place(&edges), format).map_err(|e| e.moved(&folder.join(&edges)))?;
        }
    }
    // A folder without a table of nodes is no data set: new edges never lie beside older nodes.
    staged.commit_into(Some(&nodes))
}

/// The names of the columns of the node table, or what keeps them from being read back.
fn column_names(dataset: &Dataset) -> Result<Vec<String>> {
    let mut names = vec!["id".to_string(), "label".to_string()];
    names.extend(dataset.split().map(|_| "split".to_string()));
    if dataset.feature_names().is_empty() {
        names.extend((0..dataset.features().columns()).map(|at| format!("f{at}")));
    } else {
        names.extend(dataset.feature_names().iter().cloned());
    }
    check_distinct("column", &names)?;
    // Without a split, a feature of this name (in any case) would be taken for one.
    let taken = ["id", "label", "split"];
    let reserved = if dataset.split().is_some() { 3 } else { 2 };
    let features = &names[reserved..];
    if let Some(name) = features.iter().find(|name| taken.iter().any(|t| name.eq_ignore_ascii_case(t))) {
        let message = format!("a feature is called {name:?}, a name that node tables use themselves");
        return Err(Problem::Invalid(message).into());
    }
    check_distinct("class", dataset.class_names())?;
    if let Some(name) =
        dataset.class_names().iter().find(|name| reads_as_no_label(name, dataset.class_names()))
    {
        let message = format!("a class is called {name:?}, which tables take for a label that is not known");
        return Err(Problem::Invalid(message).into());
    }
    let other = |name: &String| Some((name.clone(), reads_as_another(name, dataset.class_names())?));
    if let Some((name, other)) = dataset.class_names().iter().find_map(other) {
        let message = format!("a class is called {name:?}, which tables take for {other:?}");
        return Err(Problem::Invalid(message).into());
    }
    Ok(names)
}

fn check_distinct(what: &str, names: &[String]) -> Result<()> {
    let mut seen = HashSet::with_capacity(names.len());
    for name in names {
        if name.is_empty() {
            return Err(
                Problem::Invalid(format!("a {what} has an empty name, which tables cannot say")).into()
            );
        }
        if !seen.insert(name.as_str()) {
            return Err(Problem::Invalid(format!("two {what} names are {name:?}")).into());
        }
    }
    Ok(())
}

/// Whether each id is there and unlike all others.
fn check_ids(dataset: &Dataset) -> Result<()> {
    let problem = match dataset.node_ids() {
        NodeIds::Position => None,
        NodeIds::Integers(ids) => {
            let mut seen = HashSet::with_capacity(ids.len());
            ids.iter().position(|id| !seen.insert(id)).map(|node| (node, "its id stands twice"))
        }
        NodeIds::Text { bytes, offsets } => {
            let mut seen = HashSet::with_capacity(dataset.nodes());
            let mut ids = offsets.windows(2).map(|w| &bytes[w[0] as usize..w[1] as usize]);
            let bad = ids.position(|id| id.is_empty() || !seen.insert(id));
            bad.map(|node| (node, "its id is empty or stands twice"))
        }
    };
    match problem {
        None => Ok(()),
        Some((node, message)) => Err(Problem::Invalid(message.into()).at(Place::Node(node as u64))),
    }
}
