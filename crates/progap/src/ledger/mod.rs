//! The ledger: which run asked what of which data set, and whether the next one still fits the budget.
//!
//! A run that touches private data charges the ledger *before* it uses its first noisy value. A charge says that
//! the run asks at most what its [`Event`] says. It is never taken back: a run that was charged and then crashed, or never
//! started, still counts, because nobody can prove that it did not look. Resuming it under the same id costs nothing.
//!
//! ```
//! use progap::ledger::{Charge, Error, Ledger};
//! use progap_privacy::{Event, Unit};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! let mut ledger = Ledger::create(folder.path().join("privacy.ledger"))?;
//! ledger.register("school", Unit::Edge, 2.0, 1e-7, Some("00ff00ff"))?;
//!
//! // By the data, if the ledger knows them; by their name, with a warning, if it does not.
//! let found = ledger.find(None, "school", "00ff00ff", Unit::Edge)?;
//! assert!(found.name == "school" && found.warning.is_none());
//!
//! let run = Charge::new("run-1", found.name, Unit::Edge, Event::gaussian(4.7, 1.0)?);
//! let receipt = ledger.charge(run.clone())?;
//! assert!(receipt.epsilon < 1.0);
//! assert_eq!(ledger.charge(run)?, receipt); // resumed, not charged again
//!
//! let greedy = Charge::new("run-2", "school", Unit::Edge, Event::gaussian(2.4, 1.0)?);
//! assert!(matches!(ledger.charge(greedy), Err(Error::OverBudget(_))));
//! # Ok::<(), Error>(())
//! ```
//!
//! # What is guaranteed
//! Everything published by all charged runs together is (epsilon, delta)-differentially private for the data set's
//! unit, where epsilon is what [`Ledger::status`] calls `spent`, never above the budget. Results of earlier runs may be
//! used in later ones. Whether they may also decide the *noise* of later ones depends: if all runs are Gaussian, yes
//! (composition of Gaussian differential privacy is fully adaptive); with subsampled or other events, the noise,
//! rates and counts of each run must have been chosen without looking at the results of earlier private runs.
//! `Status::fully_adaptive` says which of the two holds.
//!
//! # Names, units and identities
//! A data set is what its owner calls it, and has one budget for each unit. Which data a name means is kept as a keyed
//! hash, under a secret of the file's, in a table of its own: [`Ledger::find`] finds the account of some
//! data by it, and warns where a name comes with other data. Nothing in a row, a seal or a receipt depends on the data.
//!
//! # What is not guaranteed
//! The seals show that a row was edited, removed or put in between. They cannot show that somebody replaced the whole
//! file by an older copy or wrote it anew; for that, keep the [`Receipt`] with what was published and ask
//! [`Ledger::holds`].
//!
//! # Units
//! Costs are added like with like. A budget for `edge` takes charges in the unit `edge` and no other. An
//! `edge-undirected` charge is about another set of neighbours, on symmetric graphs, and no conversion is attempted.

mod book;
mod compose;
mod entry;
mod error;
mod file;
mod identity;
mod upgrade;

use std::path::{Path, PathBuf};
use std::time::Duration;

use progap_privacy::noise::tables;
use progap_privacy::{Event, Unit};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use serde::Serialize;

pub use compose::together;
pub use entry::{Budget, Charge, Charged, Checked, Receipt, Status};
pub use error::{Error, OverBudget, Result};
pub use identity::{Found, Warning};

use crate::settings::{DELTAS, EPSILONS};
use book::{Account, Body, Book, Depth};
use file::Draft;
use identity::{Identities, Secret};

/// How long to wait for other processes, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// An open ledger. Several processes may have the same one open.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    connection: Connection,
    /// A file of version 1 that may not be written, and so was not upgraded: it can be read, and nothing else.
    old: bool,
}

impl Ledger {
    /// Makes a new, empty ledger. An existing file is never touched.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let connection = file::create(&path, PATIENCE)?;
        Ok(Ledger { path, connection, old: false })
    }

    /// Opens a ledger. One of version 1 is upgraded, which loses nothing; where it may not be written, it can be read as it is.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let mut connection = file::open(&path, PATIENCE)?;
        let old = match file::version(&path, &connection)? {
            file::VERSION => false,
            _ => match upgrade::upgrade(&path, &mut connection) {
                Ok(()) => false,
                Err(Error::ReadOnly { .. }) => true,
                Err(error) => return Err(error),
            },
        };
        Ok(Ledger { path, connection, old })
    }

    /// Where the ledger lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets how long to wait for other processes before giving up with [`Error::Busy`]; a minute unless told otherwise.
    pub fn set_patience(&mut self, patience: Duration) -> Result<()> {
        self.connection.busy_timeout(patience).map_err(|error| self.say(error))
    }

    /// Whether [`register`](Self::register) would take this name and budget in an empty ledger.
    ///
    /// A budget that no run could ever be charged to is refused: outside of what settings accept, or more than noise from
    /// tables can keep.
    pub fn check_entry(name: &str, epsilon: f64, delta: f64) -> Result<()> {
        text("the name", name, 200)?;
        check_budget(epsilon, delta)?;
        check_tables(name, 1, epsilon, delta)
    }

    /// Enters the budget of a data set for a unit. `data` is the fingerprint of the data, of which a keyed hash is kept
    /// beside the rows; without it they cannot be told from others. Says where the name has other data in another unit.
    pub fn register(
        &mut self,
        name: &str,
        unit: Unit,
        epsilon: f64,
        delta: f64,
        data: Option<&str>,
    ) -> Result<Option<Warning>> {
        self.register_units(name, &[unit], epsilon, delta, data)
    }

    /// Enters the same budget for several units, all of them or none.
    pub fn register_units(
        &mut self,
        name: &str,
        units: &[Unit],
        epsilon: f64,
        delta: f64,
        data: Option<&str>,
    ) -> Result<Option<Warning>> {
        Self::check_entry(name, epsilon, delta)?;
        let mut warning = None;
        for (at, &unit) in units.iter().enumerate() {
            if units[..at].contains(&unit) {
                return Err(Error::Registered { name: name.to_owned(), unit });
            }
        }
        self.write(|path, tx, mut book| {
            let identities = Identities::read(path, tx)?;
            let identity = data.map(|data| Secret::read(path, tx)?.identity(data)).transpose()?;
            if let Some(identity) = &identity {
                warning = identity::other_units(&book, &identities, name, identity);
            }
            for &unit in units {
                if book.accounts.iter().any(|other| other.name == name && other.unit == unit) {
                    return Err(Error::Registered { name: name.to_owned(), unit });
                }
                if let Some(identity) = &identity {
                    identity::refuse_second_name(&book, &identities, name, identity, unit)?;
                    identity::write(path, tx, name, unit, identity)?;
                }
                let body = Body::Register { name: name.to_owned(), unit, epsilon, delta };
                let row = append(path, tx, &book, Draft { run_id: None, event: None, body: json(&body)? })?;
                (book.rows, book.head) = (row.seq, row.hash);
            }
            Ok(())
        })?;
        Ok(warning)
    }

    /// Changes the budget of a data set, for a reason that is written down. A budget below what is spent is refused.
    pub fn set_budget(
        &mut self,
        name: &str,
        unit: Unit,
        epsilon: f64,
        delta: f64,
        reason: &str,
    ) -> Result<()> {
        let reason = text("the reason", reason, 2000)?;
        check_budget(epsilon, delta)?;
        self.write(|path, tx, book| {
            let account = book.account(path, name, unit)?;
            let (spent, _) = compose::epsilon(&account.events(), delta)?;
            if !fits(spent, epsilon) {
                let dataset = account.name.clone();
                return Err(Error::BudgetBelowSpent { dataset, spent, delta, asked: epsilon });
            }
            account.tables_fit(1, epsilon, delta)?;
            let (dataset, unit) = (Some(name.to_owned()), Some(unit));
            let body = Body::Budget { dataset, unit, epsilon, delta, reason: reason.to_owned() };
            append(path, tx, &book, Draft { run_id: None, event: None, body: json(&body)? })?;
            Ok(())
        })
    }

    /// The account to charge for a run on some data: the one of that name if `asked` is given; else the one whose data
    /// have this fingerprint; else the one called like the data set. Where the data are not those that the ledger knows
    /// under the name, it says so: tell the owner before charging.
    ///
    /// # Errors
    /// No such account, or none for the unit.
    pub fn find(&self, asked: Option<&str>, dataset: &str, data: &str, unit: Unit) -> Result<Found> {
        if self.old {
            return Err(Error::ReadOnly { path: self.path.clone() });
        }
        let tx = self.connection.unchecked_transaction().map_err(|error| self.say(error))?;
        let book = Book::read(&self.path, &tx, Depth::Seals)?;
        let identities = Identities::read(&self.path, &tx)?;
        let identity = Secret::read(&self.path, &tx)?.identity(data)?;
        let wanted = identity::Wanted { asked, own_name: dataset, identity: &identity, unit };
        identity::find(&self.path, &book, &identities, &wanted)
    }

    /// Charges a run, or refuses it.
    ///
    /// # Proof definition
    /// When this returns a receipt, the row is on disk and synced, and all charges of the data set with this one cost at
    /// most the budget. The decision and the row are one transaction, in which no other process can write. A run that
    /// was charged before is not charged again. When this returns an error, either nothing was written or, if the very
    /// last step of the commit failed, the charge stands: the ledger may then count too much, never too little. The
    /// decision depends on the parameters of events only, not on private data.
    pub fn charge(&mut self, charge: Charge) -> Result<Receipt> {
        let Charge { run_id, dataset, unit, event, note, noise_values, key_commitment, seeded } = &charge;
        let run_id = text("the run id", run_id, 200)?;
        if *seeded {
            return Err(Error::Seeded { run_id: run_id.to_owned() });
        }
        let key_commitment =
            key_commitment.as_deref().map(|hash| hex("the commitment to a key", hash)).transpose()?;
        if note.len() > 2000 {
            return Err(Error::invalid(
                "the note",
                format!("{} bytes long", note.len()),
                "at most 2000 bytes long",
            ));
        }
        event.validate()?;
        let event_json = json(event)?;
        // Reading it back now is cheaper than finding out later that a row cannot be read.
        if Event::from_json(&event_json)? != *event {
            return Err(Error::invalid("the event", "changed by writing it down", "representable in JSON"));
        }
        let outcome = self.write(|path, tx, book| {
            if let Some((account, run)) = book.run(run_id) {
                return settled(account, run, &charge, key_commitment.as_deref()).map(Verdict::Accepted);
            }
            let account = book.account(path, dataset, *unit)?;
            let mut events = account.events();
            events.push(event);
            let (total, accountant) = compose::epsilon(&events, account.delta)?;
            if !fits(total, account.epsilon) {
                return Ok(Verdict::Refused(account.clone(), total));
            }
            account.tables_fit(*noise_values, account.epsilon, account.delta)?;
            let (epsilon, _) = compose::epsilon(&[event], account.delta)?;
            let (delta, accountant) = (account.delta, accountant.to_owned());
            let body = Body::Charge {
                dataset: Some(dataset.clone()),
                unit: *unit,
                note: note.clone(),
                epsilon,
                total,
                delta,
                accountant: accountant.clone(),
                noise_values: *noise_values,
                key_commitment,
            };
            let draft = Draft { run_id: Some(run_id), event: Some(&event_json), body: json(&body)? };
            let row = append(path, tx, &book, draft)?;
            Ok(Verdict::Accepted(Receipt {
                row: row.seq,
                time: row.time,
                run_id: run_id.to_owned(),
                dataset: dataset.clone(),
                unit: *unit,
                epsilon,
                total,
                delta,
                accountant,
                hash: row.hash,
            }))
        })?;
        match outcome {
            Verdict::Accepted(receipt) => Ok(receipt),
            // Explaining takes longer than deciding, so the ledger is free again by now.
            Verdict::Refused(account, total) => Err(refusal(&account, event, total)?),
        }
    }

    /// Where one data set stands, for one unit.
    pub fn status(&self, name: &str, unit: Unit) -> Result<Status> {
        let (book, identities) = self.read_all()?;
        status(book.account(&self.path, name, unit)?, &identities)
    }

    /// Where all data sets stand, in the order in which they were registered.
    pub fn datasets(&self) -> Result<Vec<Status>> {
        let (book, identities) = self.read_all()?;
        book.accounts.iter().map(|account| status(account, &identities)).collect()
    }

    /// All runs of a data set, oldest first. Their figures are those of the day, at the delta of the day.
    pub fn charges(&self, name: &str, unit: Unit) -> Result<Vec<Charged>> {
        Ok(self.read(Depth::Seals)?.account(&self.path, name, unit)?.runs.clone())
    }

    /// The budget of a data set for a unit, or its only one, without adding up what was spent.
    pub fn budget(&self, name: &str, unit: Option<Unit>) -> Result<Budget> {
        let book = self.read(Depth::Seals)?;
        let found = match unit {
            Some(unit) => book.account(&self.path, name, unit)?,
            None => book.only(&self.path, name)?,
        };
        let Account { name, unit, epsilon, delta, .. } = found.clone();
        Ok(Budget { name, unit, epsilon, delta })
    }

    /// Whether the ledger holds exactly what the receipt says.
    pub fn holds(&self, receipt: &Receipt) -> Result<bool> {
        Ok(self.read(Depth::Seals)?.run(&receipt.run_id).is_some_and(|(_, run)| run.receipt == *receipt))
    }

    /// Verifies the file's structure, every seal, every text and every epsilon; the error names the first bad row.
    pub fn check(&self) -> Result<Checked> {
        file::check_structure(&self.path, &self.connection)?;
        let book = self.read(Depth::Figures)?;
        if !self.old {
            Secret::read(&self.path, &self.connection)?;
            Identities::read(&self.path, &self.connection)?.check(&self.path, &book)?;
        }
        let Book { accounts, rows, head, .. } = book;
        let runs = accounts.iter().map(|account| account.runs.len()).sum();
        Ok(Checked { rows, datasets: accounts.len(), runs, head })
    }

    fn say(&self, error: rusqlite::Error) -> Error {
        Error::from_sqlite(&self.path, error)
    }

    fn read(&self, depth: Depth) -> Result<Book> {
        // One transaction, so that the rows and their number are of the same moment.
        let tx = self.connection.unchecked_transaction().map_err(|error| self.say(error))?;
        Book::read(&self.path, &tx, depth)
    }

    /// The rows and the identities of the same moment.
    fn read_all(&self) -> Result<(Book, Identities)> {
        let tx = self.connection.unchecked_transaction().map_err(|error| self.say(error))?;
        let book = Book::read(&self.path, &tx, Depth::Seals)?;
        let identities = if self.old { Identities::none() } else { Identities::read(&self.path, &tx)? };
        Ok((book, identities))
    }

    /// Reads the book, lets `work` add to it, and commits; nothing is written if `work` fails.
    fn write<T>(&mut self, work: impl FnOnce(&Path, &Transaction<'_>, Book) -> Result<T>) -> Result<T> {
        let path = &self.path;
        if self.old {
            return Err(Error::ReadOnly { path: path.clone() });
        }
        let say = |error| Error::from_sqlite(path, error);
        // Immediate: from here on nobody else can write, so what is read stays true until the commit.
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(say)?;
        let book = Book::read(path, &tx, Depth::Seals)?;
        let result = work(path, &tx, book)?;
        tx.commit().map_err(say)?;
        Ok(result)
    }
}

enum Verdict {
    Accepted(Receipt),
    Refused(Account, f64),
}

/// Whether an epsilon is within a budget; not a number never is.
fn fits(epsilon: f64, budget: f64) -> bool {
    epsilon <= budget
}

fn append(path: &Path, tx: &Transaction<'_>, book: &Book, draft: Draft<'_>) -> Result<file::Row> {
    file::append(path, tx, book.rows, &book.head, draft)
}

/// The receipt of a run that was charged before, if it was the same run.
fn settled(account: &Account, run: &Charged, charge: &Charge, key: Option<&str>) -> Result<Receipt> {
    let changed = |what| Err(Error::RunChanged { run_id: charge.run_id.clone(), what });
    if account.name != charge.dataset {
        return changed("to another data set");
    }
    if account.unit != charge.unit {
        return changed("in another unit");
    }
    if run.event != charge.event || run.noise_values != charge.noise_values {
        return changed("with another event");
    }
    if run.key_commitment.as_deref() != key {
        return changed("with another key");
    }
    Ok(run.receipt.clone())
}

fn refusal(account: &Account, event: &Event, total: f64) -> Result<Error> {
    let Account { name, epsilon, delta, .. } = account;
    let events = account.events();
    Ok(Error::OverBudget(Box::new(OverBudget {
        dataset: name.clone(),
        spent: compose::epsilon(&events, *delta)?.0,
        asked: compose::epsilon(&[event], *delta)?.0,
        total,
        budget: *epsilon,
        delta: *delta,
        left: compose::largest_query(&events, *epsilon, *delta)?,
    })))
}

fn status(account: &Account, identities: &Identities) -> Result<Status> {
    let Account { name, fingerprint, unit, epsilon, delta, runs } = account;
    let events = account.events();
    let (spent, accountant) = compose::epsilon(&events, *delta)?;
    Ok(Status {
        name: name.clone(),
        unit: *unit,
        epsilon: *epsilon,
        delta: *delta,
        spent,
        accountant,
        left: compose::largest_query(&events, *epsilon, *delta)?,
        runs: runs.len(),
        fully_adaptive: compose::all_gaussian(&events),
        identity_known: identities.of(name, *unit).is_some(),
        upgraded: fingerprint.is_some(),
    })
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::invalid("a text", error, "representable in JSON"))
}

/// Refuses what no run can be asked for.
fn check_budget(epsilon: f64, delta: f64) -> Result<()> {
    if !EPSILONS.contains(&epsilon) {
        let [low, high] = [EPSILONS.start(), EPSILONS.end()];
        let expected = format!("{low} to {high}, as for a run: no other can ever be spent");
        return Err(Error::invalid("epsilon", epsilon, expected));
    }
    if !DELTAS.contains(&delta) {
        let [low, high] = [DELTAS.start(), DELTAS.end()];
        let expected = format!("{low:e} to {high}, as for a run: no other can ever be spent");
        return Err(Error::invalid("delta", format!("{delta:e}"), expected));
    }
    Ok(())
}

/// Refuses a budget that this many values of noise from tables cannot keep.
fn check_tables(name: &str, values: u64, epsilon: f64, delta: f64) -> Result<()> {
    match tables::fit(values, epsilon, delta) {
        true => Ok(()),
        false => Err(Error::Tables { dataset: name.to_owned(), epsilon, delta }),
    }
}

fn text<'a>(name: &'static str, value: &'a str, longest: usize) -> Result<&'a str> {
    if value.trim().is_empty() || value.len() > longest || value.chars().any(char::is_control) {
        return Err(Error::invalid(name, format!("{value:?}"), "a short line of text"));
    }
    Ok(value)
}

/// A hash in lower case.
fn hex(name: &'static str, hash: &str) -> Result<String> {
    if !(8..=128).contains(&hash.len()) || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Error::invalid(name, format!("{hash:?}"), "8 to 128 hexadecimal digits"));
    }
    Ok(hash.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
