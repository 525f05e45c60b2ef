//! Threads: work is done by a pool of this process, while the interpreter is free for others.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::{OrRaise, exception};

/// The pool, and the process that it belongs to.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// The pool of this process.
pub fn pool(py: Python<'_>) -> PyResult<Arc<ThreadPool>> {
    // Held for a moment, by a thread that holds the interpreter: a fork finds it free.
    let mut kept = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, pool)) = &*kept
        && *owner == process
    {
        return Ok(pool.clone());
    }
    // A fork copies no threads: those of the parent cannot be waited for here, and not even ended.
    if let Some(of_the_parent) = kept.take() {
        std::mem::forget(of_the_parent);
    }
    let named = || ThreadPoolBuilder::new().thread_name(|number| format!("progap-{number}"));
    let built = named().build().or_else(|_| named().num_threads(1).build());
    let built = built.map_err(|error| exception(py, "ProGAPError", format!("no threads: {error}")))?;
    let pool = Arc::new(built);
    *kept = Some((process, pool.clone()));
    Ok(pool)
}

/// Works in the pool, while other Python threads run.
pub fn work<T: Send, E: Into<progap::Error> + Send>(
    py: Python<'_>,
    job: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    let pool = pool(py)?;
    py.detach(|| pool.install(job)).or_raise(py)
}
