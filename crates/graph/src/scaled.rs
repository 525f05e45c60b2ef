//! A data set whose number columns are brought to scale while they are read, a block of rows at a time: for code that
//! must not hold all features at once.

use std::ops::Range;

use crate::scale::{self, Change, NumberColumn};
use crate::{Dataset, DatasetParts, Features, Result};

/// Values of a block of rows, about: little beside what a process holds of its own.
const VALUES_AT_ONCE: usize = if cfg!(test) { 64 } else { 1 << 21 };

/// A data set, and what becomes of its columns when they are read.
///
/// ```
/// use progap_graph::{Dataset, Preparation, Scaled};
///
/// let builder = Dataset::builder().edges([(0, 1), (1, 2)]).features(1, &[20.0, 30.0, 70.0]);
/// let data = builder.labels(&[0, 1, 0]).build()?;
/// let prepared = data.clone().prepared(Preparation::Standardise)?;
/// let scaled = Scaled::from(data).mapped_as(prepared.numbers())?;
/// assert_eq!(scaled.rows(1..2)?, prepared.features().part(1..2));
/// assert_eq!(scaled.fingerprint()?, prepared.fingerprint());
/// # Ok::<(), progap_graph::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Scaled {
    /// The features are as they were, all else as it becomes.
    rest: Dataset,
    /// The changes to a row, one pass after the other.
    passes: Vec<Vec<Change>>,
}

/// Where the bytes of a section of features come from.
pub(crate) enum Source<'s> {
    There(&'s [u8]),
    Starts(Vec<u64>),
    /// Of each block of rows, in their order.
    Blocks(fn(&Features) -> &[u8]),
}

/// A part of features as files and fingerprints have it.
pub(crate) struct FeatureSection<'s> {
    pub name: &'static str,
    pub bytes: usize,
    pub source: Source<'s>,
}

impl From<Dataset> for Scaled {
    /// With features as they are.
    fn from(dataset: Dataset) -> Scaled {
        Scaled { rest: dataset, passes: vec![] }
    }
}

impl Scaled {
    /// Everything but the features, which lie in it as they were before.
    pub fn rest(&self) -> &Dataset {
        &self.rest
    }

    /// As [`Dataset::rounded`].
    #[must_use]
    pub fn rounded(mut self) -> Scaled {
        self.add(scale::rounding(self.rest.numbers()));
        self.rest.parts_mut().numbers.iter_mut().for_each(|number| number.origin = None);
        self
    }

    /// As [`Dataset::prepared_as`].
    ///
    /// # Errors
    /// Columns that do not fit.
    pub fn mapped_as(mut self, other: &[NumberColumn]) -> Result<Scaled> {
        let numbers = self.rest.numbers().to_vec();
        if numbers.iter().all(|number| number.map.is_some()) {
            return Ok(self);
        }
        scale::check(other, self.rest.features().columns())?;
        let of = |list: &[NumberColumn], column: u32| {
            list.binary_search_by_key(&column, |number| number.column).ok().map(|at| list[at].clone())
        };
        // Columns already mapped by what is declared stay.
        let is_mapped = |column: u32| of(&numbers, column).is_some_and(|number| number.map.is_some());
        let own = |number: &NumberColumn| NumberColumn {
            origin: of(&numbers, number.column).and_then(|own| own.origin),
            ..number.clone()
        };
        let open: Vec<NumberColumn> =
            other.iter().filter(|number| !is_mapped(number.column)).map(own).collect();
        let rest = |number: &&NumberColumn| of(other, number.column).is_none_or(|other| other.map.is_none());
        let rest: Vec<NumberColumn> = numbers.iter().filter(rest).cloned().collect();
        self.add(scale::mapping(&open));
        self.add(scale::rounding(&rest));
        self.rest.parts_mut().numbers = other.to_vec();
        Ok(self)
    }

    fn add(&mut self, pass: Vec<Change>) {
        if !pass.is_empty() {
            self.passes.push(pass);
        }
    }

    /// The same features beside other parts.
    ///
    /// # Errors
    /// Parts that do not fit together.
    pub fn beside(&self, change: impl FnOnce(&mut DatasetParts)) -> Result<Scaled> {
        let mut parts = self.rest.clone().into_parts();
        change(&mut parts);
        parts.features = self.rest.features().clone();
        Ok(Scaled { rest: Dataset::unverified(parts)?, passes: self.passes.clone() })
    }

    /// Whether features are other than they were.
    pub fn is_changed(&self) -> bool {
        !self.passes.is_empty()
    }

    /// The features of some rows.
    ///
    /// # Errors
    /// More than memory holds.
    pub fn rows(&self, rows: Range<usize>) -> Result<Features> {
        let part = self.rest.features().part(rows.clone());
        self.passes.iter().try_fold(part, |features, pass| scale::change(features, rows.len(), pass))
    }

    /// The data set with all features in memory.
    ///
    /// # Errors
    /// More than memory holds.
    pub fn held(mut self) -> Result<Dataset> {
        let nodes = self.rest.nodes();
        for pass in &self.passes {
            let features = std::mem::replace(&mut self.rest.parts_mut().features, Features::none());
            self.rest.parts_mut().features = scale::change(features, nodes, pass)?;
        }
        Ok(self.rest)
    }

    /// All rows, a block at a time.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = Result<Features>> + '_ {
        let nodes = self.rest.nodes();
        let at_once = (VALUES_AT_ONCE / self.rest.features().columns().max(1)).max(1);
        (0..nodes).step_by(at_once).map(move |start| {
            let block = self.rows(start..nodes.min(start + at_once))?;
            crate::store::note_read(block.bytes());
            Ok(block)
        })
    }

    /// The features as sections of a file, in the order of files and fingerprints.
    pub(crate) fn sections(&self) -> Result<Vec<FeatureSection<'_>>> {
        if !self.is_changed() {
            return Ok(self.rest.features().sections());
        }
        let Features::Sparse { .. } = self.rest.features() else {
            let values = self.rest.nodes() * self.rest.features().columns();
            return Ok(vec![made("x_dense", values, dense)]);
        };
        let mut starts = crate::room::with_room(self.rest.nodes() + 1)?;
        starts.push(0u64);
        for block in self.blocks() {
            if let Features::Sparse { offsets, .. } = block? {
                let before = starts.last().copied().unwrap_or(0);
                starts.extend(offsets[1..].iter().map(|offset| before + offset));
            }
        }
        let entries = starts.last().copied().unwrap_or(0) as usize;
        let offsets = FeatureSection {
            name: "x_offsets",
            bytes: size_of_val(&starts[..]),
            source: Source::Starts(starts),
        };
        Ok(vec![offsets, made("x_columns", entries, columns), made("x_values", entries, values)])
    }
}

/// A section of values of four bytes, made of blocks of rows.
fn made(name: &'static str, values: usize, of: fn(&Features) -> &[u8]) -> FeatureSection<'static> {
    FeatureSection { name, bytes: 4 * values, source: Source::Blocks(of) }
}

fn dense(block: &Features) -> &[u8] {
    match block {
        Features::Dense { values, .. } => bytemuck::cast_slice(values),
        _ => &[],
    }
}

fn columns(block: &Features) -> &[u8] {
    match block {
        Features::Sparse { indices, .. } => bytemuck::cast_slice(indices),
        _ => &[],
    }
}

fn values(block: &Features) -> &[u8] {
    match block {
        Features::Sparse { values: Some(values), .. } => bytemuck::cast_slice(values),
        _ => &[],
    }
}

impl Features {
    /// Whether rows are sparse and each entry is 1, so that no values are stored.
    pub(crate) fn are_ones(&self) -> bool {
        matches!(self, Features::Sparse { values: None, .. })
    }

    /// The sections of a file that hold them.
    pub(crate) fn sections(&self) -> Vec<FeatureSection<'_>> {
        fn there<'s, T: bytemuck::NoUninit>(name: &'static str, values: &'s [T]) -> FeatureSection<'s> {
            let bytes = bytemuck::must_cast_slice(values);
            FeatureSection { name, bytes: bytes.len(), source: Source::There(bytes) }
        }
        match self {
            Features::Dense { values, .. } => vec![there("x_dense", values)],
            Features::Half { values, .. } => vec![there(crate::store::HALF_ROWS, values)],
            Features::Sparse { offsets, indices, values, .. } => {
                let mut sections = vec![there("x_offsets", offsets), there("x_columns", indices)];
                sections.extend(values.iter().map(|values| there("x_values", values)));
                sections
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;
    use crate::scale::Preparation;
    use crate::{Graph, store};

    const NODES: usize = 41;

    /// An amount far from zero, one that is often missing, its indicator, a switch, an age with bounds.
    fn row(node: usize) -> [f32; 5] {
        let missing = node.is_multiple_of(3);
        let of = |is: bool| if is { 1.0 } else { 0.0 };
        let amount = if missing { 0.0 } else { (node * node % 17) as f32 };
        [node as f32 / 8.0, amount, of(missing), of(node.is_multiple_of(5)), (20 + node) as f32]
    }

    fn data(features: Features) -> Dataset {
        let number = NumberColumn::new;
        let (sources, targets): (Vec<u32>, Vec<u32>) = (1..NODES as u32).map(|node| (node, node - 1)).unzip();
        Dataset::new(DatasetParts {
            numbers: vec![
                NumberColumn { origin: Some(1e9), ..number(0) },
                NumberColumn { missing: Some(2), ..number(1) },
                number(3),
                NumberColumn { bounds: Some([0.0, 100.0]), ..number(4) },
            ],
            ..DatasetParts::of(
                "people",
                Graph::from_edges(NODES, &sources, &targets).expect("a graph"),
                features,
                (0..NODES as u32).map(|node| node % 2).collect::<Vec<u32>>(),
                vec!["a".into(), "b".into()],
            )
        })
        .expect("a data set")
    }

    fn every_kind() -> [Features; 3] {
        let values: Vec<f32> = (0..NODES).flat_map(row).collect();
        let half: Vec<f16> = values.iter().map(|&value| f16::from_f32(value)).collect();
        let (mut offsets, mut indices, mut stored) = (vec![0u64], vec![], vec![]);
        for node in 0..NODES {
            for (column, value) in row(node).into_iter().enumerate().filter(|(_, value)| *value != 0.0) {
                indices.push(column as u32);
                stored.push(value);
            }
            offsets.push(indices.len() as u64);
        }
        [
            Features::dense(NODES, 5, values).expect("features"),
            Features::Half { columns: 5, values: half.into() },
            Features::sparse(NODES, 5, offsets, indices, Some(stored.into())).expect("features"),
        ]
    }

    /// Blocks of a dozen rows give the file and the fingerprint that all rows at once give.
    #[test]
    fn blocks_make_what_all_rows_make() {
        let place = tempfile::tempdir().expect("a folder");
        for features in every_kind() {
            for how in [Preparation::Standardise, Preparation::RowByRow, Preparation::Declared] {
                let data = data(features.clone());
                let whole = data.clone().prepared(how).expect("columns at scale");
                let read = Scaled::from(data);
                let read = if how == Preparation::Standardise { read } else { read.rounded() };
                let scaled = read.mapped_as(whole.numbers()).expect("the same columns");
                assert!(scaled.is_changed());
                assert_eq!(scaled.fingerprint().expect("few rows"), whole.fingerprint(), "{how:?}");
                assert_eq!(scaled.rows(5..30).expect("few rows"), whole.features().part(5..30));
                let [streamed, at_once] = ["streamed", "at-once"].map(|name| place.path().join(name));
                store::write_scaled(&scaled, &streamed).expect("a file");
                store::write(&whole, &at_once).expect("a file");
                assert!(std::fs::read(&streamed).ok() == std::fs::read(&at_once).ok(), "{how:?}");
                assert_eq!(scaled.held().expect("few rows"), whole);
            }
        }
    }

    #[test]
    fn no_block_has_more_rows_than_said() {
        for features in every_kind() {
            let data = data(features);
            let numbers = data.clone().prepared(Preparation::Standardise).expect("columns at scale");
            let scaled = Scaled::from(data).mapped_as(numbers.numbers()).expect("the same columns");
            let rows: Vec<usize> =
                scaled.blocks().map(|block| block.expect("few rows").bytes() / 4 / 5).collect();
            assert!(rows.len() > 3 && rows.iter().all(|&rows| rows <= 2 * VALUES_AT_ONCE / 5), "{rows:?}");
        }
    }

    #[test]
    fn features_as_they_are_stay_in_place() {
        for features in every_kind() {
            let parts = DatasetParts { numbers: vec![], ..data(features).into_parts() };
            let data = Dataset::new(parts).expect("a data set");
            let scaled = Scaled::from(data.clone());
            assert!(!scaled.is_changed());
            assert_eq!(scaled.fingerprint().expect("nothing is made"), data.fingerprint());
        }
    }
}
