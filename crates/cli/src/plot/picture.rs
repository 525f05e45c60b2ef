//! A picture: strokes, areas and texts in pixels. Each has a role; colours are chosen when the picture is encoded.

use std::sync::OnceLock;

use ttf_parser::Face;

/// Plots look the same on a machine without any font.
const FONT: &[u8] = include_bytes!("../../assets/DejaVuSans-subset.ttf");

/// The role of something in a picture, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Axes and words.
    Text,
    /// Words of less weight.
    Muted,
    /// Lines to read values by.
    Grid,
    /// The paper.
    Ground,
    /// A series, told from others by its number.
    Series(usize),
    /// The strongest cell of a heat map; words can be read on it.
    Heat,
}

/// The colours of Okabe and Ito, which the colour-blind can tell apart. Black comes last but one, because it is the
/// colour of words, and yellow last, because it is pale on white.
pub const SERIES: [Colour; 8] = [
    Colour(0x00, 0x72, 0xB2),
    Colour(0xD5, 0x5E, 0x00),
    Colour(0x00, 0x9E, 0x73),
    Colour(0xCC, 0x79, 0xA7),
    Colour(0xE6, 0x9F, 0x00),
    Colour(0x56, 0xB4, 0xE9),
    Colour(0x22, 0x22, 0x22),
    Colour(0xF0, 0xE4, 0x42),
];

/// Patterns of dashes, so that lines are told apart without colour as well.
pub const DASHES: [&[f32]; 8] = [
    &[],
    &[8.0, 4.0],
    &[3.0, 3.0],
    &[7.0, 3.0, 2.0, 3.0],
    &[12.0, 5.0],
    &[6.0, 2.0, 2.0, 2.0, 2.0, 2.0],
    &[2.0, 5.0],
    &[16.0, 3.0, 6.0, 3.0],
];

/// The dashes of level lines to compare with.
pub const DOTS: &[f32] = &[1.5, 3.5];

/// Red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Role {
    /// The colour on white paper.
    pub fn colour(self) -> Colour {
        match self {
            Role::Text => Colour(0x22, 0x22, 0x22),
            Role::Muted => Colour(0x5A, 0x5F, 0x66),
            Role::Grid => Colour(0xDD, 0xDF, 0xE2),
            Role::Ground => Colour(0xFF, 0xFF, 0xFF),
            Role::Series(number) => SERIES[number % SERIES.len()],
            Role::Heat => SERIES[5],
        }
    }
}

/// Where a text begins, ends or has its middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// A place in a picture, from the upper left corner.
pub type At = (f32, f32);

/// The parts of a picture.
#[derive(Debug)]
pub enum Shape {
    /// A line through points.
    Line { points: Vec<At>, role: Role, width: f32, dashes: &'static [f32] },
    /// A filled polygon.
    Area { points: Vec<At>, role: Role, opacity: f32 },
    /// A marker of one of several kinds.
    Mark { at: At, kind: usize, size: f32, role: Role },
    /// A text, turned to the left by some degrees.
    Text { at: At, size: f32, anchor: Anchor, turn: f32, role: Role, text: String },
    /// A place that shows its exact value when pointed at. Nothing is drawn there.
    Tooltip { at: At, lane: usize, text: String },
}

/// Shapes on the ground.
#[derive(Debug)]
pub struct Picture {
    pub width: f32,
    pub height: f32,
    pub shapes: Vec<Shape>,
}

impl Picture {
    /// An empty picture of a width; its height is set when it is known.
    pub fn new(width: f32) -> Picture {
        Picture { width, height: 0.0, shapes: Vec::new() }
    }

    pub fn line(&mut self, points: Vec<At>, role: Role, width: f32, dashes: &'static [f32]) {
        self.shapes.push(Shape::Line { points, role, width, dashes });
    }

    pub fn area(&mut self, points: Vec<At>, role: Role, opacity: f32) {
        self.shapes.push(Shape::Area { points, role, opacity });
    }

    /// A filled rectangle between two corners.
    pub fn rectangle(&mut self, (x1, y1): At, (x2, y2): At, role: Role, opacity: f32) {
        self.area(vec![(x1, y1), (x2, y1), (x2, y2), (x1, y2)], role, opacity);
    }

    pub fn mark(&mut self, at: At, kind: usize, size: f32, role: Role) {
        self.shapes.push(Shape::Mark { at, kind, size, role });
    }

    pub fn text(&mut self, at: At, size: f32, anchor: Anchor, role: Role, text: impl Into<String>) {
        self.turned(at, size, anchor, 0.0, role, text);
    }

    pub fn turned(
        &mut self,
        at: At,
        size: f32,
        anchor: Anchor,
        turn: f32,
        role: Role,
        text: impl Into<String>,
    ) {
        self.shapes.push(Shape::Text { at, size, anchor, turn, role, text: text.into() });
    }

    pub fn tooltip(&mut self, at: At, lane: usize, text: impl Into<String>) {
        self.shapes.push(Shape::Tooltip { at, lane, text: text.into() });
    }
}

/// The corners of a marker around the origin, for a radius of 1; a circle has none.
pub fn corners(kind: usize) -> &'static [At] {
    match kind % 8 {
        0 => &[],
        1 => &[(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
        2 => &[(0.0, -1.15), (1.05, 0.8), (-1.05, 0.8)],
        3 => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
        4 => &[(0.0, 1.15), (1.05, -0.8), (-1.05, -0.8)],
        5 => &[
            (-0.35, -1.2),
            (0.35, -1.2),
            (0.35, -0.35),
            (1.2, -0.35),
            (1.2, 0.35),
            (0.35, 0.35),
            (0.35, 1.2),
            (-0.35, 1.2),
            (-0.35, 0.35),
            (-1.2, 0.35),
            (-1.2, -0.35),
            (-0.35, -0.35),
        ],
        6 => &[(0.0, -1.15), (1.09, -0.36), (0.68, 0.93), (-0.68, 0.93), (-1.09, -0.36)],
        _ => &[
            (-1.1, -1.1),
            (0.0, -0.4),
            (1.1, -1.1),
            (0.4, 0.0),
            (1.1, 1.1),
            (0.0, 0.4),
            (-1.1, 1.1),
            (-0.4, 0.0),
        ],
    }
}

/// The font for texts.
pub fn face() -> &'static Face<'static> {
    static FACE: OnceLock<Face<'static>> = OnceLock::new();
    FACE.get_or_init(|| Face::parse(FONT, 0).expect("the font is part of the program"))
}

/// How wide a text is.
pub fn text_width(text: &str, size: f32) -> f32 {
    let face = face();
    let scale = size / f32::from(face.units_per_em());
    let advance = |c| face.glyph_index(c).and_then(|glyph| face.glyph_hor_advance(glyph)).unwrap_or(1200);
    text.chars().map(|c| scale * f32::from(advance(c))).sum()
}

/// A text cut to a width, with dots where something is missing.
pub fn fitting(text: &str, size: f32, width: f32) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if text_width(&format!("{kept}…"), size) > width {
            kept.pop();
            break;
        }
    }
    kept + "…"
}
