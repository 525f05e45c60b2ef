//! The model: a linear layer to the logits, and beside it one hidden layer where it is wanted.

use rayon::prelude::*;

use super::design::{RowScaling, row_factor};
use crate::error::{Error, Result, check_length, check_setting};
use crate::input::{Input, Inputs, check_rows};
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
        let mut out = vec![0f32; rows.len() * classes];
        out.par_chunks_mut(BLOCK * classes).zip(rows.par_chunks(BLOCK)).for_each(|(out, rows)| {
            let mut hidden = vec![0f32; self.shape.hidden];
            for (out, &row) in out.chunks_exact_mut(classes).zip(rows) {
                inputs.as_slice().iter().for_each(|input| input.tell(&[row]));
                self.row_logits(inputs, row, &mut hidden, out);
            }
        });
        Ok(out)
    }

    fn row_logits(&self, inputs: &Inputs<'_>, row: u32, hidden: &mut [f32], out: &mut [f32]) {
        let (columns, classes, width) = (self.shape.columns(), self.shape.classes, self.shape.hidden);
        let (linear, rest) = self.parameters.split_at(columns * classes);
        let (inner, rest) = rest.split_at(columns * width);
        let (inner_bias, rest) = rest.split_at(width);
        let (outer, bias) = rest.split_at(width * classes);
        out.copy_from_slice(bias);
        hidden.copy_from_slice(inner_bias);
        let scaling = self.shape.scaling;
        let factor = match scaling {
            RowScaling::None => 1.0,
            _ => {
                let mut entries = vec![];
                each_entry(inputs, row, |column, value| entries.push((column, value)));
                row_factor(scaling, &self.column_weights, entries.into_iter())
            }
        };
        each_entry(inputs, row, |column, value| {
            let value = factor * value * self.column_weights.get(column).copied().unwrap_or(1.0);
            for (out, weight) in out.iter_mut().zip(&linear[column * classes..]) {
                *out += value * weight;
            }
            for (hidden, weight) in hidden.iter_mut().zip(&inner[column * width..]) {
                *hidden += value * weight;
            }
        });
        for (hidden, outer) in hidden.iter().zip(outer.chunks_exact(classes)) {
            let active = hidden.tanh();
            out.iter_mut().zip(outer).for_each(|(out, weight)| *out += active * weight);
        }
    }
}

/// Calls `work` with every entry of a row that is not zero, columns counted over all inputs.
fn each_entry(inputs: &Inputs<'_>, row: u32, mut work: impl FnMut(usize, f32)) {
    let mut first = 0;
    for input in inputs.as_slice() {
        match *input {
            Input::Dense { columns, values } => {
                let values = &values[row as usize * columns..][..columns];
                for (column, &value) in values.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                    work(first + column, value);
                }
            }
            Input::Half { columns, values } => {
                let values = values[row as usize * columns..][..columns].iter().map(|value| value.to_f32());
                for (column, value) in values.enumerate().filter(|(_, value)| *value != 0.0) {
                    work(first + column, value);
                }
            }
            Input::Sparse { .. } => {
                let (columns, values) = input.entries(row);
                for (at, &column) in columns.iter().enumerate() {
                    work(first + column as usize, values.map_or(1.0, |values| values[at]));
                }
            }
        }
        first += input.columns();
    }
}
