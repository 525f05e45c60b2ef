//! A release's model in the forms that other tools load: ONNX, safetensors, a folder for the Hugging Face hub, a folder
//! for MLflow.
//!
//! Each holds public files of the release, or functions of them, and the guarantee in words; none holds a row of a
//! node.

use std::path::Path;

use serde_json::{Value, json};

use progap::model::predictor::{MODEL, Predictor};
use progap::release::{COST_FILE, Guarantee, Release, SCHEMA, STATEMENT, new_folder, verify};
use progap::{Error, Result, delta, files};

use crate::onnx::{self, About, Senders};

const ONNX: &str = "model.onnx";

/// A form that other tools load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A file, features and noisy aggregates in, probabilities out, and the schema beside it.
    Onnx,
    /// The same for rows that are new to the release: features in, probabilities out.
    OnnxRows,
    /// One file: the parameters, with the shapes beside them.
    Safetensors,
    /// A folder with a model card, as the Hugging Face hub shows it.
    HuggingFace,
    /// A folder that `mlflow.pyfunc` loads.
    Mlflow,
}

impl Form {
    /// Every form with its name.
    pub const ALL: [(&'static str, Form); 5] = [
        ("onnx", Form::Onnx),
        ("onnx-rows", Form::OnnxRows),
        ("safetensors", Form::Safetensors),
        ("hf", Form::HuggingFace),
        ("mlflow", Form::Mlflow),
    ];
}

/// The model as an ONNX file: an input `features` with a column for each feature, as `nodes.progap` has them, an
/// input `aggregate-K` for each noisy aggregate that is read, as `aggregates/K.npy` has it, and an output
/// `probabilities`. The guarantee stands in its description and its properties.
///
/// # Errors
/// A model that reads its neighbours' rows.
pub fn to_onnx(release: &Release) -> Result<Vec<u8>> {
    onnx(release, release.predictor(), Senders::Given)
}

/// The same model for nodes that were not there in training, see [`Release::predict_rows`]: an input `features`,
/// with the rows that [`Release::read_rows`] gives, and an output `probabilities`.
///
/// # Errors
/// As [`to_onnx`].
pub fn to_onnx_for_rows(release: &Release) -> Result<Vec<u8>> {
    match release.predictor().features_alone() {
        Some(predictor) => onnx(release, &predictor, Senders::None),
        None => onnx(release, release.predictor(), Senders::None),
    }
}

fn onnx(release: &Release, predictor: &Predictor, senders: Senders) -> Result<Vec<u8>> {
    let statement = &release.statement;
    let class_names = json!(release.nodes().class_names()).to_string();
    let mut facts = vec![("classes", class_names), ("guarantee", statement.guarantee().to_string())];
    if let Guarantee::Private { epsilon, delta, unit } = statement.guarantee() {
        facts.extend([
            ("dp.epsilon", epsilon.to_string()),
            ("dp.delta", delta.to_string()),
            ("dp.unit", unit.to_string()),
        ]);
    }
    let about = About { name: release.nodes().name(), words: &statement.in_words, facts };
    onnx::file(predictor, (statement.feature_columns, release.nodes().classes()), senders, &about)
}

/// Writes the model in another form, to a file or folder that is not there yet. A release that [`verify()`] finds
/// fault with is not packaged. Gives the names of what was written.
///
/// # Errors
/// As [`to_onnx`]; a place that is taken.
pub fn package(release: &Release, form: Form, out: &Path) -> Result<Vec<String>> {
    if let Some(wrong) = verify(&release.folder)?.into_iter().find(|finding| !finding.ok) {
        let problem =
            format!("it must not be trusted, and is not exported ({}: {})", wrong.what, wrong.detail);
        return Err(Error::file(&release.folder, problem));
    }
    let of_release = |name: &str| release.file(name);
    let one = |content: Vec<u8>| {
        if out.symlink_metadata().is_ok() {
            return Err(Error::file(out, "it is there already, and nothing is replaced: name a new file"));
        }
        files::write(out, &content)?;
        Ok(vec![out.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())])
    };
    let with_schema = |content: Vec<u8>| {
        let Some(schema) = release.schema() else { return one(content) };
        let taken =
            |path: &Path| Error::file(path, "it is there already, and nothing is replaced: name a new file");
        if out.symlink_metadata().is_ok() {
            return Err(taken(out));
        }
        // The model comes last, so that a model is never without its schema. A schema that an export left behind is
        // the same.
        let beside = out.with_extension(SCHEMA);
        let bytes = files::json(&beside, schema)?;
        if beside.symlink_metadata().is_err() {
            files::write(&beside, &bytes)?;
        } else if std::fs::read(&beside).ok().as_ref() != Some(&bytes) {
            return Err(taken(&beside));
        }
        let mut names = one(content)?;
        names.extend(beside.file_name().map(|name| name.to_string_lossy().into_owned()));
        Ok(names)
    };
    let mut content: Vec<(String, Vec<u8>)> = match form {
        Form::Onnx => return with_schema(to_onnx(release)?),
        Form::OnnxRows => return with_schema(to_onnx_for_rows(release)?),
        Form::Safetensors => return one(of_release(MODEL)?),
        Form::HuggingFace => vec![
            ("README.md".into(), model_card(release)?.into_bytes()),
            (MODEL.into(), of_release(MODEL)?),
            (ONNX.into(), to_onnx(release)?),
        ],
        Form::Mlflow => vec![
            ("MLmodel".into(), mlmodel(release).into_bytes()),
            ("requirements.txt".into(), b"mlflow\nonnx\nonnxruntime\n".to_vec()),
            ("python_env.yaml".into(), b"python: \"3.11\"\ndependencies:\n- -r requirements.txt\n".to_vec()),
            ("README.md".into(), model_card(release)?.into_bytes()),
            (ONNX.into(), to_onnx(release)?),
        ],
    };
    content.push((STATEMENT.into(), of_release(STATEMENT)?));
    if release.schema().is_some() {
        content.push((SCHEMA.into(), of_release(SCHEMA)?));
    }
    for number in 1..=release.predictor().widths.len() {
        let name = release.aggregate_file(number);
        content.push((name.clone(), of_release(&name)?));
    }
    let place = new_folder(out, &release.folder)?;
    for (name, bytes) in &content {
        let file = place.path().join(name);
        if let Some(parent) = file.parent() {
            files::make_folder(parent)?;
        }
        files::write(&file, bytes)?;
    }
    place.commit()?;
    let mut names: Vec<String> = content.into_iter().map(|(name, _)| name).collect();
    names.sort();
    Ok(names)
}

/// The guarantee and how to use the model, for people: Markdown with the head that the Hugging Face hub reads.
fn model_card(release: &Release) -> Result<String> {
    let statement = &release.statement;
    let settings = release.settings()?;
    let caution = release.caution();
    let list = |items: &[String]| items.iter().map(|item| format!("- {item}\n")).collect::<String>();
    let number = |value: Option<f64>| value.map_or_else(|| "none".into(), |value| format!("{value:.4}"));
    let mut rows = vec![
        ("guarantee", statement.guarantee().to_string()),
        ("unit", statement.unit.map_or_else(|| "none".into(), |unit| unit.to_string())),
        ("epsilon", number(statement.epsilon)),
        ("delta", statement.delta.map_or_else(|| "none".into(), delta::written)),
        ("accountant", statement.accountant.clone()),
        ("method", settings.method.to_string()),
        ("level", settings.level.to_string()),
        (
            "tuning",
            "none of its cost is counted here: settings that were chosen on these data by trying several cost \
             more".into(),
        ),
    ];
    rows.extend(statement.relation.clone().map(|name| ("relation", name)));
    for mechanism in &statement.mechanisms {
        rows.push((
            "query",
            format!(
                "{} x {}: {}; noise {:.4}, sensitivity {:.4}",
                mechanism.count, mechanism.name, mechanism.what, mechanism.sigma, mechanism.sensitivity
            ),
        ));
    }
    let table: String =
        rows.iter().map(|(name, value)| format!("| {name} | {} |\n", value.replace('|', "\\|"))).collect();
    let inputs: String = std::iter::once(format!("`features` ({} columns)", statement.feature_columns))
        .chain(release.predictor().aggregates_read().map(|index| format!("`aggregate-{}`", index + 1)))
        .collect::<Vec<_>>()
        .join(", ");
    Ok(format!(
        "---\nlicense: unknown\nlibrary_name: progap\npipeline_tag: graph-ml\ntags:\n- differential-privacy\n- \
         node-classification\n- onnx\n---\n\n\
         # {name}\n\nA node classifier with {classes} classes, trained by ProGAP.\n\n\
         ## Guarantee\n\n{words}\n\n| | |\n|---|---|\n{table}\n\
         Taken to be public:\n\n{public}\nNot covered:\n\n{open}\n\
         ## Use\n\n`model.onnx` reads {inputs}, a row for each node, and gives `probabilities`. The noisy \
         aggregates of the nodes that it was trained on lie in `aggregates/`; predictions cost no further \
         budget{whose} `privacy.json` is the statement, which can be recomputed from the release itself.\n",
        name = release.nodes().name(),
        classes = release.nodes().classes(),
        words = statement.in_words,
        whose = caution
            .map_or(".".into(), |caution| format!(", but not all of them are for everyone. {caution}")),
        public = list(&statement.public),
        open = list(&statement.not_covered).replace(COST_FILE, ""),
    ))
}

/// The metadata that MLflow needs: who loads the model, what goes in and comes out, and the guarantee.
fn mlmodel(release: &Release) -> String {
    let tensor = |name: String, columns: usize| json!({ "name": name, "type": "tensor", "tensor-spec": { "dtype": "float32", "shape": [-1, columns] } });
    let read = release.predictor().aggregates_read();
    let inputs: Vec<Value> = std::iter::once(tensor("features".into(), release.statement.feature_columns))
        .chain(
            read.map(|index| tensor(format!("aggregate-{}", index + 1), release.predictor().widths[index])),
        )
        .collect();
    let outputs = [tensor("probabilities".into(), release.nodes().classes())];
    let guarantee = match release.statement.guarantee() {
        Guarantee::Private { epsilon, delta, unit } => format!(
            "\n    epsilon: {}\n    delta: {}\n    unit: {}\n    accountant: {}",
            yaml(epsilon),
            yaml(delta),
            json!(unit.name()),
            json!(release.statement.accountant)
        ),
        Guarantee::Seeded | Guarantee::Nothing => "\n    epsilon: null".into(),
    };
    let words = json!(release.statement.in_words);
    // A text of JSON is one of YAML; MLflow keeps both lists as text.
    let text = |list: &[Value]| json!(json!(list).to_string()).to_string();
    format!(
        "flavors:\n  onnx:\n    code: null\n    data: {ONNX}\n    onnx_version: 1.16.0\n    providers:\n    - \
         CPUExecutionProvider\n  \
         python_function:\n    data: {ONNX}\n    env:\n      virtualenv: python_env.yaml\n    loader_module: \
         mlflow.onnx\n    \
         python_version: 3.11.0\nmetadata:\n  dp:{guarantee}\n  guarantee: {words}\nmlflow_version: \
         2.9.0\nsignature:\n  inputs: {inputs}\n  outputs: {outputs}\n  \
         params: null\n",
        inputs = text(&inputs),
        outputs = text(&outputs),
    )
}

/// A number as YAML knows it, where one without a point is text.
fn yaml(number: f64) -> String {
    let written = format!("{number:?}");
    if written.contains('.') { written } else { written.replace('e', ".0e") }
}
