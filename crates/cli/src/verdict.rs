//! Baselines that do as well as a model: said in the summary of training, in its JSON and in reports.

use progap::Settings;
use progap::assessment::{Assessment, Baselines, Metric, Scores};
use progap::release::Metrics;
use progap::settings::{ClassWeights, Level};

use crate::ui::percent;

/// Baselines that a model is no better than on the test nodes. By its accuracy, or the balanced accuracy where classes are uneven; and by
/// the metric that chose it. Each is named once, with what it reaches.
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

fn written(metric: Metric, score: f64) -> String {
    if metric == Metric::LogLoss { format!("{score:.3}") } else { percent(score) }
}

/// That the same model did as well before it had seen an edge, or that this is the one which was chosen. Their accuracies are compared, which
/// say nothing where something else was asked for.
fn features_alone(metrics: &Metrics, settings: &Settings, scores: &Scores) -> Option<String> {
    let by_accuracy = matches!(settings.metric, Metric::Accuracy | Metric::LogLoss)
        && settings.class_weights == ClassWeights::Even;
    let asked = metrics.stage_test_accuracies.len() > 1;
    let alone = metrics.features_only_accuracy.filter(|_| by_accuracy && asked)?;
    let noise = if settings.level == Level::None { "" } else { " under this noise" };
    (scores.accuracy <= alone).then(|| {
        format!("the features alone (accuracy {}): the graph brought nothing{noise}", percent(alone))
    })
}
