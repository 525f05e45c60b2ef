//! Sums of clipped gradients: rounded to a grid, with the sensitivity that rounding really has.
//!
//! Gradients are summed in floating point, in an order that may depend on the batch, and then rounded to a grid.
//! Both steps can move the sums of neighbouring data sets apart by more than the clipping norm. This file says
//! by how much at most ([proof](crate::proofs::gradient_sums)), and charges it.

use super::digest::{BlockDigest, QueryDigest};
use super::gaussian::{MAX_SIGMA, RoundedGaussian};
use super::release::Noisy;
use super::source::Source;
use super::stream::Query;
use crate::error::{Error, Result, positive};
use crate::event::Event;

/// How a sum of clipped gradients was accumulated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summation {
    /// The largest number of records that can be in a batch; with Poisson sampling, all of them.
    pub terms: u64,
    /// The largest number of roundings between a record's gradient entry and the sum: the product with the
    /// clipping factor, plus the additions on its way. At most `terms` in a plain loop, far less in blocks.
    pub depth: u64,
    /// Half the gap between 1 and the next number of the accumulator: 2^-53 for `f64`.
    pub unit_roundoff: f64,
}

impl Summation {
    /// A plain loop over `terms` records in double precision.
    pub fn sequential(terms: u64) -> Self {
        Self { terms, depth: terms.saturating_add(1), unit_roundoff: 2f64.powi(-53) }
    }

    /// The largest L2 distance between the computed and the exact sum, for terms of norm at most `clip`:
    /// `gamma * terms * clip` with `gamma = depth u / (1 - depth u)`.
    fn error(self, clip: f64) -> Result<f64> {
        let spread = self.depth as f64 * self.unit_roundoff;
        if !(0.0..0.5).contains(&spread) {
            return Err(Error::invalid("summation depth times roundoff", spread, "below one half"));
        }
        Ok(spread / (1.0 - spread) * self.terms as f64 * clip)
    }
}

/// The grid on which a gradient sum is rounded and noised.
///
/// # Proof definition
/// For sums computed as [`Summation`] says, over records whose contributions have norm at most `clip`, the rounded sums
/// of neighbouring data sets differ by at most [`sensitivity`](Self::sensitivity) `= clip + sqrt(parameters) step + 2
/// error` in L2 norm. [`privatise`](Self::privatise) is then post-processing of the Gaussian mechanism with that
/// sensitivity and standard deviation `noise_multiplier * sensitivity`, up to [`tables::slack`](super::tables::slack).
/// See [proof](crate::proofs::gradient_sums).
#[derive(Debug, Clone)]
pub struct GradientGrid {
    step: f64,
    sensitivity: f64,
    parameters: usize,
    gaussian: RoundedGaussian,
}

/// Adding this to a number of magnitude up to 2^51 rounds it to the nearest integer, which is then in the last bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// 2^51.
const MAX_STEPS: f64 = 2_251_799_813_685_248.0;

/// The integer nearest to a number of magnitude up to 2^51: off by at most one half, exactly.
fn nearest(x: f64) -> i64 {
    (x + ROUNDER).to_bits() as i64 - ROUNDER.to_bits() as i64
}

/// A grid that adds less than this fraction of the clipping norm is fine enough.
const FINE_SHARE: f64 = 1e-3;
/// A coarser grid is taken for the sake of a small table only as long as it adds no more than this fraction.
const COARSE_SHARE: f64 = 1e-2;
/// The integer noise for which a table is small: built in less than a tenth of a second, a few megabytes.
const SMALL_TABLE_SIGMA: f64 = 16_384.0;

impl GradientGrid {
    /// The grid for gradients of up to `parameters` entries clipped to norm `clip`: a power of two, so that dividing by
    /// it is exact. Rounding adds 0.1% of `clip` or less where a table of integer noise up to 16,384 allows it, else up
    /// to 1% for the sake of a small table (about half a percent for 8,000 parameters and a multiplier of 1), and more
    /// only where the largest table is too small. All of it is charged.
    ///
    /// # Errors
    /// Parameters that are not positive numbers, a summation too inaccurate to bound, or noise too large or too
    /// small for a table.
    pub fn new(clip: f64, parameters: usize, noise_multiplier: f64, summation: Summation) -> Result<Self> {
        positive("clip", clip)?;
        positive("noise multiplier", noise_multiplier)?;
        if parameters == 0 {
            return Err(Error::invalid("parameters", parameters, "at least 1"));
        }
        let root = (parameters as f64).sqrt();
        let error = summation.error(clip)?;
        let charge = |step: f64| (clip + root * step + 2.0 * error) * (1.0 + 1e-12);
        let mut step = (FINE_SHARE * clip / root).log2().floor().exp2();
        let sigma = |step: f64| noise_multiplier * charge(step) / step;
        let cheap = |step: f64| root * step <= COARSE_SHARE * clip;
        while sigma(step) > MAX_SIGMA || (sigma(step) > SMALL_TABLE_SIGMA && cheap(2.0 * step)) {
            step *= 2.0;
            if root * step > clip {
                return Err(Error::invalid(
                    "noise multiplier",
                    noise_multiplier,
                    "small enough for the noise table: rounding would exceed the clipping norm",
                ));
            }
        }
        let sensitivity = charge(step);
        let gaussian = RoundedGaussian::new(sigma(step).next_up())?;
        Ok(Self { step, sensitivity, parameters, gaussian })
    }

    /// The distance between grid points.
    pub fn step(&self) -> f64 {
        self.step
    }

    /// The L2 sensitivity to charge.
    pub fn sensitivity(&self) -> f64 {
        self.sensitivity
    }

    /// The standard deviation of the noise, in units of the gradient: at least `noise_multiplier * sensitivity`.
    pub fn noise(&self) -> f64 {
        self.gaussian.sigma() * self.step
    }

    /// The integer noise.
    pub fn gaussian(&self) -> &RoundedGaussian {
        &self.gaussian
    }

    /// One noisy sum as an accountant sees it.
    pub fn event(&self) -> Event {
        Event::Gaussian { sigma: self.noise(), sensitivity: self.sensitivity }
    }

    /// Round a sum to the grid, add integer noise, and go back to floats. The noise is bound to the grid and to every
    /// integer ([`Query::bind`]).
    ///
    /// # Errors
    /// A sum of more entries, or with one that is not a number or beyond 2^51 steps: the contributions
    /// were not clipped then, and no noise would protect them.
    pub fn privatise<S: Source>(&self, sum: &[f64], query: Query<S>) -> Result<Noisy<Vec<f64>, S>> {
        if sum.len() > self.parameters {
            let expected = "at most the number of parameters of the grid";
            return Err(Error::invalid("gradient length", sum.len(), expected));
        }
        // A power of two, and so is its inverse: the product is exact.
        let per_step = 1.0 / self.step;
        // Not the value itself: it is private.
        if !sum.iter().all(|&entry| (entry * per_step).abs() <= MAX_STEPS) {
            return Err(Error::invalid("gradient sum", "out of range", "finite, from clipped gradients"));
        }
        let mut integers: Vec<i64> = sum.iter().map(|&entry| nearest(entry * per_step)).collect();
        let digest = QueryDigest::new(&[self.gaussian.sigma(), self.step], [BlockDigest::new(&integers)]);
        let mut stream = query.bind(&digest).stream();
        self.gaussian.add_to(&mut stream, &mut integers);
        let noisy = integers.iter().map(|&z| z as f64 * self.step).collect();
        Ok(Noisy::new(noisy, stream.source().clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Randomness;
    use proptest::prelude::*;

    /// The factor by which a gradient is multiplied so that its norm is at most `clip`, given its squared norm as
    /// computed in double precision from `terms` non-negative summands, each with up to two roundings of its own.
    ///
    /// # Proof definition
    /// With `u = 2^-53`, a computed sum of `terms` non-negative products is at least `(1 - (terms + 2) u)` times the
    /// exact one. The norm is rounded up by more than that, so `factor * norm <= clip` for the exact norm. A squared
    /// norm that is not finite gives 0: the record is left out.
    fn clip_factor(squared_norm: f64, terms: usize, clip: f64) -> f64 {
        if !squared_norm.is_finite() {
            return 0.0;
        }
        let slack = (terms as f64 + 8.0) * 2f64.powi(-52);
        let norm = (squared_norm * (1.0 + slack)).sqrt() * (1.0 + 4.0 * f64::EPSILON);
        if norm <= clip { 1.0 } else { clip / norm * (1.0 - 2.0 * f64::EPSILON) }
    }

    #[test]
    fn the_charge_is_small_with_doubles() {
        let grid = GradientGrid::new(1.0, 10_000, 1.47, Summation::sequential(1_000_000)).unwrap();
        let rounding = 100.0 * grid.step();
        let summation = grid.sensitivity() - 1.0 - rounding;
        assert!(rounding <= COARSE_SHARE, "{rounding}");
        // C + sqrt(p) g + 2 gamma n C, with gamma = (n + 1) 2^-53 to first order.
        let twice_error = 2.0 * 1_000_001.0 * 1_000_000.0 * 2f64.powi(-53);
        assert!((summation / twice_error - 1.0).abs() < 1e-6, "{summation} {twice_error}");
        assert!(summation > 0.0 && summation < 1e-3 * 0.5, "{summation}");
        assert!(grid.noise() >= 1.47 * grid.sensitivity());
        assert!(grid.noise() <= 1.47 * grid.sensitivity() * (1.0 + 1e-9));
    }

    #[test]
    fn tables_are_small_where_rounding_is_cheap() {
        for (parameters, multiplier) in
            [(100, 1.0), (1_000, 2.0), (8_000, 1.0), (8_000, 5.0), (1_000_000, 3.0)]
        {
            let grid = GradientGrid::new(2.0, parameters, multiplier, Summation::sequential(100)).unwrap();
            let share = (parameters as f64).sqrt() * grid.step() / 2.0;
            let sigma = grid.gaussian().sigma();
            let case = format!("{parameters} {multiplier}: share {share}, integer sigma {sigma}");
            // Either small, or as coarse as it may be, or as large as it can be.
            assert!(sigma <= SMALL_TABLE_SIGMA || share > 0.5 * COARSE_SHARE, "{case}");
            assert!(share <= COARSE_SHARE || sigma > 0.5 * MAX_SIGMA, "{case}");
            assert!(grid.sensitivity() >= 2.0 * (1.0 + share), "{case}");
        }
    }

    #[test]
    fn bad_grids_are_refused() {
        let plain = Summation::sequential(100);
        assert!(GradientGrid::new(0.0, 10, 1.0, plain).is_err());
        assert!(GradientGrid::new(1.0, 0, 1.0, plain).is_err());
        assert!(GradientGrid::new(1.0, 10, f64::NAN, plain).is_err());
        assert!(GradientGrid::new(1.0, 10, 1e9, plain).is_err());
        let hopeless = Summation { terms: 10, depth: 1 << 30, unit_roundoff: 2f64.powi(-24) };
        assert!(GradientGrid::new(1.0, 10, 1.0, hopeless).is_err());
        let grid = GradientGrid::new(1.0, 2, 1.0, plain).unwrap();
        let query = |label: &str| Randomness::from_seed(1).query(label).unwrap();
        assert!(grid.privatise(&[0.0], query("g")).is_ok(), "fewer entries need less");
        assert!(grid.privatise(&[0.0; 3], query("g")).is_err());
        assert!(grid.privatise(&[0.0, MAX_STEPS.next_up() * grid.step()], query("g")).is_err());
        assert!(grid.privatise(&[0.0, f64::NAN], query("g")).is_err());
        assert!(grid.privatise(&[0.0, f64::INFINITY], query("g")).is_err());
    }

    proptest! {
        /// The premise of the proof: no entry moves by more than half a step.
        #[test]
        fn rounding_moves_by_at_most_one_half(x in -MAX_STEPS..MAX_STEPS, small in -4.0_f64..4.0, exponent in 0_i32..51) {
            for x in [x, small, x * 2f64.powi(-exponent), small.floor() + 0.5, small.floor() + 0.5_f64.next_down()] {
                prop_assert!((nearest(x) as f64 - x).abs() <= 0.5, "{x} became {}", nearest(x));
            }
        }
    }

    #[test]
    fn the_ends_of_the_range_round_to_themselves() {
        for x in [0.0, -0.0, 1.0, -1.0, MAX_STEPS, -MAX_STEPS, MAX_STEPS - 1.0] {
            assert_eq!(nearest(x) as f64, x);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// The bound holds on adversarial sums: entries of widely different size, another order without the record.
        #[test]
        fn neighbouring_rounded_sums_stay_within_the_charge(
            rows in prop::collection::vec(prop::collection::vec(-1e3_f64..1e3, 6), 2..60),
            magnitudes in prop::collection::vec(-12_i32..12, 60),
        ) {
            let clip = 1.0;
            let grid = GradientGrid::new(clip, 6, 1.0, Summation::sequential(60)).unwrap();
            let clipped: Vec<Vec<f64>> = rows.iter().zip(&magnitudes).map(|(row, &m)| {
                let row: Vec<f64> = row.iter().map(|x| x * 10f64.powi(m)).collect();
                let factor = clip_factor(row.iter().map(|x| x * x).sum(), row.len(), clip);
                row.iter().map(|x| x * factor).collect()
            }).collect();
            for row in &clipped {
                prop_assert!(row.iter().map(|x| x * x).sum::<f64>().sqrt() <= clip * (1.0 + 1e-15));
            }
            let total = |rows: &mut dyn Iterator<Item = &Vec<f64>>| {
                let mut sum = [0.0; 6];
                for row in rows {
                    for (s, x) in sum.iter_mut().zip(row) { *s += x; }
                }
                sum.map(|s: f64| nearest(s / grid.step()) as f64 * grid.step())
            };
            let with = total(&mut clipped.iter());
            let without = total(&mut clipped[1..].iter().rev());
            let distance = with.iter().zip(&without).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            prop_assert!(distance <= grid.sensitivity(), "{distance} > {}", grid.sensitivity());
        }
    }

    #[test]
    fn without_the_rounding_charge_the_claim_would_be_false() {
        // Two sums at distance clip whose grid points are further apart than clip: rounding is not free.
        let grid = GradientGrid::new(1.0, 100, 1.0, Summation::sequential(2)).unwrap();
        let steps = |x: f64| nearest(x / grid.step()) as f64;
        let edge = 0.5 * grid.step();
        let share = 0.1;
        let moved: f64 =
            (0..100).map(|_| (steps(edge + share) - steps(edge * 0.999)).powi(2)).sum::<f64>().sqrt();
        assert!(moved * grid.step() > (share * share * 100.0_f64).sqrt());
        assert!(moved * grid.step() <= grid.sensitivity());
    }
}
