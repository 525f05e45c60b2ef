//! Charging a run: in every unit that its data have a budget for, or in none.

use std::borrow::Cow;
use std::path::Path;

use progap_privacy::{Event, Unit, UnitEvent};
use rusqlite::Transaction;

use super::book::{Account, Body, Book};
use super::compose;
use super::entry::{Charge, Charged, Cost, Receipt};
use super::error::{Error, OverBudget, Result};
use super::file::Draft;
use super::later::Later;
use super::{Ledger, append, fits, hex, json, text};

enum Verdict {
    Accepted(Receipt),
    /// With what was spent, and what was asked.
    Refused(Box<OverBudget>, Vec<Event>, Event),
}

impl Ledger {
    /// Charges a run in every unit that the data set has a budget for, or refuses it.
    ///
    /// # Proof definition
    /// When this returns a receipt, the row is on disk and synced, and for each of these units all runs on the data
    /// set with this one cost at most the budget (runs at edge level in the budget for nodes excepted, which counts
    /// none of them: features and labels were said to be public). The event in another unit than the run's own is
    /// what the charge says of it, or follows by [`Event::by_inclusion`]. The decision and the row are one
    /// transaction, in which no other process can write. A run that was charged before is not charged again. When
    /// this returns an error, either nothing was written or, if the very last step of the commit failed, the charge
    /// stands: the ledger may then count too much, never too little. The decision depends on the parameters of events
    /// only, not on private data.
    pub fn charge(&mut self, charge: Charge) -> Result<Receipt> {
        let run_id = text("the run id", &charge.run_id, 200)?;
        if charge.seeded {
            return Err(Error::Seeded { run_id: run_id.to_owned() });
        }
        let commitment = charge.key_commitment.as_deref();
        let commitment = commitment.map(|hash| hex("the commitment to a key", hash)).transpose()?;
        let length = charge.note.len();
        if length > 2000 {
            let value = format!("{length} bytes long");
            return Err(Error::invalid("the note", value, "at most 2000 bytes long"));
        }
        charge.later.as_ref().map_or(Ok(()), Later::check)?;
        let events = in_all_units(&charge);
        for UnitEvent { event, .. } in &events {
            event.validate()?;
            // Reading it back now is cheaper than finding out later that a row cannot be read.
            if Event::from_json(&json(event)?)? != *event {
                return Err(Error::invalid(
                    "the event",
                    "changed by writing it down",
                    "representable in JSON",
                ));
            }
        }
        let outcome = self.write(|path, tx, book, _| decide(path, tx, &book, &charge, events, commitment))?;
        match outcome {
            Verdict::Accepted(receipt) => Ok(receipt),
            // Explaining takes longer than deciding, so the ledger is free again by now.
            Verdict::Refused(mut refusal, spent, own) => {
                refusal.spent = compose::epsilon(&spent, refusal.delta)?.0;
                refusal.asked = compose::epsilon(&[own], refusal.delta)?.0;
                refusal.left = compose::largest_query(&spent, refusal.budget, refusal.delta)?;
                Err(Error::OverBudget(refusal))
            }
        }
    }
}

/// The event of a run in its own unit, and in every other for which something is known.
fn in_all_units(charge: &Charge) -> Vec<UnitEvent> {
    let others = Unit::ALL.into_iter().filter(|unit| *unit != charge.unit).filter_map(|unit| {
        let given = charge.converted.iter().find(|other| other.unit == unit).map(|other| other.event.clone());
        let event = given.or_else(|| charge.event.by_inclusion(charge.unit, unit))?;
        Some(UnitEvent { unit, event })
    });
    std::iter::once(UnitEvent { unit: charge.unit, event: charge.event.clone() }).chain(others).collect()
}

fn decide(
    path: &Path,
    tx: &Transaction<'_>,
    book: &Book,
    charge: &Charge,
    events: Vec<UnitEvent>,
    key_commitment: Option<String>,
) -> Result<Verdict> {
    let Charge { run_id, dataset, unit, note, noise_values, .. } = charge;
    if let Some(run) = book.run(run_id) {
        return settled(run, charge, key_commitment.as_deref()).map(Verdict::Accepted);
    }
    book.check_later(dataset, charge.later.as_ref())?;
    // The run's own unit first; and it must have a budget there.
    let own = book.account(path, dataset, *unit)?;
    let others = book.accounts_of(dataset).filter(|account| account.unit != *unit);
    let mut costs = Vec::new();
    for account in std::iter::once(own).chain(others) {
        let event = events.iter().find(|other| other.unit == account.unit).map(|other| &other.event);
        if let Some(error) = book.uncounted(run_id, dataset, account.unit, event) {
            return Err(error);
        }
        let Some(event) = event else { continue };
        let all = book.events_with(dataset, account.unit, Some((event, charge.later.as_ref())))?;
        let (total, accountant) = compose::epsilon(&all, account.delta)?;
        if !fits(total, account.epsilon) {
            let spent = book.events(dataset, account.unit)?.into_iter().map(Cow::into_owned).collect();
            return Ok(Verdict::Refused(refusal(account, total), spent, event.clone()));
        }
        book.tables_fit(dataset, *noise_values, account.epsilon, account.delta)?;
        let (epsilon, _) = compose::epsilon(&[event], account.delta)?;
        let (unit, delta, accountant) = (account.unit, account.delta, accountant.to_owned());
        costs.push(Cost { unit, epsilon, total, delta, accountant });
    }
    let mut events = events.into_iter();
    let event = events.next().map_or(Event::NonPrivate, |own| own.event);
    let body = Body::Charge {
        dataset: dataset.clone(),
        note: note.clone(),
        costs: costs.clone(),
        converted: events.collect(),
        noise_values: *noise_values,
        key_commitment,
        later: charge.later.clone(),
    };
    let draft = Draft { run_id: Some(run_id), event: Some(&json(&event)?), body: json(&body)? };
    let row = append(path, tx, book, draft)?;
    let cost = costs.remove(0);
    Ok(Verdict::Accepted(Receipt {
        row: row.seq,
        time: row.time,
        run_id: run_id.clone(),
        dataset: dataset.clone(),
        cost,
        also: costs,
        public_rows: book.uncounted_node(dataset, *unit),
        hash: row.hash,
    }))
}

/// The receipt of a run that was charged before, if it was the same run.
fn settled(run: &Charged, charge: &Charge, key: Option<&str>) -> Result<Receipt> {
    let changed = |what| Err(Error::RunChanged { run_id: charge.run_id.clone(), what });
    if run.receipt.dataset != charge.dataset {
        return changed("to another data set");
    }
    if run.receipt.cost.unit != charge.unit {
        return changed("in another unit");
    }
    if run.event != charge.event || run.noise_values != charge.noise_values {
        return changed("with another event");
    }
    if run.later != charge.later {
        return changed("about other records");
    }
    if run.key_commitment.as_deref() != key {
        return changed("with another key");
    }
    Ok(run.receipt.clone())
}

fn refusal(account: &Account, total: f64) -> Box<OverBudget> {
    let Account { name, unit, epsilon, delta, .. } = account.clone();
    Box::new(OverBudget {
        dataset: name,
        unit,
        spent: 0.0,
        asked: 0.0,
        total,
        budget: epsilon,
        delta,
        left: 0.0,
    })
}
