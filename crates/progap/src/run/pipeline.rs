//! The one way from a plan to models and to a release: whatever keeps the run (a folder, memory, the first rank's
//! folder for all ranks), and wherever its rows lie.

use progap_graph::{Dataset, Scaled};
use progap_privacy::noise::{Randomness, RunKey};

use super::{RunFile, RunFolder};
use crate::cost::{Cost, Laps, Stopwatch};
use crate::method::checkpoint::{CheckpointStore, State};
use crate::method::trainer::{RunSpec, Trainer};
use crate::method::{self, Fitted, Observer, Spread};
use crate::plan::Plan;
use crate::ranks::{RankData, Ranks};
use crate::release::{self, Metrics};
use crate::rows::Rows;
use crate::settings::{Level, Settings};
use crate::vault::Vault;
use crate::{Error, Result};

/// Where the rows and edges of a run lie.
#[derive(Clone, Copy)]
pub(super) enum World<'w> {
    /// All of them here.
    Whole(&'w Dataset),
    /// In several ranks, of which this is one.
    Part(&'w Ranks, &'w RankData),
}

impl World<'_> {
    /// Rows to calibrate by.
    fn rows(self, settings: &Settings) -> Result<Rows> {
        match self {
            World::Whole(dataset) => Rows::of_nodes(dataset),
            World::Part(_, data) if method::spread(settings) == Some(Spread::Edges) => {
                Rows::of_nodes(&data.dataset.clone().prepared(settings.preparation())?)
            }
            World::Part(_, data) => data.rows(),
        }
    }
}

/// Opens a vault and fits the method, from where the run stands. The noise is that of the seed in the settings, else of
/// the run's key.
pub(super) fn fit(
    world: World<'_>,
    spec: RunSpec<'_>,
    key: Option<RunKey>,
    (state, store): (State, &mut dyn CheckpointStore),
    observer: &mut dyn Observer,
) -> Result<(Fitted, Laps)> {
    let (settings, mut laps) = (spec.settings, Laps::start());
    let randomness = match (settings.seed, key) {
        (Some(seed), None) => Randomness::from_seed(seed).erase(),
        (None, Some(key)) => Randomness::from_key(key).erase(),
        _ => return Err(Error::internal("a run has a seed or a key, and never both")),
    };
    let vault = match world {
        World::Whole(dataset) => Vault::open(dataset.clone(), settings, spec.plan.clone(), randomness)?,
        World::Part(ranks, data) => Vault::over(ranks, data, settings, spec.plan.clone(), randomness)?,
    };
    laps.lap("preparation");
    let trainer = Trainer::new(vault, spec, state, store, observer)?;
    let mut fitted = method::fit(trainer)?.calibrated(|| world.rows(settings), settings)?;
    laps.lap_with(std::mem::take(&mut fitted.stages), "evaluation");
    Ok((fitted, laps))
}

/// What is told of a fit.
pub(super) fn metrics(fitted: &Fitted, settings: &Settings) -> Metrics {
    Metrics {
        test_accuracy: fitted.accuracies.test,
        val_accuracy: fitted.accuracies.val,
        train_accuracy: fitted.accuracies.train,
        unprotected: settings.level == Level::Node,
        features_only_accuracy: fitted
            .stage_accuracies
            .first()
            .copied()
            .filter(|accuracy| !settings.method.can().mixes_rows && accuracy.is_finite()),
        stage_test_accuracies: fitted.stage_accuracies.clone(),
        history: fitted.history.clone(),
    }
}

/// Writes the release beside the aggregates that lie in the folder of its run; the folder is a release then.
pub(super) fn write_release(
    folder: &RunFolder,
    dataset: &Scaled,
    plan: &Plan,
    fitted: &Fitted,
    (stopwatch, mut laps): (Stopwatch, Laps),
) -> Result<(release::Statement, Metrics, Cost)> {
    let RunFile { dataset: name, settings, source, .. } = &folder.run;
    let metrics = metrics(fitted, settings);
    let statement = release::stated(settings, plan, fitted, dataset.rest())?;
    let content = release::Content {
        config: release::Config::published(name, settings, source.clone()),
        dataset,
        statement: &statement,
        metrics: &metrics,
        predictor: &fitted.predictor,
    };
    release::write(&folder.path, &content)?;
    laps.lap("writing");
    let cost = stopwatch.stop(laps);
    cost.write(&folder.path)?;
    folder.finish()?;
    Ok((statement, metrics, cost))
}
