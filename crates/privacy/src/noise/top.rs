//! The places of the largest of a long list of bits with Laplace noise, in time and memory that follow the ones and
//! how many are kept.

use std::collections::HashSet;
use std::num::NonZeroU64;

use super::laplace::{RoundedLaplace, Scale};
use super::source::Source;
use super::stream::Stream;
use crate::error::{Error, Result, check_epsilon};
use crate::event::Event;

/// Laplace noise on every bit of a list, of which the places of the `kept` largest values come out.
///
/// A one counts as 4096, so that values are integers. Only a noisy value of at least a public threshold is looked at,
/// and the others count as equal; the threshold is so low that among the zeros alone about `kept` values pass it.
/// Zeros are not visited one by one: gaps between those that pass are drawn, and what a zero is above the threshold
/// is geometric. Equal values are put in a random order.
///
/// ```
/// use progap_privacy::noise::{Randomness, TopResponse};
///
/// let response = TopResponse::new(8.0, 1_000_000, 1000)?;
/// let mut stream = Randomness::from_seed(1).purpose("bits")?.stream();
/// let reported = response.report(&mut stream, (0..1000).map(|i| i * 1000));
/// assert_eq!(reported.len(), 1000);
/// assert!(reported.iter().filter(|&place| place % 1000 == 0).count() > 500);
/// # Ok::<(), progap_privacy::Error>(())
/// ```
///
/// # Proof definition
/// For every public `epsilon`, length and number of kept places the report is `epsilon`-differentially private with
/// respect to every bit. It is post-processing of values that are drawn for each bit on its own. The value of a one
/// is `4096 + n` with rounded Laplace noise `n` of scale `b >= 4096 / epsilon`; that of a zero is `n`, but for the
/// probability `F` of reaching the threshold `t >= 1`, which is rounded up by a factor of at most `e^(2/b)`. Raised
/// to `t - 1` at the least, both have likelihoods that differ by a factor of at most `e^(4096/b)`
/// ([proof](crate::proofs::top_response)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TopResponse {
    bits: u64,
    kept: u64,
    noise: RoundedLaplace,
    threshold: i64,
    /// Gaps between zeros that reach the threshold.
    gap: Scale,
}

/// What a one counts.
const ONE: u64 = 1 << 12;
/// A zero reaches the threshold at least once in this many times.
const RAREST: f64 = (1u64 << 30) as f64;

impl TopResponse {
    /// The smallest epsilon that is used: below it the rounding of gaps is no longer small beside the noise.
    pub const MIN_EPSILON: f64 = 1.0 / 4096.0;
    /// The largest epsilon that is used: beyond it no zero out of 10^8 passes a one.
    pub const MAX_EPSILON: f64 = 40.0;

    /// The response for a given `epsilon`, a list of this many bits, and how many places are to be kept.
    ///
    /// # Errors
    /// An epsilon out of range, or more places than bits.
    pub fn new(epsilon: f64, bits: u64, kept: u64) -> Result<Self> {
        if kept > bits {
            return Err(Error::invalid("kept places", kept, "at most as many as there are bits"));
        }
        let noise = RoundedLaplace::new(scale(epsilon)?);
        let b = noise.scale().value();
        // Enough zeros reach the threshold to fill every place, but for six standard deviations.
        let wanted = kept as f64 + 6.0 * (kept as f64).sqrt() + 40.0;
        let share = (wanted / ((bits - kept) as f64).max(1.0)).clamp(1.0 / RAREST, 0.5);
        let threshold = (0.5 - b * (2.0 * share).ln()).floor().max(1.0);
        // P(n >= t); one over it is at most 2^31 and at least 2.
        let reached = 0.5 * ((0.5 - threshold) / b).exp();
        let gap = Scale::at_most((-1.0 / (-reached).ln_1p()) * (1.0 - 1e-12))?;
        Ok(Self { bits, kept, noise, threshold: threshold as i64, gap })
    }

    /// What an accountant reads: noise on a value that one bit moves.
    ///
    /// # Errors
    /// An epsilon out of range.
    pub fn event(epsilon: f64) -> Result<Event> {
        RoundedLaplace::new(scale(epsilon)?).event(ONE as f64)
    }

    /// The places that are kept, ascending; `ones` are the places of the ones, ascending.
    pub fn report<S: Source>(&self, stream: &mut Stream<S>, ones: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut high = self.high(stream, ones);
        let kept = self.kept as usize;
        if high.len() > kept {
            // Largest values first; keys, which know no bit, decide among equal ones.
            high.select_nth_unstable_by(kept, |a, b| (b.value, b.key).cmp(&(a.value, a.key)));
            high.truncate(kept);
        }
        let mut places: Vec<u64> = high.into_iter().map(|candidate| candidate.place).collect();
        places.sort_unstable();
        self.fill(stream, places)
    }

    /// All places whose values reach the threshold, ascending.
    fn high<S: Source>(&self, stream: &mut Stream<S>, ones: impl IntoIterator<Item = u64>) -> Vec<Candidate> {
        let mut high = Vec::new();
        let mut passing = self.gap.geometric(stream);
        for one in ones {
            while passing < one {
                high.push(self.zero(stream, passing));
                passing = self.next(stream, passing);
            }
            if passing == one {
                // A one has noise of its own.
                passing = self.next(stream, passing);
            }
            let value = (ONE as i64).saturating_add(self.noise.sample(stream));
            if value >= self.threshold {
                high.push(Candidate { place: one, value, key: stream.next_u64() });
            }
        }
        while passing < self.bits {
            high.push(self.zero(stream, passing));
            passing = self.next(stream, passing);
        }
        high
    }

    fn next<S: Source>(&self, stream: &mut Stream<S>, passing: u64) -> u64 {
        passing.saturating_add(1).saturating_add(self.gap.geometric(stream))
    }

    /// A zero that reaches the threshold: by how much is geometric.
    fn zero<S: Source>(&self, stream: &mut Stream<S>, place: u64) -> Candidate {
        let above = self.noise.scale().geometric(stream) as i64;
        Candidate { place, value: self.threshold.saturating_add(above), key: stream.next_u64() }
    }

    /// Adds places below the threshold, all as likely, until there are as many as are kept.
    fn fill<S: Source>(&self, stream: &mut Stream<S>, mut places: Vec<u64>) -> Vec<u64> {
        let missing = self.kept as usize - places.len();
        let Some(bits) = NonZeroU64::new(self.bits).filter(|_| missing > 0) else { return places };
        let taken: HashSet<u64> = places.iter().copied().collect();
        if self.kept > self.bits / 2 {
            // Nearly all places are kept: shuffle what is left.
            let mut rest: Vec<u64> = (0..self.bits).filter(|place| !taken.contains(place)).collect();
            for at in 0..missing {
                let left = NonZeroU64::new((rest.len() - at) as u64).unwrap_or(NonZeroU64::MIN);
                rest.swap(at, at + stream.below(left) as usize);
            }
            places.extend(&rest[..missing]);
        } else {
            let mut taken = taken;
            while places.len() < self.kept as usize {
                let place = stream.below(bits);
                if taken.insert(place) {
                    places.push(place);
                }
            }
        }
        places.sort_unstable();
        places
    }
}

/// A place that may be kept.
struct Candidate {
    place: u64,
    value: i64,
    key: u64,
}

/// The scale of the noise for what a one counts.
fn scale(epsilon: f64) -> Result<Scale> {
    let valid = TopResponse::MIN_EPSILON..=TopResponse::MAX_EPSILON;
    if !valid.contains(&check_epsilon(epsilon)?) {
        return Err(Error::invalid(
            "epsilon",
            epsilon,
            "between 1/4096 and 40 for the largest of noisy bits",
        ));
    }
    Scale::at_least(ONE as f64 / epsilon)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Randomness;

    fn stream(seed: u64) -> Stream<crate::noise::Reproducible> {
        Randomness::from_seed(seed).purpose("bits").unwrap().stream()
    }

    /// The same as it is defined: noise on every bit, and the places of the largest values.
    fn plainly(epsilon: f64, bits: u64, kept: usize, ones: &[u64], seed: u64) -> Vec<u64> {
        let (mut stream, noise) = (stream(seed), RoundedLaplace::new(scale(epsilon).unwrap()));
        let mut values: Vec<(i64, u64, u64)> = (0..bits)
            .map(|place| {
                let bit = if ones.binary_search(&place).is_ok() { ONE as i64 } else { 0 };
                (bit + noise.sample(&mut stream), stream.next_u64(), place)
            })
            .collect();
        values.sort_unstable_by(|a, b| b.cmp(a));
        values.into_iter().take(kept).map(|(_, _, place)| place).collect()
    }

    /// How many ones are kept has the law of noise on every bit: means of both within 6.2 standard errors.
    #[test]
    fn as_many_ones_are_kept_as_with_noise_on_every_bit() {
        let (bits, ones) = (1000u64, (0..60).map(|i| i * 16).collect::<Vec<u64>>());
        for (case, epsilon) in [0.5f64, 2.0, 5.0, 9.0].into_iter().enumerate() {
            for kept in [10usize, 60, 300] {
                let runs = 150;
                let of = |places: Vec<u64>| {
                    assert!(places.len() == kept);
                    places.iter().filter(|place| ones.binary_search(place).is_ok()).count() as f64
                };
                let response = TopResponse::new(epsilon, bits, kept as u64).unwrap();
                let seed = |run: u64| run + 10_000 * case as u64 + 1_000_000 * kept as u64;
                let quick: Vec<f64> = (0..runs)
                    .map(|run| of(response.report(&mut stream(seed(run)), ones.iter().copied())))
                    .collect();
                let plain: Vec<f64> =
                    (0..runs).map(|run| of(plainly(epsilon, bits, kept, &ones, seed(run) + 5000))).collect();
                let moments = |values: &[f64]| {
                    let mean = values.iter().sum::<f64>() / values.len() as f64;
                    (mean, values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / values.len() as f64)
                };
                let ((a, va), (b, vb)) = (moments(&quick), moments(&plain));
                let error = ((va + vb) / runs as f64).sqrt().max(0.01);
                assert!((a - b).abs() < 6.2 * error, "epsilon {epsilon}, {kept} kept: {a} {b} {error}");
            }
        }
    }

    /// Likelihoods of every value of a zero and a one, of which a zero's are those that are drawn.
    #[test]
    fn ratios_never_pass_epsilon() {
        for epsilon in [TopResponse::MIN_EPSILON, 0.01, 0.3, 0.99, 3.96, 7.92, 20.0, 40.0] {
            for (bits, kept) in [(10, 3), (100, 90), (3_666_278, 5278), (1_000_000_000_000, 7), (1000, 0)] {
                let response = TopResponse::new(epsilon, bits, kept).unwrap();
                let (b, t) = (response.noise.scale().value(), response.threshold);
                let cost = TopResponse::event(epsilon).unwrap().pure_epsilon().unwrap();
                // An accountant rounds up.
                assert!(cost <= epsilon * (1.0 + 1e-12) + 1e-14, "{epsilon} {cost}");
                assert!(t >= 1);
                // ln P(n >= k), ln P(n = k).
                let tail = |k: f64| match k >= 1.0 {
                    true => 0.5f64.ln() - (k - 0.5) / b,
                    false => (-0.5 * ((k - 0.5) / b).exp()).ln_1p(),
                };
                let point = |k: f64| match k {
                    0.0 => (-(-0.5 / b).exp_m1()).ln(),
                    _ => (0.5 / b).sinh().ln() - k.abs() / b,
                };
                let drawn = (-(-1.0 / response.gap.value()).exp_m1()).ln();
                let rounding = drawn - tail(t as f64);
                assert!(rounding >= 0.0 && rounding <= 2.0 / b, "{epsilon} {bits} {kept}: {rounding}");
                let tolerance = 1e-13 * (1.0 + 1.0 / epsilon);
                for above in (0..40).map(|i| (f64::from(i) * b / 5.0).round()) {
                    for v in [t as f64 + above, (t as f64).max(ONE as f64 + above - b.round())] {
                        let zero = drawn + (-(-1.0 / b).exp_m1()).ln() - (v - t as f64) / b;
                        let one = point(v - ONE as f64);
                        assert!((zero - one).abs() <= cost + tolerance, "{epsilon} at {v}: {zero} {one}");
                    }
                }
                // ln P(n < k), where 1 - P(n >= k) has no digits left.
                let below = |k: f64| match k >= 1.0 {
                    true => (-tail(k).exp()).ln_1p(),
                    false => 0.5f64.ln() + (k - 0.5) / b,
                };
                let (low_zero, low_one) = ((-drawn.exp()).ln_1p(), below((t - ONE as i64) as f64));
                assert!(
                    low_one <= low_zero && low_zero - low_one <= cost + tolerance,
                    "{epsilon} {bits} {kept}: {low_zero} {low_one}"
                );
            }
        }
    }

    /// The share of ones that are kept, by the formula for many bits.
    #[test]
    fn the_kept_share_is_that_of_the_formula() {
        let (bits, ones) = (3_666_278u64, 5278u64);
        for (seed, epsilon) in [0.99f64, 3.96, 7.92].into_iter().enumerate() {
            let response = TopResponse::new(epsilon, bits, ones).unwrap();
            let reported = response.report(&mut stream(seed as u64), (0..ones).map(|i| i * 694));
            assert!(reported.is_sorted_by(|a, b| a < b) && reported.len() as u64 == ones);
            let kept = reported.iter().filter(|&&p| p % 694 == 0 && p / 694 < ones).count() as f64;
            let (m, z) = (ones as f64, (bits - ones) as f64);
            let share = match m * epsilon.exp() <= z {
                true => m * epsilon.exp() / (m * epsilon.exp() + z),
                false => 1.0 - (z / m).sqrt() * (-epsilon / 2.0).exp() / 2.0,
            };
            let (mean, spread) = (m * share, (m * share * (1.0 - share)).sqrt());
            assert!((kept - mean).abs() < 6.2 * spread, "{epsilon}: {kept} instead of {mean}");
        }
    }

    /// Where fewer values pass than are kept, and where nearly all are kept, there are as many as are asked for.
    #[test]
    fn as_many_come_out_as_are_kept() {
        for (bits, kept, ones) in
            [(0u64, 0u64, 0u64), (1, 1, 0), (1, 0, 1), (10, 10, 4), (100, 60, 10), (50, 45, 50)]
        {
            let response = TopResponse::new(1.0, bits, kept).unwrap();
            let reported = response.report(&mut stream(bits), 0..ones);
            assert_eq!(reported.len() as u64, kept);
            assert!(reported.is_sorted_by(|a, b| a < b) && reported.last().is_none_or(|&place| place < bits));
        }
        assert!(TopResponse::new(1.0, 10, 11).is_err());
        assert!(TopResponse::new(41.0, 10, 1).is_err());
        assert!(TopResponse::new(1e-5, 10, 1).is_err());
        assert!(TopResponse::new(f64::NAN, 10, 1).is_err());
    }
}
