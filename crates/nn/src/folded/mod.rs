//! Networks whose norms are folded into the linear layers that read them: the quick way through batch normalisation.
//!
//! A batch normalisation gives `y = s a + t` with `s = γ / sqrt(v + ε)` and `t = β - s μ`. A linear layer after it reads
//! `a` itself, with other weights: `y W + b = a (s W) + (b + t W)`. So nothing normalised is ever written down. Backward,
//! with `d` the gradient by what the layer gives, all that follows from its rows are the sums `A = Σ aᵀ d` and `D = Σ d`:
//! ```text
//! dW = s A + t D        dβ = W D        dγ = (Σ_k W_k (A_k - μ D_k)) / sqrt(v + ε)
//! ```
//! Before the head each row `h` of branches side by side is divided by its length: `z = (h W) / |h| + b`. There
//! ```text
//! dh = d' Wᵀ + c h      with d' = d / |h| and c = -((z - b) · d) / |h|²
//! ```
//! so that `A` and `D` are sums with `d'`, and with `q = a - μ`, `h = s q + β` the sums `Σ c`, `Σ c q` and `Σ c q²` are added:
//! ```text
//! dβ += s Σ c q + β Σ c        dγ += (s Σ c q² + β Σ c q) / sqrt(v + ε)
//! ```
//! Without a norm `s = 1` and `t = 0`.
//!
//! Where norm and activation stand after the combination (`closing.rs`), the lower layers are folded in the same way; from
//! the last linear layers on, rows are computed as they are written.
//!
//! Dropout between norm and linear layer, and combinations other than
//! concatenation, need rows that are normalised: they go the general way (`block.rs`).

mod closing;
mod pass;
mod step;

pub(crate) use pass::{Scratch, Trace};
pub(crate) use step::{Folding, gradient};

use crate::jk::Jk;
use crate::kernel::strip::Slopes;
use crate::layer::Norm;
use crate::layer::batch_norm::Columns;
use crate::layer::linear::Weights;
use crate::layout::hidden_padded;
use crate::network::{Closing, Network};

/// A network made ready for one step.
pub(crate) struct Folded<'n> {
    pub network: &'n Network,
    layers: usize,
    hops: usize,
    wide: usize,
    /// Layer `l` of branch `b` is number `b * layers + l`; with the norm before it folded in.
    linears: Vec<Weights>,
    norms: Vec<Columns>,
    folds: Vec<Fold>,
    /// From the gradient by what a norm gives to that by what its activation was given.
    slopes: Vec<Slopes>,
    /// The part of the head that reads a branch, with the branch's last norm folded in.
    heads: Vec<Weights>,
    /// The head's bias, where it is added after the division by the length.
    bias: Vec<f32>,
}

/// A norm as `y = scale a + shift`.
#[derive(Debug, Clone, Default)]
struct Fold {
    scale: Vec<f32>,
    shift: Vec<f32>,
}

impl Fold {
    fn new(norm: &Columns, wide: usize) -> Self {
        if norm.inverse.is_empty() {
            return Fold { scale: vec![1.0; wide], shift: vec![0.0; wide] };
        }
        let scale: Vec<f64> =
            norm.gamma.iter().zip(&norm.inverse).map(|(&g, &i)| f64::from(g) * f64::from(i)).collect();
        let shift = scale.iter().zip(&norm.mean).zip(&norm.beta);
        let shift = shift.map(|((scale, &mean), &beta)| (f64::from(beta) - scale * f64::from(mean)) as f32);
        Fold { shift: shift.collect(), scale: scale.iter().map(|&scale| scale as f32).collect() }
    }
}

/// Whether a network can be folded, for training or for evaluation.
pub(crate) fn suits(network: &Network, training: bool) -> bool {
    let arch = network.architecture();
    arch.jk == Jk::Cat && arch.norm != Norm::Group && (!training || arch.dropout == 0.0)
}

impl<'n> Folded<'n> {
    /// For evaluation, by running statistics.
    pub fn new(network: &'n Network) -> Self {
        let mut folded = Folded::unfolded(network, false);
        for layer in 0..=folded.layers {
            folded.fold(layer);
        }
        folded
    }

    /// With weights as they are, and running statistics.
    fn unfolded(network: &'n Network, gradients: bool) -> Self {
        let (arch, values) = (network.architecture(), &network.values);
        let (hops, layers, wide) = (arch.inputs.len(), arch.layers, hidden_padded(arch.hidden));
        Folded {
            network,
            layers,
            hops,
            wide,
            linears: (0..=hops * layers).map(|i| values.weights(i, gradients)).collect(),
            norms: (0..hops * layers).map(|i| values.norm_after(i)).collect(),
            folds: vec![Fold::default(); hops * layers],
            slopes: vec![Slopes::default(); hops * layers],
            heads: vec![],
            bias: vec![],
        }
    }

    /// The last layer of a branch, by number.
    fn last(&self, branch: usize) -> usize {
        (branch + 1) * self.layers - 1
    }

    /// Whether norm and activation stand after the combination.
    fn closes(&self) -> bool {
        self.network.architecture().closing == Closing::Combination
    }

    fn trained(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.hops).filter(|&b| !self.network.is_frozen(b))
    }

    /// Folds the norms before a layer of all branches, or before the head, into its weights: their statistics are known.
    fn fold(&mut self, layer: usize) {
        let wide = self.wide;
        if layer > 0 {
            for i in (0..self.hops).map(|b| b * self.layers + layer - 1) {
                self.folds[i] = Fold::new(&self.norms[i], wide);
            }
        }
        if layer < self.layers {
            for i in (0..self.hops).map(|b| b * self.layers + layer).filter(|_| layer > 0) {
                let Fold { scale, shift } = &self.folds[i - 1];
                self.linears[i].absorb(scale, shift);
            }
            return;
        }
        let mut head = self.linears.pop().expect("there is a head");
        if self.closes() {
            self.heads = (0..self.hops).map(|b| head.part(b * wide, wide)).collect();
            return;
        }
        if self.network.architecture().normalise {
            self.bias = std::mem::replace(&mut head.b, vec![0.0; head.outputs]);
        }
        self.heads = (0..self.hops).map(|b| head.part(b * wide, wide)).collect();
        for (b, head) in self.heads.iter_mut().enumerate() {
            let Fold { scale, shift } = &self.folds[(b + 1) * self.layers - 1];
            head.absorb(scale, shift);
        }
        // The first part adds what all shifts add.
        let others: Vec<Vec<f32>> =
            self.heads[1..].iter_mut().map(|head| std::mem::take(&mut head.b)).collect();
        for other in others {
            self.heads[0].b.iter_mut().zip(other).for_each(|(b, other)| *b += other);
        }
    }
}
