//! Experiments as people run them: again, killed in the middle, on several machines, with mistakes.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::{command, folder, progap_in, put};
use serde_json::Value;

/// A folder with a small network in it.
fn workplace() -> tempfile::TempDir {
    let folder = folder();
    let size = ["data", "synth", "g.progap", "--nodes", "600", "--edges", "6000", "--classes", "3"];
    progap_in(folder.path(), &size).ok();
    folder
}

/// An experiment on it, quick, whose events are printed.
fn experiment<'a>(name: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["experiment", name, "--data-sets", "g.progap", "--json"];
    arguments.extend(["--set", "epochs=3"]);
    // Batches are of node level: elsewhere the setting is refused.
    let without_nodes = more.windows(2).any(|pair| pair[0] == "--levels" && !pair[1].contains("node"));
    arguments.extend(["--set", "batch_size=100"].iter().filter(|_| !without_nodes));
    arguments.extend(more);
    arguments
}

/// The events that it printed.
#[track_caller]
fn events(place: &Path, arguments: &[&str]) -> Vec<Value> {
    let output = progap_in(place, arguments).ok();
    output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

/// The results of all cells, without times.
fn cells(events: &[Value]) -> Vec<Value> {
    let mut cells = of_kind(events, "end")[0]["cells"].as_array().expect("cells").clone();
    cells.iter_mut().for_each(|cell| {
        cell.as_object_mut().expect("a cell").remove("seconds");
    });
    cells
}

#[test]
fn the_same_experiment_twice_runs_nothing_twice() {
    let place = workplace();
    let run = experiment("table2", &["--runs", "2", "--out", "r"]);
    let first = events(place.path(), &run);
    let runs = of_kind(&first, "run").len();
    assert!(runs >= 2 * 9 && of_kind(&first, "plan")[0]["left"] == runs, "{first:?}");
    let last = of_kind(&first, "run")[runs - 1];
    assert_eq!((&last["left"], &last["done"]), (&0.into(), &runs.into()));
    let second = events(place.path(), &run);
    assert_eq!(of_kind(&second, "plan")[0]["left"], 0);
    assert!(of_kind(&second, "run").is_empty());
    assert_eq!(cells(&first), cells(&second));
    for file in ["report.json", "report.html", "report.md", "tables/accuracy.csv", "tables/accuracy.tex"] {
        assert!(place.path().join("r").join(file).exists(), "{file}");
    }
    // One more run of each, and on another number of cores: the rest is kept, and nothing depends on threads.
    let more = events(place.path(), &experiment("table2", &["--runs", "3", "--out", "r", "-j", "1"]));
    assert_eq!(of_kind(&more, "run").len(), runs / 2);
    let alone = events(place.path(), &experiment("table2", &["--runs", "3", "--out", "other", "-j", "3"]));
    assert_eq!(cells(&more), cells(&alone));
}

/// The default method is among those compared, every figure has its delta, and few runs carry a caution, not an
/// interval.
#[test]
fn tables_say_under_which_guarantee_and_how_sure_they_are() {
    let place = workplace();
    let at = place.path();
    let run = experiment("tradeoff", &["--runs", "2", "--out", "r", "--levels", "edge", "--epsilons", "1,2"]);
    let few = cells(&events(at, &run));
    let methods: Vec<&str> = few.iter().filter_map(|cell| cell["method"].as_str()).collect();
    let each = ["progap-views", "progap-labels", "progap", "gap"].map(|method| [method; 2]);
    assert_eq!(methods, [&each.concat()[..], &["progap-views"]].concat());
    assert!(few.iter().all(|cell| cell["interval"].is_null()), "{few:#?}");
    assert!(few[..8].iter().all(|cell| cell["delta"].is_f64()) && few[8]["delta"].is_null(), "{few:#?}");
    let page = |out: &str| std::fs::read_to_string(at.join(out).join("report.md")).expect("a report");
    let text = page("r");
    assert!(text.contains("Fewer than 5 runs of a figure are too few for an interval"), "{text}");
    assert!(text.contains("the same unit, epsilon and delta") && !text.contains("±"), "{text}");
    assert!(text.contains("| method | level | epsilon | delta | g (%) |"), "{text}");
    let enough: Vec<&str> = run.iter().map(|part| if *part == "2" { "5" } else { part }).collect();
    let enough = cells(&events(at, &enough));
    assert!(enough.iter().all(|cell| cell["interval"].is_array()), "{enough:#?}");
    let text = page("r");
    assert!(text.contains("±") && !text.contains("too few"), "{text}");
    // Settings that were never published stand in no table of published ones.
    let paper = ["experiment", "table2", "--preset", "paper", "--plan", "--out", "p"];
    let plan = progap_in(at, &paper).ok();
    assert!(
        plan.contains("progap-views: it has no published settings, and is there where it is asked for"),
        "{plan}"
    );
    assert!(plan.contains("time") && plan.contains("at a second a run"), "{plan}");
}

#[test]
fn a_killed_experiment_goes_on() {
    let place = workplace();
    // Long enough to be killed in the middle.
    let more = ["--runs", "4", "--out", "killed", "--levels", "edge", "--epsilons", "1,2", "-j", "2"];
    let mut run = experiment("tradeoff", &more);
    run[6] = "epochs=100";
    let mut child = command(place.path()).args(&run).stdout(Stdio::piped()).spawn().expect("it starts");
    let lines = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let mut stored = 0;
    for line in std::io::BufRead::lines(lines).map_while(Result::ok) {
        stored += usize::from(line.contains("\"event\":\"run\""));
        if stored == 3 {
            break;
        }
    }
    child.kill().expect("killed");
    child.wait().expect("it is gone");
    let after = events(place.path(), &run);
    let plan = of_kind(&after, "plan")[0].clone();
    assert!(plan["done"].as_u64().is_some_and(|done| done >= 3), "what was reported is stored: {plan}");
    assert_eq!(
        plan["done"].as_u64().expect("a number") + of_kind(&after, "run").len() as u64,
        plan["runs"].as_u64().expect("a number")
    );
    let whole: Vec<&str> = run.iter().map(|part| if *part == "killed" { "whole" } else { part }).collect();
    assert_eq!(cells(&after), cells(&events(place.path(), &whole)));
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_and_the_store_has_one_writer() {
    let place = workplace();
    let mut run = experiment("tradeoff", &["--runs", "50", "--out", "r", "--levels", "edge", "-j", "1"]);
    run[6] = "epochs=500";
    let child = command(place.path()).args(&run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("it starts");
    let mut plan = String::new();
    let mut lines = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut lines, &mut plan).expect("the plan");
    assert!(plan.contains("plan"), "{plan}");
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    progap_in(place.path(), &run).refused(&["results.sqlite", "another process is writing"]);
    progap_in(place.path(), &["experiment", "merge", "r", "r"]).refused(&["another process is writing"]);
    let signal = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(signal.success());
    let output = child.wait_with_output().expect("it ended");
    let message = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(!output.status.success() && message.contains("run the same command to continue"), "{message}");
}

#[test]
fn failed_runs_are_stored_and_tried_again() {
    let place = workplace();
    let mut run = experiment("table2", &["--runs", "1", "--out", "r", "--methods", "progap-labels"]);
    run[8] = "batch_size=5000";
    let first = events(place.path(), &run);
    let failed = of_kind(&first, "failed");
    assert_eq!((failed.len(), of_kind(&first, "run").len()), (1, 2), "{first:?}");
    assert!(failed[0]["error"].as_str().is_some_and(|error| error.contains("batch size 5000")), "{failed:?}");
    let second = events(place.path(), &run);
    assert_eq!(of_kind(&second, "plan")[0]["left"], 1);
    assert_eq!(of_kind(&second, "failed").len(), 1);
    let page = std::fs::read_to_string(place.path().join("r/report.md")).expect("a report");
    assert!(page.contains("1 runs are missing") && page.contains("batch size 5000"), "{page}");
}

#[test]
fn jobs_run_elsewhere_are_merged() {
    let place = workplace();
    let run = experiment("layerwise", &["--runs", "2", "--out", "r", "--depths", "2", "--levels", "edge"]);
    let with_file = [&run[..], &["--jobs-file", "jobs.txt"]].concat();
    let output = progap_in(place.path(), &with_file);
    assert!(output.success && output.stderr.contains("4 jobs written"), "{}", output.stderr);
    let jobs = std::fs::read_to_string(place.path().join("jobs.txt")).expect("jobs");
    assert_eq!(jobs.lines().count(), 4);
    let program = Path::new(env!("CARGO_BIN_EXE_progap"));
    let path = format!(
        "{}:{}",
        program.parent().expect("a folder").display(),
        std::env::var("PATH").expect("a path")
    );
    // Twice: a job that is done is not done again.
    for _ in 0..2 {
        let shell = Command::new("sh").arg("jobs.txt").current_dir(place.path()).env("PATH", &path).output();
        let shell = shell.expect("a shell");
        assert!(shell.status.success(), "{}", String::from_utf8_lossy(&shell.stderr));
    }
    let parts = std::fs::read_dir(place.path().join("r/parts")).expect("parts");
    let parts = parts.filter_map(Result::ok).map(|entry| entry.path());
    let parts: Vec<String> =
        parts.map(|path| path.display().to_string()).filter(|p| p.ends_with(".sqlite")).collect();
    let merge: Vec<&str> =
        ["experiment", "merge", "r", "--json"].into_iter().chain(parts.iter().map(String::as_str)).collect();
    assert_eq!(progap_in(place.path(), &merge).json()["added"], 4);
    assert_eq!(progap_in(place.path(), &merge).json()["known"], 4);
    let merged = events(place.path(), &run);
    assert_eq!(of_kind(&merged, "plan")[0]["left"], 0);
    let here: Vec<&str> = run.iter().map(|part| if *part == "r" { "here" } else { part }).collect();
    assert_eq!(cells(&merged), cells(&events(place.path(), &here)));
}

#[test]
fn every_experiment_has_its_tables_and_figures() {
    let place = workplace();
    let quick = ["--runs", "2", "--levels", "edge,node", "--store", "all.sqlite", "--out"];
    for (name, more, files) in [
        (
            "tradeoff",
            &["--epsilons", "1,4"][..],
            &["figures/tradeoff-g-edge.svg", "figures/tradeoff-g-node.svg"][..],
        ),
        ("depth", &["--depths", "1,2", "--epsilons", "1"], &["figures/depth-g-edge.svg"]),
        ("convergence", &["--depths", "2"], &["figures/convergence-g-node.svg"]),
        ("layerwise", &["--depths", "2"], &["tables/accuracy.md"]),
        ("ablation", &[], &["tables/accuracy.tex"]),
    ] {
        let arguments = experiment(name, &[&quick[..], &[name], more].concat());
        events(place.path(), &arguments);
        for file in files.iter().chain(&["report.html", "tables/settings.csv"]) {
            assert!(place.path().join(name).join(file).exists(), "{name}: {file}");
        }
    }
    let curves = std::fs::read_to_string(place.path().join("convergence/tables/convergence-g-node.csv"))
        .expect("numbers");
    assert!(curves.contains("training") && curves.contains("validation"), "{curves}");
    std::fs::remove_file(place.path().join("depth/report.html")).expect("removed");
    progap_in(place.path(), &["report", "depth"]).ok();
    assert!(place.path().join("depth/report.html").exists());
    progap_in(place.path(), &["experiment", "collect", "all.md", "tradeoff", "depth"]).ok();
    let document = std::fs::read_to_string(place.path().join("all.md")).expect("a document");
    assert!(document.contains("(all/1-tradeoff-g-edge.svg)"), "{document}");
    assert!(place.path().join("all/2-depth-g-edge.svg").exists());
    progap_in(place.path(), &["experiment", "collect", "all.md", "figures"]).refused(&["no experiment here"]);
    let text =
        progap_in(place.path(), &["experiment", "table1", "--data-sets", "g.progap", "--out", "t"]).ok();
    assert!(text.contains("600") && place.path().join("t/tables/data-sets.csv").exists(), "{text}");
}

#[test]
fn tuning_says_what_it_costs() {
    let place = workplace();
    let some = ["--runs", "2", "--methods", "progap-labels", "--levels", "edge", "--depths", "1,2", "--out"];
    let grid =
        events(place.path(), &experiment("table2", &[&some[..], &["grid", "--tuning", "grid"]].concat()));
    let plan = of_kind(&grid, "plan")[0];
    assert_eq!(plan["runs"], 2 * 2 * 2 * 2);
    assert!(plan["warning"].as_str().is_some_and(|text| text.contains("--tuning private")), "{plan}");
    let best = |key: &str| cells(&grid)[0]["settings"][key].clone();
    assert!(best("layers").is_u64() && best("seed").is_null());
    let private = events(
        place.path(),
        &experiment("table2", &[&some[..], &["private", "--tuning", "private"]].concat()),
    );
    let tuned = cells(&private)[0]["tuned_epsilon"].as_f64().expect("a budget");
    assert!(tuned > 1.0 && tuned < 5.0, "{tuned}");
    assert!(place.path().join("private/tables/tuning.csv").exists());
    // Beside the price stands that nothing here has it.
    let words = of_kind(&private, "plan")[0]["warning"].as_str().expect("a warning").to_string();
    assert!(
        words.contains("nothing is private") && words.contains("no command makes such a release"),
        "{words}"
    );
    let page = std::fs::read_to_string(place.path().join("private/report.html")).expect("a report");
    assert!(page.contains("no command makes such a release"), "the caption says what the price is of");
}

#[test]
fn a_comparison_of_ones_own() {
    let place = workplace();
    let file = "name = \"How deep?\"\ndata-sets = [\"g.progap\"]\nruns = 2\n[base]\nlevel = \"edge\"\nepochs = 3\n\
                [vary]\ndepth = [1, 2]\nepsilon = [1, 4.0]\n";
    put(place.path(), &[("mine.toml", file.as_bytes())]);
    let text = progap_in(place.path(), &["experiment", "custom", "mine.toml"]).ok();
    assert!(text.contains("How deep?") && text.contains("depth"), "{text}");
    let table = std::fs::read_to_string(place.path().join("experiments/how-deep/tables/accuracy.csv"));
    assert_eq!(table.expect("a table").lines().count(), 1 + 4);
}

#[test]
fn mistakes_are_one_sentence_and_lose_nothing() {
    let place = workplace();
    put(
        place.path(),
        &[
            ("unknown.toml", b"name = 'x'\n[base]\ndepht = 3\n"),
            ("key.toml", b"name = 'x'\nrunz = 3\n"),
            ("empty.toml", b"name = 'x'\n[vary]\ndepth = []\n"),
            ("source.toml", b"name = 'x'\ndata-sets = [{ dataset = 'g.progap', lable = 'y' }]\n"),
        ],
    );
    let base = ["--out", "bad", "--runs", "1"];
    for (arguments, parts) in [
        (&["custom", "unknown.toml"][..], &["unknown.toml", "depht", "learning_rate"][..]),
        (&["custom", "key.toml"], &["key.toml", "line 2", "runz"]),
        (&["custom", "empty.toml"], &["empty.toml", "list of depth is empty"]),
        (&["custom", "source.toml"], &["source.toml", "lable"]),
        (&["custom", "missing.toml"], &["missing.toml"]),
        (&["custom", "empty.toml", "--depths", "1"], &["--depths"]),
        (&["table2", "--data-sets", "reddit"], &["reddit", "progap data fetch"]),
        (&["table2", "--data-sets", "nowhere.npz"], &["nowhere.npz"]),
        (&["table2", "--levels", "none", "--methods", "progap-labels", "--set", "epochs=0"], &["epochs"]),
        (&["table2", "--set", "depht=2"], &["no setting", "depht"]),
        (&["table2", "--depths", "1,2"], &["--tuning grid"]),
        (&["merge", "bad", "nothing.sqlite"], &["nothing.sqlite", "no results"]),
        (&["job", "{}", "--out", "x.sqlite"], &["not a job"]),
    ] {
        let mut all = vec!["experiment"];
        all.extend(arguments);
        if !["merge", "job"].contains(&arguments[0]) {
            all.extend(base);
            all.push("--quiet");
        }
        progap_in(place.path(), &all).refused(parts);
    }
    // A store of another kind is left as it is.
    put(
        place.path(),
        &[("bad2/results.sqlite", &b"not a database, but long enough to be read as one? ".repeat(40))],
    );
    let before = std::fs::read(place.path().join("bad2/results.sqlite")).expect("bytes");
    progap_in(place.path(), &["experiment", "table2", "--out", "bad2", "--quiet"])
        .refused(&["not a store of results"]);
    assert_eq!(std::fs::read(place.path().join("bad2/results.sqlite")).expect("bytes"), before);
    // Data that changed under the same name is noticed, and what is there stays.
    let run = experiment("table2", &["--runs", "1", "--out", "r", "--methods", "mlp", "--levels", "none"]);
    events(place.path(), &run);
    let other = ["data", "synth", "g.progap", "--nodes", "700", "--edges", "6000", "--classes", "3"];
    progap_in(place.path(), &[&other[..], &["--force"]].concat()).ok();
    let more: Vec<&str> = run.iter().map(|part| if *part == "none" { "none,edge" } else { part }).collect();
    let refused = progap_in(place.path(), &more);
    assert!(
        refused.stderr.contains("the data set g has changed") && refused.stderr.contains("--out"),
        "{}",
        refused.stderr
    );
    assert_eq!(of_kind(&events(place.path(), &run), "plan")[0]["done"], 1);
}

/// Accuracy against the share of labels: each share has runs of its own, and one figure shows them all.
#[test]
fn shares_of_labels_are_drawn() {
    let place = workplace();
    let shares = ["--shares", "0.05,0.5", "--runs", "1", "--levels", "edge", "--out", "r"];
    let cells = cells(&events(place.path(), &experiment("labels", &shares)));
    assert_eq!(cells.len(), 2 * 4, "two shares; three kinds of progap and mlp: {cells:#?}");
    let text = std::fs::read_to_string(place.path().join("r/report.md")).expect("a report");
    for told in ["share of labels", "5 %", "50 %", "progap-views", "progap", "mlp"] {
        assert!(text.contains(told), "{told}: {text}");
    }
    let refused = ["experiment", "labels", "--data-sets", "g.progap", "--shares", "0.9", "--out", "q"];
    let refused = progap_in(place.path(), &refused);
    assert!(!refused.success && refused.stderr.contains("up to 0.85"), "{}", refused.stderr);
    assert!(!place.path().join("q").exists());
}
