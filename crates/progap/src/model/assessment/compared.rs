//! Predictions beside labels, node by node: all that scores, curves and intervals are made of.

use rayon::prelude::*;

use super::ranking::{Curve, Ranked};
use super::{Assessment, Metric, wilson_interval};
use crate::mixing;

/// Resamples of an interval.
const RESAMPLES: usize = 1000;
/// The fewest resamples that an interval is made of.
const MIN_RESAMPLES: usize = 200;
/// The most nodes times classes times resamples: about a second. More nodes have fewer resamples.
const MAX_WORK: usize = 400_000_000;

/// Predictions for some nodes beside their labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The labels.
    pub truth: Vec<u32>,
    /// The classes that were predicted.
    pub predicted: Vec<u32>,
    /// A row of probabilities for each node.
    pub probabilities: Vec<f32>,
    /// The number of classes.
    pub classes: usize,
}

/// 95 % intervals, as far as there are any.
#[derive(Debug, Clone, PartialEq)]
pub struct Intervals {
    /// Of each metric, in the order of [`Metric::ALL`].
    metrics: Vec<Option<[f64; 2]>>,
    /// Of the recall of each class.
    pub recalls: Vec<Option<[f64; 2]>>,
    /// Of the AUROC of each class.
    pub aurocs: Vec<Option<[f64; 2]>>,
    /// Of the average precision of each class.
    pub average_precisions: Vec<Option<[f64; 2]>>,
}

impl Intervals {
    /// That of a metric. The calibration error has none: resampling makes it larger than it is.
    pub fn get(&self, metric: Metric) -> Option<[f64; 2]> {
        Metric::ALL.iter().position(|&other| other == metric).and_then(|at| self.metrics[at])
    }
}

impl Compared {
    /// The scores.
    pub fn assessment(&self) -> Assessment {
        Assessment::new(&self.truth, &self.predicted, &self.probabilities, self.classes)
    }

    /// What flagging nodes by their probability of a class finds; `None` if all nodes are in it, or none is.
    pub fn curve(&self, class: usize) -> Option<Curve> {
        self.ranked(class).curve()
    }

    fn ranked(&self, class: usize) -> Ranked {
        let scores = self.probabilities.chunks_exact(self.classes.max(1)).map(|row| row[class]);
        Ranked::new(scores.zip(self.truth.iter().map(|&truth| truth as usize == class)))
    }

    /// 95 % intervals by resampling nodes (percentiles of the bootstrap), the same for the same predictions; `None` if
    /// there are no nodes, or too many of them for the number of classes: two million, divided by it.
    pub fn intervals(&self) -> Option<Intervals> {
        let (nodes, classes) = (self.truth.len(), self.classes);
        let resamples = (MAX_WORK / (nodes * classes).max(1)).min(RESAMPLES);
        if nodes == 0 || resamples < MIN_RESAMPLES {
            return None;
        }
        let ranked: Vec<Ranked> = (0..classes).into_par_iter().map(|class| self.ranked(class)).collect();
        let losses: Vec<f64> = (0..nodes).map(|node| self.loss(node)).collect();
        let rarest = self.assessment().rarest().filter(|_| classes == 2);
        let drawn: Vec<Resampled> = (0..resamples as u64)
            .into_par_iter()
            .map(|number| self.resampled(&ranked, &losses, rarest, &drawn_counts(nodes, number)))
            .collect();
        let of = |value: &dyn Fn(&Resampled) -> Option<f64>| {
            interval(drawn.iter().filter_map(value).collect(), resamples)
        };
        let of_classes = |value: &dyn Fn(&Resampled, usize) -> Option<f64>| {
            (0..classes).map(|class| of(&|drawn| value(drawn, class))).collect()
        };
        Some(Intervals {
            metrics: (0..Metric::ALL.len()).map(|at| of(&|drawn| drawn.metrics[at])).collect(),
            recalls: self.recall_intervals(of_classes(&|drawn, class| drawn.recalls[class])),
            aurocs: of_classes(&|drawn, class| drawn.aurocs[class]),
            average_precisions: of_classes(&|drawn, class| drawn.average_precisions[class]),
        })
    }

    /// Where none or all of a class are found, so they are in every resample, which says nothing: Wilson's interval
    /// does.
    fn recall_intervals(&self, resampled: Vec<Option<[f64; 2]>>) -> Vec<Option<[f64; 2]>> {
        let of_class = |(class, interval): (usize, Option<[f64; 2]>)| {
            let support = self.truth.iter().filter(|&&truth| truth as usize == class).count();
            interval.map(|[low, high]| if low < high { [low, high] } else { wilson_interval(low, support) })
        };
        resampled.into_iter().enumerate().map(of_class).collect()
    }

    fn loss(&self, node: usize) -> f64 {
        let own = self.probabilities[node * self.classes + self.truth[node] as usize];
        -f64::from(own).clamp(f64::from(f32::EPSILON), 1.0).ln()
    }

    /// The scores where each node counts as often as it was drawn.
    fn resampled(
        &self,
        ranked: &[Ranked],
        losses: &[f64],
        rarest: Option<usize>,
        counts: &[u16],
    ) -> Resampled {
        let mut tally = vec![(0u64, 0u64, 0u64); self.classes];
        let mut loss = 0.0;
        for (node, &count) in counts.iter().enumerate() {
            let (truth, predicted) = (self.truth[node] as usize, self.predicted[node] as usize);
            let count = u64::from(count);
            tally[truth].0 += count;
            tally[predicted].1 += count;
            tally[truth].2 += if truth == predicted { count } else { 0 };
            loss += count as f64 * losses[node];
        }
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let recalls: Vec<_> = tally.iter().map(|&(support, _, right)| share(right, support)).collect();
        let f1s: Vec<_> = tally.iter().map(|&(s, p, right)| share(2 * right, s + p)).collect();
        let rankings: Vec<_> =
            ranked.iter().map(|ranked| ranked.ranking(|node| u32::from(counts[node as usize]))).collect();
        let aurocs: Vec<_> = rankings.iter().map(|ranking| ranking.map(|ranking| ranking.auroc)).collect();
        let precisions: Vec<_> =
            rankings.iter().map(|ranking| ranking.map(|ranking| ranking.average_precision)).collect();
        let right: u64 = tally.iter().map(|(_, _, right)| right).sum();
        let nodes = counts.len() as f64;
        let metric = |&metric: &Metric| match metric {
            Metric::Accuracy => Some(right as f64 / nodes),
            Metric::BalancedAccuracy => mean(&recalls),
            Metric::MacroF1 => mean(&f1s),
            Metric::Auroc => mean(&aurocs),
            Metric::AveragePrecision => match rarest {
                Some(class) => precisions[class],
                None => mean(&precisions),
            },
            Metric::LogLoss => Some(loss / nodes),
            Metric::CalibrationError => None,
        };
        let metrics = Metric::ALL.iter().map(metric).collect();
        Resampled { metrics, recalls, aurocs, average_precisions: precisions }
    }
}

/// The scores of one resample.
struct Resampled {
    metrics: Vec<Option<f64>>,
    recalls: Vec<Option<f64>>,
    aurocs: Vec<Option<f64>>,
    average_precisions: Vec<Option<f64>>,
}

/// The mean of those that are known.
fn mean(values: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// How often each of `nodes` is drawn in as many draws with replacement.
fn drawn_counts(nodes: usize, number: u64) -> Vec<u16> {
    let mut counts = vec![0u16; nodes];
    let start = mixing::mixed(number);
    for draw in 0..nodes as u64 {
        let random = mixing::mixed(start.wrapping_add(draw)) >> 32;
        let node = (random * nodes as u64) >> 32;
        counts[node as usize] = counts[node as usize].saturating_add(1);
    }
    counts
}

/// From the 2.5th to the 97.5th percentile; `None` if fewer than half of the resamples have the score.
fn interval(mut values: Vec<f64>, resamples: usize) -> Option<[f64; 2]> {
    if 2 * values.len() < resamples {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| values[(share * (values.len() - 1) as f64).round() as usize];
    Some([at(0.025), at(0.975)])
}
