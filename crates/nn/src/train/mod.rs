//! Training and evaluation: passes over many rows, cut into chunks that do not depend on the number of threads.

pub(crate) mod clipped;
pub(crate) mod evaluate;
pub(crate) mod full_batch;
pub(crate) mod mini_batch;
pub(crate) mod sink;

use rayon::prelude::*;

use crate::block::{BLOCK, Scratch, Trace};
use crate::error::{Result, check_length};
use crate::network::Network;
use crate::optim::Optimiser;
use crate::pool::Lent;

/// Rows in the smallest chunk worth a thread's attention.
const CHUNK: usize = 2048;
/// The most chunks: each has gradient sums of its own.
const CHUNKS: usize = 64;

/// Cuts rows into a power of two of chunks of about the same size; only their number decides how.
pub(crate) fn chunks(rows: &[u32]) -> Vec<&[u32]> {
    let count = rows.len().div_ceil(CHUNK).next_power_of_two().min(CHUNKS);
    let size = rows.len().div_ceil(count).next_multiple_of(BLOCK);
    rows.chunks(size.max(1)).collect()
}

/// Who lends the memory of a pass.
pub(crate) trait Lender<'n>: Copy + Sync + 'n {
    /// For one block at a time.
    type Scratch: Send;
    /// What a block of rows gave in one pass that another needs.
    type Trace: Send;
    fn scratch(self) -> Lent<'n, Self::Scratch>;
    fn trace(self) -> Lent<'n, Self::Trace>;
    /// How many values a trace has.
    fn trace_values(self) -> usize;
}

impl<'n> Lender<'n> for &'n Network {
    type Scratch = Scratch;
    type Trace = Trace;

    fn scratch(self) -> Lent<'n, Scratch> {
        Network::scratch(self)
    }

    fn trace(self) -> Lent<'n, Trace> {
        Network::trace(self)
    }

    fn trace_values(self) -> usize {
        Trace::values(self)
    }
}

/// Rows of a chunk, its part, and the traces of its blocks.
type Chunk<'a, 'p, P, T> = ((&'a [u32], &'p mut P), &'p mut [T]);

/// The traces of blocks between passes over the same rows: kept, one for each block, or written over.
pub(crate) struct Traces<'n, L: Lender<'n>> {
    lender: L,
    kept: Option<Vec<Lent<'n, L::Trace>>>,
    /// Every second pass goes backwards: it begins with what the one before left in cache.
    backwards: bool,
}

impl<'n, L: Lender<'n>> Traces<'n, L> {
    /// Kept if they have at most so many values.
    pub fn new(lender: L, rows: &[u32], most: usize) -> Self {
        let blocks = rows.len().div_ceil(BLOCK);
        let fits = blocks * lender.trace_values() <= most;
        Traces { lender, kept: fits.then(|| (0..blocks).map(|_| lender.trace()).collect()), backwards: false }
    }

    pub fn recomputed(lender: L) -> Self {
        Traces { lender, kept: None, backwards: false }
    }

    pub fn are_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Does `work` on every block of rows, chunks in parallel; each chunk has a part of its own.
    pub fn pass<'a, P: Send>(
        &mut self,
        rows: &'a [u32],
        parts: &mut [P],
        work: impl Fn(&mut L::Scratch, &mut L::Trace, &'a [u32], &mut P) + Sync,
    ) {
        let (chunks, lender) = (chunks(rows), self.lender);
        let size = chunks.first().map_or(1, |chunk| chunk.len().div_ceil(BLOCK));
        let chunks = chunks.into_par_iter().zip(parts);
        match &mut self.kept {
            Some(traces) => {
                let backwards = self.backwards;
                self.backwards = !backwards;
                let one =
                    |scratch: &mut Lent<'n, L::Scratch>,
                     ((chunk, part), traces): Chunk<'a, '_, P, Lent<'n, L::Trace>>| {
                        let mut blocks = chunk.chunks(BLOCK).zip(traces);
                        while let Some((rows, trace)) =
                            if backwards { blocks.next_back() } else { blocks.next() }
                        {
                            work(scratch, trace, rows, part);
                        }
                    };
                let chunks = chunks.zip(traces.par_chunks_mut(size));
                match backwards {
                    true => chunks.rev().for_each_init(|| lender.scratch(), one),
                    false => chunks.for_each_init(|| lender.scratch(), one),
                }
            }
            None => chunks.for_each_init(
                || (lender.scratch(), lender.trace()),
                |(scratch, trace), (chunk, part)| {
                    for rows in chunk.chunks(BLOCK) {
                        work(scratch, trace, rows, part);
                    }
                },
            ),
        }
    }
}

/// The sum of lists of the same length, in double precision.
pub(crate) fn total<'p>(lists: impl Iterator<Item = &'p [f32]>) -> Vec<f64> {
    let mut totals = vec![];
    for list in lists {
        totals.resize(list.len(), 0.0);
        for (total, value) in totals.iter_mut().zip(list) {
            *total += f64::from(*value);
        }
    }
    totals
}

/// Loss and accuracy over a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpochStats {
    /// The mean cross-entropy.
    pub loss: f64,
    /// The share of rows whose class got the largest logit.
    pub accuracy: f64,
}

/// One step of the optimiser with a gradient by the trained parameters, in the order of [`Network::trained`].
pub fn apply(network: &mut Network, optimiser: &mut Optimiser, gradient: &[f32]) -> Result<()> {
    check_length("gradient", gradient.len(), network.trained_count())?;
    let ranges = network.trained();
    optimiser.step(&mut network.values.parameters, &ranges, gradient);
    Ok(())
}
