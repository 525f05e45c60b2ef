//! How much noise: settings and public sizes in, noise and the event tree out.

use progap_graph::{Dataset, Part, transform};
use progap_privacy::accountant::{Accountant, Best, by_name};
use progap_privacy::calibrate::{SubgraphPlan, Target, Training, calibrate};
use progap_privacy::noise::{RoundedLaplace, tables};
use progap_privacy::{Event, Unit};
use serde::{Deserialize, Serialize};

use crate::settings::{Accounting, Bounding, Checked, Level, Settings};
use crate::{Error, Result, delta, method};

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
}

impl PublicSizes {
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
        }
    }
}

/// A noisy graph: its number of edges by Laplace noise, then randomised response on every possible edge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Response {
    /// The noise on the number of edges.
    pub count: RoundedLaplace,
    /// What the response to one possible edge may cost.
    pub epsilon: f64,
}

/// The noise of a run and what it costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The unit; `None` at level none.
    pub unit: Option<Unit>,
    /// The largest change of an aggregate, for messages of norm 1.
    pub sensitivity: f64,
    /// Noise of an aggregate divided by its sensitivity; 0 without noise.
    pub aggregate_multiplier: f64,
    /// Noise of a gradient sum divided by its sensitivity; 0 without noise.
    pub gradient_multiplier: f64,
    /// The noisy graph, of the method edge-rand.
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
    pub event: Event,
    /// What it costs at delta: at most what was asked for.
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

impl Plan {
    /// Chooses the noise.
    pub fn new(settings: &Checked, sizes: PublicSizes) -> Result<Plan> {
        Plan::by(accountant(settings)?, settings, sizes)
    }

    /// Chooses the noise by an accountant of the caller's, whatever the settings say.
    pub fn by(accountant: &dyn Accountant, settings: &Checked, sizes: PublicSizes) -> Result<Plan> {
        match settings.level {
            Level::None => Ok(Plan::without_noise()),
            _ => settings.method.recipe().plan(accountant, settings, sizes),
        }
    }

    /// Noisy aggregates, and at node level noisy sums of gradients.
    pub(crate) fn of_sums(
        accountant: &dyn Accountant,
        settings: &Settings,
        sizes: PublicSizes,
    ) -> Result<Plan> {
        let aggregations = method::aggregations(settings) as u64;
        let (unit, training) = match settings.level {
            Level::None => return Ok(Plan::without_noise()),
            Level::Edge if settings.undirected => (Unit::EdgeUndirected, None),
            Level::Edge => (Unit::Edge, None),
            Level::Node => (Unit::Node, Some(training(settings, sizes)?)),
        };
        let sensitivity = sensitivity(settings);
        let delta = delta::of(settings, sizes);
        if aggregations == 0 && training.is_none() {
            // No edge is ever touched.
            let event = Event::Composed { events: vec![] };
            let (epsilon, accountant) = (0.0, "none needed");
            let unit = Some(unit);
            return Ok(Plan {
                unit,
                sensitivity,
                event,
                epsilon,
                delta,
                accountant,
                ..Plan::without_noise()
            });
        }
        let epsilon = settings.epsilon.ok_or(NO_EPSILON)?;
        let (steps, rate) = training.map_or((0, 1.0), |training| (training.steps(), training.rate()));
        let event = |multiplier: f64| queries(settings, training, multiplier);
        let noise_values = noise_values(settings, sizes)?;
        check_tables(settings, noise_values, epsilon, delta)?;
        let calibration = calibrate(event, Target::new(epsilon, tables::provable(delta))?, accountant)?;
        Ok(Plan {
            unit: Some(unit),
            sensitivity,
            aggregate_multiplier: calibration.multiplier,
            response: None,
            max_terms: 1,
            gradient_multiplier: match settings.level {
                Level::Node => calibration.multiplier * settings.gradient_noise_ratio,
                _ => 0.0,
            },
            steps,
            rate,
            noise_values,
            event: calibration.event,
            epsilon: calibration.bound.value,
            delta,
            accountant: calibration.bound.accountant,
        })
    }

    /// Noisy sums over nodes with their senders.
    pub(crate) fn of_subgraphs(
        accountant: &dyn Accountant,
        settings: &Settings,
        sizes: PublicSizes,
    ) -> Result<Plan> {
        let (training, subgraphs) = subgraphs(settings, sizes)?;
        let delta = delta::of(settings, sizes);
        let epsilon = settings.epsilon.ok_or(NO_EPSILON)?;
        let noise_values = noise_values(settings, sizes)?;
        check_tables(settings, noise_values, epsilon, delta)?;
        let noise = subgraphs.calibrate(Target::new(epsilon, tables::provable(delta))?, accountant)?;
        Ok(Plan {
            unit: Some(Unit::Node),
            sensitivity: subgraphs.term_sensitivity(),
            max_terms: subgraphs.max_terms(),
            gradient_multiplier: noise.multiplier,
            steps: training.steps(),
            rate: training.rate(),
            noise_values,
            event: noise.event,
            epsilon: noise.bound.value,
            delta,
            accountant: noise.bound.accountant,
            ..Plan::without_noise()
        })
    }

    pub(crate) fn without_noise() -> Plan {
        Plan {
            unit: None,
            sensitivity: 1.0,
            aggregate_multiplier: 0.0,
            response: None,
            max_terms: 1,
            gradient_multiplier: 0.0,
            steps: 0,
            rate: 1.0,
            noise_values: 0,
            event: Event::NonPrivate,
            epsilon: f64::INFINITY,
            delta: 0.0,
            accountant: "none",
        }
    }
}

/// All queries of a run with aggregations or gradient sums, where the noise of aggregations is so many times their
/// sensitivity: what [`Plan::new`] calibrates.
///
/// # Errors
/// A multiplier that is no noise, or sizes that cannot be trained with.
pub fn event(settings: &Settings, sizes: PublicSizes, multiplier: f64) -> Result<Event> {
    let training = match settings.level {
        Level::Node => Some(training(settings, sizes)?),
        _ => None,
    };
    Ok(queries(settings, training, multiplier)?)
}

fn queries(
    settings: &Settings,
    training: Option<Training>,
    multiplier: f64,
) -> std::result::Result<Event, progap_privacy::Error> {
    let (aggregations, runs) = (method::aggregations(settings) as u64, method::stages(settings) as u64);
    let sensitivity = sensitivity(settings);
    let mut events = Vec::new();
    if aggregations > 0 {
        let one = Event::gaussian(multiplier * sensitivity, sensitivity)?;
        events.push(one.repeated(aggregations)?);
    }
    if let Some(training) = training {
        let noise = multiplier * settings.gradient_noise_ratio * training.clip;
        let step = Event::gaussian(noise, training.clip)?.poisson_sampled(training.rate())?;
        events.push(step.repeated(runs * training.steps())?);
    }
    Event::composed(events)
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
    let steps = match settings.level {
        Level::Node => training(settings, sizes)?.steps() * method::stages(settings) as u64,
        _ => 0,
    };
    let widest = settings.hidden.max(sizes.classes);
    let nodes = method::aggregations(settings).saturating_mul(sizes.nodes);
    let aggregates = nodes.saturating_mul(widest);
    let parameters = most_parameters(settings, sizes);
    Ok((aggregates as u64).saturating_add(steps.saturating_mul(parameters)))
}

/// More parameters than any model of these settings has.
pub(crate) fn most_parameters(settings: &Settings, sizes: PublicSizes) -> u64 {
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

/// Refuses a promise that noise from tables cannot keep. Reproducible noise promises nothing.
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

/// How DP-GNN draws its batches, and what they can tell.
pub(crate) fn subgraphs(settings: &Settings, sizes: PublicSizes) -> Result<(Training, SubgraphPlan)> {
    let training = training(settings, sizes)?;
    Ok((training, SubgraphPlan::new(training, settings.max_degree.into())?))
}

fn training(settings: &Settings, sizes: PublicSizes) -> Result<Training> {
    let (train_nodes, batch_size) = (sizes.train_nodes as u64, settings.batch_size as u64);
    if batch_size >= train_nodes {
        return Err(Error::Setting {
            name: "batch_size",
            value: batch_size.to_string(),
            expected: format!("fewer than the {train_nodes} training nodes"),
        });
    }
    Ok(Training { train_nodes, batch_size, epochs: settings.epochs as u64, clip: settings.clip })
}

/// The bound C on a sender's influence.
pub(crate) fn influence(settings: &Settings) -> f64 {
    let root = f64::from(settings.max_degree).sqrt();
    // Sampling is charged a hair more, because the root of the number of edges is rounded.
    if settings.bounding == Bounding::Sample { root.next_up() } else { root }
}
