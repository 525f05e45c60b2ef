//! Which account a run is charged to, and which data may have a budget of their own.

use std::fmt;
use std::path::Path;

use progap_privacy::Unit;

use super::book::Book;
use super::error::{Error, Result};
use super::identity::{Identities, Identity};

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
    /// How the data differ from those that the ledger knows.
    pub difference: Difference,
}

/// How data differ from those of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// They are about the same people, and not the same in every part.
    Changed,
    /// They are other data.
    Other,
    /// The ledger does not know the data of the account.
    Unknown,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Warning { name, difference } = self;
        match difference {
            Difference::Changed => {
                return write!(
                    f,
                    "these data are about the same people as those that the ledger knows as {name}, and not quite the \
                     same: they are charged to the budget of {name}"
                );
            }
            Difference::Other => write!(f, "these are not the data that the ledger knows as {name}")?,
            Difference::Unknown => write!(f, "the ledger does not know which data {name} are")?,
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
    pub data: &'w Identity,
    /// The unit of the run.
    pub unit: Unit,
}

/// The account for data: by name if one is asked for, else by the people whom the data are about, else by the data
/// set's own name.
pub(super) fn find(path: &Path, book: &Book, identities: &Identities, wanted: &Wanted<'_>) -> Result<Found> {
    let &Wanted { asked, own_name, data, unit } = wanted;
    let people = identities.names(book, data);
    let name = match (asked, &people[..]) {
        (Some(name), _) => name,
        (None, []) => own_name,
        (None, [only]) => only,
        // Several look the same, and their owner said that they are not: the one whose data agree in every part.
        (None, several) => several
            .iter()
            .find(|name| identities.of(name).any(|known| known == data))
            .ok_or_else(|| Error::Several { names: several.join(", ") })?,
    };
    let account = book.account(path, name, unit)?;
    refuse_same_people(book, &people, name)?;
    let known: Vec<&Identity> = identities.of(name).collect();
    let difference = if known.contains(&data) {
        None
    } else if people.contains(&name) {
        Some(Difference::Changed)
    } else if known.is_empty() {
        Some(Difference::Unknown)
    } else {
        Some(Difference::Other)
    };
    let name = account.name.clone();
    let warning = difference.map(|difference| Warning { name: name.clone(), difference });
    Ok(Found { name, unit, warning })
}

/// Refuses a name for data about people who have a budget under another one, unless the owner said that they are
/// other people.
pub(super) fn refuse_same_people(book: &Book, people: &[&str], name: &str) -> Result<()> {
    if people.contains(&name) {
        return Ok(());
    }
    match people.iter().find(|other| !book.are_other_people(name, other)) {
        Some(known_as) => Err(Error::SamePeople { name: name.to_owned(), known_as: (*known_as).to_owned() }),
        None => Ok(()),
    }
}

/// The warning to an owner whose name has other data in another unit.
pub(super) fn other_units(identities: &Identities, name: &str, data: &Identity) -> Option<Warning> {
    let known: Vec<&Identity> = identities.of(name).collect();
    if known.is_empty() || known.iter().any(|known| known.matches(data)) {
        return None;
    }
    Some(Warning { name: name.to_owned(), difference: Difference::Other })
}
