//! A folder of parts: one of our files in pieces, each with what belongs to a range of nodes.
//!
//! | file | what |
//! |---|---|
//! | `parts.json` | the number of bytes of the whole file; for each part its nodes and edges, its size, its checksum, and which pieces of the whole it holds, one after the other |
//! | `part-00000.bin` and so on | the pieces |
//!
//! Put together, the pieces are a `.progap` file whose sections begin at multiples of 64 KiB; and so do all pieces, so
//! that they can be mapped side by side and used as if they were one file. A piece begins with the first whole 64 KiB
//! of a section that belong to the nodes of its part; what comes before lies in the part before. Whoever reads some
//! nodes thus reads the parts that hold them, and a page of the next at most, however many parts there are.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::layout::{self, FileBytes, Section};
use super::pages;
use super::part::bytes_before;
use crate::error::InFile;
use crate::{AtomicFolder, Dataset, Error, Place, Problem, Result, Split, file, part};

/// The file that says what the parts are.
pub const MANIFEST: &str = "parts.json";
/// Where pieces begin: no system that we know has larger pages.
const PAGE: usize = 64 << 10;
const VERSION: u32 = 1;
/// The most parts: each is mapped in some ten pieces, and systems map some ten thousands for a process.
const MOST: usize = 1 << 12;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    version: u32,
    bytes: usize,
    parts: Vec<PartEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartEntry {
    /// The first node, and the first that is not in it. For people: readers go by what the pieces hold.
    nodes: [usize; 2],
    edges: usize,
    bytes: usize,
    /// As that of a section, in hexadecimal digits.
    checksum: String,
    /// Where each piece begins in the whole, and how many bytes it has.
    pieces: Vec<[usize; 2]>,
}

/// A piece of the whole, and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Placed {
    whole: Range<usize>,
    part: usize,
    from: usize,
}

/// Whether this is a folder of parts.
pub fn is_parts(path: &Path) -> bool {
    path.join(MANIFEST).is_file()
}

/// Writes a data set as a folder of this many parts, each with about as many edges and rows as any other; whole or not
/// at all.
///
/// # Errors
/// A folder that is there and not empty; no parts, or too many; a disk that takes no more.
pub fn write_parts(dataset: &Dataset, folder: &Path, parts: usize) -> Result<()> {
    if !(1..=MOST).contains(&parts) {
        return Err(Problem::Invalid(format!("{parts} parts: there can be 1 to {MOST}")).in_file(folder));
    }
    let columns = dataset.features().columns();
    let features = super::feature_sections(dataset.features());
    super::with_sections(dataset, columns, features, |version, sections| {
        let beside = AtomicFolder::create(folder)?;
        let borders = borders(dataset, parts);
        let (starts, bytes) = layout::starts(sections, PAGE);
        let pieces = pieces(dataset, sections, &starts, bytes, &borders);
        let mut out = Scattered::create(beside.path(), parts, &pieces)?;
        layout::write(version, sections, PAGE, &mut out)?;
        out.finish()?;
        let offsets = dataset.graph().offsets();
        let entry = |part: usize| {
            let own = pieces.iter().filter(|piece| piece.part == part);
            let nodes = [borders[part], borders[part + 1]];
            Ok(PartEntry {
                nodes,
                edges: (offsets[nodes[1]] - offsets[nodes[0]]) as usize,
                bytes: own.clone().map(|piece| piece.whole.len()).sum(),
                checksum: checksum(&beside.path().join(file_name(part)))?,
                pieces: own.map(|piece| [piece.whole.start, piece.whole.len()]).collect(),
            })
        };
        let entries = (0..parts).map(entry).collect::<Result<_>>()?;
        let manifest = Manifest { version: VERSION, bytes, parts: entries };
        let mut file = File::create(beside.path().join(MANIFEST))?;
        serde_json::to_writer(&mut file, &manifest).map_err(io::Error::from)?;
        file.sync_all()?;
        beside.commit()
    })
    .in_file(folder)
}

/// Opens a folder of parts as [`open`](super::open) opens a file, and on the same condition.
///
/// # Errors
/// Parts that are missing, damaged or do not belong together.
pub fn open_parts(folder: &Path) -> Result<Dataset> {
    let content = content(folder, pages::When::Mapped)?;
    super::dataset(content).map_err(|error| blame(folder, error))
}

/// Checks what a manifest says as far as that can be done without the parts.
///
/// # Errors
/// Pieces that do not make one file.
pub fn check_manifest(manifest: &[u8]) -> Result<()> {
    Manifest::parse(manifest).map(drop)
}

/// All pieces, side by side.
pub(super) fn content(folder: &Path, when: pages::When) -> Result<FileBytes> {
    let path = file::within(folder, folder.join(MANIFEST))?;
    let (manifest, placed) = Manifest::parse(&file::read(&path)?).in_file(&path)?;
    let mut files = Vec::with_capacity(manifest.parts.len());
    for (part, entry) in manifest.parts.iter().enumerate() {
        let path = file::within(folder, folder.join(file_name(part)))?;
        let file = file::open(&path)?;
        let found = file.metadata().in_file(&path)?.len();
        if found != entry.bytes as u64 {
            let message = format!("it has {found} bytes of {}", entry.bytes);
            return Err(Problem::Truncated(message).in_file(&path));
        }
        files.push(file);
    }
    side_by_side(&manifest, &placed, &files, when).in_file(folder)
}

#[cfg(unix)]
fn side_by_side(
    manifest: &Manifest,
    placed: &[Placed],
    files: &[File],
    when: pages::When,
) -> Result<FileBytes> {
    let pieces: Vec<_> = placed
        .iter()
        .map(|piece| super::map::Piece {
            file: &files[piece.part],
            from: piece.from as u64,
            at: piece.whole.start,
            length: piece.whole.len(),
        })
        .collect();
    Ok(FileBytes::Mapped(pages::map_together(manifest.bytes, &pieces, when)?))
}

/// Where files cannot be mapped side by side they are read.
#[cfg(not(unix))]
fn side_by_side(manifest: &Manifest, placed: &[Placed], files: &[File], _: pages::When) -> Result<FileBytes> {
    use std::io::Read;
    let mut whole = Vec::new();
    for piece in placed {
        let mut file = &files[piece.part];
        file.seek(SeekFrom::Start(piece.from as u64))?;
        file.take(piece.whole.len() as u64).read_to_end(&mut whole)?;
    }
    debug_assert_eq!(whole.len(), manifest.bytes);
    Ok(FileBytes::Owned(whole))
}

/// The error that a file or folder gave; where a part is damaged, that it is.
pub(super) fn blame(path: &Path, error: Error) -> Error {
    let damaged = || -> Result<()> {
        let (manifest, _) = Manifest::parse(&file::read(&path.join(MANIFEST))?)?;
        for (part, entry) in manifest.parts.into_iter().enumerate() {
            let path = path.join(file_name(part));
            let found = checksum(&path).in_file(&path)?;
            if found != entry.checksum {
                return Err(Problem::Checksum { expected: entry.checksum, found }.in_file(&path));
            }
        }
        Ok(())
    };
    match is_parts(path).then(damaged) {
        Some(Err(of_part)) => of_part,
        Some(Ok(())) | None => error.in_file(path),
    }
}

impl Manifest {
    /// The content of a manifest, and the pieces in the order of the whole.
    fn parse(content: &[u8]) -> Result<(Manifest, Vec<Placed>)> {
        let manifest: Manifest =
            serde_json::from_slice(content).map_err(|error| Problem::Corrupt(error.to_string()))?;
        if manifest.version != VERSION {
            let message = format!(
                "the parts have version {} of the format; this build reads version {VERSION}",
                manifest.version
            );
            return Err(Problem::Unsupported(message).into());
        }
        let corrupt = |what: &str| Problem::Corrupt(what.into()).at(Place::Key("pieces".into()));
        if !(1..=MOST).contains(&manifest.parts.len()) {
            return Err(corrupt("there are no parts, or too many"));
        }
        let mut placed = vec![];
        for (part, entry) in manifest.parts.iter().enumerate() {
            let mut from = 0usize;
            for &[start, length] in &entry.pieces {
                let end = start.checked_add(length).filter(|_| start % PAGE == 0 && length > 0);
                let whole = start..end.ok_or_else(|| corrupt("a piece is empty or begins within a page"))?;
                placed.push(Placed { whole, part, from });
                from = from.checked_add(length).ok_or_else(|| corrupt("a part is too long"))?;
            }
            if from != entry.bytes {
                return Err(corrupt("a part has another size than its pieces have"));
            }
        }
        placed.sort_unstable_by_key(|piece| piece.whole.start);
        let mut end = 0;
        for piece in &placed {
            if piece.whole.start != end || piece.from % PAGE != 0 {
                return Err(corrupt("the pieces do not make one file"));
            }
            end = piece.whole.end;
        }
        match end == manifest.bytes && end > 0 {
            true => Ok((manifest, placed)),
            false => Err(corrupt("the pieces do not make one file")),
        }
    }
}

/// The name of a part: it follows from its number, so that a manifest names no other files.
fn file_name(part: usize) -> String {
    format!("part-{part:05}.bin")
}

fn checksum(path: &Path) -> Result<String> {
    let file = file::open(path)?;
    let sum = match file.metadata().in_file(path)?.len() {
        0 => layout::checksum(&[]),
        _ => layout::checksum(&pages::map_lazily(&file).in_file(path)?),
    };
    Ok(format!("{sum:016x}"))
}

/// Where the nodes of each part begin, and where the last end.
fn borders(dataset: &Dataset, parts: usize) -> Vec<usize> {
    let none = Split::from_parts(std::iter::empty());
    part::borders(dataset.graph(), dataset.split().unwrap_or(&none), parts, None)
}

/// The pieces of all sections, in the order of the whole.
fn pieces(
    dataset: &Dataset,
    sections: &[Section<'_>],
    starts: &[usize],
    bytes: usize,
    borders: &[usize],
) -> Vec<Placed> {
    let parts = borders.len() - 1;
    let mut lengths = vec![0; parts];
    let mut found: Vec<Placed> = vec![];
    let mut add = |part: usize, whole: Range<usize>| {
        if !whole.is_empty() {
            let from = lengths[part];
            lengths[part] += whole.len();
            found.push(Placed { whole, part, from });
        }
    };
    add(0, 0..starts[0]);
    for (at, section) in sections.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(bytes);
        let cut = |part: usize| match bytes_before(dataset, section.name(), borders[part]) {
            _ if part == 0 => starts[at],
            Some(before) if part < parts => end.min(starts[at] + before.next_multiple_of(PAGE)),
            // Bytes that belong to no node are the first part's.
            Some(_) | None => end,
        };
        (0..parts).for_each(|part| add(part, cut(part)..cut(part + 1)));
    }
    found
}

/// Writes the whole into its parts.
struct Scattered<'p> {
    files: Vec<(PathBuf, BufWriter<File>)>,
    pieces: &'p [Placed],
    position: usize,
}

impl<'p> Scattered<'p> {
    fn create(folder: &Path, parts: usize, pieces: &'p [Placed]) -> Result<Self> {
        let create = |part: usize| {
            let path = folder.join(file_name(part));
            let file = File::create(&path).in_file(&path)?;
            Ok((path, BufWriter::with_capacity(1 << 20, file)))
        };
        Ok(Scattered { files: (0..parts).map(create).collect::<Result<_>>()?, pieces, position: 0 })
    }

    /// The piece that holds the next byte.
    fn piece(&self) -> io::Result<&'p Placed> {
        let at = self.pieces.partition_point(|piece| piece.whole.end <= self.position);
        self.pieces.get(at).ok_or_else(|| io::Error::other("the parts are full"))
    }

    fn finish(self) -> Result<()> {
        for (path, writer) in self.files {
            let file = writer.into_inner().map_err(io::IntoInnerError::into_error).in_file(&path)?;
            file.sync_all().in_file(&path)?;
        }
        Ok(())
    }
}

impl Write for Scattered<'_> {
    /// Pieces of a part follow each other as they do in the whole, so its file is written from the beginning to the
    /// end.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let piece = self.piece()?;
        let room = piece.whole.end - self.position;
        let written = self.files[piece.part].1.write(&bytes[..bytes.len().min(room)])?;
        self.position += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.files.iter_mut().try_for_each(|(_, file)| file.flush())
    }
}

impl Seek for Scattered<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(position) = to else {
            return Err(io::Error::other("parts are written from places that are known"));
        };
        self.position = position as usize;
        let piece = self.piece()?;
        let place = piece.from + (self.position - piece.whole.start);
        self.files[piece.part].1.seek(SeekFrom::Start(place as u64))?;
        Ok(position)
    }
}
