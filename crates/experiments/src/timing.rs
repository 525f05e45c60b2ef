//! How long the runs that are left will take, from those that are done.

use std::collections::HashMap;

use super::{Job, Stored};
use progap::settings::Settings;

/// The work of a run in an arbitrary unit, to compare runs of one method on one data set.
pub fn work(settings: &Settings) -> f64 {
    let stages = settings.depth as f64 + 1.0;
    // Stage s trains s + 1 base networks. A dense layer more costs about what 1.3 of the first ones cost, which see
    // mostly zeros.
    let layers = 1.3 * settings.layers as f64 - 0.3;
    settings.epochs as f64 * layers * stages * (stages + 1.0) / 2.0
}

/// The time that a unit of work takes.
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

    /// The time that jobs take on one core, and the number of jobs of which nothing is known, which are taken to be
    /// like the others.
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::DataSpec;
    use progap::Level;

    #[test]
    fn the_time_left_follows_the_work() {
        let settings =
            |depth| Settings { depth, ..Settings::of(progap::MethodKind::ProgapLabels, Level::Edge) };
        let job = |name: &str, depth| Job {
            data: DataSpec { name: name.into(), content: Value::Null, place: Value::Null },
            split: 1,
            settings: settings(depth).into(),
        };
        let mut clock = Clock::default();
        assert_eq!(clock.seconds(&[job("a", 1)]), None, "nothing is known yet");
        clock.add("a", &settings(1), 3.0);
        // Depth 1 trains 1 + 2 base networks, depth 2 one, two and three.
        assert_eq!(clock.seconds(&[job("a", 1), job("a", 2)]), Some((9.0, 0)));
        assert_eq!(clock.seconds(&[job("b", 2)]), Some((6.0, 1)), "another data set is taken to be alike");
    }
}
