//! An adjacency matrix as `scipy.sparse.save_npz` writes it.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use progap_graph::read::npz;

fuzz_target!(|content: &[u8]| {
    let _ = npz::read_adjacency_from(Cursor::new(content));
});
