//! Canaries for counts of classes: records with a class of their own, so that each moves a count that no other moves.

use progap_graph::{Dataset, Features};
use progap_privacy::Event;

use super::AuditTarget;
use super::evidence::{Claim, Evidence, Trial, toss};
use super::mechanism::{classes_of_one, open};
use progap::Result;
use progap::vault::{CLASS_COUNTS, ClassCounts, NoisyCounts};

/// As many canaries as usual.
const CANARIES: usize = 10_000;

/// Asks a mechanism once for the counts of canaries that coins choose.
///
/// # Errors
/// Errors of the mechanism.
pub(crate) fn experiment(
    coins: Vec<bool>,
    mechanism: &mut dyn FnMut(Dataset) -> Result<NoisyCounts>,
) -> Result<Evidence> {
    let nodes = coins.len();
    let answer = mechanism(classes_of_one(&coins, Features::dense(nodes, 1, vec![0.0; nodes])?)?)?;
    let scores = answer.counts.iter().map(|&count| f64::from(count)).collect();
    Ok(Evidence { scores, coins, threshold: 0.5 })
}

/// Audits the counts of a run, where it asks for them.
pub(super) fn audit(target: &AuditTarget<'_>) -> Result<Option<Trial>> {
    let AuditTarget { settings, plan, canaries, fresh, .. } = *target;
    let Some(query) = plan.queries.get(CLASS_COUNTS) else { return Ok(None) };
    let Event::Gaussian { sigma, sensitivity } = query.event else { return Ok(None) };
    let coins = toss(&mut fresh(), canaries.unwrap_or(CANARIES).clamp(2, CANARIES))?;
    let evidence = experiment(coins, &mut |data| open(data, settings, plan, fresh())?.ask(ClassCounts))?;
    let claim = Claim::of(&Event::gaussian(sigma, sensitivity)?, plan.delta)?;
    Ok(Some(Trial { what: "a record through the counts of classes".into(), evidence, claim }))
}
