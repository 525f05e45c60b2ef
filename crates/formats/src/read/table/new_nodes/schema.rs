//! The columns of a table in training, by the features that they became.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::read::columns::DateOrder;
use crate::read::table::category::OTHER;
use crate::scale::Map;
use crate::{Dataset, Error, NumberColumn, Problem, Result, scale};

/// The version of the form in which a schema is written.
const VERSION: u32 = 1;

/// What the columns of a node table became: all that it takes to read further rows in the same way, and none of its
/// rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Schema {
    written: Written,
    columns: Vec<Column>,
}

/// A schema as it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    /// The names of the classes.
    classes: Vec<String>,
    /// How many features there are.
    width: usize,
    /// The name of each; none where they have no names.
    features: Vec<String>,
    /// Those that hold numbers in a unit of their own, with the maps that bring these to scale.
    numbers: Vec<NumberColumn>,
    /// The map of all other columns of numbers, where rows are private: which of them hold anything but 0 and 1, which
    /// it leaves as they are, is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    others: Option<Map>,
}

/// A column of a table, as it was in training.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// What became of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// Numbers, dates or truth values.
    Number {
        feature: u32,
        /// Its scale, and how its dates are written; none where it holds 0 and 1 alone, or that is not told.
        number: Option<NumberColumn>,
        /// Its map where that is not told.
        other: Option<Map>,
        /// The feature that says where values are missing.
        missing: Option<u32>,
    },
    /// Names, each of them a feature.
    Category {
        features: HashMap<String, u32>,
        /// The feature of everything that has none of its own.
        rest: Option<u32>,
    },
    /// Texts, whose words are hashed to these features.
    Text(Vec<u32>),
}

impl Schema {
    /// The schema of a data set.
    ///
    /// # Errors
    /// Parts of a data set that do not fit together.
    pub fn of(like: &Dataset) -> Result<Schema> {
        Schema::try_from(Written {
            version: VERSION,
            classes: like.class_names().to_vec(),
            width: like.features().columns(),
            features: like.feature_names().to_vec(),
            // An origin is about values that are kept, and computed over them.
            numbers: like
                .numbers()
                .iter()
                .map(|number| NumberColumn { origin: None, ..number.clone() })
                .collect(),
            others: None,
        })
    }

    /// The schema of a data set whose rows are private: the same for all rows of which the same is declared, or has
    /// left the vault.
    ///
    /// # Errors
    /// As [`Schema::of`].
    pub fn of_private_rows(like: &Dataset) -> Result<Schema> {
        let mut written = Schema::of(like)?.written;
        let is_told = |number: &NumberColumn| number.map != Some(Map::SignedLog) || number.date.is_some();
        written.numbers.retain(is_told);
        written.others = Some(Map::SignedLog);
        Schema::try_from(written)
    }

    /// The columns of the table; none where the features have no names.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The names of the classes.
    pub fn class_names(&self) -> &[String] {
        &self.written.classes
    }

    /// The name of each feature; none where they have no names.
    pub fn feature_names(&self) -> &[String] {
        &self.written.features
    }

    /// How many features there are.
    pub fn width(&self) -> usize {
        self.written.width
    }

    /// The features that hold numbers in a unit of their own, as far as that is told.
    pub fn numbers(&self) -> &[NumberColumn] {
        &self.written.numbers
    }

    /// Number columns with the maps that this schema has for them.
    pub fn mapped(&self, numbers: &[NumberColumn]) -> Vec<NumberColumn> {
        let known =
            |column: u32| self.written.numbers.binary_search_by_key(&column, |number| number.column).ok();
        let mapped = numbers.iter().map(|number| match known(number.column) {
            Some(at) => self.written.numbers[at].clone(),
            None => NumberColumn { map: self.written.others, ..number.clone() },
        });
        mapped.collect()
    }
}

impl From<Schema> for Written {
    fn from(schema: Schema) -> Written {
        schema.written
    }
}

impl TryFrom<Written> for Schema {
    type Error = Error;

    fn try_from(written: Written) -> Result<Schema> {
        let invalid = |message: String| Err(Problem::Invalid(message).into());
        if written.version != VERSION {
            return invalid(format!(
                "the schema has version {}; this program reads version {VERSION}",
                written.version
            ));
        }
        if written.classes.is_empty()
            || !(written.features.is_empty() || written.features.len() == written.width)
        {
            return invalid("its classes and features do not fit together: it was damaged or changed".into());
        }
        scale::check(&written.numbers, written.width)?;
        let columns = columns(&written.features, &written.numbers, written.others);
        Ok(Schema { written, columns })
    }
}

impl Column {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its values are numbers or truth values, and not texts or dates.
    pub fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Number { .. }) && self.kind.date().is_none()
    }
}

/// All columns of the table whose features have these names.
fn columns(names: &[String], numbers: &[NumberColumn], others: Option<Map>) -> Vec<Column> {
    let positions: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
    let number = |at: usize| {
        let found = numbers.binary_search_by_key(&at, |number| number.column as usize);
        found.ok().map(|at| &numbers[at])
    };
    let indicator = |name: &str, at: usize| match number(at) {
        Some(number) => number.missing.map(|missing| missing as usize),
        None => positions.get(format!("{name} missing").as_str()).copied(),
    };
    let indicates = |name: &str, at: usize| {
        let of = name.strip_suffix(" missing");
        of.is_some_and(|of| {
            positions.get(of).is_some_and(|&column| column < at && indicator(of, column) == Some(at))
        })
    };
    let mut columns: Vec<Column> = vec![];
    for (at, name) in names.iter().enumerate() {
        let feature = at as u32;
        let (value, group) = (name.split_once('='), name.rsplit_once('#'));
        let last = columns.last_mut();
        match (number(at), value, group) {
            (None, ..) if indicates(name, at) => {}
            (None, Some((column, value)), _) => match last {
                Some(Column { name, kind: Kind::Category { features, rest } }) if *name == column => {
                    features.insert(value.into(), feature);
                    *rest = rest.or((value == OTHER).then_some(feature));
                }
                _ => {
                    let rest = (value == OTHER).then_some(feature);
                    let features = HashMap::from([(value.to_string(), feature)]);
                    columns.push(Column { name: column.into(), kind: Kind::Category { features, rest } });
                }
            },
            (None, _, Some((column, "0"))) => {
                columns.push(Column { name: column.into(), kind: Kind::Text(vec![feature]) });
            }
            (None, _, Some((column, group))) if is_next(last.as_deref(), column, group) => {
                if let Some(Column { kind: Kind::Text(features), .. }) = columns.last_mut() {
                    features.push(feature);
                }
            }
            (number, ..) => {
                let missing = indicator(name, at).map(|missing| missing as u32);
                let kind = Kind::Number { feature, number: number.cloned(), other: others, missing };
                columns.push(Column { name: name.clone(), kind });
            }
        }
    }
    columns
}

/// Whether a feature is the next group of words of the last column.
fn is_next(last: Option<&Column>, column: &str, group: &str) -> bool {
    let next = |features: &Vec<u32>| group == features.len().to_string();
    matches!(last, Some(Column { name, kind: Kind::Text(features) }) if *name == column && next(features))
}

impl Kind {
    /// Whether a value may be missing: a category and a text set no feature then.
    pub(super) fn may_be_missing(&self) -> bool {
        !matches!(self, Kind::Number { missing: None, .. })
    }

    /// How dates are written.
    pub(super) fn date(&self) -> Option<DateOrder> {
        match self {
            Kind::Number { number, .. } => number.as_ref().and_then(|number| number.date),
            _ => None,
        }
    }
}
