//! The methods. Each sees a vault and what left it, never private data, and is a straight line of steps on the
//! resumable loop (`trainer`) that all of them share.

mod addressed;
pub mod catalogue;
pub(crate) mod checkpoint;
mod contract;
mod dp_gnn;
mod edge_rand;
#[cfg(test)]
mod example;
mod gap;
pub mod history;
mod lpgnet;
mod mlp;
pub(crate) mod objective;
mod progap;
mod progap_labels;
mod program;
mod registry;
mod sage;
#[cfg(test)]
mod tests;
pub(crate) mod trainer;
mod views;

use std::ops::ControlFlow;

use progap_graph::{NumberColumn, Scaled};

pub(crate) use self::addressed::NoiseRatios;
pub(crate) use self::contract::{CLASS_PROBABILITIES, Defaults, Method, embeddings_sent};
pub use self::contract::{Capabilities, DepthRule, MethodSpec};
pub use self::progap::Choice;
#[doc(hidden)]
pub use self::program::QueryKind;
pub(crate) use self::program::{Program, QuerySpec, Stage, Training, Walk};
pub use self::registry::MethodKind;
use history::EpochRecord;
use progap_nn::{Architecture, Norm};
use trainer::{Accuracies, Trainer};
pub(crate) use views::is_table;

use crate::Result;
use crate::calibration;
use crate::cost::StageCost;
use crate::ledger::Warning;
use crate::plan::PublicFacts;
use crate::predictor::{Link, Predictor, Reads};
use crate::release::Release;
use crate::rows::Rows;
use crate::settings::{Level, Settings, Size};
use crate::vault::{Aggregates, Vault};

/// How far training is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The stage, from 0.
    pub stage: usize,
    /// The number of stages.
    pub stages: usize,
    /// Epochs done in this stage.
    pub epoch: usize,
    /// Epochs in each stage.
    pub epochs: usize,
    /// The mean loss over the training nodes, where it is known.
    pub loss: Option<f64>,
    /// The accuracy on the training nodes, where it is known.
    pub train_accuracy: Option<f64>,
    /// The accuracy on the validation nodes.
    pub val_accuracy: f64,
}

/// Watches training, and can stop it: what is done so far is kept. It is called by a thread of the pool that trains.
pub trait Observer: Send {
    /// After each epoch.
    fn epoch(&mut self, progress: &Progress) -> ControlFlow<()>;

    /// Before anything is charged: what the owner of the budget should know.
    fn warning(&mut self, _warning: &Warning) {}
}

/// No-op observer.
impl Observer for () {
    fn epoch(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(&Progress) -> ControlFlow<()> + Send> Observer for F {
    fn epoch(&mut self, progress: &Progress) -> ControlFlow<()> {
        self(progress)
    }
}

/// The result of training by a method.
pub(crate) struct Fitted {
    /// The vault, with the list of what was asked.
    pub vault: Vault,
    /// The models that make predictions.
    pub predictor: Predictor,
    /// Accuracies of the last model, without any protection.
    pub accuracies: Accuracies,
    /// The run's decision, where its settings leave it to the run.
    pub choice: Option<Choice>,
    /// The test accuracy of each stage.
    pub stage_accuracies: Vec<f64>,
    /// Epoch by epoch.
    pub history: Vec<EpochRecord>,
    /// The maps of number columns that were asked for.
    pub scaled: Vec<NumberColumn>,
    /// Where the time went.
    pub stages: Vec<StageCost>,
}

impl Fitted {
    /// The result with the models of some stages, each with what it reads, the last of which classifies.
    fn new(
        trainer: Trainer<'_>,
        models: Vec<(usize, Vec<Vec<Reads>>)>,
        aggregates: Aggregates,
        accuracies: Accuracies,
    ) -> Result<Self> {
        let stage = models.last().map_or(0, |(stage, _)| *stage);
        let link = |(stage, reads)| Ok(Link { model: trainer.model(stage)?.clone(), reads });
        let links = models.into_iter().map(link).collect::<Result<_>>()?;
        let choice = trainer.choice();
        let (vault, state, stages) = trainer.finish()?;
        let predictor = Predictor::new(links, stage, aggregates);
        let (stage_accuracies, history) = (state.stage_accuracies, state.history);
        let scaled = state.scaled.unwrap_or_default();
        Ok(Fitted { vault, predictor, accuracies, choice, stage_accuracies, history, scaled, stages })
    }

    /// The data set with its columns as they were trained on.
    pub fn scaled(&self, dataset: Scaled) -> Result<Scaled> {
        if self.scaled.is_empty() {
            return Ok(dataset);
        }
        let mut numbers = dataset.rest().numbers().to_vec();
        for number in &mut numbers {
            let found = self.scaled.iter().find(|scaled| scaled.column == number.column);
            number.map = number.map.or(found.and_then(|found| found.map));
        }
        Ok(dataset.mapped_as(&numbers)?)
    }

    /// The same with probabilities that can be believed, where the settings ask for it, by these rows: on one of
    /// several ranks, its own.
    pub fn calibrated(mut self, rows: impl FnOnce() -> Result<Rows>, settings: &Settings) -> Result<Self> {
        self.predictor.temperature =
            calibration::temperature(&self.predictor, rows, settings, self.vault.part())?;
        Ok(self)
    }
}

/// Rows, then this many aggregates: the inputs of most models.
fn rows_and_aggregates(aggregates: usize) -> Vec<Vec<Reads>> {
    let read = (0..aggregates).map(|index| vec![Reads::Aggregate(index)]);
    std::iter::once(vec![Reads::Rows]).chain(read).collect()
}

/// Trains by the method of the settings, from where the trainer stands.
pub(crate) fn fit(mut trainer: Trainer<'_>) -> Result<Fitted> {
    trainer.bring_to_scale()?;
    trainer.settings.method.method().fit(trainer)
}

/// What a run with these settings asks and trains, for data of these columns and classes, as far as something was
/// chosen.
pub(crate) fn program(
    settings: &Settings,
    (columns, classes): (usize, usize),
    choice: Option<&Choice>,
) -> Program {
    let sizes = PublicFacts::stated([(Size::Columns, columns), (Size::Classes, classes)]);
    settings.method.method().program(settings, sizes, choice)
}

/// The same before anything is known of the data: its stages and the kinds of its queries, which no size decides.
pub(crate) fn outline(settings: &Settings) -> Program {
    program(settings, (1, 2), None)
}

/// The number of stages: models that are trained one after the other.
pub(crate) fn stages(settings: &Settings) -> usize {
    outline(settings).stages.len()
}

/// The kind of the first query that reads edges; for audits.
#[doc(hidden)]
pub fn asks_of_edges(settings: &Settings) -> Option<QueryKind> {
    outline(settings).queries().map(|(_, query)| query.kind).find(|kind| kind.reads_edges())
}

/// What of a run lies in several ranks, where it can train on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    /// Rows, and the edges into them.
    Nodes,
    /// The edges into some nodes alone: every rank has all rows, which are public, and fits the same models to them.
    Edges,
}

/// What of a run with these settings lies in several ranks; nothing where it trains on one machine.
pub(crate) fn spread(settings: &Settings) -> Option<Spread> {
    let can = settings.method.can();
    let is_sum = |(_, query): (usize, &QuerySpec)| query.kind == QueryKind::Aggregation;
    let sums_alone = || settings.level == Level::Edge && outline(settings).queries().all(is_sum);
    match can.ranks {
        true => Some(Spread::Nodes),
        false => (!can.mixes_rows && sums_alone()).then_some(Spread::Edges),
    }
}

/// The number of noisy sums over the graph.
#[doc(hidden)]
pub fn aggregations(settings: &Settings) -> usize {
    outline(settings).sums().count()
}

/// The run's decision by its history so far and the number of validation nodes, where its settings leave that to it.
pub(crate) fn choose(settings: &Settings, history: &[EpochRecord], val_nodes: usize) -> Option<Choice> {
    settings.method.method().choose(settings, history, val_nodes)
}

/// Whether this can be what a run with these settings chose.
pub(crate) fn is_choice(settings: &Settings, choice: Option<&Choice>) -> bool {
    let left = outline(settings).is_adaptive;
    match choice {
        None => !left,
        Some(choice) => left && choice.messages.len() == settings.depth && choice.stage <= settings.depth,
    }
}

/// Whether the weights of receivers that a release holds are those that follow from its public parts.
pub(crate) fn weights_follow(release: &Release) -> Result<bool> {
    addressed::weights_follow(release)
}

/// A network of the settings' kind over the given inputs, without a normalised combination.
fn architecture(settings: &Settings, inputs: Vec<usize>, classes: usize) -> Architecture {
    Architecture {
        hidden: settings.hidden,
        layers: settings.layers,
        activation: settings.activation.layer(),
        norm: norm(settings),
        dropout: settings.dropout as f32,
        jk: settings.jk.layer(),
        normalise: false,
        ..Architecture::new(inputs, classes)
    }
}

/// Batch normalisation mixes rows, which is for public rows only.
fn norm(settings: &Settings) -> Norm {
    if settings.level == Level::Node { Norm::Group } else { Norm::Batch }
}
