//! Small line plots, as SVG or PNG.
//!
//! A [`Plot`] becomes a [`Picture`], a list of strokes and texts in pixels, which [`svg`] and [`png`] only copy out. So both
//! look the same.

mod axis;
mod png;
mod svg;

use std::io::Write;
use std::path::Path;

use self::axis::{Axis, decades, round_steps};
use crate::command::Outcome;

/// A plot of positive values against a logarithmic x axis.
pub struct Plot {
    /// Above the plot.
    pub title: String,
    /// Below the x axis.
    pub x_label: String,
    /// Beside the y axis.
    pub y_label: String,
    /// The lines, at most as many as there are [`STYLES`].
    pub lines: Vec<Line>,
    /// A point to point out, with what to write beside it.
    pub mark: Option<(f64, f64, String)>,
}

/// One named line.
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Points from left to right; those that are not finite are left out.
    pub points: Vec<(f64, f64)>,
}

/// A colour, a width and a pattern of dashes for each line: told apart without colour as well, also where lines lie on each
/// other. The colours are those of Okabe and Ito, which the colour-blind can tell apart.
const STYLES: [(Colour, f32, &[f32]); 4] = [
    (Colour(0x00, 0x72, 0xB2), 4.0, &[]),
    (Colour(0xE6, 0x9F, 0x00), 2.5, &[9.0, 6.0]),
    (Colour(0x00, 0x9E, 0x73), 2.5, &[]),
    (Colour(0xCC, 0x79, 0xA7), 2.5, &[2.0, 4.0]),
];
const INK: Colour = Colour(0x22, 0x22, 0x22);
const GRID: Colour = Colour(0xDD, 0xDD, 0xDD);

const WIDTH: f32 = 830.0;
const HEIGHT: f32 = 500.0;
/// The plotting area: left, top, right, bottom.
const AREA: (f32, f32, f32, f32) = (80.0, 56.0, 670.0, 430.0);

/// Red, green, blue.
#[derive(Clone, Copy)]
struct Colour(u8, u8, u8);

/// Where a text begins, ends or has its middle.
#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// What a picture consists of.
enum Shape {
    Stroke { points: Vec<(f32, f32)>, colour: Colour, width: f32, dashes: &'static [f32] },
    Dot { centre: (f32, f32), radius: f32, colour: Colour },
    Text { at: (f32, f32), size: f32, anchor: Anchor, upright: bool, text: String },
}

/// Shapes on a white ground.
struct Picture(Vec<Shape>);

impl Picture {
    fn line(&mut self, points: Vec<(f32, f32)>, colour: Colour, width: f32, dashes: &'static [f32]) {
        self.0.push(Shape::Stroke { points, colour, width, dashes });
    }

    fn text(&mut self, at: (f32, f32), size: f32, anchor: Anchor, text: impl Into<String>) {
        self.0.push(Shape::Text { at, size, anchor, upright: false, text: text.into() });
    }
}

/// In which form a plot is written, by the name of its file.
#[derive(Clone, Copy)]
pub enum Format {
    Svg,
    Png,
}

impl Format {
    /// The form that a file name asks for.
    pub fn of(path: &Path) -> Result<Self, String> {
        match path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("svg") => Ok(Format::Svg),
            Some("png") => Ok(Format::Png),
            _ => Err(format!("{}: a plot is written as .svg or .png; name it so", path.display())),
        }
    }
}

impl Plot {
    /// Writes the plot; an older file of that name stays until the new one is complete.
    pub fn write(&self, path: &Path) -> Outcome {
        let picture = self.picture();
        let bytes = match Format::of(path)? {
            Format::Svg => svg::encode(&picture).into_bytes(),
            Format::Png => png::encode(&picture)?,
        };
        let beside = path.with_extension("partial");
        let write = || -> std::io::Result<()> {
            let mut file = std::fs::File::create(&beside)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            std::fs::rename(&beside, path)
        };
        write().map_err(|error| {
            let _ = std::fs::remove_file(&beside);
            format!("{}: the plot cannot be written: {error}", path.display())
        })?;
        Ok(())
    }

    fn picture(&self) -> Picture {
        let (left, top, right, bottom) = AREA;
        let points = || {
            let finite = |&&(x, y): &&(f64, f64)| x.is_finite() && x > 0.0 && y.is_finite();
            self.lines.iter().flat_map(move |line| line.points.iter().filter(finite))
        };
        let low = points().map(|p| p.0).fold(f64::INFINITY, f64::min);
        let high = points().map(|p| p.0).fold(0.0, f64::max);
        let (low, high) = if low < high { (low, high) } else { (1e-12, 1e-2) };
        let top_value = points().map(|p| p.1).fold(0.0, f64::max);
        let x = Axis { from: low.log10(), to: high.log10(), start: left, end: right };
        let values = round_steps(top_value);
        let y = Axis { from: 0.0, to: *values.last().unwrap_or(&1.0), start: bottom, end: top };

        let mut picture = Picture(Vec::new());
        for power in decades(low, high) {
            let at = x.at(f64::from(power));
            picture.line(vec![(at, top), (at, bottom)], GRID, 1.0, &[]);
            picture.text((at, bottom + 20.0), 13.0, Anchor::Middle, axis::power_of_ten(power));
        }
        for &value in &values {
            let at = y.at(value);
            picture.line(vec![(left, at), (right, at)], GRID, 1.0, &[]);
            picture.text((left - 8.0, at + 4.5), 13.0, Anchor::End, axis::plain(value));
        }
        picture.line(vec![(left, top), (left, bottom), (right, bottom)], INK, 1.2, &[]);
        picture.text((left, 30.0), 16.0, Anchor::Start, &self.title);
        picture.text((0.5 * (left + right), HEIGHT - 22.0), 14.0, Anchor::Middle, &self.x_label);
        let at = (26.0, 0.5 * (top + bottom));
        let (anchor, text) = (Anchor::Middle, self.y_label.clone());
        picture.0.push(Shape::Text { at, size: 14.0, anchor, upright: true, text });

        for (index, line) in self.lines.iter().enumerate() {
            let (colour, width, dashes) = STYLES[index % STYLES.len()];
            // A line breaks where a value is missing.
            for run in line.points.split(|p| !p.1.is_finite()).filter(|run| run.len() > 1) {
                let run = run.iter().map(|p| (x.at(p.0.log10()), y.at(p.1))).collect();
                picture.line(run, colour, width, dashes);
            }
            let level = top + 16.0 + 26.0 * index as f32;
            picture.line(vec![(right + 16.0, level), (right + 52.0, level)], colour, width, dashes);
            picture.text((right + 60.0, level + 5.0), 14.0, Anchor::Start, &line.name);
        }
        if let Some((at_x, at_y, text)) = &self.mark {
            let inside = (x.from..=x.to).contains(&at_x.log10()) && (y.from..=y.to).contains(at_y);
            if inside {
                let centre = (x.at(at_x.log10()), y.at(*at_y));
                picture.0.push(Shape::Dot { centre, radius: 5.0, colour: INK });
                // Below a falling curve on its left, unless there is no room.
                let room = centre.0 > left + 200.0;
                let (shift, lift, anchor) =
                    if room { (-10.0, 20.0, Anchor::End) } else { (10.0, -12.0, Anchor::Start) };
                let level = (centre.1 + lift).clamp(top + 14.0, bottom - 6.0);
                picture.text((centre.0 + shift, level), 13.0, anchor, text);
            }
        }
        picture
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Plot {
        let line = |name: &str, scale: f64| Line {
            name: name.into(),
            points: (2..=12).rev().map(|k| (10f64.powi(-k), scale * f64::from(k))).collect(),
        };
        Plot {
            title: "a < b & \"c\"".into(),
            x_label: "delta".into(),
            y_label: "epsilon".into(),
            lines: vec![line("one", 0.5), line("two", 1.0)],
            mark: Some((1e-7, 3.5, "here".into())),
        }
    }

    #[test]
    fn svg_is_well_formed_and_says_everything() {
        let text = svg::encode(&sample().picture());
        assert!(text.starts_with("<svg ") && text.trim_end().ends_with("</svg>"));
        assert!(text.contains("a &lt; b &amp; &quot;c&quot;"), "{text}");
        for word in ["delta", "epsilon", "one", "two", "here"] {
            assert!(text.contains(&format!(">{word}<")), "{word}");
        }
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn png_has_ink_where_the_lines_are() {
        let bytes = png::encode(&sample().picture()).unwrap();
        let image = tiny_skia::Pixmap::decode_png(&bytes).unwrap();
        let has = |Colour(r, g, b): Colour| {
            image.pixels().iter().any(|p| (p.red(), p.green(), p.blue()) == (r, g, b))
        };
        assert!(has(STYLES[0].0) && has(STYLES[1].0) && has(INK) && !has(STYLES[3].0));
    }

    #[test]
    fn values_without_an_end_leave_gaps() {
        let mut plot = sample();
        plot.lines[0].points[3].1 = f64::INFINITY;
        plot.lines[1].points.iter_mut().for_each(|p| p.1 = f64::NAN);
        let text = svg::encode(&plot.picture());
        assert!(!text.contains("NaN") && !text.contains("inf"));
        plot.lines.clear();
        assert!(png::encode(&plot.picture()).is_ok());
    }
}
