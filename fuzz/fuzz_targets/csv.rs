//! Text tables: what comes before the first zero byte is the node table, what follows the edge table.
#![no_main]

use libfuzzer_sys::fuzz_target;
use progap_graph::read::{LoadOptions, table};

fuzz_target!(|content: &[u8]| {
    let mut parts = content.splitn(2, |&byte| byte == 0);
    let nodes = parts.next().unwrap_or_default();
    let edges = parts.next().unwrap_or(b"source,target\n");
    let tab = nodes.split(|&byte| byte == b'\n').next().is_some_and(|header| header.contains(&b'\t'));
    let ending = if tab { "tsv" } else { "csv" };
    let (node_name, edge_name) = (format!("nodes.{ending}"), format!("edges.{ending}"));
    let _ = table::read_bytes((&node_name, nodes), (&edge_name, edges), &LoadOptions::default());
});
