//! Small files, written whole: JSON, tensors, matrices.

pub mod folder;
pub mod scratch;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};

use progap_formats::read::header_bytes;
use progap_graph::{AtomicFile, Buffer, store};
use progap_nn::Tensor;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};

use crate::error::InFile;
use crate::{Error, ErrorKind, Result};

/// The version of every public format, see `docs/formats.md`.
pub const FORMAT: u64 = 1;

/// Writes a file, whole or not at all; it is on disk when this returns.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    write_to(AtomicFile::create(path)?, path, content)
}

fn write_to(mut file: AtomicFile, path: &Path, content: &[u8]) -> Result<()> {
    file.write_all(content).in_file(path)?;
    Ok(file.commit()?)
}

/// Makes a folder; one for private files can be entered by its owner alone.
pub fn make_folder(folder: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    if folder.file_name().is_some_and(|name| name == "private") {
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    }
    builder.create(folder).in_file(folder)
}

pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    write(path, &json(path, value)?)
}

/// The bytes that [`write_json`] writes.
pub fn json<T: Serialize>(path: &Path, value: &T) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value).in_file(path)?;
    text.push(b'\n');
    Ok(text)
}

/// The version of a file of a public format, whatever else it holds.
#[derive(Deserialize)]
pub struct Version {
    version: Option<u64>,
}

impl Version {
    /// Refuses a file of another version. It is asked first: a newer one may have fields that are unknown here.
    pub fn check(&self, what: &'static str, file: &Path) -> Result<()> {
        match self.version {
            Some(FORMAT) => Ok(()),
            Some(found) => Err(Error::newer(what, found).at(file)),
            None => Err(Error::file(file, "it has no version; the file is damaged")),
        }
    }
}

/// The content of a JSON file of a public format.
pub fn versioned<T: serde::de::DeserializeOwned>(bytes: &[u8], what: &'static str, file: &Path) -> Result<T> {
    serde_json::from_slice::<Version>(bytes).in_file(file)?.check(what, file)?;
    serde_json::from_slice(bytes).in_file(file)
}

/// A number that JSON may not have: what is not a number is written as null.
pub fn number_or_nan<'d, D: Deserializer<'d>>(from: D) -> std::result::Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}

/// As [`number_or_nan`], for a list.
pub fn numbers_or_nan<'d, D: Deserializer<'d>>(from: D) -> std::result::Result<Vec<f64>, D::Error> {
    let numbers = Vec::<Option<f64>>::deserialize(from)?;
    Ok(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}

/// The SHA-256 of some bytes, in hexadecimal.
pub fn checksum_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The BLAKE3 of some bytes in pieces, in hexadecimal.
pub fn digest<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> String {
    let mut hasher = blake3::Hasher::new();
    // In steps between which pages of a mapped file can be given back.
    for part in pieces.into_iter().flat_map(|piece| piece.chunks(1 << 22)) {
        store::note_read(part.len());
        hasher.update(part);
    }
    hasher.finalize().to_hex().to_string()
}

/// Named lists of numbers with a text beside them.
#[derive(Default)]
pub struct Tensors {
    pub values: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    pub note: String,
}

const NOTE: &str = "progap";

impl Tensors {
    /// Adds every tensor of a model under a prefix.
    pub fn add(&mut self, prefix: &str, state: Vec<Tensor<'_>>) {
        for Tensor { name, shape, values } in state {
            self.values.insert(format!("{prefix}{name}"), (shape.to_vec(), values.to_vec()));
        }
    }

    /// The tensors that were added under a prefix.
    pub fn under<'t>(&'t self, prefix: &str) -> impl Iterator<Item = Tensor<'t>> {
        self.values.iter().filter_map(move |(name, (shape, values))| {
            Some(Tensor { name: name.strip_prefix(prefix)?, shape, values })
        })
    }

    /// Takes out what was added under a prefix.
    pub fn split_off(&mut self, prefix: &str) -> Tensors {
        let own = self.values.extract_if(.., |name, _| name.starts_with(prefix)).collect();
        Tensors { values: own, note: self.note.clone() }
    }

    /// Writes the file.
    pub fn write(&self, path: &Path) -> Result<()> {
        write(path, &self.bytes(path)?)
    }

    /// Writes a file that its owner alone can read, and gives its digest.
    pub fn write_private(&self, path: &Path) -> Result<String> {
        let bytes = self.bytes(path)?;
        write_to(AtomicFile::create_private(path)?, path, &bytes)?;
        Ok(digest([&bytes[..]]))
    }

    fn bytes(&self, path: &Path) -> Result<Vec<u8>> {
        let mut views = Vec::with_capacity(self.values.len());
        for (name, (shape, values)) in &self.values {
            let view =
                TensorView::new(Dtype::F32, shape.clone(), bytemuck::cast_slice(values)).in_file(path)?;
            views.push((name, view));
        }
        let note = HashMap::from([(NOTE.to_string(), self.note.clone())]);
        safetensors::serialize(views, Some(note)).in_file(path)
    }

    /// The content of a file that was read.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Tensors> {
        let (_, metadata) = safetensors::SafeTensors::read_metadata(bytes).in_file(path)?;
        let note =
            metadata.metadata().as_ref().and_then(|notes| notes.get(NOTE)).cloned().unwrap_or_default();
        let mut values = BTreeMap::new();
        for (name, view) in safetensors::SafeTensors::deserialize(bytes).in_file(path)?.tensors() {
            if view.dtype() != Dtype::F32 {
                return Err(Error::file(path, format!("the tensor {name:?} is not of type F32")));
            }
            values.insert(name, (view.shape().to_vec(), bytemuck::pod_collect_to_vec(view.data())));
        }
        Ok(Tensors { values, note })
    }
}

/// Writes a matrix as NumPy does, aligned so that it can be mapped. Gives the digest of the file.
pub fn write_matrix(path: &Path, values: &[f32], width: usize) -> Result<String> {
    let mut file = MatrixFile::create(path, values.len() / width.max(1), width)?;
    file.add(values)?;
    file.commit()
}

/// A matrix in a file as NumPy writes it, rows at a time; it is there when it is whole.
pub struct MatrixFile {
    path: PathBuf,
    file: AtomicFile,
    hasher: blake3::Hasher,
    missing: usize,
}

impl MatrixFile {
    pub fn create(path: &Path, rows: usize, width: usize) -> Result<Self> {
        let (file, path, hasher) = (AtomicFile::create(path)?, path.to_path_buf(), blake3::Hasher::new());
        let mut matrix = MatrixFile { path, file, hasher, missing: rows * width };
        matrix.write(&header(rows, width))?;
        Ok(matrix)
    }

    pub fn add(&mut self, rows: &[f32]) -> Result<()> {
        const TOO_MANY: ErrorKind = ErrorKind::Internal("a matrix has more rows than it said");
        self.missing = self.missing.checked_sub(rows.len()).ok_or(TOO_MANY)?;
        self.write(bytemuck::cast_slice(rows))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.hasher.update(bytes);
        self.file.write_all(bytes).in_file(&self.path)
    }

    /// The file is on disk, whole. Gives its digest.
    pub fn commit(self) -> Result<String> {
        if self.missing > 0 {
            return Err(Error::internal("a matrix has fewer rows than it said"));
        }
        self.file.commit()?;
        Ok(self.hasher.finalize().to_hex().to_string())
    }
}

/// The header of a matrix.
fn header(rows: usize, width: usize) -> Vec<u8> {
    header_bytes("<f4", &[rows, width])
}

/// The matrix in a file that [`write_matrix`] wrote and that was read, of which the shape is known.
pub fn parse_matrix(path: &Path, bytes: &Buffer<u8>, rows: usize, width: usize) -> Result<Buffer<f32>> {
    let wrong = |why: String| Error::file(path, format!("{why}; the file is damaged or was changed"));
    let header = header(rows, width);
    if !bytes.starts_with(&header) {
        return Err(wrong(format!("it does not hold {rows} rows of {width} numbers of 32 bits")));
    }
    let (values, expected) = (bytes.len() - header.len(), rows.saturating_mul(width).saturating_mul(4));
    if values != expected {
        return Err(wrong(format!("it has {values} bytes of values, not {expected}")));
    }
    bytes.values_from(header.len()).ok_or_else(|| wrong("its values are cut short".into()))
}
