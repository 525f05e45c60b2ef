//! Attacks of an outsider on a release, to find edges and training nodes.
//!
//! These attacks measure what leaks in practice; they do not test the claim, which is about one edge or record with all
//! others known. A good result of theirs may rest on what is public: people of one class are more often neighbours.
//! So each edge is compared with a pair that is no edge, with the same receiver and with a sender of the same class
//! that is drawn as senders of edges are.

use std::num::NonZeroU64;

use progap_graph::{Dataset, Part};
use progap_privacy::audit::{Interval, Roc};
use progap_privacy::noise::{AnySource, Randomness};
use serde::Serialize;

use progap::release::Release;
use progap::rows::{Rows, normalise};
use progap::settings::Direction;
use progap::{Error, Result};

/// An attack and how it went.
#[derive(Debug, Clone)]
pub struct Attack {
    /// Its name.
    pub name: &'static str,
    /// Its question, in words.
    pub question: &'static str,
    /// Cases that are true: edges, training nodes.
    pub positives: usize,
    /// Cases that are not.
    pub negatives: usize,
    /// Hits against false alarms.
    pub roc: Roc,
}

/// The figures of an attack.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Its name.
    pub name: &'static str,
    /// Its question, in words.
    pub question: &'static str,
    /// Cases that are true.
    pub positives: usize,
    /// Cases that are not.
    pub negatives: usize,
    /// The area under the curve, 0.5 for guessing.
    pub auc: f64,
    /// Its 95 % interval.
    pub auc_interval: [f64; 2],
    /// The share of true cases found when 1 % of the others are accused.
    pub found_at_one_percent: f64,
    /// Its 95 % interval.
    pub found_at_one_percent_interval: [f64; 2],
    /// The share of true cases found when 0.1 % of the others are accused.
    pub found_at_one_per_mille: f64,
    /// Its 95 % interval.
    pub found_at_one_per_mille_interval: [f64; 2],
}

impl Attack {
    fn new(name: &'static str, question: &'static str, with: &[f64], without: &[f64]) -> Result<Attack> {
        let roc = Roc::new(with, without)?;
        Ok(Attack { name, question, positives: with.len(), negatives: without.len(), roc })
    }

    /// The figures.
    ///
    /// # Errors
    /// None in practice: the confidence is fixed.
    pub fn outcome(&self) -> Result<Outcome> {
        let ends = |interval: Interval| [interval.lower, interval.upper];
        Ok(Outcome {
            name: self.name,
            question: self.question,
            positives: self.positives,
            negatives: self.negatives,
            auc: self.roc.auc(),
            auc_interval: ends(self.roc.auc_interval(0.95)?),
            found_at_one_percent: self.roc.hits_at(0.01),
            found_at_one_percent_interval: ends(self.roc.hits_interval(0.01, 0.95)?),
            found_at_one_per_mille: self.roc.hits_at(0.001),
            found_at_one_per_mille_interval: ends(self.roc.hits_interval(0.001, 0.95)?),
        })
    }
}

/// The most edges to look for.
const PAIRS: usize = 20_000;

/// Looks for edges in a release, given the truth to compare with: by the similarity of two nodes' features (for
/// comparison: no edge went into them), of what the model says about them, and of their aggregates; and by influence:
/// whether a node's aggregates hold what the other one would have sent.
///
/// # Errors
/// A data set that the release does not fit, or one with hardly any edges.
pub fn link(
    release: &Release,
    dataset: &Dataset,
    randomness: &mut Randomness<AnySource>,
) -> Result<Vec<Attack>> {
    let (edges, others) = pairs(dataset, randomness)?;
    if edges.len() < 2 {
        return Err(Error::unsuitable(
            "there are too few edges to look for: audit the mechanism and the training alone",
        ));
    }
    let dataset = &release.prepared(dataset)?;
    let rows = Rows::of_nodes(dataset)?;
    let everyone: Vec<u32> = (0..dataset.nodes() as u32).collect();
    let posteriors = release.probabilities_of(&rows, &everyone)?;
    let classes = dataset.classes();
    let attack = |name, question, score: &dyn Fn(u32, u32) -> f64| {
        let scores = |pairs: &[(u32, u32)]| pairs.iter().map(|&(a, b)| score(a, b)).collect::<Vec<_>>();
        Attack::new(name, question, &scores(&edges), &scores(&others))
    };
    let row = |values: &[f32], width: usize, node: u32| values[node as usize * width..][..width].to_vec();
    let mut attacks = vec![
        attack("features", "are the features alike? (no edge is in them: for comparison)", &|a, b| {
            let (a, b): (Vec<_>, Vec<_>) =
                (dataset.features().row(a as usize).collect(), dataset.features().row(b as usize).collect());
            sparse_cosine(&a, &b)
        })?,
        attack("posteriors", "does the model say alike things about both?", &|a, b| {
            cosine(&row(&posteriors, classes, a), &row(&posteriors, classes, b))
        })?,
    ];
    let answers = release.answers()?;
    if !answers.is_empty() {
        let joined =
            |node: u32| -> Vec<f32> { answers.iter().flat_map(|a| row(&a.values, a.width, node)).collect() };
        attacks
            .push(attack("aggregates", "are the aggregates alike?", &|a, b| cosine(&joined(a), &joined(b)))?);
        let (sent, direction) = (messages(release, &rows)?, release.settings()?.direction);
        attacks.push(attack(
            "influence",
            "is what one would have sent in the other's aggregates?",
            &|a, b| {
                let product = |(number, messages): &(usize, Vec<f32>)| {
                    // Where messages go against the edges, the receiver is who sent.
                    let against = match direction {
                        Direction::In => false,
                        Direction::Out => true,
                        Direction::Both => number % 2 == 1,
                    };
                    let (a, b) = if against { (b, a) } else { (a, b) };
                    let aggregate = &answers[*number];
                    let (message, found) =
                        (row(messages, aggregate.width, a), row(&aggregate.values, aggregate.width, b));
                    message.iter().zip(&found).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>()
                };
                sent.iter().map(product).sum()
            },
        )?);
    }
    Ok(attacks)
}

/// Looks for training nodes: is the model surer about the class of a training node than about that of a test node?
///
/// # Errors
/// A data set that the release does not fit, or one without training or test nodes.
pub fn membership(release: &Release, dataset: &Dataset) -> Result<Attack> {
    let dataset = &release.prepared(dataset)?;
    let rows = Rows::of_nodes(dataset)?;
    let scores = |part: Part| -> Result<Vec<f64>> {
        let nodes = rows.nodes(part);
        let probabilities = release.probabilities_of(&rows, &nodes)?;
        let own = nodes.iter().zip(probabilities.chunks_exact(dataset.classes()));
        Ok(own
            .map(|(&node, p)| f64::from(p[dataset.labels()[node as usize] as usize].max(1e-30).ln()))
            .collect())
    };
    let question = "is the model surer of the true class than of a test node's?";
    Attack::new("loss", question, &scores(Part::Train)?, &scores(Part::Test)?)
}

/// The messages that nodes would have sent for each aggregate, as far as the released model tells, less their mean, and
/// turned to where the aggregates vary least: the best linear test for a message among the sum of the others.
fn messages(release: &Release, rows: &Rows) -> Result<Vec<(usize, Vec<f32>)>> {
    let mut found = Vec::new();
    for (number, aggregate) in release.answers()?.iter().enumerate() {
        // Another method, whose messages the model does not tell.
        let Some(mut messages) = release.sent(rows, number)? else { continue };
        messages.chunks_exact_mut(aggregate.width).for_each(normalise);
        let count = (messages.len() / aggregate.width).max(1) as f32;
        let mut mean = vec![0f32; aggregate.width];
        for message in messages.chunks_exact(aggregate.width) {
            mean.iter_mut().zip(message).for_each(|(m, v)| *m += v / count);
        }
        let others = Moments::of(&aggregate.values, aggregate.width);
        for message in messages.chunks_exact_mut(aggregate.width) {
            message.iter_mut().zip(&mean).for_each(|(v, m)| *v -= m);
            others.solve(message);
        }
        found.push((number, messages));
    }
    Ok(found)
}

/// The second moments of some rows, as a Cholesky factor.
struct Moments {
    width: usize,
    factor: Vec<f64>,
}

impl Moments {
    fn of(rows: &[f32], width: usize) -> Moments {
        let mut sums = vec![0f64; width * width];
        for row in rows.chunks_exact(width) {
            for i in 0..width {
                (0..=i).for_each(|j| sums[i * width + j] += f64::from(row[i]) * f64::from(row[j]));
            }
        }
        let trace: f64 = (0..width).map(|i| sums[i * width + i]).sum();
        // A little is added to every direction, so that one in which nothing varies does not decide alone.
        let floor = (1e-6 * trace / width as f64).max(f64::MIN_POSITIVE);
        let mut factor = sums;
        for i in 0..width {
            factor[i * width + i] += floor;
            for j in 0..=i {
                let product: f64 = (0..j).map(|k| factor[i * width + k] * factor[j * width + k]).sum();
                let rest = factor[i * width + j] - product;
                factor[i * width + j] =
                    if i == j { rest.max(floor).sqrt() } else { rest / factor[j * width + j] };
            }
        }
        Moments { width, factor }
    }

    /// Replaces a row by the solution of "moments times solution is the row", up to the number of rows.
    fn solve(&self, row: &mut [f32]) {
        let (width, factor) = (self.width, &self.factor);
        let mut x: Vec<f64> = row.iter().map(|&v| f64::from(v)).collect();
        for i in 0..width {
            let known: f64 = (0..i).map(|k| factor[i * width + k] * x[k]).sum();
            x[i] = (x[i] - known) / factor[i * width + i];
        }
        for i in (0..width).rev() {
            let known: f64 = (i + 1..width).map(|k| factor[k * width + i] * x[k]).sum();
            x[i] = (x[i] - known) / factor[i * width + i];
        }
        let scale = x.iter().map(|v| v * v).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        row.iter_mut().zip(&x).for_each(|(v, x)| *v = (x / scale) as f32);
    }
}

type Pairs = Vec<(u32, u32)>;

/// Edges at random, and for each a pair that is none: another sender of the same class for the same receiver.
fn pairs(dataset: &Dataset, randomness: &mut Randomness<AnySource>) -> Result<(Pairs, Pairs)> {
    let graph = dataset.graph();
    let all: Pairs = graph.iter_edges().filter(|(a, b)| a != b).collect();
    let mut stream = randomness.purpose("pairs of an attack")?.stream();
    let (mut edges, mut others) = (Pairs::new(), Pairs::new());
    let Some(count) = NonZeroU64::new(all.len() as u64) else { return Ok((edges, others)) };
    let mut any = || all[stream.below(count) as usize];
    for _ in 0..all.len().min(PAIRS) {
        let (sender, receiver) = any();
        let class = dataset.labels()[sender as usize];
        let other = (0..200).map(|_| any().0).find(|&other| {
            let free = graph.in_neighbours(receiver as usize).binary_search(&other).is_err();
            dataset.labels()[other as usize] == class && other != receiver && free
        });
        if let Some(other) = other {
            edges.push((sender, receiver));
            others.push((other, receiver));
        }
    }
    Ok((edges, others))
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f64::MIN_POSITIVE)
}

fn sparse_cosine(a: &[(usize, f32)], b: &[(usize, f32)]) -> f64 {
    let dot = |a: &[(usize, f32)], b: &[(usize, f32)]| -> f64 {
        let at = |column: usize| b.binary_search_by_key(&column, |entry| entry.0).ok().map(|at| b[at].1);
        a.iter().filter_map(|&(column, x)| at(column).map(|y| f64::from(x) * f64::from(y))).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_inverted() {
        // The moments of these rows are [[10, 6], [6, 8]], whose inverse takes (16, 14) to (1, 1).
        let moments = Moments::of(&[3.0, 2.0, 1.0, 0.0, 0.0, 2.0], 2);
        let mut row = [16.0, 14.0];
        moments.solve(&mut row);
        assert!((row[0] - row[1]).abs() < 1e-4 && (row[0] - 0.5f32.sqrt()).abs() < 1e-4, "{row:?}");
        let mut any = [1.0, 0.0];
        Moments::of(&[0.0; 4], 2).solve(&mut any);
        assert!(any.iter().all(|v| v.is_finite()));
    }

    #[test]
    fn rows_are_compared_by_angle() {
        assert!((cosine(&[1.0, 2.0], &[2.0, 4.0]) - 1.0).abs() < 1e-12);
        assert_eq!(cosine(&[0.0, 0.0], &[2.0, 4.0]), 0.0);
        assert!((sparse_cosine(&[(0, 1.0), (5, 2.0)], &[(5, 3.0)]) - 2.0 / 5f64.sqrt()).abs() < 1e-12);
    }
}
