//! Tables of a report class by class.

use progap::Release;
use progap::assessment::{Assessment, Baselines, ClassScore, Metric, Scores, wilson_interval};
use progap_graph::{Dataset, Part};

use super::content::{Bin, Block, Calibration, Cell, Figure, Matrix, Plot, Section, Table, Tone};
use super::release::{Result, UNPROTECTED, section};
use crate::ui;
use crate::verdict::no_better_than;

/// With more classes than this, a confusion matrix needs the whole width.
const MANY_CLASSES: usize = 8;

/// Class by class, on the test nodes.
pub(super) fn classes(release: &Release, labelled: &Dataset) -> Result<Option<Section>> {
    let Some(found) = release.assess(labelled, Part::Test)? else { return Ok(None) };
    let names = release.nodes().class_names();
    let mut blocks = vec![];
    if release.metrics.unprotected {
        blocks.push(Block::Notice(Tone::Caution, UNPROTECTED.into()));
    }
    let settings = release.settings()?;
    blocks.extend(found.scores().map(|scores| Block::Table(metric_table(&scores, settings.metric))));
    if let Some(baselines) = Baselines::of(labelled, settings)? {
        let named = no_better_than((&release.metrics, settings), &found, &baselines);
        if !named.is_empty() {
            let text = format!("No better than {}.", named.join("; "));
            blocks.push(Block::Notice(Tone::Caution, text));
        }
    }
    blocks.push(Block::Table(class_table(&found, names)));
    let (confusion, calibration) = (confusion(&found, names), calibration(&found));
    if names.len() > MANY_CLASSES {
        blocks.extend([confusion, calibration].map(Block::Figure));
    } else {
        blocks.push(Block::Panels(vec![confusion, calibration]));
    }
    Ok(Some(section("classes", "Class by class", blocks)))
}

fn metric_table(scores: &Scores, chosen_by: Metric) -> Table {
    let row = |&metric: &Metric| {
        let value = scores.get(metric);
        let cell = match metric {
            _ if !value.is_finite() => Cell::missing(),
            Metric::LogLoss => Cell::number(value, format!("{value:.4}")),
            _ => Cell::percent(value),
        };
        let cells = vec![Cell::text(metric.words()), cell];
        if metric == chosen_by { cells.into_iter().map(Cell::bold).collect() } else { cells }
    };
    Table {
        id: "metrics".into(),
        caption: "Metrics on the test nodes. Balanced accuracy and macro F1: means over the classes, each counting the same. \
                  AUROC and average precision: each class against all others, and their mean; of two classes, the average \
                  precision of the rarer one. Of log loss and calibration error less is better. In bold, the one that chooses \
                  epochs where validation nodes do."
            .into(),
        columns: ["metric", "test nodes"].map(String::from).to_vec(),
        rows: Metric::ALL.iter().map(row).collect(),
    }
}

fn class_table(found: &Assessment, names: &[String]) -> Table {
    let score = |value: Option<f64>| value.map_or_else(Cell::missing, Cell::percent);
    let row = |(name, class): (&String, &ClassScore)| {
        vec![
            Cell::text(name),
            Cell::count(class.support as usize),
            score(class.precision),
            score(class.recall),
            score(class.f1),
            score(class.auroc),
            score(class.average_precision),
        ]
    };
    let mut rows: Vec<_> = names.iter().zip(&found.classes).map(row).collect();
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
        caption: "Test nodes by class. Precision: of those predicted to be in the class, the share that is. Recall: of \
                  those in the class, the share that is found. F1: their harmonic mean. AUROC: the probability that a \
                  node of the class is given a larger probability of it than another. A dash is a share of nothing, and \
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
            "Calibration on the test nodes: how often predictions are right, by how sure they are, with 95 % intervals. \
             Expected calibration error: {}.",
            ui::percent(error)
        ),
        alt: format!(
            "Reliability diagram: on average the probability of the predicted class and the share that is right differ \
             by {}.",
            ui::percent(error)
        ),
        plot: Plot::Calibration(Calibration { bins: bins.collect(), expected_error: error }),
    }
}
