//! Binomial tails and the exact confidence bounds they give.

use super::error_rate;
use crate::error::{Error, Result};

/// A range that contains the true probability with at least the stated confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub lower: f64,
    /// The upper end.
    pub upper: f64,
}

/// The Clopper-Pearson interval for a probability after `successes` in `trials`, two-sided.
///
/// # Proof definition
/// For independent trials of equal probability `p`, the interval misses `p` with probability at most
/// `1 - confidence`, for every `p` and every number of trials: each side inverts an exact binomial test at half the
/// error rate.
///
/// # Errors
/// More successes than trials, no trials, or a confidence outside `(0, 1)`.
///
/// ```
/// let interval = progap_privacy::audit::clopper_pearson(0, 10, 0.95)?;
/// assert_eq!(interval.lower, 0.0);
/// assert!((interval.upper - 0.3085).abs() < 1e-4);
/// # Ok::<(), progap_privacy::Error>(())
/// ```
pub fn clopper_pearson(successes: u64, trials: u64, confidence: f64) -> Result<Interval> {
    let side = 1.0 - error_rate(confidence)? / 2.0;
    Ok(Interval {
        lower: lower_bound(successes, trials, side)?,
        upper: upper_bound(successes, trials, side)?,
    })
}

/// A lower bound on the probability that holds with the given confidence (one-sided Clopper-Pearson).
///
/// # Errors
/// As [`clopper_pearson`].
pub fn lower_bound(successes: u64, trials: u64, confidence: f64) -> Result<f64> {
    check(successes, trials)?;
    let rate = error_rate(confidence)?;
    if successes == 0 {
        return Ok(0.0);
    }
    // The largest p for which this many successes are still too rare; the low end of the bracket is returned.
    Ok(last_below(|p| upper_tail(trials, successes, p) < rate * CAUTION))
}

/// An upper bound on the probability that holds with the given confidence (one-sided Clopper-Pearson).
///
/// # Errors
/// As [`clopper_pearson`].
pub fn upper_bound(successes: u64, trials: u64, confidence: f64) -> Result<f64> {
    check(successes, trials)?;
    Ok(1.0 - lower_bound(trials - successes, trials, confidence)?)
}

/// Tails are computed to a relative 1e-9 or better; tests are made that much stricter than asked.
const CAUTION: f64 = 1.0 - 1e-8;

fn check(successes: u64, trials: u64) -> Result<()> {
    if trials == 0 || trials > MAX_TRIALS {
        return Err(Error::invalid("trials", trials, "between 1 and 2^40"));
    }
    if successes > trials {
        return Err(Error::invalid("successes", successes, "at most the number of trials"));
    }
    Ok(())
}

const MAX_TRIALS: u64 = 1 << 40;

/// The largest `p` in `[0, 1]` (to the last bit) with `test(p)`, for a test that holds up to some point.
fn last_below(test: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle == low || middle == high {
            break;
        }
        if test(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// `P(Binomial(n, p) >= k)`.
pub(super) fn upper_tail(n: u64, k: u64, p: f64) -> f64 {
    if k == 0 {
        1.0
    } else if k > n {
        0.0
    } else {
        incomplete_beta(k as f64, (n - k) as f64 + 1.0, p)
    }
}

/// `P(Binomial(n, p) = k)`, in logarithms.
pub(super) fn log_mass(n: u64, k: u64, p: f64) -> f64 {
    let (n, k) = (n as f64, k as f64);
    let power = |count: f64, p: f64| if count == 0.0 { 0.0 } else { count * p.ln() };
    libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0)
        + power(k, p)
        + power(n - k, 1.0 - p)
}

/// The regularised incomplete beta function `I_x(a, b)`, by its continued fraction (modified Lentz), used on the
/// side where it converges fast.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front =
        (libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    // About sqrt(max(a, b)) rounds suffice; the limit is never reached for the trials allowed.
    for m in 1..10_000_000_u64 {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        let change = d * c;
        fraction *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_agree_with_direct_sums() {
        for n in [1_u64, 5, 40, 300] {
            for p in [0.01, 0.3, 0.5, 0.77, 0.999] {
                let mut tail = 0.0;
                for k in (0..=n).rev() {
                    tail += log_mass(n, k, p).exp();
                    let got = upper_tail(n, k, p);
                    assert!((got - tail).abs() <= 1e-11 * tail + 1e-14, "n {n} k {k} p {p}: {got} {tail}");
                }
            }
        }
    }

    #[test]
    fn ends_and_bad_input() {
        assert_eq!(clopper_pearson(10, 10, 0.9).unwrap().upper, 1.0);
        assert!(clopper_pearson(11, 10, 0.9).is_err());
        assert!(clopper_pearson(0, 0, 0.9).is_err());
        for confidence in [0.0, 1.0, f64::NAN, -2.0] {
            assert!(clopper_pearson(1, 10, confidence).is_err());
        }
    }

    /// The guarantee itself, summed exactly over all outcomes.
    #[test]
    fn coverage_is_at_least_the_confidence() {
        for n in [7_u64, 30] {
            let bounds: Vec<_> = (0..=n).map(|k| clopper_pearson(k, n, 0.9).unwrap()).collect();
            for step in 1..100 {
                let p = f64::from(step) / 100.0;
                let covered: f64 = (0..=n)
                    .filter(|&k| (bounds[k as usize].lower..=bounds[k as usize].upper).contains(&p))
                    .map(|k| log_mass(n, k, p).exp())
                    .sum();
                assert!(covered >= 0.9, "n {n}, p {p}: {covered}");
            }
        }
    }
}
