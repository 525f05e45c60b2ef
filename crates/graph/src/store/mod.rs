//! Our own format: a data set in one `.progap` file that is mapped, not parsed.
//!
//! All numbers are little-endian. Bytes 0 to 63 are the header, the section table follows, then the sections,
//! each starting at a multiple of 64 bytes so that it can be used in place:
//!
//! | bytes | header |
//! |---|---|
//! | 0..8 | the magic `89 50 52 4F 47 41 50 0A` (`\x89PROGAP\n`) |
//! | 8..12 | version: 1, 2 where a label is missing or a column has a unit of its own, 3 where edges have weights, or 4 where features are in half precision |
//! | 12..16 | number of sections |
//! | 16..24 | length of the file |
//! | 24..32 | XXH3-64 of bytes 0..24 followed by the section table |
//! | 32..64 | zero |
//!
//! | bytes | entry of the section table |
//! |---|---|
//! | 0..16 | name, padded with zeros |
//! | 16..24 | where the section starts |
//! | 24..32 | its length in bytes |
//! | 32..40 | its checksum: XXH3-64 over the XXH3-64 of each 4 MiB of it |
//! | 40..48 | zero |
//!
//! Sections: `meta` (JSON: name, class and feature names, number of feature columns, columns of numbers in units of
//! their own), `offsets` (u64) and `senders` (u32), the graph by receiver, with `weights` (f32) where edges have them;
//! `labels` (u32, 4294967295 where there is none); `x_dense` (f32), `x_half` (f16) or `x_offsets` (u64), `x_columns`
//! (u32) and, unless all values are 1, `x_values` (f32); optionally `split` (u8) and `ids` (i64) or `id_bytes` and
//! `id_offsets` (u64).
//!
//! Checksums find damage, not malice; so everything a forged file could break is checked as well before a data
//! set comes out.

mod layout;
#[allow(unsafe_code)]
mod map;
mod pages;
mod part;
mod parts;

#[cfg(unix)]
pub use map::exit_on_truncated_map;
pub use pages::{
    give_back as release_pages, is_mapping_bounded, keep_mapped_below, note_read, release_pages_if_full,
};
pub use part::{PartFile, PieceSum};
pub use parts::{MANIFEST, check_manifest, is_parts, open_parts, write_parts};

use std::fs::File;
use std::io::Write;
use std::path::Path;

use half::f16;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::atomic::AtomicFile;
use crate::error::InFile;
use crate::scaled::{FeatureSection, Source};
use crate::{
    Buffer, Dataset, DatasetParts, Features, Graph, InferredSchema, NodeIds, NumberColumn, Place, Problem,
    Result, Scaled, Split, UNLABELLED, file,
};
use layout::{FileBytes, Section, Sections};

/// The ending of our files.
pub const EXTENSION: &str = "progap";
/// The section of features in half precision.
pub(crate) const HALF_ROWS: &str = "x_half";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    name: String,
    class_names: Vec<String>,
    feature_columns: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    feature_names: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    numbers: Vec<NumberColumn>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    undeclared: Vec<InferredSchema>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    relation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weight_bound: Option<f64>,
}

/// Writes a data set, whole or not at all.
pub fn write(dataset: &Dataset, path: &Path) -> Result<()> {
    write_with(dataset, dataset.features().columns(), feature_sections(dataset.features()), path)
}

/// As [`write()`], of the features as they become; no more than a block of rows is held.
pub fn write_scaled(scaled: &Scaled, path: &Path) -> Result<()> {
    let (dataset, sections) = (scaled.rest(), scaled.sections().in_file(path)?);
    let blocks: Vec<_> = sections
        .iter()
        .map(|section| {
            let of = match section.source {
                Source::Blocks(of) => of,
                Source::There(_) | Source::Starts(_) => |_: &Features| &[][..],
            };
            move |take: &mut layout::Take<'_>| {
                scaled.blocks().try_for_each(|block| take(of(&block.map_err(std::io::Error::other)?)))
            }
        })
        .collect();
    let features = sections.iter().zip(&blocks).map(|(section, blocks)| match &section.source {
        Source::There(content) => Section::new(section.name, content),
        Source::Starts(starts) => Section::new(section.name, bytes(starts)),
        Source::Blocks(_) => Section::made(section.name, section.bytes, blocks),
    });
    write_with(dataset, dataset.features().columns(), features.collect(), path)
}

/// Sections of features that are there.
fn feature_sections(features: &Features) -> Vec<Section<'_>> {
    fn there(section: FeatureSection<'_>) -> Option<Section<'_>> {
        match section.source {
            Source::There(content) => Some(Section::new(section.name, content)),
            Source::Starts(_) | Source::Blocks(_) => None,
        }
    }
    features.sections().into_iter().filter_map(there).collect()
}

/// Rows of features in half precision that are made while they are written: there may be more of them than memory
/// holds.
#[derive(Clone, Copy)]
pub struct MadeRows<'a> {
    /// The number of columns.
    pub columns: usize,
    /// Fills the row of a node; called once for each, by any thread. Values must be finite.
    pub make: &'a (dyn Fn(usize, &mut [f16]) + Sync),
}

/// Writes a data set that has no features, with these in their place.
pub fn write_with_rows(dataset: &Dataset, rows: MadeRows<'_>, path: &Path) -> Result<()> {
    const ROWS_AT_ONCE: usize = 1 << 15;
    let MadeRows { columns, make } = rows;
    if dataset.features().columns() > 0 || columns == 0 {
        return Err(Problem::Invalid("rows are made for a data set that has none".into()).into());
    }
    let pieces = |take: &mut layout::Take<'_>| {
        let mut piece = vec![f16::ZERO; ROWS_AT_ONCE * columns];
        for first in (0..dataset.nodes()).step_by(ROWS_AT_ONCE) {
            let piece = &mut piece[..ROWS_AT_ONCE.min(dataset.nodes() - first) * columns];
            let rows = piece.par_chunks_exact_mut(columns).enumerate().with_min_len(256);
            rows.for_each(|(at, row)| make(first + at, row));
            take(bytes(piece))?;
        }
        Ok(())
    };
    let length = dataset.nodes() * columns * size_of::<f16>();
    write_with(dataset, columns, vec![Section::made(HALF_ROWS, length, &pieces)], path)
}

fn write_with(dataset: &Dataset, columns: usize, features: Vec<Section<'_>>, path: &Path) -> Result<()> {
    with_sections(dataset, columns, features, |version, sections| {
        let mut file = AtomicFile::create(path)?;
        layout::write(version, sections, layout::ALIGNMENT, &mut file).and_then(|()| file.flush())?;
        file.commit()
    })
    .in_file(path)
}

/// Hands over the version and all sections of a data set's file.
fn with_sections(
    dataset: &Dataset,
    columns: usize,
    features: Vec<Section<'_>>,
    write: impl FnOnce(u32, &[Section<'_>]) -> Result<()>,
) -> Result<()> {
    let half = features.iter().any(|section| section.name() == HALF_ROWS);
    let meta = Meta {
        name: dataset.name().into(),
        class_names: dataset.class_names().to_vec(),
        feature_columns: columns,
        feature_names: dataset.feature_names().to_vec(),
        numbers: dataset.numbers().to_vec(),
        undeclared: dataset.undeclared().to_vec(),
        relation: dataset.relation().map(String::from),
        weight_bound: dataset.graph().weight_bound(),
    };
    let meta = serde_json::to_vec(&meta).map_err(std::io::Error::other)?;
    let mut sections = vec![
        Section::new("meta", &meta),
        Section::new("offsets", bytes(dataset.graph().offsets())),
        Section::new("senders", bytes(dataset.graph().senders())),
        Section::new("labels", bytes(dataset.labels())),
    ];
    sections.extend(dataset.graph().weights().map(|weights| Section::new("weights", bytes(weights))));
    sections.extend(features);
    sections.extend(dataset.split().map(|split| Section::new("split", split.codes())));
    match dataset.node_ids() {
        NodeIds::Position => {}
        NodeIds::Integers(ids) => sections.push(Section::new("ids", bytes(ids))),
        NodeIds::Text { bytes: text, offsets } => {
            sections.push(Section::new("id_bytes", text));
            sections.push(Section::new("id_offsets", bytes(offsets)));
        }
    }
    let of_matrix = dataset.numbers().is_empty() && dataset.undeclared().is_empty();
    let plain = of_matrix && dataset.labelled() == dataset.nodes();
    let version = match (half, dataset.graph().weights(), plain) {
        (true, ..) => layout::HALF,
        (false, Some(_), _) => layout::WEIGHTED,
        (false, None, true) => layout::PLAIN,
        (false, None, false) => layout::OWN_DATA,
    };
    write(version, &sections)
}

/// Opens a file in place: its arrays are used where they lie in the page cache, and other processes that open
/// it share them.
///
/// Everything is verified first. After that the file must not be changed in place while it is open (replacing
/// it by another file, as [`write()`] does, is fine); where that cannot be ruled out, use [`read`].
pub fn open(path: &Path) -> Result<Dataset> {
    open_file(&file::open(path)?, path)
}

/// As [`open`], for a file that the caller opened; `path` is what messages call it.
pub fn open_file(file: &File, path: &Path) -> Result<Dataset> {
    let map = pages::map(file).in_file(path)?;
    dataset(FileBytes::Mapped(map)).in_file(path)
}

/// The bytes of a file, mapped; on the condition of [`open`].
pub fn map_file(file: &File) -> std::io::Result<Buffer<u8>> {
    let map = pages::map(file)?;
    let all = 0..map.len();
    Ok(Buffer::mapped(map, all).unwrap_or_default())
}

/// Reads a file into memory.
pub fn read(path: &Path) -> Result<Dataset> {
    from_bytes(file::read(path)?).in_file(path)
}

/// Reads a file's content.
pub fn from_bytes(content: Vec<u8>) -> Result<Dataset> {
    dataset(FileBytes::Owned(content))
}

/// Whether a file that starts with these bytes is one of ours.
pub fn is_ours(start: &[u8]) -> bool {
    start.starts_with(&layout::MAGIC)
}

fn bytes<T: bytemuck::NoUninit>(values: &[T]) -> &[u8] {
    bytemuck::must_cast_slice(values)
}

fn dataset(source: FileBytes) -> Result<Dataset> {
    let sections = Sections::parse(source)?;
    let meta = meta(&sections)?;
    let graph = Graph::from_rows(sections.required::<u64>("offsets")?, sections.required::<u32>("senders")?)?;
    let graph = match sections.optional::<f32>("weights")? {
        Some(_) if sections.version < layout::WEIGHTED => {
            let problem = Problem::Corrupt("it holds more than files of its version can".into());
            return Err(problem.at(Place::Key("weights".into())));
        }
        Some(weights) => graph.with_weights(weights)?,
        None => graph,
    };
    let graph = match meta.weight_bound {
        Some(bound) => graph.with_weight_bound(bound)?,
        None => graph,
    };
    let labels = sections.required::<u32>("labels")?;
    let of_matrix = meta.numbers.is_empty() && meta.undeclared.is_empty();
    let needs_newer = !of_matrix || labels.contains(&UNLABELLED);
    if needs_newer && sections.version < layout::OWN_DATA {
        let problem = Problem::Corrupt("it holds more than files of version 1 can".into());
        return Err(problem.at(Place::Key("labels".into())));
    }
    let columns = meta.feature_columns;
    let features = features(&sections, columns)?;
    Dataset::new(DatasetParts {
        name: meta.name,
        graph,
        features,
        labels,
        class_names: meta.class_names,
        feature_names: meta.feature_names,
        numbers: meta.numbers,
        undeclared: meta.undeclared,
        relation: meta.relation,
        split: sections.optional::<u8>("split")?.map(Split::from_codes).transpose()?,
        node_ids: node_ids(&sections)?,
    })
}

fn meta(sections: &Sections) -> Result<Meta> {
    serde_json::from_slice(sections.bytes("meta")?)
        .map_err(|e| Problem::Corrupt(e.to_string()).at(Place::Key("meta".into())))
}

fn features(sections: &Sections, columns: usize) -> Result<Features> {
    Ok(match (sections.optional("x_dense")?, sections.optional::<f16>(HALF_ROWS)?) {
        (Some(values), _) => Features::Dense { columns, values },
        (None, Some(_)) if sections.version < layout::HALF => {
            let problem = Problem::Corrupt("files of its version have no features in half precision".into());
            return Err(problem.at(Place::Key(HALF_ROWS.into())));
        }
        (None, Some(values)) => Features::Half { columns, values },
        (None, None) => Features::Sparse {
            columns,
            offsets: sections.required("x_offsets")?,
            indices: sections.required("x_columns")?,
            values: sections.optional("x_values")?,
        },
    })
}

fn node_ids(sections: &Sections) -> Result<NodeIds> {
    Ok(match (sections.optional::<i64>("ids")?, sections.optional::<u8>("id_bytes")?) {
        (Some(ids), _) => NodeIds::Integers(ids),
        (None, Some(bytes)) => NodeIds::Text { bytes, offsets: sections.required("id_offsets")? },
        (None, None) => NodeIds::Position,
    })
}

impl Sections {
    fn required<T: bytemuck::Pod>(&self, name: &str) -> Result<Buffer<T>> {
        self.optional(name)?.ok_or_else(|| self.missing(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file whose checksums are right, whatever it says.
    fn forge(sections: &[(&'static str, Vec<u8>)]) -> Result<Dataset> {
        let sections: Vec<_> = sections.iter().map(|(name, content)| Section::new(name, content)).collect();
        let mut file = std::io::Cursor::new(Vec::new());
        layout::write(layout::HALF, &sections, layout::ALIGNMENT, &mut file).expect("writing to memory");
        from_bytes(file.into_inner())
    }

    fn honest() -> Vec<(&'static str, Vec<u8>)> {
        let meta = br#"{"name":"forged","class_names":["a","b"],"feature_columns":1}"#.to_vec();
        vec![
            ("meta", meta),
            ("offsets", bytes(&[0u64, 1, 2]).to_vec()),
            ("senders", bytes(&[1u32, 0]).to_vec()),
            ("labels", bytes(&[0u32, 1]).to_vec()),
            ("x_dense", bytes(&[0.5f32, 1.5]).to_vec()),
            ("split", vec![0, 2]),
        ]
    }

    #[test]
    fn forged_content_with_right_checksums_is_refused() {
        assert!(forge(&honest()).is_ok());
        let forgeries: [(&'static str, Vec<u8>); 13] = [
            ("meta", b"{}".to_vec()),
            ("meta", br#"{"name":"f","class_names":[],"feature_columns":1}"#.to_vec()),
            (
                "meta",
                br#"{"name":"f","class_names":["a","b"],"feature_columns":18446744073709551615}"#.to_vec(),
            ),
            ("offsets", vec![]),
            ("offsets", bytes(&[0u64, u64::MAX, 2]).to_vec()),
            ("offsets", bytes(&[0u64, 2]).to_vec()),
            ("senders", bytes(&[1u32, 2]).to_vec()),
            ("senders", vec![1, 2, 3]),
            ("labels", bytes(&[0u32, 2]).to_vec()),
            ("labels", bytes(&[0u32]).to_vec()),
            ("x_dense", bytes(&[0.5f32, f32::NAN]).to_vec()),
            ("split", vec![0, 4]),
            ("split", vec![0]),
        ];
        for (name, content) in forgeries {
            let mut sections = honest();
            sections.iter_mut().filter(|(n, _)| *n == name).for_each(|(_, c)| c.clone_from(&content));
            assert!(forge(&sections).is_err(), "{name} {content:?}");
        }
        for missing in 0..5 {
            let mut sections = honest();
            sections.remove(missing);
            assert!(forge(&sections).is_err());
        }
        let twice = [honest(), honest()].concat();
        assert!(forge(&twice).is_err());
    }
}
