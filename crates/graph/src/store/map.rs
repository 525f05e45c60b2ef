//! Mapping a file into memory, and what happens when another program cuts it short: the unsafe operations of this
//! crate.

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapOptions};

/// Maps a whole file, read-only and private. With `at_once` its pages are looked up at once rather than one fault at a
/// time, and are in memory then.
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

/// A piece of a file, and where it lies among others.
#[cfg(unix)]
pub(super) struct Piece<'a> {
    pub file: &'a File,
    /// Where it begins in its file.
    pub from: u64,
    /// Where it begins among all pieces.
    pub at: usize,
    pub length: usize,
}

/// Maps pieces of several files, read-only and private, as if they were one file of this many bytes. The pieces must
/// begin at whole pages, in their files and among each other; their files must have the bytes.
#[cfg(unix)]
pub(super) fn map_together(length: usize, pieces: &[Piece<'_>], at_once: bool) -> io::Result<Mmap> {
    use std::os::fd::AsRawFd;

    #[cfg(target_os = "linux")]
    const AT_ONCE: libc::c_int = libc::MAP_POPULATE;
    // Other systems look pages up one fault at a time.
    #[cfg(not(target_os = "linux"))]
    const AT_ONCE: libc::c_int = 0;

    let reserved = MmapOptions::new().len(length).no_reserve_swap().map_anon()?;
    let how = if at_once { AT_ONCE } else { 0 };
    for piece in pieces {
        let end = piece.at.checked_add(piece.length).filter(|&end| end <= length && piece.length > 0);
        let from =
            libc::off_t::try_from(piece.from).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        if end.is_none() {
            return Err(io::Error::other("a piece lies outside of what is mapped"));
        }
        // SAFETY: the piece replaces pages that were just reserved, lie inside of the reservation and were never read:
        // nothing else is there. The reservation owns the addresses, and gives back all of them when it is dropped. As
        // for `map`, what is mapped is read-only, on the condition that `store::open` states.
        let placed = unsafe {
            libc::mmap(
                reserved.as_ptr().add(piece.at).cast_mut().cast(),
                piece.length,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_FIXED | how,
                piece.file.as_raw_fd(),
                from,
            )
        };
        if placed == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
    }
    reserved.make_read_only()
}

/// Gives the pages of a mapping back to the system; who reads them again gets them from the file again.
#[cfg(target_os = "linux")]
pub(super) fn give_back(map: &Mmap) -> io::Result<()> {
    // SAFETY: this is unsound where it loses what was written to a mapping. This one is of a file and read-only: its
    // pages hold what the file holds, before and after.
    unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) }
}

/// From now on a program that reads a mapped file which was cut short ends with these words and exit code 1, not by a
/// signal. For programs, at their start; a library leaves that to them.
///
/// # Errors
/// A system that takes no handlers.
#[cfg(unix)]
pub fn exit_on_truncated_map(words: &'static str) -> io::Result<()> {
    use std::sync::OnceLock;

    static WORDS: OnceLock<&str> = OnceLock::new();

    extern "C" fn end(_: libc::c_int) {
        let words = WORDS.get().copied().unwrap_or_default();
        // SAFETY: a handler may do only what is safe at any moment. `write` and `_exit` are, the text lives as long as
        // the program, reading it takes no lock, and nothing that was interrupted goes on.
        unsafe {
            libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len());
            libc::_exit(1);
        }
    }

    WORDS.get_or_init(|| words);
    let handler: extern "C" fn(libc::c_int) = end;
    // SAFETY: the handler has the type that the system calls. It replaces the standard library's, which for this signal
    // would only let the program die.
    match unsafe { libc::signal(libc::SIGBUS, handler as libc::sighandler_t) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
