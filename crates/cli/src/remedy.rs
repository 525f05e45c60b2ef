//! The flags that resolve what is wrong with the files of a data set.

use progap_graph::{Error, NoColumn, Remedy};

use crate::command::experiment::shell_word;
use crate::flags::is_offered;

/// The flags that resolve what is wrong with people's files, where the command that runs has some.
pub fn flags_for(error: &Error) -> Option<String> {
    let offered = |remedy: &Remedy| {
        let (flag, said) = flag(remedy);
        (!flag.is_empty() && flag.iter().all(|flag| is_offered(flag))).then_some(said)
    };
    let said: Vec<String> = error.remedies().iter().filter_map(offered).collect();
    let (last, others) = said.split_last()?;
    Some(if others.is_empty() { last.clone() } else { format!("{} or {last}", others.join(", ")) })
}

/// The flags of a remedy, and how they are given.
fn flag(remedy: &Remedy) -> (Vec<&str>, String) {
    let one = |flag, said: String| (vec![flag], said);
    match remedy {
        Remedy::Columns(columns) => {
            (columns.iter().map(|column| column.role).collect(), named_columns(columns))
        }
        Remedy::Column("weights") => one("weights", "--weights=COLUMN".into()),
        Remedy::Column(role) => one(role, format!("--{role} COLUMN")),
        Remedy::Ids(column) => one("id", format!("--id {}", shell_word(column))),
        Remedy::Encoding(encoding) => one("encoding", format!("--encoding {encoding}")),
        Remedy::Header => one("header", "--header yes or --header no".into()),
        Remedy::Drop(column) => one("drop", format!("--drop {column}")),
        Remedy::Text(column) => one("text", format!("--text {column}:64")),
        Remedy::Categorical(column) => one("categorical", format!("--categorical {column}")),
        Remedy::DateOrder(column) => {
            one("date", format!("--date {column}:day-first or --date {column}:month-first"))
        }
        Remedy::Declared => one(
            "columns",
            "--drop, --keep, --number, --categorical, --date, --text, --bounds, or the file of --columns"
                .into(),
        ),
        Remedy::Unknown => one("unknown", "--unknown -1, or --unknown NA where -1 is a class".into()),
        Remedy::NoWeights => one("weights", "--weights".into()),
        Remedy::WeightBound => one("weight-bound", "--weight-bound MAX".into()),
        Remedy::Array(role) => one("array", format!("--array {role}=NAME")),
        Remedy::Split => one("mask", "--mask N".into()),
        Remedy::EdgeFile => one("edges", "--edges FILE".into()),
        Remedy::LabelFile => one("labels", "--labels FILE".into()),
        Remedy::Fetch(name) => {
            one("data-dir", format!("`progap data fetch {name}`; --data-dir DIR, or PROGAP_DATA"))
        }
        Remedy::Names => one("data-dir", "`progap data list`".into()),
        _ => (vec![], String::new()),
    }
}

/// The flags that name columns which are not there, each with the likeliest one; and others that may be meant.
fn named_columns(missing: &[NoColumn]) -> String {
    let flag = |column: &NoColumn| {
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
