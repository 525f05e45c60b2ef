//! `exp` and `exp - 1` in a form the compiler turns into vector code.
//!
//! `x = n ln 2 + r` with whole `n` and `|r| <= ln 2 / 2`; then `exp x = 2^n (1 + p)` with `p = exp r - 1` by a
//! polynomial, and `exp x - 1 = 2^n p + (2^n - 1)`, which keeps its relative precision near zero.
//!
//! A NaN stays NaN.

/// Adding this rounds to a whole number, which then sits in the low bits.
const ROUND: f32 = 12_582_912.0;
/// ln 2 in two parts, the first short enough that `n` times it is exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;
/// Below this, `exp` is taken as `exp` of it (1.2e-38, the smallest normal number).
const LOWEST: f32 = -87.0;
/// Above this, `exp` is taken as `exp` of it (2.3e38).
const HIGHEST: f32 = 88.0;

/// `2^n` and `exp r - 1`.
#[inline(always)]
fn split(x: f32) -> (f32, f32) {
    // Comparisons this way round let a NaN through.
    let x = if x < LOWEST { LOWEST } else { x };
    let x = if x > HIGHEST { HIGHEST } else { x };
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    let mut q = 1.987_569_1e-4;
    q = r.mul_add(q, 1.398_199_9e-3);
    q = r.mul_add(q, 8.333_452e-3);
    q = r.mul_add(q, 4.166_579_6e-2);
    q = r.mul_add(q, 1.666_666_5e-1);
    q = r.mul_add(q, 0.5);
    (scale, (r * r).mul_add(q, r))
}

/// The exponential, for arguments in -87..88 to a relative 2e-7; beyond, that of the nearer end.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let (scale, p) = split(x);
    scale.mul_add(p, scale)
}

/// `exp x - 1` to a relative 3e-7, near zero too.
#[inline(always)]
pub(crate) fn exp_m1(x: f32) -> f32 {
    let (scale, p) = split(x);
    scale.mul_add(p, scale - 1.0)
}

/// As [`exp_m1`], for arguments that are not positive: there fewer terms and a shorter ln 2 do, because `n` is small
/// where it matters.
#[inline(always)]
pub(crate) fn exp_m1_below(x: f32) -> f32 {
    let x = if x < LOWEST { LOWEST } else { x };
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let r = (shifted - ROUND).mul_add(-std::f32::consts::LN_2, x);
    let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    let mut q = 1.388_251_4e-3;
    q = r.mul_add(q, 8.366_548e-3);
    q = r.mul_add(q, 4.166_72e-2);
    q = r.mul_add(q, 1.666_654_3e-1);
    q = r.mul_add(q, 0.5);
    scale.mul_add((r * r).mul_add(q, r), scale - 1.0)
}

/// `tanh x = -e / (2 + e)` with `e = exp(-2|x|) - 1`, and the sign of `x`.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let e = exp_m1(-2.0 * x.abs());
    (-e / (2.0 + e)).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(from: f64, to: f64, ours: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
        let steps = 200_000;
        (0..=steps)
            .map(|i| (from + (to - from) * f64::from(i) / f64::from(steps)) as f32)
            .filter(|&x| x != 0.0)
            .map(|x| {
                let exact = exact(f64::from(x));
                ((f64::from(ours(x)) - exact) / exact).abs()
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn they_are_accurate_to_a_few_units_in_the_last_place() {
        assert!(worst(-87.0, 88.0, exp, f64::exp) < 2e-7);
        assert!(worst(-1.0, 1.0, exp, f64::exp) < 2e-7);
        assert!(worst(-87.0, 20.0, exp_m1, f64::exp_m1) < 3e-7);
        assert!(worst(-1e-3, 1e-3, exp_m1, f64::exp_m1) < 3e-7);
        assert!(worst(-87.0, 0.0, exp_m1_below, f64::exp_m1) < 3e-7);
        assert!(worst(-1.0, 0.0, exp_m1_below, f64::exp_m1) < 3e-7);
        assert!(worst(-10.0, 10.0, tanh, f64::tanh) < 4e-7);
        assert!(worst(-1e-3, 1e-3, tanh, f64::tanh) < 4e-7);
    }

    #[test]
    fn the_ends_are_finite_and_nan_stays() {
        assert_eq!((exp(0.0), exp_m1(0.0), tanh(0.0)), (1.0, 0.0, 0.0));
        assert!(exp(-1e30) < 2e-38 && exp(-1e30) >= 0.0);
        assert!(exp(f32::INFINITY).is_finite() && exp(f32::INFINITY) > 1e38);
        assert_eq!(exp_m1(f32::NEG_INFINITY), -1.0);
        assert_eq!((tanh(f32::INFINITY), tanh(-1e9)), (1.0, -1.0));
        assert_eq!((exp_m1_below(0.0), exp_m1_below(f32::NEG_INFINITY)), (0.0, -1.0));
        for f in [exp, exp_m1, exp_m1_below, tanh] {
            assert!(f(f32::NAN).is_nan());
        }
    }
}
