//! Damaged copies of a file.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// So many damaged copies: cut short, with bytes flipped, with numbers made extreme, or with a run copied
/// elsewhere. The same seed gives the same copies.
pub fn mutations(original: &[u8], count: usize, seed: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..count).map(move |round| {
        let mut below = |limit: usize| (rng.next_u64() % limit.max(1) as u64) as usize;
        let mut copy = original.to_vec();
        // Headers are where forgeries hurt: half of the damage goes to the first bytes.
        let reach = if below(2) == 0 { original.len() } else { original.len().min(256) };
        match round % 4 {
            0 => copy.truncate(below(original.len())),
            1 => {
                for _ in 0..=below(4) {
                    let at = below(reach);
                    copy[at] ^= 1 << below(8);
                }
            }
            2 => {
                let extremes: [[u8; 8]; 4] =
                    [[0xff; 8], [0; 8], i64::MAX.to_le_bytes(), (1u64 << 40).to_le_bytes()];
                let (at, number) = (below(reach), extremes[below(4)]);
                let length = [1, 4, 8][below(3)].min(copy.len() - at);
                copy[at..at + length].copy_from_slice(&number[..length]);
            }
            _ => {
                let (from, to) = (below(original.len()), below(original.len()));
                let length = below(64).min(copy.len() - from.max(to));
                copy.copy_within(from..from + length, to);
            }
        }
        copy
    })
}
