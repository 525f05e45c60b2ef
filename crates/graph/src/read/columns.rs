//! What the user says about the columns of a node table, and what became of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ReadOff;

/// What the user says about the columns of a node table. Columns that are not spoken of are taken for what they look like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ColumnChoices {
    /// Where not empty, only these become features.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// These become no features.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// The largest number of categories of a column that says no number of its own; the others are one category, `other`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_categories: Option<usize>,
    /// Column by column.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, ColumnChoice>,
}

/// What the user says about one column.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ColumnChoice {
    /// What it is.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub kind: Option<ColumnKind>,
    /// Public bounds of a number or date, smallest and largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[Bound; 2]>,
    /// Whether bounds are taken on a scale of logarithms; where nothing is said, positive ones that are far apart are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<bool>,
    /// The categories, which are public; any other value is an error, or `other` where that is one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub categories: Option<Vec<String>>,
    /// The largest number of categories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_categories: Option<usize>,
    /// Whether numbers or dates may be missing: then a feature says where, whether or not one is; else a missing one is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<bool>,
    /// How many columns the words of a text are hashed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// Whether numbers are brought to scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<bool>,
}

/// What a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColumnKind {
    /// No feature.
    Drop,
    /// Numbers.
    Number,
    /// Names, each of which becomes a feature of its own.
    Category,
    /// Dates, which become days.
    Date,
    /// Texts, whose words are hashed to columns.
    Text,
}

/// A bound of a number column, or of a date column in the spelling of dates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Bound {
    /// A number.
    Number(f64),
    /// A date, such as `2024-02-29`.
    Date(String),
}

impl ColumnChoices {
    /// What is said about a column; made where nothing is said yet.
    pub fn column(&mut self, name: &str) -> &mut ColumnChoice {
        self.columns.entry(name.into()).or_default()
    }

    /// Every name that is spoken of.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.keep.iter().chain(&self.drop).map(String::as_str).chain(self.columns.keys().map(String::as_str))
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == ColumnChoices::default()
    }

    /// What is said about a column, `drop` and `keep` included.
    pub(crate) fn of(&self, name: &str) -> ColumnChoice {
        let mut choice = self.columns.get(name).cloned().unwrap_or_default();
        let kept = self.keep.is_empty() || self.keep.iter().any(|keep| keep == name);
        if !kept || self.drop.iter().any(|drop| drop == name) {
            choice.kind = Some(ColumnKind::Drop);
        }
        choice.max_categories = choice.max_categories.or(self.max_categories);
        choice
    }
}

/// What became of a column: for the data owner, as it is computed from the data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnReport {
    /// Its name.
    pub name: String,
    /// What it was taken for: `id`, `label`, `split`, `number`, `switch`, `category`, `date`, `text`, `not used`, `refused`.
    pub kind: &'static str,
    /// How many values are missing.
    pub missing: usize,
    /// The smallest and the largest number; dates in days since 2000-01-01.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// How many different values there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub categories: Option<usize>,
    /// How many features it becomes.
    pub features: usize,
    /// What was read off the rows, as nobody declared it.
    #[serde(skip)]
    pub read_off: Option<ReadOff>,
    /// What else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl ColumnReport {
    pub(crate) fn new(name: &str, kind: &'static str) -> Self {
        let name = name.to_string();
        ColumnReport {
            name,
            kind,
            missing: 0,
            range: None,
            categories: None,
            features: 0,
            read_off: None,
            note: None,
        }
    }
}
