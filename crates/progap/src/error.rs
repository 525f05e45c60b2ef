//! Errors, one sentence each.
//!
//! Settings and options are named in backticks, with a value where one is proposed: `` `level node` ``. Whoever offers them under another
//! name, such as a command with flags, can put that name in their place.

use std::path::{Path, PathBuf};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error, with its remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting out of its range.
    #[error("the {} {value} is out of range; give {expected}", words(.name))]
    Setting {
        /// The setting, by its name in config.toml.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// The values that are possible.
        expected: String,
    },
    /// A setting that was asked for and decides nothing.
    #[error("`{name}` has no effect: {why}; leave it out")]
    NoEffect {
        /// The setting, by its name in config.toml.
        name: &'static str,
        /// Why.
        why: String,
    },
    /// Settings that contradict each other.
    #[error("{0}")]
    Contradiction(&'static str),
    /// A mistake in this crate: something that its own code rules out.
    #[error("internal error: {0}; please report it")]
    Internal(&'static str),
    /// The data cannot be trained on.
    #[error("{0}")]
    Unsuitable(String),
    /// The data could not be read or written.
    #[error(transparent)]
    Data(#[from] progap_graph::Error),
    /// Accounting or noise.
    #[error(transparent)]
    Privacy(#[from] progap_privacy::Error),
    /// Networks.
    #[error(transparent)]
    Network(#[from] progap_nn::Error),
    /// The ledger refused or failed.
    #[error(transparent)]
    Ledger(#[from] crate::ledger::Error),
    /// Another rank is gone or does not fit, or something runs on one machine only.
    #[error("{0}")]
    Rank(String),
    /// A file of a run or release.
    #[error("{}: {problem}", file.display())]
    File {
        /// Which file.
        file: PathBuf,
        /// The problem and its remedy.
        problem: String,
    },
    /// The user asked to stop; the run can be resumed.
    #[error("stopped; the run in {} can be resumed", .0.display())]
    Interrupted(PathBuf),
}

/// The name of a setting in a sentence.
fn words(name: &str) -> String {
    crate::settings::Declaration::find(name)
        .map_or_else(|_| name.replace('_', " "), crate::settings::Declaration::words)
}

impl Error {
    /// A problem with a file.
    pub fn file(file: &Path, problem: impl std::fmt::Display) -> Error {
        Error::File { file: file.to_path_buf(), problem: problem.to_string() }
    }
}

/// Names the file in an error.
pub(crate) trait InFile<T> {
    fn in_file(self, file: &Path) -> Result<T>;
}

impl<T, E: std::fmt::Display> InFile<T> for std::result::Result<T, E> {
    fn in_file(self, file: &Path) -> Result<T> {
        self.map_err(|e| Error::file(file, e))
    }
}
