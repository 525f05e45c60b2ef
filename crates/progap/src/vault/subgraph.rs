//! Sums of clipped gradients over batches of nodes with their senders, with Gaussian noise.

use std::num::NonZeroU64;

use progap_nn::{Batch, Neighbours, Sage, sage_clipped_sum};
use progap_privacy::Event;
use progap_privacy::noise::{Source, Stream};

use super::noise::{GridSpec, multiplier, not_planned};
use super::{Asked, Noise, Private, VaultQuery, batch_of};
use crate::Result;
use crate::plan::{max_terms, term_sensitivity};
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

/// A noisy gradient over a batch of training nodes, drawn uniformly without replacement, each with its senders;
/// every sender kept at most `settings.max_degree` of its edges when the vault was locked. Divided by the size of the
/// batch.
///
/// # Proof definition
/// For every model without batch normalisation, whose parameters left this vault before, the result is post-processing
/// of a noisy sum of which a record touches at most `max_terms` terms, each moved by at most the grid's sensitivity,
/// with the multiplier of the plan's query ([proof](progap_privacy::proofs::subgraph_batches)). The batch does not
/// depend on the data. Where it holds no touched term the sums are equal to the last bit; where it holds `I` of them,
/// `I` times twice the clip and one rounding to the grid are at most `I` times the grid's sensitivity.
#[derive(Debug, Clone, Copy)]
pub struct SubgraphGradient<'a> {
    /// The name of its batch and its noise, which no other query has.
    pub label: &'a str,
    /// The model.
    pub sage: &'a Sage,
}

impl VaultQuery for SubgraphGradient<'_> {
    type Answer = Vec<f32>;

    fn spec(&self, private: &Private) -> Result<Asked> {
        let (settings, train) = (&private.settings, private.train.len());
        let (terms, moved) = (max_terms(settings, train), term_sensitivity(settings));
        let size = settings.batch_size.min(train) as u64;
        let step = Event::sampled_without_replacement(train as u64, size, terms, moved, moved)?;
        Ok(Asked::new(subgraph_sum(step, terms), self.sage.parameter_count()))
    }

    fn evaluate(self, private: &Private, noise: &mut Noise) -> Result<Vec<f32>> {
        let SubgraphGradient { label, sage } = self;
        let Event::SampledWithoutReplacement { batch_size, sigma, term_sensitivity, .. } = *noise.event()
        else {
            return Err(not_planned());
        };
        let size = batch_size as usize;
        let mut stream = noise.purpose(&batch_of(label))?.stream();
        if noise.population.is_empty() {
            noise.population.clone_from(&private.train);
        }
        let batch = without_replacement(&mut stream, &mut noise.population, size);
        let inputs = private.rows.own()?;
        let rows = Batch::new(&inputs, &private.rows.labels, &batch, private.rows.classes)?;
        let graph = &private.graph;
        let senders = Neighbours::new(graph.nodes(), graph.offsets(), graph.senders())?;
        let sum = sage_clipped_sum(sage, rows, senders, private.settings.clip)?;
        let grid = GridSpec {
            clip: 2.0 * private.settings.clip,
            parameters: sage.parameter_count(),
            multiplier: multiplier(sigma, term_sensitivity),
            terms: private.settings.batch_size as u64,
        };
        let noisy = noise.privatise(&sum, grid, label)?;
        Ok(noisy.iter().map(|g| (g / size as f64) as f32).collect())
    }
}

/// The first items of a random order, in time that follows their number: items are swapped to the front one by one, and
/// back again.
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

    /// Every item is drawn as often as any other, never twice, and the list is left as it was. Counts are within five
    /// standard deviations: a false alarm once in 10^5 runs.
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
