//! Every figure as a table of the same numbers, for those who do not see it and those who want the digits.

use std::collections::HashMap;

use super::content::{Bars, Calibration, Cell, Figure, Lines, Matrix, Plot, Table};
use crate::plot::write_number;

impl Figure {
    /// The numbers of the figure.
    pub fn table(&self) -> Table {
        let (columns, rows) = match &self.plot {
            Plot::Lines(lines) => of_lines(lines),
            Plot::Bars(bars) => of_bars(bars),
            Plot::Matrix(matrix) => of_matrix(matrix),
            Plot::Calibration(calibration) => of_calibration(calibration),
        };
        Table { id: self.id.clone(), caption: self.caption.clone(), columns, rows }
    }
}

type Grid = (Vec<String>, Vec<Vec<Cell>>);

fn value(value: f64, interval: Option<(f64, f64)>, number: super::Number) -> Cell {
    if !value.is_finite() {
        return Cell::missing();
    }
    let write = |value| write_number(value, number);
    let range = interval.map(|(low, high)| format!(" ({} to {})", write(low), write(high)));
    Cell { interval, ..Cell::number(value, write(value) + &range.unwrap_or_default()) }
}

/// One row for each place on the axis below, one column for each line.
fn of_lines(lines: &Lines) -> Grid {
    let mut columns = vec![lines.x.label.clone()];
    let bordered = lines.borders.iter().any(|border| !border.name.is_empty());
    columns.extend(bordered.then(|| "part".to_string()));
    columns.extend(lines.series.iter().map(|series| series.name.clone()));
    columns.extend(lines.references.iter().map(|line| line.name.clone()));
    let mut places: Vec<f64> = lines.series.iter().flat_map(|s| s.points.iter().map(|p| p.x)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    // A long history has thousands of points.
    let by_place = |series: &super::Series| -> HashMap<u64, super::Point> {
        series.points.iter().map(|point| (point.x.to_bits(), *point)).collect()
    };
    let series: Vec<_> = lines.series.iter().map(by_place).collect();
    let row = |x: f64| {
        let mut row = vec![Cell::number(x, write_number(x, lines.x.number))];
        if bordered {
            let begun = lines.borders.iter().rfind(|border| border.at <= x);
            row.push(begun.map_or_else(Cell::missing, |border| Cell::text(&border.name)));
        }
        row.extend(series.iter().map(|series| {
            let point = series.get(&x.to_bits());
            point.map_or_else(Cell::missing, |point| value(point.y, point.interval, lines.y.number))
        }));
        row.extend(lines.references.iter().map(|line| value(line.value, None, lines.y.number)));
        row
    };
    (columns, places.into_iter().map(row).collect())
}

fn of_bars(bars: &Bars) -> Grid {
    let mut columns = vec![bars.label.clone()];
    columns.extend(bars.series.iter().map(|series| series.name.clone()));
    let row = |(place, name): (usize, &String)| {
        let mut row = vec![Cell::text(name)];
        row.extend(bars.series.iter().map(|series| {
            let bar = series.values.get(place).copied().flatten();
            bar.map_or_else(Cell::missing, |bar| value(bar.value, bar.interval, bars.y.number))
        }));
        row
    };
    (columns, bars.groups.iter().enumerate().map(row).collect())
}

fn of_matrix(matrix: &Matrix) -> Grid {
    let mut columns = vec![format!("{} / {}", matrix.row_label, matrix.column_label)];
    columns.extend(matrix.names.iter().cloned());
    let row = |(name, counts): (&String, &Vec<u64>)| {
        let counts = counts.iter().map(|&count| Cell::count(count as usize));
        std::iter::once(Cell::text(name)).chain(counts).collect()
    };
    (columns, matrix.names.iter().zip(&matrix.counts).map(row).collect())
}

fn of_calibration(calibration: &Calibration) -> Grid {
    let columns = ["probability from", "to", "predictions", "mean probability", "share that is right"];
    let percent = |share| value(share, None, super::Number::Percent);
    let row = |bin: &super::Bin| {
        vec![
            percent(bin.from),
            percent(bin.to),
            Cell::count(bin.count),
            percent(bin.confidence),
            value(bin.accuracy, Some(bin.interval), super::Number::Percent),
        ]
    };
    (columns.map(String::from).to_vec(), calibration.bins.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Axis, Border, Point, Reference, Series};

    #[test]
    fn lines_with_different_places_share_rows() {
        let series = |name: &str, xs: &[f64]| Series {
            name: name.into(),
            points: xs.iter().map(|&x| Point::within(x, x / 10.0, (0.0, 1.0))).collect(),
        };
        let lines = Lines {
            x: Axis::linear("step"),
            y: Axis::percent("accuracy"),
            series: vec![series("a", &[1.0, 2.0]), series("b", &[2.0, 3.0])],
            references: vec![Reference { name: "plain".into(), value: 0.9, series: None }],
            borders: vec![
                Border { name: "stage 0".into(), at: 1.0 },
                Border { name: "stage 1".into(), at: 3.0 },
            ],
        };
        let figure =
            Figure { id: "f".into(), caption: "c".into(), alt: "d".into(), plot: Plot::Lines(lines) };
        let expected = "step,part,a,a (low),a (high),b,b (low),b (high),plain\n\
                        1,stage 0,0.1,0,1,–,,,0.9\n\
                        2,stage 0,0.2,0,1,0.2,0,1,0.9\n\
                        3,stage 1,–,,,0.3,0,1,0.9\n";
        assert_eq!(figure.table().csv().unwrap(), expected);
    }
}
