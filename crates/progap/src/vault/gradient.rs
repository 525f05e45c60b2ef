//! Sums of clipped gradients over Poisson-sampled batches of records, with Gaussian noise.

use progap_graph::Part;
use progap_nn::{Batch, Network, clipped_sum};
use progap_privacy::Event;
use progap_privacy::noise::{GradientGrid, PoissonSample, Summation};

use super::{Vault, batch_of};
use crate::plan::Plan;
use crate::query::Query;
use crate::rows::Aggregates;
use crate::{Error, Result};

/// The name of the query.
pub(crate) const GRADIENT: &str = "gradient";

/// The query, for its event.
pub(crate) fn gradient_sum(event: Event) -> Query {
    Query::new(GRADIENT, "noisy sum of clipped gradients", event)
}

impl Vault {
    /// One noisy gradient: each training node joins the batch with probability `plan.rate`, its gradient is clipped, and
    /// noise is added to the sum. Divided by the expected size of the batch.
    ///
    /// # Proof definition
    /// For every network without batch normalisation, and aggregates that left this vault before, the result is
    /// post-processing of a Poisson-sampled Gaussian mechanism with multiplier `plan.gradient_multiplier`, with respect to
    /// the record of a node (docs/privacy.md#gradient-sums).
    pub fn gradient(
        &mut self,
        query: &str,
        network: &Network,
        aggregates: &Aggregates,
        grid: &GradientGrid,
        plan: &Plan,
    ) -> Result<Vec<f32>> {
        if self.sample.as_ref().is_none_or(|sample| sample.rate() != plan.rate) {
            self.sample = Some(PoissonSample::new(plan.rate)?);
        }
        let sample = self.sample.as_ref().ok_or(Error::Internal("there is a sample"))?;
        let (randomness, train) = (&mut self.randomness, &self.train);
        // Which records join must be known before the sum is; the noise is drawn for the sum.
        let mut draw = |query: &str| -> Result<Vec<u32>> {
            Ok(sample.choose(&mut randomness.purpose(&batch_of(query))?.stream(), train))
        };
        let inputs = self.rows.inputs(aggregates)?;
        let sum = match &self.part {
            None => {
                let batch = draw(query)?;
                let rows = Batch::new(&inputs, &self.rows.labels, &batch, self.rows.classes)?;
                clipped_sum(network, rows, self.settings.clip)?
            }
            Some(part) => {
                let rows = self.ahead.next(part, (&inputs, &self.rows.labels), query, draw)?;
                let inputs = rows.inputs()?;
                clipped_sum(network, rows.batch(part, &inputs, self.rows.classes)?, self.settings.clip)?
            }
        };
        self.draw(sum.len(), plan)?;
        let noisy = grid.privatise(&sum, self.randomness.query(query)?)?;
        self.record(gradient_sum(grid.event().poisson_sampled(plan.rate)?));
        let expected = self.settings.batch_size as f64;
        Ok(noisy.value().iter().map(|g| (g / expected) as f32).collect())
    }

    /// Says which gradients are asked for next, in this order and with the same aggregates, before anything is forgotten. Where rows lie in
    /// several ranks, those of many steps then travel at once.
    pub(crate) fn expect_gradients(&mut self, queries: impl IntoIterator<Item = String>) {
        if self.part.is_some() {
            self.ahead.expect(queries);
        }
    }

    /// The grid for [`Vault::gradient`] with up to this many parameters.
    pub fn gradient_grid(&self, parameters: usize, plan: &Plan) -> Result<GradientGrid> {
        let terms = self.count(Part::Train) as u64;
        Ok(GradientGrid::new(
            self.settings.clip,
            parameters,
            plan.gradient_multiplier,
            Summation::sequential(terms),
        )?)
    }
}
