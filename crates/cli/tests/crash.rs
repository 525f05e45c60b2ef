//! Killed at any moment and resumed, a run asks nothing twice, is charged once, and ends with the same bits.
#![cfg(unix)]

mod common;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use common::runs::{
    aggregates, charges, contents, make_ledger, resume, start, statement, train, wait_for, workplace,
};
use common::{outcome, progap_in};

/// When a process is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// After this share of the time that a whole run takes.
    Share(f64),
    /// As soon as this file of the run is there.
    Appears(&'static str),
}

/// The files of a run in the order in which they are written.
const FILES: [&str; 9] = [
    "aggregates",
    "secret.key",
    "run.json",
    "checkpoint-1.safetensors",
    "aggregates/1.npy",
    "aggregates/2.npy",
    "model.safetensors",
    "privacy.json",
    "manifest.json",
];

/// This many random moments, and every this many files, for methods that share the training loop of progap.
const FEW: usize = 3;

/// Random moments, the same for a name every time, and the moments at which files appear.
fn moments(name: &str, random: usize) -> Vec<Moment> {
    let mut state = name.bytes().fold(1, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let mut share = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let spread = (0..random).map(|k| Moment::Share((k as f64 + share()) / random as f64)).collect::<Vec<_>>();
    let files = FILES.into_iter().step_by(if random <= FEW { FEW } else { 1 });
    spread.into_iter().chain(files.map(Moment::Appears)).collect()
}

/// Starts a command and ends it with SIGKILL: it has no chance to tidy up.
fn kill(command: Command, moment: Moment, whole: Duration, folder: &Path) {
    let mut child = start(command);
    match moment {
        Moment::Share(share) => std::thread::sleep(whole.mul_f64(share)),
        Moment::Appears(file) => wait_for(&mut child, &folder.join(file)),
    }
    child.kill().expect("killed");
    child.wait().expect("gone");
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().expect("cp runs").success());
}

/// A run of each kind: killed at random moments and where its files appear, resumed until it is done. `unit` is what
/// the ledger counts; without one nothing is promised, and nothing charged. Nor is a run with a seed, which is not
/// private.
fn survives_kills(settings: &[&str], unit: Option<&str>, random: usize) {
    let place = workplace();
    let at = place.path();
    let seeded = settings.contains(&"--seed");
    let paying = unit.filter(|_| !seeded);
    if let Some(unit) = paying {
        make_ledger(at, "budget.db", unit, "9");
    }
    let with_ledger = |ledger: &str, out: &str| {
        let mut command = train(at, settings, out);
        if paying.is_some() {
            std::fs::copy(at.join("budget.db"), at.join(ledger)).expect("copied");
            command.args(["--ledger", ledger]);
        }
        command
    };
    let charged = |ledger: &str| if paying.is_some() { charges(at, ledger) } else { vec![] };

    let begin = Instant::now();
    assert!(with_ledger("whole.db", "whole").status().expect("progap runs").success());
    let whole = begin.elapsed();
    let uninterrupted = contents(&at.join("whole"));
    let asked = |out: &str| {
        let statement = statement(&at.join(out));
        (statement["mechanisms"].clone(), statement["event"].clone())
    };

    // A sweep asks for more (scripts/torture).
    let random = std::env::var("PROGAP_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(random);
    let (mut resumed, mut kills) = (0, 0);
    for (k, moment) in moments(&settings.concat(), random).into_iter().enumerate() {
        let (out, ledger) = (format!("killed-{k}"), format!("{k}.db"));
        let folder = at.join(&out);
        kill(with_ledger(&ledger, &out), moment, whole, &folder);
        kills += 1;

        let (begun, done) = (folder.join("run.json").exists(), folder.join("manifest.json").exists());
        if !begun && !done {
            // Killed before the run began: nothing was asked and nothing charged.
            assert_eq!(charged(&ledger), [0.0; 0], "{moment:?}");
            assert!(aggregates(&folder).is_empty(), "{moment:?}");
            progap_in(at, &["train", "--resume", &out]).refused(&[&out]);
            // The same command begins it, whatever lies there.
            outcome(with_ledger(&ledger, &out).output().expect("progap runs")).ok();
            continue;
        }
        let kept = aggregates(&folder);
        if begun {
            resumed += 1;
            if !seeded {
                copy(&folder, &at.join("twin"));
            }
            if k % 2 == 0 {
                for again in [0.3, 0.6] {
                    kill(resume(at, &out), Moment::Share(again), whole, &folder);
                    kills += 1;
                    let now = aggregates(&folder);
                    assert!(kept.iter().all(|(name, bytes)| now.get(name) == Some(bytes)), "{moment:?}");
                }
            }
            if folder.join("run.json").exists() {
                progap_in(at, &["train", "--resume", &out, "--quiet"]).ok();
            }
            if !seeded {
                // Secure noise has no equal; but two resumptions of the same run have.
                progap_in(at, &["train", "--resume", "twin", "--quiet"]).ok();
                assert!(contents(&at.join("twin")) == contents(&folder), "{moment:?}");
                std::fs::remove_dir_all(at.join("twin")).expect("removed");
            }
        }
        let now = aggregates(&folder);
        assert!(kept.iter().all(|(name, bytes)| now.get(name) == Some(bytes)), "asked again: {moment:?}");
        assert_eq!(asked(&out), asked("whole"), "{moment:?}");
        let (paid, claimed) = (charged(&ledger), statement(&folder)["epsilon"].as_f64());
        assert_eq!(paid.len(), usize::from(paying.is_some()), "not charged once: {moment:?}");
        assert!(
            paid.iter().zip(claimed).all(|(paid, claimed)| (paid - claimed).abs() < 1e-3),
            "charged {paid:?}, claimed {claimed:?}"
        );
        assert_eq!(claimed.is_some(), unit.is_some() && !seeded, "{moment:?}");
        if seeded {
            assert!(contents(&folder) == uninterrupted, "{moment:?}");
        }
        progap_in(at, &["verify", &out]).ok();
    }
    println!("{}: {kills} kills, {resumed} runs resumed", settings.join(" "));
    assert!(resumed >= random / 2, "only {resumed} kills came in the middle of a run");
}

const SEED: [&str; 2] = ["--seed", "5"];
const EDGE: [&str; 2] = ["--epochs", "40"];
const NODE: [&str; 6] = ["--level", "node", "--epochs", "3", "--batch-size", "100"];

#[test]
fn edge_level_with_a_seed() {
    survives_kills(&[&EDGE[..], &SEED].concat(), Some("edge-undirected"), 10);
}

#[test]
fn edge_level_with_secure_noise() {
    survives_kills(&EDGE, Some("edge-undirected"), 10);
}

#[test]
fn node_level_with_a_seed() {
    survives_kills(&[&NODE[..], &SEED].concat(), Some("node"), 6);
}

#[test]
fn node_level_with_secure_noise() {
    survives_kills(&NODE, Some("node"), 6);
}

/// With a seed the bits are those of a run that was not killed; without one it is charged.
fn with_and_without_a_seed(settings: &[&str], unit: &str) {
    survives_kills(&[settings, &SEED].concat(), Some(unit), FEW);
    survives_kills(settings, Some(unit), FEW);
}

#[test]
fn gap() {
    with_and_without_a_seed(&[&["--method", "gap"], &EDGE[..]].concat(), "edge-undirected");
}

#[test]
fn mlp() {
    with_and_without_a_seed(&[&["--method", "mlp"], &NODE[..]].concat(), "node");
}

#[test]
fn sage() {
    survives_kills(&[&["--method", "sage", "--level", "none"], &EDGE[..], &SEED].concat(), None, FEW);
}

#[test]
fn edge_rand() {
    with_and_without_a_seed(&[&["--method", "edge-rand"], &EDGE[..]].concat(), "edge-undirected");
}

#[test]
fn dp_gnn() {
    with_and_without_a_seed(&[&["--method", "dp-gnn"], &NODE[..]].concat(), "node");
}

#[test]
fn ctrl_c_leaves_a_run_that_goes_on_to_the_same_bits() {
    let place = workplace();
    let at = place.path();
    let settings = ["--epochs", "1500", "--seed", "5"];
    assert!(train(at, &settings, "whole").status().expect("progap runs").success());
    let mut child = train(at, &settings, "r").stderr(std::process::Stdio::piped()).spawn().expect("it runs");
    wait_for(&mut child, &at.join("r/aggregates/1.npy"));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
    let output = child.wait_with_output().expect("gone");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it was over before it was stopped");
    assert_eq!(message.trim_end(), "error: stopped; resume with `progap train --resume r`");
    progap_in(at, &["predict", "r"]).refused(&["not finished", "--resume"]);
    progap_in(at, &["train", "--resume", "r", "--quiet"]).ok();
    assert!(contents(&at.join("r")) == contents(&at.join("whole")));
}

#[test]
fn one_process_at_a_time_works_on_a_run() {
    let place = workplace();
    let at = place.path();
    let mut child = start(train(at, &["--epochs", "100000"], "r"));
    wait_for(&mut child, &at.join("r/checkpoint-1.safetensors"));
    let second = progap_in(at, &["train", "--resume", "r"]).refused(&["run.json", "another process"]);
    assert!(child.try_wait().expect("a child").is_none(), "{second}");
    child.kill().expect("killed");
    child.wait().expect("gone");
}
