//! The messages of nodes, all of norm one at most; and whether labels tell anything.

use super::Roles;
use super::features::Features;
use crate::Result;
use crate::rows::{Rows, normalise};
use crate::vault::Aggregate;

/// The constant in every message of labels: its sum is the number of senders.
const CONSTANT: f32 = 0.2;
/// The constant beside structure, by which a message keeps some of its length.
const STRUCTURE_CONSTANT: f32 = 0.3;

/// What is known of each node's class, centred and of one length: the label of a training node, the probabilities of the
/// others.
pub(super) fn labels(known: &[f32], labels: &[u32], is_train: &[bool], classes: usize) -> Vec<f32> {
    let mut messages = Vec::with_capacity(labels.len() * (classes + 1));
    for (node, &train) in is_train.iter().enumerate() {
        let start = messages.len();
        match train {
            true => messages.extend((0..classes).map(|c| if c == labels[node] as usize { 1.0 } else { 0.0 })),
            false => messages.extend_from_slice(&known[node * classes..][..classes]),
        }
        code(&mut messages[start..]);
        messages[start..].iter_mut().for_each(|value| *value *= content());
        messages.push(CONSTANT);
    }
    messages
}

/// Whom each node knows: what came of the messages before, divided by their unit.
pub(super) fn structure(before: &[f32], unit: f32, classes: usize) -> Vec<f32> {
    let constant = STRUCTURE_CONSTANT * (classes as f32).sqrt();
    let mut messages = Vec::with_capacity(before.len());
    for row in before.chunks_exact(classes + 1) {
        let start = messages.len();
        messages.extend(row[..classes].iter().map(|value| value / unit));
        messages.push(constant);
        normalise(&mut messages[start..]);
    }
    messages
}

/// The length of the part of a message that is no constant.
fn content() -> f32 {
    (1.0 - CONSTANT * CONSTANT).sqrt()
}

/// Probabilities less those that say nothing, divided by their length.
fn code(row: &mut [f32]) {
    let uniform = 1.0 / row.len() as f32;
    row.iter_mut().for_each(|value| *value -= uniform);
    normalise(row);
}

/// How alike the classes of neighbours are at most, as the first noisy sums tell: 0 if friends are made without regard to class, 1
/// if all friends are of one class; two standard errors of the noise are added.
pub(super) fn alike(
    sums: &Aggregate,
    rows: &Rows,
    roles: &Roles,
    features: &Features,
    noise: f64,
) -> Result<f64> {
    let (classes, nodes, train) = (rows.classes(), rows.labels().len() as f64, roles.train.len() as f64);
    let mut own = vec![0f32; classes];
    let (mut senders, mut agree, mut honest) = (0f64, 0f64, 0f64);
    let known = features.known(rows, &roles.train)?;
    for (&node, known) in roles.train.iter().zip(known.chunks_exact(classes)) {
        own.fill(0.0);
        own[rows.labels()[node as usize] as usize] = 1.0;
        code(&mut own);
        let mut said: Vec<f32> = known.iter().map(|value| value.exp()).collect();
        code(&mut said);
        let product = |a: &[f32]| a.iter().zip(&own).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        let row = &sums.values[node as usize * (classes + 1)..][..=classes];
        senders += f64::from(row[classes] / CONSTANT);
        agree += product(&row[..classes]) / f64::from(content());
        honest += product(&said);
    }
    let senders = senders.max(1.0);
    // How true messages are: labels are, the others as far as the features know.
    let share = roles.train_nodes as f64 / nodes;
    let truth = (share + (1.0 - share) * honest / train.max(1.0)).max(1e-3);
    let classes = classes as f64;
    let same: f64 = roles.priors(rows).iter().map(|prior| prior * prior).sum();
    let by_chance = ((classes * same - 1.0) / (classes - 1.0).max(1e-9)).min(0.999);
    let alike = (agree / (truth * senders) - by_chance) / (1.0 - by_chance);
    let error = noise * train.sqrt() / (f64::from(content()) * truth * senders * (1.0 - by_chance));
    Ok(alike.abs() + 2.0 * error)
}
