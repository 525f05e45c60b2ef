//! Queries of private data, each with a name, a purpose in words, and the event that accountants read.
//!
//! The plan of a run lists them before anything is asked, the vault records them as they are asked, the statement shows
//! them, and `verify` compares the two lists.

use progap_privacy::Event;
use serde::{Deserialize, Serialize};

use crate::Result;

/// A query of private data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Its name; queries of one name are of one kind.
    pub name: String,
    /// Its purpose, in words.
    pub purpose: String,
    /// The event that accountants read.
    pub event: Event,
}

impl Query {
    /// A query.
    pub fn new(name: &str, purpose: impl Into<String>, event: Event) -> Query {
        Query { name: name.into(), purpose: purpose.into(), event }
    }

    /// Its noise; `None` for what adds none.
    pub fn noise(&self) -> Option<Noise> {
        Noise::of(&self.event)
    }

    /// Whether it is another one but for the noise.
    pub(crate) fn is_but_for_noise(&self, other: &Query) -> bool {
        self.name == other.name && bare(&self.event) == bare(&other.event)
    }

    /// Whether it has the name of another one, and for its sensitivity the same noise but for rounding.
    pub(crate) fn is_as_noisy_as(&self, other: &Query) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b;
        let as_noisy = match (self.noise(), other.noise()) {
            (Some(one), Some(other)) => {
                near(one.multiplier(), other.multiplier()) && near(one.sampling_rate, other.sampling_rate)
            }
            (one, other) => one == other,
        };
        self.name == other.name && as_noisy
    }
}

/// The event with noise as large as its sensitivity; an answer about a bit with none.
fn bare(event: &Event) -> Event {
    match event {
        Event::Gaussian { sensitivity, .. } => {
            Event::Gaussian { sigma: *sensitivity, sensitivity: *sensitivity }
        }
        Event::Laplace { sensitivity, .. } => {
            Event::Laplace { scale: *sensitivity, sensitivity: *sensitivity }
        }
        Event::RandomizedResponse { .. } => {
            Event::RandomizedResponse { true_positive: 1.0, false_positive: 0.0 }
        }
        Event::PoissonSampled { rate, event } => {
            Event::PoissonSampled { rate: *rate, event: Box::new(bare(event)) }
        }
        Event::SampledWithoutReplacement { population, batch_size, max_terms, term_sensitivity, .. } => {
            Event::SampledWithoutReplacement {
                population: *population,
                batch_size: *batch_size,
                max_terms: *max_terms,
                sigma: *term_sensitivity,
                term_sensitivity: *term_sensitivity,
            }
        }
        other => other.clone(),
    }
}

/// The noise of one query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// The standard deviation; of a randomised response, that of one answer.
    pub sigma: f64,
    /// How far one record moves the value, one touched term, or the mean of one answer.
    pub sensitivity: f64,
    /// The probability with which a record takes part.
    pub sampling_rate: f64,
}

impl Noise {
    /// The noise divided by the sensitivity.
    pub fn multiplier(&self) -> f64 {
        self.sigma / self.sensitivity
    }

    fn of(event: &Event) -> Option<Noise> {
        let noise = |sigma, sensitivity| Some(Noise { sigma, sensitivity, sampling_rate: 1.0 });
        match event {
            Event::Gaussian { sigma, sensitivity } => noise(*sigma, *sensitivity),
            Event::Laplace { scale, sensitivity } => noise(scale * 2f64.sqrt(), *sensitivity),
            Event::RandomizedResponse { true_positive, false_positive } => {
                noise((true_positive * (1.0 - true_positive)).sqrt(), true_positive - false_positive)
            }
            Event::PoissonSampled { rate, event } => {
                Noise::of(event).map(|noise| Noise { sampling_rate: *rate, ..noise })
            }
            Event::SampledWithoutReplacement { population, batch_size, sigma, term_sensitivity, .. } => {
                let sampling_rate = *batch_size as f64 / *population as f64;
                Some(Noise { sigma: *sigma, sensitivity: *term_sensitivity, sampling_rate })
            }
            _ => None,
        }
    }
}

/// Queries in the order in which they are asked, equal ones in a row counted.
///
/// ```
/// use progap::query::{Queries, Query};
/// use progap_privacy::Event;
///
/// let sum = Query::new("sum", "a noisy sum", Event::gaussian(4.0, 1.0)?);
/// let mut asked = Queries::default();
/// asked.add(sum.clone(), 1);
/// asked.add(sum, 2);
/// assert_eq!((asked.iter().count(), asked.count("sum")), (1, 3));
/// assert_eq!(asked.event()?, Event::composed(vec![Event::gaussian(4.0, 1.0)?.repeated(3)?])?);
/// # Ok::<(), progap::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Queries(Vec<(Query, u64)>);

impl Queries {
    /// The query is asked this many times more.
    pub fn add(&mut self, query: Query, times: u64) {
        match self.0.last_mut() {
            _ if times == 0 => {}
            Some((last, count)) if *last == query => *count = count.saturating_add(times),
            _ => self.0.push((query, times)),
        }
    }

    /// The queries, each with how often it is asked in a row.
    pub fn iter(&self) -> impl Iterator<Item = (&Query, u64)> {
        self.0.iter().map(|(query, count)| (query, *count))
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How often a query of that name is asked.
    pub fn count(&self, name: &str) -> u64 {
        let of_that_name = self.iter().filter(|(query, _)| query.name == name);
        of_that_name.fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    /// The first query of a name.
    pub fn get(&self, name: &str) -> Option<&Query> {
        self.iter().map(|(query, _)| query).find(|query| query.name == name)
    }

    /// Takes off as many queries as are wanted, the first that match, and says what the last of them was; none where
    /// there are fewer.
    pub(crate) fn take(&mut self, times: u64, matches: impl Fn(&Query) -> bool) -> Option<Query> {
        let (mut wanted, mut last) = (times, None);
        let mut left = self.0.clone();
        for (query, count) in left.iter_mut().filter(|(query, count)| *count > 0 && matches(query)) {
            let taken = wanted.min(*count);
            (*count, wanted) = (*count - taken, wanted - taken);
            if taken > 0 {
                last = Some(query.clone());
            }
        }
        if wanted > 0 {
            return None;
        }
        left.retain(|(_, count)| *count > 0);
        self.0 = left;
        last
    }

    /// All of them as one tree.
    ///
    /// # Errors
    /// More repetitions than an accountant takes.
    pub fn event(&self) -> Result<Event> {
        let repeated = self.iter().map(|(query, count)| query.event.clone().repeated(count));
        Ok(Event::composed(repeated.collect::<std::result::Result<_, _>>()?)?)
    }

    /// The same queries, each with another event; nothing where one of them has none.
    pub fn map(&self, event: impl Fn(&Query) -> Option<Event>) -> Option<Queries> {
        let mut mapped = Queries::default();
        for (query, count) in self.iter() {
            mapped.add(Query { event: event(query)?, ..query.clone() }, count);
        }
        Some(mapped)
    }
}

impl FromIterator<(Query, u64)> for Queries {
    fn from_iter<I: IntoIterator<Item = (Query, u64)>>(queries: I) -> Queries {
        let mut all = Queries::default();
        queries.into_iter().for_each(|(query, times)| all.add(query, times));
        all
    }
}
