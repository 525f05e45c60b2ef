//! Contiguous values, owned or lying in a mapped file.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

/// An immutable slice that either owns its values or borrows them from a memory-mapped file.
///
/// It derefs to `[T]`, so code that reads it does not care where the values lie. Cloning a mapped buffer
/// shares the mapping.
#[derive(Clone)]
pub struct Buffer<T: Pod>(Storage<T>);

#[derive(Clone)]
enum Storage<T: Pod> {
    Owned(Arc<Vec<T>>),
    Mapped { map: Arc<Mmap>, bytes: Range<usize> },
}

impl<T: Pod> Buffer<T> {
    /// Values in `bytes` of a mapped file; `None` if the range does not fit the file, the type's size or its
    /// alignment.
    pub(crate) fn mapped(map: Arc<Mmap>, bytes: Range<usize>) -> Option<Self> {
        bytemuck::try_cast_slice::<u8, T>(map.get(bytes.clone())?).ok()?;
        Some(Buffer(Storage::Mapped { map, bytes }))
    }

    /// Some of the values: in place where they lie in a mapped file, else copied.
    #[must_use]
    pub fn part(&self, values: Range<usize>) -> Self {
        match &self.0 {
            Storage::Mapped { map, bytes } if values.start <= values.end && values.end <= self.len() => {
                let bytes =
                    bytes.start + values.start * size_of::<T>()..bytes.start + values.end * size_of::<T>();
                Buffer(Storage::Mapped { map: map.clone(), bytes })
            }
            _ => self[values].to_vec().into(),
        }
    }

    /// Whether the values lie in a mapped file.
    pub fn is_mapped(&self) -> bool {
        matches!(self.0, Storage::Mapped { .. })
    }

    /// Bytes of memory that the values take, not counting pages of a mapped file.
    pub fn held_bytes(&self) -> usize {
        if self.is_mapped() { 0 } else { size_of_val(&**self) }
    }

    /// The values for editing: taken over if this is their only owner, copied otherwise.
    pub fn into_vec(self) -> Vec<T> {
        match self.0 {
            Storage::Owned(values) => Arc::try_unwrap(values).unwrap_or_else(|shared| shared.to_vec()),
            Storage::Mapped { .. } => self.to_vec(),
        }
    }
}

impl Buffer<u8> {
    /// The bytes from there on as values, where they lie if they are mapped; `None` if they are no whole number of values.
    pub fn values_from<T: Pod>(&self, start: usize) -> Option<Buffer<T>> {
        let content = self.get(start..)?;
        if content.len() % size_of::<T>() != 0 {
            return None;
        }
        if let Storage::Mapped { map, bytes } = &self.0
            && let Some(values) = Buffer::mapped(map.clone(), bytes.start + start..bytes.end)
        {
            return Some(values);
        }
        Some(bytemuck::allocation::pod_collect_to_vec(content).into())
    }
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Storage::Owned(values) => values,
            // Checked by `mapped`: the range, the size and the alignment fit, so this cannot panic.
            Storage::Mapped { map, bytes } => bytemuck::cast_slice(&map[bytes.clone()]),
        }
    }
}

impl<T: Pod> From<Vec<T>> for Buffer<T> {
    fn from(values: Vec<T>) -> Self {
        Buffer(Storage::Owned(Arc::new(values)))
    }
}

impl<T: Pod> Default for Buffer<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: Pod + PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
