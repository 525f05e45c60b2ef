//! `progap check`: likely mistakes, before anything is trained.

mod common;

use common::runs::workplace;
use common::{folder, progap_in, put};
use serde_json::Value;

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
        let label = if node == 2 { "rare" } else { ["x", "y"][node / 2 % 2] };
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
        shown.contains("caution: ") && shown.contains("79 values") || shown.contains("80 values"),
        "{shown}"
    );
    // The same is said by training, for the owner.
    let summary = progap_in(at, &["train", "g", "--categorical", "name", "--epochs", "1", "--out", "r"]).ok();
    assert!(summary.contains("owner only") && summary.contains("e-mail addresses"), "{summary}");
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
