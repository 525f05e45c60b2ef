//! From a small network to a release, at every level; interrupted, resumed, verified, tampered with.

mod common;

use std::ops::ControlFlow;
use std::path::Path;

use common::*;

use progap::ledger::Ledger;
use progap::method::Progress;
use progap::run::Account;
use progap::settings::{Bounding, Selection};
use progap::{ErrorKind, Level, Release, Remedy, Settings, release, run};
use progap_graph::{AtomicFile, Dataset, Features, Ratios};
use progap_privacy::Unit;
use progap_privacy::noise::{GradientGrid, Summation};
use serde_json::Value;

fn settings(level: Level) -> Settings {
    let epochs = if level == Level::Node { 3 } else { 20 };
    Settings {
        epochs,
        depth: 2,
        batch_size: 100,
        seed: Some(7),
        ..Settings::of(progap::MethodKind::ProgapLabels, level)
    }
}

#[test]
fn every_level_trains_verifies_and_predicts() {
    for level in [Level::None, Level::Edge, Level::Node] {
        let (_keep, folder) = folder();
        // Without a seed: the noise is secure and the release private.
        let release = train(&Settings { seed: None, ..settings(level) }, &folder).expect("trained");
        assert_eq!(release.statement.private, level != Level::None);
        assert_eq!(release.statement.epsilon.is_some(), level != Level::None);
        assert_verified(&folder);
        for left in ["run.json", "secret.key", "checkpoint-1.safetensors", "checkpoint-2.safetensors"] {
            assert!(!folder.join(left).exists(), "{left} is left over");
        }
        assert_predicts_as_measured(&release);
        let names = release.nodes();
        if level == Level::Node {
            assert!(names.labels().iter().all(|&label| label == 0), "labels are private");
        }
        assert_eq!(names.graph().edges(), 0);
    }
}

#[test]
fn the_graph_helps_and_less_noise_helps_more() {
    let accuracy = |epsilon: Option<f64>, level| {
        let (_keep, folder) = folder();
        train(&Settings { epsilon, ..settings(level) }, &folder).expect("trained").metrics
    };
    let open = accuracy(None, Level::None);
    let (loud, quiet) = (accuracy(Some(0.05), Level::Edge), accuracy(Some(500.0), Level::Edge));
    let features = open.stage_test_accuracies[0];
    assert!(open.test_accuracy > features + 0.05, "{} {features}", open.test_accuracy);
    assert!((quiet.test_accuracy - open.test_accuracy).abs() < 0.06, "no noise, no loss");
    assert!(
        loud.test_accuracy < quiet.test_accuracy - 0.05,
        "{} {}",
        loud.test_accuracy,
        quiet.test_accuracy
    );
}

#[test]
fn a_stopped_run_goes_on_to_the_same_bits() {
    for level in [Level::Edge, Level::Node] {
        stopped_and_resumed_ends_the_same(&settings(level), &[1, 2, 4]);
    }
}

/// Copies a folder as it is at this moment.
fn snapshot(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            snapshot(&path, &target);
        } else if !path.file_name().is_some_and(AtomicFile::is_unfinished) {
            std::fs::copy(&path, &target).expect("copied");
        }
    }
}

/// Crashes at any epoch: what is on disk then goes on to the bits of the run that was never interrupted, with secure
/// noise as with a seed, wherever the first process was: before its first aggregate, between two, or within a stage.
#[test]
fn a_secure_run_goes_on_from_any_moment_with_the_same_noise() {
    for settings in [settings(Level::Edge), settings(Level::Node)] {
        let settings = Settings { seed: None, ..settings };
        let (_keep, whole) = folder();
        let outer = tempfile::tempdir().expect("a folder");
        let moments: Vec<usize> = [1, settings.epochs, settings.epochs + 1, 2 * settings.epochs + 1].into();
        let mut epochs = 0;
        let mut watch = |_: &Progress| {
            epochs += 1;
            if moments.contains(&epochs) {
                snapshot(&whole, &outer.path().join(epochs.to_string()));
            }
            ControlFlow::Continue(())
        };
        progap::train(&network(), &settings).observer(&mut watch).into_folder(&whole).expect("trained");
        for moment in moments {
            let crashed = outer.path().join(moment.to_string());
            run::resume(network(), &crashed, &mut ()).expect("resumed");
            assert!(contents(&crashed) == contents(&whole), "{} after {moment} epochs", settings.level);
            assert_verified(&crashed);
        }
    }
}

/// The key that lies on disk after an answer was kept is another one, from which the first cannot be computed: put in
/// its place, it makes other noise.
#[test]
fn a_key_on_disk_cannot_repeat_the_noise_of_what_was_kept() {
    let settings = Settings { seed: None, ..settings(Level::Edge) };
    let (_keep, folder) = folder();
    let outer = tempfile::tempdir().expect("a folder");
    let (first, later) = (outer.path().join("first"), outer.path().join("later"));
    let mut epochs = 0;
    let mut watch = |_: &Progress| {
        epochs += 1;
        match epochs {
            1 => snapshot(&folder, &first),
            n if n == settings.epochs + 1 => snapshot(&folder, &later),
            _ => {}
        }
        ControlFlow::Continue(())
    };
    progap::train(&network(), &settings).observer(&mut watch).into_folder(&folder).expect("trained");
    let key = |folder: &Path| {
        let text = std::fs::read(folder.join("secret.key")).expect("read");
        let content: Value = serde_json::from_slice(&text).expect("JSON");
        let hex = content["key"].as_str().expect("a key").to_string();
        // The generation, the noise key, and what stays the same through the run.
        (hex[..16].to_string(), hex[16..80].to_string(), hex[80..].to_string())
    };
    let ((generation, noise, identity), after) = (key(&first), key(&later));
    assert!(generation != after.0 && noise != after.1 && identity == after.2);
}

/// Files that somebody changed are refused, and so is a key of the right length: nothing is asked with other noise, and
/// no second answer is made of other inputs.
#[test]
fn changed_files_of_a_run_are_refused_on_resume() {
    let settings = Settings { seed: None, ..settings(Level::Edge) };
    let (_keep, folder) = folder();
    let mut stop = stop_after(2 * settings.epochs + 1);
    let stopped = progap::train(&network(), &settings).observer(&mut stop).into_folder(&folder);
    assert!(matches!(&stopped, Err(error) if error.is_interrupted()), "{stopped:?}");
    let mut names: Vec<String> = contents(&folder).into_iter().map(|(name, _)| name).collect();
    names.retain(|name| name != "run.json");
    assert!(names.len() == 4, "two aggregates, a checkpoint and the key: {names:?}");
    for name in names {
        let file = folder.join(&name);
        let good = std::fs::read(&file).expect("read");
        for place in [good.len() / 2, good.len() - 5] {
            let mut bad = good.clone();
            bad[place] ^= 1;
            std::fs::write(&file, &bad).expect("written");
            let error = run::resume(network(), &folder, &mut ()).expect_err(&name).to_string();
            assert!(error.contains(&name), "{error}");
        }
        std::fs::remove_file(&file).expect("removed");
        run::resume(network(), &folder, &mut ()).expect_err(&name);
        std::fs::write(&file, good).expect("put back");
    }
    run::resume(network(), &folder, &mut ()).expect("as it was, it goes on");
}

/// One grid serves the gradients of all stages: each is charged for the stage with the most parameters, and has the
/// noise for that.
#[test]
fn gradients_of_all_stages_are_charged_alike() {
    let (_keep, folder) = folder();
    let settings = settings(Level::Node);
    let release = train(&settings, &folder).expect("trained");
    let gradients: Vec<_> =
        release.statement.mechanisms.iter().filter(|mechanism| mechanism.sampling_rate < 1.0).collect();
    assert_eq!(gradients.len(), settings.depth + 1);
    let train_nodes = network().split().expect("a split").nodes(progap_graph::Part::Train).count() as u64;
    // Four bytes each, after a header and its length; group norms have no statistics.
    let model = std::fs::read(folder.join("model.safetensors")).expect("the last stage");
    let header = u64::from_le_bytes(*model.first_chunk().expect("a length")) as usize;
    let largest = (model.len() - 8 - header) / 4;
    let multiplier = gradients[0].noise_multiplier;
    let grid = GradientGrid::new(settings.clip, largest, multiplier, Summation::sequential(train_nodes))
        .expect("a grid");
    for gradient in gradients {
        assert_eq!(gradient.sensitivity, grid.sensitivity());
        assert!(gradient.sigma >= multiplier * grid.sensitivity() * (1.0 - 1e-12));
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    for level in [Level::Edge, Level::Node] {
        let [one, two] = [1, 2].map(|threads| {
            let (keep, folder) = folder();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| train(&settings(level), &folder).map(|_| ())).expect("trained");
            (contents(&folder), keep).0
        });
        assert_eq!(one, two, "{level:?}");
    }
}

#[test]
fn the_ledger_is_charged_once_and_refuses_what_passes_the_budget() {
    let (keep, folder) = folder();
    let path = keep.path().join("ledger.db");
    let data = network();
    let mut ledger = Ledger::create(&path).expect("a ledger");
    let people = ledger.identity(&data).expect("an identity");
    ledger.register("people", Unit::Edge, 1.2, 1e-5, Some(&people)).expect("registered");
    let settings = Settings { seed: None, delta: Some(1e-5), ..settings(Level::Edge) };
    let (account, warning) = Account::find(&data, &settings, &path, None).expect("found by its data");
    assert_eq!((account.name.as_str(), warning), ("people", None));
    let mut stop = |_: &Progress| ControlFlow::Break(());
    progap::train(&network(), &settings)
        .charged_to(account.clone())
        .observer(&mut stop)
        .into_folder(&folder)
        .expect_err("stopped");
    let runs = |ledger: &Ledger| ledger.status("people", Unit::Edge).expect("status").runs;
    assert_eq!(runs(&ledger), 1, "charged before training");
    run::resume(network(), &folder, &mut ()).expect("resumed");
    assert_eq!(runs(&ledger), 1, "charged once");
    let second = keep.path().join("second");
    let refused = progap::train(&network(), &settings).charged_to(account.clone()).into_folder(&second);
    assert!(matches!(&refused, Err(e) if matches!(e.kind(), ErrorKind::Ledger(_))), "{refused:?}");
    assert!(!second.exists(), "nothing was asked, and nothing is left");
}

/// Noise from a seed can be removed by anybody: a ledger that charged it would promise what is not true.
#[test]
fn a_seeded_run_is_never_charged_and_nothing_is_written() {
    let (keep, folder) = folder();
    let path = keep.path().join("ledger.db");
    let mut ledger = Ledger::create(&path).expect("a ledger");
    ledger.register("people", Unit::Edge, 4.0, 1e-5, None).expect("registered");
    let settings = Settings { seed: Some(5), delta: Some(1e-5), ..settings(Level::Edge) };
    let unseeded = Account::find(&network(), &settings, &path, Some("people")).expect_err("it has a seed");
    assert_eq!(unseeded.remedies(), [Remedy::Drop("seed"), Remedy::Drop("ledger")]);
    let account = Account { path, name: "people".into() };
    let refused = progap::train(&network(), &settings).charged_to(account.clone()).into_folder(&folder);
    let message = refused.expect_err("it has a seed").to_string();
    assert!(message.contains("`seed`") && message.contains("cannot be charged"), "{message}");
    assert!(!folder.exists(), "a folder was made");
    assert_eq!(ledger.status("people", Unit::Edge).expect("status").runs, 0);
}

#[test]
fn any_tampering_is_found() {
    let (_keep, folder) = folder();
    train(&settings(Level::Edge), &folder).expect("trained");
    for (name, original) in contents(&folder) {
        let path = folder.join(&name);
        let mut changed = original.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        std::fs::write(&path, &changed).expect("written");
        assert!(release::verify(&folder).is_err(), "a changed {name} goes unnoticed");
        std::fs::remove_file(&path).expect("removed");
        assert!(release::verify(&folder).is_err(), "a missing {name} goes unnoticed");
        std::fs::write(&path, &original).expect("written");
    }
    assert!(release::verify(&folder).expect("whole again").iter().all(|finding| finding.ok));
    std::fs::write(folder.join("extra.txt"), b"x").expect("written");
    assert!(!release::verify(&folder).expect("opened").iter().all(|finding| finding.ok), "a stranger");
    std::fs::remove_file(folder.join("extra.txt")).expect("removed");
}

/// Even with the checksums repaired, numbers that do not add up are found.
#[test]
fn a_forged_statement_is_found_by_recomputing() {
    let (_keep, folder) = folder();
    train(&settings(Level::Edge), &folder).expect("trained");
    let forge = |change: &dyn Fn(&mut Value)| survives(&folder, change);
    assert!(forge(&|_| ()), "repaired checksums alone are fine");
    assert!(!forge(&|s| s["epsilon"] = s["planned"]["epsilon"].clone()), "an epsilon of a seeded run");
    assert!(!forge(&|s| s["delta"] = s["planned"]["delta"].clone()), "a delta of a seeded run");
    assert!(!forge(&|s| s["planned"]["epsilon"] = 0.5.into()), "a smaller epsilon");
    assert!(!forge(&|s| s["epsilon_undirected"] = 0.5.into()), "a smaller epsilon for undirected edges");
    assert!(!forge(&|s| s["epsilon_directed"] = 0.1.into()), "a smaller epsilon for one direction");
    assert!(!forge(&|s| s["mechanisms"][0]["sigma"] = 99.0.into()), "another noise in the list");
    assert!(!forge(&|s| s["event"]["events"][0]["count"] = 1.into()), "fewer queries");
    assert!(!forge(&|s| s["private"] = true.into()), "seeded noise called private");
    assert!(!forge(&|s| s["unit"] = "node".into()), "another unit");
    assert!(!forge(&|s| s["in_words"] = "Private.".into()), "other words");
    assert!(!forge(&|s| s["not_covered"] = Value::Array(vec![])), "nothing left uncovered");
    assert!(
        !forge(&|s| s["event"]["events"][0]["event"]["sensitivity"] = 0.5.into()),
        "a smaller sensitivity"
    );
}

#[test]
fn bad_settings_and_data_are_refused_before_anything_is_written() {
    let refused = |settings: Settings| {
        let (_keep, folder) = folder();
        let error = train(&settings, &folder).expect_err("refused");
        assert!(!folder.exists(), "{error}: something was written");
        error.to_string()
    };
    let edge = settings(Level::Edge);
    let node = settings(Level::Node);
    refused(Settings { depth: 1000, ..edge.clone() });
    refused(Settings { epochs: 0, ..edge.clone() });
    refused(Settings { learning_rate: f64::NAN, ..edge.clone() });
    refused(Settings { epsilon: Some(-1.0), ..edge.clone() });
    refused(Settings { epsilon: None, ..edge.clone() });
    refused(Settings { delta: Some(1.5), ..edge.clone() });
    refused(Settings { batch_size: 100_000, ..node.clone() });
    refused(Settings { max_degree: 0, ..node.clone() });
    refused(Settings { selection: Selection::BestValidation, ..node.clone() });
    let message = refused(Settings { level: Level::None, ..edge });
    assert!(message.contains("`level edge`"), "{message}");
}

/// Noise from tables is a little off; a promise for which that is too much is not made.
#[test]
fn guarantees_that_tables_cannot_keep_are_refused() {
    for level in [Level::Edge, Level::Node] {
        let (_keep, folder) = folder();
        let secure = Settings { seed: None, epochs: 2, ..settings(level) };
        let error = train(&Settings { epsilon: Some(70.0), ..secure.clone() }, &folder).expect_err("refused");
        assert!(!folder.exists() && error.to_string().contains("tables"), "{error}");
        let error = train(&Settings { delta: Some(1e-28), ..secure.clone() }, &folder).expect_err("refused");
        assert!(error.to_string().contains("a larger delta"), "{error}");
        train(&Settings { epsilon: Some(30.0), ..secure }, &folder).expect("trained");
    }
}

#[test]
fn resuming_with_other_data_is_refused() {
    let (_keep, folder) = folder();
    let mut stop = |_: &Progress| ControlFlow::Break(());
    progap::train(&network(), settings(Level::Edge))
        .observer(&mut stop)
        .into_folder(&folder)
        .expect_err("stopped");
    let other = network().with_random_split(Ratios::default(), 2).expect("another split");
    let error = run::resume(other, &folder, &mut ()).expect_err("refused").to_string();
    assert!(error.contains("other data"), "{error}");
}

#[test]
fn a_newer_release_says_so() {
    let (_keep, folder) = folder();
    train(&settings(Level::Edge), &folder).expect("trained");
    let manifest = folder.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).expect("read").replace("\"version\": 1", "\"version\": 2");
    std::fs::write(&manifest, text).expect("written");
    let error = Release::open(&folder).expect_err("newer");
    assert!(matches!(error.kind(), ErrorKind::Newer { found: 2, .. }), "{error}");
}

#[test]
fn every_bounding_trains() {
    for bounding in [Bounding::Weight, Bounding::Cap, Bounding::Sample] {
        let (_keep, folder) = folder();
        train(&Settings { bounding, max_degree: 9, ..settings(Level::Node) }, &folder).expect("trained");
        assert!(release::verify(&folder).expect("verified").iter().all(|finding| finding.ok), "{bounding:?}");
    }
}

/// The network with one feature of one node replaced.
fn with_feature(node: usize, value: f32) -> Dataset {
    let mut parts = network().into_parts();
    let mut dense = parts.features.to_dense(parts.graph.nodes());
    let columns = parts.features.columns();
    dense[node * columns] = value;
    parts.features = Features::dense(parts.graph.nodes(), columns, dense).expect("features");
    Dataset::new(parts).expect("a data set")
}

/// A value that no network can work with is refused where it is public, before anything is charged, and contained where
/// it is private: predictions about all nodes stay numbers.
#[test]
fn huge_features_never_reach_a_model() {
    let node = network().split().expect("a split").nodes(progap_graph::Part::Train).next().expect("a node");
    for value in [1e30, -1e20] {
        for level in [Level::None, Level::Edge] {
            let (_keep, folder) = folder();
            let error = train_on(&with_feature(node, value), &settings(level), &folder).expect_err("refused");
            assert!(error.to_string().contains("feature column") && !folder.exists(), "{error}");
        }
        let (_keep, folder) = folder();
        let release = train_on(&with_feature(node, value), &settings(Level::Node), &folder).expect("trained");
        let all: Vec<u32> = (0..release.nodes().nodes() as u32).collect();
        let predictions = release.predict_nodes(&all).expect("predicted");
        assert!(predictions.probabilities.iter().all(|p| p.is_finite()));
        assert_verified(&folder);
    }
    for level in [Level::None, Level::Edge] {
        let (_keep, folder) = folder();
        let release = train_on(&with_feature(node, 1e12), &settings(level), &folder).expect("trained");
        let predictions = release.predict_nodes(&[node as u32, 0, 1]).expect("predicted");
        assert!(predictions.probabilities.iter().all(|p| p.is_finite()), "{level}");
    }
}

/// Data that cannot be trained on is refused before it is charged.
#[test]
fn one_training_node_is_refused_before_anything_is_written() {
    let mut parts = network().into_parts();
    let part = |node: usize| match node {
        0 => progap_graph::Part::Train,
        node if node % 2 == 0 => progap_graph::Part::Val,
        _ => progap_graph::Part::Test,
    };
    parts.split = Some(progap_graph::Split::from_parts((0..parts.graph.nodes()).map(part)));
    let (_keep, folder) = folder();
    let error = train_on(&Dataset::new(parts).expect("a data set"), &settings(Level::Edge), &folder);
    assert!(error.expect_err("refused").to_string().contains("two training nodes") && !folder.exists());
}
