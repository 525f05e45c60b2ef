//! The pages of a Parquet column, checked before the library allocates what they claim.
//!
//! The library takes the sizes in page headers, dictionaries and delta blocks at their word. Here each is
//! compared with the bytes that are there.

use std::io::{self, Read};

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// A page may claim this much, and this many times its packed size on top; pages usually have 1 MiB.
const MAX_PAGE: u64 = 64 << 20;
const MAX_RATIO: u64 = 1024;

fn forged(what: &str, claimed: u64, there: u64) -> ParquetError {
    ParquetError::General(format!("{what} of {claimed} is claimed where {there} bytes are"))
}

/// Checks the headers of all pages between `start` and `start + length`; `read_at` reads from a place on.
pub(super) fn check_headers<R: Read>(
    start: u64,
    length: u64,
    mut read_at: impl FnMut(u64) -> io::Result<R>,
) -> Result<()> {
    let end = start.saturating_add(length);
    let mut at = start;
    while at < end {
        let mut thrift = Thrift { bytes: read_at(at)?.take(end - at), consumed: 0 };
        // A header that cannot be parsed is the library's to report.
        let Some((unpacked, packed)) = thrift.page_sizes() else { return Ok(()) };
        if unpacked > MAX_PAGE + MAX_RATIO.saturating_mul(packed) {
            return Err(forged("a page", unpacked, packed));
        }
        at = at.saturating_add(thrift.consumed).saturating_add(packed);
    }
    Ok(())
}

/// Thrift's compact encoding, as far as a page header needs it.
struct Thrift<R> {
    bytes: R,
    consumed: u64,
}

impl<R: Read> Thrift<R> {
    /// The unpacked and the packed size in a page header, which is read to its end.
    fn page_sizes(&mut self) -> Option<(u64, u64)> {
        let (mut unpacked, mut packed) = (None, None);
        let mut field = 0;
        loop {
            let (id, kind) = self.field(field)?;
            field = id;
            match (id, kind) {
                (_, 0) => return Some((unpacked?, packed?)),
                (2, 5) => unpacked = Some(u64::try_from(self.integer()?).ok()?),
                (3, 5) => packed = Some(u64::try_from(self.integer()?).ok()?),
                (_, kind) => self.skip(kind, 16)?,
            }
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        self.bytes.read_exact(&mut byte).ok()?;
        self.consumed += 1;
        Some(byte[0])
    }

    fn varint(&mut self) -> Option<u64> {
        varint(|| self.byte())
    }

    fn integer(&mut self) -> Option<i64> {
        self.varint().map(|value| (value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The number and kind of the next field; kind 0 ends a struct.
    fn field(&mut self, last: i64) -> Option<(i64, u8)> {
        let head = self.byte()?;
        match (head >> 4, head & 15) {
            (_, 0) => Some((last, 0)),
            (0, kind) => Some((self.integer()?, kind)),
            (step, kind) => Some((last.checked_add(step.into())?, kind)),
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            1 | 2 => Some(()),
            3 => self.byte().map(|_| ()),
            4..=6 => self.varint().map(|_| ()),
            7 => (0..8).try_for_each(|_| self.byte().map(|_| ())),
            8 => {
                let length = self.varint()?;
                (0..length).try_for_each(|_| self.byte().map(|_| ()))
            }
            9 | 10 => {
                let head = self.byte()?;
                let length = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                // Truth values take a byte each inside a list.
                let kind = if head & 15 <= 2 { 3 } else { head & 15 };
                (0..length).try_for_each(|_| self.skip(kind, depth))
            }
            12 => {
                let mut last = 0;
                loop {
                    let (id, kind) = self.field(last)?;
                    if kind == 0 {
                        return Some(());
                    }
                    last = id;
                    self.skip(kind, depth)?;
                }
            }
            // No page header holds a map.
            _ => None,
        }
    }
}

fn varint(mut byte: impl FnMut() -> Option<u8>) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let next = byte()?;
        value |= u64::from(next & 127) << shift;
        if next < 128 {
            return Some(value);
        }
    }
    None
}

/// Pages whose counts are compared with their bytes before they are decoded.
pub(super) struct CheckedPages {
    pub(super) inner: Box<dyn PageReader>,
    /// Whether cells may be null, so that pages begin with levels.
    pub(super) nullable: bool,
}

impl CheckedPages {
    fn check(&self, page: &Page) -> Result<()> {
        match page {
            // A value of a dictionary takes at least a byte.
            Page::DictionaryPage { buf, num_values, .. } if u64::from(*num_values) > buf.len() as u64 => {
                Err(forged("a dictionary", (*num_values).into(), buf.len() as u64))
            }
            Page::DataPage { buf, num_values, encoding, .. } => {
                let levels = match buf.first_chunk::<4>() {
                    Some(length) if self.nullable => 4 + u64::from(u32::from_le_bytes(*length)),
                    _ => 0,
                };
                check_delta(buf, levels, *num_values, *encoding)
            }
            Page::DataPageV2 {
                buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, ..
            } => {
                let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                check_delta(buf, levels, *num_values, *encoding)
            }
            Page::DictionaryPage { .. } => Ok(()),
        }
    }
}

/// The lengths of delta-encoded texts are counted by their own header.
fn check_delta(page: &[u8], levels: u64, values: u32, encoding: Encoding) -> Result<()> {
    let lists = match encoding {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
        Encoding::DELTA_BYTE_ARRAY => 2,
        _ => return Ok(()),
    };
    let mut rest = usize::try_from(levels).ok().and_then(|levels| page.get(levels..)).unwrap_or_default();
    for _ in 0..lists {
        // Bytes that do not form a list are the library's to report: it allocates only after the header.
        let Some((count, length)) = delta_list(rest) else {
            return match delta_count(rest) {
                Some(count) if count > values.into() => Err(forged("a list", count, rest.len() as u64)),
                _ => Ok(()),
            };
        };
        if count > values.into() {
            return Err(forged("a list", count, rest.len() as u64));
        }
        rest = &rest[length..];
    }
    Ok(())
}

fn delta_count(mut bytes: &[u8]) -> Option<u64> {
    [next_varint(&mut bytes)?, next_varint(&mut bytes)?, next_varint(&mut bytes)?].last().copied()
}

/// How many values a delta-encoded list has, and how many bytes it takes.
fn delta_list(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut rest = bytes;
    let [block, parts, count] = [next_varint(&mut rest)?, next_varint(&mut rest)?, next_varint(&mut rest)?];
    let _first = next_varint(&mut rest)?;
    let per_part = usize::try_from(block.checked_div(parts)?).ok().filter(|&values| values > 0)?;
    let parts = usize::try_from(parts).ok()?;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        let _lowest = next_varint(&mut rest)?;
        let widths = rest.get(..parts)?;
        rest = &rest[parts..];
        for &width in widths {
            if left == 0 {
                break;
            }
            rest = rest.get(per_part.checked_mul(width.into())? / 8..)?;
            left = left.saturating_sub(per_part as u64);
        }
    }
    Some((count, bytes.len() - rest.len()))
}

fn next_varint(bytes: &mut &[u8]) -> Option<u64> {
    varint(|| {
        let (&first, rest) = bytes.split_first()?;
        *bytes = rest;
        Some(first)
    })
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        page.iter().try_for_each(|page| self.check(page))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.inner.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with type 0, the sizes, and a nested struct that must be skipped.
    fn header(unpacked: u64, packed: u64) -> Vec<u8> {
        let mut bytes = vec![0x15, 0x00];
        for size in [unpacked, packed] {
            bytes.push(0x15);
            let mut value = size << 1;
            while value > 127 {
                bytes.push(value as u8 | 128);
                value >>= 7;
            }
            bytes.push(value as u8);
        }
        // Field 5: a struct with an integer, a text, a list of two truth values and a stop.
        bytes.extend([0x2c, 0x15, 0x08, 0x18, 0x02, b'h', b'i', 0x19, 0x21, 1, 2, 0x00]);
        bytes.push(0);
        bytes
    }

    fn check(bytes: &[u8]) -> Result<()> {
        check_headers(0, bytes.len() as u64, |at| Ok(&bytes[at as usize..]))
    }

    #[test]
    fn a_page_that_claims_too_much_is_found_behind_others() {
        let mut file = [header(100, 3), vec![9; 3], header(1 << 20, 4), vec![9; 4]].concat();
        check(&file).unwrap();
        file.extend(header(2_000_000_000, 5));
        file.extend([9; 5]);
        assert!(check(&file).unwrap_err().to_string().contains("2000000000"));
    }

    #[test]
    fn a_dictionary_or_list_that_claims_too_much_is_refused() {
        struct NoPages;
        impl Iterator for NoPages {
            type Item = Result<Page>;
            fn next(&mut self) -> Option<Self::Item> {
                None
            }
        }
        impl PageReader for NoPages {
            fn get_next_page(&mut self) -> Result<Option<Page>> {
                Ok(None)
            }
            fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
                Ok(None)
            }
            fn skip_next_page(&mut self) -> Result<()> {
                Ok(())
            }
        }
        let pages = CheckedPages { inner: Box::new(NoPages), nullable: false };
        let dictionary = |num_values| Page::DictionaryPage {
            buf: vec![0; 40].into(),
            num_values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        assert!(pages.check(&dictionary(10)).is_ok());
        assert!(pages.check(&dictionary(u32::MAX)).is_err());
        // Blocks of 128 in 4 parts, two values: 5 and 5 + 0 + a delta of no bits.
        let list = |count: u8| vec![0x80, 0x01, 4, count, 10, 0, 0, 0, 0, 0];
        assert_eq!(delta_list(&list(2)), Some((2, 10)));
        let page = |buf: Vec<u8>, encoding| Page::DataPage {
            buf: buf.into(),
            num_values: 2,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let twice = [list(2), list(2)].concat();
        assert!(pages.check(&page(twice.clone(), Encoding::DELTA_BYTE_ARRAY)).is_ok());
        assert!(pages.check(&page(list(3), Encoding::DELTA_LENGTH_BYTE_ARRAY)).is_err());
        let second = [list(2), list(100)].concat();
        assert!(pages.check(&page(second, Encoding::DELTA_BYTE_ARRAY)).is_err());
        let endless = vec![0x80, 0x01, 4, 0xff, 0xff, 0xff, 0xff, 0x7f, 10];
        assert!(pages.check(&page(endless, Encoding::DELTA_LENGTH_BYTE_ARRAY)).is_err());
    }
}
