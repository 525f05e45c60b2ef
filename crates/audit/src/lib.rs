#![doc = include_str!("../README.md")]
//!
//! An empirical check of the privacy claim: canaries whose presence is decided by coins, and attacks on a release.
//!
//! An accountant bounds the privacy loss from above by proof, an audit from below by experiment. Canaries (edges, or
//! records of nodes) are put into the data by fair coins, the real code is run once, and each canary gets a score from
//! what came out. How well the scores tell the coins gives a lower bound on epsilon that holds with the stated
//! confidence; where it exceeds the claim, the claim is wrong. docs/audit.md says how to read the results.
//!
//! | file | what it holds |
//! |---|---|
//! | [`evidence`] | coins and scores, the claim about them, and what they prove |
//! | `mechanism` | canaries for the vault's own queries, the strongest there can be |
//! | `response` | canaries for a noisy graph: possible edges |
//! | `subgraph` | canaries for sums of gradients over nodes with their senders |
//! | `tables` | canaries for tables of labels and of classes |
//! | `votes` | canaries for counts of votes |
//! | `training` | canaries in a real data set, scored from what a whole training run releases |
//! | [`lint`] | remarks about data before they are trained on |
//! | [`attack`] | link and membership inference against a release, as an outsider would try |
//!
//! A mechanism under audit is a function from a data set to answers. The product hands in the vault; tests hand
//! in broken mechanisms, which must be found out.

#![forbid(unsafe_code)]

pub mod attack;
mod columns;
mod counts;
pub mod evidence;
pub mod lint;
#[doc(hidden)]
#[allow(missing_docs, reason = "for tests")]
pub mod mechanism;
#[doc(hidden)]
#[allow(missing_docs, reason = "for tests")]
pub mod response;
#[doc(hidden)]
#[allow(missing_docs, reason = "for tests")]
pub mod subgraph;
#[doc(hidden)]
#[allow(missing_docs, reason = "for tests")]
pub mod tables;
mod training;
#[doc(hidden)]
#[allow(missing_docs, reason = "for tests")]
pub mod votes;

pub use evidence::{Claim, Evidence, Finding, Trial, evaluate};
pub use training::Predict;

use progap_graph::{Dataset, transform};
use progap_privacy::noise::{AnySource, Randomness};

use attack::Attack;
use progap::method::Observer;
use progap::plan::Plan;
use progap::release::Release;
use progap::settings::{Direction, Order, Settings};
use progap::{Error, Remedy, Result, run};

/// The target of an audit, and how hard it is attacked.
pub(crate) struct AuditTarget<'t> {
    pub dataset: &'t Dataset,
    pub settings: &'t Settings,
    pub plan: &'t Plan,
    pub canaries: Option<usize>,
    /// Fresh randomness, as often as it is needed.
    pub fresh: &'t dyn Fn() -> Randomness<AnySource>,
}

/// A data set and the settings with which it is, or would be, trained on.
#[derive(Debug, Clone, Copy)]
pub struct Auditor<'a> {
    /// The data set, with its split.
    pub dataset: &'a Dataset,
    /// The settings, as [`resolve`](progap::settings::resolve) gives them. With a seed, coins, noise and so the results
    /// are the same every time.
    pub settings: &'a Settings,
    /// How many canaries; where not given, as many as are worth their time.
    pub canaries: Option<usize>,
}

impl Auditor<'_> {
    /// Attacks the vault's queries by canaries of the largest influence.
    ///
    /// # Errors
    /// Settings or data that cannot be trained with.
    pub fn mechanism(&self) -> Result<Vec<Trial>> {
        let (dataset, canaries) = (self.dataset, self.canaries);
        let plan = run::prepare(dataset, &self.settings.checked()?)?;
        // Canaries are put where messages go along the edges: the same mechanism, whichever way they go.
        let settings = &along_edges(self.settings);
        mechanism::audit(dataset, settings, &plan, canaries, || self.randomness())
    }

    /// Whether the guarantee covers what a release predicts, so that [`Auditor::training`] has a claim to test.
    pub fn claims_about_releases(&self) -> bool {
        self.settings.method.can().protects_predictions
    }

    /// Trains with canaries in the data and attacks the release.
    ///
    /// # Errors
    /// Settings or data that cannot be trained with.
    pub fn training(&self, observer: &mut dyn Observer) -> Result<Vec<Trial>> {
        let predict = |release: &Release, nodes: &[u32]| Ok(release.predict_nodes(nodes)?.probabilities);
        self.training_by(&predict, observer)
    }

    /// As [`Auditor::training`], where others are shown the predictions of a function.
    ///
    /// # Errors
    /// Settings or data that cannot be trained with, and what the function returns.
    pub fn training_by(
        &self,
        predict: training::Predict<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Trial>> {
        if !self.claims_about_releases() {
            return Err(Error::unsuitable(format!(
                "predictions of {} are not protected, so there is no claim about them to test",
                self.settings.method
            ))
            .remedy(Remedy::set("parts", "mechanism,attacks")));
        }
        let settings = &along_edges(self.settings);
        let turned = match self.settings.direction {
            Direction::Out => Some(transform::map_graph(self.dataset.clone(), |graph| graph.transpose())?),
            Direction::In | Direction::Both => None,
        };
        let dataset = turned.as_ref().unwrap_or(self.dataset);
        training::audit(dataset, settings, self.canaries, self.randomness(), predict, observer)
    }

    /// Trains a release of the data as it is, for [`Auditor::attacks`], and throws it away.
    ///
    /// # Errors
    /// Settings or data that cannot be trained with.
    pub fn train(&self, observer: &mut dyn Observer) -> Result<Release> {
        throwaway_release(self.dataset.clone(), self.settings, observer)
    }

    /// Looks for edges and training nodes in a release of this data set: attacks on edges, then on nodes.
    ///
    /// # Errors
    /// A release of other data.
    pub fn attacks(&self, release: &Release) -> Result<(Vec<Attack>, Attack)> {
        let Some(dataset) = release.aligned(self.dataset)? else {
            return Err(Error::file(
                &release.folder,
                "the release was trained on other data, or another split",
            ));
        };
        let links = attack::link(release, &dataset, &mut self.randomness())?;
        Ok((links, attack::membership(release, &dataset)?))
    }

    fn randomness(&self) -> Randomness<AnySource> {
        match self.settings.seed {
            Some(seed) => Randomness::from_seed(seed).erase(),
            None => Randomness::from_os().erase(),
        }
    }
}

/// The same settings where messages go against the edges alone: as if they went along them.
fn along_edges(settings: &Settings) -> Settings {
    let direction = if settings.direction == Direction::Out { Direction::In } else { settings.direction };
    Settings { direction, ..settings.clone() }
}

/// A release in memory only; its files are gone.
fn throwaway_release(dataset: Dataset, settings: &Settings, observer: &mut dyn Observer) -> Result<Release> {
    // Nobody sees it: the order of its nodes tells nobody anything.
    let settings = &Settings { order: Order::Public, shuffle: false, ..settings.clone() };
    let place = tempfile::tempdir().map_err(|e| Error::unsuitable(format!("no temporary folder: {e}")))?;
    let release =
        progap::train(&dataset, settings).observer(observer).into_folder(place.path().join("release"))?;
    // Read while the files are there.
    release.answers()?;
    Ok(release)
}
