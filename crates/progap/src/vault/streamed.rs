//! The noisy sums of graphs that memory does not hold: a block of receivers at a time.
//!
//! The messages of all nodes are in memory as small integers, since edges come from anywhere. Everything else passes through: edges and rows lie in
//! a mapped file, sums go to whoever takes them. As all noise is bound to all exact sums, these are computed twice, first for their digest and
//! then for their noise: nothing exact is ever written anywhere, and the result has the bits of [`Vault::aggregate`].

use std::ops::Range;

use progap_graph::weighted::{self, WeightedSum};
use progap_graph::{Graph, aggregate};
use progap_privacy::noise::{
    AnySource, MessageInt, MessageType, NoisySum, PieceVisitor, Query, RoundedGaussian, choose_scale,
};

use super::Vault;
use crate::plan::Plan;
use crate::rows::{Aggregates, Message, blocks};
use crate::settings::Level;
use crate::{Error, Result};

/// About this many sums are in memory at a time.
const SUMS_AT_ONCE: usize = 1 << 22;

/// A function that takes the rows of an aggregate, in their order.
pub type Take<'t> = dyn FnMut(&mut [f32]) -> Result<()> + 't;

impl Vault {
    /// As [`Vault::aggregate`], with the same bits: rows of sums are handed to `take` block by block instead of being returned.
    ///
    /// # Proof definition
    /// That of [`Vault::aggregate`]. Where this ends in an error nothing may be kept of what was taken.
    ///
    /// # Errors
    /// Those of [`Vault::aggregate`] and of `take`.
    pub fn aggregate_streamed(
        &mut self,
        query: &str,
        message: Message<'_>,
        aggregates: &Aggregates,
        plan: &Plan,
        take: &mut Take<'_>,
    ) -> Result<()> {
        let width = self.check_message(message, aggregates)?;
        if self.settings.level == Level::None {
            let mut panels = Panels::new(self.nodes(), width);
            for block in blocks(self.nodes()) {
                panels.put(block.clone(), &self.rows.messages_of(block, message, aggregates)?);
            }
            each_block(self.along(message)?, &panels, &mut |sums: &mut [f32]| take(sums))?;
            self.record(self.aggregation(plan)?);
            return Ok(());
        }
        self.draw(self.nodes() * width, plan)?;
        let noise = plan.aggregate_multiplier * plan.sensitivity;
        let query = self.randomness.query(query)?;
        let few = self.along(message)?.max_in_degree() <= i16::MAX as usize;
        let say = (message, aggregates, width);
        match choose_scale(noise, self.largest_weight())? {
            (MessageType::I8, scale) if few => self.released::<i8, i32>(say, (noise, scale), query, take)?,
            (_, scale) if few => self.released::<i16, i32>(say, (noise, scale), query, take)?,
            (_, scale) => self.released::<i16, i64>(say, (noise, scale), query, take)?,
        }
        self.record(self.aggregation(plan)?);
        Ok(())
    }

    fn released<T, N>(
        &mut self,
        (message, aggregates, width): (Message<'_>, &Aggregates, usize),
        (noise, scale): (f64, u32),
        query: Query<AnySource>,
        take: &mut Take<'_>,
    ) -> Result<()>
    where
        T: MessageInt + Send + Sync,
        N: WeightedSum<T> + NoisySum + Into<i64>,
    {
        let mut panels = Panels::<T>::new(self.nodes(), width);
        let say = (message, aggregates);
        let scale = self.integers(say, width, scale, |block, rounded| panels.put(block, rounded))?;
        self.table(noise, scale)?;
        let graph = self.along(message)?;
        let table = self.table.as_ref().ok_or(Error::Internal("there is no table of noise"))?;
        table.release_pieces(
            (scale, query, rayon::current_num_threads()),
            |see: &mut PieceVisitor<'_, N, Error>| each_block(graph, &panels, see),
            |noisy| take(&mut noisy.into_parts().0),
        )
    }
}

/// Hands the sums of blocks of receivers to `see`, in their order.
pub(super) fn each_block<T, N>(
    graph: &Graph,
    panels: &Panels<T>,
    see: &mut dyn FnMut(&mut [N]) -> Result<()>,
) -> Result<()>
where
    T: Copy + Default + Send + Sync,
    N: WeightedSum<T>,
{
    // Any multiple of as many rows is a multiple of as many values.
    let piece = RoundedGaussian::PIECE;
    let rows = (SUMS_AT_ONCE / panels.width.max(1) / piece).max(1) * piece;
    let mut sums = vec![];
    for first in (0..graph.nodes()).step_by(rows) {
        let receivers = first..graph.nodes().min(first + rows);
        sums.clear();
        sums.resize(receivers.len() * panels.width, N::default());
        panels.sum(graph, receivers, &mut sums)?;
        see(&mut sums)?;
    }
    Ok(())
}

/// The messages of all nodes, in panels of as many columns as are summed at once.
pub(super) struct Panels<T> {
    width: usize,
    panels: Vec<(Range<usize>, Vec<T>)>,
}

impl<T: Copy + Default + Send + Sync> Panels<T> {
    pub fn new(nodes: usize, width: usize) -> Panels<T> {
        let columns = |first: usize| first..width.min(first + aggregate::MAX_WIDTH);
        let panel = |columns: Range<usize>| (columns.clone(), vec![T::default(); nodes * columns.len()]);
        Panels { width, panels: (0..width).step_by(aggregate::MAX_WIDTH).map(columns).map(panel).collect() }
    }

    pub fn put(&mut self, nodes: Range<usize>, rows: &[T]) {
        for (columns, panel) in &mut self.panels {
            let own = &mut panel[nodes.start * columns.len()..nodes.end * columns.len()];
            for (own, row) in own.chunks_exact_mut(columns.len()).zip(rows.chunks_exact(self.width)) {
                own.copy_from_slice(&row[columns.clone()]);
            }
        }
    }

    fn sum<N: WeightedSum<T>>(&self, graph: &Graph, receivers: Range<usize>, sums: &mut [N]) -> Result<()> {
        if let [(columns, panel)] = &self.panels[..] {
            return Ok(weighted::sum_rows(graph, receivers, (columns.len(), panel), sums)?);
        }
        for (columns, panel) in &self.panels {
            let mut part = vec![N::default(); receivers.len() * columns.len()];
            weighted::sum_rows(graph, receivers.clone(), (columns.len(), panel), &mut part)?;
            for (sums, part) in sums.chunks_exact_mut(self.width).zip(part.chunks_exact(columns.len())) {
                sums[columns.clone()].copy_from_slice(part);
            }
        }
        Ok(())
    }
}
