//! The noisy mean of the labels of neighbours, beside the features: an example of a method, as CONTRIBUTING.md says how
//! to write one.

use std::ops::Range;

use super::objective::RowObjective;
use super::trainer::Trainer;
use super::{
    Choice, Defaults, Fitted, Method, MethodKind, MethodSpec, Program, QuerySpec, Stage, architecture,
    rows_and_aggregates,
};
use crate::model::Shape;
use crate::plan::PublicFacts;
use crate::settings::{Level, Settings, within};
use crate::vault::{Aggregates, Maker, Message};
use crate::{Error, Result};

/// The method.
pub(super) struct NeighbourLabels;

const SPEC: MethodSpec = MethodSpec {
    levels: &[Level::None, Level::Edge],
    what: "a perceptron on the features and on the noisy mean of neighbours' labels",
    protects: "training and predictions: edges from everyone",
    paper: "an example",
    ..MethodSpec::plain(MethodKind::NeighbourLabels)
};

impl Method for NeighbourLabels {
    fn spec(&self) -> &'static MethodSpec {
        &SPEC
    }

    fn defaults(&self, level: Level) -> Defaults {
        let plain = Settings::plain(level);
        let recommended = Settings { method: MethodKind::NeighbourLabels, depth: 1, ..plain };
        Defaults { recommended, published: None }
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        within("depth", settings.depth as f64, 1.0, 1.0)
    }

    /// One sum, of a number for each class, then one model of the features and of what became of the sum.
    fn program(&self, settings: &Settings, sizes: PublicFacts, _: Option<&Choice>) -> Program {
        let sum = QuerySpec::aggregation(settings, "labels", sizes.classes);
        let network = architecture(settings, vec![sizes.columns, sizes.classes], sizes.classes);
        Program::new(settings, [Stage::by_epochs(settings, Shape::Network(network)).after([sum])])
    }

    fn fit(&self, mut trainer: Trainer<'_>) -> Result<Fitted> {
        let rows = trainer.vault.need_public_rows()?.clone();
        let (classes, teaches) = (rows.classes(), rows.training_nodes());
        let labels = |nodes: Range<usize>| {
            let mut messages = vec![0.0; nodes.len() * classes];
            for (at, node) in nodes.enumerate().filter(|(_, node)| teaches[*node]) {
                messages[at * classes + rows.labels()[node] as usize] = 1.0;
            }
            Ok::<_, Error>(messages)
        };
        let mean = |sums: &mut [f32], width: usize| {
            for sum in sums.chunks_exact_mut(width) {
                let neighbours = sum.iter().sum::<f32>().max(1.0);
                sum.iter_mut().for_each(|count| *count /= neighbours);
            }
        };
        let mut aggregates = Aggregates::new();
        let message = Message::Made { maker: Maker(&labels), width: classes, back: false };
        trainer.aggregate(&mut aggregates, message, mean)?;
        let mut objective = RowObjective::new(&trainer.vault, &aggregates);
        trainer.train_new(0, &mut objective)?;
        let accuracies = trainer.evaluate(&objective)?;
        Fitted::new(trainer, vec![(0, rows_and_aggregates(1))], aggregates, accuracies)
    }
}
