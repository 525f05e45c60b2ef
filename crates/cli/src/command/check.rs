//! `progap check`: what the data owner should know before training.

use clap::Args;
use progap::plan::PublicFacts;
use progap::release::Guarantee;
use progap::settings::{Level, MethodKind};
use progap::{Settings, delta, run};
use progap_audit::lint::{self, Remark, Weight};
use progap_graph::Dataset;
use progap_privacy::Unit;
use serde::Serialize;

use super::Outcome;
use super::train::Choices;
use crate::flags::Flags;
use crate::ui::{self, count};

/// Look for likely mistakes in a data set and in what is asked of it, before training
///
/// Takes what `progap train` takes, trains nothing and writes nothing. What it says is computed from the data as it is,
/// without noise: it is for the data owner alone. Findings are no failure; data that cannot be trained on is one.
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap check my-graph/
  progap check my-graph/ --level node --label diagnosis
  progap check fb:Berkeley13 --preset paper --json | jq '.findings[].code'")]
pub struct Check {
    #[command(flatten)]
    choices: Choices,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The object that `--json` prints.
#[derive(Serialize)]
struct CheckJson {
    /// Who may see it.
    audience: &'static str,
    dataset: String,
    method: MethodKind,
    level: Level,
    /// The unit that would be one record, and how many there are.
    unit: Option<Unit>,
    records: Option<usize>,
    epsilon: Option<f64>,
    delta: Option<f64>,
    findings: Vec<Remark>,
    /// Why it cannot be trained on like this.
    unusable: Option<String>,
}

const AUDIENCE: &str = "the data owner alone: computed from the data, without noise";

impl Check {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let (settings, source) = self.choices.settings()?;
        let dataset = {
            let _spinner = ui::spinner(format!("loading {}", source.name()));
            source.load_split()?
        };
        let facts = PublicFacts::of(&dataset, &settings);
        let settings = settings.resolve(&facts)?;
        let mut findings = findings(&dataset, &settings, &self.choices.given());
        findings.extend(lint::closely(&dataset, &settings).into_iter().map(in_words));
        let plan = run::prepare(&dataset, &settings);
        let private = settings.level != Level::None;
        // A seed makes the noise known: nothing is guaranteed.
        let planned = plan.as_ref().ok().filter(|_| private && settings.seed.is_none());
        let report = CheckJson {
            audience: AUDIENCE,
            dataset: dataset.name().to_string(),
            method: settings.method,
            level: settings.level,
            unit: planned.and_then(|plan| plan.unit),
            records: private.then(|| delta::records(&settings, facts)),
            epsilon: planned.map(|plan| plan.epsilon),
            delta: planned.map(|plan| plan.delta),
            findings,
            unusable: plan.as_ref().err().map(|error| error.said(&Flags)),
        };
        if self.json {
            ui::print(&serde_json::to_string_pretty(&report)?)?;
        } else {
            show(&report, &settings)?;
        }
        plan.map(|_| ()).map_err(Into::into)
    }
}

/// Findings in a data set for a run with these settings, in the words of this command.
pub fn findings(dataset: &Dataset, settings: &Settings, given: &[&str]) -> Vec<Remark> {
    lint::lint(dataset, settings, given).into_iter().map(in_words).collect()
}

/// A finding of the library in the words of this command.
fn in_words(remark: Remark) -> Remark {
    Remark { text: remark.said(&Flags), remedies: vec![], ..remark }
}

fn show(report: &CheckJson, settings: &Settings) -> Outcome {
    let mut rows = vec![("run", format!("{} at level {}", report.method, report.level))];
    if let Some(records) = report.records {
        rows.push(("records", format!("{} {}", count(records), delta::records_are(settings))));
    }
    if let (Some(unit), Some(epsilon), Some(delta)) = (report.unit, report.epsilon, report.delta) {
        let delta = delta::written(delta);
        rows.push(("guarantee", format!("epsilon {epsilon:.4}, delta {delta}, unit {unit}")));
    } else if settings.seed.is_some() && report.level != Level::None {
        rows.push(("guarantee", Guarantee::Seeded.to_string()));
    }
    if report.findings.is_empty() {
        rows.push(("findings", "none".into()));
    }
    rows.extend(self::rows(&report.findings, 12));
    rows.push(("for", report.audience.into()));
    ui::print(&ui::facts(&format!("check of {}", report.dataset), &rows))
}

/// Findings as rows of a summary whose values begin at column `indent`.
pub fn rows(findings: &[Remark], indent: usize) -> Vec<(&'static str, String)> {
    let row = |remark: &Remark| {
        let name = if remark.weight == Weight::Warning { "caution" } else { "note" };
        (name, ui::wrap(&remark.text, 100, indent))
    };
    findings.iter().map(row).collect()
}
