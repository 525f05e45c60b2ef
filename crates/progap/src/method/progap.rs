//! ProGAP: stage `s` trains base networks 0 to `s` on the features and on the aggregates of the stages before, each
//! of which was asked for once and kept.
//!
//! Aggregated messages are embeddings, as published, or what is known about the classes of nodes (docs/method.md).

use progap_nn::Architecture;
use serde::{Deserialize, Serialize};

use super::catalogue::Entry;
use super::history::EpochRecord;
use super::objective::RowObjective;
use super::recipe::embeddings_sent;
use super::trainer::Trainer;
use super::{Batches, Fitted, Method, Recipe, SUMS_OF_CLASSES, architecture, rows_and_aggregates};
use crate::model::{Model, Shape};
use crate::plan::PublicSizes;
use crate::release::Release;
use crate::rows::Rows;
use crate::settings::{Level, Messages, Settings, Size, more_epochs};
use crate::vault::{Aggregates, Message};
use crate::{Error, Result};

/// The method.
pub(super) struct ProGap;

pub(crate) const ENTRY: Entry = Entry {
    method: Method::Progap,
    levels: &[Level::None, Level::Edge, Level::Node],
    what: "stages that aggregate what the stage before has learnt, once each",
    protects: "training and predictions: edges from everyone, or each node's record from all others",
    paper: "Sajadmanesh and Gatica-Perez 2024, ProGAP",
};

impl Recipe for ProGap {
    fn trains_on_ranks(&self) -> bool {
        true
    }

    /// The same for every graph (docs/method.md): label messages; one aggregation at node level, where gradients cost budget
    /// too and need it less than the aggregate does.
    fn defaults(&self, level: Level) -> Settings {
        let plain = Settings::plain(level);
        match level {
            Level::None | Level::Edge => Settings { messages: Messages::Auto, weight_decay: 0.001, ..plain },
            Level::Node => Settings {
                messages: Messages::Labels,
                depth: 1,
                batch_size: 512,
                gradient_noise_ratio: 2.0,
                learning_rate: 0.02,
                ..plain
            },
        }
    }

    fn summed(&self, settings: &Settings) -> &'static str {
        match settings.messages {
            Messages::Embeddings => "sums of neighbours' embeddings",
            Messages::Auto => "sums of neighbours' class probabilities and embeddings",
            Messages::Labels | Messages::Structure => SUMS_OF_CLASSES,
        }
    }

    /// At node level as many as the budget pays for (docs/method.md#few-labels).
    fn depth_for(&self, settings: &Settings, sizes: PublicSizes) -> Option<usize> {
        let by_labels = settings.level == Level::Node && settings.messages == Messages::Labels;
        by_labels.then(|| affordable_depth(settings.epsilon.unwrap_or(f64::INFINITY), sizes))
    }

    fn depth_follows_from(&self) -> &'static [Size] {
        &[Size::Nodes, Size::TrainNodes, Size::Columns, Size::Classes]
    }

    /// Where embeddings are sent, the width is that of noisy messages, too.
    fn learns_classes(&self, settings: &Settings) -> bool {
        settings.messages != Messages::Embeddings || settings.depth == 0
    }

    /// Features alone, rich ones beside sums, and two classes under much noise gain more by less noise of a step than by more steps; the first
    /// and the last gain by more epochs too.
    fn batches(&self, settings: &Settings, sizes: PublicSizes) -> Batches {
        let (alone, rich) = (settings.depth == 0, sizes.columns > RICH_FEATURES);
        let small_budget = settings.epsilon.is_some_and(|epsilon| epsilon < LARGE_EPSILON);
        let two_classes = sizes.classes == 2 && small_budget && !alone && !rich;
        let least = if alone || two_classes { 2 * settings.epochs } else { settings.epochs };
        Batches {
            of_few: if alone || rich || two_classes { 4 } else { 16 },
            largest: if two_classes { 2 * settings.batch_size } else { settings.batch_size },
            epochs: more_epochs(settings.epochs, sizes.train_nodes).max(least),
        }
    }

    fn published(&self, level: Level) -> Settings {
        Settings::plain(level)
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        if settings.messages == Messages::Structure {
            return Err(Error::Contradiction(
                "`messages structure` belongs to `method views`: use `messages auto`, `messages labels` or `messages embeddings`",
            ));
        }
        match settings.level == Level::Node && settings.messages == Messages::Auto {
            false => Ok(()),
            true => Err(Error::Contradiction(
                "validation labels are private at node level, so they cannot choose messages: give `messages labels` \
                 or `messages embeddings`",
            )),
        }
    }

    fn own_settings(&self) -> &'static [&'static str] {
        &["messages", "layerwise"]
    }

    fn without_trace(&self, settings: &Settings, classes: usize) -> Vec<&'static str> {
        // Messages show in the widths of aggregates, or in what was chosen.
        let told = settings.messages == Messages::Auto || (settings.hidden != classes && settings.depth > 0);
        if told { vec!["layerwise"] } else { vec!["layerwise", "messages"] }
    }

    fn stages(&self, settings: &Settings) -> usize {
        settings.depth + 1
    }

    fn takes_counts(&self) -> bool {
        true
    }

    fn aggregations(&self, settings: &Settings) -> usize {
        settings.depth
    }

    fn reads_weights(&self) -> bool {
        true
    }

    fn shape(
        &self,
        settings: &Settings,
        (columns, classes): (usize, usize),
        stage: usize,
        choice: Option<&Choice>,
    ) -> Shape {
        let aggregates = (0..stage).map(|index| width(settings, classes, choice, index));
        let inputs = std::iter::once(columns).chain(aggregates).collect();
        Shape::Network(Architecture { normalise: true, ..architecture(settings, inputs, classes) })
    }

    fn aggregate_widths(
        &self,
        settings: &Settings,
        (_, classes): (usize, usize),
        choice: Option<&Choice>,
    ) -> Vec<usize> {
        (0..settings.depth).map(|index| width(settings, classes, choice, index)).collect()
    }

    fn choose(&self, settings: &Settings, history: &[EpochRecord], val_nodes: usize) -> Option<Choice> {
        choose(settings, history, val_nodes)
    }

    fn leaves_a_choice(&self, settings: &Settings) -> bool {
        settings.messages == Messages::Auto
    }

    fn sent(&self, release: &Release, rows: &Rows, index: usize) -> Result<Option<Vec<f32>>> {
        let (settings, predictor) = (release.settings()?, release.predictor());
        match sent(settings, release.statement.choice.as_ref(), index) {
            // As the last model knows the classes; earlier stages knew them almost as well.
            Messages::Labels => {
                let network = predictor.last()?.model.network()?;
                rows.messages(Message::Class { network }, &predictor.aggregates).map(Some)
            }
            Messages::Embeddings | Messages::Auto | Messages::Structure => {
                embeddings_sent(predictor, rows, index)
            }
        }
    }

    fn shares_stages(&self) -> bool {
        true
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
                    Messages::Labels | Messages::Auto | Messages::Structure => Message::Class { network },
                };
                trainer.aggregate(&mut aggregates, message, |_, _| ())?;
            }
            let begin = |trainer: &Trainer<'_>| {
                let mut model = Model::new(
                    self.shape(settings, trainer.shape, stage, choice.as_ref()),
                    trainer.stage_seed(stage),
                )?;
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

/// Features with more columns say much by themselves, and a fit over them needs what a small budget has.
const RICH_FEATURES: usize = 600;
/// More classes need wide networks.
const MANY_CLASSES: usize = 16;
/// The share of training nodes, and their number, with which sums begin to tell more than they cost at an epsilon of 1.
const SHARE_FOR_SUMS: f64 = 0.36;
const NODES_FOR_SUMS: f64 = 1200.0;
/// From this epsilon on a budget pays for more than one thing.
const LARGE_EPSILON: f64 = 6.0;

/// The aggregations that a budget pays for at node level beside the training after each: two where it is large. With rich features, with few
/// training nodes, or with few of each of many classes, a small one does more for a fit of the features alone.
fn affordable_depth(epsilon: f64, sizes: PublicSizes) -> usize {
    let means = epsilon * sizes.train_nodes as f64;
    let of_a_class = means / sizes.classes.max(1) as f64;
    let many_classes = sizes.classes > MANY_CLASSES;
    if sizes.columns > RICH_FEATURES {
        return usize::from(
            epsilon >= LARGE_EPSILON && means >= 16_000.0 && (!many_classes || of_a_class >= 640.0),
        );
    }
    match epsilon >= LARGE_EPSILON {
        _ if !sums_tell(epsilon, sizes) => 0,
        _ if many_classes && of_a_class < 640.0 => 0,
        true if !many_classes || of_a_class >= 2560.0 => 2,
        _ => 1,
    }
}

/// Whether enough neighbours have a label, and enough nodes learn from them, for sums to tell more than they cost: both numbers fall with
/// epsilon to the power of 1.5 (docs/method.md#few-labels-small-budget).
fn sums_tell(epsilon: f64, sizes: PublicSizes) -> bool {
    let (power, learners) = (epsilon.powf(1.5), sizes.train_nodes as f64);
    let share = learners / sizes.nodes.max(sizes.train_nodes).max(1) as f64;
    power * share >= SHARE_FOR_SUMS && power * learners >= NODES_FOR_SUMS
}

/// An aggregate of labels helps if it takes away at least this share of the validation errors,
const LEAST_HELP: f64 = 0.05;
/// and if the accuracy grows by at least this many of its standard errors, which chance seldom does.
const LEAST_ERRORS: f64 = 2.0;

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
    /// The stage whose model is released: the last one with the best accuracy, or the best by the metric that was asked for.
    pub stage: usize,
}

/// The choice that follows from what happened so far. What is not yet known has no part in what is done next.
fn choose(settings: &Settings, history: &[EpochRecord], val_nodes: usize) -> Option<Choice> {
    if settings.messages != Messages::Auto {
        return None;
    }
    if val_nodes == 0 {
        // Nothing tells how much labels help: all aggregates are of labels, and the last stage, which reads them all, is kept.
        return Some(Choice { messages: vec![Messages::Labels; settings.depth], stage: settings.depth });
    }
    let accuracy = |stage: usize| {
        let epochs = history.iter().filter(|record| record.stage == stage);
        epochs.map(|record| record.val_accuracy).fold(f64::NAN, f64::max)
    };
    let (before, after) = (accuracy(0), accuracy(1));
    let standard_error = (before * (1.0 - before) / val_nodes as f64).sqrt();
    let helped = after - before >= (LEAST_HELP * (1.0 - before)).max(LEAST_ERRORS * standard_error);
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

/// The width of the aggregate of that index.
fn width(settings: &Settings, classes: usize, choice: Option<&Choice>, index: usize) -> usize {
    match sent(settings, choice, index) {
        Messages::Embeddings => settings.hidden,
        Messages::Labels | Messages::Auto | Messages::Structure => classes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Level;

    fn chosen_by(val_nodes: usize, accuracies: &[(usize, f64)], depth: usize) -> (Vec<Messages>, usize) {
        let settings = Settings { depth, ..Settings::of(crate::Method::Progap, Level::Edge) };
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
    fn budgets_pay_for_as_many_aggregations_as_sizes_say() {
        let depth = |epsilon: f64, nodes: usize, columns: usize, classes: usize| {
            let sizes =
                PublicSizes { train_nodes: 3 * nodes / 4, nodes, columns, classes, ..PublicSizes::default() };
            affordable_depth(epsilon, sizes)
        };
        // Berkeley13, Reed98: few columns.
        assert_eq!([2.0, 8.0].map(|epsilon| depth(epsilon, 18_939, 437, 6)), [1, 2]);
        assert_eq!([2.0, 8.0].map(|epsilon| depth(epsilon, 780, 200, 5)), [1, 2]);
        assert_eq!([1500, 1700].map(|nodes| depth(1.0, nodes, 200, 5)), [0, 1]);
        // Few labels.
        let labelled = |epsilon: f64, percent: usize| {
            let train_nodes = percent * 15_348 / 100;
            let sizes = PublicSizes {
                train_nodes,
                nodes: 15_348,
                columns: 437,
                classes: 6,
                ..PublicSizes::default()
            };
            affordable_depth(epsilon, sizes)
        };
        assert_eq!([5, 12, 13, 20].map(|percent| labelled(2.0, percent)), [0, 0, 1, 1]);
        assert_eq!([1, 2].map(|percent| labelled(8.0, percent)), [0, 2]);
        // cora, amazon_computers: many.
        assert_eq!([2.0, 6.0, 8.0].map(|epsilon| depth(epsilon, 2708, 1433, 7)), [0, 0, 1]);
        assert_eq!([2.0, 4.0, 6.0].map(|epsilon| depth(epsilon, 13_752, 767, 10)), [0, 0, 1]);
        // 100 classes of 60 training nodes, 40 of 112, and 100 of many.
        assert_eq!((depth(8.0, 8000, 40, 100), depth(8.0, 6000, 24, 40)), (0, 1));
        assert_eq!(depth(8.0, 1_000_000, 40, 100), 2);
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
