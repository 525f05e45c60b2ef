//! The vault: private data goes in, and comes out only through an accounted mechanism.
//!
//! There is no getter for what is private. At edge level that is the graph; at node level it is the graph and the
//! rows of the nodes (features and labels). What leaves the vault is a noisy aggregate ([`Vault::aggregate`]), a
//! noisy sum of clipped gradients ([`Vault::gradient`], [`Vault::subgraph_gradient`]) or a noisy graph
//! ([`Vault::noisy_graph`]), and each of them is recorded as an [`Event`]. What measures or predicts without protection
//! is called `unprotected_...`, is for the data's holder alone, and never trains anything. So the list of
//! events is the list of queries in the proof, and code that never holds a vault is post-processing by construction.
//!
//! A method cannot read an edge:
//!
//! ```compile_fail,E0616
//! fn peek(vault: &progap::internals::Vault) -> usize {
//!     vault.graph.edges()
//! }
//! ```
//!
//! nor, at node level, a row:
//!
//! ```compile_fail,E0616
//! fn peek(vault: &progap::internals::Vault) -> u32 {
//!     vault.rows.labels[0]
//! }
//! ```

use std::num::{NonZeroU32, NonZeroU64};

use progap_graph::{Dataset, DatasetParts, Graph, Part, aggregate};
use progap_nn::{Batch, Neighbours, Network, Sage, accuracy, clipped_sum, sage_clipped_sum};
use progap_privacy::Event;
use progap_privacy::noise::{
    AnySource, Bernoulli, BlockDigest, GradientGrid, MessageInt, MessageType, Provenance, Quantiser,
    QueryDigest, Randomness, RoundedGaussian, RunKey, SenderBound, Source, SparseResponse, Summation,
    choose_scale,
};

use crate::plan::{Plan, influence};
use crate::propagate;
pub use crate::rows::{Aggregate, Aggregates, Message, Rows};
use crate::settings::{Bounding, Level, Settings};
use crate::{Error, Result, memory};

/// Private data, and the randomness that protects it.
pub struct Vault {
    level: Level,
    graph: Graph,
    /// Method dp-gnn: all edges, for predictions, which nothing protects.
    every_edge: Option<Graph>,
    bound: SenderBound,
    out_degrees: Vec<u32>,
    rows: Rows,
    train: Vec<u32>,
    randomness: Randomness<AnySource>,
    events: Vec<(Event, u64)>,
    /// Values of noise drawn from tables.
    drawn: u64,
    /// The noise of the last aggregation: most often that of the next, too.
    table: Option<RoundedGaussian>,
}

impl Vault {
    /// Locks a data set up. Repeated edges and self-loops are removed first: an edge is there or not.
    pub fn new<S: Source>(dataset: Dataset, settings: &Settings, randomness: Randomness<S>) -> Result<Self> {
        let mut randomness = randomness.erase();
        let DatasetParts { graph, features, labels, class_names, split, .. } = dataset.into_parts();
        let split = split.ok_or_else(|| Error::Unsuitable("the data set has no split".into()))?;
        let graph = progap_graph::transform::deduplicate(progap_graph::transform::remove_self_loops(graph));
        let bound = match (settings.level, settings.bounding) {
            (Level::None | Level::Edge, _) => SenderBound::Edge,
            (Level::Node, Bounding::Weight) => SenderBound::Weight { bound: influence(settings) },
            (Level::Node, Bounding::Cap) => SenderBound::Cap { bound: influence(settings) },
            (Level::Node, Bounding::Sample) => SenderBound::Sample { max_edges: settings.max_degree },
        };
        let every_edge = settings.method.recipe().reads_senders().then(|| graph.clone());
        let graph = match bound {
            SenderBound::Sample { max_edges } => sample_out_edges(&graph, max_edges, &mut randomness)?,
            _ => graph,
        };
        let out_degrees = graph.out_degrees();
        let rows = Rows::new(features, labels, split, class_names.len())?;
        let train = rows.nodes(Part::Train);
        Ok(Vault {
            level: settings.level,
            graph,
            every_edge,
            bound,
            out_degrees,
            rows,
            train,
            randomness,
            events: vec![],
            drawn: 0,
            table: None,
        })
    }

    /// The rows, where they are public.
    pub fn public_rows(&self) -> Option<&Rows> {
        (self.level != Level::Node).then_some(&self.rows)
    }

    /// The graph, where it is public: at level none.
    pub fn public_graph(&self) -> Option<&Graph> {
        (self.level == Level::None).then_some(&self.graph)
    }

    /// Where the noise comes from.
    pub fn provenance(&self) -> Provenance {
        self.randomness.provenance()
    }

    /// What has been asked so far, equal events in a row counted.
    pub fn events(&self) -> &[(Event, u64)] {
        &self.events
    }

    /// The run's key, to be kept beside what was asked; none where noise is reproducible.
    pub(crate) fn key(&self) -> Option<&RunKey> {
        self.randomness.key()
    }

    /// From here on nobody can repeat the noise that was drawn so far. Called when an answer is about to be kept, and at the
    /// end of each epoch, so that a resumed run stands at the same key.
    pub(crate) fn forget(&mut self) {
        self.randomness.forget();
    }

    /// Takes over what a run asked before it was interrupted.
    pub(crate) fn resume(&mut self, events: Vec<(Event, u64)>) {
        self.events = events;
    }

    /// Takes over the `number`-th aggregate, kept before an interruption. If that happened in the moment between being
    /// asked and being recorded it is recorded now.
    pub(crate) fn resume_aggregate(&mut self, number: usize, plan: &Plan) -> Result<()> {
        if self.asked() < number { self.record_aggregation(plan) } else { Ok(()) }
    }

    /// The number of aggregations that were asked for.
    fn asked(&self) -> usize {
        let asked = |(event, count): &(Event, u64)| match event {
            Event::Gaussian { .. } | Event::NonPrivate => *count as usize,
            _ => 0,
        };
        self.events.iter().map(asked).sum()
    }

    fn record_aggregation(&mut self, plan: &Plan) -> Result<()> {
        self.record(match self.level {
            Level::None => Event::NonPrivate,
            _ => Event::gaussian(plan.aggregate_multiplier * plan.sensitivity, plan.sensitivity)?,
        });
        Ok(())
    }

    fn record(&mut self, event: Event) {
        match self.events.last_mut() {
            Some((last, count)) if *last == event => *count += 1,
            _ => self.events.push((event, 1)),
        }
    }

    /// Counts values of noise before they are drawn: the plan's delta pays for so many and no more.
    fn draw(&mut self, values: usize, plan: &Plan) -> Result<()> {
        self.drawn += values as u64;
        if self.drawn > plan.noise_values {
            return Err(Error::Contradiction("more noise would be drawn than the plan pays for"));
        }
        Ok(())
    }

    /// The number of nodes, which is public.
    pub fn nodes(&self) -> usize {
        self.graph.nodes()
    }

    /// The columns of the rows, which are public.
    pub fn columns(&self) -> usize {
        self.rows.features.columns()
    }

    /// From now on the rows hold what an encoder says of the features, normalised, instead of the features. Each row
    /// changes by itself, and the encoder left the vault before: this asks nothing.
    pub fn encode(&mut self, encoder: &Network) -> Result<()> {
        self.rows = self.rows.encoded(encoder)?;
        Ok(())
    }

    /// One noisy aggregation: what each node says, normalised, summed over the in-neighbours, with Gaussian noise.
    ///
    /// # Proof definition
    /// For every message of networks and aggregates that left this vault before, the result is post-processing of the
    /// Gaussian mechanism with sensitivity `plan.sensitivity` and noise `plan.aggregate_multiplier * plan.sensitivity`
    /// with respect to the vault's unit (docs/privacy.md#units, #sender-weights, #rounding). A node's message depends on
    /// its own record and on what left the vault before. At level none there is no noise and no promise.
    ///
    /// # Errors
    /// A query name that was used before: its noise would be used twice.
    pub fn aggregate(
        &mut self,
        query: &str,
        message: Message<'_>,
        aggregates: &Aggregates,
        plan: &Plan,
    ) -> Result<Vec<f32>> {
        let messages = self.rows.messages(message, aggregates)?;
        let width = message.width(aggregates, (self.columns(), self.rows.classes));
        if self.level == Level::None {
            let mut sums = vec![0f32; messages.len()];
            aggregate::sum(&self.graph, width, &messages, None, &mut sums)?;
            self.record_aggregation(plan)?;
            return Ok(sums);
        }
        self.draw(messages.len(), plan)?;
        let noise = plan.aggregate_multiplier * plan.sensitivity;
        // The largest weight there could be, not the largest there is: the scale shows in every value, and which degrees
        // occur is private.
        let largest = match self.bound {
            SenderBound::Weight { bound } => bound.max(1.0),
            _ => 1.0,
        };
        let query = self.randomness.query(query)?;
        let threads = rayon::current_num_threads();
        let few = self.graph.max_in_degree() <= i16::MAX as usize;
        let noisy = match choose_scale(noise, largest)? {
            (MessageType::I8, scale) if few => {
                let (mut sums, scale) = self.integer_sums::<i8, i32>(&messages, width, scale)?;
                self.table(noise, scale)?.release(&mut sums, scale, query, threads)
            }
            (_, scale) if few => {
                let (mut sums, scale) = self.integer_sums::<i16, i32>(&messages, width, scale)?;
                self.table(noise, scale)?.release(&mut sums, scale, query, threads)
            }
            (_, scale) => {
                let (mut sums, scale) = self.integer_sums::<i16, i64>(&messages, width, scale)?;
                self.table(noise, scale)?.release(&mut sums, scale, query, threads)
            }
        };
        self.record_aggregation(plan)?;
        Ok(noisy.into_parts().0)
    }

    /// The noise for messages at a scale; built anew only where it is another than before.
    fn table(&mut self, noise: f64, scale: NonZeroU32) -> Result<&RoundedGaussian> {
        let before = self.table.take().filter(|table| table.is_for_messages(noise, scale));
        let table = match before {
            Some(table) => table,
            None => RoundedGaussian::for_messages(noise, scale)?,
        };
        Ok(self.table.insert(table))
    }

    fn integer_sums<T, N>(&self, messages: &[f32], width: usize, scale: u32) -> Result<(Vec<N>, NonZeroU32)>
    where
        T: MessageInt + Send + Sync,
        N: aggregate::Sum<T>,
    {
        let quantiser = Quantiser::<T>::new(scale)?;
        let budgets: Vec<_> = self
            .out_degrees
            .iter()
            .map(|&degree| quantiser.budget(self.bound, degree))
            .collect::<std::result::Result<_, _>>()?;
        let mut integers = vec![T::default(); messages.len()];
        quantiser.rows(messages, width, &budgets, &mut integers)?;
        // A hub with more in-neighbours than 32 bits can hold messages of needs 64.
        let mut sums = vec![N::default(); messages.len()];
        aggregate::sum(&self.graph, width, &integers, None, &mut sums)?;
        Ok((sums, quantiser.scale()))
    }

    /// One noisy gradient: each training node joins the batch with probability `plan.rate`, its gradient is clipped, and
    /// noise is added to the sum. Divided by the expected size of the batch.
    ///
    /// # Proof definition
    /// For every network without batch normalisation, and aggregates that left this vault before, the result is
    /// post-processing of a Poisson-sampled Gaussian mechanism with multiplier `plan.gradient_multiplier`, with respect to
    /// the record of a node (docs/privacy.md#gradient-sums).
    pub fn gradient(
        &mut self,
        query: &str,
        network: &Network,
        aggregates: &Aggregates,
        grid: &GradientGrid,
        settings: &Settings,
        plan: &Plan,
    ) -> Result<Vec<f32>> {
        // Which records join must be known before the sum is; the noise is drawn for the sum.
        let mut stream = self.randomness.purpose(&batch_of(query))?.stream();
        let coin = Bernoulli::new(plan.rate)?;
        let batch = coin.choose(&mut stream, &self.train);
        let inputs = self.rows.inputs(aggregates)?;
        let rows = Batch::new(&inputs, &self.rows.labels, &batch, self.rows.classes)?;
        let sum = clipped_sum(network, rows, settings.clip)?;
        self.draw(sum.len(), plan)?;
        let noisy = grid.privatise(&sum, self.randomness.query(query)?)?;
        self.record(grid.event().poisson_sampled(plan.rate)?);
        let expected = settings.batch_size as f64;
        Ok(noisy.value().iter().map(|g| (g / expected) as f32).collect())
    }

    /// The grid for [`Vault::gradient`] with up to so many parameters.
    pub fn gradient_grid(&self, parameters: usize, settings: &Settings, plan: &Plan) -> Result<GradientGrid> {
        let terms = self.rows.split.count(Part::Train) as u64;
        Ok(GradientGrid::new(
            settings.clip,
            parameters,
            plan.gradient_multiplier,
            Summation::sequential(terms),
        )?)
    }

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
    pub fn noisy_graph(&mut self, settings: &Settings, plan: &Plan, available: Option<u64>) -> Result<Graph> {
        let response =
            plan.response.ok_or(Error::Contradiction("the plan does not pay for a noisy graph"))?;
        let pairs = settings.undirected;
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
        let response =
            plan.response.ok_or(Error::Contradiction("the plan does not pay for a noisy graph"))?;
        if self.events.is_empty() {
            self.record(response.count.event(1.0)?);
            self.record(SparseResponse::event(response.epsilon)?);
        }
        Ok(())
    }

    /// One noisy gradient over a batch of training nodes, drawn uniformly without replacement, each with its senders;
    /// every sender kept at most `settings.max_degree` of its edges when the vault was locked. Divided by the size of the
    /// batch.
    ///
    /// # Proof definition
    /// For every model without batch normalisation, whose parameters left this vault before, the result is post-processing
    /// of a noisy sum of which a record touches at most `plan.max_terms` terms, each moved by at most the grid's
    /// sensitivity, with multiplier `plan.gradient_multiplier` (docs/privacy.md#subgraph-batches). The batch does not depend on
    /// the data. Where it holds no touched term the sums are equal to the last bit; where it holds `I` of them,
    /// `I` times twice the clip and one rounding to the grid are at most `I` times the grid's sensitivity.
    pub fn subgraph_gradient(
        &mut self,
        query: &str,
        sage: &Sage,
        grid: &GradientGrid,
        settings: &Settings,
        plan: &Plan,
    ) -> Result<Vec<f32>> {
        let mut stream = self.randomness.purpose(&batch_of(query))?.stream();
        let mut batch = self.train.clone();
        let size = settings.batch_size.min(batch.len());
        for at in 0..size {
            let left = NonZeroU64::new((batch.len() - at) as u64).expect("at is below the length");
            batch.swap(at, at + stream.below(left) as usize);
        }
        batch.truncate(size);
        let inputs = self.rows.own()?;
        let rows = Batch::new(&inputs, &self.rows.labels, &batch, self.rows.classes)?;
        let senders = Neighbours::new(self.graph.nodes(), self.graph.offsets(), self.graph.senders())?;
        let sum = sage_clipped_sum(sage, rows, senders, settings.clip)?;
        self.draw(sum.len(), plan)?;
        let noisy = grid.privatise(&sum, self.randomness.query(query)?)?;
        let (population, drawn) = (self.train.len() as u64, size as u64);
        let event = Event::sampled_without_replacement(
            population,
            drawn,
            plan.max_terms,
            grid.noise(),
            grid.sensitivity(),
        )?;
        self.record(event);
        Ok(noisy.value().iter().map(|g| (g / size as f64) as f32).collect())
    }

    /// The grid for [`Vault::subgraph_gradient`] with so many parameters: a touched term moves from one clipped gradient to any
    /// other.
    pub fn subgraph_grid(&self, parameters: usize, settings: &Settings, plan: &Plan) -> Result<GradientGrid> {
        let terms = Summation::sequential(settings.batch_size as u64);
        Ok(GradientGrid::new(2.0 * settings.clip, parameters, plan.gradient_multiplier, terms)?)
    }

    /// What a GraphSAGE's convolution reads of the senders, **without any protection**: for the data's holder alone, and the
    /// statement says so. Each sender speaks to all its receivers, with the weight that sampling gives it on average.
    pub fn unprotected_aggregates(&self, sage: &Sage) -> Result<Vec<Vec<f32>>> {
        Ok(sage.aggregates(&self.rows.own()?, &self.senders_on_average())?)
    }

    /// As [`Vault::unprotected_accuracy`], of a GraphSAGE.
    pub fn unprotected_sage_accuracy(&self, sage: &Sage, part: Part) -> Result<f64> {
        let (inputs, nodes) = (self.rows.own()?, self.rows.nodes(part));
        if nodes.is_empty() {
            return Ok(f64::NAN);
        }
        let batch = Batch::new(&inputs, &self.rows.labels, &nodes, self.rows.classes)?;
        Ok(sage.accuracy_along(batch, &self.senders_on_average())?)
    }

    fn senders_on_average(&self) -> propagate::Senders<'_> {
        match (&self.every_edge, self.bound) {
            (Some(graph), SenderBound::Sample { max_edges }) => {
                let weight = |degree: u32| (max_edges as f32 / degree.max(1) as f32).min(1.0);
                propagate::Senders::weighted(graph, graph.out_degrees().into_iter().map(weight).collect())
            }
            _ => propagate::Senders::sum(&self.graph),
        }
    }

    /// The accuracy on a part of the nodes, **without any protection**: at node level it is for the data owner alone, and the
    /// statement says so. Of no nodes it is not a number.
    pub fn unprotected_accuracy(
        &self,
        network: &Network,
        aggregates: &Aggregates,
        part: Part,
    ) -> Result<f64> {
        let inputs = self.rows.inputs(aggregates)?;
        let nodes = self.rows.nodes(part);
        if nodes.is_empty() {
            return Ok(f64::NAN);
        }
        Ok(accuracy(network, Batch::new(&inputs, &self.rows.labels, &nodes, self.rows.classes)?)?)
    }
}

/// The name under which the batch of a query is drawn.
fn batch_of(query: &str) -> String {
    format!("batch of {query}")
}

/// The digest of a whole graph and of the budget it is asked with.
fn graph_digest(graph: &Graph, epsilon: f64) -> Result<QueryDigest> {
    let blocks = |values: &[u32]| values.chunks(1 << 16).map(BlockDigest::new::<u32>).collect::<Vec<_>>();
    let degrees: Vec<u32> = (0..graph.nodes()).map(|node| graph.in_degree(node) as u32).collect();
    let digests = [blocks(&degrees), blocks(graph.senders())].concat();
    Ok(QueryDigest::new(&[epsilon, graph.nodes() as f64], digests))
}

/// Keeps at most `max_edges` of each sender's edges, chosen at random by the sender alone. The choice is the same in every process
/// of a run, and no secret: the bound holds whichever edges are kept.
fn sample_out_edges(graph: &Graph, max_edges: u32, randomness: &mut Randomness<AnySource>) -> Result<Graph> {
    let mut stream = randomness.lasting_purpose("sample of out-edges")?.stream();
    let by_sender = graph.transpose();
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    for sender in 0..by_sender.nodes() {
        let mut receivers = by_sender.in_neighbours(sender).to_vec();
        let keep = receivers.len().min(max_edges as usize);
        for at in 0..keep {
            let left = NonZeroU64::new((receivers.len() - at) as u64).expect("at is below the length");
            let other = at + if keep < receivers.len() { stream.below(left) as usize } else { 0 };
            receivers.swap(at, other);
        }
        sources.extend(std::iter::repeat_n(sender as u32, keep));
        targets.extend_from_slice(&receivers[..keep]);
    }
    Ok(Graph::from_edges(graph.nodes(), &sources, &targets)?)
}

#[cfg(test)]
mod tests {
    use progap_graph::synth::SocialNetwork;
    use progap_graph::{Buffer, Ratios};
    use progap_nn::Architecture;

    use super::*;
    use crate::plan::PublicSizes;

    const SIZES: PublicSizes =
        PublicSizes { edges: 6000, train_nodes: 225, nodes: 300, columns: 500, classes: 3 };

    fn data() -> Dataset {
        let dataset = SocialNetwork::new(300).edges(6000).classes(3).seed(5).generate().expect("a network");
        dataset.or_random_split(Ratios::default(), 5).expect("a split")
    }

    /// One aggregation with noise that depends on the seed alone: what differs between two of them are the messages.
    fn aggregate(
        dataset: Dataset,
        settings: &Settings,
        message: impl Fn(&Network) -> Message<'_>,
    ) -> Vec<f32> {
        let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
        let inputs = vec![dataset.features().columns()];
        let network = Network::new(Architecture::new(inputs, dataset.classes()), 1).expect("a network");
        let mut vault = Vault::new(dataset, settings, Randomness::from_seed(3)).expect("a vault");
        vault.aggregate("query", message(&network), &vec![], &plan).expect("an aggregate")
    }

    fn all_messages() -> [fn(&Network) -> Message<'_>; 2] {
        [|network| Message::Embedding { network, branch: 0 }, |network| Message::Class { network }]
    }

    fn distance(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn no_more_noise_is_drawn_than_the_plan_pays_for() {
        let settings = Settings { batch_size: 50, ..Settings::new(Level::Edge) };
        let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
        let plan = Plan { noise_values: 300 * 3, ..plan };
        let network =
            Network::new(Architecture::new(vec![data().features().columns()], 3), 1).expect("a network");
        let mut vault = Vault::new(data(), &settings, Randomness::from_seed(3)).expect("a vault");
        let mut ask = |query| vault.aggregate(query, Message::Class { network: &network }, &vec![], &plan);
        ask("first").expect("paid for");
        ask("second").expect_err("not paid for");
    }

    #[test]
    fn an_edge_moves_one_row_by_one_at_most() {
        let settings = Settings { batch_size: 50, ..Settings::new(Level::Edge) };
        for message in all_messages() {
            let mut parts = data().into_parts();
            let receiver = (0..300).find(|&node| parts.graph.in_degree(node) > 3).expect("a receiver");
            let dropped = parts.graph.in_neighbours(receiver)[1];
            let (mut sources, mut targets) = (vec![], vec![]);
            for node in 0..300 {
                for &sender in parts.graph.in_neighbours(node) {
                    if (node, sender) != (receiver, dropped) {
                        sources.push(sender);
                        targets.push(node as u32);
                    }
                }
            }
            parts.graph = Graph::from_edges(300, &sources, &targets).expect("a graph");
            let without = aggregate(Dataset::new(parts).expect("a data set"), &settings, message);
            let with = aggregate(data(), &settings, message);
            let width = with.len() / 300;
            let own = receiver * width..(receiver + 1) * width;
            let moved = distance(&with[own.clone()], &without[own]);
            assert!(moved > 0.9 && moved <= 1.0 + 1e-6, "a whole message and no more: {moved}");
            assert!((distance(&with, &without) - moved).abs() < 1e-6, "no other row moves");
        }
    }

    fn without_sender(sender: u32) -> Dataset {
        let mut parts = data().into_parts();
        let (mut sources, mut targets) = (vec![], vec![]);
        for node in 0..300 {
            for &other in parts.graph.in_neighbours(node).iter().filter(|&&other| other != sender) {
                sources.push(other);
                targets.push(node as u32);
            }
        }
        parts.graph = Graph::from_edges(300, &sources, &targets).expect("a graph");
        Dataset::new(parts).expect("a data set")
    }

    #[test]
    fn a_record_moves_an_aggregate_by_its_bound_at_most() {
        // With sampling no sender has more edges than are kept, so that the samples are the same with and without.
        for (bounding, max_degree) in [(Bounding::Weight, 9), (Bounding::Cap, 9), (Bounding::Sample, 299)] {
            let settings = Settings { batch_size: 50, max_degree, bounding, ..Settings::new(Level::Node) };
            for message in all_messages() {
                let without = aggregate(without_sender(7), &settings, message);
                let moved = distance(&aggregate(data(), &settings, message), &without);
                let bound = f64::from(max_degree).sqrt();
                assert!(moved > 1.0 && moved <= bound + 1e-5, "{bounding:?}: {moved}");
            }
        }
    }

    /// Values are multiples of one over the scale, which must not tell which degrees there are.
    #[test]
    fn the_scale_does_not_depend_on_degrees() {
        let settings = Settings { batch_size: 50, ..Settings::new(Level::Node) };
        let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
        let noise = plan.aggregate_multiplier * plan.sensitivity;
        let scale = choose_scale(noise, influence(&settings)).expect("a scale").1 as f32;
        let are_multiples = |data: Dataset| {
            let values = aggregate(data, &settings, all_messages()[1]);
            values.iter().map(|value| value * scale).all(|steps| (steps - steps.round()).abs() < 0.01)
        };
        let everyone = {
            let mut parts = data().into_parts();
            let pairs = (0..300u32).flat_map(|a| (0..300u32).filter(move |&b| a != b).map(move |b| (a, b)));
            let (sources, targets): (Vec<u32>, Vec<u32>) = pairs.unzip();
            parts.graph = Graph::from_edges(300, &sources, &targets).expect("a graph");
            Dataset::new(parts).expect("a data set")
        };
        assert!(are_multiples(data()) && are_multiples(everyone));
    }

    #[test]
    fn labels_of_validation_and_test_nodes_are_not_used() {
        let settings = Settings { batch_size: 50, ..Settings::new(Level::Edge) };
        let change = |part: Part| {
            let mut parts = data().into_parts();
            let split = parts.split.clone().expect("a split");
            let relabel = |node: usize| {
                let label = parts.labels[node];
                if split.part(node) == part { (label + 1) % 3 } else { label }
            };
            parts.labels = Buffer::from((0..300).map(relabel).collect::<Vec<u32>>());
            aggregate(Dataset::new(parts).expect("a data set"), &settings, all_messages()[1])
        };
        let original = aggregate(data(), &settings, all_messages()[1]);
        assert_eq!(change(Part::Val), original);
        assert_eq!(change(Part::Test), original);
        assert_ne!(change(Part::Train), original);
    }
}
