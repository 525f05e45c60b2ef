//! The Open Inference Protocol, version 2: what a model takes and gives, and its predictions.

use std::borrow::Cow;

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::error::Refusal;
use crate::model::{Answer, Model, Scored};
use crate::nodes::Head;
use crate::parse::{Cell, InferRequest};

type Checked<T> = std::result::Result<T, Refusal>;

/// The outputs of every model.
const OUTPUTS: [&str; 2] = ["class", "probabilities"];

/// A model as the protocol describes it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelMetadata {
    name: String,
    versions: Vec<String>,
    platform: &'static str,
    inputs: Vec<TensorMetadata>,
    outputs: Vec<TensorMetadata>,
    /// The guarantee: `epsilon`, `delta`, `unit`, `guarantee` in words, and the SHA-256 of the release's manifest.
    #[schema(value_type = Object)]
    parameters: Map<String, Value>,
}

/// An input or output; -1 stands for any number of rows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TensorMetadata {
    name: String,
    datatype: &'static str,
    shape: Vec<i64>,
}

/// A request of the protocol; for its description alone.
#[derive(Serialize, ToSchema)]
#[allow(dead_code)]
pub(crate) struct InferRequestBody {
    /// Comes back in the answer.
    id: Option<String>,
    #[schema(value_type = Option<Object>)]
    parameters: Option<Map<String, Value>>,
    /// One called `id` alone: nodes of the release. Else one for each column of the table of training: new rows.
    inputs: Vec<InputTensor>,
    /// `class` or `probabilities`; both where nothing is given.
    outputs: Option<Vec<RequestedOutput>>,
}

/// An input.
#[derive(Serialize, ToSchema)]
#[allow(dead_code)]
pub(crate) struct InputTensor {
    name: String,
    /// `[rows]` or `[rows, 1]`.
    shape: Vec<u64>,
    datatype: TensorType,
    /// As many values as the shape says, flat or nested.
    #[schema(value_type = Vec<Value>)]
    data: Vec<Value>,
}

/// An output that is asked for.
#[derive(Serialize, ToSchema)]
#[allow(dead_code)]
pub(crate) struct RequestedOutput {
    name: String,
}

/// The types of the protocol.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(dead_code)]
pub(crate) enum TensorType {
    Bool,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Int8,
    Int16,
    Int32,
    Int64,
    Fp16,
    Fp32,
    Fp64,
    Bytes,
}

/// An answer of the protocol; for its description alone.
#[derive(Serialize, ToSchema)]
#[allow(dead_code)]
pub(crate) struct InferAnswer {
    model_name: String,
    model_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// What was used (`features`, `sums` or `features+sums`), when, and the SHA-256 of the release.
    #[schema(value_type = Object)]
    parameters: Map<String, Value>,
    outputs: Vec<OutputTensor>,
}

/// An output.
#[derive(Serialize, ToSchema)]
#[allow(dead_code)]
pub(crate) struct OutputTensor {
    name: String,
    datatype: String,
    shape: Vec<i64>,
    #[schema(value_type = Vec<Value>)]
    data: Vec<Value>,
}

impl ModelMetadata {
    pub fn of(model: &Model) -> ModelMetadata {
        let tensor = |name: &str, datatype, shape: &[i64]| TensorMetadata {
            name: name.into(),
            datatype,
            shape: shape.to_vec(),
        };
        let mut inputs = vec![tensor("id", "BYTES", &[-1])];
        inputs.extend(model.columns().into_iter().map(|(name, datatype)| tensor(&name, datatype, &[-1])));
        let classes = model.classes.len() as i64;
        let statement = &model.release.statement;
        let parameters = json!({
            "release": model.release.sha256(),
            "guarantee": statement.in_words,
            "epsilon": statement.epsilon,
            "delta": statement.delta,
            "unit": statement.unit,
            "classes": model.release.nodes().class_names(),
            "used": model.knows_nodes().ok().map(|()| model.used()),
        });
        let parameters = match parameters {
            Value::Object(parameters) => parameters,
            _ => Map::new(),
        };
        ModelMetadata {
            name: model.name.clone(),
            versions: vec![model.version().into()],
            platform: "progap",
            inputs,
            outputs: vec![tensor("class", "BYTES", &[-1]), tensor("probabilities", "FP32", &[-1, classes])],
            parameters,
        }
    }
}

/// The nodes that a request asks about, where it asks about nodes of the release.
pub(crate) fn asked_nodes<'r>(request: &'r InferRequest<'_>) -> Option<&'r [Cell<'r>]> {
    match &request.inputs[..] {
        [only] if only.name == "id" => Some(&only.data.0),
        _ => None,
    }
}

/// Answers about nodes of the release.
pub(crate) fn nodes(model: &Model, request: &InferRequest<'_>, ids: &[Cow<'_, str>]) -> Checked<Vec<u8>> {
    let answers: Vec<Answer<'_>> = ids.iter().map(|id| model.node(id)).collect::<Checked<_>>()?;
    written(model, request, &Head::new(model, model.used()), answers.len(), answers.iter().copied())
}

/// Answers about new rows, of which each must fit.
pub(crate) fn rows(model: &Model, request: &InferRequest<'_>, scored: &Scored) -> Checked<Vec<u8>> {
    if let Some(reject) = scored.rejects.first() {
        let column =
            if reject.column.is_empty() { String::new() } else { format!(", column {:?}", reject.column) };
        return Err(Refusal::bad(format!("row {}{column}: {}", reject.position, reject.reason)));
    }
    written(
        model,
        request,
        &Head::new(model, scored.used),
        scored.ids.len(),
        scored.answers(model.classes.len()),
    )
}

fn written<'a>(
    model: &Model,
    request: &InferRequest<'_>,
    head: &Head<'_>,
    rows: usize,
    answers: impl Iterator<Item = Answer<'a>> + Clone,
) -> Checked<Vec<u8>> {
    let asked: Vec<&str> = match &request.outputs {
        None => OUTPUTS.to_vec(),
        Some(asked) => asked.iter().map(|output| output.name.as_str()).collect(),
    };
    if let Some(other) = asked.iter().find(|name| !OUTPUTS.contains(name)) {
        return Err(Refusal::bad(format!("there is no output {other:?}; there are class and probabilities")));
    }
    let mut out = Vec::with_capacity(512 + rows * (12 + 12 * model.classes.len()));
    let id =
        request.id.as_ref().map(|id| format!(",\"id\":{}", Value::from(id.as_str()))).unwrap_or_default();
    let start = format!(
        "{{\"model_name\":{},\"model_version\":\"{}\"{id},\"parameters\":{{{}}},\"outputs\":[",
        Value::from(model.name.as_str()),
        model.version(),
        head.facts()
    );
    out.extend_from_slice(start.as_bytes());
    for (at, name) in asked.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let comma = |out: &mut Vec<u8>, first: bool| {
            if !first {
                out.push(b',');
            }
        };
        if *name == "class" {
            out.extend_from_slice(
                format!("{{\"name\":\"class\",\"datatype\":\"BYTES\",\"shape\":[{rows}],\"data\":[")
                    .as_bytes(),
            );
            for (at, answer) in answers.clone().enumerate() {
                comma(&mut out, at == 0);
                out.extend_from_slice(model.classes[answer.class as usize].as_bytes());
            }
        } else {
            let shape = format!(
                "{{\"name\":\"probabilities\",\"datatype\":\"FP32\",\"shape\":[{rows},{}],\"data\":[",
                model.classes.len()
            );
            out.extend_from_slice(shape.as_bytes());
            for (at, answer) in answers.clone().enumerate() {
                for (class, p) in answer.probabilities.iter().enumerate() {
                    comma(&mut out, at == 0 && class == 0);
                    write_number(&mut out, *p);
                }
            }
        }
        out.extend_from_slice(b"]}");
    }
    out.extend_from_slice(b"]}");
    Ok(out)
}

/// A probability as the shortest text that reads back as the same number.
pub(crate) fn write_number(out: &mut Vec<u8>, value: f32) {
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out, &value);
}

/// Refuses another version than the one that is served.
pub(crate) fn check_version(model: &Model, version: Option<&str>) -> Checked<()> {
    match version {
        Some(version) if version != model.version() => Err(Refusal::new(
            StatusCode::NOT_FOUND,
            format!("there is no such version of the model; there is {}", model.version()),
        )),
        _ => Ok(()),
    }
}
