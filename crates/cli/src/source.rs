//! Which data set the user means.

use std::path::{Path, PathBuf};

use clap::Args;
use progap_formats::named;
use progap_formats::named::Presence;
use progap_formats::read::encoding::Encoding;
use progap_formats::read::npz::{ArrayNames, NpzOptions};
use progap_formats::read::{self, Described, Direction, LoadOptions};
use progap_graph::{Dataset, Error, Problem, Ratios, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

mod arguments;

pub use self::arguments::parse_encoding;
use self::arguments::{parse_ratios, parse_yes_no};
use crate::columns::Columns;
use crate::output::Inputs;
use crate::transforms::Transforms;
use crate::weights::Weights;

/// The folder for data sets where none is named.
const DEFAULT_FOLDER: &str = "data";

/// The folder that holds downloaded data sets.
#[derive(Args, Clone, Serialize, Deserialize)]
pub struct DataFolder {
    /// Folder of downloaded data sets (for example one with facebook100/Berkeley13.mat)
    #[arg(long, env = "PROGAP_DATA", value_name = "DIR", default_value = DEFAULT_FOLDER, help_heading = "Data")]
    pub data_dir: PathBuf,
}

/// A data set by name or by files, with what its files do not say.
#[derive(Args, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataSource {
    /// A name from `progap data list`, a folder, a file, or a node table (with --edges)
    #[arg(default_value = "demo")]
    dataset: String,
    /// The edge table that goes with a node table
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    edges: Option<PathBuf>,
    /// The file of labels that goes with an edge list: an id and a label in each line
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<PathBuf>,
    /// Whether an edge list, or its file of labels, begins with a header [default: as it looks]
    #[arg(long, value_name = "YES|NO", value_parser = parse_yes_no, help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<bool>,
    /// Encoding of files of text: utf-8, latin-1 or utf-16 [default: utf-8]
    #[arg(long, value_name = "NAME", value_parser = parse_encoding, help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    #[command(flatten)]
    folder: DataFolder,
    /// Column of the node table with the ids [default: id]
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Column of the node table with the labels [default: label]
    ///
    /// For Facebook100 it is the attribute to predict, year unless given.
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// Column of the node table with train, val or test [default: split]
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    split: Option<String>,
    /// Column of the edge table with the senders [default: source]
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Column of the edge table with the receivers [default: target]
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[command(flatten)]
    #[serde(skip_serializing_if = "Weights::is_empty")]
    weights: Weights,
    /// Numeric columns to treat as categorical
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', help_heading = "Data")]
    categorical: Vec<String>,
    #[command(flatten)]
    #[serde(skip_serializing_if = "Columns::is_empty")]
    pub columns: Columns,
    /// Array of an .npz for labels, features, edges or a mask
    ///
    /// WHAT is labels, features, edges, train, val or test.
    #[arg(long, value_name = "WHAT=NAME", help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    array: Vec<String>,
    /// The split of an .npz that has several, from 0 [default: 0]
    #[arg(long, value_name = "N", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    mask: Option<usize>,
    /// The graph is undirected: check that, or add reverse edges
    ///
    /// They are added where each edge is listed once; anything in between is refused. Edge level then protects
    /// undirected edges.
    #[arg(long, conflicts_with = "symmetrise", help_heading = "Data")]
    undirected: bool,
    /// Add the reverse edge wherever it is missing; edge level then protects undirected edges
    #[arg(long, help_heading = "Data")]
    symmetrise: bool,
    /// What an edge is called in statement, report and export, such as payment
    #[arg(long, value_name = "NAME", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    relation: Option<String>,
    /// Seed of split and noise, for experiments: not private
    ///
    /// The split of data that has one stays.
    #[arg(long, help_heading = "Data")]
    #[serde(skip)]
    seed: Option<u64>,
    /// Seed of the random split alone: repeated runs then share one [default: that of --seed]
    #[arg(long, value_name = "SEED", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    split_seed: Option<u64>,
    /// Shares of validation and test nodes in a random split [default: 0.10,0.15]
    #[arg(long, value_name = "VAL,TEST", value_parser = parse_ratios, help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    ratios: Option<Ratios>,
    #[command(flatten)]
    transforms: Transforms,
    /// Whether a run or a release says so: then what changes nothing is no mistake of the user's.
    #[arg(skip)]
    #[serde(skip)]
    of_a_run: bool,
}

/// The place of data as a file states it: see [`DataSource::keep`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "read for what it does not have")]
struct Kept {
    source: Option<DataSource>,
    seed: Option<u64>,
    private: Option<KeptPlace>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "read for what it does not have")]
struct KeptPlace {
    source: DataSource,
}

impl DataSource {
    /// The same with a new random split of these shares.
    pub fn with_new_split(mut self, ratios: Ratios) -> DataSource {
        self.ratios = Some(ratios);
        self.transforms.resplit = true;
        self
    }

    /// Loads the data set, changed as asked, with its own split or none.
    pub fn load(&self) -> Result<Dataset> {
        let dataset =
            self.transforms.apply(self.describe_as_stored()?.dataset, self.ratios(), self.seed())?;
        match self.ratios {
            Some(_) if !self.transforms.resplit => Err(unused_ratios("no split is drawn here")),
            _ => Ok(dataset),
        }
    }

    /// Loads the data set, changed as asked, split at random where it has no split of its own.
    pub fn load_split(&self) -> Result<Dataset> {
        Ok(self.describe_split()?.dataset)
    }

    /// As [`DataSource::load_split`], with what became of each column of a node table.
    pub fn describe_split(&self) -> Result<Described> {
        let Described { dataset, columns } = self.describe_as_stored()?;
        let dataset = self.transforms.apply(dataset, self.ratios(), self.seed())?;
        if self.ratios.is_some() && dataset.split().is_some() && !self.transforms.resplit {
            return Err(unused_ratios("the data set comes with a split of its own"));
        }
        Ok(Described { dataset: dataset.or_random_split(self.ratios(), self.seed())?, columns })
    }

    /// The file, or folder of parts, of which each of several ranks reads what it needs.
    ///
    /// # Errors
    /// Anything but a `.progap` file or a folder of parts that is used as it is.
    #[cfg(feature = "mpi")]
    pub fn part_file(&self) -> std::result::Result<PathBuf, Box<dyn std::error::Error>> {
        let transforms = Transforms::only_split(self.transforms.resplit);
        let plain = DataSource {
            dataset: self.dataset.clone(),
            folder: self.folder.clone(),
            seed: self.seed,
            split_seed: self.split_seed,
            ratios: self.ratios,
            transforms,
            ..DataSource::default()
        };
        let path = Path::new(&self.dataset);
        let ours = path.extension().is_some_and(|ending| ending == progap_graph::store::EXTENSION)
            || progap_graph::store::is_parts(path);
        if !ours || serde_json::to_value(self)? != serde_json::to_value(&plain)? {
            return Err(format!(
                "several ranks read what they need of a .progap file or of a folder of parts on a disk that all of \
                 them see, as it is: \
                 make one with `progap data convert {0} FILE.progap` or `progap data partition {0} FOLDER`, with all \
                 that is to be \
                 changed",
                self.dataset
            )
            .into());
        }
        Ok(path.to_path_buf())
    }

    /// A data set that was read, with the split that is asked for.
    #[cfg(feature = "mpi")]
    pub fn split_of(&self, dataset: Dataset) -> Result<Dataset> {
        if self.transforms.resplit {
            return dataset.with_random_split(self.ratios(), self.seed());
        }
        if self.ratios.is_some() && dataset.split().is_some() {
            return Err(unused_ratios("the data set comes with a split of its own"));
        }
        dataset.or_random_split(self.ratios(), self.seed())
    }

    /// A data set by name or path, nothing else said about it.
    pub fn of(dataset: &str) -> DataSource {
        DataSource { dataset: dataset.into(), ..DataSource::default() }
    }

    /// The same data set, looked for in another folder.
    #[must_use]
    pub fn in_folder(self, folder: &DataFolder) -> DataSource {
        DataSource { folder: folder.clone(), ..self }
    }

    /// Where data sets are looked for by name.
    pub fn data_folder(&self) -> &DataFolder {
        &self.folder
    }

    /// The name that the user gave it.
    pub fn name(&self) -> &str {
        &self.dataset
    }

    /// The name for what is made of it: that of its folder, where its file is called as files of any graph are.
    pub fn short_name(&self) -> String {
        let path = Path::new(&self.dataset);
        let found = read::name_of(path);
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
        file.filter(|file| file.split('.').next() == Some(found.as_str())).unwrap_or(found)
    }

    /// The folder of a release, if that is what the user named.
    pub fn release(&self) -> Option<PathBuf> {
        let folder = Path::new(&self.dataset);
        folder.join("manifest.json").is_file().then(|| folder.to_path_buf())
    }

    /// The flag by which the user says that the graph is undirected, if one does.
    pub fn undirected(&self) -> Option<&'static str> {
        let flags = [("undirected", self.undirected), ("symmetrise", self.symmetrise)];
        flags.into_iter().find_map(|(flag, given)| given.then_some(flag))
    }

    /// The seed that the user gave.
    pub fn given_seed(&self) -> Option<u64> {
        self.seed
    }

    /// The same data set with another seed.
    #[must_use]
    pub fn with_seed(&self, seed: u64) -> DataSource {
        DataSource { seed: Some(seed), ..self.clone() }
    }

    /// Another data set by name or by files, with the same options.
    #[must_use]
    pub fn with_dataset(&self, dataset: &str) -> DataSource {
        DataSource { dataset: dataset.into(), ..self.clone() }
    }

    /// The place of a run's data, as the run keeps it: what a release may tell others, and, under `private`, which
    /// stays out of it, what finds the data again from any folder.
    pub fn keep(&self) -> Value {
        json!({ "source": self.published(), "seed": self.seed, "private": { "source": self.absolute() } })
    }

    /// The source that a run kept, or a release published.
    pub fn kept(kept: &Value) -> serde_json::Result<DataSource> {
        let source = kept.pointer("/private/source").or_else(|| kept.get("source"));
        let source: DataSource = source.map_or_else(|| Ok(DataSource::default()), DataSource::deserialize)?;
        // Options that a run was begun with were accepted then.
        Ok(DataSource { seed: kept["seed"].as_u64(), of_a_run: true, ..source })
    }

    /// As [`DataSource::kept`], from a file of one's own, in which nothing is overlooked.
    pub fn listed(listed: &Value) -> serde_json::Result<DataSource> {
        Kept::deserialize(listed)?;
        Ok(DataSource { of_a_run: false, ..DataSource::kept(listed)? })
    }

    /// Whether anything is said about the data besides its place and the seed.
    pub fn says_more_than_a_place(&self) -> bool {
        let plain = DataSource::of(&self.dataset).in_folder(&self.folder);
        serde_json::to_value(self).ok() != serde_json::to_value(plain).ok()
    }

    /// This source for what a release published about its own. Where the user named nothing that is the release's;
    /// where the user says where the same data lies, the release's with that place. Folders that the release does not
    /// name are the user's.
    #[must_use]
    pub fn or_published(&self, published: DataSource) -> DataSource {
        let folder = match published.folder.data_dir == Path::new(DEFAULT_FOLDER) {
            true => self.folder.clone(),
            false => published.folder.clone(),
        };
        let published = DataSource { folder, ..published };
        let name = |dataset: &str| Path::new(dataset).file_name().map(std::ffi::OsStr::to_os_string);
        if self.dataset == DataSource::default().dataset {
            published
        } else if name(&self.dataset) == name(&published.dataset) {
            let edges = self.edges.clone().or(published.edges);
            let labels = self.labels.clone().or(published.labels);
            DataSource { dataset: self.dataset.clone(), edges, labels, ..published }
        } else {
            self.clone()
        }
    }

    /// The files and folders that it is read from, as far as the user named them.
    pub fn inputs(&self) -> Inputs {
        let named = named::list(&self.folder.data_dir)
            .into_iter()
            .filter(|(entry, _)| entry.name == self.dataset && !Path::new(&self.dataset).exists());
        let files: Vec<PathBuf> = named
            .flat_map(|(_, presence)| match presence {
                Presence::Present(files) | Presence::Partly { present: files, .. } => files,
                _ => vec![],
            })
            .collect();
        let given = [
            Some(Path::new(&self.dataset)),
            self.edges.as_deref(),
            self.labels.as_deref(),
            self.transforms.kept_nodes(),
        ];
        Inputs::of(given.into_iter().flatten().chain(files.iter().map(PathBuf::as_path)))
    }

    /// Whether there is neither a file nor a name like this.
    pub fn is_missing(&self) -> bool {
        !Path::new(&self.dataset).exists() && !named::is_name(&self.dataset)
    }

    /// Of paths the last name alone, however the user spelled them: nobody else needs to know the data owner's folders.
    fn published(&self) -> DataSource {
        let name = |path: &Path| match path.file_name() {
            Some(name) => PathBuf::from(name),
            // As of `..`.
            None => path
                .canonicalize()
                .ok()
                .and_then(|whole| whole.file_name().map(PathBuf::from))
                .unwrap_or_default(),
        };
        let mut source = self.clone();
        source.dataset = name(Path::new(&self.dataset)).to_string_lossy().into_owned();
        source.edges = self.edges.as_deref().map(name);
        source.labels = self.labels.as_deref().map(name);
        source.transforms = self.transforms.published(name);
        source.folder = DataSource::default().folder;
        source
    }

    /// The same data set, found from any folder.
    fn absolute(&self) -> DataSource {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let mut source = self.clone();
        if Path::new(&source.dataset).exists() {
            source.dataset = absolute(Path::new(&source.dataset)).to_string_lossy().into_owned();
        }
        source.edges = source.edges.as_deref().map(absolute);
        source.labels = source.labels.as_deref().map(absolute);
        source.transforms = source.transforms.published(absolute);
        source.folder.data_dir = absolute(&source.folder.data_dir);
        source
    }

    /// The seed of the split.
    fn seed(&self) -> u64 {
        self.split_seed.or(self.seed).unwrap_or(0)
    }

    fn ratios(&self) -> Ratios {
        self.ratios.unwrap_or_default()
    }

    fn array_names(&self) -> Result<ArrayNames> {
        let mut names = ArrayNames::default();
        for text in &self.array {
            let wrong = || {
                Problem::Invalid(format!(
                    "--array {text}: give what it holds and its name, such as labels=target"
                ))
            };
            let (role, name) = text.split_once('=').ok_or_else(wrong)?;
            names.set(role, name)?;
        }
        Ok(names)
    }

    fn describe_as_stored(&self) -> Result<Described> {
        let options = LoadOptions {
            id_column: self.id.clone(),
            label_column: self.label.clone(),
            split_column: self.split.clone(),
            source_column: self.source.clone(),
            target_column: self.target.clone(),
            weights: self.weights.asked()?,
            categorical: self.categorical.clone(),
            columns: self.columns.choices().map_err(Problem::Invalid)?,
            without_labels: false,
            // Only then it is known whether there is anything to scale.
            unscaled: false,
            label_file: self.labels.clone(),
            header: self.header,
            encoding: self.encoding.as_deref().and_then(Encoding::from_name),
            npz: NpzOptions { arrays: self.array_names()?, mask: self.mask, ..NpzOptions::default() },
            direction: match (self.undirected, self.symmetrise) {
                (true, _) => Direction::Undirected,
                (_, true) => Direction::Symmetrise,
                _ => Direction::AsStored,
            },
            min_class_count: self.transforms.min_class_count,
            seed: self.seed(),
        };
        let path = Path::new(&self.dataset);
        let described = match &self.edges {
            Some(edges) => read::describe_pair(path, edges, &options),
            // A name that looks like that of a file is looked for as one even where it is not there.
            None if path.exists() || progap::looks_like_a_path(path) => read::describe(path, &options),
            None => named::load(&self.dataset, &self.folder.data_dir, &options).map(Described::from),
        }?;
        let described = match &self.relation {
            None => described,
            Some(name) => Described { dataset: described.dataset.with_relation(name)?, ..described },
        };
        match self.columns.without_effect(&described).filter(|_| !self.of_a_run) {
            None if self.columns.unscaled => {
                Ok(Described { dataset: described.dataset.unscaled()?, ..described })
            }
            None => Ok(described),
            Some((flag, why)) => {
                Err(Problem::Invalid(format!("{flag} has no effect: {why}; leave it out")).into())
            }
        }
    }
}

/// The built-in data set, from the default folder.
impl Default for DataSource {
    fn default() -> Self {
        DataSource {
            dataset: "demo".into(),
            edges: None,
            labels: None,
            header: None,
            encoding: None,
            folder: DataFolder { data_dir: DEFAULT_FOLDER.into() },
            id: None,
            label: None,
            split: None,
            source: None,
            target: None,
            weights: Weights::default(),
            categorical: vec![],
            columns: Columns::default(),
            array: vec![],
            mask: None,
            undirected: false,
            symmetrise: false,
            relation: None,
            seed: None,
            split_seed: None,
            ratios: None,
            transforms: Transforms::default(),
            of_a_run: false,
        }
    }
}

fn unused_ratios(why: &str) -> Error {
    Problem::Invalid(format!("--ratios has no effect: {why}, unless --resplit asks for a new one")).into()
}
