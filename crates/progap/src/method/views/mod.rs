//! Two views (docs/method.md#views): what the features say of a class, and what noisy sums of messages say, learnt
//! apart and weighed against one another.
//!
//! ```text
//! known = log p(y | x)                                   the features model, on nodes with a label
//! for k = 1..K:
//!     S_k   = A M_k + noise                              M_k from rows and from S_1..S_{k-1}, each row of norm one at most
//!     seen  = log g_k(y | S_1..S_k)                      on all nodes, with the features as evidence
//!     log p = combination_k(known, seen, S_1..S_k, x)    on nodes with a label
//! the released stage has the lowest log loss on nodes that were not fitted to
//! ```
//!
//! | file | step |
//! |---|---|
//! | `features.rs`, `distilled.rs`, `knn.rs` | the features model; where rows are sparse on nodes without a label, too |
//! | `stage.rs` | the view of the sums, and its combination with the features |
//! | `candidates.rs` | models of a table: linear, perceptron, boosted trees |
//! | `messages.rs` | what nodes send: labels, structure, features |
//! | `focus.rs` | which columns the next message of features is about |
//! | `similarity.rs` | how similar the classes of neighbours are |
//! | `selection.rs` | what is sent next, which stage is released |
//! | `splits.rs` | nodes that are fitted to, nodes that choose |

mod candidates;
mod distilled;
mod features;
mod focus;
mod knn;
mod messages;
mod selection;
mod similarity;
mod splits;
mod stage;

use std::ops::Range;

use progap_graph::{Dataset, Features, Part};

pub(crate) use self::candidates::is_table;
use self::candidates::mean;
use self::features::Features as FeaturesModel;
use self::messages::{FeatureMap, feature_width};
use self::selection::SourceStage;
use self::splits::Splits;
use self::stage::Stage;
use super::history::{EpochRecord, StageScore};
use super::progap::LABELS;
use super::trainer::{FittedStage, Trainer};
use super::{
    CLASS_PROBABILITIES, Capabilities, Choice, Defaults, DepthRule, Fitted, Method, MethodKind, MethodSpec,
    Program, QuerySpec, Training, addressed, rows_and_aggregates,
};
use crate::assessment::Metric;
use crate::model::{Model, Shape};
use crate::plan::PublicFacts;
use crate::release::Release;
use crate::rows::Rows;
use crate::settings::{Level, MANY_LABELS, Messages, Settings};
use crate::vault::{Aggregate, Aggregates, Maker, Message, ReceiverWeights};
use crate::views::{Block, SumShape, Views, ViewsShape};
use crate::{Error, Remedy, Result};

/// The method.
pub(super) struct TwoViews;

const SPEC: MethodSpec = MethodSpec {
    levels: &[Level::None, Level::Edge, Level::Node],
    what: "features and noisy sums as two views of a node, fitted stage by stage; made for few labels",
    protects: "training and predictions: edges from everyone, or each node's record from all others",
    paper: "Blum and Mitchell 1998, Combining labeled and unlabeled data with co-training",
    can: Capabilities {
        both_directions: true,
        edge_weights: true,
        selects_stages: true,
        histograms: true,
        depth: Some(DepthRule::ByShareOfLabels),
        ..Capabilities::PLAIN
    },
    own: &["messages", "feature_learning", "known_weight"],
    ignored: &[
        "layers",
        "activation",
        "jk",
        "dropout",
        "learning_rate",
        "weight_decay",
        "epochs",
        "patience",
        "selection",
    ],
    // Which stage would be best by another metric is not told where its labels are not.
    unverifiable: &["metric"],
    ..MethodSpec::plain(MethodKind::ProgapViews)
};

/// Parts into which training nodes are divided, each of which is seen by a model that was fitted without it.
const FOLDS: usize = 5;
/// The most rows that anything is fitted to. More would not change what is learnt by much, and take more time and
/// memory than the graph; a sample costs no privacy, as rows are public here.
const MOST_FITTED: usize = 1 << 17;

impl Method for TwoViews {
    fn spec(&self) -> &'static MethodSpec {
        &SPEC
    }

    fn defaults(&self, level: Level) -> Defaults {
        if level == Level::Node {
            return Defaults { recommended: addressed::defaults(), published: None };
        }
        let (messages, metric) = (Messages::Auto, Metric::LogLoss);
        let plain = Settings { method: MethodKind::ProgapViews, messages, metric, ..Settings::plain(level) };
        let recommended = match level {
            Level::Edge | Level::Node => Settings { depth: 3, hidden: 8, known_weight: 1.0, ..plain },
            Level::None => Settings { depth: 5, hidden: 16, ..plain },
        };
        Defaults { recommended, published: None }
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        if settings.level == Level::Node {
            return addressed::check(settings);
        }
        match settings.messages {
            Messages::Embeddings => {
                Err(Error::contradiction("the method progap-views has no embeddings to send")
                    .remedy(Remedy::set("messages", "auto"))
                    .remedy(Remedy::set("method", "progap")))
            }
            Messages::Auto | Messages::Labels | Messages::Structure | Messages::Features => Ok(()),
        }
    }

    /// The features alone, then with the sums of one aggregation more in each stage, one for each way of the edges.
    /// Every fit goes to its optimum at once.
    fn program(&self, settings: &Settings, sizes: PublicFacts, choice: Option<&Choice>) -> Program {
        match settings.level {
            Level::Node if settings.weighs_receivers() => return addressed::program(settings, sizes),
            Level::Node => return LABELS.program(settings, sizes, choice),
            Level::None | Level::Edge => {}
        }
        let (ways, sizes) = (settings.direction.ways(), (sizes.columns, sizes.classes));
        let shape = |at: usize| shape(settings, sizes, at, choice);
        let of = |sum: &SumShape| match (sum.classes > 0, sum.features > 0) {
            (true, false) => CLASS_PROBABILITIES,
            (false, _) => "features",
            (true, true) => "class probabilities and features",
        };
        let query = |sum: &SumShape| QuerySpec::aggregation(settings, of(sum), sum.width());
        let stage = |at: usize| {
            let shape = shape(at);
            let new = shape.sums.len().saturating_sub(if at == 0 { 0 } else { ways });
            super::Stage {
                queries: shape.sums[new..].iter().map(query).collect(),
                model: Shape::Views(shape),
                training: Training::AtOnce { max_rows: MOST_FITTED, reads_all_rows },
            }
        };
        Program { is_adaptive: true, ..Program::new(settings, (0..=settings.depth).map(stage)) }
    }

    fn choose(&self, settings: &Settings, history: &[EpochRecord], _: usize) -> Option<Choice> {
        (settings.level != Level::Node).then(|| selection::choose(settings, history))
    }

    fn sent(&self, release: &Release, rows: &Rows, index: usize) -> Result<Option<Vec<f32>>> {
        let settings = release.settings()?;
        match settings.level {
            Level::Node if settings.weighs_receivers() => return addressed::sent(release, rows, index),
            Level::Node => return LABELS.sent(release, rows, index),
            Level::None | Level::Edge => {}
        }
        let (predictor, settings) = (release.predictor(), release.settings()?);
        let (choice, sizes) =
            (release.statement.choice.as_ref(), (rows.own()?.as_slice()[0].columns(), rows.classes()));
        let ways = settings.direction.ways();
        let shapes = sums(settings, sizes, settings.depth, choice);
        let Some(&sum) = shapes.get(index) else { return Ok(None) };
        let splits = Splits::new(rows, settings.level, 0);
        let everyone = 0..rows.labels().len();
        // Which columns counted in the features that were sent last is not told by a release: all alike.
        let map = || FeatureMap::of(rows, &splits, settings.level, vec![]);
        if sum.classes == 0 {
            return map()?.messages(&rows.own()?, everyone).map(Some);
        }
        let earlier = &predictor.aggregates[..predictor.aggregates.len().min(index)];
        let before = last_labels(&shapes, index, ways).and_then(|at| Some((earlier.get(at)?, shapes[at])));
        let labels = match before.filter(|_| kind(choice, index / ways) == Messages::Structure) {
            Some((before, sum)) => {
                messages::structure(&before.values, Block::of(&before.values, sum).scale(), sum)
            }
            // As the last model knows the classes; earlier stages knew them almost as well.
            None => {
                let known = predictor
                    .probabilities(rows, &everyone.clone().map(|node| node as u32).collect::<Vec<_>>())?;
                messages::labels(&known, rows.labels(), &rows.training_nodes(), rows.classes())
            }
        };
        if sum.features == 0 {
            return Ok(Some(labels));
        }
        let features = match index < ways {
            true => map()?.features(&rows.own()?, everyone.clone())?,
            false => {
                let Some(before) = earlier.get(index - ways) else { return Ok(None) };
                let received = messages::received(&before.values, shapes[index - ways]);
                let norm = messages::largest_norm(&received, sum.features).max(f32::MIN_POSITIVE);
                received.into_iter().map(|value| value / norm).collect()
            }
        };
        Ok(Some(messages::side_by_side(&labels, &features, everyone.len())))
    }

    /// Where columns were weighed for the latest sums of features, the weights are not in a release.
    fn tells_messages(&self, release: &Release, index: usize) -> Result<bool> {
        let settings = release.settings()?;
        let sizes = (release.statement.feature_columns, release.nodes().classes());
        let shapes = sums(settings, sizes, settings.depth, release.statement.choice.as_ref());
        let ways = settings.direction.ways();
        let before = shapes.get(..index / ways * ways).unwrap_or_default();
        let is_of_features = shapes.get(index).is_some_and(|sum| sum.classes == 0);
        Ok(settings.level == Level::Edge && !(is_of_features && before.iter().any(|sum| sum.classes == 0)))
    }

    fn fit(&self, mut trainer: Trainer<'_>) -> Result<Fitted> {
        let settings = trainer.settings;
        match settings.level {
            Level::Node if settings.weighs_receivers() => return addressed::fit(trainer),
            Level::Node => return LABELS.fit(trainer),
            Level::None | Level::Edge => {}
        }
        let rows = &trainer.vault.need_public_rows()?.clone();
        let splits = Splits::new(rows, settings.level, trainer.seed);
        // Fitted again where a run is resumed: it is a function of public rows, to the last bit.
        let features = distilled::fit(rows, &splits)?.or_more_than_linear(rows, &splits)?;
        // Of a class that is rarer by a factor the odds are larger by it, as if all were equally frequent (Menon et al.
        // 2021, Long-tail learning via logit adjustment).
        let weights = trainer.vault.class_weights();
        let odds: Option<Vec<f32>> = weights.map(|weights| weights.into_iter().map(f32::ln).collect());
        let mut aggregates = Aggregates::new();
        let mut source: Option<SourceStage> = None;
        // Along the edges, and perhaps against them: each way is a query of its own.
        let ways = settings.direction.ways();
        let pairs = settings.weighs_pairs().then(|| pair_weights(settings, &splits));
        for at in 0..=settings.depth {
            for way in (0..ways).filter(|_| at > 0) {
                let SourceStage { stage: knows, .. } =
                    source.ok_or(Error::internal("no stage knows anything yet"))?;
                let choice = trainer.choice();
                let [model, latest] = [knows, at - 1].map(|stage| trainer.model(stage).cloned());
                let (model, latest) = (model?, latest?);
                let sender = Sender {
                    settings,
                    rows,
                    splits: &splits,
                    features: &features,
                    shapes: sums(settings, trainer.shape, at, choice.as_ref()),
                    aggregates: &aggregates.clone(),
                    model: model.views()?,
                    latest: latest.views()?,
                };
                let index = (at - 1) * ways + way;
                let make = sender.messages(kind(choice.as_ref(), at - 1), index, ways)?;
                let (width, back) = (sender.shapes[index].width(), way == 1);
                let message = Message::Made { maker: Maker(&*make), width, back };
                match &pairs {
                    Some(weights) => trainer.aggregate_in_pairs(&mut aggregates, message, weights)?,
                    None => trainer.aggregate(&mut aggregates, message, |_, _| ())?,
                }
            }
            let accuracy =
                |model: &Model, part: Part| accuracy(model.views()?, rows, &aggregates[..at * ways], part);
            let shape = shape(settings, trainer.shape, at, trainer.choice().as_ref());
            trainer.fit(at, &accuracy, |trainer| match at {
                0 => {
                    let model = Views::new(shape, features.model.clone(), None).with_odds(odds.as_deref());
                    let score =
                        selection::score(settings.metric, &model, &rows.inputs(&[])?, (rows, &splits))?;
                    let log_loss = mean(&features.log_losses(rows, &splits)?);
                    let sent_columns = feature_width(settings.level, trainer.shape, 0);
                    let kept = is_table(trainer.shape.0, trainer.shape.1).then(|| features.model.form());
                    let stage_score = StageScore { score, kept, sent_columns, ..StageScore::of(log_loss) };
                    Ok(FittedStage { model: Model::Views(model), stage_score: Some(stage_score) })
                }
                _ => {
                    let seed = trainer.stage_seed(at);
                    let (splits, features) = (&splits, &features);
                    let stage =
                        Stage { shape: &shape, rows, splits, features, aggregates: &aggregates, seed };
                    let (graph, log_losses) = stage.fit()?;
                    let noise = trainer.plan.aggregate_multiplier * trainer.plan.sensitivity;
                    let known = splits.train.first().map_or(0, |&node| node as usize);
                    let noise =
                        noise / pairs.as_ref().map_or(1.0, |pairs| f64::from(pairs.mean_shares()[known]));
                    let similarity = match at {
                        1 => {
                            let (sum, share) = (shape.sums[0], messages::labels_share(shape.sums[0]));
                            similarity::largest(&aggregates, sum, share, rows, (splits, features), noise)?
                        }
                        _ => None,
                    };
                    let model = Views::new(shape, features.model.clone(), Some(graph));
                    let inputs = rows.inputs(&aggregates)?;
                    let model = model.with_odds(odds.as_deref());
                    let score = selection::score(settings.metric, &model, &inputs, (rows, splits))?;
                    let of_features = features.log_losses(rows, splits)?;
                    let standard_error = Some(selection::standard_error(&log_losses, &of_features));
                    let is_table = is_table(trainer.shape.0, trainer.shape.1);
                    let kept = model.parts().1.filter(|_| is_table).map(|graph| graph.combination.form());
                    let with_features = model.shape().sums.last().is_some_and(|sum| sum.features > 0);
                    let found = StageScore::of(mean(&log_losses));
                    let stage_score =
                        StageScore { score, standard_error, similarity, kept, with_features, ..found };
                    Ok(FittedStage { model: Model::Views(model), stage_score: Some(stage_score) })
                }
            })?;
            let found = trainer.stage_score(at)?;
            // The output of the last stage is sent nowhere.
            if at < settings.depth {
                source = Some(source.map_or(SourceStage::new(at, found), |before| before.or(at, found)));
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

/// How much of the influence of its edges each node gets: those whose class is known get less.
fn pair_weights(settings: &Settings, splits: &Splits) -> ReceiverWeights {
    let weight = |&known: &bool| if known { settings.known_weight } else { 1.0 };
    ReceiverWeights::nearest(splits.is_train.iter().map(weight))
}

/// Where rows are compared, the model is fitted to all of them.
fn reads_all_rows(dataset: &Dataset) -> bool {
    match dataset.features() {
        Features::Sparse { indices, .. } => knn::are_compared(dataset.nodes(), indices.len()),
        _ => false,
    }
}

/// Everything that the next message is made of: public rows, and sums that left the vault before.
struct Sender<'a> {
    settings: &'a Settings,
    rows: &'a Rows,
    splits: &'a Splits,
    features: &'a FeaturesModel,
    /// The sums so far and the next one.
    shapes: Vec<SumShape>,
    aggregates: &'a [Aggregate],
    /// The model that knows the classes, and the latest one.
    model: &'a Views,
    latest: &'a Views,
}

/// Makes the messages of a block of nodes.
type Make<'a> = Box<dyn Fn(Range<usize>) -> Result<Vec<f32>> + 'a>;

impl<'a> Sender<'a> {
    /// The messages of a kind for the sum of that index.
    fn messages(&'a self, kind: Messages, index: usize, ways: usize) -> Result<Make<'a>> {
        let (sum, rows) = (self.shapes[index], self.rows);
        let map = |weights| FeatureMap::of(rows, self.splits, self.settings.level, weights);
        if sum.classes == 0 {
            let weights = focus::weights(self.latest, rows, (self.splits, self.features), self.aggregates)?;
            let map = map(weights)?;
            return Ok(Box::new(move |nodes| map.messages(&rows.own()?, nodes)));
        }
        let before = last_labels(&self.shapes, index, ways).filter(|_| kind == Messages::Structure);
        let labels: Make<'a> = match before {
            Some(before) => {
                let (values, shape) = (&self.aggregates[before].values, self.shapes[before]);
                let unit = Block::of(values, shape).scale();
                Box::new(move |nodes: Range<usize>| {
                    let width = shape.width();
                    Ok(messages::structure(&values[nodes.start * width..nodes.end * width], unit, shape))
                })
            }
            None => Box::new(move |nodes: Range<usize>| {
                let block: Vec<u32> = (nodes.start as u32..nodes.end as u32).collect();
                let read = &self.aggregates[..self.model.shape().sums.len()];
                let known = self.model.probabilities(&rows.inputs(read)?, &block)?;
                let (labels, is_train) = (&rows.labels()[nodes.clone()], &self.splits.is_train[nodes]);
                Ok(messages::labels(&known, labels, is_train, rows.classes()))
            }),
        };
        if sum.features == 0 {
            return Ok(labels);
        }
        let features: Make<'a> = match index < ways {
            true => {
                let map = map(vec![])?;
                Box::new(move |nodes| map.features(&rows.own()?, nodes))
            }
            false => {
                let (values, shape) = (&self.aggregates[index - ways].values, self.shapes[index - ways]);
                let norm = messages::largest_norm(&messages::received(values, shape), shape.features);
                let norm = norm.max(f32::MIN_POSITIVE);
                Box::new(move |nodes: Range<usize>| {
                    let width = shape.width();
                    let received = messages::received(&values[nodes.start * width..nodes.end * width], shape);
                    Ok(received.into_iter().map(|value| value / norm).collect())
                })
            }
        };
        Ok(Box::new(move |nodes: Range<usize>| {
            let count = nodes.len();
            Ok(messages::side_by_side(&labels(nodes.clone())?, &features(nodes)?, count))
        }))
    }
}

fn shape(
    settings: &Settings,
    (columns, classes): (usize, usize),
    stage: usize,
    choice: Option<&Choice>,
) -> ViewsShape {
    ViewsShape {
        columns,
        classes,
        hidden: settings.hidden,
        sums: sums(settings, (columns, classes), stage, choice),
        // Under noise the length of a row says how much of it is noise.
        directions: settings.level == Level::None,
    }
}

/// The sums up to a stage, those against the edges after those along them.
fn sums(settings: &Settings, sizes: (usize, usize), stage: usize, choice: Option<&Choice>) -> Vec<SumShape> {
    let sum = |index: usize| {
        let features = feature_width(settings.level, sizes, index);
        match kind(choice, index) {
            // Before anything is chosen, as wide as it can be.
            _ if choice.is_none() => SumShape { classes: sizes.1, features },
            Messages::Features => SumShape { classes: 0, features },
            _ if settings.level == Level::None => SumShape { classes: sizes.1, features },
            _ => SumShape { classes: sizes.1, features: 0 },
        }
    };
    (0..stage).flat_map(|index| std::iter::repeat_n(sum(index), settings.direction.ways())).collect()
}

/// The latest sum of labels before that index, of messages that went the same way.
fn last_labels(shapes: &[SumShape], index: usize, ways: usize) -> Option<usize> {
    (0..index).rev().filter(|at| at % ways == index % ways).find(|&at| shapes[at].classes > 0)
}

/// The kind of messages sent for the sum of that index.
fn kind(choice: Option<&Choice>, index: usize) -> Messages {
    let chosen = choice.and_then(|choice| choice.messages.get(index).copied());
    chosen.unwrap_or(Messages::Labels)
}

/// The accuracy on a part of the nodes, whose rows and labels are public; of no nodes it is not a number.
fn accuracy(model: &Views, rows: &Rows, aggregates: &[Aggregate], part: Part) -> Result<f64> {
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
