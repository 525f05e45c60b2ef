//! The privacy loss distribution accountant.
//!
//! The losses of composed mechanisms add, so the total loss is a convolution. Three steps make it fast, tight and safe:
//!
//! 1. **Sketch.** Each mechanism's loss on a few hundred points of its own gives all the moments. They say where the
//!    answer will be, how heavy the tails are, and how fine the grid must be.
//! 2. **Grid.** Each loss is discretised pessimistically on one common grid (connect the dots).
//! 3. **Tilted convolution.** The masses are multiplied by `e^(lambda loss)` with the saddle-point lambda before the
//!    Fourier transform, which moves the tail that decides about delta into the middle of the distribution: a delta
//!    of 1e-20 is computed with as many correct digits as one of 0.1.
//!
//! Mass that wraps around, falls off the grid or is lost to rounding is bounded and added.

mod compose;
mod loss;
mod saddle;
mod transform;

use self::compose::{Composition, Given};
use self::loss::{Direction, Loss, Mechanism, Pair};
use super::gdp::squared_mu;
use super::{Accountant, Bound, Obstacle};
use crate::event::{Event, Path};

/// Largest number of ways in which a record may take part in a tree with parallel events.
const MAX_BRANCHES: usize = 64;

/// Tight accounting by privacy loss distributions.
///
/// # Proof definition
/// For every supported tree the answer is an upper bound on the exact trade-off of the composed dominating pairs, in
/// both directions (record present in the first or in the second data set). `Bound::error` estimates how far above the
/// exact value the grid has put it, to first order, at the saddle point. Allowances for rounding are those of
/// [proof](crate::proofs::privacy_loss#numerics). See [proof](crate::proofs::privacy_loss).
///
/// ```
/// use progap_privacy::{Event, accountant::{Accountant, PldAccountant}};
///
/// let training = Event::gaussian(1.0, 1.0)?.poisson_sampled(0.01)?.repeated(1000)?;
/// let bound = PldAccountant::new().epsilon(&training, 1e-5)?;
/// assert!(1.6 < bound.value && bound.value < 2.1, "{bound:?}");
/// # Ok::<(), progap_privacy::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PldAccountant {
    tolerance: f64,
}

impl Default for PldAccountant {
    fn default() -> Self {
        Self::new()
    }
}

impl PldAccountant {
    /// The accountant at its usual precision: a few parts in 1e5 of epsilon.
    pub const fn new() -> Self {
        PldAccountant { tolerance: 3e-5 }
    }

    /// An accountant that aims at another relative error in epsilon, between 1e-7 and 0.1.
    pub fn with_tolerance(tolerance: f64) -> crate::Result<Self> {
        if (1e-7..=0.1).contains(&tolerance) {
            Ok(PldAccountant { tolerance })
        } else {
            Err(crate::Error::invalid("tolerance", tolerance, "between 1e-7 and 0.1"))
        }
    }

    fn worst(&self, event: &Event, target: Given) -> Bound {
        let worthless = Bound {
            value: match target {
                Given::Delta(_) => f64::INFINITY,
                Given::Epsilon(_) => 1.0,
            },
            error: 0.0,
            accountant: "pld",
            caveat: None,
        };
        let Ok(branches) = branches(event, &Path::Root, 1) else { return worthless };
        let mut worst = Bound { value: 0.0, ..worthless };
        for branch in branches {
            let Some(parts) = branch.into_parts() else { return worthless };
            let both = !parts.iter().all(|(mechanism, _)| Loss::is_symmetric(mechanism));
            for direction in [Direction::Remove, Direction::Add] {
                if direction == Direction::Remove || both {
                    let composition = Composition { parts: &parts, direction };
                    // A composition that costs no more than the worst so far need not be known any better.
                    let Some((value, error, caveat)) = composition.solve(target, self.tolerance, worst.value)
                    else {
                        continue;
                    };
                    if value.is_nan() {
                        return Bound {
                            caveat: Some("the loss distribution leaves the range of floats"),
                            ..worthless
                        };
                    }
                    if value > worst.value {
                        worst = Bound { value, error, caveat, ..worst };
                    }
                }
            }
        }
        worst
    }
}

impl Accountant for PldAccountant {
    fn name(&self) -> &'static str {
        "pld"
    }

    fn obstacle(&self, event: &Event) -> Option<Obstacle> {
        branches(event, &Path::Root, 1).err()
    }

    fn coarser(&self, _event: &Event) -> Option<&'static dyn Accountant> {
        static COARSE: PldAccountant = PldAccountant { tolerance: 3e-3 };
        (self.tolerance < 1e-3).then_some(&COARSE)
    }

    fn epsilon_unchecked(&self, event: &Event, delta: f64) -> Bound {
        self.worst(event, Given::Delta(delta))
    }

    fn delta_unchecked(&self, event: &Event, epsilon: f64) -> Bound {
        self.worst(event, Given::Epsilon(epsilon))
    }
}

/// The mechanisms that one record goes through: Gaussians, summed up exactly, and others with their counts.
#[derive(Debug, Clone, Default, PartialEq)]
struct Branch {
    squared_mu: f64,
    parts: Vec<(Mechanism, u64)>,
    non_private: bool,
}

impl Branch {
    fn one(mechanism: Mechanism, count: u64) -> Vec<Branch> {
        vec![Branch { parts: vec![(mechanism, count)], ..Branch::default() }]
    }

    fn and(&self, other: &Branch) -> Branch {
        let mut sum = self.clone();
        sum.squared_mu += other.squared_mu;
        sum.non_private |= other.non_private;
        for (mechanism, count) in &other.parts {
            match sum.parts.iter_mut().find(|(known, _)| known == mechanism) {
                Some((_, known)) => *known += count,
                None => sum.parts.push((mechanism.clone(), *count)),
            }
        }
        sum
    }

    /// All mechanisms, the Gaussians as a single one; nothing if there is no privacy.
    fn into_parts(mut self) -> Option<Vec<(Mechanism, u64)>> {
        if self.squared_mu > 0.0 {
            self.parts
                .push((Mechanism { pair: Pair::Gaussian { mu: self.squared_mu.sqrt() }, rate: 1.0 }, 1));
        }
        (!self.non_private).then_some(self.parts)
    }
}

/// All the ways in which one record may take part in the tree.
fn branches(event: &Event, path: &Path<'_>, count: u64) -> Result<Vec<Branch>, Obstacle> {
    if let Ok(squared_mu) = squared_mu(event, path) {
        return Ok(vec![Branch { squared_mu: squared_mu * count as f64, ..Branch::default() }]);
    }
    match event {
        Event::Gaussian { .. } => unreachable!("a Gaussian has a signal-to-noise ratio"),
        Event::NonPrivate => Ok(vec![Branch { non_private: true, ..Branch::default() }]),
        Event::Laplace { .. }
        | Event::RandomizedResponse { .. }
        | Event::SampledWithoutReplacement { .. } => {
            Ok(Branch::one(Mechanism { pair: leaf(event, path)?, rate: 1.0 }, count))
        }
        Event::PoissonSampled { rate, event } => sampled(*rate, event, &Path::Event(path), count),
        Event::SelfComposed { event, count: times } => branches(event, &Path::Event(path), count * times),
        Event::Composed { events } => {
            let mut sums = vec![Branch::default()];
            for (i, child) in events.iter().enumerate() {
                let choices = branches(child, &Path::Item(path, i), count)?;
                sums = sums.iter().flat_map(|sum| choices.iter().map(|choice| sum.and(choice))).collect();
                dedup(&mut sums);
                if sums.len() > MAX_BRANCHES {
                    return Err(Obstacle::new(
                        event,
                        path,
                        "its parallel events allow too many combinations",
                    ));
                }
            }
            Ok(sums)
        }
        Event::Parallel { events } => {
            let mut choices = Vec::new();
            for (i, child) in events.iter().enumerate() {
                choices.extend(branches(child, &Path::Item(path, i), count)?);
                dedup(&mut choices);
            }
            if choices.len() > MAX_BRANCHES {
                return Err(Obstacle::new(event, path, "it allows too many combinations"));
            }
            if count > 1 && choices.len() > 1 {
                let reason = "a record may be in another part at each repetition, and no part is worst for every \
                    epsilon";
                return Err(Obstacle::new(event, path, reason));
            }
            Ok(choices)
        }
        Event::PrivateSelection { .. } => {
            Err(Obstacle::new(event, path, "its theorem is about Rényi divergences"))
        }
    }
}

fn dedup(branches: &mut Vec<Branch>) {
    let mut kept: Vec<Branch> = Vec::new();
    for branch in branches.drain(..) {
        // Of two branches that differ in their Gaussians only, the one with more of them is worse.
        match kept
            .iter_mut()
            .find(|known| known.parts == branch.parts && known.non_private == branch.non_private)
        {
            Some(known) => known.squared_mu = known.squared_mu.max(branch.squared_mu),
            None => kept.push(branch),
        }
    }
    *branches = kept;
}

/// Probability, on a log scale, below which numbers of touched terms count as certain disclosure.
const LOG_MULTI_TERM_TAIL: f64 = -110.0;

fn leaf(event: &Event, path: &Path<'_>) -> Result<Pair, Obstacle> {
    match event {
        Event::Laplace { scale, sensitivity } => Ok(Pair::Laplace { shift: sensitivity / scale }),
        Event::RandomizedResponse { true_positive, false_positive } => {
            Ok(Pair::Binary { p: *true_positive, q: *false_positive })
        }
        Event::SampledWithoutReplacement { population, batch_size, max_terms, sigma, term_sensitivity } => {
            let mu = term_sensitivity / sigma;
            Pair::multi_term(*population, *batch_size, *max_terms, mu, LOG_MULTI_TERM_TAIL).ok_or_else(|| {
                Obstacle::new(event, path, "a record touches too many different numbers of terms")
            })
        }
        _ => Err(Obstacle::new(event, path, "it is not a single mechanism")),
    }
}

fn sampled(rate: f64, event: &Event, path: &Path<'_>, count: u64) -> Result<Vec<Branch>, Obstacle> {
    if rate == 0.0 {
        return Ok(vec![Branch::default()]);
    }
    if rate == 1.0 {
        return branches(event, path, count);
    }
    if let Ok(squared_mu) = squared_mu(event, path) {
        if squared_mu == 0.0 {
            return Ok(vec![Branch::default()]);
        }
        return Ok(Branch::one(Mechanism { pair: Pair::Gaussian { mu: squared_mu.sqrt() }, rate }, count));
    }
    match event {
        Event::NonPrivate => branches(event, path, count),
        Event::Laplace { .. } => Ok(Branch::one(Mechanism { pair: leaf(event, path)?, rate }, count)),
        Event::RandomizedResponse { true_positive, false_positive }
            if *true_positive == 1.0 - false_positive =>
        {
            Ok(Branch::one(Mechanism { pair: leaf(event, path)?, rate }, count))
        }
        // A sample of a sample is a sample.
        Event::PoissonSampled { rate: inner, event } => {
            sampled(rate * inner, event, &Path::Event(path), count)
        }
        Event::SelfComposed { event, count: 1 } => sampled(rate, event, &Path::Event(path), count),
        Event::Composed { events } if events.len() == 1 => {
            sampled(rate, &events[0], &Path::Item(path, 0), count)
        }
        _ => Err(Obstacle::new(
            event,
            path,
            "only Gaussians, a Laplace or a symmetric response may be sampled",
        )),
    }
}
