//! `progap ledger` and `progap train --ledger`: whose budget is charged, and what is said about it.

mod common;

use common::runs::{DELTA, charges, workplace};
use common::{folder, progap_in, put};

fn init<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["ledger", "init", file, "--data", "g.progap", "--epsilon", "9", "--delta", DELTA], more].concat()
}

const TRAIN: [&str; 8] = ["train", "g.progap", "--epochs", "2", "--quiet", "--delta", DELTA, "--ledger"];

#[test]
fn the_budget_is_found_by_the_data_and_other_data_under_its_name_are_said_aloud() {
    let place = workplace();
    let at = place.path();
    progap_in(at, &init("b.db", &["--name", "pupils", "--unit", "edge-undirected", "--unit", "node"])).ok();
    progap_in(at, &[&TRAIN[..], &["b.db", "--out", "first"]].concat()).ok();
    let node = ["--level", "node", "--batch-size", "100", "--ratios", "0.2,0.2", "--out", "second"];
    progap_in(at, &[&TRAIN[..], &["b.db"], &node].concat()).ok();
    let repeats = ["--repeats", "2", "--epsilon", "0.5", "--out", "two"];
    progap_in(at, &[&TRAIN[..], &["b.db"], &repeats].concat()).ok();
    let shown = progap_in(at, &["ledger", "show", "b.db", "--runs", "--json"]).json();
    for (at, (unit, runs)) in [("edge-undirected", 3), ("node", 1)].into_iter().enumerate() {
        assert_eq!((shown[at]["name"].as_str(), shown[at]["unit"].as_str()), (Some("pupils"), Some(unit)));
        assert_eq!(shown[at]["charges"].as_array().map(Vec::len), Some(runs), "{unit}");
        assert_eq!((&shown[at]["identity_known"], &shown[at]["upgraded"]), (&true.into(), &false.into()));
    }
    let receipts = shown.to_string();
    assert!(receipts.contains("\"dataset\":\"pupils\"") && !receipts.contains("fingerprint"), "{receipts}");
    let table = progap_in(at, &["ledger", "show", "b.db"]).ok();
    for part in ["pupils", "edge", "node", "budget", "spent", "left", "runs", "known"] {
        assert!(table.contains(part), "{part}: {table}");
    }

    // Other data: an error without a name, a warning with one.
    let other = ["data", "synth", "g.progap", "--nodes", "1500", "--edges", "40000", "--classes", "3"];
    progap_in(at, &[&other[..], &["--seed", "9", "--force"]].concat()).ok();
    let refused = progap_in(at, &[&TRAIN[..], &["b.db", "--out", "third"]].concat())
        .refused(&["no budget", "progap ledger init b.db --data g.progap"]);
    // The line that it says is the line to run.
    let line = refused.split('`').nth(1).expect("a command").to_owned();
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    let named =
        [&TRAIN[..], &["b.db", "--ledger-name", "pupils", "--epsilon", "0.1", "--out", "third"]].concat();
    let run = progap_in(at, &named);
    assert!(run.success && run.stderr.lines().count() == 1, "{}", run.stderr);
    assert!(run.stderr.contains("not the data that the ledger knows as pupils"), "{}", run.stderr);
    assert_eq!(charges(at, "b.db").len(), 4, "charged all the same");
    progap_in(at, &words).ok();
    progap_in(at, &[&TRAIN[..], &["b.db", "--out", "fourth"]].concat()).ok();

    // The ledger does not spare the same people a second budget.
    progap_in(at, &init("b.db", &["--name", "again", "--unit", "edge-undirected"]))
        .refused(&["already", "set-budget"]);
    progap_in(at, &["ledger", "set-budget", "b.db", "--name", "pupils", "--epsilon", "9", "--reason", "x"])
        .refused(&["several units", "--unit"]);
    let set = ["ledger", "set-budget", "b.db", "--name", "pupils", "--unit", "node", "--epsilon", "8.5"];
    assert!(progap_in(at, &[&set[..], &["--reason", "agreed"]].concat()).ok().contains("unit node"));
    progap_in(at, &["ledger", "check", "b.db"]).ok();
}

/// The data that training loads with some options is what the ledger must know under them.
#[test]
fn the_options_that_change_the_data_are_the_same_here_and_in_training() {
    let place = folder();
    let at = place.path();
    let nodes = "id,label,age,town,split\nann,x,30,Ayr,train\ndee,y,20,Bath,train\nbob,y,40,Bath,val\ncem,x,50,Ayr,test\n";
    let edges = "source,target\nann,bob\nbob,ann\nbob,cem\n";
    put(at, &[("nodes.csv", nodes.as_bytes()), ("edges.csv", edges.as_bytes())]);
    // Small enough to be told apart by hand: no default delta would do.
    let options: [&[&str]; 3] = [&["--label", "town"], &["--symmetrise"], &["--remove-self-loops"]];
    for (k, options) in options.into_iter().enumerate() {
        let (ledger, name) = (format!("{k}.db"), format!("set {k}"));
        let budget = ["--name", &name, "--epsilon", "4", "--delta", "0.05"];
        progap_in(at, &[&["ledger", "init", &ledger, "--data", "."], &budget[..], options].concat()).ok();
        let run = ["train", ".", "--out", "r", "--epochs", "1", "--delta", "0.05", "--ledger", &ledger];
        // The budget is found by the data, under a name that is not theirs.
        let run = progap_in(at, &[&run[..], options].concat());
        assert!(!run.stderr.contains("no budget") && !run.stderr.contains("warning"), "{}", run.stderr);
        let _ = std::fs::remove_dir_all(at.join("r"));
        // Without them these are other data, but where the option changes nothing.
        if k < 2 {
            let run = ["train", ".", "--out", "r", "--epochs", "1", "--delta", "0.05", "--ledger", &ledger];
            progap_in(at, &run).refused(&["no budget", "--data ."]);
        }
    }
}

#[test]
fn budgets_that_no_run_can_ever_use_are_refused_and_no_file_is_made() {
    let place = workplace();
    let at = place.path();
    let with = |epsilon: &str, delta: &str, more: &[&str], parts: &[&str]| {
        let budget = ["ledger", "init", "b.db", "--data", "g.progap", "--epsilon", epsilon, "--delta", delta];
        progap_in(at, &[&budget[..], more].concat()).refused(parts);
        assert!(!at.join("b.db").exists(), "{epsilon} {delta} {more:?}");
    };
    with("0.0009", DELTA, &[], &["epsilon", "0.001 to 1000"]);
    with("2000", DELTA, &[], &["epsilon", "0.001 to 1000"]);
    with("nan", DELTA, &[], &["epsilon"]);
    with("1", "1e-40", &[], &["delta", "1e-30"]);
    with("1", "0.2", &[], &["delta", "0.1"]);
    with("500", DELTA, &[], &["noise tables", "larger delta or a smaller epsilon"]);
    // One value of noise could be kept, but not one for each node.
    with("50", DELTA, &[], &["noise tables"]);
    with("1", "1e-28", &[], &["noise tables"]);
    // More than one record in expectation.
    with("1", "1e-4", &["--unit", "edge"], &["delta", "edges"]);
    with("1", "1e-3", &["--unit", "node"], &["delta", "1500 nodes"]);
    let budget = ["ledger", "init", "b.db", "--data", "g.progap", "--epsilon", "1", "--delta", DELTA];
    let unknown = progap_in(at, &[&budget[..], &["--unit", "planet"]].concat());
    assert!(!unknown.success && unknown.stderr.contains("edge-undirected"), "{}", unknown.stderr);
    assert!(!at.join("b.db").exists());
    with("1", DELTA, &["--name", "two\nlines"], &["name"]);
    let nothing = ["ledger", "init", "b.db", "--data", "nothing", "--epsilon", "1", "--delta", "1e-5"];
    progap_in(at, &nothing).refused(&["nothing"]);
    assert!(!at.join("b.db").exists());
    // The published rule counts 900 training nodes where 1200 are protected: its runs have a budget, too.
    progap_in(at, &["data", "synth", "h.progap", "--nodes", "1200", "--edges", "9000", "--classes", "3"])
        .ok();
    let paper = |delta| {
        ["ledger", "init", "b.db", "--data", "h.progap", "--unit", "node", "--epsilon", "8", "--delta", delta]
    };
    progap_in(at, &paper("1e-2")).refused(&["at most 1e-3", "1200 nodes"]);
    progap_in(at, &paper("1e-3")).ok();
}
