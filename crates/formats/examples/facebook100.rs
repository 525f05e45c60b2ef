//! Loads the schools in a folder as one data set and prints what that took:
//! `cargo run --release -p progap-graph --example facebook100 -- FOLDER`

use std::path::PathBuf;
use std::time::Instant;

use progap_formats::read::facebook100::{self, Recipe};

fn main() -> progap_graph::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "data/facebook100".into()));
    let start = Instant::now();
    let paths = facebook100::schools_in(&folder)?;
    let dataset = facebook100::load(&paths, &Recipe::all_schools())?;
    println!(
        "{} schools: {} nodes, {} edges, {} features, classes {:?}",
        paths.len(),
        dataset.nodes(),
        dataset.graph().edges(),
        dataset.features().columns(),
        dataset.class_names()
    );
    println!("{:.2} s, {} MiB held", start.elapsed().as_secs_f64(), dataset.bytes() >> 20);
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        status.lines().filter(|line| line.starts_with("VmHWM")).for_each(|line| println!("{line}"));
    }
    Ok(())
}
