//! Steps whose batches are drawn before they are made, so that rows of many steps travel at once. Which rows join a
//! batch depends on the run's key and the name of the step alone.

use std::collections::VecDeque;

use progap_nn::{Inputs, sample_chunk_rows};

use super::{Cut, GatheredBatch, Partition, ReceivedRows};
use crate::Result;

/// Rows of batches that are drawn at a time, about, and values of rows that then travel.
const ROWS_AHEAD: usize = 1 << 18;
const VALUES_AHEAD: usize = 1 << 20;

/// Steps that come next.
#[derive(Default)]
pub(crate) struct Prefetch {
    upcoming: VecDeque<String>,
    drawn: VecDeque<Step>,
    arrived: ReceivedRows,
}

/// A step whose batch was drawn.
struct Step {
    name: String,
    batch: Vec<u32>,
    cut: Cut,
}

impl Prefetch {
    /// Says which steps come next, in their order. No key may be forgotten before they are made.
    pub fn expect(&mut self, names: impl IntoIterator<Item = String>) {
        self.upcoming = names.into_iter().collect();
        self.drawn.clear();
    }

    /// The rows of a step that this rank works on. `draw` gives the batch of a step, on all ranks the same.
    pub fn next(
        &mut self,
        part: &Partition,
        rows: (&Inputs<'_>, &[u32]),
        name: &str,
        draw: impl FnMut(&str) -> Result<Vec<u32>>,
    ) -> Result<GatheredBatch> {
        if self.drawn.front().is_none_or(|step| step.name != name) {
            self.bring(part, rows, name, draw)?;
        }
        let Some(Step { batch, cut, .. }) = self.drawn.pop_front() else {
            return Err(crate::Error::contradiction("a step was drawn"));
        };
        GatheredBatch::of_arrived(part, rows, &batch, &cut, &mut self.arrived)
    }

    /// Draws the batch of a step and of those that come after it, and brings their rows together.
    fn bring(
        &mut self,
        part: &Partition,
        (inputs, labels): (&Inputs<'_>, &[u32]),
        name: &str,
        mut draw: impl FnMut(&str) -> Result<Vec<u32>>,
    ) -> Result<()> {
        self.drawn.clear();
        if self.upcoming.front().is_none_or(|next| next != name) {
            self.expect([name.to_string()]);
        }
        let (mut rows, mut values, ranks) = (0, 0, part.ranks.size());
        while rows < ROWS_AHEAD
            && values < VALUES_AHEAD
            && let Some(name) = self.upcoming.pop_front()
        {
            let batch = draw(&name)?;
            let cut = Cut::even(batch.len(), sample_chunk_rows(batch.len()), ranks);
            let travel = |rank: usize| {
                let places = cut.of(rank, batch.len());
                batch[places].iter().filter(|&&node| part.rank_of(node) != rank).count()
            };
            rows += batch.len();
            values += part.values_of_a_row(inputs) * (0..ranks).map(travel).sum::<usize>();
            self.drawn.push_back(Step { name, batch, cut });
        }
        let wanted = |rank: usize| -> Vec<&[u32]> {
            let of = |step: &Step| step.cut.of(rank, step.batch.len());
            self.drawn.iter().map(|step| &step.batch[of(step)]).collect()
        };
        self.arrived = ReceivedRows::new(part, inputs, labels, wanted)?;
        Ok(())
    }
}
