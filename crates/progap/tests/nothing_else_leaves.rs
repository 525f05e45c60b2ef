//! Given the same answers of the mechanisms, everything public is the same to the last byte, whatever the private data
//! were (crates/privacy/proofs/nothing-else-leaves.md).
//!
//! Here the private data differ in what no mechanism sees, so that the same seed gives the same answers: at node level
//! the records of nodes that are not trained on and send nothing, at edge level all edges where none is asked for.
//! Where edges are asked for, `src/run/injected.rs` gives both data sets the same answers.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::twins::{node_twins, other_edges, silent_nodes, small_network, with_column, with_edges};
use common::{assert_verified, folder, train_on};
use progap::release::{self, Exported};
use progap::settings::{Bounding, Messages, MethodKind, Scaling};
use progap::{Level, Release, Settings};
use progap_graph::{Dataset, DatasetParts, Part, Split};

/// Every public file of a release: its name and its bytes.
fn public(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(folder).expect("inside").to_string_lossy().into_owned();
            match path.is_dir() {
                true if name == "private" => {}
                true => folders.push(path),
                false => drop(found.insert(name, std::fs::read(&path).expect("read"))),
            }
        }
    }
    found
}

#[track_caller]
fn assert_same(what: &str, one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>) {
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(one), names(other), "{what}: the names of files tell the private data");
    for (name, bytes) in one {
        assert!(*bytes == other[name], "{what}: {name} tells the private data");
    }
}

fn settings(method: MethodKind, level: Level) -> Settings {
    let epochs = if level == Level::Node { 2 } else { 4 };
    let delta = (method != MethodKind::EdgeRand).then_some(1e-5);
    Settings { epochs, batch_size: 60, seed: Some(7), delta, ..Settings::of(method, level) }
}

fn exported(release: &Path, rows: bool) -> progap::Result<BTreeMap<String, Vec<u8>>> {
    let (_keep, out) = folder();
    let date = "2026-01-31".parse().expect("a day");
    let mut page = |release: &Release| Ok(format!("{:?}", release.statement));
    release::export(release, &out, Exported { date, rows }, &mut page, None)?;
    assert_verified(&out);
    Ok(public(&out))
}

/// Trains on both, and compares everything public: the release, its export, what verify says. Gives both back.
fn compare(what: &str, twins: &[Dataset; 2], settings: &Settings) -> [(tempfile::TempDir, Release); 2] {
    assert_ne!(twins[0].fingerprint(), twins[1].fingerprint(), "twins differ");
    let trained = twins.each_ref().map(|data| {
        let (keep, folder) = folder();
        let release = train_on(data, settings, &folder).unwrap_or_else(|e| panic!("{what}: {e}"));
        (keep, release)
    });
    let [one, other] = trained.each_ref().map(|(_, release)| release.folder.clone());
    assert_same(what, &public(&one), &public(&other));
    let said = |folder: &Path| release::verify(folder).expect("verified");
    assert_eq!(said(&one), said(&other), "{what}");
    let [first, second] = [&one, &other].map(|folder| exported(folder, false).expect("exported"));
    assert_same(&format!("export of {what}"), &first, &second);
    let with_rows = [&one, &other].map(|folder| exported(folder, true));
    match with_rows {
        [Ok(first), Ok(second)] => assert_same(&format!("export with rows of {what}"), &first, &second),
        [Err(first), Err(second)] if settings.level == Level::Node => {
            assert_eq!(first.to_string(), second.to_string());
        }
        other => panic!("{what}: {other:?}"),
    }
    trained
}

/// Noisy counts are of all records. Here the twins' values lie in the same bins, so that the counts are the same; the
/// values themselves are nobody's business.
#[test]
fn of_columns_that_were_counted_no_public_byte_tells_more_than_the_counts() {
    let data = small_network();
    let silent = silent_nodes(&data);
    let [one, other] = node_twins(&data);
    let value = |node: usize| 1.25 + (node * 37 % 101) as f32 / 64.0;
    let nearly = |node: usize| if silent.contains(&(node as u32)) { value(node) + 1e-6 } else { value(node) };
    let twins = [with_column(&one, value, None), with_column(&other, nearly, None)];
    for method in [MethodKind::ProgapLabels, MethodKind::Gap, MethodKind::Mlp] {
        let settings = Settings { scaling: Scaling::Noisy, ..settings(method, Level::Node) };
        compare(&format!("{method} with noisy counts of columns"), &twins, &settings);
    }
}

#[test]
fn at_node_level_no_public_byte_tells_a_record_that_was_not_asked() {
    let data = small_network();
    let twins = node_twins(&data);
    let silent = silent_nodes(&data);
    let node = |method| settings(method, Level::Node);
    let embeddings = |bounding| Settings {
        messages: Messages::Embeddings,
        depth: 2,
        max_degree: 9,
        bounding,
        ..node(MethodKind::ProgapLabels)
    };
    let all = [
        ("progap with labels", node(MethodKind::ProgapLabels)),
        ("progap with embeddings, weights", embeddings(Bounding::Weight)),
        ("progap with embeddings, caps", embeddings(Bounding::Cap)),
        ("progap with embeddings, samples", embeddings(Bounding::Sample)),
        ("gap", node(MethodKind::Gap)),
        ("mlp", node(MethodKind::Mlp)),
        ("dp-gnn", node(MethodKind::DpGnn)),
    ];
    for (what, settings) in all {
        let [(_one, one), (_other, other)] = compare(what, &twins, &settings);
        // The owner's files do tell: otherwise the twins would not differ in anything that matters.
        let own = |release: &Release| {
            std::fs::read(release.folder.join("private/manifest.json")).expect("checksums")
        };
        assert_ne!(own(&one), own(&other), "{what}");
        if settings.method == MethodKind::DpGnn {
            continue; // Its predictions read the rows of senders as they are, which its statement says.
        }
        let others: Vec<u32> = (0..data.nodes() as u32).filter(|node| !silent.contains(node)).collect();
        let predict = |release: &Release, nodes: &[u32]| release.predict_nodes(nodes).expect("predicted");
        assert_eq!(predict(&one, &others), predict(&other, &others), "{what}: predictions about others");
        assert_ne!(predict(&one, &silent), predict(&other, &silent), "{what}: a node's own row is its own");
    }
}

#[test]
fn at_edge_level_no_public_byte_tells_edges_that_were_not_asked() {
    let data = small_network();
    let twins = [data.clone(), other_edges(&data)];
    let flat = Settings { depth: 0, ..settings(MethodKind::ProgapLabels, Level::Edge) };
    let labels = Settings { messages: Messages::Labels, ..flat.clone() };
    let undirected = Settings { undirected: true, ..flat.clone() };
    let gap = Settings { depth: 0, ..settings(MethodKind::Gap, Level::Edge) };
    let mlp = settings(MethodKind::Mlp, Level::Edge);
    let all =
        [("auto", flat), ("labels", labels), ("undirected edges", undirected), ("gap", gap), ("mlp", mlp)];
    for (what, settings) in all {
        let [(_one, one), (_other, other)] = compare(what, &twins, &settings);
        let nodes: Vec<u32> = (0..data.nodes() as u32).collect();
        let predict = |release: &Release| release.predict_nodes(&nodes).expect("predicted");
        assert_eq!(predict(&one), predict(&other), "{what}");
    }
}

fn with_labels(data: &Dataset, label: impl Fn(usize, u32) -> u32) -> Dataset {
    let labels: Vec<u32> = data.labels().iter().enumerate().map(|(node, &was)| label(node, was)).collect();
    Dataset::new(DatasetParts { labels: labels.into(), ..data.clone().into_parts() }).expect("a data set")
}

/// Whether there is a release tells nothing of private labels.
#[test]
fn a_class_that_no_training_node_has_does_not_decide_whether_there_is_a_release() {
    let data = small_network();
    let split = data.split().expect("a split").clone();
    let without = with_labels(&data, |node, was| if split.part(node) == Part::Train { was % 2 } else { was });
    let single = with_labels(&data, |_, _| 1);
    for method in [MethodKind::ProgapLabels, MethodKind::Gap, MethodKind::Mlp, MethodKind::DpGnn] {
        for data in [&data, &without, &single] {
            let (_keep, folder) = folder();
            train_on(data, &settings(method, Level::Node), &folder).expect("a release");
            assert_verified(&folder);
        }
    }
}

/// Nothing is chosen by validation nodes at node level, so there need not be any.
#[test]
fn at_node_level_there_is_a_release_without_validation_nodes() {
    let data = small_network();
    let split = data.split().expect("a split");
    let parts = (0..data.nodes()).map(|node| match split.part(node) {
        Part::Val => Part::Test,
        part => part,
    });
    let split = Some(Split::from_parts(parts));
    let data = Dataset::new(DatasetParts { split, ..data.into_parts() }).expect("a data set");
    for method in [MethodKind::ProgapLabels, MethodKind::Mlp, MethodKind::DpGnn] {
        let (_keep, folder) = folder();
        let release = train_on(&data, &settings(method, Level::Node), &folder).expect("a release");
        assert!(release.metrics.val_accuracy.is_nan() && release.metrics.test_accuracy.is_finite());
        assert_verified(&folder);
        exported(&folder, false).expect("exported");
    }
}

/// The number of edges is private at edge level: no run ends without a release because there are few.
#[test]
fn the_number_of_edges_does_not_decide_whether_there_is_a_release() {
    let data = small_network();
    let all: Vec<(u32, u32)> = (0..data.nodes() as u32).flat_map(|a| (0..40).map(move |b| (a, b))).collect();
    let all: Vec<(u32, u32)> = all.into_iter().filter(|(a, b)| a != b).collect();
    for edges in [&[][..], &[(3, 5)], &[(3, 5), (5, 3)], &all] {
        let data = with_edges(&data, edges);
        for (method, undirected) in
            [(MethodKind::EdgeRand, false), (MethodKind::EdgeRand, true), (MethodKind::ProgapLabels, false)]
        {
            let (_keep, folder) = folder();
            let settings = Settings { epochs: 2, undirected, ..settings(method, Level::Edge) };
            train_on(&data, &settings, &folder)
                .unwrap_or_else(|e| panic!("{method} on {} edges: {e}", edges.len()));
            assert_verified(&folder);
        }
    }
}
