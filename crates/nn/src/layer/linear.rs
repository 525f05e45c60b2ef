//! The linear layer on dense input: `z = x W + b`, with `W` stored as inputs x outputs.
//!
//! Backward, with `d` the gradient by `z`: `dW = Σ xᵀ d`, `db = Σ d`, and by the input `d Wᵀ`. For per-sample
//! norms no sample's `dW` is formed: `|xᵀ d| = |x| |d|`.

use crate::aligned::Aligned;
use crate::kernel::product::{Matrix, Start, add_outer, add_rows, affine};
use crate::kernel::vectorised;

/// The weights of a linear layer, padded to whole vectors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Weights {
    /// Inputs x outputs, both padded.
    pub w: Aligned,
    pub b: Vec<f32>,
    /// Outputs (not padded) x inputs, for the gradient by the input; empty where none is needed.
    pub transposed: Aligned,
    pub inputs: usize,
    pub outputs: usize,
}

impl Weights {
    pub fn forward(&self, rows: usize, x: Matrix<'_>, out: &mut [f32], out_stride: usize) {
        affine(rows, x, &self.w, Start::Row(&self.b), self.outputs, out, out_stride);
    }

    /// Makes it the layer that reads `x` where this one reads `scale x + shift`, and gives the same.
    pub fn absorb(&mut self, scale: &[f32], shift: &[f32]) {
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

    /// The part that reads so many inputs from `first` on; the bias goes with the first.
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

    /// The gradient by the input, added to `start`.
    pub fn backward(&self, rows: usize, d: Matrix<'_>, start: Start<'_>, dx: &mut [f32], dx_stride: usize) {
        affine(rows, d, &self.transposed, start, self.inputs, dx, dx_stride);
    }
}

/// Adds the gradients by weights and bias to `sums`: a row for each input, and one more for the bias.
pub(crate) fn add_gradient(
    rows: usize,
    x: Matrix<'_>,
    inputs: usize,
    d: &[f32],
    columns: usize,
    sums: &mut [f32],
) {
    let (weight, bias) = sums.split_at_mut(inputs * columns);
    add_outer(rows, x, inputs, d, columns, weight);
    add_rows(rows, Matrix { values: d, stride: columns }, columns, bias);
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
