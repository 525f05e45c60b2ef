//! The contract of `docs/formats.md`: what version 1 of each public format holds, and how a reader meets version 2.

mod common;

use common::*;
use progap::ledger::{self, Ledger};
use progap::{ErrorKind, Level, Release, Settings};
use progap_privacy::{Event, Unit};
use rusqlite::Connection;
use serde_json::{Value, json};

/// A tree with every type of event, as it is written for ever.
fn events() -> Value {
    let noise = json!({"type": "gaussian", "sigma": 4.0, "sensitivity": 1.0});
    json!({"type": "composed", "events": [
        noise,
        {"type": "laplace", "scale": 2.0, "sensitivity": 1.0},
        {"type": "randomized-response", "true_positive": 0.75, "false_positive": 0.25},
        {"type": "poisson-sampled", "rate": 0.01, "event": noise},
        {"type": "self-composed", "event": noise, "count": 3},
        {"type": "parallel", "events": [noise, noise]},
        {"type": "sampled-without-replacement", "population": 1000, "batch_size": 10, "max_terms": 5, "sigma": 4.0,
         "term_sensitivity": 1.0},
        {"type": "private-selection", "eta": 1.0, "gamma": 0.1, "event": noise},
        {"type": "non-private"}]})
}

#[test]
fn events_of_version_1_are_read_and_written_as_they_are() {
    let tree = Event::from_json(&events().to_string()).expect("a tree");
    let written: Value = serde_json::from_str(&tree.to_json()).expect("JSON");
    assert_eq!(written, events());
    for (unit, name) in
        [(Unit::Edge, "edge"), (Unit::EdgeUndirected, "edge-undirected"), (Unit::Node, "node")]
    {
        assert_eq!(serde_json::to_value(unit).expect("JSON"), json!(name));
    }
}

#[test]
fn an_event_of_a_newer_version_is_named_and_never_skipped() {
    let mut tree = events();
    tree["events"][3]["event"] = json!({"type": "tree-aggregation", "steps": 4});
    let error = Event::from_json(&tree.to_string()).expect_err("unknown");
    assert_eq!(error, progap_privacy::Error::UnknownEvent("tree-aggregation".into()));
    assert_eq!(
        error.to_string(),
        "the tree has the event \"tree-aggregation\", which this version of the program does not know: update it"
    );
}

/// Changes a file of a release, and its checksum as whoever wrote it would have.
fn rewrite(folder: &std::path::Path, name: &str, from: &str, to: &str) {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("read");
    let (text, manifest) = (read(name), read("manifest.json"));
    let changed = text.replacen(from, to, 1);
    assert_ne!(changed, text, "{name}");
    std::fs::write(folder.join(name), &changed).expect("written");
    if name != "manifest.json" {
        let manifest = manifest.replace(&checksum(text.as_bytes()), &checksum(changed.as_bytes()));
        std::fs::write(folder.join("manifest.json"), manifest).expect("written");
    }
}

fn checksum(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_release_of_a_newer_version_is_refused_before_anything_of_it_is_used() {
    let settings = Settings {
        depth: 1,
        epochs: 1,
        seed: Some(1),
        ..Settings::of(progap::MethodKind::Progap, Level::Edge)
    };
    let (_keep, folder) = folder();
    train(&settings, &folder).expect("trained");
    for (name, from, to, what) in [
        ("config.toml", "version = 1", "version = 2\nunheard_of = 3", "the record of settings"),
        ("privacy.json", "\"version\": 1,", "\"version\": 2, \"unheard_of\": 3,", "the statement"),
        ("manifest.json", "\"version\": 1,", "\"version\": 2, \"unheard_of\": 3,", "the release"),
    ] {
        rewrite(&folder, name, from, to);
        let error = Release::open(&folder).expect_err("newer");
        assert!(matches!(error.kind(), ErrorKind::Newer { found: 2, .. }), "{error}");
        let file = folder.join(name);
        let said = format!(
            "{}: {what} has version 2, and this program reads version 1; update this program",
            file.display()
        );
        assert_eq!(error.to_string(), said);
    }
}

#[test]
fn a_statement_of_version_1_has_these_fields() {
    let (_keep, folder) = folder();
    let settings = Settings { depth: 1, epochs: 1, ..Settings::of(progap::MethodKind::Progap, Level::Edge) };
    train(&settings, &folder).expect("trained");
    let statement: Value = read_json(&folder, "privacy.json");
    let required = [
        "accountant",
        "delta",
        "epsilon",
        "event",
        "feature_columns",
        "in_words",
        "mechanisms",
        "nodes",
        "not_covered",
        "private",
        "public",
        "randomness",
        "selection",
        "unit",
        "version",
    ];
    let object = statement.as_object().expect("an object");
    for name in required {
        assert!(object.contains_key(name), "{name} is gone");
    }
    let optional =
        ["planned", "epsilon_undirected", "epsilon_directed", "relation", "choice", "weight_bound"];
    let unknown =
        object.keys().find(|name| !required.contains(&name.as_str()) && !optional.contains(&name.as_str()));
    assert_eq!(unknown, None, "a new field needs a word in docs/formats.md");
    Event::from_json(&statement["event"].to_string()).expect("the tree of an accountant");
}

fn read_json(folder: &std::path::Path, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join(name)).expect("read")).expect("JSON")
}

#[test]
fn a_ledger_of_a_newer_version_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger");
    drop(Ledger::create(&path).expect("a ledger"));
    Connection::open(&path).and_then(|file| file.execute_batch("PRAGMA user_version = 2")).expect("changed");
    let before = std::fs::read(&path).expect("read");
    let error = Ledger::open(&path).expect_err("newer");
    assert!(matches!(error, ledger::Error::Newer { found: 2, known: 1, .. }), "{error}");
    assert!(
        error.to_string().ends_with("is a ledger of version 2, and this program knows version 1: update it"),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).expect("read"), before);
}
