//! The state of training as a file: the values of models and optimiser, and a note of all else.

use std::path::Path;

use progap_graph::NumberColumn;
use serde::{Deserialize, Serialize};

use crate::error::InFile;
use crate::files::{self, Tensors};
use crate::method::checkpoint::State;
use crate::method::history::EpochRecord;
use crate::method::trainer::new_optimiser;
use crate::model::{Model, WrittenShape};
use crate::query::Queries;
use crate::settings::Settings;
use crate::{Error, Result};

#[derive(Serialize, Deserialize)]
struct Note {
    /// The shapes of the stages that are done.
    finished: Vec<WrittenShape>,
    /// The shape of the one that is being trained.
    training: Option<WrittenShape>,
    epoch: usize,
    steps: Option<u64>,
    best: Option<f64>,
    history: Vec<EpochRecord>,
    #[serde(deserialize_with = "files::numbers_or_nan")]
    stage_accuracies: Vec<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scaled: Option<Vec<NumberColumn>>,
    asked: Queries,
}

/// A state, to be written.
pub(super) fn written(state: &State) -> serde_json::Result<Tensors> {
    let mut tensors = Tensors::default();
    for (stage, model) in state.finished.iter().enumerate() {
        model.add_to(&mut tensors, &format!("stage{stage}."));
    }
    if let Some(model) = &state.model {
        model.add_to(&mut tensors, "model.");
    }
    if let Some((_, best)) = &state.best {
        best.add_to(&mut tensors, "best.");
    }
    let mut steps = None;
    if let Some(optimiser) = &state.optimiser {
        let (done, first, second) = optimiser.state();
        steps = Some(done);
        for (name, values) in [("optimiser.first", first), ("optimiser.second", second)] {
            tensors.values.insert(name.into(), (vec![values.len()], values.to_vec()));
        }
    }
    let note = Note {
        finished: state.finished.iter().map(|model| WrittenShape::of(&model.shape())).collect(),
        training: state.model.as_ref().map(|model| WrittenShape::of(&model.shape())),
        epoch: state.epoch,
        steps,
        best: state.best.as_ref().map(|(accuracy, _)| *accuracy),
        history: state.history.clone(),
        stage_accuracies: state.stage_accuracies.clone(),
        scaled: state.scaled.clone(),
        asked: state.asked.clone(),
    };
    tensors.note = serde_json::to_string(&note)?;
    Ok(tensors)
}

/// The state in the bytes of such a file.
pub(super) fn read(file: &Path, bytes: &[u8], settings: &Settings) -> Result<State> {
    let tensors = Tensors::parse(file, bytes)?;
    let note: Note = serde_json::from_str(&tensors.note).in_file(file)?;
    let load = |name: &str, shape: &WrittenShape| {
        Model::from(&tensors, &format!("{name}."), shape.shape()?).map_err(|e| Error::file(file, e))
    };
    let training =
        || note.training.as_ref().ok_or_else(|| Error::file(file, "it holds no shape: it was changed"));
    let list = |name: &str| tensors.values.get(name).map(|(_, values)| values.clone()).unwrap_or_default();
    let optimiser = note.steps.map(|steps| {
        let mut optimiser = new_optimiser(settings)?;
        optimiser.restore(steps, list("optimiser.first"), list("optimiser.second"));
        Ok::<_, Error>(optimiser)
    });
    let finished = note.finished.iter().enumerate();
    let best = note.best.map(|accuracy| Ok::<_, Error>((accuracy, load("best", training()?)?)));
    Ok(State {
        finished: finished
            .map(|(stage, shape)| load(&format!("stage{stage}"), shape))
            .collect::<Result<_>>()?,
        epoch: note.epoch,
        model: (note.epoch > 0).then(|| load("model", training()?)).transpose()?,
        optimiser: optimiser.transpose()?,
        best: best.transpose()?,
        history: note.history,
        stage_accuracies: note.stage_accuracies,
        scaled: note.scaled,
        asked: note.asked,
    })
}
