//! Random data and networks for the tests.
#![allow(dead_code)]

use progap_nn::{Architecture, Input, Inputs, Network};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A sparse input (with values, and with an empty row now and then) and two dense ones.
pub struct Data {
    pub columns: Vec<usize>,
    offsets: Vec<u64>,
    indices: Vec<u32>,
    values: Vec<f32>,
    pub dense: Vec<Vec<f32>>,
    pub labels: Vec<u32>,
}

impl Data {
    pub fn new(rows: usize, columns: [usize; 3], classes: u32, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut offsets, mut indices, mut values) = (vec![0], vec![], vec![]);
        for _ in 0..rows {
            for column in 0..columns[0] {
                if rng.next_u32() % columns[0] as u32 <= 2 {
                    indices.push(column as u32);
                    values.push(0.5 + (rng.next_u32() % 3) as f32 * 0.5);
                }
            }
            offsets.push(indices.len() as u64);
        }
        let mut dense = |n: usize| (0..rows * n).map(|_| uniform(&mut rng)).collect();
        let dense = vec![dense(columns[1]), dense(columns[2])];
        let labels = (0..rows).map(|_| rng.next_u32() % classes).collect();
        Data { columns: columns.to_vec(), offsets, indices, values, dense, labels }
    }

    pub fn inputs(&self) -> Inputs<'_> {
        let Data { columns, offsets, indices, values, dense, .. } = self;
        Inputs::new(vec![
            Input::Sparse { columns: columns[0], offsets, indices, values: Some(values) },
            Input::Dense { columns: columns[1], values: &dense[0] },
            Input::Dense { columns: columns[2], values: &dense[1] },
        ])
        .unwrap()
    }

    pub fn rows(&self) -> Vec<u32> {
        (0..self.labels.len() as u32).collect()
    }
}

/// Uniform in -1..1.
pub fn uniform(rng: &mut Xoshiro256PlusPlus) -> f32 {
    (rng.next_u64() >> 40) as f32 / 8_388_608.0 - 1.0
}

/// A network with no parameter at a special value.
pub fn network(architecture: Architecture, seed: u64) -> Network {
    let mut network = Network::new(architecture, seed).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ 77);
    for value in network.parameters_mut() {
        *value += 0.3 * uniform(&mut rng);
    }
    network
}

pub fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}
