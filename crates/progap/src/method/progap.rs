//! ProGAP: stage `s` trains base networks 0 to `s` on the features and on the aggregates of the stages before, each
//! of which was asked for once and kept.

use progap_graph::{Buffer, Part};
use progap_nn::{
    Activation, Adam, Architecture, Batch, Jk, Network, Norm, Optimiser, accuracy, apply, epoch,
};
use progap_privacy::Event;
use progap_privacy::noise::Source;
use serde::{Deserialize, Serialize};

use super::{Observer, Progress};
use crate::plan::Plan;
use crate::settings::{Combination, Level, Nonlinearity, Selection, Settings};
use crate::vault::{Aggregates, Vault};
use crate::{Error, Result};

/// What happened in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// The stage.
    pub stage: usize,
    /// The epoch, from 1.
    pub epoch: usize,
    /// The mean loss over the training nodes, where it is known.
    pub loss: Option<f64>,
    /// The accuracy on the training nodes, where it is known.
    pub train_accuracy: Option<f64>,
    /// The accuracy on the validation nodes.
    pub val_accuracy: f64,
}

/// A run between two epochs: all that is needed to go on.
#[derive(Debug, Clone)]
pub struct State {
    /// The stage that is being trained.
    pub stage: usize,
    /// Its epochs that are done.
    pub epoch: usize,
    /// The network: of this stage if an epoch of it is done, else of the stage before.
    pub network: Option<Network>,
    /// The optimiser, within a stage.
    pub optimiser: Option<Optimiser>,
    /// The best network of the stage so far, with its validation accuracy.
    pub best: Option<(f64, Network)>,
    /// What happened.
    pub history: Vec<EpochRecord>,
    /// The test accuracy of each finished stage; stage 0 knows features only.
    pub stage_accuracies: Vec<f64>,
    /// What was asked of the vault.
    pub events: Vec<(Event, u64)>,
}

impl State {
    /// Before anything happened.
    pub fn start() -> State {
        State {
            stage: 0,
            epoch: 0,
            network: None,
            optimiser: None,
            best: None,
            history: vec![],
            stage_accuracies: vec![],
            events: vec![],
        }
    }
}

/// Where a run keeps what it must not lose.
pub trait Keeper {
    /// Keeps an aggregate for ever; it is on disk when this returns.
    fn keep_aggregate(&mut self, stage: usize, values: &[f32], width: usize) -> Result<Buffer<f32>>;
    /// The aggregate of a stage, if it was kept.
    fn kept_aggregate(&mut self, stage: usize, width: usize) -> Result<Option<Buffer<f32>>>;
    /// Keeps the state, at the end of a stage.
    fn keep_state(&mut self, state: &State) -> Result<()>;
    /// Keeps the state if the last time is long ago, or if `now` is set.
    fn maybe_keep_state(&mut self, state: &State, now: bool) -> Result<()>;
    /// What to say when training is stopped.
    fn interrupted(&self) -> Error;
}

/// A trained model.
#[derive(Debug)]
pub struct Fitted {
    /// The network of the last stage.
    pub network: Network,
    /// What the later base networks read.
    pub aggregates: Aggregates,
    /// What happened.
    pub history: Vec<EpochRecord>,
    /// The test accuracy of each stage; stage 0 knows features only.
    pub stage_accuracies: Vec<f64>,
}

/// The shape of stage `stage`.
pub fn architecture(settings: &Settings, columns: usize, classes: usize, stage: usize) -> Architecture {
    let inputs = std::iter::once(columns).chain(std::iter::repeat_n(settings.hidden, stage)).collect();
    Architecture {
        hidden: settings.hidden,
        layers: settings.layers,
        activation: match settings.activation {
            Nonlinearity::Selu => Activation::Selu,
            Nonlinearity::Relu => Activation::Relu,
            Nonlinearity::Tanh => Activation::Tanh,
        },
        norm: if settings.level == Level::Node { Norm::Group } else { Norm::Batch },
        dropout: settings.dropout as f32,
        jk: match settings.jk {
            Combination::Cat => Jk::Cat,
            Combination::Sum => Jk::Sum,
            Combination::Mean => Jk::Mean,
            Combination::Max => Jk::Max,
            Combination::Wsum => Jk::WeightedSum,
            Combination::Attn => Jk::Attention { heads: 1 },
            Combination::Lstm => Jk::Lstm,
        },
        ..Architecture::new(inputs, classes)
    }
}

/// Trains all stages from where `state` stands.
#[allow(clippy::too_many_arguments, reason = "a run is made of all of these")]
pub fn fit<S: Source>(
    vault: &mut Vault<S>,
    settings: &Settings,
    plan: &Plan,
    shape: (usize, usize),
    model_seed: u64,
    mut state: State,
    keeper: &mut dyn Keeper,
    observer: &mut dyn Observer,
) -> Result<Fitted> {
    let (columns, classes) = shape;
    vault.resume(std::mem::take(&mut state.events));
    let mut aggregates = Aggregates { stages: vec![], width: settings.hidden };
    for stage in 1..=state.stage {
        // The aggregate of the current stage may be missing: then its stage has not begun.
        if let Some(kept) = keeper.kept_aggregate(stage, settings.hidden)? {
            aggregates.stages.push(kept);
        }
    }
    vault.resume_aggregates(aggregates.stages.len(), plan)?;
    while state.stage <= settings.depth {
        let stage = state.stage;
        if aggregates.stages.len() < stage {
            let before = state.network.as_ref().ok_or_else(|| keeper.interrupted())?;
            let values =
                vault.aggregate(&format!("aggregate {stage}"), before, stage - 1, &aggregates, plan)?;
            aggregates.stages.push(keeper.keep_aggregate(stage, &values, settings.hidden)?);
        }
        let mut network = match state.network.take() {
            Some(network) if state.epoch > 0 => network,
            before => begin_stage(settings, columns, classes, stage, model_seed, before.as_ref())?,
        };
        let mut optimiser = match state.optimiser.take() {
            Some(optimiser) => optimiser,
            None => new_optimiser(settings)?,
        };
        let grid = match settings.level {
            Level::Node => Some(vault.gradient_grid(network.trained_count(), settings, plan)?),
            _ => None,
        };
        let public = |part| vault.public_rows().map(|rows| rows.nodes(part)).unwrap_or_default();
        let (train, val) = (public(Part::Train), public(Part::Val));
        while state.epoch < settings.epochs {
            let done = state.epoch + 1;
            let (loss, train_accuracy, val_accuracy) = match &grid {
                None => {
                    let rows =
                        vault.public_rows().ok_or(Error::Contradiction("rows are private at node level"))?;
                    let inputs = rows.checked_inputs(&aggregates)?;
                    let batch = Batch::new(&inputs, rows.labels(), &train, classes)?;
                    let seed = model_seed ^ (stage as u64) << 32 ^ done as u64;
                    let stats = epoch(&mut network, &mut optimiser, batch, seed)?;
                    let held_out = accuracy(&network, Batch::new(&inputs, rows.labels(), &val, classes)?)?;
                    (Some(stats.loss), Some(stats.accuracy), held_out)
                }
                Some(grid) => {
                    let steps = |epoch: usize| plan.steps * epoch as u64 / settings.epochs as u64;
                    for step in steps(state.epoch)..steps(done) {
                        let query = format!("gradient {stage}/{step}");
                        let gradient = vault.gradient(&query, &network, &aggregates, grid, settings, plan)?;
                        apply(&mut network, &mut optimiser, &gradient)?;
                    }
                    (None, None, vault.unprotected_accuracy(&network, &aggregates, Part::Val)?)
                }
            };
            state.epoch = done;
            state.history.push(EpochRecord { stage, epoch: done, loss, train_accuracy, val_accuracy });
            // NaN (no validation nodes) never is the best: then the last epoch is kept.
            if settings.selection == Selection::BestValidation
                && state.best.as_ref().is_none_or(|(best, _)| val_accuracy > *best)
            {
                state.best = Some((val_accuracy, network.clone()));
            }
            let progress = Progress {
                stage,
                stages: settings.depth,
                epoch: done,
                epochs: settings.epochs,
                loss,
                train_accuracy,
                val_accuracy,
            };
            let stop = observer.epoch(&progress).is_break();
            // The keeper sees the state as it is; the network goes in and out without being copied.
            state.network = Some(network);
            state.optimiser = Some(optimiser);
            state.events = vault.events().to_vec();
            keeper.maybe_keep_state(&state, stop)?;
            if stop {
                return Err(keeper.interrupted());
            }
            network = state.network.take().expect("it was put there");
            optimiser = state.optimiser.take().expect("it was put there");
        }
        let kept = match (settings.selection, state.best.take()) {
            (Selection::BestValidation, Some((accuracy, best))) if accuracy.is_finite() => best,
            _ => network,
        };
        state.stage_accuracies.push(vault.unprotected_accuracy(&kept, &aggregates, Part::Test)?);
        state.stage += 1;
        state.epoch = 0;
        state.network = Some(kept);
        state.events = vault.events().to_vec();
        keeper.keep_state(&state)?;
    }
    let network = state.network.ok_or_else(|| keeper.interrupted())?;
    Ok(Fitted { network, aggregates, history: state.history, stage_accuracies: state.stage_accuracies })
}

/// The optimiser that every stage begins with.
pub(crate) fn new_optimiser(settings: &Settings) -> Result<Optimiser> {
    Ok(Optimiser::adam(Adam {
        rate: settings.learning_rate as f32,
        weight_decay: settings.weight_decay as f32,
        ..Adam::default()
    })?)
}

/// The network of a stage before its first epoch: base networks of the stage before, the rest drawn anew.
fn begin_stage(
    settings: &Settings,
    columns: usize,
    classes: usize,
    stage: usize,
    model_seed: u64,
    before: Option<&Network>,
) -> Result<Network> {
    let seed = model_seed.wrapping_add((stage as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut network = Network::new(architecture(settings, columns, classes, stage), seed)?;
    if let Some(before) = before {
        network.copy_branches(before, stage)?;
        for branch in 0..stage {
            network.freeze(branch, settings.layerwise)?;
        }
    }
    Ok(network)
}
