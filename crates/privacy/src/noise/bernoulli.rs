//! Coins with exact probabilities, and randomised response built on them.
//!
//! A floating-point comparison `uniform() < p` has holes: some outcomes can only occur for one of two
//! neighbouring inputs. Here every probability is an integer ratio and every comparison is of integers.

use std::num::NonZeroU64;

use super::source::Source;
use super::stream::Stream;
use crate::error::{Error, Result, check_epsilon};
use crate::event::Event;

/// A coin that shows `true` with a probability that is a multiple of 2^-128.
///
/// # Proof definition
/// For every `p` in `[0, 1]`, samples are independent and `P(true)` is `p` rounded down to a multiple of
/// 2^-128, exactly. Every double of at least 2^-75 is such a multiple already, so nothing is rounded there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bernoulli {
    /// `None` for probability one, which 128 bits cannot hold.
    threshold: Option<u128>,
}

impl Bernoulli {
    /// A coin with probability `p`.
    ///
    /// # Errors
    /// A `p` outside `[0, 1]`, or not a number.
    pub fn new(p: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::invalid("probability", p, "between 0 and 1"));
        }
        // Scaling by a power of two is exact, and the cast truncates: no rounding up anywhere.
        let threshold = (p < 1.0).then_some((p * 2f64.powi(128)) as u128);
        Ok(Self { threshold })
    }

    /// A coin with probability `bits / 2^128`.
    pub fn from_bits(bits: u128) -> Self {
        Self { threshold: Some(bits) }
    }

    /// One toss: 32 bits are compared first, 96 more only on a tie.
    #[inline]
    pub fn sample<S: Source>(self, stream: &mut Stream<S>) -> bool {
        let Some(threshold) = self.threshold else { return true };
        let (leading, drawn) = ((threshold >> 96) as u32, stream.next_u32());
        if drawn == leading { below_rest(threshold, stream) } else { drawn < leading }
    }

    /// The items whose toss shows `true`, one toss each: eight bits are compared first, 120 more only on a tie. Reads a
    /// quarter of the words that tossing with [`sample`](Self::sample) does, in another order.
    pub fn choose<S: Source, T: Copy>(self, stream: &mut Stream<S>, items: &[T]) -> Vec<T> {
        const AT_ONCE: usize = 16;
        let Some(threshold) = self.threshold else { return items.to_vec() };
        let leading = (threshold >> 120) as u8;
        let mut chosen = Vec::new();
        let mut left = items;
        while !left.is_empty() {
            let (bytes, read) = stream.bytes(left.len());
            let (now, after) = left.split_at(read);
            for (drawn, items) in bytes[..read].chunks(AT_ONCE).zip(now.chunks(AT_ONCE)) {
                // Few are chosen: most groups are passed over in one comparison.
                if !drawn.iter().fold(false, |any, &byte| any | (byte <= leading)) {
                    continue;
                }
                for (&byte, &item) in drawn.iter().zip(items) {
                    if byte < leading || (byte == leading && below_rest_of_120(threshold, stream)) {
                        chosen.push(item);
                    }
                }
            }
            left = after;
        }
        chosen
    }
}

/// Whether 120 more bits are below those of the threshold.
#[cold]
fn below_rest_of_120<S: Source>(threshold: u128, stream: &mut Stream<S>) -> bool {
    stream.next_u128() >> 8 < threshold & (u128::MAX >> 8)
}

/// Whether 96 more bits are below those of the threshold.
#[cold]
fn below_rest<S: Source>(threshold: u128, stream: &mut Stream<S>) -> bool {
    let drawn = u128::from(stream.next_u32()) << 64 | u128::from(stream.next_u64());
    drawn < threshold & (u128::MAX >> 32)
}

/// A coin that shows `true` with probability `numerator / denominator`, exactly; always `true` from one up.
pub fn ratio<S: Source>(stream: &mut Stream<S>, numerator: u64, denominator: NonZeroU64) -> bool {
    stream.below(denominator) < numerator
}

/// A coin that shows `true` with probability `exp(-numerator / denominator)`, exactly.
///
/// # Proof definition
/// With `x = numerator / denominator <= 1`, let `k` be the first index at which a coin of probability `x / k`
/// fails: `P(k > j) = x^j / j!`, so `k` is odd with probability `1 - x + x^2/2 - ... = exp(-x)`
/// (von Neumann; Canonne, Kamath and Steinke 2020). Larger `x` are split into ones and a rest. The number of
/// words read depends on `x` and on random words.
pub fn exp_neg<S: Source>(stream: &mut Stream<S>, numerator: u64, denominator: NonZeroU64) -> bool {
    let (ones, rest) = (numerator / denominator, numerator % denominator);
    (0..ones).all(|_| exp_neg_below_one(stream, 1, NonZeroU64::MIN))
        && exp_neg_below_one(stream, rest, denominator)
}

fn exp_neg_below_one<S: Source>(stream: &mut Stream<S>, numerator: u64, denominator: NonZeroU64) -> bool {
    let mut k = NonZeroU64::MIN;
    // A coin of probability x / k as two coins, x and 1 / k: the product could overflow.
    while ratio(stream, numerator, denominator) && ratio(stream, 1, k) {
        k = k.saturating_add(1);
    }
    k.get() % 2 == 1
}

/// Randomised response on one bit: the bit is flipped with probability at least `1 / (1 + e^epsilon)`.
///
/// # Proof definition
/// For every `epsilon > 0`, the report of a bit is `epsilon`-differentially private with respect to that bit.
/// The flip probability is a double rounded up, and the coin uses that double exactly, so the realised epsilon
/// is never above the one asked for (docs/privacy.md#randomised-response).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomisedResponse {
    flip_probability: f64,
    flip: Bernoulli,
}

impl RandomisedResponse {
    /// The mechanism for a given `epsilon`.
    ///
    /// # Errors
    /// An `epsilon` that is not a positive number, or above 50, where a flip is rarer than 2^-72.
    pub fn new(epsilon: f64) -> Result<Self> {
        if check_epsilon(epsilon)? > 50.0 {
            return Err(Error::invalid("epsilon", epsilon, "at most 50 for randomised response"));
        }
        // The quotient is within 4 units in the last place; 2^-48 is sixteen of them.
        let flip_probability = ((1.0 + 2f64.powi(-48)) / (1.0 + epsilon.exp())).min(0.5);
        Ok(Self { flip_probability, flip: Bernoulli::new(flip_probability)? })
    }

    /// The probability of a flip, exactly as used.
    pub fn flip_probability(self) -> f64 {
        self.flip_probability
    }

    /// The report of one bit.
    #[inline]
    pub fn report<S: Source>(self, stream: &mut Stream<S>, bit: bool) -> bool {
        bit ^ self.flip.sample(stream)
    }

    /// What this mechanism is to an accountant.
    pub fn event(self) -> Event {
        Event::RandomizedResponse {
            true_positive: 1.0 - self.flip_probability,
            false_positive: self.flip_probability,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Randomness;

    /// The words of a 128-bit number, the first first.
    fn words(bits: u128) -> [u32; 4] {
        [96, 64, 32, 0].map(|shift| (bits >> shift) as u32)
    }

    /// Steered tosses around the threshold: below it, at it, and above it, wherever the first difference is.
    #[test]
    fn a_tie_is_decided_by_the_other_96_bits() {
        let threshold = 0x1234_5678_9abc_def0_0fed_cba9_8765_4321_u128;
        let coin = Bernoulli::from_bits(threshold);
        for shift in [0, 31, 32, 63, 64, 95, 96, 120] {
            for (drawn, shows) in
                [(threshold - (1 << shift), true), (threshold, false), (threshold + (1 << shift), false)]
            {
                assert_eq!(coin.sample(&mut Stream::scripted(&words(drawn))), shows, "{drawn:x}");
                // The first byte, with three that are not used, then the rest in four words of which eight bits are not used.
                let rest = words(drawn << 8);
                let script = [(drawn >> 120) as u32, rest[0], rest[1], rest[2], rest[3]];
                let chosen = coin.choose(&mut Stream::scripted(&script), &[7]);
                assert_eq!(chosen, vec![7; usize::from(shows)], "{drawn:x}");
            }
        }
    }

    /// Every item has its own coin: shares within five standard deviations (a false alarm in 10^6 runs), independent of the
    /// place in a group or a buffer, and nothing is chosen twice or out of order.
    #[test]
    fn choosing_is_one_toss_for_each_item() {
        let items: Vec<u32> = (0..5000).collect();
        let rounds = 400;
        for p in [0.0, 1e-3, 0.018, 1.0 / 256.0, 0.5, 0.999, 1.0] {
            let coin = Bernoulli::new(p).unwrap();
            let mut stream = Randomness::from_seed(5).purpose("coins").unwrap().stream();
            let mut by_place = [[0u32; 16], [0; 16]];
            let mut total = 0;
            for _ in 0..rounds {
                let chosen = coin.choose(&mut stream, &items);
                assert!(chosen.is_sorted_by(|a, b| a < b));
                total += chosen.len();
                for &item in &chosen {
                    by_place[0][item as usize % 16] += 1;
                    by_place[1][item as usize * 16 / 5000] += 1;
                }
            }
            let near = |count: f64, tosses: f64| {
                assert!((count - p * tosses).abs() <= 5.0 * (tosses * p * (1.0 - p)).sqrt(), "{p}: {count}");
            };
            let tosses = f64::from(rounds) * 5000.0;
            near(total as f64, tosses);
            for (place, &count) in by_place[0].iter().enumerate() {
                let here = (place..5000).step_by(16).count();
                near(f64::from(count), f64::from(rounds) * here as f64);
            }
            for (place, &count) in by_place[1].iter().enumerate() {
                let here = (0..5000).filter(|item| item * 16 / 5000 == place).count();
                near(f64::from(count), f64::from(rounds) * here as f64);
            }
        }
    }

    /// Ties read their bits after the bytes of the group, one tie after the other.
    #[test]
    fn ties_between_other_tosses_are_decided_one_by_one() {
        let coin = Bernoulli::from_bits(9 << 120 | 5 << 96);
        let items: Vec<u32> = (0..6).collect();
        let script = [
            u32::from_le_bytes([8, 9, 10, 9]),
            u32::from_le_bytes([9, 0, 0, 0]),
            4 << 8,
            0,
            0,
            0,
            5 << 8,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        ];
        assert_eq!(coin.choose(&mut Stream::scripted(&script), &items), [0, 1, 4, 5]);
    }
}
