//! `progap ledger`: privacy budgets, and what was spent of them.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use progap::ledger::{Charged, Ledger, Status};
use progap::run;
use progap_graph::Dataset;
use progap_privacy::Unit;
use serde::Serialize;

use super::Outcome;
use crate::source::DataSource;
use crate::ui::{self, count};

/// Keep privacy budgets: what may be asked of a data set in all, and what was asked so far
#[derive(Subcommand)]
pub enum LedgerCommand {
    Init(Box<Init>),
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
///
/// The data are loaded as `progap train` loads them: give the same options. The ledger keeps a keyed hash of them, by which it
/// finds the budget of a run, and tells when other data come under the same name.
#[derive(Args)]
// The ledger comes first; the data by an option.
#[command(mut_arg("dataset", |data| data.long("data").value_name("DATASET").required(true).default_value(None)))]
#[command(after_help = "\
Examples:
  progap ledger init budget.db --data school/ --epsilon 4 --delta 1e-7
  progap ledger init budget.db --data school/ --unit edge --unit node --epsilon 4 --delta 1e-7
  progap ledger init budget.db --data nodes.csv --edges edges.csv --epsilon 2 --delta 1e-6")]
pub struct Init {
    /// The ledger; made if it is not there
    file: PathBuf,
    #[command(flatten)]
    source: DataSource,
    /// A name for the data set, by which the ledger counts [default: that of the data set]
    #[arg(long)]
    name: Option<String>,
    /// What the budget protects; may be repeated, for a budget of its own for each [default: what `progap train` protects]
    #[arg(long = "unit", value_name = "UNIT", value_parser = units())]
    units: Vec<Unit>,
    /// The largest epsilon of all runs together
    #[arg(long)]
    epsilon: f64,
    /// The delta at which epsilon is counted
    #[arg(long)]
    delta: f64,
}

impl Init {
    fn run(self) -> Outcome {
        let dataset = {
            let _spinner = ui::spinner(format!("loading {}", self.source.name()));
            self.source.load_split()?
        };
        let name = self.name.as_deref().unwrap_or(dataset.name());
        let units = match self.units.is_empty() {
            true => vec![default_unit(&dataset)],
            false => self.units.clone(),
        };
        // Everything that can be refused is refused before a file is made.
        for &unit in &units {
            run::check_budget(&dataset, name, unit, self.epsilon, self.delta)?;
        }
        let mut ledger =
            if self.file.exists() { Ledger::open(&self.file) } else { Ledger::create(&self.file) }?;
        let data = dataset.content_fingerprint();
        let warning = ledger.register_units(name, &units, self.epsilon, self.delta, Some(&data))?;
        if let Some(warning) = warning {
            ui::warn(&warning.to_string());
        }
        for unit in units {
            ui::print(&format!(
                "{name} may spend epsilon {} at delta {:e}, for {} (unit {unit})",
                self.epsilon,
                self.delta,
                unit.neighbours()
            ))?;
        }
        Ok(())
    }
}

/// The unit that training on this data protects unless told otherwise.
fn default_unit(dataset: &Dataset) -> Unit {
    if dataset.graph().is_symmetric() { Unit::EdgeUndirected } else { Unit::Edge }
}

/// Show budgets, what is spent and what is left
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap ledger show budget.db
  progap ledger show budget.db --runs
  progap ledger show budget.db --json | jq '.[].spent'")]
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
            let charges = self.runs.then(|| ledger.charges(&status.name, status.unit)).transpose()?;
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
            match (status.identity_known, status.upgraded) {
                (true, false) => "known".to_owned(),
                (true, true) => "known, from version 1".to_owned(),
                (false, false) => "unknown".to_owned(),
                (false, true) => "version 1".to_owned(),
            },
        ]
    });
    let head = ["data set", "unit", "budget", "delta", "spent", "left", "runs", "data"];
    let mut text = format!(
        "{}\nunit: what a budget protects, each on its own; budget, spent: epsilon of all runs together; left: the largest \
         epsilon of one more Gaussian query",
        ui::table(head, rows)
    );
    let any = |what: fn(&Status) -> bool| all.iter().any(|shown| what(&shown.status));
    if any(|status| !status.identity_known) {
        text +=
            "\ndata: where it is unknown, the ledger cannot tell when other data come under the same name";
    }
    if any(|status| status.upgraded) {
        text += "\nversion 1: rows of that version hold a fingerprint of the data, and their seals depend on it: keep receipts \
                 of runs from before the upgrade to yourself";
    }
    if any(|status| !status.fully_adaptive) {
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
    format!("{} (unit {})\n{table}", status.name, status.unit)
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
        let counted = |number: usize, one: &str| {
            format!("{} {one}{}", count(number), if number == 1 { "" } else { "s" })
        };
        ui::print(&format!(
            "all is in order: {}, {}, {}\nlast seal: {}",
            counted(checked.rows as usize, "row"),
            counted(checked.datasets, "data set"),
            counted(checked.runs, "run"),
            checked.head
        ))
    }
}

/// Change the budget of a data set, for a reason that is written down
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap ledger set-budget budget.db --name school --epsilon 6 --reason 'agreed on 3 May'")]
pub struct SetBudget {
    /// The ledger
    file: PathBuf,
    /// The data set's name
    #[arg(long, alias = "dataset")]
    name: String,
    /// Which of its budgets, where it has several
    #[arg(long, value_parser = units())]
    unit: Option<Unit>,
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
        let before = ledger.budget(&self.name, self.unit)?;
        let delta = self.delta.unwrap_or(before.delta);
        ledger.set_budget(&before.name, before.unit, self.epsilon, delta, &self.reason)?;
        ui::print(&format!(
            "{} may spend epsilon {} at delta {delta:e}, unit {} (before: {} at {:e})",
            before.name, self.epsilon, before.unit, before.epsilon, before.delta
        ))
    }
}

fn units() -> impl TypedValueParser<Value = Unit> {
    PossibleValuesParser::new(Unit::ALL.map(Unit::name)).try_map(|name| name.parse::<Unit>())
}

/// The epsilon that is spent is never shown smaller than it is.
fn rounded_up(epsilon: f64) -> String {
    format!("{:.4}", (epsilon * 1e4).ceil() / 1e4)
}

/// The epsilon that is left is never shown larger than it is.
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
