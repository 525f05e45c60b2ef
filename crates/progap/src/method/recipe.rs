//! The interface of a method to the product: one file each implements it, and the [registry](super::registry) lists them.

use progap_graph::Dataset;
use progap_nn::{Input, embed};
use progap_privacy::noise::{AnySource, Randomness};
use progap_privacy::{Event, Unit};

use super::history::EpochRecord;
use super::trainer::Trainer;
use super::{Choice, Fitted};
use crate::audit::evidence::Trial;
use crate::audit::mechanism;
use crate::model::{Model, Shape};
use crate::plan::{self, Calibrator, Plan, PublicSizes};
use crate::predictor::Predictor;
use crate::query::{Queries, Query};
use crate::release::Release;
use crate::rows::Rows;
use crate::settings::{Level, Settings, Size};
use crate::{Result, units};

/// What nodes learn of their neighbours where these send what is known about their class.
pub(crate) const SUMS_OF_CLASSES: &str = "sums of neighbours' class probabilities";

/// The target of an audit, and how hard it is attacked.
pub(crate) struct AuditTarget<'t> {
    pub dataset: &'t Dataset,
    pub settings: &'t Settings,
    pub plan: &'t Plan,
    pub canaries: Option<usize>,
    /// Fresh randomness, as often as it is needed.
    pub fresh: &'t dyn Fn() -> Randomness<AnySource>,
}

/// Batches and epochs of a method at node level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batches {
    /// How many make an epoch of few training nodes. With fewer a stage would have too few steps to learn anything.
    pub of_few: usize,
    /// The size of a batch of many training nodes.
    pub largest: usize,
    /// The epochs of a stage.
    pub epochs: usize,
}

/// A method. What most methods have in common is the default.
pub(crate) trait Recipe: Sync {
    // Settings.

    /// The recommended settings at a level.
    fn defaults(&self, level: Level) -> Settings;

    /// Whether others have published it with settings of their own.
    fn is_published(&self) -> bool {
        true
    }

    /// The published settings at a level, but for accounting and degree bounds.
    fn published(&self, level: Level) -> Settings {
        self.defaults(level)
    }

    /// Refuses settings that this method cannot train with.
    fn check(&self, _settings: &Settings) -> Result<()> {
        Ok(())
    }

    /// Whether it trains on several ranks: it asks the vault for aggregates and gradients, and for nothing else.
    fn trains_on_ranks(&self) -> bool {
        false
    }

    /// Which settings it alone has: elsewhere they decide nothing.
    fn own_settings(&self) -> &'static [&'static str] {
        &[]
    }

    /// Which of its own settings leave no trace in a release for this many classes.
    fn without_trace(&self, _settings: &Settings, _classes: usize) -> Vec<&'static str> {
        vec![]
    }

    /// Which settings of the model and its training it does not read.
    fn ignored_settings(&self) -> &'static [&'static str] {
        &[]
    }

    /// The aggregations that public sizes suggest; nothing where they have no say.
    fn depth_for(&self, _settings: &Settings, _sizes: PublicSizes) -> Option<usize> {
        None
    }

    /// The sizes by which [`Recipe::depth_for`] suggests them at a private level.
    fn depth_follows_from(&self) -> &'static [Size] {
        &[]
    }

    /// Whether its networks have to tell all classes apart by their width, so that it follows from the number of classes.
    fn learns_classes(&self, _settings: &Settings) -> bool {
        false
    }

    /// The batches and epochs that public sizes suggest at node level.
    fn batches(&self, settings: &Settings, _sizes: PublicSizes) -> Batches {
        Batches { of_few: 16, largest: settings.batch_size, epochs: settings.epochs }
    }

    /// The epochs of each stage.
    fn epochs(&self, settings: &Settings) -> usize {
        settings.epochs
    }

    // Queries.

    /// The number of stages: models that are trained one after the other.
    fn stages(&self, _settings: &Settings) -> usize {
        1
    }

    /// The number of noisy aggregates that are asked for.
    fn aggregations(&self, _settings: &Settings) -> usize {
        0
    }

    /// Whether a run asks anything of the edges.
    fn touches_edges(&self, settings: &Settings) -> bool {
        self.aggregations(settings) > 0
    }

    /// Whether its guarantee has a delta of zero.
    fn is_pure(&self) -> bool {
        false
    }

    /// Whether nodes can receive along edges in both directions, as messages of their own.
    fn hears_both_ways(&self) -> bool {
        false
    }

    /// Whether its plan can hold noisy counts at node level: of classes, to balance them, and of values, to bring columns to scale.
    fn takes_counts(&self) -> bool {
        false
    }

    /// Whether messages can be multiplied with the weights of edges.
    fn reads_weights(&self) -> bool {
        false
    }

    /// Whether batches hold nodes with their senders.
    fn reads_senders(&self) -> bool {
        false
    }

    /// Everything that a run asks of private data, with noise as large as the sensitivity of each query: see [`plan::asked`].
    fn queries(&self, settings: &Settings, sizes: PublicSizes) -> Result<Queries> {
        plan::sums(settings, sizes)
    }

    /// The same with the noise that the budget pays for.
    fn plan(&self, calibrator: &Calibrator<'_>, settings: &Settings, sizes: PublicSizes) -> Result<Plan> {
        Plan::calibrated(calibrator, self.queries(settings, sizes)?, settings, sizes)
    }

    /// The event that a query at edge level is to an accountant where neighbours differ in the given unit of an edge; nothing where no rule is
    /// known.
    fn in_unit(&self, query: &Query, unit: Unit) -> Option<Event> {
        units::sum_in_unit(&query.event, unit)
    }

    // The model.

    /// The shape of the model that a stage trains, for (feature columns, classes) and what was chosen.
    fn shape(
        &self,
        settings: &Settings,
        sizes: (usize, usize),
        stage: usize,
        choice: Option<&Choice>,
    ) -> Shape;

    /// The widths of the aggregates, for (feature columns, classes) and what was chosen.
    fn aggregate_widths(
        &self,
        settings: &Settings,
        _sizes: (usize, usize),
        _choice: Option<&Choice>,
    ) -> Vec<usize> {
        vec![settings.hidden; settings.depth]
    }

    /// The width of the widest message.
    fn widest(&self, settings: &Settings, classes: usize) -> usize {
        settings.hidden.max(classes)
    }

    /// More parameters than the model of any stage has.
    fn most_parameters(&self, settings: &Settings, sizes: PublicSizes) -> u64 {
        plan::parameters_of_networks(settings, sizes)
    }

    /// The run's decision by its history so far and the number of validation nodes, where its settings leave that to it.
    fn choose(&self, _settings: &Settings, _history: &[EpochRecord], _val_nodes: usize) -> Option<Choice> {
        None
    }

    /// Whether it is stages that are selected, each of which is fitted at once, and not epochs.
    fn selects_stages(&self) -> bool {
        false
    }

    /// Whether the settings leave a choice to the run.
    fn leaves_a_choice(&self, _settings: &Settings) -> bool {
        false
    }

    /// The message that every node would have sent for the aggregate of that index, as far as a release tells; for whoever attacks it.
    fn sent(&self, release: &Release, rows: &Rows, index: usize) -> Result<Option<Vec<f32>>> {
        embeddings_sent(release.predictor(), rows, index)
    }

    /// What nodes learn of their neighbours, in words.
    fn summed(&self, _settings: &Settings) -> &'static str {
        "sums over neighbours"
    }

    /// Whether the first stage knows the features alone.
    fn has_features_stage(&self) -> bool {
        true
    }

    /// Whether stages of a run can serve another run that is deeper.
    fn shares_stages(&self) -> bool {
        false
    }

    /// Whether training holds edges in memory, so that it can keep to no bound.
    fn holds_the_graph(&self) -> bool {
        false
    }

    /// Whether training reads the rows of all nodes again and again, and not of labelled ones alone.
    fn reads_all_rows(&self, _dataset: &Dataset) -> bool {
        false
    }

    /// The most nodes, with or without a label, whose aggregates and probabilities a stage holds to be fitted to.
    fn most_fitted(&self) -> usize {
        0
    }

    /// Trains, from where the trainer stands.
    fn fit(&self, trainer: Trainer<'_>) -> Result<Fitted>;

    // The statement and the audit.

    /// Whether what the last model reads of the graph left the vault through a mechanism, or is as private as the rows.
    fn aggregates_are_protected(&self) -> bool {
        true
    }

    /// The guarantee in words, where it is another than that of the unit; `numbers` are its epsilon and delta.
    fn guarantee(&self, _numbers: &str) -> Option<String> {
        None
    }

    /// Public facts at node level beside sizes and settings, where they are other than the bound on senders and the batches.
    fn public_at_node_level(&self, _settings: &Settings, _plan: &Plan) -> Option<Vec<String>> {
        None
    }

    /// Attacks the queries of a run with canaries.
    fn audit(&self, target: &AuditTarget<'_>) -> Result<Vec<Trial>> {
        mechanism::audit_sums(target)
    }

    /// Whether a private choice among its settings is accounted for.
    fn tunes_privately(&self) -> bool {
        !self.is_pure() && self.aggregates_are_protected()
    }
}

/// Embeddings of inputs by the last model's own branches, where they are as wide as what was sent. An input that an earlier model
/// made was sent as it is.
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
