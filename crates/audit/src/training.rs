//! Canaries in a real data set, scored from what a whole training run releases.
//!
//! Canaries are edges between nodes of their own, added to the data set, or records of such nodes. All send the same
//! thing, because all have the same row; so what their presence looks like in a release can be learnt from the
//! first half of the coins, and is tested on the second half. How messages come about is not looked into: the same
//! audit works for every method.

use progap_graph::{Dataset, DatasetParts, Features, Graph, NodeIds, Part, Split};
use progap_privacy::accountant::GdpAccountant;
use progap_privacy::noise::{AnySource, Randomness};

use super::evidence::{Claim, Evidence, NO_DELTA, Trial, toss};
use super::mechanism::unit_in_words;
use super::throwaway_release;
use progap::method::Observer;
use progap::plan::automatic_delta;
use progap::release::{Budget, Release};
use progap::settings::{Bounding, Level, Settings};
use progap::vault::{Aggregates, Rows};
use progap::{Error, Result};

/// A data set with room for canaries.
#[derive(Debug)]
pub struct Planted<'a> {
    base: &'a Dataset,
    level: Level,
    undirected: bool,
    receivers: usize,
    canaries: usize,
    /// The node whose row the canaries copy.
    model: u32,
}

/// Canaries without a wish of the user: enough to see an edge at epsilon 1.
const EDGES: usize = 20_000;
/// Records take part in training, and should not outnumber the data.
const RECORDS: usize = 2_000;
/// The most receivers of a record.
const RECEIVERS: u32 = 16;

impl<'a> Planted<'a> {
    /// Room for canaries of the settings' unit.
    ///
    /// # Errors
    /// A data set without training nodes.
    pub fn new(base: &'a Dataset, settings: &Settings, canaries: Option<usize>) -> Result<Self> {
        let train = base.split().and_then(|split| split.nodes(Part::Train).next());
        let model = train.ok_or_else(|| Error::unsuitable("the data set has no training nodes"))?;
        let node = settings.level == Level::Node;
        Ok(Planted {
            base,
            level: settings.level,
            undirected: settings.undirected,
            receivers: match settings.bounding {
                _ if !node => 1,
                Bounding::Weight => 1,
                Bounding::Cap | Bounding::Sample => settings.max_degree.min(RECEIVERS) as usize,
            },
            canaries: canaries.unwrap_or(if node { RECORDS.min(base.nodes() / 4) } else { EDGES }).max(100),
            model: model as u32,
        })
    }

    /// The sender of a canary. Directed edges may all come from one node; it sends the same to everyone.
    fn sender(&self, canary: usize) -> u32 {
        let own = self.level == Level::Node || self.undirected;
        (self.base.nodes() + if own { canary * (self.receivers + 1) } else { 0 }) as u32
    }

    fn receivers(&self, canary: usize) -> std::ops::Range<u32> {
        let own = self.level == Level::Node || self.undirected;
        let first = self.base.nodes() + 1 + canary * (self.receivers + usize::from(own));
        first as u32..(first + self.receivers) as u32
    }

    /// The data with the canaries that are in.
    ///
    /// # Errors
    /// More nodes than a graph can have.
    pub fn dataset(&self, coins: &[bool]) -> Result<Dataset> {
        let nodes = self.receivers(self.canaries - 1).end as usize;
        let mut edges: Vec<(u32, u32)> = self.base.graph().iter_edges().collect();
        let records = self.level == Level::Node;
        // The nodes with the copied row: all senders, but no record that is out.
        let mut copies = vec![false; nodes - self.base.nodes()];
        for (canary, &coin) in coins.iter().enumerate() {
            let sender = self.sender(canary);
            copies[sender as usize - self.base.nodes()] |= coin || !records;
            if self.undirected {
                self.receivers(canary).for_each(|node| copies[node as usize - self.base.nodes()] = true);
            }
            if coin {
                edges.extend(self.receivers(canary).map(|receiver| (sender, receiver)));
                if self.undirected {
                    edges.extend(self.receivers(canary).map(|receiver| (receiver, sender)));
                }
            }
        }
        let (sources, targets): (Vec<u32>, Vec<u32>) = edges.into_iter().unzip();
        let parts = self.base.clone().into_parts();
        let split = self.base.split();
        let part = |node: usize| match node.checked_sub(self.base.nodes()) {
            None => split.map_or(Part::Unused, |split| split.part(node)),
            Some(new) if records && copies[new] => Part::Train,
            Some(_) => Part::Unused,
        };
        let mut labels = parts.labels.to_vec();
        let label = labels[self.model as usize];
        let other = if label == 0 { 1.min(parts.class_names.len() as u32 - 1) } else { 0 };
        // A record that is out has another label, too.
        labels.extend(copies.iter().map(|&copy| if copy || !records { label } else { other }));
        Ok(Dataset::new(DatasetParts {
            graph: Graph::from_edges(nodes, &sources, &targets)?,
            features: with_copies(&parts.features, self.model as usize, &copies, self.base.nodes())?,
            labels: labels.into(),
            split: Some(Split::from_parts((0..nodes).map(part))),
            node_ids: NodeIds::Position,
            ..parts
        })?)
    }

    /// The view that everyone but the owner of a record has of each canary at node level: the rows of the aggregates
    /// that it may have touched, and what the release predicts about its receivers, from their own rows. Nothing that
    /// reads the canary's own row.
    fn view_of_others(&self, release: &Release, predict: Predict<'_>) -> Result<Vec<Vec<f64>>> {
        let others: Vec<u32> = (0..self.canaries).flat_map(|canary| self.receivers(canary)).collect();
        let classes = release.nodes().classes();
        let (answers, probabilities) = (release.answers()?, predict(release, &others)?);
        let observe = |canary: usize| {
            let mut seen = sums_of(answers, &self.receivers(canary).collect::<Vec<u32>>());
            let rows = &probabilities[canary * self.receivers * classes..][..self.receivers * classes];
            seen.extend((0..classes).map(|class| {
                let own = rows.iter().skip(class).step_by(classes);
                own.map(|&p| f64::from(p.max(1e-30).ln())).sum::<f64>()
            }));
            seen
        };
        Ok((0..self.canaries).map(observe).collect())
    }

    /// All that a release shows of each canary: the rows of the aggregates that it may have touched, and what the model
    /// says about it.
    fn observations(&self, release: &Release, everyone: &Dataset) -> Result<Vec<Vec<f64>>> {
        let shown: Vec<u32> = (0..self.canaries)
            .map(|canary| match self.level {
                Level::Node => self.sender(canary),
                _ => self.receivers(canary).start,
            })
            .collect();
        let everyone = &release.prepared(everyone)?;
        let rows = Rows::of_nodes(everyone)?;
        let classes = everyone.classes();
        let (answers, probabilities) = (release.answers()?, release.probabilities_of(&rows, &shown)?);
        let label = everyone.labels()[self.model as usize] as usize;
        let observe = |canary: usize| {
            let mut watched: Vec<u32> = self.receivers(canary).collect();
            if self.undirected {
                watched.push(self.sender(canary));
            }
            let mut seen = sums_of(answers, &watched);
            seen.push(f64::from(probabilities[canary * classes + label].max(1e-30).ln()));
            seen
        };
        Ok((0..self.canaries).map(observe).collect())
    }
}

/// Some nodes' rows of the aggregates, added up.
fn sums_of(aggregates: &Aggregates, watched: &[u32]) -> Vec<f64> {
    let mut seen = Vec::new();
    for aggregate in aggregates {
        let value = |node: u32, at: usize| f64::from(aggregate.values[node as usize * aggregate.width + at]);
        seen.extend((0..aggregate.width).map(|at| watched.iter().map(|&node| value(node, at)).sum::<f64>()));
    }
    seen
}

/// Predictions of a release for some nodes: the probability of each class, row after row.
pub type Predict<'p> = &'p dyn Fn(&Release, &[u32]) -> Result<Vec<f32>>;

/// Trains with canaries and scores them from the release: from all of it by someone who knows every canary's row, and
/// at node level also from what everyone but a record's owner is shown, predictions included.
///
/// # Errors
/// As [`progap::Training::into_folder`].
pub fn audit(
    base: &Dataset,
    settings: &Settings,
    canaries: Option<usize>,
    mut randomness: Randomness<AnySource>,
    predict: Predict<'_>,
    observer: &mut dyn Observer,
) -> Result<Vec<Trial>> {
    let planted = Planted::new(base, settings, canaries)?;
    let coins = toss(&mut randomness, planted.canaries)?;
    let release = throwaway_release(planted.dataset(&coins)?, settings, observer)?;
    // The attacker knows every canary's row, and wants to know which of them were in.
    let everyone = planted.dataset(&vec![true; coins.len()])?;
    let seen = planted.observations(&release, &everyone)?;
    // Of seeded runs the mechanism is attacked that an unseeded run would have.
    let claim = match release.statement.budget() {
        Some(Budget { epsilon, delta }) => {
            let mu = GdpAccountant::mu(&release.statement.event);
            Claim { epsilon: Some(epsilon), delta: delta.max(NO_DELTA), mu, independent: false }
        }
        None => Claim::none(automatic_delta(base.graph().edges())),
    };
    let unit = unit_in_words(settings);
    let what = format!("{unit} through training and its release");
    let mut trials = vec![Trial { what, evidence: learn_and_test(&seen, &coins), claim }];
    if settings.level == Level::Node {
        let seen = planted.view_of_others(&release, predict)?;
        let what = format!("{unit} through what all others see, predictions included");
        trials.push(Trial { what, evidence: learn_and_test(&seen, &coins), claim });
    }
    Ok(trials)
}

/// Learns on the first half of the coins how the two cases differ, and scores the second half. Given the first half,
/// the second is an audit of its own, whose scores do not depend on its coins but through the release.
fn learn_and_test(seen: &[Vec<f64>], coins: &[bool]) -> Evidence {
    let half = seen.len() / 2;
    let columns = seen.first().map_or(0, Vec::len);
    let mut weights = vec![0.0; columns];
    let mut threshold = 0.0;
    for (at, weight) in weights.iter_mut().enumerate() {
        let side = |wanted: bool| {
            let values = (0..half).filter(|&row| coins[row] == wanted).map(|row| seen[row][at]);
            let (count, sum, squares) =
                values.fold((0.0, 0.0, 0.0), |(n, sum, squares), v| (n + 1.0, sum + v, squares + v * v));
            let mean = sum / f64::max(count, 1.0);
            (mean, (squares / f64::max(count, 1.0) - mean * mean).max(0.0))
        };
        let ((high, spread), (low, other)) = (side(true), side(false));
        // Without noise a column may not vary at all: then any difference is certain.
        *weight = (high - low) / (0.5 * (spread + other)).max(1e-9);
        threshold += *weight * 0.5 * (high + low);
    }
    let score = |row: &Vec<f64>| row.iter().zip(&weights).map(|(v, w)| v * w).sum::<f64>();
    Evidence { coins: coins[half..].to_vec(), scores: seen[half..].iter().map(score).collect(), threshold }
}

/// The rows, and behind them copies of the row `model`, or rows of zeros.
fn with_copies(features: &Features, model: usize, copies: &[bool], rows: usize) -> Result<Features> {
    let all = rows + copies.len();
    Ok(match &features.clone().widened() {
        Features::Half { .. } => return Err(Error::internal("features were widened")),
        Features::Dense { columns, values } => {
            let row = values[model * columns..(model + 1) * columns].to_vec();
            let mut values = values.to_vec();
            values.resize(all * columns, 0.0);
            for (at, _) in copies.iter().enumerate().filter(|(_, copy)| **copy) {
                values[(rows + at) * columns..][..*columns].copy_from_slice(&row);
            }
            Features::dense(all, *columns, values)?
        }
        Features::Sparse { columns, offsets, indices, values } => {
            let row = offsets[model] as usize..offsets[model + 1] as usize;
            let (mut offsets, mut indices) = (offsets.to_vec(), indices.to_vec());
            let mut values = values.as_ref().map(|values| values.to_vec());
            for &copy in copies {
                if copy {
                    indices.extend_from_within(row.clone());
                    if let Some(values) = &mut values {
                        values.extend_from_within(row.clone());
                    }
                }
                offsets.push(indices.len() as u64);
            }
            Features::sparse(all, *columns, offsets, indices, values.map(Into::into))?
        }
    })
}
