//! What a machine may do to us, said in words: memory that is written to disk, signals, threads that cannot start.

use rayon::ThreadPoolBuilder;

use crate::print_error;

/// Asks the system not to write our memory to disk when we crash, and turns signals that would end us without a word into errors.
/// What the system does not offer is left as it is.
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

/// A mapped file that is cut short under us raises SIGBUS where it is read, and a limit on the size of files SIGXFSZ where one is
/// written. The first ends the program with a sentence; the second lets the write fail, and the error says which file.
#[cfg(unix)]
fn say_signals() {
    const CUT_SHORT: &str = "error: a file that was being read was cut short by another program; restore it, and leave it alone \
                             while it is read\n";
    let _ = progap_graph::store::end_with_words_if_cut_short(CUT_SHORT);
    // Taking the signal is all that is needed.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
}

/// Starts the threads that share the work: as many as asked for, or one for each core. Where none can be started the program does all
/// the work in its own.
pub fn start_threads(threads: Option<u16>) {
    let pool = || match threads {
        Some(threads) => ThreadPoolBuilder::new().num_threads(threads.into()),
        None => ThreadPoolBuilder::new(),
    };
    // The pool of the whole program can be tried for once only.
    if pool().build().is_ok() && pool().build_global().is_ok() {
        return;
    }
    if ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global().is_ok() {
        print_error(
            "note: the system refuses to start threads (see `ulimit -u`): continuing with one, more slowly",
        );
    }
}
