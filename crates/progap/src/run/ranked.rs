//! A run on several ranks: each trains on its own rows, the first keeps the run's folder and writes the release.

use std::path::{Path, PathBuf};

use progap_graph::order::of_ids;
use progap_graph::{Dataset, part};
use progap_privacy::noise::RunKey;
use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

use super::pipeline::{World, fit, write_release};
use super::training::account;
use super::{RunFile, RunFolder, Training, charge_new, prepare_part};
use crate::cost::{Cost, Stopwatch};
use crate::method::checkpoint::State;
use crate::method::trainer::RunSpec;
use crate::method::{self, Observer, Spread};
use crate::plan::Plan;
use crate::ranks::{RankData, Ranks, Sent, SharedObserver, SharedStore, Traffic, look_at_edges};
use crate::release::{self, Metrics, Statement};
use crate::settings::{Direction, Order, PublicFacts, Settings};
use crate::{Error, Remedy, Result, memory, order};

/// The result of a run on several ranks, as the first rank knows it.
#[derive(Debug, Clone)]
pub struct Ranked {
    /// Where the release lies.
    pub folder: PathBuf,
    /// The settings, with everything decided.
    pub settings: Settings,
    /// The privacy statement.
    pub statement: Statement,
    /// Accuracies.
    pub metrics: Metrics,
    /// Time and memory of the first rank.
    pub cost: Cost,
    /// For each rank, how many bytes it sent to others.
    pub sent: Vec<Traffic>,
    /// The peak memory of each rank in bytes; 0 where the system does not tell.
    pub peak_memory: Vec<u64>,
}

/// The first rank's message to every rank before anything is asked. It travels between ranks and nowhere else.
#[derive(Serialize, Deserialize)]
struct RunInit {
    run: RunFile,
    key: Option<Vec<u8>>,
    state: Option<Vec<u8>>,
    resumed: bool,
}

impl Training<'_> {
    /// As [`Training::into_folder`], on several ranks: all of them call it, with the same data, settings and folder.
    /// The release is the same to the byte, whatever their number. The first rank alone writes, charges the ledger and
    /// makes the run's key.
    ///
    /// # Errors
    /// As [`Training::into_folder`]; and what runs on one machine only. A rank that gets an error must end, so that the
    /// others do.
    pub fn over(self, ranks: &Ranks, folder: impl AsRef<Path>) -> Result<Option<Ranked>> {
        let (dataset, folder) = (self.dataset, folder.as_ref());
        let asked = self.request.settings()?;
        refuse(dataset, &asked)?;
        agree(ranks, dataset, &asked)?;
        look(ranks, dataset)?;
        let settings = asked.resolve(&PublicFacts::of(dataset, &asked))?;
        if ranks.is_first() {
            order::check(dataset, &settings)?;
        }
        let data = RankData::new(ranks, dataset, &settings)?;
        let plan = prepare_part(&data, &settings)?;
        let nobody: &mut dyn Observer = &mut ();
        let observer = self.observer.unwrap_or(nobody);
        if !ranks.is_first() {
            return go_on(ranks, data, None, plan, observer);
        }
        let budget = (self.account, self.ledger);
        let account = account(dataset, &settings, budget, self.ledger_name.as_deref(), observer)?;
        let key = if settings.seed.is_none() { Some(RunKey::from_os()?) } else { None };
        let run = RunFile::new(&data.scaled, &settings, account.as_ref(), self.source, key.as_ref())?;
        let run = RunFolder::create(folder, run, key, None)?;
        charge_new(&run, &plan)?;
        go_on(ranks, data, Some(run), plan, observer)
    }
}

/// Goes on with a run that was interrupted, on several ranks: as many as before, or others. Only the first rank needs
/// the folder. Nothing comes of a run whose release was whole already.
///
/// # Errors
/// As [`resume`](crate::resume), and as [`Training::over`].
pub fn resume_over(
    ranks: &Ranks,
    dataset: &Dataset,
    folder: &Path,
    observer: &mut dyn Observer,
) -> Result<Option<Ranked>> {
    let run = if ranks.is_first() { Some(RunFolder::open(folder)?) } else { None };
    let is_whole = folder.join(release::MANIFEST).exists();
    let settings = match &run {
        // Everything was written; the crash came while the run's own files were being removed.
        Some(run) if is_whole => run.finish().map(|()| None)?,
        Some(run) => Some(serde_json::to_vec(&run.run.settings).map_err(|error| Error::file(folder, error))?),
        None => None,
    };
    let settings = ranks.broadcast(Sent::Agreement, settings)?;
    if settings.is_empty() {
        return Ok(None);
    }
    let settings: Settings = serde_json::from_slice(&settings).map_err(|error| Error::file(folder, error))?;
    let settings = settings.checked()?;
    refuse(dataset, &settings)?;
    agree(ranks, dataset, &settings)?;
    look(ranks, dataset)?;
    let data = RankData::new(ranks, dataset, &settings)?;
    let plan = prepare_part(&data, &settings)?;
    if let Some(run) = &run {
        super::same_data(&data.scaled, run)?;
        super::charge(run, &plan)?;
    }
    go_on(ranks, data, run, plan, observer)
}

/// Settings and data that run on one machine only, and what to do about it.
fn refuse(dataset: &Dataset, settings: &Settings) -> Result<()> {
    let alone = |what: &'static str, remedies: &[Remedy]| {
        Err(remedies.iter().cloned().fold(Error::rank(what), Error::remedy))
    };
    if method::spread(settings).is_none() {
        return Err(["progap-labels", "gap", "mlp"].into_iter().fold(
            Error::rank(format!(
                "the method {} runs on one machine at level {}",
                settings.method, settings.level
            )),
            |error, name| error.remedy(Remedy::set("method", name)),
        ));
    }
    if settings.shuffle {
        let by_hand = Remedy::words("renumber the nodes in the file at random");
        return alone("renumbering runs on one machine", &[Remedy::Drop("shuffle"), by_hand]);
    }
    if settings.order == Order::Tested && of_ids(dataset.node_ids(), dataset.nodes()).is_some() {
        return alone(
            "the nodes do not stand in the order of their ids",
            &[Remedy::words("convert the data once more")],
        );
    }
    if memory::bound().is_some() {
        return alone(
            "the bound on memory is of one process on one machine; start more ranks",
            &[Remedy::Drop("memory")],
        );
    }
    if settings.direction != Direction::In {
        return alone(
            "another direction than in runs on one machine; turn the edges round in the file (sources become targets)",
            &[Remedy::Drop("direction")],
        );
    }
    if settings.touches_edges() && dataset.graph().weights().is_some() {
        return alone(
            "edges with weights run on one machine",
            &[Remedy::words("train there"), Remedy::words("convert the data again without weights")],
        );
    }
    Ok(())
}

/// Refuses ranks that do not mean the same run.
fn agree(ranks: &Ranks, dataset: &Dataset, settings: &Settings) -> Result<()> {
    let mut rows = blake3::Hasher::new();
    rows.update(bytemuck::cast_slice(dataset.labels()));
    rows.update(bytemuck::cast_slice(dataset.graph().offsets()));
    if let Some(split) = dataset.split() {
        let parts: Vec<u8> = (0..split.len()).map(|node| split.part(node) as u8).collect();
        rows.update(&parts);
    }
    ranks.same_program()?;
    let sizes = (dataset.nodes(), dataset.graph().edges(), dataset.features().columns());
    let settings = serde_json::to_string(settings).unwrap_or_default();
    ranks.agree(&[
        ("kind of processor", format!("{:?}", pulp_level())),
        ("settings", settings),
        ("data", format!("{} {sizes:?} {:?} {}", dataset.name(), dataset.class_names(), rows.finalize())),
    ])
}

/// The vector instructions of this machine: others round differently.
fn pulp_level() -> [bool; 3] {
    #[cfg(target_arch = "x86_64")]
    {
        [
            is_x86_feature_detected!("avx2"),
            is_x86_feature_detected!("fma"),
            is_x86_feature_detected!("avx512f"),
        ]
    }
    #[cfg(not(target_arch = "x86_64"))]
    [false; 3]
}

/// Finds out what follows from all edges, each rank by about as many of them.
fn look(ranks: &Ranks, dataset: &Dataset) -> Result<()> {
    let split = dataset.split().ok_or_else(|| Error::unsuitable("the data set has no split"))?;
    let borders = part::borders(dataset.graph(), split, ranks.size(), None);
    look_at_edges(dataset.graph(), ranks, borders[ranks.rank()]..borders[ranks.rank() + 1])
}

/// Trains on this rank's part, from where the run stands. The first rank has the folder, and tells the others.
fn go_on(
    ranks: &Ranks,
    data: RankData,
    mut first: Option<RunFolder>,
    plan: Plan,
    observer: &mut dyn Observer,
) -> Result<Option<Ranked>> {
    let shape = (data.features.columns(), data.dataset.classes());
    let init = match &mut first {
        None => None,
        Some(folder) => Some(RunInit {
            run: folder.run.clone(),
            key: folder.take_key().map(|key| key.to_bytes().to_vec()),
            state: folder.kept_state(shape)?,
            resumed: folder.is_resumed(),
        }),
    };
    let wrong =
        |error: &dyn std::fmt::Display| Error::rank(format!("the first rank said nothing sensible: {error}"));
    let bytes = init.map(|init| serde_json::to_vec(&init)).transpose().map_err(|error| wrong(&error))?;
    let mut bytes = ranks.broadcast(Sent::Agreement, bytes)?;
    let init: RunInit = serde_json::from_slice(&bytes).map_err(|error| wrong(&error))?;
    bytes.zeroize();
    let key = key(&init)?;
    rayon::scope(|_| train(ranks, &data, (first, init), (plan, key), observer))
}

fn key(init: &RunInit) -> Result<Option<RunKey>> {
    let Some(key) = &init.key else { return Ok(None) };
    let mut bytes: [u8; RunKey::BYTES] =
        key[..].try_into().map_err(|_| Error::rank("the run's key is cut short"))?;
    let key = RunKey::from_bytes(&bytes);
    bytes.zeroize();
    Ok(Some(key))
}

impl Drop for RunInit {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

fn train(
    ranks: &Ranks,
    data: &RankData,
    (mut first, init): (Option<RunFolder>, RunInit),
    (plan, key): (Plan, Option<RunKey>),
    observer: &mut dyn Observer,
) -> Result<Option<Ranked>> {
    let settings = init.run.settings.clone();
    let stopwatch = Stopwatch::start(init.resumed);
    let path = first.as_ref().map_or_else(PathBuf::new, |folder| folder.path.clone());
    let state = match &init.state {
        Some(bytes) => init.run.state(&path, bytes)?,
        None => State::default(),
    };
    let spec = RunSpec { settings: &settings, plan: &plan, seed: init.run.model_seed };
    let mut store = SharedStore {
        ranks: ranks.clone(),
        borders: data.borders.clone(),
        is_whole: method::spread(&settings) == Some(Spread::Edges),
        first: first.as_mut().map(|folder| folder as _),
        folder: path.clone(),
    };
    let mut observer = SharedObserver { ranks: ranks.clone(), first: observer };
    let world = World::Part(ranks, data);
    let (fitted, laps) = fit(world, spec, key, (state, &mut store), &mut observer)?;
    drop(store);
    let sent = ranks.numbers(Sent::Agreement, &ranks.sent().to_numbers())?;
    let peaks = ranks.numbers(Sent::Agreement, &[crate::cost::peak_memory()])?;
    let Some(folder) = first else {
        // Wait for rank 0 to finish writing.
        ranks.broadcast(Sent::Agreement, None)?;
        return Ok(None);
    };
    let dataset = fitted.scaled(data.scaled.clone())?;
    let (statement, metrics, cost) = write_release(&folder, &dataset, &plan, &fitted, (stopwatch, laps))?;
    ranks.broadcast(Sent::Agreement, None)?;
    Ok(Some(Ranked {
        folder: path,
        settings,
        statement,
        metrics,
        cost,
        sent: sent.iter().map(|numbers| Traffic::from_numbers(numbers)).collect(),
        peak_memory: peaks.into_iter().flatten().collect(),
    }))
}
