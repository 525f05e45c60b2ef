//! Training and evaluation: passes over many rows, cut into chunks that do not depend on the number of threads.

pub(crate) mod clipped;
pub(crate) mod collective;
pub(crate) mod evaluate;
pub(crate) mod full_batch;
pub(crate) mod sink;
mod totals;

use rayon::prelude::*;

use crate::error::{Result, check_length};
use crate::input::{Batch, Inputs};
use crate::network::Network;
use crate::optim::Optimiser;
use crate::pass::{BLOCK, Block, PreparedNetwork, Scratch, Trace};
use crate::pool::Lent;
use collective::{DistributedBatch, Part};

/// Rows in the smallest chunk worth a thread's attention.
const CHUNK: usize = 2048;
/// The same where every row's gradient is looked at by itself, which takes about ten times as long.
const SAMPLE_CHUNK: usize = 384;
/// The most chunks: each has gradient sums of its own.
const CHUNKS: usize = 64;

/// Cuts rows into a power of two of chunks of about the same size; only the number of rows decides how.
pub(crate) fn chunks(rows: &[u32]) -> Vec<&[u32]> {
    chunks_of(rows, CHUNK)
}

/// As [`chunks`], where a chunk of `least` rows is worth a thread's attention.
fn chunks_of(rows: &[u32], least: usize) -> Vec<&[u32]> {
    rows.chunks(size_of_chunks(rows.len(), least)).collect()
}

/// The rows of every chunk but the last.
fn size_of_chunks(rows: usize, least: usize) -> usize {
    let count = rows.div_ceil(least).next_power_of_two().min(CHUNKS);
    rows.div_ceil(count).next_multiple_of(BLOCK).max(1)
}

/// The rows of each chunk but the last of a batch that a gradient is taken over. A process that holds some rows of a
/// batch holds whole chunks of it.
pub fn chunk_rows(rows: usize) -> usize {
    size_of_chunks(rows, CHUNK)
}

/// As [`chunk_rows`], of a batch whose gradients are clipped row by row.
pub fn sample_chunk_rows(rows: usize) -> usize {
    size_of_chunks(rows, SAMPLE_CHUNK)
}

/// Passes over the blocks of some rows. What one pass leaves for the next, the traces, is kept, one for each block, or
/// written over.
pub(crate) struct Passes<'n, 'a> {
    network: &'n Network,
    inputs: &'a Inputs<'a>,
    rows: &'a [u32],
    /// Rows in each chunk but the last.
    size: usize,
    /// The rows of the batch, and the chunk with which the own rows begin.
    whole: usize,
    first: usize,
    shared: Option<DistributedBatch<'a>>,
    kept: Option<Vec<Lent<'n, Trace>>>,
    /// Every second pass over kept traces goes backwards: it starts with what the one before left in cache.
    backwards: bool,
}

impl<'n, 'a> Passes<'n, 'a> {
    /// Traces are kept if those of the whole batch have at most `most` values.
    pub fn new(network: &'n Network, batch: Batch<'a>, most: usize) -> Self {
        let fits = batch.whole().div_ceil(BLOCK) * Trace::values(network) <= most;
        let blocks = batch.len().div_ceil(BLOCK);
        let kept = fits.then(|| (0..blocks).map(|_| network.trace()).collect());
        Passes { kept, ..Passes::single(network, batch) }
    }

    /// For a single pass.
    pub fn single(network: &'n Network, batch: Batch<'a>) -> Self {
        Passes::in_chunks(network, batch, chunk_rows(batch.whole()))
    }

    /// For a single pass that takes long for each row: smaller chunks are worth a thread's attention.
    pub fn single_of_samples(network: &'n Network, batch: Batch<'a>) -> Self {
        Passes::in_chunks(network, batch, sample_chunk_rows(batch.whole()))
    }

    fn in_chunks(network: &'n Network, batch: Batch<'a>, size: usize) -> Self {
        let (Batch { inputs, rows, shared, .. }, whole) = (batch, batch.whole());
        let first = shared.map_or(0, |shared| shared.first.div_ceil(size));
        Passes { network, inputs, rows, size, whole, first, shared, kept: None, backwards: false }
    }

    /// The own chunks among all.
    fn own(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.rows.len().div_ceil(self.size)
    }

    /// Brings the parts of all processes together, where there are several.
    pub fn gather<P: Part>(&self, parts: &mut [P]) -> Result<()> {
        match &self.shared {
            Some(shared) => collective::gather(shared, parts, self.own()),
            None => Ok(()),
        }
    }

    pub fn are_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// One value for each chunk of the batch.
    pub fn parts<P>(&self, new: impl Fn() -> P) -> Vec<P> {
        (0..self.whole.div_ceil(self.size)).map(|_| new()).collect()
    }

    /// Does `work` on every own block, chunks of them in parallel; each chunk has a part of its own.
    pub fn run<P: Send>(
        &mut self,
        ready: &PreparedNetwork<'_>,
        parts: &mut [P],
        work: impl Fn(&mut Block<'_, 'a>, &mut P) + Sync,
    ) {
        let (network, inputs, size) = (self.network, self.inputs, self.size.div_ceil(BLOCK));
        let chunks = self.rows.par_chunks(self.size).zip(&mut parts[self.own()]);
        let Some(traces) = &mut self.kept else {
            return chunks.for_each_init(
                || (network.scratch(), network.trace()),
                |(scratch, trace), (chunk, part)| {
                    for rows in chunk.chunks(BLOCK) {
                        work(&mut Block { ready, scratch, trace, inputs, rows, resumed: false }, part);
                    }
                },
            );
        };
        let backwards = self.backwards;
        self.backwards = !backwards;
        let one = |scratch: &mut Lent<'n, Scratch>, ((chunk, part), traces): Chunk<'a, '_, 'n, P>| {
            let mut blocks = chunk.chunks(BLOCK).zip(traces);
            while let Some((rows, trace)) = if backwards { blocks.next_back() } else { blocks.next() } {
                work(&mut Block { ready, scratch, trace, inputs, rows, resumed: true }, part);
            }
        };
        let chunks = chunks.zip(traces.par_chunks_mut(size));
        match backwards {
            true => chunks.rev().for_each_init(|| network.scratch(), one),
            false => chunks.for_each_init(|| network.scratch(), one),
        }
    }
}

/// The rows of a chunk, its part, and the traces of its blocks.
type Chunk<'a, 'p, 'n, P> = ((&'a [u32], &'p mut P), &'p mut [Lent<'n, Trace>]);

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

/// One step of the optimiser, with a gradient with respect to the trained parameters in the order of
/// [`Network::trained`].
pub fn apply(network: &mut Network, optimiser: &mut Optimiser, gradient: &[f32]) -> Result<()> {
    check_length("gradient", gradient.len(), network.trained_count())?;
    let ranges = network.trained();
    optimiser.step(&mut network.values.parameters, &ranges, gradient);
    Ok(())
}
