//! A run: a folder that survives a crash at any moment and becomes a release.
//!
//! | file | what it is |
//! |---|---|
//! | `run.json` | settings, data fingerprint, run id: written first, removed last |
//! | `secret.key` | the run's key; readable by its owner, removed at the end |
//! | `aggregates/N.npy` | kept aggregates, on disk before anything is trained on them |
//! | `checkpoint.safetensors` | the state, after each stage and every few seconds within one |
//!
//! All randomness derives from the key and the name of the query. A resumed run therefore asks nothing new: a query
//! that was lost in the crash is the same query with the same noise.

mod account;
mod folder;
mod memory;

use std::path::Path;

use progap_graph::{Dataset, Part};
use progap_privacy::noise::{Randomness, RunKey, Source};

pub use account::{Account, chargeable, check_budget};
pub use folder::RunFile;
use folder::RunFolder;
pub use memory::{Shared, fit_in_memory};

use crate::cost::Stopwatch;
use crate::ledger::{self, Charge, Ledger};
use crate::method::trainer::Trainer;
use crate::method::{self, Fitted, Observer};
use crate::plan::{Plan, PublicSizes};
use crate::release::{self, Metrics, Release};
use crate::settings::{Level, Messages, Method, Settings};
use crate::vault::Vault;
use crate::{Error, Result};

/// Trains on a data set and leaves a release in a new folder.
///
/// Everything that can be refused is refused before the folder is made or the ledger is charged; the ledger is charged
/// before the first noisy value is used: `account` is what [`Account::find`] found. `source` says how the data was asked for,
/// and is kept beside the settings.
pub fn train(
    dataset: Dataset,
    settings: &Settings,
    folder: &Path,
    account: Option<&Account>,
    source: serde_json::Value,
    observer: &mut dyn Observer,
) -> Result<Release> {
    if account.is_some() {
        chargeable(settings)?;
    }
    let plan = prepare(&dataset, settings)?;
    let run = RunFile::new(&dataset, settings, account, source)?;
    let run = RunFolder::create(folder, run)?;
    let outcome = go(dataset, run, plan, observer);
    if let Err(Error::Ledger(error)) = &outcome
        && !matches!(error, ledger::Error::Storage { .. })
    {
        // The ledger is charged before anything is asked: a run that it refused has nothing worth keeping. When
        // reading or writing failed, it may have been charged: then it can be resumed.
        std::fs::remove_dir_all(folder).map_err(|e| Error::file(folder, e))?;
    }
    outcome
}

/// Goes on with a run that was interrupted; the data and the settings must be those it began with.
pub fn resume(dataset: Dataset, folder: &Path, observer: &mut dyn Observer) -> Result<Release> {
    let folder = RunFolder::open(folder)?;
    let found = dataset.fingerprint();
    if found != folder.run.fingerprint {
        let problem = format!(
            "the run was begun on other data (fingerprint {}, not {found}): resume it with the same data and split",
            folder.run.fingerprint
        );
        return Err(Error::file(&folder.path, problem));
    }
    if folder.path.join(release::MANIFEST).exists() {
        // Everything was written; the crash came while the run's own files were being removed.
        folder.finish()?;
        return Release::open(&folder.path);
    }
    let plan = prepare(&dataset, &folder.run.settings)?;
    go(dataset, folder, plan, observer)
}

/// Whether a folder holds a run that is not finished.
pub fn is_interrupted(folder: &Path) -> bool {
    folder.join(folder::RUN).exists()
}

/// What an interrupted run was asked to do.
pub fn interrupted(folder: &Path) -> Result<RunFile> {
    Ok(RunFolder::open(folder)?.run)
}

/// The noise of a run on a data set; what cannot be trained on is refused.
pub fn prepare(dataset: &Dataset, settings: &Settings) -> Result<Plan> {
    settings.check()?;
    let split = dataset.split().ok_or_else(|| Error::Unsuitable("the data set has no split".into()))?;
    let mut counts = vec![0usize; dataset.classes()];
    split.nodes(Part::Train).for_each(|node| counts[dataset.labels()[node] as usize] += 1);
    if let Some(class) = counts.iter().position(|&count| count == 0) {
        let name = &dataset.class_names()[class];
        return Err(Error::Unsuitable(format!(
            "no training node has the class {name:?}: give it some, or keep frequent classes only (--min-class-count)"
        )));
    }
    for (part, name) in [(Part::Val, "validation"), (Part::Test, "test")] {
        if split.count(part) == 0 {
            return Err(Error::Unsuitable(format!(
                "the split has no {name} nodes: give it some, or draw another one (--resplit --ratios 0.10,0.15)"
            )));
        }
    }
    if dataset.features().columns() == 0 {
        return Err(Error::Unsuitable("the nodes have no features; add at least one column".into()));
    }
    let labels = settings.method == Method::Progap && settings.messages != Messages::Embeddings;
    if labels && settings.depth > 0 && dataset.classes() > progap_graph::aggregate::MAX_WIDTH {
        return Err(Error::Unsuitable(format!(
            "label messages have one number per class, at most {}, and there are {}: use --messages embeddings",
            progap_graph::aggregate::MAX_WIDTH,
            dataset.classes()
        )));
    }
    if settings.method == Method::EdgeRand {
        // The response keeps the number of edges, so this is known before anything is asked; whoever sees it has the data.
        let bytes = crate::memory::graph(dataset.graph().edges() as f64);
        crate::memory::check("the noisy graph", bytes, crate::memory::available())?;
    }
    let sizes = PublicSizes {
        edges: dataset.graph().edges(),
        train_nodes: split.count(Part::Train),
        nodes: dataset.graph().nodes(),
        columns: dataset.features().columns(),
        classes: dataset.classes(),
    };
    Plan::new(settings, sizes)
}

/// Trains as a thread of the pool: one that is not would hand over every pass over the rows, thousands of them, and wait.
fn go(dataset: Dataset, folder: RunFolder, plan: Plan, observer: &mut dyn Observer) -> Result<Release> {
    rayon::scope(|_| go_here(dataset, folder, plan, observer))
}

fn go_here(dataset: Dataset, folder: RunFolder, plan: Plan, observer: &mut dyn Observer) -> Result<Release> {
    match folder.run.settings.seed {
        Some(seed) => go_with(dataset, folder, plan, Randomness::from_seed(seed), observer),
        None => {
            let key = RunKey::from_bytes(folder.key()?);
            go_with(dataset, folder, plan, Randomness::from_key(key), observer)
        }
    }
}

fn go_with<S: Source>(
    dataset: Dataset,
    mut folder: RunFolder,
    plan: Plan,
    randomness: Randomness<S>,
    observer: &mut dyn Observer,
) -> Result<Release> {
    let settings = folder.run.settings.clone();
    let stopwatch = Stopwatch::start(folder.is_resumed());
    if let (Some(account), Some(unit)) = (&folder.run.ledger, plan.unit) {
        // The same run is charged once, however often it is resumed.
        let charge = Charge::new(&folder.run.run_id, &account.name, unit, plan.event.clone())
            .with_noise_values(plan.noise_values)
            .with_seeded_noise(settings.seed.is_some());
        Ledger::open(&account.path)?.charge(charge.with_note(format!("train {}", folder.run.dataset)))?;
    }
    let shape = (dataset.features().columns(), dataset.classes());
    let val_nodes = dataset.split().map_or(0, |split| split.count(Part::Val));
    let state = folder.state(shape, val_nodes)?;
    let vault = Vault::new(dataset.clone(), &settings, randomness)?;
    let seed = folder.run.model_seed;
    let fitted =
        method::fit(Trainer::new(vault, &settings, &plan, shape, seed, state, &mut folder, observer))?;
    let metrics = metrics(&fitted, &settings);
    release::write(&folder.path, &dataset, &folder.run, &plan, &fitted, &metrics)?;
    stopwatch.stop().write(&folder.path)?;
    folder.finish()?;
    Release::open(&folder.path)
}

fn metrics<S: Source>(fitted: &Fitted<S>, settings: &Settings) -> Metrics {
    Metrics {
        test_accuracy: fitted.accuracies.test,
        val_accuracy: fitted.accuracies.val,
        train_accuracy: fitted.accuracies.train,
        unprotected: settings.level == Level::Node,
        features_only_accuracy: fitted
            .stage_accuracies
            .first()
            .copied()
            .filter(|_| method::has_features_stage(settings)),
        stage_test_accuracies: fitted.stage_accuracies.clone(),
        history: fitted.history.clone(),
    }
}

/// Bytes of the operating system's, for what is not secret; never part of a run's key.
fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| Error::Unsuitable(format!("no random numbers: {e}")))?;
    Ok(bytes)
}
