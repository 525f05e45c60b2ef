//! The composition of losses by a tilted Fourier transform.

use realfft::num_complex::Complex;

use super::loss::{Direction, Loss, Masses, Mechanism};
use super::saddle::Saddle;
use super::transform::{transform_size, transforms};

/// Unit roundoff.
const U: f64 = f64::EPSILON / 2.0;
/// Largest transform and largest single discretisation.
const MAX_POINTS: f64 = (1 << 21) as f64;
/// Relative doubt about each single mass, from the special functions.
const MASS_DOUBT: f64 = 1e-14;

/// The answer would be below the window.
const BELOW: &str = "epsilon is smaller than the computed window can show";

/// Nothing finite can be said.
const DISCLOSED: &str = "certain disclosure is more likely than delta allows";

/// The value is an upper bound, but not a tight one.
const NOISY: &str =
    "an allowance for rounding, not the mechanism, makes up part of delta; the truth is lower";

/// The given quantity; the other one is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Given {
    /// Find epsilon at this delta.
    Delta(f64),
    /// Find delta at this epsilon.
    Epsilon(f64),
}

/// Mechanisms that are composed, in one direction.
pub(super) struct Composition<'a> {
    pub parts: &'a [(Mechanism, u64)],
    pub direction: Direction,
}

/// A sketched loss and how often it occurs.
struct Sketched<'a> {
    loss: Loss<'a>,
    sketch: Masses,
    count: f64,
}

impl Composition<'_> {
    /// The value looked for, how far the grid may have moved it up, and a caveat if it is larger than it had to be;
    /// nothing as soon as a bound shows that it is at most `known`.
    pub fn solve(
        &self,
        target: Given,
        tolerance: f64,
        known: f64,
    ) -> Option<(f64, f64, Option<&'static str>)> {
        let total: f64 = self.parts.iter().map(|(_, count)| *count as f64).sum();
        // Each truncation counts as lost once per repetition; together they must stay far below delta.
        let log_tail = match target {
            Given::Delta(delta) => delta.ln(),
            Given::Epsilon(_) => -60.0,
        } - 18.0
            - total.max(1.0).ln();
        let sketches: Vec<Sketched> = self
            .parts
            .iter()
            .map(|(mechanism, count)| {
                let loss = Loss { mechanism, direction: self.direction };
                let sketch = loss.sketch(log_tail);
                Sketched { loss, sketch, count: *count as f64 }
            })
            // A mechanism whose outcome does not depend on the record costs nothing.
            .filter(|part| part.sketch.points.iter().any(|&l| l != 0.0) || part.sketch.lost > 0.0)
            .collect();
        let log_moment = |lambda: f64| {
            sketches.iter().map(|part| part.count * part.sketch.log_moment(lambda)).sum::<f64>()
        };
        let (mean, variance) = sketches.iter().fold((0.0, 0.0), |(mean, variance), part| {
            let (m, v) = part.sketch.mean_variance();
            (mean + part.count * m, variance + part.count * v)
        });
        if sketches.is_empty() {
            return Some((0.0, 0.0, None));
        }
        let spread = variance.sqrt().max(1e-9 * mean.abs()).max(1e-300);
        // Mass that the sketch leaves out counts as certain disclosure from the start.
        let lost: f64 = sketches.iter().map(|part| part.count * part.sketch.lost).sum();
        let target = match target {
            Given::Delta(delta) if lost < delta => Given::Delta(delta - lost),
            Given::Delta(_) => return Some((f64::INFINITY, 0.0, Some(DISCLOSED))),
            Given::Epsilon(epsilon) => Given::Epsilon(epsilon),
        };
        let saddle = Saddle::find(target, &log_moment, spread);
        // Two bounds that need no grid: the moments' own, and the largest loss there is.
        let doubt = total * MASS_DOUBT / saddle.lambda;
        let largest: f64 =
            sketches.iter().map(|part| part.count * part.sketch.points[part.sketch.points.len() - 1]).sum();
        let ceiling = (saddle.epsilon + doubt).min(largest).max(0.0) * (1.0 + 1e-12);
        if let Given::Delta(_) = target {
            if ceiling == 0.0 {
                return Some((0.0, 0.0, None));
            }
            if ceiling <= known {
                return None;
            }
        }

        // Each rounding adds about (lambda + 1) step^2 / 12 to epsilon, where lambda is the slope of -ln delta. The
        // moments only guess at both, and a rare large loss can mislead them: look again with what was found.
        let (mut guess, mut slope, mut low) = (saddle.epsilon, saddle.lambda, saddle.low);
        let mut pass = 0;
        loop {
            // The first look may be coarse: it only has to find the place.
            let tolerance = if pass == 0 { (100.0 * tolerance).min(0.03) } else { tolerance };
            let scale = guess.max(0.02 * saddle.spread.min(spread));
            let step = (12.0 * tolerance * scale / (total * (slope + 1.0))).sqrt();
            let step = step.min(0.5 / (slope + 1.0)).max((saddle.high - low) / MAX_POINTS);
            let tilted = Tilted::compose(&sketches, &saddle, low, step);
            let (answer, found, caveat) = match target {
                Given::Delta(delta) => {
                    // The grid counts what it loses itself.
                    let (epsilon, caveat) = tilted.epsilon(delta + lost);
                    (epsilon, epsilon, caveat)
                }
                Given::Epsilon(epsilon) => (tilted.delta(epsilon), epsilon, None),
            };
            if answer <= known {
                return None;
            }
            pass += 1;
            if caveat == Some(BELOW) && low > 0.0 && pass < 4 {
                low = -saddle.spread.min(low);
                continue;
            }
            let steeper = tilted.slope(found);
            let wanted =
                (12.0 * tolerance * found.max(0.02 * spread.min(scale)) / (total * (steeper + 1.0))).sqrt();
            let at_limit = tilted.step > 1.1 * step;
            if pass == 1
                || (pass < 5
                    && !at_limit
                    && found > 0.0
                    && (found.is_infinite() || wanted < 0.7 * tilted.step))
            {
                if found.is_finite() {
                    (guess, slope) = (found, steeper);
                } else {
                    slope = 2.0 * slope + 1.0;
                }
                continue;
            }
            let caveat = caveat.or(tilted.is_noisy(found).then_some(NOISY));
            let error = total * (steeper + 1.0) * tilted.step * tilted.step / 8.0;
            return Some(match target {
                Given::Delta(_) if answer >= ceiling => (ceiling, error.min(ceiling), None),
                Given::Delta(_) => (answer, error.min(answer) + 1e-9 * answer, caveat),
                Given::Epsilon(_) => (answer, answer * (steeper * error).min(1.0), caveat),
            });
        }
    }
}

/// The lowest loss worth a grid point of its own: the mass below it may move up to it without changing the tilted
/// masses by more than a part in 1e10.
fn floor(part: &Sketched, lambda: f64) -> f64 {
    let log_allowed = part.sketch.log_moment(lambda) - 23.0 - part.count.ln();
    let mut below = 0.0;
    let mut floor = part.sketch.points[0];
    for (&point, &mass) in part.sketch.points.iter().zip(&part.sketch.masses) {
        below += mass;
        if below > 0.0 && below.ln() + lambda * point > log_allowed {
            break;
        }
        floor = point;
    }
    floor
}

/// The composed loss on a grid, tilted.
struct Tilted {
    step: f64,
    /// Grid index of the first point of the window.
    first: i64,
    /// `delta` at each point of the window, divided by `e^log_scale(i)`, where the scale is that of the point itself.
    delta: Vec<f64>,
    /// Mass above each point, itself included, on the same scale.
    mass: Vec<f64>,
    lambda: f64,
    /// Log moment of the discretised loss at the tilt.
    log_moment: f64,
    /// Mass that counts as certain disclosure.
    lost: f64,
    /// The amount that the allowance for rounding adds to `delta` at any point, on the scale of that point.
    noise_delta: f64,
}

impl Tilted {
    fn compose(sketches: &[Sketched], saddle: &Saddle, low: f64, step: f64) -> Tilted {
        let lambda = saddle.lambda;
        let floors: Vec<f64> = sketches.iter().map(|part| floor(part, lambda)).collect();
        let tops = sketches.iter().map(|part| part.sketch.points[part.sketch.points.len() - 1]);
        let widest = tops.zip(&floors).map(|(top, floor)| top - floor).fold(0.0, f64::max);
        let step = step.max(widest / MAX_POINTS);
        let first = (low / step).floor() as i64;
        let size = transform_size((saddle.high / step).ceil() as i64 - first + 2);
        let (forward, backward) = transforms(size);

        // Tilts for the Chernoff bound on what lies above the window.
        let tilts = [0.25, 0.5, 1.0].map(|t| lambda + t * (saddle.lambda_above - lambda));
        let (mut log_total, mut log_above, mut lost) = (0.0, [0.0; 3], 0.0);
        let mut spectra: Vec<(Vec<Complex<f64>>, f64, f64)> = Vec::new();
        let mut buffer = forward.make_input_vec();
        let mut single = Vec::new();
        for (part, floor) in sketches.iter().zip(&floors) {
            let grid = part.loss.on_grid(&part.sketch, *floor, step);
            let (weights, log_moment) = grid.tilted(lambda, part.sketch.log_moment(lambda));
            buffer.fill(0.0);
            let mut slot = grid.first.rem_euclid(size as i64) as usize;
            for weight in weights {
                buffer[slot] += weight;
                slot = if slot + 1 == size { 0 } else { slot + 1 };
            }
            if sketches.len() == 1 && part.count == 1.0 {
                single = buffer.clone();
            }
            let norm = buffer.iter().map(|x| x * x).sum::<f64>().sqrt();
            let mut spectrum = forward.make_output_vec();
            forward.process(&mut buffer, &mut spectrum).expect("the buffers have the planned size");
            log_total += part.count * (log_moment + MASS_DOUBT);
            for (log_moment, &tilt) in log_above.iter_mut().zip(&tilts) {
                let moment = grid.tilted(tilt, part.sketch.log_moment(tilt)).1;
                *log_moment += part.count * (moment + MASS_DOUBT);
            }
            lost += part.count * grid.masses.lost;
            spectra.push((spectrum, part.count, norm));
        }
        if let [part] = sketches
            && part.count == 1.0
        {
            // A single mechanism needs no transform, so it is spared its noise.
            return Tilted::from_masses(
                single,
                0.0,
                saddle,
                first,
                step,
                (log_total, &log_above, &tilts, lost),
            );
        }

        let mut product: Vec<Complex<f64>> = vec![Complex::new(1.0, 0.0); size / 2 + 1];
        for (spectrum, count, _) in &spectra {
            for (total, value) in product.iter_mut().zip(spectrum) {
                *total *= power(*value, *count as u64);
            }
        }
        let noise = rounding(&product, &spectra, size);
        // A purely real signal has real ends of its spectrum; rounding may have left something there.
        product[0].im = 0.0;
        product[size / 2].im = 0.0;
        let mut composed = backward.make_output_vec();
        backward.process(&mut product, &mut composed).expect("the buffers have the planned size");

        composed.iter_mut().for_each(|x| *x = x.max(0.0) / size as f64);
        Tilted::from_masses(composed, noise, saddle, first, step, (log_total, &log_above, &tilts, lost))
    }

    /// Sums up the tilted masses of a window, each at most `noise` too small.
    fn from_masses(
        composed: Vec<f64>,
        noise: f64,
        saddle: &Saddle,
        first: i64,
        step: f64,
        (log_total, log_above, tilts, lost): (f64, &[f64], &[f64], f64),
    ) -> Tilted {
        let (size, lambda) = (composed.len(), saddle.lambda);
        // Suffix sums in units of e^(log_total - lambda point), so that nothing over- or underflows. With
        // delta(g) = sum over g' > g of mass(g') (1 - e^(g - g')) one step down multiplies by e^-step and adds
        // what is above: all terms are positive.
        let (mut delta, mut mass) = (vec![0.0; size], vec![0.0; size]);
        let (decay, tilt) = ((-step).exp(), (-lambda * step).exp());
        let gain = -(-step).exp_m1();
        let (mut delta_above, mut mass_above) = (0.0, 0.0);
        for i in (0..size).rev() {
            let slot = (first + i as i64).rem_euclid(size as i64) as usize;
            delta[i] = (delta_above * decay + gain * mass_above) * tilt;
            mass[i] = composed[slot] + noise + mass_above * tilt;
            delta_above = delta[i];
            mass_above = mass[i];
        }
        // Mass above the window counts as lost.
        let end = (first + size as i64) as f64 * step;
        let above =
            log_above.iter().zip(tilts).map(|(moment, tilt)| (moment - tilt * end).exp()).fold(1.0, f64::min);
        // The noise alone, summed up like a mass at every point.
        let noise_delta = noise * (tilt / (1.0 - tilt) - tilt * decay / (1.0 - tilt * decay));
        Tilted {
            step,
            first,
            delta,
            mass,
            lambda,
            log_moment: log_total,
            lost: (lost + above) * (1.0 + 1e-9),
            noise_delta,
        }
    }

    /// Whether more than a hundredth of delta is an allowance for rounding.
    fn is_noisy(&self, epsilon: f64) -> bool {
        let i = ((epsilon.min(1e300) / self.step).floor() as i64 - self.first)
            .clamp(0, self.mass.len() as i64 - 1);
        let delta = self.delta[i as usize];
        self.noise_delta > 0.01 * delta || self.lost > 0.01 * (self.unscaled(i as usize, delta) + self.lost)
    }

    fn point(&self, i: usize) -> f64 {
        (self.first + i as i64) as f64 * self.step
    }

    /// Brings a number from the scale of point `i` to its true size.
    fn unscaled(&self, i: usize, value: f64) -> f64 {
        if value > 0.0 { (value.ln() + self.log_moment - self.lambda * self.point(i)).exp() } else { 0.0 }
    }

    /// `-d ln delta / d epsilon`, from the mass above: `d delta / d epsilon = delta - mass`.
    fn slope(&self, epsilon: f64) -> f64 {
        let i = ((epsilon.min(1e300) / self.step).ceil() as i64 - self.first)
            .clamp(0, self.mass.len() as i64 - 1) as usize;
        let fraction = (epsilon - self.point(i)).clamp(-self.step, 0.0).exp();
        let (mass, delta) = (self.mass[i], self.mass[i] * (1.0 - fraction) + self.delta[i] * fraction);
        if delta > 0.0 { (fraction * (mass - self.delta[i]) / delta).max(0.0) } else { self.lambda }
    }

    /// `delta(epsilon)`, interpolated exactly: it is linear in `e^epsilon` between points.
    fn delta(&self, epsilon: f64) -> f64 {
        let i = ((epsilon / self.step).ceil() as i64 - self.first).clamp(0, self.mass.len() as i64) as usize;
        let within = if i == self.mass.len() {
            0.0
        } else {
            let fraction = (epsilon - self.point(i)).min(0.0).exp();
            self.unscaled(i, self.mass[i] * (1.0 - fraction) + self.delta[i] * fraction)
        };
        ((within + self.lost) * (1.0 + 1e-12)).min(1.0)
    }

    /// The smallest epsilon in the window whose delta is at most the given one.
    fn epsilon(&self, delta: f64) -> (f64, Option<&'static str>) {
        let target = delta - self.lost;
        if target <= 0.0 {
            return (f64::INFINITY, Some(DISCLOSED));
        }
        // delta falls along the window.
        let (mut low, mut high) = (0, self.mass.len() - 1);
        if self.unscaled(high, self.delta[high]) > target {
            return (f64::INFINITY, Some("the loss distribution reaches beyond the computed window"));
        }
        while low < high {
            let middle = (low + high) / 2;
            if self.unscaled(middle, self.delta[middle]) <= target { high = middle } else { low = middle + 1 }
        }
        let at = self.point(high);
        if high == 0 {
            return if at <= 0.0 { (0.0, None) } else { (at, Some(BELOW)) };
        }
        // Between point high - 1 and point high, delta = mass (1 - u) + delta u with u = e^(epsilon - point).
        let (mass, own) = (self.unscaled(high, self.mass[high]), self.unscaled(high, self.delta[high]));
        let epsilon = if mass > own {
            at + (-((target - own) / (mass - own)).clamp(0.0, 1.0)).ln_1p().max(-self.step)
        } else {
            at
        };
        ((epsilon + 1e-12 * epsilon.abs()).clamp(0.0, at.max(0.0)), None)
    }
}

/// `z^n` by repeated squaring.
fn power(z: Complex<f64>, mut n: u64) -> Complex<f64> {
    let (mut base, mut result) = (z, Complex::new(1.0, 0.0));
    while n > 0 {
        if n & 1 == 1 {
            result *= base;
        }
        base *= base;
        n >>= 1;
    }
    result
}

/// An allowance for the rounding error of each entry of the composed, tilted masses, to first order.
///
/// A transform of size M errs by at most `c u log2(M)` relative in the 2-norm; c is taken as 6, above the constants of
/// the textbook analysis for power-of-two kernels, and not proven for the library's mixed ones.
/// A relative error of a spectrum's entry grows by its power n; Cauchy-Schwarz turns the sum over the spectrum of
/// `n |S| / |T| |error of T|` into norms.
fn rounding(product: &[Complex<f64>], spectra: &[(Vec<Complex<f64>>, f64, f64)], size: usize) -> f64 {
    let m = size as f64;
    let per_transform = 6.0 * U * m.log2();
    let product_norm = (2.0 * product.iter().map(Complex::norm_sqr).sum::<f64>()).sqrt();
    let sizes: f64 = product.iter().map(|s| s.norm_sqr().sqrt()).sum();
    let mut error = per_transform * product_norm / m.sqrt();
    for (which, (spectrum, count, norm)) in spectra.iter().enumerate() {
        let mut quotient = 0.0;
        for (k, (s, t)) in product.iter().zip(spectrum).enumerate() {
            let size = t.norm_sqr();
            quotient += if size > 1e-290 {
                (s.norm_sqr() / size).min(1.0)
            } else if *count > 1.0 {
                0.0
            } else {
                // Nothing to divide by: multiply the others.
                let others = spectra.iter().enumerate().filter(|(other, _)| *other != which);
                others.map(|(_, (spectrum, count, _))| spectrum[k].norm_sqr().powf(*count)).product()
            };
        }
        let amplification = count * (2.0 * quotient).sqrt();
        // The error of the transform, and that of the power.
        error += amplification * per_transform * norm / m.sqrt();
        error += count * 8.0 * U * sizes * 2.0 / m;
    }
    error
}
