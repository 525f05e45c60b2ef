//! Sketches of a data set: by them the same people are known again when their data come in another order, with
//! another label, or with a little more or less.
//!
//! A sketch of a set is a fixed number of parts. Every element is hashed under a secret seed, the hash says which
//! part it belongs to, and a part keeps the smallest of its hashes. An element less changes one part at most, and two
//! sets of which nine tenths are the same agree in about nine of ten parts. Order plays no role, and neither do
//! labels and splits: nothing here reads them.

use std::ops::Range;

use rayon::prelude::*;
use twox_hash::XxHash3_64;

use crate::{Dataset, Features, NodeIds};

/// How many parts a sketch has.
pub const PARTS: usize = 100;
/// How many sketches a data set has.
pub const SKETCHES: usize = 5;
/// The columns of rows are cut into this many groups, each with parts of its own: a column less changes one group.
const GROUPS: usize = 10;
/// A part that no element belongs to.
const EMPTY: u64 = u64::MAX;
/// Fewer parts of rows than these tell nobody.
const LEAST: usize = 10;
/// Nodes that one task goes through.
const BLOCK: usize = 1 << 12;

/// The sketch of one set; all parts are empty where there is nothing to know a data set by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sketch(pub [u64; PARTS]);

impl Sketch {
    /// Whether two sketches agree in nine of ten of the parts that either of them has.
    pub fn matches(&self, other: &Sketch) -> bool {
        let parts = || self.0.iter().zip(&other.0);
        let told = parts().filter(|&(&a, &b)| a != EMPTY || b != EMPTY).count();
        let same = parts().filter(|&(&a, &b)| a == b && a != EMPTY).count();
        told > 0 && 10 * same >= 9 * told
    }

    /// The same sketch with every part that is not empty replaced.
    #[must_use]
    pub fn map(&self, part: impl Fn(usize, u64) -> u64) -> Sketch {
        Sketch(std::array::from_fn(|at| if self.0[at] == EMPTY { EMPTY } else { part(at, self.0[at]) }))
    }

    const NOTHING: Sketch = Sketch([EMPTY; PARTS]);
}

/// The smallest hash of each part, and how often it came.
#[derive(Clone)]
struct Smallest {
    hashes: [u64; PARTS],
    times: [u32; PARTS],
}

impl Smallest {
    fn none() -> Smallest {
        Smallest { hashes: [EMPTY; PARTS], times: [0; PARTS] }
    }

    fn put(&mut self, part: usize, hash: u64, times: u32) {
        if hash < self.hashes[part] {
            (self.hashes[part], self.times[part]) = (hash, times);
        } else if hash == self.hashes[part] {
            self.times[part] = self.times[part].saturating_add(times);
        }
    }

    /// An element of a set.
    #[inline]
    fn add(&mut self, hash: u64) {
        self.put(share(hash, PARTS), hash, 1);
    }

    /// The parts whose smallest element came once; nothing where they are too few to tell anything.
    fn unique(&self) -> Sketch {
        let parts = std::array::from_fn(|at| if self.times[at] == 1 { self.hashes[at] } else { EMPTY });
        match parts.iter().filter(|&&part| part != EMPTY).count() >= LEAST {
            true => Sketch(parts),
            false => Sketch::NOTHING,
        }
    }

    fn and(mut self, other: Smallest) -> Smallest {
        (0..PARTS).for_each(|part| self.put(part, other.hashes[part], other.times[part]));
        self
    }
}

/// Which of so many parts a hash belongs to.
#[inline]
fn share(hash: u64, parts: usize) -> usize {
    ((u128::from(hash) * parts as u128) >> 64) as usize
}

/// A hash of two numbers: each bit of the result depends on all bits of both.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let wide = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        (product as u64) ^ (product >> 64) as u64
    };
    let once = wide(a ^ 0x9e37_79b9_7f4a_7c15, b ^ 0xd6e8_feb8_6659_fd93);
    wide(once ^ 0xa076_1d64_78bd_642f, a.rotate_left(32) ^ b ^ 0xe703_7ed1_a0b4_28db)
}

impl Dataset {
    /// The sketches of these data under a seed: of the node ids, of the edges by id, of the rows of features, of the
    /// rows in groups of columns, and of all rows exactly, with how often each comes.
    ///
    /// Ids that merely number the nodes tell nobody: their sketch is empty, and edges are pairs of numbers. A row
    /// counts by its content. In the sketches that need not agree exactly it counts only where no other row has the
    /// same content: the shares of a few categories are the same in many data sets.
    pub fn sketches(&self, seed: u64) -> [Sketch; SKETCHES] {
        let ids = Ids::new(self.node_ids(), mix(seed, 1));
        let nodes = self.nodes();
        let named = match ids.are_a_numbering(nodes) {
            true => Sketch::NOTHING,
            false => {
                let each =
                    |of: Range<usize>, smallest: &mut Smallest| of.for_each(|v| smallest.add(ids.hash(v)));
                Sketch(over(nodes, Smallest::none, each, Smallest::and).hashes)
            }
        };
        let graph = self.graph();
        let into = |of: Range<usize>, smallest: &mut Smallest| {
            for receiver in of {
                let (senders, to) = (graph.in_neighbours(receiver), ids.hash(receiver));
                senders.iter().for_each(|&from| smallest.add(mix(mix(seed, ids.hash(from as usize)), to)));
                crate::store::note_read(size_of_val(senders));
            }
        };
        let edges = Sketch(over(nodes, Smallest::none, into, Smallest::and).hashes);
        let [whole, grouped, exactly] = self.sketches_of_rows(mix(seed, 2));
        [named, edges, whole, grouped, exactly]
    }

    fn sketches_of_rows(&self, seed: u64) -> [Sketch; 3] {
        let (features, names) = (self.features(), self.feature_names());
        let columns: Vec<u64> = (0..features.columns())
            .map(|column| match names.get(column) {
                Some(name) => XxHash3_64::oneshot_with_seed(seed, name.as_bytes()),
                None => mix(seed, column as u64),
            })
            .collect();
        let read = |of: Range<usize>, found: &mut Rows| {
            for row in of {
                let mut groups = [0u64; GROUPS];
                features.each_nonzero(row, &mut |column: usize, value: f32| {
                    let key = columns[column];
                    let sum = &mut groups[share(key, GROUPS)];
                    *sum = sum.wrapping_add(mix(key, u64::from(value.to_bits())));
                });
                found.add(&groups, seed);
            }
        };
        let Rows { whole, grouped, sum } = over(self.nodes(), Rows::none, read, Rows::and);
        let distinct = whole.hashes.iter().filter(|&&part| part != EMPTY).count();
        let exactly = match distinct >= LEAST {
            true => Sketch(std::array::from_fn(|at| if at == 0 { sum.min(EMPTY - 1) } else { EMPTY })),
            false => Sketch::NOTHING,
        };
        [whole.unique(), grouped.unique(), exactly]
    }
}

/// What is known of rows.
struct Rows {
    whole: Smallest,
    grouped: Smallest,
    /// Of all rows, so that two tables with the same rows in any order have the same.
    sum: u64,
}

impl Rows {
    fn none() -> Rows {
        Rows { whole: Smallest::none(), grouped: Smallest::none(), sum: 0 }
    }

    /// A row, by the sums of its entries in each group of columns.
    fn add(&mut self, groups: &[u64; GROUPS], seed: u64) {
        let whole = mix(groups.iter().fold(0, |all, sum| all.wrapping_add(*sum)), seed);
        self.whole.add(whole);
        self.sum = self.sum.wrapping_add(mix(whole, 1));
        for (group, &sum) in groups.iter().enumerate().filter(|(_, sum)| **sum != 0) {
            let hash = mix(sum, seed);
            self.grouped.put(group * (PARTS / GROUPS) + share(hash, PARTS / GROUPS), hash, 1);
        }
    }

    fn and(self, other: Rows) -> Rows {
        Rows {
            whole: self.whole.and(other.whole),
            grouped: self.grouped.and(other.grouped),
            sum: self.sum.wrapping_add(other.sum),
        }
    }
}

/// What is found over all nodes, whatever the number of threads.
fn over<T: Send>(
    nodes: usize,
    none: impl Fn() -> T + Sync + Send + Copy,
    block: impl Fn(Range<usize>, &mut T) + Sync,
    and: impl Fn(T, T) -> T + Sync + Send,
) -> T {
    (0..nodes.div_ceil(BLOCK))
        .into_par_iter()
        .fold(none, |mut found, at| {
            block(at * BLOCK..nodes.min((at + 1) * BLOCK), &mut found);
            found
        })
        .reduce(none, and)
}

/// What nodes are called, hashed: a number in the same way whether it is a position, an integer or a text.
enum Ids<'d> {
    Position(u64),
    Integers(&'d [i64], u64),
    Hashed(Vec<u64>),
}

impl Ids<'_> {
    fn new(ids: &NodeIds, seed: u64) -> Ids<'_> {
        match ids {
            NodeIds::Position => Ids::Position(seed),
            NodeIds::Integers(ids) => Ids::Integers(ids, seed),
            NodeIds::Text { bytes, offsets } => {
                let hash = |at: &[u64]| {
                    let text = &bytes[at[0] as usize..at[1] as usize];
                    match integer(text) {
                        Some(number) => mix(seed, number as u64),
                        None => XxHash3_64::oneshot_with_seed(seed, text),
                    }
                };
                Ids::Hashed(offsets.par_windows(2).map(hash).collect())
            }
        }
    }

    #[inline]
    fn hash(&self, node: usize) -> u64 {
        match self {
            Ids::Position(seed) => mix(*seed, node as u64),
            Ids::Integers(ids, seed) => mix(*seed, ids[node] as u64),
            Ids::Hashed(hashes) => hashes[node],
        }
    }

    /// Whether the ids are some number and the ones after it, in any order.
    fn are_a_numbering(&self, nodes: usize) -> bool {
        match self {
            Ids::Position(_) => true,
            Ids::Integers(ids, _) => {
                let (low, high) = (ids.iter().min(), ids.iter().max());
                low.zip(high).is_none_or(|(&low, &high)| high.abs_diff(low) < nodes as u64)
            }
            Ids::Hashed(_) => false,
        }
    }
}

/// The number that a text is the only spelling of.
fn integer(text: &[u8]) -> Option<i64> {
    if text.len() > 20 || !text.last()?.is_ascii_digit() {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

impl Features {
    /// Calls with the column and the value of each entry of a row that is not zero, in any precision.
    fn each_nonzero(&self, row: usize, entry: &mut impl FnMut(usize, f32)) {
        match self {
            Features::Dense { columns, values } => {
                let values = &values[row * columns..(row + 1) * columns];
                crate::store::note_read(size_of_val(values));
                let nonzero = values.iter().enumerate().filter(|(_, value)| **value != 0.0);
                nonzero.for_each(|(column, &value)| entry(column, value));
            }
            Features::Half { columns, values } => {
                let values = &values[row * columns..(row + 1) * columns];
                crate::store::note_read(size_of_val(values));
                let wide = values.iter().map(|value| value.to_f32()).enumerate();
                wide.filter(|(_, value)| *value != 0.0).for_each(|(column, value)| entry(column, value));
            }
            Features::Sparse { offsets, indices, values, .. } => {
                let at = offsets[row] as usize..offsets[row + 1] as usize;
                crate::store::note_read(2 * size_of_val(&indices[at.clone()]));
                for place in at {
                    let value = values.as_ref().map_or(1.0, |values| values[place]);
                    if value != 0.0 {
                        entry(indices[place] as usize, value);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::SocialNetwork;
    use crate::{DatasetParts, Graph};

    const SEED: u64 = 0x5eed;

    fn network(seed: u64) -> Dataset {
        SocialNetwork::new(1000).edges(8000).classes(3).seed(seed).generate().unwrap()
    }

    /// The nodes in another order, with the names that they had if they had any.
    fn turned(data: &Dataset, ids: NodeIds) -> Dataset {
        let nodes = data.nodes() as u32;
        let place = |node: u32| (node * 7 + 3) % nodes;
        let mut order = vec![0u32; nodes as usize];
        (0..nodes).for_each(|node| order[place(node) as usize] = node);
        let (to, from): (Vec<u32>, Vec<u32>) =
            data.graph().iter_edges().map(|(a, b)| (place(a), place(b))).unzip();
        let columns = data.features().columns();
        let dense = data.features().to_dense(data.nodes());
        let rows = order
            .iter()
            .flat_map(|&node| dense[node as usize * columns..(node as usize + 1) * columns].iter().copied());
        let values: Vec<f32> = rows.collect();
        let parts = data.clone().into_parts();
        Dataset::new(DatasetParts {
            graph: Graph::from_edges(data.nodes(), &to, &from).unwrap(),
            features: Features::dense(data.nodes(), columns, values).unwrap(),
            labels: order.iter().map(|&node| (node + 1) % 3).collect::<Vec<u32>>().into(),
            node_ids: ids.select(&order),
            split: None,
            ..parts
        })
        .unwrap()
    }

    /// Whether ids, edges and rows match, the last in any of their sketches.
    fn matches(a: &Dataset, b: &Dataset) -> [bool; 3] {
        let (a, b) = (a.sketches(SEED), b.sketches(SEED));
        let same = |at: usize| a[at].matches(&b[at]);
        [same(0), same(1), (2..SKETCHES).any(same)]
    }

    #[test]
    fn people_with_ids_are_known_in_any_order_and_with_any_labels() {
        let data = network(1);
        let ids = NodeIds::from_texts((0..1000).map(|node| format!("person {}", node * node)));
        let parts = data.clone().into_parts();
        let named = Dataset::new(DatasetParts { node_ids: ids.clone(), ..parts }).unwrap();
        assert_eq!(matches(&named, &turned(&named, ids.clone())), [true; 3]);
        // Without their names they are known by their rows.
        assert_eq!(matches(&named, &turned(&data, NodeIds::Position)), [false, false, true]);
        // The same names of others.
        let other = DatasetParts { node_ids: ids, ..network(2).into_parts() };
        assert_eq!(matches(&named, &Dataset::new(other).unwrap()), [true, false, false]);
    }

    #[test]
    fn numbers_are_the_same_ids_as_positions_integers_or_texts() {
        let data = network(1);
        let numbers =
            |ids| Dataset::new(DatasetParts { node_ids: ids, ..data.clone().into_parts() }).unwrap();
        let texts = numbers(NodeIds::from_texts((0..1000).map(|node| node.to_string())));
        assert!(matches(&data, &texts)[1]);
        let turned = turned(&data, NodeIds::Position);
        assert!(matches!(turned.node_ids(), NodeIds::Integers(_)));
        assert_eq!(matches(&data, &turned), [false, true, true], "a numbering names nobody");
        let later = numbers(NodeIds::from_integers((5000..6000).collect()));
        assert_eq!(matches(&later, &data), [false, false, true]);
    }

    #[test]
    fn a_column_or_an_edge_less_leaves_the_sketch_and_other_data_do_not_match() {
        let columns = 30;
        let wide: Vec<f32> = (0..30_000).map(|at| (mix(7, at) >> 40) as f32).collect();
        let narrow: Vec<f32> = wide.chunks(columns).flat_map(|row| row[..columns - 1].to_vec()).collect();
        let with = |columns, values| {
            let features = Features::dense(1000, columns, values).unwrap();
            let parts = DatasetParts { features, feature_names: vec![], ..network(1).into_parts() };
            Dataset::new(parts).unwrap()
        };
        let (data, parts) = (with(columns, wide), with(columns - 1, narrow).into_parts());
        assert_eq!(matches(&data, &Dataset::new(parts).unwrap()), [false, true, true]);
        let (to, from): (Vec<u32>, Vec<u32>) = data.graph().iter_edges().skip(1).unzip();
        let graph = Graph::from_edges(1000, &to, &from).unwrap();
        let parts = DatasetParts { graph, ..data.clone().into_parts() };
        assert_eq!(matches(&data, &Dataset::new(parts).unwrap()), [false, true, true]);
        assert_eq!(matches(&data, &network(2)), [false; 3]);
        let sketches = data.sketches(SEED);
        assert_ne!(sketches, data.sketches(SEED + 1), "another seed, other parts");
    }

    /// Two samples of the same few categories are not the same people.
    #[test]
    fn rows_that_many_have_tell_nobody() {
        let sample = |seed: u64| {
            let values: Vec<f32> = (0..1000).map(|node| (mix(seed, node) % 3) as f32).collect();
            let features = Features::dense(1000, 1, values).unwrap();
            let parts = network(seed).into_parts();
            Dataset::new(DatasetParts { features, feature_names: vec![], ..parts }).unwrap()
        };
        assert_eq!(matches(&sample(1), &sample(2)), [false; 3]);
    }

    #[test]
    fn precision_and_zeros_make_no_difference() {
        let data = network(1);
        let rows = data.features().to_dense(1000);
        let whole: Vec<f32> = rows.iter().map(|value| (value * 8.0).round()).collect();
        let dense = Features::dense(1000, data.features().columns(), whole).unwrap();
        let with = |features| Dataset::new(DatasetParts { features, ..data.clone().into_parts() }).unwrap();
        let half = dense.clone().halved(1000).unwrap();
        assert_eq!(with(dense).sketches(SEED), with(half).sketches(SEED));
    }
}
