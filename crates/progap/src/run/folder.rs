//! The files of a run that is not finished.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use progap_graph::{AtomicFile, Buffer, Graph, Scaled, store};
use progap_privacy::noise::RunKey;
use serde::{Deserialize, Serialize};

use super::progress::{KEY, ProgressFile};
use super::{Account, state};
use crate::error::InFile;
use crate::files::{self, MatrixFile, hex};
use crate::folder::{Folder, Kind, SMALL};
use crate::method;
use crate::method::checkpoint::{CheckpointStore, State};
use crate::predictor::aggregate_name;
use crate::ranks::PieceStore;
use crate::release;
use crate::scratch::Scratch;
use crate::settings::Settings;
use crate::{Error, Remedy, Result, memory, order};

pub(super) const RUN: &str = "run.json";
/// The state of training, by turns: the one before is there until the new one counts.
const CHECKPOINTS: [&str; 2] = ["checkpoint-1.safetensors", "checkpoint-2.safetensors"];
const NOISY_GRAPH: &str = "noisy-graph.progap";
/// The files that only a run that is not finished has, in the order in which they are removed.
pub(super) const OF_A_RUN: [&str; 5] = [KEY, CHECKPOINTS[0], CHECKPOINTS[1], NOISY_GRAPH, RUN];
/// How long a stage may run before its state is kept.
const INTERVAL: Duration = Duration::from_secs(10);
const VERSION: u32 = 1;
const AGGREGATES: &str = "aggregates";

/// The task of a run: settings and data.
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
    /// The hash of the run's key; absent where noise is reproducible.
    pub key_commitment: Option<String>,
    /// The budget to charge.
    pub ledger: Option<Account>,
    /// How the data was asked for, so that the caller can load it again; not looked at here. A key `private` stays out
    /// of the release.
    pub source: serde_json::Value,
    /// The checksum of all of this, so that nothing changes between the beginning of a run and its end.
    seal: String,
}

impl RunFile {
    pub(super) fn new(
        dataset: &Scaled,
        settings: &Settings,
        account: Option<&Account>,
        source: serde_json::Value,
        key: Option<&RunKey>,
    ) -> Result<RunFile> {
        let random: [u8; 8] = super::random_bytes()?;
        let seed = u64::from_le_bytes(super::random_bytes()?);
        let mut run = RunFile {
            version: VERSION,
            run_id: hex(&random),
            dataset: dataset.rest().name().into(),
            fingerprint: dataset.fingerprint()?,
            settings: settings.clone(),
            model_seed: settings.seed.unwrap_or(seed),
            nodes: dataset.rest().nodes(),
            key_commitment: key.map(|key| hex(&key.commitment())),
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

    /// The state in the bytes that were kept of it.
    pub(super) fn state(&self, folder: &Path, bytes: &[u8]) -> Result<State> {
        state::read(&folder.join(CHECKPOINTS[0]), bytes, &self.settings)
    }
}

/// The folder of a run.
pub(super) struct RunFolder {
    pub(super) path: PathBuf,
    /// The same folder, through which its files are read.
    files: Folder,
    pub(super) run: RunFile,
    kept: Instant,
    progress: ProgressFile,
    /// The key that the run goes on with, until the vault has it.
    key: Option<RunKey>,
    /// Whether the folder itself was made for this run.
    made: bool,
    /// Held as long as this process works on the run.
    #[allow(dead_code, reason = "the system lets go of it with the file")]
    lock: File,
}

impl RunFolder {
    /// Makes the folder, which must not hold anything yet but what a run left that was killed before it began.
    /// `numbers` are those of nodes that were renumbered.
    pub(super) fn create(
        path: &Path,
        run: RunFile,
        key: Option<RunKey>,
        numbers: Option<&String>,
    ) -> Result<Self> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).in_file(path)?;
        }
        let made = match std::fs::create_dir(path) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => false,
            outcome => outcome.in_file(path).map(|()| true)?,
        };
        // Of several processes that try, one succeeds.
        let _claim = claim(path)?;
        clear_unbegun(path)?;
        order::write(path, numbers)
            .and_then(|()| Self::begin(path, run, key, made))
            .inspect_err(|_| remove(path, made))
    }

    fn begin(path: &Path, run: RunFile, key: Option<RunKey>, made: bool) -> Result<Self> {
        std::fs::create_dir(path.join(AGGREGATES)).in_file(path)?;
        let progress = ProgressFile::new(&run.run_id, key.as_ref());
        progress.save(path, key.as_ref())?;
        let lock = write_locked(&path.join(RUN), &run)?;
        let (files, path) = (Folder::open(path, "the folder is gone")?, path.to_path_buf());
        Ok(RunFolder { path, files, run, kept: Instant::now(), progress, key, made, lock })
    }

    /// Removes a run that asked nothing: its own files, and the folder if it was made for it.
    pub(super) fn abandon(&self) {
        remove(&self.path, self.made);
    }

    /// Opens the folder of a run that is not finished.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = path.join(RUN);
        let files = Folder::open(path, "there is no run here; name the folder of one")?;
        if !files.has(RUN)? {
            let has = |name: &str| files.has(name).unwrap_or(false);
            let what = if has(crate::release::MANIFEST) {
                "the run is finished: there is nothing to resume"
            } else if unbegun(path).is_ok_and(|left| !left.is_empty()) {
                "the run was stopped before it began, and nothing was asked or charged: start it again as you did"
            } else {
                "there is no run here; name the folder of one"
            };
            return Err(Error::file(path, what));
        }
        files.check_kinds(None)?;
        let lock = lock(&files)?;
        remove_unfinished_files(&files)?;
        let run: RunFile = files.json(RUN, SMALL)?;
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
        let (path, made, kept) = (path.to_path_buf(), false, Instant::now());
        if files.has(crate::release::MANIFEST)? {
            // The release is whole: what is left to do is to remove the run's own files, the key first.
            let progress = ProgressFile::new(&run.run_id, None);
            return Ok(RunFolder { path, files, run, kept, progress, key: None, made, lock });
        }
        let (progress, key) = ProgressFile::open(&path, &run.run_id, run.key_commitment.as_deref())?;
        Ok(RunFolder { path, files, run, kept, progress, key, made, lock })
    }

    /// The key that the run goes on with, which the caller then has alone; none where noise is reproducible.
    pub(super) fn take_key(&mut self) -> Option<RunKey> {
        self.key.take()
    }

    /// Whether something was kept by an earlier process.
    pub(super) fn is_resumed(&self) -> bool {
        !self.progress.is_empty()
    }

    fn keep_matrix<V: AsRef<[f32]>>(
        &mut self,
        number: usize,
        width: usize,
        key: Option<&RunKey>,
        next: &mut dyn FnMut() -> Result<Option<V>>,
    ) -> Result<()> {
        let mut matrix = self.begin_matrix(number, width)?;
        while let Some(rows) = next()? {
            matrix.add(rows.as_ref())?;
        }
        self.end_matrix(number, matrix, key)
    }

    fn begin_matrix(&self, number: usize, width: usize) -> Result<MatrixFile> {
        let file = self.path.join(aggregate_name(&self.run.settings, number));
        if let Some(folder) = file.parent() {
            files::make_folder(folder)?;
        }
        MatrixFile::create(&file, self.run.nodes, width)
    }

    fn end_matrix(&mut self, number: usize, matrix: MatrixFile, key: Option<&RunKey>) -> Result<()> {
        self.progress.keep(&aggregate_name(&self.run.settings, number), matrix.commit()?);
        self.progress.save(&self.path, key)
    }

    /// The state that was kept last.
    pub(super) fn state(&self, sizes: (usize, usize)) -> Result<State> {
        self.kept_state(sizes)?.map_or_else(|| Ok(State::default()), |kept| self.run.state(&self.path, &kept))
    }

    /// The bytes of the state that was kept last.
    pub(super) fn kept_state(&self, sizes: (usize, usize)) -> Result<Option<Vec<u8>>> {
        let Some(name) = self.progress.checkpoint() else { return Ok(None) };
        let bytes = self.files.read(name, self.largest_state(sizes))?;
        self.progress.check(&self.path, name, &bytes)?;
        Ok(Some(bytes))
    }

    /// The most bytes of a kept state: every stage, three more models, what an optimiser holds, and the history.
    fn largest_state(&self, (columns, classes): (usize, usize)) -> u64 {
        let settings = &self.run.settings;
        let program = method::program(settings, (columns, classes), None);
        let parameters = program.max_parameters().unwrap_or(usize::MAX) as u64;
        let stages = program.stages.len() as u64;
        let epochs = stages.saturating_mul(settings.epochs as u64);
        parameters
            .saturating_mul(8 * (stages + 5))
            .saturating_add(epochs.saturating_mul(512))
            .saturating_add(512 * columns as u64)
            .saturating_add(16 * SMALL)
    }

    /// An aggregate that was kept.
    fn aggregate_file(&self, name: &str, width: usize) -> Result<Buffer<f32>> {
        let values = (self.run.nodes as u64).saturating_mul(width as u64);
        let bytes = self.files.content(name, values.saturating_mul(4).saturating_add(1 << 17))?;
        self.progress.check(&self.path, name, &bytes)?;
        files::parse_matrix(&self.path.join(name), &bytes, self.run.nodes, width)
    }

    /// The most bytes of a noisy graph: every possible edge.
    fn largest_graph(&self) -> u64 {
        let nodes = self.run.nodes as u64;
        nodes
            .saturating_mul(nodes)
            .saturating_mul(4)
            .saturating_add(nodes.saturating_mul(64))
            .saturating_add(SMALL)
    }

    /// Removes what only an unfinished run needs; the key first, `run.json` last.
    pub(super) fn finish(&self) -> Result<()> {
        for name in OF_A_RUN {
            let file = self.path.join(name);
            if file.exists() {
                std::fs::remove_file(&file).in_file(&file)?;
            }
        }
        Ok(())
    }
}

impl CheckpointStore for RunFolder {
    fn keep_aggregate(
        &mut self,
        number: usize,
        values: Vec<f32>,
        width: usize,
        key: Option<&RunKey>,
    ) -> Result<Buffer<f32>> {
        let mut pieces = std::iter::once(&values[..]);
        self.keep_matrix(number, width, key, &mut || Ok(pieces.next()))?;
        Ok(values.into())
    }

    fn begin_aggregate(&mut self, number: usize, width: usize) -> Result<Option<MatrixFile>> {
        memory::bound().map(|_| self.begin_matrix(number, width)).transpose()
    }

    fn end_aggregate(
        &mut self,
        number: usize,
        width: usize,
        file: MatrixFile,
        key: Option<&RunKey>,
    ) -> Result<Buffer<f32>> {
        self.end_matrix(number, file, key)?;
        self.aggregate_file(&aggregate_name(&self.run.settings, number), width)
    }

    fn scratch(&self, values: usize) -> Result<Scratch> {
        Scratch::beside(&self.path, values)
    }

    fn kept_aggregate(&mut self, number: usize, width: usize) -> Result<Option<Buffer<f32>>> {
        let name = aggregate_name(&self.run.settings, number);
        if !self.progress.has(&name) {
            return Ok(None);
        }
        self.aggregate_file(&name, width).map(Some)
    }

    fn keep_graph(&mut self, graph: &Graph, key: Option<&RunKey>) -> Result<()> {
        let file = self.path.join(NOISY_GRAPH);
        store::write(&release::bare(graph.clone())?, &file)?;
        self.progress.keep(NOISY_GRAPH, files::digest([&self.files.read(NOISY_GRAPH, u64::MAX)?[..]]));
        self.progress.save(&self.path, key)
    }

    fn kept_graph(&mut self) -> Result<Option<Graph>> {
        if !self.progress.has(NOISY_GRAPH) {
            return Ok(None);
        }
        let largest = self.largest_graph();
        self.progress.check(&self.path, NOISY_GRAPH, &self.files.read(NOISY_GRAPH, largest)?)?;
        Ok(Some(self.files.dataset(NOISY_GRAPH, largest)?.0.into_parts().graph))
    }

    fn save(&mut self, state: &State, key: Option<&RunKey>) -> Result<()> {
        let turn = usize::from(self.progress.checkpoint() == Some(CHECKPOINTS[0]));
        let file = self.path.join(CHECKPOINTS[turn]);
        let digest = state::written(state).in_file(&file)?.write_private(&file)?;
        let before = self.progress.keep_checkpoint(CHECKPOINTS[turn], digest);
        self.progress.save(&self.path, key)?;
        if let Some(before) = before {
            let before = self.path.join(before);
            std::fs::remove_file(&before).in_file(&before)?;
        }
        self.kept = Instant::now();
        Ok(())
    }

    fn save_if_due(&mut self, state: &State, key: Option<&RunKey>, now: bool) -> Result<()> {
        if now || self.kept.elapsed() >= INTERVAL { self.save(state, key) } else { Ok(()) }
    }

    fn interrupted(&self) -> Error {
        Error::interrupted(self.path.clone())
    }
}

impl PieceStore for RunFolder {
    fn keep_pieces(
        &mut self,
        number: usize,
        width: usize,
        key: Option<&RunKey>,
        next: &mut dyn FnMut() -> Result<Option<Vec<f32>>>,
    ) -> Result<()> {
        self.keep_matrix(number, width, key, next)
    }
}

/// Keeps other processes from beginning a run in a folder; nothing where the file system knows no locks.
fn claim(path: &Path) -> Result<Option<File>> {
    let Ok(folder) = File::open(path) else { return Ok(None) };
    match folder.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(Error::file(path, "another process begins a run in this folder; name another one"))
        }
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(folder)),
    }
}

/// What a run left in a folder that was killed before it began: its folder for aggregates, its key, and files that
/// never had their name. A folder with anything else in it is an error: nobody else's files are touched.
fn unbegun(path: &Path) -> Result<Vec<PathBuf>> {
    let mut left = vec![];
    for entry in std::fs::read_dir(path).in_file(path)? {
        let entry = entry.in_file(path)?;
        let (name, kind) = (entry.file_name(), entry.file_type().in_file(path)?);
        let empty = || std::fs::read_dir(entry.path()).is_ok_and(|mut entries| entries.next().is_none());
        let ours = match name.to_str() {
            Some(AGGREGATES) => kind.is_dir() && empty(),
            Some(KEY) => kind.is_file() && ProgressFile::is_unused(path),
            Some("private") if kind.is_dir() => match numbers_alone(path)? {
                Some(numbers) => {
                    left.extend(numbers);
                    true
                }
                None => false,
            },
            _ => kind.is_file() && AtomicFile::is_unfinished(&name),
        };
        if !ours {
            return Err(Error::file(path, "the folder is not empty")
                .remedy(Remedy::NewFolder)
                .remedy(Remedy::Resume));
        }
        left.push(entry.path());
    }
    Ok(left)
}

/// The files in `private` of a run that was killed before it began; `None` if there are others than the numbers of
/// nodes.
fn numbers_alone(path: &Path) -> Result<Option<Vec<PathBuf>>> {
    let mut found = vec![];
    for entry in std::fs::read_dir(path.join("private")).in_file(path)? {
        let entry = entry.in_file(path)?;
        let ours = entry.path() == path.join(order::NUMBERS) || AtomicFile::is_unfinished(&entry.file_name());
        if !(ours && entry.file_type().in_file(path)?.is_file()) {
            return Ok(None);
        }
        found.push(entry.path());
    }
    Ok(Some(found))
}

fn clear_unbegun(path: &Path) -> Result<()> {
    for left in unbegun(path)? {
        let removed = if left.is_dir() { std::fs::remove_dir(&left) } else { std::fs::remove_file(&left) };
        removed.in_file(&left)?;
    }
    Ok(())
}

/// Keeps other processes from the same run.
fn lock(files: &Folder) -> Result<File> {
    let open = files.file(RUN, SMALL)?;
    match open.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::file(
            &files.path(RUN),
            "another process works on this run; wait for it, or stop it first",
        )),
        // Some network file systems know no locks: the run's files are written whole all the same.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(open),
    }
}

/// Removes files that were being written when the process was killed; they never had their name.
fn remove_unfinished_files(folder: &Folder) -> Result<()> {
    for (name, kind) in folder.list()? {
        let own = kind == Kind::File
            && AtomicFile::is_unfinished(name.rsplit('/').next().unwrap_or(&name).as_ref());
        if own {
            // Where it cannot be removed nothing can be written either, and that says which file and how to go on.
            let _ = std::fs::remove_file(folder.path(&name));
        }
    }
    Ok(())
}

/// Writes `run.json`, locked before it has its name, so that no other process can come first.
fn write_locked(path: &Path, run: &RunFile) -> Result<File> {
    let mut file = AtomicFile::create_private(path)?;
    serde_json::to_writer_pretty(&mut file, run).in_file(path)?;
    Ok(file.commit_locked()?)
}

/// Removes the files of a run that asked nothing, and its folder where that was made for it. What cannot be removed
/// stays: it holds nothing that was asked.
fn remove(path: &Path, made: bool) {
    for name in OF_A_RUN {
        let _ = std::fs::remove_file(path.join(name));
    }
    let _ = std::fs::remove_file(path.join(order::NUMBERS));
    for folder in [AGGREGATES, "private"] {
        let _ = std::fs::remove_dir(path.join(folder));
    }
    if made {
        let _ = std::fs::remove_dir(path);
    }
}
