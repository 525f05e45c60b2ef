//! A run that leaves no folder: for experiments, which are repeated from their seeds and not resumed.
//!
//! Runs of one process share what is the same for several of them: calibrated noise, and the first stages of ProGAP. A
//! stage depends on the depth only through the noise. Without privacy there is none, so a run of depth 5 contains
//! those of depth 1 to 4; at edge level the stage before the first aggregation is common to all depths and budgets; at
//! node level gradients are noisy too and nothing is common.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use progap_graph::{Buffer, Dataset, Graph, Part};
use progap_privacy::noise::RunKey;
use serde_json::Value;

use super::pipeline::{World, fit, metrics};
use super::{prepare_by, random_bytes};
use crate::assessment::Scores;
use crate::method::Observer;
use crate::method::checkpoint::{CheckpointStore, State};
use crate::method::trainer::RunSpec;
use crate::plan::{Calibrations, Plan};
use crate::release::{self, Metrics};
use crate::settings::{Draft, Level, PublicFacts, Settings};
use crate::{Error, Result};

/// The settings that change a stage of ProGAP through the noise alone.
const ONLY_IN_NOISE: [&str; 4] = ["depth", "epsilon", "delta", "accounting"];
/// The most bytes of aggregates that are kept to be shared.
const MAX_BYTES: usize = 256 << 20;

/// Stages that runs of one process share.
#[derive(Debug, Default)]
pub struct StageCache {
    noise: Calibrations,
    stages: Mutex<Stages>,
}

/// ProGAP after a stage.
#[derive(Debug, Clone, Default)]
struct Stage {
    state: State,
    aggregates: Vec<Buffer<f32>>,
}

#[derive(Debug, Default)]
struct Stages {
    kept: HashMap<String, Stage>,
    order: VecDeque<String>,
    bytes: usize,
    used: usize,
}

impl Stages {
    fn insert(&mut self, key: String, stage: Stage) {
        let size = |stage: &Stage| stage.aggregates.last().map_or(0, |last| size_of_val(&last[..]));
        self.bytes += size(&stage);
        if let Some(before) = self.kept.insert(key.clone(), stage) {
            self.bytes -= size(&before);
        } else {
            self.order.push_back(key);
        }
        while self.bytes > MAX_BYTES || self.order.len() > 4096 {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.kept.remove(&oldest).as_ref().map_or(0, size);
        }
    }
}

/// A poisoned lock only says that another run failed; what is kept is whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn without(settings: &Settings, names: &[&str]) -> String {
    let mut value = serde_json::to_value(settings).unwrap_or(Value::Null);
    if let Value::Object(fields) = &mut value {
        fields.retain(|name, _| !names.contains(&name.as_str()));
    }
    value.to_string()
}

/// The result of a run that leaves nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Accuracies, and what happened in training.
    pub metrics: Metrics,
    /// Every metric on the test nodes; nothing where there are none.
    pub scores: Option<Scores>,
}

/// Trains on a data set and tells how good the model is; nothing is written, and no ledger is charged.
///
/// `fingerprint` is that of the data set. Without a seed in the settings the noise is drawn from the system.
pub fn fit_in_memory(
    dataset: &Dataset,
    fingerprint: &str,
    settings: &Draft,
    cache: &StageCache,
    observer: &mut dyn Observer,
) -> Result<Measured> {
    let settings = &settings.resolve(&PublicFacts::of(dataset, settings))?;
    let dataset = &dataset.clone().prepared(settings.preparation())?;
    let plan =
        prepare_by(dataset, settings, |settings, sizes| Plan::remembered(&cache.noise, settings, sizes))?;
    let (seed, key, mut store) = match settings.seed {
        Some(seed) => (seed, None, InMemoryRun::new(cache, fingerprint, settings, &plan)),
        // Initial values show in a model: they have a seed of their own, not one that tells of the key.
        None => (u64::from_le_bytes(random_bytes()?), Some(RunKey::from_os()?), InMemoryRun::alone()),
    };
    let spec = RunSpec { settings, plan: &plan, seed };
    let state = std::mem::take(&mut store.begun);
    let (fitted, _) = fit(World::Whole(dataset), spec, key, (state, &mut store), observer)?;
    let dataset = &fitted.scaled(dataset.clone().into())?.held()?;
    let found = release::compared(&fitted.predictor, dataset, dataset, Part::Test)?;
    Ok(Measured {
        metrics: metrics(&fitted, settings),
        scores: found.and_then(|found| found.assessment().scores()),
    })
}

/// Keeps what a run must not lose for as long as it runs, and leaves stages for other runs.
pub(crate) struct InMemoryRun<'s> {
    cache: Option<(&'s StageCache, StageKeys)>,
    begun: State,
    pub(super) aggregates: Vec<Buffer<f32>>,
    /// Whether gradients are noisy.
    noisy_rows: bool,
    /// Whether the accuracy on the training nodes is measured after each epoch.
    pub(super) watches_training: bool,
}

/// The names of the stages of a run.
struct StageKeys {
    common: String,
    noise: String,
}

impl StageKeys {
    /// The name of a stage that noise had a part in, or of one that it had none in yet.
    fn of(&self, stage: usize, noisy: bool) -> String {
        format!("{stage} {} {}", if noisy { &self.noise } else { "" }, self.common)
    }
}

/// All of a plan that can change what a stage learns.
fn noise(plan: &Plan) -> String {
    let Plan { sensitivity, aggregate_multiplier, gradient_multiplier, steps, rate, .. } = plan;
    format!("{sensitivity} {aggregate_multiplier} {gradient_multiplier} {steps} {rate}")
}

impl<'s> InMemoryRun<'s> {
    pub(crate) fn alone() -> Self {
        InMemoryRun {
            cache: None,
            begun: State::default(),
            aggregates: vec![],
            noisy_rows: false,
            watches_training: true,
        }
    }

    fn new(cache: &'s StageCache, fingerprint: &str, settings: &Settings, plan: &Plan) -> Self {
        // Without any aggregation there is one stage only, and nothing in it need be like that of deeper runs.
        if !settings.method.can().shares_stages || settings.depth == 0 {
            return InMemoryRun::alone();
        }
        let common = format!("{fingerprint} {}", without(settings, &ONLY_IN_NOISE));
        let keys = StageKeys { common, noise: noise(plan) };
        let mut stages = locked(&cache.stages);
        let keep = |stage| [keys.of(stage, true), keys.of(stage, false)];
        let found = (0..=settings.depth).rev().flat_map(keep).find_map(|key| stages.kept.get(&key).cloned());
        stages.used += usize::from(found.is_some());
        let Stage { state, aggregates } = found.unwrap_or_default();
        drop(stages);
        let noisy_rows = settings.level == Level::Node;
        InMemoryRun {
            cache: Some((cache, keys)),
            begun: state,
            aggregates,
            noisy_rows,
            watches_training: true,
        }
    }
}

impl CheckpointStore for InMemoryRun<'_> {
    fn keep_aggregate(
        &mut self,
        _: usize,
        values: Vec<f32>,
        _: usize,
        _: Option<&RunKey>,
    ) -> Result<Buffer<f32>> {
        let values = Buffer::from(values);
        self.aggregates.push(values.clone());
        Ok(values)
    }

    fn kept_aggregate(&mut self, number: usize, _: usize) -> Result<Option<Buffer<f32>>> {
        Ok(self.aggregates.get(number - 1).cloned())
    }

    fn keep_graph(&mut self, _: &Graph, _: Option<&RunKey>) -> Result<()> {
        Ok(())
    }

    fn kept_graph(&mut self) -> Result<Option<Graph>> {
        Ok(None)
    }

    fn save(&mut self, state: &State, _: Option<&RunKey>) -> Result<()> {
        if let (Some((cache, keys)), Some(stage)) = (&self.cache, state.finished.len().checked_sub(1)) {
            let stage_so_far = Stage { state: state.clone(), aggregates: self.aggregates.clone() };
            let noisy = self.noisy_rows || !self.aggregates.is_empty();
            locked(&cache.stages).insert(keys.of(stage, noisy), stage_so_far);
        }
        Ok(())
    }

    fn save_if_due(&mut self, _: &State, _: Option<&RunKey>, _: bool) -> Result<()> {
        Ok(())
    }

    fn interrupted(&self) -> Error {
        Error::interrupted(PathBuf::new())
    }

    fn watches_training(&self) -> bool {
        self.watches_training
    }
}

#[cfg(test)]
mod tests {
    use progap_graph::Ratios;
    use progap_graph::synth::SocialNetwork;

    use super::*;
    use crate::settings::MethodKind;

    /// A run that begins from the stages of another one comes to the same accuracies and the same history.
    #[test]
    fn shared_stages_change_nothing() {
        let network = SocialNetwork::new(800).edges(12_000).classes(3).seed(1).generate().expect("a network");
        let dataset = network.or_random_split(Ratios::default(), 1).expect("a split");
        for (level, expected) in [(Level::None, 2), (Level::Edge, 2), (Level::Node, 0)] {
            let cache = StageCache::default();
            for depth in [2, 1, 3, 0] {
                let settings = Settings {
                    depth,
                    epochs: 3,
                    batch_size: 100,
                    seed: Some(5),
                    ..Settings::of(crate::MethodKind::ProgapLabels, level)
                };
                let fit = |cache: &StageCache| {
                    fit_in_memory(&dataset, "f", &settings.clone().into(), cache, &mut ())
                };
                let (first, alone) =
                    (fit(&cache).expect("trained"), fit(&StageCache::default()).expect("trained"));
                assert_eq!(first, alone, "{level} {depth}");
                assert!(first.metrics.history.iter().all(|epoch| epoch.train_accuracy.is_some()));
            }
            assert_eq!(locked(&cache.stages).used, expected, "{level}");
        }
    }

    /// Runs of one process share searches for noise, and nothing else of a plan: each has the noise that its own sizes
    /// need.
    #[test]
    fn settings_of_one_search_have_plans_of_their_own() {
        let network = SocialNetwork::new(300).edges(3_000).classes(3).seed(1).generate().expect("a network");
        let dataset = network.or_random_split(Ratios::default(), 1).expect("a split");
        let cache = StageCache::default();
        for hidden in [8, 32, 16] {
            let settings =
                Settings { hidden, epochs: 2, seed: Some(5), ..Settings::of(MethodKind::Gap, Level::Edge) };
            let settings = settings.into();
            let fit = |cache: &StageCache| fit_in_memory(&dataset, "f", &settings, cache, &mut ());
            assert_eq!(
                fit(&cache).expect("trained"),
                fit(&StageCache::default()).expect("trained"),
                "{hidden}"
            );
        }
    }

    /// Experiments measure what `progap train` makes of the same seed.
    #[test]
    fn the_accuracies_are_those_of_a_release() {
        let network = SocialNetwork::new(600).edges(6_000).classes(3).seed(2).generate().expect("a network");
        let dataset = network.or_random_split(Ratios::default(), 3).expect("a split");
        for method in [
            MethodKind::ProgapLabels,
            MethodKind::ProgapViews,
            MethodKind::Gap,
            MethodKind::Mlp,
            MethodKind::Lpgnet,
        ] {
            let settings = Settings { epochs: 4, seed: Some(3), ..Settings::of(method, Level::Edge) };
            let folder = tempfile::tempdir().expect("a folder");
            let folder = folder.path().join("release");
            let release = crate::train(&dataset, &settings).into_folder(&folder);
            let settings = settings.into();
            let metrics = fit_in_memory(&dataset, "f", &settings, &StageCache::default(), &mut ());
            let (measured, release) = (metrics.expect("trained"), release.expect("trained"));
            assert_eq!(measured.metrics, release.metrics, "{method}");
            let found = release.assess(release.nodes(), Part::Test).expect("predictions");
            assert_eq!(measured.scores, found.and_then(|found| found.scores()), "{method}");
            assert_eq!(measured.scores.map(|scores| scores.accuracy), Some(release.metrics.test_accuracy));
        }
    }
}
