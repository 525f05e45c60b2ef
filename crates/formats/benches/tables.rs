//! How fast tables are read: `cargo bench -p progap-graph --bench tables [-- EDGES]`.
//!
//! Rates are given by the clock and, for machines that do other work as well, by the processor time of the
//! reading thread. Beside them stands the rate at which the same file's bytes are merely read, and the growth
//! of memory as a multiple of the graph: full in the first row, while later rows also use memory that the
//! allocator kept.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

use progap_formats::read::{LoadOptions, ogbn, table};
use progap_formats::write::table::{TableFormat, write_folder};
use progap_graph::{Buffer, Dataset, DatasetParts, Features, Graph, NodeIds};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let edges: usize = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(5_000_000);
    let nodes = (edges / 50).max(2);
    println!("{nodes} nodes, {edges} edges");
    println!("ids        format    M edges/s  (processor)  read only     MB  peak/graph");
    let ids = [
        ("position", NodeIds::Position),
        ("scattered", NodeIds::from_integers((0..nodes as i64).map(|i| i * 1_000_003 % (1 << 40)).collect())),
        ("text", NodeIds::from_texts((0..nodes).map(|i| format!("user-{i}")))),
    ];
    for (name, ids) in ids {
        let folder = tempfile::tempdir()?;
        let dataset = random(nodes, edges, ids)?;
        for format in TableFormat::ALL {
            write_folder(&dataset, folder.path(), format)?;
            let path = folder.path().join(format!("edges.{}", format.ending()));
            let (bytes, reading) = read_only(&path)?;
            reset_peak();
            let before = memory("VmRSS:");
            let (start, processor) = (Instant::now(), processor_seconds());
            let read = table::read_folder(folder.path(), &LoadOptions::default())?;
            let seconds = start.elapsed().as_secs_f64();
            let processor = processor_seconds() - processor;
            let peak = memory("VmHWM:").saturating_sub(before) as f64 / read.bytes() as f64;
            assert_eq!(read.graph(), dataset.graph());
            let rate = |seconds: f64| edges as f64 / seconds / 1e6;
            let megabytes = bytes / 1_000_000;
            println!(
                "{name:10} {:9} {:9.1}  {:11.1} {:10.1}  {megabytes:5}  {peak:10.2}",
                format.ending(),
                rate(seconds),
                rate(processor),
                rate(reading)
            );
            fs::remove_dir_all(folder.path())?;
        }
    }
    wide_table(nodes)?;
    packed_tables(nodes, edges)
}

/// A table of fifty columns of numbers and one of names.
fn wide_table(nodes: usize) -> Result<(), Box<dyn std::error::Error>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    let mut text = String::from("id,label,town");
    (0..50).for_each(|column| text += &format!(",x{column}"));
    for node in 0..nodes {
        text += &format!("\n{node},{},town {}", node % 6, rng.next_u64() % 500);
        (0..50).for_each(|_| text += &format!(",{}", (rng.next_u64() >> 44) as f32 / 4096.0));
    }
    let (start, processor) = (Instant::now(), processor_seconds());
    let nodes_table = ("nodes.csv", text.as_bytes());
    let read = table::read_bytes(nodes_table, ("edges.csv", b"source,target\n"), &LoadOptions::default())?;
    let cells = (nodes * 53) as f64 / 1e6;
    println!(
        "{nodes} x 53 nodes.csv: {:.1} M cells/s ({:.1} by processor time), {} MB as a data set",
        cells / start.elapsed().as_secs_f64(),
        cells / (processor_seconds() - processor),
        read.bytes() / 1_000_000,
    );
    Ok(())
}

/// Packed tables like those of ogbn-products, beside their mere decompression.
fn packed_tables(nodes: usize, edges: usize) -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut below = |limit: usize| rng.next_u64() as usize % limit;
    let write = |name: &str, rows: usize, row: &mut dyn FnMut() -> String| -> std::io::Result<usize> {
        let file = File::create(folder.path().join(format!("{name}.csv.gz")))?;
        let mut packed =
            flate2::write::GzEncoder::new(std::io::BufWriter::new(file), flate2::Compression::new(6));
        let mut bytes = 0;
        for _ in 0..rows {
            let row = row() + "\n";
            packed.write_all(row.as_bytes())?;
            bytes += row.len();
        }
        packed.finish()?.flush()?;
        Ok(bytes)
    };
    write("num-node-list", 1, &mut || nodes.to_string())?;
    write("num-edge-list", 1, &mut || edges.to_string())?;
    write("node-label", nodes, &mut || below(47).to_string())?;
    let of_edges = write("edge", edges, &mut || format!("{},{}", below(nodes), below(nodes)))?;
    let mut value = || ((below(1 << 24) as f32 / (1 << 24) as f32 - 0.5) * 0.3).to_string();
    let of_features =
        write("node-feat", nodes, &mut || (0..100).map(|_| value()).collect::<Vec<_>>().join(","))?;
    let start = Instant::now();
    for name in ["edge", "node-feat"] {
        let file = std::io::BufReader::new(File::open(folder.path().join(format!("{name}.csv.gz")))?);
        std::io::copy(&mut flate2::bufread::MultiGzDecoder::new(file), &mut std::io::sink())?;
    }
    let decompression = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let read = ogbn::read(folder.path())?;
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!((read.nodes(), read.graph().edges()), (nodes, 2 * edges));
    println!(
        "{} MB of packed tables: {:.0} MB/s of text ({:.0} by decompression alone), {} MB as a data set",
        (of_edges + of_features) / 1_000_000,
        (of_edges + of_features) as f64 / 1e6 / seconds,
        (of_edges + of_features) as f64 / 1e6 / decompression,
        read.bytes() / 1_000_000,
    );
    Ok(())
}

/// A random graph; its node table is small beside its edges.
fn random(nodes: usize, edges: usize, node_ids: NodeIds) -> progap_graph::Result<Dataset> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut list = || (0..edges).map(|_| (rng.next_u64() % nodes as u64) as u32).collect::<Vec<u32>>();
    Dataset::new(DatasetParts {
        node_ids,
        ..DatasetParts::of(
            "random",
            Graph::from_edges(nodes, &list(), &list())?,
            Features::none(),
            Buffer::from(vec![0; nodes]),
            vec!["all".into()],
        )
    })
}

fn read_only(path: &Path) -> std::io::Result<(u64, f64)> {
    let start = Instant::now();
    let mut file = File::open(path)?;
    let (mut buffer, mut total) = (vec![0; 1 << 18], 0);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((total, start.elapsed().as_secs_f64())),
            read => total += read as u64,
        }
    }
}

/// Bytes from the kernel's account of this process; 0 where there is none.
fn memory(key: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Time that the main thread has run, from the kernel's account.
fn processor_seconds() -> f64 {
    let account = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    account.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Forgets the highest memory so far, where the kernel allows it.
fn reset_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}
