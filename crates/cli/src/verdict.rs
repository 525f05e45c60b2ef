//! Verdicts on a model, said in the summary of training, in its JSON and in reports: the metric that counts, baselines
//! that do as well, and predictions that are the most frequent class.

use progap::Settings;
use progap::assessment::{Assessment, Baselines, Metric, Scores};
use progap::method::catalogue;
use progap::release::Metrics;
use progap::settings::{ClassWeights, Level};
use serde::Serialize;

use crate::ui::percent;

/// The metric that was asked for; accuracy where that is only the one by which the method chooses.
pub fn headline(settings: &Settings) -> Metric {
    match settings.metric == Settings::of(settings.method, settings.level).metric {
        true => Metric::Accuracy,
        false => settings.metric,
    }
}

/// A value of a metric as people read it.
pub fn written(metric: Metric, score: f64) -> String {
    if metric == Metric::LogLoss { format!("{score:.3}") } else { percent(score) }
}

/// Baselines that a model is no better than on the test nodes. By its accuracy, or the balanced accuracy where classes
/// are uneven; and by the metric that chose it. Each is named once, with what it reaches.
pub fn no_better_than(
    (metrics, settings): (&Metrics, &Settings),
    found: &Assessment,
    baselines: &Baselines,
) -> Vec<String> {
    let Some(scores) = found.scores() else { return vec![] };
    let usual = if found.is_uneven() { Metric::BalancedAccuracy } else { Metric::Accuracy };
    let chosen_by = match settings.metric {
        Metric::Accuracy => usual,
        metric => metric,
    };
    let mut named: Vec<(&str, String)> = vec![];
    for metric in [usual, chosen_by] {
        for (name, score) in baselines.not_beaten(&scores, metric) {
            if named.iter().all(|(other, _)| *other != name) {
                named.push((name, format!("{name} ({} {})", metric.words(), written(metric, score))));
            }
        }
    }
    let mut all: Vec<String> = named.into_iter().map(|(_, text)| text).collect();
    all.extend(features_alone(metrics, settings, &scores));
    all
}

/// That the same model did as well before it had seen an edge, or that this is the one which was chosen. Their
/// accuracies are compared, which say nothing where something else was asked for. It says what was tried, and nothing
/// of the graph itself.
fn features_alone(metrics: &Metrics, settings: &Settings, scores: &Scores) -> Option<String> {
    let by_accuracy = matches!(settings.metric, Metric::Accuracy | Metric::LogLoss)
        && settings.class_weights == ClassWeights::Even;
    let asked = metrics.stage_test_accuracies.len() > 1;
    let alone = metrics.features_only_accuracy.filter(|_| by_accuracy && asked)?;
    let noise = if settings.level == Level::None { "" } else { " under this noise" };
    let others: Vec<String> =
        catalogue::alternatives(settings).map(|method| format!("--method {method}")).collect();
    (scores.accuracy <= alone).then(|| {
        format!(
            "the features alone (accuracy {}): {} did not raise the accuracy on the test nodes{noise}; other methods \
             use the graph differently ({})",
            percent(alone),
            catalogue::summed(settings),
            others.join(", ")
        )
    })
}

/// Predictions that are nearly all the most frequent class.
#[derive(Debug, Clone, Serialize)]
pub struct OnlyMajority {
    /// The class.
    class: String,
    /// Its share of the predictions, and of the labels.
    predicted: f64,
    labels: f64,
    /// Flags that make rare classes count; none where classes are about as frequent, or all of it was asked for.
    remedy: Vec<String>,
}

impl OnlyMajority {
    /// Where nearly every test node is predicted to be in the most frequent class though there are others.
    pub fn of(found: &Assessment, names: &[String], settings: &Settings) -> Option<OnlyMajority> {
        let class = found.only_majority()?;
        let share = |count: u64| count as f64 / found.nodes.max(1) as f64;
        Some(OnlyMajority {
            class: names[class].clone(),
            predicted: share(found.confusion.iter().map(|row| row[class]).sum()),
            labels: share(found.classes[class].support),
            remedy: if found.is_uneven() { remedy(settings) } else { vec![] },
        })
    }

    /// In words.
    pub fn sentence(&self) -> String {
        let advice = match self.remedy.as_slice() {
            [] => String::new(),
            flags => format!("; to find the others try {}", flags.join(" ")),
        };
        format!(
            "{} of the test nodes are predicted to be {:?}, the most frequent class ({} of them are){advice}",
            percent(self.predicted),
            self.class,
            percent(self.labels)
        )
    }
}

/// The flags that make rare classes count, as far as this method has them at this level; where it has none, a method
/// that does.
fn remedy(settings: &Settings) -> Vec<String> {
    let balances = |settings: &Settings| {
        let balanced = Settings { class_weights: ClassWeights::Balanced, ..settings.clone() };
        settings.without_effect("class_weights").is_none() && balanced.checked().is_ok()
    };
    let weights = "--class-weights balanced".to_string();
    let mut flags = vec![];
    if settings.class_weights != ClassWeights::Balanced {
        let usual = catalogue::RECOMMENDED;
        if balances(settings) {
            flags.push(weights);
        } else if balances(&Settings::of(usual, settings.level)) {
            flags.extend([format!("--method {usual}"), weights]);
        }
    }
    if settings.metric != Metric::AveragePrecision && settings.without_effect("metric").is_none() {
        flags.push(format!("--metric {}", Metric::AveragePrecision));
    }
    flags
}

#[cfg(test)]
mod tests {
    use progap::MethodKind;
    use progap::settings::Selection;

    use super::*;

    /// What is named works with the method and the level in use.
    #[test]
    fn only_flags_that_work_are_named() {
        let (weights, metric) = ("--class-weights balanced", "--metric average-precision");
        let of = |method, level| remedy(&Settings::of(method, level));
        assert_eq!(of(MethodKind::ProgapViews, Level::Edge), [weights, metric]);
        assert_eq!(of(MethodKind::Gap, Level::None), [weights, metric]);
        // At node level nothing is chosen by private labels, and dp-gnn has no noisy counts.
        assert_eq!(of(MethodKind::ProgapLabels, Level::Node), [weights]);
        assert_eq!(of(MethodKind::DpGnn, Level::Node), ["--method progap-views", weights]);
        let last = Settings { selection: Selection::LastEpoch, ..Settings::of(MethodKind::Gap, Level::Edge) };
        assert_eq!(remedy(&last), [weights]);
        let asked = Settings {
            class_weights: ClassWeights::Balanced,
            ..Settings::of(MethodKind::ProgapViews, Level::Edge)
        };
        assert_eq!(remedy(&asked), [metric]);
        let all = Settings { metric: Metric::AveragePrecision, ..asked };
        assert!(remedy(&all).is_empty());
        for entry in catalogue::methods() {
            for &level in entry.levels {
                let flags = remedy(&Settings::of(entry.method, level)).join(" ");
                let mut words = flags.split(' ');
                let mut request = progap::settings::Request::default().with("level", level.name());
                if !flags.contains("--method") {
                    request = request.with("method", entry.method.name());
                }
                while let (Some(flag), Some(value)) = (words.next(), words.next()) {
                    request = request.with(&flag.trim_start_matches('-').replace('-', "_"), value);
                }
                assert!(request.settings().is_ok(), "{} at {level}: {flags}", entry.method);
            }
        }
    }

    /// The metric by which a method chooses where nobody asks is no headline.
    #[test]
    fn the_headline_is_the_metric_that_was_asked_for() {
        let views = Settings::of(MethodKind::ProgapViews, Level::Edge);
        assert_eq!(headline(&views), Metric::Accuracy);
        assert_eq!(headline(&Settings { metric: Metric::Auroc, ..views }), Metric::Auroc);
        assert_eq!(headline(&Settings::of(MethodKind::ProgapLabels, Level::Node)), Metric::Accuracy);
    }
}
