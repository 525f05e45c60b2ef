//! Whether every edge has an edge back, found in one pass over the rows in their order, on all cores.

use std::hash::{BuildHasher, RandomState};

use rayon::prelude::*;

use crate::Graph;
use crate::graph::split_rows;

/// 2^61 - 1, a prime.
pub(crate) const PRIME: u64 = (1 << 61) - 1;
/// Pairs of nodes below this many are numbers below the prime.
pub(crate) const NODE_BITS: u32 = 30;

/// Whether every edge has an edge back; repeated edges count once, and loops not at all.
///
/// Edges to larger nodes and edges to smaller ones, turned round, are two sets of pairs. Each is the set of roots of a
/// polynomial, and the polynomials are evaluated at two random points: equal sets give equal values, and different ones
/// of `m` edges do so with a probability of at most `(m / 2^61)^2` (Schwartz and Zippel), whatever the graph: for 10^11
/// edges below 2 * 10^-15. Looking for each edge back would read the rows in a random order, which takes more than ten
/// times as long.
pub(crate) fn is_symmetric(graph: &Graph) -> bool {
    if graph.nodes() >> NODE_BITS > 0 {
        return crate::transform::deduplicate(graph.clone()).is_undirected();
    }
    let state = RandomState::new();
    let points = [0, 1].map(|number| state.hash_one(number) & PRIME);
    let blocks = split_rows(graph.offsets(), (graph.edges() >> 16).clamp(1, 1 << 12));
    let [up, down] = blocks
        .par_windows(2)
        .map(|rows| values(graph, rows[0]..rows[1], points))
        .reduce(|| [[1; 2]; 2], |a, b| [0, 1].map(|set| [0, 1].map(|k| product(a[set][k], b[set][k]))));
    up == down
}

/// How many edges have an edge back, of those that were looked at; loops are not, and repeated edges once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgesBack {
    /// Edges that have an edge back.
    pub with: usize,
    /// Edges that were looked at.
    pub of: usize,
    /// Edges that lead from a node to a later one.
    ascending: usize,
}

impl EdgesBack {
    /// Looks for the edge back of about `most` edges at the most, those into every so many nodes.
    pub fn of(graph: &Graph, most: usize) -> EdgesBack {
        let step = graph.edges().div_ceil(most.max(1)).max(1);
        let of_node = |node: usize| {
            let senders = graph.in_neighbours(node);
            let other =
                |at: &usize| senders[*at] as usize != node && (*at == 0 || senders[*at] != senders[*at - 1]);
            let mut found = EdgesBack { with: 0, of: 0, ascending: 0 };
            for at in (0..senders.len()).filter(other) {
                let sender = senders[at] as usize;
                found.of += 1;
                found.ascending += usize::from(sender < node);
                found.with += usize::from(graph.in_neighbours(sender).binary_search(&(node as u32)).is_ok());
            }
            found
        };
        let nodes = (0..graph.nodes()).into_par_iter().step_by(step).map(of_node);
        nodes.reduce(
            || EdgesBack { with: 0, of: 0, ascending: 0 },
            |a, b| EdgesBack { with: a.with + b.with, of: a.of + b.of, ascending: a.ascending + b.ascending },
        )
    }

    /// Whether the graph looks like an undirected one that lists each edge once: hardly an edge has an edge back, where
    /// directions at random would give some, or all lead from earlier nodes to later ones.
    pub fn listed_once(self, graph: &Graph) -> bool {
        const LEAST: usize = 20;
        const BY_CHANCE: f64 = 5.0;
        let nodes = graph.nodes() as f64;
        let by_chance = self.of as f64 * graph.distinct_edges() as f64 / (nodes * nodes);
        let one_order = self.ascending == 0 || self.ascending == self.of;
        self.of >= LEAST && 1000 * self.with <= self.of && (by_chance >= BY_CHANCE || one_order)
    }
}

/// The values of both polynomials at both points, as far as the roots come from these rows.
pub(crate) fn values(graph: &Graph, rows: std::ops::Range<usize>, points: [u64; 2]) -> [[u64; 2]; 2] {
    // Each set's factors in products side by side: one after the other, each would wait for the one before.
    let mut values = [[[1; 2]; SIDE_BY_SIDE]; 2];
    for receiver in rows {
        let senders = graph.in_neighbours(receiver);
        let receiver = receiver as u64;
        let is_new = |at: usize| at == 0 || senders[at - 1] != senders[at];
        for (at, sender) in senders.iter().map(|&sender| u64::from(sender)).enumerate() {
            if !is_new(at) || sender == receiver {
                continue;
            }
            let root = sender.min(receiver) << NODE_BITS | sender.max(receiver);
            let own = &mut values[usize::from(sender > receiver)][at % SIDE_BY_SIDE];
            for (value, point) in own.iter_mut().zip(points) {
                *value = folded(*value, point + (PRIME - root));
            }
        }
    }
    values.map(|set| [0, 1].map(|point| set.iter().fold(1, |all, value| product(all, value[point]))))
}

/// Products that do not wait for each other.
const SIDE_BY_SIDE: usize = 4;

/// The product modulo the prime, of numbers below 2^62.
#[inline]
pub(crate) fn product(a: u64, b: u64) -> u64 {
    let folded = folded(a, b);
    if folded >= PRIME { folded - PRIME } else { folded }
}

/// A number below 2^62 that is equal to the product modulo the prime, of numbers below 2^62.
#[inline]
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let folded = (product as u64 & PRIME) + (product >> 61) as u64;
    // At most 2^61 - 1 + 2^63: fold again.
    (folded & PRIME) + (folded >> 61)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::graph::tests::graph;

    #[test]
    fn products_are_those_of_the_field() {
        for (a, b) in [(0, 5), (PRIME - 1, PRIME - 1), (PRIME, 7), (2 * PRIME - 1, PRIME - 1), (1 << 60, 4)] {
            let expected = (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64;
            assert_eq!(product(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn a_graph_that_lists_each_edge_once_is_recognised() {
        let back = |graph: &Graph| EdgesBack::of(graph, usize::MAX);
        let ascending: Vec<(u32, u32)> = (0..40).map(|at| (at, at + 1)).collect();
        let path = graph(50, &ascending);
        assert_eq!((back(&path).with, back(&path).of), (0, 40));
        assert!(back(&path).listed_once(&path));
        assert!(!back(&graph(50, &ascending[..10])).listed_once(&graph(50, &ascending[..10])), "few");
        // Directions at random: few edges may have none back by chance, many may not.
        let turned = |(a, b): (u32, u32)| if (a * a + b) % 3 == 0 { (b, a) } else { (a, b) };
        let sparse: Vec<(u32, u32)> = ascending.iter().copied().map(turned).collect();
        assert!(!back(&graph(50, &sparse)).listed_once(&graph(50, &sparse)));
        let all: Vec<(u32, u32)> =
            (0..30).flat_map(|a| (a + 1..30).map(move |b| (a, b))).map(turned).collect();
        assert!(back(&graph(30, &all)).listed_once(&graph(30, &all)));
        let mut both = all.clone();
        both.extend(all.iter().take(40).map(|(a, b)| (*b, *a)));
        assert_eq!(back(&graph(30, &both)).with, 80);
        assert!(!back(&graph(30, &both)).listed_once(&graph(30, &both)));
        assert!(EdgesBack::of(&graph(30, &both), 100).of < 200, "some of them");
    }

    proptest! {
        /// As found by looking for every edge back: on any graph, on one made symmetric, and on that with one edge less
        /// or turned round.
        #[test]
        fn found_as_by_looking_for_every_edge_back(
            nodes in 1..20u32,
            mut edges in prop::collection::vec((0..20u32, 0..20u32), 0..60),
            which: prop::sample::Index,
        ) {
            let exact = |graph: &Graph| crate::transform::deduplicate(graph.clone()).is_undirected();
            let any = graph(nodes, &edges);
            prop_assert_eq!(is_symmetric(&any), exact(&any));
            edges.extend(edges.clone().into_iter().map(|(a, b)| (b, a)));
            prop_assert!(is_symmetric(&graph(nodes, &edges)));
            if !edges.is_empty() {
                let at = which.index(edges.len());
                edges.remove(at);
                let less = graph(nodes, &edges);
                prop_assert_eq!(is_symmetric(&less), exact(&less));
            }
        }
    }
}
