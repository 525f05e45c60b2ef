//! Settings of a training run: everything has a default, and everything is checked before any work.
//!
//! `declared.rs` lists the settings. A [`Request`] asks for some of them by name; [`Request::settings`] turns it into [`Checked`]
//! settings, which everything after it takes as they are.

mod batches;
mod check;
mod choices;
mod declaration;
mod declared;
mod defaults;
mod effect;
mod needed;
mod request;
mod sizes;

use progap_graph::{Dataset, Graph, Part, Preparation};

pub(crate) use batches::more_epochs;
pub use check::Checked;
pub use choices::{
    Accounting, Bounding, Calibration, ClassWeights, Combination, DeltaRule, Direction, Level, Messages,
    Metric, Nonlinearity, Order, Scaling, Selection,
};
pub(crate) use declaration::within;
pub use declaration::{About, Declaration, Kind, Scope};
pub use declared::Settings;
pub use needed::{Size, SizesNeeded};
pub use request::{Change, Edge, Node, Request, Unprotected};
pub use sizes::FromSizes;

pub use crate::method::Method;
use crate::method::catalogue::default_method;
use crate::plan::PublicSizes;

/// The epsilons that a run may be asked for, and a ledger may hold.
pub(crate) const EPSILONS: std::ops::RangeInclusive<f64> = 1e-3..=1e3;
/// The deltas that a run may be asked for, and a ledger may hold.
pub(crate) const DELTAS: std::ops::RangeInclusive<f64> = 1e-30..=0.1;

impl Settings {
    /// The recommended settings of a level: two views where rows are public, ProGAP with label messages where they are private.
    ///
    /// They are the same for every graph (docs/method.md), but for the depth, which [`Request`]s leave to public sizes.
    pub fn new(level: Level) -> Settings {
        Settings::of(default_method(level), level)
    }

    /// The defaults of a method at a level.
    pub fn of(method: Method, level: Level) -> Settings {
        method.recipe().defaults(level)
    }

    /// Settings of the largest model and the longest training that a method could have: every whole number at the end of its range.
    pub(crate) fn largest(method: Method, level: Level) -> Settings {
        let mut settings = Settings { direction: Direction::Both, ..Settings::of(method, level) };
        for declaration in Settings::declarations() {
            if let (Kind::Whole, Some((_, most))) = (declaration.kind, declaration.about.range) {
                // A whole number of its range is one that it can have.
                let _ = declaration.set(&mut settings, (most as u64).into());
            }
        }
        settings
    }

    /// The published settings: noise by Renyi divergences, degree bounds by sampling, and the published guarantee.
    pub fn paper(method: Method, level: Level) -> Settings {
        let settings = method.recipe().published(level);
        let (bounding, calibration, accounting) = (Bounding::Sample, Calibration::Off, Accounting::Rdp);
        Settings { bounding, calibration, accounting, ..settings }.with_published_guarantee()
    }

    /// The same with the published unit, the directed edge, and the published rule for delta: for whoever compares with
    /// published figures.
    #[must_use]
    pub fn with_published_guarantee(self) -> Settings {
        Settings { undirected: false, unit_from_data: false, delta_rule: DeltaRule::Published, ..self }
    }

    /// The same with the unit that a graph suggests: the friendship where every edge has an edge back, the directed edge
    /// elsewhere. Nothing is looked at where a run touches no edge, or protects none.
    #[must_use]
    pub fn unit_by_graph(self) -> Settings {
        let unit_from_data = self.level == Level::Edge;
        Settings { undirected: false, unit_from_data, ..self }
    }

    /// The settings with the unit decided, before anything is planned: what a run keeps, and all that comes after it reads.
    #[must_use]
    pub fn for_graph(&self, graph: &Graph) -> Settings {
        match self.unit_from_data && self.touches_edges() {
            true => Settings { undirected: graph.is_symmetric(), ..self.clone() },
            false => self.clone(),
        }
    }

    /// The settings with all that follows from the data decided: the unit, depth, width, learning rate, batches and scaling, and, where there
    /// are no validation nodes to choose by, that the last epoch is taken. Sizes are public, and so is which nodes are training and
    /// validation nodes.
    #[must_use]
    pub fn for_data(&self, dataset: &Dataset) -> Settings {
        let count = |part| dataset.split().map_or(0, |split| split.count(part));
        let selection = if count(Part::Val) > 0 { self.selection } else { Selection::LastEpoch };
        let sizes = PublicSizes {
            train_nodes: count(Part::Train),
            nodes: dataset.nodes(),
            columns: dataset.features().columns(),
            classes: dataset.classes(),
            open_numbers: dataset.open_numbers(),
            edges: 0,
        };
        let mut settings = self.for_graph(dataset.graph()).for_sizes(sizes);
        if sizes.open_numbers == 0 {
            // Nothing to count.
            settings.scaling = Scaling::Single;
        }
        Settings { selection, ..settings }
    }

    /// The preparation of columns in units of their own: at node level features are private, and nothing may be computed
    /// over rows but by an accounted query.
    pub fn preparation(&self) -> Preparation {
        match self.level {
            Level::None | Level::Edge => Preparation::Standardise,
            Level::Node if self.scaling == Scaling::Noisy => Preparation::Declared,
            Level::Node => Preparation::RowByRow,
        }
    }

    /// Whether a run asks anything of the edges.
    pub fn touches_edges(&self) -> bool {
        self.method.recipe().touches_edges(self)
    }
}
