//! Sentences that every reader of a release has to be told: one text each, for the statement, the command, the model
//! card and Python.

use super::Statement;
use crate::settings::Level;

/// For whom a prediction at node level is.
pub const WHOSE_PREDICTION: &str = "A prediction about a node uses that node's own features: give it to \
    that node, or to those who may see its features.";

/// For whom a prediction is that reads the rows of others.
const UNCOVERED_PREDICTION: &str = "The guarantee of this release does not cover predictions, which read \
    other nodes' rows as they are: keep them to the data owner.";

/// Whose record an edge is in at node level, and what follows. The graph may have been made symmetric or turned
/// round, so that a node's edges follow from what others listed.
pub(super) const WHOSE_EDGES: &str = " Each directed edge of the prepared graph belongs to its source node's \
    record; the reverse edge, also an added one, belongs to the other node. So where neighbours are alike, the \
    noisy row of a node with many neighbours shows its class by what others sent.";

/// Releases about the same records.
pub const ADD_UP: &str = "other releases: releases about the same records add up, for anyone who sees \
    several of them; a ledger (progap ledger) counts them and keeps a budget";

/// Several records that are about one person.
pub const GROUPS: &str = "several records together: the guarantee is for one record, and for a person \
    who is k records, such as one listed as k nodes, epsilon is k times as large, and delta grows as well \
    (group privacy)";

impl Statement {
    /// What is to be said wherever predictions are made or handed on: for whom they are. `covered` says whether the
    /// guarantee covers them at all. None if they may go to anyone.
    pub fn caution(&self, covered: bool) -> Option<&'static str> {
        match (covered, self.level()) {
            (false, _) => Some(UNCOVERED_PREDICTION),
            (true, Level::Node) => Some(WHOSE_PREDICTION),
            (true, _) => None,
        }
    }
}
