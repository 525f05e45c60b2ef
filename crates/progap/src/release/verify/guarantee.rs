//! The guarantee: delta by its rule, and everything that the plan of the settings decides.

use progap_privacy::Event;

use super::Finding;
use crate::plan::{Plan, PublicFacts};
use crate::query::Queries;
use crate::release::statement::public;
use crate::release::{Budget, Statement};
use crate::settings::{Level, Settings};
use crate::{Result, delta};

/// How far the noise of another machine's calibration may lie.
const CALIBRATED: f64 = 1e-6;

/// The plan that a run with these settings has at the delta of its statement, which is judged by [`bounded_delta`].
pub(super) fn planned(statement: &Statement, settings: &Settings, sizes: PublicFacts) -> Result<Plan> {
    let delta = statement.budget().map(|budget| budget.delta).filter(|_| delta::matters(settings));
    let delta = settings.delta.or(delta);
    Plan::new(&Settings { delta, ..settings.clone() }.checked()?, sizes)
}

/// Delta by the rule of [proof](progap_privacy::proofs::delta), as far as what is public bounds it.
pub(super) fn bounded_delta(statement: &Statement, settings: &Settings, sizes: PublicFacts) -> Finding {
    let what = "delta";
    let Some(Budget { delta, .. }) = statement.budget() else {
        let detail = "none, as nothing is guaranteed".to_string();
        return Finding::checked(what, detail, settings.level == Level::None);
    };
    let (least, most) = delta::range(settings, sizes);
    let records = delta::records_are(settings);
    let rule =
        settings.delta.is_some() || !delta::matters(settings) || delta::implied(delta, settings).is_some();
    let given = settings.delta.is_none_or(|given| given == delta);
    let ok = settings.level != Level::None && rule && given && least <= delta && delta <= most;
    let shown = delta::written(delta);
    let detail = match (settings.level, delta::matters(settings)) {
        (_, false) => format!("{shown}; nothing is asked that has one"),
        (Level::Node, _) => format!("{shown} for {} records, at most {most:e}", sizes.nodes),
        _ => format!(
            "{shown}, at most {most:e} for a graph of {} nodes; the number of {records} is private",
            sizes.nodes
        ),
    };
    Finding::checked(what, detail, ok)
}

/// The list of what was taken as public, against the settings.
pub(super) fn public_list(
    statement: &Statement,
    settings: &Settings,
    plan: &Plan,
    sizes: PublicFacts,
    labelled: usize,
) -> Finding {
    let expected = public(settings, plan, sizes, (labelled, statement.weight_bound));
    let ok = statement.public == expected;
    Finding::checked(
        "taken as public",
        format!("{} assumptions, those of the settings", statement.public.len()),
        ok,
    )
}

/// The name of the accountant, and the noise of every query, against what the settings ask for.
pub(super) fn noise(statement: &Statement, queries: &Queries, plan: &Plan) -> Finding {
    let named = statement.accountant == plan.accountant;
    let mut ok = named && statement.unit == plan.unit;
    ok &= match (statement.budget(), statement.unit) {
        (Some(claimed), Some(_)) => {
            (claimed.epsilon - plan.epsilon).abs() <= CALIBRATED * (1.0 + plan.epsilon)
        }
        (None, None) => true,
        _ => false,
    };
    ok &= queries.iter().all(|(query, _)| {
        let planned = plan.queries.get(&query.name);
        planned.is_some_and(|planned| is_as_noisy(&query.event, &planned.event))
    });
    let detail = format!("as much as the settings ask for, by the accountant {:?}", plan.accountant);
    Finding::checked("noise", detail, ok)
}

/// Whether an event is of the same kind as a planned one, up to its noise: of the same records, and of at least the
/// sensitivity. Rounding is charged, so that it may be a little above what the plan counts with, and never below.
pub(super) fn is_of_kind(event: &Event, planned: &Event) -> bool {
    let charged = |found: f64, planned: f64| found >= planned * (1.0 - 1e-12) && found <= planned * 2.0;
    match (event, planned) {
        (Event::Gaussian { sensitivity, .. }, Event::Gaussian { sensitivity: planned, .. })
        | (Event::Laplace { sensitivity, .. }, Event::Laplace { sensitivity: planned, .. }) => {
            charged(*sensitivity, *planned)
        }
        (
            Event::RandomizedResponse { true_positive, false_positive },
            Event::RandomizedResponse { true_positive: keep, false_positive: flip },
        ) => near(*true_positive, *keep) && near(*false_positive, *flip),
        (
            Event::PoissonSampled { rate, event },
            Event::PoissonSampled { rate: planned_rate, event: planned },
        ) => near(*rate, *planned_rate) && is_of_kind(event, planned),
        (
            Event::SampledWithoutReplacement { population, batch_size, max_terms, term_sensitivity, .. },
            Event::SampledWithoutReplacement {
                population: nodes,
                batch_size: size,
                max_terms: terms,
                term_sensitivity: moved,
                ..
            },
        ) => {
            (population, batch_size, max_terms) == (nodes, size, terms) && charged(*term_sensitivity, *moved)
        }
        _ => false,
    }
}

/// Whether an event has the noise of a planned one, for its sensitivity.
fn is_as_noisy(event: &Event, planned: &Event) -> bool {
    match (event, planned) {
        (Event::Gaussian { sigma, sensitivity }, Event::Gaussian { sigma: noise, sensitivity: moved })
        | (
            Event::Laplace { scale: sigma, sensitivity },
            Event::Laplace { scale: noise, sensitivity: moved },
        )
        | (
            Event::SampledWithoutReplacement { sigma, term_sensitivity: sensitivity, .. },
            Event::SampledWithoutReplacement { sigma: noise, term_sensitivity: moved, .. },
        ) => near(sigma / sensitivity, noise / moved),
        (Event::PoissonSampled { event, .. }, Event::PoissonSampled { event: planned, .. }) => {
            is_as_noisy(event, planned)
        }
        // Its noise is what it is.
        (Event::RandomizedResponse { .. }, Event::RandomizedResponse { .. }) => is_of_kind(event, planned),
        _ => false,
    }
}

fn near(found: f64, planned: f64) -> bool {
    (found - planned).abs() <= CALIBRATED * planned
}
