//! Two published implementations that charge less than their noise costs, recomputed
//! (docs/audit.md#two-published-faults).

use progap_privacy::Event;
use progap_privacy::accountant::{Accountant, GdpAccountant};

/// Charged: noise of deviation `4 s` for messages of length `s = 1e-8`. The division by the length acts on a copy, so
/// that messages have a mean length of 0.29.
#[test]
fn noise_for_a_length_that_messages_do_not_have_hides_nothing() {
    let (sigma, length, delta) = (4.0, 1e-8, 1e-5);
    let charged = Event::gaussian(sigma * length, length).expect("an event");
    let real = Event::gaussian(sigma * length, 0.29).expect("an event");
    let epsilon = GdpAccountant.epsilon(&charged, delta).expect("a bound").value;
    assert!((0.92..0.93).contains(&epsilon), "{epsilon}");
    assert!(GdpAccountant.delta(&real, epsilon).expect("a bound").value > 1.0 - 1e-12);
}

/// Charged: the moments of Laplace noise in one dimension. Drawn: Gaussians with one exponential variance for all
/// coordinates. With many coordinates that variance is seen, and delta is its mean over a Gaussian of each variance.
#[test]
fn one_exponential_for_all_coordinates_is_no_laplace_noise() {
    let sigma = 5.0f64;
    let charged = Event::laplace(sigma / 2f64.sqrt(), 1.0).expect("an event").pure_epsilon().expect("pure");
    assert!((charged - 0.283).abs() < 5e-4, "{charged}");
    let points = 20_000;
    let delta = |epsilon: f64| {
        let at = |point: u32| {
            let variance = -((f64::from(point) + 0.5) / f64::from(points)).ln();
            let event = Event::gaussian(sigma * variance.sqrt(), 1.0).expect("an event");
            GdpAccountant.delta(&event, epsilon).expect("a bound").value
        };
        (0..points).map(at).sum::<f64>() / f64::from(points)
    };
    let (at_claim, at_three) = (delta(charged), delta(3.0));
    assert!((at_claim - 0.057).abs() < 1e-3, "{at_claim}");
    assert!((at_three - 0.0066).abs() < 3e-4, "{at_three}");
}
