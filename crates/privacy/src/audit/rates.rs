//! Bounds from hit rates and false-alarm rates, and from scores of canaries.

use super::binomial::{lower_bound, upper_bound};
use super::{claimed_delta, error_rate};
use crate::error::{Error, Result, check_delta, positive};
use crate::special::{log_gaussian_delta, log_normal_cdf};

/// How often a fixed test says "the record was there".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Runs with the record in which the test said yes.
    pub hits: u64,
    /// Runs with the record.
    pub with: u64,
    /// Runs without the record in which the test said yes.
    pub false_alarms: u64,
    /// Runs without the record.
    pub without: u64,
}

impl Counts {
    /// Count scores at or above a threshold that was fixed beforehand. A threshold found on the same scores voids
    /// every bound.
    ///
    /// # Errors
    /// Scores or a threshold that are not numbers, or no scores.
    pub fn at_threshold(with: &[f64], without: &[f64], threshold: f64) -> Result<Self> {
        check_scores(with)?;
        check_scores(without)?;
        if threshold.is_nan() {
            return Err(Error::invalid("threshold", threshold, "a number"));
        }
        let above = |scores: &[f64]| scores.iter().filter(|&&score| score >= threshold).count() as u64;
        Ok(Self {
            hits: above(with),
            with: with.len() as u64,
            false_alarms: above(without),
            without: without.len() as u64,
        })
    }
}

pub(super) fn check_scores(scores: &[f64]) -> Result<()> {
    if scores.is_empty() {
        return Err(Error::invalid("scores", "empty", "at least one score on either side"));
    }
    match scores.iter().find(|score| !score.is_finite()) {
        Some(score) => Err(Error::invalid("score", score, "finite")),
        None => Ok(()),
    }
}

/// The hit rate from below and the false-alarm rate from above, both right with the confidence asked for.
fn bounded_rates(counts: Counts, confidence: f64) -> Result<(f64, f64)> {
    let each = 1.0 - error_rate(confidence)? / 2.0;
    Ok((
        lower_bound(counts.hits, counts.with, each)?,
        upper_bound(counts.false_alarms, counts.without, each)?,
    ))
}

/// A lower bound on epsilon at `delta` from the counts of one fixed test.
///
/// # Proof definition
/// For independent runs of an `(epsilon, delta)`-private mechanism, the result exceeds `epsilon` with probability
/// at most `1 - confidence`. Any test of such a mechanism has hit rate `t` and false-alarm rate `f` with
/// `t <= e^epsilon f + delta` and `1 - f <= e^epsilon (1 - t) + delta`; both are inverted at Clopper-Pearson bounds
/// of `t` and `f` that fail with probability at most half the error rate each.
///
/// # Errors
/// Impossible counts, a `delta` outside `[0, 1)`, or a confidence outside `(0, 1)`.
pub fn epsilon_from_rates(counts: Counts, delta: f64, confidence: f64) -> Result<f64> {
    claimed_delta(delta)?;
    let (hit, alarm) = bounded_rates(counts, confidence)?;
    let side = |more: f64, less: f64| if more > delta { ((more - delta) / less).ln() } else { 0.0 };
    Ok(side(hit, alarm).max(side(1.0 - alarm, 1.0 - hit)).max(0.0))
}

/// A lower bound on mu, the strength of a Gaussian mechanism, from the counts of one fixed test.
///
/// # Proof definition
/// For independent runs of a `mu`-Gaussian-private mechanism, the result exceeds `mu` with probability at most
/// `1 - confidence`: every test has `Phi^-1(t) <= Phi^-1(f) + mu`.
///
/// # Errors
/// As [`epsilon_from_rates`].
pub fn mu_from_rates(counts: Counts, confidence: f64) -> Result<f64> {
    let (hit, alarm) = bounded_rates(counts, confidence)?;
    if hit <= 0.0 || alarm >= 1.0 {
        return Ok(0.0);
    }
    Ok((quantile(hit) - quantile(alarm)).max(0.0))
}

/// A lower bound on mu from scores that are Gaussian with a known standard deviation: projections of noisy sums on
/// the direction in which the canary moves them.
///
/// # Proof definition
/// For independent scores `Normal(a + mu noise, noise^2)` with the canary and `Normal(a, noise^2)` without, the
/// result exceeds `mu` with probability at most `1 - confidence`: the difference of means is Gaussian with known
/// variance. Unlike the other bounds this one assumes the shape of the noise; use it on the mechanism's own output.
///
/// # Errors
/// Scores that are not finite, none on either side, or a noise that is not a positive number.
pub fn mu_from_gaussian_scores(with: &[f64], without: &[f64], noise: f64, confidence: f64) -> Result<f64> {
    check_scores(with)?;
    check_scores(without)?;
    positive("noise", noise)?;
    let mean = |scores: &[f64]| scores.iter().sum::<f64>() / scores.len() as f64;
    let spread = (1.0 / with.len() as f64 + 1.0 / without.len() as f64).sqrt();
    let z = -quantile(error_rate(confidence)?);
    Ok(((mean(with) - mean(without)) / noise - z * spread).max(0.0))
}

/// The epsilon at `delta` below which no mechanism that is `mu`-Gaussian-private and no better can be: a lower
/// bound on epsilon from a lower bound on mu.
///
/// # Errors
/// A negative `mu` or one that is not a number, or a `delta` outside `(0, 1)`.
pub fn epsilon_of_mu(mu: f64, delta: f64) -> Result<f64> {
    check_delta(delta)?;
    if !(mu.is_finite() && mu >= 0.0) {
        return Err(Error::invalid("mu", mu, "a finite number of at least 0"));
    }
    let exceeds = |epsilon: f64| log_gaussian_delta(mu, epsilon) > delta.ln();
    if mu == 0.0 || !exceeds(0.0) {
        return Ok(0.0);
    }
    let (mut low, mut high) = (0.0, 1.0);
    while exceeds(high) {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if exceeds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// The mu at which a Gaussian mechanism costs `epsilon` at `delta`, rounded down: the inverse of [`epsilon_of_mu`].
///
/// # Errors
/// A negative `epsilon` or one that is not a number, or a `delta` outside `(0, 1)`.
pub fn mu_of_epsilon(epsilon: f64, delta: f64) -> Result<f64> {
    check_delta(delta)?;
    if !(epsilon.is_finite() && epsilon >= 0.0) {
        return Err(Error::invalid("epsilon", epsilon, "a finite number of at least 0"));
    }
    let keeps = |mu: f64| log_gaussian_delta(mu, epsilon) <= delta.ln();
    let (mut low, mut high) = (0.0, 1.0);
    while keeps(high) {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if middle > 0.0 && !keeps(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(low)
}

/// `Phi^-1(p)` for `0 < p < 1`, by bisection in logarithms on the smaller side.
pub(super) fn quantile(p: f64) -> f64 {
    if p > 0.5 {
        return -quantile(1.0 - p);
    }
    let target = p.ln();
    let (mut low, mut high) = (-40.0, 0.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if log_normal_cdf(middle) < target {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{RandomisedResponse, Randomness, Reproducible, RoundedGaussian, Stream};

    fn stream(label: &str) -> Stream<Reproducible> {
        Randomness::from_seed(2024).purpose(label).unwrap().stream()
    }

    #[test]
    fn quantiles() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_963_984_540_054), (1e-10, -6.361_340_902_404_056)] {
            assert!((quantile(p) - z).abs() < 1e-9, "{p}");
        }
    }

    /// Hits and false alarms of randomised response at its own epsilon, where the bound is tightest.
    fn audit_randomised_response(stream: &mut Stream<Reproducible>, epsilon: f64, runs: u64) -> f64 {
        let mechanism = RandomisedResponse::new(epsilon).unwrap();
        let mut yes = |bit| (0..runs).filter(|_| mechanism.report(stream, bit)).count() as u64;
        let counts = Counts { hits: yes(true), with: runs, false_alarms: yes(false), without: runs };
        epsilon_from_rates(counts, 0.0, 0.9).unwrap()
    }

    /// 1,000 audits at 90% confidence: at most 100 false alarms expected, more than 145 has probability below
    /// 3e-6. Fixed seed. And the bound is not idle: it finds most of the epsilon.
    #[test]
    fn epsilon_false_alarms_and_power() {
        let mut stream = stream("rates");
        let bounds: Vec<f64> = (0..1000).map(|_| audit_randomised_response(&mut stream, 1.0, 2000)).collect();
        let alarms = bounds.iter().filter(|&&bound| bound > 1.0).count();
        assert!(alarms <= 145, "{alarms} false alarms");
        let mean = bounds.iter().sum::<f64>() / 1000.0;
        assert!(mean > 0.8, "power {mean}");
    }

    /// A wrong claim is found: noise made for epsilon 1, claimed to be 0.5.
    #[test]
    fn a_false_claim_is_caught() {
        let mut stream = stream("false claim");
        let caught = (0..100).filter(|_| audit_randomised_response(&mut stream, 1.0, 2000) > 0.5).count();
        assert!(caught >= 99, "{caught} of 100");
    }

    /// Canary scores of an integer Gaussian mechanism of known mu: 400 audits of either kind at 90% confidence; more
    /// than 69 false alarms have probability below 6e-6. Fixed seed.
    #[test]
    fn mu_false_alarms_and_power() {
        let (sigma, shift) = (100.0, 150);
        let mu = f64::from(shift) / sigma;
        let gaussian = RoundedGaussian::new(sigma).unwrap();
        let mut stream = stream("mu");
        let mut scores = |shift: i32| {
            let mut noise = [0; 500];
            gaussian.fill(&mut stream, &mut noise);
            noise.map(|n| f64::from(n + shift))
        };
        let (mut direct, mut by_rates) = (Vec::new(), Vec::new());
        for _ in 0..400 {
            let (with, without) = (scores(shift), scores(0));
            direct.push(mu_from_gaussian_scores(&with, &without, sigma, 0.9).unwrap());
            let counts = Counts::at_threshold(&with, &without, 75.0).unwrap();
            by_rates.push(mu_from_rates(counts, 0.9).unwrap());
        }
        for (name, bounds, power) in [("direct", direct, 1.35), ("rates", by_rates, 1.2)] {
            let alarms = bounds.iter().filter(|&&bound| bound > mu).count();
            assert!(alarms <= 69, "{name}: {alarms} false alarms");
            let mean = bounds.iter().sum::<f64>() / 400.0;
            assert!(mean > power, "{name}: power {mean}");
        }
    }

    #[test]
    fn epsilon_of_mu_inverts_the_published_noise() {
        // Noise 4.68 is calibrated for epsilon 1 at delta 1e-7.
        let epsilon = epsilon_of_mu(1.0 / 4.68, 1e-7).unwrap();
        assert!((epsilon - 1.0).abs() < 2e-3, "{epsilon}");
        assert_eq!(epsilon_of_mu(0.0, 1e-7).unwrap(), 0.0);
        for epsilon in [0.25, 1.0, 8.0, 60.0] {
            let back = epsilon_of_mu(mu_of_epsilon(epsilon, 1e-7).unwrap(), 1e-7).unwrap();
            assert!((back / epsilon - 1.0).abs() < 1e-9, "{epsilon}: {back}");
        }
        assert!(mu_of_epsilon(0.0, 1e-7).unwrap() < 1e-6 && mu_of_epsilon(-1.0, 1e-7).is_err());
        assert!(epsilon_of_mu(f64::NAN, 1e-7).is_err());
        assert!(epsilon_of_mu(1.0, 0.0).is_err());
    }

    #[test]
    fn bad_scores_are_refused() {
        assert!(Counts::at_threshold(&[], &[1.0], 0.0).is_err());
        assert!(Counts::at_threshold(&[f64::NAN], &[1.0], 0.0).is_err());
        assert!(Counts::at_threshold(&[0.0], &[1.0], f64::NAN).is_err());
        assert!(mu_from_gaussian_scores(&[1.0], &[0.0], 0.0, 0.9).is_err());
        let counts = Counts { hits: 3, with: 2, false_alarms: 0, without: 2 };
        assert!(epsilon_from_rates(counts, 0.0, 0.9).is_err());
        assert!(mu_from_rates(counts, 0.9).is_err());
    }
}
