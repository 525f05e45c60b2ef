//! A run: a folder that survives a crash at any moment and becomes a release.
//!
//! | file | what it is |
//! |---|---|
//! | `run.json` | settings, data fingerprint, run id, hash of the key: written first, removed last |
//! | `secret.key` | the run's key, and which other files count; readable by its owner, removed at the end |
//! | `aggregates/N.npy` | kept aggregates, on disk before anything is trained on them |
//! | `noisy-graph.progap` | method edge-rand: the noisy graph, kept in the same way |
//! | `checkpoint-1.safetensors`, `checkpoint-2.safetensors` | the state, by turns, after each stage and every few seconds within one |
//!
//! All noise derives from the key, the name of the query and its exact integers. A resumed run therefore asks nothing
//! new: a query that was lost in the crash is the same query with the same noise, and a query that is not the same has
//! noise of its own. An answer counts from the moment at which `secret.key` is replaced, and the key in it is then the
//! one-way successor of the key that made the answer (`progress.rs`).

mod account;
#[cfg(feature = "ledger")]
mod budget;
mod folder;
#[cfg(test)]
mod injected;
mod memory;
mod pipeline;
mod progress;
mod ranked;
mod state;
mod training;

use std::path::Path;

use progap_graph::{Dataset, Features, InferenceKind, InferredSchema, Part, Scaled, Split};

pub use account::{Account, chargeable};
#[cfg(feature = "ledger")]
pub use budget::check_budget;
pub use folder::RunFile;
use folder::RunFolder;
#[cfg(test)]
pub(crate) use memory::InMemoryRun;
pub use memory::{Measured, StageCache, fit_in_memory};
use pipeline::{World, fit, write_release};
pub use ranked::{Ranked, resume_over};
pub use training::{Trained, Training};

use crate::cost::Stopwatch;
#[cfg(feature = "ledger")]
use crate::ledger::{Charge, Ledger};
use crate::method::trainer::RunSpec;
use crate::method::{self, Observer};
use crate::order::Arranged;
use crate::plan::{Plan, PublicFacts};
use crate::ranks::RankData;
use crate::release::{self, Release};
use crate::rows::LARGEST_FEATURE;
use crate::settings::{Level, ValidSettings};
use crate::vault::{check_column_noise, weightless};
use crate::{Error, ErrorKind, Remedy, Result, delta};

/// Classes beyond which messages with a number for each would be mostly noise, and take much memory.
const WIDEST_MESSAGE: usize = 1024;

/// Charges the run's ledger, where it has one; the same run is charged once, however often it is resumed.
fn charge(folder: &RunFolder, plan: &Plan) -> Result<()> {
    charge_run(&folder.run, plan)
}

/// As [`charge`], for a run that has just begun: one that the ledger refused has nothing worth keeping. When reading or
/// writing failed, it may have been charged: then it can be resumed.
fn charge_new(run: &RunFolder, plan: &Plan) -> Result<()> {
    charge(run, plan).inspect_err(|error| {
        if !matches!(error.kind(), ErrorKind::Ledger(error) if error.may_have_charged()) {
            run.abandon();
        }
    })
}

/// A run cannot have an account in such a build.
#[cfg(not(feature = "ledger"))]
fn charge_run(run: &RunFile, _: &Plan) -> Result<()> {
    run.ledger.as_ref().map_or(Ok(()), |_| Err(crate::ledger::Error::Absent.into()))
}

#[cfg(feature = "ledger")]
fn charge_run(run: &RunFile, plan: &Plan) -> Result<()> {
    if let (Some(account), Some(unit)) = (&run.ledger, plan.unit) {
        let mut charge = Charge::new(&run.run_id, &account.name, unit, plan.event.clone())
            .with_noise_values(plan.noise_values)
            .with_seeded_noise(run.settings.seed.is_some());
        charge.key_commitment = run.key_commitment.clone();
        charge.converted = crate::units::in_other_units(&plan.queries, &run.settings, unit)?;
        Ledger::open(&account.path)?.charge(charge.with_note(format!("train {}", run.dataset)))?;
    }
    Ok(())
}

/// Goes on with a run that was interrupted; the data and the settings must be those it began with.
pub fn resume(dataset: Dataset, folder: &Path, observer: &mut dyn Observer) -> Result<Release> {
    let folder = RunFolder::open(folder)?;
    let dataset = Arranged::again(&dataset, &folder.run.settings, &folder.path)?.dataset;
    let dataset = dataset.prepared(folder.run.settings.preparation())?;
    same_data(&dataset.clone().into(), &folder)?;
    if folder.path.join(release::MANIFEST).exists() {
        // Everything was written; the crash came while the run's own files were being removed.
        folder.finish()?;
        return Release::open(&folder.path);
    }
    let plan = prepare(&dataset, &folder.run.settings.checked()?)?;
    crate::memory::check_run(&dataset, &folder.run.settings, &plan)?;
    charge(&folder, &plan)?;
    run_in_pool(dataset, folder, plan, observer)
}

/// Refuses to go on with other data than a run began with.
fn same_data(dataset: &Scaled, folder: &RunFolder) -> Result<()> {
    let found = dataset.fingerprint()?;
    if found == folder.run.fingerprint {
        return Ok(());
    }
    let problem = format!(
        "the run was begun on other data (fingerprint {}, not {found}): resume it with the same data and split",
        folder.run.fingerprint
    );
    Err(Error::file(&folder.path, problem))
}

/// Whether a folder holds a run that is not finished.
pub fn is_interrupted(folder: &Path) -> bool {
    folder.join(folder::RUN).symlink_metadata().is_ok()
}

/// A file in a folder that only a run that is not finished has, its key among them.
pub(crate) fn left_over(folder: &Path) -> Option<&'static str> {
    folder::OF_A_RUN.into_iter().find(|name| folder.join(name).symlink_metadata().is_ok())
}

/// The task of an interrupted run.
pub fn interrupted(folder: &Path) -> Result<RunFile> {
    Ok(RunFolder::open(folder)?.run)
}

/// The noise of a run on a data set; what cannot be trained on is refused.
pub fn prepare(dataset: &Dataset, settings: &ValidSettings) -> Result<Plan> {
    prepare_by(dataset, settings, Plan::new)
}

/// As [`prepare`], where other ranks look at all rows but some.
fn prepare_part(data: &RankData, settings: &ValidSettings) -> Result<Plan> {
    let rows = RowSlice { features: &data.features, first: data.own.start };
    let sizes = PublicFacts {
        unbounded_columns: Some(data.unbounded_numeric_columns().count()),
        ..PublicFacts::of(&data.dataset, settings)
    };
    prepare_with(&data.dataset, settings, Plan::new, (rows, sizes))
}

/// As [`prepare`], by another way to the same plan.
fn prepare_by(
    dataset: &Dataset,
    settings: &ValidSettings,
    plan: impl FnOnce(&ValidSettings, PublicFacts) -> Result<Plan>,
) -> Result<Plan> {
    let rows = RowSlice { features: dataset.features(), first: 0 };
    prepare_with(dataset, settings, plan, (rows, PublicFacts::of(dataset, settings)))
}

/// Rows that are looked at, from one on.
struct RowSlice<'d> {
    features: &'d Features,
    first: usize,
}

fn prepare_with(
    dataset: &Dataset,
    settings: &ValidSettings,
    plan: impl FnOnce(&ValidSettings, PublicFacts) -> Result<Plan>,
    (rows, sizes): (RowSlice<'_>, PublicFacts),
) -> Result<Plan> {
    let split = dataset.split().ok_or_else(|| Error::unsuitable("the data set has no split"))?;
    // Whether there is a release must not tell of private labels: a class that no training node has is refused nowhere.
    // Without validation nodes the last epoch is taken, and without test nodes no accuracy is claimed.
    if settings.level != Level::Node {
        // Batch norms need two rows to compare. Features are public here, so that one which cannot be worked with can
        // be named.
        if split.count(Part::Train) < 2 {
            return Err(Error::unsuitable("the split has fewer than two training nodes: give it more"));
        }
        check_classes(dataset, split)?;
        if let Some((row, column, value)) = rows.features.first_beyond(LARGEST_FEATURE) {
            let name = dataset
                .feature_names()
                .get(column)
                .map_or_else(|| column.to_string(), |name| format!("{name:?}"));
            return Err(Error::unsuitable(format!(
                "node {:?} has {value:e} in feature column {name}; values beyond {LARGEST_FEATURE:e} cannot be \
                 trained on: scale \
                 the column",
                dataset.node_ids().name(rows.first + row)
            )));
        }
    }
    if settings.level == Level::Node {
        check_categories(dataset)?;
    }
    if dataset.graph().weights().is_some() && !settings.method.can().edge_weights {
        return Err(weightless(settings));
    }
    let program = method::program(settings, (dataset.features().columns(), dataset.classes()), None);
    if program.sums().any(|sum| sum.width > WIDEST_MESSAGE) {
        return Err(Error::unsuitable(format!(
            "what nodes send has one number per class, at most {WIDEST_MESSAGE}, and there are {} classes",
            dataset.classes()
        ))
        .remedy(Remedy::words("use messages that have no number for each"))
        .remedy(Remedy::set("method", "progap")));
    }
    if settings.unit_from_data && settings.touches_edges() && sizes.is_symmetric != settings.undirected {
        return Err(Error::contradiction("the unit follows from the graph: resolve the settings"));
    }
    delta::check(settings, sizes)?;
    let plan = plan(settings, sizes)?;
    check_column_noise(&plan, sizes.unbounded_columns.unwrap_or(0))?;
    Ok(plan)
}

/// Refuses training nodes of one class, where labels are public: noise would be paid for, and nothing learnt.
fn check_classes(dataset: &Dataset, split: &Split) -> Result<()> {
    let mut labels = split.nodes(Part::Train).map(|node| dataset.labels()[node]);
    let Some(first) = labels.next() else { return Ok(()) };
    if labels.any(|label| label != first) {
        return Ok(());
    }
    Err(Error::unsuitable(format!(
        "all training nodes have the class {:?}: there is nothing to tell apart; give labels of two classes at least",
        dataset.class_names()[first as usize]
    )))
}

/// Refuses what was decided by private rows: categories that were chosen by how often they occur, and columns that were
/// left out because all their values are different. A list of all categories that occur is taken as public, and the
/// statement says so.
fn check_categories(dataset: &Dataset) -> Result<()> {
    let found = |what: InferenceKind| dataset.undeclared().iter().find(|undeclared| undeclared.what == what);
    if let Some(InferredSchema { column, .. }) = found(InferenceKind::MostFrequent) {
        return Err(Error::unsuitable(format!(
            "which categories of the column {column:?} are the most frequent is private at node level"
        ))
        .remedy(Remedy::words("declare its categories in the file of columns"))
        .remedy(Remedy::set("text", column.clone()))
        .remedy(Remedy::set("drop", column.clone())));
    }
    if let Some(InferredSchema { column, .. }) = found(InferenceKind::Distinct) {
        let error = Error::unsuitable(format!(
            "the column {column:?} looks like ids, and that all its values are different is private at node level: \
             say what becomes of it"
        ));
        let remedies =
            ["drop", "number", "categorical", "text"].map(|name| Remedy::set(name, column.clone()));
        return Err(remedies.into_iter().fold(error, Error::remedy));
    }
    Ok(())
}

/// Trains as a thread of the pool: one that is not would hand over every pass over the rows, thousands of them, and
/// wait.
fn run_in_pool(
    dataset: Dataset,
    mut folder: RunFolder,
    plan: Plan,
    observer: &mut dyn Observer,
) -> Result<Release> {
    rayon::scope(|_| {
        let settings = folder.run.settings.clone();
        let (stopwatch, key) = (Stopwatch::start(folder.is_resumed()), folder.take_key());
        let state = folder.state((dataset.features().columns(), dataset.classes()))?;
        let spec = RunSpec { settings: &settings, plan: &plan, seed: folder.run.model_seed };
        let (fitted, laps) = fit(World::Whole(&dataset), spec, key, (state, &mut folder), observer)?;
        let dataset = fitted.scaled(dataset.into())?;
        write_release(&folder, &dataset, &plan, &fitted, (stopwatch, laps))?;
        // The release has its own aggregates and rows: they are not held twice, nor is the data set beside them.
        drop((fitted, dataset));
        progap_graph::store::release_pages();
        Release::open(&folder.path)
    })
}

/// Bytes of the operating system's, for what is not secret; never part of a run's key.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| Error::unsuitable(format!("no random numbers: {e}")))?;
    Ok(bytes)
}
