//! The probabilities of a rounded Gaussian, to the last of 128 bits.

use super::fixed::{Fixed, decompose};

/// `P(n)` for `n = 0, 1, ...` in units of 2^-128, truncated, up to the last one that is not zero.
///
/// A unit cell of the density is [`CellIntegral`] times `norm q^(n^2)`, `q = exp(-1 / 2 sigma^2)`, which follows from
/// `q^((n+1)^2) = q^(n^2) q^(2n+1)`: every factor is below one, so errors only add, at most `51 (n + 1)^2 norm + n + 1`
/// units of 2^-192 and below 2^-144 over the whole range. For a small sigma the cells are cut into five, which is the
/// same as taking five cells of a Gaussian five times as wide: its series converges faster.
pub(super) fn masses(sigma: f64) -> Vec<u128> {
    let cells = if sigma < 8.0 { 5 } else { 1 };
    let (mantissa, exponent) = decompose(sigma);
    let mantissa = cells * mantissa;
    let inverse_square = Fixed::power_over(-2 * exponent, &[mantissa, mantissa]);
    let norm = Fixed::power_over(-exponent, &[mantissa]).mul(Fixed::INV_SQRT_TWO_PI);
    let q = Fixed::exp_neg(inverse_square.shr(1));
    let q_squared = q.mul(q);
    let mut integrals = Integrals::new(CellIntegral::new(inverse_square, 14.0 / (cells as f64 * sigma)));
    let (mut density, mut ratio) = (norm, q);
    let mut sum = |count: u64| {
        (0..count).fold(Fixed::ZERO, |sum, _| {
            let cell = density.mul(integrals.next());
            density = density.mul(ratio);
            ratio = ratio.mul(q_squared);
            sum.wrapping_add(cell)
        })
    };
    // Around zero: the middle cell and, twice, the ones to its right.
    let middle = sum(1).add(sum(cells / 2).mul_small(2));
    let mut masses = Vec::with_capacity((14.0 * sigma) as usize);
    let mut mass = middle.to_unit_128();
    while mass > 0 {
        masses.push(mass);
        mass = sum(cells).to_unit_128();
    }
    masses
}

/// The integrals over one cell after the other.
///
/// As a function of `n` they hardly bend where sigma is large: the k-th difference is at most `2.2 (v / 2)^k`. So a run
/// of cells needs its first few, from which the others follow by adding differences. What is left out is below 2^-160;
/// the values that a run begins with are off by two units, which its additions make 2^-153 of at most.
struct Integrals {
    integral: CellIntegral,
    /// The next value and its differences.
    differences: Vec<Fixed>,
    next_run: u64,
    left: u64,
    run: u64,
}

impl Integrals {
    const RUN: u64 = 32;
    const MAX_DIFFERENCES: u64 = 12;

    fn new(integral: CellIntegral) -> Self {
        let half = integral.half_inverse_square.to_f64();
        let mut left_out = 2.2;
        let order = (1..=Self::MAX_DIFFERENCES).find(|&k| {
            // The binomial coefficient of the run and k, times the k-th difference.
            left_out *= (Self::RUN + 1 - k) as f64 / k as f64 * half;
            left_out < 2f64.powi(-160)
        });
        let (order, run) = order.map_or((1, 1), |order| (order as usize, Self::RUN));
        Self { integral, differences: vec![Fixed::ZERO; order], next_run: 0, left: 0, run }
    }

    #[inline]
    fn next(&mut self) -> Fixed {
        if self.left == 0 {
            self.begin_run();
        }
        self.left -= 1;
        let value = self.differences[0];
        for k in 1..self.differences.len() {
            self.differences[k - 1] = self.differences[k - 1].wrapping_add(self.differences[k]);
        }
        value
    }

    fn begin_run(&mut self) {
        for (n, value) in (self.next_run..).zip(&mut self.differences) {
            *value = self.integral.at(n);
        }
        for level in 1..self.differences.len() {
            for k in (level..self.differences.len()).rev() {
                self.differences[k] = self.differences[k].wrapping_sub(self.differences[k - 1]);
            }
        }
        self.next_run += self.run;
        self.left = self.run;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Differences go as far as they are safe, and give what the series gives.
    #[test]
    fn runs_of_differences_agree_with_the_series() {
        for (sigma, order) in [(40.0, 1), (300.0, 11), (2_000.0, 9), (32_768.0, 6), (131_072.0, 6)] {
            let series = |sigma: f64| {
                let (mantissa, exponent) = decompose(sigma);
                CellIntegral::new(Fixed::power_over(-2 * exponent, &[mantissa, mantissa]), 14.0 / sigma)
            };
            let (expected, mut runs) = (series(sigma), Integrals::new(series(sigma)));
            assert_eq!(runs.differences.len(), order, "{sigma}");
            for n in 0..(13.0 * sigma) as u64 {
                let (value, expected) = (runs.next(), expected.at(n));
                let gap = if value > expected { value.sub(expected) } else { expected.sub(value) };
                assert!(gap.to_f64() < 2f64.powi(-152), "{sigma} {n}: {}", gap.to_f64().log2());
            }
        }
    }
}
