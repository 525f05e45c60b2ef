//! The page of a release that anyone may see: functions of public inputs and noisy answers, and nothing else
//! ([proof](progap_privacy::proofs::nothing_else_leaves)). It is the same to the last byte whatever lies in `private/`.

use progap::{Level, Release, release};

use super::content::{Block, Report};
use super::release::{
    Result, accuracy, checks, fact, guarantee, importances, of_test_nodes, section, settings_section,
    step_of, titled, training,
};
use super::tested::Tested;

/// The public report of a release, or of an export.
pub fn of_release(release: &Release) -> Result<Report> {
    // At node level accuracies are made of private labels; elsewhere labels are public.
    let open = release.level() != Level::Node;
    let labelled = Some(release.nodes()).filter(|_| release.has_labels());
    let mut sections = vec![guarantee(release)?];
    if let Some(exported) = &release.exported {
        let facts = vec![fact("exported on", exported.date.to_string())];
        sections.push(section("export", "Export", vec![Block::Facts(facts)]));
    }
    if open {
        let tested = labelled.map(|labelled| Tested::of(release, labelled)).transpose()?.flatten();
        sections.push(accuracy(release, labelled, tested.as_ref())?);
        sections.extend(of_test_nodes(release, tested.as_ref())?);
        sections.extend(training(&release.metrics.history, step_of(release.settings()?)));
        sections.extend(importances(release)?);
    }
    // The files are another matter: a page travels without them.
    sections.push(checks(&release::verify_guarantee(release)?));
    let left_out = left_out(release, open);
    sections.push(section(
        "left-out",
        "Left out",
        vec![Block::Paragraph(LEFT_OUT.into()), Block::List(left_out)],
    ));
    sections.push(settings_section(release, "config.toml")?);
    titled(release, sections)
}

const LEFT_OUT: &str = "This page may be seen by anyone: all of it follows from public inputs and from noisy answers \
    that the \
                        guarantee covers. For the data owner alone, and not on it:";

fn left_out(release: &Release, open: bool) -> Vec<String> {
    let mut list = vec!["time and memory of training, which depend on the data".to_string()];
    if !open {
        list.push(
            "all accuracies and other metrics, curves and thresholds, the confusion matrix, the calibration and the \
             course of training, which are made of private labels without noise"
                .into(),
        );
    } else if !release.has_labels() {
        list.push(
            "precision and recall, thresholds, the confusion matrix and the calibration: the rows of the nodes were \
             left \
             out of this export, though labels are public at this level"
                .into(),
        );
    }
    list.push("where the data and the release lie".into());
    list
}
