//! Graphs that pass through memory instead of lying in it: the same bits, and no more memory than was allowed.
#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use common::{command, folder, progap_in};

/// A network whose features are dense and in half precision.
fn put_network(at: &Path, nodes: usize, columns: usize) {
    let (nodes, edges, columns) = (nodes.to_string(), (4 * nodes).to_string(), columns.to_string());
    let sizes = ["--nodes", &nodes, "--edges", &edges, "--dense", &columns, "--labelled", "0.05"];
    progap_in(at, &[&["data", "synth", "g.progap", "--communities", "20"], &sizes[..]].concat()).ok();
}

/// Everything in a release but what time and memory it took.
fn public(release: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for part in ["", "aggregates", "private"] {
        let Ok(entries) = std::fs::read_dir(release.join(part)) else { continue };
        for entry in entries.map(|entry| entry.expect("an entry")).filter(|entry| entry.path().is_file()) {
            let name = format!("{part}/{}", entry.file_name().to_string_lossy());
            // Each run has an id of its own, and took its own time.
            if !["cost.json", "manifest.json"].iter().any(|own| name.ends_with(own)) {
                files.insert(name, std::fs::read(entry.path()).expect("a file"));
            }
        }
    }
    files
}

#[test]
fn a_bound_on_memory_changes_no_bit_of_a_release() {
    let place = folder();
    let at = place.path();
    put_network(at, 20_000, 12);
    let cases: [&[&str]; 11] = [
        &["--method", "progap-views"],
        &["--method", "progap-labels", "--epochs", "3"],
        &["--method", "progap-labels", "--epochs", "3", "--messages", "embeddings", "--depth", "1"],
        &["--method", "gap", "--epochs", "3"],
        &["--method", "gap", "--epochs", "3", "--level", "none"],
        &["--method", "gap", "--epochs", "2", "--level", "node", "--epsilon", "8"],
        &["--method", "lpgnet", "--epochs", "3", "--epsilon", "4"],
        &["--method", "lpgnet", "--epochs", "3", "--level", "none"],
        &["--method", "mlp", "--epochs", "3"],
        &["--level", "node", "--epsilon", "8", "--epochs", "2"],
        &["--level", "none", "--method", "progap-labels", "--epochs", "3"],
    ];
    for case in cases {
        let train = |out: &str, more: &[&str]| {
            // Communities lie side by side.
            let order: &[&str] = if case.contains(&"none") { &[] } else { &["--order", "public"] };
            let all = [&["train", "g.progap", "--seed", "5", "--quiet", "--out", out], case, order, more];
            let all = all.concat();
            progap_in(at, &all).ok();
            public(&at.join(out))
        };
        let (held, streamed) = (train("held", &[]), train("streamed", &["--memory", "400M"]));
        assert!(held.len() >= 5 && held.keys().eq(streamed.keys()), "{case:?} {:?}", held.keys());
        for (name, content) in &held {
            assert!(content == &streamed[name], "{case:?} {name}");
        }
        let predictions = |more: &[&str]| progap_in(at, &[&["predict", "held"], more].concat());
        assert_eq!(predictions(&[]).stdout, predictions(&["--memory", "200M"]).stdout);
        for out in ["held", "streamed"] {
            std::fs::remove_dir_all(at.join(out)).expect("removed");
        }
    }
}

/// The peak memory of a command, in bytes, as the system saw it last.
fn peak(at: &Path, arguments: &[&str]) -> u64 {
    let mut child = command(at).args(arguments).stdout(Stdio::null()).spawn().expect("the command starts");
    let (status, mut peak) = (format!("/proc/{}/status", child.id()), 0);
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
        let found = line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024;
        peak = peak.max(found);
        if let Some(status) = child.try_wait().expect("a child") {
            assert!(status.success(), "{arguments:?}");
            return peak;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_run_keeps_to_its_bound_on_memory() {
    let place = folder();
    let at = place.path();
    // 310 MB of features, 30 MB of structure, and the features again in the release.
    put_network(at, 1_200_000, 128);
    let file = std::fs::metadata(at.join("g.progap")).expect("a file").len();
    assert!(file > 330_000_000, "{file}");
    let cases: [(&str, u64, &[&str]); 4] = [
        // Beside the features it holds what the model of each view says of every node, to receivers of two weights.
        ("progap-views", 500, &["--depth", "1"]),
        ("progap-labels", 300, &["--depth", "1", "--epochs", "2"]),
        // What it encodes is another 310 MB.
        ("gap", 400, &["--depth", "1", "--epochs", "2", "--hidden", "64"]),
        // What its last stage reads is 170 MB, and what it is made of as much again.
        ("lpgnet", 300, &["--depth", "3", "--epochs", "2", "--epsilon", "8"]),
    ];
    for (method, bound, more) in cases {
        let (out, memory) = (format!("of-{method}"), format!("{bound}M"));
        let train = ["train", "g.progap", "--method", method, "--memory", &memory, "--out", &out, "--quiet"];
        for arguments in [
            [&train[..], more].concat(),
            vec!["predict", &out, "--memory", &memory, "--out", "p.csv", "--force"],
            vec!["verify", &out, "--memory", &memory],
        ] {
            let found = peak(at, &arguments);
            // Without a bound the two files alone are 650 MB.
            assert!(found > 10_000_000 && found < bound * 1_050_000, "{arguments:?}: {found}");
        }
        std::fs::remove_dir_all(at.join(&out)).expect("removed");
    }
}

#[test]
fn too_little_memory_is_refused_with_what_is_needed() {
    let place = folder();
    let at = place.path();
    put_network(at, 5_000, 4);
    let train = |memory: &str| {
        progap_in(at, &["train", "g.progap", "--order", "public", "--memory", memory, "--out", "r"])
    };
    train("100M").refused(&["needs about 1", "MB of memory", "5000 nodes send", "--memory"]);
    assert!(!at.join("r").exists(), "nothing is left");
    for wrong in ["lots", "8X", "1M"] {
        let run = train(wrong);
        assert!(!run.success && run.stderr.contains("give a size such as 8G"), "{}", run.stderr);
    }
    // Tables are held in memory, and count.
    progap_in(at, &["data", "convert", "g.progap", "tables/"]).ok();
    let order = ["--order", "public", "--quiet"];
    progap_in(at, &[&["train", "tables/", "--memory", "400M", "--out", "t"], &order[..]].concat()).ok();
}

#[test]
fn what_holds_edges_in_memory_is_refused_before_anything_is_spent() {
    let place = folder();
    let at = place.path();
    put_network(at, 2_000, 4);
    let budget = ["--data", "g.progap", "--epsilon", "9", "--delta", "1e-6"];
    progap_in(at, &[&["ledger", "init", "b.db"], &budget[..]].concat()).ok();
    let cases: [(&[&str], &str); 6] = [
        (&["--method", "edge-rand", "--epsilon", "8"], "--method progap-labels"),
        (&["--method", "sage", "--level", "none"], "--method progap-labels"),
        (&["--method", "dp-gnn", "--level", "node", "--epsilon", "8"], "--method progap-labels"),
        (&["--direction", "out"], "sources become targets"),
        (&["--direction", "both"], "sources become targets"),
        (&["--level", "node", "--epsilon", "8", "--bounding", "sample"], "--bounding weight"),
    ];
    for (case, remedy) in cases {
        let begin: &[&str] = &["train", "g.progap", "--memory", "8G", "--out", "r"];
        let order: &[&str] = if case.contains(&"none") { &[] } else { &["--order", "public"] };
        let ledger: &[&str] = if case.contains(&"--level") { &[] } else { &["--ledger", "b.db"] };
        progap_in(at, &[begin, order, ledger, case].concat())
            .refused(&["cannot keep a memory limit", remedy]);
        assert!(!at.join("r").exists(), "{case:?}");
    }
    let shown = progap_in(at, &["ledger", "show", "b.db", "--runs", "--json"]).json();
    assert_eq!(shown[0]["charges"].as_array().map(Vec::len), Some(0), "{shown}");
}

#[test]
fn files_in_half_precision_hold_what_half_precision_can() {
    let place = folder();
    let at = place.path();
    put_network(at, 2_000, 8);
    progap_in(at, &["data", "convert", "g.progap", "g.npz"]).ok();
    progap_in(at, &["data", "convert", "g.npz", "again.progap", "--half"]).ok();
    let inspect = |file: &str| progap_in(at, &["inspect", file, "--json"]).json();
    assert_eq!(inspect("g.progap")["feature_storage"], "half");
    assert_eq!(inspect("again.progap")["feature_storage"], "half");
    progap_in(at, &["data", "convert", "g.progap", "h.npz", "--half"]).refused(&["--half", ".progap"]);
}
