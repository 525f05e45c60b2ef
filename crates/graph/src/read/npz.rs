//! `.npz` archives of NumPy arrays, and adjacency matrices as `scipy.sparse.save_npz` writes them.
//!
//! A data set is one archive with these arrays:
//!
//! | array | meaning |
//! |---|---|
//! | `y` | the label of each node: whole numbers from 0 |
//! | `x` | features, one row per node; or as sparse rows `x_indptr`, `x_indices`, `x_shape` and `x_data` (all 1 where absent) |
//! | `edge_index` | 2 x E: sources in row 0, targets in row 1; or as sparse rows `adj_indptr`, `adj_indices` (row = source, column = target) and perhaps `adj_data` (0 = no edge), `adj_shape` |
//! | `train_mask`, `val_mask`, `test_mask` | a split; optional |
//! | `class_names`, `feature_names`, `node_ids` | names; optional |
//! | `undirected` | a claim that every edge has its edge back, which is checked; optional |
//!
//! The plain layout of `scipy.sparse.save_npz` holds an adjacency matrix alone: put it as `adj.npz` (or
//! `adjacency.npz`) into a folder with a second `.npz` that holds the arrays about nodes, and load the folder.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use super::labels::{Classes, classes_that_occur, classes_with_names};
use super::npy::{Checked, Kind, Npy};
use crate::error::InFile;
use crate::graph::{GraphBuilder, check_offsets};
use crate::{Dataset, DatasetParts, Error, Features, Graph, NodeIds, Place, Problem, Result, Split, room};

/// Reads a data set from an `.npz` file, or from a folder with an adjacency matrix and a file about its nodes.
pub fn read(path: &Path) -> Result<Dataset> {
    let dataset = if path.is_dir() {
        let pair = find_pair(path)?.ok_or_else(|| {
            Problem::NotRecognised("a folder without adj.npz and one other .npz".into()).in_file(path)
        })?;
        let graph = read_adjacency(&pair.adjacency)?;
        read_nodes(&mut Archive::new(open(&pair.nodes)?).in_file(&pair.nodes)?, Some(graph))
            .in_file(&pair.nodes)?
    } else {
        read_from(open(path)?).in_file(path)?
    };
    Ok(dataset.named(super::name_of(path)))
}

/// Reads a data set from the bytes of an `.npz` archive.
pub fn read_from(reader: impl Read + Seek) -> Result<Dataset> {
    read_nodes(&mut Archive::new(reader)?, None)
}

/// Reads a graph from an adjacency matrix in the layout of `scipy.sparse.save_npz` (csr, csc or coo).
///
/// A stored entry in row `i` and column `j` is an edge from `i` to `j`, unless it equals 0; entries are a
/// pattern, not weights.
pub fn read_adjacency(path: &Path) -> Result<Graph> {
    read_adjacency_from(open(path)?).in_file(path)
}

/// [`read_adjacency`] from the bytes of the archive.
pub fn read_adjacency_from(reader: impl Read + Seek) -> Result<Graph> {
    scipy_adjacency(&mut Archive::new(reader)?)
}

/// A folder's adjacency matrix and the file about its nodes.
#[derive(Debug, PartialEq)]
pub(super) struct Pair {
    adjacency: PathBuf,
    nodes: PathBuf,
}

/// The pair in a folder that has an adjacency matrix by its name and just one other `.npz`.
pub(super) fn find_pair(folder: &Path) -> Result<Option<Pair>> {
    let mut others = Vec::new();
    let mut adjacency = None;
    for entry in std::fs::read_dir(folder).in_file(folder)? {
        let path = entry.in_file(folder)?.path();
        match path.file_name().and_then(|name| name.to_str()) {
            Some("adj.npz" | "adjacency.npz") if adjacency.is_none() => adjacency = Some(path),
            Some(name) if name.ends_with(".npz") => others.push(path),
            _ => {}
        }
    }
    Ok(match (adjacency, others.pop()) {
        (Some(adjacency), Some(nodes)) if others.is_empty() => Some(Pair { adjacency, nodes }),
        _ => None,
    })
}

pub(super) fn open(path: &Path) -> Result<BufReader<File>> {
    Ok(BufReader::with_capacity(1 << 18, File::open(path).in_file(path)?))
}

/// A zip archive of arrays.
pub(super) struct Archive<R> {
    zip: ZipArchive<R>,
    bytes: u64,
}

impl<R: Read + Seek> Archive<R> {
    pub(super) fn new(mut reader: R) -> Result<Self> {
        let bytes = reader.seek(SeekFrom::End(0))?;
        reader.rewind()?;
        let mut start = Vec::new();
        reader.by_ref().take(6).read_to_end(&mut start)?;
        reader.rewind()?;
        if bytes == 0 {
            return Err(Problem::Truncated("it is empty".into()).into());
        }
        if start == b"\x93NUMPY" {
            let message = "this is a single array (.npy), not an archive of arrays (.npz)".into();
            return Err(Problem::Unsupported(message).into());
        }
        if !start.starts_with(b"PK") {
            return Err(Problem::Corrupt("it is not a zip archive, as every .npz is".into()).into());
        }
        let zip = ZipArchive::new(reader).map_err(|e| match e {
            ZipError::InvalidArchive(message) => {
                Problem::Truncated(format!("no usable list of contents at its end ({message})")).into()
            }
            other => zip_error(other),
        })?;
        Ok(Archive { zip, bytes })
    }

    /// The names of the arrays, in the archive's order.
    pub(super) fn keys(&self) -> Vec<String> {
        let names = self.zip.file_names().filter_map(|name| name.ok());
        names.map(|name| name.strip_suffix(".npy").unwrap_or(&name).to_string()).collect()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.member(key).is_some()
    }

    fn member(&self, key: &str) -> Option<usize> {
        self.zip.index_for_name(&format!("{key}.npy")).or_else(|| self.zip.index_for_name(key))
    }

    /// The array of that name, if there is one.
    pub(super) fn get(&mut self, key: &str) -> Result<Option<Npy<ZipFile<'_, R>>>> {
        let Some(index) = self.member(key) else { return Ok(None) };
        let member = self.zip.by_index(index).map_err(|e| zip_error(e).at(Place::Key(key.into())))?;
        // Numbers rarely shrink to less than an eighth; lists grow by themselves where they do.
        let justified = member.size().min(member.compressed_size().min(self.bytes).saturating_mul(8));
        Npy::open(key, member, justified).map(Some)
    }

    /// The array of that name; what it holds is named in the error if there is none.
    pub(super) fn require(&mut self, key: &str, what: &str) -> Result<Npy<ZipFile<'_, R>>> {
        // Made first, as an array that is found borrows the archive.
        let missing = self.missing(&format!("array {key:?} ({what})"));
        self.get(key)?.ok_or(missing)
    }

    pub(super) fn missing(&self, what: &str) -> Error {
        const SHOWN: usize = 20;
        let keys = self.keys();
        let more = if keys.len() > SHOWN { ", ..." } else { "" };
        let shown = keys.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        let found = if keys.is_empty() { "no arrays at all".into() } else { format!("{shown}{more}") };
        Problem::Missing { what: what.into(), found }.into()
    }

    fn texts(&mut self, key: &str, what: &str, expected: Option<u64>) -> Result<Option<Vec<String>>> {
        self.get(key)?.map(|array| array.vector(what, expected)?.texts()).transpose()
    }

    fn is_scipy(&self) -> bool {
        self.has("format") && self.has("shape")
    }
}

fn zip_error(e: ZipError) -> Error {
    match e {
        ZipError::Io(e) => e.into(),
        ZipError::UnsupportedArchive(_) | ZipError::CompressionMethodNotSupported(_) => {
            Problem::Unsupported(format!("the archive uses something that is not read: {e}")).into()
        }
        other => Problem::Corrupt(other.to_string()).into(),
    }
}

/// A data set from an archive whose edges are its own, or come from another file.
fn read_nodes<R: Read + Seek>(archive: &mut Archive<R>, graph: Option<Graph>) -> Result<Dataset> {
    if !archive.has("y") && archive.is_scipy() {
        return Err(archive.missing(
            "array \"y\" of labels: this is a lone adjacency matrix as scipy's save_npz writes it; put it as \
             adj.npz into a folder with a second .npz that holds y and x, and load the folder",
        ));
    }
    let numbers = read_labels(archive.require("y", "the label of each node")?)?;
    let nodes = numbers.len() as u64;
    if nodes == 0 {
        return Err(Problem::Empty("nodes").at(Place::Key("y".into())));
    }
    let place = |index| Place::Element { key: "y".into(), index };
    let Classes { labels, names } = match archive.texts("class_names", "list of class names", None)? {
        Some(names) => classes_with_names(&numbers, names, place)?,
        None => classes_that_occur(&numbers, place)?,
    };
    drop(numbers);
    let graph = match graph {
        None => read_edges(archive, nodes)?,
        Some(_) if archive.has("edge_index") || archive.has("adj_indptr") => {
            let message = "there are edges here and in the adjacency matrix beside it".into();
            return Err(Problem::Invalid(message).into());
        }
        Some(graph) if graph.nodes() as u64 != nodes => {
            let (what, found) = ("adjacency matrix beside it".into(), graph.nodes() as u64);
            return Err(Problem::Length { what, found, expected: nodes }.into());
        }
        Some(graph) => graph,
    };
    if says_undirected(archive)?
        && let Some((from, to)) = graph.first_one_way_edge()
    {
        let problem = Problem::OneWayEdge { from: from.into(), to: to.into() };
        return Err(problem.at(Place::Key("undirected".into())));
    }
    let features = read_features(archive, nodes)?;
    let columns = features.columns() as u64;
    let feature_names =
        archive.texts("feature_names", "list of feature names", Some(columns))?.unwrap_or_default();
    let split = read_split(archive, nodes)?;
    let node_ids = read_node_ids(archive, nodes)?;
    Dataset::new(DatasetParts {
        name: String::new(),
        graph,
        features,
        labels: labels.into(),
        class_names: names,
        feature_names,
        split,
        node_ids,
    })
}

fn says_undirected<R: Read + Seek>(archive: &mut Archive<R>) -> Result<bool> {
    match archive.get("undirected")? {
        None => Ok(false),
        Some(claim) if claim.len() == 1 => Ok(claim.flags()? == [true]),
        Some(claim) => Err(claim.error(Problem::Invalid("expected one value, true or false".into()))),
    }
}

/// Label numbers: one dimension, or one column.
pub(super) fn read_labels<R: Read>(array: Npy<R>) -> Result<Vec<i64>> {
    let array = array.vector("list of labels", None)?;
    if array.len() > Graph::MAX_NODES as u64 {
        let message = format!("{} nodes are more than a graph can have", array.len());
        return Err(array.error(Problem::TooLarge(message)));
    }
    array.integers(Ok)
}

fn read_features<R: Read + Seek>(archive: &mut Archive<R>, nodes: u64) -> Result<Features> {
    let Some(x) = archive.get("x")? else {
        return match archive.has("x_indptr") {
            true => read_sparse_features(archive, nodes),
            false => Err(archive.missing("array \"x\" of features, and no sparse rows \"x_indptr\" either")),
        };
    };
    let features = read_matrix(x, nodes)?;
    if archive.has("x_indptr") {
        let message = "there are features both as \"x\" and as sparse rows".into();
        return Err(Problem::Invalid(message).at(Place::Key("x_indptr".into())));
    }
    Ok(features)
}

/// Dense features with a row for each node.
pub(super) fn read_matrix<R: Read>(array: Npy<R>, nodes: u64) -> Result<Features> {
    let (rows, columns) = array.matrix_shape()?;
    if rows != nodes {
        let what = "feature matrix".into();
        return Err(array.error(Problem::Length { what, found: rows, expected: nodes }));
    }
    let key = Place::Key(array.key().into());
    let columns = column_count(columns).map_err(|problem| array.error(problem))?;
    Features::dense(nodes as usize, columns, array.features()?).map_err(|e| e.at(key))
}

fn column_count(columns: u64) -> Checked<usize> {
    match u32::try_from(columns) {
        Ok(columns) => Ok(columns as usize),
        Err(_) => Err(Problem::TooLarge(format!("{columns} feature columns are more than 32 bits count"))),
    }
}

fn read_sparse_features<R: Read + Seek>(archive: &mut Archive<R>, nodes: u64) -> Result<Features> {
    let [rows, columns] = read_shape(archive, "x_shape")?;
    if rows != nodes {
        let problem = Problem::Length { what: "feature matrix".into(), found: rows, expected: nodes };
        return Err(problem.at(Place::Key("x_shape".into())));
    }
    let columns = column_count(columns).map_err(|problem| problem.at(Place::Key("x_shape".into())))?;
    let offsets = read_offsets(archive, "x_indptr", Some(nodes))?;
    let indices =
        archive.require("x_indices", "the column of each feature")?.vector("list of columns", None)?;
    let indices = indices.indices(columns as u64)?;
    check_offsets("x_indptr", &offsets, indices.len())?;
    let values = match archive.get("x_data")? {
        None => None,
        Some(data) => Some(data.vector("list of values", Some(indices.len() as u64))?.features()?.into()),
    };
    Features::sparse(nodes as usize, columns, offsets, indices, values)
}

fn read_shape<R: Read + Seek>(archive: &mut Archive<R>, key: &str) -> Result<[u64; 2]> {
    let shape = archive.require(key, "rows and columns")?.vector("shape", Some(2))?.offsets()?;
    Ok([shape[0], shape[1]])
}

fn read_offsets<R: Read + Seek>(archive: &mut Archive<R>, key: &str, rows: Option<u64>) -> Result<Vec<u64>> {
    let array = archive.require(key, "where each row starts")?;
    let offsets = array.vector("list of row starts", rows.map(|rows| rows + 1))?.offsets()?;
    if offsets.is_empty() {
        return Err(Problem::Length { what: "list of row starts".into(), found: 0, expected: 1 }
            .at(Place::Key(key.into())));
    }
    Ok(offsets)
}

fn read_edges<R: Read + Seek>(archive: &mut Archive<R>, nodes: u64) -> Result<Graph> {
    match (archive.has("edge_index"), archive.has("adj_indptr")) {
        (true, true) => {
            let message = "there are edges both as \"edge_index\" and as sparse rows".into();
            Err(Problem::Invalid(message).at(Place::Key("adj_indptr".into())))
        }
        (true, false) => {
            let array = archive.require("edge_index", "edges")?;
            let (rows, edges) = array.matrix_shape()?;
            if rows != 2 {
                let message = format!(
                    "the shape is ({rows}, {edges}), expected (2, number of edges): sources, then targets"
                );
                return Err(array.error(Problem::Invalid(message)));
            }
            let ends = array.indices(nodes)?;
            let (sources, targets) = ends.split_at(ends.len() / 2);
            Graph::from_edges(nodes as usize, sources, targets)
        }
        (false, true) => {
            if archive.has("adj_shape") {
                let shape = read_shape(archive, "adj_shape")?;
                check_square(shape, "adj_shape", Some(nodes))?;
            }
            let keys = Keys { indptr: "adj_indptr", indices: "adj_indices", data: "adj_data" };
            Ok(by_receiver(read_rows(archive, keys, nodes)?))
        }
        (false, false) => {
            Err(archive.missing("array \"edge_index\" of edges, and no sparse rows \"adj_indptr\" either"))
        }
    }
}

fn check_square([rows, columns]: [u64; 2], key: &str, nodes: Option<u64>) -> Result<u64> {
    if rows != columns || nodes.is_some_and(|nodes| nodes != rows) {
        let expected = nodes.map_or("as many rows as columns".into(), |n| format!("({n}, {n})"));
        let message = format!("the adjacency matrix has shape ({rows}, {columns}), expected {expected}");
        return Err(Problem::Invalid(message).at(Place::Key(key.into())));
    }
    Ok(rows)
}

/// The names of the three arrays of compressed rows.
#[derive(Clone, Copy)]
struct Keys {
    indptr: &'static str,
    indices: &'static str,
    data: &'static str,
}

/// Compressed rows as a graph in which row `i` lists the columns of the matrix's row `i`.
fn read_rows<R: Read + Seek>(archive: &mut Archive<R>, keys: Keys, nodes: u64) -> Result<Graph> {
    let mut offsets = read_offsets(archive, keys.indptr, Some(nodes))?;
    let array = archive.require(keys.indices, "the column of each entry")?;
    let mut indices = array.vector("list of columns", None)?.indices(nodes)?;
    check_offsets(keys.indptr, &offsets, indices.len())?;
    let zeros = read_zeros(archive, keys.data, indices.len() as u64)?;
    if !zeros.is_empty() {
        for offset in &mut offsets {
            *offset -= zeros.partition_point(|zero| zero < offset) as u64;
        }
        drop_positions(&mut indices, &zeros);
    }
    Graph::from_rows(offsets, indices)
}

/// From rows by sender, as files have them, to rows by receiver.
fn by_receiver(by_sender: Graph) -> Graph {
    // Most graphs are undirected and lie the same way round: noticing costs less than a copy.
    if by_sender.is_undirected() { by_sender } else { by_sender.transpose() }
}

/// The positions of entries that equal 0, which are no edges; none where the values are not stored.
fn read_zeros<R: Read + Seek>(archive: &mut Archive<R>, key: &str, entries: u64) -> Result<Vec<u64>> {
    let Some(array) = archive.get(key)? else { return Ok(Vec::new()) };
    let (mut zeros, mut position) = (Vec::new(), 0);
    array.vector("list of entries", Some(entries))?.each_number(|value| {
        if !value.is_finite() {
            return Err(Problem::NotFinite(value));
        }
        if value == 0.0 {
            room::push(&mut zeros, position)?;
        }
        position += 1;
        Ok(())
    })?;
    Ok(zeros)
}

/// Drops the values at ascending positions.
fn drop_positions(values: &mut Vec<u32>, positions: &[u64]) {
    let mut dropped = positions.iter().copied().peekable();
    let mut at = 0;
    values.retain(|_| {
        let keep = dropped.next_if_eq(&at).is_none();
        at += 1;
        keep
    });
}

fn scipy_adjacency<R: Read + Seek>(archive: &mut Archive<R>) -> Result<Graph> {
    let format = archive.require("format", "scipy's name of the layout, as save_npz writes it")?.texts()?;
    let format = format.first().map(String::as_str).unwrap_or_default();
    let shape = read_shape(archive, "shape")?;
    let nodes = check_square(shape, "shape", None)?;
    if nodes == 0 {
        return Err(Problem::Empty("nodes").at(Place::Key("shape".into())));
    }
    if nodes > Graph::MAX_NODES as u64 {
        let message = format!("{nodes} nodes are more than a graph can have");
        return Err(Problem::TooLarge(message).at(Place::Key("shape".into())));
    }
    let keys = Keys { indptr: "indptr", indices: "indices", data: "data" };
    match format {
        "csr" => Ok(by_receiver(read_rows(archive, keys, nodes)?)),
        // Compressed columns list the rows of each column: the senders of each receiver, just as a graph does.
        "csc" => read_rows(archive, keys, nodes),
        "coo" => read_coordinates(archive, nodes),
        other => {
            let message =
                format!("the sparse layout {other:?} is not read; save the matrix with .tocsr() first");
            Err(Problem::Unsupported(message).at(Place::Key("format".into())))
        }
    }
}

fn read_coordinates<R: Read + Seek>(archive: &mut Archive<R>, nodes: u64) -> Result<Graph> {
    let mut targets = archive
        .require("col", "the column of each entry")?
        .vector("list of columns", None)?
        .indices(nodes)?;
    let entries = targets.len() as u64;
    // Only `shape` says how many nodes there are, so a forged one could ask for any amount of memory.
    const ALWAYS_FINE: u64 = 1 << 20;
    if nodes > ALWAYS_FINE && nodes / 64 > entries {
        let message = format!("the shape announces {nodes} nodes for only {entries} edges");
        return Err(Problem::Invalid(message).at(Place::Key("shape".into())));
    }
    let zeros = read_zeros(archive, "data", entries)?;
    drop_positions(&mut targets, &zeros);
    let mut builder = GraphBuilder::new(nodes as usize)?;
    for &target in &targets {
        builder.count(target, target)?;
    }
    // Sources stream into their places: besides the graph itself only the targets are held.
    let mut filler = builder.fill()?;
    let (mut zeros, mut position) = (zeros.into_iter().peekable(), 0);
    let mut targets = targets.into_iter();
    let sources = archive.require("row", "the row of each entry")?.vector("list of rows", Some(entries))?;
    sources.each_integer(|source| {
        let limit = nodes;
        let in_range = u32::try_from(source).ok().filter(|&index| u64::from(index) < limit);
        let source = in_range.ok_or_else(|| Problem::IndexOutOfRange { index: source.to_string(), limit })?;
        if zeros.next_if_eq(&position).is_none()
            && let Some(target) = targets.next()
        {
            filler.place(source, target);
        }
        position += 1;
        Ok(())
    })?;
    filler.finish()
}

fn read_split<R: Read + Seek>(archive: &mut Archive<R>, nodes: u64) -> Result<Option<Split>> {
    let mut found = false;
    let mut mask = |key: &str| -> Result<Vec<bool>> {
        match archive.get(key)? {
            None => Ok(room::filled(false, nodes as usize)?),
            Some(array) => {
                found = true;
                array.vector("mask", Some(nodes))?.flags()
            }
        }
    };
    let (train, val, test) = (mask("train_mask")?, mask("val_mask")?, mask("test_mask")?);
    if found { Split::from_masks(&train, &val, &test).map(Some) } else { Ok(None) }
}

fn read_node_ids<R: Read + Seek>(archive: &mut Archive<R>, nodes: u64) -> Result<NodeIds> {
    match archive.get("node_ids")? {
        None => Ok(NodeIds::Position),
        Some(array) => read_ids(array.vector("list of node ids", Some(nodes))?),
    }
}

/// Node ids, whole numbers or text, none twice.
pub(super) fn read_ids<R: Read>(array: Npy<R>) -> Result<NodeIds> {
    let key = array.key().to_string();
    let texts = matches!(array.kind(), Kind::Unicode | Kind::Bytes);
    if texts {
        let ids = array.texts()?;
        refuse_duplicates(&key, ids.iter().map(String::as_str))?;
        Ok(NodeIds::from_texts(ids))
    } else {
        let ids = array.integers(Ok)?;
        refuse_duplicates(&key, ids.iter())?;
        Ok(NodeIds::from_integers(ids))
    }
}

fn refuse_duplicates<T>(key: &str, ids: impl Iterator<Item = T> + Clone) -> Result<()>
where
    T: Copy + Eq + std::hash::Hash + ToString,
{
    let mut seen = HashSet::new();
    for (index, id) in ids.clone().enumerate() {
        if !seen.insert(id) {
            let first_row = ids.clone().position(|other| other == id).unwrap_or(0) as u64;
            let place = Place::Element { key: key.into(), index: index as u64 };
            return Err(Problem::DuplicateNode { id: id.to_string(), first_row }.at(place));
        }
    }
    Ok(())
}
