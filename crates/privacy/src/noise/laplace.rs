//! Laplace noise on the integers, sampled exactly for rational scales.

use std::num::NonZeroU64;

use super::bernoulli::exp_neg;
use super::source::Source;
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::event::Event;

const TWO: NonZeroU64 = NonZeroU64::MIN.saturating_add(1);

/// A scale `numerator / denominator`, so that sampling needs no floating point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    numerator: NonZeroU64,
    denominator: NonZeroU64,
}

impl Scale {
    const LARGEST_PART: u64 = 1 << 31;

    /// The ratio of two positive integers up to 2^31.
    ///
    /// # Errors
    /// Zero, or larger than 2^31.
    pub fn new(numerator: u64, denominator: u64) -> Result<Self> {
        let part = |name, part: u64| {
            NonZeroU64::new(part)
                .filter(|part| part.get() <= Self::LARGEST_PART)
                .ok_or_else(|| Error::invalid(name, part, "between 1 and 2^31"))
        };
        Ok(Self {
            numerator: part("scale numerator", numerator)?,
            denominator: part("scale denominator", denominator)?,
        })
    }

    /// The smallest ratio over 2^16, or whole number above 2^15, that is not below `scale`: more noise, never less.
    ///
    /// # Errors
    /// A scale outside `[2^-16, 2^31]`, or not a number.
    pub fn at_least(scale: f64) -> Result<Self> {
        let denominator = 1 << 16;
        match scale {
            _ if (1.0 / 65536.0..=32768.0).contains(&scale) => {
                Self::new((scale * denominator as f64).ceil() as u64, denominator)
            }
            _ if scale > 32768.0 && scale <= Self::LARGEST_PART as f64 => Self::new(scale.ceil() as u64, 1),
            _ => Err(Error::invalid("scale", scale, "between 2^-16 and 2^31")),
        }
    }

    /// The largest ratio over a power of two that is not above `scale`, with as many digits as there is room for.
    ///
    /// # Errors
    /// A scale outside `[1, 2^31)`, or not a number.
    pub(crate) fn at_most(scale: f64) -> Result<Self> {
        if !(1.0..Self::LARGEST_PART as f64).contains(&scale) {
            return Err(Error::invalid("scale", scale, "between 1 and 2^31"));
        }
        let denominator = 1u64 << 30u32.saturating_sub(scale.log2().floor() as u32);
        Self::new((scale * denominator as f64).floor() as u64, denominator)
    }

    /// The next larger scale of the same denominator.
    ///
    /// # Errors
    /// There is none below 2^31 parts.
    pub fn next_up(self) -> Result<Self> {
        Self::new(self.numerator.get() + 1, self.denominator.get())
    }

    /// The scale as a double, rounded down by at most one unit in the last place.
    pub fn value(self) -> f64 {
        self.numerator.get() as f64 / self.denominator.get() as f64
    }

    /// Number of steps `y >= 0` with `P(y >= k) = exp(-k / scale)`, exactly.
    ///
    /// `x = u + numerator v` with `u` uniform below the numerator, kept with probability
    /// `exp(-u / numerator)`, and `v` counting wins of an `exp(-1)` coin, is geometric with ratio
    /// `exp(-1 / numerator)`; dividing by the denominator gives the ratio `exp(-denominator / numerator)`.
    pub(crate) fn geometric<S: Source>(self, stream: &mut Stream<S>) -> u64 {
        let u = loop {
            let u = stream.below(self.numerator);
            if exp_neg(stream, u, self.numerator) {
                break u;
            }
        };
        let mut v = 0;
        while exp_neg(stream, 1, NonZeroU64::MIN) {
            v += 1;
        }
        (u + self.numerator.get() * v) / self.denominator
    }
}

/// `round(Laplace(scale))`, which is what an accountant's Laplace event describes.
///
/// # Proof definition
/// For integer queries, query plus one independent sample per entry equals the rounding of query plus a true
/// Laplace variable, so it is post-processing of the Laplace mechanism ([proof](crate::proofs::rounding)), exactly:
/// `P(0) = 1 - exp(-1 / 2 scale)` and, away from zero, `P(|n| >= k) = exp(-(k - 1/2) / scale)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundedLaplace {
    scale: Scale,
}

impl RoundedLaplace {
    /// Noise of the given scale.
    pub fn new(scale: Scale) -> Self {
        Self { scale }
    }

    /// The scale.
    pub fn scale(self) -> Scale {
        self.scale
    }

    /// One sample.
    pub fn sample<S: Source>(self, stream: &mut Stream<S>) -> i64 {
        let Scale { numerator, denominator } = self.scale;
        if !exp_neg(stream, denominator.get(), numerator.saturating_mul(TWO)) {
            return 0;
        }
        let magnitude = 1 + self.scale.geometric(stream) as i64;
        if stream.next_u32() & 1 == 1 { -magnitude } else { magnitude }
    }

    /// The event that accountants read, for a query of the given L1 sensitivity.
    ///
    /// # Errors
    /// A sensitivity that is not a positive number.
    pub fn event(self, sensitivity: f64) -> Result<Event> {
        Event::laplace(self.scale.value(), sensitivity)
    }
}
