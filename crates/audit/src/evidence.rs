//! Coins and scores, the claim about them, and what they prove.

use progap_privacy::Event;
use progap_privacy::accountant::{Accountant, Best, GdpAccountant};
use progap_privacy::audit::{
    Counts, Guesses, Roc, by_coin, epsilon_from_rates, epsilon_of_mu, mu_from_rates, mu_of_epsilon,
    one_run_epsilon,
};
use progap_privacy::noise::{AnySource, Randomness};
use serde::Serialize;

use progap::Result;

/// A guarantee about one canary.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Claim {
    /// The epsilon; absent without a guarantee.
    pub epsilon: Option<f64>,
    /// The delta at which it holds, or at which to measure.
    pub delta: f64,
    /// The strength of the Gaussian mechanism, where it is one.
    pub mu: Option<f64>,
    /// Whether canaries are answered each on its own, by chance alone, as randomised response does.
    pub independent: bool,
}

impl Claim {
    /// The tightest that can be claimed about some queries.
    ///
    /// # Errors
    /// Events that no accountant knows.
    pub fn of(event: &Event, delta: f64) -> Result<Claim> {
        let epsilon = Best.epsilon(event, delta)?.value;
        Ok(Claim { epsilon: Some(epsilon), delta, mu: GdpAccountant::mu(event), independent: false })
    }

    /// No guarantee, measured at this delta.
    pub fn none(delta: f64) -> Claim {
        Claim { epsilon: None, delta, mu: None, independent: true }
    }

    /// An epsilon that holds with a delta of zero, about canaries that are answered each on its own.
    pub fn pure(epsilon: f64) -> Claim {
        Claim { epsilon: Some(epsilon), delta: NO_DELTA, mu: None, independent: true }
    }

    /// The same about canaries in rows of their own, where independent noise is what the vault adds: the test by one
    /// run, which holds without that, is left out.
    pub(super) fn by_rates_alone(self) -> Claim {
        Claim { independent: true, ..self }
    }

    /// The strength by which guesses are planned.
    fn planned_mu(&self) -> Result<f64> {
        match (self.mu, self.epsilon) {
            (Some(mu), _) => Ok(mu),
            (None, Some(epsilon)) => Ok(mu_of_epsilon(epsilon, self.delta)?),
            (None, None) => Ok(UNPROTECTED),
        }
    }

    fn tests(&self) -> &'static [Test] {
        match (self.mu, self.independent) {
            (Some(_), true) => &[Test::Gaussian],
            (Some(_), false) => &[Test::OneRun, Test::Gaussian],
            (None, true) => &[Test::OneRun, Test::Rates],
            (None, false) => &[Test::OneRun],
        }
    }
}

/// A guarantee that holds with a delta of zero holds with any; the tests need one.
pub(super) const NO_DELTA: f64 = 1e-12;

/// Without noise scores tell all: guess about every canary.
const UNPROTECTED: f64 = 50.0;

/// How many canaries are guessed about in one run, times delta; and how many in any case.
const ONE_RUN_DELTAS: f64 = 0.05;
const ONE_RUN_AT_LEAST: f64 = 1000.0;

/// By which argument scores become a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// Guesses about the coins of one run (Steinke, Nasr and Jagielski 2023): holds whatever the mechanism does.
    OneRun,
    /// Hits and false alarms of a threshold against the best that a Gaussian mechanism of the claimed strength allows;
    /// takes canaries for independent, as the vault's noise is.
    Gaussian,
    /// Hits and false alarms of a threshold, whatever the noise; takes canaries for independent.
    Rates,
}

/// Coins, and a score for each.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Which canaries were in.
    pub coins: Vec<bool>,
    /// Their scores; higher speaks for being in.
    pub scores: Vec<f64>,
    /// The score from which on a canary is taken to be in, fixed without these coins.
    pub threshold: f64,
}

impl Evidence {
    /// Hits against false alarms over all thresholds.
    ///
    /// # Errors
    /// Scores that are not finite, or all coins alike.
    pub fn roc(&self) -> Result<Roc> {
        let (with, without) = by_coin(&self.scores, &self.coins)?;
        Ok(Roc::new(&with, &without)?)
    }

    /// A lower bound on epsilon, and from how many canaries.
    fn epsilon(&self, test: Test, claim: &Claim, confidence: f64) -> Result<(f64, usize)> {
        let (with, without) = by_coin(&self.scores, &self.coins)?;
        let counts = || Counts::at_threshold(&with, &without, self.threshold);
        let all = self.coins.len();
        Ok(match test {
            Test::OneRun => {
                // Each canary may be given away with probability delta: beyond some number that costs more than it
                // helps.
                let most = (ONE_RUN_DELTAS / claim.delta).max(ONE_RUN_AT_LEAST) as usize;
                let count = all.min(most);
                let each = Guesses::planned(count, claim.planned_mu()?, claim.delta, confidence)?;
                let guesses = Guesses::by_rank(&self.scores[..count], &self.coins[..count], each, each)?;
                (one_run_epsilon(guesses, claim.delta, confidence)?, count)
            }
            Test::Gaussian => (epsilon_of_mu(mu_from_rates(counts()?, confidence)?, claim.delta)?, all),
            Test::Rates => (epsilon_from_rates(counts()?, claim.delta, confidence)?, all),
        })
    }
}

/// An experiment: what was attacked, what came out, and what was claimed.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The target of the attack, in words.
    pub what: String,
    /// Coins and scores.
    pub evidence: Evidence,
    /// The claim.
    pub claim: Claim,
}

/// The result of one test of a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The target of the attack.
    pub what: String,
    /// By which argument.
    pub test: Test,
    /// How many coins were guessed at.
    pub canaries: usize,
    /// The epsilon claimed; absent without a guarantee.
    pub claimed: Option<f64>,
    /// The delta of the claim.
    pub delta: f64,
    /// The epsilon, at least.
    pub measured: f64,
    /// Whether the claim is refuted.
    pub refuted: bool,
}

/// The findings of all trials. All bounds hold together with the stated confidence: an honest program is accused with
/// probability at most `1 - confidence`, however many trials there are.
///
/// # Errors
/// Scores that are not finite, all coins of a trial alike, or a confidence outside `(0, 1)`.
pub fn evaluate(trials: &[Trial], confidence: f64) -> Result<Vec<Finding>> {
    let tests: usize = trials.iter().map(|trial| trial.claim.tests().len()).sum();
    let each = 1.0 - (1.0 - confidence) / tests.max(1) as f64;
    let mut findings = Vec::new();
    for Trial { what, evidence, claim } in trials {
        for &test in claim.tests() {
            let (measured, canaries) = evidence.epsilon(test, claim, each)?;
            findings.push(Finding {
                what: what.clone(),
                test,
                canaries,
                claimed: claim.epsilon,
                delta: claim.delta,
                measured,
                refuted: claim.epsilon.is_some_and(|claimed| measured > claimed),
            });
        }
    }
    Ok(findings)
}

/// Fair coins.
pub(super) fn toss(randomness: &mut Randomness<AnySource>, count: usize) -> Result<Vec<bool>> {
    let mut stream = randomness.purpose("coins of an audit")?.stream();
    Ok((0..count).map(|_| stream.next_u32() & 1 == 1).collect())
}
