//! Label numbers as people's arrays hold them, turned into classes.

use crate::{Place, Problem, Result, UNLABELLED, room};

/// The class of each node (or that it has none), and the name of each class.
#[derive(Debug, PartialEq)]
pub(crate) struct Classes {
    pub(crate) labels: Vec<u32>,
    pub(crate) names: Vec<String>,
}

/// The number that stands for a label that is not known, whatever the array holds.
pub(crate) const MISSING: i64 = i64::MIN;

/// Classes from label numbers: the numbers that occur, ascending, each with its number as its name. [`MISSING`] is no
/// class, and neither is what `unknown` lists; where it lists nothing, -1 is no class and any other negative number an
/// error, at `place(position)`.
pub(crate) fn classes_that_occur(
    numbers: &mut [i64],
    unknown: Option<&[String]>,
    place: impl Fn(u64) -> Place,
) -> Result<Classes> {
    if let Some(listed) = unknown {
        let listed: Vec<i64> = listed.iter().filter_map(|text| text.trim().parse().ok()).collect();
        set_missing(numbers, |number| listed.contains(&number));
    }
    let mut distinct = room::copy(numbers)?;
    distinct.sort_unstable();
    distinct.dedup();
    distinct.retain(|&number| number != MISSING);
    if unknown.is_none() {
        if let [-1, other] = distinct[..]
            && other >= 0
        {
            return Err(Problem::AmbiguousLabel(other.to_string()).into());
        }
        distinct.retain(|&number| number != -1);
        set_missing(numbers, |number| number == -1);
        let classes = distinct.last().map_or(0, |&largest| u64::try_from(largest).map_or(0, |l| l + 1));
        if distinct.first().is_some_and(|&least| least < 0) {
            check_range(numbers, classes, &place)?;
        }
    }
    let class_of = |number: &i64| distinct.partition_point(|other| other < number) as u32;
    let from_zero = distinct.first() == Some(&0);
    let labels = if from_zero && distinct.last().map(|l| l + 1) == Some(distinct.len() as i64) {
        // The numbers are 0, 1, 2 and so on without a gap; this many nodes fit 32 bits, so do their labels.
        collect(numbers, |&number| number as u32)?
    } else {
        collect(numbers, class_of)?
    };
    let names: Vec<String> = distinct.iter().map(i64::to_string).collect();
    check_classes(&labels, &names)?;
    Ok(Classes { labels, names })
}

fn set_missing(numbers: &mut [i64], is_unknown: impl Fn(i64) -> bool) {
    numbers.iter_mut().filter(|number| is_unknown(**number)).for_each(|number| *number = MISSING);
}

/// A label with fewer different values than this may be a class.
const MIN_VALUES: usize = 20;
/// Fewer labelled nodes than this may have a class each, where classes are no fractions.
const MIN_LABELLED: usize = 100;

/// Whether labels are classes: there is one, and they are not measurements or names, of which nearly every node has its
/// own.
///
/// The quantities that decide are public at every level: the list of classes and the number of labelled nodes.
pub(crate) fn check_classes(labels: &[u32], names: &[String]) -> std::result::Result<(), Problem> {
    if names.is_empty() {
        return Err(Problem::Empty("classes"));
    }
    if names.len() < MIN_VALUES {
        return Ok(());
    }
    let number = |name: &String| name.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let numbers: Option<Vec<f64>> = names.iter().map(number).collect();
    let fractions = numbers.is_some_and(|numbers| numbers.iter().any(|number| number.fract() != 0.0));
    let labelled = labels.iter().filter(|&&label| label != UNLABELLED).count();
    let unique = match fractions {
        true => 2 * names.len() > labelled,
        false => labelled >= MIN_LABELLED && 10 * names.len() > 9 * labelled,
    };
    match unique {
        true => Err(Problem::NoClasses { values: names.len() as u64, nodes: labelled as u64 }),
        false => Ok(()),
    }
}

/// Classes from label numbers that are positions in a list of names; -1 is no position.
pub(crate) fn classes_with_names(
    numbers: &mut [i64],
    names: Vec<String>,
    place: impl Fn(u64) -> Place,
) -> Result<Classes> {
    set_missing(numbers, |number| number == -1);
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

    fn of(numbers: &[i64]) -> Result<Classes> {
        classes_that_occur(&mut numbers.to_vec(), None, Place::Node)
    }

    #[test]
    fn numbers_that_occur_become_classes() {
        let classes = of(&[7, 3, 7, i64::MAX]).unwrap();
        assert_eq!(
            (classes.labels, classes.names),
            (vec![1, 0, 1, 2], ["3", "7", "9223372036854775807"].map(String::from).to_vec())
        );
        let plain = of(&[1, 0, 2]).unwrap();
        assert_eq!((plain.labels, plain.names.len()), (vec![1, 0, 2], 3));
        let some = of(&[1, -1, 0, MISSING]).unwrap();
        assert_eq!((some.labels, some.names.len()), (vec![1, UNLABELLED, 0, UNLABELLED], 2));
        let wrong = of(&[1, 0, -2]).unwrap_err();
        assert_eq!(wrong.place(), Some(&Place::Node(2)));
        assert!(wrong.to_string().contains("-2 (-1 is a missing label) is outside 0..2"), "{wrong}");
        assert!(of(&[-3]).is_err());
        assert!(of(&[-1, -1]).is_err(), "no class at all");
    }

    #[test]
    fn minus_one_beside_one_number_is_asked_about() {
        assert!(matches!(of(&[-1, 1, -1]).unwrap_err().problem(), Problem::AmbiguousLabel(_)));
        let with = |unknown: &str| {
            let classes = classes_that_occur(&mut [-1, 1, 1], Some(&[unknown.to_string()]), Place::Node);
            classes.map(|classes| (classes.labels, classes.names)).unwrap()
        };
        assert_eq!(with("-1"), (vec![UNLABELLED, 0, 0], vec!["1".into()]));
        assert_eq!(with("NA"), (vec![0, 1, 1], vec!["-1".into(), "1".into()]));
    }

    #[test]
    fn measurements_and_names_are_no_classes() {
        let check = |labelled: u32, values: u32, name: &dyn Fn(u32) -> String| {
            let labels: Vec<u32> = (0..labelled).map(|node| node % values).chain([UNLABELLED; 50]).collect();
            check_classes(&labels, &(0..values).map(name).collect::<Vec<_>>()).is_ok()
        };
        let fraction = |at: u32| format!("{at}.25");
        let text = |at: u32| format!("name {at}");
        assert!(!check(800, 796, &fraction) && !check(30, 20, &fraction));
        assert!(check(800, 10, &fraction) && check(800, 400, &fraction));
        assert!(!check(800, 796, &text) && check(800, 400, &text));
        assert!(check(60, 60, &text), "one labelled node for each class");
    }

    #[test]
    fn named_classes_may_be_empty_but_not_exceeded() {
        let names = vec!["a".to_string(), "b".to_string()];
        let classes = classes_with_names(&mut [1, -1], names.clone(), Place::Node).unwrap();
        assert_eq!((classes.names, classes.labels), (names.clone(), vec![1, UNLABELLED]));
        assert!(classes_with_names(&mut [1, 2], names, Place::Node).is_err());
    }
}
