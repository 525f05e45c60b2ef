//! `progap inspect`: a data set in figures.

use std::path::Path;

use clap::Args;
use progap::{Release, release};
use progap_graph::summary::{Quantiles, Summary};

use super::Outcome;
use crate::source::Source;
use crate::ui::{self, bytes, count, percent};

/// Show a data set in figures (nodes, edges, classes, degrees, homophily, split), or what a release promises
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap inspect demo
  progap inspect fb:Berkeley13 --data-dir ~/data
  progap inspect nodes.csv --edges edges.csv --label diagnosis --undirected
  progap inspect graph.npz --json | jq .edges
  progap inspect releases/demo-edge-1       the guarantee of a release, in plain words")]
pub struct Inspect {
    #[command(flatten)]
    source: Source,
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
        let dataset = {
            let _spinner = ui::spinner(format!("loading {}", self.source.name()));
            self.source.load_split()?
        };
        let summary = Summary::of(&dataset);
        if self.json {
            return ui::print(&serde_json::to_string_pretty(&summary)?);
        }
        ui::print(&table(&summary))
    }
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
    if let (Some(epsilon), Some(delta)) = (statement.epsilon, statement.delta) {
        rows.push(("budget", format!("epsilon {epsilon:.6}, delta {delta:e}, by {}", statement.accountant)));
    }
    rows.extend(super::train::other_unit(statement));
    rows.extend(statement.mechanisms.iter().map(|m| {
        let sampled = if m.sampling_rate < 1.0 {
            format!(", sampled at {:.5}", m.sampling_rate)
        } else {
            String::new()
        };
        (
            "query",
            format!(
                "{} x {}: noise {:.4} for sensitivity {:.4}{sampled}",
                m.count, m.what, m.sigma, m.sensitivity
            ),
        )
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
        let share = class.nodes as f64 / summary.nodes as f64;
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
    } else {
        format!("{} directed (some without an edge back)", count(summary.edges))
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

/// What a user should know before training on it.
fn oddities(summary: &Summary) -> impl Iterator<Item = String> {
    let note = |number: usize, what: &str| (number > 0).then(|| format!("{what}: {}", count(number)));
    [
        note(summary.self_loops, "edges from a node to itself, which training leaves out"),
        note(summary.repeated_edges, "edges that repeat another one, which training merges"),
        note(summary.isolated_nodes, "nodes without an edge"),
    ]
    .into_iter()
    .flatten()
}
