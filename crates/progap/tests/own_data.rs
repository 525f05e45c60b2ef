//! Data as people have it: nodes without labels, splits without validation or test nodes, columns in any unit.

mod common;

use common::twins::{small_network, with_column};
use common::{assert_verified, folder, stopped_and_resumed_on, train_on};
use progap::release::SelectionRule;
use progap::settings::{MethodKind, Scaling};
use progap::{Level, Release, Settings};
use progap_graph::{Dataset, DatasetParts, Features, Part, Preparation, Ratios, Split, UNLABELLED};

/// The network with every second label taken away.
fn half_labelled() -> Dataset {
    let data = small_network();
    let labels: Vec<u32> = data
        .labels()
        .iter()
        .enumerate()
        .map(|(node, &label)| if node % 2 == 0 { label } else { UNLABELLED })
        .collect();
    let parts = DatasetParts { labels: labels.into(), split: None, ..data.into_parts() };
    Dataset::new(parts).expect("a data set").with_random_split(Ratios::default(), 2).expect("a split")
}

fn with_split(data: &Dataset, part: impl Fn(Part) -> Part) -> Dataset {
    let split = data.split().expect("a split");
    let split = Split::from_parts((0..data.nodes()).map(|node| part(split.part(node))));
    Dataset::new(DatasetParts { split: Some(split), ..data.clone().into_parts() }).expect("a data set")
}

fn settings(method: MethodKind, level: Level) -> Settings {
    let epochs = if level == Level::Node { 2 } else { 5 };
    let delta = (method != MethodKind::EdgeRand && level != Level::None).then_some(1e-5);
    Settings { epochs, batch_size: 40, seed: Some(7), delta, ..Settings::of(method, level) }
}

const ALL: [(MethodKind, Level); 9] = [
    (MethodKind::ProgapLabels, Level::None),
    (MethodKind::ProgapLabels, Level::Edge),
    (MethodKind::ProgapLabels, Level::Node),
    (MethodKind::Gap, Level::Edge),
    (MethodKind::Mlp, Level::Edge),
    (MethodKind::Mlp, Level::Node),
    (MethodKind::Sage, Level::None),
    (MethodKind::EdgeRand, Level::Edge),
    (MethodKind::DpGnn, Level::Node),
];

/// A verified release of this method.
fn trained(data: &Dataset, method: MethodKind, level: Level) -> Release {
    let (_keep, folder) = folder();
    let release =
        train_on(data, &settings(method, level), &folder).unwrap_or_else(|e| panic!("{method} {level}: {e}"));
    assert_verified(&folder);
    release
}

fn everyone(release: &Release) -> Vec<u32> {
    (0..release.nodes().nodes() as u32).collect()
}

#[test]
fn nodes_without_labels_are_predicted_and_never_trained_or_tested_on() {
    let data = half_labelled();
    for (method, level) in ALL {
        let what = format!("{method} {level}");
        let release = trained(&data, method, level);
        let nodes = release.nodes();
        assert_eq!(nodes.labelled(), data.labelled(), "{what}");
        assert!(
            (0..data.nodes()).all(|node| nodes.label(node).is_some() == data.label(node).is_some()),
            "{what}"
        );
        let predictions = release.predict_nodes(&everyone(&release)).expect("predicted");
        assert!(predictions.classes.iter().all(|&class| (class as usize) < data.classes()), "{what}");
        assert!(release.metrics.test_accuracy.is_finite(), "{what}");
        let said = format!("which have a label ({} of {})", data.labelled(), data.nodes());
        assert!(release.statement.public.iter().any(|text| text.contains(&said)), "{what}");
    }
}

#[test]
fn without_validation_nodes_the_last_epoch_is_taken() {
    let data = with_split(&half_labelled(), |part| if part == Part::Val { Part::Train } else { part });
    for (method, level) in ALL {
        let what = format!("{method} {level}");
        let release = trained(&data, method, level);
        let rule = match method {
            MethodKind::ProgapViews => SelectionRule::StageByTraining,
            _ => SelectionRule::LastEpoch,
        };
        assert_eq!(release.statement.selection, rule, "{what}");
        assert!(release.metrics.val_accuracy.is_nan() && release.metrics.test_accuracy.is_finite(), "{what}");
        if let Some(choice) = &release.statement.choice {
            assert_eq!(
                choice.stage,
                release.settings().expect("settings").depth,
                "{what}: the stage that reads all aggregates"
            );
        }
    }
    stopped_and_resumed_on(&data, &settings(MethodKind::ProgapLabels, Level::Edge), &[3, 7]);
}

#[test]
fn without_test_nodes_no_accuracy_is_claimed() {
    let none = |part| if part == Part::Test { Part::Train } else { part };
    let neither = |part| if part == Part::Unused { part } else { Part::Train };
    for data in [with_split(&half_labelled(), none), with_split(&half_labelled(), neither)] {
        for (method, level) in ALL {
            let what = format!("{method} {level}");
            let release = trained(&data, method, level);
            let metrics = &release.metrics;
            assert!(metrics.test_accuracy.is_nan() && metrics.features_only_accuracy.is_none(), "{what}");
            assert!(metrics.stage_test_accuracies.iter().all(|accuracy| accuracy.is_nan()), "{what}");
        }
    }
    let data = with_split(&half_labelled(), neither);
    stopped_and_resumed_on(&data, &settings(MethodKind::ProgapLabels, Level::Edge), &[7]);
}

#[test]
fn a_node_without_a_label_changes_nothing_by_what_its_label_would_be() {
    // The marker is all there is: the same data with other labels for those nodes cannot even be said.
    let data = half_labelled();
    let (_one, one) = folder();
    let (_other, other) = folder();
    let release = train_on(&data, &settings(MethodKind::ProgapLabels, Level::Edge), &one).expect("trained");
    let again = train_on(&data, &settings(MethodKind::ProgapLabels, Level::Edge), &other).expect("trained");
    assert_eq!(
        release.predict_nodes(&everyone(&release)).expect("p"),
        again.predict_nodes(&everyone(&again)).expect("p")
    );
    let split = release.nodes().split().expect("a split");
    assert!((0..data.nodes()).all(|node| data.label(node).is_some() || split.part(node) == Part::Unused));
}

/// Where features are public a column's unit changes nothing; where they are private and bounds are declared it does
/// not either.
#[test]
fn the_unit_of_a_column_changes_nothing() {
    let data = small_network();
    let value = |node: usize| 3.0 + data.labels()[node] as f32 + (node * 37 % 101) as f32 / 50.0;
    let plain = Some([0.0, 10.0]);
    for level in [Level::None, Level::Edge, Level::Node] {
        let settings = settings(MethodKind::ProgapLabels, level);
        let accuracy = |unit: f32, bounds| {
            let (_keep, folder) = folder();
            let data = with_column(&data, |node| value(node) * unit, bounds);
            let release = train_on(&data, &settings, &folder).expect("trained");
            assert_verified(&folder);
            release.metrics.test_accuracy
        };
        let expected = accuracy(1.0, plain);
        // Powers of two round nothing, so that every bit is the same, the noise included; the last one is beyond what
        // could be trained on as it is.
        for exponent in [-20, 10, 50] {
            let unit = 2f32.powi(exponent);
            let bounds = plain.map(|[low, high]| [low * f64::from(unit), high * f64::from(unit)]);
            assert_eq!(accuracy(unit, bounds), expected, "{level} {unit:e}");
        }
    }
}

#[test]
fn a_release_keeps_the_maps_of_its_columns_where_features_are_public() {
    let data = with_column(&small_network(), |node| node as f32 * 1e5, None);
    let last = data.features().columns() - 1;
    let (_keep, folder) = folder();
    let release =
        train_on(&data, &settings(MethodKind::ProgapLabels, Level::Edge), &folder).expect("trained");
    let numbers = release.nodes().numbers();
    assert!(numbers.len() == 1 && numbers[0].map.is_some());
    let column: Vec<f32> = (0..data.nodes())
        .map(|node| {
            release.nodes().features().row(node).find(|(column, _)| *column == last).map_or(0.0, |e| e.1)
        })
        .collect();
    let mean = column.iter().sum::<f32>() / column.len() as f32;
    let square = column.iter().map(|value| value * value).sum::<f32>() / column.len() as f32;
    assert!(mean.abs() < 1e-4 && (square - 1.0).abs() < 1e-3, "{mean} {square}");
    let same = data.clone().prepared_as(numbers).expect("prepared");
    assert_eq!(same.features().to_dense(data.nodes()), release.nodes().features().to_dense(data.nodes()));
}

#[test]
fn nodes_without_any_feature_learn_from_the_graph_alone() {
    let data = small_network();
    let bare = DatasetParts { features: Features::none(), feature_names: vec![], ..data.into_parts() };
    let data = Dataset::new(bare).expect("a data set");
    for (method, level) in ALL {
        let (_keep, folder) = folder();
        let release = train_on(&data, &settings(method, level), &folder);
        let release = release.unwrap_or_else(|e| panic!("{method} {level}: {e}"));
        assert_verified(&folder);
        assert_eq!(release.statement.feature_columns, 1);
        release.predict_nodes(&everyone(&release)).expect("predicted");
    }
    let long = Settings { epochs: 60, ..settings(MethodKind::ProgapLabels, Level::None) };
    let (_keep, folder) = folder();
    let metrics = train_on(&data, &long, &folder).expect("trained").metrics;
    let before = metrics.features_only_accuracy.expect("a first stage");
    assert!(metrics.test_accuracy > before + 0.05, "{before} {}", metrics.test_accuracy);
}

/// At node level the public part of a release holds no map and no bound that was computed from rows.
#[test]
fn at_node_level_columns_are_mapped_row_by_row() {
    let data = with_column(&small_network(), |node| node as f32 * 1e5, None);
    let settings = settings(MethodKind::ProgapLabels, Level::Node);
    assert_eq!(settings.preparation(), Preparation::RowByRow);
    let (_keep, folder) = folder();
    train_on(&data, &settings, &folder).expect("trained");
    let public = progap_graph::store::read(&folder.join("nodes.progap")).expect("nodes");
    assert!(public.numbers().is_empty() && public.features().columns() == 0);
    let own = progap_graph::store::read(&folder.join("private/rows.progap")).expect("rows");
    let last = own.features().columns() - 1;
    let row = own.features().row(7).find(|(column, _)| *column == last).expect("a value");
    assert_eq!(row.1, (1.0 + 7e5f64).log2() as f32);
}

/// With noisy counts a unit and a shift change no more than noise does, a release keeps the maps beside the rows that
/// they made, and the statement has the queries.
#[test]
fn at_node_level_noisy_counts_bring_columns_to_scale() {
    let network = small_network();
    let value = |node: usize| network.labels()[node] as f32 + (node * 37 % 101) as f32 / 50.0;
    for method in [MethodKind::ProgapLabels, MethodKind::Gap, MethodKind::Mlp] {
        let settings = Settings { scaling: Scaling::Noisy, ..settings(method, Level::Node) };
        for (unit, shift) in [(1.0, 0.0), (2f32.powi(-20), 0.0), (2f32.powi(50), 0.0), (1.0, 1e4)] {
            let data = with_column(&network, |node| value(node) * unit + shift, None);
            let (_keep, folder) = folder();
            let release = train_on(&data, &settings, &folder).expect("trained");
            assert_verified(&folder);
            let counts = release.statement.mechanisms.iter().find(|query| query.name == "column counts");
            assert_eq!(counts.map(|query| query.count), Some(2));
            let own = progap_graph::store::read(&folder.join("private/rows.progap")).expect("rows");
            let last = own.features().columns() - 1;
            let column = |node| own.features().row(node).find(|(at, _)| *at == last).map_or(0.0, |e| e.1);
            let values: Vec<f32> = (0..data.nodes()).map(column).collect();
            let mean = values.iter().sum::<f32>() / values.len() as f32;
            let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / values.len() as f32;
            assert!(
                mean.abs() < 1.0 && (0.3..3.0).contains(&square.sqrt()),
                "{unit} {shift}: {mean} {square}"
            );
            let same = data.clone().prepared_as(own.numbers()).expect("prepared");
            assert_eq!(same.features().to_dense(600), own.features().to_dense(600));
            let public = progap_graph::store::read(&folder.join("nodes.progap")).expect("nodes");
            assert!(public.numbers().is_empty() && public.features().columns() == 0);
            common::assert_predicts_as_measured_on(&data, &release);
        }
    }
}

#[test]
fn a_run_with_noisy_counts_of_columns_goes_on_where_it_was_stopped() {
    let data = with_column(&small_network(), |node| (node * 37 % 101) as f32 * 1e-6, None);
    let settings = Settings { scaling: Scaling::Noisy, ..settings(MethodKind::ProgapLabels, Level::Node) };
    stopped_and_resumed_on(&data, &settings, &[1, 2, 3]);
}

fn resolved(node: progap::Node, data: &Dataset) -> progap::settings::ValidSettings {
    let draft = node.settings().expect("settings");
    draft.resolve(&progap::settings::PublicFacts::of(data, &draft)).expect("settings")
}

/// Where nobody says so, sizes decide: whether there are such columns, and nodes enough.
#[test]
fn noisy_counts_are_the_default_where_there_is_something_to_count() {
    let network = small_network();
    let request = progap::Node::epsilon(8.0);
    let scaling = |data: &Dataset, epsilon: f64| resolved(progap::Node::epsilon(epsilon), data).scaling;
    let open = with_column(&network, |node| node as f32, None);
    assert_eq!(scaling(&open, 8.0), Scaling::Noisy);
    assert_eq!(scaling(&open, 1.0), Scaling::Single, "noise would drown 600 nodes");
    assert_eq!(scaling(&with_column(&network, |node| node as f32, Some([0.0, 600.0])), 8.0), Scaling::Single);
    assert_eq!(scaling(&network, 8.0), Scaling::Single);
    assert_eq!(resolved(request.clone().scaling(Scaling::Single), &open).scaling, Scaling::Single);
    // Whoever accounts for a run before it accounts for these counts.
    let plan = progap::account(request.clone()).on(&open).plan().expect("a plan");
    let trained = progap::train(&open, request.seed(1)).in_memory().expect("trained");
    assert_eq!(plan.queries.count("column counts"), 2);
    assert_eq!(trained.statement.budget().map(|budget| budget.epsilon), Some(plan.epsilon));
    for (query, _) in plan.queries.iter() {
        let asked = trained.statement.mechanisms.iter().filter(|asked| asked.name == query.name);
        assert_eq!(
            asked.map(|asked| asked.count).sum::<u64>(),
            plan.queries.count(&query.name),
            "{}",
            query.name
        );
    }
}
