//! Columns of ids: values of which no two are alike.

use super::category::Categories;
use super::cell::Checked;
use crate::room;

/// Fewer values than this may be different by chance.
const LEAST: usize = 20;
/// Whole numbers up to this are counts, sizes and seconds; larger ones that are all different are ids.
const LARGEST_COUNT: f32 = 4.2e9;

/// The whole numbers of a column as long as all are larger than counts are.
#[derive(Debug)]
pub(super) struct LargeNumbers(Option<Vec<i64>>);

impl LargeNumbers {
    pub(super) fn new() -> Self {
        LargeNumbers(Some(vec![]))
    }

    /// Adds a row with a number, rounded to 32 bits; `whole` gives it in full, where it is whole.
    pub(super) fn push(&mut self, value: f32, whole: impl FnOnce() -> Option<i64>) -> Checked<()> {
        let Some(numbers) = &mut self.0 else { return Ok(()) };
        match Some(value).filter(|value| value.abs() > LARGEST_COUNT).and_then(|_| whole()) {
            Some(number) => room::push(numbers, number),
            None => {
                self.0 = None;
                Ok(())
            }
        }
    }

    /// Whether they are ids.
    pub(super) fn are_ids(self) -> bool {
        let Some(mut numbers) = self.0 else { return false };
        let rows = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        rows >= LEAST && numbers.len() == rows
    }
}

/// Whether names are ids: all different, and of one word each.
pub(super) fn are_ids(names: &Categories) -> bool {
    let rows = names.named();
    rows >= LEAST && names.distinct() == rows && names.all(|name| !name.contains(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn large(values: impl Iterator<Item = i64>) -> bool {
        let mut numbers = LargeNumbers::new();
        values.for_each(|value| numbers.push(value as f32, || Some(value)).unwrap());
        numbers.are_ids()
    }

    #[test]
    fn ids_are_large_whole_and_all_different() {
        assert!(large((0..20).map(|at| 5_000_000_000 + at)));
        assert!(
            large((0..500).map(|at| 10_000_000_000_000_000 + at)),
            "more than a 64-bit float tells apart"
        );
        assert!(!large((0..19).map(|at| 5_000_000_000 + at)), "few");
        assert!(!large((0..20).map(|at| 5_000_000_000 + at / 2)), "two alike");
        assert!(!large((0..20).map(|at| 1_700_000_000 + at)), "seconds since 1970");
        assert!(!large((0..200).map(|at| if at == 100 { 3 } else { 5_000_000_000 + at })), "a small one");
        let mut fractions = LargeNumbers::new();
        (0..30).for_each(|at| fractions.push(5e9 + 1e3 * at as f32, || None).unwrap());
        assert!(!fractions.are_ids());
    }

    #[test]
    fn names_of_one_word_that_are_all_different_are_ids() {
        let names = |name: &dyn Fn(usize) -> String| {
            let mut names = Categories::default();
            (0..30).for_each(|at| names.push(Some(&name(at))).unwrap());
            are_ids(&names)
        };
        assert!(names(&|at| format!("user-{at}")));
        assert!(!names(&|at| format!("Ann {at}")), "a text has words");
        assert!(!names(&|at| format!("town-{}", at / 2)));
    }
}
