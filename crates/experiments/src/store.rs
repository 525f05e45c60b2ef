//! The results of finished runs: one SQLite file to which each run is added, on disk at once, when it ends.
//!
//! One process writes at a time. It holds a lock on a file beside the store, which the system takes away when the
//! process ends in whatever way. Each run is one transaction: after a crash the store holds whole runs only.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

use super::Job;
use super::job::sorted;
use progap::InFile;
use progap::assessment::{Metric, Scores};
use progap::ledger::sqlite;
use progap::plan::PublicFacts;
use progap::run::Measured;
use progap::settings::Draft;
use progap::{Error, Remedy, Result};

/// The version that is written and read.
const VERSION: i64 = 2;
/// "PGEX", by which SQLite files that hold results know themselves.
const APPLICATION_ID: i64 = 0x5047_4558;
const SCHEMA: &str = "CREATE TABLE result (key TEXT PRIMARY KEY, data TEXT NOT NULL, content TEXT NOT NULL, \
    split INTEGER NOT NULL, settings TEXT NOT NULL, fingerprint TEXT NOT NULL, finished TEXT, error TEXT, \
    seconds REAL NOT NULL, time TEXT NOT NULL, CHECK ((finished IS NULL) <> (error IS NULL))) STRICT";
/// The longest text of a run: accuracies of a million epochs in each of many stages.
const LONGEST_TEXT: i32 = 1 << 30;
const COLUMNS: &str = "key, data, content, split, settings, fingerprint, finished, error, seconds, time";

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// The accuracy on the test nodes.
    pub test: f64,
    /// On the validation nodes, where there are any.
    pub val: Option<f64>,
    /// On the training nodes.
    pub train: Option<f64>,
    /// On the test nodes, after each stage.
    pub stages: Vec<f64>,
    /// Epoch by epoch.
    pub curve: Curve,
    /// The number of validation nodes.
    pub val_nodes: usize,
    /// The sizes that noise and delta depend on.
    pub sizes: PublicFacts,
    /// Every metric on the test nodes; `None` if there are none.
    pub scores: Option<Scores>,
}

/// Accuracies epoch by epoch, rounded to five digits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The number of epochs in each stage.
    pub epochs: Vec<usize>,
    /// The accuracy on the training nodes.
    pub train: Vec<Option<f64>>,
    /// The accuracy on the validation nodes.
    pub val: Vec<Option<f64>>,
}

impl Finished {
    /// The record of a run.
    pub fn new(Measured { metrics, scores }: &Measured, sizes: PublicFacts, val_nodes: usize) -> Finished {
        let finite = |value: f64| value.is_finite().then_some(value);
        let rounded = |value: Option<f64>| value.and_then(finite).map(|v| (v * 1e5).round() / 1e5);
        let mut curve = Curve::default();
        for epoch in &metrics.history {
            if curve.epochs.len() <= epoch.stage {
                curve.epochs.resize(epoch.stage + 1, 0);
            }
            curve.epochs[epoch.stage] += 1;
            curve.train.push(rounded(epoch.train_accuracy));
            curve.val.push(rounded(Some(epoch.val_accuracy)));
        }
        Finished {
            test: metrics.test_accuracy,
            val: finite(metrics.val_accuracy),
            train: finite(metrics.train_accuracy),
            stages: metrics.stage_test_accuracies.clone(),
            curve,
            val_nodes,
            sizes,
            scores: scores.clone(),
        }
    }

    /// A metric on the test nodes; not a number where it is not known.
    pub fn score(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Accuracy => self.test,
            _ => self.scores.as_ref().map_or(f64::NAN, |scores| scores.get(metric)),
        }
    }
}

/// A run in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The data set's name.
    pub data: String,
    /// The seed of its split.
    pub split: u64,
    /// The settings, if this version of the program still knows all of them.
    pub settings: Option<Draft>,
    /// The data set's fingerprint, split included; empty if it could not be loaded.
    pub fingerprint: String,
    /// The result, or the reason why there is none.
    pub outcome: std::result::Result<Finished, String>,
    /// How long it took on one core.
    pub seconds: f64,
}

/// The outcome of [`Store::merge`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Merged {
    /// Results that are new here.
    pub added: usize,
    /// Results that were here already.
    pub known: usize,
}

/// Refuses a file that no database begins as: SQLite would write over one that is shorter than a page. What a process
/// left that was killed while it made a store is empty or zero so far.
fn refuse_others(path: &Path) -> Result<()> {
    const BEGINNING: &[u8] = b"SQLite format 3\0";
    let mut head = vec![];
    match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        file => file.in_file(path)?.take(BEGINNING.len() as u64).read_to_end(&mut head).in_file(path)?,
    };
    let begun = head == BEGINNING || head.iter().all(|&byte| byte == 0);
    if begun { Ok(()) } else { Err(not_ours(path)) }
}

/// The results of an experiment.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
    _lock: Option<File>,
}

impl Store {
    /// Opens a store for writing; makes it where there is none.
    ///
    /// # Errors
    /// Another process writes to it, it has another version, or it is something else.
    pub fn open(path: &Path) -> Result<Store> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).in_file(folder)?;
        }
        let lock_path = PathBuf::from(format!("{}.lock", path.display()));
        let lock = File::options().create(true).append(true).open(&lock_path).in_file(&lock_path)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::file(path, "another process is writing to these results")
                    .remedy(Remedy::words("wait until it ends"))
                    .remedy(Remedy::NewFolder));
            }
            Err(TryLockError::Error(error)) => return Err(Error::file(&lock_path, error)),
        }
        refuse_others(path)?;
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_CREATE)?;
        // Whether it is new is known within: what a process left that was killed while it made one is taken back first.
        let mut make = || -> rusqlite::Result<()> {
            let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let tables: i64 = tx.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            let id: i64 = tx.pragma_query_value(None, "application_id", |row| row.get(0))?;
            if tables == 0 && id == 0 {
                tx.execute_batch(SCHEMA)?;
                tx.pragma_update(None, "application_id", APPLICATION_ID)?;
                tx.pragma_update(None, "user_version", VERSION)?;
            }
            tx.commit()
        };
        make().map_err(|e| say(path, e))?;
        let store = Store { path: path.to_path_buf(), connection, _lock: Some(lock) };
        store.check()?;
        Ok(store)
    }

    /// Opens a store that exists, for reading.
    pub fn read(path: &Path) -> Result<Store> {
        if !path.is_file() {
            return Err(Error::file(path, "there are no results here"));
        }
        let store =
            Store { path: path.to_path_buf(), connection: connect(path, OpenFlags::empty())?, _lock: None };
        store.check()?;
        Ok(store)
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn check(&self) -> Result<()> {
        let pragma = |name| {
            let value = self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            value.map_err(|e| say(&self.path, e))
        };
        if pragma("application_id")? != APPLICATION_ID {
            return Err(not_ours(&self.path));
        }
        match pragma("user_version")? {
            VERSION => Ok(()),
            found => Err(Error::file(
                &self.path,
                format!(
                    "these results have version {found}, and this program reads version {VERSION}: they are left as \
                     they are"
                ),
            )
            .remedy(Remedy::NewFolder)),
        }
    }

    /// All runs by the keys of their jobs.
    pub fn all(&self) -> Result<HashMap<String, Stored>> {
        let read = || -> rusqlite::Result<Vec<(String, Raw)>> {
            let mut statement = self.connection.prepare(&format!("SELECT {COLUMNS} FROM result"))?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, Raw::from(row)?)))?;
            rows.collect()
        };
        let rows = read().map_err(|e| say(&self.path, e))?;
        rows.into_iter().map(|(key, raw)| Ok((key, raw.stored(&self.path)?))).collect()
    }

    /// The fingerprint of the data set and split of a job, if a run on them is here.
    pub fn fingerprint(&self, job: &Job) -> Result<Option<String>> {
        self.fingerprint_of(&sorted(&job.data.content), job.split as i64)
    }

    fn fingerprint_of(&self, content: &str, split: i64) -> Result<Option<String>> {
        let query = "SELECT fingerprint FROM result WHERE content = ?1 AND split = ?2 AND finished IS NOT NULL LIMIT 1";
        let found = self.connection.query_row(query, params![content, split], |row| row.get(0));
        found.optional().map_err(|e| say(&self.path, e))
    }

    /// Adds what came of a job; a failure that was here before makes way. It is on disk when this returns.
    pub fn add(
        &mut self,
        job: &Job,
        fingerprint: &str,
        outcome: &std::result::Result<Finished, String>,
        seconds: f64,
    ) -> Result<()> {
        let json = |value: serde_json::Result<String>| value.in_file(&self.path);
        let finished =
            outcome.as_ref().ok().map(|finished| json(serde_json::to_string(finished))).transpose()?;
        let raw = Raw {
            data: job.data.name.clone(),
            content: sorted(&job.data.content),
            split: job.split as i64,
            settings: json(serde_json::to_string(&job.settings))?,
            fingerprint: fingerprint.into(),
            finished,
            error: outcome.as_ref().err().cloned(),
            seconds,
            time: None,
        };
        insert(&self.connection, &job.key(), &raw).map_err(|e| say(&self.path, e))
    }

    /// Adds what other stores hold, all of it or nothing. Finished runs win over failures; runs that are here already
    /// stay.
    ///
    /// # Errors
    /// A store of another version, or one whose runs were made on other data under the same name.
    pub fn merge(&mut self, others: &[PathBuf]) -> Result<Merged> {
        let mut merged = Merged::default();
        let mut all = Vec::new();
        for path in others {
            let other = Store::read(path)?;
            let rows = || -> rusqlite::Result<Vec<(String, Raw)>> {
                let mut statement = other.connection.prepare(&format!("SELECT {COLUMNS} FROM result"))?;
                statement.query_map([], |row| Ok((row.get(0)?, Raw::from(row)?)))?.collect()
            };
            all.extend(rows().map_err(|e| say(path, e))?.into_iter().map(|row| (path, row)));
        }
        let mut fingerprints: HashMap<(String, i64), String> = HashMap::new();
        for (path, (_, raw)) in all.iter().filter(|(_, (_, raw))| raw.finished.is_some()) {
            let place = (raw.content.clone(), raw.split);
            let ours = match fingerprints.get(&place) {
                Some(ours) => Some(ours.clone()),
                None => self.fingerprint_of(&place.0, place.1)?,
            };
            if ours.is_some_and(|ours| ours != raw.fingerprint) {
                return Err(Error::file(
                    path,
                    format!(
                        "its runs on {} were made on other data than those here: nothing was merged",
                        raw.data
                    ),
                ));
            }
            fingerprints.insert(place, raw.fingerprint.clone());
        }
        let path = self.path.clone();
        let mut write = || -> rusqlite::Result<()> {
            let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for (_, (key, raw)) in &all {
                let known = "SELECT finished IS NOT NULL FROM result WHERE key = ?1";
                let here: Option<bool> = tx.query_row(known, [key], |row| row.get(0)).optional()?;
                if here == Some(true) || (here == Some(false) && raw.finished.is_none()) {
                    merged.known += 1;
                    continue;
                }
                insert(&tx, key, raw)?;
                merged.added += 1;
            }
            tx.commit()
        };
        write().map_err(|e| say(&path, e))?;
        Ok(merged)
    }
}

/// A row as it lies in the file.
struct Raw {
    data: String,
    content: String,
    split: i64,
    settings: String,
    fingerprint: String,
    finished: Option<String>,
    error: Option<String>,
    seconds: f64,
    time: Option<String>,
}

impl Raw {
    fn from(row: &Row<'_>) -> rusqlite::Result<Raw> {
        Ok(Raw {
            data: row.get(1)?,
            content: row.get(2)?,
            split: row.get(3)?,
            settings: row.get(4)?,
            fingerprint: row.get(5)?,
            finished: row.get(6)?,
            error: row.get(7)?,
            seconds: row.get(8)?,
            time: row.get(9)?,
        })
    }

    fn stored(self, path: &Path) -> Result<Stored> {
        let outcome = match (self.finished, self.error) {
            (Some(finished), _) => Ok(serde_json::from_str(&finished).in_file(path)?),
            (None, error) => Err(error.unwrap_or_default()),
        };
        Ok(Stored {
            data: self.data,
            split: self.split.unsigned_abs(),
            settings: serde_json::from_str(&self.settings).ok(),
            fingerprint: self.fingerprint,
            outcome,
            seconds: self.seconds,
        })
    }
}

fn insert(connection: &Connection, key: &str, raw: &Raw) -> rusqlite::Result<()> {
    // One statement is one transaction where none is open.
    let mut statement = connection.prepare_cached(&format!(
        "INSERT OR REPLACE INTO result ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, \
         coalesce(?10, strftime('%Y-%m-%dT%H:%M:%SZ', 'now')))"
    ))?;
    let Raw { data, content, split, settings, fingerprint, finished, error, seconds, time } = raw;
    let values = params![key, data, content, split, settings, fingerprint, finished, error, seconds, time];
    statement.execute(values).map(|_| ())
}

fn not_ours(path: &Path) -> Error {
    Error::file(path, "this is not a store of results").remedy(Remedy::NewFolder)
}

fn connect(path: &Path, extra: OpenFlags) -> Result<Connection> {
    sqlite::connect(path, extra, LONGEST_TEXT, Duration::from_secs(5)).map_err(|e| say(path, e))
}

/// Says in our words what SQLite reports about a file.
fn say(path: &Path, error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Error::file(path, "another process is using these results: try again when it has ended")
        }
        Some(ErrorCode::NotADatabase) => not_ours(path),
        Some(ErrorCode::DiskFull) => Error::file(path, "the disk is full; what was stored before is kept"),
        Some(ErrorCode::DatabaseCorrupt) => Error::file(path, format!("the results are damaged ({error})")),
        _ => Error::file(path, error),
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
