//! Predictions from a release: no graph, and no further budget.

use std::path::Path;

use progap::{Edge, Release};

fn main() -> progap::Result<()> {
    let data = progap::load("demo")?;
    progap::train(&data, Edge::epsilon(1.0)).into_folder("release")?;

    // Elsewhere, or later: the folder is all that is needed.
    let release = Release::open(Path::new("release"))?;
    let some = release.predict_nodes(&[7, 9])?;
    let classes = some.probabilities.len() / some.nodes.len();
    for (node, row) in some.nodes.iter().zip(some.probabilities.chunks_exact(classes)) {
        println!("node {node}: {row:.2?}");
    }
    println!("{} nodes in all", release.predict()?.nodes.len());
    Ok(())
}
