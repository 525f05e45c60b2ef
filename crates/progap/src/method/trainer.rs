//! The resumable training loop of every method: queries that are kept before they are used, and training that can be stopped
//! at any moment and goes on to the same bits.
//!
//! A method is written as a straight line of steps: ask for an aggregate, train a model, ask for the next. When a run
//! is resumed the method runs from its first line again, and each step that was done before returns what was kept of
//! it. So no method has code of its own for crashes.

use progap_graph::{Buffer, Graph, Part};
use progap_nn::{Adam, Batch, Optimiser, Packed, accuracy, apply, epoch, probabilities};
use progap_privacy::noise::{GradientGrid, RunKey};
use serde::{Deserialize, Serialize};

use super::{Choice, Observer, Progress};
use crate::assessment::{Assessment, Metric};
use crate::cost::{Laps, StageCost};
use crate::files::MatrixFile;
use crate::model::Model;
use crate::plan::Plan;
use crate::query::{Queries, Query};
use crate::settings::{Level, Selection, Settings};
use crate::vault::{Aggregate, Aggregates, Message, Vault};
use crate::{Error, Result, memory};

/// What happened in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochRecord {
    /// The stage.
    pub stage: usize,
    /// The epoch, from 1.
    pub epoch: usize,
    /// The mean loss over the training nodes, where it is known.
    pub loss: Option<f64>,
    /// The accuracy on the training nodes, where it is known.
    pub train_accuracy: Option<f64>,
    /// The accuracy on the validation nodes; not a number where there are none.
    #[serde(deserialize_with = "crate::files::number_or_nan")]
    pub val_accuracy: f64,
    /// The metric by which epochs are chosen, on the validation nodes; absent where that is the accuracy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub val_score: Option<f64>,
    /// In the method views: what later stages and the release are chosen by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
}

impl EpochRecord {
    /// How good the epoch is by the metric that chooses: the more the better, and not a number where it cannot be said.
    pub(crate) fn merit(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Accuracy => self.val_accuracy,
            _ => metric.oriented(self.val_score.unwrap_or(f64::NAN)),
        }
    }
}

/// How good a stage of two views is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judged {
    /// The mean log loss on nodes held out: validation nodes, or a fifth of the training nodes where there are none.
    pub log_loss: f64,
    /// How alike the classes of neighbours are at most, from 0 for not at all to 1, as the first noisy sums tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alike: Option<f64>,
}

/// A stage that was fitted at once.
pub(crate) struct FittedStage {
    pub model: Model,
    pub judged: Judged,
}

/// A loss that falls by this share in the last tenth of a stage has not settled.
const STILL_FALLING: f64 = 0.03;

/// Whether the loss of a stage was still falling when training ended: more epochs, or larger steps, would learn more. Not where losses
/// are not known.
pub fn is_still_falling(history: &[EpochRecord], stage: usize) -> bool {
    let losses: Vec<f64> =
        history.iter().filter(|record| record.stage == stage).filter_map(|record| record.loss).collect();
    let Some(before) = losses.len().checked_sub(1 + losses.len().div_ceil(10)) else { return false };
    losses.len() >= 10 && losses[losses.len() - 1] < (1.0 - STILL_FALLING) * losses[before]
}

/// A run between two epochs: all that is needed to go on.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The models of the stages that are done.
    pub finished: Vec<Model>,
    /// Epochs done of the stage that is being trained.
    pub epoch: usize,
    /// Its model, if an epoch is done.
    pub model: Option<Model>,
    /// Its optimiser, if an epoch is done.
    pub optimiser: Option<Optimiser>,
    /// Its best model so far, with its merit on the validation nodes.
    pub best: Option<(f64, Model)>,
    /// What happened.
    pub history: Vec<EpochRecord>,
    /// The test accuracy of each finished stage.
    pub stage_accuracies: Vec<f64>,
    /// What was asked of the vault.
    pub asked: Queries,
}

/// Where a run keeps what it must not lose.
pub trait CheckpointStore {
    /// Keeps an aggregate for ever, and the key that the run goes on with, the one before it forgotten; both are on disk when this
    /// returns.
    fn keep_aggregate(
        &mut self,
        number: usize,
        values: Vec<f32>,
        width: usize,
        key: Option<&RunKey>,
    ) -> Result<Buffer<f32>>;
    /// Whether an aggregate was kept.
    fn has_aggregate(&self, number: usize) -> bool;
    /// The file that an aggregate is written to while it is made, where it is not to be held in memory.
    fn begin_aggregate(&mut self, number: usize, width: usize) -> Result<Option<MatrixFile>> {
        let _ = (number, width);
        Ok(None)
    }
    /// Keeps an aggregate that was written to such a file, as [`CheckpointStore::keep_aggregate`] does.
    fn end_aggregate(
        &mut self,
        number: usize,
        width: usize,
        file: MatrixFile,
        key: Option<&RunKey>,
    ) -> Result<Buffer<f32>> {
        let _ = (number, width, file, key);
        Err(Error::Contradiction("no file was begun"))
    }
    /// An aggregate, if it was kept.
    fn kept_aggregate(&mut self, number: usize, width: usize) -> Result<Option<Buffer<f32>>>;
    /// Keeps a noisy graph until the run is done, as an aggregate is kept.
    fn keep_graph(&mut self, graph: &Graph, key: Option<&RunKey>) -> Result<()>;
    /// The noisy graph, if it was kept.
    fn kept_graph(&mut self) -> Result<Option<Graph>>;
    /// Keeps the state, at the end of a stage, and the key that the run goes on with.
    fn save(&mut self, state: &State, key: Option<&RunKey>) -> Result<()>;
    /// Keeps the state if the last time is long ago, or if `now` is set.
    fn save_if_due(&mut self, state: &State, key: Option<&RunKey>, now: bool) -> Result<()>;
    /// What to say when training is stopped.
    fn interrupted(&self) -> Error;
    /// Whether the training accuracy of every epoch is wanted where it does not come by itself.
    fn watches_training(&self) -> bool {
        false
    }
}

/// Accuracies on the three parts of the nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accuracies {
    /// On the training nodes.
    pub train: f64,
    /// On the validation nodes.
    pub val: f64,
    /// On the test nodes.
    pub test: f64,
}

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
fn val_score(objective: &dyn Objective, vault: &Vault, model: &Model, metric: Metric) -> Result<Option<f64>> {
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
    shape: (usize, usize),
    grid: &'d mut Option<GradientGrid>,
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

/// A run in progress.
pub(crate) struct Trainer<'r> {
    pub vault: Vault,
    pub settings: &'r Settings,
    pub plan: &'r Plan,
    /// Feature columns and classes.
    pub shape: (usize, usize),
    /// Where initial values come from.
    pub seed: u64,
    /// Made for the first gradient, where gradients are noisy.
    grid: Option<GradientGrid>,
    state: State,
    store: &'r mut dyn CheckpointStore,
    observer: &'r mut dyn Observer,
    laps: Laps,
}

impl<'r> Trainer<'r> {
    #[allow(clippy::too_many_arguments, reason = "a run is made of all of these")]
    pub fn new(
        mut vault: Vault,
        settings: &'r Settings,
        plan: &'r Plan,
        shape: (usize, usize),
        seed: u64,
        mut state: State,
        store: &'r mut dyn CheckpointStore,
        observer: &'r mut dyn Observer,
    ) -> Self {
        vault.resume(std::mem::take(&mut state.asked));
        Trainer {
            vault,
            settings,
            plan,
            shape,
            seed,
            grid: None,
            state,
            store,
            observer,
            laps: Laps::start(),
        }
    }

    /// A seed for the initial values of a stage.
    pub fn stage_seed(&self, stage: usize) -> u64 {
        self.seed.wrapping_add((stage as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next noisy aggregate, asked for once and kept. `post` is applied to what left the vault, rows at a time.
    pub fn aggregate(
        &mut self,
        aggregates: &mut Aggregates,
        message: Message<'_>,
        post: impl Fn(&mut [f32], usize),
    ) -> Result<()> {
        let width = message.width(aggregates, (self.vault.columns(), self.shape.1));
        let query = self.vault.aggregation(self.plan)?;
        let number = aggregates.len() + 1;
        if !self.store.has_aggregate(number)
            && let Some(mut file) = self.store.begin_aggregate(number, width)?
        {
            let (name, so_far) = (format!("aggregate {number}"), &*aggregates);
            self.vault.aggregate_streamed(&name, message, so_far, self.plan, &mut |rows| {
                post(rows, width);
                file.add(rows)
            })?;
            self.vault.forget();
            let values = self.store.end_aggregate(number, width, file, self.vault.key())?;
            aggregates.push(Aggregate { values, width });
            self.laps.lap("aggregation");
            return Ok(());
        }
        self.answer(aggregates, width, query, |vault, number, so_far, plan| {
            let mut values = vault.aggregate(&format!("aggregate {number}"), message, so_far, plan)?;
            post(&mut values, width);
            Ok(values)
        })
    }

    /// The next noisy count of votes, one vote of each node, asked for once and kept.
    pub fn votes(&mut self, aggregates: &mut Aggregates, votes: &[u32]) -> Result<()> {
        let query = self.vault.vote_count(self.plan)?;
        self.answer(aggregates, self.shape.1, query, |vault, number, _, plan| {
            vault.votes(&format!("votes {number}"), votes, plan)
        })
    }

    /// The next answer of a width: what was kept of it, or what the vault says, kept before it is used.
    fn answer(
        &mut self,
        aggregates: &mut Aggregates,
        width: usize,
        query: Query,
        ask: impl FnOnce(&mut Vault, usize, &Aggregates, &Plan) -> Result<Vec<f32>>,
    ) -> Result<()> {
        let number = aggregates.len() + 1;
        let values = match self.store.kept_aggregate(number, width)? {
            Some(kept) => {
                self.vault.resume_answer(number, query);
                kept
            }
            None => {
                let values = ask(&mut self.vault, number, aggregates, self.plan)?;
                self.vault.forget();
                self.store.keep_aggregate(number, values, width, self.vault.key())?
            }
        };
        aggregates.push(Aggregate { values, width });
        self.laps.lap("aggregation");
        Ok(())
    }

    /// The noisy graph, asked for once and kept.
    pub fn noisy_graph(&mut self, available: Option<u64>) -> Result<Graph> {
        if let Some(graph) = self.store.kept_graph()? {
            self.vault.record_response(self.plan)?;
            return Ok(graph);
        }
        let graph = self.vault.noisy_graph(self.plan, available)?;
        self.vault.forget();
        self.store.keep_graph(&graph, self.vault.key())?;
        self.laps.lap("noisy graph");
        Ok(graph)
    }

    /// Trains the model of a stage, from where it stands; a stage that is done is not trained again.
    pub fn train(
        &mut self,
        stage: usize,
        begin: impl FnOnce(&Self) -> Result<Model>,
        ready: impl FnOnce(&mut Model) -> Result<()>,
        objective: &mut dyn Objective,
    ) -> Result<()> {
        if stage < self.state.finished.len() {
            return Ok(());
        }
        let mut model = match self.state.model.take() {
            Some(model) => model,
            None => begin(self)?,
        };
        ready(&mut model)?;
        let mut optimiser = match self.state.optimiser.take() {
            Some(optimiser) => optimiser,
            None => new_optimiser(self.settings)?,
        };
        let settings = self.settings;
        while self.state.epoch < settings.epochs {
            let done = self.state.epoch + 1;
            let mut context = StepContext {
                vault: &mut self.vault,
                settings,
                plan: self.plan,
                stage,
                seed: self.seed,
                shape: self.shape,
                grid: &mut self.grid,
            };
            let (loss, train_accuracy) = objective.epoch(&mut context, &mut model, &mut optimiser, done)?;
            let train_accuracy = match train_accuracy {
                None if self.store.watches_training() => {
                    Some(objective.accuracy(&self.vault, &model, Part::Train)?)
                }
                known => known,
            };
            let val_accuracy = objective.accuracy(&self.vault, &model, Part::Val)?;
            let val_score = match settings.metric {
                Metric::Accuracy => None,
                _ if settings.selection == Selection::LastEpoch => None,
                metric => val_score(objective, &self.vault, &model, metric)?,
            };
            self.vault.forget();
            self.state.epoch = done;
            let record = EpochRecord {
                stage,
                epoch: done,
                loss,
                train_accuracy,
                val_accuracy,
                val_score,
                judged: None,
            };
            let merit = record.merit(settings.metric);
            self.state.history.push(record);
            // NaN (no validation nodes) never is the best: then the last epoch is kept.
            if settings.selection == Selection::BestValidation
                && self.state.best.as_ref().is_none_or(|(best, _)| merit > *best || best.is_nan())
            {
                self.state.best = Some((merit, model.clone()));
            }
            let progress = Progress {
                stage,
                stages: super::stages(settings),
                epoch: done,
                epochs: settings.epochs,
                loss,
                train_accuracy,
                val_accuracy,
            };
            let stop = self.observer.epoch(&progress).is_break();
            // The store sees the state as it is; the model goes in and out without being copied.
            self.state.model = Some(model);
            self.state.optimiser = Some(optimiser);
            self.state.asked = self.vault.asked().clone();
            self.store.save_if_due(&self.state, self.vault.key(), stop)?;
            if stop {
                return Err(self.store.interrupted());
            }
            model = self.state.model.take().expect("it was put there");
            optimiser = self.state.optimiser.take().expect("it was put there");
        }
        let kept = match (settings.selection, self.state.best.take()) {
            (Selection::BestValidation, Some((merit, best))) if merit.is_finite() => best,
            _ => model,
        };
        if !kept.is_finite() {
            return Err(Error::Unsuitable(format!(
                "training went astray in stage {stage}: parameters are no longer finite; start a new run with a smaller learning rate \
                 than {}",
                settings.learning_rate
            )));
        }
        self.state.stage_accuracies.push(objective.accuracy(&self.vault, &kept, Part::Test)?);
        self.state.epoch = 0;
        self.state.finished.push(kept);
        self.state.asked = self.vault.asked().clone();
        self.store.save(&self.state, self.vault.key())?;
        self.laps.lap("training");
        Ok(())
    }

    /// Fits the model of a stage at once, without epochs; a stage that is done is not fitted again.
    pub fn fit(
        &mut self,
        stage: usize,
        accuracy: &dyn Fn(&Model, Part) -> Result<f64>,
        fit: impl FnOnce(&Self) -> Result<FittedStage>,
    ) -> Result<()> {
        if stage < self.state.finished.len() {
            return Ok(());
        }
        let FittedStage { model, judged } = fit(self)?;
        if !model.is_finite() || !judged.log_loss.is_finite() {
            return Err(Error::Unsuitable(format!(
                "the fit went astray in stage {stage}: parameters are no longer finite; scale the features, or use `method progap`"
            )));
        }
        let train_accuracy = Some(accuracy(&model, Part::Train)?);
        let (val_accuracy, test) = (accuracy(&model, Part::Val)?, accuracy(&model, Part::Test)?);
        self.vault.forget();
        let (loss, val_score, judged) = (None, None, Some(judged));
        let record = EpochRecord { stage, epoch: 1, loss, train_accuracy, val_accuracy, val_score, judged };
        self.state.history.push(record);
        self.state.stage_accuracies.push(test);
        self.state.finished.push(model);
        self.state.asked = self.vault.asked().clone();
        self.store.save(&self.state, self.vault.key())?;
        self.laps.lap("training");
        let stages = super::stages(self.settings);
        let progress = Progress { stage, stages, epoch: 1, epochs: 1, loss, train_accuracy, val_accuracy };
        match self.observer.epoch(&progress).is_break() {
            true => Err(self.store.interrupted()),
            false => Ok(()),
        }
    }

    /// How good a stage that is done was found to be.
    pub fn judged(&self, stage: usize) -> Result<Judged> {
        let record = self.state.history.iter().find(|record| record.stage == stage);
        record.and_then(|record| record.judged).ok_or(Error::Contradiction("the stage is not judged yet"))
    }

    /// The model of a stage that is done.
    pub fn model(&self, stage: usize) -> Result<&Model> {
        self.state.finished.get(stage).ok_or(Error::Contradiction("the stage is not trained yet"))
    }

    /// What the run decided by what happened so far, where its settings leave that to it.
    pub fn choice(&self) -> Option<Choice> {
        let val_nodes = self.vault.public_rows().map_or(0, |rows| rows.split.count(Part::Val));
        super::choose(self.settings, &self.state.history, val_nodes)
    }

    /// From now on the model of that stage is the last: those of later stages are not released.
    pub fn release_stage(&mut self, stage: usize) {
        self.state.finished.truncate(stage + 1);
    }

    /// The accuracies of the last model.
    pub fn evaluate(&self, objective: &dyn Objective) -> Result<Accuracies> {
        self.accuracies(&|model, part| objective.accuracy(&self.vault, model, part))
    }

    /// As [`Trainer::evaluate`], by a measure of the caller's.
    pub fn accuracies(&self, accuracy: &dyn Fn(&Model, Part) -> Result<f64>) -> Result<Accuracies> {
        let model = self.model(self.state.finished.len().wrapping_sub(1))?;
        let part = |part| accuracy(model, part);
        Ok(Accuracies { train: part(Part::Train)?, val: part(Part::Val)?, test: part(Part::Test)? })
    }

    /// Keeps what the last model reads besides rows, for predictions. On a resumed run it is the same again.
    pub fn keep(&mut self, aggregates: Vec<Vec<f32>>, width: usize) -> Result<Aggregates> {
        let numbered = aggregates.into_iter().enumerate();
        numbered
            .map(|(index, values)| {
                let values = self.store.keep_aggregate(index + 1, values, width, self.vault.key())?;
                Ok(Aggregate { values, width })
            })
            .collect()
    }

    /// What remains when all is done: the vault, the models of all stages and what happened, and where the time went.
    pub fn finish(mut self) -> (Vault, State, Vec<StageCost>) {
        self.laps.lap("evaluation");
        (self.vault, self.state, self.laps.stages())
    }
}

/// The optimiser that every stage begins with.
pub(crate) fn new_optimiser(settings: &Settings) -> Result<Optimiser> {
    Ok(Optimiser::adam(Adam {
        rate: settings.learning_rate as f32,
        weight_decay: settings.weight_decay as f32,
        ..Adam::default()
    })?)
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
