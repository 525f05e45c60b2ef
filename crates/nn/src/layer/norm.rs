//! Norms: `y = γ x + β` of standardised values `x`, one file a norm; here stands what all norms have in common.
//!
//! A new norm is a file with a forward and a backward pass, a variant of [`Norm`], and its arms below.

use crate::layer::{batch_norm, group_norm};

/// Which norm follows the activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Norm {
    /// None.
    #[default]
    None,
    /// Batch normalisation: each column over the rows of the batch.
    Batch,
    /// Group normalisation with one group: each row over its columns. Rows stay independent of each other, as
    /// per-sample gradients need.
    Group,
}

impl Norm {
    /// Whether the rows of a batch are normalised together: its backward pass needs sums over the whole batch.
    pub(crate) fn mixes_rows(self) -> bool {
        self == Norm::Batch
    }
}

/// A norm with its parameters and statistics, ready for a step; every list is padded to `columns`.
#[derive(Debug, Clone, Default)]
pub(crate) struct NormLayer {
    pub kind: Norm,
    /// The columns that are normalised, and those that are stored.
    pub width: usize,
    pub columns: usize,
    pub gamma: Vec<f32>,
    pub beta: Vec<f32>,
    /// Of batch normalisation: the mean and `1 / sqrt(v + ε)`.
    pub mean: Vec<f32>,
    pub inverse: Vec<f32>,
    /// Of batch normalisation: `dβ / n` and `dγ / n`, once they are known.
    pub mean_g: Vec<f32>,
    pub mean_gx: Vec<f32>,
}

impl NormLayer {
    /// Writes `y` for `rows` rows of `a`.
    pub fn forward(&self, rows: usize, a: &[f32], y: &mut [f32]) {
        match self.kind {
            Norm::None => y[..rows * self.columns].copy_from_slice(&a[..rows * self.columns]),
            Norm::Batch => batch_norm::forward(self, rows, a, y),
            Norm::Group => group_norm::forward(self, rows, a, y),
        }
    }

    /// Writes the gradient with respect to `a`, given that with respect to `y`. Of a norm within rows, each row's own
    /// gradient with respect to `γ` goes to `d_gamma`; that with respect to `β` is `g`.
    pub fn backward(&self, rows: usize, a: &[f32], g: &[f32], da: &mut [f32], d_gamma: &mut [f32]) {
        match self.kind {
            Norm::None => da[..rows * self.columns].copy_from_slice(&g[..rows * self.columns]),
            Norm::Batch => batch_norm::backward(self, rows, a, g, da),
            Norm::Group => group_norm::backward(self, rows, a, g, da, d_gamma),
        }
    }

    /// Of batch normalisation over `rows` rows: takes in `dγ` and `dβ`, which the backward pass needs.
    pub fn take_sums(&mut self, rows: f64, [d_gamma, d_beta]: [&[f64]; 2]) {
        let means = |sums: &[f64]| {
            let mut means: Vec<f32> = sums.iter().map(|sum| (sum / rows) as f32).collect();
            means.resize(self.columns, 0.0);
            means
        };
        (self.mean_gx, self.mean_g) = (means(d_gamma), means(d_beta));
    }

    /// The norm as one map for each column, where it is one: batch normalisation, and none.
    pub fn map(&self) -> ColumnMap {
        if self.kind != Norm::Batch {
            return ColumnMap { scale: vec![1.0; self.columns], shift: vec![0.0; self.columns] };
        }
        let scale: Vec<f64> =
            self.gamma.iter().zip(&self.inverse).map(|(&g, &i)| f64::from(g) * f64::from(i)).collect();
        let shift = scale.iter().zip(&self.mean).zip(&self.beta);
        let shift = shift.map(|((scale, &mean), &beta)| (f64::from(beta) - scale * f64::from(mean)) as f32);
        ColumnMap { shift: shift.collect(), scale: scale.iter().map(|&scale| scale as f32).collect() }
    }
}

/// `y = scale a + shift`, column by column.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnMap {
    pub scale: Vec<f32>,
    pub shift: Vec<f32>,
}
