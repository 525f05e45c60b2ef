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
/// Edges to larger nodes and edges to smaller ones, turned round, are two sets of pairs. Each is the set of roots of a polynomial, and the
/// polynomials are evaluated at two random points: equal sets give equal values, and different ones of `m` edges do so with a probability of
/// at most `(m / 2^61)^2` (Schwartz and Zippel), whatever the graph: for 10^11 edges below 2 * 10^-15. Looking for each edge back would read the
/// rows in a random order, which takes more than ten times as long.
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

    proptest! {
        /// As found by looking for every edge back: on any graph, on one made symmetric, and on that with one edge less or turned round.
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
