//! Sinks: where a backward pass puts gradients. They are summed over rows ([`Sums`]), taken per sample (`clipped.rs`),
//! or dropped ([`Discard`]).

use crate::aligned::Aligned;
use crate::kernel::product::{Matrix, add_rows};
use crate::layer::linear::{self, Operand};
use crate::layout::Layout;
use crate::loss::{HeadSums, Tally};
use crate::network::Network;
use crate::pool::Lent;
use crate::train::collective::{Part, read_f32, read_f64, take_u64, write_f32, write_f64};

/// Takes the gradients of a block of rows.
pub(crate) trait Sink<'a> {
    /// A linear layer on `x`; `delta` is the gradient with respect to its output.
    fn linear(&mut self, slot: usize, rows: usize, x: Operand<'_, 'a>, delta: &[f32]);

    /// Another parameter, with each row's own gradient.
    fn vector(&mut self, slot: usize, rows: usize, gradients: Matrix<'_>);

    /// The sums for scale and shift of a norm over the batch, to be added to; none where they are not wanted.
    fn batch_sums(&mut self, _vectors: [usize; 2]) -> Option<[&mut [f32]; 2]> {
        None
    }

    /// The sums of a head that has absorbed norms, to be added to; none where they are not wanted.
    fn head_sums(&mut self) -> Option<HeadSums<'_>> {
        None
    }
}

/// Drops all gradients.
pub(crate) struct Discard;

impl<'a> Sink<'a> for Discard {
    fn linear(&mut self, _: usize, _: usize, _: Operand<'_, 'a>, _: &[f32]) {}
    fn vector(&mut self, _: usize, _: usize, _: Matrix<'_>) {}
}

/// Sums over the rows of one chunk, in single precision.
pub(crate) struct Sums<'n> {
    layout: &'n Layout,
    pub values: Lent<'n, Aligned>,
    /// Of a head with absorbed norms: `Σ d` and the sum of radial coefficients.
    pub bias: Vec<f32>,
    pub radial: f32,
    pub tally: Tally,
}

impl<'n> Sums<'n> {
    pub fn new(network: &'n Network) -> Self {
        let layout = &network.values.layout;
        let mut values = network.sums.lend(Aligned::default);
        values.reset(layout.sums);
        let bias = vec![0.0; layout.head().outputs_padded];
        Sums { layout, values, bias, radial: 0.0, tally: Tally::default() }
    }
}

impl Part for Sums<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        write_f32(&self.values, out);
        write_f32(&self.bias, out);
        write_f32(&[self.radial], out);
        write_f64(&[self.tally.loss], out);
        out.extend((self.tally.correct as u64).to_le_bytes());
    }

    fn read(&mut self, from: &mut &[u8]) -> Option<()> {
        read_f32(&mut self.values, from)?;
        read_f32(&mut self.bias, from)?;
        read_f32(std::slice::from_mut(&mut self.radial), from)?;
        read_f64(std::slice::from_mut(&mut self.tally.loss), from)?;
        self.tally.correct = take_u64(from)? as usize;
        Some(())
    }
}

impl<'a> Sink<'a> for Sums<'_> {
    fn linear(&mut self, slot: usize, rows: usize, x: Operand<'_, 'a>, delta: &[f32]) {
        let slot = &self.layout.linears[slot];
        let d = Matrix { values: delta, stride: slot.outputs_padded };
        linear::add_gradient(rows, x, slot.inputs_padded, d, &mut self.values[slot.sums()]);
    }

    fn vector(&mut self, slot: usize, rows: usize, gradients: Matrix<'_>) {
        let slot = &self.layout.vectors[slot];
        add_rows(rows, gradients, slot.padded, &mut self.values[slot.sums()]);
    }

    fn batch_sums(&mut self, vectors: [usize; 2]) -> Option<[&mut [f32]; 2]> {
        let [gamma, beta] = vectors.map(|slot| self.layout.vectors[slot].sums());
        let (gamma, beta) = self.values[gamma.start..beta.end].split_at_mut(gamma.len());
        Some([gamma, beta])
    }

    fn head_sums(&mut self) -> Option<HeadSums<'_>> {
        Some(HeadSums { radial: &mut self.radial, bias: &mut self.bias })
    }
}
