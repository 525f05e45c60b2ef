//! Statistical tests of the samplers. Seeds are fixed, so a test either always passes or never does; the limits are
//! those of fresh seeds: five standard deviations, a false-alarm rate of 6e-7 for each comparison and below 1e-4
//! for the whole file. `cargo run --release -p progap-privacy --example noise_soak` draws fresh ones for longer.

mod common;

use std::num::NonZeroU64;

use common::*;
use progap_privacy::noise::{
    Bernoulli, PoissonSample, RandomisedResponse, Randomness, Reproducible, RoundedGaussian, RoundedLaplace,
    Scale, Stream, bernoulli,
};

const LIMIT: f64 = 5.0;

fn nonzero(n: u64) -> NonZeroU64 {
    NonZeroU64::new(n).unwrap()
}

fn stream(label: &str) -> Stream<Reproducible> {
    Randomness::from_seed(20_26).purpose(label).unwrap().stream()
}

fn gaussian_histogram(sigma: f64, samples: usize, label: &str) -> Histogram {
    let gaussian = RoundedGaussian::new(sigma).unwrap();
    let mut stream = stream(label);
    let mut histogram = Histogram::new(gaussian.reach().into());
    let mut block = vec![0; 1 << 16];
    for _ in 0..samples.div_ceil(block.len()) {
        gaussian.fill(&mut stream, &mut block);
        block.iter().for_each(|&n| histogram.add(n.into()));
    }
    histogram
}

#[test]
fn gaussian_follows_its_probabilities_at_every_integer() {
    for sigma in [1.0, 3.7, 30.0, 300.0, 1234.5, 2000.0, 20_000.0, 131_072.0] {
        let histogram = gaussian_histogram(sigma, 4_000_000, "every integer");
        let deviate = histogram.deviate(|n| rounded_gaussian_mass(sigma, n));
        assert!(deviate.abs() < LIMIT, "sigma {sigma}: chi-square deviate {deviate}");
    }
}

/// A sigma wrong by one percent fails the same test: it can see.
#[test]
fn the_test_sees_a_wrong_sigma() {
    let histogram = gaussian_histogram(300.0, 4_000_000, "wrong sigma");
    assert!(histogram.deviate(|n| rounded_gaussian_mass(303.0, n)) > LIMIT);
}

#[test]
fn gaussian_tails_are_neither_cut_nor_heavy() {
    let sigma = 2000.0;
    let histogram = gaussian_histogram(sigma, 40_000_000, "tails");
    for multiple in [2.0, 3.0, 4.0, 4.2, 4.5, 5.0] {
        let from = (multiple * sigma) as i64;
        let p = rounded_gaussian_tail(sigma, from);
        let deviate = count_deviate(histogram.count_beyond(from), histogram.total(), p);
        assert!(deviate.abs() < LIMIT, "beyond {multiple} sigma: {deviate}");
    }
    // Beyond the alias columns (8192 at this sigma) another table decides; its shape is tested by itself.
    let deviate = histogram.tail_deviate(8192, |n| rounded_gaussian_mass(sigma, n));
    assert!(deviate.abs() < LIMIT, "shape of the outer table: {deviate}");
    let (left, right): (u64, u64) = (8192..9000)
        .map(|n| (histogram.count(-n), histogram.count(n)))
        .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    assert!(count_deviate(left, left + right, 0.5).abs() < LIMIT, "signs {left} {right}");
}

#[test]
fn gaussian_moments() {
    let sigma = 600.0;
    let histogram = gaussian_histogram(sigma, 8_000_000, "moments");
    let moment = |power: i32| {
        let sum: f64 = (-8000_i64..=8000)
            .filter(|n| n.abs() <= 7000)
            .map(|n| (n as f64 / sigma).powi(power) * histogram.count(n) as f64)
            .sum();
        sum / histogram.total() as f64
    };
    let root = (histogram.total() as f64).sqrt();
    // Standard errors of the raw moments of a standard normal: 1, sqrt 2, sqrt 15, sqrt 96. Rounding adds 1/12 to
    // the variance, which at this sigma is invisible.
    for (power, expected, error) in
        [(1, 0.0, 1.0), (2, 1.0, 2f64.sqrt()), (3, 0.0, 15f64.sqrt()), (4, 3.0, 96f64.sqrt())]
    {
        let deviate = (moment(power) - expected) / error * root;
        assert!(deviate.abs() < LIMIT, "moment {power}: {deviate}");
    }
}

/// Streams of one purpose, of other purposes, of neighbouring seeds, and successive values are uncorrelated, and so
/// are their magnitudes (squares), which a shared sign-free structure would betray.
#[test]
fn streams_are_independent() {
    let sigma = 300.0;
    let samples = 400_000;
    let gaussian = RoundedGaussian::new(sigma).unwrap();
    let mut randomness = Randomness::from_seed(1);
    let mut purpose = randomness.purpose("a").unwrap();
    let mut streams = purpose.streams(4);
    streams.push(randomness.purpose("b").unwrap().stream());
    streams.push(Randomness::from_seed(2).purpose("a").unwrap().stream());
    // Drawn on threads of their own, as in use.
    let draws: Vec<Vec<i32>> = std::thread::scope(|scope| {
        let handles: Vec<_> = streams
            .iter_mut()
            .map(|stream| {
                scope.spawn(|| {
                    let mut out = vec![0; samples];
                    gaussian.fill(stream, &mut out);
                    out
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    let squares: Vec<Vec<i32>> =
        draws.iter().map(|draw| draw.iter().map(|&n| n * n - (sigma * sigma) as i32).collect()).collect();
    for i in 0..draws.len() {
        for lag in 1..4 {
            let deviate = correlation_deviate(&draws[i][lag..], &draws[i][..samples - lag], sigma);
            assert!(deviate.abs() < LIMIT, "stream {i}, lag {lag}: {deviate}");
        }
        for j in 0..i {
            let deviate = correlation_deviate(&draws[i], &draws[j], sigma);
            assert!(deviate.abs() < LIMIT, "streams {i} and {j}: {deviate}");
            let deviate = correlation_deviate(&squares[i], &squares[j], sigma * sigma * 2f64.sqrt());
            assert!(deviate.abs() < LIMIT, "squares of streams {i} and {j}: {deviate}");
        }
    }
}

#[test]
fn no_two_streams_begin_alike() {
    let mut starts = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let mut randomness = Randomness::from_seed(seed);
        for label in ["a", "b", "aa", ""] {
            let mut purpose = randomness.purpose(label).unwrap();
            for mut stream in purpose.streams(50) {
                assert!(starts.insert(stream.next_u128()), "seed {seed}, label {label:?}");
            }
        }
    }
    let mut secure = Randomness::from_os();
    for label in 0..50 {
        let mut purpose = secure.purpose(&label.to_string()).unwrap();
        for mut stream in purpose.streams(4) {
            assert!(starts.insert(stream.next_u128()));
        }
    }
}

#[test]
fn rounded_laplace_follows_its_probabilities() {
    for (numerator, denominator) in [(1, 2), (1, 1), (7, 2), (100, 3)] {
        let scale = Scale::new(numerator, denominator).unwrap();
        let b = scale.value();
        let laplace = RoundedLaplace::new(scale);
        let mut stream = stream("laplace");
        let mut rounded = Histogram::new(5000);
        for _ in 0..300_000 {
            rounded.add(laplace.sample(&mut stream));
        }
        let cumulative = |x: f64| if x < 0.0 { 0.5 * (x / b).exp() } else { 1.0 - 0.5 * (-x / b).exp() };
        // On the left, where nothing cancels; the distribution is symmetric.
        let deviate = rounded.deviate(|n| {
            let n = -(n.abs() as f64);
            cumulative(n + 0.5) - cumulative(n - 0.5)
        });
        assert!(deviate.abs() < LIMIT, "rounded, scale {b}: {deviate}");
    }
}

#[test]
fn coins_have_their_probabilities() {
    let mut stream = stream("coins");
    let trials = 1_000_000;
    let mut check = |name: &str, p: f64, toss: &mut dyn FnMut(&mut Stream<Reproducible>) -> bool| {
        let count = (0..trials).filter(|_| toss(&mut stream)).count() as u64;
        let deviate = count_deviate(count, trials, p);
        assert!(deviate.abs() < LIMIT, "{name}, p {p}: {deviate}");
    };
    for p in [0.5, 0.3, 1e-3, 0.999] {
        let coin = Bernoulli::new(p).unwrap();
        check("fixed", p, &mut |stream| coin.sample(stream));
    }
    for (n, d) in [(1, 3), (2, 7), (999, 1000)] {
        check("ratio", n as f64 / d as f64, &mut |stream| bernoulli::ratio(stream, n, nonzero(d)));
    }
    for (n, d) in [(1, 3), (1, 1), (7, 2), (1, 1000)] {
        check("exp", (-(n as f64) / d as f64).exp(), &mut |stream| bernoulli::exp_neg(stream, n, nonzero(d)));
    }
    for epsilon in [0.1, 1.0, 4.0] {
        let mechanism = RandomisedResponse::new(epsilon).unwrap();
        let keep = 1.0 / (1.0 + (-epsilon).exp());
        check("response to 1", keep, &mut |stream| mechanism.report(stream, true));
        check("response to 0", 1.0 - keep, &mut |stream| mechanism.report(stream, false));
        let p = mechanism.flip_probability();
        assert!(((1.0 - p) / p).ln() <= epsilon, "never more than asked for");
    }
}

#[test]
fn certain_and_impossible_coins() {
    let mut stream = stream("certain");
    let (never, always) = (Bernoulli::new(0.0).unwrap(), Bernoulli::new(1.0).unwrap());
    assert!((0..1000).all(|_| !never.sample(&mut stream) && always.sample(&mut stream)));
    assert!(bernoulli::exp_neg(&mut stream, 0, nonzero(5)));
    for p in [-0.1, 1.1, f64::NAN] {
        assert!(Bernoulli::new(p).is_err());
    }
    for epsilon in [0.0, -1.0, f64::NAN, 51.0] {
        assert!(RandomisedResponse::new(epsilon).is_err());
    }
    for sigma in [0.0, 0.99, -3.0, f64::NAN, f64::INFINITY, 131_073.0] {
        assert!(RoundedGaussian::new(sigma).is_err(), "{sigma}");
    }
    assert!(Scale::new(0, 1).is_err());
    assert!(Scale::new(1, 1 << 40).is_err());
    assert!(Scale::at_least(f64::NAN).is_err());
    assert!(Scale::at_least(0.3).unwrap().value() >= 0.3);
}

/// How often each subset of ten records is drawn, as the bits of its number.
fn subsets(draws: u64, mut draw: impl FnMut(&[u32]) -> Vec<u32>) -> Vec<u64> {
    let records: Vec<u32> = (0..10).collect();
    let mut counts = vec![0; 1 << records.len()];
    for _ in 0..draws {
        counts[draw(&records).into_iter().fold(0, |subset, record| subset | 1 << record)] += 1;
    }
    counts
}

/// The whole law at once: of ten records every subset has the probability that ten coins give it.
#[test]
fn every_subset_of_a_poisson_sample_has_the_probability_of_its_coins() {
    let draws = 2_000_000;
    for rate in [0.03, 0.3, 0.5, 0.83] {
        let (sample, mut stream) = (PoissonSample::new(rate).unwrap(), stream("subsets"));
        let counts = subsets(draws, |records| sample.choose(&mut stream, records));
        let deviate = |rate: f64| {
            let mass = |subset: usize| {
                let joined = subset.count_ones() as i32;
                rate.powi(joined) * (1.0 - rate).powi(10 - joined)
            };
            // By probability, so that rare subsets are merged with each other.
            let mut cells: Vec<(u64, f64)> =
                counts.iter().enumerate().map(|(subset, &n)| (n, draws as f64 * mass(subset))).collect();
            cells.sort_by(|a, b| a.1.total_cmp(&b.1));
            chi_square_deviate(cells)
        };
        assert!(deviate(rate).abs() < LIMIT, "rate {rate}: {}", deviate(rate));
        assert!(deviate(rate * 1.03) > LIMIT, "a rate wrong by three percent is seen");
    }
}

/// Long lists beside as many coins: how often each record joins, each pair of neighbours, each pair at the distance of
/// the mean gap, and how many join. The tables of both are compared with each other and with the law.
#[test]
fn poisson_samples_are_those_of_coins() {
    for (rate, records, draws) in
        [(0.018, 3_000_u32, 30_000_u64), (512.0 / 825_000.0, 20_000, 20_000), (2e-5, 100_000, 4_000)]
    {
        let (sample, coin) = (PoissonSample::new(rate).unwrap(), Bernoulli::new(rate).unwrap());
        let all: Vec<u32> = (0..records).collect();
        let (mut gaps, mut coins) = (stream("gaps"), stream("coins beside gaps"));
        let from_gaps = tables(&all, draws, rate, |all| sample.choose(&mut gaps, all));
        let from_coins = tables(&all, draws, rate, |all| {
            all.iter().copied().filter(|_| coin.sample(&mut coins)).collect()
        });
        for (name, cells, (ours, theirs)) in [
            ("inclusion", records as usize, (&from_gaps.inclusion, &from_coins.inclusion)),
            ("sizes", from_gaps.sizes.len(), (&from_gaps.sizes, &from_coins.sizes)),
        ] {
            // Two samples of one law: each cell against the mean of both, which has half of the variance.
            let pairs = ours.iter().zip(theirs).take(cells).filter(|(a, b)| *a + *b >= 80);
            let statistic: f64 =
                pairs.clone().map(|(&a, &b)| (a as f64 - b as f64).powi(2) / (a + b) as f64).sum();
            let degrees = pairs.count().max(1) as f64;
            let deviate = (statistic - degrees) / (2.0 * degrees).sqrt();
            assert!(deviate.abs() < LIMIT + 1.0, "{name} at rate {rate}: {deviate}");
        }
        let trials = draws * u64::from(records);
        for (name, found, p, trials) in [
            ("joined", from_gaps.sizes_sum, rate, trials),
            ("neighbours", from_gaps.neighbours, rate * rate, draws * u64::from(records - 1)),
            ("a mean gap apart", from_gaps.apart, rate * rate, draws * u64::from(records - from_gaps.gap)),
        ] {
            let mean = trials as f64 * p;
            // Pairs overlap, so their counts vary a little more than independent ones would: by 1 + 2 rate at most.
            let deviate = count_deviate(found, trials, p) / (1.0 + 2.0 * rate).sqrt();
            assert!(
                deviate.abs() < LIMIT || (found as f64 - mean).abs() < 8.0,
                "{name} at rate {rate}: {deviate}"
            );
        }
    }
}

struct SampleTables {
    inclusion: Vec<u64>,
    sizes: Vec<u64>,
    sizes_sum: u64,
    neighbours: u64,
    apart: u64,
    gap: u32,
}

fn tables(all: &[u32], draws: u64, rate: f64, mut draw: impl FnMut(&[u32]) -> Vec<u32>) -> SampleTables {
    let gap = ((1.0 / rate) as u32).min(all.len() as u32 / 2);
    let mut tables = SampleTables {
        inclusion: vec![0; all.len()],
        sizes: vec![0; all.len() + 1],
        sizes_sum: 0,
        neighbours: 0,
        apart: 0,
        gap,
    };
    for _ in 0..draws {
        let chosen = draw(all);
        assert!(chosen.is_sorted_by(|a, b| a < b));
        tables.sizes[chosen.len()] += 1;
        tables.sizes_sum += chosen.len() as u64;
        tables.neighbours += chosen.windows(2).filter(|pair| pair[1] - pair[0] == 1).count() as u64;
        for &record in &chosen {
            tables.inclusion[record as usize] += 1;
            tables.apart += u64::from(chosen.binary_search(&(record + gap)).is_ok());
        }
    }
    tables
}

/// Gaps of all lengths, those that go on behind the table too: 2e-5 has a mean gap of 50,000, and the longest table
/// 32,768.
#[test]
fn gaps_are_geometric() {
    let records: Vec<u32> = (0..4_000_000).collect();
    for (rate, rounds) in [(0.4, 1), (0.018, 10), (2e-5, 1500)] {
        let (sample, mut stream) = (PoissonSample::new(rate).unwrap(), stream("long gaps"));
        let cell = (0.02 / rate).max(1.0);
        let mut counts = vec![0; 1 + (25.0 / rate / cell) as usize];
        let mut total = 0_u64;
        for _ in 0..rounds {
            let chosen = sample.choose(&mut stream, &records);
            // Only gaps that begin early enough to end before the list does, whatever their length.
            let until = records.len() as f64 - 25.0 / rate;
            for pair in chosen.windows(2).filter(|pair| f64::from(pair[0]) < until) {
                counts[(f64::from(pair[1] - pair[0] - 1) / cell) as usize] += 1;
                total += 1;
            }
        }
        let survival = |cells: f64| ((cells * cell).ceil() * (-rate).ln_1p()).exp();
        let expected = |k: usize| total as f64 * (survival(k as f64) - survival(k as f64 + 1.0));
        let deviate = chi_square_deviate(counts.iter().enumerate().map(|(k, &n)| (n, expected(k))));
        assert!(deviate.abs() < LIMIT, "rate {rate}, {total} gaps: {deviate}");
    }
}
