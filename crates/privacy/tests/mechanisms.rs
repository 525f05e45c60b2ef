//! The mechanisms against values from mpmath and scipy (scripts/oracle/mechanisms.py).

use progap_privacy::audit::{Guesses, clopper_pearson, one_run_epsilon, one_run_p_value};
use progap_privacy::noise::{RoundedGaussian, tables};
use serde::Deserialize;

#[derive(Deserialize)]
struct Oracle {
    rounded_gaussian: Vec<Masses>,
    clopper_pearson: Vec<(u64, u64, f64, f64, f64)>,
    one_run: Vec<(u64, u64, u64, f64, f64, f64)>,
}

#[derive(Deserialize)]
struct Masses {
    sigma: f64,
    values: Vec<(i32, String)>,
}

fn oracle() -> Oracle {
    serde_json::from_str(include_str!("oracle/mechanisms.json")).expect("the oracle file is valid")
}

/// Every probability read back from the alias table is the true one to the last of 128 bits, and zero takes exactly
/// the mass that is missing elsewhere.
#[test]
fn rounded_gaussian_masses_to_128_bits() {
    for Masses { sigma, values } in oracle().rounded_gaussian {
        let gaussian = RoundedGaussian::new(sigma).unwrap();
        for (n, expected) in values {
            let expected: u128 = expected.parse().unwrap();
            for value in [n, -n] {
                let got = gaussian.probability_bits(value);
                if n == 0 {
                    let surplus = (got - expected) as f64 / 2f64.powi(128);
                    assert!(surplus <= gaussian.total_variation(), "sigma {sigma}: {surplus}");
                } else {
                    assert!(got.abs_diff(expected) <= 1, "sigma {sigma}, n {value}: {got} {expected}");
                }
            }
        }
    }
}

#[test]
fn the_distance_to_the_true_gaussian_is_as_tables_say() {
    for sigma in [1.0, 1.5, 17.0, 300.0, 2000.0, 20_000.0, 131_072.0] {
        let gaussian = RoundedGaussian::new(sigma).unwrap();
        assert!(
            gaussian.total_variation() < tables::DISTANCE,
            "sigma {sigma}: {}",
            gaussian.total_variation()
        );
        assert!(f64::from(gaussian.reach()) > 12.0 * sigma, "the tail reaches 12 sigma");
    }
}

#[test]
fn clopper_pearson_agrees_with_beta_quantiles() {
    for (successes, trials, confidence, lower, upper) in oracle().clopper_pearson {
        let interval = clopper_pearson(successes, trials, confidence).unwrap();
        let case = format!("{successes} of {trials} at {confidence}: {interval:?}, expected {lower} {upper}");
        assert!((interval.lower - lower).abs() <= 1e-7 * lower, "{case}");
        assert!(((1.0 - interval.upper) - (1.0 - upper)).abs() <= 1e-7 * (1.0 - upper) + 1e-15, "{case}");
    }
}

#[test]
fn one_run_p_values_agree_with_the_theorem() {
    for (canaries, made, correct, epsilon, delta, expected) in oracle().one_run {
        let got = one_run_p_value(Guesses { canaries, made, correct }, epsilon, delta).unwrap();
        assert!(
            (got - expected).abs() <= 1e-7 * expected + 1e-13,
            "m {canaries} r {made} v {correct} epsilon {epsilon} delta {delta}: {got} {expected}"
        );
    }
}

/// The example printed with the published program: 75 of 100 guesses right among 1,000 canaries.
#[test]
fn one_run_published_example() {
    let guesses = Guesses { canaries: 1000, made: 100, correct: 75 };
    let epsilon = one_run_epsilon(guesses, 1e-4, 0.95).unwrap();
    println!("epsilon {epsilon}");
    assert!((epsilon - 0.673).abs() < 1e-3, "{epsilon}");
}
