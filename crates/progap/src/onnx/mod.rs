//! A release's model as an ONNX file: features and noisy aggregates in, probabilities out.
//!
//! | file | what it knows |
//! |---|---|
//! | `proto.rs` | bytes: as much of protocol buffers as it takes |
//! | `graph.rs` | operations over matrices of one row a node |
//! | `mod.rs` | each kind of model as operations |

mod graph;
mod proto;

use progap_nn::{Activation, Architecture, Jk, Network, Norm, NormPlacement, RowScaling, Softmax, Tensor};

use self::graph::{Attribute, Graph};
use crate::method::catalogue;
use crate::model::Model;
use crate::predictor::{Predictor, Reads};
use crate::views::{Block, Views};
use crate::{Error, Result};

/// Below this a row counts as zero.
const SMALLEST: f32 = 1e-12;
/// The number that norms add to a variance.
const EPSILON: f32 = 1e-5;

/// Metadata beside the operations.
pub(crate) struct About<'a> {
    pub name: &'a str,
    /// The guarantee, in words.
    pub words: &'a str,
    /// Further facts, by name.
    pub facts: Vec<(&'a str, String)>,
}

/// What is known of those who send to a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Senders {
    /// Sums over them are given.
    Given,
    /// There are none: every sum is 0.
    None,
}

/// The file: an input `features`, where sums are given an input `aggregate-K` for each aggregate that is read, an
/// output `probabilities`.
///
/// # Errors
/// A model that reads its neighbours' rows.
pub(crate) fn file(
    predictor: &Predictor,
    (columns, classes): (usize, usize),
    senders: Senders,
    about: &About<'_>,
) -> Result<Vec<u8>> {
    let mut graph = Graph::default();
    let features = graph.input("features", columns);
    let mut aggregates: Vec<Option<String>> = vec![None; predictor.widths.len()];
    for index in predictor.aggregates_read() {
        let width = predictor.widths[index];
        aggregates[index] = Some(match senders {
            Senders::Given => graph.input(&format!("aggregate-{}", index + 1), width),
            Senders::None => zeros(&mut graph, &features, width),
        });
    }
    let mut given: Vec<Given> = vec![];
    for link in &predictor.links {
        let mut inputs = vec![];
        for reads in &link.reads {
            let parts: Vec<&str> = reads
                .iter()
                .map(|&reads| match reads {
                    Reads::Rows => Some(features.as_str()),
                    Reads::Aggregate(index) => aggregates.get(index)?.as_deref(),
                    Reads::Embedding(at) => given.get(at)?.embedding.as_deref(),
                    Reads::Logits(at) => given.get(at)?.logits.as_deref(),
                })
                .collect::<Option<_>>()
                .ok_or(Error::Internal("a model reads what there is"))?;
            inputs.push(if let [one] = parts[..] {
                one.to_string()
            } else {
                side_by_side(&mut graph, &parts)
            });
        }
        given.push(match &link.model {
            Model::Network(network) => of_network(&mut graph, network, &inputs)?,
            Model::Views(views) => {
                Given { embedding: None, logits: Some(of_views(&mut graph, views, &inputs)) }
            }
            Model::Sage(_) => {
                return Err(Error::Unsuitable(format!(
                    "a model that reads the rows of neighbours has no ONNX file: train with one of {}",
                    catalogue::names(|method| !catalogue::mixes_rows(method))
                )));
            }
        });
    }
    let mut logits =
        given.pop().and_then(|given| given.logits).ok_or(Error::Internal("a release has a model"))?;
    if let Some(factor) = predictor.temperature {
        let factor = graph.number(factor);
        logits = graph.add("Mul", &[&logits, &factor]);
    }
    let probabilities = graph.add_with("Softmax", &[&logits], &[Attribute::Int("axis", 1)]);
    graph.output("probabilities", classes, &probabilities);
    let facts: Vec<(&str, String)> = about.facts.clone();
    Ok(graph.into_file(about.name, about.words, &facts))
}

/// The outputs of a model for those after it.
struct Given {
    embedding: Option<String>,
    logits: Option<String>,
}

fn side_by_side(graph: &mut Graph, parts: &[&str]) -> String {
    graph.add_with("Concat", parts, &[Attribute::Int("axis", 1)])
}

/// A row of zeros for each row of another matrix.
fn zeros(graph: &mut Graph, like: &str, width: usize) -> String {
    let (row, zero) = (graph.over_columns("ReduceMax", like), graph.number(0.0));
    let nothing = graph.add("Mul", &[&row, &zero]);
    let columns = graph.constant(&[width], &vec![0.0; width]);
    graph.add("Add", &[&nothing, &columns])
}

/// Rows divided by their norm; a row of zeros stays one.
fn unit_rows(graph: &mut Graph, rows: &str) -> String {
    let norm = graph.over_columns("ReduceL2", rows);
    let least = graph.number(SMALLEST);
    let norm = graph.add("Max", &[&norm, &least]);
    graph.add("Div", &[rows, &norm])
}

fn affine(graph: &mut Graph, x: &str, scale: &[f32], shift: &[f32]) -> String {
    let (scale, shift) = (graph.constant(&[scale.len()], scale), graph.constant(&[shift.len()], shift));
    let scaled = graph.add("Mul", &[x, &scale]);
    graph.add("Add", &[&scaled, &shift])
}

fn activate(graph: &mut Graph, activation: Activation, x: &str) -> String {
    match activation {
        Activation::Selu => graph.add("Selu", &[x]),
        Activation::Relu => graph.add("Relu", &[x]),
        Activation::Tanh => graph.add("Tanh", &[x]),
        Activation::Elu => graph.add_with("Elu", &[x], &[Attribute::Float("alpha", 1.0)]),
    }
}

/// A network's tensors, by name.
struct Parts<'n>(Vec<Tensor<'n>>);

impl<'n> Parts<'n> {
    fn get(&self, name: &str) -> Result<(&'n [usize], &'n [f32])> {
        let tensor = self.0.iter().find(|tensor| tensor.name == name);
        let tensor = tensor.ok_or(Error::Internal("a network has all its tensors"))?;
        Ok((tensor.shape, tensor.values))
    }

    fn linear(&self, graph: &mut Graph, name: &str, x: &str) -> Result<String> {
        let (shape, weight) = self.get(&format!("{name}.weight"))?;
        let (_, bias) = self.get(&format!("{name}.bias"))?;
        Ok(product(graph, x, shape, weight, bias))
    }

    /// The factors of a trained batch norm, and the shifts that it adds.
    fn batch_norm(&self, name: &str) -> Result<(Vec<f32>, Vec<f32>)> {
        let part = |what: &str| self.get(&format!("{name}.norm.{what}")).map(|(_, values)| values);
        let (gamma, beta) = (part("weight")?, part("bias")?);
        let (mean, variance) = (part("running_mean")?, part("running_var")?);
        let scale = |(gamma, variance): (&f32, &f32)| gamma / (variance + EPSILON).sqrt();
        let scale: Vec<f32> = gamma.iter().zip(variance).map(scale).collect();
        let shift = beta.iter().zip(mean).zip(&scale).map(|((beta, mean), scale)| beta - mean * scale);
        let shift = shift.collect();
        Ok((scale, shift))
    }

    fn norm(&self, graph: &mut Graph, name: &str, norm: Norm, x: &str) -> Result<String> {
        match norm {
            Norm::None => return Ok(x.into()),
            Norm::Batch => {
                let (scale, shift) = self.batch_norm(name)?;
                return Ok(affine(graph, x, &scale, &shift));
            }
            Norm::Group => {}
        }
        let part = |what: &str| self.get(&format!("{name}.norm.{what}")).map(|(_, values)| values);
        let (gamma, beta) = (part("weight")?, part("bias")?);
        let mean = graph.over_columns("ReduceMean", x);
        let centred = graph.add("Sub", &[x, &mean]);
        let squares = graph.add("Mul", &[&centred, &centred]);
        let variance = graph.over_columns("ReduceMean", &squares);
        let epsilon = graph.number(EPSILON);
        let variance = graph.add("Add", &[&variance, &epsilon]);
        let deviation = graph.add("Sqrt", &[&variance]);
        let standardised = graph.add("Div", &[&centred, &deviation]);
        Ok(affine(graph, &standardised, gamma, beta))
    }
}

/// `x W + b`.
fn product(graph: &mut Graph, x: &str, shape: &[usize], weight: &[f32], bias: &[f32]) -> String {
    let (weight, bias) = (graph.constant(shape, weight), graph.constant(&[bias.len()], bias));
    graph.add("Gemm", &[x, &weight, &bias])
}

fn of_network(graph: &mut Graph, network: &Network, inputs: &[String]) -> Result<Given> {
    let (parts, shape) = (Parts(network.state()), network.architecture());
    let after_join = shape.norm_placement == NormPlacement::AfterJoin;
    let mut branches = vec![];
    for (b, input) in inputs.iter().enumerate() {
        let mut x = input.clone();
        for l in 0..shape.layers {
            let name = format!("branches.{b}.layers.{l}");
            x = parts.linear(graph, &name, &x)?;
            if !(after_join && l + 1 == shape.layers) {
                x = activate(graph, shape.activation, &x);
                x = parts.norm(graph, &name, shape.norm, &x)?;
            }
        }
        branches.push(x);
    }
    let embedding = branches.first().map(|first| unit_rows(graph, first));
    let mut joined = join(graph, shape.jk, &branches);
    if shape.normalise {
        joined = unit_rows(graph, &joined);
    }
    if after_join {
        joined = norms_after_join(graph, &parts, shape, &joined)?;
        joined = activate(graph, shape.activation, &joined);
    }
    Ok(Given { embedding, logits: Some(parts.linear(graph, "head", &joined)?) })
}

/// How branches become one row.
fn join(graph: &mut Graph, jk: Jk, branches: &[String]) -> String {
    let all: Vec<&str> = branches.iter().map(String::as_str).collect();
    match jk {
        Jk::Cat => side_by_side(graph, &all),
        Jk::Sum => graph.add("Sum", &all),
        Jk::Mean => graph.add("Mean", &all),
        Jk::Max => graph.add("Max", &all),
    }
}

/// The norms of the parts of a joined row, side by side; there are batch norms alone.
fn norms_after_join(
    graph: &mut Graph,
    parts: &Parts<'_>,
    shape: &Architecture,
    joined: &str,
) -> Result<String> {
    if shape.norm == Norm::None {
        return Ok(joined.into());
    }
    let count = if shape.jk == Jk::Cat { shape.inputs.len() } else { 1 };
    let (mut scale, mut shift) = (vec![], vec![]);
    for part in 0..count {
        let (own_scale, own_shift) = parts.batch_norm(&format!("closing.{part}"))?;
        scale.extend(own_scale);
        shift.extend(own_shift);
    }
    Ok(affine(graph, joined, &scale, &shift))
}

fn of_softmax(graph: &mut Graph, model: &Softmax, x: &str) -> String {
    let state = model.state();
    let get = |name: &str| state.iter().find(|(other, ..)| *other == name);
    let mut x = x.to_string();
    if let Some((_, shape, weights)) = get("columns") {
        let weights = graph.constant(shape, weights);
        x = graph.add("Mul", &[&x, &weights]);
    }
    if model.shape().scaling != RowScaling::None {
        x = unit_rows(graph, &x);
    }
    let linear = |graph: &mut Graph, x: &str, weight: &str, bias: &[f32]| {
        get(weight).map(|(_, shape, values)| product(graph, x, shape, values, bias))
    };
    let bias = get("bias").map_or(&[][..], |(_, _, values)| values);
    let logits = linear(graph, &x, "weight", bias).unwrap_or_default();
    let hidden_bias = get("hidden.bias").map_or(&[][..], |(_, _, values)| values);
    let Some(hidden) = linear(graph, &x, "hidden.weight", hidden_bias) else { return logits };
    let hidden = graph.add("Tanh", &[&hidden]);
    let more = linear(graph, &hidden, "hidden.out", &vec![0.0; bias.len()]).unwrap_or_default();
    graph.add("Add", &[&logits, &more])
}

fn log_softmax(graph: &mut Graph, logits: &str) -> String {
    graph.add_with("LogSoftmax", &[logits], &[Attribute::Int("axis", 1)])
}

fn of_views(graph: &mut Graph, views: &Views, inputs: &[String]) -> String {
    let (features, view) = views.parts();
    let known = of_softmax(graph, features, &inputs[0]);
    let known = log_softmax(graph, &known);
    let Some(view) = view else { return known };
    let (classes, directions) = (views.shape().classes, views.shape().directions);
    let read: Vec<String> = view
        .blocks
        .iter()
        .zip(&inputs[1..])
        .map(|(&block, aggregate)| of_block(graph, block, aggregate, classes, directions))
        .collect();
    let sums = side_by_side(graph, &read.iter().map(String::as_str).collect::<Vec<_>>());
    let seen = of_softmax(graph, &view.view, &sums);
    let seen = log_softmax(graph, &seen);
    let mut centred = |values: &str| {
        let mean = graph.over_columns("ReduceMean", values);
        graph.add("Sub", &[values, &mean])
    };
    let (known, seen) = (centred(&known), centred(&seen));
    let joined = side_by_side(graph, &[&known, &seen, &sums]);
    of_softmax(graph, &view.combination, &joined)
}

/// An aggregate as the graph view reads it: in units of its own, and where asked also divided by the length of each row.
fn of_block(graph: &mut Graph, block: Block, aggregate: &str, classes: usize, directions: bool) -> String {
    let [scale, length, centre, constant_scale, constant_length] = block.numbers();
    let each = |content: f32, constant: f32| {
        let mut values = vec![content; classes];
        values.push(constant);
        values
    };
    let mut row = |values: Vec<f32>| graph.constant(&[classes + 1], &values);
    let (centre, unit) = (row(each(0.0, centre)), row(each(scale, constant_scale)));
    let quarter = |length: f32| 0.25 * length * length;
    let least = row(each(quarter(length), quarter(constant_length)));
    let factor = row(each((classes as f32).sqrt(), 1.0));
    let centred = graph.add("Sub", &[aggregate, &centre]);
    let plain = graph.add("Div", &[&centred, &unit]);
    if !directions {
        return plain;
    }
    // Squares are added up over the classes; the constant stands for itself.
    let width = classes + 1;
    let mut together = vec![0.0; width * width];
    for from in 0..width {
        for to in 0..width {
            together[from * width + to] = f32::from(u8::from((from == classes) == (to == classes)));
        }
    }
    let together = graph.constant(&[width, width], &together);
    let squares = graph.add("Mul", &[&centred, &centred]);
    let squares = graph.add("MatMul", &[&squares, &together]);
    let squares = graph.add("Add", &[&squares, &least]);
    let lengths = graph.add("Sqrt", &[&squares]);
    let directed = graph.add("Div", &[&centred, &lengths]);
    let directed = graph.add("Mul", &[&directed, &factor]);
    side_by_side(graph, &[&plain, &directed])
}
