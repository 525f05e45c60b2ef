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
    let init_all = ["ledger", "init", "b.db", "--data", "g.progap", "--epsilon", "30", "--delta", DELTA];
    let units = ["--name", "pupils", "--unit", "edge-undirected", "--unit", "node", "--rows", "public"];
    progap_in(at, &[&init_all[..], &units].concat()).ok();
    progap_in(at, &[&TRAIN[..], &["b.db", "--out", "first"]].concat()).ok();
    let node = ["--level", "node", "--batch-size", "100", "--ratios", "0.2,0.2", "--out", "second"];
    progap_in(at, &[&TRAIN[..], &["b.db"], &node].concat()).ok();
    let repeats = ["--repeats", "2", "--epsilon", "0.5", "--out", "two"];
    progap_in(at, &[&TRAIN[..], &["b.db"], &repeats].concat()).ok();
    let shown = progap_in(at, &["ledger", "show", "b.db", "--runs", "--json"]).json();
    for (at, (unit, runs)) in [("edge-undirected", 4), ("node", 1)].into_iter().enumerate() {
        assert_eq!((shown[at]["name"].as_str(), shown[at]["unit"].as_str()), (Some("pupils"), Some(unit)));
        assert_eq!(shown[at]["charges"].as_array().map(Vec::len), Some(runs), "{unit}");
        assert_eq!((&shown[at]["identity_known"], &shown[at]["public_rows"]), (&true.into(), &true.into()));
    }
    let receipts = shown.to_string();
    assert!(receipts.contains("\"dataset\":\"pupils\"") && !receipts.contains("fingerprint"), "{receipts}");
    let table = progap_in(at, &["ledger", "show", "b.db"]).ok();
    for part in
        ["pupils", "edge", "node", "budget", "spent", "left", "runs", "known", "not the 3 at edge level"]
    {
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
    assert_eq!(charges(at, "b.db").len(), 5, "charged all the same");
    progap_in(at, &words).ok();
    progap_in(at, &[&TRAIN[..], &["b.db", "--out", "fourth"]].concat()).ok();

    // The ledger does not give the same people a second budget.
    progap_in(at, &init("b.db", &["--name", "again", "--unit", "edge-undirected"])).refused(&[
        "same people",
        "set-budget",
        "--same-people no",
    ]);
    progap_in(at, &["ledger", "set-budget", "b.db", "--name", "pupils", "--epsilon", "9", "--reason", "x"])
        .refused(&["several units", "--unit"]);
    let set = ["ledger", "set-budget", "b.db", "--name", "pupils", "--unit", "node", "--epsilon", "29"];
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
        // Without them these are still the same people, by their ids: no data of theirs is without a budget.
        let run = ["train", ".", "--out", "r", "--epochs", "1", "--delta", "0.05", "--ledger", &ledger];
        let run = progap_in(at, &run);
        match k {
            1 => assert!(run.stderr.contains("protects the unit edge-undirected"), "{}", run.stderr),
            _ => assert!(!run.stderr.contains("no budget"), "{}", run.stderr),
        }
        let _ = std::fs::remove_dir_all(at.join("r"));
    }
}

/// A table of 40 people with a few columns, and edges between them.
fn tables(at: &std::path::Path, order: impl Fn(usize) -> usize, columns: &str, edges: usize) {
    let mut nodes = format!("id,{columns}\n");
    for place in 0..40 {
        let at = order(place);
        let value = |name: &str| match name {
            "age" => (20 + at * 7 % 60).to_string(),
            "town" => ["Ayr", "Bath", "Cork"][at % 3].to_owned(),
            "team" => ["red", "blue"][at % 2].to_owned(),
            _ => (at * at % 97).to_string(),
        };
        let row: Vec<String> = columns.split(',').map(value).collect();
        nodes += &format!("p{},{}\n", at * at, row.join(","));
    }
    let mut lines = String::from("source,target\n");
    for edge in 0..edges {
        let (from, to) = (edge % 40, (edge * 7 + edge / 40 + 1) % 40);
        lines += &format!("p{},p{}\n", from * from, to * to);
    }
    put(at, &[("nodes.csv", nodes.as_bytes()), ("edges.csv", lines.as_bytes())]);
}

/// Another label column, another order, a column less, an edge less: `ledger init` names the first budget, and takes
/// a reason.
#[test]
fn the_same_people_get_one_budget_however_their_tables_are_cut() {
    let place = folder();
    let at = place.path();
    tables(at, |place| place, "town,team,age,score", 120);
    let init = |name: &str, more: &[&str]| {
        let line =
            ["ledger", "init", "b.db", "--data", ".", "--epsilon", "4", "--delta", "1e-3", "--name", name];
        progap_in(at, &[&line[..], more].concat())
    };
    init("first", &["--label", "town"]).ok();
    let refused = |more: &[&str]| init("second", more).refused(&["first", "same people", "--same-people no"]);
    refused(&["--label", "team"]);
    tables(at, |place| (place * 7 + 3) % 40, "town,team,age,score", 120);
    refused(&["--label", "town"]);
    tables(at, |place| place, "town,team,age", 120);
    refused(&["--label", "town"]);
    tables(at, |place| place, "town,team,age,score", 119);
    refused(&["--label", "town"]);
    let unexplained = init("second", &["--label", "town", "--same-people", "no"]);
    assert!(!unexplained.success && unexplained.stderr.contains("--reason"), "{}", unexplained.stderr);
    // Nor is a second name found in training.
    let train =
        ["train", ".", "--label", "team", "--epochs", "1", "--quiet", "--delta", "1e-3", "--ledger", "b.db"];
    let run = progap_in(at, &[&train[..], &["--out", "r"]].concat());
    assert!(run.stderr.contains("the ledger knows as first"), "{}", run.stderr);
    init("second", &["--label", "town", "--same-people", "no", "--reason", "the twins of the first"]).ok();
    let shown = progap_in(at, &["ledger", "show", "b.db"]).ok();
    assert!(shown.contains("the twins of the first"), "{shown}");
    let json = progap_in(at, &["ledger", "show", "b.db", "--json"]).json();
    assert_eq!(json[1]["other_people"].as_str(), Some("the twins of the first"));
    progap_in(at, &["ledger", "check", "b.db"]).ok();
}

#[test]
fn runs_at_edge_level_beside_a_budget_for_nodes_need_public_rows() {
    let place = workplace();
    let at = place.path();
    let units = ["--name", "pupils", "--unit", "edge-undirected", "--unit", "node"];
    progap_in(at, &init("b.db", &units)).ok();
    let train = [&TRAIN[..], &["b.db", "--epsilon", "1", "--out", "first"]].concat();
    progap_in(at, &train).refused(&["features and labels", "set-budget --rows public"]);
    assert!(!at.join("first").exists());
    let state =
        ["ledger", "set-budget", "b.db", "--name", "pupils", "--rows", "public", "--reason", "in print"];
    progap_in(at, &state).ok();
    progap_in(at, &train).ok();
    let shown = progap_in(at, &["ledger", "show", "b.db", "--runs", "--json"]).json();
    assert_eq!(shown[0]["charges"][0]["public_rows"].as_bool(), Some(true));
    assert_eq!((shown[1]["uncounted"].as_u64(), shown[1]["runs"].as_u64()), (Some(1), Some(0)));
    let none = ["train", "g.progap", "--level", "none", "--ledger", "b.db", "--out", "open"];
    progap_in(at, &none).refused(&["shows everything", "--ledger"]);
}

/// An older copy of a ledger is a whole ledger; a later receipt tells it.
#[test]
fn a_receipt_finds_an_older_copy_of_a_ledger() {
    let place = workplace();
    let at = place.path();
    progap_in(at, &init("b.db", &[])).ok();
    std::fs::copy(at.join("b.db"), at.join("older.db")).expect("copied");
    progap_in(at, &[&TRAIN[..], &["b.db", "--epsilon", "1", "--out", "first"]].concat()).ok();
    let all = progap_in(at, &["ledger", "show", "b.db", "--runs", "--json"]).ok();
    let one =
        progap_in(at, &["ledger", "show", "b.db", "--runs", "--json"]).json()[0]["charges"][0].to_string();
    put(at, &[("all.json", all.as_bytes()), ("one.json", one.as_bytes()), ("no.json", b"[]")]);
    let check = |ledger: &str, receipts: &[&str]| {
        let against = receipts.iter().flat_map(|file| ["--against", file]);
        progap_in(at, &[&["ledger", "check", ledger][..], &against.collect::<Vec<_>>()].concat())
    };
    assert!(check("b.db", &["all.json", "one.json"]).ok().contains("1 receipt found"));
    check("older.db", &[]).ok();
    for receipts in ["all.json", "one.json"] {
        check("older.db", &[receipts]).refused(&["older copy", "row 2"]);
    }
    check("b.db", &["no.json"]).refused(&["no.json", "no receipt"]);
    check("b.db", &["g.progap"]).refused(&["g.progap", "no receipt"]);
    check("b.db", &["nowhere.json"]).refused(&["nowhere.json"]);
}

/// A limit on the size of files stops the command at each of its writes.
#[cfg(unix)]
#[test]
fn an_init_that_is_killed_leaves_nothing_that_the_next_one_stumbles_over() {
    let place = workplace();
    let at = place.path();
    let progap = env!("CARGO_BIN_EXE_progap");
    let mut stopped = 0;
    for blocks in (0..80).step_by(5) {
        let name = format!("{blocks}.db");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "ulimit -f $0; exec \"$@\"", &blocks.to_string(), progap]).args(init(&name, &[]));
        let output = shell.current_dir(at).output().expect("a shell");
        if !output.status.success() {
            stopped += 1;
            let left: Vec<_> = std::fs::read_dir(at).expect("a folder").flatten().collect();
            let left = left.iter().map(|entry| entry.file_name().to_string_lossy().into_owned());
            let left: Vec<String> = left.filter(|file| file.starts_with(&name)).collect();
            // Made whole and not yet filled, or not there at all.
            if left.contains(&name) {
                progap_in(at, &["ledger", "check", &name]).ok();
            }
        }
        if !output.status.success() {
            progap_in(at, &init(&name, &[])).ok();
        }
        progap_in(at, &["ledger", "check", &name]).ok();
    }
    assert!(stopped > 3, "no write failed: the limit was not in force");
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
