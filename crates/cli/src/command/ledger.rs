//! `progap ledger`: privacy budgets, and what was spent of them.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use progap::ledger::{Charged, Entry, Ledger, Receipt, Status};
use progap::run;
use progap_graph::Dataset;
use progap_privacy::Unit;
use serde::Serialize;
use serde_json::Value;

use super::Outcome;
use crate::source::DataSource;
use crate::ui::{self, count};

/// Keep privacy budgets: what may be asked of a data set in all, and what was asked so far
#[derive(Subcommand)]
pub enum LedgerCommand {
    Init(Box<Init>),
    Show(Show),
    Check(Check),
    Forecast(Forecast),
    SetBudget(SetBudget),
}

impl LedgerCommand {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self {
            LedgerCommand::Init(init) => init.run(),
            LedgerCommand::Show(show) => show.run(),
            LedgerCommand::Check(check) => check.run(),
            LedgerCommand::Forecast(forecast) => forecast.run(),
            LedgerCommand::SetBudget(set) => set.run(),
        }
    }
}

/// Give a data set a budget, in a new ledger or in one that is there
///
/// The data are loaded as `progap train` loads them: give the same options. The ledger keeps keyed sketches of ids,
/// edges and rows, by which it knows the same people again, in any order and with any label: they get one budget.
#[derive(Args)]
// The ledger comes first; the data by an option.
#[command(mut_arg("dataset", |data| data.long("data").value_name("DATASET").required(true).default_value(None)))]
#[command(after_help = "\
Examples:
  progap ledger init budget.db --data school/ --epsilon 4 --delta 1e-7
  progap ledger init budget.db --data school/ --unit edge --unit node --epsilon 4 --delta 1e-7
  progap ledger init budget.db --data nodes.csv --edges edges.csv --epsilon 2 --delta 1e-6
  progap ledger init budget.db --data town/ --epsilon 2 --same-people no --reason 'two towns'")]
pub struct Init {
    /// The ledger; made if it is not there
    file: PathBuf,
    #[command(flatten)]
    source: DataSource,
    /// A name for the data set, by which the ledger counts [default: that of the data set]
    #[arg(long)]
    name: Option<String>,
    /// Unit of the budget; may be repeated [default: what `progap train` protects]
    ///
    /// Each unit has a budget of its own.
    #[arg(long = "unit", value_name = "UNIT", value_parser = units())]
    units: Vec<Unit>,
    /// The largest epsilon of all runs together
    #[arg(long)]
    epsilon: f64,
    /// The delta at which epsilon is counted
    #[arg(long)]
    delta: f64,
    /// State that these are other people than those they look like; needs --reason
    ///
    /// Their ids, edges or rows agree with those of another budget.
    #[arg(long, value_name = "no", value_parser = ["no"], requires = "reason")]
    same_people: Option<String>,
    /// Why they are other people; it is recorded
    #[arg(long, requires = "same_people")]
    reason: Option<String>,
    /// State that rows are public: features and labels, for edge level beside a budget for nodes
    ///
    /// Runs at edge level, which show them, are then accepted beside a budget for nodes and not counted in it; it
    /// is recorded.
    #[arg(long, value_name = "public", value_parser = ["public"])]
    rows: Option<String>,
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
        let mut ledger = Ledger::open_or_create(&self.file)?;
        let data = ledger.identity(&dataset)?;
        let entry = Entry {
            other_people: self.reason.clone().filter(|_| self.same_people.is_some()),
            public_rows: self.rows.is_some(),
            ..Entry::new(name, &units, self.epsilon, self.delta)
        };
        if let Some(warning) = ledger.enter(&entry, Some(&data))? {
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
            if status.identity_known { "known" } else { "unknown" }.to_owned(),
        ]
    });
    let head = ["data set", "unit", "budget", "delta", "spent", "left", "runs", "data"];
    let mut text = format!(
        "{}\nunit: what a budget protects; a run is counted in every unit; budget, spent: epsilon of all runs \
         together; left: the largest epsilon of one more Gaussian query",
        ui::table(head, rows)
    );
    let any = |what: fn(&Status) -> bool| all.iter().any(|shown| what(&shown.status));
    if any(|status| !status.identity_known) {
        text +=
            "\ndata: where it is unknown, the ledger cannot tell when other data come under the same name";
    }
    if any(|status| !status.fully_adaptive) {
        text +=
            "\nspent holds if the noise of no run was chosen after seeing results of earlier private runs";
    }
    let mut told: Vec<String> = Vec::new();
    for Status { name, unit, other_people, public_rows, uncounted, .. } in
        all.iter().map(|shown| &shown.status)
    {
        if let Some(reason) = other_people {
            told.push(format!(
                "{name}: other people than those whose data look the same, for this reason: {reason}"
            ));
        }
        if *public_rows && *unit == Unit::Node {
            told.push(format!(
                "{name}: features and labels are public, says its owner; its budget for nodes counts the runs at \
                 node level, and not the {} at edge level, which protect single edges: of a node's list of \
                 receivers they tell the more, the longer it is",
                count(*uncounted)
            ));
        }
    }
    told.dedup();
    told.iter().for_each(|line| text += &format!("\n{line}"));
    text
}

fn history(status: &Status, charges: &[Charged]) -> String {
    let rows = charges.iter().map(|charged| {
        let receipt = &charged.receipt;
        // A run from before this budget has no figures of the day in its unit.
        let cost = receipt.cost_in(status.unit);
        let figure = |epsilon: Option<f64>| epsilon.map_or_else(|| "-".to_owned(), rounded_up);
        [
            receipt.time.clone(),
            receipt.run_id.clone(),
            receipt.cost.unit.to_string(),
            figure(cost.map(|cost| cost.epsilon)),
            figure(cost.map(|cost| cost.total)),
            charged.note.clone(),
        ]
    });
    let table = ui::table(["time", "run", "run's unit", "epsilon", "total", "note"], rows);
    format!("{} (unit {})\n{table}", status.name, status.unit)
}

/// Verify a ledger: every row's seal, every text, every epsilon; and that it was not replaced by an older copy
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap ledger check budget.db
  progap ledger show budget.db --runs --json > receipts.json
  progap ledger check budget.db --against receipts.json")]
pub struct Check {
    /// The ledger
    #[arg(env = "PROGAP_LEDGER")]
    file: PathBuf,
    /// Receipts that it must hold, as `ledger show --runs --json` writes them; may be repeated
    ///
    /// A file has one receipt or many.
    #[arg(long, value_name = "RECEIPT")]
    against: Vec<PathBuf>,
    /// Print one JSON object instead of a sentence
    #[arg(long)]
    json: bool,
}

impl Check {
    fn run(self) -> Outcome {
        let mut receipts = Vec::new();
        for file in &self.against {
            receipts.extend(read_receipts(file)?);
        }
        // A run is listed under every unit that counts it.
        receipts.sort_by(|a: &Receipt, b| (a.row, &a.hash).cmp(&(b.row, &b.hash)));
        receipts.dedup();
        let checked = {
            let _spinner = ui::spinner("recomputing".to_owned());
            let ledger = Ledger::open(&self.file)?;
            ledger.check_against(&receipts)?;
            ledger.check()?
        };
        if self.json {
            return ui::print(&serde_json::to_string_pretty(&checked)?);
        }
        let counted = |number: usize, one: &str| {
            format!("{} {one}{}", count(number), if number == 1 { "" } else { "s" })
        };
        let against = match receipts.len() {
            0 => String::new(),
            number => format!(", {} found", counted(number, "receipt")),
        };
        ui::print(&format!(
            "all is in order: {}, {}, {}{against}\nlast seal: {}",
            counted(checked.rows as usize, "row"),
            counted(checked.datasets, "data set"),
            counted(checked.runs, "run"),
            checked.head
        ))
    }
}

/// Say when budgets end, if runs go on as they did lately
///
/// The runs of the last days are repeated every so many days, and composed as they would be charged. Questions about
/// new nodes are taken to be about other nodes each time, and add nothing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap ledger forecast budget.db
  progap ledger forecast budget.db --days 30 --json
  progap ledger forecast budget.db --alert 14 || mail -s 'the budget ends' me < /dev/null")]
pub struct Forecast {
    /// The ledger
    #[arg(env = "PROGAP_LEDGER")]
    file: PathBuf,
    /// Only this data set
    #[arg(long)]
    name: Option<String>,
    /// How many days up to now are repeated
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// Fail where a budget ends within so many days
    #[arg(long, value_name = "DAYS")]
    alert: Option<u32>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

impl Forecast {
    fn run(self) -> Outcome {
        let ledger = Ledger::open(&self.file)?;
        let named = |status: &Status| self.name.as_ref().is_none_or(|name| status.name == *name);
        let mut all = Vec::new();
        {
            let _spinner = ui::spinner("adding up".to_owned());
            for status in ledger.datasets()?.into_iter().filter(named) {
                all.push(ledger.forecast(&status.name, status.unit, self.days)?);
            }
        }
        if let (true, Some(name)) = (all.is_empty(), &self.name) {
            return Err(format!("{} has no budget for {name}", self.file.display()).into());
        }
        if self.json {
            ui::print(&serde_json::to_string_pretty(&all)?)?;
        } else {
            let rows = all.iter().map(|forecast| {
                [
                    forecast.name.clone(),
                    forecast.unit.to_string(),
                    count(forecast.runs),
                    forecast.left_runs.map_or("-".into(), |left| count(left as usize)),
                    forecast.ends.clone().unwrap_or_else(|| "not in 100 years".into()),
                    forecast
                        .days_left
                        .map_or("-".into(), |days| format!("{:.1}", (days * 10.0).floor() / 10.0)),
                ]
            });
            let head = ["data set", "unit", "runs lately", "more that fit", "first refused", "in days"];
            let lately =
                format!("runs lately: those of the last {} days, repeated every {0} days", self.days);
            ui::print(&format!("{}\n{lately}", ui::table(head, rows)))?;
        }
        let soon = |days: f64| self.alert.is_some_and(|alert| days <= f64::from(alert));
        match all.iter().find_map(|forecast| Some((forecast, forecast.days_left.filter(|days| soon(*days))?))) {
            None => Ok(()),
            Some((forecast, days)) => Err(format!(
                "at this pace the budget of {} (unit {}) ends in {days:.1} days: ask for less, less often, or agree on \
                 more with `progap ledger set-budget`",
                forecast.name, forecast.unit
            )
            .into()),
        }
    }
}

/// Receipts in a file: one, or many in lists, whatever is beside them.
fn read_receipts(file: &Path) -> Result<Vec<Receipt>, Box<dyn std::error::Error>> {
    let wrong = |error: &dyn std::fmt::Display| {
        format!(
            "{}: this is no receipt ({error}): give what `progap ledger show --runs --json` writes",
            file.display()
        )
    };
    let size = std::fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?;
    if !size.is_file() || size.len() > LARGEST_RECEIPTS {
        return Err(wrong(&"not a file of at most 1 GiB").into());
    }
    let text = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut left = vec![serde_json::from_slice::<Value>(&text).map_err(|error| wrong(&error))?];
    let mut receipts = Vec::new();
    while let Some(value) = left.pop() {
        match value {
            Value::Array(values) => left.extend(values),
            // A data set with its runs.
            Value::Object(mut fields) if fields.contains_key("charges") => {
                left.extend(fields.remove("charges"));
            }
            value => receipts.push(serde_json::from_value(value).map_err(|error| wrong(&error))?),
        }
    }
    match receipts.is_empty() {
        true => Err(wrong(&"there is none in it").into()),
        false => Ok(receipts),
    }
}

/// No file of receipts is larger.
const LARGEST_RECEIPTS: u64 = 1 << 30;

/// Change the budget of a data set, or state that its rows are public, for a reason that is written down
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap ledger set-budget budget.db --name school --epsilon 6 --reason 'agreed on 3 May'
  progap ledger set-budget budget.db --name school --rows public --reason 'in print'")]
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
    #[arg(long, required_unless_present = "rows")]
    epsilon: Option<f64>,
    /// The new delta; as it was if not given
    #[arg(long, requires = "epsilon")]
    delta: Option<f64>,
    /// State that rows are public: features and labels, for edge level beside a budget for nodes
    ///
    /// Runs at edge level are then accepted beside a budget for nodes and not counted in it.
    #[arg(long, value_name = "public", value_parser = ["public"])]
    rows: Option<String>,
    /// Why
    #[arg(long)]
    reason: String,
}

impl SetBudget {
    fn run(self) -> Outcome {
        let mut ledger = Ledger::open(&self.file)?;
        if let Some(epsilon) = self.epsilon {
            let before = ledger.budget(&self.name, self.unit)?;
            let delta = self.delta.unwrap_or(before.delta);
            ledger.set_budget(&before.name, before.unit, epsilon, delta, &self.reason)?;
            ui::print(&format!(
                "{} may spend epsilon {epsilon} at delta {delta:e}, unit {} (before: {} at {:e})",
                before.name, before.unit, before.epsilon, before.delta
            ))?;
        }
        if self.rows.is_some() {
            ledger.set_public_rows(&self.name, &self.reason)?;
            ui::print(&format!("features and labels of {} are public, as asserted by its owner", self.name))?;
        }
        Ok(())
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
