//! GAP (Sajadmanesh et al. 2023): an encoder is trained on the features; what it says is normalised, aggregated and
//! normalised again, once per hop; a classifier with a base network per hop is trained on the kept hops.

use progap_nn::{Architecture, Network, Norm, NormPlacement};

use super::catalogue::Entry;
use super::objective::RowObjective;
use super::trainer::Trainer;
use super::{Choice, Fitted, Method, Recipe, architecture, rows_and_aggregates};
use crate::Result;
use crate::model::Shape;
use crate::predictor::Reads;
use crate::rows::normalise;
use crate::settings::{Level, Settings};
use crate::vault::{Aggregates, Message};

/// The method.
pub(super) struct Gap;

pub(crate) const ENTRY: Entry = Entry {
    method: Method::Gap,
    levels: &[Level::None, Level::Edge, Level::Node],
    what: "an encoder, its aggregates over several hops, a classifier",
    protects: "training and predictions: edges from everyone, or each node's record from all others",
    paper: "Sajadmanesh et al. 2023, GAP",
};

impl Recipe for Gap {
    fn trains_on_ranks(&self) -> bool {
        true
    }

    fn summed(&self, _: &Settings) -> &'static str {
        "sums of neighbours' encoded features"
    }

    fn defaults(&self, level: Level) -> Settings {
        Settings { method: Method::Gap, ..Settings::plain(level) }
    }

    fn own_settings(&self) -> &'static [&'static str] {
        &["encoder_layers"]
    }

    fn stages(&self, _: &Settings) -> usize {
        2
    }

    fn takes_counts(&self) -> bool {
        true
    }

    fn aggregations(&self, settings: &Settings) -> usize {
        settings.depth
    }

    fn reads_weights(&self) -> bool {
        true
    }

    /// The shape of the encoder (stage 0) and of the classifier (stage 1). As published: last layers are linear and no more,
    /// so that what is aggregated can point anywhere; norm and activation follow the division by the length. At node level
    /// there is no norm.
    fn shape(
        &self,
        settings: &Settings,
        (columns, classes): (usize, usize),
        stage: usize,
        _: Option<&Choice>,
    ) -> Shape {
        let (inputs, layers) = match stage {
            0 => (vec![columns], settings.encoder_layers),
            _ => (vec![settings.hidden; settings.depth + 1], settings.layers),
        };
        let norm = if settings.level == Level::Node { Norm::None } else { Norm::Batch };
        Shape::Network(Architecture {
            layers,
            norm,
            normalise: true,
            norm_placement: NormPlacement::AfterJoin,
            ..architecture(settings, inputs, classes)
        })
    }

    fn fit(&self, mut trainer: Trainer<'_>) -> Result<Fitted> {
        let settings = trainer.settings;
        let [encoder, classifier] = [0, 1].map(|stage| self.shape(settings, trainer.shape, stage, None));
        let mut aggregates = Aggregates::new();
        // What it copies of the rows is not held beside what the second copies.
        let mut first = RowObjective::new(&trainer.vault, &aggregates);
        trainer.train_new(0, encoder, &mut first)?;
        drop(first);
        let encoder: Network = trainer.model(0)?.network()?.clone();
        trainer.vault.encode(&encoder, trainer.scratch(settings.hidden)?)?;
        for hop in 0..settings.depth {
            let each_row =
                |values: &mut [f32], width: usize| values.chunks_exact_mut(width).for_each(normalise);
            trainer.aggregate(&mut aggregates, Message::Input(hop), each_row)?;
        }
        let mut objective = RowObjective::new(&trainer.vault, &aggregates);
        trainer.train_new(1, classifier, &mut objective)?;
        trainer.balance(1, &objective)?;
        let accuracies = trainer.evaluate(&objective)?;
        let mut reads = rows_and_aggregates(settings.depth);
        reads[0] = vec![Reads::Embedding(0)];
        Fitted::new(trainer, vec![(0, vec![vec![Reads::Rows]]), (1, reads)], aggregates, accuracies)
    }
}
