//! More classes than one pass over the edges sums at once.

use progap::settings::{Level, MethodKind, Settings};
use progap_graph::{Dataset, Graph, Ratios, aggregate};

/// A hundred classes, one feature that tells them roughly, neighbours mostly of the same class.
fn network() -> Dataset {
    let (nodes, classes) = (3000u32, 100u32);
    let labels: Vec<u32> = (0..nodes).map(|node| node % classes).collect();
    let features: Vec<f32> = (0..nodes)
        .flat_map(|node| {
            let angle = (labels[node as usize] as f32 + (node * 37 % 29) as f32 / 10.0) / 16.0;
            [angle.sin(), angle.cos()]
        })
        .collect();
    let edges = (0..nodes).flat_map(|node| {
        [1, 2, 3, 5, 8]
            .map(|step| (node, (node + step * classes) % nodes))
            .into_iter()
            .chain([(node, (node + 7) % nodes)])
    });
    let builder = Dataset::builder().name("many").features(2, &features).labels(&labels);
    let dataset = builder.edges(edges).symmetrise().build().expect("a data set");
    dataset.or_random_split(Ratios::default(), 1).expect("a split")
}

#[test]
fn labels_of_a_hundred_classes_are_sent() {
    let dataset = network();
    for (method, level) in [
        (MethodKind::ProgapLabels, Level::None),
        (MethodKind::ProgapViews, Level::None),
        (MethodKind::ProgapLabels, Level::Edge),
    ] {
        let settings = Settings { seed: Some(1), depth: 1, ..Settings::of(method, level) };
        let place = tempfile::tempdir().expect("a folder");
        let release =
            progap::train(&dataset, settings).into_folder(place.path().join("release")).expect("trained");
        let metrics = &release.metrics;
        if level == Level::None {
            let alone = metrics.features_only_accuracy.expect("a stage of features");
            assert!(metrics.test_accuracy > alone + 0.1, "{method}: {} {alone}", metrics.test_accuracy);
        }
        let findings = release.verify().expect("opened");
        assert!(findings.iter().all(|finding| finding.ok), "{findings:#?}");
    }
}

/// A panel of columns at a time or one column at a time: the sums are the same.
#[test]
fn wide_sums_are_sums() {
    let graph = Graph::from_edges(4, &[0, 2, 3, 1, 0], &[1, 1, 1, 2, 2]).expect("a graph");
    for width in [63, 64, 65, 150] {
        let messages: Vec<i8> = (0..4 * width).map(|at| (at * 37 % 251) as u8 as i8).collect();
        let mut sums = vec![0i32; 4 * width];
        aggregate::wide_sum(&graph, width, &messages, &mut sums).expect("summed");
        for column in 0..width {
            let one: Vec<i8> = messages.iter().skip(column).step_by(width).copied().collect();
            let mut expected = [0i32; 4];
            aggregate::sum(&graph, 1, &one, None, &mut expected).expect("summed");
            let found: Vec<i32> = sums.iter().skip(column).step_by(width).copied().collect();
            assert_eq!(found, expected);
        }
    }
}
