//! Every command that writes, killed at system calls that can change files: the same command, or `--resume`, then
//! ends as if nothing had happened, budgets are charged once, nothing is stuck, and no file that was there before has
//! changed.
#![cfg(target_os = "linux")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::runs::contents;
use common::{Run, outcome, progap_in, put_tables};

/// Kills of each command where nothing else is asked for. `PROGAP_SWEEP=2000` asks for so many over all commands.
const SAMPLE: usize = 4;
/// Kills at the same time.
const AT_ONCE: usize = 2;

/// What a finished command leaves.
#[derive(Clone, Copy, PartialEq)]
enum Bits {
    /// The same bits every time.
    Same,
    /// Files of the same names.
    Names,
    /// As names, and the same predictions.
    Predictions,
}

/// A command that writes.
struct Case {
    arguments: Vec<&'static str>,
    bits: Bits,
    /// The ledger that it changes, and how many runs are charged to it at the end.
    ledger: Option<(&'static str, usize)>,
    /// Whether `--force` may be needed afterwards: a pair of files is not put in place in one step.
    force: bool,
}

fn case(line: &'static str, bits: Bits) -> Case {
    Case { arguments: line.split(' ').collect(), bits, ledger: None, force: false }
}

fn paying(line: &'static str, ledger: &'static str, runs: usize) -> Case {
    Case { ledger: Some((ledger, runs)), ..case(line, Bits::Names) }
}

fn cases() -> Vec<Case> {
    use Bits::{Names, Predictions, Same};
    vec![
        case("train g.progap --seed 5 --epochs 2 --quiet --out new", Same),
        case("train g.progap --seed 5 --epochs 2 --quiet --method progap-labels --out below/new", Same),
        case("train g.progap --seed 5 --epochs 2 --quiet --out empty", Same),
        case("train g.progap --seed 5 --epochs 2 --quiet --memory 400M --out new", Same),
        case("train g.progap --seed 5 --level none --epochs 2 --quiet --out new", Same),
        case("train g.progap --seed 5 --level none --method sage --epochs 2 --quiet --out new", Same),
        case("train g.progap --seed 5 --level node --epsilon 8 --epochs 1 --quiet --out new", Same),
        case("train g.progap --seed 5 --method edge-rand --epochs 2 --quiet --out new", Same),
        paying("train g.progap --delta 1e-5 --epochs 2 --quiet --ledger budget.db --out new", "budget.db", 1),
        paying(
            "train g.progap --delta 1e-5 --level node --epsilon 1 --epochs 1 --quiet --ledger budget.db --out new",
            "budget.db",
            1,
        ),
        case("train --resume seeded --quiet", Same),
        paying("train --resume charged --quiet", "charged.db", 1),
        paying("ledger init new.db --data g.progap --unit node --epsilon 9 --delta 1e-5", "new.db", 0),
        paying(
            "ledger init budget.db --data people --name p --unit edge --epsilon 9 --delta 1e-5",
            "budget.db",
            0,
        ),
        paying("ledger set-budget budget.db --name g --unit node --epsilon 10 --reason more", "budget.db", 0),
        case("export release new --date 2026-01-31", Same),
        case("export release new --date 2026-01-31 --with-rows --sign me.key", Same),
        case("export release new.onnx --to onnx", Same),
        case("export release new --to hf", Same),
        case("report release --quiet", Same),
        case("report release --quiet --public --out empty", Same),
        case("data convert g.progap new.progap", Same),
        case("data convert g.progap new.npz", Same),
        case("data convert g.progap new/", Same),
        case("data convert g.progap empty --format parquet", Same),
        case("data convert g.progap people --force", Same),
        case("data partition g.progap new --parts 3", Same),
        case("data synth new.progap --nodes 200 --edges 2000", Same),
        case("data synth new --nodes 200 --edges 2000 --format csv.gz", Same),
        case(
            "experiment table2 --data-sets g.progap --methods gap --levels edge --set epochs=1 --runs 2 --json --out \
             new",
            Names,
        ),
        case("experiment custom mine.toml --json --out new", Names),
        case("predict release --out new.csv", Same),
        case("predict release --out new.parquet", Same),
        Case {
            bits: Predictions,
            force: true,
            ..paying(
                "predict town-release --new later.csv --edges to-later.csv --ledger town.db --date 2026-01-31 \
                 --out new.csv",
                "town.db",
                2,
            )
        },
        case("audit release --parts mechanism,attacks --canaries 200 --seed 1 --json --out new", Same),
        case("key new other", Names),
        case("man new", Same),
    ]
}

/// All that the commands start from.
fn base(place: &Path, tracer: &Path) {
    let run = |line: &str| progap_in(place, &line.split(' ').collect::<Vec<_>>()).ok();
    run("data synth g.progap --nodes 300 --edges 3000 --classes 3");
    put_tables(&place.join("people"));
    std::fs::create_dir(place.join("empty")).expect("made");
    let mine = "name = 'mine'\nruns = 1\n[base]\nmethod = 'gap'\nepochs = 1\n[vary]\nepsilon = [1, 2]\n";
    std::fs::write(place.join("mine.toml"), mine).expect("written");
    let init =
        "--data g.progap --name g --unit edge-undirected --unit node --rows public --epsilon 9 --delta 1e-5";
    run(&format!("ledger init budget.db {init}"));
    run(&format!("ledger init charged.db {init}"));
    run("key new me");
    put_town(place);
    run("ledger init town.db --data town --epsilon 9 --delta 1e-5");
    run("train town --delta 1e-5 --quiet --ledger town.db --out town-release");
    run("train g.progap --seed 5 --epochs 2 --quiet --out release");
    // Two runs that were killed in the middle.
    for (line, out) in [("--seed 5", "seeded"), ("--ledger charged.db", "charged")] {
        let line = format!(
            "train g.progap --epochs 2 --quiet --method progap-labels --delta 1e-5 {line} --out {out}"
        );
        let arguments: Vec<&str> = line.split(' ').collect();
        let calls = killed(place, tracer, &arguments, 0).1;
        std::fs::remove_dir_all(place.join(out)).expect("it was finished");
        if out == "charged" {
            std::fs::remove_file(place.join("charged.db")).expect("a ledger");
            run(&format!("ledger init charged.db {init}"));
        }
        killed(place, tracer, &arguments, calls / 2);
        assert!(place.join(out).join("run.json").exists(), "{out} was killed in the middle");
    }
}

/// A hundred people who know the next ones, and two who come later.
fn put_town(place: &Path) {
    let people = (0..100).map(|k| format!("p{k},{},{}\n", ["x", "y"][k / 50], k % 50 + k / 50));
    let edges = (0..600).map(|k| format!("p{},p{}\n", k % 100, (k % 100 + k / 100 + 1) % 100));
    let (people, edges): (String, String) = (people.collect(), edges.collect());
    let (people, edges) = (format!("id,label,age\n{people}"), format!("source,target\n{edges}"));
    let files: [(&str, &[u8]); 4] = [
        ("town/nodes.csv", people.as_bytes()),
        ("town/edges.csv", edges.as_bytes()),
        ("later.csv", b"id,age\nann,3\nbob,40\n"),
        ("to-later.csv", b"source,target\nann,p1\np70,bob\nann,p2\n"),
    ];
    common::put(place, &files);
}

/// Runs a command that is killed at a system call that changes files, or never; gives its outcome and how many such
/// calls there were.
fn killed(place: &Path, tracer: &Path, arguments: &[&str], at: usize) -> (Run, usize) {
    let count = place.with_extension("count");
    let mut command = Command::new(tracer);
    command.arg(at.to_string()).arg(&count).arg(env!("CARGO_BIN_EXE_progap")).args(arguments);
    command.current_dir(place).env_remove("PROGAP_DATA").env("RAYON_NUM_THREADS", "1");
    let run = outcome(command.output().expect("the tracer runs"));
    let counted = std::fs::read_to_string(&count).expect("a count");
    (run, counted.trim().parse().expect("a number"))
}

/// The tracer, or nothing where there is no compiler, or processes cannot be traced.
fn tracer(folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/kill_at.c");
    let tracer = folder.join("kill_at");
    let built = Command::new("cc").args(["-O1", "-o"]).arg(&tracer).arg(source).status();
    let works = built.is_ok_and(|status| status.success())
        && Command::new(&tracer)
            .args(["0", "/dev/null", "true"])
            .status()
            .is_ok_and(|status| status.success());
    if !works {
        eprintln!("skipped: it takes a C compiler, and the right to trace processes");
    }
    works.then_some(tracer)
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().expect("cp runs").success());
}

/// The files that count: not those that never had their name, nor what says how long something took.
fn files(place: &Path) -> BTreeMap<String, Vec<u8>> {
    let counts = |name: &String| {
        !name.split('/').any(|part| part.starts_with(".progap-")) && !name.ends_with("private/cost.json")
    };
    contents(place).into_iter().filter(|(name, _)| counts(name)).collect()
}

fn names(files: &BTreeMap<String, Vec<u8>>) -> BTreeSet<&String> {
    files.keys().collect()
}

struct Prepared {
    case: Case,
    calls: usize,
    before: BTreeMap<String, Vec<u8>>,
    after: BTreeMap<String, Vec<u8>>,
}

impl Prepared {
    /// What the command does when nothing happens to it.
    fn of(case: Case, base: &Path, around: &Path, number: usize, tracer: &Path) -> Prepared {
        let place = around.join(format!("whole-{number}"));
        copy(base, &place);
        let (run, calls) = killed(&place, tracer, &case.arguments, 0);
        assert!(run.success, "{}: {}", case.arguments.join(" "), run.stderr);
        Prepared { case, calls, before: files(base), after: files(&place) }
    }

    /// Kills the command at a call, and goes on as a user would. Says what is wrong.
    fn check(&self, base: &Path, place: &Path, at: usize, tracer: &Path) -> Result<(), String> {
        copy(base, place);
        let arguments = &self.case.arguments;
        let wrong =
            |what: &str| format!("{} killed at call {at} of {}: {what}", arguments.join(" "), self.calls);
        let (run, counted) = killed(place, tracer, arguments, at);
        if run.success && counted >= at {
            return Err(wrong("it was not killed"));
        }
        let ledger = self.case.ledger.map_or("", |(ledger, _)| ledger);
        let may_change = |name: &String| {
            // A run that goes on, and tables that are replaced, change their own files.
            let own = |folder: &str| arguments.contains(&folder) && name.starts_with(&format!("{folder}/"));
            (!ledger.is_empty() && name.starts_with(ledger))
                || ["seeded", "charged", "people"].into_iter().any(own)
        };
        let now = files(place);
        if let Some((name, _)) =
            self.before.iter().find(|(name, bytes)| !may_change(name) && now.get(*name) != Some(bytes))
        {
            return Err(wrong(&format!("{name} has changed")));
        }
        let whole = names(&now) == names(&self.after);
        let mut run = progap_in(place, arguments);
        let mut said = run.stderr.trim_end().to_string();
        if !run.success && said.contains("resume") && arguments.contains(&"--out") {
            let out = arguments[arguments.len() - 1];
            run = progap_in(place, &["train", "--resume", out, "--quiet"]);
            said += &format!(" / {}", run.stderr.trim_end());
        } else if !run.success && self.case.force && said.contains("--force") {
            run = progap_in(place, &[&arguments[..], &["--force"]].concat());
            said += &format!(" / {}", run.stderr.trim_end());
        }
        if !run.success && (!whole || said.contains("mistake in progap") || said.lines().count() != 1) {
            return Err(wrong(&format!("it does not go on: {said}")));
        }
        let now = files(place);
        if names(&now) != names(&self.after) {
            let (found, expected) = (names(&now), names(&self.after));
            let differ: Vec<_> = found.symmetric_difference(&expected).collect();
            return Err(wrong(&format!("other files than without the kill: {differ:?}")));
        }
        let others = |(name, bytes): &(&String, &Vec<u8>)| self.after.get(*name) != Some(*bytes);
        let counts = |name: &str| match self.case.bits {
            Bits::Same => true,
            Bits::Names => false,
            Bits::Predictions => name == "new.csv",
        };
        if let Some((name, _)) = now.iter().filter(others).find(|(name, _)| counts(name)) {
            return Err(wrong(&format!("{name} has other bits than without the kill")));
        }
        if let Some((ledger, runs)) = self.case.ledger {
            let checked = progap_in(place, &["ledger", "check", ledger]);
            if !checked.success {
                return Err(wrong(&format!("the ledger: {}", checked.stderr)));
            }
            let charged = match runs {
                0 => 0,
                _ => charged(place, ledger),
            };
            if charged != runs {
                return Err(wrong(&format!("charged {charged} times")));
            }
        }
        std::fs::remove_dir_all(place).map_err(|e| e.to_string())
    }
}

/// How many runs a ledger was charged for, whatever they protect.
fn charged(place: &Path, ledger: &str) -> usize {
    let shown = progap_in(place, &["ledger", "show", ledger, "--runs", "--json"]).json();
    let charges = shown.as_array().expect("budgets").iter().flat_map(|budget| budget["charges"].as_array());
    // A run that counts in several units is one run.
    let runs: BTreeSet<&str> =
        charges.flatten().map(|charge| charge["run_id"].as_str().expect("a run")).collect();
    runs.len()
}

/// Calls at which a command is killed: so many, spread over all of them.
fn spread(calls: usize, kills: usize) -> Vec<usize> {
    let kills = kills.min(calls);
    (0..kills).map(|k| 1 + (k * calls + calls / 2) / kills.max(1)).map(|at| at.min(calls)).collect()
}

#[test]
fn killed_at_any_system_call_nothing_is_lost_and_nothing_stuck() {
    let around = common::folder();
    let Some(tracer) = tracer(around.path()) else { return };
    let (tracer, base_folder) = (&tracer, around.path().join("base"));
    std::fs::create_dir(&base_folder).expect("made");
    base(&base_folder, tracer);
    let only = std::env::var("PROGAP_SWEEP_ONLY").unwrap_or_default();
    let cases = cases().into_iter().filter(|case| case.arguments.join(" ").contains(&only));
    let prepared: Vec<Prepared> = cases
        .enumerate()
        .map(|(number, case)| Prepared::of(case, &base_folder, around.path(), number, tracer))
        .collect();
    // As many kills of each as make so many in all; of a command with few calls, all of them.
    let wanted = std::env::var("PROGAP_SWEEP").ok().and_then(|text| text.parse::<usize>().ok());
    let in_all = |each: usize| prepared.iter().map(|case| case.calls.min(each)).sum::<usize>();
    let most = prepared.iter().map(|case| case.calls).max().unwrap_or(0);
    let each =
        wanted.map_or(SAMPLE, |wanted| (1..=most).find(|&each| in_all(each) >= wanted).unwrap_or(most));
    let tasks: Vec<(&Prepared, usize)> = prepared
        .iter()
        .flat_map(|case| spread(case.calls, each).into_iter().map(move |at| (case, at)))
        .collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut wrong = vec![];
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((case, at)) = tasks.get(number) else { return wrong };
            let place = around.path().join(format!("kill-{number}"));
            wrong.extend(case.check(&base_folder, &place, *at, tracer).err());
            let _ = std::fs::remove_dir_all(&place);
        }
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    });
    let calls: usize = prepared.iter().map(|case| case.calls).sum();
    println!(
        "{} commands of {calls} calls: {} kills, {} went wrong",
        prepared.len(),
        tasks.len(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
