//! The scores in the summary of `progap train`, on the test nodes. At node level they are for the data owner alone.

use progap::Release;
use progap::assessment::{Assessment, Baselines, Compared, Intervals, Metric, Scores};
use progap::cost::Laps;
use progap_experiments::MIN_RUNS;
use progap_graph::{Dataset, Part};
use serde::Serialize;

use crate::ui::{self, percent};
use crate::verdict::{OnlyMajority, headline, no_better_than, written};

/// The scores of a run, and what they are compared with.
#[derive(Serialize, Clone)]
pub(super) struct AccuracyReport {
    pub test_accuracy: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_accuracy_interval: Option<[f64; 2]>,
    pub val_accuracy: f64,
    pub train_accuracy: f64,
    pub features_only_accuracy: Option<f64>,
    pub majority_accuracy: Option<f64>,
    pub logistic_regression_accuracy: Option<f64>,
    /// Every metric on the test nodes; null where there are none.
    pub test_scores: Option<Scores>,
    /// The metric that was asked for on the test nodes; accuracy where none was.
    pub metric: Metric,
    pub test_metric: Option<f64>,
    pub test_metric_interval: Option<[f64; 2]>,
    /// 95 % intervals by resampling test nodes, for two uneven classes or where another metric than accuracy was asked
    /// for.
    pub test_intervals: Option<IntervalReport>,
    /// Predictions that are nearly all the most frequent class.
    pub only_majority: Option<OnlyMajority>,
    /// Baselines that the model is not better than.
    pub no_better_than: Vec<String>,
    /// What was tried and sent, and what each was worth on nodes held out.
    pub worth: Vec<String>,
    /// The rarest class, where classes are so uneven that accuracy says little about it.
    #[serde(skip)]
    pub rarest: Option<Rarest>,
}

/// 95 % intervals by resampling test nodes.
#[derive(Serialize, Clone)]
pub(super) struct IntervalReport {
    auroc: Option<[f64; 2]>,
    average_precision: Option<[f64; 2]>,
    balanced_accuracy: Option<[f64; 2]>,
    macro_f1: Option<[f64; 2]>,
    log_loss: Option<[f64; 2]>,
    /// Of the recall of each class.
    recalls: Vec<Option<[f64; 2]>>,
}

impl IntervalReport {
    fn of(found: &Intervals) -> IntervalReport {
        IntervalReport {
            auroc: found.get(Metric::Auroc),
            average_precision: found.get(Metric::AveragePrecision),
            balanced_accuracy: found.get(Metric::BalancedAccuracy),
            macro_f1: found.get(Metric::MacroF1),
            log_loss: found.get(Metric::LogLoss),
            recalls: found.recalls.clone(),
        }
    }
}

/// The rarest class.
#[derive(Clone)]
pub(super) struct Rarest {
    class: usize,
    name: String,
    share: f64,
    alone: bool,
}

impl AccuracyReport {
    /// The scores of a release, and what they are compared with.
    pub fn of(
        release: &Release,
        dataset: &Dataset,
        laps: &mut Laps,
    ) -> Result<AccuracyReport, Box<dyn std::error::Error>> {
        let (metrics, config) = (&release.metrics, release.config()?);
        let compared = release.compare(dataset, Part::Test)?;
        let found = compared.as_ref().map(Compared::assessment);
        let metric = headline(&config.settings);
        let uneven = found.as_ref().is_some_and(Assessment::is_uneven);
        // Resampling takes longer than the rest of the summary: with more classes the report does it.
        let resampled = |compared: &&Compared| metric != Metric::Accuracy || uneven && compared.classes == 2;
        let intervals = compared.as_ref().filter(resampled);
        let intervals = intervals.and_then(Compared::intervals);
        let baselines = Baselines::of(dataset, &config.settings)?;
        laps.lap("comparison");
        let scores = found.as_ref().and_then(Assessment::scores);
        let logistic = baselines.as_ref().and_then(|baselines| baselines.logistic_regression.as_ref());
        let names = release.nodes().class_names();
        let rarest = found.as_ref().filter(|_| uneven).and_then(|found| {
            let class = found.rarest()?;
            Some(Rarest {
                class,
                name: names[class].clone(),
                share: found.classes[class].support as f64 / found.nodes as f64,
                alone: found.classes.len() == 2,
            })
        });
        Ok(AccuracyReport {
            test_accuracy: metrics.test_accuracy,
            test_accuracy_interval: None,
            val_accuracy: metrics.val_accuracy,
            train_accuracy: metrics.train_accuracy,
            features_only_accuracy: metrics.features_only_accuracy,
            majority_accuracy: progap_graph::summary::majority_baseline(dataset),
            logistic_regression_accuracy: logistic.map(|scores| scores.accuracy),
            worth: progap::method::history::worth(&metrics.history, release.statement.choice.as_ref()),
            no_better_than: match (&found, &baselines) {
                (Some(found), Some(baselines)) => {
                    no_better_than((metrics, &config.settings), found, baselines)
                }
                _ => vec![],
            },
            metric,
            test_metric: scores.as_ref().map(|scores| scores.get(metric)).filter(|value| value.is_finite()),
            test_metric_interval: intervals.as_ref().and_then(|intervals| intervals.get(metric)),
            test_intervals: intervals.as_ref().map(IntervalReport::of),
            only_majority: found.as_ref().and_then(|found| OnlyMajority::of(found, names, &config.settings)),
            test_scores: scores,
            rarest,
        })
    }
}

/// A value of a metric on the test nodes of one run.
pub(super) fn within(metric: Metric, value: f64, interval: Option<[f64; 2]>) -> String {
    let interval = interval
        .map(|[low, high]| format!(" (95 % interval {} to {})", written(metric, low), written(metric, high)));
    format!("{}{}", written(metric, value), interval.unwrap_or_default())
}

/// The mean of a metric over several runs.
pub(super) fn of_runs(metric: Metric, value: f64, runs: usize, interval: Option<[f64; 2]>) -> String {
    let interval = match interval {
        Some([low, high]) => format!("95 % interval {} to {}", written(metric, low), written(metric, high)),
        None => format!("fewer than {MIN_RUNS} are too few for an interval"),
    };
    format!("{} (mean of {runs} runs; {interval})", written(metric, value))
}

/// Facts that accuracy does not show: how rare classes fare, whether probabilities can be believed, what does as well
/// without a model.
pub(super) fn score_rows(shown: &AccuracyReport) -> Vec<(&'static str, String)> {
    let mut rows = vec![];
    for (at, text) in shown.worth.iter().enumerate() {
        rows.push((if at == 0 { "tried" } else { "" }, ui::wrap(text, 100, 16)));
    }
    let Some(scores) = &shown.test_scores else { return rows };
    if let Some(rarest) = &shown.rarest {
        let (balanced, f1) = (percent(scores.balanced_accuracy), percent(scores.macro_f1));
        rows.push(("classes", format!("uneven: balanced accuracy {balanced}, macro F1 {f1}")));
        let intervals = shown.test_intervals.as_ref();
        let share = |value: f64, interval: Option<[f64; 2]>| {
            let interval = interval.map(|[low, high]| format!(" ({} to {})", percent(low), percent(high)));
            format!("{}{}", percent(value), interval.unwrap_or_default())
        };
        let mut text = format!("{} ({} of the test nodes)", rarest.name, percent(rarest.share));
        if let Some(recall) = scores.recalls[rarest.class] {
            text += &format!(": recall {}", share(recall, intervals.and_then(|i| i.recalls[rarest.class])));
        }
        if let (true, Some(precision), Some(auroc)) = (rarest.alone, scores.average_precision, scores.auroc) {
            let precision = share(precision, intervals.and_then(|i| i.average_precision));
            let auroc = share(auroc, intervals.and_then(|i| i.auroc));
            text += &format!(", average precision {precision}, AUROC {auroc}");
        }
        if intervals.is_some() {
            text += "; with 95 % intervals";
        }
        rows.push(("rarest class", ui::wrap(&text, 100, 16)));
    }
    let (error, loss) = (percent(scores.calibration_error), scores.log_loss);
    rows.push(("probabilities", format!("calibration error {error}, log loss {loss:.3}")));
    if !shown.no_better_than.is_empty() {
        rows.push(("no better than", ui::wrap(&shown.no_better_than.join("; "), 100, 16)));
    }
    rows
}
