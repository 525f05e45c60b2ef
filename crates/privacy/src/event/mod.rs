//! Events: queries of private data, as data.
//!
//! An [`Event`] describes mechanisms and how they were combined; it does not run anything. Accountants
//! interpret it, several of them read the same tree, and the tree itself is what a privacy statement publishes.
//!
//! ```
//! use progap_privacy::Event;
//!
//! let training = Event::gaussian(1.2, 1.0)?.poisson_sampled(0.01)?.repeated(1000)?;
//! let json = training.to_json();
//! assert_eq!(Event::from_json(&json)?, training);
//! # Ok::<(), progap_privacy::Error>(())
//! ```

mod check;
mod json;
mod unit;

use serde::{Deserialize, Serialize};

pub(crate) use check::Path;
use check::check;
use json::parse;
pub use unit::{Unit, UnitEvent};

use crate::error::Result;

/// The deepest tree that is accepted.
pub const MAX_DEPTH: usize = 32;
/// The largest number of nodes in a tree.
pub const MAX_NODES: usize = 10_000;
/// The largest number of repetitions, along any path of a tree, that is accepted.
pub const MAX_COUNT: u64 = 1_000_000_000;
/// The largest JSON text, in bytes, that is parsed.
pub const MAX_JSON_BYTES: usize = 4 << 20;

/// A mechanism, or several of them combined.
///
/// # Proof definition
/// Each variant stands for a family of adaptive mechanisms on neighbouring data sets D and D' that differ in one
/// record. The variant's own documentation names a pair of distributions (P, Q) that dominates every member:
/// no test can tell D from D' better than it tells P from Q, in either order. Accountants only ever use that pair.
/// Composition is adaptive: a later mechanism may depend on the results of earlier ones, as long as the
/// parameters written here do not. See [proof](crate::proofs::events).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// A query whose value moves by at most `sensitivity` in L2 norm, plus `N(0, sigma^2)` on every entry.
    ///
    /// Dominating pair: `N(sensitivity / sigma, 1)` against `N(0, 1)`.
    Gaussian {
        /// Standard deviation of the noise.
        sigma: f64,
        /// L2 sensitivity of the query.
        sensitivity: f64,
    },
    /// A query whose value moves by at most `sensitivity` in L1 norm, plus Laplace noise of the given scale on every
    /// entry.
    ///
    /// Dominating pair: `Lap(sensitivity, scale)` against `Lap(0, scale)`.
    Laplace {
        /// Scale b of the density `exp(-|x| / b) / 2b`.
        scale: f64,
        /// L1 sensitivity of the query.
        sensitivity: f64,
    },
    /// One private bit is reported as 1 with probability `true_positive` if it is 1, `false_positive` if it is 0.
    ///
    /// Dominating pair: `Bernoulli(true_positive)` against `Bernoulli(false_positive)`.
    RandomizedResponse {
        /// Probability of reporting 1 when the bit is 1.
        true_positive: f64,
        /// Probability of reporting 1 when the bit is 0.
        false_positive: f64,
    },
    /// The inner mechanism runs on a sample that each record joins independently with probability `rate`.
    ///
    /// Dominating pair: `(1 - rate) Q + rate P` against `Q`, where (P, Q) is the inner pair.
    PoissonSampled {
        /// Probability that a record is in the sample.
        rate: f64,
        /// The inner event, asked of the sample.
        event: Box<Event>,
    },
    /// All of the events, one after the other, each free to depend on the results before it.
    Composed {
        /// The events in any order.
        events: Vec<Event>,
    },
    /// The same event `count` times.
    SelfComposed {
        /// The repeated event.
        event: Box<Event>,
        /// Number of repetitions, at least 1.
        count: u64,
    },
    /// Events over disjoint sets of records: one record takes part in one of them only, so that the costs do not add.
    Parallel {
        /// One event for each part.
        events: Vec<Event>,
    },
    /// A noisy sum over a uniform batch of `batch_size` out of `population` terms, drawn without replacement, where
    /// one record touches up to `max_terms` terms and moves each of them by up to `term_sensitivity` in L2 norm
    /// (twice the clipping norm when a term may be replaced by any other).
    ///
    /// Dominating pair: draw a hypergeometric number I of touched terms and publish it with
    /// `N(I term_sensitivity / sigma, 1)`, against the same I with `N(0, 1)` (Daigavane et al. 2021).
    SampledWithoutReplacement {
        /// Number of terms in all.
        population: u64,
        /// Number of terms in the batch.
        batch_size: u64,
        /// Largest number of terms that one record touches.
        max_terms: u64,
        /// Standard deviation of the noise on the sum.
        sigma: f64,
        /// L2 change of a single touched term.
        term_sensitivity: f64,
    },
    /// The best of a random number of runs of the inner event, where the number of runs follows a truncated negative
    /// binomial law with shape `eta` and stopping parameter `gamma` and only the best run is published
    /// (Papernot and Steinke 2022). `eta = 1` is the geometric law, `eta = 0` the logarithmic one.
    PrivateSelection {
        /// Shape, above -1.
        eta: f64,
        /// Stopping parameter, above 0 and at most 1; smaller means more runs.
        gamma: f64,
        /// One run, including the computation of its score.
        event: Box<Event>,
    },
    /// Something without any privacy guarantee.
    NonPrivate,
}

impl Event {
    /// The kind of this node, as it is spelt in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::Gaussian { .. } => "gaussian",
            Event::Laplace { .. } => "laplace",
            Event::RandomizedResponse { .. } => "randomized-response",
            Event::PoissonSampled { .. } => "poisson-sampled",
            Event::Composed { .. } => "composed",
            Event::SelfComposed { .. } => "self-composed",
            Event::Parallel { .. } => "parallel",
            Event::SampledWithoutReplacement { .. } => "sampled-without-replacement",
            Event::PrivateSelection { .. } => "private-selection",
            Event::NonPrivate => "non-private",
        }
    }

    /// A Gaussian mechanism.
    pub fn gaussian(sigma: f64, sensitivity: f64) -> Result<Self> {
        Event::Gaussian { sigma, sensitivity }.checked()
    }

    /// A Laplace mechanism.
    pub fn laplace(scale: f64, sensitivity: f64) -> Result<Self> {
        Event::Laplace { scale, sensitivity }.checked()
    }

    /// Randomised response on one bit.
    pub fn randomized_response(true_positive: f64, false_positive: f64) -> Result<Self> {
        Event::RandomizedResponse { true_positive, false_positive }.checked()
    }

    /// A noisy sum over a batch drawn without replacement, see [`Event::SampledWithoutReplacement`].
    pub fn sampled_without_replacement(
        population: u64,
        batch_size: u64,
        max_terms: u64,
        sigma: f64,
        term_sensitivity: f64,
    ) -> Result<Self> {
        Event::SampledWithoutReplacement { population, batch_size, max_terms, sigma, term_sensitivity }
            .checked()
    }

    /// Several events, one after the other.
    pub fn composed(events: Vec<Event>) -> Result<Self> {
        Event::Composed { events }.checked()
    }

    /// Several events over disjoint records.
    pub fn parallel(events: Vec<Event>) -> Result<Self> {
        Event::Parallel { events }.checked()
    }

    /// This event on a Poisson sample.
    pub fn poisson_sampled(self, rate: f64) -> Result<Self> {
        Event::PoissonSampled { rate, event: Box::new(self) }.checked()
    }

    /// This event `count` times.
    pub fn repeated(self, count: u64) -> Result<Self> {
        Event::SelfComposed { event: Box::new(self), count }.checked()
    }

    /// The best of a random number of runs of this event, see [`Event::PrivateSelection`].
    pub fn selected(self, eta: f64, gamma: f64) -> Result<Self> {
        Event::PrivateSelection { eta, gamma, event: Box::new(self) }.checked()
    }

    /// The same queries with this many times the noise, or nothing where noise is not a number to be multiplied:
    /// responses, and what has no noise.
    ///
    /// Calibration looks for the factor: what a run asks is written down once, with noise as large as the sensitivity.
    ///
    /// ```
    /// use progap_privacy::Event;
    ///
    /// let steps = Event::gaussian(1.0, 1.0)?.poisson_sampled(0.1)?.repeated(90)?;
    /// assert_eq!(steps.with_noise_times(2.5), Some(Event::gaussian(2.5, 1.0)?.poisson_sampled(0.1)?.repeated(90)?));
    /// # Ok::<(), progap_privacy::Error>(())
    /// ```
    pub fn with_noise_times(&self, factor: f64) -> Option<Event> {
        let inner = |event: &Event| Some(Box::new(event.with_noise_times(factor)?));
        let each = |events: &[Event]| {
            events.iter().map(|event| event.with_noise_times(factor)).collect::<Option<_>>()
        };
        Some(match self {
            Event::Gaussian { sigma, sensitivity } => {
                Event::Gaussian { sigma: sigma * factor, sensitivity: *sensitivity }
            }
            Event::Laplace { scale, sensitivity } => {
                Event::Laplace { scale: scale * factor, sensitivity: *sensitivity }
            }
            Event::PoissonSampled { rate, event } => {
                Event::PoissonSampled { rate: *rate, event: inner(event)? }
            }
            Event::SelfComposed { event, count } => {
                Event::SelfComposed { event: inner(event)?, count: *count }
            }
            Event::Composed { events } => Event::Composed { events: each(events)? },
            Event::Parallel { events } => Event::Parallel { events: each(events)? },
            Event::SampledWithoutReplacement {
                population,
                batch_size,
                max_terms,
                sigma,
                term_sensitivity,
            } => Event::SampledWithoutReplacement {
                population: *population,
                batch_size: *batch_size,
                max_terms: *max_terms,
                sigma: sigma * factor,
                term_sensitivity: *term_sensitivity,
            },
            Event::PrivateSelection { eta, gamma, event } => {
                Event::PrivateSelection { eta: *eta, gamma: *gamma, event: inner(event)? }
            }
            Event::RandomizedResponse { .. } | Event::NonPrivate => return None,
        })
    }

    /// The same mechanisms for neighbours that differ in two records at once, or nothing where no simple rule holds.
    ///
    /// # Proof definition
    /// Going from one data set to the other record by record, each step moves a query by at most its sensitivity, so
    /// both move it by at most twice that, whatever was released before. This covers trees of Gaussian and
    /// Laplace events, composed and repeated. It does not cover sampling (both records, one or none may be in the
    /// sample), parallel events (the two may be in different parts), or bits.
    ///
    /// ```
    /// use progap_privacy::Event;
    ///
    /// let one = Event::gaussian(4.0, 1.0)?.repeated(3)?;
    /// assert_eq!(one.for_two_records(), Some(Event::gaussian(4.0, 2.0)?.repeated(3)?));
    /// assert_eq!(one.poisson_sampled(0.1)?.for_two_records(), None);
    /// # Ok::<(), progap_privacy::Error>(())
    /// ```
    pub fn for_two_records(&self) -> Option<Event> {
        match self {
            Event::Gaussian { sigma, sensitivity } => {
                Some(Event::Gaussian { sigma: *sigma, sensitivity: 2.0 * sensitivity })
            }
            Event::Laplace { scale, sensitivity } => {
                Some(Event::Laplace { scale: *scale, sensitivity: 2.0 * sensitivity })
            }
            Event::Composed { events } => {
                let events = events.iter().map(Event::for_two_records).collect::<Option<_>>()?;
                Some(Event::Composed { events })
            }
            Event::SelfComposed { event, count } => {
                Some(Event::SelfComposed { event: Box::new(event.for_two_records()?), count: *count })
            }
            _ => None,
        }
    }

    /// The same mechanisms for neighbours that differ in another unit, where nothing is known but that one record is
    /// part of another; nothing where that says nothing.
    ///
    /// # Proof definition
    /// Where the returned event dominates, so does the given one, for neighbours in the other unit
    /// ([proof](crate::proofs::units#units-together)).
    /// - A directed edge is part of an undirected one: what holds for both directions holds for one of them.
    /// - An undirected edge is two directed ones: two records ([`Event::for_two_records`]).
    /// - A directed edge is part of its sender's record. Without it that record is another one, which is a record less
    ///   and a record more: two records. An undirected edge is in two records: four.
    /// - Nothing bounds how many edges a record has, and an edge-level run reads features and labels as they are:
    ///   nothing is said of a node's record.
    ///
    /// ```
    /// use progap_privacy::{Event, Unit};
    ///
    /// let sum = Event::gaussian(3.0, 1.0)?;
    /// let moved = |from, to| sum.by_inclusion(from, to);
    /// assert_eq!(moved(Unit::EdgeUndirected, Unit::Edge), Some(Event::gaussian(3.0, 1.0)?));
    /// assert_eq!(moved(Unit::Edge, Unit::EdgeUndirected), Some(Event::gaussian(3.0, 2.0)?));
    /// assert_eq!(moved(Unit::Node, Unit::Edge), Some(Event::gaussian(3.0, 2.0)?));
    /// assert_eq!(moved(Unit::Node, Unit::EdgeUndirected), Some(Event::gaussian(3.0, 4.0)?));
    /// assert_eq!(moved(Unit::EdgeUndirected, Unit::Node), None);
    /// assert_eq!(sum.poisson_sampled(0.1)?.by_inclusion(Unit::Node, Unit::Edge), None);
    /// # Ok::<(), progap_privacy::Error>(())
    /// ```
    pub fn by_inclusion(&self, from: Unit, to: Unit) -> Option<Event> {
        match (from, to) {
            (Unit::Edge, Unit::Edge) | (Unit::EdgeUndirected, Unit::Edge | Unit::EdgeUndirected) => {
                Some(self.clone())
            }
            (Unit::Node, Unit::Node) => Some(self.clone()),
            (Unit::Edge, Unit::EdgeUndirected) | (Unit::Node, Unit::Edge) => self.for_two_records(),
            (Unit::Node, Unit::EdgeUndirected) => self.for_two_records()?.for_two_records(),
            (Unit::Edge | Unit::EdgeUndirected, Unit::Node) => None,
        }
    }

    fn checked(self) -> Result<Self> {
        self.validate()?;
        Ok(self)
    }

    /// Parses and validates a tree.
    pub fn from_json(text: &str) -> Result<Self> {
        let event: Event = parse(text)?;
        event.checked()
    }

    /// The tree as indented JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("an event is always representable in JSON")
    }

    /// Checks every node; the error names the first bad one by its path.
    pub fn validate(&self) -> Result<()> {
        let mut nodes = 0;
        check(self, &Path::Root, 1, 1, &mut nodes)
    }
}
