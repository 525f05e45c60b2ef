//! The work of an experiment, said before it is done.

use progap::settings::Level;
use progap_experiments::{Clock, Experiment, Job, Tuning};
use serde_json::{Value, json};

use crate::source::DataSource;
use crate::ui;

/// How much there is to do.
pub struct Schedule<'p> {
    pub title: &'p str,
    pub experiment: &'p Experiment,
    /// All jobs, those that are done included.
    pub all: usize,
    /// Jobs to do.
    pub left: &'p [Job],
    pub workers: usize,
    pub clock: &'p Clock,
}

/// The privacy cost of choosing settings.
pub fn tuning_warning(experiment: &Experiment) -> Option<&'static str> {
    let private = experiment.cells.iter().any(|cell| cell.level != Level::None);
    match experiment.tuning {
        _ if !private => None,
        Tuning::None => None,
        Tuning::Grid => Some(
            "Settings are chosen among many runs on the same private data, as in the paper, and that choice is not \
             part of \
             the epsilon that is shown: a release tuned like this guarantees less. `--tuning private` states what a \
             choice would cost; `--tuning none` makes none.",
        ),
        Tuning::Private => Some(
            "Settings are chosen by the best of a random number of runs with random settings. What showing the best \
             would \
             cost a release is stated beside the epsilon of a run (Papernot and Steinke 2022): that holds for a \
             number of \
             runs and noise that nobody knows. Here both come from seeds, as in every experiment, and nothing is \
             private; \
             no command makes such a release.",
        ),
    }
}

impl Schedule<'_> {
    /// The seconds that are left on this many cores, if anything is known about it.
    fn seconds(&self) -> Option<f64> {
        let (seconds, _) = self.clock.seconds(self.left)?;
        let workers = self.workers.min(self.left.len()).max(1);
        Some(seconds / workers as f64)
    }

    /// The same before any run is timed: known of the built-in network alone, on which most runs take about a second.
    fn guessed_seconds(&self) -> Option<f64> {
        let built_in = DataSource::default();
        let known = self.left.iter().all(|job| job.data.name == built_in.name());
        known.then(|| self.left.len().div_ceil(self.workers.max(1)) as f64)
    }

    fn left_out(&self) -> impl Iterator<Item = String> {
        self.experiment.left_out.iter().cloned()
    }

    /// For people.
    pub fn text(&self) -> String {
        let configurations: usize = self.experiment.cells.iter().map(|cell| cell.candidates.len()).sum();
        let done = self.all - self.left.len();
        let runs = match self.experiment.tuning {
            Tuning::Private => format!(
                "{} (a random number for each of {} splits)",
                ui::count(self.all),
                self.experiment.runs
            ),
            _ => format!(
                "{} ({} configurations x {} runs, equal ones once)",
                ui::count(self.all),
                ui::count(configurations),
                self.experiment.runs
            ),
        };
        let time = match (self.left.is_empty(), self.seconds()) {
            (true, _) => "none: everything is done".to_string(),
            (false, Some(seconds)) => format!(
                "about {} on {} cores (from {} stored runs)",
                ui::duration(seconds),
                self.workers,
                ui::count(self.clock.runs())
            ),
            (false, None) => match self.guessed_seconds() {
                Some(seconds) => format!(
                    "about {} on {} cores, at a second a run; better known after the first",
                    ui::duration(seconds),
                    self.workers
                ),
                None => format!("known after the first run, on {} cores", self.workers),
            },
        };
        let mut rows = vec![
            ("runs", runs),
            ("done before", ui::count(done)),
            ("to do", ui::count(self.left.len())),
            ("time", time),
        ];
        rows.extend(self.left_out().map(|why| ("left out", ui::wrap(&why, 100, 13))));
        rows.extend(tuning_warning(self.experiment).map(|text| ("privacy", ui::wrap(text, 100, 13))));
        format!("{}\n", ui::facts(self.title, &rows))
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "event": "plan",
            "experiment": self.experiment.name,
            "title": self.title,
            "runs": self.all,
            "done": self.all - self.left.len(),
            "left": self.left.len(),
            "workers": self.workers,
            "seconds_left": self.seconds(),
            "left_out": self.left_out().collect::<Vec<_>>(),
            "warning": tuning_warning(self.experiment),
        })
    }
}
