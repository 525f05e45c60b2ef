//! The summary of `progap train`. What depends on the data without noise is for the data owner alone, and says so.

use std::path::PathBuf;

use progap::assessment::{Metric, Scores, wilson_interval};
use progap::cost::{Laps, StageCost};
use progap::experiment::mean_interval;
use progap::lint::Remark;
use progap::method::history::has_not_settled;
use progap::settings::{Level, Method};
use progap::{Release, Settings, ledger, release};
use progap_graph::{Dataset, Part};
use progap_privacy::{Event, Unit};
use serde::Serialize;

use super::super::{Outcome, check};
use super::scores::{AccuracyReport, of_runs, score_rows, within};
use crate::ui::{self, percent};

/// The object that `--json` prints.
#[derive(Serialize)]
struct TrainJson {
    #[serde(flatten)]
    run: RunReport,
    /// The cost of all runs together; null without a guarantee.
    epsilon_all_runs: Option<f64>,
    delta_all_runs: Option<f64>,
    /// The difference between the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    varied: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    runs: Vec<RunReport>,
}

/// The report of a run.
#[derive(Serialize, Clone)]
pub(super) struct RunReport {
    dataset: String,
    method: Method,
    level: Level,
    private: bool,
    /// All nodes, those that have a label, and those that train.
    nodes: usize,
    labelled_nodes: usize,
    training_nodes: usize,
    /// Where labels are public.
    #[serde(flatten)]
    accuracies: Option<AccuracyReport>,
    epsilon: Option<f64>,
    delta: Option<f64>,
    /// The budget that the noise was planned for, where a seed makes it known, so that nothing is guaranteed.
    #[serde(skip_serializing_if = "Option::is_none")]
    planned: Option<release::Budget>,
    unit: Option<Unit>,
    /// Edge level: for both directions between two nodes, and for one, at the same delta.
    epsilon_friendship: Option<f64>,
    epsilon_directed: Option<f64>,
    release: PathBuf,
    owner: OwnerReport,
    #[serde(skip)]
    event: Event,
    #[serde(skip)]
    noise_values: u64,
}

/// The part of a report that is for the data owner alone: it depends on the data without noise.
#[derive(Serialize, Clone)]
struct OwnerReport {
    /// Where labels are private.
    #[serde(flatten)]
    accuracies: Option<AccuracyReport>,
    #[serde(flatten)]
    times: Times,
    peak_rss_bytes: u64,
    /// Findings in the data before the run.
    findings: Vec<Remark>,
}

/// How long a run took once the data was there, and how long each part of it, loading and checking the data too.
#[derive(Serialize, Clone)]
pub(super) struct Times {
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub stages: Vec<StageCost>,
}

impl RunReport {
    fn accuracies(&self) -> &AccuracyReport {
        self.accuracies.as_ref().or(self.owner.accuracies.as_ref()).expect("one of the two has them")
    }

    fn accuracies_mut(&mut self) -> &mut AccuracyReport {
        self.accuracies.as_mut().or(self.owner.accuracies.as_mut()).expect("one of the two has them")
    }
}

/// The note on every line that is for the data owner alone.
const OWNER: &str = "for the data owner alone";

/// Said where no ledger was charged.
const NOT_COUNTED: &str = "releases about the same records add up, for anyone who sees several of them; --ledger counts \
                           them and keeps a budget";

/// Shows what runs came to: a summary, or one JSON object.
pub(super) fn show(reports: Vec<RunReport>, charged: bool, json: bool) -> Outcome {
    let accuracies: Vec<f64> = reports.iter().map(|run| run.accuracies().test_accuracy).collect();
    let mean = |value: fn(&AccuracyReport) -> f64| {
        reports.iter().map(|run| value(run.accuracies())).sum::<f64>() / reports.len() as f64
    };
    let mut run = reports[reports.len() - 1].clone();
    let together = cost_together(&reports);
    let interval = mean_interval(&accuracies);
    let asked: Option<Vec<f64>> = reports.iter().map(|run| run.accuracies().test_metric).collect();
    let all_majority = reports.iter().all(|run| run.accuracies().only_majority.is_some());
    let means = run.accuracies_mut();
    if let (Some(asked), true) = (&asked, reports.len() > 1) {
        means.test_metric = Some(asked.iter().sum::<f64>() / asked.len() as f64);
        means.test_metric_interval = mean_interval(asked);
        means.test_intervals = None;
        means.only_majority.take_if(|_| !all_majority);
    }
    means.test_accuracy = mean(|run| run.test_accuracy);
    means.val_accuracy = mean(|run| run.val_accuracy);
    means.test_accuracy_interval = interval;
    let scores: Option<Vec<Scores>> =
        reports.iter().map(|run| run.accuracies().test_scores.clone()).collect();
    means.test_scores = scores.and_then(|scores| Scores::mean(&scores));
    let varied = varied(&reports)?;
    if json {
        let runs = if reports.len() > 1 { reports } else { vec![] };
        let (epsilon_all_runs, delta_all_runs) = together.unzip();
        let report = TrainJson { run, epsilon_all_runs, delta_all_runs, varied, runs };
        return ui::print(&serde_json::to_string_pretty(&report)?);
    }
    let release = Release::open(&run.release)?;
    let settings = release.settings()?;
    let mut rows = vec![];
    let shown = run.accuracies();
    let accuracy = match reports.len() {
        _ if !shown.test_accuracy.is_finite() => "not measured, as there are no test nodes".into(),
        1 => {
            let nodes = release.nodes().split().map_or(0, |split| split.count(Part::Test));
            within(Metric::Accuracy, shown.test_accuracy, Some(wilson_interval(shown.test_accuracy, nodes)))
        }
        runs => of_runs(Metric::Accuracy, shown.test_accuracy, runs, interval),
    };
    let private_labels = run.owner.accuracies.is_some();
    let marked = |text: String| if private_labels { format!("{text}, {OWNER}") } else { text };
    if let (Some(value), true) = (shown.test_metric, shown.metric != Metric::Accuracy) {
        let (metric, interval) = (shown.metric, shown.test_metric_interval);
        let value = match reports.len() {
            1 => within(metric, value, interval),
            runs => of_runs(metric, value, runs, interval),
        };
        rows.push(("test metric", marked(format!("{} {value}", metric.words()))));
    }
    rows.push(("test accuracy", if shown.test_accuracy.is_finite() { marked(accuracy) } else { accuracy }));
    if let Some(found) = &shown.only_majority {
        rows.push(("one class only", ui::wrap(&marked(found.sentence()), 100, 16)));
    }
    rows.extend(varied.map(|varied| ("varied", varied.to_string())));
    rows.push(("labels", labels(&run)));
    rows.extend(graph_left_out(settings).map(|text| ("graph", ui::wrap(text, 100, 16))));
    rows.extend(shown.features_only_accuracy.map(|a| ("features only", marked(percent(a)))));
    rows.extend(shown.majority_accuracy.map(|a| ("majority class", marked(percent(a)))));
    rows.extend(score_rows(shown).into_iter().map(|(name, text)| (name, marked(text))));
    if let (Some(epsilon), Some(delta)) = (run.epsilon, run.delta) {
        let unit = run.unit.map(|unit| unit.to_string()).unwrap_or_default();
        let delta = progap::delta::written(delta);
        let each = if reports.len() > 1 { ", for each run alone" } else { "" };
        rows.push(("guarantee", format!("epsilon {epsilon:.4}, delta {delta}, unit {unit}{each}")));
    } else if let Some(release::Budget { epsilon, delta }) = run.planned {
        rows.push(("guarantee", release.guarantee().to_string()));
        let delta = progap::delta::written(delta);
        rows.push(("noise", format!("as it would be for epsilon {epsilon:.4}, delta {delta}")));
    }
    if settings.unit_from_data && run.unit == Some(Unit::EdgeUndirected) {
        let why = "one friendship, as every edge has an edge back; --directed chooses one direction";
        rows.push(("unit", why.into()));
    }
    rows.extend(other_unit(&release.statement));
    if let (Some((epsilon, delta)), true) = (together, reports.len() > 1) {
        let delta = progap::delta::written(delta);
        let all = format!(
            "epsilon {epsilon:.4}, delta {delta}: what the {} releases cost together, for whoever sees all",
            reports.len()
        );
        rows.push(("all runs", all));
    }
    rows.push(("in words", ui::wrap(&release.statement.in_words, 100, 16)));
    if run.private && !charged {
        rows.push(("not counted", ui::wrap(NOT_COUNTED, 100, 16)));
    }
    if has_not_settled(&release.metrics.history, release.predictor_stage()) {
        let epochs = settings.epochs;
        let text = format!(
            "the loss was still falling when training ended: --epochs {} or a larger --learning-rate may give more",
            3 * epochs
        );
        rows.push(("not settled", text));
    }
    rows.extend(check::rows(&run.owner.findings, 16));
    rows.extend(what_lies_open(run.level).map(|text| ("caution", ui::wrap(text, 100, 16))));
    let time = format!("{:.1} s ({:.1} s CPU)", run.owner.times.seconds, run.owner.times.cpu_seconds);
    let depends = if release.statement.unit.is_some() { format!(", {OWNER}") } else { String::new() };
    rows.push(("time", time + &depends));
    rows.push(("release", run.release.display().to_string()));
    let next =
        format!("progap predict {0}   progap verify {0}   progap export {0} OUT", run.release.display());
    rows.push(("next", next));
    ui::print(&ui::facts(&format!("{} on {}", run.method, run.dataset), &rows))
}

/// The difference between repeated runs: their splits, unless the data has one or its seed was given.
fn varied(reports: &[RunReport]) -> Result<Option<&'static str>, Box<dyn std::error::Error>> {
    let [first, .., last] = reports else { return Ok(None) };
    let (first, last) = (Release::open(&first.release)?, Release::open(&last.release)?);
    Ok(Some(match first.nodes().split() == last.nodes().split() {
        true => "noise and initial values; the split is the same in all runs",
        false => "split, noise and initial values",
    }))
}

/// How many nodes have a label: results depend on it more than on anything else.
fn labels(run: &RunReport) -> String {
    let share = |nodes: usize| percent(nodes as f64 / run.nodes.max(1) as f64);
    let (labelled, training) = (run.labelled_nodes, run.training_nodes);
    match labelled == run.nodes {
        true => format!("all {} nodes have one, {} train", ui::count(run.nodes), share(training)),
        false => format!(
            "{} of {} nodes have one ({}), {} train; the others send, receive and are predicted",
            ui::count(labelled),
            ui::count(run.nodes),
            share(labelled),
            share(training)
        ),
    }
}

/// The guarantee for the unit of an edge that is not the stated one.
pub fn other_unit(statement: &release::Statement) -> Option<(&'static str, String)> {
    let row = |name, epsilon: f64, what: &str| {
        (name, format!("epsilon {} for {what}, at the same delta", progap::units::written(epsilon)))
    };
    match (statement.unit?, statement.epsilon_friendship?, statement.epsilon_directed?) {
        (Unit::EdgeUndirected, _, directed) => {
            Some(row("one direction", directed, "one direction of it alone"))
        }
        (Unit::Edge, friendship, _) => {
            Some(row("friendship", friendship, "both directions of an edge together"))
        }
        _ => None,
    }
}

/// Epsilon and delta of all runs together: as an accountant composes them, or else, for what no accountant composes, the sum
/// of each. Nothing without a guarantee.
fn cost_together(runs: &[RunReport]) -> Option<(f64, f64)> {
    let costs: Vec<(f64, f64)> = runs.iter().map(|run| run.epsilon.zip(run.delta)).collect::<Option<_>>()?;
    let sum = costs.iter().fold((0.0, 0.0), |sum, cost| (sum.0 + cost.0, sum.1 + cost.1));
    let delta = costs.iter().map(|cost| cost.1).fold(0.0, f64::max);
    let events: Vec<&Event> = runs.iter().map(|run| &run.event).collect();
    let values = runs.iter().fold(0, |sum: u64, run| sum.saturating_add(run.noise_values));
    match costs.len() {
        1 => Some(sum),
        _ => Some(ledger::together(&events, values, delta).map_or(sum, |epsilon| (epsilon, delta))),
    }
}

/// That the model is one of features alone, where aggregations were left out.
fn graph_left_out(settings: &Settings) -> Option<&'static str> {
    settings.leaves_graph_out().then_some(
        "not used: this budget is small for so many columns or classes, or so few labels; --depth 1 uses it",
    )
}

/// The contents of the release that lie in the clear, or what is shown of it though no guarantee covers it.
fn what_lies_open(level: Level) -> Option<&'static str> {
    match level {
        Level::None => None,
        Level::Edge => Some(
            "nodes.progap in the release holds the features and labels of all nodes in the clear; `progap export` leaves them out",
        ),
        Level::Node => Some(
            "accuracies are computed from private labels without noise, and the folder private of the release is for the data \
             owner alone; `progap export` leaves it out",
        ),
    }
}

/// The report of a run that left a release, with the findings in the data before it.
pub(super) fn report(
    release: &Release,
    dataset: &Dataset,
    findings: Vec<Remark>,
    mut times: Times,
) -> Result<RunReport, Box<dyn std::error::Error>> {
    let (metrics, statement, config) = (&release.metrics, &release.statement, release.config()?);
    let mut laps = Laps::start();
    let accuracies = AccuracyReport::of(release, dataset, &mut laps)?;
    times.stages.extend(laps.stages());
    let (open, owners) =
        if metrics.unprotected { (None, Some(accuracies)) } else { (Some(accuracies), None) };
    Ok(RunReport {
        dataset: config.dataset.clone(),
        method: config.settings.method,
        level: config.settings.level,
        private: statement.private,
        nodes: release.nodes().nodes(),
        labelled_nodes: release.nodes().labelled(),
        training_nodes: release.nodes().split().map_or(0, |split| split.count(Part::Train)),
        accuracies: open,
        epsilon: statement.epsilon,
        delta: statement.delta,
        planned: statement.planned,
        unit: statement.unit,
        epsilon_friendship: statement.epsilon_friendship,
        epsilon_directed: statement.epsilon_directed,
        release: release.folder.clone(),
        owner: OwnerReport { accuracies: owners, times, peak_rss_bytes: ui::peak_memory(), findings },
        event: statement.event.clone(),
        // Where it cannot be known, runs are not composed but added up.
        noise_values: release.noise_values().unwrap_or(u64::MAX),
    })
}
