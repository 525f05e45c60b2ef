//! Recomputing everything in a release that can be recomputed.

use std::path::Path;

use progap_graph::Part;
use progap_privacy::Event;
use progap_privacy::accountant::{Accountant, Best, by_name};
use progap_privacy::noise::{Provenance, tables};
use serde::Serialize;

use super::statement::not_covered;
use super::{
    Budget, MANIFEST, METRICS, OWN_MANIFEST, OWN_METRICS, PAGE, PRIVATE, Release, SCHEMA, SIGNATURE, SIGNER,
    STATEMENT, Statement, export, manifest,
};
use crate::error::InFile;
use crate::folder::Kind;
use crate::plan::{Plan, PublicFacts, asked, noise_values, unit};
use crate::query::{Queries, Query};
use crate::settings::{Level, Settings};
use crate::units::Epsilons;
use crate::{Error, Result, method};

mod claimed;
mod guarantee;
mod measured;

/// Something that was checked, or that can only be claimed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The subject of the check.
    pub what: String,
    /// The result.
    pub detail: String,
    /// Whether nothing is wrong with it.
    pub ok: bool,
    /// How it is to be read.
    pub verdict: Verdict,
    /// The fields that are claimed, as a file's name, or that with the path of a field in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

/// The verdict on a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It was recomputed, and is as it should be.
    Ok,
    /// It is not as it should be: the release must not be trusted.
    Wrong,
    /// Nothing in the release contradicts it, and nothing in it can show it.
    Claimed,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Verdict::Ok => "ok",
            Verdict::Wrong => "WRONG",
            Verdict::Claimed => "claimed",
        })
    }
}

impl Finding {
    /// What was recomputed, and whether it is as it should be.
    pub fn checked(what: &str, detail: impl Into<String>, ok: bool) -> Finding {
        let verdict = if ok { Verdict::Ok } else { Verdict::Wrong };
        Finding { what: what.into(), detail: detail.into(), ok, verdict, fields: vec![] }
    }

    /// What nothing can be compared with, and the fields that say it.
    pub fn claimed<'f>(
        what: &str,
        detail: impl Into<String>,
        fields: impl IntoIterator<Item = &'f str>,
    ) -> Finding {
        let fields = fields.into_iter().map(String::from).collect();
        Finding { what: what.into(), detail: detail.into(), ok: true, verdict: Verdict::Claimed, fields }
    }
}

/// Checks a release: files and checksums, sizes, accuracies, the list of queries against the settings, delta by its
/// rule, and epsilon by two accountants. An error means that it cannot even be opened, or that its settings are not
/// there; a finding that is not ok, that it must not be trusted. What cannot be recomputed is listed as claimed.
pub fn verify(folder: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let release = Release::open(folder)?;
    let settings = release.settings()?;
    let listed = &release.listed;
    let mut private = manifest::Contents::of(settings).names(true);
    let public = listed.public.files.keys().filter(|name| !name.starts_with(PRIVATE)).count();
    let mut kept_back = false;
    for name in std::mem::take(&mut private) {
        match listed.is_kept_back(&name)? {
            true => kept_back = true,
            false => private.push(name),
        }
    }
    let note = if kept_back { "; what is private was kept back" } else { "" };
    let count = public + private.len();
    let detail = format!("{count} files have the checksums of the manifest, and fit together{note}");
    findings.push(Finding::checked("files", detail, true));
    findings.push(unexpected_files(&release, &private)?);
    findings.push(private_checksums(&release));
    findings.push(plain_fields(&release)?);
    findings.extend(exported(&release)?);
    let own_metrics = settings.level == Level::Node && private.iter().any(|name| name == OWN_METRICS);
    findings.extend(own_metrics.then(|| {
        // Its numbers are for the data owner alone.
        let found = measured::history(&release.metrics, settings, method::stages(settings) - 1);
        Finding { what: "private history".into(), ..found }
    }));
    findings.extend(verify_guarantee(&release)?);
    findings.extend(claimed::private(&release)?);
    Ok(findings)
}

/// Checks everything but files: sizes, the words, the list of queries against the settings, delta, epsilon by two
/// accountants, and the accuracies where labels are there. What it finds does not depend on anything in `private/`.
pub fn verify_guarantee(release: &Release) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let (statement, settings) = (&release.statement, &release.settings()?.checked()?);
    findings.push(words(statement, settings));
    findings.push(measured::sizes(release)?);
    findings.extend(measured::weights(release)?);
    let nodes = release.nodes();
    let val_nodes = nodes.split().map_or(0, |split| split.count(Part::Val));
    let choice = method::choose(settings, &release.metrics.history, val_nodes);
    if let Some(said) = statement.choice.as_ref().or(choice.as_ref()) {
        let messages: Vec<String> = said.messages.iter().map(ToString::to_string).collect();
        let detail = format!("messages of {}; the model of stage {}", messages.join(", then "), said.stage);
        findings.push(Finding::checked("choice", detail, choice == statement.choice));
    }
    let sizes = release.sizes();
    findings.push(measured::accuracy(release)?);
    findings.extend(measured::temperature(release)?);
    if settings.level != Level::Node {
        let released = measured::released_stage(release, settings);
        findings.push(measured::history(&release.metrics, settings, released));
    }
    let delta = guarantee::bounded_delta(statement, settings, sizes);
    let bounded = delta.ok;
    findings.push(delta);
    let (asked, queries) = queries(statement, settings, sizes)?;
    // Queries that no run asks are not accounted for: there is no bound on how long that takes.
    let queries = queries.filter(|_| bounded && asked.ok);
    findings.push(asked);
    if let Some(queries) = queries {
        let plan = guarantee::planned(statement, settings, sizes)?;
        findings.push(guarantee::public_list(statement, settings, &plan, sizes, nodes.labelled()));
        findings.push(guarantee::noise(statement, &queries, &plan));
        findings.extend(epsilons(statement, settings, sizes)?);
        findings.extend(both_units(statement, &queries, settings, sizes)?);
    } else {
        let detail = "not recomputed: delta or the list of queries is not that of the settings";
        findings.push(Finding::checked("epsilon", detail, false));
    }
    let provenance = match settings.seed {
        Some(seed) => Provenance::Reproducible { seed },
        None => Provenance::Secure,
    };
    // What a seed makes known guarantees nothing, and no figure may say that it does.
    let figures = [statement.epsilon.is_some(), statement.delta.is_some()];
    let planned = settings.seed.is_some() && settings.level != Level::None;
    let ok = statement.randomness == provenance
        && statement.private == (settings.seed.is_none() && settings.level != Level::None)
        && figures == [statement.private; 2]
        && statement.planned.is_some() == planned;
    let detail = match (statement.private, settings.level) {
        (true, _) => "secure noise, private",
        (false, Level::None) => "marked as not private",
        (false, _) => "seeded noise: marked as not private, and no epsilon is claimed",
    };
    findings.push(Finding::checked("randomness", detail, ok));
    findings.extend(claimed::public(release)?);
    Ok(findings)
}

/// Files that belong to no release: left over from a run, or slipped in.
fn unexpected_files(release: &Release, private: &[String]) -> Result<Finding> {
    let public = release.listed.public.files.keys();
    let mut known: Vec<&str> = public.filter(|name| !name.starts_with(PRIVATE)).map(String::as_str).collect();
    let mut strangers = vec![];
    match release.exported {
        Some(_) => {
            known.extend([MANIFEST, export::EXPORT, SIGNATURE, SIGNER]);
            // An export has its page.
            strangers.extend((!known.contains(&PAGE)).then(|| format!("{PAGE} is missing")));
        }
        None => {
            known.extend([MANIFEST, OWN_MANIFEST, crate::cost::COST]);
            known.extend(private.iter().map(String::as_str));
        }
    }
    for (name, kind) in release.listed.folder.list()? {
        if kind != Kind::File || !known.contains(&name.as_str()) {
            strangers.push(name.escape_debug().to_string());
        }
    }
    let ok = strangers.is_empty();
    let detail = if ok { "none".into() } else { strangers.join(", ") };
    Ok(Finding::checked("files that do not belong", detail, ok))
}

/// Whether the public files say what was read in them and nothing else: no further field, none left out, none written
/// otherwise.
fn plain_fields(release: &Release) -> Result<Finding> {
    let mut read = vec![(STATEMENT, serde_json::to_value(&release.statement))];
    read.extend((release.level() != Level::Node).then(|| (METRICS, serde_json::to_value(&release.metrics))));
    read.extend(release.schema().map(|schema| (SCHEMA, serde_json::to_value(schema))));
    let mut other = vec![];
    for (name, value) in read {
        let bytes = release.listed.read(name, release.bounds.of(name))?;
        let file: serde_json::Value = serde_json::from_slice(&bytes).in_file(&release.folder.join(name))?;
        other.extend((value.in_file(&release.folder.join(name))? != file).then_some(name));
    }
    let detail = match other.is_empty() {
        true => "those of a statement and of metrics, and no others".into(),
        false => format!("{} has others than this program writes", other.join(" and ")),
    };
    Ok(Finding::checked("fields", detail, other.is_empty()))
}

/// Checksums of private files tell of them: the public manifest must hold none.
fn private_checksums(release: &Release) -> Finding {
    let public = release.listed.public.files.keys();
    let told: Vec<&str> = public.filter(|name| name.starts_with(PRIVATE)).map(String::as_str).collect();
    let detail = match told.is_empty() {
        true => "none in the public manifest".into(),
        false => format!("the public manifest holds those of {}: do not hand it on", told.join(", ")),
    };
    Finding::checked("private checksums", detail, told.is_empty())
}

/// The claims of an export about itself, against what it is.
fn exported(release: &Release) -> Result<Option<Finding>> {
    let Some(exported) = &release.exported else { return Ok(None) };
    let rows = match (exported.rows, release.has_features()) {
        (true, true) => "with the rows of the nodes",
        (false, false) => "without the rows of the nodes",
        _ => "but the rows of the nodes are not what it says",
    };
    let (ok, hash) = match export::Note::check(&release.listed.folder, exported)? {
        Ok(hash) => (true, format!("SHA-256 {hash}")),
        Err(problem) => (false, problem),
    };
    let detail = format!("of {}, {rows}; {hash}", exported.date);
    Ok(Some(Finding::checked("export", detail, ok && exported.rows == release.has_features())))
}

/// The words of the statement, against its numbers and the settings.
fn words(statement: &Statement, settings: &Settings) -> Finding {
    let unit = unit(settings);
    let ok = statement.unit == unit
        && statement.selection.fits(settings)
        && statement.not_covered == not_covered(settings)
        && statement.has_its_words(settings)
        && settings.delta.is_none_or(|delta| statement.budget().is_none_or(|budget| budget.delta == delta));
    let detail = unit.map_or("no unit is protected".into(), |unit| format!("one record is: {unit}"));
    Finding::checked("words and unit", detail, ok)
}

/// The recorded queries against those that the settings ask; nothing where there is no list to compare.
fn queries(
    statement: &Statement,
    settings: &Settings,
    sizes: PublicFacts,
) -> Result<(Finding, Option<Queries>)> {
    let what = "list of queries";
    if settings.level == Level::None {
        let ok = statement.event == Event::NonPrivate
            && statement.budget().is_none()
            && statement.mechanisms.is_empty();
        return Ok((Finding::checked(what, "no guarantee, none claimed", ok), Some(Queries::default())));
    }
    let Ok(found) = statement.queries() else {
        let detail = "the list and the event tree are not of the same queries";
        return Ok((Finding::checked(what, detail, false), None));
    };
    let expected = asked(settings, sizes)?;
    let known = |query: &Query| {
        let planned = expected.get(&query.name);
        planned.is_some_and(|planned| {
            planned.purpose == query.purpose && guarantee::is_of_kind(&query.event, &planned.event)
        })
    };
    let counted = |name: &str| found.count(name) == expected.count(name);
    let ok = found.iter().all(|(query, _)| known(query) && counted(&query.name))
        && expected.iter().all(|(query, _)| counted(&query.name));
    let detail = match found.is_empty() {
        true => "none".into(),
        false => summary(&found),
    };
    Ok((Finding::checked(what, detail, ok), ok.then_some(found)))
}

/// The purposes of queries, with how often each was asked.
fn summary(queries: &Queries) -> String {
    let mut purposes: Vec<&Query> = vec![];
    for (query, _) in queries.iter() {
        if purposes.iter().all(|other| other.name != query.name) {
            purposes.push(query);
        }
    }
    let each = purposes.iter().map(|query| format!("{} x {}", queries.count(&query.name), query.purpose));
    each.collect::<Vec<_>>().join(", ")
}

/// Epsilon in both units of an edge, where the statement has them, recomputed from the events.
fn both_units(
    statement: &Statement,
    queries: &Queries,
    settings: &Settings,
    sizes: PublicFacts,
) -> Result<Option<Finding>> {
    let claimed = Epsilons { undirected: statement.epsilon_undirected, directed: statement.epsilon_directed };
    let (Some(epsilon), Some(delta)) = (statement.epsilon, statement.delta) else {
        // Without a guarantee there is none in another unit.
        let detail = "undirected edge or one direction, though nothing is guaranteed";
        let wrong = claimed != Epsilons::default();
        return Ok(wrong.then(|| Finding::checked("epsilon in both units", detail, false)));
    };
    if claimed == Epsilons::default() {
        return Ok(None);
    }
    let found = Epsilons::of(queries, statement.unit, (epsilon, delta), settings, sizes)?;
    let holds = |claimed: Option<f64>, found: Option<f64>| match (claimed, found) {
        (None, None) => true,
        (Some(claimed), Some(found)) => (claimed - found).abs() <= 1e-9 * (1.0 + found),
        _ => false,
    };
    let said = |epsilon: Option<f64>| epsilon.map_or("none".into(), |epsilon| format!("{epsilon:.6}"));
    Ok(Some(Finding::checked(
        "epsilon in both units",
        format!(
            "undirected edge {}, recomputed {}; one direction {}, recomputed {}",
            said(claimed.undirected),
            said(found.undirected),
            said(claimed.directed),
            said(found.directed)
        ),
        holds(claimed.undirected, found.undirected) && holds(claimed.directed, found.directed),
    )))
}

/// Checks the recorded events against the guarantee: they are no more than the plan that the guarantee is of, or cost
/// no more by the tightest accountant that is proven.
///
/// # Errors
/// Events that cost more than the statement says, or a statement that says more than was asked for: then there must be
/// no release.
pub(super) fn check_guarantee(statement: &Statement, settings: &Settings, plan: &Plan) -> Result<()> {
    let Some(Budget { epsilon: claimed, delta }) = statement.budget() else { return Ok(()) };
    let event = &statement.event;
    let of_the_plan = claimed == plan.epsilon && delta == plan.delta;
    let holds = (of_the_plan && event.is_within(&plan.event)) || {
        let nothing_asked = matches!(event, Event::Composed { events } if events.is_empty());
        let found = match settings.method.can().is_pure {
            _ if nothing_asked => 0.0,
            true => event.pure_epsilon().unwrap_or(f64::INFINITY),
            false => Best.epsilon(event, tables::provable(delta))?.value,
        };
        found <= claimed * (1.0 + 1e-9)
    };
    match holds && claimed <= settings.epsilon.unwrap_or(0.0) * (1.0 + 1e-12) {
        true => Ok(()),
        false => Err(Error::internal(
            "what was asked of the data costs more than the statement would claim, so no release was written",
        )),
    }
}

/// The cost with a delta of zero, and by an accountant that knows none.
fn pure(event: &Event, (said, claimed): (&str, f64), delta: f64, asked: f64) -> Result<Vec<Finding>> {
    let found = event.pure_epsilon().unwrap_or(f64::INFINITY);
    let exact = Finding::checked(
        "epsilon",
        format!("{said} {claimed:.6}, recomputed {found:.6} with a delta of zero, asked for {asked}"),
        delta == 0.0 && found <= claimed * (1.0 + 1e-9) && claimed <= asked * (1.0 + 1e-12),
    );
    let at = 1e-9;
    let other = by_name("pld")?.epsilon(event, at)?;
    let second = Finding::checked(
        "epsilon, second opinion",
        format!("{:.6} at a delta of {at:e}, by privacy loss distributions", other.value),
        // A delta can only make it smaller; the accountant rounds up.
        other.value <= claimed * 1.01 + 0.01 && other.value >= 0.5 * claimed,
    );
    Ok(vec![exact, second])
}

/// Epsilon by the tightest accountant and by Renyi divergences, which share no code.
fn epsilons(statement: &Statement, settings: &Settings, sizes: PublicFacts) -> Result<Vec<Finding>> {
    let Some(Budget { epsilon: claimed, delta }) = statement.budget() else { return Ok(vec![]) };
    let said = if statement.private { "claimed" } else { "none is claimed; noise planned for" };
    if let Event::Composed { events } = &statement.event
        && events.is_empty()
    {
        let ok = claimed == 0.0 && !settings.touches_edges();
        return Ok(vec![Finding::checked("epsilon", "no query was made", ok)]);
    }
    let asked = settings.epsilon.unwrap_or(0.0);
    if settings.method.can().is_pure {
        return pure(&statement.event, (said, claimed), delta, asked);
    }
    let provable = tables::provable(delta);
    let best = Best.epsilon(&statement.event, provable)?;
    let other = by_name("rdp")?.epsilon(&statement.event, provable)?;
    // Both are upper bounds; the tighter one must not exceed what is claimed, nor the looser one undercut it.
    let tight = Finding::checked(
        "epsilon",
        format!("{said} {claimed:.6}, recomputed {:.6} ({}), asked for {asked}", best.value, best.accountant),
        best.value <= claimed * (1.0 + 1e-9) && claimed <= asked * (1.0 + 1e-12),
    );
    let loose = Finding::checked(
        "epsilon, second opinion",
        format!("{:.6} by Renyi divergences", other.value),
        other.value >= best.value * (1.0 - 1e-6) && other.value <= 2.0 * claimed + 1.0,
    );
    let values = noise_values(settings, sizes)?;
    let kept = Finding::checked(
        "noise tables",
        format!("about {:.0e} of delta for at most {values} values", tables::slack(values, claimed)),
        settings.seed.is_some() || tables::fit(values, claimed, delta),
    );
    Ok(vec![tight, loose, kept])
}
