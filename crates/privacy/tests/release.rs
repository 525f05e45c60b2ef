//! The whole path from messages to noisy sums: noise, sensitivity and source as promised.

mod common;

use std::num::NonZeroU32;

use progap_privacy::audit::mu_from_gaussian_scores;
use progap_privacy::noise::{
    GradientGrid, Provenance, Quantiser, Randomness, RoundedGaussian, RoundedLaplace, RunKey, Scale,
    SenderBound, Summation,
};

#[test]
fn seeded_noise_does_not_depend_on_threads_or_order() {
    let gaussian = RoundedGaussian::new(500.0).unwrap();
    let release = |threads: usize, detour: bool| {
        let mut randomness = Randomness::from_seed(9);
        if detour {
            randomness.purpose("something else first").unwrap();
        }
        let mut sums: Vec<i32> = (0..100_000).collect();
        gaussian
            .release(&mut sums, NonZeroU32::new(100).unwrap(), randomness.query("sums").unwrap(), threads)
            .into_parts()
            .0
    };
    let one = release(1, false);
    for threads in [0, 2, 3, 7, 64] {
        assert!(one == release(threads, true), "{threads} threads");
    }
}

#[test]
fn filling_in_pieces_gives_the_same_values() {
    let gaussian = RoundedGaussian::new(2000.0).unwrap();
    let stream = || Randomness::from_seed(10).purpose("pieces").unwrap().stream();
    let mut whole = vec![0; 300_000];
    gaussian.fill(&mut stream(), &mut whole);
    let mut pieces = vec![0; 300_000];
    let mut source = stream();
    for piece in pieces.chunks_mut(777) {
        gaussian.fill(&mut source, piece);
    }
    assert!(whole == pieces);
    let mut source = stream();
    assert!(whole[..5000].iter().all(|&n| n == gaussian.sample(&mut source)));
}

#[test]
fn results_say_where_their_noise_came_from() {
    let gaussian = RoundedGaussian::new(300.0).unwrap();
    let seeded =
        gaussian.release(&mut [0_i64; 3], NonZeroU32::MIN, Randomness::from_seed(7).query("x").unwrap(), 1);
    assert_eq!(seeded.provenance(), Provenance::Reproducible { seed: 7 });
    assert!(!seeded.provenance().is_private());
    let secure =
        gaussian.release(&mut [0_i64; 3], NonZeroU32::MIN, Randomness::from_os().query("x").unwrap(), 1);
    assert_eq!(secure.provenance(), Provenance::Secure);
    let json = serde_json::to_string(&seeded.map(|values| values.len()).provenance()).unwrap();
    assert_eq!(json, r#"{"kind":"reproducible","seed":7}"#);
}

#[test]
fn sums_at_the_end_of_the_type_saturate() {
    let gaussian = RoundedGaussian::new(300.0).unwrap();
    let mut stream = Randomness::from_seed(1).purpose("ends").unwrap().stream();
    let mut sums = vec![i32::MAX; 1000];
    gaussian.add_to(&mut stream, &mut sums);
    assert!(sums.iter().all(|&sum| sum > i32::MAX - 10_000));
}

/// A canary's message, quantised, summed and noised at `sigma` = 2 sensitivities: its strength is measured to be 1/2.
/// The test statistic is a mean of 40,000 unit normals on either side; 0.035 is five standard errors of their
/// difference, a false-alarm rate of 6e-7, seed fixed. Noise too small, a scale forgotten or a weight above its
/// bound all fail it.
#[test]
fn a_canary_has_the_strength_the_accountant_charges() {
    let (bound, degree, multiplier) = (1.0, 9, 2.0);
    let quantiser = Quantiser::<i16>::new(900).unwrap();
    let budget = quantiser.budget(SenderBound::Weight { bound }, degree).unwrap();
    let mut message = [0_i16; 4];
    quantiser.rows(&[30.0, -40.0, 0.0, 0.0], 4, &[budget], &mut message).unwrap();

    let gaussian = RoundedGaussian::new(multiplier * bound * f64::from(quantiser.scale().get())).unwrap();
    let mut randomness = Randomness::from_seed(77);
    let mut scores = |present: bool| {
        let runs = 40_000;
        let row: Vec<i32> =
            if present { message.map(i32::from).repeat(degree as usize) } else { vec![0; 36] };
        let mut sums = row.repeat(runs);
        let query = randomness.query(if present { "with" } else { "without" }).unwrap();
        let (noisy, _) = gaussian.release(&mut sums, quantiser.scale(), query, 2).into_parts();
        // The best test projects on the canary's direction, a unit vector over all its receivers.
        let direction: Vec<f64> = [0.6, -0.8, 0.0, 0.0]
            .repeat(degree as usize)
            .iter()
            .map(|x| x / f64::from(degree).sqrt())
            .collect();
        noisy
            .chunks(36)
            .map(|row| row.iter().zip(&direction).map(|(&a, b)| f64::from(a) * b).sum::<f64>())
            .collect::<Vec<f64>>()
    };
    let (with, without) = (scores(true), scores(false));
    let noise = multiplier * bound;
    let estimate = mu_from_gaussian_scores(&with, &without, noise, 0.5).unwrap();
    assert!((estimate - 1.0 / multiplier).abs() < 0.035, "{estimate}");
    let spread = without.iter().map(|s| s * s).sum::<f64>() / without.len() as f64;
    assert!((spread.sqrt() / noise - 1.0).abs() < 5.0 / (2.0 * 40_000_f64).sqrt(), "noise {}", spread.sqrt());
}

#[test]
fn gradient_noise_has_the_charged_scale_and_no_bias() {
    let parameters = 20_000;
    let grid = GradientGrid::new(1.0, parameters, 1.2, Summation::sequential(10_000)).unwrap();
    let mut randomness = Randomness::from_seed(8);
    // Also for fewer entries than the grid is charged for, as in the first stages of a run.
    for entries in [parameters, 3_000] {
        let sum: Vec<f64> = (0..entries).map(|i| (i as f64).sin()).collect();
        let noisy =
            grid.privatise(&sum, randomness.query(&format!("gradient of {entries}")).unwrap()).unwrap();
        assert_eq!(noisy.provenance(), Provenance::Reproducible { seed: 8 });
        let errors: Vec<f64> = noisy.value().iter().zip(&sum).map(|(a, b)| (a - b) / grid.noise()).collect();
        let n = entries as f64;
        let mean = errors.iter().sum::<f64>() / n;
        let variance = errors.iter().map(|e| e * e).sum::<f64>() / n;
        assert!(mean.abs() < 5.0 / n.sqrt(), "{mean}");
        assert!((variance - 1.0).abs() < 5.0 * (2.0 / n).sqrt(), "{variance}");
        assert!(noisy.value().iter().all(|x| (x / grid.step()).fract() == 0.0), "values lie on the grid");
    }
    assert!(grid.noise() >= 1.2 * grid.sensitivity());
}

/// Under one key and name, two sums that differ in a single entry share no noise: their difference tells no more than
/// two answers with noise of their own. With shared noise the difference of the answers would be that of the sums,
/// exactly.
#[test]
fn different_sums_under_one_key_share_no_noise() {
    let keyed = || Randomness::from_key(RunKey::from_bytes(&[5; RunKey::BYTES]));
    let gaussian = RoundedGaussian::new(500.0).unwrap();
    let n = 40_000;
    let answer = |first: i32| {
        let mut sums: Vec<i32> = (0..n).map(|i| if i == 0 { first } else { i % 100 }).collect();
        let query = keyed().query("aggregate 1").unwrap();
        gaussian.release(&mut sums, NonZeroU32::MIN, query, 2).into_parts().0
    };
    assert_eq!(answer(3), answer(3), "the same query has the same answer");
    let grid = GradientGrid::new(1.0, n as usize, 1.0, Summation::sequential(1000)).unwrap();
    let gradient = |first: f64| {
        let sum: Vec<f64> = (0..n).map(|i| if i == 0 { first } else { f64::from(i).cos() }).collect();
        grid.privatise(&sum, keyed().query("gradient 0/0").unwrap()).unwrap().value().clone()
    };
    assert_eq!(gradient(0.5), gradient(0.5));
    // The difference of two independent answers has twice the variance. The mean of n squares of standard normals is
    // within 6.5 sqrt(2 / n) of 1 but for less than once in 10^9.
    let spread = |a: Vec<f64>, b: Vec<f64>, noise: f64| {
        a.iter().zip(&b).skip(1).map(|(a, b)| (a - b).powi(2)).sum::<f64>()
            / (2.0 * noise * noise * f64::from(n - 1))
    };
    let wide = |values: Vec<f32>| values.into_iter().map(f64::from).collect::<Vec<f64>>();
    let found = [
        spread(wide(answer(3)), wide(answer(4)), gaussian.sigma()),
        spread(gradient(0.5), gradient(0.5 + grid.step()), grid.noise()),
    ];
    for found in found {
        assert!((found - 1.0).abs() < 6.5 * (2.0 / f64::from(n)).sqrt(), "{found}");
    }
}

/// Counts with Laplace noise: what is added follows the rounded Laplace law, whatever the counts, on any number of
/// threads, and other counts or another scale have noise of their own. A chi-square deviate beyond 6 is a false alarm
/// once in 10^9.
#[test]
fn laplace_noise_on_counts_has_its_law_and_is_bound_to_the_counts() {
    let counts: Vec<i32> = (0..200_000).map(|at| at % 977).collect();
    let release = |scale: f64, counts: &[i32], threads: usize| {
        let query = Randomness::from_seed(12).query("votes").unwrap();
        let noise = RoundedLaplace::new(Scale::at_least(scale).unwrap());
        noise.release(&mut counts.to_vec(), query, threads).into_parts().0
    };
    for scale in [0.3, 2.0, 40.0] {
        let b = Scale::at_least(scale).unwrap().value();
        let noisy = release(scale, &counts, 1);
        assert_eq!(noisy, release(scale, &counts, 3), "threads change nothing");
        let mut histogram = common::Histogram::new(2000);
        for (&noisy, &count) in noisy.iter().zip(&counts) {
            assert!(noisy.fract() == 0.0, "integers");
            histogram.add(noisy as i64 - i64::from(count));
        }
        let mass = |b: f64| {
            move |n: i64| match n.unsigned_abs() as f64 {
                0.0 => 1.0 - (-0.5 / b).exp(),
                n => 0.5 * ((-(n - 0.5) / b).exp() - (-(n + 0.5) / b).exp()),
            }
        };
        let deviate = histogram.deviate(mass(b));
        assert!(deviate.abs() < 6.0, "scale {b}: {deviate}");
        // A twentieth less noise would be found.
        assert!(histogram.deviate(mass(1.05 * b)) > 6.0, "scale {b}");
    }
    // Seeded noise is that of its label; the noise of a key is bound to the counts.
    let release = |counts: &[i32]| {
        let query = Randomness::from_key(RunKey::from_bytes(&[5; RunKey::BYTES])).query("votes").unwrap();
        let noise = RoundedLaplace::new(Scale::at_least(2.0).unwrap());
        noise.release(&mut counts.to_vec(), query, 1).into_parts().0
    };
    assert_eq!(release(&counts), release(&counts), "the same query has the same answer");
    let other: Vec<i32> = counts.iter().map(|count| count + 1).collect();
    let moved = |a: &[f32], b: &[f32]| a.iter().zip(b).filter(|(a, b)| *b - *a == 1.0).count();
    assert!(moved(&release(&counts), &release(&other)) < counts.len() / 3, "noise of its own");
}
