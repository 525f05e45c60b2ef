//! The ledger: which run asked what of which data set, and whether the next one still fits the budget.
//!
//! A run that touches private data charges the ledger *before* it uses its first noisy value. A charge is a promise to
//! have asked at most what its [`Event`] says. It is never taken back: a run that was charged and then crashed, or never
//! started, still counts, because nobody can prove that it did not look. Resuming it under the same id costs nothing.
//!
//! ```
//! use progap::ledger::{Charge, Error, Ledger};
//! use progap_privacy::{Event, Unit};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! let mut ledger = Ledger::create(folder.path().join("privacy.ledger"))?;
//! ledger.register("school", "00ff00ff", Unit::Edge, 2.0, 1e-7)?;
//!
//! let run = Charge::new("run-1", "00ff00ff", Unit::Edge, Event::gaussian(4.7, 1.0)?);
//! let receipt = ledger.charge(run.clone())?;
//! assert!(receipt.epsilon < 1.0);
//! assert_eq!(ledger.charge(run)?, receipt); // resumed, not charged again
//!
//! let greedy = Charge::new("run-2", "00ff00ff", Unit::Edge, Event::gaussian(2.4, 1.0)?);
//! assert!(matches!(ledger.charge(greedy), Err(Error::OverBudget(_))));
//! # Ok::<(), Error>(())
//! ```
//!
//! # What is promised
//! Everything published by all charged runs together is (epsilon, delta)-differentially private for the data set's
//! unit, where epsilon is what [`Ledger::status`] calls `spent`, never above the budget. Results of earlier runs may be
//! used in later ones. Whether they may also decide the *noise* of later ones depends: if all runs are Gaussian, yes
//! (composition of Gaussian differential privacy is fully adaptive); with subsampled or other events, the noise,
//! rates and counts of each run must have been chosen without looking at the results of earlier private runs.
//! `Status::fully_adaptive` says which of the two holds.
//!
//! # What is not
//! The seals show that a row was edited, removed or put in between. They cannot show that somebody replaced the whole
//! file by an older copy or wrote it anew; for that, keep the [`Receipt`] with what was published and ask
//! [`Ledger::holds`].
//!
//! # Units
//! Costs are added like with like. A budget for `edge` takes charges in the unit `edge` and no other. An
//! `edge-undirected` charge is about another set of neighbours, on symmetric graphs, and no conversion is attempted.

mod book;
mod compose;
mod error;
mod file;

use std::path::{Path, PathBuf};
use std::time::Duration;

use progap_privacy::{Event, Unit};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use serde::{Deserialize, Serialize};

pub use book::Charged;
pub use compose::together;
pub use error::{Error, OverBudget, Result};

use book::{Account, Body, Book, Depth};
use file::Draft;

/// How long to wait for other processes, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// An open ledger. Several processes may have the same one open.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    connection: Connection,
}

/// What a run is going to ask.
#[derive(Debug, Clone, PartialEq)]
pub struct Charge {
    /// The run's own id, the same when it is resumed.
    pub run_id: String,
    /// The data set.
    pub fingerprint: String,
    /// The unit to which the event's sensitivities refer.
    pub unit: Unit,
    /// Everything the run will ask, in one tree.
    pub event: Event,
    /// A few words for whoever reads the ledger.
    pub note: String,
    /// The most values of noise that it draws from tables, whose small error is a part of delta.
    pub noise_values: u64,
}

impl Charge {
    /// A charge without a note.
    pub fn new(run_id: impl Into<String>, fingerprint: impl Into<String>, unit: Unit, event: Event) -> Self {
        Charge {
            run_id: run_id.into(),
            fingerprint: fingerprint.into(),
            unit,
            event,
            note: String::new(),
            noise_values: 0,
        }
    }

    /// The same charge with a note.
    pub fn with_note(self, note: impl Into<String>) -> Self {
        Charge { note: note.into(), ..self }
    }

    /// The same charge for a run that draws so many values of noise from tables.
    pub fn with_noise_values(self, noise_values: u64) -> Self {
        Charge { noise_values, ..self }
    }
}

/// Proof that a run was charged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// Its row in the ledger, counted from 1.
    pub row: u64,
    /// When it was charged, in UTC.
    pub time: String,
    /// The run.
    pub run_id: String,
    /// The data set.
    pub fingerprint: String,
    /// Epsilon of the run alone.
    pub epsilon: f64,
    /// Epsilon of all runs up to and with this one.
    pub total: f64,
    /// The delta at which both hold.
    pub delta: f64,
    /// The accountant that computed the total.
    pub accountant: String,
    /// The seal of the row.
    pub hash: String,
}

/// What may be asked of a data set in all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Budget {
    /// The data set's name.
    pub name: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// What the budget protects.
    pub unit: Unit,
    /// The largest epsilon of all runs together.
    pub epsilon: f64,
    /// The delta at which epsilon is counted.
    pub delta: f64,
}

/// Where a data set stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// What its budget protects.
    pub unit: Unit,
    /// The budget.
    pub epsilon: f64,
    /// The delta at which the budget and all figures hold.
    pub delta: f64,
    /// Epsilon of all runs together.
    pub spent: f64,
    /// The accountant that computed `spent`.
    pub accountant: &'static str,
    /// The largest epsilon of a single Gaussian query that would still be accepted, rounded down. It is not
    /// `epsilon - spent`: costs do not simply add.
    pub left: f64,
    /// Number of runs.
    pub runs: usize,
    /// Whether the noise of each run may have been chosen after seeing the results of the runs before.
    pub fully_adaptive: bool,
}

/// What [`Ledger::check`] went through without finding a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Number of rows.
    pub rows: u64,
    /// Number of data sets.
    pub datasets: usize,
    /// Number of charged runs.
    pub runs: usize,
    /// The seal of the last row. Whoever writes it down elsewhere can later tell whether the ledger only grew.
    pub head: String,
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

    /// Where the ledger lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets how long to wait for other processes before giving up with [`Error::Busy`]; a minute unless told otherwise.
    pub fn set_patience(&mut self, patience: Duration) -> Result<()> {
        self.connection.busy_timeout(patience).map_err(|error| self.say(error))
    }

    /// Enters a data set and its budget.
    pub fn register(
        &mut self,
        name: &str,
        fingerprint: &str,
        unit: Unit,
        epsilon: f64,
        delta: f64,
    ) -> Result<()> {
        let name = text("the name", name, 200)?;
        let fingerprint = &hex(fingerprint)?;
        check_budget(epsilon, delta)?;
        self.write(|path, tx, book| {
            let known =
                book.accounts.iter().find(|other| other.fingerprint == *fingerprint || other.name == name);
            if let Some(Account { name, fingerprint, .. }) = known {
                return Err(Error::Registered { name: name.clone(), fingerprint: fingerprint.clone() });
            }
            let body = Body::Register { name: name.to_owned(), unit, epsilon, delta };
            append(path, tx, &book, Draft { fingerprint, run_id: None, event: None, body: json(&body)? })?;
            Ok(())
        })
    }

    /// Changes the budget of a data set, for a reason that is written down. A budget below what is spent is refused.
    pub fn set_budget(&mut self, fingerprint: &str, epsilon: f64, delta: f64, reason: &str) -> Result<()> {
        let fingerprint = &hex(fingerprint)?;
        let reason = text("the reason", reason, 2000)?;
        check_budget(epsilon, delta)?;
        self.write(|path, tx, book| {
            let account = book.account(fingerprint)?;
            let (spent, _) = compose::epsilon(&account.events(), delta)?;
            if !fits(spent, epsilon) {
                let dataset = account.name.clone();
                return Err(Error::BudgetBelowSpent { dataset, spent, delta, asked: epsilon });
            }
            account.tables_fit(0, epsilon, delta)?;
            let body = Body::Budget { epsilon, delta, reason: reason.to_owned() };
            append(path, tx, &book, Draft { fingerprint, run_id: None, event: None, body: json(&body)? })?;
            Ok(())
        })
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
        let Charge { run_id, fingerprint, unit, event, note, noise_values } = &charge;
        let (run_id, fingerprint) = (text("the run id", run_id, 200)?, &hex(fingerprint)?);
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
                return settled(account, run, &charge, fingerprint).map(Verdict::Accepted);
            }
            let account = book.account(fingerprint)?;
            if account.unit != *unit {
                let dataset = account.name.clone();
                return Err(Error::Unit { dataset, registered: account.unit, asked: *unit });
            }
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
                unit: *unit,
                note: note.clone(),
                epsilon,
                total,
                delta,
                accountant: accountant.clone(),
                noise_values: *noise_values,
            };
            let draft =
                Draft { fingerprint, run_id: Some(run_id), event: Some(&event_json), body: json(&body)? };
            let row = append(path, tx, &book, draft)?;
            Ok(Verdict::Accepted(Receipt {
                row: row.seq,
                time: row.time,
                run_id: run_id.to_owned(),
                fingerprint: row.fingerprint,
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

    /// Where one data set stands.
    pub fn status(&self, fingerprint: &str) -> Result<Status> {
        status(self.read(Depth::Seals)?.account(&hex(fingerprint)?)?)
    }

    /// Where all data sets stand, in the order in which they were registered.
    pub fn datasets(&self) -> Result<Vec<Status>> {
        self.read(Depth::Seals)?.accounts.iter().map(status).collect()
    }

    /// All runs of a data set, oldest first. Their figures are those of the day, at the delta of the day.
    pub fn charges(&self, fingerprint: &str) -> Result<Vec<Charged>> {
        let fingerprint = hex(fingerprint)?;
        let mut accounts = self.read(Depth::Seals)?.accounts;
        match accounts.iter().position(|account| account.fingerprint == fingerprint) {
            Some(index) => Ok(accounts.swap_remove(index).runs),
            None => Err(Error::Unregistered { fingerprint }),
        }
    }

    /// The budget of a data set, found by its name or its fingerprint, without adding up what was spent.
    pub fn budget(&self, dataset: &str) -> Result<Budget> {
        let book = self.read(Depth::Seals)?;
        let named = book.accounts.iter().find(|account| account.name == dataset);
        let found = named.map_or_else(|| book.account(&dataset.to_ascii_lowercase()), Ok)?;
        let Account { name, fingerprint, unit, epsilon, delta, .. } = found.clone();
        Ok(Budget { name, fingerprint, unit, epsilon, delta })
    }

    /// Whether the ledger holds exactly what the receipt says.
    pub fn holds(&self, receipt: &Receipt) -> Result<bool> {
        Ok(self.read(Depth::Seals)?.run(&receipt.run_id).is_some_and(|(_, run)| run.receipt == *receipt))
    }

    /// Verifies the file's structure, every seal, every text and every epsilon; the error names the first bad row.
    pub fn check(&self) -> Result<Checked> {
        file::check_structure(&self.path, &self.connection)?;
        let Book { accounts, rows, head, .. } = self.read(Depth::Figures)?;
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

    /// Reads the book, lets `work` add to it, and commits; nothing is written if `work` fails.
    fn write<T>(&mut self, work: impl FnOnce(&Path, &Transaction<'_>, Book) -> Result<T>) -> Result<T> {
        let path = &self.path;
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
fn settled(account: &Account, run: &Charged, charge: &Charge, fingerprint: &str) -> Result<Receipt> {
    let changed = |what| Err(Error::RunChanged { run_id: charge.run_id.clone(), what });
    if account.fingerprint != fingerprint {
        return changed("to another data set");
    }
    if account.unit != charge.unit {
        return changed("in another unit");
    }
    if run.event != charge.event || run.noise_values != charge.noise_values {
        return changed("with another event");
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

fn status(account: &Account) -> Result<Status> {
    let Account { name, fingerprint, unit, epsilon, delta, runs } = account;
    let events = account.events();
    let (spent, accountant) = compose::epsilon(&events, *delta)?;
    Ok(Status {
        name: name.clone(),
        fingerprint: fingerprint.clone(),
        unit: *unit,
        epsilon: *epsilon,
        delta: *delta,
        spent,
        accountant,
        left: compose::largest_query(&events, *epsilon, *delta)?,
        runs: runs.len(),
        fully_adaptive: compose::all_gaussian(&events),
    })
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::invalid("a text", error, "representable in JSON"))
}

fn check_budget(epsilon: f64, delta: f64) -> Result<()> {
    if !(epsilon.is_finite() && epsilon > 0.0) {
        return Err(Error::invalid("epsilon", epsilon, "a finite number above 0"));
    }
    if !(delta > 0.0 && delta < 1.0) {
        return Err(Error::invalid("delta", delta, "strictly between 0 and 1"));
    }
    Ok(())
}

fn text<'a>(name: &'static str, value: &'a str, longest: usize) -> Result<&'a str> {
    if value.trim().is_empty() || value.len() > longest || value.chars().any(char::is_control) {
        return Err(Error::invalid(name, format!("{value:?}"), "a short line of text"));
    }
    Ok(value)
}

/// A fingerprint in lower case.
fn hex(fingerprint: &str) -> Result<String> {
    if !(8..=128).contains(&fingerprint.len()) || !fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Error::invalid(
            "the fingerprint",
            format!("{fingerprint:?}"),
            "8 to 128 hexadecimal digits",
        ));
    }
    Ok(fingerprint.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINGERPRINT: &str = "0123456789abcdef";

    fn ledger() -> (tempfile::TempDir, Ledger) {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::create(folder.path().join("privacy.ledger")).unwrap();
        ledger.register("school", FINGERPRINT, Unit::Edge, 4.0, 1e-7).unwrap();
        (folder, ledger)
    }

    fn run(id: &str) -> Charge {
        Charge::new(id, FINGERPRINT, Unit::Edge, Event::gaussian(10.0, 1.0).unwrap())
            .with_note("x".repeat(1900))
    }

    #[test]
    fn every_commit_is_synced_as_promised() {
        let (_folder, ledger) = ledger();
        for ledger in [&ledger, &Ledger::open(ledger.path()).unwrap()] {
            let mode: String =
                ledger.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
            let sync: i64 =
                ledger.connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
            assert_eq!((mode.as_str(), sync), ("delete", 3));
        }
    }

    #[test]
    fn a_full_disk_refuses_the_charge_and_keeps_the_rest() {
        let (_folder, mut ledger) = ledger();
        let pages: i64 = ledger.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        let limit = |ledger: &Ledger, pages: i64| {
            ledger.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
        };
        limit(&ledger, pages + 2);
        let mut charged = 0;
        let error = loop {
            match ledger.charge(run(&format!("run-{charged}"))) {
                Ok(_) => charged += 1,
                Err(error) => break error,
            }
        };
        assert!(charged > 0 && matches!(error, Error::Full { .. }), "{error}");
        assert_eq!(ledger.check().unwrap().runs, charged);
        limit(&ledger, 1 << 20);
        ledger.charge(run(&format!("run-{charged}"))).unwrap();
        assert_eq!(ledger.check().unwrap().runs, charged + 1);
    }

    #[test]
    fn a_ledger_in_use_is_waited_for_and_then_reported() {
        let (_folder, mut first) = ledger();
        let mut second = Ledger::open(first.path()).unwrap();
        second.set_patience(Duration::from_millis(50)).unwrap();
        let held = first.connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        assert!(matches!(second.charge(run("run")), Err(Error::Busy { .. })));
        assert_eq!(second.status(FINGERPRINT).unwrap().runs, 0); // reading is still possible
        drop(held);
        second.charge(run("run")).unwrap();
    }

    /// A row whose seal is right and whose figures are not: somebody knew how to seal.
    #[test]
    fn figures_are_recomputed() {
        // One Gaussian query of noise 10 costs 0.447078 at this delta (by scipy).
        let honest = Body::Charge {
            unit: Unit::Edge,
            note: String::new(),
            epsilon: 0.4471,
            total: 0.4471,
            delta: 1e-7,
            accountant: "gdp".into(),
            noise_values: 0,
        };
        let forged = |change: fn(&mut Unit, &mut f64, &mut f64)| {
            let mut body = honest.clone();
            if let Body::Charge { unit, total, delta, .. } = &mut body {
                change(unit, total, delta);
            }
            body
        };
        let event = r#"{"type":"gaussian","sigma":10.0,"sensitivity":1.0}"#;
        let cases = [
            (honest.clone(), event, true),
            (honest.clone(), r#"{"type":"gaussian","sigma":9.9,"sensitivity":1.0}"#, false),
            (honest.clone(), r#"{"type":"gaussian","sigma":0.0,"sensitivity":1.0}"#, false),
            (forged(|_, total, _| *total = 0.447), event, false),
            (forged(|_, total, _| *total = 4.1), event, false),
            (forged(|_, _, delta| *delta = 1e-5), event, false),
            (forged(|unit, _, _| *unit = Unit::Node), event, false),
        ];
        for (body, event, right) in cases {
            let (_folder, mut ledger) = ledger();
            ledger
                .write(|path, tx, book| {
                    let body = json(&body)?;
                    append(
                        path,
                        tx,
                        &book,
                        Draft { fingerprint: FINGERPRINT, run_id: Some("run"), event: Some(event), body },
                    )
                })
                .unwrap();
            match ledger.check() {
                Ok(_) => assert!(right, "{body:?} {event}"),
                Err(Error::Tampered { row, .. }) => assert!(!right && row == 2, "{body:?} {event}"),
                Err(error) => panic!("{error}"),
            }
        }
    }
}
