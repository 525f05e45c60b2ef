//! The summary of `progap train`. What depends on private data without noise stands under a heading of its own.

use std::path::PathBuf;

use progap::assessment::{Metric, Scores, wilson_interval};
use progap::cost::{Laps, StageCost};
use progap::method::history::has_not_settled;
use progap::settings::{Level, MethodKind};
use progap::{Release, Settings, ledger, release};
use progap_audit::lint::Remark;
use progap_experiments::mean_interval;
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
    method: MethodKind,
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
    epsilon_undirected: Option<f64>,
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

/// The heading of what depends on private data without noise.
const OWNER: &str = "Private: for the data owner";

/// Said where no ledger was charged.
const NOT_COUNTED: &str =
    "releases about the same records add up; --ledger FILE counts them and keeps a budget";

/// Shows what runs came to: a summary, or one JSON object.
pub(super) fn show(reports: Vec<RunReport>, charged: bool, json: bool, verbose: bool) -> Outcome {
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
    let shown = Summary::of(&run, &release, (&reports[..], interval), varied, together)?;
    ui::print(&shown.text(&format!("{} on {}", run.method, run.dataset), charged, verbose))
}

type Row = (&'static str, String);

/// The rows of a summary, by who may see them and by how much a reader wants to know.
struct Summary {
    /// What was trained, and how good it is.
    result: Vec<Row>,
    /// The guarantee, and what to beware of.
    guarantee: Vec<Row>,
    /// Where the release is, and what to do next.
    next: Vec<Row>,
    /// What `--verbose` shows besides.
    more: Vec<Row>,
    /// What depends on private data without noise.
    owner: Vec<Row>,
    private: bool,
}

/// The column at which values begin.
const INDENT: usize = 16;

fn wrapped(text: &str) -> String {
    ui::wrap(text, 100, INDENT)
}

impl Summary {
    fn of(
        run: &RunReport,
        release: &Release,
        (reports, interval): (&[RunReport], Option<[f64; 2]>),
        varied: Option<&'static str>,
        together: Option<(f64, f64)>,
    ) -> Result<Summary, Box<dyn std::error::Error>> {
        let settings = release.settings()?;
        let shown = run.accuracies();
        let mut accuracies: Vec<Row> = vec![];
        if let (Some(value), true) = (shown.test_metric, shown.metric != Metric::Accuracy) {
            let (metric, interval) = (shown.metric, shown.test_metric_interval);
            let value = match reports.len() {
                1 => within(metric, value, interval),
                runs => of_runs(metric, value, runs, interval),
            };
            accuracies.push(("test metric", format!("{} {value}", metric.words())));
        }
        let accuracy = match reports.len() {
            _ if !shown.test_accuracy.is_finite() => "not measured, as there are no test nodes".into(),
            1 => {
                let nodes = release.nodes().split().map_or(0, |split| split.count(Part::Test));
                let interval = Some(wilson_interval(shown.test_accuracy, nodes));
                within(Metric::Accuracy, shown.test_accuracy, interval)
            }
            runs => of_runs(Metric::Accuracy, shown.test_accuracy, runs, interval),
        };
        accuracies.push(("test accuracy", accuracy));
        accuracies
            .extend(shown.only_majority.iter().map(|found| ("one class only", wrapped(&found.sentence()))));
        accuracies.extend(shown.features_only_accuracy.map(|a| ("features only", percent(a))));
        accuracies.extend(shown.majority_accuracy.map(|a| ("majority class", percent(a))));
        let (warnings, more): (Vec<Row>, Vec<Row>) =
            score_rows(shown).into_iter().partition(|(name, _)| *name == "no better than");
        accuracies.extend(warnings);
        let mut summary = Summary {
            result: vec![("labels", labels(run))],
            guarantee: guarantee(run, release, reports.len() > 1, together),
            next: vec![],
            more: vec![],
            owner: vec![],
            private: run.private,
        };
        summary.result.extend(graph_left_out(settings).map(|text| ("graph", wrapped(text))));
        summary.result.extend(varied.map(|varied| ("varied", varied.to_string())));
        match run.owner.accuracies.is_some() {
            true => summary.owner.extend(accuracies.into_iter().chain(more)),
            false => {
                summary.result.splice(0..0, accuracies);
                summary.more.extend(more);
            }
        }
        if has_not_settled(&release.metrics.history, release.predictor_stage()) {
            let text = format!(
                "the loss was still falling: --epochs {} or a larger --learning-rate may give more",
                3 * settings.epochs
            );
            summary.result.push(("not settled", text));
        }
        if settings.unit_from_data && run.unit == Some(Unit::EdgeUndirected) {
            let why = "undirected edge, as every edge has a reverse edge; --directed protects one direction";
            summary.more.push(("unit", why.into()));
        }
        summary.more.extend(other_unit(&release.statement));
        summary.more.extend(release.statement.relation.clone().map(|name| ("relation", name)));
        summary.more.push(("in full", wrapped(&release.statement.in_words)));
        summary.guarantee.extend(release.caution().map(|text| ("predictions", wrapped(text))));
        summary.guarantee.extend(plaintext_warning(run.level).map(|text| ("caution", wrapped(text))));
        summary.owner.extend(check::rows(&run.owner.findings, INDENT));
        let time = format!("{:.1} s ({:.1} s CPU)", run.owner.times.seconds, run.owner.times.cpu_seconds);
        match release.statement.unit.is_some() {
            true => summary.owner.push(("time", time)),
            false => summary.more.push(("time", time)),
        }
        let folder = run.release.display();
        summary.next = vec![
            ("release", folder.to_string()),
            ("next", format!("progap predict {folder}   (also: verify, inspect, report, export)")),
        ];
        Ok(summary)
    }

    fn text(self, title: &str, charged: bool, verbose: bool) -> String {
        let mut rows = self.result;
        rows.extend(self.guarantee);
        if self.private && !charged {
            rows.push(("not counted", NOT_COUNTED.into()));
        }
        if verbose {
            rows.extend(self.more);
        }
        rows.extend(self.next);
        let line = |(name, value): Row| format!("\n{name:<width$}  {value}", width = INDENT - 2);
        let mut text = format!("{title}\n{}", "─".repeat(title.chars().count()));
        text.extend(rows.into_iter().map(line));
        if !self.owner.is_empty() {
            text += &format!("\n\n{OWNER}");
            text.extend(self.owner.into_iter().map(line));
        }
        text
    }
}

/// Epsilon, delta and what they mean; of several runs also what all of them cost.
fn guarantee(run: &RunReport, release: &Release, several: bool, together: Option<(f64, f64)>) -> Vec<Row> {
    let mut rows = vec![];
    if let (Some(epsilon), Some(delta)) = (run.epsilon, run.delta) {
        let unit = run.unit.map(|unit| unit.to_string()).unwrap_or_default();
        let delta = progap::delta::written(delta);
        let each = if several { ", for each run alone" } else { "" };
        rows.push(("guarantee", format!("epsilon {epsilon:.4}, delta {delta}, unit {unit}{each}")));
    } else if run.planned.is_some() {
        rows.push(("guarantee", release.guarantee().to_string()));
    }
    if let (Some((epsilon, delta)), true) = (together, several) {
        let delta = progap::delta::written(delta);
        let all = format!("epsilon {epsilon:.4}, delta {delta}: all releases together");
        rows.push(("all runs", all));
    }
    let words = &release.statement.in_words;
    let first = words.split_inclusive(". ").next().filter(|_| run.private).unwrap_or(words);
    rows.push(("in words", wrapped(first.trim_end())));
    rows
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
    match (statement.unit?, statement.epsilon_undirected?, statement.epsilon_directed?) {
        (Unit::EdgeUndirected, _, directed) => {
            Some(row("one direction", directed, "one direction of it alone"))
        }
        (Unit::Edge, undirected, _) => {
            Some(row("undirected", undirected, "both directions of an edge together"))
        }
        _ => None,
    }
}

/// Epsilon and delta of all runs together: as an accountant composes them, or else, for what no accountant composes,
/// the sum of each. Nothing without a guarantee.
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
        "not used: this budget is too small for so many columns or classes, or so few labels; force it with --depth 1",
    )
}

/// The contents of the release that lie in the clear, or what is shown of it though no guarantee covers it.
fn plaintext_warning(level: Level) -> Option<&'static str> {
    match level {
        Level::None => None,
        Level::Edge => {
            Some("nodes.progap holds features and labels of all nodes in the clear; hand on an export")
        }
        Level::Node => {
            Some("the release's folder private and all accuracies are the owner's; hand on an export")
        }
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
        epsilon_undirected: statement.epsilon_undirected,
        epsilon_directed: statement.epsilon_directed,
        release: release.folder.clone(),
        owner: OwnerReport { accuracies: owners, times, peak_rss_bytes: ui::peak_memory(), findings },
        event: statement.event.clone(),
        // Where it cannot be known, runs are not composed but added up.
        noise_values: release.noise_values().unwrap_or(u64::MAX),
    })
}
