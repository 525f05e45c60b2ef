//! One array of an archive whose zip layer is right: the first byte says which, the rest is the array. The
//! others are those of a small data set.
#![no_main]

use std::io::{Cursor, Write};

use libfuzzer_sys::fuzz_target;
use progap_graph::read::npz;
use zip::CompressionMethod::Stored;
use zip::write::{SimpleFileOptions, ZipWriter};

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

fuzz_target!(|content: &[u8]| {
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
});
