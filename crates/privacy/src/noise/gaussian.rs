//! The Gaussian, rounded to integers, from an alias table with 128-bit probabilities.
//!
//! `P(n) = Phi((n + 1/2) / sigma) - Phi((n - 1/2) / sigma)`, every value held in units of 2^-128.
//!
//! Layout. The values within about four sigma are the columns of an alias table with `2^k` columns, and column 0 stands
//! for "elsewhere". One 32-bit word picks a column with its first `k` bits and compares the rest with the leading
//! bits of the column's threshold; only on a tie, once in `2^(32 - k)` draws, do further bits decide. So the hot part
//! is four bytes per column (64 KiB at sigma 2,000, within any L2 cache), and a draw costs one word of ChaCha.
//! Elsewhere, once in some 20,000 draws, 128 bits are looked up in a cumulative table.
//!
//! Above sigma 2,048 a column stands for a block of `2^m` neighbouring values, from which the last `m` bits of the word
//! pick one. Within a block they are equally likely up to the smallest of their probabilities; what they have beyond
//! that, less than one part in a thousand of everything, is in the cumulative table too. So the hot part stays in
//! cache, and the probabilities stay exact.

use std::num::NonZeroU32;

use super::masses::masses;
use super::source::Source;
use super::stream::Stream;
use crate::error::Error;
use crate::event::Event;

/// The largest sigma a table is built for; its cumulative part is then 26 MB.
pub const MAX_SIGMA: f64 = 131_072.0;

/// `round(Normal(0, sigma^2))` on the integers.
///
/// # Proof definition
/// For `1 <= sigma <= 131072` (`sigma` exactly the double given) and a stream of uniform bits, samples are independent,
/// and the distribution of one sample is within [`total_variation`](Self::total_variation) (below
/// [`tables::DISTANCE`](super::tables::DISTANCE) everywhere, 8e-35 at `sigma = 2000`) of `round(Y)`, `Y ~ Normal(0,
/// sigma^2)`. Adding samples to integers is therefore post-processing of the Gaussian mechanism
/// ([proof](crate::proofs::rounding)), up to the `delta` of [`tables::slack`](super::tables::slack). The number of
/// words read depends on random words alone, never on the data that the noise is added to.
///
/// ```
/// use progap_privacy::noise::{Randomness, RoundedGaussian};
/// let gaussian = RoundedGaussian::new(600.0)?;
/// let mut stream = Randomness::from_os().purpose("example")?.stream();
/// let mut sums = vec![10, -3, 0, 7];
/// gaussian.add_to(&mut stream, &mut sums);
/// # Ok::<(), progap_privacy::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RoundedGaussian {
    sigma: f64,
    /// log2 of the number of columns.
    column_bits: u32,
    /// log2 of the number of values to a column.
    low_bits: u32,
    /// Leading `32 - column_bits - low_bits` bits of the threshold, a gap of `low_bits`, then the alias.
    columns: Box<[u32]>,
    /// The remaining `96 + low_bits` bits of every threshold.
    rests: Box<[u128]>,
    /// The first magnitude that `outer` holds.
    outer_from: usize,
    /// Cumulative probabilities, in units of 2^-128 and for one sign, of what the columns do not hold.
    outer: Box<[u128]>,
    total_variation: f64,
}

/// `noise * S`, rounded up.
fn message_sigma(noise: f64, scale: NonZeroU32) -> f64 {
    (noise * f64::from(scale.get())).next_up()
}

impl RoundedGaussian {
    /// Build the table: a few milliseconds at sigma 2,000, some tenths of a second at the maximum.
    ///
    /// # Errors
    /// A sigma outside `[1, 131072]`, or not a number.
    pub fn new(sigma: f64) -> Result<Self, Error> {
        if !(1.0..=MAX_SIGMA).contains(&sigma) {
            return Err(Error::invalid("integer sigma", sigma, "between 1 and 131072"));
        }
        let masses = masses(sigma);
        let span_bits = ((8.0 * sigma) as u32).next_power_of_two().ilog2();
        let column_bits = span_bits.min(MAX_COLUMN_BITS);
        let low_bits = span_bits - column_bits;
        let half = 1_usize << (column_bits - 1);

        // Mass that is nowhere: the tail, and what truncation dropped. It goes to zero, so it is exactly by
        // how much the table exceeds the true distribution, hence the distance to it.
        let one_side: u128 = masses[1..].iter().sum();
        let missing = 0_u128.wrapping_sub(masses[0] + 2 * one_side);
        debug_assert!(missing < (masses.len() as u128 + sigma as u128) * 4 + 64);

        // Blocks of 2^low_bits magnitudes, of which column `half + c` and its mirror image take the common part.
        let mut weights = vec![0_u128; 2 * half];
        weights[half] = masses[0] + missing;
        let outer_from = if low_bits == 0 { half } else { 1 };
        let mut outer: Vec<u128> = Vec::with_capacity(masses.len().saturating_sub(outer_from));
        let mut one_sided_outer = 0_u128;
        let block = 1_usize << low_bits;
        for (index, values) in masses[1..].chunks(block).enumerate() {
            let c = index + 1;
            let complete = c < half && values.len() == block;
            let common = values.iter().min().filter(|_| complete).copied().unwrap_or(0);
            if c < half {
                weights[half + c] = common << low_bits;
                weights[half - c] = common << low_bits;
            }
            for (offset, &mass) in values.iter().enumerate() {
                one_sided_outer += mass - common;
                if index * block + 1 + offset >= outer_from {
                    outer.push(one_sided_outer);
                }
            }
        }
        weights[0] = 2 * one_sided_outer;
        let (thresholds, aliases) = alias_columns(weights, column_bits);

        let rest_bits = 96 + low_bits;
        let columns = thresholds
            .iter()
            .zip(&aliases)
            .map(|(threshold, alias)| (((threshold >> rest_bits) as u32) << (column_bits + low_bits)) | alias)
            .collect();
        // Fitting 128 bits onto the outer mass moves each of its values by at most one part in 2^128 of it; one more
        // unit covers the arithmetic of the masses (at most 2^-140 in total).
        let fit = (outer.len() as f64 * 2.0 * one_sided_outer as f64 * UNIT_128).ceil() + 1.0;
        Ok(Self {
            sigma,
            column_bits,
            low_bits,
            columns,
            rests: thresholds.iter().map(|threshold| threshold & ((1 << rest_bits) - 1)).collect(),
            outer_from,
            outer: outer.into(),
            total_variation: (missing as f64 + fit) * UNIT_128 * (1.0 + 1e-9),
        })
    }

    /// The noise for messages at scale `S` that, divided by `S` again, has standard deviation `noise`: rounded up, so
    /// that it is never less.
    ///
    /// # Errors
    /// As [`new`](Self::new), for `noise * S`.
    pub fn for_messages(noise: f64, scale: NonZeroU32) -> Result<Self, Error> {
        Self::new(message_sigma(noise, scale))
    }

    /// Whether this is what [`for_messages`](Self::for_messages) gives for that noise and scale.
    pub fn is_for_messages(&self, noise: f64, scale: NonZeroU32) -> bool {
        self.sigma == message_sigma(noise, scale)
    }

    /// The event of adding this noise to integer sums. The sensitivity is that of the integers: `S`
    /// times the one of the messages.
    ///
    /// # Errors
    /// A sensitivity that is not a positive number.
    pub fn event(&self, integer_sensitivity: f64) -> Result<Event, Error> {
        Event::gaussian(self.sigma, integer_sensitivity)
    }

    /// The scale, exactly as given.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// An upper bound on the total variation distance between one sample and the true rounded Gaussian.
    pub fn total_variation(&self) -> f64 {
        self.total_variation
    }

    /// The largest magnitude that can be drawn.
    pub fn reach(&self) -> i32 {
        (self.outer_from + self.outer.len()).saturating_sub(1) as i32
    }

    fn half(&self) -> usize {
        1 << (self.column_bits - 1)
    }

    /// One sample.
    pub fn sample<S: Source>(&self, stream: &mut Stream<S>) -> i32 {
        let mut value = [0];
        self.fill(stream, &mut value);
        value[0]
    }

    /// Overwrite every element with a sample.
    pub fn fill<S: Source>(&self, stream: &mut Stream<S>, out: &mut [i32]) {
        self.for_each(stream, out, |slot, noise| *slot = noise);
    }

    /// Add a sample to every element. The caller keeps sums at least [`reach`](Self::reach) away from the
    /// ends of the type; beyond, they saturate, which is post-processing as well.
    pub fn add_to<S: Source, T: NoisySum>(&self, stream: &mut Stream<S>, sums: &mut [T]) {
        self.for_each(stream, sums, |sum, noise| *sum = sum.plus(noise));
    }

    fn for_each<S: Source, T>(&self, stream: &mut Stream<S>, slots: &mut [T], put: impl Fn(&mut T, i32)) {
        // Two loops, so that the usual one does not pay for blocks.
        if self.low_bits == 0 {
            let half = self.half() as i32;
            self.for_each_decoded(stream, slots, |symbol, _| symbol as i32 - half, put);
        } else {
            self.for_each_decoded(stream, slots, |symbol, word| self.decode(symbol, word), put);
        }
    }

    #[inline]
    fn for_each_decoded<S: Source, T>(
        &self,
        stream: &mut Stream<S>,
        slots: &mut [T],
        decode: impl Fn(u32, u32) -> i32,
        put: impl Fn(&mut T, i32),
    ) {
        let mut slots = slots.iter_mut();
        while slots.len() > 0 {
            let words = stream.unread();
            let mut used = 0;
            let mut unsettled = None;
            for (&word, slot) in words.iter().zip(&mut slots) {
                used += 1;
                let Look { column, alias, drawn, threshold } = self.look(word);
                let symbol = if drawn < threshold { column } else { alias };
                if drawn == threshold || symbol == 0 {
                    unsettled = Some((word, slot));
                    break;
                }
                put(slot, decode(symbol, word));
            }
            stream.advance(used);
            if let Some((word, slot)) = unsettled {
                put(slot, self.settle(word, stream));
            }
        }
    }

    #[inline]
    fn look(&self, word: u32) -> Look {
        let mask = self.columns.len() - 1;
        let column = (word >> (32 - self.column_bits)) as usize & mask;
        let entry = self.columns[column];
        // Shifting out the column bits aligns the word's comparison bits with those of the entry.
        let compared = u32::MAX << (self.column_bits + self.low_bits);
        Look {
            column: column as u32,
            alias: entry & mask as u32,
            drawn: (word << self.column_bits) & compared,
            threshold: entry & compared,
        }
    }

    /// The value that a symbol and the last bits of a word stand for.
    #[inline]
    fn decode(&self, symbol: u32, word: u32) -> i32 {
        let block = symbol as i32 - self.half() as i32;
        let low = (word & ((1 << self.low_bits) - 1)) as i32;
        block.signum() * (((block.abs() - 1) << self.low_bits) + 1 + low)
    }

    /// The rare draws: a tie in the leading bits of the comparison, or a value that the columns do not hold.
    #[cold]
    #[inline(never)]
    fn settle<S: Source>(&self, word: u32, stream: &mut Stream<S>) -> i32 {
        let Look { column, alias, drawn, threshold } = self.look(word);
        let below = drawn < threshold
            || (drawn == threshold
                && stream.next_u128() >> (32 - self.low_bits) < self.rests[column as usize]);
        let symbol = if below { column } else { alias };
        if symbol != 0 {
            return self.decode(symbol, word);
        }
        let negative = stream.next_u32() & 1 == 1;
        let total = self.outer.last().copied().unwrap_or(0);
        let point = multiply_high(stream.next_u128(), total);
        let index = self.outer.partition_point(|&cumulative| cumulative <= point);
        let magnitude = (self.outer_from + index) as i32;
        if negative { -magnitude } else { magnitude }
    }

    /// The probability of `value` in units of 2^-128, read back from the table itself: exact for what the columns
    /// hold, up to one unit for the rest. For tests and statements, not for speed.
    pub fn probability_bits(&self, value: i32) -> u128 {
        let magnitude = value.unsigned_abs() as usize;
        let elsewhere = magnitude.checked_sub(self.outer_from).map_or(0, |index| {
            let below = index.checked_sub(1).map_or(Some(&0), |i| self.outer.get(i));
            self.outer.get(index).zip(below).map_or(0, |(upto, below)| upto - below)
        });
        let block = (magnitude + (1 << self.low_bits) - 1) >> self.low_bits;
        if block >= self.half() {
            return elsewhere;
        }
        let symbol = (self.half() as i32 + block as i32 * value.signum()) as u32;
        let columns = 0..self.columns.len() as u32;
        let shared: u128 = columns.map(|column| self.column_mass(column, symbol)).sum();
        elsewhere + if value == 0 { shared } else { shared >> self.low_bits }
    }

    /// The mass of a symbol that a column holds.
    fn column_mass(&self, column: u32, symbol: u32) -> u128 {
        let Look { alias, threshold, .. } = self.look(column << (32 - self.column_bits));
        let leading = u128::from(threshold >> (self.column_bits + self.low_bits)) << (96 + self.low_bits);
        let threshold = leading | self.rests[column as usize];
        let own = if column == symbol { threshold } else { 0 };
        own + if alias == symbol { (1 << (128 - self.column_bits)) - threshold } else { 0 }
    }
}

/// The result of looking up one word in the columns.
struct Look {
    column: u32,
    alias: u32,
    drawn: u32,
    threshold: u32,
}

/// At most 64 KiB of columns, whatever the sigma.
const MAX_COLUMN_BITS: u32 = 14;

/// Integer sums that noise can be added to.
pub trait NoisySum: Copy {
    /// The sum plus the noise, saturating at the ends of the type.
    fn plus(self, noise: i32) -> Self;
}

impl NoisySum for i32 {
    #[inline]
    fn plus(self, noise: i32) -> Self {
        self.saturating_add(noise)
    }
}

impl NoisySum for i64 {
    #[inline]
    fn plus(self, noise: i32) -> Self {
        self.saturating_add(i64::from(noise))
    }
}

const UNIT_128: f64 = 1.0 / (u128::MAX as f64);

/// Vose's construction in integers: thresholds and aliases of `2^column_bits` columns of equal capacity for
/// weights that sum to 2^128. No rounding happens, so the columns hold the weights exactly.
fn alias_columns(mut weights: Vec<u128>, column_bits: u32) -> (Vec<u128>, Vec<u32>) {
    let capacity = 1_u128 << (128 - column_bits);
    let mut thresholds = vec![0; weights.len()];
    let mut aliases: Vec<u32> = (0..weights.len() as u32).collect();
    let (mut light, mut heavy): (Vec<usize>, Vec<usize>) =
        (0..weights.len()).partition(|&symbol| weights[symbol] < capacity);
    while let Some(poor) = light.pop() {
        let rich = heavy.pop().expect("the weights sum to the capacity of all columns");
        thresholds[poor] = weights[poor];
        aliases[poor] = rich as u32;
        weights[rich] -= capacity - weights[poor];
        if weights[rich] < capacity {
            light.push(rich);
        } else {
            heavy.push(rich);
        }
    }
    // The columns left are exactly full: threshold 0 with the column as its own alias.
    debug_assert!(heavy.iter().all(|&symbol| weights[symbol] == capacity));
    (thresholds, aliases)
}

/// `floor(a * b / 2^128)`.
fn multiply_high(a: u128, b: u128) -> u128 {
    let (a1, a0) = (a >> 64, a & u128::from(u64::MAX));
    let (b1, b0) = (b >> 64, b & u128::from(u64::MAX));
    let middle = a1 * b0 + ((a0 * b0) >> 64);
    let cross = a0 * b1 + (middle & u128::from(u64::MAX));
    a1 * b1 + (middle >> 64) + (cross >> 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of `bits` after a tie, as `settle` reads them.
    fn after_tie(rest: u128, rest_bits: u32) -> [u32; 4] {
        let bits = rest << (128 - rest_bits);
        [(bits >> 96) as u32, (bits >> 64) as u32, (bits >> 32) as u32, bits as u32]
    }

    /// Steered draws: ties in the leading bits are decided by the rest, exactly at the threshold, with and without
    /// blocks.
    #[test]
    fn ties_are_decided_by_the_rest_of_the_threshold() {
        for sigma in [40.0, 9000.0] {
            let gaussian = RoundedGaussian::new(sigma).unwrap();
            let mut tried = 0;
            for column in 1..gaussian.columns.len() as u32 {
                let first = column << (32 - gaussian.column_bits);
                let (Look { alias, threshold, .. }, rest) =
                    (gaussian.look(first), gaussian.rests[column as usize]);
                if alias == 0 || alias == column || rest == 0 {
                    continue;
                }
                let tie = first | (threshold >> gaussian.column_bits);
                let draw = |rest: u128| {
                    let [a, b, c, d] = after_tie(rest, 96 + gaussian.low_bits);
                    gaussian.sample(&mut Stream::scripted(&[tie, a, b, c, d]))
                };
                assert_eq!(draw(rest - 1), gaussian.decode(column, tie));
                assert_eq!(draw(rest), gaussian.decode(alias, tie));
                tried += 1;
            }
            assert!(tried > 100, "{tried} columns were tried");
        }
    }

    /// Steered draws into the cumulative table: its first and last value, both signs.
    #[test]
    fn the_outer_table_is_reached_at_both_ends() {
        for (sigma, nearest) in [(40.0, 256), (9000.0, 1)] {
            let gaussian = RoundedGaussian::new(sigma).unwrap();
            assert_eq!(gaussian.outer_from, nearest);
            // Column 0 below its threshold means "elsewhere": a tie at zero first if the leading bits are zero.
            let tie = if gaussian.look(0).threshold == 0 { 4 } else { 0 };
            let draw = |sign: u32, point: u32| {
                let words = [&[0][..], &[0; 4][..tie], &[sign, point, point, point, point]].concat();
                gaussian.sample(&mut Stream::scripted(&words))
            };
            assert_eq!(draw(0, 0), nearest as i32);
            assert_eq!(draw(1, 0), -(nearest as i32));
            assert_eq!(draw(0, u32::MAX), gaussian.reach());
            assert_eq!(draw(1, u32::MAX), -gaussian.reach());
        }
    }

    #[test]
    fn blocks_cover_every_value_once() {
        let gaussian = RoundedGaussian::new(9000.0).unwrap();
        assert_eq!(gaussian.low_bits, 3);
        let half = gaussian.half() as u32;
        let values: Vec<i32> = (half - 2..=half + 2)
            .flat_map(|symbol| (0..8).map(move |low| (symbol, low)))
            .map(|(symbol, low)| gaussian.decode(symbol, low))
            .collect();
        let mut sorted = values.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted, (-16..=16).collect::<Vec<_>>());
    }

    #[test]
    fn the_table_sums_to_one() {
        for sigma in [1.0, 2.5, 60.0] {
            let gaussian = RoundedGaussian::new(sigma).unwrap();
            let sum = (-gaussian.reach()..=gaussian.reach())
                .fold(0_u128, |sum, n| sum.wrapping_add(gaussian.probability_bits(n)));
            assert_eq!(sum, 0, "2^128 units, sigma {sigma}");
        }
    }

    #[test]
    fn high_products() {
        assert_eq!(multiply_high(u128::MAX, u128::MAX), u128::MAX - 1);
        assert_eq!(multiply_high(1 << 127, 6), 3);
        assert_eq!(multiply_high(u128::MAX, 1), 0);
        let (a, b) = (0x1234_5678_9abc_def0_u128 << 64, (1_u128 << 64) + 3);
        assert_eq!(multiply_high(a, b), 0x1234_5678_9abc_def0);
    }
}
