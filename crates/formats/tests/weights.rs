//! Weights of edges, from every format that can hold them.

mod common;

use std::io::Cursor;
use std::path::Path;

use progap_formats::read::npz::NpzOptions;
use progap_formats::read::{self, LoadOptions, edge_list, graphml, node_link, npz, table};
use progap_formats::write;
use progap_formats::write::table::{TableFormat, write_folder};
use progap_graph::{Dataset, EdgeWeights, store};

use common::npz::{archive, array, floats, integers};

const NODES: &str = "id,label,age\na,x,1.5\nb,y,2.5\nc,x,3.5\n";

fn asked(name: &str) -> Option<EdgeWeights> {
    Some(EdgeWeights::new(name, 1.0).expect("a bound"))
}

fn weighted() -> LoadOptions {
    LoadOptions { weights: asked("weight"), ..LoadOptions::default() }
}

/// All edges as (source, target, weight).
fn edges(dataset: &Dataset) -> Vec<(u32, u32, f32)> {
    let weights = dataset.graph().weights().expect("weights");
    dataset
        .graph()
        .iter_edges()
        .zip(weights)
        .map(|((source, target), &weight)| (source, target, weight))
        .collect()
}

fn from_csv(edges: &str, options: &LoadOptions) -> progap_graph::Result<Dataset> {
    table::read_bytes(("nodes.csv", NODES.as_bytes()), ("edges.csv", edges.as_bytes()), options)
}

#[test]
fn a_column_of_an_edge_table_holds_weights_where_they_are_asked_for() {
    let text = "source,target,weight,since\na,b,0.5,2001\nc,b,1,2002\nb,a,0,2003\n";
    let found = from_csv(text, &weighted()).unwrap();
    assert_eq!(edges(&found), [(1, 0, 0.0), (0, 1, 0.5), (2, 1, 1.0)]);
    assert_eq!(from_csv(text, &LoadOptions::default()).unwrap().graph().weights(), None);
    let other = LoadOptions { weights: asked("strength"), ..LoadOptions::default() };
    assert_eq!(edges(&from_csv("source;target;strength\na;b;0,25\n", &other).unwrap()), [(0, 1, 0.25)]);
    // A request for weights gets them, or the reason why not.
    let none = from_csv("source,target\na,b\n", &weighted()).unwrap_err().to_string();
    assert!(none.contains("weights column") && none.contains("source, target"), "{none}");
    assert!(from_csv(text, &other).is_err());
    assert!(from_csv(text, &LoadOptions { weights: asked("source"), ..LoadOptions::default() }).is_err());
}

#[test]
fn what_is_no_weight_is_refused_with_row_and_column() {
    for (cell, what) in [("", "missing"), ("x", "not a number")] {
        let text = format!("source,target,weight\na,b,0.5\nb,c,{cell}\n");
        let error = from_csv(&text, &weighted()).unwrap_err().to_string();
        assert!(error.contains("row 3, column \"weight\"") && error.contains(what), "{error}");
        let list = format!("a b 0.5\nb c {cell}\n");
        let error =
            edge_list::read_bytes(list.as_bytes(), b"a x\nb y\nc x\n", &weighted()).unwrap_err().to_string();
        assert!(error.contains("row 2, column \"weight\""), "{error}");
    }
}

/// Weights are divided by a declared maximum, so that no edge moves the weight of another, and each is clamped by
/// itself.
#[test]
fn one_weight_moves_no_other_and_decides_nothing() {
    let options =
        |bound| LoadOptions { weights: EdgeWeights::new("amount", bound).ok(), ..LoadOptions::default() };
    for (cell, weight) in
        [("10", 0.1), ("1000", 1.0), ("1e400", 1.0), ("inf", 1.0), ("-3", 0.0), ("NaN", 0.0)]
    {
        let text = format!("source,target,amount\na,b,50\nb,c,{cell}\n");
        let found = from_csv(&text, &options(100.0)).unwrap();
        assert_eq!(edges(&found), [(0, 1, 0.5), (1, 2, weight)], "{cell}");
    }
    for bound in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(EdgeWeights::new("amount", bound).is_err_and(|error| error.to_string().contains("above 0")));
    }
    // The bound stays with the data, whatever becomes of them.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("nodes.csv"), NODES).unwrap();
    std::fs::write(folder.path().join("edges.csv"), "source,target,amount\na,b,50\n").unwrap();
    let both = LoadOptions { direction: read::Direction::Symmetrise, ..options(100.0) };
    let data = read::load(folder.path(), &both).unwrap();
    let file = folder.path().join("g.progap");
    store::write(&data, &file).unwrap();
    let kept = read::load(&file, &LoadOptions::default()).unwrap();
    assert_eq!((kept.graph().weight_bound(), edges(&kept)), (Some(100.0), vec![(1, 0, 0.5), (0, 1, 0.5)]));
    let other = read::load(&file, &options(7.0)).unwrap_err().to_string();
    assert!(other.contains("divided by 100 already"), "{other}");
}

#[test]
fn weights_that_are_there_and_not_asked_for_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("nodes.csv"), NODES).unwrap();
    std::fs::write(folder.path().join("edges.csv"), "source,target,weight\na,b,7\n").unwrap();
    let described = read::describe(folder.path(), &LoadOptions::default()).unwrap();
    let report = described.columns.iter().find(|column| column.name == "weight").expect("a report");
    assert_eq!(report.kind, "not used");
    let described = read::describe(folder.path(), &weighted()).unwrap();
    assert_eq!(edges(&described.dataset), [(0, 1, 1.0)], "clamped to the bound");
    std::fs::write(folder.path().join("edges.csv"), "source,target,weight\na,b,0.75\n").unwrap();
    let described = read::describe(folder.path(), &weighted()).unwrap();
    let report = described.columns.iter().find(|column| column.name == "weight").expect("a report");
    assert_eq!((report.kind, report.range), ("weight", Some([0.75, 0.75])));
}

#[test]
fn edge_lists_graphml_and_json_have_weights() {
    let labels = b"a x\nb y\nc x\n";
    let list = b"# from to weight\na b 0.5\nc b 1\n";
    assert_eq!(
        edges(&edge_list::read_bytes(list, labels, &weighted()).unwrap().dataset),
        [(0, 1, 0.5), (2, 1, 1.0)]
    );
    assert_eq!(
        edge_list::read_bytes(list, labels, &LoadOptions::default()).unwrap().dataset.graph().weights(),
        None
    );
    assert!(edge_list::read_bytes(b"a b\nc b 1\n", labels, &weighted()).is_err());

    let xml = r#"<graphml><key id="l" for="node" attr.name="label"/><key id="w" for="edge" attr.name="weight"/>
        <key id="s" for="edge" attr.name="strength"/><graph edgedefault="directed">
        <node id="a"><data key="l">x</data></node><node id="b"><data key="l">y</data></node>
        <edge source="a" target="b"><data key="w">0.5</data><data key="s">0.25</data></edge></graph></graphml>"#;
    assert_eq!(edges(&graphml::read_text(xml, &weighted()).unwrap().dataset), [(0, 1, 0.5)]);
    let strength = LoadOptions { weights: asked("strength"), ..LoadOptions::default() };
    assert_eq!(edges(&graphml::read_text(xml, &strength).unwrap().dataset), [(0, 1, 0.25)]);
    assert_eq!(graphml::read_text(xml, &LoadOptions::default()).unwrap().dataset.graph().weights(), None);
    let undirected = xml.replace("directed\">", "undirected\">");
    let both = graphml::read_text(&undirected, &weighted()).unwrap().dataset;
    assert_eq!(edges(&both), [(1, 0, 0.5), (0, 1, 0.5)], "the edge back has the weight of its edge");

    let json = r#"{"directed": true, "nodes": [{"id": 1, "label": "x"}, {"id": 2, "label": "y"}],
        "links": [{"source": 1, "target": 2, "weight": 0.5}, {"source": 2, "target": 1, "weight": 1}]}"#;
    assert_eq!(edges(&node_link::read_text(json, &weighted()).unwrap().dataset), [(1, 0, 1.0), (0, 1, 0.5)]);
    assert_eq!(node_link::read_text(json, &LoadOptions::default()).unwrap().dataset.graph().weights(), None);
    let above = json.replace("\"weight\": 1", "\"weight\": 3");
    assert_eq!(
        edges(&node_link::read_text(&above, &weighted()).unwrap().dataset),
        [(1, 0, 1.0), (0, 1, 0.5)]
    );
}

/// Written and read again by every format of ours, to the last bit.
#[test]
fn weights_survive_every_format() {
    let text = "source,target,weight\na,b,0.3\nc,b,1\nb,a,0.7\n";
    let dataset = from_csv(text, &weighted()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    store::write(&dataset, &path("g.progap")).unwrap();
    assert_eq!(store::open(&path("g.progap")).unwrap(), dataset);
    assert_eq!(read::load(&path("g.progap"), &weighted()).unwrap().graph(), dataset.graph());
    write::npz::write(&dataset, &path("g.npz")).unwrap();
    assert_eq!(read::load(&path("g.npz"), &weighted()).unwrap().graph(), dataset.graph());
    assert_eq!(read::load(&path("g.npz"), &LoadOptions::default()).unwrap().graph().weights(), None);
    for format in [TableFormat::Csv, TableFormat::Parquet] {
        let tables = path(format.ending());
        write_folder(&dataset, &tables, format).unwrap();
        assert_eq!(read::load(&tables, &weighted()).unwrap().graph(), dataset.graph(), "{format:?}");
    }
    // Other weights are other data.
    let other = from_csv(&text.replace("0.3", "0.4"), &weighted()).unwrap();
    assert_ne!(other.content_fingerprint(), dataset.content_fingerprint());
    let plain = from_csv(text, &LoadOptions::default()).unwrap();
    assert_ne!(plain.content_fingerprint(), dataset.content_fingerprint());
    // Data without weights are refused where weights are asked for.
    store::write(&plain, &path("plain.progap")).unwrap();
    let error = read::load(&path("plain.progap"), &weighted()).unwrap_err().to_string();
    assert!(error.contains("this data has none"), "{error}");
    assert!(progap_formats::named::load("demo", Path::new("nowhere"), &weighted()).is_err());
}

#[test]
fn arrays_hold_weights_beside_a_list_of_edges() {
    let ends: Vec<u8> = [0i64, 2, 1, 1].iter().flat_map(|end| end.to_le_bytes()).collect();
    let (ends, y, x) =
        (array("<i8", "(2, 2)", &ends), integers(&[0, 1, 0]), floats("(3, 1)", &[0.5, 1.5, 2.5]));
    let read = |weights: &[f64], name: &str| {
        let weights = floats(&format!("({},)", weights.len()), weights);
        let arrays: [(&str, &[u8]); 4] =
            [("y", &y), ("x", &x), ("edge_index", &ends), ("edge_weight", &weights)];
        let options = NpzOptions { weights: asked(name), ..NpzOptions::default() };
        npz::read_from_with(Cursor::new(archive(&arrays)), &options)
    };
    assert_eq!(edges(&read(&[0.5, 1.0], "weight").unwrap()), [(0, 1, 0.5), (2, 1, 1.0)]);
    assert_eq!(edges(&read(&[0.5, 1.0], "edge_weight").unwrap()), [(0, 1, 0.5), (2, 1, 1.0)]);
    assert!(read(&[0.5, 1.0], "strength").is_err());
    assert_eq!(edges(&read(&[0.5, 1.5], "weight").unwrap()), [(0, 1, 0.5), (2, 1, 1.0)]);
    assert!(read(&[0.5, 1.0, 1.0], "weight").is_err());
}
