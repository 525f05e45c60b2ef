//! What is locked up, and what of it is public.

use std::ops::Range;

use progap_graph::{Dataset, DatasetParts, Graph, NumberColumn, Part};
use progap_privacy::noise::{AnySource, Randomness, SenderBound};

use super::sample::{sample_out_edges, sample_stream};
use crate::plan::influence;
use crate::ranks::{Partition, RankData, Ranks};
use crate::rows::Rows;
use crate::settings::{Bounding, ClassWeights, Direction, Level, Settings};
use crate::{Error, Remedy, Result};

/// The private data of a vault. Outside of it nobody reads a field: what is public has a method.
pub struct Private {
    pub(super) settings: Settings,
    pub(super) graph: Graph,
    /// Where nodes receive along edges in both directions: every edge turned round.
    pub(super) back: Option<Graph>,
    /// Where batches hold nodes with their senders: all edges, for predictions, which nothing protects.
    pub(super) every_edge: Option<Graph>,
    pub(super) bound: SenderBound,
    /// Of each node, by how much the square of its message's length is multiplied on its way: the number of its edges
    /// where they have no weights. Empty where what a node sends does not depend on it.
    pub(super) out_degrees: Vec<u32>,
    pub(super) rows: Rows,
    /// Number columns that no map was applied to yet.
    pub(super) unbounded_numeric_columns: Vec<NumberColumn>,
    pub(super) train: Vec<u32>,
    /// Where nodes lie in several ranks, the part of this one; then the graph above has no edges, and rows are those of
    /// its own nodes.
    pub(super) part: Option<Partition>,
    /// Where edges alone lie in several ranks, those into some nodes; then the graph above has no edges, and every rank
    /// has all rows.
    pub(super) edges: Option<Partition>,
}

impl Private {
    /// Repeated edges and self-loops are removed first: an edge is there or not.
    pub(super) fn new(
        dataset: Dataset,
        settings: &Settings,
        randomness: &mut Randomness<AnySource>,
    ) -> Result<Self> {
        let dataset = dataset.prepared(settings.preparation())?;
        let DatasetParts { graph, features, labels, class_names, split, numbers, .. } = dataset.into_parts();
        let split = split.ok_or_else(|| Error::unsuitable("the data set has no split"))?;
        if graph.weights().is_some() && !settings.method.can().edge_weights {
            return Err(weightless(settings));
        }
        let graph = match settings.direction {
            Direction::Out => graph.transpose(),
            Direction::In | Direction::Both => graph,
        };
        let graph = progap_graph::transform::deduplicate(progap_graph::transform::remove_self_loops(graph));
        let back = match (settings.direction, settings.level) {
            (Direction::Both, Level::Node) => {
                return Err(Error::internal("messages go along the edges only"));
            }
            (Direction::Both, _) => Some(graph.transpose()),
            _ => None,
        };
        let bound = sender_bound(settings);
        let every_edge = settings.method.can().neighbourhood_batches.then(|| graph.clone());
        let graph = match bound {
            SenderBound::Sample { max_edges } => sample_out_edges(&graph, max_edges, randomness)?,
            _ => graph,
        };
        let out_degrees = match bound {
            SenderBound::Edge | SenderBound::Sample { .. } => vec![],
            SenderBound::Weight { .. } | SenderBound::Cap { .. } => graph.out_strengths(),
        };
        let unbounded_numeric_columns: Vec<NumberColumn> =
            numbers.into_iter().filter(NumberColumn::is_open).collect();
        let rows = match unbounded_numeric_columns.is_empty() {
            true => Rows::new(features, labels, split, class_names.len())?,
            false => Rows::unscaled(features, labels, split, class_names.len()),
        };
        let train = rows.nodes(Part::Train);
        let settings = settings.clone();
        Ok(Private {
            settings,
            graph,
            back,
            every_edge,
            bound,
            out_degrees,
            rows,
            unbounded_numeric_columns,
            train,
            part: None,
            edges: None,
        })
    }

    /// As [`Private::new`], for one of several ranks: the rows of its own nodes and the edges into them, and no others.
    pub(super) fn over(
        ranks: &Ranks,
        data: &RankData,
        settings: &Settings,
        randomness: &mut Randomness<AnySource>,
    ) -> Result<Self> {
        let bound = sender_bound(settings);
        let sample = match bound {
            SenderBound::Sample { max_edges } if settings.touches_edges() => {
                Some((max_edges as usize, sample_stream(randomness)?))
            }
            _ => None,
        };
        let (part, rows) = (Partition::new(data, settings, ranks, sample)?, data.rows()?);
        // Where no message has a weight, nobody asks how many edges a sender has.
        let out_degrees = match bound {
            SenderBound::Edge | SenderBound::Sample { .. } => vec![],
            SenderBound::Weight { .. } | SenderBound::Cap { .. } => part.out_degrees()?,
        };
        Ok(Private {
            settings: settings.clone(),
            graph: Graph::from_rows(vec![0u64], Vec::<u32>::new())?,
            back: None,
            every_edge: None,
            bound,
            out_degrees,
            rows,
            unbounded_numeric_columns: data.unbounded_numeric_columns().cloned().collect(),
            train: part.train.clone(),
            part: Some(part),
            edges: None,
        })
    }

    /// As [`Private::new`], for one of several ranks that all have all rows: the edges into its own nodes, and no
    /// others.
    pub(super) fn with_edges_over(
        ranks: &Ranks,
        data: &RankData,
        settings: &Settings,
        randomness: &mut Randomness<AnySource>,
    ) -> Result<Self> {
        let parts = data.dataset.clone().into_parts();
        let graph = Graph::from_rows(vec![0u64; data.dataset.nodes() + 1], Vec::<u32>::new())?;
        let rows = Dataset::new(DatasetParts { graph, ..parts })?;
        let private = Private::new(rows, settings, randomness)?;
        private.need_public_rows()?;
        Ok(Private { edges: Some(Partition::new(data, settings, ranks, None)?), ..private })
    }

    /// Where edges lie in several ranks, those of this one.
    pub(super) fn held_edges(&self) -> Option<&Partition> {
        self.part.as_ref().or(self.edges.as_ref())
    }

    /// The nodes, among those whose rows are here, that speak here: each speaks on one rank.
    pub(super) fn speakers(&self) -> Range<usize> {
        self.edges.as_ref().map_or(0..self.rows.labels.len(), Partition::own)
    }

    /// Where nodes lie in several ranks, the part of this one.
    pub(crate) fn part(&self) -> Option<&Partition> {
        self.part.as_ref()
    }

    /// How many nodes are in a part of the split, of all ranks; the split is public.
    pub(crate) fn count(&self, part: Part) -> usize {
        self.part.as_ref().map_or_else(|| self.rows.split.count(part), |held| held.count(part))
    }

    /// The nodes of a part of the split, which is public.
    pub(crate) fn nodes_of(&self, part: Part) -> Vec<u32> {
        self.rows.nodes(part)
    }

    /// For each node, whether it trains.
    pub(crate) fn is_train(&self) -> Vec<bool> {
        self.rows.training_nodes()
    }

    /// The rows, where they are public.
    pub fn public_rows(&self) -> Option<&Rows> {
        (self.settings.level != Level::Node).then_some(&self.rows)
    }

    /// The rows, for what exists only where they are public.
    ///
    /// # Errors
    /// Private rows.
    pub fn need_public_rows(&self) -> Result<&Rows> {
        self.public_rows().ok_or(Error::internal("rows are private at node level"))
    }

    /// How much each class counts in training, where the settings balance them. A function of public labels; at node
    /// level, where they are private, [`ClassCounts`](super::ClassCounts) tells.
    pub fn class_weights(&self) -> Option<Vec<f32>> {
        let rows = self.public_rows().filter(|_| self.settings.class_weights == ClassWeights::Balanced)?;
        if let Some(part) = &self.part {
            return Some(weights_of(&part.train_classes));
        }
        let labels: Vec<u32> = self.train.iter().map(|&node| rows.labels()[node as usize]).collect();
        Some(balanced_weights(&labels, rows.classes()))
    }

    /// The graph, where it is public: at level none.
    pub fn public_graph(&self) -> Option<&Graph> {
        (self.settings.level == Level::None).then_some(&self.graph)
    }

    /// The number of nodes, which is public.
    pub fn nodes(&self) -> usize {
        self.part.as_ref().map_or_else(|| self.graph.nodes(), Partition::nodes)
    }

    /// The number of nodes whose rows are here: all, unless nodes lie in several ranks.
    pub(crate) fn own_nodes(&self) -> usize {
        self.rows.labels.len()
    }

    /// The columns of the rows, which are public.
    pub fn columns(&self) -> usize {
        self.rows.features.columns()
    }

    /// The number of classes, which is public.
    pub fn classes(&self) -> usize {
        self.rows.classes
    }
}

/// How much of a sum a sender can be.
fn sender_bound(settings: &Settings) -> SenderBound {
    match (settings.level, settings.bounding) {
        (Level::None | Level::Edge, _) => SenderBound::Edge,
        (Level::Node, Bounding::Weight) => SenderBound::Weight { bound: influence(settings) },
        (Level::Node, Bounding::Cap) => SenderBound::Cap { bound: influence(settings) },
        (Level::Node, Bounding::Sample) => SenderBound::Sample { max_edges: settings.max_degree },
    }
}

/// A weight for each class with which all count the same: n / (C n_c), with n_c of the n labels in the class.
pub(crate) fn balanced_weights(labels: &[u32], classes: usize) -> Vec<f32> {
    let mut counts = vec![0usize; classes];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    weights_of(&counts)
}

/// As [`balanced_weights`], where classes were counted.
fn weights_of(counts: &[usize]) -> Vec<f32> {
    let share = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
    // A class that no node has is in no batch.
    counts.iter().map(|&count| if count > 0 { (share / count as f64) as f32 } else { 1.0 }).collect()
}

/// A method that takes every edge for as good as any other.
pub(crate) fn weightless(settings: &Settings) -> Error {
    Error::unsuitable(format!(
        "the edges have weights, and the method {} takes every edge for as good as any other",
        settings.method
    ))
    .remedy(Remedy::words("leave the weights out"))
    .remedy(Remedy::set("method", "progap-labels"))
}
