//! Errors of a ledger, one sentence each.

use std::path::{Path, PathBuf};

use progap_privacy::Unit;
use rusqlite::ErrorCode;
use thiserror::Error;

/// A specialised `Result` for ledgers.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a ledger.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file.
    #[error("there is no ledger at {}", .path.display())]
    Missing {
        /// Where it should have been.
        path: PathBuf,
    },
    /// A ledger is never overwritten.
    #[error("{} already exists: open it, or choose another name for a new ledger", .path.display())]
    Exists {
        /// The file in the way.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} is not a privacy ledger: check the path", .path.display())]
    NotALedger {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a newer version of this program.
    #[error("{} is a ledger of version {found}, and this program knows version {known}: update it", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: i64,
        /// The newest version that can be read.
        known: i64,
    },
    /// SQLite, or the shape of the tables, says that the file is broken.
    #[error("the ledger {} is damaged ({what}): restore it from a backup", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The finding.
        what: String,
    },
    /// A row is not what was once written.
    #[error("row {row} of the ledger {} was changed after it was written ({what}): restore a backup", .path.display())]
    Tampered {
        /// The file.
        path: PathBuf,
        /// The first bad row, counted from 1.
        row: u64,
        /// How it shows.
        what: String,
    },
    /// Another process held the ledger for too long.
    #[error("the ledger {} is in use by another process: try again", .path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be opened, or not be made.
    #[error("the ledger {} cannot be opened: check that its folder exists and that you may write \
        there", .path.display())]
    CannotOpen {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder cannot be written.
    #[error("the ledger {} cannot be written: give yourself write access to the file and its folder", .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// No space left; nothing was charged.
    #[error("there is no space left to write the ledger {}: free some and try again, nothing was \
        charged", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Reading or writing failed.
    #[error(
        "the ledger {} cannot be read or written ({source}): try the same run id again, it is never charged twice",
        .path.display()
    )]
    Storage {
        /// The file.
        path: PathBuf,
        /// SQLite's own error.
        source: rusqlite::Error,
    },
    /// An argument lies outside its domain.
    #[error("{name} is {value}, but must be {expected}")]
    Invalid {
        /// The argument.
        name: &'static str,
        /// Its value.
        value: String,
        /// The values that are possible.
        expected: String,
    },
    /// No budget was set for the data set.
    #[error("the ledger {} has no budget for {dataset}", .path.display())]
    Unregistered {
        /// The ledger.
        path: PathBuf,
        /// The name that was looked for.
        dataset: String,
        /// The unit that was asked for.
        asked: Unit,
    },
    /// A data set has one budget for each unit.
    #[error("{name} has a budget for the unit {unit} already")]
    Registered {
        /// The name of the data set.
        name: String,
        /// The unit.
        unit: Unit,
    },
    /// The same people would have two budgets.
    #[error(
        "these data have the ids, edges or rows of {known_as}, which has a budget: a second one, as {name}, \
         would be spent on the same people"
    )]
    SamePeople {
        /// The other name.
        name: String,
        /// The name that the people have.
        known_as: String,
    },
    /// Data that look like those of several names.
    #[error("these data look like those of several budgets ({names})")]
    Several {
        /// The names.
        names: String,
    },
    /// An edge-level release shows what a budget for nodes protects.
    #[error(
        "runs at edge level show features and labels in the clear, and {dataset} has a budget for the unit \
         node, which protects them ({when})"
    )]
    PrivateRows {
        /// The data set's name.
        dataset: String,
        /// What would break it.
        when: String,
    },
    /// A run whose cost in the unit of a budget is not known.
    #[error(
        "the run {run_id} cannot be counted in the unit {unit}, for which {dataset} has a budget, because no bound \
         of its cost in that unit is known: ask by mechanisms for which one is"
    )]
    Uncounted {
        /// The run.
        run_id: String,
        /// The data set's name.
        dataset: String,
        /// The unit.
        unit: Unit,
    },
    /// The ledger does not hold what a receipt proves.
    #[error(
        "the ledger {} does not hold the run {run_id} of the receipt, row {row} ({what}): it was replaced \
         by an older copy, or is another ledger",
        .path.display()
    )]
    RolledBack {
        /// The ledger.
        path: PathBuf,
        /// The run of the receipt.
        run_id: String,
        /// Its row.
        row: u64,
        /// What is there instead.
        what: String,
    },
    /// A name that stands for several budgets.
    #[error("{name} has budgets for several units ({units})")]
    Ambiguous {
        /// The name.
        name: String,
        /// Its units.
        units: String,
    },
    /// A run needs a budget in its own unit; it is counted in the others too.
    #[error(
        "the budget of {dataset} protects the unit {registered}, and this run is accounted for in the unit {asked}"
    )]
    Unit {
        /// The ledger.
        path: PathBuf,
        /// The data set's name.
        dataset: String,
        /// The units of its budgets.
        registered: String,
        /// The unit of the run.
        asked: Unit,
    },
    /// Noise that can be computed again protects nothing.
    #[error(
        "the noise of the run {run_id} comes from a seed, so that anybody can remove it: such a run is not private \
         and \
         cannot be charged"
    )]
    Seeded {
        /// The run.
        run_id: String,
    },
    /// The same run was charged before, and asked something else.
    #[error("the run {run_id} was charged before {what}: give a new run another id")]
    RunChanged {
        /// The run.
        run_id: String,
        /// The difference.
        what: &'static str,
    },
    /// The run does not fit the budget. Nothing was charged.
    #[error(transparent)]
    OverBudget(Box<OverBudget>),
    /// A budget below what is spent already.
    #[error("{dataset} has spent epsilon {spent:.6} at delta {delta:e}: its budget cannot be set to {asked}")]
    BudgetBelowSpent {
        /// The data set's name.
        dataset: String,
        /// The epsilon spent, at the new delta.
        spent: f64,
        /// The new delta.
        delta: f64,
        /// The new epsilon.
        asked: f64,
    },
    /// The error of noise from tables would be more than the part of delta that is kept for it.
    #[error(
        "a budget of epsilon {epsilon} at delta {delta:e} is more than the noise tables of {dataset}'s runs can \
         keep: \
         give it a larger delta or a smaller epsilon"
    )]
    Tables {
        /// The data set's name.
        dataset: String,
        /// The budget's epsilon.
        epsilon: f64,
        /// The budget's delta.
        delta: f64,
    },
    /// The events cannot be accounted for.
    #[error("this cannot be accounted for: {0}")]
    Accounting(#[from] progap_privacy::Error),
}

/// Why a run was refused, in figures.
#[derive(Debug, Clone, PartialEq, Error)]
#[error(
    "this run is refused: {dataset} has spent epsilon {spent:.6} of {budget} (unit {unit}, delta {delta:e}), the \
     run alone costs {asked:.6}, together {total:.6}; what is left is worth a single Gaussian query \
     of epsilon {left:.6}"
)]
pub struct OverBudget {
    /// The data set's name.
    pub dataset: String,
    /// The unit of the budget that it does not fit; a run is counted in every unit that has one.
    pub unit: Unit,
    /// Epsilon spent so far.
    pub spent: f64,
    /// Epsilon of the run alone.
    pub asked: f64,
    /// Epsilon of all runs with this one.
    pub total: f64,
    /// The budget's epsilon.
    pub budget: f64,
    /// The budget's delta, at which all of these hold.
    pub delta: f64,
    /// The largest epsilon of a single Gaussian query that would still be accepted, rounded down.
    pub left: f64,
}

impl Error {
    /// Whether a run may have been charged all the same.
    pub fn may_have_charged(&self) -> bool {
        matches!(self, Error::Storage { .. })
    }

    /// Says in our words what SQLite reports about a file.
    pub(super) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Error::ReadOnly { path },
            Some(ErrorCode::CannotOpen) => Error::CannotOpen { path },
            Some(ErrorCode::DiskFull) => Error::Full { path },
            Some(ErrorCode::NotADatabase) => Error::NotALedger { path },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::TooBig) => {
                Error::Damaged { path, what: source.to_string() }
            }
            _ => Error::Storage { path, source },
        }
    }

    pub(super) fn invalid(name: &'static str, value: impl ToString, expected: impl Into<String>) -> Self {
        Error::Invalid { name, value: value.to_string(), expected: expected.into() }
    }
}
