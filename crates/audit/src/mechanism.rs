//! Canaries for the vault's own queries: in rows that nothing else touches, as influential as the unit allows.

use progap_graph::{Dataset, DatasetParts, Features, Graph, Part, Split};
use progap_nn::{Architecture, Batch, Network, Norm, clipped_sum};
use progap_privacy::Event;
use progap_privacy::noise::{AnySource, Randomness};

use super::evidence::{Claim, Evidence, Trial, toss};
use super::{AuditTarget, columns, counts, response, subgraph, tables, votes};
use progap::method::{self, QueryKind};
use progap::plan::{Plan, automatic_delta};
use progap::query::Query;
use progap::settings::{Bounding, Level, Settings};
use progap::vault::{
    AddressedAggregation, Aggregate, Aggregation, Gradient, Message, PairedAggregation, ReceiverWeights,
    Rows, Vault,
};
use progap::{Error, Result};

/// Nodes with known messages, edges that are always there, and canaries.
#[derive(Debug, Clone)]
pub struct World {
    /// The width of the messages.
    pub width: usize,
    /// The message of each node, row after row; of norm one.
    pub messages: Vec<f32>,
    /// Edges in all worlds, from and to.
    pub fixed: Vec<(u32, u32)>,
    /// The canaries.
    pub canaries: Vec<Canary>,
    /// Whether canaries are whole records: the first sender of one that is out has no features, and another label.
    pub records: bool,
    /// A canary with a score of at least this, from all answers together, is taken to be in.
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
    /// edge or undirected edge has one receiver; a record has as many as are given.
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
            records: settings.level == Level::Node,
            threshold: 0.5 * plan.sensitivity * rounds.sqrt(),
        }
    }

    /// The data with the canaries that are in.
    pub fn dataset(&self, coins: &[bool]) -> Result<Dataset> {
        let chosen = self.canaries.iter().zip(coins).filter(|(_, coin)| **coin);
        let edges = self.fixed.iter().chain(chosen.flat_map(|(canary, _)| &canary.edges));
        let (sources, targets): (Vec<u32>, Vec<u32>) = edges.copied().unzip();
        let nodes = self.messages.len() / self.width;
        let (mut messages, mut labels) = (self.messages.clone(), vec![0; nodes]);
        if self.records {
            for (canary, _) in self.canaries.iter().zip(coins).filter(|(_, coin)| !**coin) {
                if let Some(sender) = canary.edges.first().map(|edge| edge.0 as usize) {
                    messages[sender * self.width..][..self.width].fill(0.0);
                    labels[sender] = 1;
                }
            }
        }
        let features = Features::dense(nodes, self.width, messages)?;
        labelled_data(Graph::from_edges(nodes, &sources, &targets)?, features, labels, |_| Part::Train)
    }

    /// Asks a mechanism once about the canaries that coins choose. The mechanism gets the data and answers with one
    /// aggregate after the other, each of the messages with the signs of [`sign`].
    ///
    /// # Errors
    /// Errors of the mechanism.
    pub fn experiment(
        &self,
        randomness: &mut Randomness<AnySource>,
        mechanism: &mut dyn FnMut(Dataset) -> Result<Vec<Vec<f32>>>,
    ) -> Result<Answers<'_>> {
        let coins = toss(randomness, self.canaries.len())?;
        let answers = mechanism(self.dataset(&coins)?)?;
        let row = |values: &[f32], node: u32| {
            let start = node as usize * self.width;
            values[start..start + self.width].to_vec()
        };
        // How much of what the sender said is in the receiver's row, answer by answer.
        let heard = |&(sender, receiver): &(u32, u32), round: usize| {
            let (row, message) = (row(&answers[round], receiver), row(&self.messages, sender));
            let products = row.iter().zip(&message).map(|(a, b)| f64::from(*a) * f64::from(*b));
            f64::from(sign(sender as usize, round)) * products.sum::<f64>()
        };
        let rounds = answers.len();
        let watch = |watched: &[(u32, u32)]| {
            let scale = (watched.len() as f64).sqrt();
            let sum = |round| watched.iter().map(|edge| heard(edge, round)).sum::<f64>() / scale;
            (0..rounds).map(sum).collect::<Vec<f64>>()
        };
        let own = |canary: &Canary| watch(&[canary.edges.first().map_or((0, 0), |edge| (edge.0, edge.0))]);
        Ok(Answers {
            world: self,
            rounds,
            seen: self.canaries.iter().map(|canary| watch(&canary.watched)).collect(),
            own: if self.records { self.canaries.iter().map(own).collect() } else { vec![] },
            coins,
        })
    }
}

/// Whether a node sends its message or the negative of it in a round: signs of a Walsh matrix, with one row of it for
/// each node. For any two rounds half of all nodes send opposite messages, so that noise which both rounds share
/// cancels for them while the messages add up.
pub fn sign(node: usize, round: usize) -> f32 {
    // Any mixture of a node's bits will do: senders of canaries are numbered in steps.
    let row = (node as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    if (row & round as u64).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 }
}

/// The answers of a mechanism about the canaries of a world.
#[derive(Debug, Clone)]
pub struct Answers<'w> {
    world: &'w World,
    coins: Vec<bool>,
    rounds: usize,
    /// For each canary and each answer, how much of the canary is in the rows that it sends to.
    seen: Vec<Vec<f64>>,
    /// The same in its sender's own row, where canaries are records.
    own: Vec<Vec<f64>>,
}

impl Answers<'_> {
    /// All answers together, as strong as what is claimed about all of them.
    pub fn together(&self) -> Evidence {
        let scale = (self.rounds as f64).sqrt();
        let scores = self.seen.iter().map(|seen| seen.iter().sum::<f64>() / scale).collect();
        Evidence { scores, coins: self.coins.clone(), threshold: self.world.threshold }
    }

    /// Two answers alone, from the canaries that were sent with opposite signs in them: certain, where both have the
    /// same noise.
    pub fn pair(&self, one: usize, other: usize) -> Evidence {
        let opposite = |&(sender, _): &(u32, u32)| sign(sender as usize, one) != sign(sender as usize, other);
        let of = |at: usize| self.world.canaries[at].watched.iter().all(opposite);
        let chosen: Vec<usize> = (0..self.coins.len()).filter(|&at| of(at)).collect();
        let score = |&at: &usize| (self.seen[at][one] + self.seen[at][other]) / 2f64.sqrt();
        Evidence {
            scores: chosen.iter().map(score).collect(),
            coins: chosen.iter().map(|&at| self.coins[at]).collect(),
            threshold: self.world.threshold * (2.0 / self.rounds as f64).sqrt(),
        }
    }

    /// The senders' own rows, in which nothing of their records may be: a node sends itself nothing.
    /// Only where canaries are records.
    pub fn own_rows(&self) -> Option<Evidence> {
        let scale = (self.rounds as f64).sqrt();
        let scores: Vec<f64> = self.own.iter().map(|own| own.iter().sum::<f64>() / scale).collect();
        (!scores.is_empty()).then(|| Evidence { scores, coins: self.coins.clone(), threshold: 0.5 * scale })
    }

    /// The tests of the answers: all together, every two of them, and the senders' own rows.
    ///
    /// # Errors
    /// A plan whose noise is no number.
    pub fn trials(&self, settings: &Settings, plan: &Plan, edges: usize, many: &str) -> Result<Vec<Trial>> {
        let (unit, rounds) = (unit_in_words(settings), self.rounds);
        let claim = |rounds| aggregations_claim(plan, edges, rounds);
        let aggregates = if rounds == 1 { "aggregate" } else { "aggregates" };
        let what = format!("{unit}{many} through {rounds} {aggregates}");
        let mut trials = vec![Trial { what, evidence: self.together(), claim: claim(rounds)? }];
        if plan.unit.is_none() || !many.is_empty() {
            return Ok(trials);
        }
        for one in 0..rounds {
            for other in one + 1..rounds {
                let what = format!("{unit} through aggregates {} and {}", one + 1, other + 1);
                // There may be many pairs, and they share the rate of false alarms: one test for each.
                let claim = claim(2)?.by_rates_alone();
                trials.push(Trial { what, evidence: self.pair(one, other), claim });
            }
        }
        if let Some(evidence) = self.own_rows() {
            let what = format!("{unit} in its own row of {rounds} {aggregates}");
            trials.push(Trial { what, evidence, claim: claim(rounds)? });
        }
        Ok(trials)
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

/// The vault's answers to as many questions as a training run asks.
///
/// # Errors
/// As [`Vault::ask`].
pub fn ask_vault(
    dataset: Dataset,
    settings: &Settings,
    plan: &Plan,
    randomness: Randomness<AnySource>,
) -> Result<Vec<Vec<f32>>> {
    let messages = dataset.features().to_dense(dataset.nodes());
    let width = dataset.features().columns();
    let weights = receiver_weights(settings, dataset.nodes());
    every_round(open(dataset, settings, plan, randomness)?, settings, |vault, round| match &weights {
        Some(weights) => ask_round_to(vault, (&messages, width), round, (weights, settings.weighs_pairs())),
        None => ask_round(vault, &messages, width, round, &format!("aggregate {}", round + 1)),
    })
}

/// A vault with data that the plan was not made for, larger than those: the sizes have no part in the noise of a query.
///
/// # Errors
/// As [`Vault::open`].
pub(super) fn open(
    dataset: Dataset,
    settings: &Settings,
    plan: &Plan,
    randomness: Randomness<AnySource>,
) -> Result<Vault> {
    Vault::open(dataset, settings, Plan { noise_values: u64::MAX, ..plan.clone() }, randomness)
}

/// The answers to a question that is asked once a round, for as many rounds as a training run has.
pub(super) fn every_round(
    mut vault: Vault,
    settings: &Settings,
    ask: impl Fn(&mut Vault, usize) -> Result<Vec<f32>>,
) -> Result<Vec<Vec<f32>>> {
    (0..method::aggregations(settings)).map(|round| ask(&mut vault, round)).collect()
}

/// The vault's answer in one round, under the name of a query.
///
/// # Errors
/// As [`Vault::ask`].
pub fn ask_round(
    vault: &mut Vault,
    messages: &[f32],
    width: usize,
    round: usize,
    label: &str,
) -> Result<Vec<f32>> {
    let values = signed(messages, width, round);
    let aggregates = &vec![Aggregate { values: values.into(), width }];
    vault.ask(Aggregation { label: label.into(), message: Message::Input(1), aggregates })
}

/// As [`ask_round`], where receivers have weights of their own, or share edges by them: the sums without these.
fn ask_round_to(
    vault: &mut Vault,
    (messages, width): (&[f32], usize),
    round: usize,
    (weights, in_pairs): (&ReceiverWeights, bool),
) -> Result<Vec<f32>> {
    let values = signed(messages, width, round);
    let aggregates = &vec![Aggregate { values: values.into(), width }];
    let (label, message) = (format!("aggregate {}", round + 1), Message::Input(1));
    if in_pairs {
        return vault.ask(PairedAggregation { label, message, aggregates, weights });
    }
    let answer = vault.ask(AddressedAggregation { label, message, aggregates, weights })?;
    Ok(answer.chunks_exact(width + 1).flat_map(|row| &row[..width]).copied().collect())
}

/// The weights of receivers under audit, where a run has any: large ones and small ones in turn.
fn receiver_weights(settings: &Settings, nodes: usize) -> Option<ReceiverWeights> {
    let weight = |node: usize| if node.is_multiple_of(2) { 1.0 } else { settings.known_weight };
    (settings.weighs_receivers() || settings.weighs_pairs())
        .then(|| ReceiverWeights::nearest((0..nodes).map(weight)))
}

fn signed(messages: &[f32], width: usize, round: usize) -> Vec<f32> {
    let signed = |(node, message): (usize, &[f32])| {
        let sign = sign(node, round);
        message.iter().map(move |value| sign * value).collect::<Vec<f32>>()
    };
    messages.chunks_exact(width).enumerate().flat_map(signed).collect()
}

/// Audits the queries that a training run with these settings and this noise makes, on the edges of this data set.
///
/// # Errors
/// Settings that contradict each other or the data.
pub fn audit(
    dataset: &Dataset,
    settings: &Settings,
    plan: &Plan,
    canaries: Option<usize>,
    fresh: impl Fn() -> Randomness<AnySource>,
) -> Result<Vec<Trial>> {
    let target = AuditTarget { dataset, settings, plan, canaries, fresh: &fresh };
    match method::asks_of_edges(settings) {
        Some(QueryKind::Response) => response::audit(&target),
        Some(QueryKind::Votes) => votes::audit(&target),
        Some(QueryKind::SubgraphGradient) => subgraph::audit(&target),
        _ => audit_sums(&target),
    }
}

/// Audits noisy aggregates, and at node level noisy sums of gradients.
fn audit_sums(target: &AuditTarget<'_>) -> Result<Vec<Trial>> {
    let AuditTarget { dataset, settings, plan, canaries, fresh } = *target;
    let mut trials = Vec::new();
    let rounds = method::aggregations(settings);
    if rounds > 0 {
        let edges = dataset.graph().edges();
        for (at, receivers) in receivers(settings).into_iter().enumerate() {
            let world = World::new(dataset.graph(), settings, plan, receivers, canaries);
            let mut vault = |canaries| ask_vault(canaries, settings, plan, fresh());
            let answers = world.experiment(&mut fresh(), &mut vault)?;
            let many = if at == 0 { "" } else { " with many receivers" };
            trials.extend(answers.trials(settings, plan, edges, many)?);
        }
    }
    trials.extend(counts::audit(target)?);
    trials.extend(columns::audit(target)?);
    trials.extend(tables::audit(target)?);
    if plan.steps > 0 {
        let gradients = Gradients::new(settings, canaries.unwrap_or(GRADIENTS).min(CANARIES))?;
        let evidence = gradients
            .experiment(settings, &mut fresh(), &mut |data| gradients.ask(data, settings, plan, fresh()))?;
        let noise = plan.gradient_multiplier * settings.clip;
        let claim = Claim::of(&Event::gaussian(noise, settings.clip)?, plan.delta)?;
        trials.push(Trial { what: "a record through one sum of gradients".into(), evidence, claim });
    }
    Ok(trials)
}

/// The claim about all aggregates together.
///
/// # Errors
/// A plan whose noise is no number.
pub fn aggregation_claim(settings: &Settings, plan: &Plan, edges: usize) -> Result<Claim> {
    aggregations_claim(plan, edges, method::aggregations(settings))
}

/// The claim about this many aggregates.
fn aggregations_claim(plan: &Plan, edges: usize, rounds: usize) -> Result<Claim> {
    if plan.unit.is_none() {
        return Ok(Claim::none(automatic_delta(edges)));
    }
    let one = Event::gaussian(plan.aggregate_multiplier * plan.sensitivity, plan.sensitivity)?;
    Claim::of(&one.repeated(rounds as u64)?, plan.delta)
}

pub(super) fn unit_in_words(settings: &Settings) -> &'static str {
    match settings.level {
        Level::Node => "a record",
        _ if settings.undirected => "an undirected edge",
        _ => "an edge",
    }
}

/// Canaries for sums of gradients: records with a feature of their own, so that each moves a weight that no other
/// moves.
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
    /// This many canaries, two at least.
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
        let mut gradients = Gradients { network, canaries, first: 0, sign: 1.0 };
        let two = |coins: [bool; 2]| {
            let coins: Vec<bool> =
                coins.into_iter().chain(std::iter::repeat_n(false, canaries - 2)).collect();
            let part = |node: usize| if coins[node] { Part::Train } else { Part::Unused };
            gradients.exact(&canary_data(empty(canaries)?, one_hot(&coins)?, part)?, settings.clip)
        };
        let (one, other) = (two([true, false])?, two([false, true])?);
        let first = one.iter().zip(&other).position(|(own, others)| *own != 0.0 && *others == 0.0);
        gradients.first = first.ok_or(Error::internal("a canary's gradient is zero"))?;
        gradients.sign = one[gradients.first].signum();
        Ok(gradients)
    }

    /// The sum over the training nodes **without any noise**, clipped to a norm; what broken mechanisms are made of.
    ///
    /// # Errors
    /// Data that do not fit the canaries.
    pub fn exact(&self, dataset: &Dataset, clip: f64) -> Result<Vec<f64>> {
        let (rows, none) = (Rows::of_nodes(dataset)?, vec![]);
        let inputs = rows.inputs(&none)?;
        let train = rows.nodes(Part::Train);
        Ok(clipped_sum(&self.network, Batch::new(&inputs, rows.labels(), &train, 2)?, clip)?)
    }

    /// The noisy sum of the vault, not divided by the size of a batch.
    ///
    /// # Errors
    /// As [`Vault::ask`].
    pub fn ask(
        &self,
        dataset: Dataset,
        settings: &Settings,
        plan: &Plan,
        randomness: Randomness<AnySource>,
    ) -> Result<Vec<f32>> {
        // A record is protected better than this when it is not always in the batch; here it always is.
        let train_nodes = dataset.split().map_or(0, |split| split.count(Part::Train));
        let settings = Settings { batch_size: train_nodes, ..settings.clone() };
        let always = |query: &Query| match &query.event {
            Event::PoissonSampled { event, .. } => {
                Some(Event::PoissonSampled { rate: 1.0, event: event.clone() })
            }
            other => Some(other.clone()),
        };
        let queries = plan.queries.map(always).ok_or(Error::internal("every query has an event"))?;
        let mut vault = open(dataset, &settings, &Plan { queries, ..plan.clone() }, randomness)?;
        let max_parameters = self.network.trained_count();
        let (network, aggregates) = (&self.network, &vec![]);
        let question = Gradient { label: "gradient 0/0", network, max_parameters, aggregates };
        let mean = vault.ask(question)?;
        Ok(mean.iter().map(|value| value * settings.batch_size as f32).collect())
    }

    /// Asks a mechanism once for the sum of the gradients of the canaries that coins choose.
    ///
    /// # Errors
    /// Errors of the mechanism.
    pub fn experiment(
        &self,
        settings: &Settings,
        randomness: &mut Randomness<AnySource>,
        mechanism: &mut dyn FnMut(Dataset) -> Result<Vec<f32>>,
    ) -> Result<Evidence> {
        let coins = toss(randomness, self.canaries)?;
        let nodes = coins.len();
        let part = |node: usize| if coins[node] { Part::Train } else { Part::Unused };
        // A record that is out has neither feature nor label of its own.
        let labels = coins.iter().map(|&coin| if coin { 0 } else { 1 }).collect();
        let answer = mechanism(labelled_data(empty(nodes)?, one_hot(&coins)?, labels, part)?)?;
        let scores =
            answer[self.first..][..nodes].iter().map(|&value| self.sign * f64::from(value)).collect();
        Ok(Evidence { scores, coins, threshold: 0.5 * settings.clip })
    }
}

/// A graph without edges.
pub(super) fn empty(nodes: usize) -> Result<Graph> {
    Ok(Graph::from_rows(vec![0u64; nodes + 1], Vec::<u32>::new())?)
}

/// One large feature for each row that is in.
fn one_hot(coins: &[bool]) -> Result<Features> {
    let rows = coins.len();
    let columns: Vec<u32> = (0..rows as u32).filter(|&row| coins[row as usize]).collect();
    let offsets: Vec<u64> = std::iter::once(0)
        .chain(coins.iter().scan(0, |count, &coin| {
            *count += u64::from(coin);
            Some(*count)
        }))
        .collect();
    let values = vec![1e5f32; columns.len()];
    Ok(Features::sparse(rows, rows, offsets, columns, Some(values.into()))?)
}

/// Nodes of one class in a data set of two.
pub(super) fn canary_data(graph: Graph, features: Features, part: impl Fn(usize) -> Part) -> Result<Dataset> {
    let labels = vec![0; graph.nodes()];
    labelled_data(graph, features, labels, part)
}

fn labelled_data(
    graph: Graph,
    features: Features,
    labels: Vec<u32>,
    part: impl Fn(usize) -> Part,
) -> Result<Dataset> {
    let nodes = graph.nodes();
    let split = Some(Split::from_parts((0..nodes).map(part)));
    let classes = vec!["0".into(), "1".into()];
    Ok(Dataset::new(DatasetParts {
        split,
        ..DatasetParts::of("canaries", graph, features, labels, classes)
    })?)
}

/// Nodes without an edge, each of a class of its own: those that coins choose are training records.
pub(super) fn classes_of_one(coins: &[bool], features: Features) -> Result<Dataset> {
    let nodes = coins.len();
    let part = |&coin: &bool| if coin { Part::Train } else { Part::Unused };
    let split = Some(Split::from_parts(coins.iter().map(part)));
    let (labels, names) =
        (0..nodes as u32).map(|class| (class, class.to_string())).unzip::<_, _, Vec<u32>, _>();
    Ok(Dataset::new(DatasetParts {
        split,
        ..DatasetParts::of("canaries", empty(nodes)?, features, labels, names)
    })?)
}

/// A vector of length one, another for each node.
pub(super) fn unit_vector(node: usize, width: usize) -> impl Iterator<Item = f32> {
    let mut state = node as u64;
    let mut values: Vec<f32> = (0..width)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 24) as f32 - 0.499
        })
        .collect();
    progap::rows::normalise(&mut values);
    values.into_iter()
}
