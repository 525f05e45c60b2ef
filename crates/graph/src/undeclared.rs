//! Facts that were read off the rows of a table because its owner declared nothing.
//!
//! Where rows are private, whatever is computed over them is, too. A list of categories that somebody declares is
//! public; one that is made of the values that occur is a function of every row. A data set therefore keeps which of
//! its columns nobody spoke of, so that who trains on private rows can say so, or refuse.

use serde::{Deserialize, Serialize};

/// Something about a column that was read off the rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InferredSchema {
    /// The column of the table.
    pub column: String,
    /// The fact.
    pub what: InferenceKind,
}

/// Facts that can be read off the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InferenceKind {
    /// Which categories there are.
    Categories,
    /// Which categories are the most frequent; all others are one.
    MostFrequent,
    /// Whether values are missing, and a feature says where.
    Missing,
    /// That all values are different, for which the column is left out.
    Distinct,
}
