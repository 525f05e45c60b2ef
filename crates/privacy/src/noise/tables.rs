//! The cost of drawing noise from tables, and the part of every delta that pays for it.
//!
//! A table of [`RoundedGaussian`](super::RoundedGaussian) is not quite the distribution that accountants speak of: each
//! value drawn is within [`DISTANCE`] of it. So what is guaranteed at a delta is accounted for at the slightly smaller
//! [`provable`] one, and a run whose values would cost more than the difference is refused.
//!
//! # Proof definition
//! If the ideal mechanism is `(epsilon, provable(delta))`-private and [`fit`] holds, then the same mechanism with at
//! most `values` draws from tables is `(epsilon, delta)`-private ([proof](crate::proofs::rounding)).

/// An upper bound on the total variation distance between one draw from any table and the true rounded Gaussian.
pub const DISTANCE: f64 = 1e-31;

/// The part of a delta that is kept for tables. It makes noise larger by about one part in 30,000.
pub const SHARE: f64 = 1.0 / 1024.0;

/// The delta at which accountants are asked, where `delta` is guaranteed.
pub fn provable(delta: f64) -> f64 {
    delta * (1.0 - SHARE)
}

/// The delta that this many draws from tables add at an epsilon: `values * distance * (1 + e^epsilon)`.
pub fn slack(values: u64, epsilon: f64) -> f64 {
    if values == 0 {
        return 0.0;
    }
    values as f64 * DISTANCE * (1.0 + epsilon.exp()) * (1.0 + 1e-9)
}

/// Whether this many draws fit in the part of `delta` that is kept for them.
///
/// ```
/// use progap_privacy::noise::tables;
///
/// assert!(tables::fit(1_000_000_000, 8.0, 1e-7));
/// assert!(!tables::fit(1_000_000_000, 100.0, 1e-7));
/// ```
pub fn fit(values: u64, epsilon: f64, delta: f64) -> bool {
    slack(values, epsilon) <= delta * SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provable_and_slack_are_a_delta_together() {
        for delta in [1e-3, 1e-7, 1e-12] {
            for values in [1, 1 << 20, 1 << 40] {
                for epsilon in [0.01, 1.0, 8.0, 32.0] {
                    let all = provable(delta) + slack(values, epsilon);
                    assert_eq!(fit(values, epsilon, delta), all <= delta * (1.0 + 1e-15), "{delta} {values}");
                }
            }
        }
        assert!(!fit(1, 1000.0, 0.1), "an infinite slack fits nowhere");
        assert!(fit(0, 1000.0, 1e-7), "no draw, no slack");
    }
}
