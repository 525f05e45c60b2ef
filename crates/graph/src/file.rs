//! The one place through which every file of data is opened.
//!
//! Such a file may come from a stranger: a pipe or a device is never read, and opening one never waits; a link in a
//! folder of data does not lead out of it; and what is packed does not unpack to any size.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::encoding::{Encoding, decoded};
use crate::error::InFile;
use crate::{Problem, Result, room};

/// Opens a regular file.
pub fn open(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path).in_file(path)?;
    let kind = file.metadata().in_file(path)?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let found = if kind.is_dir() { "a folder" } else { "a pipe, a socket or a device" };
    Err(Problem::NotAFile(found).in_file(path))
}

/// Reads a file whole, where there is room for it.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let mut file = open(path)?;
    let length = file.metadata().in_file(path)?.len();
    let mut content = room::with_room(usize::try_from(length).unwrap_or(usize::MAX)).in_file(path)?;
    file.read_to_end(&mut content).in_file(path)?;
    Ok(content)
}

/// Values that are parsed take about this many times the bytes of their text.
const PARSED: u64 = 10;

/// Reads a file of text whole, where there is room for all that will be made of it.
pub fn read_text(path: &Path, encoding: Option<Encoding>) -> Result<String> {
    let file = open(path)?;
    let length = file.metadata().in_file(path)?.len();
    room::expect_free(length.saturating_mul(PARSED), 0.0).in_file(path)?;
    let mut bytes = room::with_room(usize::try_from(length).unwrap_or(usize::MAX)).in_file(path)?;
    decoded(Box::new(file), encoding).in_file(path)?.read_to_end(&mut bytes).in_file(path)?;
    String::from_utf8(bytes).map_err(|_| Encoding::not_utf8().in_file(path))
}

/// A path that was found in a folder; one that leads out of it by a link is refused.
pub fn within<P: AsRef<Path>>(folder: &Path, path: P) -> Result<P> {
    let found = path.as_ref();
    let below = found.strip_prefix(folder).unwrap_or(found);
    let steps = below.ancestors().filter(|step| !step.as_os_str().is_empty());
    let links = |step: &Path| folder.join(step).symlink_metadata().is_ok_and(|data| data.is_symlink());
    if steps.map(Path::to_path_buf).any(|step: PathBuf| links(&step)) {
        let inside = folder
            .canonicalize()
            .and_then(|folder| Ok(found.canonicalize()?.starts_with(folder)))
            .in_file(found)?;
        if !inside {
            return Err(Problem::LeadsOut.in_file(found));
        }
    }
    Ok(path)
}

/// What is packed may unpack to this many bytes, and to this many times its size on top. The files of real graphs
/// expand tenfold; deflate could do a thousandfold.
const FREE: u64 = 32 << 20;
const EXPANSION: u64 = 200;

/// The error within [`io::Error`] that becomes [`Problem::Expands`].
#[derive(Debug, thiserror::Error)]
#[error("it unpacks to more than {EXPANSION} times its size")]
pub struct Expands;

/// Unpacked bytes. What counts is the packed bytes that really came, not a length that a header announces.
pub struct Unpacked<D> {
    inner: D,
    packed: Rc<Cell<u64>>,
    given: Rc<Cell<u64>>,
}

impl<D: Read> Unpacked<D> {
    /// The bytes that a decoder makes of others.
    pub fn by<R: Read>(
        packed: R,
        decoder: impl FnOnce(BufReader<Counted<R>>) -> io::Result<D>,
    ) -> io::Result<Self> {
        let count = Rc::new(Cell::new(0));
        let counted = Counted { inner: packed, count: count.clone() };
        let inner = decoder(BufReader::with_capacity(1 << 16, counted))?;
        Ok(Unpacked { inner, packed: count, given: Rc::default() })
    }

    /// A part of an archive of this size, of which so much was unpacked before.
    pub fn of_archive(inner: D, size: u64, given: &Rc<Cell<u64>>) -> Self {
        Unpacked { inner, packed: Rc::new(Cell::new(size)), given: given.clone() }
    }
}

impl<D: Read> Read for Unpacked<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.given.set(self.given.get() + read as u64);
        match self.given.get() > FREE + EXPANSION.saturating_mul(self.packed.get()) {
            true => Err(io::Error::new(io::ErrorKind::InvalidData, Expands)),
            false => Ok(read),
        }
    }
}

/// Counts what is read.
pub struct Counted<R> {
    inner: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}
