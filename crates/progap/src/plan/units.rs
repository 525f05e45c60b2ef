//! The cost of one run in several units: for one directed edge, for an undirected edge, that is both directions
//! between two nodes, and for a node's record.
//!
//! All of them follow from the recorded queries, whatever the graph is like, so that they tell nothing of it.

use progap_privacy::noise::tables;
use progap_privacy::{Event, Unit, UnitEvent};

use crate::plan::{accountant, undirected_sensitivity};
use crate::query::{Queries, Query};
use crate::settings::{Level, Settings};
use crate::{Result, plan, vault};

/// Epsilon for an undirected edge and for one directed edge, at the same delta; nothing where nothing can be said.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Epsilons {
    /// Both directions between two nodes.
    pub undirected: Option<f64>,
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
        sizes: plan::PublicFacts,
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
                Epsilons { undirected: other(Unit::EdgeUndirected)?, directed: Some(epsilon) }
            }
            Some(Unit::EdgeUndirected) => {
                // One direction is never worth more than both.
                let directed = other(Unit::Edge)?.map(|directed| directed.min(epsilon));
                Epsilons { undirected: Some(epsilon), directed }
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

/// The queries of a run, for neighbours that differ in the given unit of an edge; `None` if no rule is known.
///
/// # Errors
/// More queries than an accountant takes.
pub fn in_unit(queries: &Queries, settings: &Settings, unit: Unit) -> Result<Option<Event>> {
    let mut asked = Queries::default();
    for (query, count) in queries.iter() {
        let told = match settings.level {
            Level::Node => of_a_list(query, unit),
            _ => of_edges(query, settings, unit).map(Told::AsMuchAs),
        };
        match told {
            None => return Ok(None),
            Some(Told::Nothing) => {}
            Some(Told::AsMuchAs(event)) => asked.add(Query { event, ..query.clone() }, count),
        }
    }
    asked.event().map(Some)
}

/// The queries of a run in every unit but its own in which something is known of them.
///
/// # Errors
/// As [`in_unit`].
pub fn in_other_units(queries: &Queries, settings: &Settings, own: Unit) -> Result<Vec<UnitEvent>> {
    let mut others = Vec::new();
    for unit in [Unit::Edge, Unit::EdgeUndirected].into_iter().filter(|unit| *unit != own) {
        let event = match in_unit(queries, settings, unit)? {
            None => queries.event()?.by_inclusion(own, unit),
            found => found,
        };
        others.extend(event.map(|event| UnitEvent { unit, event }));
    }
    Ok(others)
}

/// What a query tells of an edge.
enum Told {
    /// Nothing beyond what earlier answers told.
    Nothing,
    /// As much as this event.
    AsMuchAs(Event),
}

/// What a query at node level tells of one directed edge, or of an undirected one; `None` if no rule is known.
///
/// # Proof definition
/// Neighbours have the same features, labels and training nodes, and one sender's list, or two senders' lists, differ
/// in one receiver ([proof](progap_privacy::proofs::units#edge-in-a-record)).
/// - An aggregation of sensitivity C moves by at most sqrt 2 C for each list: what a sender sends with one list and
///   with the other has a norm of at most C each, and no entry of one has the opposite sign of the same entry of the
///   other, since both are roundings of positive multiples of the same message.
/// - A gradient over rows, and counts of classes or of values, read features, labels and released answers, and no
///   edge: given earlier answers they are the same in both worlds.
/// - A gradient over nodes with their senders reads a list by which receivers it names. Two lists that differ in one
///   receiver have samples that can be coupled to differ in one, or in one for another: two terms are touched, each
///   as by any record.
fn of_a_list(query: &Query, unit: Unit) -> Option<Told> {
    let lists: u32 = match unit {
        Unit::Edge => 1,
        Unit::EdgeUndirected => 2,
        Unit::Node => return Some(Told::AsMuchAs(query.event.clone())),
    };
    Some(match (query.name.as_str(), &query.event) {
        (vault::AGGREGATION, Event::Gaussian { sigma, sensitivity }) => {
            let sensitivity = (f64::from(lists) * undirected_sensitivity() * sensitivity).next_up();
            Told::AsMuchAs(Event::Gaussian { sigma: *sigma, sensitivity })
        }
        (vault::GRADIENT | vault::CLASS_COUNTS | vault::COLUMN_COUNTS, _) => Told::Nothing,
        (
            vault::SUBGRAPH_GRADIENT,
            Event::SampledWithoutReplacement { population, batch_size, sigma, term_sensitivity, .. },
        ) => Told::AsMuchAs(Event::SampledWithoutReplacement {
            population: *population,
            batch_size: *batch_size,
            max_terms: u64::from(2 * lists).min(*population),
            sigma: *sigma,
            term_sensitivity: *term_sensitivity,
        }),
        _ => return None,
    })
}

/// What a query at edge level tells of neighbours that differ in the given unit of an edge; `None` if no rule is known.
///
/// # Proof definition
/// - A sum moves as [`sum_in_unit`] says.
/// - A directed edge moves one count of votes by one, an undirected edge one count in each of two rows, whatever the
///   noise was chosen for.
/// - Answers of a randomised response are about directed edges or about pairs. Where they are about directed edges, an
///   undirected edge is two of them: the number of edges moves by 2 and two bits change, each answered on its own.
///   Where they are about pairs, one direction changes the bit of its pair or nothing: what holds for pairs holds for
///   it.
fn of_edges(query: &Query, settings: &Settings, unit: Unit) -> Option<Event> {
    match (query.name.as_str(), &query.event, unit) {
        (vault::VOTES, Event::Laplace { scale, .. }, _) => {
            let sensitivity = if unit == Unit::EdgeUndirected { 2.0 } else { 1.0 };
            Some(Event::Laplace { scale: *scale, sensitivity })
        }
        (vault::EDGE_COUNT | vault::EDGE_RESPONSE, event, Unit::Edge) => Some(event.clone()),
        (vault::EDGE_COUNT, Event::Laplace { scale, sensitivity }, Unit::EdgeUndirected) => {
            Some(Event::Laplace { scale: *scale, sensitivity: 2.0 * sensitivity })
        }
        (vault::EDGE_RESPONSE, event, Unit::EdgeUndirected) => {
            Some(Event::SelfComposed { event: Box::new(event.clone()), count: 2 })
        }
        (vault::AGGREGATION, event, _) => sum_in_unit(event, settings, unit),
        _ => None,
    }
}

/// A noisy sum of messages of norm 1 over the graph, for neighbours that differ in the given unit of an edge.
///
/// # Proof definition
/// Such a sum moves in one row by 1 at most where one directed edge changes, and in two rows, so by sqrt 2, where an
/// undirected edge does: the sensitivity is replaced. Where both messages of an undirected edge share its influence,
/// it moves the sum by 1, and one direction by the largest weight that a message can have.
fn sum_in_unit(event: &Event, settings: &Settings, unit: Unit) -> Option<Event> {
    match (event, unit) {
        (Event::Gaussian { sigma, .. }, Unit::Edge) if settings.weighs_pairs() => {
            let sensitivity = largest_of_a_pair(settings);
            Some(Event::Gaussian { sigma: *sigma, sensitivity })
        }
        (Event::Gaussian { sigma, .. }, Unit::EdgeUndirected) if settings.weighs_pairs() => {
            Some(Event::Gaussian { sigma: *sigma, sensitivity: 1.0 })
        }
        (Event::Gaussian { sigma, .. }, Unit::Edge) => {
            Some(Event::Gaussian { sigma: *sigma, sensitivity: 1.0 })
        }
        (Event::Gaussian { sigma, .. }, Unit::EdgeUndirected) => {
            Some(Event::Gaussian { sigma: *sigma, sensitivity: undirected_sensitivity() })
        }
        _ => None,
    }
}

/// The largest weight of a message where both of an edge share its influence: from the node of the smallest weight to
/// one of weight 1. Rounded up.
fn largest_of_a_pair(settings: &Settings) -> f64 {
    let least = f64::from(vault::ReceiverWeights::nearest([settings.known_weight]).of(0));
    (1.0 / (1.0 + least * least)).sqrt().next_up().next_up().min(1.0)
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
    use crate::plan::{Plan, PublicFacts};
    use crate::settings::{Level, MethodKind};

    const SIZES: PublicFacts = PublicFacts::EXAMPLE;

    fn both(settings: &Settings) -> (Plan, Epsilons) {
        let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
        let stated = (plan.epsilon, plan.delta);
        let both = Epsilons::of(&plan.queries, plan.unit, stated, settings, SIZES).expect("both");
        (plan, both)
    }

    /// Noise for an undirected edge at epsilon 1 is noise for a directed edge at the epsilon that is stated, and the
    /// other way round.
    #[test]
    fn each_unit_s_epsilon_is_the_other_s_target() {
        let undirected = Settings {
            undirected: true,
            delta: Some(1e-6),
            ..Settings::of(crate::MethodKind::ProgapLabels, Level::Edge)
        };
        let (plan, found) = both(&undirected);
        assert_eq!(found.undirected, Some(plan.epsilon));
        let directed = found.directed.expect("an epsilon");
        assert!(directed < 0.75 && directed > 0.6, "{directed}");
        let settings = Settings { undirected: false, epsilon: Some(directed), ..undirected.clone() };
        let (other, back) = both(&settings);
        let noise = |plan: &Plan| plan.aggregate_multiplier * plan.sensitivity;
        assert!((noise(&other) / noise(&plan) - 1.0).abs() < 1e-6, "{} {}", noise(&other), noise(&plan));
        assert!((back.undirected.expect("an epsilon") - plan.epsilon).abs() < 1e-6);
    }

    #[test]
    fn an_undirected_edge_is_two_answers_of_edge_rand_and_one_direction_is_at_most_a_pair() {
        let settings = Settings::of(MethodKind::EdgeRand, Level::Edge);
        let (plan, found) = both(&settings);
        assert!((found.undirected.expect("an epsilon") / plan.epsilon - 2.0).abs() < 1e-12);
        assert_eq!(found.directed, Some(plan.epsilon));
        let (plan, found) = both(&Settings { undirected: true, ..settings });
        assert_eq!((found.undirected, found.directed), (Some(plan.epsilon), Some(plan.epsilon)));
    }

    /// What a node-level run tells of an edge is in its sums alone, and they are charged with both lists, the old and
    /// the new one.
    #[test]
    fn of_an_edge_a_run_at_node_level_tells_its_sums_and_no_gradient() {
        let node = |method| Settings { batch_size: 100, ..Settings::of(method, Level::Node) };
        let settings = node(MethodKind::ProgapLabels);
        let (plan, _) = both(&settings);
        let (sums, noise) = (plan.queries.count(vault::AGGREGATION), plan.aggregate_multiplier);
        assert!(sums > 0 && plan.queries.count(vault::GRADIENT) > 0, "{:?}", plan.queries);
        for (unit, lists) in [(Unit::Edge, 1.0), (Unit::EdgeUndirected, 2.0)] {
            let event = in_unit(&plan.queries, &settings, unit).expect("queries").expect("a rule");
            let mu = progap_privacy::accountant::GdpAccountant::mu(&event).expect("Gaussians alone");
            let expected = lists * (2.0 * sums as f64).sqrt() / noise;
            assert!(mu >= expected && mu < expected * (1.0 + 1e-9), "{unit}: {mu} {expected}");
        }
        let settings = node(MethodKind::DpGnn);
        let plan = both(&settings).0;
        let Some(Event::Composed { events }) =
            in_unit(&plan.queries, &settings, Unit::Edge).expect("queries")
        else {
            panic!("{:?}", plan.queries)
        };
        assert!(events[0].to_json().contains("\"max_terms\": 2"), "{events:?}");
        let nothing = in_unit(&both(&node(MethodKind::Mlp)).0.queries, &node(MethodKind::Mlp), Unit::Edge);
        assert_eq!(nothing.expect("queries"), Some(Event::Composed { events: vec![] }));
    }

    #[test]
    fn without_a_query_both_are_zero_and_records_have_neither() {
        let found =
            both(&Settings { depth: 0, ..Settings::of(crate::MethodKind::ProgapLabels, Level::Edge) }).1;
        assert_eq!((found.undirected, found.directed), (Some(0.0), Some(0.0)));
        let node = Settings { batch_size: 100, ..Settings::of(crate::MethodKind::ProgapLabels, Level::Node) };
        assert_eq!(both(&node).1, Epsilons::default());
    }
}
