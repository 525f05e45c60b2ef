//! A picture as SVG text.

use std::fmt::Write;

use super::picture::{Anchor, Colour, Picture, Role, Shape, corners};

/// Where the picture goes.
#[derive(Clone, Copy)]
pub enum SvgTarget<'a> {
    /// A file of its own, on white.
    File,
    /// A part of a page that chooses the colours, and that can be pointed at.
    Page {
        /// The alternative text, for those who do not see it.
        label: &'a str,
    },
}

/// The picture as one `svg` element.
pub fn encode(picture: &Picture, target: SvgTarget<'_>) -> String {
    let (width, height) = (picture.width, picture.height);
    let size = format!("viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\"");
    let mut out = match target {
        SvgTarget::File => format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" {size} font-family=\"DejaVu Sans, Verdana, sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        ),
        SvgTarget::Page { label } => {
            format!("<svg {size} role=\"group\" aria-label=\"{}\">\n", escape(label))
        }
    };
    let mut first_tooltip = true;
    for shape in &picture.shapes {
        // Writing to a string cannot fail.
        let _ = match shape {
            Shape::Line { points, role, width, dashes } => {
                let points = list(points.iter().copied());
                let dashes: Vec<_> = dashes.iter().map(f32::to_string).collect();
                let pattern = if dashes.is_empty() {
                    String::new()
                } else {
                    format!(" stroke-dasharray=\"{}\"", dashes.join(","))
                };
                let stroke = colour(target, *role, "stroke");
                writeln!(
                    out,
                    "<polyline points=\"{points}\" fill=\"none\" {stroke} stroke-width=\"{width}\" \
                     stroke-linejoin=\"round\"{pattern}/>"
                )
            }
            Shape::Area { points, role, opacity } => {
                let (points, fill) = (list(points.iter().copied()), colour(target, *role, "fill"));
                let opacity =
                    if *opacity < 1.0 { format!(" fill-opacity=\"{opacity:.3}\"") } else { String::new() };
                writeln!(out, "<polygon points=\"{points}\" {fill}{opacity}/>")
            }
            Shape::Mark { at: (x, y), kind, size, role } => {
                let fill = colour(target, *role, "fill");
                match corners(*kind) {
                    [] => writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{size:.1}\" {fill}/>"),
                    corners => {
                        let points = list(corners.iter().map(|(dx, dy)| (x + size * dx, y + size * dy)));
                        writeln!(out, "<polygon points=\"{points}\" {fill}/>")
                    }
                }
            }
            Shape::Text { at: (x, y), size, anchor, turn, role, text } => {
                let anchor = match anchor {
                    Anchor::Start => "",
                    Anchor::Middle => " text-anchor=\"middle\"",
                    Anchor::End => " text-anchor=\"end\"",
                };
                let turn = if *turn == 0.0 {
                    String::new()
                } else {
                    format!(" transform=\"rotate({} {x:.1} {y:.1})\"", -turn)
                };
                let fill = colour(target, *role, "fill");
                let text = escape(text);
                writeln!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\"{anchor} {fill}{turn}>{text}</text>"
                )
            }
            Shape::Tooltip { at: (x, y), lane, text } => {
                let text = escape(text);
                match target {
                    SvgTarget::File => writeln!(
                        out,
                        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\" \
                         fill-opacity=\"0\"><title>{text}</title></circle>"
                    ),
                    // One stop of the tab key for a picture; from there the arrow keys lead on.
                    SvgTarget::Page { .. } => {
                        let reach = if std::mem::take(&mut first_tooltip) { "0" } else { "-1" };
                        writeln!(
                            out,
                            "<circle class=\"tooltip\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"7\" tabindex=\"{reach}\" \
                             role=\"img\" \
                             data-lane=\"{lane}\" aria-label=\"{text}\"/>"
                        )
                    }
                }
            }
        };
    }
    out + "</svg>\n"
}

/// Escapes a text for content and attributes of XML and HTML; characters that XML cannot hold become spaces.
pub fn escape(text: &str) -> String {
    escaped(text, |c| match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\'' => Some("&#39;"),
        '\t' | '\n' => None,
        c if c.is_control() || c == '\u{fffe}' || c == '\u{ffff}' => Some(" "),
        _ => None,
    })
}

/// A text with characters replaced; those without a replacement stay.
pub fn escaped(text: &str, replacement: impl Fn(char) -> Option<&'static str>) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match replacement(c) {
            Some(text) => out += text,
            None => out.push(c),
        }
    }
    out
}

fn colour(target: SvgTarget<'_>, role: Role, property: &str) -> String {
    match target {
        SvgTarget::File => {
            let Colour(r, g, b) = role.colour();
            format!("{property}=\"#{r:02x}{g:02x}{b:02x}\"")
        }
        SvgTarget::Page { .. } => format!("style=\"{property}:var({})\"", variable(role)),
    }
}

/// The CSS variable of a role's colour on a page.
pub fn variable(role: Role) -> String {
    match role {
        Role::Text => "--text".into(),
        Role::Muted => "--muted".into(),
        Role::Grid => "--grid".into(),
        Role::Ground => "--ground".into(),
        Role::Heat => "--heat".into(),
        Role::Series(number) => format!("--c{}", number % super::picture::SERIES.len()),
    }
}

fn list(points: impl Iterator<Item = (f32, f32)>) -> String {
    points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}
