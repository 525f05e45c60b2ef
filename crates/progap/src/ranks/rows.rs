//! Rows that travel: a batch is cut into chunks, and each chunk lies whole in one rank, so that its sums have the bits
//! that they have where all rows lie together.

use std::ops::Range;

use progap_nn::{Batch, DistributedBatch, Input, Inputs};

use super::{Partition, Sent};
use crate::rows::Rows;
use crate::{Error, Result};

/// Values that travel to a rank at a time, about: little beside the rows that come together.
const VALUES_AT_ONCE: usize = 1 << 20;

/// The rows of a batch that this rank works on, brought together.
pub(crate) struct GatheredBatch {
    inputs: Vec<Column>,
    labels: Vec<u32>,
    rows: Vec<u32>,
    /// The place of the first in the batch, and the rows of the batch.
    first: usize,
    of: usize,
}

/// The rows of one input.
enum Column {
    Dense { columns: usize, values: Vec<f32> },
    Sparse { columns: usize, offsets: Vec<u64>, indices: Vec<u32>, values: Option<Vec<f32>> },
}

impl Column {
    fn like(input: &Input<'_>) -> Column {
        match *input {
            // Half precision is widened, exactly, as in copies of rows.
            Input::Dense { columns, .. } | Input::Half { columns, .. } => {
                Column::Dense { columns, values: vec![] }
            }
            Input::Sparse { columns, values, .. } => {
                Column::Sparse { columns, offsets: vec![0], indices: vec![], values: values.map(|_| vec![]) }
            }
        }
    }

    fn view(&self) -> Input<'_> {
        match self {
            Column::Dense { columns, values } => Input::Dense { columns: *columns, values },
            Column::Sparse { columns, offsets, indices, values } => {
                Input::Sparse { columns: *columns, offsets, indices, values: values.as_deref() }
            }
        }
    }

    /// Copies a row of an input.
    fn copy(&mut self, input: &Input<'_>, row: usize) {
        match (self, *input) {
            (Column::Dense { values, .. }, Input::Dense { columns, values: from }) => {
                values.extend_from_slice(&from[row * columns..(row + 1) * columns]);
            }
            (Column::Dense { values, .. }, Input::Half { columns, values: from }) => {
                values.extend(from[row * columns..(row + 1) * columns].iter().map(|value| value.to_f32()));
            }
            (
                Column::Sparse { offsets, indices, values, .. },
                Input::Sparse { offsets: starts, indices: from, values: stored, .. },
            ) => {
                let entries = starts[row] as usize..starts[row + 1] as usize;
                indices.extend_from_slice(&from[entries.clone()]);
                if let (Some(values), Some(stored)) = (values, stored) {
                    values.extend_from_slice(&stored[entries]);
                }
                offsets.push(indices.len() as u64);
            }
            // A column is made like its input.
            _ => {}
        }
    }

    /// Takes a row over, as [`write_row`] wrote it.
    fn take(&mut self, from: &mut &[u32]) -> Option<()> {
        match self {
            Column::Dense { columns, values } => {
                values.extend(take(from, *columns)?.iter().map(|&bits| f32::from_bits(bits)));
            }
            Column::Sparse { columns, offsets, indices, values } => {
                let entries = *take(from, 1)?.first()? as usize;
                let own = take(from, entries)?;
                if own.iter().any(|&column| column as usize >= *columns) {
                    return None;
                }
                indices.extend_from_slice(own);
                if let Some(values) = values {
                    values.extend(take(from, entries)?.iter().map(|&bits| f32::from_bits(bits)));
                }
                offsets.push(indices.len() as u64);
            }
        }
        Some(())
    }
}

fn take<'f>(from: &mut &'f [u32], count: usize) -> Option<&'f [u32]> {
    let (own, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(own)
}

fn write_row(input: &Input<'_>, row: usize, out: &mut Vec<u32>) {
    match *input {
        Input::Dense { columns, values } => {
            out.extend(values[row * columns..(row + 1) * columns].iter().map(|value| value.to_bits()));
        }
        Input::Half { columns, values } => {
            out.extend(
                values[row * columns..(row + 1) * columns].iter().map(|value| value.to_f32().to_bits()),
            );
        }
        Input::Sparse { offsets, indices, values, .. } => {
            let entries = offsets[row] as usize..offsets[row + 1] as usize;
            out.push(entries.len() as u32);
            out.extend_from_slice(&indices[entries.clone()]);
            if let Some(values) = values {
                out.extend(values[entries].iter().map(|value| value.to_bits()));
            }
        }
    }
}

/// Which rank works on which rows of a batch: whole chunks, in the order of the ranks.
pub(crate) struct Cut {
    /// The rows of each chunk but the last.
    chunk: usize,
    /// The rank of each chunk; none is smaller than the one before it.
    ranks: Vec<usize>,
}

impl Cut {
    /// As many chunks for each rank.
    pub fn even(rows: usize, chunk: usize, ranks: usize) -> Cut {
        let chunks = rows.div_ceil(chunk);
        Cut { chunk, ranks: (0..chunks).map(|at| at * ranks / chunks).collect() }
    }

    /// The places in the batch of a rank's rows.
    pub fn of(&self, rank: usize, rows: usize) -> Range<usize> {
        let before = |rank: usize| rows.min(self.chunk * self.ranks.partition_point(|&at| at < rank));
        before(rank)..before(rank + 1)
    }
}

/// Rows of other ranks that came to this one, in the order in which they are taken.
#[derive(Default)]
pub(crate) struct ReceivedRows {
    /// From each rank, and how many words of it were taken.
    words: Vec<(Vec<u32>, usize)>,
}

impl ReceivedRows {
    /// Brings rows together: each rank works on those that `wanted` lists for it. Its own it has.
    pub fn new<'b>(
        part: &Partition,
        inputs: &Inputs<'_>,
        labels: &[u32],
        wanted: impl Fn(usize) -> Vec<&'b [u32]>,
    ) -> Result<ReceivedRows> {
        let (own, ranks) = (part.own(), &part.ranks);
        let words_for = |rank: usize| {
            let mut words: Vec<u32> = vec![];
            let others = wanted(rank).into_iter().flatten().filter(|_| rank != ranks.rank());
            for &node in others.filter(|&&node| own.contains(&(node as usize))) {
                let row = node as usize - own.start;
                words.push(labels[row]);
                inputs.as_slice().iter().for_each(|input| write_row(input, row, &mut words));
            }
            bytemuck::cast_slice(&words).to_vec()
        };
        let come = ranks.exchange(Sent::Rows, (0..ranks.size()).map(words_for).collect())?;
        Ok(ReceivedRows {
            words: come.iter().map(|bytes| (bytemuck::pod_collect_to_vec(bytes), 0)).collect(),
        })
    }

    /// The words of a rank that are left.
    fn left(&self, rank: usize) -> &[u32] {
        self.words.get(rank).map_or(&[], |(words, taken)| &words[*taken..])
    }
}

impl GatheredBatch {
    /// Brings the rows of a batch, nodes of all ranks in any order, to the ranks that work on them.
    pub fn new(
        part: &Partition,
        inputs: &Inputs<'_>,
        labels: &[u32],
        batch: &[u32],
        cut: &Cut,
    ) -> Result<GatheredBatch> {
        let mut travelled = GatheredBatch::none(part, inputs, batch, cut);
        let at_once = VALUES_AT_ONCE.div_ceil(part.values_of_a_row(inputs));
        let most = (0..part.ranks.size()).map(|rank| cut.of(rank, batch.len()).len()).max().unwrap_or(0);
        for start in (0..most).step_by(at_once) {
            let round = |rank: usize| -> &[u32] {
                let places = cut.of(rank, batch.len());
                &batch[places.end.min(places.start + start)..places.end.min(places.start + start + at_once)]
            };
            let mut arrived = ReceivedRows::new(part, inputs, labels, |rank| vec![round(rank)])?;
            travelled.add(part, inputs, labels, round(part.ranks.rank()), &mut arrived)?;
        }
        Ok(travelled)
    }

    /// The rows of a batch that this rank works on, where those of others have arrived.
    pub fn of_arrived(
        part: &Partition,
        (inputs, labels): (&Inputs<'_>, &[u32]),
        batch: &[u32],
        cut: &Cut,
        arrived: &mut ReceivedRows,
    ) -> Result<GatheredBatch> {
        let mut travelled = GatheredBatch::none(part, inputs, batch, cut);
        let own = &batch[cut.of(part.ranks.rank(), batch.len())];
        travelled.add(part, inputs, labels, own, arrived)?;
        Ok(travelled)
    }

    fn none(part: &Partition, inputs: &Inputs<'_>, batch: &[u32], cut: &Cut) -> GatheredBatch {
        let places = cut.of(part.ranks.rank(), batch.len());
        GatheredBatch {
            inputs: inputs.as_slice().iter().map(Column::like).collect(),
            labels: Vec::with_capacity(places.len()),
            rows: (0..places.len() as u32).collect(),
            first: places.start,
            of: batch.len(),
        }
    }

    /// Adds some rows of the batch: the own ones, and those that arrived.
    fn add(
        &mut self,
        part: &Partition,
        inputs: &Inputs<'_>,
        labels: &[u32],
        nodes: &[u32],
        arrived: &mut ReceivedRows,
    ) -> Result<()> {
        let own = part.own();
        for &node in nodes {
            if own.contains(&(node as usize)) {
                let row = node as usize - own.start;
                self.labels.push(labels[row]);
                let columns = self.inputs.iter_mut().zip(inputs.as_slice());
                columns.for_each(|(column, input)| column.copy(input, row));
                continue;
            }
            let rank = part.rank_of(node);
            let mut left = arrived.left(rank);
            let before = left.len();
            self.take(&mut left).ok_or_else(|| Error::rank("a rank sent rows that do not fit"))?;
            let taken = before - left.len();
            arrived.words[rank].1 += taken;
        }
        Ok(())
    }

    fn take(&mut self, from: &mut &[u32]) -> Option<()> {
        self.labels.push(*take(from, 1)?.first()?);
        self.inputs.iter_mut().try_for_each(|input| input.take(from))
    }

    /// Views of the rows.
    pub fn inputs(&self) -> Result<Inputs<'_>> {
        Ok(Inputs::checked_before(self.inputs.iter().map(Column::view).collect())?)
    }

    /// The label of each.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// The rows as a part of their batch.
    pub fn batch<'a>(
        &'a self,
        part: &'a Partition,
        inputs: &'a Inputs<'a>,
        classes: usize,
    ) -> Result<Batch<'a>> {
        let shared = DistributedBatch {
            collective: &part.ranks,
            rows: self.of,
            first: self.first,
            numbered_from: self.first as u32,
        };
        Ok(Batch::new(inputs, &self.labels, &self.rows, classes)?.shared(shared)?)
    }
}

/// The training nodes of all ranks in the order in which one process would copy their rows: by the number of their
/// entries.
pub(crate) fn packed_order(part: &Partition, rows: &Rows) -> Result<Vec<u32>> {
    let own = part.own();
    let local = part.train.iter().filter(|&&node| own.contains(&(node as usize)));
    let entries: Vec<u32> =
        local.map(|&node| rows.features.entries(node as usize - own.start) as u32).collect();
    let entries = part.gather(&entries)?;
    if entries.len() != part.train.len() {
        return Err(Error::rank("the ranks do not hold all training nodes once"));
    }
    let mut order: Vec<usize> = (0..part.train.len()).collect();
    order.sort_by_key(|&at| entries[at]);
    Ok(order.into_iter().map(|at| part.train[at]).collect())
}
