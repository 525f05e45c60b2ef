//! Files as other people publish them: headers, encodings, lists of features, pickled matrices, columns of ids.

mod common;

use std::io::Cursor;
use std::path::Path;

use common::npz::{archive, array, fixture, floats, integers, sorted_edges};
use common::shared::shared;
use progap_formats::read::encoding::Encoding;
use progap_formats::read::{self, LoadOptions, edge_list, npz};
use progap_graph::{Dataset, Error, InferenceKind, Place, Problem, Result, UNLABELLED};

fn lists(edges: &str, labels: &str, header: Option<bool>) -> Result<Dataset> {
    let options = LoadOptions { header, ..LoadOptions::default() };
    Ok(edge_list::read_bytes(edges.as_bytes(), labels.as_bytes(), &options)?.dataset)
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(folder.path().join(name), text).unwrap());
    folder
}

fn load(folder: &tempfile::TempDir) -> Result<Dataset> {
    read::load(folder.path(), &LoadOptions::default())
}

#[test]
fn a_first_line_of_names_is_a_header_where_ids_are_numbers() {
    for (edges, labels) in [
        ("FromNodeId\tToNodeId\n0\t1\n1\t2\n", "id,target\n0,a\n1,b\n2,a\n"),
        ("0 1\n1 2\n", "id target\n0 a\n1 b\n2 a\n"),
        ("sender;receiver\n0;1\n1;2\n", "0 a\n1 b\n2 a\n"),
        ("left,right\n0,1\n1,2\n", "node,department\n0,a\n1,b\n2,a\n"),
    ] {
        let data = lists(edges, labels, None).unwrap();
        assert_eq!(data.class_names(), ["a", "b"], "{labels}");
        assert_eq!((data.nodes(), sorted_edges(&data)), (3, vec![(0, 1), (1, 2)]), "{edges}");
    }
}

#[test]
fn columns_of_a_header_are_found_by_their_names() {
    let data =
        lists("row,from,to,weight\n7,0,1,0.5\n8,1,2,0.25\n", "class,name,id\na,x y,0\nb,,1\na,z,2\n", None);
    let data = data.unwrap();
    assert_eq!((sorted_edges(&data), data.class_names().len()), (vec![(0, 1), (1, 2)], 2));
    let many = lists("0,1\n", "0,a,17\n1,b,18\n", None).unwrap_err().to_string();
    assert!(many.contains("a line of the list of labels has 3 values"), "{many}");
    assert_eq!(
        lists("0,1\n", "0,Computer Science\n1,b\n", None).unwrap().class_names()[0],
        "Computer Science"
    );
}

#[test]
fn a_first_line_that_may_be_either_is_asked_about() {
    let unclear = |edges: &str, labels: &str| {
        let error = lists(edges, labels, None).unwrap_err();
        assert!(matches!(error.problem(), Problem::Header(_)), "{error}");
        (lists(edges, labels, Some(true)), lists(edges, labels, Some(false)))
    };
    let (header, data) = unclear("left right\nann bob\nbob cat\n", "ann x\nbob y\ncat x\n");
    assert_eq!((header.unwrap().nodes(), data.unwrap().nodes()), (3, 5));
    let (header, data) = unclear("ann bob\nbob cat\n", "who group\nann x\nbob y\ncat x\n");
    assert_eq!((header.unwrap().classes(), data.unwrap().classes()), (2, 3));
    // Names that headers have are a header, unless nodes are called so.
    let named = lists("source target\nann bob\n", "ann x\nbob y\n", None).unwrap();
    assert_eq!(named.nodes(), 2);
    assert!(lists("source target\nann source\n", "ann x\nsource y\n", None).is_err());
    // Ids that other lines have are data.
    assert_eq!(lists("ann bob\nbob cat\n", "ann x\nbob y\ncat x\n", None).unwrap().nodes(), 3);
}

#[test]
fn a_table_of_two_columns_is_a_list_of_edges() {
    let folder = folder(&[
        ("ring.csv", "a,b\n0,1\n1,2\n"),
        ("classes.csv", "id,target\n0,x\n1,y\n2,x\n"),
        ("nodes.csv", "id,label,age\n0,x,3\n1,y,4\n2,x,5\n"),
        ("bare.csv", "0,1\n1,2\n"),
    ]);
    let path = |name: &str| folder.path().join(name);
    let with = |labels: &str| LoadOptions { label_file: Some(path(labels)), ..LoadOptions::default() };
    let alone = read::load(&path("ring.csv"), &LoadOptions::default()).unwrap_err();
    assert!(matches!(alone.problem(), Problem::NoLabelFile), "{alone}");
    let nodes = read::load(&path("nodes.csv"), &LoadOptions::default()).unwrap_err();
    assert!(matches!(nodes.problem(), Problem::NoEdgeTable), "{nodes}");
    for (edges, labels, features) in
        [("ring.csv", "classes.csv", 0), ("ring.csv", "nodes.csv", 1), ("bare.csv", "classes.csv", 0)]
    {
        let data = read::load(&path(edges), &with(labels)).unwrap();
        assert_eq!((sorted_edges(&data), data.features().columns()), (vec![(0, 1), (1, 2)], features));
        let pair = read::load_pair(&path("nodes.csv"), &path(edges), &LoadOptions::default()).unwrap();
        assert_eq!(sorted_edges(&pair), [(0, 1), (1, 2)], "{edges}");
    }
}

#[test]
fn other_encodings_are_named_and_read() {
    let text = "id;label;town\n1;x;K\u{f6}ln\n2;y;M\u{fc}nchen\n3;x;K\u{f6}ln\n";
    let latin: Vec<u8> = text.chars().map(|sign| sign as u8).collect();
    let wide: Vec<u8> = format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked = [&b"\xef\xbb\xbf"[..], text.as_bytes()].concat();
    let folder = folder(&[("edges.csv", "source;target\n1;2\n")]);
    let with = |bytes: &[u8], encoding: Option<Encoding>| {
        std::fs::write(folder.path().join("nodes.csv"), bytes).unwrap();
        read::load(folder.path(), &LoadOptions { encoding, ..LoadOptions::default() })
    };
    let plain = with(text.as_bytes(), None).unwrap();
    assert_eq!(plain.feature_names(), ["town=K\u{f6}ln", "town=M\u{fc}nchen"]);
    assert_eq!(with(&marked, None).unwrap(), plain);
    let error = with(&latin, None).unwrap_err();
    assert!(error.to_string().contains("the text is not UTF-8 and looks like latin-1"), "{error}");
    assert_eq!(with(&latin, Some(Encoding::Latin1)).unwrap(), plain);
    let error = with(&wide, None).unwrap_err();
    assert!(matches!(error.problem(), Problem::Encoding(Encoding::Utf16)), "{error}");
    // The edges of this folder are UTF-8, so that only the nodes can be read so.
    std::fs::write(
        folder.path().join("edges.csv"),
        "source;target\n1;2\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
    )
    .unwrap();
    assert_eq!(with(&wide, Some(Encoding::Utf16)).unwrap(), plain);
}

#[test]
fn all_columns_that_are_missing_are_in_one_message() {
    let folder = folder(&[
        (
            "nodes.csv",
            "who,group,age\nann,x,1\nbob,y,2\ncat,x,3\ndan,y,4\neve,x,5\nfay,y,6\ngil,x,7\nhal,y,8\n",
        ),
        ("edges.csv", "payer,payee,amount\nann,bob,3\ncat,ann,4\n"),
    ]);
    let error = load(&folder).unwrap_err();
    let text = error.to_string();
    for part in [
        "nodes.csv: there is no id column \"id\" and no label column \"label\" (found: who, group, age)",
        "there is no source column \"source\" and no target column \"target\" in ",
        "edges.csv (found: payer, payee, amount)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let Problem::NoColumns(tables) = error.problem() else { panic!("{error}") };
    let likely: Vec<(&str, Option<&str>)> = tables
        .iter()
        .flat_map(|table| &table.missing)
        .map(|column| (column.role, column.likely.first().map(String::as_str)))
        .collect();
    assert_eq!(
        likely,
        [("id", Some("who")), ("label", Some("group")), ("source", Some("payer")), ("target", Some("payee"))]
    );
}

#[test]
fn another_column_that_has_all_nodes_of_the_edges_is_named() {
    let folder = folder(&[
        ("nodes.csv", "id,label,number\n900,x,0\n901,y,1\n902,x,2\n"),
        ("edges.csv", "source,target\n0,1\n2,0\n"),
    ]);
    let error = load(&folder).unwrap_err();
    let Problem::OtherIds { id, ids, column } = error.problem() else { panic!("{error}") };
    assert_eq!((id.as_str(), ids.as_str(), column.as_str()), ("0", "id", "number"));
    std::fs::write(folder.path().join("edges.csv"), "source,target\n0,7\n").unwrap();
    assert!(matches!(load(&folder).unwrap_err().problem(), Problem::UnknownNode(id) if id == "0"));
}

#[test]
fn ids_of_another_kind_become_no_features() {
    let row = |node: u64, other: &str| {
        format!("{node},{},{},{other},{}\n", node % 2, 5_000_000_000 + 7 * node, node % 3)
    };
    let table = |name: &str, other: &dyn Fn(u64) -> String| {
        (0..30).fold(format!("id,label,account,{name},level\n"), |all, node| all + &row(node, &other(node)))
    };
    let read = |text: &str, change: &dyn Fn(&mut LoadOptions)| {
        let folder = folder(&[("nodes.csv", text), ("edges.csv", "source,target\n0,1\n")]);
        let mut options = LoadOptions::default();
        change(&mut options);
        read::describe(folder.path(), &options).unwrap()
    };
    let text = table("handle", &|node| format!("u-{node:x}"));
    let described = read(&text, &|_| {});
    assert_eq!(described.dataset.feature_names(), ["level"]);
    let left: Vec<&str> = described
        .dataset
        .undeclared()
        .iter()
        .filter(|undeclared| undeclared.what == InferenceKind::Distinct)
        .map(|undeclared| undeclared.column.as_str())
        .collect();
    assert_eq!(left, ["account", "handle"]);
    let note = described.columns[2].note.as_deref().unwrap();
    assert!(note.contains("all values are different, as ids are"), "{note}");
    let kept = read(&text, &|options| {
        options.columns.column("account").kind = Some(read::columns::ColumnKind::Number);
        options.categorical.push("handle".into());
    });
    assert_eq!(kept.dataset.features().columns(), 32);
    assert!(kept.dataset.undeclared().iter().all(|undeclared| undeclared.what != InferenceKind::Distinct));
    let kept = read(&text, &|options| options.columns.keep = vec!["account".into()]);
    assert_eq!(kept.dataset.feature_names(), ["account"]);
    // Of a column that is called an id nothing is looked at.
    let uuid = read(&table("uuid", &|node| (node % 4).to_string()), &|_| {});
    assert_eq!(uuid.dataset.feature_names(), ["level"]);
    assert_eq!(uuid.columns[3].note.as_deref(), Some("an id by its name"));
}

#[test]
fn features_beside_a_table_of_classes_are_read() {
    let target = "id,target\n0,x\n1,y\n2,x\n";
    let edges = "id_1,id_2\n0,1\n1,2\n";
    let json = folder(&[
        ("asia_target.csv", target),
        ("asia_edges.csv", edges),
        ("asia_features.json", r#"{"2": [7, 3, 7], "0": [10], "1": []}"#),
    ]);
    let data = load(&json).unwrap();
    assert_eq!(data.feature_names(), ["feature 3", "feature 7", "feature 10"]);
    assert_eq!(data.features().to_dense(3), [0., 0., 1., 0., 0., 0., 1., 1., 0.]);
    assert!(data.undeclared().iter().any(|undeclared| undeclared.column == "asia_features.json"));
    let musae = "id,views,new_id,label\n900,5,1,a\n901,6,0,b\n902,9,2,a\n";
    let triples = "node_id,feature_id,value\n2,b,1.0\n0,a,2.5\n2,b,1.0\n";
    let rows = folder(&[("target.csv", musae), ("edges.csv", "from,to\n0,1\n"), ("features.csv", triples)]);
    let data = load(&rows).unwrap();
    assert_eq!(data.feature_names(), ["views", "feature a", "feature b"]);
    assert_eq!(data.features().to_dense(3), [6., 2.5, 0., 5., 0., 0., 9., 0., 1.]);
    for (features, what) in [
        ("node_id,feature_id,value\n7,b,1\n", "the node \"7\" is not in the node table"),
        ("node_id,feature_id,value\n2,b,1\n2,b,2\n", "row 3: the feature \"b\" of the node has two values"),
        ("node_id,feature_id,value\n2,b,much\n", "\"much\" is not a number"),
        ("id,a,b,c\n2,1,2,3\n", "this is a table of 4 columns"),
    ] {
        std::fs::write(rows.path().join("features.csv"), features).unwrap();
        let error = load(&rows).unwrap_err().to_string();
        assert!(error.contains("features.csv") && error.contains(what), "{error}");
    }
}

#[test]
fn pickled_matrices_are_read_and_other_objects_are_not() {
    let data = read::load(&fixture("graphdata.npz"), &LoadOptions::default()).unwrap();
    assert_eq!(sorted_edges(&data), [(0, 1), (1, 2), (2, 3), (4, 0)]);
    assert_eq!(data.labels(), [0, 1, 0, 1, 1]);
    assert_eq!(data.features().to_dense(5), [1., 0., 0., 0., 1., 2.5, 0., 0., 0., 0., 0., 1., 0., 0., 0.]);
    // What a pickle would call is only noted.
    let evil = b"\x80\x03cos\nsystem\nX\x04\x00\x00\x00true\x85R.".as_slice();
    let (y, evil) = (integers(&[0, 1]), array("|O", "()", evil));
    let error = npz::read_from(Cursor::new(archive(&[("y", &y), ("adj_matrix", &evil)]))).unwrap_err();
    assert!(matches!(error.problem(), Problem::PickledObjects), "{error}");
    // A matrix of another kind, or with another name: what would read it is said at once.
    for name in ["adj", "network"] {
        let error = npz::read_from(Cursor::new(archive(&[("y", &y), (name, &evil)]))).unwrap_err();
        assert_eq!(error.place(), Some(&Place::Key(name.into())), "{error}");
        assert!(error.to_string().contains("np.load(\"old.npz\", allow_pickle=True)"), "{error}");
    }
}

#[test]
fn arrays_without_features_are_read_unless_one_may_hold_them() {
    let (y, edges) =
        (integers(&[0, 1, 0]), array("<i8", "(2, 1)", &[0i64, 1].map(i64::to_le_bytes).concat()));
    let read = |more: &[(&str, &[u8])]| -> std::result::Result<Dataset, Error> {
        npz::read_from(Cursor::new(archive(&[&[("y", &y[..]), ("edge_index", &edges[..])], more].concat())))
    };
    assert_eq!(read(&[]).unwrap().features().columns(), 0);
    let other = floats("(3, 2)", &[1.0; 6]);
    let error = read(&[("embedding", &other)]).unwrap_err().to_string();
    assert!(error.contains("no array \"x\" of features") && error.contains("embedding"), "{error}");
}

#[test]
fn what_is_not_there_is_said_and_names_are_those_of_folders() {
    for (path, what) in
        [("/nowhere/at/all/", "no such folder"), ("/nowhere/at.csv", "no such file or folder")]
    {
        let error = read::load(Path::new(path), &LoadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(&format!("{path}: {what}; check the spelling")), "{error}");
    }
    let python = folder(&[("data.pt", "PK")]);
    let error = read::load(&python.path().join("data.pt"), &LoadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("progap.from_pyg(torch.load(\"data.pt\", weights_only=False))"), "{error}");
    assert_eq!(read::name_of(Path::new("some/lastfm/target.csv")), "lastfm");
    assert_eq!(read::name_of(Path::new("some/lastfm/nodes.csv.gz")), "lastfm");
    assert_eq!(read::name_of(Path::new("some/lastfm.csv")), "lastfm");
    let here = std::env::current_dir().unwrap();
    assert_eq!(read::name_of(Path::new("nodes.csv")), here.file_name().unwrap().to_string_lossy());
}

#[test]
fn the_shared_layouts_are_read_as_they_are() {
    let Some(layouts) = shared("data/layouts") else { return };
    let load = |name: &str, label: Option<&str>| {
        let options = LoadOptions { label_column: label.map(String::from), ..LoadOptions::default() };
        read::load(&layouts.join(name), &options).unwrap()
    };
    let sizes = |data: &Dataset| (data.nodes(), data.graph().edges(), data.classes());
    let musae = load("musae_DE", Some("mature"));
    assert_eq!(sizes(&musae), (9_498, 153_138, 2));
    assert!(musae.feature_names().iter().any(|name| name == "feature 3159" || name == "feature 308"));
    assert!(!musae.feature_names().iter().any(|name| name == "id"));
    assert_eq!(sizes(&load("karateclub_twitch", None)), (7_126, 35_324, 2));
    assert_eq!(sizes(&load("karateclub_lastfm", None)), (7_624, 27_806, 18));
    let cora = load("graphdata_cora.npz", None);
    assert_eq!((sizes(&cora), cora.features().columns()), ((2_708, 5_429, 7), 1_433));
    assert!(cora.labels().iter().all(|&label| label != UNLABELLED));
}
