//! Nodes whose features are alike: a public graph, that costs nothing where rows are public.

use progap_nn::Input;
use rayon::prelude::*;

/// The most nodes that are compared with one another.
const MOST_NODES: usize = 1 << 15;
/// The most products that comparing may take.
const MOST_WORK: u64 = 1 << 32;
/// Rows with fewer entries than this, in the mean, have too many equals for any of them to be the nearest.
const LEAST_ENTRIES: usize = 10;
/// Entries of a row that are compared: those of its rarest columns.
const COMPARED: usize = 64;
/// The nearest others of each node.
const NEAREST: usize = 10;
/// Nodes compared at once.
const BLOCK: usize = 128;

/// Whether sparse rows of `nodes` nodes with `entries` entries are compared at all.
pub(super) fn are_compared(nodes: usize, entries: usize) -> bool {
    nodes <= MOST_NODES && entries >= LEAST_ENTRIES * nodes
}

/// For each node those that it is near to, or that are near to it, each with a share; the shares of a node add up to
/// one.
pub(super) struct KnnGraph {
    offsets: Vec<usize>,
    others: Vec<u32>,
    shares: Vec<f32>,
}

impl KnnGraph {
    /// By the cosine of the rows, each column times its weight. None where rows are not sparse, or too many, or say too
    /// little.
    pub fn of(input: Input<'_>, weights: &[f32]) -> Option<KnnGraph> {
        let Input::Sparse { offsets, indices, values, .. } = input else { return None };
        let nodes = offsets.len() - 1;
        if nodes < 2 || !are_compared(nodes, indices.len()) {
            return None;
        }
        let rows: Vec<Vec<(u32, f32)>> = (0..nodes)
            .map(|node| {
                let range = offsets[node] as usize..offsets[node + 1] as usize;
                let entry = |at: usize| (indices[at], values.map_or(1.0, |values| values[at]));
                rarest(range.map(entry).collect(), weights)
            })
            .collect();
        let mut by_column: Vec<Vec<(u32, f32)>> = vec![vec![]; weights.len()];
        for (node, row) in rows.iter().enumerate() {
            row.iter().for_each(|&(column, value)| by_column[column as usize].push((node as u32, value)));
        }
        if by_column.iter().map(|column| (column.len() as u64).pow(2)).sum::<u64>() > MOST_WORK {
            return None;
        }
        let nearest: Vec<Vec<(u32, f32)>> = rows
            .par_chunks(BLOCK)
            .enumerate()
            .flat_map_iter(|(block, rows)| {
                let mut cosines = vec![0f32; nodes];
                let by_column = &by_column;
                rows.iter().enumerate().map(move |(at, row)| {
                    cosines.fill(0.0);
                    for &(column, value) in row {
                        for &(other, theirs) in &by_column[column as usize] {
                            cosines[other as usize] += value * theirs;
                        }
                    }
                    cosines[block * BLOCK + at] = 0.0;
                    largest(&cosines)
                })
            })
            .collect();
        Some(KnnGraph::both_ways(&nearest))
    }

    /// Two nodes are near where one of them is near to the other.
    fn both_ways(nearest: &[Vec<(u32, f32)>]) -> KnnGraph {
        let mut lists: Vec<Vec<(u32, f32)>> = nearest.to_vec();
        for (node, row) in nearest.iter().enumerate() {
            row.iter().for_each(|&(other, cosine)| lists[other as usize].push((node as u32, cosine)));
        }
        let mut near = KnnGraph { offsets: vec![0], others: vec![], shares: vec![] };
        for list in &mut lists {
            list.sort_by_key(|&(other, _)| other);
            list.dedup_by_key(|&mut (other, _)| other);
            let sum: f32 = list.iter().map(|&(_, cosine)| cosine).sum();
            near.others.extend(list.iter().map(|&(other, _)| other));
            near.shares.extend(list.iter().map(|&(_, cosine)| cosine / sum));
            near.offsets.push(near.others.len());
        }
        near
    }

    /// The mean of what is said of the nodes near each node, never of itself; zeros where none is near.
    pub fn means(&self, said: &[f32], classes: usize) -> Vec<f32> {
        let mut means = vec![0f32; said.len()];
        for (range, mean) in self.offsets.windows(2).zip(means.chunks_exact_mut(classes)) {
            for at in range[0]..range[1] {
                let theirs = &said[self.others[at] as usize * classes..][..classes];
                mean.iter_mut().zip(theirs).for_each(|(mean, value)| *mean += self.shares[at] * value);
            }
        }
        means
    }
}

/// The entries of the columns with the largest weights, times these, to length one together.
fn rarest(mut row: Vec<(u32, f32)>, weights: &[f32]) -> Vec<(u32, f32)> {
    row.retain(|&(column, value)| value != 0.0 && weights[column as usize] > 0.0);
    let weight = |column: u32| weights[column as usize];
    row.sort_by(|a, b| weight(b.0).total_cmp(&weight(a.0)).then(a.0.cmp(&b.0)));
    row.truncate(COMPARED);
    row.iter_mut().for_each(|(column, value)| *value *= weight(*column));
    let length = row.iter().map(|(_, value)| value * value).sum::<f32>().sqrt();
    row.iter_mut().for_each(|(_, value)| *value /= length);
    row
}

/// The largest of some numbers that are positive, the first of equals.
fn largest(values: &[f32]) -> Vec<(u32, f32)> {
    let mut found: Vec<(u32, f32)> = Vec::with_capacity(NEAREST + 1);
    let mut least = 0.0;
    for (at, &value) in values.iter().enumerate() {
        if value > least {
            let place = found.partition_point(|&(_, larger)| larger >= value);
            found.insert(place, (at as u32, value));
            found.truncate(NEAREST);
            least = if found.len() == NEAREST { found[NEAREST - 1].1 } else { 0.0 };
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two groups of rows that share no column.
    #[test]
    fn the_near_are_alike_and_nobody_is_near_to_itself() {
        let (nodes, entries) = (40usize, 12usize);
        let offsets: Vec<u64> = (0..=nodes).map(|node| (node * entries) as u64).collect();
        let indices: Vec<u32> = (0..nodes)
            .flat_map(|node| (0..entries).map(move |at| (20 * (node % 2) + (node / 2 * 3 + at) % 20) as u32))
            .collect();
        let input = Input::Sparse { columns: 40, offsets: &offsets, indices: &indices, values: None };
        let near = KnnGraph::of(input, &[1.0; 40]).unwrap();
        for node in 0..nodes {
            let range = near.offsets[node]..near.offsets[node + 1];
            assert!(range.len() >= NEAREST, "{node}");
            assert!(
                near.others[range.clone()].iter().all(|&o| o as usize != node && o as usize % 2 == node % 2)
            );
            assert!((near.shares[range].iter().sum::<f32>() - 1.0).abs() < 1e-5);
        }
        // A value of one node reaches the means of other nodes only.
        let mut said = vec![0f32; nodes];
        said[4] = 1.0;
        let means = near.means(&said, 1);
        assert!(means[4] == 0.0 && means.iter().any(|&mean| mean > 0.0));
        assert!(means.iter().skip(1).step_by(2).all(|&mean| mean == 0.0));
    }

    #[test]
    fn rows_that_say_little_are_not_compared() {
        assert!(are_compared(100, 1000) && !are_compared(100, 999) && !are_compared(1 << 16, 1 << 30));
    }
}
