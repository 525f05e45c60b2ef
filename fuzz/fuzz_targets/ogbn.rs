//! The tables of ogbn-products, one after the other with zero bytes between them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use progap_graph::read::ogbn::{Tables, read_tables};

fuzz_target!(|content: &[u8]| {
    let mut tables = content.split(|&byte| byte == 0);
    let mut next = || tables.next().unwrap_or_default();
    let _ = read_tables(Tables {
        num_nodes: next(),
        num_edges: next(),
        edges: next(),
        labels: next(),
        features: next(),
    });
});
