//! Choices about the columns of a node table: a file, and flags for the most frequent ones.

use std::path::Path;

use clap::Args;
use progap_formats::read::Described;
use progap_formats::read::columns::{Bound, ColumnChoices, ColumnKind, DateOrder};
use serde::{Deserialize, Serialize};

/// The choices. The file is read when the command line is, so that a run keeps what it says and not where it lies.
#[derive(Args, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Columns {
    /// What columns are, in TOML: [columns.age] as = "number", bounds = [0, 120]
    #[arg(long, value_name = "FILE", value_parser = read_file, help_heading = "Data")]
    #[serde(rename = "choices", skip_serializing_if = "Option::is_none")]
    columns: Option<ColumnChoices>,
    /// Columns to ignore
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drop: Vec<String>,
    /// The only columns that become features
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    keep: Vec<String>,
    /// Columns that are numbers: anything else in them is an error
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    number: Vec<String>,
    /// Columns that are dates, such as 2024-02-29; they become days
    ///
    /// `:day-first` or `:month-first` behind the name says how 03/04/2024 is read.
    #[arg(long, value_name = "COLUMN[:ORDER]", value_delimiter = ',', help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    date: Vec<String>,
    /// Columns of text, whose words are hashed to N features [default: 64]
    #[arg(long, value_name = "COLUMN[:N]", value_delimiter = ',', help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    text: Vec<String>,
    /// Public bounds of a number or date column; at node level they bring values to scale
    ///
    /// On a scale of logarithms where bounds are positive and far apart, unless `:linear` or `:log` follows.
    #[arg(long, value_name = "COLUMN=LOW:HIGH", allow_hyphen_values = true, help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bounds: Vec<String>,
    /// Maximum number of categories of a column; the rest become one, "other"
    #[arg(long, value_name = "N", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    max_categories: Option<usize>,
    /// Labels that are not known, in place of NA, NaN, null, None and -1
    ///
    /// Without it these, N/A and ? stand for it, and -1 among whole numbers from 0 on.
    #[arg(
        long,
        value_name = "LABELS",
        value_delimiter = ',',
        allow_hyphen_values = true,
        help_heading = "Data"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown: Vec<String>,
    /// Use numbers as they are, in whatever unit they have
    #[arg(long, help_heading = "Data")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unscaled: bool,
}

impl Columns {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Columns::default()
    }

    /// Leaves a column out of the features.
    pub fn leave_out(&mut self, name: &str) {
        self.drop.push(name.to_owned());
    }

    /// A flag that changes nothing of this data, and why. Which columns there are is public, and so is what they hold.
    pub fn without_effect(&self, described: &Described) -> Option<(&'static str, &'static str)> {
        if self.unscaled && described.dataset.numbers().is_empty() {
            return Some(("--unscaled", "the data has no number columns in a unit of their own"));
        }
        let no_table = described.columns.is_empty();
        (self.max_categories.is_some() && no_table)
            .then_some(("--max-categories", "only columns of a table have categories"))
    }

    /// Everything that is said, flags over file.
    pub fn choices(&self) -> Result<ColumnChoices, String> {
        self.one_kind_each()?;
        let mut choices = self.columns.clone().unwrap_or_default();
        choices.drop.extend(self.drop.iter().cloned());
        choices.keep.extend(self.keep.iter().cloned());
        choices.max_categories = self.max_categories.or(choices.max_categories);
        if !self.unknown.is_empty() {
            choices.unknown = Some(self.unknown.clone());
        }
        for name in &self.number {
            choices.column(name).kind = Some(ColumnKind::Number);
        }
        for text in &self.date {
            let ordered =
                text.rsplit_once(':').and_then(|(name, order)| Some((name, DateOrder::from_name(order)?)));
            let (name, order) = ordered.map_or((text.as_str(), None), |(name, order)| (name, Some(order)));
            let column = choices.column(name);
            column.kind = Some(ColumnKind::Date);
            column.order = order.or(column.order);
        }
        for text in &self.text {
            let (name, width) = match text.rsplit_once(':') {
                Some((name, width)) => (name, Some(width.parse().map_err(|_| bad_width(text))?)),
                None => (text.as_str(), None),
            };
            let column = choices.column(name);
            column.kind = Some(ColumnKind::Text);
            column.width = width.or(column.width);
        }
        for text in &self.bounds {
            let (name, bounds) = text.rsplit_once('=').ok_or_else(|| bad_bounds(text))?;
            let (bounds, log) = parse_bounds(bounds).ok_or_else(|| bad_bounds(text))?;
            let column = choices.column(name);
            column.bounds = Some(bounds);
            column.log = log.or(column.log);
        }
        Ok(choices)
    }

    /// Refuses flags that say two things of one column.
    fn one_kind_each(&self) -> Result<(), String> {
        let name = |text: &String| text.rsplit_once(':').map_or(text.clone(), |(name, _)| name.into());
        let kinds = [
            ("drop", self.drop.clone()),
            ("number", self.number.clone()),
            ("date", self.date.iter().map(name).collect()),
            ("text", self.text.iter().map(name).collect()),
        ];
        for (at, (one, columns)) in kinds.iter().enumerate() {
            for (other, others) in &kinds[at + 1..] {
                if let Some(both) = columns.iter().find(|column| others.contains(column)) {
                    return Err(format!(
                        "--{one} {both} and --{other} {both} contradict each other: give one of them"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The flags that say all of it, as one would type them; none where a file or a map says it.
    pub fn as_arguments(&self) -> Vec<String> {
        let list = |name: &str, values: &[String]| {
            (!values.is_empty()).then(|| [format!("--{name}"), values.join(",")])
        };
        let lists = [
            list("drop", &self.drop),
            list("keep", &self.keep),
            list("number", &self.number),
            list("date", &self.date),
            list("text", &self.text),
            list("unknown", &self.unknown),
        ];
        let bounds = self.bounds.iter().map(|bounds| ["--bounds".to_string(), bounds.clone()]);
        let most = self.max_categories.map(|most| ["--max-categories".to_string(), most.to_string()]);
        let mut all: Vec<String> = lists.into_iter().flatten().chain(bounds).chain(most).flatten().collect();
        all.extend(
            self.columns.as_ref().map(|_| ["--columns".to_string(), "FILE".into()]).into_iter().flatten(),
        );
        all.extend(self.unscaled.then(|| "--unscaled".to_string()));
        all
    }
}

fn bad_width(text: &str) -> String {
    format!("--text {text}: give a column and perhaps a number of features, such as bio:64")
}

fn bad_bounds(text: &str) -> String {
    format!(
        "--bounds {text}: give a column and its smallest and largest value, such as age=0:120 or price=1:100000:log"
    )
}

/// Two numbers, or two dates: `0:120`, `2010-01-01:2020-12-31`; perhaps whether logarithms are taken: `1:100000:log`.
fn parse_bounds(text: &str) -> Option<([Bound; 2], Option<bool>)> {
    let (low, high) = text.split_once(':')?;
    let (high, log) = match high.rsplit_once(':') {
        Some((high, "log")) => (high, Some(true)),
        Some((high, "linear")) => (high, Some(false)),
        Some((_, other)) if other.chars().all(char::is_alphabetic) => return None,
        _ => (high, None),
    };
    let bound = |text: &str| match text.trim().parse::<f64>() {
        Ok(number) => Bound::Number(number),
        Err(_) => Bound::Date(text.trim().into()),
    };
    Some(([bound(low), bound(high)], log))
}

fn read_file(path: &str) -> Result<ColumnChoices, String> {
    let text = std::fs::read_to_string(Path::new(path)).map_err(|e| format!("{path}: {e}"))?;
    // One sentence: without the excerpt that the parser shows.
    toml::from_str(&text).map_err(|e| match e.span() {
        Some(span) => {
            let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
            format!("{path}: line {line}: {}", e.message())
        }
        None => format!("{path}: {}", e.message()),
    })
}
