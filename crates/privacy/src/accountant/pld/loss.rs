//! The privacy loss of a single mechanism, by its tail probabilities, and its pessimistic discretisation.
//!
//! For a pair (P, Q) the privacy loss is `ln P(x)/Q(x)` with x drawn from P. Everything here needs only the
//! probabilities of `loss <= t` under P and under Q.

use crate::accountant::multi_term::touched_terms;
use crate::special::{normal_cdf, normal_quantile_bound};

/// Unit roundoff.
const U: f64 = f64::EPSILON / 2.0;
/// Largest number of Gaussians in a mixture.
const MAX_PARTS: usize = 1000;

/// A pair of distributions, before any sampling.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Pair {
    /// `N(mu, 1)` against `N(0, 1)`.
    Gaussian { mu: f64 },
    /// Laplace laws of scale 1 whose centres are `shift` apart.
    Laplace { shift: f64 },
    /// Bernoulli laws.
    Binary { p: f64, q: f64 },
    /// A published index i with the given probability, then `N(mu_i, 1)` against `N(0, 1)`.
    Mixture { parts: Vec<(f64, f64)>, lost: f64 },
}

/// Which of two neighbouring data sets holds the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// The first: loss of P against Q.
    Remove,
    /// The second: loss of Q against P.
    Add,
}

/// A mechanism on a Poisson sample (rate 1 means no sampling).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mechanism {
    pub pair: Pair,
    pub rate: f64,
}

/// Probabilities of `loss <= t` and `loss > t`, each with full relative precision where it is small.
#[derive(Debug, Clone, Copy)]
struct Tails {
    below: f64,
    above: f64,
}

impl Tails {
    const NOTHING: Tails = Tails { below: 0.0, above: 0.0 };

    fn normal(z: f64) -> Tails {
        if z <= 0.0 {
            let below = normal_cdf(z);
            Tails { below, above: 1.0 - below }
        } else {
            let above = normal_cdf(-z);
            Tails { below: 1.0 - above, above }
        }
    }

    fn plus(self, weight: f64, other: Tails) -> Tails {
        Tails { below: self.below + weight * other.below, above: self.above + weight * other.above }
    }

    fn atom(self, mass: f64, is_below: bool) -> Tails {
        if is_below {
            Tails { below: self.below + mass, ..self }
        } else {
            Tails { above: self.above + mass, ..self }
        }
    }

    fn reversed(self) -> Tails {
        Tails { below: self.above, above: self.below }
    }
}

/// The mass between two points and the size of the numbers it was computed from.
fn between(low: Tails, high: Tails) -> (f64, f64) {
    let (mass, size) = if high.below <= 0.5 {
        (high.below - low.below, high.below)
    } else if low.above <= 0.5 {
        (low.above - high.above, low.above)
    } else {
        (1.0 - low.below - high.above, 1.0)
    };
    (mass.max(0.0), size)
}

impl Pair {
    /// The number of touched terms in a batch, as a mixture of Gaussians; numbers less likely than `e^log_tail` are
    /// lost, that is counted as certain disclosure. Nothing if too many numbers are likely.
    pub fn multi_term(population: u64, batch: u64, terms: u64, mu: f64, log_tail: f64) -> Option<Pair> {
        let (mut parts, mut lost) = (Vec::new(), 0.0);
        for (k, log_p) in touched_terms(population, batch, terms) {
            if log_p < log_tail { lost += log_p.exp() } else { parts.push((log_p.exp(), mu * k as f64)) }
        }
        (parts.len() <= MAX_PARTS).then_some(Pair::Mixture { parts, lost })
    }

    /// Tails of the loss under P and under Q.
    fn tails(&self, t: f64) -> (Tails, Tails) {
        match self {
            Pair::Gaussian { mu } => gaussian_tails(*mu, t),
            Pair::Laplace { shift } => {
                let s = *shift;
                if t < -s {
                    (Tails { below: 0.0, above: 1.0 }, Tails { below: 0.0, above: 1.0 })
                } else if t >= s {
                    (Tails { below: 1.0, above: 0.0 }, Tails { below: 1.0, above: 0.0 })
                } else {
                    let p = 0.5 * (0.5 * (t - s)).exp();
                    let q = 0.5 * (-0.5 * (t + s)).exp();
                    (Tails { below: p, above: 1.0 - p }, Tails { below: 1.0 - q, above: q })
                }
            }
            Pair::Binary { p, q } => {
                let mut tails = (Tails::NOTHING, Tails::NOTHING);
                for (p, q) in [(*p, *q), (1.0 - p, 1.0 - q)] {
                    let is_below = log_ratio(p, q) <= t;
                    tails = (tails.0.atom(p, is_below), tails.1.atom(q, is_below));
                }
                tails
            }
            Pair::Mixture { parts, .. } => {
                parts.iter().fold((Tails::NOTHING, Tails::NOTHING), |tails, &(weight, mu)| {
                    if mu == 0.0 {
                        (tails.0.atom(weight, 0.0 <= t), tails.1.atom(weight, 0.0 <= t))
                    } else {
                        let (p, q) = gaussian_tails(mu, t);
                        (tails.0.plus(weight, p), tails.1.plus(weight, q))
                    }
                })
            }
        }
    }

    /// Points that cover the loss up to a mass of about `e^log_tail` on either side, close enough together to compute
    /// moments with.
    fn points(&self, log_tail: f64) -> Vec<f64> {
        let reach = normal_quantile_bound(log_tail);
        match self {
            Pair::Gaussian { mu } => even(mu * reach + 0.5 * mu * mu, 800),
            Pair::Laplace { shift } => even(*shift, 1600),
            Pair::Binary { p, q } => {
                let mut points: Vec<f64> = [log_ratio(*p, *q), log_ratio(1.0 - p, 1.0 - q)]
                    .into_iter()
                    .filter(|l| l.is_finite())
                    .collect();
                if points.is_empty() {
                    points.push(0.0);
                }
                points
            }
            Pair::Mixture { parts, .. } => {
                let largest = parts.iter().fold(0.0, |a: f64, part| a.max(part.1));
                let smallest = parts.iter().map(|part| part.1).filter(|&mu| mu > 0.0).fold(largest, f64::min);
                if largest == 0.0 {
                    return vec![0.0];
                }
                // Finer near zero, where the small shifts live.
                let span = largest * reach + 0.5 * largest * largest;
                let width = smallest * reach + 0.5 * smallest * smallest;
                let scale = (span / width).max(1.5).asinh();
                even(1.0, 2400).into_iter().map(|x| width * (x * scale).sinh()).collect()
            }
        }
    }

    /// Probability of certain disclosure, which no finite loss describes, under P.
    fn lost(&self) -> f64 {
        match self {
            Pair::Mixture { lost, .. } => *lost,
            _ => 0.0,
        }
    }

    fn is_symmetric(&self) -> bool {
        !matches!(self, Pair::Binary { p, q } if *p != 1.0 - q)
    }
}

fn even(reach: f64, cells: i32) -> Vec<f64> {
    (-cells / 2..=cells / 2).map(|i| reach * f64::from(i) / f64::from(cells / 2)).collect()
}

fn gaussian_tails(mu: f64, t: f64) -> (Tails, Tails) {
    (Tails::normal(t / mu - 0.5 * mu), Tails::normal(t / mu + 0.5 * mu))
}

/// `ln(p / q)`, infinite when `q` is 0.
fn log_ratio(p: f64, q: f64) -> f64 {
    if p == q { 0.0 } else { p.ln() - q.ln() }
}

/// A mechanism's loss in one direction.
#[derive(Debug, Clone)]
pub(super) struct Loss<'a> {
    pub mechanism: &'a Mechanism,
    pub direction: Direction,
}

impl Loss<'_> {
    /// Whether both directions give the same loss, so that one need not be looked at.
    pub fn is_symmetric(mechanism: &Mechanism) -> bool {
        mechanism.rate == 1.0 && mechanism.pair.is_symmetric()
    }

    /// Tails of the loss under the first and the second distribution of the pair.
    fn tails(&self, t: f64) -> (Tails, Tails) {
        match self.direction {
            Direction::Remove => self.removal_tails(t),
            Direction::Add => {
                let (p, q) = self.removal_tails(-t);
                (q.reversed(), p.reversed())
            }
        }
    }

    fn removal_tails(&self, t: f64) -> (Tails, Tails) {
        let rate = self.mechanism.rate;
        if rate == 1.0 {
            return self.mechanism.pair.tails(t);
        }
        // loss = ln(1 - rate + rate e^inner), which never falls below ln(1 - rate).
        let odds = t.exp_m1() + rate;
        if odds <= 0.0 {
            return (Tails { below: 0.0, above: 1.0 }, Tails { below: 0.0, above: 1.0 });
        }
        let (p, q) = self.mechanism.pair.tails((odds / rate).ln());
        (Tails::NOTHING.plus(1.0 - rate, q).plus(rate, p), q)
    }

    /// The loss that belongs to an inner loss.
    fn outer(&self, inner: f64) -> f64 {
        let rate = self.mechanism.rate;
        let removal = if rate == 1.0 {
            inner
        } else if inner > 30.0 {
            inner + (rate + (1.0 - rate) * (-inner).exp()).ln()
        } else {
            (rate * inner.exp_m1()).ln_1p()
        };
        match self.direction {
            Direction::Remove => removal,
            Direction::Add => -removal,
        }
    }

    /// A discretisation on points of its own, fine enough for moments.
    pub fn sketch(&self, log_tail: f64) -> Masses {
        let mut points: Vec<f64> =
            self.mechanism.pair.points(log_tail).into_iter().map(|inner| self.outer(inner)).collect();
        points.sort_by(f64::total_cmp);
        // An atom at either end must not fall off by rounding.
        let margin = 1e-9 * points[points.len() - 1].abs().max(points[0].abs());
        points.insert(0, points[0] - margin);
        points.push(points[points.len() - 1] + margin);
        points.dedup();
        let at = points.clone();
        self.discretise(points.len(), |i| at[i])
    }

    /// A discretisation on multiples of `step`; what lies below `low` moves up.
    pub fn on_grid(&self, sketch: &Masses, low: f64, step: f64) -> Grid {
        let high = sketch.points[sketch.points.len() - 1];
        // An atom at the very end must not fall off the grid by rounding.
        let first = (low / step).floor() as i64;
        let last = (high / step).ceil() as i64 + 1;
        let masses = self.discretise((last - first + 1) as usize, |i| (first + i as i64) as f64 * step);
        Grid { masses, first, step }
    }

    /// Connects the dots: the mass in each cell is shared between the two ends so that both probabilities of the cell,
    /// under P and under Q, stay as they are.
    ///
    /// # Proof definition
    /// The result's `delta(epsilon)` is at least that of the loss for every epsilon, and equal at the points: it
    /// replaces a convex function of `e^epsilon` by its chords. Below the first point mass moves up to it, above
    /// the last point it counts as lost. See [proof](crate::proofs::privacy_loss#connect-the-dots).
    fn discretise(&self, count: usize, point: impl Fn(usize) -> f64) -> Masses {
        let points: Vec<f64> = (0..count).map(point).collect();
        let mut masses = vec![0.0; count];
        let mut low = self.tails(points[0]);
        masses[0] = low.0.below;
        for i in 0..count - 1 {
            let high = self.tails(points[i + 1]);
            let ((p, p_size), (q, q_size)) = (between(low.0, high.0), between(low.1, high.1));
            if p > 0.0 {
                let width = -(points[i] - points[i + 1]).exp_m1();
                let scale = points[i].exp();
                // Mass that rounding may have taken from the upper end is given back to it.
                let doubt = 16.0 * U * (p_size + scale * q_size) / width;
                let split = (p - scale * q) / width + doubt;
                // Where e^loss or the second probability leaves the range of floats, everything moves up.
                let resolved = scale < 1e300 && q_size > 1e-290 && split.is_finite();
                let upper = if resolved { split.clamp(0.0, p) } else { p };
                masses[i] += p - upper;
                masses[i + 1] += upper;
            }
            low = high;
        }
        Masses { points, masses, lost: low.0.above + self.mechanism.pair.lost() }
    }
}

/// A discrete loss.
#[derive(Debug, Clone)]
pub(super) struct Masses {
    pub points: Vec<f64>,
    pub masses: Vec<f64>,
    /// Mass of losses above the last point.
    pub lost: f64,
}

impl Masses {
    /// `ln E[e^(lambda loss)]` over the finite losses.
    pub fn log_moment(&self, lambda: f64) -> f64 {
        // Losses are sorted, but masses matter too: find the largest exponent first.
        let mut top = f64::NEG_INFINITY;
        let ends = [self.points[0], self.points[self.points.len() - 1]];
        let bound = ends.iter().fold(f64::NEG_INFINITY, |a: f64, &l| a.max(lambda * l));
        if bound < 600.0 {
            let sum: f64 = self.points.iter().zip(&self.masses).map(|(&l, &m)| m * (lambda * l).exp()).sum();
            if sum > 1e-250 {
                return sum.ln();
            }
        }
        for (&l, &m) in self.points.iter().zip(&self.masses) {
            if m > 0.0 {
                top = top.max(lambda * l + m.ln());
            }
        }
        if top == f64::NEG_INFINITY {
            return top;
        }
        let sum: f64 = self
            .points
            .iter()
            .zip(&self.masses)
            .filter(|(_, m)| **m > 0.0)
            .map(|(&l, &m)| (lambda * l + m.ln() - top).exp())
            .sum();
        top + sum.ln()
    }

    /// Mean and variance over the finite losses.
    pub fn mean_variance(&self) -> (f64, f64) {
        let total: f64 = self.masses.iter().sum();
        let mean = self.points.iter().zip(&self.masses).map(|(l, m)| l * m).sum::<f64>() / total;
        let variance =
            self.points.iter().zip(&self.masses).map(|(l, m)| (l - mean).powi(2) * m).sum::<f64>() / total;
        (mean, variance)
    }
}

/// A discrete loss on consecutive multiples of a step.
#[derive(Debug, Clone)]
pub(super) struct Grid {
    pub masses: Masses,
    /// The multiple at which it begins.
    pub first: i64,
    step: f64,
}

impl Grid {
    /// Points that share an exponential.
    const RUN: usize = 64;

    /// The masses times `e^(lambda loss)`, divided by their sum, and the logarithm of that sum, which is about
    /// `log_scale`.
    pub fn tilted(&self, lambda: f64, log_scale: f64) -> (Vec<f64>, f64) {
        let Masses { points, masses, .. } = &self.masses;
        let reach = points[0].abs().max(points[points.len() - 1].abs());
        let mut weights = Vec::with_capacity(masses.len());
        if (lambda * reach).abs() + log_scale.abs() < 600.0 {
            let ratios: [f64; Self::RUN] = std::array::from_fn(|k| (lambda * self.step * k as f64).exp());
            for (points, masses) in points.chunks(Self::RUN).zip(masses.chunks(Self::RUN)) {
                let base = (lambda * points[0] - log_scale).exp();
                weights.extend(masses.iter().zip(&ratios).map(|(mass, ratio)| mass * (base * ratio)));
            }
        } else {
            let weight =
                |(&l, &m): (&f64, &f64)| if m > 0.0 { (m.ln() + lambda * l - log_scale).exp() } else { 0.0 };
            weights.extend(points.iter().zip(masses).map(weight));
        }
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
        (weights, log_scale + sum.ln())
    }
}
