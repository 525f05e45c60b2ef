//! How much noise: settings and public sizes in, queries with their noise out. The one plan that training, `progap account`,
//! experiments, audits and `verify` have in common.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use progap_graph::{Dataset, Part, transform};
use progap_privacy::accountant::{Accountant, Best, by_name};
use progap_privacy::calibrate::{Calibration, Target, calibrate};
use progap_privacy::noise::{RoundedLaplace, tables};
use progap_privacy::{Event, Unit};
use serde::{Deserialize, Serialize};

use crate::query::Queries;
use crate::settings::{Accounting, Bounding, Checked, Level, Settings};
use crate::{Error, Result, delta, method, vault};

/// The public sizes on which noise may depend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicSizes {
    /// Directed edges, repeated ones merged and loops left out; where friendships are protected, both directions of each. At
    /// edge level only their order of magnitude is used, for delta.
    pub edges: usize,
    /// Training nodes.
    pub train_nodes: usize,
    /// All nodes.
    pub nodes: usize,
    /// Feature columns.
    pub columns: usize,
    /// Classes.
    pub classes: usize,
    /// Number columns without declared bounds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub open_numbers: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl PublicSizes {
    /// Those of a small social network, for tests.
    #[cfg(test)]
    pub(crate) const EXAMPLE: PublicSizes = PublicSizes {
        edges: 60_000,
        train_nodes: 2_000,
        nodes: 3_000,
        columns: 40,
        classes: 4,
        open_numbers: 0,
    };

    /// The sizes of a data set, for settings whose unit is decided.
    pub fn of(dataset: &Dataset, settings: &Settings) -> PublicSizes {
        let graph = dataset.graph();
        // A unit that follows from the graph is the friendship on symmetric graphs only.
        let one_way = settings.undirected && !settings.unit_from_data && !graph.is_symmetric();
        let edges = match one_way {
            true => transform::symmetrise(graph.clone()).distinct_edges(),
            false => graph.distinct_edges(),
        };
        PublicSizes {
            edges,
            train_nodes: dataset.split().map_or(0, |split| split.count(Part::Train)),
            nodes: dataset.nodes(),
            columns: dataset.features().columns(),
            classes: dataset.classes(),
            open_numbers: dataset.open_numbers(),
        }
    }
}

/// A noisy graph: its number of edges by Laplace noise, then randomised response on every possible edge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Response {
    /// The noise on the number of edges.
    pub count: RoundedLaplace,
    /// The most that the response to one possible edge costs.
    pub epsilon: f64,
}

/// The noise of a run and what it costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The unit; `None` at level none.
    pub unit: Option<Unit>,
    /// The largest change of an aggregate by one record, for messages of norm 1; of a count of votes, or of one touched term, where
    /// that is what is asked.
    pub sensitivity: f64,
    /// The noise that was found: by what the noise of [`asked`] is multiplied; 0 where there is none to multiply.
    pub multiplier: f64,
    /// Noise of an aggregate divided by its sensitivity; 0 without noise.
    pub aggregate_multiplier: f64,
    /// Noise of a gradient sum divided by its sensitivity; 0 without noise.
    pub gradient_multiplier: f64,
    /// The noisy graph, where one is asked for.
    pub response: Option<Response>,
    /// The most terms of a gradient sum that one record touches.
    pub max_terms: u64,
    /// Gradient steps in each stage; 0 for full batches.
    pub steps: u64,
    /// The probability with which a training node joins a batch.
    pub rate: f64,
    /// The most values of noise that are drawn from tables.
    pub noise_values: u64,
    /// Everything that will be asked.
    pub queries: Queries,
    /// The same as one tree.
    pub event: Event,
    /// The cost at delta: at most the epsilon that was asked for.
    pub epsilon: f64,
    /// The delta.
    pub delta: f64,
    /// Which accountant says so.
    pub accountant: &'static str,
}

pub(crate) const NO_EPSILON: Error = Error::Contradiction("a private level needs an epsilon");

/// The delta of the paper ([`DeltaRule::Published`](crate::settings::DeltaRule)): one over the power of ten with as many zeros as the number of units has digits.
pub fn automatic_delta(units: usize) -> f64 {
    10f64.powi(-(units.max(1).to_string().len() as i32))
}

/// Everything that a run asks of private data, with noise as large as the sensitivity of each query: [`Plan::new`] looks for what to
/// multiply it by. Where noise cannot be multiplied, as in a randomised response, it is that of the settings' epsilon.
///
/// # Errors
/// Settings that contradict each other or the sizes.
pub fn asked(settings: &Settings, sizes: PublicSizes) -> Result<Queries> {
    let settings = &settings.checked()?.for_sizes(sizes);
    match settings.level {
        Level::None => Ok(Queries::default()),
        _ => settings.method.recipe().queries(settings, sizes),
    }
}

impl Plan {
    /// Chooses the noise.
    pub fn new(settings: &Checked, sizes: PublicSizes) -> Result<Plan> {
        Plan::by(accountant(settings)?, settings, sizes)
    }

    /// Chooses the noise by an accountant of the caller's, whatever the settings say.
    pub fn by(accountant: &dyn Accountant, settings: &Checked, sizes: PublicSizes) -> Result<Plan> {
        Plan::with(&Calibrator { accountant, found: None }, settings, sizes)
    }

    /// As [`Plan::new`], where searches for noise are remembered.
    pub(crate) fn remembered(found: &Calibrations, settings: &Checked, sizes: PublicSizes) -> Result<Plan> {
        Plan::with(&Calibrator { accountant: accountant(settings)?, found: Some(found) }, settings, sizes)
    }

    fn with(calibrator: &Calibrator<'_>, settings: &Checked, sizes: PublicSizes) -> Result<Plan> {
        let settings = &settings.for_sizes(sizes);
        match settings.level {
            Level::None => Ok(Plan::without_noise()),
            _ => settings.method.recipe().plan(calibrator, settings, sizes),
        }
    }

    /// The noise for queries by what they are multiplied with.
    pub(crate) fn calibrated(
        calibrator: &Calibrator<'_>,
        asked: Queries,
        settings: &Settings,
        sizes: PublicSizes,
    ) -> Result<Plan> {
        let delta = delta::of(settings, sizes);
        let (steps, rate) = match settings.level {
            Level::Node => {
                let batches = Batches::new(settings, sizes)?;
                (batches.steps(), batches.rate())
            }
            _ => (0, 1.0),
        };
        let base = Plan {
            unit: unit(settings),
            sensitivity: sensitivity(settings),
            steps,
            rate,
            delta,
            ..Plan::without_noise()
        };
        if asked.is_empty() {
            // No edge is ever touched.
            let event = Event::Composed { events: vec![] };
            return Ok(Plan { event, epsilon: 0.0, accountant: "none needed", ..base });
        }
        let epsilon = settings.epsilon.ok_or(NO_EPSILON)?;
        let noise_values = noise_values(settings, sizes)?;
        check_tables(settings, noise_values, epsilon, delta)?;
        let target = Target::new(epsilon, tables::provable(delta))?;
        let Calibration { multiplier, event, bound } = calibrator.calibrate(&asked.event()?, target)?;
        let queries = asked.map(|query| query.event.with_noise_times(multiplier)).ok_or(NO_MULTIPLE)?;
        Ok(Plan {
            multiplier,
            aggregate_multiplier: multiplier,
            gradient_multiplier: match settings.level {
                Level::Node => multiplier * settings.gradient_noise_ratio,
                _ => 0.0,
            },
            noise_values,
            queries,
            event,
            epsilon: bound.value,
            accountant: bound.accountant,
            ..base
        })
    }

    /// Queries that have a cost with a delta of zero, at most the settings' epsilon.
    pub(crate) fn pure(queries: Queries, settings: &Settings) -> Result<Plan> {
        let asked = settings.epsilon.ok_or(NO_EPSILON)?;
        let event = queries.event()?;
        match event.pure_epsilon() {
            Some(epsilon) if epsilon <= asked => Ok(Plan {
                unit: unit(settings),
                queries,
                event,
                epsilon,
                accountant: "pure",
                ..Plan::without_noise()
            }),
            _ => Err(Error::Internal("the queries cost more than their pure epsilon")),
        }
    }

    pub(crate) fn without_noise() -> Plan {
        Plan {
            unit: None,
            sensitivity: 1.0,
            multiplier: 0.0,
            aggregate_multiplier: 0.0,
            response: None,
            max_terms: 1,
            gradient_multiplier: 0.0,
            steps: 0,
            rate: 1.0,
            noise_values: 0,
            queries: Queries::default(),
            event: Event::NonPrivate,
            epsilon: f64::INFINITY,
            delta: 0.0,
            accountant: "none",
        }
    }
}

const NO_MULTIPLE: Error = Error::Internal("the noise of these queries is no number to be multiplied");

/// The search for noise.
pub(crate) struct Calibrator<'c> {
    accountant: &'c dyn Accountant,
    found: Option<&'c Calibrations>,
}

impl Calibrator<'_> {
    /// The smallest multiple of the noise that meets a target.
    fn calibrate(&self, asked: &Event, target: Target) -> Result<Calibration> {
        let search = || -> Result<Calibration> {
            let multiplied = |factor: f64| {
                let event = asked.with_noise_times(factor).unwrap_or(Event::NonPrivate);
                event.validate().map(|()| event)
            };
            Ok(calibrate(multiplied, target, self.accountant)?)
        };
        match self.found {
            Some(found) => found.or_search((asked, target, self.accountant.name()), search),
            None => search(),
        }
    }
}

/// Noise that was found before. A search reads the queries, the target and the accountant, and these are its key.
#[derive(Debug, Default)]
pub(crate) struct Calibrations(Mutex<HashMap<String, Calibration>>);

impl Calibrations {
    fn or_search(
        &self,
        key: (&Event, Target, &str),
        search: impl FnOnce() -> Result<Calibration>,
    ) -> Result<Calibration> {
        let key = format!("{key:?}");
        // A poisoned lock only says that another run failed; what is kept is whole.
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&key) {
            return Ok(found.clone());
        }
        let found = search()?;
        known().insert(key, found.clone());
        Ok(found)
    }
}

/// The queries of noisy aggregates, and at node level of noisy sums of gradients.
pub(crate) fn sums(settings: &Settings, sizes: PublicSizes) -> Result<Queries> {
    let sensitivity = sensitivity(settings);
    let mut queries = Queries::default();
    let aggregation = vault::aggregation(Event::gaussian(sensitivity, sensitivity)?);
    queries.add(aggregation, method::aggregations(settings) as u64);
    if vault::asks_for_counts(settings) {
        queries.add(vault::class_count()?, 1);
    }
    if vault::asks_for_columns(settings) {
        queries.add(vault::column_count()?, vault::COLUMN_ROUNDS);
    }
    if settings.level == Level::Node {
        let batches = Batches::new(settings, sizes)?;
        let noise = settings.gradient_noise_ratio * settings.clip;
        let step = Event::gaussian(noise, settings.clip)?.poisson_sampled(batches.rate())?;
        queries.add(vault::gradient_sum(step), method::stages(settings) as u64 * batches.steps());
    }
    Ok(queries)
}

/// The unit that settings protect.
pub(crate) fn unit(settings: &Settings) -> Option<Unit> {
    match settings.level {
        Level::None => None,
        Level::Edge if settings.undirected => Some(Unit::EdgeUndirected),
        Level::Edge => Some(Unit::Edge),
        Level::Node => Some(Unit::Node),
    }
}

/// How node-level training draws its batches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batches {
    train_nodes: u64,
    pub batch_size: u64,
    epochs: u64,
}

impl Batches {
    pub fn new(settings: &Settings, sizes: PublicSizes) -> Result<Batches> {
        let (train_nodes, batch_size) = (sizes.train_nodes as u64, settings.batch_size as u64);
        if batch_size >= train_nodes {
            return Err(Error::Setting {
                name: "batch size",
                value: batch_size.to_string(),
                expected: format!("fewer than the {train_nodes} training nodes"),
            });
        }
        Ok(Batches { train_nodes, batch_size, epochs: settings.epochs as u64 })
    }

    /// The probability that a node is in a batch.
    pub fn rate(&self) -> f64 {
        self.batch_size as f64 / self.train_nodes as f64
    }

    /// Gradient steps per stage, `floor(epochs * N / B)`: never fewer than `epochs` times `floor(N / B)`, so that a run
    /// with whole epochs is covered as well.
    pub fn steps(&self) -> u64 {
        let total =
            u128::from(self.train_nodes) * u128::from(self.epochs) / u128::from(self.batch_size.max(1));
        u64::try_from(total).unwrap_or(u64::MAX)
    }
}

/// How far one record moves an aggregation of messages of norm 1.
pub fn sensitivity(settings: &Settings) -> f64 {
    match settings.level {
        Level::Node => influence(settings),
        _ if settings.undirected => friendship_sensitivity(),
        _ => 1.0,
    }
}

/// The accountant of the settings.
pub(crate) fn accountant(settings: &Settings) -> Result<&'static dyn Accountant> {
    Ok(match settings.accounting {
        Accounting::Best => &Best,
        Accounting::Rdp => by_name("rdp")?,
        Accounting::Theorem => by_name("theorem")?,
    })
}

/// How far a friendship moves a sum of messages of norm 1: two rows by one each. Rounded up.
pub(crate) fn friendship_sensitivity() -> f64 {
    2f64.sqrt().next_up()
}

/// An upper bound on the values of noise that a run draws from tables.
pub(crate) fn noise_values(settings: &Settings, sizes: PublicSizes) -> Result<u64> {
    if settings.method.recipe().is_pure() {
        // Tables take a part of delta, and there is none.
        return Ok(0);
    }
    let steps = match settings.level {
        Level::Node => Batches::new(settings, sizes)?.steps() * method::stages(settings) as u64,
        _ => 0,
    };
    let widest = settings.method.recipe().widest(settings, sizes.classes);
    let nodes = method::aggregations(settings).saturating_mul(sizes.nodes);
    let aggregates = nodes.saturating_mul(widest);
    let parameters = most_parameters(settings, sizes);
    let counts = if vault::asks_for_counts(settings) { sizes.classes as u64 } else { 0 };
    let columns = if vault::asks_for_columns(settings) { vault::column_bins(sizes.columns) } else { 0 };
    let counts = counts.saturating_add(columns);
    Ok((aggregates as u64).saturating_add(counts).saturating_add(steps.saturating_mul(parameters)))
}

/// More parameters than any model of these settings has.
pub(crate) fn most_parameters(settings: &Settings, sizes: PublicSizes) -> u64 {
    settings.method.recipe().most_parameters(settings, sizes)
}

/// As [`most_parameters`], of networks.
pub(crate) fn parameters_of_networks(settings: &Settings, sizes: PublicSizes) -> u64 {
    // Every branch may read the widest input, have all layers, and twice over, as convolutions do.
    let number = |value: usize| value as u64;
    let (branches, hidden) = (number(settings.depth) + 1, number(settings.hidden));
    let widest = hidden.max(number(sizes.classes));
    let combined = branches * hidden + 1;
    let first = number(sizes.columns).max(widest).saturating_add(1).saturating_mul(hidden);
    let further = (number(settings.layers) + number(settings.encoder_layers)) * (hidden + 3) * hidden;
    let every = (2 * branches).saturating_mul(first.saturating_add(further));
    every
        .saturating_add(16 * combined * combined)
        .saturating_add(combined.saturating_mul(number(sizes.classes)))
}

/// Refuses a guarantee that noise from tables cannot give. Reproducible noise gives none.
fn check_tables(settings: &Settings, values: u64, epsilon: f64, delta: f64) -> Result<()> {
    if settings.seed.is_some() || tables::fit(values, epsilon, delta) {
        return Ok(());
    }
    let most = (1..=(10.0 * epsilon) as u32)
        .map(|tenths| f64::from(tenths) / 10.0)
        .take_while(|&smaller| tables::fit(values, smaller, delta))
        .last();
    Err(Error::Setting {
        name: "epsilon",
        value: format!("{epsilon} at delta {delta:e}"),
        expected: match most {
            Some(most) => format!("at most {most}, which tables of noise can still keep, or a larger delta"),
            None => "a larger delta, which tables of noise can still keep".into(),
        },
    })
}

/// The bound C on a sender's influence.
pub(crate) fn influence(settings: &Settings) -> f64 {
    let root = f64::from(settings.max_degree).sqrt();
    // Sampling is charged a hair more, because the root of the number of edges is rounded.
    if settings.bounding == Bounding::Sample { root.next_up() } else { root }
}
