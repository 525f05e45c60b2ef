//! `progap ledger`: privacy budgets, and what was spent of them.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use progap::ledger::{Charged, Ledger, Status};
use progap_privacy::Unit;
use serde::Serialize;

use super::Outcome;
use crate::ui::{self, count};

/// Keep privacy budgets: what may be asked of a data set in all, and what was asked so far
#[derive(Subcommand)]
pub enum LedgerCommand {
    Init(Init),
    Show(Show),
    Check(Check),
    SetBudget(SetBudget),
}

impl LedgerCommand {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self {
            LedgerCommand::Init(init) => init.run(),
            LedgerCommand::Show(show) => show.run(),
            LedgerCommand::Check(check) => check.run(),
            LedgerCommand::SetBudget(set) => set.run(),
        }
    }
}

/// Give a data set a budget, in a new ledger or in one that is there
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap ledger init privacy.ledger --dataset school --fingerprint 6f1d0c2a --unit edge --epsilon 4 --delta 1e-7")]
pub struct Init {
    /// The ledger; made if it is not there
    file: PathBuf,
    /// A name for the data set
    #[arg(long, value_name = "NAME")]
    dataset: String,
    /// The fingerprint of the data, in hexadecimal, as `progap inspect` shows it
    #[arg(long, value_name = "HEX")]
    fingerprint: String,
    /// What the budget protects
    #[arg(long, value_parser = units())]
    unit: Unit,
    /// The largest epsilon of all runs together
    #[arg(long)]
    epsilon: f64,
    /// The delta at which epsilon is counted
    #[arg(long)]
    delta: f64,
}

impl Init {
    fn run(self) -> Outcome {
        let mut ledger =
            if self.file.exists() { Ledger::open(&self.file) } else { Ledger::create(&self.file) }?;
        ledger.register(&self.dataset, &self.fingerprint, self.unit, self.epsilon, self.delta)?;
        ui::print(&format!(
            "{} may spend epsilon {} at delta {:e}, for {}",
            self.dataset,
            self.epsilon,
            self.delta,
            self.unit.neighbours()
        ))
    }
}

/// Show budgets, what is spent and what is left
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap ledger show privacy.ledger
  progap ledger show privacy.ledger --runs
  progap ledger show privacy.ledger --json | jq '.[].spent'")]
pub struct Show {
    /// The ledger
    #[arg(env = "PROGAP_LEDGER")]
    file: PathBuf,
    /// List every run as well
    #[arg(long)]
    runs: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// A data set in JSON.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    charges: Option<Vec<Charged>>,
}

impl Show {
    fn run(self) -> Outcome {
        let ledger = Ledger::open(&self.file)?;
        let datasets = {
            let _spinner = ui::spinner("adding up".to_owned());
            ledger.datasets()?
        };
        let mut all = Vec::new();
        for status in datasets {
            let charges = self.runs.then(|| ledger.charges(&status.fingerprint)).transpose()?;
            all.push(Shown { status, charges });
        }
        if self.json {
            return ui::print(&serde_json::to_string_pretty(&all)?);
        }
        if all.is_empty() {
            return ui::print("no data set yet: enter one with `progap ledger init`");
        }
        ui::print(&summary(&all))?;
        all.iter()
            .filter_map(|shown| Some((&shown.status, shown.charges.as_ref()?)))
            .try_for_each(|(status, charges)| ui::print(&format!("\n{}", history(status, charges))))
    }
}

fn summary(all: &[Shown]) -> String {
    let rows = all.iter().map(|Shown { status, .. }| {
        [
            status.name.clone(),
            status.unit.to_string(),
            status.epsilon.to_string(),
            format!("{:e}", status.delta),
            rounded_up(status.spent),
            rounded_down(status.left),
            count(status.runs),
        ]
    });
    let table = ui::table(["data set", "unit", "budget", "delta", "spent", "left", "runs"], rows);
    let mut text = format!("{table}\nleft: the largest epsilon of one more Gaussian query");
    if all.iter().any(|shown| !shown.status.fully_adaptive) {
        text +=
            "\nspent holds if the noise of no run was chosen after seeing results of earlier private runs";
    }
    text
}

fn history(status: &Status, charges: &[Charged]) -> String {
    let rows = charges.iter().map(|charged| {
        let receipt = &charged.receipt;
        [
            receipt.time.clone(),
            receipt.run_id.clone(),
            rounded_up(receipt.epsilon),
            rounded_up(receipt.total),
            charged.note.clone(),
        ]
    });
    let table = ui::table(["time", "run", "epsilon", "total", "note"], rows);
    format!("{} ({})\n{table}", status.name, status.fingerprint)
}

/// Verify a ledger: every row's seal, every text, every epsilon
#[derive(Args)]
pub struct Check {
    /// The ledger
    #[arg(env = "PROGAP_LEDGER")]
    file: PathBuf,
    /// Print one JSON object instead of a sentence
    #[arg(long)]
    json: bool,
}

impl Check {
    fn run(self) -> Outcome {
        let checked = {
            let _spinner = ui::spinner("recomputing".to_owned());
            Ledger::open(&self.file)?.check()?
        };
        if self.json {
            return ui::print(&serde_json::to_string_pretty(&checked)?);
        }
        ui::print(&format!(
            "all is in order: {} rows, {} data sets, {} runs\nlast seal: {}",
            count(checked.rows as usize),
            count(checked.datasets),
            count(checked.runs),
            checked.head
        ))
    }
}

/// Change the budget of a data set, for a reason that is written down
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap ledger set-budget privacy.ledger --dataset school --epsilon 6 --reason 'agreed by the board on 3 May'")]
pub struct SetBudget {
    /// The ledger
    file: PathBuf,
    /// The data set's name or fingerprint
    #[arg(long, value_name = "NAME")]
    dataset: String,
    /// The new epsilon
    #[arg(long)]
    epsilon: f64,
    /// The new delta; as it was if not given
    #[arg(long)]
    delta: Option<f64>,
    /// Why
    #[arg(long)]
    reason: String,
}

impl SetBudget {
    fn run(self) -> Outcome {
        let mut ledger = Ledger::open(&self.file)?;
        let before = ledger.budget(&self.dataset)?;
        let delta = self.delta.unwrap_or(before.delta);
        ledger.set_budget(&before.fingerprint, self.epsilon, delta, &self.reason)?;
        ui::print(&format!(
            "{} may spend epsilon {} at delta {delta:e} (before: {} at {:e})",
            before.name, self.epsilon, before.epsilon, before.delta
        ))
    }
}

fn units() -> impl TypedValueParser<Value = Unit> {
    PossibleValuesParser::new(Unit::ALL.map(Unit::name)).try_map(|name| name.parse::<Unit>())
}

/// What is spent is never shown smaller than it is.
fn rounded_up(epsilon: f64) -> String {
    format!("{:.4}", (epsilon * 1e4).ceil() / 1e4)
}

/// What is left is never shown larger than it is.
fn rounded_down(epsilon: f64) -> String {
    format!("{:.4}", (epsilon * 1e4).floor() / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_to_the_safe_side() {
        assert_eq!([rounded_up(0.123_41), rounded_down(0.123_49)], ["0.1235", "0.1234"]);
        assert_eq!(rounded_up(f64::INFINITY), "inf");
    }
}
