//! Sums of messages in which both messages of an undirected edge share one unit of influence, by public numbers.

use std::num::NonZeroU32;

use progap_privacy::Event;
use progap_privacy::noise::{NormBudget, PieceVisitor, Quantiser, choose_scale};

use super::aggregate::aggregation;
use super::noise::not_planned;
use super::streamed::{Panels, Streamable, Take, blocks_of_sums};
use super::{Asked, Noise, Private, ReceiverWeights, VaultQuery};
use crate::plan::sensitivity;
use crate::rows::{Aggregates, Message, blocks};
use crate::{Error, Result};

/// One noisy aggregation in which the message that `j` sends to `i` carries `w(i, j) = u_i / sqrt(u_i^2 + u_j^2)`, with
/// Gaussian noise of the same size in every row.
///
/// # Proof definition
/// Weights `u` are public: functions of the split, and of what left the vault before. An undirected edge moves the row
/// of `i` by `w(i, j)` times a message of norm one, the row of `j` by `w(j, i)` times another, and no other row; `w(i,
/// j)^2 + w(j, i)^2 = 1`. In integers: with weights in whole steps `k`, both messages become integers with `|z|^2 <=
/// floor(S^2 k_i^2 / (k_i^2 + k_j^2))` and `|z|^2 <= floor(S^2 k_j^2 / (k_i^2 + k_j^2))` ([`Quantiser::of_a_pair`]), as
/// functions of public rows, of what left before and of public weights alone, so that the edge moves all rows together
/// by at most `S` in L2 norm, exactly; one direction alone moves them less. An edge with a weight of its own carries at
/// most that share of them. The result is post-processing of the Gaussian mechanism with sensitivity 1 and the noise of
/// the plan's query (docs/proofs/addressed-sums.md#pairs).
#[derive(Debug, Clone)]
pub struct PairedAggregation<'a> {
    /// The name of its noise, which no other query has.
    pub label: String,
    /// What nodes say.
    pub message: Message<'a>,
    /// The aggregates that messages are made of.
    pub aggregates: &'a Aggregates,
    /// How much of the influence of its edges each node gets.
    pub weights: &'a ReceiverWeights,
}

impl VaultQuery for PairedAggregation<'_> {
    type Answer = Vec<f32>;

    fn spec(&self, private: &Private) -> Result<Asked> {
        if !private.settings.weighs_pairs() || private.part.is_some() {
            return Err(Error::internal(
                "messages share the influence of undirected edges between public rows",
            ));
        }
        if self.message.is_made() {
            private.need_public_rows()?;
        }
        if self.weights.len() != private.nodes() {
            return Err(Error::internal("every node has one weight"));
        }
        let sensitivity = sensitivity(&private.settings);
        let values = private.nodes().saturating_mul(self.width(private));
        Ok(Asked::new(aggregation(Event::gaussian(sensitivity, sensitivity)?), values))
    }

    fn evaluate(self, private: &Private, noise: &mut Noise) -> Result<Vec<f32>> {
        let (sigma, _) = noise.gaussian()?.ok_or_else(not_planned)?;
        if private.held_edges().is_some() {
            let (sums, scale) = self.sums_over_ranks(private, sigma)?;
            let query = noise.query(&self.label)?;
            return noise.noisy(private, (sums, self.width(private)), (sigma, scale), query);
        }
        let messages = self.messages(private, sigma)?;
        let mut sums = Vec::with_capacity(private.nodes() * messages.width);
        messages.each_block(private.along(self.message)?, &mut |block: &mut [i64]| {
            sums.extend_from_slice(block);
            Ok(())
        })?;
        let query = noise.query(&self.label)?;
        let table = noise.table(sigma, messages.scale)?;
        let noisy = table.release_owned(sums, messages.scale, query, rayon::current_num_threads());
        Ok(noisy.into_parts().0)
    }
}

impl Streamable for PairedAggregation<'_> {
    fn stream(self, private: &Private, noise: &mut Noise, take: &mut Take<'_>) -> Result<()> {
        let (sigma, _) = noise.gaussian()?.ok_or_else(not_planned)?;
        let messages = self.messages(private, sigma)?;
        let graph = private.along(self.message)?;
        let query = (messages.scale, noise.query(&self.label)?, rayon::current_num_threads());
        noise.table(sigma, messages.scale)?.release_pieces(
            query,
            |see: &mut PieceVisitor<'_, i64, Error>| messages.each_block(graph, see),
            |noisy| take(&mut noisy.into_parts().0),
        )
    }
}

impl PairedAggregation<'_> {
    /// The columns of the sums.
    fn width(&self, private: &Private) -> usize {
        self.message.width(self.aggregates, (private.columns(), private.rows.classes))
    }

    /// The sums of this rank's own nodes: what is said to receivers of each weight goes round by itself.
    fn sums_over_ranks(&self, private: &Private, sigma: f64) -> Result<(Vec<i64>, NonZeroU32)> {
        let (width, own) = (self.width(private), private.speakers());
        let (_, scale) = choose_scale(sigma, 1.0)?;
        let quantiser = Quantiser::<i16>::new(scale)?;
        let steps = self.weights.steps();
        let mut sums = vec![0i64; own.len() * width];
        for level in self.weights.levels() {
            let mut rounded = vec![0i16; own.len() * width];
            for block in blocks(own.len()) {
                let nodes = own.start + block.start..own.start + block.end;
                let messages = private.rows.messages_of(nodes.clone(), self.message, self.aggregates)?;
                let budgets = pair_budgets(&quantiser, level, &steps[nodes])?;
                quantiser.rows(
                    &messages,
                    width,
                    &budgets,
                    &mut rounded[block.start * width..block.end * width],
                )?;
            }
            let mut found = vec![0i64; rounded.len()];
            private.sum(self.message, width, &rounded, &mut found)?;
            keep_rows(&mut sums, &found, width, &steps[own.clone()], level);
        }
        Ok((sums, quantiser.scale()))
    }

    /// Rounds what nodes say to receivers of each weight that occurs.
    fn messages(&self, private: &Private, sigma: f64) -> Result<Messages<'_>> {
        let width = self.width(private);
        let (_, scale) = choose_scale(sigma, 1.0)?;
        let quantiser = Quantiser::<i16>::new(scale)?;
        let steps = self.weights.steps();
        let mut to: Vec<(u8, Panels<i16>)> = self
            .weights
            .levels()
            .into_iter()
            .map(|level| (level, Panels::new(private.nodes(), width)))
            .collect();
        for block in blocks(private.nodes()) {
            let messages = private.rows.messages_of(block.clone(), self.message, self.aggregates)?;
            let mut rounded = vec![0i16; messages.len()];
            for (level, panels) in &mut to {
                let budgets = pair_budgets(&quantiser, *level, &steps[block.clone()])?;
                quantiser.rows(&messages, width, &budgets, &mut rounded)?;
                panels.put(block.clone(), &rounded);
            }
        }
        Ok(Messages { width, scale: quantiser.scale(), steps, to })
    }
}

/// How much of an edge each sender may use up, towards receivers of a weight.
fn pair_budgets(quantiser: &Quantiser<i16>, level: u8, senders: &[u8]) -> Result<Vec<NormBudget>> {
    let budget = |&sender: &u8| quantiser.of_a_pair(u32::from(level), u32::from(sender));
    Ok(senders.iter().map(budget).collect::<std::result::Result<_, _>>()?)
}

/// Takes over the rows of receivers of a weight.
fn keep_rows(sums: &mut [i64], found: &[i64], width: usize, receivers: &[u8], level: u8) {
    let width = width.max(1);
    for ((row, found), own) in sums.chunks_exact_mut(width).zip(found.chunks_exact(width)).zip(receivers) {
        if *own == level {
            row.copy_from_slice(found);
        }
    }
}

/// What nodes say, in integers, to receivers of each weight.
struct Messages<'w> {
    width: usize,
    scale: NonZeroU32,
    /// The weight of each node.
    steps: &'w [u8],
    to: Vec<(u8, Panels<i16>)>,
}

impl Messages<'_> {
    /// Hands the sums of blocks of receivers to `see`, in their order.
    fn each_block(
        &self,
        graph: &progap_graph::Graph,
        see: &mut dyn FnMut(&mut [i64]) -> Result<()>,
    ) -> Result<()> {
        let mut of_level = vec![];
        let fill = &mut |receivers: std::ops::Range<usize>, sums: &mut [i64]| {
            for (level, panels) in &self.to {
                of_level.clear();
                of_level.resize(sums.len(), 0i64);
                panels.sum(graph, receivers.clone(), &mut of_level)?;
                keep_rows(sums, &of_level, self.width, &self.steps[receivers.clone()], *level);
            }
            Ok(())
        };
        blocks_of_sums((graph.nodes(), self.width), fill, see)
    }
}
