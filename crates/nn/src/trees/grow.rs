//! One tree: leaves are split where that helps most, until there are enough of them.

use std::ops::Range;

use rayon::prelude::*;

use super::Node;
use super::boost::Boosting;
use super::table::Table;

/// What is added to every sum of second derivatives: leaves of few rows say little.
const LAMBDA: f64 = 1.0;
/// From this many rows times columns on columns are summed by several threads.
const MANY: usize = 1 << 16;

/// What a tree learns of a row: of two classes the second against the first, else each by itself.
pub(super) fn outputs(classes: usize) -> usize {
    if classes == 2 { 1 } else { classes }
}

/// Gradients and second derivatives of rows: for each row the first of all outputs, then the second.
pub(super) struct Slopes {
    pub outputs: usize,
    pub values: Vec<f32>,
}

/// Sums over the rows of each bin of each column: gradients, second derivatives, and how many rows there are.
type Sums = Vec<Vec<f64>>;

struct Leaf {
    /// Where its rows stand in the list.
    rows: Range<usize>,
    node: usize,
    sums: Sums,
    split: Option<Split>,
}

#[derive(Debug, Clone, Copy)]
struct Split {
    gain: f64,
    column: usize,
    bin: usize,
}

/// A tree over bins and values, with the rows of each leaf.
pub(super) struct Grown {
    pub nodes: Vec<Node>,
    /// The bin that belongs to the threshold of each node.
    bins: Vec<u8>,
    /// The outputs of each node.
    pub values: Vec<f64>,
    /// The rows that it grew on, and for each leaf its node and where its rows stand.
    pub order: Vec<u32>,
    pub leaves: Vec<(usize, Range<usize>)>,
}

impl Grown {
    /// The leaf at which a row ends.
    pub fn leaf_of(&self, table: &Table, row: usize) -> usize {
        let mut at = 0;
        while let Node { column: Some(column), left, .. } = self.nodes[at] {
            at = left as usize + usize::from(table.column(column as usize)[row] > self.bins[at]);
        }
        at
    }
}

/// Grows a tree on some rows of a table.
pub(super) fn grow(table: &Table, slopes: &Slopes, rows: &[u32], config: &Boosting) -> Grown {
    let grower = Grower { table, slopes, config };
    let mut order = rows.to_vec();
    let mut spare = vec![];
    let sums = grower.sums(&order);
    let (mut nodes, mut bins, mut values) = (vec![Node::LEAF], vec![0u8], grower.outputs(&sums));
    let split = grower.best_split(&sums);
    let mut leaves = vec![Leaf { rows: 0..order.len(), node: 0, sums, split }];
    while leaves.len() < config.leaves {
        let gain = |leaf: &Leaf| leaf.split.map_or(0.0, |split| split.gain);
        let best = (0..leaves.len())
            .fold(0, |best, at| if gain(&leaves[at]) > gain(&leaves[best]) { at } else { best });
        let Some(split) = leaves[best].split else { break };
        let Leaf { rows, node, sums, .. } = leaves.swap_remove(best);
        let middle = rows.start
            + partition(&mut order[rows.clone()], &mut spare, table.column(split.column), split.bin);
        let parts = [rows.start..middle, middle..rows.end];
        let small = usize::from(parts[1].len() < parts[0].len());
        let of_small = grower.sums(&order[parts[small].clone()]);
        let of_large = difference(sums, &of_small);
        let mut both = [of_small, of_large];
        both.rotate_left(small);
        let left = nodes.len();
        let threshold = table.edge(split.column, split.bin);
        (nodes[node], bins[node]) =
            (Node { column: Some(split.column as u32), threshold, left: left as u32 }, split.bin as u8);
        values[node * slopes.outputs..][..slopes.outputs].fill(0.0);
        for (at, (sums, rows)) in both.into_iter().zip(parts).enumerate() {
            nodes.push(Node::LEAF);
            bins.push(0);
            values.extend(grower.outputs(&sums));
            let split = if rows.len() < 2 * config.min_rows { None } else { grower.best_split(&sums) };
            leaves.push(Leaf {
                rows,
                node: left + at,
                sums: if split.is_some() { sums } else { vec![] },
                split,
            });
        }
    }
    let leaves = leaves.into_iter().map(|leaf| (leaf.node, leaf.rows)).collect();
    Grown { nodes, bins, values, order, leaves }
}

struct Grower<'a> {
    table: &'a Table,
    slopes: &'a Slopes,
    config: &'a Boosting,
}

impl Grower<'_> {
    /// The numbers of a bin.
    fn width(&self) -> usize {
        2 * self.slopes.outputs + 1
    }

    fn sums(&self, rows: &[u32]) -> Sums {
        let of = |column: usize| match self.slopes.outputs {
            1 => self.sums_of::<2>(column, rows),
            _ => self.wide_sums_of(column, rows),
        };
        let columns = self.table.columns;
        if rows.len() * columns * self.slopes.outputs < MANY {
            return (0..columns).map(of).collect();
        }
        (0..columns).into_par_iter().map(of).collect()
    }

    /// The sums of a column where a row has so many slopes.
    fn sums_of<const SLOPES: usize>(&self, column: usize, rows: &[u32]) -> Vec<f64> {
        let bins = self.table.column(column);
        let slopes = self.slopes.values.as_chunks::<SLOPES>().0;
        let mut sums = vec![0f64; self.table.bins(column) * (SLOPES + 1)];
        for &row in rows {
            let own = &mut sums[usize::from(bins[row as usize]) * (SLOPES + 1)..][..=SLOPES];
            let slopes = &slopes[row as usize];
            for at in 0..SLOPES {
                own[at] += f64::from(slopes[at]);
            }
            own[SLOPES] += 1.0;
        }
        sums
    }

    fn wide_sums_of(&self, column: usize, rows: &[u32]) -> Vec<f64> {
        let (bins, width) = (self.table.column(column), self.width());
        let mut sums = vec![0f64; self.table.bins(column) * width];
        for &row in rows {
            let own = &mut sums[usize::from(bins[row as usize]) * width..][..width];
            let slopes = &self.slopes.values[row as usize * (width - 1)..][..width - 1];
            own.iter_mut().zip(slopes).for_each(|(sum, &slope)| *sum += f64::from(slope));
            own[width - 1] += 1.0;
        }
        sums
    }

    fn total(&self, sums: &Sums) -> Vec<f64> {
        let mut total = vec![0.0; self.width()];
        for bin in sums.first().map_or(&[][..], |column| column).chunks_exact(self.width()) {
            total.iter_mut().zip(bin).for_each(|(total, value)| *total += value);
        }
        total
    }

    /// The Newton step of a leaf.
    fn outputs(&self, sums: &Sums) -> Vec<f64> {
        let (total, outputs) = (self.total(sums), self.slopes.outputs);
        (0..outputs).map(|k| -self.config.rate * total[k] / (total[outputs + k].max(0.0) + LAMBDA)).collect()
    }

    /// The split that helps most, the first of equals.
    fn best_split(&self, sums: &Sums) -> Option<Split> {
        let total = self.total(sums);
        let whole = self.merit(&total);
        let of = |(column, sums): (usize, &Vec<f64>)| self.best_of_column(column, sums, &total, whole);
        let found: Vec<Option<Split>> = match sums.len() * self.width() < 1 << 8 {
            true => sums.iter().enumerate().map(of).collect(),
            false => sums.par_iter().enumerate().map(of).collect(),
        };
        found.into_iter().flatten().reduce(|best, split| if split.gain > best.gain { split } else { best })
    }

    fn best_of_column(&self, column: usize, sums: &[f64], total: &[f64], whole: f64) -> Option<Split> {
        let (width, least) = (self.width(), self.config.min_rows as f64);
        let (mut left, mut right) = (vec![0.0; width], vec![0.0; width]);
        let mut best: Option<Split> = None;
        for (bin, own) in sums.chunks_exact(width).enumerate().take(sums.len() / width - 1) {
            left.iter_mut().zip(own).for_each(|(left, value)| *left += value);
            if own[width - 1] == 0.0 || left[width - 1] < least {
                continue;
            }
            if total[width - 1] - left[width - 1] < least {
                break;
            }
            for ((right, total), left) in right.iter_mut().zip(total).zip(&left) {
                *right = total - left;
            }
            let gain = self.merit(&left) + self.merit(&right) - whole;
            if gain > best.map_or(1e-6, |best| best.gain) {
                best = Some(Split { gain, column, bin });
            }
        }
        best
    }

    /// Twice how far the step of a leaf lowers the loss.
    fn merit(&self, sums: &[f64]) -> f64 {
        let outputs = self.slopes.outputs;
        (0..outputs).map(|k| sums[k] * sums[k] / (sums[outputs + k].max(0.0) + LAMBDA)).sum()
    }
}

fn difference(mut whole: Sums, part: &Sums) -> Sums {
    for (whole, part) in whole.iter_mut().zip(part) {
        whole.iter_mut().zip(part).for_each(|(whole, part)| *whole -= part);
    }
    whole
}

/// Brings rows of the bins up to one to the front, each side in its order; how many these are.
fn partition(rows: &mut [u32], spare: &mut Vec<u32>, bins: &[u8], bin: usize) -> usize {
    spare.clear();
    let mut kept = 0;
    for at in 0..rows.len() {
        let row = rows[at];
        if usize::from(bins[row as usize]) <= bin {
            rows[kept] = row;
            kept += 1;
        } else {
            spare.push(row);
        }
    }
    rows[kept..].copy_from_slice(spare);
    kept
}
