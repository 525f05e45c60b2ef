//! `progap train`: from a data set to a release.

mod choices;
#[cfg(feature = "mpi")]
mod ranked;
mod scores;
mod settings_file;
mod summary;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Args;
use progap::cost::Laps;
use progap::method::Progress;
use progap::run::Account;
use progap::settings::{Draft, Level, PublicFacts, ValidSettings};
use progap::{Remedy, delta, run};
use progap_graph::Dataset;

pub use choices::Choices;
pub use summary::other_unit;
use summary::{RunReport, Times, report};

use super::Outcome;
use super::check::findings;
use super::experiment::shell_word;
use crate::flags;
use crate::source::DataSource;
use crate::stop;
use crate::ui::{self, Training};

/// Train a node classifier, private or not, and leave a release: model, noisy aggregates, privacy statement
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap train                                   # the built-in network, edges private
  progap train my-graph/ --label diagnosis --epsilon 2 --out release/
  progap train fb:Berkeley13 --level node --epsilon 8 --ledger budget.db
  progap train --method gap --level edge --epsilon 2
  progap train --preset paper --level edge --depth 5 --repeats 5 --seed 1 --json
  progap train --resume release/                 # go on after a crash or Ctrl-C
  progap train --config release/config.toml      # the same settings again")]
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
    #[arg(long, short = 'o', value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Resume an interrupted run, with its own data and settings
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    resume: Option<PathBuf>,
    /// Number of runs; every run is a release of its own and spends budget
    ///
    /// Each has new noise, new initial values and, where the data has no split of its own and --split-seed is not
    /// given, a new split.
    #[arg(long, default_value_t = 1, value_name = "R", value_parser = clap::value_parser!(u64).range(1..=1000))]
    repeats: u64,
    /// Number of threads [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    #[command(flatten)]
    pub memory: crate::machine::Memory,
    /// Print one JSON object at the end
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Print nothing but errors, and JSON where it is asked for
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
    /// Show all of it: probabilities, rare classes, the other unit, the whole statement
    #[arg(long, short, help_heading = "Output", conflicts_with_all = ["json", "quiet"])]
    verbose: bool,
}

/// Options that can be given anew when an interrupted run goes on; all else was decided when it began.
const ALLOWED_ON_RESUME: [&str; 7] = ["resume", "threads", "memory", "json", "quiet", "verbose", "data_dir"];

/// Refuses `--resume` together with what the run decided when it began.
pub fn settle_resumed(command: clap::Command) -> clap::Command {
    command.mut_args(|arg| match ALLOWED_ON_RESUME.contains(&arg.get_id().as_str()) {
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
            let began = run::interrupted(folder)?;
            let source = DataSource::kept(&began.source)?;
            let report = self.once(&source, None, folder, &mut None, stop)?;
            return self.say(vec![report], began.ledger.is_some());
        }
        let (settings, source) = self.choices.settings()?;
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
            None => fresh_folder(&source.short_name(), settings.level)?,
        };
        // Found once: all repeats are on the same data, whatever their split.
        let mut account = None;
        for repeat in 0..self.repeats {
            let folder =
                if self.repeats == 1 { base.clone() } else { base.join(format!("run-{}", repeat + 1)) };
            // The split always has a seed; the noise has one in experiments only.
            let mut settings = settings.clone();
            settings.seed = settings.seed.map(|seed| seed + repeat);
            let source = source.with_seed(source.given_seed().unwrap_or(0) + repeat);
            let report = self.once(&source, Some(&settings), &folder, &mut account, stop);
            if report.is_err() && self.out.is_none() {
                // A name that was taken for nothing is free again; a folder that holds anything stays.
                let _ = std::fs::remove_dir(&base).and_then(|()| std::fs::remove_dir("releases"));
            }
            reports.push(report?);
        }
        self.say(reports, self.ledger.is_some())
    }
}

impl Train {
    /// One run; without settings, an interrupted one goes on.
    fn once(
        &self,
        source: &DataSource,
        settings: Option<&Draft>,
        folder: &Path,
        account: &mut Option<Account>,
        stop: &AtomicBool,
    ) -> Result<RunReport, Box<dyn std::error::Error>> {
        let mut laps = Laps::start();
        let dataset = {
            let _spinner = ui::spinner(format!("loading {}", source.name()));
            // On a thread of the pool, as training: memory that loading gives back is the pool's to use again.
            rayon::scope(|_| source.load_split())?
        };
        laps.lap("loading");
        // The unit is decided here, so that the budget, the findings and the run mean the same one.
        let resolved = |draft: &Draft| draft.resolve(&PublicFacts::of(&dataset, draft));
        let settings = settings.map(resolved).transpose()?;
        let settings = settings.as_ref();
        if let (Some(settings), Some(ledger), None) = (settings, &self.ledger, &account) {
            *account = Some(self.account(&dataset, source, settings, ledger)?);
        }
        let remarks = match settings {
            Some(settings) => findings(&dataset, settings, &self.choices.given()),
            None => findings(&dataset, &run::interrupted(folder)?.settings, &[]),
        };
        laps.lap("checking");
        let (start, cpu) = (Instant::now(), ui::cpu_seconds());
        let view = Training::new(!self.quiet && !self.json);
        let mut observer = |progress: &Progress| {
            view.set(progress);
            if stop.load(Ordering::SeqCst) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let release = match settings {
            Some(settings) => {
                let training =
                    progap::train(&dataset, settings).source(source.keep()).observer(&mut observer);
                let training = match account {
                    Some(account) => training.charged_to(account.clone()),
                    None => training,
                };
                training.into_folder(folder)
            }
            None => progap::resume(&dataset, folder, &mut observer),
        };
        let release = release.map_err(|error| resumable(error, folder))?;
        let (seconds, cpu_seconds) = (start.elapsed().as_secs_f64(), ui::cpu_seconds() - cpu);
        drop(view);
        let trained = release.cost()?.map(|cost| cost.stages).unwrap_or_default();
        laps.lap_with(trained, "planning");
        report(&release, &dataset, remarks, Times { seconds, cpu_seconds, stages: laps.stages() })
    }

    /// The budget that is charged; what the owner must know about it is said before anything is.
    fn account(
        &self,
        dataset: &Dataset,
        source: &DataSource,
        settings: &ValidSettings,
        ledger: &Path,
    ) -> Result<Account, Box<dyn std::error::Error>> {
        let name = self.ledger_name.as_deref();
        let found = Account::find(dataset, settings, ledger, name).map_err(|error| match error.remedies() {
            [Remedy::CreateBudget { dataset: name, .. }] => {
                match init_line(dataset, source, settings, ledger, name) {
                    Ok(line) => error.instead(Remedy::words(format!("give it one with `{line}`"))),
                    // A run that cannot work needs no budget.
                    Err(impossible) => impossible,
                }
            }
            _ => error,
        });
        let (account, warning) = found?;
        if let Some(warning) = warning {
            ui::warn(&warning.to_string());
        }
        Ok(account)
    }

    fn say(&self, reports: Vec<RunReport>, charged: bool) -> Outcome {
        if self.quiet && !self.json {
            Ok(())
        } else {
            summary::show(reports, charged, self.json, self.verbose)
        }
    }
}

/// The command that gives these data a budget which this run just fits.
fn init_line(
    dataset: &Dataset,
    source: &DataSource,
    settings: &ValidSettings,
    file: &Path,
    name: &str,
) -> progap::Result<String> {
    let (plan, unit) = (run::prepare(dataset, settings)?, run::chargeable(settings)?);
    // A run without a delta is charged at any.
    let delta = if plan.delta > 0.0 {
        plan.delta
    } else {
        delta::usual(Level::Edge, dataset.graph().distinct_edges())
    };
    let mut words = vec!["progap".to_owned(), "ledger".into(), "init".into(), file.display().to_string()];
    words.push("--data".into());
    words.extend(source.as_arguments());
    if name != dataset.name() {
        words.extend(["--name".into(), name.to_owned()]);
    }
    let epsilon = settings.epsilon.unwrap_or(1.0);
    words.extend(["--unit".into(), unit.to_string(), "--epsilon".into(), epsilon.to_string()]);
    words.extend(["--delta".into(), format!("{delta:e}")]);
    Ok(words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "))
}

/// Says how to go on after an error that leaves the run as it was, such as a full disk.
fn resumable(error: progap::Error, folder: &Path) -> Box<dyn std::error::Error> {
    use progap::ErrorKind::{Data, File, Interrupted, Ledger};
    let began = run::is_interrupted(folder);
    match error.kind() {
        Interrupted(folder) => {
            format!("stopped; resume with `progap train --resume {}`", folder.display()).into()
        }
        Data(_) | File(_) | Ledger(_) if began => {
            let problem = flags::said(&error);
            format!(
                "{problem}; once that is mended, resume with `progap train --resume {}`",
                folder.display()
            )
            .into()
        }
        _ => error.into(),
    }
}

/// Makes the first folder `releases/NAME-LEVEL-NUMBER` that does not exist, so that no other run takes it.
fn fresh_folder(name: &str, level: Level) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let name: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
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
