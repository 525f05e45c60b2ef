//! A data set in figures.

use serde::Serialize;

use crate::{Dataset, EdgesBack, Features, Part};

/// The content of `progap inspect`.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The data set's name.
    pub name: String,
    /// The number of nodes.
    pub nodes: usize,
    /// The number of directed edges; an undirected edge counts twice.
    pub edges: usize,
    /// Whether every edge has an edge back.
    pub undirected: bool,
    /// Edges that have an edge back; loops do not count, and repeated edges once.
    pub edges_back: usize,
    /// Whether the graph looks like an undirected one that lists each edge once.
    pub listed_once: bool,
    /// Edges from a node to itself.
    pub self_loops: usize,
    /// Edges that repeat another one.
    pub repeated_edges: usize,
    /// Nodes without any edge.
    pub isolated_nodes: usize,
    /// The number of feature columns.
    pub features: usize,
    /// How the features are stored: `dense`, `sparse`, or `binary` (sparse, every value 1).
    pub feature_storage: &'static str,
    /// The share of feature values that are not zero; absent without features.
    pub feature_density: Option<f64>,
    /// Nodes whose class is known.
    pub labelled: usize,
    /// The number of classes.
    pub classes: usize,
    /// The classes and how many nodes each has.
    pub class_counts: Vec<ClassCount>,
    /// The number of edges into a node.
    pub in_degree: Quantiles,
    /// Of the edges between nodes with labels, the share between nodes of the same class; absent without such edges.
    pub homophily: Option<f64>,
    /// The homophily that a random assignment of the same classes would have.
    pub chance_homophily: f64,
    /// Training nodes; absent without a split.
    pub train: Option<usize>,
    /// Validation nodes.
    pub val: Option<usize>,
    /// Test nodes.
    pub test: Option<usize>,
    /// Nodes of the graph whose label is not known or not used.
    pub unused: Option<usize>,
    /// The accuracy, on the test nodes, of always answering the most frequent class of the training nodes.
    pub majority_baseline: Option<f64>,
    /// Bytes in memory.
    pub memory: Memory,
}

/// A class and its size.
#[derive(Debug, Clone, Serialize)]
pub struct ClassCount {
    /// The class.
    pub name: String,
    /// Its number of nodes.
    pub nodes: usize,
}

/// The spread of a number over the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantiles {
    /// The mean.
    pub mean: f64,
    /// The smallest.
    pub min: usize,
    /// A tenth of the nodes have at most this.
    pub p10: usize,
    /// A quarter.
    pub p25: usize,
    /// Half.
    pub median: usize,
    /// Three quarters.
    pub p75: usize,
    /// Nine tenths.
    pub p90: usize,
    /// Ninety-nine in a hundred.
    pub p99: usize,
    /// The largest.
    pub max: usize,
}

/// Bytes in memory, by part.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Memory {
    /// The edges.
    pub graph: usize,
    /// The features.
    pub features: usize,
    /// Everything together, labels, split and ids included.
    pub total: usize,
}

impl Summary {
    /// Goes over the whole data set once or twice.
    pub fn of(dataset: &Dataset) -> Summary {
        let (graph, features) = (dataset.graph(), dataset.features());
        let count = |part| dataset.split().map(|split| split.count(part));
        let class_counts = dataset.class_counts();
        let values = dataset.nodes() as f64 * features.columns() as f64;
        let labelled = dataset.labelled();
        let back = EdgesBack::of(graph, usize::MAX);
        let share = |&count: &usize| (count as f64 / labelled.max(1) as f64).powi(2);
        Summary {
            name: dataset.name().into(),
            nodes: dataset.nodes(),
            edges: graph.edges(),
            undirected: graph.is_undirected(),
            edges_back: back.with,
            listed_once: back.listed_once(graph),
            self_loops: graph.self_loops(),
            repeated_edges: graph.repeated_edges(),
            isolated_nodes: graph.isolated_nodes(),
            features: features.columns(),
            feature_storage: match features {
                Features::Dense { .. } => "dense",
                Features::Half { .. } => "half",
                Features::Sparse { values: Some(_), .. } => "sparse",
                Features::Sparse { values: None, .. } => "binary",
            },
            feature_density: (values > 0.0).then(|| features.nonzeros() as f64 / values),
            labelled,
            classes: dataset.classes(),
            chance_homophily: class_counts.iter().map(share).sum(),
            class_counts: dataset
                .class_names()
                .iter()
                .zip(class_counts)
                .map(|(name, nodes)| ClassCount { name: name.clone(), nodes })
                .collect(),
            in_degree: Quantiles::of((0..dataset.nodes()).map(|node| graph.in_degree(node)).collect()),
            homophily: dataset.homophily(),
            train: count(Part::Train),
            val: count(Part::Val),
            test: count(Part::Test),
            unused: count(Part::Unused),
            majority_baseline: majority_baseline(dataset),
            memory: Memory { graph: graph.bytes(), features: features.bytes(), total: dataset.bytes() },
        }
    }
}

impl Quantiles {
    fn of(mut values: Vec<usize>) -> Quantiles {
        values.sort_unstable();
        let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
        Quantiles {
            mean: values.iter().sum::<usize>() as f64 / values.len() as f64,
            min: at(0.0),
            p10: at(0.10),
            p25: at(0.25),
            median: at(0.50),
            p75: at(0.75),
            p90: at(0.90),
            p99: at(0.99),
            max: at(1.0),
        }
    }
}

/// The accuracy on the test nodes of the most frequent class of the training nodes.
pub fn majority_baseline(dataset: &Dataset) -> Option<f64> {
    let split = dataset.split()?;
    let mut counts = vec![0usize; dataset.classes()];
    for node in split.nodes(Part::Train) {
        counts[dataset.labels()[node] as usize] += 1;
    }
    let largest = counts.iter().max()?;
    // Of equally frequent classes the first.
    let most = counts.iter().position(|count| count == largest)? as u32;
    let tests = split.count(Part::Test);
    let hits = split.nodes(Part::Test).filter(|&node| dataset.labels()[node] == most).count();
    (tests > 0).then(|| hits as f64 / tests as f64)
}
