//! One class against all others: what is found by flagging the nodes with the largest probabilities of it.

use progap::Release;
use progap::assessment::{Curve, Flagged, wilson_interval};

use super::content::{
    Axis, Block, Cell, Figure, Lines, Plot, Point, Reference, Section, Series, Table, Tone,
};
use super::release::{UNPROTECTED, section};
use super::tested::{Tested, share};
use crate::ui;

/// Shares of nodes that people can look into.
const SHARES: [f64; 7] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
/// Steps of a curve.
const STEPS: usize = 100;

/// The rarest class, where there are two classes or it is rare; of equals the last, by custom the one looked for.
pub(super) fn thresholds(release: &Release, tested: &Tested) -> Option<Section> {
    let found = &tested.found;
    let class = found.rarest().filter(|_| found.classes.len() == 2 || found.is_uneven())?;
    let (curve, name) = (tested.compared.curve(class)?, &release.nodes().class_names()[class]);
    let mut blocks = vec![];
    if release.metrics.unprotected {
        blocks.push(Block::Notice(Tone::Caution, UNPROTECTED.into()));
    }
    blocks.push(Block::Paragraph(format!(
        "Class {name}, {} of {} test nodes, against all others. Nodes are flagged by their probability of the class, \
         the largest first: for a class that is rare or costly to miss, the threshold is yours to choose.",
        ui::count(curve.members),
        ui::count(curve.nodes)
    )));
    blocks.push(Block::Panels(vec![precision_recall(tested, &curve, class), gains(&curve)]));
    blocks.push(Block::Table(table(&curve)));
    Some(section("thresholds", "Thresholds", blocks))
}

/// The points at some steps, each once, in order.
fn steps<'c>(point: impl Fn(f64) -> &'c Flagged) -> Vec<&'c Flagged> {
    let mut points: Vec<&Flagged> = (0..=STEPS).map(|step| point(step as f64 / STEPS as f64)).collect();
    points.dedup();
    points
}

fn precision_recall(tested: &Tested, curve: &Curve, class: usize) -> Figure {
    let points = steps(|recall| curve.finding(recall));
    let points = points.into_iter().map(|point| Point::new(curve.recall(point), point.precision())).collect();
    let interval = tested.intervals.as_ref().and_then(|intervals| intervals.average_precisions[class]);
    let average = share(tested.found.classes[class].average_precision, interval).text;
    Figure {
        id: "precision-recall".into(),
        caption: format!(
            "Precision against recall, from the largest threshold to the smallest. Average precision {average}; \
             dotted, \
             the precision of flagging at random."
        ),
        alt: format!(
            "Line: average precision {average}, where flagging at random has {}.",
            ui::percent(curve.base_rate())
        ),
        plot: Plot::Lines(Lines {
            x: Axis::percent("recall").within(0.0, 1.0),
            y: Axis::percent("precision").within(0.0, 1.0),
            series: vec![Series { name: "this release".into(), points }],
            references: vec![Reference { name: "at random".into(), value: curve.base_rate(), series: None }],
            borders: vec![],
        }),
    }
}

fn gains(curve: &Curve) -> Figure {
    let points = steps(|share| curve.flagging(share));
    let of = |point: &Flagged| Point::new(curve.share(point), curve.recall(point));
    let points = std::iter::once(Point::new(0.0, 0.0)).chain(points.into_iter().map(of)).collect();
    let random = vec![Point::new(0.0, 0.0), Point::new(1.0, 1.0)];
    let tenth = curve.flagging(0.1);
    Figure {
        id: "gains".into(),
        caption: "Cumulative gains: the share of the class that is found, against the share of nodes that is flagged."
            .into(),
        alt: format!(
            "Line: the first {} of the nodes hold {} of the class, {:.1} times as many as at random.",
            ui::percent(curve.share(tenth)),
            ui::percent(curve.recall(tenth)),
            curve.lift(tenth)
        ),
        plot: Plot::Lines(Lines {
            x: Axis::percent("share flagged").within(0.0, 1.0),
            y: Axis::percent("share found").within(0.0, 1.0),
            series: vec![
                Series { name: "this release".into(), points },
                Series { name: "at random".into(), points: random },
            ],
            references: vec![],
            borders: vec![],
        }),
    }
}

fn table(curve: &Curve) -> Table {
    let shares =
        SHARES.map(|share| (format!("{} % of the nodes", 100.0 * share), Some(curve.flagging(share))));
    let others = [("largest F1", Some(curve.best_f1())), ("probability 0.5", curve.at_least(0.5))];
    let others = others.map(|(name, point)| (name.to_string(), point));
    let mut rows: Vec<(String, &Flagged)> = vec![];
    for (name, point) in shares.into_iter().chain(others) {
        let Some(point) = point else { continue };
        match rows.iter_mut().find(|(_, other)| *other == point) {
            Some((names, _)) => *names += &format!(", {name}"),
            None => rows.push((name, point)),
        }
    }
    rows.sort_by_key(|(_, point)| point.flagged);
    let row = |(name, point): &(String, &Flagged)| {
        let (precision, recall) = (point.precision(), curve.recall(point));
        let (lift, threshold) = (curve.lift(point), f64::from(point.threshold));
        vec![
            Cell::text(name),
            Cell::number(threshold, format!("{threshold:.4}")),
            Cell::count(point.flagged),
            Cell::percent(curve.share(point)),
            share(Some(precision), Some(wilson_interval(precision, point.flagged))),
            share(Some(recall), Some(wilson_interval(recall, curve.members))),
            Cell::number(lift, format!("{lift:.2}")),
        ]
    };
    Table {
        id: "thresholds".into(),
        caption: "What thresholds find: nodes with at least that probability of the class are flagged, those with \
                  equal probabilities together. Precision: of those flagged, the share that is in the class. Recall: \
                  of \
                  the class, the share that is flagged; both with 95 % intervals (Wilson). Lift: how many times as \
                  frequent the class is among those flagged as among all."
            .into(),
        columns: ["to flag", "threshold", "flagged", "share flagged", "precision", "recall", "lift"]
            .map(String::from)
            .to_vec(),
        rows: rows.iter().map(row).collect(),
    }
}
