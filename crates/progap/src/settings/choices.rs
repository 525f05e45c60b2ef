//! Settings that are one of a few names. Each name stands here once: files, commands and messages read it from here.

use super::declaration::{Kind, SettingType};
use crate::{Error, Result};
use progap_nn::{Activation, Jk};
use serde::{Deserialize, Serialize};

macro_rules! choices {
    ($setting:literal,
     $(#[doc = $about:literal])+
     $type:ident { $($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+ }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $type { $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+ }

        impl $type {
            /// All of them.
            pub const ALL: &[$type] = &[$($type::$variant,)+];

            /// The name, as it is written in commands and files.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)+ }
            }
        }

        impl SettingType for $type {
            type Given = $type;
            const KIND: Kind = Kind::Choice(|| vec![$(($name, concat!($($doc),+).trim()),)+]);
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = Error;

            fn from_str(text: &str) -> Result<$type> {
                let named = $type::ALL.iter().copied().find(|choice| choice.name() == text);
                named.ok_or_else(|| Error::out_of_range($setting, text, [$($name),+].join(", ")))
            }
        }
    };
}

choices! { "level",
    /// Which unit is protected.
    Level {
        /// Nothing is: plain training.
        None = "none",
        /// Edges; features and labels are public.
        Edge = "edge",
        /// Records of nodes: features, label and own list of receivers.
        Node = "node",
    }
}

choices! { "messages",
    /// What a node sends to its receivers, in the methods progap-labels and progap-views.
    Messages {
        /// What the newest base network makes of the node, as published.
        Embeddings = "embeddings",
        /// What is known about the node's class: its label if it is a training node, else the probabilities that the
        /// stage before gives.
        Labels = "labels",
        /// Labels first. If they did not help, in the method progap-labels embeddings of what came of them, in the
        /// method progap-views features or structure; not at node level, where the labels that tell are private.
        Auto = "auto",
        /// Labels first, then whom a node knows: what came of the messages before. In the method progap-views.
        Structure = "structure",
        /// Labels first, then the features of the node. In the method progap-views, on tables of few columns.
        Features = "features",
    }
}

impl FeatureLearning {
    pub(super) fn gradients() -> FeatureLearning {
        FeatureLearning::Gradients
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn is_gradients(&self) -> bool {
        *self == FeatureLearning::Gradients
    }
}

choices! { "feature learning",
    /// How features are learnt at node level, in the method progap-views.
    FeatureLearning {
        /// By noisy gradients of a network, once.
        Gradients = "gradients",
        /// From one noisy table of the sums of each class.
        Table = "table",
        /// By noisy gradients of networks that read the sums, too, stage by stage, as in the method progap-labels; then
        /// every receiver counts the same.
        Stages = "stages",
    }
}

choices! { "direction",
    /// Along which edges nodes receive.
    Direction {
        /// Those that point to them.
        In = "in",
        /// Those that they point to, where edges mean something the other way round, as in citations.
        Out = "out",
        /// Both, each with messages and noise of its own; in the method progap-views.
        Both = "both",
    }
}

choices! { "bounding",
    /// How the influence of one sender is bounded at node level.
    Bounding {
        /// Every edge is used, with weight C / sqrt(out-degree).
        Weight = "weight",
        /// Every edge is used, with weight min(1, C / sqrt(out-degree)).
        Cap = "cap",
        /// At most C^2 out-edges are used, chosen at random, with weight 1.
        Sample = "sample",
    }
}

choices! { "selection",
    /// Which epoch of a stage is kept.
    Selection {
        /// The first one with the best validation accuracy; not at node level, where validation labels are private.
        BestValidation = "best-validation",
        /// The last one.
        LastEpoch = "last-epoch",
    }
}

choices! { "metric",
    /// How good predictions are, in one number.
    Metric {
        /// The share that is right.
        Accuracy = "accuracy",
        /// The mean recall of the classes: each counts the same, however rare.
        BalancedAccuracy = "balanced-accuracy",
        /// The mean F1 of the classes.
        MacroF1 = "macro-f1",
        /// The area under the curve of hits over false alarms, each class against all others.
        Auroc = "auroc",
        /// The average precision, each class against all others; of two classes that of the rarer one.
        AveragePrecision = "average-precision",
        /// The mean of -ln p of the true class; smaller is better.
        LogLoss = "log-loss",
        /// How far probabilities are from shares that are right; smaller is better.
        CalibrationError = "calibration-error",
    }
}

choices! { "calibration",
    /// How probabilities are brought to what can be believed.
    Calibration {
        /// As the model gives them.
        Off = "none",
        /// Every logit times a factor that the validation nodes choose, whose labels must be public, so not at node
        /// level.
        Temperature = "temperature",
    }
}

choices! { "class_weights",
    /// How much the classes count in training.
    ClassWeights {
        /// As much as they have nodes.
        Even = "none",
        /// All the same, however rare: a node counts n / (C n_c), with n_c of the n training nodes in its class; at
        /// node level, where labels are private, by a noisy count.
        Balanced = "balanced",
    }
}

choices! { "scaling",
    /// How number columns without declared bounds are brought to scale where rows are private.
    Scaling {
        /// Each value by itself: v becomes sign(v) log2(1 + |v|).
        Single = "single",
        /// By noisy counts of values and differences, which cost a small part of the budget.
        Noisy = "noisy",
    }
}

choices! { "order",
    /// Whether anyone may know the order in which the data lists nodes.
    Order {
        /// It is tested, and refused where it tells edges.
        Tested = "tested",
        /// Anyone may: it is kept, and the statement says so.
        Public = "public",
    }
}

choices! { "accounting",
    /// By which theorem noise is chosen.
    Accounting {
        /// The tightest that is proven: exact for Gaussians, privacy loss distributions with sampling.
        Best = "best",
        /// Renyi divergences, as in the published experiments.
        Rdp = "rdp",
        /// The closed forms printed in the paper.
        Theorem = "theorem",
    }
}

choices! { "delta_rule",
    /// How a delta is chosen where none is given.
    DeltaRule {
        /// At most a tenth of one over the number of records, rounded down to a power of ten; at node level to a digit.
        Records = "records",
        /// As published: as many zeros as the number of directed edges, or of training nodes, has digits. Settings that
        /// say nothing were written when this was the only rule.
        Published = "published",
    }
}

choices! { "jk",
    /// How the outputs of the base networks are combined.
    Combination {
        /// One after the other.
        Cat = "cat",
        /// Their sum.
        Sum = "sum",
        /// Their mean.
        Mean = "mean",
        /// The largest of each entry.
        Max = "max",
    }
}

choices! { "activation",
    /// A non-linear function.
    Nonlinearity {
        /// Scaled exponential linear units.
        Selu = "selu",
        /// Rectified linear units.
        Relu = "relu",
        /// The hyperbolic tangent.
        Tanh = "tanh",
        /// Exponential linear units.
        Elu = "elu",
    }
}

impl Combination {
    /// The layer that it names.
    pub(crate) fn layer(self) -> Jk {
        match self {
            Combination::Cat => Jk::Cat,
            Combination::Sum => Jk::Sum,
            Combination::Mean => Jk::Mean,
            Combination::Max => Jk::Max,
        }
    }
}

impl Nonlinearity {
    /// The layer that it names.
    pub(crate) fn layer(self) -> Activation {
        match self {
            Nonlinearity::Selu => Activation::Selu,
            Nonlinearity::Relu => Activation::Relu,
            Nonlinearity::Tanh => Activation::Tanh,
            Nonlinearity::Elu => Activation::Elu,
        }
    }
}

impl DeltaRule {
    pub(super) fn published() -> DeltaRule {
        DeltaRule::Published
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn is_published(&self) -> bool {
        *self == DeltaRule::Published
    }
}

impl Direction {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn is_in(&self) -> bool {
        *self == Direction::In
    }

    pub(super) fn along() -> Direction {
        Direction::In
    }

    /// In how many ways messages go, each of them a query of its own.
    pub fn ways(self) -> usize {
        if self == Direction::Both { 2 } else { 1 }
    }
}

impl Metric {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn is_accuracy(&self) -> bool {
        *self == Metric::Accuracy
    }

    pub(super) fn accuracy() -> Metric {
        Metric::Accuracy
    }
}

impl ClassWeights {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn are_even(&self) -> bool {
        *self == ClassWeights::Even
    }

    pub(super) fn even() -> ClassWeights {
        ClassWeights::Even
    }
}

impl Order {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn is_tested(&self) -> bool {
        *self == Order::Tested
    }

    pub(super) fn tested() -> Order {
        Order::Tested
    }
}

impl Scaling {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn is_single(&self) -> bool {
        *self == Scaling::Single
    }

    pub(super) fn single() -> Scaling {
        Scaling::Single
    }
}

impl Calibration {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn is_off(&self) -> bool {
        *self == Calibration::Off
    }

    pub(super) fn off() -> Calibration {
        Calibration::Off
    }
}
