//! Adjacency matrices: compressed rows or columns, or coordinates.

use std::io::{Read, Seek};

use super::archive::Archive;
use super::{read_offsets, read_shape, weights};
use crate::GraphBuilder;
use crate::check_offsets;
use crate::{EdgeWeights, Graph, Place, Problem, Result, room};

pub(super) fn check_square([rows, columns]: [u64; 2], key: &str, nodes: Option<u64>) -> Result<u64> {
    if rows != columns || nodes.is_some_and(|nodes| nodes != rows) {
        let expected = nodes.map_or("as many rows as columns".into(), |n| format!("({n}, {n})"));
        let message = format!("the adjacency matrix has shape ({rows}, {columns}), expected {expected}");
        return Err(Problem::Invalid(message).at(Place::Key(key.into())));
    }
    Ok(rows)
}

/// The names of the three arrays of compressed rows.
#[derive(Clone, Copy)]
pub(super) struct Keys<'a> {
    pub(super) indptr: &'a str,
    pub(super) indices: &'a str,
    pub(super) data: &'a str,
}

/// Compressed rows as a graph in which row `i` lists the columns of the matrix's row `i`.
pub(super) fn read_rows<R: Read + Seek>(
    archive: &mut Archive<R>,
    keys: Keys<'_>,
    nodes: u64,
) -> Result<Graph> {
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
pub(super) fn by_receiver(by_sender: Graph) -> Graph {
    // Most graphs are undirected and lie the same way round: noticing costs less than a copy.
    if by_sender.is_undirected() { by_sender } else { by_sender.transpose() }
}

/// The positions of entries that equal 0, which are no edges; none where the values are not stored.
fn read_zeros<R: Read + Seek>(archive: &mut Archive<R>, key: &str, entries: u64) -> Result<Vec<u64>> {
    let Some(array) = archive.get(key)? else { return Ok(Vec::new()) };
    let (mut zeros, mut position) = (Vec::new(), 0);
    array.vector("list of entries", Some(entries))?.each_number(|value| {
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

/// An adjacency matrix, whose entries are a pattern, or weights.
pub(super) fn scipy_adjacency<R: Read + Seek>(
    archive: &mut Archive<R>,
    weighted: Option<&EdgeWeights>,
) -> Result<Graph> {
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
    match (format, weighted) {
        ("csr", Some(weights)) => weights::read_rows(archive, keys, nodes, weights, true),
        ("csc", Some(weights)) => weights::read_rows(archive, keys, nodes, weights, false),
        ("coo", Some(weights)) => weights::read_coordinates(archive, nodes, weights),
        ("csr", None) => Ok(by_receiver(read_rows(archive, keys, nodes)?)),
        // Compressed columns list the rows of each column: the senders of each receiver, just as a graph does.
        ("csc", None) => read_rows(archive, keys, nodes),
        ("coo", None) => read_coordinates(archive, nodes),
        (other, _) => {
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
