//! Accountants against dp-accounting, mpmath and each other.
//!
//! The reference values are in `oracle/accounting.json`, written by `scripts/oracle/accounting.py`.

use progap_privacy::Event;
use progap_privacy::accountant::{
    Accountant, Best, GdpAccountant, PldAccountant, RdpAccountant, TheoremAccountant, ZcdpAccountant, all,
};
use progap_privacy::special::log_gaussian_delta;
use serde::Deserialize;

#[derive(Deserialize)]
struct Oracle {
    /// mu, delta, epsilon.
    gaussian: Vec<(f64, f64, f64)>,
    /// mu, epsilon, ln delta.
    special: Vec<(f64, f64, f64)>,
    /// Rate, sigma, epsilon, delta.
    sampled_once: Vec<(f64, f64, f64, f64)>,
    /// Rate, sigma, order, divergence.
    divergence: Vec<(f64, f64, f64, f64)>,
    /// Tree, delta, epsilon over whole orders.
    rdp: Vec<(Event, f64, f64)>,
    /// Steps, noise, delta, population, batch, terms, epsilon.
    multi_term: Vec<(u64, f64, f64, u64, u64, u64, f64)>,
    /// Tree, delta, interval, pessimistic and optimistic PLD epsilon, RDP epsilon over whole orders.
    trees: Vec<(Event, f64, f64, f64, f64, Option<f64>)>,
}

fn oracle() -> Oracle {
    serde_json::from_str(include_str!("oracle/accounting.json")).expect("the oracle file is valid")
}

/// Whole orders, at which dp-accounting's divergences are exact.
fn whole_orders() -> RdpAccountant {
    RdpAccountant::with_orders((2..64).chain([128, 256, 512, 1024]).map(f64::from).collect()).unwrap()
}

fn relative(value: f64, reference: f64) -> f64 {
    if value == reference { 0.0 } else { value / reference - 1.0 }
}

/// With a delta an epsilon can only be smaller: what dp-accounting says of compositions of Laplace noise and of
/// responses never exceeds the pure cost, and comes close to it where there is one query.
#[test]
fn the_pure_cost_bounds_what_dp_accounting_says() {
    let (mut bounded, mut tight) = (0, 0);
    for (event, delta, _, _, optimistic, _) in oracle().trees {
        let Some(pure) = event.pure_epsilon() else { continue };
        assert!(optimistic <= pure * (1.0 + 1e-9), "{event:?} at {delta:e}: {optimistic}, pure {pure}");
        (bounded, tight) = (bounded + 1, tight + usize::from(optimistic > 0.99 * pure));
    }
    assert!(bounded >= 8 && tight >= 1, "{bounded} compositions, {tight} of them close");
}

#[test]
fn gaussian_epsilon_is_exact_to_nine_digits() {
    for (mu, delta, expected) in oracle().gaussian {
        let event = Event::gaussian(1.0 / mu, 1.0).unwrap();
        let bound = GdpAccountant.epsilon(&event, delta).unwrap();
        assert!(
            relative(bound.value, expected).abs() < 1e-9,
            "mu {mu} delta {delta:e}: {bound:?}, {expected}"
        );
        // delta(epsilon) is the inverse.
        if bound.value > 0.0 {
            let back = GdpAccountant.delta(&event, bound.value).unwrap().value;
            assert!(relative(back, delta).abs() < 1e-8, "mu {mu} delta {delta:e}: {back:e}");
        }
    }
}

#[test]
fn gaussian_delta_is_stable_in_log_space() {
    for (mu, epsilon, expected) in oracle().special {
        let value = log_gaussian_delta(mu, epsilon);
        assert!(
            (value - expected).abs() < 1e-9 * expected.abs().max(1.0),
            "mu {mu} epsilon {epsilon}: {value} {expected}"
        );
    }
}

#[test]
fn a_single_sampled_gaussian_matches_the_closed_form() {
    for (rate, sigma, epsilon, expected) in oracle().sampled_once {
        let event = Event::gaussian(sigma, 1.0).unwrap().poisson_sampled(rate).unwrap();
        let value = PldAccountant::new().delta(&event, epsilon).unwrap().value;
        let case = format!("rate {rate} sigma {sigma} epsilon {epsilon}: {value:e} {expected:e}");
        assert!(value >= expected * (1.0 - 1e-9), "below the truth: {case}");
        assert!(value <= expected * 1.02 + 1e-26, "too far above: {case}");
        if (1e-20..0.5).contains(&expected) {
            let found = PldAccountant::new().epsilon(&event, expected).unwrap().value;
            assert!(found >= epsilon * (1.0 - 1e-9) && found <= epsilon * 1.001, "{case}: {found}");
        }
    }
}

/// Two tests, so that two cores share the longest of them.
#[test]
fn pld_agrees_with_dp_accounting() {
    compare_with_dp_accounting(0);
}

#[test]
fn pld_agrees_with_dp_accounting_on_the_other_half() {
    compare_with_dp_accounting(1);
}

fn compare_with_dp_accounting(first: usize) {
    let pld = PldAccountant::new();
    let (mut compared, mut two_sided) = (0, 0);
    for (event, delta, _, pessimistic, optimistic, _) in oracle().trees.into_iter().skip(first).step_by(2) {
        let bound = pld.epsilon(&event, delta).unwrap();
        let value = bound.value;
        let case = format!("{} at {delta:e}: {bound:?}, oracle {optimistic}..{pessimistic}", event.to_json());
        assert!(value >= optimistic, "below the oracle's optimistic bound: {case}");
        assert!(value <= pessimistic * 1.001, "more than 0.1% above the oracle: {case}");
        // The optimistic bound is loose where steps are many. The pessimistic one is within about 0.01% of the truth
        // unless epsilon is too small for its grid, so an answer far below it would be wrong as well.
        let resolved = pessimistic > 0.05;
        assert!(!resolved || value >= pessimistic * 0.998, "more than 0.2% below the oracle: {case}");
        two_sided += usize::from(resolved);
        assert!(bound.error <= 1e-3 * value, "reported error: {case}");
        compared += 1;
    }
    assert!(compared > 150 && two_sided > 100, "{compared} {two_sided}");
}

#[test]
fn sampled_divergences_match_quadrature() {
    for (rate, sigma, order, expected) in oracle().divergence {
        let event = Event::gaussian(sigma, 1.0).unwrap().poisson_sampled(rate).unwrap();
        let value = RdpAccountant::divergence(&event, order).unwrap();
        assert!(relative(value, expected).abs() < 1e-8, "{rate} {sigma} {order}: {value} {expected}");
    }
}

#[test]
fn rdp_agrees_with_dp_accounting_at_its_orders() {
    let (standard, optimal) = (whole_orders(), RdpAccountant::new());
    let oracle = oracle();
    for (event, delta, expected) in oracle.rdp {
        // Private selection has an inner order to choose; ours is not bound to a list.
        let value = standard.epsilon(&event, delta).unwrap().value;
        assert!(
            (-2e-2..1e-6).contains(&relative(value, expected)),
            "{}: {value} {expected}",
            event.to_json()
        );
    }
    let from_trees =
        oracle.trees.into_iter().filter_map(|(event, delta, _, _, _, rdp)| Some((event, delta, rdp?)));
    for (event, delta, expected) in from_trees {
        let value = standard.epsilon(&event, delta).unwrap().value;
        let case = format!("{} at {delta:e}: {value} {expected}", event.to_json());
        assert!(relative(value, expected).abs() < 1e-6 || (value - expected).abs() < 1e-9, "{case}");
        let best = optimal.epsilon(&event, delta).unwrap().value;
        assert!(best <= value * (1.0 + 1e-6), "optimising over orders must not hurt: {case}, {best}");
    }
}

#[test]
fn multi_term_matches_the_published_accountant() {
    let orders = RdpAccountant::with_orders((11..100).map(|x| f64::from(x) / 10.0).collect()).unwrap();
    for (steps, noise, delta, population, batch, terms, expected) in oracle().multi_term {
        // The published multiplier is relative to the change of all terms together.
        let sigma = noise * terms as f64;
        let step = Event::sampled_without_replacement(population, batch, terms, sigma, 1.0).unwrap();
        let event = step.repeated(steps).unwrap();
        let value = orders.epsilon(&event, delta).unwrap().value;
        assert!(relative(value, expected).abs() < 1e-6, "{value} {expected}");
        let pld = PldAccountant::new().epsilon(&event, delta).unwrap().value;
        let rdp = RdpAccountant::new().epsilon(&event, delta).unwrap().value;
        assert!(pld <= rdp && rdp <= value * (1.0 + 1e-9), "{pld} {rdp} {value}");
        assert!(pld > 0.5 * rdp, "{pld} {rdp}");
    }
}

/// `rho` as one number: `[rho, delta, epsilon]` of dp-accounting, whose orders are a grid, so never below ours.
#[test]
fn concentrated_privacy_agrees_with_dp_accounting() {
    let rows: Vec<(f64, f64, f64)> =
        serde_json::from_str(include_str!("oracle/zcdp.json")).expect("the oracle file is valid");
    for (rho, delta, expected) in rows {
        let gaussian = Event::gaussian(1.0, (2.0 * rho).sqrt()).unwrap();
        // The same rho by a delta of zero, twice half of it.
        let pure = Event::laplace(1.0, rho.sqrt()).unwrap().repeated(2).unwrap();
        for event in [gaussian, pure] {
            let (value, case) = (ZcdpAccountant.epsilon(&event, delta).unwrap().value, event.to_json());
            let slack = 1e-3 * expected + 1e-9;
            assert!(
                (value - expected).abs() <= slack,
                "{case} at {delta:e}: {value}, dp-accounting {expected}"
            );
            let back = ZcdpAccountant.delta(&event, value).unwrap().value;
            assert!(value == 0.0 || relative(back, delta).abs() < 1e-3, "{case}: {back}, from {delta:e}");
        }
    }
}

/// exact/PLD <= RDP <= zCDP and theorem, on every third tree of the oracle and on a grid of extreme deltas.
#[test]
fn tighter_accountants_never_answer_more() {
    let mut cases: Vec<(Event, f64)> =
        oracle().trees.into_iter().step_by(3).map(|(event, delta, ..)| (event, delta)).collect();
    for delta in [1e-2, 1e-6, 1e-12, 1e-20] {
        for sigma in [0.3, 1.0, 6.0, 50.0] {
            let gaussian = Event::gaussian(sigma, 1.0).unwrap();
            cases.push((gaussian.clone().repeated(7).unwrap(), delta));
            cases.push((gaussian.poisson_sampled(0.02).unwrap().repeated(500).unwrap(), delta));
            let laplace = Event::laplace(sigma, 1.0).unwrap().repeated(40).unwrap();
            let response = Event::randomized_response(0.8, 0.3).unwrap().repeated(10).unwrap();
            cases.push((Event::composed(vec![laplace, response]).unwrap(), delta));
        }
    }
    for (index, (event, delta)) in cases.into_iter().enumerate() {
        let answers: Vec<_> = all()
            .into_iter()
            .filter(|accountant| accountant.supports(&event).is_ok())
            .map(|accountant| accountant.epsilon(&event, delta).unwrap())
            .collect();
        for pair in answers.windows(2) {
            // gdp and pld both claim to be tight: pld may only be above, by its grid.
            let slack = if pair[0].accountant == "gdp" { 1e-9 } else { 1e-6 };
            assert!(
                pair[0].value <= pair[1].value * (1.0 + slack) + 1e-12,
                "{} at {delta:e}: {answers:?}",
                event.to_json()
            );
        }
        // Asks everyone again, so not each time.
        if index % 8 == 0 {
            let best = Best.epsilon(&event, delta).unwrap();
            assert!(answers.iter().all(|answer| best.value <= answer.value));
        }
    }
}

/// The grid accountant against the exact one, down to deltas that a plain transform cannot resolve.
#[test]
fn pld_of_gaussians_matches_the_exact_formula() {
    for delta in [1e-2, 1e-5, 1e-10, 1e-15, 1e-20, 1e-30] {
        for mu in [0.01, 0.3, 1.0, 4.0, 15.0, 60.0] {
            let event = Event::gaussian(1.0 / mu, 1.0).unwrap();
            let exact = GdpAccountant.epsilon(&event, delta).unwrap().value;
            let pld = PldAccountant::new().epsilon(&event, delta).unwrap();
            assert!(pld.value >= exact * (1.0 - 1e-9), "mu {mu} delta {delta:e}: {pld:?} below {exact}");
            assert!(pld.value <= exact * 1.0005, "mu {mu} delta {delta:e}: {pld:?} above {exact}");
        }
    }
}

/// Many sampled steps at rate nearly 1 tend to the unsampled mechanism, also far out.
#[test]
fn pld_is_accurate_at_tiny_deltas_after_many_steps() {
    for delta in [1e-15, 1e-20] {
        let step = Event::gaussian(100.0, 1.0).unwrap();
        let sampled = step.clone().poisson_sampled(1.0 - 1e-9).unwrap().repeated(5000).unwrap();
        let exact = GdpAccountant.epsilon(&step.repeated(5000).unwrap(), delta).unwrap().value;
        let value = PldAccountant::new().epsilon(&sampled, delta).unwrap().value;
        assert!(value >= exact * (1.0 - 1e-7) && value <= exact * 1.001, "delta {delta:e}: {value} {exact}");
    }
}

#[test]
fn delta_inverts_epsilon() {
    let step = Event::gaussian(0.9, 1.0).unwrap().poisson_sampled(0.01).unwrap().repeated(2000).unwrap();
    let event = Event::composed(vec![Event::gaussian(3.0, 1.0).unwrap(), step]).unwrap();
    for accountant in [&PldAccountant::new() as &dyn Accountant, &RdpAccountant::new(), &TheoremAccountant] {
        for delta in [1e-3, 1e-6, 1e-12] {
            let epsilon = accountant.epsilon(&event, delta).unwrap().value;
            let back = accountant.delta(&event, epsilon).unwrap().value;
            assert!(relative(back, delta).abs() < 5e-3, "{} {delta:e} {back:e}", accountant.name());
        }
        let curve = accountant.curve(&event, &[1e-3, 1e-6, 1e-12]).unwrap();
        assert!(curve.windows(2).all(|pair| pair[0].epsilon < pair[1].epsilon), "{curve:?}");
    }
}

/// Sampled randomised response has two outcomes, so delta is known in closed form.
#[test]
fn sampled_response_matches_the_closed_form() {
    let (keep, rate) = (0.9, 0.2);
    let event = Event::randomized_response(keep, 1.0 - keep).unwrap().poisson_sampled(rate).unwrap();
    let mixed = rate * keep + (1.0 - rate) * (1.0 - keep);
    for epsilon in [0.05f64, 0.3, 0.8] {
        let hockey = |p: f64, q: f64| {
            (p - epsilon.exp() * q).max(0.0) + (1.0 - p - epsilon.exp() * (1.0 - q)).max(0.0)
        };
        let exact = hockey(mixed, 1.0 - keep).max(hockey(1.0 - keep, mixed));
        let value = PldAccountant::new().delta(&event, epsilon).unwrap().value;
        assert!(value >= exact * (1.0 - 1e-9) && value <= exact * 1.01 + 1e-9, "{epsilon}: {value} {exact}");
    }
}

#[test]
fn parallel_events_cost_the_worst_part() {
    let (weak, strong) = (Event::gaussian(1.0, 1.0).unwrap(), Event::gaussian(3.0, 1.0).unwrap());
    let both = Event::parallel(vec![strong.clone(), weak.clone()]).unwrap();
    let alone = GdpAccountant.epsilon(&weak, 1e-6).unwrap().value;
    assert_eq!(GdpAccountant.epsilon(&both, 1e-6).unwrap().value, alone);

    // Mixed with something that is not Gaussian: the worst combination.
    let laplace = Event::laplace(0.8, 1.0).unwrap();
    let tree = |first: Event| Event::composed(vec![first, weak.clone()]).unwrap();
    let parallel = tree(Event::parallel(vec![laplace.clone(), strong.clone()]).unwrap());
    for accountant in [&PldAccountant::new() as &dyn Accountant, &RdpAccountant::new(), &ZcdpAccountant] {
        let ask = |event: &Event| accountant.epsilon(event, 1e-6).unwrap().value;
        let worst = ask(&tree(laplace.clone())).max(ask(&tree(strong.clone())));
        let value = ask(&parallel);
        assert!(
            value >= worst * (1.0 - 1e-12) && value <= worst * 1.05,
            "{} {value} {worst}",
            accountant.name()
        );
    }
    // Repeated, the parts may change places: only the order-wise maximum is sound.
    let repeated = Event::parallel(vec![laplace, strong]).unwrap().repeated(3).unwrap();
    let refusal = PldAccountant::new().supports(&repeated).unwrap_err();
    assert_eq!((refusal.path.as_str(), refusal.supported_by), ("event.event", vec!["rdp", "zcdp"]));
}

#[test]
fn certain_disclosure_is_never_free() {
    // The bit is published in the clear.
    let clear = Event::randomized_response(1.0, 0.0).unwrap();
    for accountant in [&PldAccountant::new() as &dyn Accountant, &RdpAccountant::new(), &Best] {
        assert_eq!(accountant.epsilon(&clear, 1e-6).unwrap().value, f64::INFINITY);
        assert_eq!(accountant.epsilon(&Event::NonPrivate, 1e-6).unwrap().value, f64::INFINITY);
        assert_eq!(accountant.delta(&Event::NonPrivate, 1.0).unwrap().value, 1.0);
    }
    // Published with probability 1e-7 per step: free only below that.
    let rare = Event::randomized_response(1e-7, 0.0).unwrap().repeated(5).unwrap();
    let pld = PldAccountant::new();
    assert_eq!(pld.epsilon(&rare, 4e-7).unwrap().value, f64::INFINITY);
    assert!(pld.epsilon(&rare, 6e-7).unwrap().value < 1e-6);
    // Nothing asked, nothing paid.
    let nothing = Event::composed(vec![]).unwrap();
    for accountant in all() {
        assert_eq!(accountant.epsilon(&nothing, 1e-6).unwrap().value, 0.0, "{}", accountant.name());
    }
    let unsampled = Event::gaussian(1.0, 1.0).unwrap().poisson_sampled(0.0).unwrap();
    for accountant in [&PldAccountant::new() as &dyn Accountant, &RdpAccountant::new(), &TheoremAccountant] {
        assert_eq!(accountant.epsilon(&unsampled, 1e-6).unwrap().value, 0.0, "{}", accountant.name());
    }
}

/// A factor of two in sensitivity, noise, rate or count must show.
#[test]
fn every_parameter_counts() {
    let event = |sigma: f64, sensitivity: f64, rate: f64, count: u64| {
        Event::gaussian(sigma, sensitivity).unwrap().poisson_sampled(rate).unwrap().repeated(count).unwrap()
    };
    for accountant in [&PldAccountant::new() as &dyn Accountant, &RdpAccountant::new(), &TheoremAccountant] {
        let ask = |event: Event| accountant.epsilon(&event, 1e-5).unwrap().value;
        let base = ask(event(1.0, 1.0, 0.01, 1000));
        for worse in [
            event(0.5, 1.0, 0.01, 1000),
            event(1.0, 2.0, 0.01, 1000),
            event(1.0, 1.0, 0.02, 1000),
            event(1.0, 1.0, 0.01, 2000),
        ] {
            assert!(ask(worse) > 1.1 * base, "{}", accountant.name());
        }
        assert!((ask(event(2.0, 2.0, 0.01, 1000)) / base - 1.0).abs() < 1e-12);
    }
}

/// `oracle/claims.json` has the event, the delta and the epsilon of releases that other versions of this accountant
/// made. `progap verify` accepts a part in 1e9 more than a release claims.
#[test]
fn what_earlier_releases_claim_is_still_enough() {
    let claims: Vec<(Event, f64, f64)> =
        serde_json::from_str(include_str!("oracle/claims.json")).expect("the file is valid");
    assert!(claims.len() > 10);
    for (event, delta, claimed) in claims {
        let found = Best.epsilon(&event, progap_privacy::noise::tables::provable(delta)).unwrap().value;
        let change = relative(found, claimed);
        assert!(change.abs() < 1e-9, "{} at {delta:e}: {change:e}", event.to_json());
    }
}
