//! Errors of the libraries as exceptions of the package, with the same sentences.

use progap::Error;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

/// Where the classes of exceptions are defined: each has two bases, which only Python can say.
const MODULE: &str = "progap._errors";

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = CLASSES.get_or_try_init(py, || py.import(MODULE).map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

/// An exception of the package, by name.
pub fn exception(py: Python<'_>, name: &str, message: impl std::fmt::Display) -> PyErr {
    match class(py, name).and_then(|class| class.call1((message.to_string(),))) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// An error of the library as an exception.
pub fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let name = match error {
        Error::Setting { .. } | Error::NoEffect { .. } | Error::Contradiction(_) => "SettingsError",
        Error::Unsuitable(_) | Error::Data(_) | Error::Network(_) => "DataError",
        Error::Privacy(_) => "PrivacyError",
        Error::Ledger(_) => "LedgerError",
        Error::File { .. } => "ReleaseError",
        Error::Interrupted(_) => "Stopped",
        _ => "ProGAPError",
    };
    exception(py, name, error)
}

/// Turns what a library returns into what Python raises.
pub trait OrRaise<T> {
    /// The value, or an exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: Into<Error>> OrRaise<T> for Result<T, E> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, &error.into()))
    }
}
