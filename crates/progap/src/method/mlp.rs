//! A multi-layer perceptron on the features: no edge is ever touched.

use super::objective::RowObjective;
use super::trainer::Trainer;
use super::{
    Capabilities, Choice, Defaults, Fitted, Method, MethodKind, MethodSpec, Program, Stage, architecture,
    rows_and_aggregates,
};
use crate::model::Shape;
use crate::plan::PublicFacts;
use crate::settings::{Level, Settings};
use crate::vault::Aggregates;
use crate::{Error, Remedy, Result};

/// The method.
pub(super) struct Mlp;

const SPEC: MethodSpec = MethodSpec {
    levels: &[Level::None, Level::Edge, Level::Node],
    what: "a perceptron on the features; no edge is touched",
    protects: "edges at epsilon 0; each node's record from all others by noisy gradients",
    paper: "Abadi et al. 2016, Deep learning with differential privacy",
    // It reads no edge, whatever its weight.
    can: Capabilities {
        uses_edges: false,
        ranks: true,
        histograms: true,
        edge_weights: true,
        width_by_classes: true,
        ..Capabilities::PLAIN
    },
    ..MethodSpec::plain(MethodKind::Mlp)
};

impl Method for Mlp {
    fn spec(&self) -> &'static MethodSpec {
        &SPEC
    }

    fn defaults(&self, level: Level) -> Defaults {
        let plain = Settings::plain(level);
        Defaults::published(Settings { method: MethodKind::Mlp, depth: 0, layers: 2, ..plain })
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        match settings.depth {
            0 => Ok(()),
            _ => Err(Error::contradiction("the method mlp touches no edge")
                .remedy(Remedy::Drop("depth"))
                .remedy(Remedy::set("depth", "0"))),
        }
    }

    /// One model: hidden layers, and a plain last one.
    fn program(&self, settings: &Settings, sizes: PublicFacts, _: Option<&Choice>) -> Program {
        let shape = Shape::Network(architecture(settings, vec![sizes.columns], sizes.classes));
        Program::new(settings, [Stage::by_epochs(settings, shape)])
    }

    fn fit(&self, mut trainer: Trainer<'_>) -> Result<Fitted> {
        let none = Aggregates::new();
        let mut objective = RowObjective::new(&trainer.vault, &none);
        trainer.train_new(0, &mut objective)?;
        trainer.balance(0, &objective)?;
        let accuracies = trainer.evaluate(&objective)?;
        Fitted::new(trainer, vec![(0, rows_and_aggregates(0))], vec![], accuracies)
    }
}
