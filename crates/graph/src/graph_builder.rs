//! A graph from edges in any order, seen twice: counted, then placed.

use crate::graph::too_many_nodes;
use crate::{Graph, Problem, Result, room};

/// Builds a graph from edges that are seen twice: counted first, then placed. Between the passes nothing but
/// the rows themselves is held, so a stream that can be replayed needs no list of edges.
#[derive(Debug)]
pub struct GraphBuilder {
    offsets: Vec<u64>,
}

impl GraphBuilder {
    /// A builder for this many nodes.
    pub fn new(nodes: usize) -> Result<Self> {
        if nodes > Graph::MAX_NODES {
            return Err(too_many_nodes(nodes));
        }
        Ok(GraphBuilder { offsets: room::filled(0, nodes + 1)? })
    }

    /// Counts an edge.
    pub fn count(&mut self, source: u32, target: u32) -> Result<()> {
        let nodes = self.offsets.len() - 1;
        let largest = source.max(target);
        if largest as usize >= nodes {
            let index = largest.to_string();
            return Err(Problem::IndexOutOfRange { index, limit: nodes as u64 }.into());
        }
        self.offsets[target as usize + 1] += 1;
        Ok(())
    }

    /// Ends counting.
    ///
    /// # Errors
    /// More edges than memory holds.
    pub fn fill(self) -> Result<GraphFiller> {
        let mut offsets = self.offsets;
        for i in 1..offsets.len() {
            offsets[i] += offsets[i - 1];
        }
        let edges = offsets[offsets.len() - 1] as usize;
        // Placing moves each row's start to its end, that is to the next row's start: shifting by one row at
        // the end restores the starts, and no second array of cursors is needed.
        Ok(GraphFiller { offsets, senders: room::filled(0, edges)?, placed: 0 })
    }
}

/// The second pass of [`GraphBuilder`].
#[derive(Debug)]
pub struct GraphFiller {
    offsets: Vec<u64>,
    senders: Vec<u32>,
    placed: usize,
}

impl GraphFiller {
    /// Places an edge that was counted before.
    ///
    /// # Panics
    /// If more edges go to `target` than there is room for in all, or `target` is not a node. Edges that
    /// differ from the counted ones in any other way are an error of [`GraphFiller::finish`].
    pub fn place(&mut self, source: u32, target: u32) {
        let slot = &mut self.offsets[target as usize];
        self.senders[*slot as usize] = source;
        *slot += 1;
        self.placed += 1;
    }

    /// The graph.
    pub fn finish(self) -> Result<Graph> {
        let GraphFiller { mut offsets, senders, placed } = self;
        let nodes = offsets.len() - 1;
        let edges = senders.len();
        if placed != edges {
            let what = "list of edges in its second pass".into();
            return Err(Problem::Length { what, found: placed as u64, expected: edges as u64 }.into());
        }
        offsets.copy_within(0..nodes, 1);
        offsets[0] = 0;
        Graph::from_rows(offsets, senders)
    }
}
