//! Randomised response on every possible edge, then GraphSAGE on the answer (Wu et al. 2022): all that follows the noisy
//! graph is post-processing.

use progap_privacy::noise::{RoundedLaplace, Scale, SparseResponse};
use progap_privacy::{Event, Unit};

use super::catalogue::Entry;
use super::trainer::Trainer;
use super::{AuditTarget, Choice, Fitted, Method, Recipe, sage};
use crate::audit::evidence::Trial;
use crate::audit::response as attack;
use crate::model::Shape;
use crate::plan::{Calibrator, NO_EPSILON, Plan, PublicSizes, Response};
use crate::query::{Queries, Query};
use crate::settings::{Level, Settings};
use crate::{Result, vault};

/// The method.
pub(super) struct EdgeRand;

pub(crate) const ENTRY: Entry = Entry {
    method: Method::EdgeRand,
    levels: &[Level::Edge],
    what: "randomised response on every possible edge, then GraphSAGE on the answer",
    protects: "training and predictions: edges from everyone, with a delta of zero",
    paper: "Wu et al. 2022, LinkTeller",
};

impl Recipe for EdgeRand {
    fn defaults(&self, level: Level) -> Settings {
        Settings { method: Method::EdgeRand, ..Settings::plain(level) }
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        sage::check(settings, 5)
    }

    fn touches_edges(&self, _: &Settings) -> bool {
        true
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn queries(&self, settings: &Settings, _: PublicSizes) -> Result<Queries> {
        let Response { count, epsilon } = response(settings.epsilon.ok_or(NO_EPSILON)?)?;
        let count = vault::edge_count(count.event(1.0)?);
        let response = vault::edge_response(SparseResponse::event(epsilon)?);
        Ok(Queries::from_iter([(count, 1), (response, 1)]))
    }

    fn plan(&self, _: &Calibrator<'_>, settings: &Settings, sizes: PublicSizes) -> Result<Plan> {
        let response = Some(response(settings.epsilon.ok_or(NO_EPSILON)?)?);
        Ok(Plan { response, ..Plan::pure(self.queries(settings, sizes)?, settings)? })
    }

    /// # Proof definition
    /// Answers are about directed edges or about pairs. Where they are about directed edges, a friendship is two of them: the
    /// number of edges moves by 2 and two bits change, each answered on its own. Where they are about pairs, one direction changes
    /// the bit of its pair or nothing: what holds for pairs holds for it.
    fn in_unit(&self, query: &Query, unit: Unit) -> Option<Event> {
        Some(match (&query.event, unit) {
            (event, Unit::Edge) => event.clone(),
            (Event::Laplace { scale, sensitivity }, Unit::EdgeUndirected) => {
                Event::Laplace { scale: *scale, sensitivity: 2.0 * sensitivity }
            }
            (event @ Event::RandomizedResponse { .. }, Unit::EdgeUndirected) => {
                Event::SelfComposed { event: Box::new(event.clone()), count: 2 }
            }
            _ => return None,
        })
    }

    fn shape(&self, settings: &Settings, sizes: (usize, usize), _: usize, _: Option<&Choice>) -> Shape {
        sage::shape(settings, sizes)
    }

    fn holds_the_graph(&self) -> bool {
        true
    }

    fn has_features_stage(&self) -> bool {
        false
    }

    fn fit(&self, mut trainer: Trainer<'_>) -> Result<Fitted> {
        let graph = trainer.noisy_graph(progap_graph::free_memory())?;
        sage::fit_along(trainer, &graph)
    }

    fn audit(&self, target: &AuditTarget<'_>) -> Result<Vec<Trial>> {
        attack::audit(target)
    }
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
