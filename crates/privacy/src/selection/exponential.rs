//! One of a list, with odds that grow with its score.

use std::num::NonZeroU64;

use crate::error::{Error, Result, check_epsilon};
use crate::noise::bernoulli::exp_neg;
use crate::noise::{Source, Stream};

/// The exponential mechanism on integer scores, sampled exactly.
///
/// # Proof definition
/// For scores `u_i` of which neighbouring data sets move every one by at most `sensitivity` (for example numbers
/// of correct validation rows, sensitivity 1), the index `i` is chosen with probability proportional to
/// `exp(epsilon u_i / (2 sensitivity))`, exactly, where `epsilon` is [`epsilon`](Self::epsilon): the value asked
/// for, rounded down to a multiple of 2^-20. The choice is `epsilon`-differentially private, with no `delta` and no
/// floating-point hole: indices are proposed uniformly and kept with probability
/// `exp(-epsilon (max - u_i) / (2 sensitivity))` by exact coins. The *number* of proposals depends on the scores;
/// it must not be shown, and where an observer can measure time at that grain it is not covered.
/// See docs/privacy.md#model-selection.
///
/// ```
/// use progap_privacy::{noise::Randomness, selection::ExponentialMechanism};
/// let correct = [1200, 1312, 1298];
/// let mut stream = Randomness::from_os().purpose("choose epoch")?.stream();
/// let best = ExponentialMechanism::new(1.0, 1)?.select(&correct, &mut stream)?;
/// assert!(best < 3);
/// # Ok::<(), progap_privacy::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExponentialMechanism {
    /// epsilon in units of 2^-20.
    epsilon_parts: u64,
    /// 2 sensitivity in units of 2^-20.
    denominator: NonZeroU64,
}

const PARTS: u64 = 1 << 20;

impl ExponentialMechanism {
    /// A mechanism with privacy `epsilon` for scores that move by at most `sensitivity`.
    ///
    /// # Errors
    /// An `epsilon` below 2^-20 or above 100, or a sensitivity of zero or above 2^32.
    pub fn new(epsilon: f64, sensitivity: u64) -> Result<Self> {
        let epsilon_parts = (check_epsilon(epsilon)? * PARTS as f64) as u64;
        if epsilon_parts == 0 || epsilon > 100.0 {
            return Err(Error::invalid("epsilon", epsilon, "between 2^-20 and 100"));
        }
        let denominator = NonZeroU64::new(sensitivity)
            .filter(|sensitivity| sensitivity.get() <= 1 << 32)
            .and_then(|sensitivity| sensitivity.checked_mul(NonZeroU64::new(2 * PARTS)?))
            .ok_or_else(|| Error::invalid("score sensitivity", sensitivity, "between 1 and 2^32"))?;
        Ok(Self { epsilon_parts, denominator })
    }

    /// The privacy that holds, at most what was asked for.
    pub fn epsilon(self) -> f64 {
        self.epsilon_parts as f64 / PARTS as f64
    }

    /// Choose an index.
    ///
    /// # Errors
    /// An empty list.
    pub fn select<S: Source>(self, scores: &[i64], stream: &mut Stream<S>) -> Result<usize> {
        let (Some(&best), Some(count)) = (scores.iter().max(), NonZeroU64::new(scores.len() as u64)) else {
            return Err(Error::invalid("scores", "empty", "at least one candidate"));
        };
        loop {
            let index = stream.below(count) as usize;
            if exp_neg_wide(stream, best.abs_diff(scores[index]), self.epsilon_parts, self.denominator) {
                return Ok(index);
            }
        }
    }
}

/// A coin of probability `exp(-gap * parts / denominator)`, for a product that may exceed 64 bits.
fn exp_neg_wide<S: Source>(stream: &mut Stream<S>, gap: u64, parts: u64, denominator: NonZeroU64) -> bool {
    let product = u128::from(gap) * u128::from(parts);
    let whole = u128::from(denominator.get());
    let (ones, rest) = (product / whole, (product % whole) as u64);
    exp_neg(stream, rest, denominator) && (0..ones).all(|_| exp_neg(stream, 1, NonZeroU64::MIN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Randomness;

    /// 100,000 choices among 5: chi-square with 4 degrees of freedom exceeds 30.7 with probability 3.5e-6. Fixed seed.
    #[test]
    fn odds_follow_the_scores() {
        let mut stream = Randomness::from_seed(3).purpose("choice").unwrap().stream();
        for (epsilon, sensitivity, scores) in
            [(1.0, 1, [10, 12, 11, 7, 12]), (0.25, 2, [0, -9, 4, 4, 20]), (3.0, 1, [5, 5, 5, 5, 4])]
        {
            let mechanism = ExponentialMechanism::new(epsilon, sensitivity).unwrap();
            let draws = 100_000;
            let mut counts = [0_u32; 5];
            for _ in 0..draws {
                counts[mechanism.select(&scores, &mut stream).unwrap()] += 1;
            }
            let odds = scores.map(|u| (epsilon * u as f64 / (2.0 * sensitivity as f64)).exp());
            let total: f64 = odds.iter().sum();
            let chi: f64 = counts
                .iter()
                .zip(odds)
                .map(|(&count, odd)| {
                    let expected = f64::from(draws) * odd / total;
                    (f64::from(count) - expected).powi(2) / expected
                })
                .sum();
            assert!(chi < 30.7, "chi-square {chi} for {scores:?}");
        }
    }

    #[test]
    fn extreme_scores_neither_overflow_nor_hang() {
        let mut stream = Randomness::from_seed(4).purpose("extreme").unwrap().stream();
        let mechanism = ExponentialMechanism::new(100.0, 1).unwrap();
        assert_eq!(mechanism.select(&[i64::MIN, i64::MAX, 0], &mut stream).unwrap(), 1);
        let weak = ExponentialMechanism::new(1e-5, 1 << 32).unwrap();
        assert!(weak.select(&[i64::MIN, i64::MAX], &mut stream).is_ok());
        assert!(mechanism.select(&[], &mut stream).is_err());
    }

    #[test]
    fn parameters_are_checked() {
        for epsilon in [0.0, -1.0, f64::NAN, 1e-9, 1e3] {
            assert!(ExponentialMechanism::new(epsilon, 1).is_err(), "{epsilon}");
        }
        assert!(ExponentialMechanism::new(1.0, 0).is_err());
        assert!(ExponentialMechanism::new(0.1, 1).unwrap().epsilon() <= 0.1);
    }
}
