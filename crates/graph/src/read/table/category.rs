//! Columns of names: classes, and text that becomes one-hot features.

use std::collections::HashMap;

use super::cell::{Checked, canonical_integer};
use crate::room;

/// A column of names, each distinct name kept once.
#[derive(Debug, Default)]
pub(super) struct Categories {
    codes: Vec<u32>,
    numbers: HashMap<Box<str>, u32>,
}

/// The names of a column in their order, and for each row the position of its name.
#[derive(Debug)]
pub(super) struct Sorted {
    pub(super) names: Vec<String>,
    pub(super) codes: Vec<u32>,
}

/// The code of a row without a name.
pub(super) const NONE: u32 = u32::MAX;

impl Categories {
    /// A column that begins with so many rows without a name.
    pub(super) fn with_empty_rows(rows: usize) -> Checked<Self> {
        Ok(Categories { codes: room::filled(NONE, rows)?, numbers: HashMap::new() })
    }

    /// Adds a row.
    pub(super) fn push(&mut self, name: Option<&str>) -> Checked<()> {
        let code = match name {
            None => NONE,
            Some(name) => match self.numbers.get(name) {
                Some(&code) => code,
                None => {
                    let code = self.numbers.len() as u32;
                    self.numbers.insert(name.into(), code);
                    code
                }
            },
        };
        room::push(&mut self.codes, code)
    }

    /// Puts the names in order: as numbers if all are integers, as text otherwise.
    pub(super) fn sort(self) -> Sorted {
        let Categories { mut codes, numbers } = self;
        let mut names: Vec<(Box<str>, u32)> = numbers.into_iter().collect();
        let integers: Option<Vec<i64>> =
            names.iter().map(|(name, _)| canonical_integer(name.as_bytes())).collect();
        match integers {
            // Canonical integers never tie, so the order is total.
            Some(_) => names.sort_unstable_by_key(|(name, _)| canonical_integer(name.as_bytes())),
            None => names.sort_unstable(),
        }
        let mut position = vec![0; names.len()];
        for (at, (_, code)) in names.iter().enumerate() {
            position[*code as usize] = at as u32;
        }
        for code in codes.iter_mut().filter(|code| **code != NONE) {
            *code = position[*code as usize];
        }
        Sorted { names: names.into_iter().map(|(name, _)| name.into_string()).collect(), codes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(names: &[&str]) -> (Vec<String>, Vec<u32>) {
        let mut categories = Categories::default();
        names.iter().for_each(|name| categories.push(Some(*name).filter(|name| !name.is_empty())).unwrap());
        let Sorted { names, codes } = categories.sort();
        (names, codes)
    }

    #[test]
    fn integers_sort_as_numbers_and_the_rest_as_text() {
        assert_eq!(
            sorted(&["10", "9", "-1", "9"]),
            (vec!["-1".into(), "9".into(), "10".into()], vec![2, 1, 0, 1])
        );
        assert_eq!(sorted(&["10", "9", "", "b"]).0, ["10", "9", "b"]);
        assert_eq!(sorted(&["10", "9", "", "b"]).1, [0, 1, NONE, 2]);
    }
}
