//! Where each parameter lives: in the flat list of parameters, and in the padded sums of gradients.

use std::ops::Range;

use crate::jk::Slots;
use crate::kernel::padded;
use crate::layer::Norm;
use crate::network::{Architecture, Closing};

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
    /// Where its sums start, with one plane.
    sums: usize,
    pub branch: Option<usize>,
    /// Whether a gradient by its input is ever needed.
    pub needs_transposed: bool,
}

impl Linear {
    /// The columns of its sums, if layers of branches have so many planes.
    pub fn columns(&self, planes: usize) -> usize {
        if self.branch.is_some() { planes * self.outputs_padded } else { self.outputs_padded }
    }

    /// Where its sums lie: a row for each input, and one for the bias.
    pub fn sums(&self, planes: usize) -> Range<usize> {
        let start = planes * self.sums;
        start..start + (self.inputs_padded + 1) * self.columns(planes)
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
    /// Where its sums lie, if layers of branches have so many planes.
    pub fn sums(&self, planes: usize) -> Range<usize> {
        planes * self.sums..planes * self.sums + self.padded
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub tensors: Vec<Tensor>,
    pub statistics: Vec<Tensor>,
    pub linears: Vec<Linear>,
    /// Scale and shift of each norm, norm after norm; then those of the combination.
    pub vectors: Vec<Vector>,
    /// The norm that follows each layer of each branch, by number.
    norms: Vec<Option<usize>>,
    pub jk: Slots,
    pub parameters: usize,
    sums: usize,
}

/// The columns in which `hidden` values are stored.
pub(crate) fn hidden_padded(hidden: usize) -> usize {
    hidden.next_multiple_of(16)
}

impl Layout {
    /// Without any parameter yet.
    pub fn empty() -> Self {
        Layout {
            tensors: vec![],
            statistics: vec![],
            linears: vec![],
            vectors: vec![],
            norms: vec![],
            jk: Slots::None,
            parameters: 0,
            sums: 0,
        }
    }

    pub fn new(arch: &Architecture) -> Self {
        let mut layout = Layout::empty();
        let (hidden, wide) = (arch.hidden, hidden_padded(arch.hidden));
        for (b, &columns) in arch.inputs.iter().enumerate() {
            for l in 0..arch.layers {
                let name = format!("branches.{b}.layers.{l}");
                let (inputs, stored) = if l == 0 { (columns, columns) } else { (hidden, wide) };
                layout.linear(&name, (inputs, stored), inputs, (hidden, wide), Some(b));
                layout.linears.last_mut().expect("just added").needs_transposed = l > 0;
                let norm = (!arch.is_plain(l)).then(|| layout.norm_after(&name, arch, Some(b)));
                layout.norms.push(norm.flatten());
            }
        }
        if arch.closing == Closing::Combination {
            let last = (1..=arch.inputs.len()).map(|b| b * arch.layers - 1);
            let closing: Vec<_> =
                (0..arch.groups()).map(|g| layout.norm_after(&format!("closing.{g}"), arch, None)).collect();
            for (i, norm) in last.zip(closing) {
                layout.norms[i] = norm;
            }
        }
        layout.jk = arch.jk.slots(&mut layout, arch.inputs.len(), hidden);
        let inputs = arch.groups() * hidden;
        layout.linear("head", (hidden, wide), inputs, (arch.classes, padded(arch.classes)), None);
        layout
    }

    /// Adds a norm, and gives its number.
    fn norm_after(&mut self, name: &str, arch: &Architecture, branch: Option<usize>) -> Option<usize> {
        let hidden = arch.hidden;
        if arch.norm == Norm::None {
            return None;
        }
        self.vector(&format!("{name}.norm.weight"), hidden, Start::Constant(1.0), branch);
        let shift = self.vector(&format!("{name}.norm.bias"), hidden, Start::Constant(0.0), branch);
        if arch.norm == Norm::Batch {
            for (what, start) in [("running_mean", 0.0), ("running_var", 1.0)] {
                let at = self.statistics.last().map_or(0, |last| last.range.end);
                let (name, shape) = (format!("{name}.norm.{what}"), vec![hidden]);
                let (range, start) = (at..at + hidden, Start::Constant(start));
                self.statistics.push(Tensor { name, shape, range, start, branch });
            }
        }
        Some(shift / 2)
    }

    /// The norm that follows layer `i`, by number. Where the combination is normalised, that of its part `b` counts as the
    /// norm of branch `b`'s last layer.
    pub fn norm(&self, i: usize) -> Option<usize> {
        self.norms.get(i).copied().flatten()
    }

    /// Scale and shift of the norm that follows layer `i`, by number.
    pub fn norm_vectors(&self, i: usize) -> Option<[usize; 2]> {
        self.norm(i).map(|norm| [2 * norm, 2 * norm + 1])
    }

    /// Running mean and variance of the norm that follows layer `i`.
    pub fn running(&self, i: usize) -> &[Tensor] {
        self.norm(i).map_or(&[], |norm| &self.statistics[2 * norm..2 * norm + 2])
    }

    /// The linear layer that gives logits.
    pub fn head(&self) -> &Linear {
        self.linears.last().expect("there is a head")
    }

    /// The length of all sums, if layers of branches have so many planes.
    pub fn sums(&self, planes: usize) -> usize {
        planes * self.sums
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
            branch,
            needs_transposed: true,
        };
        self.sums = linear.sums(1).end;
        self.linears.push(linear);
        self.linears.len() - 1
    }

    pub fn vector(&mut self, name: &str, length: usize, start: Start, branch: Option<usize>) -> usize {
        let range = self.tensor(name.into(), vec![length], start, branch);
        let padded = hidden_padded(length);
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
