//! The hub counter-example (crates/privacy/proofs/hub.md): sampling out-edges does not bound a node's influence,
//! weighting its own record does.

use progap_privacy::noise::{Quantiser, SenderBound};

/// Complete bipartite U(n) x W(D), with or without a hub joined to all of U. Every u draws `D` of its receivers.
struct Graph {
    n: usize,
    d: usize,
    hub: bool,
}

impl Graph {
    fn receivers(&self) -> usize {
        self.d + usize::from(self.hub)
    }

    /// The expected aggregate at each w in W when every u sends a unit scalar along at most `d` sampled out-edges.
    fn expected_sampled_sum(&self) -> f64 {
        let keeps = (self.d as f64 / self.receivers() as f64).min(1.0);
        self.n as f64 * keeps
    }
}

/// Removing the hub moves the expected aggregate of W by n sqrt(D) / (D + 1), far beyond the sqrt(D) claimed for at
/// most D out-edges per node.
#[test]
fn sampling_lets_one_node_move_everyone_else() {
    for (n, d) in [(1000, 100), (5000, 25), (200, 4)] {
        let with = Graph { n, d, hub: true }.expected_sampled_sum();
        let without = Graph { n, d, hub: false }.expected_sampled_sum();
        let shift = (d as f64).sqrt() * (without - with).abs();
        let formula = n as f64 * (d as f64).sqrt() / (d as f64 + 1.0);
        assert!((shift / formula - 1.0).abs() < 1e-12, "n {n}, D {d}: {shift} {formula}");
        assert!(
            shift > 2.0 * (d as f64).sqrt(),
            "n {n}, D {d}: {shift} against a claim of {}",
            (d as f64).sqrt()
        );
    }
    // In units of the noise for epsilon 8 at delta 1e-5 with one aggregate and training (multiplier 0.791 of sqrt D).
    let sigma = 0.791 * 10.0;
    let shift = 1000.0 * 10.0 / 101.0;
    assert!(shift / sigma > 11.0, "{} standard deviations", shift / sigma);
}

/// With records as the unit, the hub's record is its own features and receivers. Its removal takes away its own
/// messages and nothing else, and those have norm at most C over all receivers.
#[test]
fn a_record_moves_only_its_own_messages() {
    let (n, d, bound) = (1000_usize, 100_usize, 1.0);
    let quantiser = Quantiser::<i16>::new(2000).unwrap();
    let quantised = |degree: usize| {
        let budget = quantiser.budget(SenderBound::Weight { bound }, degree as u32).unwrap();
        let mut out = [0_i16];
        quantiser.rows(&[1.0], 1, &[budget], &mut out).unwrap();
        i64::from(out[0])
    };
    // Receivers 0..n are U, n..n+d are W. U's lists name the hub in both worlds: ids are public, and the lists
    // belong to the records of U.
    let aggregate = |hub_record: bool| {
        let mut sums = vec![0_i64; n + d];
        for _ in 0..n {
            let message = quantised(d + 1);
            sums[n..].iter_mut().for_each(|sum| *sum += message);
        }
        for _ in 0..d {
            let message = quantised(n);
            sums[..n].iter_mut().for_each(|sum| *sum += message);
        }
        if hub_record {
            let message = quantised(n);
            sums[..n].iter_mut().for_each(|sum| *sum += message);
        }
        sums
    };
    let (with, without) = (aggregate(true), aggregate(false));
    let squared: i64 = with.iter().zip(&without).map(|(a, b)| (a - b).pow(2)).sum();
    let allowed = (f64::from(quantiser.scale().get()) * bound).powi(2);
    assert!(squared > 0 && squared as f64 <= allowed, "{squared} against {allowed}");
    assert!(with[n..] == without[n..], "nobody else's messages moved");
}
