//! ProGAP for Python: arrays in and out, errors as exceptions, and the interpreter free while Rust works. What users
//! import, the package `progap` in `python/`, is built on this module and knows no algorithm either.

mod accounting;
mod arrays;
mod audit;
mod data;
mod errors;
mod key;
mod ledger;
mod lent;
mod model;
mod observe;
mod pool;
mod settings;

use std::path::PathBuf;

use pyo3::prelude::*;

/// The compiled part of ProGAP.
#[pymodule]
mod _progap {
    #[pymodule_export]
    use super::accounting::{Cost, Event, accountants, calibrate, delta, epsilon};
    #[pymodule_export]
    use super::audit::audit;
    #[pymodule_export]
    use super::data::{Dataset, Identity};
    #[pymodule_export]
    use super::key::Key;
    #[pymodule_export]
    use super::ledger::{
        ledger_check, ledger_open, ledger_register, ledger_runs, ledger_set_budget, ledger_set_public_rows,
        ledger_status,
    };
    #[pymodule_export]
    use super::model::{Model, plan, resume, train};
    #[pymodule_export]
    use super::observe::Progress;
    #[pymodule_export]
    use super::settings::{check_settings, declarations};
    #[pymodule_export]
    use super::{main, report};
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}

/// Runs the command `progap` with these arguments, of which the first is its own name; gives its exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| progap_cli::run(arguments))
}

/// Writes the report of a release, or of an experiment, into a folder; gives the path of its page.
#[pyfunction]
fn report(py: Python<'_>, folder: PathBuf, out: PathBuf, public: bool) -> PyResult<PathBuf> {
    py.detach(|| progap_cli::report(&folder, &out, public))
        .map_err(|error| errors::exception(py, "ReleaseError", error.said(&errors::Keywords)))
}
