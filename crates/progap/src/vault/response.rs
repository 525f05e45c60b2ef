//! The graph by randomised response on every possible edge.

use progap_graph::Graph;
use progap_privacy::Event;
use progap_privacy::noise::{BlockDigest, QueryDigest, SparseResponse};

use super::noise::not_planned;
use super::{Asked, Noise, Private, VaultQuery};
use crate::query::Query;
use crate::{Result, memory};

/// The name of the query for the number of edges.
pub(crate) const EDGE_COUNT: &str = "edge count";
/// The name of the query for the edges.
pub(crate) const EDGE_RESPONSE: &str = "edge response";

/// The query for the number of edges, for its event.
pub(crate) fn edge_count(event: Event) -> Query {
    Query::new(EDGE_COUNT, "number of edges with Laplace noise", event)
}

/// The query for the edges, for the event of one of them.
pub(crate) fn edge_response(event: Event) -> Query {
    Query::new(EDGE_RESPONSE, "randomised response on every possible edge", event)
}

/// The graph by randomised response: its number of edges with Laplace noise first, then an answer for every possible
/// edge, or pair of nodes where undirected edges are protected. Time and memory follow the edges that come out.
///
/// # Proof definition
/// In the vault's unit neighbours differ in one bit of the list of possible edges (pairs). The count has sensitivity 1,
/// and given the count each bit is answered on its own by [`SparseResponse`] at the plan's epsilon: the composition of
/// the plan's two events ([proof](progap_privacy::proofs::pure)). The randomness is bound to the whole graph, so that
/// two graphs never share any.
#[derive(Debug, Clone, Copy)]
pub struct NoisyGraph {
    /// The bytes that the answer may take: a graph that would not fit is refused by its noisy size, which is private
    /// already.
    pub available: Option<u64>,
}

impl VaultQuery for NoisyGraph {
    type Answer = Graph;

    fn spec(&self, _: &Private) -> Result<Asked> {
        let bit = Event::RandomizedResponse { true_positive: 1.0, false_positive: 0.0 };
        // Both are sampled exactly, from no table.
        Ok(Asked { queries: vec![edge_count(Event::laplace(1.0, 1.0)?), edge_response(bit)], values: 0 })
    }

    fn evaluate(self, private: &Private, noise: &mut Noise) -> Result<Graph> {
        let response = noise.response.ok_or_else(not_planned)?;
        let [count, bit] = [response.count.event(1.0)?, SparseResponse::event(response.epsilon)?];
        if !noise.charged.iter().map(|query| &query.event).eq([&count, &bit]) {
            return Err(not_planned());
        }
        let pairs = private.settings.undirected;
        let graph = if pairs {
            progap_graph::transform::symmetrise(private.graph.clone())
        } else {
            private.graph.clone()
        };
        let nodes = graph.nodes() as u64;
        // The possible senders of a node: all others; of a pair the larger id is the receiver.
        let row = |node: u64| if pairs { node } else { nodes - 1 };
        let bits: u64 = (0..nodes).map(row).sum();
        let ones = if pairs { graph.edges() / 2 } else { graph.edges() };
        let exact = graph_digest(&graph, response.epsilon)?;
        let mut purpose = noise.query("noisy graph")?.bind(&exact);
        let moved = response.count.sample(&mut purpose.stream());
        let count = (ones as i64).saturating_add(moved).clamp(1, bits.max(1) as i64) as f64;
        let answer = SparseResponse::new(response.epsilon, count / bits.max(1) as f64)?;
        let directions = if pairs { 2.0 } else { 1.0 };
        let bytes = memory::graph(directions * answer.expected(bits as f64, count));
        memory::check("the noisy graph", bytes, self.available)?;
        let place = |start: u64, node: u64, sender: u64| {
            start + if pairs || sender < node { sender } else { sender - 1 }
        };
        let mut start = 0;
        let all_ones = (0..nodes).flat_map(|node| {
            let first = start;
            start += row(node);
            let senders = graph.in_neighbours(node as usize).iter().map(|&sender| u64::from(sender));
            senders
                .filter(move |&sender| !pairs || sender < node)
                .map(move |sender| place(first, node, sender))
        });
        let (mut offsets, mut senders) = (vec![0u64], Vec::new());
        let (mut node, mut first) = (0, 0);
        answer.report(&mut purpose.stream(), bits, all_ones, |bit| {
            while bit >= first + row(node) {
                first += row(node);
                node += 1;
                offsets.push(senders.len() as u64);
            }
            let at = bit - first;
            senders.push(if pairs || at < node { at } else { at + 1 } as u32);
        });
        offsets.resize(nodes as usize + 1, senders.len() as u64);
        let noisy = Graph::from_rows(offsets, senders)?;
        Ok(if pairs { progap_graph::transform::symmetrise(noisy) } else { noisy })
    }
}

/// The digest of a whole graph and of the budget it is asked with.
fn graph_digest(graph: &Graph, epsilon: f64) -> Result<QueryDigest> {
    let blocks = |values: &[u32]| values.chunks(1 << 16).map(BlockDigest::new::<u32>).collect::<Vec<_>>();
    let degrees: Vec<u32> = (0..graph.nodes()).map(|node| graph.in_degree(node) as u32).collect();
    let digests = [blocks(&degrees), blocks(graph.senders())].concat();
    Ok(QueryDigest::new(&[epsilon, graph.nodes() as f64], digests))
}
