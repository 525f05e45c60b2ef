//! Data sets from arrays, tables and files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use progap_formats::read::columns::{ColumnChoice, ColumnChoices, ColumnKind};
use progap_formats::read::encoding::Encoding;
use progap_formats::read::{self, Direction, LoadOptions, table};
use progap_graph::{
    DatasetParts, EdgeWeights, Error, Features, Graph, NodeIds, Part, Problem, Ratios, Result, UNLABELLED,
    scale, store, transform,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;

use crate::arrays::{self, Given, Ids, Whole, split};
use crate::errors::{Keywords, OrRaise, exception};
use crate::lent::Lenders;
use crate::pool::work;

/// A graph with everything known about its nodes; it does not change.
#[pyclass(frozen, module = "progap._progap")]
pub struct Dataset {
    data: progap::Dataset,
    lenders: Lenders,
    /// Whose data these are, once it was asked for: it counts fits, whatever becomes of features that others hold.
    people: OnceLock<progap::ledger::Identity>,
}

impl Dataset {
    /// Its own data, and those that others hold of it, as they were.
    pub fn data(&self, py: Python<'_>) -> PyResult<&progap::Dataset> {
        self.lenders.check(py).map(|()| &self.data)
    }

    /// The same where no values of features are read.
    pub fn outline(&self) -> &progap::Dataset {
        &self.data
    }

    fn changed(&self, data: progap::Dataset) -> Dataset {
        Dataset { data, lenders: self.lenders.clone(), people: OnceLock::new() }
    }
}

/// Data that nobody else holds anything of.
fn own(data: progap::Dataset) -> Dataset {
    Dataset { data, lenders: Lenders::default(), people: OnceLock::new() }
}

/// The options of a caller about files, by the names of the keyword arguments of `progap.load`.
fn load_options(given: &Bound<'_, PyDict>) -> PyResult<LoadOptions> {
    let mut options = LoadOptions::default();
    for (name, value) in given {
        match name.extract::<String>()?.as_str() {
            "id" => options.id_column = value.extract()?,
            "label" => options.label_column = value.extract()?,
            "split" => options.split_column = value.extract()?,
            "source" => options.source_column = value.extract()?,
            "target" => options.target_column = value.extract()?,
            "weights" => {
                let asked: Option<(String, f64)> = value.extract()?;
                let asked = asked.map(|(name, bound)| EdgeWeights::new(name, bound));
                options.weights = asked.transpose().or_raise(given.py())?;
            }
            "labels" => options.label_file = value.extract()?,
            "header" => options.header = value.extract()?,
            "encoding" => options.encoding = value.extract::<Option<String>>()?.map(encoding).transpose()?,
            "categorical" => options.categorical = value.extract()?,
            "drop" => options.columns.drop = value.extract()?,
            "keep" => options.columns.keep = value.extract()?,
            "text" => texts(&mut options.columns, value.extract()?),
            "max_categories" => options.columns.max_categories = value.extract()?,
            "unknown" => options.columns.unknown = value.extract()?,
            "columns" => {
                let text: String = value.extract()?;
                let said: BTreeMap<String, ColumnChoice> = serde_json::from_str(&text).map_err(|e| {
                    exception(
                        given.py(),
                        "SettingsError",
                        format!("columns: {e}; see docs/data.md for what can be said"),
                    )
                })?;
                options.columns.columns.extend(said);
            }
            "unscaled" => options.unscaled = value.extract()?,
            "seed" => options.seed = value.extract()?,
            "mask" => options.npz.mask = value.extract()?,
            "symmetrise" if value.extract()? => options.direction = Direction::Symmetrise,
            "undirected" if value.extract()? => options.direction = Direction::Undirected,
            _ => {}
        }
    }
    Ok(options)
}

fn encoding(name: String) -> PyResult<Encoding> {
    let unknown = || PyValueError::new_err(format!("encoding is utf-8, latin-1 or utf-16, not {name:?}"));
    Encoding::from_name(&name).ok_or_else(unknown)
}

/// Columns whose words are hashed, each to this many features.
fn texts(columns: &mut ColumnChoices, widths: BTreeMap<String, usize>) {
    for (name, width) in widths {
        let column = columns.column(&name);
        (column.kind, column.width) = (Some(ColumnKind::Text), Some(width));
    }
}

#[pymethods]
impl Dataset {
    /// A data set from arrays: edges as senders and receivers, features as a matrix or as sparse rows, labels by number
    /// (-1 where unknown), parts of the split by number (1 train, 2 val, 3 test, 0 none).
    #[staticmethod]
    #[pyo3(signature = (name, nodes, sources, targets, features, labels, class_names, feature_names, ids, parts, symmetrise, unscaled, weights))]
    #[allow(clippy::too_many_arguments, reason = "called from one place, by keyword")]
    fn from_arrays(
        py: Python<'_>,
        name: String,
        nodes: usize,
        sources: Whole<'_>,
        targets: Whole<'_>,
        features: Option<Given<'_>>,
        labels: PyReadonlyArray1<'_, i64>,
        class_names: Vec<String>,
        feature_names: Vec<String>,
        ids: Option<Ids<'_>>,
        parts: Option<PyReadonlyArray1<'_, u8>>,
        symmetrise: bool,
        unscaled: bool,
        weights: Option<(PyReadonlyArray1<'_, f64>, f64)>,
    ) -> PyResult<Dataset> {
        // Copied while nobody else can change them, or lent if nobody ever can: what is trained on is what was given
        // here.
        let mut lenders = Lenders::default();
        let sources = sources.below(nodes as u64, "edge_index[0]").or_raise(py)?;
        let targets = targets.below(nodes as u64, "edge_index[1]").or_raise(py)?;
        let dense = arrays::features(py, features, nodes, &mut lenders)?;
        let label = |&label: &i64| u32::try_from(label).unwrap_or(UNLABELLED);
        let labels: Vec<u32> = labels.as_array().iter().map(label).collect();
        let node_ids = arrays::node_ids(ids, nodes).or_raise(py)?;
        let split = split(parts);
        let weights = weights.map(|(values, bound)| -> Result<(EdgeWeights, Vec<f32>)> {
            let asked = EdgeWeights::new("edge_weight", bound)?;
            let values = values.as_array().iter().map(|&value| asked.of(value)).collect();
            Ok((asked, values))
        });
        let weights = weights.transpose().or_raise(py)?;
        let build = move || {
            let graph = match &weights {
                None => Graph::from_edges(nodes, &sources, &targets)?,
                Some((asked, weights)) => asked.graph(nodes, &sources, &targets, weights)?,
            };
            drop((sources, targets, weights));
            let graph = if symmetrise { transform::symmetrise(graph) } else { graph };
            // As of an archive of the same arrays: dense columns that hold more than 0 and 1 are numbers in a unit of
            // their own, and NaN is a value that is missing.
            let feature_names = dense.names(feature_names);
            let undeclared = dense.gaps_read_off(&feature_names);
            let numbers = match &dense.features {
                features @ Features::Dense { .. } if !unscaled => {
                    dense.with_indicators(scale::number_columns(features))
                }
                _ => vec![],
            };
            let (features, labels) = (dense.features, labels.into());
            progap::Dataset::new(DatasetParts {
                name,
                graph,
                features,
                labels,
                class_names,
                feature_names,
                numbers,
                undeclared,
                relation: None,
                split,
                node_ids,
            })
        };
        work::<_, Error>(py, build).map(|data| Dataset { data, lenders, people: OnceLock::new() })
    }

    /// A data set from tables in memory, each as CSV.
    #[staticmethod]
    fn from_tables(
        py: Python<'_>,
        name: String,
        nodes: PyBackedBytes,
        edges: PyBackedBytes,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Dataset> {
        let options = load_options(options)?;
        let read = move || -> Result<progap::Dataset> {
            let dataset = table::read_frames(&nodes, &edges, &options)?.named(name);
            let dataset = if options.unscaled { dataset.unscaled()? } else { dataset };
            directed(dataset, options.direction)
        };
        work(py, read).map(own)
    }

    /// A data set from files, or by name; without a split where the files have none.
    #[staticmethod]
    fn load(
        py: Python<'_>,
        source: PathBuf,
        edges: Option<PathBuf>,
        data_dir: Option<PathBuf>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Dataset> {
        let options = load_options(options)?;
        let read = move || -> Result<progap::Dataset> {
            let name = source.to_str().filter(|name| {
                !source.exists()
                    && !progap::looks_like_a_path(&source)
                    && progap_formats::named::is_name(name)
            });
            match (name, edges) {
                (_, Some(edges)) => read::load_pair(&source, &edges, &options),
                (Some(name), None) => progap_formats::named::load(
                    name,
                    &progap_formats::named::data_dir(data_dir.as_deref()),
                    &options,
                ),
                (None, None) => read::load(&source, &options),
            }
        };
        work(py, read).map(own)
    }

    /// A data set that [`Dataset::save`] wrote, with its nodes as they stood.
    #[staticmethod]
    fn saved(py: Python<'_>, path: PathBuf) -> PyResult<Dataset> {
        work(py, || store::read(&path)).map(own)
    }

    /// The same data with a split of its own.
    fn with_parts(&self, py: Python<'_>, parts: PyReadonlyArray1<'_, u8>) -> PyResult<Dataset> {
        let split = split(Some(parts));
        let parts = DatasetParts { split, ..self.data(py)?.clone().into_parts() };
        progap::Dataset::new(parts).or_raise(py).map(|data| self.changed(data))
    }

    /// The same data with a name for what an edge stands for.
    fn with_relation(&self, py: Python<'_>, name: &str) -> PyResult<Dataset> {
        self.data(py)?.clone().with_relation(name).or_raise(py).map(|data| self.changed(data))
    }

    /// The same data with a random split.
    fn with_random_split(&self, py: Python<'_>, val: f64, test: f64, seed: u64) -> PyResult<Dataset> {
        let split = self.data(py)?.clone().with_random_split(Ratios { val, test }, seed);
        split.or_raise(py).map(|data| self.changed(data))
    }

    /// Writes the data as a .progap file, which is mapped when it is loaded.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let data = self.data(py)?;
        work(py, || store::write(data, &path))
    }

    /// What looks like a mistake, before anything is spent: (code, weight, text).
    fn check(&self, py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<Vec<(String, bool, String)>> {
        let request = crate::settings::request(settings, false)?;
        let draft = request.settings().or_raise(py)?;
        let data = self.data(py)?;
        let checked = draft.resolve(&progap::settings::PublicFacts::of(data, &draft)).or_raise(py)?;
        let found = work::<_, progap::Error>(py, || {
            let found = progap_audit::lint::lint(data, &checked, &request.names());
            Ok([found, progap_audit::lint::closely(data, &checked)].concat())
        })?;
        let is_warning = |weight| weight == progap_audit::lint::Weight::Warning;
        Ok(found.into_iter().map(|r| (r.code.to_string(), is_warning(r.weight), r.said(&Keywords))).collect())
    }

    #[getter]
    fn name(&self) -> &str {
        self.data.name()
    }

    #[getter]
    fn nodes(&self) -> usize {
        self.data.nodes()
    }

    #[getter]
    fn edges(&self) -> usize {
        self.data.graph().edges()
    }

    #[getter]
    fn columns(&self) -> usize {
        self.data.features().columns()
    }

    #[getter]
    fn class_names(&self) -> Vec<String> {
        self.data.class_names().to_vec()
    }

    #[getter]
    fn feature_names(&self) -> Vec<String> {
        self.data.feature_names().to_vec()
    }

    /// Whether every edge has an edge back.
    #[getter]
    fn undirected(&self, py: Python<'_>) -> bool {
        py.detach(|| self.data.graph().is_symmetric())
    }

    #[getter]
    fn bytes(&self) -> usize {
        self.data.bytes()
    }

    /// The labels by number; -1 where unknown.
    fn labels<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let number = |&label: &u32| if label == UNLABELLED { -1 } else { i64::from(label) };
        self.data.labels().iter().map(number).collect::<Vec<i64>>().into_pyarray(py)
    }

    /// The parts of the split by number (1 train, 2 val, 3 test, 0 none).
    fn parts<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u8>>> {
        let split = self.data.split()?;
        let code = |node| match split.part(node) {
            Part::Train => 1,
            Part::Val => 2,
            Part::Test => 3,
            Part::Unused => 0,
        };
        Some((0..self.data.nodes()).map(code).collect::<Vec<u8>>().into_pyarray(py))
    }

    /// What people call the nodes: numbers as numbers, texts as texts.
    fn ids(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        ids(py, self.data.node_ids(), self.data.nodes())
    }

    /// Senders in row 0, receivers in row 1.
    fn edge_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let edges = self.data.graph().edges();
        let mut both = vec![0i64; 2 * edges];
        for (at, (source, target)) in self.data.graph().iter_edges().enumerate() {
            (both[at], both[edges + at]) = (source.into(), target.into());
        }
        both.into_pyarray(py).reshape([2, edges])
    }

    /// The features, as a dense matrix.
    fn features<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let data = self.data(py)?;
        let (rows, columns) = (data.nodes(), data.features().columns());
        let read = data.without_origins().or_raise(py)?;
        read.features().to_dense(rows).into_pyarray(py).reshape([rows, columns])
    }

    /// Whose data these are, for comparing them with others in this process.
    fn identity(&self, py: Python<'_>) -> PyResult<Identity> {
        if let Some(people) = self.people.get() {
            return Ok(Identity(people.clone()));
        }
        let data = self.data(py)?;
        // It never leaves the process, so it needs no secret.
        let people = work(py, || Ok::<_, Error>(progap::ledger::Identity::new(&[0; 32], data)))?;
        Ok(Identity(self.people.get_or_init(|| people).clone()))
    }

    /// A fingerprint of the data, whatever its split.
    fn fingerprint(&self, py: Python<'_>) -> PyResult<String> {
        let data = self.data(py)?;
        Ok(py.detach(|| data.content_fingerprint()))
    }

    /// Refuses to go on where features that others hold can be written to again.
    fn ensure_unchanged(&self, py: Python<'_>) -> PyResult<()> {
        self.lenders.check(py)
    }

    /// How many arrays are read where they lie.
    #[getter]
    fn lent(&self) -> usize {
        self.lenders.count()
    }
}

/// Takes the caller's word on directions.
fn directed(dataset: progap::Dataset, direction: Direction) -> Result<progap::Dataset> {
    let mut parts = dataset.into_parts();
    parts.graph = match direction {
        Direction::AsStored => parts.graph,
        Direction::Symmetrise => transform::symmetrise(parts.graph),
        Direction::Undirected => {
            if let Some((from, to)) = parts.graph.first_one_way_edge() {
                return Err(Problem::OneWayEdge { from: from.into(), to: to.into() }.into());
            }
            parts.graph
        }
    };
    progap::Dataset::new(parts)
}

/// The ids of this many nodes: numbers as numbers, texts as texts.
pub fn ids(py: Python<'_>, ids: &NodeIds, nodes: usize) -> PyResult<Py<PyAny>> {
    Ok(match ids {
        NodeIds::Position => (0..nodes as i64).collect::<Vec<i64>>().into_pyarray(py).into_any().unbind(),
        NodeIds::Integers(ids) => ids.to_vec().into_pyarray(py).into_any().unbind(),
        texts @ NodeIds::Text { .. } => {
            let names: Vec<String> = (0..nodes).map(|node| texts.name(node)).collect();
            names.into_pyobject(py)?.into_any().unbind()
        }
    })
}

/// Whose data some are: sketches of ids, edges and rows, whatever their order and labels.
#[pyclass(frozen, module = "progap")]
pub struct Identity(progap::ledger::Identity);

#[pymethods]
impl Identity {
    /// Whether both are about the same people.
    fn matches(&self, other: &Identity) -> bool {
        self.0.matches(&other.0)
    }
}
