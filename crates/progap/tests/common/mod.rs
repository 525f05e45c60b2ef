//! A small network, and folders to train in.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use progap::method::Progress;
use progap::{Release, Settings, release, run};
use progap_graph::synth::SocialNetwork;
use progap_graph::{Dataset, Ratios};
use serde_json::Value;
use sha2::{Digest, Sha256};

pub mod twins;

pub fn network() -> Dataset {
    let dataset = SocialNetwork::new(2000).edges(60_000).classes(3).seed(1).generate().expect("a network");
    dataset.or_random_split(Ratios::default(), 1).expect("a split")
}

pub fn folder() -> (tempfile::TempDir, PathBuf) {
    let outer = tempfile::tempdir().expect("a temporary folder");
    let inner = outer.path().join("release");
    (outer, inner)
}

pub fn train(settings: &Settings, folder: &Path) -> progap::Result<Release> {
    train_on(&network(), settings, folder)
}

pub fn train_on(data: &Dataset, settings: &Settings, folder: &Path) -> progap::Result<Release> {
    progap::train(data, settings).into_folder(folder)
}

/// Every file of a release but the list of their checksums, and the one that says how long training took.
pub fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let (mut found, mut folders) = (vec![], vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != "manifest.json" && name != "cost.json") {
                let name = path.strip_prefix(folder).expect("inside").to_string_lossy().into_owned();
                found.push((name, std::fs::read(&path).expect("read")));
            }
        }
    }
    found.sort();
    found
}

/// An observer that stops after this many epochs.
pub fn stop_after(epochs: usize) -> impl FnMut(&Progress) -> ControlFlow<()> {
    let mut done = 0;
    move |_: &Progress| {
        done += 1;
        if done == epochs { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Stopped after this many epochs and resumed, a run must end in the same bits.
pub fn stopped_and_resumed_ends_the_same(settings: &Settings, epochs: &[usize]) {
    stopped_and_resumed_on(&network(), settings, epochs);
}

/// As [`stopped_and_resumed_ends_the_same`], on a data set of one's own.
pub fn stopped_and_resumed_on(data: &Dataset, settings: &Settings, epochs: &[usize]) {
    let (_whole, whole) = folder();
    train_on(data, settings, &whole).expect("trained");
    for &epochs in epochs {
        let (_parts, parts) = folder();
        let stopped = progap::train(data, settings).observer(&mut stop_after(epochs)).into_folder(&parts);
        assert!(matches!(&stopped, Err(error) if error.is_interrupted()), "{stopped:?}");
        assert!(Release::open(&parts).is_err(), "an unfinished run is no release");
        run::resume(data.clone(), &parts, &mut ()).expect("resumed");
        assert!(contents(&parts) == contents(&whole), "{settings:?} stopped after epoch {epochs}");
    }
}

/// Nothing is wrong with a release.
pub fn assert_verified(folder: &Path) {
    let findings = release::verify(folder).expect("verified");
    assert!(findings.iter().all(|finding| finding.ok), "{findings:#?}");
}

/// The predictions of the release for the test nodes are as accurate as its metrics say.
pub fn assert_predicts_as_measured(release: &Release) {
    assert_predicts_as_measured_on(&network(), release);
}

/// As [`assert_predicts_as_measured`], on a data set of one's own.
pub fn assert_predicts_as_measured_on(data: &Dataset, release: &Release) {
    let all: Vec<u32> = (0..release.nodes().nodes() as u32).collect();
    let predictions = release.predict_nodes(&all).expect("predicted");
    let test: Vec<usize> = data.split().expect("a split").nodes(progap_graph::Part::Test).collect();
    let hits = test.iter().filter(|&&node| predictions.classes[node] == data.labels()[node]).count();
    let accuracy = hits as f64 / test.len() as f64;
    assert!((accuracy - release.metrics.test_accuracy).abs() < 1e-9);
    for row in predictions.probabilities.chunks_exact(data.classes()) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-4);
    }
}

/// Whether a release whose statement was changed, with its checksum repaired, still passes. The statement is put back.
pub fn survives(folder: &Path, change: &dyn Fn(&mut Value)) -> bool {
    let (statement, manifest) = (folder.join("privacy.json"), folder.join("manifest.json"));
    let originals = [&statement, &manifest].map(|file| std::fs::read(file).expect("read"));
    let mut forged: Value = serde_json::from_slice(&originals[0]).expect("JSON");
    change(&mut forged);
    let text = serde_json::to_string_pretty(&forged).expect("JSON");
    let sum: String = Sha256::digest(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
    let mut list: Value = serde_json::from_slice(&originals[1]).expect("JSON");
    list["files"]["privacy.json"] = sum.into();
    std::fs::write(&statement, &text).expect("written");
    std::fs::write(&manifest, list.to_string()).expect("written");
    let passes = release::verify(folder).is_ok_and(|findings| findings.iter().all(|finding| finding.ok));
    std::fs::write(&statement, &originals[0]).expect("written");
    std::fs::write(&manifest, &originals[1]).expect("written");
    passes
}
