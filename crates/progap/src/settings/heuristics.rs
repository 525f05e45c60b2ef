//! Every number that was tuned for defaults, with the rule that it is part of: how wide, how deep, how fast and in
//! which batches a model is trained where nobody says so. Only sizes decide that are public at every level.
//!
//! | rule | for | numbers | what it is worth, in points of accuracy (docs/method.md unless said) |
//! |---|---|---|---|
//! | [`depth_by_budget`] | `depth`, progap-labels at node level | [`RICH_FEATURES`], [`MANY_CLASSES`], [`SHARE_FOR_SUMS`], [`NODES_FOR_SUMS`], [`LARGE_EPSILON`], [`MEANS_FOR_RICH`], [`MEANS_OF_A_CLASS`], [`MEANS_OF_A_CLASS_TWICE`] | 1.1 to 4.7 for two sums on small schools at epsilon 8; 2 to 9 where labels are too few for one; 2.4 on six graphs with rich features at epsilon 4 |
//! | [`depth_by_share`] | `depth`, progap-views | [`SHARE`], [`SUMS_OF_TABLE`], [`HALF_BUDGET`], [`DEPTHS`], [`DEPTH_WITHOUT_NOISE`] | 0.8 and 2.0 for five instead of three with 5 % of the labels, at epsilon 1 (docs/method.md); 2 to 4 on four of five kinds of tables where features of neighbours tell, at epsilon 4 (scripts/compare/kinds.py) |
//! | [`feature_learning`], [`addressed_depth`] | `feature_learning`, `known_weight`, `depth`, progap-views at node level | [`KNOWN_WEIGHT`], [`SMALL_EPSILON`], [`FEW_COLUMNS`], [`COLUMNS_FOR_A_NODE`], [`SHARE_FOR_A_TABLE`], [`SHARE_OF_RICH`], [`NODES_FOR_A_TABLE`] | 4 at epsilon 8, 10 at epsilon 2 on schools with 75 % of the labels (docs/addressed-sums.md) |
//! | [`usual_batches`] | `batch_size`, `epochs` at node level | [`SHARE_OF_FEW`], [`SMALLEST_BATCH`], [`MANY_NODES`], [`MAX_EPOCHS`] | 16.8 with 5 % of the labels, 9.7 with 20 %, 1.1 with 75 %, on ten schools at epsilon 8 |
//! | [`batches_by_features`] | the same, progap and progap-labels | [`QUARTER`], [`RICH_FEATURES`], [`LARGE_EPSILON`] | 0.6 on four graphs for features alone, 0.8 to 2.4 beside sums, 0.8 on nine schools with two classes |
//! | [`larger_batches`] | the same | [`MAX_STEPS`], [`MIN_EPOCHS`] | time: 0.4 of it for 0.3 points on sixty schools, 0.55 for none with 825,000 training nodes |
//! | [`width`] | `hidden`, `learning_rate`, `epochs`, `patience` | [`FEW_CLASSES`], [`WIDEST`], [`RATE_AT_NODE_LEVEL`], [`RATE`], [`MANY_EPOCHS`], [`PATIENCE`] | 8.6 at node level (epsilon 8) and 6.2 at edge level (epsilon 1, progap-labels) with 40 classes (`data synth --nodes 6000 --edges 120000 --classes 40 --seed 3`, two seeds) |
//! | [`noise_leaves_something`] | `scaling` at node level | [`NODES_FOR_COUNTS`] | several points on columns with small units or shifts (docs/data.md) |

use super::{Draft, FeatureLearning, Level, Messages, PublicFacts, Scaling, Settings, Size};
use crate::method::{DepthRule, is_table};

/// Features with more columns say much by themselves, and a fit over them needs what a small budget has.
const RICH_FEATURES: usize = 600;
/// More classes need wide networks.
const MANY_CLASSES: usize = 16;
/// The share of training nodes, and their number, with which sums begin to tell more than they cost at an epsilon of 1.
const SHARE_FOR_SUMS: f64 = 0.36;
const NODES_FOR_SUMS: f64 = 1200.0;
/// From this epsilon on a budget pays for more than one thing.
const LARGE_EPSILON: f64 = 6.0;
/// Epsilon times training nodes from which on one sum helps beside rich features.
const MEANS_FOR_RICH: f64 = 16_000.0;
/// The same for each of many classes, for one sum and for two.
const MEANS_OF_A_CLASS: f64 = 640.0;
const MEANS_OF_A_CLASS_TWICE: f64 = 2560.0;

/// The weight of training nodes among receivers where the budget is large, and where it is not.
const KNOWN_WEIGHT: [f64; 2] = [0.35, 0.2];
/// The same at edge level, where both messages of an undirected edge share its influence.
const KNOWN_WEIGHT_OF_PAIRS: f64 = 0.25;
/// Below this epsilon a single addressed sum is worth its noise.
const SMALL_EPSILON: f64 = 0.75;
/// Fewer columns are numbers rather than what is there or not, of which a table of class sums says little. Many dense
/// ones are learnt better by gradients, unless there are more of them than three for five training nodes.
const FEW_COLUMNS: usize = 64;
const COLUMNS_FOR_A_NODE: f64 = 0.6;
/// The share of training nodes from which on tables tell more than gradients of sums do, where the budget is large and
/// where it is not; and beside rich features.
const SHARE_FOR_A_TABLE: [f64; 2] = [0.15, 0.35];
const SHARE_OF_RICH: f64 = 0.5;
/// The same number of training nodes, times epsilon.
const NODES_FOR_A_TABLE: f64 = 1200.0;

/// The share of labels with which three aggregations are enough; each quarter of it asks for one more.
const SHARE: f64 = 0.75;
/// How many more a table asks for under noise: the first tells whether classes of neighbours say anything, the next which
/// of their features do, and all after it are about these.
const SUMS_OF_TABLE: f64 = 2.0;
/// By how many aggregations fewer half the budget pays for, below an epsilon of 1.
const HALF_BUDGET: f64 = 0.75;
/// The fewest and the most aggregations, with noise and without.
const DEPTHS: [f64; 3] = [2.0, 7.0, 5.0];
/// The aggregations without noise where fewer than [`MANY_LABELS`] are known.
const DEPTH_WITHOUT_NOISE: usize = 5;
/// Training nodes from which on less is tried where there is no noise: what is learnt is the same, and takes a third of
/// the time.
pub(crate) const MANY_LABELS: usize = 8192;

/// Up to this many classes the usual width and learning rate do.
const FEW_CLASSES: usize = 16;
/// The widest hidden layer.
const WIDEST: usize = 64;
/// The learning rates of many classes.
const RATE_AT_NODE_LEVEL: f64 = 0.05;
const RATE: f64 = 0.03;
/// The most epochs of many classes where losses are public, and over how many of them the loss has to fall.
const MANY_EPOCHS: usize = 500;
const PATIENCE: usize = 20;

/// The nodes that noisy counts of one column need at [`EPSILON_OF_COUNTS`].
const NODES_FOR_COUNTS: f64 = 350.0;
const EPSILON_OF_COUNTS: f64 = 8.0;

/// How many batches make an epoch of few training nodes. With fewer a stage would have too few steps to learn anything.
const SHARE_OF_FEW: usize = 16;
/// The same where less noise of a step gains more than more steps.
const QUARTER: usize = 4;
/// The smallest batch of few training nodes, if there are twice as many.
const SMALLEST_BATCH: usize = 16;
/// From this many training nodes on the usual number of epochs is enough; the fewer there are, the more epochs, up to
/// this many.
const MANY_NODES: f64 = 10_000.0;
const MAX_EPOCHS: usize = 60;
/// The most steps of a stage that are worth their time: more of them, with smaller batches, gain no accuracy for the
/// same epsilon.
const MAX_STEPS: usize = 1000;
/// The fewest epochs: each training node is in this many batches of a stage on average.
const MIN_EPOCHS: usize = 3;

impl Settings {
    /// The rule that gives the depth where nobody does, if there is one.
    pub(super) fn depth_rule(&self) -> Option<DepthRule> {
        let rule = self.method.can().depth?;
        let applies = match rule {
            DepthRule::ByBudget => self.level == Level::Node && self.messages == Messages::Labels,
            DepthRule::ByShareOfLabels => true,
        };
        applies.then_some(rule)
    }

    /// Whether the method has weights of receivers at this level.
    fn can_weigh_receivers(&self) -> bool {
        self.level == Level::Node && self.has_known_weight()
    }

    fn has_known_weight(&self) -> bool {
        self.method.spec().own.contains(&"known_weight")
    }

    /// Whether receivers have weights, and labels are learnt from tables.
    pub fn weighs_receivers(&self) -> bool {
        self.can_weigh_receivers() && self.feature_learning != FeatureLearning::Stages
    }

    /// Whether both messages of an undirected edge share its influence, by the weights of their receivers. With equal
    /// weights nothing would be gained: both are one, and the edge costs a root of two more.
    pub fn weighs_pairs(&self) -> bool {
        self.level == Level::Edge && self.undirected && self.has_known_weight() && self.known_weight < 1.0
    }

    /// Where embeddings are sent, the width is that of noisy messages, too.
    fn width_follows_from_classes(&self) -> bool {
        self.method.can().width_by_classes && (self.messages != Messages::Embeddings || self.depth == 0)
    }

    /// Whether the aggregations that the method has at node level were left out, as public sizes can suggest.
    pub fn leaves_graph_out(&self) -> bool {
        self.level == Level::Node && self.depth_rule().is_some() && self.depth == 0
    }
}

/// The settings that can follow from public facts.
pub(crate) const FOLLOWING: &[&str] = &[
    "depth",
    "hidden",
    "learning_rate",
    "batch_size",
    "epochs",
    "scaling",
    "feature_learning",
    "known_weight",
];

/// Whether a setting follows from public facts in a run with these settings, where nobody gives it.
pub(super) fn follows(settings: &Settings, name: &str) -> bool {
    let (classes, node) = (settings.width_follows_from_classes(), settings.level == Level::Node);
    match name {
        "depth" => settings.depth_rule().is_some(),
        "hidden" | "learning_rate" => classes,
        "batch_size" => node,
        "epochs" => node || classes,
        "scaling" => node && settings.method.can().histograms,
        "feature_learning" => settings.can_weigh_receivers(),
        "known_weight" => settings.has_known_weight() && settings.level != Level::None,
        _ => false,
    }
}

/// Decides what is open.
pub(super) fn decide(settings: &mut Settings, facts: &PublicFacts, is_open: &dyn Fn(&str) -> bool) {
    let epsilon = settings.epsilon.unwrap_or(f64::INFINITY);
    if is_open("feature_learning") {
        settings.feature_learning = feature_learning(epsilon, facts);
    }
    if is_open("known_weight") {
        settings.known_weight = match settings.level {
            Level::Node => KNOWN_WEIGHT[usize::from(epsilon < LARGE_EPSILON)],
            _ if settings.undirected => KNOWN_WEIGHT_OF_PAIRS,
            _ => 1.0,
        };
    }
    let usual = settings.clone();
    if let Some(rule) = usual.depth_rule().filter(|_| is_open("depth")) {
        settings.depth = match rule {
            DepthRule::ByBudget => depth_by_budget(usual.epsilon.unwrap_or(f64::INFINITY), facts),
            DepthRule::ByShareOfLabels if usual.weighs_receivers() => addressed_depth(epsilon, facts),
            DepthRule::ByShareOfLabels if usual.level == Level::Node => depth_by_budget(epsilon, facts),
            DepthRule::ByShareOfLabels => depth_by_share(usual.level, usual.epsilon, facts),
        };
    }
    if facts.classes > FEW_CLASSES && usual.width_follows_from_classes() {
        if is_open("hidden") {
            settings.hidden = width(usual.hidden, facts.classes);
        }
        if is_open("learning_rate") {
            settings.learning_rate = if usual.level == Level::Node { RATE_AT_NODE_LEVEL } else { RATE };
        }
        // Many classes take longer, and how long is not known before: until the loss has stopped falling.
        if is_open("epochs") && usual.level != Level::Node && usual.patience == 0 {
            settings.epochs = MANY_EPOCHS.max(usual.epochs);
            settings.patience = PATIENCE;
        }
    }
    if is_open("scaling") && noise_leaves_something(usual.epsilon, facts) {
        settings.scaling = Scaling::Noisy;
    }
    if is_open("batch_size") && usual.level == Level::Node && facts.train_nodes > 0 {
        larger_batches(settings, is_open("epochs"), facts);
    }
}

impl Draft {
    /// The sizes besides that of the training set from which batches follow though the depth is given: whether features
    /// are rich decides for few training nodes, whether there are two classes where the budget is small.
    pub(crate) fn batches_follow_from(&self, train_nodes: Option<usize>) -> &'static [Size] {
        let open = self.level == Level::Node && self.is_open("batch_size") && !self.is_open("depth");
        let by_features = self.method.can().depth == Some(DepthRule::ByBudget) && self.depth > 0;
        match self.epsilon {
            _ if !open || !by_features => &[],
            Some(epsilon) if epsilon < LARGE_EPSILON => &[Size::Columns, Size::Classes],
            _ if train_nodes.is_some_and(|nodes| nodes / SHARE_OF_FEW >= self.batch_size) => &[],
            _ => &[Size::Columns],
        }
    }
}

/// The sizes by which the depth is decided at a private level.
pub(super) const DEPTH_FOLLOWS_FROM: &[Size] = &[Size::Nodes, Size::TrainNodes, Size::Columns, Size::Classes];

/// The sizes by which [`feature_learning`] decides.
pub(super) const FEATURE_LEARNING_FOLLOWS_FROM: &[Size] = &[Size::Nodes, Size::TrainNodes, Size::Columns];

/// The aggregations that a budget pays for at node level beside the training after each: two where it is large. With
/// rich features, with few training nodes, or with few of each of many classes, a small one does more for a fit of the
/// features alone.
fn depth_by_budget(epsilon: f64, facts: &PublicFacts) -> usize {
    let means = epsilon * facts.train_nodes as f64;
    let of_a_class = means / facts.classes.max(1) as f64;
    let many_classes = facts.classes > MANY_CLASSES;
    let too_few_of_each = many_classes && of_a_class < MEANS_OF_A_CLASS;
    if facts.columns > RICH_FEATURES {
        return usize::from(epsilon >= LARGE_EPSILON && means >= MEANS_FOR_RICH && !too_few_of_each);
    }
    match epsilon >= LARGE_EPSILON {
        _ if !aggregation_is_worthwhile(epsilon, facts) || too_few_of_each => 0,
        true if !many_classes || of_a_class >= MEANS_OF_A_CLASS_TWICE => 2,
        _ => 1,
    }
}

/// How features are learnt at node level, in the method progap-views.
fn feature_learning(epsilon: f64, facts: &PublicFacts) -> FeatureLearning {
    let share = facts.train_nodes as f64 / facts.nodes.max(1) as f64;
    let columns_for_a_node = facts.columns as f64 / facts.train_nodes.max(1) as f64;
    let least = SHARE_FOR_A_TABLE[usize::from(epsilon < LARGE_EPSILON)];
    let enough = epsilon * facts.train_nodes as f64 >= NODES_FOR_A_TABLE;
    match facts.columns {
        columns if columns < FEW_COLUMNS || !enough => FeatureLearning::Stages,
        columns if columns <= RICH_FEATURES && share >= least => FeatureLearning::Table,
        columns if columns <= RICH_FEATURES => FeatureLearning::Stages,
        _ if share < SHARE_OF_RICH => FeatureLearning::Stages,
        _ if columns_for_a_node >= COLUMNS_FOR_A_NODE => FeatureLearning::Table,
        _ if epsilon >= LARGE_EPSILON => FeatureLearning::Gradients,
        _ => FeatureLearning::Stages,
    }
}

/// How many addressed sums a budget pays for. Rich features say much by themselves, and what a small budget has is
/// theirs.
fn addressed_depth(epsilon: f64, facts: &PublicFacts) -> usize {
    match epsilon >= LARGE_EPSILON {
        large if facts.columns > RICH_FEATURES => usize::from(large),
        true => 3,
        false if epsilon < SMALL_EPSILON => 1,
        false => 2,
    }
}

/// Whether enough neighbours have a label, and enough nodes learn from them, for sums to tell more than they cost: both
/// numbers fall with epsilon to the power of 1.5 (docs/method.md).
fn aggregation_is_worthwhile(epsilon: f64, facts: &PublicFacts) -> bool {
    let (power, learners) = (epsilon.powf(1.5), facts.train_nodes as f64);
    let share = learners / facts.nodes.max(facts.train_nodes).max(1) as f64;
    power * share >= SHARE_FOR_SUMS && power * learners >= NODES_FOR_SUMS
}

/// The number of aggregations that labels of such a share and a budget can make use of: the fewer labels, the farther
/// they must travel; the smaller the budget, the fewer sums it pays for.
fn depth_by_share(level: Level, epsilon: Option<f64>, facts: &PublicFacts) -> usize {
    let [least, most, max_without_noise] = DEPTHS;
    let share = facts.train_nodes.max(1) as f64 / facts.nodes.max(1) as f64;
    let depth = 3.0 + (SHARE / share).log(4.0);
    let is_table = level == Level::Edge && facts.columns > 0 && is_table(facts.columns, facts.classes);
    let depth = if is_table { depth + SUMS_OF_TABLE } else { depth };
    let (depth, most) = match epsilon.filter(|_| level != Level::None) {
        Some(epsilon) => (depth + HALF_BUDGET * epsilon.log2().min(0.0), most),
        None if facts.train_nodes < MANY_LABELS => return DEPTH_WITHOUT_NOISE,
        None => (depth, max_without_noise),
    };
    (depth + 0.5).floor().clamp(least, most) as usize
}

/// Whether noisy counts of the open columns say something of the nodes: the noise grows with the root of the number of
/// columns, and as epsilon falls.
fn noise_leaves_something(epsilon: Option<f64>, facts: &PublicFacts) -> bool {
    let columns = facts.unbounded_columns.unwrap_or(0);
    let means = facts.nodes as f64 * epsilon.unwrap_or(0.0).min(EPSILON_OF_COUNTS) / EPSILON_OF_COUNTS;
    columns > 0 && means >= NODES_FOR_COUNTS * (columns as f64).sqrt()
}

/// Half as wide again as there are classes.
fn width(usual: usize, classes: usize) -> usize {
    (3 * classes / 2).next_multiple_of(8).clamp(usual, WIDEST.max(usual))
}

/// Batches and epochs of a method at node level.
struct Batches {
    /// How many make an epoch of few training nodes.
    of_few: usize,
    /// The size of a batch of many training nodes.
    largest: usize,
    /// The epochs of a stage.
    epochs: usize,
}

/// Those of the settings, a sixteenth of few training nodes.
fn usual_batches(settings: &Settings) -> Batches {
    Batches { of_few: SHARE_OF_FEW, largest: settings.batch_size, epochs: settings.epochs }
}

/// Features alone, rich ones beside sums, and two classes under much noise gain more by less noise of a step than by
/// more steps; the first and the last gain by more epochs too.
fn batches_by_features(settings: &Settings, facts: &PublicFacts) -> Batches {
    let (alone, rich) = (settings.depth == 0, facts.columns > RICH_FEATURES);
    let small_budget = settings.epsilon.is_some_and(|epsilon| epsilon < LARGE_EPSILON);
    let two_classes = facts.classes == 2 && small_budget && !alone && !rich;
    let least = if alone || two_classes { 2 * settings.epochs } else { settings.epochs };
    Batches {
        of_few: if alone || rich || two_classes { QUARTER } else { SHARE_OF_FEW },
        largest: if two_classes { 2 * settings.batch_size } else { settings.batch_size },
        epochs: more_epochs(settings.epochs, facts.train_nodes).max(least),
    }
}

/// The usual number of epochs, or more where few training nodes make few steps of each.
fn more_epochs(usual: usize, train_nodes: usize) -> usize {
    let wanted = usual as f64 * (MANY_NODES / train_nodes.max(1) as f64).sqrt();
    (wanted.round() as usize).clamp(usual, MAX_EPOCHS.max(usual))
}

/// Batches and epochs for public sizes, as far as they are open.
///
/// A share of few training nodes, and more epochs of them where the method gains by it. Else as many as the method
/// says, up to the size at which a stage has [`MAX_STEPS`] steps. Beyond it batches grow and epochs become fewer, both
/// with the square root of the size, so that time grows with the square root too; and once there are [`MIN_EPOCHS`],
/// batches grow with the size and the number of steps stays (docs/method.md).
fn larger_batches(settings: &mut Settings, epochs_follow: bool, facts: &PublicFacts) {
    let train_nodes = facts.train_nodes;
    let Batches { of_few, largest, epochs } = match settings.method.can().depth {
        Some(DepthRule::ByBudget) => batches_by_features(settings, facts),
        _ if settings.can_weigh_receivers() && !settings.weighs_receivers() => {
            batches_by_features(settings, facts)
        }
        _ => usual_batches(settings),
    };
    settings.batch_size = small_batch(largest, train_nodes / of_few, train_nodes);
    if !epochs_follow {
        return;
    }
    settings.epochs = epochs;
    let largest = MAX_STEPS * settings.batch_size / settings.epochs.max(1);
    if train_nodes <= largest {
        return;
    }
    let growth = train_nodes as f64 / largest as f64;
    let least = MIN_EPOCHS.min(settings.epochs);
    settings.epochs = ((settings.epochs as f64 / growth.sqrt()).ceil() as usize).max(least);
    settings.batch_size = (train_nodes * settings.epochs).div_ceil(MAX_STEPS);
}

/// The usual batch, or the share of few training nodes; always fewer than all of them.
fn small_batch(usual: usize, few: usize, train_nodes: usize) -> usize {
    usual.min(few.max(SMALLEST_BATCH).min((train_nodes / 2).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{MethodKind, Request};

    fn resolved(draft: &Draft, facts: PublicFacts) -> Settings {
        draft.resolve(&facts).expect("settings").into_settings()
    }

    fn settled(draft: &Draft, train_nodes: usize) -> Settings {
        resolved(draft, PublicFacts { train_nodes, ..PublicFacts::default() })
    }

    fn labels() -> Request {
        Request::default().with("level", "node").with("method", "progap-labels")
    }

    fn batches(method: MethodKind, train_nodes: usize) -> (usize, usize, usize) {
        let settings = settled(&Draft::following(Settings::of(method, Level::Node)), train_nodes);
        (settings.batch_size, settings.epochs, train_nodes * settings.epochs / settings.batch_size)
    }

    #[test]
    fn small_training_sets_have_the_batches_of_the_method_and_large_ones_few_steps() {
        for method in [MethodKind::ProgapLabels, MethodKind::Gap, MethodKind::DpGnn] {
            let usual = Settings::of(method, Level::Node);
            let largest = MAX_STEPS * usual.batch_size / usual.epochs;
            for nodes in [0, largest] {
                assert_eq!(batches(method, nodes).0, usual.batch_size, "{method}");
                assert_eq!(batches(method, nodes).1, usual.epochs, "{method}");
            }
            // No jump, and nothing falls but the number of epochs.
            let mut before = batches(method, largest);
            for doubling in 0..12 {
                let now = batches(method, (largest << doubling) + 1);
                assert!(now.0 >= before.0 && now.1 <= before.1 && now.1 >= MIN_EPOCHS, "{method} {now:?}");
                assert!(now.2 <= MAX_STEPS && now.2 > MAX_STEPS * 99 / 100, "{method} {now:?}");
                before = now;
            }
        }
    }

    /// As measured (docs/method.md): a sixteenth of the nodes in a batch, and epochs by the root of their
    /// number.
    #[test]
    fn few_training_nodes_are_seen_more_often() {
        let open = labels().settings().expect("settings");
        let batches = |nodes: usize| {
            let settings = settled(&open, nodes);
            (settings.batch_size, settings.epochs)
        };
        assert_eq!([170, 850, 3400, 12_000].map(batches), [(16, 60), (53, 34), (212, 17), (512, 10)]);
    }

    /// Features alone, or rich ones: a quarter of few training nodes, whether the depth was asked for or follows from
    /// sizes.
    #[test]
    fn where_features_say_most_batches_are_a_quarter_of_few_nodes() {
        let node = || labels().with("epsilon", 2.0);
        let batches = |request: Request, columns: usize, train_nodes: usize| {
            let sizes = PublicFacts { train_nodes, columns, classes: 7, ..PublicFacts::default() };
            let settings = resolved(&request.settings().expect("settings"), sizes);
            (settings.depth, settings.batch_size, settings.epochs)
        };
        assert_eq!(batches(node(), 1433, 1200), (0, 300, 29));
        assert_eq!(batches(node(), 1433, 5738), (0, 512, 20), "at least twice the usual epochs");
        assert_eq!(batches(node(), 1433, 25_600), (0, 512, 20));
        assert_eq!(batches(node(), 1433, 4 * 25_600), (0, 1024, 10));
        assert_eq!(batches(node().with("depth", 0), 200, 1200), (0, 300, 29));
        assert_eq!(batches(node(), 200, 2000), (1, 125, 22), "one aggregation");
        let ample = || node().with("epsilon", 8.0);
        assert_eq!(batches(ample(), 1433, 2000), (1, 500, 22), "one aggregation beside rich features");
        assert_eq!(batches(ample(), 600, 2000).1, 125, "few columns");
        assert_eq!(batches(node().with("batch_size", 75), 1433, 1200).1, 75, "as asked for");
        let mlp = node().with("method", "mlp");
        assert_eq!(batches(mlp, 1433, 1200).1, 75, "another method");
    }

    /// Two classes under much noise: twice as large, a quarter of few training nodes, and at least twice the usual
    /// epochs.
    #[test]
    fn two_classes_have_larger_batches_where_the_budget_is_small() {
        let batches =
            |epsilon: f64, depth: Option<usize>, columns: usize, classes: usize, train_nodes: usize| {
                let request = labels().with("epsilon", epsilon);
                let request = depth.iter().fold(request, |request, &depth| request.with("depth", depth));
                let sizes = PublicFacts { train_nodes, columns, classes, ..PublicFacts::default() };
                let settings = resolved(&request.settings().expect("settings"), sizes);
                (settings.depth, settings.batch_size, settings.epochs)
            };
        assert_eq!(batches(2.0, None, 200, 2, 6200), (1, 1024, 20));
        assert_eq!(batches(2.0, None, 200, 2, 2000), (1, 500, 22));
        assert_eq!(batches(2.0, None, 200, 3, 6200), (1, 387, 13), "three classes");
        assert_eq!(batches(8.0, None, 200, 2, 6200), (2, 387, 13), "a large budget");
        assert_eq!(batches(2.0, Some(0), 200, 2, 6200), (0, 512, 20), "features alone");
        assert_eq!(batches(2.0, None, 601, 2, 6200), (0, 512, 20), "rich ones");
    }

    /// Values that were asked for stay, however large the training set is.
    #[test]
    fn what_was_asked_for_stays() {
        let at_node = labels;
        for (name, value) in [("batch_size", 512), ("epochs", 10)] {
            let asked = at_node().with(name, value).settings().expect("settings");
            let large = settled(&asked, 10_000_000);
            assert_eq!((large.batch_size, large.epochs), (asked.batch_size, asked.epochs), "{name}");
        }
        let published = Request::published().with("level", "node").settings().expect("settings");
        assert!(FOLLOWING.iter().all(|name| !published.is_open(name)));
    }

    fn decided(request: Request, train_nodes: usize, classes: usize) -> Settings {
        let sizes = PublicFacts { train_nodes, classes, ..PublicFacts::default() };
        resolved(&request.settings().expect("settings"), sizes)
    }

    #[test]
    fn what_nobody_gave_follows_from_sizes() {
        let node = labels;
        let batch = |nodes: usize| decided(node(), nodes, 6).batch_size;
        assert_eq!([450, 153, 20, 3, 8192, 50_000].map(batch), [28, 16, 10, 1, 512, 512]);
        let wide = |classes: usize| {
            let settings = decided(Request::default().with("method", "progap-labels"), 5000, classes);
            (settings.hidden, settings.learning_rate)
        };
        assert_eq!(
            [6, 16, 17, 40, 100].map(wide),
            [(16, 0.01), (16, 0.01), (32, 0.03), (64, 0.03), (64, 0.03)]
        );
        assert_eq!((decided(node(), 100_000, 40).hidden, decided(node(), 100_000, 6).hidden), (64, 16));
        // Values that were given stay, whatever they are.
        let given = node().with("batch_size", 512).with("hidden", 16).with("learning_rate", 0.02);
        let given = decided(given, 450, 40);
        assert_eq!((given.batch_size, given.hidden, given.learning_rate), (512, 16, 0.02));
        // So do the published settings, those of a file, and messages that are as wide as the network.
        let paper = decided(Request::published().with("level", "node"), 450, 40);
        assert_eq!((paper.batch_size, paper.hidden), (256, 16));
        let file = Settings::new(Level::Node);
        assert_eq!(decided(Request::from(&file), 450, 40), file);
        assert_eq!(decided(Request::default().with("method", "progap"), 5000, 40).hidden, 16);
    }

    #[test]
    fn budgets_pay_for_as_many_aggregations_as_sizes_say() {
        let depth = |epsilon: f64, nodes: usize, columns: usize, classes: usize| {
            let sizes =
                PublicFacts { train_nodes: 3 * nodes / 4, nodes, columns, classes, ..PublicFacts::default() };
            depth_by_budget(epsilon, &sizes)
        };
        // Berkeley13, Reed98: few columns.
        assert_eq!([2.0, 8.0].map(|epsilon| depth(epsilon, 18_939, 437, 6)), [1, 2]);
        assert_eq!([2.0, 8.0].map(|epsilon| depth(epsilon, 780, 200, 5)), [1, 2]);
        assert_eq!([1500, 1700].map(|nodes| depth(1.0, nodes, 200, 5)), [0, 1]);
        // Few labels.
        let labelled = |epsilon: f64, percent: usize| {
            let train_nodes = percent * 15_348 / 100;
            let sizes = PublicFacts {
                train_nodes,
                nodes: 15_348,
                columns: 437,
                classes: 6,
                ..PublicFacts::default()
            };
            depth_by_budget(epsilon, &sizes)
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
    fn few_labels_travel_farther_and_small_budgets_pay_for_less() {
        let depth = |train_nodes: usize, epsilon: f64| {
            let sizes = PublicFacts { train_nodes, nodes: 10_000, ..PublicFacts::default() };
            depth_by_share(Level::Edge, Some(epsilon), &sizes)
        };
        assert_eq!([7500, 2000, 500, 100].map(|train| depth(train, 1.0)), [3, 4, 5, 6]);
        assert_eq!([7500, 2000, 500, 100].map(|train| depth(train, 8.0)), [3, 4, 5, 6]);
        assert_eq!([7500, 2000, 500, 100].map(|train| depth(train, 0.25)), [2, 2, 3, 5]);
        assert_eq!((depth(1, 1.0), depth(10_000, 1e-3)), (7, 2));
        // Two more for a table of few columns and classes; never more than seven.
        let table = |train_nodes: usize, columns: usize, classes: usize| {
            let sizes =
                PublicFacts { train_nodes, nodes: 10_000, columns, classes, ..PublicFacts::default() };
            depth_by_share(Level::Edge, Some(1.0), &sizes)
        };
        assert_eq!([(10, 3), (128, 16), (129, 3), (10, 17)].map(|(d, c)| table(7500, d, c)), [5, 5, 3, 3]);
        assert_eq!([2000, 500, 100].map(|train| table(train, 10, 3)), [6, 7, 7]);
        let free = |train_nodes: usize| {
            depth_by_share(
                Level::None,
                None,
                &PublicFacts { train_nodes, nodes: 100_000, ..PublicFacts::default() },
            )
        };
        assert_eq!([75_000, 20_000, 10_000, 5000, 100].map(free), [3, 4, 4, 5, 5]);
    }
}
