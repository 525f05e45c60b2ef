//! The messages of nodes, all of norm one at most; and whether labels tell anything.

use super::Roles;
use super::features::Features;
use crate::Result;
use crate::method::history::StageScore;
use crate::rows::{Rows, normalise};
use crate::vault::Aggregate;

/// The constant in every message of labels: its sum is the number of senders.
const CONSTANT: f32 = 0.2;
/// The constant beside structure, by which a message keeps some of its length.
const STRUCTURE_CONSTANT: f32 = 0.3;

/// A message about each node's class, centred and of one length: the label of a training node, the probabilities of the
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

/// The most that [`alike`] says of some sums; none where none of them can tell.
pub(super) fn most_alike(
    aggregates: &[Aggregate],
    rows: &Rows,
    (roles, features): (&Roles, &Features),
    noise: f64,
) -> Result<Option<f64>> {
    let (classes, train) = (rows.classes(), roles.train.len() as f64);
    let known = features.known(rows, &roles.train)?;
    let labels = Roles::labels(rows, &roles.train);
    // How true messages are: labels are, the others as far as the features know.
    let honest: f64 = known.chunks_exact(classes).zip(&labels).map(|(row, &label)| honesty(row, label)).sum();
    let share = roles.train_nodes as f64 / rows.labels().len() as f64;
    let truth = share + (1.0 - share) * honest / train.max(1.0);
    // Otherwise the mean of so many nodes may be chance, and what is divided by it anything.
    if truth < 2.0 / train.max(1.0).sqrt() {
        return Ok(None);
    }
    let heard = |sums: &Aggregate| {
        let mut heard = Heard::default();
        for (&node, &label) in roles.train.iter().zip(&labels) {
            heard.add(&sums.values[node as usize * (classes + 1)..][..=classes], label);
        }
        heard.alike(truth, train, &roles.priors(rows), noise)
    };
    Ok(aggregates.iter().map(heard).reduce(f64::max))
}

/// How far what is said of a node, in logarithms of probabilities, points to its label.
fn honesty(known: &[f32], label: u32) -> f64 {
    let mut said: Vec<f32> = known.iter().map(|value| value.exp()).collect();
    code(&mut said);
    agreement(&said, label)
}

/// The product of a row with the code of a label.
fn agreement(row: &[f32], label: u32) -> f64 {
    let mut own = vec![0f32; row.len()];
    own[label as usize] = 1.0;
    code(&mut own);
    row.iter().zip(&own).map(|(a, b)| f64::from(a * b)).sum()
}

/// Totals of the messages that nodes with a label heard from their neighbours.
#[derive(Default)]
struct Heard {
    senders: f64,
    agree: f64,
}

impl Heard {
    /// The sums that came to a node with this label.
    fn add(&mut self, row: &[f32], label: u32) {
        let (said, constant) = row.split_at(row.len() - 1);
        self.senders += f64::from(constant[0] / CONSTANT);
        self.agree += agreement(said, label) / f64::from(content());
    }

    /// How alike the classes of neighbours are at most: 0 if friends are made without regard to class, 1 if all friends are of one
    /// class; two standard errors of the noise are added.
    fn alike(&self, truth: f64, nodes: f64, priors: &[f64], noise: f64) -> f64 {
        let (senders, classes) = (self.senders.max(1.0), priors.len() as f64);
        let same: f64 = priors.iter().map(|prior| prior * prior).sum();
        let by_chance = ((classes * same - 1.0) / (classes - 1.0).max(1e-9)).min(0.999);
        let alike = (self.agree / (truth * senders) - by_chance) / (1.0 - by_chance);
        let error = noise * nodes.sqrt() / (f64::from(content()) * truth * senders * (1.0 - by_chance));
        (alike.abs() + 2.0 * error).min(1.0)
    }
}

/// The stage whose probabilities are sent next.
#[derive(Clone, Copy)]
pub(super) struct Speaker {
    pub stage: usize,
    /// The lowest log loss so far.
    least: f64,
}

impl Speaker {
    pub fn new(stage: usize, judged: StageScore) -> Speaker {
        Speaker { stage, least: judged.log_loss }
    }

    /// A later stage speaks unless it is worse than the best so far by more than chance makes it: it has heard of labels farther away, and
    /// a stage that is never sent teaches the next ones nothing.
    pub fn or(self, stage: usize, judged: StageScore) -> Speaker {
        let worse = judged.log_loss - self.least;
        let stage = if worse > judged.doubt.unwrap_or(0.0) { self.stage } else { stage };
        Speaker { stage, least: self.least.min(judged.log_loss) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(log_loss: f64, doubt: f64) -> StageScore {
        StageScore { log_loss, score: None, doubt: Some(doubt), alike: None }
    }

    #[test]
    fn the_latest_stage_speaks_unless_it_is_worse_than_chance_makes_it() {
        let first = Speaker::new(0, judged(1.0, 0.0));
        let second = first.or(1, judged(1.05, 0.1));
        assert_eq!(second.stage, 1, "as good as the features, as far as can be told");
        assert_eq!(second.or(2, judged(1.2, 0.1)).stage, 1, "worse");
        // The best so far counts, not the last that spoke.
        assert_eq!(second.or(2, judged(1.09, 0.1)).or(3, judged(1.15, 0.1)).stage, 2);
        assert_eq!(second.or(2, judged(0.5, 0.1)).or(3, judged(0.5, 0.0)).stage, 3);
    }

    /// Rows of sums of messages that say what they know of labels; nodes of two classes have ten friends each, of whom so many are alike.
    fn heard(alike: f32) -> Heard {
        let mut heard = Heard::default();
        for node in 0..100u32 {
            let label = node % 2;
            let mut row: Vec<f32> =
                (0..2).map(|class| if class == label { 5.0 } else { -5.0 } * alike).collect();
            row.iter_mut().for_each(|value| *value *= std::f32::consts::SQRT_2 * content());
            row.push(10.0 * CONSTANT);
            heard.add(&row, label);
        }
        heard
    }

    #[test]
    fn how_alike_neighbours_are_is_said_from_zero_to_one() {
        let alike = |share: f32, noise: f64| heard(share).alike(1.0, 100.0, &[0.5, 0.5], noise);
        assert!(alike(0.0, 0.0).abs() < 1e-6 && (alike(0.4, 0.0) - 0.4).abs() < 1e-5, "{}", alike(0.4, 0.0));
        assert!((alike(-0.4, 0.0) - 0.4).abs() < 1e-5, "neighbours who differ tell as much");
        assert!(alike(0.4, 1.0) > 0.4 && alike(1.0, 5.0) == 1.0 && alike(0.1, 1e6) == 1.0);
    }
}
