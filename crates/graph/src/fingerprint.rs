//! Fingerprints of data sets: by them runs and stores know their data again, so that their bytes never change.

use twox_hash::XxHash3_128;

use crate::scale::{Curve, Map};
use crate::scaled::Source;
use crate::{Dataset, NumberColumn, Result, Scaled, Split};

impl Dataset {
    /// A fingerprint of the content (edges, features, labels, split; not the name): 32 hexadecimal digits that
    /// tell whether two data sets are the same.
    pub fn fingerprint(&self) -> String {
        self.hash(self.split().map_or(&[], Split::codes))
    }

    /// The fingerprint whatever the split.
    pub fn content_fingerprint(&self) -> String {
        self.hash(&[])
    }

    fn hash(&self, split: &[u8]) -> String {
        let mut content = Content::before_features(self);
        for section in self.features().sections() {
            if let Source::There(bytes) = section.source {
                content.add(bytes);
            }
        }
        if self.features().are_ones() {
            content.add(&[]);
        }
        content.after_features(self, split)
    }
}

impl Scaled {
    /// As [`Dataset::fingerprint`], of the features as they become; no more than a block of rows is held.
    ///
    /// # Errors
    /// More than memory holds.
    pub fn fingerprint(&self) -> Result<String> {
        let dataset = self.rest();
        if !self.is_changed() {
            return Ok(dataset.fingerprint());
        }
        let mut content = Content::before_features(dataset);
        for section in self.sections()? {
            match section.source {
                Source::There(bytes) => content.add(bytes),
                Source::Starts(starts) => content.add(bytemuck::cast_slice(&starts)),
                Source::Blocks(of) => {
                    content.announce(section.bytes);
                    for block in self.blocks() {
                        content.0.write(of(&block?));
                    }
                }
            }
        }
        Ok(content.after_features(dataset, dataset.split().map_or(&[], Split::codes)))
    }
}

/// The hash of content that comes piece by piece.
struct Content(XxHash3_128);

impl Content {
    fn announce(&mut self, bytes: usize) {
        self.0.write(&(bytes as u64).to_le_bytes());
    }

    fn add(&mut self, bytes: &[u8]) {
        self.announce(bytes.len());
        for piece in bytes.chunks(1 << 22) {
            self.0.write(piece);
            crate::store::note_read(piece.len());
        }
    }

    fn before_features(dataset: &Dataset) -> Content {
        let mut content = Content(XxHash3_128::new());
        content.add(bytemuck::cast_slice(dataset.graph().offsets()));
        content.add(bytemuck::cast_slice(dataset.graph().senders()));
        content.add(bytemuck::cast_slice(dataset.labels()));
        content.add(&(dataset.classes() as u64).to_le_bytes());
        content.add(&(dataset.features().columns() as u64).to_le_bytes());
        content
    }

    fn after_features(mut self, dataset: &Dataset, split: &[u8]) -> String {
        self.add(split);
        // Parts that a data set does not have leave no trace, so that it has the fingerprint of formats without them.
        if !dataset.numbers().is_empty() {
            let numbers: Vec<String> = dataset.numbers().iter().map(number_text).collect();
            self.add(format!("[{}]", numbers.join(", ")).as_bytes());
        }
        if let Some(weights) = dataset.graph().weights() {
            self.add(b"weights");
            self.add(bytemuck::cast_slice(weights));
        }
        format!("{:032x}", self.0.finish_128())
    }
}

/// A number column in words; an origin and logarithms are left out where there are none.
fn number_text(number: &NumberColumn) -> String {
    // How dates were written is no part of the content, which is days.
    let NumberColumn { column, missing, origin, bounds, log, date: _, map } = number;
    let origin = origin.map_or_else(String::new, |origin| format!("origin: Some({origin:?}), "));
    let log = log.map_or_else(String::new, |log| format!("log: Some({log}), "));
    let (missing, bounds) = (some(missing.map(|m| m.to_string())), some(bounds.map(bounds_text)));
    let map = some(map.as_ref().map(map_text));
    format!(
        "NumberColumn {{ column: {column}, missing: {missing}, {origin}bounds: {bounds}, {log}map: {map} }}"
    )
}

fn map_text(map: &Map) -> String {
    match map {
        Map::Bounds { low, high } => format!("Bounds {{ low: {low:?}, high: {high:?} }}"),
        Map::LogBounds { low, high } => format!("LogBounds {{ low: {low:?}, high: {high:?} }}"),
        Map::SignedLog => "SignedLog".into(),
        Map::Standard { curve, mean, deviation, bounds } => {
            let curve = match curve {
                Curve::Straight => "Straight".into(),
                Curve::Log { floor } => format!("Log {{ floor: {floor:?} }}"),
                Curve::Asinh { centre, unit } => format!("Asinh {{ centre: {centre:?}, unit: {unit:?} }}"),
            };
            let bounds = some(bounds.map(bounds_text));
            format!(
                "Standard {{ curve: {curve}, mean: {mean:?}, deviation: {deviation:?}, bounds: {bounds} }}"
            )
        }
    }
}

fn bounds_text([low, high]: [f64; 2]) -> String {
    format!("[{low:?}, {high:?}]")
}

fn some(text: Option<String>) -> String {
    text.map_or_else(|| "None".into(), |text| format!("Some({text})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DatasetParts, Features, Graph};

    fn columns() -> Vec<NumberColumn> {
        let standard = |curve, bounds| Some(Map::Standard { curve, mean: 1e-7, deviation: 2.5, bounds });
        let maps = [
            None,
            Some(Map::Bounds { low: -1.0, high: 1e20 }),
            Some(Map::LogBounds { low: 0.5, high: 5000.0 }),
            Some(Map::SignedLog),
            standard(Curve::Straight, Some([0.0, 9.0])),
            standard(Curve::Log { floor: 0.25 }, None),
            standard(Curve::Asinh { centre: -3.0, unit: 0.1 }, None),
        ];
        let columns = maps.into_iter().enumerate().map(|(column, map)| NumberColumn {
            missing: (column == 1).then_some(9),
            bounds: (column == 2).then_some([0.5, 5000.0]),
            log: [None, Some(false), Some(true)].get(column).copied().flatten(),
            map,
            ..NumberColumn::new(column)
        });
        columns.collect()
    }

    /// Runs keep fingerprints: what they are made of stays the same, to the last byte.
    #[test]
    fn number_columns_are_written_as_ever() {
        let expected = [
            "NumberColumn { column: 0, missing: None, bounds: None, map: None }",
            "NumberColumn { column: 1, missing: Some(9), bounds: None, log: Some(false), map: Some(Bounds \
             { low: -1.0, high: 1e20 }) }",
            "NumberColumn \
             { column: 2, missing: None, bounds: Some([0.5, 5000.0]), log: Some(true), map: Some(LogBounds \
             { low: 0.5, high: 5000.0 }) }",
            "NumberColumn { column: 3, missing: None, bounds: None, map: Some(SignedLog) }",
            "NumberColumn { column: 4, missing: None, bounds: None, map: Some(Standard \
             { curve: Straight, mean: 1e-7, deviation: 2.5, bounds: Some([0.0, 9.0]) }) }",
            "NumberColumn { column: 5, missing: None, bounds: None, map: Some(Standard { curve: Log \
             { floor: 0.25 }, mean: 1e-7, deviation: 2.5, bounds: None }) }",
            "NumberColumn { column: 6, missing: None, bounds: None, map: Some(Standard { curve: Asinh \
             { centre: -3.0, unit: 0.1 }, mean: 1e-7, deviation: 2.5, bounds: None }) }",
        ];
        assert_eq!(columns().iter().map(number_text).collect::<Vec<_>>(), expected);
    }

    /// The values are those of Python's xxhash over the same bytes.
    #[test]
    fn a_data_set_has_the_fingerprint_it_always_had() {
        let data = |numbers| {
            Dataset::new(DatasetParts {
                numbers,
                ..DatasetParts::of(
                    "two",
                    Graph::from_edges(2, &[0], &[1]).expect("a graph"),
                    Features::dense(2, 10, (0..20u8).map(f32::from).collect::<Vec<_>>()).expect("features"),
                    vec![0, 1],
                    vec!["a".into(), "b".into()],
                )
            })
            .expect("a data set")
        };
        assert_eq!(data(vec![]).fingerprint(), "347fe5fa9a2851422d4da6e438f6624a");
        assert_eq!(data(columns()).fingerprint(), "6e4ebe9493b69846408e35aed4044672");
    }
}
