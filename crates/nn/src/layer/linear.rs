//! The linear layer: `z = x W + b`, with `W` stored as inputs x outputs.
//!
//! Backward, with `d` the gradient with respect to `z`: `dW = Σ xᵀ d`, `db = Σ d`, `dx = d Wᵀ`. For per-sample norms no
//! sample's `dW` is formed: `|xᵀ d| = |x| |d|`.

use crate::aligned::Aligned;
use crate::input::Input;
use crate::kernel::join::InParts;
use crate::kernel::product::{Matrix, Start, add_outer, add_rows, affine};
use crate::kernel::vectorised;
use crate::layer::norm::ColumnMap;
use crate::layer::sparse_linear;

/// The weights of a linear layer, padded to whole vectors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Weights {
    /// Inputs x outputs, both padded.
    pub w: Aligned,
    pub b: Vec<f32>,
    /// Outputs (not padded) x inputs, for the backward pass; empty where the input needs no gradient.
    pub transposed: Aligned,
    pub inputs: usize,
    pub outputs: usize,
}

impl Weights {
    /// `out = x W + b`.
    pub fn forward(&self, rows: usize, x: Operand<'_, '_>, out: &mut [f32]) {
        match x {
            Operand::Dense(x) => affine(rows, x, &self.w, Start::Row(&self.b), self.outputs, out),
            Operand::Sparse(input, rows) => {
                sparse_linear::forward(input, rows, &self.w, &self.b, self.outputs, out);
            }
            Operand::Parts(x) => {
                let weights = self.w.chunks_exact(x.columns * self.outputs);
                for (part, w) in weights.enumerate() {
                    let start = if part == 0 { Start::Row(&self.b) } else { Start::Sum };
                    affine(rows, x.part(part), w, start, self.outputs, out);
                }
            }
        }
    }

    /// Absorbs a map of its input: from now on it gives for `x` what it gave for `scale x + shift`.
    pub fn absorb(&mut self, ColumnMap { scale, shift }: &ColumnMap) {
        let mut shifted = vec![0.0; self.outputs];
        for ((w, &scale), &shift) in self.w.chunks_exact_mut(self.outputs).zip(scale).zip(shift) {
            for (w, shifted) in w.iter_mut().zip(&mut shifted) {
                *shifted += f64::from(shift) * f64::from(*w);
                *w *= scale;
            }
        }
        for transposed in self.transposed.chunks_exact_mut(self.inputs) {
            transposed.iter_mut().zip(scale).for_each(|(w, scale)| *w *= scale);
        }
        self.b.iter_mut().zip(shifted).for_each(|(b, shifted)| *b = (f64::from(*b) + shifted) as f32);
    }

    /// The part for the inputs `first..first + inputs`; the bias goes with the first part.
    pub fn part(&self, first: usize, inputs: usize) -> Weights {
        let columns = |row: &[f32]| row[first..first + inputs].to_vec();
        let transposed: Vec<f32> = self.transposed.chunks_exact(self.inputs).flat_map(columns).collect();
        Weights {
            w: self.w[first * self.outputs..][..inputs * self.outputs].into(),
            b: if first == 0 { self.b.clone() } else { vec![0.0; self.outputs] },
            transposed: transposed[..].into(),
            inputs,
            outputs: self.outputs,
        }
    }

    /// The gradient with respect to the input, given that with respect to the output.
    pub fn backward(&self, rows: usize, d: Matrix<'_>, dx: &mut [f32]) {
        self.backward_from(Start::Zero, rows, d, dx);
    }

    /// As [`Weights::backward`], added to `start`.
    pub fn backward_from(&self, start: Start<'_>, rows: usize, d: Matrix<'_>, dx: &mut [f32]) {
        affine(rows, d, &self.transposed, start, self.inputs, dx);
    }
}

/// The input of a linear layer.
#[derive(Clone, Copy)]
pub(crate) enum Operand<'s, 'a> {
    Dense(Matrix<'s>),
    /// The given rows of a sparse input.
    Sparse(Input<'a>, &'a [u32]),
    /// Several lists of rows, side by side.
    Parts(InParts<'s>),
}

impl<'s> Operand<'s, '_> {
    pub fn dense(values: &'s [f32], stride: usize) -> Self {
        Operand::Dense(Matrix { values, stride })
    }
}

/// Adds the gradients with respect to weights and bias to `sums`: a row for each of `inputs`, and one more for the
/// bias; `d` is the gradient with respect to the output.
pub(crate) fn add_gradient(rows: usize, x: Operand<'_, '_>, inputs: usize, d: Matrix<'_>, sums: &mut [f32]) {
    let columns = d.stride;
    let (weights, bias) = sums.split_at_mut(inputs * columns);
    match x {
        Operand::Dense(x) => add_outer(rows, x, inputs, d.values, columns, weights),
        Operand::Sparse(input, rows) => sparse_linear::scatter(input, rows, d.values, columns, weights),
        Operand::Parts(x) => {
            for (part, sums) in weights.chunks_exact_mut(x.columns * columns).enumerate() {
                add_outer(rows, x.part(part), x.columns, d.values, columns, sums);
            }
        }
    }
    add_rows(rows, d, columns, bias);
}

vectorised! {
    /// Brings the given rows of a dense input together.
    pub(crate) fn gather<'a>(values: &'a [f32], columns: usize, rows: &'a [u32], x: &'a mut [f32]) {
        if columns == 16 {
            let (values, x) = (values.as_chunks::<16>().0, x.as_chunks_mut::<16>().0);
            for (x, &row) in x.iter_mut().zip(rows) {
                *x = values[row as usize];
            }
        } else {
            for (x, &row) in x.chunks_exact_mut(columns).zip(rows) {
                x.copy_from_slice(&values[row as usize * columns..][..columns]);
            }
        }
    }
}
