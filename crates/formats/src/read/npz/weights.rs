//! Weights of edges: an array beside a list of edges, or the entries of a sparse matrix.

use std::io::{Read, Seek};

use super::adjacency::Keys;
use super::archive::Archive;
use super::read_offsets;
use crate::check_offsets;
use crate::{EdgeWeights, Graph, Place, Problem, Result, room};

/// Names under which an array of weights is known.
const KNOWN: [&str; 4] = ["edge_weight", "edge_weights", "weights", "weight"];

/// The array that holds the weights of a list of edges: that of the name, or, under the usual name, one that is known.
pub(super) fn beside_a_list<R: Read + Seek>(archive: &Archive<R>, name: &str) -> Result<String> {
    let known = KNOWN.iter().find(|known| archive.has(known)).filter(|_| name == "weight");
    match known {
        Some(known) => Ok((*known).to_string()),
        None if archive.has(name) => Ok(name.to_string()),
        None => Err(archive.missing(&format!("array {name:?} (the weight of each edge)"))),
    }
}

/// This many weights.
pub(super) fn read<R: Read + Seek>(
    archive: &mut Archive<R>,
    key: &str,
    edges: usize,
    weights: &EdgeWeights,
) -> Result<Vec<f32>> {
    let array =
        archive.require(key, "the weight of each edge")?.vector("list of weights", Some(edges as u64))?;
    let mut values = Vec::new();
    array.each_number(|value| room::push(&mut values, weights.of(value)))?;
    Ok(values)
}

/// Compressed rows (of senders, or of receivers) whose entries are weights; an entry of 0 is no edge.
pub(super) fn read_rows<R: Read + Seek>(
    archive: &mut Archive<R>,
    keys: Keys<'_>,
    nodes: u64,
    weights: &EdgeWeights,
    by_sender: bool,
) -> Result<Graph> {
    let offsets = read_offsets(archive, keys.indptr, Some(nodes))?;
    let array = archive.require(keys.indices, "the column of each entry")?;
    let columns = array.vector("list of columns", None)?.indices(nodes)?;
    check_offsets(keys.indptr, &offsets, columns.len())?;
    let values = read(archive, keys.data, columns.len(), weights)?;
    let mut rows = room::with_room(columns.len())?;
    for (row, ends) in offsets.windows(2).enumerate() {
        rows.extend(std::iter::repeat_n(row as u32, (ends[1] - ends[0]) as usize));
    }
    let (sources, targets) = if by_sender { (rows, columns) } else { (columns, rows) };
    graph(nodes, &sources, &targets, (weights, &values))
}

/// Coordinates whose entries are weights; an entry of 0 is no edge.
pub(super) fn read_coordinates<R: Read + Seek>(
    archive: &mut Archive<R>,
    nodes: u64,
    weights: &EdgeWeights,
) -> Result<Graph> {
    let mut ends =
        |key: &str, what: &str| archive.require(key, what)?.vector("list of places", None)?.indices(nodes);
    let (sources, targets) =
        (ends("row", "the row of each entry")?, ends("col", "the column of each entry")?);
    if sources.len() != targets.len() {
        let (found, expected) = (targets.len() as u64, sources.len() as u64);
        return Err(
            Problem::Length { what: "list of columns".into(), found, expected }.at(Place::Key("col".into()))
        );
    }
    let values = read(archive, "data", sources.len(), weights)?;
    graph(nodes, &sources, &targets, (weights, &values))
}

fn graph(
    nodes: u64,
    sources: &[u32],
    targets: &[u32],
    (weights, values): (&EdgeWeights, &[f32]),
) -> Result<Graph> {
    let there = |list: &[u32]| -> Vec<u32> {
        list.iter().zip(values).filter(|(_, value)| **value != 0.0).map(|(end, _)| *end).collect()
    };
    let (sources, targets) = (there(sources), there(targets));
    let values: Vec<f32> = values.iter().copied().filter(|&value| value != 0.0).collect();
    weights.graph(nodes as usize, &sources, &targets, &values)
}
