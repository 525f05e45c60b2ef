//! Training runs, and what they leave: a small network, a ledger beside it, the files of a folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{command, folder, progap_in};

/// The delta of all runs with a ledger.
pub const DELTA: &str = "1e-5";

/// A folder with a small network in it.
pub fn workplace() -> tempfile::TempDir {
    let folder = folder();
    let size = ["data", "synth", "g.progap", "--nodes", "1500", "--edges", "40000", "--classes", "3"];
    progap_in(folder.path(), &size).ok();
    folder
}

/// Makes a ledger with a budget for the network of [`workplace`].
pub fn make_ledger(place: &Path, file: &str, unit: &str, epsilon: &str) {
    let data = ["ledger", "init", file, "--data", "g.progap", "--name", "g"];
    progap_in(place, &[&data[..], &["--unit", unit, "--epsilon", epsilon, "--delta", DELTA]].concat()).ok();
}

/// The epsilon of every run that a ledger was charged for.
pub fn charges(place: &Path, ledger: &str) -> Vec<f64> {
    let shown = progap_in(place, &["ledger", "show", ledger, "--runs", "--json"]).json();
    let charges = shown[0]["charges"].as_array().expect("charges").iter();
    charges.map(|charge| charge["epsilon"].as_f64().expect("an epsilon")).collect()
}

/// All files below a folder, by name, but for the one that says how long training took; none if there is no folder.
pub fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("it lies within").to_string_lossy().into_owned();
                if name != "private/cost.json" {
                    files.insert(name, std::fs::read(&path).expect("readable"));
                }
            }
        }
    }
    files
}

/// The aggregates among the files of a run.
pub fn aggregates(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let is_aggregate = |name: &String| name.starts_with("aggregates/") && name.ends_with(".npy");
    contents(folder).into_iter().filter(|(name, _)| is_aggregate(name)).collect()
}

/// The privacy statement of a release.
pub fn statement(release: &Path) -> Value {
    let text = std::fs::read(release.join("privacy.json")).expect("a statement");
    serde_json::from_slice(&text).expect("JSON")
}

/// A command that trains on the network of [`workplace`] with these settings.
pub fn train(place: &Path, settings: &[&str], out: &str) -> Command {
    let mut command = command(place);
    command.args(["train", "g.progap", "--quiet", "--out", out]).args(settings);
    // Nothing is promised by the one, and without a delta by the other.
    if !["sage", "edge-rand"].iter().any(|method| settings.contains(method)) {
        command.args(["--delta", DELTA]);
    }
    command
}

/// A command that resumes a run.
pub fn resume(place: &Path, out: &str) -> Command {
    let mut command = command(place);
    command.args(["train", "--resume", out, "--quiet"]);
    command
}

/// Starts a command of which nobody reads the output.
pub fn start(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("progap starts")
}

/// Waits until a file is there or the process is gone.
pub fn wait_for(child: &mut Child, file: &Path) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !file.exists() && child.try_wait().expect("a child").is_none() && Instant::now() < patience {
        std::thread::sleep(Duration::from_micros(50));
    }
}
