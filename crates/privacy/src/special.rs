//! Special functions of the normal law, accurate far into the tails.

use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

/// `ln(sqrt(2 pi))`.
const LN_SQRT_2PI: f64 = 0.918_938_533_204_672_8;
/// `sqrt(pi / 2)`.
const SQRT_HALF_PI: f64 = 1.253_314_137_315_500_3;

/// The scaled complementary error function `exp(x^2) erfc(x)` for `x >= 0`.
fn erfcx(x: f64) -> f64 {
    debug_assert!(x >= 0.0);
    if x < 10.0 {
        // exp(x^2) with the rounding error of the square put back.
        let square = x * x;
        let lost = x.mul_add(x, -square);
        return square.exp() * (1.0 + lost) * libm::erfc(x);
    }
    // The asymptotic series; from x = 10 on, twenty terms reach full precision.
    let step = 0.5 / (x * x);
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 0..20 {
        term *= -f64::from(2 * k + 1) * step;
        sum += term;
        if term.abs() < 1e-17 {
            break;
        }
    }
    sum / (x * PI.sqrt())
}

/// The Mills ratio `(1 - Phi(x)) / phi(x)` of the standard normal law, for `x >= -30`.
pub fn mills_ratio(x: f64) -> f64 {
    if x >= 0.0 {
        SQRT_HALF_PI * erfcx(x * FRAC_1_SQRT_2)
    } else {
        // phi(x) is far from underflow in this range.
        normal_cdf(-x) / (-0.5 * x * x - LN_SQRT_2PI).exp()
    }
}

/// The standard normal distribution function.
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// `ln Phi(x)`, accurate for any `x`.
pub fn log_normal_cdf(x: f64) -> f64 {
    if x > 0.0 { (-normal_cdf(-x)).ln_1p() } else { mills_ratio(-x).ln() - 0.5 * x * x - LN_SQRT_2PI }
}

/// `ln(e^a + e^b)`.
pub fn log_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY || high == f64::INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// `ln delta(epsilon)` of the pair `N(mu, 1)` against `N(0, 1)`, for `mu > 0` and any real epsilon.
///
/// With `t = epsilon / mu - mu / 2` both terms of `Phi(-t) - e^epsilon Phi(-t - mu)` share the factor `phi(t)`, so
/// that only a difference of two Mills ratios is left and nothing over- or underflows.
pub fn log_gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    let t = epsilon / mu - 0.5 * mu;
    if t > -5.0 {
        let difference = mills_ratio(t) - mills_ratio(t + mu);
        -0.5 * t * t - LN_SQRT_2PI + difference.max(0.0).ln()
    } else {
        // Phi(-t) is almost 1: work with what is missing from 1.
        let missing = normal_cdf(t) + (epsilon + log_normal_cdf(-t - mu)).exp();
        (-missing).ln_1p()
    }
}

/// An upper bound on the standard normal quantile of `1 - tail`, for `tail <= 1/2`.
pub fn normal_quantile_bound(log_tail: f64) -> f64 {
    SQRT_2 * (-log_tail).max(0.25).sqrt()
}

/// Minimises a function of one variable on `[low, high]`: a scan, then golden sections around its best point.
pub fn minimise(low: f64, high: f64, scan: usize, refine: usize, f: impl Fn(f64) -> f64) -> (f64, f64) {
    let step = (high - low) / scan as f64;
    let mut best = (low, f(low));
    for i in 1..=scan {
        let x = low + step * i as f64;
        let y = f(x);
        if y < best.1 {
            best = (x, y);
        }
    }
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    let (mut a, mut b) = ((best.0 - step).max(low), (best.0 + step).min(high));
    let (mut c, mut d) = (b - golden * (b - a), a + golden * (b - a));
    let (mut fc, mut fd) = (f(c), f(d));
    for _ in 0..refine {
        for (x, y) in [(c, fc), (d, fd)] {
            if y < best.1 {
                best = (x, y);
            }
        }
        if fc < fd {
            (b, d, fd) = (d, c, fc);
            c = b - golden * (b - a);
            fc = f(c);
        } else {
            (a, c, fc) = (c, d, fd);
            d = a + golden * (b - a);
            fd = f(d);
        }
    }
    best
}
