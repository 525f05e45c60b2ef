//! Everything that people's files can have wrong with them, through the command: one sentence that names the
//! file, the place and the remedy, an exit code, and nothing written.

mod common;

use std::path::Path;

use common::npz::{archive, array, floats, integers};
use common::{fixture, folder, progap_in, put, put_tables};

/// Converts `input`, which must be refused with these words.
#[track_caller]
fn refused(folder: &Path, input: &[&str], parts: &[&str]) {
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    let before = names(folder);
    for output in ["out.progap", "out.npz", "out"] {
        progap_in(folder, &[&["data", "convert", input[0], output], &input[1..]].concat()).refused(parts);
    }
    let message = progap_in(folder, &[&["inspect"], input].concat()).refused(parts);
    assert!(message.contains("; "), "no remedy: {message}");
    assert_eq!(names(folder), before, "something was written");
}

#[track_caller]
fn table_refused(nodes: &str, edges: &str, parts: &[&str]) {
    let folder = folder();
    put(folder.path(), &[("nodes.csv", nodes.as_bytes()), ("edges.csv", edges.as_bytes())]);
    refused(folder.path(), &["."], parts);
}

#[test]
fn tables() {
    let nodes = "id,label,x\n1,a,0.5\n2,b,1\n";
    let edges = "source,target\n1,2\n";
    table_refused(
        "id,label,x\n1,,1\n2,,1\n",
        edges,
        &["nodes.csv", "no classes", "at least one labelled node"],
    );
    table_refused("id,x\n1,1\n", edges, &["nodes.csv", "label column", "found: id, x", "--label COLUMN"]);
    table_refused("id,label,x\n1,a,1\n2,a,2\n3,b,few\n", edges, &["row 4", "\"few\"", "--categorical x"]);
    table_refused("id,label\n1,a\n2,b\n1,a\n", edges, &["nodes.csv", "row 4", "\"1\"", "row 2"]);
    table_refused(nodes, "source,target\n1,2\n1,3\n", &["edges.csv", "row 3", "\"target\"", "\"3\""]);
    table_refused(nodes, "source,target\n1,2\n-1,2\n", &["edges.csv", "row 3", "\"source\"", "\"-1\""]);
    table_refused(nodes, "source,target\n1,99999999999999999999\n", &["edges.csv", "row 2", "\"target\""]);
    table_refused("id,label\n", edges, &["nodes.csv", "no nodes"]);
    table_refused("", edges, &["nodes.csv", "no header"]);
    table_refused("id,label,x\n1,a\n", edges, &["nodes.csv", "row 2", "cells"]);
    table_refused(
        "id,label\n1,1\n2,-1\n",
        edges,
        &["\"label\"", "-1 and 1", "--unknown -1, or --unknown NA"],
    );
    let measured: String = (0..40).map(|node| format!("{node},{node}.5\n")).collect();
    table_refused(&format!("id,label\n{measured}"), edges, &["40 different values", "--label COLUMN"]);
    let dates = "id,label,on\n1,a,2020-01-02\n2,b,2020-02-31\n3,a,2020-01-04\n";
    table_refused(dates, edges, &["row 3", "\"2020-02-31\" is not a date", "--categorical on or --drop on"]);
    let either = "id,label,on\n1,a,01/02/2020\n2,b,02/03/2020\n";
    table_refused(either, edges, &["\"on\"", "--date on:day-first or --date on:month-first"]);
    table_refused("id,label,pay\n1,a,$3\n2,b,$4\n", edges, &["row 2", "\"$3\"", "--categorical pay"]);
    table_refused("id,label,split\n1,a,trian\n", edges, &["nodes.csv", "row 2", "\"split\"", "\"trian\""]);
}

#[test]
fn contradictions_and_places_in_other_files() {
    let folder = folder();
    put_tables(folder.path());
    let refused = |arguments: &[&str], parts: &[&str]| {
        progap_in(folder.path(), &[&["inspect"], arguments].concat()).refused(parts);
    };
    refused(&[".", "--drop", "x", "--number", "x"], &["--drop x and --number x contradict each other"]);
    let lists: [(&str, &[u8]); 3] = [
        ("g.txt", b"1 2\n2 3\n"),
        ("l.txt", b"1 a\n1 b\n"),
        (
            "g.graphml",
            b"<graphml><key id=\"d0\" for=\"node\" \
            attr.name=\"label\"/><graph><node id=\"n\"><data key=\"d9\">1</data></node></graph></graphml>",
        ),
    ];
    put(folder.path(), &lists);
    refused(&["g.txt", "--labels", "l.txt"], &["l.txt: row 2", "\"1\""]);
    refused(&["g.graphml"], &["\"d9\"", "not declared"]);
    refused(&["demo", "--unknown", "NA"], &["says itself"]);
}

#[test]
fn claims_about_directions() {
    let folder = folder();
    put_tables(folder.path());
    refused(folder.path(), &[".", "--undirected"], &["undirected", "1 -> 2", "edge back"]);
    let both = progap_in(folder.path(), &["inspect", ".", "--undirected", "--symmetrise"]);
    assert!(!both.success && both.stderr.contains("cannot be used with"), "{}", both.stderr);
}

/// The arrays of a small data set, with one exchanged or added.
fn archive_with(key: &'static str, content: Option<Vec<u8>>) -> Vec<u8> {
    let edges: Vec<u8> = [0i64, 1, 1, 2].iter().flat_map(|node| node.to_le_bytes()).collect();
    let mut arrays = vec![
        ("y", integers(&[0, 1, 0])),
        ("x", floats("(3, 1)", &[1.0, 2.0, 3.0])),
        ("edge_index", array("<i8", "(2, 2)", &edges)),
    ];
    arrays.retain(|(name, _)| *name != key);
    arrays.extend(content.map(|content| (key, content)));
    let arrays: Vec<(&str, &[u8])> = arrays.iter().map(|(key, content)| (*key, &content[..])).collect();
    archive(&arrays)
}

#[test]
fn archives() {
    let folder = folder();
    let check = |content: &[u8], parts: &[&str]| {
        put(folder.path(), &[("graph.npz", content)]);
        refused(folder.path(), &["graph.npz"], &[&["graph.npz"], parts].concat());
    };
    let with = |key, content| archive_with(key, Some(content));
    let edges = |nodes: [i64; 4]| {
        let bytes: Vec<u8> = nodes.iter().flat_map(|node| node.to_le_bytes()).collect();
        with("edge_index", array("<i8", "(2, 2)", &bytes))
    };
    check(&edges([0, -1, 1, 0]), &["edge_index[0, 1]", "-1"]);
    check(&edges([0, 1, 1, 3]), &["edge_index[1, 1]", "outside 0..3"]);
    check(&edges([0, 1, 1, 1 << 40]), &["edge_index[1, 1]", "1099511627776"]);
    check(&with("x", floats("(2, 1)", &[1.0, 2.0])), &["\"x\"", "2", "3"]);
    check(&with("y", integers(&[0, -2, 0])), &["\"y\"[1]", "-2"]);
    check(&archive_with("y", None), &["y", "found:"]);
    check(&with("y", integers(&[])), &["\"y\"", "no nodes"]);
    let mask = |length: usize| array("|b1", &format!("({length},)"), &vec![1; length]);
    check(&with("train_mask", mask(2)), &["\"train_mask\"", "2", "3"]);
    check(&with("undirected", array("|b1", "()", &[1])), &["said to be undirected", "0 -> 1"]);
    let pickled = std::fs::read(fixture("npz/pickled.npz")).expect("a file");
    check(&pickled, &["\"y\"", "pickled"]);
    check(&with("y", array("<i8", "(1000000000000,)", &[])), &["\"y\""]);
    check(b"PK\x03\x04 and nothing more", &["truncated"]);
}

#[test]
fn damaged_files_of_every_format() {
    let folder = folder();
    let read = |path: &str| std::fs::read(fixture(path)).expect("a fixture");
    put_tables(folder.path());
    progap_in(folder.path(), &["data", "convert", ".", "whole.progap"]).ok();
    let ours = std::fs::read(folder.path().join("whole.progap")).expect("a file");
    let tables = ["csv-gz/nodes.csv.gz", "csv-zst/nodes.csv.zst", "pandas/nodes.parquet"]
        .map(|path| (path.rsplit('/').next().expect("a name"), read(&format!("tables/{path}"))));
    let files = [
        ("graph.npz", read("npz/dense.npz")),
        ("school.mat", read("facebook100/compressed.mat")),
        ("school.mat", read("facebook100/plain.mat")),
        ("graph.progap", ours),
    ];
    for (name, content) in tables.iter().chain(&files) {
        let name = *name;
        let mut changed = content.clone();
        changed[content.len() / 2] ^= 0x10;
        for (how, damaged) in
            [("half", &content[..content.len() / 2]), ("changed", &changed[..]), ("empty", &[])]
        {
            // A changed byte of a plain file may mean something else; only checksums notice that.
            if how == "changed" && (name.ends_with("parquet") || name.ends_with("mat")) {
                continue;
            }
            let place = tempfile::tempdir_in(folder.path()).expect("a folder");
            put(place.path(), &[(name, damaged), ("edges.csv", b"source,target\n")]);
            let input: &[&str] =
                if name.starts_with("nodes") { &[name, "--edges", "edges.csv"] } else { &[name] };
            refused(place.path(), input, &[name]);
        }
    }
}

#[test]
fn a_mat_file_of_another_version() {
    let folder = folder();
    let mut hdf5 =
        b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Jan  1 00:00:00 2024 HDF5 schema 1.00 ."
            .to_vec();
    hdf5.resize(124, b' ');
    hdf5.extend(b"\x00\x02IM");
    hdf5.resize(512, 0);
    hdf5.extend(b"\x89HDF\r\n\x1a\n");
    put(folder.path(), &[("school.mat", &hdf5), ("text.mat", b"hello")]);
    refused(folder.path(), &["school.mat"], &["school.mat", "7.3"]);
    refused(folder.path(), &["text.mat"], &["text.mat"]);
}

#[test]
fn raw_files_of_public_data_sets() {
    let folder = folder();
    for name in ["edge", "node-feat", "node-label", "num-node-list", "num-edge-list"] {
        let content = std::fs::read(fixture(&format!("npz/ogbn/raw/{name}.csv.gz"))).expect("a fixture");
        put(folder.path(), &[(&format!("raw/{name}.csv.gz"), &content)]);
    }
    progap_in(folder.path(), &["inspect", "raw", "--json"]).json();
    let path = folder.path().join("raw/node-label.csv.gz");
    let content = std::fs::read(&path).expect("a file");
    std::fs::write(&path, &content[..content.len() / 2]).expect("written");
    refused(folder.path(), &["raw"], &["node-label.csv.gz"]);
    std::fs::remove_file(&path).expect("removed");
    refused(folder.path(), &["raw"], &["raw", "node-label"]);
}

#[test]
fn a_folder_that_may_not_be_read() {
    let folder = folder();
    put(folder.path(), &[("a.csv/nodes.csv", b""), ("keep", b"9\n")]);
    refused(folder.path(), &["keep", "--edges", "keep"], &["keep", "a table ends in"]);
    let message = progap_in(folder.path(), &["inspect", "demo", "--keep-nodes", "nope"]).refused(&["nope"]);
    assert!(message.contains("check the spelling"), "{message}");
}
