//! The meaning of a ledger's rows: they are replayed from the first to the last, and nothing else is remembered.

use std::path::Path;

use progap_privacy::{Event, Unit};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::compose;
use super::entry::{Charged, Receipt};
use super::error::{Error, Result};
use super::file::{self, Row};
use super::fits;

/// How far a recorded epsilon may lie below a recomputed one: the grid of an accountant is finite.
const RECOMPUTED: f64 = 1.0 - 1e-4;

/// The content of a row, besides the run and its event. Rows of version 1 name their data set by its fingerprint, in a column of
/// its own; rows since then by its name and unit, in here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Body {
    Register {
        name: String,
        unit: Unit,
        epsilon: f64,
        delta: f64,
    },
    Budget {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dataset: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unit: Option<Unit>,
        epsilon: f64,
        delta: f64,
        reason: String,
    },
    Charge {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dataset: Option<String>,
        unit: Unit,
        note: String,
        epsilon: f64,
        total: f64,
        delta: f64,
        accountant: String,
        #[serde(default)]
        noise_values: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_commitment: Option<String>,
    },
    /// Ends the rows of version 1.
    Upgrade {
        salt: String,
    },
}

impl Body {
    /// The account that a row since version 2 speaks of.
    fn account(&self) -> Option<(&str, Unit)> {
        match self {
            Body::Register { name, unit, .. } => Some((name, *unit)),
            Body::Budget { dataset, unit, .. } => Some((dataset.as_deref()?, (*unit)?)),
            Body::Charge { dataset, unit, .. } => Some((dataset.as_deref()?, *unit)),
            Body::Upgrade { .. } => None,
        }
    }
}

/// A data set with its budget for one unit, and everything that was charged to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Account {
    pub name: String,
    pub unit: Unit,
    /// By which version 1 knew the data.
    pub fingerprint: Option<String>,
    pub epsilon: f64,
    pub delta: f64,
    pub runs: Vec<Charged>,
}

impl Account {
    pub(super) fn events(&self) -> Vec<&Event> {
        self.runs.iter().map(|run| &run.event).collect()
    }

    /// Whether a budget can be kept with the noise tables of all runs and of `more` values.
    pub(super) fn tables_fit(&self, more: u64, epsilon: f64, delta: f64) -> Result<(), Error> {
        let values = self.runs.iter().fold(more, |sum, run| sum.saturating_add(run.noise_values));
        super::check_tables(&self.name, values, epsilon, delta)
    }
}

/// How thoroughly a ledger is read.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Depth {
    /// Seals, JSON and the rules of the book.
    Seals,
    /// Also every epsilon, recomputed.
    Figures,
}

/// Which rows may come next.
#[derive(Clone, Copy, PartialEq)]
enum Era {
    /// Nothing was read yet.
    Start,
    /// Rows of version 1.
    Old,
    /// Rows since version 2.
    New,
}

/// The whole ledger.
pub(super) struct Book {
    pub accounts: Vec<Account>,
    pub rows: u64,
    pub head: String,
    part: Era,
    /// The event that was recomputed last, at which delta, and what it costs alone.
    computed: Option<(Event, f64, f64)>,
}

impl Book {
    /// Reads and verifies all rows, as they are at one moment.
    pub(super) fn read(path: &Path, connection: &Connection, depth: Depth) -> Result<Book> {
        let mut book = Book {
            accounts: Vec::new(),
            rows: 0,
            head: file::GENESIS.to_owned(),
            part: Era::Start,
            computed: None,
        };
        file::each_row(path, connection, |row| {
            let number = book.rows + 1;
            book.turn(row, depth).map_err(|what| Error::Tampered { path: path.to_owned(), row: number, what })
        })?;
        if file::rows_written(path, connection)? != book.rows {
            let what = "rows are missing at the end".to_owned();
            return Err(Error::Tampered { path: path.to_owned(), row: book.rows + 1, what });
        }
        Ok(book)
    }

    /// The account of a name for a unit.
    pub(super) fn account(&self, path: &Path, name: &str, unit: Unit) -> Result<&Account> {
        let named: Vec<&Account> = self.accounts.iter().filter(|account| account.name == name).collect();
        if let Some(account) = named.iter().find(|account| account.unit == unit) {
            return Ok(account);
        }
        let (path, dataset, asked) = (path.to_owned(), name.to_owned(), unit);
        Err(match units(&named) {
            units if units.is_empty() => Error::Unregistered { path, dataset, asked },
            registered => Error::Unit { path, dataset, registered, asked },
        })
    }

    /// The only account of a name.
    pub(super) fn only(&self, path: &Path, name: &str) -> Result<&Account> {
        let named: Vec<&Account> = self.accounts.iter().filter(|account| account.name == name).collect();
        match named[..] {
            [only] => Ok(only),
            [] => self.account(path, name, Unit::Edge),
            _ => Err(Error::Ambiguous { name: name.to_owned(), units: units(&named) }),
        }
    }

    pub(super) fn run(&self, run_id: &str) -> Option<(&Account, &Charged)> {
        self.accounts.iter().find_map(|account| {
            account.runs.iter().find(|run| run.receipt.run_id == run_id).map(|run| (account, run))
        })
    }

    /// Takes in the next row, or says what is wrong with it.
    fn turn(&mut self, row: Row, depth: Depth) -> Result<(), String> {
        if row.seq != self.rows + 1 {
            return Err(format!("it is numbered {}", row.seq));
        }
        if row.hash != row.seal(&self.head) {
            return Err("its seal is broken".to_owned());
        }
        let body: Body = serde_json::from_str(&row.body).map_err(|error| format!("its text: {error}"))?;
        let old = !row.fingerprint.is_empty();
        self.part = match (self.part, old, matches!(body, Body::Upgrade { .. })) {
            (Era::Start | Era::Old, true, false) => Era::Old,
            (Era::Start | Era::Old, false, true) | (Era::Start | Era::New, false, false) => Era::New,
            _ => return Err("it is not of the version of the rows before it".to_owned()),
        };
        let known = match (old, body.account()) {
            (true, _) => self
                .accounts
                .iter_mut()
                .find(|account| account.fingerprint.as_deref() == Some(row.fingerprint.as_str())),
            (false, Some((name, unit))) => {
                self.accounts.iter_mut().find(|account| account.name == name && account.unit == unit)
            }
            (false, None) => None,
        };
        let is_charge = matches!(body, Body::Charge { .. });
        if row.run_id.is_some() != is_charge || row.event.is_some() != is_charge {
            return Err("a run and an event belong to charges, and to them only".to_owned());
        }
        match (body, known) {
            (Body::Upgrade { .. }, _) => {}
            (Body::Register { name, unit, epsilon, delta }, None) => {
                self.accounts.push(Account {
                    name,
                    fingerprint: old.then_some(row.fingerprint),
                    unit,
                    epsilon,
                    delta,
                    runs: Vec::new(),
                });
            }
            (Body::Register { .. }, Some(_)) => return Err("its data set was registered before".to_owned()),
            (_, None) => return Err("its data set was never registered".to_owned()),
            (Body::Budget { epsilon, delta, .. }, Some(account)) => {
                if depth == Depth::Figures {
                    let spent = recompute(&account.events(), delta)?;
                    if !fits(spent * RECOMPUTED, epsilon) {
                        return Err(format!("it sets a budget of {epsilon} where {spent} was spent"));
                    }
                }
                (account.epsilon, account.delta) = (epsilon, delta);
            }
            (
                Body::Charge {
                    dataset: _,
                    unit,
                    note,
                    epsilon,
                    total,
                    delta,
                    accountant,
                    noise_values,
                    key_commitment,
                },
                Some(account),
            ) => {
                if unit != account.unit {
                    return Err(format!("it charges the unit {unit} to a budget for {}", account.unit));
                }
                let event = Event::from_json(row.event.as_deref().unwrap_or_default())
                    .map_err(|error| error.to_string())?;
                if depth == Depth::Figures {
                    // Runs that repeat the one before, as those over seeds do, need no second computation.
                    let own = match &self.computed {
                        Some((last, at, own)) if *last == event && *at == delta => *own,
                        _ => recompute(&[&event], delta)?,
                    };
                    self.computed = Some((event.clone(), delta, own));
                    let mut events = account.events();
                    events.push(&event);
                    let sum = recompute(&events, delta)?;
                    if delta != account.delta {
                        return Err(format!(
                            "it counts at delta {delta:e}, the budget at {:e}",
                            account.delta
                        ));
                    }
                    if !fits(own * RECOMPUTED, epsilon) || !fits(sum * RECOMPUTED, total) {
                        return Err(format!(
                            "it says epsilon {epsilon} and {total} in all, where {own} and {sum} are right"
                        ));
                    }
                    if !fits(total, account.epsilon) {
                        return Err(format!("it passes the budget: {total} of {}", account.epsilon));
                    }
                }
                account.runs.push(Charged {
                    receipt: Receipt {
                        row: row.seq,
                        time: row.time,
                        run_id: row.run_id.unwrap_or_default(),
                        dataset: account.name.clone(),
                        unit,
                        epsilon,
                        total,
                        delta,
                        accountant,
                        hash: row.hash.clone(),
                    },
                    note,
                    event,
                    noise_values,
                    key_commitment,
                });
            }
        }
        self.rows += 1;
        self.head = row.hash;
        Ok(())
    }
}

/// The units of some accounts, in words.
fn units(accounts: &[&Account]) -> String {
    accounts.iter().map(|account| account.unit.name()).collect::<Vec<_>>().join(", ")
}

fn recompute(events: &[&Event], delta: f64) -> Result<f64, String> {
    compose::epsilon(events, delta).map(|(epsilon, _)| epsilon).map_err(|error| error.to_string())
}
