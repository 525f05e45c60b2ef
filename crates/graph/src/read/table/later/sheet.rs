//! The rows of a table whose columns are known, and what does not fit in them.

use std::collections::HashMap;

use super::LaterOptions;
use super::known::{Kind, Known};
use crate::read::columns::DateOrder;
use crate::read::missing::is_missing;
use crate::read::table::category::{NONE, Sorted};
use crate::read::table::cell::{Cell, Checked};
use crate::read::table::choose::word_groups;
use crate::read::table::date;
use crate::read::table::feature::{Meaning, exact, in_range, meaning, usable};
use crate::read::table::index::id_text;
use crate::read::table::matrix::Values;
use crate::read::table::nodes::{RowNumbers, check_names, find_id, name_index, no_column, no_columns};
use crate::read::table::numbers::Numbers;
use crate::{Place, Problem, Result, room};

/// A table while it is read.
pub(in crate::read::table) struct Sheet<'k> {
    names: Vec<String>,
    roles: Vec<Role>,
    columns: Vec<Reading<'k>>,
    pub(super) rows: RowNumbers,
    pub(super) ids: Vec<String>,
    pub(super) unfit: Vec<Unfit>,
    pub(super) taken_as_missing: usize,
    decimal_comma: bool,
    lenient: bool,
}

/// A cell, or a row, that does not fit.
pub(super) struct Unfit {
    /// The position of the row in the table.
    pub(super) position: usize,
    /// The column; none where it is the whole row.
    pub(super) column: Option<usize>,
    pub(super) reason: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Id,
    Feature(usize),
    Unused,
}

/// A known column while it is read.
struct Reading<'k> {
    known: &'k Known<'k>,
    /// The positions of categories.
    codes: HashMap<&'k str, u32>,
    read: Read,
}

enum Read {
    Numbers { numbers: Numbers, missing: Vec<u32> },
    Codes(Vec<u32>),
    Groups(Vec<Vec<u32>>),
}

/// What a cell stands for.
enum Value {
    Missing,
    Number(f32),
    Code(u32),
    Groups(Vec<u32>),
}

impl<'k> Sheet<'k> {
    /// A table with columns of these names, which has all of the known columns.
    pub(super) fn new(
        known: &'k [Known<'k>],
        mut names: Vec<String>,
        decimal_comma: bool,
        options: &LaterOptions<'_>,
    ) -> Result<Sheet<'k>> {
        name_index(&mut names);
        check_names(&names)?;
        let id = find_id(&names, options.id_column)
            .ok_or_else(|| no_columns(&names, vec![no_column("id", options.id_column, "id")]))?;
        let mut roles = vec![Role::Unused; names.len()];
        roles[id] = Role::Id;
        let mut absent = vec![];
        for (at, column) in known.iter().enumerate() {
            match names.iter().position(|name| name == column.name) {
                None => absent.push(format!("{:?}", column.name)),
                Some(place) if place == id => {
                    let message = "the column was a feature in training, and is the id here".to_string();
                    return Err(Problem::Invalid(message).at(Place::Column(column.name.into())));
                }
                Some(place) => roles[place] = Role::Feature(at),
            }
        }
        if !absent.is_empty() {
            let what = format!("column {}, as in training", absent.join(" or "));
            return Err(Problem::Missing { what, found: names.join(", ") }.into());
        }
        let columns = known.iter().map(Reading::new).collect();
        let (ids, unfit, rows) = (vec![], vec![], RowNumbers::from(2));
        let lenient = options.lenient;
        Ok(Sheet { names, roles, columns, rows, ids, unfit, taken_as_missing: 0, decimal_comma, lenient })
    }

    /// Whether a column is read.
    pub(in crate::read::table) fn reads(&self, at: usize) -> bool {
        self.roles[at] != Role::Unused
    }

    /// The name of a column.
    pub(super) fn name(&self, at: usize) -> &str {
        &self.names[at]
    }

    /// Says whether the file itself holds the column as dates, which its cells then are in days.
    pub(in crate::read::table) fn expect_days(&self, at: usize, days: bool) -> Result<()> {
        let Role::Feature(column) = self.roles[at] else { return Ok(()) };
        let kind = &self.columns[column].known.kind;
        let message = match kind {
            Kind::Number { .. } if days && kind.date().is_none() => {
                "the column held numbers in training, and holds dates here"
            }
            Kind::Category(_) | Kind::Text(_) if days => {
                "the column held text in training, and holds dates here"
            }
            _ => return Ok(()),
        };
        Err(Problem::Invalid(message.into()).at(Place::Column(self.names[at].clone())))
    }

    /// Begins a row, which has this number in its file.
    pub(in crate::read::table) fn begin_row(&mut self, row: u64) -> Result<()> {
        self.rows.push(row)
    }

    /// Adds the next cell of a column.
    pub(in crate::read::table) fn push(&mut self, at: usize, cell: Checked<Cell<'_>>) -> Checked<()> {
        let column = match self.roles[at] {
            Role::Unused => return Ok(()),
            Role::Id => {
                let id = cell.and_then(id_text).unwrap_or_else(|problem| {
                    let (position, reason) = (self.ids.len(), problem.to_string());
                    self.unfit.push(Unfit { position, column: Some(at), reason });
                    String::new()
                });
                return room::push(&mut self.ids, id);
            }
            Role::Feature(column) => &mut self.columns[column],
        };
        let value = cell.map_err(|problem| problem.to_string());
        let value = value.and_then(|cell| column.understood(cell, self.decimal_comma));
        let may_be_missing = column.known.kind.may_be_missing();
        let reason = match value {
            Ok(Value::Missing) if !may_be_missing => "the value is missing, and none was in training".into(),
            Ok(value) => return column.push(value),
            Err(_) if self.lenient && may_be_missing => {
                self.taken_as_missing += 1;
                return column.push(Value::Missing);
            }
            Err(reason) => reason,
        };
        self.unfit.push(Unfit { position: column.rows(), column: Some(at), reason });
        column.push(Value::Missing)
    }

    /// Adds a row that has no cells for its columns.
    pub(in crate::read::table) fn push_broken_row(&mut self, reason: &str) -> Checked<()> {
        self.unfit.push(Unfit { position: self.ids.len(), column: None, reason: reason.into() });
        room::push(&mut self.ids, String::new())?;
        self.columns.iter_mut().try_for_each(|column| column.push(Value::Missing))
    }

    /// The values of all known columns, in their order.
    pub(super) fn take_values(&mut self) -> Vec<(String, Values)> {
        let columns = std::mem::take(&mut self.columns).into_iter();
        columns.map(|column| (column.known.name.to_string(), column.into_values())).collect()
    }
}

impl<'k> Reading<'k> {
    fn new(known: &'k Known<'k>) -> Reading<'k> {
        let (mut codes, read) = (
            HashMap::new(),
            match &known.kind {
                Kind::Number { .. } => Read::Numbers { numbers: Numbers::default(), missing: vec![] },
                Kind::Category(_) => Read::Codes(vec![]),
                Kind::Text(_) => Read::Groups(vec![]),
            },
        );
        if let Kind::Category(values) = &known.kind {
            codes.extend(values.iter().copied().zip(0..));
        }
        Reading { known, codes, read }
    }

    fn rows(&self) -> usize {
        match &self.read {
            Read::Numbers { numbers, .. } => numbers.rows(),
            Read::Codes(codes) => codes.len(),
            Read::Groups(groups) => groups.len(),
        }
    }

    /// What a cell stands for, or why it stands for nothing.
    fn understood(&self, cell: Cell<'_>, decimal_comma: bool) -> std::result::Result<Value, String> {
        match &self.known.kind {
            Kind::Number { number, .. } => {
                let value = match (number.and_then(|number| number.date), cell) {
                    (Some(order), Cell::Untyped(text) | Cell::Text(text)) => date_in(text, order)?,
                    _ => number_in(cell, decimal_comma, number.is_none())?,
                };
                let map = number.and_then(|number| number.map);
                Ok(value.map_or(Value::Missing, |value| {
                    Value::Number(map.map_or(value as f32, |map| map.apply(value)))
                }))
            }
            kind @ Kind::Category(_) => cell.named(|name| match name {
                None => Ok(Value::Missing),
                Some(name) => match self.codes.get(name).copied() {
                    Some(code) => Ok(Value::Code(code)),
                    None if is_missing(name) => Ok(Value::Missing),
                    None => kind
                        .rest()
                        .map(Value::Code)
                        .ok_or_else(|| format!("the category {name:?} was not known in training")),
                },
            }),
            Kind::Text(width) => cell.named(|text| match text {
                Some(text) if !is_missing(text) => Ok(Value::Groups(word_groups(text, *width as u32))),
                _ => Ok(Value::Missing),
            }),
        }
    }

    fn push(&mut self, value: Value) -> Checked<()> {
        let rows = self.rows() as u32;
        match (&mut self.read, value) {
            (Read::Numbers { numbers, .. }, Value::Number(value)) => numbers.push(value, || value.into()),
            (Read::Numbers { numbers, missing }, _) => {
                room::push(missing, rows)?;
                numbers.push_missing()
            }
            (Read::Codes(codes), Value::Code(code)) => room::push(codes, code),
            (Read::Codes(codes), _) => room::push(codes, NONE),
            (Read::Groups(all), Value::Groups(groups)) => room::push(all, groups),
            (Read::Groups(all), _) => room::push(all, vec![]),
        }
    }

    fn into_values(self) -> Values {
        let may_be_missing = self.known.kind.may_be_missing();
        match (self.read, &self.known.kind) {
            (Read::Numbers { numbers, missing }, _) => {
                Values::Numbers { numbers, missing: may_be_missing.then_some(missing), scale: None }
            }
            (Read::Groups(groups), kind) => {
                let width = if let Kind::Text(width) = kind { *width as u32 } else { 0 };
                Values::Hashed { width, codes: (0..groups.len() as u32).collect(), groups }
            }
            (Read::Codes(codes), kind) => {
                let names = if let Kind::Category(values) = kind { &values[..] } else { &[] };
                Values::Names(Sorted { names: names.iter().map(ToString::to_string).collect(), codes })
            }
        }
    }
}

/// The days of a date, none where it is missing. A date with its year first is what it is in every order.
fn date_in(text: &str, order: DateOrder) -> std::result::Result<Option<f64>, String> {
    if text.is_empty() || is_missing(text) {
        return Ok(None);
    }
    let first = match order {
        DateOrder::YearFirst => "year",
        DateOrder::DayFirst => "day",
        DateOrder::MonthFirst => "month",
    };
    let days = date::days_in(text, order).or_else(|| date::days(text));
    days.map(Some).ok_or_else(|| format!("{text:?} is not a date with the {first} first, as in training"))
}

/// A number, none where it is missing; `true` and `false` where there were 0 and 1 alone.
fn number_in(cell: Cell<'_>, decimal_comma: bool, switch: bool) -> std::result::Result<Option<f64>, String> {
    let (meaning, value, text) = match cell {
        Cell::Empty | Cell::Untyped("") | Cell::Text("") => return Ok(None),
        Cell::Untyped(text) | Cell::Text(text) => {
            (meaning(text, decimal_comma), exact(text, decimal_comma), text)
        }
        Cell::Integer(value) => return Ok(Some(value as f64)),
        Cell::Unsigned(value) => return Ok(Some(value as f64)),
        Cell::Number(value) => (usable(value), in_range(value), ""),
        Cell::Bool(value) => {
            let value = if value { "true" } else { "false" };
            (meaning(value, false), 0.0, value)
        }
    };
    match meaning {
        Meaning::Number(_) => Ok(Some(value)),
        Meaning::Missing => Ok(None),
        Meaning::Switch(value) if switch => Ok(Some(f64::from(u8::from(value)))),
        Meaning::Switch(_) | Meaning::Text => Err(Problem::NotANumber(text.into()).to_string()),
    }
}
