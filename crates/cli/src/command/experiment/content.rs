//! From what came of an experiment to tables and figures.

use std::collections::BTreeMap;

use progap::experiment::{self, Curve, Experiment, Name, Options, Outcome, Tuning, mean, published};
use progap::settings::{Level, Method, Settings};
use progap_graph::summary::Summary;

use super::findings::findings;
use super::plan::tuning_warning;
use crate::report::{
    Axis, Block, Border, Cell, Figure, Lines, Plot, Point, Reference, Report, Section, Series, Table, Tone,
};
use crate::ui;

/// The table of the settings behind each figure.
const SETTINGS: &str = "settings";

/// What a column of the paper's own figures is called.
const PUBLISHED: &str = "published";

type Outcomes<'o> = [(&'o experiment::Cell, Outcome)];

/// What an experiment is called.
pub fn title(name: Name) -> &'static str {
    match name {
        Name::Table2 => "Accuracy of all methods",
        Name::Tradeoff => "Accuracy against privacy",
        Name::Convergence => "Convergence",
        Name::Depth => "Effect of the depth",
        Name::Layerwise => "Progressive against layerwise training",
        Name::Ablation => "What each addition changes",
        Name::Custom => "Comparison",
    }
}

/// The name of its folder.
pub fn file_name(name: Name) -> String {
    serde_json::to_value(name).ok().and_then(|name| name.as_str().map(String::from)).unwrap_or_default()
}

/// Everything that an experiment says.
pub fn report(title: &str, experiment: &Experiment, outcomes: &Outcomes<'_>, options: &Options) -> Report {
    let names: Vec<&str> = options.data.iter().map(|data| data.name.as_str()).collect();
    let mut sections = vec![results_section(experiment, outcomes)];
    sections.extend(budget_section(outcomes));
    sections.push(settings_section(outcomes));
    sections.push(method_section(experiment));
    let runs = experiment.runs;
    let subtitle = format!("{}; {runs} {} each", names.join(", "), if runs == 1 { "run" } else { "runs" });
    let preset = if options.paper { ", as published" } else { "" };
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
        Name::Tradeoff => level_panels(&|data, level| tradeoff(outcomes, data, level), &mut blocks),
        Name::Convergence => level_panels(&|data, level| convergence(outcomes, data, level), &mut blocks),
        Name::Depth => level_panels(&|data, level| depth(outcomes, data, level), &mut blocks),
        _ => {}
    }
    blocks.push(Block::Table(accuracies(experiment.name, outcomes)));
    let incomplete: usize =
        outcomes.iter().map(|(_, outcome)| outcome.missing + outcome.failures.len()).sum();
    if incomplete > 0 {
        let first = outcomes.iter().find_map(|(_, outcome)| outcome.failures.first());
        let why = first.map(|error| format!("; the first failure: {error}")).unwrap_or_default();
        let text =
            format!("{incomplete} runs are missing from these figures; the same command does them{why}.");
        blocks.push(Block::Notice(Tone::Caution, text));
    }
    section("results", "Results", blocks)
}

fn data_names(outcomes: &Outcomes<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (cell, _) in outcomes {
        if !names.contains(&cell.data.name) {
            names.push(cell.data.name.clone());
        }
    }
    names
}

/// 77.2 +- 0.33, in percent.
fn accuracy(outcome: &Outcome) -> Cell {
    let Some(mean) = outcome.mean() else { return Cell::missing() };
    let Some((low, high)) = outcome.interval() else {
        return Cell::number(mean, format!("{:.1}", 100.0 * mean));
    };
    let text = format!("{:.1} ± {:.2}", 100.0 * mean, 50.0 * (high - low));
    Cell { interval: Some((low, high)), ..Cell::number(mean, text) }
}

fn number(value: f64) -> Cell {
    Cell::number(value, value.to_string())
}

fn epsilon(epsilon: Option<f64>) -> Cell {
    epsilon.map_or_else(|| Cell::text("∞"), number)
}

/// What tells the rows of the table of accuracies apart.
#[derive(PartialEq)]
struct RowKey<'c> {
    level: Level,
    method: Method,
    epsilon: Option<f64>,
    variant: &'c [(String, String)],
}

impl<'c> RowKey<'c> {
    fn of(cell: &'c experiment::Cell) -> RowKey<'c> {
        RowKey { level: cell.level, method: cell.method, epsilon: cell.epsilon, variant: &cell.variant }
    }

    /// Rows within which the best stands out: those that promise the same.
    fn group(&self) -> (Level, Option<u64>) {
        // A method that touches no edge competes with those at any budget, as in the paper.
        (self.level, self.epsilon.filter(|epsilon| *epsilon > 0.0).map(f64::to_bits))
    }
}

/// What others found for a row.
type FigureOf<'f> = &'f dyn Fn(&RowKey<'_>) -> Option<Cell>;

/// Methods, levels, budgets and variants by data sets; beside ours what others found.
fn accuracies(name: Name, outcomes: &Outcomes<'_>) -> Table {
    let mut rows: Vec<RowKey<'_>> = Vec::new();
    for (cell, _) in outcomes {
        if !rows.contains(&RowKey::of(cell)) {
            rows.push(RowKey::of(cell));
        }
    }
    let mut variants: Vec<&str> = Vec::new();
    for (name, _) in outcomes.iter().flat_map(|(cell, _)| &cell.variant) {
        if !variants.contains(&name.as_str()) {
            variants.push(name);
        }
    }
    let mut columns: Vec<String> = ["method", "level", "epsilon"].map(String::from).into();
    columns.extend(variants.iter().map(|name| name.to_string()));
    let fixed = columns.len();
    let mut body: Vec<Vec<Cell>> = rows
        .iter()
        .map(|row| {
            let variant = |wanted: &&str| {
                let found = row.variant.iter().find(|(name, _)| name == wanted);
                Cell::text(found.map(|(_, value)| value.clone()).unwrap_or_default())
            };
            let mut cells = vec![
                Cell::text(row.method.to_string()),
                Cell::text(row.level.to_string()),
                epsilon(row.epsilon),
            ];
            cells.extend(variants.iter().map(variant));
            cells
        })
        .collect();
    for data in data_names(outcomes) {
        let of = |row: &RowKey<'_>| {
            outcomes.iter().find(|(cell, _)| cell.data.name == data && RowKey::of(cell) == *row)
        };
        columns.push(format!("{data} (%)"));
        for (row, cells) in rows.iter().zip(&mut body) {
            cells.push(of(row).map_or_else(Cell::missing, |(_, outcome)| accuracy(outcome)));
        }
        mark_best(&rows, &mut body, columns.len() - 1);
        let known = |row: &RowKey<'_>| {
            let method = row.method.to_string();
            let figure = published::published(&data, &method, row.level, row.epsilon)?;
            let text = format!("{:.1} ± {:.2}", figure.mean, figure.half);
            let interval = ((figure.mean - figure.half) / 100.0, (figure.mean + figure.half) / 100.0);
            Some(Cell { interval: Some(interval), ..Cell::number(figure.mean / 100.0, text) })
        };
        let measured = |row: &RowKey<'_>| {
            let figure = published::measured(&data, &row.method.to_string(), row.level, row.epsilon)?;
            let depth = if figure.depth > 0 { format!(" (depth {})", figure.depth) } else { String::new() };
            Some(Cell::number(figure.mean / 100.0, format!("{:.1}{depth}", figure.mean)))
        };
        let beside: [(&str, FigureOf<'_>); 2] = [(PUBLISHED, &known), ("original code, measured", &measured)];
        // The figures of others were not measured on variants; where there are several, the column would repeat itself.
        for (name, figure) in beside.into_iter().filter(|_| name == Name::Table2) {
            let figures: Vec<Option<Cell>> = rows.iter().map(figure).collect();
            if figures.iter().any(Option::is_some) {
                columns.push(format!("{data}, {name} (%)"));
                for (cells, figure) in body.iter_mut().zip(figures) {
                    cells.push(figure.unwrap_or_else(Cell::missing));
                }
            }
        }
    }
    debug_assert!(body.iter().all(|row| row.len() == columns.len()) && fixed <= columns.len());
    let mut caption =
        "Test accuracy in percent: mean over the runs, and half of its 95 % bootstrap interval (1000 \
                       resamples). Of equal promises the best stands out."
            .to_string()
            + &unit_note(outcomes);
    if columns.iter().any(|column| column.contains(PUBLISHED)) {
        caption += " Published figures are of the paper's own data, fb-100 of all hundred schools, and of settings tuned by \
                    its grid.";
    }
    Table { id: "accuracy".into(), caption, columns, rows: body }
}

/// Makes the best of each group of rows stand out in a column.
fn mark_best(rows: &[RowKey<'_>], body: &mut [Vec<Cell>], column: usize) {
    let group = |at: usize| {
        let (level, epsilon) = rows[at].group();
        (level as u8, epsilon)
    };
    // A row without a budget of its own belongs to the only group of its level, if there is one.
    let mut best: BTreeMap<(u8, Option<u64>), (f64, usize, usize)> = BTreeMap::new();
    for at in 0..rows.len() {
        let Some(value) = body[at][column].value else { continue };
        let mut key = group(at);
        if key.1.is_none() && rows[at].level != Level::None {
            let others: Vec<_> =
                (0..rows.len()).map(group).filter(|g| g.0 == key.0 && g.1.is_some()).collect();
            key = others.first().copied().unwrap_or(key);
        }
        let entry = best.entry(key).or_insert((value, at, 0));
        entry.2 += 1;
        if value > entry.0 {
            (entry.0, entry.1) = (value, at);
        }
    }
    for (_, at, _) in best.values().filter(|(_, _, count)| *count > 1) {
        body[*at][column].bold = true;
    }
}

/// The settings behind each figure.
fn settings_section(outcomes: &Outcomes<'_>) -> Section {
    let columns = [
        "method",
        "data",
        "level",
        "epsilon",
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
        let of = |value: &dyn Fn(&Settings) -> f64| settings.map_or_else(Cell::missing, |s| number(value(s)));
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
            Cell::text(variant.join(", ")),
            of(&|s| s.layers as f64),
            of(&|s| s.depth as f64),
            of(&|s| s.learning_rate),
            of(&|s| s.epochs as f64),
            Cell::count(outcome.values.len()),
            rounded(outcome.val, 100.0, 1),
            rounded(outcome.seconds, 1.0, 2),
        ]
    };
    let table = Table {
        id: SETTINGS.into(),
        caption: "The settings behind each figure, by mean validation accuracy where several were tried. Seconds are \
                  elapsed time, with whatever else the machine did."
            .to_string()
            + &unit_note(outcomes),
        columns: columns.map(String::from).into(),
        rows: outcomes.iter().map(row).collect(),
    };
    section("settings", "Settings", vec![Block::Table(table)])
}

/// What private tuning would cost.
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
            "These runs are seeded, so that anybody can repeat them: their noise is not secret, and none of them is a \
             private release. The figures come from test labels without any protection."
                .into(),
        ),
        Block::Facts(facts),
    ];
    let arguments = std::env::args().skip(1).map(|argument| super::jobs::shell_word(&argument));
    let command = std::iter::once("progap".to_string()).chain(arguments).collect::<Vec<_>>().join(" ");
    blocks.push(Block::Code { name: "Run it again, or go on".into(), text: command });
    if let Some(warning) = tuning_warning(experiment) {
        blocks.insert(1, Block::Notice(Tone::Caution, warning.into()));
    }
    section("method", "How it was done", blocks)
}

/// The level, and what one record is at edge level.
fn level_name(outcomes: &Outcomes<'_>, level: Level) -> String {
    match level {
        Level::None => "without privacy".into(),
        Level::Edge => match edge_units(outcomes).as_slice() {
            [false] => "edge level (directed edges)".into(),
            [true] => "edge level (friendships)".into(),
            _ => "edge level".into(),
        },
        Level::Node => "node level".into(),
    }
}

/// Whether friendships are the records, for the cells at edge level: all that occurs, once.
fn edge_units(outcomes: &Outcomes<'_>) -> Vec<bool> {
    let cells = outcomes.iter().map(|(cell, _)| cell).filter(|cell| cell.level == Level::Edge);
    let mut units: Vec<bool> = cells.flat_map(|cell| &cell.candidates).map(|s| s.undirected).collect();
    units.sort_unstable();
    units.dedup();
    units
}

/// What one record is at edge level, as the last sentence of a caption.
fn unit_note(outcomes: &Outcomes<'_>) -> String {
    match edge_units(outcomes).as_slice() {
        [] => "",
        [false] => " At edge level one record is a directed edge, so that a friendship is two of them.",
        [true] => " At edge level one record is a friendship, both directions of it.",
        _ => " At edge level one record is a directed edge, or a friendship where undirected is true.",
    }
    .into()
}

fn figure_id(kind: &str, data: &str, level: Level) -> String {
    let data: String = data.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{kind}-{}-{level}", data.trim_matches('-').to_lowercase())
}

fn point(x: f64, outcome: &Outcome) -> Option<Point> {
    Some(Point { x, y: outcome.mean()?, interval: outcome.interval() })
}

/// The cells of a data set at a level, in groups of equal names, in order of appearance.
fn grouped<'o>(
    outcomes: &'o Outcomes<'o>,
    data: &str,
    level: Level,
    name: impl Fn(&experiment::Cell) -> String,
) -> Vec<(String, Vec<&'o (&'o experiment::Cell, Outcome)>)> {
    let mut groups: Vec<(String, Vec<_>)> = Vec::new();
    for pair in outcomes.iter().filter(|(cell, _)| cell.data.name == data && cell.level == level) {
        let name = name(pair.0);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, group)) => group.push(pair),
            None => groups.push((name, vec![pair])),
        }
    }
    groups
}

/// Accuracy against epsilon; dotted, what is reached without privacy.
fn tradeoff(outcomes: &Outcomes<'_>, data: &str, level: Level) -> Option<Figure> {
    if level == Level::None {
        return None;
    }
    let groups = grouped(outcomes, data, level, |cell| cell.method.to_string());
    let mut ticks: Vec<f64> = Vec::new();
    let (mut series, mut references) = (Vec::new(), Vec::new());
    for (name, cells) in &groups {
        let mut points: Vec<Point> = Vec::new();
        for (cell, outcome) in cells {
            let epsilon = cell.epsilon.unwrap_or(0.0);
            if epsilon > 0.0 {
                ticks.push(epsilon);
                points.extend(point(epsilon, outcome));
            } else if let Some(value) = outcome.mean() {
                references.push(Reference { name: format!("{name}, epsilon 0"), value, series: None });
            }
        }
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        if !points.is_empty() {
            series.push(Series { name: name.clone(), points });
        }
    }
    if series.is_empty() {
        return None;
    }
    for (cell, outcome) in outcomes.iter().filter(|(c, _)| c.data.name == data && c.level == Level::None) {
        if let Some(value) = outcome.mean() {
            let name = cell.method.to_string();
            let owner = series.iter().position(|line| line.name == name);
            references.push(Reference { name: format!("{name} without privacy"), value, series: owner });
        }
    }
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    let best =
        |line: &Series| line.points.iter().map(|p| format!("{} at {}", share(p.y), p.x)).collect::<Vec<_>>();
    let alt =
        series.iter().map(|line| format!("{}: {}", line.name, best(line).join(", "))).collect::<Vec<_>>();
    Some(Figure {
        id: figure_id("tradeoff", data, level),
        caption: format!("{data}, {}: accuracy against epsilon", level_name(outcomes, level)),
        alt: format!("Test accuracy at each epsilon. {}.", alt.join(". ")),
        plot: Plot::Lines(Lines {
            x: Axis::log("epsilon", ticks),
            y: Axis::percent("test accuracy"),
            series,
            references,
            borders: vec![],
        }),
    })
}

fn share(value: f64) -> String {
    format!("{:.1} %", 100.0 * value)
}

/// Accuracy against depth, a line for each budget.
fn depth(outcomes: &Outcomes<'_>, data: &str, level: Level) -> Option<Figure> {
    let depth_of = |cell: &experiment::Cell| {
        let depth = cell.variant.iter().find(|(name, _)| name == "depth")?;
        depth.1.parse::<f64>().ok()
    };
    let several = outcomes.iter().any(|(cell, _)| cell.method != outcomes[0].0.method);
    let groups = grouped(outcomes, data, level, |cell| {
        let budget = cell.epsilon.map_or("without privacy".to_string(), |e| format!("epsilon {e}"));
        if several { format!("{}, {budget}", cell.method) } else { budget }
    });
    let mut ticks: Vec<f64> = Vec::new();
    let mut series = Vec::new();
    for (name, cells) in groups {
        let mut points: Vec<Point> =
            cells.iter().filter_map(|(cell, outcome)| point(depth_of(cell)?, outcome)).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        ticks.extend(points.iter().map(|point| point.x));
        if !points.is_empty() {
            series.push(Series { name, points });
        }
    }
    if series.is_empty() {
        return None;
    }
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    let best = |line: &Series| {
        let best = line.points.iter().max_by(|a, b| a.y.total_cmp(&b.y));
        best.map(|p| format!("{}: best {} at depth {}", line.name, share(p.y), p.x)).unwrap_or_default()
    };
    Some(Figure {
        id: figure_id("depth", data, level),
        caption: format!("{data}, {}: accuracy against depth", level_name(outcomes, level)),
        alt: format!("{}.", series.iter().map(best).collect::<Vec<_>>().join("; ")),
        plot: Plot::Lines(Lines {
            x: Axis { ticks, ..Axis::linear("depth K") },
            y: Axis::percent("test accuracy"),
            series,
            references: vec![],
            borders: vec![],
        }),
    })
}

/// Training and validation accuracy epoch by epoch, the mean over the runs.
fn convergence(outcomes: &Outcomes<'_>, data: &str, level: Level) -> Option<Figure> {
    let cells: Vec<_> = outcomes
        .iter()
        .filter(|(cell, outcome)| {
            cell.data.name == data && cell.level == level && outcome.curves.iter().any(|c| !c.val.is_empty())
        })
        .collect();
    let (_, first) = cells.first()?;
    let epochs = &first.curves[0].epochs;
    let mut series = Vec::new();
    for (cell, outcome) in &cells {
        let label = if cells.len() == 1 { String::new() } else { format!("{}, ", describe(cell)) };
        for (name, of) in [
            ("training", (|curve: &Curve| curve.train.clone()) as fn(&Curve) -> Vec<Option<f64>>),
            ("validation", |curve: &Curve| curve.val.clone()),
        ] {
            let points = mean_curve(&outcome.curves, of);
            if !points.is_empty() {
                series.push(Series { name: format!("{label}{name}"), points });
            }
        }
    }
    let mut borders = Vec::new();
    let mut before = 0;
    for (stage, count) in epochs.iter().enumerate() {
        borders.push(Border { name: format!("stage {stage}"), at: before as f64 });
        before += count;
    }
    let last = |line: &Series| line.points.last().map(|p| format!("{} ends at {}", line.name, share(p.y)));
    let alt: Vec<String> = series.iter().filter_map(last).collect();
    let budget = cells[0].0.epsilon.map_or(String::new(), |epsilon| format!(", epsilon {epsilon}"));
    Some(Figure {
        id: figure_id("convergence", data, level),
        caption: format!(
            "{data}, {}{budget}: accuracy epoch by epoch, over {} stages",
            level_name(outcomes, level),
            epochs.len()
        ),
        alt: format!("{}.", alt.join("; ")),
        plot: Plot::Lines(Lines {
            x: Axis::linear("epoch"),
            y: Axis::percent("accuracy"),
            series,
            references: vec![],
            borders,
        }),
    })
}

fn describe(cell: &experiment::Cell) -> String {
    let mut parts = vec![cell.method.to_string()];
    parts.extend(cell.epsilon.map(|epsilon| format!("epsilon {epsilon}")));
    parts.extend(cell.variant.iter().map(|(name, value)| format!("{name} {value}")));
    parts.join(" ")
}

fn mean_curve(curves: &[Curve], of: impl Fn(&Curve) -> Vec<Option<f64>>) -> Vec<Point> {
    let all: Vec<Vec<Option<f64>>> = curves.iter().map(of).collect();
    let longest = all.iter().map(Vec::len).max().unwrap_or(0);
    let at = |epoch: usize| {
        let values: Vec<f64> = all.iter().filter_map(|curve| curve.get(epoch).copied().flatten()).collect();
        (!values.is_empty()).then(|| Point::new((epoch + 1) as f64, mean(&values)))
    };
    (0..longest).filter_map(at).collect()
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
                let rows = table.rows.iter().map(|row| {
                    let cell =
                        |cell: &Cell| if cell.bold { format!("{} *", cell.text) } else { cell.text.clone() };
                    row.iter().map(cell).collect()
                });
                let header: Vec<&str> = table.columns.iter().map(String::as_str).collect();
                text +=
                    &format!("\n{}\n{}\n", ui::wrap(&table.caption, 100, 0), ui::wide_table(&header, rows));
            }
            Block::Notice(_, sentence) | Block::Paragraph(sentence) => {
                text += &format!("\n{}\n", ui::wrap(sentence, 100, 0));
            }
            _ => {}
        }
    }
    text.trim_start().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(values: &[f64]) -> Outcome {
        Outcome { values: values.to_vec(), ..Outcome::default() }
    }

    fn cell(method: Method, level: Level, epsilon: Option<f64>) -> experiment::Cell {
        let data = experiment::DataSpec {
            name: "facebook".into(),
            content: serde_json::Value::Null,
            place: serde_json::Value::Null,
        };
        experiment::Cell { data, method, level, epsilon, variant: vec![], candidates: vec![] }
    }

    #[test]
    fn table_2_has_the_published_figures_beside_ours_and_marks_the_best_of_each_level() {
        let cells = [
            (cell(Method::Progap, Level::None, None), outcome(&[0.84, 0.86])),
            (cell(Method::Gap, Level::None, None), outcome(&[0.80])),
            (cell(Method::Mlp, Level::Edge, Some(0.0)), outcome(&[0.9])),
            (cell(Method::Progap, Level::Edge, Some(1.0)), outcome(&[0.7])),
            (cell(Method::Progap, Level::Node, Some(8.0)), outcome(&[])),
        ];
        let outcomes: Vec<(&experiment::Cell, Outcome)> = cells.iter().map(|(c, o)| (c, o.clone())).collect();
        let table = accuracies(Name::Table2, &outcomes);
        assert_eq!(table.columns[3..], ["facebook (%)", "facebook, published (%)"]);
        let text = |row: usize, column: usize| table.rows[row][column].text.as_str();
        assert!(text(0, 3).starts_with("85.0 ± "), "{}", text(0, 3));
        assert_eq!([text(0, 4), text(2, 4), text(3, 4)], ["84.5 ± 0.24", "50.8 ± 0.20", "77.2 ± 0.33"]);
        let bold: Vec<bool> = table.rows.iter().map(|row| row[3].bold).collect();
        assert_eq!(bold, [true, false, true, false, false]);
        assert_eq!(text(4, 3), Cell::missing().text);
    }

    #[test]
    fn curves_of_different_lengths_have_a_mean() {
        let curve = |val: &[f64]| Curve { val: val.iter().map(|v| Some(*v)).collect(), ..Curve::default() };
        let points = mean_curve(&[curve(&[0.25, 0.5]), curve(&[0.75])], |curve| curve.val.clone());
        assert_eq!(points.iter().map(|p| (p.x, p.y)).collect::<Vec<_>>(), [(1.0, 0.5), (2.0, 0.5)]);
    }
}
