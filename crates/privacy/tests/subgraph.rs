//! Noisy sums over batches in which one record touches several terms.

use progap_privacy::Event;
use progap_privacy::accountant::{Accountant, Best, GdpAccountant, PldAccountant, RdpAccountant};
use progap_privacy::calibrate::{Target, calibrate};
use proptest::prelude::*;

/// `ln(n choose k)`, term by term.
fn log_choose(n: u64, k: u64) -> f64 {
    (0..k).map(|i| ((n - i) as f64 / (i + 1) as f64).ln()).sum()
}

/// The chance that `k` of `terms` touched ones are in a batch.
fn chance(population: u64, batch: u64, terms: u64, k: u64) -> f64 {
    if k > batch || batch - k > population - terms {
        return 0.0;
    }
    let ways = log_choose(terms, k) + log_choose(population - terms, batch - k);
    (ways - log_choose(population, batch)).exp()
}

/// With the number of touched terms in the open, delta is the mean of those of Gaussians.
#[test]
fn one_step_matches_the_closed_form() {
    for (population, batch, terms, sigma) in
        [(50, 5, 4, 3.0), (1000, 30, 11, 8.0), (20, 15, 8, 20.0), (300, 1, 1, 1.0)]
    {
        let event = Event::sampled_without_replacement(population, batch, terms, sigma, 2.0).unwrap();
        for epsilon in [0.05, 0.5, 2.0] {
            let exact: f64 = (1..=terms)
                .map(|k| {
                    let gaussian = Event::gaussian(sigma, 2.0 * k as f64).unwrap();
                    chance(population, batch, terms, k)
                        * GdpAccountant.delta(&gaussian, epsilon).unwrap().value
                })
                .sum();
            let pld = PldAccountant::new().delta(&event, epsilon).unwrap().value;
            assert!(pld >= exact * (1.0 - 1e-9), "{population} {epsilon}: {pld} {exact}");
            assert!(pld <= exact * 1.001 + 1e-15, "{population} {epsilon}: {pld} {exact}");
            assert!(RdpAccountant::new().delta(&event, epsilon).unwrap().value >= exact);
        }
        for order in [1.5, 2.0, 7.0] {
            let mean: f64 = (0..=terms)
                .map(|k| {
                    let mu = 2.0 * k as f64 / sigma;
                    chance(population, batch, terms, k) * (0.5 * order * (order - 1.0) * mu * mu).exp()
                })
                .sum();
            let found = RdpAccountant::divergence(&event, order).unwrap();
            let exact = mean.ln() / (order - 1.0);
            assert!((found - exact).abs() < 1e-9 * exact.max(1e-3), "{order}: {found} {exact}");
        }
    }
}

#[test]
fn a_full_batch_is_one_gaussian() {
    let step = Event::sampled_without_replacement(40, 40, 7, 30.0, 2.0).unwrap().repeated(10).unwrap();
    let gaussian = Event::gaussian(30.0, 14.0).unwrap().repeated(10).unwrap();
    let exact = GdpAccountant.epsilon(&gaussian, 1e-6).unwrap().value;
    let found = PldAccountant::new().epsilon(&step, 1e-6).unwrap().value;
    assert!(found >= exact * (1.0 - 1e-9) && found <= exact * 1.0001, "{found} {exact}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn cost_grows_with_what_is_asked(
        population in 200u64..5000, share in 0.01f64..0.3, terms in 1u64..40, sigma in 2.0f64..60.0, steps in 1u64..200
    ) {
        let batch = ((population as f64 * share) as u64).max(1);
        let rdp = RdpAccountant::new();
        let ask = |batch, terms, sigma, steps| {
            let step = Event::sampled_without_replacement(population, batch, terms, sigma, 2.0).unwrap();
            rdp.epsilon(&step.repeated(steps).unwrap(), 1e-5).unwrap().value
        };
        let base = ask(batch, terms, sigma, steps);
        let slack = 1.0 + 1e-9;
        prop_assert!(base >= 0.0 && base.is_finite());
        prop_assert!(ask(batch, terms, sigma, steps + 1) * slack >= base);
        prop_assert!(ask(batch, terms, sigma, 2 * steps) * slack >= base);
        prop_assert!(ask(batch + batch.div_ceil(5), terms, sigma, steps) * slack >= base);
        prop_assert!(ask(batch, terms + 1, sigma, steps) * slack >= base);
        prop_assert!(ask(batch, terms, 1.3 * sigma, steps) <= base * slack);
    }
}

#[test]
fn calibrated_noise_meets_its_target() {
    // 14,212 training nodes in batches of 256, 10 epochs; every node is in 101 terms at most, and moves each by 2.
    let plan = |multiplier: f64| {
        Event::sampled_without_replacement(14_212, 256, 101, 2.0 * multiplier, 2.0)?.repeated(555)
    };
    let target = Target::new(8.0, 1e-5).unwrap();
    let mut multipliers = vec![];
    for accountant in [&RdpAccountant::new() as &dyn Accountant, &Best] {
        let noise = calibrate(plan, target, accountant).unwrap();
        assert!(noise.bound.value <= 8.0 && noise.bound.value > 0.9999 * 8.0, "{:?}", noise.bound);
        assert_eq!(noise.event, plan(noise.multiplier).unwrap());
        // A little less noise misses.
        let less = plan(0.999 * noise.multiplier).unwrap();
        assert!(accountant.epsilon(&less, 1e-5).unwrap().value > 8.0);
        multipliers.push(noise.multiplier);
    }
    assert!(multipliers[1] <= multipliers[0], "the tighter accountant needs no more noise: {multipliers:?}");
}
