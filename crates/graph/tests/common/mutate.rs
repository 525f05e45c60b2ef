//! Damaged copies of a file, the same for the same seed.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// This many damaged copies: truncated, with flipped bits, overwritten bytes, extreme words, and parts removed,
/// repeated or moved. No reader may panic on any of them.
pub fn mutations(original: &[u8], count: usize, seed: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = move |limit: usize| (rng.next_u64() % limit.max(1) as u64) as usize;
    (0..count).map(move |at| {
        let mut bytes = original.to_vec();
        let length = bytes.len();
        match at % 6 {
            // Truncations are spread over the whole length, the last few bytes included.
            0 => bytes.truncate(if at % 12 == 0 {
                length * at / count.max(1)
            } else {
                length - below(16.min(length))
            }),
            1 => (0..=below(4)).for_each(|_| flip(&mut bytes, below(length), 1 << below(8))),
            2 => (0..=below(8)).for_each(|_| overwrite(&mut bytes, below(length), &[below(256) as u8])),
            3 => {
                let words = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fff8, 0xffff_ffffu32];
                overwrite(&mut bytes, below(length), &words[below(words.len())].to_le_bytes());
            }
            4 => {
                let start = below(length);
                let end = start + below((length - start).min(64) + 1);
                bytes.drain(start..end);
            }
            _ => {
                let start = below(length);
                let part = bytes[start..start + below((length - start).min(64) + 1)].to_vec();
                let target = below(length);
                bytes.splice(target..target, part);
            }
        }
        bytes
    })
}

fn flip(bytes: &mut [u8], at: usize, bit: u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= bit;
    }
}

fn overwrite(bytes: &mut [u8], at: usize, with: &[u8]) {
    for (byte, &new) in bytes.iter_mut().skip(at).zip(with) {
        *byte = new;
    }
}
