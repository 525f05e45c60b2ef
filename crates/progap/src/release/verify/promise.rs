//! The promise: delta by its rule, and everything that the plan of the settings decides.

use progap_privacy::Event;

use super::Finding;
use crate::plan::{Plan, PublicSizes};
use crate::release::Statement;
use crate::release::statement::{Mechanism, mechanism, public};
use crate::settings::{Level, Settings};
use crate::{Result, delta};

/// How far the noise of another machine's calibration may lie.
const CALIBRATED: f64 = 1e-6;

/// The plan that a run with these settings has at the delta of its statement, which is judged by [`bounded_delta`].
pub(super) fn planned(statement: &Statement, settings: &Settings, sizes: PublicSizes) -> Result<Plan> {
    let delta = settings.delta.or(statement.delta.filter(|_| delta::matters(settings)));
    Plan::new(&Settings { delta, ..settings.clone() }, sizes)
}

/// Delta by the rule of docs/privacy.md#delta, as far as what is public bounds it.
pub(super) fn bounded_delta(statement: &Statement, settings: &Settings, sizes: PublicSizes) -> Finding {
    let what = "delta";
    let Some(delta) = statement.delta else {
        let detail = "none, as nothing is promised".to_string();
        return Finding::checked(what, detail, settings.level == Level::None);
    };
    let (least, most) = delta::range(settings, sizes);
    let records = delta::records_are(settings);
    let rule =
        settings.delta.is_some() || !delta::matters(settings) || delta::implied(delta, settings).is_some();
    let given = settings.delta.is_none_or(|given| given == delta);
    let ok = settings.level != Level::None && rule && given && least <= delta && delta <= most;
    let detail = match (settings.level, delta::matters(settings)) {
        (_, false) => format!("{delta:e}; nothing is asked that has one"),
        (Level::Node, _) => format!("{delta:e} for {} records, at most {most:e}", sizes.nodes),
        _ => format!(
            "{delta:e}, at most {most:e} for a graph of {} nodes; the number of {records} is private",
            sizes.nodes
        ),
    };
    Finding::checked(what, detail, ok)
}

/// What was taken as public, against the settings.
pub(super) fn public_list(
    statement: &Statement,
    settings: &Settings,
    plan: &Plan,
    sizes: PublicSizes,
    labelled: usize,
) -> Finding {
    let ok = statement.public == public(settings, plan, sizes, labelled);
    Finding::checked(
        "taken as public",
        format!("{} assumptions, those of the settings", statement.public.len()),
        ok,
    )
}

/// The name of the accountant, and the noise of every query, against what the settings ask for.
pub(super) fn noise(statement: &Statement, plan: &Plan) -> Finding {
    let named = statement.accountant == plan.accountant;
    let mut ok = named && statement.unit == plan.unit;
    ok &= match (statement.epsilon, statement.unit) {
        (Some(claimed), Some(_)) => (claimed - plan.epsilon).abs() <= CALIBRATED * (1.0 + plan.epsilon),
        (None, None) => true,
        _ => false,
    };
    let (found, expected) = (sums(&statement.event), sums(&plan.event));
    ok &= found.len() == expected.len()
        && found.iter().all(|(one, count)| {
            expected.iter().any(|(other, planned)| {
                let near = |a: f64, b: f64| (a - b).abs() <= CALIBRATED * b;
                one.what == other.what
                    && count == planned
                    && near(one.noise_multiplier, other.noise_multiplier)
                    && near(one.sampling_rate, other.sampling_rate)
                    // Rounding is charged: a little above what the plan counts with, and never below.
                    && one.sensitivity >= other.sensitivity * (1.0 - 1e-12)
                    && one.sensitivity <= other.sensitivity * 2.0
            })
        });
    let detail = format!("as much as the settings ask for, by the accountant {:?}", plan.accountant);
    Finding::checked("noise", detail, ok)
}

/// The kinds of queries in an event tree, each with how often it is asked in all.
fn sums(event: &Event) -> Vec<(Mechanism, u64)> {
    let mut found: Vec<(Mechanism, u64)> = vec![];
    let mut left = vec![(event, 1u64)];
    while let Some((event, times)) = left.pop() {
        match event {
            Event::Composed { events } => left.extend(events.iter().map(|event| (event, times))),
            Event::SelfComposed { event, count } => left.push((event, times.saturating_mul(*count))),
            event => {
                let Some(one) = mechanism(event, 1) else { continue };
                match found.iter_mut().find(|(other, _)| *other == one) {
                    Some((_, count)) => *count = count.saturating_add(times),
                    None => found.push((one, times)),
                }
            }
        }
    }
    found
}
