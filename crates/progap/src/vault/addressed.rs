//! Sums of messages in which public numbers decide how much of a sender's influence each of its receivers gets.

use std::ops::Range;

use progap_graph::weighted;
use progap_privacy::Event;
use progap_privacy::noise::{NormBudget, PieceVisitor, Quantiser, SenderBound, choose_scale};

use super::aggregate::aggregation;
use super::noise::not_planned;
use super::streamed::{Panels, Streamable, Take, each_block};
use super::{Asked, Noise, Private, VaultQuery};
use crate::plan::sensitivity;
use crate::rows::{Aggregates, Message, blocks};
use crate::settings::Level;
use crate::{Error, Result};

/// How much of its senders' influence each node gets, in whole steps of one over [`ReceiverWeights::STEPS`]. Public:
/// made of the split and of what left the vault before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverWeights(Vec<u8>);

impl ReceiverWeights {
    /// The steps of a weight of one.
    pub const STEPS: u8 = 16;

    /// Weights from 0 to 1, each brought to the nearest step and to one step at least, so that every row has a noise.
    pub fn nearest(weights: impl IntoIterator<Item = f64>) -> ReceiverWeights {
        let most = f64::from(Self::STEPS);
        // The cast takes what is not a number to 0.
        ReceiverWeights(
            weights.into_iter().map(|w| ((w * most).round().clamp(1.0, most) as u8).max(1)).collect(),
        )
    }

    /// The weights in steps.
    pub(super) fn steps(&self) -> &[u8] {
        &self.0
    }

    /// The weights that occur, in steps, each once.
    pub(super) fn levels(&self) -> Vec<u8> {
        let occurs = |steps: &u8| self.0.contains(steps);
        (1..=Self::STEPS).filter(occurs).collect()
    }

    /// For a receiver of each node's weight, the mean over all nodes of what it gets of its edges with them where both
    /// ends share one unit of influence: a function of public numbers.
    pub(crate) fn mean_shares(&self) -> Vec<f32> {
        let mut counts = [0usize; Self::STEPS as usize + 1];
        self.0.iter().for_each(|&steps| counts[usize::from(steps)] += 1);
        let share = |own: usize| {
            let of = |(other, &count): (usize, &usize)| {
                count as f64 * own as f64 / ((own * own + other * other) as f64).sqrt()
            };
            counts.iter().enumerate().skip(1).map(of).sum::<f64>() / self.0.len().max(1) as f64
        };
        let shares: Vec<f32> = (0..counts.len()).map(|own| share(own) as f32).collect();
        self.0.iter().map(|&steps| shares[usize::from(steps)]).collect()
    }

    /// The weight of a node.
    pub fn of(&self, node: usize) -> f32 {
        f32::from(self.0[node]) / f32::from(Self::STEPS)
    }

    /// Rows of as many numbers, those of the nodes from `first` on, each with the weight of its node behind it.
    fn beside(&self, rows: &[f32], width: usize, first: usize) -> Vec<f32> {
        let width = width.max(1);
        let mut all = Vec::with_capacity(rows.len() / width * (width + 1));
        for (at, row) in rows.chunks_exact(width).enumerate() {
            all.extend_from_slice(row);
            all.push(self.of(first + at));
        }
        all
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One noisy aggregation in which receivers have weights: node `i` gets the sum of `w(v, i)` times what its senders `v`
/// say, with Gaussian noise of the same size in every row, where `w(v, i) = C u_i / sqrt(sum of u_j^2 over the
/// receivers j of v)`. Behind each row of sums stands the weight `u_i`.
///
/// # Proof definition
/// Weights `u` are public, so `w(v, .)` depends on the record of `v` alone, and its squares sum to `C^2` at most: the
/// theorem on sender weights holds as it stands. In integers: with weights in whole steps `k_i`, the message of `v`
/// becomes integers `z` with `|z|^2 sum k_j^2 <= (S C)^2` ([`Quantiser::budget`] for the strength of
/// [`progap_graph::Graph::out_strengths_to`]), the row of `i` is `k_i` times the sum of its senders' `z`, and adding or
/// removing a record moves all rows together by at most `S C` in L2 norm, exactly. The result is post-processing of the
/// Gaussian mechanism with the sensitivity of the settings and the noise of the plan's query
/// ([proof](progap_privacy::proofs::addressed_sums#weights-of-receivers)).
#[derive(Debug, Clone)]
pub struct AddressedAggregation<'a> {
    /// The name of its noise, which no other query has.
    pub label: String,
    /// What nodes say.
    pub message: Message<'a>,
    /// The aggregates that messages are made of.
    pub aggregates: &'a Aggregates,
    /// How much of its senders' influence each node gets.
    pub weights: &'a ReceiverWeights,
}

impl VaultQuery for AddressedAggregation<'_> {
    type Answer = Vec<f32>;

    fn spec(&self, private: &Private) -> Result<Asked> {
        if private.settings.level != Level::Node || private.part.is_some() || self.message.is_made() {
            return Err(Error::internal("receivers have weights at node level, in one process"));
        }
        let SenderBound::Weight { .. } = private.bound else {
            return Err(Error::internal("weights of receivers divide a sender's whole influence"));
        };
        if self.weights.len() != private.nodes() {
            return Err(Error::internal("every node has one weight"));
        }
        let sensitivity = sensitivity(&private.settings);
        let values = private.nodes().saturating_mul(self.width(private));
        Ok(Asked::new(aggregation(Event::gaussian(sensitivity, sensitivity)?), values))
    }

    fn evaluate(self, private: &Private, noise: &mut Noise) -> Result<Vec<f32>> {
        let (sigma, _) = noise.gaussian()?.ok_or_else(not_planned)?;
        let width = self.width(private);
        let mut integers = vec![0i16; private.nodes() * width];
        let quantiser = self.integers(private, sigma, |block, rounded| {
            integers[block.start * width..block.end * width].copy_from_slice(rounded);
        })?;
        let mut sums = vec![0i64; integers.len()];
        weighted::wide_sum(&private.graph, width, &integers, &mut sums)?;
        drop(integers);
        multiply(&mut sums, width, &self.weights.0);
        let query = noise.query(&self.label)?;
        let table = noise.table(sigma, quantiser.scale())?;
        let noisy = table.release_owned(sums, quantiser.scale(), query, rayon::current_num_threads());
        Ok(self.weights.beside(&noisy.into_parts().0, width, 0))
    }
}

impl Streamable for AddressedAggregation<'_> {
    fn stream(self, private: &Private, noise: &mut Noise, take: &mut Take<'_>) -> Result<()> {
        let (sigma, _) = noise.gaussian()?.ok_or_else(not_planned)?;
        let width = self.width(private);
        let mut panels = Panels::<i16>::new(private.nodes(), width);
        let quantiser = self.integers(private, sigma, |block, rounded| panels.put(block, rounded))?;
        let query = (quantiser.scale(), noise.query(&self.label)?, rayon::current_num_threads());
        let mut taken = 0;
        noise.table(sigma, quantiser.scale())?.release_pieces(
            query,
            |see: &mut PieceVisitor<'_, i64, Error>| {
                let mut first = 0;
                each_block(&private.graph, &panels, &mut |sums: &mut [i64]| {
                    let rows = first..first + sums.len() / width.max(1);
                    multiply(sums, width, &self.weights.0[rows.clone()]);
                    first = rows.end;
                    see(sums)
                })
            },
            |noisy| {
                let sums = noisy.into_parts().0;
                let mut rows = self.weights.beside(&sums, width, taken);
                taken += sums.len() / width.max(1);
                take(&mut rows)
            },
        )
    }
}

impl AddressedAggregation<'_> {
    /// The columns of the sums.
    fn width(&self, private: &Private) -> usize {
        self.message.width(self.aggregates, (private.columns(), private.rows.classes))
    }

    /// Rounds what nodes say, each as long as it may be for its receivers, and hands it to `put` with its nodes, block
    /// by block.
    fn integers(
        &self,
        private: &Private,
        sigma: f64,
        mut put: impl FnMut(Range<usize>, &[i16]),
    ) -> Result<Quantiser<i16>> {
        // Rows are multiplied with up to as many steps, and so is what rounding does to them.
        let (_, scale) = choose_scale(sigma / f64::from(ReceiverWeights::STEPS), private.largest_weight())?;
        let quantiser = Quantiser::<i16>::new(scale)?;
        let budget = |strength: u32| quantiser.budget(private.bound, strength);
        let strengths = private.graph.out_strengths_to(&self.weights.0)?;
        let budgets: Vec<NormBudget> =
            strengths.into_iter().map(budget).collect::<std::result::Result<_, _>>()?;
        for block in blocks(private.nodes()) {
            let messages = private.rows.messages_of(block.clone(), self.message, self.aggregates)?;
            let mut rounded = vec![0i16; messages.len()];
            quantiser.rows(&messages, self.width(private), &budgets[block.clone()], &mut rounded)?;
            put(block, &rounded);
        }
        Ok(quantiser)
    }
}

/// Each row times the weight of its node, in steps.
fn multiply(sums: &mut [i64], width: usize, steps: &[u8]) {
    for (row, &steps) in sums.chunks_exact_mut(width.max(1)).zip(steps) {
        row.iter_mut().for_each(|sum| *sum *= i64::from(steps));
    }
}
