//! Optimisers, as PyTorch defines them. Weight decay is added to the gradient.

mod adam;

use std::ops::Range;

pub use adam::Adam;

use crate::error::Result;

/// An optimiser with its state. A fresh one starts each stage.
#[derive(Debug, Clone)]
pub struct Optimiser {
    adam: Adam,
    steps: u64,
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Optimiser {
    /// Adam.
    pub fn adam(settings: Adam) -> Result<Self> {
        settings.check()?;
        Ok(Optimiser { adam: settings, steps: 0, first: vec![], second: vec![] })
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
            let (first, second) = (&mut self.first[part.clone()], &mut self.second[part.clone()]);
            let parameters = &mut parameters[range.clone()];
            self.adam.step(self.steps, parameters, &gradient[part.clone()], first, second);
            at = part.end;
        }
    }
}
