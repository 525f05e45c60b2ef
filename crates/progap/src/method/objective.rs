//! The objective of a stage: how an epoch is made of the data, and how a model is evaluated.

use progap_graph::Part;
use progap_nn::{
    Batch, DistributedBatch, EpochStats, Network, Optimiser, Packed, accuracy, apply, chunk_rows, epoch,
    probabilities,
};

use crate::assessment::{Assessment, Metric};
use crate::model::Model;
use crate::plan::Plan;
use crate::ranks::{Cut, GatheredBatch, Partition, packed_order};
use crate::settings::{Level, Settings};
use crate::vault::{Aggregates, Gradient, Rows, Vault};
use crate::{Error, Result, memory};

/// The objective of a stage: how an epoch is made of the data, and how a model is evaluated.
pub(crate) trait Objective {
    /// Trains for one epoch, the `done`-th of the stage; gives loss and training accuracy where they are known.
    fn epoch(
        &mut self,
        trainer: &mut StepContext<'_>,
        model: &mut Model,
        optimiser: &mut Optimiser,
        done: usize,
    ) -> Result<(Option<f64>, Option<f64>)>;

    /// The accuracy on a part of the nodes, **without any protection**.
    fn accuracy(&self, vault: &Vault, model: &Model, part: Part) -> Result<f64>;

    /// The class probabilities of some nodes, where rows are public: a row of classes for each.
    fn probabilities(&self, vault: &Vault, model: &Model, nodes: &[u32]) -> Result<Vec<f32>>;
}

/// How good a model is on the validation nodes by a metric other than the accuracy; nothing where there are none, or
/// where the metric says nothing about them.
pub(super) fn val_score(
    objective: &dyn Objective,
    vault: &Vault,
    model: &Model,
    metric: Metric,
) -> Result<Option<f64>> {
    let rows = vault.need_public_rows()?;
    let nodes = rows.nodes(Part::Val);
    let probabilities = objective.probabilities(vault, model, &nodes)?;
    let truth: Vec<u32> = nodes.iter().map(|&node| rows.labels()[node as usize]).collect();
    let (truth, probabilities) = match vault.part() {
        None => (truth, probabilities),
        Some(part) => (part.gather(&truth)?, part.gather(&probabilities)?),
    };
    let scores = Assessment::of_probabilities(&truth, &probabilities, rows.classes()).scores();
    Ok(scores.map(|scores| scores.get(metric)).filter(|score| score.is_finite()))
}

/// The context that an epoch works in.
pub(crate) struct StepContext<'d> {
    pub vault: &'d mut Vault,
    pub settings: &'d Settings,
    pub plan: &'d Plan,
    pub stage: usize,
    pub seed: u64,
    /// Feature columns and classes.
    pub(super) shape: (usize, usize),
}

impl StepContext<'_> {
    /// The gradient steps that belong to the `done`-th epoch.
    pub fn steps(&self, done: usize) -> std::ops::Range<u64> {
        let until = |epoch: usize| self.plan.steps * epoch as u64 / self.settings.epochs as u64;
        until(done - 1)..until(done)
    }
}

/// A network over the nodes' rows and the aggregates: full batches where rows are public, noisy gradients where they
/// are not.
pub(crate) struct RowObjective<'a> {
    aggregates: &'a Aggregates,
    train: Vec<u32>,
    /// How much each class counts, where that is not the same.
    class_weights: Option<Vec<f32>>,
    /// Made for the first epoch, where rows are public.
    copies: Option<Copies>,
    /// Where rows lie in several ranks: those that this one works on, brought together for the first epoch unless they
    /// are its own.
    travelled: Option<GatheredBatch>,
}

/// The rows that every epoch reads, unless they are too many.
struct Copies {
    train: Option<Packed>,
    validation: Option<Packed>,
}

impl<'a> RowObjective<'a> {
    pub fn new(vault: &Vault, aggregates: &'a Aggregates) -> Self {
        let train = vault.public_rows().map(|rows| rows.nodes(Part::Train)).unwrap_or_default();
        let class_weights = vault.class_weights();
        RowObjective { aggregates, train, class_weights, copies: None, travelled: None }
    }
}

impl RowObjective<'_> {
    /// An epoch over the training rows of all ranks.
    fn shared_epoch(
        &mut self,
        (part, rows): (&Partition, &Rows),
        network: &mut Network,
        optimiser: &mut Optimiser,
        seed: u64,
    ) -> Result<EpochStats> {
        let inputs = rows.inputs(self.aggregates)?;
        let widths: usize = self.aggregates.iter().map(|aggregate| aggregate.width).sum();
        let class_weights = self.class_weights.as_ref();
        let weights = |labels: &[u32]| class_weights.map(|weights| row_weights(labels, weights));
        if !part.are_few(&rows.features, widths) {
            // Borders between ranks stand where chunks begin.
            let own = part.own();
            let first = part.train.partition_point(|&node| (node as usize) < own.start);
            let shared = DistributedBatch {
                collective: &part.ranks,
                rows: part.train.len(),
                first,
                numbered_from: own.start as u32,
            };
            let weights = weights(rows.labels());
            let batch = Batch::new(&inputs, rows.labels(), &self.train, rows.classes())?.shared(shared)?;
            let batch = weights.as_ref().map_or(Ok(batch), |weights| batch.weighted(weights))?;
            return Ok(epoch(network, optimiser, batch, seed)?);
        }
        if self.travelled.is_none() {
            let order = packed_order(part, rows)?;
            let cut = Cut::even(order.len(), chunk_rows(order.len()), part.ranks.size());
            self.travelled = Some(GatheredBatch::new(part, &inputs, rows.labels(), &order, &cut)?);
        }
        let travelled = self.travelled.as_ref().ok_or(Error::internal("rows were brought together"))?;
        let (inputs, weights) = (travelled.inputs()?, weights(travelled.labels()));
        let batch = travelled.batch(part, &inputs, rows.classes())?;
        let batch = weights.as_ref().map_or(Ok(batch), |weights| batch.weighted(weights))?;
        Ok(epoch(network, optimiser, batch, seed)?)
    }
}

/// The weight of each row by its label. Rows without a label are in no batch.
pub(crate) fn row_weights(labels: &[u32], class_weights: &[f32]) -> Vec<f32> {
    labels.iter().map(|&label| class_weights.get(label as usize).copied().unwrap_or(0.0)).collect()
}

impl Objective for RowObjective<'_> {
    fn epoch(
        &mut self,
        context: &mut StepContext<'_>,
        model: &mut Model,
        optimiser: &mut Optimiser,
        done: usize,
    ) -> Result<(Option<f64>, Option<f64>)> {
        let network = model.network_mut()?;
        let (settings, stage) = (context.settings, context.stage);
        if settings.level != Level::Node {
            let rows = context.vault.need_public_rows()?;
            let seed = context.seed ^ (stage as u64) << 32 ^ done as u64;
            if let Some(part) = context.vault.part() {
                let stats = self.shared_epoch((part, rows), network, optimiser, seed)?;
                return Ok((Some(stats.loss), Some(stats.accuracy)));
            }
            if self.copies.is_none() {
                let inputs = rows.inputs(self.aggregates)?;
                let copy = |nodes: &[u32]| match memory::bound() {
                    None => Packed::new(&inputs, rows.labels(), nodes),
                    // Rows that every epoch would read from a file again; what a run needs counts them.
                    Some(_) => Packed::within(usize::MAX, &inputs, rows.labels(), nodes),
                };
                let validation = Some(rows.nodes(Part::Val)).filter(|nodes| !nodes.is_empty());
                let (train, validation) = (copy(&self.train), validation.and_then(|nodes| copy(&nodes)));
                self.copies = Some(Copies { train, validation });
            }
            let packed = self.copies.as_ref().and_then(|copies| copies.train.as_ref());
            let inputs =
                packed.map_or_else(|| rows.inputs(self.aggregates), |packed| Ok(packed.inputs()?))?;
            let batch = match packed {
                Some(packed) => packed.batch(&inputs, rows.classes())?,
                None => Batch::new(&inputs, rows.labels(), &self.train, rows.classes())?,
            };
            let weights = self.class_weights.as_ref().map(|weights| {
                row_weights(packed.map_or_else(|| rows.labels(), |packed| packed.labels()), weights)
            });
            let batch = weights.as_ref().map_or(Ok(batch), |weights| batch.weighted(weights))?;
            let stats = epoch(network, optimiser, batch, seed)?;
            return Ok((Some(stats.loss), Some(stats.accuracy)));
        }
        let max_parameters = super::program(settings, context.shape, None).max_parameters()?;
        let name = |step: u64| format!("gradient {stage}/{step}");
        context.vault.expect_gradients(context.steps(done).map(name));
        for step in context.steps(done) {
            let (label, aggregates) = (&name(step), self.aggregates);
            let question = Gradient { label, network, max_parameters, aggregates };
            let gradient = context.vault.ask(question)?;
            apply(network, optimiser, &gradient)?;
        }
        Ok((None, None))
    }

    fn accuracy(&self, vault: &Vault, model: &Model, part: Part) -> Result<f64> {
        if let Model::Addressed(_) = model {
            return vault.unprotected_accuracy_of(model, self.aggregates, part);
        }
        let network = model.network()?;
        match self.copies.as_ref().and_then(|copies| copies.validation.as_ref()) {
            Some(packed) if part == Part::Val => {
                let inputs = packed.inputs()?;
                let batch = packed.batch(&inputs, network.architecture().classes)?;
                Ok(accuracy(network, vault.evaluated(batch, part)?)?)
            }
            _ => vault.unprotected_accuracy(network, self.aggregates, part),
        }
    }

    fn probabilities(&self, vault: &Vault, model: &Model, nodes: &[u32]) -> Result<Vec<f32>> {
        let rows = vault.need_public_rows()?;
        Ok(probabilities(model.network()?, &rows.inputs(self.aggregates)?, nodes)?)
    }
}
