//! Where the answer will be, and the window that holds it.

use super::compose::Given;
use crate::special::{minimise, minimise_near};

/// Tilted mass, on a log scale, that may lie outside of the transform's window on either side.
const LOG_OUTSIDE: f64 = -23.0;

/// The tilt of a normal law, times its standard deviation, that bounds a tail of this mass best: where the search for a
/// tilt begins.
fn tilt_of_tail(log_tail: f64) -> f64 {
    (-2.0 * log_tail).max(0.25).sqrt()
}

/// Where the answer will be, from the moments alone.
pub(super) struct Saddle {
    /// The tilt.
    pub lambda: f64,
    /// The bound that the moments give by themselves (the Rényi bound).
    pub epsilon: f64,
    /// Standard deviation of the tilted loss.
    pub spread: f64,
    /// Ends of a window that holds almost all of the tilted loss.
    pub low: f64,
    pub high: f64,
    /// Tilt that bounds what lies above the window.
    pub lambda_above: f64,
}

impl Saddle {
    pub fn find(target: Given, log_moment: &impl Fn(f64) -> f64, spread: f64) -> Saddle {
        // sup over x of (1 - e^-x) e^(-lambda x), the factor between the moment bound and delta.
        let log_factor = |lambda: f64| lambda * (lambda / (1.0 + lambda)).ln() - lambda.ln_1p();
        // The logarithm of a moment is convex in the order, and so is the factor's: each function below falls and then
        // rises.
        let (low, high) = ((1e-3 / spread).ln(), (1e3 / spread).ln());
        let (lambda, epsilon) = match target {
            Given::Delta(delta) => {
                let guess = (tilt_of_tail(delta.ln()) / spread).ln();
                let (x, epsilon) = minimise_near(guess, (low, high), 28, 12, |x| {
                    let lambda = x.exp();
                    (log_moment(lambda) + log_factor(lambda) - delta.ln()) / lambda
                });
                // Bounded losses may call for a far larger order than a transform can use.
                let beyond = |x: f64| {
                    let lambda = x.exp();
                    (log_moment(lambda) + log_factor(lambda) - delta.ln()) / lambda
                };
                let far =
                    if x > high - 0.5 { minimise(high, high + 12.0, 12, 20, beyond).1 } else { epsilon };
                (x.exp(), epsilon.min(far))
            }
            Given::Epsilon(epsilon) => {
                let guess = (epsilon / (spread * spread)).max(1.0 / spread).ln();
                let (x, _) = minimise_near(guess, (low, high), 28, 12, |x| {
                    let lambda = x.exp();
                    log_moment(lambda) + log_factor(lambda) - lambda * epsilon
                });
                (x.exp(), epsilon)
            }
        };
        let here = log_moment(lambda);
        let nudge = 1e-3 * lambda.min(1.0 / spread);
        let (up, down) = (log_moment(lambda + nudge), log_moment(lambda - nudge));
        let tilted_spread = ((up - 2.0 * here + down).max(0.0) / (nudge * nudge)).sqrt().max(1e-3 * spread);
        let range = ((0.3 / tilted_spread).ln(), (30.0 / tilted_spread).ln());
        let guess = (tilt_of_tail(LOG_OUTSIDE) / tilted_spread).ln();
        let (x, top) = minimise_near(guess, range, 12, 4, |x| {
            let s = x.exp();
            (log_moment(lambda + s) - here - LOG_OUTSIDE) / s
        });
        let (_, bottom) = minimise_near(guess, range, 12, 4, |x| {
            let s = x.exp();
            (log_moment(lambda - s) - here - LOG_OUTSIDE) / s
        });
        let margin = 0.5 * tilted_spread;
        let low = (-bottom).min(epsilon) - margin;
        Saddle {
            lambda,
            epsilon,
            spread: tilted_spread,
            low,
            high: top.max(low + margin) + margin,
            lambda_above: lambda + x.exp(),
        }
    }
}
