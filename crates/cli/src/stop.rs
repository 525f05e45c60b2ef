//! Ctrl-C: the first one asks to stop, the second one ends the program.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// From now on the first Ctrl-C only sets what is returned here.
pub fn on_ctrl_c() -> Result<&'static AtomicBool, ctrlc::Error> {
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    })?;
    Ok(&STOP)
}
