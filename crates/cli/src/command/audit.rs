//! `progap audit`: attack the guarantee, and say what came of it.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use progap::method::Progress;
use progap::release::Statement;
use progap::settings::{Draft, MethodKind, PublicFacts};
use progap::{Level, Release, Settings, delta};
use progap_audit::attack::{self, Attack};
use progap_audit::evidence::Test;
use progap_audit::{Auditor, Finding, Trial, evaluate};
use progap_graph::AtomicFolder;
use progap_privacy::Unit;
use serde::Serialize;

use super::Outcome;
use super::train::Choices;
use crate::output::Force;
use crate::plot;
use crate::report::{Axis, Lines, Plot, Point, Series};
use crate::source::DataSource;
use crate::ui::{self, Training, count, percent};

/// Attack the guarantee by experiment: a lower bound on epsilon beside the one claimed; link and membership inference
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap audit                                       # the built-in network, edges private
  progap audit releases/demo-edge-1 --out audit/     # a release, with plots
  progap audit fb:Berkeley13 --level node --epsilon 8
  progap audit --level none --parts attacks          # what leaks without protection
  progap audit --parts mechanism --canaries 1000000  # a sharper look at the noise alone

The command fails if what is measured exceeds what is claimed. Its report comes from private data without noise: it \
is \
for the data owner alone, and no ledger is charged.")]
pub struct Audit {
    #[command(flatten)]
    choices: Choices,
    /// What to attack [default: mechanism,training,attacks]
    ///
    /// dp-gnn claims nothing about what training releases, so that its default is mechanism and attacks.
    #[arg(long, value_enum, value_delimiter = ',')]
    parts: Vec<Scope>,
    /// Where the data of a release lies, if not where it was named in training
    #[arg(long, value_name = "DATASET")]
    data: Option<String>,
    /// Canaries in each experiment [default: as many as are worth their time]
    #[arg(long, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    canaries: Option<u64>,
    /// Probability with which all bounds hold together
    #[arg(long, default_value_t = 0.95, value_name = "SHARE")]
    confidence: f64,
    /// Folder for plots, as SVG
    #[arg(long, short = 'o', value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Scope {
    /// The vault's queries, by canaries of the largest influence
    Mechanism,
    /// A whole training run, by canaries in the data
    Training,
    /// A release: link and membership inference
    Attacks,
}

/// The object that `--json` prints.
#[derive(Serialize)]
struct AuditJson {
    dataset: String,
    method: MethodKind,
    level: Level,
    confidence: f64,
    refuted: bool,
    verdict: String,
    /// The guarantee of the release that was named.
    release: Option<Guarantee>,
    findings: Vec<Finding>,
    link_inference: Vec<attack::Outcome>,
    membership_inference: Option<attack::Outcome>,
}

/// The guarantee of a release, by its own statement.
#[derive(Serialize)]
struct Guarantee {
    private: bool,
    unit: Option<Unit>,
    epsilon: Option<f64>,
    delta: Option<f64>,
}

impl Guarantee {
    fn of(statement: &Statement) -> Guarantee {
        let Statement { private, unit, epsilon, delta, .. } = statement;
        Guarantee { private: *private, unit: *unit, epsilon: *epsilon, delta: *delta }
    }

    fn in_words(&self) -> String {
        let (Some(epsilon), Some(delta), Some(unit)) = (self.epsilon, self.delta, self.unit) else {
            return "the release guarantees nothing".into();
        };
        let guarantees = if self.private {
            "guarantees"
        } else {
            "has seeded noise and guarantees nothing; by its settings"
        };
        format!(
            "the release {guarantees} epsilon {epsilon:.4} at delta {}, unit {unit}",
            delta::written(delta)
        )
    }
}

/// The settings with a seed, or without one.
fn with_seed(mut settings: Draft, seed: Option<u64>) -> Draft {
    settings.seed = seed;
    settings
}

impl Audit {
    /// Runs the command; a refuted claim makes it fail.
    pub fn run(mut self) -> Outcome {
        if !(self.confidence > 0.5 && self.confidence < 1.0) {
            return Err(format!("the confidence {} is out of range; give 0.5 to 1", self.confidence).into());
        }
        let folder = self.choices.source.release();
        let given = self.choices.source.given_seed();
        let (settings, source) = match &folder {
            Some(folder) => {
                if let Some(flag) = self.choices.first_flag() {
                    return Err(
                        format!("a release is audited with its own settings: leave --{flag} out").into()
                    );
                }
                if self.choices.source.says_more_than_a_place() {
                    return Err(
                        "a release is audited with the data of its run as it was: say where it lies with \
                        --data, and leave \
                         other options of data out"
                            .into(),
                    );
                }
                self.choices.config = Some(folder.join("config.toml"));
                self.choices.source = DataSource::default().in_folder(self.choices.source.data_folder());
                let (settings, source) = self.choices.settings()?;
                let source = self.data.as_ref().map_or(source.clone(), |data| source.with_dataset(data));
                (with_seed(settings, given), source)
            }
            None if self.data.is_some() => {
                return Err("--data says where the data of a release lies: name the release, too".into());
            }
            None => {
                let (settings, source) = self.choices.settings()?;
                (with_seed(settings, source.given_seed()), source)
            }
        };
        if let Some(folder) = folder.as_ref().filter(|_| source.is_missing()) {
            let (folder, data) = (folder.display(), source.name());
            return Err(
                format!("{folder}: its data {data:?} is not here; say where it lies with --data").into()
            );
        }
        if let Some(out) = &self.out {
            self.force.folder(out, &[], &source.inputs())?;
        }
        let opened = folder.as_deref().map(Release::open).transpose()?;
        let guarantee = opened.as_ref().map(|release| Guarantee::of(&release.statement));
        let dataset = {
            let _spinner = ui::spinner(format!("loading {}", source.name()));
            source.load_split()?
        };
        // The canaries are of the unit that the data decides, and must not decide it themselves.
        let resolved = settings.resolve(&PublicFacts::of(&dataset, &settings))?.into_settings();
        let settings = Settings { unit_from_data: false, ..resolved };
        let canaries = self.canaries.map(|canaries| canaries as usize);
        let auditor = Auditor { dataset: &dataset, settings: &settings, canaries };

        if self.parts.is_empty() {
            let training = auditor.claims_about_releases().then_some(Scope::Training);
            self.parts = [Scope::Mechanism, Scope::Attacks].into_iter().chain(training).collect();
        }
        let mut trials = Vec::new();
        if self.parts.contains(&Scope::Mechanism) {
            let _spinner = ui::spinner("asking the vault about canaries".to_string());
            trials.extend(auditor.mechanism()?);
        }
        if self.parts.contains(&Scope::Training) {
            trials.extend(self.watched(|observer| auditor.training(observer))?);
        }
        let (mut links, mut members) = (Vec::new(), None);
        if self.parts.contains(&Scope::Attacks) {
            let release = match opened {
                Some(release) => release,
                None => self.watched(|observer| auditor.train(observer))?,
            };
            let _spinner = ui::spinner("attacking the release".to_string());
            let (on_edges, on_nodes) = auditor.attacks(&release)?;
            (links, members) = (on_edges, Some(on_nodes));
        }
        let findings = evaluate(&trials, self.confidence)?;
        if let Some(out) = &self.out {
            let staged = AtomicFolder::create(out)?;
            plots(staged.path(), &trials, &links, members.as_ref())?;
            staged.commit_into(None)?;
        }
        let report = AuditJson {
            dataset: dataset.name().to_string(),
            method: settings.method,
            level: settings.level,
            confidence: self.confidence,
            refuted: findings.iter().any(|finding| finding.refuted),
            verdict: verdict(&findings, self.confidence, guarantee.as_ref()),
            release: guarantee,
            findings,
            link_inference: links.iter().map(Attack::outcome).collect::<Result<_, _>>()?,
            membership_inference: members.as_ref().map(Attack::outcome).transpose()?,
        };
        if self.json {
            ui::print(&serde_json::to_string_pretty(&report)?)?;
        } else {
            show(&report, self.out.as_deref())?;
        }
        conclusion(report.refuted)
    }

    /// Trains with the progress shown.
    fn watched<T>(
        &self,
        train: impl FnOnce(&mut dyn progap::method::Observer) -> progap::Result<T>,
    ) -> progap::Result<T> {
        let view = Training::new(!self.json);
        let mut observer = |progress: &Progress| {
            view.set(progress);
            ControlFlow::Continue(())
        };
        train(&mut observer)
    }
}

/// A refuted claim makes the command fail.
fn conclusion(refuted: bool) -> Outcome {
    if refuted { Err("the claim is refuted: do not rely on this guarantee".into()) } else { Ok(()) }
}

/// The result in one sentence: what the release that was named guarantees, and the test that came closest to its claim.
fn verdict(findings: &[Finding], confidence: f64, guarantee: Option<&Guarantee>) -> String {
    let found = closest(findings, confidence);
    guarantee.map_or(found.clone(), |guarantee| format!("{}; {found}", guarantee.in_words()))
}

fn closest(findings: &[Finding], confidence: f64) -> String {
    let closeness = |finding: &Finding| finding.measured - finding.claimed.unwrap_or(0.0);
    let Some(closest) = findings.iter().max_by(|a, b| closeness(a).total_cmp(&closeness(b))) else {
        return "no claim was tested".into();
    };
    let (measured, confidence) = (closest.measured, percent(confidence).replace(".0", ""));
    match closest.claimed {
        None => format!("nothing is claimed; measured at least {measured:.2} with {confidence} confidence"),
        Some(claimed) => format!(
            "claimed at most {claimed:.2}, measured at least {measured:.2} with {confidence} confidence: {}",
            if closest.refuted { "THE CLAIM IS WRONG" } else { "nothing found" }
        ),
    }
}

fn show(report: &AuditJson, out: Option<&Path>) -> Outcome {
    let mut text = ui::facts(
        &format!("audit of {} at level {} on {}", report.method, report.level, report.dataset),
        &[("verdict", report.verdict.clone())],
    );
    if !report.findings.is_empty() {
        let rows = report.findings.iter().map(|finding| {
            let test = match finding.test {
                Test::OneRun => "one run",
                Test::Gaussian => "Gaussian",
                Test::Rates => "hit rates",
            };
            [
                finding.what.clone(),
                test.into(),
                count(finding.canaries),
                finding.claimed.map_or("no claim".into(), |claimed| format!("at most {claimed:.2}")),
                format!("at least {:.2}", finding.measured),
                match (finding.refuted, finding.claimed) {
                    (true, _) => "WRONG",
                    (false, Some(_)) => "nothing found",
                    (false, None) => "unprotected",
                }
                .into(),
            ]
        });
        text += "\n\nEpsilon, claimed and measured (all bounds hold together)\n";
        text += &ui::table(["attacked", "test", "canaries", "claimed", "measured", ""], rows);
    }
    let attacks = report.link_inference.iter().map(|attack| ("edges", attack));
    let attacks: Vec<_> =
        attacks.chain(report.membership_inference.iter().map(|attack| ("training nodes", attack))).collect();
    if !attacks.is_empty() {
        let share = |found: f64, [low, high]: [f64; 2]| {
            format!("{} ({:.2} to {:.2})", percent(found), 100.0 * low, 100.0 * high)
        };
        let rows = attacks.iter().map(|(what, attack)| {
            [
                (*what).into(),
                attack.name.into(),
                format!("{:.3} ± {:.3}", attack.auc, 0.5 * (attack.auc_interval[1] - attack.auc_interval[0])),
                share(attack.found_at_one_percent, attack.found_at_one_percent_interval),
                share(attack.found_at_one_per_mille, attack.found_at_one_per_mille_interval),
            ]
        });
        text += "\n\nAttacks on a release, with 95 % intervals (AUC 0.5 is guessing; found while 1 % or 0.1 % of the \
            others are accused)\n";
        text += &ui::table(["looking for", "by", "AUC", "found at 1 %", "found at 0.1 %"], rows);
    }
    if let Some(out) = out {
        text += &format!("\n\nplots are in {}", out.display());
    }
    ui::print(&text)
}

/// One plot for each experiment, one for the attacks on edges, one for that on nodes.
fn plots(out: &Path, trials: &[Trial], links: &[Attack], members: Option<&Attack>) -> Outcome {
    let guessing = || Series {
        name: "guessing".into(),
        points: thin((1..=1000).map(|k| f64::from(k) / 1e3).map(|x| (x, x))),
    };
    let write = |file: &str, title: String, lines: Vec<Series>| {
        let lines = Lines {
            x: Axis::log("false alarms", vec![]),
            y: Axis::linear("found").within(0.0, 1.0),
            series: lines,
            references: vec![],
            borders: vec![],
        };
        plot::draw(&Plot::Lines(lines), &title, plot::WIDE).write(&out.join(file))
    };
    for (number, trial) in trials.iter().enumerate() {
        let roc = trial.evidence.roc()?;
        let mut lines =
            vec![Series { name: "measured".into(), points: thin(roc.curve().into_iter()) }, guessing()];
        if let Some(epsilon) = trial.claim.epsilon {
            let (factor, delta) = (epsilon.exp(), trial.claim.delta);
            // The two inequalities of differential privacy, for hits and for those left alone.
            let allowed = |x: f64| (factor * x + delta).min(1.0 - (1.0 - delta - x) / factor).min(1.0);
            let points =
                thin((0..=400).map(|k| 10f64.powf(f64::from(k) / 100.0 - 4.0)).map(|x| (x, allowed(x))));
            lines.push(Series { name: "allowed".into(), points });
        }
        write(&format!("canaries-{}.svg", number + 1), trial.what.clone(), lines)?;
    }
    let line =
        |attack: &Attack| Series { name: attack.name.into(), points: thin(attack.roc.curve().into_iter()) };
    if !links.is_empty() {
        let lines = links.iter().skip(1).map(line).chain(std::iter::once(guessing()));
        write("edges.svg", "looking for edges in a release".into(), lines.collect())?;
    }
    if let Some(members) = members {
        write(
            "nodes.svg",
            "looking for training nodes in a release".into(),
            vec![line(members), guessing()],
        )?;
    }
    Ok(())
}

/// The points of a curve that can be told apart on a logarithmic axis that begins at one in ten thousand.
fn thin(points: impl Iterator<Item = (f64, f64)>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::new();
    for (x, y) in points.filter(|&(x, _)| x >= 1e-4) {
        match kept.last() {
            Some(last) if x < 1.0 && x < last.x * 1.02 => {}
            _ => kept.push(Point::new(x, y)),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(claimed: Option<f64>, measured: f64) -> Finding {
        let refuted = claimed.is_some_and(|claimed| measured > claimed);
        let what = "an edge".into();
        Finding { what, test: Test::Gaussian, canaries: 1000, claimed, delta: 1e-7, measured, refuted }
    }

    #[test]
    fn the_verdict_is_that_of_the_closest_test() {
        let fine = [finding(Some(1.0), 0.43), finding(Some(8.0), 2.0)];
        let words = "claimed at most 1.00, measured at least 0.43 with 95 % confidence: nothing found";
        assert_eq!(verdict(&fine, 0.95, None), words);
        let wrong = [fine[0].clone(), finding(Some(8.0), 8.4)];
        let words = "claimed at most 8.00, measured at least 8.40 with 99.9 % confidence: THE CLAIM IS WRONG";
        assert_eq!(verdict(&wrong, 0.999, None), words);
        assert!(
            verdict(&[finding(None, 9.0)], 0.95, None)
                .starts_with("nothing is claimed; measured at least 9.00")
        );
        assert_eq!(verdict(&[], 0.95, None), "no claim was tested");
        let guarantee =
            |private| Guarantee { private, unit: Some(Unit::Edge), epsilon: Some(1.0), delta: Some(1e-7) };
        let words =
            "the release guarantees epsilon 1.0000 at delta 1e-7, unit edge; claimed at most 1.00, measured";
        assert!(verdict(&fine, 0.95, Some(&guarantee(true))).starts_with(words));
        assert!(verdict(&fine, 0.95, Some(&guarantee(false))).contains("guarantees nothing"));
        assert!(
            conclusion(true).is_err_and(|e| e.to_string().contains("refuted")) && conclusion(false).is_ok()
        );
    }

    #[test]
    fn curves_are_thinned_to_what_can_be_seen() {
        let curve = thin((0..=100_000).map(|k| f64::from(k) / 1e5).map(|x| (x, x)));
        assert!(
            curve.len() < 700 && curve[0].x >= 1e-4 && curve.last() == Some(&Point::new(1.0, 1.0)),
            "{}",
            curve.len()
        );
    }
}
