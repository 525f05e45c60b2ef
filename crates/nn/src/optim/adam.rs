//! Adam: `m ← β₁ m + (1-β₁) g`, `v ← β₂ v + (1-β₂) g²`, and with `t` the step
//! `p ← p - (rate / (1-β₁ᵗ)) m / (sqrt(v / (1-β₂ᵗ)) + ε)`.

use crate::error::{Result, check_setting};

/// The settings of Adam.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adam {
    /// The learning rate.
    pub rate: f32,
    /// How slowly the mean and the mean square move.
    pub betas: (f32, f32),
    /// A small number that keeps the quotient finite.
    pub epsilon: f32,
    /// Times the parameter, added to its gradient.
    pub weight_decay: f32,
}

impl Default for Adam {
    fn default() -> Self {
        Adam { rate: 0.01, betas: (0.9, 0.999), epsilon: 1e-8, weight_decay: 0.0 }
    }
}

impl Adam {
    pub(super) fn check(&self) -> Result<()> {
        let ok = |value: f32| value.is_finite() && value >= 0.0;
        check_setting(ok(self.rate), "the learning rate", self.rate, "a finite number, at least 0")?;
        let decay = self.weight_decay;
        check_setting(ok(decay), "the weight decay", decay, "a finite number, at least 0")?;
        for beta in [self.betas.0, self.betas.1] {
            check_setting((0.0..1.0).contains(&beta), "a beta of Adam", beta, "at least 0 and below 1")?;
        }
        let ok = self.epsilon.is_finite() && self.epsilon > 0.0;
        check_setting(ok, "the epsilon of Adam", self.epsilon, "a finite number above 0")
    }

    pub(super) fn step(
        &self,
        step: u64,
        parameters: &mut [f32],
        gradient: &[f32],
        m: &mut [f32],
        v: &mut [f32],
    ) {
        let (beta1, beta2) = self.betas;
        let correction = |beta: f32| 1.0 - f64::from(beta).powf(step as f64);
        let rate = (f64::from(self.rate) / correction(beta1)) as f32;
        let root = correction(beta2).sqrt() as f32;
        for (((p, &g), m), v) in parameters.iter_mut().zip(gradient).zip(m).zip(v) {
            let g = g + self.weight_decay * *p;
            *m += (1.0 - beta1) * (g - *m);
            *v = beta2 * *v + (1.0 - beta2) * g * g;
            *p -= rate * *m / (v.sqrt() / root + self.epsilon);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_has_the_size_of_the_rate() {
        let mut p = [1.0, -1.0];
        Adam::default().step(1, &mut p, &[3.0, -0.001], &mut [0.0; 2], &mut [0.0; 2]);
        assert!((p[0] - 0.99).abs() < 1e-5 && (p[1] + 0.99).abs() < 1e-5, "{p:?}");
    }

    #[test]
    fn impossible_settings_are_refused() {
        for bad in [
            Adam { rate: f32::NAN, ..Adam::default() },
            Adam { rate: -0.1, ..Adam::default() },
            Adam { betas: (1.0, 0.9), ..Adam::default() },
            Adam { epsilon: 0.0, ..Adam::default() },
            Adam { weight_decay: -1.0, ..Adam::default() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
