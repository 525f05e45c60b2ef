//! ProGAP: stage `s` trains base networks 0 to `s` on the features and on the aggregates of the stages before, each
//! of which was asked for once and kept.

use progap_nn::Architecture;
use progap_privacy::noise::Source;

use super::trainer::{RowLesson, Trainer};
use super::{Fitted, architecture};
use crate::Result;
use crate::model::{Model, Shape};
use crate::settings::{Messages, Settings, Speakers};
use crate::vault::{Aggregates, Message, Senders};

/// The shape of the `number`-th model.
pub(super) fn shape(settings: &Settings, sizes: (usize, usize), number: usize) -> Shape {
    let widths = (1..=number + first_stage(settings)).map(|number| width(settings, sizes, number));
    let inputs = std::iter::once(sizes.0).chain(widths).collect();
    Shape::Network(Architecture { normalise: true, ..architecture(settings, inputs, sizes.1) })
}

/// The width of the `number`-th aggregate, from 1.
pub(super) fn width(settings: &Settings, (_, classes): (usize, usize), number: usize) -> usize {
    match settings.messages {
        Messages::Embeddings => settings.hidden,
        Messages::Labels => classes,
        // Before the first stage there are no embeddings.
        Messages::Both if number > first_stage(settings) => classes + settings.hidden,
        Messages::Both => classes,
    }
}

/// The number of models.
pub(super) fn stages(settings: &Settings) -> usize {
    settings.depth + 1 - first_stage(settings)
}

/// Who takes part in each aggregation.
pub(super) fn senders(settings: &Settings) -> Vec<Senders> {
    (0..settings.depth)
        .map(|number| match (settings.speakers, number) {
            (Speakers::Everyone, _) => Senders::All,
            (Speakers::InTurns, 0) => Senders::Train,
            (Speakers::InTurns, _) => Senders::Others,
        })
        .collect()
}

/// 0, or 1 where no stage knows the features alone.
fn first_stage(settings: &Settings) -> usize {
    usize::from(!settings.features_stage && settings.depth > 0)
}

pub(super) fn fit<S: Source>(mut trainer: Trainer<'_, S>) -> Result<Fitted<S>> {
    let settings = trainer.settings;
    let first = first_stage(settings);
    let mut aggregates = Aggregates::new();
    for stage in first..=settings.depth {
        if stage > 0 {
            let before = if stage > first { Some(trainer.model(stage - 1 - first)?.clone()) } else { None };
            let network = before.as_ref().map(Model::network).transpose()?;
            let with_embedding = (settings.messages == Messages::Both).then_some(stage - 1);
            let message = match (settings.messages, network) {
                (Messages::Embeddings, Some(network)) => Message::Embedding { network, branch: stage - 1 },
                _ => Message::Class { network, with_embedding },
            };
            trainer.aggregate(&mut aggregates, message, |_, _| ())?;
        }
        let begin = |trainer: &Trainer<'_, S>| {
            let shape = shape(settings, trainer.shape, stage - first);
            let mut model = Model::new(shape, trainer.stage_seed(stage))?;
            if stage > first {
                model.network_mut()?.copy_branches(trainer.model(stage - 1 - first)?.network()?, stage)?;
            }
            Ok(model)
        };
        let ready = |model: &mut Model| {
            for branch in 0..stage {
                model.network_mut()?.freeze(branch, settings.layerwise && stage > first)?;
            }
            Ok(())
        };
        let mut lesson = RowLesson::new(&trainer.vault, &aggregates);
        trainer.train(stage - first, begin, ready, &mut lesson)?;
    }
    let accuracies = trainer.judge(&RowLesson::new(&trainer.vault, &aggregates))?;
    Ok(Fitted::new(trainer, None, aggregates, accuracies))
}
