//! Figures of experiments: accuracy against epsilon, against depth, against the share of labels, and epoch by epoch.

use progap::settings::{Level, Metric};
use progap_experiments::{self as experiment, Curve, LABELS, Outcome, PRESET, mean};

use super::content::{Outcomes, level_name};
use crate::report::{Axis, Border, Figure, Lines, Plot, Point, Reference, Series};
use crate::ui;

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
) -> Groups<'o> {
    let mut groups: Groups<'o> = Vec::new();
    for pair in outcomes.iter().filter(|(cell, _)| cell.data.name == data && cell.level == level) {
        let name = name(pair.0);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, group)) => group.push(pair),
            None => groups.push((name, vec![pair])),
        }
    }
    groups
}

type Groups<'o> = Vec<(String, Vec<&'o (&'o experiment::Cell, Outcome)>)>;

/// A line for each group, with points where `x` knows a place for a cell, and all places; nothing where there is no
/// point.
fn lines(
    groups: Groups<'_>,
    x: impl Fn(&experiment::Cell) -> Option<f64>,
) -> Option<(Vec<Series>, Vec<f64>)> {
    let mut ticks: Vec<f64> = Vec::new();
    let mut series = Vec::new();
    for (name, cells) in groups {
        let mut points: Vec<Point> =
            cells.iter().filter_map(|(cell, outcome)| point(x(cell)?, outcome)).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        ticks.extend(points.iter().map(|point| point.x));
        if !points.is_empty() {
            series.push(Series { name, points });
        }
    }
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    (!series.is_empty()).then_some((series, ticks))
}

/// Accuracy against epsilon; dotted, what is reached without privacy.
pub fn tradeoff(outcomes: &Outcomes<'_>, metric: Metric, data: &str, level: Level) -> Option<Figure> {
    if level == Level::None {
        return None;
    }
    let groups = grouped(outcomes, data, level, method_name);
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
    let mut open = Vec::new();
    for (cell, outcome) in outcomes.iter().filter(|(c, _)| c.data.name == data && c.level == Level::None) {
        if let Some(value) = outcome.mean() {
            let name = method_name(cell);
            let owner = series.iter().position(|line| line.name == name);
            open.push(Reference { name: format!("{name} without privacy"), value, series: owner });
        }
    }
    // That of a method which this level does not have is of use where there is no other.
    let owned = open.iter().any(|line| line.series.is_some());
    references.extend(open.into_iter().filter(|line| line.series.is_some() || !owned));
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    let best = |line: &Series| {
        line.points.iter().map(|p| format!("{} at {}", shown(metric, p.y), p.x)).collect::<Vec<_>>()
    };
    let alt =
        series.iter().map(|line| format!("{}: {}", line.name, best(line).join(", "))).collect::<Vec<_>>();
    Some(Figure {
        id: figure_id("tradeoff", data, level),
        caption: format!("{data}, {}: {} against epsilon", level_name(outcomes, level), metric.words()),
        alt: format!(
            "{} on the test nodes at each epsilon. {}.",
            ui::capitalised(metric.words()),
            alt.join(". ")
        ),
        plot: Plot::Lines(Lines {
            x: Axis::log("epsilon", ticks),
            y: axis(metric),
            series,
            references,
            borders: vec![],
        }),
    })
}

/// A method in a legend; where both presets stand side by side, the published one is named.
fn method_name(cell: &experiment::Cell) -> String {
    let paper = cell.variant.iter().any(|(name, value)| name == PRESET && value == "paper");
    format!("{}{}", cell.method, if paper { " as published" } else { "" })
}

/// The axis of a metric: all but the log loss are shares.
fn axis(metric: Metric) -> Axis {
    let name = format!("test {}", metric.words());
    if metric == Metric::LogLoss { Axis::linear(&name) } else { Axis::percent(&name) }
}

fn shown(metric: Metric, value: f64) -> String {
    if metric == Metric::LogLoss { format!("{value:.3}") } else { share(value) }
}

fn share(value: f64) -> String {
    format!("{:.1} %", 100.0 * value)
}

/// Accuracy against depth, a line for each budget.
pub fn depth(outcomes: &Outcomes<'_>, metric: Metric, data: &str, level: Level) -> Option<Figure> {
    let depth_of = |cell: &experiment::Cell| {
        let depth = cell.variant.iter().find(|(name, _)| name == "depth")?;
        depth.1.parse::<f64>().ok()
    };
    let several = outcomes.iter().any(|(cell, _)| cell.method != outcomes[0].0.method);
    let groups = grouped(outcomes, data, level, |cell| {
        let budget = cell.epsilon.map_or("without privacy".to_string(), |e| format!("epsilon {e}"));
        if several { format!("{}, {budget}", cell.method) } else { budget }
    });
    let (series, ticks) = lines(groups, depth_of)?;
    let best = |line: &Series| {
        let better = |a: &&Point, b: &&Point| match metric.is_loss() {
            true => b.y.total_cmp(&a.y),
            false => a.y.total_cmp(&b.y),
        };
        let best = line.points.iter().max_by(better);
        best.map(|p| format!("{}: best {} at depth {}", line.name, shown(metric, p.y), p.x))
            .unwrap_or_default()
    };
    Some(Figure {
        id: figure_id("depth", data, level),
        caption: format!("{data}, {}: {} against depth", level_name(outcomes, level), metric.words()),
        alt: format!("{}.", series.iter().map(best).collect::<Vec<_>>().join("; ")),
        plot: Plot::Lines(Lines {
            x: Axis { ticks, ..Axis::linear("depth K") },
            y: axis(metric),
            series,
            references: vec![],
            borders: vec![],
        }),
    })
}

/// Accuracy against the share of labelled nodes, a line for each method.
pub fn labels(outcomes: &Outcomes<'_>, metric: Metric, data: &str, level: Level) -> Option<Figure> {
    let share_of = |cell: &experiment::Cell| {
        let share = cell.variant.iter().find(|(name, _)| name == LABELS)?;
        share.1.trim_end_matches([' ', '%']).parse::<f64>().ok()
    };
    let groups = grouped(outcomes, data, level, |cell| {
        let budget = cell.epsilon.map_or(String::new(), |epsilon| format!(", epsilon {epsilon}"));
        format!("{}{budget}", method_name(cell))
    });
    let (series, ticks) = lines(groups, share_of)?;
    let told = |line: &Series| {
        let at = |p: &Point| format!("{} at {} %", shown(metric, p.y), p.x);
        format!("{}: {}", line.name, line.points.iter().map(at).collect::<Vec<_>>().join(", "))
    };
    Some(Figure {
        id: figure_id("labels", data, level),
        caption: format!(
            "{data}, {}: {} against the share of labels",
            level_name(outcomes, level),
            metric.words()
        ),
        alt: format!("{}.", series.iter().map(told).collect::<Vec<_>>().join(". ")),
        plot: Plot::Lines(Lines {
            x: Axis::log("training nodes (%)", ticks),
            y: axis(metric),
            series,
            references: vec![],
            borders: vec![],
        }),
    })
}

/// Training and validation accuracy epoch by epoch, the mean over the runs.
pub fn convergence(outcomes: &Outcomes<'_>, data: &str, level: Level) -> Option<Figure> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_of_different_lengths_have_a_mean() {
        let curve = |val: &[f64]| Curve { val: val.iter().map(|v| Some(*v)).collect(), ..Curve::default() };
        let points = mean_curve(&[curve(&[0.25, 0.5]), curve(&[0.75])], |curve| curve.val.clone());
        assert_eq!(points.iter().map(|p| (p.x, p.y)).collect::<Vec<_>>(), [(1.0, 0.5), (2.0, 0.5)]);
    }
}
