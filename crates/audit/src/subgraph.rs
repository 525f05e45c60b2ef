//! Canaries for sums of gradients over nodes with their senders: records that turn the gradient of every node they
//! reach.

use progap_graph::{Dataset, Features, Graph, Part};
use progap_nn::{Batch, Neighbours, Norm, Sage, SageArchitecture, sage_clipped_sum};
use progap_privacy::Event;
use progap_privacy::noise::{AnySource, Randomness};

use super::AuditTarget;
use super::evidence::{Claim, Evidence, Trial, toss};
use super::mechanism::{GRADIENTS, ROWS, canary_data, open, receivers};
use progap::plan::{Plan, max_terms};
use progap::query::Query;
use progap::settings::Settings;
use progap::vault::{Rows, SubgraphGradient};
use progap::{Error, Result};

/// Records, each with a feature of its own and the same number of receivers, which have none. By a coin the feature is
/// large or as large below zero, so that the gradients of the record and of all its receivers point one way or the
/// other along one weight, which nothing else moves: the largest change that the proof allows.
#[derive(Debug)]
pub struct Subgraphs {
    sage: Sage,
    canaries: usize,
    receivers: usize,
    /// In which direction a record that is in moves its weight.
    sign: f64,
}

impl Subgraphs {
    /// This many canaries, two at least, with this many receivers each.
    ///
    /// # Errors
    /// None in practice: the shape is fixed.
    pub fn new(canaries: usize, receivers: usize) -> Result<Subgraphs> {
        let canaries = canaries.max(2);
        let shape = SageArchitecture { hidden: 1, convolutions: 1, ..SageArchitecture::new(canaries, 2) };
        let mut sage = Sage::new(SageArchitecture { norm: Norm::None, normalise: false, ..shape }, 1)?;
        // The weights of the features come first. They are zero, so that the slopes behind them are the same for every
        // record; and these slopes have one sign for what a node receives and for its own row.
        let (features, others) = sage.parameters_mut().split_at_mut(canaries);
        features.fill(0.0);
        others.iter_mut().for_each(|weight| *weight = weight.abs());
        let mut subgraphs = Subgraphs { sage, canaries, receivers, sign: 1.0 };
        subgraphs.sign = subgraphs.slope()?.signum();
        Ok(subgraphs)
    }

    /// How a record that is in moves its weight, before any clipping that matters.
    fn slope(&self) -> Result<f64> {
        let rows = Rows::of_nodes(&self.dataset(&vec![true; self.canaries])?)?;
        let (inputs, labels) = (rows.own()?, vec![0; self.nodes()]);
        let alone = vec![0u64; self.nodes() + 1];
        let neighbours = Neighbours::new(self.nodes(), &alone, &[])?;
        let gradient = sage_clipped_sum(&self.sage, Batch::new(&inputs, &labels, &[0], 2)?, neighbours, 1.0)?;
        match gradient[0] {
            slope if slope.abs() > 0.99 => Ok(slope),
            _ => Err(Error::internal("a canary's gradient is not along its own weight")),
        }
    }

    fn nodes(&self) -> usize {
        self.canaries * (self.receivers + 1)
    }

    /// The data with the features that coins choose.
    fn dataset(&self, coins: &[bool]) -> Result<Dataset> {
        let (nodes, step) = (self.nodes(), self.receivers + 1);
        let own = |node: usize| node.is_multiple_of(step);
        let offsets: Vec<u64> = (0..=nodes).map(|node| node.div_ceil(step) as u64).collect();
        let columns: Vec<u32> = (0..self.canaries as u32).collect();
        let values: Vec<f32> = coins.iter().map(|&coin| if coin { 1e5 } else { -1e5 }).collect();
        let features = Features::sparse(nodes, self.canaries, offsets, columns, Some(values.into()))?;
        let (sources, targets): (Vec<u32>, Vec<u32>) = (0..nodes)
            .filter(|&node| !own(node))
            .map(|node| ((node / step * step) as u32, node as u32))
            .unzip();
        canary_data(Graph::from_edges(nodes, &sources, &targets)?, features, |_| Part::Train)
    }

    /// The noisy sum of the vault over all nodes, not divided by their number.
    ///
    /// # Errors
    /// As [`Vault::ask`](progap::vault::Vault::ask).
    pub fn ask(
        &self,
        dataset: Dataset,
        settings: &Settings,
        plan: &Plan,
        randomness: Randomness<AnySource>,
    ) -> Result<Vec<f32>> {
        // A record is protected better than this when few of its terms are in the batch; here all are.
        let settings = Settings { batch_size: dataset.nodes(), ..settings.clone() };
        let (nodes, terms) = (dataset.nodes() as u64, max_terms(&settings, dataset.nodes()));
        let all = |query: &Query| match query.event {
            Event::SampledWithoutReplacement { sigma, term_sensitivity, .. } => {
                Event::sampled_without_replacement(nodes, nodes, terms, sigma, term_sensitivity).ok()
            }
            _ => None,
        };
        let queries = plan.queries.map(all).ok_or(Error::internal("gradients are sampled"))?;
        let mut vault = open(dataset, &settings, &Plan { queries, ..plan.clone() }, randomness)?;
        let mean = vault.ask(SubgraphGradient { label: "gradient 0/0", sage: &self.sage })?;
        Ok(mean.iter().map(|value| value * settings.batch_size as f32).collect())
    }

    /// Asks a mechanism once for the sum of all gradients.
    ///
    /// # Errors
    /// Errors of the mechanism.
    pub fn experiment(
        &self,
        randomness: &mut Randomness<AnySource>,
        mechanism: &mut dyn FnMut(Dataset) -> Result<Vec<f32>>,
    ) -> Result<Evidence> {
        let coins = toss(randomness, self.canaries)?;
        let answer = mechanism(self.dataset(&coins)?)?;
        let scores = answer[..self.canaries].iter().map(|&value| self.sign * f64::from(value)).collect();
        Ok(Evidence { scores, coins, threshold: 0.0 })
    }
}

/// The claim about a record all of whose terms are in one sum.
///
/// # Errors
/// A plan whose noise is no number.
pub fn subgraph_claim(plan: &Plan) -> Result<Claim> {
    let noise = plan.gradient_multiplier * plan.sensitivity;
    Claim::of(&Event::gaussian(noise, plan.max_terms as f64 * plan.sensitivity)?, plan.delta)
}

/// Audits one sum of gradients of a run with these settings and this noise.
///
/// # Errors
/// Settings that contradict each other.
pub(crate) fn audit(target: &AuditTarget<'_>) -> Result<Vec<Trial>> {
    let AuditTarget { settings, plan, canaries, fresh, .. } = *target;
    let claim = subgraph_claim(plan)?;
    let trial = |(at, receivers): (usize, usize)| {
        let most = (ROWS / (receivers + 1)).max(100);
        let subgraphs = Subgraphs::new(canaries.unwrap_or(GRADIENTS).min(most), receivers)?;
        let mut vault = |data| subgraphs.ask(data, settings, plan, fresh());
        let evidence = subgraphs.experiment(&mut fresh(), &mut vault)?;
        let many = if at == 0 { "" } else { " with many receivers" };
        let what = format!("a record{many} through one sum of gradients over nodes with their senders");
        Ok(Trial { what, evidence, claim })
    };
    receivers(settings).into_iter().enumerate().map(trial).collect()
}
