//! Activations: `a = f(z)`, value by value.
//!
//! - SELU: `f(z) = s z` for `z > 0`, else `s t (exp z - 1)`, with the published constants `s` and `t`
//! - ReLU: `f(z) = max(z, 0)`
//! - tanh
//! - ELU: `f(z) = z` for `z > 0`, else `exp z - 1`
//!
//! All derivatives follow from the output alone: SELU `s` or `a + s t`, ReLU `1` or `0`, tanh `1 - a²`, ELU `1` or `a +
//! 1`. So `z` is never stored.

use crate::kernel::exp::{exp_m1_below, tanh};
use crate::kernel::vectorised;

/// An activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Activation {
    /// The scaled exponential linear unit, the method's own.
    #[default]
    Selu,
    /// `max(z, 0)`.
    Relu,
    /// The hyperbolic tangent.
    Tanh,
    /// The exponential linear unit.
    Elu,
}

pub(crate) const SELU: u8 = 0;
pub(crate) const RELU: u8 = 1;
pub(crate) const TANH: u8 = 2;
pub(crate) const ELU: u8 = 3;

pub(crate) const SCALE: f32 = 1.050_701;
pub(crate) const SCALE_ALPHA: f32 = 1.758_099_3;

/// Calls `$function` with the activation as a constant.
macro_rules! with_activation {
    ($activation:expr, $function:ident($($arg:expr),* $(,)?)) => {
        match $activation {
            $crate::layer::Activation::Selu => $function::<{ $crate::layer::activation::SELU }>($($arg),*),
            $crate::layer::Activation::Relu => $function::<{ $crate::layer::activation::RELU }>($($arg),*),
            $crate::layer::Activation::Tanh => $function::<{ $crate::layer::activation::TANH }>($($arg),*),
            $crate::layer::Activation::Elu => $function::<{ $crate::layer::activation::ELU }>($($arg),*),
        }
    };
}
pub(crate) use with_activation;

/// `f(z)`.
#[inline(always)]
pub(crate) fn value<const ACTIVATION: u8>(z: f32) -> f32 {
    match ACTIVATION {
        SELU => {
            // One of the two is zero. A NaN stays.
            let (above, below) = if z > 0.0 { (z, 0.0) } else { (0.0, z) };
            SCALE.mul_add(above, SCALE_ALPHA * exp_m1_below(below))
        }
        // A NaN stays.
        RELU => {
            if z < 0.0 {
                0.0
            } else {
                z
            }
        }
        ELU => {
            let (above, below) = if z > 0.0 { (z, 0.0) } else { (0.0, z) };
            above + exp_m1_below(below)
        }
        _ => tanh(z),
    }
}

/// `f'(z)` where `f(z) = a`.
#[inline(always)]
pub(crate) fn slope<const ACTIVATION: u8>(a: f32) -> f32 {
    match ACTIVATION {
        SELU => {
            if a > 0.0 {
                SCALE
            } else {
                a + SCALE_ALPHA
            }
        }
        RELU => {
            if a > 0.0 {
                1.0
            } else {
                0.0
            }
        }
        ELU => {
            if a > 0.0 {
                1.0
            } else {
                a + 1.0
            }
        }
        _ => (-a).mul_add(a, 1.0),
    }
}

/// `values = f(values)`.
pub(crate) fn forward(activation: Activation, values: &mut [f32]) {
    with_activation!(activation, apply(values));
}

vectorised! {
    fn apply<'a, const ACTIVATION: u8>(values: &'a mut [f32]) {
        for value in values {
            *value = self::value::<ACTIVATION>(*value);
        }
    }
}

/// `delta *= f'`, where the activation's output is `scale a`.
pub(crate) fn backward(activation: Activation, scale: f32, a: &[f32], delta: &mut [f32]) {
    with_activation!(activation, multiply_slope(scale, a, delta));
}

vectorised! {
    fn multiply_slope<'a, const ACTIVATION: u8>(scale: f32, a: &'a [f32], delta: &'a mut [f32]) {
        for (delta, a) in delta.iter_mut().zip(a) {
            *delta *= slope::<ACTIVATION>(scale * a);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_slopes_match_the_definition() {
        let (s, t) = (1.050_700_987_355_480_5_f64, 1.673_263_242_354_377_2_f64);
        let z: Vec<f32> = (-64..64).map(|i| i as f32 / 11.0 + 0.01).collect();
        type Pair = (fn(f64, f64, f64) -> f64, fn(f64, f64, f64) -> f64);
        let exact: [(Activation, Pair); 4] = [
            (
                Activation::Selu,
                (
                    |z, s, t| if z > 0.0 { s * z } else { s * t * z.exp_m1() },
                    |z, s, t| if z > 0.0 { s } else { s * t * z.exp() },
                ),
            ),
            (Activation::Relu, (|z, _, _| z.max(0.0), |z, _, _| if z > 0.0 { 1.0 } else { 0.0 })),
            (Activation::Tanh, (|z, _, _| z.tanh(), |z, _, _| 1.0 - z.tanh().powi(2))),
            (
                Activation::Elu,
                (
                    |z, _, _| if z > 0.0 { z } else { z.exp_m1() },
                    |z, _, _| if z > 0.0 { 1.0 } else { z.exp() },
                ),
            ),
        ];
        for (activation, (value, slope)) in exact {
            let mut a = z.clone();
            forward(activation, &mut a);
            let mut delta = vec![2.0; z.len()];
            backward(activation, 1.0, &a, &mut delta);
            for i in 0..z.len() {
                let z = f64::from(z[i]);
                assert!((f64::from(a[i]) - value(z, s, t)).abs() < 1e-6 * (1.0 + z.abs()));
                assert!((f64::from(delta[i]) - 2.0 * slope(z, s, t)).abs() < 2e-6, "{activation:?} {z}");
            }
        }
    }
}
