//! Time and memory of a synthetic social network against its edges: both grow linearly.
//!
//! ```text
//! cargo run --release -p progap-graph --example synth_scale [million edges ...]
//! ```
//!
//! Each size runs in a process of its own, because the peak of the memory is that of a process.

use std::process::{Command, ExitCode};
use std::time::Instant;

use progap_graph::synth::SocialNetwork;

const CHILD: &str = "--measure";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((first, [edges])) if first == CHILD => measure(edges),
        Some(_) => table(&arguments),
        None => table(&["1", "10", "100"].map(String::from)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn table(sizes: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "| asked, M edges | nodes | edges | off by | seconds | CPU s | CPU ns/edge | graph MiB | data set MiB | peak \
         MiB | \
         peak/data set |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for size in sizes {
        let status = Command::new(std::env::current_exe()?).args([CHILD, size]).status()?;
        if !status.success() {
            return Err(format!("the run with {size} million edges failed").into());
        }
    }
    Ok(())
}

fn measure(million_edges: &str) -> Result<(), Box<dyn std::error::Error>> {
    const MEAN_DEGREE: usize = 50;
    const COMMUNITY: usize = 20_000;
    let asked = (million_edges.parse::<f64>()? * 1e6) as usize;
    let nodes = asked / MEAN_DEGREE;
    let start = Instant::now();
    let network = SocialNetwork::new(nodes).edges(asked).communities(nodes.div_ceil(COMMUNITY));
    let data = network.feature_count(400).generate()?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu = cpu_seconds().unwrap_or(f64::NAN);

    let mebibytes = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let edges = data.graph().edges();
    let (graph, whole) = (mebibytes(data.graph().bytes()), mebibytes(data.bytes()));
    let (peak, ratio) = match peak_memory() {
        Some(peak) => (format!("{:.0}", mebibytes(peak)), format!("{:.2}", mebibytes(peak) / whole)),
        None => ("unknown".into(), "unknown".into()),
    };
    println!(
        "| {million_edges} | {nodes} | {edges} | {:+.2} % | {seconds:.2} | {cpu:.2} | {:.0} | {graph:.0} | \
         {whole:.0} | {peak} | \
         {ratio} |",
        (edges as f64 / asked as f64 - 1.0) * 100.0,
        cpu * 1e9 / edges as f64,
    );
    Ok(())
}

/// The processor time of this process so far, where the system tells it: on a busy machine it says more than the
/// clock on the wall.
fn cpu_seconds() -> Option<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name, in parentheses, may hold spaces; user and system time are the 12th and 13th field after it.
    let mut times = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = times.next()?.parse().ok()?;
    let system: f64 = times.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

/// The peak of this process's memory, in bytes, where the system tells it.
fn peak_memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|kibibytes| kibibytes * 1024)
}
