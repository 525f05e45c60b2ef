//! Models in ONNX give the probabilities that the release gives, as ONNX Runtime computes them.

#[path = "../../progap/tests/common/mod.rs"]
mod common;

use std::path::Path;
use std::process::Command;

use common::{network, train_on};
use progap::{Combination, Level, MethodKind, Nonlinearity, Release, Settings};
use progap_export::{Form, package, to_onnx};

/// Reads `case.json`, runs the model on the raw inputs beside it, and prints the largest difference.
const PROGRAM: &str = r#"
import json, sys
try:
    import numpy, onnx, onnxruntime
except ImportError as absent:
    print("absent:", absent); sys.exit()
case = json.load(open("case.json"))
load = lambda name, columns: numpy.fromfile(name, dtype="<f4").reshape(-1, columns)
onnx.checker.check_model(onnx.load("model.onnx"), full_check=True)
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
inputs = {name: load(name, columns) for name, columns in case["inputs"].items()}
assert {given.name for given in session.get_inputs()} <= set(inputs), [given.name for given in session.get_inputs()]
inputs = {given.name: inputs[given.name] for given in session.get_inputs()}
(found,) = session.run(["probabilities"], inputs)
properties = session.get_modelmeta().custom_metadata_map
assert json.loads(properties["classes"]) == case["classes"] and "guarantee" in properties
print(float(numpy.abs(found - load("probabilities", len(case["classes"]))).max()))
"#;

fn write(folder: &Path, name: &str, values: &[f32]) {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(folder.join(name), bytes).expect("written");
}

/// The largest difference between what ONNX Runtime and the release say.
fn difference(release: &Release, python: &std::ffi::OsStr) -> Option<f64> {
    let place = tempfile::tempdir().expect("a folder");
    let at = place.path();
    package(release, Form::Onnx, &at.join("model.onnx")).expect("an ONNX file");
    let nodes = release.nodes();
    let columns = nodes.features().columns();
    let mut inputs = serde_json::json!({ "features": columns });
    write(at, "features", &nodes.features().to_dense(nodes.nodes()));
    for number in 1..=release.settings().expect("settings").depth {
        let file = release.folder.join(format!("aggregates/{number}.npy"));
        let Ok(bytes) = std::fs::read(file) else { continue };
        // The numbers stand at the end of the file.
        let header = 10 + u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
        let width = (bytes.len() - header) / 4 / nodes.nodes();
        inputs[format!("aggregate-{number}")] = width.into();
        std::fs::write(at.join(format!("aggregate-{number}")), &bytes[header..]).expect("written");
    }
    write(at, "probabilities", &release.predict().expect("predictions").probabilities);
    let case = serde_json::json!({ "inputs": inputs, "classes": nodes.class_names() });
    std::fs::write(at.join("case.json"), case.to_string()).expect("written");
    let output = Command::new(python).args(["-c", PROGRAM]).current_dir(at).output().expect("Python starts");
    let said = String::from_utf8_lossy(&output.stdout).trim().to_string();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    if said.starts_with("absent") {
        eprintln!("skipped: {said}");
        return None;
    }
    Some(said.parse().expect("a number"))
}

#[test]
fn onnx_runtime_gives_the_same_probabilities() {
    let Some(python) = std::env::var_os("PROGAP_PYTHON") else {
        eprintln!("skipped: PROGAP_PYTHON names no Python, as ./test does");
        return;
    };
    let data = network();
    let of = |method: MethodKind, level: Level| Settings {
        seed: Some(1),
        epochs: 3,
        ..Settings::of(method, level)
    };
    let paper =
        |level: Level| Settings { epochs: 3, seed: Some(1), ..Settings::paper(MethodKind::Progap, level) };
    let mut cases = vec![
        of(MethodKind::ProgapViews, Level::Edge),
        of(MethodKind::ProgapViews, Level::None),
        Settings { depth: 0, ..of(MethodKind::ProgapViews, Level::Edge) },
        of(MethodKind::ProgapLabels, Level::Edge),
        Settings { batch_size: 50, ..of(MethodKind::ProgapLabels, Level::Node) },
        Settings { layers: 2, ..of(MethodKind::Gap, Level::Edge) },
        of(MethodKind::Mlp, Level::Edge),
        of(MethodKind::Lpgnet, Level::Edge),
    ];
    for jk in [Combination::Sum, Combination::Mean, Combination::Max] {
        cases.push(Settings { jk, activation: Nonlinearity::Elu, layers: 2, ..paper(Level::Edge) });
        cases.push(Settings { jk, activation: Nonlinearity::Tanh, ..of(MethodKind::Gap, Level::Edge) });
    }
    for settings in cases {
        let (_keep, folder) = common::folder();
        let what = format!("{} {} {:?}", settings.method, settings.level, settings.jk);
        let release = train_on(&data, &settings, &folder).unwrap_or_else(|e| panic!("{what}: {e}"));
        let Some(difference) = difference(&release, &python) else { return };
        assert!(difference < 1e-5, "{what}: {difference}");
    }
}

#[test]
fn what_has_no_onnx_file_says_so_and_folders_are_whole() {
    let data = network();
    let of = |method: MethodKind, level: Level| Settings {
        seed: Some(1),
        epochs: 2,
        ..Settings::of(method, level)
    };
    let (_keep, folder) = common::folder();
    let sage = train_on(&data, &of(MethodKind::Sage, Level::None), &folder).expect("trained");
    let error = to_onnx(&sage).expect_err("neighbours' rows are read").to_string();
    assert!(error.contains("has no ONNX file"), "{error}");

    let (keep, folder) = common::folder();
    let release = train_on(&data, &of(MethodKind::ProgapLabels, Level::Edge), &folder).expect("trained");
    // At node level nothing that is for the data owner alone decides a byte of it: without it the package is the same.
    let (own, node) = common::folder();
    let settings = Settings { batch_size: 50, ..of(MethodKind::ProgapLabels, Level::Node) };
    train_on(&data, &settings, &node).expect("trained");
    let hub = |name: &str| {
        let out = own.path().join(name);
        package(&Release::open(&node).expect("a release"), Form::HuggingFace, &out).expect("packaged");
        common::contents(&out)
    };
    let with = hub("with");
    std::fs::remove_dir_all(node.join("private")).expect("removed");
    assert_eq!(hub("without"), with);

    for (form, expected) in [(Form::HuggingFace, "model.safetensors"), (Form::Mlflow, "MLmodel")] {
        let out = keep.path().join(format!("{form:?}"));
        let files = package(&release, form, &out).expect("packaged");
        assert!(
            files.iter().any(|file| file == expected) && files.iter().any(|file| file == "aggregates/1.npy")
        );
        assert!(files.iter().all(|file| out.join(file).is_file() && !file.contains("nodes")), "{files:?}");
        let card = std::fs::read_to_string(out.join("README.md")).expect("a card");
        assert!(
            card.starts_with("---\nlicense: unknown\nlibrary_name: progap\n")
                && card.contains(&release.statement.in_words)
        );
        assert!(!card.contains("private/") && card.contains("time and memory of training"), "{card}");
        assert!(package(&release, form, &out).expect_err("taken").to_string().contains("there already"));
    }
}
