//! Which flags resolve what is wrong with the files of a data set.

use progap_graph::{Error, NoColumn, NoColumns, Place, Problem};

use crate::command::experiment::shell_word;

/// The flags that resolve what is wrong with people's files, where some do: the library knows no flags.
pub fn flags_for(error: &Error) -> Option<String> {
    let column = match error.place() {
        Some(Place::Cell { column, .. } | Place::Value { column, .. } | Place::Column(column)) => {
            Some(column.as_str())
        }
        _ => None,
    };
    match (error.problem(), column) {
        (Problem::NoColumns(tables), _) => Some(flags_for_columns(tables)),
        (Problem::OtherIds { column, .. }, _) => Some(format!("--id {}", shell_word(column))),
        (Problem::Encoding(encoding), _) => Some(format!("--encoding {encoding}")),
        (Problem::Header(_), _) => Some("--header yes or --header no".into()),
        (Problem::NearlyUnique { .. }, Some(column)) => {
            Some(format!("--drop {column}, --text {column}:64 or --categorical {column}"))
        }
        (Problem::NotANumber(_) | Problem::NotADate(_) | Problem::DressedNumber(_), Some(column)) => {
            Some(format!("--categorical {column} or --drop {column}"))
        }
        (Problem::AmbiguousLabel(_), _) => Some("--unknown -1, or --unknown NA where -1 is a class".into()),
        (Problem::NoClasses { .. }, Some(_)) => Some("--label COLUMN".into()),
        (Problem::NoClasses { .. }, None) => Some("--array labels=NAME".into()),
        (Problem::AmbiguousDate(_), Some(column)) => {
            Some(format!("--date {column}:day-first or --date {column}:month-first"))
        }
        (Problem::TextAsWeight(_), _) => Some("--weights".into()),
        (Problem::UnlistedCategory(_), _) => Some("the file of --columns".into()),
        (Problem::Unsupported(_), Some(column)) => Some(format!("--drop {column}")),
        (Problem::Missing { what, .. }, _) if what.starts_with("data set ") => {
            let name = what.split(' ').nth(2).unwrap_or("NAME");
            Some(format!("`progap data fetch {name}`; --data-dir DIR, or PROGAP_DATA"))
        }
        (Problem::Missing { what, .. }, _) => what
            .starts_with("split column")
            .then(|| "--split COLUMN".to_string())
            .or_else(|| what.starts_with("weights column").then(|| "--weights=COLUMN".into()))
            .or_else(|| {
                let said = "--drop, --keep, --number, --categorical, --date, --text, --bounds, or the file of --columns";
                what.starts_with("column \"").then(|| said.into())
            })
            .or_else(|| {
                let of_array =
                    |(mark, role): &(&str, &str)| what.contains(mark).then(|| format!("--array {role}=NAME"));
                let roles = [("\"y\"", "labels"), ("\"x\"", "features"), ("\"edge_index\"", "edges")];
                let named = |role: &&str| what.ends_with(&format!("({role})"));
                let by_name = ["labels", "features", "edges", "train", "val", "test"].into_iter().find(named);
                let by_name = by_name.map(|role| format!("--array {role}=NAME"));
                roles.iter().find_map(of_array).or(by_name).filter(|_| what.starts_with("array"))
            }),
        (Problem::Invalid(text), _) if text.starts_with("there is no split") => Some("--mask N".into()),
        (Problem::NotAWeight(_), _) => Some("--weight-bound MAX".into()),
        (Problem::NoEdgeTable, _) => Some("--edges FILE".into()),
        (Problem::NoLabelFile, _) => Some("--labels FILE".into()),
        _ => None,
    }
}

/// The flags that name columns which are not there, each with the likeliest one; and others that may be meant.
fn flags_for_columns(tables: &[NoColumns]) -> String {
    let missing: Vec<&NoColumn> = tables.iter().flat_map(|table| &table.missing).collect();
    let flag = |column: &&NoColumn| {
        let likely = column.likely.first().map_or_else(|| "COLUMN".to_string(), |name| shell_word(name));
        format!("--{} {likely}", column.role)
    };
    let flags: Vec<String> = missing.iter().map(flag).collect();
    let others: Vec<&str> =
        missing.iter().flat_map(|column| column.likely.iter().skip(1)).map(String::as_str).collect();
    match others.is_empty() {
        true => flags.join(" "),
        false => format!("{}, or another column such as {}", flags.join(" "), others.join(", ")),
    }
}
