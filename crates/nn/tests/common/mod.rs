//! Random data and networks for the tests.
#![allow(dead_code)]

pub mod lists;

use std::ops::Range;

use progap_nn::{Architecture, Input, Inputs, Network, Norm, Tensor};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::Deserialize;

/// A tensor as an oracle stores it.
#[derive(Deserialize)]
pub struct Stored {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

pub fn norm_named(name: &str) -> Norm {
    match name {
        "batch" => Norm::Batch,
        "group" => Norm::Group,
        _ => Norm::None,
    }
}

/// The values of a dense matrix that are not zero, as compressed sparse rows.
pub struct Sparse {
    columns: usize,
    offsets: Vec<u64>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl Sparse {
    pub fn new(columns: usize, dense: &[f32]) -> Self {
        let mut sparse = Sparse { columns, offsets: vec![0], indices: vec![], values: vec![] };
        for row in dense.chunks(columns) {
            for (column, &value) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                sparse.indices.push(column as u32);
                sparse.values.push(value);
            }
            sparse.offsets.push(sparse.indices.len() as u64);
        }
        sparse
    }

    pub fn input(&self) -> Input<'_> {
        let Sparse { columns, offsets, indices, values } = self;
        Input::Sparse { columns: *columns, offsets, indices, values: Some(values) }
    }
}

/// Relative to the largest of the expected values.
pub fn assert_close(what: &str, found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1e-3f32, |m, v| m.max(v.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!(
            (a - b).abs() <= tolerance * scale,
            "{what}, value {i}: {a} instead of {b} (largest {scale})"
        );
    }
}

/// Where the tensors of a state lie in a list over all parameters.
pub fn places(state: &[Tensor<'_>]) -> Vec<(String, Range<usize>)> {
    let mut end = 0;
    let parameters = state.iter().filter(|t| !t.name.contains("running"));
    let place = parameters.map(|t| {
        let start = end;
        end += t.values.len();
        (t.name.to_string(), start..end)
    });
    place.collect()
}

/// Compares the derivative along the gradient, and along each tensor's part of it, with the difference of losses: an
/// error in one tensor is not hidden by the others. `loss` is given parameters.
pub fn check_gradient(
    label: &str,
    exact: &[f32],
    places: &[(String, Range<usize>)],
    start: &[f32],
    mut loss: impl FnMut(&[f32]) -> f64,
) {
    let length = |values: &[f32]| values.iter().map(|g| g * g).sum::<f32>().sqrt();
    let norm = length(exact);
    assert_eq!(places.last().map(|(_, place)| place.end), Some(exact.len()));
    let whole = ("all".to_string(), 0..exact.len());
    for (name, part) in std::iter::once(&whole).chain(places) {
        let own = length(&exact[part.clone()]);
        if own < 0.02 * norm {
            continue;
        }
        // Small enough for the kinks of SELU and of the maximum (larger steps miss by more, the larger they are), large
        // enough for single precision.
        let step = 2e-4;
        let mut at = |sign: f32| {
            let mut moved = start.to_vec();
            for i in part.clone() {
                moved[i] += sign * step * exact[i] / own;
            }
            loss(&moved)
        };
        let found = (at(1.0) - at(-1.0)) / (2.0 * f64::from(step));
        let error = (found - f64::from(own)).abs();
        assert!(error < f64::from(0.01 * own + 3e-3 * norm), "{label} {name}: {found} {own}");
    }
}

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
