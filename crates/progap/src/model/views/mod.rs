//! A model of two views of a node: what its features say of its class, what the noisy sums say, and how both are
//! weighed.
//!
//! ```text
//! known = log p(y | x)             from the features x of the node
//! seen  = log g(y | sums of classes)
//! log p = combination(known, seen, sums, x)
//! ```
//!
//! The first and the last are models of tables ([`TableModel`]): linear, or with a hidden layer, and with trees where
//! these help.

mod block;
mod table;

use progap_nn::{Input, Inputs, RowScaling, Softmax, SoftmaxShape, Tensor};

pub use block::SumShape;
pub use block::{Block, NO_SENDER, Part, read, read_width};
pub use table::{MAX_HIDDEN, TableModel};

use crate::files::Tensors;
use crate::{Error, ErrorKind, Result};

/// The most numbers of all trees of a model.
pub const MAX_TREE_NUMBERS: usize = 1 << 20;

/// The shape of [`Views`], known from the settings, public sizes and what was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewsShape {
    /// Feature columns.
    pub columns: usize,
    /// Classes.
    pub classes: usize,
    /// The width of the graph view's hidden layer.
    pub hidden: usize,
    /// The aggregates that are read; none if features alone are used.
    pub sums: Vec<SumShape>,
    /// Whether each aggregate is also read row by row divided by its length.
    pub directions: bool,
}

impl ViewsShape {
    /// The columns of what is read of all aggregates.
    pub fn width(&self) -> usize {
        read_width(&self.sums, self.directions, Part::All)
    }

    fn features(&self, scaling: RowScaling) -> SoftmaxShape {
        SoftmaxShape { inputs: vec![self.columns], hidden: 0, classes: self.classes, scaling }
    }

    fn graph(&self) -> SoftmaxShape {
        let inputs = vec![read_width(&self.sums, self.directions, Part::Labels)];
        SoftmaxShape { inputs, hidden: self.hidden, classes: self.classes, scaling: RowScaling::None }
    }

    /// The columns that every combination reads; one may read the features beside them.
    pub fn joined(&self) -> [usize; 3] {
        [self.classes, self.classes, self.width()]
    }

    fn combination(&self) -> SoftmaxShape {
        let inputs = self.joined().to_vec();
        SoftmaxShape { inputs, hidden: 0, classes: self.classes, scaling: RowScaling::None }
    }

    /// A combination that weighs both views, made one that gives the sums themselves no weight.
    pub fn blind_to_sums(&self, views: &Softmax) -> Result<Softmax> {
        let shape = self.combination();
        let mut state: Vec<(&str, Vec<usize>, Vec<f32>)> =
            views.state().into_iter().map(|(name, shape, values)| (name, shape, values.to_vec())).collect();
        for (_, size, values) in state.iter_mut().filter(|(name, ..)| *name == "weight") {
            *size = vec![shape.inputs.iter().sum(), self.classes];
            values.resize(size.iter().product(), 0.0);
        }
        let tensors = state.iter().map(|(name, shape, values)| Tensor { name, shape, values });
        Ok(Softmax::from_state(shape, tensors)?)
    }

    /// The fewest parameters of a model of this shape: of linear ones, without trees.
    ///
    /// # Errors
    /// A shape that no model has.
    pub fn parameter_count(&self) -> Result<usize> {
        let sums = self.sums.iter().all(|sum| {
            (sum.classes == 0 || sum.classes == self.classes)
                && sum.features <= 1024
                && sum.width() <= 1 << 17
        });
        let possible = self.columns <= 1 << 24
            && (1..=1 << 16).contains(&self.classes)
            && self.hidden <= 1024
            && self.sums.len() <= 64
            && sums
            && self.sums.first().is_none_or(|sum| sum.classes > 0);
        if !possible {
            return Err(Error::unsuitable("no model of two views has such a shape"));
        }
        let features = self.features(RowScaling::WeightedUnit).parameter_count() + self.columns + 1;
        Ok(match self.sums.len() {
            0 => features,
            count => {
                let (graph, combination) = (self.graph(), self.combination());
                features + Block::NUMBERS * count + graph.parameter_count() + combination.parameter_count()
            }
        })
    }

    /// The most parameters of a model of this shape: with hidden layers, and trees.
    pub fn max_parameters(&self) -> Result<usize> {
        let least = self.parameter_count()?;
        let columns: usize = self.joined().iter().sum::<usize>() + self.columns;
        let hidden = (self.columns + columns + 2) * MAX_HIDDEN + 2 * MAX_HIDDEN * self.classes;
        Ok(least + self.columns * self.classes + hidden + MAX_TREE_NUMBERS)
    }
}

/// The view of the sums, and how it is weighed against the features.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphView {
    pub blocks: Vec<Block>,
    /// It reads what sums say of classes.
    pub view: Softmax,
    /// It reads both views, the sums, and perhaps the features.
    pub combination: TableModel,
}

/// A model of two views.
#[derive(Debug, Clone, PartialEq)]
pub struct Views {
    shape: ViewsShape,
    features: TableModel,
    graph: Option<GraphView>,
}

impl Views {
    pub fn new(shape: ViewsShape, features: TableModel, graph: Option<GraphView>) -> Views {
        Views { shape, features, graph }
    }

    /// The same with a number added to the logarithm of each class's odds, if there is one.
    pub fn with_odds(mut self, odds: Option<&[f32]>) -> Views {
        if let Some(odds) = odds {
            let last = self.graph.as_mut().map_or(&mut self.features, |graph| &mut graph.combination);
            last.base.shift_logits(odds);
        }
        self
    }

    /// The view of the features, and that of the sums if there is one.
    pub fn parts(&self) -> (&TableModel, Option<&GraphView>) {
        (&self.features, self.graph.as_ref())
    }

    /// The shape.
    pub fn shape(&self) -> &ViewsShape {
        &self.shape
    }

    /// Whether every parameter is a finite number, and every unit one that can be divided by.
    pub fn is_finite(&self) -> bool {
        let finite = |model: &Softmax| {
            model.state().iter().all(|(_, _, values)| values.iter().all(|value| value.is_finite()))
        };
        self.features.is_finite()
            && self.graph.as_ref().is_none_or(|graph| {
                graph.blocks.iter().all(|block| block.is_sound())
                    && finite(&graph.view)
                    && graph.combination.is_finite()
            })
    }

    /// The probability of each class for some nodes, row after row; `inputs` are the rows and the aggregates.
    pub fn probabilities(&self, inputs: &Inputs<'_>, nodes: &[u32]) -> Result<Vec<f32>> {
        let mut values = self.log_probabilities(inputs, nodes)?;
        values.iter_mut().for_each(|value| *value = value.exp());
        Ok(values)
    }

    /// The logarithms of the probabilities.
    pub fn log_probabilities(&self, inputs: &Inputs<'_>, nodes: &[u32]) -> Result<Vec<f32>> {
        const NODES_AT_ONCE: usize = 1 << 16;
        let (own, aggregates) = self.split(inputs)?;
        let own = Inputs::checked_before(vec![own])?;
        let mut all = Vec::with_capacity(nodes.len() * self.shape.classes);
        for nodes in nodes.chunks(NODES_AT_ONCE) {
            progap_graph::store::release_pages_if_full();
            let mut known = self.features.logits(&own, nodes)?;
            log_softmax(&mut known, self.shape.classes);
            all.extend(match &self.graph {
                None => known,
                Some(graph) => {
                    let reads = graph.combination.reads_beyond(&self.shape.joined());
                    let rows = if reads { Some(own.dense_rows(nodes)?) } else { None };
                    let sums = Sums::of(&graph.blocks, &aggregates, nodes, self.shape.directions);
                    graph.combined(&self.shape, (&known, rows.as_deref()), &sums)?
                }
            });
        }
        Ok(all)
    }

    /// The rows, and the aggregates that are read.
    fn split<'i>(&self, inputs: &'i Inputs<'_>) -> Result<(Input<'i>, Vec<&'i [f32]>)> {
        const OTHER: ErrorKind = ErrorKind::Internal("the inputs are not those of the model");
        let (&own, rest) = inputs.as_slice().split_first().ok_or(OTHER)?;
        if own.columns() != self.shape.columns || rest.len() != self.shape.sums.len() {
            return Err(OTHER.into());
        }
        let aggregate = |(input, sum): (&Input<'i>, &SumShape)| match *input {
            Input::Dense { columns, values } if columns == sum.width() => Ok(values),
            _ => Err(OTHER.into()),
        };
        Ok((own, rest.iter().zip(&self.shape.sums).map(aggregate).collect::<Result<_>>()?))
    }

    pub fn add_to(&self, tensors: &mut Tensors, prefix: &str) {
        self.features.add_to(tensors, &format!("{prefix}features"));
        let mut add = |name: &str, shape: Vec<usize>, values: &[f32]| {
            tensors.values.insert(format!("{prefix}{name}"), (shape, values.to_vec()));
        };
        if let Some(graph) = &self.graph {
            for (name, shape, values) in graph.view.state() {
                add(&format!("graph.{name}"), shape, values);
            }
            let numbers: Vec<f32> = graph.blocks.iter().flat_map(|block| block.numbers()).collect();
            add("aggregates", vec![graph.blocks.len(), Block::NUMBERS], &numbers);
        }
        // So that the shape is the same whichever scaling was chosen.
        let unit = self.features.base.shape().scaling != RowScaling::None;
        add("features.unit", vec![1], &[f32::from(u8::from(unit))]);
        if !unit {
            add("features.columns", vec![self.shape.columns], &vec![1.0; self.shape.columns]);
        }
        if let Some(graph) = &self.graph {
            graph.combination.add_to(tensors, &format!("{prefix}combination"));
        }
    }

    /// A model of a shape, with the tensors under a prefix; every tensor must be there, and no other.
    pub fn from(tensors: &Tensors, prefix: &str, shape: ViewsShape) -> Result<Views> {
        let all: Vec<Tensor<'_>> = tensors.under(prefix).collect();
        let changed = || Error::unsuitable("its tensors do not have the shapes that its description gives");
        let named = |name: &str, shape: &[usize]| {
            all.iter().find(|tensor| tensor.name == name && tensor.shape == shape).ok_or_else(changed)
        };
        let unit = match named("features.unit", &[1])?.values {
            [0.0] => false,
            [1.0] => true,
            _ => return Err(changed()),
        };
        let scaling = if unit { RowScaling::WeightedUnit } else { RowScaling::None };
        let weights = named("features.columns", &[shape.columns])?.values;
        if !unit && weights.iter().any(|&weight| weight != 1.0) {
            return Err(changed());
        }
        let written_beside = |name: &str| {
            name == "features.unit" || (!unit && name == "features.columns") || name == "aggregates"
        };
        let rest: Vec<Tensor<'_>> =
            all.iter().copied().filter(|tensor| !written_beside(tensor.name)).collect();
        let columns = [shape.columns];
        let features = TableModel::from(&rest, "features", (&columns, &columns), shape.classes, scaling)?;
        let known: &[&str] =
            if shape.sums.is_empty() { &["features."] } else { &["features.", "graph.", "combination."] };
        let numbers = all.iter().any(|tensor| tensor.name == "aggregates");
        if numbers == shape.sums.is_empty()
            || rest.iter().any(|t| known.iter().all(|k| !t.name.starts_with(k)))
        {
            return Err(changed());
        }
        let graph = match shape.sums.len() {
            0 => None,
            count => {
                let numbers = named("aggregates", &[count, Block::NUMBERS])?.values;
                let numbers = numbers.as_chunks::<{ Block::NUMBERS }>().0;
                let own = rest.iter().filter_map(|tensor| {
                    Some(Tensor { name: tensor.name.strip_prefix("graph.")?, ..*tensor })
                });
                let view = Softmax::from_state(shape.graph(), own)?;
                let least = shape.joined();
                let with_rows = [least[0], least[1], least[2], shape.columns];
                let (part, scaling) = ("combination", RowScaling::None);
                let combination =
                    TableModel::from(&rest, part, (&least, &with_rows), shape.classes, scaling)?;
                let blocks = shape.sums.iter().zip(numbers);
                let blocks = blocks.map(|(&sum, &numbers)| Block::from_numbers(sum, numbers)).collect();
                Some(GraphView { blocks, view, combination })
            }
        };
        Ok(Views { shape, features, graph })
    }
}

/// What is read of the sums of some nodes.
pub struct Sums {
    all: Vec<f32>,
    /// Where some of them carry features: what the view of the sums reads.
    labels: Option<Vec<f32>>,
}

impl Sums {
    pub fn of(blocks: &[Block], aggregates: &[&[f32]], nodes: &[u32], directions: bool) -> Sums {
        let read = |part| read(blocks, aggregates, nodes, directions, part);
        let carry_features = blocks.iter().any(|block| block.shape.features > 0);
        Sums { all: read(Part::All), labels: carry_features.then(|| read(Part::Labels)) }
    }

    /// What the view of the sums reads, row after row.
    pub fn labels(&self) -> &[f32] {
        self.labels.as_deref().unwrap_or(&self.all)
    }

    /// Adds a number to a column of all rows.
    pub fn shift(&mut self, column: usize, width: usize, by: f32) {
        self.all.iter_mut().skip(column).step_by(width).for_each(|value| *value += by);
    }

    /// All of them, row after row.
    pub fn all(&self) -> &[f32] {
        &self.all
    }
}

impl GraphView {
    /// The logarithms of the probabilities, from those of the features, perhaps with the rows themselves, and what is
    /// read of the sums.
    pub fn combined(
        &self,
        shape: &ViewsShape,
        (known, rows): (&[f32], Option<&[f32]>),
        sums: &Sums,
    ) -> Result<Vec<f32>> {
        let everyone: Vec<u32> = (0..(known.len() / shape.classes) as u32).collect();
        let columns = self.view.shape().inputs[0];
        let inputs = Inputs::checked_before(vec![Input::Dense { columns, values: sums.labels() }])?;
        let mut seen = self.view.logits(&inputs, &everyone)?;
        log_softmax(&mut seen, shape.classes);
        let joined = Joined::new(known, &seen, sums.all(), rows, shape);
        let mut values = self.combination.logits(&joined.inputs()?, &everyone)?;
        log_softmax(&mut values, shape.classes);
        Ok(values)
    }
}

/// The outputs of both views for some rows, as the combination reads them.
pub struct Joined<'v> {
    known: Vec<f32>,
    seen: Vec<f32>,
    sums: &'v [f32],
    rows: Option<&'v [f32]>,
    classes: usize,
    width: usize,
    columns: usize,
}

impl<'v> Joined<'v> {
    /// Of logarithms of probabilities by the features and by the graph.
    pub fn new(
        known: &[f32],
        seen: &[f32],
        sums: &'v [f32],
        rows: Option<&'v [f32]>,
        shape: &ViewsShape,
    ) -> Joined<'v> {
        let centred = |values: &[f32]| {
            let mut values = values.to_vec();
            values.chunks_exact_mut(shape.classes).for_each(|row| {
                let mean = row.iter().sum::<f32>() / shape.classes as f32;
                row.iter_mut().for_each(|value| *value -= mean);
            });
            values
        };
        let (known, seen) = (centred(known), centred(seen));
        Joined {
            known,
            seen,
            sums,
            rows,
            classes: shape.classes,
            width: shape.width(),
            columns: shape.columns,
        }
    }

    /// Both views alone.
    pub fn views(&self) -> Result<Inputs<'_>> {
        let dense = |values| Input::Dense { columns: self.classes, values };
        Ok(Inputs::checked_before(vec![dense(&self.known[..]), dense(&self.seen[..])])?)
    }

    /// Both views, the sums, and the rows where they are there.
    pub fn inputs(&self) -> Result<Inputs<'_>> {
        let dense = |columns: usize, values| Input::Dense { columns, values };
        let mut all = vec![
            dense(self.classes, &self.known[..]),
            dense(self.classes, &self.seen[..]),
            dense(self.width, self.sums),
        ];
        all.extend(self.rows.map(|rows| dense(self.columns, rows)));
        Ok(Inputs::checked_before(all)?)
    }
}

/// Logits in, logarithms of probabilities out.
pub fn log_softmax(values: &mut [f32], classes: usize) {
    for row in values.chunks_exact_mut(classes) {
        let top = row.iter().fold(f32::NEG_INFINITY, |top, &value| top.max(value));
        let sum: f32 = row.iter().map(|value| (value - top).exp()).sum();
        let shift = top + sum.ln();
        row.iter_mut().for_each(|value| *value -= shift);
    }
}
