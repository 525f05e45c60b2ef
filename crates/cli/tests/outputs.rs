//! Nothing that exists is replaced without `--force`, what is read never is, and nothing is written into a release or a
//! run.

mod common;

use common::runs::{contents, start, train, wait_for, workplace};
use common::{folder, progap_in, put, put_tables};

#[test]
fn what_is_read_is_never_replaced() {
    let place = folder();
    let at = place.path();
    put_tables(&at.join("t"));
    for output in ["g.progap", "g.npz"] {
        progap_in(at, &["data", "convert", "t", output]).ok();
    }
    std::fs::hard_link(at.join("g.npz"), at.join("hard.npz")).expect("linked");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("g.progap", at.join("soft.progap")).expect("linked");
        std::os::unix::fs::symlink("t", at.join("link")).expect("linked");
    }
    let before = contents(at);
    let mut cases = vec![
        vec!["g.progap", "g.progap"],
        vec!["g.progap", "t/../g.progap"],
        vec!["g.npz", "g.npz"],
        vec!["g.npz", "hard.npz"],
        vec!["t", "t"],
        vec!["t", "./t/"],
        vec!["t/nodes.csv", "t", "--edges", "t/edges.csv"],
    ];
    if cfg!(unix) {
        cases.extend([vec!["g.progap", "soft.progap"], vec!["soft.progap", "g.progap"], vec!["t", "link"]]);
    }
    for case in cases {
        for force in [&[][..], &["--force"]] {
            progap_in(at, &[&["data", "convert"], &case[..], force].concat())
                .refused(&["input", "choose another"]);
        }
    }
    assert!(contents(at) == before, "something was written");
}

#[test]
fn what_exists_is_replaced_by_force_only() {
    let place = workplace();
    let at = place.path();
    progap_in(at, &["train", "g.progap", "--epochs", "2", "--out", "r", "--quiet"]).ok();
    put(
        at,
        &[
            ("mine.progap", b"mine"),
            ("mine.npz", b"mine"),
            ("mine.csv", b"mine"),
            ("mine.json", b"mine"),
            ("mine.md", b"mine"),
            ("pages/progap.1", b"mine"),
            ("folder/notes.txt", b"mine"),
            ("r-report/report.html", b"mine"),
        ],
    );
    let synth = ["--nodes", "300", "--edges", "900", "--classes", "3"];
    let synth = |out| [&["data", "synth", out][..], &synth].concat();
    let table1 = ["experiment", "table1", "--data-sets", "g.progap", "--out"];
    let cases: [Vec<&str>; 10] = [
        vec!["data", "convert", "g.progap", "mine.npz"],
        vec!["data", "convert", "g.progap", "folder"],
        synth("mine.progap"),
        synth("folder"),
        vec!["predict", "r", "--out", "mine.csv"],
        vec!["predict", "r", "--out", "mine.json"],
        vec!["report", "r"],
        vec!["report", "r", "--out", "folder"],
        vec!["man", "pages"],
        [&table1[..], &["folder"]].concat(),
    ];
    let before = contents(at);
    for case in &cases {
        progap_in(at, case).refused(&["--force"]);
        assert!(contents(at) == before, "{case:?} wrote something");
    }
    for case in &cases {
        progap_in(at, &[&case[..], &["--force"]].concat()).ok();
    }
    let after = contents(at);
    let replaced: Vec<&str> = before
        .iter()
        .filter(|(name, bytes)| after[*name] != **bytes)
        .map(|(name, _)| name.as_str())
        .collect();
    let expected =
        ["mine.csv", "mine.json", "mine.npz", "mine.progap", "pages/progap.1", "r-report/report.html"];
    assert_eq!(replaced, expected);
    // An experiment goes on in its own folder, as often as one likes; so does the report on it.
    for _ in 0..2 {
        progap_in(at, &[&table1[..], &["own"]].concat()).ok();
        progap_in(at, &["report", "own"]).ok();
    }
    progap_in(at, &["experiment", "collect", "mine.md", "own"]).refused(&["mine.md", "--force"]);
    progap_in(at, &["experiment", "collect", "mine.md", "own", "--force"]).ok();
}

#[test]
fn nothing_is_written_into_a_release_or_a_run_whatever_is_said() {
    let place = workplace();
    let at = place.path();
    progap_in(at, &["train", "g.progap", "--epochs", "2", "--out", "r", "--quiet"]).ok();
    let mut child = start(train(at, &["--epochs", "30000"], "begun"));
    wait_for(&mut child, &at.join("begun/run.json"));
    child.kill().expect("killed");
    child.wait().expect("gone");
    let before = (contents(&at.join("r")), contents(&at.join("begun")));
    for inside in ["r", "begun"] {
        let file = |name: &str| format!("{inside}/{name}");
        for case in [
            vec!["data", "convert", "g.progap", inside],
            vec!["data", "convert", "g.progap", &file("nodes.progap")],
            vec!["data", "convert", "g.progap", &file("aggregates/g.npz")],
            vec!["data", "synth", inside, "--nodes", "300", "--edges", "900"],
            vec!["data", "synth", &file("x.progap"), "--nodes", "300", "--edges", "900"],
            vec!["predict", "r", "--out", &file("p.csv")],
            vec!["report", "r", "--out", &file("page")],
            vec!["experiment", "table1", "--data-sets", "g.progap", "--out", inside],
            vec!["man", inside],
        ] {
            progap_in(at, &[&case[..], &["--force"]].concat())
                .refused(&[inside, "where nothing else belongs"]);
        }
    }
    assert!((contents(&at.join("r")), contents(&at.join("begun"))) == before, "something was written");
    progap_in(at, &["verify", "r"]).ok();
}

/// Programs read standard output: with `--json` it holds JSON and nothing else, with `--quiet` nothing else at all.
#[test]
fn json_and_quiet_print_json_alone() {
    let place = workplace();
    let at = place.path();
    progap_in(at, &["train", "g.progap", "--epochs", "1", "--out", "r", "--quiet"]).ok();
    let train = ["train", "g.progap", "--epochs", "1", "--out"];
    let commands = [
        [&train[..], &["t"]].concat(),
        vec!["check", "g.progap"],
        vec!["inspect", "g.progap"],
        vec!["inspect", "r"],
        vec!["verify", "r"],
        vec!["account", "--level", "edge", "--depth", "1", "--epsilon", "1", "--delta", "1e-6"],
        vec!["export", "r", "e"],
        vec!["methods"],
        vec!["data", "list"],
        vec!["key", "new", "k"],
    ];
    for command in commands {
        let run = progap_in(at, &[&command[..], &["--json", "--quiet"]].concat());
        assert!(run.success && run.stderr.is_empty(), "{command:?}: {}", run.stderr);
        assert!(
            serde_json::from_str::<serde_json::Value>(&run.stdout).is_ok(),
            "{command:?}: {}",
            run.stdout
        );
    }
    for command in
        [&["check", "g.progap"][..], &["verify", "r"], &["methods"], &[&train[..], &["u"]].concat()]
    {
        assert_eq!(progap_in(at, &[command, &["--quiet"]].concat()).ok(), "", "{command:?}");
    }
}

/// A text that is no number: the message names what is accepted.
#[test]
fn numbers_that_are_none_are_answered_with_what_is_accepted() {
    let place = folder();
    let at = place.path();
    for (command, says) in [
        (&["train", "--epsilon", "abc"][..], "give a number from 0.001 to 1000, or auto"),
        (&["train", "--delta", "x"], "give a number from 1e-30 to 0.1, or auto"),
        (&["train", "--depth", "1.5"], "give a whole number from 0 to 50"),
        (&["train", "--threads", "all"], "give a whole number from 0"),
        (&["train", "--weights", "--weight-bound", "most"], "give a number, such as 0.5"),
        (&["ledger", "init", "b.db", "--data", "demo", "--epsilon", "abc"], "give a number, such as 0.5"),
        (&["inspect", "demo", "--mask", "first"], "give a whole number from 0"),
    ] {
        let run = progap_in(at, command);
        assert!(
            !run.success && run.stderr.starts_with("error: ") && run.stderr.contains(says),
            "{}",
            run.stderr
        );
    }
}
