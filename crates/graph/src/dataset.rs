//! A graph with everything known about its nodes.

use std::borrow::Cow;

use crate::scale::{self, NumberColumn, Preparation};
use crate::{
    Buffer, Features, Graph, InferredSchema, NodeIds, Part, Place, Problem, Ratios, Result, Scaled, Split,
    order, room,
};

/// The label of a node whose class is not known. It is no class: whatever takes it for one goes out of range.
pub const UNLABELLED: u32 = u32::MAX;

/// A graph, the features and labels of its nodes, and (where the data came with one) a split.
///
/// Once made, its parts fit together: as many rows of features, labels, ids and parts as nodes; every label a
/// class or [`UNLABELLED`]; at least one node. A node without a label is in no part of the split
/// ([`Part::Unused`]): it can be neither trained nor tested on.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset(DatasetParts);

/// The parts of a [`Dataset`], before they are checked or after it is taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct DatasetParts {
    /// Its name.
    pub name: String,
    /// The edges.
    pub graph: Graph,
    /// One row per node.
    pub features: Features,
    /// The class of each node, or [`UNLABELLED`].
    pub labels: Buffer<u32>,
    /// The name of each class.
    pub class_names: Vec<String>,
    /// The name of each feature column; empty where there are none.
    pub feature_names: Vec<String>,
    /// The feature columns that hold numbers in a unit of their own; all others are used as they are.
    pub numbers: Vec<NumberColumn>,
    /// Facts that were read off the rows of a table, as nobody declared them.
    pub undeclared: Vec<InferredSchema>,
    /// What an edge stands for, such as "payment", where its owner named it: for statements and reports.
    pub relation: Option<String>,
    /// The split, where the data came with one.
    pub split: Option<Split>,
    /// The names of the nodes.
    pub node_ids: NodeIds,
}

impl DatasetParts {
    /// Parts with nothing beside these: nodes are named by their positions, columns have no names, and there is no
    /// split.
    pub fn of(
        name: impl Into<String>,
        graph: Graph,
        features: Features,
        labels: impl Into<Buffer<u32>>,
        class_names: Vec<String>,
    ) -> DatasetParts {
        DatasetParts {
            name: name.into(),
            graph,
            features,
            labels: labels.into(),
            class_names,
            feature_names: vec![],
            numbers: vec![],
            undeclared: vec![],
            relation: None,
            split: None,
            node_ids: NodeIds::Position,
        }
    }
}

impl Dataset {
    /// Checks that the parts fit together.
    pub fn new(parts: DatasetParts) -> Result<Dataset> {
        if parts.graph.nodes() == 0 {
            return Err(Problem::Empty("nodes").into());
        }
        parts.features.check(parts.graph.nodes())?;
        Dataset::unverified(parts)
    }

    /// As [`Dataset::new`], where others look at edges and features.
    pub(crate) fn unverified(mut parts: DatasetParts) -> Result<Dataset> {
        let nodes = parts.graph.nodes();
        if nodes == 0 {
            return Err(Problem::Empty("nodes").into());
        }
        parts.node_ids.check(nodes)?;
        check_labels(&parts.labels, nodes, parts.class_names.len())?;
        let names = parts.feature_names.len();
        if names != 0 && names != parts.features.columns() {
            let (found, expected) = (names as u64, parts.features.columns() as u64);
            return Err(Problem::Length { what: "list of feature names".into(), found, expected }.into());
        }
        parts.relation.as_deref().map(check_relation).transpose()?;
        scale::check(&parts.numbers, parts.features.columns())?;
        if let Some(split) = parts.split.as_ref().filter(|split| split.len() != nodes) {
            let (found, expected) = (split.len() as u64, nodes as u64);
            return Err(Problem::Length { what: "split".into(), found, expected }.into());
        }
        // Files say "test" of nodes whose class is to be found: such a node counts in no accuracy.
        let unlabelled = |node: &usize| parts.labels[*node] == UNLABELLED;
        parts.split = parts.split.map(|split| split.without((0..nodes).filter(unlabelled)));
        Ok(Dataset(parts))
    }

    /// Parts of which the caller knows that they fit together, such as a selection from a data set.
    pub(crate) fn from_valid(parts: DatasetParts) -> Dataset {
        debug_assert!(Dataset::new(parts.clone()).is_ok());
        Dataset(parts)
    }

    /// Its name.
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

    /// The class of each node, or [`UNLABELLED`].
    pub fn labels(&self) -> &[u32] {
        &self.0.labels
    }

    /// The class of a node, where it is known.
    pub fn label(&self, node: usize) -> Option<u32> {
        Some(self.0.labels[node]).filter(|&label| label != UNLABELLED)
    }

    /// How many nodes have a label.
    pub fn labelled(&self) -> usize {
        self.labels().iter().filter(|&&label| label != UNLABELLED).count()
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
        for &label in self.labels().iter().filter(|&&label| label != UNLABELLED) {
            counts[label as usize] += 1;
        }
        counts
    }

    /// The name of each feature column; empty where there are none.
    pub fn feature_names(&self) -> &[String] {
        &self.0.feature_names
    }

    /// The feature columns that hold numbers in a unit of their own.
    pub fn numbers(&self) -> &[NumberColumn] {
        &self.0.numbers
    }

    /// How many of them have neither declared bounds nor a map.
    pub fn unbounded_numeric_columns(&self) -> usize {
        self.numbers().iter().filter(|number| number.is_open()).count()
    }

    /// Facts that were read off the rows of a table, as nobody declared them.
    pub fn undeclared(&self) -> &[InferredSchema] {
        &self.0.undeclared
    }

    /// What an edge stands for, where its owner named it.
    pub fn relation(&self) -> Option<&str> {
        self.0.relation.as_deref()
    }

    /// The same data with a name for what an edge stands for, such as "payment": statements, reports and exports use
    /// it.
    ///
    /// # Errors
    /// Anything but 1 to 40 letters, digits, spaces and hyphens, of which a letter is the first.
    pub fn with_relation(mut self, name: &str) -> Result<Dataset> {
        check_relation(name)?;
        self.0.relation = Some(name.to_string());
        Ok(self)
    }

    /// The same data with its number columns brought to scale, and with a column of ones where there are no features at
    /// all, so that there is something to begin with. Done once: a second time changes nothing.
    pub fn prepared(self, how: Preparation) -> Result<Dataset> {
        let mut prepared = self.with_constant_feature_if_empty()?;
        if prepared.0.numbers.iter().all(|number| number.map.is_some()) {
            return Ok(prepared);
        }
        if how != Preparation::Standardise {
            prepared = prepared.rounded()?;
        }
        let rows = prepared.nodes();
        (prepared.0.features, prepared.0.numbers) =
            scale::prepare(prepared.0.features, rows, prepared.0.numbers, how)?;
        Ok(prepared)
    }

    /// The same data with every number as 32 bits hold it: none has an origin any more, which all rows have a say in.
    pub fn rounded(self) -> Result<Dataset> {
        Scaled::from(self).rounded().held()
    }

    /// As [`Dataset::rounded`], copied only where there is an origin.
    pub fn without_origins(&self) -> Result<Cow<'_, Dataset>> {
        match self.0.numbers.iter().any(|number| number.origin.is_some()) {
            true => Ok(Cow::Owned(self.clone().rounded()?)),
            false => Ok(Cow::Borrowed(self)),
        }
    }

    /// The same data, with a column of ones where there are no features at all.
    pub fn with_constant_feature_if_empty(mut self) -> Result<Dataset> {
        if self.0.features.columns() == 0 {
            self.0.features = Features::dense(self.nodes(), 1, room::filled(1f32, self.nodes())?)?;
            self.0.feature_names = vec!["constant".into()];
        }
        Ok(self)
    }

    /// The same data with the number columns mapped as those of another data set were, whose columns are the same.
    pub fn prepared_as(self, other: &[NumberColumn]) -> Result<Dataset> {
        Scaled::from(self).mapped_as(other)?.held()
    }

    /// The parts; the caller keeps them consistent.
    pub(crate) fn parts_mut(&mut self) -> &mut DatasetParts {
        &mut self.0
    }

    /// The same data, whose numbers are used as they are.
    pub fn unscaled(self) -> Result<Dataset> {
        let mut plain = self.rounded()?;
        let numbers = std::mem::take(&mut plain.0.numbers);
        plain.0.numbers = numbers.into_iter().filter_map(NumberColumn::left_alone).collect();
        Ok(plain)
    }

    /// The same data with its features in half precision, see [`Features::halved`].
    pub fn in_half_precision(self) -> Result<Dataset> {
        let mut half = self.rounded()?;
        half.0.features = half.0.features.halved(half.0.graph.nodes())?;
        Ok(half)
    }

    /// The split, where the data came with one.
    pub fn split(&self) -> Option<&Split> {
        self.0.split.as_ref()
    }

    /// The names of the nodes.
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

    /// The same data under another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Dataset {
        self.0.name = name.into();
        self
    }

    /// The same data with a new random split of the nodes that have a label, drawn in the order of their ids: the same
    /// whatever order they stand in.
    pub fn with_random_split(mut self, ratios: Ratios, seed: u64) -> Result<Dataset> {
        let labelled = Split::random(self.labelled(), ratios, seed)?;
        let order = order::of_ids(self.node_ids(), self.nodes());
        self.0.split = Some(if labelled.len() == self.nodes() && order.is_none() {
            labelled
        } else {
            let mut parts = vec![Part::Unused; self.nodes()];
            let at = |place: usize| order.as_ref().map_or(place, |order| order[place] as usize);
            let nodes = (0..self.nodes()).map(at).filter(|&node| self.label(node).is_some());
            nodes.enumerate().for_each(|(at, node)| parts[node] = labelled.part(at));
            Split::from_parts(parts)
        });
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

    /// Of the edges between nodes that have a label, the share between nodes of the same class; `None` without such
    /// edges.
    pub fn homophily(&self) -> Option<f64> {
        let (mut same, mut edges) = (0usize, 0usize);
        for (a, b) in self.graph().iter_edges() {
            if let (Some(a), Some(b)) = (self.label(a as usize), self.label(b as usize)) {
                edges += 1;
                same += usize::from(a == b);
            }
        }
        (edges > 0).then(|| same as f64 / edges as f64)
    }
}

/// Names of relations stand in sentences of statements, in pages and in files of other programs.
fn check_relation(name: &str) -> Result<()> {
    let fits = |c: char| c.is_alphanumeric() || c == ' ' || c == '-';
    let first = name.chars().next().is_some_and(char::is_alphabetic);
    if first && !name.ends_with(' ') && name.chars().count() <= 40 && name.chars().all(fits) {
        return Ok(());
    }
    let problem =
        "a relation is named by 1 to 40 letters, digits, spaces and hyphens, a letter first, such as payment";
    Err(Problem::Invalid(problem.into()).into())
}

fn check_labels(labels: &[u32], nodes: usize, classes: usize) -> Result<()> {
    if classes == 0 {
        return Err(Problem::Empty("classes").into());
    }
    if labels.len() != nodes {
        let (found, expected) = (labels.len() as u64, nodes as u64);
        return Err(Problem::Length { what: "list of labels".into(), found, expected }.into());
    }
    let is_wrong = |label: u32| label as usize >= classes && label != UNLABELLED;
    match labels.iter().position(|&label| is_wrong(label)) {
        None => Ok(()),
        Some(node) => {
            let problem =
                Problem::LabelOutOfRange { label: labels[node].to_string(), classes: classes as u64 };
            Err(problem.at(Place::Node(node as u64)))
        }
    }
}
