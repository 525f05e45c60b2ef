//! The digest of an exact query, to which its noise is bound.

/// The digest of an exact query: parameters of the noise, and every integer that it protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryDigest(pub(super) [u8; 32]);

impl QueryDigest {
    /// The digest of numbers that decide the noise, and of integers in blocks whose own digests are known.
    pub fn new(parameters: &[f64], blocks: impl IntoIterator<Item = BlockDigest>) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("progap 2026-11 digest of a query");
        hasher.update(&(parameters.len() as u64).to_le_bytes());
        for value in parameters {
            hasher.update(&value.to_bits().to_le_bytes());
        }
        for block in blocks {
            hasher.update(&block.0);
        }
        QueryDigest(*hasher.finalize().as_bytes())
    }
}

/// How many integers are hashed at a time: enough for all lanes of the hash.
const AT_ONCE: usize = 4096;

/// The digest of a block of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockDigest([u8; 32]);

impl BlockDigest {
    /// The digest of some integers: the same whatever type holds them. Integers that all fit in four bytes are hashed
    /// as four.
    pub fn new<T: Copy + Into<i64>>(integers: &[T]) -> Self {
        Self::in_four_bytes(integers).unwrap_or_else(|| Self::in_eight_bytes(integers))
    }

    pub(super) fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    pub(super) fn from_bytes(bytes: [u8; 32]) -> Self {
        BlockDigest(bytes)
    }

    /// Width and length last, where they do not move the integers out of the hash's own blocks: no two lists of
    /// integers are the same bytes, read from their end.
    fn end(mut hasher: blake3::Hasher, width: u8, length: usize) -> Self {
        hasher.update(&[width]).update(&(length as u64).to_le_bytes());
        BlockDigest(*hasher.finalize().as_bytes())
    }

    fn in_four_bytes<T: Copy + Into<i64>>(integers: &[T]) -> Option<Self> {
        let mut hasher = blake3::Hasher::new();
        let mut bytes = [0u8; 4 * AT_ONCE];
        for part in integers.chunks(AT_ONCE) {
            let mut lost = 0;
            for (place, &z) in bytes.chunks_exact_mut(4).zip(part) {
                let (whole, short): (i64, i32) = (z.into(), z.into() as i32);
                lost |= whole ^ i64::from(short);
                place.copy_from_slice(&short.to_le_bytes());
            }
            if lost != 0 {
                return None;
            }
            hasher.update(&bytes[..4 * part.len()]);
        }
        Some(Self::end(hasher, 4, integers.len()))
    }

    fn in_eight_bytes<T: Copy + Into<i64>>(integers: &[T]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in integers.chunks(AT_ONCE) {
            let mut bytes = [0u8; 8 * AT_ONCE];
            let places = bytes.chunks_exact_mut(8).zip(part);
            places.for_each(|(place, &z)| place.copy_from_slice(&Into::<i64>::into(z).to_le_bytes()));
            hasher.update(&bytes[..8 * part.len()]);
        }
        Self::end(hasher, 8, integers.len())
    }
}
