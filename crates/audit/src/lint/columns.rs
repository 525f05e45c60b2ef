//! Columns of a table that are declared, and those that are not.

use progap_graph::{Dataset, InferenceKind, NumberColumn, Preparation};
use rayon::prelude::*;

use super::{Remark, note, warning};
use progap::error::Remedy;
use progap::settings::{Level, Settings};

/// Names that are listed; of the others the number is.
const LISTED: usize = 5;
/// Bounds that more than one in this many values lies beyond are likely to be a mistake.
const FEW_BEYOND: usize = 100;

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names[..names.len().min(LISTED)].join(", ") + &more
}

fn name(dataset: &Dataset, number: &NumberColumn) -> String {
    match dataset.feature_names().get(number.column as usize) {
        Some(name) => format!("{name:?}"),
        None => number.column.to_string(),
    }
}

/// Number columns that node level can bring to scale only blindly.
pub(super) fn no_bounds(dataset: &Dataset, settings: &Settings, remarks: &mut Vec<Remark>) {
    let how = match settings.preparation() {
        Preparation::Standardise => return,
        Preparation::Declared => {
            "noisy counts, a small part of the budget, find their scale; public bounds cost nothing"
        }
        Preparation::RowByRow => {
            "at node level nothing may be computed over rows, so each value v becomes sign(v) log2(1 + |v|); public \
             bounds \
             keep more of it"
        }
    };
    let open = dataset.numbers().iter().filter(|number| number.is_open());
    let names: Vec<String> = open.map(|number| name(dataset, number)).collect();
    if !names.is_empty() {
        let text = format!("no bounds are declared for the number columns {}: {how}", listed(&names));
        remarks.push(note("no-bounds", text).remedy(Remedy::set("bounds", "COLUMN=LOW:HIGH")));
    }
}

/// Columns that were left out, as all their values are different. Where rows are private, training asks.
pub(super) fn left_out(dataset: &Dataset, settings: &Settings, remarks: &mut Vec<Remark>) {
    let found = dataset.undeclared().iter().filter(|undeclared| undeclared.what == InferenceKind::Distinct);
    let columns: Vec<&str> = found.map(|undeclared| undeclared.column.as_str()).collect();
    let Some(first) = columns.first().filter(|_| settings.level != Level::Node) else { return };
    let names: Vec<String> = columns.iter().map(|column| format!("{column:?}")).collect();
    let text = format!(
        "left out, as all values are different and look like ids: {}; if they are amounts or words, declare it",
        listed(&names)
    );
    let remedies =
        ["number", "categorical", "text", "drop"].map(|name| Remedy::set(name, (*first).to_string()));
    remarks.push(remedies.into_iter().fold(note("left-out", text), Remark::remedy));
}

/// Facts about columns that were read off private rows, as nobody declared them.
pub(super) fn undeclared(dataset: &Dataset, settings: &Settings, remarks: &mut Vec<Remark>) {
    if settings.level != Level::Node {
        return;
    }
    let names = |wanted: fn(InferenceKind) -> bool| -> Vec<String> {
        let found = dataset.undeclared().iter().filter(|undeclared| wanted(undeclared.what));
        found.map(|undeclared| format!("{:?}", undeclared.column)).collect()
    };
    let categories = names(|what| matches!(what, InferenceKind::Categories | InferenceKind::MostFrequent));
    if !categories.is_empty() {
        remarks.push(note(
            "no-categories",
            format!(
                "nobody declared the categories of {}: they were read off the rows, and the statement takes them as \
                 public",
                listed(&categories)
            ),
        )
        .remedy(Remedy::words("declare `categories = [...]` in the file of columns")));
    }
    let missing = names(|what| what == InferenceKind::Missing);
    if !missing.is_empty() {
        remarks.push(note(
            "no-missing",
            format!(
                "nobody declared whether values of {} may be missing: it was read off the rows, and the statement \
                 takes it as \
                 public",
                listed(&missing)
            ),
        )
        .remedy(Remedy::words("declare `missing = true` or `false` in the file of columns")));
    }
}

/// Values beyond the bounds that are declared. Where rows are private, so is their number: nothing is said.
pub(super) fn beyond_bounds(dataset: &Dataset, settings: &Settings, remarks: &mut Vec<Remark>) {
    let is_bounded = |number: &&NumberColumn| number.bounds.is_some() && number.map.is_none();
    let bounded: Vec<&NumberColumn> = dataset.numbers().iter().filter(is_bounded).collect();
    if settings.level == Level::Node || bounded.is_empty() {
        return;
    }
    let mut likely_wrong = false;
    let mut texts = Vec::new();
    for (number, Count { beyond, known }) in bounded.iter().zip(count_beyond(dataset, &bounded)) {
        let Some([low, high]) = number.bounds.filter(|_| beyond > 0) else { continue };
        likely_wrong |= beyond * FEW_BEYOND > known;
        texts.push(format!("{beyond} of {known} values of {} ({low} to {high})", name(dataset, number)));
    }
    if !texts.is_empty() {
        let text = format!("beyond the declared bounds, and brought to them, are {}", listed(&texts));
        let remark = if likely_wrong { warning } else { note };
        remarks.push(remark("beyond-bounds", text));
    }
}

#[derive(Clone, Copy, Default)]
struct Count {
    beyond: usize,
    known: usize,
}

/// For each column, how many of its values lie beyond its bounds, and how many there are.
fn count_beyond(dataset: &Dataset, bounded: &[&NumberColumn]) -> Vec<Count> {
    let add = |mut counts: Vec<Count>, node: usize| {
        let row: Vec<(usize, f32)> = dataset.features().row(node).collect();
        let value = |column: u32| {
            let found = row.binary_search_by_key(&(column as usize), |entry| entry.0);
            found.map_or(0.0, |at| f64::from(row[at].1))
        };
        for (number, count) in bounded.iter().zip(&mut counts) {
            if number.missing.is_some_and(|missing| value(missing) != 0.0) {
                continue;
            }
            let value = value(number.column);
            let beyond = number.bounds.is_some_and(|[low, high]| value < low || value > high);
            count.beyond += usize::from(beyond);
            count.known += 1;
        }
        counts
    };
    let none = || vec![Count::default(); bounded.len()];
    let both = |a: Vec<Count>, b: Vec<Count>| {
        let sum = |(a, b): (Count, Count)| Count { beyond: a.beyond + b.beyond, known: a.known + b.known };
        a.into_iter().zip(b).map(sum).collect()
    };
    (0..dataset.nodes()).into_par_iter().fold(none, add).reduce(none, both)
}

#[cfg(test)]
mod tests {
    use progap_formats::read::columns::Bound;
    use progap_formats::read::{LoadOptions, table};

    use super::super::lint;
    use super::*;
    use progap::settings::MethodKind;

    fn found(options: &LoadOptions, level: Level, code: &str) -> Option<String> {
        let mut nodes = String::from("id,label,town,age,split\n");
        for node in 0..60usize {
            let age = if node == 7 { String::new() } else { (node + 61).to_string() };
            let town = ["Ayr", "Bath"][node / 5 % 2];
            let part = ["train", "train", "val", "test"][node % 4];
            nodes += &format!("{node},{},{town},{age},{part}\n", ["x", "y"][node / 2 % 2]);
        }
        let edges = ("edges.csv", &b"source,target\n0,1\n"[..]);
        let data = table::read_bytes(("nodes.csv", nodes.as_bytes()), edges, options).expect("a data set");
        let remarks = lint(&data, &Settings::of(MethodKind::ProgapLabels, level), &[]);
        remarks.into_iter().find(|remark| remark.code == code).map(|remark| remark.text)
    }

    #[test]
    fn what_is_read_off_private_rows_is_found() {
        let mut options = LoadOptions::default();
        for level in [Level::None, Level::Edge] {
            assert_eq!(
                found(&options, level, "no-categories").or(found(&options, level, "no-missing")),
                None
            );
        }
        let text = found(&options, Level::Node, "no-categories").expect("found");
        assert!(
            text.contains("the categories of \"town\"") && text.contains("takes them as public"),
            "{text}"
        );
        let text = found(&options, Level::Node, "no-missing").expect("found");
        assert!(text.contains("whether values of \"age\" may be missing"), "{text}");
        options.columns.column("town").categories = Some(["Ayr", "Bath"].map(String::from).to_vec());
        options.columns.column("age").missing = Some(true);
        assert_eq!(
            found(&options, Level::Node, "no-categories").or(found(&options, Level::Node, "no-missing")),
            None
        );
    }

    #[test]
    fn values_beyond_bounds_are_counted_where_rows_are_public() {
        let mut options = LoadOptions::default();
        options.columns.column("age").bounds = Some([Bound::Number(0.0), Bound::Number(100.0)]);
        for level in [Level::None, Level::Edge] {
            let text = found(&options, level, "beyond-bounds").expect("found");
            assert!(text.ends_with("20 of 59 values of \"age\" (0 to 100)"), "{text}");
        }
        assert_eq!(found(&options, Level::Node, "beyond-bounds"), None, "their number is private");
        options.columns.column("age").bounds = Some([Bound::Number(61.0), Bound::Number(120.0)]);
        assert_eq!(found(&options, Level::Edge, "beyond-bounds"), None);
    }
}
