//! L-BFGS with a line search that meets the strong Wolfe conditions (Nocedal and Wright 2006, algorithms 7.5, 3.5 and
//! 3.6): smooth functions of many variables to their minimum, without a learning rate.

/// Pairs of steps and changes of the gradient that are remembered.
const MEMORY: usize = 10;
/// Sufficient decrease, and how much flatter the function must be at the end of a step.
const DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
/// The search ends where a step takes away less than this share of the value.
const MIN_GAIN: f64 = 1e-8;
/// Evaluations in one line search.
const TRIES: usize = 20;

/// A point of the search: where, how high, how steep.
struct Point {
    at: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// A remembered step `s`, the change `y` of the gradient along it, and `1 / (y · s)`.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    inverse: f64,
}

/// The minimum found from `start` in at most `iterations` steps, or a point where no partial derivative is larger than
/// `tolerance`. `function` writes the gradient and returns the value; it must be finite at the start.
pub(super) fn minimise(
    mut function: impl FnMut(&[f64], &mut [f64]) -> f64,
    start: Vec<f64>,
    iterations: usize,
    tolerance: f64,
) -> Vec<f64> {
    let mut gradient = vec![0.0; start.len()];
    let value = function(&start, &mut gradient);
    let mut here = Point { at: start, value, gradient };
    let mut pairs: Vec<Pair> = vec![];
    for _ in 0..iterations {
        if here.gradient.iter().all(|slope| slope.abs() <= tolerance) {
            break;
        }
        let mut direction = search_direction(&here.gradient, &pairs);
        let mut slope = dot(&here.gradient, &direction);
        if slope >= 0.0 || !slope.is_finite() {
            // Rounding has spoilt what is remembered.
            pairs.clear();
            direction = here.gradient.iter().map(|g| -g).collect();
            slope = dot(&here.gradient, &direction);
        }
        let first = match pairs.is_empty() {
            true => 1f64.min(1.0 / here.gradient.iter().map(|g| g.abs()).sum::<f64>()),
            false => 1.0,
        };
        let Some(next) = line_search(&mut function, &here, &direction, slope, first) else { break };
        let step: Vec<f64> = next.at.iter().zip(&here.at).map(|(next, here)| next - here).collect();
        let change: Vec<f64> = next.gradient.iter().zip(&here.gradient).map(|(n, h)| n - h).collect();
        let curvature = dot(&step, &change);
        if curvature > f64::EPSILON * dot(&change, &change) {
            if pairs.len() == MEMORY {
                pairs.remove(0);
            }
            pairs.push(Pair { step, change, inverse: 1.0 / curvature });
        }
        let gain = (here.value - next.value) / here.value.abs().max(next.value.abs()).max(1.0);
        here = next;
        if gain <= MIN_GAIN {
            break;
        }
    }
    here.at
}

/// The two-loop recursion: minus the inverse Hessian, as far as it is remembered, times the gradient.
fn search_direction(gradient: &[f64], pairs: &[Pair]) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut shares = Vec::with_capacity(pairs.len());
    for pair in pairs.iter().rev() {
        let share = pair.inverse * dot(&pair.step, &direction);
        add(&mut direction, -share, &pair.change);
        shares.push(share);
    }
    if let Some(last) = pairs.last() {
        let scale = 1.0 / (last.inverse * dot(&last.change, &last.change));
        direction.iter_mut().for_each(|d| *d *= scale);
    }
    for (pair, share) in pairs.iter().zip(shares.into_iter().rev()) {
        let back = pair.inverse * dot(&pair.change, &direction);
        add(&mut direction, share - back, &pair.step);
    }
    direction
}

/// A point along the direction that is lower and flatter; the lowest one seen where no such point is found, if it is
/// lower at all.
fn line_search(
    function: &mut impl FnMut(&[f64], &mut [f64]) -> f64,
    here: &Point,
    direction: &[f64],
    slope: f64,
    first: f64,
) -> Option<Point> {
    let mut evaluate = |length: f64| {
        let at: Vec<f64> = here.at.iter().zip(direction).map(|(at, d)| at + length * d).collect();
        let mut gradient = vec![0.0; at.len()];
        let value = function(&at, &mut gradient);
        let along = dot(&gradient, direction);
        (Point { at, value, gradient }, along)
    };
    let low_enough = |value: f64, length: f64| value <= here.value + DECREASE * length * slope;
    let flat_enough = |along: f64| along.abs() <= -CURVATURE * slope;
    // The end of the bracket with the lower value, and the other end: (length, value, slope).
    let mut low = (0.0, here.value, slope);
    let mut high: Option<(f64, f64, f64)> = None;
    let mut best: Option<Point> = None;
    let mut length = first;
    for _ in 0..TRIES {
        let (point, along) = evaluate(length);
        let tried = (length, point.value, along);
        let fell = point.value.is_finite() && low_enough(point.value, length) && point.value < low.1;
        if fell && flat_enough(along) {
            return Some(point);
        }
        if fell {
            if high.is_some_and(|high| along * (high.0 - low.0) >= 0.0) || (high.is_none() && along >= 0.0) {
                high = Some(low);
            }
            low = tried;
            best = Some(point);
        } else {
            high = Some(tried);
        }
        length = match high {
            Some(high) => between(low, high),
            None => 2.0 * length,
        };
    }
    best
}

/// The minimum of the cubic through two ends of a bracket, kept away from both; the middle where there is none.
fn between(low: (f64, f64, f64), high: (f64, f64, f64)) -> f64 {
    let width = high.0 - low.0;
    let chord = low.2 + high.2 - 3.0 * (low.1 - high.1) / (low.0 - high.0);
    let root = (chord * chord - low.2 * high.2).sqrt() * width.signum();
    let cubic = high.0 - width * (high.2 + root - chord) / (high.2 - low.2 + 2.0 * root);
    let share = (cubic - low.0) / width;
    if share.is_finite() { low.0 + width * share.clamp(0.1, 0.9) } else { low.0 + 0.5 * width }
}

/// In sums side by side: one after the other, each addition would wait for the one before.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    const SIDE_BY_SIDE: usize = 16;
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<SIDE_BY_SIDE>(), b.as_chunks::<SIDE_BY_SIDE>());
    let mut sums = [0.0; SIDE_BY_SIDE];
    for (a, b) in a.iter().zip(b) {
        for j in 0..SIDE_BY_SIDE {
            sums[j] += a[j] * b[j];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

fn add(to: &mut [f64], factor: f64, values: &[f64]) {
    to.iter_mut().zip(values).for_each(|(to, value)| *to += factor * value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curved_valley_is_followed_to_its_end() {
        let rosenbrock = |x: &[f64], gradient: &mut [f64]| {
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            gradient.copy_from_slice(&[-2.0 * a - 400.0 * x[0] * b, 200.0 * b]);
            a * a + 100.0 * b * b
        };
        let found = minimise(rosenbrock, vec![-1.2, 1.0], 200, 1e-6);
        assert!((found[0] - 1.0).abs() < 1e-3 && (found[1] - 1.0).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn badly_scaled_bowls_are_no_trouble() {
        let scales: Vec<f64> = (0..30).map(|i| 10f64.powf(f64::from(i) / 6.0 - 2.0)).collect();
        let bowl = |x: &[f64], gradient: &mut [f64]| {
            let mut value = 0.0;
            for ((x, scale), g) in x.iter().zip(&scales).zip(gradient) {
                value += 0.5 * scale * (x - 3.0).powi(2);
                *g = scale * (x - 3.0);
            }
            value
        };
        let found = minimise(bowl, vec![0.0; 30], 500, 1e-6);
        let left: f64 = found.iter().zip(&scales).map(|(x, scale)| scale * (x - 3.0).powi(2)).sum();
        // Of a value of 3,000 at the start.
        assert!(left < 1e-3, "{left}");
    }

    #[test]
    fn no_step_goes_uphill_and_cliffs_are_walked_around() {
        // Not finite beyond 1.
        let mut values = vec![];
        let wall = |x: &[f64], gradient: &mut [f64]| {
            let value = if x[0] < 1.0 { -x[0] - 0.1 * (1.0 - x[0]).ln() } else { f64::INFINITY };
            gradient[0] = -1.0 + 0.1 / (1.0 - x[0]);
            values.push(value);
            value
        };
        let found = minimise(wall, vec![-5.0], 100, 1e-6);
        assert!((found[0] - 0.9).abs() < 1e-3, "{found:?}");
    }
}
