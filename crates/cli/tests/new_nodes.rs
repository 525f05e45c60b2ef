//! Predictions about nodes that were not there in training.

mod common;

use std::path::Path;

use common::{Run, command, folder, outcome, progap_in, put};

const HEADER: &str = "id,label,pay,town,joined,note,age";

/// A hundred people with all kinds of columns; pay is in a unit of its own, and some ages are missing.
fn people(with_labels: bool) -> String {
    let mut table =
        if with_labels { format!("{HEADER}\n") } else { "age,note,id,town,joined,pay,more\n".into() };
    for k in 0..100u32 {
        let rich = k % 3 == 0;
        let label = if rich { "rich" } else { "poor" };
        // Far from zero: 32 bits would not hold the differences.
        let pay = 1_000_000_000_000u64 + u64::from(if rich { 90_000 + 13 * k } else { 20_000 + 17 * k });
        let town = ["Oslo", "Rome", "Bern"][(k % 7 % 3) as usize];
        let joined = format!("20{:02}-0{}-11", 10 + k % 9, 1 + k % 8);
        let note = ["likes red cars", "a blue bicycle", "cars and trains"][(k % 5 % 3) as usize];
        let age = if k % 10 == 0 { String::new() } else { (20 + k % 50).to_string() };
        table += &match with_labels {
            true => format!("p{k},{label},{pay},{town},{joined},{note},{age}\n"),
            false => format!("{age},{note},p{k},{town},{joined},{pay},unused {k}\n"),
        };
    }
    table
}

fn trained(place: &Path, settings: &[&str], out: &str) {
    let edges: String = (0..100).map(|k| format!("p{k},p{}\n", (k * 7 + 3) % 100)).collect();
    let (nodes, edges) = (people(true), format!("source,target\n{edges}"));
    put(place, &[("data/nodes.csv", nodes.as_bytes()), ("data/edges.csv", edges.as_bytes())]);
    put(place, &[("later.csv", people(false).as_bytes())]);
    let common =
        ["train", "data", "--text", "note", "--number", "pay", "--seed", "1", "--quiet", "--out", out];
    let run = progap_in(place, &[&common[..], settings].concat());
    assert!(run.success, "{}", run.stderr);
}

/// Ids with their probabilities.
fn predictions(table: &str) -> Vec<(String, Vec<f64>)> {
    let row = |line: &str| {
        let mut cells = line.split(',');
        let id = cells.next().expect("an id").to_string();
        (id, cells.skip(2).take(2).map(|p| p.parse().expect("a number")).collect())
    };
    table.lines().skip(1).map(row).collect()
}

#[test]
fn rows_of_another_table_become_the_same_features() {
    let place = folder();
    let at = place.path();
    for (level, out) in [("none", "none"), ("edge", "edge"), ("node", "node")] {
        let epsilon: &[&str] = if level == "none" { &[] } else { &["--epsilon", "8"] };
        let settings = [&["--level", level, "--method", "mlp", "--epochs", "5"][..], epsilon].concat();
        // A perceptron reads rows alone: about its own nodes it says the same either way.
        let settings: Vec<&str> = if level == "edge" { settings[..6].to_vec() } else { settings };
        trained(at, &settings, out);
        let own = progap_in(at, &["predict", out]);
        let later = progap_in(at, &["predict", out, "--rows", "later.csv"]);
        assert!(own.success && later.success, "{}{}", own.stderr, later.stderr);
        let (mut own, mut later) = (predictions(&own.stdout), predictions(&later.stdout));
        // A release lists nodes in the order of their ids, and later rows stay as they are.
        own.sort_by(|a, b| a.0.cmp(&b.0));
        later.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(own.len(), later.len());
        for ((id, own), (other, later)) in own.iter().zip(&later) {
            assert_eq!(id, other);
            assert!(
                own.iter().zip(later).all(|(a, b)| (a - b).abs() < 1e-4),
                "{level} {id}: {own:?} {later:?}"
            );
        }
    }
}

#[test]
fn methods_that_read_the_graph_predict_later_nodes_by_their_features() {
    let place = folder();
    let at = place.path();
    for method in ["progap-views", "progap-labels", "gap", "sage", "lpgnet"] {
        let level = if method == "sage" { "none" } else { "edge" };
        trained(at, &["--level", level, "--method", method], method);
        let run =
            progap_in(at, &["predict", method, "--rows", "later.csv", "--out", &format!("{method}.json")]);
        assert!(run.success, "{method}: {}", run.stderr);
        let text = std::fs::read_to_string(at.join(format!("{method}.json"))).expect("predictions");
        let rows: Vec<serde_json::Value> = serde_json::from_str(&text).expect("JSON");
        assert_eq!(rows.len(), 100);
        assert!(rows.iter().all(|row| row["labelled"] == false));
    }
    // Pay alone tells the class.
    let text = progap_in(at, &["predict", "progap-views", "--rows", "later.csv"]);
    let right = text
        .stdout
        .lines()
        .skip(1)
        .enumerate()
        .filter(|(k, line)| line.split(',').nth(1) == Some(if k % 3 == 0 { "rich" } else { "poor" }));
    assert!(right.count() > 90, "{}", text.stdout);
}

/// A run of `predict --rows` with its exit code.
fn predict(at: &Path, arguments: &[&str]) -> (i32, Run) {
    let output =
        command(at).args(["predict", "release", "--rows"]).args(arguments).output().expect("it starts");
    (output.status.code().expect("an exit code"), outcome(output))
}

const GOOD: &str = "id,pay,town,joined,note,age\n";

#[test]
fn tables_that_do_not_fit_are_refused() {
    let place = folder();
    let at = place.path();
    trained(at, &["--level", "none", "--method", "mlp", "--epochs", "2"], "release");
    let cases: [(&str, &[&str]); 4] = [
        ("id,town,joined,note,age\na,Oslo,2011-01-11,red,3\n", &["pay", "no column"]),
        ("id,town,joined,note\na,Oslo,2011-01-11,red\n", &["pay", "age", "no column"]),
        (GOOD, &["no rows"]),
        ("pay,town\n1,Oslo\n", &["id column", "(--id COLUMN)"]),
    ];
    for (table, parts) in cases {
        put(at, &[("bad.csv", table.as_bytes())]);
        let said =
            progap_in(at, &["predict", "release", "--rows", "bad.csv", "--out", "p.csv"]).refused(parts);
        assert!(said.contains("bad.csv") && !said.contains("--drop"), "{said}");
        assert!(!at.join("p.csv").exists() && !at.join("rejects.csv").exists());
    }
    let both = progap_in(at, &["predict", "release", "--rows", "later.csv", "--nodes", "p1"]);
    assert!(!both.success && both.stderr.contains("cannot be used with"), "{}", both.stderr);
    progap_in(at, &["predict", "release", "--rows", "gone.csv"]).refused(&["gone.csv"]);
    let lenient = progap_in(at, &["predict", "release", "--lenient"]);
    assert!(!lenient.success && lenient.stderr.contains("--rows"), "{}", lenient.stderr);
}

/// Good rows between rows of every kind that does not fit.
fn mixed() -> String {
    let rows = [
        "a,5,Oslo,2011-01-11,red,3",
        "b,5,Paris,2011-01-11,red,3",
        "c,much,Oslo,2011-01-11,red,3",
        "d,,Oslo,2011-01-11,red,3",
        "e,5,Oslo,11/01/2011,red,3",
        "a,5,Oslo,2011-01-11,red,3",
        ",5,Oslo,2011-01-11,red,3",
        "h,5,Oslo",
        "i,5,,2011-01-11,,",
        "j,5,Rome,2011-01-11,red,old",
    ];
    format!("{GOOD}{}\n", rows.join("\n"))
}

#[test]
fn rows_that_do_not_fit_are_listed_and_the_others_predicted() {
    let place = folder();
    let at = place.path();
    trained(at, &["--level", "none", "--method", "mlp", "--epochs", "2"], "release");
    put(at, &[("mixed.csv", mixed().as_bytes())]);
    let (code, run) = predict(at, &["mixed.csv"]);
    assert_eq!(code, 3, "{}", run.stderr);
    assert_eq!(run.stderr, "caution: 8 of 10 rows were rejected: rejects.csv has the reasons\n");
    let ids: Vec<String> = predictions(&run.stdout).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["a", "i"]);
    let listed = std::fs::read_to_string(at.join("rejects.csv")).expect("a list");
    let expected = "row,id,column,reason\n\
        3,b,town,\"the category \"\"Paris\"\" was not known in training\"\n\
        4,c,pay,\"\"\"much\"\" is not a number\"\n\
        5,d,pay,\"the value is missing, and none was in training\"\n\
        6,e,joined,\"\"\"11/01/2011\"\" is not a date with the year first, as in training\"\n\
        7,a,,the id stands already in row 2\n\
        8,,id,the value is missing\n\
        9,,,\"the row has 3 cells, the header 6\"\n\
        11,j,age,\"\"\"old\"\" is not a number\"\n";
    assert_eq!(listed, expected);
    // One row by itself is predicted as it is among others.
    put(at, &[("one.csv", format!("{GOOD}a,5,Oslo,2011-01-11,red,3\n").as_bytes())]);
    let alone = progap_in(at, &["predict", "release", "--rows", "one.csv"]).ok();
    assert_eq!(alone.lines().nth(1), run.stdout.lines().nth(1));
    // A list that is there is not replaced unless that is asked for, and nothing else is written then.
    let (code, again) = predict(at, &["mixed.csv", "--out", "p.csv"]);
    assert_eq!(code, 1);
    assert!(again.stderr.contains("rejects.csv") && again.stderr.contains("--force"), "{}", again.stderr);
    assert!(!at.join("p.csv").exists());
    let (code, _) = predict(at, &["mixed.csv", "--out", "p.csv", "--rejects", "other.csv"]);
    assert_eq!((code, at.join("p.csv").exists()), (3, true));
    assert_eq!(std::fs::read_to_string(at.join("other.csv")).expect("a list"), listed);
    let (code, _) = predict(at, &["mixed.csv", "--out", "p.csv", "--force"]);
    assert_eq!(code, 3);
    // The list lies beside the output.
    std::fs::create_dir(at.join("there")).expect("a folder");
    let (code, run) = predict(at, &["mixed.csv", "--out", "there/p.parquet", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((code, &said["nodes"], &said["rejected"]), (3, &2.into(), &8.into()));
    assert_eq!((&said["out"], &said["rejects"]), (&"there/p.parquet".into(), &"there/rejects.csv".into()));
    assert!(at.join("there/rejects.csv").exists());
}

#[test]
fn lenient_takes_what_does_not_fit_as_missing_where_it_can() {
    let place = folder();
    let at = place.path();
    trained(at, &["--level", "none", "--method", "mlp", "--epochs", "2"], "release");
    put(at, &[("mixed.csv", mixed().as_bytes())]);
    let (code, run) = predict(at, &["mixed.csv", "--lenient", "--json"]);
    assert_eq!(code, 3);
    assert!(run.stderr.contains("2 values that do not fit were taken as missing"), "{}", run.stderr);
    let said: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((&said["rejected"], &said["taken_as_missing"]), (&6.into(), &2.into()));
    let ids: Vec<&str> =
        said["predictions"].as_array().expect("a list").iter().filter_map(|row| row["id"].as_str()).collect();
    assert_eq!(ids, ["a", "b", "i", "j"]);
    // An unknown town is none of those that were known, an unknown age a missing one.
    let empty = format!("{GOOD}b,5,,2011-01-11,red,3\nj,5,Rome,2011-01-11,red,\n");
    put(at, &[("empty.csv", empty.as_bytes())]);
    let same = progap_in(at, &["predict", "release", "--rows", "empty.csv", "--json"]).json();
    assert_eq!(same["predictions"][0], said["predictions"][1]);
    assert_eq!(same["predictions"][1], said["predictions"][3]);
    // No row fits: there is nothing to predict, and a list of them.
    put(at, &[("none.csv", format!("{GOOD}x,much,Oslo,2011-01-11,red,3\n").as_bytes())]);
    let (code, run) = predict(at, &["none.csv", "--force"]);
    assert_eq!((code, run.stdout.lines().count()), (3, 1));
}

/// `03/04/2020` is in April where training had days first, and in March where it had months first: no later table
/// changes that.
#[test]
fn dates_are_read_in_the_order_of_training() {
    let edges: String = (0..60).map(|k| format!("{k},{}\n", (k * 7 + 3) % 60)).collect();
    for (level, unscaled) in [("none", false), ("edge", false), ("node", false), ("none", true)] {
        for day_first in [true, false] {
            let place = folder();
            let at = place.path();
            let date = |k: u32| {
                let (day, month) = (1 + k * 5 % 28, 1 + k % 12);
                let (first, second) = if day_first { (day, month) } else { (month, day) };
                format!("{first:02}/{second:02}/2020")
            };
            let table: String = (0..60).map(|k| format!("{k},{},{}\n", k % 2, date(k))).collect();
            put(
                at,
                &[
                    ("data/nodes.csv", format!("id,label,when\n{table}").as_bytes()),
                    ("data/edges.csv", format!("source,target\n{edges}").as_bytes()),
                ],
            );
            let common = ["train", "data", "--level", level, "--method", "mlp", "--seed", "1", "--quiet"];
            let more: &[&str] = if unscaled { &["--unscaled"] } else { &[] };
            let run = progap_in(at, &[&common[..], &["--epochs", "2", "--out", "release"], more].concat());
            assert!(run.success, "{}", run.stderr);
            let iso = if day_first { "2020-04-03" } else { "2020-03-04" };
            let later = format!("id,when\none,03/04/2020\ntwo,{iso}\nbad,03/14/2020\nworse,14/03/2020\n");
            put(at, &[("later.csv", later.as_bytes())]);
            let (code, run) = predict(at, &["later.csv"]);
            assert_eq!(code, 3, "{level}: {}", run.stderr);
            let found = predictions(&run.stdout);
            let good = if day_first { "worse" } else { "bad" };
            assert_eq!(found.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["one", "two", good]);
            assert_eq!(found[0].1, found[1].1, "{level} {day_first}");
        }
    }
}

#[test]
fn an_export_without_rows_predicts_new_ones_as_the_release_does() {
    let place = folder();
    let at = place.path();
    for (level, out) in [("edge", "edge"), ("node", "node")] {
        let settings: &[&str] = match level {
            "edge" => &["--level", "edge"],
            _ => &["--level", "node", "--epsilon", "8", "--epochs", "2"],
        };
        trained(at, settings, out);
        let export = format!("{out}-export");
        progap_in(at, &["export", out, &export, "--date", "2026-01-31"]).ok();
        progap_in(at, &["verify", &export]).ok();
        let files: Vec<String> = std::fs::read_dir(at.join(&export))
            .expect("an export")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        assert!(
            files.contains(&"schema.json".to_string()) && !files.contains(&"private".to_string()),
            "{files:?}"
        );
        // No row, and no id but where ids are: the schema has columns, categories and scale.
        let schema = std::fs::read_to_string(at.join(&export).join("schema.json")).expect("a schema");
        assert!(schema.contains("town=Oslo") && !schema.contains("p17"), "{schema}");
        let rows = |release: &str| {
            progap_in(at, &["predict", release, "--rows", "later.csv", "--date", "2026-01-31"]).stdout
        };
        let (own, exported) = (rows(out), rows(&export));
        assert_eq!(predictions(&own), predictions(&exported));
        assert!(own.lines().skip(1).all(|line| line.contains(",features,")), "{own}");
        // About its own nodes it still says nothing.
        let refused = progap_in(at, &["predict", &export]);
        assert!(
            !refused.success && refused.stderr.contains("rows of the nodes") || level == "node",
            "{}",
            refused.stderr
        );
    }
    // A schema of another release is found.
    let other = std::fs::read(at.join("node-export/schema.json")).expect("a schema");
    let mut schema: serde_json::Value = serde_json::from_slice(&other).expect("JSON");
    schema["width"] = 3.into();
    std::fs::write(at.join("edge-export/schema.json"), schema.to_string()).expect("written");
    progap_in(at, &["predict", "edge-export", "--rows", "later.csv"]).refused(&["schema.json", "checksum"]);
}
