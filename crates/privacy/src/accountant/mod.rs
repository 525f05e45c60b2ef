//! Accountants: what an event tree costs.
//!
//! | name | what it is | handles |
//! |---|---|---|
//! | `gdp` | exact, by the sum of squared signal-to-noise ratios | Gaussians, composed and parallel |
//! | `pld` | privacy loss distribution, tight up to its grid | everything but private selection |
//! | `rdp` | Rényi divergences with the improved conversion | everything but Poisson-sampled Laplace |
//! | `zcdp` | concentrated privacy, one number for all orders | Gaussians and what has a delta of zero |
//! | `theorem` | the formulas printed in the ProGAP paper | Gaussians and Poisson-sampled Gaussians |
//!
//! Every answer is an upper bound. On the same tree, `gdp` and `pld` are at most `rdp`, which is at most `zcdp` and
//! `theorem`.

mod gdp;
mod multi_term;
mod pld;
mod rdp;
mod theorem;
mod zcdp;

use serde::Serialize;

pub use gdp::GdpAccountant;
pub(crate) use gdp::normal_limit;
pub use pld::PldAccountant;
pub use rdp::RdpAccountant;
pub use theorem::TheoremAccountant;
pub use zcdp::ZcdpAccountant;

use crate::error::{Result, Unsupported, check_delta, check_epsilon};
use crate::event::{Event, Path};

/// An upper bound on an epsilon or a delta.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bound {
    /// The bound; infinite (epsilon) or 1 (delta) if nothing better can be said.
    pub value: f64,
    /// About how far above the exact value of the accountant's own theorem the numerics have put `value`: for `pld` a
    /// first-order estimate of what its grid adds, for the others the allowance for rounding. It says how tight
    /// the answer is, not how safe: `value` is the bound, and nothing has to be added to it.
    pub error: f64,
    /// The accountant that gave it.
    pub accountant: &'static str,
    /// Why the value is larger than it would have to be, if the numerics could not resolve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caveat: Option<&'static str>,
}

/// One point of a privacy curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The delta.
    pub delta: f64,
    /// The epsilon that holds at that delta.
    pub epsilon: f64,
}

/// A node of a tree that an accountant cannot handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// The node, written as a path from the root.
    pub path: String,
    /// The kind of the node.
    pub node: &'static str,
    /// Why it is not supported.
    pub reason: &'static str,
}

impl Obstacle {
    fn new(event: &Event, path: &Path<'_>, reason: &'static str) -> Self {
        Obstacle { path: path.to_string(), node: event.kind(), reason }
    }
}

/// Interprets event trees.
///
/// # Proof definition
/// If `epsilon(event, delta)` returns `Ok(bound)`, every mechanism described by `event` is `(bound.value,
/// delta)`-differentially private for the neighbour relation to which the tree's sensitivities refer; likewise for
/// `delta(event, epsilon)`. Allowances for rounding are part of the value. They follow the usual model of
/// floating-point arithmetic to first order, and take the accuracy of library functions (logarithms, the error
/// function, the Fourier transform) as documented or measured rather than proven. See
/// [proof](crate::proofs::privacy_loss#numerics).
pub trait Accountant {
    /// The name by which statements and the command line know this accountant.
    fn name(&self) -> &'static str;

    /// The first node of a valid tree that this accountant cannot handle, if any.
    fn obstacle(&self, event: &Event) -> Option<Obstacle>;

    /// An upper bound on epsilon for a tree that has been checked to be valid and supported.
    fn epsilon_unchecked(&self, event: &Event, delta: f64) -> Bound;

    /// An upper bound on delta for a tree that has been checked to be valid and supported.
    fn delta_unchecked(&self, event: &Event, epsilon: f64) -> Bound;

    /// A cheaper accountant whose answers are close to this one's, for the first steps of a search.
    fn coarser(&self, _event: &Event) -> Option<&'static dyn Accountant> {
        None
    }

    /// Whether this accountant can handle the tree; if not, which node is in the way and which accountants could.
    fn supports(&self, event: &Event) -> Result<(), Unsupported> {
        match self.obstacle(event) {
            None => Ok(()),
            Some(Obstacle { path, node, reason }) => Err(Unsupported {
                accountant: self.name(),
                path,
                node,
                reason,
                supported_by: all()
                    .into_iter()
                    .filter(|other| other.obstacle(event).is_none())
                    .map(<dyn Accountant>::name)
                    .collect(),
            }),
        }
    }

    /// The smallest epsilon this accountant can prove at a given delta.
    fn epsilon(&self, event: &Event, delta: f64) -> Result<Bound> {
        check_delta(delta)?;
        event.validate()?;
        self.supports(event)?;
        Ok(self.epsilon_unchecked(event, delta))
    }

    /// The smallest delta this accountant can prove at a given epsilon.
    fn delta(&self, event: &Event, epsilon: f64) -> Result<Bound> {
        check_epsilon(epsilon)?;
        event.validate()?;
        self.supports(event)?;
        Ok(self.delta_unchecked(event, epsilon))
    }

    /// Epsilon at each of the given deltas.
    fn curve(&self, event: &Event, deltas: &[f64]) -> Result<Vec<CurvePoint>> {
        deltas
            .iter()
            .map(|&delta| Ok(CurvePoint { delta, epsilon: self.epsilon(event, delta)?.value }))
            .collect()
    }
}

/// All accountants, tightest first.
pub fn all() -> [&'static dyn Accountant; 5] {
    static PLD: PldAccountant = PldAccountant::new();
    static RDP: RdpAccountant = RdpAccountant::new();
    [&GdpAccountant, &PLD, &RDP, &ZcdpAccountant, &TheoremAccountant]
}

/// The accountant of that name.
pub fn by_name(name: &str) -> Result<&'static dyn Accountant> {
    let found = all().into_iter().find(|accountant| accountant.name() == name);
    found.ok_or_else(|| crate::Error::invalid("accountant", name, "the name of an accountant"))
}

/// The tightest of all accountants: `gdp` for Gaussians, else `pld`, and the smallest answer of all that support the
/// tree where it does not, or says that its own is larger than it had to be. What is private with a delta of zero never
/// costs more than that, see [`Event::pure_epsilon`].
///
/// ```
/// use progap_privacy::{Event, accountant::{Accountant, Best}};
///
/// let bound = Best.epsilon(&Event::gaussian(4.68, 1.0)?, 1e-7)?;
/// assert_eq!(bound.accountant, "gdp");
/// assert!((bound.value - 1.0).abs() < 1e-3);
/// # Ok::<(), progap_privacy::Error>(())
/// ```
///
/// # Proof definition
/// Each answer is a valid upper bound, so the smallest one is. The choice does not look at private data.
#[derive(Debug, Clone, Copy, Default)]
pub struct Best;

impl Best {
    fn smallest(event: &Event, ask: impl Fn(&dyn Accountant) -> Bound) -> Bound {
        if GdpAccountant.obstacle(event).is_none() {
            // Exact: nobody can do better.
            return ask(&GdpAccountant);
        }
        let pld = PldAccountant::new();
        let tight = pld.obstacle(event).is_none().then(|| ask(&pld));
        // The others have moments of the same loss, and moments tell less than all of it.
        if let Some(bound) = tight.filter(|bound| bound.caveat.is_none()) {
            return bound;
        }
        all()
            .into_iter()
            .filter(|accountant| accountant.name() != pld.name() && accountant.obstacle(event).is_none())
            .map(ask)
            .chain(tight)
            .min_by(|a, b| a.value.total_cmp(&b.value))
            .expect("a supported tree has an accountant")
    }
}

impl Accountant for Best {
    fn name(&self) -> &'static str {
        "best"
    }

    fn obstacle(&self, event: &Event) -> Option<Obstacle> {
        let obstacles: Vec<_> = all().into_iter().map(|accountant| accountant.obstacle(event)).collect();
        if obstacles.iter().any(Option::is_none) {
            return None;
        }
        // The obstacle of the accountant with the widest reach says most.
        RdpAccountant::new().obstacle(event)
    }

    fn coarser(&self, event: &Event) -> Option<&'static dyn Accountant> {
        let exact = GdpAccountant.obstacle(event).is_none() || all()[1].obstacle(event).is_some();
        if exact { None } else { all()[1].coarser(event) }
    }

    fn epsilon_unchecked(&self, event: &Event, delta: f64) -> Bound {
        let bound = Self::smallest(event, |accountant| accountant.epsilon_unchecked(event, delta));
        match event.pure_epsilon().filter(|pure| *pure < bound.value) {
            Some(value) => Bound { value, error: 0.0, caveat: None, ..bound },
            None => bound,
        }
    }

    fn delta_unchecked(&self, event: &Event, epsilon: f64) -> Bound {
        let bound = Self::smallest(event, |accountant| accountant.delta_unchecked(event, epsilon));
        match event.pure_epsilon().filter(|pure| *pure <= epsilon) {
            Some(_) => Bound { value: 0.0, error: 0.0, caveat: None, ..bound },
            None => bound,
        }
    }
}
