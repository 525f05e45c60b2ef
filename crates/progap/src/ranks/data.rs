//! The data of one rank: its own rows, brought to scale by maps that all rows together give.

use std::ops::Range;

use progap_graph::scale::{self, Map, NumberColumn};
use progap_graph::standard::Known;
use progap_graph::{Dataset, Features, Preparation, Scaled, Split, part};
use progap_nn::{Packed, chunk_rows};

use super::{Ranks, Sent};
use crate::rows::Rows;
use crate::settings::{Level, Settings};
use crate::{Error, Result};

/// A data set, of which a rank has brought its own rows to scale.
pub(crate) struct RankData {
    /// As it lies in the file: every column in its unit.
    pub dataset: Dataset,
    /// The same with its columns as they become. No rank holds all of them: they are read a block of rows at a time.
    pub scaled: Scaled,
    /// Where the nodes of each rank begin, and where the last end.
    pub borders: Vec<usize>,
    /// The nodes of this rank.
    pub own: Range<usize>,
    /// Their features, brought to scale.
    pub features: Features,
    /// Entries of sparse features of all ranks.
    pub entries: usize,
}

impl RankData {
    /// Finds the maps together with the other ranks, and applies them to the own rows.
    pub fn new(ranks: &Ranks, dataset: &Dataset, settings: &Settings) -> Result<RankData> {
        let (dataset, how) = (dataset.clone().with_constant_feature_if_empty()?, settings.preparation());
        let read = Scaled::from(dataset.clone());
        // Where whole columns are not looked at, no number in their midst is either.
        let read = if how == Preparation::Standardise { read } else { read.rounded() };
        let even = part::borders(dataset.graph(), split_of(&dataset)?, ranks.size(), None);
        let even = even[ranks.rank()]..even[ranks.rank() + 1];
        let maps = maps(ranks, read.rest(), how, even.clone())?;
        let numbers = scale::with_maps(read.rest().numbers(), &maps, how);
        let scaled = read.mapped_as(&numbers)?;
        let entries = match dataset.features() {
            Features::Dense { .. } | Features::Half { .. } => 0,
            Features::Sparse { indices, .. } if !scaled.is_changed() => indices.len(),
            // Zeros that a map makes something else of become entries.
            Features::Sparse { .. } => {
                let own = scaled.rows(even)?.all_entries() as u64;
                ranks.numbers(Sent::Agreement, &[own])?.iter().flatten().sum::<u64>() as usize
            }
        };
        let borders = borders(&dataset, settings, entries, ranks.size())?;
        let own = borders[ranks.rank()]..borders[ranks.rank() + 1];
        let features = scaled.rows(own.clone())?;
        Ok(RankData { dataset, scaled, borders, own, features, entries })
    }

    /// The rows of the own nodes.
    pub fn rows(&self) -> Result<Rows> {
        let split = split_of(&self.dataset)?.part_of(self.own.clone());
        let labels = self.dataset.labels()[self.own.clone()].to_vec().into();
        let (features, classes) = (self.features.clone(), self.dataset.classes());
        match self.unbounded_numeric_columns().next() {
            None => Rows::new(features, labels, split, classes),
            Some(_) => Ok(Rows::unscaled(features, labels, split, classes)),
        }
    }

    /// Number columns that no map was found for yet.
    pub fn unbounded_numeric_columns(&self) -> impl Iterator<Item = &NumberColumn> {
        self.scaled.rest().numbers().iter().filter(|number| number.is_open())
    }
}

fn split_of(dataset: &Dataset) -> Result<&Split> {
    dataset.split().ok_or_else(|| Error::unsuitable("the data set has no split"))
}

/// The map of each number column, the same on all ranks. Where whole columns are looked at, each goes to one rank,
/// which does with it what one process does.
fn maps(ranks: &Ranks, dataset: &Dataset, how: Preparation, own: Range<usize>) -> Result<Vec<Option<Map>>> {
    let numbers = dataset.numbers();
    if how != Preparation::Standardise || numbers.iter().all(|number| number.map.is_some()) {
        return Ok(scale::declared_maps(numbers, how));
    }
    let features = dataset.features().part(own.clone());
    // A column of zeros and ones in all ranks stays as it is.
    let real: Vec<u64> = scale::real_columns(&features, numbers).into_iter().map(u64::from).collect();
    let mut real: Vec<u64> = ranks.numbers(Sent::Columns, &real)?.concat();
    real.sort_unstable();
    let known =
        Known::of(&features, own.len(), numbers, |column| real.binary_search(&u64::from(column)).is_ok())?;
    let mut maps = vec![];
    for (round, known) in known.chunks(ranks.size()).enumerate() {
        let to = known.iter().map(|known| known.as_ref().map_or_else(Vec::new, sent));
        let to = to.chain(std::iter::repeat_with(Vec::new)).take(ranks.size()).collect();
        let come = ranks.exchange(Sent::Columns, to)?;
        let number = numbers.get(round * ranks.size() + ranks.rank());
        let all = come.iter().filter(|bytes| !bytes.is_empty()).map(|bytes| received(bytes));
        let all = all.reduce(|mut all, next| {
            all.values.extend(next.values);
            Known { zeros: all.zeros + next.zeros, ..all }
        });
        let map = match (all, number) {
            (Some(all), Some(number)) => Some(all.map(number)?),
            _ => None,
        };
        let wrong = |error: serde_json::Error| Error::rank(format!("a rank has no sensible map: {error}"));
        let found = ranks.all_gather(Sent::Columns, serde_json::to_vec(&map).map_err(wrong)?)?;
        for bytes in found.iter().take(known.len()) {
            maps.push(serde_json::from_slice(bytes).map_err(wrong)?);
        }
    }
    Ok(maps)
}

/// A column's values in the rows of a rank, as they travel: as exact as they were read.
fn sent(known: &Known) -> Vec<u8> {
    let values = known.values.iter().map(|&value| value as f32);
    (known.zeros as u64).to_le_bytes().into_iter().chain(values.flat_map(f32::to_le_bytes)).collect()
}

fn received(bytes: &[u8]) -> Known {
    let (zeros, values) = bytes.split_at(8.min(bytes.len()));
    let zeros: Vec<u64> = bytemuck::pod_collect_to_vec(zeros);
    let values: Vec<f32> = bytemuck::pod_collect_to_vec(values);
    Known {
        zeros: zeros.first().map_or(0, |&zeros| zeros as usize),
        values: values.into_iter().map(f64::from).collect(),
    }
}

/// Where the nodes of each rank begin, and where the last end: by edges; at public levels, and where a stage has too
/// many rows to bring together, only where a chunk of training rows begins.
fn borders(dataset: &Dataset, settings: &Settings, entries: usize, ranks: usize) -> Result<Vec<usize>> {
    let split = split_of(dataset)?;
    let train = split.count(progap_graph::Part::Train);
    let aggregates = settings.depth.saturating_mul(settings.hidden.max(dataset.classes()));
    let rows = match dataset.features() {
        Features::Dense { columns, .. } | Features::Half { columns, .. } => train.saturating_mul(*columns),
        Features::Sparse { .. } => 2 * entries,
    };
    let few = Packed::are_few(rows.saturating_add(train.saturating_mul(aggregates + settings.hidden)));
    let chunk = (settings.level != Level::Node && !few).then(|| chunk_rows(train));
    Ok(part::borders(dataset.graph(), split, ranks, chunk))
}
