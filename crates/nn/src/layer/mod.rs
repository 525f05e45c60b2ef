//! One file per layer: its maths first, then its forward and backward pass over a block of rows.

pub(crate) mod activation;
pub(crate) mod batch_norm;
pub(crate) mod dropout;
pub(crate) mod group_norm;
pub(crate) mod l2_normalise;
pub(crate) mod linear;
pub(crate) mod norm;
pub(crate) mod sparse_linear;

pub use activation::Activation;
pub use norm::Norm;
