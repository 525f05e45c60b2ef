//! A picture as PNG, at twice its size for sharp screens and print.

use tiny_skia::{FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};
use ttf_parser::{Face, OutlineBuilder};

use super::picture::{Anchor, Colour, Picture, Role, Shape, corners, face};

const SCALE: f32 = 2.0;

/// The picture as the bytes of a file.
pub fn encode(picture: &Picture) -> Result<Vec<u8>, String> {
    let (width, height) = ((picture.width * SCALE).ceil() as u32, (picture.height * SCALE).ceil() as u32);
    let mut image = Pixmap::new(width, height).ok_or("the picture has no size")?;
    image.fill(tiny_skia::Color::WHITE);
    let zoom = Transform::from_scale(SCALE, SCALE);
    for shape in &picture.shapes {
        match shape {
            Shape::Line { points, role, width, dashes } => {
                let dash = StrokeDash::new(dashes.to_vec(), 0.0);
                let stroke = Stroke { width: *width, line_join: LineJoin::Round, dash, ..Stroke::default() };
                if let Some(path) = path(points.iter().copied(), false) {
                    image.stroke_path(&path, &paint(*role, 1.0), &stroke, zoom, None);
                }
            }
            Shape::Area { points, role, opacity } => {
                if let Some(path) = path(points.iter().copied(), true) {
                    image.fill_path(&path, &paint(*role, *opacity), FillRule::Winding, zoom, None);
                }
            }
            Shape::Mark { at: (x, y), kind, size, role } => {
                let path = match corners(*kind) {
                    [] => PathBuilder::from_circle(*x, *y, *size),
                    corners => path(corners.iter().map(|(dx, dy)| (x + size * dx, y + size * dy)), true),
                };
                if let Some(path) = path {
                    image.fill_path(&path, &paint(*role, 1.0), FillRule::Winding, zoom, None);
                }
            }
            Shape::Text { at, size, anchor, turn, role, text } => {
                let (outline, length) = outline(face(), text, *size);
                let back = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => -0.5 * length,
                    Anchor::End => -length,
                };
                let place = zoom.pre_translate(at.0, at.1).pre_rotate(-turn).pre_translate(back, 0.0);
                if let Some(path) = outline {
                    image.fill_path(&path, &paint(*role, 1.0), FillRule::Winding, place, None);
                }
            }
            // A file of pixels cannot be pointed at.
            Shape::Tooltip { .. } => {}
        }
    }
    image.encode_png().map_err(|error| error.to_string())
}

fn path(points: impl Iterator<Item = (f32, f32)>, closed: bool) -> Option<Path> {
    let mut line = PathBuilder::new();
    for (index, (x, y)) in points.enumerate() {
        if index == 0 { line.move_to(x, y) } else { line.line_to(x, y) }
    }
    if closed {
        line.close();
    }
    line.finish()
}

fn paint(role: Role, opacity: f32) -> Paint<'static> {
    let Colour(r, g, b) = role.colour();
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(r, g, b, (255.0 * opacity).round() as u8);
    paint
}
/// The outline of a text that begins at the origin, and its length.
fn outline(face: &Face<'_>, text: &str, size: f32) -> (Option<Path>, f32) {
    let scale = size / f32::from(face.units_per_em());
    let mut pen = Pen { path: PathBuilder::new(), at: 0.0, scale };
    for glyph in text.chars().filter_map(|c| face.glyph_index(c).or_else(|| face.glyph_index('?'))) {
        face.outline_glyph(glyph, &mut pen);
        pen.at += scale * f32::from(face.glyph_hor_advance(glyph).unwrap_or(0));
    }
    (pen.path.finish(), pen.at)
}

/// Moves glyphs, whose y axis points up, to their place in a line of text.
struct Pen {
    path: PathBuilder,
    at: f32,
    scale: f32,
}

impl Pen {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.at + self.scale * x, -self.scale * y)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
