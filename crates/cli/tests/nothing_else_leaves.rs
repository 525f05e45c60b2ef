//! Given the same answers of the mechanisms, everything that the command leaves or says in public is the same to the
//! last byte, whatever the private data were (crates/privacy/proofs/nothing-else-leaves.md).
//!
//! Two places with the same names of files, and data that differ in what no mechanism sees: at node level the records
//! of nodes that are not trained on and send nothing, at edge level all edges where none is asked for. Receipts of a
//! ledger: `crates/progap/tests/ledger_names.rs`; the same answers injected: `crates/progap/src/run/injected.rs`.

mod common;

use std::path::Path;

use common::runs::contents;
use common::{Run, folder, progap_in, put};
use serde_json::Value;

const NODES: usize = 240;

/// Nodes that are not trained on, and that send to nobody.
fn is_silent(node: usize) -> bool {
    node % 12 == 11
}

/// A network of which the silent nodes, or the edges, are of one of two kinds.
fn put_network(at: &Path, other_records: bool, other_edges: bool) {
    let mut nodes = String::from("id,label,a,b,c,split\n");
    let mut edges = String::from("source,target\n");
    for node in 0..NODES {
        let changed = other_records && is_silent(node);
        let class = if changed { (node + 1) % 3 } else { node % 3 };
        let told = if node % 9 < 6 { class } else { (class + 1) % 3 };
        let column = |k: usize| match changed {
            true => format!("{}", 3.25 * k as f64 - 1.0),
            false => u8::from(told == k).to_string(),
        };
        let split = match node % 12 {
            9 => "val",
            10 | 11 => "test",
            _ => "train",
        };
        nodes +=
            &format!("{node},{},{},{},{},{split}\n", ["x", "y", "z"][class], column(0), column(1), column(2));
        let steps: &[usize] = if other_edges { &[7] } else { &[3, 6, 9, 30, 60] };
        for step in steps.iter().filter(|_| !is_silent(node)) {
            edges += &format!("{node},{}\n", (node + step) % NODES);
        }
    }
    put(at, &[("net/nodes.csv", nodes.as_bytes()), ("net/edges.csv", edges.as_bytes())]);
}

/// The output of a command, up to what is for the data owner, and without the rows that say so; a row goes on where
/// lines are indented.
fn public_rows(text: &str) -> Vec<String> {
    let public = text.split("\nPrivate: for the data owner\n").next().unwrap_or(text);
    let mut rows: Vec<String> = vec![];
    for line in public.lines() {
        match rows.last_mut() {
            Some(row) if line.starts_with(' ') => *row += line,
            _ => rows.push(line.into()),
        }
    }
    rows.retain(|row| !row.contains("for the data owner alone"));
    rows
}

/// Everything public of a training run in a place: what is left, and what is said of it.
fn everything_public(at: &Path, settings: &[&str], others: &str) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = vec![];
    let say = |what: &str, run: Run| {
        (what.to_string(), format!("{}\n{}\n{}", run.success, run.stdout, run.stderr).into_bytes())
    };
    let train = [&["train", "net", "--seed", "5"], settings].concat();
    let shown = progap_in(at, &[&train[..], &["--out", "r"]].concat()).ok();
    all.push(("train".into(), public_rows(&shown).join("\n").into_bytes()));
    let mut report = progap_in(at, &[&train[..], &["--out", "json", "--json"]].concat()).json();
    assert!(report.as_object_mut().and_then(|report| report.remove("owner")).is_some(), "{report}");
    all.push(("train --json".into(), report.to_string().into_bytes()));
    let inspected = progap_in(at, &["inspect", "r"]).ok();
    all.push(("inspect".into(), public_rows(&inspected).join("\n").into_bytes()));
    all.push(say("inspect --json", progap_in(at, &["inspect", "r", "--json"])));
    all.push(say("predict", progap_in(at, &["predict", "r", "--nodes", others])));
    for out in ["e", "with-rows"] {
        let rows: &[&str] = if out == "e" { &[] } else { &["--with-rows"] };
        let export = [&["export", "r", out, "--date", "2026-01-31"], rows].concat();
        all.push(say("export", progap_in(at, &export)));
    }
    all.push(say("report", progap_in(at, &["report", "r", "--public", "--out", "page"])));
    for release in ["r", "e", "with-rows"] {
        all.push(say("verify", progap_in(at, &["verify", release])));
        all.push(say("verify --json", progap_in(at, &["verify", release, "--json"])));
    }
    for release in ["e", "with-rows"] {
        all.push(say("inspect an export", progap_in(at, &["inspect", release])));
        all.push(say("predict from an export", progap_in(at, &["predict", release])));
        all.push(say(
            "report of an export",
            progap_in(at, &["report", release, "--out", &format!("{release}-page")]),
        ));
    }
    for folder in ["r", "e", "with-rows", "page", "e-page", "with-rows-page"] {
        for (name, bytes) in contents(&at.join(folder)) {
            if !name.starts_with("private/") {
                all.push((format!("{folder}/{name}"), bytes));
            }
        }
    }
    all
}

#[track_caller]
fn assert_same(what: &str, [one, other]: [Vec<(String, Vec<u8>)>; 2]) {
    let names = |all: &[(String, Vec<u8>)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&one), names(&other), "{what}: which files there are tells the private data");
    for ((name, bytes), (_, others)) in one.iter().zip(&other) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(4000)]).into_owned();
        assert!(bytes == others, "{what}: {name} tells the private data:\n{}\n{}", text(bytes), text(others));
    }
    assert!(one.iter().any(|(name, _)| name == "page/report.html"), "{:?}", names(&one));
    assert!(one.iter().any(|(name, _)| name == "e/manifest.json"), "{:?}", names(&one));
}

#[test]
fn at_node_level_nothing_public_tells_a_record_that_was_not_asked() {
    let others: Vec<String> =
        (0..NODES).filter(|&node| !is_silent(node)).map(|node| node.to_string()).collect();
    let level = ["--level", "node", "--delta", "1e-4", "--epochs", "1", "--batch-size", "60"];
    for method in ["progap-labels", "gap", "mlp", "dp-gnn"] {
        // Predictions of dp-gnn read the rows of senders as they are, which its statement says: of none it says as
        // much.
        let asked = if method == "dp-gnn" { "0" } else { &others.join(",") };
        let places = [folder(), folder()];
        let all = [false, true].map(|other| {
            let at = places[usize::from(other)].path();
            put_network(at, other, false);
            let bound: &[&str] = if method == "mlp" { &[] } else { &["--max-degree", "5"] };
            everything_public(at, &[&level[..], &["--method", method], bound].concat(), asked)
        });
        let own =
            places.each_ref().map(|place| contents(&place.path().join("r"))["private/metrics.json"].clone());
        assert_ne!(own[0], own[1], "{method}: the accuracies do tell, and stay with the data owner");
        assert_same(method, all);
    }
}

/// A network whose silent nodes are from a town that nobody else is from, and have no age; or are as all others.
fn put_townspeople(at: &Path, other_records: bool) {
    let (mut nodes, mut edges) = (String::from("id,label,town,age,split\n"), String::from("source,target\n"));
    for node in 0..NODES {
        let changed = other_records && is_silent(node);
        let town = if changed { "Zug" } else { ["Ayr", "Bath", "Cork"][node * 7 % 3] };
        let age = if changed { String::new() } else { (20 + node % 50).to_string() };
        let split = ["train", "test"][usize::from(node % 12 > 9)];
        nodes += &format!("{node},{},{town},{age},{split}\n", ["x", "y"][node % 2]);
        for step in [2, 4, 30].iter().filter(|_| !is_silent(node)) {
            edges += &format!("{node},{}\n", (node + step) % NODES);
        }
    }
    let columns = "[columns.town]\ncategories = [\"Ayr\", \"Bath\", \"other\"]\n[columns.age]\nas = \
        \"number\"\nmissing = true\n\
                   bounds = [0, 120]\n";
    let files = [("net/nodes.csv", nodes), ("net/edges.csv", edges), ("columns.toml", columns.into())];
    files.iter().for_each(|(name, text)| put(at, &[(name, text.as_bytes())]));
}

/// Which categories there are and whether values are missing is read off the rows where nobody declares it; where
/// somebody does, no row has a say.
#[test]
fn what_is_declared_of_columns_does_not_depend_on_a_row() {
    let others: Vec<String> =
        (0..NODES).filter(|&node| !is_silent(node)).map(|node| node.to_string()).collect();
    let places = [folder(), folder()];
    let level =
        ["--level", "node", "--delta", "1e-4", "--epochs", "1", "--batch-size", "60", "--max-degree", "5"];
    let all = [false, true].map(|other| {
        let at = places[usize::from(other)].path();
        put_townspeople(at, other);
        everything_public(at, &[&level[..], &["--columns", "columns.toml"]].concat(), &others.join(","))
    });
    assert_same("declared columns", all);
    let columns = places.each_ref().map(|place| {
        let at = place.path();
        progap_in(at, &[&["train", "net", "--seed", "5", "--out", "open"], &level[..]].concat()).ok();
        let read = std::fs::read_to_string(at.join("open/privacy.json")).expect("a statement");
        let statement: Value = serde_json::from_str(&read).expect("JSON");
        let public = statement["public"].to_string();
        assert!(
            public.contains("their categories") && public.contains("where values can be missing"),
            "{public}"
        );
        statement["feature_columns"].clone()
    });
    assert_ne!(columns[0], columns[1], "what nobody declares does tell, and is taken as public");
}

#[test]
fn at_edge_level_nothing_public_tells_edges_that_were_not_asked() {
    let others = (0..NODES).map(|node| node.to_string()).collect::<Vec<_>>().join(",");
    for (what, settings) in [("mlp", ["--method", "mlp"]), ("progap", ["--depth", "0"])] {
        let places = [folder(), folder()];
        let all = [false, true].map(|other| {
            let at = places[usize::from(other)].path();
            put_network(at, false, other);
            everything_public(at, &[&settings[..], &["--epochs", "3"]].concat(), &others)
        });
        assert_same(what, all);
    }
}

/// Nodes without a label are known by edges alone: which there are is public, and nothing else of the edges that name
/// them.
#[test]
fn at_edge_level_the_order_of_nodes_tells_no_edge_of_an_edge_list() {
    let others = (0..NODES).map(|node| node.to_string()).collect::<Vec<_>>().join(",");
    let places = [folder(), folder()];
    let all = [1, NODES / 3].map(|step| {
        let at = places[usize::from(step > 1)].path();
        let node = |at: usize| at * 7 % NODES;
        let edges: String =
            (0..NODES).map(|at| format!("{} {}\n", node(at), node((at + step) % NODES))).collect();
        let labels: String = (0..NODES / 2).map(|node| format!("{node} {}\n", node % 3)).collect();
        put(at, &[("net/graph.edges", edges.as_bytes()), ("net/graph.labels.txt", labels.as_bytes())]);
        everything_public(at, &["--method", "mlp", "--epochs", "3"], &others)
    });
    assert_same("edge list", all);
}

/// Whatever lies in `private/`, or nothing: the public page and the export do not read it.
#[test]
fn the_public_page_and_the_export_do_not_read_what_is_private() {
    let place = folder();
    let at = place.path();
    put_network(at, false, false);
    for (level, name) in [("node", "n"), ("edge", "r")] {
        let batch: &[&str] = if level == "node" { &["--batch-size", "60"] } else { &[] };
        progap_in(
            at,
            &[&["train", "net", "--level", level, "--epochs", "1", "--quiet", "--out", name], batch].concat(),
        )
        .ok();
        let made = |how: &str| {
            progap_in(at, &["report", name, "--public", "--out", &format!("{name}-page-{how}")]).ok();
            progap_in(at, &["export", name, &format!("{name}-out-{how}"), "--date", "2026-01-31"]).ok();
            ["page", "out"].map(|what| contents(&at.join(format!("{name}-{what}-{how}"))))
        };
        let whole = made("whole");
        let cost = at.join(name).join("private/cost.json");
        let mut slower: Value = serde_json::from_slice(&std::fs::read(&cost).expect("read")).expect("JSON");
        slower["seconds"] = 1e6.into();
        std::fs::write(&cost, slower.to_string()).expect("written");
        assert!(made("slower") == whole, "{level}: the time shows");
        std::fs::remove_dir_all(at.join(name).join("private")).expect("removed");
        assert!(made("bare") == whole, "{level}: it was read");
    }
}

/// One value of a private row, however large, decides nothing: there is a release, and what no mechanism sees of the
/// row does not show.
#[test]
fn a_value_that_no_number_type_holds_decides_nothing() {
    for bounds in [&[][..], &["--bounds", "a=0:5", "--bounds", "b=0:5", "--bounds", "c=0:5"]] {
        let level = [
            "--level",
            "node",
            "--delta",
            "1e-4",
            "--epochs",
            "1",
            "--batch-size",
            "60",
            "--max-degree",
            "5",
        ];
        let settings = [&level[..], bounds].concat();
        let public = |value: &str| {
            let place = folder();
            let at = place.path();
            put_network(at, false, false);
            let nodes = std::fs::read_to_string(at.join("net/nodes.csv")).expect("nodes");
            // Neither trained on nor a sender.
            assert!(is_silent(11));
            let change = |line: &str| match line.strip_prefix("11,") {
                None => line.to_string(),
                Some(rest) => {
                    let mut cells: Vec<&str> = rest.split(',').collect();
                    cells[1] = value;
                    format!("11,{}", cells.join(","))
                }
            };
            let nodes: Vec<String> = nodes.lines().map(change).collect();
            put(at, &[("net/nodes.csv", (nodes.join("\n") + "\n").as_bytes())]);
            everything_public(at, &settings, "0,1,2,100")
        };
        let usual = public("0.5");
        for value in ["1e39", "-1e39", "1e400", "inf"] {
            assert_same(value, [usual.clone(), public(value)]);
        }
    }
}
