//! Shared by the benchmarks.
#![allow(dead_code, reason = "every benchmark uses its own part of this")]

use progap_graph::{Graph, GraphBuilder};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The number after an option on the command line.
pub fn option(name: &str) -> Option<usize> {
    let mut words = std::env::args().skip_while(|word| word != name);
    words.next()?;
    words.next()?.parse().ok()
}

/// Says whether a ratio reaches its goal.
pub fn check_at_least(what: &str, ratio: f64, goal: f64) {
    println!("{what:<36} {ratio:5.2}  (goal: at least {goal}, {})", verdict(ratio >= goal));
}

/// Says whether a ratio stays below its goal.
pub fn check_at_most(what: &str, ratio: f64, goal: f64) {
    println!("{what:<36} {ratio:5.2}  (goal: at most {goal}, {})", verdict(ratio <= goal));
}

fn verdict(reached: bool) -> &'static str {
    if reached { "reached" } else { "MISSED" }
}

/// The peak memory of this process, in bytes.
pub fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).unwrap_or(0) * 1024
}

/// Uniform senders within groups of `group` consecutive nodes.
pub fn uniform_graph(nodes: usize, edges: usize, group: usize) -> Graph {
    let replay = |visit: &mut dyn FnMut(u32, u32)| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for edge in 0..edges {
            let target = edge * nodes / edges;
            let first = target / group * group;
            let size = group.min(nodes - first) as u64;
            let source = first as u64 + ((u64::from(rng.next_u32()) * size) >> 32);
            visit(source as u32, target as u32);
        }
    };
    let mut builder = GraphBuilder::new(nodes).expect("few enough nodes");
    replay(&mut |source, target| builder.count(source, target).expect("a node"));
    let mut filler = builder.fill().expect("room");
    replay(&mut |source, target| filler.place(source, target));
    filler.finish().expect("a graph")
}
