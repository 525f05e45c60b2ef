//! Charges, receipts and budgets of a ledger.

use progap_privacy::{Event, Unit, UnitEvent};
use serde::{Deserialize, Serialize};

use super::later::Later;

/// The queries of a run, before it asks them.
///
/// It names the data set and knows nothing of its content: no row, seal or receipt can depend on the data.
#[derive(Debug, Clone, PartialEq)]
pub struct Charge {
    /// The run's own id, the same when it is resumed.
    pub run_id: String,
    /// The data set, by the name that it has in the ledger.
    pub dataset: String,
    /// The unit to which the event's sensitivities refer.
    pub unit: Unit,
    /// Everything the run will ask, in one tree.
    pub event: Event,
    /// The same in other units, where more is known than that one record is part of another. For the units that are
    /// not here [`Event::by_inclusion`] is taken.
    pub converted: Vec<UnitEvent>,
    /// A few words for readers of the ledger.
    pub note: String,
    /// The most values of noise that it draws from tables, whose small error is a part of delta.
    pub noise_values: u64,
    /// A hash of the run's key, in hexadecimal: the same run cannot be resumed with another key, which would be a
    /// second sample.
    pub key_commitment: Option<String>,
    /// Whether the noise comes from a seed: then it is not secret, the event is not what it says, and the charge is
    /// refused.
    pub seeded: bool,
    /// The records that it asks about, where they arrived after a run that was charged.
    pub later: Option<Later>,
}

impl Charge {
    /// A charge without a note, of a run with secret noise.
    pub fn new(run_id: impl Into<String>, dataset: impl Into<String>, unit: Unit, event: Event) -> Self {
        Charge {
            run_id: run_id.into(),
            dataset: dataset.into(),
            unit,
            event,
            converted: Vec::new(),
            note: String::new(),
            noise_values: 0,
            key_commitment: None,
            seeded: false,
            later: None,
        }
    }

    /// The same charge with a note.
    pub fn with_note(self, note: impl Into<String>) -> Self {
        Charge { note: note.into(), ..self }
    }

    /// The same charge for a run that draws this many values of noise from tables.
    pub fn with_noise_values(self, noise_values: u64) -> Self {
        Charge { noise_values, ..self }
    }

    /// The same charge, about records that arrived after a run.
    pub fn about_later(self, later: Later) -> Self {
        Charge { later: Some(later), ..self }
    }

    /// The same charge, of a run whose noise comes from a seed or does not.
    pub fn with_seeded_noise(self, seeded: bool) -> Self {
        Charge { seeded, ..self }
    }
}

/// The cost of a run for one unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The unit that the budget protects.
    pub unit: Unit,
    /// Epsilon of the run alone.
    pub epsilon: f64,
    /// Epsilon of all runs up to and with this one.
    pub total: f64,
    /// The delta at which both hold.
    pub delta: f64,
    /// The accountant that computed the total.
    pub accountant: String,
}

/// Proof that a run was charged. It may be shown to anyone: nothing in it depends on the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// Its row in the ledger, counted from 1.
    pub row: u64,
    /// When it was charged, in UTC.
    pub time: String,
    /// The run.
    pub run_id: String,
    /// The data set, by the name that its owner gave it.
    pub dataset: String,
    /// The cost in the run's own unit.
    #[serde(flatten)]
    pub cost: Cost,
    /// The cost in every other unit that the data set has a budget for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Cost>,
    /// Whether the data set has a budget for `node` that does not count this run, since it is at edge level: its
    /// owner said that features and labels are public.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub public_rows: bool,
    /// The seal of the row.
    pub hash: String,
}

impl Receipt {
    /// The cost in a unit; `None` if the run was not charged in it.
    pub fn cost_in(&self, unit: Unit) -> Option<&Cost> {
        std::iter::once(&self.cost).chain(&self.also).find(|cost| cost.unit == unit)
    }
}

/// A run that was charged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Charged {
    /// The caller's receipt.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// The caller's note.
    pub note: String,
    /// The queries, as one event.
    pub event: Event,
    /// The same in every other unit in which a bound is known.
    pub converted: Vec<UnitEvent>,
    /// The most values of noise drawn from tables.
    pub noise_values: u64,
    /// The hash of the run's key, where there is one.
    pub key_commitment: Option<String>,
    /// The records that it asked about, where they arrived after a run that was charged.
    #[serde(skip_serializing)]
    pub later: Option<Later>,
}

impl Charged {
    /// The queries for neighbours that differ in a unit; `None` if no bound is known.
    pub fn event_in(&self, unit: Unit) -> Option<&Event> {
        if unit == self.receipt.cost.unit {
            return Some(&self.event);
        }
        self.converted.iter().find(|other| other.unit == unit).map(|other| &other.event)
    }
}

/// A budget to be entered: of a data set, for one unit or several.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The data set's name.
    pub name: String,
    /// The units, each with this budget.
    pub units: Vec<Unit>,
    /// The largest epsilon of all runs together.
    pub epsilon: f64,
    /// The delta at which epsilon is counted.
    pub delta: f64,
    /// Why the data are about other people than any under another name, though they look like the same; it is written
    /// down.
    pub other_people: Option<String>,
    /// Whether the owner says that features and labels are public, so that runs at edge level may show them beside a
    /// budget for `node`.
    pub public_rows: bool,
}

impl Entry {
    /// A budget of people who have none under another name, and whose rows are private.
    pub fn new(name: impl Into<String>, units: &[Unit], epsilon: f64, delta: f64) -> Entry {
        let (name, units) = (name.into(), units.to_vec());
        Entry { name, units, epsilon, delta, other_people: None, public_rows: false }
    }
}

/// The budget of a data set for one unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Budget {
    /// The data set's name.
    pub name: String,
    /// The unit that the budget protects.
    pub unit: Unit,
    /// The largest epsilon of all runs together.
    pub epsilon: f64,
    /// The delta at which epsilon is counted.
    pub delta: f64,
}

/// Where a data set stands, for one unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// The unit that its budget protects.
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
    /// Whether the ledger can tell this data from other data.
    pub identity_known: bool,
    /// Why its people are others than those of data that look like the same, in the owner's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_people: Option<String>,
    /// Whether the owner said that features and labels are public.
    pub public_rows: bool,
    /// How many runs at edge level are not counted here, because features and labels are public and nothing bounds
    /// what such runs tell of a node's whole list of receivers.
    pub uncounted: usize,
}

/// The extent of a ledger in which [`Ledger::check`](super::Ledger::check) found no fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Number of rows.
    pub rows: u64,
    /// Number of budgets: a data set has one for each unit.
    pub datasets: usize,
    /// Number of charged runs.
    pub runs: usize,
    /// The seal of the last row. Anyone who writes it down elsewhere can later tell whether the ledger only grew.
    pub head: String,
}
