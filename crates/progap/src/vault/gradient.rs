//! Sums of clipped gradients over Poisson-sampled batches of records, with Gaussian noise.

use progap_graph::Part;
use progap_nn::{Batch, Network, clipped_sum, sample_chunk_rows};
use progap_privacy::Event;
use progap_privacy::noise::{GradientGrid, PoissonSample, Summation};

use super::{Vault, batch_of};
use crate::Result;
use crate::plan::Plan;
use crate::query::Query;
use crate::ranks::{Cut, Travelled};
use crate::rows::Aggregates;

/// The query, for its event.
pub(crate) fn gradient_sum(event: Event) -> Query {
    Query::new("gradient", "noisy sum of clipped gradients", event)
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
        // Which records join must be known before the sum is; the noise is drawn for the sum.
        let mut stream = self.randomness.purpose(&batch_of(query))?.stream();
        let sample = match self.sample.take().filter(|sample| sample.rate() == plan.rate) {
            Some(sample) => sample,
            None => PoissonSample::new(plan.rate)?,
        };
        let batch = sample.choose(&mut stream, &self.train);
        self.sample = Some(sample);
        let inputs = self.rows.inputs(aggregates)?;
        let sum = match &self.part {
            None => {
                let rows = Batch::new(&inputs, &self.rows.labels, &batch, self.rows.classes)?;
                clipped_sum(network, rows, self.settings.clip)?
            }
            Some(part) => {
                let cut = Cut::near(part, &batch, sample_chunk_rows(batch.len()));
                let rows = Travelled::new(part, &inputs, &self.rows.labels, &batch, &cut)?;
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
