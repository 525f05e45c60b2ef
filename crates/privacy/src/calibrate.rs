//! From a privacy target to the noise that meets it.
//!
//! ```
//! use progap_privacy::Event;
//! use progap_privacy::accountant::Best;
//! use progap_privacy::calibrate::{Target, calibrate};
//!
//! let three_sums = |multiplier: f64| Event::gaussian(multiplier, 1.0)?.repeated(3);
//! let noise = calibrate(three_sums, Target::new(1.0, 1e-7)?, &Best)?;
//! assert!((noise.multiplier - 4.68 * 3f64.sqrt()).abs() < 0.01);
//! assert!(noise.bound.value <= 1.0);
//! # Ok::<(), progap_privacy::Error>(())
//! ```

use serde::{Deserialize, Serialize};

use crate::accountant::{Accountant, Bound, normal_limit};
use crate::error::{Error, Result, check_delta, check_epsilon};
use crate::event::Event;
use crate::special::log_gaussian_delta;

/// The smallest and largest multiplier that is tried.
/// The epsilons that a run may be asked for, and a ledger may hold.
pub const EPSILONS: std::ops::RangeInclusive<f64> = 1e-3..=1e3;
/// The deltas that a run may be asked for, and a ledger may hold.
pub const DELTAS: std::ops::RangeInclusive<f64> = 1e-30..=0.1;

const RANGE: (f64, f64) = (1e-3, 1e9);

/// An epsilon and a delta to stay within.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Largest epsilon.
    pub epsilon: f64,
    /// The delta at which it must hold.
    pub delta: f64,
}

impl Target {
    /// Checks and builds a target.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self> {
        Ok(Target { epsilon: check_epsilon(epsilon)?, delta: check_delta(delta)? })
    }
}

/// Noise that meets a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The multiplier, rounded up.
    pub multiplier: f64,
    /// The event with that multiplier.
    pub event: Event,
    /// The accountant's bound on that very event: at most the target.
    pub bound: Bound,
}

/// Finds the smallest multiplier for which `event(multiplier)` meets the target, up to a relative 1e-6, rounded up.
///
/// # Proof definition
/// `event` must cost less the larger the multiplier is; otherwise the result may be larger than needed. In any case the
/// returned event is one that the accountant has accepted: `bound.value <= target.epsilon`, without exception.
///
/// ```
/// use progap_privacy::{Event, accountant::GdpAccountant, calibrate::{Target, calibrate}};
///
/// let noise = calibrate(|sigma| Event::gaussian(sigma, 1.0), Target::new(0.25, 1e-7)?, &GdpAccountant)?;
/// assert!((noise.multiplier - 17.34).abs() < 0.005);
/// # Ok::<(), progap_privacy::Error>(())
/// ```
pub fn calibrate(
    event: impl Fn(f64) -> Result<Event>,
    target: Target,
    accountant: &dyn Accountant,
) -> Result<Calibration> {
    let target = Target::new(target.epsilon, target.delta)?;
    let probe = event(1.0)?;
    probe.validate()?;
    accountant.supports(&probe)?;
    let exact = Question { event: &event, target, accountant };
    match accountant.coarser(&probe) {
        Some(coarse) => exact.settle(&Question { accountant: coarse, ..exact }),
        None => exact.search(0.0, 1.5, WIDTH),
    }
}

/// How close to the smallest multiplier the answer is, relatively.
const WIDTH: f64 = 1e-6;

/// Which multiplier `e^x` meets a target, by an accountant.
struct Question<'a, E> {
    event: &'a E,
    target: Target,
    accountant: &'a dyn Accountant,
}

impl<E: Fn(f64) -> Result<Event>> Question<'_, E> {
    fn ask(&self, x: f64) -> Result<Calibration> {
        let multiplier = x.exp();
        let event = (self.event)(multiplier)?;
        let bound = self.accountant.epsilon(&event, self.target.delta)?;
        Ok(Calibration { multiplier, event, bound })
    }

    fn meets(&self, found: &Calibration) -> bool {
        found.bound.value <= self.target.epsilon
    }

    /// Distance of an epsilon from the target on a log scale, kept finite for the secants.
    fn excess(&self, epsilon: f64) -> f64 {
        (epsilon / self.target.epsilon).ln().clamp(-20.0, 20.0)
    }

    /// Goes where a coarser accountant of the same kind points to: from there a few exact questions are enough.
    fn settle(&self, coarse: &Self) -> Result<Calibration> {
        /// The coarse answer is hardly off by more.
        const NEAR: f64 = 1e-2;
        let Some((start, mut slope)) = coarse.approach()? else {
            return self.search(0.0, 1.5, WIDTH);
        };
        let (mut x, mut step) = (start, 0.0);
        let mut last = None;
        for _ in 0..4 {
            if !(slope < 0.0 && f64::abs(step) < NEAR) {
                break;
            }
            x += step;
            let found = self.ask(x)?;
            let excess = self.excess(found.bound.value);
            // The slope is known to a few percent.
            if self.meets(&found) && excess >= 0.9 * slope * WIDTH {
                return Ok(found);
            }
            if let Some(before) = last.replace(excess) {
                slope = (excess - before) / step;
            }
            // To the side that meets the target, by less than the answer may be off.
            step = 0.3 * WIDTH - excess / slope;
        }
        self.search(start, 0.2 * NEAR, WIDTH)
    }

    /// Where the target is met to about a part in ten thousand, and how the excess falls there; nothing if secants do
    /// not lead to such a place.
    fn approach(&self) -> Result<Option<(f64, f64)>> {
        /// How epsilon falls with the noise, in logarithms, where nothing better is known.
        const USUAL_SLOPE: f64 = -1.3;
        /// An error of a secant: the product of its last two steps, as epsilon is no power of the noise.
        const NEAR: f64 = 2e-4;
        /// The least distance of the first two points.
        const APART: f64 = 0.02;
        let mut x = self.guess().unwrap_or(0.0);
        let mut last: Option<(f64, f64)> = None;
        for _ in 0..8 {
            let bound = self.ask(x)?.bound;
            // The error is the most that a grid adds at the saddle point: on average it is two thirds of that.
            let excess = self.excess(bound.value - bound.error * 2.0 / 3.0);
            let slope = last.map_or(USUAL_SLOPE, |(before, then)| (excess - then) / (x - before));
            let step = -excess / slope;
            if !(slope < 0.0 && step.is_finite()) {
                return Ok(None);
            }
            if last.is_some_and(|(before, _)| (step * (x - before)).abs() < NEAR) {
                return Ok(Some((x + step, slope)));
            }
            // Points that are closer to each other tell little of the slope: a coarse grid moves each a little.
            let step = if last.is_none() { step.abs().max(APART).copysign(step) } else { step };
            last = Some((x, excess));
            x = (x + step.clamp(-1.5, 1.5)).clamp(RANGE.0.ln(), RANGE.1.ln());
        }
        Ok(None)
    }

    /// Where the target would be met if losses added up to a normal law of their variance: a place to begin, and no
    /// answer.
    fn guess(&self) -> Option<f64> {
        let halves = |low: f64, high: f64, is_low: &dyn Fn(f64) -> Option<bool>| {
            (0..40).try_fold((low, high), |(low, high), _| {
                let middle = 0.5 * (low + high);
                Some(if is_low(middle)? { (middle, high) } else { (low, middle) })
            })
        };
        let (mu, _) = halves(1e-6, 1e3, &|mu| {
            Some(log_gaussian_delta(mu, self.target.epsilon) < self.target.delta.ln())
        })?;
        let (_, x) = halves(RANGE.0.ln(), RANGE.1.ln(), &|x| {
            Some(normal_limit(&(self.event)(x.exp()).ok()?)? > mu * mu)
        })?;
        Some(x)
    }

    /// Brackets from `start` in growing strides, then narrows the bracket to a relative `width`.
    fn search(&self, start: f64, mut stride: f64, width: f64) -> Result<Calibration> {
        let excess = |c: &Calibration| self.excess(c.bound.value);
        // `low` misses the target, `high` meets it.
        let first = self.ask(start)?;
        let (mut low, mut high) = ((start, excess(&first)), (start, excess(&first)));
        let mut best = if self.meets(&first) { Some(first) } else { None };
        if best.is_some() {
            loop {
                let x = high.0 - stride;
                if x < RANGE.0.ln() {
                    break;
                }
                let tried = self.ask(x)?;
                low = (x, excess(&tried));
                if !self.meets(&tried) {
                    break;
                }
                (high, best) = (low, Some(tried));
                stride = (2.0 * stride).min(1.5);
            }
        } else {
            while best.is_none() {
                let x = low.0 + stride;
                if x > RANGE.1.ln() {
                    break;
                }
                let tried = self.ask(x)?;
                if self.meets(&tried) {
                    (high, best) = ((x, excess(&tried)), Some(tried));
                } else {
                    low = (x, excess(&tried));
                    stride = (2.0 * stride).min(1.5);
                }
            }
        }
        let Some(mut best) = best else {
            let Target { epsilon, delta } = self.target;
            let why = "more noise does not bring the cost down far enough";
            return Err(Error::CannotCalibrate { epsilon, delta, low: RANGE.0, high: RANGE.1, why });
        };
        if low.1 <= 0.0 {
            // Even the least noise meets the target.
            return Ok(best);
        }

        // Secants (the Illinois rule), pushed to the far side of the root so that both ends of the bracket move.
        let mut last_side = 0;
        for round in 1..200 {
            if high.0 - low.0 <= width {
                break;
            }
            let secant = high.0 - high.1 * (high.0 - low.0) / (high.1 - low.1);
            let push = if last_side < 0 { 0.3 * width } else { -0.3 * width };
            let x = if round % 8 == 0 || !secant.is_finite() {
                0.5 * (low.0 + high.0)
            } else {
                (secant + push).clamp(low.0 + 0.3 * width, high.0 - 0.3 * width)
            };
            let tried = self.ask(x)?;
            if self.meets(&tried) {
                high = (x, excess(&tried));
                best = tried;
                if last_side > 0 {
                    low.1 *= 0.5;
                }
                last_side = 1;
            } else {
                low = (x, excess(&tried));
                if last_side < 0 {
                    high.1 *= 0.5;
                }
                last_side = -1;
            }
        }
        Ok(best)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::accountant::{Best, PldAccountant};

    /// Sums and training of batches, as a run at node level has them.
    fn run(multiplier: f64, rate: f64, steps: u64, sums: u64) -> Result<Event> {
        let training = Event::gaussian(2.0 * multiplier, 1.0)?.poisson_sampled(rate)?.repeated(steps)?;
        let sums = Event::gaussian(multiplier, 1.0)?.repeated(sums)?;
        Event::composed(vec![training.clone(), sums, training])
    }

    /// By way of a coarse grid the answer is that of a search with the exact one alone, with few of its questions.
    #[test]
    fn a_coarse_grid_leads_to_the_same_answer() {
        for (rate, steps, sums, epsilon) in
            [(0.036, 277, 2, 8.0), (0.0625, 500, 1, 2.0), (0.25, 80, 1, 0.25), (0.001, 900, 2, 20.0)]
        {
            let target = Target::new(epsilon, 1e-6).expect("target");
            let event = |multiplier: f64| run(multiplier, rate, steps, sums);
            let found = calibrate(event, target, &Best).expect("calibrated");
            let exact = PldAccountant::new();
            let asked = Cell::new(0);
            let counted = |multiplier: f64| {
                asked.set(asked.get() + 1);
                event(multiplier)
            };
            let question = Question { event: &counted, target, accountant: &exact };
            let searched = question.search(0.0, 1.5, WIDTH).expect("searched");
            let apart = (found.multiplier / searched.multiplier).ln().abs();
            assert!(apart <= 2.0 * WIDTH, "{epsilon}: {} and {}", found.multiplier, searched.multiplier);

            let coarse = Question {
                accountant: exact.coarser(&event(1.0).expect("event")).expect("coarser"),
                event: &event,
                target,
            };
            let (place, _) = coarse.approach().expect("asked").expect("a place");
            assert!((place - found.multiplier.ln()).abs() < 3e-3, "{epsilon}: {}", place.exp());
            asked.set(0);
            question
                .settle(&Question { event: &counted, target, accountant: coarse.accountant })
                .expect("settled");
            // The guess asks for 40 events, of which no accountant knows.
            assert!(asked.get() <= 40 + 9, "{epsilon}: {} questions", asked.get());
        }
    }

    /// A guess needs Gaussians and samples of them; without one the search begins anywhere.
    #[test]
    fn other_mechanisms_need_no_guess() {
        let event =
            |scale: f64| Event::Laplace { scale, sensitivity: 1.0 }.poisson_sampled(0.1)?.repeated(50);
        let target = Target::new(1.0, 1e-6).expect("target");
        let question = Question { event: &event, target, accountant: &Best };
        assert_eq!(question.guess(), None);
        let found = calibrate(event, target, &Best).expect("calibrated");
        assert!(question.meets(&found) && found.bound.value > 1.0 - 1e-5, "{:?}", found.bound);
    }
}
