//! From a privacy target to the noise that meets it.
//!
//! ```
//! use progap_privacy::accountant::Best;
//! use progap_privacy::calibrate::{Plan, Target};
//!
//! let plan = Plan::edge_level(3, 1.0)?;
//! let noise = plan.calibrate(Target::new(1.0, 1e-7)?, &Best)?;
//! assert!((noise.multiplier - 4.68 * 3f64.sqrt()).abs() < 0.01);
//! assert!(noise.bound.value <= 1.0);
//! # Ok::<(), progap_privacy::Error>(())
//! ```

use serde::{Deserialize, Serialize};

use crate::accountant::{Accountant, Bound};
use crate::error::{Error, Result, check_delta, check_epsilon, positive};
use crate::event::Event;

/// The smallest and largest multiplier that is tried.
const RANGE: (f64, f64) = (1e-3, 1e9);

/// An epsilon and a delta to stay within.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Largest epsilon.
    pub epsilon: f64,
    /// The delta at which it must hold.
    pub delta: f64,
}

impl Target {
    /// Checks and builds a target.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self> {
        Ok(Target { epsilon: check_epsilon(epsilon)?, delta: check_delta(delta)? })
    }
}

/// Noise that meets a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The multiplier, rounded up.
    pub multiplier: f64,
    /// The event with that multiplier.
    pub event: Event,
    /// What the accountant says about that very event: at most the target.
    pub bound: Bound,
}

/// Finds the smallest multiplier for which `event(multiplier)` meets the target, up to a relative 1e-6, rounded up.
///
/// # Proof definition
/// `event` must cost less the larger the multiplier is; otherwise the result may be larger than needed. In any case the
/// returned event is one that the accountant has accepted: `bound.value <= target.epsilon`, without exception.
///
/// ```
/// use progap_privacy::{Event, accountant::GdpAccountant, calibrate::{Target, calibrate}};
///
/// let noise = calibrate(|sigma| Event::gaussian(sigma, 1.0), Target::new(0.25, 1e-7)?, &GdpAccountant)?;
/// assert!((noise.multiplier - 17.34).abs() < 0.005);
/// # Ok::<(), progap_privacy::Error>(())
/// ```
pub fn calibrate(
    event: impl Fn(f64) -> Result<Event>,
    target: Target,
    accountant: &dyn Accountant,
) -> Result<Calibration> {
    let target = Target::new(target.epsilon, target.delta)?;
    let probe = event(1.0)?;
    probe.validate()?;
    accountant.supports(&probe)?;
    // A coarser accountant finds the neighbourhood, where a few exact questions are enough.
    let (start, stride) = match accountant.coarser(&probe) {
        Some(coarse) => (search(&event, target, coarse, 0.0, 1.5, 1e-3)?.multiplier.ln(), 2e-3),
        None => (0.0, 1.5),
    };
    search(&event, target, accountant, start, stride, 1e-6)
}

/// Brackets from `start` in growing strides, then narrows the bracket to a relative `width`.
fn search(
    event: &impl Fn(f64) -> Result<Event>,
    target: Target,
    accountant: &dyn Accountant,
    start: f64,
    mut stride: f64,
    width: f64,
) -> Result<Calibration> {
    let ask = |x: f64| -> Result<Calibration> {
        let multiplier = x.exp();
        let event = event(multiplier)?;
        let bound = accountant.epsilon(&event, target.delta)?;
        Ok(Calibration { multiplier, event, bound })
    };
    let meets = |c: &Calibration| c.bound.value <= target.epsilon;
    // Distance from the target on a log scale, kept finite for the secants.
    let excess = |c: &Calibration| (c.bound.value / target.epsilon).ln().clamp(-20.0, 20.0);

    // `low` misses the target, `high` meets it.
    let first = ask(start)?;
    let (mut low, mut high) = ((start, excess(&first)), (start, excess(&first)));
    let mut best = if meets(&first) { Some(first) } else { None };
    if best.is_some() {
        loop {
            let x = high.0 - stride;
            if x < RANGE.0.ln() {
                break;
            }
            let tried = ask(x)?;
            low = (x, excess(&tried));
            if !meets(&tried) {
                break;
            }
            (high, best) = (low, Some(tried));
            stride = (2.0 * stride).min(1.5);
        }
    } else {
        while best.is_none() {
            let x = low.0 + stride;
            if x > RANGE.1.ln() {
                break;
            }
            let tried = ask(x)?;
            if meets(&tried) {
                (high, best) = ((x, excess(&tried)), Some(tried));
            } else {
                low = (x, excess(&tried));
                stride = (2.0 * stride).min(1.5);
            }
        }
    }
    let Some(mut best) = best else {
        let Target { epsilon, delta } = target;
        let why = "more noise does not bring the cost down far enough";
        return Err(Error::CannotCalibrate { epsilon, delta, low: RANGE.0, high: RANGE.1, why });
    };
    if low.1 <= 0.0 {
        // Even the least noise meets the target.
        return Ok(best);
    }

    // Secants (the Illinois rule), pushed to the far side of the root so that both ends of the bracket move.
    let mut last_side = 0;
    for round in 1..200 {
        if high.0 - low.0 <= width {
            break;
        }
        let secant = high.0 - high.1 * (high.0 - low.0) / (high.1 - low.1);
        let push = if last_side < 0 { 0.3 * width } else { -0.3 * width };
        let x = if round % 8 == 0 || !secant.is_finite() {
            0.5 * (low.0 + high.0)
        } else {
            (secant + push).clamp(low.0 + 0.3 * width, high.0 - 0.3 * width)
        };
        let tried = ask(x)?;
        if meets(&tried) {
            high = (x, excess(&tried));
            best = tried;
            if last_side > 0 {
                low.1 *= 0.5;
            }
            last_side = 1;
        } else {
            low = (x, excess(&tried));
            if last_side < 0 {
                high.1 *= 0.5;
            }
            last_side = -1;
        }
    }
    Ok(best)
}

/// How node-level training draws its batches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Number of training nodes N.
    pub train_nodes: u64,
    /// Expected batch size B; each node joins a batch with probability B / N.
    pub batch_size: u64,
    /// Epochs per stage.
    pub epochs: u64,
    /// Norm to which each gradient is clipped.
    pub clip: f64,
}

impl Training {
    /// Probability that a node is in a batch.
    pub fn rate(&self) -> f64 {
        self.batch_size as f64 / self.train_nodes as f64
    }

    /// Gradient steps per stage, `floor(epochs * N / B)`: never fewer than `epochs` times `floor(N / B)`, so that a run
    /// with whole epochs is covered as well.
    pub fn steps(&self) -> u64 {
        let total =
            u128::from(self.train_nodes) * u128::from(self.epochs) / u128::from(self.batch_size.max(1));
        u64::try_from(total).unwrap_or(u64::MAX)
    }

    fn check(&self) -> Result<()> {
        if self.train_nodes == 0 {
            return Err(Error::invalid("train_nodes", 0, "at least 1"));
        }
        if !(1..=self.train_nodes).contains(&self.batch_size) {
            return Err(Error::invalid(
                "batch_size",
                self.batch_size,
                "between 1 and the number of training nodes",
            ));
        }
        if self.epochs == 0 {
            return Err(Error::invalid("epochs", 0, "at least 1"));
        }
        positive("clip", self.clip)?;
        Ok(())
    }
}

/// The noise of one stage, as multiples of the sensitivity; nothing where the stage does not ask.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StageNoise {
    /// Multiplier of the noisy aggregation.
    pub nap: Option<f64>,
    /// Multiplier of each gradient step.
    pub dpsgd: Option<f64>,
}

/// The queries of a ProGAP run: stages 0 to K, a noisy aggregation (NAP) in all but the first, and at node level a DP-SGD
/// run in each.
///
/// # Proof definition
/// [`Plan::event`] is the composition of K Gaussian mechanisms of the given L2 sensitivity and, with training, of
/// K + 1 times `floor(epochs * N / B)` Poisson-sampled Gaussian steps at rate B/N. It describes a run only if the run asks
/// nothing else of the private data.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    depth: u64,
    sensitivity: f64,
    training: Option<Training>,
    ratio: f64,
    shares: Option<Vec<f64>>,
}

impl Plan {
    /// `depth` noisy aggregations of the given sensitivity, and nothing else.
    pub fn edge_level(depth: u64, sensitivity: f64) -> Result<Self> {
        if depth > 1000 {
            return Err(Error::invalid("depth", depth, "at most 1000"));
        }
        let sensitivity = positive("sensitivity", sensitivity)?;
        Ok(Plan { depth, sensitivity, training: None, ratio: 1.0, shares: None })
    }

    /// `depth` noisy aggregations of the given sensitivity and `depth + 1` DP-SGD runs.
    pub fn node_level(depth: u64, sensitivity: f64, training: Training) -> Result<Self> {
        training.check()?;
        Ok(Plan { training: Some(training), ..Plan::edge_level(depth, sensitivity)? })
    }

    /// DP-SGD gets `ratio` times the multiplier of the aggregations.
    pub fn with_ratio(self, ratio: f64) -> Result<Self> {
        Ok(Plan { ratio: positive("ratio", ratio)?, ..self })
    }

    /// Stages get separate shares of the budget: one per aggregation at edge level, one per stage at node level. Squared
    /// signal-to-noise ratios are in proportion to the shares; equal shares change nothing.
    pub fn with_shares(self, shares: Vec<f64>) -> Result<Self> {
        if shares.len() as u64 != self.budgeted_stages() {
            return Err(Error::invalid(
                "shares",
                shares.len(),
                "one share per aggregation (edge) or stage (node)",
            ));
        }
        for &share in &shares {
            positive("share", share)?;
        }
        Ok(Plan { shares: Some(shares), ..self })
    }

    fn budgeted_stages(&self) -> u64 {
        if self.training.is_some() { self.depth + 1 } else { self.depth }
    }

    /// The noise of stages 0 to K for a common multiplier.
    pub fn stages(&self, multiplier: f64) -> Vec<StageNoise> {
        let scale = |index: usize| match &self.shares {
            Some(shares) => {
                let mean = shares.iter().sum::<f64>() / shares.len() as f64;
                (mean / shares[index]).sqrt()
            }
            None => 1.0,
        };
        (0..=self.depth as usize)
            .map(|stage| match self.training {
                Some(_) => StageNoise {
                    nap: (stage > 0).then(|| multiplier * scale(stage)),
                    dpsgd: Some(multiplier * self.ratio * scale(stage)),
                },
                None => StageNoise { nap: (stage > 0).then(|| multiplier * scale(stage - 1)), dpsgd: None },
            })
            .collect()
    }

    /// The run as an event tree.
    pub fn event(&self, multiplier: f64) -> Result<Event> {
        let multiplier = positive("multiplier", multiplier)?;
        let mut naps: Vec<(f64, u64)> = Vec::new();
        let mut runs: Vec<(f64, u64)> = Vec::new();
        let add = |list: &mut Vec<(f64, u64)>, noise: Option<f64>, count: u64| match (noise, list.last_mut())
        {
            (Some(noise), Some((known, total))) if *known == noise => *total += count,
            (Some(noise), _) => list.push((noise, count)),
            (None, _) => {}
        };
        for stage in self.stages(multiplier) {
            add(&mut naps, stage.nap, 1);
            add(&mut runs, stage.dpsgd, self.training.map_or(0, |training| training.steps()));
        }
        let mut events = Vec::new();
        for (noise, count) in naps {
            events.push(Event::gaussian(noise * self.sensitivity, self.sensitivity)?.repeated(count)?);
        }
        if let Some(training) = self.training {
            for (noise, count) in runs {
                let step = Event::gaussian(noise * training.clip, training.clip)?
                    .poisson_sampled(training.rate())?;
                events.push(step.repeated(count)?);
            }
        }
        Event::composed(events)
    }

    /// The smallest multiplier that meets a target, see [`calibrate`].
    pub fn calibrate(&self, target: Target, accountant: &dyn Accountant) -> Result<Calibration> {
        calibrate(|multiplier| self.event(multiplier), target, accountant)
    }
}

/// The queries of DP-GNN: gradient steps over batches of nodes, each with its neighbours.
///
/// # Proof definition
/// [`SubgraphPlan::event`] is `floor(epochs * N / B)` times a noisy sum over B of the N training nodes' terms, drawn uniformly
/// without replacement in each step. A term is a gradient clipped to C that reads the node's own record and the records
/// of its senders; every node sends to at most D others, chosen from its own record. So a record touches its own term and
/// at most D others, and moves each by at most 2C. It describes a run only if the run asks nothing else of the private data.
/// See `docs/privacy.md#subgraph-batches`.
///
/// ```
/// use progap_privacy::accountant::RdpAccountant;
/// use progap_privacy::calibrate::{SubgraphPlan, Target, Training};
///
/// let training = Training { train_nodes: 10_000, batch_size: 100, epochs: 5, clip: 1.0 };
/// let plan = SubgraphPlan::new(training, 10)?;
/// let noise = plan.calibrate(Target::new(8.0, 1e-5)?, &RdpAccountant::new())?;
/// assert!(noise.bound.value <= 8.0);
/// assert!(plan.sigma(noise.multiplier) > 1.0);
/// # Ok::<(), progap_privacy::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SubgraphPlan {
    training: Training,
    max_degree: u64,
}

impl SubgraphPlan {
    /// Training in which every node sends to at most `max_degree` others.
    pub fn new(training: Training, max_degree: u64) -> Result<Self> {
        training.check()?;
        if max_degree == 0 {
            return Err(Error::invalid("max_degree", 0, "at least 1"));
        }
        Ok(SubgraphPlan { training, max_degree })
    }

    /// The most terms that one record touches: its own, and one for each receiver.
    pub fn max_terms(&self) -> u64 {
        self.max_degree.saturating_add(1).min(self.training.train_nodes)
    }

    /// How far a record moves a touched term: from one clipped gradient to any other.
    pub fn term_sensitivity(&self) -> f64 {
        2.0 * self.training.clip
    }

    /// The noise on the sum, for a multiplier of the sensitivity of one term.
    pub fn sigma(&self, multiplier: f64) -> f64 {
        multiplier * self.term_sensitivity()
    }

    /// The run as an event tree.
    pub fn event(&self, multiplier: f64) -> Result<Event> {
        let sigma = self.sigma(positive("multiplier", multiplier)?);
        let Training { train_nodes, batch_size, .. } = self.training;
        Event::sampled_without_replacement(
            train_nodes,
            batch_size,
            self.max_terms(),
            sigma,
            self.term_sensitivity(),
        )?
        .repeated(self.training.steps())
    }

    /// The smallest multiplier that meets a target, see [`calibrate`].
    pub fn calibrate(&self, target: Target, accountant: &dyn Accountant) -> Result<Calibration> {
        calibrate(|multiplier| self.event(multiplier), target, accountant)
    }
}

/// The event of an edge-level run: `depth` Gaussian aggregations with noise `sigma`.
pub fn edge_level(depth: u64, sigma: f64, sensitivity: f64) -> Result<Event> {
    let sigma = positive("sigma", sigma)?;
    Plan::edge_level(depth, sensitivity)?.event(sigma / sensitivity)
}

/// The event of a node-level run with one multiplier for aggregations and gradients.
pub fn node_level(depth: u64, sensitivity: f64, training: Training, multiplier: f64) -> Result<Event> {
    Plan::node_level(depth, sensitivity, training)?.event(multiplier)
}
