//! The column of labels: which of its values are classes, and which say that a label is not known.

use super::category::{Categories, NONE, Sorted};
use super::cell::{Cell, Checked, canonical_integer};
use crate::read::labels::{Classes, check_classes};
use crate::read::missing::is_missing;
use crate::{Problem, UNLABELLED, room};

/// A label column that is being read.
#[derive(Debug, Default)]
pub(crate) struct LabelColumn {
    names: Categories,
    /// The values that stand for a label that is not known, where the user lists them.
    unknown: Option<Vec<String>>,
}

/// The content of a label column.
#[derive(Debug)]
pub(crate) struct Labels {
    pub(crate) classes: Classes,
    /// The words that were taken for a label that is not known, and how often each stood there.
    pub(crate) words: Vec<(String, usize)>,
}

impl Labels {
    /// Of nodes whose labels are not looked at.
    pub(super) fn none(nodes: usize) -> Checked<Labels> {
        let labels = room::filled(UNLABELLED, nodes)?;
        Ok(Labels { classes: Classes { labels, names: vec![] }, words: vec![] })
    }
}

impl LabelColumn {
    /// A column of which the user lists the values that are no labels, or leaves them to their usual meaning.
    pub(crate) fn new(unknown: Option<Vec<String>>) -> Self {
        LabelColumn { names: Categories::default(), unknown }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, cell: Cell) -> Checked<()> {
        cell.named(|name| self.push_name(name))
    }

    /// Adds a row with a name, or with none.
    pub(crate) fn push_name(&mut self, name: Option<&str>) -> Checked<()> {
        self.names.push(name.filter(|name| !name.is_empty()))
    }

    /// The classes. `known` may say of each row whether its label is known at all.
    pub(crate) fn finish(self, known: Option<Vec<bool>>) -> Checked<Labels> {
        let LabelColumn { names, unknown } = self;
        let is_word = |name: &str| match &unknown {
            None => is_missing(name),
            Some(listed) => listed.iter().any(|word| word == name.trim_ascii()),
        };
        let Sorted { names, codes } = whole_numbers(names, &is_word)?.sort();
        let is_marked = |row: usize| known.as_ref().is_none_or(|known| known.get(row) == Some(&true));
        let mut counts = vec![0usize; names.len()];
        let mut marked = vec![false; names.len()];
        for (row, &code) in codes.iter().enumerate().filter(|(_, code)| **code != NONE) {
            counts[code as usize] += 1;
            marked[code as usize] |= is_marked(row);
        }
        let mut is_class: Vec<bool> =
            names.iter().zip(&marked).map(|(name, marked)| *marked && !is_word(name)).collect();
        let words: Vec<&String> = names.iter().filter(|name| !is_word(name)).collect();
        if unknown.is_none()
            && let Some(minus_one) = names.iter().position(|name| name == MINUS_ONE)
            && words.iter().all(|name| is_from_minus_one(name))
        {
            let mut others = (0..names.len()).filter(|&at| at != minus_one && is_class[at]);
            if let (true, Some(other), None) = (is_class[minus_one], others.next(), others.next()) {
                return Err(Problem::AmbiguousLabel(names[other].clone()));
            }
            is_class[minus_one] = false;
        }
        let taken = |at: &usize| !is_class[*at] && marked[*at];
        let words = (0..names.len()).filter(taken).map(|at| (names[at].clone(), counts[at])).collect();
        let mut next = 0;
        let number: Vec<u32> = is_class
            .iter()
            .map(|&is_class| {
                next += u32::from(is_class);
                if is_class { next - 1 } else { UNLABELLED }
            })
            .collect();
        let label = |(row, &code): (usize, &u32)| match code != NONE && is_marked(row) {
            true => number[code as usize],
            false => UNLABELLED,
        };
        let labels: Vec<u32> = codes.iter().enumerate().map(label).collect();
        let names: Vec<String> =
            names.into_iter().zip(is_class).filter_map(|(name, is_class)| is_class.then_some(name)).collect();
        check_classes(&labels, &names)?;
        Ok(Labels { classes: Classes { labels, names }, words })
    }
}

/// The label that stands for "not known" among whole numbers from 0 on.
const MINUS_ONE: &str = "-1";

fn is_from_minus_one(name: &str) -> bool {
    canonical_integer(name.as_bytes()).is_some_and(|number| number >= -1)
}

/// Whether a name of a class is taken for no label when it is read: -1 is where all others are whole numbers from 0 on.
pub(crate) fn reads_as_no_label(name: &str, all: &[String]) -> bool {
    is_missing(name) || name == MINUS_ONE && all.iter().all(|name| is_from_minus_one(name))
}

/// The name under which a class is read, where that is another one.
pub(crate) fn reads_as_another(name: &str, all: &[String]) -> Option<String> {
    let spelt = whole(name).filter(|_| all.iter().all(|name| whole(name).is_some()));
    spelt.map(|number| number.to_string()).filter(|spelt| spelt != name)
}

/// The same labels with whole numbers spelt as such, where all are: tools turn `1` into `1.0` in columns with gaps.
fn whole_numbers(labels: Categories, is_word: &dyn Fn(&str) -> bool) -> Checked<Categories> {
    let all_whole = labels.all(|name| is_word(name) || whole(name).is_some());
    if !all_whole || labels.all(|name| canonical_integer(name.as_bytes()).is_some()) {
        return Ok(labels);
    }
    let Sorted { names, codes } = labels.into_names();
    let names: Vec<String> =
        names.into_iter().map(|name| whole(&name).map_or(name, |number| number.to_string())).collect();
    let mut spelt = Categories::default();
    for code in codes {
        spelt.push(names.get(code as usize).map(String::as_str))?;
    }
    Ok(spelt)
}

/// The integer that a text is, perhaps with zeros behind a point: `7`, `7.0`, `-1.00`.
fn whole(text: &str) -> Option<i64> {
    let digits = match text.split_once('.') {
        Some((digits, zeros)) if zeros.bytes().all(|byte| byte == b'0') => digits,
        Some(_) => return None,
        None => text,
    };
    canonical_integer(digits.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(names: &[&str], unknown: Option<&[&str]>) -> Checked<Labels> {
        let unknown = unknown.map(|words| words.iter().map(ToString::to_string).collect());
        let mut column = LabelColumn::new(unknown);
        names.iter().for_each(|name| column.push_name(Some(name)).unwrap());
        column.finish(None)
    }

    fn classes(names: &[&str], unknown: Option<&[&str]>) -> Vec<String> {
        read(names, unknown).unwrap().classes.names
    }

    #[test]
    fn whole_floats_are_whole_numbers_only_where_all_are() {
        let labels = read(&["-1.0", "0.0", "1.0", "", "1"], None).unwrap();
        assert_eq!(labels.classes.names, ["0", "1"]);
        assert_eq!(labels.classes.labels, [UNLABELLED, 0, 1, UNLABELLED, 1]);
        assert_eq!(labels.words, [("-1".to_string(), 1)]);
        assert_eq!(classes(&["1.0", "1.5"], None), ["1.0", "1.5"]);
        assert_eq!(classes(&["1.0", "x"], None), ["1.0", "x"]);
        assert_eq!(classes(&["1.0", "2.0", "NA"], None), ["1", "2"]);
    }

    #[test]
    fn the_user_may_say_which_labels_are_not_known() {
        let labels = read(&["NA", "a", "unknown", "b"], Some(&["unknown"])).unwrap();
        assert_eq!(labels.classes.names, ["NA", "a", "b"]);
        assert_eq!(labels.words, [("unknown".to_string(), 1)]);
        for text in [["-1", "1"], ["-1.0", "1.0"], ["-1", "0"]] {
            assert!(matches!(read(&text, None), Err(Problem::AmbiguousLabel(_))), "{text:?}");
            assert_eq!(classes(&text, Some(&["-1"])).len(), 1);
            assert_eq!(classes(&text, Some(&["NA"])).len(), 2);
        }
    }

    #[test]
    fn where_rows_without_a_label_are_marked_there_is_nothing_to_ask() {
        let mut column = LabelColumn::new(None);
        ["-1", "1", "1"].iter().for_each(|name| column.push_name(Some(name)).unwrap());
        let labels = column.finish(Some(vec![false, true, true])).unwrap();
        assert_eq!((labels.classes.labels, labels.words.len()), (vec![UNLABELLED, 0, 0], 0));
    }
}
