//! Training, and what it leaves: a model in memory, or a release in a folder.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use progap::order::OwnersOrder;
use progap::release::{Form, Metrics, Predictions, Statement};
use progap::settings::{Order, Settings};
use progap::{Release, Trained, units};
use progap_privacy::UnitEvent;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::Serialize;

use crate::data::{Dataset, ids};
use crate::errors::{OrRaise, exception};
use crate::observe::watched;
use crate::pool::work;
use crate::settings::request;

/// A trained model with its guarantee: in memory, or a release in a folder.
#[pyclass(frozen, module = "progap._progap")]
pub struct Model(Kept);

enum Kept {
    Memory(Box<Trained>),
    /// With the order of the data that it was trained on here, where that is another one.
    Folder(Box<Release>, Option<Box<OwnersOrder>>),
}

/// A release that was trained on these data.
fn of_data(release: Release, data: &progap::Dataset) -> progap::Result<Kept> {
    let owner = release.in_order_of(data)?.map(Box::new);
    Ok(Kept::Folder(Box::new(release), owner))
}

impl Model {
    /// The release, where it lies in a folder.
    pub fn release(&self) -> Option<&Release> {
        match &self.0 {
            Kept::Memory(_) => None,
            Kept::Folder(release, _) => Some(release),
        }
    }

    fn nodes(&self) -> &progap::Dataset {
        match &self.0 {
            Kept::Memory(trained) => trained.nodes(),
            Kept::Folder(release, owner) => {
                owner.as_deref().map_or_else(|| release.nodes(), OwnersOrder::nodes)
            }
        }
    }

    fn told_statement(&self) -> &Statement {
        match &self.0 {
            Kept::Memory(trained) => &trained.statement,
            Kept::Folder(release, _) => &release.statement,
        }
    }

    fn told_metrics(&self) -> &Metrics {
        match &self.0 {
            Kept::Memory(trained) => &trained.metrics,
            Kept::Folder(release, _) => &release.metrics,
        }
    }

    fn told_settings(&self) -> progap::Result<&Settings> {
        match &self.0 {
            Kept::Memory(trained) => Ok(&trained.settings),
            Kept::Folder(release, _) => release.settings(),
        }
    }
}

/// Trains: in memory, or into a new folder, where what was done survives.
#[pyfunction]
#[pyo3(signature = (dataset, settings, published, folder, ledger, ledger_name, callback))]
#[allow(clippy::too_many_arguments, reason = "called from one place")]
pub fn train(
    py: Python<'_>,
    dataset: &Dataset,
    settings: &Bound<'_, PyDict>,
    published: bool,
    folder: Option<PathBuf>,
    ledger: Option<PathBuf>,
    ledger_name: Option<String>,
    callback: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let request = request(settings, published)?;
    let data = dataset.data(py)?;
    let kept = watched(py, callback.as_ref(), move |observer| {
        let mut training = progap::train(data, request).observer(observer);
        if let Some(ledger) = ledger {
            training = training.ledger(ledger);
        }
        if let Some(name) = ledger_name {
            training = training.ledger_name(name);
        }
        Ok(match folder {
            Some(folder) => of_data(training.into_folder(folder)?, data)?,
            None => Kept::Memory(Box::new(training.in_memory()?)),
        })
    })?;
    Ok(Model(kept))
}

/// Events as JSON, by unit.
type Events = Vec<(&'static str, String)>;

fn events(all: Vec<UnitEvent>) -> Events {
    all.into_iter().map(|UnitEvent { unit, event }| (unit.name(), event.to_json())).collect()
}

/// What a run on these data would cost, without running it: (epsilon, delta, unit, event as JSON, events in other
/// units); no unit without a guarantee.
#[pyfunction]
pub fn plan(
    py: Python<'_>,
    dataset: &Dataset,
    settings: &Bound<'_, PyDict>,
    published: bool,
) -> PyResult<(f64, f64, Option<&'static str>, String, Events)> {
    let request = request(settings, published)?;
    let data = dataset.outline();
    let (plan, others) = work(py, || -> progap::Result<_> {
        let asked = progap::account(request).on(data);
        let plan = asked.plan()?;
        let others = match plan.unit {
            None => vec![],
            Some(unit) => units::in_other_units(&plan.queries, &asked.decided()?.settings, unit)?,
        };
        Ok((plan, others))
    })?;
    let unit = plan.unit.map(progap::Unit::name);
    Ok((plan.epsilon, plan.delta, unit, plan.event.to_json(), events(others)))
}

/// Goes on with a run that was stopped, with the data that it began with.
#[pyfunction]
pub fn resume(
    py: Python<'_>,
    dataset: &Dataset,
    folder: PathBuf,
    callback: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let data = dataset.data(py)?;
    let resumed =
        |observer: &mut dyn progap::Observer| of_data(progap::resume(data, &folder, observer)?, data);
    Ok(Model(watched(py, callback.as_ref(), resumed)?))
}

type Arrays<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray2<f32>>);

#[pymethods]
impl Model {
    /// Opens a release.
    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf) -> PyResult<Model> {
        work(py, || Release::open(&folder)).map(|release| Model(Kept::Folder(Box::new(release), None)))
    }

    /// Where it lies; none where it is in memory only.
    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        match &self.0 {
            Kept::Memory(_) => None,
            Kept::Folder(release, _) => Some(release.folder.clone()),
        }
    }

    /// Writes a model that is in memory as a release, perhaps with a word on the order of its nodes.
    fn save(&self, py: Python<'_>, folder: PathBuf, shuffle: bool, public: bool) -> PyResult<Model> {
        match &self.0 {
            Kept::Memory(trained) => {
                let order = if public { Order::Public } else { trained.settings.order };
                work(py, || trained.save_with(&folder, shuffle, order))
                    .map(|release| Model(Kept::Folder(Box::new(release), None)))
            }
            Kept::Folder(..) => Err(exception(py, "ReleaseError", "this release lies in a folder already")),
        }
    }

    /// Class and probabilities of some nodes by position, or of all of them.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        nodes: Option<PyReadonlyArray1<'_, i64>>,
    ) -> PyResult<Arrays<'py>> {
        let known = self.nodes().nodes();
        let listed = match &nodes {
            None => None,
            Some(nodes) => {
                let mut listed = Vec::with_capacity(nodes.as_array().len());
                for &node in nodes.as_array() {
                    match usize::try_from(node).ok().filter(|&node| node < known) {
                        Some(node) => listed.push(node as u32),
                        None => {
                            let message =
                                format!("node {node} is outside 0..{known}; give positions of nodes");
                            return Err(exception(py, "DataError", message));
                        }
                    }
                }
                Some(listed)
            }
        };
        let classes = self.nodes().classes();
        let Predictions { classes: best, probabilities, .. } = work(py, || match (&self.0, &listed) {
            (Kept::Memory(trained), None) => trained.predict(),
            (Kept::Memory(trained), Some(nodes)) => trained.predict_nodes(nodes),
            (Kept::Folder(release, None), None) => release.predict(),
            (Kept::Folder(release, None), Some(nodes)) => release.predict_nodes(nodes),
            (Kept::Folder(release, Some(owner)), nodes) => {
                let all = || (0..known as u32).collect();
                owner.predict(&nodes.clone().unwrap_or_else(all), |places| release.predict_nodes(places))
            }
        })?;
        let best: Vec<i64> = best.into_iter().map(i64::from).collect();
        let rows = best.len();
        Ok((best.into_pyarray(py), probabilities.into_pyarray(py).reshape([rows, classes])?))
    }

    /// Ids, classes and probabilities of the nodes of a table that were not there in training.
    #[pyo3(signature = (table, id_column=None))]
    fn predict_table<'py>(
        &self,
        py: Python<'py>,
        table: PathBuf,
        id_column: Option<&str>,
    ) -> PyResult<(Vec<String>, Arrays<'py>)> {
        let Kept::Folder(release, _) = &self.0 else {
            return Err(exception(py, "ReleaseError", "the model lies in memory: save it first"));
        };
        let (rows, found) = work(py, || {
            let rows = release.read_rows(&table, id_column)?;
            release.predict_rows(&rows).map(|found| (rows, found))
        })?;
        let ids = (0..rows.nodes()).map(|node| rows.node_ids().name(node)).collect();
        let best: Vec<i64> = found.classes.into_iter().map(i64::from).collect();
        let probabilities = found.probabilities.into_pyarray(py).reshape([rows.nodes(), rows.classes()])?;
        Ok((ids, (best.into_pyarray(py), probabilities)))
    }

    /// The positions of nodes by the names that people gave them.
    fn positions<'py>(&self, py: Python<'py>, names: Vec<String>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let known = py.detach(|| self.nodes().node_ids().positions(self.nodes().nodes()));
        let find = |name: &String| match known.get(name) {
            Some(&node) => Ok(i64::from(node)),
            None => {
                let message = format!("the release has no node {name:?}; give ids of its nodes");
                Err(exception(py, "DataError", message))
            }
        };
        Ok(names.iter().map(find).collect::<PyResult<Vec<i64>>>()?.into_pyarray(py))
    }

    #[getter]
    fn class_names(&self) -> Vec<String> {
        self.nodes().class_names().to_vec()
    }

    /// What people call the nodes.
    fn ids(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        ids(py, self.nodes())
    }

    /// The labels by number, -1 where unknown; none where they are private.
    fn labels<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<i64>>> {
        let known = match &self.0 {
            Kept::Memory(trained) => trained.settings.level != progap::Level::Node,
            Kept::Folder(release, _) => release.has_labels(),
        };
        let number = |&label: &u32| if label == progap_graph::UNLABELLED { -1 } else { i64::from(label) };
        known.then(|| self.nodes().labels().iter().map(number).collect::<Vec<i64>>().into_pyarray(py))
    }

    /// The parts of the split by number (1 train, 2 val, 3 test, 0 none).
    fn parts<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u8>>> {
        let split = self.nodes().split()?;
        let code = |node| match split.part(node) {
            progap_graph::Part::Train => 1,
            progap_graph::Part::Val => 2,
            progap_graph::Part::Test => 3,
            progap_graph::Part::Unused => 0,
        };
        Some((0..self.nodes().nodes()).map(code).collect::<Vec<u8>>().into_pyarray(py))
    }

    /// The guarantee in one line.
    fn guarantee(&self) -> String {
        self.told_statement().guarantee().to_string()
    }

    /// The privacy statement, as JSON.
    fn statement(&self, py: Python<'_>) -> PyResult<String> {
        json(py, self.told_statement())
    }

    /// The events of the run in other units than its own, as JSON.
    fn events_in_other_units(&self, py: Python<'_>) -> PyResult<Events> {
        let settings = self.told_settings().or_raise(py)?;
        self.told_statement().in_other_units(settings).or_raise(py).map(events)
    }

    /// Accuracies and the history of training, as JSON.
    fn metrics(&self, py: Python<'_>) -> PyResult<String> {
        json(py, self.told_metrics())
    }

    /// The settings, as JSON.
    fn settings(&self, py: Python<'_>) -> PyResult<String> {
        json(py, self.told_settings().or_raise(py)?)
    }

    /// The name of the data set.
    #[getter]
    fn dataset(&self) -> &str {
        match &self.0 {
            Kept::Memory(trained) => trained.nodes().name(),
            Kept::Folder(release, _) => release.nodes().name(),
        }
    }

    /// For whom predictions are, in words; None if they may go to anyone.
    #[getter]
    fn caution(&self) -> Option<&'static str> {
        match &self.0 {
            Kept::Memory(trained) => trained.caution(),
            Kept::Folder(release, _) => release.caution(),
        }
    }

    /// The model as an ONNX file.
    fn to_onnx<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let release = self.in_folder(py)?;
        Ok(PyBytes::new(py, &work(py, || release.to_onnx())?))
    }

    /// Writes the model in a form that other tools load; gives the names of what was written.
    fn package(&self, py: Python<'_>, form: &str, out: PathBuf) -> PyResult<Vec<String>> {
        let Some((_, form)) = Form::ALL.into_iter().find(|(name, _)| *name == form) else {
            let known = Form::ALL.map(|(name, _)| name).join(", ");
            return Err(exception(
                py,
                "SettingsError",
                format!("there is no form {form:?}; give one of {known}"),
            ));
        };
        let release = self.in_folder(py)?;
        work(py, || release.package(form, &out))
    }

    /// Checks a release, as JSON: a list of findings.
    fn verify(&self, py: Python<'_>) -> PyResult<String> {
        let release = self.in_folder(py)?;
        json(py, &work(py, || release.verify())?)
    }
}

impl Model {
    fn in_folder(&self, py: Python<'_>) -> PyResult<&Release> {
        self.release().ok_or_else(|| {
            exception(py, "ReleaseError", "this model is in memory only, and no release yet: save it first")
        })
    }
}

fn json(py: Python<'_>, value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| exception(py, "ProGAPError", error))
}
