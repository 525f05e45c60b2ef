//! The aggregation kernel beside the machine's limit, the rate of random 64-byte gathers.
//!
//! `cargo bench -p progap-graph --bench aggregate` runs at the size of the paper's largest graph (1.1 M nodes, 85 M
//! directed edges, width 16); `-- --edges 8500000 --nodes 110000` at another. Everything is compared within one
//! run, as ratios: the machine may be busy. Each figure is the best of several alternating rounds.

mod common;

use std::hint::black_box;
use std::time::Instant;

use progap_graph::{Graph, aggregate};

use common::{check_at_least, option, uniform_graph};

const WIDTH: usize = 16;

fn main() {
    let nodes = option("--nodes").unwrap_or(1_100_000);
    let edges = option("--edges").unwrap_or(85_000_000);
    let rounds = option("--rounds").unwrap_or(5);
    println!("{nodes} nodes, {edges} directed edges, width {WIDTH}, best of {rounds} rounds");

    let random = uniform_graph(nodes, edges, nodes);
    let schools = uniform_graph(nodes, edges, nodes / 100);
    let floats = vec![0.5f32; nodes * WIDTH];
    let bytes = vec![3i8; nodes * WIDTH];
    let (mut float_sums, mut byte_sums) = (vec![0f32; nodes * WIDTH], vec![0i32; nodes * WIDTH]);

    let mut best = [f64::INFINITY; 7];
    let pools =
        [1, 2].map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).build().expect("a thread pool"));
    let [one, two] = &pools;
    for _ in 0..rounds {
        let mut time = |slot: usize, pool: &rayon::ThreadPool, work: &mut (dyn FnMut() + Send)| {
            let start = Instant::now();
            pool.install(work);
            best[slot] = best[slot].min(start.elapsed().as_secs_f64());
        };
        time(0, one, &mut || gather(&random, &floats));
        time(1, one, &mut || {
            aggregate::sum(&random, WIDTH, &floats, None, &mut float_sums).expect("sizes fit");
        });
        time(2, one, &mut || {
            aggregate::sum(&random, WIDTH, &bytes, None, &mut byte_sums).expect("sizes fit");
        });
        time(3, one, &mut || {
            aggregate::sum(&schools, WIDTH, &floats, None, &mut float_sums).expect("sizes fit");
        });
        time(4, two, &mut || {
            aggregate::sum(&random, WIDTH, &floats, None, &mut float_sums).expect("sizes fit");
        });
        time(5, two, &mut || {
            aggregate::sum(&random, WIDTH, &bytes, None, &mut byte_sums).expect("sizes fit");
        });
        time(6, one, &mut || {
            aggregate::sum(&schools, WIDTH, &bytes, None, &mut byte_sums).expect("sizes fit");
        });
    }

    let [limit, float, byte, school, float_two, byte_two, school_byte] = best;
    let row = |what: &str, seconds: f64| {
        println!("{what:<44} {seconds:7.3} s  {:6.2} ns/edge", seconds * 1e9 / edges as f64);
    };
    row("limit: random 64-byte gathers, 1 thread", limit);
    row("f32, random graph, 1 thread", float);
    row("i8, random graph, 1 thread", byte);
    row("f32, 100 schools, 1 thread", school);
    row("i8, 100 schools, 1 thread", school_byte);
    row("f32, random graph, 2 threads", float_two);
    row("i8, random graph, 2 threads", byte_two);
    println!();
    check_at_least("f32 kernel rate / gather rate", limit / float, 0.7);
    check_at_least("f32 time / i8 time", float / byte, 1.0);
    check_at_least("random time / schools time (f32)", float / school, 2.0);
    check_at_least("f32, 1 thread / 2 threads", float / float_two, 1.7);
    check_at_least("i8, 1 thread / 2 threads", byte / byte_two, 1.7);
}

/// One whole cache line per edge, added up in registers: what any kernel must at least do on this graph.
fn gather(graph: &Graph, values: &[f32]) {
    let lines = values.as_chunks::<16>().0;
    black_box(pulp::Arch::new().dispatch(Gather { senders: graph.senders(), lines }));
}

struct Gather<'a> {
    senders: &'a [u32],
    lines: &'a [[f32; 16]],
}

impl pulp::WithSimd for Gather<'_> {
    type Output = [[f32; 16]; 2];

    #[inline(always)]
    fn with_simd<V: pulp::Simd>(self, _: V) -> [[f32; 16]; 2] {
        let mut totals = [[0f32; 16]; 2];
        for pair in self.senders.as_chunks::<2>().0 {
            for (total, &j) in totals.iter_mut().zip(pair) {
                let line = &self.lines[j as usize];
                for k in 0..16 {
                    total[k] += line[k];
                }
            }
        }
        totals
    }
}
