//! Writes MATLAB v5 files, valid and otherwise.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// A `.mat` file in the making.
pub struct Mat {
    big_endian: bool,
    bytes: Vec<u8>,
}

/// The parts of a sparse array, right or wrong.
pub struct Sparse {
    pub rows: i32,
    pub columns: i32,
    pub row_indices: Vec<i32>,
    pub starts: Vec<i32>,
    pub values: Vec<f64>,
}

impl Sparse {
    /// Three people, 0-1 and 1-2 neighbours.
    pub fn path() -> Sparse {
        Sparse {
            rows: 3,
            columns: 3,
            row_indices: vec![1, 0, 2, 1],
            starts: vec![0, 1, 3, 4],
            values: vec![1.0; 4],
        }
    }
}

pub const INT8: u32 = 1;
pub const UINT8: u32 = 2;
pub const UINT16: u32 = 4;
pub const INT32: u32 = 5;
pub const UINT32: u32 = 6;
pub const DOUBLE: u32 = 9;
pub const MATRIX: u32 = 14;
pub const COMPRESSED: u32 = 15;

impl Mat {
    pub fn new(big_endian: bool) -> Mat {
        let mut bytes = b"MATLAB 5.0 MAT-file, written by a test".to_vec();
        bytes.resize(124, b' ');
        bytes.extend(if big_endian { *b"\x01\x00MI" } else { *b"\x00\x01IM" });
        Mat { big_endian, bytes }
    }

    pub fn bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub fn word(&self, value: u32) -> [u8; 4] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn words(&self, values: &[i32]) -> Vec<u8> {
        values.iter().flat_map(|&value| self.word(value as u32)).collect()
    }

    fn doubles(&self, values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|v| if self.big_endian { v.to_be_bytes() } else { v.to_le_bytes() }).collect()
    }

    /// An element, in the short form where it fits.
    fn element(&self, kind: u32, content: &[u8]) -> Vec<u8> {
        let length = content.len() as u32;
        let mut bytes = Vec::new();
        if (1..=4).contains(&length) {
            bytes.extend(self.word(length << 16 | kind));
        } else {
            bytes.extend(self.word(kind));
            bytes.extend(self.word(length));
        }
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn array(
        &self,
        flags: u32,
        max_nonzeros: u32,
        dimensions: &[i32],
        name: &str,
        content: &[Vec<u8>],
    ) -> Vec<u8> {
        let mut body = self.element(UINT32, &[self.word(flags), self.word(max_nonzeros)].concat());
        body.extend(self.element(INT32, &self.words(dimensions)));
        body.extend(self.element(INT8, name.as_bytes()));
        body.extend(content.concat());
        self.element(MATRIX, &body)
    }

    pub fn sparse(&self, name: &str, sparse: &Sparse) -> Vec<u8> {
        let content = [
            self.element(INT32, &self.words(&sparse.row_indices)),
            self.element(INT32, &self.words(&sparse.starts)),
            self.element(DOUBLE, &self.doubles(&sparse.values)),
        ];
        let dimensions = [sparse.rows, sparse.columns];
        self.array(5, sparse.row_indices.len() as u32, &dimensions, name, &content)
    }

    /// A full array of doubles, stored as doubles or as bytes.
    pub fn full(&self, name: &str, dimensions: &[i32], values: &[f64], stored_as: u32) -> Vec<u8> {
        let content = match stored_as {
            UINT8 => values.iter().map(|&v| v as u8).collect(),
            UINT16 => values
                .iter()
                .flat_map(
                    |&v| if self.big_endian { (v as u16).to_be_bytes() } else { (v as u16).to_le_bytes() },
                )
                .collect(),
            _ => self.doubles(values),
        };
        self.array(6, 0, dimensions, name, &[self.element(stored_as, &content)])
    }

    pub fn push(mut self, array: Vec<u8>) -> Mat {
        self.bytes.extend(array);
        self
    }

    pub fn push_compressed(mut self, array: &[u8]) -> Mat {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(array).unwrap();
        let stream = encoder.finish().unwrap();
        self.bytes.extend(self.word(COMPRESSED));
        self.bytes.extend(self.word(stream.len() as u32));
        self.bytes.extend(stream);
        self
    }
}
