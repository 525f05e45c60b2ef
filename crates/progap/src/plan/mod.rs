//! How much noise: settings and public sizes in, queries with their noise out. The one plan that training, `progap
//! account`, experiments, audits and `verify` have in common.

pub mod delta;
pub mod query;
pub mod units;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use progap_privacy::accountant::{Accountant, Best, by_name};
use progap_privacy::calibrate::{Calibration, Target, calibrate};
use progap_privacy::noise::{RoundedLaplace, Scale, SparseResponse, tables};
use progap_privacy::{Event, Unit};

use crate::method::{self, NoiseRatios, Program, QueryKind, QuerySpec};
use crate::query::Queries;
pub use crate::settings::PublicFacts;
use crate::settings::{Accounting, Bounding, Level, Settings, ValidSettings};
use crate::{Error, ErrorKind, Result, vault};

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
    /// The largest change of an aggregate by one record, for messages of norm 1; of a count of votes, or of one touched
    /// term, where that is what is asked.
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

const NO_EPSILON: ErrorKind = ErrorKind::Contradiction(Cow::Borrowed("a private level needs an epsilon"));

/// The delta of the paper ([`DeltaRule::Published`](crate::settings::DeltaRule)): one over the power of ten with as
/// many zeros as the number of units has digits.
pub fn automatic_delta(units: usize) -> f64 {
    10f64.powi(-(units.max(1).to_string().len() as i32))
}

/// Everything that a run asks of private data, with noise as large as the sensitivity of each query: [`Plan::new`]
/// looks for what to multiply it by. Where noise cannot be multiplied, as in a randomised response, it is that of the
/// settings' epsilon.
///
/// # Errors
/// Settings that contradict each other or the sizes.
pub fn asked(settings: &Settings, sizes: PublicFacts) -> Result<Queries> {
    let settings = &settings.checked()?;
    match settings.level {
        Level::None => Ok(Queries::default()),
        _ => queries(&program(settings, sizes), settings, sizes),
    }
}

fn program(settings: &Settings, sizes: PublicFacts) -> Program {
    method::program(settings, (sizes.columns, sizes.classes), None)
}

impl Plan {
    /// Chooses the noise.
    pub fn new(settings: &ValidSettings, sizes: PublicFacts) -> Result<Plan> {
        Plan::by(accountant(settings)?, settings, sizes)
    }

    /// Chooses the noise by an accountant of the caller's, whatever the settings say.
    pub fn by(accountant: &dyn Accountant, settings: &ValidSettings, sizes: PublicFacts) -> Result<Plan> {
        Plan::with(&Calibrator { accountant, found: None }, settings, sizes)
    }

    /// As [`Plan::new`], where searches for noise are remembered.
    pub(crate) fn remembered(
        found: &Calibrations,
        settings: &ValidSettings,
        sizes: PublicFacts,
    ) -> Result<Plan> {
        Plan::with(&Calibrator { accountant: accountant(settings)?, found: Some(found) }, settings, sizes)
    }

    fn with(calibrator: &Calibrator<'_>, settings: &ValidSettings, sizes: PublicFacts) -> Result<Plan> {
        match settings.level {
            Level::None => Ok(Plan::without_noise()),
            _ => Plan::of(&program(settings, sizes), calibrator, settings, sizes),
        }
    }

    /// The noise for a program, by what its answers are protected with.
    fn of(
        program: &Program,
        calibrator: &Calibrator<'_>,
        settings: &Settings,
        sizes: PublicFacts,
    ) -> Result<Plan> {
        let asked = queries(program, settings, sizes)?;
        if program.count(QueryKind::Response) > 0 {
            let response = Some(response(settings.epsilon.ok_or(NO_EPSILON)?)?);
            return Ok(Plan { response, ..Plan::pure(asked, settings)? });
        }
        if program.count(QueryKind::Votes) > 0 {
            return Plan::of_votes(program, settings);
        }
        let plan = Plan::calibrated(calibrator, (program, asked), settings, sizes)?;
        if program.count(QueryKind::SubgraphGradient) == 0 {
            return Ok(plan);
        }
        Ok(Plan {
            sensitivity: term_sensitivity(settings),
            max_terms: max_terms(settings, sizes.train_nodes),
            aggregate_multiplier: 0.0,
            gradient_multiplier: plan.multiplier,
            ..plan
        })
    }

    /// The smallest scale on the grid of [`Scale`] with which all counts of votes together cost at most epsilon.
    fn of_votes(program: &Program, settings: &Settings) -> Result<Plan> {
        let (epsilon, sensitivity) = (settings.epsilon.ok_or(NO_EPSILON)?, vault::vote_sensitivity(settings));
        let counts = |scale: f64| -> Result<Queries> {
            let count = vault::vote_count(Event::laplace(scale, sensitivity)?);
            Ok(Queries::from_iter([(count, program.count(QueryKind::Votes) as u64)]))
        };
        let mut scale = Scale::at_least(program.count(QueryKind::Votes) as f64 * sensitivity / epsilon)?;
        let costs = |scale: Scale| Ok::<_, Error>(counts(scale.value())?.event()?.pure_epsilon());
        // Costs are rounded up.
        while costs(scale)?.is_none_or(|cost| cost > epsilon) {
            scale = scale.next_up()?;
        }
        let plan = Plan::pure(counts(scale.value())?, settings)?;
        Ok(Plan { sensitivity, multiplier: scale.value() / sensitivity, ..plan })
    }

    /// The noise for queries by what they are multiplied with.
    fn calibrated(
        calibrator: &Calibrator<'_>,
        (program, asked): (&Program, Queries),
        settings: &Settings,
        sizes: PublicFacts,
    ) -> Result<Plan> {
        let delta = delta::of(settings, sizes);
        let in_batches = program.queries().any(|(_, query)| query.kind.is_gradient());
        let (steps, rate) = match settings.level {
            Level::Node if in_batches => {
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
                Level::Node if in_batches => multiplier * settings.gradient_noise_ratio,
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
    fn pure(queries: Queries, settings: &Settings) -> Result<Plan> {
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
            _ => Err(Error::internal("the queries cost more than their pure epsilon")),
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

const NO_MULTIPLE: ErrorKind =
    ErrorKind::Internal("the noise of these queries is no number to be multiplied");

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

/// The queries of a program, kind by kind, each with noise as large as its sensitivity.
fn queries(program: &Program, settings: &Settings, sizes: PublicFacts) -> Result<Queries> {
    let mut queries = Queries::default();
    for kind in [
        QueryKind::Response,
        QueryKind::Votes,
        QueryKind::Aggregation,
        QueryKind::ClassSums,
        QueryKind::LabelTable,
        QueryKind::ClassCounts,
        QueryKind::ColumnCounts,
        QueryKind::Gradient,
        QueryKind::SubgraphGradient,
    ] {
        for (_, query) in program.queries().filter(|(_, query)| query.kind == kind) {
            ask(&mut queries, query, settings, sizes)?;
        }
    }
    Ok(queries)
}

fn ask(queries: &mut Queries, query: &QuerySpec, settings: &Settings, sizes: PublicFacts) -> Result<()> {
    let moved = query.sensitivity;
    match query.kind {
        QueryKind::Aggregation => queries.add(vault::aggregation(Event::gaussian(moved, moved)?), 1),
        QueryKind::Votes => queries.add(vault::vote_count(Event::laplace(moved, moved)?), 1),
        QueryKind::Response => {
            let Response { count, epsilon } = response(settings.epsilon.ok_or(NO_EPSILON)?)?;
            queries.add(vault::edge_count(count.event(moved)?), 1);
            queries.add(vault::edge_response(SparseResponse::event(epsilon)?), 1);
        }
        QueryKind::ClassCounts => queries.add(vault::class_count()?, 1),
        QueryKind::ClassSums => {
            queries.add(vault::class_sum(NoiseRatios::of(settings, sizes.columns).class_sums)?, 1);
        }
        QueryKind::LabelTable => {
            queries.add(vault::label_table(NoiseRatios::of(settings, sizes.columns).label_tables)?, 1);
        }
        QueryKind::ColumnCounts => queries.add(vault::column_count()?, vault::COLUMN_ROUNDS),
        QueryKind::Gradient => {
            let batches = Batches::new(settings, sizes)?;
            let noise = settings.gradient_noise_ratio * moved;
            let step = Event::gaussian(noise, moved)?.poisson_sampled(batches.rate())?;
            queries.add(vault::gradient_sum(step), batches.steps());
        }
        // `floor(epochs * N / B)` noisy sums over B of the N training nodes' terms, drawn uniformly without
        // replacement.
        //
        // Proof definition: a term is a gradient clipped to C that reads the node's own record and the records of its
        // senders; every node sends to at most D others, chosen from its own record. So a record touches its own term
        // and at most D others, and moves each from one clipped gradient to any other, by at most 2C
        // (docs/proofs/subgraph-batches.md).
        QueryKind::SubgraphGradient => {
            let batches = Batches::new(settings, sizes)?;
            let (terms, population) = (max_terms(settings, sizes.train_nodes), sizes.train_nodes as u64);
            let step =
                Event::sampled_without_replacement(population, batches.batch_size, terms, moved, moved)?;
            queries.add(vault::subgraph_sum(step, terms), batches.steps());
        }
    }
    Ok(())
}

/// The most terms that one record touches: its own, and one for each receiver.
pub fn max_terms(settings: &Settings, train_nodes: usize) -> u64 {
    (u64::from(settings.max_degree) + 1).min(train_nodes as u64)
}

/// How far a record moves a touched term: from one clipped gradient to any other.
pub(crate) fn term_sensitivity(settings: &Settings) -> f64 {
    2.0 * settings.clip
}

/// The share of epsilon that is spent on the number of edges.
const COUNT_SHARE: f64 = 0.1;

/// The response that an epsilon pays for: it never costs more, with a delta of zero.
fn response(epsilon: f64) -> Result<Response> {
    // Costs and their sum are rounded, and may not pass what was asked for.
    let largest = f64::min((1.0 - COUNT_SHARE) * epsilon, SparseResponse::MAX_EPSILON);
    let epsilon = epsilon - 1e-14 * (1.0 + epsilon) - 1.2e-16 * largest.exp();
    let count = RoundedLaplace::new(Scale::at_least(1.0 / (COUNT_SHARE * epsilon))?);
    let epsilon = f64::min((1.0 - COUNT_SHARE) * epsilon, SparseResponse::MAX_EPSILON);
    Ok(Response { count, epsilon })
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
    pub fn new(settings: &Settings, sizes: PublicFacts) -> Result<Batches> {
        let (train_nodes, batch_size) = (sizes.train_nodes as u64, settings.batch_size as u64);
        if batch_size >= train_nodes {
            return Err(Error::out_of_range(
                "batch size",
                batch_size,
                format!("fewer than the {train_nodes} training nodes"),
            ));
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
        _ if settings.weighs_pairs() => 1.0,
        _ if settings.undirected => undirected_sensitivity(),
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

/// How far an undirected edge moves a sum of messages of norm 1: two rows by one each. Rounded up.
pub(crate) fn undirected_sensitivity() -> f64 {
    2f64.sqrt().next_up()
}

/// An upper bound on the values of noise that a run draws from tables.
pub(crate) fn noise_values(settings: &Settings, sizes: PublicFacts) -> Result<u64> {
    let program = program(settings, sizes);
    let in_batches = program.queries().any(|(_, query)| query.kind.is_gradient());
    let steps = match settings.level {
        Level::Node if in_batches => Batches::new(settings, sizes)?.steps(),
        _ => 0,
    };
    Ok(program.noise_values(sizes, steps))
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
    Err(Error::out_of_range(
        "epsilon",
        format!("{epsilon} at delta {delta:e}"),
        match most {
            Some(most) => format!("at most {most}, which tables of noise can still keep, or a larger delta"),
            None => "a larger delta, which tables of noise can still keep".into(),
        },
    ))
}

/// The bound C on a sender's influence.
pub(crate) fn influence(settings: &Settings) -> f64 {
    let root = f64::from(settings.max_degree).sqrt();
    // Sampling is charged a hair more, because the root of the number of edges is rounded.
    if settings.bounding == Bounding::Sample { root.next_up() } else { root }
}
