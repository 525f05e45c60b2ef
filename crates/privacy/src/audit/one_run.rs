//! A bound from a single run with many canaries (Steinke, Nasr and Jagielski 2023).

use super::binomial::{log_mass, upper_tail};
use super::{claimed_delta, error_rate};
use crate::error::{Error, Result};
use crate::special::normal_cdf;

/// Guesses about canaries of one run, each of which was included by its own fair coin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guesses {
    /// Canaries whose inclusion was decided by a coin.
    pub canaries: u64,
    /// Canaries about which a guess was made.
    pub made: u64,
    /// Guesses that were right.
    pub correct: u64,
}

impl Guesses {
    /// Guess "included" for the `high` largest scores and "left out" for the `low` smallest, and compare with the
    /// coins. How many to guess must be fixed before the coins are looked at.
    ///
    /// # Errors
    /// Lists of different length, scores that are not finite, or more guesses than canaries.
    pub fn by_rank(scores: &[f64], included: &[bool], high: usize, low: usize) -> Result<Self> {
        if scores.len() != included.len() {
            return Err(Error::invalid("scores", scores.len(), "as many as inclusion coins"));
        }
        if high.checked_add(low).is_none_or(|made| made > scores.len()) {
            return Err(Error::invalid(
                "guesses",
                format!("{high} + {low}"),
                "at most the number of canaries",
            ));
        }
        if let Some(score) = scores.iter().find(|score| !score.is_finite()) {
            return Err(Error::invalid("score", score, "finite"));
        }
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
        let right_low = order[..low].iter().filter(|&&i| !included[i]).count();
        let right_high = order[order.len() - high..].iter().filter(|&&i| included[i]).count();
        Ok(Self {
            canaries: scores.len() as u64,
            made: (high + low) as u64,
            correct: (right_low + right_high) as u64,
        })
    }

    /// How many of the largest and how many of the smallest scores to guess about, so that a Gaussian mechanism of
    /// strength `mu` is found out best. No score and no coin is looked at.
    ///
    /// # Errors
    /// As [`one_run_epsilon`], and a `mu` that is not a number of at least 0.
    pub fn planned(canaries: usize, mu: f64, delta: f64, confidence: f64) -> Result<usize> {
        if mu.is_nan() || mu < 0.0 {
            return Err(Error::invalid("mu", mu, "at least 0"));
        }
        let mut best = (f64::NEG_INFINITY, canaries / 2);
        for share in [0.5, 0.35, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005] {
            let each = (share * canaries as f64) as usize;
            // Scores are Normal(-mu/2, 1) or Normal(mu/2, 1), evenly; the right guesses among those above a threshold.
            let above = |t: f64| (normal_cdf(0.5 * mu - t), normal_cdf(-0.5 * mu - t));
            let (mut low, mut high) = (-40.0 - mu.min(1e3), 40.0 + mu.min(1e3));
            for _ in 0..100 {
                let t = 0.5 * (low + high);
                if 0.5 * (above(t).0 + above(t).1) > share { low = t } else { high = t }
            }
            let (right, wrong) = above(low);
            let correct = (right / (right + wrong) * 2.0 * each as f64).round() as u64;
            let guesses = Guesses { canaries: canaries as u64, made: 2 * each as u64, correct };
            let bound = one_run_epsilon(guesses, delta, confidence)?;
            if each > 0 && bound > best.0 {
                best = (bound, each);
            }
        }
        Ok(best.1)
    }

    fn check(self) -> Result<()> {
        if self.correct > self.made || self.made > self.canaries {
            return Err(Error::invalid("guesses", format!("{self:?}"), "correct <= made <= canaries"));
        }
        if self.canaries > 1 << 24 {
            return Err(Error::invalid("canaries", self.canaries, "at most 2^24"));
        }
        Ok(())
    }
}

/// The probability, at most, of this many correct guesses if the mechanism is `(epsilon, delta)`-private.
///
/// # Proof definition
/// Let `m` canaries be included by independent fair coins, `r` guesses be made and `v` be correct. With
/// `W ~ Binomial(r, 1 / (1 + e^-epsilon))`, every `(epsilon, delta)`-private mechanism and every way of guessing from
/// its output have `P(correct >= v) <= P(W >= v) + 2 m delta max_(i = 1..v) P(v > W >= v - i) / i` (Theorem 5.2 and the
/// program in the appendix of Steinke, Nasr and Jagielski 2023; privacy with respect to adding or removing one canary).
/// The factor is `2 m delta`, with all `m` canaries and not only those guessed. See [proof](crate::proofs::audit).
///
/// # Errors
/// Impossible counts, a negative epsilon or a `delta` outside `[0, 1)`.
pub fn one_run_p_value(guesses: Guesses, epsilon: f64, delta: f64) -> Result<f64> {
    guesses.check()?;
    claimed_delta(delta)?;
    if !(epsilon.is_finite() && epsilon >= 0.0) {
        return Err(Error::invalid("epsilon", epsilon, "a finite number of at least 0"));
    }
    let Guesses { canaries, made, correct } = guesses;
    let accuracy = 1.0 / (1.0 + (-epsilon).exp());
    let pure = upper_tail(made, correct, accuracy);
    if delta == 0.0 {
        return Ok(pure);
    }
    // The mass at v - 1, v - 2, ... by the ratio of neighbours, in logarithms: far from the mean it underflows.
    let odds = ((1.0 - accuracy) / accuracy).ln();
    let (mut below, mut steepest) = (0.0, 0.0_f64);
    let mut log = if correct > 0 { log_mass(made, correct - 1, accuracy) } else { 0.0 };
    for i in 1..=correct {
        below += log.exp();
        steepest = steepest.max(below / i as f64);
        // No later quotient can be larger, since the numerator is a probability.
        if steepest * i as f64 >= 1.0 {
            break;
        }
        let k = correct - i;
        log += (k as f64 / (made - k + 1) as f64).ln() + odds;
    }
    Ok((pure + 2.0 * canaries as f64 * delta * steepest).min(1.0))
}

/// A lower bound on epsilon at `delta` from the guesses about one run.
///
/// # Proof definition
/// For an `(epsilon, delta)`-private mechanism the result exceeds `epsilon` with probability at most
/// `1 - confidence`: every epsilon up to the result, on a grid of 1/64 and then by bisection, was rejected by
/// [`one_run_p_value`] at that level. Scanning upwards means that no monotonicity in epsilon is assumed beyond the
/// width of a grid cell, in which the lower end is returned once the search stops.
///
/// # Errors
/// As [`one_run_p_value`], and a confidence outside `(0, 1)`.
pub fn one_run_epsilon(guesses: Guesses, delta: f64, confidence: f64) -> Result<f64> {
    let rate = error_rate(confidence)?;
    let rejected =
        |epsilon: f64| Ok::<bool, Error>(one_run_p_value(guesses, epsilon, delta)? < rate * (1.0 - 1e-8));
    if !rejected(0.0)? {
        return Ok(0.0);
    }
    let cell = 1.0 / 64.0;
    let mut low = 0.0;
    while rejected(low + cell)? {
        low += cell;
    }
    let mut high = low + cell;
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if rejected(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{RandomisedResponse, Randomness, RoundedGaussian};

    /// Randomised response on every canary attains the bound, so false alarms come close to the stated rate: 1,000
    /// audits at 90%, more than 145 alarms have probability below 3e-6. Fixed seed.
    #[test]
    fn false_alarms_at_the_worst_case() {
        let mut stream = Randomness::from_seed(5).purpose("one run").unwrap().stream();
        let mechanism = RandomisedResponse::new(1.5).unwrap();
        let mut alarms = 0;
        let mut sum = 0.0;
        for _ in 0..1000 {
            let correct = (0..300)
                .filter(|_| {
                    let included = stream.next_u32() & 1 == 1;
                    mechanism.report(&mut stream, included) == included
                })
                .count() as u64;
            let guesses = Guesses { canaries: 300, made: 300, correct };
            let bound = one_run_epsilon(guesses, 0.0, 0.9).unwrap();
            alarms += usize::from(bound > 1.5);
            sum += bound;
        }
        assert!(alarms <= 145, "{alarms} false alarms");
        assert!(sum / 1000.0 > 1.1, "power {}", sum / 1000.0);
    }

    /// A mechanism that tells everything with probability delta and nothing otherwise is (0, delta)-private. Without
    /// the delta term, or with `r` in place of `m`, each tell would be an alarm at epsilon 0.
    #[test]
    fn the_delta_term_covers_a_mechanism_that_tells_all() {
        let (canaries, made, delta) = (1000, 10, 1e-4);
        // P(all 10 right) is at least delta; the bound at epsilon 0 must admit that.
        let guesses = Guesses { canaries, made, correct: made };
        let p = one_run_p_value(guesses, 0.0, delta).unwrap();
        let truth = delta + (1.0 - delta) * 2f64.powi(-10);
        assert!(p >= truth, "{p} < {truth}");
        assert!(one_run_p_value(guesses, 0.0, 0.0).unwrap() < truth, "the term is needed");
    }

    /// Gaussian noise on a vector of canaries, guesses by rank; true epsilon at delta 1e-5 from the accountant.
    #[test]
    fn gaussian_canaries_stay_below_their_epsilon() {
        let gaussian = RoundedGaussian::new(400.0).unwrap();
        let mut stream = Randomness::from_seed(6).purpose("one run gaussian").unwrap().stream();
        let mu = 1.5;
        let claim = super::super::epsilon_of_mu(mu, 1e-5).unwrap();
        let mut best = 0.0_f64;
        for _ in 0..50 {
            let included: Vec<bool> = (0..1000).map(|_| stream.next_u32() & 1 == 1).collect();
            let mut noise = vec![0; 1000];
            gaussian.fill(&mut stream, &mut noise);
            let scores: Vec<f64> = noise
                .iter()
                .zip(&included)
                .map(|(&n, &b)| f64::from(n) + if b { 600.0 } else { 0.0 })
                .collect();
            let guesses = Guesses::by_rank(&scores, &included, 50, 50).unwrap();
            let bound = one_run_epsilon(guesses, 1e-5, 0.95).unwrap();
            assert!(bound <= claim, "{bound} > {claim}");
            best = best.max(bound);
        }
        assert!(best > 1.0, "power {best}");
    }

    #[test]
    fn bad_input_is_refused() {
        let odd = Guesses { canaries: 5, made: 6, correct: 1 };
        assert!(one_run_p_value(odd, 1.0, 0.0).is_err());
        let fine = Guesses { canaries: 5, made: 5, correct: 5 };
        assert!(one_run_p_value(fine, -1.0, 0.0).is_err());
        assert!(one_run_p_value(fine, 1.0, 1.0).is_err());
        assert!(one_run_epsilon(fine, 0.0, 1.0).is_err());
        assert!(Guesses::by_rank(&[1.0], &[true, false], 1, 0).is_err());
        assert!(Guesses::by_rank(&[1.0], &[true], 1, 1).is_err());
        assert!(Guesses::by_rank(&[f64::NAN], &[true], 1, 0).is_err());
        assert_eq!(Guesses::by_rank(&[3.0, 1.0], &[true, false], 1, 1).unwrap().correct, 2);
    }

    #[test]
    fn the_plan_guesses_about_all_only_where_that_is_best() {
        let plan = |mu| Guesses::planned(10_000, mu, 1e-6, 0.95).unwrap();
        assert!(
            plan(0.2) > plan(1.0) && plan(0.2) < 5000,
            "only the surest guesses: {} {}",
            plan(0.2),
            plan(1.0)
        );
        assert_eq!(plan(50.0), 5000, "everything is right, so guess about everything");
        assert_eq!(Guesses::planned(1, 1.0, 0.0, 0.95).unwrap(), 0);
        assert!(Guesses::planned(10, f64::NAN, 0.0, 0.95).is_err());
    }
}
