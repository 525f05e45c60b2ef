//! The rows of a table whose columns are known, and what does not fit in them.

use super::LaterOptions;
use super::schema::{Column, Kind, Schema};
use crate::read::columns::DateOrder;
use crate::read::missing::is_missing;
use crate::read::table::cell::{Cell, Checked};
use crate::read::table::choose::word_groups;
use crate::read::table::date;
use crate::read::table::feature::{Meaning, exact, in_range, meaning, usable};
use crate::read::table::index::id_text;
use crate::read::table::nodes::{RowNumbers, check_names, find_id, name_index, no_column, no_columns};
use crate::{Features, Place, Problem, Result, room};

/// A table while it is read.
pub(in crate::read::table) struct Sheet<'k> {
    names: Vec<String>,
    roles: Vec<Role>,
    schema: &'k Schema,
    /// How many cells of each known column were read.
    read: Vec<usize>,
    /// Every value that is not zero, as (row, feature, value).
    entries: Vec<(u32, u32, f32)>,
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

/// What a cell stands for.
enum Value {
    Missing,
    /// The number of the column's only feature.
    Number(f32),
    /// Features that are 1.
    Ones(Vec<u32>),
}

impl<'k> Sheet<'k> {
    /// A table with columns of these names, which has all of the known columns.
    pub(super) fn new(
        schema: &'k Schema,
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
        for (at, column) in schema.columns().iter().enumerate() {
            match names.iter().position(|name| *name == column.name) {
                None => absent.push(format!("{:?}", column.name)),
                Some(place) if place == id => {
                    let message = "the column was a feature in training, and is the id here".to_string();
                    return Err(Problem::Invalid(message).at(Place::Column(column.name.clone())));
                }
                Some(place) => roles[place] = Role::Feature(at),
            }
        }
        if !absent.is_empty() {
            let what = format!("column {}, as in training", absent.join(" or "));
            return Err(Problem::Missing { what, found: names.join(", ") }.into());
        }
        Ok(Sheet {
            names,
            roles,
            schema,
            read: vec![0; schema.columns().len()],
            entries: vec![],
            rows: RowNumbers::from(2),
            ids: vec![],
            unfit: vec![],
            taken_as_missing: 0,
            decimal_comma,
            lenient: options.lenient,
        })
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
        let kind = &self.schema.columns()[column].kind;
        let message = match kind {
            Kind::Number { .. } if days && kind.date().is_none() => {
                "the column held numbers in training, and holds dates here"
            }
            Kind::Category { .. } | Kind::Text(_) if days => {
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
            Role::Feature(column) => column,
        };
        let (position, known) = (self.read[column], &self.schema.columns()[column]);
        self.read[column] += 1;
        let may_be_missing = known.kind.may_be_missing();
        let value = cell.map_err(|problem| problem.to_string());
        let reason = match value.and_then(|cell| understood(known, cell, self.decimal_comma)) {
            Ok(Value::Missing) if !may_be_missing => "the value is missing, and none was in training".into(),
            Ok(value) => return self.set(position, known, value),
            Err(_) if self.lenient && may_be_missing => {
                self.taken_as_missing += 1;
                return self.set(position, known, Value::Missing);
            }
            Err(reason) => reason,
        };
        self.unfit.push(Unfit { position, column: Some(at), reason });
        Ok(())
    }

    /// Sets the features of a cell.
    fn set(&mut self, position: usize, column: &Column, value: Value) -> Checked<()> {
        let mut set = |feature: u32, value: f32| match value == 0.0 {
            true => Ok(()),
            false => room::push(&mut self.entries, (position as u32, feature, value)),
        };
        match (value, &column.kind) {
            (Value::Number(value), Kind::Number { feature, .. }) => set(*feature, value),
            (Value::Missing, Kind::Number { missing: Some(missing), .. }) => set(*missing, 1.0),
            (Value::Ones(features), _) => features.into_iter().try_for_each(|feature| set(feature, 1.0)),
            _ => Ok(()),
        }
    }

    /// Adds a row that has no cells for its columns.
    pub(in crate::read::table) fn push_broken_row(&mut self, reason: &str) -> Checked<()> {
        self.unfit.push(Unfit { position: self.ids.len(), column: None, reason: reason.into() });
        self.read.iter_mut().for_each(|read| *read += 1);
        room::push(&mut self.ids, String::new())
    }

    /// The features of some rows, which are in order.
    pub(super) fn features(&self, rows: &[usize]) -> Result<Features> {
        const LEFT_OUT: u32 = u32::MAX;
        let mut places = room::filled(LEFT_OUT, self.ids.len())?;
        rows.iter().zip(0..).for_each(|(&row, place)| places[row] = place);
        let kept = || self.entries.iter().filter(|(row, ..)| places[*row as usize] != LEFT_OUT);
        let mut offsets = room::filled(0u64, rows.len() + 1)?;
        kept().for_each(|(row, ..)| offsets[places[*row as usize] as usize + 1] += 1);
        (0..rows.len()).for_each(|row| offsets[row + 1] += offsets[row]);
        let (mut next, mut entries) =
            (room::copy(&offsets)?, room::filled((0u32, 0f32), offsets[rows.len()] as usize)?);
        for &(row, feature, value) in kept() {
            let next = &mut next[places[row as usize] as usize];
            entries[*next as usize] = (feature, value);
            *next += 1;
        }
        for row in offsets.windows(2) {
            entries[row[0] as usize..row[1] as usize].sort_unstable_by_key(|entry| entry.0);
        }
        let (indices, values): (Vec<u32>, Vec<f32>) = entries.into_iter().unzip();
        let width = self.schema.width();
        Ok(Features::sparse(rows.len(), width, offsets, indices, Some(values.into()))?.compact(rows.len()))
    }
}

/// What a cell stands for, or why it stands for nothing.
fn understood(column: &Column, cell: Cell<'_>, decimal_comma: bool) -> std::result::Result<Value, String> {
    match &column.kind {
        Kind::Number { number, other, .. } => {
            let value = match (column.kind.date(), cell) {
                (Some(order), Cell::Untyped(text) | Cell::Text(text)) => date_in(text, order)?,
                _ => number_in(cell, decimal_comma, number.is_none())?,
            };
            let map = number.as_ref().map_or(*other, |number| number.map);
            Ok(value.map_or(Value::Missing, |value| {
                Value::Number(map.map_or(value as f32, |map| map.apply(value)))
            }))
        }
        Kind::Category { features, rest } => cell.named(|name| match name {
            None => Ok(Value::Missing),
            Some(name) => match features.get(name).copied() {
                Some(feature) => Ok(Value::Ones(vec![feature])),
                None if is_missing(name) => Ok(Value::Missing),
                None => rest
                    .map(|feature| Value::Ones(vec![feature]))
                    .ok_or_else(|| format!("the category {name:?} was not known in training")),
            },
        }),
        Kind::Text(features) => cell.named(|text| match text {
            Some(text) if !is_missing(text) => {
                let groups = word_groups(text, features.len() as u32);
                Ok(Value::Ones(groups.into_iter().map(|group| features[group as usize]).collect()))
            }
            _ => Ok(Value::Missing),
        }),
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
