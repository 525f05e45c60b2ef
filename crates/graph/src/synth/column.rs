//! Categorical attributes that become one-hot features.

use rayon::prelude::*;

use super::random::{Stream, exp, ln};
use crate::{Features, Problem, Result};

/// A categorical attribute: each node has one of its values, or none.
///
/// The values come in pools. A node's class decides from which pool its value is drawn (or that it is
/// missing); within a pool the value of rank `r` is drawn in proportion to `(r + 2)^-decay`.
///
/// ```
/// use progap_graph::synth::Column;
///
/// // Two classes: nine in ten of the first live in one of 5 halls, most of the second say nothing.
/// let home = Column::new("home").pool(5, 0.5, [0.9, 0.1]).pool(40, 1.0, [0.0, 0.2]).tie(0.1);
/// assert_eq!(home.values(), 45);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    name: String,
    pools: Vec<Pool>,
    tie: f64,
}

#[derive(Debug, Clone, PartialEq)]
struct Pool {
    values: usize,
    decay: f64,
    chances: Vec<f64>,
}

impl Column {
    /// An attribute without values.
    pub fn new(name: impl Into<String>) -> Column {
        Column { name: name.into(), pools: Vec::new(), tie: 0.0 }
    }

    /// Adds a pool of values. `chances` says for each class how probable the pool is; a single number stands
    /// for all classes. What is left of 1 over all pools is the chance of a missing value.
    #[must_use]
    pub fn pool(mut self, values: usize, decay: f64, chances: impl Into<Vec<f64>>) -> Column {
        self.pools.push(Pool { values, decay, chances: chances.into() });
        self
    }

    /// The share of undirected edges, among nodes that have a value, that are with a node of the same value in
    /// the same community, whatever its class.
    #[must_use]
    pub fn tie(mut self, share: f64) -> Column {
        self.tie = share;
        self
    }

    /// The number of values, and so of one-hot columns.
    pub fn values(&self) -> usize {
        self.pools.iter().map(|pool| pool.values).fold(0, usize::saturating_add)
    }

    /// A column of `values` values for any number of classes: a node has no value with chance `missing`, one
    /// that is typical of its class with chance `link`, and one of the common values else.
    pub(super) fn linked(name: &str, values: usize, classes: usize, missing: f64, link: f64) -> Column {
        let typical = if link > 0.0 { values / 2 / classes } else { 0 };
        let link = if typical == 0 { 0.0 } else { link };
        let mut column = Column::new(name).pool(values - typical * classes, 1.0, [1.0 - missing - link]);
        for class in 0..classes {
            if typical > 0 {
                let chances: Vec<f64> = (0..classes).map(|c| if c == class { link } else { 0.0 }).collect();
                column = column.pool(typical, 0.5, chances);
            }
        }
        column
    }

    pub(super) fn tie_share(&self) -> f64 {
        self.tie
    }

    /// The sampler of the column, checked against the number of classes.
    pub(super) fn sampler(&self, number: usize, classes: usize, seed: u64) -> Result<ColumnSampler> {
        let invalid = |message: String| Problem::Invalid(format!("column {:?}: {message}", self.name));
        if !(0.0..=1.0).contains(&self.tie) {
            return Err(invalid(format!("the tie {} is outside 0..1", self.tie)).into());
        }
        let mut by_class = vec![Vec::with_capacity(self.pools.len()); classes];
        let mut values = Vec::with_capacity(self.pools.len());
        let mut first = 0;
        for pool in &self.pools {
            let Pool { values: count, decay, chances } = pool;
            if *count == 0 || !decay.is_finite() || decay.abs() > 10.0 {
                let message = format!("a pool of {count} values with decay {decay} cannot be drawn from");
                return Err(invalid(message).into());
            }
            if chances.len() != 1 && chances.len() != classes {
                let message = format!("a pool has {} chances for {classes} classes", chances.len());
                return Err(invalid(message).into());
            }
            for (class, cumulative) in by_class.iter_mut().enumerate() {
                let chance = chances[if chances.len() == 1 { 0 } else { class }];
                let sum = cumulative.last().copied().unwrap_or(0.0) + chance;
                if !(chance >= 0.0 && sum <= 1.0 + 1e-9) {
                    let message = format!("the chances of class {class} are negative or exceed 1");
                    return Err(invalid(message).into());
                }
                cumulative.push(sum);
            }
            values.push((first, cumulative_ranks(*count, *decay)));
            first += *count as u32;
        }
        Ok(ColumnSampler { number, seed, by_class, values })
    }

    fn value_names(&self) -> impl Iterator<Item = String> + '_ {
        (1..=self.values()).map(|value| format!("{}={value}", self.name))
    }
}

fn cumulative_ranks(values: usize, decay: f64) -> Vec<f64> {
    let weights: Vec<f64> = (0..values).map(|rank| exp(-decay * ln(rank as f64 + 2.0))).collect();
    let total: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let mut cumulative: Vec<f64> = weights
        .iter()
        .map(|weight| {
            sum += weight / total;
            sum
        })
        .collect();
    cumulative[values - 1] = 1.0;
    cumulative
}

/// Replays the value of each node instead of storing it.
pub(super) struct ColumnSampler {
    number: usize,
    seed: u64,
    /// For each class the cumulative chances of the pools.
    by_class: Vec<Vec<f64>>,
    /// For each pool its first value and the cumulative chances of its values.
    values: Vec<(u32, Vec<f64>)>,
}

impl ColumnSampler {
    pub(super) fn value(&self, node: usize, class: u32) -> Option<u32> {
        let mut stream = Stream::column(self.seed, self.number, node as u64);
        let (first, ranks) = &self.values[stream.choose(&self.by_class[class as usize])?];
        Some(first + stream.choose(ranks)? as u32)
    }
}

/// The one-hot features of all nodes and the names of their columns.
pub(super) fn one_hot(
    columns: &[Column],
    samplers: &[ColumnSampler],
    labels: &[u32],
) -> Result<(Features, Vec<String>)> {
    const NODES_AT_ONCE: usize = 8192;
    let total: usize = columns.iter().map(Column::values).sum();
    if total == 0 {
        return Ok((Features::none(), Vec::new()));
    }
    let blocks: Vec<(Vec<u32>, Vec<u32>)> = labels
        .par_chunks(NODES_AT_ONCE)
        .enumerate()
        .map(|(block, labels)| {
            let mut indices = Vec::with_capacity(labels.len() * columns.len());
            let mut lengths = Vec::with_capacity(labels.len());
            for (at, &class) in labels.iter().enumerate() {
                let before = indices.len();
                let mut first = 0;
                for (column, sampler) in columns.iter().zip(samplers) {
                    let value = sampler.value(block * NODES_AT_ONCE + at, class);
                    indices.extend(value.map(|value| first + value));
                    first += column.values() as u32;
                }
                lengths.push((indices.len() - before) as u32);
            }
            (indices, lengths)
        })
        .collect();
    let mut offsets = Vec::with_capacity(labels.len() + 1);
    offsets.push(0u64);
    let mut indices = Vec::with_capacity(blocks.iter().map(|(indices, _)| indices.len()).sum());
    let mut end = 0;
    for (block_indices, lengths) in blocks {
        indices.extend_from_slice(&block_indices);
        for length in lengths {
            end += u64::from(length);
            offsets.push(end);
        }
    }
    let names = columns.iter().flat_map(Column::value_names).collect();
    Ok((Features::sparse(labels.len(), total, offsets, indices, None)?, names))
}
