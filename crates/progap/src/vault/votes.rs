//! Counts of votes over the graph, with integer Laplace noise: a delta of zero.

use progap_graph::aggregate;
use progap_privacy::Event;
use progap_privacy::noise::{PieceVisitor, RoundedLaplace, Scale};

use super::noise::not_planned;
use super::streamed::{Panels, Streamable, Take, each_block};
use super::{Asked, Noise, Private, VaultQuery};
use crate::query::Query;
use crate::rows::blocks;
use crate::settings::{Level, Settings};
use crate::{Error, Result};

/// The name of the query.
pub(crate) const VOTES: &str = "votes";

/// The query, for its event.
pub(crate) fn vote_count(event: Event) -> Query {
    Query::new(VOTES, "votes for each class, counted over the graph with Laplace noise", event)
}

/// How far one record moves the counts, in L1 norm: an edge one count by one, an undirected edge one in each of two
/// rows.
pub(crate) fn vote_sensitivity(settings: &Settings) -> f64 {
    if settings.undirected { 2.0 } else { 1.0 }
}

/// A noisy count: every node votes for one class, and the votes of the in-neighbours are counted for each node.
///
/// # Proof definition
/// Votes are functions of public rows and of what left this vault before. The counts are integers; adding or removing a
/// directed edge moves one count by one, an undirected edge one count in each of two rows. With Laplace noise of the
/// plan's scale `b`, rounded and sampled exactly ([`RoundedLaplace::release`]), the result is `1/b`-private for a
/// directed edge and `2/b`-private for an undirected edge, with a delta of zero
/// ([proof](progap_privacy::proofs::votes)). At level none there is no noise and no guarantee.
#[derive(Debug, Clone)]
pub struct Votes<'a> {
    /// The name of its noise, which no other query has.
    pub label: String,
    /// The class that each node votes for.
    pub votes: &'a [u32],
}

impl VaultQuery for Votes<'_> {
    type Answer = Vec<f32>;

    fn spec(&self, private: &Private) -> Result<Asked> {
        if private.settings.level == Level::Node {
            return Err(Error::internal("votes come from rows, which are private at node level"));
        }
        let classes = private.rows.classes;
        if self.votes.len() != private.graph.nodes()
            || self.votes.iter().any(|&class| class as usize >= classes)
        {
            return Err(Error::internal("a vote is for one class, and each node has one"));
        }
        let sensitivity = vote_sensitivity(&private.settings);
        // Sampled exactly, from no table.
        Ok(Asked::new(vote_count(Event::laplace(sensitivity, sensitivity)?), 0))
    }

    fn evaluate(self, private: &Private, noise: &mut Noise) -> Result<Vec<f32>> {
        let (nodes, classes) = (private.graph.nodes(), private.rows.classes);
        let ballots = ballots(self.votes, classes);
        let mut counts = vec![0i32; nodes * classes];
        aggregate::wide_sum(&private.graph, classes, &ballots, &mut counts)?;
        Ok(match laplace(noise)? {
            None => counts.into_iter().map(|count| count as f32).collect(),
            Some(laplace) => {
                let threads = rayon::current_num_threads();
                laplace.release(&mut counts, noise.query(&self.label)?, threads).into_parts().0
            }
        })
    }
}

impl Streamable for Votes<'_> {
    fn stream(self, private: &Private, noise: &mut Noise, take: &mut Take<'_>) -> Result<()> {
        let mut panels = Panels::new(private.nodes(), private.rows.classes);
        for block in blocks(private.nodes()) {
            panels.put(block.clone(), &ballots(&self.votes[block], private.rows.classes));
        }
        match laplace(noise)? {
            None => each_block(&private.graph, &panels, &mut |counts: &mut [i32]| {
                take(&mut counts.iter().map(|&count| count as f32).collect::<Vec<_>>())
            }),
            Some(laplace) => {
                let query = (noise.query(&self.label)?, rayon::current_num_threads());
                laplace.release_pieces(
                    query,
                    |see: &mut PieceVisitor<'_, i32, Error>| each_block(&private.graph, &panels, see),
                    |noisy| take(&mut noisy.into_parts().0),
                )
            }
        }
    }
}

/// The noise that is charged; none at level none.
fn laplace(noise: &Noise) -> Result<Option<RoundedLaplace>> {
    match noise.event() {
        Event::NonPrivate => Ok(None),
        // The plan's scale is on the grid.
        Event::Laplace { scale, .. } => Ok(Some(RoundedLaplace::new(Scale::at_least(*scale)?))),
        _ => Err(not_planned()),
    }
}

/// A row of classes for each vote, with a one where it is.
fn ballots(votes: &[u32], classes: usize) -> Vec<i8> {
    let mut ballots = vec![0i8; votes.len() * classes];
    for (node, &class) in votes.iter().enumerate() {
        ballots[node * classes + class as usize] = 1;
    }
    ballots
}
