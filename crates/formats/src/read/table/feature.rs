//! A column of features: numbers, truth values or names, decided while it is read.

use super::category::Categories;
use super::cell::{Cell, Checked, canonical_integer, whole};
use super::numbers::Numbers;
use super::unique::LargeNumbers;
use crate::read::missing::is_missing;
use crate::{Problem, room, single};

/// A feature column that is being read.
///
/// A column is a column of numbers if every cell is one or is missing. A text among numbers is an error while numbers
/// are the majority (somebody wrote "unknown"), and makes the numbers names where they are not (a code such as "3A").
#[derive(Debug)]
pub(super) struct FeatureColumn {
    values: Values,
    reads: Reads,
    rows: usize,
    numbers: usize,
    switches: usize,
    texts: usize,
    /// The rows without a value, while the column is one of numbers.
    missing: Vec<u32>,
    /// Whether a word said so, and not an empty cell.
    marked: bool,
    large: LargeNumbers,
    first_text: Option<(usize, String)>,
    first_switch: Option<(usize, String)>,
}

/// How cells are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Reads {
    /// Their look decides.
    Anything {
        /// Whether a comma may stand in the place of the decimal point.
        decimal_comma: bool,
    },
    /// As numbers: anything else is an error.
    Numbers {
        /// Whether a comma may stand in the place of the decimal point.
        decimal_comma: bool,
    },
    /// As names, whatever they look like.
    Names,
}

#[derive(Debug)]
enum Values {
    Numbers(Numbers),
    Names(Categories),
    /// Numbers turned out to be names after their spelling was gone.
    Lost,
}

/// A feature column, once its kind is known.
#[derive(Debug)]
pub(super) enum Finished {
    /// Numbers, and the rows that have none.
    Numbers {
        numbers: Numbers,
        missing: Vec<u32>,
        /// Whether all were `true` and `false`.
        switch: bool,
        /// Whether they are ids.
        ids: bool,
    },
    Names(Categories),
    /// Names, of which the first were taken for numbers: the column must be read again as names.
    ReadAgain,
}

/// What a text means where numbers are expected.
pub(super) enum Meaning {
    Number(f32),
    Switch(bool),
    /// A word for "no value", where the column is one of numbers.
    Missing,
    Text,
}

impl FeatureColumn {
    /// A column whose cells are read in that way.
    pub(super) fn new(reads: Reads) -> Self {
        FeatureColumn {
            values: match reads {
                Reads::Names => Values::Names(Categories::default()),
                _ => Values::Numbers(Numbers::default()),
            },
            reads,
            rows: 0,
            numbers: 0,
            switches: 0,
            texts: 0,
            missing: vec![],
            marked: false,
            large: LargeNumbers::new(),
            first_text: None,
            first_switch: None,
        }
    }

    /// A column of names, whatever its cells look like.
    pub(super) fn names() -> Self {
        Self::new(Reads::Names)
    }

    /// Whether the cells decide what the column is.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.reads, Reads::Anything { .. })
    }

    /// Adds a row.
    pub(super) fn push(&mut self, cell: Cell) -> Checked<()> {
        let decimal_comma = match self.reads {
            Reads::Names => {
                cell.named(|name| self.push_name(name))?;
                self.rows += 1;
                return Ok(());
            }
            Reads::Anything { decimal_comma } | Reads::Numbers { decimal_comma } => decimal_comma,
        };
        match cell {
            Cell::Empty => match &mut self.values {
                Values::Numbers(numbers) => {
                    numbers.push_missing()?;
                    room::push(&mut self.missing, self.rows as u32)?;
                }
                Values::Names(names) => names.push(None)?,
                Values::Lost => {}
            },
            Cell::Untyped(text) => {
                let exact = || exact(text, decimal_comma);
                let meaning = meaning(text, decimal_comma);
                self.note_large(&meaning, || canonical_integer(text.trim_ascii().as_bytes()))?;
                self.push_meaning(meaning, text, exact)?;
            }
            Cell::Text(text) => self.push_meaning(Meaning::Text, text, || 0.0)?,
            Cell::Integer(value) => {
                self.note_large(&Meaning::Number(value as f32), || Some(value))?;
                self.push_meaning(Meaning::Number(value as f32), "", || value as f64)?;
            }
            Cell::Unsigned(value) => {
                self.note_large(&Meaning::Number(value as f32), || Some(value.cast_signed()))?;
                self.push_meaning(Meaning::Number(value as f32), "", || value as f64)?;
            }
            Cell::Number(value) => {
                let meaning = usable(value);
                self.note_large(&meaning, || whole(value))?;
                self.push_meaning(meaning, "", || in_range(value))?;
            }
            Cell::Bool(value) => {
                let text = if value { "true" } else { "false" };
                self.push_meaning(Meaning::Switch(value), text, || f64::from(u8::from(value)))?;
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// Keeps a number that may be an id.
    fn note_large(&mut self, meaning: &Meaning, whole: impl FnOnce() -> Option<i64>) -> Checked<()> {
        match meaning {
            Meaning::Number(value) => self.large.push(*value, whole),
            _ => Ok(()),
        }
    }

    fn push_name(&mut self, name: Option<&str>) -> Checked<()> {
        match &mut self.values {
            Values::Names(names) => names.push(name),
            _ => Ok(()),
        }
    }

    fn push_meaning(&mut self, meaning: Meaning, text: &str, exact: impl FnOnce() -> f64) -> Checked<()> {
        let rows = self.rows;
        // A word for "no value" has a spelling of its own, which is a name where the column is one of names.
        let only_empty = self.numbers + self.switches == 0 && self.missing.len() == rows;
        let is_missing = matches!(meaning, Meaning::Missing);
        let number = match meaning {
            Meaning::Number(value) => {
                self.numbers += 1;
                Some(value)
            }
            Meaning::Switch(value) => {
                self.switches += 1;
                self.first_switch.get_or_insert_with(|| (rows, text.to_string()));
                Some(f32::from(value))
            }
            Meaning::Missing => Some(0.0),
            Meaning::Text => {
                self.texts += 1;
                self.first_text.get_or_insert_with(|| (rows, text.to_string()));
                None
            }
        };
        match (&mut self.values, number) {
            (Values::Numbers(numbers), Some(_)) if is_missing => {
                numbers.push_missing()?;
                self.marked = true;
                room::push(&mut self.missing, rows as u32)?;
            }
            (Values::Numbers(numbers), Some(value)) => numbers.push(value, exact)?,
            (Values::Numbers(_), None) if only_empty && !self.marked => {
                let mut names = Categories::with_empty_rows(rows)?;
                names.push(Some(text))?;
                self.values = Values::Names(names);
            }
            (Values::Numbers(_), None) => self.values = Values::Lost,
            (Values::Names(names), _) => names.push(Some(text).filter(|text| !text.is_empty()))?,
            (Values::Lost, _) => {}
        }
        Ok(())
    }

    /// The column, once its kind is known; an error comes with the row (from 0) that it concerns.
    pub(super) fn finish(self) -> Result<Finished, (usize, Problem)> {
        let declared_numbers = matches!(self.reads, Reads::Numbers { .. });
        if self.reads == Reads::Names {
            return Ok(self.into_names());
        }
        // Truth values among numbers are as much out of place as any other text.
        let misfits = self.texts + if self.numbers > 0 { self.switches } else { 0 };
        if misfits > 0 {
            if self.numbers <= misfits && !declared_numbers {
                return Ok(self.into_names());
            }
            let FeatureColumn { first_text, first_switch, .. } = self;
            let first = [first_text, first_switch].into_iter().flatten().min();
            let (row, text) = first.unwrap_or_default();
            return Err((row, Problem::NotANumber(text)));
        }
        if self.numbers + self.switches == 0 && !declared_numbers {
            let names = Categories::with_empty_rows(self.rows).map_err(|problem| (0, problem))?;
            return Ok(Finished::Names(names));
        }
        match self.values {
            Values::Numbers(numbers) => Ok(Finished::Numbers {
                numbers,
                missing: self.missing,
                switch: self.numbers == 0 && self.switches > 0,
                ids: self.large.are_ids(),
            }),
            Values::Names(names) => Ok(Finished::Names(names)),
            Values::Lost => Ok(Finished::ReadAgain),
        }
    }

    fn into_names(self) -> Finished {
        match self.values {
            Values::Names(names) => Finished::Names(names),
            Values::Numbers(_) | Values::Lost => Finished::ReadAgain,
        }
    }
}

/// The meaning of a text.
pub(super) fn meaning(text: &str, decimal_comma: bool) -> Meaning {
    let trimmed = text.trim_ascii();
    match trimmed.parse::<f32>() {
        Ok(value) if value.is_finite() => Meaning::Number(value),
        Ok(value) if value.is_nan() => Meaning::Missing,
        Ok(_) => usable(trimmed.parse().unwrap_or(f64::NAN)),
        Err(_) if trimmed.eq_ignore_ascii_case("true") => Meaning::Switch(true),
        Err(_) if trimmed.eq_ignore_ascii_case("false") => Meaning::Switch(false),
        Err(_) if is_missing(trimmed) => Meaning::Missing,
        Err(_) if decimal_comma && trimmed.matches(',').count() == 1 && !trimmed.contains('.') => {
            meaning(&trimmed.replace(',', "."), false)
        }
        Err(_) => Meaning::Text,
    }
}

/// A number of 64 bits in the range of 32.
pub(super) fn in_range(value: f64) -> f64 {
    value.clamp(f32::MIN.into(), f32::MAX.into())
}

/// The number that a text is, in 64 bits.
pub(super) fn exact(text: &str, decimal_comma: bool) -> f64 {
    let trimmed = text.trim_ascii();
    let number =
        trimmed.parse().or_else(|e| if decimal_comma { trimmed.replace(',', ".").parse() } else { Err(e) });
    in_range(number.unwrap_or(0.0))
}

/// A number in the range of 32 bits; NaN is missing.
pub(super) fn usable(value: f64) -> Meaning {
    if value.is_nan() { Meaning::Missing } else { Meaning::Number(single(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cells: &[&str]) -> Result<Finished, (usize, Problem)> {
        let mut column = FeatureColumn::new(Reads::Anything { decimal_comma: false });
        for &cell in cells {
            column.push(if cell.is_empty() { Cell::Empty } else { Cell::Untyped(cell) }).unwrap();
        }
        column.finish()
    }

    #[test]
    fn numbers_and_truth_values_are_numbers() {
        let Ok(Finished::Numbers { numbers, .. }) = read(&["1", "0", " -2.5", "1e3", "0.0"]) else {
            panic!()
        };
        assert_eq!(numbers.nonzeros().collect::<Vec<_>>(), [(0, 1.0), (2, -2.5), (3, 1000.0)]);
        let Ok(Finished::Numbers { numbers, .. }) = read(&["true", "False"]) else { panic!() };
        assert_eq!(numbers.nonzeros().collect::<Vec<_>>(), [(0, 1.0)]);
    }

    /// One value, however large, must not decide whether a table can be read: its row may be private.
    #[test]
    fn numbers_beyond_32_bits_are_clamped() {
        for large in ["1e39", "inf", "1e400"] {
            let Ok(Finished::Numbers { numbers, .. }) = read(&["1", large, &format!("-{large}")]) else {
                panic!()
            };
            assert_eq!(numbers.nonzeros().collect::<Vec<_>>(), [(0, 1.0), (1, f32::MAX), (2, f32::MIN)]);
        }
    }

    #[test]
    fn what_is_no_number_among_numbers_is_named() {
        assert!(
            matches!(read(&["1", "2", "some", "3"]), Err((2, Problem::NotANumber(text))) if text == "some")
        );
        assert!(matches!(read(&["some", "2", "3"]), Err((0, Problem::NotANumber(_)))));
        assert!(matches!(read(&["1", "2", "true"]), Err((2, Problem::NotANumber(_)))));
    }

    #[test]
    fn numbers_may_be_missing() {
        let Ok(Finished::Numbers { numbers, missing, switch, .. }) =
            read(&["", "1", "NaN", "n/a", "", "NULL", "2"])
        else {
            panic!()
        };
        assert_eq!(numbers.nonzeros().collect::<Vec<_>>(), [(1, 1.0), (6, 2.0)]);
        assert_eq!((missing, switch), (vec![0, 2, 3, 4, 5], false));
        // The same words among names are names, or no value where nothing stands.
        assert!(matches!(read(&["na", "a", "b"]), Ok(Finished::ReadAgain)));
        assert!(matches!(read(&["a", "na", "b"]), Ok(Finished::Names(_))));
    }

    #[test]
    fn a_decimal_comma_is_read_where_it_is_expected() {
        assert!(matches!(meaning("3,5", true), Meaning::Number(3.5)));
        assert!(matches!(meaning("3,5", false), Meaning::Text));
        assert!(matches!(meaning("1.000,5", true), Meaning::Text));
    }

    #[test]
    fn names_stay_names_and_numbers_among_them_are_read_again() {
        assert!(matches!(read(&["", "a", "", "nan"]), Ok(Finished::Names(_))));
        assert!(matches!(read(&["", ""]), Ok(Finished::Names(_))));
        assert!(matches!(read(&["1", "a", "b"]), Ok(Finished::ReadAgain)));
        assert!(matches!(read(&["true", "maybe"]), Ok(Finished::ReadAgain)));
    }
}
