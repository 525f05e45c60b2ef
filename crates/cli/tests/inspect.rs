//! `progap inspect`, as people run it.

mod common;

use common::shared::shared;
use common::{command, counts, fixture, folder, progap_in, put, put_tables, text};

#[test]
fn the_built_in_network_needs_no_file() {
    let folder = folder();
    let table = progap_in(folder.path(), &["inspect", "demo"]).ok();
    for part in ["nodes", "20,000", "homophily", "majority baseline", "memory", "15,000 train"] {
        assert!(table.contains(part), "{part:?} is not in\n{table}");
    }
    assert!(!table.contains('\u{1b}'), "colours where nobody watches: {table:?}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    let summary = progap_in(folder.path(), &["inspect", "demo", "--json"]).json();
    let [nodes, edges, features, classes] = counts(&summary);
    assert_eq!((nodes, features, classes), (20_000, 428, 6));
    assert!((1_250_000..1_350_000).contains(&edges), "{edges}");
    assert_eq!(["train", "val", "test"].map(|part| summary[part].as_u64()), [15_000, 2_000, 3_000].map(Some));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn files_of_every_format_are_recognised() {
    let folder = folder();
    put_tables(folder.path());
    let summary = progap_in(folder.path(), &["inspect", ".", "--json"]).json();
    assert_eq!(counts(&summary), [3, 3, 3, 2]);
    assert_eq!(["train", "val", "test"].map(|part| summary[part].as_u64()), [1, 1, 1].map(Some));
    assert_eq!(summary["undirected"], false);
    let pair = ["inspect", "nodes.csv", "--edges", "edges.csv", "--json", "--label", "town"];
    assert_eq!(counts(&progap_in(folder.path(), &pair).json()), [3, 3, 3, 2]);

    let count = |path: &str| {
        let path = fixture(path);
        counts(
            &progap_in(folder.path(), &["inspect", text(&path), "--json", "--min-class-count", "1"]).json(),
        )
    };
    for path in ["csv", "csv-gz", "csv-zst", "tsv", "pandas", "codec-zstd"] {
        assert_eq!(count(&format!("tables/{path}")), count("tables/csv"), "{path}");
    }
    for path in ["npz/dense.npz", "npz/sparse.npz", "npz/reddit", "npz/ogbn", "facebook100/compressed.mat"] {
        assert!(count(path).iter().all(|&number| number > 0), "{path}");
    }
    assert_eq!(count("facebook100/plain.mat"), count("facebook100/compressed.mat"));
}

#[test]
fn transforms_change_what_is_shown() {
    let folder = folder();
    let nodes = "id,label\n1,a\n2,a\n3,b\n4,a\n";
    let edges = "source,target\n1,2\n1,2\n2,1\n3,3\n2,3\n";
    put(
        folder.path(),
        &[("nodes.csv", nodes.as_bytes()), ("edges.csv", edges.as_bytes()), ("keep", b"1\n3\n")],
    );
    let inspect = |more: &[&str]| {
        let arguments = [&["inspect", ".", "--json"], more].concat();
        let summary = progap_in(folder.path(), &arguments).json();
        (counts(&summary), summary)
    };
    assert_eq!(inspect(&[]).0, [4, 5, 0, 2]);
    assert_eq!(inspect(&["--deduplicate"]).0, [4, 4, 0, 2]);
    assert_eq!(inspect(&["--remove-self-loops"]).0, [4, 4, 0, 2]);
    assert_eq!(inspect(&["--remove-isolated"]).0, [3, 5, 0, 2]);
    assert_eq!(inspect(&["--min-class-count", "2"]).0, [3, 3, 0, 1]);
    assert_eq!(inspect(&["--keep-nodes", "keep"]).0, [2, 1, 0, 2]);
    let (symmetric, summary) = inspect(&["--symmetrise"]);
    assert_eq!((symmetric, &summary["undirected"]), ([4, 5, 0, 2], &true.into()));
    let (_, summary) = inspect(&["--ratios", "0.25,0.25"]);
    assert_eq!(["train", "val", "test"].map(|part| summary[part].as_u64()), [2, 1, 1].map(Some));
}

#[test]
fn options_that_would_have_no_effect_are_refused() {
    let folder = folder();
    put_tables(folder.path());
    let npz = fixture("npz/dense.npz");
    let refused = |arguments: &[&str], parts: &[&str]| {
        progap_in(folder.path(), &[&["inspect"], arguments].concat()).refused(parts);
    };
    refused(&["demo", "--label", "year"], &["\"year\"", "only tables"]);
    refused(&["demo", "--categorical", "a,b"], &["\"a\"", "only tables"]);
    refused(&[text(&npz), "--source", "src"], &["dense.npz", "\"src\"", "only tables"]);
    refused(&[".", "--ratios", "0.2,0.2"], &["--ratios", "--resplit"]);
    refused(&["demo", "--edges", "edges.csv"], &["demo"]);
    // Options that can be honoured are.
    let summary = progap_in(folder.path(), &["inspect", "demo", "--json", "--undirected"]).json();
    assert_eq!(summary["undirected"], true);
    let summary = progap_in(folder.path(), &["inspect", ".", "--json", "--resplit", "--ratios", "0.3,0.3"]);
    assert_eq!(summary.json()["train"], 1);
}

#[test]
fn what_is_not_there_is_explained() {
    let folder = folder();
    let refused = |name: &str, parts: &[&str]| progap_in(folder.path(), &["inspect", name]).refused(parts);
    refused("no/such/folder", &["no/such/folder", "check the spelling"]);
    refused("graph.npz", &["graph.npz", "check the spelling"]);
    refused("redit", &["\"redit\"", "reddit", "progap data list"]);
    refused("fb:Berkeley", &["fb:Berkeley13"]);
    refused("wenet", &["not public"]);
    let message = refused("facebook", &["progap data fetch facebook", "UIllinois20.mat", "--data-dir"]);
    assert!(message.contains("facebook100"), "{message}");
    put(folder.path(), &[("notes.md", b"hello"), ("empty/x", b"")]);
    refused("notes.md", &["notes.md", "no known graph format"]);
    refused("empty", &["empty", "no known graph format"]);
    put(folder.path(), &[("alone/nodes.csv", b"id,label\n1,a\n")]);
    refused("alone", &["alone", "edges.csv"]);
    refused("alone/nodes.csv", &["nodes.csv", "--edges"]);
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    use std::process::Stdio;
    let folder = folder();
    let quick =
        ["train", "demo", "--method", "mlp", "--level", "none", "--epochs", "1", "--quiet", "--out", "r"];
    progap_in(folder.path(), &quick).ok();
    for arguments in [&["data", "list", "--all", "--json"][..], &["predict", "r"]] {
        let mut child = command(folder.path())
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("an end");
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {output:?}");
    }
}

#[test]
fn real_schools_have_the_published_counts() {
    let Some(data) = shared("data") else { return };
    let folder = folder();
    let expected =
        [("fb:Berkeley13", [18_939, 1_354_934, 437, 6]), ("fb:Cornell5", [15_348, 1_303_452, 349, 6])];
    for (name, expected) in expected {
        let by_option = ["inspect", name, "--data-dir", text(&data), "--json"];
        assert_eq!(counts(&progap_in(folder.path(), &by_option).json()), expected, "{name}");
        let mut by_environment = command(folder.path());
        by_environment.args(["inspect", name, "--json"]).env("PROGAP_DATA", &data);
        let output = by_environment.output().expect("the command starts");
        let summary = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(counts(&summary), expected, "{name}");
    }
    let school = data.join("facebook100/Berkeley13.mat");
    let by_path = progap_in(folder.path(), &["inspect", text(&school), "--json"]).json();
    assert_eq!(counts(&by_path), [18_939, 1_354_934, 437, 6]);
}

#[test]
fn a_folder_of_real_schools_is_one_data_set() {
    let Some(data) = shared("data/facebook100") else { return };
    let folder = folder();
    let schools = ["Reed98.mat", "Amherst41.mat", "UChicago30.mat"];
    for school in schools {
        std::fs::copy(data.join(school), folder.path().join(school)).expect("copied");
    }
    let inspect = |more: &[&str]| {
        let arguments = [&["inspect", ".", "--json", "--min-class-count", "500"], more].concat();
        progap_in(folder.path(), &arguments).json()
    };
    // UChicago30 has the year -80085: as published, a missing year is a class.
    let published = inspect(&[]);
    assert_eq!(published["class_counts"][0]["name"], "missing", "{published}");
    let clean = ["inspect", "fb-100-clean", "--json", "--min-class-count", "500", "--data-dir", "."];
    let clean = progap_in(folder.path(), &clean).json();
    assert_eq!(clean["classes"].as_u64().map(|n| n + 1), published["classes"].as_u64(), "{clean}");
}

#[test]
fn real_archives_are_read() {
    let expected = [
        ("amazon_photo", [7_650, 238_162, 745, 8]),
        ("coauthor_cs", [18_333, 163_788, 6_805, 15]),
        ("facebook_pages", [22_470, 341_646, 4_714, 4]),
    ];
    for (name, expected) in expected {
        let Some(path) = shared(&format!("data/other/{name}.npz")) else { return };
        let summary = progap_in(folder().path(), &["inspect", text(&path), "--json", "--undirected"]).json();
        assert_eq!(counts(&summary), expected, "{name}");
    }
}

/// A column that training would refuse is in the list, with what to do about it.
#[test]
fn a_column_of_names_is_listed_as_refused() {
    let folder = folder();
    let row = |node: usize| format!("{node},{},{},name {node},mail {node}\n", ["a", "b"][node % 2], node % 5);
    let nodes: String = (0..200).map(row).collect();
    let nodes = format!("id,label,age,name,mail\n{nodes}");
    put(folder.path(), &[("nodes.csv", nodes.as_bytes()), ("edges.csv", b"source,target\n1,2\n")]);
    let inspected = progap_in(folder.path(), &["inspect", ".", "--json"]).json();
    let columns = inspected["columns"].as_array().expect("columns");
    let refused: Vec<_> = columns.iter().filter(|column| column["kind"] == "refused").collect();
    assert_eq!(refused.iter().map(|column| &column["name"]).collect::<Vec<_>>(), ["name", "mail"]);
    for column in refused {
        assert_eq!(column["categories"], 200);
        assert!(column["note"].as_str().is_some_and(|note| note.contains("--drop ")), "{column}");
    }
    assert_eq!(inspected["features"], 1);
    progap_in(folder.path(), &["train", "."]).refused(&["\"name\"", "--drop name"]);
}
