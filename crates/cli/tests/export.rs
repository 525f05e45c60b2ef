//! `progap export`: what may leave the house, and what does not.

mod common;

use std::path::Path;

use common::progap_in;
use common::runs::{contents, workplace};
use progap::Release;

const NODE: [&str; 6] = ["--level", "node", "--epochs", "1", "--batch-size", "100"];

fn train(at: &Path, out: &str, settings: &[&str]) {
    progap_in(at, &[&["train", "g.progap", "--quiet", "--out", out], settings].concat()).ok();
}

fn names(at: &Path, folder: &str) -> Vec<String> {
    contents(&at.join(folder)).into_keys().collect()
}

#[test]
fn an_export_leaves_out_rows_and_says_what_it_cannot_do() {
    let place = workplace();
    let at = place.path();
    train(at, "r", &["--epochs", "3", "--depth", "1"]);
    let shown = progap_in(at, &["export", "r", "out/e", "--date", "2026-01-31"]).ok();
    assert!(shown.contains("2026-01-31") && shown.contains("features and labels of all nodes"), "{shown}");
    let public = ["aggregates/1.npy", "config.toml", "export.json", "manifest.json", "metrics.json"];
    let public =
        [&public[..], &["model.safetensors", "nodes.progap", "privacy.json", "report.html", "schema.json"]]
            .concat();
    assert_eq!(names(at, "out/e"), public);
    assert_eq!(std::fs::read_dir(at.join("out")).expect("a folder").count(), 1, "nothing lies beside it");
    let export = Release::open(&at.join("out/e")).expect("a release");
    assert_eq!(export.nodes().features().columns(), 0);
    assert!(
        export.nodes().feature_names().is_empty() && export.nodes().labels().iter().all(|&label| label == 0)
    );
    let release = Release::open(&at.join("r")).expect("a release");
    assert!(export.fits(release.nodes()), "ids, class names and split stay");

    let verified = progap_in(at, &["verify", "out/e"]).ok();
    assert!(
        verified.contains("2026-01-31, without the rows") && verified.contains("not recomputed"),
        "{verified}"
    );
    let note: serde_json::Value =
        serde_json::from_slice(&contents(&at.join("out/e"))["export.json"]).expect("JSON");
    let hash = note["sha256"].as_str().expect("a hash");
    assert!(verified.contains(hash) && shown.contains(hash) && hash.len() == 64);
    let inspected = progap_in(at, &["inspect", "out/e"]).ok();
    assert!(inspected.contains("exported on") && inspected.contains("predictions need them"), "{inspected}");
    progap_in(at, &["predict", "out/e"]).refused(&[
        "out/e",
        "rows of the nodes",
        "ask for an export that has them",
    ]);
    progap_in(at, &["report", "out/e", "--out", "page"]).ok();
    let again = progap_in(at, &["export", "out/e", "second", "--with-rows"]);
    again.refused(&["out/e", "rows of the nodes are not in this release"]);
    progap_in(at, &["export", "out/e", "second", "--date", "2026-01-31"]).ok();
    assert!(
        contents(&at.join("second")) == contents(&at.join("out/e")),
        "an export of an export is the same"
    );
}

#[test]
fn an_export_with_rows_predicts_as_the_release_does() {
    let place = workplace();
    let at = place.path();
    train(at, "r", &["--epochs", "3"]);
    let made = progap_in(at, &["export", "r", "e", "--with-rows", "--json"]).json();
    assert_eq!((&made["rows"], &made["export"]), (&true.into(), &"e".into()));
    // All but the name of the release, which is the hash of its manifest.
    let predict = |folder| -> Vec<(String, String)> {
        let said = progap_in(at, &["predict", folder]).ok();
        let row = |row: &str| {
            let cells: Vec<&str> = row.rsplitn(3, ',').collect();
            (cells[2].to_string(), cells[0].to_string())
        };
        said.lines().map(row).collect()
    };
    assert_eq!(predict("e"), predict("r"));
    let verified = progap_in(at, &["verify", "e"]).ok();
    assert!(
        verified.contains("with the rows") && verified.contains("on the test nodes, recomputed"),
        "{verified}"
    );
    let day = made["date"].as_str().expect("a day");
    assert!(day.parse::<progap::release::Date>().is_ok(), "{day}");
    assert!(contents(&at.join("e"))["report.html"].windows(day.len()).any(|text| text == day.as_bytes()));
}

#[test]
fn what_is_private_at_node_level_stays() {
    let place = workplace();
    let at = place.path();
    train(at, "r", &NODE);
    train(at, "d", &[&NODE[..], &["--method", "dp-gnn"]].concat());
    progap_in(at, &["export", "r", "e", "--with-rows"]).refused(&["private at node level", "--with-rows"]);
    assert!(!at.join("e").exists());
    for (release, needs) in [("r", "private/rows.progap"), ("d", "private/aggregates-1.npy")] {
        let out = format!("{release}-out");
        progap_in(at, &["export", release, &out]).ok();
        let names = names(at, &out);
        assert!(names.iter().all(|name| !name.contains("private") && !name.contains("metrics")), "{names:?}");
        progap_in(at, &["verify", &out]).ok();
        progap_in(at, &["predict", &out]).refused(&[needs, "data owner alone"]);
        let page = String::from_utf8(contents(&at.join(&out))["report.html"].clone()).expect("text");
        assert!(
            page.contains("Left out") && !page.contains("peak memory") && !page.contains("id=\"accuracy\"")
        );
    }
}

#[test]
fn nothing_is_replaced_and_nothing_is_left_half_written() {
    let place = workplace();
    let at = place.path();
    train(at, "r", &["--epochs", "1", "--depth", "1"]);
    std::fs::create_dir(at.join("there")).expect("a folder");
    let before = (names(at, "."), contents(&at.join("r")));
    progap_in(at, &["export", "r", "there"]).refused(&["there", "nothing is replaced"]);
    progap_in(at, &["export", "r", "r/x/y"]).refused(&["r/x/y", "release"]);
    progap_in(at, &["export", "there", "new"]).refused(&["there", "no release"]);
    let late = progap_in(at, &["export", "r", "new", "--date", "2026-02-30"]);
    assert!(!late.success && late.stderr.contains("is no day"), "{}", late.stderr);
    assert!(before == (names(at, "."), contents(&at.join("r"))) && !at.join("r/x").exists());
    // A statement that does not add up is not passed on, though its checksums do.
    let file = |name: &str| at.join("r").join(name);
    let statement = std::fs::read_to_string(file("privacy.json"))
        .expect("text")
        .replace("\"epsilon\": 0.9", "\"epsilon\": 0.4");
    std::fs::write(file("privacy.json"), &statement).expect("written");
    progap_in(at, &["export", "r", "new"]).refused(&["privacy.json", "checksum"]);
    assert_eq!(std::fs::read_dir(at).expect("a folder").count(), 3, "g.progap, r, there");
}

#[test]
fn an_export_that_was_changed_is_found() {
    let place = workplace();
    let at = place.path();
    train(at, "r", &["--epochs", "1", "--depth", "1"]);
    progap_in(at, &["export", "r", "e", "--date", "2026-01-31"]).ok();
    let whole = contents(&at.join("e"));
    for name in ["export.json", "manifest.json"] {
        let text = String::from_utf8(whole[name].clone()).expect("text").replace("2026-01-31", "2026-02-01");
        std::fs::write(at.join("e").join(name), text).expect("written");
        let found = progap_in(at, &["verify", "e"]);
        assert!(
            !found.success && found.stdout.contains("belongs to another manifest"),
            "{name}: {}",
            found.stdout
        );
        std::fs::write(at.join("e").join(name), &whole[name]).expect("written");
    }
    std::fs::write(at.join("e/report.html"), "a page").expect("written");
    progap_in(at, &["verify", "e"]).refused(&["report.html", "checksum"]);
    std::fs::write(at.join("e/report.html"), &whole["report.html"]).expect("written");
    for stranger in ["private/cost.json", "private/manifest.json", "private/rows.progap"] {
        std::fs::create_dir_all(at.join("e/private")).expect("a folder");
        std::fs::write(at.join("e").join(stranger), "{}").expect("written");
        let found = progap_in(at, &["verify", "e"]);
        assert!(!found.success && found.stdout.contains(stranger), "{stranger}: {}", found.stdout);
        std::fs::remove_file(at.join("e").join(stranger)).expect("removed");
    }
    progap_in(at, &["verify", "e"]).ok();
}
