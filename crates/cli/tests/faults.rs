//! Disks that are full, files that may not grow, folders that may not be written, ledgers that others hold: one
//! sentence, nothing half-written, and the run goes on once that is mended.
#![cfg(unix)]

mod common;

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::runs::{aggregates, charges, contents, make_ledger, resume, start, train, wait_for, workplace};
use common::{Run, outcome, progap_in, text};

/// Embeddings make files of a size that does not depend on the number of classes: the sizes of disks below rely on it.
const COMMON: [&str; 6] = ["--epochs", "150", "--hidden", "8", "--method", "progap"];

/// A run with a seed, whose bits can be compared; a run with secret noise, which can be charged; and one that writes
/// its sums as it makes them.
fn kinds() -> [Vec<&'static str>; 3] {
    let more: [&[&str]; 3] =
        [&["--seed", "5"], &["--ledger", "budget.db"], &["--seed", "5", "--memory", "400M"]];
    more.map(|more| [&COMMON[..], more].concat())
}

/// The network, a ledger, and the files of a run with a seed to which nothing happened.
fn workplace_with_ledger() -> (tempfile::TempDir, std::collections::BTreeMap<String, Vec<u8>>) {
    let place = workplace();
    make_ledger(place.path(), "budget.db", "edge-undirected", "9");
    std::fs::copy(place.path().join("budget.db"), place.path().join("empty.db")).expect("copied");
    assert!(train(place.path(), &kinds()[0], "whole").status().expect("progap runs").success());
    let whole = contents(&place.path().join("whole"));
    (place, whole)
}

/// Starts anew with a ledger to which nothing was charged.
fn fresh_ledger(place: &Path) {
    std::fs::copy(place.join("empty.db"), place.join("budget.db")).expect("copied");
}

/// After a failure: every file that has its name is whole, and the ledger was charged at most once. Says which file
/// could not be written.
#[track_caller]
fn check_failure(place: &Path, out: &str, run: Run) -> String {
    let message = run.refused(&[]);
    let names: Vec<String> = contents(&place.join(out)).into_keys().collect();
    assert!(!names.iter().any(|name| name.contains(".progap-")), "left behind: {names:?}");
    let begun = place.join(out).join("run.json").exists();
    assert_eq!(message.contains("--resume"), begun, "{message}");
    assert!(begun || names.is_empty(), "{message} {names:?}");
    let paid = charges(place, "budget.db").len();
    assert!(paid <= 1 && (begun || paid == 0), "{message}: charged {paid} times");
    let file = message.split(':').nth(1).unwrap_or_default().trim();
    file.rsplit('/').next().unwrap_or_default().to_string()
}

/// Resumes a run, or starts it if it never began; the result is that of a run to which nothing happened, and what
/// was asked before is not asked again.
#[track_caller]
fn check_recovery(
    place: &Path,
    settings: &[&str],
    out: &str,
    whole: &std::collections::BTreeMap<String, Vec<u8>>,
) {
    let kept = aggregates(&place.join(out));
    if place.join(out).join("run.json").exists() {
        outcome(resume(place, out).output().expect("progap runs")).ok();
    } else {
        outcome(train(place, settings, out).output().expect("progap runs")).ok();
    }
    let now = aggregates(&place.join(out));
    assert!(kept.iter().all(|(name, bytes)| now.get(name) == Some(bytes)), "asked again");
    if settings.contains(&"--seed") {
        assert!(contents(&place.join(out)) == *whole, "other bits than without the failure");
    } else {
        assert!(contents(&place.join(out)).keys().eq(whole.keys()), "other files than without the failure");
        assert_eq!(charges(place, "budget.db").len(), 1);
    }
    progap_in(place, &["verify", out]).ok();
}

/// A small disk in memory; gone with this value.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one; `None`, with a message, where that is not allowed.
    fn mount(folder: PathBuf, size: &str) -> Option<SmallDisk> {
        std::fs::create_dir_all(&folder).expect("made");
        let size = format!("size={size},mode=777");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: mounting a small disk needs the rights of root");
            return None;
        }
        Some(SmallDisk(folder))
    }

    fn resize(&self, size: &str) {
        let size = format!("remount,size={size}");
        let done = Command::new("mount").args(["-o", &size]).arg(&self.0).status();
        assert!(done.is_ok_and(|status| status.success()), "it was mounted, so it can be resized");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk() {
    let (place, whole) = workplace_with_ledger();
    let at = place.path();
    let mut failed_at = BTreeSet::new();
    let sizes = ["4k", "16k", "64k", "128k", "160k", "220k", "232k", "240k", "280k", "288k", "296k"];
    for (size, settings) in sizes.into_iter().flat_map(|size| kinds().map(|settings| (size, settings))) {
        fresh_ledger(at);
        let name = format!("{size}-{}", settings[settings.len() - 1]);
        let Some(disk) = SmallDisk::mount(at.join(&name), size) else { return };
        let out = format!("{name}/r");
        let run = outcome(train(at, &settings, &out).output().expect("progap runs"));
        if !run.success {
            assert!(run.stderr.contains("space") || run.stderr.contains("full"), "{}", run.stderr);
            failed_at.insert(check_failure(at, &out, run));
            // Trying again on the full disk changes nothing.
            if at.join(&out).join("run.json").exists() {
                let again = outcome(resume(at, &out).output().expect("progap runs"));
                check_failure(at, &out, again);
            }
            disk.resize("16m");
            check_recovery(at, &settings, &out, &whole);
        }
    }
    assert!(failed_at.len() >= 4, "the disk was full at {failed_at:?} only");
}

#[test]
fn predictions_on_a_full_disk() {
    let (place, _) = workplace_with_ledger();
    let at = place.path();
    let Some(_disk) = SmallDisk::mount(at.join("small"), "4k") else { return };
    for file in ["p.csv", "p.json", "p.parquet"] {
        let out = format!("small/{file}");
        progap_in(at, &["predict", "whole", "--out", &out]).refused(&[&out, "free some space"]);
        assert_eq!(std::fs::read_dir(at.join("small")).expect("a folder").count(), 0, "nothing is left");
    }
}

#[test]
fn files_that_may_not_grow() {
    let (place, whole) = workplace_with_ledger();
    let at = place.path();
    let limited = |command: Command, blocks: u32, how: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{how} ulimit -f {blocks}; exec \"$0\" \"$@\"")]);
        shell.current_dir(at).arg(command.get_program()).args(command.get_args());
        shell.output().expect("sh runs")
    };
    let mut failed_at = BTreeSet::new();
    // Blocks of 512 bytes: each number is too small for another file.
    for (k, blocks) in [0, 2, 8, 24, 40, 60, 100, 120, 140].into_iter().enumerate() {
        for settings in kinds() {
            let kind = settings[settings.len() - 1];
            fresh_ledger(at);
            let out = format!("limited-{k}-{kind}");
            let run = outcome(limited(train(at, &settings, &out), blocks, "trap '' XFSZ;"));
            assert!(!run.success, "{blocks} blocks are enough");
            failed_at.insert(check_failure(at, &out, run));
            check_recovery(at, &settings, &out, &whole);

            // Without a handler the system ends the process at once, like a kill.
            fresh_ledger(at);
            let out = format!("ended-{k}-{kind}");
            assert!(!limited(train(at, &settings, &out), blocks, "").status.success());
            assert!(charges(at, "budget.db").len() <= 1);
            if at.join(&out).exists() && !at.join(&out).join("run.json").exists() {
                assert_eq!(charges(at, "budget.db").len(), 0);
                progap_in(at, &["train", "--resume", &out]).refused(&["start it again"]);
            }
            check_recovery(at, &settings, &out, &whole);
        }
    }
    assert!(failed_at.len() >= 4, "writing failed at {failed_at:?} only");
}

/// An unprivileged user, where the tests are run by root, who may write everywhere.
const NOBODY: u32 = 65534;

fn as_nobody(mut command: Command, root: bool) -> Command {
    if root {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

#[test]
fn a_folder_that_becomes_read_only() {
    let place = workplace();
    let at = place.path();
    let root = std::fs::metadata(at).expect("a folder").uid() == 0;
    if root {
        chown(at, Some(NOBODY), Some(NOBODY)).expect("given away");
        let mut help = common::command(at);
        help.arg("--version");
        if as_nobody(help, root).output().is_err() {
            eprintln!("skipped: other users may not run the command where it lies");
            return;
        }
    }
    let settings = ["--epochs", "1500", "--seed", "5"];
    let folder = at.join("r");
    let allow = |mode| {
        for folder in [&folder, &folder.join("aggregates")] {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).expect("changed");
        }
    };
    assert!(train(at, &settings, "whole").status().expect("progap runs").success());
    let mut command = as_nobody(train(at, &settings, "r"), root);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("progap runs");
    wait_for(&mut child, &folder.join("aggregates/1.npy"));
    allow(0o555);
    let message = outcome(child.wait_with_output().expect("gone")).refused(&["r/", "--resume"]);
    assert!(message.contains("ermission denied"), "{message}");
    outcome(as_nobody(resume(at, "r"), root).output().expect("progap runs")).refused(&["r/", "--resume"]);
    allow(0o755);
    outcome(as_nobody(resume(at, "r"), root).output().expect("progap runs")).ok();
    assert!(contents(&folder) == contents(&at.join("whole")));
}

#[test]
fn a_ledger_on_a_full_disk() {
    let (place, _) = workplace_with_ledger();
    let at = place.path();
    let Some(disk) = SmallDisk::mount(at.join("disk"), "64k") else { return };
    std::fs::copy(at.join("empty.db"), disk.0.join("budget.db")).expect("copied");
    while std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(disk.0.join("filler"))
        .and_then(|mut file| std::io::Write::write_all(&mut file, &[0; 512]))
        .is_ok()
    {}
    let ledger = disk.0.join("budget.db");
    let settings = ["--epochs", "5", "--ledger", text(&ledger)];
    let run = outcome(train(at, &settings, "r").output().expect("progap runs"));
    run.refused(&["no space left to write the ledger", "nothing was charged"]);
    assert!(!at.join("r").exists());
    assert_eq!(charges(at, text(&ledger)).len(), 0);
    std::fs::remove_file(disk.0.join("filler")).expect("removed");
    outcome(train(at, &settings, "r").output().expect("progap runs")).ok();
    assert_eq!(charges(at, text(&ledger)).len(), 1);
}

#[test]
fn a_ledger_that_another_process_holds_is_waited_for() {
    let place = workplace();
    let at = place.path();
    make_ledger(at, "budget.db", "edge-undirected", "9");
    let other = rusqlite::Connection::open(at.join("budget.db")).expect("a ledger");
    other.execute_batch("BEGIN IMMEDIATE").expect("held");
    let mut child = start(train(at, &["--epochs", "5", "--ledger", "budget.db"], "r"));
    wait_for(&mut child, &at.join("r/run.json"));
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().expect("a child").is_none(), "it did not wait");
    assert!(!at.join("r/checkpoint-1.safetensors").exists(), "it began without having paid");
    other.execute_batch("ROLLBACK").expect("let go");
    assert!(child.wait().expect("gone").success());
    assert_eq!(charges(at, "budget.db").len(), 1);
}

#[test]
fn of_six_runs_at_once_the_budget_allows_three() {
    let place = workplace();
    let at = place.path();
    // Three runs of epsilon 1 cost 1.84 together, four cost 2.16.
    make_ledger(at, "budget.db", "edge-undirected", "2");
    let settings = ["--epochs", "5", "--epsilon", "1", "--ledger", "budget.db"];
    let names = ["a", "b", "c", "d", "e", "f"];
    let runs: Vec<_> = std::thread::scope(|scope| {
        let threads = names.map(|out| scope.spawn(move || train(at, &settings, out).output()));
        threads
            .into_iter()
            .map(|thread| outcome(thread.join().expect("a thread").expect("it runs")))
            .collect()
    });
    let mut allowed = 0;
    for (run, out) in runs.into_iter().zip(names) {
        if run.success {
            allowed += 1;
            run.ok();
            progap_in(at, &["verify", out]).ok();
        } else {
            run.refused(&["refused", "spent"]);
            assert!(!at.join(out).exists(), "{out} was refused and is there");
        }
    }
    assert_eq!(allowed, 3);
    assert_eq!(charges(at, "budget.db").len(), 3);
    progap_in(at, &["ledger", "check", "budget.db"]).ok();
}
