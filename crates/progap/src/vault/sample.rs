//! A sample of each sender's edges, which bounds what a node can say without weights.

use std::num::NonZeroU64;

use progap_graph::Graph;
use progap_privacy::noise::{AnySource, Randomness, Stream};

use crate::Result;

/// The bits that choose edges: the same in every process of a run.
pub(super) fn sample_stream(randomness: &mut Randomness<AnySource>) -> Result<Stream<AnySource>> {
    Ok(randomness.lasting_purpose("sample of out-edges")?.stream())
}

/// The places, in the order of receivers and in any order, of the edges that a sender keeps: all, or `most` of them.
/// Senders choose one after the other, by the number of their edges alone.
pub(crate) fn choose(stream: &mut Stream<AnySource>, edges: usize, most: usize) -> Vec<u32> {
    let mut places: Vec<u32> = (0..edges as u32).collect();
    if edges > most {
        for at in 0..most {
            places.swap(at, at + below(stream, edges - at));
        }
        places.truncate(most);
    }
    places
}

/// Passes over the choice of a sender that is made elsewhere.
pub(crate) fn pass_over(stream: &mut Stream<AnySource>, edges: usize, most: usize) {
    if edges > most {
        for at in 0..most {
            below(stream, edges - at);
        }
    }
}

fn below(stream: &mut Stream<AnySource>, left: usize) -> usize {
    NonZeroU64::new(left as u64).map_or(0, |left| stream.below(left) as usize)
}

/// Keeps at most `max_edges` of each sender's edges, chosen at random by the sender alone. The choice is the same in
/// every process of a run. All senders draw from one stream, one after the other, so that their choices are independent
/// whatever the numbers of their edges: without a record the others choose by the same law. The stream is secret, as
/// that of noise is: with its bits known, a record would move the choices of those who draw after it.
pub(super) fn sample_out_edges(
    graph: &Graph,
    max_edges: u32,
    randomness: &mut Randomness<AnySource>,
) -> Result<Graph> {
    let mut stream = sample_stream(randomness)?;
    let by_sender = graph.transpose();
    let (mut offsets, mut kept, mut weights) = (vec![0u64], vec![], vec![]);
    for sender in 0..by_sender.nodes() {
        let (first, receivers) = (by_sender.offsets()[sender] as usize, by_sender.in_neighbours(sender));
        let chosen = choose(&mut stream, receivers.len(), max_edges as usize);
        kept.extend(chosen.iter().map(|&place| receivers[place as usize]));
        offsets.push(kept.len() as u64);
        if let Some(all) = by_sender.weights() {
            weights.extend(chosen.iter().map(|&place| all[first + place as usize]));
        }
    }
    drop(by_sender);
    if graph.weights().is_none() {
        return Ok(Graph::from_rows(offsets, kept)?.transpose());
    }
    let repeated =
        |(sender, row): (usize, &[u64])| std::iter::repeat_n(sender as u32, (row[1] - row[0]) as usize);
    let sources: Vec<u32> = offsets.windows(2).enumerate().flat_map(repeated).collect();
    Ok(Graph::from_weighted_edges(graph.nodes(), &sources, &kept, &weights)?)
}
