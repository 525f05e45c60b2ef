//! Messages become integers, with a norm that is checked in integers.

use std::num::NonZeroU32;

use crate::error::{Error, Result, positive};
use crate::noise::fixed::decompose;

mod sealed {
    pub trait Sealed {}
    impl Sealed for i8 {}
    impl Sealed for i16 {}
}

/// The integer types a message entry may have.
pub trait MessageInt: sealed::Sealed + Copy + Default + Into<i32> + TryFrom<i32> {
    /// The largest magnitude used, symmetric about zero.
    const LIMIT: u32;
}

impl MessageInt for i8 {
    const LIMIT: u32 = 127;
}

impl MessageInt for i16 {
    const LIMIT: u32 = 32_767;
}

/// How much of its influence a sender may spend, and how it spends it ([proof](crate::proofs::sender_weights)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SenderBound {
    /// Every edge carries a unit message: one edge moves the sums by at most 1.
    Edge,
    /// Every out-edge is used, with weight `bound / sqrt(out-degree)`.
    Weight {
        /// The bound on the sender's whole influence, in L2 norm.
        bound: f64,
    },
    /// Every out-edge is used, with weight `min(1, bound / sqrt(out-degree))`.
    Cap {
        /// The bound on the sender's whole influence, in L2 norm.
        bound: f64,
    },
    /// Weight 1 on at most `max_edges` out-edges, chosen by the sender.
    Sample {
        /// The largest number of out-edges used.
        max_edges: u32,
    },
}

impl SenderBound {
    /// By how much one record can move the sums, in L2 norm, for messages of norm 1.
    pub fn sensitivity(self) -> f64 {
        match self {
            Self::Edge => 1.0,
            Self::Weight { bound } | Self::Cap { bound } => bound,
            Self::Sample { max_edges } => f64::from(max_edges).sqrt().next_up(),
        }
    }
}

/// The largest squared norm, in integer units, that a sender's message may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NormBudget(u64);

impl NormBudget {
    /// The squared norm allowed.
    pub fn squared(self) -> u64 {
        self.0
    }
}

/// Turns rows of floats into rows of integers at scale `S`.
///
/// # Proof definition
/// For every row of floats whatever (also NaN, infinite, denormal or huge), the integers `z` written for a sender
/// with budget `b` satisfy `sum z^2 <= b`, by integer arithmetic, and depend on that row and budget only. With
/// budgets from [`budget`](Self::budget), the copies of `z` that a sender sends along its used out-edges have
/// squares summing to at most `(S C)^2`, where `C` is [`SenderBound::sensitivity`]; so removing a record moves
/// the integer sums by at most `S C` in L2 norm, exactly. A row with a NaN or an infinity becomes zero: an error
/// would tell the world about a private row.
///
/// ```
/// use progap_privacy::noise::{Quantiser, SenderBound};
/// let quantiser = Quantiser::<i16>::new(1000)?;
/// let budget = quantiser.budget(SenderBound::Weight { bound: 1.0 }, 4)?;
/// let mut out = [0_i16; 2];
/// quantiser.rows(&[3.0, 4.0], 2, &[budget], &mut out)?;
/// assert_eq!(out, [300, 400], "norm 1000 / sqrt(4) after clipping (3, 4) to the unit ball");
/// # Ok::<(), progap_privacy::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantiser<T> {
    scale: NonZeroU32,
    entries: std::marker::PhantomData<T>,
}

impl<T: MessageInt> Quantiser<T> {
    /// A quantiser in which norm 1 becomes `scale`.
    ///
    /// # Errors
    /// A scale of zero or above the type's limit.
    pub fn new(scale: u32) -> Result<Self> {
        match NonZeroU32::new(scale) {
            Some(scale) if scale.get() <= T::LIMIT => Ok(Self { scale, entries: std::marker::PhantomData }),
            _ => Err(Error::invalid("message scale", scale, "between 1 and the limit of the integer type")),
        }
    }

    /// The scale `S`.
    pub fn scale(self) -> NonZeroU32 {
        self.scale
    }

    /// The budget of a sender with `out_degree` out-edges: `floor((S w)^2)` for its weight `w`, computed in
    /// integers so that `out_degree` copies stay within `(S C)^2`.
    ///
    /// # Errors
    /// A bound that is not a positive number, or one for which an entry could exceed the integer type.
    pub fn budget(self, bound: SenderBound, out_degree: u32) -> Result<NormBudget> {
        let unit = u64::from(self.scale.get()).pow(2);
        let share = |bound| {
            positive("sender bound", bound)?;
            Ok::<_, Error>(shared_square(unit, bound, out_degree.max(1)))
        };
        let squared = match bound {
            SenderBound::Edge | SenderBound::Sample { .. } => unit,
            SenderBound::Weight { bound } => share(bound)?,
            SenderBound::Cap { bound } => share(bound)?.min(unit),
        };
        if squared > u64::from(T::LIMIT).pow(2) {
            return Err(Error::invalid(
                "sender bound times message scale",
                format!("{:.1}", (squared as f64).sqrt()),
                "within the limit of the integer type: take a smaller scale or a wider type",
            ));
        }
        Ok(NormBudget(squared))
    }

    /// The budget of the message that a node of weight `sender` sends to one of weight `receiver`, where both messages
    /// of their edge share one unit of influence: `floor(S^2 receiver^2 / (receiver^2 + sender^2))`. With the budget of
    /// the message that goes back it is at most `S^2` ([proof](crate::proofs::units)).
    ///
    /// ```
    /// use progap_privacy::noise::Quantiser;
    /// let quantiser = Quantiser::<i16>::new(1000)?;
    /// let there = quantiser.of_a_pair(4, 3)?.squared();
    /// let back = quantiser.of_a_pair(3, 4)?.squared();
    /// assert_eq!((there, back), (640_000, 360_000));
    /// # Ok::<(), progap_privacy::Error>(())
    /// ```
    ///
    /// # Errors
    /// Two weights of zero, or one that is too large to be squared.
    pub fn of_a_pair(self, receiver: u32, sender: u32) -> Result<NormBudget> {
        let square = |weight: u32| u128::from(weight).pow(2);
        let both = square(receiver) + square(sender);
        if both == 0 {
            return Err(Error::invalid("weights of a pair", 0, "not both zero"));
        }
        let unit = u128::from(self.scale.get()).pow(2);
        // At most the square of the scale, which fits the type.
        Ok(NormBudget((unit * square(receiver) / both) as u64))
    }

    /// `z = round(S w m / max(1, |m|))` for every row `m` of `width` floats, then shrunk if its squared norm
    /// exceeds the row's budget. Truncation would lose half a unit of every entry, and with it signal.
    ///
    /// # Errors
    /// Slices whose lengths do not fit together.
    pub fn rows(self, messages: &[f32], width: usize, budgets: &[NormBudget], out: &mut [T]) -> Result<()> {
        if width == 0 || messages.len() != budgets.len() * width || out.len() != messages.len() {
            return Err(Error::invalid(
                "message rows",
                format!("{} floats, {} rows, {} integers", messages.len(), budgets.len(), out.len()),
                "rows times width floats and as many integers, with a width of at least 1",
            ));
        }
        let rows = messages.chunks_exact(width).zip(out.chunks_exact_mut(width));
        for ((message, integers), &budget) in rows.zip(budgets) {
            quantise_row(message, budget, integers);
        }
        Ok(())
    }
}

/// `floor(unit bound^2 / parts)`, never above it. The bound's mantissa is cut to 40 bits so that every product
/// fits 128 bits; that loses at most a relative 2^-38.
fn shared_square(unit: u64, bound: f64, parts: u32) -> u64 {
    let (mantissa, exponent) = decompose(bound);
    // Normalise to exactly 40 bits (small mantissas are subnormal and lose nothing by a left shift).
    let excess = 64 - mantissa.leading_zeros() as i32 - 40;
    let mantissa = if excess > 0 { mantissa >> excess } else { mantissa << -excess };
    let exponent = 2 * (exponent + excess);
    let square = u128::from(mantissa).pow(2);
    // unit < 2^30, square < 2^80, so 18 bits are free; more than that cannot fit an integer message anyway.
    let product = u128::from(unit) * square;
    let value = if exponent >= 0 {
        if exponent > 17 { u128::MAX } else { (product << exponent) / u128::from(parts) }
    } else if exponent < -127 {
        0
    } else {
        // Nested floors equal the floor of the division by the product.
        (product >> -exponent) / u128::from(parts)
    };
    u64::try_from(value).unwrap_or(u64::MAX)
}

fn quantise_row<T: MessageInt>(message: &[f32], budget: NormBudget, out: &mut [T]) {
    let square: f64 = message.iter().map(|&m| f64::from(m) * f64::from(m)).sum();
    // A finite row of floats has a finite square in double precision, so this finds exactly NaN and infinity.
    let factor = if square.is_finite() { (budget.0 as f64).sqrt() / square.sqrt().max(1.0) } else { 0.0 };
    let mut norm = 0_u64;
    for (slot, &m) in out.iter_mut().zip(message) {
        let exact = factor * f64::from(m);
        // To the nearest integer: the cast truncates towards zero. NaN (zero times infinity) becomes zero.
        let z = (exact + 0.5_f64.copysign(exact)) as i32;
        norm += u64::from(z.unsigned_abs()).pow(2);
        *slot = T::try_from(z).unwrap_or_default();
    }
    while norm > budget.0 {
        norm = shrink_largest(out, norm);
    }
}

/// Moves the entry of largest magnitude one step towards zero; the new squared norm.
fn shrink_largest<T: MessageInt>(row: &mut [T], norm: u64) -> u64 {
    let Some(largest) = row.iter_mut().max_by_key(|z| Into::<i32>::into(**z).unsigned_abs()) else {
        return 0;
    };
    let z: i32 = (*largest).into();
    *largest = T::try_from(z - z.signum()).unwrap_or_default();
    // |z|^2 - (|z| - 1)^2; an entry of zero is the largest of a row of zeros.
    if z == 0 { 0 } else { norm - u64::from(2 * z.unsigned_abs() - 1) }
}

/// An integer type for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageType {
    /// One byte an entry.
    I8,
    /// Two bytes an entry.
    I16,
}

/// The integer noise scale aimed at: rounding is far below it and its table stays in cache.
const IDEAL_SIGMA: std::ops::RangeInclusive<f64> = 300.0..=2000.0;

/// A type and a scale `S` for noise of standard deviation `noise` (for messages of norm 1) and weights up to
/// `largest_weight`: the narrowest type for which `noise * S` lies between 300 and 2,000, or else the scale that
/// comes closest.
///
/// # Errors
/// A noise or weight that is not a positive number, or so extreme that no scale is left.
pub fn choose_scale(noise: f64, largest_weight: f64) -> Result<(MessageType, u32)> {
    positive("noise", noise)?;
    positive("largest weight", largest_weight)?;
    let ceiling = (IDEAL_SIGMA.end() / noise).floor();
    let fit = |limit: u32| (f64::from(limit) / largest_weight).floor().min(f64::from(limit)).min(ceiling);
    let narrow = fit(i8::LIMIT);
    let (kind, scale) = if narrow >= 1.0 && IDEAL_SIGMA.contains(&(narrow * noise)) {
        (MessageType::I8, narrow)
    } else {
        (MessageType::I16, fit(i16::LIMIT))
    };
    if scale < 1.0 {
        return Err(Error::invalid(
            "noise",
            noise,
            "at most 2000, with weights up to 32767: no integer message scale is left",
        ));
    }
    Ok((kind, scale as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_float() -> impl Strategy<Value = f32> {
        prop_oneof![
            any::<f32>(),
            -2.0_f32..2.0,
            Just(f32::NAN),
            Just(f32::INFINITY),
            Just(f32::MAX),
            Just(f32::MIN_POSITIVE / 2.0),
            Just(1.0_f32.next_up()),
            Just(-0.0),
        ]
    }

    fn square<T: MessageInt>(row: &[T]) -> u64 {
        row.iter().map(|&z| u64::from(Into::<i32>::into(z).unsigned_abs()).pow(2)).sum()
    }

    proptest! {
        /// The guarantee itself: whatever the floats, all copies a sender sends stay within (S C)^2.
        #[test]
        fn sensitivity_is_exact_for_any_floats(
            row in prop::collection::vec(any_float(), 1..40),
            scale in 1_u32..32_767,
            degree in 1_u32..100_000,
            bound in 0.01_f64..1.0,
        ) {
            let quantiser = Quantiser::<i16>::new(scale).unwrap();
            let budget = quantiser.budget(SenderBound::Weight { bound }, degree).unwrap();
            let mut out = vec![0_i16; row.len()];
            quantiser.rows(&row, row.len(), &[budget], &mut out).unwrap();
            prop_assert!(square(&out) <= budget.squared());
            let sent = u128::from(square(&out)) * u128::from(degree);
            let allowed = (f64::from(scale) * bound).powi(2) * (1.0 + 1e-14);
            prop_assert!(sent as f64 <= allowed, "{sent} > {allowed}");
        }

        /// And the integers are good for something: within half a unit an entry of what they stand for, but for the few
        /// units that bring an overlong row back.
        #[test]
        fn integers_are_close_to_the_message(row in prop::collection::vec(-3.0_f32..3.0, 1..40)) {
            let quantiser = Quantiser::<i16>::new(1000).unwrap();
            let budget = quantiser.budget(SenderBound::Edge, 7).unwrap();
            let mut out = vec![0_i16; row.len()];
            quantiser.rows(&row, row.len(), &[budget], &mut out).unwrap();
            let norm = row.iter().map(|&m| f64::from(m).powi(2)).sum::<f64>().sqrt().max(1.0);
            let mut lost = 0.0;
            for (&z, &m) in out.iter().zip(&row) {
                let exact = 1000.0 * f64::from(m) / norm;
                prop_assert!(f64::from(z).abs() <= exact.abs() + 0.5 + 1e-9);
                lost += ((f64::from(z) - exact).abs() - 0.5).max(0.0);
            }
            // Rounding adds at most half a unit an entry, so at most sqrt(n) / 2 to the norm; a step from the largest
            // entry, which is at least norm / sqrt(n), takes back at least about 1 / sqrt(n).
            prop_assert!(lost <= row.len() as f64 / 2.0 + 2.0, "{lost}");
        }
    }

    #[test]
    fn the_integer_check_is_what_holds_the_norm() {
        // Overlong by construction: the check alone must bring it back.
        let mut row = [90_i8, 90, 0, -1];
        let mut norm = square(&row);
        while norm > 127 * 127 {
            norm = shrink_largest(&mut row, norm);
            assert_eq!(norm, square(&row));
        }
        assert!(norm <= 127 * 127 && norm > 125 * 125, "{norm}");
    }

    #[test]
    fn rounding_loses_no_length_on_average() {
        // 200 directions of length one: truncated, they would keep 125.2 of 127.
        let quantiser = Quantiser::<i8>::new(127).unwrap();
        let budget = quantiser.budget(SenderBound::Edge, 1).unwrap();
        let mut kept = 0.0;
        for row in 0..200 {
            let message: [f32; 16] =
                std::array::from_fn(|column| (row as f32 * 1.7 + column as f32 * 2.3).sin());
            let norm = message.iter().map(|m| m * m).sum::<f32>().sqrt();
            let mut out = [0_i8; 16];
            quantiser.rows(&message, 16, &[budget], &mut out).unwrap();
            kept += out.iter().zip(&message).map(|(&z, m)| f64::from(z) * f64::from(m / norm)).sum::<f64>();
        }
        assert!(kept / 200.0 > 126.5, "{}", kept / 200.0);
    }

    #[test]
    fn bad_rows_become_zero_and_good_rows_stay() {
        let quantiser = Quantiser::<i8>::new(127).unwrap();
        let budget = quantiser.budget(SenderBound::Edge, 1).unwrap();
        let rows = [f32::NAN, 0.5, f32::INFINITY, 1.0, 0.6, 0.8, f32::MAX, f32::MAX];
        let mut out = [9_i8; 8];
        quantiser.rows(&rows, 2, &[budget; 4], &mut out).unwrap();
        assert_eq!(out[..6], [0, 0, 0, 0, 76, 101]);
        assert_eq!(out[6..], [90, 89], "a huge row is clipped to the sphere, from within");
    }

    #[test]
    fn budgets_are_exact_shares() {
        let quantiser = Quantiser::<i16>::new(100).unwrap();
        let budget = |bound, degree| quantiser.budget(bound, degree).unwrap().squared();
        assert_eq!(budget(SenderBound::Weight { bound: 10.0 }, 7), 1_000_000 / 7);
        assert_eq!(budget(SenderBound::Cap { bound: 10.0 }, 7), 10_000);
        assert_eq!(budget(SenderBound::Cap { bound: 10.0 }, 700), 1_000_000 / 700);
        assert_eq!(budget(SenderBound::Sample { max_edges: 5 }, 700), 10_000);
        assert!(quantiser.budget(SenderBound::Weight { bound: 400.0 }, 1).is_err(), "would not fit i16");
        assert!(quantiser.budget(SenderBound::Weight { bound: f64::NAN }, 1).is_err());
        assert!(quantiser.budget(SenderBound::Weight { bound: 1e300 }, 1).is_err());
        assert_eq!(budget(SenderBound::Weight { bound: 1e-300 }, 1), 0);
        assert_eq!(budget(SenderBound::Weight { bound: f64::from_bits(1) }, 1), 0);
    }

    #[test]
    fn scales_put_the_noise_where_the_table_is_fast() {
        for (noise, weight) in
            [(0.5, 1.0), (1.3, 1.0), (4.68, 1.0), (17.34, 1.0), (10.0, 10.0), (147.0, 10.0)]
        {
            let (kind, scale) = choose_scale(noise, weight).unwrap();
            let sigma = noise * f64::from(scale);
            assert!(IDEAL_SIGMA.contains(&sigma), "noise {noise}: scale {scale}, sigma {sigma}");
            let limit = if kind == MessageType::I8 { 127.0 } else { 32_767.0 };
            assert!(f64::from(scale) * weight <= limit);
        }
        assert!(choose_scale(1e6, 1.0).is_err());
        assert!(choose_scale(f64::NAN, 1.0).is_err());
    }
}
