//! DP-GNN (Daigavane et al. 2021): one convolution, trained by noisy sums of clipped gradients over nodes with their
//! senders. The parameters are private; **predictions are not**: they read the senders' rows as they are.

use progap_graph::Part;
use progap_nn::{Optimiser, SageArchitecture};
use progap_privacy::noise::Source;

use super::trainer::{Desk, Lesson, Trainer};
use super::{Fitted, sage};
use crate::Result;
use crate::model::{Model, Shape};
use crate::settings::Settings;
use crate::vault::Vault;

/// The shape: GraphSAGE with one convolution.
pub(super) fn shape(settings: &Settings, sizes: (usize, usize)) -> Shape {
    let Shape::Sage(architecture) = sage::shape(settings, sizes) else { unreachable!("it is a GraphSAGE") };
    Shape::Sage(SageArchitecture { convolutions: 1, ..architecture })
}

pub(super) fn fit<S: Source>(mut trainer: Trainer<'_, S>) -> Result<Fitted<S>> {
    let begin =
        |trainer: &Trainer<'_, S>| Model::new(shape(trainer.settings, trainer.shape), trainer.stage_seed(0));
    let mut lesson = SubgraphLesson;
    trainer.train(0, begin, |_| Ok(()), &mut lesson)?;
    let accuracies = trainer.judge(&lesson)?;
    let near = trainer.vault.unprotected_aggregates(trainer.model(0)?.sage()?)?;
    let aggregates = trainer.keep(near, trainer.settings.hidden)?;
    Ok(Fitted::new(trainer, None, aggregates, accuracies))
}

/// A GraphSAGE over batches of nodes, each with its senders, all of it private.
struct SubgraphLesson;

impl<S: Source> Lesson<S> for SubgraphLesson {
    fn epoch(
        &mut self,
        desk: &mut Desk<'_, S>,
        model: &mut Model,
        optimiser: &mut Optimiser,
        done: usize,
    ) -> Result<(Option<f64>, Option<f64>)> {
        let (sage, settings, plan) = (model.sage_mut()?, desk.settings, desk.plan);
        let grid = desk.take_grid(|vault, parameters| vault.subgraph_grid(parameters, settings, plan))?;
        for step in desk.steps(done) {
            let query = format!("gradient {}/{step}", desk.stage);
            let gradient = desk.vault.subgraph_gradient(&query, sage, &grid, settings, plan)?;
            sage.apply(optimiser, &gradient)?;
        }
        desk.keep_grid(grid);
        Ok((None, None))
    }

    fn accuracy(&self, vault: &Vault<S>, model: &Model, part: Part) -> Result<f64> {
        vault.unprotected_sage_accuracy(model.sage()?, part)
    }
}
