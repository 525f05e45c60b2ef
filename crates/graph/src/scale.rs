//! Columns of numbers in units of their own, and the maps that bring them to one scale.
//!
//! People's tables hold incomes in pounds beside ages in years. A [`Dataset`](crate::Dataset) keeps such columns as
//! they are, and lists them as [`NumberColumn`]s; everything that is not listed (one-hot columns, words, indicators,
//! what somebody prepared before) is used as it is. Who trains says which [`Preparation`] is allowed, as that depends
//! on what is public:
//!
//! - [`Preparation::Standardise`] looks at whole columns: mean 0 and deviation 1, after a logarithm where a column is
//!   skewed. For features that are public.
//! - [`Preparation::RowByRow`] maps each value by itself, with what is declared and nothing that is computed over rows:
//!   declared bounds become -1 and 1, on a scale of logarithms where they are far apart, and without bounds `v` becomes
//!   `sign(v) log2(1 + |v|)`. Whatever one node's row holds, the rows of all others are mapped the same.
//! - [`Preparation::Declared`] does the same for columns with declared bounds, and leaves the others to whoever has
//!   found maps for them in a way that is allowed ([`apply`]).
//!
//! A missing value is 0 after any of them, and has a 1 in an indicator column beside it.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Features, Place, Problem, Result, room, standard};

/// Which part of a date comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DateOrder {
    /// `2024-02-29`, `2024/02/29`.
    YearFirst,
    /// `29/02/2024`, `29.2.2024`, `29-02-2024`.
    DayFirst,
    /// `02/29/2024`, `2-29-2024`.
    MonthFirst,
}

impl DateOrder {
    /// The order of that name: `year-first`, `day-first` or `month-first`.
    pub fn from_name(name: &str) -> Option<DateOrder> {
        match name {
            "year-first" => Some(DateOrder::YearFirst),
            "day-first" => Some(DateOrder::DayFirst),
            "month-first" => Some(DateOrder::MonthFirst),
            _ => None,
        }
    }
}

/// A feature column that holds numbers in a unit of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberColumn {
    /// Its position among the features.
    pub column: u32,
    /// The feature that is 1 where the value is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<u32>,
    /// A number to be added to the values of the column, which lie too close together for their size to tell them apart
    /// in 32 bits. Sums, rounded to 32 bits, are what was read, whatever the origin. Gone once a map was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<f64>,
    /// Bounds that the data owner declares: they are public. Values beyond them are brought to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
    /// Whether bounds are taken on a scale of logarithms, where the data owner says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<bool>,
    /// Where the numbers are dates: how these were written. Rows that come later are read in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<DateOrder>,
    /// The map that was applied; none while the values are as they were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<Map>,
}

/// The preparation of number columns that is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparation {
    /// Whole columns may be looked at.
    Standardise,
    /// Each value is mapped by itself.
    RowByRow,
    /// The same, but only where bounds are declared.
    Declared,
}

/// A map of one value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Map {
    /// `low` becomes -1, `high` becomes 1, and what lies beyond is brought to them.
    Bounds {
        /// The smallest value.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// The same on a scale of logarithms; both are positive.
    LogBounds {
        /// The smallest value.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// `sign(v) log2(1 + |v|)`, which leaves 0 and 1 as they are.
    SignedLog,
    /// `(curve(v) - mean) / deviation`.
    Standard {
        /// The curve, applied before mean and deviation.
        curve: Curve,
        /// The mean of what the curve gives.
        mean: f64,
        /// Its deviation.
        deviation: f64,
        /// Values are brought within these first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bounds: Option<[f64; 2]>,
    },
}

/// A curve that straightens a skewed column.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Curve {
    /// Nothing.
    Straight,
    /// The logarithm of a column that is positive throughout; `floor` is its smallest value, and the least there is.
    Log {
        /// The smallest positive value.
        floor: f64,
    },
    /// `asinh((v - centre) / unit)`: straight around the centre, a logarithm far from it, on both sides.
    Asinh {
        /// The median.
        centre: f64,
        /// Half the distance between the quartiles.
        unit: f64,
    },
}

/// Positive bounds as far apart as this are taken on a scale of logarithms: what spans three orders of magnitude lies
/// near its lower bound on any other.
const FAR_APART: f64 = 1000.0;

impl NumberColumn {
    /// A column as it was read.
    pub fn new(column: usize) -> Self {
        NumberColumn {
            column: column as u32,
            missing: None,
            origin: None,
            bounds: None,
            log: None,
            date: None,
            map: None,
        }
    }

    /// The same column, used as it is. Nothing more has to be known of it, unless it holds dates.
    pub fn left_alone(self) -> Option<NumberColumn> {
        self.date.is_some().then_some(NumberColumn { origin: None, map: Some(Map::AS_IT_IS), ..self })
    }

    /// Whether nothing is declared of its range, and no map was applied.
    pub fn is_open(&self) -> bool {
        self.bounds.is_none() && self.map.is_none()
    }

    /// The map of one value by itself: by what is declared, and by nothing that any row holds.
    fn single(&self) -> Map {
        match self.bounds {
            None => Map::SignedLog,
            Some([low, high]) => {
                let wide = low > 0.0 && high / low >= FAR_APART;
                match self.log.unwrap_or(wide) {
                    true => Map::LogBounds { low, high },
                    false => Map::Bounds { low, high },
                }
            }
        }
    }
}

impl Map {
    /// The map that changes nothing.
    pub(crate) const AS_IT_IS: Map =
        Map::Standard { curve: Curve::Straight, mean: 0.0, deviation: 1.0, bounds: None };

    /// The image of a value. Finite for every finite value.
    pub fn apply(&self, value: f64) -> f32 {
        let mapped = match *self {
            Map::Bounds { low, high } => {
                // Halves, so that no difference of two finite bounds overflows.
                let share = (value.clamp(low, high) / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
                2.0 * share - 1.0
            }
            Map::LogBounds { low, high } => {
                let share = (value.clamp(low, high).ln() - low.ln()) / (high.ln() - low.ln());
                2.0 * share - 1.0
            }
            Map::SignedLog if value == 0.0 || value.abs() == 1.0 => value,
            Map::SignedLog => (1.0 + value.abs()).log2().copysign(value),
            Map::Standard { curve, mean, deviation, bounds } => {
                let value = bounds.map_or(value, |[low, high]| value.clamp(low, high));
                (curve.apply(value) - mean) / deviation
            }
        };
        mapped.clamp(-f64::from(f32::MAX), f64::from(f32::MAX)) as f32
    }

    fn is_valid(&self) -> bool {
        let ordered = |low: f64, high: f64| low.is_finite() && high.is_finite() && low / 2.0 < high / 2.0;
        match *self {
            Map::Bounds { low, high } => ordered(low, high),
            Map::LogBounds { low, high } => ordered(low, high) && low > 0.0 && low.ln() < high.ln(),
            Map::SignedLog => true,
            Map::Standard { curve, mean, deviation, bounds } => {
                let curve = match curve {
                    Curve::Straight => true,
                    Curve::Log { floor } => floor.is_finite() && floor > 0.0,
                    Curve::Asinh { centre, unit } => centre.is_finite() && unit.is_finite() && unit > 0.0,
                };
                let scaled = mean.is_finite() && deviation.is_finite() && deviation > 0.0;
                curve && scaled && bounds.is_none_or(|[low, high]| ordered(low, high))
            }
        }
    }
}

impl Curve {
    pub(crate) fn apply(self, value: f64) -> f64 {
        match self {
            Curve::Straight => value,
            // A row that comes later may lie below: it is as small as the smallest.
            Curve::Log { floor } => value.max(floor).ln(),
            Curve::Asinh { centre, unit } => ((value - centre) / unit).asinh(),
        }
    }
}

/// The columns of a matrix that hold anything but 0 and 1.
pub fn number_columns(features: &Features) -> Vec<NumberColumn> {
    let mut is_number = vec![false; features.columns()];
    match features {
        Features::Dense { columns, values } => {
            for row in values.chunks_exact((*columns).max(1)) {
                for (is_number, &value) in is_number.iter_mut().zip(row) {
                    *is_number |= value != 0.0 && value != 1.0;
                }
            }
        }
        Features::Half { columns, values } => {
            for row in values.chunks_exact((*columns).max(1)) {
                for (is_number, value) in is_number.iter_mut().zip(row) {
                    *is_number |= *value != half::f16::ZERO && *value != half::f16::ONE;
                }
            }
        }
        Features::Sparse { indices, values, .. } => {
            for (&column, &value) in indices.iter().zip(values.as_deref().unwrap_or_default()) {
                is_number[column as usize] |= value != 0.0 && value != 1.0;
            }
        }
    }
    let numbers = is_number.into_iter().enumerate().filter(|(_, is_number)| *is_number);
    numbers.map(|(column, _)| NumberColumn::new(column)).collect()
}

/// The number columns that hold anything but 0 and 1.
pub fn real_columns(features: &Features, numbers: &[NumberColumn]) -> Vec<u32> {
    let origins = numbers.iter().filter(|number| number.origin.is_some());
    let mut real: Vec<u32> =
        number_columns(features).iter().chain(origins).map(|number| number.column).collect();
    real.sort_unstable();
    real.dedup();
    real
}

/// Whether a list of number columns fits a matrix: ascending, none twice, each with sound bounds and map.
pub fn check(numbers: &[NumberColumn], columns: usize) -> Result<()> {
    let wrong = |number: &NumberColumn, what: &str| {
        Err(Problem::Invalid(format!("number column {}: {what}", number.column)).into())
    };
    for (at, number) in numbers.iter().enumerate() {
        let beside = number.missing.unwrap_or(number.column);
        if number.column as usize >= columns || beside as usize >= columns {
            let (index, limit) = (number.column.max(beside).to_string(), columns as u64);
            return Err(Problem::IndexOutOfRange { index, limit }.at(Place::Key("number columns".into())));
        }
        if at > 0 && numbers[at - 1].column >= number.column {
            return wrong(number, "the list is not in order");
        }
        if number.bounds.is_some_and(|[low, high]| !Map::Bounds { low, high }.is_valid()) {
            return wrong(number, "the lower bound is not below the upper one");
        }
        let single = number.single();
        if number.log == Some(true) && !(matches!(single, Map::LogBounds { .. }) && single.is_valid()) {
            return wrong(number, "a logarithm needs bounds above 0");
        }
        if number.origin.is_some_and(|origin| !origin.is_finite() || number.map.is_some()) {
            return wrong(number, "its origin is none");
        }
        if number.map.is_some_and(|map| !map.is_valid()) {
            return wrong(number, "its map is none");
        }
    }
    Ok(())
}

/// The same features with every number column brought to scale, and the list of the maps. Columns that were mapped
/// before stay.
pub(crate) fn prepare(
    features: Features,
    rows: usize,
    numbers: Vec<NumberColumn>,
    how: Preparation,
) -> Result<(Features, Vec<NumberColumn>)> {
    let maps = match how {
        Preparation::Standardise => standard::maps(&features, rows, &numbers)?,
        Preparation::RowByRow | Preparation::Declared => declared_maps(&numbers, how),
    };
    let found = numbers.iter().zip(&maps).filter(|(_, map)| map.is_some());
    let new: Vec<Change> = found.map(|(number, map)| Change { number: number.clone(), map: *map }).collect();
    let features = change(features, rows, &new)?;
    Ok((features, with_maps(&numbers, &maps, how)))
}

/// The map of each column by what is declared of it, and by nothing that any row holds; none for one that was mapped
/// before, or that whoever looks at whole columns finds one for.
pub fn declared_maps(numbers: &[NumberColumn], how: Preparation) -> Vec<Option<Map>> {
    let map = |number: &NumberColumn| match how {
        _ if number.map.is_some() => None,
        Preparation::RowByRow => Some(number.single()),
        Preparation::Declared => number.bounds.map(|_| number.single()),
        Preparation::Standardise => None,
    };
    numbers.iter().map(map).collect()
}

/// The list of number columns once these maps were applied. What needs no map is ready as it is, unless it waits for
/// one.
pub fn with_maps(numbers: &[NumberColumn], maps: &[Option<Map>], how: Preparation) -> Vec<NumberColumn> {
    let mapped = numbers.iter().zip(maps).filter_map(|(number, map)| match map.or(number.map) {
        Some(map) => Some(NumberColumn { map: Some(map), origin: None, ..number.clone() }),
        None if how == Preparation::Declared => Some(number.clone()),
        None => number.clone().left_alone(),
    });
    mapped.collect()
}

/// The change to the values of a column: they go through a map or, without one, stay as 32 bits hold them, without an
/// origin.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    number: NumberColumn,
    map: Option<Map>,
}

/// Changes that round columns to 32 bits, without an origin: what was read of a row, whatever stands in all others.
pub(crate) fn rounding(numbers: &[NumberColumn]) -> Vec<Change> {
    let with_origin = numbers.iter().filter(|number| number.origin.is_some());
    with_origin.map(|number| Change { number: number.clone(), map: None }).collect()
}

/// Changes that apply the maps of columns.
pub(crate) fn mapping(numbers: &[NumberColumn]) -> Vec<Change> {
    let mapped = numbers.iter().filter(|number| number.map.is_some());
    mapped.map(|number| Change { number: number.clone(), map: number.map }).collect()
}

/// The features with the maps of these columns applied, which were not before.
///
/// # Errors
/// More features than fit into memory.
pub fn apply(features: Features, rows: usize, numbers: &[NumberColumn]) -> Result<Features> {
    change(features, rows, &mapping(numbers))
}

/// The image of a column's value as it lies in the matrix: the map of what was read, or without a map that itself.
fn image(number: &NumberColumn, map: Option<Map>, value: f32) -> f32 {
    let value = number.origin.map_or(f64::from(value), |origin| origin + f64::from(value));
    map.map_or(value as f32, |map| map.apply(value))
}

/// The features with their columns changed, row by row.
pub(crate) fn change(features: Features, rows: usize, changes: &[Change]) -> Result<Features> {
    if changes.is_empty() {
        return Ok(features);
    }
    let mut by_column: Vec<Option<&Change>> = vec![None; features.columns()];
    for change in changes {
        by_column[change.number.column as usize] = Some(change);
    }
    match features.widened() {
        half @ Features::Half { .. } => Ok(half),
        Features::Dense { columns, values } => {
            let mut values = room::copy(&values)?;
            values.par_chunks_exact_mut(columns).for_each(|row| {
                // Indicators are no number columns: they are as they were, whatever the order.
                for Change { number, map } in changes {
                    let missing = number.missing.is_some_and(|missing| row[missing as usize] != 0.0);
                    let value = &mut row[number.column as usize];
                    *value = if missing { 0.0 } else { image(number, *map, *value) };
                }
            });
            Features::dense(rows, columns, values)
        }
        features @ Features::Sparse { .. } => {
            let columns = features.columns();
            // Zeros that become something else must be there: in every row, but where the value is missing.
            let filled: Vec<(usize, Option<u32>, f32)> = changes
                .iter()
                .map(|Change { number, map }| {
                    (number.column as usize, number.missing, image(number, *map, 0.0))
                })
                .filter(|(.., zero)| *zero != 0.0)
                .collect();
            let (mut offsets, mut indices, mut values) = (room::with_room(rows + 1)?, vec![], vec![]);
            offsets.push(0u64);
            let mut dense: Vec<(usize, f32)> = vec![];
            for row in 0..rows {
                dense.clear();
                dense.extend(features.row(row));
                let has = |column: u32| {
                    dense
                        .binary_search_by_key(&(column as usize), |entry| entry.0)
                        .is_ok_and(|at| dense[at].1 != 0.0)
                };
                let mut put: Vec<(usize, f32)> = Vec::with_capacity(dense.len() + filled.len());
                for &(column, value) in &dense {
                    match by_column[column] {
                        None => put.push((column, value)),
                        Some(Change { number, .. }) if number.missing.is_some_and(has) => {}
                        Some(Change { number, map }) => put.push((column, image(number, *map, value))),
                    }
                }
                for &(column, missing, zero) in &filled {
                    let there = dense.binary_search_by_key(&column, |entry| entry.0).is_ok();
                    if !there && !missing.is_some_and(has) {
                        put.push((column, zero));
                    }
                }
                put.sort_unstable_by_key(|entry| entry.0);
                for (column, value) in put {
                    room::push(&mut indices, column as u32)?;
                    room::push(&mut values, value)?;
                }
                offsets.push(indices.len() as u64);
            }
            Features::sparse(rows, columns, offsets, indices, Some(values.into()))
        }
    }
}
