//! Passes over one block of rows, in scratch memory that stays in cache.

use super::Folded;
use crate::aligned::Aligned;
use crate::block::{BLOCK, Rows};
use crate::input::{Batch, Input};
use crate::kernel::product::{Matrix, Start, add_outer, add_rows, affine};
use crate::kernel::strip::{self, PARTS};
use crate::layer::l2_normalise;
use crate::layer::{Norm, activation, linear, sparse_linear};
use crate::layout::hidden_padded;
use crate::loss::{self, Tally};
use crate::network::{Closing, Network};
use crate::packed;
use crate::train::sink::{Operand, Sink, Sums};

/// What a block of rows gave in one pass that another needs.
#[derive(Debug)]
pub(crate) struct Trace {
    /// What each activation gave: for each layer of each branch, a block of rows. Of last layers without one, what they
    /// gave, divided by the row's length.
    pub(super) a: Aligned,
    /// The gradient by what the linear layer gave that was reached last, for each branch; of the head, `d'`. Before there is
    /// one, the parts of the combination after norm and activation, where those stand there.
    pub(super) d: Aligned,
    pub(super) d_head: Aligned,
    /// `c` of each row.
    along: Vec<f32>,
    /// `1 / |h|` of each row, where norm and activation stand after the combination.
    pub(super) inverse: Vec<f32>,
    pub(super) layer: usize,
}

impl Trace {
    pub fn new(network: &Network) -> Self {
        let arch = network.architecture();
        let (hops, layer) = (arch.inputs.len(), BLOCK * hidden_padded(arch.hidden));
        let closes = arch.closing == Closing::Combination;
        let between = if arch.layers > 1 || closes { hops * layer } else { 0 };
        Trace {
            a: Aligned::zeros(hops * arch.layers * layer),
            d: Aligned::zeros(between),
            d_head: Aligned::zeros(BLOCK * network.values.layout.head().outputs_padded),
            along: vec![0.0; BLOCK],
            inverse: vec![0.0; BLOCK],
            layer,
        }
    }

    /// How many values a trace has, about.
    pub fn values(network: &Network) -> usize {
        let arch = network.architecture();
        arch.inputs.len() * (arch.layers + 1) * BLOCK * hidden_padded(arch.hidden)
    }

    pub(super) fn a(&self, i: usize) -> &[f32] {
        &self.a[i * self.layer..][..self.layer]
    }

    fn d(&mut self, b: usize) -> &mut [f32] {
        &mut self.d[b * self.layer..][..self.layer]
    }
}

/// What the rows of a chunk add up to.
pub(crate) struct Part<'n> {
    pub tally: Tally,
    /// `A` and `D` of linear layers; in the place of the last norms' `γ` and `β`, `Σ c q²` and `Σ c q`.
    pub sums: Sums<'n>,
    /// `Σ d` of the head, and `Σ c`.
    pub bias: Vec<f32>,
    pub along: f32,
}

impl<'n> Part<'n> {
    pub fn new(network: &'n Network) -> Self {
        let bias = vec![0.0; network.values.layout.head().outputs_padded];
        Part { tally: Tally::default(), sums: Sums::new(network, 1), bias, along: 0.0 }
    }

    /// The head's part of the gradient: `d` is that by the logits, and `read` gives what the head reads of a branch.
    pub(super) fn add_head<'a>(
        &mut self,
        folded: &Folded<'_>,
        count: usize,
        d: &[f32],
        read: impl Fn(usize) -> &'a [f32],
    ) {
        let (slot, wide) = (folded.network.values.layout.head(), folded.wide);
        let columns = slot.outputs_padded;
        let (weights, bias) = self.sums.values[slot.sums(1)].split_at_mut(slot.inputs_padded * columns);
        add_rows(count, Matrix { values: d, stride: columns }, columns, bias);
        for (b, sums) in weights.chunks_exact_mut(wide * columns).enumerate() {
            add_outer(count, Matrix { values: read(b), stride: wide }, wide, d, columns, sums);
        }
    }

    /// The places of `γ` and `β` of the norm after layer `i`.
    pub(super) fn norm_sums(&mut self, network: &Network, i: usize) -> [&mut [f32]; 2] {
        let layout = &network.values.layout;
        let vectors = layout.norm_vectors(i).expect("there is a norm");
        let [gamma, beta] = vectors.map(|k| layout.vectors[k].sums(1));
        let (gamma, beta) = self.sums.values[gamma.start..beta.end].split_at_mut(gamma.len());
        [gamma, beta]
    }
}

/// Scratch memory for one block.
#[derive(Debug)]
pub(crate) struct Scratch {
    x: Aligned,
    squares: Aligned,
    inverse: Aligned,
    pub(super) delta: Aligned,
    pub logits: Aligned,
}

impl Scratch {
    pub fn new(network: &Network) -> Self {
        let block = |columns: usize| Aligned::zeros(BLOCK * columns);
        Scratch {
            x: Aligned::default(),
            squares: block(PARTS),
            inverse: block(1),
            delta: block(hidden_padded(network.architecture().hidden)),
            logits: block(network.values.layout.head().outputs_padded),
        }
    }

    /// What the first layer of a branch reads.
    fn fetch<'s, 'a: 's>(&'s mut self, b: usize, rows: Rows<'a>) -> Operand<'s, 'a> {
        match rows.inputs.as_slice()[b] {
            Input::Dense { columns, values } => {
                if let Some(first) = packed::run(rows.rows) {
                    return Operand::dense(&values[first * columns..], columns);
                }
                self.x.reserve(BLOCK * columns);
                linear::gather(values, columns, rows.rows, &mut self.x);
                Operand::dense(&self.x[..BLOCK * columns], columns)
            }
            input => Operand::Sparse(input, rows.rows),
        }
    }

    /// Layer `l` of branch `b`, where the trace has what the one below gave.
    pub fn activate(&mut self, folded: &Folded<'_>, trace: &mut Trace, b: usize, l: usize, rows: Rows<'_>) {
        let (i, count, wide) = (b * folded.layers + l, rows.rows.len(), folded.wide);
        let weights = &folded.linears[i];
        let (below, a) = trace.a.split_at_mut(i * trace.layer);
        let a = &mut a[..trace.layer];
        let x = match l {
            0 => self.fetch(b, rows),
            _ => Operand::dense(&below[below.len() - a.len()..], wide),
        };
        match x {
            Operand::Sparse(input, rows) => {
                sparse_linear::forward(input, rows, &weights.w, &weights.b, wide, a);
            }
            Operand::Dense(x) => weights.forward(count, x, a, wide),
        }
        let arch = folded.network.architecture();
        if !arch.is_plain(l) {
            activation::forward(arch.activation, &mut a[..count * wide]);
        }
    }

    /// All layers of all branches.
    pub fn activate_all(&mut self, folded: &Folded<'_>, trace: &mut Trace, rows: Rows<'_>) {
        for b in 0..folded.hops {
            for l in 0..folded.layers {
                self.activate(folded, trace, b, l, rows);
            }
        }
        if folded.closes() {
            trace.divide(folded, rows.rows.len());
        }
    }

    /// The whole network forward: leaves logits in `self.logits`.
    pub fn forward(&mut self, folded: &Folded<'_>, trace: &mut Trace, rows: Rows<'_>) {
        self.activate_all(folded, trace, rows);
        let (count, columns) = (rows.rows.len(), folded.heads[0].outputs);
        if folded.closes() {
            return self.close(folded, trace, count);
        }
        self.classify(folded, trace, count);
        if folded.network.architecture().normalise {
            l2_normalise::divide(columns, &self.inverse, &folded.bias, &mut self.logits[..count * columns]);
        }
    }

    /// From what the last activations gave to logits; where rows are divided by their lengths, to these and what is to be
    /// divided.
    fn classify(&mut self, folded: &Folded<'_>, trace: &Trace, count: usize) {
        let (wide, columns) = (folded.wide, folded.heads[0].outputs);
        let normalise = folded.network.architecture().normalise;
        self.squares.fill(0.0);
        for (b, head) in folded.heads.iter().enumerate() {
            let i = folded.last(b);
            let a = trace.a(i);
            let start = if b == 0 { Start::Row(&head.b) } else { Start::Sum };
            affine(
                count,
                Matrix { values: a, stride: wide },
                &head.w,
                start,
                columns,
                &mut self.logits,
                columns,
            );
            if normalise {
                let fold = &folded.folds[i];
                let a = &a[..count * wide];
                strip::add_squares(wide, a, &fold.scale, &fold.shift, &mut self.squares);
            }
        }
        if normalise {
            l2_normalise::invert(&self.squares[..count * PARTS], &mut self.inverse);
        }
    }

    /// Logits, the loss times `scale` and the gradient by the logits; with the head's part of the gradient, where it is
    /// wanted.
    pub fn train_head<'a>(
        &mut self,
        folded: &Folded<'_>,
        trace: &mut Trace,
        batch: Batch<'a>,
        rows: &'a [u32],
        scale: f32,
        mut part: Option<&mut Part<'_>>,
    ) {
        if folded.closes() {
            return self.train_closing(folded, trace, batch, rows, scale, part);
        }
        let (count, arch, wide) = (rows.len(), folded.network.architecture(), folded.wide);
        let columns = folded.heads[0].outputs;
        self.classify(folded, trace, count);
        let (logits, d) = (&self.logits[..count * columns], &mut trace.d_head[..count * columns]);
        let (mut nowhere, mut none) = (0.0, []);
        let (along_sum, bias_sums) = match &mut part {
            Some(part) => (&mut part.along, &mut part.bias[..]),
            None => (&mut nowhere, &mut none[..]),
        };
        let (bias, inverse, along) = (&folded.bias, &self.inverse, &mut trace.along[..]);
        let divided = arch.normalise.then_some(loss::Divided { bias, inverse, along, along_sum, bias_sums });
        let (classes, labels) = (arch.classes, batch.labels);
        let tally = loss::cross_entropy(rows, labels, logits, d, classes, columns, scale, divided);
        let Some(part) = part else { return };
        part.tally = part.tally.merge(tally);
        part.add_head(folded, count, &trace.d_head, |b| trace.a(folded.last(b)));
        if arch.normalise && arch.norm == Norm::Batch {
            for i in folded.trained().map(|b| folded.last(b)) {
                let [squares, first] = part.norm_sums(folded.network, i);
                let (a, mean) = (&trace.a(i)[..count * wide], &folded.norms[i].mean);
                strip::add_along(wide, mean, a, &trace.along, first, squares);
            }
        }
    }

    /// The gradient of layer `l` of every branch, where the trace has what the head or the layer above left. If that is not
    /// `kept`, layers above are computed again.
    pub fn train_layer<'a>(
        &mut self,
        folded: &Folded<'_>,
        trace: &mut Trace,
        l: usize,
        rows: Rows<'a>,
        kept: bool,
        part: &mut Part<'_>,
    ) {
        let (count, wide, arch) = (rows.rows.len(), folded.wide, folded.network.architecture());
        let top = if kept { l } else { folded.layers - 1 };
        if arch.is_plain(top) {
            trace.open(folded, count);
        }
        for b in folded.trained() {
            for m in (l..=top).rev().filter(|&m| !arch.is_plain(m)) {
                let i = b * folded.layers + m;
                let (above, d, along) = if m + 1 == folded.layers {
                    let d = Matrix { values: &trace.d_head, stride: folded.heads[b].outputs };
                    (&folded.heads[b], d, arch.normalise.then_some(&trace.along[..]))
                } else {
                    let d = Matrix { values: &trace.d[b * trace.layer..], stride: wide };
                    (&folded.linears[i + 1], d, None)
                };
                let slopes = &folded.slopes[i];
                affine(
                    count,
                    d,
                    &above.transposed,
                    Start::Row(&slopes.constant),
                    wide,
                    &mut self.delta,
                    wide,
                );
                let (a, delta) = (&trace.a(i)[..count * wide], &mut self.delta[..count * wide]);
                strip::backward(arch.activation, slopes, wide, a, along, delta);
                if m > 0 {
                    trace.d(b)[..count * wide].copy_from_slice(&self.delta[..count * wide]);
                }
            }
            let delta = std::mem::take(&mut self.delta);
            let x = match l {
                0 => self.fetch(b, rows),
                _ => Operand::dense(trace.a(b * folded.layers + l - 1), wide),
            };
            let d = if arch.is_plain(l) { &trace.d[b * trace.layer..] } else { &delta };
            part.sums.linear(b * folded.layers + l, count, 1, x, d);
            self.delta = delta;
        }
    }
}
