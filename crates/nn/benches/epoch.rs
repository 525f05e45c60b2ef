//! Training epochs beside the machine's limits.
//!
//! `cargo bench -p progap-nn --bench epoch` prints, as the best of several alternating rounds:
//! - one full-batch epoch of stage 3 on a million rows (one sparse input of 537 columns, three dense of width 16),
//!   on one thread and on two; `-- --rows 100000` for another size, `-- --rounds 5` for other rounds
//! - a whole training of stages 0 to 2 at the size of a small graph (14,212 rows, 100 epochs each, accuracy on 1,876
//!   further rows after each)
//! - steps of private training at that size (batches of 256)
//! - one epoch of GAP's two networks at that size, beside the same with norm and activation where ProGAP has them
//! - the rates of fused multiply-adds and of reading memory
//!
//! `-- --only large` (or `full`, `private` or `gap`) measures that part alone.
//!
//! CPU time is what counts, as the machine may be busy. Whether two threads pay is only seen on a quiet machine.

use std::hint::black_box;
use std::time::{Duration, Instant};

use progap_nn::{
    Adam, Architecture, Batch, Input, Inputs, Network, Norm, NormPlacement, Optimiser, Packed, accuracy,
    apply, clipped_sum, epoch,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rustix::time::{ClockId, clock_gettime};

const CLASSES: usize = 6;

fn main() {
    let rows = option("--rows").unwrap_or(1_000_000);
    let rounds = option("--rounds").unwrap_or(5);
    let [one, two] =
        [1, 2].map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).build().expect("a thread pool"));

    let fma = one.install(fused_multiply_adds);
    let read = one.install(bandwidth);
    println!(
        "machine: {:.1} G fused multiply-adds/s (f32), {:.1} GB/s read, one core",
        fma / 1e9,
        read / 1e9
    );

    let only = |part: &str| match std::env::args().skip_while(|arg| arg != "--only").nth(1) {
        Some(wanted) => wanted == part,
        None => true,
    };
    if only("large") {
        large(rows, rounds, [&one, &two]);
    }
    let data = Data::new(16_088, 437, 2);
    let rows: Vec<u32> = (0..16_088).collect();
    let (train, validate) = rows.split_at(14_212);
    println!("14212 rows, sparse 437 + 0, 1, 2 x 16, stages 0 to 2, one thread:");
    let best = |work: &(dyn Fn() + Sync)| {
        (0..rounds).map(|_| one.install(|| time(work)).cpu).fold(f64::INFINITY, f64::min)
    };
    if only("full") {
        let cpu = best(&|| full_batch(&data, train, validate));
        println!("  100 full-batch epochs each, with validation   {cpu:.3} CPU-s");
    }
    if only("private") {
        let cpu = best(&|| private(&data, train));
        println!("  550 private steps each, batches of 256        {cpu:.3} CPU-s");
    }
    if only("gap") {
        one.install(|| gap(&data, train, 40 * rounds));
    }
}

/// One epoch of an encoder of two layers and of a classifier over three messages, in both orders.
fn gap(data: &Data, train: &[u32], rounds: usize) {
    let sparse = data.inputs(1);
    let [first, second] = [0, 1].map(|k| Input::Dense { columns: 16, values: &data.dense[k] });
    let dense = Inputs::new(vec![first, second, first]).expect("sound data");
    for (name, inputs, layers) in [("encoder", &sparse, 2), ("classifier", &dense, 1)] {
        let packed = Packed::new(inputs, &data.labels, train).expect("few rows");
        let columns: Vec<usize> = inputs.as_slice().iter().map(Input::columns).collect();
        let mut runs = [NormPlacement::PerBranch, NormPlacement::AfterJoin].map(|norm_placement| {
            let shape =
                Architecture { layers, norm_placement, ..Architecture::new(columns.clone(), CLASSES) };
            (Network::new(shape, 1).expect("a sound shape"), adam(), f64::INFINITY)
        });
        for step in 0..rounds as u64 {
            for (network, adam, best) in &mut runs {
                let inputs = packed.inputs().expect("sound data");
                let batch = packed.batch(&inputs, CLASSES).expect("sound data");
                *best = best.min(time(|| epoch(network, adam, batch, step).expect("sound data")).cpu);
            }
        }
        let [branch, combination] = runs.map(|(_, _, best)| 1e9 * best / train.len() as f64);
        println!(
            "  GAP's {name}, an epoch: {combination:.1} ns a row; in ProGAP's order {branch:.1} ns a row"
        );
    }
}

fn large(rows: usize, rounds: usize, pools: [&rayon::ThreadPool; 2]) {
    let data = Data::new(rows, 537, 3);
    let inputs = data.inputs(4);
    let all: Vec<u32> = (0..rows as u32).collect();
    let batch = Batch::new(&inputs, &data.labels, &all, CLASSES).expect("sound data");
    let mut best = [Time::MAX; 2];
    for _ in 0..rounds {
        for (best, pool) in best.iter_mut().zip(pools) {
            let mut network = network(vec![537, 16, 16, 16], Norm::Batch);
            let mut adam = adam();
            let time =
                pool.install(|| time(|| epoch(&mut network, &mut adam, batch, 0).expect("sound data")));
            *best = best.min(time);
        }
    }
    println!("stage 3, {rows} rows, sparse 537 + 3 x 16, one epoch:");
    println!("  one thread   {:.3} CPU-s, {:.3} s", best[0].cpu, best[0].wall);
    println!(
        "  two threads  {:.3} CPU-s, {:.3} s: {:.2}x",
        best[1].cpu,
        best[1].wall,
        best[0].wall / best[1].wall
    );
}

fn full_batch(data: &Data, train: &[u32], validate: &[u32]) {
    for stage in 0..3 {
        let inputs = data.inputs(stage + 1);
        let batch = |rows| Batch::new(&inputs, &data.labels, rows, CLASSES).expect("sound data");
        let (train, validate) = (batch(train), batch(validate));
        let columns = inputs.as_slice().iter().map(Input::columns).collect();
        let (mut network, mut adam) = (network(columns, Norm::Batch), adam());
        for step in 0..100 {
            epoch(&mut network, &mut adam, train, step).expect("sound data");
            black_box(accuracy(&network, validate).expect("sound data"));
        }
    }
}

fn private(data: &Data, train: &[u32]) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    for stage in 0..3 {
        let inputs = data.inputs(stage + 1);
        let columns = inputs.as_slice().iter().map(Input::columns).collect();
        let (mut network, mut adam) = (network(columns, Norm::Group), adam());
        for _ in 0..550 {
            let rows: Vec<u32> = (0..256).map(|_| train[rng.next_u32() as usize % train.len()]).collect();
            let batch = Batch::new(&inputs, &data.labels, &rows, CLASSES).expect("sound data");
            let sum = clipped_sum(&network, batch, 1.0).expect("sound data");
            let gradient: Vec<f32> = sum.iter().map(|g| (g / 256.0) as f32).collect();
            apply(&mut network, &mut adam, &gradient).expect("as many values as parameters");
        }
    }
}

fn network(inputs: Vec<usize>, norm: Norm) -> Network {
    Network::new(Architecture { norm, ..Architecture::new(inputs, CLASSES) }, 1).expect("a sound shape")
}

fn adam() -> Optimiser {
    Optimiser::adam(Adam::default()).expect("sound settings")
}

/// One-hot groups with 3 to 5 values a row, and dense messages.
struct Data {
    columns: usize,
    offsets: Vec<u64>,
    indices: Vec<u32>,
    dense: Vec<Vec<f32>>,
    labels: Vec<u32>,
}

impl Data {
    fn new(rows: usize, columns: usize, dense: usize) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let (mut offsets, mut indices) = (vec![0], vec![]);
        for _ in 0..rows {
            let groups = 3 + rng.next_u32() as usize % 3;
            let width = columns / 5;
            indices.extend((0..groups).map(|g| (g * width) as u32 + rng.next_u32() % width as u32));
            offsets.push(indices.len() as u64);
        }
        let mut values = || (0..rows * 16).map(|_| rng.next_u32() as f32 / 2.1e9 - 1.0).collect();
        let dense = (0..dense).map(|_| values()).collect();
        let labels = (0..rows).map(|_| rng.next_u32() % CLASSES as u32).collect();
        Data { columns, offsets, indices, dense, labels }
    }

    fn inputs(&self, branches: usize) -> Inputs<'_> {
        let (offsets, indices) = (&self.offsets, &self.indices);
        let mut inputs = vec![Input::Sparse { columns: self.columns, offsets, indices, values: None }];
        inputs.extend(self.dense.iter().map(|values| Input::Dense { columns: 16, values }));
        inputs.truncate(branches);
        Inputs::new(inputs).expect("sound data")
    }
}

#[derive(Clone, Copy)]
struct Time {
    cpu: f64,
    wall: f64,
}

impl Time {
    const MAX: Time = Time { cpu: f64::INFINITY, wall: f64::INFINITY };

    fn min(self, other: Time) -> Time {
        Time { cpu: self.cpu.min(other.cpu), wall: self.wall.min(other.wall) }
    }
}

fn cpu() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32).as_secs_f64()
}

fn time<T>(work: impl FnOnce() -> T) -> Time {
    let (start, cpu_start) = (Instant::now(), cpu());
    black_box(work());
    Time { cpu: cpu() - cpu_start, wall: start.elapsed().as_secs_f64() }
}

/// Independent chains of multiply-adds, enough to keep both units busy.
struct Chains<'a>(&'a mut [[f32; 16]; 5]);

impl pulp::WithSimd for Chains<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let mut chains = *self.0;
        for _ in 0..2_000_000 {
            for chain in &mut chains {
                for value in chain {
                    *value = value.mul_add(0.999_9, 0.000_1);
                }
            }
        }
        *self.0 = chains;
    }
}

fn fused_multiply_adds() -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let mut chains = black_box([[1.0; 16]; 5]);
        best = best.min(time(|| pulp::Arch::new().dispatch(Chains(&mut chains))).cpu);
        black_box(chains);
    }
    2_000_000.0 * 80.0 / best
}

fn bandwidth() -> f64 {
    let values = vec![1u64; 32 << 20];
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let sum = || {
            values.as_chunks::<8>().0.iter().fold([0u64; 8], |mut s, v| {
                for j in 0..8 {
                    s[j] ^= v[j];
                }
                s
            })
        };
        best = best.min(time(sum).cpu);
    }
    size_of_val(&values[..]) as f64 / best
}

/// The number after a flag.
fn option(flag: &str) -> Option<usize> {
    let mut args = std::env::args().skip_while(|arg| arg != flag);
    args.nth(1).and_then(|value| value.parse().ok())
}
