//! The probabilities of a rounded Gaussian, to the last of 128 bits.

use super::fixed::{Fixed, decompose};

/// `P(n)` for `n = 0, 1, ...` in units of 2^-128, truncated, up to the last one that is not zero.
///
/// A unit cell of the density is [`CellIntegral`] times `q^(n^2)`, `q = exp(-1 / 2 sigma^2)`, which follows from
/// `q^((n+1)^2) = q^(n^2) q^(2n+1)`: every factor is below one, so errors only add, at most `51 (n + 1)^2` units of
/// 2^-192 and below 2^-144 over the whole range. For a small sigma the cells are cut into five, which is the same as
/// taking five cells of a Gaussian five times as wide: its series converges faster.
pub(super) fn masses(sigma: f64) -> Vec<u128> {
    let cells = if sigma < 8.0 { 5 } else { 1 };
    let (mantissa, exponent) = decompose(sigma);
    let mantissa = cells * mantissa;
    let inverse_square = Fixed::power_over(-2 * exponent, &[mantissa, mantissa]);
    let norm = Fixed::power_over(-exponent, &[mantissa]).mul(Fixed::INV_SQRT_TWO_PI);
    let q = Fixed::exp_neg(inverse_square.shr(1));
    let q_squared = q.mul(q);
    let integral = CellIntegral::new(inverse_square, 14.0 / (cells as f64 * sigma));
    let (mut density, mut ratio) = (Fixed::ONE, q);
    let mut next_cell = (0_u64..).map(|n| {
        let cell = density.mul(integral.at(n));
        density = density.mul(ratio);
        ratio = ratio.mul(q_squared);
        cell
    });
    let mut sum = |count: u64| {
        let cells = next_cell.by_ref().take(count as usize);
        cells.fold(Fixed::ZERO, Fixed::add)
    };
    // Around zero: the middle cell and, twice, the ones to its right.
    let middle = sum(1).add(sum(cells / 2).mul_small(2));
    let mut masses = Vec::with_capacity((14.0 * sigma) as usize);
    let mut mass = middle.mul(norm).to_unit_128();
    while mass > 0 {
        masses.push(mass);
        mass = sum(cells).mul(norm).to_unit_128();
    }
    masses
}

/// The integral of the density over a unit cell, divided by the density in its middle.
///
/// With `v = 1 / sigma^2` and `t = n v`, `exp(-(n + u)^2 v / 2) = exp(-n^2 v / 2) exp(-t u) exp(-v u^2 / 2)`. Over the
/// symmetric cell `exp(-t u)` may be replaced by `cosh(t u)`, so the quotient is the power series
/// `sum over j of c_j (t / 2)^(2j)`, `c_j = 4^j / (2j)! * integral of u^(2j) exp(-v u^2 / 2)`, whose coefficients are
/// positive and the same for all `n`.
struct CellIntegral {
    half_inverse_square: Fixed,
    coefficients: Vec<Fixed>,
}

impl CellIntegral {
    /// For cells with `t <= steepest`. Terms are kept down to 2^-170 there; each is then less than half of the one
    /// before, so what is left out is below 2^-169.
    fn new(inverse_square: Fixed, steepest: f64) -> Self {
        let negligible = 2f64.powi(-170);
        let square = (0.5 * steepest).powi(2);
        let mut coefficients = Vec::new();
        let (mut factorial, mut power) = (Fixed::ONE, 1.0);
        for j in 0_u64.. {
            // 4^j times the moment is the alternating sum over i of (v / 8)^i / (i! (2j + 2i + 1)).
            let (mut even, mut odd) = (Fixed::ZERO, Fixed::ZERO);
            let mut term = Fixed::ONE;
            for i in 0_u64.. {
                if term == Fixed::ZERO {
                    break;
                }
                let part = term.div_small(2 * (j + i) + 1);
                if i % 2 == 0 {
                    even = even.add(part);
                } else {
                    odd = odd.add(part);
                }
                term = term.mul(inverse_square.shr(3)).div_small(i + 1);
            }
            coefficients.push(even.sub(odd).mul(factorial));
            factorial = factorial.div_small((2 * j + 1) * (2 * j + 2));
            power *= square;
            if factorial.to_f64() * power < negligible && square < (j * j) as f64 {
                break;
            }
        }
        Self { half_inverse_square: inverse_square.shr(1), coefficients }
    }

    fn at(&self, n: u64) -> Fixed {
        let half_slope = self.half_inverse_square.mul_small(n);
        let square = half_slope.mul(half_slope);
        self.coefficients.iter().rev().fold(Fixed::ZERO, |sum, &coefficient| sum.mul(square).add(coefficient))
    }
}
