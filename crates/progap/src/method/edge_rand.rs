//! Randomised response on every possible edge, then GraphSAGE on the answer (Wu et al. 2022): all that follows the noisy
//! graph is post-processing.

use progap_privacy::accountant::Accountant;
use progap_privacy::noise::{RoundedLaplace, Scale, SparseResponse};
use progap_privacy::{Event, Unit};

use super::catalogue::Entry;
use super::trainer::Trainer;
use super::{Choice, Fitted, Method, Recipe, Target, sage};
use crate::audit::evidence::Trial;
use crate::audit::response as attack;
use crate::model::Shape;
use crate::plan::{NO_EPSILON, Plan, PublicSizes, Response};
use crate::release::same_queries;
use crate::settings::{Level, Settings};
use crate::{Error, Result, memory};

/// The method.
pub(super) struct EdgeRand;

const ENTRY: Entry = Entry {
    method: Method::EdgeRand,
    levels: &[Level::Edge],
    what: "randomised response on every possible edge, then GraphSAGE on the answer",
    protects: "training and predictions: edges from everyone, with a delta of zero",
    paper: "Wu et al. 2022, LinkTeller",
};

impl Recipe for EdgeRand {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

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

    fn plan(&self, _: &dyn Accountant, settings: &Settings, _: PublicSizes) -> Result<Plan> {
        let (response, event) = response(settings.epsilon.ok_or(NO_EPSILON)?)?;
        let epsilon = event.pure_epsilon().ok_or(Error::Contradiction("a response has a pure cost"))?;
        Ok(Plan {
            unit: Some(if settings.undirected { Unit::EdgeUndirected } else { Unit::Edge }),
            response: Some(response),
            event,
            epsilon,
            accountant: "pure",
            ..Plan::without_noise()
        })
    }

    fn expects(
        &self,
        event: &Event,
        settings: &Settings,
        sizes: PublicSizes,
    ) -> Result<Option<(String, bool)>> {
        let words = "1 noisy number of edges, 1 response for each possible edge".into();
        Ok(Some((words, same_queries(event, &Plan::new(&settings.checked()?, sizes)?.event)?)))
    }

    fn shape(&self, settings: &Settings, sizes: (usize, usize), _: usize, _: Option<&Choice>) -> Shape {
        sage::shape(settings, sizes)
    }

    fn has_features_stage(&self) -> bool {
        false
    }

    fn fit(&self, mut trainer: Trainer<'_>) -> Result<Fitted> {
        let graph = trainer.noisy_graph(memory::available())?;
        sage::fit_along(trainer, &graph)
    }

    fn audit(&self, target: &Target<'_>) -> Result<Vec<Trial>> {
        attack::audit(target)
    }
}

/// The share of epsilon that is spent on the number of edges.
const COUNT_SHARE: f64 = 0.1;

/// The response that an epsilon pays for, and what it costs: never more, with a delta of zero.
fn response(epsilon: f64) -> Result<(Response, Event)> {
    // Costs and their sum are rounded, and may not pass what was asked for.
    let largest = f64::min((1.0 - COUNT_SHARE) * epsilon, SparseResponse::MAX_EPSILON);
    let epsilon = epsilon - 1e-14 * (1.0 + epsilon) - 1.2e-16 * largest.exp();
    let count = RoundedLaplace::new(Scale::at_least(1.0 / (COUNT_SHARE * epsilon))?);
    let epsilon = f64::min((1.0 - COUNT_SHARE) * epsilon, SparseResponse::MAX_EPSILON);
    let event = Event::composed(vec![count.event(1.0)?, SparseResponse::event(epsilon)?])?;
    Ok((Response { count, epsilon }, event))
}
