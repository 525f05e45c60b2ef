//! The randomness of a vault, for the question that is being answered.

use std::num::NonZeroU32;

use progap_privacy::Event;
use progap_privacy::noise::{
    AnySource, GradientGrid, PoissonSample, Purpose, Query as NoiseQuery, Randomness, RoundedGaussian,
    Summation,
};

use crate::plan::Response;
use crate::query::Query;
use crate::ranks::Prefetch;
use crate::{Error, Result};

pub(super) fn not_planned() -> Error {
    Error::internal("the plan has other noise for this query")
}

/// The noise that is charged for a question, where its bits come from, and what is worth keeping between questions.
pub struct Noise {
    pub(super) randomness: Randomness<AnySource>,
    /// The queries of the question that is being answered, with the plan's noise.
    pub(super) charged: Vec<Query>,
    pub(super) response: Option<Response>,
    /// How the last batch was drawn: most often as the next is.
    sample: Option<PoissonSample>,
    /// The noise of the last aggregation: most often that of the next, too.
    table: Option<RoundedGaussian>,
    /// The grid of the last gradient, and what it was made for.
    grid: Option<(GridSpec, GradientGrid)>,
    /// The nodes that batches are drawn of without replacement.
    pub(super) population: Vec<u32>,
    /// Where nodes lie in several ranks, the steps whose batches were drawn.
    pub(super) ahead: Prefetch,
}

/// What a grid of gradients is made for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct GridSpec {
    pub clip: f64,
    pub parameters: usize,
    pub multiplier: f64,
    /// The most terms of a sum.
    pub terms: u64,
}

impl Noise {
    pub(super) fn new(randomness: Randomness<AnySource>, response: Option<Response>) -> Noise {
        Noise {
            randomness,
            charged: vec![],
            response,
            sample: None,
            table: None,
            grid: None,
            population: vec![],
            ahead: Prefetch::default(),
        }
    }

    /// The event that is charged for the question; of several, the first.
    pub(super) fn event(&self) -> &Event {
        self.charged.first().map_or(&Event::NonPrivate, |query| &query.event)
    }

    /// The deviation and the sensitivity of the Gaussian that is charged; nothing where everything is public.
    pub(super) fn gaussian(&self) -> Result<Option<(f64, f64)>> {
        match self.event() {
            Event::NonPrivate => Ok(None),
            Event::Gaussian { sigma, sensitivity } => Ok(Some((*sigma, *sensitivity))),
            _ => Err(not_planned()),
        }
    }

    /// The noise of a name that no other noise of this vault has.
    pub(super) fn query(&mut self, label: &str) -> Result<NoiseQuery<AnySource>> {
        Ok(self.randomness.query(label)?)
    }

    /// Bits of a name, for what is drawn before anything is known of the data.
    pub(super) fn purpose(&mut self, label: &str) -> Result<Purpose<AnySource>> {
        Ok(self.randomness.purpose(label)?)
    }

    /// The noise for messages at a scale; built anew only where it is another than before.
    pub(super) fn table(&mut self, noise: f64, scale: NonZeroU32) -> Result<&RoundedGaussian> {
        let before = self.table.take().filter(|table| table.is_for_messages(noise, scale));
        let table = match before {
            Some(table) => table,
            None => RoundedGaussian::for_messages(noise, scale)?,
        };
        Ok(self.table.insert(table))
    }

    /// Draws batches in which everyone is with this probability: the sample, the randomness, and what was drawn ahead.
    pub(super) fn poisson(
        &mut self,
        rate: f64,
    ) -> Result<(&PoissonSample, &mut Randomness<AnySource>, &mut Prefetch)> {
        let before = self.sample.take().filter(|sample| sample.rate() == rate);
        let sample = match before {
            Some(sample) => sample,
            None => PoissonSample::new(rate)?,
        };
        Ok((self.sample.insert(sample), &mut self.randomness, &mut self.ahead))
    }

    /// Adds the noise that is charged to a sum of clipped gradients, and charges the rounding that comes before it.
    pub(super) fn privatise(&mut self, sum: &[f64], spec: GridSpec, label: &str) -> Result<Vec<f64>> {
        let query = self.query(label)?;
        let before = self.grid.take().filter(|(made_for, _)| *made_for == spec);
        let grid = match before {
            Some((_, grid)) => grid,
            None => GradientGrid::new(
                spec.clip,
                spec.parameters,
                spec.multiplier,
                Summation::sequential(spec.terms),
            )?,
        };
        let noisy = grid.privatise(sum, query)?.into_parts().0;
        let charged = self.charged.first_mut().ok_or_else(not_planned)?;
        match &mut charged.event {
            Event::PoissonSampled { event, .. } => **event = grid.event(),
            Event::SampledWithoutReplacement { sigma, term_sensitivity, .. } => {
                (*sigma, *term_sensitivity) = (grid.noise(), grid.sensitivity());
            }
            _ => return Err(not_planned()),
        }
        self.grid = Some((spec, grid));
        Ok(noisy)
    }
}

/// Noise over sensitivity, never less than charged.
pub(super) fn multiplier(sigma: f64, sensitivity: f64) -> f64 {
    let multiplier = sigma / sensitivity;
    if multiplier * sensitivity < sigma { multiplier.next_up() } else { multiplier }
}
