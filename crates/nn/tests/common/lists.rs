//! Graphs as lists of neighbours.

use progap_nn::{Neighbours, Propagate};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The neighbours of every node, whose rows are summed or averaged.
pub struct Lists {
    offsets: Vec<u64>,
    ids: Vec<u32>,
    mean: bool,
}

impl Lists {
    pub fn new(nodes: usize, edges: impl Iterator<Item = (u32, u32)>, mean: bool) -> Self {
        let mut lists = vec![vec![]; nodes];
        edges.for_each(|(target, source)| lists[target as usize].push(source));
        let mut offsets = vec![0];
        for list in &lists {
            offsets.push(offsets.last().unwrap() + list.len() as u64);
        }
        Lists { offsets, ids: lists.concat(), mean }
    }

    /// A third of the nodes have no neighbours.
    pub fn random(nodes: usize, mean: bool, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut edges = vec![];
        for target in (0..nodes as u32).filter(|t| t % 3 > 0) {
            for _ in 0..1 + rng.next_u32() % 6 {
                edges.push((target, rng.next_u32() % nodes as u32));
            }
        }
        Lists::new(nodes, edges.into_iter(), mean)
    }

    pub fn neighbours(&self) -> Neighbours<'_> {
        Neighbours::new(self.offsets.len() - 1, &self.offsets, &self.ids).unwrap()
    }

    pub fn edges(&self, mut visit: impl FnMut(usize, usize, f32)) {
        for (target, range) in self.offsets.windows(2).enumerate() {
            let ids = &self.ids[range[0] as usize..range[1] as usize];
            let weight = if self.mean { 1.0 / ids.len() as f32 } else { 1.0 };
            ids.iter().for_each(|&source| visit(target, source as usize, weight));
        }
    }
}

impl Propagate for Lists {
    fn nodes(&self) -> usize {
        self.offsets.len() - 1
    }

    fn forward(&self, width: usize, x: &[f32], out: &mut [f32]) {
        out.fill(0.0);
        self.edges(|target, source, weight| {
            (0..width).for_each(|j| out[target * width + j] += weight * x[source * width + j]);
        });
    }

    fn backward(&self, width: usize, dy: &mut [f32], dx: &mut [f32]) {
        dx.fill(0.0);
        self.edges(|target, source, weight| {
            (0..width).for_each(|j| dx[source * width + j] += weight * dy[target * width + j]);
        });
    }
}
