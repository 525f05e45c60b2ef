//! Nodes stand in the order of their ids, and an order that tells edges is found.

mod common;

use std::collections::HashSet;

use common::shared;
use progap_formats::read::{self, LoadOptions};
use progap_graph::order::telling;
use progap_graph::synth::SocialNetwork;
use progap_graph::{Graph, transform};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A random order, by a generator of the test's own.
fn shuffled(nodes: usize, random: &mut Xoshiro256PlusPlus) -> Vec<u32> {
    let mut order: Vec<u32> = (0..nodes as u32).collect();
    for last in (1..nodes).rev() {
        order.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
    order
}

/// The order of `pandas.unique(edges.ravel())`.
fn as_met(edges: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut seen = HashSet::new();
    edges.flat_map(|(a, b)| [a, b]).filter(|&node| seen.insert(node)).collect()
}

fn network(nodes: usize, edges: usize) -> Graph {
    let network = SocialNetwork::new(nodes).edges(edges).classes(3).seed(4).generate().expect("a network");
    network.graph().clone()
}

/// A hub that most nodes know, and few edges besides.
fn star(nodes: u32) -> Graph {
    let edges = (1..nodes).filter(|node| node % 3 > 0).map(|node| (0, node));
    let edges = edges.chain((1..nodes - 9).step_by(5).map(|node| (node, node + 9)));
    let (from, to): (Vec<u32>, Vec<u32>) = edges.flat_map(|(a, b)| [(a, b), (b, a)]).unzip();
    Graph::from_edges(nodes as usize, &from, &to).expect("a graph")
}

/// Every edge of one direction alone.
fn one_way(graph: &Graph) -> Graph {
    let edges = graph.iter_edges().filter(|(a, b)| a < b);
    let (from, to): (Vec<u32>, Vec<u32>) = edges.unzip();
    Graph::from_edges(graph.nodes(), &from, &to).expect("a graph")
}

#[test]
fn random_orders_are_said_to_tell_less_than_once_in_a_thousand() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let graphs =
        [network(60, 200), network(400, 3000), network(3000, 9000), star(500), one_way(&network(400, 3000))];
    let mut alarms = 0;
    for graph in &graphs {
        let found =
            (0..400).filter(|_| telling(graph, Some(&shuffled(graph.nodes(), &mut random))).is_some());
        alarms += found.count();
    }
    assert!(alarms <= 2, "{alarms} of 2000");
}

#[test]
fn orders_that_follow_edges_tell_whichever_way_edges_are_listed() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
    for (nodes, edges) in [(200, 440), (2000, 8000), (20_000, 400_000)] {
        let graph = network(nodes, edges);
        for graph in [one_way(&graph), graph] {
            let names = shuffled(graph.nodes(), &mut random);
            let named = transform::induced_graph(&graph, &names).expect("a graph");
            let by_receiver = as_met(named.iter_edges().map(|(from, to)| (to, from)));
            let turned = named.transpose();
            let by_sender = as_met(turned.iter_edges());
            let edges: Vec<(u32, u32)> = named.iter_edges().collect();
            let at_random =
                as_met(shuffled(edges.len(), &mut random).into_iter().map(|at| edges[at as usize]));
            assert_eq!(telling(&named, None), None, "{nodes} {edges:?}", edges = edges.len());
            for (what, order) in [("receiver", by_receiver), ("sender", by_sender), ("random", at_random)] {
                let rest: HashSet<u32> = order.iter().copied().collect();
                let rest = (0..graph.nodes() as u32).filter(|node| !rest.contains(node));
                let order: Vec<u32> = order.iter().copied().chain(rest).collect();
                let found = telling(&named, Some(&order));
                assert!(found.is_some(), "{nodes} nodes by {what}, symmetric {}", graph.is_symmetric());
            }
        }
    }
}

#[test]
fn a_block_in_an_order_that_is_random_elsewhere_is_found() {
    let graph = network(20_000, 400_000);
    let hub = (0..graph.nodes()).max_by_key(|&node| graph.in_degree(node)).expect("a node");
    let block: Vec<u32> = graph.in_neighbours(hub).iter().copied().take(220).collect();
    let rest = shuffled(graph.nodes(), &mut Xoshiro256PlusPlus::seed_from_u64(3));
    let order: Vec<u32> =
        block.iter().copied().chain(rest.into_iter().filter(|node| !block.contains(node))).collect();
    assert!(telling(&graph, Some(&order)).is_some(), "{} neighbours of one node", block.len());
}

/// Orders of graphs that are public anyway: which of them tell is what crates/privacy/proofs says.
#[test]
fn the_orders_of_public_graphs_tell_or_not() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    let telling_ones = ["cora", "citeseer", "minesweeper"];
    let others = ["amazon_photo", "amazon_computers", "coauthor_cs", "chameleon", "squirrel", "tolokers"];
    let schools = ["Berkeley13", "UCSB37"].map(|name| (format!("facebook100/{name}.mat"), false));
    let told = telling_ones.map(|name| (format!("other/{name}.npz"), true));
    let others = others.map(|name| (format!("other/{name}.npz"), false));
    for (file, tells) in schools.into_iter().chain(told).chain(others) {
        let Some(path) = shared::shared(&format!("data/{file}")) else { return };
        let data = read::load(&path, &LoadOptions::default()).expect("data");
        assert_eq!(telling(data.graph(), None).is_some(), tells, "{file}");
        for _ in 0..20 {
            let order = shuffled(data.nodes(), &mut random);
            assert_eq!(telling(data.graph(), Some(&order)), None, "{file}");
        }
    }
}
