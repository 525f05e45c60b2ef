//! A file, or a folder of parts, of which every process reads what it needs, and checks it for all.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::layout::{self, FileBytes, Sections};
use super::{HALF_ROWS, Meta, pages, parts};
use crate::error::InFile;
use crate::graph::check_offsets;
use crate::{Dataset, DatasetParts, Features, Graph, NodeIds, Place, Problem, Result, Split, file};

/// The sections that are too large for one process.
const LARGE: [&str; 5] = ["senders", "x_dense", HALF_ROWS, "x_columns", "x_values"];

/// A file, or a folder of parts, whose edges and features nobody has looked at yet; all else is checked.
pub struct PartFile {
    path: PathBuf,
    sections: Sections,
    dataset: Dataset,
}

/// The checksum of a piece of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceSum {
    /// The section and the piece of it, by number.
    pub place: [u32; 2],
    /// Its checksum.
    pub sum: u64,
}

impl PartFile {
    /// Opens a file, or a folder of [parts](super::write_parts), in place, without reading edges and features. The
    /// condition is that of [`open`](super::open).
    ///
    /// # Errors
    /// A file that is not one of ours, or whose other sections are damaged.
    pub fn open(path: &Path) -> Result<PartFile> {
        let bytes = match super::is_parts(path) {
            true => parts::content(path, pages::When::Read)?,
            false => FileBytes::Mapped(pages::map_lazily(&file::open(path)?).in_file(path)?),
        };
        let parsed = Sections::parse_but(bytes, &LARGE);
        let opened = parsed.and_then(|sections| Ok((unverified(&sections)?, sections)));
        let (dataset, sections) = opened.map_err(|error| parts::blame(path, error))?;
        Ok(PartFile { path: path.to_path_buf(), sections, dataset })
    }

    /// The data set of the file. Edges and features of nodes that nobody has checked may be anything.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// A number that differs where the content of files does.
    pub fn header(&self) -> u64 {
        self.sections.header
    }

    /// Checks the rows of some nodes and the edges into them, and gives the checksums of the pieces that begin there.
    ///
    /// # Errors
    /// A defect in them.
    pub fn check(&self, nodes: Range<usize>) -> Result<Vec<PieceSum>> {
        self.check_content(nodes.clone()).map_err(|error| parts::blame(&self.path, error))?;
        let mut sums = vec![];
        for (number, name) in LARGE.into_iter().enumerate() {
            let Ok(bytes) = self.sections.bytes(name) else { continue };
            let own = self.bytes_of(name, nodes.clone());
            let first = own.start.div_ceil(layout::CHUNK);
            for piece in (first..).take_while(|piece| piece * layout::CHUNK < own.end) {
                let end = bytes.len().min((piece + 1) * layout::CHUNK);
                let sum = layout::piece_checksum(&bytes[piece * layout::CHUNK..end]);
                pages::note_read(layout::CHUNK);
                sums.push(PieceSum { place: [number as u32, piece as u32], sum });
            }
        }
        Ok(sums)
    }

    /// Compares the checksums of all pieces, in any order, with those of the file.
    ///
    /// # Errors
    /// A section that is damaged.
    pub fn verify(&self, mut sums: Vec<PieceSum>) -> Result<()> {
        sums.sort_unstable_by_key(|sum| sum.place);
        for (number, name) in LARGE.into_iter().enumerate() {
            if self.sections.bytes(name).is_ok() {
                let own = sums.iter().filter(|sum| sum.place[0] == number as u32).map(|sum| sum.sum);
                let compared = self.sections.compare(name, &own.collect::<Vec<u64>>());
                compared.map_err(|error| parts::blame(&self.path, error))?;
            }
        }
        Ok(())
    }

    /// Where a section holds what belongs to some nodes.
    fn bytes_of(&self, name: &str, nodes: Range<usize>) -> Range<usize> {
        let [start, end] = [nodes.start, nodes.end].map(|node| bytes_before(&self.dataset, name, node));
        start.unwrap_or(0)..end.unwrap_or(0)
    }

    fn check_content(&self, nodes: Range<usize>) -> Result<()> {
        let graph = self.dataset.graph();
        for node in nodes.clone() {
            let row = graph.in_neighbours(node);
            if let Some(sender) = row.iter().find(|&&sender| sender as usize >= graph.nodes()) {
                let problem =
                    Problem::IndexOutOfRange { index: sender.to_string(), limit: graph.nodes() as u64 };
                return Err(problem.at(Place::Node(node as u64)));
            }
            pages::note_read(size_of_val(row));
            if !row.is_sorted() {
                return Err(
                    Problem::Corrupt("its senders are not in order".into()).at(Place::Node(node as u64))
                );
            }
        }
        self.dataset.features().part(nodes.clone()).check(nodes.len())
    }
}

/// How many bytes of a section lie before what belongs to a node; nothing for a section that belongs to no node.
pub(super) fn bytes_before(dataset: &Dataset, name: &str, node: usize) -> Option<usize> {
    let columns = dataset.features().columns();
    let edges = || dataset.graph().offsets()[node] as usize;
    Some(match (name, dataset.features(), dataset.node_ids()) {
        ("offsets" | "x_offsets" | "ids" | "id_offsets", ..) => 8 * node,
        ("labels", ..) => 4 * node,
        ("split", ..) => node,
        ("senders" | "weights", ..) => 4 * edges(),
        ("x_dense", ..) => 4 * columns * node,
        (HALF_ROWS, ..) => 2 * columns * node,
        ("x_columns" | "x_values", Features::Sparse { offsets, .. }, _) => 4 * offsets[node] as usize,
        ("id_bytes", _, NodeIds::Text { offsets, .. }) => offsets[node] as usize,
        _ => return None,
    })
}

/// A data set of whose edges and features only the number is checked.
fn unverified(sections: &Sections) -> Result<Dataset> {
    let meta: Meta = super::meta(sections)?;
    if sections.bytes("weights").is_ok() {
        let message =
            "edges with weights run on one machine: train there, or convert the data again without weights"
                .into();
        return Err(Problem::Unsupported(message).into());
    }
    let (offsets, senders) = (sections.required::<u64>("offsets")?, sections.required::<u32>("senders")?);
    check_offsets("offsets", &offsets, senders.len())?;
    let (nodes, columns) = (offsets.len() - 1, meta.feature_columns);
    let features = super::features(sections, columns)?;
    features.check_lengths(nodes)?;
    Dataset::unverified(DatasetParts {
        name: meta.name,
        graph: Graph::from_unverified_rows(offsets, senders),
        features,
        labels: sections.required("labels")?,
        class_names: meta.class_names,
        feature_names: meta.feature_names,
        numbers: meta.numbers,
        undeclared: meta.undeclared,
        relation: meta.relation,
        split: sections.optional::<u8>("split")?.map(Split::from_codes).transpose()?,
        node_ids: super::node_ids(sections)?,
    })
}
