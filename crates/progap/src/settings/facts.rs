//! What is public of a data set: all of it that settings, queries and their noise may depend on.

use progap_graph::{Dataset, Part, transform};
use serde::{Deserialize, Serialize};

use super::{Level, Settings};

/// What is public of a data set. It is either that of a data set ([`PublicFacts::of`]), or what somebody says of one
/// ([`PublicFacts::stated`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PublicFacts {
    /// All nodes.
    pub nodes: usize,
    /// Training nodes.
    pub train_nodes: usize,
    /// Validation nodes; `None` if nobody says so.
    pub val_nodes: Option<usize>,
    /// Feature columns.
    pub columns: usize,
    /// Number columns without declared bounds; `None` if nobody says so.
    pub unbounded_columns: Option<usize>,
    /// Classes.
    pub classes: usize,
    /// Directed edges, repeated ones merged and loops left out; where undirected edges are protected, both directions
    /// of each. At edge level only their order of magnitude is used, for delta.
    pub edges: usize,
    /// Whether every edge has an edge back, where the unit follows from that.
    pub is_symmetric: bool,
}

impl PublicFacts {
    /// Those of a small social network, for tests.
    #[doc(hidden)]
    pub const EXAMPLE: PublicFacts = PublicFacts {
        nodes: 3_000,
        train_nodes: 2_000,
        val_nodes: None,
        columns: 40,
        unbounded_columns: Some(0),
        classes: 4,
        edges: 60_000,
        is_symmetric: true,
    };

    /// What is public of a data set in a run with these settings: at edge level how many edges there are, and whether
    /// every edge has an edge back where the unit follows from that.
    pub fn of(dataset: &Dataset, settings: &Settings) -> PublicFacts {
        let graph = dataset.graph();
        // A unit that follows from the graph is the undirected edge on symmetric graphs only.
        let one_way = settings.undirected && !settings.unit_from_data && !graph.is_symmetric();
        let edges = match settings.level {
            Level::Edge if one_way => transform::symmetrise(graph.clone()).distinct_edges(),
            _ => graph.distinct_edges(),
        };
        let count = |part| dataset.split().map_or(0, |split| split.count(part));
        PublicFacts {
            nodes: dataset.nodes(),
            train_nodes: count(Part::Train),
            val_nodes: Some(count(Part::Val)),
            columns: dataset.features().columns(),
            unbounded_columns: Some(dataset.unbounded_numeric_columns()),
            classes: dataset.classes(),
            edges,
            is_symmetric: settings.unit_from_data && settings.touches_edges() && graph.is_symmetric(),
        }
    }

    /// What somebody says of a data set that is not here.
    ///
    /// ```
    /// use progap::settings::{PublicFacts, Size};
    ///
    /// let facts = PublicFacts::stated([(Size::Nodes, 3_000), (Size::TrainNodes, 2_000)]);
    /// assert_eq!((facts.nodes, facts.train_nodes, facts.val_nodes), (3_000, 2_000, None));
    /// ```
    pub fn stated(sizes: impl IntoIterator<Item = (Size, usize)>) -> PublicFacts {
        let mut facts = PublicFacts::default();
        for (size, count) in sizes {
            match size {
                Size::Nodes => facts.nodes = count,
                Size::TrainNodes => facts.train_nodes = count,
                Size::Edges => facts.edges = count,
                Size::Columns => facts.columns = count,
                Size::Classes => facts.classes = count,
                Size::NumberColumns => facts.unbounded_columns = Some(count),
            }
        }
        facts
    }
}

/// A public size by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// All nodes.
    Nodes,
    /// Training nodes.
    TrainNodes,
    /// Directed edges.
    Edges,
    /// Feature columns.
    Columns,
    /// Classes.
    Classes,
    /// Number columns without declared bounds.
    NumberColumns,
}

impl Size {
    /// Its name, as of a setting.
    pub fn name(self) -> &'static str {
        match self {
            Size::Nodes => "nodes",
            Size::TrainNodes => "train_nodes",
            Size::Edges => "edges",
            Size::Columns => "columns",
            Size::Classes => "classes",
            Size::NumberColumns => "number_columns",
        }
    }
}
