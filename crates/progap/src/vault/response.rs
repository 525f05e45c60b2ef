//! The graph by randomised response on every possible edge.

use progap_graph::Graph;
use progap_privacy::Event;
use progap_privacy::noise::{BlockDigest, QueryDigest, SparseResponse};

use super::Vault;
use crate::plan::Plan;
use crate::query::Query;
use crate::{Error, Result, memory};

/// The query for the number of edges, for its event.
pub(crate) fn edge_count(event: Event) -> Query {
    Query::new("edge count", "number of edges with Laplace noise", event)
}

/// The query for the edges, for the event of one of them.
pub(crate) fn edge_response(event: Event) -> Query {
    Query::new("edge response", "randomised response on every possible edge", event)
}

impl Vault {
    /// The graph by randomised response: its number of edges with Laplace noise first, then an answer for every possible
    /// edge, or pair of nodes where friendships are protected. Time and memory follow the edges that come out.
    ///
    /// # Proof definition
    /// In the vault's unit neighbours differ in one bit of the list of possible edges (pairs). The count has
    /// sensitivity 1, and given the count each bit is answered on its own by [`SparseResponse`] at `response.epsilon`: the
    /// composition of the plan's two events (docs/privacy.md#pure). The randomness is bound to the whole graph, so that two
    /// graphs never share any.
    ///
    /// # Errors
    /// A graph that would not fit in the available bytes: said by its noisy size, which is private already.
    pub fn noisy_graph(&mut self, plan: &Plan, available: Option<u64>) -> Result<Graph> {
        let response = plan.response.ok_or(Error::Internal("the plan does not pay for a noisy graph"))?;
        let pairs = self.settings.undirected;
        let graph =
            if pairs { progap_graph::transform::symmetrise(self.graph.clone()) } else { self.graph.clone() };
        let nodes = graph.nodes() as u64;
        // The possible senders of a node: all others; of a pair the larger id is the receiver.
        let row = |node: u64| if pairs { node } else { nodes - 1 };
        let bits: u64 = (0..nodes).map(row).sum();
        let ones = if pairs { graph.edges() / 2 } else { graph.edges() };
        let exact = graph_digest(&graph, response.epsilon)?;
        let mut purpose = self.randomness.query("noisy graph")?.bind(&exact);
        let noise = response.count.sample(&mut purpose.stream());
        let count = (ones as i64).saturating_add(noise).clamp(1, bits.max(1) as i64) as f64;
        let answer = SparseResponse::new(response.epsilon, count / bits.max(1) as f64)?;
        self.record_response(plan)?;
        let directions = if pairs { 2.0 } else { 1.0 };
        let bytes = memory::graph(directions * answer.expected(bits as f64, count));
        memory::check("the noisy graph", bytes, available)?;
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

    /// Records the noisy graph, which is asked for once, or was kept before an interruption.
    pub(crate) fn record_response(&mut self, plan: &Plan) -> Result<()> {
        let response = plan.response.ok_or(Error::Internal("the plan does not pay for a noisy graph"))?;
        if self.asked.is_empty() {
            self.record(edge_count(response.count.event(1.0)?));
            self.record(edge_response(SparseResponse::event(response.epsilon)?));
        }
        Ok(())
    }
}

/// The digest of a whole graph and of the budget it is asked with.
fn graph_digest(graph: &Graph, epsilon: f64) -> Result<QueryDigest> {
    let blocks = |values: &[u32]| values.chunks(1 << 16).map(BlockDigest::new::<u32>).collect::<Vec<_>>();
    let degrees: Vec<u32> = (0..graph.nodes()).map(|node| graph.in_degree(node) as u32).collect();
    let digests = [blocks(&degrees), blocks(graph.senders())].concat();
    Ok(QueryDigest::new(&[epsilon, graph.nodes() as f64], digests))
}
