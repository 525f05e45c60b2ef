//! Pairs of data sets that differ only in what the mechanisms cannot see.

use progap_graph::synth::SocialNetwork;
use progap_graph::{Dataset, DatasetParts, Features, Graph, NumberColumn, Part, Ratios};

/// A small network, with a split.
pub fn small_network() -> Dataset {
    let network = SocialNetwork::new(600).edges(9_000).classes(3).seed(4).generate().expect("a network");
    network.or_random_split(Ratios::default(), 1).expect("a split")
}

/// The same data set with another graph.
pub fn with_edges(data: &Dataset, edges: &[(u32, u32)]) -> Dataset {
    let (sources, targets): (Vec<u32>, Vec<u32>) = edges.iter().copied().unzip();
    let graph = Graph::from_edges(data.nodes(), &sources, &targets).expect("a graph");
    Dataset::new(DatasetParts { graph, ..data.clone().into_parts() }).expect("a data set")
}

/// The same nodes with quite other edges: another number of them, other directions, nodes that have none.
pub fn other_edges(data: &Dataset) -> Dataset {
    let nodes = data.nodes() as u32;
    let edges: Vec<(u32, u32)> = (0..nodes / 2).map(|node| (node, (node * 7 + 3) % nodes)).collect();
    with_edges(data, &edges)
}

/// Nodes that are not trained on, of which neither of the twins has an edge to anyone.
pub fn silent_nodes(data: &Dataset) -> Vec<u32> {
    let split = data.split().expect("a split");
    [Part::Val, Part::Test]
        .into_iter()
        .flat_map(|part| split.nodes(part).take(20))
        .map(|n| n as u32)
        .collect()
}

/// Two data sets that differ in the features and labels of [`silent_nodes`].
pub fn node_twins(data: &Dataset) -> [Dataset; 2] {
    let silent = silent_nodes(data);
    let edges: Vec<(u32, u32)> =
        data.graph().iter_edges().filter(|(source, _)| !silent.contains(source)).collect();
    let one = with_edges(data, &edges);
    let mut parts = one.clone().into_parts();
    let (rows, columns, classes) = (one.nodes(), one.features().columns(), one.classes() as u32);
    let mut values = one.features().to_dense(rows);
    let mut labels = parts.labels.to_vec();
    for &node in &silent {
        let row = &mut values[node as usize * columns..(node as usize + 1) * columns];
        row.iter_mut()
            .enumerate()
            .for_each(|(at, value)| *value = if at % 2 == 0 { 1.0 - *value } else { 3.5 });
        labels[node as usize] = (labels[node as usize] + 1) % classes;
    }
    // One of the two is stored in full, the other as it was: not even that shows.
    parts.features = Features::dense(rows, columns, values).expect("features");
    parts.labels = labels.into();
    [one, Dataset::new(parts).expect("a data set")]
}

/// The network with a column in raw units beside its others.
pub fn with_column(data: &Dataset, value: impl Fn(usize) -> f32, bounds: Option<[f64; 2]>) -> Dataset {
    let (nodes, columns) = (data.nodes(), data.features().columns());
    let mut dense = Vec::with_capacity(nodes * (columns + 1));
    for (node, row) in data.features().to_dense(nodes).chunks_exact(columns).enumerate() {
        dense.extend_from_slice(row);
        dense.push(value(node));
    }
    let numbers = vec![NumberColumn { bounds, ..NumberColumn::new(columns) }];
    let features = Features::dense(nodes, columns + 1, dense).expect("features");
    Dataset::new(DatasetParts { features, feature_names: vec![], numbers, ..data.clone().into_parts() })
        .expect("a data set")
}
