//! Sums of messages times the weights of their edges.

use std::ops::Range;

use rayon::prelude::*;

use crate::aggregate::{self, Sum};
use crate::graph::{RowWidth, row_blocks};
use crate::weights::in_steps;
use crate::{Graph, Problem, Result};

/// Blocks of rows handed to the threads.
const BLOCKS: usize = 256;

/// A sum of messages of type `M`, each of which is multiplied with the weight of its edge.
pub trait WeightedSum<M>: Sum<M> {
    /// The part of an entry of a message that an edge of that weight carries.
    ///
    /// # Proof definition
    /// For integers at most `in_steps(weight) / 65536` of it in magnitude, by integer arithmetic: what is left is cut
    /// off towards zero.
    fn carried(message: M, weight: f32) -> Self;
}

impl WeightedSum<f32> for f32 {
    #[inline(always)]
    fn carried(message: f32, weight: f32) -> f32 {
        message * weight
    }
}

macro_rules! carried {
    ($message:ty => $sum:ty) => {
        impl WeightedSum<$message> for $sum {
            #[inline(always)]
            fn carried(message: $message, weight: f32) -> $sum {
                // Division by a constant cuts off towards zero; the quotient is no larger than the message.
                (i64::from(message) * i64::from(in_steps(weight)) / 65_536) as $sum
            }
        }
    };
}

carried!(i8 => i32);
carried!(i16 => i32);
carried!(i16 => i64);

/// As [`aggregate::wide_sum`], each message times the weight of its edge where the graph has weights.
///
/// # Errors
/// Lengths that do not fit, or an integer sum that could overflow; the sums are then untouched.
///
/// ```
/// use progap_graph::{Graph, weighted};
///
/// let graph = Graph::from_weighted_edges(3, &[0, 2], &[1, 1], &[0.5, 1.0])?;
/// let mut sums = [0i32; 6];
/// weighted::wide_sum(&graph, 2, &[9i8, -9, 0, 0, 100, 1], &mut sums)?;
/// assert_eq!(sums, [0, 0, 104, -3, 0, 0]);
/// # Ok::<(), progap_graph::Error>(())
/// ```
pub fn wide_sum<M, S>(graph: &Graph, width: usize, messages: &[M], sums: &mut [S]) -> Result<()>
where
    M: Copy + Send + Sync,
    S: WeightedSum<M>,
{
    match graph.weights() {
        None => aggregate::wide_sum(graph, width, messages, sums),
        Some(_) => sum_rows(graph, 0..graph.nodes(), (width, messages), sums),
    }
}

/// As [`wide_sum`], for some receivers only: `sums` has a row for each of them. Messages are `width` values of each
/// node; where the graph has no weights, at most [`aggregate::MAX_WIDTH`].
///
/// # Errors
/// As [`wide_sum`].
pub fn sum_rows<M, S>(
    graph: &Graph,
    receivers: Range<usize>,
    (width, messages): (usize, &[M]),
    sums: &mut [S],
) -> Result<()>
where
    M: Copy + Send + Sync,
    S: WeightedSum<M>,
{
    let Some(weights) = graph.weights() else {
        let messages = aggregate::Messages { width, values: messages, weights: None };
        return aggregate::sum_rows(graph, receivers, messages, sums);
    };
    let lengths =
        [("list of messages", messages.len(), graph.nodes()), ("list of sums", sums.len(), receivers.len())];
    for (what, found, rows) in lengths {
        if found != rows * width {
            let (found, expected) = (found as u64, (rows * width) as u64);
            return Err(Problem::Length { what: what.into(), found, expected }.into());
        }
    }
    // No weight is above 1.
    let terms = graph.max_in_degree();
    if !S::holds(terms, None) {
        let message = format!("a sum of {terms} messages could overflow its integer type");
        return Err(Problem::TooLarge(message).into());
    }
    let offsets = &graph.offsets()[receivers.start..=receivers.end];
    let blocks = row_blocks(offsets, RowWidth::Fixed(width), sums, BLOCKS);
    blocks.into_par_iter().for_each(|(rows, sums)| {
        for (row, sums) in rows.zip(sums.chunks_exact_mut(width.max(1))) {
            sums.fill(S::default());
            let edges = offsets[row] as usize..offsets[row + 1] as usize;
            for (&sender, &weight) in graph.senders()[edges.clone()].iter().zip(&weights[edges]) {
                let message = &messages[sender as usize * width..][..width];
                sums.iter_mut()
                    .zip(message)
                    .for_each(|(sum, &entry)| *sum = sum.plus(S::carried(entry, weight)));
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The copies that a sender sends along its edges never exceed what its strength says, exactly.
        #[test]
        fn a_sender_moves_the_sums_by_no_more_than_its_strength(
            weights in prop::collection::vec(0f32..=1.0, 1..20),
            message in prop::collection::vec(any::<i16>(), 3),
        ) {
            let receivers: Vec<u32> = (1..=weights.len() as u32).collect();
            let nodes = weights.len() + 1;
            let graph = Graph::from_weighted_edges(nodes, &vec![0; weights.len()], &receivers, &weights).unwrap();
            let mut messages = vec![0i16; nodes * 3];
            messages[..3].copy_from_slice(&message);
            let mut sums = vec![0i64; nodes * 3];
            wide_sum(&graph, 3, &messages, &mut sums).unwrap();
            let square = |values: &mut dyn Iterator<Item = i64>| values.map(|v| i128::from(v).pow(2)).sum::<i128>();
            let moved = square(&mut sums.into_iter());
            let sent = square(&mut message.into_iter().map(i64::from));
            prop_assert!(moved <= sent * i128::from(graph.out_strengths()[0]), "{moved} {sent}");
        }

        #[test]
        fn weights_of_one_change_nothing(
            edges in prop::collection::vec((0u32..9, 0u32..9), 0..40),
            messages in prop::collection::vec(any::<i8>(), 9 * 5),
        ) {
            let (sources, targets): (Vec<u32>, Vec<u32>) = edges.into_iter().unzip();
            let graph = Graph::from_weighted_edges(9, &sources, &targets, &vec![1.0; sources.len()]).unwrap();
            let (mut weighted, mut plain) = (vec![7i32; 45], vec![0i32; 45]);
            wide_sum(&graph, 5, &messages, &mut weighted).unwrap();
            wide_sum(&graph.without_weights(), 5, &messages, &mut plain).unwrap();
            prop_assert_eq!(weighted, plain);
        }
    }
}
