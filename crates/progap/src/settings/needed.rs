//! Public sizes by name, and which of them the cost of a run depends on: for asking what a run costs without its
//! data.

use super::heuristics::{DEPTH_FOLLOWS_FROM, FEATURE_LEARNING_FOLLOWS_FROM};
use super::{DeltaRule, Draft, Level, Size};
use crate::delta;

/// Sizes of the data that the cost of a run reads: for a setting that nobody gave and follows from sizes, or for the
/// sampling of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizesNeeded {
    /// The setting that can be given instead, by its name; none where nothing replaces the sizes.
    pub instead: Option<&'static str>,
    /// The sizes.
    pub sizes: &'static [Size],
}

impl Draft {
    /// The public sizes without which the cost of a run with these settings is not known.
    ///
    /// Where the scaling of number columns is open it follows from their number and that of the nodes, too. Most data
    /// has no such columns, so they are not listed here: without their number there are none.
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
        if self.depth_rule().is_some() && self.is_open("depth") {
            add(Some("depth"), DEPTH_FOLLOWS_FROM);
        }
        if self.is_open("feature_learning") {
            add(Some("feature_learning"), FEATURE_LEARNING_FOLLOWS_FROM);
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
}
