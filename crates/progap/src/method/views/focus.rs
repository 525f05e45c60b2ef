//! Which columns the next message of features is about: those on whose sums the latest model's answer depends.
//!
//! ```text
//! m_j = mean over nodes and classes of (logit(f + e_j) - logit(f))^2,  f the latest sums of features in their own unit
//! w_j = sqrt(m_j / max m)
//! ```
//!
//! With them a column that counts has more of the norm that a message may have, and its next sum less noise. A function
//! of public rows and of sums that left the vault before.

use super::Splits;
use super::features::Features;
use crate::Result;
use crate::rows::Rows;
use crate::vault::Aggregate;
use crate::views::{Sums, Views};

/// Training nodes that tell.
const NODES: usize = 2048;

/// How much each column counted in the latest sums of features; empty where none were asked for yet.
pub(super) fn weights(
    model: &Views,
    rows: &Rows,
    (splits, features): (&Splits, &Features),
    aggregates: &[Aggregate],
) -> Result<Vec<f32>> {
    let (shape, (_, graph)) = (model.shape(), model.parts());
    let Some(graph) = graph else { return Ok(vec![]) };
    let Some(latest) = shape.sums.iter().rposition(|sum| sum.classes == 0) else { return Ok(vec![]) };
    let first: usize = shape.sums[..latest].iter().map(|sum| sum.width()).sum::<usize>() + 1;
    let nodes = &splits.train[..splits.train.len().min(NODES)];
    let known = features.known(rows, nodes)?;
    let own = match graph.combination.reads_beyond(&shape.joined()) {
        true => Some(rows.own()?.dense_rows(nodes)?),
        false => None,
    };
    let values: Vec<&[f32]> = aggregates[..shape.sums.len()].iter().map(|a| &a.values[..]).collect();
    let mut sums = Sums::of(&graph.blocks, &values, nodes, shape.directions);
    let answer = |sums: &Sums| graph.combined(shape, (&known, own.as_deref()), sums);
    let before = answer(&sums)?;
    let mut counted = Vec::with_capacity(shape.sums[latest].features);
    for column in first..first + shape.sums[latest].features {
        sums.shift(column, shape.width(), 1.0);
        let after = answer(&sums)?;
        sums.shift(column, shape.width(), -1.0);
        let square = |(a, b): (&f32, &f32)| f64::from(a - b).powi(2);
        counted.push(after.iter().zip(&before).map(square).sum::<f64>());
    }
    let most = counted.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return Ok(vec![]);
    }
    Ok(counted.into_iter().map(|square| (square / most).sqrt() as f32).collect())
}
