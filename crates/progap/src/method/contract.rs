//! The interface of a method to the product: one file each implements it, and the [registry](super::registry) lists
//! them.

use progap_nn::{Input, embed};
use serde::Serialize;

use super::history::EpochRecord;
use super::program::Program;
use super::trainer::Trainer;
use super::{Choice, Fitted, MethodKind};
use crate::Result;
use crate::model::Model;
use crate::plan::PublicFacts;
use crate::predictor::Predictor;
use crate::release::Release;
use crate::rows::Rows;
use crate::settings::{Level, Settings};

/// What nodes send that tell what is known about their class.
pub(crate) const CLASS_PROBABILITIES: &str = "class probabilities";

/// A method as a reader and the product want to know it: all that depends on no settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MethodSpec {
    /// The method.
    pub method: MethodKind,
    /// The levels it has.
    pub levels: &'static [Level],
    /// The method in one line.
    pub what: &'static str,
    /// The extent of its guarantee.
    pub protects: &'static str,
    /// The paper it is from.
    pub paper: &'static str,
    /// What it can do, and what it needs.
    #[serde(skip)]
    pub(crate) can: Capabilities,
    /// The settings that it has and that not all methods have.
    #[serde(skip)]
    pub(crate) own: &'static [&'static str],
    /// The settings of the model and its training that it does not read.
    #[serde(skip)]
    pub(crate) ignored: &'static [&'static str],
    /// Those of its own settings that leave no trace in a release.
    #[serde(skip)]
    pub(crate) unverifiable: &'static [&'static str],
}

impl MethodSpec {
    /// A method that is still to be described, with the settings that all have.
    pub(crate) const fn plain(method: MethodKind) -> MethodSpec {
        MethodSpec {
            method,
            levels: &[],
            what: "",
            protects: "",
            paper: "",
            can: Capabilities::PLAIN,
            own: &[],
            ignored: &[],
            unverifiable: &[],
        }
    }
}

/// What a method can do, and what it needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capabilities {
    /// It uses edges, in some way.
    pub uses_edges: bool,
    /// Its rows can lie in several ranks: it asks the vault for aggregates and gradients, and for nothing else.
    pub ranks: bool,
    /// Nodes can receive along edges in both directions, as messages of their own.
    pub both_directions: bool,
    /// Messages can be multiplied with the weights of edges.
    pub edge_weights: bool,
    /// Its plan can hold noisy counts at node level: of classes, to balance them, and of values, to bring columns to
    /// scale.
    pub histograms: bool,
    /// Its model mixes rows with those of neighbours: it holds edges in memory, and no stage knows the features alone.
    pub mixes_rows: bool,
    /// Batches hold nodes with their senders.
    pub neighbourhood_batches: bool,
    /// Its guarantee has a delta of zero.
    pub is_pure: bool,
    /// What the last model reads of the graph left the vault through a mechanism, or is as private as the rows.
    pub protects_predictions: bool,
    /// Stages of a run can serve another run that is deeper.
    pub shares_stages: bool,
    /// Stages are selected, each of which is fitted at once, and not epochs.
    pub selects_stages: bool,
    /// Its networks have to tell all classes apart by their width, unless that is the width of messages, too.
    pub width_by_classes: bool,
    /// How the depth follows from public sizes.
    pub depth: Option<DepthRule>,
}

impl Capabilities {
    /// A method that protects what it predicts, and can do nothing else.
    pub const PLAIN: Capabilities = Capabilities {
        uses_edges: true,
        ranks: false,
        both_directions: false,
        edge_weights: false,
        histograms: false,
        mixes_rows: false,
        neighbourhood_batches: false,
        is_pure: false,
        protects_predictions: true,
        shares_stages: false,
        selects_stages: false,
        width_by_classes: false,
        depth: None,
    };
}

/// How the number of aggregations follows from public sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DepthRule {
    /// At node level, for messages of labels: as many as the budget pays for beside the training after each.
    ByBudget,
    /// The fewer labels, the farther they must travel; the smaller the budget, the fewer sums it pays for.
    ByShareOfLabels,
}

/// Settings that a method begins with at a level.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Defaults {
    pub recommended: Settings,
    /// Those of the paper, accounting and degree bounds aside; `None` for a method that nobody else has published.
    pub published: Option<Settings>,
}

impl Defaults {
    /// Recommended as published.
    pub fn published(settings: Settings) -> Defaults {
        Defaults { published: Some(settings.clone()), recommended: settings }
    }
}

/// A method: what it is, which settings it begins with, what it asks and trains, and how it is fitted.
pub(crate) trait Method: Sync {
    /// What it is.
    fn spec(&self) -> &'static MethodSpec;

    /// The settings that it begins with at a level.
    fn defaults(&self, level: Level) -> Defaults;

    /// Refuses settings that it cannot train with.
    fn check(&self, _settings: &Settings) -> Result<()> {
        Ok(())
    }

    /// What a run with these settings asks and trains, for data of these columns and classes, as far as something was
    /// chosen.
    fn program(&self, settings: &Settings, sizes: PublicFacts, choice: Option<&Choice>) -> Program;

    /// The run's decision by its history so far and the number of validation nodes, where its settings leave that to
    /// it.
    fn choose(&self, _settings: &Settings, _history: &[EpochRecord], _val_nodes: usize) -> Option<Choice> {
        None
    }

    /// Trains, from where the trainer stands, step by step as its program says.
    fn fit(&self, trainer: Trainer<'_>) -> Result<Fitted>;

    /// The message that every node would have sent for the aggregate of that index, as far as a release tells; for
    /// an attacker.
    fn sent(&self, release: &Release, rows: &Rows, index: usize) -> Result<Option<Vec<f32>>> {
        embeddings_sent(release.predictor(), rows, index)
    }

    /// Whether [`Method::sent`] is close enough to what was sent for the aggregate of that index that the model reads a
    /// sum of it as it reads its own.
    #[cfg_attr(
        not(feature = "ledger"),
        expect(dead_code, reason = "asked where a ledger counts questions about new nodes")
    )]
    fn tells_messages(&self, _release: &Release, _index: usize) -> Result<bool> {
        Ok(false)
    }
}

/// Embeddings of inputs by the last model's own branches, where they are as wide as what was sent. An input that an
/// earlier model made was sent as it is.
pub(crate) fn embeddings_sent(predictor: &Predictor, rows: &Rows, index: usize) -> Result<Option<Vec<f32>>> {
    // The released model tells nothing of stages after its own.
    let Some(width) = predictor.aggregates.get(index).map(|aggregate| aggregate.width) else {
        return Ok(None);
    };
    let made = predictor.links.len() > 1;
    predictor.with_inputs(predictor.links.len() - 1, rows, |model, inputs| {
        // GraphSAGE's models do not tell what was sent.
        let Model::Network(network) = model else { return Ok(None) };
        Ok(match inputs.as_slice().get(index) {
            Some(&Input::Dense { columns, values }) if made && columns == width => Some(values.to_vec()),
            Some(&input) if network.architecture().hidden == width => Some(embed(network, index, input)?),
            _ => None,
        })
    })
}
