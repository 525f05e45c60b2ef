//! Tables: what other tools write is read, what we write comes back, and bad tables are refused by name.

use std::fs;
use std::path::{Path, PathBuf};

use progap_formats::read::{self, Direction, LoadOptions, table};
use progap_formats::write::table::{TableFormat, write_folder};
use progap_graph::{Dataset, DatasetParts, Error, Features, NodeIds, Part, Place, Problem, transform};
use proptest::prelude::*;
use serde_json::Value;

#[path = "../../graph/tests/common/arbitrary.rs"]
mod arbitrary;
#[path = "../../graph/tests/common/mutate.rs"]
mod mutate;

use mutate::mutations;

const EDGES: &str = "source,target\n";

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tables").join(name)
}

fn read_csv_with(nodes: &str, edges: &str, options: &LoadOptions) -> Result<Dataset, Error> {
    table::read_bytes(("nodes.csv", nodes.as_bytes()), ("edges.csv", edges.as_bytes()), options)
}

fn read_csv(nodes: &str, edges: &str) -> Result<Dataset, Error> {
    read_csv_with(nodes, edges, &LoadOptions::default())
}

fn cell(row: u64, column: &str) -> Option<Place> {
    Some(Place::Cell { row, column: column.into() })
}

fn class_of(dataset: &Dataset, node: usize) -> &str {
    &dataset.class_names()[dataset.labels()[node] as usize]
}

/// Feature values by row, as bits.
fn bits(features: &Features, rows: usize) -> Vec<Vec<(usize, u32)>> {
    let row = |row| features.row(row).filter(|(_, v)| *v != 0.0).map(|(c, v)| (c, v.to_bits())).collect();
    (0..rows).map(row).collect()
}

#[test]
fn tables_of_other_tools_are_read() {
    let expected: Value = serde_json::from_str(&fs::read_to_string(data("expected.json")).unwrap()).unwrap();
    let listed = |key: &str| -> Vec<String> { serde_json::from_value(expected[key].clone()).unwrap() };
    // Nodes are read in the order of their ids.
    let ids = listed("ids");
    let mut order = [0, 1, 2, 3];
    order.sort_by_key(|&node| &ids[node]);
    let of_nodes = |key: &str| order.map(|node| listed(key)[node].clone()).to_vec();
    let features: Vec<Vec<f32>> = serde_json::from_value(expected["features"].clone()).unwrap();
    let features = order.map(|node| features[node].clone());
    let edges: Vec<(String, String)> = serde_json::from_value(expected["edges"].clone()).unwrap();
    let mut folders: Vec<PathBuf> =
        fs::read_dir(data("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir() && !path.ends_with("refused"));
    assert_eq!(folders.len(), 16, "{folders:?}");
    for folder in folders {
        let dataset = read::load(&folder, &LoadOptions::default()).unwrap();
        let name = |node: usize| dataset.node_ids().name(node);
        assert_eq!(Some(dataset.name()), folder.file_name().and_then(|name| name.to_str()));
        assert_eq!((0..4).map(name).collect::<Vec<_>>(), of_nodes("ids"), "{folder:?}");
        assert_eq!((0..4).map(|node| class_of(&dataset, node)).collect::<Vec<_>>(), of_nodes("labels"));
        assert_eq!(dataset.class_names(), ["blue", "red"]);
        let split = dataset.split().unwrap();
        assert_eq!((0..4).map(|node| split.part(node).name()).collect::<Vec<_>>(), of_nodes("split"));
        assert_eq!(dataset.feature_names(), listed("feature_names"), "{folder:?}");
        assert_eq!(dataset.features().to_dense(4), features.concat(), "{folder:?}");
        let mut found: Vec<(String, String)> =
            dataset.graph().iter_edges().map(|(s, t)| (name(s as usize), name(t as usize))).collect();
        found.sort();
        assert_eq!(found, edges, "{folder:?}");
    }
}

/// A folder with two parts of each table, to be changed.
fn parts() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for stem in ["nodes", "edges.parquet"] {
        fs::create_dir(copy.path().join(stem)).unwrap();
        for entry in fs::read_dir(data("parts").join(stem)).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, copy.path().join(stem).join(path.file_name().unwrap())).unwrap();
        }
    }
    copy
}

#[test]
fn tables_in_parts_are_one_table_and_errors_name_the_part() {
    let read = |folder: &Path| read::load(folder, &LoadOptions::default());
    let whole = read(&data("codec-none")).unwrap();
    let pair =
        read::load_pair(&data("parts/nodes"), &data("parts/edges.parquet"), &LoadOptions::default()).unwrap();
    assert_eq!((pair.graph(), pair.features()), (whole.graph(), whole.features()));
    let refused = |change: &dyn Fn(&Path), file: &str, words: &str| {
        let copy = parts();
        change(copy.path());
        let error = read(copy.path()).unwrap_err();
        assert!(error.file().unwrap().ends_with(file) && error.to_string().contains(words), "{error}");
    };
    let copy = |from: PathBuf, to: PathBuf| assert!(fs::copy(from, to).unwrap() > 0);
    let twice = |at: &Path| copy(at.join("nodes/part-0.parquet"), at.join("nodes/part-2.parquet"));
    refused(&twice, "nodes", "row 5: the node id \"30\" stands already in row 1");
    let foreign = |at: &Path| copy(data("parts/edges.parquet/part-1.parquet"), at.join("nodes/x.parquet"));
    refused(
        &foreign,
        "nodes/x.parquet",
        "this part has the columns source, target, and the first part has id, label",
    );
    let typed = |at: &Path| copy(data("widths/edges.parquet"), at.join("edges.parquet/x.parquet"));
    refused(&typed, "edges.parquet/x.parquet", "\"source\": the column holds values of another type");
    let gone = |at: &Path| fs::remove_file(at.join("nodes/part-1.parquet")).unwrap();
    refused(
        &gone,
        "edges.parquet/part-0.parquet",
        "row 2, column \"source\": the node \"20\" is not in the node table",
    );
    let cut = |at: &Path| fs::write(at.join("edges.parquet/part-1.parquet"), b"PAR1").unwrap();
    refused(&cut, "edges.parquet/part-1.parquet", "truncated");
    let nested = |at: &Path| fs::create_dir(at.join("edges.parquet/year=2020")).unwrap();
    refused(&nested, "edges.parquet", "holds another folder, year=2020");
    let both = |at: &Path| fs::write(at.join("nodes.csv"), "id,label\n").unwrap();
    refused(&both, "", "nodes and nodes.csv");
}

#[test]
fn columns_that_cannot_be_features_are_refused() {
    let read = |name: &str| {
        let nodes = data("refused").join(format!("{name}.parquet"));
        read::load_pair(&nodes, &data("refused/edges.parquet"), &LoadOptions::default()).unwrap_err()
    };
    for (name, column) in [("nested", "items.list.element"), ("struct", "items.x"), ("decimals", "price")] {
        let error = read(name);
        assert!(matches!(error.problem(), Problem::Unsupported(_)), "{error}");
        assert_eq!(error.place(), Some(&Place::Column(column.into())), "{error}");
        assert!(error.file().unwrap().ends_with(format!("{name}.parquet")));
    }
}

#[test]
fn dates_and_missing_numbers_of_other_tools_are_read() {
    let read = |name: &str| {
        let nodes = data("refused").join(format!("{name}.parquet"));
        read::load_pair(&nodes, &data("refused/edges.parquet"), &LoadOptions::default()).unwrap()
    };
    for name in ["nan", "null"] {
        let dataset = read(name);
        assert_eq!(dataset.feature_names(), ["x", "x missing"], "{name}");
        assert_eq!(dataset.features().row(1).filter(|(_, v)| *v != 0.0).collect::<Vec<_>>(), [(1, 1.0)]);
    }
    let dates = read("dates");
    assert_eq!((dates.feature_names(), dates.numbers().len()), (&["when".to_string()][..], 1));
    println!("{:?}", dates.features().to_dense(2));
}

/// The parts that must come back, with classes by name: their order is the reader's.
fn assert_same(ours: &Dataset, theirs: &Dataset) -> Result<(), TestCaseError> {
    prop_assert_eq!(ours.graph(), theirs.graph());
    prop_assert_eq!(ours.split(), theirs.split());
    prop_assert_eq!(bits(ours.features(), ours.nodes()), bits(theirs.features(), ours.nodes()));
    prop_assert_eq!(ours.features().columns(), theirs.features().columns());
    if ours.feature_names().is_empty() {
        let names: Vec<String> = (0..ours.features().columns()).map(|at| format!("f{at}")).collect();
        prop_assert_eq!(&names, theirs.feature_names());
    } else {
        prop_assert_eq!(ours.feature_names(), theirs.feature_names());
    }
    for node in 0..ours.nodes() {
        prop_assert_eq!(ours.node_ids().name(node), theirs.node_ids().name(node));
        prop_assert_eq!(class_of(ours, node), class_of(theirs, node));
    }
    Ok(())
}

fn round_trip(dataset: &Dataset) -> Result<(), TestCaseError> {
    // Readers put nodes into the order of their ids.
    let dataset = &transform::in_order_of_ids(dataset.clone()).unwrap();
    for format in TableFormat::ALL {
        let folder = tempfile::tempdir().unwrap();
        write_folder(dataset, folder.path(), format).unwrap();
        let again = read::load(folder.path(), &LoadOptions::default()).unwrap();
        assert_same(dataset, &again)?;
        // The second time nothing changes at all: classes are sorted now.
        fs::remove_dir_all(folder.path()).unwrap();
        write_folder(&again, folder.path(), format).unwrap();
        prop_assert_eq!(&read::load(folder.path(), &LoadOptions::default()).unwrap(), &again);
    }
    Ok(())
}

proptest! {
    // Every case writes and syncs sixteen files, so there are few of them.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn what_goes_in_comes_out(dataset in arbitrary::dataset()) {
        round_trip(&dataset)?;
    }

    #[test]
    fn names_that_look_like_numbers_come_back(
        dataset in arbitrary::dataset(),
        numbers in proptest::collection::hash_set("-?[0-9]{1,3}(\\.0)?|[0-9 ]{1,4}|nan|true|é\r\n?", 12),
    ) {
        let names: Vec<&String> = numbers.iter().collect();
        let mut parts = dataset.into_parts();
        parts.node_ids = NodeIds::from_texts(&names[..parts.graph.nodes()]);
        // A text that is read as no label, or as another one, cannot be the name of a class.
        let is_name = |name: &&&String| !["nan", "-1"].contains(&name.as_str()) && !name.ends_with(".0");
        let classes = names.iter().filter(is_name).map(|name| (*name).clone());
        let classes = classes.chain((0..).map(|number| format!("class {number}")));
        parts.class_names = classes.take(parts.class_names.len()).collect();
        round_trip(&Dataset::new(parts).unwrap())?;
    }
}

/// Without its name, and without what was read off the rows: a table that was written has a column of its own for each
/// category.
fn same_values(data: Dataset) -> Dataset {
    Dataset::new(DatasetParts { name: String::new(), undeclared: vec![], ..data.into_parts() }).unwrap()
}

#[test]
fn a_hundred_thousand_rows_cross_group_borders() {
    let nodes = 200_000usize;
    let mut text = String::from("id,label,town,x\n");
    for node in 0..nodes {
        text += &format!("{},{},t{},{}\n", 2 * node + 5, node % 7, node % 100, node % 3);
    }
    let edges: String = (0..nodes).map(|node| format!("{},{}\n", 2 * node + 5, 2 * (node / 2) + 5)).collect();
    let dataset = read_csv(&text, &format!("{EDGES}{edges}")).unwrap();
    assert_eq!((dataset.nodes(), dataset.graph().edges(), dataset.features().columns()), (nodes, nodes, 101));
    assert!(matches!(dataset.features(), Features::Sparse { .. }));
    let folder = tempfile::tempdir().unwrap();
    write_folder(&dataset, folder.path(), TableFormat::Parquet).unwrap();
    let again = table::read_folder(folder.path(), &LoadOptions::default()).unwrap();
    assert_eq!(same_values(again.clone()), same_values(dataset.clone()));
}

#[test]
fn text_becomes_one_hot_and_comes_back_as_the_same_sparse_matrix() {
    let mut nodes = String::from("id,label,town,job\n");
    for node in 0..60 {
        let job = if node % 3 == 0 { "" } else { "cook" };
        nodes += &format!("{node},a,t{:02},{job}\n", node % 20);
    }
    let dataset = read_csv(&nodes, EDGES).unwrap();
    let Features::Sparse { values: None, indices, .. } = dataset.features() else { panic!("not one-hot") };
    assert_eq!((indices.len(), dataset.features().columns()), (60 + 40, 21));
    assert_eq!(dataset.feature_names()[19..], ["town=t19", "job=cook"]);
    assert_eq!(dataset.node_ids(), &NodeIds::Position);
    for format in TableFormat::ALL {
        let folder = tempfile::tempdir().unwrap();
        write_folder(&dataset, folder.path(), format).unwrap();
        let again = table::read_folder(folder.path(), &LoadOptions::default()).unwrap();
        assert!(matches!(again.features(), Features::Sparse { values: None, .. }));
        assert_eq!(same_values(again.clone()), same_values(dataset.clone()));
    }
}

#[test]
fn columns_mean_what_their_cells_say() {
    let nodes =
        "ID,age,on,code,Label,SPLIT\na,1.5,true,3A,10,train\nb,-2,FALSE,12,9,validation\nc,1e3,true,,10,\n";
    let dataset = read_csv(nodes, "Src,DST\na,b\n").unwrap();
    assert_eq!(dataset.class_names(), ["9", "10"]);
    assert_eq!(dataset.labels(), [1, 0, 1]);
    assert_eq!(dataset.feature_names(), ["age", "on", "code=12", "code=3A"]);
    let split = dataset.split().unwrap();
    assert_eq!([0, 1, 2].map(|node| split.part(node)), [Part::Train, Part::Val, Part::Unused]);
    assert_eq!(dataset.features().to_dense(3), [1.5, 1., 0., 1., -2., 0., 1., 0., 1000., 1., 0., 0.]);
    // Numbers that are codes: read again as names, here because two texts outnumber the number.
    let late = read_csv("id,label,code\n1,a,007\n2,a,x\n3,b,y\n", EDGES).unwrap();
    assert_eq!(late.feature_names(), ["code=007", "code=x", "code=y"]);
    assert_eq!(late.features().to_dense(3), [1., 0., 0., 0., 1., 0., 0., 0., 1.]);
}

#[test]
fn options_rename_columns_and_declare_categories() {
    let options = LoadOptions {
        id_column: Some("key".into()),
        label_column: Some("class".into()),
        split_column: Some("part".into()),
        source_column: Some("a".into()),
        target_column: Some("b".into()),
        categorical: vec!["year".into()],
        ..LoadOptions::default()
    };
    let nodes = "key,size,class,part,year\n1,0.5,u,train,2007\n2,0.25,v,test,99\n";
    let dataset = read_csv_with(nodes, "b,w,a\n1,0.3,2\n", &options).unwrap();
    assert_eq!(dataset.feature_names(), ["size", "year=99", "year=2007"]);
    assert_eq!(dataset.features().to_dense(2), [0.5, 0., 1., 0.25, 1., 0.]);
    assert_eq!(dataset.graph().iter_edges().collect::<Vec<_>>(), [(1, 0)]);
    for (change, what) in [
        (LoadOptions { categorical: vec!["nope".into()], ..options.clone() }, "no column \"nope\""),
        (LoadOptions { split_column: Some("no".into()), ..options.clone() }, "split column \"no\""),
        (LoadOptions { label_column: Some("key".into()), ..options.clone() }, "three different columns"),
        (LoadOptions { source_column: Some("b".into()), ..options.clone() }, "two different columns"),
        (LoadOptions { target_column: None, ..options.clone() }, "target column \"target\""),
    ] {
        let error = read_csv_with(nodes, "b,w,a\n1,0.3,2\n", &change).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn each_bad_node_table_is_refused_by_row_and_column() {
    let refused = |nodes: &str| read_csv(nodes, EDGES).unwrap_err();
    let check = |nodes: &str, place: Option<Place>, message: &str| {
        let error = refused(nodes);
        assert_eq!(error.place(), place.as_ref(), "{error}");
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(error.file(), Some(Path::new("nodes.csv")));
    };
    check("", None, "no header row");
    check("id,label\n", None, "no nodes");
    check("id,name,x\n1,a,2\n", None, "no label column \"label\" (found: id, name, x)");
    check("name,label\n1,a\n", None, "no id column \"id\"");
    check("id,label,x,x\n1,a,2,3\n", Some(Place::Column("x".into())), "two columns");
    check("id,label,\n1,a,2\n", None, "column 3 has no name");
    check("id,label,x\n1,a,2\n2,b\n", Some(Place::Row(3)), "2 cells, the header 3");
    check("id,label,x\r\n1,a,2\r\n2,b\r\n", Some(Place::Row(3)), "2 cells, the header 3");
    check("id,label,x\n1,a,2\n\n2,b,3,4\n", Some(Place::Row(4)), "4 cells, the header 3");
    check("id,label,x\n1,a,1\n2,b,2\n3,b,few\n", cell(4, "x"), "\"few\" is not a number");
    check("id,label\n1,\n2,nan\n", None, "no classes; give at least one labelled node");
    check("id,label\n1,a\n,b\n", cell(3, "id"), "missing");
    check("id,label,split\n1,a,train\n2,b,trian\n", cell(3, "split"), "\"trian\"");
    check("id,label\n1,a\n2,b\n1,c\n", Some(Place::Row(4)), "\"1\" stands already in row 2");
    check("id,label\n\"x\ny\",a\nb,b\n\"x\ny\",c\n", Some(Place::Row(5)), "stands already in row 2");
    check("id,label\r\nx,a\r\nb,b\r\nx,c", Some(Place::Row(4)), "stands already in row 2");
    check("id,label,a,a=b\n1,x,b,0\n", None, "two features would be called \"a=b\"");
    let not_utf8 = table::read_bytes(
        ("nodes.csv", b"id,label,x\n1,a,u\n2,b,\xff\n"),
        ("edges.csv", EDGES.as_bytes()),
        &LoadOptions::default(),
    );
    assert_eq!(not_utf8.unwrap_err().place(), cell(3, "x").as_ref());
}

#[test]
fn each_bad_edge_table_is_refused_by_row_and_column() {
    let nodes = "id,label\n1,a\n2,b\n";
    let check = |edges: &str, place: Option<Place>, message: &str| {
        let error = read_csv(nodes, edges).unwrap_err();
        assert_eq!(error.place(), place.as_ref(), "{error}");
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(error.file(), Some(Path::new("edges.csv")));
    };
    check("", None, "no header row");
    check(
        "a,b,c\n2,1,3\n",
        None,
        "no source column \"source\" and no target column \"target\" (found: a, b, c)",
    );
    check("source,to,when\n1,2,3\n", None, "no target column");
    check("source,target\n1,2\n2,3\n", cell(3, "target"), "\"3\" is not in the node table");
    check("source,target\n1,2\n-9223372036854775808,1\n", cell(3, "source"), "not in the node table");
    check("source,target\n1,2\n01,2\n", cell(3, "source"), "\"01\" is not in the node table");
    check("source,target\n1,2\n1,\n", cell(3, "target"), "missing");
    check("source,target\n1,2\n1\n", Some(Place::Row(3)), "1 cells, the header 2");
    let directed = LoadOptions { direction: Direction::Undirected, ..LoadOptions::default() };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("nodes.csv"), "id,label\n1,a\n2,b\n3,b\n").unwrap();
    fs::write(folder.path().join("edges.csv"), "source,target\n1,2\n2,1\n2,3\n").unwrap();
    let error = read::load(folder.path(), &directed).unwrap_err();
    assert!(matches!(error.problem(), Problem::OneWayEdge { .. }), "{error}");
}

#[test]
fn a_row_without_end_is_not_gathered() {
    let mut nodes = b"id,label\n1,\"".to_vec();
    nodes.resize(80 << 20, b'x');
    let read = |name: &str, content: &[u8]| {
        table::read_bytes((name, content), ("edges.csv", EDGES.as_bytes()), &LoadOptions::default())
            .unwrap_err()
    };
    let error = read("nodes.csv", &nodes);
    assert_eq!(error.place(), Some(&Place::Row(2)));
    assert!(error.to_string().contains("is a quote left open?"), "{error}");
    let packed = zstd::bulk::compress(&nodes, 1).unwrap();
    assert!(matches!(read("nodes.csv.zst", &packed).problem(), Problem::Expands));
}

#[test]
fn folders_say_what_is_missing_or_ambiguous() {
    let folder = tempfile::tempdir().unwrap();
    let load = || read::load(folder.path(), &LoadOptions::default()).unwrap_err();
    assert!(matches!(load().problem(), Problem::NotRecognised(_)));
    fs::write(folder.path().join("nodes.csv"), "id,label\n1,a\n").unwrap();
    assert!(load().to_string().contains("no edges table"), "{}", load());
    fs::write(folder.path().join("edges.tsv"), "source\ttarget\n1\t1\n").unwrap();
    let dataset = read::load(folder.path(), &LoadOptions::default()).unwrap();
    assert_eq!(dataset.graph().edges(), 1);
    let error = write_folder(&dataset, folder.path(), TableFormat::Parquet).unwrap_err();
    assert!(error.to_string().contains("ambiguous"), "{error}");
    fs::write(folder.path().join("nodes.parquet"), "").unwrap();
    assert!(load().to_string().contains("nodes.csv and nodes.parquet"), "{}", load());
    let unknown = read::load_pair(Path::new("a.xlsx"), Path::new("b.csv"), &LoadOptions::default());
    assert!(matches!(unknown.unwrap_err().problem(), Problem::NotRecognised(_)));
}

#[test]
fn what_tables_cannot_say_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |change: &dyn Fn(&mut progap_graph::DatasetParts), message: &str| {
        let mut parts = read_csv("id,label,x\n1,a,1\n2,b,2\n", EDGES).unwrap().into_parts();
        change(&mut parts);
        let error = write_folder(&Dataset::new(parts).unwrap(), folder.path(), TableFormat::Csv).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    };
    refused(&|parts| parts.feature_names = vec!["id".into()], "two column names are \"id\"");
    refused(&|parts| parts.feature_names = vec!["Split".into()], "a feature is called \"Split\"");
    refused(&|parts| parts.feature_names = vec![String::new()], "empty name");
    refused(&|parts| parts.class_names[0] = "NaN".into(), "a class is called \"NaN\"");
    refused(&|parts| parts.class_names = vec!["a".into(), "a".into()], "two class names are \"a\"");
    refused(&|parts| parts.node_ids = NodeIds::from_texts(["x", ""]), "node 1");
    refused(&|parts| parts.node_ids = NodeIds::from_texts(["x", "x"]), "node 1");
    refused(&|parts| parts.node_ids = NodeIds::from_integers(vec![3, 3]), "node 1");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The same tables in every format, each damaged in many ways: an error or a data set, never a panic.
#[test]
fn damaged_tables_are_errors_or_data() {
    let folders = [
        "csv",
        "csv-gz",
        "csv-zst",
        "pandas",
        "page-v2",
        "categories",
        "codec-lz4",
        "codec-brotli",
        "codec-gzip",
    ];
    for (at, folder) in folders.iter().enumerate() {
        let named = |stem: &str| {
            let mut files = fs::read_dir(data(folder)).unwrap().map(|entry| entry.unwrap().path());
            let path = files.find(|path| path.to_string_lossy().contains(stem)).unwrap();
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap())
        };
        let ((nodes, node_bytes), (edges, edge_bytes)) = (named("nodes."), named("edges."));
        let read = |node_bytes: &[u8], edge_bytes: &[u8]| {
            table::read_bytes((&nodes, node_bytes), (&edges, edge_bytes), &LoadOptions::default())
        };
        assert!(read(&node_bytes, &edge_bytes).is_ok());
        let mut errors = 0;
        for damaged in mutations(&node_bytes, 300, at as u64) {
            errors += usize::from(read(&damaged, &edge_bytes).is_err());
        }
        for damaged in mutations(&edge_bytes, 200, 100 + at as u64) {
            errors += usize::from(read(&node_bytes, &damaged).is_err());
        }
        assert!(errors > 100, "{folder}: {errors} of 500");
    }
}

#[test]
fn every_truncation_of_a_packed_table_is_an_error() {
    for (folder, ending) in [("csv-gz", "csv.gz"), ("csv-zst", "csv.zst"), ("pandas", "parquet")] {
        let read = |stem: &str| fs::read(data(folder).join(format!("{stem}.{ending}"))).unwrap();
        let (nodes, edges) = (read("nodes"), read("edges"));
        for length in (0..nodes.len()).step_by(1 + nodes.len() / 300) {
            let result = table::read_bytes(
                (&format!("nodes.{ending}"), &nodes[..length]),
                (&format!("edges.{ending}"), &edges),
                &LoadOptions::default(),
            );
            let error = result.expect_err(&format!("{length} of {} bytes of {folder}", nodes.len()));
            let expected =
                length == 0 || matches!(error.problem(), Problem::Truncated(_) | Problem::Corrupt(_));
            assert!(expected, "{length} bytes: {error}");
        }
    }
}
