//! Choices about the columns of a node table, and what became of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::InferenceKind;
pub use progap_graph::scale::DateOrder;

/// The user's choices about the columns of a node table. Columns that are not named are taken for what they look like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ColumnChoices {
    /// Where not empty, only these become features.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// Columns to ignore.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// The largest number of categories of a column that says no number of its own; the others are one category,
    /// `other`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_categories: Option<usize>,
    /// The labels that stand for "not known", in place of the usual words and of -1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Vec<String>>,
    /// Column by column.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, ColumnChoice>,
}

/// The user's choice about one column.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ColumnChoice {
    /// Its kind.
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
    /// Which part of a date comes first; where nothing is said, the column's values decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<DateOrder>,
    /// Whether numbers or dates may be missing: then a feature says where, whether or not one is; else a missing one is
    /// an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<bool>,
    /// How many columns the words of a text are hashed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// Whether numbers are brought to scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<bool>,
}

/// The kind of a column.
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
    /// The choice about a column; made where there is none yet.
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

    /// The choice about a column, `drop` and `keep` included.
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

impl ColumnChoices {
    /// Refuses what contradicts itself, with the column that it is about.
    pub(crate) fn check(&self) -> std::result::Result<(), (Option<String>, String)> {
        if self.max_categories == Some(0) {
            return Err((None, NO_CATEGORIES.into()));
        }
        if let Some(name) = self.keep.iter().find(|name| self.drop.contains(name)) {
            return Err((Some(name.clone()), "the column is to be kept and to be left out".into()));
        }
        for (name, choice) in &self.columns {
            let dropped = self.drop.contains(name) || choice.kind == Some(ColumnKind::Drop);
            if let Some(problem) = choice.contradiction(dropped) {
                return Err((Some(name.clone()), problem));
            }
        }
        Ok(())
    }
}

const NO_CATEGORIES: &str = "the largest number of categories is 0, and at least one is needed";

impl ColumnChoice {
    fn contradiction(&self, dropped: bool) -> Option<String> {
        use ColumnKind::{Category, Date, Number, Text};
        if self.max_categories == Some(0) {
            return Some(NO_CATEGORIES.into());
        }
        let said = [
            ("bounds are", self.bounds.is_some(), &[Number, Date][..]),
            ("a logarithm is", self.log.is_some(), &[Number, Date]),
            ("a scale is", self.scale.is_some(), &[Number, Date]),
            ("categories are", self.categories.is_some(), &[Category]),
            ("a number of categories is", self.max_categories.is_some(), &[Category]),
            ("the order of dates is", self.order.is_some(), &[Date]),
            ("a width is", self.width.is_some(), &[Text]),
        ];
        if dropped {
            let kind = self.kind.filter(|kind| *kind != ColumnKind::Drop).map(|_| "its kind is");
            let what = kind.or_else(|| said.iter().find(|(_, said, _)| *said).map(|(what, ..)| *what))?;
            return Some(format!("the column is to be left out, and {what} declared"));
        }
        let kind = self.kind?;
        let (what, ..) = said.iter().find(|(_, said, kinds)| *said && !kinds.contains(&kind))?;
        Some(format!("{what} declared, which a column of the kind {kind:?} has not").to_lowercase())
    }
}

/// The fate of a column: for the data owner, as it is computed from the data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnReport {
    /// Its name.
    pub name: String,
    /// Its kind: `id`, `label`, `split`, `number`, `switch`, `category`, `date`, `text`, `not used`, `refused`.
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
    /// Facts that were read off the rows, as nobody declared them.
    #[serde(skip)]
    pub read_off: Option<InferenceKind>,
    /// A further remark.
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
