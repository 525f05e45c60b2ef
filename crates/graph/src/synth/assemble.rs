//! From a stream of undirected edges that can be replayed to a graph, without a list of edges in between.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rayon::prelude::*;

use crate::graph::{RowWidth, row_blocks};
use crate::{Graph, Problem, Result};

/// Who chooses whom; asked twice for each node, on any thread, with the same answer.
pub(super) trait UndirectedEdges: Sync {
    /// The number of nodes.
    fn nodes(&self) -> usize;
    /// Adds to `neighbours` each node that `node` chooses: never itself, perhaps one twice.
    fn list_neighbours(&self, node: u32, neighbours: &mut Vec<u32>);
}

/// The undirected graph of these edges, each stored once in both directions.
///
/// The rows are counted in a first pass over the stream and filled in a second. Threads fill a row in any
/// order, but sorting makes it the same row. Beside the rows there are only 16 bytes a node.
pub(super) fn assemble(stream: &impl UndirectedEdges) -> Result<Graph> {
    const NODES_AT_ONCE: u32 = 1024;
    let nodes = stream.nodes();
    let for_each_list = |visit: &(dyn Fn(u32, &[u32]) + Sync)| {
        (0..nodes as u32).into_par_iter().step_by(NODES_AT_ONCE as usize).for_each(|first| {
            let mut neighbours = Vec::new();
            for node in first..first.saturating_add(NODES_AT_ONCE).min(nodes as u32) {
                neighbours.clear();
                stream.list_neighbours(node, &mut neighbours);
                visit(node, &neighbours);
            }
        });
    };

    // First the length of each row, then how much room is left in it.
    let room: Vec<AtomicU32> = (0..nodes).map(|_| AtomicU32::new(0)).collect();
    for_each_list(&|node, neighbours| {
        room[node as usize].fetch_add(neighbours.len() as u32, Relaxed);
        for &neighbour in neighbours {
            room[neighbour as usize].fetch_add(1, Relaxed);
        }
    });
    let mut offsets = Vec::with_capacity(nodes + 1);
    offsets.push(0u64);
    for (node, degree) in room.iter().enumerate() {
        offsets.push(offsets[node] + u64::from(degree.load(Relaxed)));
    }

    let entries = offsets[nodes] as usize;
    let mut rows: Vec<AtomicU32> = Vec::new();
    if rows.try_reserve_exact(entries).is_err() {
        return Err(Problem::TooLarge(format!("{entries} directed edges do not fit into memory")).into());
    }
    rows.resize_with(entries, || AtomicU32::new(0));
    let claim = |node: u32, slots: usize| {
        let left = room[node as usize].fetch_sub(slots as u32, Relaxed) as usize - slots;
        let start = offsets[node as usize] as usize + left;
        &rows[start..start + slots]
    };
    for_each_list(&|node, neighbours| {
        claim(node, neighbours.len())
            .iter()
            .zip(neighbours)
            .for_each(|(slot, &neighbour)| slot.store(neighbour, Relaxed));
        for &neighbour in neighbours {
            claim(neighbour, 1)[0].store(node, Relaxed);
        }
    });
    drop(room);
    // The same allocation with the same layout: nothing is copied.
    let senders: Vec<u32> = rows.into_iter().map(AtomicU32::into_inner).collect();
    Ok(sort_and_deduplicate(offsets, senders))
}

/// Sorts each row, keeps one of equal entries and closes the gaps, in place.
fn sort_and_deduplicate(mut offsets: Vec<u64>, mut senders: Vec<u32>) -> Graph {
    let blocks = row_blocks(&offsets, RowWidth::Edges, &mut senders, 64);
    let kept: Vec<(std::ops::Range<usize>, Vec<u32>)> = blocks
        .into_par_iter()
        .map(|(rows, block)| {
            let start = offsets[rows.start];
            let mut lengths = Vec::with_capacity(rows.len());
            let mut filled = 0;
            for w in offsets[rows.start..=rows.end].windows(2) {
                let (first, last) = ((w[0] - start) as usize, (w[1] - start) as usize);
                block[first..last].sort_unstable();
                let row_start = filled;
                for at in first..last {
                    if filled == row_start || block[at] != block[filled - 1] {
                        block[filled] = block[at];
                        filled += 1;
                    }
                }
                lengths.push((filled - row_start) as u32);
            }
            (rows, lengths)
        })
        .collect();
    let mut end = 0;
    for (rows, lengths) in kept {
        let start = offsets[rows.start] as usize;
        let block_end = end;
        // The old start of the next block must survive until that block is moved: it lies at `rows.end`.
        let next_start = offsets[rows.end];
        for (row, length) in rows.clone().zip(lengths) {
            offsets[row] = end as u64;
            end += length as usize;
        }
        senders.copy_within(start..start + (end - block_end), block_end);
        offsets[rows.end] = next_start;
    }
    let nodes = offsets.len() - 1;
    offsets[nodes] = end as u64;
    senders.truncate(end);
    senders.shrink_to_fit();
    Graph::from_valid_rows(offsets, senders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct List(Vec<Vec<u32>>);

    impl UndirectedEdges for List {
        fn nodes(&self) -> usize {
            self.0.len()
        }

        fn list_neighbours(&self, node: u32, neighbours: &mut Vec<u32>) {
            neighbours.extend_from_slice(&self.0[node as usize]);
        }
    }

    proptest! {
        #[test]
        fn each_undirected_edge_is_there_once_in_both_directions(
            pairs in proptest::collection::vec((0u32..40, 0u32..40), 0..400)
        ) {
            let pairs: Vec<_> = pairs.into_iter().filter(|(a, b)| a != b).collect();
            let mut lists = vec![Vec::new(); 40];
            pairs.iter().for_each(|&(a, b)| lists[a as usize].push(b));
            let mut expected: Vec<_> = pairs.iter().flat_map(|&(a, b)| [(b, a), (a, b)]).collect();
            expected.sort_unstable_by_key(|&(a, b)| (b, a));
            expected.dedup();
            let graph = assemble(&List(lists)).unwrap();
            prop_assert_eq!(graph.iter_edges().collect::<Vec<_>>(), expected);
        }
    }
}
