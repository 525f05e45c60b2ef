//! Accounting by zero-concentrated differential privacy.

use super::gdp::squared_mu;
use super::{Accountant, Bound, Obstacle, RdpAccountant};
use crate::event::{Event, Path};

/// Zero-concentrated differential privacy (Bun and Steinke 2016), the currency of several statistical offices: one
/// number, `rho`, that adds up under composition.
///
/// # Proof definition
/// A mechanism is `rho`-zCDP if its Rényi divergence at every order `alpha` is at most `rho alpha`. A Gaussian has `rho
/// = mu^2 / 2`, a mechanism that is `(epsilon, 0)`-private has `rho <= epsilon^2 / 2` (Bun and Steinke, propositions
/// 1.6 and 1.4). `rho` adds along adaptive compositions, and the largest counts where a record is in one part only.
/// `rho alpha` is the divergence of a Gaussian with `mu^2 = 2 rho`, so [`RdpAccountant`] turns it into `(epsilon,
/// delta)`. See [proof](crate::proofs::renyi#zcdp).
///
/// ```
/// use progap_privacy::{Event, accountant::{Accountant, ZcdpAccountant}};
///
/// let counts = Event::laplace(10.0, 1.0)?.repeated(100)?;
/// assert!((ZcdpAccountant::rho(&counts)?.unwrap() - 0.5).abs() < 1e-9);
/// assert!(ZcdpAccountant.epsilon(&counts, 1e-6)?.value < 5.3);
/// # Ok::<(), progap_privacy::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ZcdpAccountant;

impl ZcdpAccountant {
    /// The `rho` of a tree, or nothing where it has a part that is not known to be concentrated.
    ///
    /// # Errors
    /// A tree that is not valid.
    pub fn rho(event: &Event) -> crate::Result<Option<f64>> {
        event.validate()?;
        Ok(rho(event, &Path::Root).ok())
    }
}

fn rho(event: &Event, path: &Path<'_>) -> Result<f64, Obstacle> {
    if let Ok(squared_mu) = squared_mu(event, path) {
        return Ok(0.5 * squared_mu);
    }
    let children = |events: &[Event]| -> Result<Vec<f64>, Obstacle> {
        events.iter().enumerate().map(|(i, child)| rho(child, &Path::Item(path, i))).collect()
    };
    match event {
        Event::Composed { events } => Ok(children(events)?.into_iter().sum()),
        Event::SelfComposed { event, count } => Ok(*count as f64 * rho(event, &Path::Event(path))?),
        Event::Parallel { events } => Ok(children(events)?.into_iter().fold(0.0, f64::max)),
        _ => match event.pure_epsilon() {
            Some(epsilon) => Ok(0.5 * epsilon * epsilon),
            None => Err(Obstacle::new(
                event,
                path,
                "only Gaussians and what is private with a delta of zero have a rho",
            )),
        },
    }
}

/// The Gaussian whose divergence at each order is the most that a tree may have; sums of `rho` are rounded to first
/// order.
fn dominating(event: &Event) -> Option<Event> {
    let rho = rho(event, &Path::Root).ok()? * (1.0 + 1e-12);
    Some(Event::Gaussian { sigma: 1.0, sensitivity: (2.0 * rho).sqrt() })
}

impl Accountant for ZcdpAccountant {
    fn name(&self) -> &'static str {
        "zcdp"
    }

    fn obstacle(&self, event: &Event) -> Option<Obstacle> {
        rho(event, &Path::Root).err()
    }

    fn epsilon_unchecked(&self, event: &Event, delta: f64) -> Bound {
        let nothing = Bound { value: f64::INFINITY, error: 0.0, accountant: self.name(), caveat: None };
        dominating(event).map_or(nothing, |gaussian| Bound {
            accountant: self.name(),
            ..RdpAccountant::new().epsilon_unchecked(&gaussian, delta)
        })
    }

    fn delta_unchecked(&self, event: &Event, epsilon: f64) -> Bound {
        let nothing = Bound { value: 1.0, error: 0.0, accountant: self.name(), caveat: None };
        dominating(event).map_or(nothing, |gaussian| Bound {
            accountant: self.name(),
            ..RdpAccountant::new().delta_unchecked(&gaussian, epsilon)
        })
    }
}
