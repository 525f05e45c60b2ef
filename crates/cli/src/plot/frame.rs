//! The frame of figures: a title, a legend, two axes.

use super::axis::Ruler;
use super::picture::{Anchor, At, DASHES, DOTS, Picture, Role, fitting, text_width};

/// The size of ordinary words.
pub const WORDS: f32 = 12.5;
/// The size of values beside an axis.
pub const VALUES: f32 = 11.5;

/// Narrower than this, a picture is for a phone or a panel.
const NARROW: f32 = 500.0;

/// Whether there is little room.
pub fn is_narrow(picture: &Picture) -> bool {
    picture.width < NARROW
}

/// The plotting area.
#[derive(Clone, Copy)]
pub struct Area {
    pub left: f32,
    pub top: f32,
    pub right: f32,
    pub bottom: f32,
}

/// A line of the legend.
pub struct Entry {
    pub name: String,
    pub role: Role,
    pub sign: Sign,
}

/// How something looks in the legend.
pub enum Sign {
    /// A line with a marker.
    Line(usize),
    /// A marker alone.
    Point(usize),
    /// A level line to compare with.
    Dotted,
    /// A filled box with a marker.
    Bar(usize),
}

/// Writes a title and a legend at the top, and says where they end.
pub fn head(picture: &mut Picture, title: &str, entries: &[Entry]) -> f32 {
    let mut top = 8.0;
    if !title.is_empty() {
        picture.text(
            (8.0, 24.0),
            15.0,
            Anchor::Start,
            Role::Text,
            fitting(title, 15.0, picture.width - 16.0),
        );
        top = 38.0;
    }
    if entries.is_empty() {
        return top + 8.0;
    }
    let (sample, gap, step) = (34.0, 18.0, 20.0);
    let (mut x, mut y) = (8.0, top + 10.0);
    for entry in entries {
        let name = fitting(&entry.name, WORDS, picture.width - 24.0 - sample);
        let length = sample + 6.0 + text_width(&name, WORDS);
        if x > 8.0 && x + length > picture.width - 8.0 {
            (x, y) = (8.0, y + step);
        }
        draw_sign(picture, (x, y), sample, entry);
        picture.text((x + sample + 6.0, y + 4.0), WORDS, Anchor::Start, Role::Text, name);
        x += length + gap;
    }
    y + 20.0
}

fn draw_sign(picture: &mut Picture, (x, y): At, length: f32, entry: &Entry) {
    let ends = vec![(x, y), (x + length, y)];
    match entry.sign {
        Sign::Line(style) => {
            picture.line(ends, entry.role, 2.2, DASHES[style % DASHES.len()]);
            picture.mark((x + 0.5 * length, y), style, 3.8, entry.role);
        }
        Sign::Point(style) => picture.mark((x + 0.5 * length, y), style, 5.0, entry.role),
        Sign::Dotted => picture.line(ends, entry.role, 1.8, DOTS),
        Sign::Bar(style) => {
            picture.rectangle((x + 6.0, y - 6.0), (x + length, y + 6.0), entry.role, 0.75);
            picture.mark((x + 0.5 * length + 3.0, y), style, 3.2, Role::Ground);
        }
    }
}

/// The room that the values and the name of an axis need on its left.
pub fn left_margin(y: &Ruler) -> f32 {
    let widest = y.ticks.iter().map(|(_, text)| text_width(text, VALUES)).fold(0.0, f32::max);
    30.0 + widest + 8.0
}

/// Draws level lines with their values, and the name of the axis beside them.
pub fn draw_y(picture: &mut Picture, area: Area, y: &Ruler, label: &str) {
    for (value, text) in y.ticks.iter().filter(|(value, _)| y.holds(*value)) {
        let at = y.at(*value);
        picture.line(vec![(area.left, at), (area.right, at)], Role::Grid, 1.0, &[]);
        picture.text((area.left - 7.0, at + 4.0), VALUES, Anchor::End, Role::Muted, text);
    }
    let middle = 0.5 * (area.top + area.bottom);
    let label = fitting(label, WORDS, area.bottom - area.top + 30.0);
    picture.turned((17.0, middle), WORDS, Anchor::Middle, 90.0, Role::Text, label);
}

/// Draws the values and the name of the axis below, and the line it stands on; says where that ends.
pub fn draw_x(picture: &mut Picture, area: Area, x: &Ruler, label: &str) -> f32 {
    picture.line(vec![(area.left, area.bottom), (area.right, area.bottom)], Role::Text, 1.2, &[]);
    let mut free = f32::NEG_INFINITY;
    for (value, text) in x.ticks.iter().filter(|(value, _)| x.holds(*value)) {
        let at = x.at(*value);
        picture.line(vec![(at, area.bottom), (at, area.bottom + 4.0)], Role::Text, 1.0, &[]);
        let half = 0.5 * text_width(text, VALUES);
        // A value at the end of the axis stays on the paper.
        let middle = at.min(picture.width - half - 1.0);
        if middle - half > free {
            picture.text((middle, area.bottom + 18.0), VALUES, Anchor::Middle, Role::Muted, text);
            free = middle + half + 4.0;
        }
    }
    below(picture, area, area.bottom + 38.0, label)
}

/// Writes the name of the axis below at a height, and says where it ends.
pub fn below(picture: &mut Picture, area: Area, at: f32, label: &str) -> f32 {
    let middle = 0.5 * (area.left + area.right);
    let label = fitting(label, WORDS, picture.width - 16.0);
    picture.text((middle, at), WORDS, Anchor::Middle, Role::Text, label);
    at + 10.0
}

/// An upright interval with feet.
pub fn whisker(picture: &mut Picture, x: f32, (low, high): (f32, f32), role: Role) {
    picture.line(vec![(x, low), (x, high)], role, 1.4, &[]);
    for y in [low, high] {
        picture.line(vec![(x - 3.5, y), (x + 3.5, y)], role, 1.4, &[]);
    }
}
