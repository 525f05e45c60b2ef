//! Errors in the arguments of a caller.

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a network, an input or a batch was refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting outside what is possible.
    #[error("{what} is {value}, but must be {allowed}")]
    Setting {
        /// The setting.
        what: &'static str,
        /// The value that was given.
        value: String,
        /// The values that are possible.
        allowed: &'static str,
    },
    /// A list of the wrong length.
    #[error("the {what} has {found} values where {expected} are needed")]
    Length {
        /// The list.
        what: String,
        /// Its length.
        found: usize,
        /// The length it must have.
        expected: usize,
    },
    /// A sparse input whose rows do not make sense.
    #[error("row {row} of the sparse input {input} is broken: {why}")]
    Sparse {
        /// The input, counted from 0.
        input: usize,
        /// The row, counted from 0.
        row: usize,
        /// The reason.
        why: &'static str,
    },
    /// A list of neighbours that does not make sense.
    #[error("the list of neighbours of row {row} is broken: {why}")]
    Neighbours {
        /// The row, counted from 0.
        row: usize,
        /// The reason.
        why: &'static str,
    },
    /// A row that the inputs do not have.
    #[error("the batch names row {row}, but there are only {rows} rows (counted from 0)")]
    Row {
        /// The row.
        row: u32,
        /// How many there are.
        rows: usize,
    },
    /// A label that is not a class.
    #[error("row {row} has label {label}, but the network has {classes} classes (counted from 0)")]
    Label {
        /// The row.
        row: u32,
        /// Its label.
        label: u32,
        /// How many classes there are.
        classes: usize,
    },
    /// Class probabilities that are none.
    #[error("the class probabilities of row {row} must be at least 0 and add up to 1")]
    Probabilities {
        /// The row.
        row: u32,
    },
    /// A batch too small for what is asked.
    #[error("a batch of {rows} rows is too small: {why}")]
    SmallBatch {
        /// The rows of the batch.
        rows: usize,
        /// Why more are needed.
        why: &'static str,
    },
    /// Another process that trains on the same batch is gone, or does not fit.
    #[error("{0}")]
    Peer(String),
    /// Per-sample gradients of a network that mixes samples.
    #[error(
        "batch normalisation mixes the samples of a batch, so that they have no gradients of their own: use group \
         normalisation"
    )]
    BatchNormPerSample,
    /// A tensor of a state that does not belong to the network.
    #[error("the state has a tensor {0:?}, which this network does not have")]
    UnknownTensor(String),
    /// A tensor that a state lacks.
    #[error("the state lacks the tensor {0:?}")]
    MissingTensor(String),
    /// A tensor of another shape than the network's.
    #[error("the tensor {name:?} has shape {found:?}, but this network needs {expected:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// Its shape.
        found: Vec<usize>,
        /// The network's.
        expected: Vec<usize>,
    },
}

pub(crate) fn check_length(what: impl std::fmt::Display, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Length { what: what.to_string(), found, expected }) }
}

pub(crate) fn check_setting(
    ok: bool,
    what: &'static str,
    value: impl std::fmt::Display,
    allowed: &'static str,
) -> Result<()> {
    if ok { Ok(()) } else { Err(Error::Setting { what, value: value.to_string(), allowed }) }
}
