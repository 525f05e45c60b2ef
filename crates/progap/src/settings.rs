//! What a training run is asked to do: everything has a default, and everything is checked before any work.

use progap_graph::{Dataset, Graph, Part, Preparation};
use serde::{Deserialize, Serialize};

pub use crate::method::Method;
use crate::method::catalogue;
use crate::{Error, Result};

/// The epsilons that a run may be asked for, and a ledger may hold.
pub(crate) const EPSILONS: std::ops::RangeInclusive<f64> = 1e-3..=1e3;
/// The deltas that a run may be asked for, and a ledger may hold.
pub(crate) const DELTAS: std::ops::RangeInclusive<f64> = 1e-30..=0.1;

/// Which unit is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Nothing is: plain training.
    None,
    /// Edges; features and labels are public.
    Edge,
    /// Records of nodes: features, label and own list of receivers.
    Node,
}

/// What a node sends to its receivers, in the method progap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Messages {
    /// What the newest base network makes of the node, as published.
    Embeddings,
    /// What is known about the node's class: its label if it is a training node, else the probabilities that the stage
    /// before gives.
    Labels,
    /// Labels first. If they did not help, embeddings of what came of them; not at node level, where the validation
    /// labels that tell are private.
    Auto,
}

/// The name, as it is written in commands and files.
fn written(value: &impl Serialize, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    f.write_str(serde_json::to_value(value).ok().as_ref().and_then(|v| v.as_str()).unwrap_or("?"))
}

impl std::fmt::Display for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        written(self, f)
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        written(self, f)
    }
}

/// How the influence of one sender is bounded at node level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bounding {
    /// Every edge is used, with weight C / sqrt(out-degree).
    Weight,
    /// Every edge is used, with weight min(1, C / sqrt(out-degree)).
    Cap,
    /// At most C^2 out-edges are used, chosen at random, with weight 1.
    Sample,
}

/// Which epoch of a stage is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Selection {
    /// The first one with the best validation accuracy; not at node level, where validation labels are private.
    BestValidation,
    /// The last one.
    LastEpoch,
}

/// By which theorem noise is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accounting {
    /// The tightest that is proven: exact for Gaussians, privacy loss distributions with sampling.
    Best,
    /// Renyi divergences, as in the published experiments.
    Rdp,
    /// The closed forms printed in the paper.
    Theorem,
}

/// How a delta is chosen where none is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeltaRule {
    /// At most a tenth of one over the number of records, rounded down to a power of ten.
    Records,
    /// As published: as many zeros as the number of directed edges, or of training nodes, has digits. Settings that say
    /// nothing were written when this was the only rule.
    Published,
}

impl DeltaRule {
    fn published() -> DeltaRule {
        DeltaRule::Published
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    fn is_published(&self) -> bool {
        *self == DeltaRule::Published
    }
}

/// How the outputs of the base networks are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names are those of the literature")]
pub enum Combination {
    Cat,
    Sum,
    Mean,
    Max,
    Wsum,
    Attn,
    Lstm,
}

/// A non-linear function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names are those of the literature")]
pub enum Nonlinearity {
    Selu,
    Relu,
    Tanh,
}

/// Everything that decides a training run besides the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How the model is trained.
    pub method: Method,
    /// Which unit is protected.
    pub level: Level,
    /// Edge level: protect a friendship (both directions) rather than one direction.
    pub undirected: bool,
    /// Edge level: `undirected` follows from the graph, see [`Settings::for_graph`]. Whether the graph is symmetric then
    /// counts as public, and the statement says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unit_from_data: bool,
    /// The privacy budget; not at level none.
    pub epsilon: Option<f64>,
    /// Its delta; chosen from the number of records where not given.
    pub delta: Option<f64>,
    /// By which rule.
    #[serde(default = "DeltaRule::published", skip_serializing_if = "DeltaRule::is_published")]
    pub delta_rule: DeltaRule,
    /// The number of aggregations K.
    pub depth: usize,
    /// Method progap: what a node sends.
    pub messages: Messages,
    /// The width of hidden layers.
    pub hidden: usize,
    /// The layers of each base network.
    pub layers: usize,
    /// GAP: the layers of the encoder.
    pub encoder_layers: usize,
    /// The non-linear function.
    pub activation: Nonlinearity,
    /// How base networks are combined.
    pub jk: Combination,
    /// The share of values set to zero in training.
    pub dropout: f64,
    /// Train only the newest base network in each stage.
    pub layerwise: bool,
    /// The learning rate.
    pub learning_rate: f64,
    /// The weight decay.
    pub weight_decay: f64,
    /// Epochs in each stage.
    pub epochs: usize,
    /// The expected batch size at node level; elsewhere batches are the whole training set.
    pub batch_size: usize,
    /// Node level: the norm to which per-sample gradients are clipped.
    pub clip: f64,
    /// Node level: how the influence of one sender is bounded.
    pub bounding: Bounding,
    /// Node level: the square of a sender's largest influence C; with sampling, its largest number of edges.
    pub max_degree: u32,
    /// Node level: the noise multiplier of gradients divided by that of aggregations.
    pub gradient_noise_ratio: f64,
    /// Which epoch of a stage is kept.
    pub selection: Selection,
    /// By which theorem noise is chosen.
    pub accounting: Accounting,
    /// For experiments: makes noise, split and initial values repeatable, and the release not private.
    pub seed: Option<u64>,
}

impl Settings {
    /// The recommended settings of a level: tight and provable, with label messages.
    ///
    /// They are the same for every graph (docs/method.md): one aggregation at node level, where gradients cost budget too
    /// and need it less than the aggregate does.
    pub fn new(level: Level) -> Settings {
        Settings::of(Method::Progap, level)
    }

    /// What the methods have in common; of progap, the settings for embeddings as messages.
    pub fn plain(level: Level) -> Settings {
        let node = level == Level::Node;
        Settings {
            method: Method::Progap,
            level,
            undirected: false,
            unit_from_data: false,
            epsilon: match level {
                Level::None => None,
                Level::Edge => Some(1.0),
                Level::Node => Some(8.0),
            },
            delta: None,
            delta_rule: DeltaRule::Records,
            depth: 2,
            messages: Messages::Embeddings,
            hidden: 16,
            layers: 1,
            encoder_layers: 2,
            activation: Nonlinearity::Selu,
            jk: Combination::Cat,
            dropout: 0.0,
            layerwise: false,
            learning_rate: 0.01,
            weight_decay: 0.0,
            epochs: if node { 10 } else { 100 },
            batch_size: 256,
            clip: 1.0,
            bounding: Bounding::Weight,
            max_degree: 100,
            gradient_noise_ratio: 1.0,
            selection: if node { Selection::LastEpoch } else { Selection::BestValidation },
            accounting: Accounting::Best,
            seed: None,
        }
    }

    /// The defaults of a method at a level.
    pub fn of(method: Method, level: Level) -> Settings {
        method.recipe().defaults(level)
    }

    /// The published settings: noise by Renyi divergences, degree bounds by sampling, and the published promise.
    pub fn paper(method: Method, level: Level) -> Settings {
        let settings = method.recipe().published(level);
        Settings { accounting: Accounting::Rdp, bounding: Bounding::Sample, ..settings }
            .with_published_promise()
    }

    /// The same with the published unit, the directed edge, and the published rule for delta: for whoever compares with
    /// published figures.
    #[must_use]
    pub fn with_published_promise(self) -> Settings {
        Settings { undirected: false, unit_from_data: false, delta_rule: DeltaRule::Published, ..self }
    }

    /// The same with the unit that a graph suggests: the friendship where every edge has an edge back, the directed edge
    /// elsewhere. Nothing is looked at where a run touches no edge, or protects none.
    #[must_use]
    pub fn unit_by_graph(self) -> Settings {
        let unit_from_data = self.level == Level::Edge;
        Settings { undirected: false, unit_from_data, ..self }
    }

    /// The settings with the unit decided, before anything is planned: what a run keeps, and all that comes after it reads.
    #[must_use]
    pub fn for_graph(&self, graph: &Graph) -> Settings {
        match self.unit_from_data && self.touches_edges() {
            true => Settings { undirected: graph.is_symmetric(), ..self.clone() },
            false => self.clone(),
        }
    }

    /// The settings with all that follows from the data decided: the unit, and, where there are no validation nodes to choose
    /// by, that the last epoch is taken. Which nodes are validation nodes is public.
    #[must_use]
    pub fn for_data(&self, dataset: &Dataset) -> Settings {
        let chooses = dataset.split().is_some_and(|split| split.count(Part::Val) > 0);
        let selection = if chooses { self.selection } else { Selection::LastEpoch };
        Settings { selection, ..self.for_graph(dataset.graph()) }
    }

    /// What may be done with columns in units of their own: at node level features are private, and nothing may be computed
    /// over rows.
    pub fn preparation(&self) -> Preparation {
        match self.level {
            Level::None | Level::Edge => Preparation::Standardise,
            Level::Node => Preparation::RowByRow,
        }
    }

    /// Whether a run asks anything of the edges.
    pub fn touches_edges(&self) -> bool {
        self.method.recipe().touches_edges(self)
    }

    /// Refuses what cannot work, before any budget is spent.
    pub fn check(&self) -> Result<()> {
        within("depth", self.depth as f64, 0.0, 50.0)?;
        within("hidden width", self.hidden as f64, 1.0, 64.0)?;
        within("number of layers", self.layers as f64, 1.0, 8.0)?;
        within("number of encoder layers", self.encoder_layers as f64, 1.0, 8.0)?;
        within("dropout", self.dropout, 0.0, 0.99)?;
        within("learning rate", self.learning_rate, 1e-9, 1e3)?;
        within("weight decay", self.weight_decay, 0.0, 1e3)?;
        within("number of epochs", self.epochs as f64, 1.0, 1e6)?;
        within("batch size", self.batch_size as f64, 1.0, 1e9)?;
        within("clip", self.clip, 1e-9, 1e9)?;
        within("max degree", self.max_degree.into(), 1.0, 1e9)?;
        within("gradient noise ratio", self.gradient_noise_ratio, 1e-3, 1e3)?;
        if !catalogue::entry(self.method).levels.contains(&self.level) {
            return Err(Error::Unsuitable(format!(
                "the method {} has no level {}; these have: {}",
                self.method,
                self.level,
                catalogue::with_level(self.level)
            )));
        }
        self.method.recipe().check(self)?;
        if self.method.recipe().is_pure() && self.delta.is_some() {
            return Err(Error::Unsuitable(format!(
                "the method {} is private with a delta of zero: leave --delta out",
                self.method
            )));
        }
        match (self.level, self.epsilon, self.delta) {
            (Level::None, None, None) => {}
            (Level::None, _, _) => {
                return Err(Error::Contradiction(
                    "epsilon and delta belong to a private level: give --level edge or --level node, or leave them out",
                ));
            }
            (_, None, _) => return Err(Error::Contradiction("a private level needs an epsilon")),
            (_, Some(epsilon), delta) => {
                within("epsilon", epsilon, *EPSILONS.start(), *EPSILONS.end())?;
                within("delta", delta.unwrap_or(1e-5), *DELTAS.start(), *DELTAS.end())?;
            }
        }
        if self.undirected && self.level != Level::Edge {
            return Err(Error::Contradiction("--undirected belongs to --level edge"));
        }
        if self.unit_from_data && self.level != Level::Edge {
            return Err(Error::Contradiction("the unit is chosen at --level edge only"));
        }
        if self.level == Level::Node && self.selection == Selection::BestValidation {
            return Err(Error::Contradiction(
                "validation labels are private at node level, so they cannot choose an epoch: keep the last one",
            ));
        }
        if self.level == Level::Node && self.dropout > 0.0 {
            return Err(Error::Contradiction("dropout is not supported at node level"));
        }
        Ok(())
    }
}

/// Refuses a number outside of a range.
pub(crate) fn within(name: &'static str, value: f64, low: f64, high: f64) -> Result<()> {
    if value.is_finite() && (low..=high).contains(&value) {
        return Ok(());
    }
    let low = if low > 0.0 && low < 1e-3 { format!("{low:e}") } else { low.to_string() };
    Err(Error::Setting { name, value: value.to_string(), expected: format!("{low} to {high}") })
}
