//! Sums of clipped gradients over batches of nodes with their senders, with Gaussian noise.

use std::num::NonZeroU64;

use progap_nn::{Batch, Neighbours, Sage, sage_clipped_sum};
use progap_privacy::Event;
use progap_privacy::noise::{GradientGrid, Source, Stream, Summation};

use super::{Vault, batch_of};
use crate::Result;
use crate::plan::Plan;
use crate::query::Query;

/// The name of the query.
pub(crate) const SUBGRAPH_GRADIENT: &str = "subgraph gradient";

/// The query, for its event, where a record touches up to this many terms.
pub(crate) fn subgraph_sum(event: Event, max_terms: u64) -> Query {
    let purpose = format!(
        "noisy sum of clipped gradients over nodes with their senders, of which a record touches up to {max_terms}"
    );
    Query::new(SUBGRAPH_GRADIENT, purpose, event)
}

impl Vault {
    /// One noisy gradient over a batch of training nodes, drawn uniformly without replacement, each with its senders;
    /// every sender kept at most `settings.max_degree` of its edges when the vault was locked. Divided by the size of the
    /// batch.
    ///
    /// # Proof definition
    /// For every model without batch normalisation, whose parameters left this vault before, the result is post-processing
    /// of a noisy sum of which a record touches at most `plan.max_terms` terms, each moved by at most the grid's
    /// sensitivity, with multiplier `plan.gradient_multiplier` (docs/privacy.md#subgraph-batches). The batch does not depend on
    /// the data. Where it holds no touched term the sums are equal to the last bit; where it holds `I` of them,
    /// `I` times twice the clip and one rounding to the grid are at most `I` times the grid's sensitivity.
    pub fn subgraph_gradient(
        &mut self,
        query: &str,
        sage: &Sage,
        grid: &GradientGrid,
        plan: &Plan,
    ) -> Result<Vec<f32>> {
        let mut stream = self.randomness.purpose(&batch_of(query))?.stream();
        let size = self.settings.batch_size.min(self.train.len());
        let batch = without_replacement(&mut stream, &mut self.train, size);
        let inputs = self.rows.own()?;
        let rows = Batch::new(&inputs, &self.rows.labels, &batch, self.rows.classes)?;
        let senders = Neighbours::new(self.graph.nodes(), self.graph.offsets(), self.graph.senders())?;
        let sum = sage_clipped_sum(sage, rows, senders, self.settings.clip)?;
        self.draw(sum.len(), plan)?;
        let noisy = grid.privatise(&sum, self.randomness.query(query)?)?;
        let (population, drawn) = (self.train.len() as u64, size as u64);
        let event = Event::sampled_without_replacement(
            population,
            drawn,
            plan.max_terms,
            grid.noise(),
            grid.sensitivity(),
        )?;
        self.record(subgraph_sum(event, plan.max_terms));
        Ok(noisy.value().iter().map(|g| (g / size as f64) as f32).collect())
    }

    /// The grid for [`Vault::subgraph_gradient`] with this many parameters: a touched term moves from one clipped gradient to any
    /// other.
    pub fn subgraph_grid(&self, parameters: usize, plan: &Plan) -> Result<GradientGrid> {
        let terms = Summation::sequential(self.settings.batch_size as u64);
        Ok(GradientGrid::new(2.0 * self.settings.clip, parameters, plan.gradient_multiplier, terms)?)
    }
}

/// The first items of a random order, in time that follows their number: items are swapped to the front one by one, and back
/// again.
fn without_replacement<S: Source>(stream: &mut Stream<S>, items: &mut [u32], size: usize) -> Vec<u32> {
    let mut swapped = Vec::with_capacity(size);
    for at in 0..size {
        let left = NonZeroU64::new((items.len() - at) as u64).expect("at is below the length");
        let other = at + stream.below(left) as usize;
        items.swap(at, other);
        swapped.push(other);
    }
    let chosen = items[..size].to_vec();
    for (at, other) in swapped.into_iter().enumerate().rev() {
        items.swap(at, other);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use progap_privacy::noise::Randomness;

    use super::*;

    /// Every item is drawn as often as any other, never twice, and the list is left as it was. Counts are within five standard
    /// deviations: a false alarm once in 10^5 runs.
    #[test]
    fn a_draw_leaves_the_list_as_it_was() {
        let items: Vec<u32> = (0..50).map(|i| 3 * i).collect();
        let (mut list, mut counts) = (items.clone(), vec![0_u32; 150]);
        let mut stream = Randomness::from_seed(3).purpose("draws").unwrap().stream();
        let (draws, size) = (20_000, 7);
        for _ in 0..draws {
            let mut chosen = without_replacement(&mut stream, &mut list, size);
            assert_eq!(list, items);
            chosen.iter().for_each(|&item| counts[item as usize] += 1);
            chosen.sort_unstable();
            assert!(chosen.len() == size && chosen.is_sorted_by(|a, b| a < b));
        }
        let (mean, p) = (f64::from(draws) * 0.14, 0.14);
        for &item in &items {
            let away = (f64::from(counts[item as usize]) - mean) / (mean * (1.0 - p)).sqrt();
            assert!(away.abs() < 5.0, "{item}: {away}");
        }
        assert_eq!(without_replacement(&mut stream, &mut list, 50).len(), 50);
    }
}
