//! NumPy's `.npy`: a short header in Python's notation, then the bare values.
//!
//! Values are decoded as they stream in. Nothing that a header announces is trusted: lists grow with the bytes
//! that really arrive, and a header that announces more than that ends in an error.

mod header;
mod literal;
mod write;

use std::io::{self, Read};

use crate::room::{push, with_room};
use crate::{Error, Place, Problem, Result, single};

use self::header::{Header, read_header};
pub(crate) use self::header::{Kind, MAX_TEXT_BYTES, behind_header};
pub(crate) use self::write::NpyValue;
pub use self::write::header_bytes;

/// How many bytes are decoded at a time.
const CHUNK: usize = 1 << 14;

/// A value, or what is wrong with it; where it stands is for the caller to say.
pub(crate) type Checked<T> = std::result::Result<T, Problem>;

/// An array whose header is read and whose values are still to come.
pub(crate) struct Npy<R> {
    key: String,
    header: Header,
    reader: R,
    /// The bytes for which it is sane to make room before they arrive.
    justified: u64,
}

/// A value as the widest type of its kind.
#[derive(Clone, Copy)]
enum Number {
    Whole(i64),
    Wide(u64),
    Decimal(f64),
}

/// Appends the numbers that stand in little-endian bytes.
type Decoder = fn(&[u8], &mut Vec<Number>);

impl Number {
    /// How values are decoded, if the array holds numbers.
    fn decoder(header: &Header) -> Option<Decoder> {
        macro_rules! decoder {
            ($number:expr) => {
                Some(|bytes, numbers| numbers.extend(bytes.as_chunks().0.iter().map(|&b| $number(b))))
            };
        }
        match (header.kind, header.width) {
            (Kind::Bool, _) => decoder!(|[b]: [u8; 1]| Number::Whole((b != 0).into())),
            (Kind::Signed, 1) => decoder!(|b| Number::Whole(i8::from_le_bytes(b).into())),
            (Kind::Signed, 2) => decoder!(|b| Number::Whole(i16::from_le_bytes(b).into())),
            (Kind::Signed, 4) => decoder!(|b| Number::Whole(i32::from_le_bytes(b).into())),
            (Kind::Signed, _) => decoder!(|b| Number::Whole(i64::from_le_bytes(b))),
            (Kind::Unsigned, 1) => decoder!(|b| Number::Whole(u8::from_le_bytes(b).into())),
            (Kind::Unsigned, 2) => decoder!(|b| Number::Whole(u16::from_le_bytes(b).into())),
            (Kind::Unsigned, 4) => decoder!(|b| Number::Whole(u32::from_le_bytes(b).into())),
            (Kind::Unsigned, _) => decoder!(|b| Number::Wide(u64::from_le_bytes(b))),
            (Kind::Float, 2) => decoder!(|b| Number::Decimal(half(u16::from_le_bytes(b)))),
            (Kind::Float, 4) => decoder!(|b| Number::Decimal(f32::from_le_bytes(b).into())),
            (Kind::Float, _) => decoder!(|b| Number::Decimal(f64::from_le_bytes(b))),
            _ => None,
        }
    }

    fn whole(self) -> Checked<i64> {
        match self {
            Number::Whole(value) => Ok(value),
            Number::Wide(value) => i64::try_from(value).map_err(|_| too_wide(value)),
            Number::Decimal(value) => whole(value),
        }
    }

    fn decimal(self) -> f64 {
        match self {
            Number::Whole(value) => value as f64,
            Number::Wide(value) => value as f64,
            Number::Decimal(value) => value,
        }
    }
}

impl<R: Read> Npy<R> {
    /// Reads the header of the array that errors call `key`. `justified` is the size that the rest of the
    /// stream plausibly has, judged by something other than the header.
    pub(crate) fn open(key: &str, mut reader: R, justified: u64) -> Result<Self> {
        let header = read_header(&mut reader).map_err(|e| e.at(Place::Key(key.into())))?;
        Ok(Npy { key: key.into(), header, reader, justified })
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn kind(&self) -> Kind {
        self.header.kind
    }

    pub(crate) fn shape(&self) -> &[u64] {
        &self.header.shape
    }

    /// The number of values.
    pub(crate) fn len(&self) -> u64 {
        self.header.len
    }

    /// The problem, with the array's name.
    pub(crate) fn error(&self, problem: Problem) -> Error {
        problem.at(Place::Key(self.key.clone()))
    }

    /// The array, if it has one dimension (or a second of length 1, as a column has) and `expected` values.
    pub(crate) fn vector(self, what: &str, expected: Option<u64>) -> Result<Self> {
        match *self.shape() {
            [length] | [length, 1] if expected.is_none_or(|expected| expected == length) => Ok(self),
            [found] | [found, 1] => {
                let expected = expected.unwrap_or(found);
                Err(self.error(Problem::Length { what: what.into(), found, expected }))
            }
            _ => {
                let shape = self.header.shape_text();
                Err(self
                    .error(Problem::Invalid(format!("the {what} has shape {shape}, expected one dimension"))))
            }
        }
    }

    /// Rows and columns of an array of two dimensions.
    pub(crate) fn matrix_shape(&self) -> Result<(u64, u64)> {
        match *self.shape() {
            [rows, columns] => Ok((rows, columns)),
            _ => {
                let message =
                    format!("the array has shape {}, expected rows and columns", self.header.shape_text());
                Err(self.error(Problem::Invalid(message)))
            }
        }
    }

    /// Calls `take` with each whole number, in the file's order.
    pub(crate) fn each_integer(self, mut take: impl FnMut(i64) -> Checked<()>) -> Result<()> {
        self.each(|number| take(number.whole()?))
    }

    /// Calls `take` with each number, in the file's order.
    pub(crate) fn each_number(self, mut take: impl FnMut(f64) -> Checked<()>) -> Result<()> {
        self.each(|number| take(number.decimal()))
    }

    /// All whole numbers, row after row, each put through `convert`.
    pub(crate) fn integers<T: Copy>(self, convert: impl Fn(i64) -> Checked<T>) -> Result<Vec<T>> {
        let (transposed, mut values) = (self.header.transposed(), self.room()?);
        let key = Place::Key(self.key.clone());
        self.each_integer(|value| push(&mut values, convert(value)?))?;
        by_rows(values, transposed).map_err(|problem| problem.at(key))
    }

    /// All whole numbers, of which NaN stands for `missing`.
    pub(crate) fn integers_or(self, missing: i64) -> Result<Vec<i64>> {
        if self.kind() != Kind::Float {
            return self.integers(Ok);
        }
        let (transposed, mut values) = (self.header.transposed(), self.room()?);
        let key = Place::Key(self.key.clone());
        let number = |value: f64| if value.is_nan() { Ok(missing) } else { whole(value) };
        self.each_number(|value| push(&mut values, number(value)?))?;
        by_rows(values, transposed).map_err(|problem| problem.at(key))
    }

    /// All whole numbers as indices below `limit`.
    pub(crate) fn indices(self, limit: u64) -> Result<Vec<u32>> {
        self.integers(|value| match u32::try_from(value) {
            Ok(index) if u64::from(index) < limit => Ok(index),
            _ => Err(Problem::IndexOutOfRange { index: value.to_string(), limit }),
        })
    }

    /// All whole numbers as the offsets of compressed rows; their order is for the caller to check.
    pub(crate) fn offsets(self) -> Result<Vec<u64>> {
        let limit = u64::MAX / 2;
        self.integers(|value| {
            u64::try_from(value).map_err(|_| Problem::IndexOutOfRange { index: value.to_string(), limit })
        })
    }

    /// All numbers, row after row, as features of 32 bits.
    pub(crate) fn features(self) -> Result<Vec<f32>> {
        let (transposed, mut values) = (self.header.transposed(), self.room()?);
        let key = Place::Key(self.key.clone());
        self.each_number(|value| push(&mut values, single(value)))?;
        by_rows(values, transposed).map_err(|problem| problem.at(key))
    }

    /// As [`Npy::features`], with NaN where a value is missing.
    pub(crate) fn features_or_nan(self) -> Result<Vec<f32>> {
        let (transposed, mut values) = (self.header.transposed(), self.room()?);
        let key = Place::Key(self.key.clone());
        let number = |value: f64| if value.is_nan() { f32::NAN } else { single(value) };
        self.each_number(|value| push(&mut values, number(value)))?;
        by_rows(values, transposed).map_err(|problem| problem.at(key))
    }

    /// All values as true and false; numbers must be 0 or 1.
    pub(crate) fn flags(self) -> Result<Vec<bool>> {
        if !matches!(self.kind(), Kind::Bool | Kind::Signed | Kind::Unsigned) {
            let message = format!("the array holds {}, expected true and false", self.kind());
            return Err(self.error(Problem::Invalid(message)));
        }
        self.integers(|value| match value {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Problem::Invalid(format!("the value {value} is neither true nor false"))),
        })
    }

    /// All texts.
    pub(crate) fn texts(mut self) -> Result<Vec<String>> {
        if !matches!(self.kind(), Kind::Unicode | Kind::Bytes) {
            let message = format!("the array holds {}, expected text", self.kind());
            return Err(self.error(Problem::Invalid(message)));
        }
        let mut texts = Vec::new();
        let mut bytes = vec![0; self.header.width];
        for index in 0..self.len() {
            let read = self.reader.read_exact(&mut bytes).map_err(Error::from);
            let text = read.and_then(|()| Ok(self.text(&bytes)?));
            let text = text.map_err(|e| e.at(self.place(index)))?;
            push(&mut texts, text).map_err(|problem| self.error(problem))?;
        }
        self.finish()?;
        Ok(texts)
    }

    fn text(&self, bytes: &[u8]) -> Checked<String> {
        let not_text = || Problem::Corrupt("the value is not valid text".into());
        if self.kind() == Kind::Bytes {
            let end = bytes.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
            return String::from_utf8(bytes[..end].to_vec()).map_err(|_| not_text());
        }
        let letters = bytes.chunks_exact(4).map(|b| {
            let code = [b[0], b[1], b[2], b[3]];
            let code =
                if self.header.big_endian { u32::from_be_bytes(code) } else { u32::from_le_bytes(code) };
            char::from_u32(code).ok_or_else(not_text)
        });
        let text: String = letters.collect::<Checked<_>>()?;
        Ok(text.trim_end_matches('\0').to_string())
    }

    fn each(mut self, mut take: impl FnMut(Number) -> Checked<()>) -> Result<()> {
        let Some(decode) = Number::decoder(&self.header) else {
            let message = format!("the array holds {}, expected whole numbers", self.kind());
            return Err(self.error(Problem::Invalid(message)));
        };
        let (mut bytes, mut numbers) = (vec![0; CHUNK], Vec::new());
        let mut done = 0;
        while done < self.len() {
            let bytes = self.more(done, &mut bytes)?;
            numbers.clear();
            decode(bytes, &mut numbers);
            for &number in &numbers {
                take(number).map_err(|problem| problem.at(self.place(done)))?;
                done += 1;
            }
        }
        self.finish()
    }

    /// The little-endian bytes of some of the numbers that follow the first `done`.
    fn more<'a>(&mut self, done: u64, room: &'a mut [u8]) -> Result<&'a [u8]> {
        let width = self.header.width;
        let values = (self.len() - done).min((room.len() / width) as u64);
        let bytes = &mut room[..values as usize * width];
        if let Err(e) = self.reader.read_exact(bytes) {
            return Err(self.stream_error(e));
        }
        if self.header.big_endian {
            bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
        Ok(bytes)
    }

    /// Reads the stream's end, where archives notice a wrong checksum.
    fn finish(mut self) -> Result<()> {
        match self.reader.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.error(Problem::Corrupt("bytes follow the array".into()))),
            Err(e) => Err(self.stream_error(e)),
        }
    }

    fn stream_error(&self, e: io::Error) -> Error {
        match e.kind() {
            io::ErrorKind::UnexpectedEof => {
                let shape = self.header.shape_text();
                self.error(Problem::Truncated(format!("the array of shape {shape} ends early")))
            }
            _ => Error::from(e).at(Place::Key(self.key.clone())),
        }
    }

    /// An empty list with as much room as is justified.
    fn room<T>(&self) -> Result<Vec<T>> {
        let count = self.len().min(self.justified / self.header.width as u64) as usize;
        with_room(count).map_err(|problem| self.error(problem))
    }

    /// Where the value stands that is `at` in the file's order.
    fn place(&self, at: u64) -> Place {
        let key = self.key.clone();
        match self.header.shape[..] {
            [rows, columns] if columns != 1 => {
                let (row, column) =
                    if self.header.fortran { (at % rows, at / rows) } else { (at / columns, at % columns) };
                Place::Key(format!("{key}[{row}, {column}]"))
            }
            _ => Place::Element { key, index: at },
        }
    }
}

/// The same values row after row.
fn by_rows<T: Copy>(values: Vec<T>, transposed: Option<(usize, usize)>) -> Checked<Vec<T>> {
    let Some((rows, columns)) = transposed else { return Ok(values) };
    let mut turned = with_room(values.len())?;
    for row in 0..rows {
        turned.extend((0..columns).map(|column| values[column * rows + row]));
    }
    Ok(turned)
}

/// A decimal number that stands for a whole one.
pub(crate) fn whole(value: f64) -> Checked<i64> {
    // Below 2^53 every whole number has its own decimal one.
    if !value.is_finite() {
        Err(Problem::NotFinite(value))
    } else if value.fract() != 0.0 || value.abs() > (1u64 << 53) as f64 {
        Err(Problem::Invalid(format!("{value} is not a whole number")))
    } else {
        Ok(value as i64)
    }
}

fn too_wide(value: u64) -> Problem {
    Problem::IndexOutOfRange { index: value.to_string(), limit: i64::MAX as u64 }
}

/// A number of 16 bits: 1 sign, 5 exponent and 10 fraction bits.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (fraction + 1024.0) * 2f64.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::header::MAGIC;
    use super::literal::Literal;
    use super::*;

    fn npy(descr: &str, fortran: &str, shape: &str, values: &[u8]) -> Vec<u8> {
        let text = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}}}\n");
        let length = (text.len() as u16).to_le_bytes();
        [&MAGIC[..], &[1, 0], &length, text.as_bytes(), values].concat()
    }

    fn open(bytes: &[u8]) -> Result<Npy<&[u8]>> {
        Npy::open("a", bytes, 64)
    }

    #[test]
    fn literals_of_python_are_read_and_nothing_else() {
        let parse = Literal::parse;
        assert_eq!(parse(" (3, 4L,) "), Some(Literal::Tuple(vec![Literal::Integer(3), Literal::Integer(4)])));
        assert_eq!(parse("(3)"), Some(Literal::Integer(3)));
        assert_eq!(parse("()"), Some(Literal::Tuple(vec![])));
        assert_eq!(
            parse("{\"a\": False, 'b': [True]}").unwrap().get("b"),
            Some(&Literal::List(vec![Literal::Bool(true)]))
        );
        for bad in
            ["", "(", "(,)", "(1 2)", "{1}", "{1:}", "'a", "1 2", "-", "(1,,)", "{'a': é}", "[1)", "'\\x41'"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(parse(&"(".repeat(10_000)), None);
    }

    #[test]
    fn every_width_and_order_of_bytes_is_read() {
        for (descr, bytes) in [
            ("'|i1'", &[254u8, 3][..]),
            ("'<i2'", &[254, 255, 3, 0]),
            ("'>i2'", &[255, 254, 0, 3]),
            ("'>i4'", &[255, 255, 255, 254, 0, 0, 0, 3]),
            ("'<i8'", &[254, 255, 255, 255, 255, 255, 255, 255, 3, 0, 0, 0, 0, 0, 0, 0]),
            ("'>f4'", &[0xc0, 0, 0, 0, 0x40, 0x40, 0, 0]),
            ("'<f2'", &[0, 0xc0, 0, 0x42]),
        ] {
            let file = npy(descr, "False", "(2,)", bytes);
            assert_eq!(open(&file).unwrap().integers(Ok).unwrap(), [-2, 3], "{descr}");
            assert_eq!(open(&file).unwrap().features().unwrap(), [-2.0, 3.0], "{descr}");
        }
        let unsigned = npy("'<u8'", "False", "(1,)", &[255; 8]);
        assert!(open(&unsigned).unwrap().integers(Ok).is_err());
        assert_eq!(open(&unsigned).unwrap().features().unwrap(), [u64::MAX as f32]);
    }

    #[test]
    fn numbers_of_16_bits_have_their_ieee_values() {
        for (bits, value) in [
            (0x3c00, 1.0),
            (0x3555, 0.333251953125),
            (0x7bff, 65504.0),
            (0x0001, 2f64.powi(-24)),
            (0x0400, 2f64.powi(-14)),
            (0xfc00, f64::NEG_INFINITY),
        ] {
            assert_eq!(half(bits), value);
        }
        assert!(half(0x7e00).is_nan());
    }

    #[test]
    fn both_orders_of_a_matrix_give_rows() {
        let values = [1u8, 2, 3, 4, 5, 6];
        let c = npy("'|u1'", "False", "(2, 3)", &values);
        let fortran = npy("'|u1'", "True", "(2, 3)", &[1, 4, 2, 5, 3, 6]);
        assert_eq!(open(&c).unwrap().integers(Ok).unwrap(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(open(&fortran).unwrap().integers(Ok).unwrap(), [1, 2, 3, 4, 5, 6]);
        let error = open(&fortran).unwrap().indices(5).unwrap_err();
        assert_eq!(error.place(), Some(&Place::Key("a[1, 1]".into())));
    }

    #[test]
    fn texts_are_read_without_their_padding() {
        let letters: Vec<u8> = ['é', 'b', 'c', '\0'].iter().flat_map(|&c| (c as u32).to_be_bytes()).collect();
        let file = npy("'>U2'", "False", "(2,)", &letters);
        assert_eq!(open(&file).unwrap().texts().unwrap(), ["éb", "c"]);
        let file = npy("'|S3'", "False", "()", b"csr");
        assert_eq!(open(&file).unwrap().texts().unwrap(), ["csr"]);
        assert!(open(&npy("'|S1'", "False", "(1,)", &[0xff])).unwrap().texts().is_err());
        assert!(open(&npy("'<U1'", "False", "(1,)", &[0, 0xd8, 0, 0])).unwrap().texts().is_err());
    }

    #[test]
    fn forged_headers_are_refused() {
        let problem =
            |descr: &str, shape: &str| open(&npy(descr, "False", shape, &[])).err().unwrap().to_string();
        assert!(problem("'|O'", "(1,)").contains("pickled"));
        assert!(problem("[('a', '|O'), ('b', '<i4')]", "(1,)").contains("pickled"));
        assert!(problem("[('a', '<i4')]", "(1,)").contains("records"));
        for descr in ["'<c8'", "'<i3'", "'<U0'", "'<U99999999'", "'<M8[s]'", "''", "'é'", "'<f16'"] {
            assert!(problem(descr, "(1,)").contains("not read"), "{descr}");
        }
        for shape in ["(-1,)", "3", "('a',)", "(1.5,)", "(99999999999999999999999999999999999999999,)"] {
            assert!(problem("'<i4'", shape).contains("corrupt"), "{shape}");
        }
        for shape in ["(18446744073709551615, 2)", "(0, 9223372036854775807, 4)", "(9223372036854775807,)"] {
            assert!(problem("'<i4'", shape).contains("impossible"), "{shape}");
        }
        assert!(open(b"\x93NUMPY\x01\x00").is_err());
        assert!(open(b"PK\x03\x04 no").is_err());
        let mut oversized = b"\x93NUMPY\x02\x00".to_vec();
        oversized.extend(u32::MAX.to_le_bytes());
        assert!(open(&oversized).err().unwrap().to_string().contains("oversized"));
    }

    #[test]
    fn a_huge_announced_array_ends_where_its_bytes_end() {
        let file = npy("'<f8'", "False", "(1000000000000,)", &[0; 800]);
        let error = Npy::open("a", &file[..], 800).unwrap().features().unwrap_err();
        assert!(matches!(error.problem(), Problem::Truncated(_)), "{error}");
        let texts = npy("'<U9'", "False", "(1000000000000,)", &[0; 72]);
        assert!(Npy::open("a", &texts[..], 800).unwrap().texts().is_err());
        let longer = npy("'|u1'", "False", "(3,)", &[0; 4]);
        assert!(open(&longer).unwrap().integers(Ok).is_err());
    }

    #[test]
    fn a_written_header_is_read_again() {
        for shape in [&[][..], &[0], &[7], &[3, 4]] {
            let bytes = header_bytes("<f4", shape);
            assert_eq!(bytes.len() % 64, 0);
            let array = open(&bytes).unwrap();
            assert_eq!(array.shape(), shape.iter().map(|&d| d as u64).collect::<Vec<_>>());
            assert_eq!((array.kind(), array.header.width), (Kind::Float, 4));
        }
    }
}
