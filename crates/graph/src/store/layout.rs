//! Header, section table and checksums.

use std::collections::HashMap;
use std::hash::Hasher;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;
use rayon::prelude::*;
use twox_hash::XxHash3_64;

use crate::{Buffer, Error, Place, Problem, Result};

pub(super) const MAGIC: [u8; 8] = *b"\x89PROGAP\n";
/// The version of files that need nothing newer.
pub(super) const PLAIN: u32 = 1;
/// The version of files in which labels are missing or columns have a unit of their own.
pub(super) const OWN_DATA: u32 = 2;
/// The version of files whose edges have weights.
pub(super) const WEIGHTED: u32 = 3;
/// The version of files with features in half precision.
pub(super) const HALF: u32 = 4;
const HEADER: usize = 64;
const ENTRY: usize = 48;
const NAME: usize = 16;
/// Where sections begin in a file: at multiples of this.
pub(super) const ALIGNMENT: usize = 64;
pub(super) const CHUNK: usize = 4 << 20;
/// Bytes that are hashed by all threads, and then written.
const PIECE: usize = 16 * CHUNK;
/// More than any version of the format has; a forged count is refused early.
const MAX_SECTIONS: usize = 64;

#[cfg(target_endian = "big")]
compile_error!("the .progap format is used in place and is little-endian");

/// A named run of bytes.
pub(super) struct Section<'a> {
    name: &'static str,
    length: usize,
    content: Content<'a>,
}

/// A consumer of the pieces of a section, in their order.
pub(super) type Take<'t> = dyn FnMut(&[u8]) -> io::Result<()> + 't;

enum Content<'a> {
    There(&'a [u8]),
    /// Made while it is written, piece by piece.
    Made(&'a dyn Fn(&mut Take<'_>) -> io::Result<()>),
}

impl<'a> Section<'a> {
    pub(super) fn new(name: &'static str, content: &'a [u8]) -> Self {
        Section { name, length: content.len(), content: Content::There(content) }
    }

    /// A section of this many bytes that are never there all at once.
    pub(super) fn made(
        name: &'static str,
        length: usize,
        make: &'a dyn Fn(&mut Take<'_>) -> io::Result<()>,
    ) -> Self {
        Section { name, length, content: Content::Made(make) }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Writes the content and gives its checksum: each byte is read once.
    fn write(&self, out: &mut impl Write) -> io::Result<u64> {
        let (mut sum, mut written) = (Checksum::default(), 0);
        let mut take = |piece: &[u8]| {
            written += piece.len();
            sum.add(piece);
            out.write_all(piece)
        };
        match self.content {
            Content::There(content) => content.chunks(PIECE).try_for_each(take)?,
            Content::Made(make) => make(&mut take)?,
        }
        match written == self.length {
            true => Ok(sum.finish()),
            false => Err(io::Error::other(format!("section {} has another length than it said", self.name))),
        }
    }
}

/// Where each section begins if it begins at a multiple of `alignment`, and where the file ends.
pub(super) fn starts(sections: &[Section], alignment: usize) -> (Vec<usize>, usize) {
    let mut end = HEADER + sections.len() * ENTRY;
    let mut start = |section: &Section| {
        let start = end.next_multiple_of(alignment);
        end = start + section.length;
        start
    };
    let starts = sections.iter().map(&mut start).collect();
    (starts, end)
}

/// Writes header, table and sections, these at multiples of `alignment`. The first two come last, when the checksums
/// are known.
pub(super) fn write(
    version: u32,
    sections: &[Section],
    alignment: usize,
    out: &mut (impl Write + Seek),
) -> io::Result<()> {
    let mut end = HEADER + sections.len() * ENTRY;
    out.write_all(&vec![0; end])?;
    let mut table = Vec::with_capacity(sections.len() * ENTRY);
    for (section, start) in sections.iter().zip(starts(sections, alignment).0) {
        out.write_all(&vec![0; start - end])?;
        let checksum = section.write(out)?;
        let mut name = [0u8; NAME];
        name[..section.name.len()].copy_from_slice(section.name.as_bytes());
        table.extend_from_slice(&name);
        for number in [start as u64, section.length as u64, checksum, 0] {
            table.extend_from_slice(&number.to_le_bytes());
        }
        end = start + section.length;
    }
    let mut header = Vec::with_capacity(HEADER);
    header.extend_from_slice(&MAGIC);
    header.extend_from_slice(&version.to_le_bytes());
    header.extend_from_slice(&(sections.len() as u32).to_le_bytes());
    header.extend_from_slice(&(end as u64).to_le_bytes());
    header.extend_from_slice(&header_checksum(&header, &table).to_le_bytes());
    header.resize(HEADER, 0);
    out.seek(SeekFrom::Start(0))?;
    out.write_all(&header)?;
    out.write_all(&table)
}

/// The bytes of a file, mapped or owned.
pub(super) enum FileBytes {
    Mapped(Arc<Mmap>),
    Owned(Vec<u8>),
}

impl FileBytes {
    fn bytes(&self) -> &[u8] {
        match self {
            FileBytes::Mapped(map) => map,
            FileBytes::Owned(bytes) => bytes,
        }
    }
}

/// The sections of a file whose checksums are right.
pub(super) struct Sections {
    source: FileBytes,
    pub(super) version: u32,
    /// The checksum of the header, which covers those of all sections.
    pub(super) header: u64,
    ranges: HashMap<String, Range<usize>>,
    sums: HashMap<String, u64>,
}

impl Sections {
    /// Reads header and table and verifies every checksum.
    pub(super) fn parse(source: FileBytes) -> Result<Self> {
        Sections::parse_but(source, &[])
    }

    /// As [`Sections::parse`]; the checksums of some sections are left to [`Sections::compare`].
    pub(super) fn parse_but(source: FileBytes, unverified: &[&str]) -> Result<Self> {
        let file = source.bytes();
        let truncated =
            |what: &str| Problem::Truncated(format!("{} bytes are too few for {what}", file.len()));
        let header: &[u8; HEADER] = file.first_chunk().ok_or_else(|| truncated("a header"))?;
        if header[..8] != MAGIC {
            return Err(Problem::Corrupt("it does not start as a .progap file does".into()).into());
        }
        let version = u32_at(header, 8);
        if !(PLAIN..=HALF).contains(&version) {
            let message = format!(
                "the file has version {version} of the format; this build reads versions {PLAIN} to {HALF}"
            );
            return Err(Problem::Unsupported(message).into());
        }
        let count = u32_at(header, 12) as usize;
        if count > MAX_SECTIONS {
            return Err(Problem::Corrupt(format!("{count} sections are more than any file has")).into());
        }
        let table = file.get(HEADER..HEADER + count * ENTRY).ok_or_else(|| truncated("the section table"))?;
        expect_checksum("header", u64_at(header, 24), header_checksum(&header[..24], table))?;
        let length = u64_at(header, 16);
        if length != file.len() as u64 {
            let message = format!("it has {} bytes of {length}", file.len());
            return Err(Problem::Truncated(message).into());
        }
        let (mut ranges, mut sums) = (HashMap::new(), HashMap::new());
        for entry in table.chunks_exact(ENTRY) {
            let name = String::from_utf8_lossy(&entry[..NAME]).trim_end_matches('\0').to_string();
            let corrupt = |what: &str| Problem::Corrupt(what.into()).at(Place::Key(name.clone()));
            let (start, length) = (u64_at(entry, 16), u64_at(entry, 24));
            let end = start.checked_add(length).filter(|&end| end <= file.len() as u64);
            let Some(end) = end else { return Err(corrupt("the section lies outside the file")) };
            let range = start as usize..end as usize;
            if range.start % ALIGNMENT != 0 {
                return Err(corrupt("the section is not aligned"));
            }
            if !unverified.contains(&&name[..]) {
                expect_checksum(&name, u64_at(entry, 32), checksum(&file[range.clone()]))?;
            }
            sums.insert(name.clone(), u64_at(entry, 32));
            if ranges.insert(name.clone(), range).is_some() {
                return Err(corrupt("the section stands twice in the table"));
            }
        }
        let header = u64_at(header, 24);
        Ok(Sections { source, version, header, ranges, sums })
    }

    /// Compares the checksums of all pieces of a section with that of the section.
    pub(super) fn compare(&self, name: &str, pieces: &[u64]) -> Result<()> {
        let expected = self.sums.get(name).copied().ok_or_else(|| self.missing(name))?;
        expect_checksum(name, expected, XxHash3_64::oneshot(bytemuck::must_cast_slice(pieces)))
    }

    /// The bytes of a section.
    pub(super) fn bytes(&self, name: &str) -> Result<&[u8]> {
        let range = self.ranges.get(name).ok_or_else(|| self.missing(name))?;
        Ok(&self.source.bytes()[range.clone()])
    }

    /// The values of a section, where it is there.
    pub(super) fn optional<T: Pod>(&self, name: &str) -> Result<Option<Buffer<T>>> {
        let Some(range) = self.ranges.get(name) else { return Ok(None) };
        if range.len() % size_of::<T>() != 0 {
            let message = format!("{} bytes are no whole number of values", range.len());
            return Err(Problem::Corrupt(message).at(Place::Key(name.into())));
        }
        let buffer = match &self.source {
            FileBytes::Mapped(map) => Buffer::mapped(map.clone(), range.clone()),
            FileBytes::Owned(bytes) => {
                Some(bytemuck::allocation::pod_collect_to_vec(&bytes[range.clone()]).into())
            }
        };
        buffer
            .map(Some)
            .ok_or_else(|| Problem::Corrupt("the section is not aligned".into()).at(Place::Key(name.into())))
    }

    pub(super) fn missing(&self, name: &str) -> Error {
        let mut found: Vec<_> = self.ranges.keys().map(String::as_str).collect();
        found.sort_unstable();
        Problem::Missing { what: format!("section {name:?}"), found: found.join(", ") }.into()
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|k| bytes[at + k]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|k| bytes[at + k]))
}

fn header_checksum(start: &[u8], table: &[u8]) -> u64 {
    XxHash3_64::oneshot(&[start, table].concat())
}

/// The checksum of a section.
pub(super) fn checksum(content: &[u8]) -> u64 {
    let mut sum = Checksum::default();
    sum.add(content);
    sum.finish()
}

/// Hashes of the chunks, hashed: several threads can work on one.
#[derive(Default)]
struct Checksum {
    chunks: Vec<u64>,
    /// The chunk that is not whole yet, and how many bytes it has.
    begun: (XxHash3_64, usize),
}

impl Checksum {
    fn add(&mut self, mut piece: &[u8]) {
        while self.begun.1 > 0 && !piece.is_empty() {
            let (more, rest) = piece.split_at(piece.len().min(CHUNK - self.begun.1));
            self.begin(more);
            piece = rest;
        }
        let whole = piece.len() / CHUNK * CHUNK;
        let hash = |chunk: &[u8]| {
            let sum = XxHash3_64::oneshot(chunk);
            super::note_read(chunk.len());
            sum
        };
        self.chunks.par_extend(piece[..whole].par_chunks(CHUNK).map(hash));
        self.begin(&piece[whole..]);
    }

    fn begin(&mut self, bytes: &[u8]) {
        self.begun.0.write(bytes);
        self.begun.1 += bytes.len();
        if self.begun.1 == CHUNK {
            self.chunks.push(std::mem::take(&mut self.begun).0.finish());
        }
    }

    fn finish(mut self) -> u64 {
        if self.begun.1 > 0 {
            self.chunks.push(self.begun.0.finish());
        }
        XxHash3_64::oneshot(bytemuck::must_cast_slice(&self.chunks))
    }
}

/// The checksum of one piece of a section.
pub(super) fn piece_checksum(piece: &[u8]) -> u64 {
    XxHash3_64::oneshot(piece)
}

fn expect_checksum(what: &str, expected: u64, found: u64) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    let [expected, found] = [expected, found].map(|sum| format!("{sum:016x}"));
    Err(Problem::Checksum { expected, found }.at(Place::Key(what.into())))
}
