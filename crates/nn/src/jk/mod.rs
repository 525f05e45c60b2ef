//! Jumping knowledge: how the outputs of the branches become one vector per row.
//!
//! A row's outputs lie side by side, so that concatenation is the identity and needs no code here. Every other
//! combination gives one vector of the hidden width and has no parameters. A new one is a file with a forward and a
//! backward pass, a variant of [`Jk`], and its arms below.

pub(crate) mod max;
pub(crate) mod mean;
pub(crate) mod sum;

/// How branches are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Jk {
    /// Side by side: the method's own.
    #[default]
    Cat,
    /// The sum.
    Sum,
    /// The mean.
    Mean,
    /// The maximum, column by column.
    Max,
}

/// The sizes of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub rows: usize,
    pub branches: usize,
    /// The hidden width, as stored.
    pub padded_width: usize,
}

/// The outputs of the branches, the gradient with respect to the combination, and where that with respect to the
/// outputs goes.
pub(crate) struct CombinationBackward<'s> {
    pub branches: &'s [f32],
    pub d_out: &'s [f32],
    pub d_branches: &'s mut [f32],
}

impl Jk {
    /// Combines the outputs of the branches.
    pub(crate) fn forward(self, sizes: Sizes, branches: &[f32], out: &mut [f32]) {
        match self {
            Jk::Cat => unreachable!("concatenation needs no code"),
            Jk::Sum => sum::forward(sizes, 1.0, branches, out),
            Jk::Mean => mean::forward(sizes, branches, out),
            Jk::Max => max::forward(sizes, branches, out),
        }
    }

    /// Backward, after [`Jk::forward`] of the same rows.
    pub(crate) fn backward(self, sizes: Sizes, pass: CombinationBackward<'_>) {
        match self {
            Jk::Cat => unreachable!("concatenation needs no code"),
            Jk::Sum => sum::backward(sizes, 1.0, pass.d_out, pass.d_branches),
            Jk::Mean => mean::backward(sizes, pass.d_out, pass.d_branches),
            Jk::Max => max::backward(sizes, pass),
        }
    }
}
