//! From a graph to private predictions: load, train, predict.
//!
//! `cargo run --release -p progap --example quickstart`, with a folder of your own as argument.

use progap::Edge;

fn main() -> progap::Result<()> {
    let graph = std::env::args().nth(1).unwrap_or_else(|| "demo".into());
    let data = progap::load(graph)?;

    let release = progap::train(&data, Edge::epsilon(1.0)).into_folder("release")?;
    println!("{}", release.guarantee());
    println!("test accuracy {:.1} %", 100.0 * release.metrics.test_accuracy);

    // Predictions need the release alone: no graph, and no further budget.
    let predictions = release.predict()?;
    for (node, class) in predictions.nodes.iter().zip(&predictions.classes).take(5) {
        println!("{} is {}", data.node_ids().name(*node as usize), data.class_names()[*class as usize]);
    }
    Ok(())
}
