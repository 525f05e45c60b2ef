//! `progap check`: likely mistakes, before anything is trained.

mod common;

use common::runs::workplace;
use common::{folder, progap_in, put};
use serde_json::Value;

/// Sixty people of two classes (or one) in four towns, with an age.
fn put_towns(at: &std::path::Path, classes: usize) {
    let (mut nodes, mut edges) = (String::from("id,label,town,age\n"), String::from("source,target\n"));
    for node in 0..60 {
        let town = ["Ayr", "Bath", "Cork", "Deal"][node * 7 % 4];
        nodes += &format!("{node},{},{town},{}\n", ["x", "y"][node % classes], 20 + node);
        edges += &format!("{node},{}\n", (node + 2) % 60);
    }
    put(at, &[("g/nodes.csv", nodes.as_bytes()), ("g/edges.csv", edges.as_bytes())]);
}

#[test]
fn at_node_level_what_rows_say_of_columns_is_named_or_refused() {
    let place = folder();
    let at = place.path();
    put_towns(at, 2);
    let check = |more: &[&str]| progap_in(at, &[&["check", "g", "--json"], more].concat());
    let node = check(&["--level", "node"]).json();
    assert!(codes(&node).contains(&"no-categories") && codes(&node).contains(&"no-missing"), "{node}");
    let cut = ["--level", "node", "--max-categories", "2"];
    let refused = check(&cut);
    let says = [
        "\"town\"",
        "most frequent is private at node level",
        "declare its categories in the file of columns",
    ];
    assert!(!refused.success && says.iter().all(|part| refused.stderr.contains(part)), "{}", refused.stderr);
    progap_in(at, &[&["train", "g", "--out", "r"][..], &cut].concat()).refused(&says);
    assert!(!at.join("r").exists(), "refused before anything is spent");
    check(&["--level", "edge", "--max-categories", "2"]).json();
    let columns = "[columns.town]\ncategories = [\"Ayr\", \"other\"]\n[columns.age]\nmissing = false\nbounds = [0, \
        120]\n";
    put(at, &[("c.toml", columns.as_bytes())]);
    let declared = check(&["--level", "node", "--columns", "c.toml"]).json();
    for code in ["no-categories", "no-missing", "no-bounds"] {
        assert!(!codes(&declared).contains(&code), "{declared}");
    }
}

#[test]
fn values_beyond_bounds_are_counted_where_features_are_public() {
    let place = folder();
    let at = place.path();
    put_towns(at, 2);
    let bounds = ["--bounds", "age=0:30", "--epochs", "1", "--method", "progap-labels"];
    let found =
        |more: &[&str]| progap_in(at, &[&["train", "g", "--json"], &bounds[..], more].concat()).json();
    let edge = found(&["--out", "edge"]);
    let text = edge["owner"]["findings"].to_string();
    assert!(
        text.contains("beyond-bounds") && text.contains("49 of 60 values of \\\"age\\\" (0 to 30)"),
        "{edge}"
    );
    let shown = progap_in(at, &[&["check", "g"], &bounds[..2]].concat()).ok();
    assert!(shown.contains("beyond the declared bounds"), "{shown}");
    let node = found(&["--level", "node", "--out", "node"]);
    assert!(!node.to_string().contains("beyond-bounds"), "their number is private: {node}");
}

#[test]
fn one_class_is_refused_before_anything_is_spent_where_labels_are_public() {
    let place = folder();
    let at = place.path();
    put_towns(at, 1);
    for level in ["none", "edge"] {
        let train = ["train", "g", "--level", level, "--out", "r"];
        progap_in(at, &train).refused(&["all training nodes have the class \"x\""]);
        assert!(!at.join("r").exists());
    }
    // Whether there is a release must not tell of private labels.
    progap_in(at, &["check", "g", "--level", "node"]).ok();
}

fn codes(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().expect("findings").iter();
    findings.filter_map(|finding| finding["code"].as_str()).collect()
}

#[test]
fn nothing_is_found_where_there_is_nothing_and_nothing_is_written() {
    let place = workplace();
    let at = place.path();
    let report = progap_in(at, &["check", "g.progap", "--json"]).json();
    assert!(report["findings"].as_array().is_some_and(Vec::is_empty), "{report}");
    assert_eq!((&report["unit"], report["delta"].as_f64()), (&"edge-undirected".into(), Some(1e-6)));
    assert!(report["audience"].as_str().is_some_and(|audience| audience.contains("data owner alone")));
    let shown = progap_in(at, &["check", "g.progap"]).ok();
    assert!(shown.contains("findings") && shown.contains("data owner alone"), "{shown}");
    assert_eq!(std::fs::read_dir(at).expect("a folder").count(), 1, "the data and nothing else");
}

#[test]
fn findings_are_no_failure_and_unusable_data_is_one() {
    let place = folder();
    let at = place.path();
    let mut nodes = String::from("id,label,name,split\n");
    let mut edges = String::from("source,target\n");
    for node in 0..80 {
        let part = ["train", "train", "val", "test"][node % 4];
        let label = if node == 2 { "rare" } else { ["x", "y"][node % 2] };
        nodes += &format!("p{node}@example.org,{label},Name {node},{part}\n");
        if node > 1 {
            edges += &format!("p{node}@example.org,p{}@example.org\n", node - 1);
        }
    }
    edges += "p5@example.org,p4@example.org\np7@example.org,p7@example.org\n";
    put(at, &[("g/nodes.csv", nodes.as_bytes()), ("g/edges.csv", edges.as_bytes())]);
    // No training node is rare, which private data must not decide at node level.
    let refused = progap_in(at, &["check", "g"]).refused(&["\"name\"", "80 different values", "--drop name"]);
    assert!(refused.contains("--text name:64 or --categorical name"), "{refused}");
    let found = progap_in(at, &["check", "g", "--categorical", "name", "--json"]);
    let report: Value = serde_json::from_str(&found.stdout).expect("JSON");
    let expected = [
        "repeated-edges",
        "self-loops",
        "id-order-leak",
        "no-senders",
        "nearly-unique",
        "id-addresses",
        "class-without-training",
    ];
    assert_eq!(codes(&report), expected, "{report}");
    assert_eq!(found.success, report["unusable"].is_null(), "{}", found.stderr);

    let usable = nodes.replace(",rare,", ",x,");
    put(at, &[("g/nodes.csv", usable.as_bytes())]);
    let shown = progap_in(at, &["check", "g", "--categorical", "name"]).ok();
    assert!(
        shown.contains("caution") && shown.contains("79 values") || shown.contains("80 values"),
        "{shown}"
    );
    // The same is said by training, for the owner.
    let summary = progap_in(at, &["train", "g", "--categorical", "name", "--epochs", "1", "--out", "r"]).ok();
    assert!(
        summary.contains("Private: for the data owner") && summary.contains("e-mail addresses"),
        "{summary}"
    );
    for file in ["privacy.json", "config.toml", "manifest.json"] {
        let text = std::fs::read_to_string(at.join("r").join(file)).expect("a file of the release");
        assert!(!text.contains("e-mail") && !text.contains("repeat"), "{file} is for everyone: {text}");
    }

    // Data that cannot be trained on, and data that is not there.
    put(at, &[("g/nodes.csv", usable.replace("id,label,name", "id,label,x").as_bytes())]);
    put(at, &[("bad/nodes.csv", b"id,label\n1,a\n2,\n"), ("bad/edges.csv", b"source,target\n1,2\n")]);
    let bad = progap_in(at, &["check", "bad", "--json"]);
    assert!(!bad.success && bad.stderr.starts_with("error: ") && bad.stderr.lines().count() == 1);
    let report: Value = serde_json::from_str(&bad.stdout).expect("JSON");
    assert!(report["unusable"].is_string(), "{report}");
    progap_in(at, &["check", "nothing"]).refused(&["nothing"]);
}

/// One person as two nodes: the same row and the same neighbours.
#[test]
fn nodes_that_look_like_one_person_are_found() {
    let place = folder();
    let at = place.path();
    let (mut nodes, mut edges) = (String::from("id,label,a\n"), String::from("source,target\n"));
    for node in 0..60 {
        nodes += &format!("{node},{},{}\n", ["x", "y"][node % 2], node / 2 % 5);
        for step in [2, 5, 11] {
            edges += &format!("{node},{}\n", (node + step) % 60);
        }
    }
    put(at, &[("g/nodes.csv", nodes.as_bytes()), ("g/edges.csv", edges.as_bytes())]);
    let alone = progap_in(at, &["check", "g", "--json"]).json();
    assert!(!codes(&alone).contains(&"listed-twice"), "{alone}");
    for step in [2, 5, 11] {
        edges += &format!("again,{}\n{},again\n", (7 + step) % 60, (60 + 7 - step) % 60);
    }
    nodes += "again,y,3\n";
    put(at, &[("g/nodes.csv", nodes.as_bytes()), ("g/edges.csv", edges.as_bytes())]);
    let twice = progap_in(at, &["check", "g", "--json"]).json();
    assert!(codes(&twice).contains(&"listed-twice"), "{twice}");
    let shown = progap_in(at, &["check", "g"]).ok().split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "2 nodes have the features, label and neighbours of another one",
        "\"7\" and \"again\"",
        "2 times as large",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
}
