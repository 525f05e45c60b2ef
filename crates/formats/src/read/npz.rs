//! `.npz` archives of NumPy arrays, and adjacency matrices as `scipy.sparse.save_npz` writes them.
//!
//! A data set is one archive with these arrays; [`ArrayNames`] gives them other names, and those that other people's
//! files use are known:
//!
//! | array | meaning | also |
//! |---|---|---|
//! | `y` | the label of each node: whole numbers from 0, -1 or NaN where it is not known; or text | `labels`, `label`, `node_labels`, `node_label` |
//! | `labelled` | a mask of the nodes whose label is known; optional | `labeled` |
//! | `x` | features, one row per node, NaN where a value is missing; or as sparse rows `x_indptr`, `x_indices`, `x_shape` and `x_data` (all 1 where absent); none where there are none | `features`, `feat`, `node_features`, `node_attr`; sparse `attr_...`, `attr_matrix....` |
//! | `edge_index` | 2 x E: sources in row 0, targets in row 1; or as sparse rows `adj_indptr`, `adj_indices` (row = source, column = target) and perhaps `adj_data` (0 = no edge), `adj_shape` | `edges` (E x 2); sparse `adj_matrix....` |
//! | `edge_weight` | the weight of each edge of a list, from 0 to 1, read where it is asked for; of sparse rows that is `adj_data` | `edge_weights`, `weights`, `weight` |
//! | `train_mask`, `val_mask`, `test_mask` | a split, or several, one in each row or column; optional | `..._masks`; lists of nodes `train_idx`, `valid_idx`, `test_idx` |
//! | `class_names`, `feature_names`, `node_ids` | names; optional | |
//! | `number_columns` | which features are in a unit of their own, as our own writer says it; where absent, the columns of `x` that hold more than 0 and 1 | |
//! | `undirected` | a claim that every edge has its edge back, which is checked; optional | |
//!
//! The heterophilous benchmark graphs (`node_features`, `node_labels`, `edges`, ten masks) list every edge once; as the
//! benchmark's own loader does, each gets its edge back, unless the file's name says `directed`.
//!
//! A SciPy matrix in compressed rows that was pickled under one of these names (`adj_matrix`, `node_attr`) is read
//! without running the pickle; other pickled objects are not.
//!
//! The plain layout of `scipy.sparse.save_npz` holds an adjacency matrix alone: put it as `adj.npz` (or
//! `adjacency.npz`) into a folder with a second `.npz` that holds the arrays about nodes, and load the folder.

mod adjacency;
mod archive;
mod dense;
mod layout;
mod pickle;
mod split;
mod weights;

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use self::adjacency::{Keys, by_receiver, check_square, read_rows, scipy_adjacency};
pub(super) use self::archive::Archive;
pub use self::dense::Dense;
pub(super) use self::dense::read_matrix;
pub use self::layout::ArrayNames;
use self::layout::Layout;
use super::labels::{self, Classes, classes_that_occur, classes_with_names};
use super::npy::{Checked, Kind, Npy};
use super::table::{LabelColumn, Labels};
use crate::check_offsets;
use crate::{
    Dataset, DatasetParts, EdgeWeights, Error, Features, Graph, InFile, InferredSchema, NodeIds,
    NumberColumn, Place, Problem, Remedy, Result, file, scale, transform,
};

/// The user's choices about an archive: which arrays are what, and which of several splits is meant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NpzOptions {
    /// The names of arrays that have other names than the usual ones.
    pub arrays: ArrayNames,
    /// The number of the split, from 0, where there are several.
    pub mask: Option<usize>,
    /// The array of weights, see [`LoadOptions::weights`](super::LoadOptions::weights); those of sparse rows are their
    /// entries.
    pub weights: Option<EdgeWeights>,
    /// The labels that stand for "not known", see [`ColumnChoices::unknown`](super::columns::ColumnChoices::unknown).
    pub unknown: Option<Vec<String>>,
}

/// Reads a data set from an `.npz` file, or from a folder with an adjacency matrix and a file about its nodes.
pub fn read(path: &Path) -> Result<Dataset> {
    read_with(path, &NpzOptions::default())
}

/// As [`read`], with what the user knows.
pub fn read_with(path: &Path, options: &NpzOptions) -> Result<Dataset> {
    let dataset = if path.is_dir() {
        let pair = find_pair(path)?.ok_or_else(|| {
            Problem::NotRecognised("a folder without adj.npz and one other .npz".into()).in_file(path)
        })?;
        let archive = open(file::within(path, &pair.adjacency)?)?;
        let weights = options.weights.as_ref();
        let graph = Archive::new(archive).and_then(|mut archive| scipy_adjacency(&mut archive, weights));
        let graph = graph.in_file(&pair.adjacency)?;
        read_nodes(
            &mut Archive::new(open(file::within(path, &pair.nodes)?)?).in_file(&pair.nodes)?,
            Some(graph),
            options,
        )
        .in_file(&pair.nodes)?
        .0
    } else {
        let read = read_nodes(&mut Archive::new(open(path)?).in_file(path)?, None, options).in_file(path)?;
        let directed = super::name_of(path).contains("directed");
        both_directions(read.0, read.1 && !directed)?
    };
    Ok(dataset.named(super::name_of(path)))
}

/// Reads a data set from the bytes of an `.npz` archive.
pub fn read_from(reader: impl Read + Seek) -> Result<Dataset> {
    read_from_with(reader, &NpzOptions::default())
}

/// As [`read_from`], with what the user knows.
pub fn read_from_with(reader: impl Read + Seek, options: &NpzOptions) -> Result<Dataset> {
    let (dataset, once) = read_nodes(&mut Archive::new(reader)?, None, options)?;
    both_directions(dataset, once)
}

/// The same data, each edge with its edge back where the layout lists every edge once.
fn both_directions(dataset: Dataset, once: bool) -> Result<Dataset> {
    if once { transform::map_graph(dataset, transform::symmetrise) } else { Ok(dataset) }
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
    scipy_adjacency(&mut Archive::new(reader)?, None)
}

/// The arrays of a pickled matrix, each as the content of an `.npy` file, for fuzzing; nothing is run.
pub fn unpickled(pickle: &[u8]) -> Option<Vec<(&'static str, Vec<u8>)>> {
    pickle::compressed_rows(pickle).map(Vec::from)
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
    Ok(BufReader::with_capacity(1 << 18, file::open(path)?))
}

/// A data set from an archive whose edges are its own, or come from another file; and whether the layout is one that
/// lists every edge once.
fn read_nodes<R: Read + Seek>(
    archive: &mut Archive<R>,
    graph: Option<Graph>,
    options: &NpzOptions,
) -> Result<(Dataset, bool)> {
    let layout = Layout::of(archive, &options.arrays)?;
    let Some(label_key) = &layout.labels else {
        return Err(match archive.is_scipy() {
            true => archive.missing(
                "array \"y\" of labels: this is a lone adjacency matrix as scipy's save_npz writes it; put it as \
                 adj.npz into a folder with a second .npz that holds y and x, and load the folder",
            ),
            false => archive.missing("array \"y\" (the label of each node)"),
        }
        .remedy(Remedy::Array("labels")));
    };
    let Classes { labels, names } = read_classes(archive, label_key, options.unknown.as_deref())?;
    let nodes = labels.len() as u64;
    let graph = match graph {
        None => read_edges(archive, &layout, nodes, options.weights.as_ref())?,
        Some(_) if layout.edges.is_some() || layout.sparse_edges.is_some() => {
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
    let dense = read_features(archive, &layout, nodes)?;
    let columns = dense.stored_columns() as u64;
    let feature_names = dense
        .names(archive.names("feature_names", "list of feature names", Some(columns))?.unwrap_or_default());
    let numbers = dense.with_indicators(read_numbers(archive, &dense.features)?);
    let gaps = dense.gaps_read_off(&feature_names);
    let features = dense.features;
    let mut undeclared: Vec<InferredSchema> = descriptions(archive, "undeclared")?.unwrap_or_default();
    undeclared.extend(gaps);
    let split = split::read(archive, &options.arrays, nodes, options.mask)?;
    let node_ids = read_node_ids(archive, nodes)?;
    let dataset = Dataset::new(DatasetParts {
        name: String::new(),
        graph,
        features,
        labels: labels.into(),
        class_names: names,
        feature_names,
        numbers,
        undeclared,
        relation: None,
        split,
        node_ids,
    })?;
    Ok((dataset, layout.lists_edges_once))
}

/// The class of each node: by numbers, or by names.
fn read_classes<R: Read + Seek>(
    archive: &mut Archive<R>,
    key: &str,
    unknown: Option<&[String]>,
) -> Result<Classes> {
    let in_array = |e: crate::Error| e.at(Place::Key(key.into()));
    let array = archive.require(key, "the label of each node")?;
    if matches!(array.kind(), Kind::Unicode | Kind::Bytes) {
        let texts = array.vector("list of labels", None)?.texts()?;
        let known = read_known(archive, texts.len() as u64)?;
        let mut column = LabelColumn::new(unknown.map(<[String]>::to_vec));
        texts.iter().try_for_each(|text| column.push_name(Some(text))).map_err(|e| in_array(e.into()))?;
        return column.finish(known).map(|Labels { classes, .. }| classes).map_err(|e| in_array(e.into()));
    }
    let mut numbers = read_labels(array)?;
    if numbers.is_empty() {
        return Err(in_array(Problem::Empty("nodes").into()));
    }
    if let Some(known) = read_known(archive, numbers.len() as u64)? {
        numbers.iter_mut().zip(known).filter(|(_, known)| !known).for_each(|(n, _)| *n = labels::MISSING);
    }
    let place = |index| Place::Element { key: key.to_string(), index };
    match archive.names("class_names", "list of class names", None)? {
        Some(names) => classes_with_names(&mut numbers, names, place),
        None => classes_that_occur(&mut numbers, unknown, place),
    }
    .map_err(in_array)
}

/// Which labels are known, where the archive says so.
fn read_known<R: Read + Seek>(archive: &mut Archive<R>, nodes: u64) -> Result<Option<Vec<bool>>> {
    let key = ["labelled", "labeled"].into_iter().find(|key| archive.has(key));
    let Some(mask) = key.map(|key| archive.get(key)).transpose()?.flatten() else { return Ok(None) };
    mask.vector("mask", Some(nodes))?.flags().map(Some)
}

/// The columns that are in a unit of their own: as our own writer lists them, else the dense ones that hold more than 0
/// and 1.
fn read_numbers<R: Read + Seek>(archive: &mut Archive<R>, features: &Features) -> Result<Vec<NumberColumn>> {
    let dense = matches!(features, Features::Dense { .. });
    let found = || if dense { scale::number_columns(features) } else { vec![] };
    Ok(descriptions(archive, "number_columns")?.unwrap_or_else(found))
}

/// Descriptions of columns by our own writer, each as a text in JSON; nothing where the array is not there.
fn descriptions<R: Read + Seek, T: DeserializeOwned>(
    archive: &mut Archive<R>,
    key: &str,
) -> Result<Option<Vec<T>>> {
    let Some(array) = archive.get(key)? else { return Ok(None) };
    let texts = array.vector("list of columns", None)?.texts()?;
    let parse = |(index, text): (usize, &String)| {
        let place = Place::Element { key: key.into(), index: index as u64 };
        serde_json::from_str(text).map_err(|e| Problem::Invalid(e.to_string()).at(place))
    };
    texts.iter().enumerate().map(parse).collect::<Result<_>>().map(Some)
}

fn says_undirected<R: Read + Seek>(archive: &mut Archive<R>) -> Result<bool> {
    match archive.get("undirected")? {
        None => Ok(false),
        Some(claim) if claim.len() == 1 => Ok(claim.flags()? == [true]),
        Some(claim) => Err(claim.error(Problem::Invalid("expected one value, true or false".into()))),
    }
}

/// Label numbers, one dimension or one column; those that are not known are [`labels::MISSING`].
pub(super) fn read_labels<R: Read>(array: Npy<R>) -> Result<Vec<i64>> {
    let array = array.vector("list of labels", None)?;
    if array.len() > Graph::MAX_NODES as u64 {
        let message = format!("{} nodes are more than a graph can have", array.len());
        return Err(array.error(Problem::TooLarge(message)));
    }
    array.integers_or(labels::MISSING)
}

fn read_features<R: Read + Seek>(archive: &mut Archive<R>, layout: &Layout, nodes: u64) -> Result<Dense> {
    match (&layout.features, &layout.sparse_features) {
        (Some(_), Some(sparse)) => {
            let message = "there are features both as a matrix and as sparse rows".into();
            Err(Problem::Invalid(message).at(Place::Key(format!("{sparse}indptr"))))
        }
        (Some(key), None) => Dense::read(archive.require(key, "features")?, nodes),
        (None, Some(prefix)) => Ok(read_sparse_features(archive, prefix, nodes)?.into()),
        (None, None) if may_be_features(archive, layout, nodes) => Err(archive
            .missing("array \"x\" of features, and no sparse rows \"x_indptr\" either")
            .remedy(Remedy::Array("features"))),
        (None, None) => Ok(Features::dense(nodes as usize, 0, vec![])?.into()),
    }
}

/// Whether an array that is nothing else has a row for each node, as features have: then somebody must say what it is.
fn may_be_features<R: Read + Seek>(archive: &mut Archive<R>, layout: &Layout, nodes: u64) -> bool {
    let used = [&layout.labels, &layout.edges].into_iter().flatten();
    let used: Vec<&str> = used.map(String::as_str).collect();
    let is_open = |key: &String| {
        let about = ["mask", "names", "ids", "metadata"].iter().any(|mark| key.contains(mark));
        !about && !used.contains(&key.as_str()) && !archive.is_unpickled(key)
    };
    let open: Vec<String> = archive.keys().into_iter().filter(is_open).collect();
    let edges = layout.sparse_edges.as_deref();
    let is_part =
        |key: &String| key.ends_with("indices") && !edges.is_some_and(|edges| key.starts_with(edges));
    open.iter().any(is_part)
        || open.iter().any(|key| match archive.get(key) {
            Ok(Some(array)) => matches!(*array.shape(), [rows, columns] if rows == nodes && columns > 1),
            Ok(None) => false,
            Err(e) => matches!(e.problem(), Problem::PickledObjects),
        })
}

fn column_count(columns: u64) -> Checked<usize> {
    match u32::try_from(columns) {
        Ok(columns) => Ok(columns as usize),
        Err(_) => Err(Problem::TooLarge(format!("{columns} feature columns are more than 32 bits count"))),
    }
}

fn read_sparse_features<R: Read + Seek>(
    archive: &mut Archive<R>,
    prefix: &str,
    nodes: u64,
) -> Result<Features> {
    let key = |part: &str| format!("{prefix}{part}");
    let [rows, columns] = read_shape(archive, &key("shape"))?;
    if rows != nodes {
        let problem = Problem::Length { what: "feature matrix".into(), found: rows, expected: nodes };
        return Err(problem.at(Place::Key(key("shape"))));
    }
    let columns = column_count(columns).map_err(|problem| problem.at(Place::Key(key("shape"))))?;
    let offsets = read_offsets(archive, &key("indptr"), Some(nodes))?;
    let indices =
        archive.require(&key("indices"), "the column of each feature")?.vector("list of columns", None)?;
    let indices = indices.indices(columns as u64)?;
    check_offsets(&key("indptr"), &offsets, indices.len())?;
    let values = match archive.get(&key("data"))? {
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

fn read_edges<R: Read + Seek>(
    archive: &mut Archive<R>,
    layout: &Layout,
    nodes: u64,
    weights: Option<&EdgeWeights>,
) -> Result<Graph> {
    match (&layout.edges, &layout.sparse_edges) {
        (Some(_), Some(sparse)) => {
            let message = "there are edges both as a list and as sparse rows".into();
            Err(Problem::Invalid(message).at(Place::Key(format!("{sparse}indptr"))))
        }
        (Some(key), None) => {
            let array = archive.require(key, "edges")?;
            let (rows, columns) = array.matrix_shape()?;
            // A list of pairs where there are two columns; sources above targets where there are two rows.
            let pairs = columns == 2 && (rows != 2 || key != "edge_index");
            if rows != 2 && !pairs {
                let message = format!(
                    "the shape is ({rows}, {columns}), expected (2, number of edges): sources, then targets"
                );
                return Err(array.error(Problem::Invalid(message)));
            }
            let ends = array.indices(nodes)?;
            let turned: (Vec<u32>, Vec<u32>);
            let (sources, targets) = if pairs {
                turned = ends.chunks_exact(2).map(|pair| (pair[0], pair[1])).unzip();
                (&turned.0[..], &turned.1[..])
            } else {
                ends.split_at(ends.len() / 2)
            };
            match weights {
                None => Graph::from_edges(nodes as usize, sources, targets),
                Some(weights) => {
                    let key = weights::beside_a_list(archive, weights.name())?;
                    let values = weights::read(archive, &key, sources.len(), weights)?;
                    weights.graph(nodes as usize, sources, targets, &values)
                }
            }
        }
        (None, Some(prefix)) => {
            let key = |part: &str| format!("{prefix}{part}");
            if archive.has(&key("shape")) {
                let shape = read_shape(archive, &key("shape"))?;
                check_square(shape, &key("shape"), Some(nodes))?;
            }
            let (indptr, indices, data) = (key("indptr"), key("indices"), key("data"));
            let keys = Keys { indptr: &indptr, indices: &indices, data: &data };
            match weights {
                None => Ok(by_receiver(read_rows(archive, keys, nodes)?)),
                Some(weights) => weights::read_rows(archive, keys, nodes, weights, true),
            }
        }
        (None, None) => Err(pickled_edges(archive, layout).unwrap_or_else(|| {
            archive
                .missing("array \"edge_index\" of edges, and no sparse rows \"adj_indptr\" either")
                .remedy(Remedy::Array("edges"))
        })),
    }
}

/// Why the edges are not read, where they are likely to lie in an array of Python objects.
fn pickled_edges<R: Read + Seek>(archive: &mut Archive<R>, layout: &Layout) -> Option<Error> {
    let used = [layout.labels.as_deref(), layout.features.as_deref()];
    let about =
        |key: &str| ["mask", "names", "ids", "label", "metadata"].iter().any(|mark| key.contains(mark));
    let mut open =
        archive.keys().into_iter().filter(|key| !used.contains(&Some(key.as_str())) && !about(key));
    open.find_map(|key| archive.get(&key).err().filter(|e| matches!(e.problem(), Problem::PickledObjects)))
}

fn read_node_ids<R: Read + Seek>(archive: &mut Archive<R>, nodes: u64) -> Result<NodeIds> {
    match archive.get("node_ids") {
        Err(e) if matches!(e.problem(), Problem::PickledObjects) => Ok(NodeIds::Position),
        Err(e) => Err(e),
        Ok(None) => Ok(NodeIds::Position),
        Ok(Some(array)) => read_ids(array.vector("list of node ids", Some(nodes))?),
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
