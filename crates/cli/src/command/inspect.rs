//! `progap inspect`: a data set in figures.

use std::path::Path;

use clap::Args;
use progap::{Release, release};
use progap_formats::read::Described;
use progap_formats::read::columns::ColumnReport;
use progap_graph::summary::{Quantiles, Summary};
use progap_graph::{InferenceKind, Place, Problem};
use serde::Serialize;

use super::Outcome;
use super::experiment::shell_word;
use crate::remedy::flags_for;
use crate::source::DataSource;
use crate::ui::{self, bytes, count, percent};

/// Show a data set in figures (nodes, edges, classes, degrees, homophily, split), or what a release guarantees
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap inspect demo
  progap inspect fb:Berkeley13 --data-dir ~/data
  progap inspect nodes.csv --edges edges.csv --label diagnosis --undirected
  progap inspect graph.npz --json | jq .edges
  progap inspect releases/demo-edge-1     # the guarantee of a release, in plain words")]
pub struct Inspect {
    #[command(flatten)]
    source: DataSource,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

impl Inspect {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        if let Some(release) = self.source.release() {
            return show_release(&release, self.json);
        }
        let Described { dataset, columns } = {
            let _spinner = ui::spinner(format!("loading {}", self.source.name()));
            describe(self.source)?
        };
        let summary = Summary::of(&dataset);
        if self.json {
            return ui::print(&serde_json::to_string_pretty(&Inspected { summary, columns })?);
        }
        let columns =
            if columns.is_empty() { String::new() } else { format!("\n\n{}", column_table(&columns)) };
        ui::print(&format!("{}{columns}", table(&summary)))
    }
}

/// The data set and its columns. Columns that training refuses are left out of it, and the list says what to do about
/// them.
fn describe(mut source: DataSource) -> progap_graph::Result<Described> {
    let mut refused: Vec<(String, u64, String)> = Vec::new();
    loop {
        let error = match source.describe_split() {
            Ok(mut described) => {
                for (name, values, remedy) in refused {
                    if let Some(column) = described.columns.iter_mut().find(|column| column.name == name) {
                        column.kind = "refused";
                        column.categories = Some(values as usize);
                        column.note = Some(format!("nearly one value for each node; choose {remedy}"));
                    }
                }
                return Ok(described);
            }
            Err(error) => error,
        };
        match (error.problem(), error.place(), flags_for(&error)) {
            (Problem::NearlyUnique { values, .. }, Some(Place::Column(name)), Some(remedy)) => {
                refused.push((name.clone(), *values, remedy));
                source.columns.leave_out(name);
            }
            _ => return Err(error),
        }
    }
}

/// The object that `--json` prints.
#[derive(Serialize)]
struct Inspected {
    #[serde(flatten)]
    summary: Summary,
    /// The columns of a node table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    columns: Vec<ColumnReport>,
}

/// Every column of a node table: what it was taken for, and what it becomes.
fn column_table(columns: &[ColumnReport]) -> String {
    let values = |column: &ColumnReport| match (column.range, column.categories) {
        (Some([low, high]), _) if column.kind == "date" => format!("{} to {}", day(low), day(high)),
        (Some([low, high]), _) => format!("{} to {}", short(low), short(high)),
        (_, Some(1)) => "1 value".into(),
        (_, Some(values)) => format!("{} values", count(values)),
        _ => String::new(),
    };
    let becomes = |column: &ColumnReport| {
        let features = match column.features {
            0 => String::new(),
            1 => "1 feature".into(),
            2 if column.missing > 0 && column.range.is_some() => "1 feature and 1 for missing".into(),
            features => format!("{} features", count(features)),
        };
        match &column.note {
            Some(note) if column.read_off == Some(InferenceKind::Distinct) => {
                let name = shell_word(&column.name);
                format!("{note}; --drop {name} settles it, --number, --categorical or --text {name} uses it")
            }
            Some(note) if features.is_empty() => note.clone(),
            Some(note) => format!("{features}: {note}"),
            None => features,
        }
    };
    let missing = |column: &ColumnReport| match column.missing {
        0 => String::new(),
        missing => count(missing),
    };
    let row = |column: &ColumnReport| {
        [column.name.clone(), column.kind.into(), missing(column), values(column), becomes(column)]
    };
    ui::table(["column", "taken for", "missing", "values", "becomes"], columns.iter().map(row))
}

/// A number in a few digits.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        1e-3..1e9 => format!("{}", (value * 1e3).round() / 1e3),
        _ => format!("{value:.3e}"),
    }
}

/// The date of a day since 2000-01-01.
fn day(days: f64) -> String {
    let days = days.floor() as i64 + 730_119;
    // Whole cycles of 400 years, then of 100, of 4 and single years.
    let (cycle, days) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let century = (days / 36_524).min(3);
    let days = days - century * 36_524;
    let (four, days) = (days / 1461, days % 1461);
    let single = (days / 365).min(3);
    let year = cycle * 400 + century * 100 + four * 4 + single + 1;
    let mut days = days - single * 365;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    format!("{year:04}-{:02}-{:02}", month + 1, days + 1)
}

/// The guarantee of a release, in words that can be quoted, and what it rests on.
fn show_release(folder: &Path, json: bool) -> Outcome {
    let release = Release::open(folder)?;
    let (statement, metrics) = (&release.statement, &release.metrics);
    if json {
        return ui::print(&serde_json::to_string_pretty(statement)?);
    }
    let mut rows = vec![
        ("guarantee", ui::wrap(&statement.in_words, 96, 17)),
        ("private", if statement.private { "yes".into() } else { "no".into() }),
    ];
    rows.extend(statement.unit.map(|unit| ("unit", format!("{unit}: {}", unit.neighbours()))));
    rows.extend(statement.relation.clone().map(|name| ("relation", name)));
    if let (Some(epsilon), Some(delta)) = (statement.epsilon, statement.delta) {
        let (delta, accountant) = (progap::delta::written(delta), &statement.accountant);
        rows.push(("budget", format!("epsilon {epsilon:.6}, delta {delta}, by {accountant}")));
    }
    rows.extend(statement.planned.map(|planned| {
        let delta = progap::delta::written(planned.delta);
        (
            "planned noise",
            format!("as for epsilon {:.6}, delta {delta}; a seed makes it known", planned.epsilon),
        )
    }));
    rows.extend(super::train::other_unit(statement));
    rows.extend(statement.mechanisms.iter().map(|m| {
        let noise = ui::noise_in_words((m.sigma, m.sensitivity), m.noise_multiplier, m.sampling_rate);
        ("query", format!("{} x {}: {noise}", m.count, m.what))
    }));
    rows.extend(statement.public.iter().map(|text| ("taken as public", text.clone())));
    rows.extend(statement.not_covered.iter().map(|text| ("not covered", text.clone())));
    if let Some(exported) = &release.exported {
        rows.push(("exported on", exported.date.to_string()));
        rows.extend(
            release::missing_for_predictions(&release).map(|why| ("no predict", ui::wrap(why, 96, 17))),
        );
    }
    if metrics.test_accuracy.is_finite() {
        let whose = if metrics.unprotected {
            ", for the data owner alone: made of private labels without noise"
        } else {
            ""
        };
        rows.push(("test accuracy", percent(metrics.test_accuracy) + whose));
    }
    ui::print(&ui::facts(&format!("release {}", folder.display()), &rows))
}

fn table(summary: &Summary) -> String {
    let mut rows = vec![
        ("nodes", count(summary.nodes)),
        ("edges", edges(summary)),
        ("features", features(summary)),
        ("classes", count(summary.classes)),
        ("labels", labels(summary)),
    ];
    rows.extend(oddities(summary).map(|text| ("note", text)));
    let Quantiles { mean, min, p10, p25, median, p75, p90, p99, max } = summary.in_degree;
    rows.push(("in-degree", format!("mean {mean:.1}, median {median}, from {min} to {max}")));
    rows.push(("", format!("10 % {p10}   25 % {p25}   75 % {p75}   90 % {p90}   99 % {p99}")));
    if let Some(homophily) = summary.homophily {
        let text = format!(
            "{} of the edges join nodes of one class (by chance {})",
            percent(homophily),
            percent(summary.chance_homophily)
        );
        rows.push(("homophily", text));
    }
    if let (Some(train), Some(val), Some(test)) = (summary.train, summary.val, summary.test) {
        let unused = summary.unused.filter(|&n| n > 0).map(|n| format!(", {} unused", count(n)));
        let text = format!("{} train, {} validation, {} test", count(train), count(val), count(test));
        rows.push(("split", text + &unused.unwrap_or_default()));
    }
    if let Some(accuracy) = summary.majority_baseline {
        rows.push(("majority baseline", format!("{} test accuracy", percent(accuracy))));
    }
    let memory = summary.memory;
    let text = format!(
        "{} (graph {}, features {})",
        bytes(memory.total),
        bytes(memory.graph),
        bytes(memory.features)
    );
    rows.push(("memory", text));

    let largest = summary.class_counts.iter().map(|class| class.nodes).max().unwrap_or(1).max(1);
    let classes = summary.class_counts.iter().map(|class| {
        let share = class.nodes as f64 / summary.labelled.max(1) as f64;
        [
            class.name.clone(),
            count(class.nodes),
            percent(share),
            ui::bar(class.nodes as f64 / largest as f64, 24),
        ]
    });
    let facts = ui::facts(&summary.name, &rows);
    let classes = ui::table(["class", "nodes", "share", ""], classes);
    format!("{facts}\n\n{classes}")
}

fn edges(summary: &Summary) -> String {
    if summary.undirected {
        // A loop is its own edge back.
        let undirected = (summary.edges + summary.self_loops) / 2;
        format!("{} directed, {} undirected", count(summary.edges), count(undirected))
    } else if summary.edges_back == 0 {
        format!("{} directed (none has an edge back)", count(summary.edges))
    } else {
        format!("{} directed ({} of them have an edge back)", count(summary.edges), count(summary.edges_back))
    }
}

fn labels(summary: &Summary) -> String {
    match summary.labelled == summary.nodes {
        true => "all nodes have one".into(),
        false => format!(
            "{} nodes have one ({}); the others send, receive and are predicted",
            count(summary.labelled),
            percent(summary.labelled as f64 / summary.nodes as f64)
        ),
    }
}

fn features(summary: &Summary) -> String {
    match summary.feature_density {
        None => "none".into(),
        Some(density) => {
            let storage = summary.feature_storage;
            format!("{}, {storage}, {} of the values are not zero", count(summary.features), percent(density))
        }
    }
}

/// Oddities of the data that a user should know before training on it.
fn oddities(summary: &Summary) -> impl Iterator<Item = String> {
    let note = |number: usize, what: &str| (number > 0).then(|| format!("{what}: {}", count(number)));
    [
        note(summary.self_loops, "edges from a node to itself, which training leaves out"),
        note(summary.repeated_edges, "edges that repeat another one, which training merges"),
        note(summary.isolated_nodes, "nodes without an edge"),
        summary.listed_once.then(|| {
            let flag = if summary.edges_back == 0 { "--undirected" } else { "--symmetrise" };
            format!(
                "each edge seems to be listed once; if edges mean the same both ways, {flag} adds the other \
                direction"
            )
        }),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn days_are_dates() {
        for (days, date) in [
            (0.0, "2000-01-01"),
            (8825.5, "2024-02-29"),
            (-10_957.0, "1970-01-01"),
            (-36_465.0, "1900-03-01"),
            (-730_119.0, "0001-01-01"),
            (-1.0, "1999-12-31"),
            (366.0, "2001-01-01"),
            (146_096.0, "2399-12-31"),
        ] {
            assert_eq!(day(days), date);
        }
    }
}
