//! Files of graphs.

use std::io::{Cursor, Write};

use progap_formats::read::encoding::Encoding;
use progap_formats::read::facebook100::{Recipe, School, prepare_school};
use progap_formats::read::ogbn::{Tables, read_tables};
use progap_formats::read::table::{self, LaterOptions, LaterTable};
use progap_formats::read::{LoadOptions, edge_list, graphml, node_link, npz};
use progap_graph::{Preparation, store};
use zip::CompressionMethod::Stored;
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::{Target, contents};

#[path = "../../graph/tests/common/repair.rs"]
mod repair;

const NPZ: &str = "crates/formats/tests/data/npz";
const TABLES: &str = "crates/formats/tests/data/tables";

/// The targets of this file.
pub fn targets() -> Vec<Target> {
    let parquet = || {
        let names = ["none", "snappy", "zstd", "gzip", "lz4", "brotli"]
            .map(|codec| format!("{TABLES}/codec-{codec}"));
        contents(&names.each_ref().map(String::as_str))
    };
    let of_csv = || {
        let parts = contents(&[&format!("{TABLES}/csv")]);
        let joined = [&parts[1][..], &[0], &parts[0]].concat();
        [contents(&["fuzz/corpus/csv"]), vec![joined]].concat()
    };
    let packed = || contents(&[&format!("{TABLES}/csv-gz"), &format!("{TABLES}/csv-zst")]);
    vec![
        Target { name: "store", run: run_store, seeds: of_store, weight: 200 },
        Target { name: "store_repaired", run: store_repaired, seeds: of_store, weight: 200 },
        Target { name: "parts", run: run_parts, seeds: || contents(&["fuzz/corpus/parts"]), weight: 500 },
        Target { name: "npz", run: run_npz, seeds: || contents(&[NPZ]), weight: 300 },
        Target { name: "adjacency", run: adjacency, seeds: || contents(&[NPZ]), weight: 300 },
        Target { name: "npy", run: npy, seeds: || contents(&["fuzz/corpus/npy"]), weight: 500 },
        Target { name: "csv", run: csv, seeds: of_csv, weight: 500 },
        Target { name: "packed_csv", run: packed_csv, seeds: packed, weight: 300 },
        Target { name: "parquet", run: run_parquet, seeds: parquet, weight: 100 },
        Target {
            name: "mat",
            run: mat,
            seeds: || contents(&["crates/formats/tests/data/facebook100"]),
            weight: 300,
        },
        Target { name: "ogbn", run: ogbn, seeds: || contents(&["fuzz/corpus/ogbn"]), weight: 500 },
        Target {
            name: "edge_list",
            run: run_edge_list,
            seeds: || contents(&["fuzz/corpus/edge_list"]),
            weight: 500,
        },
        Target { name: "listed", run: run_listed, seeds: || contents(&["fuzz/corpus/listed"]), weight: 500 },
        Target { name: "pickle", run: run_pickle, seeds: || contents(&["fuzz/corpus/pickle"]), weight: 500 },
        Target {
            name: "graphml",
            run: run_graphml,
            seeds: || contents(&["fuzz/corpus/graphml"]),
            weight: 500,
        },
        Target {
            name: "node_link",
            run: run_node_link,
            seeds: || contents(&["fuzz/corpus/node_link"]),
            weight: 500,
        },
    ]
}

fn of_store() -> Vec<Vec<u8>> {
    contents(&[
        "fuzz/corpus/release/nodes.progap",
        "fuzz/corpus/node/nodes.progap",
        "fuzz/corpus/node/private/rows.progap",
    ])
}

/// Our own format.
pub fn run_store(content: &[u8]) {
    let _ = store::from_bytes(content.to_vec());
}

/// Our own format with right checksums, whatever the sections say: what must be refused for its content.
pub fn store_repaired(content: &[u8]) {
    let mut content = content.to_vec();
    repair::checksums(&mut content);
    let _ = store::from_bytes(content);
}

/// The manifest of a folder of parts.
pub fn run_parts(content: &[u8]) {
    let _ = store::check_manifest(content);
}

/// Archives of arrays.
pub fn run_npz(content: &[u8]) {
    let _ = npz::read_from(Cursor::new(content));
}

/// Adjacency matrices of SciPy.
pub fn adjacency(content: &[u8]) {
    let _ = npz::read_adjacency_from(Cursor::new(content));
}

/// Tables of nodes and edges as text, a zero byte between them.
pub fn csv(content: &[u8]) {
    let mut parts = content.splitn(2, |&byte| byte == 0);
    let nodes = parts.next().unwrap_or_default();
    let edges = parts.next().unwrap_or(b"source,target\n");
    let tab = nodes.split(|&byte| byte == b'\n').next().is_some_and(|header| header.contains(&b'\t'));
    let ending = if tab { "tsv" } else { "csv" };
    let (node_name, edge_name) = (format!("nodes.{ending}"), format!("edges.{ending}"));
    if let Ok(dataset) = table::read_bytes((&node_name, nodes), (&edge_name, edges), &LoadOptions::default())
    {
        // Whatever was read can be brought to scale, in either way.
        for how in [Preparation::Standardise, Preparation::RowByRow] {
            let like =
                dataset.clone().prepared(how).expect("what was read is finite, and so is what becomes of it");
            let schema = table::Schema::of(&like).expect("the parts of a data set fit together");
            // And any table can be read as if it came later: the same, or whatever stands for edges.
            for later in [nodes, edges] {
                let options = LaterOptions { lenient: later == edges, ..LaterOptions::default() };
                let _ = table::read_new_nodes(LaterTable::Csv(later), &schema, &options);
            }
        }
    }
}

/// An edge list and a list of labels, a zero byte between them, in any encoding and with or without a header.
pub fn run_edge_list(content: &[u8]) {
    let mut parts = content.splitn(2, |&byte| byte == 0);
    let edges = parts.next().unwrap_or_default();
    let labels = parts.next().unwrap_or(b"0 a\n");
    for encoding in [None, Some(Encoding::Latin1), Some(Encoding::Utf16)] {
        for header in [None, Some(true), Some(false)] {
            let options = LoadOptions { encoding, header, ..LoadOptions::default() };
            let _ = edge_list::read_bytes(edges, labels, &options);
        }
    }
}

/// A list of the features of each node, as JSON or as rows.
pub fn run_listed(content: &[u8]) {
    for json in [true, false] {
        let _ = table::read_listed(content, json);
    }
}

/// A pickled matrix; what is read of it makes an archive with its arrays.
pub fn run_pickle(content: &[u8]) {
    if let Some(mut arrays) = npz::unpickled(content) {
        let header = "{'descr': '|i1', 'fortran_order': False, 'shape': (5,), }\n";
        let labels =
            [b"\x93NUMPY\x01\x00", &[header.len() as u8, 0][..], header.as_bytes(), &[0, 1, 0, 1, 0]];
        arrays.push(("labels", labels.concat()));
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(Stored);
        for (name, bytes) in arrays {
            let prefix = if name == "labels" { "" } else { "adj_" };
            zip.start_file(format!("{prefix}{name}.npy"), options).expect("a name");
            zip.write_all(&bytes).expect("written to memory");
        }
        let _ = npz::read_from(zip.finish().expect("an archive"));
    }
}

/// Node-link JSON.
pub fn run_node_link(content: &[u8]) {
    let _ = node_link::read_text(&String::from_utf8_lossy(content), &LoadOptions::default());
}

/// GraphML.
pub fn run_graphml(content: &[u8]) {
    let _ = graphml::read_text(&String::from_utf8_lossy(content), &LoadOptions::default());
}

/// Compressed tables.
pub fn packed_csv(content: &[u8]) {
    let name = if content.starts_with(&[0x1f, 0x8b]) { "nodes.csv.gz" } else { "nodes.csv.zst" };
    let edges = ("edges.csv", b"source,target\n".as_slice());
    let _ = table::read_bytes((name, content), edges, &LoadOptions::default());
}

/// Tables as Parquet.
pub fn run_parquet(content: &[u8]) {
    let options = LoadOptions::default();
    let (nodes, edges) = ("nodes.parquet", "edges.parquet");
    let _ = table::read_bytes((nodes, content), ("edges.csv", b"source,target\n"), &options);
    let _ = table::read_bytes(("nodes.csv", b"id,label\n1,a\n2,b\n3,a\n"), (edges, content), &options);
}

/// A school of Facebook100, as MATLAB v5 file.
pub fn mat(content: &[u8]) {
    if let Ok(school) = School::parse(content) {
        let recipe = Recipe { min_class_count: Some(1), ..Recipe::one_school() };
        let _ = prepare_school("school", school, &recipe);
    }
}

/// The tables of ogbn-products, one after the other with zero bytes between them.
pub fn ogbn(content: &[u8]) {
    let mut tables = content.split(|&byte| byte == 0);
    let mut next = || tables.next().unwrap_or_default();
    let _ = read_tables(Tables {
        num_nodes: next(),
        num_edges: next(),
        edges: next(),
        labels: next(),
        features: next(),
    });
}

const KEYS: [&str; 16] = [
    "y",
    "x",
    "edge_index",
    "train_mask",
    "val_mask",
    "test_mask",
    "class_names",
    "feature_names",
    "node_ids",
    "undirected",
    "adj_indptr",
    "adj_indices",
    "adj_data",
    "x_indptr",
    "x_indices",
    "x_shape",
];

/// One array of an archive whose zip layer is right: the first byte says which, the rest is the array. The others are
/// those of a small data set.
pub fn npy(content: &[u8]) {
    let Some((&choice, array)) = content.split_first() else { return };
    let chosen = KEYS[choice as usize % KEYS.len()];
    let numbers = |shape: &str, values: &[i64]| {
        let header = format!("{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = (header.len() as u16).to_le_bytes();
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), &bytes].concat()
    };
    // The parts of sparse rows belong together; with one of them chosen, the others are there too.
    let sparse = |prefix: &str| chosen.starts_with(prefix);
    let mut arrays = vec![("y", numbers("(3,)", &[0, 1, 0]))];
    if sparse("adj_") {
        arrays.push(("adj_indptr", numbers("(4,)", &[0, 1, 2, 2])));
        arrays.push(("adj_indices", numbers("(2,)", &[1, 0])));
    } else {
        arrays.push(("edge_index", numbers("(2, 2)", &[0, 1, 1, 2])));
    }
    if sparse("x_") {
        arrays.push(("x_indptr", numbers("(4,)", &[0, 1, 2, 2])));
        arrays.push(("x_indices", numbers("(2,)", &[1, 0])));
        arrays.push(("x_shape", numbers("(2,)", &[3, 2])));
    } else {
        arrays.push(("x", numbers("(3, 2)", &[1, 2, 3, 4, 5, 6])));
    }
    arrays.retain(|(key, _)| *key != chosen);
    arrays.push((chosen, array.to_vec()));

    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(Stored);
    for (key, bytes) in arrays {
        zip.start_file(format!("{key}.npy"), options).expect("a name");
        zip.write_all(&bytes).expect("written to memory");
    }
    let _ = npz::read_from(zip.finish().expect("an archive"));
}
