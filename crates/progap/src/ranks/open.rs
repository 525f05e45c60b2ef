//! Opening a data set on several ranks: each reads its own part of the file.

use std::path::Path;

use progap_graph::store::{PartFile, PieceSum};
use progap_graph::{Dataset, part};

use super::{Ranks, Sent};
use crate::{Error, Result};

/// Opens a `.progap` file that every rank can see. Each rank reads and checks the edges and features of about as many
/// nodes as any other, and the rest of the file, which is small. `split` gives the data set a split where it has none.
///
/// # Errors
/// A file that is not there, damaged, or another than that of rank 0.
pub fn open(ranks: &Ranks, path: &Path, split: impl FnOnce(Dataset) -> Result<Dataset>) -> Result<Dataset> {
    let file = PartFile::open(path)?;
    ranks.agree(&[("data file", file.header().to_string())])?;
    let dataset = split(file.dataset().clone())?;
    let parts = dataset.split().ok_or_else(|| Error::unsuitable("the data set has no split"))?;
    let borders = part::borders(dataset.graph(), parts, ranks.size(), None);
    let sums = file.check(borders[ranks.rank()]..borders[ranks.rank() + 1])?;
    let numbers: Vec<u64> = sums
        .iter()
        .flat_map(|piece| [u64::from(piece.place[0]), u64::from(piece.place[1]), piece.sum])
        .collect();
    let all = ranks.numbers(Sent::Agreement, &numbers)?;
    let piece = |numbers: &[u64]| PieceSum { place: [numbers[0] as u32, numbers[1] as u32], sum: numbers[2] };
    file.verify(all.iter().flat_map(|numbers| numbers.chunks_exact(3).map(piece)).collect())?;
    Ok(dataset)
}
