//! Metrics against scikit-learn (scripts/oracle/metrics.py), and what they decide.

use progap::assessment::{Assessment, Baselines, Compared, Metric};
use progap::settings::{Calibration, ClassWeights, Level, MethodKind, Selection, Settings};
use progap_graph::{Dataset, Part, Ratios};
use serde_json::Value;

fn oracle() -> Vec<Value> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/metrics.json");
    serde_json::from_str(&std::fs::read_to_string(file).expect("the oracle's file")).expect("JSON")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|value| value.as_f64().expect("a number")).collect()
}

#[test]
fn every_metric_is_scikit_learns() {
    let cases = oracle();
    assert!(cases.len() >= 4);
    for case in &cases {
        let truth: Vec<u32> = numbers(&case["truth"]).iter().map(|&class| class as u32).collect();
        let probabilities: Vec<f32> = numbers(&case["probabilities"]).iter().map(|&p| p as f32).collect();
        let classes = case["classes"].as_u64().expect("a number") as usize;
        let found = Assessment::of_probabilities(&truth, &probabilities, classes);
        let scores = found.scores().expect("scores");
        for &metric in Metric::ALL {
            let (ours, theirs) = (scores.get(metric), case[metric.name().replace('-', "_")].as_f64());
            let theirs = theirs.expect("a number");
            assert!((ours - theirs).abs() < 2e-6, "{metric} of {classes} classes: {ours}, not {theirs}");
        }
        for (ours, theirs) in scores.recalls.iter().zip(numbers(&case["recalls"])) {
            assert!((ours.expect("a recall") - theirs).abs() < 1e-12);
        }
    }
}

/// Predictions of a case of the oracle beside their labels.
fn compared(case: &Value) -> Compared {
    let truth: Vec<u32> = numbers(&case["truth"]).iter().map(|&class| class as u32).collect();
    let probabilities: Vec<f32> = numbers(&case["probabilities"]).iter().map(|&p| p as f32).collect();
    let classes = case["classes"].as_u64().expect("a number") as usize;
    let largest = |row: &[f32]| {
        (0..row.len() as u32)
            .rev()
            .max_by(|&a, &b| row[a as usize].total_cmp(&row[b as usize]))
            .expect("a class")
    };
    let predicted = probabilities.chunks_exact(classes).map(largest).collect();
    Compared { truth, predicted, probabilities, classes }
}

#[test]
fn curves_are_scikit_learns() {
    for case in &oracle() {
        let compared = compared(case);
        let rarest = case["rarest"].as_u64().expect("a class") as usize;
        assert_eq!(compared.assessment().rarest(), Some(rarest));
        let curve = compared.curve(rarest).expect("a curve");
        let theirs = |key: &str| numbers(&case["curve"][key]);
        let (thresholds, precision, recall) = (theirs("thresholds"), theirs("precision"), theirs("recall"));
        assert_eq!(curve.points.len(), thresholds.len());
        for (at, point) in curve.points.iter().enumerate() {
            assert!((f64::from(point.threshold) - thresholds[at]).abs() < 1e-7, "{point:?}");
            assert!((point.precision() - precision[at]).abs() < 1e-12, "{point:?}");
            assert!((curve.recall(point) - recall[at]).abs() < 1e-12, "{point:?}");
        }
    }
}

/// Both resample nodes, with other random numbers: ends differ by chance, and by the steps of few members.
#[test]
fn intervals_are_those_of_a_bootstrap_with_scikit_learns_scores() {
    let mut classes = 0;
    for case in &oracle() {
        let compared = compared(case);
        let (found, intervals) = (compared.assessment(), compared.intervals().expect("intervals"));
        assert_eq!(compared.intervals().as_ref(), Some(&intervals), "the same every time");
        for (class, score) in found.classes.iter().enumerate().filter(|(_, score)| score.support >= 10) {
            classes += 1;
            for (name, ours, value) in [
                ("recalls", intervals.recalls[class], score.recall),
                ("aurocs", intervals.aurocs[class], score.auroc),
                ("average_precisions", intervals.average_precisions[class], score.average_precision),
            ] {
                let (ours, theirs) = (ours.expect("an interval"), numbers(&case["intervals"][name][class]));
                let close = |(a, b): (&f64, &f64)| (a - b).abs() < 0.04;
                assert!(ours.iter().zip(&theirs).all(close), "{name} of {class}: {ours:?}, not {theirs:?}");
                let value = value.expect("a score");
                assert!(ours[0] <= value && value <= ours[1], "{name} of {class}: {value} in {ours:?}");
            }
        }
        let [low, high] = intervals.get(Metric::Accuracy).expect("an interval");
        assert!(low < found.accuracy && found.accuracy < high);
        assert_eq!(intervals.get(Metric::CalibrationError), None);
    }
    assert!(classes >= 5, "{classes} classes were large enough");
    // None of fifty: a bootstrap would be certain of it.
    let none = Compared {
        truth: (0..100).map(|node| node % 2).collect(),
        predicted: vec![0; 100],
        probabilities: [0.7, 0.3].repeat(100),
        classes: 2,
    };
    let [low, high] = none.intervals().expect("intervals").recalls[1].expect("an interval");
    assert!(low.abs() < 1e-12 && (0.06..0.08).contains(&high), "{low} {high}");
}

/// A model that finds the rare class flags few nodes as well: it is not taken for one that finds nothing.
#[test]
fn predictions_of_one_class_are_told_from_those_of_a_rare_one() {
    let of = |flagged: usize, right: usize| {
        let truth: Vec<u32> = (0..1000).map(|node| u32::from(node < 20)).collect();
        let is_flagged = |node: usize| node < right || (20..20 + flagged - right).contains(&node);
        let rows = (0..1000).flat_map(|node| if is_flagged(node) { [0.1, 0.9] } else { [0.9, 0.1] });
        Assessment::of_probabilities(&truth, &rows.collect::<Vec<f32>>(), 2).only_majority()
    };
    assert_eq!([of(0, 0), of(1, 0), of(1, 1)], [Some(0); 3]);
    assert_eq!([of(2, 2), of(15, 12)], [None; 2]);
    let even = Assessment::of_probabilities(&[0, 0, 0], &[0.9, 0.1, 0.8, 0.2, 0.6, 0.4], 2);
    assert_eq!(even.only_majority(), None, "there is no other class");
}

/// Two classes, one of them rare and only partly told by the features; the graph adds a little.
fn rare(seed: u64) -> Dataset {
    let nodes = 3000usize;
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    let labels: Vec<u32> = (0..nodes).map(|_| u32::from(uniform() < 0.05)).collect();
    let features: Vec<f32> = labels
        .iter()
        .flat_map(|&label| {
            let centre = if label == 1 { 0.8 } else { 0.0 };
            [centre + uniform() + uniform() - 1.0, uniform(), uniform() - 0.5]
        })
        .collect();
    let edges: Vec<(u32, u32)> =
        (0..6000).map(|_| ((uniform() * nodes as f32) as u32, (uniform() * nodes as f32) as u32)).collect();
    let builder = Dataset::builder().name("rare").features(3, &features).labels(&labels);
    let dataset = builder.edges(edges).build().expect("a data set");
    dataset.or_random_split(Ratios::default(), seed).expect("a split")
}

fn settings(class_weights: ClassWeights, metric: Metric) -> Settings {
    Settings {
        class_weights,
        metric,
        seed: Some(1),
        epochs: 40,
        ..Settings::of(progap::MethodKind::ProgapLabels, Level::Edge)
    }
}

#[test]
fn balanced_weights_find_a_rare_class() {
    let dataset = rare(3);
    let recall = |weights: ClassWeights| {
        let settings = Settings { selection: Selection::LastEpoch, ..settings(weights, Metric::Accuracy) };
        let trained = progap::train(&dataset, settings).in_memory().expect("trained");
        let found = trained.assess(&dataset, Part::Test).expect("predictions").expect("test nodes");
        found.classes[1].recall.expect("there are some")
    };
    let (plain, balanced) = (recall(ClassWeights::Even), recall(ClassWeights::Balanced));
    assert!(balanced > 0.6 && balanced > plain + 0.2, "{plain} {balanced}");
}

/// The epoch that is kept is the best by the metric, and verify follows.
#[test]
fn the_metric_asked_for_chooses_the_epoch() {
    let (dataset, place) = (rare(5), tempfile::tempdir().expect("a folder"));
    for metric in [Metric::MacroF1, Metric::LogLoss, Metric::AveragePrecision] {
        let folder = place.path().join(metric.name());
        let settings =
            Settings { depth: 0, calibration: Calibration::Off, ..settings(ClassWeights::Balanced, metric) };
        let release = progap::train(&dataset, settings).into_folder(&folder).expect("trained");
        let history = &release.metrics.history;
        let score = |at: usize| {
            let score = history[at].val_score.expect("a score");
            if metric.is_loss() { -score } else { score }
        };
        let best = (0..history.len()).max_by(|&a, &b| score(a).total_cmp(&score(b)).then(b.cmp(&a)));
        let found = release.assess(&dataset, Part::Val).expect("predictions").expect("validation nodes");
        let kept = found.scores().expect("scores").get(metric);
        let expected = history[best.expect("an epoch")].val_score.expect("a score");
        assert!((kept - expected).abs() < 1e-6, "{metric}: {kept} {expected}");
        let findings = release.verify().expect("opened");
        assert!(findings.iter().all(|finding| finding.ok), "{findings:#?}");
    }
}

#[test]
fn private_labels_choose_and_weigh_nothing_by_themselves() {
    let refused = |request: progap::settings::Request| request.settings().unwrap_err().to_string();
    let node = || progap::settings::Request::default().with("level", "node");
    // Where a method has no noisy counts; with them, labels weigh by what left the vault.
    let said = refused(node().with("method", "dp-gnn").with("class_weights", "balanced"));
    assert!(said.contains("private at node level"), "{said}");
    assert!(refused(node().with("metric", "auroc")).contains("`metric` has no effect"));
    let last = progap::settings::Request::default().with("selection", "last-epoch").with("metric", "auroc");
    assert!(refused(last).contains("last-epoch"));
}

#[test]
fn what_a_model_must_beat_is_known() {
    let dataset = rare(7);
    let baselines =
        Baselines::of(&dataset, &Settings::new(Level::Edge)).expect("fitted").expect("test nodes");
    let majority = progap_graph::summary::majority_baseline(&dataset).expect("a share");
    assert_eq!(baselines.majority.accuracy, majority);
    assert_eq!(baselines.majority.balanced_accuracy, 0.5);
    let logistic = baselines.logistic_regression.clone().expect("fitted");
    assert!(logistic.auroc.expect("two classes") > 0.8, "{logistic:?}");
    let beaten = baselines.not_beaten(&baselines.majority, Metric::Auroc);
    assert_eq!(beaten.len(), 3, "{beaten:?}");
    assert!(baselines.not_beaten(&logistic, Metric::Auroc).iter().all(|(name, _)| name.contains("logistic")));
}

/// Where labels are public, how sure predictions are is how often they are right; no prediction changes.
#[test]
fn probabilities_are_calibrated_where_labels_are_public() {
    let network = progap_graph::synth::SocialNetwork::new(12_000).edges(100_000).classes(4).seed(2);
    let network = network.generate().expect("a network");
    let dataset = network.or_random_split(Ratios { val: 0.2, test: 0.3 }, 1).expect("a split");
    for method in
        [MethodKind::ProgapLabels, MethodKind::Gap, MethodKind::Mlp, MethodKind::Lpgnet, MethodKind::EdgeRand]
    {
        let trained = |calibration: Calibration| {
            let settings =
                Settings { calibration, epochs: 30, seed: Some(4), ..Settings::of(method, Level::Edge) };
            progap::train(&dataset, settings).in_memory().expect("trained")
        };
        let [plain, calibrated] = [Calibration::Off, Calibration::Temperature].map(trained);
        let found = |trained: &progap::Trained| {
            trained.assess(&dataset, Part::Test).expect("predictions").expect("test nodes")
        };
        let (before, after) = (found(&plain), found(&calibrated));
        assert_eq!(before.confusion, after.confusion, "{method}");
        assert!(after.log_loss <= before.log_loss + 0.002, "{method}");
        assert!(
            after.calibration_error < before.calibration_error.max(0.05),
            "{method}: {}",
            after.calibration_error
        );
        if method == MethodKind::ProgapLabels {
            assert!(after.calibration_error < 0.05 && before.calibration_error > 0.05);
        }
    }
    let refused =
        progap::settings::Request::default().with("level", "node").with("calibration", "temperature");
    let said = refused.settings().unwrap_err().to_string();
    assert!(said.contains("cannot calibrate"), "{said}");
}
