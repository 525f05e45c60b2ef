//! The report of one release.

use progap::assessment::wilson_interval;
use progap::cost::Cost;
use progap::method::catalogue;
use progap::method::history::EpochRecord;
use progap::release::{self, Config, Mechanism};
use progap::{Level, Release, Settings};
use progap_graph::{Dataset, Part, summary};
use progap_privacy::noise::Provenance;

use super::classes::classes;
use super::content::{
    Axis, Bar, BarSeries, Bars, Block, Border, Cell, Figure, Lines, Plot, Point, Reference, Report, Section,
    Series, Table, Tone,
};
use super::tested::Tested;
use super::thresholds::thresholds;
use crate::ui;

pub(super) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The report of a release. Where labels are private they are not in it: `data` then is the data set it was trained
/// on, and the report is for the data owner alone.
pub fn of_release(release: &Release, data: Option<&Dataset>) -> Result<Report> {
    let labelled = match release.level() {
        Level::Node => data,
        _ => Some(release.nodes()).filter(|_| release.has_labels()),
    };
    let cost = release.cost()?;
    let owners = release.metrics.unprotected && release.metrics.test_accuracy.is_finite();
    let owners = release.statement.unit.is_some()
        && (owners || labelled.is_some_and(|_| data.is_some()) || cost.is_some());
    let mut sections = vec![];
    if owners {
        sections.push(section(
            "audience",
            "Who may see this page",
            vec![Block::Notice(Tone::Caution, OWNERS.into())],
        ));
    }
    let tested = labelled.map(|labelled| Tested::of(release, labelled)).transpose()?.flatten();
    sections.extend([guarantee(release)?, accuracy(release, labelled, tested.as_ref())?]);
    match labelled {
        Some(_) => sections.extend(of_test_nodes(release, tested.as_ref())?),
        None => sections.push(without_labels(release)),
    }
    let mut training = training(&release.metrics.history, step_of(release.settings()?));
    if let (true, Some(training)) = (release.metrics.unprotected, &mut training) {
        training.blocks.insert(0, Block::Notice(Tone::Caution, UNPROTECTED.into()));
    }
    sections.extend(training);
    sections.extend(importances(release)?);
    sections.push(cost_section(release, cost));
    sections.push(checks(&release::verify(&release.folder)?));
    sections.push(settings_section(release, &release.folder.join("config.toml").to_string_lossy())?);
    titled(release, sections)
}

const OWNERS: &str = "The data owner alone: figures that the guarantee does not cover are marked where they stand. A \
    page that \
                      anyone may see is made by progap report RELEASE --public.";

/// The sections of a release's report under its title.
pub(super) fn titled(release: &Release, sections: Vec<Section>) -> Result<Report> {
    let (Config { dataset, settings, .. }, statement) = (release.config()?, &release.statement);
    let epsilon = statement.epsilon;
    let guarantee = epsilon.map_or("not private".into(), |epsilon| format!("epsilon {epsilon:.4}"));
    Ok(Report {
        title: format!("{} on {dataset}", settings.method),
        subtitle: format!(
            "A ProGAP release, method {}: level {}, {guarantee}",
            settings.method, settings.level
        ),
        sections,
    })
}

pub(super) fn section(id: &str, heading: &str, blocks: Vec<Block>) -> Section {
    Section { id: id.into(), heading: heading.into(), blocks }
}

pub(super) fn fact(name: &str, value: impl Into<String>) -> (String, String) {
    (name.into(), value.into())
}

/// The guarantee, in words and in numbers.
pub(super) fn guarantee(release: &Release) -> Result<Section> {
    let statement = &release.statement;
    let tone = if statement.private { Tone::Good } else { Tone::Caution };
    let mut blocks = vec![Block::Notice(tone, statement.in_words.clone())];
    let mut facts = vec![];
    if let (Some(epsilon), Some(delta)) = (statement.epsilon, statement.delta) {
        let delta = progap::delta::written(delta);
        blocks.push(Block::Paragraph(format!(
            "In numbers: whatever someone may see or conclude from the release, its probability with the record is \
             at \
             most {:.3} times its probability without it, plus {delta}; and the other way round.",
            round_up(epsilon.exp(), 3)
        )));
        facts.extend([fact("epsilon", format!("{epsilon:.6}")), fact("delta", delta)]);
        let both = [
            ("undirected edge", statement.epsilon_undirected),
            ("one direction", statement.epsilon_directed),
        ];
        facts.extend(both.into_iter().filter_map(|(unit, epsilon)| {
            Some(fact(&format!("epsilon, {unit}"), format!("{:.6}", round_up(epsilon?, 6))))
        }));
        facts.extend([fact("accountant", &statement.accountant)]);
    }
    if let Some(unit) = statement.unit {
        facts.push(fact("what one record is", format!("{unit}: {}", unit.neighbours())));
    }
    facts.extend(statement.relation.as_deref().map(|name| fact("what an edge stands for", name)));
    if statement.private {
        let protects = catalogue::entry(release.settings()?.method).protects;
        facts.push(fact("what the method protects", protects));
    }
    facts.push(fact(
        "where the noise came from",
        match statement.randomness {
            Provenance::Reproducible { seed } => format!("a seed ({seed}): it can be removed"),
            Provenance::Secure if statement.private => "the operating system's secure random numbers".into(),
            Provenance::Secure => "no noise was added".into(),
        },
    ));
    blocks.push(Block::Facts(facts));
    if !statement.mechanisms.is_empty() {
        blocks.push(Block::Table(queries(&statement.mechanisms)));
    }
    let list = |title: &str, items: &[String]| [Block::Paragraph(title.into()), Block::List(items.to_vec())];
    if statement.unit.is_some() {
        blocks.extend(list("Taken as public:", &statement.public));
        blocks.extend(list("Not covered:", &statement.not_covered));
    }
    Ok(section("guarantee", "The guarantee", blocks))
}

/// A factor is never stated smaller than it is.
fn round_up(value: f64, digits: i32) -> f64 {
    let unit = 10f64.powi(digits);
    (value * unit).ceil() / unit
}

fn queries(mechanisms: &[Mechanism]) -> Table {
    // Where nothing is sampled, nobody needs to read about it.
    let sampled = mechanisms.iter().any(|m| m.sampling_rate < 1.0);
    let columns = ["query", "how often", "noise", "sensitivity", "noise / sensitivity"];
    let columns = columns.into_iter().chain(sampled.then_some("sampling rate"));
    let number = |value: f64| Cell::number(value, format!("{value:.4}"));
    let row = |m: &Mechanism| {
        let mut row = vec![
            Cell::text(&m.what),
            Cell::count(m.count as usize),
            number(m.sigma),
            number(m.sensitivity),
            number(m.noise_multiplier),
        ];
        row.extend(sampled.then(|| Cell::number(m.sampling_rate, format!("{:.5}", m.sampling_rate))));
        row
    };
    Table {
        id: "queries".into(),
        caption: "Everything that was asked of the private data.".into(),
        columns: columns.map(String::from).collect(),
        rows: mechanisms.iter().map(row).collect(),
    }
}

/// The sections that need the labels of test nodes.
pub(super) fn of_test_nodes(release: &Release, tested: Option<&Tested>) -> Result<Vec<Section>> {
    let Some(tested) = tested else { return Ok(vec![]) };
    let mut sections = vec![classes(release, tested)?];
    sections.extend(thresholds(release, tested));
    Ok(sections)
}

/// The most columns and sums of which it is told.
const MOST_IMPORTANT: usize = 30;

/// Permutation importance of columns and sums; `None` if rows or labels are private.
pub(super) fn importances(release: &Release) -> Result<Option<Section>> {
    let found = release.importances()?;
    if found.is_empty() {
        return Ok(None);
    }
    let row = |one: &release::Importance| {
        vec![Cell::text(&one.name), Cell::number(one.log_loss, format!("{:+.4}", one.log_loss))]
    };
    let table = Table {
        id: "importance".into(),
        caption: "By how much the log loss on validation nodes grows where a column, or a noisy sum, changes places \
                  among nodes: the mean of three orders. Columns that say the same share what they are worth."
            .into(),
        columns: vec!["column or sum".into(), "log loss".into()],
        rows: found.iter().take(MOST_IMPORTANT).map(row).collect(),
    };
    Ok(Some(section("importance", "Which columns and sums mattered", vec![Block::Table(table)])))
}

/// The metric that was asked for, the accuracies, and where they come from.
pub(super) fn accuracy(
    release: &Release,
    labelled: Option<&Dataset>,
    tested: Option<&Tested>,
) -> Result<Section> {
    let headline = tested.map(|tested| tested.headline(release)).transpose()?.flatten();
    let metrics = &release.metrics;
    let count = |part| release.nodes().split().map_or(0, |split| split.count(part));
    let interval = |share: f64, part| {
        let [low, high] = wilson_interval(share, count(part));
        (low, high)
    };
    let row = |name: &str, share: f64, part: Part| {
        let cell = if share.is_finite() {
            Cell::percent_within(share, interval(share, part))
        } else {
            Cell::missing()
        };
        vec![Cell::text(name), Cell::count(count(part)), cell]
    };
    let mut rows = vec![row("test nodes", metrics.test_accuracy, Part::Test)];
    rows[0][2].bold = headline.is_none();
    rows.push(row("validation nodes", metrics.val_accuracy, Part::Val));
    rows.push(row("training nodes", metrics.train_accuracy, Part::Train));
    let stages = &metrics.stage_test_accuracies;
    if let Some(features) = metrics.features_only_accuracy.filter(|_| stages.len() > 1) {
        rows.push(row("test nodes, by features alone", features, Part::Test));
    }
    let majority = labelled.and_then(summary::majority_baseline);
    rows.extend(majority.map(|share| row("test nodes, always the most frequent class", share, Part::Test)));
    let table = Table {
        id: "accuracy".into(),
        caption: format!(
            "Accuracy, with 95 % intervals (Wilson) for that many nodes. {} of {} nodes have a label.",
            ui::count(release.nodes().labelled()),
            ui::count(release.nodes().nodes())
        ),
        columns: ["nodes", "how many", "accuracy"].map(String::from).to_vec(),
        rows,
    };
    let mut blocks = vec![];
    if metrics.unprotected {
        blocks.push(Block::Notice(Tone::Caution, UNPROTECTED.into()));
    }
    blocks.extend(tested.map(|tested| tested.only_majority(release)).transpose()?.flatten());
    let heading = headline.as_ref().map_or("Accuracy".into(), |(metric, _)| ui::capitalised(metric.words()));
    blocks.extend(headline.map(|(_, table)| Block::Table(table)));
    blocks.push(Block::Table(table));
    if stages.len() > 1 && stages.iter().all(|share| share.is_finite()) {
        blocks.push(Block::Figure(stage_figure(stages, majority, |share| interval(share, Part::Test))));
    }
    Ok(section("accuracy", &heading, blocks))
}

pub(super) const UNPROTECTED: &str = "Computed from private labels, without noise: for the data owner alone. The \
    guarantee does not \
                           cover these numbers; a page without them is made by progap report RELEASE --public.";

fn stage_figure(stages: &[f64], majority: Option<f64>, interval: impl Fn(f64) -> (f64, f64)) -> Figure {
    let name =
        |stage: usize| if stage == 0 { "features alone".to_string() } else { format!("stage {stage}") };
    let bar = |&share: &f64| share.is_finite().then(|| Bar { value: share, interval: Some(interval(share)) });
    let (first, last) = (stages[0], stages[stages.len() - 1]);
    let level = |value| Reference { name: "most frequent class".into(), value, series: None };
    let bars = Bars {
        label: "after which part of the training".into(),
        y: Axis::percent("test accuracy").within(0.0, 1.0),
        groups: (0..stages.len()).map(name).collect(),
        series: vec![BarSeries { name: "test accuracy".into(), values: stages.iter().map(bar).collect() }],
        references: majority.map(level).into_iter().collect(),
    };
    Figure {
        id: "stages".into(),
        caption:
            "Test accuracy after each stage of training, with 95 % intervals; the first stage knows the \
            features \
                  alone."
                .into(),
        alt: format!(
            "Bars: test accuracy is {} by features alone and {} after the last stage.",
            ui::percent(first),
            ui::percent(last)
        ),
        plot: Plot::Bars(bars),
    }
}

fn without_labels(release: &Release) -> Section {
    if release.level() != Level::Node {
        let text = "The rows of the nodes, labels among them, were left out of this export, so precision and recall, \
                    thresholds, the confusion matrix and the calibration are not shown here.";
        return section("classes", "Class by class", vec![Block::Paragraph(text.into())]);
    }
    let text = "Labels are private at node level and not part of the release, so precision and recall, \
                thresholds, the confusion matrix and the calibration are not shown here. Whoever holds the data can \
                add \
                them with progap report RELEASE --data DATASET; that page then is for the data owner alone.";
    section("classes", "Class by class", vec![Block::Paragraph(text.into())])
}

/// The name of what a history lists: epochs, or fits where a stage is one.
pub(super) fn step_of(settings: &Settings) -> &'static str {
    if settings.without_effect("epochs").is_some() { "fit" } else { "epoch" }
}

/// Accuracy and loss, step by step: epochs or fits.
pub(super) fn training(history: &[EpochRecord], step: &str) -> Option<Section> {
    let last = history.last()?;
    let stages = last.stage + 1;
    let begins = |stage: usize| history.iter().position(|record| record.stage == stage);
    let borders = (0..stages).filter_map(|stage| {
        begins(stage).map(|at| Border { name: format!("stage {stage}"), at: (at + 1) as f64 })
    });
    let borders: Vec<Border> = if stages > 1 { borders.collect() } else { vec![] };
    let series = |name: &str, value: fn(&EpochRecord) -> Option<f64>| {
        let point = |(at, record): (usize, &EpochRecord)| {
            Some(Point::new((at + 1) as f64, value(record).filter(|value| value.is_finite())?))
        };
        let points: Vec<Point> = history.iter().enumerate().filter_map(point).collect();
        (!points.is_empty()).then(|| Series { name: name.into(), points })
    };
    let lines = |y: Axis, series: Vec<Series>| {
        Plot::Lines(Lines { x: Axis::linear(step), y, series, references: vec![], borders: borders.clone() })
    };
    let mut blocks = vec![];
    let accuracies: Vec<Series> = [
        series("training nodes", |record| record.train_accuracy),
        series("validation nodes", |record| Some(record.val_accuracy)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !accuracies.is_empty() {
        blocks.push(Block::Figure(Figure {
            id: "training".into(),
            caption: if borders.is_empty() {
                format!("Accuracy after each {step}.")
            } else {
                format!("Accuracy after each {step}. Upright lines: where a stage begins.")
            },
            alt: match last.val_accuracy.is_finite() {
                true => format!(
                    "Lines over {} {step}s in {stages} stages: the validation accuracy ends at {}.",
                    history.len(),
                    ui::percent(last.val_accuracy)
                ),
                false => format!("Line over {} {step}s in {stages} stages.", history.len()),
            },
            plot: lines(Axis::percent("accuracy"), accuracies),
        }));
    }
    if let Some(loss) = series("training nodes", |record| record.loss) {
        let ends = |point: Option<&Point>| point.map_or(0.0, |point| point.y);
        blocks.push(Block::Figure(Figure {
            id: "loss".into(),
            caption: format!("Mean loss (cross entropy) over the training nodes in each {step}."),
            alt: format!(
                "Line: the loss goes from {:.3} to {:.3}.",
                ends(loss.points.first()),
                ends(loss.points.last())
            ),
            plot: lines(Axis::linear("loss"), vec![loss]),
        }));
    }
    (!blocks.is_empty()).then(|| section("training", "Training", blocks))
}

/// Time and memory.
fn cost_section(release: &Release, cost: Option<Cost>) -> Section {
    let mut blocks = vec![];
    match cost {
        None => blocks.push(Block::Paragraph(
            "Time and memory are not known: private/cost.json is not part of the release.".into(),
        )),
        Some(cost) => {
            let since = if cost.resumed { ", since the run was resumed" } else { "" };
            let mut facts =
                vec![fact("time", format!("{:.1} s on {} threads{since}", cost.seconds, cost.threads))];
            if cost.cpu_seconds > 0.0 {
                facts.push(fact("processor time", format!("{:.1} s{since}", cost.cpu_seconds)));
            }
            if !cost.stages.is_empty() {
                let stages: Vec<String> = cost
                    .stages
                    .iter()
                    .map(|stage| format!("{} {:.2} s", stage.name, stage.seconds))
                    .collect();
                facts.push(fact("of it", stages.join(", ")));
            }
            if cost.peak_memory_bytes > 0 {
                let memory = ui::bytes(cost.peak_memory_bytes as usize);
                facts.push(fact("peak memory", format!("{memory}, data included")));
            }
            blocks.push(Block::Facts(facts));
            if release.statement.unit.is_some() {
                blocks.push(Block::Paragraph(
                    "For the data owner alone: these depend on the data, and the guarantee does not cover them. \
                     progap export \
                     leaves them out."
                        .into(),
                ));
            }
        }
    }
    section("cost", "Cost", blocks)
}

/// The findings that were recomputed while the report was written.
pub(super) fn checks(findings: &[release::Finding]) -> Section {
    let row = |finding: &release::Finding| {
        let verdict = Cell::text(finding.verdict.to_string());
        let verdict = if finding.ok { verdict } else { verdict.bold() };
        vec![Cell::text(&finding.what), verdict, Cell::text(&finding.detail)]
    };
    let mut blocks = vec![];
    if findings.iter().any(|finding| !finding.ok) {
        let text = "Something is wrong with this release: it must not be trusted.";
        blocks.push(Block::Notice(Tone::Caution, text.into()));
    }
    blocks.push(Block::Table(Table {
        id: "checks".into(),
        caption: "What was recomputed while this report was written, as by progap verify.".into(),
        columns: ["checked", "verdict", "found"].map(String::from).to_vec(),
        rows: findings.iter().map(row).collect(),
    }));
    section("checks", "Checks", blocks)
}

/// All that is needed to run it again, from the settings in that file.
pub(super) fn settings_section(release: &Release, file: &str) -> Result<Section> {
    let config = release.config()?;
    let mut blocks = vec![Block::Facts(vec![
        fact("data set", &config.dataset),
        fact("nodes", ui::count(release.statement.nodes)),
        fact("feature columns", ui::count(release.statement.feature_columns)),
        fact("classes", ui::count(release.nodes().classes())),
    ])];
    blocks.push(Block::Code {
        name: "Run it again".into(),
        text: format!("progap train --config {}", quoted(file)),
    });
    blocks.push(Block::Paragraph(match config.settings.seed {
        Some(_) => "The seed makes the run repeatable to the last bit, and its noise removable.".into(),
        None => "The noise will be new, so the results differ a little; and a further run on the same data spends \
            its \
                 budget once more."
            .to_string(),
    }));
    blocks.push(Block::Code { name: "config.toml".into(), text: toml::to_string(config)? });
    Ok(section("settings", "Settings", blocks))
}

/// An argument of a shell command.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,+@%=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        assert_eq!(quoted("a/b-1.toml"), "a/b-1.toml");
        assert_eq!(quoted("it's here"), "'it'\\''s here'");
        assert_eq!(quoted("$(x)"), "'$(x)'");
    }

    #[test]
    fn a_factor_is_rounded_up() {
        assert_eq!([round_up(1f64.exp(), 3), round_up(2.0, 3)], [2.719, 2.0]);
    }

    #[test]
    fn stages_are_visible_in_the_history() {
        let record = |stage, epoch, val_accuracy| EpochRecord {
            stage,
            epoch,
            loss: None,
            train_accuracy: None,
            val_accuracy,
            val_score: None,
            stage_score: None,
        };
        let history = [record(0, 1, 0.4), record(0, 2, f64::NAN), record(1, 1, 0.6)];
        let section = training(&history, "epoch").expect("a section");
        let [Block::Figure(Figure { plot: Plot::Lines(lines), .. })] = &section.blocks[..] else {
            panic!("one figure, as the loss is not known: {section:?}")
        };
        assert_eq!(lines.borders.iter().map(|border| border.at).collect::<Vec<_>>(), [1.0, 3.0]);
        assert_eq!(lines.series[0].points.iter().map(|point| point.x).collect::<Vec<_>>(), [1.0, 3.0]);
        assert!(training(&[], "epoch").is_none());
    }
}
