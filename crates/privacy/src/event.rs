//! What was asked of the private data, as data.
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

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The deepest tree that is accepted.
pub const MAX_DEPTH: usize = 32;
/// The largest number of nodes in a tree.
pub const MAX_NODES: usize = 10_000;
/// The largest number of repetitions, along any path of a tree, that is accepted.
pub const MAX_COUNT: u64 = 1_000_000_000;
/// The largest JSON text, in bytes, that is parsed.
pub const MAX_JSON_BYTES: usize = 4 << 20;

/// What one record is: two data sets are neighbours when they differ in one such record.
///
/// The unit is not used by any formula here. It travels with the event so that a number never loses its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// One directed edge is present or absent. Features and labels are public.
    Edge,
    /// One friendship, that is both directions of an edge, is present or absent.
    EdgeUndirected,
    /// One node's record is present or absent: its features, its label and its own list of receivers.
    /// Identifiers are public, and the record of any other node stays as it is.
    Node,
    /// A whole node with all its edges, provided that a public degree cap is known to hold already.
    NodeCapped,
}

impl Unit {
    /// All units.
    pub const ALL: [Unit; 4] = [Unit::Edge, Unit::EdgeUndirected, Unit::Node, Unit::NodeCapped];

    /// The spelling used in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Edge => "edge",
            Unit::EdgeUndirected => "edge-undirected",
            Unit::Node => "node",
            Unit::NodeCapped => "node-capped",
        }
    }

    /// The neighbour relation in words.
    pub fn neighbours(self) -> &'static str {
        match self {
            Unit::Edge => "data sets that differ in one directed edge",
            Unit::EdgeUndirected => "data sets that differ in one friendship, in both directions",
            Unit::Node => {
                "data sets that differ in one node's record: features, label and own list of receivers"
            }
            Unit::NodeCapped => {
                "data sets that differ in one node with all its edges, under a public degree cap"
            }
        }
    }
}

impl std::fmt::Display for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Unit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Unit::ALL
            .into_iter()
            .find(|unit| unit.name() == text)
            .ok_or_else(|| Error::invalid("unit", text, "one of edge, edge-undirected, node, node-capped"))
    }
}

/// An event together with the unit that its sensitivities refer to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitEvent {
    /// What one record is.
    pub unit: Unit,
    /// What was asked.
    pub event: Event,
}

/// A mechanism, or several of them combined.
///
/// # Proof definition
/// Each variant stands for a family of adaptive mechanisms on neighbouring data sets D and D' that differ in one
/// record. The variant's own documentation names a pair of distributions (P, Q) that dominates every member:
/// no test can tell D from D' better than it tells P from Q, in either order. Accountants only ever use that pair.
/// Composition is adaptive: a later mechanism may depend on the results of earlier ones, as long as the
/// parameters written here do not. See `docs/privacy.md#events`.
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
        /// What is asked of the sample.
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

impl UnitEvent {
    /// Parses and validates a unit and its tree.
    pub fn from_json(text: &str) -> Result<Self> {
        let parsed: UnitEvent = parse(text)?;
        parsed.event.validate()?;
        Ok(parsed)
    }

    /// The unit and the tree as indented JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("an event is always representable in JSON")
    }
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    if text.len() > MAX_JSON_BYTES {
        return Err(Error::Json(format!("the text has {} bytes, more than {MAX_JSON_BYTES}", text.len())));
    }
    // Deserialising a tagged enum buffers each level, so refuse deep nesting before any work is done.
    let depth = nesting(text);
    if depth > 3 * MAX_DEPTH {
        return Err(Error::Json(format!(
            "brackets are nested {depth} deep; a tree has at most {MAX_DEPTH} levels"
        )));
    }
    serde_json::from_str(text).map_err(|error| Error::Json(error.to_string()))
}

/// The deepest bracket nesting outside of strings.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// A path from the root, kept on the stack and only written out when an error needs it.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Event(&'a Path<'a>),
    Item(&'a Path<'a>, usize),
}

impl std::fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Path::Root => f.write_str("event"),
            Path::Event(parent) => write!(f, "{parent}.event"),
            Path::Item(parent, index) => write!(f, "{parent}.events[{index}]"),
        }
    }
}

fn check(event: &Event, path: &Path<'_>, depth: usize, repeats: u64, nodes: &mut usize) -> Result<()> {
    let bad = |name, value: String, expected| {
        Err(Error::InvalidEvent { path: path.to_string(), name, value, expected })
    };
    let positive = |name, value: f64| {
        if value.is_finite() && value > 0.0 {
            Ok(())
        } else {
            bad(name, value.to_string(), "a finite number above 0")
        }
    };
    let probability = |name, value: f64| {
        if (0.0..=1.0).contains(&value) { Ok(()) } else { bad(name, value.to_string(), "between 0 and 1") }
    };
    // A ratio that over- or underflows would turn into a silent 0 or infinity further on.
    let ratio = |name, value: f64| {
        if (1e-150..=1e150).contains(&value) {
            Ok(())
        } else {
            bad(name, value.to_string(), "between 1e-150 and 1e150")
        }
    };
    *nodes += 1;
    if *nodes > MAX_NODES {
        return bad("the number of nodes", format!("above {MAX_NODES}"), "at most 10000");
    }
    if depth > MAX_DEPTH {
        return bad("the depth", depth.to_string(), "at most 32");
    }
    match event {
        Event::Gaussian { sigma, sensitivity } => {
            positive("sigma", *sigma)?;
            positive("sensitivity", *sensitivity)?;
            ratio("sigma / sensitivity", sigma / sensitivity)
        }
        Event::Laplace { scale, sensitivity } => {
            positive("scale", *scale)?;
            positive("sensitivity", *sensitivity)?;
            ratio("scale / sensitivity", scale / sensitivity)
        }
        Event::RandomizedResponse { true_positive, false_positive } => {
            probability("true_positive", *true_positive)?;
            probability("false_positive", *false_positive)
        }
        Event::PoissonSampled { rate, event } => {
            probability("rate", *rate)?;
            check(event, &Path::Event(path), depth + 1, repeats, nodes)
        }
        Event::Composed { events } => check_all(events, path, depth, repeats, nodes),
        Event::SelfComposed { event, count } => {
            if *count == 0 {
                return bad("count", "0".to_owned(), "at least 1");
            }
            match repeats.checked_mul(*count) {
                Some(total) if total <= MAX_COUNT => {
                    check(event, &Path::Event(path), depth + 1, total, nodes)
                }
                _ => bad(
                    "count",
                    count.to_string(),
                    "at most 1000000000 repetitions along any path of the tree",
                ),
            }
        }
        Event::Parallel { events } => {
            if events.is_empty() {
                return bad("events", "empty".to_owned(), "a list of at least one event");
            }
            check_all(events, path, depth, repeats, nodes)
        }
        Event::SampledWithoutReplacement { population, batch_size, max_terms, sigma, term_sensitivity } => {
            if !(1..=1 << 40).contains(population) {
                return bad("population", population.to_string(), "between 1 and 2^40");
            }
            if !(1..=*population).contains(batch_size) {
                return bad("batch_size", batch_size.to_string(), "between 1 and the population");
            }
            if !(1..=(*population).min(1_000_000)).contains(max_terms) {
                return bad(
                    "max_terms",
                    max_terms.to_string(),
                    "between 1 and the population, at most 1000000",
                );
            }
            positive("sigma", *sigma)?;
            positive("term_sensitivity", *term_sensitivity)?;
            ratio("sigma / term_sensitivity", sigma / term_sensitivity)
        }
        Event::PrivateSelection { eta, gamma, event } => {
            if !(eta.is_finite() && *eta > -1.0) {
                return bad("eta", eta.to_string(), "a finite number above -1");
            }
            if !(*gamma > 0.0 && *gamma <= 1.0) {
                return bad("gamma", gamma.to_string(), "above 0 and at most 1");
            }
            check(event, &Path::Event(path), depth + 1, repeats, nodes)
        }
        Event::NonPrivate => Ok(()),
    }
}

fn check_all(events: &[Event], path: &Path<'_>, depth: usize, repeats: u64, nodes: &mut usize) -> Result<()> {
    events
        .iter()
        .enumerate()
        .try_for_each(|(index, event)| check(event, &Path::Item(path, index), depth + 1, repeats, nodes))
}
