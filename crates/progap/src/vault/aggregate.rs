//! Sums of messages over the graph, with Gaussian noise.

use std::num::NonZeroU32;
use std::ops::Range;

use bytemuck::Pod;
use progap_graph::Graph;
use progap_graph::weighted::{self, WeightedSum};
use progap_privacy::Event;
use progap_privacy::noise::{
    AnySource, MessageInt, MessageType, Noisy, NoisySum, Quantiser, Query as NoiseQuery, RoundedGaussian,
    SenderBound, choose_scale,
};

use super::Vault;
use crate::plan::Plan;
use crate::query::Query;
use crate::ranks::Sent;
use crate::rows::{Aggregates, Message, blocks};
use crate::settings::Level;
use crate::{Error, Result};

/// The name of the query.
pub(crate) const AGGREGATION: &str = "aggregation";

/// The query, for its event.
pub(crate) fn aggregation(event: Event) -> Query {
    Query::new(AGGREGATION, "noisy aggregation over the graph", event)
}

impl Vault {
    /// One noisy aggregation: what each node says, normalised, summed over the in-neighbours, with Gaussian noise.
    ///
    /// # Proof definition
    /// For every message of networks and aggregates that left this vault before, the result is post-processing of the
    /// Gaussian mechanism with sensitivity `plan.sensitivity` and noise `plan.aggregate_multiplier * plan.sensitivity`
    /// with respect to the vault's unit (docs/privacy.md#units, #sender-weights, #rounding). A node's message depends on
    /// its own record and on what left the vault before. Messages against the direction of edges are at edge level only, where turning
    /// every edge round turns records into records. An edge with a weight carries at most that share of a message, and a sender's budget
    /// is that of [`Graph::out_strengths`] (docs/privacy.md#edge-weights). At level none there is no noise and no guarantee.
    ///
    /// # Errors
    /// A query name that was used before: its noise would be used twice.
    pub fn aggregate(
        &mut self,
        query: &str,
        message: Message<'_>,
        aggregates: &Aggregates,
        plan: &Plan,
    ) -> Result<Vec<f32>> {
        let width = self.check_message(message, aggregates)?;
        if self.settings.level == Level::None {
            let messages = self.rows.messages(message, aggregates)?;
            let mut sums = vec![0f32; messages.len()];
            self.sum(message, width, &messages, &mut sums)?;
            self.record(self.aggregation(plan)?);
            return Ok(sums);
        }
        self.draw(self.nodes() * width, plan)?;
        let noise = plan.aggregate_multiplier * plan.sensitivity;
        let query = self.randomness.query(query)?;
        let most = match self.part() {
            None => self.along(message)?.max_in_degree(),
            Some(part) => part.max_in_degree,
        };
        let few = most <= i16::MAX as usize;
        let noisy = match choose_scale(noise, self.largest_weight())? {
            (MessageType::I8, scale) if few => {
                let (sums, scale) = self.integer_sums::<i8, i32>((message, aggregates), width, scale)?;
                self.noisy((sums, width), (noise, scale), query)?
            }
            (_, scale) if few => {
                let (sums, scale) = self.integer_sums::<i16, i32>((message, aggregates), width, scale)?;
                self.noisy((sums, width), (noise, scale), query)?
            }
            (_, scale) => {
                let (sums, scale) = self.integer_sums::<i16, i64>((message, aggregates), width, scale)?;
                self.noisy((sums, width), (noise, scale), query)?
            }
        };
        self.record(self.aggregation(plan)?);
        Ok(noisy.into_parts().0)
    }

    /// The edges that a message goes along: those of the graph, or, for a message against them, each turned round.
    pub(super) fn along(&self, message: Message<'_>) -> Result<&Graph> {
        match message {
            Message::Made { back: true, .. } => {
                self.back.as_ref().ok_or(Error::Internal("messages go along the edges only"))
            }
            _ => Ok(&self.graph),
        }
    }

    /// The width of a message, if rows may be sent in this way.
    pub(super) fn check_message(&self, message: Message<'_>, aggregates: &Aggregates) -> Result<usize> {
        if message.is_made() {
            self.need_public_rows()?;
        }
        Ok(message.width(aggregates, (self.columns(), self.rows.classes)))
    }

    /// The largest weight of a message that there could be, not the largest there is: the scale shows in every value, and which degrees
    /// occur is private.
    pub(super) fn largest_weight(&self) -> f64 {
        match self.bound {
            SenderBound::Weight { bound } => bound.max(1.0),
            _ => 1.0,
        }
    }

    /// The query, as it is recorded.
    pub(crate) fn aggregation(&self, plan: &Plan) -> Result<Query> {
        Ok(aggregation(match self.settings.level {
            Level::None => Event::NonPrivate,
            _ => Event::gaussian(plan.aggregate_multiplier * plan.sensitivity, plan.sensitivity)?,
        }))
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

    /// Adds noise to exact sums, a row of this many for each own node.
    fn noisy<N>(
        &mut self,
        (sums, width): (Vec<N>, usize),
        (noise, scale): (f64, NonZeroU32),
        query: NoiseQuery<AnySource>,
    ) -> Result<Noisy<Vec<f32>, AnySource>>
    where
        N: NoisySum + Into<i64> + TryFrom<i64> + Send + Sync,
    {
        let threads = rayon::current_num_threads();
        self.table(noise, scale)?;
        let table = self.table.as_ref().ok_or(Error::Internal("there is no table of noise"))?;
        match &self.part {
            None => Ok(table.release_owned(sums, scale, query, threads)),
            Some(part) => table.release_held((sums, &part.held(width)), scale, query, threads, |bytes| {
                part.ranks.all_gather(Sent::Noise, bytes)
            }),
        }
    }

    /// The sum of messages over the edges into each own node.
    fn sum<T: Pod + Send + Sync, N: WeightedSum<T>>(
        &self,
        message: Message<'_>,
        width: usize,
        own: &[T],
        sums: &mut [N],
    ) -> Result<()> {
        match &self.part {
            None => weighted::wide_sum(self.along(message)?, width, own, sums)?,
            Some(part) => part.graph.sum(width, &part.messages(own, width)?, sums)?,
        }
        Ok(())
    }

    /// The sums of messages as integers. What nodes say is computed, rounded and forgotten block by block, so that beside the graph
    /// and the rows no more is held than the integers and their sums.
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
        let nodes = self.rows.labels.len();
        let mut integers = vec![T::default(); nodes * width];
        let scale = self.integers((message, aggregates), width, scale, |block, rounded| {
            integers[block.start * width..block.end * width].copy_from_slice(rounded);
        })?;
        // A hub with more in-neighbours than 32 bits can hold messages of needs 64.
        let mut sums = vec![N::default(); nodes * width];
        self.sum(message, width, &integers, &mut sums)?;
        Ok((sums, scale))
    }

    /// Rounds what nodes say, block by block, and hands each to `put` with its nodes.
    pub(super) fn integers<T: MessageInt + Send + Sync>(
        &self,
        (message, aggregates): (Message<'_>, &Aggregates),
        width: usize,
        scale: u32,
        mut put: impl FnMut(Range<usize>, &[T]),
    ) -> Result<NonZeroU32> {
        let quantiser = Quantiser::<T>::new(scale)?;
        // Where nodes lie in several ranks, those of this one.
        for block in blocks(self.rows.labels.len()) {
            // Where edges are what is private, degrees are not looked at.
            let degree = |node: usize| self.out_degrees.get(node).copied().unwrap_or(0);
            let budgets: Vec<_> = block
                .clone()
                .map(|node| quantiser.budget(self.bound, degree(node)))
                .collect::<std::result::Result<_, _>>()?;
            let messages = self.rows.messages_of(block.clone(), message, aggregates)?;
            let mut rounded = vec![T::default(); messages.len()];
            quantiser.rows(&messages, width, &budgets, &mut rounded)?;
            put(block, &rounded);
        }
        Ok(quantiser.scale())
    }
}
