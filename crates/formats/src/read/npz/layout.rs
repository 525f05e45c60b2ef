//! Which arrays of an archive are what: by the user's word, or by the names that people's files have.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use super::archive::Archive;
use crate::{Problem, Remedy, Result};

/// Names of arrays by what they hold: `labels`, `features`, `edges`, `train`, `val`, `test`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArrayNames(BTreeMap<String, String>);

impl ArrayNames {
    /// The roles of an array.
    pub const ROLES: [&'static str; 6] = ["labels", "features", "edges", "train", "val", "test"];

    /// Says which array holds what; an error for what no array can hold.
    pub fn set(&mut self, role: &str, name: &str) -> Result<()> {
        if !Self::ROLES.contains(&role) {
            let message = format!("no array can hold {role:?}, only {}", Self::ROLES.join(", "));
            return Err(Problem::Invalid(message).into());
        }
        self.0.insert(role.into(), name.into());
        Ok(())
    }

    /// The array that holds something, where the user says so.
    pub fn get(&self, role: &str) -> Option<&str> {
        self.0.get(role).map(String::as_str)
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The layout found in an archive.
pub(super) struct Layout {
    pub(super) labels: Option<String>,
    pub(super) features: Option<String>,
    /// The prefix of the names of the arrays of sparse features.
    pub(super) sparse_features: Option<String>,
    pub(super) edges: Option<String>,
    /// The prefix of the names of the arrays of sparse rows.
    pub(super) sparse_edges: Option<String>,
    /// Whether every edge stands once, for both directions.
    pub(super) lists_edges_once: bool,
}

const LABELS: [&str; 5] = ["y", "labels", "label", "node_labels", "node_label"];
const FEATURES: [&str; 7] = ["x", "features", "feat", "node_features", "node_attr", "attr_matrix", "attr"];
const SPARSE_FEATURES: [&str; 7] = ["x_", "attr_", "attr_matrix.", "node_attr.", "attr.", "features.", "x."];
const EDGES: [&str; 2] = ["edge_index", "edges"];
const SPARSE_EDGES: [&str; 4] = ["adj_", "adj_matrix.", "adj.", "adjacency."];

impl Layout {
    pub(super) fn of<R: Read + Seek>(archive: &mut Archive<R>, names: &ArrayNames) -> Result<Layout> {
        // Sparse matrices may be there as Python objects.
        let matrices =
            SPARSE_EDGES.iter().chain(&SPARSE_FEATURES).filter_map(|prefix| prefix.strip_suffix('.'));
        for name in matrices.chain(["edges", "features"].iter().filter_map(|role| names.get(role))) {
            archive.unpickle(name)?;
        }
        let archive = &*archive;
        let prefix =
            |name: &str| if archive.is_unpickled(name) { format!("{name}.") } else { name.to_string() };
        let whole = |role: &'static str, usual: &[&str]| match names.get(role) {
            Some(name) if archive.has(name) => Ok(Some(name.to_string())),
            // The name may be that of sparse rows: what their arrays begin with.
            Some(name) if archive.has(&format!("{}indptr", prefix(name))) => Ok(None),
            Some(name) => {
                Err(archive.missing(&format!("array {name:?} ({role})")).remedy(Remedy::Array(role)))
            }
            None => Ok(usual.iter().find(|name| archive.has(name)).map(std::string::ToString::to_string)),
        };
        let sparse = |role: &str, usual: &[&str]| match names.get(role) {
            Some(name) => Some(prefix(name)).filter(|name| archive.has(&format!("{name}indptr"))),
            None => usual
                .iter()
                .find(|name| archive.has(&format!("{name}indptr")))
                .map(std::string::ToString::to_string),
        };
        let heterophilous = ["node_features", "node_labels", "edges"].iter().all(|name| archive.has(name))
            && names.is_empty();
        Ok(Layout {
            labels: whole("labels", &LABELS)?,
            features: whole("features", &FEATURES)?,
            sparse_features: sparse("features", &SPARSE_FEATURES),
            edges: whole("edges", &EDGES)?,
            sparse_edges: sparse("edges", &SPARSE_EDGES),
            lists_edges_once: heterophilous,
        })
    }
}
