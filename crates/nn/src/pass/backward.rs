//! Backward: the loss, and from the norms of one layer to those of the layer below.

use super::Block;
use super::forward::fetch;
use crate::input::Batch;
use crate::kernel::join::InParts;
use crate::kernel::product::{Matrix, Start, affine};
use crate::kernel::tile;
use crate::layer::linear::Operand;
use crate::layer::{activation, batch_norm, dropout};
use crate::loss::{self, Tally};
use crate::train::sink::Sink;

impl<'a> Block<'_, 'a> {
    /// The loss times `scale`, and from it back to the norms after the join, or of the branches' last layers.
    pub fn head_backward(&mut self, batch: Batch<'a>, scale: f32, sink: &mut impl Sink<'a>) -> Tally {
        if !self.ready.is_absorbed(self.ready.layers - 1) {
            return self.head_backward_joined(batch, scale, sink);
        }
        self.classify_absorbed();
        let (ready, count, width) = (self.ready, self.rows.len(), self.ready.padded_width);
        let arch = ready.network.architecture();
        let tally = match sink.head_sums() {
            Some(sums) if arch.normalise => self.loss(batch, scale, Some(sums)),
            _ if arch.normalise => {
                self.loss(batch, scale, Some(loss::HeadSums { radial: &mut 0.0, bias: &mut [] }))
            }
            _ => self.loss(batch, scale, None),
        };
        let trace = &*self.trace;
        sink.linear(ready.linears.len() - 1, count, Operand::Parts(self.last_activations()), &trace.d_head);
        if arch.normalise {
            for i in ready.trained().map(|b| ready.last(b)) {
                let vectors = ready.network.values.layout.norm_vectors(i).expect("there is a norm");
                if let Some([second, first]) = sink.batch_sums(vectors) {
                    let (a, mean) = (&trace.a(i)[..count * width], &ready.norms[i].mean);
                    tile::add_radial(width, mean, a, &trace.radial, first, second);
                }
            }
        }
        tally
    }

    /// The output of the branches' last activations.
    fn last_activations(&self) -> InParts<'_> {
        let (ready, trace) = (self.ready, &*self.trace);
        let values = &trace.a[ready.last(0) * trace.size..];
        InParts { values, step: ready.layers * trace.size, columns: ready.padded_width }
    }

    /// Writes the gradient with respect to the logits into the trace. With `sums`, logits are still to be divided by
    /// the norms of their rows.
    pub(super) fn loss(&mut self, batch: Batch<'a>, scale: f32, sums: Option<loss::HeadSums<'_>>) -> Tally {
        let (ready, count, columns) = (self.ready, self.rows.len(), self.ready.heads[0].outputs);
        let trace = &mut *self.trace;
        let divided = sums.map(|sums| loss::Divided {
            bias: &ready.bias,
            inverse: &trace.inverse,
            radial: &mut trace.radial,
            sums,
        });
        let classes = ready.network.architecture().classes;
        let loss = loss::Loss { batch, rows: self.rows, classes, scale };
        let (logits, d) = (&self.scratch.logits[..count * columns], &mut trace.d_head[..count * columns]);
        loss.backward(columns, logits, d, divided)
    }

    /// The gradients of layer `l` of every branch, where the trace has the gradient with respect to the norms after it;
    /// leaves that with respect to the norms of the layer below.
    pub fn layer_backward(&mut self, l: usize, sink: &mut impl Sink<'a>) {
        let (ready, count, width) = (self.ready, self.rows.len(), self.ready.padded_width);
        if ready.is_plain(l) {
            self.join_backward();
        }
        for b in ready.trained() {
            let i = ready.number(b, l);
            if !ready.is_plain(l) {
                self.norm_backward(b, l, sink);
            }
            if l > 0 && ready.is_written(l - 1) && self.resumed {
                self.write_out(b, l - 1);
            }
            let mut delta = std::mem::take(&mut self.scratch.delta);
            let size = self.trace.size;
            let x = match l {
                0 => fetch(&mut self.scratch.x, self.inputs.as_slice()[b], self.rows),
                _ if ready.is_written(l - 1) => Operand::dense(&self.scratch.y[(i - 1) * size..], width),
                _ => Operand::dense(&self.trace.a[(i - 1) * size..], width),
            };
            let (plain, used) = (ready.is_plain(l), count * width);
            let reached = self.trace.d.get_mut(b * size..).unwrap_or_default();
            sink.linear(i, count, x, if plain { reached } else { &delta });
            match (plain, l > 0 && ready.is_absorbed(l - 1)) {
                _ if l == 0 => {}
                (true, true) => {}
                (false, true) => reached[..used].copy_from_slice(&delta[..used]),
                (_, false) => {
                    if plain {
                        delta[..used].copy_from_slice(&reached[..used]);
                    }
                    ready.linears[i].backward(count, Matrix { values: &delta, stride: width }, reached);
                }
            }
            self.scratch.delta = delta;
        }
        if l > 0 && !ready.is_absorbed(l - 1) {
            self.backward_to_layer(l - 1, sink);
        }
    }

    /// Norm and activation of layer `l` of branch `b`: the gradient with respect to the linear layer's output, in
    /// `scratch.delta`.
    fn norm_backward(&mut self, b: usize, l: usize, sink: &mut impl Sink<'a>) {
        let (ready, trace, scratch) = (self.ready, &*self.trace, &mut *self.scratch);
        let (i, count, width) = (ready.number(b, l), self.rows.len(), ready.padded_width);
        let (arch, norm, used) = (ready.network.architecture(), &ready.norms[i], count * width);
        let (a, delta) = (&trace.a(i)[..used], &mut scratch.delta[..used]);
        if ready.is_absorbed(l) {
            let (above, d, radial) = if l + 1 == ready.layers {
                let d = Matrix { values: &trace.d_head, stride: ready.heads[b].outputs };
                (&ready.heads[b], d, arch.normalise.then_some(&trace.radial[..]))
            } else {
                (&ready.linears[i + 1], Matrix { values: trace.d(b), stride: width }, None)
            };
            let coefficients = &ready.coefficients[i];
            affine(count, d, &above.transposed, Start::Row(&coefficients.constant), width, delta);
            tile::backward(arch.activation, coefficients, width, a, radial, delta);
            return;
        }
        let g = &trace.d(b)[..used];
        norm.backward(count, a, g, delta, &mut scratch.d_gamma);
        if let Some([gamma, beta]) = ready.network.values.layout.norm_vectors(i)
            && !arch.norm.mixes_rows()
        {
            sink.vector(gamma, count, Matrix { values: &scratch.d_gamma, stride: width });
            sink.vector(beta, count, Matrix { values: g, stride: width });
        }
        activation::backward(arch.activation, 1.0, a, delta);
    }

    /// The dropout after layer `l` backward, and the sums of its norms where they mix rows.
    pub(super) fn backward_to_layer(&mut self, l: usize, sink: &mut impl Sink<'a>) {
        let (ready, count) = (self.ready, self.rows.len());
        let arch = ready.network.architecture();
        for b in ready.trained() {
            let i = ready.number(b, l);
            if let Some(mask) = ready.mask(b, l) {
                dropout::apply(mask, self.rows, arch.hidden, self.trace.d_mut(b), ready.padded_width);
            }
            let vectors = ready.network.values.layout.norm_vectors(i).filter(|_| arch.norm.mixes_rows());
            if let Some(sums) = vectors.and_then(|vectors| sink.batch_sums(vectors)) {
                let (a, g) = (self.trace.a(i), self.trace.d(b));
                batch_norm::add_sums(&ready.norms[i], count, a, g, sums);
            }
        }
    }
}
