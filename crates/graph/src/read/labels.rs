//! Label numbers as people's arrays hold them, turned into classes.

use crate::{Place, Problem, Result, UNLABELLED, room};

/// The class of each node (or that it has none), and the name of each class.
#[derive(Debug, PartialEq)]
pub(crate) struct Classes {
    pub(crate) labels: Vec<u32>,
    pub(crate) names: Vec<String>,
}

/// The number that stands for a label that is not known.
pub(crate) const MISSING: i64 = -1;

/// Classes from label numbers: the numbers that occur, ascending, each with its number as its name. [`MISSING`] is no
/// class.
///
/// Any other negative number is an error, at `place(position)`.
pub(crate) fn classes_that_occur(numbers: &[i64], place: impl Fn(u64) -> Place) -> Result<Classes> {
    let mut distinct = room::copy(numbers)?;
    distinct.sort_unstable();
    distinct.dedup();
    distinct.retain(|&number| number != MISSING);
    let largest = distinct.last().copied().unwrap_or(-1);
    if distinct.is_empty() {
        return Err(Problem::Empty("classes").into());
    }
    check_range(numbers, u64::try_from(largest).map_or(0, |l| l + 1), &place)?;
    let class_of = |number: &i64| distinct.partition_point(|other| other < number) as u32;
    let labels = if largest.checked_add(1) == Some(distinct.len() as i64) {
        // The numbers are 0, 1, 2 and so on without a gap; this many nodes fit 32 bits, so do their labels.
        collect(numbers, |&number| number as u32)?
    } else {
        collect(numbers, class_of)?
    };
    Ok(Classes { labels, names: distinct.iter().map(i64::to_string).collect() })
}

/// Classes from label numbers that are positions in a list of names.
pub(crate) fn classes_with_names(
    numbers: &[i64],
    names: Vec<String>,
    place: impl Fn(u64) -> Place,
) -> Result<Classes> {
    check_range(numbers, names.len() as u64, &place)?;
    Ok(Classes { labels: collect(numbers, |&number| number as u32)?, names })
}

fn collect(numbers: &[i64], class_of: impl Fn(&i64) -> u32) -> Result<Vec<u32>> {
    let mut labels = room::with_room(numbers.len())?;
    let label = |number: &i64| if *number == MISSING { UNLABELLED } else { class_of(number) };
    labels.extend(numbers.iter().map(label));
    Ok(labels)
}

fn check_range(numbers: &[i64], classes: u64, place: &impl Fn(u64) -> Place) -> Result<()> {
    let is_wrong = |number: i64| number != MISSING && u64::try_from(number).map_or(true, |n| n >= classes);
    match numbers.iter().position(|&number| is_wrong(number)) {
        None => Ok(()),
        Some(at) => {
            let missing = if numbers[at] < 0 { " (-1 is a missing label)" } else { "" };
            let label = format!("{}{missing}", numbers[at]);
            Err(Problem::LabelOutOfRange { label, classes }.at(place(at as u64)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_occur_become_classes() {
        let classes = classes_that_occur(&[7, 3, 7, i64::MAX], Place::Node).unwrap();
        assert_eq!(
            (classes.labels, classes.names),
            (vec![1, 0, 1, 2], ["3", "7", "9223372036854775807"].map(String::from).to_vec())
        );
        let plain = classes_that_occur(&[1, 0, 2], Place::Node).unwrap();
        assert_eq!((plain.labels, plain.names.len()), (vec![1, 0, 2], 3));
        let some = classes_that_occur(&[1, -1, 0, -1], Place::Node).unwrap();
        assert_eq!((some.labels, some.names.len()), (vec![1, UNLABELLED, 0, UNLABELLED], 2));
        let wrong = classes_that_occur(&[1, 0, -2], Place::Node).unwrap_err();
        assert_eq!(wrong.place(), Some(&Place::Node(2)));
        assert!(wrong.to_string().contains("-2 (-1 is a missing label) is outside 0..2"), "{wrong}");
        assert!(classes_that_occur(&[-3], Place::Node).is_err());
        assert!(classes_that_occur(&[-1, -1], Place::Node).is_err(), "no class at all");
    }

    #[test]
    fn named_classes_may_be_empty_but_not_exceeded() {
        let names = vec!["a".to_string(), "b".to_string()];
        assert_eq!(classes_with_names(&[1, 1], names.clone(), Place::Node).unwrap().names, names);
        assert!(classes_with_names(&[1, 2], names, Place::Node).is_err());
    }
}
