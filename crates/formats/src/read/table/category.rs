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
    /// A column that begins with this many rows without a name.
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

    /// The number of different names.
    pub(super) fn distinct(&self) -> usize {
        self.numbers.len()
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.codes.len()
    }

    /// Takes names of a kind for no name, and says which they were and how often each stood there.
    pub(super) fn forget(&mut self, of_kind: impl Fn(&str) -> bool) -> Vec<(String, usize)> {
        if !self.numbers.keys().any(|name| of_kind(name)) {
            return vec![];
        }
        let rows = std::mem::take(self).into_names();
        let mut counts = vec![0usize; rows.names.len()];
        let mut kept = vec![NONE; rows.names.len()];
        for (at, name) in rows.names.iter().enumerate().filter(|(_, name)| !of_kind(name)) {
            kept[at] = self.numbers.len() as u32;
            self.numbers.insert(name.as_str().into(), kept[at]);
        }
        self.codes = rows.codes;
        for code in self.codes.iter_mut().filter(|code| **code != NONE) {
            counts[*code as usize] += 1;
            *code = kept[*code as usize];
        }
        let gone = rows.names.into_iter().zip(counts).zip(kept).filter(|(_, kept)| *kept == NONE);
        gone.map(|(word, _)| word).collect()
    }

    /// Whether all names are of a kind.
    pub(super) fn all(&self, of_kind: impl Fn(&str) -> bool) -> bool {
        self.numbers.keys().all(|name| of_kind(name))
    }

    /// The first name.
    pub(super) fn example(&self) -> String {
        self.numbers
            .iter()
            .find(|(_, code)| **code == 0)
            .map(|(name, _)| name.to_string())
            .unwrap_or_default()
    }

    /// The names, with how often each stands there.
    pub(super) fn counts(&self) -> Vec<(&str, usize)> {
        let mut counts: Vec<(&str, usize)> = vec![("", 0); self.numbers.len()];
        self.numbers.iter().for_each(|(name, code)| counts[*code as usize].0 = name);
        self.codes.iter().filter(|&&code| code != NONE).for_each(|&code| counts[code as usize].1 += 1);
        counts
    }

    /// The first row whose name is of a kind, with the name.
    pub(super) fn first(&self, of_kind: impl Fn(&str) -> bool) -> Option<(usize, String)> {
        let counts = self.counts();
        let is_one: Vec<bool> = counts.iter().map(|(name, _)| of_kind(name)).collect();
        let row = self.codes.iter().position(|&code| code != NONE && is_one[code as usize])?;
        Some((row, counts[self.codes[row] as usize].0.to_string()))
    }

    /// The rows that have a name.
    pub(super) fn named(&self) -> usize {
        self.codes.iter().filter(|&&code| code != NONE).count()
    }

    /// The names, in the order in which they came, with the code of each row.
    pub(super) fn into_names(self) -> Sorted {
        let mut names = vec![String::new(); self.numbers.len()];
        self.numbers.into_iter().for_each(|(name, code)| names[code as usize] = name.into_string());
        Sorted { names, codes: self.codes }
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

impl Sorted {
    /// The same rows with the names that are listed, in that order; what is not listed goes to the name `other`, where
    /// that is listed. The first row whose name goes nowhere is an error.
    pub(super) fn with_names(self, listed: Vec<String>) -> Result<Sorted, (usize, String)> {
        let position = |name: &str| listed.iter().position(|other| other == name).map(|at| at as u32);
        let rest = position(OTHER);
        let new: Vec<Option<u32>> = self.names.iter().map(|name| position(name).or(rest)).collect();
        let mut codes = self.codes;
        for (row, code) in codes.iter_mut().enumerate().filter(|(_, code)| **code != NONE) {
            let at = *code as usize;
            *code = new[at].ok_or_else(|| (row, self.names[at].clone()))?;
        }
        Ok(Sorted { names: listed, codes })
    }

    /// The same rows with the `most` most frequent names and one name for all others.
    pub(super) fn at_most(self, most: usize) -> Sorted {
        if self.names.len() <= most {
            return self;
        }
        let mut counts = vec![0usize; self.names.len()];
        self.codes.iter().filter(|&&code| code != NONE).for_each(|&code| counts[code as usize] += 1);
        // Of equally frequent names the first.
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(counts[at]), at));
        order.truncate(most);
        order.sort_unstable();
        let mut listed: Vec<String> = order.into_iter().map(|at| self.names[at].clone()).collect();
        if !listed.iter().any(|name| name == OTHER) {
            listed.push(OTHER.into());
        }
        let (names, codes) = (self.names.clone(), self.codes.clone());
        self.with_names(listed).unwrap_or(Sorted { names, codes })
    }
}

/// The name of everything that has no category of its own.
pub(super) const OTHER: &str = "other";

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
    fn names_that_are_forgotten_are_counted() {
        let mut categories = Categories::default();
        ["NA", "b", "NA", "a", ""].iter().for_each(|name| categories.push(Some(name)).unwrap());
        assert_eq!(categories.forget(|name| name == "NA"), [("NA".to_string(), 2)]);
        assert_eq!((categories.distinct(), categories.named(), categories.rows()), (3, 3, 5));
        assert_eq!(categories.sort().codes, [NONE, 2, NONE, 1, 0]);
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
