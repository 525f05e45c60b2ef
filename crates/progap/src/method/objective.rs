//! What a stage trains for: how an epoch is made of the data, and how a model is evaluated.

use progap_graph::Part;
use progap_nn::{Batch, Optimiser, Packed, accuracy, apply, epoch, probabilities};
use progap_privacy::noise::GradientGrid;

use crate::assessment::{Assessment, Metric};
use crate::model::Model;
use crate::plan::Plan;
use crate::settings::{Level, Settings};
use crate::vault::{Aggregates, Vault};
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

/// How good a model is on the validation nodes by a metric other than the accuracy; nothing where there are none, or where the metric
/// says nothing about them.
pub(super) fn val_score(
    objective: &dyn Objective,
    vault: &Vault,
    model: &Model,
    metric: Metric,
) -> Result<Option<f64>> {
    let rows = vault.public_rows().ok_or(Error::Contradiction("rows are private at node level"))?;
    let nodes = rows.nodes(Part::Val);
    let probabilities = objective.probabilities(vault, model, &nodes)?;
    let truth: Vec<u32> = nodes.iter().map(|&node| rows.labels()[node as usize]).collect();
    let scores = Assessment::of_probabilities(&truth, &probabilities, rows.classes()).scores();
    Ok(scores.map(|scores| scores.get(metric)).filter(|score| score.is_finite()))
}

/// What an epoch works with.
pub(crate) struct StepContext<'d> {
    pub vault: &'d mut Vault,
    pub settings: &'d Settings,
    pub plan: &'d Plan,
    pub stage: usize,
    pub seed: u64,
    /// Feature columns and classes.
    pub(super) shape: (usize, usize),
    pub(super) grid: &'d mut Option<GradientGrid>,
}

impl StepContext<'_> {
    /// The grid for the gradients of any stage, made by the vault for the first of them. It is charged for the stage with the
    /// most parameters, so that one table of noise serves them all. [`StepContext::put_grid_back`] puts it back.
    pub fn take_grid(
        &mut self,
        make: impl FnOnce(&Vault, usize) -> Result<GradientGrid>,
    ) -> Result<GradientGrid> {
        match self.grid.take() {
            Some(grid) => Ok(grid),
            None => make(self.vault, super::most_parameters(self.settings, self.shape)?),
        }
    }

    /// Keeps the grid for the next epoch.
    pub fn put_grid_back(&mut self, grid: GradientGrid) {
        *self.grid = Some(grid);
    }

    /// The gradient steps that belong to the `done`-th epoch.
    pub fn steps(&self, done: usize) -> std::ops::Range<u64> {
        let until = |epoch: usize| self.plan.steps * epoch as u64 / self.settings.epochs as u64;
        until(done - 1)..until(done)
    }
}

/// A network over the nodes' rows and the aggregates: full batches where rows are public, noisy gradients where they are
/// not.
pub(crate) struct RowObjective<'a> {
    aggregates: &'a Aggregates,
    train: Vec<u32>,
    /// How much each class counts, where that is not the same.
    class_weights: Option<Vec<f32>>,
    /// Made for the first epoch, where rows are public.
    copies: Option<Copies>,
}

/// The rows that every epoch reads, unless they are too many.
struct Copies {
    train: Option<Packed>,
    validation: Option<Packed>,
}

impl<'a> RowObjective<'a> {
    pub fn new(vault: &Vault, aggregates: &'a Aggregates) -> Self {
        let train = vault.public_rows().map(|rows| rows.nodes(Part::Train)).unwrap_or_default();
        RowObjective { aggregates, train, class_weights: vault.class_weights(), copies: None }
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
        let (settings, plan, stage) = (context.settings, context.plan, context.stage);
        if settings.level != Level::Node {
            let rows =
                context.vault.public_rows().ok_or(Error::Contradiction("rows are private at node level"))?;
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
            let batch = match &weights {
                Some(weights) => batch.weighted(weights)?,
                None => batch,
            };
            let stats = epoch(network, optimiser, batch, context.seed ^ (stage as u64) << 32 ^ done as u64)?;
            return Ok((Some(stats.loss), Some(stats.accuracy)));
        }
        let grid = context.take_grid(|vault, parameters| vault.gradient_grid(parameters, plan))?;
        for step in context.steps(done) {
            let query = format!("gradient {stage}/{step}");
            let gradient = context.vault.gradient(&query, network, self.aggregates, &grid, plan)?;
            apply(network, optimiser, &gradient)?;
        }
        context.put_grid_back(grid);
        Ok((None, None))
    }

    fn accuracy(&self, vault: &Vault, model: &Model, part: Part) -> Result<f64> {
        let network = model.network()?;
        match self.copies.as_ref().and_then(|copies| copies.validation.as_ref()) {
            Some(packed) if part == Part::Val => {
                let inputs = packed.inputs()?;
                Ok(accuracy(network, packed.batch(&inputs, network.architecture().classes)?)?)
            }
            _ => vault.unprotected_accuracy(network, self.aggregates, part),
        }
    }

    fn probabilities(&self, vault: &Vault, model: &Model, nodes: &[u32]) -> Result<Vec<f32>> {
        let rows = vault.public_rows().ok_or(Error::Contradiction("rows are private at node level"))?;
        Ok(probabilities(model.network()?, &rows.inputs(self.aggregates)?, nodes)?)
    }
}
