//! Charges about records that arrived after a run.

use progap_ledger::Later;

use super::*;

const SIGMA: f64 = 4.9;

fn later(id: &str, release: &str, nodes: &[u64]) -> Charge {
    let (after, release, nodes) = ("train".into(), release.into(), nodes.to_vec());
    run(id, SIGMA).about_later(Later { after, release, nodes, asked: format!("edges of {id}") })
}

fn cost_of(runs: usize) -> f64 {
    let event = gaussian(SIGMA).repeated(runs as u64).unwrap();
    GdpAccountant.epsilon(&event, tables::provable(1e-7)).unwrap().value
}

fn near(found: f64, runs: usize) {
    let expected = cost_of(runs);
    assert!(found >= expected && found <= expected * (1.0 + 1e-9), "{found}, {runs} runs cost {expected}");
}

#[test]
fn new_edges_pay_what_training_paid_and_old_ones_nothing() {
    let (_folder, _, mut ledger) = ledger(1.0);
    near(ledger.charge(run("train", SIGMA)).unwrap().cost.total, 1);
    for night in 0..20 {
        let receipt =
            ledger.charge(later(&format!("night {night}"), "r", &[2 * night, 2 * night + 1])).unwrap();
        near(receipt.cost.total, 1);
        near(receipt.cost.epsilon, 1);
    }
    let status = ledger.status(NAME, Unit::Edge).unwrap();
    near(status.spent, 1);
    assert!(status.runs == 21 && status.fully_adaptive && status.uncounted == 0);
    // What comes later is about every record again.
    assert!(matches!(ledger.charge(run("again", SIGMA)), Err(Error::OverBudget(_))));
    assert_eq!(ledger.check().unwrap().runs, 21);
}

#[test]
fn a_node_that_is_asked_about_twice_pays_twice() {
    let (_folder, _, mut ledger) = ledger(1.7);
    ledger.charge(run("train", SIGMA)).unwrap();
    near(ledger.charge(later("a", "r", &[1, 2])).unwrap().cost.total, 1);
    near(ledger.charge(later("b", "r", &[2, 3])).unwrap().cost.total, 2);
    near(ledger.charge(later("c", "r", &[1, 3])).unwrap().cost.total, 2);
    // The old node of one release may be the new one of another: nothing is known to be apart.
    let other = refused(ledger.charge(later("d", "s", &[9])));
    assert!(other.total > 1.7 && other.spent < 1.7, "{other:?}");
    let twice = refused(ledger.charge(later("e", "r", &[4, 2, 1])));
    near(twice.total, 3);
    near(ledger.charge(later("f", "r", &[5])).unwrap().cost.total, 2);
    ledger.check().unwrap();
}

#[test]
fn one_id_is_one_question() {
    let (_folder, _, mut ledger) = ledger(4.0);
    let early = ledger.charge(later("a", "r", &[1])).unwrap_err().to_string();
    assert!(early.contains("charged before"), "{early}");
    ledger.charge(run("train", SIGMA)).unwrap();
    let first = ledger.charge(later("a", "r", &[1])).unwrap();
    assert_eq!(ledger.charge(later("a", "r", &[1])).unwrap(), first);
    let mut other = later("a", "r", &[1]);
    other.later.as_mut().unwrap().asked = "other edges".into();
    assert!(matches!(ledger.charge(other), Err(Error::RunChanged { .. })));
    assert!(matches!(ledger.charge(run("a", SIGMA)), Err(Error::RunChanged { .. })));
    assert!(ledger.charge(later("b", "r", &[])).unwrap_err().to_string().contains("new nodes"));
    // Only a run that was charged under that name has later records.
    let mut after = later("c", "r", &[1]);
    after.later.as_mut().unwrap().after = "a".into();
    assert!(ledger.charge(after).is_err());
    assert_eq!(ledger.status(NAME, Unit::Edge).unwrap().runs, 2);
}

/// Releases over some of seven nodes each, and questions about some of the others, by chance: no edge ever truly paid
/// more than the ledger says, whichever run the ledger takes for that of a release.
#[test]
fn no_edge_pays_more_than_is_counted() {
    let mut state = 1u64;
    let mut chance = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut tight = 0;
    for _ in 0..40 {
        let (_folder, _, mut ledger) = ledger(20.0);
        let releases: Vec<u64> = (0..1 + chance(3)).map(|_| chance(1 << 7)).collect();
        for (at, _) in releases.iter().enumerate() {
            let id = if at == 0 { "train".into() } else { format!("train {at}") };
            ledger.charge(run(id, SIGMA)).unwrap();
        }
        let mut asked = vec![];
        for question in 0..chance(7) {
            let release = chance(releases.len() as u64) as usize;
            let nodes: Vec<u64> =
                (0..7).filter(|node| releases[release] >> node & 1 == 0 && chance(2) == 0).collect();
            if nodes.is_empty() {
                continue;
            }
            ledger.charge(later(&format!("q{question}"), &format!("r{release}"), &nodes)).unwrap();
            asked.push((release, nodes));
        }
        let truly = |a: u64, b: u64| {
            let has = |release: usize, node: u64| releases[release] >> node & 1 == 1;
            let trained = (0..releases.len()).filter(|&release| has(release, a) && has(release, b)).count();
            let reads = |(release, nodes): &&(usize, Vec<u64>)| {
                nodes.contains(&a) && has(*release, b) || nodes.contains(&b) && has(*release, a)
            };
            trained + asked.iter().filter(reads).count()
        };
        let most = (0..7).flat_map(|a| (0..a).map(move |b| (a, b))).map(|(a, b)| truly(a, b)).max().unwrap();
        let spent = ledger.status(NAME, Unit::Edge).unwrap().spent;
        assert!(spent >= cost_of(most.max(1)) || most == 0, "{releases:?} {asked:?}: {spent}, {most} runs");
        tight += usize::from(most > 0 && spent <= cost_of(most) * (1.0 + 1e-9));
        ledger.check().unwrap();
    }
    assert!(tight >= 5, "{tight} are exact");
}
