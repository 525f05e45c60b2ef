//! The part of the data that a rank holds, and what it must know of the others.

use std::ops::Range;

use bytemuck::Pod;
use progap_graph::part::{Pairs, PartGraph};
use progap_graph::{Features, Graph, Part, Split};
use progap_nn::{Input, Inputs, Packed};
use progap_privacy::noise::{AnySource, Held, ShardMismatch, Stream};

use super::sample::sampled;
use super::{RankData, Ranks, Sent};
use crate::settings::{Level, Settings};
use crate::{Error, Result};

/// The nodes of a rank with the edges into them, and whom their messages go to.
pub(crate) struct Partition {
    pub ranks: Ranks,
    /// Where the nodes of each rank begin, and where the last end.
    pub borders: Vec<usize>,
    pub graph: PartGraph,
    /// The largest number of edges into a node of any rank.
    pub max_in_degree: usize,
    serving: Serving,
    /// The nodes of each part of the split, of all ranks.
    counts: [usize; 4],
    /// The training nodes of all ranks.
    pub train: Vec<u32>,
    /// How many training nodes have each class; nothing at node level, where labels are private.
    pub train_classes: Vec<usize>,
    /// Entries of sparse features of all ranks.
    entries: usize,
}

impl From<ShardMismatch> for Error {
    fn from(_: ShardMismatch) -> Self {
        Error::rank("the ranks do not hold all nodes once: start them with the same data")
    }
}

/// Finds out together what follows from all edges: whether each has an edge back, and how many there are.
pub(crate) fn look_at_edges(graph: &Graph, ranks: &Ranks, own: Range<usize>) -> Result<()> {
    let points = match ranks.is_first() {
        true => Some(crate::run::random_bytes::<16>()?.to_vec()),
        false => None,
    };
    let points: Vec<u64> = bytemuck::pod_collect_to_vec(&ranks.broadcast(Sent::Agreement, points)?);
    let pairs = graph.pairs(own, [points[0], points[1]])?;
    let all = ranks.numbers(Sent::Agreement, &pairs.to_numbers())?;
    let numbers = |numbers: &Vec<u64>| <[u64; 5]>::try_from(&numbers[..]).ok().map(Pairs::from_numbers);
    let all: Option<Vec<Pairs>> = all.iter().map(numbers).collect();
    let all = all.ok_or_else(|| Error::rank("a rank does not count edges"))?;
    graph.know(all.into_iter().fold(Pairs::NONE, Pairs::and));
    Ok(())
}

const PARTS: [Part; 4] = [Part::Train, Part::Val, Part::Test, Part::Unused];

impl Partition {
    /// The part of this rank; with a sample, in which senders keep so many edges, chosen by these bits.
    pub fn new(
        data: &RankData,
        settings: &Settings,
        ranks: &Ranks,
        sample: Option<(usize, Stream<AnySource>)>,
    ) -> Result<Partition> {
        let (dataset, borders) = (&data.dataset, data.borders.clone());
        let graph = PartGraph::new(dataset.graph(), data.own.clone());
        let graph = match sample {
            None => graph,
            Some((most, mut stream)) => sampled(graph, (ranks, &borders), most, &mut stream)?,
        };
        let split = dataset.split().cloned().unwrap_or_else(|| Split::from_parts(std::iter::empty()));
        let train: Vec<u32> = split.nodes(Part::Train).map(|node| node as u32).collect();
        let counts = PARTS.map(|part| split.count(part));
        let mut train_classes = vec![0; dataset.classes()];
        if settings.level != Level::Node {
            train.iter().for_each(|&node| train_classes[dataset.labels()[node as usize] as usize] += 1);
        }
        let serving = Serving::new(&graph, ranks, &borders, Sent::Agreement)?;
        let degrees = ranks.numbers(Sent::Agreement, &[graph.max_in_degree() as u64])?;
        let max_in_degree = degrees.iter().flatten().copied().max().unwrap_or(0) as usize;
        Ok(Partition {
            ranks: ranks.clone(),
            borders,
            graph,
            max_in_degree,
            serving,
            counts,
            train,
            train_classes,
            entries: data.entries,
        })
    }

    /// The nodes of this rank.
    pub fn own(&self) -> Range<usize> {
        self.borders[self.ranks.rank()]..self.borders[self.ranks.rank() + 1]
    }

    /// The nodes of all ranks.
    pub fn nodes(&self) -> usize {
        self.borders[self.ranks.size()]
    }

    /// The rank that holds a node.
    pub fn rank_of(&self, node: u32) -> usize {
        self.borders.partition_point(|&border| border <= node as usize) - 1
    }

    /// How many nodes of all ranks are in a part of the split.
    pub fn count(&self, part: Part) -> usize {
        PARTS.iter().zip(self.counts).find(|(known, _)| **known == part).map_or(0, |(_, count)| count)
    }

    /// Values that copies of all training rows have: of dense inputs with these columns, and of sparse features.
    pub fn are_few(&self, features: &Features, aggregates: usize) -> bool {
        let own = match features {
            Features::Dense { columns, .. } | Features::Half { columns, .. } => self.train.len() * columns,
            Features::Sparse { .. } => 2 * self.entries,
        };
        Packed::are_few(own + self.train.len() * aggregates)
    }

    /// About how many values a row of these inputs has: the same number on all ranks.
    pub fn values_of_a_row(&self, inputs: &Inputs<'_>) -> usize {
        let values = |input: &Input<'_>| match *input {
            Input::Dense { columns, .. } | Input::Half { columns, .. } => columns,
            Input::Sparse { .. } => 2 * self.entries / self.nodes().max(1),
        };
        1 + inputs.as_slice().iter().map(values).sum::<usize>()
    }

    /// Which of a query's values are those of this rank.
    pub fn held(&self, width: usize) -> Held {
        let own = self.own();
        Held { range: own.start * width..own.end * width, of: self.nodes() * width }
    }

    /// The messages of all senders, given those of the own nodes.
    pub fn messages<T: Pod>(&self, own: &[T], width: usize) -> Result<Vec<T>> {
        let serve = |nodes: &Vec<u32>| {
            let mut bytes = Vec::with_capacity(nodes.len() * width * size_of::<T>());
            for &node in nodes {
                bytes.extend_from_slice(bytemuck::cast_slice(&own[node as usize * width..][..width]));
            }
            bytes
        };
        let come = self.ranks.exchange(Sent::Messages, self.serving.nodes.iter().map(serve).collect())?;
        let expected =
            |rank: usize| senders_of(&self.graph, &self.borders, rank).len() * width * size_of::<T>();
        if come.iter().enumerate().any(|(rank, bytes)| bytes.len() != expected(rank)) {
            return Err(ShardMismatch.into());
        }
        // Senders ascend, and so do ranks.
        let mut all = vec![T::zeroed(); self.graph.senders().len() * width];
        let mut rest = bytemuck::cast_slice_mut::<T, u8>(&mut all);
        for bytes in come {
            let (place, after) = rest.split_at_mut(bytes.len());
            place.copy_from_slice(&bytes);
            rest = after;
        }
        Ok(all)
    }

    /// The edges out of each own node, of all ranks together.
    pub fn out_degrees(&self) -> Result<Vec<u32>> {
        let counts = self.serving.counts(&self.graph, &self.ranks, &self.borders, Sent::Agreement)?;
        Ok(self.serving.added_up(&counts))
    }

    /// Counts of all ranks, added up.
    pub fn added_up(&self, own: &[i64]) -> Result<Vec<i64>> {
        let all: Vec<i64> = self.gather(own)?;
        Ok((0..own.len()).map(|at| all.iter().skip(at).step_by(own.len()).sum()).collect())
    }

    /// Values of all ranks, one after the other.
    pub fn gather<T: Pod>(&self, own: &[T]) -> Result<Vec<T>> {
        let all = self.ranks.all_gather(Sent::Sums, bytemuck::cast_slice(own).to_vec())?;
        Ok(all.iter().flat_map(|bytes| bytemuck::pod_collect_to_vec::<u8, T>(bytes)).collect())
    }
}

/// Whom a rank serves.
pub(super) struct Serving {
    /// For each rank, the own nodes that have a receiver there.
    pub nodes: Vec<Vec<u32>>,
    own: usize,
}

impl Serving {
    /// Asks all ranks for what this one needs, and learns what they need.
    pub fn new(graph: &PartGraph, ranks: &Ranks, borders: &[usize], what: Sent) -> Result<Serving> {
        let needs = |rank: usize| -> Vec<u8> {
            let senders = &graph.senders()[senders_of(graph, borders, rank)];
            let local: Vec<u32> = senders.iter().map(|&node| node - borders[rank] as u32).collect();
            bytemuck::cast_slice(&local).to_vec()
        };
        let asked = ranks.exchange(what, (0..ranks.size()).map(needs).collect())?;
        let nodes: Vec<Vec<u32>> = asked.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).collect();
        let own = borders[ranks.rank() + 1] - borders[ranks.rank()];
        if nodes.iter().flatten().any(|&node| node as usize >= own) {
            return Err(ShardMismatch.into());
        }
        Ok(Serving { nodes, own })
    }

    /// For each rank, how many edges into its nodes each of [`Serving::nodes`] has.
    pub fn counts(
        &self,
        graph: &PartGraph,
        ranks: &Ranks,
        borders: &[usize],
        what: Sent,
    ) -> Result<Vec<Vec<u32>>> {
        let sent = graph.sent()?;
        let of = |rank: usize| bytemuck::cast_slice(&sent[senders_of(graph, borders, rank)]).to_vec();
        let come = ranks.exchange(what, (0..ranks.size()).map(of).collect())?;
        let counts: Vec<Vec<u32>> = come.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).collect();
        let fit = counts.iter().zip(&self.nodes).all(|(counts, nodes)| counts.len() == nodes.len());
        if fit { Ok(counts) } else { Err(ShardMismatch.into()) }
    }

    /// The counts of each own node, added up.
    pub fn added_up(&self, counts: &[Vec<u32>]) -> Vec<u32> {
        let mut sums = vec![0u32; self.own];
        for (&node, count) in self.nodes.iter().flatten().zip(counts.iter().flatten()) {
            sums[node as usize] += count;
        }
        sums
    }
}

/// The senders that a rank holds, by their places.
pub(super) fn senders_of(graph: &PartGraph, borders: &[usize], rank: usize) -> Range<usize> {
    let before = |node: usize| graph.senders().partition_point(|&sender| (sender as usize) < node);
    before(borders[rank])..before(borders[rank + 1])
}
