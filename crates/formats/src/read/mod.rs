//! Readers: one loader that recognises what it is given.

pub mod columns;
pub mod edge_list;
pub mod facebook100;
pub mod graphml;
mod labels;
mod mat;
mod missing;
pub mod node_link;
pub(crate) mod npy;
pub mod npz;
pub mod ogbn;
pub mod reddit;
pub mod table;

pub use npy::header_bytes;
pub use progap_graph::encoding;

use std::io::Read;
use std::path::{Path, PathBuf};

use self::columns::{ColumnChoices, ColumnReport};
use self::encoding::Encoding;
use self::npz::NpzOptions;
use crate::{Dataset, EdgeWeights, InFile, Problem, Result, file, order, store, transform};

/// Facts that the user knows and the files do not say.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The name of the id column of a node table; `id` if not given.
    pub id_column: Option<String>,
    /// The name of the label column of a node table; `label` if not given.
    pub label_column: Option<String>,
    /// The name of the split column of a node table; `split` (which may be absent) if not given.
    pub split_column: Option<String>,
    /// The name of the source column of an edge table; `source` if not given.
    pub source_column: Option<String>,
    /// The name of the target column of an edge table; `target` if not given.
    pub target_column: Option<String>,
    /// Where the weights of edges stand: a column of an edge table, an attribute of edges, an array; the usual name
    /// `weight` stands for all names that are known. Without it every edge is as good as any other.
    pub weights: Option<EdgeWeights>,
    /// Numeric columns of a node table to treat as categorical.
    pub categorical: Vec<String>,
    /// Further choices about the columns of a node table.
    pub columns: ColumnChoices,
    /// Whether a node table is of nodes whose class is to be found: its labels and its split are not looked at.
    pub without_labels: bool,
    /// Whether numbers are used as they are, in whatever unit they have.
    pub unscaled: bool,
    /// Choices about an archive of arrays.
    pub npz: NpzOptions,
    /// The list of labels that goes with an edge list.
    pub label_file: Option<PathBuf>,
    /// Whether the first line of a list or table of edges, and of a list of labels, is a header; where nothing is said,
    /// it tells itself, or is asked about.
    pub header: Option<bool>,
    /// The encoding of files of text; UTF-8 if not given.
    pub encoding: Option<Encoding>,
    /// The direction of edges.
    pub direction: Direction,
    /// The number of nodes that a class needs to be kept, where data sets are prepared by a published recipe;
    /// the recipe's own if not given.
    pub min_class_count: Option<usize>,
    /// The seed of the split of data sets that are split while they are prepared.
    pub seed: u64,
}

/// The direction of edges, as the user declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Edges are as the files have them.
    #[default]
    AsStored,
    /// The graph is undirected: the files list every edge in both directions, or every edge once. Anything in
    /// between contradicts the claim and is an error.
    Undirected,
    /// Every edge gets its edge back where it is missing.
    Symmetrise,
}

impl LoadOptions {
    /// The choices about an archive of arrays, weights included.
    fn of_arrays(&self) -> NpzOptions {
        NpzOptions {
            weights: self.weights.clone(),
            unknown: self.columns.unknown.clone(),
            ..self.npz.clone()
        }
    }

    /// Refuses weights that were asked for and are not there, or were divided by another bound.
    pub(crate) fn expect_weights(&self, dataset: &Dataset) -> Result<()> {
        let Some(weights) = &self.weights else { return Ok(()) };
        let problem = match dataset.graph().weight_bound().filter(|&bound| bound != weights.bound()) {
            _ if dataset.graph().weights().is_none() => {
                "weights of edges are asked for, and this data has none".into()
            }
            Some(bound) => {
                format!("the weights of this data were divided by {bound} already: give that maximum")
            }
            None => return Ok(()),
        };
        Err(Problem::Invalid(problem).into())
    }

    /// Refuses values of labels where the data says itself which labels are known.
    pub(crate) fn expect_own_labels(&self) -> Result<()> {
        match self.columns.unknown {
            None => Ok(()),
            Some(_) => {
                let message =
                    "labels that are not known are listed, and this data says itself which they are"
                        .to_string();
                Err(Problem::Invalid(message).into())
            }
        }
    }

    /// Refuses the names of columns where there is no table that has them; `label` says whether the label is
    /// chosen by name all the same.
    pub(crate) fn expect_no_columns(&self, label: bool) -> Result<()> {
        let columns = [
            ("id", &self.id_column),
            ("label", if label { &None } else { &self.label_column }),
            ("split", &self.split_column),
            ("source", &self.source_column),
            ("target", &self.target_column),
            ("categorical", &self.categorical.first().cloned()),
            ("feature", &self.columns.names().next().map(String::from)),
        ];
        match columns.into_iter().find_map(|(kind, name)| Some((kind, name.as_ref()?))) {
            None => Ok(()),
            Some((kind, name)) => {
                let message =
                    format!("{name:?} is given as {kind} column, but only tables have such columns");
                Err(Problem::Invalid(message).into())
            }
        }
    }
}

/// A data set, and what became of the columns of its node table, where it came from one.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// The data set.
    pub dataset: Dataset,
    /// The columns, in the table's order.
    pub columns: Vec<ColumnReport>,
}

impl From<Dataset> for Described {
    fn from(dataset: Dataset) -> Self {
        Described { dataset, columns: vec![] }
    }
}

/// Loads a data set from a file or folder of any known format.
pub fn load(path: &Path, options: &LoadOptions) -> Result<Dataset> {
    Ok(describe(path, options)?.dataset)
}

/// As [`load`], with what became of each column of a table.
pub fn describe(path: &Path, options: &LoadOptions) -> Result<Described> {
    finish(read(path, options)?, path, options)
}

/// Loads a data set from a node table and an edge table.
pub fn load_pair(nodes: &Path, edges: &Path, options: &LoadOptions) -> Result<Dataset> {
    Ok(describe_pair(nodes, edges, options)?.dataset)
}

/// As [`load_pair`], with what became of each column of the node table.
pub fn describe_pair(nodes: &Path, edges: &Path, options: &LoadOptions) -> Result<Described> {
    finish(table::describe_pair(nodes, edges, options)?, nodes, options)
}

/// Puts nodes into the order of their ids, names the data set after its path where it has no name, and takes the user's
/// word on directions and units.
fn finish(described: Described, path: &Path, options: &LoadOptions) -> Result<Described> {
    let Described { dataset, columns } = described;
    options.expect_weights(&dataset).in_file(path)?;
    let dataset = in_order(dataset).in_file(path)?;
    let named = if dataset.name().is_empty() { dataset.named(name_of(path)) } else { dataset };
    let named = if options.unscaled { named.unscaled()? } else { named };
    Ok(Described { dataset: options.direction.apply(named).in_file(path)?, columns })
}

/// The order in which a file lists nodes may follow edges: that of their ids does not. A new order takes the data into
/// memory.
fn in_order(dataset: Dataset) -> Result<Dataset> {
    let is_mapped = dataset.graph().held_bytes() < dataset.graph().bytes();
    if is_mapped
        && store::is_mapping_bounded()
        && order::of_ids(dataset.node_ids(), dataset.nodes()).is_some()
    {
        let message = "its nodes do not stand in the order of their ids, and to sort them takes all of it into \
            memory: convert it \
                       first, without a bound";
        return Err(Problem::Invalid(message.into()).into());
    }
    transform::in_order_of_ids(dataset)
}

impl Direction {
    /// Takes the user's word.
    pub(crate) fn apply(self, dataset: Dataset) -> Result<Dataset> {
        match self {
            Direction::AsStored => Ok(dataset),
            Direction::Undirected => {
                let mut parts = dataset.into_parts();
                parts.graph = transform::declare_undirected(parts.graph)?;
                Dataset::new(parts)
            }
            Direction::Symmetrise => transform::map_graph(dataset, transform::symmetrise),
        }
    }
}

fn read(path: &Path, options: &LoadOptions) -> Result<Described> {
    let metadata = std::fs::metadata(path).map_err(|e| not_there(e, path))?;
    let is_folder = metadata.is_dir();
    let is_table = !is_folder && table::is_table(path);
    if options.label_file.is_some() && !is_table && (is_folder || !edge_list::is_edge_list(path)) {
        let message =
            "a list of labels goes with an edge list (.txt, .edges, .edgelist, .csv, .tsv)".to_string();
        return Err(Problem::Invalid(message).in_file(path));
    }
    if let (Some(_), Some(what)) = (options.encoding, without_text(path)) {
        return Err(Problem::Invalid(format!("an encoding is given, and {what} is no text")).in_file(path));
    }
    let arrays = has_ending(path, "npz") || is_folder && npz::find_pair(path)?.is_some();
    if options.npz != NpzOptions::default() && !arrays {
        let message = "names of arrays and numbers of splits are for .npz files".to_string();
        return Err(Problem::Invalid(message).in_file(path));
    }
    if is_folder && table::is_table_folder(path) {
        return table::describe_folder(path, options);
    }
    if let Some(dataset) = facebook100::recognise(path, options)? {
        return Ok(dataset.into());
    }
    if !is_folder && has_ending(path, "graphml") {
        return graphml::read(path, options);
    }
    if !is_folder && has_ending(path, "json") {
        return node_link::read(path, options);
    }
    if is_folder && let Some((edges, labels)) = edge_list::find(path)? {
        return edge_list::read(&edges, &labels, options);
    }
    if is_table || !is_folder && edge_list::is_edge_list(path) {
        return match &options.label_file {
            // With more than an id and a label it is a table of nodes.
            Some(labels) if is_table && table::is_table(labels) && table::columns(labels, options)? > 2 => {
                table::describe_pair(labels, path, options)
            }
            Some(labels) => edge_list::read(path, labels, options),
            None if is_table && !table::is_edges(path, options) => Err(Problem::NoEdgeTable.in_file(path)),
            None => Err(Problem::NoLabelFile.in_file(path)),
        };
    }
    options.expect_no_columns(false).in_file(path)?;
    if !arrays {
        options.expect_own_labels().in_file(path)?;
    }
    Ok(if is_folder { read_folder(path, options) } else { read_file(path, options) }?.into())
}

fn read_folder(path: &Path, options: &LoadOptions) -> Result<Dataset> {
    if store::is_parts(path) {
        store::open_parts(path)
    } else if reddit::is_here(path) {
        reddit::read(path)
    } else if ogbn::find(path).is_some() {
        ogbn::read_with_split(path)
    } else if npz::find_pair(path)?.is_some() {
        npz::read_with(path, &options.of_arrays())
    } else {
        Err(Problem::NotRecognised("the folder holds no files that belong together".into()).in_file(path))
    }
}

fn read_file(path: &Path, options: &LoadOptions) -> Result<Dataset> {
    if has_ending(path, "npz") {
        return npz::read_with(path, &options.of_arrays());
    }
    if has_ending(path, store::EXTENSION) || starts_as_ours(path)? {
        return store::open(path);
    }
    if ["pt", "pth"].iter().any(|ending| has_ending(path, ending)) {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let message = format!(
            "a PyTorch file can run code when it is opened, so only Python opens it: import progap, torch; \
             progap.from_pyg(torch.load({file:?}, weights_only=False)).save(\"graph.progap\")"
        );
        return Err(Problem::Unsupported(message).in_file(path));
    }
    let message = "neither its ending nor its first bytes are known";
    Err(Problem::NotRecognised(message.into()).in_file(path))
}

fn starts_as_ours(path: &Path) -> Result<bool> {
    let mut start = Vec::new();
    file::open(path)?.take(16).read_to_end(&mut start).in_file(path)?;
    Ok(store::is_ours(&start))
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending))
}

/// A path at which nothing lies.
fn not_there(error: std::io::Error, path: &Path) -> crate::Error {
    let says_folder = path.to_string_lossy().ends_with(std::path::MAIN_SEPARATOR);
    match error.kind() {
        std::io::ErrorKind::NotFound if says_folder => Problem::NotThere("folder").in_file(path),
        _ => crate::Error::from(error).in_file(path),
    }
}

/// The kind of a file that is no text, if its ending says so.
fn without_text(path: &Path) -> Option<&'static str> {
    let kinds = [
        ("npz", "an .npz"),
        ("mat", "a .mat"),
        ("parquet", "a Parquet file"),
        (store::EXTENSION, "a .progap file"),
    ];
    kinds.into_iter().find_map(|(ending, kind)| has_ending(path, ending).then_some(kind))
}

/// The name that a path suggests: the file's name without its endings; that of its folder, where the file is called as
/// files of any graph are.
pub fn name_of(path: &Path) -> String {
    const OF_ANY: [&str; 5] = ["nodes", "target", "edges", "labels", "features"];
    // A folder may be given without its name, as `.` is.
    let whole = if path.file_name().is_none() {
        std::fs::canonicalize(path).unwrap_or_default()
    } else {
        path.into()
    };
    let name = whole.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(&name).to_string();
    let of_any = path.extension().is_some() && OF_ANY.iter().any(|any| stem.eq_ignore_ascii_case(any));
    let folder =
        || Some(std::path::absolute(path).ok()?.parent()?.file_name()?.to_string_lossy().into_owned());
    if of_any { folder().unwrap_or(stem) } else { stem }
}

/// The attribute of edges that holds their weights, of which a function says whether there is one: the one that is
/// asked for, else one that looks like it.
fn edge_attribute(options: &LoadOptions, is_there: impl Fn(&str) -> bool) -> Option<&str> {
    let known = ["weight", "weights", "edge_weight"].into_iter();
    options.weights.as_ref().map(EdgeWeights::name).into_iter().chain(known).find(|name| is_there(name))
}
