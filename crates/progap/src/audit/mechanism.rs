//! Canaries for the vault's own queries: in rows that nothing else touches, as influential as the unit allows.

use progap_graph::{Dataset, DatasetParts, Features, Graph, NodeIds, Part, Split};
use progap_nn::{Architecture, Batch, Network, Norm, clipped_sum};
use progap_privacy::Event;
use progap_privacy::noise::{Randomness, Source};

use super::evidence::{Claim, Evidence, Trial, toss};
use super::{response, subgraph};
use crate::plan::{Plan, automatic_delta};
use crate::settings::{Bounding, Level, Method, Settings};
use crate::vault::{Aggregate, Message, Rows, Vault};
use crate::{Error, Result, method};

/// Nodes with known messages, edges that are always there, and canaries.
#[derive(Debug, Clone)]
pub struct World {
    /// The width of the messages.
    pub width: usize,
    /// What each node sends, row after row; of length one.
    pub messages: Vec<f32>,
    /// Edges in all worlds, from and to.
    pub fixed: Vec<(u32, u32)>,
    /// The canaries.
    pub canaries: Vec<Canary>,
    /// A canary with a score of at least this is taken to be in.
    pub threshold: f64,
}

/// Something that is in the data or not.
#[derive(Debug, Clone)]
pub struct Canary {
    /// Its edges, from and to.
    pub edges: Vec<(u32, u32)>,
    /// Where to look for it: how much of what the first node sends is in the row of the second?
    pub watched: Vec<(u32, u32)>,
}

/// Rows that canaries take, ten times as many on request: more canaries give sharper bounds and take longer.
pub(super) const ROWS: usize = 400_000;
/// As many canaries as usual.
const CANARIES: usize = 100_000;
/// The most receivers of a record.
const RECEIVERS: usize = 2000;
/// As many as usual in a sum of gradients, where each has a weight of its own.
pub(super) const GRADIENTS: usize = 20_000;

impl World {
    /// Canaries of the settings' unit beside the edges of a graph, as many as there is room for or as are asked for. An
    /// edge or friendship has one receiver; a record has as many as are given.
    pub fn new(
        base: &Graph,
        settings: &Settings,
        plan: &Plan,
        receivers: usize,
        canaries: Option<usize>,
    ) -> World {
        let usual = (ROWS / (receivers + 1)).clamp(100, CANARIES);
        let canaries = canaries.unwrap_or(usual).min(10 * ROWS / (receivers + 1));
        let width = settings.hidden;
        let first = |canary: usize| (base.nodes() + canary * (receivers + 1)) as u32;
        let nodes = first(canaries) as usize;
        let canaries = (0..canaries).map(|canary| {
            let sender = first(canary);
            let mut edges: Vec<_> = (1..=receivers as u32).map(|at| (sender, sender + at)).collect();
            if settings.undirected {
                edges.push((sender + 1, sender));
            }
            Canary { watched: edges.clone(), edges }
        });
        let rounds = method::aggregations(settings) as f64;
        World {
            width,
            // Any messages of length one will do; these use all columns.
            messages: (0..nodes).flat_map(|node| unit_vector(node, width)).collect(),
            fixed: base.iter_edges().collect(),
            canaries: canaries.collect(),
            threshold: 0.5 * plan.sensitivity * rounds.sqrt(),
        }
    }

    /// The data with the canaries that are in.
    pub fn dataset(&self, coins: &[bool]) -> Result<Dataset> {
        let chosen = self.canaries.iter().zip(coins).filter(|(_, coin)| **coin);
        let edges = self.fixed.iter().chain(chosen.flat_map(|(canary, _)| &canary.edges));
        let (sources, targets): (Vec<u32>, Vec<u32>) = edges.copied().unzip();
        let nodes = self.messages.len() / self.width;
        let features = Features::dense(nodes, self.width, self.messages.clone())?;
        canary_data(Graph::from_edges(nodes, &sources, &targets)?, features, |_| Part::Train)
    }

    /// Asks a mechanism once about the canaries that coins choose. The mechanism gets the data and answers with one
    /// aggregate after the other, of [`World::messages`] and of their negatives in turn: noise that is used twice
    /// cancels while the messages add up.
    ///
    /// # Errors
    /// What the mechanism returns.
    pub fn experiment<S: Source>(
        &self,
        randomness: &mut Randomness<S>,
        mechanism: &mut dyn FnMut(Dataset) -> Result<Vec<Vec<f32>>>,
    ) -> Result<Evidence> {
        let coins = toss(randomness, self.canaries.len())?;
        let answers = mechanism(self.dataset(&coins)?)?;
        let row = |values: &[f32], node: u32| {
            let start = node as usize * self.width;
            values[start..start + self.width].to_vec()
        };
        let score = |canary: &Canary| {
            let mut sum = 0.0;
            for &(sender, receiver) in &canary.watched {
                let message = row(&self.messages, sender);
                for (round, answer) in answers.iter().enumerate() {
                    let products = row(answer, receiver);
                    let product: f64 =
                        products.iter().zip(&message).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    sum += if round % 2 == 0 { product } else { -product };
                }
            }
            sum / ((canary.watched.len() * answers.len()) as f64).sqrt()
        };
        Ok(Evidence { scores: self.canaries.iter().map(score).collect(), coins, threshold: self.threshold })
    }
}

/// The numbers of receivers with which a record has its largest influence, and with which a bound that is not kept
/// would let it have twice as much.
pub fn receivers(settings: &Settings) -> Vec<usize> {
    let most = (settings.max_degree as usize).min(RECEIVERS);
    match (settings.level, settings.bounding) {
        (Level::None | Level::Edge, _) => vec![1],
        (Level::Node, Bounding::Weight) => vec![4, 4 * most],
        (Level::Node, Bounding::Cap | Bounding::Sample) => vec![most, 4 * most],
    }
}

/// What the vault answers when it is asked as often as a training run asks it.
///
/// # Errors
/// As [`Vault::aggregate`].
pub fn ask_vault<S: Source>(
    dataset: Dataset,
    settings: &Settings,
    plan: &Plan,
    randomness: Randomness<S>,
) -> Result<Vec<Vec<f32>>> {
    let width = dataset.features().columns();
    let negated = dataset.features().to_dense(dataset.nodes()).iter().map(|v| -v).collect::<Vec<f32>>();
    let aggregates = vec![Aggregate { values: negated.into(), width }];
    let mut vault = Vault::new(dataset, settings, randomness)?;
    // The world of canaries is larger than the data that the plan was made for.
    let plan = &Plan { noise_values: u64::MAX, ..plan.clone() };
    (0..method::aggregations(settings))
        .map(|round| {
            let query = format!("aggregate {}", round + 1);
            vault.aggregate(&query, Message::Input(round % 2), &aggregates, plan)
        })
        .collect()
}

/// Audits the queries that a training run with these settings and this noise makes, on the edges of this data set.
///
/// # Errors
/// Settings that contradict each other or the data.
pub fn audit<S: Source>(
    dataset: &Dataset,
    settings: &Settings,
    plan: &Plan,
    canaries: Option<usize>,
    fresh: impl Fn() -> Randomness<S>,
) -> Result<Vec<Trial>> {
    match settings.method {
        Method::EdgeRand => return response::audit(settings, plan, canaries, fresh),
        Method::DpGnn => return subgraph::audit(settings, plan, canaries, fresh),
        _ => {}
    }
    let mut trials = Vec::new();
    let rounds = method::aggregations(settings);
    if rounds > 0 {
        let claim = aggregation_claim(settings, plan, dataset.graph().edges())?;
        for (at, receivers) in receivers(settings).into_iter().enumerate() {
            let world = World::new(dataset.graph(), settings, plan, receivers, canaries);
            let mut vault = |canaries| ask_vault(canaries, settings, plan, fresh());
            let evidence = world.experiment(&mut fresh(), &mut vault)?;
            let many = if at == 0 { "" } else { " with many receivers" };
            let aggregates = if rounds == 1 { "aggregate" } else { "aggregates" };
            let what = format!("{}{many} through {rounds} {aggregates}", unit_in_words(settings));
            trials.push(Trial { what, evidence, claim });
        }
    }
    if settings.level == Level::Node {
        let gradients = Gradients::new(settings, canaries.unwrap_or(GRADIENTS).min(CANARIES))?;
        // A record is protected better than this when it is not always in the batch; here it always is.
        let plan = Plan { rate: 1.0, noise_values: u64::MAX, ..plan.clone() };
        let evidence = gradients
            .experiment(settings, &mut fresh(), &mut |data| gradients.ask(data, settings, &plan, fresh()))?;
        let noise = plan.gradient_multiplier * settings.clip;
        let claim = Claim::of(&Event::gaussian(noise, settings.clip)?, plan.delta)?;
        trials.push(Trial { what: "a record through one sum of gradients".into(), evidence, claim });
    }
    Ok(trials)
}

/// What is claimed about all aggregates together.
///
/// # Errors
/// A plan whose noise is no number.
pub fn aggregation_claim(settings: &Settings, plan: &Plan, edges: usize) -> Result<Claim> {
    if plan.unit.is_none() {
        return Ok(Claim::none(automatic_delta(edges)));
    }
    let one = Event::gaussian(plan.aggregate_multiplier * plan.sensitivity, plan.sensitivity)?;
    Claim::of(&one.repeated(method::aggregations(settings) as u64)?, plan.delta)
}

pub(super) fn unit_in_words(settings: &Settings) -> &'static str {
    match settings.level {
        Level::Node => "a record",
        _ if settings.undirected => "a friendship",
        _ => "an edge",
    }
}

/// Canaries for sums of gradients: records with a feature of their own, so that each moves a weight that no other moves.
#[derive(Debug)]
pub struct Gradients {
    network: Network,
    canaries: usize,
    /// Where in a gradient the first canary's own weight is; those of the others follow.
    first: usize,
    /// In which direction a canary moves it.
    sign: f64,
}

impl Gradients {
    /// So many canaries, two at least.
    ///
    /// # Errors
    /// Settings that the network does not take.
    pub fn new(settings: &Settings, canaries: usize) -> Result<Gradients> {
        let canaries = canaries.max(2);
        let shape = Architecture::new(vec![canaries], 2);
        let shape = Architecture { hidden: 1, norm: Norm::None, normalise: false, ..shape };
        let mut network = Network::new(shape, 1)?;
        // Small weights and large features: nearly all of a gradient is on the feature's own weight, and clipped.
        network.parameters_mut().iter_mut().for_each(|weight| *weight *= 1e-3);
        let rows = Rows::of_nodes(&canary_data(empty(canaries)?, one_hot(canaries)?, |_| Part::Train)?)?;
        let (none, labels) = (vec![], vec![0; canaries]);
        let inputs = rows.inputs(&none)?;
        let gradient = |node: u32| {
            Batch::new(&inputs, &labels, &[node], 2)
                .and_then(|batch| clipped_sum(&network, batch, settings.clip))
        };
        let (one, other) = (gradient(0)?, gradient(1)?);
        let first = one.iter().zip(&other).position(|(own, others)| *own != 0.0 && *others == 0.0);
        let first = first.ok_or(Error::Contradiction("a canary's gradient is zero"))?;
        Ok(Gradients { canaries, first, sign: one[first].signum(), network })
    }

    /// The noisy sum of the vault, not divided by the size of a batch.
    ///
    /// # Errors
    /// As [`Vault::gradient`].
    pub fn ask<S: Source>(
        &self,
        dataset: Dataset,
        settings: &Settings,
        plan: &Plan,
        randomness: Randomness<S>,
    ) -> Result<Vec<f32>> {
        let mut vault = Vault::new(dataset, settings, randomness)?;
        let grid = vault.gradient_grid(self.network.trained_count(), settings, plan)?;
        let mean = vault.gradient("gradient 0/0", &self.network, &vec![], &grid, settings, plan)?;
        Ok(mean.iter().map(|value| value * settings.batch_size as f32).collect())
    }

    /// Asks a mechanism once for the sum of the gradients of the canaries that coins choose.
    ///
    /// # Errors
    /// What the mechanism returns.
    pub fn experiment<S: Source>(
        &self,
        settings: &Settings,
        randomness: &mut Randomness<S>,
        mechanism: &mut dyn FnMut(Dataset) -> Result<Vec<f32>>,
    ) -> Result<Evidence> {
        let coins = toss(randomness, self.canaries)?;
        let nodes = coins.len();
        let part = |node: usize| if coins[node] { Part::Train } else { Part::Unused };
        let answer = mechanism(canary_data(empty(nodes)?, one_hot(nodes)?, part)?)?;
        let scores =
            answer[self.first..][..nodes].iter().map(|&value| self.sign * f64::from(value)).collect();
        Ok(Evidence { scores, coins, threshold: 0.5 * settings.clip })
    }
}

/// A graph without edges.
fn empty(nodes: usize) -> Result<Graph> {
    Ok(Graph::from_rows(vec![0u64; nodes + 1], Vec::<u32>::new())?)
}

/// One large feature for each row.
fn one_hot(rows: usize) -> Result<Features> {
    let columns: Vec<u32> = (0..rows as u32).collect();
    let offsets: Vec<u64> = (0..=rows as u64).collect();
    Ok(Features::sparse(rows, rows, offsets, columns, Some(vec![1e5f32; rows].into()))?)
}

/// Nodes of one class in a data set of two.
pub(super) fn canary_data(graph: Graph, features: Features, part: impl Fn(usize) -> Part) -> Result<Dataset> {
    let nodes = graph.nodes();
    Ok(Dataset::new(DatasetParts {
        name: "canaries".into(),
        graph,
        features,
        labels: vec![0; nodes].into(),
        class_names: vec!["0".into(), "1".into()],
        feature_names: vec![],
        split: Some(Split::from_parts((0..nodes).map(part))),
        node_ids: NodeIds::Position,
    })?)
}

/// A vector of length one, another for each node.
fn unit_vector(node: usize, width: usize) -> impl Iterator<Item = f32> {
    let mut state = node as u64;
    let mut values: Vec<f32> = (0..width)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 24) as f32 - 0.499
        })
        .collect();
    crate::rows::normalise(&mut values);
    values.into_iter()
}
