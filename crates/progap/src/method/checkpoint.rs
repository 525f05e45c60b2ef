//! The state that a run must not lose, and where it is kept.

use progap_graph::{Buffer, Graph, NumberColumn};
use progap_nn::Optimiser;
use progap_privacy::noise::RunKey;

use super::history::EpochRecord;
use crate::files::MatrixFile;
use crate::model::Model;
use crate::query::Queries;
use crate::scratch::Scratch;
use crate::{Error, Result};

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
    /// The epochs so far.
    pub history: Vec<EpochRecord>,
    /// The test accuracy of each finished stage.
    pub stage_accuracies: Vec<f64>,
    /// The maps of number columns, where they were asked for.
    pub scaled: Option<Vec<NumberColumn>>,
    /// The queries so far.
    pub asked: Queries,
}

/// Where a run keeps what it must not lose.
pub trait CheckpointStore {
    /// Keeps an aggregate for ever, and the run's next key, the one before it forgotten; both are on
    /// disk when this returns.
    fn keep_aggregate(
        &mut self,
        number: usize,
        values: Vec<f32>,
        width: usize,
        key: Option<&RunKey>,
    ) -> Result<Buffer<f32>>;
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
        Err(Error::internal("no file was begun"))
    }
    /// A matrix of this many values that a method makes for itself.
    fn scratch(&self, values: usize) -> Result<Scratch> {
        Ok(Scratch::held(values))
    }
    /// An aggregate, if it was kept.
    fn kept_aggregate(&mut self, number: usize, width: usize) -> Result<Option<Buffer<f32>>>;
    /// Keeps a noisy graph until the run is done, as an aggregate is kept.
    fn keep_graph(&mut self, graph: &Graph, key: Option<&RunKey>) -> Result<()>;
    /// The noisy graph, if it was kept.
    fn kept_graph(&mut self) -> Result<Option<Graph>>;
    /// Keeps the state, at the end of a stage, and the run's next key.
    fn save(&mut self, state: &State, key: Option<&RunKey>) -> Result<()>;
    /// Keeps the state if the last time is long ago, or if `now` is set.
    fn save_if_due(&mut self, state: &State, key: Option<&RunKey>, now: bool) -> Result<()>;
    /// The error to report when training is stopped.
    fn interrupted(&self) -> Error;
    /// Whether the training accuracy of every epoch is wanted where it does not come by itself.
    fn watches_training(&self) -> bool {
        false
    }
}
