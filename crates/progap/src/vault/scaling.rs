//! Scales of number columns where rows are private: maps, from noisy counts of values and of differences.
//!
//! Everything here is post-processing: it sees [counts that left the vault](crate::vault::Vault::column_maps), and no
//! row.
//!
//! Two rounds of counts are needed, because a unit can be anything. The first says how large values are, and how far
//! two nodes' values lie apart, in powers of two; from it follows a width for the bins of the second, which says where
//! the values lie. In the second round a value is counted twice: in a coarse bin, and in a fine one that stands for
//! many places; the coarse one says which of them is meant.

use std::ops::Range;

use progap_graph::scale::{Curve, Map};

/// Powers of two that are told apart: all that a feature can have. What is smaller is counted with the smallest.
const OCTAVES: usize = 254;
const SMALLEST: i32 = -126;
/// The bins of the first round: negative values, 0, positive ones; no difference, and differences.
pub(crate) const SPREAD_BINS: usize = 3 * OCTAVES + 2;
const POSITIVE: usize = OCTAVES + 1;
const NO_DIFFERENCE: usize = POSITIVE + OCTAVES;
const DIFFERENCES: usize = NO_DIFFERENCE + 1;

/// Coarse bins, each as wide as this many units, and fine bins, two to a unit.
const COARSE: usize = 2048;
const COARSE_WIDTH: f64 = 64.0;
const FINE: usize = 512;
const FINE_WIDTH: f64 = 0.5;
/// The bins of the second round.
pub(crate) const PLACE_BINS: usize = COARSE + FINE;
/// Fine bins on either side of where most values lie: five times the median difference of two values.
const AROUND: usize = 10;

/// A bin by itself whose count is below this many deviations of its noise is taken to be empty: of thousands of bins,
/// one in a thousand times one is not.
const EMPTY: f64 = 5.0;
/// Octaves side by side that hold most of a column, or of its differences: together they stand out where each alone
/// does not.
const TOGETHER: usize = 4;
/// Two more octaves at its end belong to it where both together are this many deviations of their noise.
const BESIDE: f64 = 3.0;
/// The differences of numbers in single precision lie at most this many octaves below the numbers.
const DIGITS: usize = 24;
/// Counts that add up to less than this many deviations say nothing.
const SILENT: f64 = 8.0;
/// The same of differences, which can lie in few octaves once the values are found.
const SILENT_AMONG_FEW: f64 = 6.0;
/// A positive column whose middle four fifths span this many octaves is mapped by its logarithm; an even one spans 3.2.
const WIDE: f64 = 3.6;
/// This many octaves lie between the median of differences and the largest tenth of them where there are far outliers;
/// 1.3 in a normal column.
const OUTLIERS: f64 = 2.3;
/// A column with more zeros than this share keeps them.
const MOSTLY_ZERO: f64 = 0.8;
/// The middle four fifths of a normal column are this many deviations wide.
const FOUR_FIFTHS: f64 = 2.563;
/// Values further from the median than this many deviations are brought there.
const FARTHEST: f64 = 4.0;

/// The octave of a magnitude, exactly.
fn octave(magnitude: f64) -> usize {
    let exponent = ((magnitude.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    (exponent - SMALLEST).clamp(0, OCTAVES as i32 - 1) as usize
}

/// The bin of a value in the first round.
pub fn value_bin(value: f64) -> usize {
    match value {
        v if v > 0.0 => POSITIVE + octave(v),
        v if v < 0.0 => octave(-v),
        _ => OCTAVES,
    }
}

/// The bin of the difference of two values in the first round.
pub fn difference_bin(difference: f64) -> usize {
    if difference == 0.0 { NO_DIFFERENCE } else { DIFFERENCES + octave(difference.abs()) }
}

/// The two bins of a value in the second round, for a unit.
pub(crate) fn place_bins(value: f64, unit: f64) -> [usize; 2] {
    let coarse = (value / (COARSE_WIDTH * unit)).floor() + (COARSE / 2) as f64;
    let fine = (value / (FINE_WIDTH * unit)).floor().rem_euclid(FINE as f64);
    [coarse.clamp(0.0, (COARSE - 1) as f64) as usize, COARSE + (fine as usize).min(FINE - 1)]
}

/// The spread of a column, as far as the first round tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Spread {
    /// Nothing that could be told from noise, or that needs a second round.
    Unknown,
    /// All that is needed.
    Known(Map),
    /// How far values lie apart.
    Unit {
        /// The median difference of two values.
        unit: f64,
        /// Whether some lie much further apart.
        outliers: bool,
    },
}

impl Spread {
    /// From the counts of the first round, each with noise of this deviation.
    pub(crate) fn of(counts: &[f32], sigma: f64) -> Spread {
        let told = |range: Range<usize>| Octaves::new(&counts[range], sigma);
        let zeros = Some(f64::from(counts[OCTAVES])).filter(|&zeros| zeros >= EMPTY * sigma).unwrap_or(0.0);
        let (negative, positive) = (told(0..OCTAVES), told(POSITIVE..NO_DIFFERENCE));
        let all = negative.total + positive.total + zeros;
        if all <= SILENT * sigma {
            return Spread::Unknown;
        }
        let far_from_zero = |magnitudes: &Octaves| {
            let unit = magnitudes.quantile(0.5).exp2();
            let curve = Curve::Asinh { centre: 0.0, unit };
            Spread::Known(Map::Standard { curve, mean: 0.0, deviation: 1.0, bounds: None })
        };
        if zeros > MOSTLY_ZERO * all {
            // Sparse columns stay sparse.
            let magnitudes = negative.and(&positive);
            return if magnitudes.total > 0.0 { far_from_zero(&magnitudes) } else { Spread::Unknown };
        }
        let [low, middle, high] = [0.1, 0.5, 0.9].map(|share| positive.quantile(share));
        if negative.total == 0.0 && zeros == 0.0 && high - low >= WIDE {
            let curve = Curve::Log { floor: positive.lowest().exp2() };
            let ln2 = std::f64::consts::LN_2;
            let (mean, deviation) = (middle * ln2, (high - low) / FOUR_FIFTHS * ln2);
            return Spread::Known(Map::Standard { curve, mean, deviation, bounds: None });
        }
        // Differences can be no larger than twice the values, nor smaller than what tells two of them apart.
        let values = negative.and(&positive).told();
        let within = values.start.saturating_sub(DIGITS)..(values.end + 1).min(OCTAVES);
        let differences = Octaves::within(&counts[DIFFERENCES..SPREAD_BINS], within, sigma, SILENT_AMONG_FEW);
        if differences.total == 0.0 {
            return Spread::Unknown;
        }
        let middle = differences.quantile(0.5);
        Spread::Unit { unit: middle.exp2(), outliers: differences.quantile(0.9) - middle >= OUTLIERS }
    }

    /// The unit of the second round, where there is one.
    pub(crate) fn unit(self) -> Option<f64> {
        match self {
            Spread::Unit { unit, .. } => Some(unit),
            Spread::Unknown | Spread::Known(_) => None,
        }
    }

    /// The map of a column, from the counts of the second round; where they say nothing, that of single values.
    pub(crate) fn map(self, counts: &[f32], sigma: f64) -> Map {
        match self {
            Spread::Unknown => Map::SignedLog,
            Spread::Known(map) => map,
            Spread::Unit { unit, outliers } => match Place::of(counts, unit, sigma) {
                None => Map::SignedLog,
                Some(Place { median, .. }) if outliers => {
                    let curve = Curve::Asinh { centre: median, unit };
                    Map::Standard { curve, mean: 0.0, deviation: 1.0, bounds: None }
                }
                Some(Place { median, deviation }) => Map::Standard {
                    curve: Curve::Straight,
                    mean: median,
                    deviation,
                    bounds: Some([median - FARTHEST * deviation, median + FARTHEST * deviation]),
                },
            },
        }
    }
}

/// Counts of octaves that noise does not explain.
struct Octaves {
    counts: Vec<f64>,
    total: f64,
}

impl Octaves {
    fn new(counts: &[f32], sigma: f64) -> Octaves {
        Octaves::within(counts, 0..counts.len(), sigma, SILENT)
    }

    /// As [`Octaves::new`], of octaves outside of which there can be nothing; below so many deviations they say
    /// nothing.
    fn within(counts: &[f32], within: Range<usize>, sigma: f64, silent: f64) -> Octaves {
        let sum = |range: Range<usize>| counts[range].iter().map(|&count| f64::from(count)).sum::<f64>();
        let most = Octaves::most(&sum, within.clone(), sigma, silent);
        let told = |(at, &count): (usize, &f32)| {
            let count = f64::from(count);
            let stands_out = within.contains(&at) && count >= EMPTY * sigma;
            if stands_out || most.contains(&at) { count.max(0.0) } else { 0.0 }
        };
        Octaves::from(counts.iter().enumerate().map(told).collect())
    }

    /// The octaves that hold most; none where that could be noise.
    fn most(
        sum: &dyn Fn(Range<usize>) -> f64,
        within: Range<usize>,
        sigma: f64,
        silent: f64,
    ) -> Range<usize> {
        let starts = within.start..(within.end + 1).saturating_sub(TOGETHER).max(within.start);
        let together = |start: usize| sum(start..start + TOGETHER);
        let best = starts.max_by(|&a, &b| together(a).total_cmp(&together(b)));
        let Some(mut start) = best.filter(|&best| together(best) > silent * sigma) else { return 0..0 };
        let mut end = start + TOGETHER;
        let belongs = |range: Range<usize>| sum(range) > BESIDE * 2f64.sqrt() * sigma;
        while start >= within.start + 2 && belongs(start - 2..start) {
            start -= 2;
        }
        while end + 2 <= within.end && belongs(end..end + 2) {
            end += 2;
        }
        start..end
    }

    fn from(counts: Vec<f64>) -> Octaves {
        Octaves { total: counts.iter().sum(), counts }
    }

    fn and(&self, other: &Octaves) -> Octaves {
        Octaves::from(self.counts.iter().zip(&other.counts).map(|(a, b)| a + b).collect())
    }

    /// The logarithm, to base 2, below which a share of the counts lies.
    fn quantile(&self, share: f64) -> f64 {
        let mut left = share * self.total;
        for (at, &count) in self.counts.iter().enumerate() {
            if count > 0.0 && left <= count {
                return f64::from(at as i32 + SMALLEST) + left / count;
            }
            left -= count;
        }
        f64::from(SMALLEST)
    }

    /// From the lowest octave that is not empty to the highest.
    fn told(&self) -> Range<usize> {
        let is_told = |count: &f64| *count > 0.0;
        let end = self.counts.iter().rposition(is_told).map_or(0, |last| last + 1);
        self.counts.iter().position(is_told).unwrap_or(0)..end
    }

    /// The lower end of the lowest octave that is not empty.
    fn lowest(&self) -> f64 {
        f64::from(self.told().start as i32 + SMALLEST)
    }
}

/// Where the values of a column lie.
struct Place {
    median: f64,
    deviation: f64,
}

impl Place {
    fn of(counts: &[f32], unit: f64, sigma: f64) -> Option<Place> {
        let count = |at: usize| f64::from(counts[at]);
        let both = |at: usize| count(at) + count(at + 1);
        let best = (0..COARSE - 1).max_by(|&a, &b| both(a).total_cmp(&both(b)))?;
        if both(best) <= SILENT * sigma {
            return None;
        }
        // Fine bins, numbered from where the two best coarse bins meet: one turn of them reaches past both.
        let turns = COARSE_WIDTH / FINE_WIDTH;
        let meet = (best as f64 + 1.0 - (COARSE / 2) as f64) * turns;
        let first = meet as i64 - (FINE / 2) as i64;
        let fine: Vec<f64> = (0..FINE as i64)
            .map(|at| count(COARSE + (first + at).rem_euclid(FINE as i64) as usize))
            .collect();
        let centre = (AROUND..FINE - AROUND).max_by(|&a, &b| {
            let near = |at: usize| fine[at - 4..at + 4].iter().sum::<f64>();
            near(a).total_cmp(&near(b))
        })?;
        let window = &fine[centre - AROUND..centre + AROUND];
        let total: f64 = window.iter().sum();
        if total <= SILENT * sigma {
            return None;
        }
        let start = (first + (centre - AROUND) as i64) as f64;
        let quantile = |share: f64| {
            let mut below = 0.0;
            for (at, &count) in window.iter().enumerate() {
                if below + count >= share * total {
                    let within = ((share * total - below) / count).clamp(0.0, 1.0);
                    return (start + at as f64 + within) * FINE_WIDTH * unit;
                }
                below += count;
            }
            (start + window.len() as f64) * FINE_WIDTH * unit
        };
        let [low, median, high] = [0.1, 0.5, 0.9].map(quantile);
        // Half a bin is as much as can be told.
        let deviation = ((high - low) / FOUR_FIFTHS).max(FINE_WIDTH / 2.0 * unit);
        Some(Place { median, deviation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Normal quantiles, spread over the nodes so that no two neighbours are alike.
    fn normal(nodes: usize) -> Vec<f64> {
        let quantile = |p: f64| {
            let t = (-2.0 * p.min(1.0 - p).ln()).sqrt();
            let tail = t
                - (2.515_517 + 0.802_853 * t + 0.010_328 * t * t)
                    / (1.0 + 1.432_788 * t + 0.189_269 * t * t + 0.001_308 * t * t * t);
            if p < 0.5 { -tail } else { tail }
        };
        (0..nodes).map(|at| quantile(((at * 7919 % nodes) as f64 + 0.5) / nodes as f64)).collect()
    }

    /// The map of a column whose counts have an error of at most one deviation, by turns above and below.
    fn found(values: &[f64], sigma: f64) -> Map {
        let error = |at: usize| (sigma * ((at * 37 % 21) as f64 / 10.0 - 1.0)) as f32;
        let errors: Vec<f32> = (0..SPREAD_BINS).chain(0..PLACE_BINS).map(error).collect();
        found_with(values, sigma, &errors)
    }

    /// The map of a column whose counts have these errors.
    fn found_with(values: &[f64], sigma: f64, errors: &[f32]) -> Map {
        let mut spreads = errors[..SPREAD_BINS].to_vec();
        values.iter().for_each(|&value| spreads[value_bin(value)] += 1.0);
        values.chunks_exact(2).for_each(|pair| spreads[difference_bin(pair[0] - pair[1])] += 1.0);
        let spread = Spread::of(&spreads, sigma);
        let mut places = errors[SPREAD_BINS..].to_vec();
        if let Some(unit) = spread.unit() {
            let bins = values.iter().flat_map(|&value| place_bins(value, unit));
            bins.for_each(|bin| places[bin] += 1.0);
        }
        spread.map(&places, sigma)
    }

    #[test]
    fn columns_in_any_unit_are_found() {
        let values = normal(3001);
        for sigma in [0.0, 30.0] {
            for unit in [1e-6, 1.0, 1e6, -3.7] {
                for shift in [0.0, 1.0, -50.0, 1e4, 3e4] {
                    let column: Vec<f64> =
                        values.iter().map(|z| f64::from(((z + shift) * unit) as f32)).collect();
                    let Map::Standard { curve: Curve::Straight, mean, deviation, bounds } =
                        found(&column, sigma)
                    else {
                        panic!("{unit} {shift}: {:?}", found(&column, sigma));
                    };
                    let (mean, deviation) = ((mean / unit - shift).abs(), deviation / unit.abs());
                    assert!(
                        mean < 0.25 && (deviation - 1.0).abs() < 0.25,
                        "{unit} {shift}: {mean} {deviation}"
                    );
                    assert!(bounds.is_some_and(|[low, high]| low < high));
                }
            }
        }
    }

    #[test]
    fn columns_with_far_values_are_straightened_and_zeros_stay() {
        let values = normal(3001);
        for unit in [1e-6, 1.0, 1e6] {
            let column: Vec<f64> = values.iter().map(|z| unit * (1.5 * z).exp()).collect();
            let Map::Standard { curve: Curve::Log { .. }, mean, deviation, .. } = found(&column, 30.0) else {
                panic!("{:?}", found(&column, 30.0));
            };
            assert!(
                (mean - unit.ln()).abs() < 0.3 && (deviation / 1.5 - 1.0).abs() < 0.2,
                "{mean} {deviation}"
            );
            let both: Vec<f64> = values.iter().map(|z| unit * (4.0 * z).sinh()).collect();
            let map = found(&both, 10.0);
            assert!(matches!(map, Map::Standard { curve: Curve::Asinh { .. }, .. }), "{map:?}");
            let sparse: Vec<f64> = (0..3000).map(|at| if at % 10 == 3 { 5.0 * unit } else { 0.0 }).collect();
            let map = found(&sparse, 30.0);
            assert_eq!(map.apply(0.0), 0.0);
            assert!((0.5..2.0).contains(&map.apply(5.0 * unit)), "{map:?}");
        }
    }

    /// Few nodes, as public sizes allow it: most columns are found however far they are shifted, and none is put where
    /// no value lies.
    #[test]
    fn shifted_columns_of_few_nodes_are_found() {
        let mut state = 7u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        };
        let mut gaussian = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        // Four columns at epsilon 8, by 350 sqrt(4) nodes and three times as many.
        let sigma = 11.06 * 8f64.sqrt();
        for (nodes, least) in [(700, 65), (2100, 95)] {
            let mut good = 0;
            for _ in 0..100 {
                let column: Vec<f64> = (0..nodes).map(|_| f64::from((1e4 + gaussian()) as f32)).collect();
                let noise: Vec<f32> =
                    (0..SPREAD_BINS + PLACE_BINS).map(|_| (sigma * gaussian()) as f32).collect();
                let map = found_with(&column, sigma, &noise);
                if let Map::Standard { curve: Curve::Straight, mean, deviation, .. } = map {
                    good += usize::from((mean - 1e4).abs() < 1.0 && (0.5..2.0).contains(&deviation));
                }
            }
            assert!(good >= least, "{nodes} nodes: {good} of 100");
        }
    }

    /// Where noise drowns the counts, and where all values are the same, the map of single values is used.
    #[test]
    fn what_noise_drowns_is_not_made_up() {
        assert_eq!(found(&normal(100), 100.0), Map::SignedLog);
        assert_eq!(found(&[7.0; 3000], 30.0), Map::SignedLog);
        assert_eq!(found(&[], 30.0), Map::SignedLog);
    }

    #[test]
    fn every_number_has_its_bins() {
        for value in [0.0, -0.0, 1.0, -1.0, 1e-45, -1e38, 1e38, f64::from(f32::MAX), f64::MIN_POSITIVE] {
            assert!(value_bin(value) < DIFFERENCES - 1 && difference_bin(value) < SPREAD_BINS);
            for unit in [2f64.powi(SMALLEST), 1.0, 2f64.powi(127)] {
                let [coarse, fine] = place_bins(value, unit);
                assert!(coarse < COARSE && (COARSE..PLACE_BINS).contains(&fine));
            }
        }
        let one = (-SMALLEST) as usize;
        assert_eq!([1.0, 1.999, 2.0].map(value_bin), [POSITIVE + one, POSITIVE + one, POSITIVE + one + 1]);
        assert_eq!((value_bin(-1.0), value_bin(0.0), difference_bin(0.0)), (one, OCTAVES, NO_DIFFERENCE));
    }
}
