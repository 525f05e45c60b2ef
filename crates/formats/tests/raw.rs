//! The raw files of `reddit` and of ogbn-products: read, prepared as published, and refused where they are bad.

mod common;

use std::io::Read;
use std::path::Path;

use common::npz::{archive, array, assert_is, expected, fixture, floats, integers, sorted_edges};
use common::{mutate, npz};
use progap_formats::read::ogbn::{self, Tables};
use progap_formats::read::{self, LoadOptions, reddit};
use progap_graph::prepare::prepare_as_published;
use progap_graph::{Dataset, Error, Place, Problem, Ratios, UNLABELLED};
use serde_json::Value;

fn load(path: &Path) -> Result<Dataset, Error> {
    read::load(path, &LoadOptions::default())
}

/// Compares with the published recipe as Python carries it out on the same raw data.
fn assert_prepared(raw: Dataset, expected: &Value) {
    let from_json = |key: &str| serde_json::from_value::<Vec<u32>>(expected[key].clone()).unwrap();
    let (kept, count) = (from_json("nodes"), expected["min_count"].as_u64().unwrap() as usize);
    let split = raw.clone().or_random_split(Ratios::default(), 11).unwrap().split().cloned().unwrap();
    let (features, ids) = (raw.features().select(&kept), raw.node_ids().select(&kept));
    let prepared = prepare_as_published(raw, count, 11).unwrap();
    assert_eq!(prepared.labels(), from_json("y"));
    assert_eq!(prepared.split(), Some(&split.select(&kept)));
    assert_eq!((prepared.features(), prepared.node_ids()), (&features, &ids));
    let edges: Vec<(u32, u32)> = serde_json::from_value(expected["edges"].clone()).unwrap();
    assert_eq!(sorted_edges(&prepared), edges);
    let names: Vec<String> = serde_json::from_value(expected["class_names"].clone()).unwrap();
    assert_eq!(prepared.class_names(), names);
}

#[test]
fn reddit_is_read_and_prepared() {
    let expected = &expected()["reddit"];
    // As the files list the nodes: `load` puts them into the order of their ids.
    let raw = reddit::read(&fixture("reddit")).unwrap();
    assert_is(&raw, &expected["raw"], "reddit");
    assert_prepared(raw, &expected["prepared"]);
    assert_eq!(reddit::MIN_CLASS_COUNT, 10_000);
}

#[test]
fn products_are_read_and_prepared() {
    let expected = &expected()["ogbn"];
    // The folder itself, and the one that has it as `raw`.
    for folder in ["ogbn", "ogbn/raw"] {
        assert_is(&load(&fixture(folder)).unwrap(), &expected["raw"], folder);
    }
    assert_prepared(load(&fixture("ogbn")).unwrap(), &expected["prepared"]);

    // The same tables, unpacked, some with the ends of lines of another system.
    let folder = tempfile::tempdir().unwrap();
    for (at, name) in TABLES.iter().enumerate() {
        let text = unpacked(name);
        let text = if at % 2 == 0 { text.replace('\n', "\r\n") } else { text };
        std::fs::write(folder.path().join(format!("{name}.csv")), text).unwrap();
    }
    assert_is(&load(folder.path()).unwrap(), &expected["raw"], "plain tables");
}

const TABLES: [&str; 5] = ["num-node-list", "num-edge-list", "edge", "node-label", "node-feat"];

fn unpacked(name: &str) -> String {
    let file = std::fs::File::open(fixture(&format!("ogbn/raw/{name}.csv.gz"))).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn bad_pairs_of_reddit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: Vec<u8>| std::fs::write(folder.path().join(name), bytes).unwrap();
    let (x, y) = (floats("(2, 1)", &[1.0, 2.0]), integers(&[0, 1]));
    write(reddit::DATA_FILE, archive(&[("feature", &x), ("label", &y)]));
    let absent = load(folder.path()).unwrap_err();
    assert!(matches!(absent.problem(), Problem::NotThere(_)), "{absent}");
    assert_eq!(absent.file(), Some(&*folder.path().join(reddit::GRAPH_FILE)));

    let matrix = |nodes: i64| {
        let (format, shape, end) = (array("|S3", "()", b"coo"), integers(&[nodes, nodes]), integers(&[1]));
        archive(&[("format", &format), ("shape", &shape), ("row", &end), ("col", &end)])
    };
    write(reddit::GRAPH_FILE, matrix(2));
    assert_eq!(load(folder.path()).unwrap().graph().self_loops(), 1);
    write(reddit::GRAPH_FILE, matrix(3));
    let larger = load(folder.path()).unwrap_err();
    assert!(matches!(larger.problem(), Problem::Length { found: 3, expected: 2, .. }), "{larger}");
    assert_eq!(larger.file(), Some(&*folder.path().join(reddit::GRAPH_FILE)));
    write(reddit::GRAPH_FILE, matrix(2));
    write(reddit::DATA_FILE, archive(&[("feature", &x), ("label", &integers(&[0, -2]))]));
    let missing = load(folder.path()).unwrap_err();
    assert_eq!(missing.place(), Some(&Place::Element { key: "label".into(), index: 1 }));
    write(reddit::DATA_FILE, archive(&[("feature", &floats("(1, 2)", &[1.0, 2.0])), ("label", &y)]));
    assert!(matches!(load(folder.path()).unwrap_err().problem(), Problem::Length { .. }));
    write(reddit::DATA_FILE, archive(&[("x", &x), ("y", &y)]));
    let keys = load(folder.path()).unwrap_err();
    assert!(keys.to_string().contains("array \"label\"") && keys.to_string().contains("x, y"), "{keys}");
    write(reddit::DATA_FILE, npz::archive(&[])[..10].to_vec());
    assert!(matches!(load(folder.path()).unwrap_err().problem(), Problem::Truncated(_)));
}

const GOOD: Tables = Tables {
    num_nodes: b"3\n",
    num_edges: b"2\n",
    edges: b"0,1\n2,1\n",
    labels: b"1\n0\n1.0\n",
    features: b"0.5,-1\n1e-3,2\n0,3.25\n",
};

#[test]
fn the_unchanged_tables_are_fine() {
    let dataset = ogbn::read_tables(GOOD).unwrap();
    assert_eq!(sorted_edges(&dataset), [(0, 1), (1, 0), (1, 2), (2, 1)]);
    assert_eq!(dataset.features().to_dense(3), [0.5, -1.0, 1e-3, 2.0, 0.0, 3.25]);
    assert_eq!(dataset.labels(), [1, 0, 1]);
    let no_last_end = Tables { edges: b"0,1\r\n2, 1", ..GOOD };
    assert_eq!(ogbn::read_tables(no_last_end).unwrap(), dataset);
}

#[test]
fn bad_tables_are_refused_with_row_and_column() {
    let error = |tables: Tables| ogbn::read_tables(tables).unwrap_err();
    let edges = |edges| error(Tables { edges, ..GOOD });
    let cell = |row, column: &str| Some(Place::Cell { row, column: column.into() });
    for (text, place, problem) in [
        (&b"0,1\n2,3\n"[..], cell(2, "2"), "outside 0..3"),
        (b"0,1\n-1,1\n", cell(2, "1"), "outside 0..3"),
        (b"0,1\n99999999999999999999999,1\n", cell(2, "1"), "outside 0..3"),
        (b"0,x\n2,1\n", cell(1, "2"), "not a number"),
        (b"0,1.5\n2,1\n", cell(1, "2"), "not a number"),
        (b"0,1\n2\n", cell(2, "2"), "missing"),
        (b"0,1\n,1\n", cell(2, "1"), "missing"),
        (b"0,1\n\n", cell(2, "1"), "missing"),
        (b"0,1,2\n2,1\n", Some(Place::Row(1)), "length 3"),
        (b"0,1\n", None, "length 1, expected 2"),
        (b"0,1\n2,1\n1,1\n", None, "length 3, expected 2"),
        (b"", None, "length 0, expected 2"),
    ] {
        let error = edges(text);
        assert_eq!(error.place(), place.as_ref(), "{error}");
        assert!(error.to_string().contains(problem), "{error}");
    }
    let features = |features| error(Tables { features, ..GOOD });
    assert!(features(b"1,2\n3\n5,6\n").to_string().contains("missing"));
    assert!(features(b"1,2\n3,4,5\n5,6\n").to_string().contains("length 3, expected 2"));
    assert!(features(b"1,2\n3,4\n").to_string().contains("length 2, expected 3"));
    let labels = |labels| error(Tables { labels, ..GOOD });
    assert_eq!(labels(b"0\n1\n-2\n").place(), Some(&Place::Row(3)));
    for missing in [&b"0\nnan\n1\n"[..], b"0\n\n1\n", b"0\n-1\n1\n"] {
        let data = ogbn::read_tables(Tables { labels: missing, ..GOOD }).unwrap();
        assert_eq!(data.labels(), [0, UNLABELLED, 1]);
    }
    assert!(labels(b"0\n0.5\n1\n").to_string().contains("whole number"));
    assert!(labels(b"0\n1\n").to_string().contains("length 2, expected 3"));
    for num_nodes in
        [&b""[..], b"3\n3\n", b"3,3\n", b"-3", b"x", b"4294967296", b"18446744073709551616", b"99999999"]
    {
        error(Tables { num_nodes, ..GOOD });
    }
    for num_edges in [&b""[..], b"0", b"18446744073709551614", b"1000000000000"] {
        error(Tables { num_edges, ..GOOD });
    }
}

#[test]
fn damaged_or_absent_tables_name_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(format!("{name}.csv.gz"));
    let restore = || {
        for name in TABLES {
            std::fs::copy(fixture(&format!("ogbn/raw/{name}.csv.gz")), path(name)).unwrap();
        }
    };
    for name in TABLES {
        restore();
        let good = std::fs::read(path(name)).unwrap();
        std::fs::write(path(name), &good[..good.len() - 9]).unwrap();
        let error = ogbn::read(folder.path()).unwrap_err();
        assert!(matches!(error.problem(), Problem::Truncated(_)), "{error}");
        assert_eq!(error.file(), Some(&*path(name)));
        let mut wrong = good.clone();
        wrong[good.len() - 8] ^= 1; // the first byte of the checksum
        std::fs::write(path(name), &wrong).unwrap();
        let error = ogbn::read(folder.path()).unwrap_err();
        assert!(matches!(error.problem(), Problem::Corrupt(_)), "{error}");
        std::fs::remove_file(path(name)).unwrap();
        let error = ogbn::read(folder.path()).unwrap_err();
        assert!(matches!(error.problem(), Problem::Missing { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn damaged_copies_never_panic() {
    let texts = TABLES.map(unpacked);
    let [num_nodes, num_edges, edges, labels, features] = texts.each_ref().map(String::as_bytes);
    let good = Tables { num_nodes, num_edges, edges, labels, features };
    assert!(ogbn::read_tables(good).is_ok());
    for copy in mutate::mutations(features, 300, 1) {
        let _ = ogbn::read_tables(Tables { features: &copy, ..good });
    }
    for copy in mutate::mutations(edges, 300, 2) {
        let _ = ogbn::read_tables(Tables { edges: &copy, ..good });
    }
    for copy in mutate::mutations(labels, 300, 3) {
        let _ = ogbn::read_tables(Tables { labels: &copy, ..good });
    }
    for copy in mutate::mutations(num_nodes, 100, 4) {
        let _ = ogbn::read_tables(Tables { num_nodes: &copy, num_edges: &copy, ..good });
    }
}
