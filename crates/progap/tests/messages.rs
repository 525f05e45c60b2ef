//! Messages of nodes are chosen by what helped: labels where neighbours' classes tell, embeddings where they do not.

mod common;

use common::*;
use progap::method::Choice;
use progap::settings::Messages::{self, Auto, Embeddings, Labels};
use progap::settings::Order;
use progap::{Level, Settings};
use progap_graph::{Dataset, DatasetParts, Features, Graph, Ratios};

fn settings(level: Level, messages: Messages) -> Settings {
    let epsilon = (level != Level::None).then_some(8.0);
    // Those who choose stand first.
    let order = match level {
        Level::None => Order::Tested,
        _ => Order::Public,
    };
    let usual = Settings::of(progap::MethodKind::ProgapLabels, level);
    Settings { messages, epsilon, order, epochs: 30, seed: Some(4), ..usual }
}

/// Taste without likeness: the first half choose neighbours of one class each, whatever their own. So the neighbours of
/// those who are chosen have any class, but the neighbours of these neighbours have all the same, which is theirs.
/// Features tell the classes of those who choose only.
fn tastes() -> Dataset {
    let (nodes, neighbours) = (3_000u64, 15);
    // A mixer of bits, so that every draw is the same for ever.
    let draw = |n: u64| {
        let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
    };
    let class = |node: u64| (draw(node) & 1) as u32;
    let (mut sources, mut targets) = (vec![], vec![]);
    for chooser in 0..nodes / 2 {
        let taste = (draw(chooser + nodes) & 1) as u32;
        let others = (0..).map(|n| nodes / 2 + draw(chooser * 1_000 + n + 10 * nodes) % (nodes / 2));
        for neighbour in others.filter(|&other| class(other) == taste).take(neighbours) {
            sources.extend([chooser as u32, neighbour as u32]);
            targets.extend([neighbour as u32, chooser as u32]);
        }
    }
    let row = |node: u64| if node < nodes / 2 { [class(node) as f32, 1.0] } else { [0.5, 0.0] };
    let parts = DatasetParts {
        feature_names: vec!["own".into(), "chooses".into()],
        ..DatasetParts::of(
            "tastes",
            Graph::from_edges(nodes as usize, &sources, &targets).expect("a graph"),
            Features::dense(nodes as usize, 2, (0..nodes).flat_map(row).collect::<Vec<_>>())
                .expect("features"),
            (0..nodes).map(class).collect::<Vec<_>>(),
            vec!["a".into(), "b".into()],
        )
    };
    Dataset::new(parts).expect("a data set").or_random_split(Ratios::default(), 1).expect("a split")
}

#[test]
fn embeddings_follow_where_labels_do_not_help() {
    let data = tastes();
    let expected = Choice { messages: vec![Labels, Embeddings], stage: 2 };
    for level in [Level::None, Level::Edge] {
        let (_keep, folder) = folder();
        let release = train_on(&data, &settings(level, Auto), &folder).expect("trained");
        assert_eq!(release.statement.choice, Some(expected.clone()), "{level}");
        assert_verified(&folder);
        assert_predicts_as_measured_on(&data, &release);
        let with = |messages| {
            let folder = folder.with_extension(format!("{messages}"));
            train_on(&data, &settings(level, messages), &folder).expect("trained").metrics.test_accuracy
        };
        let (chosen, labels, embeddings) = (release.metrics.test_accuracy, with(Labels), with(Embeddings));
        assert!(chosen > 0.9, "{level}: {chosen}, labels {labels}, embeddings {embeddings}");
        assert!(labels < 0.8 && embeddings < 0.8, "{level}: labels {labels}, embeddings {embeddings}");
        let twice = serde_json::json!(["labels", "labels"]);
        assert!(!survives(&folder, &|s| s["choice"]["messages"] = twice.clone()), "other messages");
        assert!(!survives(&folder, &|s| s["choice"]["stage"] = 1.into()), "another stage");
        assert!(!survives(&folder, &|s| s["choice"] = serde_json::Value::Null), "no choice");
    }
    // In stage 1, where nothing is chosen yet, at its end and after it.
    stopped_and_resumed_on(&data, &settings(Level::Edge, Auto), &[31, 60, 61, 89]);
}

#[test]
fn labels_follow_where_labels_help() {
    let (_keep, folder) = folder();
    for level in [Level::None, Level::Edge] {
        let [auto, labels] = [Auto, Labels].map(|messages| {
            let folder = folder.join(format!("{level} {messages}"));
            std::fs::create_dir_all(folder.parent().expect("a parent")).expect("made");
            (train(&settings(level, messages), &folder).expect("trained"), folder)
        });
        let chosen = auto.0.statement.choice.as_ref().expect("chosen");
        assert_eq!(chosen.messages, [Labels, Labels]);
        assert_eq!(labels.0.statement.choice, None);
        // The choice asks nothing: the queries are the same to the last bit, and so is their price.
        for file in ["aggregates/1.npy", "aggregates/2.npy"] {
            let read = |folder: &std::path::Path| std::fs::read(folder.join(file)).expect("read");
            assert!(read(&auto.1) == read(&labels.1), "{level} {file}");
        }
        assert_eq!(auto.0.statement.event, labels.0.statement.event);
    }
}

/// Edges that say nothing under noise that hides everything: an earlier stage is released, with all that was
/// asked.
#[test]
fn an_earlier_stage_is_released_where_later_ones_are_worse() {
    let data = tastes();
    let settings = Settings { epsilon: Some(0.01), weight_decay: 0.0, ..settings(Level::Edge, Auto) };
    let (_keep, folder) = folder();
    let release = train_on(&data, &settings, &folder).expect("trained");
    let stage = release.statement.choice.as_ref().expect("chosen").stage;
    assert!(stage < 2, "the last stage knows nothing that the others do not");
    let best = release.metrics.history.iter().map(|epoch| epoch.val_accuracy).fold(0.0, f64::max);
    assert_eq!(release.metrics.val_accuracy, best);
    assert_eq!(release.metrics.test_accuracy, release.metrics.stage_test_accuracies[stage]);
    assert_eq!(release.statement.mechanisms[0].count, 2, "both queries are listed");
    assert!(folder.join("aggregates/2.npy").exists());
    assert_verified(&folder);
    assert_predicts_as_measured_on(&data, &release);
    stopped_and_resumed_on(&data, &settings, &[61]);
}

#[test]
fn private_validation_labels_choose_nothing() {
    let (_keep, folder) = folder();
    let error = train(&settings(Level::Node, Auto), &folder).expect_err("refused").to_string();
    assert!(error.contains("`messages labels`") && !folder.exists(), "{error}");
}
