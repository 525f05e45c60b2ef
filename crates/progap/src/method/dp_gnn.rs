//! DP-GNN (Daigavane et al. 2021): one convolution, trained by noisy sums of clipped gradients over nodes with their
//! senders. The parameters are private; **predictions are not**: they read the senders' rows as they are.

use progap_graph::Part;
use progap_nn::{Optimiser, SageArchitecture};
use progap_privacy::Event;
use progap_privacy::accountant::Accountant;

use super::catalogue::Entry;
use super::trainer::{Desk, Lesson, Trainer};
use super::{Choice, Fitted, Method, Recipe, Target, sage};
use crate::audit::evidence::Trial;
use crate::audit::subgraph as attack;
use crate::model::{Model, Shape};
use crate::plan::{Plan, PublicSizes, subgraphs};
use crate::settings::{Bounding, Level, Settings};
use crate::vault::Vault;
use crate::{Error, Result};

/// The method.
pub(super) struct DpGnn;

const ENTRY: Entry = Entry {
    method: Method::DpGnn,
    levels: &[Level::Node],
    what: "GraphSAGE with one convolution, by noisy gradients over nodes with their senders",
    protects: "training alone, each node's record from all others; predictions read the senders as they are",
    paper: "Daigavane et al. 2021, Node-level differentially private graph neural networks",
};

impl Recipe for DpGnn {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn defaults(&self, level: Level) -> Settings {
        Settings {
            method: Method::DpGnn,
            depth: 1,
            bounding: Bounding::Sample,
            max_degree: 10,
            batch_size: 2048,
            epochs: 20,
            learning_rate: 0.02,
            ..Settings::plain(level)
        }
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        sage::check(settings, 1)?;
        match settings.bounding {
            Bounding::Sample => Ok(()),
            _ => Err(Error::Contradiction(
                "the method dp-gnn bounds how many nodes a record can reach: leave `bounding` out, or give `bounding sample`",
            )),
        }
    }

    fn reads_senders(&self) -> bool {
        true
    }

    fn plan(&self, accountant: &dyn Accountant, settings: &Settings, sizes: PublicSizes) -> Result<Plan> {
        Plan::of_subgraphs(accountant, settings, sizes)
    }

    fn expects(
        &self,
        event: &Event,
        settings: &Settings,
        sizes: PublicSizes,
    ) -> Result<Option<(String, bool)>> {
        let (steps, ok) = steps(event, settings, sizes)?;
        Ok(Some((format!("{steps} noisy gradient steps over nodes with their senders"), ok)))
    }

    /// The shape: GraphSAGE with one convolution.
    fn shape(&self, settings: &Settings, sizes: (usize, usize), _: usize, _: Option<&Choice>) -> Shape {
        let Shape::Sage(architecture) = sage::shape(settings, sizes) else {
            unreachable!("it is a GraphSAGE")
        };
        Shape::Sage(SageArchitecture { convolutions: 1, ..architecture })
    }

    fn has_features_stage(&self) -> bool {
        false
    }

    fn fit(&self, mut trainer: Trainer<'_>) -> Result<Fitted> {
        let begin = |trainer: &Trainer<'_>| {
            Model::new(self.shape(trainer.settings, trainer.shape, 0, None), trainer.stage_seed(0))
        };
        let mut lesson = SubgraphLesson;
        trainer.train(0, begin, |_| Ok(()), &mut lesson)?;
        let accuracies = trainer.judge(&lesson)?;
        let near = trainer.vault.unprotected_aggregates(trainer.model(0)?.sage()?)?;
        let aggregates = trainer.keep(near, trainer.settings.hidden)?;
        Ok(Fitted::new(trainer, None, aggregates, accuracies))
    }

    fn aggregates_are_protected(&self) -> bool {
        false
    }

    fn promise(&self, numbers: &str) -> Option<String> {
        Some(format!(
            "Training alone is private; predictions are not. For every node, what everyone else can tell from the trained \
             parameters is almost the same as if that node's record, that is its features, its label and its own list of \
             receivers, had been left out, {numbers}. A prediction reads the rows of a node's senders as they are, \
             without noise: give it only to those who may see them. The same holds for the folder private."
        ))
    }

    fn public_at_node_level(&self, settings: &Settings, plan: &Plan) -> Option<Vec<String>> {
        Some(vec![
            format!(
                "at most {} edges of each sender are used, drawn from its own list; the published sampling depends on the \
                 private degrees of receivers, this one on no other record",
                settings.max_degree
            ),
            format!("batches of {} training nodes and {} steps", settings.batch_size, plan.steps),
        ])
    }

    fn audit(&self, target: &Target<'_>) -> Result<Vec<Trial>> {
        attack::audit(target)
    }
}

/// The number of gradient steps in DP-GNN's event tree, and whether they are those of the settings.
fn steps(event: &Event, settings: &Settings, sizes: PublicSizes) -> Result<(u64, bool)> {
    let Event::Composed { events } = event else { return Ok((0, false)) };
    let [Event::SelfComposed { event, count }] = &events[..] else { return Ok((0, false)) };
    let Event::SampledWithoutReplacement { population, batch_size, max_terms, term_sensitivity, .. } =
        **event
    else {
        return Ok((0, false));
    };
    let (training, planned) = subgraphs(settings, sizes)?;
    let ok = population == sizes.train_nodes as u64
        && batch_size == training.batch_size
        && *count == training.steps()
        && max_terms == planned.max_terms()
        && term_sensitivity >= planned.term_sensitivity();
    Ok((*count, ok))
}

/// A GraphSAGE over batches of nodes, each with its senders, all of it private.
struct SubgraphLesson;

impl Lesson for SubgraphLesson {
    fn epoch(
        &mut self,
        desk: &mut Desk<'_>,
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

    fn accuracy(&self, vault: &Vault, model: &Model, part: Part) -> Result<f64> {
        vault.unprotected_sage_accuracy(model.sage()?, part)
    }
}
