//! Lines over an axis.

use super::axis::{Ruler, write};
use super::frame::{self, Area, Entry, Sign, VALUES};
use super::picture::{Anchor, DASHES, DOTS, Picture, Role, text_width};
use crate::report::{Axis, Border, Lines, Point, Reference, Series};

/// With more points than this, only some of them get a marker.
const MANY: usize = 30;
/// With more points than this, only some of them can be pointed at; the table has them all.
const TOO_MANY: usize = 300;

pub fn draw(picture: &mut Picture, title: &str, lines: &Lines) {
    let narrow = frame::is_narrow(picture);
    let xs = lines.series.iter().flat_map(|series| series.points.iter().map(|point| point.x));
    let x = Ruler::new(&lines.x, xs, if narrow { 4 } else { 8 });
    let x = match (lines.x.range, lines.x.ticks.is_empty(), extent(lines)) {
        // Round values stay, but the axis ends where the lines do.
        (None, true, Some(range)) => {
            Ruler::new(&lines.x.clone().within(range.0, range.1), [].into_iter(), if narrow { 4 } else { 8 })
        }
        _ => x,
    };
    let points = || lines.series.iter().flat_map(|series| &series.points);
    let ys = points().flat_map(|point| {
        let (low, high) = point.interval.unwrap_or((point.y, point.y));
        [point.y, low, high]
    });
    let y = Ruler::new(&lines.y, ys.chain(lines.references.iter().map(|line| line.value)), 5);
    let entries: Vec<Entry> = lines
        .series
        .iter()
        .enumerate()
        .map(series_entry)
        .chain(references(&lines.references, &lines.y))
        .collect();
    let top = frame::head(picture, title, &entries) + if lines.borders.is_empty() { 0.0 } else { 16.0 };
    let height = if narrow { 200.0 } else { 290.0 };
    let area = Area { left: frame::left_margin(&y), top, right: picture.width - 16.0, bottom: top + height };
    let (x, y) = (x.between(area.left, area.right), y.between(area.bottom, area.top));
    frame::draw_y(picture, area, &y, &lines.y.label);
    draw_borders(picture, area, &x, &lines.borders);
    picture.height = frame::draw_x(picture, area, &x, &lines.x.label);
    draw_references(picture, area, &y, &lines.references);
    for (number, series) in lines.series.iter().enumerate() {
        draw_band(picture, &x, &y, number, series);
    }
    for (number, series) in lines.series.iter().enumerate() {
        draw_line(picture, &x, &y, number, series);
    }
    for (number, series) in lines.series.iter().enumerate() {
        let stride = series.points.len().div_ceil(TOO_MANY).max(1);
        let visible = |point: &&Point| x.holds(point.x) && y.holds(point.y);
        for point in series.points.iter().step_by(stride).filter(visible) {
            picture.tooltip((x.at(point.x), y.at(point.y)), number, read_out(lines, series, point));
        }
    }
}

/// From the first to the last point, if they differ.
fn extent(lines: &Lines) -> Option<(f64, f64)> {
    let log = lines.x.scale == crate::report::Scale::Log;
    let usable = |x: &f64| x.is_finite() && (!log || *x > 0.0);
    let xs =
        || lines.series.iter().flat_map(|series| series.points.iter().map(|point| point.x)).filter(usable);
    let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
    (low < high).then_some((low, high))
}

fn series_entry((number, series): (usize, &Series)) -> Entry {
    let sign = if series.points.len() == 1 { Sign::Point(number) } else { Sign::Line(number) };
    Entry { name: series.name.clone(), role: Role::Series(number), sign }
}

/// Level lines in the legend, with their values.
pub fn references<'a>(lines: &'a [Reference], y: &'a Axis) -> impl Iterator<Item = Entry> + 'a {
    lines.iter().map(|line| Entry {
        name: format!("{}: {}", line.name, write(line.value, y.number)),
        role: reference_role(line),
        sign: Sign::Dotted,
    })
}

fn reference_role(line: &Reference) -> Role {
    line.series.map_or(Role::Text, Role::Series)
}

/// Level lines in the plotting area.
pub fn draw_references(picture: &mut Picture, area: Area, y: &Ruler, lines: &[Reference]) {
    for line in lines.iter().filter(|line| y.holds(line.value)) {
        let at = y.at(line.value);
        picture.line(vec![(area.left, at), (area.right, at)], reference_role(line), 1.8, DOTS);
    }
}

fn draw_borders(picture: &mut Picture, area: Area, x: &Ruler, borders: &[Border]) {
    let places: Vec<f32> = borders.iter().map(|border| x.at(x.clamp(border.at))).collect();
    for (number, (border, &at)) in borders.iter().zip(&places).enumerate() {
        let room = places.get(number + 1).unwrap_or(&area.right) - at - 4.0;
        // Where the name does not fit, its last word does: "2" of "stage 2".
        let last = border.name.rsplit(' ').next().unwrap_or_default();
        let name = [border.name.as_str(), last].into_iter().find(|name| text_width(name, VALUES) <= room);
        picture.line(vec![(at, area.top - 14.0), (at, area.bottom)], Role::Muted, 1.0, &[4.0, 3.0]);
        picture.text(
            (at + 4.0, area.top - 5.0),
            VALUES,
            Anchor::Start,
            Role::Muted,
            name.unwrap_or_default(),
        );
    }
}

fn draw_band(picture: &mut Picture, x: &Ruler, y: &Ruler, number: usize, series: &Series) {
    let visible = |point: &Point| x.holds(point.x) && point.interval.is_some_and(|(low, high)| low <= high);
    let at = |point: &Point, value: f64| (x.at(point.x), y.at(y.clamp(value)));
    for run in series.points.split(|point| !visible(point)).filter(|run| !run.is_empty()) {
        let interval = |point: &Point| point.interval.unwrap_or((point.y, point.y));
        if let [point] = run {
            let (low, high) = interval(point);
            frame::whisker(
                picture,
                at(point, low).0,
                (at(point, low).1, at(point, high).1),
                Role::Series(number),
            );
            continue;
        }
        let upper = run.iter().map(|point| at(point, interval(point).1));
        let lower = run.iter().rev().map(|point| at(point, interval(point).0));
        picture.area(upper.chain(lower).collect(), Role::Series(number), 0.16);
    }
}

fn draw_line(picture: &mut Picture, x: &Ruler, y: &Ruler, number: usize, series: &Series) {
    let visible = |point: &Point| x.holds(point.x) && y.holds(point.y);
    let at = |point: &Point| (x.at(point.x), y.at(point.y));
    let width = if series.points.len() > MANY { 1.8 } else { 2.2 };
    // A line breaks where a value is missing.
    for run in series.points.split(|point| !visible(point)).filter(|run| run.len() > 1) {
        picture.line(
            run.iter().map(at).collect(),
            Role::Series(number),
            width,
            DASHES[number % DASHES.len()],
        );
    }
    let stride = if series.points.len() > MANY { series.points.len().div_ceil(10) } else { 1 };
    // Markers of different lines do not lie on each other.
    let first = if stride == 1 { 0 } else { number * stride / 4 % stride };
    for point in series.points.iter().skip(first).step_by(stride).filter(|point| visible(point)) {
        let size = if series.points.len() == 1 { 5.0 } else { 3.8 };
        picture.mark(at(point), number, size, Role::Series(number));
    }
}

/// A point as it is read out.
fn read_out(lines: &Lines, series: &Series, point: &Point) -> String {
    let (x, y) = (write(point.x, lines.x.number), write(point.y, lines.y.number));
    let interval = point.interval.map(|interval| within(interval, &lines.y)).unwrap_or_default();
    format!("{}, {} {x}: {y}{interval}", series.name, lines.x.label)
}

/// An interval as it is read out.
pub fn within((low, high): (f64, f64), axis: &Axis) -> String {
    format!(" ({} to {})", write(low, axis.number), write(high, axis.number))
}
