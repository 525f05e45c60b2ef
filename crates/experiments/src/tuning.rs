//! How settings are chosen, and what that costs.
//!
//! Everything an experiment does has a seed, so nothing in it is private: also the number of runs of private tuning is
//! derived from the split's number, and known to everyone. The theorem about the best of a random number of runs is
//! of a number that nobody knows. What is stated is therefore a price, for comparison: what a release would cost whose
//! number of runs and noise came from the operating system and stayed secret. No command makes such a release.

use progap_privacy::Event;
use progap_privacy::accountant::{Accountant, RdpAccountant};
use progap_privacy::noise::{Randomness, RoundedGaussian, tables};
use progap_privacy::selection::RunCount;
use serde::{Deserialize, Serialize};

use super::outcome::TuningCost;
use progap::plan::{Plan, PublicFacts};
use progap::settings::{Draft, Level};
use progap::{Error, Result};

/// The law of the number of runs of private tuning: logarithmic, 12.5 on average.
const ETA: f64 = 0.0;
const GAMMA: f64 = 0.02;
/// At node level scores are noisy numbers of correct validation nodes: one record moves the number by one at most,
/// because predictions come from what was released.
const SCORE_NOISE: f64 = 10.0;

/// How settings are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tuning {
    /// They are fixed.
    None,
    /// The paper's grid, by mean validation accuracy; the choice is not accounted for.
    Grid,
    /// The best of a random number of runs with random settings of the grid; what that would cost a release is stated.
    Private,
}

/// One run of private tuning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trial {
    /// Which settings of the grid.
    pub candidate: usize,
    /// The run's seed.
    pub seed: u64,
}

/// The runs from which tuning on a split chooses; their number and settings do not depend on data. They repeat, as all
/// of an experiment does, and so protect nothing.
pub(super) fn trials(candidates: usize, split: u64) -> Result<Vec<Trial>> {
    let Some(limit) = std::num::NonZeroU64::new(candidates as u64) else {
        return Err(Error::contradiction("there is nothing to choose from: the grid is empty"));
    };
    let mut stream = Randomness::from_seed(split).purpose("private tuning")?.stream();
    let number = RunCount::new(ETA, GAMMA)?.draw(&mut stream);
    let trial = |at: u64| Trial { candidate: stream.below(limit) as usize, seed: (split << 20) + at };
    Ok((0..number).map(trial).collect())
}

/// The score of a run: validation accuracy, with noise where validation labels are private.
pub(super) fn score(level: Level, val_accuracy: f64, val_nodes: usize, seed: u64) -> Result<f64> {
    if level != Level::Node {
        return Ok(val_accuracy);
    }
    let mut stream = Randomness::from_seed(seed).purpose("score")?.stream();
    let noise = RoundedGaussian::new(SCORE_NOISE)?.sample(&mut stream);
    Ok(val_accuracy + noise as f64 / val_nodes.max(1) as f64)
}

/// The cost that the choice would have for a release: the runs' own budget, and the budget of showing the best.
///
/// # Proof definition
/// For `K` drawn in secret from the law of [`RunCount`], before and independently of the runs, each with fresh secret
/// noise and settings drawn at random from `candidates`, showing the run with the best score is `(tuned,
/// delta)`-private: the ideal mechanism is `(tuned, tables::provable(delta))`-private
/// ([proof](progap_privacy::proofs::selection)), and what is drawn from tables, in as many runs as there can be, with
/// the number of runs itself, fits in the rest.
pub(super) fn budget(candidates: &[Draft], sizes: PublicFacts) -> Result<Option<TuningCost>> {
    let mut events: Vec<Event> = Vec::new();
    let (mut one_run, mut delta, mut values) = (0f64, 0f64, 0u64);
    for settings in candidates.iter().filter(|settings| settings.level != Level::None) {
        let plan = Plan::new(&settings.resolve(&sizes)?, sizes)?;
        if !events.is_empty() && plan.delta != delta {
            return Err(Error::contradiction("settings of one choice have different deltas"));
        }
        (one_run, delta) = (one_run.max(plan.epsilon), plan.delta);
        let (event, scores) = match settings.level {
            Level::Node => (Event::composed(vec![plan.event, Event::gaussian(SCORE_NOISE, 1.0)?])?, 1),
            _ => (plan.event, 0),
        };
        values = values.max(plan.noise_values.saturating_add(scores));
        if !events.contains(&event) {
            events.push(event);
        }
    }
    if events.is_empty() {
        return Ok(None);
    }
    // Settings drawn at random cost at each order at most what the dearest of them cost, as parallel events do.
    let any = Event::Parallel { events };
    let runs = RunCount::new(ETA, GAMMA)?;
    let tuned = RdpAccountant::new().epsilon(&runs.event(any)?, tables::provable(delta))?.value;
    let drawn = values.saturating_mul(runs.most()).saturating_add(runs.as_draws());
    let tuned = if tables::fit(drawn, tuned, delta) { tuned } else { f64::INFINITY };
    Ok(Some(TuningCost { one_run, tuned, delta, mean_runs: runs.mean() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::mean;
    use progap::settings::{Settings, Size};

    #[test]
    fn the_number_of_trials_follows_its_law_and_repeats() {
        let counts: Vec<f64> =
            (1..=400).map(|split| trials(20, split).expect("drawn").len() as f64).collect();
        // Mean 12.5, standard deviation 22: the mean of 400 lies within 4 standard errors.
        let expected = RunCount::new(ETA, GAMMA).expect("a law").mean();
        assert!((expected - 12.5).abs() < 0.1, "{expected}");
        assert!((mean(&counts) - expected).abs() < 4.5, "{}", mean(&counts));
        assert_eq!(trials(20, 7).expect("drawn"), trials(20, 7).expect("drawn"));
        assert!(trials(0, 1).is_err());
        let seeds: std::collections::HashSet<u64> =
            (1..=50).flat_map(|split| trials(3, split).expect("drawn")).map(|trial| trial.seed).collect();
        assert_eq!(seeds.len(), (1..=50).map(|s| trials(3, s).expect("drawn").len()).sum::<usize>());
    }

    #[test]
    fn tuning_costs_more_than_a_run_and_less_than_all_of_them() {
        let sizes = PublicFacts::stated([(Size::Edges, 1_000_000), (Size::TrainNodes, 10_000)]);
        for level in [Level::Edge, Level::Node] {
            let candidates = [1, 5].map(|depth| {
                let usual = Settings::of(progap::MethodKind::ProgapLabels, level);
                Draft::from(Settings { depth, epochs: 2, ..usual })
            });
            let budget = budget(&candidates, sizes).expect("accounted").expect("private");
            assert!(budget.tuned > budget.one_run && budget.tuned < 5.0 * budget.one_run, "{budget:?}");
        }
        assert_eq!(
            budget(&[Settings::of(progap::MethodKind::ProgapLabels, Level::None).into()], sizes)
                .expect("accounted"),
            None
        );
    }

    /// A part of delta belongs to the tables: the price is that at the rest, and not that at all of it.
    #[test]
    fn the_price_is_accounted_at_what_tables_leave_of_delta() {
        let sizes = PublicFacts::stated([(Size::Edges, 1_000_000), (Size::TrainNodes, 10_000)]);
        let settings = Settings { depth: 2, ..Settings::of(progap::MethodKind::ProgapLabels, Level::Edge) };
        let found = budget(&[settings.clone().into()], sizes).expect("accounted").expect("private");
        let event = RunCount::new(ETA, GAMMA)
            .expect("a law")
            .event(Plan::new(&settings.checked().expect("settings"), sizes).expect("a plan").event);
        let at = |delta| {
            RdpAccountant::new().epsilon(event.as_ref().expect("an event"), delta).expect("a bound").value
        };
        assert_eq!(found.tuned, at(tables::provable(found.delta)));
        assert!(found.tuned > at(found.delta));
    }

    /// The tables' error of every run counts: values that fit for one run and not for thousands leave no guarantee.
    #[test]
    fn the_tables_of_all_runs_are_paid_for() {
        let one =
            PublicFacts::stated([(Size::Edges, 1_000_000), (Size::Nodes, 1 << 30), (Size::Classes, 1 << 12)]);
        let delta = Some(1e-7);
        let settings = Settings {
            depth: 5,
            epsilon: Some(12.0),
            delta,
            ..Settings::of(progap::MethodKind::ProgapLabels, Level::Edge)
        };
        let plan = Plan::new(&settings.checked().expect("settings"), one).expect("a plan");
        let found = budget(&[settings.clone().into()], one).expect("accounted").expect("private");
        assert!(tables::fit(plan.noise_values, 13.0, plan.delta) && found.tuned.is_infinite(), "{found:?}");
        let few = PublicFacts::stated([(Size::Edges, 1_000_000), (Size::Nodes, 1000), (Size::Classes, 2)]);
        assert!(
            budget(&[settings.into()], few)
                .expect("accounted")
                .is_some_and(|budget| budget.tuned.is_finite())
        );
    }

    #[test]
    fn scores_are_noisy_where_labels_are_private() {
        let noisy: Vec<f64> =
            (0..2000).map(|seed| score(Level::Node, 0.5, 1000, seed).expect("a score")).collect();
        let spread = mean(&noisy.iter().map(|s| (s - 0.5).powi(2)).collect::<Vec<_>>()).sqrt();
        // 2000 draws give the standard deviation to 1.6 %; six times that is never seen.
        assert!((spread * 1000.0 - SCORE_NOISE).abs() < 1.0, "{spread}");
        assert_eq!(score(Level::Edge, 0.5, 1000, 1).expect("a score"), 0.5);
    }
}
