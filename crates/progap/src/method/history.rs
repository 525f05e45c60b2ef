//! The history of training, epoch by epoch.

use serde::{Deserialize, Serialize};

use super::Choice;
use crate::assessment::Metric;
use crate::settings::Messages;

/// The record of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochRecord {
    /// The stage.
    pub stage: usize,
    /// The epoch, from 1.
    pub epoch: usize,
    /// The mean loss over the training nodes, where it is known.
    pub loss: Option<f64>,
    /// The accuracy on the training nodes, where it is known.
    pub train_accuracy: Option<f64>,
    /// The accuracy on the validation nodes; not a number where there are none.
    #[serde(deserialize_with = "crate::files::number_or_nan")]
    pub val_accuracy: f64,
    /// The metric by which epochs are chosen, on the validation nodes; absent where that is the accuracy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub val_score: Option<f64>,
    /// In the method progap-views: what later stages and the release are chosen by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage_score: Option<StageScore>,
}

impl EpochRecord {
    /// How good the epoch is by the metric that chooses: the more the better, and not a number where it cannot be said.
    pub(crate) fn merit(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Accuracy => self.val_accuracy,
            _ => metric.oriented(self.val_score.unwrap_or(f64::NAN)),
        }
    }
}

/// How good a stage of two views is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageScore {
    /// The mean log loss on nodes held out: validation nodes, or a fifth of the training nodes where there are none.
    pub log_loss: f64,
    /// The metric that was asked for, on the same nodes; absent where that is the log loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// By how much the log loss can be smaller than that of the features by chance: one standard error of the
    /// difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
    /// How similar the classes of neighbours are at most, from 0 for not at all to 1, as the first noisy sums tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
    /// The model of a table that was kept: of the features, or of what combines them with the sums. Absent where linear
    /// ones alone are tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<TableForm>,
    /// Of the features alone: the columns of a message that carries features; 0 where none can be sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sent_columns: usize,
    /// Whether the latest sum carries features, alone or beside labels.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_features: bool,
}

impl StageScore {
    /// A stage of which the log loss alone is known.
    pub(crate) fn of(log_loss: f64) -> StageScore {
        StageScore {
            log_loss,
            score: None,
            standard_error: None,
            similarity: None,
            kept: None,
            sent_columns: 0,
            with_features: false,
        }
    }
}

/// The form of a model of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableForm {
    /// Linear.
    Linear,
    /// With a hidden layer.
    Perceptron,
    /// Linear, with boosted trees beside it.
    LinearWithTrees,
    /// With a hidden layer, and boosted trees beside it.
    PerceptronWithTrees,
}

impl TableForm {
    fn words(self) -> &'static str {
        match self {
            TableForm::Linear => "a linear model",
            TableForm::Perceptron => "a perceptron",
            TableForm::LinearWithTrees => "a linear model with boosted trees",
            TableForm::PerceptronWithTrees => "a perceptron with boosted trees",
        }
    }
}

/// What was tried for the features and sent in each sum, and what each was worth on nodes held out; nothing where no
/// stages are compared.
pub fn worth(history: &[EpochRecord], choice: Option<&Choice>) -> Vec<String> {
    let scores: Vec<StageScore> = history.iter().filter_map(|record| record.stage_score).collect();
    let ([alone, stages @ ..], Some(choice)) = (&scores[..], choice) else { return vec![] };
    let tried = match alone.kept {
        Some(kept) => format!("{} (of linear, perceptron and boosted trees)", kept.words()),
        None => TableForm::Linear.words().into(),
    };
    let mut all =
        vec![format!("features alone: log loss {:.3} on nodes held out, by {tried}", alone.log_loss)];
    for ((at, stage), message) in stages.iter().enumerate().zip(&choice.messages) {
        let features = if *message != Messages::Features && alone.sent_columns > 0 && stage.with_features {
            " and features"
        } else {
            ""
        };
        let error =
            stage.standard_error.map_or(String::new(), |error| format!(" (standard error {error:.3})"));
        let kept = stage.kept.map_or(String::new(), |kept| format!(", by {}", kept.words()));
        all.push(format!(
            "sum {} of {message}{features}: log loss {:.3}, {:+.3} to the features{error}{kept}",
            at + 1,
            stage.log_loss,
            stage.log_loss - alone.log_loss
        ));
    }
    if choice.stage == 0 && !stages.is_empty() {
        let with_features =
            choice.messages.contains(&Messages::Features) || stages.iter().any(|stage| stage.with_features);
        all.push(match with_features {
            true => "the graph brought nothing: neither classes nor features of neighbours beat the features alone by \
                     one standard error"
                .into(),
            false => "classes of neighbours brought nothing that is more than one standard error; their features \
             were not \
                      sent, as there are too many columns"
                .into(),
        });
    }
    all
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A loss that falls by less than this share is as good as flat.
const FLAT: f64 = 0.005;

/// Whether the loss of a stage has stopped falling: over the last `epochs` epochs it fell by less than one in two
/// hundred. Never where losses are not known, or for no epochs.
pub(crate) fn is_flat(history: &[EpochRecord], stage: usize, epochs: usize) -> bool {
    if epochs == 0 {
        return false;
    }
    let mut losses =
        history.iter().rev().take_while(|record| record.stage == stage).map(|record| record.loss);
    match (losses.next().flatten(), losses.nth(epochs - 1).flatten()) {
        (Some(last), Some(before)) => last > (1.0 - FLAT) * before,
        _ => false,
    }
}

/// Whether this many stages have all their epochs, in order: as many as are asked for, or fewer where the loss had
/// stopped falling.
pub(crate) fn is_whole(
    history: &[EpochRecord],
    stages: usize,
    epochs: impl Fn(usize) -> usize,
    patience: usize,
) -> bool {
    let mut at = 0;
    for stage in 0..stages {
        let epochs = epochs(stage);
        let of_stage = history[at..].iter().take_while(|record| record.stage == stage).count();
        let in_order = (0..of_stage).all(|epoch| history[at + epoch].epoch == epoch + 1);
        at += of_stage;
        if !in_order
            || (of_stage != epochs && !(of_stage < epochs && is_flat(&history[..at], stage, patience)))
        {
            return false;
        }
    }
    at == history.len()
}

/// A stage has not settled where the last fifth of its epochs brought this share of all that its loss fell.
const STILL_FALLING: f64 = 0.04;
/// A loss below this share of what it was after the first epoch is fitted: what it still falls is learnt by heart.
const FITTED: f64 = 0.2;

/// Whether the loss was still falling when a stage ended, up to the one that is released: more epochs, or larger steps,
/// would learn more. Not where losses are not known.
pub fn has_not_settled(history: &[EpochRecord], released: usize) -> bool {
    (0..=released).any(|stage| is_still_falling(history, stage))
}

fn is_still_falling(history: &[EpochRecord], stage: usize) -> bool {
    let losses: Vec<f64> =
        history.iter().filter(|record| record.stage == stage).filter_map(|record| record.loss).collect();
    let Some(before) = losses.len().checked_sub(1 + losses.len().div_ceil(5)) else { return false };
    let (first, before, last) = (losses[0], losses[before], losses[losses.len() - 1]);
    last < (1.0 - FLAT) * before && last > FITTED * first && before - last >= STILL_FALLING * (first - last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(stage: usize, losses: &[f64]) -> Vec<EpochRecord> {
        let record = |(at, &loss): (usize, &f64)| EpochRecord {
            stage,
            epoch: at + 1,
            loss: Some(loss),
            train_accuracy: None,
            val_accuracy: 0.5,
            val_score: None,
            stage_score: None,
        };
        losses.iter().enumerate().map(record).collect()
    }

    #[test]
    fn a_loss_is_flat_that_has_not_fallen_for_some_epochs() {
        let falling = losses(0, &[1.0, 0.9, 0.8, 0.7]);
        assert!(!is_flat(&falling, 0, 2) && !is_flat(&falling, 0, 0) && !is_flat(&falling, 1, 1));
        let flat = losses(0, &[1.0, 0.7, 0.699, 0.698]);
        assert!(is_flat(&flat, 0, 2) && !is_flat(&flat, 0, 3) && !is_flat(&flat, 0, 4));
        // Epochs of the stage before have no part in it.
        assert!(!is_flat(&[flat, losses(1, &[0.698])].concat(), 1, 1));
    }

    #[test]
    fn a_history_is_whole_or_ends_where_the_loss_was_flat() {
        let (flat, falling) =
            (losses(0, &[1.0, 0.7, 0.699, 0.698]), losses(1, &[1.0, 0.8, 0.6, 0.4, 0.2, 0.1]));
        let both = [flat.clone(), falling.clone()].concat();
        assert!(is_whole(&both, 2, |_| 6, 2));
        assert!(!is_whole(&both, 2, |_| 6, 3), "stopped too early");
        assert!(!is_whole(&both, 2, |_| 6, 0), "never stops");
        assert!(
            !is_whole(&both[..9], 2, |_| 6, 2)
                && !is_whole(&both, 1, |_| 6, 2)
                && !is_whole(&both, 3, |_| 6, 2)
        );
        let gap = [&both[..1], &both[2..]].concat();
        assert!(!is_whole(&gap, 2, |_| 6, 1));
        assert!(is_whole(
            &falling.iter().map(|r| EpochRecord { stage: 0, ..*r }).collect::<Vec<_>>(),
            1,
            |_| 6,
            0
        ));
    }

    /// Recorded: the number of epochs, and the loss after the first, four fifths of them, and the last.
    #[test]
    fn recorded_histories_have_settled_or_not() {
        let recorded = |epochs: usize, [first, before, last]: [f64; 3]| {
            let mut all = vec![first; epochs];
            let four_fifths = epochs - 1 - epochs.div_ceil(5);
            all[four_fifths..].fill(before);
            all[0] = first;
            all[epochs - 1] = last;
            losses(0, &all)
        };
        // Forty classes with too few epochs, and three classes with three.
        for (epochs, points) in [
            (5, [3.6983, 3.2950, 3.1985]),
            (10, [3.6983, 3.0036, 2.9151]),
            (20, [3.6983, 2.7253, 2.6328]),
            (40, [3.6983, 2.4466, 2.3754]),
            (40, [3.6989, 2.4653, 2.3972]),
            (3, [1.0724, 1.0549, 1.0383]),
        ] {
            assert!(has_not_settled(&recorded(epochs, points), 0), "{epochs} {points:?}");
        }
        // Default runs: forty classes, cora, citeseer, chameleon, Berkeley13, a rare class, raw units.
        for (epochs, points) in [
            (180, [3.6983, 2.0392, 2.0021]),
            (100, [1.9794, 0.2471, 0.1624]),
            (100, [1.8238, 0.1980, 0.1331]),
            (100, [1.6198, 0.2404, 0.2028]),
            (100, [1.7862, 0.7156, 0.6804]),
            (100, [0.6303, 0.0757, 0.0720]),
            (100, [1.1240, 0.7861, 0.7805]),
        ] {
            assert!(!has_not_settled(&recorded(epochs, points), 0), "{epochs} {points:?}");
        }
    }

    #[test]
    fn every_stage_up_to_the_released_one_counts() {
        let (flat, falling) = (losses(0, &[1.0, 0.7, 0.7, 0.7, 0.7]), losses(1, &[1.0, 0.9, 0.8, 0.7, 0.6]));
        let both = [flat.clone(), falling].concat();
        assert!(!has_not_settled(&both, 0) && has_not_settled(&both, 1));
        // A loss that rises, and losses that are not known.
        assert!(!has_not_settled(&losses(0, &[0.7, 0.8, 0.9]), 0));
        assert!(!has_not_settled(&losses(0, &[1.0]), 0) && !has_not_settled(&[], 0));
        let unknown: Vec<EpochRecord> =
            both.iter().map(|record| EpochRecord { loss: None, ..*record }).collect();
        assert!(!has_not_settled(&unknown, 1));
    }
}
