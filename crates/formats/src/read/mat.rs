//! MATLAB v5 files: sparse patterns and numeric tables, from a stream.
//!
//! A file is a header of 128 bytes and a list of elements. An element is a tag (type and length) with its
//! bytes; an array is an element made of elements (flags, dimensions, name, values), and since MATLAB 7 each
//! array usually stands in an element of its own that is a zlib stream. Only what a graph needs is read:
//! sparse arrays as patterns, full numeric arrays of two dimensions; the rest is skipped.
//!
//! No length in a file is believed: vectors grow as bytes arrive, and a zlib stream may not expand without
//! bounds ([`Unpacked`]).

use std::collections::BTreeMap;
use std::io::{self, Read};

use flate2::bufread::ZlibDecoder;

use crate::file::Unpacked;
use crate::{Place, Problem, Result, room};

/// An array of a `.mat` file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Array {
    /// A sparse matrix.
    Sparse(Pattern),
    /// A full matrix of numbers.
    Full(Table),
    /// Text, a cell, a structure or something else that holds no matrix of real numbers.
    Other(&'static str),
}

/// Where a sparse matrix is not zero: `row_indices[offsets[j]..offsets[j + 1]]` for column `j`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pattern {
    pub rows: usize,
    pub columns: usize,
    pub offsets: Vec<u64>,
    pub row_indices: Vec<u32>,
}

/// A full matrix, column after column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub rows: usize,
    pub columns: usize,
    pub values: Vec<f64>,
}

impl Table {
    pub(crate) fn column(&self, column: usize) -> &[f64] {
        &self.values[column * self.rows..(column + 1) * self.rows]
    }
}

/// Reads the arrays of those names; names that the file does not have are not in the result. `seen` collects
/// the names of all arrays of the file.
pub(crate) fn read_arrays(
    reader: &mut dyn Read,
    names: &[&str],
    seen: &mut Vec<String>,
) -> Result<BTreeMap<String, Array>> {
    let order = read_header(reader)?;
    let mut arrays = BTreeMap::new();
    while let Some(tag) = read_top_tag(reader, order)? {
        let mut body = Read::take(&mut *reader, tag.bytes.into());
        let (name, array) = match tag.kind {
            COMPRESSED => {
                let mut unpacked = Unpacked::by(&mut body, |packed| Ok(ZlibDecoder::new(packed)))?;
                read_compressed(&mut unpacked, order, names)?
            }
            MATRIX => read_matrix(&mut body, order, names)?,
            kind => {
                let message = format!("an element of type {kind} where an array should begin");
                return Err(Problem::Corrupt(message).into());
            }
        };
        drain(&mut body)?;
        if let Some(array) = array
            && arrays.insert(name.clone(), array).is_some()
        {
            let message = "the array stands twice in the file".into();
            return Err(Problem::Corrupt(message).at(Place::Key(name)));
        }
        seen.push(name);
    }
    Ok(arrays)
}

const INT8: u32 = 1;
const INT32: u32 = 5;
const UINT32: u32 = 6;
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;

/// The byte order of a file.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    }
}

fn read_header(reader: &mut dyn Read) -> Result<Order> {
    const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";
    let mut header = Vec::with_capacity(128);
    Read::take(&mut *reader, 128).read_to_end(&mut header)?;
    if header.starts_with(HDF5) || header.starts_with(b"MATLAB 7.3") {
        return Err(Problem::Unsupported(format!("this is a MATLAB 7.3 (HDF5) file{RESAVE}")).into());
    }
    // A version 4 file begins with a small number, so with a zero byte; a version 5 file begins with text.
    if header.len() >= 4 && header[..4].contains(&0) {
        let message = format!("this is a MATLAB 4 file or no MATLAB file at all{RESAVE}");
        return Err(Problem::Unsupported(message).into());
    }
    let Ok(header) = <[u8; 128]>::try_from(header) else {
        return Err(Problem::Truncated("it ends within the header of a MATLAB file".into()).into());
    };
    match header[124..] {
        [0x00, 0x01, b'I', b'M'] => Ok(Order::Little),
        [0x01, 0x00, b'M', b'I'] => Ok(Order::Big),
        [0x00, 0x02, b'I', b'M'] | [0x02, 0x00, b'M', b'I'] => {
            Err(Problem::Unsupported(format!("this is a MATLAB 7.3 (HDF5) file{RESAVE}")).into())
        }
        _ => Err(Problem::Unsupported(format!("this is no MATLAB v5 file{RESAVE}")).into()),
    }
}

const RESAVE: &str = "; in MATLAB or Octave, `load` it and `save('-v7', 'new.mat', 'A', 'local_info')`, or in Python \
                      `scipy.io.savemat`";

/// The type and length of an element; up to four bytes of content may stand in the tag itself.
struct Tag {
    kind: u32,
    bytes: u32,
    within: Option<[u8; 4]>,
}

/// The next tag between arrays; `None` at the end of the file.
fn read_top_tag(reader: &mut dyn Read, order: Order) -> Result<Option<Tag>> {
    let mut bytes = Vec::with_capacity(8);
    Read::take(&mut *reader, 8).read_to_end(&mut bytes)?;
    match <[u8; 8]>::try_from(&bytes[..]) {
        Ok(bytes) => {
            let tag = split_tag(bytes, order)?;
            if tag.within.is_some() {
                return Err(Problem::Corrupt("an array of at most four bytes".into()).into());
            }
            Ok(Some(tag))
        }
        Err(_) if bytes.is_empty() => Ok(None),
        Err(_) => Err(Problem::Truncated("it ends within the tag of an array".into()).into()),
    }
}

fn split_tag(bytes: [u8; 8], order: Order) -> Result<Tag> {
    let [a, b, c, d, e, f, g, h] = bytes;
    let (first, second) = (order.u32([a, b, c, d]), [e, f, g, h]);
    match first >> 16 {
        0 => Ok(Tag { kind: first, bytes: order.u32(second), within: None }),
        bytes @ 1..=4 => Ok(Tag { kind: first & 0xffff, bytes, within: Some(second) }),
        bytes => Err(Problem::Corrupt(format!("a small element of {bytes} bytes")).into()),
    }
}

/// An array that is a zlib stream: its end carries a checksum, which is verified for arrays that are wanted.
fn read_compressed(stream: &mut dyn Read, order: Order, names: &[&str]) -> Result<(String, Option<Array>)> {
    let mut tag = [0; 8];
    stream.read_exact(&mut tag)?;
    let tag = split_tag(tag, order)?;
    if tag.kind != MATRIX || tag.within.is_some() {
        return Err(Problem::Corrupt("a compressed element that holds no array".into()).into());
    }
    let mut body = Read::take(&mut *stream, tag.bytes.into());
    let (name, array) = read_matrix(&mut body, order, names)?;
    if array.is_some() {
        let at_end = drain(&mut body).and_then(|()| Ok(stream.read(&mut [0])? == 0));
        if !at_end.map_err(|e| e.at(Place::Key(name.clone())))? {
            let message = "the compressed array is longer than it says".into();
            return Err(Problem::Corrupt(message).at(Place::Key(name)));
        }
    }
    Ok((name, array))
}

/// Reads over what is left; less than was announced is an error.
fn drain(body: &mut io::Take<impl Read>) -> Result<()> {
    io::copy(body, &mut io::sink())?;
    match body.limit() {
        0 => Ok(()),
        missing => Err(Problem::Truncated(format!("{missing} bytes of an array are missing")).into()),
    }
}

/// The content of an array; it is not read if its name is not wanted.
fn read_matrix(body: &mut dyn Read, order: Order, names: &[&str]) -> Result<(String, Option<Array>)> {
    let mut elements = Elements { body, order };
    let flags = elements.small(UINT32, 16)?;
    let [Some(flags), Some(nonzeros)] = [0, 4].map(|at| flags.get(at..at + 4)) else {
        return Err(Problem::Corrupt("the flags of an array are too short".into()).into());
    };
    let word = |bytes: &[u8]| order.u32([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let (flags, max_nonzeros) = (word(flags), word(nonzeros));
    let dimensions: Vec<i32> =
        elements.small(INT32, 4 * 64)?.chunks_exact(4).map(|bytes| word(bytes) as i32).collect();
    let name = elements.small(INT8, 255)?;
    let name = String::from_utf8_lossy(&name).into_owned();
    if !names.contains(&&*name) {
        return Ok((name, None));
    }
    let array = read_content(&mut elements, &name, flags, max_nonzeros, &dimensions);
    array.map(|array| (name.clone(), Some(array))).map_err(|e| e.at(Place::Key(name)))
}

fn read_content(
    elements: &mut Elements<'_>,
    name: &str,
    flags: u32,
    max_nonzeros: u32,
    dimensions: &[i32],
) -> Result<Array> {
    const COMPLEX: u32 = 1 << 11;
    let class = flags & 0xff;
    let other = match class {
        1 => "a cell array",
        2 | 3 => "a structure",
        4 => "text",
        5..=15 if flags & COMPLEX != 0 => "an array of complex numbers",
        5..=15 if dimensions.len() != 2 => "an array of more than two dimensions",
        5..=15 => "",
        16 | 17 => "a function or object",
        class => return Err(Problem::Corrupt(format!("there is no array class {class}")).into()),
    };
    if !other.is_empty() {
        return Ok(Array::Other(other));
    }
    let [rows, columns] = [dimensions[0], dimensions[1]];
    let (Ok(rows), Ok(columns)) = (usize::try_from(rows), usize::try_from(columns)) else {
        return Err(Problem::Corrupt(format!("the array has the size {rows} x {columns}")).into());
    };
    if class == 5 {
        read_sparse(elements, name, rows, columns, max_nonzeros).map(Array::Sparse)
    } else {
        read_full(elements, rows, columns).map(Array::Full)
    }
}

fn read_full(elements: &mut Elements<'_>, rows: usize, columns: usize) -> Result<Table> {
    let mut values = Vec::new();
    let expected = rows as u64 * columns as u64;
    elements.numbers(&mut |more| {
        room::extend(&mut values, more.iter().copied())?;
        if values.len() as u64 > expected {
            Err(length("array", values.len() as u64, expected))
        } else {
            Ok(())
        }
    })?;
    if values.len() as u64 != expected {
        return Err(length("array", values.len() as u64, expected));
    }
    Ok(Table { rows, columns, values })
}

/// Stands for a number that is no index of 32 bits.
const NO_INDEX: u32 = u32::MAX;

/// Row indices, then where each column begins, then the values. Of these only it is kept which are not zero:
/// as they pass, the row indices move up over those of zeros.
fn read_sparse(
    elements: &mut Elements<'_>,
    name: &str,
    rows: usize,
    columns: usize,
    max_nonzeros: u32,
) -> Result<Pattern> {
    let mut row_indices: Vec<u32> = Vec::new();
    // Room that was set aside and never used may hold anything, so the range is checked further down.
    elements.indices(&mut |indices| Ok(room::extend(&mut row_indices, indices.iter().copied())?))?;
    let mut offsets: Vec<u64> = Vec::new();
    elements.numbers(&mut |starts| {
        let limit = row_indices.len() as u64 + 1;
        let is_start = |value: f64| value >= 0.0 && value < limit as f64 && value.fract() == 0.0;
        if let Some(at) = starts.iter().position(|&start| !is_start(start)) {
            let index = (offsets.len() + at) as u64;
            let place = Place::Element { key: format!("{name}, column starts"), index };
            return Err(Problem::IndexOutOfRange { index: starts[at].to_string(), limit }.at(place));
        }
        Ok(room::extend(&mut offsets, starts.iter().map(|&start| start as u64))?)
    })?;
    if offsets.len() as u64 != columns as u64 + 1 {
        return Err(length("list of column starts", offsets.len() as u64, columns as u64 + 1));
    }
    if offsets[0] != 0 || !offsets.is_sorted() {
        return Err(Problem::Corrupt("the starts of the columns do not rise from 0".into()).into());
    }
    let nonzeros = offsets[columns] as usize;
    if nonzeros as u64 > u64::from(max_nonzeros) {
        let message = format!("{nonzeros} entries where at most {max_nonzeros} are announced");
        return Err(Problem::Corrupt(message).into());
    }
    row_indices.truncate(nonzeros);
    if let Some(at) = row_indices.iter().position(|&row| row as usize >= rows) {
        let index = match row_indices[at] {
            NO_INDEX => "that is negative, broken or beyond 32 bits".into(),
            index => index.to_string(),
        };
        let place = Place::Element { key: format!("{name}, rows"), index: at as u64 };
        return Err(Problem::IndexOutOfRange { index, limit: rows as u64 }.at(place));
    }
    let (mut seen, mut kept, mut column) = (0usize, 0usize, 0usize);
    elements.numbers(&mut |values| {
        let values = &values[..values.len().min(nonzeros - seen)];
        // Without a way out of the loop, so that it is done in vectors.
        let ordinary = values.iter().fold(true, |ordinary, &value| ordinary & (value != 0.0));
        if kept == seen {
            if ordinary {
                // Nothing has moved so far.
                (seen, kept) = (seen + values.len(), kept + values.len());
                return Ok(());
            }
            column = offsets.partition_point(|&start| start < seen as u64);
        }
        for &value in values {
            while column < columns && offsets[column] <= seen as u64 {
                offsets[column] = kept as u64;
                column += 1;
            }
            row_indices[kept] = row_indices[seen];
            seen += 1;
            kept += usize::from(value != 0.0);
        }
        Ok(())
    })?;
    if seen != nonzeros {
        return Err(length("list of entries", seen as u64, nonzeros as u64));
    }
    if kept < seen {
        offsets[column..].fill(kept as u64);
    }
    row_indices.truncate(kept);
    row_indices.shrink_to_fit();
    Ok(Pattern { rows, columns, offsets, row_indices })
}

fn length(what: &str, found: u64, expected: u64) -> crate::Error {
    Problem::Length { what: what.into(), found, expected }.into()
}

/// The elements within an array, one after the other.
struct Elements<'a> {
    body: &'a mut dyn Read,
    order: Order,
}

impl Elements<'_> {
    fn tag(&mut self) -> Result<Tag> {
        let mut bytes = [0; 8];
        self.body.read_exact(&mut bytes)?;
        split_tag(bytes, self.order)
    }

    /// The bytes of an element that must be short.
    fn small(&mut self, kind: u32, limit: u32) -> Result<Vec<u8>> {
        let tag = self.tag()?;
        if tag.kind != kind || tag.bytes > limit {
            let message =
                format!("an element of type {} and {} bytes in the head of an array", tag.kind, tag.bytes);
            return Err(Problem::Corrupt(message).into());
        }
        if let Some(within) = tag.within {
            return Ok(within[..tag.bytes as usize].to_vec());
        }
        let mut bytes = vec![0; tag.bytes.next_multiple_of(8) as usize];
        self.body.read_exact(&mut bytes)?;
        bytes.truncate(tag.bytes as usize);
        Ok(bytes)
    }

    /// Hands over the numbers of an element, some thousands at a time, whatever type they are stored as.
    fn numbers(&mut self, each: &mut dyn FnMut(&[f64]) -> Result<()>) -> Result<()> {
        let tag = self.tag()?;
        self.tagged_numbers(&tag, each)
    }

    /// The same for numbers that should be indices; those that are none become [`NO_INDEX`].
    fn indices(&mut self, each: &mut dyn FnMut(&[u32]) -> Result<()>) -> Result<()> {
        let tag = self.tag()?;
        let number = |value: f64| if f64::from(value as u32) == value { value as u32 } else { NO_INDEX };
        match (tag.kind, self.order) {
            // As almost every file has them: no way round by floats.
            (INT32, Order::Little) => {
                self.values(&tag, |bytes| u32::try_from(i32::from_le_bytes(bytes)).unwrap_or(NO_INDEX), each)
            }
            _ => self.tagged_numbers(&tag, &mut |numbers| {
                each(&numbers.iter().map(|&value| number(value)).collect::<Vec<_>>())
            }),
        }
    }

    fn tagged_numbers(&mut self, tag: &Tag, each: &mut dyn FnMut(&[f64]) -> Result<()>) -> Result<()> {
        let little = self.order == Order::Little;
        macro_rules! numbers_of {
            ($type:ty) => {
                match little {
                    true => self.values(tag, |bytes| <$type>::from_le_bytes(bytes) as f64, each),
                    false => self.values(tag, |bytes| <$type>::from_be_bytes(bytes) as f64, each),
                }
            };
        }
        match tag.kind {
            1 => numbers_of!(i8),
            2 => numbers_of!(u8),
            3 => numbers_of!(i16),
            4 => numbers_of!(u16),
            5 => numbers_of!(i32),
            6 => numbers_of!(u32),
            7 => numbers_of!(f32),
            9 => numbers_of!(f64),
            12 => numbers_of!(i64),
            13 => numbers_of!(u64),
            kind => {
                Err(Problem::Corrupt(format!("an element of type {kind} where numbers should be")).into())
            }
        }
    }

    fn values<const SIZE: usize, T>(
        &mut self,
        tag: &Tag,
        number: impl Fn([u8; SIZE]) -> T,
        each: &mut dyn FnMut(&[T]) -> Result<()>,
    ) -> Result<()> {
        const AT_ONCE: usize = 1 << 14;
        if !(tag.bytes as usize).is_multiple_of(SIZE) {
            let message = format!("an element of {} bytes for numbers of {SIZE} bytes", tag.bytes);
            return Err(Problem::Corrupt(message).into());
        }
        let mut numbers = Vec::with_capacity(AT_ONCE.min(tag.bytes as usize / SIZE));
        let mut hand_over = |bytes: &[u8]| {
            numbers.clear();
            numbers.extend(bytes.as_chunks().0.iter().map(|&bytes| number(bytes)));
            each(&numbers)
        };
        if let Some(within) = tag.within {
            return hand_over(&within[..tag.bytes as usize]);
        }
        let mut left = tag.bytes as usize;
        let mut buffer = vec![0; left.min(AT_ONCE * SIZE).max(8)];
        while left > 0 {
            let block = &mut buffer[..left.min(AT_ONCE * SIZE)];
            self.body.read_exact(block)?;
            hand_over(block)?;
            left -= block.len();
        }
        let padding = (8 - tag.bytes % 8) % 8;
        Ok(self.body.read_exact(&mut buffer[..padding as usize])?)
    }
}
