//! Sums of old nodes' messages over the edges of nodes that were not there in training, with Gaussian noise.

use progap_graph::transform::{deduplicate, symmetrise};
use progap_graph::{Graph, weighted};
use progap_privacy::noise::{Quantiser, Randomness, RunKey, SenderBound, choose_scale};

use super::Noise;
use crate::settings::{Direction, Settings};
use crate::{Error, Result};

/// The edges between old and new nodes, locked up: what leaves are noisy sums, a number of times that is fixed at the
/// start.
///
/// # Proof definition
/// Which nodes are old and which are new is public. Edges between two old nodes are refused and those between two new
/// ones dropped, so that every edge here is a record that no earlier query of the release was about. The row of a new
/// node is the sum of the messages of the old nodes that send to it. These messages are functions of the release, and
/// their norm of at most one is checked in integers: one directed edge, or both directions between two nodes, moves one
/// row of each sum by at most one. So each sum is post-processing of a Gaussian mechanism with a sensitivity of at most
/// one and the noise `sigma` ([proof](progap_privacy::proofs::rounding)). Noise is that of (key, label, exact sums),
/// and labels name the public part of the question: two questions share noise only where they are one.
pub(crate) struct LaterEdges {
    /// One for each way of messages: the senders of each node.
    ways: Vec<Graph>,
    old: usize,
    sigma: f64,
    left: usize,
    noise: Noise,
    left_out: usize,
}

/// How many nodes an edge may name: first those of the release, then those that are asked about; perhaps others after
/// them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub old: usize,
    pub new: usize,
}

impl LaterEdges {
    /// Locks up the edges of a graph, for this many sums with this noise.
    ///
    /// # Errors
    /// An edge between two old nodes, which may be one that was trained on.
    pub fn new(
        graph: &Graph,
        Sizes { old, new }: Sizes,
        settings: &Settings,
        (sigma, sums): (f64, usize),
        key: RunKey,
        name: &dyn Fn(usize) -> String,
    ) -> Result<Self> {
        let (mut sources, mut targets, mut left_out) = (vec![], vec![], 0);
        for to in 0..graph.nodes() {
            for &from in graph.in_neighbours(to) {
                let ends = [from as usize, to];
                match ends.map(|end| (end < old, end < old + new)) {
                    [(true, _), (true, _)] => {
                        return Err(Error::unsuitable(format!(
                            "the edge {:?} -> {:?} joins two nodes of the release, which may have been trained on it: list edges \
                             with a new node at one end",
                            name(ends[0]),
                            name(to)
                        )));
                    }
                    [(true, _), (false, true)] | [(false, true), (true, _)] => {
                        sources.push(from);
                        targets.push(to as u32);
                    }
                    [(false, true), (false, true)] => left_out += 1,
                    _ => {}
                }
            }
        }
        let graph = Graph::from_edges(old + new, &sources, &targets)?;
        let graph = deduplicate(if settings.undirected { symmetrise(graph) } else { graph });
        let ways = match settings.direction {
            Direction::In => vec![graph],
            Direction::Out => vec![graph.transpose()],
            Direction::Both => {
                let back = graph.transpose();
                vec![graph, back]
            }
        };
        let noise = Noise::new(Randomness::from_key(key).erase(), None);
        Ok(LaterEdges { ways, old, sigma, left: sums, noise, left_out })
    }

    /// How many edges join two new nodes, which are not asked about: **for the data owner alone**.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// A keyed digest of all edges.
    pub fn digest(&self, digest: impl FnOnce(&str) -> Result<String>) -> Result<String> {
        let mut text = String::new();
        for graph in &self.ways {
            for to in 0..graph.nodes() {
                graph.in_neighbours(to).iter().for_each(|from| text += &format!("{from}>{to} "));
            }
        }
        digest(&text)
    }

    /// The next noisy sums, a row for each new node: of the old nodes' messages, of this width.
    ///
    /// # Errors
    /// One more than was agreed on; messages that are not those of all old nodes.
    pub fn sums(&mut self, label: &str, way: usize, messages: &[f32], width: usize) -> Result<Vec<f32>> {
        let left = self.left.checked_sub(1).ok_or(Error::internal("more sums than were charged"))?;
        let graph = self.ways.get(way).ok_or(Error::internal("messages go along the edges only"))?;
        if width == 0 || messages.len() != self.old * width {
            return Err(Error::internal("every old node sends one message"));
        }
        let (_, scale) = choose_scale(self.sigma, 1.0)?;
        let quantiser = Quantiser::<i16>::new(scale)?;
        let budgets = vec![quantiser.budget(SenderBound::Edge, 0)?; self.old];
        // New nodes say nothing to each other.
        let mut integers = vec![0i16; graph.nodes() * width];
        quantiser.rows(messages, width, &budgets, &mut integers[..self.old * width])?;
        let mut sums = vec![0i64; integers.len()];
        weighted::wide_sum(graph, width, &integers, &mut sums)?;
        let of_new = sums.split_off(self.old * width);
        let query = self.noise.query(label)?;
        let table = self.noise.table(self.sigma, quantiser.scale())?;
        self.left = left;
        let threads = rayon::current_num_threads();
        Ok(table.release_owned(of_new, quantiser.scale(), query, threads).into_parts().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Level;
    use crate::{MethodKind, Result};

    const OLD: usize = 3;

    fn settings(undirected: bool, direction: Direction) -> Settings {
        Settings { undirected, direction, ..Settings::of(MethodKind::ProgapViews, Level::Edge) }
    }

    fn locked(edges: &[(u32, u32)], settings: &Settings, sigma: f64, key: u8) -> Result<LaterEdges> {
        let (from, to): (Vec<u32>, Vec<u32>) = edges.iter().copied().unzip();
        // One more, which is not asked about.
        let graph = Graph::from_edges(OLD + 3, &from, &to).unwrap();
        let (key, sizes) = (RunKey::from_bytes(&[key; RunKey::BYTES]), Sizes { old: OLD, new: 2 });
        LaterEdges::new(&graph, sizes, settings, (sigma, 2), key, &|node| format!("n{node}"))
    }

    const MESSAGES: [f32; 6] = [1.0, 0.0, 0.0, 1.0, 0.6, 0.8];

    /// Without its noise a row is the sum of the messages of its old senders, each once; new nodes say nothing.
    #[test]
    fn rows_are_sums_over_the_new_edges_in_every_direction() {
        let edges = [(0, 3), (0, 3), (1, 3), (4, 2), (3, 4), (3, 3), (5, 0), (5, 3)];
        assert_eq!(locked(&edges, &settings(true, Direction::In), 1.0, 1).unwrap().left_out(), 2);
        let near = |undirected, direction, way: usize, expected: [f32; 4]| {
            // So little noise that it can be told from the sums, and so many draws that its size can.
            let mut all = [0.0; 4];
            for key in 0..200 {
                let settings = settings(undirected, direction);
                let mut edges = locked(&edges, &settings, 0.05, key).unwrap();
                let sums = edges.sums("a", way, &MESSAGES, 2).unwrap();
                all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum / 200.0);
            }
            for (found, expected) in all.iter().zip(expected) {
                assert!((found - expected).abs() < 0.025, "{undirected} {direction:?} {way}: {all:?}");
            }
        };
        near(false, Direction::In, 0, [1.0, 1.0, 0.0, 0.0]);
        near(false, Direction::Out, 0, [0.0, 0.0, 0.6, 0.8]);
        near(false, Direction::Both, 1, [0.0, 0.0, 0.6, 0.8]);
        near(true, Direction::In, 0, [1.0, 1.0, 0.6, 0.8]);
    }

    /// One edge more moves one row by a message, whose norm is at most one however large it was; the noise has the
    /// deviation that is charged.
    #[test]
    fn sensitivity_and_noise_are_those_that_are_charged() {
        let plain = settings(true, Direction::In);
        let large = MESSAGES.map(|value| 1e6 * value);
        let mean = |edges: &[(u32, u32)], sigma: f64| {
            let (mut sums, mut squares) = (vec![0.0f64; 4], 0.0);
            for key in 0..250u8 {
                let values = locked(edges, &plain, sigma, key).unwrap().sums("a", 0, &large, 2).unwrap();
                sums.iter_mut().zip(&values).for_each(|(sum, value)| *sum += f64::from(*value) / 250.0);
                squares += values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>() / 1000.0;
            }
            (sums, squares.sqrt())
        };
        let (with, without) = (mean(&[(0, 3), (2, 4)], 0.02).0, mean(&[(0, 3)], 0.02).0);
        let moved = with.iter().zip(&without).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        assert!((moved - 1.0).abs() < 0.02, "{moved}");
        let deviation = mean(&[], 3.0).1;
        assert!((deviation - 3.0).abs() < 0.25, "{deviation}");
    }

    #[test]
    fn the_same_question_has_the_same_noise_and_any_other_its_own() {
        let plain = settings(true, Direction::In);
        let ask = |edges: &[(u32, u32)], label: &str, key: u8| {
            locked(edges, &plain, 4.0, key).unwrap().sums(label, 0, &MESSAGES, 2).unwrap()
        };
        let first = ask(&[(0, 3), (1, 4)], "a", 1);
        assert_eq!(first, ask(&[(4, 1), (3, 0), (0, 3)], "a", 1), "the same undirected edges");
        for other in [ask(&[(0, 3), (1, 4)], "b", 1), ask(&[(0, 3), (1, 4)], "a", 2), ask(&[(0, 3)], "a", 1)]
        {
            assert!(first.iter().zip(&other).all(|(a, b)| a != b), "{first:?} {other:?}");
        }
    }

    #[test]
    fn no_more_is_asked_than_was_charged_and_old_edges_are_refused() {
        let plain = settings(true, Direction::In);
        let mut edges = locked(&[(0, 3)], &plain, 4.0, 1).unwrap();
        assert!(edges.sums("a", 1, &MESSAGES, 2).is_err() && edges.sums("a", 0, &MESSAGES[..4], 2).is_err());
        assert!(edges.sums("a", 0, &MESSAGES, 2).is_ok() && edges.sums("b", 0, &MESSAGES, 2).is_ok());
        assert!(edges.sums("c", 0, &MESSAGES, 2).unwrap_err().to_string().contains("charged"));
        let refusal = locked(&[(0, 3), (2, 1)], &plain, 4.0, 1).err().unwrap().to_string();
        assert!(refusal.contains("\"n2\" -> \"n1\""), "{refusal}");
        let digest = |edges: &[(u32, u32)]| {
            locked(edges, &plain, 4.0, 1).unwrap().digest(|text| Ok(text.into())).unwrap()
        };
        assert_eq!(digest(&[(0, 3)]), digest(&[(3, 0), (3, 4)]));
        assert_ne!(digest(&[(0, 3)]), digest(&[(0, 4)]));
    }
}
