//! The recipe by which the published experiments prepare their data sets.

use crate::{Dataset, Ratios, Result, transform};

/// Prepares raw data as the published experiments did: split, keep the frequent classes, remove self-loops,
/// then remove the nodes without an edge.
///
/// The order matters. The split (75 % training, 10 % validation, 15 % test, from `seed`; or the data's own
/// where it has one) is drawn over all raw nodes **before** classes are filtered, so the shares of the result
/// are near the asked ones but not exact. A class stays when at least `min_count` raw nodes have it; nodes
/// that lose their last neighbour go, even when their class then falls below `min_count`.
///
/// ```
/// use progap_graph::{Dataset, DatasetParts, Features, Graph, prepare};
///
/// let graph = Graph::from_edges(4, &[0, 1, 2, 2], &[1, 0, 2, 3])?;
/// let classes = vec!["common".into(), "rare".into()];
/// let raw = Dataset::new(DatasetParts::of("raw", graph, Features::none(), vec![0, 0, 0, 1], classes))?;
/// let prepared = prepare::prepare_as_published(raw, 2, 1)?;
/// // Node 3 has a rare class; without it and its own loop, node 2 has no edge left.
/// assert_eq!((prepared.nodes(), prepared.graph().edges(), prepared.classes()), (2, 2, 1));
/// assert!(prepared.split().is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn prepare_as_published(dataset: Dataset, min_count: usize, seed: u64) -> Result<Dataset> {
    let raw = dataset.or_random_split(Ratios::default(), seed)?;
    let frequent = transform::keep_frequent_classes(&raw, min_count)?;
    // The raw graph may be most of the memory: it goes before the next one is made.
    drop(raw);
    without_loops_and_isolated_nodes(frequent)
}

/// The steps left to do where data are split and all classes frequent.
pub fn without_loops_and_isolated_nodes(frequent: Dataset) -> Result<Dataset> {
    let loopless = transform::map_graph(frequent, transform::remove_self_loops)?;
    transform::remove_isolated_nodes(&loopless)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DatasetParts, Features, Graph, Part, Split};

    /// A ring of `nodes` nodes with a loop at each; every tenth node has the rare class.
    fn raw(nodes: u32) -> Dataset {
        let sources: Vec<u32> = (0..nodes).flat_map(|n| [n, n, n]).collect();
        let targets: Vec<u32> =
            (0..nodes).flat_map(|n| [n, (n + 1) % nodes, (n + nodes - 1) % nodes]).collect();
        Dataset::new(DatasetParts::of(
            "ring",
            Graph::from_edges(nodes as usize, &sources, &targets).unwrap(),
            Features::none(),
            (0..nodes).map(|n| u32::from(n % 10 == 0)).collect::<Vec<_>>(),
            vec!["common".into(), "rare".into()],
        ))
        .unwrap()
    }

    #[test]
    fn the_split_is_drawn_before_classes_are_filtered() {
        let prepared = prepare_as_published(raw(1000), 101, 5).unwrap();
        assert_eq!((prepared.nodes(), prepared.classes(), prepared.graph().self_loops()), (900, 1, 0));
        let all = Split::random(1000, Ratios::default(), 5).unwrap();
        let kept: Vec<u32> = (0..1000).filter(|n| n % 10 != 0).collect();
        assert_eq!(prepared.split(), Some(&all.select(&kept)));
        assert!(prepared.split().unwrap().count(Part::Train).abs_diff(675) < 40);
    }

    #[test]
    fn a_split_of_the_data_stays_and_all_classes_stay_when_frequent() {
        let own = raw(1000).with_random_split(Ratios { val: 0.3, test: 0.3 }, 9).unwrap();
        let prepared = prepare_as_published(own.clone(), 100, 5).unwrap();
        assert_eq!((prepared.split(), prepared.classes()), (own.split(), 2));
        assert!(prepare_as_published(own, 1001, 5).is_err());
    }
}
