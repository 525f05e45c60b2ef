//! Every setting, declared once. To add one, add an entry here and read it where it decides something: config.toml,
//! defaults, ranges, the flags of the command with their help, `--set`, comparisons from files, keys of stored runs and
//! the front door follow.

use progap_privacy::calibrate::{DELTAS, EPSILONS};
use serde::{Deserialize, Serialize};

use super::declaration::{About, Costs, Declaration, Need, Scope, SettingType, settings};
use super::request::{Edge, Node, Unprotected};
use super::{
    Accounting, Bounding, Calibration, ClassWeights, Combination, DeltaRule, Direction, FeatureLearning,
    Level, Messages, MethodKind, Metric, Nonlinearity, Order, Scaling, Selection,
};
use crate::method;

const MODEL: About = About::under("Model");
const TRAINING: About = About::under("Training");
const PRIVACY: About = About::under("Privacy");

settings! { for level:
    /// How the model is trained
    everywhere method: MethodKind = MethodKind::Progap, About::FIRST.short('m').costs(ALWAYS);

    /// What is private: nothing, edges, or whole records of nodes
    plain level: Level = level, About::FIRST.costs(ALWAYS);

    /// Protect undirected edges (both directions) rather than one direction
    edge_plain undirected: bool = false, PRIVACY.not_offered().needs(&[COSTS]).costs(ALWAYS);

    /// `undirected` follows from the graph, see [`Draft::resolve`](super::Draft::resolve). Whether the graph is
    /// symmetric then counts as public, and the statement says so
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    edge_plain unit_from_data: bool = false, PRIVACY.not_offered().costs(ALWAYS);

    /// Privacy budget
    private_plain epsilon: Option<f64> = match level {
        Level::None => None,
        Level::Edge => Some(1.0),
        Level::Node => Some(8.0),
    }, About::FIRST.short('e').within(*EPSILONS.start(), *EPSILONS.end()).needs(&[COSTS]).costs(ALWAYS).budget();

    /// DP delta, or `auto`: at most 1/(10 n) for n records
    private delta: Option<f64> = None,
        About::FIRST.within(*DELTAS.start(), *DELTAS.end()).needs(&[COSTS]).costs(ALWAYS).budget();

    /// By which rule delta is chosen where it is not given
    #[serde(default = "DeltaRule::published", skip_serializing_if = "DeltaRule::is_published")]
    private_plain delta_rule: DeltaRule = DeltaRule::Records, PRIVACY.not_offered().costs(ALWAYS);

    /// Number of aggregations over the graph
    everywhere depth: usize = 2, MODEL.short('k').within(0.0, 50.0).costs(ASKED_EACH_TIME);

    /// Along which edges a node receives
    #[serde(default = "Direction::along", skip_serializing_if = "Direction::is_in")]
    everywhere direction: Direction = Direction::In, MODEL.needs(&[SOME_DEPTH]).costs(BOTH_DIRECTIONS);

    /// What a node sends, in the methods progap-labels and progap-views: auto is labels, or something else where labels
    /// do not help; embeddings come with the defaults of the method gap
    everywhere messages: Messages = Messages::Embeddings, MODEL.needs(&[SOME_DEPTH]);

    /// Width of hidden layers
    everywhere hidden: usize = 16, MODEL.words("hidden width").within(1.0, 64.0);

    /// Layers of each base network
    everywhere layers: usize = 1, MODEL.words("number of layers").within(1.0, 8.0);

    /// Layers of the encoder, in the method gap
    everywhere encoder_layers: usize = 2, MODEL.words("number of encoder layers").within(1.0, 8.0);

    /// Non-linear function
    everywhere activation: Nonlinearity = Nonlinearity::Selu, MODEL;

    /// How base networks are combined
    everywhere jk: Combination = Combination::Cat, MODEL;

    /// Share of values set to zero in training
    everywhere dropout: f64 = 0.0, MODEL.within(0.0, 0.99);

    /// Train only the newest base network in each stage
    everywhere layerwise: bool = false, MODEL.needs(&[SOME_DEPTH]);

    /// Learning rate
    everywhere learning_rate: f64 = 0.01, TRAINING.alias("lr").within(1e-9, 1e3);

    /// Weight decay
    everywhere weight_decay: f64 = 0.0, TRAINING.within(0.0, 1e3);

    /// Epochs in each stage
    everywhere epochs: usize = if level == Level::Node { 10 } else { 100 },
        TRAINING.words("number of epochs").within(1.0, 1e6).costs(AT_NODE_LEVEL);

    /// Early-stopping patience in epochs (0.5 % relative improvement); 0 disables it
    #[serde(default, skip_serializing_if = "never_stops")]
    everywhere patience: usize = 0, TRAINING.within(0.0, 1e6).needs(&[KNOWN_LOSS]);

    /// Expected batch size; at other levels a batch is the whole training set
    node batch_size: usize = 256, TRAINING.within(1.0, 1e9).costs(ALWAYS);

    /// Norm to which gradients are clipped
    node clip: f64 = 1.0, TRAINING.within(1e-9, 1e9).costs(ALWAYS);

    /// How features are learnt, in the method progap-views; by default what suits the public sizes
    #[serde(default = "FeatureLearning::gradients", skip_serializing_if = "FeatureLearning::is_gradients")]
    node feature_learning: FeatureLearning = FeatureLearning::Gradients, TRAINING.costs(ALWAYS);

    /// Weight of training nodes as receivers (node level, undirected edges); others have 1
    #[serde(default = "known_weight", skip_serializing_if = "is_known_weight")]
    private known_weight: f64 = known_weight(),
        PRIVACY.within(0.0625, 1.0).needs(&[AGGREGATES_ALONE, SHARED_EDGES]).costs(AT_EDGE_LEVEL);

    /// How a sender's influence is bounded
    node bounding: Bounding = Bounding::Weight, PRIVACY.needs(&[SENDERS]).costs(ALWAYS);

    /// Square of a sender's largest influence; with sampling its largest number of edges
    node max_degree: u32 = 100, PRIVACY.within(1.0, 1e9).needs(&[SENDERS]).costs(ALWAYS);

    /// Noise of gradients over that of aggregations
    node gradient_noise_ratio: f64 = 1.0, PRIVACY.alias("ratio").within(1e-3, 1e3).needs(&[AGGREGATES]).costs(ALWAYS);

    /// Which epoch of a stage is kept
    everywhere selection: Selection =
        if level == Level::Node { Selection::LastEpoch } else { Selection::BestValidation }, TRAINING;

    /// Validation metric by which epoch and stage are chosen
    #[serde(default = "Metric::accuracy", skip_serializing_if = "Metric::is_accuracy")]
    everywhere metric: Metric = Metric::Accuracy, TRAINING.needs(&[SELECTS]);

    /// How much classes count in training
    #[serde(default = "ClassWeights::even", skip_serializing_if = "ClassWeights::are_even")]
    everywhere class_weights: ClassWeights = ClassWeights::Even, TRAINING.costs(AT_NODE_LEVEL);

    /// How number columns without declared bounds are brought to scale; noisy by default where there are enough nodes
    /// for it
    #[serde(default = "Scaling::single", skip_serializing_if = "Scaling::is_single")]
    node scaling: Scaling = Scaling::Single, PRIVACY.needs(&[COUNTS]).costs(ALWAYS);

    /// How probabilities are calibrated
    #[serde(default = "Calibration::off", skip_serializing_if = "Calibration::is_off")]
    everywhere calibration: Calibration =
        if level == Level::Node { Calibration::Off } else { Calibration::Temperature }, TRAINING;

    /// By which theorem noise is chosen
    private accounting: Accounting = Accounting::Best, PRIVACY.needs(&[NOT_PURE, COSTS]).costs(ALWAYS);

    /// Whether anyone may know the order in which the data lists nodes; a release of an order that tells edges is
    /// refused otherwise
    #[serde(default = "Order::tested", skip_serializing_if = "Order::is_tested")]
    private order: Order = Order::Tested, PRIVACY;

    /// Renumber nodes at random, where their position is their id, so that their order tells nothing;
    /// private/numbers.csv of the release has the new numbers
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    private shuffle: bool = false, PRIVACY;

    /// For experiments: makes noise, split and initial values repeatable, and the release not private
    everywhere seed: Option<u64> = None, PRIVACY.not_offered();
}

/// Wherever it decides anything.
const ALWAYS: Costs = |_| true;

/// Where steps of training are among what is asked.
const AT_NODE_LEVEL: Costs = |settings| settings.level == Level::Node;

/// Where sensitivities depend on how an edge is shared.
const AT_EDGE_LEVEL: Costs = |settings| settings.level == Level::Edge;

/// Where each aggregation is a query of its own.
const ASKED_EACH_TIME: Costs = |settings| !settings.method.can().mixes_rows;

/// Where each direction is a query of its own.
const BOTH_DIRECTIONS: Costs = |settings| settings.method.can().both_directions;

fn known_weight() -> f64 {
    0.35
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_known_weight(weight: &f64) -> bool {
    *weight == known_weight()
}

/// A run with sums over the graph.
const AGGREGATES_ALONE: Need =
    |settings| (method::aggregations(settings) == 0).then_some("this run has no noisy aggregation");

/// A run in which a record has more than one receiver.
const SHARED_EDGES: Need = |settings| {
    (settings.level == Level::Edge && !settings.undirected && !settings.unit_from_data)
        .then_some("a directed edge has one receiver, which gets all of it")
};

/// A run in which something costs budget.
const COSTS: Need = |settings| {
    let free = settings.level == Level::Edge && !settings.touches_edges();
    free.then_some("this run uses no edge, so it costs nothing at level edge")
};

/// A run with at least one stage after the first.
const SOME_DEPTH: Need = |settings| match settings.depth {
    0 if !settings.method.can().uses_edges => Some("this run uses no edge"),
    0 => Some("it needs a depth of at least 1"),
    _ => None,
};

/// A run whose losses are no secret.
const KNOWN_LOSS: Need = |settings| {
    (settings.level == Level::Node)
        .then_some("losses are private at level node, where the number of steps is part of the guarantee")
};

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn never_stops(patience: &usize) -> bool {
    *patience == 0
}

/// A run whose plan can hold noisy counts.
const COUNTS: Need =
    |settings| (!settings.method.can().histograms).then_some("this method has no noisy counts");

/// A run in which validation nodes choose.
const SELECTS: Need = |settings| match (settings.level, settings.selection) {
    (Level::Node, _) => {
        Some("labels of validation nodes are private at level node, so nothing is chosen by them")
    }
    (_, Selection::LastEpoch) => Some("it chooses by validation nodes, and selection last-epoch does not"),
    _ => None,
};

/// A run in which nodes send anything.
const SENDERS: Need = |settings| {
    (!settings.touches_edges()).then_some("it bounds what a node sends, and this run uses no edge")
};

/// A run with noisy aggregations.
const AGGREGATES: Need = |settings| {
    (method::aggregations(settings) == 0).then_some(
        "it divides noise between aggregations and gradients, and this run has no noisy aggregation",
    )
};

/// A guarantee with a delta.
const NOT_PURE: Need = |settings| {
    settings
        .method
        .can()
        .is_pure
        .then_some("this method has a delta of zero, for which there is one way to account")
};
