//! The files of a run that is not finished.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use progap_graph::{AtomicFile, Buffer, Dataset};
use progap_privacy::Event;
use progap_privacy::noise::RunKey;
use serde::{Deserialize, Serialize};

use super::Account;
use crate::error::InFile;
use crate::files::{self, Tensors};
use crate::method;
use crate::method::trainer::{EpochRecord, Keeper, State, new_optimiser};
use crate::model::Model;
use crate::predictor::aggregate_name;
use crate::settings::Settings;
use crate::{Error, Result};

pub(super) const RUN: &str = "run.json";
const KEY: &str = "secret.key";
const CHECKPOINT: &str = "checkpoint.safetensors";
/// How long a stage may run before its state is kept.
const INTERVAL: Duration = Duration::from_secs(10);
const VERSION: u32 = 1;

/// What a run was asked to do, and on what.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFile {
    version: u32,
    /// The run's own id.
    pub run_id: String,
    /// The data set's name.
    pub dataset: String,
    /// The data set's fingerprint, split included.
    pub fingerprint: String,
    /// The settings.
    pub settings: Settings,
    /// Where initial values come from; not secret.
    pub model_seed: u64,
    /// The number of nodes.
    pub nodes: usize,
    /// The budget to charge.
    pub ledger: Option<Account>,
    /// How the data was asked for, so that the caller can load it again; not looked at here. A key `private` stays out of
    /// the release.
    pub source: serde_json::Value,
    /// The checksum of all of this, so that nothing changes between the beginning of a run and its end.
    seal: String,
}

impl RunFile {
    pub(super) fn new(
        dataset: &Dataset,
        settings: &Settings,
        account: Option<&Account>,
        source: serde_json::Value,
    ) -> Result<RunFile> {
        let random: [u8; 8] = super::random_bytes()?;
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let seed = u64::from_le_bytes(super::random_bytes()?);
        let mut run = RunFile {
            version: VERSION,
            run_id: hex(&random),
            dataset: dataset.name().into(),
            fingerprint: dataset.fingerprint(),
            settings: settings.clone(),
            model_seed: settings.seed.unwrap_or(seed),
            nodes: dataset.nodes(),
            ledger: account.map(Account::absolute),
            source,
            seal: String::new(),
        };
        run.seal = run.computed_seal();
        Ok(run)
    }

    fn computed_seal(&self) -> String {
        let bare = RunFile { seal: String::new(), ..self.clone() };
        files::checksum_of(&serde_json::to_vec(&bare).unwrap_or_default())
    }
}

/// The folder of a run.
pub(super) struct RunFolder {
    pub(super) path: PathBuf,
    pub(super) run: RunFile,
    kept: Instant,
    /// Held as long as this process works on the run.
    #[allow(dead_code, reason = "the system lets go of it with the file")]
    lock: File,
}

#[derive(Serialize, Deserialize)]
struct Note {
    finished: usize,
    epoch: usize,
    steps: Option<u64>,
    best: Option<f64>,
    history: Vec<EpochRecord>,
    stage_accuracies: Vec<f64>,
    events: Vec<(Event, u64)>,
}

impl RunFolder {
    /// Makes the folder, which must not hold anything yet.
    pub(super) fn create(path: &Path, run: RunFile) -> Result<Self> {
        if std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(Error::file(
                path,
                "the folder is not empty; name another one with --out, or --resume it",
            ));
        }
        std::fs::create_dir_all(path).in_file(path)?;
        // Of several processes that try, one succeeds.
        std::fs::create_dir(path.join("aggregates")).in_file(path)?;
        Self::begin(path, run).inspect_err(|_| {
            // Nothing was asked yet: a run that could not begin leaves nothing behind.
            let _ = std::fs::remove_dir_all(path);
        })
    }

    fn begin(path: &Path, run: RunFile) -> Result<Self> {
        if run.settings.seed.is_none() {
            write_secret(&path.join(KEY), RunKey::from_os()?.as_bytes())?;
        }
        files::write_json(&path.join(RUN), &run)?;
        let lock = lock(&path.join(RUN))?;
        Ok(RunFolder { path: path.to_path_buf(), run, kept: Instant::now(), lock })
    }

    /// Opens the folder of a run that is not finished.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = path.join(RUN);
        if !file.exists() {
            let has = |name: &str| path.join(name).exists();
            let what = if has(crate::release::MANIFEST) {
                "the run is finished: there is nothing to resume"
            } else if has("aggregates") {
                "the run was stopped before it began, and nothing was asked: remove the folder and start again"
            } else {
                "there is no run here; name the folder of one"
            };
            return Err(Error::file(path, what));
        }
        let lock = lock(&file)?;
        remove_unfinished_files(path)?;
        let run: RunFile = files::read_json(&file)?;
        if run.version != VERSION {
            let problem =
                format!("the run was begun by another version of the program (format {})", run.version);
            return Err(Error::file(&file, problem));
        }
        if run.seal != run.computed_seal() {
            let problem =
                "it was changed since the run began: restore it, or start a new run with other settings";
            return Err(Error::file(&file, problem));
        }
        Ok(RunFolder { path: path.to_path_buf(), run, kept: Instant::now(), lock })
    }

    pub(super) fn key(&self) -> Result<[u8; 32]> {
        let file = self.path.join(KEY);
        let bytes = files::read(&file)?;
        bytes.try_into().map_err(|_| Error::file(&file, "the key is damaged: the run cannot be resumed"))
    }

    /// Whether something was kept by an earlier process.
    pub(super) fn is_resumed(&self) -> bool {
        self.path.join(CHECKPOINT).exists() || self.aggregate_file(1).exists()
    }

    /// The state that was kept last.
    pub(super) fn state(&self, sizes: (usize, usize), val_nodes: usize) -> Result<State> {
        let file = self.path.join(CHECKPOINT);
        if !file.exists() {
            return Ok(State::default());
        }
        let tensors = Tensors::read(&file)?;
        let note: Note = serde_json::from_str(&tensors.note).in_file(&file)?;
        let settings = &self.run.settings;
        let choice = method::choose(settings, &note.history, val_nodes);
        let load = |name: &str, stage: usize| {
            Model::from(&tensors, &format!("{name}."), method::shape(settings, sizes, stage, choice.as_ref()))
        };
        let list =
            |name: &str| tensors.values.get(name).map(|(_, values)| values.clone()).unwrap_or_default();
        let optimiser = note.steps.map(|steps| {
            let mut optimiser = new_optimiser(settings)?;
            optimiser.restore(steps, list("optimiser.first"), list("optimiser.second"));
            Ok::<_, Error>(optimiser)
        });
        let begun = note.epoch > 0;
        Ok(State {
            finished: (0..note.finished)
                .map(|stage| load(&format!("stage{stage}"), stage))
                .collect::<Result<_>>()?,
            epoch: note.epoch,
            model: begun.then(|| load("model", note.finished)).transpose()?,
            optimiser: optimiser.transpose()?,
            best: note
                .best
                .map(|accuracy| Ok::<_, Error>((accuracy, load("best", note.finished)?)))
                .transpose()?,
            history: note.history,
            stage_accuracies: note.stage_accuracies,
            events: note.events,
        })
    }

    /// Removes what only an unfinished run needs; the key first, `run.json` last.
    pub(super) fn finish(&self) -> Result<()> {
        for name in [KEY, CHECKPOINT, RUN] {
            let file = self.path.join(name);
            if file.exists() {
                std::fs::remove_file(&file).in_file(&file)?;
            }
        }
        Ok(())
    }

    fn aggregate_file(&self, number: usize) -> PathBuf {
        self.path.join(aggregate_name(&self.run.settings, number))
    }
}

impl Keeper for RunFolder {
    fn keep_aggregate(&mut self, number: usize, values: Vec<f32>, width: usize) -> Result<Buffer<f32>> {
        let file = self.aggregate_file(number);
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).in_file(folder)?;
        }
        files::write_matrix(&file, &values, width)?;
        Ok(values.into())
    }

    fn kept_aggregate(&mut self, number: usize, width: usize) -> Result<Option<Buffer<f32>>> {
        let file = self.aggregate_file(number);
        if !file.exists() {
            return Ok(None);
        }
        Ok(Some(files::read_matrix(&file, self.run.nodes, width)?.into()))
    }

    fn keep_state(&mut self, state: &State) -> Result<()> {
        let mut tensors = Tensors::default();
        for (stage, model) in state.finished.iter().enumerate() {
            model.add_to(&mut tensors, &format!("stage{stage}."));
        }
        if let Some(model) = &state.model {
            model.add_to(&mut tensors, "model.");
        }
        if let Some((_, best)) = &state.best {
            best.add_to(&mut tensors, "best.");
        }
        let mut steps = None;
        if let Some(optimiser) = &state.optimiser {
            let (done, first, second) = optimiser.state();
            steps = Some(done);
            for (name, values) in [("optimiser.first", first), ("optimiser.second", second)] {
                tensors.values.insert(name.into(), (vec![values.len()], values.to_vec()));
            }
        }
        let note = Note {
            finished: state.finished.len(),
            epoch: state.epoch,
            steps,
            best: state.best.as_ref().map(|(accuracy, _)| *accuracy),
            history: state.history.clone(),
            stage_accuracies: state.stage_accuracies.clone(),
            events: state.events.clone(),
        };
        let file = self.path.join(CHECKPOINT);
        tensors.note = serde_json::to_string(&note).in_file(&file)?;
        tensors.write(&file)?;
        self.kept = Instant::now();
        Ok(())
    }

    fn maybe_keep_state(&mut self, state: &State, now: bool) -> Result<()> {
        if now || self.kept.elapsed() >= INTERVAL { self.keep_state(state) } else { Ok(()) }
    }

    fn interrupted(&self) -> Error {
        Error::Interrupted(self.path.clone())
    }
}

/// Keeps other processes from the same run.
fn lock(file: &Path) -> Result<File> {
    let open = File::open(file).in_file(file)?;
    match open.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(Error::file(file, "another process works on this run; wait for it, or stop it first"))
        }
        // Some network file systems know no locks: the run's files are written whole all the same.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(open),
    }
}

/// Removes files that were being written when the process was killed; they never had their name.
fn remove_unfinished_files(folder: &Path) -> Result<()> {
    for folder in [folder.to_path_buf(), folder.join("aggregates"), folder.join("private")] {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let file = entry.in_file(&folder)?.path();
            if file.file_name().is_some_and(AtomicFile::is_unfinished) {
                std::fs::remove_file(&file).in_file(&file)?;
            }
        }
    }
    Ok(())
}

/// Writes a file that only its owner can read, from its first byte on.
fn write_secret(path: &Path, content: &[u8]) -> Result<()> {
    use std::io::Write;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).in_file(path)?;
    file.write_all(content).and_then(|()| file.sync_all()).in_file(path)
}
