//! The file: one SQLite table that only grows, each row sealed to the one before it; and beside it a secret, and what the
//! data sets are known by under that secret.
//!
//! **Why a rollback journal and not a write-ahead log.** A ledger is written seldom and must never forget. With a
//! rollback journal all charges lie in one file whenever no writer is at work, so that a copy of that file is a whole
//! ledger; with a write-ahead log a copy of the main file alone would lack the latest charges, and a budget would be
//! spent twice. It needs no shared memory either, which network file systems do not offer.
//!
//! **Why `synchronous = EXTRA`.** A commit ends by deleting the journal. `FULL` syncs the data before, but not the
//! folder after, so that a power cut could bring the journal back and undo a charge that was already reported. `EXTRA`
//! syncs the folder too.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use sha2::{Digest, Sha256};

use super::error::{Error, Result};
use super::identity::Secret;
use crate::sqlite::connect;

/// The version that is written, and the newest that is read. Version 1 is upgraded when it is opened.
pub(super) const VERSION: i64 = 2;
/// "PGLG", by which SQLite files that are ledgers know themselves.
const APPLICATION_ID: i64 = 0x5047_4c47;
/// The hash before the first row.
pub(super) const GENESIS: &str = "progap ledger 1";
/// The longest text in a row; an event has at most 4 MiB.
const MAX_LENGTH: i32 = 16 << 20;

/// This many of the tables and triggers were there in version 1.
pub(super) const TABLES_OF_1: usize = 3;

pub(super) const SCHEMA: [(&str, &str); 5] = [
    (
        "entry",
        "CREATE TABLE entry (seq INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, \
         fingerprint TEXT NOT NULL, run_id TEXT UNIQUE, event TEXT, body TEXT NOT NULL, hash TEXT NOT NULL) STRICT",
    ),
    (
        "entry_is_never_changed",
        "CREATE TRIGGER entry_is_never_changed BEFORE UPDATE ON entry \
         BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
    ),
    (
        "entry_is_never_deleted",
        "CREATE TRIGGER entry_is_never_deleted BEFORE DELETE ON entry \
         BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
    ),
    (
        "identity",
        "CREATE TABLE identity (dataset TEXT NOT NULL, unit TEXT NOT NULL, identity TEXT NOT NULL, \
         PRIMARY KEY (dataset, unit)) STRICT, WITHOUT ROWID",
    ),
    ("secret", "CREATE TABLE secret (id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL) STRICT"),
];

/// A row as it lies in the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub seq: u64,
    pub time: String,
    /// Of the data, in rows of version 1; empty in those since.
    pub fingerprint: String,
    pub run_id: Option<String>,
    pub event: Option<String>,
    pub body: String,
    pub hash: String,
}

impl Row {
    /// The hash that seals this row to the one before it. Every field is preceded by its length, so that no two
    /// different rows are the same bytes.
    pub(super) fn seal(&self, previous: &str) -> String {
        let mut hash = Sha256::new();
        let fields = [
            Some(previous),
            Some(&self.time),
            Some(&self.fingerprint),
            self.run_id.as_deref(),
            self.event.as_deref(),
            Some(&self.body),
        ];
        hash.update(self.seq.to_le_bytes());
        for field in fields {
            hash.update(field.map_or(u64::MAX, |text| text.len() as u64).to_le_bytes());
            hash.update(field.unwrap_or_default().as_bytes());
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Makes a new file. Of several processes that try, one succeeds.
pub(super) fn create(path: &Path, patience: Duration) -> Result<Connection> {
    let say = |error| match Error::from_sqlite(path, error) {
        // Whatever lies there, it is not ours to overwrite.
        Error::NotALedger { path } => Error::Exists { path },
        other => other,
    };
    if path.is_dir() {
        return Err(Error::Exists { path: path.to_owned() });
    }
    reserve(path);
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_CREATE, MAX_LENGTH, patience).map_err(say)?;
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(say)?;
    let pages: i64 = tx.pragma_query_value(None, "page_count", |row| row.get(0)).map_err(say)?;
    let tables: i64 =
        tx.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0)).map_err(say)?;
    if pages > 1 || tables > 0 {
        return Err(Error::Exists { path: path.to_owned() });
    }
    make_tables(path, &tx, &SCHEMA)?;
    Secret::new()?.write(path, &tx)?;
    tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(say)?;
    tx.pragma_update(None, "user_version", VERSION).map_err(say)?;
    tx.commit().map_err(say)?;
    sync_folder(path);
    Ok(connection)
}

pub(super) fn make_tables(path: &Path, tx: &Transaction<'_>, tables: &[(&str, &str)]) -> Result<()> {
    tables
        .iter()
        .try_for_each(|(_, sql)| tx.execute_batch(sql))
        .map_err(|error| Error::from_sqlite(path, error))
}

/// Makes a new file that its owner alone can read, for there is a secret in it. What cannot be made is told by whoever
/// opens it next.
fn reserve(path: &Path) {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = options.open(path);
}

/// The version of a file.
pub(super) fn version(path: &Path, connection: &Connection) -> Result<i64> {
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|error| Error::from_sqlite(path, error))
}

/// Opens an existing file, after finishing or undoing what a crash may have left. A file of version 1 is not upgraded here.
pub(super) fn open(path: &Path, patience: Duration) -> Result<Connection> {
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::Missing { path: path.to_owned() });
        }
        Ok(data) if !data.is_file() || data.len() == 0 => {
            return Err(Error::NotALedger { path: path.to_owned() });
        }
        _ => {}
    }
    let say = |error| Error::from_sqlite(path, error);
    let connection = connect(path, OpenFlags::empty(), MAX_LENGTH, patience).map_err(say)?;
    let id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(say)?;
    if id != APPLICATION_ID {
        return Err(Error::NotALedger { path: path.to_owned() });
    }
    // Another process may upgrade the file just now: the version and the tables are read at one moment.
    let moment = connection.unchecked_transaction().map_err(say)?;
    let found = version(path, &moment)?;
    if found > VERSION {
        return Err(Error::Newer { path: path.to_owned(), found, known: VERSION });
    }
    let mut statement = moment
        .prepare("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name")
        .map_err(say)?;
    let tables = statement
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))
        .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
        .map_err(say)?;
    let expected = match found {
        1 => &SCHEMA[..TABLES_OF_1],
        VERSION => &SCHEMA[..],
        _ => &[],
    };
    let same = tables.iter().map(|(name, sql)| (name.as_str(), sql.as_str())).eq(expected.iter().copied());
    if expected.is_empty() || !same {
        let what = "its tables are not those of a ledger".to_owned();
        return Err(Error::Damaged { path: path.to_owned(), what });
    }
    drop(statement);
    drop(moment);
    Ok(connection)
}

/// Reads all rows in order and hands each one on.
pub(super) fn each_row(
    path: &Path,
    connection: &Connection,
    mut visit: impl FnMut(Row) -> Result<()>,
) -> Result<()> {
    let say = |error| Error::from_sqlite(path, error);
    let mut statement = connection
        .prepare_cached("SELECT seq, time, fingerprint, run_id, event, body, hash FROM entry ORDER BY seq")
        .map_err(say)?;
    let mut rows = statement.query([]).map_err(say)?;
    while let Some(row) = rows.next().map_err(say)? {
        let read = || -> rusqlite::Result<Row> {
            Ok(Row {
                seq: row.get::<_, i64>(0)?.unsigned_abs(),
                time: row.get(1)?,
                fingerprint: row.get(2)?,
                run_id: row.get(3)?,
                event: row.get(4)?,
                body: row.get(5)?,
                hash: row.get(6)?,
            })
        };
        visit(read().map_err(|error| Error::Damaged { path: path.to_owned(), what: error.to_string() })?)?;
    }
    Ok(())
}

/// The number of rows that were ever written.
pub(super) fn rows_written(path: &Path, connection: &Connection) -> Result<u64> {
    connection
        .query_row("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'entry'", [], |row| {
            row.get::<_, i64>(0)
        })
        .map(i64::unsigned_abs)
        .map_err(|error| Error::from_sqlite(path, error))
}

/// The content of a new row, before it has a place in the file.
pub(super) struct Draft<'a> {
    pub run_id: Option<&'a str>,
    pub event: Option<&'a str>,
    pub body: String,
}

/// Adds a row after the one with number `last` and hash `head`.
pub(super) fn append(
    path: &Path,
    tx: &Transaction<'_>,
    last: u64,
    head: &str,
    draft: Draft<'_>,
) -> Result<Row> {
    let say = |error| Error::from_sqlite(path, error);
    let time =
        tx.query_row("SELECT strftime('%Y-%m-%dT%H:%M:%SZ', 'now')", [], |row| row.get(0)).map_err(say)?;
    let mut row = Row {
        seq: last + 1,
        time,
        fingerprint: String::new(),
        run_id: draft.run_id.map(str::to_owned),
        event: draft.event.map(str::to_owned),
        body: draft.body,
        hash: String::new(),
    };
    row.hash = row.seal(head);
    tx.execute(
        "INSERT INTO entry (seq, time, fingerprint, run_id, event, body, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (row.seq as i64, &row.time, &row.fingerprint, &row.run_id, &row.event, &row.body, &row.hash),
    )
    .map_err(say)?;
    Ok(row)
}

/// SQLite's own test of the file's structure.
pub(super) fn check_structure(path: &Path, connection: &Connection) -> Result<()> {
    let verdict: String = connection
        .pragma_query_value(None, "integrity_check", |row| row.get(0))
        .map_err(|error| Error::from_sqlite(path, error))?;
    if verdict == "ok" { Ok(()) } else { Err(Error::Damaged { path: path.to_owned(), what: verdict }) }
}

/// Makes a new file's name durable. Where folders cannot be synced, creating a ledger again costs nothing.
fn sync_folder(path: &Path) {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if let Ok(folder) = fs::File::open(folder) {
        let _ = folder.sync_all();
    }
}
