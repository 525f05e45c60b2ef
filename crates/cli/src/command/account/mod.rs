//! `progap account`: what privacy costs in noise, and noise in privacy.

mod events;
mod question;
mod show;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, ValueEnum};
use progap::Settings;
use progap::plan::PublicSizes;
use progap::settings::Method;
use progap_privacy::Unit;
use progap_privacy::calibrate::Target;

use super::Outcome;
use crate::plot::Format;
use crate::ui;
use question::{Planned, Question};

type Failure = Box<dyn std::error::Error>;

/// Show the noise that a privacy target needs, or the epsilon that noise gives, by every accountant
fn names_of_accountants() -> impl Iterator<Item = &'static str> {
    std::iter::once("best")
        .chain(progap_privacy::accountant::all().map(progap_privacy::accountant::Accountant::name))
}

#[derive(Args)]
#[command(
    group = ArgGroup::new("question").required(true).args(["level", "events"]),
    group = ArgGroup::new("given").args(["epsilon", "sigma", "events"]),
    after_help = "\
Sigma at edge level is the standard deviation of the noise on sums of messages of norm 1 (or the scale of Laplace noise, in \
methods with a delta of zero); at node level it is the noise multiplier of aggregations and gradients, that is the noise divided \
by the sensitivity. The noise is that of `progap train` with the same settings, to the last digit, for every method.

Examples:
  progap account --level edge --depth 3 --epsilon 1 --delta 1e-7
  progap account --level edge --depth 3 --sigma 8 --delta 1e-7 --plot epsilon.svg
  progap account --level node --depth 2 --epsilon 8 --delta 1e-5 --train-nodes 19804 --batch-size 256 --epochs 10
  progap account --method edge-rand --level edge --epsilon 1
  progap account --events tree.json --delta 1e-6 --json
  echo '{\"type\": \"gaussian\", \"sigma\": 4, \"sensitivity\": 1}' | progap account --events - --delta 1e-6"
)]
pub struct Account {
    /// What is protected
    #[arg(long, requires = "given")]
    level: Option<Level>,
    /// The method that asks
    #[arg(long, value_parser = method_names(), default_value = "progap", conflicts_with = "events")]
    method: Method,
    /// Number of noisy aggregations [default: as in training]
    #[arg(long, value_name = "K", conflicts_with = "events")]
    depth: Option<usize>,
    /// Find the noise for this epsilon
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// Find the epsilon of this noise
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// The delta at which epsilon holds; not for methods with a delta of zero
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Edge level: protect friendships, both directions of an edge together
    #[arg(long, conflicts_with = "events")]
    undirected: bool,
    /// Node level: number of training nodes
    #[arg(long, value_name = "N", conflicts_with = "events")]
    train_nodes: Option<usize>,
    /// Node level: expected size of a batch
    #[arg(long, value_name = "B", conflicts_with = "events")]
    batch_size: Option<usize>,
    /// Node level: epochs per stage
    #[arg(long, conflicts_with = "events")]
    epochs: Option<usize>,
    /// Node level: a sender's squared weights sum to at most this [default: as in training]
    #[arg(long, value_name = "D", conflicts_with = "events")]
    max_degree: Option<u32>,
    /// Node level: norm to which gradients are clipped [default: as in training]
    #[arg(long, value_name = "C", conflicts_with = "events", allow_negative_numbers = true)]
    clip: Option<f64>,
    /// Node level: gradient multiplier over aggregation multiplier [default: as in training]
    #[arg(long, value_name = "R", conflicts_with = "events", allow_negative_numbers = true)]
    ratio: Option<f64>,
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

/// The methods of the registry, by name.
fn method_names() -> impl TypedValueParser<Value = Method> {
    let names = Method::ALL.iter().map(|method| method.name());
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Method>())
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Level {
    /// Single edges
    Edge,
    /// Whole nodes
    Node,
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
        let delta = self.delta.map(|delta| Target::new(1.0, delta)).transpose()?.map(|target| target.delta);
        if let Some(path) = &self.events {
            let (unit, event) = events::read(path)?;
            return Ok(Question::of_event(unit, event, delta));
        }
        let Some(level) = self.level else { return Err("give --level, or --events".into()) };
        let target = self.epsilon.map(|epsilon| Target::new(epsilon, 0.5)).transpose()?.map(|t| t.epsilon);
        let (unit, settings, sizes) = match level {
            Level::Edge => self.at_edge_level()?,
            Level::Node => self.at_node_level()?,
        };
        if delta.is_none() && self.method.has_delta() {
            return Err("give --delta: the guarantee of this method has one".into());
        }
        let planned = Planned::new(Settings { delta, ..settings }, sizes)?;
        Question::of_run(unit, planned, target, self.sigma)
    }

    /// The settings of the run, as `progap train` would have them.
    fn settings(&self, level: progap::Level) -> Settings {
        let usual = Settings::of(self.method, level);
        let (epsilon, depth) = (self.epsilon.or(usual.epsilon), self.depth.unwrap_or(usual.depth));
        Settings { epsilon, depth, ..usual }
    }

    fn at_edge_level(&self) -> Result<(Unit, Settings, PublicSizes), Failure> {
        let node_only = [
            ("--train-nodes", self.train_nodes.is_some()),
            ("--batch-size", self.batch_size.is_some()),
            ("--epochs", self.epochs.is_some()),
            ("--max-degree", self.max_degree.is_some()),
            ("--clip", self.clip.is_some()),
            ("--ratio", self.ratio.is_some()),
        ];
        if let Some((flag, _)) = node_only.iter().find(|(_, given)| *given) {
            return Err(format!("{flag} says nothing at edge level, where training asks nothing of the edges; leave it out or use --level node").into());
        }
        let settings = Settings { undirected: self.undirected, ..self.settings(progap::Level::Edge) };
        let unit = if self.undirected { Unit::EdgeUndirected } else { Unit::Edge };
        Ok((unit, settings, PublicSizes::default()))
    }

    fn at_node_level(&self) -> Result<(Unit, Settings, PublicSizes), Failure> {
        if self.undirected {
            return Err("--undirected says nothing at node level; leave it out or use --level edge".into());
        }
        let needed = |name: &str, value: Option<usize>| {
            value.ok_or_else(|| {
                format!("node level needs {name}: the cost depends on how often a node is in a batch")
            })
        };
        let usual = self.settings(progap::Level::Node);
        let train_nodes = needed("--train-nodes", self.train_nodes)?;
        let settings = Settings {
            batch_size: needed("--batch-size", self.batch_size)?,
            epochs: needed("--epochs", self.epochs)?,
            max_degree: self.max_degree.unwrap_or(usual.max_degree),
            clip: self.clip.unwrap_or(usual.clip),
            gradient_noise_ratio: self.ratio.unwrap_or(usual.gradient_noise_ratio),
            ..usual
        };
        for (flag, name, given) in [
            ("--max-degree", "max_degree", self.max_degree.is_some()),
            ("--ratio", "gradient_noise_ratio", self.ratio.is_some()),
        ] {
            if let Some(why) = settings.without_effect(name).filter(|_| given) {
                return Err(format!("{flag} decides nothing here: {why}").into());
            }
        }
        Ok((Unit::Node, settings, PublicSizes { train_nodes, ..PublicSizes::default() }))
    }
}
