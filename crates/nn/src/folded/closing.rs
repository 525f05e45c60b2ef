//! Norm and activation after the combination: with `h` a row of what the last linear layers gave, side by side,
//! ```text
//! z = h / |h|        y = f(s z + t)        logits = y W + b
//! ```
//! Backward, with `d` the gradient by the logits, `g = f' (d Wᵀ)` is that by what the norm gave. Its sums `Σ g` and
//! `Σ g (z - μ)` over the batch are `dβ` and `dγ`; then, with the constants and factors they lead to,
//! ```text
//! dz = s g + factor z + constant        dh = (dz - z (z · dz)) / |h|
//! ```

use super::Folded;
use super::pass::{Part, Scratch, Trace};
use crate::input::Batch;
use crate::kernel::closing::{
    Centre, InParts, NormSums, activate_scaled, multiply_rows, open, squares, through_activation,
};
use crate::kernel::product::{Matrix, Start, affine};
use crate::layer::{Norm, l2_normalise};
use crate::loss;

impl Trace {
    /// Divides what the last layers gave by its length, row by row.
    pub(super) fn divide(&mut self, folded: &Folded<'_>, count: usize) {
        if !folded.network.architecture().normalise {
            return;
        }
        let inverse = &mut self.inverse[..count];
        squares(folded.hops, last_layers(folded, &self.a, self.layer), inverse);
        l2_normalise::invert_roots(inverse);
        for i in (0..folded.hops).map(|b| folded.last(b)) {
            let z = &mut self.a[i * self.layer..][..count * folded.wide];
            multiply_rows(folded.wide, inverse, z);
        }
    }

    /// From the gradient by what the norm gave to that by what the last linear layers gave, in the same place.
    pub(super) fn open(&mut self, folded: &Folded<'_>, count: usize) {
        let centre = |b: usize| {
            let (fold, slopes) = (&folded.folds[folded.last(b)], &folded.slopes[folded.last(b)]);
            Centre { scale: &fold.scale, linear: &slopes.linear, constant: &slopes.constant }
        };
        let centre: Vec<Centre<'_>> = (0..folded.hops).map(centre).collect();
        let inverse = folded.network.architecture().normalise.then_some(&self.inverse[..]);
        let z = last_layers(folded, &self.a, self.layer);
        open(&centre, z, inverse, &mut self.d, self.layer, count);
    }
}

/// What the last layers gave, part after part.
fn last_layers<'a>(folded: &Folded<'_>, a: &'a [f32], layer: usize) -> InParts<'a> {
    InParts { values: &a[folded.last(0) * layer..], step: folded.layers * layer, columns: folded.wide }
}

impl Scratch {
    /// From `z` to logits. Leaves `y` in the trace.
    pub(super) fn close(&mut self, folded: &Folded<'_>, trace: &mut Trace, count: usize) {
        let (wide, columns, length) = (folded.wide, folded.heads[0].outputs, count * folded.wide);
        let activation = folded.network.architecture().activation;
        for (b, head) in folded.heads.iter().enumerate() {
            let i = folded.last(b);
            let (z, fold) = (&trace.a[i * trace.layer..][..length], &folded.folds[i]);
            let y = &mut trace.d[b * trace.layer..][..length];
            activate_scaled(activation, wide, z, &fold.scale, &fold.shift, y);
            let start = if b == 0 { Start::Row(&head.b) } else { Start::Sum };
            let y = Matrix { values: y, stride: wide };
            affine(count, y, &head.w, start, columns, &mut self.logits, columns);
        }
    }

    /// Logits, the loss times `scale`, and the gradient by what the norm gave, in the place of `y`; with the sums of the
    /// head and of the norm, where they are wanted.
    pub(super) fn train_closing<'a>(
        &mut self,
        folded: &Folded<'_>,
        trace: &mut Trace,
        batch: Batch<'a>,
        rows: &'a [u32],
        scale: f32,
        mut part: Option<&mut Part<'_>>,
    ) {
        let (count, arch, wide) = (rows.len(), folded.network.architecture(), folded.wide);
        let (columns, length) = (folded.heads[0].outputs, count * folded.wide);
        self.close(folded, trace, count);
        let (logits, d) = (&self.logits[..count * columns], &mut trace.d_head[..count * columns]);
        let tally = loss::cross_entropy(rows, batch.labels, logits, d, arch.classes, columns, scale, None);
        let d_head = Matrix { values: &trace.d_head, stride: columns };
        if let Some(part) = &mut part {
            part.tally = part.tally.merge(tally);
            part.add_head(folded, count, &trace.d_head, |b| &trace.d[b * trace.layer..]);
        }
        for (b, head) in folded.heads.iter().enumerate() {
            let i = folded.last(b);
            affine(count, d_head, &head.transposed, Start::Zero, wide, &mut self.delta, wide);
            let sums = part.as_mut().filter(|_| arch.norm == Norm::Batch).map(|part| {
                let [second, first] = part.norm_sums(folded.network, i);
                let z = &trace.a[i * trace.layer..][..length];
                NormSums { z, mean: &folded.norms[i].mean, first, second }
            });
            let y = &mut trace.d[b * trace.layer..][..length];
            through_activation(arch.activation, wide, &self.delta[..length], y, sums);
        }
    }
}
