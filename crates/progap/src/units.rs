//! The cost of a release in both units of an edge: one direction, and a friendship, that is both directions between two nodes.
//!
//! Both numbers follow from the recorded queries, whatever the graph is like, so that they tell nothing of it.

use progap_privacy::noise::tables;
use progap_privacy::{Event, Unit};

use crate::plan::{accountant, friendship_sensitivity};
use crate::query::Queries;
use crate::settings::Settings;
use crate::{Result, plan};

/// Epsilon for a friendship and for one directed edge, at the same delta; nothing where nothing can be said.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Epsilons {
    /// Both directions between two nodes.
    pub friendship: Option<f64>,
    /// One direction.
    pub directed: Option<f64>,
}

impl Epsilons {
    /// The stated epsilon, and that of the other unit.
    pub(crate) fn of(
        queries: &Queries,
        unit: Option<Unit>,
        (epsilon, delta): (f64, f64),
        settings: &Settings,
        sizes: plan::PublicSizes,
    ) -> Result<Epsilons> {
        let values = plan::noise_values(settings, sizes)?;
        let other = |other: Unit| -> Result<Option<f64>> {
            match in_unit(queries, settings, other)? {
                None => Ok(None),
                Some(event) => cost(&event, settings, delta, values),
            }
        };
        Ok(match unit {
            Some(Unit::Edge) => {
                Epsilons { friendship: other(Unit::EdgeUndirected)?, directed: Some(epsilon) }
            }
            Some(Unit::EdgeUndirected) => {
                // One direction is never worth more than both.
                let directed = other(Unit::Edge)?.map(|directed| directed.min(epsilon));
                Epsilons { friendship: Some(epsilon), directed }
            }
            _ => Epsilons::default(),
        })
    }
}

/// An epsilon to four decimals, rounded up: never less than it is.
///
/// ```
/// assert_eq!(progap::units::written(0.99991), "1.0000");
/// assert_eq!(progap::units::written(0.0), "0.0000");
/// ```
pub fn written(epsilon: f64) -> String {
    format!("{:.4}", ((epsilon * 1e4 - 1e-6).ceil() / 1e4).max(0.0))
}

/// The queries of a run at edge level, for neighbours that differ in the given unit of an edge, or nothing where no rule is known.
///
/// # Errors
/// More queries than an accountant takes.
pub fn in_unit(queries: &Queries, settings: &Settings, unit: Unit) -> Result<Option<Event>> {
    let queries = queries.map(|query| settings.method.recipe().in_unit(query, unit));
    queries.map(|queries| queries.event()).transpose()
}

/// A noisy sum of messages of norm 1 over the graph, for neighbours that differ in the given unit of an edge.
///
/// # Proof definition
/// Such a sum moves in one row by 1 at most where one directed edge changes, and in two rows, so by sqrt 2, where a friendship does:
/// the sensitivity is replaced.
pub(crate) fn sum_in_unit(event: &Event, unit: Unit) -> Option<Event> {
    match (event, unit) {
        (Event::Gaussian { sigma, .. }, Unit::Edge) => {
            Some(Event::Gaussian { sigma: *sigma, sensitivity: 1.0 })
        }
        (Event::Gaussian { sigma, .. }, Unit::EdgeUndirected) => {
            Some(Event::Gaussian { sigma: *sigma, sensitivity: friendship_sensitivity() })
        }
        _ => None,
    }
}

/// The epsilon of events by the accountant of the settings.
fn cost(event: &Event, settings: &Settings, delta: f64, values: u64) -> Result<Option<f64>> {
    if *event == (Event::Composed { events: vec![] }) {
        return Ok(Some(0.0));
    }
    if delta == 0.0 {
        return Ok(event.pure_epsilon());
    }
    let bound = match accountant(settings)?.epsilon(event, tables::provable(delta)) {
        Err(progap_privacy::Error::Unsupported(_)) => return Ok(None),
        bound => bound?.value,
    };
    // Noise drawn from tables costs more at a larger epsilon, and the guarantee must still pay for it.
    let paid = settings.seed.is_some() || tables::fit(values, bound, delta);
    Ok((bound.is_finite() && paid).then_some(bound))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Plan, PublicSizes};
    use crate::settings::{Level, Method};

    const SIZES: PublicSizes = PublicSizes::EXAMPLE;

    fn both(settings: &Settings) -> (Plan, Epsilons) {
        let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
        let stated = (plan.epsilon, plan.delta);
        let both = Epsilons::of(&plan.queries, plan.unit, stated, settings, SIZES).expect("both");
        (plan, both)
    }

    /// Noise for a friendship at epsilon 1 is noise for a directed edge at the epsilon that is stated, and the other way round.
    #[test]
    fn each_unit_s_epsilon_is_the_other_s_target() {
        let friendship = Settings {
            undirected: true,
            delta: Some(1e-6),
            ..Settings::of(crate::Method::Progap, Level::Edge)
        };
        let (plan, found) = both(&friendship);
        assert_eq!(found.friendship, Some(plan.epsilon));
        let directed = found.directed.expect("an epsilon");
        assert!(directed < 0.75 && directed > 0.6, "{directed}");
        let settings = Settings { undirected: false, epsilon: Some(directed), ..friendship.clone() };
        let (other, back) = both(&settings);
        let noise = |plan: &Plan| plan.aggregate_multiplier * plan.sensitivity;
        assert!((noise(&other) / noise(&plan) - 1.0).abs() < 1e-6, "{} {}", noise(&other), noise(&plan));
        assert!((back.friendship.expect("an epsilon") - plan.epsilon).abs() < 1e-6);
    }

    #[test]
    fn a_friendship_is_two_answers_of_edge_rand_and_one_direction_is_at_most_a_pair() {
        let settings = Settings::of(Method::EdgeRand, Level::Edge);
        let (plan, found) = both(&settings);
        assert!((found.friendship.expect("an epsilon") / plan.epsilon - 2.0).abs() < 1e-12);
        assert_eq!(found.directed, Some(plan.epsilon));
        let (plan, found) = both(&Settings { undirected: true, ..settings });
        assert_eq!((found.friendship, found.directed), (Some(plan.epsilon), Some(plan.epsilon)));
    }

    #[test]
    fn without_a_query_both_are_zero_and_records_have_neither() {
        let found = both(&Settings { depth: 0, ..Settings::of(crate::Method::Progap, Level::Edge) }).1;
        assert_eq!((found.friendship, found.directed), (Some(0.0), Some(0.0)));
        let node = Settings { batch_size: 100, ..Settings::of(crate::Method::Progap, Level::Node) };
        assert_eq!(both(&node).1, Epsilons::default());
    }
}
