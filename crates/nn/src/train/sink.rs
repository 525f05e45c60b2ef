//! Where a backward pass puts gradients: summed at once, or kept per sample.

use crate::aligned::Aligned;
use crate::input::Input;
use crate::kernel::product::{Matrix, add_rows};
use crate::layer::{linear, sparse_linear};
use crate::layout::Layout;
use crate::network::Network;
use crate::pool::Lent;

/// What a linear layer was given.
#[derive(Clone, Copy)]
pub(crate) enum Operand<'s, 'a> {
    Dense(Matrix<'s>),
    Sparse(Input<'a>, &'a [u32]),
}

impl<'s> Operand<'s, '_> {
    pub fn dense(values: &'s [f32], stride: usize) -> Self {
        Operand::Dense(Matrix { values, stride })
    }
}

/// Takes the parts of the gradient of a block of rows.
pub(crate) trait Sink<'a> {
    /// A linear layer that was used `steps` times per row, on `x`, with `delta` the gradient by its output.
    fn linear(&mut self, slot: usize, rows: usize, steps: usize, x: Operand<'_, 'a>, delta: &[f32]);

    /// Another parameter, with each row's own gradient.
    fn vector(&mut self, slot: usize, rows: usize, gradients: Matrix<'_>);
}

/// Sums over rows, in single precision; for one chunk of rows.
pub(crate) struct Sums<'n> {
    layout: &'n Layout,
    planes: usize,
    pub values: Lent<'n, Aligned>,
}

impl<'n> Sums<'n> {
    /// With so many planes of gradients for each layer before a norm.
    pub fn new(network: &'n Network, planes: usize) -> Self {
        let mut values = network.sums.lend(Aligned::default);
        values.reset(network.values.layout.sums(planes));
        Sums { layout: &network.values.layout, planes, values }
    }
}

impl<'a> Sink<'a> for Sums<'_> {
    fn linear(&mut self, slot: usize, rows: usize, steps: usize, x: Operand<'_, 'a>, delta: &[f32]) {
        let slot = &self.layout.linears[slot];
        let (columns, sums) = (slot.columns(self.planes), &mut self.values[slot.sums(self.planes)]);
        match x {
            Operand::Dense(x) => {
                linear::add_gradient(rows * steps, x, slot.inputs_padded, delta, columns, sums);
            }
            Operand::Sparse(input, rows) => {
                sparse_linear::add_gradient(input, rows, delta, columns, sums);
            }
        }
    }

    fn vector(&mut self, slot: usize, rows: usize, gradients: Matrix<'_>) {
        let slot = &self.layout.vectors[slot];
        add_rows(rows, gradients, slot.padded, &mut self.values[slot.sums(self.planes)]);
    }
}
