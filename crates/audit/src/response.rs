//! Canaries for a noisy graph: possible edges, each there or not by a coin, and looked for in the answer.

use progap_graph::{Dataset, Features, Graph, Part};
use progap_privacy::noise::{AnySource, Randomness};

use super::AuditTarget;
use super::evidence::{Claim, Evidence, Trial, toss};
use super::mechanism::{canary_data, open, unit_in_words};
use progap::plan::Plan;
use progap::settings::Settings;
use progap::vault::NoisyGraph;
use progap::{Error, Result};

/// As many canaries as usual.
const CANARIES: usize = 100_000;
/// In a sparse graph one of this many possible edges is a canary; the others are not there.
const SPARSE: usize = 10;

/// Nodes and the possible edges among them that are canaries; where undirected edges are protected, both directions of
/// each.
#[derive(Debug, Clone)]
pub struct Pairs {
    nodes: usize,
    undirected: bool,
    canaries: Vec<(u32, u32)>,
}

impl Pairs {
    /// This many canaries, every `spread`-th possible edge. With a spread of one half of all bits are set, where the
    /// answer tells the most; with a larger one the graph is sparse, as real ones are.
    pub fn new(settings: &Settings, canaries: usize, spread: usize) -> Pairs {
        let undirected = settings.undirected;
        let possible = |nodes: usize| nodes * (nodes - 1) / if undirected { 2 } else { 1 };
        let nodes = (2usize..).find(|&nodes| possible(nodes) >= canaries * spread).unwrap_or(2);
        let all = (0..nodes as u32).flat_map(|a| (0..nodes as u32).map(move |b| (a, b)));
        let all = all.filter(|&(a, b)| if undirected { a < b } else { a != b });
        Pairs { nodes, undirected, canaries: all.step_by(spread).take(canaries).collect() }
    }

    fn directions(&self, (a, b): (u32, u32)) -> impl Iterator<Item = (u32, u32)> {
        [(a, b), (b, a)].into_iter().take(if self.undirected { 2 } else { 1 })
    }

    /// Asks a mechanism once for a noisy graph of the canaries that coins choose. A canary scores by how many of its
    /// directions are there, and is taken to be in where all are.
    ///
    /// # Errors
    /// Errors of the mechanism.
    pub fn experiment(
        &self,
        randomness: &mut Randomness<AnySource>,
        mechanism: &mut dyn FnMut(Dataset) -> Result<Graph>,
    ) -> Result<Evidence> {
        let coins = toss(randomness, self.canaries.len())?;
        let chosen = self.canaries.iter().zip(&coins).filter(|(_, coin)| **coin);
        let (sources, targets): (Vec<u32>, Vec<u32>) =
            chosen.flat_map(|(&pair, _)| self.directions(pair)).unzip();
        let graph = Graph::from_edges(self.nodes, &sources, &targets)?;
        let features = Features::dense(self.nodes, 1, vec![0.0; self.nodes])?;
        let noisy = mechanism(canary_data(graph, features, |_| Part::Train)?)?;
        let is_there = |(from, to): &(u32, u32)| noisy.in_neighbours(*to as usize).contains(from);
        let score = |&pair: &(u32, u32)| self.directions(pair).filter(is_there).count() as f64;
        let threshold = if self.undirected { 2.0 } else { 1.0 };
        Ok(Evidence { scores: self.canaries.iter().map(score).collect(), coins, threshold })
    }
}

/// The claim about the answer to one possible edge; the rest of the budget pays for the number of edges.
///
/// # Errors
/// A plan without a noisy graph.
pub fn response_claim(plan: &Plan) -> Result<Claim> {
    let response = plan.response.ok_or(Error::internal("the plan does not pay for a noisy graph"))?;
    Ok(Claim::pure(response.epsilon))
}

/// Audits the noisy graph of a run with these settings and this noise: where half of all edges are there, and where few
/// are.
///
/// # Errors
/// Settings that contradict each other.
pub(crate) fn audit(target: &AuditTarget<'_>) -> Result<Vec<Trial>> {
    let AuditTarget { settings, plan, canaries, fresh, .. } = *target;
    let claim = response_claim(plan)?;
    let trial = |(spread, what): (usize, &str)| {
        let pairs = Pairs::new(settings, canaries.unwrap_or(CANARIES), spread);
        let mut vault = |data| open(data, settings, plan, fresh())?.ask(NoisyGraph { available: None });
        let evidence = pairs.experiment(&mut fresh(), &mut vault)?;
        Ok(Trial { what: format!("{} through {what}", unit_in_words(settings)), evidence, claim })
    };
    [(1, "a noisy graph"), (SPARSE, "a sparse noisy graph")].into_iter().map(trial).collect()
}
