//! Random data sets of every kind a writer must handle.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use progap_graph::{Dataset, DatasetParts, Features, Graph, NodeIds, Part, Split};

/// Small data sets: directed graphs with loops and repeated edges, dense, sparse or no features, any kind of
/// ids, odd names, with and without a split. Class names are in the order in which readers sort them.
pub fn dataset() -> impl Strategy<Value = Dataset> {
    (1usize..12, 0usize..5, 1usize..4).prop_flat_map(|(nodes, columns, classes)| {
        (
            vec((0..nodes as u32, 0..nodes as u32), 0..30),
            features(nodes, columns),
            vec(0..classes as u32, nodes),
            names(classes),
            option::of(names(columns)),
            option::of(vec(0usize..4, nodes)),
            node_ids(nodes),
        )
            .prop_map(
                |(edges, features, labels, mut class_names, feature_names, split, node_ids)| {
                    class_names.sort_unstable();
                    let (sources, targets): (Vec<u32>, Vec<u32>) = edges.into_iter().unzip();
                    let parts = [Part::Train, Part::Val, Part::Test, Part::Unused];
                    Dataset::new(DatasetParts {
                        name: "arbitrary".into(),
                        graph: Graph::from_edges(labels.len(), &sources, &targets)
                            .expect("nodes are in range"),
                        features,
                        labels: labels.into(),
                        class_names,
                        feature_names: feature_names.unwrap_or_default(),
                        numbers: vec![],
                        undeclared: vec![],
                        relation: None,
                        split: split
                            .map(|codes| Split::from_parts(codes.into_iter().map(|code| parts[code]))),
                        node_ids,
                    })
                    .expect("the parts fit together")
                },
            )
    })
}

fn features(nodes: usize, columns: usize) -> BoxedStrategy<Features> {
    let value = prop_oneof![Just(0.0f32), Just(1.0), any::<f32>().prop_filter("finite", |v| v.is_finite())];
    let dense = vec(value, nodes * columns)
        .prop_map(move |values| Features::dense(nodes, columns, values).expect("finite values"));
    let binary = vec(any::<bool>(), nodes * columns).prop_map(move |bits| {
        let (mut offsets, mut indices) = (vec![0u64], vec![]);
        for row in 0..nodes {
            indices.extend((0..columns).filter(|c| bits[row * columns + c]).map(|c| c as u32));
            offsets.push(indices.len() as u64);
        }
        Features::sparse(nodes, columns, offsets, indices, None).expect("columns are in range")
    });
    prop_oneof![dense.clone(), dense.prop_map(move |f| f.compact(nodes)), binary].boxed()
}

fn node_ids(nodes: usize) -> BoxedStrategy<NodeIds> {
    let integers = proptest::collection::btree_set(any::<i64>(), nodes)
        .prop_map(|ids| NodeIds::from_integers(ids.into_iter().rev().collect()));
    let texts = names(nodes).prop_map(NodeIds::from_texts);
    prop_oneof![Just(NodeIds::Position), integers, texts].boxed()
}

/// Distinct names, some of them awkward in a file.
fn names(count: usize) -> impl Strategy<Value = Vec<String>> {
    vec(prop_oneof!["[a-z]{1,6}", "[ ,;\"'\n\té世=]{1,4}"], count).prop_map(|names| {
        // The number makes them distinct, and keeps them from looking like numbers or being empty.
        names.into_iter().enumerate().map(|(k, name)| format!("n{name}{k}")).collect()
    })
}
