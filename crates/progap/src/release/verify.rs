//! Recomputing everything in a release that can be recomputed.

use std::path::Path;

use progap_graph::Part;
use progap_privacy::accountant::{Accountant, Best, by_name};
use progap_privacy::noise::tables;
use progap_privacy::{Event, Unit};
use serde::Serialize;

use super::statement::{list, not_covered};
use super::{
    MANIFEST, Manifest, OWN_MANIFEST, OWN_ROWS, PRIVATE, Release, Statement, export, read_manifest,
    read_manifests, signed,
};
use crate::plan::{Plan, PublicSizes, influence, noise_values, subgraphs};
use crate::settings::{DeltaRule, Level, Method, Settings};
use crate::units::Epsilons;
use crate::{Error, Result, delta, method};

/// Something that was checked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What was checked.
    pub what: String,
    /// What came out.
    pub detail: String,
    /// Whether it is as it should be.
    pub ok: bool,
}

/// Checks a release: files and checksums, shapes, the list of queries against the settings, and epsilon by two
/// accountants. An error means that it cannot even be opened; a finding that is not ok, that it must not be trusted.
pub fn verify(folder: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let manifest = read_manifests(folder)?;
    let release = Release::open(folder)?;
    let missing = manifest.files.keys().filter(|name| !folder.join(name).exists()).count();
    let count = manifest.files.len() - missing;
    let kept_back = release.config.settings.level == Level::Node && !folder.join(OWN_ROWS).exists();
    let note = if missing > 0 || kept_back { "; what is private was kept back" } else { "" };
    let detail = format!("{count} files have the checksums of the manifest, and fit together{note}");
    findings.push(Finding { what: "files".into(), detail, ok: true });
    findings.push(unexpected_files(folder, &manifest)?);
    findings.push(private_checksums(folder)?);
    findings.extend(exported(&release)?);
    findings.extend(verify_promise(&release)?);
    Ok(findings)
}

/// Checks everything but files: the words, the list of queries against the settings, epsilon by two accountants, and the
/// accuracy where labels are there. What it finds does not depend on anything in `private/`.
pub fn verify_promise(release: &Release) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let (statement, settings) = (&release.statement, &release.config.settings);
    settings.check()?;
    findings.push(words(statement, settings));
    let nodes = release.nodes();
    let val_nodes = nodes.split().map_or(0, |split| split.count(Part::Val));
    let choice = method::choose(settings, &release.metrics.history, val_nodes);
    if let Some(said) = statement.choice.as_ref().or(choice.as_ref()) {
        let messages: Vec<String> = said.messages.iter().map(ToString::to_string).collect();
        let detail = format!("messages of {}; the model of stage {}", messages.join(", then "), said.stage);
        findings.push(Finding { what: "choice".into(), detail, ok: choice == statement.choice });
    }
    let sizes = release.sizes();
    findings.push(accuracy(release)?);
    findings.push(queries(statement, settings, sizes)?);
    findings.extend(epsilons(statement, settings, sizes)?);
    findings.extend(both_units(statement, settings, sizes)?);
    findings.extend(delta_for_nodes(statement, settings, sizes));
    let seeded = settings.seed.is_some();
    let ok = statement.randomness.is_private() != seeded
        && statement.private == (!seeded && settings.level != Level::None);
    let detail = if statement.private { "secure noise, private" } else { "marked as not private" };
    findings.push(Finding { what: "randomness".into(), detail: detail.into(), ok });
    Ok(findings)
}

/// Files that belong to no release: left over from a run, or slipped in.
fn unexpected_files(folder: &Path, manifest: &Manifest) -> Result<Finding> {
    let unlisted: &[&str] = match manifest.export {
        Some(_) => &[MANIFEST, export::EXPORT, signed::SIGNATURE, signed::SIGNER],
        None => &[MANIFEST, OWN_MANIFEST, crate::cost::COST],
    };
    let mut strangers = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).map_err(|e| Error::file(&next, e))? {
            let path = entry.map_err(|e| Error::file(&next, e))?.path();
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            if path.is_dir() {
                folders.push(path);
            } else if !unlisted.contains(&name.as_str()) && !manifest.files.contains_key(&name) {
                strangers.push(name);
            }
        }
    }
    strangers.sort();
    let ok = strangers.is_empty();
    let detail = if ok { "none".into() } else { strangers.join(", ") };
    Ok(Finding { what: "files that do not belong".into(), detail, ok })
}

/// Checksums of private files tell of them: the public manifest must hold none.
fn private_checksums(folder: &Path) -> Result<Finding> {
    let public = read_manifest(&folder.join(MANIFEST))?;
    let told: Vec<&str> =
        public.files.keys().filter(|name| name.starts_with(PRIVATE)).map(String::as_str).collect();
    let detail = match told.is_empty() {
        true => "none in the public manifest".into(),
        false => format!("the public manifest holds those of {}: do not hand it on", told.join(", ")),
    };
    Ok(Finding { what: "private checksums".into(), detail, ok: told.is_empty() })
}

/// What an export says of itself, against what it is.
fn exported(release: &Release) -> Result<Option<Finding>> {
    let Some(exported) = &release.exported else { return Ok(None) };
    let rows = match (exported.rows, release.has_features()) {
        (true, true) => "with the rows of the nodes",
        (false, false) => "without the rows of the nodes",
        _ => "but the rows of the nodes are not what it says",
    };
    let (ok, hash) = match export::Note::check(&release.folder, exported)? {
        Ok(hash) => (true, format!("SHA-256 {hash}")),
        Err(problem) => (false, problem),
    };
    let detail = format!("of {}, {rows}; {hash}", exported.date);
    Ok(Some(Finding { what: "export".into(), detail, ok: ok && exported.rows == release.has_features() }))
}

/// The accuracy on the test nodes, from predictions; where the labels are not there, that it was not recomputed.
fn accuracy(release: &Release) -> Result<Finding> {
    let what = "accuracy".to_string();
    if !release.has_labels() {
        let why = match release.config.settings.level {
            Level::Node => "labels are private and in no release",
            _ => "the rows of the nodes were left out of this export",
        };
        return Ok(Finding { what, detail: format!("not recomputed: {why}"), ok: true });
    }
    let nodes = release.nodes();
    let test: Vec<u32> =
        nodes.split().map_or(vec![], |split| split.nodes(Part::Test).map(|node| node as u32).collect());
    let classes = release.predict(&test)?.classes;
    let right = test.iter().zip(&classes).filter(|&(&node, &class)| nodes.labels()[node as usize] == class);
    let found = right.count() as f64 / test.len() as f64;
    let claimed = release.metrics.test_accuracy;
    // Another machine may round the last bit of a tie otherwise.
    let slack = f64::max(1e-3, 2.0 / test.len() as f64);
    let detail = format!("claimed {:.4} on the test nodes, recomputed {found:.4}", claimed);
    Ok(Finding { what, detail, ok: (found - claimed).abs() <= slack })
}

/// What the statement says in words, against what its numbers and the settings say.
fn words(statement: &Statement, settings: &Settings) -> Finding {
    let unit = match settings.level {
        Level::None => None,
        Level::Edge if settings.undirected => Some(Unit::EdgeUndirected),
        Level::Edge => Some(Unit::Edge),
        Level::Node => Some(Unit::Node),
    };
    let ok = statement.unit == unit
        && statement.selection == settings.selection
        && statement.not_covered == not_covered(settings)
        && statement.in_words == statement.words(settings)
        && settings.delta.is_none_or(|delta| unit.is_none() || statement.delta == Some(delta));
    let detail = unit.map_or("no unit is protected".into(), |unit| format!("one record is: {unit}"));
    Finding { what: "words and unit".into(), detail, ok }
}

/// The listed queries against the event tree and the settings.
fn queries(statement: &Statement, settings: &Settings, sizes: PublicSizes) -> Result<Finding> {
    let what = "list of queries".to_string();
    if settings.level == Level::None {
        let ok = statement.event == Event::NonPrivate && statement.epsilon.is_none();
        return Ok(Finding { what, detail: "no promise, none claimed".into(), ok });
    }
    let recomputed = statement.mechanisms_of_event()?;
    let listed = recomputed == statement.mechanisms;
    match settings.method {
        Method::EdgeRand => {
            let plan = Plan::new(settings, sizes)?;
            let ok = listed && recomputed == list(&plan.event)?;
            let detail = "1 noisy number of edges, 1 response for each possible edge".into();
            return Ok(Finding { what, detail, ok });
        }
        Method::DpGnn => {
            let (steps, ok) = subgraph_steps(&statement.event, settings, sizes)?;
            let detail = format!("{steps} noisy gradient steps over nodes with their senders");
            return Ok(Finding { what, detail, ok: listed && ok });
        }
        _ => {}
    }
    let aggregations: u64 = recomputed.iter().filter(|m| m.sampling_rate == 1.0).map(|m| m.count).sum();
    let steps: u64 = recomputed.iter().filter(|m| m.sampling_rate < 1.0).map(|m| m.count).sum();
    let (asked_steps, rate) = match settings.level {
        Level::Node => {
            let plan = Plan::new(settings, sizes)?;
            (plan.steps * method::stages(settings) as u64, plan.rate)
        }
        _ => (0, 1.0),
    };
    let sampled = recomputed.iter().filter(|m| m.sampling_rate < 1.0).all(|m| m.sampling_rate >= rate);
    let sensitivity = match settings.level {
        Level::Node => influence(settings),
        _ if settings.undirected => 2f64.sqrt(),
        _ => 1.0,
    };
    let sensitive =
        recomputed.iter().filter(|m| m.sampling_rate == 1.0).all(|m| m.sensitivity >= sensitivity);
    let clipped = recomputed.iter().filter(|m| m.sampling_rate < 1.0).all(|m| m.sensitivity >= settings.clip);
    let ok = listed
        && aggregations == method::aggregations(settings) as u64
        && steps == asked_steps
        && sensitive
        && clipped
        && sampled;
    let detail = format!("{aggregations} noisy aggregations, {steps} noisy gradient steps");
    Ok(Finding { what, detail, ok })
}

/// Epsilon in both units of an edge, where the statement has them, recomputed from the events.
fn both_units(statement: &Statement, settings: &Settings, sizes: PublicSizes) -> Result<Option<Finding>> {
    let claimed = Epsilons { friendship: statement.epsilon_friendship, directed: statement.epsilon_directed };
    let (Some(epsilon), Some(delta), true) =
        (statement.epsilon, statement.delta, claimed != Epsilons::default())
    else {
        return Ok(None);
    };
    let found = Epsilons::of(&statement.event, statement.unit, (epsilon, delta), settings, sizes)?;
    let holds = |claimed: Option<f64>, found: Option<f64>| match (claimed, found) {
        (None, _) => true,
        (Some(claimed), Some(found)) => (claimed - found).abs() <= 1e-9 * (1.0 + found),
        (Some(_), None) => false,
    };
    let said = |epsilon: Option<f64>| epsilon.map_or("none".into(), |epsilon| format!("{epsilon:.6}"));
    Ok(Some(Finding {
        what: "epsilon in both units".into(),
        detail: format!(
            "friendship {}, recomputed {}; one direction {}, recomputed {}",
            said(claimed.friendship),
            said(found.friendship),
            said(claimed.directed),
            said(found.directed)
        ),
        ok: holds(claimed.friendship, found.friendship) && holds(claimed.directed, found.directed),
    }))
}

/// At node level the records are counted by what is public: the nodes.
fn delta_for_nodes(statement: &Statement, settings: &Settings, sizes: PublicSizes) -> Option<Finding> {
    let delta = statement.delta.filter(|_| settings.level == Level::Node)?;
    let most = delta::largest(sizes.nodes);
    let published = settings.delta_rule == DeltaRule::Published;
    let by = if published { ", by the published rule for training nodes" } else { "" };
    Some(Finding {
        what: "delta".into(),
        detail: format!("{delta:e} for {} records{by}", sizes.nodes),
        ok: published || delta <= most,
    })
}

/// The number of gradient steps in DP-GNN's event tree, and whether they are those of the settings.
fn subgraph_steps(event: &Event, settings: &Settings, sizes: PublicSizes) -> Result<(u64, bool)> {
    let Event::Composed { events } = event else { return Ok((0, false)) };
    let [Event::SelfComposed { event, count }] = &events[..] else { return Ok((0, false)) };
    let Event::SampledWithoutReplacement { population, batch_size, max_terms, term_sensitivity, .. } =
        **event
    else {
        return Ok((0, false));
    };
    let (training, planned) = subgraphs(settings, sizes)?;
    let ok = population == sizes.train_nodes as u64
        && batch_size == training.batch_size
        && *count == training.steps()
        && max_terms == planned.max_terms()
        && term_sensitivity >= planned.term_sensitivity();
    Ok((*count, ok))
}

/// Checks the recorded events against the promise: they are no more than the plan that the promise is of, or cost no more by
/// the tightest accountant that is proven.
///
/// # Errors
/// Events that cost more than the statement says, or a statement that says more than was asked for: then there must be no
/// release.
pub(super) fn check_promise(statement: &Statement, settings: &Settings, plan: &Plan) -> Result<()> {
    let (Some(claimed), Some(delta)) = (statement.epsilon, statement.delta) else { return Ok(()) };
    let event = &statement.event;
    let of_the_plan = claimed == plan.epsilon && delta == plan.delta;
    let holds = (of_the_plan && event.is_within(&plan.event)) || {
        let nothing_asked = matches!(event, Event::Composed { events } if events.is_empty());
        let found = match settings.method {
            _ if nothing_asked => 0.0,
            Method::EdgeRand => event.pure_epsilon().unwrap_or(f64::INFINITY),
            _ => Best.epsilon(event, tables::provable(delta))?.value,
        };
        found <= claimed * (1.0 + 1e-9)
    };
    match holds && claimed <= settings.epsilon.unwrap_or(0.0) * (1.0 + 1e-12) {
        true => Ok(()),
        false => Err(Error::Contradiction(
            "what was asked of the data costs more than the statement would promise, so no release was written: this is a \
             mistake in progap itself, please report it",
        )),
    }
}

/// The cost with a delta of zero, and by an accountant that knows none.
fn pure(event: &Event, claimed: f64, delta: f64, asked: f64) -> Result<Vec<Finding>> {
    let found = event.pure_epsilon().unwrap_or(f64::INFINITY);
    let exact = Finding {
        what: "epsilon".into(),
        detail: format!(
            "claimed {claimed:.6}, recomputed {found:.6} with a delta of zero, asked for {asked}"
        ),
        ok: delta == 0.0 && found <= claimed * (1.0 + 1e-9) && claimed <= asked * (1.0 + 1e-12),
    };
    let at = 1e-9;
    let other = by_name("pld")?.epsilon(event, at)?;
    let second = Finding {
        what: "epsilon, second opinion".into(),
        detail: format!("{:.6} at a delta of {at:e}, by privacy loss distributions", other.value),
        // A delta can only make it smaller; the accountant rounds up.
        ok: other.value <= claimed * 1.01 + 0.01 && other.value >= 0.5 * claimed,
    };
    Ok(vec![exact, second])
}

/// Epsilon by the tightest accountant and by Renyi divergences, which share no code.
fn epsilons(statement: &Statement, settings: &Settings, sizes: PublicSizes) -> Result<Vec<Finding>> {
    let (Some(claimed), Some(delta)) = (statement.epsilon, statement.delta) else { return Ok(vec![]) };
    if let Event::Composed { events } = &statement.event
        && events.is_empty()
    {
        let detail = "no query was made".into();
        return Ok(vec![Finding {
            what: "epsilon".into(),
            detail,
            ok: claimed == 0.0 && method::aggregations(settings) == 0 && settings.method != Method::EdgeRand,
        }]);
    }
    let asked = settings.epsilon.unwrap_or(0.0);
    if settings.method == Method::EdgeRand {
        return pure(&statement.event, claimed, delta, asked);
    }
    let provable = tables::provable(delta);
    let best = Best.epsilon(&statement.event, provable)?;
    let other = by_name("rdp")?.epsilon(&statement.event, provable)?;
    // Both are upper bounds; the tighter one must not exceed what is claimed, nor the looser one undercut it.
    let tight = Finding {
        what: "epsilon".into(),
        detail: format!(
            "claimed {claimed:.6}, recomputed {:.6} ({}), asked for {asked}",
            best.value, best.accountant
        ),
        ok: best.value <= claimed * (1.0 + 1e-9) && claimed <= asked * (1.0 + 1e-12),
    };
    let loose = Finding {
        what: "epsilon, second opinion".into(),
        detail: format!("{:.6} by Renyi divergences", other.value),
        ok: other.value >= best.value * (1.0 - 1e-6) && other.value <= 2.0 * claimed + 1.0,
    };
    let values = noise_values(settings, sizes)?;
    let kept = Finding {
        what: "noise tables".into(),
        detail: format!("about {:.0e} of delta for at most {values} values", tables::slack(values, claimed)),
        ok: settings.seed.is_some() || tables::fit(values, claimed, delta),
    };
    Ok(vec![tight, loose, kept])
}
