//! Predictions about nodes that were not there in training.

mod common;

use std::path::Path;

use common::{folder, progap_in, put};

const HEADER: &str = "id,label,pay,town,joined,note,age";

/// A hundred people with all kinds of columns; pay is in a unit of its own, and some ages are missing.
fn people(with_labels: bool) -> String {
    let mut table =
        if with_labels { format!("{HEADER}\n") } else { "age,note,id,town,joined,pay,more\n".into() };
    for k in 0..100u32 {
        let rich = k % 3 == 0;
        let label = if rich { "rich" } else { "poor" };
        // Far from zero: 32 bits would not hold the differences.
        let pay = 1_000_000_000_000u64 + u64::from(if rich { 90_000 + 13 * k } else { 20_000 + 17 * k });
        let town = ["Oslo", "Rome", "Bern"][(k % 7 % 3) as usize];
        let joined = format!("20{:02}-0{}-11", 10 + k % 9, 1 + k % 8);
        let note = ["likes red cars", "a blue bicycle", "cars and trains"][(k % 5 % 3) as usize];
        let age = if k % 10 == 0 { String::new() } else { (20 + k % 50).to_string() };
        table += &match with_labels {
            true => format!("p{k},{label},{pay},{town},{joined},{note},{age}\n"),
            false => format!("{age},{note},p{k},{town},{joined},{pay},unused {k}\n"),
        };
    }
    table
}

fn trained(place: &Path, settings: &[&str], out: &str) {
    let edges: String = (0..100).map(|k| format!("p{k},p{}\n", (k * 7 + 3) % 100)).collect();
    let (nodes, edges) = (people(true), format!("source,target\n{edges}"));
    put(place, &[("data/nodes.csv", nodes.as_bytes()), ("data/edges.csv", edges.as_bytes())]);
    put(place, &[("later.csv", people(false).as_bytes())]);
    let common =
        ["train", "data", "--text", "note", "--number", "pay", "--seed", "1", "--quiet", "--out", out];
    let run = progap_in(place, &[&common[..], settings].concat());
    assert!(run.success, "{}", run.stderr);
}

/// Ids with their probabilities.
fn predictions(table: &str) -> Vec<(String, Vec<f64>)> {
    let row = |line: &str| {
        let mut cells = line.split(',');
        let id = cells.next().expect("an id").to_string();
        (id, cells.skip(2).map(|p| p.parse().expect("a number")).collect())
    };
    table.lines().skip(1).map(row).collect()
}

#[test]
fn rows_of_another_table_become_the_same_features() {
    let place = folder();
    let at = place.path();
    for (level, out) in [("none", "none"), ("edge", "edge"), ("node", "node")] {
        let epsilon: &[&str] = if level == "none" { &[] } else { &["--epsilon", "8"] };
        let settings = [&["--level", level, "--method", "mlp", "--epochs", "5"][..], epsilon].concat();
        // A perceptron reads rows alone: about its own nodes it says the same either way.
        let settings: Vec<&str> = if level == "edge" { settings[..6].to_vec() } else { settings };
        trained(at, &settings, out);
        let own = progap_in(at, &["predict", out]);
        let later = progap_in(at, &["predict", out, "--rows", "later.csv"]);
        assert!(own.success && later.success, "{}{}", own.stderr, later.stderr);
        let (mut own, mut later) = (predictions(&own.stdout), predictions(&later.stdout));
        // A release lists nodes in the order of their ids, and later rows stay as they are.
        own.sort_by(|a, b| a.0.cmp(&b.0));
        later.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(own.len(), later.len());
        for ((id, own), (other, later)) in own.iter().zip(&later) {
            assert_eq!(id, other);
            assert!(
                own.iter().zip(later).all(|(a, b)| (a - b).abs() < 1e-4),
                "{level} {id}: {own:?} {later:?}"
            );
        }
    }
}

#[test]
fn methods_that_read_the_graph_predict_later_nodes_by_their_features() {
    let place = folder();
    let at = place.path();
    for method in ["views", "progap", "gap", "sage", "lpgnet"] {
        let level = if method == "sage" { "none" } else { "edge" };
        trained(at, &["--level", level, "--method", method], method);
        let run =
            progap_in(at, &["predict", method, "--rows", "later.csv", "--out", &format!("{method}.json")]);
        assert!(run.success, "{method}: {}", run.stderr);
        let text = std::fs::read_to_string(at.join(format!("{method}.json"))).expect("predictions");
        let rows: Vec<serde_json::Value> = serde_json::from_str(&text).expect("JSON");
        assert_eq!(rows.len(), 100);
        assert!(rows.iter().all(|row| row["labelled"] == false));
    }
    // Pay alone tells the class.
    let text = progap_in(at, &["predict", "views", "--rows", "later.csv"]);
    let right = text
        .stdout
        .lines()
        .skip(1)
        .enumerate()
        .filter(|(k, line)| line.split(',').nth(1) == Some(if k % 3 == 0 { "rich" } else { "poor" }));
    assert!(right.count() > 90, "{}", text.stdout);
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let place = folder();
    let at = place.path();
    trained(at, &["--level", "none", "--method", "mlp", "--epochs", "2"], "release");
    let good = "id,pay,town,joined,note,age\n";
    let cases: [(&str, &[&str]); 7] = [
        ("id,town,joined,note,age\na,Oslo,2011-01-11,red,3\n", &["pay", "no column"]),
        (&format!("{good}a,5,Paris,2011-01-11,red,3\n"), &["row 2", "town", "Paris", "training"]),
        (&format!("{good}a,much,Oslo,2011-01-11,red,3\n"), &["pay"]),
        (&format!("{good}a,,Oslo,2011-01-11,red,3\n"), &["row 2", "pay", "missing"]),
        (&format!("{good}a,5,Oslo,2011-01-11,red,3\na,5,Oslo,2011-01-11,red,3\n"), &["row 3", "row 2"]),
        (good, &["no nodes"]),
        ("pay,town\n1,Oslo\n", &["id column"]),
    ];
    for (table, parts) in cases {
        put(at, &[("bad.csv", table.as_bytes())]);
        let said =
            progap_in(at, &["predict", "release", "--rows", "bad.csv", "--out", "p.csv"]).refused(parts);
        assert!(said.contains("bad.csv"), "{said}");
        assert!(!at.join("p.csv").exists());
    }
    // Ages were missing in training too; a table may hold no other.
    put(at, &[("one.csv", format!("{good}a,5,Oslo,2011-01-11,red,\n").as_bytes())]);
    assert_eq!(progap_in(at, &["predict", "release", "--rows", "one.csv"]).ok().lines().count(), 2);
    let both = progap_in(at, &["predict", "release", "--rows", "later.csv", "--nodes", "p1"]);
    assert!(!both.success && both.stderr.contains("cannot be used with"), "{}", both.stderr);
    progap_in(at, &["predict", "release", "--rows", "gone.csv"]).refused(&["gone.csv"]);
}
