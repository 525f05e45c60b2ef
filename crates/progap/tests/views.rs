//! Two views: trained, stopped, resumed, verified; made for few labels, and never worse than the features alone.

mod common;

use common::*;
use progap::settings::Messages::{self, Labels, Structure};
use progap::settings::MethodKind;
use progap::{Edge, Level, Release, Settings, Unprotected};
use progap_graph::synth::SocialNetwork;
use progap_graph::{Dataset, DatasetParts, Features, Part, Ratios, Split};

fn settings(level: Level) -> Settings {
    Settings { seed: Some(7), ..Settings::of(MethodKind::ProgapViews, level) }
}

/// The usual network with another division of its nodes.
fn divided(ratios: Ratios) -> Dataset {
    let network = SocialNetwork::new(2000).edges(60_000).classes(3).seed(1).generate().expect("a network");
    network.or_random_split(ratios, 1).expect("a split")
}

fn few_labels() -> Dataset {
    divided(Ratios { val: 0.05, test: 0.9 })
}

fn trained(data: &Dataset, settings: &Settings) -> Release {
    let (_keep, folder) = folder();
    train_on(data, settings, &folder).expect("trained")
}

#[test]
fn a_release_is_whole_at_both_levels() {
    for (level, undirected) in [(Level::None, false), (Level::Edge, false), (Level::Edge, true)] {
        let (_keep, folder) = folder();
        let settings = Settings { undirected, ..settings(level) };
        let release = train(&settings, &folder).expect("trained");
        assert_verified(&folder);
        assert_predicts_as_measured(&release);
        assert_eq!(release.metrics.history.len(), settings.depth + 1);
        assert!(release.metrics.features_only_accuracy.is_some());
        let widths: Vec<usize> = (1..=settings.depth)
            .map(|number| {
                let bytes = std::fs::read(folder.join(format!("aggregates/{number}.npy"))).expect("read");
                (bytes.len() - 128) / 4 / 2000
            })
            .collect();
        // A number for each class and a constant; of a table features beside them in two hops, or in the last sum
        // alone.
        let columns = network().features().columns();
        match level {
            Level::None => {
                assert!(widths[0] > 4 && widths[1] == widths[0] && widths[2..] == [4; 3], "{widths:?}");
            }
            _ => {
                assert!(widths[..2] == [4; 2] && [4, 1 + columns.min(32)].contains(&widths[2]), "{widths:?}");
            }
        }
        // A model is what its file says, or nothing.
        if level == Level::Edge {
            assert!(survives(&folder, &|_| ()), "nothing changed");
            assert!(!survives(&folder, &|s| s["epsilon"] = 0.5.into()), "a smaller epsilon");
            assert!(!survives(&folder, &|s| s["choice"]["stage"] = 0.into()), "another stage");
            assert!(
                !survives(&folder, &|s| s["choice"]["messages"][1] = "structure".into()),
                "other messages"
            );
            let fewer = |s: &mut serde_json::Value| {
                s["event"]["events"][0]["count"] = 1.into();
                s["mechanisms"][0]["count"] = 1.into();
            };
            assert!(!survives(&folder, &fewer), "fewer aggregations");
        }
    }
}

#[test]
fn stopped_and_resumed_ends_in_the_same_bits() {
    for level in [Level::None, Level::Edge] {
        stopped_and_resumed_ends_the_same(&Settings { depth: 2, ..settings(level) }, &[1, 2, 3]);
    }
    for messages in [Structure, Messages::Features] {
        let others = Settings { messages, depth: 3, ..settings(Level::Edge) };
        stopped_and_resumed_on(&few_labels(), &others, &[2, 3]);
    }
    stopped_and_resumed_on(&neighbours_features(), &settings(Level::Edge), &[1, 2]);
}

/// 3,000 nodes with ten partners each; a class is the sign of the sum of the partners' first column, and nothing of it
/// shows in the node's own row.
fn neighbours_features() -> Dataset {
    neighbours_columns(3)
}

/// The same with more columns, of which the first counts.
fn neighbours_columns(columns: usize) -> Dataset {
    let mut state = 5u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f32 / (1u64 << 31) as f32
    };
    const NODES: usize = 3000;
    let values: Vec<f32> = (0..columns * NODES).map(|_| 2.0 * draw() - 1.0).collect();
    let (mut sources, mut targets) = (vec![], vec![]);
    for node in 0..NODES as u32 {
        for _ in 0..5 {
            let other = ((draw() * NODES as f32) as u32).min(NODES as u32 - 1);
            sources.extend([node, other]);
            targets.extend([other, node]);
        }
    }
    let mut sums = vec![0f32; NODES];
    sources
        .iter()
        .zip(&targets)
        .for_each(|(&source, &target)| sums[target as usize] += values[columns * source as usize]);
    let labels: Vec<u32> = sums.iter().map(|&sum| u32::from(sum > 0.0)).collect();
    let part = |node: usize| match node % 20 {
        0..15 => Part::Train,
        15 | 16 => Part::Val,
        _ => Part::Test,
    };
    Dataset::new(DatasetParts {
        graph: progap_graph::Graph::from_edges(NODES, &sources, &targets).expect("a graph"),
        features: Features::dense(NODES, columns, values).expect("features"),
        labels: labels.into(),
        class_names: vec!["less".into(), "more".into()],
        split: Some(Split::from_parts((0..NODES).map(part))),
        feature_names: vec![],
        ..network().into_parts()
    })
    .expect("data")
}

/// Where classes of neighbours say nothing, their features are sent; what is released is whole, and predicts what was
/// measured.
#[test]
fn the_features_of_neighbours_are_found() {
    let data = neighbours_features();
    for (level, epsilon, least) in [(Level::None, None, 0.9), (Level::Edge, Some(8.0), 0.75)] {
        let (_keep, folder) = folder();
        let settings = Settings { epsilon, ..settings(level) };
        let release = train_on(&data, &settings, &folder).expect("trained");
        assert_verified(&folder);
        assert_predicts_as_measured_on(&data, &release);
        let (found, alone) = (release.metrics.test_accuracy, release.metrics.features_only_accuracy);
        assert!(found > least && alone.is_some_and(|alone| alone < 0.6), "{level}: {found} {alone:?}");
        let choice = release.statement.choice.as_ref().expect("a choice");
        assert!(level == Level::None || choice.messages[1..] == [Messages::Features; 2], "{choice:?}");
    }
}

/// Of twenty columns one counts: the sums after the first of features are about that one, and say more; the model's
/// importances show it.
#[test]
fn later_sums_of_features_are_about_what_counted() {
    let (_keep, folder) = folder();
    let settings = Settings { epsilon: Some(16.0), ..settings(Level::Edge) };
    let release = train_on(&neighbours_columns(20), &settings, &folder).expect("trained");
    assert_verified(&folder);
    let choice = release.statement.choice.as_ref().expect("a choice");
    assert_eq!((&choice.messages[1..], choice.stage), (&[Messages::Features; 2][..], 3));
    let stages = &release.metrics.stage_test_accuracies;
    assert!(stages[3] > stages[2] + 0.03 && stages[3] > 0.8, "{stages:?}");
    let importances = release.importances().expect("public rows");
    assert_eq!(importances[0].name, "sum 3", "{importances:?}");
    assert_eq!(importances.len(), 3 + 20);
    assert!(importances[0].log_loss > 0.1 && importances[2].log_loss < 0.05, "{importances:?}");
}

/// Rows and labels that are private have no importances outside.
#[test]
fn importances_are_of_public_rows_alone() {
    let settings = Settings { batch_size: 50, ..Settings::of(MethodKind::ProgapLabels, Level::Node) };
    let release = trained(&network(), &Settings { epochs: 2, seed: Some(1), ..settings });
    assert_eq!(release.importances().expect("nothing to tell"), []);
}

/// A product of two columns, which no linear model sees, is found without any edge.
#[test]
fn columns_that_count_together_are_found() {
    let parts = neighbours_features().into_parts();
    let Features::Dense { values, .. } = &parts.features else { panic!("dense rows") };
    let labels: Vec<u32> = values.chunks_exact(3).map(|row| u32::from(row[0] * row[1] > 0.0)).collect();
    let data = Dataset::new(DatasetParts { labels: labels.into(), ..parts }).expect("data");
    for level in [Level::None, Level::Edge] {
        let (_keep, folder) = folder();
        let release = train_on(&data, &Settings { depth: 1, ..settings(level) }, &folder).expect("trained");
        assert_verified(&folder);
        assert_predicts_as_measured_on(&data, &release);
        assert!(release.metrics.test_accuracy > 0.95, "{level}: {}", release.metrics.test_accuracy);
    }
}

/// With few labels the graph is learnt on all nodes: far better than from the labelled ones alone.
#[test]
fn few_labels_go_farther() {
    let data = few_labels();
    for level in [Level::None, Level::Edge] {
        let accuracy = |method: MethodKind| {
            let settings = Settings { seed: Some(7), ..Settings::of(method, level) };
            trained(&data, &settings).metrics.test_accuracy
        };
        let (views, progap) = (accuracy(MethodKind::ProgapViews), accuracy(MethodKind::ProgapLabels));
        assert!(views > progap + 0.02, "{level}: {views} {progap}");
    }
}

/// 2,000 bags of words, 100 of them labelled, and no edge that tells anything: each class has words of its own, most of
/// which no labelled bag has.
fn bags(dense: bool) -> Dataset {
    const WORDS: usize = 1800;
    let mut state = 1u64;
    let mut draw = |words: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % words
    };
    let mut values = vec![0f32; 2000 * WORDS];
    for (node, row) in values.chunks_exact_mut(WORDS).enumerate() {
        (0..6).for_each(|_| row[400 * (node % 3) + draw(400) as usize] = 1.0);
        (6..14).for_each(|_| row[1200 + draw(600) as usize] = 1.0);
    }
    let features = match dense {
        true => Features::dense(2000, WORDS, values),
        false => {
            let found = |row: &[f32]| (0..WORDS as u32).filter(|&word| row[word as usize] > 0.0).collect();
            let rows: Vec<Vec<u32>> = values.chunks_exact(WORDS).map(found).collect();
            let ends = rows.iter().scan(0, |end, row| {
                *end += row.len() as u64;
                Some(*end)
            });
            let offsets: Vec<u64> = std::iter::once(0).chain(ends).collect();
            Features::sparse(2000, WORDS, offsets, rows.concat(), None)
        }
    };
    let labels: Vec<u32> = (0..2000).map(|node| node % 3).collect();
    let part = |node: usize| match node * 7 % 20 {
        0 => Part::Train,
        1 => Part::Val,
        _ => Part::Test,
    };
    let split = Some(Split::from_parts((0..2000).map(part)));
    let features = features.expect("features");
    let parts = DatasetParts {
        features,
        labels: labels.into(),
        split,
        feature_names: vec![],
        ..network().into_parts()
    };
    Dataset::new(parts).expect("data")
}

/// Bags that are alike tell of one another, which is only looked for where rows are sparse; and predictions need
/// nothing but a row.
#[test]
fn rows_that_are_alike_help_the_features() {
    let accuracy = |dense: bool| {
        let data = bags(dense);
        let (_keep, folder) = folder();
        let settings = Settings { depth: 0, ..settings(Level::Edge) };
        let release = train_on(&data, &settings, &folder).expect("trained");
        assert_verified(&folder);
        assert_predicts_as_measured_on(&data, &release);
        release.metrics.test_accuracy
    };
    let (compared, alone) = (accuracy(false), accuracy(true));
    assert!(compared > alone + 0.1, "{compared} {alone}");
}

/// Where sums are noise the features remain, and they are as good as they would be alone.
#[test]
fn noise_leaves_the_features_as_they_are() {
    for data in [few_labels(), network()] {
        let drowned = Settings { epsilon: Some(0.01), ..settings(Level::Edge) };
        let release = trained(&data, &drowned);
        let features = release.metrics.features_only_accuracy.expect("a features stage");
        let all = release.metrics.test_accuracy;
        assert!(all > features - 0.02, "{all} {features}");
        // Without any aggregation nothing is asked, and nothing is spent.
        let alone = trained(&data, &Settings { depth: 0, ..settings(Level::Edge) });
        let spent = alone.statement.budget().map(|budget| budget.epsilon);
        assert_eq!((spent, alone.metrics.test_accuracy), (Some(0.0), features));
    }
}

/// No validation nodes, next to no training nodes, a class without training nodes, or rows in full.
#[test]
fn every_division_and_every_kind_of_row_is_worked_with() {
    let check = |data: &Dataset, what: &str| {
        for level in [Level::None, Level::Edge] {
            let (_keep, folder) = folder();
            let release = train_on(data, &Settings { depth: 2, ..settings(level) }, &folder);
            let release = release.unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_verified(&folder);
            assert_predicts_as_measured_on(data, &release);
        }
    };
    check(&divided(Ratios { val: 0.0, test: 0.5 }), "no validation nodes");
    let parts = network().into_parts();
    let with =
        |split: Split| Dataset::new(DatasetParts { split: Some(split), ..parts.clone() }).expect("data");
    let split = |train: usize| {
        with(Split::from_parts((0..2000).map(|node| if node < train { Part::Train } else { Part::Test })))
    };
    for train in [2, 4, 5, 7] {
        check(&split(train), &format!("{train} training nodes"));
    }
    let one_held_out = |node: usize| match node {
        0..8 => Part::Train,
        8 => Part::Val,
        _ => Part::Test,
    };
    check(&with(Split::from_parts((0..2000).map(one_held_out))), "one validation node");
    let labels = parts.labels.clone();
    let unseen =
        |node: usize| if labels[node] == 0 { Part::Test } else { [Part::Train, Part::Val][node % 2] };
    check(&with(Split::from_parts((0..2000).map(unseen))), "a class without training nodes");
    let rows = (0..2000).flat_map(|node: usize| [(node % 13) as f32 - 6.0, labels[node] as f32, 1e6]);
    let features = Features::dense(2000, 3, rows.collect::<Vec<_>>()).expect("features");
    let dense = DatasetParts { features, feature_names: vec![], ..network().into_parts() };
    check(&Dataset::new(dense).expect("data"), "rows in full");
}

/// Whoever has a handful of labels cannot tell whether the graph says more than the features.
#[test]
fn next_to_no_held_out_nodes_leave_the_features() {
    for train in 2..5 {
        let split =
            Split::from_parts((0..2000).map(|node| if node < train { Part::Train } else { Part::Test }));
        let data = Dataset::new(DatasetParts { split: Some(split), ..network().into_parts() }).expect("data");
        for level in [Level::None, Level::Edge] {
            let release = trained(&data, &Settings { depth: 2, ..settings(level) });
            assert_eq!(release.statement.choice.expect("a choice").stage, 0, "{train} at level {level}");
        }
    }
}

/// The statement names the rule that chose, and neither epochs nor validation nodes that are not there.
#[test]
fn the_statement_says_how_the_stage_was_chosen() {
    use progap::release::SelectionRule::{StageByTraining, StageByValidation};
    for (val, rule) in [(0.1, StageByValidation), (0.0, StageByTraining)] {
        let (_keep, folder) = folder();
        let release = train_on(
            &divided(Ratios { val, test: 0.5 }),
            &Settings { depth: 1, ..settings(Level::Edge) },
            &folder,
        );
        assert_eq!(release.expect("trained").statement.selection, rule);
        assert_verified(&folder);
        let older =
            if val > 0.0 { ["best-validation", "last-epoch"] } else { ["last-epoch", "best-validation"] };
        assert!(survives(&folder, &|s| s["selection"] = older[0].into()), "as statements used to say");
        assert!(!survives(&folder, &|s| s["selection"] = older[1].into()), "another rule");
        let other = if val > 0.0 { "stage-by-training" } else { "stage-by-validation" };
        assert!(!survives(&folder, &|s| s["selection"] = other.into()), "other nodes that choose");
    }
}

/// Features that tell nothing leave it open how true messages are: then nothing is said of neighbours.
#[test]
fn how_similar_neighbours_are_is_on_its_scale_or_not_said() {
    let similarity = |data: &Dataset| {
        let release = trained(data, &Settings { depth: 1, ..settings(Level::None) });
        release.metrics.history[1].stage_score.expect("a score").similarity
    };
    let similar = similarity(&network()).expect("the features know the classes");
    assert!((0.15..=1.0).contains(&similar), "{similar}");
    let chance = (0..2000u32).map(|node| (node.wrapping_mul(2_654_435_761) >> 16) as f32 / 65_536.0);
    let features = Features::dense(2000, 1, chance.collect::<Vec<_>>()).expect("features");
    let parts = DatasetParts { features, feature_names: vec![], ..few_labels().into_parts() };
    assert_eq!(similarity(&Dataset::new(parts).expect("data")), None);
}

/// With many classes less is tried, and what is released is whole all the same.
#[test]
fn many_classes_are_worked_with() {
    let network = SocialNetwork::new(2000).edges(60_000).classes(20).seed(1).generate().expect("a network");
    let data = network.or_random_split(Ratios { val: 0.1, test: 0.4 }, 1).expect("a split");
    for level in [Level::None, Level::Edge] {
        let (_keep, folder) = folder();
        let release = train_on(&data, &Settings { depth: 2, ..settings(level) }, &folder).expect("trained");
        assert_verified(&folder);
        assert_predicts_as_measured_on(&data, &release);
        let features = release.metrics.features_only_accuracy.expect("a features stage");
        assert!(level == Level::Edge || release.metrics.test_accuracy > features + 0.02, "{features}");
    }
}

#[test]
fn messages_are_as_asked_for() {
    for (messages, later) in
        [(Labels, Labels), (Structure, Structure), (Messages::Features, Messages::Features)]
    {
        let settings = Settings { messages, ..settings(Level::Edge) };
        let choice = trained(&network(), &settings).statement.choice.expect("a choice");
        assert_eq!(choice.messages, [Labels, later, later], "{messages}");
        assert!(choice.stage <= 3);
    }
    for (method, messages) in
        [(MethodKind::ProgapViews, Messages::Embeddings), (MethodKind::ProgapLabels, Structure)]
    {
        let settings = Settings { messages, ..Settings::of(method, Level::Edge) };
        assert!(settings.checked().is_err(), "{method} {messages}");
    }
    let choice = trained(&network(), &settings(Level::Edge)).statement.choice.expect("a choice");
    assert_eq!(choice.messages[..2], [Labels; 2], "neighbours are alike here");
}

/// Few labels travel farther; a given depth wins.
#[test]
fn the_depth_follows_from_public_sizes_unless_it_is_given() {
    let depth = |asked: progap::settings::Request, data: &Dataset| {
        let draft = asked.settings().expect("settings");
        let facts = progap::settings::PublicFacts::of(data, &draft);
        draft.resolve(&facts).expect("settings").depth
    };
    let edge = || Edge::epsilon(1.0).method(MethodKind::ProgapViews);
    // Three and five, and two more as the features are a table.
    assert_eq!(depth(edge().into(), &network()), 5);
    assert_eq!(depth(edge().into(), &few_labels()), 7);
    assert_eq!(depth(edge().depth(1).into(), &few_labels()), 1);
    assert_eq!(depth(Edge::epsilon(0.25).method(MethodKind::ProgapViews).into(), &few_labels()), 5);
    assert_eq!(depth(Unprotected::new().method(MethodKind::ProgapViews).into(), &few_labels()), 5);
    assert_eq!(depth(settings(Level::Edge).into(), &few_labels()), 3, "settings say what they say");
    let ignored = edge().epochs(5).settings().expect_err("nothing has epochs here").to_string();
    assert!(ignored.contains("method progap-views"), "{ignored}");
}
