//! Where the answer will be, from the moments of the losses alone.

use super::compose::Given;
use super::loss::Cumulants;
use crate::special::minimise;

/// Tilted mass, on a log scale, that may lie outside of the transform's window on either side.
const LOG_OUTSIDE: f64 = -23.0;

/// How close a tilt must come to the best one. Any tilt gives a bound; near the best one they hardly differ.
const TILT_WIDTH: f64 = 1e-3;

/// The tilt, and the window that it needs.
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
    /// `cumulants` are those of the composed loss, `mean` and `spread` its own.
    pub fn find(target: Given, cumulants: &impl Fn(f64) -> Cumulants, (mean, spread): (f64, f64)) -> Saddle {
        let range = (1e-3 / spread, 1e3 / spread);
        let objective = |lambda: f64| cumulants(lambda).plus(log_factor(lambda));
        let (lambda, epsilon) = match target {
            Given::Delta(delta) => {
                let bound = |lambda: f64| objective(lambda).plus(Cumulants::constant(-delta.ln()));
                let start = (-2.0 * delta.ln()).max(1.0).sqrt() / spread;
                let (lambda, epsilon) = least_ratio(start, range, bound);
                // Bounded losses may call for a far larger order than a transform can use.
                let beyond = |x: f64| bound(x.exp()).value / x.exp();
                let high = range.1.ln();
                let is_far = lambda.ln() > high - 0.5;
                (
                    lambda,
                    if is_far { minimise(high, high + 12.0, 12, 20, beyond).1.min(epsilon) } else { epsilon },
                )
            }
            Given::Epsilon(epsilon) => {
                let lambda = root((epsilon - mean) / (spread * spread), range, |lambda| {
                    let Cumulants { slope, curvature, .. } = objective(lambda);
                    (slope - epsilon, lambda - (slope - epsilon) / curvature)
                });
                (lambda, epsilon)
            }
        };
        let here = cumulants(lambda);
        let tilted_spread = here.curvature.max(0.0).sqrt().max(1e-3 * spread);
        let range = (0.3 / tilted_spread, 30.0 / tilted_spread);
        let start = (-2.0 * LOG_OUTSIDE).sqrt() / tilted_spread;
        let beyond = Cumulants::constant(-here.value - LOG_OUTSIDE);
        let (further, top) = least_ratio(start, range, |s| cumulants(lambda + s).plus(beyond));
        let (_, bottom) = least_ratio(start, range, |s| cumulants(lambda - s).mirrored().plus(beyond));
        let margin = 0.5 * tilted_spread;
        let low = (-bottom).min(epsilon) - margin;
        Saddle {
            lambda,
            epsilon,
            spread: tilted_spread,
            low,
            high: top.max(low + margin) + margin,
            lambda_above: lambda + further,
        }
    }
}

/// `ln sup over x of (1 - e^-x) e^(-lambda x)`, the factor between the moment bound and delta; it is convex.
fn log_factor(lambda: f64) -> Cumulants {
    let slope = (lambda / (1.0 + lambda)).ln();
    Cumulants { value: lambda * slope - lambda.ln_1p(), slope, curvature: 1.0 / (lambda * (1.0 + lambda)) }
}

/// The `s` within a range at which `g(s) / s` is least, and that quotient, for a convex `g` with `g(0) > 0`.
///
/// There `s g'(s) - g(s)`, which rises with `s`, is zero. For Gaussian losses it is linear in `s^2`, so Newton's method in `s^2`
/// arrives in a few steps.
fn least_ratio(start: f64, range: (f64, f64), g: impl Fn(f64) -> Cumulants) -> (f64, f64) {
    let mut best = (start, f64::INFINITY);
    root(start, range, |s| {
        let Cumulants { value, slope, curvature } = g(s);
        if value / s < best.1 {
            best = (s, value / s);
        }
        let gap = s * slope - value;
        (gap, (s * s - 2.0 * gap / curvature).sqrt())
    });
    best
}

/// Where a rising function is zero, or the end of the range next to it; `ask` gives the function and where Newton's method goes next.
fn root(start: f64, (mut low, mut high): (f64, f64), mut ask: impl FnMut(f64) -> (f64, f64)) -> f64 {
    // Not `clamp`: whatever is not a number becomes the lower end.
    let mut s = start.max(low).min(high);
    loop {
        let (gap, next) = ask(s);
        if gap > 0.0 {
            high = s;
        } else {
            low = s;
        }
        let next = if low < next && next < high { next } else { (low * high).sqrt() };
        if (next / s - 1.0).abs() < TILT_WIDTH || high / low < 1.0 + TILT_WIDTH {
            return s;
        }
        s = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_ratio_is_found_wherever_the_search_begins() {
        // g = s^2 + 9: least at 3. g = e^s + 1: least where s e^s - e^s = 1.
        let parabola = |s: f64| Cumulants { value: s * s + 9.0, slope: 2.0 * s, curvature: 2.0 };
        let exponential = |s: f64| Cumulants { value: s.exp() + 1.0, slope: s.exp(), curvature: s.exp() };
        for start in [1e-3, 0.5, 3.0, 40.0, f64::NAN] {
            let (at, ratio) = least_ratio(start, (1e-3, 1e2), parabola);
            assert!((at - 3.0).abs() < 0.01 && (ratio - 6.0).abs() < 1e-5, "{start}: {at} {ratio}");
            let (at, _) = least_ratio(start, (1e-3, 1e2), exponential);
            assert!((at - 1.278_464_5).abs() < 0.005, "{start}: {at}");
        }
        assert!(
            least_ratio(0.1, (1e-3, 2.0), parabola).0 > 1.99,
            "the end of the range is the best there is"
        );
    }

    #[test]
    fn the_factor_has_the_derivatives_that_it_says() {
        for lambda in [0.01, 0.7, 5.0, 300.0] {
            let step = 1e-4 * lambda;
            let [below, here, above] = [lambda - step, lambda, lambda + step].map(log_factor);
            let slope = (above.value - below.value) / (2.0 * step);
            let curvature = (above.slope - below.slope) / (2.0 * step);
            assert!((slope / here.slope - 1.0).abs() < 1e-6, "{lambda}: {slope} {}", here.slope);
            assert!((curvature / here.curvature - 1.0).abs() < 1e-6, "{lambda}");
        }
    }
}
