//! Counts of votes over the graph, with integer Laplace noise: a delta of zero.

use progap_graph::aggregate;
use progap_privacy::Event;
use progap_privacy::noise::{PieceVisitor, RoundedLaplace, Scale};

use super::Vault;
use super::streamed::{Panels, Take, each_block};
use crate::plan::Plan;
use crate::query::Query;
use crate::rows::blocks;
use crate::settings::{Level, Settings};
use crate::{Error, Result};

const VOTES: &str = "votes";

/// The query, for its event.
pub(crate) fn vote_count(event: Event) -> Query {
    Query::new(VOTES, "votes for each class, counted over the graph with Laplace noise", event)
}

/// How far one record moves the counts, in L1 norm: an edge one count by one, a friendship one in each of two rows.
pub(crate) fn vote_sensitivity(settings: &Settings) -> f64 {
    if settings.undirected { 2.0 } else { 1.0 }
}

const NOT_PLANNED: Error = Error::Internal("the plan does not pay for counts of votes");

impl Vault {
    /// One noisy count: every node votes for one class, and the votes of the in-neighbours are counted for each node.
    ///
    /// # Proof definition
    /// Votes are functions of public rows and of what left this vault before. The counts are integers; adding or removing a directed
    /// edge moves one count by one, a friendship one count in each of two rows. With Laplace noise of the plan's scale `b`, rounded
    /// and sampled exactly ([`RoundedLaplace::release`]), the result is `1/b`-private for a directed edge and `2/b`-private for
    /// a friendship, with a delta of zero (docs/privacy.md#votes). At level none there is no noise and no guarantee.
    ///
    /// # Errors
    /// Private rows, votes that are not one class for each node, or a query name that was used before.
    pub fn votes(&mut self, query: &str, votes: &[u32], plan: &Plan) -> Result<Vec<f32>> {
        let (nodes, classes) = (self.graph.nodes(), self.check_votes(votes)?);
        let ballots = ballots(votes, classes);
        let mut counts = vec![0i32; nodes * classes];
        aggregate::wide_sum(&self.graph, classes, &ballots, &mut counts)?;
        let counted = match self.vote_noise(plan)? {
            None => counts.into_iter().map(|count| count as f32).collect(),
            Some(noise) => {
                let threads = rayon::current_num_threads();
                noise.release(&mut counts, self.randomness.query(query)?, threads).into_parts().0
            }
        };
        self.record(self.vote_count(plan)?);
        Ok(counted)
    }

    /// As [`Vault::votes`], with the same bits: rows of counts are handed to `take` block by block instead of being returned.
    ///
    /// # Proof definition
    /// That of [`Vault::votes`]. Where this ends in an error nothing may be kept of what was taken.
    ///
    /// # Errors
    /// Those of [`Vault::votes`] and of `take`.
    pub fn votes_streamed(
        &mut self,
        query: &str,
        votes: &[u32],
        plan: &Plan,
        take: &mut Take<'_>,
    ) -> Result<()> {
        let mut panels = Panels::new(self.nodes(), self.check_votes(votes)?);
        for block in blocks(self.nodes()) {
            panels.put(block.clone(), &ballots(&votes[block], self.rows.classes));
        }
        match self.vote_noise(plan)? {
            None => each_block(&self.graph, &panels, &mut |counts: &mut [i32]| {
                take(&mut counts.iter().map(|&count| count as f32).collect::<Vec<_>>())
            })?,
            Some(noise) => {
                let query = (self.randomness.query(query)?, rayon::current_num_threads());
                noise.release_pieces(
                    query,
                    |see: &mut PieceVisitor<'_, i32, Error>| each_block(&self.graph, &panels, see),
                    |noisy| take(&mut noisy.into_parts().0),
                )?;
            }
        }
        self.record(self.vote_count(plan)?);
        Ok(())
    }

    /// The number of classes, if each node votes for one of them and may.
    fn check_votes(&self, votes: &[u32]) -> Result<usize> {
        let classes = self.rows.classes;
        if self.settings.level == Level::Node {
            return Err(Error::Internal("votes come from rows, which are private at node level"));
        }
        if votes.len() != self.graph.nodes() || votes.iter().any(|&class| class as usize >= classes) {
            return Err(Error::Internal("a vote is for one class, and each node has one"));
        }
        Ok(classes)
    }

    /// The noise of a count; none at level none.
    fn vote_noise(&self, plan: &Plan) -> Result<Option<RoundedLaplace>> {
        if self.settings.level == Level::None {
            return Ok(None);
        }
        match plan.queries.get(VOTES).map(|query| &query.event) {
            Some(Event::Laplace { scale, .. }) => Ok(Some(RoundedLaplace::new(Scale::at_least(*scale)?))),
            _ => Err(NOT_PLANNED),
        }
    }

    /// The query, as it is recorded: with the noise that is drawn, and the sensitivity of this vault's unit.
    pub(crate) fn vote_count(&self, plan: &Plan) -> Result<Query> {
        Ok(vote_count(match self.vote_noise(plan)? {
            None => Event::NonPrivate,
            Some(noise) => noise.event(vote_sensitivity(&self.settings))?,
        }))
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
