//! Rows along the edges of a graph, and back: what GraphSAGE reads of its neighbours.

use std::borrow::Cow;

use progap_graph::{Graph, aggregate};
use progap_nn::Propagate;
use rayon::prelude::*;

/// For every node the mean or the sum of the rows of its senders.
///
/// With `A[i, j] = w_i v_j` for each edge `j -> i`, where `w_i` is 1 or 1 / in-degree and `v_j` is 1 or given, forward
/// is `A x` and backward `Aᵀ dy`: both are sums along edges, the second along those of the transposed graph.
#[derive(Debug)]
pub struct Senders<'g> {
    graph: &'g Graph,
    /// Where it is not the same graph.
    transpose: Option<Graph>,
    /// `w_i`, for the mean.
    weights: Option<Vec<f32>>,
    /// `v_j`, of each sender.
    sender_weights: Option<Vec<f32>>,
}

impl<'g> Senders<'g> {
    /// The mean over a node's senders; zero where there are none.
    pub fn mean(graph: &'g Graph) -> Self {
        let weight = |node| 1.0 / graph.in_degree(node).max(1) as f32;
        let weights = (0..graph.nodes()).map(weight).collect();
        Senders { weights: Some(weights), ..Senders::sum(graph) }
    }

    /// The sum over a node's senders.
    pub fn sum(graph: &'g Graph) -> Self {
        let transpose = (!graph.is_undirected()).then(|| graph.transpose());
        Senders { graph, transpose, weights: None, sender_weights: None }
    }

    /// The sum over a node's senders, each times a weight of its own.
    pub fn weighted(graph: &'g Graph, sender_weights: Vec<f32>) -> Self {
        Senders { sender_weights: Some(sender_weights), ..Senders::sum(graph) }
    }

    /// The rows of the senders, each times its sender's weight if there are weights.
    fn weighted_rows<'x>(&self, width: usize, x: &'x [f32]) -> Cow<'x, [f32]> {
        let Some(sender_weights) = &self.sender_weights else { return Cow::Borrowed(x) };
        let mut weighted_rows = x.to_vec();
        weigh(sender_weights, width, &mut weighted_rows);
        Cow::Owned(weighted_rows)
    }

    fn weigh(&self, width: usize, rows: &mut [f32]) {
        if let Some(weights) = &self.weights {
            weigh(weights, width, rows);
        }
    }
}

/// Multiplies each row by its weight.
fn weigh(weights: &[f32], width: usize, rows: &mut [f32]) {
    let rows = rows.par_chunks_mut(width).zip(weights).with_min_len(4096);
    rows.for_each(|(row, weight)| row.iter_mut().for_each(|value| *value *= weight));
}
impl Propagate for Senders<'_> {
    fn nodes(&self) -> usize {
        self.graph.nodes()
    }

    fn forward(&self, width: usize, x: &[f32], out: &mut [f32]) {
        sum(self.graph, width, &self.weighted_rows(width, x), out);
        self.weigh(width, out);
    }

    fn backward(&self, width: usize, dy: &mut [f32], dx: &mut [f32]) {
        // Once for each row, rather than once for each edge.
        self.weigh(width, dy);
        sum(self.transpose.as_ref().unwrap_or(self.graph), width, dy, dx);
        if let Some(sender_weights) = &self.sender_weights {
            weigh(sender_weights, width, dx);
        }
    }

    fn forward_rows(&self, width: usize, x: &[f32], rows: &[u32], out: &mut [f32]) {
        let weighted_rows = self.weighted_rows(width, x);
        let rows = out.par_chunks_mut(width).zip(rows).with_min_len(64);
        rows.for_each(|(out, &row)| {
            out.fill(0.0);
            for &sender in self.graph.in_neighbours(row as usize) {
                let x = &weighted_rows[sender as usize * width..][..width];
                out.iter_mut().zip(x).for_each(|(sum, value)| *sum += value);
            }
            if let Some(weights) = &self.weights {
                out.iter_mut().for_each(|value| *value *= weights[row as usize]);
            }
        });
    }
}

fn sum(graph: &Graph, width: usize, rows: &[f32], sums: &mut [f32]) {
    let fits = "the caller's rows fit the graph, and sums of floats cannot overflow";
    aggregate::wide_sum(graph, width, rows, sums).expect(fits);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes 0 and 3 have no senders; 1 -> 2 and 2 -> 1 both exist, the rest is one-way.
    fn directed() -> Graph {
        Graph::from_edges(4, &[0, 2, 3, 1, 0], &[1, 1, 1, 2, 2]).unwrap()
    }

    fn rows(width: usize, seed: usize) -> Vec<f32> {
        (0..4 * width).map(|i| ((i * 37 + seed * 11) % 19) as f32 - 9.0).collect()
    }

    #[test]
    fn means_and_sums_match_the_definition_at_any_width() {
        let graph = directed();
        for width in [1, 16, 64, 65, 130] {
            let x = rows(width, 1);
            let (mut sums, mut means) = (vec![f32::NAN; x.len()], vec![f32::NAN; x.len()]);
            Senders::sum(&graph).forward(width, &x, &mut sums);
            Senders::mean(&graph).forward(width, &x, &mut means);
            for (i, senders) in [&[][..], &[0, 2, 3], &[1, 0], &[]].into_iter().enumerate() {
                for j in 0..width {
                    let sum: f32 = senders.iter().map(|&s: &usize| x[s * width + j]).sum();
                    assert_eq!(sums[i * width + j], sum);
                    assert!((means[i * width + j] - sum / senders.len().max(1) as f32).abs() < 1e-5);
                }
            }
        }
    }

    /// `dy · (A x) = (Aᵀ dy) · x`, for directed and undirected graphs.
    #[test]
    fn backward_is_the_transpose_of_forward() {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let undirected = Graph::from_edges(4, &[0, 1, 1, 2, 0, 3], &[1, 0, 2, 1, 3, 0]).unwrap();
        for graph in [directed(), undirected] {
            for senders in [
                Senders::mean(&graph),
                Senders::sum(&graph),
                Senders::weighted(&graph, vec![0.5, 1.0, 0.25, 2.0]),
            ] {
                for width in [3, 70] {
                    let (x, dy) = (rows(width, 2), rows(width, 3));
                    let (mut y, mut dx) = (vec![0.0; x.len()], vec![0.0; x.len()]);
                    senders.forward(width, &x, &mut y);
                    senders.backward(width, &mut dy.clone(), &mut dx);
                    assert!((dot(&dy, &y) - dot(&dx, &x)).abs() < 1e-2);
                    let mut some = vec![f32::NAN; 2 * width];
                    senders.forward_rows(width, &x, &[2, 1], &mut some);
                    let expected = [&y[2 * width..3 * width], &y[width..2 * width]].concat();
                    assert!(some.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5));
                }
            }
        }
    }
}
