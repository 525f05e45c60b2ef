//! From what came of an experiment to tables and figures.

use progap::settings::{Level, Metric, Settings};
use progap_experiments::{
    self as experiment, Experiment, MIN_RUNS, Name, Options, Outcome, Preset, Tuning, published,
};
use progap_graph::summary::Summary;

use super::accuracy::accuracies;
use super::figures::{convergence, depth, labels, tradeoff};
use super::findings::findings;
use super::schedule::tuning_warning;
use crate::report::{Block, Cell, Figure, Report, Section, Table, Tone};
use crate::ui;

/// The table of the settings behind each figure.
const SETTINGS: &str = "settings";

pub type Outcomes<'o> = [(&'o experiment::Cell, Outcome)];

/// The title of an experiment.
pub fn title(name: Name) -> &'static str {
    match name {
        Name::Table2 => "Accuracy of all methods",
        Name::Tradeoff => "Accuracy against privacy",
        Name::Convergence => "Convergence",
        Name::Depth => "Effect of the depth",
        Name::Layerwise => "Progressive against layerwise training",
        Name::Ablation => "What each addition changes",
        Name::Labels => "Accuracy against the share of labels",
        Name::Custom => "Comparison",
    }
}

/// The name of its folder.
pub fn file_name(name: Name) -> String {
    serde_json::to_value(name).ok().and_then(|name| name.as_str().map(String::from)).unwrap_or_default()
}

/// Everything that an experiment says.
pub fn report(title: &str, experiment: &Experiment, outcomes: &Outcomes<'_>, options: &Options) -> Report {
    let mut names: Vec<&str> = options.data.iter().map(|data| data.name.as_str()).collect();
    // Each share of labels has a spec of its own.
    names.dedup();
    let mut sections = vec![results_section(experiment, outcomes)];
    sections.extend(budget_section(outcomes));
    sections.push(settings_section(outcomes));
    sections.push(method_section(experiment));
    let runs = experiment.runs;
    let subtitle = format!("{}; {runs} {} each", names.join(", "), if runs == 1 { "run" } else { "runs" });
    let preset = match options.preset {
        Preset::Default => "",
        Preset::Paper => ", as published",
        Preset::Both => ", beside the published settings",
    };
    let tuning = match experiment.tuning {
        Tuning::None => "",
        Tuning::Grid => ", by the grid",
        Tuning::Private => ", by private tuning",
    };
    Report { title: format!("{title}{preset}{tuning}"), subtitle, sections }
}

fn section(id: &str, heading: &str, blocks: Vec<Block>) -> Section {
    Section { id: id.into(), heading: heading.into(), blocks }
}

fn results_section(experiment: &Experiment, outcomes: &Outcomes<'_>) -> Section {
    let mut blocks: Vec<Block> =
        findings(experiment.name, outcomes).into_iter().map(Block::Paragraph).collect();
    let metric = experiment.metric;
    if metric != Metric::Accuracy {
        // They are about accuracies.
        blocks.clear();
    }
    let level_panels = |figure: &dyn Fn(&str, Level) -> Option<Figure>, blocks: &mut Vec<Block>| {
        for level in [Level::None, Level::Edge, Level::Node] {
            let panels: Vec<Figure> =
                data_names(outcomes).iter().filter_map(|data| figure(data, level)).collect();
            if !panels.is_empty() {
                blocks.push(Block::Panels(panels));
            }
        }
    };
    match experiment.name {
        Name::Tradeoff => level_panels(&|data, level| tradeoff(outcomes, metric, data, level), &mut blocks),
        Name::Convergence => level_panels(&|data, level| convergence(outcomes, data, level), &mut blocks),
        Name::Depth => level_panels(&|data, level| depth(outcomes, metric, data, level), &mut blocks),
        Name::Labels => level_panels(&|data, level| labels(outcomes, metric, data, level), &mut blocks),
        _ => {}
    }
    if too_few_runs(outcomes) {
        let text = format!(
            "Fewer than {MIN_RUNS} runs of a figure are too few for an interval: differences between figures may be \
             chance. `--runs {MIN_RUNS}` or more adds intervals, and keeps the runs that are there."
        );
        blocks.push(Block::Notice(Tone::Caution, text));
    }
    blocks.push(Block::Table(accuracies(experiment.name, metric, outcomes)));
    let incomplete: usize =
        outcomes.iter().map(|(_, outcome)| outcome.missing + outcome.failures.len()).sum();
    if incomplete > 0 {
        let first = outcomes.iter().find_map(|(_, outcome)| outcome.failures.first());
        let why = first.map(|error| format!("; the first failure: {error}")).unwrap_or_default();
        let text = format!(
            "{incomplete} runs are missing from these figures; run the same command to complete them{why}."
        );
        blocks.push(Block::Notice(Tone::Caution, text));
    }
    section("results", "Results", blocks)
}

/// Whether a figure rests on so few runs that it has no interval.
pub fn too_few_runs(outcomes: &Outcomes<'_>) -> bool {
    outcomes.iter().any(|(_, outcome)| (1..MIN_RUNS).contains(&outcome.values.len()))
}

pub fn data_names(outcomes: &Outcomes<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (cell, _) in outcomes {
        if !names.contains(&cell.data.name) {
            names.push(cell.data.name.clone());
        }
    }
    names
}

fn number(value: f64) -> Cell {
    Cell::number(value, value.to_string())
}

pub fn epsilon(epsilon: Option<f64>) -> Cell {
    epsilon.map_or_else(|| Cell::text("∞"), number)
}

/// The delta that a figure was measured under.
pub fn delta(outcome: &Outcome) -> Cell {
    let number = |delta| Cell::number(delta, progap::delta::written(delta));
    outcome.delta.map_or_else(Cell::missing, number)
}

/// The settings behind each figure.
fn settings_section(outcomes: &Outcomes<'_>) -> Section {
    let columns = [
        "method",
        "data",
        "level",
        "epsilon",
        "delta",
        "variant",
        "layers",
        "depth",
        "learning rate",
        "epochs",
        "runs",
        "validation (%)",
        "s per run",
    ];
    let row = |(cell, outcome): &(&experiment::Cell, Outcome)| {
        let settings: Option<&Settings> = outcome.chosen.as_ref();
        // A method need not read every setting.
        let of = |name: &str, value: &dyn Fn(&Settings) -> f64| {
            let read = settings.filter(|settings| settings.without_effect(name).is_none());
            read.map_or_else(Cell::missing, |settings| number(value(settings)))
        };
        let rounded = |value: f64, scale: f64, digits: usize| {
            if value.is_finite() {
                Cell::number(value, format!("{:.digits$}", scale * value))
            } else {
                Cell::missing()
            }
        };
        let variant = cell.variant.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>();
        vec![
            Cell::text(cell.method.to_string()),
            Cell::text(cell.data.name.clone()),
            Cell::text(cell.level.to_string()),
            epsilon(cell.epsilon),
            delta(outcome),
            Cell::text(variant.join(", ")),
            of("layers", &|s| s.layers as f64),
            of("depth", &|s| s.depth as f64),
            of("learning_rate", &|s| s.learning_rate),
            of("epochs", &|s| s.epochs as f64),
            Cell::count(outcome.values.len()),
            rounded(outcome.val, 100.0, 1),
            rounded(outcome.seconds, 1.0, 2),
        ]
    };
    let mut columns: Vec<String> = columns.map(String::from).into();
    let mut rows: Vec<Vec<Cell>> = outcomes.iter().map(row).collect();
    // A column that says nothing takes room from the others.
    if let Some(at) = (0..columns.len()).find(|&at| rows.iter().all(|row| row[at].text.is_empty())) {
        columns.remove(at);
        rows.iter_mut().for_each(|row| drop(row.remove(at)));
    }
    let table = Table {
        id: SETTINGS.into(),
        caption: "The settings behind each figure, by mean validation accuracy where several were tried. Seconds are \
                  elapsed time, with whatever else the machine did."
            .to_string()
            + &unit_note(outcomes),
        columns,
        rows,
    };
    section("settings", "Settings", vec![Block::Table(table)])
}

/// The cost that private tuning would have.
fn budget_section(outcomes: &Outcomes<'_>) -> Option<Section> {
    let rows: Vec<Vec<Cell>> = outcomes
        .iter()
        .filter_map(|(cell, outcome)| {
            let budget = outcome.budget?;
            Some(vec![
                Cell::text(cell.method.to_string()),
                Cell::text(cell.data.name.clone()),
                Cell::text(cell.level.to_string()),
                Cell::number(budget.one_run, format!("{:.4}", budget.one_run)),
                Cell::number(budget.tuned, format!("{:.4}", budget.tuned)),
                Cell::number(budget.delta, format!("{:e}", budget.delta)),
                Cell::number(budget.mean_runs, format!("{:.1}", budget.mean_runs)),
            ])
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let columns =
        ["method", "data", "level", "epsilon of a run", "epsilon of the choice", "delta", "runs on average"];
    let caption = "What choosing settings by private tuning would cost: a release of the best run, with a number of \
                   runs and noise that are secret, would have the epsilon of the choice and not that of a run. This \
                   experiment is seeded and private in no way; no command makes such a release.";
    let table = Table {
        id: "tuning".into(),
        caption: caption.into(),
        columns: columns.map(String::from).into(),
        rows,
    };
    Some(section("tuning", "The price of tuning", vec![Block::Table(table)]))
}

/// How it was done.
fn method_section(experiment: &Experiment) -> Section {
    let tuning = match experiment.tuning {
        Tuning::None => "none: fixed settings",
        Tuning::Grid => "the paper's grid, by mean validation accuracy over the runs",
        Tuning::Private => "the best of a random number of runs with random settings of the grid",
    };
    let facts = vec![
        ("runs".to_string(), format!("{}, each with a random split and a seed of its own", experiment.runs)),
        ("tuning".to_string(), tuning.to_string()),
    ];
    let mut blocks = vec![
        Block::Notice(
            Tone::Caution,
            "These runs are seeded so that anyone can repeat them: their noise is not secret, and none of them is a \
             private \
             release. The figures are computed from test labels without protection."
                .into(),
        ),
        Block::Facts(facts),
    ];
    let arguments = std::env::args().skip(1).map(|argument| super::jobs::shell_word(&argument));
    let command = std::iter::once("progap".to_string()).chain(arguments).collect::<Vec<_>>().join(" ");
    blocks.push(Block::Code { name: "Run it again, or continue".into(), text: command });
    if let Some(warning) = tuning_warning(experiment) {
        blocks.insert(1, Block::Notice(Tone::Caution, warning.into()));
    }
    section("method", "How it was done", blocks)
}

/// The level, and what one record is at edge level.
pub fn level_name(outcomes: &Outcomes<'_>, level: Level) -> String {
    match level {
        Level::None => "without privacy".into(),
        Level::Edge => match edge_units(outcomes).as_slice() {
            [false] => "edge level (directed edges)".into(),
            [true] => "edge level (undirected edges)".into(),
            _ => "edge level".into(),
        },
        Level::Node => "node level".into(),
    }
}

/// Whether undirected edges are the records, for the cells at edge level: all that occurs, once.
fn edge_units(outcomes: &Outcomes<'_>) -> Vec<bool> {
    let cells = outcomes.iter().map(|(cell, _)| cell).filter(|cell| cell.level == Level::Edge);
    let mut units: Vec<bool> = cells.flat_map(|cell| &cell.candidates).map(|s| s.undirected).collect();
    units.sort_unstable();
    units.dedup();
    units
}

/// The unit of one record at edge level, as the last sentence of a caption.
pub fn unit_note(outcomes: &Outcomes<'_>) -> String {
    match edge_units(outcomes).as_slice() {
        [] => "",
        [false] => " At edge level one record is a directed edge, so that an undirected edge is two of them.",
        [true] => " At edge level one record is an undirected edge, both directions of it.",
        _ => " At edge level one record is a directed edge, or an undirected edge where undirected is true.",
    }
    .into()
}

/// Sizes of data sets, with those of the paper.
pub fn table1(summaries: &[(String, Summary)]) -> Report {
    let columns =
        ["data set", "nodes", "edges", "features", "classes", "median degree", "homophily", "source"];
    let mut rows = Vec::new();
    for (name, summary) in summaries {
        rows.push(vec![
            Cell::text(name.clone()),
            Cell::count(summary.nodes),
            Cell::count(summary.edges),
            Cell::count(summary.features),
            Cell::count(summary.classes),
            Cell::count(summary.in_degree.median),
            summary.homophily.map_or_else(Cell::missing, |h| Cell::number(h, format!("{h:.2}"))),
            Cell::text("measured"),
        ]);
        if let Some(sizes) = published::sizes(name) {
            let mut row = vec![Cell::text(name.clone())];
            row.extend(sizes.map(Cell::count));
            row.extend([Cell::missing(), Cell::text("published")]);
            rows.push(row);
        }
    }
    let caption =
        "Sizes of data sets. An undirected edge counts twice; a degree is a number of in-neighbours.";
    let table = Table {
        id: "data-sets".into(),
        caption: caption.into(),
        columns: columns.map(String::from).into(),
        rows,
    };
    Report {
        title: "Data sets".into(),
        subtitle: summaries.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "),
        sections: vec![section("data-sets", "Data sets", vec![Block::Table(table)])],
    }
}

/// The tables of a report as a terminal shows them.
pub fn terminal(report: &Report) -> String {
    let mut text = String::new();
    for block in report.sections.iter().flat_map(|section| &section.blocks) {
        match block {
            // The settings have too many columns for most terminals.
            Block::Table(table) if table.id != SETTINGS => {
                let starred = |column: usize| table.rows.iter().any(|row| row[column].bold);
                let rows = table.rows.iter().map(|row| {
                    let cell = |(column, cell): (usize, &Cell)| match cell.bold {
                        true => format!("{} *", cell.text),
                        false if starred(column) => format!("{}  ", cell.text),
                        false => cell.text.clone(),
                    };
                    row.iter().enumerate().map(cell).collect()
                });
                let header: Vec<&str> = table.columns.iter().map(String::as_str).collect();
                text +=
                    &format!("\n{}\n{}\n", ui::wrap(&table.caption, 100, 0), ui::wide_table(&header, rows));
                if (0..table.columns.len()).any(starred) {
                    text += "* the best of those with the same unit, epsilon and delta\n";
                }
            }
            Block::Notice(_, sentence) | Block::Paragraph(sentence) => {
                text += &format!("\n{}\n", ui::wrap(sentence, 100, 0));
            }
            _ => {}
        }
    }
    text.trim_start().to_string()
}
