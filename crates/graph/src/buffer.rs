//! Contiguous values: owned, lying in a mapped file, or borrowed from their owner.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

/// The owner of values that a [`Buffer`] reads where they lie; kept until the last buffer is gone.
pub type Owner<T> = Arc<dyn AsRef<[T]> + Send + Sync>;

/// An immutable slice that owns its values, or reads them where they lie: in a memory-mapped file, or with an
/// [`Owner`].
///
/// It derefs to `[T]`, so code that reads it does not care where the values lie. Cloning a buffer shares what it reads.
#[derive(Clone)]
pub struct Buffer<T: Pod>(Storage<T>);

#[derive(Clone)]
enum Storage<T: Pod> {
    Owned(Arc<Vec<T>>),
    Mapped { map: Arc<Mmap>, bytes: Range<usize> },
    Lent { owner: Owner<T>, values: Range<usize> },
}

impl<T: Pod> Buffer<T> {
    /// Values in `bytes` of a mapped file; `None` if the range does not fit the file, the type's size or its
    /// alignment.
    pub(crate) fn mapped(map: Arc<Mmap>, bytes: Range<usize>) -> Option<Self> {
        bytemuck::try_cast_slice::<u8, T>(map.get(bytes.clone())?).ok()?;
        Some(Buffer(Storage::Mapped { map, bytes }))
    }

    /// All values of an owner, where they lie.
    pub fn lent(owner: Owner<T>) -> Self {
        let values = 0..(*owner).as_ref().len();
        Buffer(Storage::Lent { owner, values })
    }

    /// Some of the values: in place where they lie in a mapped file or with an owner, else copied.
    #[must_use]
    pub fn part(&self, values: Range<usize>) -> Self {
        match &self.0 {
            Storage::Mapped { map, bytes } if values.start <= values.end && values.end <= self.len() => {
                let bytes =
                    bytes.start + values.start * size_of::<T>()..bytes.start + values.end * size_of::<T>();
                Buffer(Storage::Mapped { map: map.clone(), bytes })
            }
            Storage::Lent { owner, values: all }
                if values.start <= values.end && values.end <= self.len() =>
            {
                let values = all.start + values.start..all.start + values.end;
                Buffer(Storage::Lent { owner: owner.clone(), values })
            }
            _ => self[values].to_vec().into(),
        }
    }

    /// Whether the values lie in a mapped file.
    pub fn is_mapped(&self) -> bool {
        matches!(self.0, Storage::Mapped { .. })
    }

    /// Bytes of memory that the values take, not counting pages of a mapped file and what others hold.
    pub fn held_bytes(&self) -> usize {
        match &self.0 {
            Storage::Owned(values) => size_of_val(&***values),
            Storage::Mapped { .. } | Storage::Lent { .. } => 0,
        }
    }

    /// The values for editing: taken over if this is their only owner, copied otherwise.
    pub fn into_vec(self) -> Vec<T> {
        match self.0 {
            Storage::Owned(values) => Arc::try_unwrap(values).unwrap_or_else(|shared| shared.to_vec()),
            Storage::Mapped { .. } | Storage::Lent { .. } => self.to_vec(),
        }
    }
}

impl Buffer<u8> {
    /// The bytes from there on as values, where they lie if they are mapped; `None` if they are no whole number of
    /// values.
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
            Storage::Lent { owner, values } => &(**owner).as_ref()[values.clone()],
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use super::*;

    struct Holder(Vec<f32>, Arc<AtomicBool>);

    impl AsRef<[f32]> for Holder {
        fn as_ref(&self) -> &[f32] {
            &self.0
        }
    }

    impl Drop for Holder {
        fn drop(&mut self) {
            self.1.store(true, Relaxed);
        }
    }

    #[test]
    fn lent_values_are_read_where_they_lie_until_the_last_buffer_is_gone() {
        let gone = Arc::new(AtomicBool::new(false));
        let holder = Arc::new(Holder(vec![1.0, 2.0, 3.0, 4.0], gone.clone()));
        let place = holder.0.as_ptr();
        let all: Buffer<f32> = Buffer::lent(holder);
        assert_eq!((all.as_ptr(), &all[..]), (place, &[1.0, 2.0, 3.0, 4.0][..]));
        assert!(!all.is_mapped() && all.held_bytes() == 0);
        let part = all.part(1..4).part(1..2);
        assert_eq!((part.as_ptr(), &part[..]), (place.wrapping_add(2), &[3.0][..]));
        let copy = all.clone().into_vec();
        assert!(copy.as_ptr() != place && copy == *all);
        drop(all);
        assert!(!gone.load(Relaxed) && part[0] == 3.0);
        drop(part);
        assert!(gone.load(Relaxed));
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn no_part_reaches_beyond_what_is_lent() {
        let all: Buffer<f32> = Buffer::lent(Arc::new(vec![1.0f32, 2.0, 3.0]));
        let _ = all.part(0..2).part(1..3);
    }
}
