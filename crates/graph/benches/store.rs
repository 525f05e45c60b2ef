//! Opening our own format beside the machine's limit: reading the file's bytes.
//!
//! `cargo bench -p progap-graph --bench store` runs at the size of the paper's largest graph (1.1 M nodes, 85 M
//! directed edges, three one-hot features a node). The file is opened by a process of its own, so that its peak
//! memory is that of loading alone.

mod common;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use progap_graph::{Dataset, DatasetParts, Features, store};

const ONE_HOT: usize = 3;

fn main() {
    if let Some(path) = std::env::var_os("PROGAP_BENCH_OPEN") {
        return open(Path::new(&path));
    }
    let nodes = common::option("--nodes").unwrap_or(1_100_000);
    let edges = common::option("--edges").unwrap_or(85_000_000);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("graph.progap");
    let own_size = {
        let dataset = dataset(nodes, edges);
        let start = Instant::now();
        store::write(&dataset, &path).expect("written");
        println!("{nodes} nodes, {edges} directed edges: written in {:.2} s", start.elapsed().as_secs_f64());
        4 * edges + 8 * nodes + dataset.features().bytes()
    };

    let (mut reading, mut opening, mut peak) = (f64::INFINITY, f64::INFINITY, 0);
    for _ in 0..5 {
        let start = Instant::now();
        read_bytes(&path);
        reading = reading.min(start.elapsed().as_secs_f64());
        let child = std::process::Command::new(std::env::current_exe().expect("this program"))
            .env("PROGAP_BENCH_OPEN", &path)
            .output()
            .expect("a child process");
        let output = String::from_utf8_lossy(&child.stdout).into_owned();
        let mut words = output.split_whitespace();
        opening = opening.min(words.next().and_then(|w| w.parse().ok()).expect("seconds"));
        peak = words.next().and_then(|w| w.parse::<usize>().ok()).expect("bytes").max(peak);
    }
    println!("reading the file's bytes (page cache)  {reading:.3} s");
    println!("opening and verifying it               {opening:.3} s");
    println!("graph's own size                       {:.1} MiB", own_size as f64 / f64::from(1 << 20));
    println!("peak memory of the process             {:.1} MiB", peak as f64 / f64::from(1 << 20));
    println!();
    common::check_at_most("opening / reading", opening / reading, 2.0);
    common::check_at_most("peak memory / own size", peak as f64 / own_size as f64, 1.15);
}

/// Opens the file and prints the seconds it took and the peak memory of this process.
fn open(path: &Path) {
    let start = Instant::now();
    let dataset = store::open(path).expect("opened");
    println!("{} {}", start.elapsed().as_secs_f64(), common::peak_memory());
    std::hint::black_box(dataset);
}

/// The least that any program must do: copy the bytes out of the page cache.
fn read_bytes(path: &Path) {
    let mut file = File::open(path).expect("opened");
    let mut block = vec![0u8; 1 << 20];
    while file.read(&mut block).expect("read") > 0 {
        std::hint::black_box(&block);
    }
}

fn dataset(nodes: usize, edges: usize) -> Dataset {
    let indices = (0..nodes * ONE_HOT).map(|k| (k % ONE_HOT * 100 + k % 97) as u32).collect::<Vec<_>>();
    let offsets = (0..=nodes).map(|row| (row * ONE_HOT) as u64).collect::<Vec<_>>();
    Dataset::new(DatasetParts::of(
        "benchmark",
        common::uniform_graph(nodes, edges, nodes),
        Features::sparse(nodes, 100 * ONE_HOT, offsets, indices, None).expect("one-hot features"),
        (0..nodes).map(|node| node as u32 % 6).collect::<Vec<_>>(),
        (0..6).map(|class| class.to_string()).collect(),
    ))
    .expect("a data set")
}
