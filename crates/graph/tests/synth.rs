//! Synthetic networks are what they promise to be, whichever machine and however many threads make them.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use progap_graph::summary::Summary;
use progap_graph::synth::{self, Class, Column, SocialNetwork};
use progap_graph::{Dataset, Features, Part, Problem, Ratios};
use xxhash_rust::xxh3::Xxh3;

fn checksum(dataset: &Dataset) -> u64 {
    let mut hash = Xxh3::new();
    dataset.graph().offsets().iter().for_each(|x| hash.update(&x.to_le_bytes()));
    dataset.graph().senders().iter().for_each(|x| hash.update(&x.to_le_bytes()));
    dataset.labels().iter().for_each(|x| hash.update(&x.to_le_bytes()));
    let Features::Sparse { offsets, indices, .. } = dataset.features() else { panic!("features are dense") };
    offsets.iter().for_each(|x| hash.update(&x.to_le_bytes()));
    indices.iter().for_each(|x| hash.update(&x.to_le_bytes()));
    hash.digest()
}

/// Made once: several tests look at it.
static DEMO: LazyLock<Dataset> = LazyLock::new(|| on_threads(2, || synth::demo().unwrap()));

fn on_threads<T: Send>(threads: usize, make: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(make)
}

/// Undirected, without self-loops or repetitions.
fn assert_simple(dataset: &Dataset) {
    let graph = dataset.graph();
    assert!(graph.is_undirected());
    assert_eq!((graph.self_loops(), graph.repeated_edges()), (0, 0));
}

fn degree_quantiles(dataset: &Dataset, shares: &[f64]) -> Vec<usize> {
    let mut degrees: Vec<usize> = (0..dataset.nodes()).map(|node| dataset.graph().in_degree(node)).collect();
    degrees.sort_unstable();
    shares.iter().map(|share| degrees[(share * (degrees.len() - 1) as f64) as usize]).collect()
}

/// The share of test nodes on which `scores`, one for each class, are highest for the label.
fn test_accuracy(dataset: &Dataset, scores: impl Fn(usize) -> Vec<f64>) -> f64 {
    let nodes: Vec<usize> = dataset.split().unwrap().nodes(Part::Test).collect();
    let right = nodes.iter().filter(|&&node| {
        let scores = scores(node);
        let best = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
        best as u32 == dataset.labels()[node]
    });
    right.count() as f64 / nodes.len() as f64
}

/// Naive Bayes on the one-hot features.
fn features_accuracy(dataset: &Dataset) -> f64 {
    let (classes, columns) = (dataset.classes(), dataset.features().columns());
    let mut counts = vec![vec![0.5f64; columns]; classes];
    let mut sizes = vec![0.0f64; classes];
    for node in dataset.split().unwrap().nodes(Part::Train) {
        let class = dataset.labels()[node] as usize;
        sizes[class] += 1.0;
        dataset.features().row(node).for_each(|(column, _)| counts[class][column] += 1.0);
    }
    // Absent values count too: a missing dormitory says much about the year.
    let chance = |class: usize, column: usize| counts[class][column] / (sizes[class] + 1.0);
    let absent: Vec<f64> =
        (0..classes).map(|class| (0..columns).map(|c| (1.0 - chance(class, c)).ln()).sum()).collect();
    test_accuracy(dataset, |node| {
        let score = |class: usize| {
            let present: f64 = dataset
                .features()
                .row(node)
                .map(|(c, _)| chance(class, c).ln() - (1.0 - chance(class, c)).ln())
                .sum();
            sizes[class].ln() + absent[class] + present
        };
        (0..classes).map(score).collect()
    })
}

/// The vote of the neighbours whose label may be learnt from.
fn vote_accuracy(dataset: &Dataset) -> f64 {
    let split = dataset.split().unwrap();
    test_accuracy(dataset, |node| {
        let mut votes = vec![0.0; dataset.classes()];
        for &neighbour in dataset.graph().in_neighbours(node) {
            if split.part(neighbour as usize) == Part::Train {
                votes[dataset.labels()[neighbour as usize] as usize] += 1.0;
            }
        }
        votes
    })
}

#[test]
fn demo_resembles_a_school() {
    let demo = DEMO.clone().with_random_split(Ratios::default(), 1).unwrap();
    assert_eq!(demo.name(), "demo");
    assert_simple(&demo);
    assert_eq!(demo.nodes(), 20_000);
    assert!((1_274_000..=1_326_000).contains(&demo.graph().edges()), "{}", demo.graph().edges());
    assert_eq!(demo.graph().isolated_nodes(), 0);
    assert_eq!(demo.class_names(), ["2004", "2005", "2006", "2007", "2008", "2009"]);
    let homophily = demo.homophily().unwrap();
    assert!((0.53..0.57).contains(&homophily), "{homophily}");
    assert!((0.20..0.25).contains(&Summary::of(&demo).majority_baseline.unwrap()));

    // Within a fifth of those of Berkeley13, whose mean degree is a tenth higher.
    let quantiles = degree_quantiles(&demo, &[0.05, 0.25, 0.5, 0.75, 0.95, 0.99]);
    for (&found, expected) in quantiles.iter().zip([5, 26, 54, 97, 192, 305]) {
        assert!(expected * 4 / 5 - 1 <= found && found <= expected * 6 / 5, "{quantiles:?}");
    }

    // One-hot: at most one value of each attribute.
    let names = demo.feature_names();
    assert_eq!(names.len(), demo.features().columns());
    assert!((400..=450).contains(&names.len()));
    let attribute = |column: usize| names[column].split('=').next().unwrap();
    for node in 0..demo.nodes() {
        let row: Vec<(usize, f32)> = demo.features().row(node).collect();
        assert!(row.iter().all(|&(_, value)| value == 1.0));
        assert!(row.windows(2).all(|w| attribute(w[0].0) != attribute(w[1].0)), "node {node}");
    }

    let (features, vote) = (features_accuracy(&demo), vote_accuracy(&demo));
    assert!((0.43..0.53).contains(&features), "{features}");
    assert!((0.80..0.89).contains(&vote), "{vote}");
}

#[test]
fn demo_never_changes() {
    let start = Instant::now();
    let one = on_threads(1, || synth::demo().unwrap());
    // A quarter of a second of one core: only a mistake in the method, not a busy machine, takes so long.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(one, *DEMO);
    assert_eq!(checksum(&one), 0x87fc67cd658452d7);
}

#[test]
fn neighbouring_classes_mix_more() {
    let demo = &*DEMO;
    let mut edges = [[0u32; 6]; 6];
    for (a, b) in demo.graph().iter_edges() {
        edges[demo.labels()[a as usize] as usize][demo.labels()[b as usize] as usize] += 1;
    }
    for row in [0, 5] {
        let other: Vec<u32> =
            if row == 0 { edges[0].to_vec() } else { edges[5].iter().rev().copied().collect() };
        assert!(other.is_sorted_by(|a, b| a > b), "{other:?}");
    }
}

#[test]
fn communities_are_ranges_with_most_edges_inside() {
    let network = || {
        let network = SocialNetwork::new(30_000).edges(600_000).communities(20).locality(0.9);
        network.homophily(0.6).feature_count(60).seed(11).generate().unwrap()
    };
    let data = on_threads(2, network);
    assert_eq!(checksum(&data), checksum(&on_threads(1, network)));
    assert_simple(&data);
    let edges = data.graph().edges() as f64;
    assert!((edges / 600_000.0 - 1.0).abs() < 0.02, "{edges}");
    assert!((data.homophily().unwrap() - 0.6).abs() < 0.02, "{:?}", data.homophily());
    let inside = data.graph().iter_edges().filter(|(a, b)| a / 1500 == b / 1500).count() as f64 / edges;
    assert!((0.88..0.95).contains(&inside), "{inside}");
    assert_eq!(data.features().columns(), 60);
}

#[test]
fn another_seed_is_another_network() {
    let make = |seed| SocialNetwork::new(500).mean_degree(10.0).seed(seed).generate().unwrap();
    assert_eq!(make(1), make(1));
    assert_ne!(make(1).graph(), make(2).graph());
    assert_ne!(make(1).labels(), make(2).labels());
    assert_ne!(make(1).features(), make(2).features());
}

#[test]
fn parameters_are_met_over_their_range() {
    for (homophily, drift, spread, degree) in
        [(0.2, 0.0, 0.0, 5.0), (0.8, 0.05, 0.8, 40.0), (0.5, 0.2, 1.5, 3.0), (0.95, 0.0, 0.5, 100.0)]
    {
        let network =
            SocialNetwork::new(6_000).classes(3).mean_degree(degree).homophily(homophily).drift(drift);
        let data = network.spread(spread).feature_count(0).generate().unwrap();
        assert_simple(&data);
        let edges = data.graph().edges() as f64 / 6_000.0 / degree;
        assert!((edges - 1.0).abs() < 0.02, "degree {degree}: {edges}");
        let found = data.homophily().unwrap();
        assert!((found - homophily).abs() < 0.02, "homophily {homophily}: {found}");
        assert_eq!(data.features().columns(), 0);
        assert_eq!(data.class_counts(), [2_000; 3]);
    }
}

#[test]
fn the_smallest_networks_work() {
    let one = SocialNetwork::new(1).classes(1).mean_degree(0.0).generate().unwrap();
    assert_eq!((one.nodes(), one.graph().edges()), (1, 0));
    let two = SocialNetwork::new(2).classes(2).edges(0).generate().unwrap();
    assert_eq!(two.class_counts(), [1, 1]);
    assert_eq!(synth::uniform(1, 0, 0).unwrap().nodes(), 1);
    for nodes in [2, 3, 5, 8, 13, 29] {
        // Whether so small a network can have the homophily is chance; what counts is that nothing panics.
        let _ = SocialNetwork::new(nodes).classes(2).communities(nodes / 2).mean_degree(1.0).generate();
    }
}

#[test]
fn a_uniform_graph_has_its_edges() {
    for (nodes, edges) in [(10_000, 300_000), (300, 60_000), (1_000_000, 200)] {
        let graph = synth::uniform(nodes, edges, 5).unwrap();
        assert!(graph.is_undirected());
        assert_eq!((graph.self_loops(), graph.repeated_edges()), (0, 0));
        let ratio = graph.edges() as f64 / edges as f64;
        // 200 edges are 100 draws of chance: six standard deviations are 0.6.
        assert!((ratio - 1.0).abs() < if edges < 1000 { 0.6 } else { 0.02 }, "{nodes} nodes: {ratio}");
        assert_eq!(graph, on_threads(1, || synth::uniform(nodes, edges, 5).unwrap()));
    }
    assert_ne!(synth::uniform(100, 500, 1).unwrap(), synth::uniform(100, 500, 2).unwrap());
}

#[test]
fn what_cannot_be_is_refused() {
    let network = || SocialNetwork::new(100).mean_degree(5.0);
    let class = |share| Class { share, ..Class::new("a") };
    let with_column = |column| network().columns(vec![column]);
    let refused = [
        SocialNetwork::new(0),
        SocialNetwork::new(usize::MAX),
        network().edges(100 * 99 + 1),
        network().edges(100 * 99),
        network().edges(usize::MAX),
        network().mean_degree(-1.0),
        network().mean_degree(f64::NAN),
        network().mean_degree(1e300),
        network().classes(0),
        network().classes(101),
        network().classes(usize::MAX),
        network().class_profiles(vec![class(1.0), class(0.0)]),
        network().class_profiles(vec![class(1.0), class(f64::NAN)]),
        network().communities(0),
        network().communities(101),
        network().locality(1.1),
        network().homophily(-0.1),
        network().homophily(f64::NAN),
        network().drift(2.0),
        network().spread(-1.0),
        network().feature_count(usize::MAX),
        // Half of the people drift away, so nine tenths of the neighbours cannot be of the own class.
        SocialNetwork::new(2_000).drift(0.5).homophily(0.9),
        with_column(Column::new("a").pool(0, 1.0, [0.5])),
        with_column(Column::new("a").pool(usize::MAX, 1.0, [0.5]).pool(9, 1.0, [0.1])),
        with_column(Column::new("a").pool(5, f64::NAN, [0.5])),
        with_column(Column::new("a").pool(5, 1.0, [0.5, 0.5])),
        with_column(Column::new("a").pool(5, 1.0, [0.6]).pool(5, 1.0, [0.6])),
        with_column(Column::new("a").pool(5, 1.0, [-0.5])),
        with_column(Column::new("a").pool(5, 1.0, [0.5]).tie(1.5)),
        with_column(Column::new("a").pool(5, 1.0, [0.5]).tie(f64::NAN)),
    ];
    for network in refused {
        let error = network.generate().expect_err(&format!("{network:?}"));
        let problem = error.problem();
        let typed = matches!(problem, Problem::Invalid(_) | Problem::TooLarge(_) | Problem::Empty(_));
        assert!(typed, "{network:?}: {error}");
    }
    for (nodes, edges) in [(0, 0), (10, 91), (10, 90), (usize::MAX, 1), (1 << 27, usize::MAX)] {
        assert!(synth::uniform(nodes, edges, 0).is_err(), "{nodes} nodes, {edges} edges");
    }
}
