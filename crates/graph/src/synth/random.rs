//! Random numbers that never change: the same on every machine, with every version of every library.
//!
//! Each purpose and each node has a stream of its own, so work can be cut over threads in any way and a
//! stream can be replayed instead of stored. Only integer arithmetic and the four IEEE operations are used;
//! `exp` and `ln` of the system's mathematical library differ in the last bit between platforms.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The purpose of a stream: streams of different purposes are independent.
#[derive(Clone, Copy)]
#[repr(u64)]
pub(super) enum Purpose {
    Labels = 1,
    Cohort = 2,
    Weight = 3,
    Neighbours = 4,
    Pilot = 5,
    Known = 6,
    Centre = 7,
    Row = 8,
    /// The first column of features; the others follow.
    Column = 1 << 32,
}

/// The generator of one purpose and index.
pub(super) struct Stream(Xoshiro256PlusPlus);

impl Stream {
    pub(super) fn new(seed: u64, purpose: Purpose, index: u64) -> Stream {
        Stream::numbered(seed, purpose as u64, index)
    }

    /// The stream of a node in the column of features of that number.
    pub(super) fn column(seed: u64, column: usize, node: u64) -> Stream {
        Stream::numbered(seed, Purpose::Column as u64 + column as u64, node)
    }

    fn numbered(seed: u64, purpose: u64, index: u64) -> Stream {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let key = scramble(scramble(seed.wrapping_add(GOLDEN)) ^ purpose);
        let mut state = scramble(key.wrapping_add(index));
        let mut bytes = [0; 32];
        for word in bytes.chunks_exact_mut(8) {
            state = state.wrapping_add(GOLDEN);
            word.copy_from_slice(&scramble(state).to_le_bytes());
        }
        Stream(Xoshiro256PlusPlus::from_seed(bytes))
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0..limit; the bias of the multiplication is below `limit / 2^64`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.bits()) * limit as u128) >> 64) as usize
    }

    /// About standard normal and never beyond 6: the sum of twelve uniforms.
    pub(super) fn bell(&mut self) -> f64 {
        let mut sum = 0;
        for _ in 0..3 {
            let bits = self.bits();
            sum += (0..4).map(|part| (bits >> (16 * part)) & 0xffff).sum::<u64>();
        }
        (sum as f64 + 6.0) / 65536.0 - 6.0
    }

    /// As [`Stream::bell`] from one draw, never beyond 3.5: the sum of four uniforms.
    pub(super) fn coarse_bell(&mut self) -> f64 {
        let bits = self.bits();
        let sum = (0..4).map(|part| (bits >> (16 * part)) & 0xffff).sum::<u64>();
        // Each has the variance 1 / 12.
        ((sum as f64 + 2.0) / 65536.0 - 2.0) * 1.732_050_807_568_877_2
    }

    /// The position of the first cumulative chance above a uniform draw; `None` if it is above them all.
    pub(super) fn choose(&mut self, cumulative: &[f64]) -> Option<usize> {
        let draw = self.unit();
        let at = cumulative.partition_point(|&chance| chance <= draw);
        (at < cumulative.len()).then_some(at)
    }
}

/// The finaliser of SplitMix64: a permutation of the 64-bit numbers in which every bit depends on every bit.
fn scramble(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `e^x`, with the same bits everywhere.
pub(super) fn exp(x: f64) -> f64 {
    use std::f64::consts::LN_2;
    let x = x.clamp(-700.0, 700.0);
    let power = (x / LN_2 + 0.5).floor();
    let rest = x - power * LN_2;
    // |rest| <= ln(2) / 2: the term after the last is below 1e-17.
    let sum = INVERSES.iter().rev().fold(1.0, |sum, inverse| 1.0 + sum * (rest * inverse));
    sum * f64::from_bits(((power as i64 + 1023) as u64) << 52)
}

/// 1, 1/2, 1/3 and so on.
const INVERSES: [f64; 14] = {
    let mut inverses = [0.0; 14];
    let mut n = 0;
    while n < inverses.len() {
        inverses[n] = 1.0 / (n + 1) as f64;
        n += 1;
    }
    inverses
};

/// `ln x` for positive normal `x`, with the same bits everywhere.
pub(super) fn ln(x: f64) -> f64 {
    use std::f64::consts::{LN_2, SQRT_2};
    let bits = x.to_bits();
    let mut power = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa > SQRT_2 {
        mantissa /= 2.0;
        power += 1;
    }
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let sum = (0..12).rev().fold(0.0, |sum, n| sum * t * t + 1.0 / f64::from(2 * n + 1));
    power as f64 * LN_2 + 2.0 * t * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_streams_are_pinned() {
        let mut stream = Stream::new(1, Purpose::Neighbours, 2);
        let first = [stream.bits(), stream.bits()];
        // Computed with the published definitions of SplitMix64 and xoshiro256++ in another language.
        assert_eq!(first, [0x6d451136c92057b7, 0x748919ae260d40b]);
        assert_ne!(Stream::new(1, Purpose::Weight, 2).bits(), first[0]);
        assert_ne!(Stream::new(1, Purpose::Neighbours, 3).bits(), first[0]);
        assert_ne!(Stream::new(2, Purpose::Neighbours, 2).bits(), first[0]);
    }

    #[test]
    fn exp_and_ln_agree_with_the_system() {
        for step in -600..600 {
            let x = f64::from(step) * 0.37;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-13, "{x}");
            assert!((ln(x.exp()) - x).abs() < 1e-13 * x.abs().max(1.0), "{x}");
        }
    }

    #[test]
    fn uniform_and_bell_have_their_moments() {
        let mut stream = Stream::new(5, Purpose::Pilot, 0);
        let draws = 40_000;
        let (mut mean, mut square, mut unit) = (0.0, 0.0, 0.0);
        for _ in 0..draws {
            let x = stream.bell();
            mean += x / f64::from(draws);
            square += x * x / f64::from(draws);
            unit += stream.unit() / f64::from(draws);
        }
        // Six standard errors each.
        assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.045 && (unit - 0.5).abs() < 0.009);
    }
}
