//! A release: everything that predictions and a privacy officer need, and no graph.
//!
//! | file | what it is |
//! |---|---|
//! | `model.safetensors` | the parameters of the last stage and of models it reads, with their shapes and what each reads |
//! | `aggregates/N.npy` | the kept noisy aggregates, as NumPy writes them, so that they can be mapped |
//! | `nodes.progap` | ids, class names, split; features and labels where they are public; no edges |
//! | `schema.json` | how a table of further rows becomes features: columns, categories, scale, orders of dates; no row |
//! | `private/rows.progap` | node level only: each node's own features, for predictions about that node |
//! | `private/cost.json` | time and memory of training, which depend on the data; can be taken out |
//! | `private/aggregates-1.npy` | method dp-gnn only: what predictions read of a node's senders, **not protected** |
//! | `private/manifest.json` | the checksums of the files in `private/`: outside, a checksum would leak the private file |
//! | `privacy.json` | the privacy statement |
//! | `metrics.json` | accuracies and the history of training; at node level `private/metrics.json`, as labels are private there |
//! | `config.toml` | a record of the settings, to verify the guarantee and to run it again; predictions do without |
//! | `manifest.json` | the checksum of every other public file; written last |
//! | `report.html`, `export.json` | only in what [`export()`] makes of a release |
//! | `manifest.sig`, `signer.pub` | only in a signed export: the signature of the manifest, and the public key it is checked with |
//!
//! Everything outside `private/` is a function of public inputs and noisy answers alone
//! ([proof](progap_privacy::proofs::nothing_else_leaves)). A folder that still holds the files of a run is not a
//! release, and is not opened as one.

mod config;
mod export;
mod guarantee;
mod importance;
mod manifest;
mod metrics;
#[cfg(feature = "ledger")]
mod new_nodes;
pub mod order;
mod predict_new;
mod selection;
mod shown;
mod statement;
mod used;
mod verify;
pub mod words;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use progap_formats::read::table::Schema;
use progap_graph::{Buffer, Dataset, DatasetParts, Features, Graph, Part, Scaled, UNLABELLED, store};

pub use config::Config;
#[doc(hidden)]
pub use export::new_folder;
pub use export::{
    Date, Export, Exported, PAGE, PageMaker, SIGNATURE, SIGNER, Signs, export, missing_for_predictions,
};
pub use guarantee::Guarantee;
pub use importance::Importance;
pub use metrics::Metrics;
#[cfg(feature = "ledger")]
pub use new_nodes::{NewNodes, NewPredictions, NewStatement, new_statement_of, verify_new};
pub use predict_new::RowPredictions;
pub use selection::SelectionRule;
#[doc(hidden)]
pub use statement::COST_FILE;
pub(crate) use statement::nodes_are_public;
pub use statement::{Budget, Mechanism, Statement};
pub use used::Used;
pub use verify::{Finding, Verdict, verify, verify_guarantee};

use crate::assessment::{Assessment, Compared, most_probable};
use crate::cost::Cost;
use crate::error::InFile;
use crate::files;
use crate::folder::{Folder, SMALL};
use crate::method::Fitted;
use crate::order::{Arranged, NUMBERS, OwnersOrder};
use crate::plan::{Plan, PublicFacts, noise_values};
use crate::predictor::Predictor;
use crate::settings::{Level, Settings, Size};
use crate::vault::{Aggregates, Rows};
use crate::{Error, Result, memory};
use manifest::{Bounds, Contents, Listed, Manifest};
use metrics::metrics_file;

/// The list of the public files.
pub const MANIFEST: &str = "manifest.json";
const OWN_MANIFEST: &str = "private/manifest.json";
/// The prefix of the names of files that are for the data owner alone.
const PRIVATE: &str = "private/";
const NODES: &str = "nodes.progap";
const OWN_ROWS: &str = "private/rows.progap";
/// The privacy statement.
pub const STATEMENT: &str = "privacy.json";
const METRICS: &str = "metrics.json";
const OWN_METRICS: &str = "private/metrics.json";
const CONFIG: &str = "config.toml";
/// How a table of further rows becomes features.
pub const SCHEMA: &str = "schema.json";

/// A release that was opened.
#[derive(Debug)]
pub struct Release {
    /// Where it lies.
    pub folder: PathBuf,
    /// The privacy statement.
    pub statement: Statement,
    /// Accuracies.
    pub metrics: Metrics,
    /// When it was exported, and how; nothing for a release as training leaves it.
    pub exported: Option<Exported>,
    config: Option<Config>,
    contents: Contents,
    schema: Option<Schema>,
    nodes: Dataset,
    predictor: Predictor,
    listed: Listed,
    bounds: Bounds,
    answers: OnceLock<Aggregates>,
}

/// Predictions for some nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    /// The nodes, by position.
    pub nodes: Vec<u32>,
    /// The most probable class of each.
    pub classes: Vec<u32>,
    /// The probability of each class, row after row.
    pub probabilities: Vec<f32>,
}

/// The content of a release, besides the aggregates, which lie in its folder already.
pub(crate) struct Content<'a> {
    pub config: Config,
    /// The data set, prepared; its edges are not written.
    pub dataset: &'a Scaled,
    pub statement: &'a Statement,
    pub metrics: &'a Metrics,
    pub predictor: &'a Predictor,
}

/// What a release tells of the columns of its nodes.
fn schema_of(nodes: &Dataset, level: Level) -> Result<Schema> {
    let schema = if level == Level::Node { Schema::of_private_rows } else { Schema::of };
    Ok(schema(nodes)?)
}

pub(crate) fn write(folder: &Path, content: &Content<'_>) -> Result<()> {
    let Content { config, dataset, statement, metrics, predictor } = content;
    let contents = Contents::of(&config.settings);
    let node_level = contents.level == Level::Node;
    let no_edges = Graph::from_rows(vec![0u64; dataset.rest().nodes() + 1], Vec::<u32>::new())?;
    let rows = dataset.beside(|parts| {
        parts.graph = no_edges;
        parts.undeclared = vec![];
        if node_level {
            parts.labels = no_classes(dataset.rest());
        }
    })?;
    if node_level {
        files::make_folder(&folder.join("private"))?;
        store::write_scaled(&rows, &folder.join(OWN_ROWS))?;
        let mut parts = rows.rest().clone().into_parts();
        parts.features = Features::none();
        parts.feature_names = vec![];
        parts.numbers = vec![];
        store::write(&Dataset::new(parts)?, &folder.join(NODES))?;
    } else {
        store::write_scaled(&rows, &folder.join(NODES))?;
    }
    predictor.write(folder)?;
    files::write_json(&folder.join(SCHEMA), &schema_of(dataset.rest(), contents.level)?)?;
    let text = toml::to_string(config).in_file(&folder.join(CONFIG))?;
    files::write(&folder.join(CONFIG), text.as_bytes())?;
    files::write_json(&folder.join(STATEMENT), statement)?;
    files::write_json(&folder.join(metrics_file(contents.level)), metrics)?;
    // A checksum is a function of what it is of: those of private files stay with them.
    let (private, public) = (contents.names(true), contents.names(false));
    let place = Folder::open(folder, "the folder of the run is gone")?;
    if !private.is_empty() {
        files::write_json(&folder.join(OWN_MANIFEST), &Manifest::of(&place, private)?)?;
    }
    files::write_json(&folder.join(MANIFEST), &Manifest::of(&place, public)?)
}

/// Labels that tell no class, but which nodes have a label: that is public, as the split is.
fn no_classes(dataset: &Dataset) -> Buffer<u32> {
    let label = |node| dataset.label(node).map_or(UNLABELLED, |_| 0);
    (0..dataset.nodes()).map(label).collect::<Vec<u32>>().into()
}

/// A data set of a graph and nothing else.
pub(crate) fn bare(graph: Graph) -> Result<Dataset> {
    let labels = vec![0; graph.nodes()];
    Ok(Dataset::new(DatasetParts::of("graph", graph, Features::none(), labels, vec!["none".into()]))?)
}

impl Release {
    /// Opens a release; files that are missing, changed or of another release are errors.
    ///
    /// The statement and the model say what it is: no settings are needed. Where settings are there they must be those
    /// of the rest.
    pub fn open(folder: &Path) -> Result<Release> {
        Release::open_parts(folder, true)
    }

    /// As [`Release::open`], without a look into the folder `private/`: as if its owner had kept back all that is in
    /// it.
    ///
    /// # Errors
    /// As [`Release::open`].
    pub fn open_public(folder: &Path) -> Result<Release> {
        Release::open_parts(folder, false)
    }

    fn open_parts(folder: &Path, opens_private: bool) -> Result<Release> {
        let listed = Listed::open(folder, opens_private)?;
        let file = folder.join(STATEMENT);
        let statement: Statement = files::versioned(&listed.read(STATEMENT, SMALL)?, "the statement", &file)?;
        let contents = listed.contents(statement.level());
        listed.check(&contents)?;
        let config = Config::read(&listed, &statement)?;
        let bounds = Bounds::new(&statement, 0);
        let mut parts = listed.dataset(NODES, bounds.of(NODES))?.into_parts();
        if parts.graph.nodes() != statement.nodes {
            let problem = format!(
                "the statement is of {} nodes, and {NODES} has {}: they are not of one release",
                statement.nodes,
                parts.graph.nodes()
            );
            return Err(Error::file(&file, problem));
        }
        if contents.level == Level::Node && !listed.is_kept_back(OWN_ROWS)? {
            let own = listed.dataset(OWN_ROWS, bounds.of(OWN_ROWS))?.into_parts();
            (parts.features, parts.numbers) = (own.features, own.numbers);
            parts.feature_names = own.feature_names;
        }
        let nodes = Dataset::new(parts)?;
        let bounds = Bounds::new(&statement, nodes.classes());
        let sizes = (statement.feature_columns, nodes.classes());
        let read = |name: &str| match listed.is_kept_back(name)? {
            true => Ok(None),
            false => listed.content(name, bounds.of(name)).map(Some),
        };
        let name = |number| contents.aggregate(number);
        let predictor = Predictor::open(folder, &read, &name, sizes, nodes.nodes())?;
        let metrics_file = metrics_file(contents.level);
        let metrics = match read(metrics_file)? {
            None => Metrics::kept_back(),
            Some(bytes) => serde_json::from_slice(&bytes).in_file(&folder.join(metrics_file))?,
        };
        let schema = listed.schema(&bounds, (&nodes, contents.level), statement.feature_columns)?;
        // Also what nothing was read of: aggregates of later stages, the page of an export.
        listed.check_rest(&bounds)?;
        let (folder, exported) = (folder.to_path_buf(), listed.public.export.clone());
        let answers = OnceLock::new();
        Ok(Release {
            folder,
            statement,
            metrics,
            exported,
            config,
            contents,
            schema,
            nodes,
            predictor,
            listed,
            bounds,
            answers,
        })
    }

    /// The SHA-256 of its manifest, which holds those of all public files: by it the release is named.
    pub fn sha256(&self) -> &str {
        &self.listed.sha256
    }

    /// What predictions about its own nodes are made of.
    pub fn used(&self) -> Used {
        self.predictor.used()
    }

    /// The level of protection.
    pub fn level(&self) -> Level {
        self.contents.level
    }

    /// The nodes: ids, class names, split. No edges; features and labels only where they are public.
    pub fn nodes(&self) -> &Dataset {
        &self.nodes
    }

    /// How a table of further rows becomes features.
    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    /// The bytes of one of its files, checked against its manifest.
    ///
    /// # Errors
    /// A file that is missing or changed.
    pub fn file(&self, name: &str) -> Result<Vec<u8>> {
        self.listed.read(name, self.bounds.of(name))
    }

    /// The name of the file of a noisy aggregate, counted from 1.
    pub fn aggregate_file(&self, number: usize) -> String {
        self.contents.aggregate(number)
    }

    /// Time and memory of training, unless they were taken out of the release.
    pub fn cost(&self) -> Result<Option<Cost>> {
        Cost::read(&self.listed.folder)
    }

    /// Whether the nodes' own features are there, which predictions read.
    pub fn has_features(&self) -> bool {
        self.nodes.features().columns() == self.statement.feature_columns
    }

    /// Whether the nodes' labels are there: where they are public, and not left out of an export.
    pub fn has_labels(&self) -> bool {
        self.level() != Level::Node && self.has_features()
    }

    /// Whether what the model reads of the graph is there.
    pub(crate) fn has_aggregates(&self) -> bool {
        self.predictor.aggregates.len() == self.predictor.widths.len()
    }

    /// Whether a data set has the nodes, classes and split of this release. A release holds no fingerprint of private
    /// data, so only what is public can be compared.
    pub fn fits(&self, dataset: &Dataset) -> bool {
        dataset.nodes() == self.nodes.nodes()
            && dataset.class_names() == self.nodes.class_names()
            && dataset.split() == self.nodes.split()
            && dataset.node_ids() == self.nodes.node_ids()
            && dataset.labelled() == self.nodes.labelled()
    }

    /// A data set with its nodes in the order of this release; nothing where it is not the one that the release was
    /// trained on, as far as [`Release::fits`] tells.
    ///
    /// # Errors
    /// New numbers of nodes that cannot be read.
    pub fn aligned<'d>(&self, dataset: &'d Dataset) -> Result<Option<Cow<'d, Dataset>>> {
        if self.fits(dataset) {
            return Ok(Some(Cow::Borrowed(dataset)));
        }
        Ok(self.arranged(dataset)?.map(|arranged| Cow::Owned(arranged.dataset)))
    }

    /// The nodes of this release in the order of the data set that it was trained on; nothing where that is the order
    /// of the release, or where it was trained on other data.
    ///
    /// # Errors
    /// As [`Release::aligned`].
    pub fn in_order_of(&self, dataset: &Dataset) -> Result<Option<OwnersOrder>> {
        if self.fits(dataset) {
            return Ok(None);
        }
        let order = self.arranged(dataset)?.and_then(|arranged| arranged.order);
        order.map(|order| OwnersOrder::new(&self.nodes, &order, dataset.node_ids().clone())).transpose()
    }

    /// A data set arranged as that of this release was, if it then fits.
    fn arranged(&self, dataset: &Dataset) -> Result<Option<Arranged>> {
        let settings = self.settings()?;
        if dataset.nodes() != self.nodes.nodes() || settings.shuffle && self.listed.is_kept_back(NUMBERS)? {
            return Ok(None);
        }
        let arranged = Arranged::again(dataset, settings, &self.folder)?;
        Ok(self.fits(&arranged.dataset).then_some(arranged))
    }

    /// The stage whose model makes the predictions; 0 where it knows the features alone, in methods that have such a
    /// stage.
    pub fn predictor_stage(&self) -> usize {
        self.predictor.stage
    }

    /// Everything in the release that predictions are made of.
    #[doc(hidden)]
    pub fn predictor(&self) -> &Predictor {
        &self.predictor
    }

    /// The public sizes on which the noise depended. Edges decide a default delta alone, which the statement has.
    pub(crate) fn sizes(&self) -> PublicFacts {
        PublicFacts::stated([
            (Size::Edges, 1),
            (Size::TrainNodes, self.nodes.split().map_or(0, |split| split.count(Part::Train))),
            (Size::Nodes, self.nodes.graph().nodes()),
            (Size::Columns, self.statement.feature_columns),
            (Size::Classes, self.nodes.classes()),
        ])
    }

    /// The most values of noise that its training drew from tables.
    ///
    /// # Errors
    /// Settings that contradict the sizes, or are not there.
    pub fn noise_values(&self) -> Result<u64> {
        noise_values(self.settings()?, self.sizes())
    }

    /// Whether the guarantee covers what the model says, and not the model alone.
    pub fn covers_predictions(&self) -> bool {
        self.contents.protected || self.predictor.widths.is_empty()
    }

    /// For whom predictions are, in words; None if they may go to anyone.
    pub fn caution(&self) -> Option<&'static str> {
        self.statement.caution(self.covers_predictions())
    }

    /// Predictions for some nodes. No edge is read, and nothing private but a node's own row; with dp-gnn also
    /// what was kept of its senders' rows, which its statement says.
    pub fn predict_nodes(&self, nodes: &[u32]) -> Result<Predictions> {
        if let Some(missing) = missing_for_predictions(self) {
            return Err(Error::file(&self.folder, missing));
        }
        predictions(&self.predictor, &self.nodes, nodes)
    }

    /// As [`Release::predict_nodes`], in blocks that are handed to `take` one after the other: for more nodes than
    /// memory holds probabilities of.
    ///
    /// # Errors
    /// As [`Release::predict`], and those of `take`.
    pub fn predict_in_blocks<E: From<Error>>(
        &self,
        nodes: &[u32],
        mut take: impl FnMut(Predictions) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        const NODES_AT_ONCE: usize = 1 << 17;
        if let Some(missing) = missing_for_predictions(self) {
            return Err(Error::file(&self.folder, missing).into());
        }
        let rows = Rows::of_nodes(&self.nodes)?;
        nodes.chunks(NODES_AT_ONCE).try_for_each(|nodes| take(predicted(&self.predictor, &rows, nodes)?))
    }

    /// Predictions for every node; see [`Release::predict_nodes`].
    ///
    /// # Errors
    /// A release that predictions cannot be made of, because what they read was taken out.
    pub fn predict(&self) -> Result<Predictions> {
        self.predict_nodes(&every_node(&self.nodes))
    }

    /// Compares what the model says about a part of the nodes with their labels in a data set: the one that it was
    /// trained on or, where labels are public, [`Release::nodes`]. Nothing where the part has no nodes. With private
    /// labels it is **for the data owner alone**.
    ///
    /// # Errors
    /// As [`Release::predict`].
    pub fn assess(&self, labelled: &Dataset, part: Part) -> Result<Option<Assessment>> {
        Ok(self.compare(labelled, part)?.map(|compared| compared.assessment()))
    }

    /// As [`Release::assess`], node by node: curves and intervals are made of it.
    ///
    /// # Errors
    /// As [`Release::predict`].
    pub fn compare(&self, labelled: &Dataset, part: Part) -> Result<Option<Compared>> {
        if let Some(missing) = missing_for_predictions(self) {
            return Err(Error::file(&self.folder, missing));
        }
        compared(&self.predictor, &self.nodes, labelled, part)
    }

    /// The guarantee of the release.
    pub fn guarantee(&self) -> Guarantee {
        self.statement.guarantee()
    }

    /// Recomputes all of it that can be recomputed; see [`verify()`].
    ///
    /// # Errors
    /// A release that cannot even be opened any more.
    pub fn verify(&self) -> Result<Vec<Finding>> {
        verify(&self.folder)
    }
}

/// All nodes, by position.
pub(crate) fn every_node(dataset: &Dataset) -> Vec<u32> {
    (0..dataset.nodes() as u32).collect()
}

/// The predictions of a model for some nodes.
pub(crate) fn predictions(predictor: &Predictor, dataset: &Dataset, nodes: &[u32]) -> Result<Predictions> {
    predicted(predictor, &Rows::of_nodes(dataset)?, nodes)
}

fn predicted(predictor: &Predictor, rows: &Rows, nodes: &[u32]) -> Result<Predictions> {
    let bytes = 4.0 * nodes.len() as f64 * rows.classes() as f64;
    memory::check("the probabilities of all classes", bytes, progap_graph::free_memory())?;
    let mut probabilities = predictor.probabilities(rows, nodes)?;
    // Classes first: rounding could make two of them equal.
    let classes = probabilities.chunks_exact(rows.classes()).map(most_probable).collect();
    predictor.calibrate(&mut probabilities, rows.classes());
    Ok(Predictions { nodes: nodes.to_vec(), classes, probabilities })
}

/// Predictions about a part of the nodes beside their labels; nothing where it has no nodes.
pub(crate) fn compared(
    predictor: &Predictor,
    nodes: &Dataset,
    labelled: &Dataset,
    part: Part,
) -> Result<Option<Compared>> {
    let members = nodes.split().map_or(vec![], |split| split.nodes(part).map(|node| node as u32).collect());
    if members.is_empty() {
        return Ok(None);
    }
    Ok(Some(beside_labels(predictions(predictor, nodes, &members)?, labelled)))
}

/// Predictions beside the labels of a data set in the same order.
pub(crate) fn beside_labels(found: Predictions, labelled: &Dataset) -> Compared {
    let truth: Vec<u32> = found.nodes.iter().map(|&node| labelled.labels()[node as usize]).collect();
    let Predictions { classes: predicted, probabilities, .. } = found;
    Compared { truth, predicted, probabilities, classes: labelled.classes() }
}

/// The statement of a run. What was recorded is what was asked: one that claims less is never made.
pub(crate) fn stated(
    settings: &Settings,
    plan: &Plan,
    fitted: &Fitted,
    dataset: &Dataset,
) -> Result<Statement> {
    let statement = Statement::new(settings, plan, fitted, dataset)?;
    verify::check_guarantee(&statement, settings, plan)?;
    Ok(statement)
}
