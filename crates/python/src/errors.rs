//! Errors of the libraries as exceptions of the package, with the same sentences.

use progap::{Error, ErrorKind, Remedy, Vocabulary};
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
    let name = match error.kind() {
        ErrorKind::OutOfRange { .. } | ErrorKind::NoEffect { .. } | ErrorKind::Contradiction(_) => {
            "SettingsError"
        }
        ErrorKind::Unsuitable(_) | ErrorKind::Data(_) | ErrorKind::Network(_) => "DataError",
        ErrorKind::Privacy(_) => "PrivacyError",
        ErrorKind::Ledger(_) => "LedgerError",
        ErrorKind::File(_) => "ReleaseError",
        ErrorKind::Interrupted(_) => "Stopped",
        _ => "ProGAPError",
    };
    exception(py, name, error.said(&Keywords))
}

/// Settings and options as keyword arguments, and what is to be done as calls.
pub struct Keywords;

impl Vocabulary for Keywords {
    fn name(&self, name: &str, value: Option<&str>) -> String {
        match value {
            None => format!("`{name}`"),
            Some(value) if value.parse::<f64>().is_ok() => format!("`{name}={value}`"),
            Some(value) => format!("`{name}={value:?}`"),
        }
    }

    fn action(&self, remedy: &Remedy) -> Option<String> {
        let said = match remedy {
            Remedy::Replace => "replace it with `force=True`",
            Remedy::Resume => "resume with `progap.resume(graph, folder)`",
            Remedy::CreateLedger => "create one with `progap.Ledger(path)`",
            Remedy::CreateBudget { unit, .. } => {
                return Some(format!(
                    "give it one with `Ledger.register(graph, unit=\"{unit}\", epsilon=..., delta=...)`"
                ));
            }
            Remedy::ChangeBudget => "change that budget with `Ledger.set_budget`",
            Remedy::OtherPeople => {
                "state that they are other people with `Ledger.register(..., same_people=False, reason=...)`"
            }
            Remedy::PublicRows => "state that rows are public with `Ledger.set_public_rows`",
            Remedy::NewKey => "make a new one with `progap.Key.new(name)`",
            _ => return None,
        };
        Some(said.into())
    }
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
