//! Predictions about new nodes with their edges.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{folder, progap_in, put};
use serde_json::Value;

const NODES: usize = 600;
/// Of every ten nodes one comes later.
const NEW: usize = 10;
const DELTA: &str = "1e-6";

fn is_new(node: usize) -> bool {
    node % NEW == 3
}

fn class(node: usize) -> usize {
    node / 2 % 2
}

/// Numbers that look like chance and are the same every time.
fn chance(of: usize) -> usize {
    let mixed = (of as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) as usize
}

/// Undirected edges, nearly all within a class.
fn friends() -> impl Iterator<Item = (usize, usize)> {
    (0..NODES * 15).filter_map(|k| {
        let (a, b) = (chance(2 * k) % NODES, chance(2 * k + 1) % NODES);
        (a != b && (class(a) == class(b) || k % 12 == 0)).then_some((a, b))
    })
}

/// A data set of the old nodes, and tables of the new ones; the one feature tells little of the class.
fn tables(at: &Path) {
    let row = |node: usize| {
        let told = if chance(7 * node) % 10 < 6 { class(node) } else { 1 - class(node) };
        format!("{}", (chance(node) % 100) as f64 / 100.0 + told as f64)
    };
    let mut nodes = "id,label,x\n".to_string();
    let (mut new, mut edges, mut to_new) =
        ("id,x\n".to_string(), "source,target\n".to_string(), "from,to\n".to_string());
    for node in 0..NODES {
        match is_new(node) {
            true => new += &format!("p{node},{}\n", row(node)),
            false => nodes += &format!("p{node},{},{}\n", ["a", "b"][class(node)], row(node)),
        }
    }
    for (a, b) in friends() {
        match is_new(a) || is_new(b) {
            true => to_new += &format!("p{a},p{b}\n"),
            false => edges += &format!("p{a},p{b}\np{b},p{a}\n"),
        }
    }
    put(at, &[("data/nodes.csv", nodes.as_bytes()), ("data/edges.csv", edges.as_bytes())]);
    put(at, &[("new.csv", new.as_bytes()), ("edges.csv", to_new.as_bytes())]);
}

fn trained(at: &Path) {
    tables(at);
    let init = ["ledger", "init", "b.db", "--data", "data", "--epsilon", "4", "--delta", DELTA];
    progap_in(at, &init).ok();
    let train =
        ["train", "data", "--epsilon", "2", "--delta", DELTA, "--ledger", "b.db", "--quiet", "--out", "r"];
    progap_in(at, &train).ok();
}

const ASK: [&str; 8] = ["predict", "r", "--new", "new.csv", "--edges", "edges.csv", "--ledger", "b.db"];

fn ask<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&ASK[..], more].concat()
}

fn runs(at: &Path) -> (usize, f64) {
    let shown = progap_in(at, &["ledger", "show", "b.db", "--json"]).json();
    (shown[0]["runs"].as_u64().expect("runs") as usize, shown[0]["spent"].as_f64().expect("spent"))
}

/// Of each node its row, without its id.
fn rows(at: &Path, file: &str) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(at.join(file)).expect("predictions");
    let row = |line: &str| line.split_once(',').map(|(id, row)| (id.to_string(), row.to_string()));
    text.lines().skip(1).filter_map(row).collect()
}

fn accuracy(rows: &BTreeMap<String, String>) -> f64 {
    let right = |(id, row): &(&String, &String)| {
        let node: usize = id[1..].parse().expect("a number");
        row.starts_with(["a,", "b,"][class(node)])
    };
    rows.iter().filter(right).count() as f64 / rows.len() as f64
}

#[test]
fn asked_again_it_is_the_same_answer_and_free_and_other_edges_are_charged() {
    let place = folder();
    let at = place.path();
    trained(at);
    let before = runs(at);
    let first = progap_in(at, &ask(&["--date", "2026-01-31", "--out", "p.csv"]));
    assert!(first.success, "{}", first.stderr);
    let found = rows(at, "p.csv");
    assert!(
        found.len() == NODES / NEW && found.values().all(|row| row.contains("features+sums")),
        "{found:?}"
    );
    // New edges pay what those before paid, and those nothing.
    let (charged, spent) = runs(at);
    assert!(charged == before.0 + 1 && (spent - before.1).abs() < 1e-6, "{before:?} {spent}");
    let statement: Value =
        serde_json::from_slice(&std::fs::read(at.join("p.csv.privacy.json")).expect("a statement"))
            .expect("JSON");
    let epsilon = statement["epsilon"].as_f64().expect("epsilon");
    assert!(epsilon > 0.5 && epsilon <= spent + 1e-9, "{statement}");
    progap_in(at, &["ledger", "check", "b.db"]).ok();

    // Their neighbours tell what their features do not.
    progap_in(at, &["predict", "r", "--rows", "new.csv", "--out", "alone.csv"]).ok();
    let (with, without) = (accuracy(&found), accuracy(&rows(at, "alone.csv")));
    assert!(with > 0.85 && with > without + 0.1, "{with} {without}");

    // The same undirected edges in another order, listed twice, in the other direction.
    let (nodes, edges) = ("new.csv", "edges.csv");
    let turned = |file: &str, swap: bool| {
        let text = std::fs::read_to_string(at.join(file)).expect("a table");
        let mut lines: Vec<String> = text.lines().skip(1).map(String::from).collect();
        lines.reverse();
        if swap {
            let both = |line: &String| line.split_once(',').map(|(a, b)| format!("{b},{a}"));
            lines.extend(lines.clone().iter().filter_map(both));
        }
        format!("{}\n{}\n", text.lines().next().expect("a header"), lines.join("\n"))
    };
    put(at, &[("n2.csv", turned(nodes, false).as_bytes()), ("e2.csv", turned(edges, true).as_bytes())]);
    let again =
        ["predict", "r", "--new", "n2.csv", "--edges", "e2.csv", "--ledger", "b.db", "--date", "2026-01-31"];
    assert!(progap_in(at, &[&again[..], &["--out", "p2.csv"]].concat()).success);
    assert_eq!(rows(at, "p2.csv"), found);
    assert_eq!(runs(at).0, charged);

    // Other edges of the same nodes: a question of its own, with other noise, that is charged.
    let text = std::fs::read_to_string(at.join(edges)).expect("a table");
    let fewer = text.trim_end().rsplit_once('\n').expect("lines").0;
    put(at, &[("e3.csv", fewer.as_bytes())]);
    let other =
        ["predict", "r", "--new", "new.csv", "--edges", "e3.csv", "--ledger", "b.db", "--out", "p3.csv"];
    progap_in(at, &other).refused(&["asked about before with other edges", "--again"]);
    assert!(!at.join("p3.csv").exists() && runs(at).0 == charged);
    assert!(progap_in(at, &[&other[..], &["--again", "monday"]].concat()).success);
    let (more, dearer) = runs(at);
    assert!(more == charged + 1 && dearer > spent * 1.2, "{dearer}");
    let third = rows(at, "p3.csv");
    assert!(found.iter().all(|(id, row)| third[id] != *row), "the noise is new");
    // Under another name the same edges have other noise as well, and what is left does not pay for it.
    let mut refused = 0;
    for name in 0..8 {
        let (out, name) = (format!("q{name}.csv"), format!("day {name}"));
        let run = progap_in(at, &[&other[..7], &["b.db", "--again", &name, "--out", &out]].concat());
        refused += usize::from(!run.success);
        assert!(run.success == at.join(&out).exists());
        if !run.success {
            run.refused(&["this run is refused", "what is left"]);
        }
    }
    assert!(refused > 0);
    progap_in(at, &["ledger", "check", "b.db"]).ok();
}

#[test]
fn what_lies_beside_the_predictions_is_verified() {
    let place = folder();
    let at = place.path();
    trained(at);
    assert!(progap_in(at, &ask(&["--out", "p.csv"])).success);
    let found = progap_in(at, &["verify", "p.csv"]).ok();
    for part in ["epsilon", "queries", "SHA-256", "ledger"] {
        assert!(found.contains(part), "{part}: {found}");
    }
    let file = at.join("p.csv.privacy.json");
    let text = std::fs::read_to_string(&file).expect("a statement");
    let change = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}: {text}");
        std::fs::write(&file, text.replacen(from, to, 1)).expect("written");
        let run = progap_in(at, &["verify", "p.csv"]);
        assert!(!run.success && run.stderr.contains("must not be trusted"), "{from}: {}", run.stdout);
    };
    let statement: Value = serde_json::from_str(&text).expect("JSON");
    let epsilon = statement["epsilon"].as_f64().expect("epsilon");
    change("\"sigma\": ", "\"sigma\": 9");
    let half = format!("\"epsilon\": {}", epsilon / 2.0);
    change(&format!("\"epsilon\": {epsilon}"), &half);
    change("no more than epsilon", "no more than half of epsilon");
    std::fs::write(&file, &text).expect("written");
    let table = std::fs::read_to_string(at.join("p.csv")).expect("a table");
    std::fs::write(at.join("p.csv"), table.replacen(",a,", ",b,", 1)).expect("written");
    assert!(!progap_in(at, &["verify", "p.csv"]).success);
}

#[test]
fn what_cannot_be_asked_is_refused_in_one_sentence() {
    let place = folder();
    let at = place.path();
    trained(at);
    let before = runs(at);
    let with = |nodes: &str, edges: &str, parts: &[&str]| {
        put(at, &[("n.csv", nodes.as_bytes()), ("e.csv", edges.as_bytes())]);
        let run =
            ["predict", "r", "--new", "n.csv", "--edges", "e.csv", "--ledger", "b.db", "--out", "x.csv"];
        progap_in(at, &run).refused(parts);
        assert!(!at.join("x.csv").exists() && !at.join("x.csv.privacy.json").exists());
    };
    with("id,x\np0,1\n", "source,target\np0,p1\n", &["n.csv", "\"p0\" already"]);
    with("id,x\nz,1\n", "source,target\nz,nobody\n", &["e.csv", "nobody", "row 2"]);
    with("id,x\nz,1\n", "source,target\nz,p1\np1,p2\n", &["e.csv", "\"p1\" -> \"p2\"", "trained on it"]);
    with("id,y\nz,1\n", "source,target\nz,p1\n", &["n.csv", "\"x\""]);
    with("id,x\nz,text\n", "source,target\nz,p1\n", &["n.csv", "none of its rows"]);
    let missing = ["predict", "r", "--new", "new.csv", "--out", "x.csv"];
    let run = progap_in(at, &missing);
    assert!(
        !run.success && run.stderr.contains("--edges") && run.stderr.contains("--ledger"),
        "{}",
        run.stderr
    );
    // A ledger that knows nothing of the release.
    progap_in(at, &["ledger", "init", "other.db", "--data", "data", "--epsilon", "4", "--delta", DELTA]).ok();
    let other = [&ASK[..7], &["other.db", "--out", "x.csv"]].concat();
    progap_in(at, &other).refused(&["other.db", "not charged to this ledger"]);
    assert_eq!(runs(at), before);

    let release = |settings: &[&str], parts: &[&str]| {
        let train = ["train", "data", "--quiet", "--out", "s"];
        let _ = std::fs::remove_dir_all(at.join("s"));
        let run = progap_in(at, &[&train[..], settings].concat());
        assert!(run.success, "{}", run.stderr);
        let run = [&["predict", "s"], &ASK[2..], &["--out", "x.csv"]].concat();
        let message = progap_in(at, &run);
        assert!(!message.success && message.stderr.lines().count() == 1, "{}", message.stderr);
        for part in parts {
            assert!(message.stderr.contains(part), "{part}: {}", message.stderr);
        }
    };
    release(&["--level", "node", "--epsilon", "8"], &["one more query about its sender", "edge level"]);
    release(&["--level", "none"], &["no noise"]);
    release(&["--seed", "1"], &["reproducible noise"]);
    release(&["--method", "progap", "--epochs", "2"], &["does not follow from a release"]);
    release(&["--method", "lpgnet", "--epochs", "2"], &["does not follow from a release", "features alone"]);
    assert_eq!(runs(at), before);
}

/// Some rows fit and some do not: those that do are asked about, and edges of the others join nobody.
#[test]
fn rows_that_do_not_fit_are_listed() {
    let place = folder();
    let at = place.path();
    trained(at);
    put(at, &[("n.csv", b"id,x\nz,1\ny,text\n"), ("e.csv", b"source,target\nz,p1\ny,p1\nz,y\n")]);
    let run = ["predict", "r", "--new", "n.csv", "--edges", "e.csv", "--ledger", "b.db", "--out", "x.json"];
    let run = progap_in(at, &run);
    assert!(!run.success && run.stderr.contains("1 of 2 rows"), "{}", run.stderr);
    let found: Value =
        serde_json::from_slice(&std::fs::read(at.join("x.json")).expect("predictions")).expect("JSON");
    assert!(found.as_array().is_some_and(|rows| rows.len() == 1 && rows[0]["id"] == "z"), "{found}");
    progap_in(at, &["verify", "x.json"]).ok();
    assert_eq!(runs(at).0, 2);
}
