//! The answers as a table, as JSON and as a picture.

use std::collections::BTreeMap;

use progap::delta;
use progap_privacy::Unit;
use progap_privacy::accountant::all;
use serde::Serialize;

use super::Failure;
use super::question::{Answers, Chosen, Opinion, Question};
use crate::plot::{self, Picture};
use crate::report::{Axis, Lines, Plot, Point, Series};
use crate::ui::{self, noise_in_words, up};

/// The result as JSON.
#[derive(Serialize)]
pub struct AccountJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<Unit>,
    /// The meaning of the number called sigma.
    sigma_means: &'static str,
    sigma: Option<f64>,
    epsilon: f64,
    delta: f64,
    /// The delta at which accountants were asked: of a run, less what is kept for tables of noise.
    accounted_delta: f64,
    accountant: &'a str,
    /// Name to sigma where noise was asked for, otherwise name to epsilon.
    accountants: BTreeMap<&'a str, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_epsilon: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon_undirected: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon_directed: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sensitivity: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gradient_multiplier: Option<f64>,
    /// Of a run, what is asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    queries: Vec<Query<'a>>,
    /// Why an accountant is missing, or has no finite answer.
    notes: BTreeMap<&'a str, String>,
    /// The event, with its unit where it is known: what `--events` reads.
    event: serde_json::Value,
}

/// A query of a run, with its noise.
#[derive(Serialize)]
struct Query<'a> {
    name: &'a str,
    purpose: &'a str,
    count: u64,
    /// Of gradients, before their sums are rounded: rounding is charged, and raises noise and sensitivity by the same
    /// factor.
    sigma: f64,
    sensitivity: f64,
    /// Their ratio, which is that of the run's statement.
    noise_multiplier: f64,
    sampling_rate: f64,
}

/// The result as JSON has it.
pub fn report<'a>(question: &Question, answers: &'a Answers, chosen: Chosen<'a>) -> AccountJson<'a> {
    let (accountant, answer) = chosen;
    let mut notes = BTreeMap::new();
    let mut accountants = BTreeMap::new();
    for Opinion { name, answer } in &answers.opinions {
        match answer {
            Ok(answer) => {
                let value = if question.target.is_some() { answer.sigma } else { Some(answer.epsilon) };
                accountants.extend(value.map(|value| (*name, value)));
                if answer.epsilon.is_infinite() {
                    notes.insert(*name, "no finite epsilon holds at this delta".to_owned());
                }
                notes.extend(answer.caveat.map(|caveat| (*name, format!("rounded up: {caveat}"))));
            }
            Err(why) => {
                notes.insert(*name, why.clone());
            }
        }
    }
    let queries: Vec<Query<'_>> =
        answer.queries.iter().flat_map(progap::query::Queries::iter).filter_map(row).collect();
    let sigma = question.planned.as_ref().and_then(super::question::Planned::sigma);
    AccountJson {
        unit: question.unit,
        sigma_means: match (&question.planned, sigma) {
            (_, Some(sigma)) => sigma.means,
            (Some(_), None) => "not applicable: the noise of what is asked is not one number",
            (None, None) => "not applicable: the event tree holds its own noise",
        },
        sigma: answer.sigma,
        epsilon: answer.epsilon,
        delta: question.delta.unwrap_or(0.0),
        accounted_delta: question.accounted_delta(),
        accountant,
        accountants,
        target_epsilon: question.target,
        epsilon_undirected: answer.undirected,
        epsilon_directed: answer.directed,
        sensitivity: queries.first().map(|query| query.sensitivity),
        gradient_multiplier: answer.gradient_multiplier,
        queries,
        notes,
        event: match question.unit {
            Some(unit) => serde_json::json!({ "unit": unit, "event": answer.event }),
            None => serde_json::json!(answer.event),
        },
    }
}

fn row((query, count): (&progap::query::Query, u64)) -> Option<Query<'_>> {
    let noise = query.noise()?;
    Some(Query {
        name: &query.name,
        purpose: &query.purpose,
        count,
        sigma: noise.sigma,
        sensitivity: noise.sensitivity,
        noise_multiplier: noise.multiplier(),
        sampling_rate: noise.sampling_rate,
    })
}

/// The result as a table.
pub fn show(question: &Question, answers: &Answers, chosen: Chosen<'_>, report: &AccountJson<'_>) -> String {
    let mut facts = Vec::new();
    if let Some(unit) = question.unit {
        facts.push(("protects", format!("{} ({unit})", unit.neighbours())));
    } else {
        facts.push(("protects", "what the sensitivities in the tree refer to (it names no unit)".to_owned()));
    }
    for query in &report.queries {
        let noise =
            noise_in_words((query.sigma, query.sensitivity), query.noise_multiplier, query.sampling_rate);
        let text = format!("{} x {}: {noise}", query.count, query.purpose);
        facts.push(("query", text));
    }
    if question.planned.is_some() && report.queries.is_empty() {
        facts.push(("query", "none: nothing private is asked".to_owned()));
    }
    if let (Some(sigma), Some(_)) = (report.sigma, &question.planned) {
        facts.push(("sigma", format!("{} ({})", up(sigma), report.sigma_means)));
    }
    if question.planned.as_ref().is_some_and(|planned| planned.assumes_no_numbers) {
        let assumed =
            "no number columns without declared bounds; say how many with --number-columns and --nodes";
        facts.push(("assumes", assumed.to_owned()));
    }
    let delta = delta::written(question.delta.unwrap_or(0.0));
    facts.push(("epsilon", format!("{} at delta {delta}, by {}", up(report.epsilon), report.accountant)));
    if let Some(epsilon) = report.epsilon_undirected.filter(|_| question.unit == Some(Unit::Edge)) {
        let how = if question.planned.is_some() {
            "both directions of an edge together"
        } else {
            "two edges together: sensitivities doubled, as the tree does not say which rows they reach"
        };
        facts.push(("undirected edge", format!("epsilon {} ({how})", up(epsilon))));
    }
    if let Some(epsilon) = report.epsilon_directed.filter(|_| question.unit == Some(Unit::EdgeUndirected)) {
        facts.push((
            "one direction",
            format!("epsilon {} (one direction of an undirected edge alone)", up(epsilon)),
        ));
    }
    let undirected = question.unit == Some(Unit::Edge) && report.epsilon_undirected.is_some();
    let rows = answers.opinions.iter().map(|Opinion { name, answer }| {
        let mark = if *name == chosen.0 { " *" } else { "" };
        let cell = |value: Option<f64>| value.map_or("-".to_owned(), up);
        let answer = answer.as_ref().ok();
        [
            format!("{name}{mark}"),
            cell(answer.and_then(|answer| answer.sigma)),
            cell(answer.map(|answer| answer.epsilon)),
            if undirected { cell(answer.and_then(|answer| answer.undirected)) } else { String::new() },
        ]
    });
    let header = ["accountant", "sigma", "epsilon", if undirected { "undirected edge" } else { "" }];
    let title = match question.target {
        Some(epsilon) => format!("Noise for epsilon {epsilon} at delta {delta}"),
        None => format!("Epsilon at delta {delta}"),
    };
    let mut text =
        format!("{}\n\n{}\n\n* the answer above", ui::facts(&title, &facts), ui::table(header, rows));
    for (name, note) in &report.notes {
        text += &format!("\n{name}: {note}");
    }
    text
}

/// Epsilon against delta, for the noise that was found or given.
pub fn draw(question: &Question, (name, answer): Chosen<'_>) -> Result<Picture, Failure> {
    let Some(delta) = question.delta else {
        return Err("a picture shows epsilon against delta, which is zero here: leave --plot out".into());
    };
    let first = (delta.log10().floor() as i32 - 2).clamp(-300, -12);
    let last = (delta.log10().ceil() as i32).clamp(-2, -1);
    let points = 40;
    let deltas: Vec<f64> = (0..=points)
        .map(|k| 10f64.powf(f64::from(first) + f64::from(last - first) * f64::from(k) / f64::from(points)))
        .collect();
    let mut series = Vec::new();
    for accountant in all().into_iter().filter(|accountant| accountant.supports(&answer.event).is_ok()) {
        let curve = accountant.curve(&answer.event, &deltas)?;
        let points = curve.into_iter().map(|point| Point::new(point.delta, point.epsilon)).collect();
        series.push(Series { name: accountant.name().to_owned(), points });
    }
    let name = format!("epsilon {} by {name}", up(answer.epsilon));
    series.push(Series { name, points: vec![Point::new(delta, answer.epsilon)] });
    let highest = series.iter().flat_map(|series| &series.points).map(|point| point.y);
    let highest = highest.filter(|epsilon| epsilon.is_finite()).fold(0.0, f64::max);
    let unit = question.unit.map_or(String::new(), |unit| format!(", unit {unit}"));
    let noise = answer.sigma.map_or(String::new(), |sigma| format!(", sigma {}", up(sigma)));
    let lines = Lines {
        x: Axis::log("delta", vec![]),
        y: Axis::linear("epsilon").within(0.0, if highest > 0.0 { 1.05 * highest } else { 1.0 }),
        series,
        references: vec![],
        borders: vec![],
    };
    Ok(plot::draw(&Plot::Lines(lines), &format!("Privacy cost{unit}{noise}"), plot::WIDE))
}
