//! One file per layer: its maths first, then its forward and backward pass over a block of rows.

pub(crate) mod activation;
pub(crate) mod batch_norm;
pub(crate) mod dropout;
pub(crate) mod group_norm;
pub(crate) mod l2_normalise;
pub(crate) mod linear;
pub(crate) mod sparse_linear;

pub use activation::Activation;

/// What follows the activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Norm {
    /// Nothing.
    #[default]
    None,
    /// Each column over the batch (see the file `layer/batch_norm.rs`).
    Batch,
    /// Each row over its columns (see the file `layer/group_norm.rs`).
    Group,
}
