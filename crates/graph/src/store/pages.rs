//! How much of mapped files stays in memory.
//!
//! A mapped file is read where it lies in the page cache, and every page that was read counts as memory of the process
//! until it is given back. Where a process keeps to a bound, a thread looks how many there are, some hundred times a
//! second, and gives all of them back when they are too many: what is read again comes from the page cache, or from the
//! disk where the file is larger than that. Readers need not know, but for those that are too fast for it: they
//! say how much they read.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use memmap2::Mmap;

/// The most bytes of mapped files in memory; 0 for any number.
static MOST: AtomicU64 = AtomicU64::new(0);
static MAPS: Mutex<Vec<Weak<Mmap>>> = Mutex::new(Vec::new());
/// Bytes for which looking more often would cost more than it gives.
const LEAST: u64 = 32 << 20;
/// The least bytes read after which those who say how much they read look at all: a look takes some microseconds.
const LOOKED: u64 = 1 << 20;
/// Of what may still come in, the share that is read before the next look: more may come in with it than was said, as
/// the system maps up to some megabytes around a place.
const SHARE: u64 = 16;
/// How often the thread looks: at the rate of memory some ten megabytes are read between two looks.
#[cfg(target_os = "linux")]
const INTERVAL: std::time::Duration = std::time::Duration::from_millis(3);

/// From now on about this many bytes of mapped files are in this process's memory at most. Where the system does not
/// tell how many there are, or starts no thread, they stay until the system wants them back.
pub fn keep_mapped_below(bytes: u64) {
    if MOST.swap(bytes.max(LEAST), Relaxed) == 0 {
        #[cfg(target_os = "linux")]
        let _ = std::thread::Builder::new().name("pages".into()).stack_size(1 << 16).spawn(watch);
    }
}

/// Whether this process keeps to a bound.
pub fn is_mapping_bounded() -> bool {
    MOST.load(Relaxed) > 0
}

/// When pages of a file come into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// At once, unless there is a bound.
    Mapped,
    /// Each when it is read: most of the file is for other processes.
    Read,
}

impl When {
    fn at_once(self) -> bool {
        self == When::Mapped && !is_mapping_bounded()
    }
}

/// Maps a file: at once, unless there is a bound.
pub(super) fn map(file: &File) -> io::Result<Arc<Mmap>> {
    Ok(known(super::map::map(file, When::Mapped.at_once())?))
}

/// Maps a file of which most is for other processes: each page when it is read.
pub(super) fn map_lazily(file: &File) -> io::Result<Arc<Mmap>> {
    Ok(known(super::map::map(file, When::Read.at_once())?))
}

/// Maps pieces of several files as one.
#[cfg(unix)]
pub(super) fn map_together(
    length: usize,
    pieces: &[super::map::Piece<'_>],
    when: When,
) -> io::Result<Arc<Mmap>> {
    Ok(known(super::map::map_together(length, pieces, when.at_once())?))
}

/// A mapping whose pages are given back.
fn known(map: Mmap) -> Arc<Mmap> {
    let map = Arc::new(map);
    let mut maps = MAPS.lock().unwrap_or_else(PoisonError::into_inner);
    maps.retain(|map| map.strong_count() > 0);
    maps.push(Arc::downgrade(&map));
    map
}

/// Bytes that may be read before the next look.
static UNSEEN: AtomicI64 = AtomicI64::new(0);

/// Says that this many bytes of mapped files were just read, or are about to be, by a reader that is too fast for a
/// thread that looks now and then: passes over a whole file, and rows here and there, which bring in what lies around
/// them.
pub fn note_read(bytes: usize) {
    if is_mapping_bounded() && UNSEEN.fetch_sub(bytes as i64, Relaxed) <= bytes as i64 {
        release_pages_if_full();
    }
}

/// Gives pages back if half of what may be there is: for readers of one block after another, so that a thread which
/// has to wait for its turn is not waited for.
pub fn release_pages_if_full() {
    #[cfg(target_os = "linux")]
    {
        let half = MOST.load(Relaxed) / 2;
        let Some(mut mapped) = mapped_bytes().filter(|_| half > 0) else { return };
        if mapped > half {
            give_back();
            mapped = mapped_bytes().unwrap_or(mapped);
        }
        let left = (half.saturating_sub(mapped) / SHARE).max(LOOKED);
        UNSEEN.store(left as i64, Relaxed);
    }
}

/// Gives back the pages of all mapped files. What is read again comes from the page cache.
pub fn give_back() {
    #[cfg(target_os = "linux")]
    {
        let maps: Vec<Arc<Mmap>> =
            MAPS.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
        // Pages that the system does not take back stay: that is no harm.
        maps.iter().for_each(|map| drop(super::map::give_back(map)));
    }
}

#[cfg(target_os = "linux")]
fn watch() {
    while let Some(mapped) = mapped_bytes() {
        // It may have waited for its turn, and may wait as long for the next.
        if mapped > MOST.load(Relaxed) / 2 {
            give_back();
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Bytes of files in this process's memory.
#[cfg(target_os = "linux")]
fn mapped_bytes() -> Option<u64> {
    use std::os::unix::fs::FileExt;
    use std::sync::OnceLock;

    // Opened once: to open it takes longer than to read it.
    static COUNTS: OnceLock<Option<File>> = OnceLock::new();
    let counts = COUNTS.get_or_init(|| File::open("/proc/self/statm").ok()).as_ref()?;
    // Pages: of the whole process, in memory, and of those the ones that files hold.
    let mut text = [0; 128];
    let length = counts.read_at(&mut text, 0).ok()?;
    let mut numbers = std::str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace();
    numbers.nth(2)?.parse::<u64>().ok().map(|pages| pages * page_bytes())
}

#[cfg(target_os = "linux")]
fn page_bytes() -> u64 {
    // The smallest that Linux has: where pages are larger there are fewer of them, and less is given back.
    4096
}
