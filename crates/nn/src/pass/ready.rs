//! A network made ready for a step: weights padded, transposed where gradients need it, norms absorbed where they can
//! be.

use super::absorbs_last;
use crate::jk::{Jk, Sizes};
use crate::kernel::tile::BackwardCoefficients;
use crate::layer::Norm;
use crate::layer::dropout::Mask;
use crate::layer::linear::Weights;
use crate::layer::norm::{ColumnMap, NormLayer};
use crate::layout::padded_width;
use crate::network::{Network, NormPlacement};

/// A network ready for blocks of rows.
pub(crate) struct PreparedNetwork<'n> {
    pub network: &'n Network,
    pub layers: usize,
    pub branches: usize,
    pub padded_width: usize,
    /// The parts of the join, one norm each.
    pub parts: usize,
    /// Every linear layer of the layout, the head last; layer `l` of branch `b` is number `b * layers + l`. Those of
    /// branches have absorbed the norm before them where that can be.
    pub linears: Vec<Weights>,
    /// The norm after each layer of each branch; where norms stand after the join, that of part `p` counts as the norm
    /// after branch `p`'s last layer.
    pub norms: Vec<NormLayer>,
    pub maps: Vec<ColumnMap>,
    /// For the backward pass of each norm, once its sums are known.
    pub coefficients: Vec<BackwardCoefficients>,
    /// The head, for each part of the join; with the norms absorbed where that can be.
    pub heads: Vec<Weights>,
    /// The head's bias, where it is added after the division by the row's norm.
    pub bias: Vec<f32>,
    /// The step's seed, where there is dropout.
    dropout: Option<u64>,
    /// Added to the number of a row, as dropout knows it: where rows of several processes are numbered through.
    pub numbered_from: u32,
    absorbs: bool,
}

impl<'n> PreparedNetwork<'n> {
    /// For training, with statistics and norms yet to be taken in, layer by layer, by [`PreparedNetwork::advance`].
    /// `dropout` is its seed.
    pub fn training(network: &'n Network, dropout: Option<u64>) -> Self {
        let arch = network.architecture();
        PreparedNetwork::new(network, true, true, dropout.filter(|_| arch.dropout > 0.0))
    }

    /// For per-sample gradients, as in evaluation; no norm mixes rows.
    pub fn per_sample(network: &'n Network) -> Self {
        PreparedNetwork::new(network, true, true, None).advanced()
    }

    /// For evaluation: running statistics, no dropout.
    pub fn evaluation(network: &'n Network) -> Self {
        PreparedNetwork::new(network, false, true, None).advanced()
    }

    /// For evaluation with every layer's output written out.
    pub fn written_out(network: &'n Network) -> Self {
        PreparedNetwork::new(network, false, false, None).advanced()
    }

    fn new(network: &'n Network, gradients: bool, absorbs: bool, dropout: Option<u64>) -> Self {
        let (arch, values) = (network.architecture(), &network.values);
        let (branches, layers, width) = (arch.inputs.len(), arch.layers, padded_width(arch.hidden));
        let none = BackwardCoefficients {
            constant: vec![0.0; width],
            linear: vec![0.0; width],
            ..BackwardCoefficients::default()
        };
        PreparedNetwork {
            network,
            layers,
            branches,
            padded_width: width,
            parts: arch.parts(),
            linears: (0..values.layout.linears.len()).map(|slot| values.weights(slot, gradients)).collect(),
            norms: (0..branches * layers).map(|i| values.norm_layer(i)).collect(),
            maps: vec![ColumnMap::default(); branches * layers],
            coefficients: vec![none; branches * layers],
            heads: vec![],
            bias: vec![],
            dropout,
            numbered_from: 0,
            absorbs,
        }
    }

    fn advanced(mut self) -> Self {
        (0..=self.layers).for_each(|layer| self.advance(layer));
        self
    }

    /// Makes the given layer of all branches ready, or the head after the last: the statistics of the norms before are
    /// known.
    pub fn advance(&mut self, layer: usize) {
        if layer > 0 {
            for b in 0..self.branches {
                let i = self.number(b, layer - 1);
                self.maps[i] = self.norms[i].map();
                if layer < self.layers && self.is_absorbed(layer - 1) {
                    self.linears[i + 1].absorb(&self.maps[i]);
                }
            }
        }
        if layer == self.layers {
            self.advance_head();
        }
    }

    fn advance_head(&mut self) {
        let width = self.padded_width;
        let mut head = self.linears.last().expect("there is a head").clone();
        let absorbed = self.is_absorbed(self.layers - 1);
        if absorbed && self.network.architecture().normalise {
            self.bias = std::mem::replace(&mut head.b, vec![0.0; head.outputs]);
        }
        self.heads = (0..self.parts).map(|part| head.part(part * width, width)).collect();
        if !absorbed {
            return;
        }
        for (b, head) in self.heads.iter_mut().enumerate() {
            head.absorb(&self.maps[(b + 1) * self.layers - 1]);
        }
        // The first part adds the shifts of all.
        let others: Vec<Vec<f32>> =
            self.heads[1..].iter_mut().map(|head| std::mem::take(&mut head.b)).collect();
        for other in others {
            self.heads[0].b.iter_mut().zip(other).for_each(|(b, other)| *b += other);
        }
    }

    /// The number of layer `l` of branch `b`.
    pub fn number(&self, b: usize, l: usize) -> usize {
        b * self.layers + l
    }

    /// The last layer of a branch, by number.
    pub fn last(&self, branch: usize) -> usize {
        self.number(branch, self.layers - 1)
    }

    pub fn head(&self) -> &Weights {
        self.linears.last().expect("there is a head")
    }

    /// The branches that are trained.
    pub fn trained(&self) -> impl Iterator<Item = usize> + use<'_, 'n> {
        (0..self.branches).filter(|&b| !self.network.is_frozen(b))
    }

    /// Whether norm and activation of the last layers stand after the join.
    pub fn is_after_join(&self) -> bool {
        self.network.architecture().norm_placement == NormPlacement::AfterJoin
    }

    pub fn concatenates(&self) -> bool {
        self.network.architecture().jk == Jk::Cat
    }

    /// Whether layer `l` is linear and no more.
    pub fn is_plain(&self, l: usize) -> bool {
        self.network.architecture().is_plain(l)
    }

    /// Whether the norms after layer `l` are absorbed by the layers that read them.
    pub fn is_absorbed(&self, l: usize) -> bool {
        let (arch, dropout) = (self.network.architecture(), self.dropout.is_some());
        let inner = arch.norm.mixes_rows() && !dropout;
        self.absorbs && if l + 1 < self.layers { inner } else { absorbs_last(arch, dropout) }
    }

    /// Whether the outputs of layer `l` are written out, since they are neither absorbed nor the activations
    /// themselves. Of last layers they always are: the join overwrites them.
    pub fn is_written(&self, l: usize) -> bool {
        let same = self.network.architecture().norm == Norm::None && self.dropout.is_none();
        !self.is_plain(l) && !self.is_absorbed(l) && (!same || l + 1 == self.layers)
    }

    /// The dropout after layer `l` of branch `b`.
    pub fn mask(&self, b: usize, l: usize) -> Option<Mask> {
        let dropped = !self.is_plain(l) && !self.network.is_frozen(b);
        self.dropout.filter(|_| dropped).map(|seed| self.new_mask(seed, self.number(b, l)))
    }

    /// The dropout after the norm of a part of the join.
    pub fn join_mask(&self, part: usize) -> Option<Mask> {
        self.dropout.map(|seed| self.new_mask(seed, self.last(part)))
    }

    fn new_mask(&self, seed: u64, layer: usize) -> Mask {
        Mask::new(self.network.architecture().dropout, seed, layer, self.numbered_from)
    }

    /// The sizes of a block of branches that are combined.
    pub fn join_sizes(&self, rows: usize) -> Sizes {
        Sizes { rows, branches: self.branches, padded_width: self.padded_width }
    }
}
