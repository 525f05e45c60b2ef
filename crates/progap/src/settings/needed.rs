//! Public sizes by name, and which of them the cost of a run depends on: for whoever asks what a run costs without its data.

use super::{DeltaRule, Level, Settings};
use crate::delta;
use crate::plan::PublicSizes;

/// A public size on which settings, queries or their noise may depend.
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

    pub(crate) fn set(self, sizes: &mut PublicSizes, count: usize) {
        let field = match self {
            Size::Nodes => &mut sizes.nodes,
            Size::TrainNodes => &mut sizes.train_nodes,
            Size::Edges => &mut sizes.edges,
            Size::Columns => &mut sizes.columns,
            Size::Classes => &mut sizes.classes,
            Size::NumberColumns => &mut sizes.open_numbers,
        };
        *field = count;
    }
}

/// Sizes of the data that the cost of a run reads: for a setting that nobody gave and follows from sizes, or for the sampling of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizesNeeded {
    /// The setting that can be given instead, by its name; none where nothing replaces the sizes.
    pub instead: Option<&'static str>,
    /// The sizes.
    pub sizes: &'static [Size],
}

impl Settings {
    /// The public sizes without which the cost of a run with these settings is not known.
    ///
    /// Where the scaling of number columns is open it follows from their number and that of the nodes, too. Most data has no such columns,
    /// so they are not listed here: without their number there are none.
    ///
    /// ```
    /// use progap::settings::{Request, Size};
    ///
    /// let needed = Request::default().with("level", "node").with("delta", 1e-5).settings()?.sizes_needed();
    /// assert_eq!(needed[0].instead, Some("depth"));
    /// assert_eq!(needed[0].sizes, [Size::TrainNodes, Size::Columns, Size::Classes]);
    /// # Ok::<(), progap::Error>(())
    /// ```
    pub fn sizes_needed(&self) -> Vec<SizesNeeded> {
        let mut needed = Vec::new();
        if self.level == Level::None {
            return needed;
        }
        let mut add = |instead, sizes| needed.push(SizesNeeded { instead, sizes });
        if self.from_sizes.depth {
            add(Some("depth"), self.method.recipe().depth_follows_from());
        }
        if self.level == Level::Node {
            add(None, &[Size::TrainNodes]);
        }
        if self.batches_follow_from_columns(None) {
            add(Some("batch_size"), &[Size::Columns]);
        }
        if self.delta.is_none() && delta::matters(self) {
            add(
                Some("delta"),
                match (self.level, self.delta_rule) {
                    (Level::Node, DeltaRule::Published) => &[Size::TrainNodes],
                    (Level::Node, DeltaRule::Records) => &[Size::Nodes],
                    // However few edges there are, some are counted for the nodes.
                    _ => &[Size::Nodes, Size::Edges],
                },
            );
        }
        needed
    }

    /// Whether the size of batches follows from the number of columns though the depth is given: that of few training nodes may, of many it
    /// does not.
    pub(crate) fn batches_follow_from_columns(&self, train_nodes: Option<usize>) -> bool {
        let sizes = |columns| PublicSizes {
            columns,
            train_nodes: train_nodes.unwrap_or(0),
            ..PublicSizes::default()
        };
        let size = |columns| match train_nodes {
            Some(_) => self.for_sizes(sizes(columns)).batch_size,
            None => self.method.recipe().batches_of_few(self, sizes(columns)),
        };
        let open = self.from_sizes.batch_size && !self.from_sizes.depth;
        self.level == Level::Node && open && size(0) != size(usize::MAX)
    }
}
