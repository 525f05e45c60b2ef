//! `progap account`: what privacy costs in noise, and noise in privacy.

mod events;
mod question;
mod show;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgGroup, Args};
use progap::Level;
use progap::settings::Size;
use progap_privacy::Unit;
use progap_privacy::accountant::Accountant;
use progap_privacy::calibrate::Target;

use super::Outcome;
use crate::flags::{Given, Preset};
use crate::plot;
use crate::ui;
use question::{Planned, Question};

type Failure = Box<dyn std::error::Error>;

/// Show the noise that a privacy target needs, or the epsilon that noise gives, by every accountant
#[derive(Args)]
#[command(
    group = ArgGroup::new("question").required(true).args(["level", "events"]),
    group = ArgGroup::new("given").args(["epsilon", "sigma", "events"]),
    mut_arg("level", without_default),
    mut_arg("epsilon", without_default),
    mut_arg("delta", without_default),
    after_help = "\
Sigma at edge level is the standard deviation of the noise on sums of messages of norm 1 (or the scale of Laplace \
noise, in \
methods with a delta of zero); at node level it is the noise multiplier of aggregations and gradients, that is the \
noise divided \
by the sensitivity. The noise is that of `progap train` with the same settings, to the last digit, for every method \
and accounting. Other \
flags and defaults are those of `progap train`; a flag on which no noise depends is refused.

Examples:
  progap account --level edge --depth 3 --epsilon 1 --delta 1e-7
  progap account --level edge --depth 3 --sigma 8 --delta 1e-7 --plot epsilon.svg
  progap account --level node --depth 2 --epsilon 8 --delta 1e-5 --train-nodes 19804 --epochs 10
  progap account --method edge-rand --level edge --epsilon 1
  progap account --events tree.json --delta 1e-6 --json
  progap account --events - --delta 1e-6 < tree.json"
)]
pub struct Account {
    #[command(flatten)]
    given: Given,
    /// Settings to start from
    #[arg(long, value_enum, conflicts_with = "events")]
    preset: Option<Preset>,
    /// At level edge: protect undirected edges, both directions of an edge together
    #[arg(long, conflicts_with = "events")]
    undirected: bool,
    /// Find the epsilon of this noise
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// Number of training nodes; a depth and a batch size that are not given depend on it
    #[arg(long, value_name = "N", conflicts_with = "events")]
    train_nodes: Option<usize>,
    /// Number of nodes; a depth that is not given depends on it
    #[arg(long, value_name = "N", conflicts_with = "events")]
    nodes: Option<usize>,
    /// Number of feature columns; at node level depth and batch size depend on it
    #[arg(long, value_name = "N", conflicts_with = "events")]
    columns: Option<usize>,
    /// Number of classes; at node level depth and batch size depend on it
    #[arg(long, value_name = "N", conflicts_with = "events")]
    classes: Option<usize>,
    /// Number of number columns without bounds; goes with --nodes [default: 0]
    ///
    /// `--scaling` depends on it at node level.
    #[arg(long, value_name = "N", conflicts_with = "events")]
    number_columns: Option<usize>,
    /// A tree of events in JSON, with or without its unit; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// The accountant whose answer counts [default: that of --accounting]
    #[arg(long, value_name = "NAME",
          value_parser = PossibleValuesParser::new(names_of_accountants()))]
    accountant: Option<String>,
    /// Draw epsilon against delta, as .svg
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

fn names_of_accountants() -> impl Iterator<Item = &'static str> {
    std::iter::once("best").chain(progap_privacy::accountant::all().map(<dyn Accountant>::name))
}

impl Account {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        if let Some(path) = &self.plot {
            plot::check_name(path)?;
        }
        let question = self.question()?;
        let accountant = match &self.accountant {
            Some(name) => name,
            None => question.accountant()?,
        };
        let answers = {
            let _spinner = ui::spinner("accounting".to_owned());
            question.ask(accountant)?
        };
        let chosen = answers.choose(accountant)?;
        if let Some(path) = &self.plot {
            let _spinner = ui::spinner("plotting".to_owned());
            show::draw(&question, chosen)?.write(path)?;
        }
        let report = show::report(&question, &answers, chosen);
        if self.json {
            return ui::print(&serde_json::to_string_pretty(&report)?);
        }
        ui::print(&show::show(&question, &answers, chosen, &report))
    }

    fn question(&self) -> Result<Question, Failure> {
        if let Some(path) = &self.events {
            if let Some(name) = self.given.names().into_iter().find(|name| *name != "delta") {
                let flag = name.replace('_', "-");
                return Err(format!(
                    "--{flag} describes a run, and --events what a run asked; give one of them"
                )
                .into());
            }
            let delta = self.given.number("delta");
            let delta = delta.map(|delta| Target::new(1.0, delta)).transpose()?.map(|target| target.delta);
            let (unit, event) = events::read(path)?;
            return Ok(Question::of_event(unit, event, delta));
        }
        let names = self.given.names();
        let target_given = names.contains(&"epsilon");
        if !target_given && self.sigma.is_none() {
            return Err("give --epsilon to find the noise, or --sigma to find the epsilon".into());
        }
        // A budget is the question here, and the answer may be that nothing costs.
        let request = self.given.request(self.preset).at_any_cost();
        let request = if self.undirected { request.with("undirected", true) } else { request };
        let settings = request.settings()?;
        let unit = match settings.level {
            Level::None => {
                return Err("nothing is protected without a level: give --level edge or --level node".into());
            }
            Level::Edge if settings.undirected => Unit::EdgeUndirected,
            Level::Edge => Unit::Edge,
            Level::Node => Unit::Node,
        };
        if settings.delta.is_none() && settings.method.has_delta() {
            let why = "the guarantee of this method has one, and `auto` needs the data";
            return Err(format!("give --delta: {why}").into());
        }
        if self.accountant.is_some() && names.contains(&"accounting") {
            return Err("--accounting and --accountant both say whose answer counts: give one of them".into());
        }
        let run = self.sizes().fold(progap::account(request), |run, (size, count)| run.with(size, count));
        let decided = run.decided()?;
        for name in names {
            if let Some(why) = decided.settings.without_cost(name) {
                return Err(progap::Error::no_effect(name, why).into());
            }
        }
        let target = settings.epsilon.filter(|_| target_given);
        let assumed = settings.is_open("scaling") && self.number_columns.is_none();
        let planned = Planned::new(decided, assumed)?;
        Question::of_run(unit, planned, target, self.sigma)
    }

    /// The sizes that were given.
    fn sizes(&self) -> impl Iterator<Item = (Size, usize)> {
        let all = [
            (Size::NumberColumns, self.number_columns),
            (Size::TrainNodes, self.train_nodes),
            (Size::Nodes, self.nodes),
            (Size::Columns, self.columns),
            (Size::Classes, self.classes),
        ];
        all.into_iter().filter_map(|(size, count)| Some((size, count?)))
    }
}

/// A setting that has a default in training and none here.
fn without_default(arg: Arg) -> Arg {
    let help = match arg.get_id().as_str() {
        "level" => "What is private: edges, or whole records of nodes",
        "epsilon" => "Find the noise of this privacy budget",
        _ => "DP delta; needed unless the method has none",
    };
    arg.help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where nothing is chosen for the user, no default is claimed.
    #[test]
    fn what_must_be_given_has_no_default_in_the_help() {
        let command = Account::augment_args(clap::Command::new("account"));
        for name in ["level", "epsilon", "delta"] {
            let arg = command.get_arguments().find(|arg| arg.get_id() == name).expect(name);
            let help = arg.get_help().expect("help").to_string();
            assert!(!help.contains("default") && !help.contains("auto"), "{name}: {help}");
        }
    }
}
