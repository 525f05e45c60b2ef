//! Tables of a report class by class.

use progap::Release;
use progap::assessment::{Assessment, ClassScore, Intervals, Metric, wilson_interval};

use super::content::{Bin, Block, Calibration, Cell, Figure, Matrix, Plot, Section, Table, Tone};
use super::release::{Result, UNPROTECTED, section};
use super::tested::{Tested, share};
use crate::ui;

/// With more classes than this, a confusion matrix needs the whole width.
const MANY_CLASSES: usize = 8;

/// Class by class, on the test nodes.
pub(super) fn classes(release: &Release, tested: &Tested) -> Result<Section> {
    let names = release.nodes().class_names();
    let mut blocks = vec![];
    if release.metrics.unprotected {
        blocks.push(Block::Notice(Tone::Caution, UNPROTECTED.into()));
    }
    blocks.push(Block::Table(metric_table(tested, release.settings()?.metric)));
    blocks.extend(tested.no_better_than(release)?);
    blocks.push(Block::Table(class_table(tested, names)));
    let (confusion, calibration) = (confusion(&tested.found, names), calibration(&tested.found));
    if names.len() > MANY_CLASSES {
        blocks.extend([confusion, calibration].map(Block::Figure));
    } else {
        blocks.push(Block::Panels(vec![confusion, calibration]));
    }
    Ok(section("classes", "Class by class", blocks))
}

fn metric_table(tested: &Tested, chosen_by: Metric) -> Table {
    let row = |&metric: &Metric| {
        let cells = vec![Cell::text(metric.words()), tested.cell(metric)];
        if metric == chosen_by { cells.into_iter().map(Cell::bold).collect() } else { cells }
    };
    let intervals = match tested.intervals {
        Some(_) => " Intervals: 95 %, by resampling nodes (bootstrap).",
        None => "",
    };
    Table {
        id: "metrics".into(),
        caption: format!(
            "Metrics on the test nodes. Balanced accuracy and macro F1: means over the classes, each counting the \
             same. \
             AUROC and average precision: each class against all others, and their mean; of two classes, the average \
             precision of the rarer one. Of log loss and calibration error less is better.{intervals} In bold, the \
             one \
             that chooses epochs where validation nodes do."
        ),
        columns: ["metric", "test nodes"].map(String::from).to_vec(),
        rows: Metric::ALL.iter().map(row).collect(),
    }
}

fn class_table(tested: &Tested, names: &[String]) -> Table {
    let found = &tested.found;
    let score = |value: Option<f64>| share(value, None);
    let within = |value: Option<f64>, interval: &dyn Fn(&Intervals) -> Option<[f64; 2]>| {
        share(value, tested.intervals.as_ref().and_then(interval))
    };
    let row = |(at, (name, class)): (usize, (&String, &ClassScore))| {
        vec![
            Cell::text(name),
            Cell::count(class.support as usize),
            score(class.precision),
            within(class.recall, &|intervals| intervals.recalls[at]),
            score(class.f1),
            within(class.auroc, &|intervals| intervals.aurocs[at]),
            within(class.average_precision, &|intervals| intervals.average_precisions[at]),
        ]
    };
    let mut rows: Vec<_> = names.iter().zip(&found.classes).enumerate().map(row).collect();
    rows.push(
        [
            Cell::text("mean of the classes"),
            Cell::count(found.nodes),
            score(found.mean(|class| class.precision)),
            score(found.mean(|class| class.recall)),
            score(found.mean(|class| class.f1)),
            score(found.mean(|class| class.auroc)),
            score(found.mean(|class| class.average_precision)),
        ]
        .map(Cell::bold)
        .to_vec(),
    );
    Table {
        id: "classes".into(),
        caption: "Test nodes by class. Precision: of those predicted to be in the class, the share that is. Recall: \
            of \
                  those in the class, the share that is found. F1: their harmonic mean. AUROC: the probability that \
                  a \
                  node of the class is given a larger probability of it than another. A dash is a share of nothing, \
                  and \
                  no part of the mean."
            .into(),
        columns: ["class", "test nodes", "precision", "recall", "F1", "AUROC", "average precision"].map(String::from).to_vec(),
        rows,
    }
}

fn confusion(found: &Assessment, names: &[String]) -> Figure {
    let pairs = found.confusion.iter().enumerate().flat_map(|(row, counts)| {
        counts
            .iter()
            .enumerate()
            .filter(move |(column, _)| *column != row)
            .map(move |(column, &n)| (n, row, column))
    });
    let worst = pairs.max_by_key(|(n, ..)| *n).filter(|(n, ..)| *n > 0).map(|(n, row, column)| {
        format!(
            " Most often, {} of class {} were taken for {}.",
            ui::count(n as usize),
            names[row],
            names[column]
        )
    });
    Figure {
        id: "confusion".into(),
        caption:
            "Confusion matrix of the test nodes; the stronger the colour, the larger the share of the row."
                .into(),
        alt: format!(
            "Confusion matrix: {} of the test nodes lie on the diagonal.{}",
            ui::percent(found.accuracy),
            worst.unwrap_or_default()
        ),
        plot: Plot::Matrix(Matrix {
            row_label: "true class".into(),
            column_label: "predicted class".into(),
            names: names.to_vec(),
            counts: found.confusion.clone(),
        }),
    }
}

fn calibration(found: &Assessment) -> Figure {
    let bins = found.bins.iter().map(|bin| {
        let [low, high] = wilson_interval(bin.accuracy, bin.count);
        let (from, to, count) = (bin.from, bin.to, bin.count);
        Bin { from, to, count, confidence: bin.confidence, accuracy: bin.accuracy, interval: (low, high) }
    });
    let error = found.calibration_error;
    Figure {
        id: "calibration".into(),
        caption: format!(
            "Calibration on the test nodes: how often predictions are right, by how sure they are, with 95 % \
             intervals. \
             Expected calibration error: {}.",
            ui::percent(error)
        ),
        alt: format!(
            "Reliability diagram: on average the probability of the predicted class and the share that is right \
             differ \
             by {}.",
            ui::percent(error)
        ),
        plot: Plot::Calibration(Calibration { bins: bins.collect(), expected_error: error }),
    }
}
