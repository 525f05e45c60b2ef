//! Defaults that follow from public sizes: how wide, how fast and in which batches a model is trained where nobody says so.
//!
//! Only the numbers of nodes, classes and feature columns decide, which are public at every level. On data of the size for which the usual
//! defaults were found (docs/method.md) they stay as they are.

use serde::{Deserialize, Serialize};

use super::declaration::{Kind, SettingType};
use super::{Level, Scaling, Settings};
use crate::plan::PublicSizes;

/// Which settings follow from sizes: those that nobody gave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FromSizes {
    /// The number of aggregations.
    pub depth: bool,
    /// The width of hidden layers.
    pub hidden: bool,
    /// The learning rate.
    pub learning_rate: bool,
    /// The batch size.
    pub batch_size: bool,
    /// The epochs.
    pub epochs: bool,
    /// How number columns are brought to scale.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub scaling: bool,
}

impl SettingType for FromSizes {
    type Given = FromSizes;
    const KIND: Kind = Kind::Switch;
}

/// Up to this many classes the usual width and learning rate do.
const FEW_CLASSES: usize = 16;
/// From this many training nodes on a layer at node level is twice as wide.
const MANY_TRAIN_NODES: usize = 100_000;
/// The most epochs of many classes where losses are public, and over how many of them the loss has to fall.
const MANY_EPOCHS: usize = 500;
const PATIENCE: usize = 20;
/// The nodes that noisy counts of one column need at an epsilon of 8.
const NODES_FOR_COUNTS: f64 = 350.0;
/// The widest hidden layer.
const WIDEST: usize = 64;

impl FromSizes {
    pub(super) const ALL: FromSizes = FromSizes {
        depth: true,
        hidden: true,
        learning_rate: true,
        batch_size: true,
        epochs: true,
        scaling: true,
    };

    /// A setting that was given follows from nothing.
    pub(crate) fn close(&mut self, name: &str) {
        match name {
            "depth" => self.depth = false,
            "hidden" => self.hidden = false,
            "learning_rate" => self.learning_rate = false,
            "batch_size" => self.batch_size = false,
            "epochs" => self.epochs = false,
            "scaling" => self.scaling = false,
            _ => {}
        }
    }

    pub(super) fn are_none(&self) -> bool {
        *self == FromSizes::default()
    }
}

impl Settings {
    /// The same with all that can follow from public sizes left to them, see [`Settings::for_sizes`]; what is given later is not.
    #[must_use]
    pub fn by_sizes(self) -> Settings {
        let recipe = self.method.recipe();
        let (classes, node) = (recipe.learns_classes(&self), self.level == Level::Node);
        let depth = recipe.depth_for(&self, PublicSizes::default()).is_some();
        let from_sizes = FromSizes {
            depth,
            hidden: classes,
            learning_rate: classes,
            batch_size: node,
            epochs: node || classes,
            scaling: node && recipe.takes_counts(),
        };
        Settings { from_sizes, ..self }
    }

    /// Whether the aggregations that the method has at node level were left out, as public sizes can suggest.
    pub fn leaves_graph_out(&self) -> bool {
        let can = self.method.recipe().depth_for(self, PublicSizes::default()).is_some();
        self.level == Level::Node && can && self.depth == 0
    }

    /// The settings with all that follows from public sizes decided.
    #[must_use]
    pub fn for_sizes(&self, sizes: PublicSizes) -> Settings {
        let (open, recipe) = (self.from_sizes, self.method.recipe());
        let mut settings = Settings { from_sizes: FromSizes::default(), ..self.clone() };
        if let Some(depth) = recipe.depth_for(self, sizes).filter(|_| open.depth) {
            settings.depth = depth;
        }
        if sizes.classes > FEW_CLASSES && recipe.learns_classes(self) {
            if open.hidden {
                settings.hidden = width(self.hidden, sizes.classes);
            }
            if open.learning_rate {
                settings.learning_rate = if self.level == Level::Node { 0.05 } else { 0.03 };
            }
            // Many classes take longer, and how long is not known before: until the loss has stopped falling.
            if open.epochs && self.level != Level::Node && self.patience == 0 {
                settings.epochs = MANY_EPOCHS.max(self.epochs);
                settings.patience = PATIENCE;
            }
        }
        // The noise of each parameter is small beside a sum over many nodes: there are more things to learn than it hides.
        if open.hidden && self.level == Level::Node && sizes.train_nodes >= MANY_TRAIN_NODES {
            settings.hidden = settings.hidden.max(2 * self.hidden);
        }
        if open.scaling && noise_leaves_something(self.epsilon, sizes) {
            settings.scaling = Scaling::Noisy;
        }
        settings.with_batches_for(open, sizes)
    }
}

/// Whether noisy counts of the open columns say something of the nodes: the noise grows with the root of the number of columns, and as
/// epsilon falls.
fn noise_leaves_something(epsilon: Option<f64>, sizes: PublicSizes) -> bool {
    let means = sizes.nodes as f64 * epsilon.unwrap_or(0.0).min(8.0) / 8.0;
    sizes.open_numbers > 0 && means >= NODES_FOR_COUNTS * (sizes.open_numbers as f64).sqrt()
}

/// Half as wide again as there are classes.
fn width(usual: usize, classes: usize) -> usize {
    (3 * classes / 2).next_multiple_of(8).clamp(usual, WIDEST.max(usual))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Request;

    fn decided(request: Request, train_nodes: usize, classes: usize) -> Settings {
        let sizes = PublicSizes { train_nodes, classes, ..PublicSizes::default() };
        request.settings().expect("settings").for_sizes(sizes).into_settings()
    }

    #[test]
    fn what_nobody_gave_follows_from_sizes() {
        let node = || Request::default().with("level", "node");
        let batch = |nodes: usize| decided(node(), nodes, 6).batch_size;
        assert_eq!([450, 153, 20, 3, 8192, 50_000].map(batch), [28, 16, 10, 1, 512, 512]);
        let wide = |classes: usize| {
            let settings = decided(Request::default().with("method", "progap"), 5000, classes);
            (settings.hidden, settings.learning_rate)
        };
        assert_eq!(
            [6, 16, 17, 40, 100].map(wide),
            [(16, 0.01), (16, 0.01), (32, 0.03), (64, 0.03), (64, 0.03)]
        );
        // Many training nodes at node level, where noise hides less.
        let many = |request: Request, nodes: usize| decided(request, nodes, 6).hidden;
        assert_eq!([99_999, 100_000].map(|nodes| many(node(), nodes)), [16, 32]);
        assert_eq!(many(node().with("hidden", 8), 100_000), 8);
        assert_eq!(many(Request::default().with("method", "progap"), 100_000), 16, "edge level");
        assert_eq!(decided(node(), 100_000, 40).hidden, 64, "many classes");
        // Values that were given stay, whatever they are.
        let given = node().with("batch_size", 512).with("hidden", 16).with("learning_rate", 0.02);
        let given = decided(given, 450, 40);
        assert_eq!((given.batch_size, given.hidden, given.learning_rate), (512, 16, 0.02));
        // So do the published settings, those of a file, and messages that are as wide as the network.
        let paper = decided(Request::published().with("level", "node"), 450, 40);
        assert_eq!((paper.batch_size, paper.hidden), (256, 16));
        let file = Settings::new(Level::Node);
        assert_eq!(decided(Request::from(&file), 450, 40), file);
        assert_eq!(decided(Request::default().with("messages", "embeddings"), 5000, 40).hidden, 16);
    }
}
