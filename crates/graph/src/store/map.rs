//! Mapping a file into memory: the one unsafe operation of this crate.

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapOptions};

/// Maps a whole file, read-only and private, with its pages looked up at once rather than one fault at a time.
pub(super) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the mapping is read-only. It would be unsound if the file were changed in place or cut short while
    // it is mapped; `store::open` states that as its one condition, our own writer replaces files by renaming,
    // and no code of ours skips bounds checks on what it finds in a mapping.
    unsafe { MmapOptions::new().populate().map(file) }
}
