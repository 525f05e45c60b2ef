//! What the next messages of features are about: those directions of the features on whose sums the answer depends.
//!
//! ```text
//! g_ic = gradient of log p(c) of node i in its first sums of features
//! M    = sum over training nodes and classes of g_ic g_ic'  =  sum over k of l_k u_k u_k'
//! sent = [sqrt(l_1 / l_1) <u_1, f>, sqrt(l_2 / l_1) <u_2, f>, ...],  f what was sent before
//! ```
//!
//! A direction that counts has more of the norm that a message may have, and its sum less noise. A function of public
//! rows and of sums that left the vault before.

use super::Splits;
use super::features::Features;
use crate::rows::Rows;
use crate::vault::Aggregate;
use crate::views::{Sums, Views};
use crate::{Error, Result};

/// Training nodes that tell.
const NODES: usize = 2048;
/// Steps to the leading directions: each of them takes the others' part down by the ratio of their lengths.
const STEPS: usize = 60;

/// The directions of the features in the sum of that index, which carries nothing else, as many as are asked for, each
/// as long as it counts; the first columns where nothing depends on any.
pub(super) fn directions(
    model: &Views,
    rows: &Rows,
    (splits, features): (&Splits, &Features),
    aggregates: &[Aggregate],
    (index, count): (usize, usize),
) -> Result<Vec<Vec<f32>>> {
    let (shape, (_, graph)) = (model.shape(), model.parts());
    let (graph, sum) =
        graph.zip(shape.sums.get(index)).ok_or(Error::internal("no sum of features was read"))?;
    let first: usize = shape.sums[..index].iter().map(|sum| sum.width()).sum::<usize>() + 1;
    let nodes = &splits.train[..splits.train.len().min(NODES)];
    let known = features.known(rows, nodes)?;
    let own = match graph.combination.reads_beyond(&shape.joined()) {
        true => Some(rows.own()?.dense_rows(nodes)?),
        false => None,
    };
    let values: Vec<&[f32]> = aggregates[..shape.sums.len()].iter().map(|a| &a.values[..]).collect();
    let mut sums = Sums::of(&graph.blocks, &values, nodes, shape.directions);
    let mut shifted = |column: usize, by: f32| {
        sums.shift(column, shape.width(), by);
        let answer = graph.combined(shape, (&known, own.as_deref()), &sums);
        sums.shift(column, shape.width(), -by);
        answer
    };
    // One step of each column, as long as its sums usually are, to both sides.
    let mut slopes = Vec::with_capacity(sum.features);
    for column in first..first + sum.features {
        let (above, below) = (shifted(column, 0.5)?, shifted(column, -0.5)?);
        slopes.push(above.into_iter().zip(below).map(|(a, b)| f64::from(a - b)).collect::<Vec<f64>>());
    }
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let together: Vec<Vec<f64>> =
        slopes.iter().map(|a| slopes.iter().map(|b| product(a, b)).collect()).collect();
    Ok(leading(&together, count))
}

/// The leading directions of a symmetric matrix without negative eigenvalues, each times the root of its share of the
/// largest; all zeros beyond its rank. Of a matrix of zeros the first columns.
fn leading(matrix: &[Vec<f64>], count: usize) -> Vec<Vec<f32>> {
    let size = matrix.len();
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let trace: f64 = (0..size).map(|at| matrix[at][at]).sum();
    if trace <= 0.0 || !trace.is_finite() {
        let unit = |at: usize| (0..size).map(|to| if to == at { 1.0 } else { 0.0 }).collect();
        return (0..count).map(unit).collect();
    }
    // From the columns that count most.
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|&a, &b| matrix[b][b].total_cmp(&matrix[a][a]));
    let mut found: Vec<Vec<f64>> = order.iter().take(count).map(|&at| matrix[at].clone()).collect();
    let mut lengths = vec![0.0; found.len()];
    for _ in 0..STEPS {
        for at in 0..found.len() {
            let (before, rest) = found.split_at_mut(at);
            let own = &mut rest[0];
            *own = matrix.iter().map(|row| product(row, own)).collect();
            for other in before.iter() {
                let along = product(own, other);
                own.iter_mut().zip(other).for_each(|(value, other)| *value -= along * other);
            }
            lengths[at] = product(own, own).sqrt();
            let factor = if lengths[at] > 1e-12 * trace { 1.0 / lengths[at] } else { 0.0 };
            own.iter_mut().for_each(|value| *value *= factor);
        }
    }
    let scaled = |(direction, &length): (&Vec<f64>, &f64)| {
        let share = (length / lengths[0]).max(0.0).sqrt();
        direction.iter().map(|value| (value * share) as f32).collect()
    };
    found.iter().zip(&lengths).map(scaled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_directions_are_those_of_the_matrix() {
        // 4 along (1, 1) / sqrt 2, 1 along (1, -1) / sqrt 2, nothing along the third.
        let matrix = vec![vec![2.5, 1.5, 0.0], vec![1.5, 2.5, 0.0], vec![0.0; 3]];
        let found = leading(&matrix, 3);
        let half = std::f32::consts::FRAC_1_SQRT_2;
        let expected = [[half, half, 0.0], [0.5 * half, -0.5 * half, 0.0], [0.0; 3]];
        for (found, expected) in found.iter().zip(expected) {
            let sign = if found[0] < 0.0 { -1.0 } else { 1.0 };
            let close = found.iter().zip(expected).all(|(a, b)| (sign * a - b).abs() < 1e-5);
            assert!(close, "{found:?} {expected:?}");
        }
        assert_eq!(found.len(), 3);
        assert_eq!(leading(&[vec![0.0; 2], vec![0.0; 2]], 1), [[1.0, 0.0]]);
    }
}
