//! Forward through the layers of the branches, and from joined rows to logits.

use super::{BLOCK, Block};
use crate::aligned::Aligned;
use crate::input::Input;
use crate::kernel::product::{Matrix, Start, affine};
use crate::kernel::tile::{self, LANES};
use crate::layer::linear::Operand;
use crate::layer::{activation, dropout, l2_normalise};
use crate::packed;

/// The rows of an input, dense ones brought together where they do not lie so already.
pub(super) fn fetch<'s, 'a: 's>(x: &'s mut Aligned, input: Input<'a>, rows: &'a [u32]) -> Operand<'s, 'a> {
    let columns = match input {
        Input::Sparse { .. } => {
            input.tell(rows);
            return Operand::Sparse(input, rows);
        }
        Input::Half { columns, .. } => columns,
        Input::Dense { columns, values } => {
            if let Some(first) = packed::run(rows) {
                input.tell(rows);
                return Operand::dense(&values[first * columns..], columns);
            }
            columns
        }
    };
    x.reserve(BLOCK * columns);
    input.gather(rows, x);
    Operand::dense(&x[..BLOCK * columns], columns)
}

impl Block<'_, '_> {
    /// All branches, and their join.
    pub fn forward(&mut self) {
        for b in 0..self.ready.branches {
            self.branch_forward(b);
        }
        self.join();
    }

    /// All layers of a branch.
    pub fn branch_forward(&mut self, b: usize) {
        for l in 0..self.ready.layers {
            self.layer_forward(b, l);
        }
    }

    /// Layer `l` of branch `b`, where the trace has the one below: leaves its activations in the trace.
    pub fn layer_forward(&mut self, b: usize, l: usize) {
        let ready = self.ready;
        let (i, width, count) = (ready.number(b, l), ready.padded_width, self.rows.len());
        let written = l > 0 && ready.is_written(l - 1);
        if written {
            self.write_out(b, l - 1);
        }
        let (scratch, trace) = (&mut *self.scratch, &mut *self.trace);
        let (below, a) = trace.a.split_at_mut(i * trace.size);
        let a = &mut a[..trace.size];
        let x = match l {
            0 => fetch(&mut scratch.x, self.inputs.as_slice()[b], self.rows),
            _ if written => Operand::dense(&scratch.y[(i - 1) * trace.size..], width),
            _ => Operand::dense(&below[below.len() - trace.size..], width),
        };
        ready.linears[i].forward(count, x, a);
        if !ready.is_plain(l) {
            activation::forward(ready.network.architecture().activation, &mut a[..count * width]);
        }
    }

    /// The output of activation `i`.
    pub fn activations(&self, i: usize) -> &[f32] {
        self.trace.a(i)
    }

    /// Writes the output of layer `l` of branch `b`: norm and dropout of its activations.
    pub fn write_out(&mut self, b: usize, l: usize) -> &[f32] {
        let (ready, i, size) = (self.ready, self.ready.number(b, l), self.trace.size);
        self.scratch.y.reserve(self.trace.a.len());
        let y = &mut self.scratch.y[i * size..][..size];
        ready.norms[i].forward(self.rows.len(), self.trace.a(i), y);
        if let Some(mask) = ready.mask(b, l) {
            dropout::apply(mask, self.rows, ready.network.architecture().hidden, y, ready.padded_width);
        }
        y
    }

    /// From joined rows to logits, in `scratch.logits`.
    pub fn classify(&mut self) {
        if !self.ready.is_absorbed(self.ready.layers - 1) {
            return self.classify_joined();
        }
        self.classify_absorbed();
        if self.ready.network.architecture().normalise {
            let (count, columns) = (self.rows.len(), self.ready.heads[0].outputs);
            let logits = &mut self.scratch.logits[..count * columns];
            l2_normalise::divide(columns, &self.trace.inverse, &self.ready.bias, logits);
        }
    }

    /// From the last activations to logits; where rows are divided by their norms, to those and what is to be divided.
    pub(super) fn classify_absorbed(&mut self) {
        let (ready, scratch, trace) = (self.ready, &mut *self.scratch, &mut *self.trace);
        let (count, width, columns) = (self.rows.len(), ready.padded_width, ready.heads[0].outputs);
        let normalise = ready.network.architecture().normalise;
        scratch.squares.fill(0.0);
        for (b, head) in ready.heads.iter().enumerate() {
            let i = ready.last(b);
            let a = trace.a(i);
            let start = if b == 0 { Start::Row(&head.b) } else { Start::Sum };
            affine(count, Matrix { values: a, stride: width }, &head.w, start, columns, &mut scratch.logits);
            if normalise {
                let map = &ready.maps[i];
                tile::add_squares(width, &a[..count * width], &map.scale, &map.shift, &mut scratch.squares);
            }
        }
        if normalise {
            l2_normalise::invert(&scratch.squares[..count * LANES], &mut trace.inverse);
        }
    }
}
