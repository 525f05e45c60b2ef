//! A picture as PNG, at twice its size for sharp screens and print.

use tiny_skia::{FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};
use ttf_parser::{Face, OutlineBuilder};

use super::{Anchor, Colour, HEIGHT, Picture, Shape, WIDTH};

const SCALE: f32 = 2.0;
/// Plots look the same on a machine without any font.
const FONT: &[u8] = include_bytes!("../../assets/DejaVuSans-subset.ttf");

/// The picture as the bytes of a file.
pub fn encode(picture: &Picture) -> Result<Vec<u8>, String> {
    let mut image =
        Pixmap::new((WIDTH * SCALE) as u32, (HEIGHT * SCALE) as u32).ok_or("the picture has no size")?;
    image.fill(tiny_skia::Color::WHITE);
    let face = Face::parse(FONT, 0).map_err(|error| error.to_string())?;
    let zoom = Transform::from_scale(SCALE, SCALE);
    for shape in &picture.0 {
        match shape {
            Shape::Stroke { points, colour, width, dashes } => {
                let mut line = PathBuilder::new();
                for (index, &(x, y)) in points.iter().enumerate() {
                    if index == 0 { line.move_to(x, y) } else { line.line_to(x, y) }
                }
                let dash = StrokeDash::new(dashes.to_vec(), 0.0);
                let stroke = Stroke { width: *width, line_join: LineJoin::Round, dash, ..Stroke::default() };
                if let Some(path) = line.finish() {
                    image.stroke_path(&path, &paint(*colour), &stroke, zoom, None);
                }
            }
            Shape::Dot { centre: (x, y), radius, colour } => {
                if let Some(path) = PathBuilder::from_circle(*x, *y, *radius) {
                    image.fill_path(&path, &paint(*colour), FillRule::Winding, zoom, None);
                }
            }
            Shape::Text { at, size, anchor, upright, text } => {
                let (outline, length) = outline(&face, text, *size);
                let back = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => -0.5 * length,
                    Anchor::End => -length,
                };
                let turn = if *upright { -90.0 } else { 0.0 };
                let place = zoom.pre_translate(at.0, at.1).pre_rotate(turn).pre_translate(back, 0.0);
                if let Some(path) = outline {
                    image.fill_path(&path, &paint(super::INK), FillRule::Winding, place, None);
                }
            }
        }
    }
    image.encode_png().map_err(|error| error.to_string())
}

fn paint(Colour(r, g, b): Colour) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(r, g, b, 255);
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
