//! `.npz` archives: what NumPy wrote is read, what goes in comes out, and damage is noticed.

mod common;

use std::io::{Cursor, Write};
use std::path::Path;
use std::process::Command;

use common::npz::{archive, array, assert_is, expected, fixture, floats, integers, sorted_edges};
use common::{arbitrary, mutate, shared};
use progap_formats::read::{self, LoadOptions, npz};
use progap_formats::{named, write};
use progap_graph::{Dataset, Error, Features, Place, Problem, transform};
use proptest::prelude::*;
use serde_json::Value;
use zip::write::{SimpleFileOptions, ZipWriter};

fn load(path: &Path) -> Result<Dataset, Error> {
    read::load(path, &LoadOptions::default())
}

#[test]
fn archives_of_numpy_are_read() {
    let expected = expected();
    let others = ["scipy", "reddit", "ogbn"];
    let names = expected.as_object().unwrap().keys().filter(|name| !others.contains(&name.as_str()));
    let names: Vec<&String> = names.collect();
    assert!(names.len() >= 10);
    for name in names {
        assert_is(&load(&fixture(&format!("{name}.npz"))).unwrap(), &expected[name], name);
    }
}

#[test]
fn matrices_of_scipy_are_read() {
    let edges: Vec<(u32, u32)> = serde_json::from_value(expected()["scipy"]["edges"].clone()).unwrap();
    for layout in ["csr", "csc", "coo"] {
        let graph = npz::read_adjacency(&fixture(&format!("scipy_{layout}.npz"))).unwrap();
        let mut found: Vec<_> = graph.iter_edges().collect();
        found.sort_unstable();
        assert_eq!((graph.nodes(), found), (7, edges.clone()), "{layout}");
    }
    for layout in ["bsr", "dia"] {
        let error = npz::read_adjacency(&fixture(&format!("scipy_{layout}.npz"))).unwrap_err();
        assert!(matches!(error.problem(), Problem::Unsupported(_)), "{error}");
        assert!(error.to_string().contains("tocsr"), "{error}");
    }
}

#[test]
fn a_matrix_loads_with_a_file_about_its_nodes() {
    let alone = load(&fixture("scipy_csr.npz")).unwrap_err();
    assert!(alone.to_string().contains("put it as adj.npz into a folder"), "{alone}");

    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::fs::copy(fixture("scipy_csc.npz"), place("adj.npz")).unwrap();
    assert!(matches!(load(folder.path()).unwrap_err().problem(), Problem::NotRecognised(_)));
    let (x, y) = (array("<f4", "(7, 1)", &[0; 28]), array("|u1", "(7,)", &[0, 1, 2, 1, 0, 2, 1]));
    std::fs::write(place("nodes.npz"), archive(&[("x", &x), ("y", &y)])).unwrap();
    let dataset = load(folder.path()).unwrap();
    let edges: Vec<(u32, u32)> = serde_json::from_value(expected()["scipy"]["edges"].clone()).unwrap();
    assert_eq!(sorted_edges(&dataset), edges);
    assert_eq!(dataset.labels(), [0, 1, 2, 1, 0, 2, 1]);

    let y = array("|u1", "(6,)", &[0; 6]);
    std::fs::write(place("nodes.npz"), archive(&[("x", &x), ("y", &y)])).unwrap();
    let error = load(folder.path()).unwrap_err();
    assert!(matches!(error.problem(), Problem::Length { found: 7, expected: 6, .. }), "{error}");
    std::fs::copy(fixture("dense.npz"), place("nodes.npz")).unwrap();
    assert!(load(folder.path()).unwrap_err().to_string().contains("beside it"));
}

/// Offsets, columns and the bits of the values, as they are stored; dense features have no offsets.
fn bits(features: &Features) -> (Vec<u64>, Vec<u32>, Option<Vec<u32>>) {
    let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect();
    match features {
        Features::Dense { values, .. } => (vec![], vec![], Some(bits(values))),
        Features::Half { .. } => unreachable!("no array of such a file is read as half precision"),
        Features::Sparse { offsets, indices, values, .. } => {
            (offsets.to_vec(), indices.to_vec(), values.as_deref().map(bits))
        }
    }
}

fn written(dataset: &Dataset) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    write::npz::write_to(dataset, &mut bytes).unwrap();
    bytes.into_inner()
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(dataset in arbitrary::dataset()) {
        let bytes = written(&dataset);
        let back = npz::read_from(Cursor::new(&bytes)).unwrap().named(dataset.name());
        prop_assert_eq!(&back, &dataset);
        prop_assert_eq!(bits(back.features()), bits(dataset.features()));
        prop_assert_eq!(written(&back), bytes);
    }
}

/// A random data set, the same in every run.
fn sample() -> Dataset {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    arbitrary::dataset().new_tree(&mut TestRunner::deterministic()).unwrap().current()
}

#[test]
fn a_file_is_written_under_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sample.npz");
    write::npz::write(&sample(), &path).unwrap();
    let sorted = transform::in_order_of_ids(sample().named("sample")).unwrap();
    assert_eq!(load(&path).unwrap(), sorted);
    let nowhere = write::npz::write(&sample(), &folder.path().join("no/such/folder.npz")).unwrap_err();
    assert!(matches!(nowhere.problem(), Problem::NotThere(_)), "{nowhere}");
}

#[test]
fn numpy_and_scipy_read_what_we_write() {
    let Some(python) = std::env::var_os("PROGAP_PYTHON") else {
        eprintln!("skipped: set PROGAP_PYTHON to a Python that has NumPy and SciPy");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/oracle/npz.py");
    let folder = tempfile::tempdir().unwrap();
    let fixtures =
        ["dense", "sparse", "big_endian"].map(|name| load(&fixture(&format!("{name}.npz"))).unwrap());
    for (at, dataset) in fixtures.iter().chain([&sample()]).enumerate() {
        let path = folder.path().join(format!("{at}.npz"));
        write::npz::write(dataset, &path).unwrap();
        let output = Command::new(&python).arg(&script).arg("show").arg(&path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_is(dataset, &shown, &format!("written {at}"));
        let shown: Vec<Vec<u32>> = serde_json::from_value(shown["x_bits"].clone()).unwrap();
        let ours = dataset.features().to_dense(dataset.nodes());
        assert_eq!(ours.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), shown.concat());
    }
}

/// Counts and sums as `scripts/oracle/npz.py summary` gives them.
#[test]
fn real_graphs_have_the_counts_that_numpy_finds() {
    type Case<'a> = (&'a str, [usize; 4], f64, u64, &'a [usize]);
    let cases: [Case; 3] = [
        (
            "amazon_photo",
            [7_650, 238_162, 745, 1_979_909],
            1_979_909.0,
            3_470_990_711_844,
            &[369, 1686, 703, 915, 882, 823, 1941, 331],
        ),
        (
            "coauthor_cs",
            [18_333, 163_788, 6_805, 1_092_079],
            1_741_991.0,
            14_152_773_019_336,
            &[708, 462, 2050, 429, 1394, 2193, 371, 924, 775, 118, 1444, 2033, 420, 4136, 876],
        ),
        (
            "facebook_pages",
            [22_470, 341_646, 4_714, 314_583],
            314_583.0,
            43_242_304_590_938,
            &[6495, 6880, 5768, 3327],
        ),
    ];
    for (name, counts, x_sum, edge_sum, class_counts) in cases {
        let Some(path) = shared::shared(&format!("data/other/{name}.npz")) else { continue };
        let start = std::time::Instant::now();
        let data = load(&path).unwrap();
        eprintln!("{name}: {:.3} s", start.elapsed().as_secs_f64());
        let (graph, x) = (data.graph(), data.features());
        assert_eq!([data.nodes(), graph.edges(), x.columns(), x.nonzeros()], counts, "{name}");
        assert_eq!(data.class_counts(), class_counts, "{name}");
        let sum: f64 = (0..data.nodes()).flat_map(|n| x.row(n)).map(|(_, v)| f64::from(v)).sum();
        assert_eq!(sum, x_sum, "{name}");
        assert_eq!(
            graph.iter_edges().map(|(a, b)| u64::from(a) * u64::from(b)).sum::<u64>(),
            edge_sum,
            "{name}"
        );
        assert!(graph.is_undirected(), "{name}");
        assert_eq!((data.name(), data.split()), (name, None));
        let again = npz::read_from(Cursor::new(written(&data))).unwrap().named(name);
        assert_eq!(again, data);
    }
}

/// Three nodes, two edges, with some arrays replaced; an empty array stands for an absent one.
fn archive_with(changes: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut arrays = vec![
        ("x_indptr", integers(&[0, 1, 1, 2])),
        ("x_indices", integers(&[1, 0])),
        ("x_data", floats("(2,)", &[0.5, 2.0])),
        ("x_shape", integers(&[3, 2])),
        ("adj_indptr", integers(&[0, 1, 2, 2])),
        ("adj_indices", integers(&[2, 0])),
        ("y", integers(&[0, 1, 0])),
        ("train_mask", array("|b1", "(3,)", &[1, 0, 0])),
    ];
    for (key, bytes) in changes {
        arrays.retain(|(other, _)| other != key);
        arrays.push((key, bytes.clone()));
    }
    arrays.retain(|(_, bytes)| !bytes.is_empty());
    archive(&arrays.iter().map(|(key, bytes)| (*key, &bytes[..])).collect::<Vec<_>>())
}

fn error_with(changes: &[(&str, Vec<u8>)]) -> Error {
    npz::read_from(Cursor::new(archive_with(changes))).unwrap_err()
}

fn element(key: &str, index: u64) -> Option<Place> {
    Some(Place::Element { key: key.into(), index })
}

#[test]
fn the_unchanged_archive_is_fine() {
    let dataset = npz::read_from(Cursor::new(archive_with(&[]))).unwrap();
    assert_eq!(sorted_edges(&dataset), [(0, 2), (1, 0)]);
    let claim = [("undirected", array("|b1", "()", &[0]))];
    assert!(npz::read_from(Cursor::new(archive_with(&claim))).is_ok());
    let ones = npz::read_from(Cursor::new(archive_with(&[("x_data", vec![])]))).unwrap();
    assert_eq!(ones.features().to_dense(3), [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn pickled_objects_are_never_loaded() {
    let pickled = load(&fixture("pickled.npz")).unwrap_err();
    assert!(matches!(pickled.problem(), Problem::PickledObjects), "{pickled}");
    assert_eq!(
        (pickled.place(), pickled.file()),
        (Some(&Place::Key("y".into())), Some(&*fixture("pickled.npz")))
    );
}

#[test]
fn damaged_archives_are_told_apart_from_other_files() {
    let good = written(&load(&fixture("dense.npz")).unwrap());
    let read = |bytes: &[u8]| npz::read_from(Cursor::new(bytes)).unwrap_err();
    assert!(matches!(read(&good[..good.len() / 2]).problem(), Problem::Truncated(_)));
    assert!(matches!(read(&good[..good.len() - 1]).problem(), Problem::Truncated(_)));
    assert!(matches!(read(b"").problem(), Problem::Truncated(_)));
    assert!(matches!(read(b"id,label\n0,1\n").problem(), Problem::Corrupt(_)));
    assert!(matches!(read(&integers(&[1])).problem(), Problem::Unsupported(_)));
    assert!(matches!(read(&archive(&[])).problem(), Problem::Missing { .. }));

    // A stored array whose content changed, and a deflated one that is no longer a deflate stream.
    let position = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).position(|w| w == part).unwrap();
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("y.npy", options).unwrap();
    zip.write_all(&integers(&[7, 77, 777])).unwrap();
    let mut stored = zip.finish().unwrap().into_inner();
    let at = position(&stored, &777i64.to_le_bytes());
    stored[at] ^= 1;
    let error = read(&stored);
    assert!(matches!(error.problem(), Problem::Corrupt(_)), "{error}");
    assert_eq!(error.place(), Some(&Place::Key("y".into())));
    let mut deflated = archive_with(&[]);
    let at = position(&deflated, b"y.npy") + 5;
    deflated[at..at + 8].fill(0xff);
    let error = read(&deflated);
    assert!(matches!(error.problem(), Problem::Corrupt(_)), "{error}");
}

#[test]
fn missing_arrays_are_named_with_those_found() {
    for (absent, part) in [
        ("y", "array \"y\""),
        ("x_indptr", "array \"x\""),
        ("x_indices", "array \"x_indices\""),
        ("x_shape", "array \"x_shape\""),
        ("adj_indptr", "array \"edge_index\""),
        ("adj_indices", "array \"adj_indices\""),
    ] {
        let error = error_with(&[(absent, vec![])]);
        assert!(matches!(error.problem(), Problem::Missing { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(part) && text.contains("train_mask"), "{text}");
    }
    let both = error_with(&[("edge_index", array("<i8", "(2, 0)", &[]))]);
    assert!(both.to_string().contains("both"), "{both}");
    let both = error_with(&[("x", floats("(3, 0)", &[]))]);
    assert!(both.to_string().contains("both"), "{both}");
}

#[test]
fn wrong_values_are_named_with_their_place() {
    for (key, values, bad) in [
        ("adj_indices", [2, 3], 1),
        ("adj_indices", [-1, 0], 0),
        ("adj_indices", [2, 1 << 40], 1),
        ("x_indices", [1, 2], 1),
        ("x_indices", [i64::MIN, 0], 0),
    ] {
        let error = error_with(&[(key, integers(&values))]);
        assert!(matches!(error.problem(), Problem::IndexOutOfRange { .. }), "{error}");
        assert_eq!(error.place(), element(key, bad).as_ref());
    }
    let overflow = error_with(&[("adj_indices", array("<u8", "(2,)", &[0xff; 16]))]);
    assert!(matches!(overflow.problem(), Problem::IndexOutOfRange { .. }), "{overflow}");
    for key in ["adj_indptr", "x_indptr"] {
        for offsets in [[0, 2, 1, 2], [1, 1, 1, 2], [0, 1, 1, 3], [0, -1, 1, 2], [0, 1, 1, i64::MAX]] {
            let error = error_with(&[(key, integers(&offsets))]);
            let text = error.to_string();
            assert!(text.contains(key), "{text}");
            assert!(
                matches!(error.problem(), Problem::Corrupt(_) | Problem::IndexOutOfRange { .. }),
                "{text}"
            );
        }
        let short = error_with(&[(key, integers(&[0, 1, 2]))]);
        assert!(matches!(short.problem(), Problem::Length { found: 3, expected: 4, .. }), "{short}");
    }
    let edges = [("adj_indptr", vec![]), ("adj_indices", vec![])];
    let with_edges = |bytes| error_with(&[&edges[..], &[("edge_index", bytes)]].concat());
    let negative = with_edges(array("|i1", "(2, 2)", &[0, 1, 2, 0xff]));
    assert_eq!(negative.place(), Some(&Place::Key("edge_index[1, 1]".into())));
    let turned = with_edges(array("|i1", "(3, 3)", &[0, 1, 2, 0, 1, 2, 0, 1, 2]));
    assert!(turned.to_string().contains("expected (2, number of edges)"), "{turned}");
}

#[test]
fn nan_among_features_is_a_value_that_is_missing() {
    let x = floats("(3, 2)", &[1.5, f64::NAN, 2.5, 4.0, 3.5, f64::NAN]);
    let dataset = npz::read_from(Cursor::new(archive_with(&[
        ("x", x),
        ("x_indptr", vec![]),
        ("x_indices", vec![]),
        ("x_data", vec![]),
        ("x_shape", vec![]),
    ])))
    .unwrap();
    assert_eq!(dataset.features().to_dense(3), [1.5, 0.0, 1.0, 2.5, 4.0, 0.0, 3.5, 0.0, 1.0]);
    let numbers: Vec<_> = dataset.numbers().iter().map(|number| (number.column, number.missing)).collect();
    assert_eq!(numbers, [(0, None), (1, Some(2))]);
}

#[test]
fn labels_may_be_names() {
    let text = |letters: [char; 3]| array("<U1", "(3,)", &letters.map(|l| (l as u32).to_le_bytes()).concat());
    let dataset = npz::read_from(Cursor::new(archive_with(&[("y", text(['b', '?', 'a']))]))).unwrap();
    assert_eq!(dataset.class_names(), ["a", "b"]);
    assert_eq!(dataset.labels(), [1, progap_graph::UNLABELLED, 0]);
    let bytes = npz::read_from(Cursor::new(archive_with(&[("y", array("|S2", "(3,)", b"xxyyxx"))]))).unwrap();
    assert_eq!((bytes.class_names(), bytes.labels()), (&["xx".to_string(), "yy".into()][..], &[0, 1, 0][..]));
    let asked = error_with(&[("y", integers(&[-1, 1, 1]))]);
    assert!(matches!(asked.problem(), Problem::AmbiguousLabel(_)), "{asked}");
}

#[test]
fn wrong_labels_masks_and_names_are_refused() {
    let negative = error_with(&[("y", integers(&[0, -2, 1]))]);
    assert!(matches!(negative.problem(), Problem::LabelOutOfRange { .. }), "{negative}");
    assert!(negative.to_string().contains("\"y\"[1]: the label -2 (-1 is a missing label)"), "{negative}");
    let infinite = error_with(&[("y", floats("(3,)", &[0.0, f64::INFINITY, 1.0]))]);
    assert_eq!(infinite.place(), element("y", 1).as_ref());
    let none = error_with(&[("y", integers(&[-1, -1, -1]))]);
    assert!(none.to_string().contains("no classes; give at least one labelled node"), "{none}");
    assert!(error_with(&[("y", floats("(3,)", &[0.0, 0.5, 1.0]))]).to_string().contains("whole number"));
    let blank = error_with(&[("y", array("<U1", "(3,)", &[0; 12]))]);
    assert!(blank.to_string().contains("no classes; give at least one labelled node"), "{blank}");
    assert!(error_with(&[("y", array("|b1", "(3, 2)", &[0; 6]))]).to_string().contains("one dimension"));
    let longer = error_with(&[("y", integers(&[0, 1, 0, 1]))]);
    assert!(matches!(longer.problem(), Problem::Length { .. }), "{longer}");
    let empty = error_with(&[("y", integers(&[]))]);
    assert!(matches!(empty.problem(), Problem::Empty("nodes")), "{empty}");
    let names = error_with(&[("class_names", array("|S1", "(1,)", b"a"))]);
    assert!(matches!(names.problem(), Problem::LabelOutOfRange { .. }), "{names}");
    assert_eq!(names.place(), element("y", 1).as_ref());

    let mask = |bytes| error_with(&[("val_mask", bytes)]);
    let short = mask(array("|b1", "(2,)", &[0; 2]));
    assert!(matches!(short.problem(), Problem::Length { found: 2, expected: 3, .. }), "{short}");
    assert_eq!(short.place(), Some(&Place::Key("val_mask".into())));
    assert!(mask(floats("(3,)", &[0.0; 3])).to_string().contains("expected true and false"));
    assert!(mask(integers(&[0, 2, 0])).to_string().contains("neither true nor false"));
    assert!(mask(array("|b1", "(2, 2)", &[0; 4])).to_string().contains("one dimension"));
    assert!(mask(array("|b1", "(3,)", &[1, 0, 0])).to_string().contains("more than one mask"));

    let duplicate = error_with(&[("node_ids", integers(&[5, 6, 5]))]);
    assert!(matches!(duplicate.problem(), Problem::DuplicateNode { first_row: 0, .. }), "{duplicate}");
    assert_eq!(duplicate.place(), element("node_ids", 2).as_ref());
    let duplicate = error_with(&[("node_ids", array("|S1", "(3,)", b"abb"))]);
    assert!(matches!(duplicate.problem(), Problem::DuplicateNode { .. }), "{duplicate}");
    let features = error_with(&[("feature_names", array("|S1", "(3,)", b"abc"))]);
    assert!(matches!(features.problem(), Problem::Length { found: 3, expected: 2, .. }), "{features}");

    let directed = error_with(&[("undirected", array("|b1", "()", &[1]))]);
    assert!(matches!(directed.problem(), Problem::OneWayEdge { .. }), "{directed}");
    assert!(error_with(&[("undirected", array("|b1", "(2,)", &[1, 1]))]).to_string().contains("one value"));
}

#[test]
fn forged_shapes_end_in_errors_not_in_memory() {
    for shape in [
        "(1000000000000,)",
        "(18446744073709551615,)",
        "(18446744073709551616,)",
        "(4294967296, 4294967296)",
        "(-3,)",
        "(3, 1000000000000)",
        "(3, 0, 18446744073709551615)",
    ] {
        for key in
            ["y", "x_indptr", "x_indices", "x_data", "adj_indptr", "adj_indices", "train_mask", "node_ids"]
        {
            error_with(&[(key, array("<i8", shape, &[0; 24]))]);
        }
        error_with(&[("class_names", array("<U9999", shape, &[0; 24]))]);
    }
    for shape in [[1 << 60, 2], [3, 1 << 60], [-3, 2], [3, -2], [4, 2]] {
        error_with(&[("x_shape", integers(&shape))]);
        error_with(&[("adj_shape", integers(&shape))]);
    }
    // A matrix by coordinates says in `shape` alone how many nodes there are.
    for nodes in [-1, 0, 1 << 31, u32::MAX.into(), 1 << 40] {
        let (shape, ends) = (integers(&[nodes, nodes]), integers(&[0, 0]));
        let format = array("|S3", "()", b"coo");
        let bytes = archive(&[("format", &format), ("shape", &shape), ("row", &ends), ("col", &ends)]);
        npz::read_adjacency_from(Cursor::new(bytes)).unwrap_err();
    }
}

#[test]
fn damaged_copies_never_panic() {
    let fixtures =
        ["dense", "sparse", "big_endian"].map(|name| std::fs::read(fixture(&format!("{name}.npz"))).unwrap());
    for (seed, original) in fixtures.iter().chain([&archive_with(&[])]).enumerate() {
        let mut refused = 0;
        for copy in mutate::mutations(original, 600, seed as u64) {
            refused += usize::from(npz::read_from(Cursor::new(copy)).is_err());
        }
        assert!(refused > 200, "only {refused} damaged copies were noticed");
    }
    for layout in ["csr", "csc", "coo"] {
        let original = std::fs::read(fixture(&format!("scipy_{layout}.npz"))).unwrap();
        for copy in mutate::mutations(&original, 300, 9) {
            let _ = npz::read_adjacency_from(Cursor::new(copy));
        }
    }
}

/// Damage that the archive's checksums do not reveal, as it is done before they are made.
#[test]
fn damaged_arrays_never_panic() {
    let arrays = [
        ("y", integers(&[0, 1, 0])),
        ("adj_indptr", integers(&[0, 1, 2, 2])),
        ("x_indices", integers(&[1, 0])),
        ("x_shape", integers(&[3, 2])),
        ("class_names", array("<U2", "(2,)", &[65; 16])),
    ];
    for (key, original) in arrays {
        for copy in mutate::mutations(&original, 300, 5).filter(|copy| !copy.is_empty()) {
            let _ = npz::read_from(Cursor::new(archive_with(&[(key, copy)])));
        }
    }
}

/// Real files by name: with the known checksum, both directions of each edge, and a split of their own.
#[test]
fn heterophilous_graphs_have_names() {
    let Some(folder) = shared::shared("data/other") else { return };
    for name in ["minesweeper", "tolokers"] {
        let dataset = named::load(name, &folder, &LoadOptions::default()).expect(name);
        let entry = named::find(name).expect(name);
        assert_eq!(Some(named::Counts::of(&dataset)), entry.expected, "{name}");
        assert!(dataset.name() == name && dataset.split().is_some());
    }
    let other = tempfile::tempdir().expect("a folder");
    std::fs::copy(folder.join("tolokers.npz"), other.path().join("minesweeper.npz")).expect("copied");
    let changed = named::load("minesweeper", other.path(), &LoadOptions::default()).unwrap_err();
    assert!(matches!(changed.problem(), Problem::Checksum { .. }), "{changed}");
}
