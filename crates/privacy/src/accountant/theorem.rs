//! The privacy theorems as printed in the ProGAP paper.

use super::rdp::log_moment_whole;
use super::{Accountant, Bound, Obstacle};
use crate::event::{Event, Path};

/// Theorems 1 and 2 of the ProGAP paper, kept to reproduce the published noise.
///
/// Theorem 1, Gaussians only: `epsilon = mu^2/2 + mu sqrt(2 ln(1/delta))` with `mu^2` the sum of squared
/// signal-to-noise ratios. Theorem 2, with DP-SGD: the smallest, over whole orders, of the Rényi divergence plus
/// `ln(1/delta) / (alpha - 1)`.
///
/// # Proof definition
/// Both use the same divergences as [`RdpAccountant`](super::RdpAccountant) and a weaker conversion, so the answer is
/// an upper bound and never below that accountant's. See [proof](crate::proofs::renyi#published-theorems).
///
/// ```
/// use progap_privacy::{Event, accountant::{Accountant, TheoremAccountant}};
///
/// let published = Event::gaussian(5.76, 1.0)?;
/// assert!((TheoremAccountant.epsilon(&published, 1e-7)?.value - 1.0).abs() < 2e-3);
/// # Ok::<(), progap_privacy::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct TheoremAccountant;

/// Gaussians and DP-SGD steps, summed up.
#[derive(Debug, Default)]
struct Terms {
    squared_mu: f64,
    /// Rate, squared signal-to-noise ratio, count.
    steps: Vec<(f64, f64, f64)>,
}

impl Terms {
    fn collect(event: &Event) -> Result<Terms, Obstacle> {
        let mut terms = Terms::default();
        terms.add(event, &Path::Root, 1.0)?;
        Ok(terms)
    }

    fn add(&mut self, event: &Event, path: &Path<'_>, count: f64) -> Result<(), Obstacle> {
        match event {
            Event::Gaussian { sigma, sensitivity } => {
                self.squared_mu += count * (sensitivity / sigma).powi(2);
            }
            Event::PoissonSampled { rate, event: inner } => match inner.as_ref() {
                Event::Gaussian { sigma, sensitivity } => {
                    let squared_mu = (sensitivity / sigma).powi(2);
                    if *rate == 1.0 {
                        self.squared_mu += count * squared_mu;
                    } else if *rate > 0.0 {
                        self.steps.push((*rate, squared_mu, count));
                    }
                }
                inner => {
                    return Err(Obstacle::new(inner, &Path::Event(path), "only a Gaussian may be sampled"));
                }
            },
            Event::SelfComposed { event, count: times } => {
                self.add(event, &Path::Event(path), count * *times as f64)?;
            }
            Event::Composed { events } => {
                for (i, child) in events.iter().enumerate() {
                    self.add(child, &Path::Item(path, i), count)?;
                }
            }
            _ => return Err(Obstacle::new(event, path, "the theorems are about Gaussians and DP-SGD only")),
        }
        Ok(())
    }

    fn divergence(&self, order: f64) -> f64 {
        let steps: f64 =
            self.steps.iter().map(|&(rate, mu2, count)| count * log_moment_whole(rate, mu2, order)).sum();
        0.5 * order * self.squared_mu + steps / (order - 1.0)
    }

    /// The smallest value over whole orders: each of the first 64, then about 25 per doubling.
    fn smallest(&self, convert: impl Fn(f64, f64) -> f64) -> f64 {
        let (mut best, mut worse, mut order) = (f64::INFINITY, 0, 2.0f64);
        while order <= 16_384.0 && worse < 64 {
            let value = convert(order, self.divergence(order));
            if value < best {
                (best, worse) = (value, 0);
            } else {
                worse += 1;
            }
            order += (order / 36.0).floor().max(1.0);
        }
        best
    }
}

impl Accountant for TheoremAccountant {
    fn name(&self) -> &'static str {
        "theorem"
    }

    fn obstacle(&self, event: &Event) -> Option<Obstacle> {
        Terms::collect(event).err()
    }

    fn epsilon_unchecked(&self, event: &Event, delta: f64) -> Bound {
        let value = match Terms::collect(event) {
            Err(_) => f64::INFINITY,
            Ok(terms) if terms.steps.is_empty() => {
                0.5 * terms.squared_mu + (-2.0 * terms.squared_mu * delta.ln()).sqrt()
            }
            Ok(terms) => terms.smallest(|order, rdp| rdp - delta.ln() / (order - 1.0)),
        };
        let value = value * (1.0 + 1e-12);
        Bound { value, error: 1e-11 * value, accountant: self.name(), caveat: None }
    }

    fn delta_unchecked(&self, event: &Event, epsilon: f64) -> Bound {
        let log_delta = match Terms::collect(event) {
            Err(_) => 0.0,
            Ok(terms) if terms.steps.is_empty() && terms.squared_mu == 0.0 => f64::NEG_INFINITY,
            Ok(terms) if terms.steps.is_empty() => {
                let room = (epsilon - 0.5 * terms.squared_mu).max(0.0);
                -0.5 * room * room / terms.squared_mu
            }
            Ok(terms) => terms.smallest(|order, rdp| (order - 1.0) * (rdp - epsilon)),
        };
        let value = (log_delta.exp() * (1.0 + 1e-12)).min(1.0);
        Bound { value, error: 1e-11 * value, accountant: self.name(), caveat: None }
    }
}
