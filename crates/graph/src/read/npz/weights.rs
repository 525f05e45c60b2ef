//! Weights of edges: an array beside a list of edges, or the entries of a sparse matrix.

use std::io::{Read, Seek};

use super::adjacency::Keys;
use super::archive::Archive;
use super::read_offsets;
use crate::graph::check_offsets;
use crate::{Graph, Place, Problem, Result, room, weights};

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
pub(super) fn read<R: Read + Seek>(archive: &mut Archive<R>, key: &str, edges: usize) -> Result<Vec<f32>> {
    let array =
        archive.require(key, "the weight of each edge")?.vector("list of weights", Some(edges as u64))?;
    let mut values = Vec::new();
    array.each_number(|value| room::push(&mut values, weights::checked(value)?))?;
    Ok(values)
}

/// Compressed rows (of senders, or of receivers) whose entries are weights; an entry of 0 is no edge.
pub(super) fn read_rows<R: Read + Seek>(
    archive: &mut Archive<R>,
    keys: Keys<'_>,
    nodes: u64,
    by_sender: bool,
) -> Result<Graph> {
    let offsets = read_offsets(archive, keys.indptr, Some(nodes))?;
    let array = archive.require(keys.indices, "the column of each entry")?;
    let columns = array.vector("list of columns", None)?.indices(nodes)?;
    check_offsets(keys.indptr, &offsets, columns.len())?;
    let weights = read(archive, keys.data, columns.len())?;
    let mut rows = room::with_room(columns.len())?;
    for (row, ends) in offsets.windows(2).enumerate() {
        rows.extend(std::iter::repeat_n(row as u32, (ends[1] - ends[0]) as usize));
    }
    let (sources, targets) = if by_sender { (rows, columns) } else { (columns, rows) };
    graph(nodes, &sources, &targets, &weights)
}

/// Coordinates whose entries are weights; an entry of 0 is no edge.
pub(super) fn read_coordinates<R: Read + Seek>(archive: &mut Archive<R>, nodes: u64) -> Result<Graph> {
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
    let weights = read(archive, "data", sources.len())?;
    graph(nodes, &sources, &targets, &weights)
}

fn graph(nodes: u64, sources: &[u32], targets: &[u32], weights: &[f32]) -> Result<Graph> {
    let there = |list: &[u32]| -> Vec<u32> {
        list.iter().zip(weights).filter(|(_, weight)| **weight != 0.0).map(|(end, _)| *end).collect()
    };
    let (sources, targets) = (there(sources), there(targets));
    let weights: Vec<f32> = weights.iter().copied().filter(|&weight| weight != 0.0).collect();
    Graph::from_weighted_edges(nodes as usize, &sources, &targets, &weights)
}
