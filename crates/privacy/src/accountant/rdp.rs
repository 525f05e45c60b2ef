//! Accounting by Rényi divergences.

use super::gdp::squared_mu;
use super::multi_term::touched_terms;
use super::{Accountant, Bound, Obstacle};
use crate::event::{Event, Path};
use crate::special::{log_add, minimise};

/// Orders above this one are not used for sampled Gaussians, whose cost grows with the order.
const MAX_SAMPLED_ORDER: f64 = 20_000.0;

/// Rényi differential privacy with the improved conversion.
///
/// Divergences of the same order add under composition. They are turned into `(epsilon, delta)` by
/// `epsilon = rdp + ln(1 - 1/alpha) - ln(alpha delta) / (alpha - 1)` at the best order (Canonne, Kamath and Steinke
/// 2020), or by the Bretagnolle-Huber inequality where that gives zero.
///
/// # Proof definition
/// At every order the divergence used is at least that of the dominating pair in both directions: exact for Gaussian,
/// Laplace, binary and Poisson-sampled Gaussian mechanisms (Mironov, Talwar and Zhang 2019), the published bounds
/// for multi-term batches (Daigavane et al. 2021) and private selection (Papernot and Steinke 2022). Parallel events
/// cost the largest divergence at each order, also when repeated. See [proof](crate::proofs::renyi).
#[derive(Debug, Clone, Default)]
pub struct RdpAccountant {
    orders: Option<Vec<f64>>,
}

impl RdpAccountant {
    /// The accountant that optimises over all real orders.
    pub const fn new() -> Self {
        RdpAccountant { orders: None }
    }

    /// An accountant restricted to the given orders, all above 1.
    pub fn with_orders(orders: Vec<f64>) -> crate::Result<Self> {
        if orders.is_empty() {
            return Err(crate::Error::invalid("orders", "empty", "a list of at least one order"));
        }
        match orders.iter().find(|order| !(order.is_finite() && **order > 1.0)) {
            Some(order) => Err(crate::Error::invalid("orders", order, "finite numbers above 1")),
            None => Ok(RdpAccountant { orders: Some(orders) }),
        }
    }

    /// The Rényi divergence of an event at one order.
    ///
    /// ```
    /// use progap_privacy::{Event, accountant::RdpAccountant};
    ///
    /// let gaussian = Event::gaussian(2.0, 1.0)?;
    /// assert_eq!(RdpAccountant::divergence(&gaussian, 3.0)?, 3.0 / 8.0);
    /// # Ok::<(), progap_privacy::Error>(())
    /// ```
    pub fn divergence(event: &Event, order: f64) -> crate::Result<f64> {
        if !(order.is_finite() && order > 1.0) {
            return Err(crate::Error::invalid("order", order, "a finite number above 1"));
        }
        event.validate()?;
        RdpAccountant::new().supports(event)?;
        Ok(compile(event, &Path::Root).map_or(f64::INFINITY, |curve| curve.at(order)))
    }

    /// The smallest value of `convert(order, divergence)`.
    fn smallest(&self, event: &Event, convert: impl Fn(f64, f64) -> f64) -> f64 {
        let Ok(curve) = compile(event, &Path::Root) else { return f64::INFINITY };
        match &self.orders {
            Some(orders) => {
                orders.iter().map(|&order| convert(order, curve.at(order))).fold(f64::INFINITY, f64::min)
            }
            None => curve.minimise(convert),
        }
    }
}

impl Accountant for RdpAccountant {
    fn name(&self) -> &'static str {
        "rdp"
    }

    fn obstacle(&self, event: &Event) -> Option<Obstacle> {
        compile(event, &Path::Root).err()
    }

    fn epsilon_unchecked(&self, event: &Event, delta: f64) -> Bound {
        let value = self.smallest(event, |order, rdp| {
            if rdp.is_nan() || rdp == f64::INFINITY {
                f64::INFINITY
            } else if delta * delta + (-rdp).exp_m1() > 0.0 {
                0.0
            } else {
                rdp + (-1.0 / order).ln_1p() - (delta.ln() + order.ln()) / (order - 1.0)
            }
        });
        let value = value.max(0.0) * (1.0 + 1e-12);
        Bound { value, error: 1e-9 * value, accountant: self.name(), caveat: None }
    }

    fn delta_unchecked(&self, event: &Event, epsilon: f64) -> Bound {
        let log_delta = self.smallest(event, |order, rdp| {
            if rdp.is_nan() || rdp == f64::INFINITY {
                return 0.0;
            }
            (order - 1.0) * (rdp - epsilon + (-1.0 / order).ln_1p()) - order.ln()
        });
        // Bretagnolle-Huber: the total variation distance bounds delta at any epsilon.
        let smallest_rdp = self.smallest(event, |_, rdp| rdp);
        let log_delta = log_delta.min(0.5 * (-(-smallest_rdp).exp_m1()).ln());
        let value = (log_delta.exp() * (1.0 + 1e-12)).min(1.0);
        Bound { value, error: 1e-9 * value, accountant: self.name(), caveat: None }
    }
}

/// A divergence as a function of the order.
#[derive(Debug, Clone)]
enum Curve {
    Infinite,
    Gaussian { squared_mu: f64 },
    Laplace { shift: f64 },
    Binary { p: f64, q: f64 },
    SampledGaussian { rate: f64, squared_mu: f64 },
    MultiTerm { law: Vec<(u64, f64)>, squared_mu: f64 },
    Sum(Vec<(Curve, f64)>),
    Largest(Vec<Curve>),
    Selection { base: Box<Curve>, constant: f64, log_mean: f64 },
}

fn compile(event: &Event, path: &Path<'_>) -> Result<Curve, Obstacle> {
    if let Ok(squared_mu) = squared_mu(event, path) {
        return Ok(Curve::Gaussian { squared_mu });
    }
    let children = |events: &[Event]| -> Result<Vec<Curve>, Obstacle> {
        events.iter().enumerate().map(|(i, child)| compile(child, &Path::Item(path, i))).collect()
    };
    Ok(match event {
        Event::Gaussian { .. } => unreachable!("a Gaussian has a signal-to-noise ratio"),
        Event::Laplace { scale, sensitivity } => Curve::Laplace { shift: sensitivity / scale },
        Event::RandomizedResponse { true_positive, false_positive } => {
            Curve::Binary { p: *true_positive, q: *false_positive }
        }
        Event::PoissonSampled { rate, event } => sampled(*rate, event, &Path::Event(path))?,
        Event::Composed { events } => {
            Curve::Sum(children(events)?.into_iter().map(|curve| (curve, 1.0)).collect())
        }
        Event::SelfComposed { event, count } => {
            Curve::Sum(vec![(compile(event, &Path::Event(path))?, *count as f64)])
        }
        Event::Parallel { events } => Curve::Largest(children(events)?),
        Event::SampledWithoutReplacement { population, batch_size, max_terms, sigma, term_sensitivity } => {
            Curve::MultiTerm {
                law: touched_terms(*population, *batch_size, *max_terms),
                squared_mu: (term_sensitivity / sigma).powi(2),
            }
        }
        Event::PrivateSelection { eta, gamma, event } => {
            selection(*eta, *gamma, compile(event, &Path::Event(path))?)
        }
        Event::NonPrivate => Curve::Infinite,
    })
}

fn sampled(rate: f64, event: &Event, path: &Path<'_>) -> Result<Curve, Obstacle> {
    if rate == 0.0 {
        return Ok(Curve::Gaussian { squared_mu: 0.0 });
    }
    if rate == 1.0 {
        return compile(event, path);
    }
    if let Ok(squared_mu) = squared_mu(event, path) {
        return Ok(Curve::SampledGaussian { rate, squared_mu });
    }
    match event {
        Event::NonPrivate => Ok(Curve::Infinite),
        Event::RandomizedResponse { true_positive: p, false_positive: q } if *p == 1.0 - q => {
            Ok(Curve::Binary { p: rate * p + (1.0 - rate) * q, q: *q })
        }
        Event::PoissonSampled { rate: inner, event } => sampled(rate * inner, event, &Path::Event(path)),
        Event::SelfComposed { event, count: 1 } => sampled(rate, event, &Path::Event(path)),
        Event::Composed { events } if events.len() == 1 => sampled(rate, &events[0], &Path::Item(path, 0)),
        _ => Err(Obstacle::new(event, path, "only Gaussians or a symmetric response may be sampled")),
    }
}

/// Theorem 2 of Papernot and Steinke: the best of K runs, K truncated negative binomial, costs
/// `rdp(alpha) + (1 + eta) (1 - 1/beta) rdp(beta) + (1 + eta) ln(1/gamma) / beta + ln E[K] / (alpha - 1)`
/// for any second order `beta`, which does not depend on `alpha`.
fn selection(eta: f64, gamma: f64, base: Curve) -> Curve {
    let constant =
        base.minimise(|order, rdp| (1.0 + eta) * ((1.0 - 1.0 / order) * rdp - gamma.ln() / order)).max(0.0);
    Curve::Selection { base: Box::new(base), constant, log_mean: mean_runs(eta, gamma).ln().max(0.0) }
}

/// Expected number of runs of the truncated negative binomial law.
pub(crate) fn mean_runs(eta: f64, gamma: f64) -> f64 {
    if gamma == 1.0 {
        return 1.0;
    }
    let log_gamma = gamma.ln();
    let odds = (1.0 - gamma) / gamma;
    if eta == 0.0 { odds / -log_gamma } else { odds * eta / -(eta * log_gamma).exp_m1() }
}

impl Curve {
    /// The divergence at an order above 1.
    fn at(&self, order: f64) -> f64 {
        match self {
            Curve::Infinite => f64::INFINITY,
            Curve::Gaussian { squared_mu } => 0.5 * order * squared_mu,
            Curve::Laplace { shift } => laplace(*shift, order),
            Curve::Binary { p, q } => binary(*p, *q, order).max(binary(*q, *p, order)),
            Curve::SampledGaussian { rate, squared_mu } => sampled_gaussian(*rate, *squared_mu, order),
            Curve::MultiTerm { law, squared_mu } => {
                let half = 0.5 * order * (order - 1.0) * squared_mu;
                let log_moment = law.iter().fold(f64::NEG_INFINITY, |sum, &(k, log_p)| {
                    log_add(sum, log_p + half * (k as f64).powi(2))
                });
                log_moment.max(0.0) / (order - 1.0)
            }
            Curve::Sum(parts) => parts.iter().map(|(curve, count)| count * curve.at(order)).sum(),
            Curve::Largest(parts) => parts.iter().map(|curve| curve.at(order)).fold(0.0, f64::max),
            Curve::Selection { base, constant, log_mean } => {
                // A divergence grows with the order, so a larger order bounds this one too.
                [1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0]
                    .into_iter()
                    .map(|stretch| 1.0 + (order - 1.0) * stretch)
                    .map(|larger| base.at(larger) + constant + log_mean / (larger - 1.0))
                    .fold(f64::INFINITY, f64::min)
            }
        }
    }

    /// The largest order worth asking for.
    fn max_order(&self) -> f64 {
        match self {
            Curve::SampledGaussian { .. } => MAX_SAMPLED_ORDER,
            Curve::MultiTerm { .. } => 1e6,
            Curve::Sum(parts) => parts.iter().map(|(curve, _)| curve.max_order()).fold(1e9, f64::min),
            Curve::Largest(parts) => parts.iter().map(Curve::max_order).fold(1e9, f64::min),
            Curve::Selection { base, .. } => base.max_order(),
            _ => 1e9,
        }
    }

    /// The smallest value of a function of the order and the divergence, over all orders.
    fn minimise(&self, f: impl Fn(f64, f64) -> f64) -> f64 {
        let value = |order: f64| {
            let v = f(order, self.at(order));
            if v.is_nan() { f64::INFINITY } else { v }
        };
        let max = self.max_order();
        // Orders in a geometric sequence of order - 1, until the value has clearly turned.
        let mut scanned: Vec<(f64, f64)> = Vec::new();
        let mut best = 0;
        let mut gap = 1e-5;
        loop {
            scanned.push((gap, value(1.0 + gap)));
            let here = scanned.len() - 1;
            if scanned[here].1 < scanned[best].1 {
                best = here;
            } else if here > best + 16 && scanned[best].1 < f64::INFINITY {
                break;
            }
            if 1.0 + gap >= max {
                break;
            }
            gap = (1.25 * gap).min(max - 1.0);
        }
        let low = scanned[best.saturating_sub(1)].0.ln();
        let high = scanned[(best + 1).min(scanned.len() - 1)].0.ln();
        let (_, refined) = minimise(low, high, 2, 30, |x| value(1.0 + x.exp()));
        // The whole orders nearby are free of interpolation.
        let centre = 1.0 + scanned[best].0;
        let whole = (2..=64u32)
            .map(f64::from)
            .chain([centre.floor(), centre.ceil()])
            .filter(|&order| (0.5 * centre..=2.0 * centre).contains(&order) && order >= 2.0)
            .map(value)
            .fold(f64::INFINITY, f64::min);
        refined.min(scanned[best].1).min(whole)
    }
}

/// Divergence of two Laplace laws of scale 1 that are `shift` apart (Mironov 2017).
fn laplace(shift: f64, order: f64) -> f64 {
    let a = order;
    // log(1 + x) / (a - 1) with x = (a - 1) c stays accurate as the order tends to 1.
    let c = (shift * (1.0 - 2.0 * a)).exp_m1() / (2.0 * a - 1.0);
    (shift + ((a - 1.0) * c).ln_1p() / (a - 1.0)).max(0.0)
}

/// Divergence of Bernoulli(p) from Bernoulli(q).
fn binary(p: f64, q: f64, order: f64) -> f64 {
    if p == q {
        return 0.0;
    }
    let term = |p: f64, q: f64| match (p, q) {
        (0.0, _) => f64::NEG_INFINITY,
        (_, 0.0) => f64::INFINITY,
        _ => order * p.ln() + (1.0 - order) * q.ln(),
    };
    (log_add(term(p, q), term(1.0 - p, 1.0 - q)) / (order - 1.0)).max(0.0)
}

/// Divergence of `(1 - rate) N(0, 1) + rate N(mu, 1)` from `N(0, 1)`, the larger of the two directions
/// (Mironov, Talwar and Zhang 2019).
fn sampled_gaussian(rate: f64, squared_mu: f64, order: f64) -> f64 {
    if squared_mu == 0.0 {
        return 0.0;
    }
    if order > MAX_SAMPLED_ORDER {
        return f64::INFINITY;
    }
    let log_moment = if order.fract() == 0.0 {
        log_moment_whole(rate, squared_mu, order)
    } else if order > 60.0 {
        // The log moment is convex in the order.
        let (low, t) = (order.floor(), order.fract());
        (1.0 - t) * log_moment_whole(rate, squared_mu, low)
            + t * log_moment_whole(rate, squared_mu, low + 1.0)
    } else {
        log_moment_fractional(rate, squared_mu, order)
    };
    log_moment / (order - 1.0)
}

/// `ln(e^x - 1)` for positive x.
fn log_exp_m1(x: f64) -> f64 {
    if x > 1.0 { x + (-(-x).exp()).ln_1p() } else { x.exp_m1().ln() }
}

/// `ln E[(1 - q + q e^loss)^order]` for a whole order, by the binomial theorem.
///
/// The binomial weights sum to 1 and the first two moments of `e^loss` are 1, so that only what exceeds 1 is summed:
/// all terms are positive and nothing cancels, however small the rate.
pub(super) fn log_moment_whole(rate: f64, squared_mu: f64, order: f64) -> f64 {
    let (log_q, log_rest) = (rate.ln(), (-rate).ln_1p());
    let mut log_choose = (0.5 * order * (order - 1.0)).ln();
    let mut excess = f64::NEG_INFINITY;
    let mut i = 2.0;
    while i <= order {
        let log_term =
            log_choose + i * log_q + (order - i) * log_rest + log_exp_m1(0.5 * i * (i - 1.0) * squared_mu);
        excess = log_add(excess, log_term);
        log_choose += ((order - i) / (i + 1.0)).ln();
        i += 1.0;
    }
    log_add(0.0, excess)
}

/// The same for any order, by the trapezoidal rule, which converges geometrically for such integrands.
///
/// With `w = e^loss - 1`, whose mean is 0, the integrand is `(1 + q w)^order - 1 - order q w`: never negative.
fn log_moment_fractional(rate: f64, squared_mu: f64, order: f64) -> f64 {
    let mu = squared_mu.sqrt();
    // In units of the noise: the nearest singularity of the integrand is pi / mu away from the real axis.
    let step = (0.45 / mu).min(0.25);
    let (low, high) = (-10.0 - 0.5 * mu, order.max(2.0) * mu + 10.0);
    let count = ((high - low) / step).ceil() as i64;
    let log_integrand = |x: f64| {
        let loss = mu * x - 0.5 * squared_mu;
        let qw = rate * loss.exp_m1();
        let grown =
            if loss > 30.0 { order * log_add((-rate).ln_1p(), rate.ln() + loss) } else { order * qw.ln_1p() };
        let excess = if (order * qw).abs() < 1e-3 {
            let series = 1.0 + (order - 2.0) / 3.0 * qw * (1.0 + (order - 3.0) / 4.0 * qw);
            (0.5 * order * (order - 1.0) * qw * qw * series).ln()
        } else if grown > 30.0 {
            grown + (-((1.0 + order * qw).ln() - grown).exp()).ln_1p()
        } else {
            (grown.exp_m1() - order * qw).max(0.0).ln()
        };
        excess - 0.5 * x * x
    };
    let values: Vec<f64> = (0..=count).map(|i| log_integrand(low + step * i as f64)).collect();
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = values.iter().map(|v| (v - top).exp()).sum();
    let log_excess = top + (sum * step).ln() - 0.5 * (2.0 * std::f64::consts::PI).ln();
    log_add(0.0, log_excess)
}
