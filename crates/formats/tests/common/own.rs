//! Tables as people have them, read from text.

use progap_formats::read::{Described, LoadOptions, describe, table};
use progap_graph::{Dataset, Error};

pub fn read_with(nodes: &str, options: &LoadOptions) -> Result<Dataset, Error> {
    let edges = "source,target\n";
    table::read_bytes(("nodes.csv", nodes.as_bytes()), ("edges.csv", edges.as_bytes()), options)
}

pub fn read(nodes: &str) -> Dataset {
    read_with(nodes, &LoadOptions::default()).unwrap()
}

pub fn described(nodes: &str) -> Described {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("nodes.csv"), nodes).unwrap();
    std::fs::write(folder.path().join("edges.csv"), "source,target\n").unwrap();
    describe(folder.path(), &LoadOptions::default()).unwrap()
}
