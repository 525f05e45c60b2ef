//! Lists whose first value starts a cache line, so that no vector of a row lies across two.

use std::ops::{Deref, DerefMut};

/// A cache line, in bytes.
const LINE: usize = 64;

/// A list of this many values.
#[derive(Debug, Default)]
pub(crate) struct Aligned {
    values: Vec<f32>,
    start: usize,
    length: usize,
}

impl Aligned {
    pub fn zeros(length: usize) -> Self {
        let mut list = Aligned::default();
        list.reset(length);
        list
    }

    /// Makes it a list of this many zeros.
    pub fn reset(&mut self, length: usize) {
        self.values.clear();
        self.values.resize(length + LINE / size_of::<f32>(), 0.0);
        self.start = self.values.as_ptr().align_offset(LINE).min(LINE / size_of::<f32>());
        self.length = length;
    }

    /// Makes it at least that long.
    pub fn reserve(&mut self, length: usize) {
        if self.length < length {
            self.reset(length);
        }
    }
}

impl From<&[f32]> for Aligned {
    fn from(values: &[f32]) -> Self {
        let mut list = Aligned::zeros(values.len());
        list.copy_from_slice(values);
        list
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        Aligned::from(&self[..])
    }
}

impl Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[self.start..][..self.length]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[self.start..][..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_begin_with_a_cache_line_and_keep_their_values() {
        let mut list = Aligned::default();
        for length in [0, 1, 16, 1000] {
            list.reset(length);
            assert!(list.len() == length && list.iter().all(|&v| v == 0.0));
            assert_eq!(list.as_ptr() as usize % LINE, 0);
            list.fill(1.0);
            let copy = list.clone();
            assert!(copy[..] == list[..] && (copy.as_ptr() as usize).is_multiple_of(LINE));
        }
    }
}
