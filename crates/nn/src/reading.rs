//! Word of the rows that are read, for a program that keeps to a bound of memory while rows lie in mapped files.
//!
//! Of a mapped file the system brings in what lies around a row as well: a few rows here and there bring in all of it,
//! faster than anything outside could see.

use std::sync::OnceLock;

use crate::input::Input;

static LISTENER: OnceLock<fn(usize)> = OnceLock::new();
/// The least number of bytes that come in with a row.
const AROUND: usize = 1 << 16;

/// From now on `listener` is told, before rows are read, about how many bytes come into memory with them where they lie
/// in mapped files. The first listener stays; it is called from any thread, and often.
pub fn set_read_listener(listener: fn(usize)) {
    LISTENER.get_or_init(|| listener);
}

/// Of this many rows those that are read together: few where someone is told, as each may be far from the others.
pub(crate) fn at_once(rows: usize) -> usize {
    if LISTENER.get().is_some() { 16 } else { rows.max(1) }
}

impl Input<'_> {
    /// Says that these rows are about to be read.
    pub fn tell(&self, rows: &[u32]) {
        if let Some(listener) = LISTENER.get() {
            listener(self.touched(rows));
        }
    }

    /// Bytes that come in with some rows; rows in their order count once.
    fn touched(&self, rows: &[u32]) -> usize {
        let place = |row: u32| match *self {
            Input::Dense { columns, .. } => (row as usize * columns * 4, columns * 4),
            Input::Half { columns, .. } => (row as usize * columns * 2, columns * 2),
            Input::Sparse { offsets, values, .. } => {
                let size = if values.is_some() { 8 } else { 4 };
                let at = |row: u32| offsets.get(row as usize).copied().unwrap_or(0) as usize * size;
                (at(row), at(row + 1).saturating_sub(at(row)))
            }
        };
        let (mut last, mut windows) = (usize::MAX, 0);
        for &row in rows {
            let (first, bytes) = place(row);
            let (from, to) = (first / AROUND, (first + bytes.max(1) - 1) / AROUND);
            windows += to - from + usize::from(from != last);
            last = to;
        }
        windows * AROUND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_far_apart_bring_in_more_than_themselves() {
        let values = vec![0f32; 1 << 20];
        let input = Input::Dense { columns: 16, values: &values };
        let all: Vec<u32> = (0..1 << 16).collect();
        assert_eq!(input.touched(&all), 4 << 20, "each byte once");
        assert_eq!(input.touched(&[0, 1, 2]), AROUND);
        assert_eq!(input.touched(&[0, 5000, 1]), 3 * AROUND);
        assert_eq!(input.touched(&[]), 0);
        let wide = Input::Dense { columns: 1 << 15, values: &values };
        assert_eq!(wide.touched(&[0, 2]), 4 * AROUND, "a row of two windows");
        let offsets: Vec<u64> = (0..=1000).map(|row| row * 100).collect();
        let sparse = Input::Sparse { columns: 9, offsets: &offsets, indices: &[], values: None };
        assert_eq!(sparse.touched(&[0, 100, 999]), 2 * AROUND, "40,000 bytes apart, and 360,000");
    }
}
