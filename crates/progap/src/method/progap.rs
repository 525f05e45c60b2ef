//! ProGAP: stage `s` trains base networks 0 to `s` on the features and on the aggregates of the stages before, each
//! of which was asked for once and kept.
//!
//! What is aggregated are embeddings, as published, or what is known about the classes of nodes (docs/method.md).

use progap_nn::Architecture;
use progap_privacy::noise::Source;

use super::trainer::{RowLesson, Trainer};
use super::{Fitted, architecture};
use crate::Result;
use crate::model::{Model, Shape};
use crate::settings::{Messages, Settings};
use crate::vault::{Aggregates, Message};

/// The shape of stage `stage`.
pub(super) fn shape(settings: &Settings, (columns, classes): (usize, usize), stage: usize) -> Shape {
    let aggregates = std::iter::repeat_n(width(settings, classes), stage);
    let inputs = std::iter::once(columns).chain(aggregates).collect();
    Shape::Network(Architecture { normalise: true, ..architecture(settings, inputs, classes) })
}

/// The width of the aggregates.
pub(super) fn width(settings: &Settings, classes: usize) -> usize {
    match settings.messages {
        Messages::Embeddings => settings.hidden,
        Messages::Labels => classes,
    }
}

pub(super) fn fit<S: Source>(mut trainer: Trainer<'_, S>) -> Result<Fitted<S>> {
    let settings = trainer.settings;
    let mut aggregates = Aggregates::new();
    for stage in 0..=settings.depth {
        if stage > 0 {
            let before = trainer.model(stage - 1)?.clone();
            let (network, branch) = (before.network()?, stage - 1);
            let message = match settings.messages {
                Messages::Embeddings => Message::Embedding { network, branch },
                Messages::Labels => Message::Class { network },
            };
            trainer.aggregate(&mut aggregates, message, |_, _| ())?;
        }
        let begin = |trainer: &Trainer<'_, S>| {
            let mut model = Model::new(shape(settings, trainer.shape, stage), trainer.stage_seed(stage))?;
            if stage > 0 {
                model.network_mut()?.copy_branches(trainer.model(stage - 1)?.network()?, stage)?;
            }
            Ok(model)
        };
        let ready = |model: &mut Model| {
            for branch in 0..stage {
                model.network_mut()?.freeze(branch, settings.layerwise)?;
            }
            Ok(())
        };
        let mut lesson = RowLesson::new(&trainer.vault, &aggregates);
        trainer.train(stage, begin, ready, &mut lesson)?;
    }
    let accuracies = trainer.judge(&RowLesson::new(&trainer.vault, &aggregates))?;
    Ok(Fitted::new(trainer, None, aggregates, accuracies))
}
