//! The table of accuracies, or of another metric: methods, levels, budgets and variants by data sets.

use progap::method::catalogue;
use progap::settings::{Level, MethodKind, Metric};
use progap_experiments::{self as experiment, MIN_RUNS, Name, Outcome, published};

use super::content::{Outcomes, data_names, delta, epsilon, too_few_runs, unit_note};
use crate::report::{Cell, Table};

/// Whom a figure that stands out is compared with.
const BEST: &str = "What stands out is the best of those with the same guarantee, that is the same unit, epsilon and \
                    delta; guarantees that differ are not compared.";

/// The name of a column of the paper's own figures.
const PUBLISHED: &str = "published";

/// 77.2 +- 0.33, in percent; of a log loss 0.634 +- 0.012.
fn accuracy(metric: Metric, outcome: &Outcome) -> Cell {
    let Some(mean) = outcome.mean().filter(|mean| mean.is_finite()) else { return Cell::missing() };
    let (scale, digits) = if metric == Metric::LogLoss { (1.0, 3) } else { (100.0, 1) };
    let Some((low, high)) = outcome.interval() else {
        return Cell::number(mean, format!("{:.digits$}", scale * mean));
    };
    let text = format!("{:.digits$} ± {:.*}", scale * mean, digits.max(2), 0.5 * scale * (high - low));
    Cell { interval: Some((low, high)), ..Cell::number(mean, text) }
}

/// The key that tells the rows of the table of accuracies apart.
#[derive(PartialEq)]
struct RowKey<'c> {
    level: Level,
    method: MethodKind,
    epsilon: Option<f64>,
    variant: &'c [(String, String)],
}

impl<'c> RowKey<'c> {
    fn of(cell: &'c experiment::Cell) -> RowKey<'c> {
        RowKey { level: cell.level, method: cell.method, epsilon: cell.epsilon, variant: &cell.variant }
    }
}

/// What a figure is measured under: figures compete with those under the same guarantee alone.
#[derive(Clone, Copy, PartialEq)]
struct Guarantee {
    level: Level,
    undirected: bool,
    /// That of the choice where settings were chosen by private tuning.
    epsilon: Option<f64>,
    delta: Option<f64>,
    covers_predictions: bool,
}

impl Guarantee {
    fn of(cell: &experiment::Cell, outcome: &Outcome) -> Guarantee {
        Guarantee {
            level: cell.level,
            undirected: outcome.chosen.as_ref().is_some_and(|settings| settings.undirected),
            epsilon: outcome.budget.map_or(cell.epsilon, |budget| Some(budget.tuned)),
            delta: outcome.delta,
            // Without privacy there is nothing to cover.
            covers_predictions: cell.level == Level::None || catalogue::covers_predictions(cell.method),
        }
    }
}

/// The figure that others found for a row.
type FigureOf<'f> = &'f dyn Fn(&RowKey<'_>) -> Option<Cell>;

/// Methods, levels, budgets and variants by data sets; beside ours what others found.
pub fn accuracies(name: Name, metric: Metric, outcomes: &Outcomes<'_>) -> Table {
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
    let names = data_names(outcomes);
    let found = |data: &str, row: &RowKey<'_>| {
        outcomes.iter().find(|(cell, _)| cell.data.name == data && RowKey::of(cell) == *row)
    };
    let delta_of = |data: &str, row: &RowKey<'_>| {
        found(data, row).map_or_else(Cell::missing, |(_, outcome)| delta(outcome))
    };
    // Delta follows from the number of records: it is that of a row where all data sets have the same, or there is one.
    let same_delta = rows.iter().all(|row| {
        let known = names.iter().filter(|data| found(data, row).is_some());
        let deltas: Vec<Cell> = known.map(|data| delta_of(data, row)).collect();
        deltas.windows(2).all(|pair| pair[0] == pair[1])
    });
    let mut columns: Vec<String> = ["method", "level", "epsilon"].map(String::from).into();
    columns.extend(same_delta.then(|| "delta".to_string()));
    columns.extend(variants.iter().map(std::string::ToString::to_string));
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
            let first = names.iter().find(|data| found(data, row).is_some());
            cells.extend(first.filter(|_| same_delta).map(|data| delta_of(data, row)));
            cells.extend(variants.iter().map(variant));
            cells
        })
        .collect();
    for data in &names {
        if !same_delta {
            columns.push(format!("{data}, delta"));
            for (row, cells) in rows.iter().zip(&mut body) {
                cells.push(delta_of(data, row));
            }
        }
        columns.push(if metric == Metric::LogLoss { data.clone() } else { format!("{data} (%)") });
        for (row, cells) in rows.iter().zip(&mut body) {
            cells.push(found(data, row).map_or_else(Cell::missing, |(_, outcome)| accuracy(metric, outcome)));
        }
        let guarantees: Vec<Option<Guarantee>> = rows
            .iter()
            .map(|row| found(data, row).map(|(cell, outcome)| Guarantee::of(cell, outcome)))
            .collect();
        mark_best(&guarantees, &mut body, columns.len() - 1, metric);
        let known = |row: &RowKey<'_>| {
            let method = row.method.to_string();
            let figure = published::published(data, &method, row.level, row.epsilon)?;
            let half = figure.half.map(|half| format!(" ± {half:.2}")).unwrap_or_default();
            let interval = |half| ((figure.mean - half) / 100.0, (figure.mean + half) / 100.0);
            let cell = Cell::number(figure.mean / 100.0, format!("{:.1}{half}", figure.mean));
            Some(Cell { interval: figure.half.map(interval), ..cell })
        };
        let measured = |row: &RowKey<'_>| {
            let figure = published::measured(data, &row.method.to_string(), row.level, row.epsilon)?;
            let depth = if figure.depth > 0 { format!(" (depth {})", figure.depth) } else { String::new() };
            Some(Cell::number(figure.mean / 100.0, format!("{:.1}{depth}", figure.mean)))
        };
        let beside: [(&str, FigureOf<'_>); 2] = [(PUBLISHED, &known), ("original code, measured", &measured)];
        // The figures of others were not measured on variants; where there are several, the column would repeat itself.
        for (name, figure) in
            beside.into_iter().filter(|_| name == Name::Table2 && metric == Metric::Accuracy)
        {
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
    let what = match metric {
        Metric::Accuracy => "Test accuracy in percent".to_string(),
        Metric::LogLoss => "Log loss on the test nodes".into(),
        _ => format!("On the test nodes, {} in percent", metric.words()),
    };
    let interval = match too_few_runs(outcomes) {
        true => format!("; fewer than {MIN_RUNS} are too few for an interval"),
        false => ", and half of its 95 % bootstrap interval (1000 resamples)".into(),
    };
    let mut caption = format!("{what}: mean over the runs{interval}. {BEST}") + &unit_note(outcomes);
    if rows.iter().any(|row| row.level != Level::None && !catalogue::covers_predictions(row.method)) {
        caption += " The guarantee of dp-gnn covers training and not predictions: it competes with no other.";
    }
    if columns.iter().any(|column| column.contains(PUBLISHED)) {
        caption += " Published figures are of the paper's own data, fb-100 of all hundred schools, and of settings \
            tuned by \
                    its grid.";
    }
    Table { id: "accuracy".into(), caption, columns, rows: body }
}

/// Makes the best of all figures with the same guarantee stand out in a column, where there are several.
fn mark_best(guarantees: &[Option<Guarantee>], body: &mut [Vec<Cell>], column: usize, metric: Metric) {
    let better = |a: f64, b: f64| if metric.is_loss() { a < b } else { a > b };
    for at in 0..body.len() {
        let Some(own) = body[at][column].value else { continue };
        let rivals = || (0..body.len()).filter(|&other| other != at && guarantees[other] == guarantees[at]);
        let mut values = rivals().filter_map(|other| Some((other, body[other][column].value?))).peekable();
        // Of equals the first.
        let alone = values.peek().is_none();
        let best = !alone && values.all(|(other, value)| better(own, value) || own == value && at < other);
        body[at][column].bold = best;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(values: &[f64]) -> Outcome {
        Outcome { values: values.to_vec(), ..Outcome::default() }
    }

    fn cell(method: MethodKind, level: Level, epsilon: Option<f64>) -> experiment::Cell {
        let data = experiment::DataSpec {
            name: "facebook".into(),
            content: serde_json::Value::Null,
            place: serde_json::Value::Null,
        };
        experiment::Cell { data, method, level, epsilon, variant: vec![], candidates: vec![] }
    }

    /// An outcome under a delta.
    fn under(delta: f64, values: &[f64]) -> Outcome {
        Outcome { delta: Some(delta), ..outcome(values) }
    }

    fn bold(cells: &[(experiment::Cell, Outcome)], column: usize) -> Vec<bool> {
        let outcomes: Vec<(&experiment::Cell, Outcome)> = cells.iter().map(|(c, o)| (c, o.clone())).collect();
        let table = accuracies(Name::Table2, Metric::Accuracy, &outcomes);
        table.rows.iter().map(|row| row[column].bold).collect()
    }

    /// A guarantee with a delta of zero says more, and so does an epsilon of zero: they compete with their like alone.
    #[test]
    fn the_best_of_those_with_the_same_guarantee_stands_out() {
        let edge = |method, epsilon, delta, value| {
            (cell(method, Level::Edge, Some(epsilon)), under(delta, &[value]))
        };
        let cells = [
            edge(MethodKind::ProgapLabels, 1.0, 1e-7, 0.8),
            edge(MethodKind::Gap, 1.0, 1e-7, 0.7),
            edge(MethodKind::Lpgnet, 1.0, 0.0, 0.9),
            edge(MethodKind::EdgeRand, 1.0, 0.0, 0.6),
            edge(MethodKind::Mlp, 0.0, 0.0, 0.95),
            edge(MethodKind::ProgapLabels, 2.0, 1e-7, 0.85),
        ];
        assert_eq!(bold(&cells, 4), [true, false, true, false, false, false]);
        // The same epsilon for an undirected edge is another guarantee, and so is another delta.
        let mut other = cells[..2].to_vec();
        let settings = progap::Settings::of(MethodKind::Gap, Level::Edge);
        other[1].1.chosen = Some(progap::Settings { undirected: true, ..settings });
        assert_eq!(bold(&other, 4), [false, false]);
        let other = [cells[0].clone(), edge(MethodKind::Gap, 1.0, 1e-5, 0.7)];
        assert_eq!(bold(&other, 4), [false, false]);
        // A guarantee that covers training alone is another one.
        let node = |method, value| (cell(method, Level::Node, Some(8.0)), under(1e-5, &[value]));
        let other =
            [node(MethodKind::ProgapLabels, 0.7), node(MethodKind::DpGnn, 0.9), node(MethodKind::Gap, 0.6)];
        assert_eq!(bold(&other, 4), [true, false, false]);
    }

    #[test]
    fn table_2_has_deltas_and_the_published_figures_beside_ours() {
        let cells = [
            (cell(MethodKind::Progap, Level::None, None), outcome(&[0.84, 0.86, 0.85, 0.85, 0.85])),
            (cell(MethodKind::Gap, Level::None, None), outcome(&[0.80])),
            (cell(MethodKind::Mlp, Level::Edge, Some(0.0)), under(0.0, &[0.9])),
            (cell(MethodKind::Progap, Level::Edge, Some(1.0)), under(1e-7, &[0.7])),
            (cell(MethodKind::Progap, Level::Node, Some(8.0)), outcome(&[])),
        ];
        let outcomes: Vec<(&experiment::Cell, Outcome)> = cells.iter().map(|(c, o)| (c, o.clone())).collect();
        let table = accuracies(Name::Table2, Metric::Accuracy, &outcomes);
        assert_eq!(table.columns[2..], ["epsilon", "delta", "facebook (%)", "facebook, published (%)"]);
        let text = |row: usize, column: usize| table.rows[row][column].text.as_str();
        assert_eq!([text(0, 3), text(2, 3), text(3, 3)], ["–", "0", "1e-7"]);
        assert!(text(0, 4).starts_with("85.0 ± "), "{}", text(0, 4));
        assert_eq!(text(1, 4), "80.0", "one run has no interval");
        assert!(table.caption.contains("too few for an interval"), "{}", table.caption);
        assert_eq!([text(0, 5), text(2, 5), text(3, 5)], ["84.5 ± 0.24", "50.8 ± 0.20", "77.2 ± 0.33"]);
        let bold: Vec<bool> = table.rows.iter().map(|row| row[4].bold).collect();
        assert_eq!(bold, [true, false, false, false, false]);
        assert!(table.caption.contains("the same unit, epsilon and delta"), "{}", table.caption);
        assert_eq!(text(4, 4), Cell::missing().text);
    }

    /// Data sets of different sizes have deltas of their own.
    #[test]
    fn each_data_set_has_its_delta_where_they_differ() {
        let mut other = cell(MethodKind::Gap, Level::Edge, Some(1.0));
        other.data.name = "reddit".into();
        let cells = [
            (cell(MethodKind::Gap, Level::Edge, Some(1.0)), under(1e-7, &[0.7])),
            (other, under(1e-8, &[0.8])),
        ];
        let outcomes: Vec<(&experiment::Cell, Outcome)> = cells.iter().map(|(c, o)| (c, o.clone())).collect();
        let table = accuracies(Name::Tradeoff, Metric::Accuracy, &outcomes);
        let expected = ["facebook, delta", "facebook (%)", "reddit, delta", "reddit (%)"];
        assert_eq!(table.columns[3..], expected);
        let row: Vec<&str> = table.rows[0].iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(row[3..], ["1e-7", "70.0", "1e-8", "80.0"]);
    }
}
