//! How many times to run before the best run is shown.

use crate::error::{Error, Result};
use crate::event::Event;
use crate::noise::fixed::Fixed;
use crate::noise::{Source, Stream, tables};

/// A distribution of the number of runs `k >= 1` under which the best of `k` private runs is private
/// (Papernot and Steinke 2022; [proof](crate::proofs::selection)).
///
/// Truncated negative binomial: `P(k)` proportional to `(1 - gamma)^k prod_(l=0)^(k-1) (l + eta) / (l + 1)`, which
/// is geometric for `eta = 1` and logarithmic for `eta = 0`.
///
/// # Proof definition
/// For `-1 < eta <= 4` and `1e-4 <= gamma < 1` (exactly the doubles given), draws are independent and within
/// [`total_variation`](Self::total_variation) of that distribution, at most 1e-30: weights are computed with 192
/// fractional bits by their recurrence, which is rational in `eta` and `gamma`, and inverted with 128 random bits.
/// Exactness matters because the theorem uses the generating function of `k`, not its mean. The number of runs must be
/// drawn from a secure stream, before and independently of all scores, and never be shown: with a number that is known,
/// or a seed from which it follows, the theorem says nothing.
#[derive(Debug, Clone)]
pub struct RunCount {
    eta: f64,
    gamma: f64,
    /// Running sums of the weights of `k = 1, 2, ...`, unnormalised.
    cumulative: Vec<Fixed>,
}

impl RunCount {
    /// The distribution for a shape `eta` and a stopping parameter `gamma`.
    ///
    /// # Errors
    /// Parameters outside `-1 < eta <= 4`, `1e-4 <= gamma < 1`.
    pub fn new(eta: f64, gamma: f64) -> Result<Self> {
        if !(eta > -1.0 && eta <= 4.0) {
            return Err(Error::invalid("eta", eta, "above -1 and at most 4"));
        }
        if !(1e-4..1.0).contains(&gamma) {
            return Err(Error::invalid("gamma", gamma, "at least 0.0001 and below 1"));
        }
        let stay = Fixed::ONE.sub(Fixed::from_f64(gamma));
        // w_1 = 1, w_(k+1) = w_k (1 - gamma) (k + eta) / (k + 1). The factor eta common to all weights is gone, so
        // eta = 0 and negative eta need no special case.
        let one_plus_eta = Fixed::one_plus(eta);
        let mut weight = Fixed::ONE;
        let mut sum = Fixed::ZERO;
        let mut cumulative = Vec::new();
        for k in 1_u64.. {
            sum = sum.add(weight);
            cumulative.push(sum);
            let factor = one_plus_eta.add(Fixed::ONE.mul_small(k - 1)).div_small(k + 1).mul(stay);
            weight = weight.mul(factor);
            // The tail is at most weight / (1 - factor), because factors never exceed max(factor, 1 - gamma) from here:
            // for eta <= 1 they stay below 1 - gamma, for eta > 1 they fall, so the last one is below the geometric
            // mean of all, 1 - factor >= 1 - 2^(-150 / k) and the tail is under 2^-150 k / 100 < 2^-128.
            if factor < Fixed::ONE && weight < Fixed::power_over(-150, &[]) {
                break;
            }
        }
        Ok(Self { eta, gamma, cumulative })
    }

    /// An upper bound on the distance to the true distribution: the cut tail (2^-128 of the total) and one part
    /// in 2^128 per value for the inversion.
    pub fn total_variation(&self) -> f64 {
        (self.cumulative.len() as f64 + 2.0) * 2f64.powi(-128)
    }

    /// The largest number of runs that can be drawn.
    pub fn most(&self) -> u64 {
        self.cumulative.len() as u64
    }

    /// Drawing the number of runs, counted as this many values of noise from tables: what it is off by, in units of
    /// [`tables::DISTANCE`].
    pub fn as_draws(&self) -> u64 {
        (self.total_variation() / tables::DISTANCE).ceil() as u64
    }

    /// Draw the number of runs.
    pub fn draw<S: Source>(&self, stream: &mut Stream<S>) -> u64 {
        let Some(&total) = self.cumulative.last() else { return 1 };
        let point = total.scaled_by(stream.next_u128());
        1 + self.cumulative.partition_point(|&upto| upto <= point) as u64
    }

    /// The expected number of runs.
    pub fn mean(&self) -> f64 {
        // E[k] = sum over k >= 1 of P(k >= that) = n - sum of the earlier cumulative fractions.
        let total = self.total();
        let upper: f64 = self.cumulative.iter().rev().map(|upto| 1.0 - upto.to_f64() / total).sum();
        1.0 + upper
    }

    /// The probability of exactly `k` runs, in double precision.
    pub fn probability(&self, k: u64) -> f64 {
        let at = |k: u64| match k {
            0 => Some(Fixed::ZERO),
            k => self.cumulative.get(k as usize - 1).copied(),
        };
        match (k.checked_sub(1).and_then(at), at(k)) {
            (Some(below), Some(upto)) => upto.sub(below).to_f64() / self.total(),
            _ => 0.0,
        }
    }

    fn total(&self) -> f64 {
        self.cumulative.last().map_or(1.0, |total| total.to_f64())
    }

    /// The event of selecting among runs of `one_run`.
    ///
    /// # Errors
    /// An event that is itself invalid.
    pub fn event(&self, one_run: Event) -> Result<Event> {
        one_run.selected(self.eta, self.gamma)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Randomness;

    #[test]
    fn closed_forms_of_mean_and_mass() {
        for gamma in [0.5, 0.1, 0.01, 0.001] {
            let geometric = RunCount::new(1.0, gamma).unwrap();
            assert!((geometric.mean() * gamma - 1.0).abs() < 1e-9);
            assert!((geometric.probability(3) - gamma * (1.0_f64 - gamma).powi(2)).abs() < 1e-12);
            let logarithmic = RunCount::new(0.0, gamma).unwrap();
            let expected = (1.0 / gamma - 1.0) / (1.0 / gamma).ln();
            assert!((logarithmic.mean() / expected - 1.0).abs() < 1e-9);
            for eta in [-0.9, -0.5, 0.5, 2.0, 4.0] {
                let runs = RunCount::new(eta, gamma).unwrap();
                let expected = eta * (1.0 - gamma) / (gamma * (1.0 - gamma.powf(eta)));
                assert!((runs.mean() / expected - 1.0).abs() < 1e-9, "eta {eta} gamma {gamma}");
                let first = eta * (1.0 - gamma) / (gamma.powf(-eta) - 1.0);
                assert!((runs.probability(1) / first - 1.0).abs() < 1e-12);
                assert!(runs.total_variation() < 1e-30);
                assert!(runs.probability(runs.most()) >= 0.0 && runs.probability(runs.most() + 1) == 0.0);
                assert!(runs.as_draws() as f64 * tables::DISTANCE >= runs.total_variation());
            }
        }
    }

    /// 200,000 draws in 12 cells: chi-square with 11 degrees of freedom stays below 45.3 except with probability
    /// 4e-6. The seed is fixed, so the test either always passes or never does.
    #[test]
    fn draws_follow_the_distribution() {
        let mut stream = Randomness::from_seed(11).purpose("runs").unwrap().stream();
        for (eta, gamma) in [(1.0, 0.2), (0.0, 0.1), (-0.5, 0.05), (2.0, 0.4)] {
            let runs = RunCount::new(eta, gamma).unwrap();
            let draws = 200_000;
            let mut counts = [0_u64; 12];
            for _ in 0..draws {
                counts[(runs.draw(&mut stream) as usize).min(12) - 1] += 1;
            }
            let head: f64 = (1..12).map(|k| runs.probability(k)).sum();
            let chi: f64 = (1..=12)
                .map(|k| {
                    let p = if k < 12 { runs.probability(k) } else { 1.0 - head };
                    let expected = p * draws as f64;
                    (counts[k as usize - 1] as f64 - expected).powi(2) / expected
                })
                .sum();
            assert!(chi < 45.3, "eta {eta}, gamma {gamma}: chi-square {chi}");
        }
    }

    #[test]
    fn parameters_are_checked() {
        for (eta, gamma) in [(-1.0, 0.5), (f64::NAN, 0.5), (5.0, 0.5), (1.0, 0.0), (1.0, 1.0), (1.0, 1e-5)] {
            assert!(RunCount::new(eta, gamma).is_err(), "eta {eta}, gamma {gamma}");
        }
        assert!(RunCount::new(4.0, 1e-4).is_ok(), "the largest table");
        assert!(RunCount::new(-0.999, 0.999).is_ok());
    }
}
