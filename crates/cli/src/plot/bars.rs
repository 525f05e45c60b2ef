//! Groups of bars.

use super::axis::{Ruler, write};
use super::frame::{self, Area, Entry, Sign, VALUES};
use super::lines::{draw_references, references, within};
use super::picture::{Anchor, Picture, Role, fitting, text_width};
use crate::report::{Axis, Bars};

pub fn draw(picture: &mut Picture, title: &str, bars: &Bars) {
    let narrow = frame::is_narrow(picture);
    let values = || bars.series.iter().flat_map(|series| series.values.iter().flatten());
    let values = values().flat_map(|bar| {
        let (low, high) = bar.interval.unwrap_or((bar.value, bar.value));
        [bar.value, low, high]
    });
    // The length of a bar is its value: the axis begins at nothing.
    let values = values.chain(bars.references.iter().map(|line| line.value)).chain([0.0]);
    let y = Ruler::new(&Axis { scale: crate::report::Scale::Linear, ..bars.y.clone() }, values, 5);
    let entry = |(number, series): (usize, &crate::report::BarSeries)| Entry {
        name: series.name.clone(),
        role: Role::Series(number),
        sign: Sign::Bar(number),
    };
    let mut entries: Vec<Entry> = bars.series.iter().enumerate().map(entry).collect();
    if entries.len() < 2 {
        entries.clear();
    }
    entries.extend(references(&bars.references, &bars.y));
    let top = frame::head(picture, title, &entries);
    let height = if narrow { 190.0 } else { 260.0 };
    let area = Area { left: frame::left_margin(&y), top, right: picture.width - 16.0, bottom: top + height };
    let y = y.between(area.bottom, area.top);
    frame::draw_y(picture, area, &y, &bars.y.label);

    let group = (area.right - area.left) / bars.groups.len().max(1) as f32;
    let bar = 0.8 * group / bars.series.len().max(1) as f32;
    let base = y.at(y.clamp(0.0));
    for (number, series) in bars.series.iter().enumerate() {
        for (place, value) in series.values.iter().enumerate().filter_map(|(place, v)| Some((place, (*v)?))) {
            if !value.value.is_finite() {
                continue;
            }
            let left = area.left + (place as f32 + 0.1) * group + number as f32 * bar;
            let (middle, height) = (left + 0.5 * bar, y.at(y.clamp(value.value)));
            picture.rectangle(
                (left + 0.04 * bar, height),
                (left + 0.96 * bar, base),
                Role::Series(number),
                0.75,
            );
            if let Some((low, high)) = value.interval {
                frame::whisker(picture, middle, (y.at(y.clamp(low)), y.at(y.clamp(high))), Role::Text);
            }
            if bars.series.len() > 1 && bar > 9.0 {
                picture.mark((middle, base - 8.0), number, 3.0, Role::Ground);
            }
        }
    }
    draw_references(picture, area, &y, &bars.references);
    picture.line(vec![(area.left, area.bottom), (area.right, area.bottom)], Role::Text, 1.2, &[]);

    let widest = bars.groups.iter().map(|name| text_width(name, VALUES)).fold(0.0, f32::max);
    let (turned, room) = (widest > group - 4.0, 96.0f32.min(widest));
    for (place, name) in bars.groups.iter().enumerate() {
        let middle = area.left + (place as f32 + 0.5) * group;
        if turned {
            let name = fitting(name, VALUES, 96.0);
            picture.turned((middle + 4.0, area.bottom + 12.0), VALUES, Anchor::End, 45.0, Role::Muted, name);
        } else {
            picture.text((middle, area.bottom + 18.0), VALUES, Anchor::Middle, Role::Muted, name);
        }
    }
    let labels = if turned { 16.0 + 0.72 * room } else { 22.0 };
    picture.height = frame::below(picture, area, area.bottom + labels + 18.0, &bars.label);

    for (number, series) in bars.series.iter().enumerate() {
        for (place, value) in series.values.iter().enumerate().filter_map(|(place, v)| Some((place, (*v)?))) {
            let middle = area.left + (place as f32 + 0.1) * group + (number as f32 + 0.5) * bar;
            let interval = value.interval.map(|interval| within(interval, &bars.y)).unwrap_or_default();
            let group = bars.groups.get(place).map_or("", String::as_str);
            let text = format!("{}, {group}: {}{interval}", series.name, write(value.value, bars.y.number));
            picture.tooltip((middle, y.at(y.clamp(value.value))), number, text);
        }
    }
}
