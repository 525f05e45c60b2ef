//! The columns of a table in training, by the features that they became.

use std::collections::HashMap;

use crate::read::table::category::OTHER;
use crate::{Dataset, NumberColumn, Problem, Result};

/// A column of a table, as it was in training.
pub(super) struct Known<'k> {
    pub(super) name: &'k str,
    pub(super) kind: Kind<'k>,
}

/// What became of a column.
pub(super) enum Kind<'k> {
    /// Numbers, dates or truth values.
    Number {
        /// Its scale, and how its dates are written; none where it holds 0 and 1 alone.
        number: Option<&'k NumberColumn>,
        /// Whether a feature says where values are missing.
        may_be_missing: bool,
    },
    /// Names, each of them a feature.
    Category(Vec<&'k str>),
    /// Texts, whose words are hashed to this many features.
    Text(usize),
}

impl<'k> Known<'k> {
    /// All columns of the table that a data set was read from.
    pub(super) fn of(like: &'k Dataset) -> Result<Vec<Known<'k>>> {
        let names = like.feature_names();
        if names.is_empty() {
            let message =
                "the features that were trained on have no names: columns cannot be matched with them";
            return Err(Problem::Invalid(message.into()).into());
        }
        let positions: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
        let number = |at: usize| {
            let found = like.numbers().binary_search_by_key(&at, |number| number.column as usize);
            found.ok().map(|at| &like.numbers()[at])
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
        let mut columns: Vec<Known<'k>> = vec![];
        for (at, name) in names.iter().enumerate() {
            let (value, group) = (name.split_once('='), name.rsplit_once('#'));
            let last = columns.last_mut();
            match (number(at), value, group) {
                (None, ..) if indicates(name, at) => {}
                (None, Some((column, value)), _) => match last {
                    Some(Known { name, kind: Kind::Category(values) }) if *name == column => {
                        values.push(value);
                    }
                    _ => columns.push(Known { name: column, kind: Kind::Category(vec![value]) }),
                },
                (None, _, Some((column, "0"))) => columns.push(Known { name: column, kind: Kind::Text(1) }),
                (None, _, Some((column, group))) if is_next(last.as_deref(), column, group) => {
                    if let Some(Known { kind: Kind::Text(width), .. }) = columns.last_mut() {
                        *width += 1;
                    }
                }
                (number, ..) => {
                    let may_be_missing = indicator(name, at).is_some();
                    columns.push(Known { name, kind: Kind::Number { number, may_be_missing } });
                }
            }
        }
        Ok(columns)
    }
}

/// Whether a feature is the next group of words of the last column.
fn is_next(last: Option<&Known<'_>>, column: &str, group: &str) -> bool {
    matches!(last, Some(Known { name, kind: Kind::Text(width) }) if *name == column && group == width.to_string())
}

impl Kind<'_> {
    /// Whether a value may be missing: a category and a text set no feature then.
    pub(super) fn may_be_missing(&self) -> bool {
        !matches!(self, Kind::Number { may_be_missing: false, .. })
    }

    /// The position of the category for everything that has none of its own.
    pub(super) fn rest(&self) -> Option<u32> {
        match self {
            Kind::Category(values) => values.iter().position(|value| *value == OTHER).map(|at| at as u32),
            _ => None,
        }
    }

    /// How dates are written.
    pub(super) fn date(&self) -> Option<crate::read::columns::DateOrder> {
        match self {
            Kind::Number { number, .. } => number.and_then(|number| number.date),
            _ => None,
        }
    }
}
