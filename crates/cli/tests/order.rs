//! The order of nodes in what leaves: that of their ids, or, where positions are the ids, one that tells no edge.

mod common;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use common::runs::contents;
use common::{folder, progap_in, put};

const NODES: usize = 660;
/// Guesses of the attack.
const GUESSES: usize = 220;

/// Undirected edges between nodes by name: three nodes know 250 others each, all others a few.
fn edges() -> Vec<(usize, usize)> {
    let name = |at: usize| at * 7919 % 100_003;
    let mut edges = HashSet::new();
    for (hub, step) in [(0, 1), (1, 7), (2, 11)] {
        edges.extend((0..250).map(|at| (hub, 3 + (at * step + 101 * hub) % (NODES - 3))));
    }
    edges.extend((3..NODES).map(|node| (node, 3 + (node - 2 + node * node % 37) % (NODES - 3))));
    let mut edges: Vec<(usize, usize)> = edges.into_iter().map(|(a, b)| (name(a), name(b))).collect();
    edges.sort_unstable();
    edges
}

/// `pandas.unique(edges.ravel())`.
fn as_met(edges: &[(usize, usize)]) -> Vec<usize> {
    let mut seen = HashSet::new();
    edges.iter().flat_map(|&(a, b)| [a, b]).filter(|&node| seen.insert(node)).collect()
}

/// Tables of nodes in an order, called by other names.
fn put_tables(at: &Path, nodes: &[usize], edges: &[(usize, usize)], named: &dyn Fn(usize) -> usize) {
    let mut table = String::from("id,label,a,b,town\n");
    for &node in nodes {
        let (class, town) = (node % 3, ["Ayr", "Bath", "Cork", "Deal"][node % 4]);
        table += &format!(
            "{},{},{},{},{town}\n",
            named(node),
            ["x", "y", "z"][class],
            node % 7,
            (class + node % 2) * 5
        );
    }
    let both = edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
    let lines: String = both.map(|(a, b)| format!("{},{}\n", named(a), named(b))).collect();
    let edges = format!("source,target\n{lines}");
    put(at, &[("net/nodes.csv", table.as_bytes()), ("net/edges.csv", edges.as_bytes())]);
}

/// The attack: the first node is taken to know those that follow it, and every node the one before it. Of the guesses,
/// how many are right.
fn right_guesses(listed: &[usize], edges: &[(usize, usize)]) -> [usize; 2] {
    let joined: HashSet<(usize, usize)> = edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
    let first = listed[1..=GUESSES].iter().filter(|&&node| joined.contains(&(listed[0], node)));
    let consecutive = listed.windows(2).filter(|pair| joined.contains(&(pair[0], pair[1])));
    [first.count(), consecutive.count()]
}

/// No more guesses are right than those of nodes in any order: a node with many neighbours may stand first by chance.
#[track_caller]
fn assert_tells_nothing(listed: &[usize], edges: &[(usize, usize)]) {
    assert_eq!(listed.iter().collect::<HashSet<_>>().len(), NODES);
    let [first, consecutive] = right_guesses(listed, edges);
    let chance = 2.0 * edges.len() as f64 / (NODES * (NODES - 1)) as f64;
    assert!(first <= GUESSES * 250 / NODES + 40, "{first} of {GUESSES}");
    let expected = chance * NODES as f64;
    assert!(
        (consecutive as f64) < expected + 5.0 * expected.sqrt() + 5.0,
        "{consecutive}, by chance {expected}"
    );
}

/// The ids of an export, in its order.
fn listed(export: &Path) -> Vec<usize> {
    let release = progap::Release::open(export).expect("an export");
    let nodes = release.nodes();
    (0..nodes.nodes()).map(|node| nodes.node_ids().name(node).parse().expect("a number")).collect()
}

fn exported(at: &Path, release: &str, out: &str) -> Vec<usize> {
    progap_in(at, &["export", release, out, "--with-rows"]).ok();
    for folder in [release, out] {
        progap_in(at, &["verify", folder]).ok();
        progap_in(at, &["predict", folder]).ok();
    }
    assert!(contents(&at.join(out)).keys().all(|name| !name.starts_with("private/")));
    listed(&at.join(out))
}

fn statement(release: &Path) -> String {
    std::fs::read_to_string(release.join("privacy.json")).expect("a statement")
}

#[test]
fn a_node_table_made_of_edges_tells_none_of_them_in_a_release() {
    let place = folder();
    let (at, edges) = (place.path(), edges());
    let nodes = as_met(&edges);
    assert_eq!(nodes.len(), NODES);
    let [first, _] = right_guesses(&nodes, &edges);
    assert!(first > 200, "the file itself tells {first} of {GUESSES}");
    put_tables(at, &nodes, &edges, &|node| node);
    progap_in(at, &["train", "net", "--epsilon", "1", "--epochs", "5", "--quiet", "--out", "r"]).ok();
    let found = exported(at, "r", "e");
    assert!(found.is_sorted(), "numbers in the order of numbers");
    assert_tells_nothing(&found, &edges);
    assert!(statement(&at.join("r")).contains("in the order of their ids"));
}

#[test]
fn arrays_whose_order_tells_edges_need_a_word_of_the_owner() {
    let place = folder();
    let (at, edges) = (place.path(), edges());
    let nodes = as_met(&edges);
    let numbers: HashMap<usize, usize> = nodes.iter().enumerate().map(|(at, &node)| (node, at)).collect();
    let by_number: Vec<(usize, usize)> = edges.iter().map(|(a, b)| (numbers[a], numbers[b])).collect();
    put_tables(at, &nodes, &edges, &|node| numbers[&node]);
    progap_in(at, &["data", "convert", "net", "net.npz"]).ok();
    let train =
        |more: &[&str]| progap_in(at, &[&["train", "net.npz", "--epochs", "3", "--quiet"], more].concat());
    for level in ["edge", "node"] {
        let refused = train(&["--level", level, "--out", "no"]);
        refused.refused(&["the order of nodes", "--shuffle", "--order public"]);
        assert!(!at.join("no").exists(), "nothing is left");
        let checked = progap_in(at, &["check", "net.npz", "--level", level]).ok();
        assert!(checked.contains("--shuffle") && checked.contains("--order public"), "{checked}");
    }
    train(&["--level", "none", "--out", "unprotected"]).ok();
    train(&["--shuffle", "--order", "public", "--out", "no"]).refused(&["--shuffle", "--order"]);
    train(&["--level", "none", "--shuffle", "--out", "no"]).refused(&["--shuffle has no effect"]);

    train(&["--order", "public", "--out", "public"]).ok();
    assert!(statement(&at.join("public")).contains("the order in which the data lists them"));
    assert!(!at.join("public/private/numbers.csv").exists());
    assert_eq!(exported(at, "public", "public-e"), (0..NODES).collect::<Vec<_>>());

    for (level, release) in [("edge", "r"), ("node", "n")] {
        train(&["--level", level, "--shuffle", "--out", release]).ok();
        let said = statement(&at.join(release));
        assert!(said.contains("renumbered at random"), "{said}");
        let map = std::fs::read_to_string(at.join(release).join("private/numbers.csv")).expect("numbers");
        let mut lines = map.lines();
        assert_eq!(lines.next(), Some("id,number"));
        let mut owners = vec![0; NODES];
        for line in lines {
            let (id, number) = line.split_once(',').expect("two numbers");
            owners[number.parse::<usize>().expect("a number")] = id.parse().expect("a number");
        }
        assert_tells_nothing(&owners, &by_number);
        // The owner's numbers are in the map alone.
        if level == "edge" {
            assert_eq!(exported(at, release, "e"), (0..NODES).collect::<Vec<_>>());
        } else {
            progap_in(at, &["verify", release]).ok();
            progap_in(at, &["report", release, "--data", "net.npz", "--out", "page"]).ok();
        }
    }
    progap_in(at, &["audit", "r", "--parts", "attacks", "--json"]).json();
}

#[test]
fn what_is_released_of_tables_does_not_depend_on_the_order_of_their_rows() {
    let places = [folder(), folder()];
    for level in ["edge", "node"] {
        let all = [false, true].map(|other| {
            let at = places[usize::from(other)].path();
            let (mut edges, mut nodes) = (edges(), as_met(&edges()));
            if other {
                edges.sort_by_key(|&(a, b)| (a * 31 + b * 17) % 1009);
                nodes.sort_by_key(|&node| node * 37 % 1013);
            }
            put_tables(at, &nodes, &edges, &|node| node);
            let train =
                ["train", "net", "--level", level, "--seed", "4", "--epochs", "2", "--quiet", "--out"];
            progap_in(at, &[&train[..], &[level]].concat()).ok();
            progap_in(at, &["export", level, &format!("{level}-e"), "--date", "2026-01-31"]).ok();
            let mut all = contents(&at.join(level));
            all.extend(
                contents(&at.join(format!("{level}-e")))
                    .into_iter()
                    .map(|(name, of)| (format!("e/{name}"), of)),
            );
            all.retain(|name, _| !name.starts_with("private/"));
            all
        });
        for (name, bytes) in &all[0] {
            assert!(all[1].get(name) == Some(bytes), "{level}: {name} tells the order of rows");
        }
        assert_eq!(all[0].len(), all[1].len());
    }
}

#[test]
fn a_list_of_nodes_to_keep_does_not_decide_their_order() {
    let place = folder();
    let (at, edges) = (place.path(), edges());
    let nodes = as_met(&edges);
    put_tables(at, &nodes, &edges, &|node| node);
    let kept: String = nodes.iter().take(300).map(|node| format!("{node}\n")).collect();
    put(at, &[("kept.txt", kept.as_bytes())]);
    progap_in(at, &["data", "convert", "net", "kept.progap", "--keep-nodes", "kept.txt"]).ok();
    let data = progap_graph::store::open(&at.join("kept.progap")).expect("data");
    let ids: Vec<usize> =
        (0..300).map(|node| data.node_ids().name(node).parse().expect("a number")).collect();
    assert!(ids.is_sorted(), "{ids:?}");
}
