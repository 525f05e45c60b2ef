//! What a report says class by class.

use progap::Release;
use progap::assessment::{Assessment, ClassScore, wilson_interval};
use progap_graph::{Dataset, Part};

use super::content::{Bin, Block, Calibration, Cell, Figure, Matrix, Plot, Section, Table, Tone};
use super::release::{Result, UNPROTECTED, section};
use crate::ui;

/// With more classes than this, a confusion matrix needs the whole width.
const MANY_CLASSES: usize = 8;

/// Class by class, on the test nodes.
pub(super) fn classes(release: &Release, labelled: &Dataset) -> Result<Option<Section>> {
    let Some(split) = release.nodes().split() else { return Ok(None) };
    let nodes: Vec<u32> = split.nodes(Part::Test).map(|node| node as u32).collect();
    if nodes.is_empty() {
        return Ok(None);
    }
    let predictions = release.predict_nodes(&nodes)?;
    let truth: Vec<u32> = nodes.iter().map(|&node| labelled.labels()[node as usize]).collect();
    let names = release.nodes().class_names();
    let found = Assessment::new(&truth, &predictions.classes, &predictions.probabilities, names.len());
    let mut blocks = vec![];
    if release.metrics.unprotected {
        blocks.push(Block::Notice(Tone::Caution, UNPROTECTED.into()));
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

fn class_table(found: &Assessment, names: &[String]) -> Table {
    let score = |value: Option<f64>| value.map_or_else(Cell::missing, Cell::percent);
    let row = |(name, class): (&String, &ClassScore)| {
        vec![
            Cell::text(name),
            Cell::count(class.support as usize),
            score(class.precision),
            score(class.recall),
            score(class.f1),
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
        ]
        .map(Cell::bold)
        .to_vec(),
    );
    Table {
        id: "classes".into(),
        caption: "Test nodes by class. Precision: of those predicted to be in the class, the share that is. Recall: of \
                  those in the class, the share that is found. F1: their harmonic mean. A dash is a share of nothing, and \
                  no part of the mean."
            .into(),
        columns: ["class", "test nodes", "precision", "recall", "F1"].map(String::from).to_vec(),
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
