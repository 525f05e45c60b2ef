//! One case: whether it panicked, how long it took, how much it allocated.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;

use crate::Target;

/// No case may allocate more at a time; no case is longer than half a megabyte.
pub const MAX_BYTES: usize = 256 << 20;
/// No case may take longer, on a machine that does other things too.
pub const LONGEST: Duration = Duration::from_secs(10);

/// The outcome of a case.
#[derive(Debug)]
pub struct Evaluation {
    /// The failure in words, if there is one.
    pub wrong: Option<String>,
    /// How long it took.
    pub took: Duration,
    /// The most bytes it had at a time.
    pub bytes: usize,
}

static SAID: Mutex<String> = Mutex::new(String::new());

/// Keeps what panics say instead of printing it; those that a reader expects of a damaged file do not count.
pub fn listen() {
    std::panic::set_hook(Box::new(|panic| {
        if !progap_formats::read::table::catches_panics()
            && let Ok(mut said) = SAID.lock()
        {
            *said = panic.to_string();
        }
    }));
}

/// Runs one case. The process must have `memory` as its allocator, and have called [`listen`].
pub fn evaluate(target: &Target, case: &[u8], memory: &PeakAlloc) -> Evaluation {
    if let Ok(mut said) = SAID.lock() {
        said.clear();
    }
    memory.reset_peak_usage();
    let (before, start) = (memory.current_usage(), Instant::now());
    let ended = catch_unwind(AssertUnwindSafe(|| (target.run)(case)));
    let (took, bytes) = (start.elapsed(), memory.peak_usage().saturating_sub(before));
    let wrong = if ended.is_err() {
        Some(format!(
            "panicked: {}",
            SAID.lock().map(|said| said.clone()).unwrap_or_default().replace('\n', " ")
        ))
    } else if bytes > MAX_BYTES {
        Some(format!("allocated {} MB", bytes >> 20))
    } else if took > LONGEST {
        Some(format!("took {:.1} s", took.as_secs_f64()))
    } else {
        None
    };
    Evaluation { wrong, took, bytes }
}
