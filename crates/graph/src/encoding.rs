//! Encodings of text files: UTF-8 unless the user names another one; what else a file seems to be in is said.

use std::fmt;
use std::io::{self, Cursor, Read};

use crate::{Problem, Result};

/// An encoding of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, which is what files are in unless something else is said.
    Utf8,
    /// Latin-1, with the further signs of Windows-1252.
    Latin1,
    /// UTF-16, in the byte order that its first bytes tell.
    Utf16,
}

impl Encoding {
    /// The encoding of a name, such as `latin-1`.
    pub fn from_name(name: &str) -> Option<Encoding> {
        match name.to_ascii_lowercase().replace('_', "-").as_str() {
            "utf-8" | "utf8" | "utf-8-sig" => Some(Encoding::Utf8),
            "latin-1" | "latin1" | "iso-8859-1" | "windows-1252" | "cp1252" => Some(Encoding::Latin1),
            "utf-16" | "utf16" | "utf-16le" | "utf-16be" => Some(Encoding::Utf16),
            _ => None,
        }
    }

    /// The problem of a text that is not UTF-8: in one byte per sign, as far as anyone can tell.
    pub fn not_utf8() -> Problem {
        Problem::Encoding(Encoding::Latin1)
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Latin1 => "latin-1",
            Encoding::Utf16 => "utf-16",
        })
    }
}

/// The bytes that tell an encoding, and how many bytes are looked at where none of them is there.
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
const LOOKED_AT: u64 = 64;

/// A text as UTF-8, without a mark at its beginning. Whether it is UTF-8 where nothing is said is for its reader
/// to see.
///
/// # Errors
/// A text that is UTF-16, and not said to be.
pub fn decoded<'a>(mut bytes: Box<dyn Read + 'a>, given: Option<Encoding>) -> Result<Box<dyn Read + 'a>> {
    let mut start = Vec::new();
    bytes.by_ref().take(LOOKED_AT).read_to_end(&mut start)?;
    let wide = byte_order(&start);
    let whole = |start: Vec<u8>| Box::new(Cursor::new(start).chain(bytes));
    Ok(match (given, wide) {
        (None | Some(Encoding::Utf8), Some(_)) => return Err(Problem::Encoding(Encoding::Utf16).into()),
        (None | Some(Encoding::Utf8), None) => {
            whole(start.strip_prefix(&MARK).map(<[u8]>::to_vec).unwrap_or(start))
        }
        (Some(Encoding::Latin1), _) => Box::new(Decoder::new(whole(start), Signs::Bytes)),
        (Some(Encoding::Utf16), order) => {
            let marked = start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]);
            let start = if marked { start[2..].to_vec() } else { start };
            let big_endian = order == Some(ByteOrder::Big);
            Box::new(Decoder::new(whole(start), Signs::Pairs { big_endian }))
        }
    })
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum ByteOrder {
    Little,
    Big,
}

/// The order of the bytes of UTF-16, where a text is that: by its mark, or as every other byte of it is zero.
fn byte_order(start: &[u8]) -> Option<ByteOrder> {
    let zeros = |first: usize| start.len() >= 8 && start.iter().skip(first).step_by(2).all(|&byte| byte == 0);
    match start {
        [0xff, 0xfe, ..] => Some(ByteOrder::Little),
        [0xfe, 0xff, ..] => Some(ByteOrder::Big),
        _ if zeros(1) && !zeros(0) => Some(ByteOrder::Little),
        _ if zeros(0) && !zeros(1) => Some(ByteOrder::Big),
        _ => None,
    }
}

/// What a sign is written in.
#[derive(Debug, Clone, Copy)]
enum Signs {
    Bytes,
    Pairs { big_endian: bool },
}

/// Text of another encoding as UTF-8.
struct Decoder<R> {
    inner: R,
    signs: Signs,
    /// UTF-8 that is not yet handed on, from a position.
    ready: Vec<u8>,
    at: usize,
    /// The bytes of a sign that is not whole yet.
    begun: Vec<u8>,
}

/// How many bytes are decoded at a time.
const CHUNK: usize = 1 << 14;

impl<R: Read> Decoder<R> {
    fn new(inner: R, signs: Signs) -> Self {
        Decoder { inner, signs, ready: vec![], at: 0, begun: vec![] }
    }

    /// Decodes the next bytes; `false` at the end.
    fn advance(&mut self) -> io::Result<bool> {
        let mut bytes = std::mem::take(&mut self.begun);
        let before = bytes.len();
        bytes.resize(before + CHUNK, 0);
        let read = self.inner.read(&mut bytes[before..])?;
        bytes.truncate(before + read);
        (self.at, self.ready) = (0, Vec::with_capacity(2 * bytes.len()));
        let mut sign = [0; 4];
        let mut put = |letter: char| self.ready.extend_from_slice(letter.encode_utf8(&mut sign).as_bytes());
        let Signs::Pairs { big_endian } = self.signs else {
            bytes.iter().for_each(|&byte| put(of_byte(byte)));
            return Ok(read > 0);
        };
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "the text is not UTF-16");
        let pair = |pair: &[u8]| match big_endian {
            true => u16::from_be_bytes([pair[0], pair[1]]),
            false => u16::from_le_bytes([pair[0], pair[1]]),
        };
        let mut units: Vec<u16> = bytes.chunks_exact(2).map(pair).collect();
        let mut rest = bytes.len() % 2;
        // The second half of a sign may be among the bytes to come.
        if units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
            units.pop();
            rest += 2;
        }
        if read == 0 && rest > 0 {
            return Err(broken());
        }
        for letter in char::decode_utf16(units) {
            put(letter.map_err(|_| broken())?);
        }
        self.begun = bytes[bytes.len() - rest..].to_vec();
        Ok(read > 0)
    }
}

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.ready.len() {
            if !self.advance()? {
                return Ok(0);
            }
        }
        let count = buffer.len().min(self.ready.len() - self.at);
        buffer[..count].copy_from_slice(&self.ready[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// The sign of a byte: Latin-1, in which Windows-1252 gives signs to what would be controls.
fn of_byte(byte: u8) -> char {
    const FURTHER: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..0xa0 => FURTHER[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], given: Option<Encoding>) -> Result<String> {
        let mut text = String::new();
        decoded(Box::new(bytes), given)?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn wide(text: &str, big_endian: bool) -> Vec<u8> {
        let bytes = |unit: u16| if big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() };
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn every_encoding_gives_the_same_text() {
        let text = "id;Straße;€ 𝄞\n".repeat(3_000);
        assert_eq!(read(text.as_bytes(), None).unwrap(), text);
        assert_eq!(read(&[&MARK[..], text.as_bytes()].concat(), None).unwrap(), text);
        for big_endian in [false, true] {
            let marked = wide(&format!("\u{feff}{text}"), big_endian);
            assert_eq!(read(&marked, Some(Encoding::Utf16)).unwrap(), text);
            let error = read(&marked, None).unwrap_err();
            assert!(matches!(error.problem(), Problem::Encoding(Encoding::Utf16)), "{error}");
            let plain = wide("id;label;town;name;and;so;on;and;on;and;on\n", big_endian);
            assert_eq!(read(&plain, Some(Encoding::Utf16)).unwrap().len(), plain.len() / 2);
            assert!(read(&plain, Some(Encoding::Utf8)).is_err());
        }
        assert_eq!(read(b"Stra\xdfe \x80", Some(Encoding::Latin1)).unwrap(), "Straße €");
        assert!(read(b"Stra\xdfe", None).is_err());
        assert!(read(&[0xff, 0xfe, b'a'], Some(Encoding::Utf16)).is_err(), "half a sign");
        assert!(read(&[0xff, 0xfe, 0, 0xd8, b'a', 0], Some(Encoding::Utf16)).is_err(), "half a pair");
    }

    #[test]
    fn encodings_have_names() {
        for encoding in [Encoding::Utf8, Encoding::Latin1, Encoding::Utf16] {
            assert_eq!(Encoding::from_name(&encoding.to_string()), Some(encoding));
        }
        assert_eq!(Encoding::from_name("CP1252"), Some(Encoding::Latin1));
        assert_eq!(Encoding::from_name("ebcdic"), None);
    }
}
