//! `progap train`: from a data set to a release.

mod summary;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use progap::effect::without_effect;
use progap::lint::lint;
use progap::method::Progress;
use progap::method::catalogue::default_level;
use progap::run::Account;
use progap::settings::{
    Accounting, Bounding, Combination, Level, Messages, Method, Nonlinearity, Selection, Settings,
};
use progap::{delta, ledger, release, run};
use progap_graph::Dataset;

pub use summary::other_unit;
use summary::{RunReport, report};

use super::Outcome;
use super::experiment::shell_word;
use crate::source::Source;
use crate::stop;
use crate::ui::{self, Training};

/// What to train on and how: shared by all commands that train.
#[derive(Args)]
pub struct Choices {
    #[command(flatten)]
    pub source: Source,
    /// How the model is trained; `progap methods` describes each [default: progap]
    #[arg(long, short, value_parser = method_names())]
    method: Option<Method>,
    /// What is private: nothing, edges, or whole records of nodes [default: edge; none for sage, node for dp-gnn]
    #[arg(long, value_enum)]
    level: Option<LevelName>,
    /// Settings to start from
    #[arg(long, value_enum, conflicts_with = "config")]
    preset: Option<Preset>,
    /// Settings from a file, such as the config.toml of a release; flags win
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Edge level: protect one direction of an edge also where every edge has an edge back [default there: a friendship, both
    /// directions together]
    #[arg(long)]
    directed: bool,
    /// Privacy budget [default: 1 for edges, 8 for nodes]
    #[arg(long, short = 'e')]
    epsilon: Option<f64>,
    /// Probability that the promise fails, or `auto` [default: auto, at most a tenth of one over the number of records; as
    /// published in the preset paper]
    #[arg(long, value_parser = parse_delta)]
    delta: Option<Delta>,
    /// Number of aggregations over the graph [default: 2; 1 for label messages at node level, and for dp-gnn; 0 for mlp]
    #[arg(long, short = 'k', help_heading = "Model")]
    depth: Option<usize>,
    /// What a node sends, in the method progap; each has defaults of its own [default: auto, which is labels, or
    /// embeddings where labels do not help; labels at node level; embeddings in the preset paper]
    #[arg(long, value_enum, help_heading = "Model")]
    messages: Option<MessagesName>,
    /// Layers of each base network [default: 1]
    #[arg(long, help_heading = "Model")]
    layers: Option<usize>,
    /// Layers of the encoder, for the method gap [default: 2]
    #[arg(long, help_heading = "Model")]
    encoder_layers: Option<usize>,
    /// Width of hidden layers [default: 16]
    #[arg(long, help_heading = "Model")]
    hidden: Option<usize>,
    /// How base networks are combined [default: cat]
    #[arg(long, value_enum, help_heading = "Model")]
    jk: Option<JkName>,
    /// Non-linear function [default: selu]
    #[arg(long, value_enum, help_heading = "Model")]
    activation: Option<ActivationName>,
    /// Share of values set to zero in training [default: 0]
    #[arg(long, help_heading = "Model")]
    dropout: Option<f64>,
    /// Train only the newest base network in each stage
    #[arg(long, help_heading = "Model")]
    layerwise: bool,
    /// Epochs in each stage [default: 100; 10 at node level]
    #[arg(long, help_heading = "Training")]
    epochs: Option<usize>,
    /// Learning rate [default: 0.01; 0.02 for label messages at node level and for dp-gnn]
    #[arg(long, visible_alias = "lr", help_heading = "Training")]
    learning_rate: Option<f64>,
    /// Weight decay [default: 0.001 for label messages, but at node level, else 0]
    #[arg(long, help_heading = "Training")]
    weight_decay: Option<f64>,
    /// Expected batch size at node level [default: 512 for label messages, 2048 for dp-gnn, else 256]
    #[arg(long, help_heading = "Training")]
    batch_size: Option<usize>,
    /// Norm to which gradients are clipped at node level [default: 1]
    #[arg(long, help_heading = "Training")]
    clip: Option<f64>,
    /// Which epoch of a stage is kept [default: best-validation; last-epoch at node level]
    #[arg(long, value_enum, help_heading = "Training")]
    selection: Option<SelectionName>,
    /// How a sender's influence is bounded at node level [default: weight]
    #[arg(long, value_enum, help_heading = "Privacy")]
    bounding: Option<BoundingName>,
    /// Square of a sender's largest influence at node level; with sampling its largest number of edges [default: 100]
    #[arg(long, help_heading = "Privacy")]
    max_degree: Option<u32>,
    /// Noise of gradients relative to that of aggregations at node level [default: 2 for label messages, else 1]
    #[arg(long, help_heading = "Privacy")]
    gradient_noise_ratio: Option<f64>,
    /// By which theorem noise is chosen [default: best]
    #[arg(long, value_enum, help_heading = "Privacy")]
    accounting: Option<AccountingName>,
}

/// Train a node classifier, private or not, and leave a release: model, noisy aggregates, privacy statement
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap train                                            the built-in network, edges private, epsilon 1
  progap train my-graph/ --label diagnosis --epsilon 2 --out release/
  progap train fb:Berkeley13 --level node --epsilon 8 --ledger budget.db      after progap ledger init budget.db --data ...
  progap train --method gap --level edge --epsilon 2      another method on the same rails
  progap train --preset paper --level edge --depth 5 --repeats 5 --seed 1 --json
  progap train --resume release/                          go on after a crash or Ctrl-C
  progap train --config release/config.toml               the same settings again")]
pub struct Train {
    #[command(flatten)]
    choices: Choices,
    /// Ledger to charge before any noisy value is used
    #[arg(long, value_name = "FILE", help_heading = "Privacy")]
    ledger: Option<PathBuf>,
    /// The data set's name in the ledger [default: found by the data, else the name of the data set]
    #[arg(long, value_name = "NAME", requires = "ledger", help_heading = "Privacy")]
    ledger_name: Option<String>,
    /// Folder for the release [default: releases/NAME-LEVEL-NUMBER]
    #[arg(long, short = 'o', value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with an interrupted run, with the data and the settings it began with
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// Train so often, each time with other noise, other initial values and, where the data has no split of its own and
    /// --split-seed is not given, another split; every run is a release of its own, and all of them spend budget
    #[arg(long, default_value_t = 1, value_name = "R", value_parser = clap::value_parser!(u64).range(1..=1000))]
    repeats: u64,
    /// Number of threads [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
    /// Print nothing but errors
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
}

macro_rules! names {
    ($(#[$meta:meta])* $name:ident => $target:ident { $($variant:ident),* }) => {
        #[derive(Clone, Copy, ValueEnum)]
        $(#[$meta])*
        enum $name { $($variant),* }

        impl From<$name> for $target {
            fn from(name: $name) -> $target {
                match name { $($name::$variant => $target::$variant),* }
            }
        }
    };
}

/// The methods of the registry, by name.
fn method_names() -> impl TypedValueParser<Value = Method> {
    let names = Method::ALL.iter().map(|method| method.name());
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Method>())
}

names!(MessagesName => Messages { Embeddings, Labels, Auto });
names!(LevelName => Level { None, Edge, Node });
names!(JkName => Combination { Cat, Sum, Mean, Max, Wsum, Attn, Lstm });
names!(ActivationName => Nonlinearity { Selu, Relu, Tanh });
names!(SelectionName => Selection { BestValidation, LastEpoch });
names!(BoundingName => Bounding { Weight, Cap, Sample });
names!(AccountingName => Accounting { Best, Rdp, Theorem });

#[derive(Clone, Copy, ValueEnum)]
enum Preset {
    /// Tight and provable.
    Default,
    /// The published accounting, sampling and settings; the directed edge as unit, and the published rule for delta.
    Paper,
}

#[derive(Clone, Copy)]
enum Delta {
    Auto,
    Value(f64),
}

fn parse_delta(text: &str) -> Result<Delta, String> {
    match text {
        "auto" => Ok(Delta::Auto),
        text => text.parse().map(Delta::Value).map_err(|_| "give a number such as 1e-7, or auto".to_string()),
    }
}

/// What can be said anew when an interrupted run goes on; all else was decided when it began.
const STILL_OPEN: [&str; 5] = ["resume", "threads", "json", "quiet", "data_dir"];

/// Refuses `--resume` together with what the run decided when it began.
pub fn settle_resumed(command: clap::Command) -> clap::Command {
    command.mut_args(|arg| match STILL_OPEN.contains(&arg.get_id().as_str()) {
        true => arg,
        false => arg.conflicts_with("resume"),
    })
}

impl Train {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        // The first Ctrl-C keeps what is done and stops; the second ends the program at once.
        let stop = stop::on_ctrl_c()?;
        if let Some(folder) = &self.resume {
            let source = Source::kept(&run::interrupted(folder)?.source)?;
            let report = self.once(&source, None, folder, &mut None, stop)?;
            return self.say(vec![report]);
        }
        let (settings, source) = self.choices.settings()?;
        settings.check()?;
        if self.ledger.is_some() {
            run::chargeable(&settings)?;
        }
        if let Some(file) = self.choices.config.as_ref().filter(|_| source.is_missing()) {
            return Err(format!(
                "{0}: the data {1:?} is not here; say where it lies: progap train FOLDER/{1} --config {0}",
                file.display(),
                source.name()
            )
            .into());
        }
        let mut reports = Vec::new();
        let base = match &self.out {
            Some(out) => out.clone(),
            None => fresh_folder(source.name(), settings.level)?,
        };
        // Found once: all repeats are on the same data, whatever their split.
        let mut account = None;
        for repeat in 0..self.repeats {
            let folder =
                if self.repeats == 1 { base.clone() } else { base.join(format!("run-{}", repeat + 1)) };
            // The split always has a seed; the noise has one in experiments only.
            let settings = Settings { seed: settings.seed.map(|seed| seed + repeat), ..settings.clone() };
            let source = source.with_seed(source.given_seed().unwrap_or(0) + repeat);
            let report = self.once(&source, Some(&settings), &folder, &mut account, stop);
            if report.is_err() && self.out.is_none() {
                // A name that was taken for nothing is free again; a folder that holds anything stays.
                let _ = std::fs::remove_dir(&base).and_then(|()| std::fs::remove_dir("releases"));
            }
            reports.push(report?);
        }
        self.say(reports)
    }
}

impl Choices {
    /// The settings by preset or file, changed by flags; and the data set.
    pub fn settings(&self) -> Result<(Settings, Source), Box<dyn std::error::Error>> {
        let mut source = self.source.clone();
        let mut settings = match &self.config {
            Some(file) => {
                let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
                let config: release::Config =
                    toml::from_str(&text).map_err(|e| config_problem(file, &text, &e))?;
                source = source.or_published(Source::kept(&config.source)?);
                config.settings
            }
            None => {
                let method = self.method.unwrap_or(Method::Progap);
                let level = self.level.map_or_else(|| default_level(method), Level::from);
                match self.preset.unwrap_or(Preset::Default) {
                    Preset::Default => match self.messages {
                        Some(MessagesName::Embeddings) if method == Method::Progap => Settings::plain(level),
                        _ => Settings::of(method, level),
                    }
                    .unit_by_graph(),
                    Preset::Paper => Settings::paper(method, level),
                }
            }
        };
        if let Some(method) = self.method.filter(|&method| method != settings.method) {
            settings = Settings {
                seed: settings.seed,
                epsilon: settings.epsilon,
                delta: settings.delta.filter(|_| method.has_delta()),
                undirected: settings.undirected,
                unit_from_data: settings.unit_from_data,
                delta_rule: settings.delta_rule,
                ..Settings::of(method, settings.level)
            };
        }
        if let Some(level) = self.level.map(Level::from).filter(|&level| level != settings.level) {
            let fresh = Settings::of(settings.method, level);
            settings = Settings {
                level,
                undirected: false,
                unit_from_data: level == Level::Edge,
                epsilon: fresh.epsilon,
                epochs: fresh.epochs,
                selection: fresh.selection,
                ..settings
            };
        }
        fn set<T, U: From<T>>(slot: &mut U, given: Option<T>) {
            if let Some(value) = given {
                *slot = value.into();
            }
        }
        set(&mut settings.depth, self.depth);
        set(&mut settings.messages, self.messages);
        set(&mut settings.layers, self.layers);
        set(&mut settings.hidden, self.hidden);
        set(&mut settings.encoder_layers, self.encoder_layers);
        set(&mut settings.jk, self.jk);
        set(&mut settings.activation, self.activation);
        set(&mut settings.dropout, self.dropout);
        set(&mut settings.epochs, self.epochs);
        set(&mut settings.learning_rate, self.learning_rate);
        set(&mut settings.weight_decay, self.weight_decay);
        set(&mut settings.batch_size, self.batch_size);
        set(&mut settings.clip, self.clip);
        set(&mut settings.selection, self.selection);
        set(&mut settings.bounding, self.bounding);
        set(&mut settings.max_degree, self.max_degree);
        set(&mut settings.gradient_noise_ratio, self.gradient_noise_ratio);
        set(&mut settings.accounting, self.accounting);
        settings.layerwise |= self.layerwise;
        // Where an edge of the data is two in the graph, friendships are protected, not one direction of them.
        if self.directed && settings.level != Level::Edge {
            return Err("--directed has no effect: it belongs to --level edge; leave it out".into());
        } else if self.directed {
            (settings.undirected, settings.unit_from_data) = (false, false);
        } else if self.source.has_friendships() && settings.level == Level::Edge {
            (settings.undirected, settings.unit_from_data) = (true, false);
        }
        settings.epsilon = self.epsilon.or(settings.epsilon);
        match self.delta {
            None => {}
            Some(Delta::Auto) => settings.delta = None,
            Some(Delta::Value(delta)) => settings.delta = Some(delta),
        }
        settings.seed = self.source.given_seed().or(settings.seed);
        if let Some(seed) = self.source.given_seed().or(source.given_seed()).or(settings.seed) {
            source = source.with_seed(seed);
        }
        let ignored = |name: &&str| !["epsilon", "delta"].contains(name);
        for name in self.given().into_iter().filter(ignored) {
            if let Some(why) = without_effect(&settings, name) {
                return Err(format!("--{} has no effect: {why}; leave it out", name.replace('_', "-")).into());
            }
        }
        Ok((settings, source))
    }

    /// The settings that were asked for by a flag, by their names in config.toml.
    pub fn given(&self) -> Vec<&'static str> {
        let all = [
            ("messages", self.messages.is_some()),
            ("encoder_layers", self.encoder_layers.is_some()),
            ("layerwise", self.layerwise),
            ("batch_size", self.batch_size.is_some()),
            ("clip", self.clip.is_some()),
            ("bounding", self.bounding.is_some()),
            ("max_degree", self.max_degree.is_some()),
            ("gradient_noise_ratio", self.gradient_noise_ratio.is_some()),
            ("accounting", self.accounting.is_some()),
            ("epsilon", self.epsilon.is_some()),
            ("delta", matches!(self.delta, Some(Delta::Value(_)))),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}

impl Train {
    /// One run; without settings, an interrupted one goes on.
    fn once(
        &self,
        source: &Source,
        settings: Option<&Settings>,
        folder: &Path,
        account: &mut Option<Account>,
        stop: &AtomicBool,
    ) -> Result<RunReport, Box<dyn std::error::Error>> {
        let dataset = {
            let _spinner = ui::spinner(format!("loading {}", source.name()));
            source.load_split()?
        };
        // The unit is decided here, so that the budget, the findings and the run mean the same one.
        let settings = settings.map(|settings| settings.for_data(&dataset));
        let settings = settings.as_ref();
        if let (Some(settings), Some(ledger), None) = (settings, &self.ledger, &account) {
            *account = Some(self.account(&dataset, source, settings, ledger)?);
        }
        let remarks = match settings {
            Some(settings) => lint(&dataset, settings, &self.choices.given()),
            None => lint(&dataset, &run::interrupted(folder)?.settings, &[]),
        };
        let majority = progap_graph::summary::majority_baseline(&dataset);
        let (start, cpu) = (Instant::now(), ui::cpu_seconds());
        let view = Training::new(!self.quiet && !self.json);
        let mut observer = |progress: &Progress| {
            view.set(progress);
            if stop.load(Ordering::SeqCst) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let release = match settings {
            Some(settings) => {
                run::train(dataset, settings, folder, account.as_ref(), source.keep(), &mut observer)
            }
            None => run::resume(dataset, folder, &mut observer),
        };
        let release = release.map_err(|error| resumable(error, folder))?;
        drop(view);
        Ok(report(&release, remarks, majority, start.elapsed().as_secs_f64(), ui::cpu_seconds() - cpu))
    }

    /// The budget that is charged; what the owner must know about it is said before anything is.
    fn account(
        &self,
        dataset: &Dataset,
        source: &Source,
        settings: &Settings,
        ledger: &Path,
    ) -> Result<Account, Box<dyn std::error::Error>> {
        let name = self.ledger_name.as_deref();
        let found = Account::find(dataset, settings, ledger, name).map_err(|error| match error {
            progap::Error::Ledger(
                error @ (ledger::Error::Unregistered { .. } | ledger::Error::Unit { .. }),
            ) => match init_line(dataset, source, settings, ledger, &error) {
                Ok(line) => error.with_init(line).to_string(),
                // A run that cannot work needs no budget.
                Err(impossible) => impossible.to_string(),
            },
            other => other.to_string(),
        });
        let (account, warning) = found?;
        if let Some(warning) = warning {
            ui::warn(&warning.to_string());
        }
        Ok(account)
    }

    fn say(&self, reports: Vec<RunReport>) -> Outcome {
        if self.quiet { Ok(()) } else { summary::show(reports, self.json) }
    }
}

/// The command that gives these data a budget which this run just fits.
fn init_line(
    dataset: &Dataset,
    source: &Source,
    settings: &Settings,
    file: &Path,
    error: &ledger::Error,
) -> progap::Result<String> {
    let (plan, unit) = (run::prepare(dataset, settings)?, run::chargeable(settings)?);
    let (ledger::Error::Unregistered { dataset: name, .. } | ledger::Error::Unit { dataset: name, .. }) =
        error
    else {
        return Ok("progap ledger init".into());
    };
    // A run without a delta is charged at any.
    let delta = if plan.delta > 0.0 { plan.delta } else { delta::usual(dataset.graph().distinct_edges()) };
    let mut words = vec!["progap".to_owned(), "ledger".into(), "init".into(), file.display().to_string()];
    words.push("--data".into());
    words.extend(source.as_arguments());
    if name != dataset.name() {
        words.extend(["--name".into(), name.clone()]);
    }
    let epsilon = settings.epsilon.unwrap_or(1.0);
    words.extend(["--unit".into(), unit.to_string(), "--epsilon".into(), epsilon.to_string()]);
    words.extend(["--delta".into(), format!("{delta:e}")]);
    Ok(words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "))
}

/// What is wrong with a file of settings, in one sentence.
fn config_problem(file: &Path, text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = 1 + before.matches('\n').count();
    format!("{}: line {line}: {}; correct it and try again", file.display(), error.message())
}

/// Says how to go on after an error that leaves the run as it was, such as a full disk.
fn resumable(error: progap::Error, folder: &Path) -> Box<dyn std::error::Error> {
    use progap::Error::{Data, File, Ledger};
    let began = run::is_interrupted(folder);
    match error {
        Data(_) | File { .. } | Ledger(_) if began => {
            format!("{error}; once that is mended, go on with `progap train --resume {}`", folder.display())
                .into()
        }
        error => error.into(),
    }
}

/// Makes the first folder `releases/NAME-LEVEL-NUMBER` that does not exist, so that no other run takes it.
fn fresh_folder(name: &str, level: Level) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let name = Path::new(name).file_name().map_or_else(|| name.into(), |name| name.to_string_lossy());
    let name: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let level = format!("{level:?}").to_lowercase();
    let releases = Path::new("releases");
    std::fs::create_dir_all(releases).map_err(|e| format!("{}: {e}", releases.display()))?;
    for number in 1..=1_000_000 {
        let folder = releases.join(format!("{}-{level}-{number}", name.trim_matches('-')));
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            // Also one that another run has just taken.
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(format!("{}: {e}", folder.display()).into()),
        }
    }
    Err("the folder releases is full".into())
}
