//! Public sizes by name, and which of them the cost of a run depends on: for whoever asks what a run costs without its data.

use super::{DeltaRule, Level, Settings};
use crate::delta;
use crate::method::Batches;
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
    /// assert_eq!(needed[0].sizes, [Size::Nodes, Size::TrainNodes, Size::Columns, Size::Classes]);
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
        if let sizes @ [_, ..] = self.batches_follow_from(None) {
            add(Some("batch_size"), sizes);
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

    /// The sizes besides that of the training set from which batches follow though the depth is given: those of few training nodes may, of
    /// many they hardly do.
    pub(crate) fn batches_follow_from(&self, train_nodes: Option<usize>) -> &'static [Size] {
        if self.level != Level::Node || !self.from_sizes.batch_size || self.from_sizes.depth {
            return &[];
        }
        let batches = |columns, classes| {
            let sizes = PublicSizes {
                columns,
                classes,
                train_nodes: train_nodes.unwrap_or(0),
                ..PublicSizes::default()
            };
            match train_nodes {
                Some(_) => {
                    let decided = self.for_sizes(sizes);
                    Batches { of_few: 0, largest: decided.batch_size, epochs: decided.epochs }
                }
                None => self.method.recipe().batches(self, sizes),
            }
        };
        let (widths, classes) = ([0, usize::MAX], [2, 3]);
        let by_columns =
            classes.iter().any(|&classes| batches(widths[0], classes) != batches(widths[1], classes));
        let by_classes =
            widths.iter().any(|&columns| batches(columns, classes[0]) != batches(columns, classes[1]));
        match (by_columns, by_classes) {
            (true, true) => &[Size::Columns, Size::Classes],
            (true, false) => &[Size::Columns],
            (false, true) => &[Size::Classes],
            (false, false) => &[],
        }
    }
}
