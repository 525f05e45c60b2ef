//! A zip archive of arrays.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::rc::Rc;

use zip::ZipArchive;
use zip::result::ZipError;

use super::pickle;
use crate::file::Unpacked;
use crate::read::npy::{self, Npy};
use crate::{Error, Place, Problem, Result};

/// A zip archive of arrays.
pub(in crate::read) struct Archive<R> {
    zip: ZipArchive<R>,
    bytes: u64,
    unpacked: Rc<Cell<u64>>,
    /// Arrays that lay in pickled matrices, by the name of the matrix and of its part.
    unpickled: BTreeMap<String, Vec<u8>>,
}

impl<R: Read + Seek> Archive<R> {
    pub(in crate::read) fn new(mut reader: R) -> Result<Self> {
        let bytes = reader.seek(SeekFrom::End(0))?;
        reader.rewind()?;
        let mut start = Vec::new();
        reader.by_ref().take(6).read_to_end(&mut start)?;
        reader.rewind()?;
        if bytes == 0 {
            return Err(Problem::Truncated("it is empty".into()).into());
        }
        if start == b"\x93NUMPY" {
            let message = "this is a single array (.npy), not an archive of arrays (.npz)".into();
            return Err(Problem::Unsupported(message).into());
        }
        if !start.starts_with(b"PK") {
            return Err(Problem::Corrupt("it is not a zip archive, as every .npz is".into()).into());
        }
        let zip = ZipArchive::new(reader).map_err(|e| match e {
            ZipError::InvalidArchive(message) => {
                Problem::Truncated(format!("no usable list of contents at its end ({message})")).into()
            }
            other => zip_error(other),
        })?;
        Ok(Archive { zip, bytes, unpacked: Rc::default(), unpickled: BTreeMap::new() })
    }

    /// The names of the arrays, in the archive's order.
    pub(in crate::read) fn keys(&self) -> Vec<String> {
        let names = self.zip.file_names().filter_map(std::result::Result::ok);
        names.map(|name| name.strip_suffix(".npy").unwrap_or(&name).to_string()).collect()
    }

    pub(in crate::read) fn has(&self, key: &str) -> bool {
        self.unpickled.contains_key(key) || self.member(key).is_some() && !self.is_unpickled(key)
    }

    /// Whether a matrix of that name was pickled, and is there in its parts.
    pub(super) fn is_unpickled(&self, key: &str) -> bool {
        self.unpickled.contains_key(&format!("{key}.indptr"))
    }

    /// Puts the parts of a pickled matrix in its place; anything else that is pickled stays as it is.
    pub(super) fn unpickle(&mut self, key: &str) -> Result<()> {
        match self.get(key) {
            Err(e) if matches!(e.problem(), Problem::PickledObjects) => {}
            _ => return Ok(()),
        }
        let Some(index) = self.member(key) else { return Ok(()) };
        let member = self.zip.by_index(index).map_err(|e| zip_error(e).at(Place::Key(key.into())))?;
        let mut content = Vec::new();
        Unpacked::of_archive(member, self.bytes, &self.unpacked).read_to_end(&mut content)?;
        let pickle = npy::behind_header(&content);
        for (part, array) in pickle.and_then(pickle::compressed_rows).into_iter().flatten() {
            self.unpickled.insert(format!("{key}.{part}"), array);
        }
        Ok(())
    }

    fn member(&self, key: &str) -> Option<usize> {
        self.zip.index_for_name(&format!("{key}.npy")).or_else(|| self.zip.index_for_name(key))
    }

    /// The array of that name, if there is one.
    pub(in crate::read) fn get(&mut self, key: &str) -> Result<Option<Npy<Box<dyn Read + '_>>>> {
        if let Some(array) = self.unpickled.get(key) {
            return Npy::open(key, Box::new(&array[..]) as Box<dyn Read + '_>, array.len() as u64).map(Some);
        }
        let Some(index) = self.member(key) else { return Ok(None) };
        let member = self.zip.by_index(index).map_err(|e| zip_error(e).at(Place::Key(key.into())))?;
        // Numbers rarely shrink to less than an eighth; lists grow by themselves where they do.
        let justified = member.size().min(member.compressed_size().min(self.bytes).saturating_mul(8));
        let member = Unpacked::of_archive(member, self.bytes, &self.unpacked);
        Npy::open(key, Box::new(member) as Box<dyn Read + '_>, justified).map(Some)
    }

    /// The array of that name; what it holds is named in the error if there is none.
    pub(in crate::read) fn require(&mut self, key: &str, what: &str) -> Result<Npy<Box<dyn Read + '_>>> {
        // Made first, as an array that is found borrows the archive.
        let missing = self.missing(&format!("array {key:?} ({what})"));
        self.get(key)?.ok_or(missing)
    }

    pub(in crate::read) fn missing(&self, what: &str) -> Error {
        const SHOWN: usize = 20;
        let keys = self.keys();
        let more = if keys.len() > SHOWN { ", ..." } else { "" };
        let shown = keys.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        let found = if keys.is_empty() { "no arrays at all".into() } else { format!("{shown}{more}") };
        Problem::Missing { what: what.into(), found }.into()
    }

    /// Names that may be there; those that are Python objects are left alone.
    pub(super) fn names(
        &mut self,
        key: &str,
        what: &str,
        expected: Option<u64>,
    ) -> Result<Option<Vec<String>>> {
        match self.get(key) {
            Err(e) if matches!(e.problem(), Problem::PickledObjects) => Ok(None),
            array => array?.map(|array| array.vector(what, expected)?.texts()).transpose(),
        }
    }

    pub(super) fn is_scipy(&self) -> bool {
        self.has("format") && self.has("shape")
    }
}

fn zip_error(e: ZipError) -> Error {
    match e {
        ZipError::Io(e) => e.into(),
        ZipError::UnsupportedArchive(_) | ZipError::CompressionMethodNotSupported(_) => {
            Problem::Unsupported(format!("the archive uses something that is not read: {e}")).into()
        }
        other => Problem::Corrupt(other.to_string()).into(),
    }
}
