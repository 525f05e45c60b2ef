//! The machine: memory that is written to disk, signals, threads that cannot start.

use std::sync::mpsc::{Sender, channel};

use clap::Args;
use rayon::{ThreadBuilder, ThreadPoolBuilder};

use crate::print_error;

/// Asks the system not to write our memory to disk when we crash, and turns signals that would end us without a word
/// into errors. Protections that the system does not offer are left out.
pub fn prepare() {
    #[cfg(unix)]
    {
        no_core_dumps();
        say_signals();
    }
}

/// A run's key is in memory while it trains: a core dump would hold it.
#[cfg(unix)]
fn no_core_dumps() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = Rlimit { current: Some(0), ..getrlimit(Resource::Core) };
    let _ = setrlimit(Resource::Core, limit);
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// A mapped file that is cut short under us raises SIGBUS where it is read, and a limit on the size of files SIGXFSZ
/// where one is written. The first ends the program with a sentence; the second lets the write fail, and the error says
/// which file.
#[cfg(unix)]
fn say_signals() {
    const CUT_SHORT: &str = "error: a file that was being read was cut short by another program; restore it, and \
        leave it alone \
                             while it is read\n";
    let _ = progap_graph::store::exit_on_truncated_map(CUT_SHORT);
    // Taking the signal is all that is needed.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
}

/// How much memory the program takes.
#[derive(Args)]
pub struct Memory {
    /// Memory limit, such as 8G; larger data is streamed from disk [default: none]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory: Option<u64>,
}

impl Memory {
    /// Keeps to it from now on.
    pub fn keep(&self) {
        if let Some(bytes) = self.memory {
            progap::set_memory_limit(bytes);
        }
    }
}

/// A number of bytes, with a unit or without.
fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || "give a size such as 8G, 500M or a number of bytes, at least 64M".to_string();
    let text = text.trim().trim_end_matches(['b', 'B']).trim_end_matches(['i', 'I']);
    let (number, unit) = match text.char_indices().last().filter(|(_, last)| last.is_ascii_alphabetic()) {
        None => (text, 1.0),
        Some((at, last)) => (
            text[..at].trim(),
            match last.to_ascii_uppercase() {
                'K' => 1e3,
                'M' => 1e6,
                'G' => 1e9,
                'T' => 1e12,
                _ => return Err(wrong()),
            },
        ),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = number * unit;
    if (64e6..=1e18).contains(&bytes) { Ok(bytes as u64) } else { Err(wrong()) }
}

/// Starts the threads that share the work: as many as asked for, or one for each core; fewer where the system starts
/// no more. Where it starts none the program does all the work in its own.
pub fn start_threads(threads: Option<u16>) {
    let wanted = threads.map_or_else(usual_threads, usize::from);
    // The pool of the whole program can be tried for once only: so its threads wait for it, and are not asked for
    // again.
    let mut waiting: Vec<Sender<ThreadBuilder>> = vec![];
    while waiting.len() < wanted {
        let (hand_over, task) = channel::<ThreadBuilder>();
        let run = move || task.recv().into_iter().for_each(ThreadBuilder::run);
        match std::thread::Builder::new().spawn(run) {
            Ok(_) => waiting.push(hand_over),
            Err(_) => break,
        }
    }
    let started = waiting.len();
    let pool = match started {
        0 => ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global(),
        _ => ThreadPoolBuilder::new()
            .num_threads(started)
            .spawn_handler(|thread| {
                let gone = || std::io::Error::other("a thread has ended");
                waiting.pop().ok_or_else(gone)?.send(thread).map_err(|_| gone())
            })
            .build_global(),
    };
    if pool.is_ok() && started < wanted {
        print_error(&format!(
            "note: the system starts {started} of {wanted} threads (see `ulimit -u`): continuing with {}, more slowly",
            started.max(1)
        ));
    }
}

/// As many threads as the environment says, else one for each core.
fn usual_threads() -> usize {
    let said = std::env::var("RAYON_NUM_THREADS").ok().and_then(|said| said.parse().ok());
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    said.filter(|&threads| threads > 0).unwrap_or_else(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let found = ["8G", "8 GB", "1.5g", "500M", "0.1T", "200000000"].map(|text| bytes(text).ok());
        let gigabytes = [8.0, 8.0, 1.5, 0.5, 100.0, 0.2].map(|size: f64| Some((size * 1e9) as u64));
        assert_eq!(found, gigabytes);
        for wrong in ["", "G", "8X", "-8G", "8GG", "1M", "nan", "infG", "1e30G", "eight"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
