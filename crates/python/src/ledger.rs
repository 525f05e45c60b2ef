//! Ledgers: the budget of a data set over many runs. Each call opens the file anew, as processes do that share it.

use std::path::PathBuf;

use progap::ledger::{Entry, Ledger, Receipt};
use progap::{Unit, run};
use pyo3::prelude::*;

use crate::data::Dataset;
use crate::errors::{OrRaise, exception};
use crate::pool::work;

fn unit(py: Python<'_>, name: &str) -> PyResult<Unit> {
    name.parse::<Unit>().or_raise(py)
}

fn json(py: Python<'_>, value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| exception(py, "ProGAPError", error))
}

/// Opens a ledger, or makes one where there is none.
#[pyfunction]
pub fn ledger_open(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    work(py, || Ledger::open_or_create(&path).map(drop))
}

/// Gives a data set a budget for some units; gives what its owner should know.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "called from one place")]
pub fn ledger_register(
    py: Python<'_>,
    path: PathBuf,
    dataset: &Dataset,
    name: &str,
    units: Vec<String>,
    epsilon: f64,
    delta: f64,
    other_people: Option<String>,
    public_rows: bool,
) -> PyResult<Option<String>> {
    let units = units.iter().map(|name| unit(py, name)).collect::<PyResult<Vec<Unit>>>()?;
    let data = dataset.data(py)?;
    work(py, || -> progap::Result<Option<String>> {
        // Everything that can be refused is refused before anything is entered.
        for &unit in &units {
            run::check_budget(data, name, unit, epsilon, delta)?;
        }
        let mut ledger = Ledger::open(&path)?;
        let people = ledger.identity(data)?;
        let entry = Entry { other_people, public_rows, ..Entry::new(name, &units, epsilon, delta) };
        Ok(ledger.enter(&entry, Some(&people))?.map(|warning| warning.to_string()))
    })
}

/// States that features and labels are public, for a reason that is written down.
#[pyfunction]
pub fn ledger_set_public_rows(py: Python<'_>, path: PathBuf, name: &str, reason: &str) -> PyResult<()> {
    work(py, || Ledger::open(&path)?.set_public_rows(name, reason))
}

/// Changes a budget, for a reason that is written down.
#[pyfunction]
pub fn ledger_set_budget(
    py: Python<'_>,
    path: PathBuf,
    name: &str,
    unit: &str,
    epsilon: f64,
    delta: f64,
    reason: &str,
) -> PyResult<()> {
    let unit = self::unit(py, unit)?;
    work(py, || Ledger::open(&path)?.set_budget(name, unit, epsilon, delta, reason))
}

/// Where all data sets stand, as JSON.
#[pyfunction]
pub fn ledger_status(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    json(py, &work(py, || Ledger::open(&path)?.datasets())?)
}

/// All runs of a data set, as JSON.
#[pyfunction]
pub fn ledger_runs(py: Python<'_>, path: PathBuf, name: &str, unit: &str) -> PyResult<String> {
    let unit = self::unit(py, unit)?;
    json(py, &work(py, || Ledger::open(&path)?.charges(name, unit))?)
}

/// Verifies every seal and every figure, and that the ledger holds these receipts, a list as JSON; what it went
/// through, as JSON.
#[pyfunction]
pub fn ledger_check(py: Python<'_>, path: PathBuf, receipts: &str) -> PyResult<String> {
    let receipts: Vec<Receipt> = serde_json::from_str(receipts).map_err(|error| {
        exception(py, "LedgerError", format!("these are no receipts of a ledger: {error}"))
    })?;
    let checked = work(py, || {
        let ledger = Ledger::open(&path)?;
        ledger.check_against(&receipts)?;
        ledger.check()
    })?;
    json(py, &checked)
}
