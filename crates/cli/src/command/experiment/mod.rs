//! `progap experiment`: the paper's tables and figures, and comparisons of one's own.

mod collect;
mod content;
mod findings;
mod jobs;
mod plan;
mod watch;

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand, ValueEnum};
use progap::experiment::{
    self, Change, CustomFile, DataSpec, Job, Library, Name, Options, Outcome as CellOutcome, Queue, Store,
    Tuning,
};
use progap::run::Shared;
use progap::settings::{Declaration, Level, Method};
use serde_json::Value;

pub use self::jobs::shell_word;

use self::plan::Plan;
use self::watch::Watch;
use super::Outcome;
use crate::output::{Force, Inputs, refuse_releases};
use crate::report;
use crate::source::{DataFolder, Source};
use crate::{stop, ui};

/// The file of the results, in the folder of an experiment.
const RESULTS: &str = "results.sqlite";
/// What the experiment says, for `progap report`.
const REPORT: &str = "report.json";

/// Run an experiment of the paper, or a comparison of your own
///
/// Every run is stored when it ends: stop with Ctrl-C and go on with the same command at any time; what is done is not done
/// again. Runs are seeded, so that they can be repeated: none of them is a private release.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  progap experiment table2                                methods side by side, on the built-in network
  progap experiment table2 --data-sets fb:Berkeley13 --tuning grid --levels edge --methods progap
  progap experiment tradeoff --data-sets facebook,reddit  accuracy against epsilon
  progap experiment custom mine.toml                      settings of your own, side by side
  progap experiment depth --jobs-file jobs.txt            one command per line, for a cluster
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
    /// A comparison from a file: settings to start from, and lists of those to vary
    Custom(Custom),
    /// Collect results from other machines
    Merge(Merge),
    /// Put several experiments into one Markdown document
    Collect(collect::Collect),
    /// Do one job of a --jobs-file
    Job(jobs::OneJob),
}

/// What every experiment that runs something can be told.
#[derive(Args)]
pub struct Run {
    /// Data sets: names from `progap data list`, folders or files [default: demo]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    data_sets: Vec<String>,
    #[command(flatten)]
    folder: DataFolder,
    /// Runs of each settings, each with a split and a seed of its own [default: 10; 3 on demo alone]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: Option<u64>,
    /// Methods, see `progap methods`
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = <Method as FromStr>::from_str)]
    methods: Option<Vec<Method>>,
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
    /// A setting for all runs, by its name in config.toml; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_change)]
    changes: Vec<Change>,
    #[command(flatten)]
    common: Common,
}

/// How an experiment is run and where its results go.
#[derive(Args)]
struct Common {
    /// Folder for results, tables and figures [default: experiments/NAME]
    #[arg(long, short = 'o', value_name = "DIR")]
    out: Option<PathBuf>,
    /// Results file, to be shared by several experiments [default: results.sqlite in the folder]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Runs at the same time, each on one core [default: all cores]
    #[arg(long, short = 'j', value_name = "N")]
    jobs: Option<usize>,
    /// Write the runs that are left as one shell command per line, and run nothing
    #[arg(long, value_name = "FILE")]
    jobs_file: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Print how much there is to do, and run nothing
    #[arg(long)]
    plan: bool,
    /// Print one JSON object per line while it runs
    #[arg(long)]
    json: bool,
    /// Print nothing but errors
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
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
}

fn parse_change(text: &str) -> Result<Change, String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, such as epochs=20")?;
    // What is no setting, or no value of it, is refused with all else that is wrong with an experiment.
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
    fn options(&self, from_file: Vec<Source>, runs: Option<u64>) -> Result<Options> {
        let sources: Vec<Source> = match (self.data_sets.is_empty(), from_file.is_empty()) {
            (false, _) => self.data_sets.iter().map(|name| Source::of(name)).collect(),
            (true, false) => from_file,
            (true, true) => vec![Source::default()],
        };
        let demo = sources.iter().all(|source| source.name() == Source::default().name());
        let names = short_names(&sources);
        let spec = |(source, name): (Source, String)| spec(&source.in_folder(&self.folder), name);
        let data = sources.into_iter().zip(names).map(spec).collect::<Result<Vec<DataSpec>>>()?;
        Ok(Options {
            data,
            runs: self.runs.or(runs).unwrap_or(if demo { 3 } else { 10 }),
            methods: self.methods.clone(),
            levels: self.levels.clone(),
            epsilons: self.epsilons.clone(),
            depths: self.depths.clone(),
            tuning: match self.tuning {
                TuningName::None => Tuning::None,
                TuningName::Grid => Tuning::Grid,
                TuningName::Private => Tuning::Private,
            },
            paper: self.preset == Preset::Paper,
            changes: self.changes.clone(),
        })
    }
}

impl Custom {
    fn run(self) -> Outcome {
        let Run { methods, levels, epsilons, depths, .. } = &self.run;
        if methods.is_some() || levels.is_some() || epsilons.is_some() || depths.is_some() {
            return Err(
                "what varies is said in the file: --methods, --levels, --epsilons and --depths are not used"
                    .into(),
            );
        }
        let file = CustomFile::read(&self.file)?;
        let source = |value: &Value| -> Result<Source> {
            match value {
                Value::String(name) => Ok(Source::of(name)),
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

impl Common {
    /// Does what is left of an experiment, and shows all of it.
    fn run(
        &self,
        experiment: &experiment::Experiment,
        title: &str,
        folder: &str,
        options: &Options,
    ) -> Outcome {
        let stop = stop::on_ctrl_c()?;
        let out = self.out.clone().unwrap_or_else(|| Path::new("experiments").join(folder));
        own_folder(&out, self.force)?;
        if let Some(file) = &self.jobs_file {
            self.force.file(file, &Inputs::default())?;
        }
        let path = self.store.clone().unwrap_or_else(|| out.join(RESULTS));
        let mut store = Store::open(&path)?;
        let results = store.all()?;
        let jobs = experiment.jobs()?;
        let all = jobs.len();
        let is_done = |job: &Job| results.get(&job.key()).is_some_and(|stored| stored.outcome.is_ok());
        let left: Vec<Job> = jobs.into_iter().filter(|job| !is_done(job)).collect();
        let workers = self.workers();
        let mut watch = Watch::new(experiment, &results, all, left.len(), workers, self.json, self.quiet);
        let plan = Plan { title, experiment, all, left: &left, workers, clock: watch.clock() };
        if self.json {
            ui::print(&plan.json().to_string())?;
        } else if !self.quiet {
            ui::print(&plan.text())?;
        }
        if let Some(file) = &self.jobs_file {
            return jobs::write(file, &left, &path);
        }
        if self.plan {
            return Ok(());
        }
        if !left.is_empty() {
            self.run_jobs(&left, &mut store, workers, &mut watch, stop)?;
        }
        let results = store.all()?;
        let outcomes: Vec<(_, CellOutcome)> = experiment
            .cells
            .iter()
            .map(|cell| Ok((cell, experiment::outcome(experiment, cell, &results)?)))
            .collect::<progap::Result<_>>()?;
        let report = content::report(title, experiment, &outcomes, options);
        self.finish(&report, &out, &outcomes)
    }

    fn workers(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.unwrap_or_else(cores).max(1)
    }

    fn run_jobs(
        &self,
        left: &[Job],
        store: &mut Store,
        workers: usize,
        watch: &mut Watch,
        stop: &AtomicBool,
    ) -> Outcome {
        let library = Library::new(load);
        // A data set that is not here, or not the same any more, is said before anything runs.
        let mut seen: Vec<&DataSpec> = Vec::new();
        for job in left {
            if seen.contains(&&job.data) {
                continue;
            }
            seen.push(&job.data);
            let _spinner = ui::spinner(format!("loading {}", job.data.name));
            let loaded = library.get(&job.data, job.split)?;
            if let Some(before) = store.fingerprint(job)?.filter(|before| *before != loaded.fingerprint) {
                return Err(format!(
                    "the data set {} has changed since the results in {} were computed (fingerprint {}, then {before}): \
                     name another folder with --out",
                    job.data.name,
                    store.path().display(),
                    loaded.fingerprint
                )
                .into());
            }
        }
        let shared = Shared::default();
        let queue = Queue { jobs: left, workers, library: &library, shared: &shared, stop };
        let tally = queue.run(store, &mut |notice| watch.notice(notice))?;
        watch.end();
        if tally.left > 0 {
            return Err(format!(
                "stopped: {} runs were stored, {} are left; the same command goes on",
                tally.finished, tally.left
            )
            .into());
        }
        Ok(())
    }

    fn finish(
        &self,
        report: &report::Report,
        out: &Path,
        outcomes: &[(&experiment::Cell, CellOutcome)],
    ) -> Outcome {
        let page = write_report(report, out)?;
        if self.json {
            return ui::print(&watch::end_event(outcomes, &page).to_string());
        }
        if self.quiet {
            return Ok(());
        }
        ui::print(&content::terminal(report))?;
        ui::print(&format!("\nwritten to {}", out.display()))
    }
}

/// Writes what an experiment says: for people, and for `progap report`.
fn write_report(report: &report::Report, out: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(out).map_err(|e| format!("{}: {e}", out.display()))?;
    let file = out.join(REPORT);
    let beside = out.join("report.json.partial");
    let text = serde_json::to_string_pretty(report)?;
    std::fs::write(&beside, text)
        .and_then(|()| std::fs::rename(&beside, &file))
        .map_err(|e| format!("{}: {e}", file.display()))?;
    report::write(report, out)
}

/// Refuses a folder that holds something other than an experiment. In its own folder an experiment goes on, and shows itself
/// anew: that is how it is used.
fn own_folder(out: &Path, force: Force) -> Result<()> {
    match is_folder(out) || out.join(RESULTS).is_file() {
        true => refuse_releases(out)?,
        false => force.folder(out, &[], &Inputs::default())?,
    }
    Ok(())
}

/// Whether a folder is that of an experiment that was shown.
pub fn is_folder(folder: &Path) -> bool {
    folder.join(REPORT).is_file()
}

/// What the experiment in a folder says, if there is one.
pub fn kept_report(folder: &Path) -> Result<Option<report::Report>> {
    let file = folder.join(REPORT);
    if !is_folder(folder) {
        if folder.join(RESULTS).is_file() {
            let problem = "the experiment has not come to its end; run it again to go on";
            return Err(format!("{}: {problem}", folder.display()).into());
        }
        return Ok(None);
    }
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let report = serde_json::from_str(&text).map_err(|e| {
        format!("{}: {e}; run the experiment again, which repeats no run, to write it anew", file.display())
    })?;
    Ok(Some(report))
}

impl Table1 {
    fn run(self) -> Outcome {
        own_folder(&self.out, self.force)?;
        let names = if self.data_sets.is_empty() { vec!["demo".to_string()] } else { self.data_sets };
        let sources: Vec<Source> =
            names.iter().map(|name| Source::of(name).in_folder(&self.folder)).collect();
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
        // What has no ending of a file is the folder of an experiment.
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

/// What data sets are called in tables: files by their names, without folder and ending, unless two would be the same.
fn short_names(sources: &[Source]) -> Vec<String> {
    let short = |source: &Source| {
        let path = Path::new(source.name());
        let is_path = path.components().count() > 1 || path.extension().is_some();
        let stem = path.file_stem().filter(|_| is_path).and_then(|stem| stem.to_str());
        stem.unwrap_or(source.name()).to_string()
    };
    let names: Vec<String> = sources.iter().map(short).collect();
    let is_unique = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
    let one = |(source, name): (&Source, &String)| {
        if is_unique(name) { name.clone() } else { source.name().to_string() }
    };
    sources.iter().zip(&names).map(one).collect()
}

/// A data set as jobs name it: what decides its content, and where it lies here.
fn spec(source: &Source, name: String) -> Result<DataSpec> {
    let mut content = serde_json::to_value(source)?;
    let place = content.as_object_mut().and_then(|fields| fields.remove("folder")).unwrap_or(Value::Null);
    Ok(DataSpec { name, content, place })
}

/// Loads the data set of a job.
fn load(spec: &DataSpec, split: u64) -> progap::Result<progap_graph::Dataset> {
    let mut all = spec.content.clone();
    if let Some(fields) = all.as_object_mut().filter(|_| !spec.place.is_null()) {
        fields.insert("folder".into(), spec.place.clone());
    }
    let source: Source = serde_json::from_value(all)
        .map_err(|e| progap::Error::Unsuitable(format!("the data set {}: {e}", spec.name)))?;
    Ok(source.with_seed(split).load_split()?)
}
