//! Sums of messages over the graph, with Gaussian noise.

use std::num::NonZeroU32;
use std::ops::Range;

use bytemuck::Pod;
use progap_graph::Graph;
use progap_graph::weighted::{self, WeightedSum};
use progap_privacy::Event;
use progap_privacy::noise::{
    AnySource, MessageInt, MessageType, NoisySum, Quantiser, Query as NoiseQuery, SenderBound, choose_scale,
};

use super::{Asked, Noise, Private, VaultQuery};
use crate::plan::sensitivity;
use crate::query::Query;
use crate::ranks::Sent;
use crate::rows::{Aggregates, Message, blocks};
use crate::{Error, Result};

/// The name of the query.
pub(crate) const AGGREGATION: &str = "aggregation";

/// The query, for its event.
pub(crate) fn aggregation(event: Event) -> Query {
    Query::new(AGGREGATION, "noisy aggregation over the graph", event)
}

/// A noisy aggregation: what each node says, normalised, summed over the in-neighbours, with Gaussian noise.
///
/// # Proof definition
/// For every message of networks and aggregates that left this vault before, the result is post-processing of the
/// Gaussian mechanism with the sensitivity of the settings and the noise of the plan's query with respect to the
/// vault's unit ([units](progap_privacy::proofs::units), [sums](progap_privacy::proofs::rounding)). A node's message
/// depends on its own record and on what left the vault before. Messages against the direction of edges are at edge
/// level only, where turning every edge round turns records into records. An edge with a weight carries at most that
/// share of a message, and a sender's budget is that of [`Graph::out_strengths`]
/// ([proof](progap_privacy::proofs::sender_weights)). At level none there is no noise and no guarantee.
#[derive(Debug, Clone)]
pub struct Aggregation<'a> {
    /// The name of its noise, which no other query has.
    pub label: String,
    /// What nodes say.
    pub message: Message<'a>,
    /// The aggregates that messages are made of.
    pub aggregates: &'a Aggregates,
}

impl VaultQuery for Aggregation<'_> {
    type Answer = Vec<f32>;

    fn spec(&self, private: &Private) -> Result<Asked> {
        if self.message.is_made() {
            private.need_public_rows()?;
        }
        if private.settings.weighs_pairs() {
            return Err(Error::internal("the messages of an undirected edge share its influence"));
        }
        let sensitivity = sensitivity(&private.settings);
        let values = private.nodes().saturating_mul(self.width(private));
        Ok(Asked::new(aggregation(Event::gaussian(sensitivity, sensitivity)?), values))
    }

    fn evaluate(self, private: &Private, noise: &mut Noise) -> Result<Vec<f32>> {
        let Aggregation { label, message, aggregates } = &self;
        let (say, width) = ((*message, *aggregates), self.width(private));
        let Some((sigma, _)) = noise.gaussian()? else {
            let messages = private.rows.messages(*message, aggregates)?;
            let mut sums = vec![0f32; messages.len()];
            private.sum(*message, width, &messages, &mut sums)?;
            return Ok(sums);
        };
        let query = noise.query(label)?;
        let most = match private.held_edges() {
            None => private.along(*message)?.max_in_degree(),
            Some(part) => part.max_in_degree,
        };
        let few = most <= i16::MAX as usize;
        match choose_scale(sigma, private.largest_weight())? {
            (MessageType::I8, scale) if few => {
                let (sums, scale) = private.integer_sums::<i8, i32>(say, width, scale)?;
                noise.noisy(private, (sums, width), (sigma, scale), query)
            }
            (_, scale) if few => {
                let (sums, scale) = private.integer_sums::<i16, i32>(say, width, scale)?;
                noise.noisy(private, (sums, width), (sigma, scale), query)
            }
            (_, scale) => {
                let (sums, scale) = private.integer_sums::<i16, i64>(say, width, scale)?;
                noise.noisy(private, (sums, width), (sigma, scale), query)
            }
        }
    }
}

impl Aggregation<'_> {
    pub(super) fn width(&self, private: &Private) -> usize {
        self.message.width(self.aggregates, (private.columns(), private.rows.classes))
    }
}

impl Noise {
    /// Adds noise to exact sums, a row of this many for each own node.
    pub(super) fn noisy<N>(
        &mut self,
        private: &Private,
        (sums, width): (Vec<N>, usize),
        (sigma, scale): (f64, NonZeroU32),
        query: NoiseQuery<AnySource>,
    ) -> Result<Vec<f32>>
    where
        N: NoisySum + Into<i64> + TryFrom<i64> + Send + Sync,
    {
        let (table, threads) = (self.table(sigma, scale)?, rayon::current_num_threads());
        let noisy = match private.held_edges() {
            None => table.release_owned(sums, scale, query, threads),
            Some(part) => table.release_held((sums, &part.held(width)), scale, query, threads, |bytes| {
                part.ranks.all_gather(Sent::Noise, bytes)
            })?,
        };
        let noisy = noisy.into_parts().0;
        // What left may be known to all.
        match &private.edges {
            None => Ok(noisy),
            Some(part) => part.gather(&noisy),
        }
    }
}

impl Private {
    /// The edges that a message goes along: those of the graph, or, for a message against them, each turned round.
    pub(super) fn along(&self, message: Message<'_>) -> Result<&Graph> {
        match message {
            _ if self.held_edges().is_some() => Err(Error::internal("the edges lie in several ranks")),
            Message::Made { back: true, .. } => {
                self.back.as_ref().ok_or(Error::internal("messages go along the edges only"))
            }
            _ => Ok(&self.graph),
        }
    }

    /// The largest weight of a message that there could be, not the largest there is: the scale shows in every value,
    /// and which degrees occur is private.
    pub(super) fn largest_weight(&self) -> f64 {
        match self.bound {
            SenderBound::Weight { bound } => bound.max(1.0),
            _ => 1.0,
        }
    }

    /// The sum of messages over the edges into each own node.
    pub(super) fn sum<T: Pod + Send + Sync, N: WeightedSum<T>>(
        &self,
        message: Message<'_>,
        width: usize,
        own: &[T],
        sums: &mut [N],
    ) -> Result<()> {
        match self.held_edges() {
            None => weighted::wide_sum(self.along(message)?, width, own, sums)?,
            Some(part) => part.graph.sum(width, &part.messages(own, width)?, sums)?,
        }
        Ok(())
    }

    /// The sums of messages as integers. What nodes say is computed, rounded and forgotten block by block, so that
    /// beside the graph and the rows no more is held than the integers and their sums.
    fn integer_sums<T, N>(
        &self,
        (message, aggregates): (Message<'_>, &Aggregates),
        width: usize,
        scale: u32,
    ) -> Result<(Vec<N>, NonZeroU32)>
    where
        T: MessageInt + Pod + Send + Sync,
        N: WeightedSum<T>,
    {
        let nodes = self.speakers().len();
        let mut integers = vec![T::default(); nodes * width];
        let scale = self.integers((message, aggregates), width, scale, |block, rounded| {
            integers[block.start * width..block.end * width].copy_from_slice(rounded);
        })?;
        // A hub with more in-neighbours than 32 bits can hold messages of needs 64.
        let mut sums = vec![N::default(); nodes * width];
        self.sum(message, width, &integers, &mut sums)?;
        Ok((sums, scale))
    }

    /// Rounds what nodes say, block by block, and hands each to `put` with its place among those that speak here.
    pub(super) fn integers<T: MessageInt + Send + Sync>(
        &self,
        (message, aggregates): (Message<'_>, &Aggregates),
        width: usize,
        scale: u32,
        mut put: impl FnMut(Range<usize>, &[T]),
    ) -> Result<NonZeroU32> {
        let quantiser = Quantiser::<T>::new(scale)?;
        let speakers = self.speakers();
        for block in blocks(speakers.len()) {
            let nodes = speakers.start + block.start..speakers.start + block.end;
            // Where edges are what is private, degrees are not looked at.
            let degree = |node: usize| self.out_degrees.get(node).copied().unwrap_or(0);
            let budgets: Vec<_> = nodes
                .clone()
                .map(|node| quantiser.budget(self.bound, degree(node)))
                .collect::<std::result::Result<_, _>>()?;
            let messages = self.rows.messages_of(nodes, message, aggregates)?;
            let mut rounded = vec![T::default(); messages.len()];
            quantiser.rows(&messages, width, &budgets, &mut rounded)?;
            put(block, &rounded);
        }
        Ok(quantiser.scale())
    }
}
