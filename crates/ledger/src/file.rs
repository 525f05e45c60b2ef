//! The file: one SQLite table that only grows, each row sealed to the one before it; and beside it a secret, and what
//! the data sets are known by under that secret.
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
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction};
use sha2::{Digest, Sha256};

use super::error::{Error, Result};
use super::identity::Secret;
use super::sqlite::connect;

/// The version of the file.
const VERSION: i64 = 1;
/// "PGLG", by which SQLite files that are ledgers know themselves.
const APPLICATION_ID: i64 = 0x5047_4c47;
/// The hash before the first row.
pub(super) const GENESIS: &str = "progap ledger 1";
/// The longest text in a row; an event has at most 4 MiB.
const MAX_LENGTH: i32 = 16 << 20;

const SCHEMA: [(&str, &str); 5] = [
    (
        "entry",
        "CREATE TABLE entry (seq INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, \
         run_id TEXT UNIQUE, event TEXT, body TEXT NOT NULL, hash TEXT NOT NULL) STRICT",
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
        "CREATE TABLE identity (dataset TEXT NOT NULL, unit TEXT NOT NULL, sketches BLOB NOT NULL, \
         seal BLOB NOT NULL, PRIMARY KEY (dataset, unit)) STRICT, WITHOUT ROWID",
    ),
    ("secret", "CREATE TABLE secret (id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL) STRICT"),
];

/// A row as it lies in the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub seq: u64,
    pub time: String,
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
///
/// All of it is written beside its place, without a journal, and takes its name when it is whole: a process that is
/// killed leaves nothing under that name, and the next one that tries succeeds. There is a secret in it, so its owner
/// alone can read it.
pub(super) fn create(path: &Path, patience: Duration) -> Result<Connection> {
    let exists = || Error::Exists { path: path.to_owned() };
    if path.symlink_metadata().is_ok() {
        return Err(exists());
    }
    let folder = folder_of(path);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".progap-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600));
    let beside = builder.tempfile_in(folder).map_err(|error| cannot_write(path, &error))?;
    fill(path, beside.path(), patience)?;
    beside.as_file().sync_all().map_err(|error| cannot_write(path, &error))?;
    beside.persist_noclobber(path).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => exists(),
        _ => cannot_write(path, &error.error),
    })?;
    sync_folder(folder);
    open(path, patience)
}

/// Writes an empty ledger into an empty file.
fn fill(path: &Path, beside: &Path, patience: Duration) -> Result<()> {
    let say = |error| Error::from_sqlite(path, error);
    let mut connection = connect(beside, OpenFlags::empty(), MAX_LENGTH, patience).map_err(say)?;
    connection.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(())).map_err(say)?;
    let tx = connection.transaction().map_err(say)?;
    SCHEMA.iter().try_for_each(|(_, sql)| tx.execute_batch(sql)).map_err(say)?;
    Secret::new()?.write(path, &tx)?;
    tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(say)?;
    tx.pragma_update(None, "user_version", VERSION).map_err(say)?;
    tx.commit().map_err(say)?;
    connection.close().map_err(|(_, error)| say(error))
}

fn cannot_write(path: &Path, error: &io::Error) -> Error {
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full { path },
        io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly { path },
        _ => Error::CannotOpen { path },
    }
}

/// Opens an existing file, after finishing or undoing what a crash may have left.
pub(super) fn open(path: &Path, patience: Duration) -> Result<Connection> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::Missing { path: path.to_owned() });
        }
        Ok(data) if !data.is_file() || data.len() == 0 => {
            return Err(Error::NotALedger { path: path.to_owned() });
        }
        _ => {}
    }
    let say = |error| Error::from_sqlite(path, error);
    let connection = connect(path, OpenFlags::empty(), MAX_LENGTH, patience).map_err(say)?;
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(say);
    if number("application_id")? != APPLICATION_ID {
        return Err(Error::NotALedger { path: path.to_owned() });
    }
    let found = number("user_version")?;
    if found > VERSION {
        return Err(Error::Newer { path: path.to_owned(), found, known: VERSION });
    }
    let tables = connection
        .prepare("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name")
        .and_then(|mut statement| {
            let rows =
                statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        })
        .map_err(say)?;
    let same = tables.iter().map(|(name, sql)| (name.as_str(), sql.as_str())).eq(SCHEMA);
    if found != VERSION || !same {
        let what = "its tables are not those of a ledger".to_owned();
        return Err(Error::Damaged { path: path.to_owned(), what });
    }
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
        .prepare_cached("SELECT seq, time, run_id, event, body, hash FROM entry ORDER BY seq")
        .map_err(say)?;
    let mut rows = statement.query([]).map_err(say)?;
    while let Some(row) = rows.next().map_err(say)? {
        let read = || -> rusqlite::Result<Row> {
            Ok(Row {
                seq: row.get::<_, i64>(0)?.unsigned_abs(),
                time: row.get(1)?,
                run_id: row.get(2)?,
                event: row.get(3)?,
                body: row.get(4)?,
                hash: row.get(5)?,
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
        run_id: draft.run_id.map(str::to_owned),
        event: draft.event.map(str::to_owned),
        body: draft.body,
        hash: String::new(),
    };
    row.hash = row.seal(head);
    tx.execute(
        "INSERT INTO entry (seq, time, run_id, event, body, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        (row.seq as i64, &row.time, &row.run_id, &row.event, &row.body, &row.hash),
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

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes a new file's name durable. Where folders cannot be synced, creating a ledger again costs nothing.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = fs::File::open(folder) {
        let _ = folder.sync_all();
    }
}
