//! The model: a linear layer to the logits, and beside it one hidden layer where it is wanted.

use rayon::prelude::*;

use super::design::{RowScaling, dense_rows, sparse_rows};
use super::fit::{gather, tanh_all};
use crate::error::{Error, Result, check_length, check_setting};
use crate::input::{Input, Inputs, check_rows};
use crate::kernel::padded;
use crate::kernel::product::{Matrix, Start as From, affine};
use crate::network::Tensor;

/// Rows worked on at once.
const BLOCK: usize = 256;

/// The shape of a [`Softmax`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoftmaxShape {
    /// The columns of each input.
    pub inputs: Vec<usize>,
    /// The width of a hidden layer (tanh) beside the linear one; 0 for none.
    pub hidden: usize,
    /// The number of classes.
    pub classes: usize,
    /// How each row is scaled by itself before it is read.
    pub scaling: RowScaling,
}

impl SoftmaxShape {
    pub(super) fn columns(&self) -> usize {
        self.inputs.iter().sum()
    }

    /// The tensors of a model of this shape, by name, in the order of their values.
    pub(super) fn tensors(&self) -> Vec<(&'static str, Vec<usize>)> {
        let (columns, hidden, classes) = (self.columns(), self.hidden, self.classes);
        let mut tensors = vec![("weight", vec![columns, classes])];
        if hidden > 0 {
            tensors.push(("hidden.weight", vec![columns, hidden]));
            tensors.push(("hidden.bias", vec![hidden]));
            tensors.push(("hidden.out", vec![hidden, classes]));
        }
        tensors.push(("bias", vec![classes]));
        tensors
    }

    /// The number of parameters.
    pub fn parameter_count(&self) -> usize {
        self.tensors().iter().map(|(_, shape)| shape.iter().product::<usize>()).sum()
    }

    fn check(&self) -> Result<()> {
        check_setting(!self.inputs.is_empty(), "the number of inputs", 0, "at least 1")?;
        check_setting(
            self.columns() <= 1 << 24,
            "the number of input columns",
            self.columns(),
            "up to 16777216",
        )?;
        check_setting(self.hidden <= 1024, "the hidden width", self.hidden, "up to 1024")?;
        let classes = (1..=1 << 16).contains(&self.classes);
        check_setting(classes, "the number of classes", self.classes, "1 to 65536")
    }
}

/// Multinomial logistic regression: `logits = x W + b`, with `tanh(x U + c) V` added where there is a hidden layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Softmax {
    shape: SoftmaxShape,
    /// In the order of [`SoftmaxShape::tensors`].
    pub(super) parameters: Vec<f32>,
    column_weights: Vec<f32>,
}

impl Softmax {
    pub(super) fn from_parts(shape: SoftmaxShape, parameters: Vec<f32>, column_weights: Vec<f32>) -> Softmax {
        Softmax { shape, parameters, column_weights }
    }

    /// The shape.
    pub fn shape(&self) -> &SoftmaxShape {
        &self.shape
    }

    /// The number of parameters.
    pub fn parameter_count(&self) -> usize {
        self.parameters.len()
    }

    /// All tensors by name; with weights of columns where rows are scaled by them.
    pub fn state(&self) -> Vec<(&'static str, Vec<usize>, &[f32])> {
        let mut at = 0;
        let mut state = vec![];
        for (name, shape) in self.shape.tensors() {
            let length: usize = shape.iter().product();
            state.push((name, shape, &self.parameters[at..at + length]));
            at += length;
        }
        if self.shape.scaling == RowScaling::WeightedUnit {
            state.push(("columns", vec![self.shape.columns()], &self.column_weights[..]));
        }
        state
    }

    /// A model with a given state; every tensor must be there, and no other.
    pub fn from_state<'a>(
        shape: SoftmaxShape,
        state: impl IntoIterator<Item = Tensor<'a>>,
    ) -> Result<Softmax> {
        shape.check()?;
        let mut wanted = shape.tensors();
        if shape.scaling == RowScaling::WeightedUnit {
            wanted.push(("columns", vec![shape.columns()]));
        }
        let state: Vec<Tensor<'a>> = state.into_iter().collect();
        if let Some(tensor) = state.iter().find(|t| wanted.iter().all(|(name, _)| *name != t.name)) {
            return Err(Error::UnknownTensor(tensor.name.into()));
        }
        let mut parameters = vec![];
        for (name, expected) in wanted {
            let tensor = state.iter().find(|tensor| tensor.name == name);
            let tensor = tensor.ok_or_else(|| Error::MissingTensor(name.into()))?;
            if tensor.shape != expected {
                return Err(Error::Shape { name: name.into(), found: tensor.shape.to_vec(), expected });
            }
            check_length(format_args!("tensor {name}"), tensor.values.len(), expected.iter().product())?;
            parameters.extend_from_slice(tensor.values);
        }
        let column_weights = parameters.split_off(shape.parameter_count());
        Ok(Softmax { shape, parameters, column_weights })
    }

    /// Every logit times a factor: another temperature.
    pub fn scale_logits(&mut self, factor: f32) {
        let skipped = self.shape.columns() * self.shape.hidden + self.shape.hidden;
        let linear = self.shape.columns() * self.shape.classes;
        for (at, value) in self.parameters.iter_mut().enumerate() {
            if at < linear || at >= linear + skipped {
                *value *= factor;
            }
        }
    }

    /// Adds a number to the logit of each class.
    ///
    /// # Panics
    /// Where there is not one number for each class.
    pub fn shift_logits(&mut self, by: &[f32]) {
        assert_eq!(by.len(), self.shape.classes, "a number for each class");
        let first = self.parameters.len() - by.len();
        self.parameters[first..].iter_mut().zip(by).for_each(|(bias, by)| *bias += by);
    }

    /// The logits of the given rows: a row of classes for each.
    pub fn logits(&self, inputs: &Inputs<'_>, rows: &[u32]) -> Result<Vec<f32>> {
        let widths: Vec<usize> = inputs.as_slice().iter().map(Input::columns).collect();
        if widths != self.shape.inputs {
            let (found, expected) = (widths.iter().sum(), self.shape.columns());
            return Err(Error::Length { what: "row of all inputs".into(), found, expected });
        }
        check_rows(inputs, rows)?;
        let classes = self.shape.classes;
        let weights = PaddedWeights::of(self);
        let mut out = vec![0f32; rows.len() * classes];
        out.par_chunks_mut(BLOCK * classes).zip(rows.par_chunks(BLOCK)).for_each(|(out, rows)| {
            let logits = self.padded_logits(&weights, inputs.as_slice(), rows);
            for (out, logits) in out.chunks_exact_mut(classes).zip(logits.chunks_exact(weights.classes)) {
                out.copy_from_slice(&logits[..classes]);
            }
        });
        Ok(out)
    }

    /// The logits of a block of rows, by the kernels of the fit, each row padded.
    fn padded_logits(&self, weights: &PaddedWeights, views: &[Input<'_>], rows: &[u32]) -> Vec<f32> {
        let (columns, classes, hidden) = (self.shape.columns(), weights.classes, weights.hidden);
        let (scaling, column_weights) = (self.shape.scaling, &self.column_weights[..]);
        let mut logits = vec![0f32; rows.len() * classes];
        // A hidden layer reads dense rows.
        if let ([input @ Input::Sparse { .. }], 0) = (views, hidden) {
            let entries = sparse_rows(input, rows, 1.0, scaling, column_weights);
            logits.chunks_exact_mut(classes).for_each(|row| row.copy_from_slice(&weights.bias));
            gather(&entries, 0, &weights.linear, classes, &mut logits);
            return logits;
        }
        let x = dense_rows(views, rows, &vec![1.0; views.len()], scaling, column_weights);
        let x = Matrix { values: &x, stride: columns };
        affine(rows.len(), x, &weights.linear, From::Row(&weights.bias), classes, &mut logits);
        if hidden > 0 {
            let mut active = vec![0f32; rows.len() * hidden];
            affine(rows.len(), x, &weights.inner, From::Row(&weights.inner_bias), hidden, &mut active);
            tanh_all(&mut active);
            let active = Matrix { values: &active, stride: hidden };
            affine(rows.len(), active, &weights.outer, From::Sum, classes, &mut logits);
        }
        logits
    }
}

/// The parameters of a model as the kernels read them.
struct PaddedWeights {
    /// Classes and the hidden width, padded.
    classes: usize,
    hidden: usize,
    linear: Vec<f32>,
    inner: Vec<f32>,
    inner_bias: Vec<f32>,
    outer: Vec<f32>,
    bias: Vec<f32>,
}

impl PaddedWeights {
    fn of(model: &Softmax) -> PaddedWeights {
        let SoftmaxShape { classes, hidden: width, .. } = model.shape;
        let columns = model.shape.columns();
        let (linear, rest) = model.parameters.split_at(columns * classes);
        let (inner, rest) = rest.split_at(columns * width);
        let (inner_bias, rest) = rest.split_at(width);
        let (outer, bias) = rest.split_at(width * classes);
        let hidden = if width == 0 { 0 } else { padded(width) };
        let mut outer = padded_rows(outer, classes);
        outer.resize(hidden * padded(classes), 0.0);
        PaddedWeights {
            classes: padded(classes),
            hidden,
            linear: padded_rows(linear, classes),
            inner: padded_rows(inner, width),
            inner_bias: padded_rows(inner_bias, width),
            outer,
            bias: padded_rows(bias, classes),
        }
    }
}

/// Rows with zeros behind each.
fn padded_rows(values: &[f32], width: usize) -> Vec<f32> {
    let mut out = vec![];
    for row in values.chunks_exact(width.max(1)) {
        out.extend_from_slice(row);
        out.resize(out.len() + padded(width) - width, 0.0);
    }
    out
}
