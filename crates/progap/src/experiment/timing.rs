//! How long the runs that are left will take, from those that are done.

use std::collections::HashMap;

use super::{Job, Stored};
use crate::settings::Settings;

/// The work of a run in an arbitrary unit, to compare runs of one method on one data set.
pub fn work(settings: &Settings) -> f64 {
    let stages = settings.depth as f64 + 1.0;
    // Stage s trains s + 1 base networks; a part of the work does not depend on their layers.
    settings.epochs as f64 * (1.0 + settings.layers as f64) * stages * (stages + 1.0) / 2.0
}

/// What a unit of work takes.
#[derive(Debug, Default)]
pub struct Clock {
    rates: HashMap<String, (f64, f64)>,
    runs: usize,
}

fn kind(data: &str, settings: &Settings) -> String {
    format!("{data} {} {}", settings.method, settings.level)
}

impl Clock {
    /// A clock that knows some runs.
    pub fn new<'r>(results: impl IntoIterator<Item = &'r Stored>) -> Clock {
        let mut clock = Clock::default();
        for run in results {
            if let (Ok(_), Some(settings)) = (&run.outcome, &run.settings) {
                clock.add(&run.data, settings, run.seconds);
            }
        }
        clock
    }

    /// Learns of a run.
    pub fn add(&mut self, data: &str, settings: &Settings, seconds: f64) {
        let rate = self.rates.entry(kind(data, settings)).or_default();
        *rate = (rate.0 + seconds, rate.1 + work(settings));
        self.runs += 1;
    }

    /// The number of runs it knows.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// The time that jobs take on one core, and the number of jobs of which nothing is known, which are taken to be like
    /// the others.
    pub fn seconds<'j>(&self, jobs: impl IntoIterator<Item = &'j Job>) -> Option<(f64, usize)> {
        let (mut known, mut unknown, mut unknown_work) = (0.0, 0, 0.0);
        let (mut all_seconds, mut all_work) = (0.0, 0.0);
        for (seconds, work) in self.rates.values() {
            all_seconds += seconds;
            all_work += work;
        }
        for job in jobs {
            match self.rates.get(&kind(&job.data.name, &job.settings)) {
                Some((seconds, done)) if *done > 0.0 => known += work(&job.settings) * seconds / done,
                _ => {
                    unknown += 1;
                    unknown_work += work(&job.settings);
                }
            }
        }
        if all_work == 0.0 {
            return None;
        }
        Some((known + unknown_work * all_seconds / all_work, unknown))
    }
}
