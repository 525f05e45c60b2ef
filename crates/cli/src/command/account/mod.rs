//! `progap account`: what privacy costs in noise, and noise in privacy.

mod events;
mod question;
mod show;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args};
use progap::Level;
use progap::plan::PublicSizes;
use progap_privacy::Unit;
use progap_privacy::accountant::Accountant;
use progap_privacy::calibrate::Target;

use super::Outcome;
use crate::flags::{Given, Preset};
use crate::plot::Format;
use crate::ui;
use question::{Planned, Question};

type Failure = Box<dyn std::error::Error>;

/// Show the noise that a privacy target needs, or the epsilon that noise gives, by every accountant
#[derive(Args)]
#[command(
    group = ArgGroup::new("question").required(true).args(["level", "events"]),
    group = ArgGroup::new("given").args(["epsilon", "sigma", "events"]),
    after_help = "\
Sigma at edge level is the standard deviation of the noise on sums of messages of norm 1 (or the scale of Laplace noise, in \
methods with a delta of zero); at node level it is the noise multiplier of aggregations and gradients, that is the noise divided \
by the sensitivity. The noise is that of `progap train` with the same settings, to the last digit, for every method. Flags and defaults are those of \
`progap train`; a flag on which no noise depends is refused.

Examples:
  progap account --level edge --depth 3 --epsilon 1 --delta 1e-7
  progap account --level edge --depth 3 --sigma 8 --delta 1e-7 --plot epsilon.svg
  progap account --level node --depth 2 --epsilon 8 --delta 1e-5 --train-nodes 19804 --batch-size 256 --epochs 10
  progap account --method edge-rand --level edge --epsilon 1
  progap account --events tree.json --delta 1e-6 --json
  echo '{\"type\": \"gaussian\", \"sigma\": 4, \"sensitivity\": 1}' | progap account --events - --delta 1e-6"
)]
pub struct Account {
    #[command(flatten)]
    given: Given,
    /// Settings to start from
    #[arg(long, value_enum, conflicts_with = "events")]
    preset: Option<Preset>,
    /// At level edge: protect friendships, both directions of an edge together
    #[arg(long, conflicts_with = "events")]
    undirected: bool,
    /// Find the epsilon of this noise
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// The number of training nodes, on which batches at level node and a depth that is not given depend
    #[arg(long, value_name = "N", conflicts_with = "events")]
    train_nodes: Option<usize>,
    /// The number of nodes, on which a depth that is not given depends at level edge
    #[arg(long, value_name = "N", conflicts_with = "events")]
    nodes: Option<usize>,
    /// The number of feature columns, on which a depth and a batch size that are not given depend at level node
    #[arg(long, value_name = "N", conflicts_with = "events")]
    columns: Option<usize>,
    /// The number of classes, on which a depth that is not given depends at level node
    #[arg(long, value_name = "N", conflicts_with = "events")]
    classes: Option<usize>,
    /// The number of number columns without declared bounds, on which `--scaling` depends at level node, with --nodes
    #[arg(long, value_name = "N", conflicts_with = "events")]
    number_columns: Option<usize>,
    /// A tree of events in JSON, with or without its unit; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// The accountant whose answer counts
    #[arg(long, value_name = "NAME", default_value = "best",
          value_parser = PossibleValuesParser::new(names_of_accountants()))]
    accountant: String,
    /// Draw epsilon against delta, as .svg or .png
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
            Format::of(path)?;
        }
        let question = self.question()?;
        let answers = {
            let _spinner = ui::spinner("accounting".to_owned());
            question.ask()?
        };
        let chosen = answers.choose(&self.accountant)?;
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
        let target_given = self.given.names().contains(&"epsilon");
        if !target_given && self.sigma.is_none() {
            return Err("give --epsilon to find the noise, or --sigma to find the epsilon".into());
        }
        let request = self.given.request(self.preset);
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
        let follows = settings.from_sizes.depth;
        let node = settings.level == Level::Node;
        if node && self.train_nodes.is_none() {
            return Err(
                "node level needs --train-nodes: the cost depends on how often a node is in a batch".into()
            );
        }
        if follows && node && (self.columns.is_none() || self.classes.is_none()) {
            return Err("give --depth, or --columns and --classes that it follows from".into());
        }
        // With a depth that is given, batches of few training nodes may still follow from the columns.
        let train_nodes = self.train_nodes.unwrap_or(0);
        let batch = |columns: usize| {
            settings.for_sizes(PublicSizes { train_nodes, columns, ..PublicSizes::default() }).batch_size
        };
        let by_columns = node && !follows && batch(0) != batch(usize::MAX);
        if by_columns && self.columns.is_none() {
            return Err("give --batch-size, or --columns that it follows from".into());
        }
        if follows && !node && (self.nodes.is_none() || self.train_nodes.is_none()) {
            return Err("give --depth, or --nodes and --train-nodes that it follows from".into());
        }
        if self.number_columns.is_some() && self.nodes.is_none() {
            return Err("give --nodes beside --number-columns: the scaling follows from both".into());
        }
        let counted = self.number_columns.is_some() && settings.from_sizes.scaling;
        let in_vain = [
            ("--number-columns", self.number_columns.is_some() && !counted),
            ("--nodes", self.nodes.is_some() && (!follows || node) && !counted),
            ("--train-nodes", self.train_nodes.is_some() && !follows && !node),
            ("--columns", self.columns.is_some() && !(follows && node) && !by_columns),
            ("--classes", self.classes.is_some() && !(follows && node)),
        ];
        if let Some((flag, _)) = in_vain.iter().find(|(_, in_vain)| *in_vain) {
            return Err(format!(
                "{flag} decides nothing here, where no setting and no cost follows from it; leave it out"
            )
            .into());
        }
        if settings.delta.is_none() && settings.method.has_delta() {
            return Err("give --delta: the guarantee of this method has one".into());
        }
        let count = |number: Option<usize>| number.unwrap_or(0);
        let sizes = PublicSizes {
            nodes: count(self.nodes),
            train_nodes: count(self.train_nodes),
            columns: count(self.columns),
            classes: count(self.classes),
            open_numbers: count(self.number_columns),
            ..PublicSizes::default()
        };
        let target = settings.epsilon.filter(|_| target_given);
        for name in self.given.names() {
            if let Some(why) = settings.without_cost(name, sizes) {
                return Err(progap::Error::NoEffect { name, why: why.into() }.into());
            }
        }
        let planned = Planned::new(settings.for_sizes(sizes).into_settings(), sizes)?;
        Question::of_run(unit, planned, target, self.sigma)
    }
}
