//! The resumable training loop of every method: queries that are kept before they are used, and training that can be
//! stopped at any moment and goes on to the same bits.
//!
//! A method is written as a straight line of steps: ask for an aggregate, train a model, ask for the next. When a run
//! is resumed the method runs from its first line again, and each step that was done before returns what was kept of
//! it. So no method has code of its own for crashes.

use progap_graph::{Graph, Part};
use progap_nn::{Adam, Optimiser};

use super::checkpoint::{CheckpointStore, State};
use super::history::{EpochRecord, StageScore, is_flat};
use super::objective::{Objective, StepContext, val_score};
use super::{Choice, Observer, Program, Progress, QueryKind, Walk};
use crate::assessment::Metric;
use crate::cost::{Laps, StageCost};
use crate::model::{Model, Shape};
use crate::plan::Plan;
use crate::ranks::Moment;
use crate::scratch::Scratch;
use crate::settings::{Selection, Settings};
use crate::vault::{
    AddressedAggregation, Aggregate, Aggregates, Aggregation, ClassCounts, Message, NoisyGraph,
    PairedAggregation, ReceiverWeights, Streamable, Streamed, Vault, Votes, asks_for_columns,
    asks_for_counts,
};
use crate::{Error, Remedy, Result};

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
    /// How good it is, where that may be told.
    pub stage_score: Option<StageScore>,
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
    /// How far the fit is in its program.
    walk: Walk,
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
    ) -> Result<Self> {
        let RunSpec { settings, plan, seed } = spec;
        let shape = (vault.columns(), vault.classes());
        vault.resume(std::mem::take(&mut state.asked))?;
        tell_stage(&vault, settings, &state);
        let (walk, laps) = (Walk::default(), Laps::start());
        Ok(Trainer { vault, settings, plan, shape, seed, walk, state, store, observer, laps })
    }

    /// What this run asks and trains, as far as something was chosen.
    pub fn program(&self) -> Program {
        super::program(self.settings, self.shape, self.choice().as_ref())
    }

    /// The shape of the model of a stage.
    pub fn stage_shape(&self, stage: usize) -> Result<Shape> {
        let program = self.program();
        program
            .stages
            .get(stage)
            .map(|stage| stage.model.clone())
            .ok_or_else(|| Error::internal("there is no such stage"))
    }

    /// Goes on to the next query of the program, which has to be of this kind.
    fn next(&mut self, kind: QueryKind, width: usize) -> Result<()> {
        self.walk.ask(&self.program(), kind, width)
    }

    /// Brings number columns to scale that nothing is declared of, where settings ask for it: by noisy counts, which
    /// are asked for before anything else, and whose maps are kept before they are used.
    pub fn bring_to_scale(&mut self) -> Result<()> {
        if !asks_for_columns(self.settings) {
            return Ok(());
        }
        self.next(QueryKind::ColumnCounts, 0)?;
        if self.state.scaled.is_none() {
            self.state.scaled = Some(self.vault.column_maps()?);
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

    /// Enters the next aggregate, with this many columns beside those of the message: its number and width, and the
    /// label of its noise.
    fn next_aggregate(
        &mut self,
        aggregates: &Aggregates,
        message: Message<'_>,
        beside: usize,
    ) -> Result<((usize, usize), String)> {
        let width = message.width(aggregates, (self.vault.columns(), self.shape.1)) + beside;
        self.next(QueryKind::Aggregation, width)?;
        let number = aggregates.len() + 1;
        Ok(((number, width), format!("aggregate {number}")))
    }

    /// The next noisy aggregate, asked for once and kept. `post` is applied to what left the vault, rows at a time.
    pub fn aggregate(
        &mut self,
        aggregates: &mut Aggregates,
        message: Message<'_>,
        post: impl Fn(&mut [f32], usize),
    ) -> Result<()> {
        let (place, label) = self.next_aggregate(aggregates, message, 0)?;
        let answer = self.answer(place, Aggregation { label, message, aggregates }, post)?;
        aggregates.push(answer);
        Ok(())
    }

    /// The next noisy aggregate in which receivers have these weights, asked for once and kept: a column for each of
    /// the message, and the weight of the node.
    pub fn aggregate_to(
        &mut self,
        aggregates: &mut Aggregates,
        message: Message<'_>,
        weights: &ReceiverWeights,
    ) -> Result<()> {
        let (place, label) = self.next_aggregate(aggregates, message, 1)?;
        let question = AddressedAggregation { label, message, aggregates, weights };
        let answer = self.answer(place, question, |_, _| ())?;
        aggregates.push(answer);
        Ok(())
    }

    /// The next noisy aggregate in which both messages of an undirected edge share its influence by these weights,
    /// asked for once and kept. Each row is divided by the mean share that a receiver of its weight gets, so that rows
    /// of all weights are of one size.
    pub fn aggregate_in_pairs(
        &mut self,
        aggregates: &mut Aggregates,
        message: Message<'_>,
        weights: &ReceiverWeights,
    ) -> Result<()> {
        let (place, label) = self.next_aggregate(aggregates, message, 0)?;
        let question = PairedAggregation { label, message, aggregates, weights };
        let (shares, row) = (weights.mean_shares(), std::cell::Cell::new(0));
        let divide = |rows: &mut [f32], width: usize| {
            for values in rows.chunks_exact_mut(width.max(1)) {
                let share = shares.get(row.replace(row.get() + 1)).copied().unwrap_or(1.0);
                values.iter_mut().for_each(|value| *value /= share);
            }
        };
        let answer = self.answer(place, question, divide)?;
        aggregates.push(answer);
        Ok(())
    }

    /// The next noisy count of votes, one vote of each node, asked for once and kept.
    pub fn votes(&mut self, aggregates: &mut Aggregates, votes: &[u32]) -> Result<()> {
        let (number, classes) = (aggregates.len() + 1, self.shape.1);
        self.next(QueryKind::Votes, classes)?;
        let question = Votes { label: format!("votes {number}"), votes };
        aggregates.push(self.answer((number, classes), question, |_, _| ())?);
        Ok(())
    }

    /// The answer of a number and a width: what was kept of it, or what the vault says, kept before it is used, and
    /// written as it comes where it is not held in memory. `post` is applied to what left the vault, rows at a time.
    pub fn answer(
        &mut self,
        (number, width): (usize, usize),
        question: impl Streamable,
        post: impl Fn(&mut [f32], usize),
    ) -> Result<Aggregate> {
        let values = match self.store.kept_aggregate(number, width)? {
            Some(kept) => {
                self.vault.replay(&question)?;
                kept
            }
            None => match self.store.begin_aggregate(number, width)? {
                Some(mut file) => {
                    let mut take = |rows: &mut [f32]| {
                        post(rows, width);
                        file.add(rows)
                    };
                    self.vault.ask(Streamed { question, take: &mut take })?;
                    self.vault.forget();
                    self.store.end_aggregate(number, width, file, self.vault.key())?
                }
                None => {
                    let mut values = self.vault.ask(question)?;
                    post(&mut values, width);
                    // Training reads no edge: those of a mapped file need not stay in memory beside it.
                    progap_graph::store::release_pages();
                    self.vault.forget();
                    self.store.keep_aggregate(number, values, width, self.vault.key())?
                }
            },
        };
        self.laps.lap("aggregation");
        Ok(Aggregate { values, width })
    }

    /// A matrix that a method makes for itself, with a row of this width for each node of this process.
    pub fn scratch(&self, width: usize) -> Result<Scratch> {
        self.store.scratch(width * self.vault.own_nodes())
    }

    /// The noisy graph, asked for once and kept.
    pub fn noisy_graph(&mut self, available: Option<u64>) -> Result<Graph> {
        self.next(QueryKind::Response, 0)?;
        let question = NoisyGraph { available };
        if let Some(graph) = self.store.kept_graph()? {
            self.vault.replay(&question)?;
            return Ok(graph);
        }
        let graph = self.vault.ask(question)?;
        self.vault.forget();
        self.store.keep_graph(&graph, self.vault.key())?;
        self.laps.lap("noisy graph");
        Ok(graph)
    }

    /// Trains a new model of a stage, all of its parameters, as [`Trainer::train`] does.
    pub fn train_new(&mut self, stage: usize, objective: &mut dyn Objective) -> Result<()> {
        self.train(stage, |_, model| Ok(model), |_| Ok(()), objective)
    }

    /// Trains the model of a stage, from where it stands; a stage that is done is not trained again. `begin` changes a
    /// new model before the first epoch, `ready` any before it goes on.
    pub fn train(
        &mut self,
        stage: usize,
        begin: impl FnOnce(&Self, Model) -> Result<Model>,
        ready: impl FnOnce(&mut Model) -> Result<()>,
        objective: &mut dyn Objective,
    ) -> Result<()> {
        let shape = self.stage_shape(stage)?;
        self.walk.train(&self.program(), stage, &shape)?;
        self.walk.trained();
        if stage < self.state.finished.len() {
            return Ok(());
        }
        let mut model = match self.state.model.take() {
            Some(model) => model,
            None => begin(self, Model::new(shape, self.stage_seed(stage))?)?,
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
            return Err(Error::unsuitable(format!(
                "training diverged in stage {stage} (non-finite parameters) at the learning rate {}",
                settings.learning_rate
            ))
            .remedy(Remedy::words("start a new run with a smaller one")));
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

    /// As [`Trainer::fit`], of private rows: after the aggregates, what is fitted asks the vault once more, for a table
    /// of this kind and width. A run that is interrupted before the stage is kept stands at the same key as before,
    /// asks the same, and gets the same answer.
    pub fn fit_to_table(
        &mut self,
        stage: usize,
        (kind, width): (QueryKind, usize),
        aggregates: &Aggregates,
        fit: impl FnOnce(&mut Self) -> Result<Model>,
    ) -> Result<()> {
        self.next(kind, width)?;
        let fitted = if stage < self.state.finished.len() { None } else { Some(fit(self)?) };
        let mut known = vec![];
        for part in [Part::Train, Part::Val, Part::Test] {
            if let Some(model) = &fitted {
                known.push((part, self.vault.unprotected_accuracy_of(model, aggregates, part)?));
            }
        }
        let accuracy = |_: &Model, part: Part| {
            let found = known.iter().find(|(other, _)| *other == part);
            found.map(|(_, accuracy)| *accuracy).ok_or(Error::internal("the part has no accuracy"))
        };
        self.fit(stage, &accuracy, |_| {
            let model = fitted.ok_or(Error::internal("the stage is not fitted yet"))?;
            Ok(FittedStage { model, stage_score: None })
        })
    }

    /// Fits the model of a stage at once, without epochs; a stage that is done is not fitted again.
    pub fn fit(
        &mut self,
        stage: usize,
        accuracy: &dyn Fn(&Model, Part) -> Result<f64>,
        fit: impl FnOnce(&Self) -> Result<FittedStage>,
    ) -> Result<()> {
        let shape = self.stage_shape(stage)?;
        self.walk.train(&self.program(), stage, &shape)?;
        self.walk.trained();
        if stage < self.state.finished.len() {
            return Ok(());
        }
        let FittedStage { model, stage_score } = fit(self)?;
        if model.shape() != shape {
            return Err(Error::internal("the model has another shape than the program says"));
        }
        if !model.is_finite() || stage_score.is_some_and(|score| !score.log_loss.is_finite()) {
            return Err(Error::unsuitable(format!(
                "the fit diverged in stage {stage} (non-finite parameters)"
            ))
            .remedy(Remedy::words("scale the features"))
            .remedy(Remedy::set("method", "progap-labels")));
        }
        let train_accuracy = Some(accuracy(&model, Part::Train)?);
        let (val_accuracy, test) = (accuracy(&model, Part::Val)?, accuracy(&model, Part::Test)?);
        self.vault.forget();
        let (loss, val_score) = (None, None);
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
        record.and_then(|record| record.stage_score).ok_or(Error::internal("the stage is not evaluated yet"))
    }

    /// The model of a stage that is done.
    pub fn model(&self, stage: usize) -> Result<&Model> {
        self.state.finished.get(stage).ok_or(Error::internal("the stage is not trained yet"))
    }

    /// The run's decision by the history so far, where its settings leave it to the run.
    pub fn choice(&self) -> Option<Choice> {
        let val_nodes = self.vault.public_rows().map_or(0, |_| self.vault.count(Part::Val));
        super::choose(self.settings, &self.state.history, val_nodes)
    }

    /// Balances the classes of a stage that is done, where settings ask for it and labels are private: by noisy counts,
    /// which are asked for after everything else. A run that is interrupted after it stands at the same key as before,
    /// and gets the same counts.
    pub fn balance(&mut self, stage: usize, objective: &dyn Objective) -> Result<()> {
        if !asks_for_counts(self.settings) {
            return Ok(());
        }
        self.next(QueryKind::ClassCounts, 0)?;
        let odds = self.vault.ask(ClassCounts)?.odds();
        let model = self.state.finished.get_mut(stage);
        let model = model.ok_or(Error::internal("the stage is not trained yet"))?;
        model.shift_logits(&odds)?;
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

    /// The parts that remain when all is done: the vault, the models of all stages with their history, and where the
    /// time went.
    ///
    /// # Errors
    /// A program that was not walked to its end.
    pub fn finish(mut self) -> Result<(Vault, State, Vec<StageCost>)> {
        self.walk.finish(&self.program())?;
        self.laps.lap("evaluation");
        Ok((self.vault, self.state, self.laps.stages()))
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
