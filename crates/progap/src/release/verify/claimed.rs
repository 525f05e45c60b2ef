//! Claims of a release that nobody can recompute from it: listed by name, so that nobody takes them for checked.

use std::collections::HashSet;

use super::Finding;
use crate::cost::COST;
use crate::release::{Config, OWN_METRICS, PAGE, Release};
use crate::settings::{Level, MethodKind, Settings};
use crate::{Result, delta, method};

/// Everything public that is claimed. What it says does not depend on anything in `private/`.
pub(super) fn public(release: &Release) -> Result<Vec<Finding>> {
    let Config { dataset, settings, .. } = release.config()?;
    let mut claimed = vec![Finding::claimed(
        "noise",
        "that it was drawn as the list of queries says, in a run on the data: no release can show that",
        ["model.safetensors", "aggregates"],
    )];
    claimed.push(Finding::claimed(
        "data",
        format!(
            "the data set {:?} and how it was asked for; ids, classes and split{}",
            dataset,
            if release.has_labels() { ", features and labels" } else { "" }
        ),
        ["config.toml: dataset", "config.toml: source", "nodes.progap"],
    ));
    if settings.level == Level::Edge && delta::matters(settings) {
        let what = delta::records_are(settings);
        let most = release.statement.budget();
        let most = most.and_then(|budget| delta::implied(budget.delta, settings));
        let detail =
            most.map_or("unknown".into(), |most| format!("at most {most} {what}, as the delta says"));
        claimed.push(Finding::claimed("number of records", detail, ["the number of edges"]));
    }
    if let Some(bound) = release.statement.weight_bound {
        let detail = format!("that edge weights were divided by {bound}, whatever they are");
        claimed.push(Finding::claimed("weights", detail, ["privacy.json: weight_bound"]));
    }
    // A setting that decides nothing in this run leaves no trace either, whatever it says.
    let decides = |name: &&str| settings.without_effect(name).is_none();
    let (training, without_effect): (Vec<&str>, Vec<&str>) =
        unverifiable_settings(release, settings).into_iter().partition(decides);
    for (what, names) in [("training", training), ("settings without effect", without_effect)] {
        let fields: Vec<String> = names.iter().map(|name| format!("config.toml: settings.{name}")).collect();
        if !names.is_empty() {
            claimed.push(Finding::claimed(what, names.join(", "), fields.iter().map(String::as_str)));
        }
    }
    if settings.level != Level::Node {
        claimed.push(Finding::claimed(
            "course of training",
            "loss and accuracies of every epoch, test accuracies of the other stages",
            ["metrics.json: history", "metrics.json: stage_test_accuracies"],
        ));
    }
    if let Some(exported) = &release.exported {
        let detail = format!("the day {}, and what {PAGE} shows", exported.date);
        claimed.push(Finding::claimed(
            "export",
            detail,
            ["manifest.json: export.date", "export.json: date", PAGE],
        ));
    }
    Ok(claimed)
}

/// The claims in `private/`, by name alone.
pub(super) fn private(release: &Release) -> Result<Option<Finding>> {
    let mut there = vec![];
    // It must be readable, whatever it says.
    if release.exported.is_none() {
        release.cost()?;
    }
    for name in [OWN_METRICS, COST] {
        if release.exported.is_none() && release.listed.folder.has(name)? {
            there.push(name);
        }
    }
    let detail = format!("{}, for the data owner alone", there.join(" and "));
    Ok((!there.is_empty()).then(|| Finding::claimed("private files", detail, there)))
}

/// Settings that leave no trace in this release, or that have no effect in it.
fn unverifiable_settings(release: &Release, settings: &Settings) -> Vec<&'static str> {
    let mut fields = vec![
        "learning_rate",
        "weight_decay",
        "class_weights",
        "direction",
        "patience",
        // Compared with the shape beside the parameters, which is as easily changed. Other functions of the same
        // parameters predict otherwise, which accuracies show only where labels are there, and not surely.
        "dropout",
        "activation",
        "jk",
    ];
    let spec = settings.method.spec();
    let own = spec.own;
    let of_others = MethodKind::ALL.iter().flat_map(|method| method.spec().own);
    fields.extend(of_others.filter(|name| !own.contains(name)));
    fields.extend(spec.unverifiable);
    let mut add = |unverifiable: bool, field| fields.extend(unverifiable.then_some(field));
    // Messages show in the widths of aggregates, or in what was chosen.
    let outline = method::outline(settings);
    let same_width = settings.hidden == release.nodes().classes() || settings.depth == 0;
    add(own.contains(&"messages") && !outline.is_adaptive && same_width, "messages");
    let node = settings.level == Level::Node;
    for field in ["batch_size", "clip", "bounding", "max_degree"] {
        add(!node, field);
    }
    // Where they decide nothing, the statement does not name them either.
    add(settings.without_effect("epochs").is_some(), "epochs");
    let both = node && method::aggregations(settings) > 0;
    add(!both, "gradient_noise_ratio");
    add(!delta::matters(settings), "accounting");
    add(!delta::matters(settings) || settings.delta.is_some(), "delta_rule");
    add(asks_nothing(settings), "epsilon");
    // Without validation nodes, or with few of them, nothing is calibrated whatever is asked for; without labels nobody
    // can tell.
    let told = release.predictor.temperature.is_some() && release.has_labels();
    add(!told && !node, "calibration");
    add(asks_nothing(settings), "unit_from_data");
    // A setting can belong to several methods.
    let mut seen = HashSet::new();
    fields.retain(|field| seen.insert(*field));
    fields
}

fn asks_nothing(settings: &Settings) -> bool {
    settings.level == Level::Edge && !settings.touches_edges()
}
