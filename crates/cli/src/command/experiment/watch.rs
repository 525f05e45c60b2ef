//! Progress while runs are under way: runs done and left, time left, the best so far.

use std::collections::HashMap;
use std::path::Path;

use progap::settings::Draft;
use progap_experiments::{Cell, Clock, Experiment, Finished, Job, Notice, Outcome, Stored};
use serde_json::{Value, json};

use crate::ui;

/// How many runs there are, and how many at a time.
pub struct Runs {
    /// Runs of the experiment.
    pub all: usize,
    /// Those that are not done.
    pub left: usize,
    /// Runs at a time.
    pub workers: usize,
}

/// How progress is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A bar, for people.
    Bar,
    /// Lines of JSON.
    Lines,
    /// Not at all.
    Nothing,
}

/// Watches a queue.
pub struct Watch {
    bar: Option<ui::Runs>,
    json: bool,
    visible: bool,
    done: usize,
    all: usize,
    workers: usize,
    clock: Clock,
    /// Work that is left, by data set.
    left: HashMap<String, Job>,
    failed: Vec<String>,
    best: Best,
}

impl Watch {
    pub fn new(experiment: &Experiment, results: &HashMap<String, Stored>, runs: Runs, form: Form) -> Watch {
        let Runs { all, left, workers } = runs;
        let jobs = experiment.jobs().unwrap_or_default();
        let mut best = Best::default();
        let mut open = HashMap::new();
        for job in jobs {
            match results.get(&job.key()).map(|stored| &stored.outcome) {
                Some(Ok(finished)) => best.add(&job, finished),
                _ => {
                    open.insert(job.key(), job);
                }
            }
        }
        Watch {
            bar: None,
            json: form == Form::Lines,
            visible: form == Form::Bar,
            done: all - left,
            all,
            workers,
            clock: Clock::new(results.values()),
            left: open,
            failed: vec![],
            best,
        }
    }

    /// The times so far.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Something happened to a job.
    pub fn notice(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::Begun(_) => {
                if self.bar.is_none() {
                    self.bar = Some(ui::Runs::new(self.visible, self.done, self.all));
                }
            }
            Notice::Ended { job, outcome, seconds } => self.ended(job, outcome, *seconds),
        }
    }

    fn ended(&mut self, job: &Job, outcome: &Result<Finished, String>, seconds: f64) {
        self.left.remove(&job.key());
        self.done += 1;
        let event = match outcome {
            Ok(finished) => {
                self.clock.add(&job.data.name, &job.settings, seconds);
                self.best.add(job, finished);
                json!({ "event": "run", "test": finished.test, "val": finished.val })
            }
            Err(error) => {
                self.failed.push(error.clone());
                json!({ "event": "failed", "error": error })
            }
        };
        let seconds_left =
            self.clock.seconds(self.left.values()).map(|(seconds, _)| seconds / self.workers as f64);
        if self.json {
            let more = json!({
                "key": job.key(),
                "data": job.data.name,
                "split": job.split,
                "method": job.settings.method,
                "level": job.settings.level,
                "epsilon": job.settings.epsilon,
                "depth": job.settings.depth,
                "seconds": seconds,
                "done": self.done,
                "left": self.left.len(),
                "seconds_left": seconds_left,
                "best_val": self.best.of(job).map(|(val, _)| val),
            });
            let mut event = event;
            if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
                event.extend(more);
            }
            // A reader that went away does not stop the runs.
            let _ = ui::print(&event.to_string());
        }
        if let Some(bar) = &self.bar {
            let mut message = seconds_left.map(|s| format!("{} left", ui::duration(s))).unwrap_or_default();
            if let Some((val, settings)) = self.best.of(job) {
                message += &format!(
                    "  best on {} ({}): val {} by {}, depth {}, layers {}, lr {}",
                    job.data.name,
                    job.settings.level,
                    ui::percent(val),
                    settings.method,
                    settings.depth,
                    settings.layers,
                    settings.learning_rate
                );
            }
            if !self.failed.is_empty() {
                message += &format!("  {} failed", self.failed.len());
            }
            bar.set(self.done, message);
        }
    }

    /// The bar goes away, and failures are told.
    pub fn end(&mut self) {
        self.bar = None;
        if let (Some(first), true) = (self.failed.first(), self.visible) {
            eprintln!(
                "warning: {} runs failed; the same command tries them again; the first error: {first}",
                self.failed.len()
            );
        }
    }
}

/// The best mean validation accuracy so far, for each data set, level and budget.
#[derive(Default)]
struct Best(HashMap<String, Vec<(Draft, f64, usize)>>);

impl Best {
    fn group(job: &Job) -> String {
        format!("{} {} {:?}", job.data.name, job.settings.level, job.settings.epsilon)
    }

    fn add(&mut self, job: &Job, finished: &Finished) {
        let Some(val) = finished.val else { return };
        let mut settings = job.settings.clone();
        settings.seed = None;
        let group = self.0.entry(Best::group(job)).or_default();
        match group.iter_mut().find(|(known, _, _)| *known == settings) {
            Some((_, sum, count)) => (*sum, *count) = (*sum + val, *count + 1),
            None => group.push((settings, val, 1)),
        }
    }

    fn of(&self, job: &Job) -> Option<(f64, &Draft)> {
        let group = self.0.get(&Best::group(job))?;
        let mean = |(_, sum, count): &(Draft, f64, usize)| sum / *count as f64;
        let best = group.iter().max_by(|a, b| mean(a).total_cmp(&mean(b)))?;
        Some((mean(best), &best.0))
    }
}

/// The last event: what came of every cell.
pub fn end_event(outcomes: &[(&Cell, Outcome)], page: &Path) -> Value {
    let cell = |(cell, outcome): &(&Cell, Outcome)| {
        json!({
            "data": cell.data.name,
            "method": cell.method,
            "level": cell.level,
            "epsilon": cell.epsilon,
            "delta": outcome.delta,
            "variant": cell.variant.iter().cloned().collect::<HashMap<_, _>>(),
            "test": outcome.mean(),
            "interval": outcome.interval(),
            "val": outcome.val.is_finite().then_some(outcome.val),
            "runs": outcome.values.len(),
            "missing": outcome.missing,
            "failed": outcome.failures.len(),
            "settings": outcome.chosen,
            "seconds": outcome.seconds.is_finite().then_some(outcome.seconds),
            "tuned_epsilon": outcome.budget.map(|budget| budget.tuned),
        })
    };
    json!({ "event": "end", "report": page, "cells": outcomes.iter().map(cell).collect::<Vec<_>>() })
}
