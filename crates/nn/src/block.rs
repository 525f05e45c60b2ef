//! The forward and backward pass of a whole network over one block of rows, in scratch memory that stays in cache.
//!
//! What a later pass needs of a block is its trace. Only the traces of batches that fit in cache are kept; else it is
//! computed again, which is cheaper than storing and reading it.

use crate::input::{Batch, Input, Inputs};
use crate::jk::{self, Cache, Jk, Sizes};
use crate::kernel::product::{Matrix, Start};
use crate::layer::batch_norm::{self, Columns};
use crate::layer::dropout::{self, Mask};
use crate::layer::linear::{self, Weights};
use crate::layer::{Norm, activation, group_norm, l2_normalise, sparse_linear};
use crate::layout::hidden_padded;
use crate::loss::{self, Tally};
use crate::network::{Architecture, Closing, Network};
use crate::train::sink::{Operand, Sink};

/// Rows computed together.
pub(crate) const BLOCK: usize = 64;

/// A network made ready for one step: its weights padded, and transposed where a gradient needs it.
pub(crate) struct Prepared<'n> {
    pub network: &'n Network,
    pub linears: Vec<Weights>,
    /// For each layer of each branch; empty columns where no norm follows.
    pub norms: Vec<Columns>,
    /// The norm of the combination, where there is one.
    pub closing: Columns,
    /// The step's seed, where dropout is to be applied.
    pub dropout: Option<u64>,
}

impl<'n> Prepared<'n> {
    /// For evaluation: batch normalisation by running statistics, no dropout. `gradients` adds what a backward pass
    /// needs.
    pub fn new(network: &'n Network, gradients: bool) -> Self {
        let (arch, values) = (network.architecture(), &network.values);
        let linears = (0..values.layout.linears.len()).map(|slot| values.weights(slot, gradients));
        let norms = (0..arch.inputs.len() * arch.layers).map(|i| values.norm_after(i));
        let mut prepared = Prepared {
            network,
            linears: linears.collect(),
            norms: norms.collect(),
            closing: Columns::default(),
            dropout: None,
        };
        if arch.closing == Closing::Combination {
            prepared.closing = Columns::side_by_side(last_layers(arch).map(|i| prepared.norms[i].clone()));
        }
        prepared
    }

    fn head(&self) -> &Weights {
        self.linears.last().expect("there is a head")
    }

    fn mask(&self, branch: usize, layer: usize) -> Option<Mask> {
        let arch = self.network.architecture();
        let plain = arch.is_plain(layer);
        let seed =
            self.dropout.filter(|_| arch.dropout > 0.0 && !plain && !self.network.is_frozen(branch))?;
        Some(Mask::new(arch.dropout, seed, branch * arch.layers + layer))
    }

    /// The masks of the parts of the combination, where it is normalised.
    fn closing_masks(&self) -> impl Iterator<Item = Mask> {
        let arch = self.network.architecture();
        let seed = self.dropout.filter(|_| arch.dropout > 0.0);
        seed.into_iter()
            .flat_map(move |seed| last_layers(arch).map(move |i| Mask::new(arch.dropout, seed, i)))
    }
}

/// The last layers of the branches, as many as the combination has parts.
pub(crate) fn last_layers(arch: &Architecture) -> impl Iterator<Item = usize> {
    (1..=arch.groups()).map(|b| b * arch.layers - 1)
}

/// The rows of a block.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub inputs: &'a Inputs<'a>,
    pub rows: &'a [u32],
}

/// How far down a backward pass goes, and for which layers it gives gradients.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Everything at once.
    All,
    /// With batch normalisation: only the given layer, where the sums of those above are known. The top layer's pass
    /// gives what follows the branches too.
    Layer(usize),
    /// Only what follows the combination, where that is normalised over the batch.
    Closing,
}

/// What a block of rows gave in one pass that another needs.
#[derive(Debug)]
pub(crate) struct Trace {
    /// What each activation gave: for each layer of each branch, a block of rows.
    a: Vec<f32>,
    /// The gradient by the output of each branch, side by side, or of the layer of it that was reached last.
    g: Vec<f32>,
    layer: usize,
}

impl Trace {
    pub fn new(network: &Network) -> Self {
        let arch = network.architecture();
        let hops = arch.inputs.len();
        let layer = BLOCK * hidden_padded(arch.hidden);
        Trace { a: vec![0.0; hops * arch.layers * layer], g: vec![0.0; hops * layer], layer }
    }

    /// How many values a trace has.
    pub fn values(network: &Network) -> usize {
        let arch = network.architecture();
        arch.inputs.len() * (arch.layers + 1) * BLOCK * hidden_padded(arch.hidden)
    }

    /// What activation `i` gave.
    fn a(&self, i: usize) -> &[f32] {
        &self.a[i * self.layer..][..self.layer]
    }

    fn a_mut(&mut self, i: usize) -> &mut [f32] {
        &mut self.a[i * self.layer..][..self.layer]
    }
}

/// What the branches gave, and what became of it.
#[derive(Debug)]
struct Outputs {
    /// The branches' outputs, side by side.
    hops: Vec<f32>,
    /// Their combination, where they are not that already.
    combined: Vec<f32>,
    /// The combination after norm and activation, where those stand there.
    closed: Vec<f32>,
}

impl Outputs {
    fn combination(&self, arch: &Architecture) -> &[f32] {
        if arch.jk == Jk::Cat { &self.hops } else { &self.combined }
    }

    /// What the head reads.
    fn read(&self, arch: &Architecture) -> &[f32] {
        if arch.closing == Closing::Combination { &self.closed } else { self.combination(arch) }
    }
}

/// Scratch memory for one block.
#[derive(Debug)]
pub(crate) struct Scratch {
    hidden: usize,
    wide: usize,
    layers: usize,
    hops: usize,
    combined_wide: usize,
    classes_wide: usize,
    /// Inputs of each layer of each branch, where dense.
    x: Vec<Vec<f32>>,
    outputs: Outputs,
    inverse: Vec<f32>,
    along: Vec<f32>,
    /// The gradient by what the head reads, where norm and activation stand before it.
    d_closed: Vec<f32>,
    pub logits: Vec<f32>,
    d_logits: Vec<f32>,
    d_combined: Vec<f32>,
    da: Vec<f32>,
    d_gamma: Vec<f32>,
    delta: Vec<f32>,
    jk: Cache,
}

impl Scratch {
    pub fn new(network: &Network) -> Self {
        let arch = network.architecture();
        let (hops, layers, wide) = (arch.inputs.len(), arch.layers, hidden_padded(arch.hidden));
        let (combined_wide, combined) = if arch.jk == Jk::Cat { (hops * wide, 0) } else { (wide, wide) };
        let classes_wide = network.values.layout.linears.last().expect("there is a head").outputs_padded;
        let closed = if arch.closing == Closing::Combination { combined_wide } else { 0 };
        let block = |columns: usize| vec![0.0; BLOCK * columns];
        Scratch {
            hidden: arch.hidden,
            wide,
            layers,
            hops,
            combined_wide,
            classes_wide,
            // Filled when it is known to be dense.
            x: (0..hops * layers).map(|i| if i % layers == 0 { vec![] } else { block(wide) }).collect(),
            outputs: Outputs { hops: block(hops * wide), combined: block(combined), closed: block(closed) },
            inverse: block(1),
            along: block(1),
            d_closed: block(closed),
            logits: block(classes_wide),
            d_logits: block(classes_wide),
            d_combined: block(combined),
            da: block(wide),
            d_gamma: block(wide),
            delta: block(3 * wide),
            jk: arch.jk.cache(&network.values.layout.jk, BLOCK, hops),
        }
    }

    /// The branch's output for row `r` of the block.
    pub fn embedding(&self, branch: usize, r: usize) -> &[f32] {
        &self.outputs.hops[(r * self.hops + branch) * self.wide..][..self.hidden]
    }

    /// The linear layer and activation of layer `l` of branch `b`, whose input is there.
    fn activate(&mut self, prepared: &Prepared<'_>, trace: &mut Trace, b: usize, l: usize, rows: Rows<'_>) {
        let (i, count, wide) = (b * self.layers + l, rows.rows.len(), self.wide);
        if l == 0 {
            self.fetch(b, rows);
        }
        let (weights, a) = (&prepared.linears[i], trace.a_mut(i));
        match self.operand(b, l, rows) {
            Operand::Sparse(input, rows) => {
                sparse_linear::forward(input, rows, &weights.w, &weights.b, wide, a);
            }
            Operand::Dense(x) => weights.forward(count, x, a, wide),
        }
        let arch = prepared.network.architecture();
        if !arch.is_plain(l) {
            activation::forward(arch.activation, &mut a[..count * wide]);
        }
    }

    /// Brings the rows of a dense input together.
    fn fetch(&mut self, b: usize, rows: Rows<'_>) {
        if let Input::Dense { columns, values } = rows.inputs.as_slice()[b] {
            let x = &mut self.x[b * self.layers];
            x.resize(BLOCK * columns, 0.0);
            linear::gather(values, columns, rows.rows, x);
        }
    }

    /// What the linear layer `l` of branch `b` reads.
    fn operand<'a>(&self, b: usize, l: usize, rows: Rows<'a>) -> Operand<'_, 'a> {
        let x = &self.x[b * self.layers + l];
        match rows.inputs.as_slice()[b] {
            input @ Input::Sparse { .. } if l == 0 => Operand::Sparse(input, rows.rows),
            _ => Operand::dense(x, x.len() / BLOCK),
        }
    }

    /// Norm and dropout of layer `l` of branch `b`: the input of the next layer, or the branch's output.
    fn normalise(&mut self, prepared: &Prepared<'_>, trace: &Trace, b: usize, l: usize, rows: &[u32]) {
        let (i, count, wide) = (b * self.layers + l, rows.len(), self.wide);
        let (out, stride) = if l + 1 == self.layers {
            (&mut self.outputs.hops[b * wide..], self.hops * wide)
        } else {
            (&mut self.x[i + 1][..], wide)
        };
        let (a, arch) = (trace.a(i), prepared.network.architecture());
        match if arch.is_plain(l) { Norm::None } else { arch.norm } {
            Norm::None => {
                for (out, a) in out.chunks_mut(stride).zip(a.chunks_exact(wide)).take(count) {
                    out[..wide].copy_from_slice(a);
                }
            }
            Norm::Batch => batch_norm::forward(&prepared.norms[i], count, wide, a, out, stride),
            Norm::Group => {
                let Columns { gamma, beta, .. } = &prepared.norms[i];
                group_norm::forward(self.hidden, gamma, beta, count, wide, a, out, stride);
            }
        }
        if let Some(mask) = prepared.mask(b, l) {
            dropout::apply(mask, rows, self.hidden, out, stride);
        }
    }

    /// One branch forward.
    pub fn branch(&mut self, prepared: &Prepared<'_>, trace: &mut Trace, b: usize, rows: Rows<'_>) {
        for l in 0..self.layers {
            self.activate(prepared, trace, b, l, rows);
            self.normalise(prepared, trace, b, l, rows.rows);
        }
    }

    /// What the activation of layer `l` gives; the layers below are known if `kept` is set.
    pub fn activations<'t>(
        &mut self,
        prepared: &Prepared<'_>,
        trace: &'t mut Trace,
        b: usize,
        l: usize,
        rows: Rows<'_>,
        kept: bool,
    ) -> &'t [f32] {
        for below in 0..l {
            if !kept {
                self.activate(prepared, trace, b, below, rows);
            }
            if !kept || below + 1 == l {
                self.normalise(prepared, trace, b, below, rows.rows);
            }
        }
        self.activate(prepared, trace, b, l, rows);
        trace.a(b * self.layers + l)
    }

    /// The whole network forward: leaves logits in `self.logits`.
    pub fn forward(&mut self, prepared: &Prepared<'_>, trace: &mut Trace, rows: Rows<'_>) {
        self.combine(prepared, trace, rows);
        self.classify(prepared, rows.rows);
    }

    /// All branches and their combination, divided by its length.
    pub fn combine(&mut self, prepared: &Prepared<'_>, trace: &mut Trace, rows: Rows<'_>) -> &[f32] {
        for b in 0..self.hops {
            self.branch(prepared, trace, b, rows);
        }
        self.join(prepared, rows.rows.len())
    }

    /// The combination of the branches' outputs, divided by its length.
    fn join(&mut self, prepared: &Prepared<'_>, count: usize) -> &[f32] {
        let (arch, sizes) = (prepared.network.architecture(), self.sizes(count));
        let combined = if arch.jk == Jk::Cat {
            // Hops lie side by side: they are the combination.
            &mut self.outputs.hops
        } else {
            jk::forward(prepared, sizes, &self.outputs.hops, &mut self.outputs.combined, &mut self.jk);
            &mut self.outputs.combined
        };
        if arch.normalise {
            let values = &mut combined[..count * self.combined_wide];
            l2_normalise::forward(self.combined_wide, values, &mut self.inverse);
        }
        combined
    }

    /// From the combination to logits.
    fn classify(&mut self, prepared: &Prepared<'_>, rows: &[u32]) {
        let (arch, count, stride) = (prepared.network.architecture(), rows.len(), self.combined_wide);
        if arch.closing == Closing::Combination {
            let Outputs { hops, combined, closed } = &mut self.outputs;
            let combined = if arch.jk == Jk::Cat { hops } else { combined };
            let (combined, closed) = (&combined[..count * stride], &mut closed[..count * stride]);
            match arch.norm {
                Norm::Batch => {
                    batch_norm::forward(&prepared.closing, count, stride, combined, closed, stride)
                }
                _ => closed.copy_from_slice(combined),
            }
            for (g, mask) in prepared.closing_masks().enumerate() {
                dropout::apply(mask, rows, self.hidden, &mut closed[g * self.wide..], stride);
            }
            activation::forward(arch.activation, closed);
        }
        let read = Matrix { values: self.outputs.read(arch), stride };
        prepared.head().forward(count, read, &mut self.logits, self.classes_wide);
    }

    fn sizes(&self, rows: usize) -> Sizes {
        Sizes { rows, hops: self.hops, wide: self.wide }
    }

    /// Forward, the loss times `scale`, and backward into the sink.
    #[allow(clippy::too_many_arguments)]
    pub fn train<'a>(
        &mut self,
        prepared: &Prepared<'_>,
        trace: &mut Trace,
        batch: Batch<'a>,
        rows: &'a [u32],
        scale: f32,
        depth: Depth,
        sink: &mut impl Sink<'a>,
    ) -> Tally {
        self.forward(prepared, trace, Rows { inputs: batch.inputs, rows });
        let tally = match depth {
            Depth::Layer(l) if l + 1 < self.layers => {
                self.classify_backward(prepared, trace, batch, rows, scale, depth, &mut Nowhere)
            }
            _ => self.classify_backward(prepared, trace, batch, rows, scale, depth, sink),
        };
        if depth == Depth::Closing {
            return tally;
        }
        for b in (0..self.hops).filter(|&b| !prepared.network.is_frozen(b)) {
            self.branch_backward(prepared, trace, b, Rows { inputs: batch.inputs, rows }, depth, sink);
        }
        tally
    }

    /// As the part of [`Scratch::train`] above the branches, where the trace has what the branches' last activations gave.
    /// Leaves the gradient by the branches' outputs in the trace.
    pub fn train_top<'a>(
        &mut self,
        prepared: &Prepared<'_>,
        trace: &mut Trace,
        batch: Batch<'a>,
        rows: &'a [u32],
        scale: f32,
        sink: &mut impl Sink<'a>,
    ) -> Tally {
        for b in 0..self.hops {
            if prepared.network.is_frozen(b) {
                self.branch(prepared, trace, b, Rows { inputs: batch.inputs, rows });
            } else {
                self.normalise(prepared, trace, b, self.layers - 1, rows);
            }
        }
        self.join(prepared, rows.len());
        self.classify(prepared, rows);
        let tally = self.classify_backward(prepared, trace, batch, rows, scale, Depth::All, sink);
        self.arrive(prepared, trace, self.layers - 1, rows, sink);
        tally
    }

    /// The gradient of layer `l` of every branch, where the trace has all activations and the gradient by the layer's output;
    /// leaves the gradient by the output of the layer below in the trace.
    pub fn train_layer<'a>(
        &mut self,
        prepared: &Prepared<'_>,
        trace: &mut Trace,
        l: usize,
        rows: Rows<'a>,
        sink: &mut impl Sink<'a>,
    ) {
        let (count, wide, stride) = (rows.rows.len(), self.wide, self.hops * self.wide);
        let activation = prepared.network.architecture().activation;
        for b in (0..self.hops).filter(|&b| !prepared.network.is_frozen(b)) {
            let i = b * self.layers + l;
            let g = Matrix { values: &trace.g[b * wide..], stride };
            batch_norm::backward(activation, &prepared.norms[i], count, wide, trace.a(i), g, &mut self.delta);
            match l {
                0 => self.fetch(b, rows),
                _ => self.normalise(prepared, trace, b, l - 1, rows.rows),
            }
            sink.linear(i, count, 1, self.operand(b, l, rows), &self.delta);
            if l > 0 {
                let d = Matrix { values: &self.delta, stride: wide };
                prepared.linears[i].backward(count, d, Start::Zero, &mut trace.g[b * wide..], stride);
            }
        }
        if l > 0 {
            self.arrive(prepared, trace, l - 1, rows.rows, sink);
        }
    }

    /// Back through the dropout of layer `l`, and the sums of its batch normalisation.
    fn arrive<'a>(
        &mut self,
        prepared: &Prepared<'_>,
        trace: &mut Trace,
        l: usize,
        rows: &[u32],
        sink: &mut impl Sink<'a>,
    ) {
        for b in (0..self.hops).filter(|&b| !prepared.network.is_frozen(b)) {
            self.drop_gradient(prepared, trace, b, l, rows);
            self.sum_gradient(prepared, trace, b, l, rows.len(), sink);
        }
    }

    fn drop_gradient(
        &mut self,
        prepared: &Prepared<'_>,
        trace: &mut Trace,
        b: usize,
        l: usize,
        rows: &[u32],
    ) {
        if let Some(mask) = prepared.mask(b, l) {
            dropout::apply(mask, rows, self.hidden, &mut trace.g[b * self.wide..], self.hops * self.wide);
        }
    }

    /// The gradients by a batch normalisation's own parameters.
    fn sum_gradient<'a>(
        &mut self,
        prepared: &Prepared<'_>,
        trace: &Trace,
        b: usize,
        l: usize,
        count: usize,
        sink: &mut impl Sink<'a>,
    ) {
        let (i, wide) = (b * self.layers + l, self.wide);
        let Some([gamma, beta]) = prepared.network.values.layout.norm_vectors(i) else { return };
        let g = Matrix { values: &trace.g[b * wide..], stride: self.hops * wide };
        let (sum_g, sum_gx) = (&mut self.da[..wide], &mut self.d_gamma[..wide]);
        sum_g.fill(0.0);
        sum_gx.fill(0.0);
        batch_norm::add_sums(&prepared.norms[i], count, wide, trace.a(i), g, sum_g, sum_gx);
        sink.vector(gamma, 1, Matrix { values: sum_gx, stride: wide });
        sink.vector(beta, 1, Matrix { values: sum_g, stride: wide });
    }

    /// The loss, and from logits back to the branches' outputs.
    #[allow(clippy::too_many_arguments)]
    fn classify_backward<'a>(
        &mut self,
        prepared: &Prepared<'_>,
        trace: &mut Trace,
        batch: Batch<'a>,
        rows: &'a [u32],
        scale: f32,
        depth: Depth,
        sink: &mut impl Sink<'a>,
    ) -> Tally {
        let (count, arch, head) = (rows.len(), prepared.network.architecture(), prepared.head());
        let (classes_wide, sizes) = (self.classes_wide, self.sizes(count));
        let logits = &self.logits[..count * classes_wide];
        let d = &mut self.d_logits[..count * classes_wide];
        let tally =
            loss::cross_entropy(rows, batch.labels, logits, d, arch.classes, classes_wide, scale, None);
        let cat = arch.jk == Jk::Cat;
        let stride = self.combined_wide;
        let read = Matrix { values: self.outputs.read(arch), stride };
        sink.linear(prepared.linears.len() - 1, count, 1, Operand::Dense(read), d);
        if arch.closing == Closing::Combination {
            let d = Matrix { values: d, stride: classes_wide };
            head.backward(count, d, Start::Zero, &mut self.d_closed, stride);
            self.open(prepared, trace, rows, depth, sink);
        } else {
            let mut start = Start::Zero;
            if arch.normalise {
                l2_normalise::backward(classes_wide, logits, &head.b, &self.inverse, d, &mut self.along);
                start = Start::Scaled(&self.along, read);
            }
            let d = Matrix { values: d, stride: classes_wide };
            let d_combined = if cat { &mut trace.g } else { &mut self.d_combined };
            head.backward(count, d, start, d_combined, stride);
        }
        if !cat {
            let (hops, cache) = (&self.outputs.hops, &mut self.jk);
            jk::backward(prepared, sizes, hops, &self.d_combined, &mut trace.g, cache, sink);
        }
        tally
    }

    /// From the gradient by the combination after norm and activation to that by the combination as the branches gave it.
    fn open<'a>(
        &mut self,
        prepared: &Prepared<'_>,
        trace: &mut Trace,
        rows: &[u32],
        depth: Depth,
        sink: &mut impl Sink<'a>,
    ) {
        let (arch, count, stride) = (prepared.network.architecture(), rows.len(), self.combined_wide);
        let length = count * stride;
        let cat = arch.jk == Jk::Cat;
        let combined = &self.outputs.combination(arch)[..length];
        let g = Matrix { values: &self.d_closed, stride };
        let out = if cat { &mut trace.g } else { &mut self.d_combined };
        activation::backward(arch.activation, count, stride, &self.outputs.closed, g, out);
        for (part, mask) in prepared.closing_masks().enumerate() {
            dropout::apply(mask, rows, self.hidden, &mut out[part * self.wide..], stride);
        }
        if arch.norm == Norm::Batch {
            let [mut sum_g, mut sum_gx] = [vec![0.0; stride], vec![0.0; stride]];
            let g = Matrix { values: out, stride };
            batch_norm::add_sums(&prepared.closing, count, stride, combined, g, &mut sum_g, &mut sum_gx);
            for (part, i) in last_layers(arch).enumerate() {
                let vectors = prepared.network.values.layout.norm_vectors(i).expect("there is a norm");
                for (slot, sums) in vectors.into_iter().zip([&sum_gx, &sum_g]) {
                    sink.vector(slot, 1, Matrix { values: &sums[part * self.wide..], stride });
                }
            }
            if depth == Depth::Closing {
                return;
            }
            let da = &mut self.d_closed;
            batch_norm::backward_alone(&prepared.closing, count, stride, combined, g, da);
            out[..length].copy_from_slice(&da[..length]);
        }
        if arch.normalise {
            l2_normalise::backward_alone(stride, combined, &self.inverse, &mut out[..length]);
        }
    }

    fn branch_backward<'a>(
        &mut self,
        prepared: &Prepared<'_>,
        trace: &mut Trace,
        b: usize,
        rows: Rows<'a>,
        depth: Depth,
        sink: &mut impl Sink<'a>,
    ) {
        let (count, wide, stride) = (rows.rows.len(), self.wide, self.hops * self.wide);
        let arch = prepared.network.architecture();
        for l in (0..self.layers).rev() {
            let i = b * self.layers + l;
            self.drop_gradient(prepared, trace, b, l, rows.rows);
            let (reached, plain) = (depth == Depth::Layer(l), arch.is_plain(l));
            if reached && !plain {
                self.sum_gradient(prepared, trace, b, l, count, sink);
            }
            let (a, activation) = (trace.a(i), arch.activation);
            let g = Matrix { values: &trace.g[b * wide..], stride };
            match arch.norm {
                _ if plain => {
                    for (r, delta) in self.delta.chunks_exact_mut(wide).take(count).enumerate() {
                        delta.copy_from_slice(&g.row(r)[..wide]);
                    }
                }
                Norm::None => activation::backward(activation, count, wide, a, g, &mut self.delta),
                Norm::Group => {
                    let (gamma, da, d_gamma) = (&prepared.norms[i].gamma, &mut self.da, &mut self.d_gamma);
                    group_norm::backward(self.hidden, gamma, count, wide, a, g, da, d_gamma);
                    let [scale, shift] =
                        prepared.network.values.layout.norm_vectors(i).expect("there is a norm");
                    sink.vector(scale, count, Matrix { values: d_gamma, stride: wide });
                    sink.vector(shift, count, g);
                    let da = Matrix { values: da, stride: wide };
                    activation::backward(activation, count, wide, a, da, &mut self.delta);
                }
                Norm::Batch if reached => {
                    batch_norm::backward_planes(
                        activation,
                        &prepared.norms[i],
                        count,
                        wide,
                        a,
                        g,
                        &mut self.delta,
                    );
                }
                Norm::Batch => {
                    batch_norm::backward(activation, &prepared.norms[i], count, wide, a, g, &mut self.delta);
                }
            }
            if depth == Depth::All || reached {
                sink.linear(i, count, 1, self.operand(b, l, rows), &self.delta);
            }
            if !reached && l > 0 {
                let d = Matrix { values: &self.delta, stride: wide };
                prepared.linears[i].backward(count, d, Start::Zero, &mut trace.g[b * wide..], stride);
            }
            if reached {
                return;
            }
        }
    }
}

/// Takes nothing.
struct Nowhere;

impl<'a> Sink<'a> for Nowhere {
    fn linear(&mut self, _: usize, _: usize, _: usize, _: Operand<'_, 'a>, _: &[f32]) {}
    fn vector(&mut self, _: usize, _: usize, _: Matrix<'_>) {}
}
