//! Batches whose rows lie in several processes. Each process works on whole chunks of the batch, the parts of all
//! chunks come together, and every process folds them in the one order: the bits are those of one process.

use crate::error::{Error, Result};

/// Brings together what several processes hold. All of them call it, in the same order.
pub trait Collective: Sync + std::fmt::Debug {
    /// The number of this process, from 0, and the number of all.
    fn place(&self) -> (usize, usize);

    /// The bytes of every process, in their order.
    ///
    /// # Errors
    /// A process that is gone, in words.
    fn all_gather(&self, own: Vec<u8>) -> std::result::Result<Vec<Vec<u8>>, String>;
}

/// Where the rows of this process stand among those of all, see [`Batch::shared`](crate::Batch::shared).
#[derive(Debug, Clone, Copy)]
pub struct DistributedBatch<'t> {
    /// The way to the others.
    pub collective: &'t dyn Collective,
    /// The rows of the whole batch.
    pub rows: usize,
    /// The position of the first own row in the batch: where a chunk begins.
    pub first: usize,
    /// Added to the number of a row, as dropout knows it.
    pub numbered_from: u32,
}

/// Partial results gathered over a chunk of rows.
pub(crate) trait Part {
    fn write(&self, out: &mut Vec<u8>);
    /// Takes over what another process wrote; nothing where it is cut short.
    fn read(&mut self, from: &mut &[u8]) -> Option<()>;
}

/// Replaces the parts of other processes by what they found. `own` are those of this one.
pub(super) fn gather<P: Part>(
    shared: &DistributedBatch<'_>,
    parts: &mut [P],
    own: std::ops::Range<usize>,
) -> Result<()> {
    let mut bytes = (own.start as u64).to_le_bytes().to_vec();
    bytes.extend((own.len() as u64).to_le_bytes());
    parts[own.clone()].iter().for_each(|part| part.write(&mut bytes));
    let mut known = own.len();
    for (at, bytes) in shared.collective.all_gather(bytes).map_err(Error::Peer)?.iter().enumerate() {
        let damaged = || Error::Peer(format!("process {at} sent sums that do not fit"));
        let mut from = &bytes[..];
        let (first, count) =
            (take_u64(&mut from).ok_or_else(damaged)?, take_u64(&mut from).ok_or_else(damaged)?);
        let (first, count) = (first as usize, count as usize);
        if (first, count) == (own.start, own.len()) {
            continue;
        }
        let theirs =
            first.checked_add(count).and_then(|end| parts.get_mut(first..end)).ok_or_else(damaged)?;
        theirs.iter_mut().try_for_each(|part| part.read(&mut from)).ok_or_else(damaged)?;
        known += count;
    }
    match known == parts.len() {
        true => Ok(()),
        false => Err(Error::Peer("the processes do not hold the rows of one batch".into())),
    }
}

/// Counts of all processes, added up.
pub(super) fn add_up(shared: &DistributedBatch<'_>, own: u64) -> Result<u64> {
    let all = shared.collective.all_gather(own.to_le_bytes().to_vec()).map_err(Error::Peer)?;
    let counts = all.iter().map(|bytes| take_u64(&mut &bytes[..]));
    counts.sum::<Option<u64>>().ok_or_else(|| Error::Peer("a process sent no count".into()))
}

/// This process's part of so many items; all of them where there are no others.
pub(crate) fn own_part(collective: Option<&dyn Collective>, items: usize) -> std::ops::Range<usize> {
    let (at, of) = collective.map_or((0, 1), Collective::place);
    items * at / of..items * (at + 1) / of
}

/// The numbers of all processes, one after the other.
pub(crate) fn together(collective: Option<&dyn Collective>, own: Vec<f64>) -> Result<Vec<f64>> {
    let Some(collective) = collective else { return Ok(own) };
    let mut bytes = vec![];
    write_f64(&own, &mut bytes);
    let mut all = vec![];
    for (at, bytes) in collective.all_gather(bytes).map_err(Error::Peer)?.iter().enumerate() {
        let first = all.len();
        all.resize(first + bytes.len() / 8, 0.0);
        let cut_short = || Error::Peer(format!("process {at} sent sums that do not fit"));
        read_f64(&mut all[first..], &mut &bytes[..]).ok_or_else(cut_short)?;
    }
    Ok(all)
}

/// As [`together`], of numbers in single precision.
pub(crate) fn together_single(collective: Option<&dyn Collective>, own: Vec<f32>) -> Result<Vec<f32>> {
    let Some(collective) = collective else { return Ok(own) };
    let mut bytes = vec![];
    write_f32(&own, &mut bytes);
    let mut all = vec![];
    for (at, bytes) in collective.all_gather(bytes).map_err(Error::Peer)?.iter().enumerate() {
        let first = all.len();
        all.resize(first + bytes.len() / 4, 0.0);
        let cut_short = || Error::Peer(format!("process {at} sent sums that do not fit"));
        read_f32(&mut all[first..], &mut &bytes[..]).ok_or_else(cut_short)?;
    }
    Ok(all)
}

pub(super) fn take_u64(from: &mut &[u8]) -> Option<u64> {
    let (bytes, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u64::from_le_bytes(*bytes))
}

pub(super) fn write_f32(values: &[f32], out: &mut Vec<u8>) {
    out.reserve(4 * values.len());
    values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
}

pub(super) fn read_f32(values: &mut [f32], from: &mut &[u8]) -> Option<()> {
    let (bytes, rest) = from.split_at_checked(4 * values.len())?;
    for (value, bytes) in values.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *value = f32::from_le_bytes(*bytes);
    }
    *from = rest;
    Some(())
}

pub(crate) fn write_f64(values: &[f64], out: &mut Vec<u8>) {
    out.reserve(8 * values.len());
    values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
}

pub(crate) fn read_f64(values: &mut [f64], from: &mut &[u8]) -> Option<()> {
    let (bytes, rest) = from.split_at_checked(8 * values.len())?;
    for (value, bytes) in values.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *value = f64::from_le_bytes(*bytes);
    }
    *from = rest;
    Some(())
}
