//! A machine that misbehaves, and users who share it: permissions, core dumps, threads that cannot start, files that
//! are cut short, and runs that begin at the same moment.
#![cfg(unix)]

mod common;

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::runs::{charges, contents, make_ledger, resume, start, train, wait_for, workplace};
use common::{command, outcome, progap_in};

/// The command behind a line of shell, such as a limit.
fn behind(line: &str, command: &Command) -> Command {
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("{line}; exec \"$0\" \"$@\"")]).arg(command.get_program());
    shell.args(command.get_args()).env_remove("PROGAP_DATA");
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    shell
}

/// A run that would go on for hours, and ends with its test.
struct Endless(Child);

impl Endless {
    /// A run that has kept its state once.
    fn start(at: &Path, line: &str) -> Endless {
        let mut run = Endless(start(behind(line, &train(at, &["--epochs", "100000"], "r"))));
        wait_for(&mut run.0, &at.join("r/checkpoint-1.safetensors"));
        run
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn what_is_written_follows_the_umask_and_what_is_private_is_for_its_owner() {
    let place = workplace();
    let at = place.path();
    for (umask, ordinary, folder) in [("077", 0o600, 0o700), ("022", 0o644, 0o755), ("002", 0o664, 0o775)] {
        let out = format!("release-{umask}");
        let settings = ["--level", "node", "--epsilon", "9", "--epochs", "1", "--batch-size", "200"];
        let run = behind(&format!("umask {umask}"), &train(at, &settings, &out)).output().expect("bash runs");
        outcome(run).ok();
        let release = at.join(&out);
        assert_eq!((mode(&release), mode(&release.join("private"))), (folder, 0o700), "{umask}");
        for name in contents(&release).into_keys().chain(["private/cost.json".into()]) {
            let expected = if name.starts_with("private/") { 0o600 } else { ordinary };
            assert_eq!(mode(&release.join(&name)), expected, "{umask} {name}");
        }
        for (arguments, file) in [
            (vec!["predict", &out, "--out"], format!("predictions-{umask}.csv")),
            (vec!["data", "convert", "g.progap"], format!("copy-{umask}.progap")),
        ] {
            let mut asked = command(at);
            asked.args(arguments).arg(&file);
            outcome(behind(&format!("umask {umask}"), &asked).output().expect("bash runs"));
            assert_eq!(mode(&at.join(&file)), ordinary, "{umask} {file}");
        }
    }
}

#[test]
fn what_a_run_keeps_while_it_trains_is_for_its_owner() {
    let place = workplace();
    let at = place.path();
    let _run = Endless::start(at, "umask 000");
    for name in ["run.json", "secret.key", "checkpoint-1.safetensors"] {
        assert_eq!(mode(&at.join("r").join(name)), 0o600, "{name}");
    }
}

/// The system is told not to write this process to disk: neither by a crash, nor at the wish of another process of the
/// same user.
#[cfg(target_os = "linux")]
#[test]
fn a_crash_leaves_no_memory_on_disk() {
    let place = workplace();
    let at = place.path();
    let mut run = Endless::start(at, "ulimit -c unlimited 2>/dev/null");
    let of = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", run.0.id())).expect("readable");
    let limits = of("limits");
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).expect("a limit");
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
    let status = of("status");
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("a line");
    let locked: u64 = locked.trim().trim_end_matches(" kB").parse().expect("a number");
    let allowed = limits.lines().find(|line| line.starts_with("Max locked memory")).expect("a limit");
    let none = allowed.split_whitespace().nth(3) == Some("0");
    assert!(locked >= 4 || none, "the key's page is not locked: {locked} kB; {allowed}");
    let id = run.0.id().to_string();
    assert!(Command::new("kill").args(["-ABRT", &id]).status().expect("kill runs").success());
    run.0.wait().expect("gone");
    let cores =
        contents(at).into_keys().filter(|name| name.rsplit('/').next().unwrap_or("").starts_with("core"));
    assert_eq!(cores.count(), 0);
}

/// An unprivileged user: the superuser may start as many threads as they like.
const NOBODY: u32 = 65534;

#[test]
fn a_machine_that_starts_no_threads_trains_all_the_same() {
    let place = workplace();
    let at = place.path();
    let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    if !root {
        eprintln!("skipped: only the superuser can become a user without processes");
        return;
    }
    let settings = ["--epochs", "5", "--hidden", "8", "--seed", "5"];
    assert!(train(at, &settings, "whole").status().expect("progap runs").success());
    let home = at.join("nobody");
    std::fs::create_dir(&home).expect("made");
    std::fs::copy(at.join("g.progap"), home.join("g.progap")).expect("copied");
    // The command itself may lie where only its owner can go.
    std::fs::copy(env!("CARGO_BIN_EXE_progap"), home.join("progap")).expect("copied");
    std::fs::set_permissions(at, PermissionsExt::from_mode(0o755)).expect("set");
    for path in [&home, &home.join("g.progap"), &home.join("progap")] {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("given");
    }
    let with_few = |most: u32, arguments: &Command| {
        let mut limited = behind(&format!("ulimit -u {most}"), arguments);
        limited.uid(NOBODY).gid(NOBODY).current_dir(&home).env("HOME", &home);
        outcome(limited.output().expect("bash runs"))
    };
    let whole = contents(&at.join("whole"));
    for most in (1..=6).flat_map(|most| [most; 3]) {
        let mut own = Command::new(home.join("progap"));
        own.args(train(&home, &settings, "r").get_args()).args(["--threads", "4"]);
        let run = with_few(most, &own);
        assert!(run.success, "{most}: {}", run.stderr);
        assert_eq!(run.stderr.contains("of 4 threads (see `ulimit -u`)"), most < 5, "{most}: {}", run.stderr);
        assert!(contents(&home.join("r")) == whole, "the same bits, whatever the number of threads");
        std::fs::remove_dir_all(home.join("r")).expect("removed");
    }

    let mut experiment = Command::new(home.join("progap"));
    experiment.args([
        "experiment",
        "table2",
        "--data-sets",
        "g.progap",
        "--runs",
        "1",
        "--set",
        "epochs=1",
        "--json",
    ]);
    let run = with_few(1, &experiment);
    assert!(!run.stderr.contains("mistake in progap") && !run.stderr.contains("panicked"), "{}", run.stderr);
    assert!(run.success || run.stderr.contains("ulimit -u"), "{}", run.stderr);

    let mut own = Command::new(home.join("progap"));
    own.args(train(&home, &settings, "r").get_args());
    assert!(with_few(6, &own).success);
    let mut server = Command::new(home.join("progap"));
    server.args(["serve", "r", "--listen", "127.0.0.1:0"]);
    let run = with_few(1, &server);
    assert!(!run.success && !run.stderr.contains("mistake in progap"), "{}", run.stderr);
    assert!(run.stderr.contains("the system refuses to start a thread"), "{}", run.stderr);
}

#[test]
fn a_mapped_file_that_is_cut_short_ends_in_a_sentence() {
    let place = workplace();
    let at = place.path();
    std::fs::copy(at.join("g.progap"), at.join("whole")).expect("copied");
    let mut said = 0;
    // Sooner or later it is cut short while it is read; before that it cannot be opened, and after that it is not
    // needed.
    for delay in (0..60).map(|step| Duration::from_micros(500 * step)) {
        std::fs::copy(at.join("whole"), at.join("g.progap")).expect("copied");
        let _ = std::fs::remove_dir_all(at.join("r"));
        let mut training = train(at, &["--epochs", "1", "--hidden", "8"], "r");
        let child = training.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("progap starts");
        std::thread::sleep(delay);
        std::fs::OpenOptions::new().write(true).truncate(true).open(at.join("g.progap")).expect("cut short");
        let output = child.wait_with_output().expect("gone");
        assert!(output.status.code().is_some(), "it died of a signal: {:?}", output.status);
        let run = outcome(output);
        assert!(run.success || run.stderr.starts_with("error: "), "{}", run.stderr);
        assert!(!run.stderr.contains("mistake in progap"), "{}", run.stderr);
        said += usize::from(run.stderr.contains("cut short by another program"));
    }
    assert!(said > 0, "it was never read while it was cut short");
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_not_a_death() {
    use std::os::unix::process::ExitStatusExt;
    let place = workplace();
    let at = place.path();
    let run = behind("ulimit -f 2", &train(at, &["--epochs", "5"], "r")).output().expect("bash runs");
    assert_eq!(run.status.signal(), None);
    outcome(run).refused(&["r/", "too large"]);
}

/// A ledger that refuses leaves a folder that was there before where it is.
#[test]
fn a_refused_run_removes_only_what_it_made() {
    let place = workplace();
    let at = place.path();
    make_ledger(at, "budget.db", "edge-undirected", "0.1");
    std::fs::create_dir(at.join("mine")).expect("made");
    for out in ["mine", "new"] {
        let run = outcome(train(at, &["--ledger", "budget.db"], out).output().expect("progap runs"));
        run.refused(&["this run is refused"]);
        assert_eq!(at.join(out).exists(), out == "mine", "{out}");
    }
    let mut unnamed = command(at);
    unnamed.args(["train", "g.progap", "--quiet", "--ledger", "budget.db", "--delta", "1e-5"]);
    outcome(unnamed.output().expect("progap runs")).refused(&["this run is refused"]);
    assert!(!at.join("releases").exists());
    assert_eq!(charges(at, "budget.db").len(), 0);
}

#[test]
fn runs_that_begin_at_once_get_names_of_their_own() {
    let place = workplace();
    let at = place.path();
    let begin = || {
        let mut training = command(at);
        training.args(["train", "g.progap", "--quiet", "--epochs", "3", "--hidden", "8"]);
        training.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("progap starts")
    };
    let children: Vec<_> = (0..8).map(|_| begin()).collect();
    for child in children {
        outcome(child.wait_with_output().expect("gone")).ok();
    }
    let names: BTreeSet<String> = std::fs::read_dir(at.join("releases"))
        .expect("releases")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let expected = (1..=8).map(|number| format!("g-progap-edge-{number}")).collect();
    assert_eq!(names, expected);
    for name in names {
        progap_in(at, &["verify", &format!("releases/{name}")]).ok();
    }
}

/// A second process that resumes a run in its first moments never ends in a folder that is gone, or a charge without a
/// run.
#[test]
fn a_run_that_is_resumed_while_it_begins_is_not_lost() {
    let place = workplace();
    let at = place.path();
    make_ledger(at, "budget.db", "edge-undirected", "9");
    let settings = ["--ledger", "budget.db", "--epochs", "3", "--hidden", "8", "--epsilon", "0.3"];
    for round in 0..20 {
        let out = format!("r{round}");
        let mut first = start(train(at, &settings, &out));
        let patience = Instant::now() + Duration::from_secs(30);
        let mut others = Vec::new();
        while first.try_wait().expect("a child").is_none() && Instant::now() < patience {
            if at.join(&out).exists() && others.len() < 4 {
                others.push(start(resume(at, &out)));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        let began = first.wait().expect("gone").success();
        for mut other in others {
            let _ = other.wait();
        }
        if !began && at.join(&out).join("run.json").exists() {
            assert!(resume(at, &out).status().expect("progap runs").success());
        }
        assert!(at.join(&out).join("manifest.json").exists(), "round {round}: there is no release");
        assert_eq!(charges(at, "budget.db").len(), round + 1, "one charge for each run");
    }
}

/// Where the data owner keeps things is nobody else's business: no public file names a folder of theirs.
#[test]
fn a_release_names_no_folder_of_its_owner() {
    let place = workplace();
    let at = place.path();
    let ids: String = (0..1400).map(|node| format!("{node}\n")).collect();
    std::fs::write(at.join("keep.txt"), ids).expect("written");
    let (data, keep) = (at.join("g.progap"), at.join("keep.txt"));
    let mut training = command(at);
    training.arg("train").arg(&data).arg("--keep-nodes").arg(&keep);
    training.args(["--quiet", "--epochs", "1", "--hidden", "8", "--out", "r"]);
    outcome(training.output().expect("progap runs")).ok();
    let folder = at.to_string_lossy().into_owned();
    let named = contents(&at.join("r"));
    assert!(String::from_utf8_lossy(&named["config.toml"]).contains("keep.txt"));
    for (name, bytes) in named {
        assert!(!String::from_utf8_lossy(&bytes).contains(&folder), "{name} names {folder}");
    }
}
