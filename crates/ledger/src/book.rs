//! The meaning of a ledger's rows: they are replayed from the first to the last, and nothing else is remembered.

use std::borrow::Cow;
use std::path::Path;

use progap_privacy::{Event, Unit, UnitEvent};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::compose;
use super::entry::{Charged, Cost, Receipt};
use super::error::{Error, Result};
use super::file::{self, Row};
use super::fits;
use super::later::{Later, with_later};

/// How far a recorded epsilon may lie below a recomputed one: the grid of an accountant is finite.
const RECOMPUTED: f64 = 1.0 - 1e-4;

/// The content of a row, besides the run and its event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Body {
    Register {
        name: String,
        unit: Unit,
        epsilon: f64,
        delta: f64,
        /// Whether there is an identity of the data beside the rows.
        known: bool,
        /// Why these are other people than any before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        other_people: Option<String>,
    },
    Budget {
        dataset: String,
        unit: Unit,
        epsilon: f64,
        delta: f64,
        reason: String,
    },
    /// The owner says that features and labels are public.
    PublicRows {
        dataset: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Charge {
        dataset: String,
        note: String,
        /// In the run's own unit first.
        costs: Vec<Cost>,
        /// The event in other units.
        converted: Vec<UnitEvent>,
        noise_values: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_commitment: Option<String>,
        /// The records that it is about, where they arrived after a run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        later: Option<Later>,
    },
}

/// A data set with its budget for one unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Account {
    pub name: String,
    pub unit: Unit,
    pub epsilon: f64,
    pub delta: f64,
    pub known: bool,
    pub other_people: Option<String>,
}

/// How thoroughly a ledger is read.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Depth {
    /// Seals, JSON and the rules of the book.
    Seals,
    /// Also every epsilon, recomputed.
    Figures,
}

/// The whole ledger.
#[derive(Clone)]
pub(super) struct Book {
    pub accounts: Vec<Account>,
    pub runs: Vec<Charged>,
    pub rows: u64,
    pub head: String,
    /// The names of data sets whose features and labels are public.
    public_rows: Vec<String>,
    /// The event that was recomputed last in each unit, at which delta, and what it costs alone.
    computed: Vec<(Unit, Event, f64, f64)>,
}

impl Book {
    /// Reads and verifies all rows, as they are at one moment.
    pub(super) fn read(path: &Path, connection: &Connection, depth: Depth) -> Result<Book> {
        let mut book = Book {
            accounts: Vec::new(),
            runs: Vec::new(),
            rows: 0,
            head: file::GENESIS.to_owned(),
            public_rows: Vec::new(),
            computed: Vec::new(),
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

    /// The names of all data sets, in the order in which they were registered.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for account in &self.accounts {
            if !names.contains(&account.name.as_str()) {
                names.push(&account.name);
            }
        }
        names
    }

    /// The accounts of a name, one for each unit.
    pub(super) fn accounts_of<'b>(&'b self, name: &str) -> impl Iterator<Item = &'b Account> {
        self.accounts.iter().filter(move |account| account.name == name)
    }

    /// The account of a name for a unit.
    pub(super) fn account(&self, path: &Path, name: &str, unit: Unit) -> Result<&Account> {
        let named: Vec<&Account> = self.accounts_of(name).collect();
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
        let named: Vec<&Account> = self.accounts_of(name).collect();
        match named[..] {
            [only] => Ok(only),
            [] => self.account(path, name, Unit::Edge),
            _ => Err(Error::Ambiguous { name: name.to_owned(), units: units(&named) }),
        }
    }

    pub(super) fn run(&self, run_id: &str) -> Option<&Charged> {
        self.runs.iter().find(|run| run.receipt.run_id == run_id)
    }

    /// All runs on a data set, in whatever unit.
    pub(super) fn runs_of<'b>(&'b self, name: &str) -> impl Iterator<Item = &'b Charged> {
        self.runs.iter().filter(move |run| run.receipt.dataset == name)
    }

    /// What an account has paid for: every run on the data set, in the account's unit. Runs at edge level are not in
    /// a budget for nodes.
    pub(super) fn events(&self, name: &str, unit: Unit) -> Result<Vec<Cow<'_, Event>>> {
        self.events_with(name, unit, None)
    }

    /// As [`Book::events`], with a charge that is still to be made. Charges for records that arrived after a run are
    /// one event with it.
    pub(super) fn events_with<'e>(
        &'e self,
        name: &str,
        unit: Unit,
        more: Option<(&'e Event, Option<&'e Later>)>,
    ) -> Result<Vec<Cow<'e, Event>>> {
        let mut later: Vec<(&Event, &Later)> =
            self.runs_of(name).filter_map(|run| Some((run.event_in(unit)?, run.later.as_ref()?))).collect();
        later.extend(more.and_then(|(event, later)| Some((event, later?))));
        let mut events = Vec::new();
        for run in self.runs_of(name).filter(|run| run.later.is_none()) {
            let Some(event) = run.event_in(unit) else { continue };
            let (own, others) = later.into_iter().partition(|(_, later)| later.after == run.receipt.run_id);
            later = others;
            let own: Vec<(&Event, &Later)> = own;
            events.push(with_later(event, &own)?);
        }
        // Where the run itself does not count in the unit, its later records pay like any others.
        events.extend(later.into_iter().map(|(event, _)| Cow::Borrowed(event)));
        events.extend(more.filter(|(_, later)| later.is_none()).map(|(event, _)| Cow::Borrowed(event)));
        Ok(events)
    }

    /// How many runs count in a unit.
    pub(super) fn counted(&self, name: &str, unit: Unit) -> usize {
        self.runs_of(name).filter(|run| run.event_in(unit).is_some()).count()
    }

    /// Refuses a charge about records that arrived after a run that was never charged for these data.
    pub(super) fn check_later(&self, name: &str, later: Option<&Later>) -> Result<()> {
        let Some(later) = later else { return Ok(()) };
        let is_run = |run: &Charged| run.later.is_none() && run.receipt.run_id == later.after;
        match self.runs_of(name).any(is_run) {
            true => Ok(()),
            false => {
                Err(Error::invalid("the run", format!("{:?}", later.after), "one that was charged before"))
            }
        }
    }

    /// Whether the owner said that features and labels are public.
    pub(super) fn has_public_rows(&self, name: &str) -> bool {
        self.public_rows.iter().any(|public| public == name)
    }

    pub(super) fn state_public(&mut self, name: &str) {
        self.public_rows.push(name.to_owned());
    }

    /// Whether the owner said, of the name that was registered later, that its people are others.
    pub(super) fn are_other_people(&self, name: &str, other: &str) -> bool {
        let names = self.names();
        let place = |name: &str| names.iter().position(|known| *known == name);
        let later = if place(name) > place(other) { name } else { other };
        self.accounts_of(later).any(|account| account.other_people.is_some())
    }

    /// A run that cannot be counted in a unit for which its data have a budget; `None` if all can, or need not.
    ///
    /// A run at edge level shows features and labels, which a budget for nodes protects unless they are public.
    pub(super) fn uncounted(
        &self,
        run_id: &str,
        name: &str,
        unit: Unit,
        event: Option<&Event>,
    ) -> Option<Error> {
        let (run_id, dataset) = (run_id.to_owned(), name.to_owned());
        match (event, unit) {
            (Some(_), _) => None,
            (None, Unit::Node) if self.has_public_rows(name) => None,
            (None, Unit::Node) => Some(Error::PrivateRows { dataset, when: format!("the run {run_id}") }),
            (None, _) => Some(Error::Uncounted { run_id, dataset, unit }),
        }
    }

    /// Whether a budget can be kept with the noise tables of all runs on a data set and of `more` values.
    pub(super) fn tables_fit(&self, name: &str, more: u64, epsilon: f64, delta: f64) -> Result<(), Error> {
        let values = self.runs_of(name).fold(more, |sum, run| sum.saturating_add(run.noise_values));
        super::check_tables(name, values, epsilon, delta)
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
        let is_charge = matches!(body, Body::Charge { .. });
        if row.run_id.is_some() != is_charge || row.event.is_some() != is_charge {
            return Err("a run and an event belong to charges, and to them only".to_owned());
        }
        let (hash, never) = (row.hash.clone(), "its data set was never registered");
        match body {
            Body::Register { name, unit, epsilon, delta, known, other_people } => {
                if self.place(&name, unit).is_some() {
                    return Err("its data set was registered before".to_owned());
                }
                let uncounted =
                    |run: &Charged| self.uncounted(&run.receipt.run_id, &name, unit, run.event_in(unit));
                if let Some(error) = self.runs_of(&name).find_map(uncounted) {
                    return Err(error.to_string());
                }
                self.accounts.push(Account { name: name.clone(), unit, epsilon, delta, known, other_people });
                self.check_budget((&name, unit), (epsilon, delta), depth)?;
            }
            Body::PublicRows { dataset, .. } => self.public_rows.push(dataset),
            Body::Budget { dataset, unit, epsilon, delta, .. } => {
                let place = self.place(&dataset, unit).ok_or(never)?;
                self.check_budget((&dataset, unit), (epsilon, delta), depth)?;
                (self.accounts[place].epsilon, self.accounts[place].delta) = (epsilon, delta);
            }
            Body::Charge { .. } => self.charge(row, body, depth)?,
        }
        self.rows += 1;
        self.head = hash;
        Ok(())
    }

    fn place(&self, name: &str, unit: Unit) -> Option<usize> {
        self.accounts.iter().position(|account| account.name == name && account.unit == unit)
    }

    /// Refuses a budget below what is spent.
    fn check_budget(
        &self,
        (name, unit): (&str, Unit),
        (epsilon, delta): (f64, f64),
        depth: Depth,
    ) -> Result<(), String> {
        if depth == Depth::Figures {
            let events = self.events(name, unit).map_err(|error| error.to_string())?;
            let spent = recompute(&events, delta)?;
            if !fits(spent * RECOMPUTED, epsilon) {
                return Err(format!("it sets a budget of {epsilon} where {spent} was spent"));
            }
        }
        Ok(())
    }

    fn charge(&mut self, row: Row, body: Body, depth: Depth) -> Result<(), String> {
        let Body::Charge { dataset, note, costs, converted, noise_values, key_commitment, later } = body
        else {
            return Err("it is no charge".to_owned());
        };
        let event = Event::from_json(row.event.as_deref().unwrap_or_default());
        let event = event.map_err(|error| error.to_string())?;
        converted.iter().try_for_each(|other| other.event.validate()).map_err(|error| error.to_string())?;
        let (cost, also) = costs.split_first().ok_or("it costs nothing")?;
        let run = Charged {
            receipt: Receipt {
                row: row.seq,
                time: row.time,
                run_id: row.run_id.unwrap_or_default(),
                public_rows: self.uncounted_node(&dataset, cost.unit),
                dataset,
                cost: cost.clone(),
                also: also.to_vec(),
                hash: row.hash,
            },
            note,
            event,
            converted,
            noise_values,
            key_commitment,
            later,
        };
        let name = &run.receipt.dataset;
        self.check_later(name, run.later.as_ref()).map_err(|error| error.to_string())?;
        for account in self.accounts.iter().filter(|account| account.name == *name) {
            let event = run.event_in(account.unit);
            if let Some(error) = self.uncounted(&run.receipt.run_id, name, account.unit, event) {
                return Err(error.to_string());
            }
            if event.is_some() != run.receipt.cost_in(account.unit).is_some() {
                return Err(format!("it is not counted in the unit {}", account.unit));
            }
        }
        for cost in &costs {
            let place = self.place(name, cost.unit).ok_or("its data set was never registered")?;
            let event = run.event_in(cost.unit).ok_or("it has a cost without an event")?;
            if depth == Depth::Figures {
                self.check_cost(place, (event, run.later.as_ref()), cost)?;
            }
        }
        self.runs.push(run);
        Ok(())
    }

    /// Whether a run in a unit is not counted in a budget for nodes that its data have.
    pub(super) fn uncounted_node(&self, name: &str, unit: Unit) -> bool {
        unit != Unit::Node && self.place(name, Unit::Node).is_some()
    }

    fn check_cost(
        &mut self,
        place: usize,
        (event, later): (&Event, Option<&Later>),
        cost: &Cost,
    ) -> Result<(), String> {
        let Cost { unit, epsilon, total, delta, .. } = cost;
        let account = &self.accounts[place];
        // Runs that repeat the one before, as those over seeds do, need no second computation.
        let last = self.computed.iter().find(|(of, last, at, _)| of == unit && last == event && at == delta);
        let own = match last {
            Some((.., own)) => *own,
            None => recompute(&[Cow::Borrowed(event)], *delta)?,
        };
        let events = self.events_with(&account.name, *unit, Some((event, later)));
        let sum = recompute(&events.map_err(|error| error.to_string())?, *delta)?;
        if *delta != account.delta {
            return Err(format!("it counts at delta {delta:e}, the budget at {:e}", account.delta));
        }
        if !fits(own * RECOMPUTED, *epsilon) || !fits(sum * RECOMPUTED, *total) {
            return Err(format!(
                "it says epsilon {epsilon} and {total} in all, where {own} and {sum} are right"
            ));
        }
        if !fits(*total, account.epsilon) {
            return Err(format!("it passes the budget: {total} of {}", account.epsilon));
        }
        self.computed.retain(|(of, ..)| of != unit);
        self.computed.push((*unit, event.clone(), *delta, own));
        Ok(())
    }
}

/// The units of some accounts, in words.
fn units(accounts: &[&Account]) -> String {
    accounts.iter().map(|account| account.unit.name()).collect::<Vec<_>>().join(", ")
}

fn recompute(events: &[Cow<'_, Event>], delta: f64) -> Result<f64, String> {
    compose::epsilon(events, delta).map(|(epsilon, _)| epsilon).map_err(|error| error.to_string())
}
