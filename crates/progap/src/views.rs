//! A model of two views of a node: what its features say of its class, what the noisy sums say, and how both are weighed.

use progap_nn::{Input, Inputs, RowScaling, Softmax, SoftmaxShape, Tensor};

use crate::files::Tensors;
use crate::{Error, Result};

/// Nodes whose sums are spoken of at once, where these lie in mapped files.
const NODES_TOLD: usize = 16;

/// The shape of [`Views`], known from the settings and public sizes alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewsShape {
    /// Feature columns.
    pub columns: usize,
    /// Classes.
    pub classes: usize,
    /// The width of the graph view's hidden layer.
    pub hidden: usize,
    /// Aggregates that are read; none where the features speak alone. Each has a column for every class and a constant.
    pub aggregates: usize,
    /// Whether each aggregate is also read row by row divided by its length.
    pub directions: bool,
}

impl ViewsShape {
    /// The columns of what is read of all aggregates.
    pub(crate) fn width(&self) -> usize {
        self.aggregates * (self.classes + 1) * if self.directions { 2 } else { 1 }
    }

    fn features(&self, scaling: RowScaling) -> SoftmaxShape {
        SoftmaxShape { inputs: vec![self.columns], hidden: 0, classes: self.classes, scaling }
    }

    fn graph(&self) -> SoftmaxShape {
        let scaling = RowScaling::None;
        SoftmaxShape { inputs: vec![self.width()], hidden: self.hidden, classes: self.classes, scaling }
    }

    fn combination(&self) -> SoftmaxShape {
        let inputs = vec![self.classes, self.classes, self.width()];
        SoftmaxShape { inputs, hidden: 0, classes: self.classes, scaling: RowScaling::None }
    }

    /// A combination that weighs both views, made one that gives the sums themselves no weight.
    pub(crate) fn blind_to_sums(&self, views: &Softmax) -> Result<Softmax> {
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

    /// The number of parameters.
    ///
    /// # Errors
    /// A shape that no model has.
    pub fn parameter_count(&self) -> Result<usize> {
        let possible = self.columns <= 1 << 24
            && (1..=1 << 16).contains(&self.classes)
            && self.hidden <= 1024
            && self.aggregates <= 64;
        if !possible {
            return Err(Error::Unsuitable("no model of two views has such a shape".into()));
        }
        let features = self.features(RowScaling::WeightedUnit).parameter_count() + self.columns + 1;
        Ok(match self.aggregates {
            0 => features,
            count => {
                let (graph, combination) = (self.graph(), self.combination());
                features + Block::NUMBERS * count + graph.parameter_count() + combination.parameter_count()
            }
        })
    }
}

/// How an aggregate is read: the sums of messages, and the sum of their constants, each in a unit of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Block {
    /// Sums are divided by this,
    scale: f32,
    /// and their rows by their length, which is never taken to be much less than this.
    length: f32,
    /// The sum of constants is less this,
    centre: f32,
    /// and divided by this;
    constant_scale: f32,
    /// and in the same way by its length.
    constant_length: f32,
}

impl Block {
    const NUMBERS: usize = 5;

    /// The units that an aggregate of `classes` classes suggests.
    pub fn of(values: &[f32], classes: usize) -> Block {
        let rows = values.len() / (classes + 1);
        let mean = |of: &dyn Fn(&[f32]) -> f64| {
            let mut sum = 0.0;
            for values in values.chunks((1 << 12) * (classes + 1)) {
                progap_graph::store::note_read(size_of_val(values));
                values.chunks_exact(classes + 1).for_each(|row| sum += of(row));
            }
            sum / rows.max(1) as f64
        };
        let square = |value: f64| value * value;
        let content = mean(&|row| row[..classes].iter().map(|&v| square(f64::from(v))).sum());
        let centre = mean(&|row| f64::from(row[classes]));
        let constant = mean(&|row| square(f64::from(row[classes]) - centre)).sqrt();
        // Values that are zero everywhere stay zero.
        let unit = |scale: f64| if scale > 0.0 && scale.is_finite() { scale as f32 } else { 1.0 };
        Block {
            scale: unit((content / classes.max(1) as f64).sqrt()),
            length: unit(content.sqrt()),
            centre: centre as f32,
            constant_scale: unit(constant),
            constant_length: unit(constant),
        }
    }

    pub fn numbers(self) -> [f32; Block::NUMBERS] {
        [self.scale, self.length, self.centre, self.constant_scale, self.constant_length]
    }

    fn from_numbers(numbers: [f32; Block::NUMBERS]) -> Block {
        let [scale, length, centre, constant_scale, constant_length] = numbers;
        Block { scale, length, centre, constant_scale, constant_length }
    }

    /// The root mean square of the sums.
    pub fn scale(self) -> f32 {
        self.scale
    }

    /// Reads a row of an aggregate.
    fn read(self, row: &[f32], directions: bool, out: &mut Vec<f32>) {
        let (constant, content) = row.split_last().expect("an aggregate has a constant");
        let constant = constant - self.centre;
        out.extend(content.iter().map(|value| value / self.scale));
        out.push(constant / self.constant_scale);
        if directions {
            let divided = |square: f32, length: f32| (square + 0.25 * length * length).sqrt();
            let square: f32 = content.iter().map(|value| value * value).sum();
            let factor = (content.len() as f32).sqrt() / divided(square, self.length);
            out.extend(content.iter().map(|value| value * factor));
            out.push(constant / divided(constant * constant, self.constant_length));
        }
    }
}

/// The view of the sums, and how it is weighed against the features.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GraphView {
    pub blocks: Vec<Block>,
    pub view: Softmax,
    pub combination: Softmax,
}

/// A model of two views.
#[derive(Debug, Clone, PartialEq)]
pub struct Views {
    shape: ViewsShape,
    features: Softmax,
    graph: Option<GraphView>,
}

impl Views {
    pub(crate) fn new(shape: ViewsShape, features: Softmax, graph: Option<GraphView>) -> Views {
        Views { shape, features, graph }
    }

    /// The same with a number added to the logarithm of each class's odds, if there is one.
    pub(crate) fn with_odds(mut self, odds: Option<&[f32]>) -> Views {
        if let Some(odds) = odds {
            let last = self.graph.as_mut().map_or(&mut self.features, |graph| &mut graph.combination);
            last.shift_logits(odds);
        }
        self
    }

    /// The view of the features, and that of the sums if there is one.
    pub(crate) fn parts(&self) -> (&Softmax, Option<&GraphView>) {
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
        let units = |block: &Block| {
            let [scale, length, centre, constant_scale, constant_length] = block.numbers();
            let units = [scale, length, constant_scale, constant_length];
            centre.is_finite() && units.iter().all(|unit| unit.is_finite() && *unit > 0.0)
        };
        finite(&self.features)
            && self.graph.as_ref().is_none_or(|graph| {
                graph.blocks.iter().all(units) && finite(&graph.view) && finite(&graph.combination)
            })
    }

    /// The probability of each class for some nodes, row after row; `inputs` are the rows and the aggregates.
    pub fn probabilities(&self, inputs: &Inputs<'_>, nodes: &[u32]) -> Result<Vec<f32>> {
        let mut values = self.log_probabilities(inputs, nodes)?;
        values.iter_mut().for_each(|value| *value = value.exp());
        Ok(values)
    }

    /// The logarithms of the probabilities.
    pub(crate) fn log_probabilities(&self, inputs: &Inputs<'_>, nodes: &[u32]) -> Result<Vec<f32>> {
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
                    let sums = read(&graph.blocks, &aggregates, nodes, &self.shape);
                    graph.combined(&self.shape, &known, &sums)?
                }
            });
        }
        Ok(all)
    }

    /// The rows, and the aggregates that are read.
    fn split<'i>(&self, inputs: &'i Inputs<'_>) -> Result<(Input<'i>, Vec<&'i [f32]>)> {
        const OTHER: Error = Error::Internal("the inputs are not those of the model");
        let (&own, rest) = inputs.as_slice().split_first().ok_or(OTHER)?;
        let aggregate = |input: &Input<'i>| match *input {
            Input::Dense { columns, values } if columns == self.shape.classes + 1 => Ok(values),
            _ => Err(OTHER),
        };
        let aggregates: Vec<&[f32]> = rest.iter().map(aggregate).collect::<Result<_>>()?;
        if own.columns() != self.shape.columns || aggregates.len() != self.shape.aggregates {
            return Err(OTHER);
        }
        Ok((own, aggregates))
    }

    pub(crate) fn add_to(&self, tensors: &mut Tensors, prefix: &str) {
        let mut add = |name: &str, shape: Vec<usize>, values: &[f32]| {
            tensors.values.insert(format!("{prefix}{name}"), (shape, values.to_vec()));
        };
        let mut model = |part: &str, model: &Softmax| {
            for (name, shape, values) in model.state() {
                add(&format!("{part}.{name}"), shape, values);
            }
        };
        model("features", &self.features);
        if let Some(graph) = &self.graph {
            model("graph", &graph.view);
            model("combination", &graph.combination);
            let numbers: Vec<f32> = graph.blocks.iter().flat_map(|block| block.numbers()).collect();
            add("aggregates", vec![graph.blocks.len(), Block::NUMBERS], &numbers);
        }
        // So that the shape is the same whichever scaling was chosen.
        let unit = self.features.shape().scaling != RowScaling::None;
        add("features.unit", vec![1], &[f32::from(u8::from(unit))]);
        if !unit {
            add("features.columns", vec![self.shape.columns], &vec![1.0; self.shape.columns]);
        }
    }

    /// A model of a shape, with the tensors under a prefix; every tensor must be there, and no other.
    pub(crate) fn from(tensors: &Tensors, prefix: &str, shape: ViewsShape) -> Result<Views> {
        let all: Vec<Tensor<'_>> = tensors.under(prefix).collect();
        let changed = || Error::Unsuitable("its tensors are not those of its shape".into());
        let part = |part: &'static str| {
            all.iter().filter_map(move |tensor| {
                let name = tensor.name.strip_prefix(part)?.strip_prefix('.')?;
                Some(Tensor { name, ..*tensor })
            })
        };
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
        let own =
            part("features").filter(|tensor| tensor.name != "unit" && (unit || tensor.name != "columns"));
        let features = Softmax::from_state(shape.features(scaling), own)?;
        let known = ["features.", "graph.", "combination."];
        let strange = |tensor: &&Tensor<'_>| {
            tensor.name != "aggregates" && known.iter().all(|k| !tensor.name.starts_with(k))
        };
        let graph = match shape.aggregates {
            0 if all.len() == 4 => None,
            0 => return Err(changed()),
            count => {
                let numbers = named("aggregates", &[count, Block::NUMBERS])?.values;
                let numbers = numbers.as_chunks::<{ Block::NUMBERS }>().0;
                let view = Softmax::from_state(shape.graph(), part("graph"))?;
                let combination = Softmax::from_state(shape.combination(), part("combination"))?;
                let blocks = numbers.iter().map(|&numbers| Block::from_numbers(numbers)).collect();
                Some(GraphView { blocks, view, combination })
            }
        };
        if all.iter().any(|tensor| strange(&tensor)) {
            return Err(changed());
        }
        Ok(Views { shape, features, graph })
    }
}

impl GraphView {
    /// The logarithms of the probabilities, from those of the features and what is read of the sums.
    pub fn combined(&self, shape: &ViewsShape, known: &[f32], sums: &[f32]) -> Result<Vec<f32>> {
        let (rows, width) = (known.len() / shape.classes, shape.width());
        let everyone: Vec<u32> = (0..rows as u32).collect();
        let inputs = Inputs::checked_before(vec![Input::Dense { columns: width, values: sums }])?;
        let mut seen = self.view.logits(&inputs, &everyone)?;
        log_softmax(&mut seen, shape.classes);
        let joined = Joined::new(known, &seen, sums, shape);
        let mut values = self.combination.logits(&joined.inputs()?, &everyone)?;
        log_softmax(&mut values, shape.classes);
        Ok(values)
    }
}

/// The outputs of both views for some rows, as the combination reads them.
pub(crate) struct Joined<'v> {
    known: Vec<f32>,
    seen: Vec<f32>,
    sums: &'v [f32],
    classes: usize,
    width: usize,
}

impl<'v> Joined<'v> {
    /// Of logarithms of probabilities by the features and by the graph.
    pub fn new(known: &[f32], seen: &[f32], sums: &'v [f32], shape: &ViewsShape) -> Joined<'v> {
        let centred = |values: &[f32]| {
            let mut values = values.to_vec();
            values.chunks_exact_mut(shape.classes).for_each(|row| {
                let mean = row.iter().sum::<f32>() / shape.classes as f32;
                row.iter_mut().for_each(|value| *value -= mean);
            });
            values
        };
        let (known, seen) = (centred(known), centred(seen));
        Joined { known, seen, sums, classes: shape.classes, width: shape.width() }
    }

    /// Both views alone.
    pub fn views(&self) -> Result<Inputs<'_>> {
        let dense = |values| Input::Dense { columns: self.classes, values };
        Ok(Inputs::checked_before(vec![dense(&self.known[..]), dense(&self.seen[..])])?)
    }

    /// Both views, and the sums.
    pub fn inputs(&self) -> Result<Inputs<'_>> {
        let dense = |columns: usize, values| Input::Dense { columns, values };
        Ok(Inputs::checked_before(vec![
            dense(self.classes, &self.known[..]),
            dense(self.classes, &self.seen[..]),
            dense(self.width, self.sums),
        ])?)
    }
}

/// The values that are read of some rows of all aggregates, side by side.
pub(crate) fn read(blocks: &[Block], aggregates: &[&[f32]], nodes: &[u32], shape: &ViewsShape) -> Vec<f32> {
    let stride = shape.classes + 1;
    let mut out = Vec::with_capacity(nodes.len() * shape.width());
    for nodes in nodes.chunks(NODES_TOLD) {
        aggregates.iter().for_each(|values| Input::Dense { columns: stride, values }.tell(nodes));
        for &node in nodes {
            for (block, values) in blocks.iter().zip(aggregates) {
                block.read(&values[node as usize * stride..][..stride], shape.directions, &mut out);
            }
        }
    }
    out
}

/// Logits in, logarithms of probabilities out.
pub(crate) fn log_softmax(values: &mut [f32], classes: usize) {
    for row in values.chunks_exact_mut(classes) {
        let top = row.iter().fold(f32::NEG_INFINITY, |top, &value| top.max(value));
        let sum: f32 = row.iter().map(|value| (value - top).exp()).sum();
        let shift = top + sum.ln();
        row.iter_mut().for_each(|value| *value -= shift);
    }
}
