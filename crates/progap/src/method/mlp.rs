//! A multi-layer perceptron on the features: no edge is ever touched.

use progap_privacy::noise::Source;

use super::trainer::{RowLesson, Trainer};
use super::{Fitted, architecture};
use crate::Result;
use crate::model::{Model, Shape};
use crate::settings::Settings;
use crate::vault::Aggregates;

/// The shape: hidden layers, and a plain last one.
pub(super) fn shape(settings: &Settings, (columns, classes): (usize, usize)) -> Shape {
    Shape::Network(architecture(settings, vec![columns], classes))
}

pub(super) fn fit<S: Source>(mut trainer: Trainer<'_, S>) -> Result<Fitted<S>> {
    let none = Aggregates::new();
    let begin =
        |trainer: &Trainer<'_, S>| Model::new(shape(trainer.settings, trainer.shape), trainer.stage_seed(0));
    let mut lesson = RowLesson::new(&trainer.vault, &none);
    trainer.train(0, begin, |_| Ok(()), &mut lesson)?;
    let accuracies = trainer.judge(&lesson)?;
    Ok(Fitted::new(trainer, None, vec![], accuracies))
}
