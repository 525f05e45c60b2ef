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
/// is never above the one asked for ([proof](crate::proofs::randomised_response)).
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

    /// The event that accountants read.
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
            }
        }
    }
}
