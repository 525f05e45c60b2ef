//! The table of accuracies, or of another metric: methods, levels, budgets and variants by data sets.

use std::collections::BTreeMap;

use progap::experiment::{self, Name, Outcome, published};
use progap::settings::{Level, Method, Metric};

use super::content::{Outcomes, data_names, epsilon, unit_note};
use crate::report::{Cell, Table};

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
    method: Method,
    epsilon: Option<f64>,
    variant: &'c [(String, String)],
}

/// A level, and an epsilon (its bits) with or without a delta.
type Group = (u8, Option<(u64, bool)>);

impl<'c> RowKey<'c> {
    fn of(cell: &'c experiment::Cell) -> RowKey<'c> {
        RowKey { level: cell.level, method: cell.method, epsilon: cell.epsilon, variant: &cell.variant }
    }

    /// Rows within which the best stands out: those with the same guarantee.
    fn group(&self) -> Group {
        // A method that touches no edge competes with those at any budget, as in the paper; one with a delta of zero does not
        // compete with those that have one.
        let budget = self.epsilon.filter(|epsilon| *epsilon > 0.0);
        (self.level as u8, budget.map(|epsilon| (epsilon.to_bits(), self.method.has_delta())))
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
    let mut columns: Vec<String> = ["method", "level", "epsilon"].map(String::from).into();
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
            cells.extend(variants.iter().map(variant));
            cells
        })
        .collect();
    for data in data_names(outcomes) {
        let of = |row: &RowKey<'_>| {
            outcomes.iter().find(|(cell, _)| cell.data.name == data && RowKey::of(cell) == *row)
        };
        columns.push(if metric == Metric::LogLoss { data.clone() } else { format!("{data} (%)") });
        for (row, cells) in rows.iter().zip(&mut body) {
            cells.push(of(row).map_or_else(Cell::missing, |(_, outcome)| accuracy(metric, outcome)));
        }
        mark_best(&rows, &mut body, columns.len() - 1, metric);
        let known = |row: &RowKey<'_>| {
            let method = row.method.to_string();
            let figure = published::published(&data, &method, row.level, row.epsilon)?;
            let half = figure.half.map(|half| format!(" ± {half:.2}")).unwrap_or_default();
            let interval = |half| ((figure.mean - half) / 100.0, (figure.mean + half) / 100.0);
            let cell = Cell::number(figure.mean / 100.0, format!("{:.1}{half}", figure.mean));
            Some(Cell { interval: figure.half.map(interval), ..cell })
        };
        let measured = |row: &RowKey<'_>| {
            let figure = published::measured(&data, &row.method.to_string(), row.level, row.epsilon)?;
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
    let mut caption = format!(
        "{what}: mean over the runs, and half of its 95 % bootstrap interval (1000 resamples). The best with the same \
         guarantee stands out."
    ) + &unit_note(outcomes);
    if columns.iter().any(|column| column.contains(PUBLISHED)) {
        caption += " Published figures are of the paper's own data, fb-100 of all hundred schools, and of settings tuned by \
                    its grid.";
    }
    Table { id: "accuracy".into(), caption, columns, rows: body }
}

/// Makes the best of each group of rows stand out in a column.
fn mark_best(rows: &[RowKey<'_>], body: &mut [Vec<Cell>], column: usize, metric: Metric) {
    let group = |at: usize| rows[at].group();
    // A row without a budget of its own belongs to the only group of its level, if there is one.
    let mut best: BTreeMap<Group, (f64, usize, usize)> = BTreeMap::new();
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
        if if metric.is_loss() { value < entry.0 } else { value > entry.0 } {
            (entry.0, entry.1) = (value, at);
        }
    }
    for (_, at, _) in best.values().filter(|(_, _, count)| *count > 1) {
        body[*at][column].bold = true;
    }
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

    /// A guarantee with a delta of zero says more: lpgnet and edge-rand compete with each other alone.
    #[test]
    fn methods_without_a_delta_compete_among_themselves() {
        let cells = [
            (cell(Method::Progap, Level::Edge, Some(1.0)), outcome(&[0.8])),
            (cell(Method::Gap, Level::Edge, Some(1.0)), outcome(&[0.7])),
            (cell(Method::Lpgnet, Level::Edge, Some(1.0)), outcome(&[0.9])),
            (cell(Method::EdgeRand, Level::Edge, Some(1.0)), outcome(&[0.6])),
        ];
        let outcomes: Vec<(&experiment::Cell, Outcome)> = cells.iter().map(|(c, o)| (c, o.clone())).collect();
        let table = accuracies(Name::Table2, Metric::Accuracy, &outcomes);
        let bold: Vec<bool> = table.rows.iter().map(|row| row[3].bold).collect();
        assert_eq!(bold, [true, false, true, false]);
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
        let table = accuracies(Name::Table2, Metric::Accuracy, &outcomes);
        assert_eq!(table.columns[3..], ["facebook (%)", "facebook, published (%)"]);
        let text = |row: usize, column: usize| table.rows[row][column].text.as_str();
        assert!(text(0, 3).starts_with("85.0 ± "), "{}", text(0, 3));
        assert_eq!([text(0, 4), text(2, 4), text(3, 4)], ["84.5 ± 0.24", "50.8 ± 0.20", "77.2 ± 0.33"]);
        let bold: Vec<bool> = table.rows.iter().map(|row| row[3].bold).collect();
        assert_eq!(bold, [true, false, true, false, false]);
        assert_eq!(text(4, 3), Cell::missing().text);
    }
}
