//! The unit of privacy: what one record is.

use serde::{Deserialize, Serialize};

use super::Event;
use super::json::parse;
use crate::error::{Error, Result};

/// The unit of one record: two data sets are neighbours when they differ in one such record.
///
/// The unit is not used by any formula here. It travels with the event so that a number never loses its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// One directed edge is present or absent. Features and labels are public.
    Edge,
    /// One undirected edge, that is both directions of an edge, is present or absent.
    EdgeUndirected,
    /// One node's record is present or absent: its features, its label and its own list of receivers.
    /// Identifiers are public, and the record of any other node stays as it is.
    Node,
}

impl Unit {
    /// All units.
    pub const ALL: [Unit; 3] = [Unit::Edge, Unit::EdgeUndirected, Unit::Node];

    /// The spelling used in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Edge => "edge",
            Unit::EdgeUndirected => "edge-undirected",
            Unit::Node => "node",
        }
    }

    /// The neighbour relation in words.
    pub fn neighbours(self) -> &'static str {
        match self {
            Unit::Edge => "data sets that differ in one directed edge",
            Unit::EdgeUndirected => "data sets that differ in one undirected edge, in both directions",
            Unit::Node => {
                "data sets that differ in one node's record: features, label and own list of receivers"
            }
        }
    }
}

impl std::fmt::Display for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Unit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Unit::ALL
            .into_iter()
            .find(|unit| unit.name() == text)
            .ok_or_else(|| Error::invalid("unit", text, "one of edge, edge-undirected, node"))
    }
}

/// An event together with the unit that its sensitivities refer to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitEvent {
    /// The unit of one record.
    pub unit: Unit,
    /// The queries.
    pub event: Event,
}

impl UnitEvent {
    /// Parses and validates a unit and its tree.
    pub fn from_json(text: &str) -> Result<Self> {
        let parsed: UnitEvent = parse(text)?;
        parsed.event.validate()?;
        Ok(parsed)
    }

    /// The unit and the tree as indented JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("an event is always representable in JSON")
    }
}
