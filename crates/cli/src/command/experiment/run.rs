//! From an experiment to its report: what is left to do is done, and all of it is shown.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::Args;
use progap::run::StageCache;
use progap_experiments::{
    Cell, DataSpec, Experiment, Job, Library, Options, Outcome as CellOutcome, Queue, Store,
};

use super::folder::{RESULTS, claim, write_report};
use super::schedule::Schedule;
use super::watch::{self, Form, Runs, Watch};
use super::{content, jobs, sources};
use crate::command::Outcome;
use crate::output::{Force, Inputs};
use crate::{report, stop, ui};

/// How an experiment is run and where its results go.
#[derive(Args)]
pub struct Common {
    /// Folder for results, tables and figures [default: experiments/NAME]
    #[arg(long, short = 'o', value_name = "DIR")]
    out: Option<PathBuf>,
    /// Results file, to be shared by several experiments [default: results.sqlite in the folder]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Runs at a time, each on one core [default: all cores]
    #[arg(long, short = 'j', value_name = "N")]
    jobs: Option<usize>,
    /// Write the remaining runs as one shell command per line, and run nothing
    #[arg(long, value_name = "FILE")]
    jobs_file: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Print the plan, and run nothing
    #[arg(long)]
    plan: bool,
    /// Print progress as one JSON object per line
    #[arg(long)]
    json: bool,
    /// Print nothing but errors, and JSON where it is asked for
    #[arg(long, short)]
    quiet: bool,
}

impl Common {
    /// Does what is left of an experiment, and shows all of it.
    pub fn run(&self, experiment: &Experiment, title: &str, folder: &str, options: &Options) -> Outcome {
        let stop = stop::on_ctrl_c()?;
        let out = self.out.clone().unwrap_or_else(|| Path::new("experiments").join(folder));
        claim(&out, self.force)?;
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
        let form = match (self.json, self.quiet) {
            (true, _) => Form::Lines,
            (false, true) => Form::Nothing,
            (false, false) => Form::Bar,
        };
        let runs = Runs { all, left: left.len(), workers };
        let mut watch = Watch::new(experiment, &results, runs, form);
        let plan = Schedule { title, experiment, all, left: &left, workers, clock: watch.clock() };
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
            Self::run_jobs(&left, &mut store, workers, &mut watch, stop)?;
        }
        let results = store.all()?;
        let outcomes: Vec<(_, CellOutcome)> = experiment
            .cells
            .iter()
            .map(|cell| Ok((cell, progap_experiments::outcome(experiment, cell, &results)?)))
            .collect::<progap::Result<_>>()?;
        let report = content::report(title, experiment, &outcomes, options);
        self.finish(&report, &out, &outcomes)
    }

    fn workers(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.unwrap_or_else(cores).max(1)
    }

    fn run_jobs(
        left: &[Job],
        store: &mut Store,
        workers: usize,
        watch: &mut Watch,
        stop: &AtomicBool,
    ) -> Outcome {
        let library = Library::new(sources::load);
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
                    "the data set {} has changed since the results in {} were computed (fingerprint {}, then \
                     {before}): \
                     choose another folder with --out",
                    job.data.name,
                    store.path().display(),
                    loaded.fingerprint
                )
                .into());
            }
        }
        let cache = StageCache::default();
        let queue = Queue { jobs: left, workers, library: &library, cache: &cache, stop };
        let tally = queue.run(store, &mut |notice| watch.notice(notice))?;
        watch.end();
        if tally.left > 0 {
            return Err(format!(
                "stopped: {} runs are stored, {} are left; run the same command to continue",
                tally.finished, tally.left
            )
            .into());
        }
        Ok(())
    }

    fn finish(&self, report: &report::Report, out: &Path, outcomes: &[(&Cell, CellOutcome)]) -> Outcome {
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
