//! Rows: what is known about each node besides its edges; and messages: what a node makes of its row for its receivers.

use std::ops::Range;

use progap_graph::{Buffer, Dataset, Features, Part, Split, store};
use progap_nn::{Input, Inputs, Network, embed_rows, probabilities};

use crate::addressed::Addressed;
use crate::scratch::Scratch;
use crate::{Error, Result};

/// The largest magnitude of a feature that training can work with: beyond it squares and sums overflow. Where features
/// are public a larger one is refused with its place; where they are private each value is brought within it by itself,
/// because a refusal would tell of it.
pub const LARGEST_FEATURE: f32 = 1e12;

/// How many nodes' messages are made at a time: enough for many cores, few beside the graph.
const NODES_AT_ONCE: usize = 1 << 16;

/// All of this many nodes, some at a time.
pub(crate) fn blocks(nodes: usize) -> impl Iterator<Item = Range<usize>> {
    (0..nodes).step_by(NODES_AT_ONCE).map(move |first| first..nodes.min(first + NODES_AT_ONCE))
}

/// Features, labels and split: all of a node but its edges.
#[derive(Debug, Clone)]
pub struct Rows {
    pub(crate) features: Features,
    pub(crate) labels: Buffer<u32>,
    pub(crate) split: Split,
    pub(crate) classes: usize,
}

/// An aggregate that left the vault: an input of later stages. It is private already, so anything may be done with it.
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// `nodes * width` values.
    pub values: Buffer<f32>,
    /// The width of the messages.
    pub width: usize,
}

impl Aggregate {
    /// The rows of some nodes, in that order.
    pub(crate) fn select(&self, nodes: &[u32]) -> Aggregate {
        let Aggregate { values, width } = self;
        Input::Dense { columns: *width, values }.tell(nodes);
        let row = |&node: &u32| &values[node as usize * width..][..*width];
        Aggregate { values: nodes.iter().flat_map(row).copied().collect::<Vec<f32>>().into(), width: *width }
    }
}

/// The aggregates so far, in the order in which they were asked for.
pub type Aggregates = Vec<Aggregate>;

/// The messages of nodes to their receivers. Each is brought to norm one at most.
#[derive(Debug, Clone, Copy)]
pub enum Message<'a> {
    /// The output of a branch of a network for its input.
    Embedding {
        /// The network.
        network: &'a Network,
        /// The branch, which is also the number of its input.
        branch: usize,
    },
    /// An input as it is: 0 for the rows, then the aggregates.
    Input(usize),
    /// The node's class as far as it is known, centred: the label of a training node, else, also where there is no
    /// label, the probabilities that a network gives.
    Class {
        /// The network that knows the inputs so far.
        network: &'a Network,
    },
    /// As [`Message::Class`], as far as a model of features and addressed sums knows it.
    Product {
        /// The model that knows the rows and the sums so far.
        model: &'a Addressed,
    },
    /// A message that a method makes of public rows and of what left the vault before. Not at node level, where rows
    /// are private.
    Made {
        /// The function that makes it.
        maker: Maker<'a>,
        /// The values of each node.
        width: usize,
        /// Whether they are sent against the direction of edges.
        back: bool,
    },
}

/// Makes the messages of a block of nodes, row after row: asked once for each block, so that they need not all be there
/// at once.
#[derive(Clone, Copy)]
pub struct Maker<'a>(pub &'a dyn Fn(Range<usize>) -> Result<Vec<f32>>);

impl std::fmt::Debug for Maker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Maker")
    }
}

impl Message<'_> {
    /// Whether a method made it of rows that are public.
    pub(crate) fn is_made(&self) -> bool {
        matches!(self, Message::Made { .. })
    }

    /// The number of values in a message.
    pub fn width(&self, aggregates: &Aggregates, (columns, classes): (usize, usize)) -> usize {
        match *self {
            Message::Embedding { network, .. } => network.architecture().hidden,
            Message::Input(0) => columns,
            Message::Input(number) => aggregates.get(number - 1).map_or(0, |aggregate| aggregate.width),
            Message::Class { .. } | Message::Product { .. } => classes,
            Message::Made { width, .. } => width,
        }
    }
}

impl Rows {
    /// The rows of a data set, every entry of them checked once.
    pub(crate) fn new(features: Features, labels: Buffer<u32>, split: Split, classes: usize) -> Result<Rows> {
        let rows = Rows { features: features.clamped(LARGEST_FEATURE), labels, split, classes };
        Inputs::new(rows.views(&[]))?;
        Ok(rows)
    }

    /// Rows whose columns are still to be brought to scale: until then a unit may make any number of them.
    pub(crate) fn unscaled(features: Features, labels: Buffer<u32>, split: Split, classes: usize) -> Rows {
        Rows { features, labels, split, classes }
    }

    /// The rows of a release's nodes, which are public or the nodes' own.
    pub fn of_nodes(nodes: &Dataset) -> Result<Rows> {
        let parts = nodes.clone().into_parts();
        let split = parts.split.unwrap_or_else(|| Split::from_parts(std::iter::empty()));
        Rows::new(parts.features, parts.labels, split, parts.class_names.len())
    }

    /// The inputs of a stage: the features, then every aggregate.
    pub fn inputs<'a>(&'a self, aggregates: &'a [Aggregate]) -> Result<Inputs<'a>> {
        Ok(Inputs::checked_before(self.views(aggregates))?)
    }

    /// The rows alone.
    pub fn own(&self) -> Result<Inputs<'_>> {
        Ok(Inputs::checked_before(self.views(&[]))?)
    }

    fn views<'a>(&'a self, aggregates: &'a [Aggregate]) -> Vec<Input<'a>> {
        let aggregated = aggregates.iter().map(|a| Input::Dense { columns: a.width, values: &a.values });
        std::iter::once(self.input()).chain(aggregated).collect()
    }

    /// The features as an input.
    pub(crate) fn input(&self) -> Input<'_> {
        input(&self.features)
    }

    /// The features of some nodes, in that order.
    pub(crate) fn features_of(&self, nodes: &[u32]) -> Features {
        self.input().tell(nodes);
        self.features.select(nodes)
    }

    /// The rows with other features, a dense row for each node.
    pub(crate) fn with_features(&self, columns: usize, values: Buffer<f32>) -> Result<Rows> {
        let features = Features::dense(self.labels.len(), columns, values)?;
        Ok(Rows { features, ..self.clone() })
    }

    /// The class of each node, or that it has none ([`progap_graph::UNLABELLED`]): such a node is in no part of the
    /// split.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// The nodes of a part.
    pub fn nodes(&self, part: Part) -> Vec<u32> {
        self.split.nodes(part).map(|node| node as u32).collect()
    }

    /// For each node, whether it is a training node.
    pub(crate) fn training_nodes(&self) -> Vec<bool> {
        (0..self.labels.len()).map(|node| self.split.part(node) == Part::Train).collect()
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The rows with what an encoder says of them, normalised, in the place of the features: each row by itself.
    pub(crate) fn encoded(&self, encoder: &Network, mut scratch: Scratch) -> Result<Rows> {
        for nodes in blocks(self.labels.len()) {
            let message = Message::Embedding { network: encoder, branch: 0 };
            scratch.add(&self.messages_of(nodes, message, &vec![])?)?;
        }
        let features = Features::Dense { columns: encoder.architecture().hidden, values: scratch.finish()? };
        Ok(Rows { features, ..self.clone() })
    }

    /// The messages of all nodes: of length one, or zero; those that a method made may be shorter.
    pub(crate) fn messages(&self, message: Message<'_>, aggregates: &Aggregates) -> Result<Vec<f32>> {
        self.messages_of(0..self.labels.len(), message, aggregates)
    }

    /// As [`Rows::messages`], of some nodes.
    pub(crate) fn messages_of(
        &self,
        nodes: Range<usize>,
        message: Message<'_>,
        aggregates: &Aggregates,
    ) -> Result<Vec<f32>> {
        store::release_pages_if_full();
        if let Message::Made { maker, width, .. } = message {
            let mut values = maker.0(nodes.clone())?;
            if values.len() != nodes.len() * width {
                return Err(Error::internal("every node sends one message"));
            }
            // Shorter ones stay as they are.
            let long = |row: &&mut [f32]| row.iter().map(|v| v * v).sum::<f32>() > 1.0;
            values.chunks_exact_mut(width.max(1)).filter(long).for_each(normalise);
            return Ok(values);
        }
        let inputs = self.inputs(aggregates)?;
        let input = |number: usize| {
            let found = inputs.as_slice().get(number).copied();
            found.ok_or_else(|| Error::unsuitable(format!("there is no input {number} yet")))
        };
        let sizes = (inputs.as_slice()[0].columns(), self.classes);
        let width = message.width(aggregates, sizes);
        let mut messages = match message {
            Message::Class { network } => {
                self.known_classes(nodes, |others| Ok(probabilities(network, &inputs, others)?))?
            }
            Message::Product { model } => {
                self.known_classes(nodes, |others| model.probabilities(&inputs, others))?
            }
            Message::Embedding { network, branch } => embed_rows(network, branch, input(branch)?, nodes)?,
            Message::Input(number) => match input(number)? {
                Input::Dense { values, .. } => values[nodes.start * width..nodes.end * width].to_vec(),
                Input::Half { values, .. } => values[nodes.start * width..nodes.end * width]
                    .iter()
                    .map(|value| value.to_f32())
                    .collect(),
                Input::Sparse { .. } => {
                    return Err(Error::unsuitable("sparse features must be encoded before they are sent"));
                }
            },
            Message::Made { .. } => return Err(Error::internal("what was made is sent as it is")),
        };
        messages.chunks_exact_mut(width.max(1)).for_each(normalise);
        Ok(messages)
    }

    /// Each node's class as far as it is known, less what everyone knows: the label of a training node, the
    /// probabilities of the others. Labels of validation and test nodes are not looked at, and some nodes have none.
    fn known_classes(
        &self,
        nodes: Range<usize>,
        probabilities: impl FnOnce(&[u32]) -> Result<Vec<f32>>,
    ) -> Result<Vec<f32>> {
        let (trains, uniform) =
            (|node: usize| self.split.part(node) == Part::Train, 1.0 / self.classes as f32);
        let mut messages = vec![0f32; nodes.len() * self.classes];
        let mut set = |node: usize, class: &dyn Fn(usize) -> f32| {
            let row = &mut messages[(node - nodes.start) * self.classes..][..self.classes];
            row.iter_mut().enumerate().for_each(|(c, value)| *value = class(c) - uniform);
        };
        for node in nodes.clone().filter(|&node| trains(node)) {
            set(node, &|c| if c == self.labels[node] as usize { 1.0 } else { 0.0 });
        }
        let others: Vec<u32> = nodes.clone().filter(|&node| !trains(node)).map(|node| node as u32).collect();
        let known = probabilities(&others)?;
        for (&node, p) in others.iter().zip(known.chunks_exact(self.classes)) {
            set(node as usize, &|c| p[c]);
        }
        Ok(messages)
    }
}

/// Features as an input.
pub(crate) fn input(features: &Features) -> Input<'_> {
    match features {
        Features::Dense { columns, values } => Input::Dense { columns: *columns, values },
        Features::Half { columns, values } => Input::Half { columns: *columns, values },
        Features::Sparse { columns, offsets, indices, values } => {
            Input::Sparse { columns: *columns, offsets, indices, values: values.as_deref() }
        }
    }
}

/// Divides a row by its length; a zero row stays zero.
pub fn normalise(row: &mut [f32]) {
    let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt();
    if norm > 0.0 {
        row.iter_mut().for_each(|v| *v /= norm);
    }
}
