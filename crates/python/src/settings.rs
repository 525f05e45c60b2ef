//! Settings by name, as they are declared in the library: Python's keyword arguments are made of these.

use progap::settings::{Declaration, Kind, Request, Scope, Settings};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList};
use serde_json::Value;

use crate::errors::{exception, raised};

/// Every setting, as a dictionary of what is known of it.
#[pyfunction]
pub fn declarations(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for setting in Settings::declarations() {
        list.append(described(py, setting)?)?;
    }
    Ok(list)
}

fn described<'py>(py: Python<'py>, setting: &Declaration) -> PyResult<Bound<'py, PyDict>> {
    let (kind, choices) = match setting.kind {
        Kind::Switch => ("bool", None),
        Kind::Whole => ("int", None),
        Kind::Number => ("float", None),
        Kind::Choice(all) => ("str", Some(all())),
    };
    let scope = match setting.scope {
        Scope::Everywhere => "everywhere",
        Scope::Private => "private",
        Scope::Edge => "edge",
        Scope::Node => "node",
    };
    let about = PyDict::new(py);
    about.set_item("name", setting.name)?;
    about.set_item("help", setting.help)?;
    about.set_item("kind", kind)?;
    about.set_item("choices", choices)?;
    about.set_item("optional", setting.optional)?;
    about.set_item("scope", scope)?;
    about.set_item("offered", setting.about.offered)?;
    about.set_item("default", setting.defaults())?;
    about.set_item("expected", setting.expected())?;
    Ok(about)
}

/// The request: settings by name, over the defaults or over the published settings.
pub fn request(settings: &Bound<'_, PyDict>, published: bool) -> PyResult<Request> {
    let mut request = if published { Request::published() } else { Request::default() };
    for (name, value) in settings {
        let name: String = name.extract()?;
        let value = json(&name, &value)?;
        request = request.with(&name, value);
    }
    Ok(request)
}

/// A value of a setting; what is no number in JSON goes as text, which the library names in its error.
fn json(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().into());
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(text.into());
    }
    if let Ok(number) = value.extract::<u64>() {
        return Ok(number.into());
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(number.into());
    }
    match value.extract::<f64>() {
        Ok(number) if number.is_finite() => Ok(number.into()),
        Ok(number) => Ok(number.to_string().into()),
        Err(_) => {
            let kind = value.get_type().name()?;
            Err(PyTypeError::new_err(format!(
                "the setting {name} cannot be of type {kind}: give a number, text or bool"
            )))
        }
    }
}

/// The settings that these come to, with everything decided that the data does not decide; raises what cannot work.
#[pyfunction]
pub fn check_settings(py: Python<'_>, settings: &Bound<'_, PyDict>, published: bool) -> PyResult<String> {
    // Nothing else was looked at: what is unsuitable is a setting.
    let checked = request(settings, published)?.settings().map_err(|error| match error.kind() {
        progap::ErrorKind::Unsuitable(message) => exception(py, "SettingsError", message),
        _ => raised(py, &error),
    })?;
    serde_json::to_string(&*checked).map_err(|error| PyTypeError::new_err(error.to_string()))
}
