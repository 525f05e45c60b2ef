//! The cost of training in time and memory.
//!
//! These depend on the data (a graph with more edges takes longer), so they lie in the folder `private/` of a release,
//! are covered by no guarantee, and can be taken out.

pub(crate) mod memory;

use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::folder::{Folder, SMALL};
use crate::{Result, files};
pub use memory::set_memory_limit;

pub(crate) const COST: &str = "private/cost.json";

/// The time and memory of a training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Seconds from beginning to end, without loading the data.
    pub seconds: f64,
    /// Processor time in seconds; 0 where the system does not tell.
    pub cpu_seconds: f64,
    /// The peak memory of the process in bytes, data included; 0 where the system does not tell.
    pub peak_memory_bytes: u64,
    /// The number of threads.
    pub threads: usize,
    /// Whether the run was interrupted: then the time is that since it went on.
    pub resumed: bool,
    /// Where the time went, in the order in which each began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageCost>,
}

/// One kind of work of a run, and how long it took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageCost {
    /// The name of the step.
    pub name: String,
    /// Seconds from beginning to end, all times together.
    pub seconds: f64,
}

/// Divides time between kinds of work.
#[derive(Debug)]
pub struct Laps {
    last: Instant,
    stages: Vec<StageCost>,
}

impl Laps {
    /// Starts the timer.
    pub fn start() -> Laps {
        Laps { last: Instant::now(), stages: vec![] }
    }

    /// The time since the last call went into this.
    pub fn lap(&mut self, name: &str) {
        let now = Instant::now();
        self.add(StageCost { name: name.into(), seconds: (now - self.last).as_secs_f64() });
        self.last = now;
    }

    /// The time since the last call went into these, and the rest of it into `name`.
    pub fn lap_with(&mut self, parts: Vec<StageCost>, name: &str) {
        let known: f64 = parts.iter().map(|part| part.seconds).sum();
        parts.into_iter().for_each(|part| self.add(part));
        let seconds = (self.last.elapsed().as_secs_f64() - known).max(0.0);
        self.add(StageCost { name: name.into(), seconds });
        self.last = Instant::now();
    }

    fn add(&mut self, part: StageCost) {
        match self.stages.iter_mut().find(|stage| stage.name == part.name) {
            Some(stage) => stage.seconds += part.seconds,
            None => self.stages.push(part),
        }
    }

    /// Where the time went.
    pub fn stages(self) -> Vec<StageCost> {
        self.stages
    }
}

impl Cost {
    /// The cost of a release, unless it was taken out.
    pub(crate) fn read(folder: &Folder) -> Result<Option<Cost>> {
        if folder.has(COST)? { folder.json(COST, SMALL).map(Some) } else { Ok(None) }
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let file = folder.join(COST);
        let private = file.parent().unwrap_or(folder);
        files::make_folder(private)?;
        files::write_json(&file, self)
    }
}

/// Measures a run.
pub(crate) struct Stopwatch {
    start: Instant,
    cpu: f64,
    resumed: bool,
}

impl Stopwatch {
    pub fn start(resumed: bool) -> Stopwatch {
        Stopwatch { start: Instant::now(), cpu: cpu_seconds(), resumed }
    }

    pub fn stop(self, laps: Laps) -> Cost {
        Cost {
            stages: laps.stages(),
            seconds: self.start.elapsed().as_secs_f64(),
            cpu_seconds: cpu_seconds() - self.cpu,
            peak_memory_bytes: peak_memory(),
            threads: rayon::current_num_threads(),
            resumed: self.resumed,
        }
    }
}

/// Processor time of this process so far, in seconds; 0 where the system does not tell.
pub fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the program's name in parentheses, which may hold spaces; user and system time are the
    // 14th and 15th, in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// The peak memory of this process in bytes; 0 where the system does not tell.
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laps_of_one_kind_add_up_and_nothing_is_lost() {
        let mut inner = Laps::start();
        inner.lap("training");
        inner.lap("aggregation");
        inner.lap("training");
        let mut outer = Laps::start();
        outer.lap("loading");
        outer.lap_with(inner.stages(), "writing");
        let names: Vec<String> = outer.stages().into_iter().map(|stage| stage.name).collect();
        assert_eq!(names, ["loading", "training", "aggregation", "writing"]);
    }
}
