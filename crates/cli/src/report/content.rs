//! The content of a report, apart from how it looks: sections of text, tables and figures.
//!
//! Reports fill these in; the renderers know nothing of releases or experiments.

use serde::{Deserialize, Serialize};

/// A report: a title and its sections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Its subject.
    pub title: String,
    /// One line below the title.
    pub subtitle: String,
    /// The parts, in reading order.
    pub sections: Vec<Section>,
}

/// A part of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Letters, digits and dashes; unique in the report, and the anchor of links.
    pub id: String,
    /// Its heading.
    pub heading: String,
    /// Its content, in reading order.
    pub blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant, reason = "a report has few of them")]
pub enum Block {
    /// A paragraph of text.
    Paragraph(String),
    /// A paragraph that must not be overlooked.
    Notice(Tone, String),
    /// A list of sentences.
    List(Vec<String>),
    /// Names and values.
    Facts(Vec<(String, String)>),
    /// Text to be copied as it is, such as a command or a file, with a name.
    Code {
        /// The name of the text.
        name: String,
        /// The text.
        text: String,
    },
    /// A table.
    Table(Table),
    /// A figure over the whole width.
    Figure(Figure),
    /// Figures beside each other where there is room, as the panels of one picture.
    Panels(Vec<Figure>),
}

/// How a notice is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tone {
    /// A guarantee that holds.
    Good,
    /// Something to take care of.
    Caution,
}

/// A table. Its first column names the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Letters, digits and dashes; unique among the tables of a report, and the name of its files.
    pub id: String,
    /// The text above it.
    pub caption: String,
    /// The headings.
    pub columns: Vec<String>,
    /// The rows; each as long as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// As people read it.
    pub text: String,
    /// The number behind it, with all its digits, for CSV files.
    pub value: Option<f64>,
    /// The interval around it, for CSV files; the text says it in its own way.
    pub interval: Option<(f64, f64)>,
    /// Whether it stands out, as the best of its column does.
    pub bold: bool,
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// A number and how it is written.
    pub fn number(value: f64, text: impl Into<String>) -> Cell {
        Cell { text: text.into(), value: Some(value), ..Cell::default() }
    }

    /// A whole number with its thousands separated.
    pub fn count(number: usize) -> Cell {
        Cell::number(number as f64, crate::ui::count(number))
    }

    /// A share as a percentage with one digit after the point; a dash where there is none.
    pub fn percent(share: f64) -> Cell {
        if share.is_finite() {
            Cell::number(share, format!("{:.1} %", 100.0 * share))
        } else {
            Cell::missing()
        }
    }

    /// A share and the interval around it, as percentages: 87.3 % (86.9 to 87.8).
    pub fn percent_within(share: f64, interval: (f64, f64)) -> Cell {
        let text = format!("{:.1} % ({:.1} to {:.1})", 100.0 * share, 100.0 * interval.0, 100.0 * interval.1);
        Cell { interval: Some(interval), ..Cell::number(share, text) }
    }

    /// Nothing to show.
    pub fn missing() -> Cell {
        Cell::text("–")
    }

    /// The same, standing out.
    #[must_use]
    pub fn bold(self) -> Cell {
        Cell { bold: true, ..self }
    }
}

/// A figure. Its table alternative is made of the same numbers ([`Figure::table`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Letters, digits and dashes; unique among the figures of a report, and the name of its files.
    pub id: String,
    /// The text below it.
    pub caption: String,
    /// The message for a reader who does not see it, rather than its look.
    pub alt: String,
    /// The drawing.
    pub plot: Plot,
}

/// The kinds of figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Plot {
    /// Values along an axis.
    Lines(Lines),
    /// Values side by side.
    Bars(Bars),
    /// How often each pair occurs.
    Matrix(Matrix),
    /// How often a prediction is right beside how sure it is.
    Calibration(Calibration),
}

/// How values lie along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scale {
    /// Equal steps are equal differences.
    Linear,
    /// Equal steps are equal ratios; values must be positive.
    Log,
}

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Number {
    /// As it is, with up to four digits after the point.
    Plain,
    /// A share as a percentage.
    Percent,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// The quantity along it.
    pub label: String,
    /// How.
    pub scale: Scale,
    /// How its values are written.
    pub number: Number,
    /// From where to where; as the values ask for where it is not given.
    pub range: Option<(f64, f64)>,
    /// The values to be written beside it; round ones where none are given.
    pub ticks: Vec<f64>,
}

impl Axis {
    /// A linear axis that fits its values.
    pub fn linear(label: impl Into<String>) -> Axis {
        let (scale, number) = (Scale::Linear, Number::Plain);
        Axis { label: label.into(), scale, number, range: None, ticks: vec![] }
    }

    /// A linear axis of shares, written as percentages.
    pub fn percent(label: impl Into<String>) -> Axis {
        Axis { number: Number::Percent, ..Axis::linear(label) }
    }

    /// A logarithmic axis with these values written beside it.
    pub fn log(label: impl Into<String>, ticks: Vec<f64>) -> Axis {
        Axis { scale: Scale::Log, ticks, ..Axis::linear(label) }
    }

    /// The same from one value to another.
    #[must_use]
    pub fn within(self, from: f64, to: f64) -> Axis {
        Axis { range: Some((from, to)), ..self }
    }
}

/// Lines over an axis, each with a marker and dashes of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// The axis below.
    pub x: Axis,
    /// The axis beside.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// Dotted level lines to compare with, such as the accuracy without privacy.
    pub references: Vec<Reference>,
    /// Upright lines where something begins, such as a stage of training.
    pub borders: Vec<Border>,
}

/// One line of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// From left to right. A value that is not finite leaves a gap.
    pub points: Vec<Point>,
}

/// A point of a line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Along the axis below.
    pub x: f64,
    /// Along the axis beside.
    pub y: f64,
    /// The interval around `y`, drawn as a band.
    pub interval: Option<(f64, f64)>,
}

impl Point {
    /// A point without an interval.
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y, interval: None }
    }

    /// A point with the interval around its height.
    #[cfg(test)]
    pub fn within(x: f64, y: f64, interval: (f64, f64)) -> Point {
        Point { x, y, interval: Some(interval) }
    }
}

/// A dotted level line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// Its name in the legend.
    pub name: String,
    /// Its height.
    pub value: f64,
    /// The line, by position, whose colour it takes; the text colour where it belongs to none.
    pub series: Option<usize>,
}

/// An upright line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Border {
    /// The name of what begins there; may be empty.
    pub name: String,
    /// Where.
    pub at: f64,
}

/// Groups of bars.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// The name of the groups.
    pub label: String,
    /// The axis of the values.
    pub y: Axis,
    /// The groups.
    pub groups: Vec<String>,
    /// The bars of one colour, one in each group.
    pub series: Vec<BarSeries>,
    /// Dotted level lines to compare with.
    pub references: Vec<Reference>,
}

/// The bars of one colour.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BarSeries {
    /// Its name in the legend.
    pub name: String,
    /// A value for each group; `None` where there is none.
    pub values: Vec<Option<Bar>>,
}

/// A bar.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Its height.
    pub value: f64,
    /// The interval around it.
    pub interval: Option<(f64, f64)>,
}

/// How often each true class was taken for each class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// The name of the rows.
    pub row_label: String,
    /// The name of the columns.
    pub column_label: String,
    /// The names of the rows and of the columns.
    pub names: Vec<String>,
    /// Row after row.
    pub counts: Vec<Vec<u64>>,
}

/// How often predictions are right, beside how sure they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Predictions by how sure they are; those without any prediction are left out.
    pub bins: Vec<Bin>,
    /// The mean distance between both, weighted by the number of predictions.
    pub expected_error: f64,
}

/// Predictions that are about equally sure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// The least probability of the predicted class.
    pub from: f64,
    /// The largest.
    pub to: f64,
    /// The number of predictions.
    pub count: usize,
    /// The mean probability of the predicted class.
    pub confidence: f64,
    /// The share that is right.
    pub accuracy: f64,
    /// A 95 % interval for that share.
    pub interval: (f64, f64),
}
