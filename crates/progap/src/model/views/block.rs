//! How a noisy sum is read: classes, the number of senders and features, each in a unit of its own.
//!
//! With the sums `s_c` of classes, `n` of constants and `f_j` of features of one node, it reads `s_c / unit`, `(n -
//! centre) / unit` and `f_j / unit`; where there is no noise also the direction `s_c / |s|`, and the mean `f_j / n` of
//! its senders.

use progap_nn::Input;

/// Nodes whose sums are spoken of at once, where these lie in mapped files.
const NODES_TOLD: usize = 16;

/// The parts of an aggregate: sums of what is known of classes, a constant, and sums of features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumShape {
    /// The number of classes, or 0.
    pub classes: usize,
    /// The number of features, or 0.
    pub features: usize,
}

impl SumShape {
    /// The columns of the aggregate.
    pub fn width(self) -> usize {
        self.classes.saturating_add(1).saturating_add(self.features)
    }

    /// How many columns are read of it; of its classes and the constant alone where only labels are asked for.
    fn read(self, directions: bool, part: Part) -> usize {
        let width = match part {
            Part::Labels if self.classes == 0 => 0,
            Part::Labels => self.classes + 1,
            Part::All => self.width(),
        };
        width * if directions { 2 } else { 1 }
    }
}

/// What is read of aggregates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The sums of what is known of classes, with the constant beside them.
    Labels,
    /// Everything.
    All,
}

/// The units in which an aggregate is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    pub shape: SumShape,
    /// Sums of classes are divided by this,
    scale: f32,
    /// and their rows by their length, which is never taken to be much less than this.
    length: f32,
    /// The sum of constants is less this,
    centre: f32,
    /// and divided by this;
    constant_scale: f32,
    /// and in the same way by its length.
    constant_length: f32,
    /// Sums of features are divided by this,
    feature_scale: f32,
    /// and their means by this.
    mean_scale: f32,
}

/// Below this a sum of constants counts as no sender at all.
pub const NO_SENDER: f32 = 1e-6;

impl Block {
    pub const NUMBERS: usize = 7;

    /// The units that an aggregate suggests.
    pub fn of(values: &[f32], shape: SumShape) -> Block {
        let SumShape { classes, features } = shape;
        let rows = values.len() / shape.width();
        let mean = |of: &dyn Fn(&[f32]) -> f64| {
            let mut sum = 0.0;
            for values in values.chunks((1 << 12) * shape.width()) {
                progap_graph::store::note_read(size_of_val(values));
                values.chunks_exact(shape.width()).for_each(|row| sum += of(row));
            }
            sum / rows.max(1) as f64
        };
        let square = |value: f64| value * value;
        let squares = |values: &[f32]| values.iter().map(|&v| square(f64::from(v))).sum::<f64>();
        let content = mean(&|row| squares(&row[..classes]));
        let centre = mean(&|row| f64::from(row[classes]));
        let constant = mean(&|row| square(f64::from(row[classes]) - centre)).sqrt();
        let of_features = mean(&|row| squares(&row[classes + 1..]));
        let of_means = mean(&|row| {
            let factor = f64::from(mean_factor(row[classes]));
            squares(&row[classes + 1..]) * factor * factor
        });
        // Values that are zero everywhere stay zero.
        let unit = |scale: f64| if scale > 0.0 && scale.is_finite() { scale as f32 } else { 1.0 };
        let each = |total: f64| unit((total / features.max(1) as f64).sqrt());
        Block {
            shape,
            scale: unit((content / classes.max(1) as f64).sqrt()),
            length: unit(content.sqrt()),
            centre: centre as f32,
            constant_scale: unit(constant),
            constant_length: unit(constant),
            feature_scale: each(of_features),
            mean_scale: each(of_means),
        }
    }

    pub fn numbers(self) -> [f32; Block::NUMBERS] {
        let Block {
            scale, length, centre, constant_scale, constant_length, feature_scale, mean_scale, ..
        } = self;
        [scale, length, centre, constant_scale, constant_length, feature_scale, mean_scale]
    }

    pub fn from_numbers(shape: SumShape, numbers: [f32; Block::NUMBERS]) -> Block {
        let [scale, length, centre, constant_scale, constant_length, feature_scale, mean_scale] = numbers;
        Block { shape, scale, length, centre, constant_scale, constant_length, feature_scale, mean_scale }
    }

    /// Whether every unit is a number that can be divided by.
    pub fn is_sound(self) -> bool {
        let [scale, length, centre, units @ ..] = self.numbers();
        let sound = |unit: f32| unit.is_finite() && unit > 0.0;
        centre.is_finite() && sound(scale) && sound(length) && units.into_iter().all(sound)
    }

    /// The root mean square of the sums of classes.
    pub fn scale(self) -> f32 {
        self.scale
    }

    /// Reads a row of an aggregate.
    fn read(self, row: &[f32], directions: bool, part: Part, out: &mut Vec<f32>) {
        let (content, rest) = row.split_at(self.shape.classes);
        let (constant, features) = (rest[0] - self.centre, &rest[1..]);
        if part == Part::Labels && content.is_empty() {
            return;
        }
        let features = if part == Part::Labels { &[] } else { features };
        out.extend(content.iter().map(|value| value / self.scale));
        out.push(constant / self.constant_scale);
        out.extend(features.iter().map(|value| value / self.feature_scale));
        if directions {
            let divided = |square: f32, length: f32| (square + 0.25 * length * length).sqrt();
            let square: f32 = content.iter().map(|value| value * value).sum();
            let factor = (content.len() as f32).sqrt() / divided(square, self.length);
            out.extend(content.iter().map(|value| value * factor));
            out.push(constant / divided(constant * constant, self.constant_length));
            let factor = mean_factor(rest[0]) / self.mean_scale;
            out.extend(features.iter().map(|value| value * factor));
        }
    }
}

/// One over the sum of constants; nothing where there is no sender.
fn mean_factor(constant: f32) -> f32 {
    if constant > NO_SENDER { 1.0 / constant } else { 0.0 }
}

/// How many columns are read of all aggregates.
pub fn read_width(sums: &[SumShape], directions: bool, part: Part) -> usize {
    sums.iter().map(|sum| sum.read(directions, part)).sum()
}

/// The values that are read of some rows of all aggregates, side by side.
pub fn read(
    blocks: &[Block],
    aggregates: &[&[f32]],
    nodes: &[u32],
    directions: bool,
    part: Part,
) -> Vec<f32> {
    let width: usize = blocks.iter().map(|block| block.shape.read(directions, part)).sum();
    let mut out = Vec::with_capacity(nodes.len() * width);
    for nodes in nodes.chunks(NODES_TOLD) {
        for (block, values) in blocks.iter().zip(aggregates) {
            Input::Dense { columns: block.shape.width(), values }.tell(nodes);
        }
        for &node in nodes {
            for (block, values) in blocks.iter().zip(aggregates) {
                let stride = block.shape.width();
                block.read(&values[node as usize * stride..][..stride], directions, part, &mut out);
            }
        }
    }
    out
}
