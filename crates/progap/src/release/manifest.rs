//! Which files a release has, how large they can be, and that each is the one that was listed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use progap_formats::read::table::Schema;
use progap_graph::{Buffer, Dataset};
use serde::{Deserialize, Serialize};

use super::metrics::metrics_file;
use super::{
    CONFIG, Exported, MANIFEST, METRICS, NODES, OWN_MANIFEST, OWN_METRICS, OWN_ROWS, PAGE, PRIVATE, SCHEMA,
    STATEMENT, Statement, schema_of,
};
use crate::folder::{self, Folder, SMALL};
use crate::method::Program;
use crate::order::NUMBERS;
use crate::predictor::{MODEL, aggregate_file};
use crate::settings::{Level, MethodKind, Settings};
use crate::{Error, Remedy, Result, files, method, run};

/// The prefixes of the names of aggregates, and of those that no mechanism protects.
const AGGREGATES: &str = "aggregates/";
const OWN_AGGREGATES: &str = "private/aggregates-";
/// More files than a release of any method lists.
const MAX_FILES: usize = 128;
/// The most bytes of the public page of an export.
const LARGEST_PAGE: u64 = 64 << 20;
/// Room for what is not numbers: headers, names of classes and columns.
const NAMES: u64 = 64 << 20;
/// The longest id or name of a column that is allowed for.
const LONGEST_NAME: u64 = 1 << 10;

/// The list of some files, with their checksums.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub version: u64,
    /// Where the release was exported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export: Option<Exported>,
    pub files: BTreeMap<String, String>,
}

impl Manifest {
    /// The manifest of some files of a folder, as they are; for files that this process wrote.
    pub fn of(folder: &Folder, names: impl IntoIterator<Item = String>) -> Result<Manifest> {
        let sum = |name: String| Ok((name.clone(), folder.checksum(&name, u64::MAX)?));
        Ok(Manifest {
            version: files::FORMAT,
            export: None,
            files: names.into_iter().map(sum).collect::<Result<_>>()?,
        })
    }

    /// A manifest, and the SHA-256 of its file.
    fn read(folder: &Folder, name: &str) -> Result<(Manifest, String)> {
        let file = folder.path(name);
        let bytes = folder.read(name, SMALL)?;
        let manifest: Manifest = files::versioned(&bytes, "the release", &file)?;
        if manifest.files.len() > MAX_FILES {
            let problem = format!(
                "it lists {} files, and no release has so many: do not trust it",
                manifest.files.len()
            );
            return Err(Error::file(&file, problem));
        }
        match manifest.files.keys().find(|name| folder::parts(name).is_none()) {
            None => Ok((manifest, files::checksum_of(&bytes))),
            Some(name) => {
                let problem = format!(
                    "it lists {:?}, and only plain names of files inside of the folder are opened: do not trust it",
                    folder::shortened(name)
                );
                Err(Error::file(&file, problem))
            }
        }
    }
}

/// The kind of a release, from which the names of its files follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Contents {
    pub level: Level,
    /// The number of aggregates, also of those that only later stages read where an earlier one is released: they are
    /// part of what was asked.
    aggregates: usize,
    /// Whether aggregates left the vault through a mechanism: else they are private.
    pub protected: bool,
    /// Whether nodes were renumbered.
    shuffled: bool,
}

impl Contents {
    /// The contents that a run with these settings leaves.
    pub fn of(settings: &Settings) -> Contents {
        let aggregates = method::outline(settings).aggregate_widths().len();
        let protected = settings.method.can().protects_predictions;
        Contents { level: settings.level, aggregates, protected, shuffled: settings.shuffle }
    }

    /// The file of the `number`-th aggregate.
    pub fn aggregate(&self, number: usize) -> String {
        aggregate_file(self.protected, number)
    }

    /// The names of all files, the public ones or the private ones, the page of an export aside.
    pub fn names(&self, private: bool) -> Vec<String> {
        let mut names: Vec<String> = (1..=self.aggregates).map(|number| self.aggregate(number)).collect();
        names.extend([MODEL, NODES, STATEMENT, CONFIG, SCHEMA, metrics_file(self.level)].map(String::from));
        names.extend((self.level == Level::Node).then(|| OWN_ROWS.to_string()));
        names.extend(self.shuffled.then(|| NUMBERS.to_string()));
        names.retain(|name| name.starts_with(PRIVATE) == private);
        names
    }
}

/// The lists of a release, public and private, and the folder that they are of.
#[derive(Debug)]
pub(super) struct Listed {
    pub folder: Folder,
    pub public: Manifest,
    /// The SHA-256 of the public list, by which a release is named.
    pub sha256: String,
    /// Where it is there: nothing private belongs to an export.
    pub own: Option<Manifest>,
    /// Whether the folder of what is private may be opened.
    opens_private: bool,
    /// Files that were found to have their checksums.
    checked: Mutex<BTreeSet<String>>,
}

impl Listed {
    /// Opens the lists of a release; no file of it is read yet.
    pub fn open(path: &std::path::Path, opens_private: bool) -> Result<Listed> {
        let folder = Folder::open(path, "there is no release here")?;
        if let Some(left) = run::left_over(path) {
            let what = format!("the run is not finished ({left} is still there), so this is no release yet");
            return Err(Error::file(path, what).remedy(Remedy::Resume));
        }
        if !folder.has(MANIFEST)? {
            return Err(Error::file(path, "there is no release here"));
        }
        folder.check_kinds((!opens_private).then_some(PRIVATE.trim_end_matches('/')))?;
        let (public, sha256) = Manifest::read(&folder, MANIFEST)?;
        let own = match opens_private && public.export.is_none() && folder.has(OWN_MANIFEST)? {
            true => Some(Manifest::read(&folder, OWN_MANIFEST)?.0),
            false => None,
        };
        Ok(Listed { folder, public, sha256, own, opens_private, checked: Mutex::default() })
    }

    /// The contents according to the lists, at the level of the statement; [`Listed::check`] says whether they say so
    /// of every file.
    pub fn contents(&self, level: Level) -> Contents {
        let all = || self.public.files.keys().chain(self.own.iter().flat_map(|own| own.files.keys()));
        // The data owner keeps back what no mechanism protects, or not.
        let protected = all().any(|name| name.starts_with(AGGREGATES));
        let begin = if protected { AGGREGATES } else { OWN_AGGREGATES };
        let names: BTreeSet<&String> = all().filter(|name| name.starts_with(begin)).collect();
        let shuffled = all().any(|name| name == NUMBERS);
        Contents { level, aggregates: names.len(), protected, shuffled }
    }

    /// Refuses lists with files that such a release does not have, or without one that it must have: all that is public
    /// but its settings and its schema, without which it predicts no further rows.
    pub fn check(&self, contents: &Contents) -> Result<()> {
        let (public, private) = (contents.names(false), contents.names(true));
        let page = self.public.export.as_ref().map(|_| PAGE);
        let file = self.folder.path(MANIFEST);
        // Lists of earlier releases had the checksums of private files, which `verify` finds.
        let stranger =
            self.public.files.keys().find(|name| {
                !public.contains(name) && !private.contains(name) && page != Some(name.as_str())
            });
        let own = self.own.iter().flat_map(|own| own.files.keys()).find(|name| !private.contains(name));
        if let Some(name) = stranger.or(own) {
            let problem = format!(
                "it lists {:?}, which no such release at level {} has: do not trust it",
                folder::shortened(name),
                contents.level
            );
            return Err(Error::file(&file, problem));
        }
        if self.own.as_ref().is_some_and(|own| own.export.is_some()) {
            return Err(Error::file(&self.folder.path(OWN_MANIFEST), "what is private is in no export"));
        }
        let optional = [CONFIG, SCHEMA];
        let is_absent =
            |name: &&String| !optional.contains(&name.as_str()) && !self.public.files.contains_key(*name);
        match public.iter().find(is_absent) {
            None => Ok(()),
            Some(name) => {
                Err(Error::file(&file, format!("{name} is missing in it: it was changed, do not trust it")))
            }
        }
    }

    fn expected(&self, name: &str) -> Option<&String> {
        self.public.files.get(name).or_else(|| self.own.as_ref()?.files.get(name))
    }

    /// Whether a file may be left out: the data owner may keep back what is private, and nothing else.
    pub fn is_kept_back(&self, name: &str) -> Result<bool> {
        Ok(name.starts_with(PRIVATE) && (!self.opens_private || !self.folder.has(name)?))
    }

    fn agree(&self, name: &str, found: String) -> Result<()> {
        let problem = match self.expected(name) {
            Some(expected) if *expected == found => {
                self.checked().insert(name.into());
                return Ok(());
            }
            Some(expected) => {
                format!(
                    "its checksum is {found}, not {}: it was damaged, swapped or changed",
                    folder::shortened(expected)
                )
            }
            None => "no manifest lists it: it was put there by someone else, do not trust it".into(),
        };
        Err(Error::file(&self.folder.path(name), problem))
    }

    /// Reads a listed file.
    pub fn read(&self, name: &str, at_most: u64) -> Result<Vec<u8>> {
        let content = self.folder.read(name, at_most)?;
        self.agree(name, files::checksum_of(&content))?;
        Ok(content)
    }

    /// The content of a listed file; see [`Folder::content`].
    pub fn content(&self, name: &str, at_most: u64) -> Result<Buffer<u8>> {
        let content = self.folder.content(name, at_most)?;
        self.agree(name, files::checksum_of(&content))?;
        Ok(content)
    }

    /// Opens a listed data set.
    pub fn dataset(&self, name: &str, at_most: u64) -> Result<Dataset> {
        let (data, sum) = self.folder.dataset(name, at_most)?;
        self.agree(name, sum)?;
        Ok(data)
    }

    /// The schema, where there is one, which is that of the nodes as far as these show it.
    pub fn schema(
        &self,
        bounds: &Bounds,
        (nodes, level): (&Dataset, Level),
        columns: usize,
    ) -> Result<Option<Schema>> {
        if !self.public.files.contains_key(SCHEMA) {
            return Ok(None);
        }
        let file = self.folder.path(SCHEMA);
        let schema: Schema = files::versioned(&self.read(SCHEMA, bounds.of(SCHEMA))?, "the schema", &file)?;
        let shown = nodes.features().columns() == columns;
        let fits = schema.width() == columns && schema.class_names() == nodes.class_names();
        match fits && (!shown || schema == schema_of(nodes, level)?) {
            true => Ok(Some(schema)),
            false => {
                Err(Error::file(&file, "it is not the schema of this release: it was damaged or changed"))
            }
        }
    }

    fn checked(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares every listed file that was not read yet with its checksum.
    pub fn check_rest(&self, bounds: &Bounds) -> Result<()> {
        for name in self.public.files.keys().chain(self.own.iter().flat_map(|own| own.files.keys())) {
            let known = self.checked().contains(name);
            if !known && !self.is_kept_back(name)? {
                self.agree(name, self.folder.checksum(name, bounds.of(name))?)?;
            }
        }
        Ok(())
    }
}

/// How large each file can be: as large as the largest model of any method at the level makes it, for the sizes of the
/// statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    rows: u64,
    model: u64,
    aggregate: u64,
    metrics: u64,
    schema: u64,
}

impl Bounds {
    /// The bounds; the classes are zero as long as they are not known.
    pub fn new(statement: &Statement, classes: usize) -> Bounds {
        let (nodes, columns) = (statement.nodes as u64, statement.feature_columns as u64);
        // Of a node: where its edges begin, its label, its part and its id; of a feature a number and a column, and
        // where a sparse row begins.
        let row = (64 + LONGEST_NAME).saturating_add(columns.saturating_mul(8));
        let sizes = (statement.feature_columns.max(1), classes.max(1));
        let settings = MethodKind::ALL.iter().flat_map(|&kind| Settings::largest(kind, statement.level()));
        let programs: Vec<Program> =
            settings.map(|settings| method::program(&settings, sizes, None)).collect();
        let largest = |of: &dyn Fn(&Program) -> u64| programs.iter().map(of).max().unwrap_or(0);
        let stages = |program: &Program| program.stages.len() as u64;
        let widest =
            largest(&|program| program.aggregate_widths().into_iter().max().unwrap_or_default() as u64);
        let epochs = largest(&|program| (program.epochs() as u64).saturating_mul(stages(program)));
        Bounds {
            rows: NAMES
                .saturating_add(nodes.saturating_mul(row))
                .saturating_add(columns.saturating_mul(LONGEST_NAME)),
            // Each parameter once, with running means where there are norms, of the models of all stages.
            model: largest(&|program| program.largest_model().saturating_mul(8 * stages(program)))
                .saturating_add(SMALL),
            aggregate: nodes.saturating_mul(widest).saturating_mul(4).saturating_add(1 << 17),
            schema: NAMES.saturating_add(columns.saturating_mul(2 * LONGEST_NAME)),
            metrics: epochs.saturating_mul(512).saturating_add(SMALL),
        }
    }

    pub fn of(&self, name: &str) -> u64 {
        match name {
            NODES | OWN_ROWS | NUMBERS => self.rows,
            METRICS | OWN_METRICS => self.metrics,
            PAGE => LARGEST_PAGE,
            SCHEMA => self.schema,
            MODEL => self.model,
            name if name.ends_with(".npy") => self.aggregate,
            _ => SMALL,
        }
    }
}
