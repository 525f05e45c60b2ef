//! The exact accountant for Gaussians.

use super::{Accountant, Bound, Obstacle};
use crate::event::{Event, Path};
use crate::special::log_gaussian_delta;

/// Exact accounting for compositions of Gaussian mechanisms.
///
/// K adaptive Gaussian queries with signal-to-noise ratios `sensitivity_k / sigma_k` are as hard to tell apart as one
/// with ratio `mu = sqrt(sum of their squares)`, and
/// `delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)`.
///
/// # Proof definition
/// For trees of Gaussian, composed, self-composed and parallel events, the answer is the exact trade-off of the
/// dominating pair, rounded up by at most a relative 1e-12. See [proof](crate::proofs::gaussian_composition).
///
/// ```
/// use progap_privacy::{Event, accountant::{Accountant, GdpAccountant}};
///
/// let three = Event::gaussian(8.1, 1.0)?.repeated(3)?;
/// assert!(GdpAccountant.epsilon(&three, 1e-7)?.value < 1.01);
/// # Ok::<(), progap_privacy::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct GdpAccountant;

impl GdpAccountant {
    /// The total signal-to-noise ratio `mu`, if the tree consists of Gaussians only.
    pub fn mu(event: &Event) -> Option<f64> {
        squared_mu(event, &Path::Root).ok().map(f64::sqrt)
    }
}

/// The sum of squared signal-to-noise ratios of a tree of Gaussians.
pub(super) fn squared_mu(event: &Event, path: &Path<'_>) -> Result<f64, Obstacle> {
    let children = |events: &[Event]| -> Result<Vec<f64>, Obstacle> {
        events.iter().enumerate().map(|(i, child)| squared_mu(child, &Path::Item(path, i))).collect()
    };
    match event {
        Event::Gaussian { sigma, sensitivity } => Ok((sensitivity / sigma).powi(2)),
        Event::Composed { events } => Ok(children(events)?.into_iter().sum()),
        Event::SelfComposed { event, count } => Ok(*count as f64 * squared_mu(event, &Path::Event(path))?),
        Event::Parallel { events } => Ok(children(events)?.into_iter().fold(0.0, f64::max)),
        _ => Err(Obstacle::new(event, path, "it is exact for Gaussian mechanisms only")),
    }
}

/// The squared signal-to-noise ratio of the Gaussian that many small losses add up to in the limit; nothing for trees
/// of anything but Gaussians and samples of them. An approximation that can be below the truth: it bounds nothing.
pub(crate) fn normal_limit(event: &Event) -> Option<f64> {
    match event {
        Event::Gaussian { sigma, sensitivity } => Some((sensitivity / sigma).powi(2)),
        Event::PoissonSampled { rate, event } => Some(rate * rate * normal_limit(event)?.exp_m1()),
        Event::SelfComposed { event, count } => Some(*count as f64 * normal_limit(event)?),
        Event::Composed { events } => events.iter().map(normal_limit).sum(),
        _ => None,
    }
}

impl Accountant for GdpAccountant {
    fn name(&self) -> &'static str {
        "gdp"
    }

    fn obstacle(&self, event: &Event) -> Option<Obstacle> {
        squared_mu(event, &Path::Root).err()
    }

    fn epsilon_unchecked(&self, event: &Event, delta: f64) -> Bound {
        let value = Self::mu(event).map_or(f64::INFINITY, |mu| epsilon(mu, delta));
        Bound { value, error: 1e-12 * value, accountant: self.name(), caveat: None }
    }

    fn delta_unchecked(&self, event: &Event, epsilon: f64) -> Bound {
        let value = Self::mu(event)
            .map_or(1.0, |mu| if mu == 0.0 { 0.0 } else { log_gaussian_delta(mu, epsilon).exp() });
        let value = (value * (1.0 + 1e-12)).min(1.0);
        Bound { value, error: 1e-11 * value, accountant: self.name(), caveat: None }
    }
}

/// The smallest epsilon of the pair `N(mu, 1)` against `N(0, 1)` at a given delta, rounded up.
pub(super) fn epsilon(mu: f64, delta: f64) -> f64 {
    let target = delta.ln();
    if mu == 0.0 || log_gaussian_delta(mu, 0.0) <= target {
        return 0.0;
    }
    // The classical bound is above the truth, so it brackets the root.
    let (mut low, mut high) = (0.0, 0.5 * mu * mu + mu * (-2.0 * target).sqrt());
    while high - low > 4e-15 * high {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if log_gaussian_delta(mu, middle) <= target { high = middle } else { low = middle }
    }
    high * (1.0 + 1e-14)
}
