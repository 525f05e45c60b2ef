//! Who is fitted to, who is held out, and which training nodes are left out by which model.

use progap_graph::Part;

use super::candidates::is_table;
use super::{FOLDS, MOST_FITTED};
use crate::mixing::mixed;
use crate::rows::Rows;
use crate::settings::Level;

/// Fewer nodes held out than these choose by chance alone;
const FEW_HELD_OUT: usize = 100;
/// and of a table under noise, where a gain is small and many models are compared, fewer than these. Without noise later
/// sums of a training node have its own label in them, which came back, so that it would choose what reads that.
const FEW_HELD_OUT_OF_TABLE: usize = 2000;

/// Parts of the training nodes, by their places in the list of those that are fitted to; the first of them also choose,
/// each among models that were fitted without it.
#[derive(Clone, Copy)]
pub(super) struct Folds {
    pub count: usize,
    pub choosing: usize,
}

impl Folds {
    pub fn holds(self, fold: usize, place: usize) -> bool {
        place % self.count == fold
    }

    /// The entries of a fold, of a list with an entry for each training node that is fitted to.
    pub fn of(self, fold: usize, list: &[u32]) -> Vec<u32> {
        list.iter().copied().skip(fold).step_by(self.count).collect()
    }

    /// The places of the training nodes that choose, in the order of [`Splits::choosing`], among this many.
    pub fn choosing_places(self, rows: usize) -> Vec<usize> {
        (0..self.choosing).flat_map(|fold| (fold..rows).step_by(self.count)).collect()
    }
}

/// The nodes of a run by what they are used for.
pub(super) struct Splits {
    /// Training nodes that are fitted to, in a seeded order: the fold of one is its place modulo the number of folds.
    pub train: Vec<u32>,
    /// For every node whether it is a training node.
    pub is_train: Vec<bool>,
    /// How many training nodes there are, those included that are not fitted to.
    pub train_nodes: usize,
    /// Nodes whose labels choose between models and are not fitted to.
    pub held_out: Vec<u32>,
    /// All nodes, or a sample of them: what the view of the sums is fitted to.
    pub sample: Vec<u32>,
    /// How many nodes it takes to choose.
    enough: usize,
    seed: u64,
}

impl Splits {
    pub fn new(rows: &Rows, level: Level, seed: u64) -> Splits {
        let table = rows.own().is_ok_and(|own| is_table(own.as_slice()[0].columns(), rows.classes()));
        let enough = if table && level != Level::None { FEW_HELD_OUT_OF_TABLE } else { FEW_HELD_OUT };
        let parts = [rows.nodes(Part::Train), rows.nodes(Part::Val)];
        Splits::of_nodes(parts, rows.labels().len(), enough, seed)
    }

    /// Of training and validation nodes.
    fn of_nodes([mut train, mut held_out]: [Vec<u32>; 2], nodes: usize, enough: usize, seed: u64) -> Splits {
        train.sort_by_cached_key(|&node| (mixed(seed ^ mixed(u64::from(node))), node));
        if held_out.is_empty() {
            held_out = train.split_off((train.len() * 4).div_ceil(5));
        }
        let mut is_train = vec![false; nodes];
        train.iter().for_each(|&node| is_train[node as usize] = true);
        let train_nodes = train.len();
        train.truncate(MOST_FITTED);
        if held_out.len() > MOST_FITTED {
            held_out.sort_by_cached_key(|&node| mixed(seed ^ mixed(u64::from(node))));
            held_out.truncate(MOST_FITTED);
        }
        Splits {
            train,
            is_train,
            train_nodes,
            held_out,
            sample: drawn(nodes, MOST_FITTED, seed),
            enough,
            seed,
        }
    }

    /// The sample, or about so many of its nodes.
    pub fn part(&self, most: usize) -> Vec<u32> {
        match most < self.sample.len() {
            true => drawn(self.is_train.len(), most, self.seed),
            false => self.sample.clone(),
        }
    }

    /// Where few nodes are held out, training nodes choose too: as many of their parts as it takes.
    pub fn folds(&self) -> Folds {
        let train = self.train.len();
        let count = FOLDS.min(train).max(1);
        let enough = train < 2 || self.held_out.len() >= self.enough;
        let choosing = if enough { 0 } else { (count * self.enough).div_ceil(train).min(count) };
        Folds { count, choosing }
    }

    /// Nodes that choose between models, none of which was fitted to them.
    pub fn choosing(&self) -> Vec<u32> {
        let own = self.folds().choosing_places(self.train.len()).into_iter().map(|place| self.train[place]);
        self.held_out.iter().copied().chain(own).collect()
    }

    pub fn labels(rows: &Rows, nodes: &[u32]) -> Vec<u32> {
        nodes.iter().map(|&node| rows.labels()[node as usize]).collect()
    }

    /// The share of each class among the training nodes, none of them zero.
    pub fn priors(&self, rows: &Rows) -> Vec<f64> {
        let mut counts = vec![1.0; rows.classes()];
        self.train.iter().for_each(|&node| counts[rows.labels()[node as usize] as usize] += 1.0);
        let total: f64 = counts.iter().sum();
        counts.iter_mut().for_each(|count| *count /= total);
        counts
    }
}

/// All nodes, or about `most` of them: every node by itself is drawn or not, as its number says; public, as rows are.
fn drawn(nodes: usize, most: usize, seed: u64) -> Vec<u32> {
    let chosen = |node: &u32| {
        let draw = u128::from(mixed(seed ^ mixed(u64::from(*node) ^ u64::MAX)));
        nodes <= most || (draw * nodes as u128) >> 64 < most as u128
    };
    (0..nodes as u32).filter(chosen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splits(train: u32, val: u32) -> Splits {
        let parts = [(0..train).collect(), (train..train + val).collect()];
        Splits::of_nodes(parts, 10_000, FEW_HELD_OUT, 7)
    }

    #[test]
    fn nodes_choose_only_among_models_that_were_fitted_without_them() {
        for (train, val) in
            [(1, 0), (2, 0), (4, 0), (5, 0), (7, 0), (60, 0), (60, 3), (3000, 20), (3000, 500)]
        {
            let splits = splits(train, val);
            let (folds, choosing) = (splits.folds(), splits.choosing());
            assert_eq!(splits.train.len() + splits.held_out.len(), (train + val) as usize);
            assert!(splits.held_out.iter().all(|&node| !splits.is_train[node as usize]), "{train} {val}");
            let mut once = choosing.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), choosing.len(), "{train} {val}");
            let own: Vec<u32> = (0..folds.choosing).flat_map(|fold| folds.of(fold, &splits.train)).collect();
            assert_eq!(choosing, [&splits.held_out[..], &own].concat(), "in the order of held out and folds");
            for fold in 0..folds.choosing {
                let fitted = (0..splits.train.len()).filter(|&place| !folds.holds(fold, place)).count();
                assert!(fitted > 0 && fitted + folds.of(fold, &splits.train).len() == splits.train.len());
            }
        }
    }

    #[test]
    fn training_nodes_choose_where_few_are_held_out_and_only_as_many_as_it_takes() {
        let choosing = |train, val| splits(train, val).folds().choosing;
        assert_eq!([choosing(1, 0), choosing(60, 15), choosing(60, 500), choosing(3000, 0)], [0, 5, 0, 0]);
        assert_eq!((choosing(3000, 20), choosing(300, 20)), (1, 2));
    }
}
