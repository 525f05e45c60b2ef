//! Ctrl-C: the first one asks to stop, the second one ends the program.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

#[cfg(unix)]
const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, signal_hook::consts::SIGHUP];
#[cfg(not(unix))]
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// From now on the first Ctrl-C, or a request to end, only sets what is returned here. No thread is needed for that.
pub fn on_ctrl_c() -> io::Result<&'static AtomicBool> {
    let stop = STOP.get_or_init(Arc::default);
    for signal in SIGNALS {
        // In this order: the first signal finds the flag down, and raises it.
        flag::register_conditional_shutdown(signal, 130, stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}
