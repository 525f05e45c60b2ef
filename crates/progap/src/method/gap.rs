//! GAP (Sajadmanesh et al. 2023): an encoder is trained on the features; what it says is normalised, aggregated and
//! normalised again, once per hop; a classifier with a base network per hop is trained on the kept hops.

use progap_nn::{Architecture, Network, Norm, NormPlacement};

use super::objective::RowObjective;
use super::trainer::Trainer;
use super::{
    Capabilities, Choice, Defaults, Fitted, Method, MethodKind, MethodSpec, Program, QuerySpec, Stage,
    architecture, rows_and_aggregates,
};
use crate::Result;
use crate::model::Shape;
use crate::plan::PublicFacts;
use crate::predictor::Reads;
use crate::rows::normalise;
use crate::settings::{Level, Settings};
use crate::vault::{Aggregates, Message};

/// The method.
pub(super) struct Gap;

const SPEC: MethodSpec = MethodSpec {
    levels: &[Level::None, Level::Edge, Level::Node],
    what: "an encoder, its aggregates over several hops, a classifier",
    protects: "training and predictions: edges from everyone, or each node's record from all others",
    paper: "Sajadmanesh et al. 2023, GAP",
    can: Capabilities { ranks: true, histograms: true, edge_weights: true, ..Capabilities::PLAIN },
    own: &["encoder_layers"],
    ..MethodSpec::plain(MethodKind::Gap)
};

impl Method for Gap {
    fn spec(&self) -> &'static MethodSpec {
        &SPEC
    }

    fn defaults(&self, level: Level) -> Defaults {
        Defaults::published(Settings { method: MethodKind::Gap, ..Settings::plain(level) })
    }

    /// The encoder, and the classifier on what its hops sum up. As published: last layers are linear and no more, so
    /// that what is aggregated can point anywhere; norm and activation follow the division by the length. At node level
    /// there is no norm.
    fn program(&self, settings: &Settings, sizes: PublicFacts, _: Option<&Choice>) -> Program {
        let norm = if settings.level == Level::Node { Norm::None } else { Norm::Batch };
        let stage = |inputs: Vec<usize>, layers: usize| {
            let network = Architecture {
                layers,
                norm,
                normalise: true,
                norm_placement: NormPlacement::AfterJoin,
                ..architecture(settings, inputs, sizes.classes)
            };
            Stage::by_epochs(settings, Shape::Network(network))
        };
        let hop = QuerySpec::aggregation(settings, "encoded features", settings.hidden);
        let encoder = stage(vec![sizes.columns], settings.encoder_layers);
        let classifier = stage(vec![settings.hidden; settings.depth + 1], settings.layers);
        Program::new(settings, [encoder, classifier.after(vec![hop; settings.depth])])
    }

    fn fit(&self, mut trainer: Trainer<'_>) -> Result<Fitted> {
        let settings = trainer.settings;
        let mut aggregates = Aggregates::new();
        // What it copies of the rows is not held beside what the second copies.
        let mut first = RowObjective::new(&trainer.vault, &aggregates);
        trainer.train_new(0, &mut first)?;
        drop(first);
        let encoder: Network = trainer.model(0)?.network()?.clone();
        trainer.vault.encode(&encoder, trainer.scratch(settings.hidden)?)?;
        for hop in 0..settings.depth {
            let each_row =
                |values: &mut [f32], width: usize| values.chunks_exact_mut(width).for_each(normalise);
            trainer.aggregate(&mut aggregates, Message::Input(hop), each_row)?;
        }
        let mut objective = RowObjective::new(&trainer.vault, &aggregates);
        trainer.train_new(1, &mut objective)?;
        trainer.balance(1, &objective)?;
        let accuracies = trainer.evaluate(&objective)?;
        let mut reads = rows_and_aggregates(settings.depth);
        reads[0] = vec![Reads::Embedding(0)];
        Fitted::new(trainer, vec![(0, vec![vec![Reads::Rows]]), (1, reads)], aggregates, accuracies)
    }
}
