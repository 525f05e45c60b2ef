//! Everything that can go wrong in this crate, as one type.

use thiserror::Error;

/// A specialised `Result` for this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: its place, and the values that are possible.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter of a function or builder lies outside its domain.
    #[error("{name} is {value}, but must be {expected}")]
    InvalidParameter {
        /// The parameter's name, as the caller knows it.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// The values that are possible.
        expected: &'static str,
    },

    /// A node of an event tree carries a value outside its domain.
    #[error("the event tree is invalid at `{path}`: {name} is {value}, but must be {expected}")]
    InvalidEvent {
        /// The node, written as a path from the root, such as `event.events[2].event`.
        path: String,
        /// The field of that node.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// The values that are possible.
        expected: &'static str,
    },

    /// An event that a newer version of the program knows.
    #[error("the tree has the event {0:?}, which this version of the program does not know: update it")]
    UnknownEvent(String),
    /// Text that should have been a JSON event tree is not one.
    #[error("this is not an event tree in JSON: {0}")]
    Json(String),

    /// An accountant has no theorem for a node of the tree.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),

    /// No noise level reaches the target.
    #[error(
        "no noise multiplier between {low:e} and {high:e} reaches epsilon {epsilon} at delta {delta:e}: {why}"
    )]
    CannotCalibrate {
        /// The target epsilon.
        epsilon: f64,
        /// The target delta.
        delta: f64,
        /// The smallest multiplier tried.
        low: f64,
        /// The largest multiplier tried.
        high: f64,
        /// The reason, in words.
        why: &'static str,
    },
}

impl Error {
    /// A parameter outside its domain.
    pub fn invalid(name: &'static str, value: impl ToString, expected: &'static str) -> Self {
        Error::InvalidParameter { name, value: value.to_string(), expected }
    }
}

/// Which node of an event tree an accountant cannot handle, and which accountants could.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the {accountant} accountant cannot handle the {node} at `{path}`: {reason}; {}", hint(.supported_by))]
pub struct Unsupported {
    /// The accountant that was asked.
    pub accountant: &'static str,
    /// The node, written as a path from the root.
    pub path: String,
    /// The kind of the node, as it is spelt in JSON.
    pub node: &'static str,
    /// Why it is not supported.
    pub reason: &'static str,
    /// The accountants that can handle the whole tree; empty if none can.
    pub supported_by: Vec<&'static str>,
}

fn hint(supported_by: &[&'static str]) -> String {
    if supported_by.is_empty() {
        "no accountant handles this tree".to_owned()
    } else {
        format!("use {}", supported_by.join(" or "))
    }
}

/// Checks that `value` is finite and strictly positive.
pub(crate) fn positive(name: &'static str, value: f64) -> Result<f64> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(Error::invalid(name, value, "a finite number above 0"))
    }
}

/// Checks that `delta` lies strictly between 0 and 1.
pub(crate) fn check_delta(delta: f64) -> Result<f64> {
    if delta > 0.0 && delta < 1.0 {
        Ok(delta)
    } else {
        Err(Error::invalid("delta", delta, "strictly between 0 and 1"))
    }
}

/// Checks that `epsilon` is finite and strictly positive.
pub(crate) fn check_epsilon(epsilon: f64) -> Result<f64> {
    positive("epsilon", epsilon)
}
