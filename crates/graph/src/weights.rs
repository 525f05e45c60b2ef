//! Weights of edges: how much of a message an edge carries, from 0 to 1.
//!
//! A graph has a weight for every edge, or none, which is the same as 1 everywhere. Of repeated edges the largest
//! weight counts, and an edge back that is added gets the weight of its edge.

use crate::{Buffer, Graph, GraphBuilder, Place, Problem, Result, room};

/// Weights are used in steps of one over this: a power of two, so that they are rounded down exactly.
const STEPS: f32 = 65_536.0;

/// Where the weights of edges stand in files, and the public maximum that they are divided by.
///
/// The maximum is declared and never computed: the largest of all weights is one edge's, and would move every other
/// weight.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeWeights {
    name: String,
    bound: f64,
}

impl EdgeWeights {
    /// The name of a column, an attribute or an array (the usual name `weight` stands for all names that are known),
    /// and the bound.
    ///
    /// # Errors
    /// A bound that is no positive number.
    pub fn new(name: impl Into<String>, bound: f64) -> Result<EdgeWeights> {
        check_bound(bound)?;
        Ok(EdgeWeights { name: name.into(), bound })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The public maximum.
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// The weight of an edge, from 0 to 1: what lies outside is clamped, and NaN is 0, so that no value of a private
    /// edge decides whether it can be read.
    pub fn of(&self, value: f64) -> f32 {
        let share = (value / self.bound).clamp(0.0, 1.0);
        if share.is_nan() { 0.0 } else { share as f32 }
    }

    /// A graph of edges with such weights.
    ///
    /// # Errors
    /// As [`Graph::from_weighted_edges`].
    pub fn graph(&self, nodes: usize, sources: &[u32], targets: &[u32], weights: &[f32]) -> Result<Graph> {
        Graph::from_weighted_edges(nodes, sources, targets, weights)?.with_weight_bound(self.bound)
    }
}

fn check_bound(bound: f64) -> Result<()> {
    match bound > 0.0 && bound.is_finite() {
        true => Ok(()),
        false => Err(Problem::Invalid(format!(
            "{bound} cannot be the public maximum of weights: give a number above 0"
        ))
        .into()),
    }
}

/// The weight in whole steps of 1 / 65,536, rounded down.
#[inline(always)]
pub(crate) fn in_steps(weight: f32) -> u32 {
    (weight * STEPS) as u32
}

impl Graph {
    /// The same edges with weights: those of [`Graph::senders`], in that order.
    ///
    /// # Errors
    /// Weights that are not as many as edges, or one below 0 or above 1.
    pub fn with_weights(self, weights: impl Into<Buffer<f32>>) -> Result<Graph> {
        let weights = weights.into();
        if weights.len() != self.edges() {
            return Err(length(weights.len(), self.edges()));
        }
        let wrong = |weight: &f32| !(0.0..=1.0).contains(weight);
        match weights.iter().position(wrong) {
            None => Ok(self.with_valid_weights(Some(weights))),
            Some(at) => {
                let place = Place::Element { key: "weights".into(), index: at as u64 };
                Err(Problem::NotAWeight(weights[at].into()).at(place))
            }
        }
    }

    /// A graph from parallel lists of sources, targets and weights.
    ///
    /// ```
    /// use progap_graph::Graph;
    ///
    /// let graph = Graph::from_weighted_edges(3, &[0, 2], &[1, 1], &[0.5, 1.0])?;
    /// assert_eq!(graph.weights(), Some(&[0.5, 1.0][..]));
    /// # Ok::<(), progap_graph::Error>(())
    /// ```
    ///
    /// # Errors
    /// Lists of different lengths, nodes that are not there, a weight below 0 or above 1.
    pub fn from_weighted_edges(
        nodes: usize,
        sources: &[u32],
        targets: &[u32],
        weights: &[f32],
    ) -> Result<Graph> {
        if sources.len() != targets.len() || sources.len() != weights.len() {
            return Err(length(weights.len().min(targets.len()), sources.len()));
        }
        let mut builder = GraphBuilder::new(nodes)?;
        for (&source, &target) in sources.iter().zip(targets) {
            builder.count(source, target)?;
        }
        // In the order of receivers, then senders, then weights: rows as a graph has them.
        let mut order: Vec<usize> = room::with_room(sources.len())?;
        order.extend(0..sources.len());
        order.sort_unstable_by(|&a, &b| {
            (targets[a], sources[a]).cmp(&(targets[b], sources[b])).then(weights[a].total_cmp(&weights[b]))
        });
        let mut filler = builder.fill()?;
        order.iter().for_each(|&edge| filler.place(sources[edge], targets[edge]));
        filler.finish()?.with_weights(order.iter().map(|&edge| weights[edge]).collect::<Vec<f32>>())
    }

    /// The public maximum that weights were divided by, where it is known.
    pub fn weight_bound(&self) -> Option<f64> {
        self.weight_bound.filter(|_| self.weights().is_some())
    }

    pub(crate) fn with_valid_bound(mut self, weight_bound: Option<f64>) -> Graph {
        self.weight_bound = weight_bound;
        self
    }

    /// The same weights, which were divided by this public maximum.
    ///
    /// # Errors
    /// A bound that is no positive number.
    pub fn with_weight_bound(self, bound: f64) -> Result<Graph> {
        check_bound(bound)?;
        Ok(self.with_valid_bound(Some(bound)))
    }

    /// The same edges, each as good as any other.
    #[must_use]
    pub fn without_weights(self) -> Graph {
        self.with_valid_weights(None)
    }

    /// The weight of the edge at a place of [`Graph::senders`]; 1 where there are no weights.
    pub(crate) fn weight(&self, edge: usize) -> f32 {
        self.weights().map_or(1.0, |weights| weights[edge])
    }

    /// All edges as (source, target, weight), by target.
    pub fn iter_weighted_edges(&self) -> impl Iterator<Item = (u32, u32, f32)> + '_ {
        self.iter_edges().enumerate().map(|(at, (source, target))| (source, target, self.weight(at)))
    }

    /// For each node the sum of the squares of the weights of the edges out of it, rounded up to a whole number: by how
    /// much the square of a message's length is multiplied on its way. Without weights that is the number of edges.
    ///
    /// # Proof definition
    /// [`crate::weighted::wide_sum`] sends along an edge at most `in_steps(weight) / 65536` of each entry; the squares of these numbers are
    /// added here in integers and rounded up, so that the copies of an integer message `z` along all edges of a sender
    /// have squares summing to at most `d |z|^2`, exactly, for the `d` that is returned.
    pub fn out_strengths(&self) -> Vec<u32> {
        if self.weights().is_none() {
            return self.out_degrees();
        }
        let mut squares = vec![0u128; self.nodes()];
        for (source, _, weight) in self.iter_weighted_edges() {
            squares[source as usize] += u128::from(in_steps(weight)).pow(2);
        }
        let unit = u128::from(in_steps(1.0)).pow(2);
        // At most the number of edges out of the node, which has 32 bits.
        squares.into_iter().map(|sum| u32::try_from(sum.div_ceil(unit)).unwrap_or(u32::MAX)).collect()
    }

    /// As [`Graph::out_strengths`], where a receiver multiplies what comes to it with a whole number of its own.
    ///
    /// # Proof definition
    /// The copies of an integer message `z` along all edges of a sender, each times the number of its receiver, have
    /// squares summing to at most `d |z|^2`, exactly, for the `d` that is returned: `d` is the sum of the squares of
    /// the products of edge weights and receivers' numbers, in integers, rounded up.
    ///
    /// # Errors
    /// Numbers that are not one for each node, or a sum of squares beyond 32 bits.
    pub fn out_strengths_to(&self, receivers: &[u8]) -> Result<Vec<u32>> {
        if receivers.len() != self.nodes() {
            return Err(length(receivers.len(), self.nodes()));
        }
        let too_large = || Problem::TooLarge("the squares of a sender's weights exceed 32 bits".into());
        let mut squares = vec![0u128; self.nodes()];
        let unit = u128::from(in_steps(1.0)).pow(2);
        for (source, target, weight) in self.iter_weighted_edges() {
            squares[source as usize] +=
                (u128::from(in_steps(weight)) * u128::from(receivers[target as usize])).pow(2);
        }
        let strength = |sum: u128| u32::try_from(sum.div_ceil(unit)).map_err(|_| too_large().into());
        squares.into_iter().map(strength).collect()
    }

    /// The graph of the edges that a function makes of this one's, weights included.
    pub(crate) fn rebuilt(
        &self,
        nodes: usize,
        edges: impl Iterator<Item = (u32, u32, f32)>,
    ) -> Result<Graph> {
        let (mut sources, mut targets, mut weights) = (vec![], vec![], vec![]);
        for (source, target, weight) in edges {
            room::push(&mut sources, source)?;
            room::push(&mut targets, target)?;
            room::push(&mut weights, weight)?;
        }
        let graph = Graph::from_weighted_edges(nodes, &sources, &targets, &weights)?;
        let graph = if self.weights().is_some() { graph } else { graph.without_weights() };
        Ok(graph.with_valid_bound(self.weight_bound()))
    }

    /// Each edge with the largest weight that any of its copies has.
    pub(crate) fn with_largest_of_equals(self) -> Graph {
        let Some(weights) = self.weights() else { return self };
        let (mut weights, senders) = (weights.to_vec(), self.senders());
        for row in self.offsets().windows(2) {
            let (start, end) = (row[0] as usize, row[1] as usize);
            // From both sides, so that every copy gets the largest.
            for at in (start + 1..end).chain((start + 1..end).rev()) {
                if senders[at] == senders[at - 1] {
                    let largest = weights[at].max(weights[at - 1]);
                    (weights[at], weights[at - 1]) = (largest, largest);
                }
            }
        }
        self.with_valid_weights(Some(weights.into()))
    }
}

fn length(found: usize, expected: usize) -> crate::Error {
    let (found, expected) = (found as u64, expected as u64);
    Problem::Length { what: "list of weights".into(), found, expected }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform;

    fn edges(graph: &Graph) -> Vec<(u32, u32, f32)> {
        graph.iter_weighted_edges().collect()
    }

    #[test]
    fn weights_stay_with_their_edges() {
        let graph =
            Graph::from_weighted_edges(3, &[2, 0, 1, 0], &[1, 1, 2, 0], &[0.25, 0.5, 0.75, 1.0]).unwrap();
        assert_eq!(edges(&graph), [(0, 0, 1.0), (0, 1, 0.5), (2, 1, 0.25), (1, 2, 0.75)]);
        assert_eq!(edges(&graph.transpose()), [(0, 0, 1.0), (1, 0, 0.5), (2, 1, 0.75), (1, 2, 0.25)]);
        assert_eq!(graph.transpose().transpose(), graph);
        let no_loops = transform::remove_self_loops(graph.clone());
        assert_eq!(edges(&no_loops), [(0, 1, 0.5), (2, 1, 0.25), (1, 2, 0.75)]);
        // An edge that had its edge back keeps both weights.
        let both = transform::symmetrise(no_loops);
        assert_eq!(edges(&both), [(1, 0, 0.5), (0, 1, 0.5), (2, 1, 0.25), (1, 2, 0.75)]);
        let part = transform::induced_graph(&both, &[2, 1]).unwrap();
        assert_eq!(edges(&part), [(1, 0, 0.75), (0, 1, 0.25)]);
        let plain = part.clone().without_weights();
        assert_eq!(edges(&plain), [(1, 0, 1.0), (0, 1, 1.0)]);
        assert_ne!(part, plain);
    }

    #[test]
    fn of_repeated_edges_the_largest_weight_counts() {
        let graph =
            Graph::from_weighted_edges(2, &[0, 0, 0, 1], &[1, 1, 1, 1], &[0.5, 0.75, 0.25, 0.125]).unwrap();
        assert_eq!(edges(&transform::deduplicate(graph)), [(0, 1, 0.75), (1, 1, 0.125)]);
    }

    #[test]
    fn what_is_no_weight_is_refused_with_its_place() {
        for wrong in [-0.1, 1.5, f32::NAN, f32::INFINITY] {
            let error = Graph::from_weighted_edges(2, &[0, 1], &[1, 0], &[0.5, wrong]).unwrap_err();
            assert!(error.to_string().contains("between 0 and 1"), "{error}");
        }
        let graph = Graph::from_edges(2, &[0], &[1]).unwrap();
        assert!(graph.with_weights(vec![0.5, 0.5]).is_err());
    }

    #[test]
    fn strengths_are_rounded_up() {
        let graph =
            Graph::from_weighted_edges(4, &[0, 0, 1, 2, 2], &[1, 2, 0, 0, 1], &[0.6, 0.8, 0.1, 1.0, 0.1])
                .unwrap();
        let strengths = graph.out_strengths();
        // Weights are rounded down to steps, so that 0.36 + 0.64 is no more than 1.
        assert_eq!(strengths, [1, 1, 2, 0]);
        // Node 0 sends 3 times 0.6 to node 1 and twice 0.8 to node 2: 3.24 + 2.56.
        assert_eq!(graph.out_strengths_to(&[5, 3, 2, 1]).unwrap(), [6, 1, 26, 0]);
        assert!(graph.out_strengths_to(&[5, 3, 2]).is_err());
        let plain = graph.without_weights();
        assert_eq!(plain.out_strengths(), [2, 1, 2, 0]);
        assert_eq!(plain.out_strengths_to(&[5, 3, 2, 1]).unwrap(), [13, 25, 34, 0]);
    }
}
