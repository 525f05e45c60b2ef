//! Canaries for counts of values: records with magnitudes of their own, so that each moves counts that no other moves.

use progap_graph::{Dataset, DatasetParts, Features, NumberColumn, Part, Split};
use progap_privacy::Event;

use super::AuditTarget;
use super::evidence::{Claim, Evidence, Trial, toss};
use super::mechanism::{empty, open};
use progap::Result;
use progap::scaling::{difference_bin, value_bin};
use progap::vault::{COLUMN_COUNTS, ValueSpreads, partners};

/// As many canaries as usual, and as many in one answer: each has an octave of its own.
const CANARIES: usize = 10_000;
const AT_ONCE: usize = 250;

/// The value of a canary: in the middle of its octave.
fn value(canary: usize) -> f64 {
    1.5 * 2f64.powi(canary as i32 - AT_ONCE as i32 / 2)
}

/// Asks a mechanism for counts of one column, as often as coins need it: a canary that is in stands beside a node whose
/// value is 0, so that it is in a bin of values and in one of differences. What a canary moves is the sum of both, over
/// the root of two.
///
/// # Errors
/// Errors of the mechanism.
pub(crate) fn experiment(
    coins: Vec<bool>,
    mechanism: &mut dyn FnMut(Dataset) -> Result<Vec<f32>>,
) -> Result<Evidence> {
    let mut scores = Vec::with_capacity(coins.len());
    for coins in coins.chunks(AT_ONCE) {
        let counts = mechanism(dataset(coins)?)?;
        scores.extend((0..coins.len()).map(|canary| {
            let bins = [value_bin(value(canary)), difference_bin(value(canary))];
            bins.into_iter().map(|bin| f64::from(counts[bin])).sum::<f64>() / 2f64.sqrt()
        }));
    }
    Ok(Evidence { scores, coins, threshold: 2f64.sqrt() / 2.0 })
}

fn dataset(coins: &[bool]) -> Result<Dataset> {
    let nodes = 2 * coins.len();
    // The value, and whether there is none.
    let mut rows = vec![0f32; 2 * nodes];
    for (canary, pair) in partners(nodes).into_iter().enumerate() {
        let Some(node) = pair[0] else { continue };
        match coins[canary] {
            true => rows[2 * node as usize] = value(canary) as f32,
            false => rows[2 * node as usize + 1] = 1.0,
        }
    }
    Ok(Dataset::new(DatasetParts {
        numbers: vec![NumberColumn { missing: Some(1), ..NumberColumn::new(0) }],
        split: Some(Split::from_parts((0..nodes).map(|_| Part::Train))),
        ..DatasetParts::of(
            "canaries",
            empty(nodes)?,
            Features::dense(nodes, 2, rows)?,
            vec![0; nodes],
            vec!["one".into()],
        )
    })?)
}

/// Audits the counts of a run, where it asks for them.
pub(super) fn audit(target: &AuditTarget<'_>) -> Result<Option<Trial>> {
    let AuditTarget { settings, plan, canaries, fresh, .. } = *target;
    let Some(query) = plan.queries.get(COLUMN_COUNTS) else { return Ok(None) };
    let Event::Gaussian { sigma, sensitivity } = query.event else { return Ok(None) };
    let coins = toss(&mut fresh(), canaries.unwrap_or(CANARIES).clamp(2, CANARIES))?;
    let mut ask = |data| Ok(open(data, settings, plan, fresh())?.ask(ValueSpreads)?.0);
    let evidence = experiment(coins, &mut ask)?;
    let claim = Claim::of(&Event::gaussian(sigma, sensitivity)?, plan.delta)?;
    Ok(Some(Trial { what: "a record through the counts of values".into(), evidence, claim }))
}

#[cfg(test)]
mod tests {
    use progap_privacy::noise::Randomness;

    use super::*;
    use crate::evidence::{Finding, evaluate};
    use progap::plan::{Plan, PublicFacts};
    use progap::settings::{Level, MethodKind, Scaling, Settings};

    fn sizes() -> PublicFacts {
        let mut sizes = PublicFacts::EXAMPLE;
        (sizes.train_nodes, sizes.nodes, sizes.columns, sizes.classes) = (500, 500, 2, 1);
        sizes
    }

    /// Honest counts pass, close to the claim; with less noise, or with noise for one of the two bins of a record, they
    /// do not.
    #[test]
    fn weak_noise_on_counts_of_values_is_found() {
        let settings = Settings {
            scaling: Scaling::Noisy,
            batch_size: 100,
            ..Settings::of(MethodKind::Mlp, Level::Node)
        };
        let planned = Plan::new(&settings.checked().expect("settings"), sizes()).expect("a plan");
        let Some(Event::Gaussian { sigma, .. }) =
            planned.queries.get(COLUMN_COUNTS).map(|query| query.event.clone())
        else {
            panic!("not planned");
        };
        // As much noise as a record moves the counts by: so that ten thousand canaries see something.
        let audit = |noise: f64| {
            let queries = planned.queries.map(|query| query.event.with_noise_times(noise / sigma));
            let queries = queries.expect("noise that is multiplied");
            let plan = Plan { queries, ..planned.clone() };
            let coins = toss(&mut Randomness::from_seed(1).erase(), CANARIES).expect("coins");
            let mut seed = 0;
            let mut ask = |data| {
                seed += 1;
                Ok(open(data, &settings, &plan, Randomness::from_seed(seed).erase())?.ask(ValueSpreads)?.0)
            };
            let evidence = experiment(coins, &mut ask).expect("evidence");
            let claim = Claim::of(&Event::gaussian(1.0, 1.0).expect("an event"), 1e-5).expect("a claim");
            let trial = Trial { what: "counts".into(), evidence, claim };
            evaluate(&[trial], 0.99).expect("findings")
        };
        let findings = audit(1.0);
        assert!(findings.iter().all(|finding| !finding.refuted), "{findings:#?}");
        let close =
            |finding: &Finding| finding.claimed.is_some_and(|claimed| finding.measured > 0.7 * claimed);
        assert!(findings.iter().any(close), "{findings:#?}");
        for weak in [0.8, 1.0 / 2f64.sqrt()] {
            assert!(audit(weak).iter().any(|finding| finding.refuted), "{weak}");
        }
    }
}
