//! Stochastic gradient descent with momentum `μ`: `m ← μ m + g` (`m = g` at the first step), `p ← p - rate m`.

use super::check_rates;
use crate::error::{Result, check_setting};

/// The settings of stochastic gradient descent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sgd {
    /// The learning rate.
    pub rate: f32,
    /// How much of the last step is kept.
    pub momentum: f32,
    /// Times the parameter, added to its gradient.
    pub weight_decay: f32,
}

impl Default for Sgd {
    fn default() -> Self {
        Sgd { rate: 0.01, momentum: 0.0, weight_decay: 0.0 }
    }
}

impl Sgd {
    pub(super) fn check(&self) -> Result<()> {
        check_rates(self.rate, self.weight_decay)?;
        check_setting(
            (0.0..1.0).contains(&self.momentum),
            "the momentum",
            self.momentum,
            "at least 0 and below 1",
        )
    }

    pub(super) fn step(&self, step: u64, parameters: &mut [f32], gradient: &[f32], m: &mut [f32]) {
        for ((p, &g), m) in parameters.iter_mut().zip(gradient).zip(m) {
            let g = g + self.weight_decay * *p;
            *m = if step == 1 { g } else { self.momentum * *m + g };
            *p -= self.rate * *m;
        }
    }
}
