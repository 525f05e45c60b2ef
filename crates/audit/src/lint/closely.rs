//! Remarks that take another pass over all rows and edges: for `check`, and not before every training.

use std::hash::{DefaultHasher, Hash, Hasher};

use progap_graph::{Dataset, NodeIds};
use rayon::prelude::*;

use super::{Remark, note, warning};
use progap::order;
use progap::rows::LARGEST_FEATURE;
use progap::settings::{Level, Settings};

/// Fewer neighbours than this are easily the same by chance.
const MIN_NEIGHBOURS: usize = 2;

/// As [`super::lint`], of what takes longer to find.
pub fn closely(dataset: &Dataset, settings: &Settings) -> Vec<Remark> {
    let order = numbers_in_order(dataset, settings);
    order.into_iter().chain(clamped(dataset, settings)).chain(twins(dataset)).collect()
}

/// Numbers of nodes in an order that follows edges, as where a list of nodes was made of them: training refuses them.
fn numbers_in_order(dataset: &Dataset, settings: &Settings) -> Option<Remark> {
    if let NodeIds::Text { .. } = dataset.node_ids() {
        return None;
    }
    let refusal = order::refusal(&order::telling(dataset, settings)?);
    let remark = warning("id-order-leak", refusal.kind().to_string());
    Some(refusal.remedies().iter().cloned().fold(remark, Remark::remedy))
}

/// Values that are too large to be trained on. Where rows are public they are refused.
fn clamped(dataset: &Dataset, settings: &Settings) -> Option<Remark> {
    let (node, _, _) = dataset.features().first_beyond(LARGEST_FEATURE)?;
    let beyond = |node: &usize| dataset.features().row(*node).any(|(_, value)| value.abs() > LARGEST_FEATURE);
    let nodes = (0..dataset.nodes()).into_par_iter().filter(beyond).count();
    let text = format!(
        "{nodes} nodes have a value beyond {LARGEST_FEATURE:e}, the first of them {:?}: it is clamped there, as a \
         refusal would show \
         that it is in the data; correct it if it is a mistake",
        dataset.node_ids().name(node)
    );
    (settings.level == Level::Node).then(|| note("clamped", text))
}

/// Nodes that look like one person who is listed several times: the same row, and the same neighbours.
fn twins(dataset: &Dataset) -> Option<Remark> {
    let graph = dataset.graph();
    let receivers = graph.transpose();
    let key = |node: usize| {
        let lists = [graph.in_neighbours(node), receivers.in_neighbours(node)];
        if lists.iter().all(|list| list.len() < MIN_NEIGHBOURS) {
            return None;
        }
        let mut hash = DefaultHasher::new();
        for (column, value) in dataset.features().row(node).filter(|(_, value)| *value != 0.0) {
            (column, value.to_bits()).hash(&mut hash);
        }
        (dataset.labels()[node], lists).hash(&mut hash);
        Some((hash.finish(), node))
    };
    let mut keys: Vec<(u64, usize)> = (0..dataset.nodes()).into_par_iter().filter_map(key).collect();
    keys.par_sort_unstable();
    let groups: Vec<&[(u64, usize)]> =
        keys.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1).collect();
    let largest = groups.iter().map(|group| group.len()).max()?;
    let name = |at: usize| dataset.node_ids().name(groups[0][at].1);
    let text = format!(
        "{} nodes have the features, label and neighbours of another one ({:?} and {:?}), as where one person is \
         listed several \
         times: the guarantee is for one record, and for a person who is {largest} of them epsilon is {largest} \
         times as large; \
         merge them",
        groups.iter().map(|group| group.len()).sum::<usize>(),
        name(0),
        name(1),
    );
    Some(warning("listed-twice", text))
}
