//! Figures as SVG.
//!
//! The content of a figure ([`crate::report::Plot`]) becomes a [`Picture`], a list of strokes and texts in pixels,
//! which `svg` only copies out.

mod axis;
mod bars;
mod calibration;
mod frame;
mod lines;
mod matrix;
mod picture;
mod svg;

use std::io::Write;
use std::path::Path;

pub use axis::write as write_number;
pub use picture::{Colour, Picture, Role, SERIES};
pub use svg::{SvgTarget, encode as svg, escape, escaped, variable};

use crate::report::Plot;

/// The width of a picture in a file, and on a wide page.
pub const WIDE: f32 = 720.0;
/// The width of a picture on a phone, and of a panel.
pub const NARROW: f32 = 344.0;

/// Refuses the name of a file that is not one of a plot.
pub fn check_name(path: &Path) -> Result<(), String> {
    match path.extension() {
        Some(ending) if ending.eq_ignore_ascii_case("svg") => Ok(()),
        _ => Err(format!("{}: a plot is written as .svg; name it so", path.display())),
    }
}

/// Lays out a figure for a width, with a title where it is not empty.
pub fn draw(plot: &Plot, title: &str, width: f32) -> Picture {
    let mut picture = Picture::new(width);
    match plot {
        Plot::Lines(plot) => lines::draw(&mut picture, title, plot),
        Plot::Bars(plot) => bars::draw(&mut picture, title, plot),
        Plot::Matrix(plot) => matrix::draw(&mut picture, title, plot),
        Plot::Calibration(plot) => calibration::draw(&mut picture, title, plot),
    }
    picture.height = picture.height.ceil();
    picture
}

impl Picture {
    /// Writes the picture; an older file of that name stays until the new one is complete.
    pub fn write(&self, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
        check_name(path)?;
        let cannot =
            |error: &dyn std::fmt::Display| format!("{}: it cannot be written: {error}", path.display());
        let mut file = progap_graph::AtomicFile::create(path).map_err(|e| cannot(&e))?;
        file.write_all(svg::encode(self, SvgTarget::File).as_bytes()).map_err(|e| cannot(&e))?;
        Ok(file.commit()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{
        Axis, Bar, BarSeries, Bars, Bin, Border, Calibration, Lines, Matrix, Point, Reference, Series,
    };

    fn lines() -> Lines {
        let series = |name: &str, scale: f64| Series {
            name: name.into(),
            points: (1..=12)
                .map(|k| Point::within(f64::from(k), scale * f64::from(k), (0.0, 12.0)))
                .collect(),
        };
        Lines {
            x: Axis::linear("a < b & \"c\""),
            y: Axis::linear("height"),
            series: vec![series("one", 0.5), series("<two>", 1.0)],
            references: vec![Reference { name: "level".into(), value: 3.0, series: Some(1) }],
            borders: vec![Border { name: "stage 1".into(), at: 5.0 }],
        }
    }

    fn plots() -> Vec<Plot> {
        let bars = Bars {
            label: "group".into(),
            y: Axis::percent("share"),
            groups: vec!["a".into(), "a very long name of a group that does not fit at all".into()],
            series: vec![BarSeries {
                name: "one".into(),
                values: vec![Some(Bar { value: 0.5, interval: Some((0.4, 0.6)) }), None],
            }],
            references: vec![],
        };
        let matrix = Matrix {
            row_label: "true".into(),
            column_label: "predicted".into(),
            names: (0..40).map(|k| format!("class <{k}>")).collect(),
            counts: (0..40).map(|row| (0..40).map(|column| row * column).collect()).collect(),
        };
        let bin = Bin { from: 0.5, to: 0.6, count: 7, confidence: 0.55, accuracy: 0.5, interval: (0.2, 0.8) };
        let calibration = Calibration { bins: vec![bin], expected_error: 0.05 };
        vec![Plot::Lines(lines()), Plot::Bars(bars), Plot::Matrix(matrix), Plot::Calibration(calibration)]
    }

    #[test]
    fn svg_escapes_and_says_everything() {
        let text = svg(&draw(&Plot::Lines(lines()), "<title>", WIDE), SvgTarget::File);
        assert!(text.starts_with("<svg ") && text.trim_end().ends_with("</svg>"));
        for word in [
            "a &lt; b &amp; &quot;c&quot;",
            "height",
            "one",
            "&lt;two&gt;",
            "level: 3",
            "stage 1",
            "&lt;title&gt;",
        ] {
            assert!(text.contains(&format!(">{word}<")), "{word}");
        }
        assert!(text.contains("<title>one, a &lt; b &amp; &quot;c&quot; 3: 1.5 (0 to 12)</title>"), "{text}");
        let page = svg(&draw(&Plot::Lines(lines()), "", WIDE), SvgTarget::Page { label: "\"quoted\"" });
        assert!(page.contains("aria-label=\"&quot;quoted&quot;\""));
        assert_eq!(page.matches("tabindex=\"0\"").count(), 1, "one stop of the tab key");
        assert_eq!(page.matches("class=\"tooltip\"").count(), 24, "every point can be reached");
    }

    #[test]
    fn every_kind_stays_on_its_paper_at_every_width() {
        for plot in plots() {
            for width in [NARROW, WIDE] {
                let picture = draw(&plot, "", width);
                let inside = |&(x, y): &(f32, f32)| {
                    (-0.5..=width + 0.5).contains(&x) && (-0.5..=picture.height + 0.5).contains(&y)
                };
                for shape in &picture.shapes {
                    use picture::{Anchor, Shape, text_width};
                    match shape {
                        Shape::Line { points, .. } | Shape::Area { points, .. } => {
                            assert!(points.iter().all(inside), "{shape:?} at {width}");
                        }
                        Shape::Mark { at, .. } | Shape::Tooltip { at, .. } => {
                            assert!(inside(at), "{shape:?}");
                        }
                        Shape::Text { at, size, anchor, turn, text, .. } => {
                            let length = text_width(text, *size);
                            let start = match anchor {
                                Anchor::Start => 0.0,
                                Anchor::Middle => -0.5 * length,
                                Anchor::End => -length,
                            };
                            let (sin, cos) = turn.to_radians().sin_cos();
                            let end = |along: f32| (at.0 + along * cos, at.1 - along * sin);
                            assert!(
                                inside(&end(start)) && inside(&end(start + length)),
                                "{shape:?} at {width}"
                            );
                        }
                    }
                }
                let encoded = svg(&picture, SvgTarget::File);
                assert!(!encoded.contains("NaN") && !encoded.contains("inf,"), "{encoded}");
            }
        }
    }

    #[test]
    fn values_without_an_end_leave_gaps() {
        let mut plot = lines();
        plot.series[0].points[3].y = f64::INFINITY;
        plot.series[1].points.iter_mut().for_each(|point| point.y = f64::NAN);
        let text = svg(&draw(&Plot::Lines(plot.clone()), "", NARROW), SvgTarget::File);
        assert!(!text.contains("NaN") && !text.contains("inf"));
        plot.series.clear();
        assert!(svg(&draw(&Plot::Lines(plot), "", NARROW), SvgTarget::File).ends_with("</svg>\n"));
    }
}
