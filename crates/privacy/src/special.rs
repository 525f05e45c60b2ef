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
    narrow(best, (low, high), step, refine, f)
}

/// The same, to the last bit, for a function that falls and then rises: of the scan only the points between `guess` and
/// the best one are looked at.
pub fn minimise_near(
    guess: f64,
    (low, high): (f64, f64),
    scan: usize,
    refine: usize,
    f: impl Fn(f64) -> f64,
) -> (f64, f64) {
    let step = (high - low) / scan as f64;
    let at = |i: usize| {
        let x = if i == 0 { low } else { low + step * i as f64 };
        (x, f(x))
    };
    let mut i = ((guess - low) / step).round().clamp(0.0, scan as f64) as usize;
    let mut best = at(i);
    if !best.1.is_finite() {
        return minimise(low, high, scan, refine, f);
    }
    let first = i;
    while i < scan {
        let next = at(i + 1);
        if next.1.is_nan() || next.1 >= best.1 {
            break;
        }
        (i, best) = (i + 1, next);
    }
    while i <= first && i > 0 {
        let before = at(i - 1);
        // Of equals the first.
        if before.1.is_nan() || before.1 > best.1 {
            break;
        }
        (i, best) = (i - 1, before);
    }
    narrow(best, (low, high), step, refine, f)
}

/// Golden sections around the best of points that are `step` apart.
fn narrow(
    mut best: (f64, f64),
    (low, high): (f64, f64),
    step: f64,
    refine: usize,
    f: impl Fn(f64) -> f64,
) -> (f64, f64) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_near_a_guess_ends_where_a_whole_scan_does() {
        for bottom in [-3.0, -1.7, 0.0, 0.33, 2.9, 5.0] {
            let valley = |x: f64| (x - bottom).powi(2) + 0.1 * (x - bottom).powi(4);
            let scanned = minimise(-2.0, 3.0, 20, 9, valley);
            for guess in [-9.0, -2.0, -0.4, 0.3, 1.0, 2.6, 3.0, 99.0] {
                assert_eq!(
                    minimise_near(guess, (-2.0, 3.0), 20, 9, valley),
                    scanned,
                    "{bottom} from {guess}"
                );
            }
        }
        // Not finite where the search begins.
        let wall = |x: f64| if x < 1.0 { -x } else { f64::INFINITY };
        assert_eq!(minimise_near(2.0, (-2.0, 3.0), 20, 9, wall), minimise(-2.0, 3.0, 20, 9, wall));
    }
}
