//! Training, and what it leaves: a model in memory, or a release in a folder.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use progap::order::OwnersOrder;
use progap::release::{Date, Exported, Metrics, Predictions, Statement};
use progap::settings::{Order, Settings};
use progap::{Release, Trained, units};
use progap_export::Form;
use progap_formats::read::table::{LaterOptions, LaterRows, LaterTable, Reject};
use progap_privacy::UnitEvent;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use serde::Serialize;

use crate::data::{Dataset, ids};
use crate::errors::{Keywords, OrRaise, exception};
use crate::key::Key;
use crate::observe::watched;
use crate::pool::work;
use crate::settings::request;

/// A trained model with its guarantee: in memory, or a release in a folder.
#[pyclass(frozen, module = "progap._progap")]
pub struct Model {
    kept: Kept,
    /// The position of each id, from the first time that one is asked for.
    index: OnceLock<HashMap<String, u32>>,
}

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
    fn of(kept: Kept) -> Model {
        Model { kept, index: OnceLock::new() }
    }

    /// The release, where it lies in a folder.
    pub fn release(&self) -> Option<&Release> {
        match &self.kept {
            Kept::Memory(_) => None,
            Kept::Folder(release, _) => Some(release),
        }
    }

    fn nodes(&self) -> &progap::Dataset {
        match &self.kept {
            Kept::Memory(trained) => trained.nodes(),
            Kept::Folder(release, owner) => {
                owner.as_deref().map_or_else(|| release.nodes(), OwnersOrder::nodes)
            }
        }
    }

    fn told_statement(&self) -> &Statement {
        match &self.kept {
            Kept::Memory(trained) => &trained.statement,
            Kept::Folder(release, _) => &release.statement,
        }
    }

    fn told_metrics(&self) -> &Metrics {
        match &self.kept {
            Kept::Memory(trained) => &trained.metrics,
            Kept::Folder(release, _) => &release.metrics,
        }
    }

    fn told_settings(&self) -> progap::Result<&Settings> {
        match &self.kept {
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
    Ok(Model::of(kept))
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

/// Resumes an interrupted run, with the data that it began with.
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
    Ok(Model::of(watched(py, callback.as_ref(), resumed)?))
}

type Arrays<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray2<f32>>);

#[pymethods]
impl Model {
    /// Opens a release.
    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf) -> PyResult<Model> {
        work(py, || Release::open(&folder)).map(|release| Model::of(Kept::Folder(Box::new(release), None)))
    }

    /// Where it lies; none where it is in memory only.
    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        match &self.kept {
            Kept::Memory(_) => None,
            Kept::Folder(release, _) => Some(release.folder.clone()),
        }
    }

    /// Writes a model that is in memory as a release, perhaps with a word on the order of its nodes.
    fn save(&self, py: Python<'_>, folder: PathBuf, shuffle: bool, public: bool) -> PyResult<Model> {
        match &self.kept {
            Kept::Memory(trained) => {
                let order = if public { Order::Public } else { trained.settings.order };
                work(py, || trained.save_with(&folder, shuffle, order))
                    .map(|release| Model::of(Kept::Folder(Box::new(release), None)))
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
        let listed = self.listed(py, nodes.as_ref())?;
        let classes = self.nodes().classes();
        let Predictions { classes: best, probabilities, .. } = work(py, || match (&self.kept, &listed) {
            (Kept::Memory(trained), None) => trained.predict(),
            (Kept::Memory(trained), Some(nodes)) => trained.predict_nodes(nodes),
            (Kept::Folder(release, None), None) => release.predict(),
            (Kept::Folder(release, None), Some(nodes)) => release.predict_nodes(nodes),
            (Kept::Folder(release, Some(owner)), nodes) => {
                let all = || (0..self.nodes().nodes() as u32).collect();
                owner.predict(&nodes.clone().unwrap_or_else(all), |places| release.predict_nodes(places))
            }
        })?;
        let best: Vec<i64> = best.into_iter().map(i64::from).collect();
        let rows = best.len();
        Ok((best.into_pyarray(py), probabilities.into_pyarray(py).reshape([rows, classes])?))
    }

    /// Ids, classes and probabilities of the nodes of a table that were not there in training, and the rows that do
    /// not fit.
    fn predict_table<'py>(
        &self,
        py: Python<'py>,
        table: Table,
        id: Option<&str>,
        lenient: bool,
    ) -> PyResult<(Vec<String>, Arrays<'py>, Unread)> {
        let (release, options) =
            (self.in_folder(py)?, LaterOptions { id_column: id, lenient, encoding: None });
        let found = work(py, || release.predict_rows(table.given(), &options))?;
        let ids = names(&found.read);
        let best: Vec<i64> = found.predictions.classes.into_iter().map(i64::from).collect();
        let probabilities = found.predictions.probabilities.into_pyarray(py);
        let probabilities = probabilities.reshape([best.len(), self.nodes().classes()])?;
        Ok((ids, (best.into_pyarray(py), probabilities), unread(found.read)))
    }

    /// Ids and features of the nodes of a table that were not there in training, and the rows that do not fit.
    fn features<'py>(
        &self,
        py: Python<'py>,
        table: Table,
        id: Option<&str>,
        lenient: bool,
    ) -> PyResult<(Vec<String>, Bound<'py, PyArray2<f32>>, Unread)> {
        let (release, options) =
            (self.in_folder(py)?, LaterOptions { id_column: id, lenient, encoding: None });
        let read = work(py, || release.read_rows(table.given(), &options))?;
        let (ids, columns) = (names(&read), release.statement.feature_columns);
        let values = read.rows.as_ref().map_or(vec![], |rows| rows.features().to_dense(rows.nodes()));
        let features = values.into_pyarray(py).reshape([ids.len(), columns])?;
        Ok((ids, features, unread(read)))
    }

    /// How many nodes there are.
    #[getter]
    fn num_nodes(&self) -> usize {
        self.nodes().nodes()
    }

    /// Whether the label of some nodes, or of all of them, was known in training.
    fn labelled<'py>(
        &self,
        py: Python<'py>,
        nodes: Option<PyReadonlyArray1<'_, i64>>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let known = |node: usize| self.nodes().label(node).is_some();
        let known: Vec<bool> = match self.listed(py, nodes.as_ref())? {
            None => (0..self.nodes().nodes()).map(known).collect(),
            Some(nodes) => nodes.into_iter().map(|node| known(node as usize)).collect(),
        };
        Ok(known.into_pyarray(py))
    }

    /// The positions of nodes by the names that people gave them.
    fn positions<'py>(&self, py: Python<'py>, names: Vec<String>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let known =
            py.detach(|| self.index.get_or_init(|| self.nodes().node_ids().positions(self.nodes().nodes())));
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

    /// What people call some nodes, or all of them.
    fn ids(&self, py: Python<'_>, nodes: Option<PyReadonlyArray1<'_, i64>>) -> PyResult<Py<PyAny>> {
        match self.listed(py, nodes.as_ref())? {
            None => ids(py, self.nodes().node_ids(), self.nodes().nodes()),
            Some(listed) => ids(py, &self.nodes().node_ids().select(&listed), listed.len()),
        }
    }

    /// The labels by number, -1 where unknown; none where they are private.
    fn labels<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<i64>>> {
        let known = match &self.kept {
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
        match &self.kept {
            Kept::Memory(trained) => trained.nodes().name(),
            Kept::Folder(release, _) => release.nodes().name(),
        }
    }

    /// For whom predictions are, in words; None if they may go to anyone.
    #[getter]
    fn caution(&self) -> Option<&'static str> {
        match &self.kept {
            Kept::Memory(trained) => trained.caution(),
            Kept::Folder(release, _) => release.caution(),
        }
    }

    /// The model as an ONNX file, about the nodes of the release or about those of a table.
    fn to_onnx<'py>(&self, py: Python<'py>, for_rows: bool) -> PyResult<Bound<'py, PyBytes>> {
        let release = self.in_folder(py)?;
        let made = || {
            if for_rows { progap_export::to_onnx_for_rows(release) } else { progap_export::to_onnx(release) }
        };
        Ok(PyBytes::new(py, &work(py, made)?))
    }

    /// Makes a copy of a release that may be shared; gives its hash, its files, and the fingerprint of the key that
    /// signed it.
    fn export(
        &self,
        py: Python<'_>,
        out: PathBuf,
        with_rows: bool,
        date: Option<&str>,
        key: Option<PyRef<'_, Key>>,
    ) -> PyResult<(String, Vec<String>, Option<String>)> {
        let folder = self.in_folder(py)?.folder.clone();
        let date = match date {
            None => Date::today(),
            Some(date) => date.parse().map_err(|problem: String| exception(py, "SettingsError", problem))?,
        };
        let key = key.as_ref().map(|key| key.secret(py)).transpose()?;
        let exported = Exported { date, rows: with_rows };
        let made = py.detach(|| progap_cli::export(&folder, &out, exported, key));
        let made = made.map_err(|error| exception(py, "ReleaseError", error.said(&Keywords)))?;
        Ok((made.sha256, made.files, key.map(|key| key.public().fingerprint())))
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
        work(py, || progap_export::package(release, form, &out))
    }

    /// Checks a release, as JSON: a list of findings. What another than the named signer made is not looked at.
    fn verify(&self, py: Python<'_>, signer: Option<PyRef<'_, Key>>) -> PyResult<String> {
        let release = self.in_folder(py)?;
        let signer = signer.as_ref().map(|key| key.public());
        let found = work::<_, progap::Error>(py, || {
            let (signature, _) = progap_export::signed(&release.folder, signer)?;
            let stranger = signer.is_some() && !signature.ok;
            let mut findings = if stranger { vec![] } else { release.verify()? };
            findings.push(signature);
            Ok(findings)
        })?;
        json(py, &found)
    }
}

/// A table of nodes that come later: a file, or CSV in memory.
#[derive(FromPyObject)]
enum Table {
    Csv(PyBackedBytes),
    File(PathBuf),
}

impl Table {
    fn given(&self) -> LaterTable<'_> {
        match self {
            Table::Csv(bytes) => LaterTable::Csv(bytes),
            Table::File(path) => LaterTable::File(path),
        }
    }
}

/// Rows that do not fit (position, row, id, column, reason), and how many values were taken as missing.
type Unread = (Vec<(usize, u64, String, String, String)>, usize);

fn unread(read: LaterRows) -> Unread {
    let reject = |Reject { position, row, id, column, reason }: Reject| (position, row, id, column, reason);
    (read.rejects.into_iter().map(reject).collect(), read.taken_as_missing)
}

/// The ids of the rows that fit.
fn names(read: &LaterRows) -> Vec<String> {
    let of = |rows: &progap::Dataset| (0..rows.nodes()).map(|node| rows.node_ids().name(node)).collect();
    read.rows.as_ref().map_or(vec![], of)
}

impl Model {
    /// Nodes by position, each of which there is; none for all of them.
    fn listed(
        &self,
        py: Python<'_>,
        nodes: Option<&PyReadonlyArray1<'_, i64>>,
    ) -> PyResult<Option<Vec<u32>>> {
        let Some(nodes) = nodes else { return Ok(None) };
        let known = self.nodes().nodes();
        let mut listed = Vec::with_capacity(nodes.as_array().len());
        for &node in nodes.as_array() {
            match usize::try_from(node).ok().filter(|&node| node < known) {
                Some(node) => listed.push(node as u32),
                None => {
                    let message = format!("node {node} is outside 0..{known}; give positions of nodes");
                    return Err(exception(py, "DataError", message));
                }
            }
        }
        Ok(Some(listed))
    }

    fn in_folder(&self, py: Python<'_>) -> PyResult<&Release> {
        self.release().ok_or_else(|| {
            exception(py, "ReleaseError", "this model is in memory only, and no release yet: save it first")
        })
    }
}

fn json(py: Python<'_>, value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| exception(py, "ProGAPError", error))
}
