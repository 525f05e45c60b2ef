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

/// What becomes of the traces of blocks between passes over the same rows.
pub(crate) enum Traces<'n> {
    /// They are kept, one for each block.
    Kept(Vec<Lent<'n, Trace>>),
    /// They are written over.
    Recomputed,
}

impl<'n> Traces<'n> {
    /// Kept if they have at most so many values.
    pub fn new(network: &'n Network, rows: &[u32], most: usize) -> Self {
        let blocks = rows.len().div_ceil(BLOCK);
        match blocks * Trace::values(network) <= most {
            true => Traces::Kept((0..blocks).map(|_| network.trace()).collect()),
            false => Traces::Recomputed,
        }
    }

    /// Does `work` on every block of rows, chunks in parallel; each chunk has a part of its own.
    pub fn pass<'a, P: Send>(
        &mut self,
        network: &Network,
        rows: &'a [u32],
        parts: &mut [P],
        work: impl Fn(&mut Scratch, &mut Trace, &'a [u32], &mut P) + Sync,
    ) {
        let chunks = chunks(rows);
        let size = chunks.first().map_or(1, |chunk| chunk.len().div_ceil(BLOCK));
        let chunks = chunks.into_par_iter().zip(parts);
        match self {
            Traces::Kept(traces) => chunks.zip(traces.par_chunks_mut(size)).for_each_init(
                || network.scratch(),
                |scratch, ((chunk, part), traces)| {
                    for (rows, trace) in chunk.chunks(BLOCK).zip(traces) {
                        work(scratch, trace, rows, part);
                    }
                },
            ),
            Traces::Recomputed => chunks.for_each_init(
                || (network.scratch(), network.trace()),
                |(scratch, trace), (chunk, part)| {
                    for rows in chunk.chunks(BLOCK) {
                        work(scratch, trace, rows, part);
                    }
                },
            ),
        }
    }
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
