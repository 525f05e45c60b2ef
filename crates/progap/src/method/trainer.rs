//! The resumable training loop of every method: queries that are kept before they are used, and training that can be stopped
//! at any moment and goes on to the same bits.
//!
//! A method is written as a straight line of steps: ask for an aggregate, train a model, ask for the next. When a run
//! is resumed the method runs from its first line again, and each step that was done before returns what was kept of
//! it. So no method has code of its own for crashes.

use progap_graph::{Graph, Part};
use progap_nn::{Adam, Optimiser};
use progap_privacy::noise::GradientGrid;

use super::checkpoint::{CheckpointStore, State};
use super::history::{EpochRecord, StageScore, is_flat};
use super::objective::{Objective, StepContext, val_score};
use super::{Choice, Observer, Progress};
use crate::assessment::Metric;
use crate::cost::{Laps, StageCost};
use crate::model::{Model, Shape};
use crate::plan::Plan;
use crate::query::Query;
use crate::ranks::Moment;
use crate::scratch::Scratch;
use crate::settings::{Selection, Settings};
use crate::vault::{Aggregate, Aggregates, Message, Take, Vault, asks_for_columns, asks_for_counts};
use crate::{Error, Result};

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

/// A stage that was fitted at once.
pub(crate) struct FittedStage {
    pub model: Model,
    pub stage_score: StageScore,
}

/// The inputs that decide a run besides the data.
#[derive(Clone, Copy)]
pub(crate) struct RunSpec<'r> {
    pub settings: &'r Settings,
    pub plan: &'r Plan,
    /// Where initial values come from.
    pub seed: u64,
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
    pub fn new(
        mut vault: Vault,
        spec: RunSpec<'r>,
        mut state: State,
        store: &'r mut dyn CheckpointStore,
        observer: &'r mut dyn Observer,
    ) -> Self {
        let RunSpec { settings, plan, seed } = spec;
        let shape = (vault.columns(), vault.classes());
        vault.resume(std::mem::take(&mut state.asked));
        tell_stage(&vault, settings, &state);
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

    /// Brings number columns to scale that nothing is declared of, where settings ask for it: by noisy counts, which are asked for before
    /// anything else, and whose maps are kept before they are used.
    pub fn bring_to_scale(&mut self) -> Result<()> {
        if !asks_for_columns(self.settings) {
            return Ok(());
        }
        if self.state.scaled.is_none() {
            self.state.scaled = Some(self.vault.column_maps(self.plan)?);
            self.vault.forget();
            self.state.asked = self.vault.asked().clone();
            self.store.save(&self.state, self.vault.key())?;
        }
        self.vault.bring_to_scale(self.state.scaled.as_deref().unwrap_or_default())?;
        self.laps.lap("scale");
        Ok(())
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
        let is_there = self.answer_streamed(aggregates, width, |vault, number, so_far, plan, take| {
            let mut take = |rows: &mut [f32]| {
                post(rows, width);
                take(rows)
            };
            vault.aggregate_streamed(&format!("aggregate {number}"), message, so_far, plan, &mut take)
        })?;
        if is_there {
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
        let is_there = self.answer_streamed(aggregates, self.shape.1, |vault, number, _, plan, take| {
            vault.votes_streamed(&format!("votes {number}"), votes, plan, take)
        })?;
        if is_there {
            return Ok(());
        }
        self.answer(aggregates, self.shape.1, query, |vault, number, _, plan| {
            vault.votes(&format!("votes {number}"), votes, plan)
        })
    }

    /// The next answer of a width, written as it comes. Not where answers are held in memory, nor where it was kept before.
    fn answer_streamed(
        &mut self,
        aggregates: &mut Aggregates,
        width: usize,
        ask: impl FnOnce(&mut Vault, usize, &Aggregates, &Plan, &mut Take<'_>) -> Result<()>,
    ) -> Result<bool> {
        let number = aggregates.len() + 1;
        if self.store.has_aggregate(number) {
            return Ok(false);
        }
        let Some(mut file) = self.store.begin_aggregate(number, width)? else { return Ok(false) };
        ask(&mut self.vault, number, aggregates, self.plan, &mut |rows| file.add(rows))?;
        self.vault.forget();
        let values = self.store.end_aggregate(number, width, file, self.vault.key())?;
        aggregates.push(Aggregate { values, width });
        self.laps.lap("aggregation");
        Ok(true)
    }

    /// A matrix that a method makes for itself, with a row of this width for each node of this process.
    pub fn scratch(&self, width: usize) -> Result<Scratch> {
        self.store.scratch(width * self.vault.own_nodes())
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
                // Training reads no edge: those of a mapped file need not stay in memory beside it.
                progap_graph::store::give_back_pages();
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

    /// Trains a new model of this shape, all of its parameters, as [`Trainer::train`] does.
    pub fn train_new(&mut self, stage: usize, shape: Shape, objective: &mut dyn Objective) -> Result<()> {
        self.train(stage, |trainer| Model::new(shape, trainer.stage_seed(stage)), |_| Ok(()), objective)
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
        while self.state.epoch < settings.epochs && !is_flat(&self.state.history, stage, settings.patience) {
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
                stage_score: None,
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
        tell_stage(&self.vault, self.settings, &self.state);
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
        let FittedStage { model, stage_score } = fit(self)?;
        if !model.is_finite() || !stage_score.log_loss.is_finite() {
            return Err(Error::Unsuitable(format!(
                "the fit went astray in stage {stage}: parameters are no longer finite; scale the features, or use `method progap`"
            )));
        }
        let train_accuracy = Some(accuracy(&model, Part::Train)?);
        let (val_accuracy, test) = (accuracy(&model, Part::Val)?, accuracy(&model, Part::Test)?);
        self.vault.forget();
        let (loss, val_score, stage_score) = (None, None, Some(stage_score));
        let record =
            EpochRecord { stage, epoch: 1, loss, train_accuracy, val_accuracy, val_score, stage_score };
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
    pub fn stage_score(&self, stage: usize) -> Result<StageScore> {
        let record = self.state.history.iter().find(|record| record.stage == stage);
        record.and_then(|record| record.stage_score).ok_or(Error::Internal("the stage is not evaluated yet"))
    }

    /// The model of a stage that is done.
    pub fn model(&self, stage: usize) -> Result<&Model> {
        self.state.finished.get(stage).ok_or(Error::Internal("the stage is not trained yet"))
    }

    /// The run's decision by the history so far, where its settings leave it to the run.
    pub fn choice(&self) -> Option<Choice> {
        let val_nodes = self.vault.public_rows().map_or(0, |_| self.vault.count(Part::Val));
        super::choose(self.settings, &self.state.history, val_nodes)
    }

    /// Balances the classes of a stage that is done, where settings ask for it and labels are private: by noisy counts, which are asked
    /// for after everything else. A run that is interrupted after it stands at the same key as before, and hears the same counts.
    pub fn balance(&mut self, stage: usize, objective: &dyn Objective) -> Result<()> {
        if !asks_for_counts(self.settings) {
            return Ok(());
        }
        let odds = self.vault.class_counts(self.plan)?.odds();
        let model = self.state.finished.get_mut(stage);
        let model = model.ok_or(Error::Internal("the stage is not trained yet"))?;
        model.network_mut()?.shift_logits(&odds)?;
        // The last epoch is the one that is kept: what is said of it is said of the model as it is released.
        let last = self.state.history.iter_mut().rfind(|record| record.stage == stage);
        if let Some(last) = last {
            last.val_accuracy = objective.accuracy(&self.vault, model, Part::Val)?;
        }
        if let Some(accuracy) = self.state.stage_accuracies.get_mut(stage) {
            *accuracy = objective.accuracy(&self.vault, model, Part::Test)?;
        }
        Ok(())
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

    /// The parts that remain when all is done: the vault, the models of all stages with their history, and where the time went.
    pub fn finish(mut self) -> (Vault, State, Vec<StageCost>) {
        self.laps.lap("evaluation");
        (self.vault, self.state, self.laps.stages())
    }
}

/// Where several ranks train: what they send from now on belongs to the next stage.
fn tell_stage(vault: &Vault, settings: &Settings, state: &State) {
    let Some(part) = vault.part() else { return };
    let stage = state.finished.len();
    let is_next = stage < super::stages(settings);
    part.ranks.now(if is_next { Moment::Stage(stage) } else { Moment::End });
}

/// The optimiser that every stage begins with.
pub(crate) fn new_optimiser(settings: &Settings) -> Result<Optimiser> {
    Ok(Optimiser::adam(Adam {
        rate: settings.learning_rate as f32,
        weight_decay: settings.weight_decay as f32,
        ..Adam::default()
    })?)
}
