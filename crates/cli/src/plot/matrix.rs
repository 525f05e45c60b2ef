//! How often each class was taken for each.

use super::frame::{self, Area, VALUES, WORDS};
use super::picture::{Anchor, Picture, Role, fitting, text_width};
use crate::report::Matrix;
use crate::ui;

pub fn draw(picture: &mut Picture, title: &str, matrix: &Matrix) {
    let narrow = frame::is_narrow(picture);
    let classes = matrix.names.len().max(1);
    let widest = matrix.names.iter().map(|name| text_width(name, VALUES)).fold(0.0, f32::max);
    let names = widest.min(if narrow { 70.0 } else { 130.0 });
    let top = frame::head(picture, title, &[]);
    let left = 30.0 + names + 8.0;
    let size = ((picture.width - left - 16.0) / classes as f32).min(if narrow { 44.0 } else { 64.0 });
    let side = size * classes as f32;
    let area = Area { left, top, right: left + side, bottom: top + side };
    let turned = names + 2.0 > size;
    let mut labels = 0.0f32;
    // With many classes there is no room for every name.
    let stride = (13.0 / size).ceil().max(1.0) as usize;
    for (place, name) in matrix.names.iter().enumerate().step_by(stride) {
        let (cut, at) = (fitting(name, VALUES, names), (place as f32 + 0.5) * size);
        picture.text((left - 7.0, top + at + 4.0), VALUES, Anchor::End, Role::Muted, &cut);
        if turned {
            picture.turned(
                (left + at + 4.0, area.bottom + 12.0),
                VALUES,
                Anchor::End,
                60.0,
                Role::Muted,
                cut,
            );
            labels = 18.0 + 0.87 * names;
        } else {
            picture.text((left + at, area.bottom + 16.0), VALUES, Anchor::Middle, Role::Muted, cut);
            labels = 20.0;
        }
    }
    picture.width = picture.width.min((area.right + 16.0).max(200.0));
    picture.turned(
        (17.0, 0.5 * (area.top + area.bottom)),
        WORDS,
        Anchor::Middle,
        90.0,
        Role::Text,
        &matrix.row_label,
    );
    picture.height = frame::below(picture, area, area.bottom + labels + 16.0, &matrix.column_label);
    // All counts are written, or none: a gap would look like nothing.
    let widest = matrix
        .counts
        .iter()
        .flatten()
        .max()
        .map_or(0.0, |&count| text_width(&ui::count(count as usize), VALUES));
    let legible = widest < size - 3.0;
    for (row, counts) in matrix.counts.iter().enumerate() {
        let total = counts.iter().sum::<u64>().max(1) as f64;
        for (column, &count) in counts.iter().enumerate() {
            let share = count as f64 / total;
            let corner = (left + column as f32 * size, top + row as f32 * size);
            let gap = if size > 12.0 { 1.0 } else { 0.0 };
            let opposite = (corner.0 + size - gap, corner.1 + size - gap);
            picture.rectangle(corner, opposite, Role::Heat, (0.06 + 0.94 * share) as f32);
            let text = ui::count(count as usize);
            if legible {
                let middle = (corner.0 + 0.5 * size, corner.1 + 0.5 * size + 4.0);
                picture.text(middle, VALUES, Anchor::Middle, Role::Text, text);
            }
        }
    }
    for (row, counts) in matrix.counts.iter().enumerate() {
        let total = counts.iter().sum::<u64>().max(1) as f64;
        for (column, &count) in counts.iter().enumerate() {
            let middle = (left + (column as f32 + 0.5) * size, top + (row as f32 + 0.5) * size);
            let name = |place: usize| matrix.names.get(place).map_or("", String::as_str);
            let share = ui::percent(count as f64 / total);
            let (row_label, column_label) = (&matrix.row_label, &matrix.column_label);
            let text = format!(
                "{row_label} {}, {column_label} {}: {} ({share} of the row)",
                name(row),
                name(column),
                ui::count(count as usize)
            );
            picture.tooltip(middle, row, text);
        }
    }
}
