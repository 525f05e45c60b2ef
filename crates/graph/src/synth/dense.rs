//! Dense features: a point for each class, and each node near the point of its own.

use half::f16;

use super::random::{Purpose, Stream};

/// How far the points are from one another, in deviations of a node from its point and for each column: with 128
/// columns some nodes are told apart and some are not.
const DISTANCE: f64 = 0.1;

/// Replays the row of each node instead of storing it.
pub(super) struct DenseRows {
    seed: u64,
    columns: usize,
    /// The point of each class.
    centres: Vec<f64>,
}

impl DenseRows {
    pub(super) fn new(seed: u64, columns: usize, classes: usize) -> DenseRows {
        let centre = |class: usize| {
            let mut stream = Stream::new(seed, Purpose::Centre, class as u64);
            (0..columns).map(move |_| DISTANCE * stream.bell()).collect::<Vec<_>>()
        };
        DenseRows { seed, columns, centres: (0..classes).flat_map(centre).collect() }
    }

    /// The row of a node of that class.
    pub(super) fn fill(&self, node: usize, class: u32, row: &mut [f16]) {
        let mut stream = Stream::new(self.seed, Purpose::Row, node as u64);
        let centre = &self.centres[class as usize * self.columns..][..self.columns];
        for (value, centre) in row.iter_mut().zip(centre) {
            *value = f16::from_f64(centre + stream.coarse_bell());
        }
    }
}
