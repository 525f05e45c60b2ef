//! A multi-layer perceptron on the features: no edge is ever touched.

use super::catalogue::Entry;
use super::objective::RowObjective;
use super::trainer::Trainer;
use super::{Choice, Fitted, Method, Recipe, architecture, rows_and_aggregates};
use crate::model::Shape;
use crate::settings::{Level, Settings};
use crate::vault::Aggregates;
use crate::{Error, Result};

/// The method.
pub(super) struct Mlp;

pub(crate) const ENTRY: Entry = Entry {
    method: Method::Mlp,
    levels: &[Level::None, Level::Edge, Level::Node],
    what: "a perceptron on the features; no edge is touched",
    protects: "edges at epsilon 0; each node's record from all others by noisy gradients",
    paper: "Abadi et al. 2016, Deep learning with differential privacy",
};

impl Recipe for Mlp {
    fn trains_on_ranks(&self) -> bool {
        true
    }

    fn defaults(&self, level: Level) -> Settings {
        Settings { method: Method::Mlp, depth: 0, layers: 2, ..Settings::plain(level) }
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        match settings.depth {
            0 => Ok(()),
            _ => Err(Error::Contradiction(
                "the method mlp touches no edge: leave `depth` out, or give `depth 0`",
            )),
        }
    }

    fn learns_classes(&self, _: &Settings) -> bool {
        true
    }

    fn takes_counts(&self) -> bool {
        true
    }

    /// It reads no edge, whatever its weight.
    fn reads_weights(&self) -> bool {
        true
    }

    /// The shape: hidden layers, and a plain last one.
    fn shape(
        &self,
        settings: &Settings,
        (columns, classes): (usize, usize),
        _: usize,
        _: Option<&Choice>,
    ) -> Shape {
        Shape::Network(architecture(settings, vec![columns], classes))
    }

    fn fit(&self, mut trainer: Trainer<'_>) -> Result<Fitted> {
        let none = Aggregates::new();
        let shape = self.shape(trainer.settings, trainer.shape, 0, None);
        let mut objective = RowObjective::new(&trainer.vault, &none);
        trainer.train_new(0, shape, &mut objective)?;
        trainer.balance(0, &objective)?;
        let accuracies = trainer.evaluate(&objective)?;
        Fitted::new(trainer, vec![(0, rows_and_aggregates(0))], vec![], accuracies)
    }
}
