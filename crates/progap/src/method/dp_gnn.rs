//! DP-GNN (Daigavane et al. 2021): one convolution, trained by noisy sums of clipped gradients over nodes with their
//! senders. The parameters are private; **predictions are not**: they read the senders' rows as they are.

use progap_graph::Part;
use progap_nn::Optimiser;

use super::objective::{Objective, StepContext};
use super::trainer::Trainer;
use super::{
    Capabilities, Choice, Defaults, Fitted, Method, MethodKind, MethodSpec, Program, QueryKind, QuerySpec,
    rows_and_aggregates, sage,
};
use crate::model::Model;
use crate::plan::PublicFacts;
use crate::settings::{Bounding, Level, Settings};
use crate::vault::{SubgraphGradient, Vault};
use crate::{Error, Remedy, Result};

/// The method.
pub(super) struct DpGnn;

const SPEC: MethodSpec = MethodSpec {
    levels: &[Level::Node],
    what: "GraphSAGE with one convolution, by noisy gradients over nodes with their senders",
    protects: "training alone, each node's record from all others; predictions read the senders as they are",
    paper: "Daigavane et al. 2021, Node-level differentially private graph neural networks",
    can: Capabilities {
        mixes_rows: true,
        neighbourhood_batches: true,
        protects_predictions: false,
        ..Capabilities::PLAIN
    },
    ..MethodSpec::plain(MethodKind::DpGnn)
};

impl Method for DpGnn {
    fn spec(&self) -> &'static MethodSpec {
        &SPEC
    }

    fn defaults(&self, level: Level) -> Defaults {
        Defaults::published(Settings {
            method: MethodKind::DpGnn,
            depth: 1,
            bounding: Bounding::Sample,
            max_degree: 10,
            batch_size: 2048,
            epochs: 20,
            learning_rate: 0.02,
            ..Settings::plain(level)
        })
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        if settings.depth != 1 {
            return Err(
                Error::contradiction("the method dp-gnn has one convolution").remedy(Remedy::Drop("depth"))
            );
        }
        match settings.bounding {
            Bounding::Sample => Ok(()),
            _ => Err(Error::contradiction("the method dp-gnn bounds how many nodes a record can reach")
                .remedy(Remedy::Drop("bounding"))
                .remedy(Remedy::set("bounding", "sample"))),
        }
    }

    /// A term of a gradient is clipped to C, so that a record moves each that it touches, from one clipped gradient to
    /// any other, by at most 2C.
    fn program(&self, settings: &Settings, sizes: PublicFacts, _: Option<&Choice>) -> Program {
        let gradient = QuerySpec::of_kind(QueryKind::SubgraphGradient, 2.0 * settings.clip);
        Program::new(settings, [sage::stage(settings, sizes, 1).after([gradient])])
    }

    fn fit(&self, mut trainer: Trainer<'_>) -> Result<Fitted> {
        let mut objective = SubgraphObjective;
        trainer.train_new(0, &mut objective)?;
        let accuracies = trainer.evaluate(&objective)?;
        let near = trainer.vault.unprotected_aggregates(trainer.model(0)?.sage()?)?;
        let aggregates = trainer.keep(near, trainer.settings.hidden)?;
        let reads = rows_and_aggregates(aggregates.len());
        Fitted::new(trainer, vec![(0, reads)], aggregates, accuracies)
    }
}

/// A GraphSAGE over batches of nodes, each with its senders, all of it private.
struct SubgraphObjective;

impl Objective for SubgraphObjective {
    fn epoch(
        &mut self,
        context: &mut StepContext<'_>,
        model: &mut Model,
        optimiser: &mut Optimiser,
        done: usize,
    ) -> Result<(Option<f64>, Option<f64>)> {
        let sage = model.sage_mut()?;
        for step in context.steps(done) {
            let label = &format!("gradient {}/{step}", context.stage);
            let gradient = context.vault.ask(SubgraphGradient { label, sage })?;
            sage.apply(optimiser, &gradient)?;
        }
        Ok((None, None))
    }

    fn accuracy(&self, vault: &Vault, model: &Model, part: Part) -> Result<f64> {
        vault.unprotected_sage_accuracy(model.sage()?, part)
    }

    fn probabilities(&self, _: &Vault, _: &Model, _: &[u32]) -> Result<Vec<f32>> {
        Err(Error::internal("rows are private at node level"))
    }
}
