//! Poisson samples in time that follows the sample: gaps between the records that join, exactly geometric.
//!
//! With a coin for every record, the records from one that joins to the next number `k` with probability `q (1 - q)^k`.
//! Drawing these gaps gives the same law and touches nobody who stays out.

use super::fixed::Fixed;
use super::source::Source;
use super::stream::Stream;
use crate::error::{Error, Result};

/// Log2 of the longest table: 256 KiB of thresholds.
const MAX_BITS: u32 = 15;

/// A sample that every record joins on its own, with probability `rate`.
///
/// ```
/// use progap_privacy::noise::{PoissonSample, Randomness};
///
/// let sample = PoissonSample::new(0.001)?;
/// let records: Vec<u32> = (0..1_000_000).collect();
/// let mut stream = Randomness::from_seed(1).purpose("batch")?.stream();
/// let batch = sample.choose(&mut stream, &records);
/// assert!((800..1200).contains(&batch.len()));
/// # Ok::<(), progap_privacy::Error>(())
/// ```
///
/// # Proof definition
/// For a public `rate`, a stream of uniform bits and any list, every record joins with probability `rate`, exactly the
/// double given, independently of all others ([proof](crate::proofs::poisson_samples)). Which bits are read depends on
/// bits and on the length of the list alone.
#[derive(Debug, Clone)]
pub struct PoissonSample {
    rate: f64,
    gaps: Gaps,
}

/// How gaps are drawn.
#[derive(Debug, Clone)]
enum Gaps {
    /// Nobody joins.
    Endless,
    /// Everybody joins.
    None,
    Table(GapTable),
}

impl PoissonSample {
    /// The smallest rate above zero: of 2^64 records one joins.
    pub const MIN_RATE: f64 = 1.0 / (1_u128 << 64) as f64;

    /// Samples of a rate. Builds a table of up to 2^15 entries, in some microseconds to half a millisecond.
    ///
    /// # Errors
    /// A rate that is neither 0 nor between 2^-64 and 1.
    pub fn new(rate: f64) -> Result<Self> {
        let gaps = match rate {
            0.0 => Gaps::Endless,
            1.0 => Gaps::None,
            _ if (Self::MIN_RATE..1.0).contains(&rate) => Gaps::Table(GapTable::new(rate)),
            _ => return Err(Error::invalid("sampling rate", rate, "0, or between 2^-64 and 1")),
        };
        Ok(Self { rate, gaps })
    }

    /// The probability with which a record joins.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The records that join, in their order.
    pub fn choose<S: Source, T: Copy>(&self, stream: &mut Stream<S>, records: &[T]) -> Vec<T> {
        let table = match &self.gaps {
            Gaps::Endless => return vec![],
            Gaps::None => return records.to_vec(),
            Gaps::Table(table) => table,
        };
        let mut chosen = Vec::with_capacity((1.1 * self.rate * records.len() as f64) as usize);
        let mut left = records;
        loop {
            // A gap as long as the table goes on behind it, with fresh bits: coins have no memory.
            let passed = table.draw(stream);
            let Some((&next, after)) = left.get(passed..).and_then(<[T]>::split_first) else { return chosen };
            left = if passed < table.len() {
                chosen.push(next);
                after
            } else {
                &left[passed..]
            };
        }
    }
}

/// The law of a gap, up to the length of the table.
///
/// A uniform real number `U` is below `(1 - rate)^k` with the probability that a gap has at least `k` records. `U` is
/// drawn 64 bits first, and more only where these do not tell on which side of a threshold it lies.
#[derive(Debug, Clone)]
struct GapTable {
    /// `1 - rate` in units of 2^-128, exactly.
    stays: u128,
    /// At place `k - 1` a lower bound on `2^64 (1 - rate)^k`, less than two below it.
    thresholds: Box<[u64]>,
    /// For the leading bits of `U`, how many thresholds it is below in any case.
    starts: Box<[u16]>,
    leading_bits: u32,
}

impl GapTable {
    fn new(rate: f64) -> Self {
        // Twice the mean gap: one draw in eight goes on behind the table, unless it is as long as it may be.
        let leading_bits = ((2.0 / rate).log2().ceil() as u32).clamp(1, MAX_BITS);
        let stays = Fixed::one_plus(-rate);
        let mut power = Fixed::ONE;
        let thresholds: Box<[u64]> = (0..1 << leading_bits)
            .map(|_| {
                // Truncated products: after k of them the power is at most k units of 2^-192 too small.
                power = power.mul(stays);
                (power.to_unit_128() >> 64) as u64
            })
            .collect();
        let last = |cell: u64| (cell << (64 - leading_bits)) | (u64::MAX >> leading_bits);
        let starts = (0..1 << leading_bits)
            .map(|cell| thresholds.partition_point(|&threshold| threshold > last(cell)) as u16)
            .collect();
        Self { stays: stays.to_unit_128(), thresholds, starts, leading_bits }
    }

    fn len(&self) -> usize {
        self.thresholds.len()
    }

    /// The length of a gap, at most that of the table.
    #[inline]
    fn draw<S: Source>(&self, stream: &mut Stream<S>) -> usize {
        let leading = stream.next_u64();
        // The bits known of the number, once ties have asked for more.
        let mut drawn = vec![];
        let mut gap = usize::from(self.starts[(leading >> (64 - self.leading_bits)) as usize]);
        while let Some(&threshold) = self.thresholds.get(gap) {
            let is_longer = match leading.checked_sub(threshold) {
                None => true,
                Some(0 | 1) => below_power(self.stays, gap + 1, leading, &mut drawn, stream),
                Some(_) => false,
            };
            if !is_longer {
                break;
            }
            gap += 1;
        }
        gap
    }
}

/// Whether a uniform real number that begins with the 64 bits of `leading` is below `base^exponent`, for a base below
/// one in units of 2^-128. Draws as many further bits as it takes; `drawn` keeps them for the next question about the
/// same number.
#[cold]
fn below_power<S: Source>(
    base: u128,
    exponent: usize,
    leading: u64,
    drawn: &mut Vec<u64>,
    stream: &mut Stream<S>,
) -> bool {
    if drawn.is_empty() {
        drawn.push(leading);
        drawn.extend([(); 3].map(|()| stream.next_u64()));
    }
    loop {
        // The most significant limb is the first, so that lists are compared as numbers are.
        let below = power(base, exponent, drawn.len());
        if *drawn < below {
            return true;
        }
        if above(&below, 2 * exponent as u64).is_none_or(|above| *drawn >= above) {
            return false;
        }
        for _ in 0..drawn.len() {
            drawn.push(stream.next_u64());
        }
    }
}

/// `base^exponent` to this many limbs, at least two, rounded down by less than `2 exponent` units in the last place.
///
/// Proof: a truncated product of numbers below one is off by less than one unit and the errors of its factors. The base
/// is exact. So with `e(k)` the error of the `k`-th power, `e(2k) < 2 e(k) + 1` and `e(2k + 1) < e(2k) + 1`, and by
/// induction `e(k) <= 2k - 2`.
fn power(base: u128, exponent: usize, limbs: usize) -> Vec<u64> {
    let mut exact = vec![0; limbs];
    exact[0] = (base >> 64) as u64;
    exact[1] = base as u64;
    let mut result = exact.clone();
    for bit in (0..exponent.ilog2()).rev() {
        result = truncated_product(&result, &result);
        if exponent >> bit & 1 == 1 {
            result = truncated_product(&result, &exact);
        }
    }
    result
}

/// The leading limbs of the product of two numbers below one with as many limbs, the most significant first.
fn truncated_product(a: &[u64], b: &[u64]) -> Vec<u64> {
    let limbs = a.len();
    let mut product = vec![0_u64; 2 * limbs];
    for i in (0..limbs).rev() {
        let mut carry = 0_u128;
        for j in (0..limbs).rev() {
            let cell = u128::from(a[i]) * u128::from(b[j]) + u128::from(product[i + j + 1]) + carry;
            product[i + j + 1] = cell as u64;
            carry = cell >> 64;
        }
        product[i] = carry as u64;
    }
    product.truncate(limbs);
    product
}

/// The number plus this many units in the last place; `None` from one up.
fn above(number: &[u64], units: u64) -> Option<Vec<u64>> {
    let mut sum = number.to_vec();
    let mut carry = units;
    for limb in sum.iter_mut().rev() {
        let (value, over) = limb.overflowing_add(carry);
        *limb = value;
        carry = u64::from(over);
    }
    (carry == 0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Randomness;

    /// The words of limbs, in the order in which a stream gives them.
    fn words(limbs: &[u64]) -> Vec<u32> {
        limbs.iter().flat_map(|&limb| [(limb >> 32) as u32, limb as u32]).collect()
    }

    /// Of powers of one half and of 3/4 all digits are known: `3^k / 4^k`.
    #[test]
    fn powers_are_bounded_from_both_sides() {
        for (base, numerator, shift) in [(1_u128 << 127, 1_u128, 1_usize), (3 << 126, 3, 2)] {
            for exponent in [1_usize, 2, 3, 7, 20, 31, 50, 63] {
                let limbs = 4;
                let exact = numerator.pow(exponent as u32);
                // As limbs: the number times 2^256, of which 2^(256 - shift * exponent) is a power of two.
                let mut expected = vec![0_u64; limbs];
                for bit in (0..128).filter(|bit| exact >> bit & 1 == 1) {
                    let place = 64 * limbs - shift * exponent + bit;
                    expected[limbs - 1 - place / 64] |= 1 << (place % 64);
                }
                let below = power(base, exponent, limbs);
                assert!(below <= expected, "{exponent}");
                assert!(
                    above(&below, 2 * exponent as u64).is_none_or(|above| above > expected),
                    "{exponent}"
                );
            }
        }
        let (a, b) = ([u64::MAX, u64::MAX], [u64::MAX, u64::MAX]);
        assert_eq!(truncated_product(&a, &b), [u64::MAX, u64::MAX - 1]);
        assert_eq!(above(&[7, u64::MAX], 3), Some(vec![8, 2]));
        assert_eq!(above(&[u64::MAX, u64::MAX - 1], 2), None);
    }

    /// Steered draws at a threshold: equal to it for 64, 128 or 256 bits and then below or above it, by a single unit.
    #[test]
    fn ties_are_decided_by_as_many_bits_as_it_takes() {
        let rate = 0.0181;
        let table = GapTable::new(rate);
        for gap in [20, 55, table.len()] {
            let exact = power(table.stays, gap, 12);
            assert!((exact[0] - table.thresholds[gap - 1]) <= 1);
            for equal in [1, 2, 3, 5] {
                for below in [true, false] {
                    let mut drawn = exact[..equal].to_vec();
                    drawn.push(if below { exact[equal] - 1 } else { exact[equal] + 1 });
                    drawn.resize(9, exact[equal]);
                    let mut stream = Stream::scripted(&words(&drawn));
                    let found = table.draw(&mut stream);
                    assert_eq!(found, if below { gap } else { gap - 1 }, "{gap} {equal} {below}");
                }
            }
        }
        // One half: a number that agrees with a power of it in every scripted digit is not below it.
        let table = GapTable::new(0.5);
        let mut drawn = vec![1 << 61];
        drawn.resize(20, 0);
        assert_eq!(table.draw(&mut Stream::scripted(&words(&drawn))), 2);
    }

    /// At a rate of 2^-64 every threshold is a tie of the ones beside it. The number is one and the same for all of
    /// them: what was drawn to tell it from the first is not drawn again.
    #[test]
    fn ties_with_several_thresholds_look_at_one_number() {
        let table = GapTable::new(PoissonSample::MIN_RATE);
        // Two units of 2^-64 below one, and a little: below (1 - 2^-64)^1, not below its square, which is 2^-128 above
        // the two units.
        for (rest, gap) in [([0, 0, 0], 2), ([1 << 63, 0, 0], 1)] {
            let drawn = [vec![u64::MAX - 1], rest.to_vec(), vec![0; 6]].concat();
            assert_eq!(table.draw(&mut Stream::scripted(&words(&drawn))), gap);
        }
    }

    #[test]
    fn thresholds_bound_the_powers() {
        for rate in [0.999, 0.7, 0.5, 0.018, 512.0 / 825_000.0, 1e-5, 3e-12, PoissonSample::MIN_RATE] {
            let table = GapTable::new(rate);
            for gap in [1, 2, table.len() / 2 + 1, table.len()] {
                let exact = power(table.stays, gap, 6)[0];
                let threshold = table.thresholds[gap - 1];
                assert!(threshold <= exact && exact - threshold <= 1, "{rate} {gap}");
            }
            assert!(table.thresholds.is_sorted_by(|a, b| a >= b));
        }
    }

    #[test]
    fn ends_and_errors() {
        let records: Vec<u32> = (0..100).collect();
        let mut stream = Randomness::from_seed(1).purpose("ends").unwrap().stream();
        assert!(PoissonSample::new(0.0).unwrap().choose(&mut stream, &records).is_empty());
        assert_eq!(PoissonSample::new(1.0).unwrap().choose(&mut stream, &records), records);
        for rate in [PoissonSample::MIN_RATE, 1e-6, 0.3, 1.0 - f64::EPSILON / 2.0] {
            let sample = PoissonSample::new(rate).unwrap();
            assert_eq!(sample.rate(), rate);
            assert!(sample.choose::<_, u32>(&mut stream, &[]).is_empty());
            assert!(sample.choose(&mut stream, &records).is_sorted_by(|a, b| a < b));
        }
        for rate in [-0.1, 1.1, f64::NAN, f64::INFINITY, 1e-20] {
            assert!(PoissonSample::new(rate).is_err(), "{rate}");
        }
    }
}
