//! The aggregation kernel: for every node, the sum of what its in-neighbours send.
//!
//! `sum` is the one hot loop over edges in the whole project. Rows are cut into blocks of about the same number
//! of edges; each row is summed by one thread in a fixed order and written once, so there are no atomics, and
//! the result has the same bits on any number of threads: for integers because integer sums have no order, for
//! floats because the order is fixed.
//!
//! The common widths are compiled one by one, so that a row of messages is a fixed number of vector registers;
//! the rest share one loop. The vector instructions of the machine are found at run time.

use std::ops::Range;

use rayon::prelude::*;

use crate::graph::{RowWidth, row_blocks};
use crate::{Graph, Problem, Result};

/// The widest message that is summed in one pass over the edges.
pub const MAX_WIDTH: usize = 64;

/// Blocks of rows handed to the threads: enough that an unlucky one does not keep the others waiting.
const BLOCKS: usize = 256;

/// A sum of messages of type `M`.
///
/// Integer sums are exact: [`sum`] refuses a graph and weights with which they could overflow.
pub trait Sum<M>: Copy + Default + Send + Sync + sealed::Sealed {
    /// The message as a summand.
    fn from_message(message: M) -> Self;
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
    /// `self * other`.
    fn times(self, other: Self) -> Self;
    /// Whether `terms` messages times at most the largest of the weights can be summed without overflow.
    fn holds(terms: usize, weights: Option<&[Self]>) -> bool;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
}

impl Sum<f32> for f32 {
    #[inline(always)]
    fn from_message(message: f32) -> Self {
        message
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self * other
    }

    fn holds(_: usize, _: Option<&[Self]>) -> bool {
        true
    }
}

macro_rules! integer_sum {
    ($message:ty => $sum:ty) => {
        impl Sum<$message> for $sum {
            #[inline(always)]
            fn from_message(message: $message) -> Self {
                message.into()
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                // `holds` has ruled overflow out, so this is the plain sum without a check in the loop.
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            fn holds(terms: usize, weights: Option<&[Self]>) -> bool {
                let weight =
                    weights.map_or(1, |w| w.iter().map(|w| w.unsigned_abs()).max().unwrap_or(0)) as u128;
                let message = <$message>::MIN.unsigned_abs() as u128;
                // The product and every partial sum lie within this bound.
                weight.saturating_mul(message).saturating_mul(terms.max(1) as u128) <= <$sum>::MAX as u128
            }
        }
    };
}

integer_sum!(i8 => i32);
integer_sum!(i16 => i32);
integer_sum!(i16 => i64);

/// As [`sum`] without weights, of messages of any width: a panel of columns at a time.
///
/// ```
/// use progap_graph::{Graph, aggregate};
///
/// let graph = Graph::from_edges(2, &[0], &[1])?;
/// let messages: Vec<i8> = (0..200).map(|column| (column % 100) as i8).collect();
/// let mut sums = vec![0i32; 200];
/// aggregate::wide_sum(&graph, 100, &messages, &mut sums)?;
/// assert!(sums[..100].iter().all(|&sum| sum == 0) && sums[199] == 99);
/// # Ok::<(), progap_graph::Error>(())
/// ```
pub fn wide_sum<M, S>(graph: &Graph, width: usize, messages: &[M], sums: &mut [S]) -> Result<()>
where
    M: Copy + Send + Sync,
    S: Sum<M>,
{
    in_panels(width, messages, sums, |messages, sums| sum_along(Edges::of(graph), messages, sums))
}

/// Hands messages of any width to `sum` in panels of at most [`MAX_WIDTH`] columns.
pub(crate) fn in_panels<M, S>(
    width: usize,
    messages: &[M],
    sums: &mut [S],
    mut sum: impl FnMut(Messages<'_, M, S>, &mut [S]) -> Result<()>,
) -> Result<()>
where
    M: Copy,
    S: Sum<M>,
{
    if width <= MAX_WIDTH {
        return sum(Messages { width, values: messages, weights: None }, sums);
    }
    for first in (0..width).step_by(MAX_WIDTH) {
        let columns = first..width.min(first + MAX_WIDTH);
        let panel: Vec<M> =
            messages.chunks_exact(width).flat_map(|row| &row[columns.clone()]).copied().collect();
        let mut part = vec![S::default(); sums.len() / width * columns.len()];
        sum(Messages { width: columns.len(), values: &panel, weights: None }, &mut part)?;
        for (sums, part) in sums.chunks_exact_mut(width).zip(part.chunks_exact(columns.len())) {
            sums[columns.clone()].copy_from_slice(part);
        }
    }
    Ok(())
}

/// For every node `i` the sum over the edges `j -> i` of `weights[j] * messages[j]`; without weights, of
/// `messages[j]`.
///
/// `messages` and `sums` have `width` values (1 to [`MAX_WIDTH`]) for each node, row after row. Sums start from
/// zero. An error (a length that does not fit, or an integer sum that could overflow) leaves `sums` untouched.
///
/// ```
/// use progap_graph::{Graph, aggregate};
///
/// let graph = Graph::from_edges(3, &[0, 1, 2], &[1, 2, 1])?;
/// let mut sums = [0i32; 6];
/// aggregate::sum(&graph, 2, &[1i8, -1, 10, -10, 100, -100], None, &mut sums)?;
/// assert_eq!(sums, [0, 0, 101, -101, 10, -10]);
/// # Ok::<(), progap_graph::Error>(())
/// ```
pub fn sum<M, S>(
    graph: &Graph,
    width: usize,
    messages: &[M],
    weights: Option<&[S]>,
    sums: &mut [S],
) -> Result<()>
where
    M: Copy + Sync,
    S: Sum<M>,
{
    check_length("list of sums", sums.len(), graph.nodes() * width)?;
    sum_along(Edges::of(graph), Messages { width, values: messages, weights }, sums)
}

/// Edges by receiver, from senders of which each has a row of messages.
#[derive(Clone, Copy)]
pub(crate) struct Edges<'a> {
    pub offsets: &'a [u64],
    pub senders: &'a [u32],
    /// The number of those that send.
    pub messages: usize,
}

impl<'a> Edges<'a> {
    fn of(graph: &'a Graph) -> Self {
        Edges { offsets: graph.offsets(), senders: graph.senders(), messages: graph.nodes() }
    }

    fn receivers(&self) -> usize {
        self.offsets.len() - 1
    }
}

/// The largest number of edges in one row.
pub(crate) fn longest_row(offsets: &[u64]) -> usize {
    offsets.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0) as usize
}

/// The messages of all nodes: `width` values (1 to [`MAX_WIDTH`]) each, row after row.
#[derive(Debug, Clone, Copy)]
pub struct Messages<'a, M, S> {
    /// The values of a message.
    pub width: usize,
    /// Those of all nodes.
    pub values: &'a [M],
    /// The factor of each sender's message; nothing for 1.
    pub weights: Option<&'a [S]>,
}

/// As [`sum`], for some receivers only: `sums` has a row for each of them. Messages are those of all nodes.
///
/// ```
/// use progap_graph::{Graph, aggregate};
///
/// let graph = Graph::from_edges(3, &[0, 1, 2], &[1, 2, 1])?;
/// let messages = aggregate::Messages { width: 1, values: &[1i8, 10, 100], weights: None };
/// let mut sums = [0i32; 2];
/// aggregate::sum_rows(&graph, 1..3, messages, &mut sums)?;
/// assert_eq!(sums, [101, 10]);
/// # Ok::<(), progap_graph::Error>(())
/// ```
pub fn sum_rows<M, S>(
    graph: &Graph,
    receivers: Range<usize>,
    messages: Messages<'_, M, S>,
    sums: &mut [S],
) -> Result<()>
where
    M: Copy + Sync,
    S: Sum<M>,
{
    if receivers.start > receivers.end || receivers.end > graph.nodes() {
        let (index, limit) = (receivers.end.to_string(), graph.nodes() as u64);
        return Err(Problem::IndexOutOfRange { index, limit }.into());
    }
    crate::store::release_pages_if_full();
    let offsets = &graph.offsets()[receivers.start..=receivers.end];
    sum_along(Edges { offsets, ..Edges::of(graph) }, messages, sums)
}

pub(crate) fn sum_along<M, S>(edges: Edges<'_>, messages: Messages<'_, M, S>, sums: &mut [S]) -> Result<()>
where
    M: Copy + Sync,
    S: Sum<M>,
{
    let Messages { width, values: messages, weights } = messages;
    if !(1..=MAX_WIDTH).contains(&width) {
        let message = format!("messages of width {width} are not supported: the width is 1 to {MAX_WIDTH}");
        return Err(Problem::Invalid(message).into());
    }
    check_length("list of messages", messages.len(), edges.messages * width)?;
    check_length("list of sums", sums.len(), edges.receivers() * width)?;
    if let Some(weights) = weights {
        check_length("list of weights", weights.len(), edges.messages)?;
    }
    let terms = longest_row(edges.offsets);
    if !S::holds(terms, weights) {
        let message = format!("a sum of {terms} messages could overflow its integer type");
        return Err(Problem::TooLarge(message).into());
    }
    let arch = pulp::Arch::new();
    let blocks = row_blocks(edges.offsets, RowWidth::Fixed(width), sums, BLOCKS);
    blocks.into_par_iter().for_each(|(block, sums)| {
        let rows = RowBlock { offsets: &edges.offsets[block.start..=block.end], senders: edges.senders };
        match weights {
            None => arch.dispatch(SumRows { rows, width, messages, weigh: |_, value: S| value, sums }),
            Some(weights) => {
                let weigh = |j: usize, value: S| value.times(weights[j]);
                arch.dispatch(SumRows { rows, width, messages, weigh, sums });
            }
        }
    });
    Ok(())
}

pub(crate) fn check_length(what: &str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Problem::Length { what: what.into(), found: found as u64, expected: expected as u64 }.into())
}

/// The work on one block of rows. A type rather than a closure, because only a function that is always inlined
/// is sure to be compiled for the vector instructions that were found.
struct SumRows<'a, M, S, W> {
    rows: RowBlock<'a>,
    width: usize,
    messages: &'a [M],
    weigh: W,
    sums: &'a mut [S],
}

impl<M: Copy, S: Sum<M>, W: Fn(usize, S) -> S + Copy> pulp::WithSimd for SumRows<'_, M, S, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<V: pulp::Simd>(self, _: V) {
        self.rows.sum(self.width, self.messages, self.weigh, self.sums);
    }
}

/// A block of rows: its own offsets, into the senders of the whole graph.
#[derive(Clone, Copy)]
struct RowBlock<'a> {
    offsets: &'a [u64],
    senders: &'a [u32],
}

impl RowBlock<'_> {
    #[inline(always)]
    fn sum<M: Copy, S: Sum<M>>(
        self,
        width: usize,
        messages: &[M],
        weigh: impl Fn(usize, S) -> S + Copy,
        sums: &mut [S],
    ) {
        match width {
            1 => self.sum_fixed::<M, S, 1, 4>(messages, weigh, sums),
            2 => self.sum_fixed::<M, S, 2, 4>(messages, weigh, sums),
            4 => self.sum_fixed::<M, S, 4, 4>(messages, weigh, sums),
            6 => self.sum_fixed::<M, S, 6, 4>(messages, weigh, sums),
            8 => self.sum_fixed::<M, S, 8, 4>(messages, weigh, sums),
            16 => self.sum_fixed::<M, S, 16, 2>(messages, weigh, sums),
            32 => self.sum_fixed::<M, S, 32, 1>(messages, weigh, sums),
            64 => self.sum_fixed::<M, S, 64, 1>(messages, weigh, sums),
            _ => self.sum_any(width, messages, weigh, sums),
        }
    }

    #[inline(always)]
    fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.offsets.windows(2).map(|w| &self.senders[w[0] as usize..w[1] as usize])
    }

    /// Rows of a width known to the compiler, `LANES` edges at a time into sums of their own, so that an
    /// addition does not wait for the one before.
    #[inline(always)]
    fn sum_fixed<M: Copy, S: Sum<M>, const W: usize, const LANES: usize>(
        self,
        messages: &[M],
        weigh: impl Fn(usize, S) -> S,
        sums: &mut [S],
    ) {
        let messages = messages.as_chunks::<W>().0;
        for (senders, sum) in self.iter().zip(sums.as_chunks_mut::<W>().0) {
            let mut lanes = [[S::default(); W]; LANES];
            let (groups, rest) = senders.as_chunks::<LANES>();
            for group in groups {
                for (lane, &j) in lanes.iter_mut().zip(group) {
                    let message = &messages[j as usize];
                    for k in 0..W {
                        lane[k] = lane[k].plus(weigh(j as usize, S::from_message(message[k])));
                    }
                }
            }
            let mut total = lanes[0];
            for lane in &lanes[1..] {
                for k in 0..W {
                    total[k] = total[k].plus(lane[k]);
                }
            }
            for &j in rest {
                let message = &messages[j as usize];
                for k in 0..W {
                    total[k] = total[k].plus(weigh(j as usize, S::from_message(message[k])));
                }
            }
            *sum = total;
        }
    }

    /// Rows of any other width.
    #[inline(always)]
    fn sum_any<M: Copy, S: Sum<M>>(
        self,
        width: usize,
        messages: &[M],
        weigh: impl Fn(usize, S) -> S,
        sums: &mut [S],
    ) {
        for (senders, sum) in self.iter().zip(sums.chunks_exact_mut(width)) {
            sum.fill(S::default());
            for &j in senders {
                let message = &messages[j as usize * width..][..width];
                for (total, &value) in sum.iter_mut().zip(message) {
                    *total = total.plus(weigh(j as usize, S::from_message(value)));
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "aggregate_tests.rs"]
mod tests;
