//! Events with a delta of zero: their cost is the sum, and no accountant asks for more.

use progap_privacy::Event;
use progap_privacy::accountant::{Accountant, Best, PldAccountant, RdpAccountant};
use proptest::prelude::*;

/// Keeps a one with probability `p s` and makes a zero a one with probability `(1 - p) s`.
fn asymmetric_response(epsilon: f64, s: f64) -> Event {
    let p = 1.0 / (1.0 + (-epsilon).exp());
    Event::randomized_response(p * s, (1.0 - p) * s).unwrap()
}

#[test]
fn pure_costs_add_up_exactly() {
    for epsilon in [0.01, 0.25, 1.0, 4.0, 20.0] {
        for s in [1.0, 0.3, 1e-3, 1e-9] {
            let count = Event::laplace(10.0 / epsilon, 1.0).unwrap();
            let bits = asymmetric_response(0.9 * epsilon, s);
            let whole = Event::composed(vec![count.clone(), bits.clone()]).unwrap();
            let cost = whole.pure_epsilon().unwrap();
            assert!((cost - epsilon).abs() < 1e-9 * epsilon.max(1.0), "{epsilon} {s}: {cost}");
            let apart = count.pure_epsilon().unwrap() + bits.pure_epsilon().unwrap();
            assert!(cost >= apart && cost < apart * (1.0 + 1e-12));
            let both =
                Event::parallel(vec![count.repeated(3).unwrap(), bits]).unwrap().pure_epsilon().unwrap();
            assert!((both - epsilon * 0.9).abs() < 1e-9 * epsilon.max(1.0), "{both}");
        }
    }
    let none = [
        Event::gaussian(100.0, 1e-3).unwrap(),
        Event::NonPrivate,
        Event::randomized_response(0.5, 0.0).unwrap(),
        Event::randomized_response(1.0, 0.5).unwrap(),
        Event::composed(vec![Event::laplace(1.0, 1.0).unwrap(), Event::gaussian(1.0, 1.0).unwrap()]).unwrap(),
    ];
    for event in none {
        assert_eq!(event.pure_epsilon(), None, "{}", event.to_json());
    }
    assert_eq!(Event::composed(vec![]).unwrap().pure_epsilon(), Some(0.0));
    assert_eq!(Event::randomized_response(1.0, 1.0).unwrap().pure_epsilon(), Some(0.0));
    assert_eq!(Event::gaussian(1.0, 1.0).unwrap().poisson_sampled(0.0).unwrap().pure_epsilon(), Some(0.0));
}

#[test]
fn every_accountant_stays_within_the_pure_cost() {
    let response = asymmetric_response(0.7, 0.2);
    let event = Event::composed(vec![
        Event::laplace(5.0, 1.0).unwrap().repeated(2).unwrap(),
        response.repeated(2).unwrap(),
    ])
    .unwrap();
    let pure = event.pure_epsilon().unwrap();
    assert!((pure - 1.8).abs() < 1e-12);
    for delta in [1e-3, 1e-9, 1e-30] {
        let pld = PldAccountant::new().epsilon(&event, delta).unwrap().value;
        let rdp = RdpAccountant::new().epsilon(&event, delta).unwrap().value;
        assert!(pld <= pure * 1.0001 && rdp <= pure * 1.0001, "{delta}: {pld} {rdp} {pure}");
        assert!(Best.epsilon(&event, delta).unwrap().value <= pure);
    }
    // With next to no delta there is nothing to be gained.
    assert!(Best.epsilon(&event, 1e-30).unwrap().value > 0.999 * pure);
    assert_eq!(Best.delta(&event, pure).unwrap().value, 0.0);
    assert!(Best.delta(&event, 0.9 * pure).unwrap().value > 0.0);
}

proptest! {
    /// All four ratios of likelihoods, of the sampled bit and of the bit itself.
    #[test]
    fn sampled_pure_events_are_bounded_by_brute_force(p in 0.001f64..0.999, q in 0.001f64..0.999, rate in 0.0f64..=1.0) {
        let bit = Event::randomized_response(p, q).unwrap();
        let worst = |p: f64, q: f64| (p / q).ln().abs().max(((1.0 - p) / (1.0 - q)).ln().abs());
        let epsilon = bit.pure_epsilon().unwrap();
        prop_assert!(epsilon >= worst(p, q) && epsilon < worst(p, q) + 1e-12);
        let mixed = rate * p + (1.0 - rate) * q;
        let sampled = bit.poisson_sampled(rate).unwrap().pure_epsilon().unwrap();
        prop_assert!(sampled >= worst(mixed, q) - 1e-12 && sampled <= epsilon);
    }
}
