//! ProGAP: stage `s` trains base networks 0 to `s` on the features and on the aggregates of the stages before, each
//! of which was asked for once and kept.

use progap_nn::Architecture;
use progap_privacy::noise::Source;

use super::trainer::{RowLesson, Trainer};
use super::{Fitted, architecture};
use crate::Result;
use crate::model::{Model, Shape};
use crate::settings::Settings;
use crate::vault::{Aggregates, Message};

/// The shape of stage `stage`.
pub(super) fn shape(settings: &Settings, (columns, classes): (usize, usize), stage: usize) -> Shape {
    let inputs = std::iter::once(columns).chain(std::iter::repeat_n(settings.hidden, stage)).collect();
    Shape::Network(Architecture { normalise: true, ..architecture(settings, inputs, classes) })
}

pub(super) fn fit<S: Source>(mut trainer: Trainer<'_, S>) -> Result<Fitted<S>> {
    let settings = trainer.settings;
    let mut aggregates = Aggregates::new();
    for stage in 0..=settings.depth {
        if stage > 0 {
            let before = trainer.model(stage - 1)?.clone();
            let message = Message::Embedding { network: before.network(), branch: stage - 1 };
            trainer.aggregate(&mut aggregates, message, |_, _| ())?;
        }
        let begin = |trainer: &Trainer<'_, S>| {
            let shape = shape(settings, trainer.shape, stage);
            let mut model = Model::new(shape, trainer.stage_seed(stage))?;
            if stage > 0 {
                model.network_mut().copy_branches(trainer.model(stage - 1)?.network(), stage)?;
            }
            Ok(model)
        };
        let ready = |model: &mut Model| {
            for branch in 0..stage {
                model.network_mut().freeze(branch, settings.layerwise)?;
            }
            Ok(())
        };
        let mut lesson = RowLesson::new(&trainer.vault, &aggregates);
        trainer.train(stage, begin, ready, &mut lesson)?;
    }
    let accuracies = trainer.judge(&RowLesson::new(&trainer.vault, &aggregates))?;
    Ok(Fitted::new(trainer, None, aggregates, accuracies))
}
