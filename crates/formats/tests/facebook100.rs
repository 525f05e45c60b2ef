//! Facebook100 files: against SciPy's reading of them, against the published counts, and damaged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use progap_formats::named::{self, Counts, Presence};
use progap_formats::read::facebook100::{self, Attribute, Missing, Recipe, School};
use progap_formats::read::{self, LoadOptions};
use progap_graph::{Dataset, Part, Place, Problem};
use serde::Deserialize;

mod common {
    pub mod mat;
    #[path = "../../../graph/tests/common/mutate.rs"]
    pub mod mutate;
    pub mod shared;
}
use common::mat::{DOUBLE, Mat, Sparse, UINT8, UINT16};
use common::mutate::mutations;
use common::shared::shared;

#[derive(Deserialize)]
struct Oracle {
    small: Facts,
    schools: BTreeMap<String, Facts>,
    all_as_published: AllSchools,
    all_clean: AllSchools,
}

#[derive(Deserialize)]
struct Facts {
    nodes: usize,
    edges: usize,
    sum: String,
    xor: String,
    attributes: BTreeMap<String, String>,
    prepared: Option<Prepared>,
}

#[derive(Deserialize)]
struct Prepared {
    nodes: usize,
    edges: usize,
    features: usize,
    classes: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
struct AllSchools {
    schools: usize,
    nodes: usize,
    edges: usize,
    features: usize,
    classes: Vec<String>,
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/facebook100").join(name)
}

fn oracle() -> Oracle {
    serde_json::from_slice(&std::fs::read(data("schools.json")).unwrap()).unwrap()
}

fn agree(school: &School, facts: &Facts, name: &str) {
    assert_eq!((school.graph().nodes(), school.graph().edges()), (facts.nodes, facts.edges), "{name}");
    let mix = |(source, target): (u32, u32)| {
        let mixed = (u64::from(source) << 32 | u64::from(target)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ mixed >> 29
    };
    let edges = school.graph().iter_edges();
    let sum = edges.clone().map(mix).fold(0u64, u64::wrapping_add);
    let xor = edges.map(mix).fold(0, |a, b| a ^ b);
    assert_eq!((sum.to_string(), xor.to_string()), (facts.sum.clone(), facts.xor.clone()), "{name}");
    for attribute in Attribute::ALL {
        let codes = school.codes(attribute);
        let sum: i64 = codes.iter().zip(1..).map(|(&code, weight)| i64::from(code) * weight).sum();
        assert_eq!(sum.to_string(), facts.attributes[attribute.name()], "{name}: {attribute}");
    }
}

#[test]
fn files_written_by_scipy_are_read_as_scipy_reads_them() {
    for file in ["compressed.mat", "plain.mat"] {
        agree(&School::read(&data(file)).unwrap(), &oracle().small, file);
    }
}

#[test]
fn real_schools_agree_with_scipy_and_the_published_counts() {
    let Some(folder) = shared("data/facebook100") else { return };
    for (name, facts) in oracle().schools {
        let school = School::read(&folder.join(format!("{name}.mat"))).unwrap();
        agree(&school, &facts, &name);
        let result = facebook100::prepare_school(&name, school, &Recipe::one_school());
        let Some(prepared) = facts.prepared else {
            let message = result.unwrap_err().to_string();
            assert!(message.contains("no year has at least 1000 people (2008: "), "{message}");
            continue;
        };
        let dataset = result.unwrap();
        assert_eq!(
            (dataset.nodes(), dataset.graph().edges(), dataset.features().columns()),
            (prepared.nodes, prepared.edges, prepared.features),
            "{name}"
        );
        let counts: BTreeMap<_, _> =
            dataset.class_names().iter().cloned().zip(dataset.class_counts()).collect();
        assert_eq!(counts, prepared.classes, "{name}");
        assert!(dataset.graph().is_undirected());
    }
}

#[test]
fn all_real_schools_together_agree_with_scipy() {
    let Some(folder) = shared("data") else { return };
    let oracle = oracle();
    for (name, expected) in [("fb-100", oracle.all_as_published), ("fb-100-clean", oracle.all_clean)] {
        let presence = named::presence(&named::find(name).unwrap(), &folder);
        let Presence::Partly { present, of: 100 } = presence else { panic!("{name}: {presence:?}") };
        if present.len() != expected.schools {
            eprintln!("skipped: {} schools, not the {} compared", present.len(), expected.schools);
            return;
        }
        let dataset = named::load(name, &folder, &LoadOptions::default()).unwrap();
        assert_eq!(
            (dataset.nodes(), dataset.graph().edges(), dataset.features().columns()),
            (expected.nodes, expected.edges, expected.features)
        );
        assert_eq!((dataset.name(), dataset.class_names()), (name, &expected.classes[..]));
        assert!(dataset.node_ids().name(0).starts_with("American75:"));
    }
}

#[test]
fn schools_with_published_counts_have_them() {
    let Some(folder) = shared("data") else { return };
    for name in ["fb:Berkeley13", "fb:Cornell5"] {
        let dataset = named::load(name, &folder, &LoadOptions::default()).unwrap();
        assert_eq!(Some(Counts::of(&dataset)), named::find(name).unwrap().expected, "{name}");
    }
}

/// Codes of three people, column after column: years 2006, 2007 and `year`.
fn codes(year: f64) -> Vec<f64> {
    [[1., 1., 2.], [1., 2., 0.], [7., 0., 9.], [0., 0., 0.], [5., 5., 5.], [2006., 2007., year], [8., 8., 8.]]
        .concat()
}

fn tiny(mat: Mat, compressed: bool, sparse: &Sparse, table: Vec<u8>) -> Vec<u8> {
    let a = mat.sparse("A", sparse);
    if compressed {
        mat.push_compressed(&a).push_compressed(&table).bytes()
    } else {
        mat.push(a).push(table).bytes()
    }
}

fn tiny_school(sparse: &Sparse, year: f64) -> Vec<u8> {
    let mat = Mat::new(false);
    let table = mat.full("local_info", &[3, 7], &codes(year), DOUBLE);
    tiny(mat, false, sparse, table)
}

fn any_count(recipe: Recipe) -> Recipe {
    Recipe { min_class_count: Some(1), ..recipe }
}

#[test]
fn byte_order_compression_and_storage_make_no_difference() {
    let expected = School::parse(&tiny_school(&Sparse::path(), 2006.)[..]).unwrap();
    for big_endian in [false, true] {
        for compressed in [false, true] {
            for stored_as in [UINT16, DOUBLE] {
                let mat = Mat::new(big_endian);
                let table = mat.full("local_info", &[3, 7], &codes(2006.), stored_as);
                let bytes = tiny(mat, compressed, &Sparse::path(), table);
                assert_eq!(School::parse(&bytes[..]).unwrap(), expected, "{big_endian} {compressed}");
            }
        }
    }
}

#[test]
fn entries_are_a_pattern() {
    let sparse = Sparse { values: vec![2.0, -1.0, 0.0, 0.5], ..Sparse::path() };
    let school = School::parse(&tiny_school(&sparse, 2006.)[..]).unwrap();
    assert_eq!(school.graph().iter_edges().collect::<Vec<_>>(), [(1, 0), (0, 1), (1, 2)]);
    let spare_room = Sparse { row_indices: vec![1, 0, 2, 1, -7], ..Sparse::path() };
    assert_eq!(School::parse(&tiny_school(&spare_room, 2006.)[..]).unwrap().graph().edges(), 4);
}

/// Everyone is a neighbour of everyone, but for two entries of zero, far into an array that is read in blocks.
#[test]
fn zeros_are_left_out_wherever_they_stand() {
    const PEOPLE: i32 = 200;
    let zeros = [20_000, 39_999];
    let entries = PEOPLE * PEOPLE;
    let sparse = Sparse {
        rows: PEOPLE,
        columns: PEOPLE,
        row_indices: (0..entries).map(|entry| entry % PEOPLE).collect(),
        starts: (0..=PEOPLE).map(|column| column * PEOPLE).collect(),
        values: (0..entries).map(|entry| f64::from(u8::from(!zeros.contains(&entry)))).collect(),
    };
    let mat = Mat::new(false);
    let table = mat.full("local_info", &[PEOPLE, 7], &vec![1.0; 7 * PEOPLE as usize], DOUBLE);
    let school = School::parse(&tiny(mat, true, &sparse, table)[..]).unwrap();
    let kept = (0..entries).filter(|entry| !zeros.contains(entry));
    let expected: Vec<_> = kept.map(|entry| ((entry % PEOPLE) as u32, (entry / PEOPLE) as u32)).collect();
    assert_eq!(school.graph().iter_edges().collect::<Vec<_>>(), expected);
}

fn names(dataset: &Dataset) -> Vec<&str> {
    dataset.feature_names().iter().map(String::as_str).collect()
}

#[test]
fn features_come_from_all_rows_and_the_target_is_a_choice() {
    let school = School::parse(&tiny_school(&Sparse::path(), 0.)[..]).unwrap();
    let dataset =
        facebook100::prepare_school("tiny", school.clone(), &any_count(Recipe::one_school())).unwrap();
    // The third person has no year and goes; what is known of them still makes columns.
    assert_eq!((dataset.nodes(), dataset.graph().edges()), (2, 2));
    let expected = ["status=1", "status=2", "gender=1", "gender=2", "major=7", "major=9", "dorm=5"];
    assert_eq!(names(&dataset), expected);
    assert_eq!(
        dataset.features().to_dense(2),
        [[1., 0., 1., 0., 1., 0., 1.], [1., 0., 0., 1., 0., 0., 1.]].concat()
    );
    assert_eq!(dataset.class_names(), ["2006", "2007"]);

    let recipe = Recipe { target: Attribute::Status, ..any_count(Recipe::one_school()) };
    let dataset = facebook100::prepare_school("tiny", school.clone(), &recipe).unwrap();
    assert_eq!(
        (dataset.class_names(), dataset.labels()),
        (&["1".to_string(), "2".into()][..], &[0, 0, 1][..])
    );
    assert!(names(&dataset).ends_with(&["dorm=5", "year=2006", "year=2007"]));

    let dataset = facebook100::prepare_school("tiny", school, &any_count(Recipe::all_schools())).unwrap();
    assert_eq!(names(&dataset), &expected[..6]);
}

#[test]
fn a_negative_year_makes_missing_a_class_as_published() {
    let people = |year| School::parse(&tiny_school(&Sparse::path(), year)[..]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let paths = ["B", "A"].map(|name| folder.path().join(format!("{name}.mat")));
    std::fs::write(&paths[0], tiny_school(&Sparse::path(), 0.)).unwrap();
    std::fs::write(&paths[1], tiny_school(&Sparse::path(), -80085.)).unwrap();
    std::fs::write(folder.path().join("schools.mat"), "the index of the archive").unwrap();
    let paths = facebook100::schools_in(folder.path()).unwrap();
    assert_eq!(paths.len(), 2);
    let dataset = facebook100::load(&paths, &any_count(Recipe::all_schools())).unwrap();
    assert_eq!(dataset.class_names(), ["missing", "2006", "2007"]);
    let ids: Vec<_> = (0..dataset.nodes()).map(|node| dataset.node_ids().name(node)).collect();
    assert_eq!(ids, ["A:0", "A:1", "B:0", "B:1", "B:2"]);
    assert_eq!(dataset.labels(), [1, 2, 1, 2, 0]);

    let clean = Recipe { missing: Missing::NotPositive, ..any_count(Recipe::all_schools()) };
    let dataset = facebook100::load(&paths, &clean).unwrap();
    assert_eq!((dataset.nodes(), dataset.class_names().len()), (4, 2));

    // Without a 0 nothing is missing, however strange the values.
    let dataset =
        facebook100::prepare_school("A", people(-80085.), &any_count(Recipe::all_schools())).unwrap();
    assert_eq!(dataset.class_names(), ["-80085", "2006", "2007"]);
}

#[test]
fn the_loader_knows_schools_and_folders_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("Tiny1.mat");
    std::fs::write(&path, tiny_school(&Sparse::path(), 2006.)).unwrap();
    let message = read::load(&path, &LoadOptions::default()).unwrap_err().to_string();
    assert!(message.contains("Tiny1.mat: no year has at least 1000 people (2006: 2, 2007: 1)"), "{message}");
    let options =
        LoadOptions { min_class_count: Some(1), label_column: Some("status".into()), ..Default::default() };
    let dataset = read::load(&path, &options).unwrap();
    assert_eq!((dataset.name(), dataset.classes()), ("Tiny1", 2));
    let split = dataset.split().unwrap();
    assert_eq!([Part::Train, Part::Val, Part::Test].map(|part| split.count(part)).iter().sum::<usize>(), 3);
    assert_eq!(read::load(folder.path(), &options).unwrap().nodes(), 3);
    let unknown = LoadOptions { label_column: Some("shoe size".into()), ..Default::default() };
    let message = read::load(&path, &unknown).unwrap_err().to_string();
    assert!(message.contains("shoe size") && message.contains("gender"), "{message}");
}

fn problem(bytes: &[u8]) -> (String, Option<Place>) {
    let error = School::parse(bytes).unwrap_err();
    (error.to_string(), error.place().cloned())
}

#[test]
fn other_versions_and_files_are_named() {
    let header = |text: &[u8], end: [u8; 4]| {
        let mut bytes = text.to_vec();
        bytes.resize(124, b' ');
        bytes.extend(end);
        bytes
    };
    for (bytes, expected) in [
        (header(b"MATLAB 7.3 MAT-file", *b"\x00\x02IM"), "MATLAB 7.3 (HDF5)"),
        (header(b"Octave wrote this", *b"\x00\x02IM"), "MATLAB 7.3 (HDF5)"),
        (b"\x89HDF\r\n\x1a\n and so on".to_vec(), "MATLAB 7.3 (HDF5)"),
        (vec![0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0], "MATLAB 4"),
        (header(b"id,label", *b"1,2,"), "no MATLAB v5 file"),
    ] {
        let error = School::parse(&bytes[..]).unwrap_err();
        assert!(matches!(error.problem(), Problem::Unsupported(_)));
        let message = error.to_string();
        assert!(message.contains(expected) && message.contains("save"), "{message}");
    }
    for short in [&b""[..], b"MATLAB 5.0", &tiny_school(&Sparse::path(), 0.)[..127]] {
        assert!(matches!(School::parse(short).unwrap_err().problem(), Problem::Truncated(_)));
    }
    let (message, _) = problem(&Mat::new(false).bytes());
    assert!(message.contains("no array \"A\"") && message.contains("found: no array"), "{message}");
}

#[test]
fn wrong_shapes_and_indices_are_named() {
    let path = Sparse::path;
    for (sparse, expected) in [
        (Sparse { rows: 4, ..path() }, "4 x 3, not square"),
        (Sparse { rows: -3, ..path() }, "the size -3 x 3"),
        (Sparse { columns: i32::MAX, ..path() }, "list of column starts has length 4, expected 2147483648"),
        (Sparse { row_indices: vec![1, 0, 3, 1], ..path() }, "\"A, rows\"[2]: the index 3 is outside 0..3"),
        (Sparse { row_indices: vec![1, -1, 2, 1], ..path() }, "the index"),
        (Sparse { row_indices: vec![1, 0, 0, 1], ..path() }, "twice"),
        (Sparse { starts: vec![0, 3, 1, 4], ..path() }, "do not rise"),
        (Sparse { starts: vec![1, 1, 3, 4], ..path() }, "do not rise"),
        (Sparse { starts: vec![0, 1, 3, 5], ..path() }, "\"A, column starts\"[3]: the index 5"),
        (Sparse { starts: vec![0, -1, 3, 4], ..path() }, "\"A, column starts\"[1]: the index -1"),
        (Sparse { values: vec![1.0; 3], ..path() }, "list of entries has length 3, expected 4"),
    ] {
        let (message, place) = problem(&tiny_school(&sparse, 0.));
        assert!(message.contains(expected) && place.is_some(), "{message}");
    }
    let table = |dimensions: &[i32], values: &[f64], stored_as| {
        let mat = Mat::new(false);
        let table = mat.full("local_info", dimensions, values, stored_as);
        problem(&tiny(mat, true, &Sparse::path(), table))
    };
    for (dimensions, values, expected) in [
        (&[2, 7][..], vec![0.; 14], "table of people has length 2, expected 3"),
        (&[3, 6], vec![0.; 18], "high school) has length 6, expected 7"),
        (&[3, 7], vec![0.; 20], "array has length 20, expected 21"),
        (&[3, 7], vec![0.; 24], "array has length 24, expected 21"),
        (&[3, 7, 1], vec![0.; 21], "more than two dimensions"),
        (&[3, 7], vec![0.5; 21], "status is 0.5, which is no code"),
        (&[3, 7], vec![3e9; 21], "which is no code"),
    ] {
        let (message, place) = table(dimensions, &values, DOUBLE);
        assert!(message.contains(expected) && place.is_some(), "{message}");
    }
    let (message, _) = table(&[3, 7], &[0.; 20], UINT8);
    assert!(message.contains("expected 21"), "{message}");
    let mat = Mat::new(false);
    let full = mat.full("A", &[3, 3], &[0.; 9], DOUBLE);
    let (message, _) = problem(&mat.push(full).bytes());
    assert!(message.contains("no array \"local_info\"") && message.contains("found: A"), "{message}");
}

#[test]
fn a_bomb_is_defused() {
    let zeros = vec![0.0; 30 << 20];
    let mat = Mat::new(false);
    let bomb = mat.full("local_info", &[30 << 20, 1], &zeros, DOUBLE);
    let bytes = mat.push_compressed(&bomb).bytes();
    assert!(bytes.len() < 1 << 20, "{}", bytes.len());
    // The announced length of the stream gives no more room.
    let mut forged = bytes.clone();
    forged[132..136].copy_from_slice(&u32::MAX.to_le_bytes());
    for bytes in [bytes, forged] {
        let (message, _) = problem(&bytes);
        assert!(message.contains("more than 200 times its size"), "{message}");
    }
}

#[test]
fn damage_in_a_compressed_array_never_passes() {
    let original = std::fs::read(data("compressed.mat")).unwrap();
    let school = School::parse(&original[..]).unwrap();
    for at in 128..original.len() {
        let mut damaged = original.clone();
        damaged[at] ^= 0x10;
        // The first array is a note that nobody reads, and its length hides what follows.
        if let Ok(read) = School::parse(&damaged[..]) {
            assert_eq!(read, school, "byte {at}");
        }
    }
}

#[test]
fn mutated_files_never_panic() {
    for (file, seed) in [("compressed.mat", 1), ("plain.mat", 2)] {
        let original = std::fs::read(data(file)).unwrap();
        let mut refused = 0;
        for bytes in mutations(&original, 600, seed) {
            refused += usize::from(School::parse(&bytes[..]).is_err());
        }
        assert!(refused > 300, "{file}: only {refused} of 600 were refused");
    }
    let mat = Mat::new(true);
    let table = mat.full("local_info", &[3, 7], &codes(2006.), UINT16);
    for bytes in mutations(&tiny(mat, false, &Sparse::path(), table), 600, 3) {
        if let Ok(school) = School::parse(&bytes[..]) {
            let _ = facebook100::prepare_school("mutant", school, &any_count(Recipe::one_school()));
        }
    }
}
