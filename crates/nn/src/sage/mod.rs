//! GraphSAGE: rows that are mixed with an aggregate of their neighbours' rows, layer by layer.
//!
//! The model is the one of the published experiments. With hidden width `h` (16) and rows `x`:
//! ```text
//! base         base_layers x [Linear(-> h), activation, norm, dropout]
//! convolution  z = [A x | x] W + b          A: the mean (or sum) over a node's neighbours, zero without any
//!              z / max(|z|, 1e-12), norm, activation, dropout
//! joint        Linear of all convolutions' outputs side by side (-> h), norm, dropout, activation
//! head         (head_layers - 1) x [Linear(-> h), activation, norm, dropout], Linear(-> classes)
//! ```
//! The base has one layer, the head one, there are two convolutions, the activation is SELU, dropout 0. In a
//! convolution and in the joint layer the norm comes before the activation, in the base and the head after it. A
//! convolution's weights are those for the aggregate, then those for the node's own row; it starts uniform in
//! ±1/sqrt(h), every other linear layer as PyTorch's does. Batch normalisation is over all nodes, labelled or not; the
//! loss is over the rows of the batch.
//!
//! Aggregation comes in through [`Propagate`], so that nothing here knows a graph. Given the aggregates that a trained
//! model's convolutions read ([`Sage::aggregates`]), a node's prediction needs its own row of them only.

mod evaluate;
mod full_batch;
mod layout;
mod pass;
mod subgraph;

pub use full_batch::{SageGradient, sage_epoch, sage_gradient};
pub use subgraph::{Neighbours, sage_clipped_sum, sage_sample_norms};

use crate::error::{Error, Result, check_length, check_setting};
use crate::input::Inputs;
use crate::jk::Jk;
use crate::layer::{Activation, Norm};
use crate::optim::Optimiser;
use crate::pool::Pool;
use crate::values::{Values, state_methods};

/// A linear map of rows along a graph, and its transpose.
///
/// `forward` writes `A x`, `backward` writes `Aᵀ dy`; both are given one row of `width` values for each node. The
/// result must not depend on the number of threads, and `backward` must be the exact transpose of `forward`, since
/// gradients pass through it.
pub trait Propagate: Sync {
    /// The number of nodes.
    fn nodes(&self) -> usize;
    /// `out = A x`.
    fn forward(&self, width: usize, x: &[f32], out: &mut [f32]);
    /// `dx = Aᵀ dy`; `dy` may be used as scratch memory.
    fn backward(&self, width: usize, dy: &mut [f32], dx: &mut [f32]);

    /// The given rows of `A x` alone, one after the other.
    fn forward_rows(&self, width: usize, x: &[f32], rows: &[u32], out: &mut [f32]) {
        let mut all = vec![0.0; x.len()];
        self.forward(width, x, &mut all);
        for (out, &row) in out.chunks_exact_mut(width).zip(rows) {
            out.copy_from_slice(&all[row as usize * width..][..width]);
        }
    }
}

/// The shape of a GraphSAGE model, see the file `sage/mod.rs`.
#[derive(Debug, Clone, PartialEq)]
pub struct SageArchitecture {
    /// The columns of the features.
    pub inputs: usize,
    /// The width of every layer.
    pub hidden: usize,
    /// Layers before the first convolution, at least 1.
    pub base_layers: usize,
    /// Convolutions, at least 1: how many hops a prediction sees.
    pub convolutions: usize,
    /// Layers after the joint one, at least 1.
    pub head_layers: usize,
    /// The activation after each linear layer.
    pub activation: Activation,
    /// Which norm.
    pub norm: Norm,
    /// The share of values set to zero, in training.
    pub dropout: f32,
    /// How the outputs of the convolutions are combined: one of those without parameters.
    pub jk: Jk,
    /// Whether a convolution's rows are divided by their length.
    pub normalise: bool,
    /// The number of classes.
    pub classes: usize,
}

impl SageArchitecture {
    /// The published shape: width 16, one base layer, two convolutions, one head layer, SELU, batch normalisation,
    /// concatenated, normalised.
    pub fn new(inputs: usize, classes: usize) -> Self {
        SageArchitecture {
            inputs,
            hidden: 16,
            base_layers: 1,
            convolutions: 2,
            head_layers: 1,
            activation: Activation::Selu,
            norm: Norm::Batch,
            dropout: 0.0,
            jk: Jk::Cat,
            normalise: true,
            classes,
        }
    }

    /// The number of parameters of such a model, without the memory for any of them.
    ///
    /// # Errors
    /// A shape that no model has.
    pub fn parameter_count(&self) -> Result<usize> {
        self.check()?;
        Ok(layout::layout(self).parameters)
    }

    fn check(&self) -> Result<()> {
        let few = |n: usize, most: usize| (1..=most).contains(&n);
        check_setting(
            few(self.inputs, 1 << 24),
            "the number of input columns",
            self.inputs,
            "1 to 16777216",
        )?;
        check_setting(few(self.hidden, 1024), "the hidden width", self.hidden, "1 to 1024")?;
        for (what, layers) in [
            ("the number of base layers", self.base_layers),
            ("the number of convolutions", self.convolutions),
            ("the number of head layers", self.head_layers),
        ] {
            check_setting(few(layers, 16), what, layers, "1 to 16")?;
        }
        check_setting((0.0..1.0).contains(&self.dropout), "dropout", self.dropout, "at least 0 and below 1")?;
        check_setting(few(self.classes, 1 << 16), "the number of classes", self.classes, "1 to 65536")
    }

    /// Layers with a norm: all but the last.
    fn blocks(&self) -> usize {
        self.base_layers + self.convolutions + self.head_layers
    }

    fn kind(&self, block: usize) -> Kind {
        match block.checked_sub(self.base_layers) {
            None => Kind::Dense,
            Some(hop) if hop < self.convolutions => Kind::Convolution,
            Some(hop) if hop == self.convolutions => Kind::Joint,
            Some(_) => Kind::Dense,
        }
    }

    /// The block of the joint layer.
    fn joint(&self) -> usize {
        self.base_layers + self.convolutions
    }

    /// The blocks that are convolutions.
    fn convolution_blocks(&self) -> std::ops::Range<usize> {
        self.base_layers..self.joint()
    }
}

/// The kind of a block of layers, by the order of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Linear, activation, norm, dropout.
    Dense,
    /// Linear on aggregate and own row, row normalisation, norm, activation, dropout.
    Convolution,
    /// Linear on all convolutions' outputs, norm, dropout, activation.
    Joint,
}

/// A GraphSAGE model with its parameters and the running statistics of batch normalisation.
///
/// Cloning one takes a snapshot.
///
/// ```
/// use progap_nn::{Adam, Batch, Input, Inputs, Optimiser, Propagate, Sage, SageArchitecture, sage_epoch};
///
/// /// Each node's only neighbour is the one before it, around a ring.
/// struct Ring(usize);
///
/// impl Propagate for Ring {
///     fn nodes(&self) -> usize {
///         self.0
///     }
///     fn forward(&self, width: usize, x: &[f32], out: &mut [f32]) {
///         out.copy_from_slice(x);
///         out.rotate_right(width);
///     }
///     fn backward(&self, width: usize, dy: &mut [f32], dx: &mut [f32]) {
///         dx.copy_from_slice(dy);
///         dx.rotate_left(width);
///     }
/// }
///
/// // The class is in the neighbour's feature.
/// let (x, labels) = ([1.0, 0.0, 1.0, 1.0, 0.0, 0.0], [0, 1, 0, 1, 1, 0]);
/// let inputs = Inputs::new(vec![Input::Dense { columns: 1, values: &x }])?;
/// let batch = Batch::new(&inputs, &labels, &[0, 1, 2, 3, 4, 5], 2)?;
/// let mut sage = Sage::new(SageArchitecture::new(1, 2), 3)?;
/// let mut adam = Optimiser::adam(Adam { rate: 0.05, ..Adam::default() })?;
/// for step in 0..100 {
///     sage_epoch(&mut sage, &mut adam, batch, &Ring(6), step)?;
/// }
/// let aggregates = sage.aggregates(&inputs, &Ring(6))?;
/// assert_eq!(sage.accuracy(batch, &aggregates)?, 1.0);
/// # Ok::<(), progap_nn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sage {
    architecture: SageArchitecture,
    values: Values,
    tapes: Pool<full_batch::Tape>,
}

state_methods!(Sage, SageArchitecture);

impl Sage {
    /// A model whose parameters start as PyTorch's do, drawn with a generator that is not secret.
    pub fn new(architecture: SageArchitecture, seed: u64) -> Result<Self> {
        architecture.check()?;
        let values = Values::new(layout::layout(&architecture), seed);
        Ok(Sage { architecture, values, tapes: Pool::default() })
    }

    /// One step of the optimiser with a gradient by all parameters.
    pub fn apply(&mut self, optimiser: &mut Optimiser, gradient: &[f32]) -> Result<()> {
        let count = self.parameter_count();
        check_length("gradient", gradient.len(), count)?;
        optimiser.step(&mut self.values.parameters, std::slice::from_ref(&(0..count)), gradient);
        Ok(())
    }

    fn check_inputs(&self, inputs: &Inputs<'_>) -> Result<()> {
        check_length("list of inputs", inputs.as_slice().len(), 1)?;
        check_length("row of input 0", inputs.as_slice()[0].columns(), self.architecture.inputs)
    }

    fn check_nodes(inputs: &Inputs<'_>, propagate: &impl Propagate) -> Result<()> {
        check_length("list of rows of input 0", inputs.rows(), propagate.nodes())?;
        match u32::try_from(inputs.rows()) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Setting {
                what: "the number of rows",
                value: inputs.rows().to_string(),
                allowed: "below 2^32",
            }),
        }
    }
}
