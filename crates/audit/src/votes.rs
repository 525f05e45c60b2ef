//! Canaries for counts of votes: edges to nodes that receive nothing else, each there or not by a coin.

use progap_graph::{Dataset, Features, Graph, Part};
use progap_privacy::noise::{AnySource, Randomness};

use super::AuditTarget;
use super::evidence::{Claim, Evidence, Trial, toss};
use super::mechanism::{canary_data, every_round, open, unit_in_words};
use progap::Result;
use progap::method;
use progap::plan::{Plan, automatic_delta};
use progap::settings::{Level, Settings};
use progap::vault::Votes;

/// As many canaries as usual.
const CANARIES: usize = 100_000;
/// The classes of the canaries' world.
const CLASSES: usize = 2;

/// Pairs of nodes, with an edge from the first to the second where a coin says so; where undirected edges are
/// protected, both directions.
#[derive(Debug, Clone, Copy)]
pub struct Voters {
    canaries: usize,
    directions: usize,
    rounds: usize,
}

impl Voters {
    /// This many canaries, two at least, for the counts of a run.
    pub fn new(settings: &Settings, canaries: usize) -> Voters {
        let directions = if settings.undirected { 2 } else { 1 };
        Voters { canaries: canaries.max(2), directions, rounds: method::aggregations(settings) }
    }

    /// The class that everyone votes for in a round: another one than in the round before.
    pub fn vote(round: usize) -> u32 {
        (round % CLASSES) as u32
    }

    fn dataset(&self, coins: &[bool]) -> Result<Dataset> {
        let chosen = (0..self.canaries as u32).filter(|&canary| coins[canary as usize]);
        let both = |canary: u32| [(2 * canary, 2 * canary + 1), (2 * canary + 1, 2 * canary)];
        let (sources, targets): (Vec<u32>, Vec<u32>) =
            chosen.flat_map(|canary| both(canary).into_iter().take(self.directions)).unzip();
        let nodes = 2 * self.canaries;
        let features = Features::dense(nodes, 1, vec![0.0; nodes])?;
        canary_data(Graph::from_edges(nodes, &sources, &targets)?, features, |_| Part::Train)
    }

    /// Asks a mechanism once for all counts of the canaries that coins choose.
    ///
    /// # Errors
    /// Errors of the mechanism.
    pub fn experiment(
        &self,
        randomness: &mut Randomness<AnySource>,
        mechanism: &mut dyn FnMut(Dataset) -> Result<Vec<Vec<f32>>>,
    ) -> Result<Counted> {
        let coins = toss(randomness, self.canaries)?;
        let counts = mechanism(self.dataset(&coins)?)?;
        Ok(Counted { voters: *self, coins, counts })
    }
}

/// The answers of a mechanism about the canaries.
#[derive(Debug, Clone)]
pub struct Counted {
    voters: Voters,
    coins: Vec<bool>,
    counts: Vec<Vec<f32>>,
}

impl Counted {
    /// The votes for a class that a canary's receivers get in a round.
    fn heard(&self, canary: usize, round: usize, class: usize) -> f64 {
        let receiver = |direction: usize| 2 * canary + 1 - direction;
        let count = |direction| f64::from(self.counts[round][receiver(direction) * CLASSES + class]);
        (0..self.voters.directions).map(count).sum()
    }

    /// All counts together.
    pub fn together(&self) -> Evidence {
        let rounds = 0..self.voters.rounds;
        let score = |canary: usize| {
            rounds.clone().map(|round| self.heard(canary, round, Voters::vote(round) as usize)).sum::<f64>()
        };
        let most = (self.voters.rounds * self.voters.directions) as f64;
        self.evidence(score, 0.5 * most)
    }

    /// Two counts in which everyone voted for different classes: certain, where both have the same noise.
    pub fn pair(&self, one: usize, other: usize) -> Evidence {
        let (first, second) = (Voters::vote(one) as usize, Voters::vote(other) as usize);
        let score = |canary: usize| {
            let moved = |class: usize| self.heard(canary, one, class) - self.heard(canary, other, class);
            moved(first) - moved(second)
        };
        self.evidence(score, self.voters.directions as f64)
    }

    fn evidence(&self, score: impl Fn(usize) -> f64, threshold: f64) -> Evidence {
        let scores = (0..self.voters.canaries).map(score).collect();
        Evidence { scores, coins: self.coins.clone(), threshold }
    }

    /// The tests of the answers: all together, and every two in a row.
    pub fn trials(&self, settings: &Settings, plan: &Plan, edges: usize) -> Vec<Trial> {
        let (unit, rounds) = (unit_in_words(settings), self.voters.rounds);
        let claim = |counts: usize| match plan.unit {
            None => Claim::none(automatic_delta(edges)),
            Some(_) => Claim::pure(plan.epsilon * counts as f64 / rounds as f64),
        };
        let what = format!("{unit} through {rounds} counts of votes");
        let mut trials = vec![Trial { what, evidence: self.together(), claim: claim(rounds) }];
        for one in 0..if settings.level == Level::None { 0 } else { rounds.saturating_sub(1) } {
            let what = format!("{unit} through counts {} and {}", one + 1, one + 2);
            trials.push(Trial { what, evidence: self.pair(one, one + 1), claim: claim(2) });
        }
        trials
    }
}

/// The vault's answers to as many questions as a training run asks.
///
/// # Errors
/// As [`Vault::ask`](progap::vault::Vault::ask).
pub fn ask_vault(
    dataset: Dataset,
    settings: &Settings,
    plan: &Plan,
    randomness: Randomness<AnySource>,
) -> Result<Vec<Vec<f32>>> {
    let nodes = dataset.nodes();
    every_round(open(dataset, settings, plan, randomness)?, settings, |vault, round| {
        vault.ask(Votes { label: format!("votes {}", round + 1), votes: &vec![Voters::vote(round); nodes] })
    })
}

/// Audits the counts of a run with these settings and this noise.
///
/// # Errors
/// Settings that contradict each other.
pub(crate) fn audit(target: &AuditTarget<'_>) -> Result<Vec<Trial>> {
    let AuditTarget { dataset, settings, plan, canaries, fresh } = *target;
    let voters = Voters::new(settings, canaries.unwrap_or(CANARIES));
    let counted = voters.experiment(&mut fresh(), &mut |data| ask_vault(data, settings, plan, fresh()))?;
    Ok(counted.trials(settings, plan, dataset.graph().edges()))
}
