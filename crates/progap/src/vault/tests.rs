//! How far an edge or a record moves what leaves the vault, and what has no part in it.

use std::ops::Range;

use progap_graph::synth::SocialNetwork;
use progap_graph::{Buffer, Graph, Part, Ratios};
use progap_nn::Architecture;
use progap_privacy::noise::choose_scale;

use super::*;
use crate::plan::{PublicFacts, influence};
use crate::settings::{Bounding, MethodKind};

pub(super) const SIZES: PublicFacts = PublicFacts {
    edges: 6000,
    train_nodes: 225,
    nodes: 300,
    columns: 500,
    classes: 3,
    ..PublicFacts::EXAMPLE
};

pub(super) fn data() -> Dataset {
    let dataset = SocialNetwork::new(300).edges(6000).classes(3).seed(5).generate().expect("a network");
    dataset.or_random_split(Ratios::default(), 5).expect("a split")
}

/// One aggregation with noise that depends on the seed alone: what differs between two of them are the messages.
pub(super) fn aggregate(
    dataset: Dataset,
    settings: &Settings,
    message: impl Fn(&Network) -> Message<'_>,
) -> Vec<f32> {
    let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
    let inputs = vec![dataset.features().columns()];
    let network = Network::new(Architecture::new(inputs, dataset.classes()), 1).expect("a network");
    let mut vault = Vault::open(dataset, settings, plan, Randomness::from_seed(3)).expect("a vault");
    vault.ask(asking("query", message(&network))).expect("an aggregate")
}

/// A question about messages of networks alone.
pub(super) fn asking<'a>(label: &str, message: Message<'a>) -> Aggregation<'a> {
    static NONE: Aggregates = Aggregates::new();
    Aggregation { label: label.into(), message, aggregates: &NONE }
}

pub(super) fn all_messages() -> [fn(&Network) -> Message<'_>; 2] {
    [|network| Message::Embedding { network, branch: 0 }, |network| Message::Class { network }]
}

pub(super) fn distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn no_more_noise_is_drawn_than_the_plan_pays_for() {
    let settings = Settings { batch_size: 50, ..Settings::of(crate::MethodKind::ProgapLabels, Level::Edge) };
    let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
    let plan = Plan { noise_values: 300 * 3, ..plan };
    let network =
        Network::new(Architecture::new(vec![data().features().columns()], 3), 1).expect("a network");
    let mut vault = Vault::open(data(), &settings, plan, Randomness::from_seed(3)).expect("a vault");
    let mut ask = |label| vault.ask(asking(label, Message::Class { network: &network }));
    ask("first").expect("paid for");
    ask("second").expect_err("not paid for");
    assert_eq!((vault.drawn(), vault.asked().count(AGGREGATION)), (300 * 3, 1));
}

/// A question that would say what its noise is, or fail if it were evaluated.
struct Watched<'w>(Query, &'w std::cell::Cell<u32>);

impl VaultQuery for Watched<'_> {
    type Answer = Event;

    fn spec(&self, _: &Private) -> Result<Asked> {
        Ok(Asked::new(self.0.clone(), 10))
    }

    fn evaluate(self, _: &Private, noise: &mut Noise) -> Result<Event> {
        self.1.set(self.1.get() + 1);
        Ok(noise.event().clone())
    }
}

/// The list of the plan is used up by questions, answers kept before an interruption among them; what is not on it, is
/// asked once more or differs in anything but its noise never reaches a mechanism, and draws nothing.
#[test]
fn what_is_not_on_the_plan_is_refused_before_noise_is_drawn() {
    let settings = Settings { depth: 2, ..Settings::of(MethodKind::ProgapLabels, Level::Edge) };
    let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
    let open = || Vault::open(data(), &settings, plan.clone(), Randomness::from_seed(3)).expect("a vault");
    let planned = plan.queries.get(AGGREGATION).expect("a query").clone();
    let of = |sensitivity: f64| Event::gaussian(1.0, sensitivity).expect("an event");
    let right = aggregation(of(1.0));
    let evaluated = std::cell::Cell::new(0);
    let ask = |vault: &mut Vault, query: &Query| vault.ask(Watched(query.clone(), &evaluated));
    let refuse = |vault: &mut Vault, query: &Query| {
        let before = (evaluated.get(), vault.drawn(), vault.asked().clone());
        assert!(ask(vault, query).is_err(), "{query:?}");
        assert_eq!((evaluated.get(), vault.drawn(), vault.asked().clone()), before, "{query:?}");
    };
    let mut vault = open();
    for wrong in [
        Query::new("another name", "something", of(1.0)),
        aggregation(of(1.5)),
        aggregation(of(1.0).poisson_sampled(0.5).expect("an event")),
        aggregation(Event::laplace(1.0, 1.0).expect("an event")),
        aggregation(Event::NonPrivate),
    ] {
        refuse(&mut vault, &wrong);
    }
    assert_eq!(ask(&mut vault, &right).expect("an answer"), planned.event, "with the noise of the plan");
    ask(&mut vault, &right).expect("the second of two");
    refuse(&mut vault, &right);
    // What was kept is counted as if it were asked, and once.
    let kept = Watched(right.clone(), &evaluated);
    let mut resumed = open();
    resumed.replay(&kept).expect("kept, and not recorded before the interruption");
    ask(&mut resumed, &right).expect("the second of two");
    refuse(&mut resumed, &right);
    assert_eq!(resumed.asked().count(AGGREGATION), 2);
    let mut resumed = open();
    resumed.resume(vault.asked().clone()).expect("what the plan pays for");
    resumed.replay(&kept).expect("recorded before");
    resumed.replay(&kept).expect("recorded before");
    assert_eq!(resumed.asked().count(AGGREGATION), 2);
    refuse(&mut resumed, &right);
    resumed.replay(&kept).expect_err("a third");
    let more = Queries::from_iter([(planned.clone(), 3)]);
    open().resume(more).expect_err("more than the plan pays for");
    let louder = Query { event: planned.event.with_noise_times(0.9).expect("an event"), ..planned };
    open().resume(Queries::from_iter([(louder, 1)])).expect_err("with less noise");
}

#[test]
fn an_edge_moves_one_row_by_one_at_most() {
    let settings = Settings { batch_size: 50, ..Settings::of(crate::MethodKind::ProgapLabels, Level::Edge) };
    for message in all_messages() {
        let mut parts = data().into_parts();
        let receiver = (0..300).find(|&node| parts.graph.in_degree(node) > 3).expect("a receiver");
        let dropped = parts.graph.in_neighbours(receiver)[1];
        let (mut sources, mut targets) = (vec![], vec![]);
        for node in 0..300 {
            for &sender in parts.graph.in_neighbours(node) {
                if (node, sender) != (receiver, dropped) {
                    sources.push(sender);
                    targets.push(node as u32);
                }
            }
        }
        parts.graph = Graph::from_edges(300, &sources, &targets).expect("a graph");
        let without = aggregate(Dataset::new(parts).expect("a data set"), &settings, message);
        let with = aggregate(data(), &settings, message);
        let width = with.len() / 300;
        let own = receiver * width..(receiver + 1) * width;
        let moved = distance(&with[own.clone()], &without[own]);
        assert!(moved > 0.9 && moved <= 1.0 + 1e-6, "a whole message and no more: {moved}");
        assert!((distance(&with, &without) - moved).abs() < 1e-6, "no other row moves");
    }
}

fn without_sender(sender: u32) -> Dataset {
    let mut parts = data().into_parts();
    let (mut sources, mut targets) = (vec![], vec![]);
    for node in 0..300 {
        for &other in parts.graph.in_neighbours(node).iter().filter(|&&other| other != sender) {
            sources.push(other);
            targets.push(node as u32);
        }
    }
    parts.graph = Graph::from_edges(300, &sources, &targets).expect("a graph");
    Dataset::new(parts).expect("a data set")
}

#[test]
fn a_record_moves_an_aggregate_by_its_bound_at_most() {
    // With sampling no sender has more edges than are kept, so that the samples are the same with and without.
    for (bounding, max_degree) in [(Bounding::Weight, 9), (Bounding::Cap, 9), (Bounding::Sample, 299)] {
        let settings = Settings {
            batch_size: 50,
            max_degree,
            bounding,
            ..Settings::of(crate::MethodKind::ProgapLabels, Level::Node)
        };
        for message in all_messages() {
            let without = aggregate(without_sender(7), &settings, message);
            let moved = distance(&aggregate(data(), &settings, message), &without);
            let bound = f64::from(max_degree).sqrt();
            assert!(moved > 1.0 && moved <= bound + 1e-5, "{bounding:?}: {moved}");
        }
    }
}

/// Values are multiples of one over the scale, which must not tell which degrees there are.
#[test]
fn the_scale_does_not_depend_on_degrees() {
    let settings = Settings { batch_size: 50, ..Settings::of(crate::MethodKind::ProgapLabels, Level::Node) };
    let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
    let noise = plan.aggregate_multiplier * plan.sensitivity;
    let scale = choose_scale(noise, influence(&settings)).expect("a scale").1 as f32;
    let are_multiples = |data: Dataset| {
        let values = aggregate(data, &settings, all_messages()[1]);
        values.iter().map(|value| value * scale).all(|steps| (steps - steps.round()).abs() < 0.01)
    };
    let everyone = {
        let mut parts = data().into_parts();
        let pairs = (0..300u32).flat_map(|a| (0..300u32).filter(move |&b| a != b).map(move |b| (a, b)));
        let (sources, targets): (Vec<u32>, Vec<u32>) = pairs.unzip();
        parts.graph = Graph::from_edges(300, &sources, &targets).expect("a graph");
        Dataset::new(parts).expect("a data set")
    };
    assert!(are_multiples(data()) && are_multiples(everyone));
}

#[test]
fn labels_of_validation_and_test_nodes_are_not_used() {
    let settings = Settings { batch_size: 50, ..Settings::of(crate::MethodKind::ProgapLabels, Level::Edge) };
    let change = |part: Part| {
        let mut parts = data().into_parts();
        let split = parts.split.clone().expect("a split");
        let relabel = |node: usize| {
            let label = parts.labels[node];
            if split.part(node) == part { (label + 1) % 3 } else { label }
        };
        parts.labels = Buffer::from((0..300).map(relabel).collect::<Vec<u32>>());
        aggregate(Dataset::new(parts).expect("a data set"), &settings, all_messages()[1])
    };
    let original = aggregate(data(), &settings, all_messages()[1]);
    assert_eq!(change(Part::Val), original);
    assert_eq!(change(Part::Test), original);
    assert_ne!(change(Part::Train), original);
}

/// The counts of votes, where everyone votes for a class by its number.
fn votes(dataset: Dataset, settings: &Settings, plan: &Plan) -> Vec<f32> {
    let cast: Vec<u32> = (0..dataset.nodes() as u32).map(|node| node % 3).collect();
    let mut vault = Vault::open(dataset, settings, plan.clone(), Randomness::from_seed(3)).expect("a vault");
    let mut ask = |label: &str, votes: &[u32]| vault.ask(Votes { label: label.into(), votes });
    let counted = ask("votes 1", &cast).expect("counts");
    assert!(ask("votes 1", &cast).is_err() || settings.level == Level::None, "noise is used once");
    assert!(ask("votes 2", &[0; 5]).is_err() && ask("votes 3", &[3; 300]).is_err());
    counted
}

#[test]
fn an_edge_moves_one_count_by_one() {
    let settings = Settings::of(MethodKind::Lpgnet, Level::None);
    let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
    let with = votes(data(), &settings, &plan);
    let graph = data().into_parts().graph;
    for node in 0..300 {
        let heard = |class| graph.in_neighbours(node).iter().filter(|&&sender| sender % 3 == class).count();
        let expected: Vec<f32> = (0..3).map(|class| heard(class) as f32).collect();
        assert_eq!(with[3 * node..3 * node + 3], expected, "{node}");
    }
}

/// The recorded event is that of the unit, its scale is the one that is drawn, and all counts together cost what is
/// stated.
#[test]
fn votes_are_recorded_with_the_noise_that_is_drawn() {
    for (undirected, sensitivity) in [(false, 1.0), (true, 2.0)] {
        let settings = Settings { undirected, ..Settings::of(MethodKind::Lpgnet, Level::Edge) };
        let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
        let exact = Settings::of(MethodKind::Lpgnet, Level::None);
        let noisy = votes(data(), &settings, &plan);
        let exact =
            votes(data(), &exact, &Plan::new(&exact.checked().expect("settings"), SIZES).expect("a plan"));
        let spread =
            noisy.iter().zip(&exact).map(|(noisy, exact)| f64::from((noisy - exact).abs())).sum::<f64>();
        let Some(Event::Laplace { scale, sensitivity: charged }) =
            plan.queries.get("votes").map(|q| q.event.clone())
        else {
            panic!("{plan:?}")
        };
        assert_eq!((charged, plan.delta, plan.queries.count("votes")), (sensitivity, 0.0, 2));
        assert!(2.0 * sensitivity / scale <= 1.0 && 2.0 * sensitivity / scale > 0.9999, "{scale}");
        // The mean of 900 magnitudes, each with a standard deviation of about the scale: six standard errors.
        assert!((spread / 900.0 / scale - 1.0).abs() < 0.2, "{spread} {scale}");
    }
}

/// A maker of messages that are there.
pub(super) fn of(values: &[f32], width: usize) -> impl Fn(Range<usize>) -> Result<Vec<f32>> {
    move |nodes| Ok(values[nodes.start * width..nodes.end * width].to_vec())
}

/// A message that a method made keeps its length, and is never longer than one; at node level, where it could be made
/// of private rows, it is not sent at all.
#[test]
fn what_a_method_made_is_no_longer_than_one_and_never_sent_at_node_level() {
    let made = |level: Level, length: f32| {
        let settings = Settings { batch_size: 50, ..Settings::of(crate::MethodKind::ProgapLabels, level) };
        let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
        let mut vault = Vault::open(data(), &settings, plan, Randomness::from_seed(3)).expect("a vault");
        let values: Vec<f32> = (0..300).flat_map(|_| [0.6 * length, 0.0, 0.8 * length]).collect();
        let make = of(&values, 3);
        vault.ask(asking("first", Message::Made { maker: Maker(&make), width: 3, back: false }))
    };
    let graph = data().into_parts().graph;
    let degrees: Vec<usize> = (0..300).map(|node| graph.in_degree(node)).collect();
    for (length, sent) in [(0.5, 0.5), (1.0, 1.0), (30.0, 1.0)] {
        let sums = made(Level::None, length).expect("sums");
        for (row, &degree) in sums.chunks_exact(3).zip(&degrees) {
            let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt();
            assert!((norm - sent * degree as f32).abs() < 1e-3 * (1.0 + degree as f32), "{norm} {degree}");
        }
    }
    assert_ne!(
        made(Level::Edge, 1.0).expect("sums"),
        made(Level::None, 1.0).expect("sums"),
        "noise is added"
    );
    assert!(made(Level::Node, 1.0).expect_err("private rows").to_string().contains("private"));
    let settings = Settings { batch_size: 50, ..Settings::of(crate::MethodKind::ProgapLabels, Level::Edge) };
    let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
    let mut vault = Vault::open(data(), &settings, plan, Randomness::from_seed(3)).expect("a vault");
    let make = |nodes: Range<usize>| Ok(vec![1.0; 3 * nodes.len() - 1]);
    let short = Message::Made { maker: Maker(&make), width: 3, back: false };
    assert!(vault.ask(asking("first", short)).is_err(), "one message for each node");
}

/// Messages are computed block by block: whatever the blocks, they are the same to the last bit.
#[test]
fn messages_do_not_depend_on_the_block_that_computes_them() {
    let dataset = data();
    let network =
        Network::new(Architecture::new(vec![dataset.features().columns()], 3), 1).expect("a network");
    let vault =
        Vault::open(dataset, &Settings::new(Level::Edge), Plan::without_noise(), Randomness::from_seed(3));
    let vault = vault.expect("a vault");
    let encoded = vault.rows.encoded(&network, crate::scratch::Scratch::held(0)).expect("encoded rows");
    let made: Vec<f32> = (0..600).map(|value| (value as f32).sin()).collect();
    let make = of(&made, 2);
    let cases = [
        (&vault.rows, Message::Class { network: &network }),
        (&vault.rows, Message::Embedding { network: &network, branch: 0 }),
        (&vault.rows, Message::Made { maker: Maker(&make), width: 2, back: false }),
        (&encoded, Message::Input(0)),
    ];
    for (rows, message) in cases {
        let whole = rows.messages(message, &vec![]).expect("messages");
        for size in [1, 7, 64, 299] {
            let blocks = (0..300).step_by(size).map(|first| first..(first + size).min(300));
            let parts: Vec<Vec<f32>> =
                blocks.map(|block| rows.messages_of(block, message, &vec![]).expect("messages")).collect();
            assert!(parts.concat() == whole, "{size} {message:?}");
        }
    }
}

/// Sums that are computed block by block, twice, are those that are computed at once, noise included: for messages of
/// several panels and receivers of several blocks, at every level, under a key as under a seed.
#[test]
fn streamed_sums_have_the_same_bits() {
    let network = SocialNetwork::new(70_000).edges(300_000).classes(70).feature_count(20).seed(5);
    let dataset =
        network.generate().expect("a network").or_random_split(Ratios::default(), 5).expect("a split");
    let sizes = PublicFacts::of(&dataset, &Settings::of(MethodKind::Progap, Level::Edge));
    let network = Network::new(Architecture::new(vec![sizes.columns], 70), 1).expect("a network");
    let message = Message::Class { network: &network };
    for level in [Level::None, Level::Edge, Level::Node] {
        let settings = Settings::of(MethodKind::ProgapLabels, level);
        let plan = Plan::new(&settings.checked().expect("settings"), sizes).expect("a plan");
        for seeded in [true, false] {
            let vault = || {
                let randomness = match seeded {
                    true => Randomness::from_seed(3).erase(),
                    false => Randomness::from_key(RunKey::from_bytes(&[9; RunKey::BYTES])).erase(),
                };
                Vault::open(dataset.clone(), &settings, plan.clone(), randomness).expect("a vault")
            };
            let (mut held, mut streamed) = (vault(), vault());
            let at_once = held.ask(asking("sums", message)).expect("sums");
            let (mut rows, mut blocks) = (vec![], 0);
            let mut take = |block: &mut [f32]| {
                rows.extend_from_slice(block);
                blocks += 1;
                Ok(())
            };
            let question = asking("sums", message);
            streamed.ask(Streamed { question, take: &mut take }).expect("sums");
            assert!(blocks > 1 && rows == at_once, "{level:?} {seeded}");
            assert_eq!(held.asked(), streamed.asked(), "the same query is recorded");
            let again = Streamed { question: asking("sums", message), take: &mut |_: &mut [f32]| Ok(()) };
            assert!(level == Level::None || streamed.ask(again).is_err(), "noise would be used twice");
        }
    }
}

/// The sink of the sums may fail, as a full disk does: that is the error, and the query is not recorded as answered.
#[test]
fn a_failure_to_take_sums_ends_the_query() {
    let settings = Settings { batch_size: 50, ..Settings::of(MethodKind::ProgapLabels, Level::Edge) };
    let plan = Plan::new(&settings.checked().expect("settings"), SIZES).expect("a plan");
    let mut vault = Vault::open(data(), &settings, plan, Randomness::from_seed(3)).expect("a vault");
    let make = |nodes: Range<usize>| Ok(vec![0.1; 3 * nodes.len()]);
    let message = Message::Made { maker: Maker(&make), width: 3, back: false };
    let mut full = |_: &mut [f32]| Err(Error::unsuitable("the disk is full"));
    let failed = vault.ask(Streamed { question: asking("first", message), take: &mut full });
    assert!(failed.expect_err("a full disk").to_string().contains("full"));
    assert_eq!(vault.asked().count("aggregation"), 0);
}
