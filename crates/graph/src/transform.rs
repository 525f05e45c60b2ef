//! From one data set or graph to another: filters, symmetrising, subgraphs.

use rayon::prelude::*;

use crate::graph::{RowWidth, row_blocks};
use crate::{Buffer, Dataset, DatasetParts, Graph, Place, Problem, Result, UNLABELLED, order};

/// The part of the data set on the listed nodes, which keep their order.
///
/// An edge stays when both its ends do. A node that is listed twice, or that does not exist, is an error.
pub fn induced_subgraph(dataset: &Dataset, nodes: &[u32]) -> Result<Dataset> {
    let graph = induced_graph(dataset.graph(), nodes)?;
    if nodes.is_empty() {
        return Err(Problem::Empty("nodes").into());
    }
    let labels: Vec<u32> = nodes.iter().map(|&node| dataset.labels()[node as usize]).collect();
    Ok(Dataset::from_valid(DatasetParts {
        name: dataset.name().to_string(),
        graph,
        features: dataset.features().select(nodes),
        labels: labels.into(),
        class_names: dataset.class_names().to_vec(),
        feature_names: dataset.feature_names().to_vec(),
        numbers: dataset.numbers().to_vec(),
        undeclared: dataset.undeclared().to_vec(),
        relation: dataset.relation().map(String::from),
        split: dataset.split().map(|split| split.select(nodes)),
        node_ids: dataset.node_ids().select(nodes),
    }))
}

/// The data set with its nodes in the order of their ids: of numbers where all are whole numbers, else of bytes.
///
/// Files list nodes as a program met them, often along the edges. Which nodes there are is public, and so is this
/// order, which tells nothing else.
pub fn in_order_of_ids(dataset: Dataset) -> Result<Dataset> {
    match order::of_ids(dataset.node_ids(), dataset.nodes()) {
        None => Ok(dataset),
        Some(order) => induced_subgraph(&dataset, &order),
    }
}

/// The edges among the listed nodes, which are numbered in the order of the list.
pub fn induced_graph(graph: &Graph, nodes: &[u32]) -> Result<Graph> {
    const DROPPED: u32 = u32::MAX;
    let mut new_number = vec![DROPPED; graph.nodes()];
    for (number, &node) in nodes.iter().enumerate() {
        let limit = graph.nodes() as u64;
        let slot = new_number
            .get_mut(node as usize)
            .ok_or_else(|| Problem::IndexOutOfRange { index: node.to_string(), limit })?;
        if *slot != DROPPED {
            let problem = Problem::Invalid("the node is listed twice".into());
            return Err(problem.at(Place::Node(node.into())));
        }
        *slot = number as u32;
    }
    if graph.weights().is_some() {
        let number = |node: u32| Some(new_number[node as usize]).filter(|&number| number != DROPPED);
        let kept = graph.iter_weighted_edges();
        let kept =
            kept.filter_map(|(source, target, weight)| Some((number(source)?, number(target)?, weight)));
        return graph.rebuilt(nodes.len(), kept);
    }
    let is_kept = |&&sender: &&u32| new_number[sender as usize] != DROPPED;
    let kept = |node: u32| graph.in_neighbours(node as usize).iter().filter(is_kept).count() as u64;
    let mut offsets = vec![0u64; nodes.len() + 1];
    offsets[1..].par_iter_mut().zip(nodes).for_each(|(length, &node)| *length = kept(node));
    for row in 0..nodes.len() {
        offsets[row + 1] += offsets[row];
    }
    let mut senders = vec![0u32; offsets[nodes.len()] as usize];
    let blocks = row_blocks(&offsets, RowWidth::Edges, &mut senders, 64);
    blocks.into_par_iter().for_each(|(rows, mut block)| {
        // Every number is written and the next one over it if it is dropped: which are is a toss that no processor
        // predicts.
        let mut numbers = vec![];
        for &node in &nodes[rows] {
            let senders = graph.in_neighbours(node as usize);
            numbers.resize(numbers.len().max(senders.len()), 0);
            let mut length = 0;
            for &sender in senders {
                numbers[length] = new_number[sender as usize];
                length += usize::from(numbers[length] != DROPPED);
            }
            let (row, rest) = block.split_at_mut(length);
            row.copy_from_slice(&numbers[..length]);
            block = rest;
        }
    });
    // A list of nodes in another order than ascending mixes the rows: `from_rows` sorts them where needed.
    Graph::from_rows(offsets, senders)
}

/// Keeps the classes that have at least `min_count` nodes; the nodes of the others go, those without a label stay, and
/// the classes that stay are numbered anew in their old order.
pub fn keep_frequent_classes(dataset: &Dataset, min_count: usize) -> Result<Dataset> {
    let mut class_names = Vec::new();
    let new_label: Vec<Option<u32>> = dataset
        .class_counts()
        .iter()
        .zip(dataset.class_names())
        .map(|(&count, name)| {
            (count >= min_count && count > 0).then(|| {
                class_names.push(name.clone());
                class_names.len() as u32 - 1
            })
        })
        .collect();
    if class_names.is_empty() {
        let largest = dataset.class_counts().into_iter().max().unwrap_or(0);
        let message = format!("no class has {min_count} nodes or more (the largest has {largest})");
        return Err(Problem::Invalid(message).into());
    }
    if class_names.len() == dataset.classes() {
        return Ok(dataset.clone());
    }
    let renumbered = |label: u32| match label {
        UNLABELLED => Some(UNLABELLED),
        class => new_label[class as usize],
    };
    let nodes = select(dataset.nodes(), |node| renumbered(dataset.labels()[node]).is_some());
    let mut parts = induced_subgraph(dataset, &nodes)?.into_parts();
    let labels: Vec<u32> = parts.labels.iter().filter_map(|&label| renumbered(label)).collect();
    parts.labels = labels.into();
    parts.class_names = class_names;
    Dataset::new(parts)
}

/// Removes the nodes that have no edge, in or out.
pub fn remove_isolated_nodes(dataset: &Dataset) -> Result<Dataset> {
    let graph = dataset.graph();
    let sends = graph.out_degrees();
    let nodes = select(graph.nodes(), |node| graph.in_degree(node) > 0 || sends[node] > 0);
    if nodes.is_empty() {
        return Err(Problem::Invalid("no node has an edge, so none is left".into()).into());
    }
    if nodes.len() == graph.nodes() { Ok(dataset.clone()) } else { induced_subgraph(dataset, &nodes) }
}

/// Removes the edges from a node to itself.
pub fn remove_self_loops(graph: Graph) -> Graph {
    retain_edges(graph, |receiver, row, at| row[at] as usize != receiver)
}

/// Keeps one of each set of equal edges, with the largest weight of any of them.
pub fn deduplicate(graph: Graph) -> Graph {
    retain_edges(graph.with_largest_of_equals(), |_, row, at| at == 0 || row[at] != row[at - 1])
}

/// Adds the edge back to every edge that has none; equal edges become one.
pub fn symmetrise(graph: Graph) -> Graph {
    let graph = deduplicate(graph);
    if graph.is_undirected() {
        return graph;
    }
    let back = graph.transpose();
    if graph.weights().is_some() {
        return with_weights_both_ways(&graph, &back);
    }
    let mut offsets = vec![0u64; graph.nodes() + 1];
    let merged_length =
        |node: usize| merge(graph.in_neighbours(node), back.in_neighbours(node)).count() as u64;
    offsets[1..].par_iter_mut().enumerate().for_each(|(node, length)| *length = merged_length(node));
    for row in 0..graph.nodes() {
        offsets[row + 1] += offsets[row];
    }
    let mut senders = vec![0u32; offsets[graph.nodes()] as usize];
    let blocks = row_blocks(&offsets, RowWidth::Edges, &mut senders, 64);
    blocks.into_par_iter().for_each(|(rows, block)| {
        let merged = rows.flat_map(|node| merge(graph.in_neighbours(node), back.in_neighbours(node)));
        block.iter_mut().zip(merged).for_each(|(slot, sender)| *slot = sender);
    });
    Graph::from_valid_rows(offsets, senders)
}

/// The edges of a graph, and those back that it has not, each with the weight of its edge.
fn with_weights_both_ways(graph: &Graph, back: &Graph) -> Graph {
    let is_new = |&(source, target, _): &(u32, u32, f32)| {
        graph.in_neighbours(target as usize).binary_search(&source).is_err()
    };
    let edges = graph.iter_weighted_edges().chain(back.iter_weighted_edges().filter(is_new));
    graph.rebuilt(graph.nodes(), edges).expect("edges of a graph")
}

/// Takes the user's word that the graph is undirected: every edge is there in both directions, or every edge
/// is there once and gets its edge back. A mixture of the two contradicts the claim and is an error.
pub fn declare_undirected(graph: Graph) -> Result<Graph> {
    let Some((from, to)) = graph.first_one_way_edge() else { return Ok(graph) };
    let back = graph.transpose();
    let both_ways = (0..graph.nodes()).any(|node| {
        let (ours, theirs) = (graph.in_neighbours(node), back.in_neighbours(node));
        ours.iter().any(|&sender| sender as usize != node && theirs.binary_search(&sender).is_ok())
    });
    if both_ways {
        return Err(Problem::OneWayEdge { from: from.into(), to: to.into() }.into());
    }
    Ok(symmetrise(graph))
}

/// The same data on a graph that is changed in its edges, not in its nodes.
pub fn map_graph(dataset: Dataset, change: impl FnOnce(Graph) -> Graph) -> Result<Dataset> {
    let mut parts = dataset.into_parts();
    parts.graph = change(parts.graph);
    Dataset::new(parts)
}

fn select(nodes: usize, keep: impl Fn(usize) -> bool) -> Vec<u32> {
    (0..nodes).filter(|&node| keep(node)).map(|node| node as u32).collect()
}

/// Keeps the edges of which `keep(receiver, row, position in the row)` says so, in place.
fn retain_edges(graph: Graph, keep: impl Fn(usize, &[u32], usize) -> bool + Sync) -> Graph {
    let dropped = |node: usize| {
        let row = graph.in_neighbours(node);
        (0..row.len()).any(|at| !keep(node, row, at))
    };
    if !(0..graph.nodes()).into_par_iter().any(dropped) {
        return graph;
    }
    let mut offsets = Vec::with_capacity(graph.nodes() + 1);
    offsets.push(0u64);
    let mut senders = Vec::with_capacity(graph.edges());
    let mut weights = graph.weights().map(|_| Vec::with_capacity(graph.edges()));
    for node in 0..graph.nodes() {
        let (row, first) = (graph.in_neighbours(node), graph.offsets()[node] as usize);
        for at in (0..row.len()).filter(|&at| keep(node, row, at)) {
            senders.push(row[at]);
            if let Some(weights) = &mut weights {
                weights.push(graph.weight(first + at));
            }
        }
        offsets.push(senders.len() as u64);
    }
    Graph::from_valid_rows(Buffer::from(offsets), Buffer::from(senders))
        .with_valid_weights(weights.map(Buffer::from))
        .with_valid_bound(graph.weight_bound())
}

/// The values of two ascending lists without repetition, ascending, each once.
fn merge<'a>(mut a: &'a [u32], mut b: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
    std::iter::from_fn(move || {
        let next = match (a.first(), b.first()) {
            (Some(&x), Some(&y)) => x.min(y),
            (Some(&x), None) | (None, Some(&x)) => x,
            (None, None) => return None,
        };
        a = a.strip_prefix(&[next]).unwrap_or(a);
        b = b.strip_prefix(&[next]).unwrap_or(b);
        Some(next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::tests::graph;
    use crate::{Features, Part, Split};
    use proptest::prelude::*;

    fn dataset(graph: Graph, labels: &[u32]) -> Dataset {
        let nodes = graph.nodes();
        Dataset::new(DatasetParts {
            split: Some(Split::from_parts(
                (0..nodes).map(|n| if n % 2 == 0 { Part::Train } else { Part::Test }),
            )),
            ..DatasetParts::of(
                "test",
                graph,
                Features::dense(nodes, 1, (0..nodes).map(|n| n as f32).collect::<Vec<_>>()).unwrap(),
                labels.to_vec(),
                ["a", "b", "c"].map(String::from).to_vec(),
            )
        })
        .unwrap()
    }

    #[test]
    fn a_subgraph_keeps_what_belongs_to_its_nodes() {
        let data = dataset(graph(4, &[(0, 1), (1, 3), (3, 0), (2, 2)]), &[0, 1, 2, 0]);
        let part = induced_subgraph(&data, &[3, 1]).unwrap();
        assert_eq!(part.graph().iter_edges().collect::<Vec<_>>(), [(1, 0)]);
        assert_eq!(part.labels(), [0, 1]);
        assert_eq!(part.features().to_dense(2), [3.0, 1.0]);
        assert_eq!([part.node_ids().name(0), part.node_ids().name(1)], ["3", "1"]);
        assert_eq!(part.split().unwrap().part(0), Part::Test);
        assert!(induced_subgraph(&data, &[1, 1]).is_err());
        assert!(induced_subgraph(&data, &[4]).is_err());
        assert!(induced_subgraph(&data, &[]).is_err());
    }

    #[test]
    fn rare_classes_and_their_nodes_go() {
        let data = dataset(graph(5, &[(0, 1), (1, 2), (2, 4), (4, 0)]), &[2, 1, 2, 0, 2]);
        let kept = keep_frequent_classes(&data, 2).unwrap();
        assert_eq!((kept.nodes(), kept.class_names()), (3, &["c".to_string()][..]));
        assert_eq!(kept.labels(), [0, 0, 0]);
        assert_eq!(kept.graph().edges(), 2);
        assert!(keep_frequent_classes(&data, 9).is_err());
    }

    #[test]
    fn loops_repetitions_and_isolated_nodes_go() {
        let g = graph(4, &[(0, 0), (0, 1), (0, 1), (3, 3)]);
        let clean = deduplicate(remove_self_loops(g));
        assert_eq!(clean.iter_edges().collect::<Vec<_>>(), [(0, 1)]);
        let data = remove_isolated_nodes(&dataset(clean, &[0, 1, 2, 0])).unwrap();
        assert_eq!(data.nodes(), 2);
        assert!(remove_isolated_nodes(&dataset(graph(2, &[]), &[0, 1])).is_err());
    }

    #[test]
    fn a_claim_of_no_direction_is_checked() {
        let both = graph(3, &[(0, 1), (1, 0), (2, 2)]);
        assert_eq!(declare_undirected(both.clone()).unwrap(), both);
        assert_eq!(declare_undirected(graph(3, &[(0, 1), (2, 2)])).unwrap(), both);
        assert!(declare_undirected(graph(3, &[(0, 1), (1, 0), (1, 2)])).is_err());
    }

    proptest! {
        #[test]
        fn symmetrising_adds_just_the_edges_back(edges in proptest::collection::vec((0u32..15, 0u32..15), 0..120)) {
            let mut expected: Vec<_> = edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
            expected.sort_unstable();
            expected.dedup();
            let mut found: Vec<_> = symmetrise(graph(15, &edges)).iter_edges().collect();
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
