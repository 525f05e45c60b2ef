//! Networks over rows: layers with explicit forward and backward passes, per-sample clipping, optimisers.
//!
//! This crate knows layers, losses, gradients, their clipping, and optimisers. It must never know graphs, files or
//! privacy budgets.
//!
//! A [`Network`] is a set of branches over inputs of their own, combined, normalised and classified: the stages of the
//! method, its relatives and plain multi-layer perceptrons are all of this shape. Rows are worked on in small blocks
//! that stay in cache, and in chunks that do not depend on the number of threads: the same seed gives the same bits on
//! any number of them. Nothing is ever stored for all rows but what a caller asks for.
//!
//! - full batches: [`epoch`], [`gradient`]
//! - private training: [`clipped_sum`], then [`apply`]
//! - multinomial logistic regression, fitted to its optimum: [`Design::fit`]
//! - boosted trees over tables: [`cross_fitted`]
//! - evaluation: [`accuracy`], [`logits`], [`probabilities`], [`embed`]
//!
//! A [`Sage`] also reads its rows' neighbours, through [`Propagate`]: [`sage_epoch`], [`sage_clipped_sum`].
#![forbid(unsafe_code)]

mod aligned;
mod error;
mod input;
mod jk;
mod kernel;
mod layer;
mod layout;
mod loss;
mod network;
mod optim;
mod packed;
mod pass;
mod pool;
mod reading;
mod sage;
mod softmax;
mod train;
mod trees;
mod values;

pub use error::{Error, Result};
pub use input::{Batch, Input, Inputs, Targets};
pub use jk::Jk;
pub use layer::{Activation, Norm};
pub use network::{Architecture, Network, NormPlacement, Tensor};
pub use optim::{Adam, Optimiser};
pub use packed::Packed;
pub use reading::set_read_listener;
pub use sage::{
    Neighbours, Propagate, Sage, SageArchitecture, SageGradient, sage_clipped_sum, sage_epoch, sage_gradient,
    sage_sample_norms,
};
pub use softmax::{
    Design, Evidence, RowScaling, Softmax, SoftmaxShape, Start, Task, best_temperature, cross_entropy,
    log_losses, shrunk_temperature,
};
pub use train::clipped::{clipped_sum, sample_norms};
pub use train::collective::{Collective, DistributedBatch};
pub use train::evaluate::{accuracy, embed, embed_rows, logits, probabilities};
pub use train::full_batch::{Gradient, epoch, gradient};
pub use train::{EpochStats, apply, chunk_rows, sample_chunk_rows};
pub use trees::{Boosting, CrossFitted, Table, Trees, cross_fitted};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
