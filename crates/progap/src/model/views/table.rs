//! A model of a table: a softmax over its columns, and trees that add to its logits.
//!
//! ```text
//! log p(y | x) = base(x) + trees(x) - log of the sum over the classes
//! ```

use progap_nn::{Inputs, RowScaling, Softmax, SoftmaxShape, Tensor, Trees};

use crate::files::Tensors;
use crate::method::history::TableForm;
use crate::{Error, Result};

/// The widest hidden layer of the softmax.
pub const MAX_HIDDEN: usize = 64;

/// A softmax, linear or with a hidden layer, and trees beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct TableModel {
    /// It reads the first of the inputs, as many as its shape has.
    pub base: Softmax,
    /// They read all of them.
    pub trees: Option<Trees>,
}

impl TableModel {
    pub fn new(base: Softmax) -> TableModel {
        TableModel { base, trees: None }
    }

    pub fn form(&self) -> TableForm {
        match (self.base.shape().hidden > 0, self.trees.is_some()) {
            (false, false) => TableForm::Linear,
            (true, false) => TableForm::Perceptron,
            (false, true) => TableForm::LinearWithTrees,
            (true, true) => TableForm::PerceptronWithTrees,
        }
    }

    /// The logits of some rows.
    pub fn logits(&self, inputs: &Inputs<'_>, rows: &[u32]) -> Result<Vec<f32>> {
        let all = inputs.as_slice();
        let read = self.base.shape().inputs.len();
        let first = all.get(..read).ok_or(Error::internal("the inputs are not those of the model"))?;
        let mut logits = self.base.logits(&Inputs::checked_before(first.to_vec())?, rows)?;
        if let Some(trees) = &self.trees {
            trees.add_logits(inputs, rows, &mut logits)?;
        }
        Ok(logits)
    }

    /// Whether it reads more inputs than this many.
    pub fn reads_beyond(&self, inputs: &[usize]) -> bool {
        let columns: usize = inputs.iter().sum();
        self.base.shape().inputs.len() > inputs.len()
            || self.trees.as_ref().is_some_and(|trees| trees.columns() > columns)
    }

    /// Every logit times a factor.
    pub fn scale_logits(&mut self, factor: f32) {
        self.base.scale_logits(factor);
        if let Some(trees) = &mut self.trees {
            trees.scale_logits(factor);
        }
    }

    pub fn is_finite(&self) -> bool {
        // Trees are checked when they are read, and made of finite steps.
        let finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
        self.base.state().iter().all(|(_, _, values)| finite(values))
            && self
                .trees
                .as_ref()
                .is_none_or(|trees| trees.state().iter().all(|(_, _, values)| finite(values)))
    }

    pub fn add_to(&self, tensors: &mut Tensors, prefix: &str) {
        let mut add = |name: String, shape: Vec<usize>, values: &[f32]| {
            tensors.values.insert(format!("{prefix}.{name}"), (shape, values.to_vec()));
        };
        for (name, shape, values) in self.base.state() {
            add(name.into(), shape, values);
        }
        for (name, shape, values) in self.trees.iter().flat_map(Trees::state) {
            add(format!("trees.{name}"), shape, &values);
        }
    }

    /// A model with the tensors under a name: whether it has a hidden layer and trees, and which of the inputs its
    /// softmax reads, follows from what is there. `inputs` are the columns of those that it reads at least, and of
    /// those that it may read.
    pub fn from(
        tensors: &[Tensor<'_>],
        part: &str,
        (least, all): (&[usize], &[usize]),
        classes: usize,
        scaling: RowScaling,
    ) -> Result<TableModel> {
        let own: Vec<Tensor<'_>> = tensors
            .iter()
            .filter_map(|tensor| {
                let name = tensor.name.strip_prefix(part)?.strip_prefix('.')?;
                Some(Tensor { name, ..*tensor })
            })
            .collect();
        let changed = || Error::unsuitable("its tensors do not have the shapes that its description gives");
        let find = |name: &str| own.iter().find(|tensor| tensor.name == name);
        let rows = find("weight").and_then(|tensor| tensor.shape.first().copied()).ok_or_else(changed)?;
        let inputs = if rows == all.iter().sum::<usize>() { all } else { least };
        let hidden = find("hidden.bias").map_or(0, |tensor| tensor.values.len());
        if hidden > MAX_HIDDEN {
            return Err(changed());
        }
        let shape = SoftmaxShape { inputs: inputs.to_vec(), hidden, classes, scaling };
        let (trees, base): (Vec<Tensor<'_>>, Vec<Tensor<'_>>) =
            own.iter().copied().partition(|tensor| tensor.name.starts_with("trees."));
        let base = Softmax::from_state(shape, base)?;
        let trees = match trees.is_empty() {
            true => None,
            false => {
                let plain = trees.iter().map(|t| Tensor { name: &t.name["trees.".len()..], ..*t });
                Some(Trees::from_state(all.iter().sum(), classes, plain)?)
            }
        };
        Ok(TableModel { base, trees })
    }
}
