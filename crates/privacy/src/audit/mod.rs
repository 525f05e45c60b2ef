//! Lower bounds on the privacy loss from recorded scores.
//!
//! An accountant bounds epsilon from above by proof; an audit bounds it from below by experiment. When a lower bound
//! exceeds what is claimed, the claim is wrong: a bug in the noise, the sensitivity or the count. Every function
//! here states its rate of false alarms, which holds for every mechanism that keeps its claim and whatever the
//! scores are, unless it says otherwise ([proof](crate::proofs::audit)).
//!
//! | recorded | function |
//! |---|---|
//! | hits and false alarms of a fixed threshold over many runs | [`epsilon_from_rates`], [`mu_from_rates`] |
//! | canary scores with Gaussian noise of known scale | [`mu_from_gaussian_scores`] |
//! | guesses about many canaries in one run | [`one_run_epsilon`] |
//! | scores of two groups, without any claim | [`Roc`] |

mod binomial;
mod one_run;
mod rates;
mod roc;

pub use binomial::{Interval, clopper_pearson, lower_bound, upper_bound};
pub use one_run::{Guesses, one_run_epsilon, one_run_p_value};
pub use rates::{
    Counts, epsilon_from_rates, epsilon_of_mu, mu_from_gaussian_scores, mu_from_rates, mu_of_epsilon,
};
pub use roc::{Roc, by_coin};

use crate::error::{Error, Result};

/// The chance of a false alarm that a confidence leaves.
fn error_rate(confidence: f64) -> Result<f64> {
    if confidence > 0.0 && confidence < 1.0 {
        Ok(1.0 - confidence)
    } else {
        Err(Error::invalid("confidence", confidence, "strictly between 0 and 1"))
    }
}

/// The delta of a claim under audit, which may be zero.
fn claimed_delta(delta: f64) -> Result<f64> {
    if (0.0..1.0).contains(&delta) {
        Ok(delta)
    } else {
        Err(Error::invalid("delta", delta, "at least 0 and below 1"))
    }
}
