//! The join of the branches where the head has not absorbed their norms: with `h` a joined row,
//! ```text
//! z = h / |h|        y = f(s z + t)        logits = y W + b
//! ```
//! where norm and activation stand after the join; else the head reads `z`. Backward, with `g` the gradient with
//! respect to the norm's output, its sums `Σ g` and `Σ g (z - μ)` over the batch are `dβ` and `dγ`; with the
//! coefficients that follow from them,
//! ```text
//! dz = s g + linear z + constant        dh = (dz - z (z · dz)) / |h|
//! ```

use super::{Block, Trace};
use crate::input::Batch;
use crate::jk::CombinationBackward;
use crate::kernel::join::{
    InParts, NormBackward, NormSums, activate_scaled, activation_backward, join_backward, multiply_rows,
    squares,
};
use crate::kernel::product::{Matrix, Start};
use crate::layer::linear::Operand;
use crate::layer::{activation, dropout, l2_normalise};
use crate::loss::Tally;
use crate::train::sink::Sink;

impl<'a> Block<'_, 'a> {
    /// Joins the outputs of the branches and divides each row by its norm. Nothing where the head does so itself.
    pub fn join(&mut self) {
        let (ready, count) = (self.ready, self.rows.len());
        if ready.is_absorbed(ready.layers - 1) {
            return;
        }
        if !ready.is_after_join() {
            for b in 0..ready.branches {
                self.write_out(b, ready.layers - 1);
            }
        }
        if !ready.concatenates() {
            for b in 0..ready.branches {
                let (i, size) = (ready.last(b), self.trace.size);
                let outputs = if ready.is_after_join() { &self.trace.a } else { &self.scratch.y };
                let (from, stride) = (&outputs[i * size..], ready.branches * ready.padded_width);
                copy_columns(
                    count,
                    Matrix { values: from, stride: ready.padded_width },
                    ready.padded_width,
                    &mut self.scratch.side_by_side[b * ready.padded_width..],
                    stride,
                );
            }
            let scratch = &mut *self.scratch;
            let jk = ready.network.architecture().jk;
            jk.forward(ready.join_sizes(count), &scratch.side_by_side, &mut scratch.joined);
        }
        if ready.network.architecture().normalise {
            self.normalise();
        }
    }

    /// Joins again what the pass before joined, where the trace does not hold it.
    pub fn rejoin(&mut self) {
        if !(self.ready.is_after_join() && self.ready.concatenates()) {
            self.join();
        }
    }

    fn normalise(&mut self) {
        let (ready, count) = (self.ready, self.rows.len());
        let mut inverse = std::mem::take(&mut self.trace.inverse);
        squares(ready.parts, self.joined(), &mut inverse[..count]);
        l2_normalise::invert_roots(&mut inverse[..count]);
        let (first, step, width) = (self.joined_at(), self.joined().step, ready.padded_width);
        let values = match (ready.concatenates(), ready.is_after_join()) {
            (false, _) => &mut self.scratch.joined[..],
            (true, false) => &mut self.scratch.y[..],
            (true, true) => &mut self.trace.a[..],
        };
        for part in 0..ready.parts {
            multiply_rows(width, &inverse[..count], &mut values[first + part * step..][..count * width]);
        }
        self.trace.inverse = inverse;
    }

    /// Where the joined rows start in their list.
    fn joined_at(&self) -> usize {
        if self.ready.concatenates() { self.ready.last(0) * self.trace.size } else { 0 }
    }

    /// The joined rows.
    pub fn joined(&self) -> InParts<'_> {
        let (ready, columns) = (self.ready, self.ready.padded_width);
        let values = match (ready.concatenates(), ready.is_after_join()) {
            (false, _) => &self.scratch.joined[..],
            (true, false) => &self.scratch.y[..],
            (true, true) => &self.trace.a[..],
        };
        InParts { values: &values[self.joined_at()..], step: ready.layers * self.trace.size, columns }
    }

    /// The rows that the head reads.
    fn head_input(&self) -> InParts<'_> {
        if !self.ready.is_after_join() {
            return self.joined();
        }
        InParts { values: &self.trace.d, step: self.trace.size, columns: self.ready.padded_width }
    }

    /// From joined rows to logits. Leaves the output of the activations after the join in the trace.
    pub(super) fn classify_joined(&mut self) {
        let (ready, count) = (self.ready, self.rows.len());
        if ready.is_after_join() {
            for part in 0..ready.parts {
                self.activate_joined(part);
            }
        }
        let mut logits = std::mem::take(&mut self.scratch.logits);
        ready.head().forward(count, Operand::Parts(self.head_input()), &mut logits);
        self.scratch.logits = logits;
    }

    /// Norm, dropout and activation of a part of the join.
    fn activate_joined(&mut self, part: usize) {
        let (ready, width) = (self.ready, self.ready.padded_width);
        let (count, i, arch) = (self.rows.len(), ready.last(part), ready.network.architecture());
        let mut d = std::mem::take(&mut self.trace.d);
        let y = &mut d[part * self.trace.size..][..count * width];
        let z = &self.joined().part(part).values[..count * width];
        match ready.join_mask(part) {
            None if ready.concatenates() => {
                let map = &ready.maps[i];
                activate_scaled(arch.activation, width, z, &map.scale, &map.shift, y);
            }
            // A mean of branches varies little beside its own mean, which must be subtracted before anything is
            // multiplied.
            mask => {
                ready.norms[i].forward(count, z, y);
                if let Some(mask) = mask {
                    dropout::apply(mask, self.rows, arch.hidden, y, width);
                }
                activation::forward(arch.activation, y);
            }
        }
        self.trace.d = d;
    }

    /// Logits, the loss, and from the logits back to the norms: those of the join, or of the branches' last layers.
    pub(super) fn head_backward_joined(
        &mut self,
        batch: Batch<'a>,
        scale: f32,
        sink: &mut impl Sink<'a>,
    ) -> Tally {
        self.classify_joined();
        let (ready, count) = (self.ready, self.rows.len());
        let tally = self.loss(batch, scale, None);
        let d_head = std::mem::take(&mut self.trace.d_head);
        sink.linear(ready.linears.len() - 1, count, Operand::Parts(self.head_input()), &d_head);
        self.trace.d_head = d_head;
        if ready.is_after_join() {
            self.activations_backward(sink);
        } else {
            self.normalise_backward();
            self.combination_backward();
            self.backward_to_layer(ready.layers - 1, sink);
        }
        tally
    }

    /// The head, and activation and dropout of the join backward; and the sums of the join's norms.
    fn activations_backward(&mut self, sink: &mut impl Sink<'a>) {
        let (ready, count, width) = (self.ready, self.rows.len(), self.ready.padded_width);
        let arch = ready.network.architecture();
        let mut d = std::mem::take(&mut self.trace.d);
        let mut delta = std::mem::take(&mut self.scratch.delta);
        for (part, head) in ready.heads.iter().enumerate() {
            let i = ready.last(part);
            head.backward(count, Matrix { values: &self.trace.d_head, stride: head.outputs }, &mut delta);
            if let Some(mask) = ready.join_mask(part) {
                dropout::apply(mask, self.rows, arch.hidden, &mut delta, width);
            }
            let (z, mean) = (&self.joined().part(part).values[..count * width], &ready.norms[i].mean);
            let vectors = ready.network.values.layout.norm_vectors(i).filter(|_| arch.norm.mixes_rows());
            let sums = vectors.and_then(|vectors| sink.batch_sums(vectors));
            let sums = sums.map(|[second, first]| NormSums { z, mean, first, second });
            let y = &mut d[part * self.trace.size..][..count * width];
            activation_backward(arch.activation, width, &delta[..count * width], y, sums);
        }
        (self.trace.d, self.scratch.delta) = (d, delta);
    }

    /// The head and the row normalisation backward, where no norm stands between.
    fn normalise_backward(&mut self) {
        let (ready, count, columns) = (self.ready, self.rows.len(), self.ready.heads[0].outputs);
        let normalise = ready.network.architecture().normalise;
        if normalise {
            let Trace { d_head, inverse, radial, .. } = &mut *self.trace;
            let (logits, bias) = (&self.scratch.logits[..count * columns], &ready.head().b);
            l2_normalise::backward_through_linear(columns, logits, bias, inverse, d_head, radial);
        }
        let mut d = std::mem::take(&mut self.trace.d);
        for (part, head) in ready.heads.iter().enumerate() {
            let start = match normalise {
                true => Start::Scaled(&self.trace.radial, self.joined().part(part)),
                false => Start::Zero,
            };
            let d_head = Matrix { values: &self.trace.d_head, stride: columns };
            head.backward_from(start, count, d_head, &mut d[part * self.trace.size..]);
        }
        self.trace.d = d;
    }

    /// The norms after the join and the row normalisation before them backward, then the combination: the gradient with
    /// respect to the branches' outputs.
    pub(super) fn join_backward(&mut self) {
        let ready = self.ready;
        let norm = |part: usize| {
            let (map, coefficients) = (&ready.maps[ready.last(part)], &ready.coefficients[ready.last(part)]);
            NormBackward { scale: &map.scale, linear: &coefficients.linear, constant: &coefficients.constant }
        };
        let norms: Vec<NormBackward<'_>> = (0..ready.parts).map(norm).collect();
        let mut d = std::mem::take(&mut self.trace.d);
        let inverse = ready.network.architecture().normalise.then_some(&self.trace.inverse[..]);
        join_backward(&norms, self.joined(), inverse, &mut d, self.trace.size, self.rows.len());
        self.trace.d = d;
        self.combination_backward();
    }

    /// The combination of the branches backward; nothing where they are concatenated.
    fn combination_backward(&mut self) {
        let (ready, count, width) = (self.ready, self.rows.len(), self.ready.padded_width);
        if ready.concatenates() {
            return;
        }
        let scratch = &mut *self.scratch;
        let gradients = CombinationBackward {
            branches: &scratch.side_by_side,
            d_out: self.trace.d(0),
            d_branches: &mut scratch.d_side_by_side,
        };
        ready.network.architecture().jk.backward(ready.join_sizes(count), gradients);
        for b in 0..ready.branches {
            let from =
                Matrix { values: &scratch.d_side_by_side[b * width..], stride: ready.branches * width };
            copy_columns(count, from, width, self.trace.d_mut(b), width);
        }
    }
}

/// Copies `width` columns of each row to rows that are `stride` apart.
fn copy_columns(rows: usize, from: Matrix<'_>, width: usize, to: &mut [f32], stride: usize) {
    for (r, to) in to.chunks_mut(stride).take(rows).enumerate() {
        to[..width].copy_from_slice(&from.row(r)[..width]);
    }
}
