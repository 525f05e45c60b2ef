//! Training, predicting and verifying as people do: by the command.

mod common;

use common::progap_in;
use common::runs::{aggregates, contents, workplace};

#[test]
fn train_predict_verify_and_inspect() {
    let place = workplace();
    let run = ["train", "g.progap", "--epochs", "10", "--out", "r", "--json"];
    let report = progap_in(place.path(), &run).json();
    for key in
        ["test_accuracy", "val_accuracy", "epsilon", "delta", "seconds", "cpu_seconds", "peak_rss_bytes"]
    {
        assert!(report[key].is_number(), "{key} in {report}");
    }
    assert!(report["epsilon"].as_f64().is_some_and(|epsilon| epsilon <= 1.0 && epsilon > 0.99), "{report}");
    assert_eq!(report["release"], "r");
    progap_in(place.path(), &["verify", "r"]).ok();
    assert!(progap_in(place.path(), &["inspect", "r"]).ok().contains("single directed edge"));
    for file in ["p.csv", "p.json", "p.parquet"] {
        progap_in(place.path(), &["predict", "r", "--out", file]).ok();
        assert!(place.path().join(file).exists());
    }
    let two = progap_in(place.path(), &["predict", "r", "--nodes", "3,7"]).ok();
    assert_eq!(two.lines().count(), 3);
    let json = std::fs::read(place.path().join("p.json")).expect("predictions");
    let all: Vec<serde_json::Value> = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(all.len(), 1500);
    let (header, row) = (two.lines().next().expect("a header"), two.lines().nth(1).expect("a row"));
    for (name, cell) in header.split(',').zip(row.split(',')) {
        match name {
            "id" | "class" => assert_eq!(all[3][name], cell),
            _ => {
                let class = name.trim_start_matches("p(").trim_end_matches(')');
                assert_eq!(all[3]["probabilities"][class].to_string().parse(), cell.parse::<f64>());
            }
        }
    }
    progap_in(place.path(), &["predict", "r", "--nodes", "nobody"]).refused(&["nobody"]);
    std::fs::write(place.path().join("r/metrics.json"), "{}").expect("tampered");
    progap_in(place.path(), &["verify", "r"]).refused(&["metrics.json", "checksum"]);
}

#[test]
fn a_release_without_the_rows_of_its_nodes() {
    let place = workplace();
    let at = place.path();
    let run = ["train", "g.progap", "--level", "node", "--epochs", "1", "--batch-size", "100", "--out", "r"];
    progap_in(at, &[&run[..], &["--quiet"]].concat()).ok();
    progap_in(at, &["predict", "r", "--nodes", "3"]).ok();
    std::fs::remove_dir_all(at.join("r/private")).expect("kept back");
    assert!(progap_in(at, &["verify", "r"]).ok().contains("kept back"));
    progap_in(at, &["predict", "r"]).refused(&["private/rows.progap", "taken out"]);
}

#[test]
fn the_settings_of_a_release_run_again() {
    let place = workplace();
    let at = place.path();
    progap_in(at, &["train", "g.progap", "--epochs", "4", "--depth", "1", "--out", "first", "--quiet"]).ok();
    let config = ["train", "--config", "first/config.toml", "--json", "--out"];
    let again = progap_in(at, &[&config[..], &["again"]].concat()).json();
    assert_eq!(again["private"], true, "the seed of the split must not become one of the noise");
    assert_eq!(contents(&at.join("first"))["config.toml"], contents(&at.join("again"))["config.toml"]);
    assert_ne!(aggregates(&at.join("first")), aggregates(&at.join("again")), "noise is drawn anew");

    let seeded = progap_in(at, &[&config[..], &["seeded", "--seed", "3"]].concat()).json();
    assert_eq!(seeded["private"], false);
    progap_in(at, &["train", "--config", "seeded/config.toml", "--out", "same", "--quiet"]).ok();
    assert!(contents(&at.join("seeded")) == contents(&at.join("same")));
}

#[test]
fn repeats_give_a_mean_and_an_interval() {
    let place = workplace();
    let run = ["train", "g.progap", "--epochs", "5", "--repeats", "3", "--seed", "1", "--out", "r", "--json"];
    let report = progap_in(place.path(), &run).json();
    let runs = report["runs"].as_array().expect("runs");
    let mean = runs.iter().filter_map(|run| run["test_accuracy"].as_f64()).sum::<f64>() / runs.len() as f64;
    assert_eq!(runs.len(), 3);
    assert!((report["test_accuracy"].as_f64().expect("a mean") - mean).abs() < 1e-12);
    assert_eq!(report["private"], false, "a seed makes noise removable");
}
