//! Optimisers, as PyTorch defines them. Weight decay is added to the gradient.

mod adam;
mod sgd;

use std::ops::Range;

pub use adam::Adam;
pub use sgd::Sgd;

use crate::error::{Result, check_setting};

/// An optimiser with its state. A fresh one starts each stage.
#[derive(Debug, Clone)]
pub struct Optimiser {
    rule: Rule,
    steps: u64,
    first: Vec<f32>,
    second: Vec<f32>,
}

#[derive(Debug, Clone, Copy)]
enum Rule {
    Adam(Adam),
    Sgd(Sgd),
}

impl Optimiser {
    /// Adam.
    pub fn adam(settings: Adam) -> Result<Self> {
        settings.check()?;
        Ok(Self::new(Rule::Adam(settings)))
    }

    /// Stochastic gradient descent.
    pub fn sgd(settings: Sgd) -> Result<Self> {
        settings.check()?;
        Ok(Self::new(Rule::Sgd(settings)))
    }

    fn new(rule: Rule) -> Self {
        Optimiser { rule, steps: 0, first: vec![], second: vec![] }
    }

    /// The steps made so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The state: steps, and the running moments of the trained parameters (empty before the first step).
    pub fn state(&self) -> (u64, &[f32], &[f32]) {
        (self.steps, &self.first, &self.second)
    }

    /// Takes over a state that [`Optimiser::state`] gave.
    pub fn restore(&mut self, steps: u64, first: Vec<f32>, second: Vec<f32>) {
        (self.steps, self.first, self.second) = (steps, first, second);
    }

    /// Moves the parameters in the given ranges; `gradient` lists those alone.
    pub(crate) fn step(&mut self, parameters: &mut [f32], ranges: &[Range<usize>], gradient: &[f32]) {
        self.steps += 1;
        self.first.resize(gradient.len(), 0.0);
        self.second.resize(gradient.len(), 0.0);
        let mut at = 0;
        for range in ranges {
            let part = at..at + range.len();
            let (parameters, gradient) = (&mut parameters[range.clone()], &gradient[part.clone()]);
            let (first, second) = (&mut self.first[part.clone()], &mut self.second[part.clone()]);
            match self.rule {
                Rule::Adam(adam) => adam.step(self.steps, parameters, gradient, first, second),
                Rule::Sgd(sgd) => sgd.step(self.steps, parameters, gradient, first),
            }
            at = part.end;
        }
    }
}

fn check_rates(rate: f32, weight_decay: f32) -> Result<()> {
    let ok = |v: f32| v.is_finite() && v >= 0.0;
    check_setting(ok(rate), "the learning rate", rate, "a finite number, at least 0")?;
    check_setting(ok(weight_decay), "the weight decay", weight_decay, "a finite number, at least 0")
}
