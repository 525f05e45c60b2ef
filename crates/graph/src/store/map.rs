//! Mapping a file into memory, and what happens when another program cuts it short: the unsafe operations of this crate.

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapOptions};

/// Maps a whole file, read-only and private. With `at_once` its pages are looked up at once rather than one fault at a time, and are in
/// memory then.
pub(super) fn map(file: &File, at_once: bool) -> io::Result<Mmap> {
    let mut options = MmapOptions::new();
    if at_once {
        options.populate();
    }
    // SAFETY: the mapping is read-only. It would be unsound if the file were changed in place or cut short while
    // it is mapped; `store::open` states that as its one condition, our own writer replaces files by renaming,
    // and no code of ours skips bounds checks on what it finds in a mapping.
    unsafe { options.map(file) }
}

/// Gives the pages of a mapping back to the system; who reads them again gets them from the file again.
#[cfg(target_os = "linux")]
pub(super) fn give_back(map: &Mmap) -> io::Result<()> {
    // SAFETY: this is unsound where it loses what was written to a mapping. This one is of a file and read-only: its pages hold what the
    // file holds, before and after.
    unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) }
}

/// From now on a program that reads a mapped file which was cut short ends with these words and exit code 1, not by a signal. For
/// programs, at their start; a library leaves that to them.
///
/// # Errors
/// A system that takes no handlers.
#[cfg(unix)]
pub fn end_with_words_if_cut_short(words: &'static str) -> io::Result<()> {
    use std::sync::OnceLock;

    static WORDS: OnceLock<&str> = OnceLock::new();

    extern "C" fn end(_: libc::c_int) {
        let words = WORDS.get().copied().unwrap_or_default();
        // SAFETY: a handler may do only what is safe at any moment. `write` and `_exit` are, the text lives as long as the
        // program, reading it takes no lock, and nothing that was interrupted goes on.
        unsafe {
            libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len());
            libc::_exit(1);
        }
    }

    WORDS.get_or_init(|| words);
    let handler: extern "C" fn(libc::c_int) = end;
    // SAFETY: the handler has the type that the system calls. It replaces the standard library's, which for this signal would
    // only let the program die.
    match unsafe { libc::signal(libc::SIGBUS, handler as libc::sighandler_t) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
