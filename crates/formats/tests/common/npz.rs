//! Archives made by hand, and those made by NumPy with what they hold.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use progap_graph::{Dataset, Part};
use serde_json::Value;
use zip::write::{SimpleFileOptions, ZipWriter};

/// A file that `scripts/oracle/npz.py` made.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/npz").join(name)
}

/// The content of the files of `scripts/oracle/npz.py`.
pub fn expected() -> Value {
    serde_json::from_str(&std::fs::read_to_string(fixture("expected.json")).unwrap()).unwrap()
}

/// The edges in the order in which Python lists them.
pub fn sorted_edges(dataset: &Dataset) -> Vec<(u32, u32)> {
    let mut edges: Vec<_> = dataset.graph().iter_edges().collect();
    edges.sort_unstable();
    edges
}

/// Compares a data set with what Python says about it.
pub fn assert_is(dataset: &Dataset, expected: &Value, name: &str) {
    let list = |key: &str| expected[key].as_array();
    let edges: Vec<(u32, u32)> = serde_json::from_value(expected["edges"].clone()).unwrap();
    assert_eq!(sorted_edges(dataset), edges, "{name}");
    let x: Vec<Vec<f32>> = serde_json::from_value(expected["x"].clone()).unwrap();
    assert_eq!(dataset.features().to_dense(dataset.nodes()), x.concat(), "{name}");
    let y: Vec<u32> = serde_json::from_value(expected["y"].clone()).unwrap();
    assert_eq!(dataset.labels(), y, "{name}");
    for (key, part) in [("train", Part::Train), ("val", Part::Val), ("test", Part::Test)] {
        let nodes = dataset.split().map(|split| split.nodes(part).collect::<Vec<_>>());
        let expected = list(key).map(|nodes| nodes.iter().map(|n| n.as_u64().unwrap() as usize).collect());
        assert_eq!(nodes, expected, "{name} {key}");
    }
    let texts = |key: &str, default: Vec<String>| match list(key) {
        Some(texts) => texts.iter().map(|t| t.as_str().map_or_else(|| t.to_string(), String::from)).collect(),
        None => default,
    };
    let numbers = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
    assert_eq!(dataset.class_names(), texts("class_names", numbers(dataset.classes())), "{name}");
    assert_eq!(dataset.feature_names(), texts("feature_names", vec![]), "{name}");
    let ids: Vec<String> = (0..dataset.nodes()).map(|n| dataset.node_ids().name(n)).collect();
    assert_eq!(ids, texts("node_ids", numbers(dataset.nodes())), "{name}");
}

/// The bytes of an array; the type and shape are put in as they are.
pub fn array(descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let descr = if descr.starts_with('[') { descr.to_string() } else { format!("'{descr}'") };
    let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), values].concat()
}

/// An array of 64-bit whole numbers in one dimension.
pub fn integers(values: &[i64]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    array("<i8", &format!("({},)", values.len()), &bytes)
}

/// An array of 64-bit decimal numbers.
pub fn floats(shape: &str, values: &[f64]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    array("<f8", shape, &bytes)
}

/// A deflated archive of arrays.
pub fn archive(arrays: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (key, bytes) in arrays {
        zip.start_file(format!("{key}.npy"), SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}
