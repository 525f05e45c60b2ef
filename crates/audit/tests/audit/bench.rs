//! The bench of the audit: unsound mechanisms as they are found in code, each of which the audit has to accuse, and
//! sound ones, of which it may accuse none. Each test of a sound one has a false-alarm rate of at most 0.001 with a
//! fresh seed, all of them together one of at most 0.02.

use progap_audit::Evidence;
use progap_audit::votes::{self, Voters};
use progap_graph::{DatasetParts, Part, Split};
use progap_privacy::noise::RoundedGaussian;

use super::training::{audit_training, quick};
use super::*;

/// A fault or a sound mechanism, and what the audit says of it.
type Case = (&'static str, fn() -> Vec<Finding>);

/// Sums of messages over the graph.
const SUMS: &[Case] = &[
    ("one of the sums has no noise", || own_sums(|sums| sums.noise[1] = 0.0)),
    ("noise for half of the sensitivity", || {
        own_sums(|sums| sums.noise.iter_mut().for_each(|sigma| *sigma *= 0.5))
    }),
    ("noise for one direction of a pair that is one record", || {
        let (settings, weak) = unit(0);
        audit_aggregates(&unit(1), (&settings, &weak), 4000, 105)
    }),
    ("two sums share their noise", || own_sums(|sums| sums.stream[1] = sums.stream[0])),
    ("messages twice as long as the noise is for", || own_sums(|sums| sums.length = 2.0)),
    ("rows without a sender get no noise", || own_sums(|sums| sums.empty_rows_have_noise = false)),
    ("noise that is cut off at one deviation", || own_sums(|sums| sums.cut = 1.0)),
    ("the mean of four answers, charged as one", || own_sums(|sums| sums.answers = 4)),
    ("messages of length 1, noise for a length of 1e-8", || {
        own_sums(|sums| sums.noise.iter_mut().for_each(|sigma| *sigma *= 1e-8))
    }),
    ("senders without a bound", || {
        let (settings, honest) = unit(2);
        let unbounded = Settings { level: Level::Edge, selection: Selection::LastEpoch, ..settings.clone() };
        let world = World::new(network().graph(), &settings, &honest, receivers(&settings)[1], Some(2000));
        let claim = aggregation_claim(&settings, &honest, sizes().edges).expect("a claim");
        let weak = with_events(&plan(&unbounded), |event| match event {
            Event::Gaussian { sensitivity, .. } => {
                let sigma = honest.aggregate_multiplier * honest.sensitivity;
                Event::Gaussian { sigma, sensitivity: *sensitivity }
            }
            other => other.clone(),
        });
        audit_world(&world, claim, 110, &mut |data| ask_vault(data, &unbounded, &weak, seeded(110)))
    }),
    ("a bound by sampling edges, claimed for a node with its edges", || hub_is_protected(true)),
    ("own rows among the senders", || {
        let (settings, honest) = unit(3);
        let add_own = |data: Dataset| {
            let own = data.features().to_dense(data.nodes());
            let mut answers = ask_vault(data, &settings, &honest, seeded(112))?;
            for (round, answer) in answers.iter_mut().enumerate() {
                for (node, row) in answer.chunks_exact_mut(settings.hidden).enumerate() {
                    // Four times what a record may say to all its receivers together.
                    let weight = 4.0 * honest.sensitivity as f32 * sign(node, round);
                    let own = &own[node * settings.hidden..][..settings.hidden];
                    row.iter_mut().zip(own).for_each(|(value, own)| *value += weight * own);
                }
            }
            Ok(answers)
        };
        audit_all(&settings, &honest, 4000, 112, &mut { add_own })
    }),
];

/// Sums of gradients over private rows.
const GRADIENTS: &[Case] = &[
    ("gradients with two thirds of the noise", || own_gradients(|gradients| gradients.noise /= 1.5)),
    ("gradients that are not clipped", || own_gradients(|gradients| gradients.clip = 1e300)),
    ("the mean of a batch is clipped, not each gradient", || {
        own_gradients(|gradients| gradients.clip_mean = true)
    }),
    ("gradients clipped to four times the norm", || own_gradients(|gradients| gradients.clip *= 4.0)),
    ("batches twice as large as is charged", || {
        own_gradients(|gradients| (gradients.claimed_rate, gradients.rate) = (0.05, 0.1))
    }),
    ("nodes with their senders, charged as single rows", || {
        let (settings, honest) = subgraphs();
        subgraph_gradients(4, &settings, &weaker(&honest, honest.max_terms as f64))
    }),
    ("nodes with their senders, more than are charged", || {
        let (settings, honest) = subgraphs();
        subgraph_gradients(16, &Settings { max_degree: 1000, ..settings }, &honest)
    }),
];

/// Noisy graphs and counts with pure guarantees.
const PURE: &[Case] = &[
    ("randomised response at twice the epsilon", || {
        let (settings, honest) = response(false);
        let weak = plan(&Settings { epsilon: settings.epsilon.map(|e| 2.0 * e), ..settings.clone() });
        audit_response(&settings, &honest, (&settings, &weak))
    }),
    ("both directions of a pair answered, charged as one", || {
        let (settings, honest) = response(true);
        let directed = Settings { undirected: false, ..settings.clone() };
        audit_response(&settings, &honest, (&directed, &honest))
    }),
    ("Laplace noise for half of the sensitivity", || {
        let weak = plan(&Settings { epsilon: Some(4.0), ..voting(false).0 });
        counted_votes(false, &mut |settings, _, data| votes::ask_vault(data, settings, &weak, seeded(121)))
    }),
    ("two counts share their noise", || {
        counted_votes(false, &mut |settings, honest, data| {
            let open = Settings::of(MethodKind::Lpgnet, Level::None);
            let exact = votes::ask_vault(data.clone(), &open, honest, seeded(122))?;
            let noisy = votes::ask_vault(data, settings, honest, seeded(122))?;
            let with_noise = |counts: &Vec<f32>| {
                let noise = noisy[0].iter().zip(&exact[0]).map(|(noisy, exact)| noisy - exact);
                counts.iter().zip(noise).map(|(count, noise)| count + noise).collect()
            };
            Ok(exact.iter().map(with_noise).collect())
        })
    }),
    ("Laplace noise of one dimension, scaled by one exponential for all of 64", scale_mixture),
];

/// Whole training runs.
const TRAINING: &[Case] = &[
    ("a budget of 1 claimed, 60 spent", || {
        let settings = Settings { epsilon: Some(60.0), delta: Some(1e-6), ..quick(Level::Edge) };
        let mut trial = audit_training(&settings, 1000).swap_remove(0);
        trial.claim = Claim { epsilon: Some(1.0), mu: None, ..trial.claim };
        evaluate(&[trial], CONFIDENCE).expect("findings")
    }),
    ("predictions that read the private rows of neighbours", || shown_to_others(true)),
];

const SOUND: &[Case] = &[
    ("sums, an edge", || honest_sums(0)),
    ("sums, an undirected edge", || honest_sums(1)),
    ("sums, a record by weights", || honest_sums(2)),
    ("sums, a record by a cap", || honest_sums(3)),
    ("sums, a record by a sample", || honest_sums(4)),
    ("sums of the bench's own", || own_sums(|_| ())),
    ("the same sampling, claimed for a record", || hub_is_protected(false)),
    ("gradients", || own_gradients(|_| ())),
    ("gradients of a Poisson sample", || {
        own_gradients(|gradients| (gradients.claimed_rate, gradients.rate) = (0.05, 0.05))
    }),
    ("gradients of nodes with their senders", || {
        let (settings, honest) = subgraphs();
        subgraph_gradients(4, &settings, &honest)
    }),
    ("randomised response, an edge", || {
        let (settings, honest) = response(false);
        audit_response(&settings, &honest, (&settings, &honest))
    }),
    ("randomised response, a pair", || {
        let (settings, honest) = response(true);
        audit_response(&settings, &honest, (&settings, &honest))
    }),
    ("votes, an edge", || {
        counted_votes(false, &mut |settings, honest, data| {
            votes::ask_vault(data, settings, honest, seeded(130))
        })
    }),
    ("votes, a pair", || {
        counted_votes(true, &mut |settings, honest, data| {
            votes::ask_vault(data, settings, honest, seeded(131))
        })
    }),
    ("predictions from released sums", || shown_to_others(false)),
];

#[test]
fn faults_in_sums_are_found() {
    assert_found(SUMS);
}

#[test]
fn faults_in_gradients_are_found() {
    assert_found(GRADIENTS);
}

#[test]
fn faults_in_pure_mechanisms_are_found() {
    assert_found(PURE);
}

#[test]
fn faults_in_training_are_found() {
    assert_found(TRAINING);
}

#[test]
fn sound_mechanisms_are_not_accused() {
    for (name, audited) in SOUND {
        let findings = audited();
        assert!(!findings.is_empty() && !refuted(&findings), "{name}: {findings:#?}");
    }
}

/// Twenty faults and more, ten sound mechanisms and more, each once.
#[test]
fn the_bench_is_as_large_as_it_says() {
    let faults: Vec<&str> =
        [SUMS, GRADIENTS, PURE, TRAINING].concat().into_iter().map(|(name, _)| name).collect();
    let names: std::collections::BTreeSet<&str> =
        faults.iter().copied().chain(SOUND.iter().map(|(name, _)| *name)).collect();
    assert!(faults.len() >= 20 && SOUND.len() >= 10, "{} {}", faults.len(), SOUND.len());
    assert_eq!(names.len(), faults.len() + SOUND.len());
}

#[track_caller]
fn assert_found(faults: &[Case]) {
    for (name, audited) in faults {
        let findings = audited();
        assert!(refuted(&findings), "{name}: {findings:#?}");
    }
}

/// Sums over the graph as somebody writes them who has no vault: what may go wrong with them.
struct OwnSums {
    /// The deviation of the noise of each sum.
    noise: Vec<f64>,
    /// From which stream each sum has its noise.
    stream: Vec<u64>,
    /// The length of a message.
    length: f32,
    empty_rows_have_noise: bool,
    /// Beyond how many deviations noise is drawn again.
    cut: f64,
    /// How many answers are averaged.
    answers: u64,
}

/// Claims what the plan of the unit `edge` pays for, and answers with sums that have a fault.
fn own_sums(fault: impl Fn(&mut OwnSums)) -> Vec<Finding> {
    let settings = Settings { depth: 3, hidden: 4, ..unit(0).0 };
    let honest = plan(&settings);
    let rounds = settings.depth;
    let mut sums = OwnSums {
        noise: vec![honest.aggregate_multiplier; rounds],
        stream: (0..rounds as u64).collect(),
        length: 1.0,
        empty_rows_have_noise: true,
        cut: f64::INFINITY,
        answers: 1,
    };
    fault(&mut sums);
    let mut answer = |data: Dataset| Ok((0..rounds).map(|round| sums.answer(&data, round)).collect());
    audit_all(&settings, &honest, 20_000, 101, &mut answer)
}

impl OwnSums {
    fn answer(&self, data: &Dataset, round: usize) -> Vec<f32> {
        let (messages, width) = (data.features().to_dense(data.nodes()), data.features().columns());
        let mut rows = vec![0f32; messages.len()];
        for (from, to) in data.graph().iter_edges() {
            let message = &messages[from as usize * width..][..width];
            let weight = self.length * sign(from as usize, round);
            let row = &mut rows[to as usize * width..][..width];
            row.iter_mut().zip(message).for_each(|(sum, value)| *sum += weight * value);
        }
        let label = format!("noise {}", self.stream[round]);
        let mut stream = Randomness::from_seed(102).purpose(&label).expect("bits").stream();
        let unit = RoundedGaussian::new(UNIT).expect("noise");
        let mut draw = || loop {
            let value = unit.sample(&mut stream) as f64 / UNIT;
            if value.abs() <= self.cut {
                return value;
            }
        };
        for row in rows.chunks_exact_mut(width) {
            if !self.empty_rows_have_noise && row.iter().all(|&value| value == 0.0) {
                continue;
            }
            for value in row {
                let noise = (0..self.answers).map(|_| draw()).sum::<f64>() / self.answers as f64;
                *value += (self.noise[round] * noise) as f32;
            }
        }
        rows
    }
}

/// What stands for a deviation of one.
const UNIT: f64 = 256.0;

/// Sums of clipped gradients as somebody writes them who has no vault.
struct OwnGradients {
    noise: f64,
    clip: f64,
    /// Whether the sum is clipped as a whole, in place of every gradient.
    clip_mean: bool,
    /// The rate at which batches are drawn, and the one that is charged.
    rate: f64,
    claimed_rate: f64,
}

/// Claims one sum of gradients of norm 1 with noise of deviation 1, from a batch at the claimed rate.
fn own_gradients(fault: impl Fn(&mut OwnGradients)) -> Vec<Finding> {
    let settings = Settings { clip: 1.0, ..unit(2).0 };
    let mut own = OwnGradients { noise: 1.0, clip: 1.0, clip_mean: false, rate: 1.0, claimed_rate: 1.0 };
    fault(&mut own);
    // With little noise it is seen who is in the batch: at a delta just below that share, a larger share is found.
    let noise = if own.claimed_rate < 1.0 { 0.25 } else { 1.0 };
    let event = Event::gaussian(noise, 1.0).expect("an event");
    let claim = match own.claimed_rate {
        1.0 => Claim::of(&event, 1e-5).expect("a claim"),
        rate => Claim {
            independent: true,
            ..Claim::of(&event.poisson_sampled(rate).expect("an event"), 0.9 * rate).expect("a claim")
        },
    };
    let gradients = Gradients::new(&settings, 20_000).expect("canaries");
    let mut answer = |data: Dataset| {
        let mut stream = Randomness::from_seed(113).purpose("noise and batch").expect("bits").stream();
        let mut joins = || (stream.next_u32() as f64) < own.rate * 2f64.powi(32);
        let mut parts = data.into_parts();
        let split = parts.split.take().expect("a split");
        let batch = (0..parts.labels.len()).map(|node| match split.part(node) {
            Part::Train if joins() => Part::Train,
            _ => Part::Unused,
        });
        let data = Dataset::new(DatasetParts { split: Some(Split::from_parts(batch)), ..parts })?;
        let mut sum = gradients.exact(&data, if own.clip_mean { 1e300 } else { own.clip })?;
        if own.clip_mean {
            let (norm, batch) = (sum.iter().map(|v| v * v).sum::<f64>().sqrt(), data.nodes() as f64);
            sum.iter_mut().for_each(|value| *value *= (own.clip * batch / norm).min(1.0));
        }
        let unit = RoundedGaussian::new(UNIT).expect("noise");
        Ok(sum
            .into_iter()
            .map(|value| (value + own.noise * noise * unit.sample(&mut stream) as f64 / UNIT) as f32)
            .collect())
    };
    let evidence = gradients.experiment(&settings, &mut seeded(114), &mut answer).expect("answers");
    evaluate(&[Trial { what: "own gradients".into(), evidence, claim }], CONFIDENCE).expect("findings")
}

/// Copies of the graph on which sampling edges bounds no node.
fn hub_is_protected(with_its_edges: bool) -> Vec<Finding> {
    let settings = Settings { max_degree: 4, depth: 1, ..unit(4).0 };
    let honest = plan(&settings);
    let claim = aggregation_claim(&settings, &honest, sizes().edges).expect("a claim");
    let mut sampled = |data| ask_vault(data, &settings, &honest, seeded(111));
    audit_world(&hubs(200, with_its_edges), claim, 111, &mut sampled)
}

fn honest_sums(number: usize) -> Vec<Finding> {
    let (settings, honest) = unit(number);
    let mut vault = |data| ask_vault(data, &settings, &honest, seeded(132));
    audit_all(&settings, &honest, 4000, 132, &mut vault)
}

fn subgraphs() -> (Settings, Plan) {
    let usual = Settings::of(MethodKind::DpGnn, Level::Node);
    let settings = Settings { batch_size: 500, max_degree: 4, epsilon: Some(30.0), ..usual };
    (settings.clone(), plan(&settings))
}

/// Claims what is charged for nodes with up to four receivers.
fn subgraph_gradients(receivers: usize, used: &Settings, noise: &Plan) -> Vec<Finding> {
    let claim = subgraph_claim(&subgraphs().1).expect("a claim");
    let subgraphs = Subgraphs::new(6000, receivers).expect("canaries");
    let mut ask = |data| subgraphs.ask(data, used, noise, seeded(116));
    let evidence = subgraphs.experiment(&mut seeded(116), &mut ask).expect("answers");
    evaluate(&[Trial { what: "records".into(), evidence, claim }], CONFIDENCE).expect("findings")
}

fn response(undirected: bool) -> (Settings, Plan) {
    let settings = Settings { undirected, ..Settings::of(MethodKind::EdgeRand, Level::Edge) };
    (settings.clone(), plan(&settings))
}

fn voting(undirected: bool) -> (Settings, Plan) {
    let settings = Settings::of(MethodKind::Lpgnet, Level::Edge);
    let settings = Settings { undirected, epsilon: Some(2.0), ..settings };
    (settings.clone(), plan(&settings))
}

/// Counts of votes for the settings, by their plan, of a data set.
type Counter<'c> = &'c mut dyn FnMut(&Settings, &Plan, Dataset) -> progap::Result<Vec<Vec<f32>>>;

fn counted_votes(undirected: bool, count: Counter<'_>) -> Vec<Finding> {
    let (settings, honest) = voting(undirected);
    let voters = Voters::new(&settings, 20_000);
    let mut counts = |data| count(&settings, &honest, data);
    let counted = voters.experiment(&mut seeded(123), &mut counts).expect("answers");
    evaluate(&counted.trials(&settings, &honest, sizes().edges), CONFIDENCE).expect("findings")
}

/// Noise `sqrt(E) N(0, (sigma C)^2)` with one exponential `E` for all coordinates, charged by the moments of Laplace
/// noise in one dimension (docs/audit.md#two-published-faults). One coordinate moves by 1; the others tell `E`, and
/// where it is small there is little noise.
fn scale_mixture() -> Vec<Finding> {
    let (sigma, dimensions, canaries) = (5.0f64, 64, 40_000);
    let claim = Claim::pure(2f64.sqrt() / sigma);
    let mut stream = Randomness::from_seed(124).purpose("mixture").expect("bits").stream();
    let unit = RoundedGaussian::new(UNIT).expect("noise");
    let (mut coins, mut scores) = (vec![], vec![]);
    for _ in 0..canaries {
        let uniform = (f64::from(stream.next_u32()) + 0.5) * 2f64.powi(-32);
        let deviation = sigma * (-uniform.ln()).sqrt();
        let mut draw = || deviation * unit.sample(&mut stream) as f64 / UNIT;
        let others: f64 = (1..dimensions).map(|_| draw().powi(2)).sum();
        let noise = draw();
        let coin = stream.next_u32() & 1 == 1;
        // The logarithm of the likelihood ratio, with the variance that the other coordinates show.
        let variance = others / (dimensions - 1) as f64;
        scores.push((noise + f64::from(u8::from(coin)) - 0.5) / variance);
        coins.push(coin);
    }
    let evidence = Evidence { coins, scores, threshold: 1.5 };
    evaluate(&[Trial { what: "a mixture of scales".into(), evidence, claim }], CONFIDENCE).expect("findings")
}

/// What all others see of a record, in predictions that read the rows of senders or do not.
fn shown_to_others(raw: bool) -> Vec<Finding> {
    let settings = Settings { epsilon: Some(1.0), max_degree: 9, ..quick(Level::Node) };
    let dataset = network();
    let auditor = Auditor { dataset: &dataset, settings: &settings, canaries: Some(2000) };
    let predict = |release: &Release, nodes: &[u32]| {
        let own = release.predict_nodes(nodes)?.probabilities;
        if !raw {
            return Ok(own);
        }
        // Canaries are numbered in twos, the record before its receiver.
        let senders: Vec<u32> = nodes.iter().map(|node| node - 1).collect();
        let sent = release.predict_nodes(&senders)?.probabilities;
        Ok(own.iter().zip(&sent).map(|(a, b)| 0.5 * (a + b)).collect())
    };
    let trials = auditor.training_by(&predict, &mut ()).expect("audited");
    evaluate(&trials, CONFIDENCE).expect("findings")
}
