//! ProGAP: stage `s` trains base networks 0 to `s` on the features and on the aggregates of the stages before, each
//! of which was asked for once and kept.
//!
//! Aggregated messages are embeddings, as published, or what is known about the classes of nodes (docs/method.md).

use progap_nn::Architecture;
use serde::{Deserialize, Serialize};

use super::history::EpochRecord;
use super::objective::RowObjective;
use super::trainer::Trainer;
use super::{
    CLASS_PROBABILITIES, Capabilities, Defaults, DepthRule, Fitted, Method, MethodKind, MethodSpec, Program,
    QuerySpec, Stage, architecture, embeddings_sent, progap_labels, rows_and_aggregates,
};
use crate::model::{Model, Shape};
use crate::plan::PublicFacts;
use crate::release::Release;
use crate::rows::Rows;
use crate::settings::{Level, Messages, Settings};
use crate::vault::{Aggregates, Message};
use crate::{Error, Remedy, Result};

/// The stages, whose messages are embeddings, or what is known about the classes of nodes.
pub(super) struct ProGap {
    labels: bool,
}

/// As published.
pub(super) const PUBLISHED: ProGap = ProGap { labels: false };
/// The same stages with label messages.
pub(super) const LABELS: ProGap = ProGap { labels: true };

pub(super) const SPEC: MethodSpec = MethodSpec {
    levels: &[Level::None, Level::Edge, Level::Node],
    what: "stages that aggregate the embeddings of the stage before, once each",
    protects: "training and predictions: edges from everyone, or each node's record from all others",
    paper: "Sajadmanesh and Gatica-Perez 2024, ProGAP",
    can: Capabilities {
        ranks: true,
        histograms: true,
        edge_weights: true,
        shares_stages: true,
        width_by_classes: true,
        depth: Some(DepthRule::ByBudget),
        ..Capabilities::PLAIN
    },
    own: &["layerwise"],
    unverifiable: &["layerwise"],
    ..MethodSpec::plain(MethodKind::Progap)
};

impl Method for ProGap {
    fn spec(&self) -> &'static MethodSpec {
        if self.labels { &progap_labels::SPEC } else { &SPEC }
    }

    /// Of label messages the same for every graph (docs/method.md): one aggregation at node level, where gradients cost
    /// budget too and need it less than the aggregate does.
    fn defaults(&self, level: Level) -> Defaults {
        let plain = Settings::plain(level);
        if !self.labels {
            return Defaults::published(plain);
        }
        let plain = Settings { method: MethodKind::ProgapLabels, ..plain };
        let recommended = match level {
            Level::None | Level::Edge => Settings { messages: Messages::Auto, weight_decay: 0.001, ..plain },
            Level::Node => Settings {
                messages: Messages::Labels,
                depth: 1,
                batch_size: 512,
                gradient_noise_ratio: 2.0,
                learning_rate: 0.02,
                ..plain
            },
        };
        Defaults { recommended, published: None }
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        match (self.labels, settings.messages) {
            (false, Messages::Embeddings) => Ok(()),
            (false, _) => Err(Error::contradiction("the method progap sends embeddings, as published")
                .remedy(Remedy::set("method", "progap-labels"))),
            (true, Messages::Structure | Messages::Features) => Err(Error::contradiction(
                "messages of structure and of features belong to the method progap-views",
            )
            .remedy(Remedy::set("messages", "auto"))
            .remedy(Remedy::set("messages", "labels"))),
            (true, Messages::Auto) if settings.level == Level::Node => Err(Error::contradiction(
                "validation labels are private at node level, so they cannot choose messages",
            )
            .remedy(Remedy::set("messages", "labels"))
            .remedy(Remedy::set("method", "progap"))),
            (true, _) => Ok(()),
        }
    }

    /// Stage `s` reads the features and the sums of the stages before.
    fn program(&self, settings: &Settings, sizes: PublicFacts, choice: Option<&Choice>) -> Program {
        let widths: Vec<usize> =
            (0..settings.depth).map(|index| width(settings, sizes.classes, choice, index)).collect();
        let of = match settings.messages {
            Messages::Embeddings => "embeddings",
            Messages::Auto => "class probabilities and embeddings",
            Messages::Labels | Messages::Structure | Messages::Features => CLASS_PROBABILITIES,
        };
        let stage = |at: usize| {
            let inputs = std::iter::once(sizes.columns).chain(widths[..at].iter().copied()).collect();
            let network = Architecture { normalise: true, ..architecture(settings, inputs, sizes.classes) };
            let sum = at.checked_sub(1).map(|index| QuerySpec::aggregation(settings, of, widths[index]));
            Stage::by_epochs(settings, Shape::Network(network)).after(sum)
        };
        let is_adaptive = settings.messages == Messages::Auto;
        Program { is_adaptive, ..Program::new(settings, (0..=settings.depth).map(stage)) }
    }

    fn choose(&self, settings: &Settings, history: &[EpochRecord], val_nodes: usize) -> Option<Choice> {
        choose(settings, history, val_nodes)
    }

    fn sent(&self, release: &Release, rows: &Rows, index: usize) -> Result<Option<Vec<f32>>> {
        let (settings, predictor) = (release.settings()?, release.predictor());
        match sent(settings, release.statement.choice.as_ref(), index) {
            // As the last model knows the classes; earlier stages knew them almost as well.
            Messages::Labels => {
                let network = predictor.last()?.model.network()?;
                rows.messages(Message::Class { network }, &predictor.aggregates).map(Some)
            }
            Messages::Embeddings | Messages::Auto | Messages::Structure | Messages::Features => {
                embeddings_sent(predictor, rows, index)
            }
        }
    }

    /// Embeddings changed with each stage, and a release has those of the last one.
    fn tells_messages(&self, release: &Release, index: usize) -> Result<bool> {
        Ok(sent(release.settings()?, release.statement.choice.as_ref(), index) == Messages::Labels)
    }

    fn fit(&self, mut trainer: Trainer<'_>) -> Result<Fitted> {
        let settings = trainer.settings;
        let mut aggregates = Aggregates::new();
        for stage in 0..=settings.depth {
            let choice = trainer.choice();
            if stage > 0 {
                let before = trainer.model(stage - 1)?.clone();
                let (network, branch) = (before.network()?, stage - 1);
                let message = match sent(settings, choice.as_ref(), stage - 1) {
                    Messages::Embeddings => Message::Embedding { network, branch },
                    Messages::Labels | Messages::Auto | Messages::Structure | Messages::Features => {
                        Message::Class { network }
                    }
                };
                trainer.aggregate(&mut aggregates, message, |_, _| ())?;
            }
            let begin = |trainer: &Trainer<'_>, mut model: Model| {
                if stage > 0 {
                    model.network_mut()?.copy_branches(trainer.model(stage - 1)?.network()?, stage)?;
                }
                Ok(model)
            };
            let ready = |model: &mut Model| {
                for branch in 0..stage {
                    model.network_mut()?.freeze(branch, settings.layerwise)?;
                }
                Ok(())
            };
            let mut objective = RowObjective::new(&trainer.vault, &aggregates);
            trainer.train(stage, begin, ready, &mut objective)?;
        }
        let released = trainer.choice().map_or(settings.depth, |choice| choice.stage);
        trainer.release_stage(released);
        aggregates.truncate(released);
        let objective = RowObjective::new(&trainer.vault, &aggregates);
        trainer.balance(released, &objective)?;
        let accuracies = trainer.evaluate(&objective)?;
        Fitted::new(trainer, vec![(released, rows_and_aggregates(released))], aggregates, accuracies)
    }
}

/// An aggregate of labels helps if it takes away at least this share of the validation errors,
const MIN_HELP: f64 = 0.05;
/// and if the accuracy grows by at least this many of its standard errors, which chance seldom does.
const MIN_ERRORS: f64 = 2.0;

/// The decision of a run by the validation accuracies of its stages, where the settings leave it to them.
///
/// # Proof definition
/// A function of noisy aggregates that left the vault before, and of features, labels and the split, which are public
/// at the levels that have it: post-processing. Whatever is chosen, the next query is one aggregation of messages of
/// length one with the noise of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The messages of each aggregate: labels first, and labels again if they helped, else embeddings.
    pub messages: Vec<Messages>,
    /// The stage whose model is released: the last one with the best accuracy, or the best by the metric that was asked
    /// for.
    pub stage: usize,
}

/// The choice that follows from what happened so far. What is not yet known has no part in what is done next.
fn choose(settings: &Settings, history: &[EpochRecord], val_nodes: usize) -> Option<Choice> {
    if settings.messages != Messages::Auto {
        return None;
    }
    if val_nodes == 0 {
        // Nothing tells how much labels help: all aggregates are of labels, and the last stage, which reads them all,
        // is kept.
        return Some(Choice { messages: vec![Messages::Labels; settings.depth], stage: settings.depth });
    }
    let accuracy = |stage: usize| {
        let epochs = history.iter().filter(|record| record.stage == stage);
        epochs.map(|record| record.val_accuracy).fold(f64::NAN, f64::max)
    };
    let (before, after) = (accuracy(0), accuracy(1));
    let standard_error = (before * (1.0 - before) / val_nodes as f64).sqrt();
    let helped = after - before >= (MIN_HELP * (1.0 - before)).max(MIN_ERRORS * standard_error);
    let later = if helped { Messages::Labels } else { Messages::Embeddings };
    let messages = (0..settings.depth).map(|index| if index == 0 { Messages::Labels } else { later });
    let merit = |stage: usize| {
        let epochs = history.iter().filter(|record| record.stage == stage);
        epochs.map(|record| record.merit(settings.metric)).fold(f64::NAN, f64::max)
    };
    let better = |best: usize, stage: usize| if merit(stage) >= merit(best) { stage } else { best };
    Some(Choice { messages: messages.collect(), stage: (0..=settings.depth).fold(0, better) })
}

/// The kind of messages sent for the aggregate of that index: as set, or as chosen.
fn sent(settings: &Settings, choice: Option<&Choice>, index: usize) -> Messages {
    match choice {
        Some(choice) => choice.messages.get(index).copied().unwrap_or(Messages::Labels),
        None => settings.messages,
    }
}

/// The width of the aggregate of that index; where it is still to be chosen, the largest that it can have.
fn width(settings: &Settings, classes: usize, choice: Option<&Choice>, index: usize) -> usize {
    match sent(settings, choice, index) {
        Messages::Embeddings => settings.hidden,
        Messages::Auto if index > 0 => classes.max(settings.hidden),
        Messages::Labels | Messages::Auto | Messages::Structure | Messages::Features => classes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Level;

    fn chosen_by(val_nodes: usize, accuracies: &[(usize, f64)], depth: usize) -> (Vec<Messages>, usize) {
        let settings = Settings { depth, ..Settings::of(crate::MethodKind::ProgapLabels, Level::Edge) };
        let record = |&(stage, val_accuracy): &(usize, f64)| EpochRecord {
            stage,
            epoch: 1,
            loss: None,
            train_accuracy: None,
            val_accuracy,
            val_score: None,
            stage_score: None,
        };
        let history: Vec<EpochRecord> = accuracies.iter().map(record).collect();
        let choice = choose(&settings, &history, val_nodes).expect("the default leaves it to the run");
        (choice.messages, choice.stage)
    }

    fn chosen(accuracies: &[(usize, f64)], depth: usize) -> (Vec<Messages>, usize) {
        chosen_by(1_000_000, accuracies, depth)
    }

    #[test]
    fn labels_are_sent_again_if_they_took_errors_away() {
        use Messages::{Embeddings, Labels};
        let helped = chosen(&[(0, 0.5), (0, 0.6), (1, 0.2), (1, 0.63), (2, 0.7), (3, 0.7)], 3);
        assert_eq!(helped, (vec![Labels, Labels, Labels], 3));
        let not = chosen(&[(0, 0.5), (0, 0.6), (1, 0.61), (1, 0.3)], 3).0;
        assert_eq!(not, [Labels, Embeddings, Embeddings]);
        assert_eq!(chosen(&[(0, 1.0), (1, 1.0)], 2).0, [Labels, Labels], "no error is left");
        // Results of later stages change nothing of what was sent before them.
        let late = chosen(&[(0, 0.5), (1, 0.5), (2, 0.9), (3, 0.8)], 3);
        assert_eq!(late, (vec![Labels, Embeddings, Embeddings], 2));
        assert_eq!(chosen(&[(0, 0.5), (1, 0.4)], 1), (vec![Labels], 0));
        // Of a hundred nodes ten points are two standard errors.
        assert_eq!(chosen_by(100, &[(0, 0.5), (1, 0.59)], 2).0, [Labels, Embeddings]);
        assert_eq!(chosen_by(100, &[(0, 0.5), (1, 0.61)], 2).0, [Labels, Labels]);
        assert_eq!(chosen(&[(0, 0.5)], 0), (vec![], 0));
        // Without validation nodes there is nothing to choose by.
        assert_eq!(chosen_by(0, &[(0, f64::NAN), (1, f64::NAN)], 2), (vec![Labels, Labels], 2));
    }
}
