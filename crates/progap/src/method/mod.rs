//! The methods. Each sees a vault and what left it, never private data.

pub mod progap;

use std::ops::ControlFlow;

/// How far training is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The stage, from 0.
    pub stage: usize,
    /// The last stage.
    pub stages: usize,
    /// Epochs done in this stage.
    pub epoch: usize,
    /// Epochs in each stage.
    pub epochs: usize,
    /// The mean loss over the training nodes, where it is known.
    pub loss: Option<f64>,
    /// The accuracy on the training nodes, where it is known.
    pub train_accuracy: Option<f64>,
    /// The accuracy on the validation nodes.
    pub val_accuracy: f64,
}

/// Watches training, and can stop it: what is done so far is kept.
pub trait Observer {
    /// After each epoch.
    fn epoch(&mut self, progress: &Progress) -> ControlFlow<()>;
}

/// Nobody watches.
impl Observer for () {
    fn epoch(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(&Progress) -> ControlFlow<()>> Observer for F {
    fn epoch(&mut self, progress: &Progress) -> ControlFlow<()> {
        self(progress)
    }
}
