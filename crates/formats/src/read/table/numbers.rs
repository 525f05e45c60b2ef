//! A column of numbers while it is read.
//!
//! Numbers are kept in 32 bits. Where they lie close together in relation to their size (times in seconds since 1970,
//! readings around 1e8), 32 bits would leave little of what tells them apart: such a column is kept as distances from a
//! number in its midst, its origin, and rounds to the same 32 bits as without one.

use super::cell::Checked;
use crate::room;

/// A column of numbers: all of them, or those that are not zero while these are few.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    values: Values,
    rest: Rest,
}

#[derive(Debug)]
enum Values {
    Dense(Vec<f32>),
    Sparse { length: usize, rows: Vec<u32>, values: Vec<f32> },
}

impl Default for Values {
    fn default() -> Self {
        Values::Sparse { length: 0, rows: Vec::new(), values: Vec::new() }
    }
}

impl Numbers {
    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        match &self.values {
            Values::Dense(values) => values.len(),
            Values::Sparse { length, .. } => *length,
        }
    }

    /// Adds a row with a number, rounded to 32 bits; `exact` gives it in 64.
    pub(super) fn push(&mut self, value: f32, exact: impl FnOnce() -> f64) -> Checked<()> {
        self.rest.push(value, exact)?;
        self.values.push(value)
    }

    /// Adds a row without a number, which is 0.
    pub(super) fn push_missing(&mut self) -> Checked<()> {
        self.rest.push_missing()?;
        self.values.push(0.0)
    }

    /// The values that are not zero, with their rows.
    pub(super) fn nonzeros(&self) -> impl Iterator<Item = (usize, f32)> + '_ {
        let (dense, rows, values) = match &self.values {
            Values::Dense(values) => (&values[..], &[][..], &[][..]),
            Values::Sparse { rows, values, .. } => (&[][..], &rows[..], &values[..]),
        };
        let sparse = rows.iter().map(|&row| row as usize).zip(values.iter().copied());
        dense.iter().copied().enumerate().filter(|(_, value)| *value != 0.0).chain(sparse)
    }

    /// The column as distances from its origin, where 32 bits are too few for it as it is. Rows without a number stay
    /// 0.
    pub(super) fn around_origin(self) -> Checked<(Numbers, Option<f64>)> {
        let Some(origin) = self.rest.origin() else { return Ok((self, None)) };
        Ok(match self.distances(origin)? {
            Some(values) => (Numbers { values, rest: Rest::default() }, Some(origin)),
            None => (self, None),
        })
    }

    fn distances(&self, origin: f64) -> Checked<Option<Values>> {
        let (mut distances, mut next) = (Values::default(), 0);
        for (row, value) in self.nonzeros() {
            // No number here is 0, as that would be far from the others: what is 0 is missing.
            (next..row).try_for_each(|_| distances.push(0.0))?;
            next = row + 1;
            let exact = f64::from(value) + f64::from(self.rest.cut[row]);
            match distance(origin, value, exact) {
                Some(distance) => distances.push(distance)?,
                None => return Ok(None),
            }
        }
        (next..self.rows()).try_for_each(|_| distances.push(0.0))?;
        Ok(Some(distances))
    }
}

/// The distance of a number from an origin, in 32 bits, such that their sum rounds to the number's own 32 bits.
fn distance(origin: f64, value: f32, exact: f64) -> Option<f32> {
    let near = (exact - origin) as f32;
    let is_right = |distance: &f32| (origin + f64::from(*distance)) as f32 == value;
    [near, near.next_up(), near.next_down()].into_iter().find(is_right)
}

impl Values {
    fn push(&mut self, value: f32) -> Checked<()> {
        match self {
            Values::Dense(values) => room::push(values, value)?,
            Values::Sparse { length, rows, values } => {
                if value != 0.0 {
                    room::push(rows, *length as u32)?;
                    room::push(values, value)?;
                }
                *length += 1;
                // From half on, the list of rows costs more than the zeros.
                if value != 0.0 && values.len() > 1024 && values.len() * 2 > *length {
                    let mut dense = room::filled(0.0, *length)?;
                    for (&row, &value) in rows.iter().zip(values.iter()) {
                        dense[row as usize] = value;
                    }
                    *self = Values::Dense(dense);
                }
            }
        }
        Ok(())
    }
}

/// Numbers lie close together where the largest is more than this many times their range.
const CLOSE: f64 = 16.0;

/// The part of each number that 32 bits cut off, kept while all numbers lie close together.
#[derive(Debug)]
struct Rest {
    low: f64,
    high: f64,
    cut: Vec<f32>,
    close: bool,
}

impl Default for Rest {
    fn default() -> Self {
        Rest { low: f64::INFINITY, high: f64::NEG_INFINITY, cut: vec![], close: true }
    }
}

impl Rest {
    fn push(&mut self, value: f32, exact: impl FnOnce() -> f64) -> Checked<()> {
        if !self.close {
            return Ok(());
        }
        let exact = exact();
        (self.low, self.high) = (self.low.min(exact), self.high.max(exact));
        room::push(&mut self.cut, (exact - f64::from(value)) as f32)?;
        // Once they are far apart they stay so, whatever comes.
        if self.low.abs().max(self.high.abs()) <= CLOSE * (self.high - self.low) || value == 0.0 {
            (self.close, self.cut) = (false, vec![]);
        }
        Ok(())
    }

    fn push_missing(&mut self) -> Checked<()> {
        match self.close {
            true => room::push(&mut self.cut, 0.0),
            false => Ok(()),
        }
    }

    /// A number in the midst of them, where they lie close together, differ, and 32 bits cut something off.
    fn origin(&self) -> Option<f64> {
        let is_cut = self.close && self.low < self.high && self.cut.iter().any(|cut| *cut != 0.0);
        is_cut.then(|| f64::from((self.low / 2.0 + self.high / 2.0) as f32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(values: impl IntoIterator<Item = f64>) -> Numbers {
        let mut numbers = Numbers::default();
        for value in values {
            match value.is_nan() {
                true => numbers.push_missing().unwrap(),
                false => numbers.push(value as f32, || value).unwrap(),
            }
        }
        numbers
    }

    #[test]
    fn a_long_column_keeps_its_values_in_either_form() {
        for every in [1, 2, 3, 50] {
            let column = numbers((0..5000).map(|i| f64::from(if i % every == 0 { i } else { 0 })));
            assert_eq!(matches!(column.values, Values::Dense(_)), every == 1, "{every}");
            let expected = (1..5000).filter(|i| i % every == 0).map(|i| (i as usize, i as f32));
            assert!(column.nonzeros().eq(expected));
        }
    }

    #[test]
    fn numbers_that_lie_close_together_are_kept_around_an_origin() {
        let shifts = (0..3000).map(|row| f64::from(row * 7919 % 1000) / 500.0 - 1.0);
        let values: Vec<f64> =
            shifts.enumerate().map(|(row, z)| if row % 9 == 4 { f64::NAN } else { 1e8 + z }).collect();
        let missing: Vec<u32> = (0..3000).filter(|row| row % 9 == 4).collect();
        let (around, origin) = numbers(values.iter().copied()).around_origin().unwrap();
        let origin = origin.expect("an origin");
        let mut distances = vec![0f32; 3000];
        around.nonzeros().for_each(|(row, value)| distances[row] = value);
        assert_eq!(around.rows(), 3000);
        for (row, &value) in values.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
            let sum = origin + f64::from(distances[row]);
            assert!((sum - value).abs() < 1e-6, "{sum} {value}");
            assert_eq!(sum as f32, value as f32, "at node level no other row has a say");
        }
        assert!(missing.iter().all(|&row| distances[row as usize] == 0.0));
    }

    #[test]
    fn other_columns_stay_as_they_are() {
        for plain in [
            vec![2001.0, 2002.0, 2024.0],
            vec![0.0, 1e8 + 0.1],
            vec![1.1, 2.2, 3.3],
            vec![1.1, 1.1],
            vec![-1e8 + 0.1, 1e8],
        ] {
            let (column, origin) = numbers(plain.clone()).around_origin().unwrap();
            assert_eq!(origin, None, "{plain:?}");
            assert_eq!(column.rows(), plain.len());
        }
    }
}
