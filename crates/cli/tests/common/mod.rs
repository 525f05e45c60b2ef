//! Runs the real command.
#![allow(dead_code, reason = "every test binary uses its own part of this")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

pub mod runs;

#[path = "../../../formats/tests/common/npz.rs"]
pub mod npz;
#[path = "../../../formats/tests/common/shared.rs"]
pub mod shared;

/// The outcome of a run of the command.
pub struct Run {
    pub success: bool,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `progap` with these arguments in a folder.
pub fn progap_in(folder: &Path, arguments: &[&str]) -> Run {
    outcome(command(folder).args(arguments).output().expect("the command starts"))
}

/// The outcome of a process that is over.
pub fn outcome(output: Output) -> Run {
    Run {
        success: output.status.success(),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// The command, without what the environment of the tests says.
pub fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_progap"));
    command.current_dir(folder).env_remove("PROGAP_DATA");
    command
}

impl Run {
    /// The output of a run that must succeed.
    #[track_caller]
    pub fn ok(self) -> String {
        assert!(self.success, "{}", self.stderr);
        assert_eq!(self.stderr, "");
        self.stdout
    }

    /// The JSON output of a run that must succeed.
    #[track_caller]
    pub fn json(self) -> Value {
        serde_json::from_str(&self.ok()).expect("JSON")
    }

    /// The one sentence of a run that must fail, which has all of these parts.
    #[track_caller]
    pub fn refused(self, parts: &[&str]) -> String {
        assert!(!self.success, "{}", self.stdout);
        assert_eq!(self.stdout, "");
        let message = self.stderr.trim_end();
        assert!(message.starts_with("error: ") && message.lines().count() == 1, "{message}");
        assert!(!message.contains("panicked") && !message.contains("mistake in progap"), "{message}");
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
        message.to_string()
    }
}

/// The counts that `inspect --json` shows: nodes, edges, features, classes.
pub fn counts(summary: &Value) -> [u64; 4] {
    ["nodes", "edges", "features", "classes"].map(|key| summary[key].as_u64().expect(key))
}

/// A file of the graph crate's tests.
pub fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/data").join(path)
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

/// An empty folder that goes away with the test.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Puts files into a folder.
pub fn put(folder: &Path, files: &[(&str, &[u8])]) {
    for (name, content) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, content).expect("written");
    }
}

/// A small data set as tables: three people, two classes, a directed edge and an undirected edge.
pub fn put_tables(folder: &Path) {
    let nodes = "id,label,age,town,split\nann,x,30,Ayr,train\nbob,y,40,Bath,val\ncem,x,50,Ayr,test\n";
    let edges = "source,target\nann,bob\nbob,ann\nbob,cem\n";
    put(folder, &[("nodes.csv", nodes.as_bytes()), ("edges.csv", edges.as_bytes())]);
}
