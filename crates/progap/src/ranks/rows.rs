//! Rows that travel: a batch is cut into chunks, and each chunk lies whole in one rank, so that its sums have the bits that they have
//! where all rows lie together.

use std::ops::Range;

use progap_nn::{Batch, DistributedBatch, Input, Inputs};

use super::{HeldPart, Sent};
use crate::rows::Rows;
use crate::{Error, Result};

/// Values that travel to a rank at a time, about: little beside the rows that come together.
const VALUES_AT_ONCE: usize = 1 << 20;

/// The rows of a batch that this rank works on, brought together.
pub(crate) struct Travelled {
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
    pub chunk: usize,
    /// The rank of each chunk; none is smaller than the one before it.
    pub ranks: Vec<usize>,
}

impl Cut {
    /// As many chunks for each rank.
    pub fn even(rows: usize, chunk: usize, ranks: usize) -> Cut {
        let chunks = rows.div_ceil(chunk);
        Cut { chunk, ranks: (0..chunks).map(|at| at * ranks / chunks).collect() }
    }

    /// Each chunk where its first row lies.
    pub fn near(part: &HeldPart, batch: &[u32], chunk: usize) -> Cut {
        Cut { chunk, ranks: batch.chunks(chunk).map(|rows| part.rank_of(rows[0])).collect() }
    }

    /// The places in the batch of a rank's rows.
    fn of(&self, rank: usize, rows: usize) -> Range<usize> {
        let before = |rank: usize| rows.min(self.chunk * self.ranks.partition_point(|&at| at < rank));
        before(rank)..before(rank + 1)
    }
}

impl Travelled {
    /// Brings the rows of a batch, nodes of all ranks in any order, to the ranks that work on them.
    pub fn new(
        part: &HeldPart,
        inputs: &Inputs<'_>,
        labels: &[u32],
        batch: &[u32],
        cut: &Cut,
    ) -> Result<Travelled> {
        let places = cut.of(part.ranks.rank(), batch.len());
        let mut travelled = Travelled {
            inputs: inputs.as_slice().iter().map(Column::like).collect(),
            labels: Vec::with_capacity(places.len()),
            rows: (0..places.len() as u32).collect(),
            first: places.start,
            of: batch.len(),
        };
        let at_once = VALUES_AT_ONCE.div_ceil(part.values_of_a_row(inputs));
        let most = (0..part.ranks.size()).map(|rank| cut.of(rank, batch.len()).len()).max().unwrap_or(0);
        for start in (0..most).step_by(at_once) {
            let round = |rank: usize| -> &[u32] {
                let places = cut.of(rank, batch.len());
                &batch[places.end.min(places.start + start)..places.end.min(places.start + start + at_once)]
            };
            travelled.receive(part, inputs, labels, round)?;
        }
        Ok(travelled)
    }

    /// Brings some rows of the batch to each rank, after those that came before.
    fn receive<'b>(
        &mut self,
        part: &HeldPart,
        inputs: &Inputs<'_>,
        labels: &[u32],
        round: impl Fn(usize) -> &'b [u32],
    ) -> Result<()> {
        let (own, ranks) = (part.own(), &part.ranks);
        let words_for = |rank: usize| {
            let mut words: Vec<u32> = vec![];
            for &node in round(rank) {
                if own.contains(&(node as usize)) {
                    let row = node as usize - own.start;
                    words.push(labels[row]);
                    inputs.as_slice().iter().for_each(|input| write_row(input, row, &mut words));
                }
            }
            bytemuck::cast_slice(&words).to_vec()
        };
        let come = ranks.exchange(Sent::Rows, (0..ranks.size()).map(words_for).collect())?;
        let come: Vec<Vec<u32>> = come.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).collect();
        let mut from: Vec<&[u32]> = come.iter().map(|words| &words[..]).collect();
        for &node in round(ranks.rank()) {
            let from = &mut from[part.rank_of(node)];
            self.take(from).ok_or_else(|| Error::Rank("a rank sent rows that do not fit".into()))?;
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
        part: &'a HeldPart,
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

/// The training nodes of all ranks in the order in which one process would copy their rows: by the number of their entries.
pub(crate) fn packed_order(part: &HeldPart, rows: &Rows) -> Result<Vec<u32>> {
    let own = part.own();
    let local = part.train.iter().filter(|&&node| own.contains(&(node as usize)));
    let entries: Vec<u32> =
        local.map(|&node| rows.features.entries(node as usize - own.start) as u32).collect();
    let entries = part.gather(&entries)?;
    if entries.len() != part.train.len() {
        return Err(Error::Rank("the ranks do not hold all training nodes once".into()));
    }
    let mut order: Vec<usize> = (0..part.train.len()).collect();
    order.sort_by_key(|&at| entries[at]);
    Ok(order.into_iter().map(|at| part.train[at]).collect())
}
