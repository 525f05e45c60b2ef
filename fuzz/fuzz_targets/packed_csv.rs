//! Node tables that are packed, with gzip or Zstandard as their first bytes say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use progap_graph::read::{LoadOptions, table};

fuzz_target!(|content: &[u8]| {
    let name = if content.starts_with(&[0x1f, 0x8b]) { "nodes.csv.gz" } else { "nodes.csv.zst" };
    let edges = ("edges.csv", b"source,target\n".as_slice());
    let _ = table::read_bytes((name, content), edges, &LoadOptions::default());
});
