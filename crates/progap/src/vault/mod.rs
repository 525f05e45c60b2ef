//! The vault: private data goes in, and comes out only through an accounted mechanism.
//!
//! There is no getter for what is private. At edge level that is the graph; at node level it is the graph and the rows
//! of the nodes (features and labels). What leaves the vault is an answer to a [`VaultQuery`]. The vault owns the plan
//! of the run and the randomness: [`Vault::ask`] takes each question off the list of the plan, with the noise that
//! stands there, refuses what is not on it before anything is drawn, and records what it answered. So the list of what
//! was recorded is the list of queries in the proof, and code that never holds a vault is post-processing by
//! construction.
//!
//! | file | query |
//! |---|---|
//! | `aggregate.rs` | sums of messages over the graph, Gaussian noise: [`Aggregation`] |
//! | `addressed.rs` | the same where public numbers weigh receivers: [`AddressedAggregation`] |
//! | `pairs.rs` | the same where both messages of an undirected edge share its influence: [`PairedAggregation`] |
//! | `class_sums.rs` | sums of training rows over each class, Gaussian noise: [`ClassSums`] |
//! | `label_table.rs` | sums of public rows over the training nodes of each class, Gaussian noise: `LabelTable` |
//! | `counts.rs` | training nodes of each class, Gaussian noise: [`ClassCounts`] |
//! | `columns.rs` | where values of number columns lie, Gaussian noise: [`ValueSpreads`], then [`ValuePlaces`] |
//! | `streamed.rs` | sums and votes for graphs that memory does not hold: [`Streamed`] |
//! | `gradient.rs` | sums of clipped gradients: [`Gradient`] |
//! | `subgraph.rs` | the same over nodes with their senders: [`SubgraphGradient`] |
//! | `response.rs` | the graph by randomised response: [`NoisyGraph`] |
//! | `votes.rs` | counts of votes over the graph, Laplace noise: [`Votes`] |
//! | `later.rs` | sums of messages over the edges of nodes that came after training, Gaussian noise: a vault of its own |
//! | `unprotected.rs` | none: what measures or predicts without protection, for the data owner alone; it trains nothing |
//!
//! What is locked up is in `private.rs`, the randomness in `noise.rs`. A method cannot read an edge:
//!
//! ```compile_fail,E0616
//! fn peek(vault: &progap::vault::Vault) -> usize {
//!     vault.graph.edges()
//! }
//! ```
//!
//! nor, at node level, a row:
//!
//! ```compile_fail,E0616
//! fn peek(vault: &progap::vault::Vault) -> u32 {
//!     vault.rows.labels[0]
//! }
//! ```

mod addressed;
mod aggregate;
mod class_sums;
mod columns;
mod counts;
mod gradient;
mod label_table;
#[cfg(feature = "ledger")]
pub(crate) mod later;
pub(crate) mod mixing;
mod noise;
mod pairs;
mod private;
pub(crate) mod propagate;
mod response;
pub mod rows;
mod sample;
pub mod scaling;
mod streamed;
mod subgraph;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests;
mod unprotected;
mod votes;
#[cfg(test)]
mod weight_tests;

use std::ops::Deref;

pub use addressed::{AddressedAggregation, ReceiverWeights};
pub use aggregate::Aggregation;
pub(crate) use aggregate::{AGGREGATION, aggregation};
pub(crate) use class_sums::class_sum;
pub use class_sums::{CLASS_SUMS, ClassSums, NoisyClassSums};
pub use columns::{COLUMN_COUNTS, ValuePlaces, ValueSpreads, partners};
pub(crate) use columns::{COLUMN_ROUNDS, asks_for_columns, check_column_noise, column_bins, column_count};
pub use counts::{CLASS_COUNTS, ClassCounts, NoisyCounts};
pub(crate) use counts::{asks_for_counts, class_count};
pub use gradient::Gradient;
pub(crate) use gradient::{GRADIENT, gradient_sum};
pub(crate) use label_table::label_table;
pub use label_table::{LABEL_TABLE, LabelTable};
pub use noise::Noise;
pub use pairs::PairedAggregation;
pub use private::Private;
pub(crate) use private::{balanced_weights, weightless};
use progap_graph::{Buffer, Dataset};
use progap_nn::Network;
use progap_privacy::Event;
use progap_privacy::noise::{AnySource, Provenance, Randomness, RunKey, Source};
pub use response::NoisyGraph;
pub(crate) use response::{EDGE_COUNT, EDGE_RESPONSE, edge_count, edge_response};
pub(crate) use sample::{choose, pass_over};
pub use streamed::{Streamable, Streamed, Take};
pub use subgraph::SubgraphGradient;
pub(crate) use subgraph::{SUBGRAPH_GRADIENT, subgraph_sum};
pub use votes::Votes;
pub(crate) use votes::{VOTES, vote_count, vote_sensitivity};

use crate::method::{self, Spread};
use crate::plan::Plan;
use crate::query::{Queries, Query};
use crate::ranks::{RankData, Ranks};
pub use crate::rows::{Aggregate, Aggregates, Maker, Message, Rows};
use crate::scratch::Scratch;
use crate::settings::{Level, Settings};
use crate::{Error, Result};

/// A question to the vault: what is public about it, in a file of its own.
pub trait VaultQuery {
    /// What leaves the vault.
    type Answer;

    /// What is asked, by the vault's own settings and sizes. It draws nothing.
    ///
    /// # Errors
    /// What does not fit the vault.
    fn spec(&self, private: &Private) -> Result<Asked>;

    /// The answer, with the noise that is charged.
    ///
    /// # Errors
    /// As the mechanism.
    fn evaluate(self, private: &Private, noise: &mut Noise) -> Result<Self::Answer>;
}

/// What a question asks, whatever the noise: it is answered if the plan has all of it.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The queries, each with noise as large as its sensitivity.
    pub queries: Vec<Query>,
    /// The values of noise that are drawn from tables.
    pub values: usize,
}

impl Asked {
    /// One query.
    pub fn new(query: Query, values: usize) -> Asked {
        Asked { queries: vec![query], values }
    }
}

/// Private data, the plan of a run, and the randomness that protects it.
pub struct Vault {
    private: Private,
    noise: Noise,
    plan: Plan,
    /// What of the plan was not asked yet.
    left: Queries,
    asked: Queries,
    /// What this process asked, or replayed.
    passed: Queries,
    /// Values of noise drawn from tables.
    drawn: u64,
}

/// What is public about the data.
impl Deref for Vault {
    type Target = Private;

    fn deref(&self) -> &Private {
        &self.private
    }
}

impl Vault {
    /// Locks a data set up, with everything that may be asked of it.
    ///
    /// # Errors
    /// Data that do not fit the settings.
    pub fn open<S: Source>(
        dataset: Dataset,
        settings: &Settings,
        plan: Plan,
        randomness: Randomness<S>,
    ) -> Result<Self> {
        let mut randomness = randomness.erase();
        let private = Private::new(dataset, settings, &mut randomness)?;
        Ok(Vault::with(private, plan, randomness))
    }

    /// As [`Vault::open`], for one of several ranks: it locks up the rows of its own nodes, or all rows, and the edges
    /// into its own nodes, and looks at no others. All ranks have the same randomness, and ask the same queries in the same order.
    pub(crate) fn over(
        ranks: &Ranks,
        data: &RankData,
        settings: &Settings,
        plan: Plan,
        mut randomness: Randomness<AnySource>,
    ) -> Result<Self> {
        let private = match method::spread(settings) {
            Some(Spread::Edges) => Private::with_edges_over(ranks, data, settings, &mut randomness)?,
            _ => Private::over(ranks, data, settings, &mut randomness)?,
        };
        Ok(Vault::with(private, plan, randomness))
    }

    fn with(private: Private, plan: Plan, randomness: Randomness<AnySource>) -> Vault {
        Vault {
            private,
            noise: Noise::new(randomness, plan.response),
            left: plan.queries.clone(),
            plan,
            asked: Queries::default(),
            passed: Queries::default(),
            drawn: 0,
        }
    }

    /// The answer to a question that the plan pays for.
    ///
    /// # Errors
    /// A question that is not in the plan, was asked as often as it is there, or differs in anything but its noise:
    /// nothing is drawn then. What the mechanism refuses.
    pub fn ask<Q: VaultQuery>(&mut self, question: Q) -> Result<Q::Answer> {
        let spec = question.spec(&self.private)?;
        self.noise.charged = self.charge(&spec)?;
        let answer = question.evaluate(&self.private, &mut self.noise)?;
        for query in std::mem::take(&mut self.noise.charged) {
            self.passed.add(query.clone(), 1);
            self.asked.add(query, 1);
        }
        Ok(answer)
    }

    /// Counts a question whose answer was kept before an interruption. If that happened in the moment between being
    /// asked and being recorded it is recorded now.
    pub(crate) fn replay<Q: VaultQuery>(&mut self, question: &Q) -> Result<()> {
        let spec = question.spec(&self.private)?;
        let is_recorded = |query: &Query| self.asked.count(&query.name) > self.passed.count(&query.name);
        if spec.queries.iter().all(is_recorded) {
            spec.queries.into_iter().for_each(|query| self.passed.add(query, 1));
            return Ok(());
        }
        for query in self.charge(&spec)? {
            self.passed.add(query.clone(), 1);
            self.asked.add(query, 1);
        }
        Ok(())
    }

    /// Takes a question off the list: its queries with the plan's noise.
    fn charge(&mut self, spec: &Asked) -> Result<Vec<Query>> {
        if self.private.settings.level == Level::None {
            let open = |query: &Query| Query { event: Event::NonPrivate, ..query.clone() };
            return Ok(spec.queries.iter().map(open).collect());
        }
        let drawn = self.drawn.saturating_add(spec.values as u64);
        if drawn > self.plan.noise_values {
            return Err(Error::internal("more noise would be drawn than the plan pays for"));
        }
        let mut left = self.left.clone();
        let charged: Option<Vec<Query>> = spec
            .queries
            .iter()
            .map(|query| left.take(1, |planned| planned.is_but_for_noise(query)))
            .collect();
        let charged =
            charged.ok_or(Error::internal("the plan does not pay for this query, or not once more"))?;
        (self.left, self.drawn) = (left, drawn);
        Ok(charged)
    }

    /// Takes over what a run asked before it was interrupted.
    ///
    /// # Errors
    /// More than the plan pays for.
    pub(crate) fn resume(&mut self, asked: Queries) -> Result<()> {
        if self.private.settings.level != Level::None {
            for (query, times) in asked.iter() {
                let planned = self.left.take(times, |planned| planned.is_as_noisy_as(query));
                planned.ok_or(Error::internal("the run asked what its plan does not pay for"))?;
            }
        }
        self.asked = asked;
        Ok(())
    }

    /// Where the noise comes from.
    pub fn provenance(&self) -> Provenance {
        self.noise.randomness.provenance()
    }

    /// The queries so far.
    pub fn asked(&self) -> &Queries {
        &self.asked
    }

    /// The values of noise that were drawn from tables so far.
    pub fn drawn(&self) -> u64 {
        self.drawn
    }

    /// The run's key, to be kept beside what was asked; none where noise is reproducible.
    pub(crate) fn key(&self) -> Option<&RunKey> {
        self.noise.randomness.key()
    }

    /// From here on nobody can repeat the noise that was drawn so far. Called when an answer is about to be kept, and
    /// at the end of each epoch, so that a resumed run stands at the same key.
    pub(crate) fn forget(&mut self) {
        self.noise.randomness.forget();
    }

    /// Says which gradients are asked for next, in this order and with the same aggregates, before anything is
    /// forgotten. Where rows lie in several ranks, those of many steps then travel at once.
    pub(crate) fn expect_gradients(&mut self, queries: impl IntoIterator<Item = String>) {
        if self.private.part.is_some() {
            self.noise.ahead.expect(queries);
        }
    }

    /// From now on the rows hold other features: made of public rows and of answers that left before, so that this asks
    /// nothing.
    ///
    /// # Errors
    /// Private rows, or features that do not fit.
    pub fn replace_public_rows(&mut self, columns: usize, values: Buffer<f32>) -> Result<()> {
        self.private.rows = self.need_public_rows()?.with_features(columns, values)?;
        Ok(())
    }

    /// From now on the rows hold what an encoder says of the features, normalised, instead of the features. Each row
    /// changes by itself, and the encoder left the vault before: this asks nothing.
    pub(crate) fn encode(&mut self, encoder: &Network, scratch: Scratch) -> Result<()> {
        self.private.rows = self.private.rows.encoded(encoder, scratch)?;
        Ok(())
    }

    /// A record of more than was asked.
    #[cfg(test)]
    pub(crate) fn overstate(&mut self) {
        let last = self.asked.iter().last().map(|(query, _)| query.clone()).expect("a query");
        self.asked.add(last, 1);
    }
}

/// The name under which the batch of a query is drawn.
fn batch_of(query: &str) -> String {
    format!("batch of {query}")
}
