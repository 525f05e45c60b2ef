//! A data set from what a program has in memory.

use crate::{Dataset, DatasetParts, Features, Graph, NodeIds, Problem, Result, Split, UNLABELLED, transform};

/// Puts a [`Dataset`] together from edges, features and labels in memory.
///
/// ```
/// use progap_graph::Dataset;
///
/// // Three people, two columns each; 0 and 1 are neighbours, and 1 knows 2.
/// let data = Dataset::builder()
///     .edges([(0, 1), (1, 0), (1, 2)])
///     .features(2, &[0.5, 1.0, 0.0, 1.0, 0.5, 0.0])
///     .labels(&[0, 1, 0])
///     .masks(&[true, false, false], &[false, true, false], &[false, false, true])
///     .build()?;
/// assert_eq!((data.nodes(), data.graph().edges(), data.classes()), (3, 3, 2));
/// # Ok::<(), progap_graph::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct DatasetBuilder {
    name: Option<String>,
    edges: (Vec<u32>, Vec<u32>),
    symmetrise: bool,
    columns: usize,
    values: Vec<f32>,
    labels: Vec<u32>,
    class_names: Option<Vec<String>>,
    feature_names: Vec<String>,
    split: Option<Result<Split>>,
    ids: Option<NodeIds>,
}

impl Dataset {
    /// Puts a data set together from what is in memory.
    pub fn builder() -> DatasetBuilder {
        DatasetBuilder::default()
    }
}

impl DatasetBuilder {
    /// Its name; by it a ledger finds its budget, where no other data is known by that name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds edges: sender and receiver, counted from 0.
    #[must_use]
    pub fn edges(mut self, edges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        self.edges.extend(edges);
        self
    }

    /// Adds the edge back to every edge that has none.
    #[must_use]
    pub fn symmetrise(mut self) -> Self {
        self.symmetrise = true;
        self
    }

    /// The features: this many columns, one row per node, row after row.
    #[must_use]
    pub fn features(mut self, columns: usize, values: &[f32]) -> Self {
        (self.columns, self.values) = (columns, values.to_vec());
        self
    }

    /// The class of every node, counted from 0, or [`UNLABELLED`]. There are as many nodes as labels.
    #[must_use]
    pub fn labels(mut self, labels: &[u32]) -> Self {
        self.labels = labels.to_vec();
        self
    }

    /// The names of the classes; their numbers if not given.
    #[must_use]
    pub fn class_names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.class_names = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The names of the feature columns.
    #[must_use]
    pub fn feature_names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.feature_names = names.into_iter().map(Into::into).collect();
        self
    }

    /// The names of the nodes; their numbers if not given.
    #[must_use]
    pub fn node_ids<S: AsRef<str>>(mut self, ids: impl IntoIterator<Item = S>) -> Self {
        self.ids = Some(NodeIds::from_texts(ids));
        self
    }

    /// Which nodes train, which choose between models, and which are only ever compared with predictions. Without it a
    /// split can be drawn by [`Dataset::or_random_split`].
    #[must_use]
    pub fn masks(mut self, train: &[bool], val: &[bool], test: &[bool]) -> Self {
        self.split = Some(Split::from_masks(train, val, test));
        self
    }

    /// As [`DatasetBuilder::masks`], with a split.
    #[must_use]
    pub fn split(mut self, split: Split) -> Self {
        self.split = Some(Ok(split));
        self
    }

    /// The data set.
    ///
    /// # Errors
    /// Parts that do not fit together: lists of other lengths, edges to nodes that are not there, labels beyond the
    /// classes, features that are not finite.
    pub fn build(self) -> Result<Dataset> {
        let nodes = self.labels.len();
        let graph = Graph::from_edges(nodes, &self.edges.0, &self.edges.1)?;
        let graph = if self.symmetrise { transform::symmetrise(graph) } else { graph };
        if self.columns == 0 && !self.values.is_empty() {
            return Err(Problem::Invalid("there are features, but no columns".into()).into());
        }
        let features = match self.columns {
            0 => Features::none(),
            columns => Features::dense(nodes, columns, self.values)?,
        };
        let classes = self
            .labels
            .iter()
            .filter(|&&label| label != UNLABELLED)
            .max()
            .map_or(0, |&last| last as usize + 1);
        let class_names =
            self.class_names.unwrap_or_else(|| (0..classes).map(|class| class.to_string()).collect());
        Dataset::new(DatasetParts {
            name: self.name.unwrap_or_else(|| "unnamed".into()),
            graph,
            features,
            numbers: vec![],
            undeclared: vec![],
            relation: None,
            labels: self.labels.into(),
            class_names,
            feature_names: self.feature_names,
            split: self.split.transpose()?,
            node_ids: self.ids.unwrap_or(NodeIds::Position),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Part;

    fn three() -> DatasetBuilder {
        Dataset::builder().edges([(0, 1), (1, 2)]).features(1, &[1.0, 2.0, 3.0]).labels(&[0, 1, 0])
    }

    #[test]
    fn parts_become_a_data_set() {
        let data = three().name("three").symmetrise().node_ids(["a", "b", "c"]).class_names(["x", "y"]);
        let data =
            data.masks(&[true, true, false], &[false; 3], &[false, false, true]).build().expect("built");
        assert_eq!((data.name(), data.graph().edges(), data.graph().is_symmetric()), ("three", 4, true));
        assert_eq!((data.node_ids().name(1).as_str(), data.class_names()[1].as_str()), ("b", "y"));
        assert_eq!(data.split().expect("a split").count(Part::Train), 2);
        assert_eq!(data.features().to_dense(3), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let said = |builder: DatasetBuilder| builder.build().expect_err("refused").to_string();
        assert!(said(Dataset::builder()).contains("no nodes"), "{}", said(Dataset::builder()));
        assert!(said(three().edges([(0, 9)])).contains('9'));
        assert!(said(three().features(2, &[1.0])).contains('6'));
        assert!(said(three().class_names(["only"])).contains("label 1"));
        assert!(said(three().masks(&[true; 3], &[true; 3], &[false; 3])).contains("more than one"));
        assert!(said(three().masks(&[true; 2], &[false; 2], &[false; 2])).contains('3'));
    }
}
