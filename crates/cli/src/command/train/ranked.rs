//! `progap train` as one of several ranks.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use progap::method::Progress;
use progap::ranks::{self, Moment, Ranks, Sent, Traffic};
use progap::release::words;
use progap::run::{self, Ranked};
use progap::settings::Level;
use serde_json::{Map, Value, json};

use super::super::Outcome;
use super::{Train, fresh_folder, resumable};
use crate::source::DataSource;
use crate::stop;
use crate::ui::{self, Training, percent};

/// Pages of the mapped file that stay in memory besides those of features and of what every rank reads.
const SMALL_PAGES: u64 = 32 << 20;
/// Bytes that every rank reads of each node: where its edges begin, its label, its part.
const NODE_BYTES: usize = 16;

impl Train {
    /// Runs the command as one of several ranks. The first says what came of it.
    pub fn run_on(self, ranks: &Ranks) -> Outcome {
        ranks.same_program()?;
        let stop = stop::on_ctrl_c()?;
        if self.repeats != 1 {
            return Err("several ranks train one release at a time: leave --repeats out".into());
        }
        let (settings, source) = match &self.resume {
            None => {
                let (settings, source) = self.choices.settings()?;
                if self.ledger.is_some() {
                    run::chargeable(&settings)?;
                }
                // The seed of the split is kept with the run, as the ordinary command keeps it.
                let seed = source.given_seed().unwrap_or(0);
                (Some(settings), source.with_seed(seed))
            }
            // The folder of a run is the first rank's.
            Some(folder) => {
                let kept = match ranks.rank() {
                    0 => Some(serde_json::to_vec(&run::interrupted(folder)?.source)?),
                    _ => None,
                };
                (None, DataSource::kept(&serde_json::from_slice::<Value>(&ranks.told(kept)?)?)?)
            }
        };
        let path = source.part_file()?;
        // Pages that are checked need not stay, nor those that the first rank reads of others.
        progap_graph::store::keep_mapped_below(SMALL_PAGES);
        let dataset = ranks::open(ranks, &path, |dataset| Ok(source.split_of(dataset)?))?;
        let first = ranks.rank() == 0;
        // Edges are copied once; their pages, and those of other ranks' rows, need not stay.
        let read = NODE_BYTES * dataset.nodes() + dataset.features().bytes() / ranks.size();
        progap_graph::store::keep_mapped_below(SMALL_PAGES + read as u64);
        let folder = match (&self.resume, &self.out) {
            (Some(folder), _) | (None, Some(folder)) => folder.clone(),
            (None, None) if first => {
                fresh_folder(source.name(), settings.as_ref().map_or(Level::None, |s| s.level))?
            }
            (None, None) => std::path::PathBuf::new(),
        };
        let view = Training::new(first && !self.quiet && !self.json);
        let mut observer = |progress: &Progress| {
            view.set(progress);
            if stop.load(Ordering::SeqCst) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let outcome = match &settings {
            None => run::resume_over(ranks, &dataset, &folder, &mut observer),
            Some(settings) => {
                let training =
                    progap::train(&dataset, settings).source(source.keep()).observer(&mut observer);
                let training = match (&self.ledger, &self.ledger_name) {
                    (Some(ledger), Some(name)) => training.ledger(ledger).ledger_name(name),
                    (Some(ledger), None) => training.ledger(ledger),
                    (None, _) => training,
                };
                training.over(ranks, &folder)
            }
        };
        let outcome = outcome.map_err(|error| match first {
            true => resumable(error, &folder),
            false => error.into(),
        })?;
        drop(view);
        match outcome {
            Some(_) if self.quiet && !self.json => Ok(()),
            None => Ok(()),
            Some(ranked) => show(&ranked, source.name(), self.json),
        }
    }
}

fn show(ranked: &Ranked, name: &str, json: bool) -> Outcome {
    let (settings, metrics) = (&ranked.settings, &ranked.metrics);
    if json {
        return ui::print(&(serde_json::to_string_pretty(&as_json(ranked, name))? + "\n"));
    }
    let whose = if metrics.unprotected { ", for the data owner alone" } else { "" };
    let sent: Vec<String> = ranked
        .sent
        .iter()
        .map(|sent| {
            let kinds = sent.kinds();
            let kinds: Vec<String> = kinds
                .iter()
                .filter(|(_, bytes)| **bytes > 0)
                .map(|(what, bytes)| format!("{} {}", what.name(), ui::bytes(*bytes as usize)))
                .collect();
            format!("{} ({})", ui::bytes(sent.total() as usize), kinds.join(", "))
        })
        .collect();
    let memory: Vec<String> = ranked.peak_memory.iter().map(|&bytes| ui::bytes(bytes as usize)).collect();
    let mut rows = vec![
        ("test accuracy", format!("{}{whose}", percent(metrics.test_accuracy))),
        ("guarantee", ranked.statement.guarantee().to_string()),
        ("ranks", format!("{}, each with {} threads", ranked.sent.len(), ranked.cost.threads)),
        ("memory", format!("{} at most, by rank", memory.join(", "))),
    ];
    rows.extend(sent.into_iter().enumerate().map(|(rank, sent)| match rank {
        0 => ("sent by rank 0", sent),
        _ => ("by the next", sent),
    }));
    rows.push(("by stage", by_stage(ranked)));
    rows.push(("not covered", words::ADD_UP.into()));
    rows.push(("time", format!("{:.1} s", ranked.cost.seconds)));
    rows.push(("release", ranked.folder.display().to_string()));
    let next = ranked.folder.display();
    rows.push(("next", format!("progap predict {next}   progap verify {next}   progap check DATA")));
    ui::print(&ui::facts(&format!("{} on {name}", settings.method), &rows))
}

/// Bytes that all ranks together sent in each part of the run.
fn by_stage(ranked: &Ranked) -> String {
    let mut all: BTreeMap<Moment, u64> = BTreeMap::new();
    for (moment, kinds) in ranked.sent.iter().flat_map(Traffic::moments) {
        *all.entry(moment).or_default() += kinds.values().sum::<u64>();
    }
    let parts = all.iter().map(|(moment, &bytes)| format!("{moment} {}", ui::bytes(bytes as usize)));
    parts.collect::<Vec<_>>().join(", ")
}

/// Bytes by their kind.
fn kinds_as_json(kinds: &BTreeMap<Sent, u64>) -> Value {
    kinds.iter().map(|(what, bytes)| (what.name().to_string(), json!(bytes))).collect::<Map<_, _>>().into()
}

fn as_json(ranked: &Ranked, name: &str) -> Value {
    let metrics = &ranked.metrics;
    let accuracies = json!({
        "test_accuracy": metrics.test_accuracy,
        "val_accuracy": metrics.val_accuracy,
        "train_accuracy": metrics.train_accuracy,
    });
    let private = ranked.settings.level == Level::Node;
    let ranks: Vec<Value> = ranked
        .sent
        .iter()
        .zip(&ranked.peak_memory)
        .map(|(sent, peak)| {
            let stages: Map<String, Value> = sent
                .moments()
                .iter()
                .map(|(moment, kinds)| (moment.to_string(), kinds_as_json(kinds)))
                .collect();
            let kinds = kinds_as_json(&sent.kinds());
            json!({ "sent_bytes": kinds, "sent_bytes_by_stage": stages, "peak_rss_bytes": peak })
        })
        .collect();
    json!({
        "dataset": name,
        "method": ranked.settings.method,
        "level": ranked.settings.level,
        "epsilon": ranked.statement.epsilon,
        "delta": ranked.statement.delta,
        "unit": ranked.statement.unit,
        "accuracies": if private { Value::Null } else { accuracies.clone() },
        "release": ranked.folder,
        "owner": {
            "accuracies": if private { accuracies } else { Value::Null },
            "seconds": ranked.cost.seconds,
            "stages": ranked.cost.stages,
            "ranks": ranks,
        },
    })
}
