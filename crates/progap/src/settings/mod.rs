//! Settings of a training run: everything has a default, and everything is checked before any work.
//!
//! `declared.rs` lists the settings. A [`Request`] asks for some of them by name. [`resolve`] is the one way from there
//! to [`ValidSettings`], which everything after it takes as they are: nothing in them waits for data. What is known
//! before data is there is a [`Draft`].

mod check;
mod choices;
mod declaration;
mod declared;
mod defaults;
mod draft;
mod effect;
mod facts;
mod heuristics;
mod needed;
mod request;

use progap_graph::Preparation;

pub use check::ValidSettings;
pub use choices::{
    Accounting, Bounding, Calibration, ClassWeights, Combination, DeltaRule, Direction, FeatureLearning,
    Level, Messages, Metric, Nonlinearity, Order, Scaling, Selection,
};
pub(crate) use declaration::within;
pub use declaration::{About, Declaration, Kind, Scope};
pub use declared::Settings;
pub use draft::Draft;
pub use facts::{PublicFacts, Size};
pub(crate) use heuristics::MANY_LABELS;
pub use needed::SizesNeeded;
pub use request::{Change, Edge, Node, Request, Unprotected};

use crate::Result;
pub use crate::method::MethodKind;
use crate::method::{self, catalogue::RECOMMENDED};

/// The settings of a run that is asked for, on data of which this is public: defaults, what public facts decide
/// (`heuristics.rs`), what was given; what cannot work and what would decide nothing is refused.
///
/// ```
/// use progap::settings::{PublicFacts, Request, Size, resolve};
///
/// let facts = PublicFacts::stated([(Size::Nodes, 2_000), (Size::TrainNodes, 100)]);
/// assert_eq!(resolve(&Request::default(), &facts)?.depth, 5, "few labels travel farther");
/// assert_eq!(resolve(&Request::default().with("depth", 2), &facts)?.depth, 2);
/// # Ok::<(), progap::Error>(())
/// ```
///
/// # Errors
/// As [`Request::settings`] and [`Draft::resolve`].
pub fn resolve(request: &Request, facts: &PublicFacts) -> Result<ValidSettings> {
    request.settings()?.resolve(facts)
}

impl Settings {
    /// The recommended settings of a level: of two views.
    ///
    /// They are the same for every graph (docs/method.md), but for what [`Draft`]s leave to public facts.
    pub fn new(level: Level) -> Settings {
        Settings::of(RECOMMENDED, level)
    }

    /// The defaults of a method at a level.
    pub fn of(method: MethodKind, level: Level) -> Settings {
        method.method().defaults(level).recommended
    }

    /// Settings of the largest model and the longest training that a method could have, whatever is sent: every whole
    /// number at the end of its range.
    pub(crate) fn largest(method: MethodKind, level: Level) -> [Settings; 2] {
        let mut settings = Settings { direction: Direction::Both, ..Settings::of(method, level) };
        for declaration in Settings::declarations() {
            if let (Kind::Whole, Some((_, most))) = (declaration.kind, declaration.about.range) {
                // A whole number of its range is one that it can have.
                let _ = declaration.set(&mut settings, (most as u64).into());
            }
        }
        [Messages::Labels, Messages::Embeddings].map(|messages| Settings { messages, ..settings.clone() })
    }

    /// The published settings: noise by Renyi divergences, degree bounds by sampling, and the published guarantee.
    pub fn paper(method: MethodKind, level: Level) -> Settings {
        let defaults = method.method().defaults(level);
        let settings = defaults.published.unwrap_or(defaults.recommended);
        let (bounding, calibration, accounting) = (Bounding::Sample, Calibration::Off, Accounting::Rdp);
        Settings { bounding, calibration, accounting, ..settings }.with_published_guarantee()
    }

    /// The same with the published unit, the directed edge, and the published rule for delta: to compare with
    /// published figures.
    #[must_use]
    pub fn with_published_guarantee(self) -> Settings {
        Settings { undirected: false, unit_from_data: false, delta_rule: DeltaRule::Published, ..self }
    }

    /// The same with the unit that a graph suggests: the undirected edge where every edge has an edge back, the
    /// directed edge elsewhere. Nothing is looked at where a run touches no edge, or protects none.
    #[must_use]
    pub fn unit_by_graph(self) -> Settings {
        let unit_from_data = self.level == Level::Edge;
        Settings { undirected: false, unit_from_data, ..self }
    }

    /// The preparation of columns in units of their own: at node level features are private, and nothing may be
    /// computed over rows but by an accounted query.
    pub fn preparation(&self) -> Preparation {
        match self.level {
            Level::None | Level::Edge => Preparation::Standardise,
            Level::Node if self.scaling == Scaling::Noisy => Preparation::Declared,
            Level::Node => Preparation::RowByRow,
        }
    }

    /// Whether a run asks anything of the edges.
    pub fn touches_edges(&self) -> bool {
        method::outline(self).reads_edges()
    }
}
