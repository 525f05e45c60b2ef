//! A release's model as an ONNX file: features and noisy aggregates in, probabilities out.
//!
//! | file | what it knows |
//! |---|---|
//! | `proto.rs` | bytes: as much of protocol buffers as it takes |
//! | `graph.rs` | operations over matrices of one row a node |
//! | `mod.rs` | each kind of model as operations |

mod graph;
mod proto;

use progap_nn::{
    Activation, Architecture, Jk, Network, Norm, NormPlacement, RowScaling, Softmax, Tensor, Trees,
};

use self::graph::{Attribute, Graph};
use progap::method::catalogue;
use progap::model::Model;
use progap::model::addressed::{Addressed, FeatureModel, Posterior};
use progap::model::predictor::{Predictor, Reads};
use progap::model::views::{Block, NO_SENDER, Part, SumShape, TableModel, Views};
use progap::{Error, Result};

/// Below this a row counts as zero.
const SMALLEST: f32 = 1e-12;
/// Weights of receivers below this are none.
const MIN_WEIGHT: f32 = 1e-6;
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
                .ok_or(Error::internal("a model reads what there is"))?;
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
            Model::Addressed(model) => {
                Given { embedding: None, logits: Some(of_addressed(&mut graph, model, &inputs)?) }
            }
            Model::Sage(_) => {
                return Err(Error::unsuitable(format!(
                    "a model that reads the rows of neighbours has no ONNX file: train with one of {}",
                    catalogue::names(|method| !catalogue::mixes_rows(method))
                )));
            }
        });
    }
    let mut logits =
        given.pop().and_then(|given| given.logits).ok_or(Error::internal("a release has a model"))?;
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
        let tensor = tensor.ok_or(Error::internal("a network has all its tensors"))?;
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

/// A softmax over the first of the inputs, and trees over all of them.
fn of_table(graph: &mut Graph, model: &TableModel, inputs: &[&str]) -> String {
    let read = model.base.shape().inputs.len();
    let first = joined(graph, &inputs[..read]);
    let logits = of_softmax(graph, &model.base, &first);
    let Some(trees) = &model.trees else { return logits };
    let all = joined(graph, inputs);
    let more = of_trees(graph, trees, &all);
    graph.add("Add", &[&logits, &more])
}

fn joined(graph: &mut Graph, inputs: &[&str]) -> String {
    if let [one] = inputs { one.to_string() } else { side_by_side(graph, inputs) }
}

fn of_trees(graph: &mut Graph, trees: &Trees, x: &str) -> String {
    let state = trees.state();
    let [roots, nodes, values] = [0, 1, 2].map(|at| &state[at].2[..]);
    let classes = state[2].1[1];
    let (nodes, whole) = (nodes.as_chunks::<3>().0, |value: usize| value as i64);
    let tree_of = |node: usize| roots.partition_point(|&root| root as usize <= node) - 1;
    let first_of = |node: usize| roots[tree_of(node)] as usize;
    let each = |of: &dyn Fn(usize) -> i64| -> Vec<i64> { (0..nodes.len()).map(of).collect() };
    let is_leaf = |node: usize| nodes[node][0] < 0.0;
    let child = |node: usize, right: usize| match is_leaf(node) {
        true => 0,
        false => whole(nodes[node][2] as usize + right - first_of(node)),
    };
    let leaves: Vec<usize> = (0..nodes.len()).filter(|&node| is_leaf(node)).collect();
    let targets = |of: &dyn Fn(usize, usize) -> i64| -> Vec<i64> {
        leaves
            .iter()
            .flat_map(|&node| (0..classes).map(move |class| (node, class)))
            .map(|(n, c)| of(n, c))
            .collect()
    };
    let weights = leaves.iter().flat_map(|&node| &values[node * classes..][..classes]).copied().collect();
    let mode = |node: &[f32; 3]| if node[0] < 0.0 { "LEAF" } else { "BRANCH_LEQ" };
    graph.trees(
        x,
        &[
            Attribute::Ints("nodes_treeids", each(&|node| whole(tree_of(node)))),
            Attribute::Ints("nodes_nodeids", each(&|node| whole(node - first_of(node)))),
            Attribute::Ints("nodes_featureids", each(&|node| nodes[node][0].max(0.0) as i64)),
            Attribute::Texts("nodes_modes", nodes.iter().map(mode).collect()),
            Attribute::Floats("nodes_values", nodes.iter().map(|node| node[1]).collect()),
            Attribute::Ints("nodes_truenodeids", each(&|node| child(node, 0))),
            Attribute::Ints("nodes_falsenodeids", each(&|node| child(node, 1))),
            Attribute::Ints("target_treeids", targets(&|node, _| whole(tree_of(node)))),
            Attribute::Ints("target_nodeids", targets(&|node, _| whole(node - first_of(node)))),
            Attribute::Ints("target_ids", targets(&|_, class| whole(class))),
            Attribute::Floats("target_weights", weights),
            Attribute::Int("n_targets", classes as i64),
            Attribute::Text("post_transform", "NONE"),
        ],
    )
}

fn of_views(graph: &mut Graph, views: &Views, inputs: &[String]) -> String {
    let (features, view) = views.parts();
    let known = of_table(graph, features, &[&inputs[0]]);
    let known = log_softmax(graph, &known);
    let Some(view) = view else { return known };
    let directions = views.shape().directions;
    let mut read = |part: Part| {
        let blocks = view.blocks.iter().zip(&inputs[1..]);
        let read: Vec<String> = blocks
            .filter(|(block, _)| part == Part::All || block.shape.classes > 0)
            .map(|(&block, aggregate)| of_block(graph, block, aggregate, directions, part))
            .collect();
        side_by_side(graph, &read.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let (labels, sums) = (read(Part::Labels), read(Part::All));
    let seen = of_softmax(graph, &view.view, &labels);
    let seen = log_softmax(graph, &seen);
    let mut centred = |values: &str| {
        let mean = graph.over_columns("ReduceMean", values);
        graph.add("Sub", &[values, &mean])
    };
    let (known, seen) = (centred(&known), centred(&seen));
    let mut all = vec![known.as_str(), &seen, &sums];
    if view.combination.reads_beyond(&views.shape().joined()) {
        all.push(&inputs[0]);
    }
    of_table(graph, &view.combination, &all)
}

fn of_addressed(graph: &mut Graph, model: &Addressed, inputs: &[String]) -> Result<String> {
    let (features, sums) = model.parts();
    let known = match features {
        FeatureModel::Linear(linear) => of_softmax(graph, linear, &inputs[0]),
        FeatureModel::Network(network) => {
            let given = of_network(graph, network, &inputs[..1])?;
            given.logits.ok_or(Error::internal("a network has logits"))?
        }
    };
    let known = log_softmax(graph, &known);
    let Some(sums) = sums else { return Ok(known) };
    let read: Vec<String> =
        sums.posteriors.iter().zip(&inputs[1..]).map(|(p, sum)| of_posterior(graph, p, sum)).collect();
    let read = match &read[..] {
        [one] => one.clone(),
        several => side_by_side(graph, &several.iter().map(String::as_str).collect::<Vec<_>>()),
    };
    let seen = of_softmax(graph, &sums.softmax, &read);
    let prior = graph.constant(&[sums.log_prior.len()], &sums.log_prior);
    let seen = graph.add("Sub", &[&seen, &prior]);
    Ok(graph.add("Add", &[&known, &seen]))
}

/// A sum beside the weight of its receiver, as the mean of what it may be.
fn of_posterior(graph: &mut Graph, posterior: &Posterior, sum: &str) -> String {
    let classes = posterior.mean.len();
    let chosen = |columns: std::ops::Range<usize>| {
        let mut values = vec![0.0; (classes + 1) * columns.len()];
        columns.clone().enumerate().for_each(|(at, column)| values[column * columns.len() + at] = 1.0);
        values
    };
    let row = graph.constant(&[classes + 1, classes], &chosen(0..classes));
    let last = graph.constant(&[classes + 1, 1], &chosen(classes..classes + 1));
    let (row, weight) = (graph.add("MatMul", &[sum, &row]), graph.add("MatMul", &[sum, &last]));
    // Without a weight nothing is known: the noise is then far larger than all else.
    let least = graph.number(MIN_WEIGHT);
    let weight = graph.add("Max", &[&weight, &least]);
    let (mean, variances) =
        (graph.constant(&[classes], &posterior.mean), graph.constant(&[classes], &posterior.variances));
    let divided = graph.add("Div", &[&row, &weight]);
    let centred = graph.add("Sub", &[&divided, &mean]);
    let basis = graph.constant(&[classes, classes], &posterior.basis);
    let found = graph.add("MatMul", &[&centred, &basis]);
    let deviation = graph.number(posterior.noise);
    let noise = graph.add("Div", &[&deviation, &weight]);
    let noise = graph.add("Mul", &[&noise, &noise]);
    let with_noise = graph.add("Add", &[&variances, &noise]);
    let kept = graph.add("Div", &[&variances, &with_noise]);
    let found = graph.add("Mul", &[&found, &kept]);
    let mut turned = vec![0.0; classes * classes];
    for from in 0..classes {
        (0..classes).for_each(|to| turned[from * classes + to] = posterior.basis[to * classes + from]);
    }
    let turned = graph.constant(&[classes, classes], &turned);
    let back = graph.add("MatMul", &[&found, &turned]);
    let read = graph.add("Add", &[&back, &mean]);
    let scale = graph.number(posterior.scale);
    graph.add("Div", &[&read, &scale])
}

/// An aggregate as a model of two views reads it (`views/block.rs`).
fn of_block(graph: &mut Graph, block: Block, aggregate: &str, directions: bool, part: Part) -> String {
    let [scale, length, centre, constant_scale, constant_length, feature_scale, mean_scale] = block.numbers();
    let SumShape { classes, features } = block.shape;
    let kept = if part == Part::All { features } else { 0 };
    let width = block.shape.width();
    // Columns are chosen by a matrix of zeros and ones.
    let chosen = |graph: &mut Graph, columns: std::ops::Range<usize>| {
        let mut matrix = vec![0.0; width * columns.len()];
        columns.clone().enumerate().for_each(|(to, from)| matrix[from * columns.len() + to] = 1.0);
        let matrix = graph.constant(&[width, columns.len()], &matrix);
        graph.add("MatMul", &[aggregate, &matrix])
    };
    let labels = chosen(graph, 0..classes + 1);
    let row = |graph: &mut Graph, content: f32, constant: f32| {
        let mut values = vec![content; classes];
        values.push(constant);
        graph.constant(&[classes + 1], &values)
    };
    let (centre, unit) = (row(graph, 0.0, centre), row(graph, scale, constant_scale));
    let centred = graph.add("Sub", &[&labels, &centre]);
    let mut read = vec![graph.add("Div", &[&centred, &unit])];
    let own = (kept > 0).then(|| chosen(graph, classes + 1..width));
    if let Some(own) = &own {
        let unit = graph.number(feature_scale);
        read.push(graph.add("Div", &[own, &unit]));
    }
    if directions {
        let quarter = |length: f32| 0.25 * length * length;
        let least = row(graph, quarter(length), quarter(constant_length));
        let factor = row(graph, (classes as f32).sqrt(), 1.0);
        // Squares are added up over the classes; the constant stands for itself.
        let side = classes + 1;
        let mut together = vec![0.0; side * side];
        for from in 0..side {
            for to in 0..side {
                together[from * side + to] = f32::from(u8::from((from == classes) == (to == classes)));
            }
        }
        let together = graph.constant(&[side, side], &together);
        let squares = graph.add("Mul", &[&centred, &centred]);
        let squares = graph.add("MatMul", &[&squares, &together]);
        let squares = graph.add("Add", &[&squares, &least]);
        let lengths = graph.add("Sqrt", &[&squares]);
        let directed = graph.add("Div", &[&centred, &lengths]);
        read.push(graph.add("Mul", &[&directed, &factor]));
        if let Some(own) = &own {
            let senders = chosen(graph, classes..classes + 1);
            let (nobody, unit) = (graph.number(NO_SENDER), graph.number(mean_scale));
            let there = graph.add("Greater", &[&senders, &nobody]);
            let there = graph.add_with("Cast", &[&there], &[Attribute::Int("to", 1)]);
            let senders = graph.add("Max", &[&senders, &nobody]);
            let factor = graph.add("Div", &[&there, &senders]);
            let factor = graph.add("Div", &[&factor, &unit]);
            read.push(graph.add("Mul", &[own, &factor]));
        }
    }
    side_by_side(graph, &read.iter().map(String::as_str).collect::<Vec<_>>())
}
