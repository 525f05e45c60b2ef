//! Releases, exports, runs and ledgers: folders and files that lie on a disk.
//!
//! A case is a byte that chooses a file of a whole folder, and what stands in that file instead. The whole folders are
//! in `fuzz/corpus`; [`renew`] makes them anew when their format changes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use progap::ledger::{Charge, Entry, Ledger};
use progap::method::Progress;
use progap::release::{self, Exported};
use progap::{Level, Release, Settings, run};
use progap_export::SecretKey;
use progap_graph::synth::SocialNetwork;
use progap_graph::{Dataset, Ratios};
use progap_privacy::{Event, Unit};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Target, contents, root};

/// The targets of this file.
pub fn targets() -> Vec<Target> {
    vec![
        Target { name: "manifest", run: manifest, seeds: || contents(&MANIFESTS), weight: 60 },
        Target { name: "statement", run: statement, seeds: || contents(&STATEMENTS), weight: 10 },
        Target { name: "config", run: config, seeds: || contents(&CONFIGS), weight: 20 },
        Target { name: "release", run: whole_release, seeds: || pieces("release"), weight: 20 },
        Target { name: "node_release", run: node_release, seeds: || pieces("node"), weight: 4 },
        Target { name: "run", run: interrupted_run, seeds: || pieces("run"), weight: 1 },
        Target { name: "ledger", run: ledger, seeds: || contents(&["fuzz/corpus/ledger"]), weight: 20 },
    ]
}

const MANIFESTS: [&str; 2] = ["fuzz/corpus/release/manifest.json", "fuzz/corpus/node/manifest.json"];
const STATEMENTS: [&str; 2] = ["fuzz/corpus/release/privacy.json", "fuzz/corpus/node/privacy.json"];
const CONFIGS: [&str; 2] = ["fuzz/corpus/release/config.toml", "fuzz/corpus/node/config.toml"];

/// The files of a whole folder, by name.
type Files = BTreeMap<String, Vec<u8>>;

/// A whole folder of the corpus.
pub fn files(name: &str) -> Files {
    let top = root().join("fuzz/corpus").join(name);
    let (mut found, mut open) = (Files::new(), vec![top.clone()]);
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap_or_else(|e| panic!("{}: {e}", next.display())).flatten()
        {
            let path = entry.path();
            match path.is_dir() {
                true => open.push(path),
                false => {
                    let name = path.strip_prefix(&top).unwrap_or(&path).to_string_lossy().into_owned();
                    found.insert(name, std::fs::read(&path).unwrap_or_default());
                }
            }
        }
    }
    found
}

/// Each file of a folder as a case that changes nothing.
fn pieces(name: &str) -> Vec<Vec<u8>> {
    files(name).into_values().enumerate().map(|(at, content)| [vec![at as u8], content].concat()).collect()
}

/// A folder of its own for each thread, in memory where the system has such a place.
struct Place {
    around: tempfile::TempDir,
    made: Option<(&'static str, Files)>,
}

thread_local! {
    static PLACE: RefCell<Place> = RefCell::new(Place {
        around: tempfile::Builder::new()
            .prefix("progap-fuzz-")
            .tempdir_in(scratch())
            .expect("a temporary folder"),
        made: None,
    });
}

/// Where files are written that nobody keeps.
pub fn scratch() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// Makes a whole folder with one file exchanged, its manifests right if asked for, and hands it over.
fn with_folder(whole: &'static str, change: Option<(&str, &[u8])>, repaired: bool, act: impl FnOnce(&Path)) {
    PLACE.with_borrow_mut(|place| {
        if place.made.as_ref().is_none_or(|(name, _)| *name != whole) {
            place.made = Some((whole, files(whole)));
        }
        let Some((_, files)) = &place.made else { return };
        let folder = place.around.path().join("folder");
        let _ = std::fs::remove_dir_all(&folder);
        let mut written = files.clone();
        if let Some((name, content)) = change {
            written.insert(name.into(), content.to_vec());
            if repaired {
                repair(&mut written, name);
            }
        }
        for (name, content) in &written {
            let path = folder.join(name);
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            made.and_then(|()| std::fs::write(&path, content)).expect("a place to write");
        }
        act(&folder);
    });
}

/// Writes the checksum that the manifests should have of a file.
fn repair(files: &mut Files, name: &str) {
    let sum: String = Sha256::digest(&files[name]).iter().map(|byte| format!("{byte:02x}")).collect();
    for list in ["manifest.json", "private/manifest.json"] {
        let Some(mut text) = files.get(list).and_then(|list| serde_json::from_slice::<Value>(list).ok())
        else {
            continue;
        };
        if let Some(entry) = text.pointer_mut("/files").and_then(|files| files.get_mut(name)) {
            *entry = sum.clone().into();
            files.insert(list.into(), serde_json::to_vec(&text).unwrap_or_default());
        }
    }
}

/// Everything that is done with a release of a stranger.
fn look_at(folder: &Path) {
    let _ = progap_export::signed(folder, None);
    if let Ok(release) = Release::open(folder) {
        let nodes: Vec<u32> = (0..release.nodes().nodes().min(10) as u32).collect();
        let _ = release.predict_nodes(&nodes);
        let _ = release.cost();
    }
    let _ = release::verify(folder);
}

/// The list of a release's files.
pub fn manifest(content: &[u8]) {
    with_folder("release", Some(("manifest.json", content)), false, |folder| {
        let _ = progap_export::signed(folder, None);
        let _ = Release::open(folder);
        let _ = release::verify(folder);
    });
}

/// The statement of a release whose checksums are right.
pub fn statement(content: &[u8]) {
    let whole = if content.windows(13).any(|word| word == b"sampling_rate") { "node" } else { "release" };
    with_folder(whole, Some(("privacy.json", content)), true, look_at);
}

/// The settings of a release whose checksums are right.
pub fn config(content: &[u8]) {
    let node = content.windows(14).any(|word| word == b"level = \"node\"");
    with_folder(if node { "node" } else { "release" }, Some(("config.toml", content)), true, look_at);
}

/// Any file of a signed export, its checksums made right.
pub fn whole_release(content: &[u8]) {
    exchanged("release", content, look_at);
}

/// Any file of a release at node level, its checksums made right.
pub fn node_release(content: &[u8]) {
    exchanged("node", content, look_at);
}

/// Any file of a run that was interrupted; then it goes on.
pub fn interrupted_run(content: &[u8]) {
    exchanged("run", content, |folder| {
        let _ = run::is_interrupted(folder);
        if run::interrupted(folder).is_ok() {
            let _ = run::resume(network(), folder, &mut ());
        }
    });
}

fn exchanged(whole: &'static str, content: &[u8], act: impl FnOnce(&Path)) {
    let Some((&choice, content)) = content.split_first() else { return };
    let names: Vec<String> = files(whole).into_keys().collect();
    let name = &names[choice as usize % names.len()];
    with_folder(whole, Some((name, content)), true, act);
}

/// The file of a ledger.
pub fn ledger(content: &[u8]) {
    PLACE.with_borrow_mut(|place| {
        place.made = None;
        let file = place.around.path().join("privacy.ledger");
        for beside in ["privacy.ledger-wal", "privacy.ledger-shm", "privacy.ledger-journal"] {
            let _ = std::fs::remove_file(place.around.path().join(beside));
        }
        std::fs::write(&file, content).expect("a place to write");
        let Ok(mut ledger) = Ledger::open(&file) else { return };
        let _ = ledger.check();
        let _ = ledger.datasets();
        if let Ok(event) = Event::gaussian(50.0, 1.0) {
            let _ = ledger.charge(Charge::new("new", "pupils", Unit::Edge, event));
        }
    });
}

/// The network of all folders.
pub fn network() -> Dataset {
    let network = SocialNetwork::new(60).edges(400).classes(2).seed(1).generate();
    network.and_then(|network| network.or_random_split(Ratios::default(), 1)).expect("a network")
}

fn settings(level: Level) -> Settings {
    Settings {
        epochs: 2,
        depth: 1,
        batch_size: 10,
        hidden: 4,
        seed: Some(7),
        ..Settings::of(progap::MethodKind::ProgapLabels, level)
    }
}

/// Makes the whole folders anew.
///
/// # Errors
/// A run that cannot be trained or written.
pub fn renew() -> Result<(), Box<dyn std::error::Error>> {
    let corpus = root().join("fuzz/corpus");
    let fresh = |name: &str| {
        let folder = corpus.join(name);
        let _ = std::fs::remove_dir_all(&folder);
        folder
    };
    let around = tempfile::tempdir()?;
    let trained = around.path().join("edge");
    progap::train(&network(), settings(Level::Edge)).into_folder(&trained)?;
    let exported = Exported { date: "2026-01-31".parse()?, rows: true };
    let mut page = |_: &Release| Ok("<!doctype html><title>a page</title>".to_string());
    let key = SecretKey::new()?;
    progap_export::export(&trained, &fresh("release"), exported, &mut page, Some(&key))?;
    progap::train(&network(), settings(Level::Node)).into_folder(fresh("node"))?;
    // A secure key, so that there is one to damage.
    let secure = Settings { seed: None, ..settings(Level::Edge) };
    let mut epochs = 0;
    let mut stop = |_: &Progress| {
        epochs += 1;
        if epochs == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    match progap::train(&network(), &secure).observer(&mut stop).into_folder(fresh("run")) {
        Err(error) if error.is_interrupted() => {}
        Err(error) => return Err(error.into()),
        Ok(_) => return Err("the run was not interrupted".into()),
    }
    let ledgers = fresh("ledger");
    std::fs::create_dir_all(&ledgers)?;
    let mut ledger = Ledger::create(ledgers.join("privacy.ledger"))?;
    let people = ledger.identity(&network())?;
    ledger.enter(&Entry::new("pupils", &[Unit::Edge, Unit::Node], 4.0, 1e-7), Some(&people))?;
    ledger.charge(Charge::new("run-1", "pupils", Unit::Node, Event::gaussian(9.0, 1.0)?))?;
    Ok(())
}
