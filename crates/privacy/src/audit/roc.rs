//! How well scores tell two groups apart: the curve of hits against false alarms, and the area below it.

use super::rates::{check_scores, quantile};
use super::{Interval, clopper_pearson, error_rate};
use crate::error::{Error, Result};

/// The curve of hits against false alarms over all thresholds.
#[derive(Debug, Clone, PartialEq)]
pub struct Roc {
    /// For each threshold, from the highest down: false alarms and hits so far. Begins at (0, 0); ties are one point.
    points: Vec<(u64, u64)>,
    auc: f64,
    variance: f64,
}

impl Roc {
    /// The curve of scores that should be high in the first group and low in the second.
    ///
    /// # Errors
    /// Scores that are not finite, or none in a group.
    pub fn new(with: &[f64], without: &[f64]) -> Result<Self> {
        check_scores(with)?;
        check_scores(without)?;
        let mut scores: Vec<(f64, bool)> = with.iter().map(|&score| (score, true)).collect();
        scores.extend(without.iter().map(|&score| (score, false)));
        scores.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (mut points, mut at) = (vec![(0, 0)], (0, 0));
        // The placements of DeLong, DeLong and Clarke-Pearson (1988): the share of the other group that a score beats,
        // ties counted half. Their mean is the area, and their spread gives its variance.
        let (positives, negatives) = (with.len() as f64, without.len() as f64);
        let (mut hits, mut alarms) = (Moments::default(), Moments::default());
        for ties in scores.chunk_by(|a, b| a.0 == b.0) {
            let yes = ties.iter().filter(|(_, with)| *with).count() as u64;
            let no = ties.len() as u64 - yes;
            hits.add(yes, 1.0 - (at.0 as f64 + 0.5 * no as f64) / negatives);
            alarms.add(no, (at.1 as f64 + 0.5 * yes as f64) / positives);
            at = (at.0 + no, at.1 + yes);
            points.push(at);
        }
        Ok(Self { points, auc: hits.mean(), variance: hits.variance_of_mean() + alarms.variance_of_mean() })
    }

    /// The area under the curve: the probability that a score of the first group beats one of the second.
    pub fn auc(&self) -> f64 {
        self.auc
    }

    /// An interval for the area by DeLong's variance: approximate, for independent scores and large groups.
    ///
    /// # Errors
    /// A confidence outside `(0, 1)`.
    pub fn auc_interval(&self, confidence: f64) -> Result<Interval> {
        let half = -quantile(error_rate(confidence)? / 2.0) * self.variance.sqrt();
        Ok(Interval { lower: (self.auc - half).max(0.0), upper: (self.auc + half).min(1.0) })
    }

    /// The largest share of hits with at most this share of false alarms.
    pub fn hits_at(&self, false_alarms: f64) -> f64 {
        self.hits_counted(false_alarms) as f64 / self.totals().1 as f64
    }

    /// [`Roc::hits_at`] with its Clopper-Pearson interval, which takes the threshold as given.
    ///
    /// # Errors
    /// A confidence outside `(0, 1)`.
    pub fn hits_interval(&self, false_alarms: f64, confidence: f64) -> Result<Interval> {
        clopper_pearson(self.hits_counted(false_alarms), self.totals().1, confidence)
    }

    /// The curve as shares, from (0, 0) to (1, 1), false alarms first.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let (negatives, positives) = self.totals();
        let share =
            |&(alarms, hits): &(u64, u64)| (alarms as f64 / negatives as f64, hits as f64 / positives as f64);
        self.points.iter().map(share).collect()
    }

    fn totals(&self) -> (u64, u64) {
        *self.points.last().expect("it begins with a point")
    }

    fn hits_counted(&self, false_alarms: f64) -> u64 {
        let most = false_alarms * self.totals().0 as f64;
        self.points.iter().take_while(|(alarms, _)| *alarms as f64 <= most).last().map_or(0, |point| point.1)
    }
}

#[derive(Default)]
struct Moments {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, count: u64, value: f64) {
        self.count += count as f64;
        self.sum += count as f64 * value;
        self.squares += count as f64 * value * value;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count
    }

    fn variance_of_mean(&self) -> f64 {
        let spread = (self.squares / self.count - self.mean().powi(2)).max(0.0);
        spread / (self.count - 1.0).max(1.0)
    }
}

/// Splits scores by their coins.
///
/// # Errors
/// Lists of different length.
pub fn by_coin(scores: &[f64], coins: &[bool]) -> Result<(Vec<f64>, Vec<f64>)> {
    if scores.len() != coins.len() {
        return Err(Error::invalid("scores", scores.len(), "as many as coins"));
    }
    let side = |wanted: bool| {
        let chosen = scores.iter().zip(coins).filter(|(_, coin)| **coin == wanted);
        chosen.map(|(score, _)| *score).collect::<Vec<_>>()
    };
    Ok((side(true), side(false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITH: [f64; 8] = [0.9, 0.8, 0.8, 0.55, 0.5, 0.35, 0.3, 0.99];
    const WITHOUT: [f64; 10] = [0.1, 0.4, 0.35, 0.8, 0.2, 0.05, 0.6, 0.15, 0.3, 0.12];

    /// The area and the points by scikit-learn (`roc_auc_score`, `roc_curve`), the standard error by
    /// the definition of DeLong in NumPy.
    #[test]
    fn area_and_spread_agree_with_others() {
        let roc = Roc::new(&WITH, &WITHOUT).unwrap();
        assert!((roc.auc() - 0.8375).abs() < 1e-12, "{}", roc.auc());
        assert!((roc.variance.sqrt() - 0.094_136_109_664_98).abs() < 1e-12, "{}", roc.variance.sqrt());
    }

    #[test]
    fn hits_at_few_false_alarms() {
        let roc = Roc::new(&WITH, &WITHOUT).unwrap();
        assert_eq!([roc.hits_at(0.0), roc.hits_at(0.1), roc.hits_at(0.2)], [0.25, 0.5, 0.75]);
        assert_eq!(roc.curve().first(), Some(&(0.0, 0.0)));
        assert_eq!(roc.curve().last(), Some(&(1.0, 1.0)));
        assert!(roc.hits_interval(0.1, 0.95).unwrap().lower < 0.5);
        let same = Roc::new(&[1.0; 5], &[1.0; 7]).unwrap();
        assert_eq!((same.auc(), same.hits_at(0.01)), (0.5, 0.0));
        assert!(Roc::new(&[f64::NAN], &[0.0]).is_err() && Roc::new(&[], &[0.0]).is_err());
    }
}
