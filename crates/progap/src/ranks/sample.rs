//! A sample of each sender's edges where receivers lie in several ranks. The rank that has a sender chooses for it,
//! with the bits with which one process would, and tells the others which of their edges stay.

use progap_graph::part::{PartGraph, Staying};
use progap_privacy::noise::{AnySource, ShardMismatch, Stream};

use super::held::{Serving, senders_of};
use super::{Ranks, Sent};
use crate::vault::{choose, pass_over};
use crate::{Error, Result};

/// In the place of a number of edges: all of them stay.
const ALL: u32 = u32::MAX;

/// The part of a graph in which every sender keeps at most `most` edges of those into nodes of all ranks.
pub(super) fn sampled(
    graph: PartGraph,
    (ranks, borders): (&Ranks, &[usize]),
    most: usize,
    stream: &mut Stream<AnySource>,
) -> Result<PartGraph> {
    let serving = Serving::new(&graph, ranks, borders, Sent::Sample)?;
    let counts = serving.counts(&graph, ranks, borders, Sent::Sample)?;
    let degrees = serving.added_up(&counts);
    let many: Vec<u32> = degrees.iter().copied().filter(|&degree| degree as usize > most).collect();
    let all = ranks.all_gather(Sent::Sample, bytemuck::cast_slice(&many).to_vec())?;
    for degrees in &all[..ranks.rank()] {
        let degrees: Vec<u32> = bytemuck::pod_collect_to_vec(degrees);
        degrees.into_iter().for_each(|degree| pass_over(stream, degree as usize, most));
    }
    let mut chosen: Vec<Option<Choice>> =
        degrees.iter().map(|&degree| Choice::new(stream, degree as usize, most)).collect();
    let mut told = vec![];
    for (nodes, counts) in serving.nodes.iter().zip(&counts) {
        let mut words = vec![];
        for (&node, &count) in nodes.iter().zip(counts) {
            match &mut chosen[node as usize] {
                None => words.push(ALL),
                Some(choice) => choice.tell(count, &mut words),
            }
        }
        told.push(bytemuck::cast_slice(&words).to_vec());
    }
    drop((serving, chosen));
    let come = ranks.exchange(Sent::Sample, told)?;
    let mut staying = Staying::default();
    for (rank, bytes) in come.iter().enumerate() {
        let words: Vec<u32> = bytemuck::pod_collect_to_vec(bytes);
        hear(&words, senders_of(&graph, borders, rank).len(), &mut staying).ok_or(ShardMismatch)?;
    }
    graph.keeping(&staying).map_err(Error::from)
}

/// The edges that a sender keeps of more than it may have.
struct Choice {
    /// The places of the edges, ascending.
    places: Vec<u32>,
    /// Places that were told, and edges that were passed.
    told: usize,
    passed: u32,
}

impl Choice {
    fn new(stream: &mut Stream<AnySource>, degree: usize, most: usize) -> Option<Choice> {
        (degree > most).then(|| {
            let mut places = choose(stream, degree, most);
            places.sort_unstable();
            Choice { places, told: 0, passed: 0 }
        })
    }

    /// Tells the next rank, which has the next `count` of the edges, how many of them stay and which.
    fn tell(&mut self, count: u32, words: &mut Vec<u32>) {
        let end = self.places.partition_point(|&place| place < self.passed + count);
        words.push((end - self.told) as u32);
        words.extend(self.places[self.told..end].iter().map(|place| place - self.passed));
        (self.told, self.passed) = (end, self.passed + count);
    }
}

/// Takes over what a rank told of this many senders.
fn hear(mut words: &[u32], senders: usize, staying: &mut Staying) -> Option<()> {
    for _ in 0..senders {
        let (&count, rest) = words.split_first()?;
        words = rest;
        if count == ALL {
            staying.all();
        } else {
            let (places, rest) = words.split_at_checked(count as usize)?;
            staying.only(places);
            words = rest;
        }
    }
    words.is_empty().then_some(())
}
