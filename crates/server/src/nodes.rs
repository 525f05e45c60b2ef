//! Predictions as objects: about nodes of a release, and about new rows.

use std::collections::BTreeMap;

use progap::release::Used;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::Refusal;
use crate::infer::write_number;
use crate::model::{Answer, Model, Scored};
use crate::time;

type Checked<T> = std::result::Result<T, Refusal>;

/// What predictions were made of, when, and by which release.
pub(crate) struct Head<'m> {
    model: &'m Model,
    used: Used,
    at: String,
}

impl<'m> Head<'m> {
    pub fn new(model: &'m Model, used: Used) -> Head<'m> {
        Head { model, used, at: time::now() }
    }

    /// As members of a JSON object.
    pub fn facts(&self) -> String {
        format!(
            "\"used\":\"{}\",\"at\":\"{}\",\"release\":\"{}\"",
            self.used.name(),
            self.at,
            self.model.release.sha256()
        )
    }
}

/// A prediction about one node; for its description alone.
#[derive(Serialize, ToSchema)]
#[allow(dead_code)]
pub(crate) struct Prediction {
    model: String,
    /// What it is made of: `features`, `sums` or `features+sums`.
    used: String,
    /// When it was made.
    at: String,
    /// The SHA-256 of the release's manifest.
    release: String,
    id: String,
    class: String,
    probabilities: BTreeMap<String, f32>,
}

/// Predictions about several nodes or rows; for their description alone.
#[derive(Serialize, ToSchema)]
#[allow(dead_code)]
pub(crate) struct PredictionList {
    model: String,
    /// What they are made of: `features`, `sums` or `features+sums`.
    used: String,
    /// When they were made.
    at: String,
    /// The SHA-256 of the release's manifest.
    release: String,
    predictions: Vec<OnePrediction>,
    /// New rows that do not fit; there are none among nodes of the release.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rejected: Vec<Rejected>,
}

/// One of several predictions; for its description alone.
#[derive(Serialize, ToSchema)]
#[allow(dead_code)]
pub(crate) struct OnePrediction {
    id: String,
    class: String,
    probabilities: BTreeMap<String, f32>,
}

/// A row that does not fit.
#[derive(Serialize, ToSchema)]
pub(crate) struct Rejected {
    /// Its position among the rows, from 0.
    index: usize,
    id: String,
    /// The first column that does not fit; empty where it is the row.
    column: String,
    reason: String,
}

/// Nodes of the release that are asked about; for the description alone.
#[derive(Serialize, ToSchema)]
#[allow(dead_code)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodesBody {
    #[schema(min_items = 1)]
    ids: Vec<String>,
    /// The name of the model, where several are served.
    model: Option<String>,
}

/// New rows that are asked about; for the description alone.
#[derive(Serialize, ToSchema)]
#[allow(dead_code)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowsBody {
    /// Each an object with a value for each column of the table of training, and perhaps an `id`.
    #[schema(min_items = 1, value_type = Vec<Object>)]
    rows: Vec<Value>,
    /// The name of the model, where several are served.
    model: Option<String>,
    /// Whether a value that does not fit is taken as missing, where values were missing in training.
    #[serde(default)]
    lenient: bool,
}

/// About one node.
pub(crate) fn one(model: &Model, id: &str) -> Checked<Vec<u8>> {
    let answer = model.node(id)?;
    let mut out = Vec::with_capacity(256 + 24 * model.classes.len());
    start(&mut out, &Head::new(model, model.used()));
    members(&mut out, model, id, answer);
    out.push(b'}');
    Ok(out)
}

/// About several nodes.
pub(crate) fn several(model: &Model, ids: &[String]) -> Checked<Vec<u8>> {
    let answers: Vec<Answer<'_>> = ids.iter().map(|id| model.node(id)).collect::<Checked<_>>()?;
    let head = Head::new(model, model.used());
    let mut out = list(model, &head, ids.iter().map(String::as_str).zip(answers));
    out.push(b'}');
    Ok(out)
}

/// About new rows, with those that do not fit.
pub(crate) fn rows(model: &Model, scored: &Scored) -> Vec<u8> {
    let head = Head::new(model, scored.used);
    let mut out =
        list(model, &head, scored.ids.iter().map(String::as_str).zip(scored.answers(model.classes.len())));
    if !scored.rejects.is_empty() {
        let rejected: Vec<Rejected> = scored
            .rejects
            .iter()
            .map(|reject| Rejected {
                index: reject.position,
                id: reject.id.clone(),
                column: reject.column.clone(),
                reason: reject.reason.clone(),
            })
            .collect();
        out.extend_from_slice(b",\"rejected\":");
        let _ = serde_json::to_writer(&mut out, &rejected);
    }
    out.push(b'}');
    out
}

fn start(out: &mut Vec<u8>, head: &Head<'_>) {
    out.extend_from_slice(
        format!("{{\"model\":{},{},", Value::from(head.model.name.as_str()), head.facts()).as_bytes(),
    );
}

fn list<'a>(model: &Model, head: &Head<'_>, answers: impl Iterator<Item = (&'a str, Answer<'a>)>) -> Vec<u8> {
    let mut out = vec![];
    start(&mut out, head);
    out.extend_from_slice(b"\"predictions\":[");
    for (at, (id, answer)) in answers.enumerate() {
        out.extend_from_slice(if at == 0 { b"{" } else { b",{" });
        members(&mut out, model, id, answer);
        out.push(b'}');
    }
    out.push(b']');
    out
}

fn members(out: &mut Vec<u8>, model: &Model, id: &str, answer: Answer<'_>) {
    out.extend_from_slice(b"\"id\":");
    let _ = serde_json::to_writer(&mut *out, id);
    out.extend_from_slice(b",\"class\":");
    out.extend_from_slice(model.classes[answer.class as usize].as_bytes());
    out.extend_from_slice(b",\"probabilities\":{");
    for (at, (name, p)) in model.classes.iter().zip(answer.probabilities).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        write_number(out, *p);
    }
    out.push(b'}');
}
