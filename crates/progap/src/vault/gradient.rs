//! Sums of clipped gradients over Poisson-sampled batches of records, with Gaussian noise.

use progap_graph::Part;
use progap_nn::{Batch, Network, clipped_sum};
use progap_privacy::Event;

use super::noise::{GridSpec, multiplier, not_planned};
use super::{Asked, Noise, Private, VaultQuery, batch_of};
use crate::Result;
use crate::query::Query;
use crate::rows::Aggregates;

/// The name of the query.
pub(crate) const GRADIENT: &str = "gradient";

/// The query, for its event.
pub(crate) fn gradient_sum(event: Event) -> Query {
    Query::new(GRADIENT, "noisy sum of clipped gradients", event)
}

/// A noisy gradient: each training node joins the batch with the probability of the plan's query, its gradient is
/// clipped, and noise is added to the sum. Divided by the expected size of the batch.
///
/// # Proof definition
/// For every network without batch normalisation, and aggregates that left this vault before, the result is
/// post-processing of a Poisson-sampled Gaussian mechanism with the multiplier of the plan's query, with respect to
/// the record of a node ([proof](progap_privacy::proofs::gradient_sums)).
#[derive(Debug, Clone, Copy)]
pub struct Gradient<'a> {
    /// The name of its batch and its noise, which no other query has.
    pub label: &'a str,
    /// The network.
    pub network: &'a Network,
    /// The most parameters that networks of the run have: one table of noise serves them all.
    pub max_parameters: usize,
    /// What the network reads besides rows.
    pub aggregates: &'a Aggregates,
}

impl VaultQuery for Gradient<'_> {
    type Answer = Vec<f32>;

    fn spec(&self, private: &Private) -> Result<Asked> {
        let (clip, batch_size) = (private.settings.clip, private.settings.batch_size);
        let rate = batch_size as f64 / private.count(Part::Train) as f64;
        let step = Event::gaussian(clip, clip)?.poisson_sampled(rate)?;
        Ok(Asked::new(gradient_sum(step), self.network.trained_count()))
    }

    fn evaluate(self, private: &Private, noise: &mut Noise) -> Result<Vec<f32>> {
        let Gradient { label, network, max_parameters, aggregates } = self;
        let (rate, multiplier) = match noise.event() {
            Event::PoissonSampled { rate, event } => match **event {
                Event::Gaussian { sigma, sensitivity } => (*rate, multiplier(sigma, sensitivity)),
                _ => return Err(not_planned()),
            },
            _ => return Err(not_planned()),
        };
        let (clip, classes) = (private.settings.clip, private.rows.classes);
        let (sample, randomness, ahead) = noise.poisson(rate)?;
        // Which records join must be known before the sum is; the noise is drawn for the sum.
        let mut draw = |label: &str| -> Result<Vec<u32>> {
            Ok(sample.choose(&mut randomness.purpose(&batch_of(label))?.stream(), &private.train))
        };
        let (inputs, labels) = (private.rows.inputs(aggregates)?, &private.rows.labels);
        let sum = match &private.part {
            None => clipped_sum(network, Batch::new(&inputs, labels, &draw(label)?, classes)?, clip)?,
            Some(part) => {
                let rows = ahead.next(part, (&inputs, labels), label, draw)?;
                clipped_sum(network, rows.batch(part, &rows.inputs()?, classes)?, clip)?
            }
        };
        let terms = private.count(Part::Train) as u64;
        let grid = GridSpec { clip, parameters: max_parameters, multiplier, terms };
        let noisy = noise.privatise(&sum, grid, label)?;
        let expected = private.settings.batch_size as f64;
        Ok(noisy.iter().map(|g| (g / expected) as f32).collect())
    }
}
