//! GraphSAGE (Hamilton et al. 2017) on a graph that may be seen: full batches, gradients through the graph. What its
//! convolutions read at the end is kept, so that predictions need no edge.

use progap_graph::{Graph, Part};
use progap_nn::{Batch, Optimiser, SageArchitecture, sage_epoch};

use super::catalogue::Entry;
use super::objective::{Objective, StepContext, row_weights};
use super::trainer::Trainer;
use super::{Choice, Fitted, Method, Recipe, norm, rows_and_aggregates};
use crate::model::{Model, Shape};
use crate::propagate::Senders;
use crate::settings::{Level, Settings, within};
use crate::vault::Vault;
use crate::{Error, Result};

/// The method.
pub(super) struct GraphSage;

pub(crate) const ENTRY: Entry = Entry {
    method: Method::Sage,
    levels: &[Level::None],
    what: "GraphSAGE: rows mixed with the mean of their neighbours', layer by layer",
    protects: "nothing: it shows what is lost to noise",
    paper: "Hamilton et al. 2017, Inductive representation learning on large graphs",
};

impl Recipe for GraphSage {
    fn defaults(&self, level: Level) -> Settings {
        Settings { method: Method::Sage, ..Settings::plain(level) }
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        check(settings, 5)
    }

    fn shape(&self, settings: &Settings, sizes: (usize, usize), _: usize, _: Option<&Choice>) -> Shape {
        shape(settings, sizes)
    }

    fn holds_the_graph(&self) -> bool {
        true
    }

    fn has_features_stage(&self) -> bool {
        false
    }

    fn fit(&self, trainer: Trainer<'_>) -> Result<Fitted> {
        let graph = trainer.vault.public_graph().cloned();
        fit_along(
            trainer,
            &graph.ok_or(Error::Contradiction("the method sage sees the graph: use `level none`"))?,
        )
    }
}

/// Refuses what no GraphSAGE of up to this many convolutions is.
pub(super) fn check(settings: &Settings, most: u32) -> Result<()> {
    within("depth", settings.depth as f64, 1.0, most.into())
}

/// The shape: as many convolutions as the depth says.
pub(super) fn shape(settings: &Settings, (columns, classes): (usize, usize)) -> Shape {
    Shape::Sage(SageArchitecture {
        hidden: settings.hidden,
        base_layers: settings.layers,
        convolutions: settings.depth,
        activation: settings.activation.layer(),
        norm: norm(settings),
        dropout: settings.dropout as f32,
        jk: settings.jk.layer(),
        ..SageArchitecture::new(columns, classes)
    })
}

/// Trains along a graph that left the vault, or was public.
pub(super) fn fit_along(mut trainer: Trainer<'_>, graph: &Graph) -> Result<Fitted> {
    let train = trainer.vault.need_public_rows()?.nodes(Part::Train);
    let mut objective = GraphObjective { senders: Senders::mean(graph), train };
    let shape = shape(trainer.settings, trainer.shape);
    trainer.train_new(0, shape, &mut objective)?;
    let accuracies = trainer.evaluate(&objective)?;
    let near = {
        let inputs = trainer.vault.need_public_rows()?.own()?;
        trainer.model(0)?.sage()?.aggregates(&inputs, &objective.senders)?
    };
    let aggregates = trainer.keep(near, trainer.settings.hidden)?;
    let reads = rows_and_aggregates(aggregates.len());
    Fitted::new(trainer, vec![(0, reads)], aggregates, accuracies)
}

/// A GraphSAGE over public rows, along a graph that may be seen.
struct GraphObjective<'g> {
    senders: Senders<'g>,
    train: Vec<u32>,
}

impl Objective for GraphObjective<'_> {
    fn epoch(
        &mut self,
        context: &mut StepContext<'_>,
        model: &mut Model,
        optimiser: &mut Optimiser,
        done: usize,
    ) -> Result<(Option<f64>, Option<f64>)> {
        let rows = context.vault.need_public_rows()?;
        let inputs = rows.own()?;
        let batch = Batch::new(&inputs, rows.labels(), &self.train, rows.classes())?;
        let weights = context.vault.class_weights().map(|weights| row_weights(rows.labels(), &weights));
        let batch = weights.as_ref().map_or(Ok(batch), |weights| batch.weighted(weights))?;
        let stats =
            sage_epoch(model.sage_mut()?, optimiser, batch, &self.senders, context.seed ^ done as u64)?;
        Ok((Some(stats.loss), Some(stats.accuracy)))
    }

    fn accuracy(&self, vault: &Vault, model: &Model, part: Part) -> Result<f64> {
        let rows = vault.need_public_rows()?;
        let (inputs, nodes) = (rows.own()?, rows.nodes(part));
        if nodes.is_empty() {
            return Ok(f64::NAN);
        }
        let batch = Batch::new(&inputs, rows.labels(), &nodes, rows.classes())?;
        Ok(model.sage()?.accuracy_along(batch, &self.senders)?)
    }

    fn probabilities(&self, vault: &Vault, model: &Model, nodes: &[u32]) -> Result<Vec<f32>> {
        let (inputs, sage) = (vault.need_public_rows()?.own()?, model.sage()?);
        let near = sage.aggregates(&inputs, &self.senders)?;
        Ok(sage.probabilities(&inputs, &near.iter().map(Vec::as_slice).collect::<Vec<_>>(), nodes)?)
    }
}
