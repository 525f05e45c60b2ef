//! GraphSAGE (Hamilton et al. 2017) on a graph that may be seen: full batches, gradients through the graph. What its
//! convolutions read at the end is kept, so that predictions need no edge.

use progap_graph::{Graph, Part};
use progap_nn::{Batch, Optimiser, SageArchitecture, sage_epoch};

use super::objective::{Objective, StepContext, row_weights};
use super::trainer::Trainer;
use super::{
    Capabilities, Choice, Defaults, Fitted, Method, MethodKind, MethodSpec, Program, Stage, norm,
    rows_and_aggregates,
};
use crate::model::{Model, Shape};
use crate::plan::PublicFacts;
use crate::propagate::Senders;
use crate::settings::{Level, Settings, within};
use crate::vault::Vault;
use crate::{Error, Remedy, Result};

/// The method.
pub(super) struct GraphSage;

const SPEC: MethodSpec = MethodSpec {
    levels: &[Level::None],
    what: "GraphSAGE: rows mixed with the mean of their neighbours', layer by layer",
    protects: "nothing: it shows what is lost to noise",
    paper: "Hamilton et al. 2017, Inductive representation learning on large graphs",
    can: Capabilities { mixes_rows: true, ..Capabilities::PLAIN },
    ..MethodSpec::plain(MethodKind::Sage)
};

impl Method for GraphSage {
    fn spec(&self) -> &'static MethodSpec {
        &SPEC
    }

    fn defaults(&self, level: Level) -> Defaults {
        Defaults::published(Settings { method: MethodKind::Sage, ..Settings::plain(level) })
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        check(settings)
    }

    fn program(&self, settings: &Settings, sizes: PublicFacts, _: Option<&Choice>) -> Program {
        Program::new(settings, [stage(settings, sizes, settings.depth)])
    }

    fn fit(&self, trainer: Trainer<'_>) -> Result<Fitted> {
        let graph = trainer.vault.public_graph().cloned();
        fit_along(
            trainer,
            &graph.ok_or(
                Error::contradiction("the method sage sees the graph").remedy(Remedy::set("level", "none")),
            )?,
        )
    }
}

/// Refuses what no GraphSAGE is.
pub(super) fn check(settings: &Settings) -> Result<()> {
    within("depth", settings.depth as f64, 1.0, 5.0)
}

/// The one stage, with this many convolutions.
pub(super) fn stage(settings: &Settings, sizes: PublicFacts, convolutions: usize) -> Stage {
    let shape = Shape::Sage(SageArchitecture {
        hidden: settings.hidden,
        base_layers: settings.layers,
        convolutions,
        activation: settings.activation.layer(),
        norm: norm(settings),
        dropout: settings.dropout as f32,
        jk: settings.jk.layer(),
        ..SageArchitecture::new(sizes.columns, sizes.classes)
    });
    Stage::by_epochs(settings, shape)
}

/// Trains along a graph that left the vault, or was public.
pub(super) fn fit_along(mut trainer: Trainer<'_>, graph: &Graph) -> Result<Fitted> {
    let train = trainer.vault.need_public_rows()?.nodes(Part::Train);
    let mut objective = GraphObjective { senders: Senders::mean(graph), train };
    trainer.train_new(0, &mut objective)?;
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
