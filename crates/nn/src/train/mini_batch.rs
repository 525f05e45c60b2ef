//! An epoch of mini-batches: rows in random order, one step for each group of them.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::error::{Result, check_setting};
use crate::input::Batch;
use crate::layer::Norm;
use crate::network::Network;
use crate::optim::Optimiser;
use crate::train::EpochStats;
use crate::train::full_batch::epoch;

/// One epoch over the rows of a batch, shuffled by `seed`, in mini-batches of `size`; the last may be smaller, and is
/// left out where batch normalisation could not use it (a single row).
///
/// Loss and accuracy are means over the rows, each measured just before its step.
pub fn mini_batches(
    network: &mut Network,
    optimiser: &mut Optimiser,
    batch: Batch<'_>,
    size: usize,
    seed: u64,
) -> Result<EpochStats> {
    let least = if network.architecture().norm == Norm::Batch { 2 } else { 1 };
    check_setting(size >= least, "the size of mini-batches", size, "1 or more (2 with batch normalisation)")?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut rows = batch.rows.to_vec();
    for i in (1..rows.len()).rev() {
        // A multiplied 64-bit draw: off by less than 2^-32, and nothing private depends on it.
        let j = ((u128::from(rng.next_u64()) * (i as u128 + 1)) >> 64) as usize;
        rows.swap(i, j);
    }
    let (mut loss, mut correct, mut seen) = (0.0, 0.0, 0.0);
    for rows in rows.chunks(size).filter(|rows| rows.len() >= least) {
        let stats = epoch(network, optimiser, batch.with_rows(rows), rng.next_u64())?;
        let n = rows.len() as f64;
        (loss, correct, seen) = (loss + stats.loss * n, correct + stats.accuracy * n, seen + n);
    }
    let seen = f64::max(seen, 1.0);
    Ok(EpochStats { loss: loss / seen, accuracy: correct / seen })
}
