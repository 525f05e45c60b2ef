//! The header of an array: a dictionary in Python's notation.

use std::fmt;
use std::io::Read;

use super::literal::Literal;
use crate::{Problem, Result};

pub(super) const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// NumPy's own headers are 128 bytes; only records of very many fields, which we do not read, are longer.
const MAX_HEADER: usize = 1 << 16;
/// Texts of a fixed width beyond this are a forged header rather than names.
pub(crate) const MAX_TEXT_BYTES: usize = 1 << 20;

/// The kind of values an array holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Signed,
    Unsigned,
    Float,
    /// UTF-32, padded with zeros.
    Unicode,
    /// Bytes, padded with zeros.
    Bytes,
}

/// The content of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(super) kind: Kind,
    /// Bytes of one value.
    pub(super) width: usize,
    pub(super) big_endian: bool,
    pub(super) fortran: bool,
    pub(super) shape: Vec<u64>,
    /// The product of the shape.
    pub(super) len: u64,
}

impl Header {
    /// Rows and columns of an array that lies column after column in the file.
    pub(super) fn transposed(&self) -> Option<(usize, usize)> {
        match self.shape[..] {
            [rows, columns] if self.fortran && rows > 1 && columns > 1 => {
                Some((rows as usize, columns as usize))
            }
            _ => None,
        }
    }

    pub(super) fn shape_text(&self) -> String {
        let numbers: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        format!("({})", numbers.join(", "))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Bool => "true and false",
            Kind::Signed | Kind::Unsigned => "whole numbers",
            Kind::Float => "decimal numbers",
            Kind::Unicode | Kind::Bytes => "text",
        })
    }
}

pub(super) fn read_header(reader: &mut impl Read) -> Result<Header> {
    let corrupt = |message: &str| Problem::Corrupt(format!("the array has {message}"));
    let mut start = [0; 8];
    reader.read_exact(&mut start)?;
    if start[..6] != *MAGIC {
        return Err(corrupt("no NumPy header").into());
    }
    let length = match start[6] {
        1 => {
            let mut length = [0; 2];
            reader.read_exact(&mut length)?;
            u16::from_le_bytes(length).into()
        }
        2 | 3 => {
            let mut length = [0; 4];
            reader.read_exact(&mut length)?;
            u32::from_le_bytes(length) as usize
        }
        other => return Err(Problem::Unsupported(format!("the .npy version {other} is unknown")).into()),
    };
    if length > MAX_HEADER {
        return Err(corrupt("an oversized header").into());
    }
    let mut text = vec![0; length];
    reader.read_exact(&mut text)?;
    let text = std::str::from_utf8(&text).map_err(|_| corrupt("a header that is not text"))?;
    let literal = Literal::parse(text).ok_or_else(|| corrupt("a header that is not a Python dictionary"))?;
    header_from(&literal)
}

/// What follows the header of an array that lies in memory.
pub(crate) fn behind_header(content: &[u8]) -> Option<&[u8]> {
    let (start, rest) = content.strip_prefix(MAGIC)?.split_first_chunk::<2>()?;
    let (width, length) = match start[0] {
        1 => (2, u16::from_le_bytes(*rest.first_chunk()?).into()),
        _ => (4, u32::from_le_bytes(*rest.first_chunk()?) as usize),
    };
    rest.get(width..)?.get(length..)
}

fn header_from(literal: &Literal) -> Result<Header> {
    let missing = |key: &str| Problem::Corrupt(format!("the array's header has no usable {key:?}"));
    let descr = match literal.get("descr") {
        Some(Literal::Text(descr)) => descr,
        Some(Literal::List(fields)) => {
            let pickled = fields.iter().any(Literal::mentions_objects);
            return Err(if pickled {
                Problem::PickledObjects.into()
            } else {
                Problem::Unsupported("arrays of records are not read".into()).into()
            });
        }
        _ => return Err(missing("descr").into()),
    };
    let (kind, width, big_endian) = dtype(descr)?;
    let Some(Literal::Bool(fortran)) = literal.get("fortran_order") else {
        return Err(missing("fortran_order").into());
    };
    let Some(Literal::Tuple(dimensions)) = literal.get("shape") else { return Err(missing("shape").into()) };
    let shape: Option<Vec<u64>> = dimensions.iter().map(Literal::unsigned).collect();
    let shape = shape.ok_or_else(|| missing("shape"))?;
    // Zeros count as ones here, so that no product of the other dimensions overflows either.
    let largest = shape.iter().try_fold(width as u64, |bytes, &d| bytes.checked_mul(d.max(1)));
    if largest.is_none_or(|bytes| bytes > i64::MAX as u64) {
        return Err(Problem::TooLarge(format!("the array announces the impossible shape {shape:?}")).into());
    }
    let len = shape.iter().product();
    Ok(Header { kind, width, big_endian, fortran: *fortran, shape, len })
}

/// Kind, width and byte order of NumPy's type strings, for example `<f4`.
fn dtype(descr: &str) -> Result<(Kind, usize, bool)> {
    let unsupported = || Problem::Unsupported(format!("arrays of type {descr:?} are not read"));
    let (order, rest) = match descr.strip_prefix(['<', '>', '|', '=']) {
        Some(rest) => (descr.as_bytes()[0], rest),
        None => (b'|', descr),
    };
    let mut letters = rest.chars();
    let letter = letters.next().ok_or_else(unsupported)?;
    if letter == 'O' {
        return Err(Problem::PickledObjects.into());
    }
    let size: usize = letters.as_str().parse().map_err(|_| unsupported())?;
    let (kind, width) = match (letter, size) {
        ('b', 1) => (Kind::Bool, 1),
        ('i', 1 | 2 | 4 | 8) => (Kind::Signed, size),
        ('u', 1 | 2 | 4 | 8) => (Kind::Unsigned, size),
        ('f', 2 | 4 | 8) => (Kind::Float, size),
        ('U', 1..) if size <= MAX_TEXT_BYTES / 4 => (Kind::Unicode, size * 4),
        ('S' | 'a', 1..) if size <= MAX_TEXT_BYTES => (Kind::Bytes, size),
        _ => return Err(unsupported().into()),
    };
    Ok((kind, width, order == b'>'))
}
