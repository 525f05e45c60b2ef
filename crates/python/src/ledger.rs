//! Ledgers: the budget of a data set over many runs. Each call opens the file anew, as processes do that share it.

use std::path::PathBuf;

use progap::ledger::Ledger;
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
    work(py, || if path.exists() { Ledger::open(&path) } else { Ledger::create(&path) }.map(drop))
}

/// Gives a data set a budget for some units; gives what its owner should know.
#[pyfunction]
pub fn ledger_register(
    py: Python<'_>,
    path: PathBuf,
    dataset: &Dataset,
    name: &str,
    units: Vec<String>,
    epsilon: f64,
    delta: f64,
) -> PyResult<Option<String>> {
    let units = units.iter().map(|name| unit(py, name)).collect::<PyResult<Vec<Unit>>>()?;
    let data = dataset.data(py)?;
    work(py, || -> progap::Result<Option<String>> {
        // Everything that can be refused is refused before anything is entered.
        for &unit in &units {
            run::check_budget(data, name, unit, epsilon, delta)?;
        }
        let mut ledger = Ledger::open(&path)?;
        let warning =
            ledger.register_units(name, &units, epsilon, delta, Some(&data.content_fingerprint()))?;
        Ok(warning.map(|warning| warning.to_string()))
    })
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

/// Verifies every seal and every figure; what it went through, as JSON.
#[pyfunction]
pub fn ledger_check(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    json(py, &work(py, || Ledger::open(&path)?.check())?)
}
