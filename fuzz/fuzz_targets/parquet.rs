//! Parquet tables, of nodes and of edges.
//!
//! The Parquet library asserts what damaged files may violate; the reader catches that. libFuzzer's hook would
//! end the process before anything can be caught, so it is replaced. What the reader does not catch still ends
//! the run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use progap_graph::read::{LoadOptions, table};

fuzz_target!(
    init: std::panic::set_hook(Box::new(|panic| {
        if !table::catches_panics() {
            eprintln!("{panic}");
            std::process::abort();
        }
    })),
    |content: &[u8]| {
        let options = LoadOptions::default();
        let (nodes, edges) = ("nodes.parquet", "edges.parquet");
        let _ = table::read_bytes((nodes, content), ("edges.csv", b"source,target\n"), &options);
        let _ = table::read_bytes(("nodes.csv", b"id,label\n1,a\n2,b\n3,a\n"), (edges, content), &options);
    }
);
