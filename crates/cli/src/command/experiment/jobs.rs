//! Jobs for other machines: one shell command per line, and the command that each of them calls.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::Args;
use progap::run::StageCache;
use progap_experiments::{Job, Library, Queue, Store};

use super::sources::load;
use crate::command::Outcome;
use crate::output::refuse_releases;
use crate::ui;

/// One job of a `--jobs-file`.
#[derive(Args)]
pub struct OneJob {
    /// The job as JSON, as `--jobs-file` writes it
    job: String,
    /// Results file to write
    #[arg(long, short = 'o', value_name = "FILE")]
    out: PathBuf,
}

/// Writes the jobs as commands. Each writes a results file of its own beside the store, so that any number may run at
/// once.
pub fn write(file: &Path, jobs: &[Job], store: &Path) -> Outcome {
    let parts = store.parent().unwrap_or(Path::new(".")).join("parts");
    let mut text = String::new();
    for job in jobs {
        let out = parts.join(format!("{}.sqlite", job.key()));
        let job = quoted(&serde_json::to_string(job)?);
        text += &format!("progap experiment job {job} --out {}\n", quoted(&out.to_string_lossy()));
    }
    std::fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    eprintln!(
        "{} jobs written to {}; afterwards: progap experiment merge {} {}/*.sqlite",
        ui::count(jobs.len()),
        file.display(),
        store.display(),
        parts.display()
    );
    Ok(())
}

/// A text as a shell takes it for one word, in quotes only where it needs them.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/+".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.to_string() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl OneJob {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let job: Job = serde_json::from_str(&self.job).map_err(|e| format!("this is not a job: {e}"))?;
        job.settings.checked()?;
        refuse_releases(&self.out)?;
        let mut store = Store::open(&self.out)?;
        if store.all()?.get(&job.key()).is_some_and(|stored| stored.outcome.is_ok()) {
            return ui::print(&format!("{} is done already", job.key()));
        }
        let (library, cache, stop) = (Library::new(load), StageCache::default(), AtomicBool::new(false));
        let jobs = [job];
        let queue = Queue { jobs: &jobs, workers: 1, library: &library, cache: &cache, stop: &stop };
        queue.run(&mut store, &mut |_| ())?;
        let [job] = &jobs;
        match store.all()?.remove(&job.key()).map(|stored| stored.outcome) {
            Some(Ok(finished)) => ui::print(&format!("{} test {}", job.key(), ui::percent(finished.test))),
            Some(Err(error)) => Err(error.into()),
            None => Err("the job was not done".into()),
        }
    }
}
