//! Training and evaluation: passes over many rows, cut into chunks that do not depend on the number of threads.

pub(crate) mod clipped;
pub(crate) mod evaluate;
pub(crate) mod full_batch;
pub(crate) mod mini_batch;
pub(crate) mod sink;

use crate::error::{Result, check_length};
use crate::network::Network;
use crate::optim::Optimiser;

/// Rows in the smallest chunk worth a thread's attention.
const CHUNK: usize = 2048;
/// The most chunks: each has gradient sums of its own.
const CHUNKS: usize = 64;

/// Cuts rows into a power of two of chunks of about the same size; only their number decides how.
pub(crate) fn chunks(rows: &[u32]) -> Vec<&[u32]> {
    let count = rows.len().div_ceil(CHUNK).next_power_of_two().min(CHUNKS);
    let size = rows.len().div_ceil(count).next_multiple_of(crate::block::BLOCK);
    rows.chunks(size.max(1)).collect()
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
    optimiser.step(&mut network.parameters, &ranges, gradient);
    Ok(())
}
