#![doc = include_str!("../README.md")]
//!
//! The ledger: which run asked what of which data set, and whether the next one still fits the budget.
//!
//! A run that touches private data charges the ledger *before* it uses its first noisy value. A charge says that the
//! run asks at most what its [`Event`](progap_privacy::Event) says. It is never taken back: a run that was charged and
//! then crashed, or never started, still counts, because nobody can prove that it did not look. Resuming it under the
//! same id costs nothing.
//!
//! ```
//! use progap_ledger::{Charge, Error, Ledger};
//! use progap_privacy::{Event, Unit};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! let mut ledger = Ledger::create(folder.path().join("privacy.ledger"))?;
//! # let data = progap_graph::synth::SocialNetwork::new(300).edges(3000).classes(2).seed(1).generate().unwrap();
//! let people = ledger.identity(&data)?;
//! ledger.register("school", Unit::Edge, 2.0, 1e-7, Some(&people))?;
//!
//! // By the data, if the ledger knows them; by their name, with a warning, if it does not.
//! let found = ledger.find(None, "some file", &people, Unit::Edge)?;
//! assert!(found.name == "school" && found.warning.is_none());
//!
//! let run = Charge::new("run-1", found.name, Unit::Edge, Event::gaussian(4.7, 1.0)?);
//! let receipt = ledger.charge(run.clone())?;
//! assert!(receipt.cost.epsilon < 1.0);
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
//! # Names, units and people
//! A data set is what its owner calls it, and has one budget for each unit. Which people a name means is kept as
//! keyed sketches of ids, edges and rows, under a secret of the file's, in a table of its own: [`Ledger::find`] finds
//! the account of some data by them, in any order, with any label, and with a little more or less; [`Ledger::enter`]
//! refuses the same people a second budget under another name, unless the owner says that they are others, for a
//! reason that is recorded. Nothing in a row, a seal or a receipt depends on the data.
//!
//! A run is charged in every unit that its data have a budget for, in one row
//! ([`Event::by_inclusion`](progap_privacy::Event::by_inclusion)). A run at edge level shows features and labels, so a
//! data set with a budget for nodes refuses it, unless the owner says that they are public. Then that budget counts the
//! runs at node level alone: what runs at edge level tell of one node's whole list of receivers grows with the length
//! of the list, and nothing bounds it.
//!
//! # What is not guaranteed
//! The seals show that a row was edited, removed or put in between. They cannot show that somebody replaced the whole
//! file by an older copy or wrote it anew; for that, keep the [`Receipt`] with what was published and ask
//! [`Ledger::check_against`].

#![forbid(unsafe_code)]

mod book;
mod charge;
mod compose;
mod entry;
mod error;
mod file;
mod find;
mod forecast;
mod identity;
mod later;
pub mod sqlite;

use std::path::{Path, PathBuf};
use std::time::Duration;

use progap_graph::Dataset;
use progap_privacy::calibrate::{DELTAS, EPSILONS};
use progap_privacy::noise::{RunKey, tables};
use progap_privacy::{Event, Unit};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use serde::Serialize;

pub use compose::together;
pub use entry::{Budget, Charge, Charged, Checked, Cost, Entry, Receipt, Status};
pub use error::{Error, OverBudget, Result};
pub use find::{Difference, Found, Warning};
pub use forecast::Forecast;
pub use identity::Identity;
pub use later::Later;

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
}

impl Ledger {
    /// Makes a new, empty ledger. An existing file is never touched.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let connection = file::create(&path, PATIENCE)?;
        Ok(Ledger { path, connection })
    }

    /// Opens a ledger.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let connection = file::open(&path, PATIENCE)?;
        Ok(Ledger { path, connection })
    }

    /// Opens a ledger, or makes one where there is none.
    pub fn open_or_create(path: impl AsRef<Path>) -> Result<Self> {
        match Self::create(&path) {
            Err(Error::Exists { .. }) => Self::open(path),
            made => made,
        }
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
    /// A budget that no run could ever be charged to is refused: outside of what settings accept, or more than noise
    /// from tables can keep.
    pub fn check_entry(name: &str, epsilon: f64, delta: f64) -> Result<()> {
        text("the name", name, 200)?;
        check_budget(epsilon, delta)?;
        check_tables(name, 1, epsilon, delta)
    }

    /// The identity of data under the secret of this ledger.
    pub fn identity(&self, dataset: &Dataset) -> Result<Identity> {
        Ok(Secret::read(&self.path, &self.connection)?.identity(dataset))
    }

    /// Enters the budget of a data set for a unit, see [`Ledger::enter`].
    pub fn register(
        &mut self,
        name: &str,
        unit: Unit,
        epsilon: f64,
        delta: f64,
        data: Option<&Identity>,
    ) -> Result<Option<Warning>> {
        self.enter(&Entry::new(name, &[unit], epsilon, delta), data)
    }

    /// Enters a budget for all units of the entry or for none. Without an identity the data cannot be told from
    /// others. Runs on the data set that were charged before, in whatever unit, count in the new budget too. Says
    /// where the name has other data in another unit.
    ///
    /// # Errors
    /// People who have a budget under another name, unless the entry says that they are others; a budget for nodes
    /// where runs at edge level have shown features and labels, unless the entry says that these are public; a budget
    /// below what is spent.
    pub fn enter(&mut self, entry: &Entry, data: Option<&Identity>) -> Result<Option<Warning>> {
        let Entry { name, units, epsilon, delta, other_people, public_rows } = entry;
        let (epsilon, delta) = (*epsilon, *delta);
        Self::check_entry(name, epsilon, delta)?;
        other_people.as_deref().map(|reason| text("the reason", reason, 2000)).transpose()?;
        for (at, &unit) in units.iter().enumerate() {
            if units[..at].contains(&unit) {
                return Err(Error::Registered { name: name.clone(), unit });
            }
        }
        self.write(|path, tx, mut book, identities| {
            if let (Some(data), None) = (data, other_people) {
                find::refuse_same_people(&book, &identities.names(&book, data), name)?;
            }
            if *public_rows && !book.has_public_rows(name) {
                book.add(path, tx, &Body::PublicRows { dataset: name.clone(), reason: None })?;
            }
            for &unit in units {
                if book.accounts_of(name).any(|other| other.unit == unit) {
                    return Err(Error::Registered { name: name.clone(), unit });
                }
                let uncounted =
                    |run: &Charged| book.uncounted(&run.receipt.run_id, name, unit, run.event_in(unit));
                if let Some(error) = book.runs_of(name).find_map(uncounted) {
                    return Err(error);
                }
                book.check_fits(name, unit, epsilon, delta)?;
                if let Some(data) = data {
                    identity::write(path, tx, (name, unit), data)?;
                }
                let (name, known, other_people) = (name.clone(), data.is_some(), other_people.clone());
                book.add(path, tx, &Body::Register { name, unit, epsilon, delta, known, other_people })?;
            }
            Ok(data.and_then(|data| find::other_units(&identities, name, data)))
        })
    }

    /// States that features and labels of a data set are public, for a reason that is written down: runs at edge
    /// level, which show them, are then accepted beside a budget for nodes, and not counted in it.
    pub fn set_public_rows(&mut self, name: &str, reason: &str) -> Result<()> {
        let reason = text("the reason", reason, 2000)?.to_owned();
        self.write(|path, tx, mut book, _| {
            if book.accounts_of(name).next().is_none() {
                book.account(path, name, Unit::Node)?;
            }
            book.add(path, tx, &Body::PublicRows { dataset: name.to_owned(), reason: Some(reason) })
        })
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
        self.write(|path, tx, mut book, _| {
            book.account(path, name, unit)?;
            book.check_fits(name, unit, epsilon, delta)?;
            let (dataset, reason) = (name.to_owned(), reason.to_owned());
            book.add(path, tx, &Body::Budget { dataset, unit, epsilon, delta, reason })
        })
    }

    /// The account to charge for a run on some data: the one of that name if `asked` is given; else the one whose data
    /// are about the same people; else the one called like the data set. Where the data are not those that the ledger
    /// knows under the name, it says so: tell the owner before charging.
    ///
    /// # Errors
    /// No such account, or none for the unit; data about people who have a budget under another name than the one
    /// that is asked for.
    pub fn find(&self, asked: Option<&str>, own_name: &str, data: &Identity, unit: Unit) -> Result<Found> {
        let (book, identities) = self.read_all()?;
        find::find(&self.path, &book, &identities, &find::Wanted { asked, own_name, data, unit })
    }

    /// What nodes are known by in a charge about records that arrived later ([`Later::nodes`]).
    ///
    /// # Errors
    /// A ledger that cannot be read.
    pub fn node_tags<'i>(&self, ids: impl IntoIterator<Item = &'i str>) -> Result<Vec<u64>> {
        let secret = Secret::read(&self.path, &self.connection)?;
        Ok(ids.into_iter().map(|id| secret.node_tag(id)).collect())
    }

    /// A digest of texts that nobody can make or test without this ledger.
    ///
    /// # Errors
    /// A ledger that cannot be read.
    pub fn digest<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Result<String> {
        Ok(Secret::read(&self.path, &self.connection)?.digest(texts))
    }

    /// The key of the noise for questions about one release: the same whenever it is asked for, so that a question that
    /// was lost in a crash is asked again with the same noise. As secret as the ledger.
    ///
    /// # Errors
    /// A ledger that cannot be read.
    pub fn noise_key(&self, release: &str) -> Result<RunKey> {
        Ok(Secret::read(&self.path, &self.connection)?.noise_key(release))
    }

    /// The runs with an event in a unit, under a name if one is given: the data set and the id of each, oldest first.
    ///
    /// # Errors
    /// A ledger that cannot be read.
    pub fn runs_with(&self, event: &Event, unit: Unit, name: Option<&str>) -> Result<Vec<(String, String)>> {
        let (book, _) = self.read_all()?;
        let is_it = |run: &&Charged| {
            let receipt = &run.receipt;
            let named = name.is_none_or(|name| receipt.dataset == name);
            run.later.is_none() && receipt.cost.unit == unit && run.event == *event && named
        };
        let found = book.runs.iter().filter(is_it);
        Ok(found.map(|run| (run.receipt.dataset.clone(), run.receipt.run_id.clone())).collect())
    }

    /// Where one data set stands, for one unit.
    pub fn status(&self, name: &str, unit: Unit) -> Result<Status> {
        let (book, _) = self.read_all()?;
        status(&book, book.account(&self.path, name, unit)?)
    }

    /// Where all data sets stand, in the order in which they were registered.
    pub fn datasets(&self) -> Result<Vec<Status>> {
        let (book, _) = self.read_all()?;
        book.accounts.iter().map(|account| status(&book, account)).collect()
    }

    /// All runs of a data set that count in a unit, oldest first. Their figures are those of the day, at the delta of
    /// the day.
    pub fn charges(&self, name: &str, unit: Unit) -> Result<Vec<Charged>> {
        let (book, _) = self.read_all()?;
        book.account(&self.path, name, unit)?;
        Ok(book.runs_of(name).filter(|run| run.event_in(unit).is_some()).cloned().collect())
    }

    /// The budget of a data set for a unit, or its only one, without adding up what was spent.
    pub fn budget(&self, name: &str, unit: Option<Unit>) -> Result<Budget> {
        let (book, _) = self.read_all()?;
        let found = match unit {
            Some(unit) => book.account(&self.path, name, unit)?,
            None => book.only(&self.path, name)?,
        };
        let Account { name, unit, epsilon, delta, .. } = found.clone();
        Ok(Budget { name, unit, epsilon, delta })
    }

    /// Refuses a ledger that does not hold exactly what the receipts say, as an older copy of it does not hold those
    /// that are later.
    pub fn check_against(&self, receipts: &[Receipt]) -> Result<()> {
        let (book, _) = self.read_all()?;
        for receipt in receipts {
            let what = match book.run(&receipt.run_id) {
                Some(run) if run.receipt == *receipt => continue,
                Some(run) => format!("that run is its row {}, and another one", run.receipt.row),
                None if receipt.row > book.rows => format!("it ends with row {}", book.rows),
                None => "that row is another one".to_owned(),
            };
            let (path, run_id) = (self.path.clone(), receipt.run_id.clone());
            return Err(Error::RolledBack { path, run_id, row: receipt.row, what });
        }
        Ok(())
    }

    /// Verifies the file's structure, every seal, every text, every identity and every epsilon; the error names the
    /// first bad row.
    pub fn check(&self) -> Result<Checked> {
        file::check_structure(&self.path, &self.connection)?;
        let (Book { accounts, runs, rows, head, .. }, _) = self.read(Depth::Figures)?;
        Ok(Checked { rows, datasets: accounts.len(), runs: runs.len(), head })
    }

    fn say(&self, error: rusqlite::Error) -> Error {
        Error::from_sqlite(&self.path, error)
    }

    /// The rows and the identities of the same moment.
    fn read(&self, depth: Depth) -> Result<(Book, Identities)> {
        let tx = self.connection.unchecked_transaction().map_err(|error| self.say(error))?;
        read(&self.path, &tx, depth)
    }

    fn read_all(&self) -> Result<(Book, Identities)> {
        self.read(Depth::Seals)
    }

    /// Reads the book, lets `work` add to it, and commits; nothing is written if `work` fails.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&Path, &Transaction<'_>, Book, Identities) -> Result<T>,
    ) -> Result<T> {
        let path = &self.path;
        let say = |error| Error::from_sqlite(path, error);
        // Immediate: from here on nobody else can write, so what is read stays true until the commit.
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(say)?;
        let (book, identities) = read(path, &tx, Depth::Seals)?;
        let result = work(path, &tx, book, identities)?;
        tx.commit().map_err(say)?;
        Ok(result)
    }
}

/// All that a ledger holds; whatever is damaged is an error, so that nothing relies on a part of it.
fn read(path: &Path, connection: &Connection, depth: Depth) -> Result<(Book, Identities)> {
    let book = Book::read(path, connection, depth)?;
    let identities = Identities::read(path, connection, &book)?;
    Ok((book, identities))
}

impl Book {
    /// Adds a row that is no charge, after all the others.
    fn add(&mut self, path: &Path, tx: &Transaction<'_>, body: &Body) -> Result<()> {
        let row = append(path, tx, self, Draft { run_id: None, event: None, body: json(body)? })?;
        (self.rows, self.head) = (row.seq, row.hash);
        if let Body::PublicRows { dataset, .. } = body {
            self.state_public(dataset);
        }
        Ok(())
    }

    /// Refuses a budget below what is spent, or one that noise from tables cannot keep.
    fn check_fits(&self, name: &str, unit: Unit, epsilon: f64, delta: f64) -> Result<()> {
        let (spent, _) = compose::epsilon(&self.events(name, unit)?, delta)?;
        if !fits(spent, epsilon) {
            return Err(Error::BudgetBelowSpent { dataset: name.to_owned(), spent, delta, asked: epsilon });
        }
        self.tables_fit(name, 1, epsilon, delta)
    }
}

/// Whether an epsilon is within a budget; not a number never is.
fn fits(epsilon: f64, budget: f64) -> bool {
    epsilon <= budget
}

fn append(path: &Path, tx: &Transaction<'_>, book: &Book, draft: Draft<'_>) -> Result<file::Row> {
    file::append(path, tx, book.rows, &book.head, draft)
}

fn status(book: &Book, account: &Account) -> Result<Status> {
    let Account { name, unit, epsilon, delta, known, other_people } = account;
    let (events, runs) = (book.events(name, *unit)?, book.counted(name, *unit));
    let (spent, accountant) = compose::epsilon(&events, *delta)?;
    Ok(Status {
        name: name.clone(),
        unit: *unit,
        epsilon: *epsilon,
        delta: *delta,
        spent,
        accountant,
        left: compose::largest_query(&events, *epsilon, *delta)?,
        runs,
        fully_adaptive: compose::all_gaussian(&events),
        identity_known: *known,
        other_people: other_people.clone(),
        public_rows: book.has_public_rows(name),
        uncounted: book.runs_of(name).count() - runs,
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
