//! From runs to means and intervals.

use std::collections::HashMap;

use super::bootstrap::{mean, mean_interval};
use super::store::{Curve, Stored};
use super::suite::{Cell, Experiment};
use super::tuning::{Tuning, budget, score};
use super::{Finished, Job};
use progap::settings::{Level, Settings};
use progap::{Result, delta};

/// The cost of private tuning to a release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TuningCost {
    /// Epsilon of one run.
    pub one_run: f64,
    /// Epsilon of showing the best of them, if their number is drawn in secret; infinite where noise from tables could
    /// not keep it.
    pub tuned: f64,
    /// The delta of both.
    pub delta: f64,
    /// The expected number of runs.
    pub mean_runs: f64,
}

/// The outcome of a cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The metric of the experiment on the test nodes of each split, by the chosen settings.
    pub values: Vec<f64>,
    /// The mean validation accuracy by which they were chosen.
    pub val: f64,
    /// The delta of the chosen settings; `None` if nothing is private, or no run is done.
    pub delta: Option<f64>,
    /// The settings that were chosen; by private tuning those of the last split.
    pub chosen: Option<Settings>,
    /// The curve of each split, epoch by epoch.
    pub curves: Vec<Curve>,
    /// The test accuracy after each stage, for each split.
    pub stages: Vec<Vec<f64>>,
    /// Jobs that are not done yet.
    pub missing: usize,
    /// Why jobs failed.
    pub failures: Vec<String>,
    /// The time of a run of the chosen settings.
    pub seconds: f64,
    /// The cost of private tuning to a release.
    pub budget: Option<TuningCost>,
}

impl Outcome {
    /// The mean test accuracy, if there is a run.
    pub fn mean(&self) -> Option<f64> {
        (!self.values.is_empty()).then(|| mean(&self.values))
    }

    /// A 95 % bootstrap interval of the mean; `None` if there are fewer than [`MIN_RUNS`](super::MIN_RUNS) runs.
    pub fn interval(&self) -> Option<(f64, f64)> {
        mean_interval(&self.values).map(|[low, high]| (low, high))
    }
}

/// The outcome of a cell, from the runs that are done.
pub fn outcome(experiment: &Experiment, cell: &Cell, results: &HashMap<String, Stored>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    // By split, then in the order of the jobs.
    let mut runs: Runs<'_> = Vec::new();
    for split in 1..=experiment.runs {
        let mut row = Vec::new();
        for job in experiment.cell_jobs(cell, split)? {
            let stored = results.get(&job.key());
            let finished = match stored.map(|stored| (&stored.outcome, stored.seconds)) {
                Some((Ok(finished), seconds)) => Some((finished, seconds)),
                Some((Err(error), _)) => {
                    outcome.failures.push(error.clone());
                    None
                }
                None => {
                    outcome.missing += 1;
                    None
                }
            };
            row.push((job, finished));
        }
        runs.push(row);
    }
    let chosen: Vec<(&Job, &Finished, f64)> = match experiment.tuning {
        Tuning::None | Tuning::Grid => by_mean_validation(cell.candidates.len(), &runs),
        Tuning::Private => by_best_trial(&runs)?,
    };
    let vals: Vec<f64> = chosen.iter().filter_map(|(_, finished, _)| finished.val).collect();
    outcome.val = mean(&vals);
    outcome.seconds = mean(&chosen.iter().map(|(_, _, seconds)| *seconds).collect::<Vec<_>>());
    for (job, finished, _) in chosen {
        outcome.values.push(finished.score(experiment.metric));
        outcome.curves.push(finished.curve.clone());
        outcome.stages.push(finished.stages.clone());
        let resolved = job.settings.resolve(&finished.sizes)?.into_settings();
        let settings = Settings { seed: None, ..resolved };
        outcome.delta = (settings.level != Level::None).then(|| delta::of(&settings, finished.sizes));
        outcome.chosen = Some(settings);
        if outcome.budget.is_none() && experiment.tuning == Tuning::Private {
            outcome.budget = budget(&cell.candidates, finished.sizes)?;
        }
    }
    Ok(outcome)
}

/// The jobs of each split, with what came of them and how long they took.
type Runs<'r> = Vec<Vec<(Job, Option<(&'r Finished, f64)>)>>;

/// The runs of the settings with the best mean validation accuracy; of equals, the first.
fn by_mean_validation<'a>(candidates: usize, runs: &'a Runs<'_>) -> Vec<(&'a Job, &'a Finished, f64)> {
    let of = |candidate: usize| {
        let all = runs.iter().filter_map(move |row| row.get(candidate));
        all.filter_map(|(job, run)| run.map(|(finished, seconds)| (job, finished, seconds)))
            .collect::<Vec<_>>()
    };
    let mut best: Option<(f64, Vec<_>)> = None;
    for candidate in 0..candidates {
        let runs = of(candidate);
        if runs.is_empty() {
            continue;
        }
        let vals: Vec<f64> = runs.iter().filter_map(|(_, finished, _)| finished.val).collect();
        let val = if vals.is_empty() { f64::NEG_INFINITY } else { mean(&vals) };
        if best.as_ref().is_none_or(|(best, _)| val > *best) {
            best = Some((val, runs));
        }
    }
    best.map(|(_, runs)| runs).unwrap_or_default()
}

/// The best trial of each split on which all trials are done.
fn by_best_trial<'a>(runs: &'a Runs<'_>) -> Result<Vec<(&'a Job, &'a Finished, f64)>> {
    let mut chosen = Vec::new();
    for row in runs.iter().filter(|row| row.iter().all(|(_, run)| run.is_some())) {
        let mut best: Option<(f64, _)> = None;
        for (job, run) in row {
            let Some((finished, seconds)) = run else { continue };
            let (level, seed) = (job.settings.level, job.settings.seed.unwrap_or(0));
            let score = score(level, finished.val.unwrap_or(0.0), finished.val_nodes, seed)?;
            if best.as_ref().is_none_or(|(best, _)| score > *best) {
                best = Some((score, (job, *finished, *seconds)));
            }
        }
        chosen.extend(best.map(|(_, run)| run));
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{DataSpec, Name};
    use progap::plan::PublicFacts;

    fn experiment(tuning: Tuning) -> Experiment {
        let data = DataSpec { name: "a".into(), content: Value::Null, place: Value::Null };
        let settings =
            |depth| Settings { depth, ..Settings::of(progap::MethodKind::ProgapLabels, Level::Edge) };
        let (method, level) = (settings(1).method, Level::Edge);
        let candidates = vec![settings(1).into(), settings(2).into()];
        let cell = Cell { data, method, level, epsilon: Some(1.0), variant: vec![], candidates };
        let metric = progap::settings::Metric::Accuracy;
        Experiment { name: Name::Table2, runs: 3, tuning, cells: vec![cell], left_out: vec![], metric }
    }

    /// Results in which depth 2 is better on validation nodes and worse on test nodes.
    fn results(experiment: &Experiment) -> HashMap<String, Stored> {
        let stored = |job: &Job| {
            let deep = job.settings.depth == 2;
            let noise = job.settings.seed.unwrap_or(0) as f64 / 1e9;
            let finished = Finished {
                test: if deep { 0.25 } else { 0.75 },
                val: Some(if deep { 0.5 + noise } else { 0.375 }),
                train: None,
                stages: vec![],
                curve: Curve::default(),
                val_nodes: 100,
                sizes: PublicFacts::EXAMPLE,
                scores: None,
            };
            let (data, fingerprint) = (job.data.name.clone(), String::new());
            let settings = Some(job.settings.clone());
            Stored { data, split: job.split, settings, fingerprint, outcome: Ok(finished), seconds: 1.0 }
        };
        experiment.jobs().expect("jobs").iter().map(|job| (job.key(), stored(job))).collect()
    }

    #[test]
    fn settings_are_chosen_on_validation_nodes_and_judged_on_test_nodes() {
        let experiment = experiment(Tuning::Grid);
        let mut results = results(&experiment);
        let cell = &experiment.cells[0];
        let all = outcome(&experiment, cell, &results).expect("an outcome");
        assert_eq!((all.values.as_slice(), all.missing), (&[0.25; 3][..], 0));
        assert_eq!(all.chosen.as_ref().map(|settings| (settings.depth, settings.seed)), Some((2, None)));
        assert_eq!((all.budget, (all.val - 0.5).abs() < 1e-6), (None, true));
        // A failed run and one that is not done are told, and the others still count.
        let deep: Vec<String> = experiment
            .jobs()
            .expect("jobs")
            .iter()
            .filter(|job| job.settings.depth == 2)
            .map(Job::key)
            .collect();
        results.remove(&deep[0]);
        results.get_mut(&deep[1]).expect("a run").outcome = Err("no memory".into());
        let rest = outcome(&experiment, cell, &results).expect("an outcome");
        assert_eq!((rest.values.len(), rest.missing, rest.failures.len()), (1, 1, 1));
        assert_eq!(rest.interval(), None, "one run has no interval");
        // A tenth of one over sixty thousand edges, rounded down to a power of ten.
        assert_eq!(all.delta, Some(1e-6), "{all:?}");
    }

    #[test]
    fn private_tuning_takes_the_best_trial_of_each_split() {
        let experiment = experiment(Tuning::Private);
        let results = results(&experiment);
        let all = outcome(&experiment, &experiment.cells[0], &results).expect("an outcome");
        assert_eq!(all.values.len(), 3);
        for split in 1..=3 {
            let jobs = experiment.cell_jobs(&experiment.cells[0], split).expect("jobs");
            let any_deep = jobs.iter().any(|job| job.settings.depth == 2);
            assert_eq!(all.values[split as usize - 1], if any_deep { 0.25 } else { 0.75 });
        }
        let budget = all.budget.expect("a budget");
        assert!(budget.one_run <= 1.0 && budget.tuned > 1.0, "{budget:?}");
    }
}
