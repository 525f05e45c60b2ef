//! `progap experiment`: the paper's tables and figures, and comparisons of one's own.

mod accuracy;
mod collect;
mod content;
mod figures;
mod findings;
mod folder;
mod jobs;
mod run;
mod schedule;
mod sources;
mod watch;

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use progap::settings::{Declaration, Level, MethodKind, Metric};
use progap_experiments::{
    self as experiment, Change, CustomFile, DataSpec, MIN_RUNS, Name, Options, Store, Tuning,
};
use progap_graph::Ratios;
use serde_json::Value;

pub use self::folder::{is_folder, kept_report};
pub use self::jobs::shell_word;

use self::folder::{RESULTS, claim, write_report};
use self::run::Common;
use self::sources::{short_names, spec};
use super::Outcome;
use crate::output::{Force, refuse_releases};
use crate::source::{DataFolder, DataSource};
use crate::ui;

/// Run an experiment of the paper, or a comparison of your own
///
/// Every run is stored as it finishes: stop with Ctrl-C, and continue with the same command; finished runs are not
/// repeated. Runs are seeded so that anyone can repeat them: none of them is a private release.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  progap experiment table2                           # methods side by side
  progap experiment table2 --data-sets fb:Berkeley13 --tuning grid --levels edge
  progap experiment tradeoff --preset both           # accuracy against epsilon
  progap experiment labels --data-sets fb:Cornell5   # accuracy against the share of labels
  progap experiment custom mine.toml                 # settings of your own, side by side
  progap experiment depth --jobs-file jobs.txt       # one command per line, for a cluster
  progap experiment merge experiments/depth parts/*.sqlite
  progap experiment collect results.md experiments/table2 experiments/depth")]
pub enum Experiment {
    /// Sizes of data sets
    Table1(Table1),
    /// Methods by levels by data sets
    Table2(Run),
    /// Accuracy against epsilon
    Tradeoff(Run),
    /// Accuracy epoch by epoch
    Convergence(Run),
    /// Accuracy against depth, at several epsilons
    Depth(Run),
    /// Progressive against layerwise training
    Layerwise(Run),
    /// What our additions to the paper change: each on and off
    Ablation(Run),
    /// Accuracy against the share of labelled nodes, beside the published settings and the features alone
    Labels(Labels),
    /// A comparison from a file: settings to start from, and lists of those to vary
    Custom(Custom),
    /// Collect results from other machines
    Merge(Merge),
    /// Put several experiments into one Markdown document
    Collect(collect::Collect),
    /// Do one job of a --jobs-file
    Job(jobs::OneJob),
}

/// Options of every experiment that runs something.
#[derive(Args)]
pub struct Run {
    /// Data sets: names from `progap data list`, folders or files [default: demo]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    data_sets: Vec<String>,
    #[command(flatten)]
    folder: DataFolder,
    /// Runs of each settings, each with a split and a seed of its own [default: 10; 5 on demo alone]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: Option<u64>,
    /// Methods, see `progap methods`
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = <MethodKind as FromStr>::from_str)]
    methods: Option<Vec<MethodKind>>,
    /// Levels: none, edge, node
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = <Level as FromStr>::from_str)]
    levels: Option<Vec<Level>>,
    /// Budgets, at every private level
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    epsilons: Option<Vec<f64>>,
    /// Numbers of aggregations
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    depths: Option<Vec<usize>>,
    /// How settings are chosen
    #[arg(long, value_enum, default_value = "none")]
    tuning: TuningName,
    /// Settings to start from
    #[arg(long, value_enum, default_value = "default")]
    preset: Preset,
    /// The metric that tables and figures show; where validation nodes choose epochs, they do so by it
    #[arg(long, value_name = "METRIC", default_value = "accuracy", value_parser = metric_names())]
    metric: Metric,
    /// A setting for all runs, by its name in config.toml; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_change)]
    changes: Vec<Change>,
    #[command(flatten)]
    common: Common,
}

/// Sizes of data sets.
#[derive(Args)]
pub struct Table1 {
    /// Data sets: names from `progap data list`, folders or files [default: demo]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    data_sets: Vec<String>,
    #[command(flatten)]
    folder: DataFolder,
    /// Folder for the table
    #[arg(long, short = 'o', value_name = "DIR", default_value = "experiments/table1")]
    out: PathBuf,
    #[command(flatten)]
    force: Force,
}

/// A comparison of one's own.
#[derive(Args)]
#[command(after_help = "\
A file:
  name = \"how deep\"
  data-sets = [\"demo\"]
  runs = 3

  [base]
  level = \"edge\"

  [vary]
  depth = [1, 2, 3]
  epsilon = [0.5, 1.0]")]
pub struct Custom {
    /// The file
    file: PathBuf,
    #[command(flatten)]
    run: Run,
}

/// Shares of labels.
#[derive(Args)]
pub struct Labels {
    /// Shares of training nodes
    ///
    /// Validation nodes are another tenth, or a twentieth where labels are fewer; all others are test nodes.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "0.01,0.05,0.2,0.75",
        value_parser = parse_share
    )]
    shares: Vec<f64>,
    #[command(flatten)]
    run: Run,
}

/// Collecting results.
#[derive(Args)]
pub struct Merge {
    /// Results file to add to, or the folder of an experiment; made where there is none
    out: PathBuf,
    /// Results files or folders to add
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum TuningName {
    /// Fixed: the defaults of each method
    None,
    /// The paper's grid, by mean validation accuracy; not accounted for
    Grid,
    /// A random number of runs with random settings of the grid; states what that would cost a release
    Private,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Preset {
    /// Tight and provable
    Default,
    /// The published accounting, sampling and settings
    Paper,
    /// One beside the other, in table2 and tradeoff
    Both,
}

impl From<Preset> for experiment::Preset {
    fn from(preset: Preset) -> Self {
        match preset {
            Preset::Default => experiment::Preset::Default,
            Preset::Paper => experiment::Preset::Paper,
            Preset::Both => experiment::Preset::Both,
        }
    }
}

fn metric_names() -> impl TypedValueParser<Value = Metric> {
    PossibleValuesParser::new(Metric::ALL.iter().map(|metric| metric.name()))
        .map(|name| name.parse().expect("one of the names"))
}

fn parse_change(text: &str) -> Result<Change, String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, such as epochs=20")?;
    // An unknown setting, or a wrong value of one, is refused with all else that is wrong with an experiment.
    let parsed = Declaration::find(name).and_then(|setting| setting.parse(value));
    Ok((name.trim().to_string(), parsed.unwrap_or_else(|_| value.trim().into())))
}

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

impl Experiment {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self {
            Experiment::Table1(table1) => table1.run(),
            Experiment::Table2(run) => run.paper(Name::Table2),
            Experiment::Tradeoff(run) => run.paper(Name::Tradeoff),
            Experiment::Convergence(run) => run.paper(Name::Convergence),
            Experiment::Depth(run) => run.paper(Name::Depth),
            Experiment::Layerwise(run) => run.paper(Name::Layerwise),
            Experiment::Ablation(run) => run.paper(Name::Ablation),
            Experiment::Labels(labels) => labels.run(),
            Experiment::Custom(custom) => custom.run(),
            Experiment::Merge(merge) => merge.run(),
            Experiment::Collect(collect) => collect.run(),
            Experiment::Job(job) => job.run(),
        }
    }
}

impl Run {
    fn paper(self, name: Name) -> Outcome {
        let options = self.options(vec![], None)?;
        let experiment = experiment::Experiment::new(name, &options)?;
        let title = content::title(name);
        self.common.run(&experiment, title, &content::file_name(name), &options)
    }

    /// The options, with data sets and runs of a file where none are given as arguments.
    fn options(&self, from_file: Vec<DataSource>, runs: Option<u64>) -> Result<Options> {
        let sources: Vec<DataSource> = match (self.data_sets.is_empty(), from_file.is_empty()) {
            (false, _) => self.data_sets.iter().map(|name| DataSource::of(name)).collect(),
            (true, false) => from_file,
            (true, true) => vec![DataSource::default()],
        };
        let demo = sources.iter().all(|source| source.name() == DataSource::default().name());
        let names = short_names(&sources);
        let spec = |(source, name): (DataSource, String)| spec(&source.in_folder(&self.folder), name);
        let data = sources.into_iter().zip(names).map(spec).collect::<Result<Vec<DataSpec>>>()?;
        Ok(Options {
            data,
            runs: self.runs.or(runs).unwrap_or(if demo { MIN_RUNS as u64 } else { 10 }),
            methods: self.methods.clone(),
            levels: self.levels.clone(),
            epsilons: self.epsilons.clone(),
            depths: self.depths.clone(),
            tuning: match self.tuning {
                TuningName::None => Tuning::None,
                TuningName::Grid => Tuning::Grid,
                TuningName::Private => Tuning::Private,
            },
            preset: self.preset.into(),
            changes: self.changes.clone(),
            metric: self.metric,
            shares: vec![],
        })
    }
}

impl Labels {
    fn run(self) -> Outcome {
        let mut options = self.run.options(vec![], None)?;
        let sources = match self.run.data_sets.is_empty() {
            true => vec![DataSource::default()],
            false => self.run.data_sets.iter().map(|name| DataSource::of(name)).collect(),
        };
        let names: Vec<String> = options.data.iter().map(|data| data.name.clone()).collect();
        options.data.clear();
        for (source, name) in sources.iter().zip(names) {
            for &share in &self.shares {
                let val = if share < 0.05 { 0.05 } else { 0.1 };
                let source = source.clone().in_folder(&self.run.folder);
                let source = source.with_new_split(Ratios { val, test: 1.0 - val - share });
                options.data.push(spec(&source, name.clone())?);
                options.shares.push(share);
            }
        }
        let experiment = experiment::Experiment::new(Name::Labels, &options)?;
        let title = content::title(Name::Labels);
        self.run.common.run(&experiment, title, &content::file_name(Name::Labels), &options)
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.trim().parse::<f64>().ok().filter(|share| *share > 0.0 && *share <= 0.85);
    share.ok_or_else(|| "give shares above 0 and up to 0.85, such as 0.05".into())
}

impl Custom {
    fn run(self) -> Outcome {
        let Run { methods, levels, epsilons, depths, .. } = &self.run;
        if methods.is_some() || levels.is_some() || epsilons.is_some() || depths.is_some() {
            return Err(
                "the file says what varies: --methods, --levels, --epsilons and --depths do not apply".into(),
            );
        }
        let file = CustomFile::read(&self.file)?;
        let source = |value: &Value| -> Result<DataSource> {
            match value {
                Value::String(name) => Ok(DataSource::of(name)),
                table => serde_json::from_value(table.clone())
                    .map_err(|e| format!("{}: a data set: {e}", self.file.display()).into()),
            }
        };
        let sources = file.data_sets.iter().map(source).collect::<Result<_>>()?;
        let options = self.run.options(sources, file.runs)?;
        let experiment = file.experiment(&options);
        let experiment = experiment.map_err(|error| format!("{}: {error}", self.file.display()))?;
        self.run.common.run(&experiment, &file.name, &plain_name(&file.name), &options)
    }
}

/// A name as a folder can have it.
fn plain_name(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    name.trim_matches('-').to_lowercase()
}

impl Table1 {
    fn run(self) -> Outcome {
        claim(&self.out, self.force)?;
        let names = if self.data_sets.is_empty() { vec!["demo".to_string()] } else { self.data_sets };
        let sources: Vec<DataSource> =
            names.iter().map(|name| DataSource::of(name).in_folder(&self.folder)).collect();
        let mut summaries = Vec::new();
        for (source, name) in sources.iter().zip(short_names(&sources)) {
            let _spinner = ui::spinner(format!("loading {}", source.name()));
            let dataset = source.with_seed(1).load_split()?;
            summaries.push((name, progap_graph::summary::Summary::of(&dataset)));
        }
        let report = content::table1(&summaries);
        write_report(&report, &self.out)?;
        ui::print(&content::terminal(&report))?;
        ui::print(&format!("\nwritten to {}", self.out.display()))
    }
}

impl Merge {
    fn run(self) -> Outcome {
        // A path without the ending of a file is the folder of an experiment.
        let file = |path: &PathBuf| {
            if path.is_dir() || path.extension().is_none() { path.join(RESULTS) } else { path.clone() }
        };
        let inputs: Vec<PathBuf> = self.inputs.iter().map(file).collect();
        let out = file(&self.out);
        refuse_releases(&out)?;
        let merged = Store::open(&out)?.merge(&inputs)?;
        if self.json {
            return ui::print(&serde_json::to_string(&merged)?);
        }
        ui::print(&format!(
            "{}: {} results added, {} known before",
            out.display(),
            ui::count(merged.added),
            ui::count(merged.known)
        ))
    }
}
