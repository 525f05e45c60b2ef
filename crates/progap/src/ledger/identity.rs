//! Which data a name means: a keyed hash of the data's fingerprint, under a secret of the ledger's own.
//!
//! Identities lie in a table beside the rows, outside of the seals: receipts, seals and rows are the same whatever the data
//! are. They find the account of a data set, and tell when a name comes with other data; nothing is decided by them that
//! an owner cannot decide otherwise by naming the account. Without the secret an identity says nothing; whoever has the
//! whole file, and a guess of the whole data, can test that guess. So the file is for its owner.

use std::fmt;
use std::path::Path;

use progap_privacy::Unit;
use rusqlite::{Connection, Transaction};

use super::book::{Account, Book};
use super::error::{Error, Result};

/// The purpose of the hash, so that it is never that of anything else.
const PURPOSE: &[u8] = b"progap ledger, identity of data\0";

/// The secret of a ledger.
pub(super) struct Secret([u8; 32]);

impl Secret {
    /// A new one, from the operating system.
    pub(super) fn new() -> Result<Secret> {
        random().map(Secret)
    }

    /// The one that a ledger has.
    pub(super) fn read(path: &Path, connection: &Connection) -> Result<Secret> {
        let damaged = |what: String| Error::Damaged { path: path.to_owned(), what };
        let bytes: Vec<u8> = connection
            .query_row("SELECT key FROM secret WHERE id = 1", [], |row| row.get(0))
            .map_err(|error| damaged(format!("its secret: {error}")))?;
        let key = bytes.try_into().map_err(|_| damaged("its secret has another length".to_owned()))?;
        Ok(Secret(key))
    }

    pub(super) fn write(&self, path: &Path, tx: &Transaction<'_>) -> Result<()> {
        tx.execute("INSERT INTO secret (id, key) VALUES (1, ?1)", [&self.0[..]])
            .map(|_| ())
            .map_err(|error| Error::from_sqlite(path, error))
    }

    /// The identity of the data with a fingerprint.
    pub(super) fn identity(&self, fingerprint: &str) -> Result<String> {
        let fingerprint = super::hex("the fingerprint", fingerprint)?;
        let text = [PURPOSE, fingerprint.as_bytes()].concat();
        Ok(blake3::keyed_hash(&self.0, &text).to_hex().to_string())
    }
}

/// Bytes of the operating system's.
pub(super) fn random() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::invalid("randomness", error, "given by the operating system"))?;
    Ok(bytes)
}

/// The identities of all accounts that have one.
pub(super) struct Identities(Vec<(String, String, String)>);

impl Identities {
    pub(super) fn read(path: &Path, connection: &Connection) -> Result<Identities> {
        connection
            .prepare("SELECT dataset, unit, identity FROM identity")
            .and_then(|mut statement| {
                statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
            })
            .map(Identities)
            .map_err(|error| Error::from_sqlite(path, error))
    }

    /// None where the file has no table of them yet.
    pub(super) fn none() -> Identities {
        Identities(Vec::new())
    }

    pub(super) fn of(&self, name: &str, unit: Unit) -> Option<&str> {
        let found = self.0.iter().find(|(dataset, of, _)| dataset == name && of == unit.name());
        found.map(|(.., identity)| identity.as_str())
    }

    /// The account for a unit that has this identity.
    fn holder<'b>(&self, book: &'b Book, identity: &str, unit: Unit) -> Option<&'b Account> {
        book.accounts
            .iter()
            .find(|account| account.unit == unit && self.of(&account.name, unit) == Some(identity))
    }

    /// Refuses identities that no account has.
    pub(super) fn check(&self, path: &Path, book: &Book) -> Result<()> {
        let damaged = |what| Err(Error::Damaged { path: path.to_owned(), what });
        for (dataset, unit, identity) in &self.0 {
            if !book.accounts.iter().any(|account| account.name == *dataset && account.unit.name() == unit) {
                return damaged(format!(
                    "it knows the data of {dataset} in the unit {unit}, which it does not have"
                ));
            }
            if identity.len() != 64 || !identity.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return damaged(format!("the identity of {dataset} is not one"));
            }
        }
        Ok(())
    }
}

pub(super) fn write(path: &Path, tx: &Transaction<'_>, name: &str, unit: Unit, identity: &str) -> Result<()> {
    let values = (name, unit.name(), identity);
    tx.execute("INSERT INTO identity (dataset, unit, identity) VALUES (?1, ?2, ?3)", values)
        .map(|_| ())
        .map_err(|error| Error::from_sqlite(path, error))
}

/// Which account a run is charged to, and whether its data are what the ledger knows.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The name of the account.
    pub name: String,
    /// The unit that its budget protects.
    pub unit: Unit,
    /// A warning to the owner before anything is charged.
    pub warning: Option<Warning>,
}

/// The data are not, or may not be, those for which a budget was entered. For the owner alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    /// The account that is charged all the same.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// Whether the ledger knows the data of the account, and they are others.
    pub other_data: bool,
    /// The account that was entered for these data, if there is one.
    pub known_as: Option<String>,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Warning { name, unit, other_data, known_as } = self;
        match other_data {
            true => write!(f, "these are not the data that the ledger knows as {name} (unit {unit})")?,
            false => write!(f, "the ledger does not know which data {name} (unit {unit}) are")?,
        }
        if let Some(other) = known_as {
            write!(f, ", they are those of {other}")?;
        }
        write!(
            f,
            ": they are charged to the budget of {name} all the same; if they are about other people, give them a name \
             and a budget of their own"
        )
    }
}

/// Whose account is looked for.
pub(super) struct Wanted<'w> {
    /// The name that is asked for.
    pub asked: Option<&'w str>,
    /// The data set's own name.
    pub own_name: &'w str,
    /// The identity of the data.
    pub identity: &'w str,
    /// The unit that the budget protects.
    pub unit: Unit,
}

/// The account for data: by name if one is asked for, else by the identity of the data, else by the data set's own name.
pub(super) fn find(path: &Path, book: &Book, identities: &Identities, wanted: &Wanted<'_>) -> Result<Found> {
    let &Wanted { asked, own_name, identity, unit } = wanted;
    let holder = identities.holder(book, identity, unit);
    let account = match (asked, holder) {
        (Some(name), _) => book.account(path, name, unit)?,
        (None, Some(holder)) => holder,
        (None, None) => {
            // The data may have a budget in other units, under a name of the owner's.
            let elsewhere = book
                .accounts
                .iter()
                .find(|account| identities.of(&account.name, account.unit) == Some(identity))
                .filter(|_| !book.accounts.iter().any(|account| account.name == own_name));
            book.account(path, elsewhere.map_or(own_name, |account| &account.name), unit)?
        }
    };
    let name = account.name.clone();
    let known = identities.of(&name, unit);
    let warning = (known != Some(identity)).then(|| Warning {
        name: name.clone(),
        unit,
        other_data: known.is_some(),
        known_as: holder.map(|holder| holder.name.clone()),
    });
    Ok(Found { name, unit, warning })
}

/// Refuses to give the same data a second budget under another name.
pub(super) fn refuse_second_name(
    book: &Book,
    identities: &Identities,
    name: &str,
    identity: &str,
    unit: Unit,
) -> Result<()> {
    match identities.holder(book, identity, unit) {
        Some(holder) if holder.name != name => {
            Err(Error::SameData { name: name.to_owned(), known_as: holder.name.clone(), unit })
        }
        _ => Ok(()),
    }
}

/// The warning to an owner whose name has other data in another unit.
pub(super) fn other_units(
    book: &Book,
    identities: &Identities,
    name: &str,
    identity: &str,
) -> Option<Warning> {
    let mut accounts = book.accounts.iter().filter(|account| account.name == name);
    let account =
        accounts.find(|account| identities.of(name, account.unit).is_some_and(|known| known != identity))?;
    Some(Warning { name: name.to_owned(), unit: account.unit, other_data: true, known_as: None })
}
