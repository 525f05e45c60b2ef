//! A network: branches over inputs of their own, combined, normalised and classified.

use std::ops::Range;

use crate::aligned::Aligned;
use crate::error::{Result, check_length, check_setting};
use crate::input::Inputs;
use crate::jk::Jk;
use crate::layer::{Activation, Norm};
use crate::layout::Layout;
use crate::pass::{Scratch, Trace};
use crate::pool::{Lent, Pool};
use crate::values::{Values, state_methods};

/// Where activation and norm of the branches' last layers stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NormPlacement {
    /// At the end of each branch, the norm after the activation: ProGAP's own.
    #[default]
    PerBranch,
    /// After the join and its row normalisation, the norm before the activation, dropout between them; the branches'
    /// last layers are linear and no more. As in GAP.
    AfterJoin,
}

/// The shape of a network.
///
/// Branch `b` is `layers` times [linear, activation, norm, dropout] on input `b`. The branches' outputs are joined by
/// `jk`, rows are normalised to norm one if `normalise` is set, and a linear head gives a logit per class.
/// `norm_placement` may move what follows the branches' last linear layers behind the join. A multi-layer perceptron is
/// a network of one branch.
#[derive(Debug, Clone, PartialEq)]
pub struct Architecture {
    /// The columns of each branch's input.
    pub inputs: Vec<usize>,
    /// The width of every layer.
    pub hidden: usize,
    /// The layers of each branch.
    pub layers: usize,
    /// The activation after each linear layer.
    pub activation: Activation,
    /// The norm after each activation.
    pub norm: Norm,
    /// The share of values set to zero after each norm, in training.
    pub dropout: f32,
    /// How branches are joined.
    pub jk: Jk,
    /// Whether each joined row is divided by its norm.
    pub normalise: bool,
    /// Where activation and norm of the branches' last layers stand.
    pub norm_placement: NormPlacement,
    /// The number of classes.
    pub classes: usize,
}

impl Architecture {
    /// The method's own shape for the given inputs: width 16, one layer, SELU, batch normalisation, concatenated,
    /// normalised.
    pub fn new(inputs: Vec<usize>, classes: usize) -> Self {
        Architecture {
            inputs,
            hidden: 16,
            layers: 1,
            activation: Activation::Selu,
            norm: Norm::Batch,
            dropout: 0.0,
            jk: Jk::Cat,
            normalise: true,
            norm_placement: NormPlacement::PerBranch,
            classes,
        }
    }

    /// Whether layer `l` of a branch is linear and no more.
    pub(crate) fn is_plain(&self, l: usize) -> bool {
        self.norm_placement == NormPlacement::AfterJoin && l + 1 == self.layers
    }

    /// The number of vectors of the hidden width in a joined row.
    pub(crate) fn parts(&self) -> usize {
        if self.jk == Jk::Cat { self.inputs.len() } else { 1 }
    }

    /// The number of parameters of such a network, without the memory for any of them.
    ///
    /// # Errors
    /// A shape that no network has.
    pub fn parameter_count(&self) -> Result<usize> {
        self.check()?;
        Ok(Layout::new(self).parameters)
    }

    fn check(&self) -> Result<()> {
        let few = |n: usize, most: usize| (1..=most).contains(&n);
        check_setting(few(self.inputs.len(), 64), "the number of branches", self.inputs.len(), "1 to 64")?;
        for &columns in &self.inputs {
            check_setting(few(columns, 1 << 24), "the number of input columns", columns, "1 to 16777216")?;
        }
        check_setting(few(self.hidden, 1024), "the hidden width", self.hidden, "1 to 1024")?;
        check_setting(few(self.layers, 16), "the number of layers", self.layers, "1 to 16")?;
        check_setting((0.0..1.0).contains(&self.dropout), "dropout", self.dropout, "at least 0 and below 1")?;
        check_setting(few(self.classes, 1 << 16), "the number of classes", self.classes, "1 to 65536")?;
        let placed = self.norm != Norm::Group || self.norm_placement == NormPlacement::PerBranch;
        check_setting(placed, "the norm", "group", "batch or none where it stands after the join")
    }
}

/// A named tensor of a network's state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tensor<'a> {
    /// Its name, such as `branches.0.layers.0.weight`.
    pub name: &'a str,
    /// Its shape. Weights are inputs x outputs, the transpose of PyTorch's.
    pub shape: &'a [usize],
    /// Its values, row after row.
    pub values: &'a [f32],
}

/// A network with its parameters, in one flat list, and the running statistics of batch normalisation.
///
/// Cloning one takes a snapshot.
///
/// ```
/// use progap_nn::{Architecture, Network};
///
/// let network = Network::new(Architecture::new(vec![437, 16], 6), 1)?;
/// assert_eq!(network.parameter_count(), (437 + 1 + 2) * 16 + (16 + 1 + 2) * 16 + (32 + 1) * 6);
/// let copy = Network::from_state(network.architecture().clone(), network.state())?;
/// assert_eq!(copy.parameters(), network.parameters());
/// # Ok::<(), progap_nn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Network {
    architecture: Architecture,
    pub(crate) values: Values,
    frozen: Vec<bool>,
    scratch: Pool<Scratch>,
    traces: Pool<Trace>,
    pub(crate) sums: Pool<Aligned>,
}

state_methods!(Network, Architecture);

impl Network {
    /// A network whose parameters start as PyTorch's do, drawn with a generator that is not secret.
    pub fn new(architecture: Architecture, seed: u64) -> Result<Self> {
        architecture.check()?;
        let values = Values::new(Layout::new(&architecture), seed);
        let frozen = vec![false; architecture.inputs.len()];
        Ok(Network {
            architecture,
            values,
            frozen,
            scratch: Pool::default(),
            traces: Pool::default(),
            sums: Pool::default(),
        })
    }

    /// The number of parameters that are trained.
    pub fn trained_count(&self) -> usize {
        self.trained().iter().map(Range::len).sum()
    }

    /// Where in [`Network::parameters`] the trained ones lie, in ascending order. A gradient lists them in this
    /// order, without gaps.
    pub fn trained(&self) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = vec![];
        for tensor in &self.values.layout.tensors {
            if tensor.branch.is_some_and(|b| self.frozen[b]) {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if last.end == tensor.range.start => last.end = tensor.range.end,
                _ => ranges.push(tensor.range.clone()),
            }
        }
        ranges
    }

    /// Freezes or thaws a branch. A frozen branch is not trained, and works as in evaluation even in training:
    /// running statistics, which stay as they are, and no dropout.
    pub fn freeze(&mut self, branch: usize, frozen: bool) -> Result<()> {
        self.check_branch(branch)?;
        self.frozen[branch] = frozen;
        Ok(())
    }

    /// Whether a branch is frozen.
    pub fn is_frozen(&self, branch: usize) -> bool {
        self.frozen.get(branch).copied().unwrap_or(false)
    }

    pub(crate) fn check_branch(&self, branch: usize) -> Result<()> {
        check_setting(branch < self.frozen.len(), "the branch", branch, "below the number of branches")
    }

    /// Takes over the first `branches` branches of another network: those of the stage before.
    pub fn copy_branches(&mut self, from: &Network, branches: usize) -> Result<()> {
        let mut loaded = self.values.clone();
        for b in 0..branches {
            self.check_branch(b)?;
            from.check_branch(b)?;
            let prefix = format!("branches.{b}.");
            for tensor in from.state().iter().filter(|t| t.name.starts_with(&prefix)) {
                loaded.store(tensor)?;
            }
        }
        self.values = loaded;
        Ok(())
    }

    /// Adds a number to the logit of each class.
    ///
    /// # Errors
    /// Not one number for each class.
    pub fn shift_logits(&mut self, by: &[f32]) -> Result<()> {
        check_length("list of numbers", by.len(), self.architecture.classes)?;
        let bias = self.state().into_iter().find(|tensor| tensor.name == "head.bias");
        let shifted: Vec<f32> =
            bias.map_or_else(Vec::new, |bias| bias.values.iter().zip(by).map(|(a, b)| a + b).collect());
        let (name, shape) = ("head.bias", [shifted.len()]);
        self.values.store(&Tensor { name, shape: &shape, values: &shifted })
    }

    pub(crate) fn check_inputs(&self, inputs: &Inputs<'_>) -> Result<()> {
        let arch = &self.architecture;
        check_length("list of inputs", inputs.as_slice().len(), arch.inputs.len())?;
        for (b, (input, &columns)) in inputs.as_slice().iter().zip(&arch.inputs).enumerate() {
            check_length(format_args!("row of input {b}"), input.columns(), columns)?;
        }
        Ok(())
    }

    /// Scratch memory for a block of rows of this network.
    pub(crate) fn scratch(&self) -> Lent<'_, Scratch> {
        self.scratch.lend(|| Scratch::new(self))
    }

    /// A trace of a block of rows of this network.
    pub(crate) fn trace(&self) -> Lent<'_, Trace> {
        self.traces.lend(|| Trace::new(self))
    }

    /// The values of the trained parameters out of a list over all parameters.
    pub(crate) fn select_trained<T: Copy>(&self, all: Vec<T>) -> Vec<T> {
        match &self.trained()[..] {
            [range] if range.len() == all.len() => all,
            ranges => ranges.iter().flat_map(|range| &all[range.clone()]).copied().collect(),
        }
    }
}
