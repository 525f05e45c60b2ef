//! The noisy sums of graphs that memory does not hold: a block of receivers at a time.
//!
//! The messages of all nodes are in memory as small integers, since edges come from anywhere. Everything else passes
//! through: edges and rows lie in a mapped file, sums go to a sink. As all noise is bound to all exact
//! sums, these are computed twice, first for their digest and then for their noise: nothing exact is ever written
//! anywhere, and the result has the bits of [`Aggregation`].

use std::ops::Range;

use progap_graph::weighted::{self, WeightedSum};
use progap_graph::{Graph, aggregate};
use progap_privacy::noise::{
    AnySource, MessageInt, MessageType, NoisySum, PieceVisitor, Query, RoundedGaussian, choose_scale,
};

use super::{Aggregation, Asked, Noise, Private, VaultQuery};
use crate::rows::{Aggregates, Message, blocks};
use crate::{Error, Result};

/// About this many sums are in memory at a time.
const SUMS_AT_ONCE: usize = 1 << 22;

/// A function that takes the rows of an aggregate, in their order.
pub type Take<'t> = dyn FnMut(&mut [f32]) -> Result<()> + 't;

/// A question whose answer has a row for each node, and can be given block by block with the same bits.
pub trait Streamable: VaultQuery<Answer = Vec<f32>> {
    /// Hands the rows of the answer to `take`, in their order. Where this ends in an error nothing may be kept of what
    /// was taken.
    ///
    /// # Errors
    /// Those of the question and of `take`.
    fn stream(self, private: &Private, noise: &mut Noise, take: &mut Take<'_>) -> Result<()>;
}

/// A question whose answer is handed on block by block instead of being returned.
///
/// # Proof definition
/// That of the question: the answer has the same bits.
pub struct Streamed<'t, Q> {
    /// The question.
    pub question: Q,
    /// What takes the rows.
    pub take: &'t mut Take<'t>,
}

impl<Q: Streamable> VaultQuery for Streamed<'_, Q> {
    type Answer = ();

    fn spec(&self, private: &Private) -> Result<Asked> {
        self.question.spec(private)
    }

    fn evaluate(self, private: &Private, noise: &mut Noise) -> Result<()> {
        self.question.stream(private, noise, self.take)
    }
}

impl Streamable for Aggregation<'_> {
    fn stream(self, private: &Private, noise: &mut Noise, take: &mut Take<'_>) -> Result<()> {
        let Aggregation { label, message, aggregates } = &self;
        let say = (*message, *aggregates, self.width(private));
        let Some((sigma, _)) = noise.gaussian()? else {
            let mut panels = Panels::new(private.nodes(), say.2);
            for block in blocks(private.nodes()) {
                panels.put(block.clone(), &private.rows.messages_of(block, *message, aggregates)?);
            }
            return each_block(private.along(*message)?, &panels, &mut |sums: &mut [f32]| take(sums));
        };
        let query = noise.query(label)?;
        let few = private.along(*message)?.max_in_degree() <= i16::MAX as usize;
        match choose_scale(sigma, private.largest_weight())? {
            (MessageType::I8, scale) if few => {
                released::<i8, i32>(private, noise, say, (sigma, scale), query, take)
            }
            (_, scale) if few => released::<i16, i32>(private, noise, say, (sigma, scale), query, take),
            (_, scale) => released::<i16, i64>(private, noise, say, (sigma, scale), query, take),
        }
    }
}

fn released<T, N>(
    private: &Private,
    noise: &mut Noise,
    (message, aggregates, width): (Message<'_>, &Aggregates, usize),
    (sigma, scale): (f64, u32),
    query: Query<AnySource>,
    take: &mut Take<'_>,
) -> Result<()>
where
    T: MessageInt + Send + Sync,
    N: WeightedSum<T> + NoisySum + Into<i64>,
{
    let mut panels = Panels::<T>::new(private.nodes(), width);
    let say = (message, aggregates);
    let scale = private.integers(say, width, scale, |block, rounded| panels.put(block, rounded))?;
    let graph = private.along(message)?;
    noise.table(sigma, scale)?.release_pieces(
        (scale, query, rayon::current_num_threads()),
        |see: &mut PieceVisitor<'_, N, Error>| each_block(graph, &panels, see),
        |noisy| take(&mut noisy.into_parts().0),
    )
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
    let fill = &mut |receivers: Range<usize>, sums: &mut [N]| panels.sum(graph, receivers, sums);
    blocks_of_sums((graph.nodes(), panels.width), fill, see)
}

/// What computes the sums of some receivers.
type Fill<'f, N> = dyn FnMut(Range<usize>, &mut [N]) -> Result<()> + 'f;

/// The sums of so many nodes, a row of this width each: some at a time, in their order, as `fill` computes them.
pub(super) fn blocks_of_sums<N: Copy + Default>(
    (nodes, width): (usize, usize),
    fill: &mut Fill<'_, N>,
    see: &mut dyn FnMut(&mut [N]) -> Result<()>,
) -> Result<()> {
    // Any multiple of as many rows is a multiple of as many values.
    let piece = RoundedGaussian::PIECE;
    let rows = (SUMS_AT_ONCE / width.max(1) / piece).max(1) * piece;
    let mut sums = vec![];
    for first in (0..nodes).step_by(rows) {
        let receivers = first..nodes.min(first + rows);
        sums.clear();
        sums.resize(receivers.len() * width, N::default());
        fill(receivers, &mut sums)?;
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

    pub fn sum<N: WeightedSum<T>>(
        &self,
        graph: &Graph,
        receivers: Range<usize>,
        sums: &mut [N],
    ) -> Result<()> {
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
