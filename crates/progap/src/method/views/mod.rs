//! Two views (docs/views.md): what the features say of a class is learnt on the labelled nodes, what the noisy sums say on **all**
//! nodes with the features as a teacher, and a small combination weighs one against the other. Its probabilities are the messages of
//! the next aggregation.
//!
//! | file | what it does |
//! |---|---|
//! | `features.rs` | the features alone: regularised, out of fold on training nodes |
//! | `stage.rs` | the view of the sums, and its combination with the features |
//! | `combination.rs` | weights on what is said of a class, and how free they are |
//! | `messages.rs` | what nodes send, and whether labels tell anything |
//! | `roles.rs` | who teaches, who judges |
//! | `evaluate.rs` | how good a stage is, and whether that may be chance |
//! | `depth.rs` | how often, by public sizes |

mod combination;
mod depth;
mod evaluate;
mod features;
mod messages;
mod near;
mod roles;
mod stage;
mod taught;

use std::ops::Range;

use progap_graph::{Dataset, Features, Part};

use self::messages::Speaker;
use self::roles::{Folds, Roles};
use self::stage::Stage;
use super::catalogue::Entry;
use super::history::{EpochRecord, StageScore};
use super::trainer::{FittedStage, Trainer};
use super::{Choice, Fitted, Method, Recipe, SUMS_OF_CLASSES, rows_and_aggregates};
use crate::assessment::Metric;
use crate::model::{Model, Shape};
use crate::plan::PublicSizes;
use crate::release::Release;
use crate::rows::Rows;
use crate::settings::{Level, Messages, Settings, Size};
use crate::vault::{Aggregates, Maker, Message};
use crate::views::{Block, Views, ViewsShape};
use crate::{Error, Result};

/// The method.
pub(super) struct TwoViews;

pub(crate) const ENTRY: Entry = Entry {
    method: Method::Views,
    levels: &[Level::None, Level::Edge],
    what: "features and noisy sums as two views of a node, fitted stage by stage; made for few labels",
    protects: "training and predictions: edges from everyone",
    paper: "Blum and Mitchell 1998, Combining labeled and unlabeled data with co-training",
};

/// Parts into which training nodes are divided, each of which is seen by a model that was fitted without it.
const FOLDS: usize = 5;
/// The most rows that anything is fitted to. More would not change what is learnt by much, and take more time and memory than the graph; a
/// sample costs no privacy, as rows are public here.
const MOST_FITTED: usize = 1 << 17;

/// Training nodes from which on less is tried where there is no noise: what is learnt is the same, and takes a third of the time.
const MANY_LABELS: usize = 8192;

impl Recipe for TwoViews {
    fn defaults(&self, level: Level) -> Settings {
        let (messages, metric) = (Messages::Auto, Metric::LogLoss);
        let plain = Settings { method: Method::Views, messages, metric, ..Settings::plain(level) };
        match level {
            Level::Edge | Level::Node => Settings { depth: 3, hidden: 8, ..plain },
            Level::None => Settings { depth: 5, hidden: 16, ..plain },
        }
    }

    fn is_published(&self) -> bool {
        false
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        match settings.messages {
            Messages::Embeddings => Err(Error::Contradiction(
                "the method views has no embeddings to send: use `messages auto`, or `method progap`",
            )),
            Messages::Auto | Messages::Labels | Messages::Structure => Ok(()),
        }
    }

    fn summed(&self, _: &Settings) -> &'static str {
        SUMS_OF_CLASSES
    }

    /// Which stage would be best by another metric is not told where its labels are not.
    fn without_trace(&self, _: &Settings, _: usize) -> Vec<&'static str> {
        vec!["metric"]
    }

    fn own_settings(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn ignored_settings(&self) -> &'static [&'static str] {
        &[
            "layers",
            "activation",
            "jk",
            "dropout",
            "learning_rate",
            "weight_decay",
            "epochs",
            "patience",
            "selection",
        ]
    }

    fn depth_for(&self, settings: &Settings, sizes: PublicSizes) -> Option<usize> {
        Some(depth::by_sizes(settings.level, settings.epsilon, sizes))
    }

    fn depth_follows_from(&self) -> &'static [Size] {
        &[Size::Nodes, Size::TrainNodes]
    }

    /// Every fit goes to its optimum at once.
    fn epochs(&self, _: &Settings) -> usize {
        1
    }

    fn stages(&self, settings: &Settings) -> usize {
        settings.depth + 1
    }

    fn aggregations(&self, settings: &Settings) -> usize {
        settings.depth * settings.direction.ways()
    }

    fn hears_both_ways(&self) -> bool {
        true
    }

    fn reads_weights(&self) -> bool {
        true
    }

    fn shape(
        &self,
        settings: &Settings,
        (columns, classes): (usize, usize),
        stage: usize,
        _: Option<&Choice>,
    ) -> Shape {
        Shape::Views(shape(settings, (columns, classes), stage))
    }

    /// A number for each class, and a constant.
    fn aggregate_widths(
        &self,
        settings: &Settings,
        (_, classes): (usize, usize),
        _: Option<&Choice>,
    ) -> Vec<usize> {
        vec![classes + 1; settings.depth * settings.direction.ways()]
    }

    fn widest(&self, settings: &Settings, classes: usize) -> usize {
        settings.hidden.max(classes + 1)
    }

    fn most_parameters(&self, settings: &Settings, sizes: PublicSizes) -> u64 {
        let shape = shape(settings, (sizes.columns, sizes.classes.max(1)), settings.depth);
        shape.parameter_count().map_or(u64::MAX, |count| count as u64)
    }

    fn choose(&self, settings: &Settings, history: &[EpochRecord], _: usize) -> Option<Choice> {
        Some(choose(settings, history))
    }

    fn leaves_a_choice(&self, _: &Settings) -> bool {
        true
    }

    fn selects_stages(&self) -> bool {
        true
    }

    fn sent(&self, release: &Release, rows: &Rows, index: usize) -> Result<Option<Vec<f32>>> {
        let predictor = release.predictor();
        let choice = release.statement.choice.as_ref();
        let ways = release.settings()?.direction.ways();
        let structure =
            choice.and_then(|choice| choice.messages.get(index / ways)) == Some(&Messages::Structure);
        let before = index.checked_sub(ways).and_then(|before| predictor.aggregates.get(before));
        Ok(Some(match before.filter(|_| structure) {
            Some(before) => {
                let unit = Block::of(&before.values, rows.classes()).scale();
                messages::structure(&before.values, unit, rows.classes())
            }
            // As the last model knows the classes; earlier stages knew them almost as well.
            None => {
                let everyone: Vec<u32> = (0..rows.labels().len() as u32).collect();
                let known = predictor.probabilities(rows, &everyone)?;
                messages::labels(&known, rows.labels(), &rows.training_nodes(), rows.classes())
            }
        }))
    }

    /// Where rows are compared, all of them teach.
    fn reads_all_rows(&self, dataset: &Dataset) -> bool {
        match dataset.features() {
            Features::Sparse { indices, .. } => near::are_compared(dataset.nodes(), indices.len()),
            _ => false,
        }
    }

    fn most_fitted(&self) -> usize {
        MOST_FITTED
    }

    fn fit(&self, mut trainer: Trainer<'_>) -> Result<Fitted> {
        let settings = trainer.settings;
        let rows = &trainer.vault.need_public_rows()?.clone();
        let roles = Roles::new(rows, trainer.seed);
        // Fitted again where a run is resumed: it is a function of public rows, to the last bit.
        let features = taught::fit(rows, &roles)?;
        // Of a class that is rarer by a factor the odds are larger by it, as if all were equally frequent (Menon et al. 2021, Long-tail
        // learning via logit adjustment).
        let weights = trainer.vault.class_weights();
        let odds: Option<Vec<f32>> = weights.map(|weights| weights.into_iter().map(f32::ln).collect());
        let mut aggregates = Aggregates::new();
        let mut speaker: Option<Speaker> = None;
        // Along the edges, and perhaps against them: each way is a query of its own.
        let ways = settings.direction.ways();
        for at in 0..=settings.depth {
            for way in (0..ways).filter(|_| at > 0) {
                let Speaker { stage: knows, .. } =
                    speaker.ok_or(Error::Internal("no stage knows anything yet"))?;
                let width = rows.classes() + 1;
                let so_far = aggregates.clone();
                let structure = sent(settings, trainer.choice().as_ref(), at - 1) == Messages::Structure;
                let before = structure.then(|| &so_far[(at - 2) * ways + way]);
                let unit = before.map_or(1.0, |before| Block::of(&before.values, rows.classes()).scale());
                let model = trainer.model(knows)?.views()?.clone();
                let make = |nodes: Range<usize>| match before {
                    Some(before) => {
                        let values = &before.values[nodes.start * width..nodes.end * width];
                        Ok(messages::structure(values, unit, rows.classes()))
                    }
                    None => {
                        let block: Vec<u32> = (nodes.start as u32..nodes.end as u32).collect();
                        let known = model.probabilities(&rows.inputs(&so_far[..knows * ways])?, &block)?;
                        let (labels, is_train) = (&rows.labels()[nodes.clone()], &roles.is_train[nodes]);
                        Ok(messages::labels(&known, labels, is_train, rows.classes()))
                    }
                };
                let message = Message::Made { maker: Maker(&make), width, back: way == 1 };
                trainer.aggregate(&mut aggregates, message, |_, _| ())?;
            }
            let accuracy =
                |model: &Model, part: Part| accuracy(model.views()?, rows, &aggregates[..at * ways], part);
            let shape = shape(settings, trainer.shape, at);
            trainer.fit(at, &accuracy, |trainer| match at {
                0 => {
                    let model = Views::new(shape, features.model.clone(), None).with_odds(odds.as_deref());
                    let score = evaluate::score(settings.metric, &model, &rows.inputs(&[])?, (rows, &roles))?;
                    let log_loss = evaluate::mean(&features.log_losses(rows, &roles)?);
                    let stage_score = StageScore { log_loss, score, doubt: None, alike: None };
                    Ok(FittedStage { model: Model::Views(model), stage_score })
                }
                _ => {
                    let seed = trainer.stage_seed(at);
                    let (roles, features) = (&roles, &features);
                    let stage = Stage { shape: &shape, rows, roles, features, aggregates: &aggregates, seed };
                    let (graph, log_losses) = stage.fit()?;
                    let noise = trainer.plan.aggregate_multiplier * trainer.plan.sensitivity;
                    let alike = match at {
                        1 => messages::most_alike(&aggregates, rows, (roles, features), noise)?,
                        _ => None,
                    };
                    let model = Views::new(shape, features.model.clone(), Some(graph));
                    let inputs = rows.inputs(&aggregates)?;
                    let model = model.with_odds(odds.as_deref());
                    let score = evaluate::score(settings.metric, &model, &inputs, (rows, roles))?;
                    let doubt = Some(evaluate::doubt(&log_losses, &features.log_losses(rows, roles)?));
                    let stage_score =
                        StageScore { log_loss: evaluate::mean(&log_losses), score, doubt, alike };
                    Ok(FittedStage { model: Model::Views(model), stage_score })
                }
            })?;
            let stage_score = trainer.stage_score(at)?;
            // The output of the last stage is sent nowhere.
            if at < settings.depth {
                speaker =
                    Some(speaker.map_or(Speaker::new(at, stage_score), |before| before.or(at, stage_score)));
            }
        }
        let released = trainer.choice().map_or(settings.depth, |choice| choice.stage);
        trainer.release_stage(released);
        aggregates.truncate(released * ways);
        let accuracies =
            trainer.accuracies(&|model, part| accuracy(model.views()?, rows, &aggregates, part))?;
        Fitted::new(trainer, vec![(released, rows_and_aggregates(released * ways))], aggregates, accuracies)
    }
}

fn shape(settings: &Settings, (columns, classes): (usize, usize), stage: usize) -> ViewsShape {
    ViewsShape {
        columns,
        classes,
        hidden: settings.hidden,
        aggregates: stage * settings.direction.ways(),
        // Under noise the length of a row says how much of it is noise.
        directions: settings.level == Level::None,
    }
}

/// Below this the classes of neighbours are hardly more alike than chance would have it.
const LEAST_ALIKE: f64 = 0.15;

/// A stage has to be better than the features by this many standard errors. With two, few nodes held out would keep good stages back.
const LEAST_ERRORS: f64 = 1.0;

/// The choice that follows from what happened so far: structure is sent where labels tell nothing, and the model is that of the
/// stage with the lowest log loss on nodes that judge, the last of equals, or the best by the metric that was asked for. A stage that
/// knows the graph has to be better than the features by more than chance makes it.
///
/// # Proof definition
/// A function of noisy sums that left the vault before, and of features, labels and the split, which are public at the levels that have
/// it: post-processing. Whatever is chosen, the next query is one aggregation of messages of length one at most with the noise of
/// the plan, and their number is fixed before the first.
fn choose(settings: &Settings, history: &[EpochRecord]) -> Choice {
    let stage_score = |stage: usize| {
        history.iter().find(|record| record.stage == stage).and_then(|record| record.stage_score)
    };
    let alike = stage_score(1).and_then(|found| found.alike);
    let later = match settings.messages {
        Messages::Auto if alike.is_some_and(|alike| alike < LEAST_ALIKE) => Messages::Structure,
        Messages::Structure => Messages::Structure,
        _ => Messages::Labels,
    };
    let messages = (0..settings.depth).map(|index| if index == 0 { Messages::Labels } else { later });
    let loss = |stage: usize| stage_score(stage).map_or(f64::INFINITY, |found| found.log_loss);
    let is_chance = |stage: usize| {
        let doubt = stage_score(stage).and_then(|found| found.doubt);
        doubt.is_some_and(|doubt| loss(0) - loss(stage) <= LEAST_ERRORS * doubt)
    };
    let by_metric =
        (0..=settings.depth).all(|stage| stage_score(stage).is_some_and(|found| found.score.is_some()));
    let merit = |stage: usize| match stage_score(stage).and_then(|found| found.score).filter(|_| by_metric) {
        Some(score) => settings.metric.oriented(score),
        None => -loss(stage),
    };
    let better = |best: usize, stage: usize| {
        if merit(stage) >= merit(best) && !is_chance(stage) { stage } else { best }
    };
    Choice { messages: messages.collect(), stage: (0..=settings.depth).fold(0, better) }
}

/// The kind of messages sent for the aggregate of that index.
fn sent(settings: &Settings, choice: Option<&Choice>, index: usize) -> Messages {
    choice.and_then(|choice| choice.messages.get(index).copied()).unwrap_or(settings.messages)
}

/// The accuracy on a part of the nodes, whose rows and labels are public; of no nodes it is not a number.
fn accuracy(model: &Views, rows: &Rows, aggregates: &[crate::vault::Aggregate], part: Part) -> Result<f64> {
    let nodes = rows.nodes(part);
    if nodes.is_empty() {
        return Ok(f64::NAN);
    }
    let known = model.probabilities(&rows.inputs(aggregates)?, &nodes)?;
    let right = |(row, &node): (&[f32], &u32)| {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        row.iter().position(|&p| p == largest) == Some(rows.labels()[node as usize] as usize)
    };
    let hits = known.chunks_exact(rows.classes()).zip(&nodes).filter(|&pair| right(pair)).count();
    Ok(hits as f64 / nodes.len() as f64)
}
