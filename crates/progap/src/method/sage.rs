//! GraphSAGE (Hamilton et al. 2017) on a graph that may be seen: full batches, gradients through the graph. What its
//! convolutions read at the end is kept, so that predictions need no edge.

use progap_graph::{Graph, Part};
use progap_nn::{Batch, Optimiser, SageArchitecture, sage_epoch};
use progap_privacy::noise::Source;

use super::trainer::{Desk, Lesson, Trainer};
use super::{Fitted, activation, jk, norm};
use crate::model::{Model, Shape};
use crate::propagate::Senders;
use crate::settings::Settings;
use crate::vault::{Rows, Vault};
use crate::{Error, Result};

/// The shape: so many convolutions as the depth says.
pub(super) fn shape(settings: &Settings, (columns, classes): (usize, usize)) -> Shape {
    Shape::Sage(SageArchitecture {
        hidden: settings.hidden,
        base_layers: settings.layers,
        convolutions: settings.depth,
        activation: activation(settings),
        norm: norm(settings),
        dropout: settings.dropout as f32,
        jk: jk(settings),
        ..SageArchitecture::new(columns, classes)
    })
}

pub(super) fn fit<S: Source>(trainer: Trainer<'_, S>) -> Result<Fitted<S>> {
    let graph = trainer.vault.public_graph().cloned();
    fit_along(
        trainer,
        &graph.ok_or(Error::Contradiction("the method sage sees the graph: use --level none"))?,
    )
}

/// Trains along a graph that left the vault, or was public.
pub(super) fn fit_along<S: Source>(mut trainer: Trainer<'_, S>, graph: &Graph) -> Result<Fitted<S>> {
    let train = public_rows(&trainer.vault)?.nodes(Part::Train);
    let mut lesson = GraphLesson { senders: Senders::mean(graph), train };
    let begin =
        |trainer: &Trainer<'_, S>| Model::new(shape(trainer.settings, trainer.shape), trainer.stage_seed(0));
    trainer.train(0, begin, |_| Ok(()), &mut lesson)?;
    let accuracies = trainer.judge(&lesson)?;
    let near = {
        let inputs = public_rows(&trainer.vault)?.own()?;
        trainer.model(0)?.sage()?.aggregates(&inputs, &lesson.senders)?
    };
    let aggregates = trainer.keep(near, trainer.settings.hidden)?;
    Ok(Fitted::new(trainer, None, aggregates, accuracies))
}

fn public_rows<S: Source>(vault: &Vault<S>) -> Result<&Rows> {
    vault.public_rows().ok_or(Error::Contradiction("rows are private at node level"))
}

/// A GraphSAGE over public rows, along a graph that may be seen.
struct GraphLesson<'g> {
    senders: Senders<'g>,
    train: Vec<u32>,
}

impl<S: Source> Lesson<S> for GraphLesson<'_> {
    fn epoch(
        &mut self,
        desk: &mut Desk<'_, S>,
        model: &mut Model,
        optimiser: &mut Optimiser,
        done: usize,
    ) -> Result<(Option<f64>, Option<f64>)> {
        let rows = public_rows(desk.vault)?;
        let inputs = rows.own()?;
        let batch = Batch::new(&inputs, rows.labels(), &self.train, rows.classes())?;
        let stats = sage_epoch(model.sage_mut()?, optimiser, batch, &self.senders, desk.seed ^ done as u64)?;
        Ok((Some(stats.loss), Some(stats.accuracy)))
    }

    fn accuracy(&self, vault: &Vault<S>, model: &Model, part: Part) -> Result<f64> {
        let rows = public_rows(vault)?;
        let (inputs, nodes) = (rows.own()?, rows.nodes(part));
        let batch = Batch::new(&inputs, rows.labels(), &nodes, rows.classes())?;
        Ok(model.sage()?.accuracy_along(batch, &self.senders)?)
    }
}
