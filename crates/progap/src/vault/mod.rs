//! The vault: private data goes in, and comes out only through an accounted mechanism.
//!
//! There is no getter for what is private. At edge level that is the graph; at node level it is the graph and the
//! rows of the nodes (features and labels). What leaves the vault is an answer to a [`Query`], recorded with its name, its purpose and
//! its event. So the list of what was recorded is the list of queries in the proof, and code that never holds a vault is
//! post-processing by construction.
//!
//! | file | query |
//! |---|---|
//! | `aggregate.rs` | sums of messages over the graph, Gaussian noise: [`Vault::aggregate`] |
//! | `counts.rs` | training nodes of each class, Gaussian noise: [`Vault::class_counts`] |
//! | `columns.rs` | where values of number columns lie, Gaussian noise: [`Vault::column_maps`] |
//! | `streamed.rs` | the sums of messages for graphs that memory does not hold: [`Vault::aggregate_streamed`] |
//! | `gradient.rs` | sums of clipped gradients: [`Vault::gradient`] |
//! | `subgraph.rs` | the same over nodes with their senders: [`Vault::subgraph_gradient`] |
//! | `response.rs` | the graph by randomised response: [`Vault::noisy_graph`] |
//! | `votes.rs` | counts of votes over the graph, Laplace noise: [`Vault::votes`] |
//! | `unprotected.rs` | none: what measures or predicts without protection, for the data owner alone; it trains nothing |
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

mod aggregate;
mod columns;
mod counts;
mod gradient;
mod response;
mod sample;
mod streamed;
mod subgraph;
#[cfg(test)]
mod tests;
mod unprotected;
mod votes;
#[cfg(test)]
mod weight_tests;

pub(crate) use aggregate::{AGGREGATION, aggregation};
pub(crate) use columns::{
    COLUMN_COUNTS, COLUMN_ROUNDS, asks_for_columns, check_column_noise, column_bins, column_count, partners,
};
pub use counts::NoisyCounts;
pub(crate) use counts::{CLASS_COUNTS, asks_for_counts, class_count};
pub(crate) use gradient::{GRADIENT, gradient_sum};
use progap_graph::{Buffer, Dataset, DatasetParts, Graph, NumberColumn, Part};
use progap_nn::Network;
use progap_privacy::noise::{
    AnySource, PoissonSample, Provenance, Randomness, RoundedGaussian, RunKey, SenderBound, Source,
};
pub(crate) use response::{edge_count, edge_response};
pub(crate) use sample::{choose, pass_over};
use sample::{sample_out_edges, sample_stream};
pub use streamed::Take;
pub(crate) use subgraph::{SUBGRAPH_GRADIENT, subgraph_sum};
pub(crate) use votes::{vote_count, vote_sensitivity};

use crate::plan::{Plan, influence};
use crate::query::{Queries, Query};
use crate::ranks::{Ahead, HeldPart, RankData, Ranks};
pub use crate::rows::{Aggregate, Aggregates, Maker, Message, Rows};
use crate::scratch::Scratch;
use crate::settings::{Bounding, ClassWeights, Direction, Level, Settings};
use crate::{Error, Result};

/// Private data, and the randomness that protects it.
pub struct Vault {
    settings: Settings,
    graph: Graph,
    /// Where nodes receive along edges in both directions: every edge turned round.
    back: Option<Graph>,
    /// Where batches hold nodes with their senders: all edges, for predictions, which nothing protects.
    every_edge: Option<Graph>,
    bound: SenderBound,
    /// Of each node, by how much the square of its message's length is multiplied on its way: the number of its edges where they have no
    /// weights. Empty where what a node sends does not depend on it.
    out_degrees: Vec<u32>,
    rows: Rows,
    /// Number columns that no map was applied to yet.
    open_numbers: Vec<NumberColumn>,
    train: Vec<u32>,
    randomness: Randomness<AnySource>,
    asked: Queries,
    /// Values of noise drawn from tables.
    drawn: u64,
    /// How the last batch was drawn: most often as the next is.
    sample: Option<PoissonSample>,
    /// The noise of the last aggregation: most often that of the next, too.
    table: Option<RoundedGaussian>,
    /// Where nodes lie in several ranks, the steps whose batches were drawn.
    ahead: Ahead,
    /// Where nodes lie in several ranks, the part of this one; then the graph above has no edges, and rows are those of its own nodes.
    part: Option<HeldPart>,
}

impl Vault {
    /// Locks a data set up. Repeated edges and self-loops are removed first: an edge is there or not.
    pub fn new<S: Source>(dataset: Dataset, settings: &Settings, randomness: Randomness<S>) -> Result<Self> {
        let mut randomness = randomness.erase();
        let dataset = dataset.prepared(settings.preparation())?;
        let DatasetParts { graph, features, labels, class_names, split, numbers, .. } = dataset.into_parts();
        let split = split.ok_or_else(|| Error::Unsuitable("the data set has no split".into()))?;
        if graph.weights().is_some() && !settings.method.recipe().reads_weights() {
            return Err(weightless(settings));
        }
        let graph = match settings.direction {
            Direction::Out => graph.transpose(),
            Direction::In | Direction::Both => graph,
        };
        let graph = progap_graph::transform::deduplicate(progap_graph::transform::remove_self_loops(graph));
        let back = match (settings.direction, settings.level) {
            (Direction::Both, Level::Node) => {
                return Err(Error::Internal("messages go along the edges only"));
            }
            (Direction::Both, _) => Some(graph.transpose()),
            _ => None,
        };
        let bound = sender_bound(settings);
        let every_edge = settings.method.recipe().reads_senders().then(|| graph.clone());
        let graph = match bound {
            SenderBound::Sample { max_edges } => sample_out_edges(&graph, max_edges, &mut randomness)?,
            _ => graph,
        };
        let out_degrees = match bound {
            SenderBound::Edge | SenderBound::Sample { .. } => vec![],
            SenderBound::Weight { .. } | SenderBound::Cap { .. } => graph.out_strengths(),
        };
        let open_numbers: Vec<NumberColumn> = numbers.into_iter().filter(NumberColumn::is_open).collect();
        let rows = match open_numbers.is_empty() {
            true => Rows::new(features, labels, split, class_names.len())?,
            false => Rows::unscaled(features, labels, split, class_names.len()),
        };
        let train = rows.nodes(Part::Train);
        Ok(Vault {
            settings: settings.clone(),
            graph,
            back,
            every_edge,
            bound,
            out_degrees,
            rows,
            open_numbers,
            train,
            randomness,
            asked: Queries::default(),
            drawn: 0,
            sample: None,
            table: None,
            ahead: Ahead::default(),
            part: None,
        })
    }

    /// As [`Vault::new`], for one of several ranks: it locks up the rows of its own nodes and the edges into them, and looks at no
    /// others. All ranks have the same randomness, and ask the same queries in the same order.
    pub(crate) fn over(
        ranks: &Ranks,
        data: &RankData,
        settings: &Settings,
        mut randomness: Randomness<AnySource>,
    ) -> Result<Self> {
        let bound = sender_bound(settings);
        let sample = match bound {
            SenderBound::Sample { max_edges } if settings.touches_edges() => {
                Some((max_edges as usize, sample_stream(&mut randomness)?))
            }
            _ => None,
        };
        let (part, rows) = (HeldPart::new(data, settings, ranks, sample)?, data.rows()?);
        // Where no message has a weight, nobody asks how many edges a sender has.
        let out_degrees = match bound {
            SenderBound::Edge | SenderBound::Sample { .. } => vec![],
            SenderBound::Weight { .. } | SenderBound::Cap { .. } => part.out_degrees()?,
        };
        Ok(Vault {
            settings: settings.clone(),
            graph: Graph::from_rows(vec![0u64], Vec::<u32>::new())?,
            back: None,
            every_edge: None,
            bound,
            out_degrees,
            rows,
            open_numbers: data.open_numbers().cloned().collect(),
            train: part.train.clone(),
            randomness,
            asked: Queries::default(),
            drawn: 0,
            sample: None,
            table: None,
            ahead: Ahead::default(),
            part: Some(part),
        })
    }

    /// Where nodes lie in several ranks, the part of this one.
    pub(crate) fn part(&self) -> Option<&HeldPart> {
        self.part.as_ref()
    }

    /// How many nodes are in a part of the split, of all ranks; the split is public.
    pub(crate) fn count(&self, part: Part) -> usize {
        self.part.as_ref().map_or_else(|| self.rows.split.count(part), |held| held.count(part))
    }

    /// The rows, where they are public.
    pub fn public_rows(&self) -> Option<&Rows> {
        (self.settings.level != Level::Node).then_some(&self.rows)
    }

    /// The rows, for what exists only where they are public.
    ///
    /// # Errors
    /// Private rows.
    pub fn need_public_rows(&self) -> Result<&Rows> {
        self.public_rows().ok_or(Error::Internal("rows are private at node level"))
    }

    /// How much each class counts in training, where the settings balance them. A function of public labels; at node level, where they
    /// are private, [`Vault::class_counts`] tells.
    pub fn class_weights(&self) -> Option<Vec<f32>> {
        let rows = self.public_rows().filter(|_| self.settings.class_weights == ClassWeights::Balanced)?;
        if let Some(part) = &self.part {
            return Some(weights_of(&part.train_classes));
        }
        let labels: Vec<u32> = self.train.iter().map(|&node| rows.labels()[node as usize]).collect();
        Some(balanced_weights(&labels, rows.classes()))
    }

    /// The graph, where it is public: at level none.
    pub fn public_graph(&self) -> Option<&Graph> {
        (self.settings.level == Level::None).then_some(&self.graph)
    }

    /// Where the noise comes from.
    pub fn provenance(&self) -> Provenance {
        self.randomness.provenance()
    }

    /// The queries so far.
    pub fn asked(&self) -> &Queries {
        &self.asked
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
    pub(crate) fn resume(&mut self, asked: Queries) {
        self.asked = asked;
    }

    /// Takes over the `number`-th answer to queries of a name, kept before an interruption. If that happened in the moment between
    /// being asked and being recorded it is recorded now.
    pub(crate) fn resume_answer(&mut self, number: usize, query: Query) {
        if self.asked.count(&query.name) < number as u64 {
            self.record(query);
        }
    }

    fn record(&mut self, query: Query) {
        self.asked.add(query, 1);
    }

    /// Counts values of noise before they are drawn: the plan's delta pays for this many and no more.
    fn draw(&mut self, values: usize, plan: &Plan) -> Result<()> {
        self.drawn += values as u64;
        if self.drawn > plan.noise_values {
            return Err(Error::Internal("more noise would be drawn than the plan pays for"));
        }
        Ok(())
    }

    /// The number of nodes, which is public.
    pub fn nodes(&self) -> usize {
        self.part.as_ref().map_or_else(|| self.graph.nodes(), HeldPart::nodes)
    }

    /// The number of nodes whose rows are here: all, unless nodes lie in several ranks.
    pub(crate) fn own_nodes(&self) -> usize {
        self.rows.labels.len()
    }

    /// The columns of the rows, which are public.
    pub fn columns(&self) -> usize {
        self.rows.features.columns()
    }

    /// The number of classes, which is public.
    pub fn classes(&self) -> usize {
        self.rows.classes
    }

    /// From now on the rows hold other features: made of public rows and of answers that left before, so that this asks nothing.
    ///
    /// # Errors
    /// Private rows, or features that do not fit.
    pub fn replace_public_rows(&mut self, columns: usize, values: Buffer<f32>) -> Result<()> {
        self.rows = self.need_public_rows()?.with_features(columns, values)?;
        Ok(())
    }

    /// From now on the rows hold what an encoder says of the features, normalised, instead of the features. Each row
    /// changes by itself, and the encoder left the vault before: this asks nothing.
    pub(crate) fn encode(&mut self, encoder: &Network, scratch: Scratch) -> Result<()> {
        self.rows = self.rows.encoded(encoder, scratch)?;
        Ok(())
    }
}

/// How much of a sum a sender can be.
fn sender_bound(settings: &Settings) -> SenderBound {
    match (settings.level, settings.bounding) {
        (Level::None | Level::Edge, _) => SenderBound::Edge,
        (Level::Node, Bounding::Weight) => SenderBound::Weight { bound: influence(settings) },
        (Level::Node, Bounding::Cap) => SenderBound::Cap { bound: influence(settings) },
        (Level::Node, Bounding::Sample) => SenderBound::Sample { max_edges: settings.max_degree },
    }
}

/// A weight for each class with which all count the same: n / (C n_c), with n_c of the n labels in the class.
pub(crate) fn balanced_weights(labels: &[u32], classes: usize) -> Vec<f32> {
    let mut counts = vec![0usize; classes];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    weights_of(&counts)
}

/// As [`balanced_weights`], where classes were counted.
fn weights_of(counts: &[usize]) -> Vec<f32> {
    let share = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
    // A class that no node has is in no batch.
    counts.iter().map(|&count| if count > 0 { (share / count as f64) as f32 } else { 1.0 }).collect()
}

/// A method that takes every edge for as good as any other.
pub(crate) fn weightless(settings: &Settings) -> Error {
    Error::Unsuitable(format!(
        "the edges have weights, and the method {} takes every edge for as good as any other: leave the weights out, or use \
         `method progap`",
        settings.method
    ))
}

/// The name under which the batch of a query is drawn.
fn batch_of(query: &str) -> String {
    format!("batch of {query}")
}
