//! `.npz` archives, with the arrays that [`crate::read::npz`] reads.

use std::io::{Seek, Write};
use std::path::Path;

use zip::CompressionMethod;
use zip::result::ZipError;
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::AtomicFile;
use crate::read::npy::{MAX_TEXT_BYTES, NpyValue, header_bytes};
use crate::{Dataset, Error, Features, InFile, NodeIds, Part, Place, Problem, Result, scale};

/// Archives of more than this are stored as they are: deflating would take most of the time, and a graph of
/// that size has a better home in our own format.
const DEFLATE_BELOW: u64 = 256 << 20;

/// Writes a data set as an `.npz` file that NumPy loads without pickling.
///
/// Everything but the data set's name is kept (the file's own name takes its place). Edges are sparse rows by
/// source, `adj_indptr` and `adj_indices`; sparse features are `x_indptr`, `x_indices`, `x_data` and `x_shape`,
/// dense ones `x`. Names of classes, features and nodes are left out where they only repeat positions.
///
/// ```
/// use progap_formats::{read, write};
/// use progap_graph::{Dataset, DatasetParts, Features, Graph, NodeIds};
///
/// let pair = Dataset::new(DatasetParts {
///     name: "pair".into(),
///     graph: Graph::from_edges(2, &[0, 1], &[1, 0])?,
///     features: Features::dense(2, 1, vec![0.5, -1.0])?,
///     labels: vec![0, 1].into(),
///     class_names: vec!["0".into(), "1".into()],
///     feature_names: vec![],
///     numbers: vec![],
///     undeclared: vec![],
///     relation: None,
///     split: None,
///     node_ids: NodeIds::Position,
/// })?;
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("pair.npz");
/// write::npz::write(&pair, &path)?;
/// assert_eq!(read::npz::read(&path)?, pair);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write(dataset: &Dataset, path: &Path) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    write_to(dataset, &mut file).in_file(path)?;
    file.commit()
}

/// [`write()`] into anything that can be written to.
pub fn write_to(dataset: &Dataset, target: impl Write + Seek) -> Result<()> {
    let dataset = &*dataset.without_origins()?;
    let method = if dataset.bytes() as u64 > DEFLATE_BELOW {
        CompressionMethod::Stored
    } else {
        CompressionMethod::Deflated
    };
    let mut archive = Arrays { zip: ZipWriter::new(target), method };
    let nodes = dataset.nodes();

    // Graphs are kept by receiver. An undirected one reads the same by sender.
    let turned;
    let by_sender = if dataset.graph().is_undirected() && dataset.graph().weights().is_none() {
        dataset.graph()
    } else {
        turned = dataset.graph().transpose();
        &turned
    };
    archive.offsets("adj_indptr", by_sender.offsets())?;
    archive.indices("adj_indices", by_sender.senders(), nodes)?;
    if let Some(weights) = by_sender.weights() {
        archive.array("adj_data", &[weights.len()], weights.iter().copied())?;
    }

    match dataset.features() {
        Features::Dense { columns, values } => {
            archive.array("x", &[nodes, *columns], values.iter().copied())?;
        }
        // As numbers that every reader knows.
        Features::Half { columns, values } => {
            archive.array("x", &[nodes, *columns], values.iter().map(|value| value.to_f32()))?;
        }
        Features::Sparse { columns, offsets, indices, values } => {
            archive.array("x_shape", &[2], [nodes as i64, *columns as i64].into_iter())?;
            archive.offsets("x_indptr", offsets)?;
            archive.indices("x_indices", indices, *columns)?;
            let ones = std::iter::repeat_n(1.0f32, indices.len());
            match values {
                Some(values) => archive.array("x_data", &[values.len()], values.iter().copied())?,
                // Readers may take absent values for ones, but other people's scripts want them.
                None => archive.array("x_data", &[indices.len()], ones)?,
            }
        }
    }
    archive.array("y", &[nodes], (0..nodes).map(|node| dataset.label(node).map_or(-1, i64::from)))?;
    if let Some(split) = dataset.split() {
        for (key, part) in [("train_mask", Part::Train), ("val_mask", Part::Val), ("test_mask", Part::Test)] {
            archive.array(key, &[nodes], (0..nodes).map(|node| split.part(node) == part))?;
        }
    }
    if !classes_speak_for_themselves(dataset) {
        archive.texts("class_names", dataset.class_names().iter().map(String::as_str))?;
    }
    if !dataset.feature_names().is_empty() {
        archive.texts("feature_names", dataset.feature_names().iter().map(String::as_str))?;
    }
    // A reader finds out for itself which columns of a dense matrix are in a unit of their own, unless it is told.
    let dense = !matches!(dataset.features(), Features::Sparse { .. });
    let found = if dense { scale::number_columns(dataset.features()) } else { vec![] };
    if found != dataset.numbers() {
        archive.descriptions("number_columns", dataset.numbers())?;
    }
    if !dataset.undeclared().is_empty() {
        archive.descriptions("undeclared", dataset.undeclared())?;
    }
    match dataset.node_ids() {
        NodeIds::Position => {}
        NodeIds::Integers(ids) => archive.array("node_ids", &[nodes], ids.iter().copied())?,
        NodeIds::Text { bytes, offsets } => {
            let text =
                |w: &[u64]| std::str::from_utf8(&bytes[w[0] as usize..w[1] as usize]).unwrap_or_default();
            archive.texts("node_ids", offsets.windows(2).map(text))?;
        }
    }
    archive.zip.finish().map_err(zip_error)?;
    Ok(())
}

/// Whether a reader makes the same classes of the labels alone: each occurs and has its number as its name.
fn classes_speak_for_themselves(dataset: &Dataset) -> bool {
    let named_by_number = dataset.class_names().iter().enumerate().all(|(at, name)| *name == at.to_string());
    // A reader asks whether -1 is a class where it stands beside one number.
    named_by_number && dataset.classes() > 1 && dataset.class_counts().iter().all(|&count| count > 0)
}

struct Arrays<W: Write + Seek> {
    zip: ZipWriter<W>,
    method: CompressionMethod,
}

impl<W: Write + Seek> Arrays<W> {
    fn array<T: NpyValue>(
        &mut self,
        key: &str,
        shape: &[usize],
        values: impl Iterator<Item = T>,
    ) -> Result<()> {
        let width = size_of::<T>() as u64;
        self.start(key, T::DESCR, shape, width)?;
        self.values(values.map(T::to_bytes))
    }

    /// Row starts, signed as scipy wants them.
    fn offsets(&mut self, key: &str, offsets: &[u64]) -> Result<()> {
        self.array(key, &[offsets.len()], offsets.iter().map(|&offset| offset as i64))
    }

    /// Indices, signed as scipy wants them, in 32 bits where they fit.
    fn indices(&mut self, key: &str, indices: &[u32], limit: usize) -> Result<()> {
        if limit <= 1 << 31 {
            self.array(key, &[indices.len()], indices.iter().map(|&index| index as i32))
        } else {
            self.array(key, &[indices.len()], indices.iter().map(|&index| i64::from(index)))
        }
    }

    /// Descriptions of columns, each as a text in JSON.
    fn descriptions(&mut self, key: &str, all: &[impl serde::Serialize]) -> Result<()> {
        let json = all.iter().map(serde_json::to_string).collect::<std::result::Result<Vec<_>, _>>();
        self.texts(key, json.map_err(std::io::Error::other)?.iter().map(String::as_str))
    }

    /// Texts as NumPy keeps them: all padded with zeros to the longest.
    fn texts<'a>(&mut self, key: &str, texts: impl Iterator<Item = &'a str> + Clone) -> Result<()> {
        let (mut count, mut letters) = (0, 1);
        for text in texts.clone() {
            if text.ends_with('\0') {
                let message = "the text ends with a zero letter, which NumPy cannot keep".into();
                return Err(
                    Problem::Invalid(message).at(Place::Element { key: key.into(), index: count as u64 })
                );
            }
            count += 1;
            letters = letters.max(text.chars().count());
        }
        if letters * 4 > MAX_TEXT_BYTES {
            let message = format!("a text of {letters} letters is too long for an .npz");
            return Err(Problem::TooLarge(message).at(Place::Key(key.into())));
        }
        self.start(key, &format!("<U{letters}"), &[count], 4 * letters as u64)?;
        self.values(texts.flat_map(|text| {
            let padded = text.chars().map(|letter| letter as u32).chain(std::iter::repeat(0));
            padded.take(letters).map(u32::to_le_bytes)
        }))
    }

    fn start(&mut self, key: &str, descr: &str, shape: &[usize], width: u64) -> Result<()> {
        let header = header_bytes(descr, shape);
        let bytes = header.len() as u64 + width * shape.iter().map(|&d| d as u64).product::<u64>();
        let options = SimpleFileOptions::default()
            .compression_method(self.method)
            // Deflate at its fastest: higher levels take several times as long for little.
            .compression_level((self.method == CompressionMethod::Deflated).then_some(1))
            // With a margin, as what does not compress grows a little.
            .large_file(bytes > u64::from(u32::MAX) / 2);
        self.zip.start_file(format!("{key}.npy"), options).map_err(zip_error)?;
        Ok(self.zip.write_all(&header)?)
    }

    fn values<B: AsRef<[u8]>>(&mut self, values: impl Iterator<Item = B>) -> Result<()> {
        const CHUNK: usize = 1 << 16;
        let mut chunk = Vec::with_capacity(CHUNK + 16);
        for value in values {
            chunk.extend_from_slice(value.as_ref());
            if chunk.len() >= CHUNK {
                self.zip.write_all(&chunk)?;
                chunk.clear();
            }
        }
        Ok(self.zip.write_all(&chunk)?)
    }
}

fn zip_error(e: ZipError) -> Error {
    match e {
        ZipError::Io(e) => e.into(),
        other => Problem::Invalid(other.to_string()).into(),
    }
}
