//! How branches become one row: each kind of jumping knowledge as operations.

use std::ops::Range;

use progap_nn::{Architecture, Jk};

use super::graph::{Attribute, Graph};
use super::{Parts, product, side_by_side};
use crate::Result;

pub(super) fn join(
    graph: &mut Graph,
    parts: &Parts<'_>,
    shape: &Architecture,
    branches: &[String],
) -> Result<String> {
    let all: Vec<&str> = branches.iter().map(String::as_str).collect();
    Ok(match shape.jk {
        Jk::Cat => side_by_side(graph, &all),
        Jk::Sum => graph.add("Sum", &all),
        Jk::Mean => graph.add("Mean", &all),
        Jk::Max => graph.add("Max", &all),
        Jk::WeightedSum => weighted_sum(graph, parts.get("jk.weights")?.1, &all),
        Jk::Attention { heads } => attention(graph, parts, (shape.hidden, heads), &all)?,
        Jk::Lstm => lstm(graph, parts, all.len() * shape.hidden / 2, &all)?,
    })
}

fn weighted_sum(graph: &mut Graph, logits: &[f32], branches: &[&str]) -> String {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f32> = logits.iter().map(|logit| (logit - top).exp()).collect();
    let total: f32 = weights.iter().sum();
    let mut weighted = vec![];
    for (branch, weight) in branches.iter().zip(weights) {
        let weight = graph.number(weight / total);
        weighted.push(graph.add("Mul", &[branch, &weight]));
    }
    summed(graph, &weighted)
}

fn summed(graph: &mut Graph, values: &[String]) -> String {
    graph.add("Sum", &values.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Some columns of a linear layer.
fn columns(graph: &mut Graph, parts: &Parts<'_>, name: &str, taken: Range<usize>, x: &str) -> Result<String> {
    let (shape, weight) = parts.get(&format!("{name}.weight"))?;
    let (_, bias) = parts.get(&format!("{name}.bias"))?;
    let (rows, width) = (shape[0], shape[1]);
    let kept: Vec<f32> = weight.chunks_exact(width).flat_map(|row| &row[taken.clone()]).copied().collect();
    Ok(product(graph, x, &[rows, taken.len()], &kept, &bias[taken]))
}

/// The rows `of`, each times its weight: the softmax over one score each.
fn weighted_by_scores(graph: &mut Graph, scores: &[&str], of: &[&str]) -> String {
    let scores = side_by_side(graph, scores);
    let weights = graph.add_with("Softmax", &[&scores], &[Attribute::Int("axis", 1)]);
    let mut weighted = vec![];
    for (at, rows) in of.iter().enumerate() {
        let mut chosen = vec![0.0; of.len()];
        chosen[at] = 1.0;
        let chosen = graph.constant(&[of.len(), 1], &chosen);
        let weight = graph.add("MatMul", &[&weights, &chosen]);
        weighted.push(graph.add("Mul", &[rows, &weight]));
    }
    summed(graph, &weighted)
}

/// Self-attention among branches, and the mean of what comes of it.
fn attention(
    graph: &mut Graph,
    parts: &Parts<'_>,
    (hidden, heads): (usize, usize),
    branches: &[&str],
) -> Result<String> {
    let width = hidden / heads;
    let scale = graph.constant(&[width, 1], &vec![1.0 / (width as f32).sqrt(); width]);
    // The output of every head, as a mean over the branches that ask.
    let mut means = vec![];
    for head in 0..heads {
        let mut of = |part: usize| -> Result<Vec<String>> {
            let start = part * hidden + head * width;
            branches.iter().map(|x| columns(graph, parts, "jk.project", start..start + width, x)).collect()
        };
        let (queries, keys, values) = (of(0)?, of(1)?, of(2)?);
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let mut answers = vec![];
        for query in &queries {
            let mut scores = vec![];
            for key in &keys {
                let products = graph.add("Mul", &[query, key]);
                scores.push(graph.add("MatMul", &[&products, &scale]));
            }
            let scores: Vec<&str> = scores.iter().map(String::as_str).collect();
            answers.push(weighted_by_scores(graph, &scores, &values));
        }
        means.push(graph.add("Mean", &answers.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    let joined = side_by_side(graph, &means.iter().map(String::as_str).collect::<Vec<_>>());
    // The mean of linear images is the image of the mean.
    parts.linear(graph, "jk.output", &joined)
}

/// A sum with weights per row, from one LSTM along the branches and one against them.
fn lstm(graph: &mut Graph, parts: &Parts<'_>, size: usize, branches: &[&str]) -> Result<String> {
    let along = states(graph, parts, ("jk.forward", size), branches.iter().copied())?;
    let mut against = states(graph, parts, ("jk.backward", size), branches.iter().rev().copied())?;
    against.reverse();
    let mut scores = vec![];
    for (one, other) in along.iter().zip(&against) {
        let both = side_by_side(graph, &[one, other]);
        scores.push(parts.linear(graph, "jk.score", &both)?);
    }
    let scores: Vec<&str> = scores.iter().map(String::as_str).collect();
    Ok(weighted_by_scores(graph, &scores, branches))
}

/// The state of an LSTM after each branch.
fn states<'b>(
    graph: &mut Graph,
    parts: &Parts<'_>,
    (name, size): (&str, usize),
    branches: impl Iterator<Item = &'b str>,
) -> Result<Vec<String>> {
    let mut states: Vec<String> = vec![];
    let mut cell: Option<String> = None;
    let (_, from_no_state) = parts.get(&format!("{name}.state.bias"))?;
    for branch in branches {
        let mut gate = |number: usize, squash: &str| -> Result<String> {
            let taken = number * size..(number + 1) * size;
            let from_input = columns(graph, parts, &format!("{name}.input"), taken.clone(), branch)?;
            let from_state = match states.last() {
                None => graph.constant(&[size], &from_no_state[taken]),
                Some(state) => columns(graph, parts, &format!("{name}.state"), taken, state)?,
            };
            let sum = graph.add("Add", &[&from_input, &from_state]);
            Ok(graph.add(squash, &[&sum]))
        };
        let (input, forget) = (gate(0, "Sigmoid")?, gate(1, "Sigmoid")?);
        let (content, output) = (gate(2, "Tanh")?, gate(3, "Sigmoid")?);
        let mut now = graph.add("Mul", &[&input, &content]);
        if let Some(before) = cell {
            let kept = graph.add("Mul", &[&forget, &before]);
            now = graph.add("Add", &[&kept, &now]);
        }
        let squashed = graph.add("Tanh", &[&now]);
        states.push(graph.add("Mul", &[&output, &squashed]));
        cell = Some(now);
    }
    Ok(states)
}
