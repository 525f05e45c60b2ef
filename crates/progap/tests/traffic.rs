//! The bytes of every rank are those of the formulas.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::ops::Range;

use progap::ranks::{Moment, Ranks, Sent, on_threads};
use progap::run::Ranked;
use progap::settings::{Request, Settings};
use progap_graph::synth::SocialNetwork;
use progap_graph::{Dataset, Features, NumberColumn, Part, Preparation, Ratios};
use progap_nn::{chunk_rows, sample_chunk_rows};
use progap_privacy::noise::{PoissonSample, Randomness};

const NODES: usize = 14_000;
const COLUMNS: usize = 40;
const CLASSES: usize = 3;

/// A network whose rows have one to four entries, with values.
fn data() -> Dataset {
    let made =
        SocialNetwork::new(NODES).edges(6 * NODES).classes(CLASSES).seed(4).generate().expect("a network");
    let mut parts = made.with_random_split(Ratios::default(), 1).expect("a split").into_parts();
    let (mut offsets, mut indices) = (vec![0u64], vec![]);
    for node in 0..NODES {
        indices.extend((0..=(node * 7 % 4) as u32).map(|k| 10 * k + node as u32 * (k + 1) % 10));
        offsets.push(indices.len() as u64);
    }
    let values = vec![0.5f32; indices.len()];
    parts.features =
        Features::sparse(NODES, COLUMNS, offsets, indices, Some(values.into())).expect("features");
    (parts.feature_names, parts.numbers) = (vec![], vec![]);
    Dataset::new(parts).expect("a data set")
}

fn run(data: &Dataset, request: &Request, ranks: usize) -> Ranked {
    let place = tempfile::tempdir().expect("a folder");
    let outcomes = on_threads(ranks, |ranks: Ranks| {
        progap::train(data, request.clone()).over(&ranks, place.path().join("release")).expect("a release")
    });
    outcomes.into_iter().flatten().next().expect("the first rank knows")
}

/// The run that the formulas speak of.
struct Formula<'d> {
    data: &'d Dataset,
    settings: Settings,
    borders: Vec<usize>,
    ranks: usize,
    /// Training nodes.
    train: Vec<u32>,
}

/// `hidden` values and `classes` as sums store them.
fn wide(hidden: usize) -> usize {
    hidden.next_multiple_of(16)
}
fn narrow(classes: usize) -> usize {
    if classes <= 8 { 8 } else { classes.next_multiple_of(16) }
}

impl<'d> Formula<'d> {
    fn new(data: &'d Dataset, settings: &Settings, ranks: usize) -> Self {
        let split = data.split().expect("a split");
        Formula {
            data,
            settings: settings.clone(),
            borders: progap_graph::part::borders(data.graph(), split, ranks, None),
            ranks,
            train: split.nodes(Part::Train).map(|node| node as u32).collect(),
        }
    }

    fn own(&self, rank: usize) -> Range<usize> {
        self.borders[rank]..self.borders[rank + 1]
    }

    fn count(&self, rank: usize, part: Part) -> usize {
        let split = self.data.split().expect("a split");
        self.own(rank).filter(|&node| split.part(node) == part).count()
    }

    fn stages(&self) -> usize {
        self.settings.depth + 1
    }

    fn others(&self) -> usize {
        self.ranks - 1
    }

    /// For each rank, the pairs of a node of its own and another rank that has a receiver of it.
    fn served(&self) -> Vec<usize> {
        let rank_of = |node: u32| self.borders.partition_point(|&border| border <= node as usize) - 1;
        let mut pairs = BTreeSet::new();
        for (source, target) in self.data.graph().iter_edges() {
            pairs.insert((source, rank_of(target)));
        }
        let mut served = vec![0; self.ranks];
        for (source, to) in pairs {
            served[rank_of(source)] += usize::from(rank_of(source) != to);
        }
        served
    }

    /// Digests of whole blocks of 2^14 sums, and the sums of those that lie in several ranks.
    fn noise(&self, rank: usize) -> usize {
        let (own, all) = (self.own(rank), NODES * CLASSES);
        let (own, mut whole, mut parts, mut values) = (own.start * CLASSES..own.end * CLASSES, 0, 0, 0);
        for start in (0..all).step_by(1 << 14) {
            let block = start..all.min(start + (1 << 14));
            let mine = block.start.max(own.start)..block.end.min(own.end);
            if mine == block {
                whole += 1;
            } else if !mine.is_empty() {
                (parts, values) = (parts + 1, values + mine.len());
            }
        }
        self.settings.depth * self.others() * (16 + 32 * whole + 16 * parts + 8 * values)
    }

    /// The bytes of a row in a stage: its label, its entries, the aggregates.
    fn row(&self, node: u32, stage: usize) -> usize {
        4 * (1 + (1 + 2 * self.data.features().entries(node as usize)) + stage * CLASSES)
    }

    /// The rows that another rank works on; `batch` is in the order in which it is cut, and `works` says who works on
    /// the row at a place.
    fn rows(&self, rank: usize, stage: usize, batch: &[u32], works: impl Fn(usize) -> usize) -> usize {
        let sent =
            |&(at, &node): &(usize, &u32)| self.own(rank).contains(&(node as usize)) && works(at) != rank;
        batch.iter().enumerate().filter(sent).map(|(_, &node)| self.row(node, stage)).sum()
    }

    /// The bytes that every epoch sends to learn how good it is, and every stage, and the end.
    fn accuracies(&self) -> usize {
        8 * self.others() * (self.stages() * (self.settings.epochs + 1) + 3)
    }
}

fn sent(ranked: &Ranked, rank: usize) -> BTreeMap<&'static str, usize> {
    ranked.sent[rank].kinds().into_iter().map(|(what, bytes)| (what.name(), bytes as usize)).collect()
}

fn compare(formula: &Formula<'_>, ranked: &Ranked, expected: impl Fn(usize) -> [(Sent, usize); 2]) {
    let served = formula.served();
    let width = CLASSES;
    // The size of each value of a message follows from the noise: one byte or two.
    let bytes = sent(ranked, 0)["messages"] / (served[0] * width * formula.settings.depth);
    assert!([1, 2].contains(&bytes), "{bytes} bytes");
    for rank in 0..formula.ranks {
        let found = sent(ranked, rank);
        let own = formula.own(rank);
        let kept = if rank == 0 { 0 } else { 4 * width * own.len() * formula.settings.depth };
        let mut all = vec![
            (Sent::Messages, served[rank] * width * bytes * formula.settings.depth),
            (Sent::Noise, formula.noise(rank)),
            (Sent::Kept, kept),
        ];
        all.extend(expected(rank));
        for (what, bytes) in all {
            let found = found.get(what.name()).copied().unwrap_or(0);
            assert_eq!(
                found,
                bytes,
                "{} by rank {rank} of {}: {:?}",
                what.name(),
                formula.ranks,
                formula.settings
            );
        }
        // An aggregation belongs to the stage that reads it first.
        let traffic = &ranked.sent[rank];
        let messages = |stage| traffic.at(Moment::Stage(stage), Sent::Messages) as usize;
        assert_eq!(messages(0), 0);
        assert!((1..formula.stages()).all(|stage| messages(stage) == served[rank] * width * bytes));
        assert_eq!(traffic.at(Moment::Start, Sent::Sums) + traffic.at(Moment::End, Sent::Rows), 0);
        // Numbers of nodes whose messages are needed, at node level what they send along as well, and lists that do not
        // grow.
        let needed: usize = 4 * served.iter().sum::<usize>();
        assert!(found["agreement"] < 2 * needed + 30_000 * formula.others(), "{found:?}");
    }
}

#[test]
fn edge_level() {
    let data = data();
    let request = Request::default()
        .with("method", "progap-labels")
        .with("level", "edge")
        .with("messages", "labels")
        .with("seed", 3u64)
        .with("epochs", 3u64)
        .with("depth", 2u64)
        .with("hidden", 20u64);
    for ranks in [2, 3, 4] {
        let ranked = run(&data, &request, ranks);
        let formula = Formula::new(&data, &ranked.settings, ranks);
        let (hidden, classes) = (wide(20), narrow(CLASSES));
        // In the order of one process: by the number of entries.
        let mut order = formula.train.clone();
        order.sort_by_key(|&node| data.features().entries(node as usize));
        let size = chunk_rows(order.len());
        let chunks = order.len().div_ceil(size);
        compare(&formula, &ranked, |rank| {
            let works = |at: usize| at / size * ranks / chunks;
            let rows = (0..formula.stages()).map(|stage| formula.rows(rank, stage, &order, works)).sum();
            let own_chunks = (0..chunks).filter(|chunk| chunk * ranks / chunks == rank).count();
            let epoch = |stage: usize| {
                let branches = stage + 1;
                let columns: usize = COLUMNS + stage * CLASSES;
                let moments = branches * 8 * (1 + 3 * hidden);
                let linears = (columns + branches) * hidden + (branches * hidden + 1) * classes;
                let sums = 4 * (linears + branches * 2 * hidden + classes + 1) + 16;
                formula.others() * (3 * 16 + own_chunks * (moments + 2 * sums))
            };
            let rows_of = |stage| ranked.sent[rank].at(Moment::Stage(stage), Sent::Rows) as usize;
            assert!(
                (0..formula.stages()).all(|stage| rows_of(stage) == formula.rows(rank, stage, &order, works))
            );
            let epochs: usize = (0..formula.stages()).map(|stage| 3 * epoch(stage)).sum();
            let entries = formula.stages() * 4 * formula.count(rank, Part::Train);
            let calibration = 4 * (CLASSES + 1) * formula.count(rank, Part::Val);
            let once = formula.others() * (entries + calibration) + formula.accuracies();
            [(Sent::Rows, rows), (Sent::Sums, epochs + once)]
        });
    }
}

/// The batch of a step, which the seed of the run decides.
fn batch(train: &[u32], rate: f64, stage: usize, step: usize) -> Vec<u32> {
    let mut randomness = Randomness::from_seed(3);
    let mut purpose = randomness.purpose(&format!("batch of gradient {stage}/{step}")).expect("a new label");
    PoissonSample::new(rate).expect("a rate").choose(&mut purpose.stream(), train)
}

#[test]
fn node_level() {
    let (data, size) = (data(), 2500);
    let request = Request::default()
        .with("method", "progap-labels")
        .with("level", "node")
        .with("epsilon", 8.0)
        .with("seed", 3u64)
        .with("epochs", 2u64)
        .with("depth", 1u64)
        .with("hidden", 20u64)
        .with("batch_size", size as u64);
    for ranks in [2, 3, 4] {
        let ranked = run(&data, &request, ranks);
        let formula = Formula::new(&data, &ranked.settings, ranks);
        let train = formula.train.len();
        let (steps, rate) = (2 * train / size, size as f64 / train as f64);
        compare(&formula, &ranked, |rank| {
            let (mut rows, mut sums) = (0, formula.accuracies());
            for (stage, step) in
                (0..formula.stages()).flat_map(|stage| (0..steps).map(move |step| (stage, step)))
            {
                let batch = batch(&formula.train, rate, stage, step);
                let chunk = sample_chunk_rows(batch.len());
                let chunks = batch.len().div_ceil(chunk);
                let works = |at: usize| at / chunk * ranks / chunks;
                rows += formula.rows(rank, stage, &batch, works);
                let own_chunks = (0..batch.len()).step_by(chunk).filter(|&at| works(at) == rank).count();
                let (branches, columns, hidden) = (stage + 1, COLUMNS + stage * CLASSES, 20);
                let parameters = columns * hidden + branches * 3 * hidden + (branches * hidden + 1) * CLASSES;
                sums += formula.others() * (16 + own_chunks * (8 + 8 * parameters));
            }
            [(Sent::Rows, rows), (Sent::Sums, sums)]
        });
    }
}

/// Which ranks have receivers of a sender, and how many: of each edge its receiver, by ascending receivers.
fn receivers(data: &Dataset) -> Vec<Vec<u32>> {
    let mut receivers = vec![BTreeSet::new(); data.nodes()];
    for (source, target) in data.graph().iter_edges().filter(|(source, target)| source != target) {
        receivers[source as usize].insert(target);
    }
    receivers.into_iter().map(|receivers| receivers.into_iter().collect()).collect()
}

/// Senders with too many edges draw them without replacement, one sender after the other.
fn sample(receivers: &[Vec<u32>], most: usize) -> Vec<Vec<u32>> {
    let mut randomness = Randomness::from_seed(3);
    let mut stream = randomness.lasting_purpose("sample of out-edges").expect("a new label").stream();
    let mut keep = |receivers: &Vec<u32>| {
        let mut left = receivers.clone();
        for at in 0..most.min(receivers.len()) {
            if receivers.len() > most {
                let others = NonZeroU64::new((receivers.len() - at) as u64).expect("some are left");
                left.swap(at, at + stream.below(others) as usize);
            }
        }
        left.truncate(most);
        left
    };
    receivers.iter().map(&mut keep).collect()
}

/// The traffic to agree on the edges that stay, and the messages along them.
#[test]
fn a_sample_of_edges() {
    let (data, most) = (data(), 4);
    let request = Request::default()
        .with("method", "progap-labels")
        .with("level", "node")
        .with("bounding", "sample")
        .with("max_degree", most as u64)
        .with("epsilon", 8.0)
        .with("seed", 3u64)
        .with("epochs", 1u64)
        .with("depth", 1u64);
    let before = receivers(&data);
    let after = sample(&before, most);
    assert!(before.iter().any(|receivers| receivers.len() > most));
    for ranks in [2, 3] {
        let ranked = run(&data, &request, ranks);
        let formula = Formula::new(&data, &ranked.settings, ranks);
        let rank_of = |node: u32| formula.borders.partition_point(|&border| border <= node as usize) - 1;
        // Of each sender, the other ranks that have a receiver of it.
        let elsewhere = |receivers: &[u32], sender: usize| -> BTreeSet<usize> {
            let own = rank_of(sender as u32);
            receivers.iter().map(|&node| rank_of(node)).filter(|&rank| rank != own).collect()
        };
        let mut expected = vec![0; ranks];
        let mut messages = vec![0; ranks];
        for (sender, (before, after)) in before.iter().zip(&after).enumerate() {
            let own = rank_of(sender as u32);
            for rank in elsewhere(before, sender) {
                // Asked for, and counted, by whoever has receivers; answered by whoever has the sender.
                expected[rank] += 8;
                expected[own] += 4;
            }
            if before.len() > most {
                expected[own] += 4 * (ranks - 1);
                expected[own] += 4 * after.iter().filter(|&&node| rank_of(node) != own).count();
            }
            messages[own] += elsewhere(after, sender).len();
        }
        for (rank, (&expected, &messages)) in expected.iter().zip(&messages).enumerate() {
            let found = sent(&ranked, rank);
            assert_eq!(found["sample"], expected, "rank {rank} of {ranks}");
            // One byte or two a value, by the noise.
            let once = messages * CLASSES;
            assert!(
                [once, 2 * once].contains(&found["messages"]),
                "rank {rank} of {ranks}: {once} {found:?}"
            );
            assert_eq!(ranked.sent[rank].at(Moment::Start, Sent::Sample) as usize, expected);
        }
    }
}

/// Columns in units of their own, one of them with missing values, one a switch and one with declared bounds.
fn table() -> Dataset {
    let nodes = 3001;
    let made = SocialNetwork::new(nodes).edges(6 * nodes).classes(CLASSES).seed(4).generate();
    let made = made.and_then(|made| made.with_random_split(Ratios::default(), 1)).expect("a network");
    let mut parts = made.into_parts();
    let row = |node: usize| {
        let (value, known) = ((node * 7919 % 1000) as f32, !node.is_multiple_of(5));
        let (rare, switch) = (node.is_multiple_of(3), node.is_multiple_of(10));
        let amount = if known { 0.01 * value + 0.5 } else { 0.0 };
        let of = |is: bool| if is { 1.0 } else { 0.0 };
        [30_000.0 + value, of(rare) * (value + 2.0), amount, of(!known), of(switch), 20.0 + value / 20.0]
    };
    let values: Vec<f32> = (0..nodes).flat_map(row).collect();
    parts.features = Features::dense(nodes, 6, values).expect("features");
    parts.feature_names = vec![];
    let number = NumberColumn::new;
    let amount = NumberColumn { missing: Some(3), ..number(2) };
    let age = NumberColumn { bounds: Some([0.0, 100.0]), ..number(5) };
    parts.numbers = vec![number(0), number(1), amount, number(4), age];
    Dataset::new(parts).expect("a data set")
}

fn asked_of_table(level: &str) -> Request {
    let request = Request::default().with("method", "progap-labels").with("level", level).with("seed", 3u64);
    request.with("epochs", 1u64).with("depth", 1u64)
}

/// A column goes to one rank, whole, and its map to all.
#[test]
fn columns_at_edge_level() {
    let data = table();
    let prepared = data.clone().prepared(Preparation::Standardise).expect("columns at scale");
    let numbers = data.numbers();
    let map = |at: usize| {
        // The switch has none.
        let found = prepared.numbers().iter().find(|number| number.column == numbers[at].column);
        serde_json::to_vec(&found.and_then(|number| number.map)).expect("JSON").len()
    };
    for ranks in [2, 3, 4] {
        let ranked = run(&data, &asked_of_table("edge"), ranks);
        let formula = Formula::new(&data, &ranked.settings, ranks);
        for rank in 0..ranks {
            let own = || formula.own(rank);
            let value = |node: usize, column: u32| {
                data.features()
                    .row(node)
                    .find(|(at, _)| *at == column as usize)
                    .map_or(0.0, |(_, value)| value)
            };
            let is_real = |column: &u32| own().any(|node| ![0.0, 1.0].contains(&value(node, *column)));
            let real = (0..6).filter(is_real).count();
            let mut expected = 8 * real * formula.others();
            for (at, number) in numbers.iter().enumerate() {
                // The switch is looked at by nobody.
                let values = own().filter(|&node| value(node, number.column) != 0.0).count();
                expected += if at % ranks != rank && number.column != 4 { 8 + 4 * values } else { 0 };
            }
            for round in 0..numbers.len().div_ceil(ranks) {
                let looked_at = Some(round * ranks + rank).filter(|&at| at < numbers.len());
                expected += formula.others() * looked_at.map_or("null".len(), map);
            }
            assert_eq!(sent(&ranked, rank)["columns"], expected, "rank {rank} of {ranks}");
            let at_start = ranked.sent[rank].at(Moment::Start, Sent::Columns);
            assert_eq!(at_start as usize, expected, "all of it before the first stage");
        }
    }
}

/// The generator splitmix64 with seed 0, as its authors publish it.
fn splitmix(index: u32) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut z = u64::from(index).wrapping_add(1).wrapping_mul(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A value travels to the rank of the first node of its pair.
#[test]
fn columns_by_noisy_counts() {
    let data = table();
    let request = asked_of_table("node").with("epsilon", 8.0).with("scaling", "noisy");
    let mut order: Vec<u32> = (0..data.nodes() as u32).collect();
    order.sort_by_key(|&node| splitmix(node));
    // All but the one with declared bounds.
    let columns = data.numbers().iter().filter(|number| number.is_open()).count();
    assert_eq!(columns, 4);
    for ranks in [2, 3, 4] {
        let ranked = run(&data, &request, ranks);
        let formula = Formula::new(&data, &ranked.settings, ranks);
        let rank_of = |node: u32| formula.borders.partition_point(|&border| border <= node as usize) - 1;
        for rank in 0..ranks {
            let apart = |pair: &&[u32]| rank_of(pair[1]) == rank && rank_of(pair[0]) != rank;
            let expected = 4 * columns * order.chunks_exact(2).filter(apart).count();
            assert_eq!(sent(&ranked, rank)["columns"], expected, "rank {rank} of {ranks}");
        }
    }
}
