//! A graph with everything known about its nodes.

use crate::{Buffer, Features, Graph, NodeIds, Place, Problem, Ratios, Result, Split};

/// A graph, the features and labels of its nodes, and (where the data came with one) a split.
///
/// Once made, its parts fit together: as many rows of features, labels, ids and parts as nodes; every label a
/// class; at least one node.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset(DatasetParts);

/// The parts of a [`Dataset`], before they are checked or after it is taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct DatasetParts {
    /// What people call it.
    pub name: String,
    /// The edges.
    pub graph: Graph,
    /// One row per node.
    pub features: Features,
    /// The class of each node.
    pub labels: Buffer<u32>,
    /// The name of each class.
    pub class_names: Vec<String>,
    /// The name of each feature column; empty where there are none.
    pub feature_names: Vec<String>,
    /// The split, where the data came with one.
    pub split: Option<Split>,
    /// What people call the nodes.
    pub node_ids: NodeIds,
}

impl Dataset {
    /// Checks that the parts fit together.
    pub fn new(parts: DatasetParts) -> Result<Dataset> {
        let nodes = parts.graph.nodes();
        if nodes == 0 {
            return Err(Problem::Empty("nodes").into());
        }
        parts.features.check(nodes)?;
        parts.node_ids.check(nodes)?;
        check_labels(&parts.labels, nodes, parts.class_names.len())?;
        let names = parts.feature_names.len();
        if names != 0 && names != parts.features.columns() {
            let (found, expected) = (names as u64, parts.features.columns() as u64);
            return Err(Problem::Length { what: "list of feature names".into(), found, expected }.into());
        }
        if let Some(split) = parts.split.as_ref().filter(|split| split.len() != nodes) {
            let (found, expected) = (split.len() as u64, nodes as u64);
            return Err(Problem::Length { what: "split".into(), found, expected }.into());
        }
        Ok(Dataset(parts))
    }

    /// Parts of which the caller knows that they fit together, such as a selection from a data set.
    pub(crate) fn from_valid(parts: DatasetParts) -> Dataset {
        debug_assert!(Dataset::new(parts.clone()).is_ok());
        Dataset(parts)
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The edges.
    pub fn graph(&self) -> &Graph {
        &self.0.graph
    }

    /// One row per node.
    pub fn features(&self) -> &Features {
        &self.0.features
    }

    /// The class of each node.
    pub fn labels(&self) -> &[u32] {
        &self.0.labels
    }

    /// The name of each class.
    pub fn class_names(&self) -> &[String] {
        &self.0.class_names
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.0.class_names.len()
    }

    /// The number of nodes of each class.
    pub fn class_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes()];
        for &label in self.labels() {
            counts[label as usize] += 1;
        }
        counts
    }

    /// The name of each feature column; empty where there are none.
    pub fn feature_names(&self) -> &[String] {
        &self.0.feature_names
    }

    /// The split, where the data came with one.
    pub fn split(&self) -> Option<&Split> {
        self.0.split.as_ref()
    }

    /// What people call the nodes.
    pub fn node_ids(&self) -> &NodeIds {
        &self.0.node_ids
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.0.graph.nodes()
    }

    /// Bytes held by graph, features, labels, split and ids.
    pub fn bytes(&self) -> usize {
        let split = self.split().map_or(0, Split::len);
        let rows = size_of_val(self.labels()) + split + self.node_ids().bytes();
        self.graph().bytes() + self.features().bytes() + rows
    }

    /// A fingerprint of the content (edges, features, labels, split; not the name): 32 hexadecimal digits that
    /// tell whether two data sets are the same.
    pub fn fingerprint(&self) -> String {
        self.hash(self.split().map_or(&[], Split::codes))
    }

    /// The fingerprint whatever the split: by it a ledger knows the data, of which there is one budget.
    pub fn content_fingerprint(&self) -> String {
        self.hash(&[])
    }

    fn hash(&self, split: &[u8]) -> String {
        let mut hash = twox_hash::XxHash3_128::new();
        let mut add = |bytes: &[u8]| {
            hash.write(&(bytes.len() as u64).to_le_bytes());
            hash.write(bytes);
        };
        add(bytemuck::cast_slice(self.graph().offsets()));
        add(bytemuck::cast_slice(self.graph().senders()));
        add(bytemuck::cast_slice(self.labels()));
        add(&(self.classes() as u64).to_le_bytes());
        add(&(self.features().columns() as u64).to_le_bytes());
        match self.features() {
            Features::Dense { values, .. } => add(bytemuck::cast_slice(values)),
            Features::Sparse { offsets, indices, values, .. } => {
                add(bytemuck::cast_slice(offsets));
                add(bytemuck::cast_slice(indices));
                add(values.as_ref().map_or(&[], |values| bytemuck::cast_slice(values)));
            }
        }
        add(split);
        format!("{:032x}", hash.finish_128())
    }

    /// The same data under another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Dataset {
        self.0.name = name.into();
        self
    }

    /// The same data with a new random split.
    pub fn with_random_split(mut self, ratios: Ratios, seed: u64) -> Result<Dataset> {
        self.0.split = Some(Split::random(self.nodes(), ratios, seed)?);
        Ok(self)
    }

    /// The data's own split, or a random one where there is none.
    pub fn or_random_split(self, ratios: Ratios, seed: u64) -> Result<Dataset> {
        if self.split().is_some() { Ok(self) } else { self.with_random_split(ratios, seed) }
    }

    /// Takes the data set apart.
    pub fn into_parts(self) -> DatasetParts {
        self.0
    }

    /// The share of edges between nodes of the same class; `None` without edges.
    pub fn homophily(&self) -> Option<f64> {
        let labels = self.labels();
        let same =
            self.graph().iter_edges().filter(|&(a, b)| labels[a as usize] == labels[b as usize]).count();
        let edges = self.graph().edges();
        (edges > 0).then(|| same as f64 / edges as f64)
    }
}

fn check_labels(labels: &[u32], nodes: usize, classes: usize) -> Result<()> {
    if classes == 0 {
        return Err(Problem::Empty("classes").into());
    }
    if labels.len() != nodes {
        let (found, expected) = (labels.len() as u64, nodes as u64);
        return Err(Problem::Length { what: "list of labels".into(), found, expected }.into());
    }
    match labels.iter().position(|&label| label as usize >= classes) {
        None => Ok(()),
        Some(node) => {
            let problem =
                Problem::LabelOutOfRange { label: labels[node].to_string(), classes: classes as u64 };
            Err(problem.at(Place::Node(node as u64)))
        }
    }
}
