//! Data sets from arrays, tables and files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use progap_graph::read::columns::{ColumnChoice, ColumnChoices, ColumnKind};
use progap_graph::read::{self, Direction, LoadOptions, table};
use progap_graph::{
    DatasetParts, Error, Features, Graph, NodeIds, Part, Place, Problem, Ratios, Result, Split, UNLABELLED,
    scale, store, transform,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{OrRaise, exception};
use crate::pool::work;

/// A graph with everything known about its nodes; it does not change.
#[pyclass(frozen, module = "progap._progap")]
pub struct Dataset(pub progap::Dataset);

/// Whole numbers in either width.
#[derive(FromPyObject)]
pub enum Whole<'py> {
    Long(PyReadonlyArray1<'py, i64>),
    Short(PyReadonlyArray1<'py, i32>),
}

/// A matrix in either precision.
#[derive(FromPyObject)]
pub enum Matrix<'py> {
    Single(PyReadonlyArray2<'py, f32>),
    Double(PyReadonlyArray2<'py, f64>),
}

/// Sparse rows: where each begins, columns, values, and the number of columns.
type Rows<'py> = (Whole<'py>, Whole<'py>, PyReadonlyArray1<'py, f32>, usize);

/// Features as they come.
#[derive(FromPyObject)]
pub enum Given<'py> {
    Dense(Matrix<'py>),
    Sparse(Rows<'py>),
}

/// What people call their nodes.
#[derive(FromPyObject)]
pub enum Ids<'py> {
    Numbers(PyReadonlyArray1<'py, i64>),
    Texts(Vec<String>),
}

impl Whole<'_> {
    /// The numbers, each of which must be below a limit.
    fn below(&self, limit: u64, key: &str) -> Result<Vec<u32>> {
        match self {
            Whole::Long(array) => below(array.as_array().iter().copied(), limit, key),
            Whole::Short(array) => below(array.as_array().iter().map(|&number| number.into()), limit, key),
        }
    }
}

fn below(numbers: impl ExactSizeIterator<Item = i64>, limit: u64, key: &str) -> Result<Vec<u32>> {
    let mut kept = Vec::with_capacity(numbers.len());
    for (index, number) in numbers.enumerate() {
        match u32::try_from(number) {
            Ok(small) if u64::from(small) < limit => kept.push(small),
            _ => {
                let place = Place::Element { key: key.into(), index: index as u64 };
                return Err(Problem::IndexOutOfRange { index: number.to_string(), limit }.at(place));
            }
        }
    }
    Ok(kept)
}

fn features(given: Option<Given<'_>>, nodes: usize) -> Result<Features> {
    let features = match given {
        None => return Ok(Features::none()),
        Some(Given::Dense(matrix)) => {
            let (shape, values) = match &matrix {
                Matrix::Single(array) => (array.as_array().dim(), array.as_array().iter().copied().collect()),
                Matrix::Double(array) => {
                    (array.as_array().dim(), array.as_array().iter().map(|&v| v as f32).collect::<Vec<f32>>())
                }
            };
            check_rows(shape.0, nodes)?;
            if let Matrix::Double(array) = &matrix {
                check_precision(array.as_array().iter().copied(), &values, shape.1)?;
            }
            if shape.1 == 0 {
                return Ok(Features::none());
            }
            Features::dense(nodes, shape.1, values)
        }
        Some(Given::Sparse((offsets, indices, values, columns))) => {
            let ends = offsets.below(u64::from(u32::MAX) + 1, "x.indptr")?;
            check_rows(ends.len().saturating_sub(1), nodes)?;
            let offsets: Vec<u64> = ends.into_iter().map(u64::from).collect();
            let indices = indices.below(columns as u64, "x.indices")?;
            let values: Vec<f32> = values.as_array().iter().copied().collect();
            Features::sparse(nodes, columns, offsets, indices, Some(values.into()))
        }
    };
    features.map_err(|error| error.at(Place::Key("x".into())))
}

fn check_rows(rows: usize, nodes: usize) -> Result<()> {
    if rows == nodes {
        return Ok(());
    }
    let problem =
        Problem::Length { what: "feature matrix".into(), found: rows as u64, expected: nodes as u64 };
    Err(problem.at(Place::Key("x".into())))
}

/// A finite number that single precision cannot hold is said as it was given.
fn check_precision(given: impl Iterator<Item = f64>, kept: &[f32], columns: usize) -> Result<()> {
    for (at, (given, kept)) in given.zip(kept).enumerate() {
        if given.is_finite() && !kept.is_finite() {
            let (row, column) = (at / columns, at % columns);
            let message = format!("x[{row}, {column}] is {given:e}, which single precision cannot hold");
            return Err(Problem::Invalid(message).into());
        }
    }
    Ok(())
}

fn node_ids(ids: Option<Ids<'_>>, nodes: usize) -> Result<NodeIds> {
    let ids = match ids {
        None => return Ok(NodeIds::Position),
        Some(Ids::Numbers(array)) => NodeIds::from_integers(array.as_array().iter().copied().collect()),
        Some(Ids::Texts(texts)) => NodeIds::from_texts(texts),
    };
    let known = match &ids {
        NodeIds::Position => nodes,
        NodeIds::Integers(ids) => ids.len(),
        NodeIds::Text { offsets, .. } => offsets.len() - 1,
    };
    let mut seen = std::collections::HashMap::with_capacity(known);
    for node in 0..known {
        if let Some(first) = seen.insert(ids.name(node), node) {
            let problem =
                Problem::Invalid(format!("the id {:?} is that of node {first}, too", ids.name(node)));
            return Err(problem.at(Place::Node(node as u64)));
        }
    }
    Ok(ids)
}

fn split(parts: Option<PyReadonlyArray1<'_, u8>>) -> Option<Split> {
    let part = |&code: &u8| match code {
        1 => Part::Train,
        2 => Part::Val,
        3 => Part::Test,
        _ => Part::Unused,
    };
    Some(Split::from_parts(parts?.as_array().iter().map(part)))
}

/// What a caller knows about files, by the names of the keyword arguments of `progap.load`.
fn load_options(given: &Bound<'_, PyDict>) -> PyResult<LoadOptions> {
    let mut options = LoadOptions::default();
    for (name, value) in given {
        match name.extract::<String>()?.as_str() {
            "id" => options.id_column = value.extract()?,
            "label" => options.label_column = value.extract()?,
            "split" => options.split_column = value.extract()?,
            "source" => options.source_column = value.extract()?,
            "target" => options.target_column = value.extract()?,
            "weights" => options.weights = value.extract()?,
            "labels" => options.label_file = value.extract()?,
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

/// Columns whose words are hashed, each to this many features.
fn texts(columns: &mut ColumnChoices, widths: BTreeMap<String, usize>) {
    for (name, width) in widths {
        let column = columns.column(&name);
        (column.kind, column.width) = (Some(ColumnKind::Text), Some(width));
    }
}

#[pymethods]
impl Dataset {
    /// A data set from arrays: edges as senders and receivers, features as a matrix or as sparse rows, labels by number (-1 where
    /// unknown), parts of the split by number (1 train, 2 val, 3 test, 0 none).
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
        weights: Option<PyReadonlyArray1<'_, f32>>,
    ) -> PyResult<Dataset> {
        // Copied while nobody else can change them: what is trained on is what was given here.
        let sources = sources.below(nodes as u64, "edge_index[0]").or_raise(py)?;
        let targets = targets.below(nodes as u64, "edge_index[1]").or_raise(py)?;
        let features = self::features(features, nodes).or_raise(py)?;
        let label = |&label: &i64| u32::try_from(label).unwrap_or(UNLABELLED);
        let labels: Vec<u32> = labels.as_array().iter().map(label).collect();
        let node_ids = node_ids(ids, nodes).or_raise(py)?;
        let split = split(parts);
        let weights: Option<Vec<f32>> = weights.map(|weights| weights.as_array().iter().copied().collect());
        let build = move || {
            let graph = match &weights {
                None => Graph::from_edges(nodes, &sources, &targets)?,
                Some(weights) => Graph::from_weighted_edges(nodes, &sources, &targets, weights)?,
            };
            drop((sources, targets, weights));
            let graph = if symmetrise { transform::symmetrise(graph) } else { graph };
            // As of an archive of the same arrays: dense columns that hold more than 0 and 1 are numbers in a unit of their own.
            let dense = matches!(features, Features::Dense { .. });
            let numbers = if dense && !unscaled { scale::number_columns(&features) } else { vec![] };
            let labels = labels.into();
            progap::Dataset::new(DatasetParts {
                name,
                graph,
                features,
                labels,
                class_names,
                feature_names,
                numbers,
                undeclared: vec![],
                split,
                node_ids,
            })
        };
        work::<_, Error>(py, build).map(Dataset)
    }

    /// A data set from tables in memory, each a file's name and its bytes.
    #[staticmethod]
    fn from_tables(
        py: Python<'_>,
        name: String,
        nodes: (String, Vec<u8>),
        edges: (String, Vec<u8>),
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Dataset> {
        let options = load_options(options)?;
        let read = move || -> Result<progap::Dataset> {
            let dataset =
                table::read_bytes((&nodes.0, &nodes.1), (&edges.0, &edges.1), &options)?.named(name);
            let dataset = if options.unscaled { dataset.unscaled()? } else { dataset };
            directed(dataset, options.direction)
        };
        work(py, read).map(Dataset)
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
                !source.exists() && !progap::looks_like_a_path(&source) && progap_graph::named::is_name(name)
            });
            match (name, edges) {
                (_, Some(edges)) => read::load_pair(&source, &edges, &options),
                (Some(name), None) => progap_graph::named::load(
                    name,
                    &progap_graph::named::data_dir(data_dir.as_deref()),
                    &options,
                ),
                (None, None) => read::load(&source, &options),
            }
        };
        work(py, read).map(Dataset)
    }

    /// The same data with a split of its own.
    fn with_parts(&self, py: Python<'_>, parts: PyReadonlyArray1<'_, u8>) -> PyResult<Dataset> {
        let split = split(Some(parts));
        let parts = DatasetParts { split, ..self.0.clone().into_parts() };
        progap::Dataset::new(parts).or_raise(py).map(Dataset)
    }

    /// The same data with a random split.
    fn with_random_split(&self, py: Python<'_>, val: f64, test: f64, seed: u64) -> PyResult<Dataset> {
        self.0.clone().with_random_split(Ratios { val, test }, seed).or_raise(py).map(Dataset)
    }

    /// Writes the data as a .progap file, which is mapped when it is loaded.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        work(py, || store::write(&self.0, &path))
    }

    /// What looks like a mistake, before anything is spent: (code, weight, text).
    fn check(&self, py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<Vec<(String, bool, String)>> {
        let request = crate::settings::request(settings, false)?;
        let checked = request.settings().or_raise(py)?;
        let found =
            work::<_, progap::Error>(py, || Ok(progap::lint::lint(&self.0, &checked, &request.names())))?;
        let is_warning = |weight| weight == progap::lint::Weight::Warning;
        Ok(found.into_iter().map(|r| (r.code.to_string(), is_warning(r.weight), r.text)).collect())
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn nodes(&self) -> usize {
        self.0.nodes()
    }

    #[getter]
    fn edges(&self) -> usize {
        self.0.graph().edges()
    }

    #[getter]
    fn columns(&self) -> usize {
        self.0.features().columns()
    }

    #[getter]
    fn class_names(&self) -> Vec<String> {
        self.0.class_names().to_vec()
    }

    #[getter]
    fn feature_names(&self) -> Vec<String> {
        self.0.feature_names().to_vec()
    }

    /// Whether every edge has an edge back.
    #[getter]
    fn undirected(&self, py: Python<'_>) -> bool {
        py.detach(|| self.0.graph().is_symmetric())
    }

    #[getter]
    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// The labels by number; -1 where unknown.
    fn labels<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let number = |&label: &u32| if label == UNLABELLED { -1 } else { i64::from(label) };
        self.0.labels().iter().map(number).collect::<Vec<i64>>().into_pyarray(py)
    }

    /// The parts of the split by number (1 train, 2 val, 3 test, 0 none).
    fn parts<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u8>>> {
        let split = self.0.split()?;
        let code = |node| match split.part(node) {
            Part::Train => 1,
            Part::Val => 2,
            Part::Test => 3,
            Part::Unused => 0,
        };
        Some((0..self.0.nodes()).map(code).collect::<Vec<u8>>().into_pyarray(py))
    }

    /// What people call the nodes: numbers as numbers, texts as texts.
    fn ids(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        ids(py, &self.0)
    }

    /// Senders in row 0, receivers in row 1.
    fn edge_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let edges = self.0.graph().edges();
        let mut both = vec![0i64; 2 * edges];
        for (at, (source, target)) in self.0.graph().iter_edges().enumerate() {
            (both[at], both[edges + at]) = (source.into(), target.into());
        }
        both.into_pyarray(py).reshape([2, edges])
    }

    /// The features, as a dense matrix.
    fn features<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (rows, columns) = (self.0.nodes(), self.0.features().columns());
        let read = self.0.without_origins().or_raise(py)?;
        read.features().to_dense(rows).into_pyarray(py).reshape([rows, columns])
    }

    /// A fingerprint of the edges alone: what is private at every level, whatever features and labels go with it.
    fn edges_fingerprint(&self, py: Python<'_>) -> PyResult<String> {
        let bare = || {
            let parts = self.0.clone().into_parts();
            let labels = vec![0; self.0.nodes()].into();
            let features = Features::none();
            let class_names = vec!["none".into()];
            let (feature_names, numbers, split) = (vec![], vec![], None);
            let bare = DatasetParts { labels, features, class_names, feature_names, numbers, split, ..parts };
            Ok::<_, Error>(progap::Dataset::new(bare)?.content_fingerprint())
        };
        work(py, bare)
    }

    /// A fingerprint of the data, whatever its split: by it the budget of these data is known.
    fn fingerprint(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.content_fingerprint())
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

/// What people call the nodes of a data set: numbers as numbers, texts as texts.
pub fn ids(py: Python<'_>, dataset: &progap::Dataset) -> PyResult<Py<PyAny>> {
    let nodes = dataset.nodes();
    Ok(match dataset.node_ids() {
        NodeIds::Position => (0..nodes as i64).collect::<Vec<i64>>().into_pyarray(py).into_any().unbind(),
        NodeIds::Integers(ids) => ids.to_vec().into_pyarray(py).into_any().unbind(),
        texts @ NodeIds::Text { .. } => {
            let names: Vec<String> = (0..nodes).map(|node| texts.name(node)).collect();
            names.into_pyobject(py)?.into_any().unbind()
        }
    })
}
