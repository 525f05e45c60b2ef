//! Randomised response on every possible edge, then GraphSAGE on the answer (Wu et al. 2022): all that follows the noisy
//! graph is post-processing.

use progap_privacy::Event;
use progap_privacy::noise::{RoundedLaplace, Scale, Source, SparseResponse};

use super::trainer::Trainer;
use super::{Fitted, sage};
use crate::plan::Response;
use crate::{Result, memory};

/// The share of epsilon that is spent on the number of edges.
const COUNT_SHARE: f64 = 0.1;

/// The response that an epsilon pays for, and what it costs: never more, with a delta of zero.
pub(crate) fn response(epsilon: f64) -> Result<(Response, Event)> {
    // Costs and their sum are rounded, and may not pass what was asked for.
    let largest = f64::min((1.0 - COUNT_SHARE) * epsilon, SparseResponse::MAX_EPSILON);
    let epsilon = epsilon - 1e-14 * (1.0 + epsilon) - 1.2e-16 * largest.exp();
    let count = RoundedLaplace::new(Scale::at_least(1.0 / (COUNT_SHARE * epsilon))?);
    let epsilon = f64::min((1.0 - COUNT_SHARE) * epsilon, SparseResponse::MAX_EPSILON);
    let event = Event::composed(vec![count.event(1.0)?, SparseResponse::event(epsilon)?])?;
    Ok((Response { count, epsilon }, event))
}

pub(super) fn fit<S: Source>(mut trainer: Trainer<'_, S>) -> Result<Fitted<S>> {
    let graph = trainer.noisy_graph(memory::available())?;
    sage::fit_along(trainer, &graph)
}
