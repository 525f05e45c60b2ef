//! Tables: a table of nodes and a table of edges, as CSV or Parquet.
//!
//! The node table has a column `id`, a column `label` (empty where the label is not known), where people have one a
//! column `split` (`train`, `val`, `test` or `none`), and features: numbers stay numbers (with an indicator beside them
//! where some are missing), truth values become 0 and 1, dates become days, and every value of a text column becomes a
//! one-hot feature `column=value` (an empty cell sets none of them). The edge table has the columns `source` and
//! `target` (or `src` and `dst`, or `from` and `to`) and perhaps weights; its other columns are not read.
//! [`LoadOptions`] gives columns other names. A table `target` is one of nodes as well, perhaps beside a list of their
//! features. Ids are integers or text. A table may also be a folder of Parquet files, as Spark writes them: its rows
//! are those of all of them, by name.
//!
//! Errors name rows as a text editor counts them, the header being row 1; rows of a Parquet file, which has no
//! header row, count from 1.
#![cfg_attr(not(feature = "parquet"), allow(dead_code, reason = "only Parquet files need it"))]

use std::io::Read;
use std::path::{Path, PathBuf};

use super::columns::ColumnReport;
use super::encoding::{Encoding, decoded};
use super::{Described, LoadOptions};
use crate::file::{self, Unpacked};
use crate::{
    Dataset, DatasetParts, EdgeWeights, Error, Graph, InFile, InferredSchema, Place, Problem, Result,
};

mod category;
mod cell;
mod choose;
mod csv;
mod date;
mod edges;
mod feature;
mod folder;
mod formatted_number;
mod guess;
mod index;
mod label;
mod matrix;
mod new_nodes;
mod nodes;
mod numbers;
#[cfg(feature = "parquet")]
mod pages;
#[cfg_attr(not(feature = "parquet"), path = "no_parquet.rs")]
mod parquet;
mod sparse;
mod unique;

pub use self::cell::Cell;
pub(super) use self::edges::{ENDS, WEIGHTS};
pub(super) use self::folder::is_table_folder;
pub(crate) use self::folder::tables_called;
use self::folder::{Tables, parquet_parts};
use self::guess::Pair;
use self::index::{Duplicate, NodeIndex};
pub(crate) use self::label::{LabelColumn, Labels, reads_as_another, reads_as_no_label};
use self::matrix::Matrix;
pub use self::new_nodes::{Column, LaterOptions, LaterRows, LaterTable, Reject, Schema, read_new_nodes};
pub(super) use self::nodes::{ID_NAMES, LABEL_NAMES};
use self::nodes::{Nodes, check_roles};
pub use self::sparse::read_listed;

/// Reads a folder that holds `nodes.*` and `edges.*`.
///
/// ```
/// use progap_formats::read::{LoadOptions, table};
///
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("nodes.csv"), "id,label,age\nann,x,30\nbob,y,40\n")?;
/// std::fs::write(folder.path().join("edges.csv"), "source,target\nann,bob\n")?;
/// let dataset = table::read_folder(folder.path(), &LoadOptions::default())?;
/// assert_eq!((dataset.nodes(), dataset.classes(), dataset.graph().edges()), (2, 2, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_folder(folder: &Path, options: &LoadOptions) -> Result<Dataset> {
    Ok(describe_folder(folder, options)?.dataset)
}

/// As [`read_folder`], with what became of each column.
pub(super) fn describe_folder(folder: &Path, options: &LoadOptions) -> Result<Described> {
    let Tables { nodes, edges, features } = Tables::of(folder)?;
    let Described { dataset, columns } = describe_tables(&nodes, &edges, features.as_deref(), options)?;
    Ok(Described { dataset: dataset.named(super::name_of(folder)), columns })
}

/// A table of nodes and a table of edges, with what became of each column.
pub(super) fn describe_pair(nodes: &Path, edges: &Path, options: &LoadOptions) -> Result<Described> {
    describe_tables(nodes, edges, None, options)
}

fn describe_tables(
    nodes: &Path,
    edges: &Path,
    features: Option<&Path>,
    options: &LoadOptions,
) -> Result<Described> {
    let node_source = TableInput::at(nodes)?;
    let edge_source = TableInput::at(edges)?;
    let (of_nodes, of_edges) = ((Some(nodes), &node_source), (Some(edges), &edge_source));
    let pair = Pair { nodes: of_nodes, edges: of_edges, options, of_edges: options };
    pair.check_columns()?;
    let mut table = node_source.read_nodes(options).in_file(nodes)?;
    if let Some(features) = features {
        table = table.with_features(features, options).map_err(|e| e.in_file(nodes))?;
    }
    assemble(table, |index, nodes| edge_source.read_edges(options, index, nodes).in_file(edges))
        .map_err(|e| pair.with_matching_column(e).in_file(nodes))
        .map(|Described { dataset, columns }| Described {
            dataset: dataset.named(super::name_of(nodes)),
            columns,
        })
}

/// Reads a table of edges between nodes of these ids, which stand for the nodes of the graph in their order.
///
/// ```
/// use progap_formats::read::{LoadOptions, table};
///
/// let folder = tempfile::tempdir()?;
/// let edges = folder.path().join("edges.csv");
/// std::fs::write(&edges, "source,target\nann,cat\ncat,bob\n")?;
/// let graph = table::read_edges_among(&edges, ["ann", "bob", "cat"], &LoadOptions::default())?;
/// assert_eq!((graph.edges(), graph.in_neighbours(2)), (2, &[0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A table that cannot be read, or that names another node; ids that two nodes have.
pub fn read_edges_among<S: AsRef<str>>(
    edges: &Path,
    ids: impl IntoIterator<Item = S>,
    options: &LoadOptions,
) -> Result<Graph> {
    let read = || -> Result<Graph> {
        let mut column = index::IdColumn::new();
        ids.into_iter().try_for_each(|id| column.push(Cell::Untyped(id.as_ref())))?;
        let index = column.index().map_err(|Duplicate { first, second }| {
            Problem::Invalid(format!("nodes {first} and {second} have the id {:?}", column.name(first)))
        })?;
        Ok(TableInput::at(edges)?.read_edges(options, &index, column.len())?.0)
    };
    read().in_file(edges)
}

/// Whether a table is one of edges, by the names of its columns: it has ends of known names, or two columns.
pub(super) fn is_edges(path: &Path, options: &LoadOptions) -> bool {
    let names = TableInput::at(path).and_then(|input| input.names(Some(options), options));
    names.is_ok_and(|names| edges::ends(&names, options).is_ok() && check_roles(names, options).is_err())
}

/// The number of columns of a table.
pub(super) fn columns(path: &Path, options: &LoadOptions) -> Result<usize> {
    Ok(TableInput::at(path)?.names(None, options).in_file(path)?.len())
}

/// Reads tables that lie in memory; the format of each is told by a file name, such as `nodes.csv.gz`.
pub fn read_bytes(nodes: (&str, &[u8]), edges: (&str, &[u8]), options: &LoadOptions) -> Result<Dataset> {
    let source = |(name, bytes)| {
        Format::of(Path::new(name)).map(|format| TableInput { origin: Origin::Bytes(bytes), format })
    };
    let node_source = source(nodes)?;
    let edge_source = source(edges)?;
    let table = node_source.read_nodes(options).in_file(Path::new(nodes.0))?;
    assemble(table, |index, count| edge_source.read_edges(options, index, count).in_file(Path::new(edges.0)))
        .map_err(|e| e.in_file(Path::new(nodes.0)))
        .map(|described| described.dataset)
}

/// A table in memory, as text.
pub(super) fn text<'a>(names: &[&str], rows: impl Iterator<Item = Vec<&'a str>>) -> Result<Vec<u8>> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let failed = |e: ::csv::Error| std::io::Error::other(e.to_string());
    writer.write_record(names).map_err(failed)?;
    for row in rows {
        writer.write_record(row).map_err(failed)?;
    }
    writer.into_inner().map_err(|e| std::io::Error::other(e.to_string()).into())
}

/// Reads tables that a program holds, each as CSV. There is no file to look into: errors name the table, the node and
/// the column.
pub fn read_frames(nodes: &[u8], edges: &[u8], options: &LoadOptions) -> Result<Dataset> {
    let in_nodes = |error: Error| {
        let error = match (error.problem(), error.place()) {
            (Problem::DuplicateNode { id, first_row }, Some(place)) => {
                let message = format!("it has the id {id:?} of node {}", first_row.saturating_sub(2));
                Problem::Invalid(message).at(place.clone())
            }
            _ => error,
        };
        error.map_place(|place| of_node(place, nodes, options)).in_file(Path::new("table of nodes"))
    };
    let in_edges = |error: Error| error.map_place(of_edge).in_file(Path::new("table of edges"));
    let table = in_memory(nodes).read_nodes(options).map_err(in_nodes)?;
    let edges = in_memory(edges);
    assemble(table, |index, count| edges.read_edges(options, index, count).map_err(in_edges))
        .map_err(in_nodes)
        .map(|described| described.dataset)
}

/// A table of CSV in memory.
fn in_memory(bytes: &[u8]) -> TableInput<'_> {
    let format = Format::Text { separator: b',', packing: Packing::None };
    TableInput { origin: Origin::Bytes(bytes), format }
}

/// The node that a place in a table of nodes is about.
fn of_node(place: Place, nodes: &[u8], options: &LoadOptions) -> Place {
    match place {
        Place::Cell { row, column } => Place::Value { node: id_of(nodes, row, options), column },
        Place::Row(row) => Place::Node(row.saturating_sub(2)),
        other => other,
    }
}

/// The edge that a place in a table of edges is about.
fn of_edge(place: Place) -> Place {
    match place {
        Place::Cell { row, column } => Place::Element { key: column, index: row.saturating_sub(2) },
        Place::Row(row) => Place::Node(row.saturating_sub(2)),
        other => other,
    }
}

/// Reads tables that were made of another format: places are nodes, by their ids, and columns, as there are no rows to
/// look up.
pub(super) fn describe_text(nodes: &[u8], edges: &[u8], options: &LoadOptions) -> Result<Described> {
    let (node_source, edge_source) = (in_memory(nodes), in_memory(edges));
    // The columns have the names that we gave them.
    let weights =
        options.weights.as_ref().map(|weights| EdgeWeights::new("weight", weights.bound())).transpose()?;
    let of_edges = LoadOptions { weights, header: Some(true), ..LoadOptions::default() };
    // The text is ours, whatever that of the file was.
    let options = &LoadOptions { encoding: None, ..options.clone() };
    Pair { nodes: (None, &node_source), edges: (None, &edge_source), options, of_edges: &of_edges }
        .check_columns()?;
    let table =
        node_source.read_nodes(options).map_err(|e| e.map_place(|place| of_node(place, nodes, options)))?;
    assemble(table, |index, count| edge_source.read_edges(&of_edges, index, count))
        .map_err(|e| e.map_place(of_edge))
}

/// The id in a row of a table in memory, or the number of the node.
fn id_of(nodes: &[u8], row: u64, options: &LoadOptions) -> String {
    let mut reader = ::csv::Reader::from_reader(nodes);
    let named = |header: &str| header == options.id_column.as_deref().unwrap_or("id");
    let column = reader.headers().ok().and_then(|names| names.iter().position(named));
    let position = row.saturating_sub(2) as usize;
    let record = reader.records().nth(position).and_then(std::result::Result::ok);
    let id = column.and_then(|column| record.as_ref()?.get(column).map(str::to_string));
    id.unwrap_or_else(|| position.to_string())
}

/// Whether a panic on this thread is about a damaged Parquet file and will become an error, so that a program's
/// panic hook has nothing to say about it.
pub fn catches_panics() -> bool {
    parquet::is_guarded()
}

fn assemble(
    table: Nodes,
    read_edges: impl FnOnce(&NodeIndex, usize) -> Result<(Graph, Option<ColumnReport>)>,
) -> Result<Described> {
    let Nodes { ids, labels, class_names, split, matrix, rows, mut columns } = table;
    let Matrix { features, names: feature_names, numbers } = matrix;
    let index = ids.index().map_err(|Duplicate { first, second }| {
        let place = Place::Row(rows.row(second));
        Problem::DuplicateNode { id: ids.name(first), first_row: rows.row(first) }.at(place)
    })?;
    let undeclared = columns
        .iter()
        .filter_map(|column| Some(InferredSchema { column: column.name.clone(), what: column.read_off? }));
    let undeclared = undeclared.collect();
    let (graph, weights) = read_edges(&index, ids.len())?;
    columns.extend(weights);
    drop(index);
    let dataset = Dataset::new(DatasetParts {
        name: String::new(),
        graph,
        features,
        labels: labels.into(),
        class_names,
        feature_names,
        numbers,
        undeclared,
        relation: None,
        split,
        node_ids: ids.into_ids(),
    })?;
    Ok(Described { dataset, columns })
}

/// The endings of tables, with what they mean.
const ENDINGS: [(&str, Format); 7] = [
    (".csv", Format::Text { separator: b',', packing: Packing::None }),
    (".csv.gz", Format::Text { separator: b',', packing: Packing::Gzip }),
    (".csv.zst", Format::Text { separator: b',', packing: Packing::Zstd }),
    (".tsv", Format::Text { separator: b'\t', packing: Packing::None }),
    (".tsv.gz", Format::Text { separator: b'\t', packing: Packing::Gzip }),
    (".tsv.zst", Format::Text { separator: b'\t', packing: Packing::Zstd }),
    (".parquet", Format::Parquet),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Text { separator: u8, packing: Packing },
    Parquet,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Packing {
    None,
    Gzip,
    Zstd,
}

/// Whether a file is called as a table is.
pub(crate) fn is_table(path: &Path) -> bool {
    Format::of(path).is_ok()
}

impl Format {
    fn of(path: &Path) -> Result<Format> {
        let name = path.to_string_lossy().to_ascii_lowercase();
        let known = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        known.map(|(_, format)| *format).ok_or_else(|| {
            let endings = ENDINGS.map(|(ending, _)| ending).join(", ");
            Problem::NotRecognised(format!("a table ends in one of {endings}")).in_file(path)
        })
    }
}

/// A table that can be read, more than once.
struct TableInput<'a> {
    origin: Origin<'a>,
    format: Format,
}

enum Origin<'a> {
    File(&'a Path),
    /// Parquet files that are one table.
    Parts(Vec<PathBuf>),
    Bytes(&'a [u8]),
}

impl<'a> TableInput<'a> {
    fn at(path: &'a Path) -> Result<TableInput<'a>> {
        Ok(match path.is_dir() {
            true => TableInput { origin: Origin::Parts(parquet_parts(path)?), format: Format::Parquet },
            false => TableInput { origin: Origin::File(path), format: Format::of(path)? },
        })
    }

    /// The names of the columns; with `edges`, those of a table of edges.
    fn names(&self, edges: Option<&LoadOptions>, options: &LoadOptions) -> Result<Vec<String>> {
        match self.format {
            Format::Text { separator, .. } => csv::names(self.open(options.encoding)?, separator, edges),
            Format::Parquet => parquet::names(&self.origin),
        }
    }

    fn read_nodes(&self, options: &LoadOptions) -> Result<Nodes> {
        match self.format {
            Format::Text { separator, .. } => {
                csv::read_nodes(&|| self.open(options.encoding), separator, options)
            }
            Format::Parquet => parquet::read_nodes(&self.origin, options),
        }
    }

    fn read_new_nodes<'k>(
        &self,
        encoding: Option<Encoding>,
        begin: &dyn Fn(Vec<String>, bool) -> Result<new_nodes::Sheet<'k>>,
    ) -> Result<new_nodes::Sheet<'k>> {
        match self.format {
            Format::Text { separator, .. } => csv::read_new_nodes(self.open(encoding)?, separator, begin),
            Format::Parquet => parquet::read_new_nodes(&self.origin, begin),
        }
    }

    fn read_edges(
        &self,
        options: &LoadOptions,
        index: &NodeIndex,
        nodes: usize,
    ) -> Result<(Graph, Option<ColumnReport>)> {
        match self.format {
            Format::Text { separator, .. } => {
                csv::read_edges(self.open(options.encoding)?, separator, options, index, nodes)
            }
            Format::Parquet => parquet::read_edges(&self.origin, options, index, nodes),
        }
    }

    /// The bytes of a text table, unpacked, as UTF-8.
    fn open(&self, encoding: Option<Encoding>) -> Result<Box<dyn Read + '_>> {
        let bytes: Box<dyn Read + '_> = match &self.origin {
            Origin::File(path) => Box::new(file::open(path)?),
            Origin::Bytes(bytes) => Box::new(*bytes),
            Origin::Parts(_) => {
                return Err(Problem::Unsupported("tables of text are one file".into()).into());
            }
        };
        let unpacked: Box<dyn Read + '_> = match self.format {
            Format::Text { packing: Packing::Gzip, .. } => {
                Box::new(Unpacked::by(bytes, |packed| Ok(flate2::bufread::MultiGzDecoder::new(packed)))?)
            }
            Format::Text { packing: Packing::Zstd, .. } => {
                Box::new(Unpacked::by(bytes, |packed| {
                    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?;
                    // The limit of the command line tool by default: a forged window asks for no more.
                    decoder.window_log_max(27)?;
                    Ok(decoder)
                })?)
            }
            _ => bytes,
        };
        decoded(unpacked, encoding)
    }
}

/// An error that names a cell.
fn in_cell(problem: Problem, row: u64, column: &str) -> Error {
    problem.at(Place::Cell { row, column: column.to_string() })
}
