//! Arrays as the writer gives them.

use super::header::MAGIC;

/// Numbers that a `.npy` can hold, as the writer gives them.
pub(crate) trait NpyValue: Copy {
    /// NumPy's name of the type.
    const DESCR: &'static str;
    type Bytes: AsRef<[u8]>;
    fn to_bytes(self) -> Self::Bytes;
}

macro_rules! npy_values {
    ($($type:ty => $descr:literal),*) => {
        $(impl NpyValue for $type {
            const DESCR: &'static str = $descr;
            type Bytes = [u8; size_of::<$type>()];
            fn to_bytes(self) -> Self::Bytes {
                self.to_le_bytes()
            }
        })*
    };
}
npy_values!(i32 => "<i4", i64 => "<i8", f32 => "<f4");

impl NpyValue for bool {
    const DESCR: &'static str = "|b1";
    type Bytes = [u8; 1];
    fn to_bytes(self) -> [u8; 1] {
        [self.into()]
    }
}

/// The header of an array as NumPy writes it: version 1, padded so that values can be mapped.
pub fn header_bytes(descr: &str, shape: &[usize]) -> Vec<u8> {
    let dimensions: String = shape.iter().map(|d| format!("{d}, ")).collect();
    let dimensions = if shape.len() == 1 { dimensions.trim_end() } else { dimensions.trim_end_matches(", ") };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dimensions}), }}");
    const PREFIX: usize = MAGIC.len() + 4;
    let padded = (PREFIX + text.len() + 1).next_multiple_of(64);
    text.extend(std::iter::repeat_n(' ', padded - PREFIX - text.len() - 1));
    text.push('\n');
    let length = (text.len() as u16).to_le_bytes();
    [&MAGIC[..], &[1, 0], &length, text.as_bytes()].concat()
}
