//! The graph: who sends to whom, in compressed sparse rows.

use std::ops::Range;
use std::sync::OnceLock;

use rayon::prelude::*;

use crate::{Buffer, Error, GraphBuilder, Place, Problem, Result};

/// A directed graph, stored by receiver: row `i` lists the senders `j` of the edges `j -> i`, ascending.
///
/// An undirected graph is stored as both directions. Four bytes an edge and eight a node. Repeated edges are
/// kept as they came ([`crate::transform::deduplicate`] removes them).
#[derive(Debug, Clone)]
pub struct Graph {
    offsets: Buffer<u64>,
    senders: Buffer<u32>,
    /// From 0 to 1, one for each sender; none where every edge is as good as any other.
    weights: Option<Buffer<f32>>,
    /// The public maximum that weights were divided by, where it is known.
    pub(crate) weight_bound: Option<f64>,
    counted: Counted,
}

/// Properties that take a pass over all edges to find out, and are asked for again and again.
#[derive(Debug, Clone, Default)]
struct Counted {
    symmetric: OnceLock<bool>,
    distinct: OnceLock<usize>,
}

/// The kept result, or that of counting now. Nobody waits for a count under way: a thread that counts in parallel takes
/// up other work meanwhile, which may ask for the same; and a process that is forked meanwhile has no thread that would
/// end it.
fn once<T: Copy>(kept: &OnceLock<T>, count: impl FnOnce() -> T) -> T {
    if let Some(&known) = kept.get() {
        return known;
    }
    let counted = count();
    // Where somebody else was quicker it is the same.
    let _ = kept.set(counted);
    counted
}

impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        self.offsets == other.offsets && self.senders == other.senders && self.weights == other.weights
    }
}

impl Graph {
    /// The most nodes a graph can have: ids are 32-bit.
    pub const MAX_NODES: usize = u32::MAX as usize;

    /// A graph from its rows: `senders[offsets[i]..offsets[i + 1]]` send to `i`.
    ///
    /// Rows that are not ascending are sorted. Offsets that do not rise from 0 to the number of edges, and
    /// senders that are not nodes, are errors.
    pub fn from_rows(offsets: impl Into<Buffer<u64>>, senders: impl Into<Buffer<u32>>) -> Result<Self> {
        let graph = Graph::unchecked(offsets, senders);
        match graph.check_rows()? {
            RowOrder::Ascending => Ok(graph),
            RowOrder::Mixed => {
                let Graph { offsets, senders, .. } = graph;
                let mut senders = senders.into_vec();
                row_blocks(&offsets, RowWidth::Edges, &mut senders, 64).into_par_iter().for_each(
                    |(rows, block)| {
                        let start = offsets[rows.start];
                        for w in offsets[rows.start..=rows.end].windows(2) {
                            block[(w[0] - start) as usize..(w[1] - start) as usize].sort_unstable();
                        }
                    },
                );
                Ok(Graph::unchecked(offsets, senders))
            }
        }
    }

    /// A graph from parallel lists of sources and targets.
    pub fn from_edges(nodes: usize, sources: &[u32], targets: &[u32]) -> Result<Self> {
        if sources.len() != targets.len() {
            let (found, expected) = (targets.len() as u64, sources.len() as u64);
            return Err(Problem::Length { what: "list of targets".into(), found, expected }.into());
        }
        let mut builder = GraphBuilder::new(nodes)?;
        for (&source, &target) in sources.iter().zip(targets) {
            builder.count(source, target)?;
        }
        let mut filler = builder.fill()?;
        for (&source, &target) in sources.iter().zip(targets) {
            filler.place(source, target);
        }
        filler.finish()
    }

    /// A graph of which the caller knows that the rows are valid and ascending.
    pub(crate) fn from_valid_rows(offsets: impl Into<Buffer<u64>>, senders: impl Into<Buffer<u32>>) -> Self {
        let graph = Graph::unchecked(offsets, senders);
        debug_assert!(matches!(graph.check_rows(), Ok(RowOrder::Ascending)));
        graph
    }

    /// A graph whose offsets are right, and whose senders somebody else checks.
    pub(crate) fn from_unverified_rows(offsets: Buffer<u64>, senders: Buffer<u32>) -> Self {
        Graph::unchecked(offsets, senders)
    }

    fn unchecked(offsets: impl Into<Buffer<u64>>, senders: impl Into<Buffer<u32>>) -> Self {
        let (offsets, senders) = (offsets.into(), senders.into());
        Graph { offsets, senders, weights: None, weight_bound: None, counted: Counted::default() }
    }

    /// Where each row begins, and the senders; a copy only where they lie in a mapped file.
    pub fn into_rows(self) -> (Buffer<u64>, Vec<u32>) {
        (self.offsets, self.senders.into_vec())
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of directed edges.
    pub fn edges(&self) -> usize {
        self.senders.len()
    }

    /// The senders of the edges into `node`, ascending.
    pub fn in_neighbours(&self, node: usize) -> &[u32] {
        &self.senders[self.offsets[node] as usize..self.offsets[node + 1] as usize]
    }

    /// The number of edges into `node`.
    pub fn in_degree(&self, node: usize) -> usize {
        (self.offsets[node + 1] - self.offsets[node]) as usize
    }

    /// The largest number of edges into one node.
    pub fn max_in_degree(&self) -> usize {
        crate::aggregate::longest_row(&self.offsets)
    }

    /// For each node the number of edges out of it.
    pub fn out_degrees(&self) -> Vec<u32> {
        let mut degrees = vec![0u32; self.nodes()];
        for &sender in self.senders.iter() {
            degrees[sender as usize] += 1;
        }
        degrees
    }

    /// Where each row starts, and where the last one ends.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// The senders of all rows, one row after the other.
    pub fn senders(&self) -> &[u32] {
        &self.senders
    }

    /// The weight of each edge in the order of [`Graph::senders`], where edges have weights.
    pub fn weights(&self) -> Option<&[f32]> {
        self.weights.as_deref()
    }

    pub(crate) fn with_valid_weights(self, weights: Option<Buffer<f32>>) -> Graph {
        Graph { weights, ..self }
    }

    /// All edges as (source, target), by target.
    pub fn iter_edges(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        (0..self.nodes()).flat_map(|i| self.in_neighbours(i).iter().map(move |&j| (j, i as u32)))
    }

    /// Every edge turned round.
    pub fn transpose(&self) -> Graph {
        let mut offsets = vec![0u64; self.nodes() + 1];
        for &sender in self.senders.iter() {
            offsets[sender as usize + 1] += 1;
        }
        for i in 0..self.nodes() {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut senders = vec![0u32; self.edges()];
        let mut weights = self.weights.as_ref().map(|weights| vec![0f32; weights.len()]);
        for (at, (source, target)) in self.iter_edges().enumerate() {
            let slot = &mut next[source as usize];
            senders[*slot as usize] = target;
            if let Some(weights) = &mut weights {
                weights[*slot as usize] = self.weight(at);
            }
            *slot += 1;
        }
        // Targets were visited in ascending order, so each row is ascending.
        Graph::from_valid_rows(offsets, senders)
            .with_valid_weights(weights.map(Buffer::from))
            .with_valid_bound(self.weight_bound)
    }

    /// The first edge without an edge back, if there is one; `None` means that the graph is undirected.
    ///
    /// Receivers are visited in ascending order and rows are ascending, so the edge back must always be the
    /// next one not yet seen in the sender's row: one pass, one cursor per node.
    pub fn first_one_way_edge(&self) -> Option<(u32, u32)> {
        let mut cursor = self.offsets[..self.nodes()].to_vec();
        for (source, target) in self.iter_edges() {
            let slot = &mut cursor[source as usize];
            let end = self.offsets[source as usize + 1];
            match (*slot < end).then(|| self.senders[*slot as usize]) {
                Some(back) if back == target => *slot += 1,
                // The sender's row holds an edge from an earlier node, which had no edge to that sender.
                Some(back) if back < target => return Some((back, source)),
                _ => return Some((source, target)),
            }
        }
        None
    }

    /// Whether every edge has an edge back.
    pub fn is_undirected(&self) -> bool {
        self.first_one_way_edge().is_none()
    }

    /// Whether every edge has an edge back, however often each of them is listed.
    pub fn is_symmetric(&self) -> bool {
        once(&self.counted.symmetric, || crate::symmetry::is_symmetric(self))
    }

    /// Takes over what a pass over all edges found.
    pub(crate) fn cache_counts(&self, symmetric: bool, distinct: usize) {
        let _ = self.counted.symmetric.set(symmetric);
        let _ = self.counted.distinct.set(distinct);
    }

    /// How many edges are left once repeated ones are merged and loops are left out.
    pub fn distinct_edges(&self) -> usize {
        let distinct = |i: usize| {
            let row = self.in_neighbours(i);
            let first = |at: &usize| row[*at] as usize != i && (*at == 0 || row[*at] != row[*at - 1]);
            (0..row.len()).filter(first).count()
        };
        once(&self.counted.distinct, || (0..self.nodes()).into_par_iter().map(distinct).sum())
    }

    /// How many edges lead from a node to itself.
    pub fn self_loops(&self) -> usize {
        (0..self.nodes()).map(|i| self.in_neighbours(i).iter().filter(|&&j| j as usize == i).count()).sum()
    }

    /// How many edges repeat another one.
    pub fn repeated_edges(&self) -> usize {
        (0..self.nodes()).map(|i| self.in_neighbours(i).windows(2).filter(|w| w[0] == w[1]).count()).sum()
    }

    /// How many nodes have no edge at all.
    pub fn isolated_nodes(&self) -> usize {
        let sends = self.out_degrees();
        (0..self.nodes()).filter(|&i| self.in_degree(i) == 0 && sends[i] == 0).count()
    }

    /// Bytes held by the graph.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.offsets)
            + size_of_val(&*self.senders)
            + self.weights.as_deref().map_or(0, size_of_val)
    }

    /// Bytes of memory held by the graph, not counting pages of a mapped file.
    pub fn held_bytes(&self) -> usize {
        self.offsets.held_bytes() + self.senders.held_bytes()
    }

    fn check_rows(&self) -> Result<RowOrder> {
        check_offsets("offsets", &self.offsets, self.senders.len())?;
        let nodes = self.nodes();
        if nodes > Self::MAX_NODES {
            return Err(too_many_nodes(nodes));
        }
        // Small blocks, so that both threads end at the same time.
        let blocks = split_rows(&self.offsets, (self.edges() >> 16).clamp(64, 1 << 16));
        blocks
            .par_windows(2)
            .map(|w| self.check_block(w[0]..w[1]))
            .try_reduce(|| RowOrder::Ascending, |a, b| Ok(if a == RowOrder::Ascending { b } else { a }))
    }

    /// Checks a block of rows: without branches per edge, because it runs over every file that is opened.
    fn check_block(&self, rows: Range<usize>) -> Result<RowOrder> {
        let nodes = self.nodes();
        let first = self.offsets[rows.start] as usize;
        let senders = &self.senders[first..self.offsets[rows.end] as usize];
        let Scanned { largest, falls: all } = pulp::Arch::new().dispatch(Scan(senders));
        crate::store::note_read(size_of_val(senders));
        if largest as usize >= nodes && !senders.is_empty() {
            let at = senders.iter().position(|&j| j as usize >= nodes).unwrap_or(0);
            let place = Place::Element { key: "senders".into(), index: (first + at) as u64 };
            let index = senders[at].to_string();
            return Err(Problem::IndexOutOfRange { index, limit: nodes as u64 }.at(place));
        }
        // The rows ascend if the list falls only where one row ends and the next begins.
        let mut between = 0;
        let mut end_before = self.offsets[rows.start];
        for &start in &self.offsets[rows.start + 1..rows.end] {
            // Of several empty rows at one place only the first counts.
            let at = start as usize - first;
            if start > end_before && at < senders.len() {
                between += u32::from(senders[at - 1] > senders[at]);
            }
            end_before = start;
        }
        Ok(if all == between { RowOrder::Ascending } else { RowOrder::Mixed })
    }
}

/// Looks at every sender once, with the widest vectors that the machine has.
struct Scan<'a>(&'a [u32]);

struct Scanned {
    largest: u32,
    /// How often a sender is followed by a smaller one.
    falls: u32,
}

impl pulp::WithSimd for Scan<'_> {
    type Output = Scanned;

    #[inline(always)]
    fn with_simd<V: pulp::Simd>(self, _: V) -> Scanned {
        let Some((&last, _)) = self.0.split_last() else { return Scanned { largest: 0, falls: 0 } };
        let pairs = self.0.iter().zip(&self.0[1..]);
        let (largest, falls) =
            pairs.fold((last, 0), |(largest, falls), (&a, &b)| (a.max(largest), falls + u32::from(a > b)));
        Scanned { largest, falls }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum RowOrder {
    Ascending,
    Mixed,
}

/// Whether offsets rise from 0 to `length`.
pub fn check_offsets(key: &str, offsets: &[u64], length: usize) -> Result<()> {
    let key = || key.to_string();
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
        return Err(Problem::Length { what: key(), found: 0, expected: 1 }.into());
    };
    if *first != 0 || *last != length as u64 {
        let message = format!("the offsets run from {first} to {last}, not from 0 to {length}");
        return Err(Problem::Corrupt(message).at(Place::Key(key())));
    }
    if let Some(row) = offsets.windows(2).position(|w| w[0] > w[1]) {
        let message = format!("the offsets fall from {} to {}", offsets[row], offsets[row + 1]);
        return Err(Problem::Corrupt(message).at(Place::Element { key: key(), index: row as u64 }));
    }
    Ok(())
}

pub(crate) fn too_many_nodes(nodes: usize) -> Error {
    Problem::TooLarge(format!("{nodes} nodes are more than the {} a graph can have", Graph::MAX_NODES)).into()
}

/// Borders of about `parts` blocks of rows with about the same work each; a row counts as its edges plus a
/// little, so that neither hubs nor millions of empty rows unbalance the blocks.
pub(crate) fn split_rows(offsets: &[u64], parts: usize) -> Vec<usize> {
    const ROW_COST: u64 = 4;
    let rows = offsets.len() - 1;
    let cost = |row: usize| offsets[row] - offsets[0] + ROW_COST * row as u64;
    let mut borders = vec![0];
    for part in 1..=parts as u64 {
        let target = (u128::from(cost(rows)) * u128::from(part) / parts as u128) as u64;
        let last = borders[borders.len() - 1];
        // The first row whose start is at or past the target.
        let (mut low, mut high) = (last, rows);
        while low < high {
            let middle = (low + high) / 2;
            if cost(middle) < target { low = middle + 1 } else { high = middle }
        }
        if low > last {
            borders.push(low);
        }
    }
    if borders[borders.len() - 1] != rows {
        borders.push(rows);
    }
    borders
}

/// Cuts the values of all rows into blocks of about the same work, for editing: each comes with its rows.
pub(crate) fn row_blocks<'a, T>(
    offsets: &[u64],
    width: RowWidth,
    mut values: &'a mut [T],
    parts: usize,
) -> Vec<(Range<usize>, &'a mut [T])> {
    let borders = split_rows(offsets, parts);
    let mut blocks = Vec::with_capacity(borders.len());
    for w in borders.windows(2) {
        let length = match width {
            RowWidth::Edges => (offsets[w[1]] - offsets[w[0]]) as usize,
            RowWidth::Fixed(width) => (w[1] - w[0]) * width,
        };
        let (block, rest) = values.split_at_mut(length);
        blocks.push((w[0]..w[1], block));
        values = rest;
    }
    blocks
}

/// How many values a row of [`row_blocks`] has.
#[derive(Clone, Copy)]
pub(crate) enum RowWidth {
    /// One for each edge of the row.
    Edges,
    /// The same number for each row.
    Fixed(usize),
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A graph with these edges; nodes are taken modulo their number.
    pub(crate) fn graph(nodes: u32, edges: &[(u32, u32)]) -> Graph {
        let (sources, targets): (Vec<u32>, Vec<u32>) =
            edges.iter().map(|&(a, b)| (a % nodes, b % nodes)).unzip();
        Graph::from_edges(nodes as usize, &sources, &targets).expect("a graph")
    }

    #[test]
    fn rows_list_senders_in_order() {
        let g = graph(4, &[(3, 1), (0, 1), (2, 0), (1, 1)]);
        assert_eq!(g.in_neighbours(1), [0, 1, 3]);
        assert_eq!(g.in_neighbours(0), [2]);
        assert_eq!((g.edges(), g.self_loops(), g.isolated_nodes(), g.max_in_degree()), (4, 1, 0, 3));
        assert_eq!(g.out_degrees(), [1, 1, 1, 1]);
    }

    #[test]
    fn forged_rows_are_refused() {
        for (offsets, senders) in [
            (vec![], vec![]),
            (vec![1, 1], vec![0]),
            (vec![0, 2, 1], vec![0]),
            (vec![0, u64::MAX, 1], vec![0]),
            (vec![0, 1], vec![7]),
            (vec![0, 1], vec![]),
        ] {
            assert!(Graph::from_rows(offsets.clone(), senders.clone()).is_err(), "{offsets:?} {senders:?}");
        }
        assert!(Graph::from_edges(2, &[0], &[2]).is_err());
        assert!(Graph::from_edges(2, &[0, 1], &[1]).is_err());
    }

    #[test]
    fn the_first_one_way_edge_is_found() {
        assert_eq!(graph(3, &[(0, 1), (1, 0), (2, 2)]).first_one_way_edge(), None);
        assert_eq!(graph(3, &[(0, 1), (1, 0), (2, 1)]).first_one_way_edge(), Some((2, 1)));
        assert_eq!(graph(3, &[(0, 2)]).first_one_way_edge(), Some((0, 2)));
    }

    proptest! {
        #[test]
        fn edges_survive_and_transposing_twice_is_nothing(
            mut edges in proptest::collection::vec((0u32..20, 0u32..20), 0..200)
        ) {
            let g = graph(20, &edges);
            let mut seen: Vec<_> = g.iter_edges().collect();
            edges.sort_unstable();
            seen.sort_unstable();
            prop_assert_eq!(seen, edges.clone());
            prop_assert_eq!(&g.transpose().transpose(), &g);
            let mut back: Vec<_> = edges.iter().map(|&(a, b)| (b, a)).collect();
            back.sort_unstable();
            prop_assert_eq!(g.is_undirected(), back == edges);
            if let Some((a, b)) = g.first_one_way_edge() {
                let count = |pair| edges.iter().filter(|&&e| e == pair).count();
                prop_assert!(count((a, b)) > count((b, a)));
            }
        }

        #[test]
        fn blocks_cover_all_rows_once(degrees in proptest::collection::vec(0u64..50, 1..300), parts in 1usize..40) {
            let mut offsets = vec![0];
            for d in degrees { offsets.push(offsets[offsets.len() - 1] + d); }
            let borders = split_rows(&offsets, parts);
            prop_assert_eq!(borders[0], 0);
            prop_assert_eq!(borders[borders.len() - 1], offsets.len() - 1);
            prop_assert!(borders.is_sorted_by(|a, b| a < b));
            prop_assert!(borders.len() <= parts + 2);
        }
    }
}
