//! Randomised response on a long list of bits of which few are one, in time and memory that follow the ones.

use super::bernoulli::{Bernoulli, RandomisedResponse};
use super::laplace::Scale;
use super::source::Source;
use super::stream::Stream;
use crate::error::{Error, Result, check_epsilon};
use crate::event::Event;

/// Asymmetric randomised response: a one stays with probability `K`, a zero turns into a one with probability `F`.
///
/// With `p = 1 / (1 + e^-epsilon)` and a share `d` of ones, `F = (1 - p) s` and `K = p s` for `s = d / (2 p d - p - d +
/// 1)`, up to rounding: the report has about as many ones as the list. Zeros are not visited one by one: gaps between
/// those that turn are drawn.
///
/// ```
/// use progap_privacy::noise::{Randomness, SparseResponse};
///
/// let response = SparseResponse::new(1.0, 0.001)?;
/// let mut stream = Randomness::from_seed(1).purpose("bits")?.stream();
/// let mut reported = vec![];
/// response.report(&mut stream, 1_000_000, (0..1000).map(|i| i * 1000), |place| reported.push(place));
/// assert!((800..1200).contains(&reported.len()));
/// # Ok::<(), progap_privacy::Error>(())
/// ```
///
/// # Proof definition
/// For every public `epsilon` and `density` the reported bits are independent, and each is `epsilon`-differentially
/// private with respect to its own bit. Gaps between turned zeros are exactly geometric, so that every zero turns with
/// probability `F = 1 - exp(-1 / scale)` on its own, for a rational scale rounded up until `F <= 1 / (1 + e^epsilon)`.
/// `K` is a double of at most `e^epsilon F`, rounded down by more than the error of computing it, and the coin uses it
/// exactly. Then `K / F <= e^epsilon`, and `(1 - F) / (1 - K) <= e^epsilon` follows from the bound on `F`
/// ([proof](crate::proofs::pure)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SparseResponse {
    epsilon: f64,
    gap: Scale,
    flip_probability: f64,
    keep_probability: f64,
    keep: Bernoulli,
}

impl SparseResponse {
    /// The largest epsilon that is used: beyond it less than one in 10^8 bits is reported wrongly.
    pub const MAX_EPSILON: f64 = 20.0;

    /// The response for a given `epsilon` (at most [`Self::MAX_EPSILON`]) and an estimate of the share of ones.
    ///
    /// # Errors
    /// An epsilon or a density out of range.
    pub fn new(epsilon: f64, density: f64) -> Result<Self> {
        if check_epsilon(epsilon)? > Self::MAX_EPSILON {
            return Err(Error::invalid("epsilon", epsilon, "at most 20 for a sparse response"));
        }
        if !(0.0..=1.0).contains(&density) {
            return Err(Error::invalid("density", density, "between 0 and 1"));
        }
        let p = 1.0 / (1.0 + (-epsilon).exp());
        let share = (density / (2.0 * p * density - p - density + 1.0)).clamp(0.0, 1.0);
        // The least noise that is private, made a little smaller than computed; the scale is rounded up.
        let flip = share / (1.0 + epsilon.exp()) * (1.0 - 1e-9);
        let gap = Scale::at_least((-1.0 / (-flip).ln_1p()).min(2f64.powi(31)))?;
        let flip_probability = -(-1.0 / gap.value()).exp_m1();
        // Both factors are within a few units in the last place; 2^-48 is sixteen of them.
        let keep_probability = epsilon.exp() * flip_probability * (1.0 - 2f64.powi(-48));
        if flip_probability > 1.0 / (1.0 + epsilon.exp()) || keep_probability >= 1.0 {
            return Err(Error::invalid("epsilon", epsilon, "small enough for a sparse response"));
        }
        let keep = Bernoulli::new(keep_probability)?;
        Ok(Self { epsilon, gap, flip_probability, keep_probability, keep })
    }

    /// `K`: how probable it is that a one is reported.
    pub fn keep_probability(&self) -> f64 {
        self.keep_probability
    }

    /// `F`: how probable it is that a zero is reported as a one.
    pub fn flip_probability(&self) -> f64 {
        self.flip_probability
    }

    /// How many ones are reported on average, of this many bits of which this many are ones.
    pub fn expected(&self, bits: f64, ones: f64) -> f64 {
        ones * self.keep_probability + (bits - ones) * self.flip_probability
    }

    /// Says in ascending order where the report of a list of `bits` bits is one; `ones` are the places of its ones,
    /// ascending.
    pub fn report<S: Source>(
        &self,
        stream: &mut Stream<S>,
        bits: u64,
        ones: impl IntoIterator<Item = u64>,
        mut say: impl FnMut(u64),
    ) {
        let mut turned = self.gap.geometric(stream);
        for one in ones {
            while turned < one {
                say(turned);
                turned = turned.saturating_add(1).saturating_add(self.gap.geometric(stream));
            }
            if turned == one {
                // A one has a coin of its own.
                turned = turned.saturating_add(1).saturating_add(self.gap.geometric(stream));
            }
            if self.keep.sample(stream) {
                say(one);
            }
        }
        while turned < bits {
            say(turned);
            turned = turned.saturating_add(1).saturating_add(self.gap.geometric(stream));
        }
    }

    /// One bit's response as an accountant sees it: whatever the density, no test tells more than the response that is
    /// as probable to be right for a one as for a zero (Kairouz, Oh and Viswanath 2015).
    pub fn event(epsilon: f64) -> Result<Event> {
        Ok(RandomisedResponse::new(epsilon)?.event())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Randomness;

    /// Counts of kept ones and of turned zeros, each within 6.2 standard deviations: each fails by chance less than
    /// once in 10^9, if the rates are right.
    #[test]
    fn both_rates_are_those_of_the_definition() {
        for (k, (epsilon, density)) in
            [(0.9f64, 0.004f64), (0.1, 0.02), (3.0, 0.3), (10.0, 0.001), (0.5, 0.9)].into_iter().enumerate()
        {
            let bits = 3_000_000u64;
            let every = (1.0 / density).round().max(1.0) as u64;
            let is_one = |place: u64| match density < 0.5 {
                true => place.is_multiple_of(every),
                false => !place.is_multiple_of(10),
            };
            let ones: Vec<u64> = (0..bits).filter(|&place| is_one(place)).collect();
            // As in the published recipe.
            let p = 1.0 / (1.0 + (-epsilon).exp());
            let q = f64::min(1.0, density / (2.0 * p * density - p - density + 1.0));
            let response = SparseResponse::new(epsilon, density).unwrap();
            let mut stream = Randomness::from_seed(k as u64).purpose("bits").unwrap().stream();
            let (mut kept, mut turned, mut last) = (0u64, 0u64, None);
            response.report(&mut stream, bits, ones.iter().copied(), |place| {
                assert!(last < Some(place) && place < bits, "ascending");
                last = Some(place);
                if is_one(place) { kept += 1 } else { turned += 1 }
            });
            for (found, trials, rate) in
                [(kept, ones.len() as f64, p * q), (turned, (bits - ones.len() as u64) as f64, (1.0 - p) * q)]
            {
                let (mean, spread) = (trials * rate, (trials * rate * (1.0 - rate)).sqrt());
                let away = (found as f64 - mean).abs() / spread.max(1.0);
                assert!(away < 6.2, "{epsilon} {density}: {found} instead of {mean}, {away} deviations");
            }
        }
    }

    /// Turned zeros next to each other, and at the ends, are as probable as anywhere.
    #[test]
    fn turned_zeros_do_not_know_each_other() {
        let response = SparseResponse::new(0.2, 0.4).unwrap();
        let mut stream = Randomness::from_seed(5).purpose("bits").unwrap().stream();
        let (runs, f) = (200_000u64, response.flip_probability());
        let mut found = [0u64; 4];
        for _ in 0..runs {
            let mut places = 0;
            response.report(&mut stream, 2, [], |place| places |= 1 << place);
            found[places] += 1;
        }
        let expected = [(1.0 - f) * (1.0 - f), f * (1.0 - f), f * (1.0 - f), f * f];
        for (found, rate) in found.into_iter().zip(expected) {
            let mean = runs as f64 * rate;
            // Less than once in 10^9 by chance, each.
            assert!((found as f64 - mean).abs() < 6.2 * (mean * (1.0 - rate)).sqrt(), "{found} {mean}");
        }
    }

    #[test]
    fn ratios_never_pass_epsilon() {
        for epsilon in [1e-4, 0.01, 0.9, 2.0, 9.0, 19.9, 20.0] {
            for density in [0.0, 1e-12, 1e-6, 0.004, 0.5, 1.0] {
                let response = SparseResponse::new(epsilon, density).unwrap();
                let (k, f) = (response.keep_probability(), response.flip_probability());
                assert!(k > f && f > 0.0 && k < 1.0);
                assert!((k / f).ln() <= epsilon, "{epsilon} {density}");
                assert!(
                    ((1.0 - f) / (1.0 - k)).ln() <= epsilon * (1.0 + 1e-9) + 1e-12,
                    "{epsilon} {density}"
                );
                // The event holds 1 - F as a double, which is rounded.
                let rounding = 1e-14 * (1.0 + epsilon) + 1.2e-16 * epsilon.exp();
                let cost = SparseResponse::event(epsilon).unwrap().pure_epsilon().unwrap();
                assert!(cost <= epsilon + rounding && cost >= epsilon - rounding, "{epsilon}: {cost}");
            }
        }
        for (epsilon, density) in
            [(0.0, 0.1), (21.0, 0.1), (1.0, -0.1), (1.0, 1.1), (f64::NAN, 0.1), (1.0, f64::NAN)]
        {
            assert!(SparseResponse::new(epsilon, density).is_err(), "{epsilon} {density}");
        }
    }
}
