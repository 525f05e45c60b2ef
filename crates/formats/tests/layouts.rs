//! Other people's layouts of arrays, as small files made here.

mod common;

use std::io::Cursor;

use common::npz::{archive, array, floats, integers};
use progap_formats::read::npz::{self, ArrayNames, NpzOptions};
use progap_formats::read::{self, LoadOptions, edge_list, graphml, node_link};
use progap_graph::{Dataset, Error, Part, UNLABELLED};

fn read(arrays: &[(&str, &[u8])], options: &NpzOptions) -> Result<Dataset, Error> {
    npz::read_from_with(Cursor::new(archive(arrays)), options)
}

fn matrix(shape: &str, values: &[i64]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    array("<i8", shape, &bytes)
}

fn mask(shape: &str, values: &[u8]) -> Vec<u8> {
    array("|b1", shape, values)
}

fn edges(dataset: &Dataset) -> Vec<(u32, u32)> {
    let mut edges: Vec<(u32, u32)> = dataset.graph().iter_edges().collect();
    edges.sort_unstable();
    edges
}

/// `roman_empire.npz` and its like: every edge once, ten splits.
#[test]
fn the_heterophilous_layout_is_read_with_any_of_its_splits() {
    let x = floats("(3, 2)", &[0.5, 1.0, 2.5, 0.0, -1.5, 0.0]);
    let (y, pairs) = (integers(&[1, 0, 1]), matrix("(2, 2)", &[0, 1, 1, 2]));
    let train = mask("(2, 3)", &[1, 0, 0, 0, 0, 1]);
    let val = mask("(2, 3)", &[0, 1, 0, 0, 1, 0]);
    let test = mask("(2, 3)", &[0, 0, 1, 1, 0, 0]);
    let arrays: [(&str, &[u8]); 6] = [
        ("node_features", &x),
        ("node_labels", &y),
        ("edges", &pairs),
        ("train_masks", &train),
        ("val_masks", &val),
        ("test_masks", &test),
    ];
    let first = read(&arrays, &NpzOptions::default()).unwrap();
    assert_eq!(edges(&first), [(0, 1), (1, 0), (1, 2), (2, 1)]);
    assert_eq!((first.labels(), first.split().unwrap().part(0)), (&[1, 0, 1][..], Part::Train));
    let second = read(&arrays, &NpzOptions { mask: Some(1), ..Default::default() }).unwrap();
    assert_eq!(
        [0, 1, 2].map(|node| second.split().unwrap().part(node)),
        [Part::Test, Part::Val, Part::Train]
    );
    let none = read(&arrays, &NpzOptions { mask: Some(2), ..Default::default() }).unwrap_err();
    assert!(none.to_string().contains("there is no split 2: the splits are 0 to 1"), "{none}");
    // The columns that are no switches are in a unit of their own.
    assert_eq!(first.numbers().iter().map(|number| number.column).collect::<Vec<_>>(), [0]);
}

/// Masks as PyTorch Geometric keeps several: a column for each split.
#[test]
fn masks_with_a_column_for_each_split_are_read() {
    let (x, y) = (floats("(2, 1)", &[1.0, 2.0]), integers(&[0, 1]));
    let edge_index = matrix("(2, 1)", &[0, 1]);
    let (train, test) = (mask("(2, 3)", &[1, 0, 1, 0, 1, 0]), mask("(2, 3)", &[0, 1, 0, 1, 0, 1]));
    let arrays: [(&str, &[u8]); 5] =
        [("x", &x), ("y", &y), ("edge_index", &edge_index), ("train_mask", &train), ("test_mask", &test)];
    let data = read(&arrays, &NpzOptions { mask: Some(1), ..Default::default() }).unwrap();
    assert_eq!([0, 1].map(|node| data.split().unwrap().part(node)), [Part::Test, Part::Train]);
    assert_eq!(edges(&data), [(0, 1)], "as stored");
    let one = [("x", &x[..]), ("y", &y), ("edge_index", &edge_index)];
    let refused = read(&one, &NpzOptions { mask: Some(0), ..Default::default() }).unwrap_err();
    assert!(refused.to_string().contains("one split at most"), "{refused}");
}

/// `amazon_photo.npz` and its like: sparse rows, labels, and names as Python objects, which are left alone.
#[test]
fn the_layout_of_the_gnn_benchmark_is_read() {
    let (indptr, indices) = (integers(&[0, 1, 2]), integers(&[1, 0]));
    let shape = integers(&[2, 2]);
    let data = floats("(2,)", &[1.0, 1.0]);
    let labels = integers(&[1, 0]);
    let objects = array("|O", "(2,)", b"cos\nsystem\n");
    for prefix in ["", "matrix."] {
        let name = |part: &str| match prefix {
            "" => part.to_string(),
            prefix => part.replacen("adj_", &format!("adj_{prefix}"), 1).replacen(
                "attr_",
                &format!("attr_{prefix}"),
                1,
            ),
        };
        let names: Vec<String> = [
            "adj_indptr",
            "adj_indices",
            "adj_data",
            "adj_shape",
            "attr_indptr",
            "attr_indices",
            "attr_data",
            "attr_shape",
        ]
        .iter()
        .map(|part| name(part))
        .collect();
        let contents = [&indptr, &indices, &data, &shape, &indptr, &indices, &data, &shape];
        let mut arrays: Vec<(&str, &[u8])> =
            names.iter().map(String::as_str).zip(contents.iter().map(|content| &content[..])).collect();
        arrays.extend([("labels", &labels[..]), ("class_names", &objects), ("node_ids", &objects)]);
        let dataset = read(&arrays, &NpzOptions::default()).unwrap();
        assert_eq!((dataset.features().columns(), edges(&dataset)), (2, vec![(0, 1), (1, 0)]), "{prefix}");
        assert!(dataset.numbers().is_empty());
    }
}

#[test]
fn arrays_of_any_name_are_read_by_the_user_s_word() {
    let (x, y) = (floats("(3, 1)", &[1.0, 2.0, 3.0]), floats("(3,)", &[0.0, f64::NAN, 1.0]));
    let (pairs, known) = (matrix("(3, 2)", &[0, 1, 1, 2, 2, 0]), mask("(3,)", &[1, 1, 0]));
    let arrays: [(&str, &[u8]); 4] = [("inputs", &x), ("classes", &y), ("links", &pairs), ("mine", &known)];
    let error = read(&arrays, &NpzOptions::default()).unwrap_err().to_string();
    assert!(error.contains("no array \"y\"") && error.contains("inputs, classes, links, mine"), "{error}");
    let mut names = ArrayNames::default();
    for (role, name) in [("labels", "classes"), ("features", "inputs"), ("edges", "links"), ("train", "mine")]
    {
        names.set(role, name).unwrap();
    }
    let options = NpzOptions { arrays: names.clone(), ..NpzOptions::default() };
    let data = read(&arrays, &options).unwrap();
    assert_eq!(data.labels(), [0, UNLABELLED, 1]);
    assert_eq!(edges(&data), [(0, 1), (1, 2), (2, 0)]);
    let split = data.split().unwrap();
    assert_eq!([0, 1, 2].map(|node| split.part(node)), [Part::Train, Part::Unused, Part::Unused]);
    assert!(names.set("colour", "x").unwrap_err().to_string().contains("no array can hold \"colour\""));
    names.set("edges", "lines").unwrap();
    let error = read(&arrays, &NpzOptions { arrays: names, ..NpzOptions::default() }).unwrap_err();
    assert!(error.to_string().contains("no array \"lines\" (edges)"), "{error}");
}

#[test]
fn lists_of_nodes_and_masks_of_labels_are_read() {
    let (x, y) = (floats("(4, 1)", &[1.0, 2.0, 3.0, 4.0]), integers(&[0, 1, -1, 1]));
    let edge_index = matrix("(2, 1)", &[0, 1]);
    let (train, valid, known) = (integers(&[0, 2]), integers(&[3]), mask("(4,)", &[1, 0, 1, 1]));
    let arrays: [(&str, &[u8]); 6] = [
        ("x", &x),
        ("y", &y),
        ("edge_index", &edge_index),
        ("train_idx", &train),
        ("valid_idx", &valid),
        ("labelled", &known),
    ];
    let data = read(&arrays, &NpzOptions::default()).unwrap();
    assert_eq!(data.labels(), [0, UNLABELLED, UNLABELLED, 1]);
    let parts = [0, 1, 2, 3].map(|node| data.split().unwrap().part(node));
    assert_eq!(parts, [Part::Train, Part::Unused, Part::Unused, Part::Val]);
}

/// `email-Eu-core.txt` with its department labels: comments, blanks, ids that have no label.
#[test]
fn an_edge_list_with_a_list_of_labels_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("email.txt", "# Directed graph\n# FromNodeId\tToNodeId\n0\t1\n2 0 17\n\n% more\n3,1\n");
    write("email-department-labels.txt", "0 4\n1 5\n2 4\n9 5\n");
    let data = read::load(folder.path(), &LoadOptions::default()).unwrap();
    assert_eq!((data.nodes(), data.classes(), data.labelled()), (5, 2, 4));
    let names: Vec<String> = (0..5).map(|node| data.node_ids().name(node)).collect();
    assert_eq!(names, ["0", "1", "2", "3", "9"]);
    assert_eq!(data.labels(), [0, 1, 0, UNLABELLED, 1]);
    assert_eq!(edges(&data), [(0, 1), (2, 0), (3, 1)]);
    assert_eq!(data.features().columns(), 0);

    let alone = read::load(&folder.path().join("email.txt"), &LoadOptions::default()).unwrap_err();
    assert!(alone.to_string().contains("an edge list needs the labels of its nodes"), "{alone}");
    let label_file = Some(folder.path().join("email-department-labels.txt"));
    let options = LoadOptions { label_file, ..LoadOptions::default() };
    assert_eq!(read::load(&folder.path().join("email.txt"), &options).unwrap().named(data.name()), data);
    for (edges, labels, what) in [
        ("0 1\n2\n", "0 a\n", "row 2: \"2\" is one value"),
        ("0 1\n", "0 a\n0 b\n", "row 2: the node id \"0\" stands already in row 1"),
        ("0 1\n", "# nothing\n", "no classes"),
    ] {
        let error = edge_list::read_bytes(edges.as_bytes(), labels.as_bytes(), &LoadOptions::default());
        assert!(error.as_ref().unwrap_err().to_string().contains(what), "{error:?}");
    }
}

/// GraphML as NetworkX writes it.
#[test]
fn graphml_is_read_as_a_table() {
    let text = r#"<?xml version='1.0' encoding='utf-8'?>
<!-- made by hand -->
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d2" for="edge" attr.name="weight" attr.type="double"/>
  <key id="d1" for="node" attr.name="age" attr.type="double"><default>7</default></key>
  <key id="d0" for="node" attr.name="label" attr.type="string"/>
  <graph edgedefault="undirected">
    <node id="a &amp; b"><data key="d0">x</data><data key="d1">30.5</data></node>
    <node id="c"><data key="d0"><![CDATA[y]]></data></node>
    <node id="d"/>
    <edge source="a &amp; b" target="c"><data key="d2">0.5</data></edge>
    <edge source="c" target="d"/>
  </graph>
</graphml>"#;
    let data = graphml::read_text(text, &LoadOptions::default()).unwrap().dataset;
    assert_eq!((data.node_ids().name(0), data.labels()), ("a & b".to_string(), &[0, 1, UNLABELLED][..]));
    assert_eq!(
        (data.feature_names(), data.features().to_dense(3)),
        (&["age".to_string()][..], vec![30.5, 7.0, 7.0])
    );
    assert_eq!(edges(&data), [(0, 1), (1, 0), (1, 2), (2, 1)]);
    let directed = text.replace("undirected", "directed");
    let directed = graphml::read_text(&directed, &LoadOptions::default()).unwrap().dataset;
    assert_eq!(edges(&directed), [(0, 1), (1, 2)]);
    for (from, to, what) in [
        ("</graph>\n", "", "</graphml> ends nothing that is open"),
        ("target=\"d\"", "target=\"e\"", "the node \"e\" is not in the node table"),
        ("id=\"d\"", "id=\"c\"", "\"c\" stands already"),
        ("30.5", "old", "node \"a & b\", value \"age\": \"old\" is not a number"),
        ("&amp;", "&bomb;", "as no XML writes it"),
        ("<!-- made by hand -->", "<!DOCTYPE x [<!ENTITY a 'b'>]>", "document types are not read"),
        ("<node id=\"d\"/>", "<node/>", "no id of a node"),
        ("</graphml>", "", "<graphml> is never closed"),
    ] {
        let error =
            graphml::read_text(&text.replace(from, to), &LoadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

/// JSON as NetworkX's `node_link_data` gives it; ids may be numbers, and values may be missing.
#[test]
fn node_link_json_is_read_as_a_table() {
    let text = r#"{"directed": false, "multigraph": false, "graph": {"name": "g"},
        "nodes": [{"label": "x", "age": 30.5, "id": "ann"}, {"label": "y", "age": 7, "id": 2}, {"age": 1e1, "label": null, "id": "c"}],
        "links": [{"weight": 0.5, "source": "ann", "target": 2}, {"source": 2, "target": "c"}]}"#;
    let data = node_link::read_text(text, &LoadOptions::default()).unwrap().dataset;
    assert_eq!((data.node_ids().name(1), data.labels()), ("2".to_string(), &[0, 1, UNLABELLED][..]));
    assert_eq!(
        (data.feature_names(), data.features().to_dense(3)),
        (&["age".to_string()][..], vec![30.5, 7.0, 10.0])
    );
    assert_eq!(edges(&data), [(0, 1), (1, 0), (1, 2), (2, 1)]);
    let directed = text.replace("\"directed\": false", "\"directed\": true").replace("links", "edges");
    let directed = node_link::read_text(&directed, &LoadOptions::default()).unwrap().dataset;
    assert_eq!(edges(&directed), [(0, 1), (1, 2)]);
    for (from, to, what) in [
        ("\"target\": \"c\"", "\"target\": \"d\"", "the node \"d\" is not in the node table"),
        ("\"target\": \"c\"", "\"to\": \"c\"", "\"edges\"[1]: there is no \"target\""),
        (
            "30.5",
            "[1, 2]",
            "\"nodes\"[0]: there is no \"age\" (found: a value that is neither text nor a number)",
        ),
        ("30.5", "\"old\"", "node \"ann\", value \"age\": \"old\" is not a number"),
        ("\"nodes\"", "\"people\"", "not a graph in node-link JSON"),
        ("0.5", "0.5.5", "not a graph in node-link JSON"),
    ] {
        let error =
            node_link::read_text(&text.replace(from, to), &LoadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

/// The order of nodes is public, so it must not be the one in which a program met them along the edges.
#[test]
fn files_of_graphs_give_nodes_an_order_that_tells_no_edge() {
    let names = |data: &Dataset| (0..data.nodes()).map(|node| data.node_ids().name(node)).collect::<Vec<_>>();
    let folder = tempfile::tempdir().unwrap();
    let read = |files: &[(&str, &str)], name: &str| {
        for (name, text) in files {
            std::fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        read::load(&folder.path().join(name), &LoadOptions::default()).unwrap()
    };
    let of_list = |edges: &str| read(&[("list/g.edges", edges), ("list/labels.txt", "7 x\n1 y\n")], "list");
    assert_eq!(names(&of_list("10 3\n7 1\n2 20\n")), ["1", "2", "3", "7", "10", "20"]);
    assert_eq!(names(&of_list("2 3\n7 1\n10 20\n")), ["1", "2", "3", "7", "10", "20"]);
    assert_eq!(names(&of_list("ann 3\n7 1\n02 2\n")), ["02", "1", "2", "3", "7", "ann"]);
    let orders = [["10", "3", "7", "1"], ["1", "10", "3", "7"]];
    for order in orders {
        let node = |id: &str| format!("<node id=\"{id}\"><data key=\"d0\">x{}</data></node>", id.len());
        let text = format!(
            "<graphml><key id=\"d0\" for=\"node\" attr.name=\"label\"/><graph edgedefault=\"directed\">{}\
             <edge source=\"10\" target=\"3\"/></graph></graphml>",
            order.map(node).concat()
        );
        let data = read(&[("g.graphml", &text)], "g.graphml");
        assert_eq!(
            (names(&data), edges(&data)),
            (["1", "3", "7", "10"].map(String::from).to_vec(), vec![(3, 1)])
        );
        let node = |id: &str| format!("{{\"id\": {id}, \"label\": \"x{}\"}}", id.len());
        let text = format!(
            "{{\"directed\": true, \"nodes\": [{}], \"edges\": [{{\"source\": 10, \"target\": 3}}]}}",
            order.map(node).join(",")
        );
        assert_eq!(read(&[("g.json", &text)], "g.json"), data);
        let row = |id: &str| format!("{id},x{}\n", id.len());
        let nodes = format!("id,label\n{}", order.map(row).concat());
        let tables = [("g/nodes.csv", &nodes[..]), ("g/edges.csv", "source,target\n10,3\n")];
        assert_eq!(read(&tables, "g"), data);
    }
}

/// `ogbn-arxiv`: the tables of the benchmark with its own split, edges as they are.
#[test]
fn the_benchmark_s_tables_come_with_their_split() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for (name, text) in [
        ("raw/num-node-list.csv", "4\n"),
        ("raw/num-edge-list.csv", "2\n"),
        ("raw/edge.csv", "0,1\n3,2\n"),
        ("raw/node-label.csv", "0\n1\n\n1\n"),
        ("split/time/train.csv", "0\n"),
        ("split/time/valid.csv", "1\n"),
        ("split/time/test.csv", "2\n3\n"),
    ] {
        write(name, text);
    }
    let data = read::load(folder.path(), &LoadOptions::default()).unwrap();
    let parts = [0, 1, 2, 3].map(|node| data.split().unwrap().part(node));
    assert_eq!(parts, [Part::Train, Part::Val, Part::Unused, Part::Test], "no label, no part");
    assert_eq!((edges(&data), data.features().columns()), (vec![(0, 1), (3, 2)], 0));
    std::fs::rename(folder.path().join("split/time"), folder.path().join("split/sales_ranking")).unwrap();
    let both = read::load(folder.path(), &LoadOptions::default()).unwrap();
    assert_eq!(edges(&both), [(0, 1), (1, 0), (2, 3), (3, 2)]);
    write("split/sales_ranking/valid.csv", "9\n");
    let error = read::load(folder.path(), &LoadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("valid.csv: row 1, column \"1\": the index 9 is outside 0..4"), "{error}");
}

/// Files as others write them, each recognised by what it holds: three nodes, two classes, edges between them.
#[test]
fn ten_layouts_load_without_an_option() {
    let place = tempfile::tempdir().unwrap();
    let put = |name: &str, content: &[u8]| {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    let table = "id,label,age\na,x,30\nb,y,40\nc,x,50\n";
    let links = "source,target\na,b\nb,c\n";
    let (x, y) = (floats("(3, 2)", &[0.5, 1.0, 2.5, 0.0, -1.5, 0.0]), integers(&[1, 0, 1]));
    let (pairs, index) = (matrix("(2, 2)", &[0, 1, 1, 2]), matrix("(2, 2)", &[0, 1, 1, 2]));
    let (indptr, indices) = (integers(&[0, 1, 2, 2]), integers(&[1, 2]));
    let (shape, data) = (integers(&[3, 3]), floats("(2,)", &[1.0, 1.0]));
    let [train, val, test] = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map(|part| mask("(3,)", &part));
    let gzip = |text: &str| {
        let mut packed = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, text.as_bytes()).unwrap();
        packed.finish().unwrap()
    };
    let semicolons = table.replace(',', ";").replace("30", "30,5");
    let pandas = ",node_id,class,age\n0,a,x,30\n1,b,y,40\n2,c,x,50\n";
    let files: [(&str, Vec<u8>); 24] = [
        ("csv/nodes.csv", table.into()),
        ("csv/edges.csv", links.into()),
        ("semicolons/nodes.csv", semicolons.into()),
        ("semicolons/edges.csv", links.replace(',', ";").into()),
        ("tabs/nodes.tsv", table.replace(',', "\t").into()),
        ("tabs/edges.tsv", links.replace(',', "\t").into()),
        ("pandas/nodes.csv", pandas.into()),
        ("pandas/edges.csv", "from,to\na,b\nb,c\n".into()),
        ("packed/nodes.csv.gz", gzip(table)),
        ("packed/edges.csv.gz", gzip(links)),
        (
            "torch.npz",
            archive(&[
                ("x", &x),
                ("edge_index", &index),
                ("y", &y),
                ("train_mask", &train),
                ("val_mask", &val),
                ("test_mask", &test),
            ]),
        ),
        (
            "heterophilous.npz",
            archive(&[("node_features", &x), ("node_labels", &y), ("edges", &pairs)]),
        ),
        (
            "benchmark.npz",
            archive(&[
                ("adj_indptr", &indptr),
                ("adj_indices", &indices),
                ("adj_data", &data),
                ("adj_shape", &shape),
                ("attr_indptr", &indptr),
                ("attr_indices", &indices),
                ("attr_data", &data),
                ("attr_shape", &shape),
                ("labels", &y),
            ]),
        ),
        ("snap/email.txt", "# Nodes: 3\n0 1\n1 2\n".into()),
        ("snap/email-labels.txt", "0 x\n1 y\n2 x\n".into()),
        (
            "networkx.graphml",
            "<graphml><key id=\"l\" for=\"node\" attr.name=\"label\" attr.type=\"string\"/><graph \
             edgedefault=\"directed\">\
             <node id=\"a\"><data key=\"l\">x</data></node><node id=\"b\"><data key=\"l\">y</data></node>\
             <node id=\"c\"><data key=\"l\">x</data></node><edge source=\"a\" target=\"b\"/></graph></graphml>"
                .into(),
        ),
        (
            "networkx.json",
            "{\"directed\": true, \"nodes\": [{\"id\": 1, \"label\": \"x\"}, {\"id\": 2, \"label\": \"y\"}, \
             {\"id\": 3, \"label\": \"x\"}], \"links\": [{\"source\": 1, \"target\": 2}]}"
                .into(),
        ),
        ("ogb/raw/num-node-list.csv", "3\n".into()),
        ("ogb/raw/num-edge-list.csv", "2\n".into()),
        ("ogb/raw/edge.csv", "0,1\n1,2\n".into()),
        ("ogb/raw/node-label.csv", "0\n1\n0\n".into()),
        ("ogb/split/time/train.csv", "0\n".into()),
        ("ogb/split/time/valid.csv", "1\n".into()),
        ("ogb/split/time/test.csv", "2\n".into()),
    ];
    files.iter().for_each(|(name, content)| put(name, content));
    let layouts = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path());
    let layouts: Vec<_> = layouts.collect();
    assert!(layouts.len() >= 10, "{layouts:?}");
    for layout in layouts {
        let data = read::load(&layout, &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((data.nodes(), data.classes(), data.labelled()), (3, 2, 3), "{}", layout.display());
        assert!(data.graph().edges() > 0);
    }
}
