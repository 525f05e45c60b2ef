//! Where each parameter lives: in the flat list of parameters, and in the padded sums of gradients.

use std::ops::Range;

use crate::kernel::padded;
use crate::layer::Norm;
use crate::network::{Architecture, NormPlacement};

/// How a parameter starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Start {
    /// Uniform in `±bound`.
    Uniform(f32),
    /// Always the same value.
    Constant(f32),
}

/// A named part of the flat list of parameters.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    pub name: String,
    pub shape: Vec<usize>,
    pub range: Range<usize>,
    pub start: Start,
    pub branch: Option<usize>,
}

/// A linear layer: weights (inputs x outputs) and bias.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    pub weight: Range<usize>,
    pub bias: Range<usize>,
    pub outputs: usize,
    /// Inputs come in groups of `group`, each stored with `group_padded` columns.
    group: usize,
    group_padded: usize,
    pub inputs_padded: usize,
    pub outputs_padded: usize,
    /// Where its sums start.
    sums: usize,
    /// Whether its input ever needs a gradient.
    pub needs_transposed: bool,
}

impl Linear {
    /// Where its sums lie: a row for each input, and one for the bias.
    pub fn sums(&self) -> Range<usize> {
        self.sums..self.sums + (self.inputs_padded + 1) * self.outputs_padded
    }

    /// The row of the weights that belongs to a padded input column; none for padding.
    pub fn input_row(&self, column: usize) -> Option<usize> {
        let (group, at) = (column / self.group_padded, column % self.group_padded);
        (at < self.group).then_some(group * self.group + at)
    }

    /// Pairs of a padded input column and the row of the weights that belongs to it.
    pub fn input_rows(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.inputs_padded).filter_map(|column| Some((column, self.input_row(column)?)))
    }
}

/// A parameter whose gradient each row has in full.
#[derive(Debug, Clone)]
pub(crate) struct Vector {
    pub range: Range<usize>,
    pub padded: usize,
    sums: usize,
}

impl Vector {
    /// Where its sums lie.
    pub fn sums(&self) -> Range<usize> {
        self.sums..self.sums + self.padded
    }
}

/// Where all parameters of a model lie.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Every norm, and the width of every layer but the last.
    pub norm: Norm,
    pub hidden: usize,
    pub tensors: Vec<Tensor>,
    pub statistics: Vec<Tensor>,
    pub linears: Vec<Linear>,
    /// Scale and shift of each norm, norm after norm.
    pub vectors: Vec<Vector>,
    /// The number of the norm after each layer.
    norms: Vec<Option<usize>>,
    pub parameters: usize,
    /// The length of all sums.
    pub sums: usize,
}

/// The columns in which `hidden` values are stored.
pub(crate) fn padded_width(hidden: usize) -> usize {
    hidden.next_multiple_of(16)
}

impl Layout {
    /// Without any parameter yet.
    pub fn empty(norm: Norm, hidden: usize) -> Self {
        Layout {
            norm,
            hidden,
            tensors: vec![],
            statistics: vec![],
            linears: vec![],
            vectors: vec![],
            norms: vec![],
            parameters: 0,
            sums: 0,
        }
    }

    pub fn new(arch: &Architecture) -> Self {
        let (hidden, width) = (arch.hidden, padded_width(arch.hidden));
        let mut layout = Layout::empty(arch.norm, hidden);
        for (b, &columns) in arch.inputs.iter().enumerate() {
            for l in 0..arch.layers {
                let name = format!("branches.{b}.layers.{l}");
                let (inputs, stored) = if l == 0 { (columns, columns) } else { (hidden, width) };
                layout.linear(&name, (inputs, stored), inputs, (hidden, width), Some(b));
                layout.linears.last_mut().expect("just added").needs_transposed = l > 0;
                match arch.is_plain(l) {
                    true => layout.norms.push(None),
                    false => layout.norm_after(&name, Some(b)),
                }
            }
        }
        if arch.norm_placement == NormPlacement::AfterJoin {
            let last: Vec<usize> = (1..=arch.parts()).map(|b| b * arch.layers - 1).collect();
            for (part, i) in last.into_iter().enumerate() {
                layout.norm_after(&format!("closing.{part}"), None);
                layout.norms[i] = layout.norms.pop().flatten();
            }
        }
        let inputs = arch.parts() * hidden;
        layout.linear("head", (hidden, width), inputs, (arch.classes, padded(arch.classes)), None);
        layout
    }

    /// Adds the norm after the next layer; none where the model has no norms.
    pub fn norm_after(&mut self, name: &str, branch: Option<usize>) {
        if self.norm == Norm::None {
            return self.norms.push(None);
        }
        let hidden = self.hidden;
        self.vector(&format!("{name}.norm.weight"), hidden, Start::Constant(1.0), branch);
        let shift = self.vector(&format!("{name}.norm.bias"), hidden, Start::Constant(0.0), branch);
        if self.norm == Norm::Batch {
            for (what, start) in [("running_mean", 0.0), ("running_var", 1.0)] {
                let at = self.statistics.last().map_or(0, |last| last.range.end);
                let (name, shape) = (format!("{name}.norm.{what}"), vec![hidden]);
                let (range, start) = (at..at + hidden, Start::Constant(start));
                self.statistics.push(Tensor { name, shape, range, start, branch });
            }
        }
        self.norms.push(Some(shift / 2));
    }

    /// The number of the norm after layer `i`. Where norms stand after the join, that of part `p` counts as the norm
    /// after branch `p`'s last layer.
    pub fn norm(&self, i: usize) -> Option<usize> {
        self.norms.get(i).copied().flatten()
    }

    /// The numbers of scale and shift of the norm after layer `i`.
    pub fn norm_vectors(&self, i: usize) -> Option<[usize; 2]> {
        self.norm(i).map(|norm| [2 * norm, 2 * norm + 1])
    }

    /// Running mean and variance of the norm after layer `i`.
    pub fn running(&self, i: usize) -> &[Tensor] {
        self.norm(i).and_then(|norm| self.statistics.get(2 * norm..2 * norm + 2)).unwrap_or_default()
    }

    /// The linear layer that gives logits.
    pub fn head(&self) -> &Linear {
        self.linears.last().expect("there is a head")
    }

    /// Adds a linear layer that starts as PyTorch's does, and gives its number.
    pub fn linear(
        &mut self,
        name: &str,
        (group, group_padded): (usize, usize),
        inputs: usize,
        (outputs, outputs_padded): (usize, usize),
        branch: Option<usize>,
    ) -> usize {
        let start = Start::Uniform(1.0 / (inputs as f32).sqrt());
        let weight = self.tensor(format!("{name}.weight"), vec![inputs, outputs], start, branch);
        let bias = self.tensor(format!("{name}.bias"), vec![outputs], start, branch);
        let inputs_padded = inputs / group * group_padded;
        let linear = Linear {
            weight,
            bias,
            outputs,
            group,
            group_padded,
            inputs_padded,
            outputs_padded,
            sums: self.sums,
            needs_transposed: true,
        };
        self.sums = linear.sums().end;
        self.linears.push(linear);
        self.linears.len() - 1
    }

    pub fn vector(&mut self, name: &str, length: usize, start: Start, branch: Option<usize>) -> usize {
        let range = self.tensor(name.into(), vec![length], start, branch);
        let padded = padded_width(length);
        self.vectors.push(Vector { range, padded, sums: self.sums });
        self.sums += padded;
        self.vectors.len() - 1
    }

    fn tensor(
        &mut self,
        name: String,
        shape: Vec<usize>,
        start: Start,
        branch: Option<usize>,
    ) -> Range<usize> {
        let range = self.parameters..self.parameters + shape.iter().product::<usize>();
        self.parameters = range.end;
        self.tensors.push(Tensor { name, shape, range: range.clone(), start, branch });
        range
    }

    /// Sets how the weights and the bias of the last linear layer start.
    pub fn start_last(&mut self, weight: Start, bias: Start) {
        let n = self.tensors.len();
        self.tensors[n - 2].start = weight;
        self.tensors[n - 1].start = bias;
    }
}
