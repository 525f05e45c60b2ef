//! The audit finds planted faults and leaves honest mechanisms alone. Every seed is fixed; each test says how often
//! it would accuse an honest mechanism with a fresh one.

#[path = "audit/bench.rs"]
mod bench;
#[path = "audit/training.rs"]
mod training;

use std::sync::LazyLock;

use progap::method::catalogue::methods;
use progap::plan::{Plan, PublicFacts};
use progap::settings::{Bounding, FeatureLearning, Messages, MethodKind, Selection, Size};
use progap::vault::{AddressedAggregation, Aggregate, Message, NoisyGraph, ReceiverWeights, Vault};
use progap::{Level, Release, Settings};
use progap_audit::mechanism;
use progap_audit::mechanism::{
    Canary, Gradients, World, aggregation_claim, ask_round, ask_vault, receivers, sign,
};
use progap_audit::response::{Pairs, response_claim};
use progap_audit::subgraph::{Subgraphs, subgraph_claim};
use progap_audit::tables::{Table, TableKind, Tables};
use progap_audit::{Auditor, Claim, Finding, Trial, evaluate, evidence};
use progap_graph::synth::SocialNetwork;
use progap_graph::{Dataset, Graph, Ratios};
use progap_privacy::Event;
use progap_privacy::noise::{AnySource, Randomness};

/// Honest mechanisms are accused with probability at most 0.001 by each call of [`evaluate`].
const CONFIDENCE: f64 = 0.999;

fn sizes() -> PublicFacts {
    PublicFacts::stated([
        (Size::Edges, 30_000),
        (Size::TrainNodes, 5000),
        (Size::Nodes, 6000),
        (Size::Columns, 100),
        (Size::Classes, 10),
    ])
}

fn seeded(seed: u64) -> Randomness<AnySource> {
    Randomness::from_seed(seed).erase()
}

fn network() -> Dataset {
    let dataset = SocialNetwork::new(1000).edges(20_000).classes(3).seed(1).generate().expect("a network");
    dataset.or_random_split(Ratios::default(), 1).expect("a split")
}

/// Each unit that can be protected, by settings, with its noise.
static UNITS: LazyLock<Vec<(Settings, Plan)>> = LazyLock::new(|| {
    let edge = Settings {
        epsilon: Some(4.0),
        delta: Some(1e-6),
        ..Settings::of(progap::MethodKind::ProgapLabels, Level::Edge)
    };
    let node = Settings {
        max_degree: 9,
        batch_size: 100,
        delta: Some(1e-6),
        ..Settings::of(progap::MethodKind::ProgapLabels, Level::Node)
    };
    let units = [
        edge.clone(),
        Settings { undirected: true, ..edge },
        Settings { bounding: Bounding::Weight, ..node.clone() },
        Settings { bounding: Bounding::Cap, ..node.clone() },
        Settings { bounding: Bounding::Sample, ..node },
    ];
    units.into_iter().map(|settings| (settings.clone(), plan(&settings))).collect()
});

fn unit(number: usize) -> (Settings, Plan) {
    UNITS[number].clone()
}

fn plan(settings: &Settings) -> Plan {
    Plan::new(&settings.checked().expect("settings"), sizes()).expect("a plan")
}

/// The plan with other events of its queries.
fn with_events(plan: &Plan, event: impl Fn(&Event) -> Event) -> Plan {
    let queries = plan.queries.map(|query| Some(event(&query.event))).expect("events");
    Plan { queries, ..plan.clone() }
}

/// The plan with a part of its noise.
fn weaker(plan: &Plan, by: f64) -> Plan {
    with_events(plan, |event| event.with_noise_times(1.0 / by).expect("noise that is multiplied"))
}

/// The plan for sums or counts that a record moves by this much, with the noise for what it was made for.
fn for_sensitivity(plan: &Plan, sensitivity: f64) -> Plan {
    with_events(plan, |event| match event {
        Event::Gaussian { sigma, .. } => Event::Gaussian { sigma: *sigma, sensitivity },
        Event::Laplace { scale, .. } => Event::Laplace { scale: *scale, sensitivity },
        other => other.clone(),
    })
}

/// Claims what `claimed` does and asks a vault with other settings and another plan.
fn audit_aggregates(
    (claimed, honest): &(Settings, Plan),
    used: (&Settings, &Plan),
    canaries: usize,
    seed: u64,
) -> Vec<Finding> {
    let world = World::new(network().graph(), claimed, honest, receivers(claimed)[0], Some(canaries));
    let mut vault = |data| ask_vault(data, used.0, used.1, seeded(seed));
    audit_world(&world, aggregation_claim(claimed, honest, sizes().edges).expect("a claim"), seed, &mut vault)
}

fn audit_world(
    world: &World,
    claim: Claim,
    seed: u64,
    mechanism: &mut dyn FnMut(Dataset) -> progap::Result<Vec<Vec<f32>>>,
) -> Vec<Finding> {
    let answers = world.experiment(&mut seeded(seed), mechanism).expect("answers");
    let trial = Trial { what: "a fault".into(), evidence: answers.together(), claim };
    evaluate(&[trial], CONFIDENCE).expect("findings")
}

/// All that is tested about aggregates, with the settings' usual number of receivers.
fn audit_all(
    settings: &Settings,
    plan: &Plan,
    canaries: usize,
    seed: u64,
    mechanism: &mut dyn FnMut(Dataset) -> progap::Result<Vec<Vec<f32>>>,
) -> Vec<Finding> {
    let world = World::new(network().graph(), settings, plan, receivers(settings)[0], Some(canaries));
    let answers = world.experiment(&mut seeded(seed), mechanism).expect("answers");
    evaluate(&answers.trials(settings, plan, sizes().edges, "").expect("trials"), CONFIDENCE)
        .expect("findings")
}

fn refuted(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.refuted)
}

/// Five audits of honest mechanisms: an accusation has probability at most 0.005.
#[test]
fn honest_mechanisms_pass_in_every_unit() {
    for (settings, plan) in UNITS.iter() {
        let trials = mechanism::audit(&network(), settings, plan, Some(4000), || seeded(3));
        let trials = trials.expect("audited");
        // All aggregates, every two of them, own rows, many receivers, gradients.
        let pairs = settings.depth * (settings.depth - 1) / 2;
        assert_eq!(trials.len(), 1 + pairs + if settings.level == Level::Node { 3 } else { 0 });
        let findings = evaluate(&trials, CONFIDENCE).expect("findings");
        assert!(!refuted(&findings), "{findings:#?}");
        // And the audit is no idle one: the canaries have the largest influence that is allowed.
        let sampled = |finding: &Finding| {
            settings.bounding == Bounding::Sample && finding.what.contains("many receivers")
        };
        let largest = |finding: &&Finding| {
            // Two aggregates have fewer canaries, and own rows hold nothing.
            let other = finding.what.contains("own row") || finding.what.contains(" and ");
            finding.test == evidence::Test::Gaussian && !sampled(finding) && !other
        };
        for finding in findings.iter().filter(largest) {
            assert!(finding.measured > 0.6 * finding.claimed.expect("a claim"), "{settings:?} {finding:#?}");
        }
        assert!(
            findings.iter().any(|f| f.test == evidence::Test::OneRun && f.measured > 0.5),
            "{findings:#?}"
        );
    }
}

/// The stated rate of false alarms, at its tightest: 200 honest audits at 90%, two tests each. At most 20 accusations
/// are expected; more than 38 have probability below 1e-4.
#[test]
fn honest_mechanisms_are_accused_no_more_often_than_stated() {
    let settings = Settings { hidden: 2, depth: 1, ..unit(0).0 };
    let honest = plan(&settings);
    let none = Graph::from_edges(1, &[], &[]).expect("a graph");
    let world = World::new(&none, &settings, &honest, 1, Some(500));
    let claim = aggregation_claim(&settings, &honest, sizes().edges).expect("a claim");
    let accused = (0..200).filter(|&seed| {
        let mut vault = |data| ask_vault(data, &settings, &honest, seeded(seed));
        let answers = world.experiment(&mut seeded(seed), &mut vault).expect("answers");
        let trial = Trial { what: String::new(), evidence: answers.together(), claim };
        refuted(&evaluate(&[trial], 0.9).expect("findings"))
    });
    let accused = accused.count();
    assert!(accused <= 38, "{accused} of 200");
}

/// An undirected edge is two directed edges; noise for one of them is too little by sqrt 2.
#[test]
fn noise_without_the_root_of_two_is_found() {
    let claimed = unit(1);
    let (settings, weak) = unit(0);
    assert!(refuted(&audit_aggregates(&claimed, (&settings, &weak), 4000, 5)));
    assert!(
        !refuted(&audit_aggregates(&claimed, (&claimed.0, &claimed.1), 4000, 5)),
        "the honest one passes"
    );
}

/// The claimed noise is larger than the noise that is used, by a fifth: in every unit.
#[test]
fn a_sigma_off_by_a_fifth_is_found() {
    for claimed in UNITS.iter() {
        let (settings, honest) = claimed;
        assert!(
            refuted(&audit_aggregates(claimed, (settings, &weaker(honest, 1.2)), 20_000, 6)),
            "{settings:?}"
        );
    }
}

/// A vault that bounds no sender: whoever has many receivers has too much influence.
#[test]
fn a_bound_that_is_not_kept_is_found() {
    for (settings, honest) in UNITS.iter().filter(|(settings, _)| settings.level == Level::Node) {
        let unbounded = Settings { level: Level::Edge, selection: Selection::LastEpoch, ..settings.clone() };
        let world = World::new(network().graph(), settings, honest, receivers(settings)[1], Some(2000));
        let claim = aggregation_claim(settings, honest, sizes().edges).expect("a claim");
        let used = for_sensitivity(honest, 1.0);
        let mut vault = |data| ask_vault(data, &unbounded, &used, seeded(12));
        assert!(refuted(&audit_world(&world, claim, 12, &mut vault)), "{settings:?}");
    }
}

/// Noise on sums of gradients that is claimed a fifth larger than it is.
#[test]
fn weak_noise_on_gradients_is_found() {
    let (settings, honest) = unit(2);
    let gradients = Gradients::new(&settings, 20_000).expect("canaries");
    let claim = Event::gaussian(honest.gradient_multiplier, 1.0).expect("an event");
    let claim = Claim::of(&claim, honest.delta).expect("a claim");
    for (less, found) in [(1.0, false), (1.2, true)] {
        let used = weaker(&honest, less);
        let mut ask = |data| gradients.ask(data, &settings, &used, seeded(7));
        let evidence = gradients.experiment(&settings, &mut seeded(7), &mut ask);
        let trial = Trial { what: "gradients".into(), evidence: evidence.expect("answers"), claim };
        let findings = evaluate(&[trial], CONFIDENCE).expect("findings");
        assert_eq!(refuted(&findings), found, "{findings:#?}");
    }
}

/// Clipping that is forgotten, or to three times the norm: with the noise of the honest vault under it.
#[test]
fn gradients_that_are_not_clipped_are_found() {
    let (settings, honest) = unit(2);
    let gradients = Gradients::new(&settings, 500).expect("canaries");
    let claim = Event::gaussian(honest.gradient_multiplier, 1.0).expect("an event");
    let claim = Claim::of(&claim, honest.delta).expect("a claim");
    for (clip, found) in [(settings.clip, false), (3.0 * settings.clip, true), (1e300, true)] {
        let mut ask = |data: Dataset| {
            let clipped = gradients.exact(&data, settings.clip)?;
            let used = gradients.exact(&data, clip)?;
            let noisy = gradients.ask(data, &settings, &honest, seeded(8))?;
            let sums = noisy.iter().zip(used.iter().zip(&clipped));
            Ok(sums.map(|(noisy, (used, clipped))| noisy + (used - clipped) as f32).collect())
        };
        let evidence = gradients.experiment(&settings, &mut seeded(8), &mut ask);
        let trial = Trial { what: "gradients".into(), evidence: evidence.expect("answers"), claim };
        let findings = evaluate(&[trial], CONFIDENCE).expect("findings");
        assert_eq!(refuted(&findings), found, "{clip} {findings:#?}");
    }
}

/// Three queries, of which two have the same noise: whichever two, in every unit. The answers to three queries with
/// noise of their own pass; an accusation has probability at most 0.001 each, 0.005 in all.
#[test]
fn noise_shared_by_any_two_queries_is_found() {
    for (settings, _) in UNITS.iter() {
        let settings = Settings { depth: 3, hidden: 4, ..settings.clone() };
        let honest = plan(&settings);
        let larger = Plan { noise_values: u64::MAX, ..honest.clone() };
        // A fresh vault for each query, all from one seed: queries of one name have one noise.
        let ask = |names: [usize; 3]| {
            let mut mechanism = |data: Dataset| {
                let messages = data.features().to_dense(data.nodes());
                let answer = |(round, name): (usize, usize)| {
                    let mut vault =
                        Vault::open(data.clone(), &settings, larger.clone(), Randomness::from_seed(9))?;
                    ask_round(&mut vault, &messages, settings.hidden, round, &format!("aggregate {name}"))
                };
                names.into_iter().enumerate().map(answer).collect()
            };
            audit_all(&settings, &honest, 2000, 9, &mut mechanism)
        };
        let findings = ask([1, 2, 3]);
        assert!(!refuted(&findings), "{settings:?} {findings:#?}");
        for (names, pair) in [([1, 1, 3], "1 and 2"), ([1, 2, 1], "1 and 3"), ([1, 2, 2], "2 and 3")] {
            let findings = ask(names);
            let accused = |finding: &&Finding| finding.refuted && finding.what.ends_with(pair);
            let measured =
                findings.iter().filter(accused).map(|finding| finding.measured).fold(0.0, f64::max);
            assert!(measured > 3.0, "nothing is left of the noise: {pair} {settings:?} {findings:#?}");
            // And no other two are accused.
            let others = |finding: &&Finding| finding.what.contains(" and ") && !finding.what.ends_with(pair);
            assert!(!findings.iter().filter(others).any(|finding| finding.refuted), "{findings:#?}");
        }
        assert!(refuted(&ask([1, 1, 1])), "one noise for all");
    }
}

/// For any two of sixteen queries about half of all nodes send opposite messages: 10,000 nodes, six standard
/// deviations.
#[test]
fn any_two_queries_are_told_apart_by_signs() {
    for one in 0..16 {
        for other in one + 1..16 {
            let opposite =
                (0..20_000).step_by(2).filter(|&node| sign(node, one) != sign(node, other)).count();
            assert!((4700..5300).contains(&opposite), "{one} {other}: {opposite}");
        }
    }
}

/// A vault that lets nodes hear themselves: their own features are in their own row, which no bound covers. Canaries
/// that only change edges would not see it.
#[test]
fn records_that_hear_themselves_are_found() {
    for (settings, honest) in UNITS.iter().filter(|(settings, _)| settings.level == Level::Node) {
        let honest = Plan { aggregate_multiplier: honest.aggregate_multiplier / 2.0, ..weaker(honest, 2.0) };
        let mut with_self_loops = |data: Dataset| {
            let messages = data.features().to_dense(data.nodes());
            let mut answers = ask_vault(data, settings, &honest, seeded(15))?;
            for (round, answer) in answers.iter_mut().enumerate() {
                for (node, row) in answer.chunks_exact_mut(settings.hidden).enumerate() {
                    let own = &messages[node * settings.hidden..][..settings.hidden];
                    // Twice what the node may say to all its receivers together.
                    let weight = 2.0 * honest.sensitivity as f32 * sign(node, round);
                    row.iter_mut().zip(own).for_each(|(value, own)| *value += weight * own);
                }
            }
            Ok(answers)
        };
        let findings = audit_all(settings, &honest, 4000, 15, &mut with_self_loops);
        let own = findings.iter().filter(|finding| finding.what.contains("own row"));
        assert!(own.clone().any(|finding| finding.refuted), "{settings:?} {findings:#?}");
        assert!(findings.iter().all(|finding| finding.what.contains("own row") || !finding.refuted));
    }
}

/// The paper bounds a node's influence by sampling edges, and claims to protect the node with all its edges. On the hub
/// graph (crates/privacy/proofs/hub.md) everyone else's sample depends on whether the hub is there.
#[test]
fn degree_sampling_on_the_hub_graph_is_found() {
    let (settings, plan) = unit(4);
    let settings = Settings { max_degree: 4, depth: 1, ..settings };
    let sensitivity = 2f64.next_up();
    let noise = plan.aggregate_multiplier * sensitivity;
    let honest = with_events(&plan, |event| match event {
        Event::Gaussian { .. } => Event::gaussian(noise, sensitivity).expect("an event"),
        other => other.clone(),
    });
    let honest = Plan { sensitivity, ..honest };
    let claim = aggregation_claim(&settings, &honest, sizes().edges).expect("a claim");
    let mut sampled = |data| ask_vault(data, &settings, &honest, seeded(10));
    let whole_node = audit_world(&hubs(200, true), claim, 10, &mut sampled);
    assert!(refuted(&whole_node), "{whole_node:#?}");
    // With records as the unit the lists of the others name the hub in any case, and the same sampling is sound.
    let record = audit_world(&hubs(200, false), claim, 10, &mut sampled);
    assert!(!refuted(&record), "{record:#?}");
}

/// Claims what a plan promises and asks a vault with other settings and another plan for a noisy graph.
fn audit_response(claimed: &Settings, honest: &Plan, used: (&Settings, &Plan)) -> Vec<Finding> {
    let claim = response_claim(honest).expect("a claim");
    let trials = [1, 10].map(|spread| {
        let mut vault = |data| {
            let mut vault = Vault::open(data, used.0, used.1.clone(), Randomness::from_seed(13))?;
            vault.ask(NoisyGraph { available: None })
        };
        let pairs = Pairs::new(claimed, 20_000, spread);
        let evidence = pairs.experiment(&mut seeded(13), &mut vault).expect("answers");
        Trial { what: format!("one in {spread}"), evidence, claim }
    });
    evaluate(&trials, CONFIDENCE).expect("findings")
}

/// Edges and undirected edges through a noisy graph: honest answers pass, at any density and close to the claim;
/// answers at twice the epsilon, or by a fifth more, do not, nor do undirected edges of which each direction is
/// answered for itself.
#[test]
fn weak_randomised_response_is_found() {
    for undirected in [false, true] {
        let settings = Settings { undirected, ..Settings::of(MethodKind::EdgeRand, Level::Edge) };
        let honest = plan(&settings);
        let findings = audit_response(&settings, &honest, (&settings, &honest));
        assert!(!refuted(&findings), "{findings:#?}");
        let claimed = response_claim(&honest).expect("a claim").epsilon.expect("a claim");
        let tight = |finding: &Finding| finding.measured > 0.85 * claimed;
        assert!(findings.iter().any(tight), "{findings:#?}");
        for factor in [1.2, 2.0] {
            let weak = plan(&Settings { epsilon: settings.epsilon.map(|e| factor * e), ..settings.clone() });
            assert!(refuted(&audit_response(&settings, &honest, (&settings, &weak))), "{factor}");
        }
        if undirected {
            let directed = Settings { undirected: false, ..settings.clone() };
            assert!(refuted(&audit_response(&settings, &honest, (&directed, &honest))));
        }
    }
}

/// Edges and undirected edges through counts of votes: honest counts pass; with half the noise, with none, with noise
/// that both counts share, or with noise for a directed edge where undirected edges are protected they do not.
#[test]
fn weak_laplace_noise_is_found() {
    use progap_audit::votes::{Voters, ask_vault};
    for undirected in [false, true] {
        let settings =
            Settings { undirected, epsilon: Some(2.0), ..Settings::of(MethodKind::Lpgnet, Level::Edge) };
        let honest = plan(&settings);
        let audit = |mechanism: &mut dyn FnMut(Dataset) -> progap::Result<Vec<Vec<f32>>>| {
            let voters = Voters::new(&settings, 20_000);
            let counted = voters.experiment(&mut seeded(14), mechanism).expect("answers");
            evaluate(&counted.trials(&settings, &honest, sizes().edges), CONFIDENCE).expect("findings")
        };
        let ask = |settings: &Settings, plan: &Plan, seed: u64, data: Dataset| {
            ask_vault(data, settings, plan, seeded(seed))
        };
        let found = audit(&mut |data| ask(&settings, &honest, 15, data));
        assert!(!refuted(&found), "{found:#?}");
        let measured = found.iter().map(|finding| finding.measured).fold(0.0, f64::max);
        assert!(measured > 0.5, "the attack sees something: {found:#?}");
        let weak = plan(&Settings { epsilon: Some(4.0), ..settings.clone() });
        assert!(refuted(&audit(&mut |data| ask(&settings, &weak, 16, data))), "half the noise");
        let open = Settings::of(MethodKind::Lpgnet, Level::None);
        assert!(refuted(&audit(&mut |data| ask(&open, &honest, 17, data))), "no noise");
        // The exact counts, with the same noise on both: what the vault never does.
        let shared = |data: Dataset| {
            let exact = ask(&open, &honest, 18, data.clone())?;
            let noisy = ask(&settings, &honest, 18, data)?;
            let noise: Vec<f32> =
                noisy[0].iter().zip(&exact[0]).map(|(noisy, exact)| noisy - exact).collect();
            Ok(exact.iter().map(|counts| counts.iter().zip(&noise).map(|(c, n)| c + n).collect()).collect())
        };
        let mut shared = shared;
        assert!(refuted(&audit(&mut shared)), "the same noise twice");
        if undirected {
            let directed = for_sensitivity(&plan(&Settings { undirected: false, ..settings.clone() }), 2.0);
            assert!(
                refuted(&audit(&mut |data| ask(&settings, &directed, 19, data))),
                "noise for one direction"
            );
        }
    }
}

/// Records through a sum of gradients over nodes with their senders: an honest sum passes, close to the claim; with a
/// fifth less noise, with noise for one node only, or without a bound on receivers it does not.
#[test]
fn weak_noise_on_subgraph_gradients_is_found() {
    let usual = Settings::of(MethodKind::DpGnn, Level::Node);
    let settings = Settings { batch_size: 500, max_degree: 4, epsilon: Some(30.0), ..usual };
    let honest = plan(&settings);
    let claim = subgraph_claim(&honest).expect("a claim");
    let audit = |receivers: usize, used: &Settings, noise: &Plan| {
        let subgraphs = Subgraphs::new(6000, receivers).expect("canaries");
        let mut ask = |data| subgraphs.ask(data, used, noise, seeded(14));
        let evidence = subgraphs.experiment(&mut seeded(14), &mut ask).expect("answers");
        evaluate(&[Trial { what: "records".into(), evidence, claim }], CONFIDENCE).expect("findings")
    };
    for receivers in receivers(&settings) {
        let findings = audit(receivers, &settings, &honest);
        assert!(!refuted(&findings), "{findings:#?}");
        let claimed = claim.epsilon.expect("a claim");
        assert!(findings.iter().any(|finding| finding.measured > 0.75 * claimed), "{findings:#?}");
    }
    for by in [1.2, honest.max_terms as f64] {
        assert!(refuted(&audit(4, &settings, &weaker(&honest, by))), "{by}");
    }
    let unbounded = Settings { max_degree: 1000, ..settings.clone() };
    assert!(refuted(&audit(16, &unbounded, &honest)));
}

/// Copies of the hub graph: everyone in U (40) is joined to everyone in W (4), and the canary is a hub joined to all of
/// U, with the edges back or without them.
fn hubs(copies: usize, edges_back: bool) -> World {
    let (n, d) = (40u32, 4u32);
    let size = n + d + 1;
    let (mut fixed, mut canaries) = (vec![], vec![]);
    for copy in 0..copies as u32 {
        let (hub, first) = (copy * size, copy * size + 1);
        let (us, ws) = (first..first + n, first + n..first + n + d);
        fixed.extend(us.clone().flat_map(|u| ws.clone().map(move |w| (u, w))));
        let mut edges: Vec<_> = us.clone().map(|u| (hub, u)).collect();
        let back = us.map(|u| (u, hub));
        if edges_back {
            edges.extend(back);
        } else {
            fixed.extend(back);
        }
        // The hub says the opposite of everyone else, so that its own message points to what is missing in W.
        canaries.push(Canary { edges, watched: ws.map(|w| (hub, w)).collect() });
    }
    let messages = (0..copies as u32 * size).map(|node| if node % size == 0 { -1.0 } else { 1.0 }).collect();
    // In W everyone hears 40 without the hub, 32 with it, in expectation; in the mean of four rows over sqrt 4, twice
    // that.
    let threshold = -0.5 * f64::from(n + n * d / (d + 1)) * f64::from(d).sqrt();
    World { width: 1, messages, fixed, canaries, records: false, threshold }
}

/// As good as fair.
fn coins(count: usize) -> Vec<bool> {
    (0..count as u64)
        .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).count_ones().is_multiple_of(2))
        .collect()
}

/// Two views at node level, with both tables.
fn addressed() -> (Settings, Plan) {
    let settings = Settings {
        max_degree: 9,
        delta: Some(1e-6),
        feature_learning: FeatureLearning::Table,
        ..Settings::of(MethodKind::ProgapViews, Level::Node)
    };
    (settings.clone(), plan(&settings))
}

/// Sums to weighed receivers, both tables: honest ones pass, and what is planted is found. An accusation of the honest
/// ones has probability at most 0.005.
#[test]
fn addressed_sums_and_tables_pass_and_planted_faults_are_found() {
    let (settings, honest) = addressed();
    let trials = mechanism::audit(&network(), &settings, &honest, Some(4000), || seeded(3)).expect("audited");
    // Two sums together, both of them, own rows, many receivers, and two tables.
    assert_eq!(trials.len(), 6);
    let findings = evaluate(&trials, CONFIDENCE).expect("findings");
    assert!(!refuted(&findings), "{findings:#?}");
    // Noise on sums that is a quarter too small; a sender that is not bounded.
    let weak = weaker(&honest, 1.25);
    let claimed = (settings.clone(), honest.clone());
    assert!(refuted(&audit_aggregates(&claimed, (&settings, &weak), 20_000, 6)));
    for kind in TableKind::ALL {
        let tables = Tables::new(20_000);
        let claim = kind.claim(&honest).expect("a claim").expect("it is asked for");
        let audit = |mechanism: &mut dyn FnMut(Dataset) -> progap::Result<Table>| {
            let coins = coins(20_000);
            let evidence = tables.experiment(coins, mechanism).expect("answers");
            refuted(
                &evaluate(&[Trial { what: "a table".into(), evidence, claim }], CONFIDENCE)
                    .expect("findings"),
            )
        };
        let ask = |data: Dataset, plan: &Plan| tables.ask(kind, data, (&settings, plan), seeded(7));
        assert!(!audit(&mut |data| ask(data, &honest)), "{kind:?}");
        // A quarter of the noise missing; next to none.
        for times in [0.75, 0.01] {
            let queries = honest.queries.map(|query| query.event.with_noise_times(times)).expect("queries");
            let weak = Plan { queries, ..honest.clone() };
            assert!(audit(&mut |data| ask(data, &weak)), "{kind:?} {times}");
        }
        // Rows that are longer than the norm to which they should have been cut.
        let mut unclipped = |data: Dataset| {
            let there: Vec<usize> = data.split().expect("a split").nodes(progap_graph::Part::Train).collect();
            let mut table = ask(data, &honest)?;
            for node in there {
                let row = tables.public_rows(&[node as u32]);
                let own = &mut table.values[node * table.width..];
                own.iter_mut().zip(row).for_each(|(value, more)| *value += more);
            }
            Ok(table)
        };
        assert!(audit(&mut unclipped), "{kind:?}");
    }
}

/// Both messages of an undirected edge share its influence: an honest mechanism passes, and two whole messages with the
/// noise for shared ones are found, as is noise that is a third too small. An accusation of the honest one has
/// probability at most 0.001.
#[test]
fn shared_edges_pass_and_two_whole_messages_are_found() {
    let whole = Settings {
        epsilon: Some(4.0),
        delta: Some(1e-6),
        undirected: true,
        known_weight: 1.0,
        ..Settings::of(MethodKind::ProgapViews, Level::Edge)
    };
    let shared = Settings { known_weight: 0.35, ..whole.clone() };
    let honest = plan(&shared);
    let trials = mechanism::audit(&network(), &shared, &honest, Some(4000), || seeded(3)).expect("audited");
    assert!(!refuted(&evaluate(&trials, CONFIDENCE).expect("findings")));
    let claimed = (shared.clone(), honest.clone());
    let both_whole = for_sensitivity(&honest, plan(&whole).sensitivity);
    assert!(refuted(&audit_aggregates(&claimed, (&whole, &both_whole), 20_000, 6)));
    assert!(refuted(&audit_aggregates(&claimed, (&shared, &weaker(&honest, 1.5)), 20_000, 6)));
}

/// Weights that are made of a private row: the record of a receiver then moves what all of its senders say.
#[test]
fn weights_made_of_private_rows_are_found() {
    let (settings, honest) = addressed();
    let (canaries, senders) = (2000usize, 9usize);
    // Each canary has senders of its own, who speak to it and to a node beside it.
    let group = senders + 2;
    let (mut sources, mut targets) = (vec![], vec![]);
    for first in (0..canaries * group).step_by(group) {
        for sender in first + 2..first + group {
            sources.extend([sender as u32; 2]);
            targets.extend([first as u32, first as u32 + 1]);
        }
    }
    let nodes = canaries * group;
    let graph = Graph::from_edges(nodes, &sources, &targets).expect("a graph");
    let claim = aggregation_claim(&Settings { depth: 1, ..settings.clone() }, &honest, sizes().edges)
        .expect("a claim");
    for (private, found) in [(false, false), (true, true)] {
        let coins = coins(canaries);
        let mut data = network().into_parts();
        data.graph = graph.clone();
        data.features = progap_graph::Features::dense(nodes, 1, vec![1.0; nodes]).expect("features");
        // A record that is out has another label.
        let label = |node: usize| u32::from(node.is_multiple_of(group) && !coins[node / group]);
        let labels: Vec<u32> = (0..nodes).map(label).collect();
        let weight = |node: usize| if private && labels[node] == 1 { 0.1 } else { 1.0 };
        let weights = ReceiverWeights::nearest((0..nodes).map(weight));
        data.labels = labels.into();
        data.numbers = vec![];
        data.feature_names = vec![];
        data.undeclared = vec![];
        data.node_ids = progap_graph::NodeIds::Position;
        data.split = Some(progap_graph::Split::from_parts((0..nodes).map(|_| progap_graph::Part::Train)));
        let data = Dataset::new(data).expect("data");
        let plan = Plan { noise_values: u64::MAX, ..honest.clone() };
        let mut vault = Vault::open(data, &settings, plan, seeded(8)).expect("a vault");
        let aggregates = &vec![Aggregate { values: vec![1.0; nodes].into(), width: 1 }];
        let (label, message) = ("aggregate 1".into(), Message::Input(1));
        let question = AddressedAggregation { label, message, aggregates, weights: &weights };
        let answer = vault.ask(question).expect("an aggregate");
        let scores: Vec<f64> = (0..canaries).map(|canary| f64::from(answer[canary * group * 2])).collect();
        let evidence =
            evidence::Evidence { scores, coins, threshold: 0.4 * senders as f64 * honest.sensitivity };
        let trial = Trial { what: "a receiver's record".into(), evidence, claim };
        let findings = evaluate(&[trial], CONFIDENCE).expect("findings");
        assert_eq!(refuted(&findings), found, "{private}: {findings:#?}");
    }
}
