//! Runs over the cores. Each run has one thread, so that what comes of it does not depend on their number.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use super::{Finished, Job, Library, Store};
use progap::plan::PublicFacts;
use progap::run::{StageCache, fit_in_memory};
use progap::{Error, Remedy, Result};

/// Something that happened to a job.
#[derive(Debug)]
pub enum Notice<'n> {
    /// It was begun.
    Begun(&'n Job),
    /// It ended, and what came of it is in the store.
    Ended {
        /// The job.
        job: &'n Job,
        /// The result, or the reason why there is none.
        outcome: &'n std::result::Result<Finished, String>,
        /// How long it took.
        seconds: f64,
    },
}

/// The numbers of jobs that ended, and how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Jobs that came to a result.
    pub finished: usize,
    /// Jobs that failed; the next invocation tries them again.
    pub failed: usize,
    /// Jobs that were not done because the user asked to stop.
    pub left: usize,
}

/// Jobs, and what they need.
pub struct Queue<'q> {
    /// The jobs, in the order in which they are begun.
    pub jobs: &'q [Job],
    /// How many run at the same time.
    pub workers: usize,
    /// Where their data comes from.
    pub library: &'q Library<'q>,
    /// The stages that they share.
    pub cache: &'q StageCache,
    /// Set to stop after the epochs that are being trained.
    pub stop: &'q AtomicBool,
}

/// A message of a worker: a job by number, and its outcome when it ended.
enum Message {
    Begun(usize),
    Ended(usize, Box<Ended>),
}

struct Ended {
    fingerprint: String,
    outcome: std::result::Result<Finished, String>,
    seconds: f64,
}

impl Queue<'_> {
    /// Does the jobs, and stores each result before the next is looked at.
    ///
    /// # Errors
    /// The store cannot be written, or its results are of other data; what is stored stays. A job that fails is stored
    /// with its error and is no error here.
    pub fn run(&self, store: &mut Store, watch: &mut dyn FnMut(&Notice<'_>)) -> Result<Tally> {
        let expected: Vec<Option<String>> =
            self.jobs.iter().map(|job| store.fingerprint(job)).collect::<Result<_>>()?;
        let next = AtomicUsize::new(0);
        let broken = AtomicBool::new(false);
        let (sender, receiver) = mpsc::channel();
        let mut tally = Tally::default();
        let (mut problem, mut started) = (None, false);
        std::thread::scope(|scope| {
            for _ in 0..self.workers.clamp(1, self.jobs.len().max(1)) {
                let (sender, next, broken, expected) = (sender.clone(), &next, &broken, &expected);
                let work = move || self.work(next, broken, expected, &sender);
                match std::thread::Builder::new().spawn_scoped(scope, work) {
                    Ok(_) => started = true,
                    // Those that run do the work.
                    Err(_) if started => break,
                    Err(error) => {
                        problem = Some(Error::unsuitable(format!(
                            "the system refuses to start a thread ({error}); allow this user more processes (see \
                             `ulimit -u`)"
                        )));
                        break;
                    }
                }
            }
            drop(sender);
            for message in receiver {
                match message {
                    Message::Begun(at) => watch(&Notice::Begun(&self.jobs[at])),
                    Message::Ended(at, ended) => {
                        let Ended { fingerprint, outcome, seconds } = *ended;
                        let job = &self.jobs[at];
                        if problem.is_some() {
                            continue;
                        }
                        if let Err(error) = store.add(job, &fingerprint, &outcome, seconds) {
                            problem = Some(error);
                            broken.store(true, Ordering::SeqCst);
                            continue;
                        }
                        match outcome {
                            Ok(_) => tally.finished += 1,
                            Err(_) => tally.failed += 1,
                        }
                        watch(&Notice::Ended { job, outcome: &outcome, seconds });
                    }
                }
            }
        });
        tally.left = self.jobs.len() - tally.finished - tally.failed;
        problem.map_or(Ok(tally), Err)
    }

    fn work(
        &self,
        next: &AtomicUsize,
        broken: &AtomicBool,
        expected: &[Option<String>],
        sender: &mpsc::Sender<Message>,
    ) {
        let stopped = || self.stop.load(Ordering::SeqCst) || broken.load(Ordering::SeqCst);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        while !stopped() {
            let at = next.fetch_add(1, Ordering::SeqCst);
            let Some(job) = self.jobs.get(at) else { break };
            // Nobody listens any more if the receiver is gone; then there is nothing to do either.
            if sender.send(Message::Begun(at)).is_err() {
                break;
            }
            let start = Instant::now();
            let mut fingerprint = String::new();
            let run = || self.once(job, expected[at].as_deref(), &mut fingerprint, &stopped);
            let run = AssertUnwindSafe(run);
            let outcome = match &pool {
                Ok(pool) => catch_unwind(AssertUnwindSafe(|| pool.install(run.0))),
                Err(_) => catch_unwind(run),
            };
            let outcome = match outcome {
                Ok(Err(error)) if error.is_interrupted() => break,
                Ok(outcome) => outcome.map_err(|error| error.to_string()),
                Err(_) => Err("a mistake in progap itself: the run panicked".to_string()),
            };
            let ended = Ended { fingerprint, outcome, seconds: start.elapsed().as_secs_f64() };
            if sender.send(Message::Ended(at, Box::new(ended))).is_err() {
                break;
            }
        }
    }

    fn once(
        &self,
        job: &Job,
        expected: Option<&str>,
        fingerprint: &mut String,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Finished> {
        let loaded = self.library.get(&job.data, job.split)?;
        fingerprint.clone_from(&loaded.fingerprint);
        if let Some(expected) = expected.filter(|expected| *expected != loaded.fingerprint) {
            return Err(Error::unsuitable(format!(
                "the data set {} is not what it was when these results were begun (fingerprint {}, then {expected})",
                job.data.name, loaded.fingerprint
            ))
            .remedy(Remedy::NewFolder));
        }
        let mut observer = |_: &_| if stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let dataset = &loaded.dataset;
        let measured = fit_in_memory(dataset, &loaded.fingerprint, &job.settings, self.cache, &mut observer)?;
        let facts = PublicFacts::of(dataset, &job.settings);
        Ok(Finished::new(&measured, facts, facts.val_nodes.unwrap_or(0)))
    }
}
