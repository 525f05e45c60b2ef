//! The public raw files of `reddit`: `reddit_data.npz` and `reddit_graph.npz` in one folder.
//!
//! The first holds `feature`, `label`, `node_ids` and `node_types` (a split by date, which the published
//! experiments do not use); the second is the adjacency matrix as `scipy.sparse.save_npz` writes it.

use std::path::Path;

use super::labels::{Classes, classes_that_occur};
use super::npz::{Archive, open, read_adjacency, read_ids, read_labels, read_matrix};
use crate::{Dataset, DatasetParts, InFile, NodeIds, Place, Problem, Result, file};

/// The file of features and labels.
pub const DATA_FILE: &str = "reddit_data.npz";
/// The file of edges.
pub const GRAPH_FILE: &str = "reddit_graph.npz";
/// The published experiments keep the classes with at least this many nodes.
pub const MIN_CLASS_COUNT: usize = 10_000;

/// Whether a folder holds the file of features and labels.
pub(super) fn is_here(folder: &Path) -> bool {
    folder.join(DATA_FILE).is_file()
}

/// Reads the raw data: all nodes, all edges, no split. [`crate::prepare::prepare_as_published`] with
/// [`MIN_CLASS_COUNT`] makes of it what the published experiments used.
pub fn read(folder: &Path) -> Result<Dataset> {
    let data = folder.join(DATA_FILE);
    let mut archive = Archive::new(open(file::within(folder, &data)?)?).in_file(&data)?;
    let label = archive.require("label", "the label of each node");
    let mut numbers = label.and_then(read_labels).in_file(&data)?;
    let nodes = numbers.len() as u64;
    if nodes == 0 {
        return Err(Problem::Empty("nodes").at(Place::Key("label".into())).in_file(&data));
    }
    let place = |index| Place::Element { key: "label".into(), index };
    let Classes { labels, names } = classes_that_occur(&mut numbers, None, place).in_file(&data)?;
    drop(numbers);

    // The graph needs the most memory while it is built, so it comes before the features.
    let graph_file = folder.join(GRAPH_FILE);
    let graph = read_adjacency(file::within(folder, &graph_file)?)?;
    if graph.nodes() as u64 != nodes {
        let (what, found) = ("adjacency matrix".into(), graph.nodes() as u64);
        return Err(Problem::Length { what, found, expected: nodes }.in_file(&graph_file));
    }
    let feature = archive.require("feature", "one row of numbers for each node");
    let features = feature.and_then(|array| read_matrix(array, nodes)).in_file(&data)?;
    let node_ids = match archive.get("node_ids").in_file(&data)? {
        None => NodeIds::Position,
        Some(array) => array.vector("list of node ids", Some(nodes)).and_then(read_ids).in_file(&data)?,
    };
    let parts = DatasetParts { node_ids, ..DatasetParts::of("reddit", graph, features, labels, names) };
    Dataset::new(parts).in_file(&data)
}
