//! DP-GNN (Daigavane et al. 2021): one convolution, trained by noisy sums of clipped gradients over nodes with their
//! senders. The parameters are private; **predictions are not**: they read the senders' rows as they are.

use progap_graph::Part;
use progap_nn::{Optimiser, SageArchitecture};
use progap_privacy::Event;

use super::catalogue::Entry;
use super::objective::{Objective, StepContext};
use super::trainer::Trainer;
use super::{AuditTarget, Choice, Fitted, Method, Recipe, rows_and_aggregates, sage};
use crate::audit::evidence::Trial;
use crate::audit::subgraph as attack;
use crate::model::{Model, Shape};
use crate::plan::{Batches, Calibrator, Plan, PublicSizes};
use crate::query::Queries;
use crate::settings::{Bounding, Level, Settings};
use crate::vault::Vault;
use crate::{Error, Result, vault};

/// The method.
pub(super) struct DpGnn;

pub(crate) const ENTRY: Entry = Entry {
    method: Method::DpGnn,
    levels: &[Level::Node],
    what: "GraphSAGE with one convolution, by noisy gradients over nodes with their senders",
    protects: "training alone, each node's record from all others; predictions read the senders as they are",
    paper: "Daigavane et al. 2021, Node-level differentially private graph neural networks",
};

impl Recipe for DpGnn {
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
        if settings.depth != 1 {
            return Err(Error::Contradiction("the method dp-gnn has one convolution: leave `depth` out"));
        }
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

    /// `floor(epochs * N / B)` noisy sums over B of the N training nodes' terms, drawn uniformly without replacement.
    ///
    /// # Proof definition
    /// A term is a gradient clipped to C that reads the node's own record and the records of its senders; every node sends to
    /// at most D others, chosen from its own record. So a record touches its own term and at most D others, and moves each from one
    /// clipped gradient to any other, by at most 2C (docs/privacy.md#subgraph-batches).
    fn queries(&self, settings: &Settings, sizes: PublicSizes) -> Result<Queries> {
        let batches = Batches::new(settings, sizes)?;
        let (terms, moved) = (max_terms(settings, sizes), term_sensitivity(settings));
        let population = sizes.train_nodes as u64;
        let step = Event::sampled_without_replacement(population, batches.batch_size, terms, moved, moved)?;
        Ok(Queries::from_iter([(vault::subgraph_sum(step, terms), batches.steps())]))
    }

    fn plan(&self, calibrator: &Calibrator<'_>, settings: &Settings, sizes: PublicSizes) -> Result<Plan> {
        let plan = Plan::calibrated(calibrator, self.queries(settings, sizes)?, settings, sizes)?;
        Ok(Plan {
            sensitivity: term_sensitivity(settings),
            max_terms: max_terms(settings, sizes),
            aggregate_multiplier: 0.0,
            gradient_multiplier: plan.multiplier,
            ..plan
        })
    }

    /// The shape: GraphSAGE with one convolution.
    fn shape(&self, settings: &Settings, sizes: (usize, usize), _: usize, _: Option<&Choice>) -> Shape {
        let Shape::Sage(architecture) = sage::shape(settings, sizes) else {
            unreachable!("it is a GraphSAGE")
        };
        Shape::Sage(SageArchitecture { convolutions: 1, ..architecture })
    }

    fn holds_the_graph(&self) -> bool {
        true
    }

    fn has_features_stage(&self) -> bool {
        false
    }

    fn fit(&self, mut trainer: Trainer<'_>) -> Result<Fitted> {
        let shape = self.shape(trainer.settings, trainer.shape, 0, None);
        let mut objective = SubgraphObjective;
        trainer.train_new(0, shape, &mut objective)?;
        let accuracies = trainer.evaluate(&objective)?;
        let near = trainer.vault.unprotected_aggregates(trainer.model(0)?.sage()?)?;
        let aggregates = trainer.keep(near, trainer.settings.hidden)?;
        let reads = rows_and_aggregates(aggregates.len());
        Fitted::new(trainer, vec![(0, reads)], aggregates, accuracies)
    }

    fn aggregates_are_protected(&self) -> bool {
        false
    }

    fn guarantee(&self, numbers: &str) -> Option<String> {
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

    fn audit(&self, target: &AuditTarget<'_>) -> Result<Vec<Trial>> {
        attack::audit(target)
    }
}

/// The most terms that one record touches: its own, and one for each receiver.
fn max_terms(settings: &Settings, sizes: PublicSizes) -> u64 {
    (u64::from(settings.max_degree) + 1).min(sizes.train_nodes as u64)
}

/// How far a record moves a touched term: from one clipped gradient to any other.
fn term_sensitivity(settings: &Settings) -> f64 {
    2.0 * settings.clip
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
        let (sage, plan) = (model.sage_mut()?, context.plan);
        let grid = context.take_grid(|vault, parameters| vault.subgraph_grid(parameters, plan))?;
        for step in context.steps(done) {
            let query = format!("gradient {}/{step}", context.stage);
            let gradient = context.vault.subgraph_gradient(&query, sage, &grid, plan)?;
            sage.apply(optimiser, &gradient)?;
        }
        context.put_grid_back(grid);
        Ok((None, None))
    }

    fn accuracy(&self, vault: &Vault, model: &Model, part: Part) -> Result<f64> {
        vault.unprotected_sage_accuracy(model.sage()?, part)
    }

    fn probabilities(&self, _: &Vault, _: &Model, _: &[u32]) -> Result<Vec<f32>> {
        Err(Error::Internal("rows are private at node level"))
    }
}
