//! From version 1 of the file to version 2, in one transaction that nothing is lost in.
//!
//! Version 1 knew data sets by a fingerprint of their content, which stood in every row, and so in every seal. Its rows
//! stay as they are, with their seals: they are history. What is added is a secret, the identities of the data under that
//! secret, and one row that ends the old part. That row holds 32 random bytes, so that the seals after it, which do not
//! hold a fingerprint any more, tell nobody without the file anything about the fingerprints before it.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::book::{Body, Book, Depth};
use super::error::{Error, Result};
use super::file::{self, Draft};
use super::identity::{self, Secret};

/// Upgrades a file, unless another process did so first.
pub(super) fn upgrade(path: &Path, connection: &mut Connection) -> Result<()> {
    let say = |error| Error::from_sqlite(path, error);
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(say)?;
    if file::version(path, &tx)? != 1 {
        return Ok(());
    }
    let book = Book::read(path, &tx, Depth::Seals)?;
    file::make_tables(path, &tx, &file::SCHEMA[file::TABLES_OF_1..])?;
    let secret = Secret::new()?;
    secret.write(path, &tx)?;
    for account in &book.accounts {
        if let Some(fingerprint) = &account.fingerprint {
            identity::write(path, &tx, &account.name, account.unit, &secret.identity(fingerprint)?)?;
        }
    }
    let salt = identity::random()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let body = super::json(&Body::Upgrade { salt })?;
    file::append(path, &tx, book.rows, &book.head, Draft { run_id: None, event: None, body })?;
    tx.pragma_update(None, "user_version", file::VERSION).map_err(say)?;
    tx.commit().map_err(say)
}
