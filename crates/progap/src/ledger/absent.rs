//! Stands where the ledger is, in a build without the feature `ledger`: there is none, and no run can be charged.

use std::fmt;
use std::path::Path;

use progap_graph::Dataset;
use progap_privacy::Unit;

use crate::error::Remedy;

/// A specialised `Result` for ledgers.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why nothing can be charged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no ledger in this build.
    #[error("this build keeps no ledger (feature ledger)")]
    Absent,
}

/// What to do about an error of a ledger.
pub fn remedies(_: &Error) -> Vec<Remedy> {
    vec![Remedy::Drop("ledger")]
}

impl Error {
    pub(crate) fn may_have_charged(&self) -> bool {
        false
    }
}

/// A ledger; this build has no value of it.
#[derive(Debug)]
pub enum Ledger {}

/// A warning of a ledger; this build has no value of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {}

impl fmt::Display for Warning {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

pub(crate) struct Found {
    pub name: String,
    pub warning: Option<Warning>,
}

impl Ledger {
    /// Refuses.
    ///
    /// # Errors
    /// Always: there is no ledger in this build.
    pub fn open(_: impl AsRef<Path>) -> Result<Self> {
        Err(Error::Absent)
    }

    pub(crate) fn identity(&self, _: &Dataset) -> Result<()> {
        match *self {}
    }

    pub(crate) fn find(&self, _: Option<&str>, _: &str, (): &(), _: Unit) -> Result<Found> {
        match *self {}
    }
}
