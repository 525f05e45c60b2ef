//! The order of nodes in memory and in releases.

mod common;

use common::{contents, folder, stop_after, stopped_and_resumed_on};
use progap::settings::{Order, Request};
use progap::{Dataset, Edge, Level, MethodKind, Node, Remedy, Settings};
use progap_graph::{DatasetParts, NodeIds, Part, Ratios, transform};

/// A network whose nodes have names, in another order than that of their names.
fn with_names() -> Dataset {
    let data = common::network();
    let names = (0..data.nodes()).map(|node| format!("p{:04}", node * 7 % 4001));
    let parts = DatasetParts { node_ids: NodeIds::from_texts(names), split: None, ..data.into_parts() };
    Dataset::new(parts).expect("data").with_random_split(Ratios::default(), 1).expect("a split")
}

/// A ring of many, whose order tells every edge.
fn ring() -> Dataset {
    let nodes = 400u32;
    let edges = (0..nodes).flat_map(|node| [(node, (node + 1) % nodes), ((node + 1) % nodes, node)]);
    let labels: Vec<u32> = (0..nodes).map(|node| node / 20 % 2).collect();
    let features: Vec<f32> = (0..2 * nodes).map(|at| (at % 7 % 2) as f32).collect();
    let builder = Dataset::builder().name("ring").edges(edges).features(2, &features).labels(&labels);
    builder.build().and_then(|data| data.with_random_split(Ratios::default(), 1)).expect("data")
}

#[test]
fn in_memory_the_order_of_the_data_stays_and_a_release_has_that_of_ids() {
    let data = with_names();
    let sorted = transform::in_order_of_ids(data.clone()).expect("sorted");
    assert_ne!(data.node_ids(), sorted.node_ids());
    for request in
        [Request::from(Edge::epsilon(1.0).epochs(3).seed(2)), Node::epsilon(8.0).epochs(1).seed(2).into()]
    {
        let model = progap::train(&data, request.clone()).in_memory().expect("trained");
        assert_eq!((model.nodes().node_ids(), model.nodes().split()), (data.node_ids(), data.split()));
        let (_keep, place) = folder();
        let saved = model.save(place.join("saved")).expect("saved");
        assert_eq!((saved.nodes().node_ids(), saved.nodes().split()), (sorted.node_ids(), sorted.split()));
        let whole = progap::train(&data, request.clone()).into_folder(place.join("whole")).expect("trained");
        let of_sorted = progap::train(&sorted, request).into_folder(place.join("sorted")).expect("trained");
        for other in ["saved", "sorted"] {
            let public = |name: &str| {
                let mut all = contents(&place.join(name));
                all.retain(|(name, _)| name != "private/cost.json");
                all
            };
            assert!(
                public("whole") == public(other),
                "the release is the same whatever the order of the data ({other})"
            );
        }
        let (mine, theirs) = (model.predict().expect("predicted"), saved.predict().expect("predicted"));
        let positions = sorted.node_ids().positions(sorted.nodes());
        for node in 0..data.nodes() {
            let there = positions[&data.node_ids().name(node)] as usize;
            assert_eq!(mine.classes[node], theirs.classes[there]);
        }
        let test = model.assess(&data, Part::Test).expect("assessed").expect("test nodes");
        let accuracy = test.scores().expect("scores").accuracy;
        assert!((accuracy - model.metrics.test_accuracy).abs() < 1e-9);
        assert!(whole.aligned(&data).expect("aligned").is_some() && !whole.fits(&data));
        drop(of_sorted);
    }
}

#[test]
fn an_order_that_tells_edges_is_released_only_by_a_word_of_the_owner() {
    let data = ring();
    let (_keep, place) = folder();
    let edge = || Edge::epsilon(1.0).epochs(2);
    let refused = progap::train(&data, edge()).into_folder(&place);
    let remedies = [Remedy::Give("shuffle"), Remedy::set("order", "public")];
    assert_eq!(refused.expect_err("refused").remedies(), remedies);
    assert!(!place.exists());
    // In memory nobody sees it; what is saved would show it.
    let model = progap::train(&data, edge()).in_memory().expect("trained");
    assert!(model.save(&place).expect_err("refused").to_string().contains("`order public`"));
    for (shuffle, order) in [(true, Order::Tested), (false, Order::Public)] {
        let (_keep, place) = folder();
        let saved = model.save_with(&place, shuffle, order).expect("saved with a word");
        assert!(saved.verify().expect("verified").iter().all(|finding| finding.ok), "{shuffle}");
        let aligned = saved.aligned(&data).expect("aligned").expect("the same data");
        assert_eq!((aligned.labels(), aligned.labels() == data.labels()), (saved.nodes().labels(), !shuffle));
        let found = saved.assess(&aligned, Part::Test).expect("assessed").and_then(|found| found.scores());
        assert_eq!(found.map(|scores| scores.accuracy), Some(model.metrics.test_accuracy), "{shuffle}");
    }
    let model = progap::train(&data, edge().shuffle(true)).in_memory().expect("trained");
    assert_eq!(model.nodes().labels(), data.labels());
    let saved = model.save(&place).expect("saved");
    assert_ne!(saved.nodes().labels(), data.labels());
    let aligned = saved.aligned(&data).expect("aligned").expect("the same data");
    assert_eq!((aligned.labels(), aligned.split()), (saved.nodes().labels(), saved.nodes().split()));
    let found = progap_graph::order::telling(aligned.graph(), None);
    assert_eq!(found, None, "the new order tells nothing");
    let (_keep, place) = folder();
    let named = Dataset::new(DatasetParts {
        node_ids: NodeIds::from_texts((0..400).map(|node| format!("n{node:03}"))),
        ..data.clone().into_parts()
    });
    let named = named.expect("data");
    assert!(progap::train(&named, edge().shuffle(true)).into_folder(&place).is_err(), "names are kept");
    assert!(progap::train(&named, edge()).into_folder(&place).is_ok(), "names are public");
}

#[test]
fn a_run_with_new_numbers_is_resumed_with_the_same_numbers() {
    let settings =
        Settings { shuffle: true, epochs: 6, seed: Some(5), ..Settings::of(MethodKind::Gap, Level::Edge) };
    stopped_and_resumed_on(&ring(), &settings, &[1, 3]);
    let (_keep, place) = folder();
    let unseeded = Settings { seed: None, ..settings };
    let mut stop = stop_after(2);
    let stopped = progap::train(&ring(), &unseeded).observer(&mut stop).into_folder(&place);
    assert!(matches!(&stopped, Err(error) if error.is_interrupted()), "{stopped:?}");
    let numbers = std::fs::read(place.join("private/numbers.csv")).expect("numbers");
    std::fs::write(place.join("private/numbers.csv"), "id,number\n").expect("written");
    assert!(progap::resume(&ring(), &place, &mut ()).is_err(), "numbers that were changed");
    std::fs::write(place.join("private/numbers.csv"), &numbers).expect("written");
    let release = progap::resume(&ring(), &place, &mut ()).expect("resumed");
    assert!(release.verify().expect("verified").iter().all(|finding| finding.ok), "it is whole");
    assert_eq!(std::fs::read(place.join("private/numbers.csv")).expect("numbers"), numbers);
}
