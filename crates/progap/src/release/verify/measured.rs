//! Sizes and accuracies, against the release's own rows, model and aggregates.

use progap_graph::Part;

use super::Finding;
use crate::assessment::Metric;
use crate::method::history::{EpochRecord, is_whole};
use crate::model::Model;
use crate::predictor::NO_MODEL;
use crate::release::{Config, Metrics, Release};
use crate::rows::Rows;
use crate::settings::{Calibration, Level, Selection, Settings};
use crate::{Result, calibration, files, method};

/// Below this difference of two probabilities another machine may see the other class in front.
const TIE: f32 = 1e-5;

/// Numbers of nodes, columns and classes, and that every number of the model is one.
pub(super) fn sizes(release: &Release) -> Result<Finding> {
    let (nodes, Config { dataset, settings, .. }) = (release.nodes(), release.config()?);
    let columns = nodes.features().columns();
    let stated = release.statement.feature_columns;
    // Rows are there whole, or were left out where that may be.
    let left_out = columns == 0 && (settings.level == Level::Node || release.exported.is_some());
    let shaped = (columns == stated || left_out) && stated > 0;
    // Opening compared the models with what they read; here they are compared with what the settings ask for.
    let choice = release.statement.choice.as_ref();
    let released = released_stage(release, settings);
    let program = method::program(settings, (stated, nodes.classes()), choice);
    let is_expected = |stage: usize, model: &Model| {
        program.stages.get(stage).is_some_and(|stage| stage.model == model.shape())
    };
    let (last, before) = release.predictor.links.split_last().ok_or(NO_MODEL)?;
    let shaped = shaped && release.predictor.stage == released && is_expected(released, &last.model);
    // Models that are read by later ones are those of the stages in their order.
    let shaped = shaped && before.iter().enumerate().all(|(stage, link)| is_expected(stage, &link.model));
    let widths = program.aggregate_widths();
    let shaped = shaped && widths.starts_with(&release.predictor.widths);
    let mut finite = release.predictor.is_finite();
    for (index, width) in widths.into_iter().enumerate().skip(release.predictor.aggregates.len()) {
        let name = release.contents.aggregate(index + 1);
        if settings.method.can().protects_predictions {
            let bytes = release.listed.content(&name, release.bounds.of(&name))?;
            let values = files::parse_matrix(&release.folder.join(&name), &bytes, nodes.nodes(), width)?;
            finite &= values.iter().all(|value| value.is_finite());
        }
    }
    let named = dataset == nodes.name();
    let detail = format!(
        "{} nodes, {stated} feature columns and {} classes, in the statement, the rows, the model and the \
         aggregates{}{}{}",
        nodes.nodes(),
        nodes.classes(),
        if shaped { "" } else { "; but the rows or the model have other sizes than the settings say" },
        if finite { "" } else { "; but not all numbers of the model are finite" },
        if named { "" } else { "; but the rows are of a data set of another name" },
    );
    Ok(Finding::checked("sizes", detail, shaped && finite && named))
}

/// The weights of receivers, from the split and from the sums before; nothing where there are none.
pub(super) fn weights(release: &Release) -> Result<Option<Finding>> {
    let settings = release.settings()?;
    if !settings.weighs_receivers() || settings.depth == 0 {
        return Ok(None);
    }
    let follow = method::weights_follow(release)?;
    let detail = "those that follow from the split and from the noisy sums before";
    Ok(Some(Finding::checked("weights of receivers", detail, follow)))
}

/// The stage whose model the settings and what was chosen say is released.
pub(super) fn released_stage(release: &Release, settings: &Settings) -> usize {
    let last = method::stages(settings) - 1;
    release.statement.choice.as_ref().map_or(last, |choice| choice.stage)
}

/// The accuracies, from predictions; where the labels are not there, that they were not recomputed.
pub(super) fn accuracy(release: &Release) -> Result<Finding> {
    if !release.has_labels() {
        let (why, fields): (_, &[&str]) = match release.level() {
            Level::Node => ("labels are private and in no release", &[]),
            _ => (
                "the rows of the nodes were left out of this export",
                &[
                    "metrics.json: test_accuracy",
                    "metrics.json: val_accuracy",
                    "metrics.json: train_accuracy",
                ],
            ),
        };
        return Ok(Finding::claimed("accuracy", format!("not recomputed: {why}"), fields.iter().copied()));
    }
    let nodes = release.nodes();
    let (mut ok, mut said) = (true, vec![]);
    let metrics = &release.metrics;
    for (part, name, claimed) in [
        (Part::Test, "test", metrics.test_accuracy),
        (Part::Val, "validation", metrics.val_accuracy),
        (Part::Train, "training", metrics.train_accuracy),
    ] {
        let members: Vec<u32> =
            nodes.split().map_or(vec![], |split| split.nodes(part).map(|node| node as u32).collect());
        if members.is_empty() {
            ok &= claimed.is_nan();
            continue;
        }
        let predictions = release.predict_nodes(&members)?;
        let right = members.iter().zip(&predictions.classes);
        let right = right.filter(|&(&node, &class)| nodes.labels()[node as usize] == class).count() as f64;
        let ties = predictions.probabilities.chunks_exact(nodes.classes()).filter(|row| is_tie(row)).count();
        // An accuracy is a whole number of nodes.
        let hits = claimed * members.len() as f64;
        ok &= (hits - hits.round()).abs() < 1e-6 && (hits.round() - right).abs() <= ties as f64;
        said.push(format!(
            "claimed {claimed:.4} on the {name} nodes, recomputed {:.4}",
            right / members.len() as f64
        ));
    }
    Ok(Finding::checked("accuracy", said.join("; "), ok))
}

/// The temperature, from the validation nodes; nothing where there is none and none is asked for.
pub(super) fn temperature(release: &Release) -> Result<Option<Finding>> {
    let (settings, said) = (release.settings()?, release.predictor.temperature);
    if !release.has_labels() {
        // At node level there is none; elsewhere it can be left out of an export with the labels it is made of.
        let ok =
            said.is_none() || (settings.level != Level::Node && settings.calibration != Calibration::Off);
        let detail =
            said.map_or("none".into(), |said| format!("a factor of {said:.4} on logits, not recomputed"));
        return Ok((said.is_some() || !ok).then(|| Finding::checked("calibration", detail, ok)));
    }
    let found =
        calibration::temperature(&release.predictor, || Rows::of_nodes(release.nodes()), settings, None)?;
    let ok = match (said, found) {
        (Some(said), Some(found)) => (said / found - 1.0).abs() < 1e-2,
        (said, found) => said == found,
    };
    let shown = |factor: Option<f32>| factor.map_or("none".into(), |factor| format!("{factor:.4}"));
    let detail = format!("factor on logits: claimed {}, recomputed {}", shown(said), shown(found));
    Ok((said.is_some() || found.is_some()).then(|| Finding::checked("calibration", detail, ok)))
}

/// Whether the two most probable classes of a row are as good as equal.
fn is_tie(row: &[f32]) -> bool {
    let (mut first, mut second) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
    for &value in row {
        if value > first {
            (first, second) = (value, first);
        } else if value > second {
            second = value;
        }
    }
    // Also where one of them is no number.
    (first - second).partial_cmp(&TIE) != Some(std::cmp::Ordering::Greater)
}

/// The history against the settings, and the accuracies against it.
pub(super) fn history<'h>(metrics: &'h Metrics, settings: &Settings, released: usize) -> Finding {
    let outline = method::outline(settings);
    let (stages, epochs) = (outline.stages.len(), outline.epochs());
    let of_stage = |stage: usize| outline.stages[stage].epochs();
    let whole = is_whole(&metrics.history, stages, of_stage, settings.patience);
    let share = |value: f64| value.is_nan() || (0.0..=1.0).contains(&value);
    let in_range = metrics.history.iter().all(|record| {
        share(record.val_accuracy)
            && record.train_accuracy.is_none_or(share)
            && record.loss.is_none_or(|loss| loss >= 0.0)
            && record.val_score.is_none_or(|score| score >= 0.0)
            && (settings.metric != Metric::Accuracy || record.val_score.is_none())
            && record.stage_score.is_none_or(|score| {
                let more = [score.score, score.standard_error];
                score.log_loss >= 0.0 && more.into_iter().flatten().all(|value| value >= 0.0)
            })
    }) && metrics.stage_test_accuracies.iter().copied().all(share)
        && [metrics.test_accuracy, metrics.val_accuracy, metrics.train_accuracy].into_iter().all(share);
    let mut of_stage = metrics.history.iter().filter(|record| record.stage == released);
    let kept = match settings.selection {
        Selection::BestValidation => {
            let merit = |record: &EpochRecord| record.merit(settings.metric);
            let better = |best: Option<&'h EpochRecord>, record: &'h EpochRecord| match best {
                Some(best) if !(merit(record) > merit(best) || merit(best).is_nan()) => Some(best),
                _ => Some(record),
            };
            of_stage.fold(None, better).map_or(f64::NAN, |record| record.val_accuracy)
        }
        Selection::LastEpoch => of_stage.next_back().map_or(f64::NAN, |record| record.val_accuracy),
    };
    let same = |one: f64, other: f64| one == other || (one.is_nan() && other.is_nan());
    let stage = metrics.stage_test_accuracies.get(released).copied().unwrap_or(f64::NAN);
    let first = metrics
        .stage_test_accuracies
        .first()
        .copied()
        .filter(|accuracy| !settings.method.can().mixes_rows && accuracy.is_finite());
    let fits = metrics.stage_test_accuracies.len() == stages
        && same(stage, metrics.test_accuracy)
        && same(kept, metrics.val_accuracy)
        && metrics.features_only_accuracy == first
        && metrics.unprotected == (settings.level == Level::Node);
    let most = if settings.patience > 0 { "at most " } else { "" };
    let course = match (settings.without_effect("epochs").is_some(), epochs) {
        (true, _) => format!("{stages} fits, one in each stage"),
        (false, 1) => format!("{most}1 epoch in each of {stages} stages"),
        (false, _) => format!("{most}{epochs} epochs in each of {stages} stages"),
    };
    let detail = format!("{course}, and the accuracies are those of stage {released}");
    Finding::checked("history", detail, whole && in_range && fits)
}
