//! Columns cut into bins: a split between two bins is a threshold between two values.

use rayon::prelude::*;

/// Values of a column that are looked at to cut it: from all over the list.
const MAX_LOOKED_AT: usize = 1 << 16;

/// Rows of numbers, each number as the bin of its column that it lies in.
#[derive(Debug)]
pub struct Table {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Column after column.
    bins: Vec<u8>,
    /// Of each column the largest value of each bin but the last, in order.
    edges: Vec<Vec<f32>>,
}

impl Table {
    /// The most bins of a column where one tree has this many outputs.
    fn max_bins(outputs: usize) -> usize {
        if outputs == 1 { 255 } else { 64 }
    }

    /// A table of dense rows, of finite numbers, for trees over that many classes.
    pub fn new(values: &[f32], columns: usize, classes: usize) -> Table {
        let rows = values.len() / columns.max(1);
        let max_bins = Table::max_bins(super::grow::outputs(classes));
        let binned: Vec<(Vec<u8>, Vec<f32>)> = (0..columns)
            .into_par_iter()
            .map(|column| {
                let value = |row: usize| values[row * columns + column];
                let step = rows.div_ceil(MAX_LOOKED_AT).max(1);
                let edges = edges((0..rows).step_by(step).map(value).collect(), max_bins);
                let bin = |row: usize| edges.partition_point(|&edge| edge < value(row)) as u8;
                ((0..rows).map(bin).collect(), edges)
            })
            .collect();
        let mut table = Table { rows, columns, bins: Vec::with_capacity(rows * columns), edges: vec![] };
        for (bins, edges) in binned {
            table.bins.extend_from_slice(&bins);
            table.edges.push(edges);
        }
        table
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    #[inline(always)]
    pub(super) fn column(&self, column: usize) -> &[u8] {
        &self.bins[column * self.rows..][..self.rows]
    }

    /// The largest value that lies in a bin or below it.
    pub(super) fn edge(&self, column: usize, bin: usize) -> f32 {
        self.edges[column][bin]
    }

    /// The bins of a column.
    pub(super) fn bins(&self, column: usize) -> usize {
        self.edges[column].len() + 1
    }
}

/// Cuts between values that differ, so that about as many values lie in each bin.
fn edges(mut values: Vec<f32>, max_bins: usize) -> Vec<f32> {
    values.sort_unstable_by(f32::total_cmp);
    let cuts: Vec<usize> = (1..values.len()).filter(|&at| values[at - 1] < values[at]).collect();
    let between = |at: usize| {
        let (low, high) = (values[at - 1], values[at]);
        let middle = low + (high - low) / 2.0;
        if middle < high { middle } else { low }
    };
    if cuts.len() < max_bins {
        return cuts.into_iter().map(between).collect();
    }
    let mut edges: Vec<f32> = (1..max_bins)
        .map(|bin| {
            let wanted = bin * values.len() / max_bins;
            let next = cuts.partition_point(|&cut| cut < wanted).min(cuts.len() - 1);
            between(cuts[next])
        })
        .collect();
    edges.dedup();
    edges
}
