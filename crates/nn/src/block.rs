//! The forward and backward pass of a whole network over one block of rows, in scratch memory that stays in cache.
//!
//! Nothing of a row outlives its block: what a later pass needs is computed again, which is cheaper than storing and
//! reading it.

use crate::input::{Batch, Input, Inputs};
use crate::jk::{self, Cache, Jk, Sizes};
use crate::kernel::product::Matrix;
use crate::layer::batch_norm::{self, Columns};
use crate::layer::dropout::{self, Mask};
use crate::layer::linear::{self, Weights};
use crate::layer::{Norm, activation, group_norm, l2_normalise, sparse_linear};
use crate::layout::hidden_padded;
use crate::loss::{self, Tally};
use crate::network::Network;
use crate::train::sink::{Operand, Sink};

/// Rows computed together.
pub(crate) const BLOCK: usize = 64;

/// A network made ready for one step: its weights padded, and transposed where a gradient needs it.
pub(crate) struct Prepared<'n> {
    pub network: &'n Network,
    pub linears: Vec<Weights>,
    /// For each layer of each branch; empty without norms.
    pub norms: Vec<Columns>,
    /// The step's seed, where dropout is to be applied.
    pub dropout: Option<u64>,
}

impl<'n> Prepared<'n> {
    /// For evaluation: batch normalisation by running statistics, no dropout. `gradients` adds what a backward pass
    /// needs.
    pub fn new(network: &'n Network, gradients: bool) -> Self {
        let layout = &network.layout;
        let linears = layout.linears.iter().map(|slot| {
            let (inputs, outputs) = (slot.inputs_padded, slot.outputs_padded);
            let weights = &network.parameters[slot.weight.clone()];
            let mut w = vec![0.0; inputs * outputs];
            let transpose = gradients && slot.needs_transposed;
            let mut transposed = vec![0.0; if transpose { inputs * outputs } else { 0 }];
            for (column, row) in slot.input_rows() {
                let from = &weights[row * slot.outputs..][..slot.outputs];
                w[column * outputs..][..slot.outputs].copy_from_slice(from);
                if transpose {
                    for (k, &value) in from.iter().enumerate() {
                        transposed[k * inputs + column] = value;
                    }
                }
            }
            let b = pad(&network.parameters[slot.bias.clone()], outputs, 0.0);
            Weights { w, b, transposed, inputs, outputs }
        });
        let wide = hidden_padded(network.architecture().hidden);
        let norms = layout.vectors.chunks_exact(2).enumerate().filter(|(_, pair)| pair[0].branch.is_some());
        let norms = norms.map(|(i, pair)| {
            let [gamma, beta] = [0, 1].map(|k| pad(&network.parameters[pair[k].range.clone()], wide, 0.0));
            let mut columns = Columns { gamma, beta, ..Columns::default() };
            if let Some([mean, variance]) =
                layout.statistics.get(2 * i..2 * i + 2).and_then(|s| s.first_chunk())
            {
                columns.mean = pad(&network.statistics[mean.range.clone()], wide, 0.0);
                let variance = network.statistics[variance.range.clone()].iter();
                let inverse: Vec<f32> =
                    variance.map(|&v| (1.0 / (f64::from(v) + batch_norm::EPSILON).sqrt()) as f32).collect();
                columns.inverse = pad(&inverse, wide, 0.0);
            }
            columns
        });
        Prepared { network, linears: linears.collect(), norms: norms.collect(), dropout: None }
    }

    fn mask(&self, branch: usize, layer: usize) -> Option<Mask> {
        let arch = self.network.architecture();
        let seed = self.dropout.filter(|_| arch.dropout > 0.0 && !self.network.is_frozen(branch))?;
        Some(Mask::new(arch.dropout, seed, branch * arch.layers + layer))
    }
}

fn pad(values: &[f32], length: usize, with: f32) -> Vec<f32> {
    let mut padded = vec![with; length];
    padded[..values.len()].copy_from_slice(values);
    padded
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
    /// What each activation gave.
    a: Vec<Vec<f32>>,
    hops_out: Vec<f32>,
    /// The combination, normalised if so wanted.
    combined: Vec<f32>,
    inverse: Vec<f32>,
    /// Logits, then whatever is made of them.
    pub logits: Vec<f32>,
    d_combined: Vec<f32>,
    d_hops: Vec<f32>,
    g: Vec<f32>,
    da: Vec<f32>,
    d_gamma: Vec<f32>,
    delta: Vec<f32>,
    jk: Cache,
}

impl Scratch {
    pub fn new(network: &Network) -> Self {
        let arch = network.architecture();
        let (hops, layers, wide) = (arch.inputs.len(), arch.layers, hidden_padded(arch.hidden));
        let combined_wide = if arch.jk == Jk::Cat { hops * wide } else { wide };
        let classes_wide = network.layout.linears.last().expect("there is a head").outputs_padded;
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
            a: vec![block(wide); hops * layers],
            hops_out: block(hops * wide),
            combined: block(combined_wide),
            inverse: block(1),
            logits: block(classes_wide),
            d_combined: block(combined_wide),
            d_hops: block(hops * wide),
            g: block(wide),
            da: block(wide),
            d_gamma: block(wide),
            delta: block(3 * wide),
            jk: arch.jk.cache(&network.layout.jk, BLOCK, hops),
        }
    }

    pub fn classes_wide(&self) -> usize {
        self.classes_wide
    }

    /// What the activation of a layer gave, in the block last seen.
    pub fn activations(&self, branch: usize, layer: usize) -> &[f32] {
        &self.a[branch * self.layers + layer]
    }

    /// The branch's output for row `r` of the block.
    pub fn embedding(&self, branch: usize, r: usize) -> &[f32] {
        &self.hops_out[(r * self.hops + branch) * self.wide..][..self.hidden]
    }

    /// One branch forward; with `until`, only to the activation of that layer.
    pub fn branch(&mut self, prepared: &Prepared<'_>, b: usize, rows: Rows<'_>, until: Option<usize>) {
        let network = prepared.network;
        let (count, wide, arch) = (rows.rows.len(), self.wide, network.architecture());
        for l in 0..self.layers {
            let i = b * self.layers + l;
            let weights = &prepared.linears[i];
            match rows.inputs.as_slice()[b] {
                input @ Input::Sparse { .. } if l == 0 => {
                    sparse_linear::forward(input, rows.rows, &weights.w, &weights.b, wide, &mut self.a[i]);
                }
                Input::Dense { columns, values } if l == 0 => {
                    self.x[i].resize(BLOCK * columns, 0.0);
                    linear::gather(values, columns, rows.rows, &mut self.x[i]);
                    let x = Matrix { values: &self.x[i], stride: columns };
                    weights.forward(count, x, &mut self.a[i], wide);
                }
                _ => {
                    let x = Matrix { values: &self.x[i], stride: wide };
                    weights.forward(count, x, &mut self.a[i], wide);
                }
            }
            activation::forward(arch.activation, &mut self.a[i][..count * wide]);
            if until == Some(l) {
                return;
            }
            let (out, stride) = if l + 1 == self.layers {
                (&mut self.hops_out[b * wide..], self.hops * wide)
            } else {
                (&mut self.x[i + 1][..], wide)
            };
            let a = &self.a[i];
            match arch.norm {
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
                dropout::apply(mask, rows.rows, self.hidden, out, stride);
            }
        }
    }

    /// The whole network forward: leaves logits in `self.logits`.
    pub fn forward(&mut self, prepared: &Prepared<'_>, rows: Rows<'_>) {
        for b in 0..self.hops {
            self.branch(prepared, b, rows, None);
        }
        let (count, arch) = (rows.rows.len(), prepared.network.architecture());
        if arch.jk == Jk::Cat {
            // Hops lie side by side: they are the combination.
            std::mem::swap(&mut self.hops_out, &mut self.combined);
        } else {
            jk::forward(prepared, self.sizes(count), &self.hops_out, &mut self.combined, &mut self.jk);
        }
        if arch.normalise {
            let values = &mut self.combined[..count * self.combined_wide];
            l2_normalise::forward(self.combined_wide, values, &mut self.inverse);
        }
        let head = prepared.linears.last().expect("there is a head");
        let combined = Matrix { values: &self.combined, stride: self.combined_wide };
        head.forward(count, combined, &mut self.logits, self.classes_wide);
    }

    fn sizes(&self, rows: usize) -> Sizes {
        Sizes { rows, hops: self.hops, wide: self.wide }
    }

    /// Forward, the loss times `scale`, and backward into the sink.
    pub fn train<'a>(
        &mut self,
        prepared: &Prepared<'_>,
        batch: Batch<'a>,
        rows: &'a [u32],
        scale: f32,
        depth: Depth,
        sink: &mut impl Sink<'a>,
    ) -> Tally {
        let rows = Rows { inputs: batch.inputs, rows };
        self.forward(prepared, rows);
        let (count, arch) = (rows.rows.len(), prepared.network.architecture());
        let logits = &mut self.logits[..count * self.classes_wide];
        let tally =
            loss::cross_entropy(rows.rows, batch.labels, logits, arch.classes, self.classes_wide, scale);
        let head = prepared.linears.len() - 1;
        let top = depth == Depth::All || depth == Depth::Layer(self.layers - 1);
        if top {
            let x = Operand::dense(&self.combined, self.combined_wide);
            sink.linear(head, count, 1, x, &self.logits);
        }
        let d_logits = Matrix { values: &self.logits, stride: self.classes_wide };
        prepared.linears[head].backward(count, d_logits, &mut self.d_combined, self.combined_wide);
        if arch.normalise {
            let values = count * self.combined_wide;
            l2_normalise::backward(
                self.combined_wide,
                &self.combined[..values],
                &self.inverse,
                &mut self.d_combined[..values],
            );
        }
        let sizes = self.sizes(count);
        let (hops, d_combined) = (&self.hops_out, &self.d_combined);
        if arch.jk == Jk::Cat {
            std::mem::swap(&mut self.d_hops, &mut self.d_combined);
        } else if top {
            jk::backward(prepared, sizes, hops, d_combined, &mut self.d_hops, &mut self.jk, sink);
        } else {
            jk::backward(prepared, sizes, hops, d_combined, &mut self.d_hops, &mut self.jk, &mut Nowhere);
        }
        for b in (0..self.hops).filter(|&b| !prepared.network.is_frozen(b)) {
            self.branch_backward(prepared, b, rows, depth, sink);
        }
        tally
    }

    fn branch_backward<'a>(
        &mut self,
        prepared: &Prepared<'_>,
        b: usize,
        rows: Rows<'a>,
        depth: Depth,
        sink: &mut impl Sink<'a>,
    ) {
        let (count, wide, arch) = (rows.rows.len(), self.wide, prepared.network.architecture());
        for l in (0..self.layers).rev() {
            let i = b * self.layers + l;
            // The gradient by the layer's output lies among those of the hops, or was left in `g` by the layer above.
            let mask = prepared.mask(b, l);
            if l + 1 == self.layers && (mask.is_some() || arch.norm != Norm::Batch) {
                for (g, d) in
                    self.g.chunks_exact_mut(wide).zip(self.d_hops[b * wide..].chunks(self.hops * wide))
                {
                    g.copy_from_slice(&d[..wide]);
                }
            }
            if let Some(mask) = mask {
                dropout::apply(mask, rows.rows, self.hidden, &mut self.g, wide);
            }
            let in_place = l + 1 == self.layers && mask.is_none();
            let (g, stride) =
                if in_place { (&self.d_hops[b * wide..], self.hops * wide) } else { (&self.g[..], wide) };
            let (a, activation) = (&self.a[i], arch.activation);
            let values = count * wide;
            let mut done = false;
            match arch.norm {
                Norm::None => {
                    activation::backward(
                        activation,
                        &a[..values],
                        &self.g[..values],
                        &mut self.delta[..values],
                    );
                }
                Norm::Group => {
                    let gamma = &prepared.norms[i].gamma;
                    let (da, d_gamma) = (&mut self.da, &mut self.d_gamma);
                    group_norm::backward(self.hidden, gamma, count, wide, a, &self.g, da, d_gamma);
                    sink.vector(2 * i, count, d_gamma);
                    sink.vector(2 * i + 1, count, &self.g);
                    activation::backward(activation, &a[..values], &da[..values], &mut self.delta[..values]);
                }
                Norm::Batch if depth == Depth::Layer(l) => {
                    let (sum_g, sum_gx) = (&mut self.da[..wide], &mut self.d_gamma[..wide]);
                    sum_g.fill(0.0);
                    sum_gx.fill(0.0);
                    let (norm, delta) = (&prepared.norms[i], &mut self.delta);
                    batch_norm::backward_planes(
                        activation, norm, count, wide, a, g, stride, delta, sum_g, sum_gx,
                    );
                    sink.vector(2 * i, 1, sum_gx);
                    sink.vector(2 * i + 1, 1, sum_g);
                    done = true;
                }
                Norm::Batch => {
                    let (norm, delta) = (&prepared.norms[i], &mut self.delta);
                    batch_norm::backward(activation, norm, count, wide, a, g, stride, delta);
                }
            }
            if depth == Depth::All || done {
                let x = match rows.inputs.as_slice()[b] {
                    input @ Input::Sparse { .. } if l == 0 => Operand::Sparse(input, rows.rows),
                    _ => Operand::dense(&self.x[i], if l == 0 { self.x[i].len() / BLOCK } else { wide }),
                };
                sink.linear(i, count, 1, x, &self.delta);
            }
            if done || l == 0 {
                return;
            }
            let d = Matrix { values: &self.delta, stride: wide };
            prepared.linears[i].backward(count, d, &mut self.g, wide);
        }
    }
}

/// Takes nothing.
struct Nowhere;

impl<'a> Sink<'a> for Nowhere {
    fn linear(&mut self, _: usize, _: usize, _: usize, _: Operand<'_, 'a>, _: &[f32]) {}
    fn vector(&mut self, _: usize, _: usize, _: &[f32]) {}
}
