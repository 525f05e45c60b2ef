//! Fixed-point arithmetic with 192 fractional bits, for building probability tables.
//!
//! Tables are built once and must be right far beyond double precision: a table whose error is 2^-128
//! needs about 150 good bits throughout. Everything here truncates towards zero, so one operation is off by
//! less than one unit in the last place (2^-192) and error bounds can be added up by hand.

/// An unsigned number `limbs * 2^-192` below 2^64, least significant limb first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fixed {
    // Compared from the most significant limb: the derive looks at fields in order.
    high: u64,
    fraction: Fraction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Fraction {
    top: u64,
    middle: u64,
    bottom: u64,
}

/// The product of numbers of `N` limbs. The compiler unrolls what it knows the length of.
#[inline(always)]
fn product<const N: usize>(a: [u64; 4], b: [u64; 4]) -> [u64; 8] {
    let mut product = [0_u64; 8];
    for i in 0..N {
        let mut carry = 0_u128;
        for j in 0..N {
            let cell = u128::from(a[i]) * u128::from(b[j]) + u128::from(product[i + j]) + carry;
            product[i + j] = cell as u64;
            carry = cell >> 64;
        }
        product[i + N] = carry as u64;
    }
    product
}

impl Fixed {
    pub(crate) const ZERO: Self = Self::from_limbs([0; 4]);
    pub(crate) const ONE: Self = Self::from_limbs([0, 0, 0, 1]);
    /// 1 / sqrt(2 pi), truncated.
    pub(crate) const INV_SQRT_TWO_PI: Self =
        Self::from_limbs([0xd382_9f30_5127_06d8, 0x3f2c_f140_2eae_38bf, 0x6621_14cf_50d9_4234, 0]);

    const fn from_limbs(limbs: [u64; 4]) -> Self {
        Self { high: limbs[3], fraction: Fraction { top: limbs[2], middle: limbs[1], bottom: limbs[0] } }
    }

    const fn limbs(self) -> [u64; 4] {
        [self.fraction.bottom, self.fraction.middle, self.fraction.top, self.high]
    }

    /// `2^exponent / product(divisors)`, truncated. The nested floors of short divisions equal the floor of
    /// the division by the product, so this is exact to the last place.
    pub(crate) fn power_over(exponent: i32, divisors: &[u64]) -> Self {
        let bit = usize::try_from(192 + exponent).expect("the exponent is above -192");
        let mut limbs = [0_u64; 8];
        limbs[bit / 64] = 1 << (bit % 64);
        for &divisor in divisors {
            divide_in_place(&mut limbs, divisor);
        }
        assert!(limbs[4..].iter().all(|&limb| limb == 0), "the quotient is below 2^64");
        Self::from_limbs([limbs[0], limbs[1], limbs[2], limbs[3]])
    }

    /// The exact value of a finite `x` in `[0, 2^53)` whose bits below 2^-192 are dropped.
    pub(crate) fn from_f64(x: f64) -> Self {
        debug_assert!((0.0..9_007_199_254_740_992.0).contains(&x));
        let (mantissa, exponent) = decompose(x);
        let shift = 192 + exponent;
        let mut limbs = [0_u64; 4];
        if shift < 0 {
            if shift > -64 {
                limbs[0] = mantissa >> -shift;
            }
        } else {
            let (limb, bit) = (shift as usize / 64, shift as usize % 64);
            let wide = u128::from(mantissa) << bit;
            limbs[limb] = wide as u64;
            if limb + 1 < 4 {
                limbs[limb + 1] = (wide >> 64) as u64;
            }
        }
        Self::from_limbs(limbs)
    }

    /// `1 + x` for a double `x > -1`.
    pub(crate) fn one_plus(x: f64) -> Self {
        let magnitude = Self::from_f64(x.abs());
        if x < 0.0 { Self::ONE.sub(magnitude) } else { Self::ONE.add(magnitude) }
    }

    pub(crate) fn add(self, other: Self) -> Self {
        let (a, b) = (self.limbs(), other.limbs());
        let mut out = [0; 4];
        let mut carry = 0;
        for j in 0..4 {
            let sum = u128::from(a[j]) + u128::from(b[j]) + carry;
            out[j] = sum as u64;
            carry = sum >> 64;
        }
        assert!(carry == 0, "fixed-point sum below 2^64");
        Self::from_limbs(out)
    }

    /// `self - other`, for `other <= self`.
    pub(crate) fn sub(self, other: Self) -> Self {
        let (a, b) = (self.limbs(), other.limbs());
        let mut out = [0; 4];
        let mut borrow = false;
        for j in 0..4 {
            let (difference, first) = a[j].overflowing_sub(b[j]);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            out[j] = difference;
            borrow = first || second;
        }
        assert!(!borrow, "fixed-point difference is not negative");
        Self::from_limbs(out)
    }

    /// The product, truncated; `None` when it reaches 2^64.
    pub(crate) fn checked_mul(self, other: Self) -> Option<Self> {
        let product = product::<4>(self.limbs(), other.limbs());
        (product[7] == 0).then(|| Self::from_limbs([product[3], product[4], product[5], product[6]]))
    }

    /// The product, truncated, of numbers known to stay in range.
    #[inline]
    pub(crate) fn mul(self, other: Self) -> Self {
        // Most numbers are below one, or not far above: three limbs then do.
        match (self.high, other.high) {
            (0, 0) => self.mul_fraction(other),
            (0, 1) => self.mul_fraction(other).wrapping_add(self),
            _ => self.checked_mul(other).expect("fixed-point product below 2^64"),
        }
    }

    /// The product of the fractions, truncated.
    #[inline]
    fn mul_fraction(self, other: Self) -> Self {
        let product = product::<3>(self.limbs(), other.limbs());
        Self::from_limbs([product[3], product[4], product[5], 0])
    }

    /// The sum modulo 2^64.
    #[inline]
    pub(crate) fn wrapping_add(self, other: Self) -> Self {
        let (a, b) = (self.limbs(), other.limbs());
        let mut out = [0; 4];
        let mut carry = false;
        for j in 0..4 {
            let (sum, first) = a[j].overflowing_add(b[j]);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            out[j] = sum;
            carry = first || second;
        }
        Self::from_limbs(out)
    }

    /// The difference modulo 2^64: what is negative is found again by adding to it.
    pub(crate) fn wrapping_sub(self, other: Self) -> Self {
        let [a, b, c, d] = other.limbs().map(|limb| !limb);
        self.wrapping_add(Self::from_limbs([a, b, c, d])).wrapping_add(Self::from_limbs([1, 0, 0, 0]))
    }

    pub(crate) fn mul_small(self, factor: u64) -> Self {
        let mut limbs = self.limbs();
        let mut carry = 0_u128;
        for limb in &mut limbs {
            let cell = u128::from(*limb) * u128::from(factor) + carry;
            *limb = cell as u64;
            carry = cell >> 64;
        }
        assert!(carry == 0, "fixed-point product below 2^64");
        Self::from_limbs(limbs)
    }

    pub(crate) fn div_small(self, divisor: u64) -> Self {
        let mut limbs = self.limbs();
        divide_in_place(&mut limbs, divisor);
        Self::from_limbs(limbs)
    }

    /// `self / 2^bits` for `bits < 64`, truncated.
    pub(crate) fn shr(self, bits: u32) -> Self {
        if bits == 0 {
            return self;
        }
        let a = self.limbs();
        let low = |j: usize| (a[j] >> bits) | (a[j + 1] << (64 - bits));
        Self::from_limbs([low(0), low(1), low(2), a[3] >> bits])
    }

    /// The fraction in units of 2^-128, truncated; the value must be below one.
    pub(crate) fn to_unit_128(self) -> u128 {
        assert!(self.high == 0, "the value is below one");
        (u128::from(self.fraction.top) << 64) | u128::from(self.fraction.middle)
    }

    /// The point at fraction `bits / 2^128` of the way from zero to `self`, truncated.
    pub(crate) fn scaled_by(self, bits: u128) -> Self {
        self.mul(Self::from_limbs([0, bits as u64, (bits >> 64) as u64, 0]))
    }

    /// exp(-x) for `x <= 1`, within 100 units in the last place.
    pub(crate) fn exp_neg(x: Self) -> Self {
        debug_assert!(x <= Self::ONE);
        let (mut even, mut odd) = (Self::ZERO, Self::ZERO);
        let mut term = Self::ONE;
        for k in 0.. {
            if term == Self::ZERO {
                break;
            }
            if k % 2 == 0 {
                even = even.add(term);
            } else {
                odd = odd.add(term);
            }
            term = term.mul(x).div_small(k + 1);
        }
        even.sub(odd)
    }

    /// A double near the value (within a relative 2^-52).
    pub(crate) fn to_f64(self) -> f64 {
        let [bottom, middle, top, high] = self.limbs();
        let unit = 2f64.powi(-64);
        high as f64 + unit * (top as f64 + unit * (middle as f64 + unit * bottom as f64))
    }
}

/// Mantissa and exponent of a finite non-negative double: `x = mantissa * 2^exponent`.
pub(crate) fn decompose(x: f64) -> (u64, i32) {
    let bits = x.to_bits();
    let biased = ((bits >> 52) & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    if biased == 0 { (fraction, -1074) } else { (fraction | (1 << 52), biased - 1075) }
}

fn divide_in_place(limbs: &mut [u64], divisor: u64) {
    let mut remainder = 0_u128;
    for limb in limbs.iter_mut().rev() {
        let cell = (remainder << 64) | u128::from(*limb);
        *limb = (cell / u128::from(divisor)) as u64;
        remainder = cell % u128::from(divisor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_agrees_with_exact_fractions() {
        let third = Fixed::power_over(0, &[3]);
        let ninth = Fixed::power_over(0, &[3, 3]);
        let gap = ninth.sub(third.mul(third));
        assert!(gap.limbs()[1..] == [0, 0, 0] && gap.limbs()[0] <= 1);
        assert_eq!(third.mul_small(3).add(Fixed::from_limbs([1, 0, 0, 0])), Fixed::ONE);
        assert_eq!(Fixed::ONE.div_small(3), third);
        assert_eq!(Fixed::ONE.shr(5), Fixed::power_over(-5, &[]));
        assert_eq!(Fixed::from_f64(0.375).to_f64(), 0.375);
        assert_eq!(Fixed::from_f64(12345.625).to_f64(), 12345.625);
        assert_eq!(Fixed::from_f64(f64::MIN_POSITIVE), Fixed::ZERO);
        assert_eq!(Fixed::from_f64(2f64.powi(60).recip()), Fixed::power_over(-60, &[]));
    }

    #[test]
    fn exp_of_minus_one_to_fifty_digits() {
        // floor(2^192 / e), from a computer algebra system.
        let expected = Fixed::from_limbs([EXP_LIMBS[0], EXP_LIMBS[1], EXP_LIMBS[2], 0]);
        let got = Fixed::exp_neg(Fixed::ONE);
        let gap = if got > expected { got.sub(expected) } else { expected.sub(got) };
        assert!(gap.limbs()[1..] == [0, 0, 0] && gap.limbs()[0] < 100, "{gap:?}");
    }

    const EXP_LIMBS: [u64; 3] = [0xda98_05aa_b56c_7733, 0xbade_c782_9054_f90d, 0x5e2d_58d8_b3bc_df1a];
}
